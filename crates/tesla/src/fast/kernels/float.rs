//! Kernels of [`crate::lane::float`] and of the [special function unit](crate::lane::special).

use super::super::{host_float, sfu};
use super::{NEAREST, rounding, saturate};
use crate::lane::float::{self, Saturate};
use crate::lane::{Compare, Rounding, special};
use crate::meaning::Modes;

kernels! {
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
}

/// Returns the code of a floating-point operation: see [`super::choose`].
pub(super) fn choose(op: &Arith, shape: Shape, modes: Modes, level: Level) -> Option<Handler> {
    match *op {
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
        _ => None,
    }
}
