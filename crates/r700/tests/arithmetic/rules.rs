//! The float profile of the manual (docs/r700.md, 4.7) on top of rustc_apfloat. It shares no code with the machine.

use rustc_apfloat::Float;
use rustc_apfloat::ieee::{Double, Single};

pub(crate) const SIGN: u32 = 1 << 31;
pub(crate) const INFINITY: u32 = 0x7f80_0000;
pub(crate) const LARGEST: u32 = 0x7f7f_ffff;
pub(crate) const ONE: u32 = 0x3f80_0000;

/// Replaces a denormal by a zero of its sign.
pub(crate) fn flushed(x: u32) -> u32 {
    if x << 1 < 1 << 24 { x & SIGN } else { x }
}

pub(crate) fn is_nan(x: u32) -> bool {
    x << 1 > INFINITY << 1
}

pub(crate) fn is_zero(x: u32) -> bool {
    flushed(x) << 1 == 0
}

/// Returns an operand as a float.
pub(crate) fn single(x: u32) -> Single {
    Single::from_bits(flushed(x).into())
}

/// Returns a result: the first NaN among the operands, quieted; else 0x7fc00000 for a NaN, and no denormals.
pub(crate) fn result(value: Single, operands: &[u32]) -> u32 {
    result_bits(if value.is_nan() { 0x7fc0_0000 } else { value.to_bits() as u32 }, operands)
}

/// Applies [`result`] to bits.
pub(crate) fn result_bits(value: u32, operands: &[u32]) -> u32 {
    match operands.iter().find(|operand| is_nan(**operand)) {
        Some(operand) => operand | 0x0040_0000,
        None => flushed(value),
    }
}

/// Returns an operand as a double; see [`single`].
pub(crate) fn double(x: u64) -> Double {
    Double::from_bits(flushed_double(x).into())
}

pub(crate) fn flushed_double(x: u64) -> u64 {
    if x << 1 < 1 << 53 { x & 1 << 63 } else { x }
}

/// Returns a result as a double; see [`result`].
pub(crate) fn double_result(value: Double, operands: &[u64]) -> u64 {
    match operands.iter().find(|operand| **operand << 1 > 0x7ff << 53) {
        Some(operand) => operand | 1 << 51,
        None if value.is_nan() => 0x7ff8 << 48,
        None => flushed_double(value.to_bits() as u64),
    }
}
