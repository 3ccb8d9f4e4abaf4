//! Functions that emit operations with float results. The emitted code returns the same results as the functions of
//! [`crate::lane`]. The table in `kernels` selects the functions for each operation.
//!
//! The host processor treats denormal operands as zeros, but does not turn denormal results into zeros. Before code
//! reads the bits of a result, [`Rows::settle`] turns denormal results into zeros. If an operand is a NaN, both the
//! host and the emulated machine return the first NaN operand, quieted. If only the result is a NaN, the host's NaN and
//! the emulated machine's NaN have different signs. The emitted code replaces such a NaN.

use reconverge_jit::{One, Rows, Two, Value, predicate};

use crate::lane;

/// Returns a float result with the usual NaN rule. If an operand is a NaN, the result is the first NaN operand. If no
/// operand is a NaN and the result is a NaN, the result becomes the emulated machine's NaN.
fn float(rows: &mut Rows, value: Value, [a, b]: [Value; 2]) -> Value {
    if !rows.exact {
        return rows.raw(value);
    }
    let made = rows.compare(predicate::UNORD, value, value);
    let numbers = rows.compare(predicate::ORD, a, b);
    let made = rows.two(Two::And, made, numbers);
    let nan = rows.word(lane::NAN);
    let value = rows.strip.select(made, value, nan);
    rows.raw(value)
}

/// Computes an operation on one float.
pub(super) fn unary(rows: &mut Rows, op: One, a: Value) -> Value {
    let value = rows.one(op, a);
    float(rows, value, [a; 2])
}

pub(super) fn add(rows: &mut Rows, a: Value, b: Value) -> Value {
    let sum = rows.two(Two::FAdd, a, b);
    float(rows, sum, [a, b])
}

pub(super) fn product(rows: &mut Rows, a: Value, b: Value) -> Value {
    let product = rows.two(Two::FMul, a, b);
    float(rows, product, [a, b])
}

/// Returns the product. If at least one factor is zero, the product is +0.
pub(super) fn legacy_product(rows: &mut Rows, a: Value, b: Value) -> Value {
    let product = product(rows, a, b);
    let zero = rows.word(0);
    let is_zero = |rows: &mut Rows, factor: Value| match rows.strip.is_constant(factor) {
        Some(word) => rows.word(if lane::flush(word) << 1 == 0 { u32::MAX } else { 0 }),
        None => rows.compare(predicate::EQ, factor, zero),
    };
    let (no_a, no_b) = (is_zero(rows, a), is_zero(rows, b));
    let none = rows.two(Two::Or, no_a, no_b);
    let product = rows.two(Two::AndNot, none, product);
    rows.raw(product)
}

pub(super) fn reciprocal(rows: &mut Rows, a: Value) -> Value {
    let one = rows.word(lane::ONE);
    let value = rows.two(Two::FDiv, one, a);
    float(rows, value, [a; 2])
}

pub(super) fn fract(rows: &mut Rows, a: Value) -> Value {
    let floor = rows.one(One::Round(1), a);
    let value = rows.two(Two::FSub, a, floor);
    float(rows, value, [a; 2])
}

/// Converts an unsigned integer to a float.
pub(super) fn from_uint(rows: &mut Rows, a: Value) -> Value {
    let (a, low) = (rows.settle(a), rows.word(0xffff));
    let (high, low) = (rows.one(One::Shr(16), a), rows.two(Two::And, a, low));
    let (high, low) = (rows.one(One::Float, high), rows.one(One::Float, low));
    let unit = rows.word(65536f32.to_bits());
    let high = rows.two(Two::FMul, high, unit);
    rows.two(Two::FAdd, high, low)
}
