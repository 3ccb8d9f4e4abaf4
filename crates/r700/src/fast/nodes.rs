//! Functions that emit computations of compiled code. The emitted code returns the same results as the functions of
//! [`crate::lane`]. The table in `kernels` selects the functions for each operation.
//!
//! The host processor treats denormal operands as zeros, but does not turn denormal results into zeros. Before code
//! reads the bits of a result, [`Rows::settle`] turns denormal results into zeros. If an operand is a NaN, both the
//! host and the emulated machine return the first NaN operand, quieted. If only the result is a NaN, the host's NaN and
//! the emulated machine's NaN have different signs. The emitted code replaces such a NaN.

use reconverge_jit::{One, Rows, Two, Value, predicate};

use crate::lane;

// Functions that emit operations on floats.

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

/// Returns 1.0 if the comparison of `a` with `b` holds, and otherwise 0.0.
pub(super) fn one_if(rows: &mut Rows, predicate: u8, a: Value, b: Value) -> Value {
    let held = rows.compare(predicate, a, b);
    let one = rows.word(lane::ONE);
    rows.two(Two::And, held, one)
}

/// Returns `a` if the comparison of `a` with `b` holds, and otherwise `b`.
pub(super) fn first_if(rows: &mut Rows, predicate: u8, a: Value, b: Value) -> Value {
    let (a, b) = (rows.settle(a), rows.settle(b));
    let first = rows.compare(predicate, a, b);
    rows.strip.select(first, b, a)
}

/// Returns `a` if the comparison of `a` with `b` holds or `b` is a NaN, and otherwise `b`.
pub(super) fn first_if_or_nan(rows: &mut Rows, predicate: u8, a: Value, b: Value) -> Value {
    let (a, b) = (rows.settle(a), rows.settle(b));
    let (first, nan) = (rows.compare(predicate, a, b), rows.compare(predicate::UNORD, b, b));
    let first = rows.two(Two::Or, first, nan);
    rows.strip.select(first, b, a)
}

/// Returns `first` if the comparison of `a` with zero holds, and otherwise `second`.
pub(super) fn choose(rows: &mut Rows, predicate: u8, a: Value, [first, second]: [Value; 2]) -> Value {
    let zero = rows.word(0);
    let chosen = rows.compare(predicate, a, zero);
    rows.choose(chosen, second, first)
}

// Functions that emit operations on integers.

pub(super) fn equal(rows: &mut Rows, a: Value, b: Value) -> Value {
    let (a, b) = (rows.settle(a), rows.settle(b));
    rows.two(Two::Equal, a, b)
}

pub(super) fn not_equal(rows: &mut Rows, a: Value, b: Value) -> Value {
    let equal = equal(rows, a, b);
    rows.not(equal)
}

pub(super) fn greater(rows: &mut Rows, a: Value, b: Value) -> Value {
    let (a, b) = (rows.settle(a), rows.settle(b));
    rows.two(Two::Greater, a, b)
}

pub(super) fn greater_equal(rows: &mut Rows, a: Value, b: Value) -> Value {
    let less = greater(rows, b, a);
    rows.not(less)
}

pub(super) fn greater_equal_unsigned(rows: &mut Rows, a: Value, b: Value) -> Value {
    let (a, b) = (rows.settle(a), rows.settle(b));
    let larger = rows.two(Two::MaxUnsigned, a, b);
    rows.two(Two::Equal, larger, a)
}

pub(super) fn greater_unsigned(rows: &mut Rows, a: Value, b: Value) -> Value {
    let at_most = greater_equal_unsigned(rows, b, a);
    rows.not(at_most)
}

/// Returns `first` or `second` as [`choose`] does, but compares integers.
pub(super) fn choose_int(
    rows: &mut Rows,
    compare: fn(&mut Rows, Value, Value) -> Value,
    a: Value,
    [first, second]: [Value; 2],
) -> Value {
    let zero = rows.word(0);
    let chosen = compare(rows, a, zero);
    rows.choose(chosen, second, first)
}

/// Shifts `a` by the number in the low five bits of `count`.
pub(super) fn shift(rows: &mut Rows, by: Two, known: fn(u8) -> One, a: Value, count: Value) -> Value {
    if let Some(count) = rows.strip.is_constant(count) {
        return rows.one(known((count & 31) as u8), a);
    }
    let low = rows.word(31);
    let count = rows.two(Two::And, count, low);
    rows.two(by, a, count)
}

// Functions that emit conversions between floats and integers.

pub(super) fn from_int(rows: &mut Rows, a: Value) -> Value {
    let a = rows.settle(a);
    rows.one(One::Float, a)
}

pub(super) fn from_uint(rows: &mut Rows, a: Value) -> Value {
    let (a, low) = (rows.settle(a), rows.word(0xffff));
    let (high, low) = (rows.one(One::Shr(16), a), rows.two(Two::And, a, low));
    let (high, low) = (rows.one(One::Float, high), rows.one(One::Float, low));
    let unit = rows.word(65536f32.to_bits());
    let high = rows.two(Two::FMul, high, unit);
    rows.two(Two::FAdd, high, low)
}

/// Converts a float to a signed integer. The conversion rounds toward zero, saturates, and returns 0 for a NaN.
pub(super) fn whole(rows: &mut Rows, a: Value) -> Value {
    let part = rows.one(One::Truncate, a);
    let limit = rows.word(0x4f00_0000); // 2^31
    let above = rows.compare(predicate::GE, a, limit);
    let part = rows.two(Two::Xor, part, above);
    let nan = rows.compare(predicate::UNORD, a, a);
    rows.two(Two::AndNot, nan, part)
}

/// Converts a float to an index. `mode` is the mode for [rounding](One::Round).
pub(super) fn address(rows: &mut Rows, mode: u8, a: Value) -> Value {
    let rounded = rows.one(One::Round(mode), a);
    let whole = whole(rows, rounded);
    held(rows, whole)
}

/// Limits an integer to the range of AR, -256 to 255.
pub(super) fn held(rows: &mut Rows, a: Value) -> Value {
    let (least, greatest) = (rows.word(-256_i32 as u32), rows.word(255));
    let above = rows.two(Two::MaxSigned, a, least);
    rows.two(Two::MinSigned, above, greatest)
}

/// Converts a float to an unsigned integer. The conversion rounds toward zero, saturates, and returns 0 for a NaN.
pub(super) fn whole_unsigned(rows: &mut Rows, a: Value) -> Value {
    let (limit, twice) = (rows.word(0x4f00_0000), rows.word(0x4f80_0000)); // 2^31, 2^32
    let upper = rows.compare(predicate::GE, a, limit);
    let over = rows.two(Two::And, upper, limit);
    let rest = rows.two(Two::FSub, a, over);
    let part = rows.one(One::Truncate, rest);
    let top = rows.one(One::Shl(31), upper);
    let part = rows.two(Two::Xor, part, top);
    let zero = rows.word(0);
    let positive = rows.compare(predicate::GT, a, zero);
    let part = rows.two(Two::And, part, positive);
    let beyond = rows.compare(predicate::GE, a, twice);
    rows.two(Two::Or, part, beyond)
}
