//! Kernels of [products](crate::lane::float) in the mode MUL_ZERO_WINS. Fixed-function programs and programs in the
//! ARB's assembly languages run in this mode.

use super::super::host_float;
use crate::lane::Rounding::Nearest;

const fn mul(sat: bool) -> Arith {
    Arith::FMul { rounding: Nearest, sat }
}

kernels! {
    modified { zero_wins host_float::mul, host_float::zero_mul }: mul(false);
    modified { zero_wins host_float::mad, host_float::zero_mad }: Arith::FMad { sat: false };
    modified { zero_wins }: mul(true), Arith::FMad { sat: true };
}
