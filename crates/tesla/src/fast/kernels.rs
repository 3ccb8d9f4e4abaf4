//! Which lane functions have code of their own on whole rows, with their modifiers fixed.
//!
//! A kernel is a function of [`crate::lane`] called with constants. What is not in the list, because it is rare, goes
//! lane by lane through [`super::bodies::General`]; the two are compared, instruction by instruction, in
//! `tests/lockstep.rs`.

use reconverge_simt::Level;
use reconverge_simt::wide::Wide;

use super::lanes::{Handler, Kernel, Lanewise, handler};
use super::{host_float, sfu};
use crate::flow::WARP;
use crate::inst::Arith;
use crate::lane::convert::{FloatSize, Integer, Size};
use crate::lane::float::Saturate;
use crate::lane::integer::{Addition, Logic as LogicOp, Product};
use crate::lane::{Compare, Flags, Modifiers, Rounding, Width, convert, float, integer, special};
use crate::meaning::Modes;

/// The operands that an instruction's code has to handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    /// It writes a row; what does not writes a `$c`.
    pub(super) dst: bool,
    /// It writes a `$c`.
    pub(super) flags: bool,
    /// Some operand is half a register.
    pub(super) halves: bool,
    /// Some source has abs or neg, or is inverted.
    pub(super) modified: bool,
}

macro_rules! kernels {
    ($(
        $Name:ident<$($parameter:ident: $type:ty),*>($a:ident, $b:ident, $c:ident, $carry:ident) $lane:expr
        $(, by_host if $usually:expr, $by_host:path $(, $rarely:path)?)? $(, by_row $by_row:path)?;
    )*) => { $(
        struct $Name<$(const $parameter: $type),*>;
        impl<$(const $parameter: $type),*> Kernel for $Name<$($parameter),*> {
            #[inline(always)]
            fn lane([$a, $b, $c]: [u32; 3], $carry: Flags) -> (u32, Flags) {
                $lane
            }
            $(
                const BY_HOST: bool = $usually;

                #[inline(always)]
                fn by_host<W: Wide>(wide: W, src: &[[u32; WARP]; 3]) -> Option<([u32; WARP], [u8; WARP])> {
                    $by_host(wide, src)
                }
                $(
                    #[inline(always)]
                    fn rarely<W: Wide>(wide: W, src: &[[u32; WARP]; 3]) -> Option<([u32; WARP], [u8; WARP])> {
                        $rarely(wide, src)
                    }
                )?
            )?
            $(
                const BY_HOST: bool = true;

                #[inline(always)]
                fn by_host<W: Wide>(wide: W, src: &[[u32; WARP]; 3]) -> Option<([u32; WARP], [u8; WARP])> {
                    // The special function unit writes no flags.
                    Some(($by_row(wide, &src[0]), [0; WARP]))
                }
            )?
        }
    )* };
}

const fn width(wide: bool) -> Width {
    if wide { Width::B32 } else { Width::B16 }
}

const fn addition(code: u8) -> Addition {
    match code {
        0 => Addition::Add,
        1 => Addition::Sub,
        2 => Addition::Subr,
        _ => Addition::Addc,
    }
}

const fn addition_code(addition: Addition) -> u8 {
    match addition {
        Addition::Add => 0,
        Addition::Sub => 1,
        Addition::Subr => 2,
        Addition::Addc => 3,
    }
}

const fn rounding(code: u8) -> Rounding {
    Rounding::ALL[code as usize & 3]
}

const fn rounding_code(rounding: Rounding) -> u8 {
    match rounding {
        Rounding::Nearest => 0,
        Rounding::Down => 1,
        Rounding::Up => 2,
        Rounding::Zero => 3,
    }
}

/// The code of [`Rounding::Nearest`].
const NEAREST: u8 = 0;

/// No rounding to a whole number, beside the codes of the modes.
const AS_IT_IS: u8 = 4;

const fn saturate(sat: bool) -> Saturate {
    if sat { Saturate::Plain } else { Saturate::No }
}

