//! Kernels of [floats](crate::lane::float) and of the [special function unit](crate::lane::special).

use super::super::{host_float, sfu};
use crate::lane::Compare;
use crate::lane::Rounding::{self, Nearest, Zero};

const fn add(rounding: Rounding, sat: bool) -> Arith {
    Arith::FAdd { rounding, sat }
}

const fn mul(rounding: Rounding, sat: bool) -> Arith {
    Arith::FMul { rounding, sat }
}

const fn set(compare: u8) -> Arith {
    Arith::FSet { compare: Compare::from_bits(compare) }
}

kernels! {
    modified { by_host host_float::add }: add(Nearest, false);
    modified { by_host host_float::mul, host_float::rare_mul }: mul(Nearest, false);
    modified { by_host host_float::mad, host_float::rare_mad }: Arith::FMad { sat: false };
    modified {}: add(Nearest, true), add(Zero, false), add(Zero, true);
    modified {}: mul(Nearest, true), mul(Zero, false), mul(Zero, true);
    modified {}: Arith::FMad { sat: true }, Arith::FMin, Arith::FMax, Arith::Slct;
    modified {}: set(1), set(2), set(3), set(4), set(5), set(6), set(9), set(11), set(12), set(13), set(14);
    modified { by_row sfu::rcp }: Arith::Rcp;
    modified { by_row sfu::rsqrt }: Arith::Rsqrt;
    modified { by_row sfu::lg2 }: Arith::Lg2;
    modified { by_lane sfu::presin }: Arith::PreSin;
    modified { by_lane sfu::preex2 }: Arith::PreEx2;
    modified { by_row sfu::sin }: Arith::Sin;
    modified { by_row sfu::cos }: Arith::Cos;
    modified { by_row sfu::ex2 }: Arith::Ex2 { sat: false };
}
