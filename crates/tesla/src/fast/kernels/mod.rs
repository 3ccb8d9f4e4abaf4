//! Lane functions with their own code for whole rows, with fixed modifiers.
//!
//! A kernel is a function of [`crate::lane`] called with constants. Instructions that are not in the list are rare:
//! [`super::bodies::General`] executes them lane by lane. `tests/lockstep.rs` compares the two, instruction by
//! instruction.

use reconverge_simt::Level;

use super::lanes::Handler;
use crate::inst::Arith;
use crate::lane::Rounding;
use crate::lane::float::Saturate;
use crate::meaning::Modes;

/// The operands that an instruction's code has to handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    /// The instruction writes a row; if not, it writes a `$c`.
    pub(super) dst: bool,
    /// The instruction writes a `$c`.
    pub(super) flags: bool,
    /// Some operand is half a register.
    pub(super) halves: bool,
    /// Some source has abs or neg, or is inverted.
    pub(super) modified: bool,
}

/// The kernels of a module, and the code of their operations.
///
/// Each module of kernels gets its own functions `handler`, `word`, `half` and `modified`. The compiler puts the
/// instances of a generic function into the code generation unit of its module, and an incremental build generates only
/// changed units. With one unit for all kernels, each change of a lane function cost 43 s of code generation in a test
/// build.
macro_rules! kernels {
    ($(
        $Name:ident<$($parameter:ident: $type:ty),*>($a:ident, $b:ident, $c:ident, $carry:ident) $lane:expr
        $(, by_host if $usually:expr, $by_host:path $(, $rarely:path)?)? $(, by_row $by_row:path)?;
    )*) => {
        use reconverge_simt::Level;
        use reconverge_simt::handlers;

        use super::Shape;
        use crate::fast::lanes::{Body, Handler, Kernel, Lanes, Lanewise};
        use crate::fast::operands::Operation;
        use crate::inst::Arith;
        use crate::lane::Flags;

        $(
            struct $Name<$(const $parameter: $type),*>;
            impl<$(const $parameter: $type),*> Kernel for $Name<$($parameter),*> {
                #[inline(always)]
                fn lane([$a, $b, $c]: [u32; 3], $carry: Flags) -> (u32, Flags) {
                    $lane
                }
                $(
                    const BY_HOST: bool = $usually;

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
                )?
                $(
                    const BY_HOST: bool = true;

                    #[inline(always)]
                    fn by_host<W: reconverge_simt::wide::Wide>(wide: W, src: &crate::fast::lanes::Sources) -> crate::fast::lanes::Results {
                        // The special function unit writes no flags.
                        Some(($by_row(wide, &src[0]), [0; crate::flow::WARP]))
                    }
                )?
            }
        )*

        handlers!(fn handler<Body>(&mut Lanes<'_>, &Operation) -> Handler);

        /// An operation on words: `None` for halves.
        fn word<K: Kernel>(shape: Shape, level: Level) -> Option<Handler> {
            match shape {
                Shape { halves: true, .. } | Shape { modified: true, .. } => None,
                Shape { dst: false, .. } => Some(handler::<Lanewise<K, false, true, false, false>>(level)),
                Shape { flags: true, .. } => Some(handler::<Lanewise<K, true, true, false, false>>(level)),
                Shape { flags: false, .. } => Some(handler::<Lanewise<K, true, false, false, false>>(level)),
            }
        }

        /// An operation on words of which some may be halves.
        #[allow(dead_code, reason = "the kernels of a module may have no halves")]
        fn half<K: Kernel>(shape: Shape, level: Level) -> Option<Handler> {
            match shape {
                Shape { modified: true, .. } => None,
                Shape { flags: true, .. } => Some(handler::<Lanewise<K, true, true, true, false>>(level)),
                Shape { flags: false, .. } => Some(handler::<Lanewise<K, true, false, true, false>>(level)),
            }
        }

        /// An operation on words with modifiers.
        fn modified<K: Kernel>(shape: Shape, level: Level) -> Option<Handler> {
            match shape {
                Shape { halves: true, .. } => None,
                Shape { modified: false, .. } => word::<K>(shape, level),
                Shape { dst: false, .. } => Some(handler::<Lanewise<K, false, true, false, true>>(level)),
                Shape { flags: true, .. } => Some(handler::<Lanewise<K, true, true, false, true>>(level)),
                Shape { flags: false, .. } => Some(handler::<Lanewise<K, true, false, false, true>>(level)),
            }
        }
    };
}

mod convert;
mod float;
mod integer;

const fn rounding(code: u8) -> Rounding {
    Rounding::ALL[code as usize & 3]
}

/// The code of [`Rounding::Nearest`].
const NEAREST: u8 = 0;

const fn saturate(sat: bool) -> Saturate {
    if sat { Saturate::Plain } else { Saturate::No }
}

/// Returns the code of an operation without its modifiers, or `None` if it has no kernel. Modifiers, including `not`, go
/// into the operands of [`Lanewise`](super::lanes::Lanewise).
pub(super) fn choose(op: &Arith, shape: Shape, modes: Modes, level: Level) -> Option<Handler> {
    integer::choose(op, shape, level)
        .or_else(|| float::choose(op, shape, modes, level))
        .or_else(|| convert::choose(op, shape, modes, level))
}
