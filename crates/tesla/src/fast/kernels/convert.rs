//! Kernels of [`crate::lane::convert`].

use super::{rounding, saturate};
use crate::lane::convert::{self, FloatSize, Integer, Size};
use crate::lane::float::Saturate;
use crate::lane::{Modifiers, Rounding, Width};
use crate::meaning::Modes;

/// The code for "no rounding to a whole number". The other codes are rounding modes.
const AS_IT_IS: u8 = 4;

const F32: FloatSize = FloatSize::F32;
const PLAIN: Modifiers = Modifiers::NONE;

const fn rounding_code(rounding: Rounding) -> u8 {
    match rounding {
        Rounding::Nearest => 0,
        Rounding::Down => 1,
        Rounding::Up => 2,
        Rounding::Zero => 3,
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

kernels! {
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

/// Returns the code of a conversion: see [`super::choose`].
pub(super) fn choose(op: &Arith, shape: Shape, modes: Modes, level: Level) -> Option<Handler> {
    match *op {
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
