//! Kernels of [conversions](crate::lane::convert).

use crate::lane::Rounding::{self, Down, Nearest, Up, Zero};
use crate::lane::Width;
use crate::lane::convert::Size::{self, B8, B16, B32};
use crate::lane::convert::{FloatSize, Integer};

const fn i2i(from: Size, signed: bool) -> Arith {
    let to = Integer { size: B32, signed };
    Arith::I2I { to, register: Width::B32, from: Integer { size: from, signed } }
}

const fn i2f(size: Size, signed: bool) -> Arith {
    Arith::I2F32 { from: Integer { size, signed }, rounding: Nearest, sat: false }
}

const fn f2i(rounding: Rounding, signed: bool) -> Arith {
    Arith::F2I { to: Width::B32, signed, rounding, from: FloatSize::F32 }
}

const fn f2f(integral: Option<Rounding>, sat: bool) -> Arith {
    Arith::F2F32 { integral, sat, from: FloatSize::F32 }
}

kernels! {
    half {}: i2i(B8, false), i2i(B8, true), i2i(B16, false), i2i(B16, true);
    word {}: i2i(B32, false), i2i(B32, true);
    half {}: i2f(B8, false), i2f(B8, true), i2f(B16, false), i2f(B16, true);
    word {}: i2f(B32, false), i2f(B32, true);
    modified {}: f2i(Nearest, false), f2i(Down, false), f2i(Up, false), f2i(Zero, false);
    modified {}: f2i(Nearest, true), f2i(Down, true), f2i(Up, true), f2i(Zero, true);
    modified {}: f2f(None, false), f2f(None, true);
    modified {}: f2f(Some(Nearest), false), f2f(Some(Down), false), f2f(Some(Up), false), f2f(Some(Zero), false);
}