const fn product(wide: bool, first: bool, second: bool) -> Product {
    match wide {
        false => Product::Bits16 { signed1: first, signed2: second },
        true => Product::Bits24 { signed: first, high: second },
    }
}

const fn size(bits: u8) -> Size {
    match bits {
        8 => Size::B8,
        16 => Size::B16,
        _ => Size::B32,
    }
}

const fn integral(code: u8) -> Option<Rounding> {
    if code == AS_IT_IS { None } else { Some(rounding(code)) }
}

const F32: FloatSize = FloatSize::F32;
const PLAIN: Modifiers = Modifiers::NONE;

kernels! {
    Mov<>(a, _b, _c, _carry) (a, Flags::NONE);
    Add<CODE: u8, WIDE: bool>(a, b, _c, carry) integer::add(addition(CODE), width(WIDE), false, a, b, carry);
    Mul<WIDE: bool, FIRST: bool, SECOND: bool>(a, b, _c, _carry) integer::mul(product(WIDE, FIRST, SECOND), a, b);
    Mad<WIDE: bool, FIRST: bool, SECOND: bool>(a, b, c, carry)
        integer::mad(product(WIDE, FIRST, SECOND), Addition::Add, false, a, b, c, carry);
    Sad<WIDE: bool, SIGNED: bool>(a, b, c, _carry) integer::sad(width(WIDE), SIGNED, a, b, c);
    Min<WIDE: bool, SIGNED: bool>(a, b, _c, _carry) integer::min(width(WIDE), SIGNED, a, b);
    Max<WIDE: bool, SIGNED: bool>(a, b, _c, _carry) integer::max(width(WIDE), SIGNED, a, b);
    Set<CODE: u8, SIGNED: bool>(a, b, _c, _carry)
        integer::set(Compare::from_bits(CODE), Width::B32, SIGNED, a, b);
    And<WIDE: bool>(a, b, _c, _carry) integer::logic(LogicOp::And, width(WIDE), false, false, a, b);
    Or<WIDE: bool>(a, b, _c, _carry) integer::logic(LogicOp::Or, width(WIDE), false, false, a, b);
    Xor<WIDE: bool>(a, b, _c, _carry) integer::logic(LogicOp::Xor, width(WIDE), false, false, a, b);
    Mov2<WIDE: bool>(a, b, _c, _carry) integer::logic(LogicOp::Mov2, width(WIDE), false, false, a, b);
    Shl<WIDE: bool>(a, b, _c, _carry) integer::shl(width(WIDE), a, b);
    Shr<WIDE: bool, SIGNED: bool>(a, b, _c, _carry) integer::shr(width(WIDE), SIGNED, a, b);
    FAdd<MODE: u8, SAT: bool>(a, b, _c, _carry) float::add(a, b, rounding(MODE), saturate(SAT)),
        by_host if MODE == NEAREST && !SAT, host_float::add;
    FMul<MODE: u8, SAT: bool>(a, b, _c, _carry) float::mul(a, b, rounding(MODE), saturate(SAT), false),
        by_host if MODE == NEAREST && !SAT, host_float::mul, host_float::rare_mul;
    FMad<SAT: bool>(a, b, c, _carry) float::mad(a, b, c, false, saturate(SAT), false),
        by_host if !SAT, host_float::mad, host_float::rare_mad;
    FMin<>(a, b, _c, _carry) float::min(a, b);
    FMax<>(a, b, _c, _carry) float::max(a, b);
    FSet<CODE: u8>(a, b, _c, _carry) float::set(Compare::from_bits(CODE), a, b);
    Slct<>(a, b, c, _carry) float::slct(a, b, c);
    Rcp<>(a, _b, _c, _carry) (special::rcp(a), Flags::NONE), by_row sfu::rcp;
    Rsqrt<>(a, _b, _c, _carry) (special::rsqrt(a), Flags::NONE), by_row sfu::rsqrt;
    Lg2<>(a, _b, _c, _carry) (special::lg2(a), Flags::NONE), by_row sfu::lg2;
    PreSin<>(a, _b, _c, _carry) (sfu::presin(a), Flags::NONE);
    PreEx2<>(a, _b, _c, _carry) (sfu::preex2(a), Flags::NONE);
    Sin<>(a, _b, _c, _carry) (special::sin(a), Flags::NONE), by_row sfu::sin;
    Cos<>(a, _b, _c, _carry) (special::cos(a), Flags::NONE), by_row sfu::cos;
    Ex2<>(a, _b, _c, _carry) (special::ex2(a, Saturate::No), Flags::NONE), by_row sfu::ex2;
    I2I<TO_SIGNED: bool, FROM: u8, SIGNED: bool>(a, _b, _c, _carry) convert::i2i(
        Integer { size: Size::B32, signed: TO_SIGNED },
        Width::B32,
        Integer { size: size(FROM), signed: SIGNED },
        PLAIN,
        a,
    );
    I2F<FROM: u8, SIGNED: bool>(a, _b, _c, _carry)
        convert::i2f(Rounding::Nearest, Saturate::No, Integer { size: size(FROM), signed: SIGNED }, PLAIN, a);
    F2I<MODE: u8, SIGNED: bool>(a, _b, _c, _carry)
        convert::f2i(Width::B32, SIGNED, rounding(MODE), F32, PLAIN, a);
    F2F<MODE: u8, SAT: bool>(a, _b, _c, _carry) convert::f2f32(integral(MODE), saturate(SAT), F32, PLAIN, a);
}

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

