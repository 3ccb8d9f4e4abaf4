//! Operations with special code for whole rows of lanes.
//!
//! A kernel is an operation that is known at compile time. [`crate::meaning`] has a list of operations. For a kernel,
//! the compiler reduces this list to one call of a function of [`crate::lane`] with constant arguments. Operations
//! without a kernel are rare, and [`super::bodies::General`] executes them lane by lane. `tests/lockstep.rs` compares
//! kernels and lane functions, instruction by instruction.

use reconverge_simt::Level;

use super::lanes::Handler;
use crate::inst::Arith;
use crate::meaning::Modes;

/// The kinds of operands that the code of an instruction must handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    /// Whether the instruction writes a row. If not, the instruction writes a `$c`.
    pub(super) dst: bool,
    /// Whether the instruction writes a `$c`.
    pub(super) flags: bool,
    /// Whether some operand is a half register.
    pub(super) halves: bool,
    /// Whether some source has abs or neg, or is inverted.
    pub(super) modified: bool,
}

/// Defines the kernels of a module. Each row starts with the kind of operands that the operations of the row accept
/// (`word`, `half` or `modified`). The braces contain the method of computation. If the lane function computes each
/// lane, the braces are empty.
///
/// Each module of kernels has separate functions `handler`, `word`, `half` and `modified`. A generic function is
/// defined in a module. The compiler puts the instances of the function into the code generation unit of this module.
/// An incremental build generates only changed units. With one unit for all kernels, each change of a lane function
/// cost 43 s of code generation in a test build.
macro_rules! kernels {
    ($( $with:ident $way:tt: $($op:expr),+; )*) => {
        use reconverge_simt::{Level, handlers};

        use super::Shape;
        use crate::fast::lanes::{Body, Handler, Kernel, Lanes, Lanewise};
        use crate::fast::operands::Operation;
        use crate::inst::Arith;

        handlers!(fn handler<Body>(&mut Lanes<'_>, &Operation) -> Handler);

        /// Returns the code of an operation on whole words. Returns `None` if an operand is a half register or a source
        /// has a modifier.
        fn word<K: Kernel>(shape: Shape, level: Level) -> Option<Handler> {
            match shape {
                Shape { halves: true, .. } | Shape { modified: true, .. } => None,
                Shape { dst: false, .. } => Some(handler::<Lanewise<K, false, true, false, false>>(level)),
                Shape { flags: true, .. } => Some(handler::<Lanewise<K, true, true, false, false>>(level)),
                Shape { flags: false, .. } => Some(handler::<Lanewise<K, true, false, false, false>>(level)),
            }
        }

        /// Returns the code of an operation on words and half registers. Returns `None` if a source has a modifier.
        #[allow(dead_code, reason = "the kernels of a module may have no halves")]
        fn half<K: Kernel>(shape: Shape, level: Level) -> Option<Handler> {
            match shape {
                Shape { modified: true, .. } => None,
                Shape { flags: true, .. } => Some(handler::<Lanewise<K, true, true, true, false>>(level)),
                Shape { flags: false, .. } => Some(handler::<Lanewise<K, true, false, true, false>>(level)),
            }
        }

        /// Returns the code of an operation on whole words with or without modifiers. Returns `None` if an operand is a
        /// half register.
        fn modified<K: Kernel>(shape: Shape, level: Level) -> Option<Handler> {
            match shape {
                Shape { halves: true, .. } => None,
                Shape { modified: false, .. } => word::<K>(shape, level),
                Shape { dst: false, .. } => Some(handler::<Lanewise<K, false, true, false, true>>(level)),
                Shape { flags: true, .. } => Some(handler::<Lanewise<K, true, true, false, true>>(level)),
                Shape { flags: false, .. } => Some(handler::<Lanewise<K, true, false, false, true>>(level)),
            }
        }

        /// Returns the code of an operation, see [`super::choose`].
        pub(super) fn choose(op: &Arith, shape: Shape, level: Level) -> Option<Handler> {
            $($({
                struct ThisKernel;
                impl Kernel for ThisKernel {
                    const OP: Arith = $op;
                    way! $way
                }
                if *op == ThisKernel::OP
                    && let Some(handler) = $with::<ThisKernel>(shape, level)
                {
                    return Some(handler);
                }
            })+)*
            None
        }
    };
}

/// Defines the items of a [`Kernel`](super::lanes::Kernel) that replace the loop over the kernel's lane function.
macro_rules! way {
    () => {};
    (by_host $by_host:path $(, $rarely:path)?) => {
        const BY_HOST: bool = true;

        #[inline(always)]
        fn by_host<W: reconverge_simt::wide::Wide>(wide: W, src: &crate::fast::lanes::Sources) -> crate::fast::lanes::Results {
            $by_host(wide, src)
        }
        $(
            #[inline(always)]
            fn rarely<W: reconverge_simt::wide::Wide>(wide: W, src: &crate::fast::lanes::Sources) -> crate::fast::lanes::Results {
                $rarely(wide, src)
            }
        )?
    };
    (zero_wins $($by_host:path, $rarely:path)?) => {
        const MODES: crate::meaning::Modes = crate::meaning::Modes::MUL_ZERO_WINS;
        $( way! { by_host $by_host, $rarely } )?
    };
    (by_row $by_row:path) => {
        const BY_HOST: bool = true;

        #[inline(always)]
        fn by_host<W: reconverge_simt::wide::Wide>(wide: W, src: &crate::fast::lanes::Sources) -> crate::fast::lanes::Results {
            // The special function unit does not write flags.
            Some(($by_row(wide, &src[0]), [0; crate::flow::WARP]))
        }
    };
    (by_lane $by_lane:path) => {
        #[inline(always)]
        fn lane([a, ..]: [u32; 3], _: crate::lane::Flags) -> (u32, crate::lane::Flags) {
            ($by_lane(a), crate::lane::Flags::NONE)
        }
    };
}

mod convert;
mod float;
mod integer;
mod zero_wins;

/// Returns the code of an operation. Returns `None` if the operation has no kernel. `op` has no modifiers. All
/// modifiers, including `not`, are fields of the operands of [`Lanewise`](super::lanes::Lanewise).
pub(super) fn choose(op: &Arith, shape: Shape, modes: Modes, level: Level) -> Option<Handler> {
    // An operation that saturates in the mode SAT_NAN has no kernel, because launches in this mode are rare. In the
    // mode MUL_ZERO_WINS, products have separate kernels.
    let (by_mode, is_product) = match *op {
        Arith::FAdd { sat, .. } | Arith::F2F32 { sat, .. } => (sat && modes.sat_nan, false),
        Arith::FMul { sat, .. } | Arith::FMad { sat } => (sat && modes.sat_nan, true),
        _ => (false, false),
    };
    if by_mode {
        return None;
    }
    if is_product && modes.mul_zero_wins {
        return zero_wins::choose(op, shape, level);
    }
    integer::choose(op, shape, level)
        .or_else(|| float::choose(op, shape, level))
        .or_else(|| convert::choose(op, shape, level))
}
