//! Operations with their own code for whole rows.
//!
//! A kernel is an operation that is known at compile time. The list of [`crate::meaning`] then becomes one function
//! of [`crate::lane`], called with constants. Operations that are not in the lists are rare;
//! [`super::bodies::General`] executes them lane by lane. `tests/lockstep.rs` compares the two, instruction by
//! instruction.

use reconverge_simt::Level;

use super::lanes::Handler;
use crate::inst::Arith;
use crate::meaning::Modes;

/// The operands that an instruction's code has to handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    /// The instruction writes a row; if not, it writes a `$c`.
    pub(super) dst: bool,
    /// The instruction writes a `$c`.
    pub(super) flags: bool,
    /// Whether some operand is half a register.
    pub(super) halves: bool,
    /// Whether some source has abs or neg, or is inverted.
    pub(super) modified: bool,
}

/// Defines the kernels of a module. A row names the kind of operands of its operations (`word`, `half` or
/// `modified`) and, in braces, their way of computation if it is not lane by lane.
///
/// Each module of kernels gets its own functions `handler`, `word`, `half` and `modified`. The compiler puts the
/// instances of a generic function into the code generation unit of its module, and an incremental build generates only
/// changed units. With one unit for all kernels, each change of a lane function cost 43 s of code generation in a test
/// build.
macro_rules! kernels {
    ($( $with:ident $way:tt: $($op:expr),+; )*) => {
        use reconverge_simt::{Level, handlers};

        use super::Shape;
        use crate::fast::lanes::{Body, Handler, Kernel, Lanes, Lanewise};
        use crate::fast::operands::Operation;
        use crate::inst::Arith;

        handlers!(fn handler<Body>(&mut Lanes<'_>, &Operation) -> Handler);

        /// Returns the code of an operation on words; `None` for halves.
        fn word<K: Kernel>(shape: Shape, level: Level) -> Option<Handler> {
            match shape {
                Shape { halves: true, .. } | Shape { modified: true, .. } => None,
                Shape { dst: false, .. } => Some(handler::<Lanewise<K, false, true, false, false>>(level)),
                Shape { flags: true, .. } => Some(handler::<Lanewise<K, true, true, false, false>>(level)),
                Shape { flags: false, .. } => Some(handler::<Lanewise<K, true, false, false, false>>(level)),
            }
        }

        /// Returns the code of an operation on words, some of which may be halves.
        #[allow(dead_code, reason = "the kernels of a module may have no halves")]
        fn half<K: Kernel>(shape: Shape, level: Level) -> Option<Handler> {
            match shape {
                Shape { modified: true, .. } => None,
                Shape { flags: true, .. } => Some(handler::<Lanewise<K, true, true, true, false>>(level)),
                Shape { flags: false, .. } => Some(handler::<Lanewise<K, true, false, true, false>>(level)),
            }
        }

        /// Returns the code of an operation on words with modifiers.
        fn modified<K: Kernel>(shape: Shape, level: Level) -> Option<Handler> {
            match shape {
                Shape { halves: true, .. } => None,
                Shape { modified: false, .. } => word::<K>(shape, level),
                Shape { dst: false, .. } => Some(handler::<Lanewise<K, false, true, false, true>>(level)),
                Shape { flags: true, .. } => Some(handler::<Lanewise<K, true, true, false, true>>(level)),
                Shape { flags: false, .. } => Some(handler::<Lanewise<K, true, false, false, true>>(level)),
            }
        }

        /// Returns the code of an operation: see [`super::choose`].
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

/// Items of a [`Kernel`](super::lanes::Kernel) that replace the loop over its lane function.
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

/// Returns the code of an operation without its modifiers, or `None` if it has no kernel. Modifiers, including `not`, go
/// into the operands of [`Lanewise`](super::lanes::Lanewise).
pub(super) fn choose(op: &Arith, shape: Shape, modes: Modes, level: Level) -> Option<Handler> {
    // Other modes are rare.
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