/// The code of an operation without its modifiers: those go into the operands of [`Lanewise`] (`not` as
/// well). `None` when there is no code of its own.
pub(super) fn choose(op: &Arith, shape: Shape, modes: Modes, level: Level) -> Option<Handler> {
    match *op {
        Arith::Mov { .. } if shape.halves => half::<Mov>(shape, level),
        Arith::Mov { .. } => word::<Mov>(shape, level),
        Arith::Add { addition, width, sat: false } => match (addition_code(addition), width) {
            (0, Width::B32) => word::<Add<0, true>>(shape, level),
            (1, Width::B32) => word::<Add<1, true>>(shape, level),
            (2, Width::B32) => word::<Add<2, true>>(shape, level),
            (_, Width::B32) => word::<Add<3, true>>(shape, level),
            (0, Width::B16) => half::<Add<0, false>>(shape, level),
            (1, Width::B16) => half::<Add<1, false>>(shape, level),
            _ => None,
        },
        Arith::Mul { product } => match product {
            Product::Bits16 { signed1: false, signed2: false } => {
                half::<Mul<false, false, false>>(shape, level)
            }
            Product::Bits16 { signed1: false, signed2: true } => {
                half::<Mul<false, false, true>>(shape, level)
            }
            Product::Bits16 { signed1: true, signed2: false } => {
                half::<Mul<false, true, false>>(shape, level)
            }
            Product::Bits16 { signed1: true, signed2: true } => half::<Mul<false, true, true>>(shape, level),
            Product::Bits24 { signed: false, high: false } => word::<Mul<true, false, false>>(shape, level),
            Product::Bits24 { signed: false, high: true } => word::<Mul<true, false, true>>(shape, level),
            Product::Bits24 { signed: true, high: false } => word::<Mul<true, true, false>>(shape, level),
            Product::Bits24 { signed: true, high: true } => word::<Mul<true, true, true>>(shape, level),
        },
        Arith::Mad { product, addition: Addition::Add, sat: false } => match product {
            Product::Bits16 { signed1: false, signed2: false } => {
                half::<Mad<false, false, false>>(shape, level)
            }
            Product::Bits16 { signed1: true, signed2: true } => half::<Mad<false, true, true>>(shape, level),
            Product::Bits24 { signed: false, high: false } => word::<Mad<true, false, false>>(shape, level),
            Product::Bits24 { signed: true, high: false } => word::<Mad<true, true, false>>(shape, level),
            _ => None,
        },
        Arith::Sad { width, signed } => match (width, signed) {
            (Width::B32, false) => word::<Sad<true, false>>(shape, level),
            (Width::B32, true) => word::<Sad<true, true>>(shape, level),
            (Width::B16, _) => None,
        },
        Arith::Min { width, signed } => match (width, signed) {
            (Width::B32, false) => word::<Min<true, false>>(shape, level),
            (Width::B32, true) => word::<Min<true, true>>(shape, level),
            (Width::B16, _) => None,
        },
        Arith::Max { width, signed } => match (width, signed) {
            (Width::B32, false) => word::<Max<true, false>>(shape, level),
            (Width::B32, true) => word::<Max<true, true>>(shape, level),
            (Width::B16, _) => None,
        },
        Arith::Set { compare, width: Width::B32, signed } => match (compare.bits(), signed) {
            (1, false) => word::<Set<1, false>>(shape, level),
            (2, _) => word::<Set<2, false>>(shape, level),
            (3, false) => word::<Set<3, false>>(shape, level),
            (4, false) => word::<Set<4, false>>(shape, level),
            (5, _) => word::<Set<5, false>>(shape, level),
            (6, false) => word::<Set<6, false>>(shape, level),
            (1, true) => word::<Set<1, true>>(shape, level),
            (3, true) => word::<Set<3, true>>(shape, level),
            (4, true) => word::<Set<4, true>>(shape, level),
            (6, true) => word::<Set<6, true>>(shape, level),
            _ => None,
        },
        Arith::Logic { logic, width, .. } => match (logic, width) {
            (LogicOp::And, Width::B32) => modified::<And<true>>(shape, level),
            (LogicOp::Or, Width::B32) => modified::<Or<true>>(shape, level),
            (LogicOp::Xor, Width::B32) => modified::<Xor<true>>(shape, level),
            (LogicOp::Mov2, Width::B32) => modified::<Mov2<true>>(shape, level),
            (LogicOp::And, Width::B16) => half::<And<false>>(shape, level),
            (LogicOp::Or, Width::B16) => half::<Or<false>>(shape, level),
            (LogicOp::Xor, Width::B16) => half::<Xor<false>>(shape, level),
            (LogicOp::Mov2, Width::B16) => half::<Mov2<false>>(shape, level),
        },
        Arith::Shl { width } => match width {
            Width::B32 => word::<Shl<true>>(shape, level),
            Width::B16 => half::<Shl<false>>(shape, level),
        },
        Arith::Shr { width, signed } => match (width, signed) {
            (Width::B32, false) => word::<Shr<true, false>>(shape, level),
            (Width::B32, true) => word::<Shr<true, true>>(shape, level),
            (Width::B16, false) => half::<Shr<false, false>>(shape, level),
            (Width::B16, true) => half::<Shr<false, true>>(shape, level),
        },

        // Saturation of NaN by the mode is rare, and so are the two directions that no hardware was seen to take.
        Arith::FAdd { sat: true, .. } | Arith::FMul { sat: true, .. } | Arith::FMad { sat: true }
            if modes.sat_nan =>
        {
            None
        }
        Arith::FMul { .. } | Arith::FMad { .. } if modes.mul_zero_wins => None,
        Arith::FAdd { rounding, sat } => match (rounding, sat) {
            (Rounding::Nearest, false) => modified::<FAdd<0, false>>(shape, level),
            (Rounding::Nearest, true) => modified::<FAdd<0, true>>(shape, level),
            (Rounding::Zero, false) => modified::<FAdd<3, false>>(shape, level),
            (Rounding::Zero, true) => modified::<FAdd<3, true>>(shape, level),
            (Rounding::Down | Rounding::Up, _) => None,
        },
        Arith::FMul { rounding, sat } => match (rounding, sat) {
            (Rounding::Nearest, false) => modified::<FMul<0, false>>(shape, level),
            (Rounding::Nearest, true) => modified::<FMul<0, true>>(shape, level),
            (Rounding::Zero, false) => modified::<FMul<3, false>>(shape, level),
            (Rounding::Zero, true) => modified::<FMul<3, true>>(shape, level),
            (Rounding::Down | Rounding::Up, _) => None,
        },
        Arith::FMad { sat } => match sat {
            false => modified::<FMad<false>>(shape, level),
            true => modified::<FMad<true>>(shape, level),
        },
        Arith::FMin => modified::<FMin>(shape, level),
        Arith::FMax => modified::<FMax>(shape, level),
        Arith::FSet { compare } => match compare.bits() {
            1 => modified::<FSet<1>>(shape, level),
            2 => modified::<FSet<2>>(shape, level),
            3 => modified::<FSet<3>>(shape, level),
            4 => modified::<FSet<4>>(shape, level),
            5 => modified::<FSet<5>>(shape, level),
            6 => modified::<FSet<6>>(shape, level),
            9 => modified::<FSet<9>>(shape, level),
            11 => modified::<FSet<11>>(shape, level),
            12 => modified::<FSet<12>>(shape, level),
            13 => modified::<FSet<13>>(shape, level),
            14 => modified::<FSet<14>>(shape, level),
            _ => None,
        },
        Arith::Slct => modified::<Slct>(shape, level),
        Arith::Rcp => modified::<Rcp>(shape, level),
        Arith::Rsqrt => modified::<Rsqrt>(shape, level),
        Arith::Lg2 => modified::<Lg2>(shape, level),
        Arith::PreSin => modified::<PreSin>(shape, level),
        Arith::PreEx2 => modified::<PreEx2>(shape, level),
        Arith::Sin => modified::<Sin>(shape, level),
        Arith::Cos => modified::<Cos>(shape, level),
        Arith::Ex2 { sat: false } => modified::<Ex2>(shape, level),

        Arith::I2I {
            to: Integer { size: Size::B32, signed: to }, from: Integer { size, signed }, ..
        } => match (to, size, signed) {
            (false, Size::B8, false) => half::<I2I<false, 8, false>>(shape, level),
            (false, Size::B16, false) => half::<I2I<false, 16, false>>(shape, level),
            (false, Size::B32, false) => word::<I2I<false, 32, false>>(shape, level),
            (true, Size::B8, true) => half::<I2I<true, 8, true>>(shape, level),
            (true, Size::B16, true) => half::<I2I<true, 16, true>>(shape, level),
            (true, Size::B32, true) => word::<I2I<true, 32, true>>(shape, level),
            _ => None,
        },
        Arith::I2F32 { from: Integer { size, signed }, rounding: Rounding::Nearest, sat: false } => {
            match (size, signed) {
                (Size::B8, false) => half::<I2F<8, false>>(shape, level),
                (Size::B8, true) => half::<I2F<8, true>>(shape, level),
                (Size::B16, false) => half::<I2F<16, false>>(shape, level),
                (Size::B16, true) => half::<I2F<16, true>>(shape, level),
                (Size::B32, false) => word::<I2F<32, false>>(shape, level),
                (Size::B32, true) => word::<I2F<32, true>>(shape, level),
            }
        }
        Arith::F2I { to: Width::B32, signed, rounding, from: FloatSize::F32 } => {
            match (rounding_code(rounding), signed) {
                (0, false) => modified::<F2I<0, false>>(shape, level),
                (0, true) => modified::<F2I<0, true>>(shape, level),
                (1, false) => modified::<F2I<1, false>>(shape, level),
                (1, true) => modified::<F2I<1, true>>(shape, level),
                (2, false) => modified::<F2I<2, false>>(shape, level),
                (2, true) => modified::<F2I<2, true>>(shape, level),
                (_, false) => modified::<F2I<3, false>>(shape, level),
                (_, true) => modified::<F2I<3, true>>(shape, level),
            }
        }
        Arith::F2F32 { integral, sat, from: FloatSize::F32 } if !(sat && modes.sat_nan) => {
            match (integral.map_or(AS_IT_IS, rounding_code), sat) {
                (AS_IT_IS, false) => modified::<F2F<AS_IT_IS, false>>(shape, level),
                (AS_IT_IS, true) => modified::<F2F<AS_IT_IS, true>>(shape, level),
                (0, false) => modified::<F2F<0, false>>(shape, level),
                (1, false) => modified::<F2F<1, false>>(shape, level),
                (2, false) => modified::<F2F<2, false>>(shape, level),
                (3, false) => modified::<F2F<3, false>>(shape, level),
                _ => None,
            }
        }
        _ => None,
    }
}
