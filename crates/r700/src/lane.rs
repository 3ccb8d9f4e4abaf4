//! The computations of one lane. Each operation has one pure function on 32-bit registers. The functions have no
//! branches, so a compiler can vectorise a loop over lanes.
//!
//! All functions of this module treat floats in the same way. The source is MAN chapter 4. Comments state the points
//! that this chapter does not define:
//!
//! * floats are binary32, results are rounded to nearest even, and operations are not fused;
//! * a function replaces a denormal operand by a zero with the operand's sign, and a denormal result by a zero with the
//!   result's sign ([`flush`]);
//! * functions that only select an operand (MAX, MIN, CND*) do not change the bits of the selected operand;
//! * if some operands are NaNs, the result is the first of these NaNs, quieted (no source states which NaN). If no
//!   operand is a NaN and the result is a NaN, the result is [`NAN`];
//! * the products of `MUL`, `MULADD`, `DOT4` and `MUL_LIT` are *legacy*: if at least one factor is zero, the product is
//!   a positive zero;
//! * in comparisons, -0 equals +0. If an operand is a NaN, only "not equal" holds.
//!
//! Transcendental functions compute in double precision and round the result once
//! ([`Rule::TRANSCENDENTALS_ARE_ROUNDED_ONCE`]). The hardware computes these functions with unpublished tables. So a
//! result of the hardware may differ from a result of this module by two units in the last place.
//!
//! A function has the name of the manual's opcode in lower case. The arguments `a`, `b`, `c` are the operands src0,
//! src1, src2. The caller has already applied the input modifiers [`abs`] and [`neg`].

use reconverge_simt::word::Word;

#[cfg(doc)]
use crate::rules::Rule;

/// The NaN that an operation returns if no operand is a NaN.
pub const NAN: u32 = 0x7fc0_0000;

/// 1.0. A float comparison returns this word if the comparison holds.
pub const ONE: u32 = 0x3f80_0000;

/// All bits set. A comparison with an integer result returns this word if the comparison holds.
pub const TRUE: u32 = u32::MAX;

/// The largest finite number.
pub const FLT_MAX: u32 = 0x7f7f_ffff;

const SIGN: u32 = 0x8000_0000;

// Functions for the modifiers of operands and results.

/// SRC_ABS: clears the sign bit.
#[inline(always)]
pub fn abs(a: u32) -> u32 {
    a & !SIGN
}

/// SRC_NEG: inverts the sign bit.
#[inline(always)]
pub fn neg(a: u32) -> u32 {
    a ^ SIGN
}

/// If the word is a denormal, returns a zero with the same sign. Otherwise returns the word unchanged.
#[inline(always)]
pub fn flush(a: u32) -> u32 {
    if a & 0x7f80_0000 == 0 { a & SIGN } else { a }
}

/// Multiplies `a`, which is already rounded, by `factor` and flushes the product. OMOD has the factors 2, 4 and 0.5.
/// The variants _M2, _M4 and _D2 of MULADD have the same factors.
#[inline(always)]
pub fn scale(a: u32, factor: f32) -> u32 {
    let product = flush((number(a) * factor).to_bits());
    if is_nan(a) { quiet(a) } else { product }
}

/// CLAMP: clamps to [0, 1]. If `dx10_clamp` (SQ_PGM_RESOURCES bit 21) is set, a NaN becomes 0. Otherwise a NaN is
/// returned unchanged.
///
/// Source: with `dx10_clamp`, an RV770 returns 0 for a NaN. piglit's isinf-and-isnan passes on an RV770. Mesa compiles
/// the `clamp(nan, 0.0, 1.0)` of this test to a MOV with CLAMP (Mesa 22.3.6,
/// `src/gallium/drivers/r600/ci/r600-rv770-fails.txt`). No source states the result without `dx10_clamp`.
#[inline(always)]
pub fn clamp(a: u32, dx10_clamp: bool) -> u32 {
    let x = f32::from_bits(a);
    if is_nan(a) {
        if dx10_clamp { 0 } else { a }
    } else if x <= 0.0 {
        0
    } else if x >= 1.0 {
        ONE
    } else {
        a
    }
}

// Helper functions for the functions below.

/// Returns the operand as a number. A denormal is returned as a zero.
#[inline(always)]
pub(crate) fn number(a: u32) -> f32 {
    f32::from_bits(flush(a))
}

#[inline(always)]
pub(crate) fn is_nan(a: u32) -> bool {
    a & !SIGN > 0x7f80_0000
}

#[inline(always)]
pub(crate) fn quiet(a: u32) -> u32 {
    a | 0x0040_0000
}

/// Converts the result of an operation on one operand to a word. Applies the NaN rule, and then flushes the result.
#[inline(always)]
fn result1(value: f32, a: u32) -> u32 {
    let made = if value.is_nan() { NAN } else { flush(value.to_bits()) };
    if is_nan(a) { quiet(a) } else { made }
}

/// Converts the result of an operation on two operands to a word. Applies the NaN rule, and then flushes the result.
#[inline(always)]
fn result2(value: f32, a: u32, b: u32) -> u32 {
    let made = result1(value, b);
    if is_nan(a) { quiet(a) } else { made }
}

#[inline(always)]
fn float_flag(condition: bool) -> u32 {
    if condition { ONE } else { 0 }
}

/// Defines one lane function per row: operands, result and description. If the result is `W`, the function computes any
/// [`Word`]: the word of one lane, and the words that compiled code computes for all lanes.
macro_rules! functions {
    () => {};
    ($name:ident($($operand:ident),*) -> W = $value:expr, $doc:literal; $($rest:tt)*) => {
        #[doc = $doc]
        #[inline(always)]
        pub fn $name<W: Word>($($operand: W),*) -> W {
            $value
        }
        functions! { $($rest)* }
    };
    ($name:ident($($operand:ident),*) -> $Result:ty = $value:expr, $doc:literal; $($rest:tt)*) => {
        #[doc = $doc]
        #[inline(always)]
        pub fn $name($($operand: u32),*) -> $Result {
            $value
        }
        functions! { $($rest)* }
    };
}

functions! {
    // Float arithmetic.
    add(a, b) -> u32 = result2(number(a) + number(b), a, b), "a + b.";
    mul_ieee(a, b) -> u32 = result2(number(a) * number(b), a, b), "a * b.";
    muladd(a, b, c) -> u32 = add(mul(a, b), c), "The legacy product plus c. Both product and sum are rounded.";
    muladd_ieee(a, b, c) -> u32 = add(mul_ieee(a, b), c), "The product plus c. Both product and sum are rounded.";
    max(a, b) -> W = a.float_at_least(b).choose(a, b), "a >= b ? a : b.";
    min(a, b) -> W = b.float_greater(a).choose(a, b), "a < b ? a : b.";
    max_dx10(a, b) -> W = (b.is_nan() | a.float_at_least(b)).choose(a, b),
        "The larger operand. If one operand is a NaN, the other operand. ([`Rule::MAX_DX10_GIVES_THE_NUMBER`])";
    min_dx10(a, b) -> W = (b.is_nan() | b.float_greater(a)).choose(a, b),
        "The smaller operand. If one operand is a NaN, the other operand. ([`Rule::MAX_DX10_GIVES_THE_NUMBER`])";
    trunc(a) -> u32 = result1(number(a).trunc(), a), "a rounded toward zero, as a float.";
    ceil(a) -> u32 = result1(number(a).ceil(), a), "a rounded toward plus infinity, as a float.";
    rndne(a) -> u32 = result1(number(a).round_ties_even(), a),
        "a rounded to the nearest integer, ties to even, as a float.";
    floor(a) -> u32 = result1(number(a).floor(), a), "a rounded toward minus infinity, as a float.";
    mov(a) -> u32 = a, "a, all bits.";

    // Float comparisons.
    equal(a, b) -> bool = a.float_equal(b) != 0, "a == b.";
    greater(a, b) -> bool = a.float_greater(b) != 0, "a > b.";
    greater_equal(a, b) -> bool = a.float_at_least(b) != 0, "a >= b.";
    not_equal(a, b) -> bool = a.float_equal(b) == 0, "a != b. True if an operand is a NaN.";
    sete(a, b) -> W = a.float_equal(b) & a.same(ONE), "1.0 if a == b, otherwise 0.0.";
    setgt(a, b) -> W = a.float_greater(b) & a.same(ONE), "1.0 if a > b, otherwise 0.0.";
    setge(a, b) -> W = a.float_at_least(b) & a.same(ONE), "1.0 if a >= b, otherwise 0.0.";
    setne(a, b) -> W = !a.float_equal(b) & a.same(ONE), "1.0 if a != b, otherwise 0.0.";
    sete_dx10(a, b) -> W = a.float_equal(b), "All bits set if a == b (floats), otherwise 0.";
    setgt_dx10(a, b) -> W = a.float_greater(b), "All bits set if a > b (floats), otherwise 0.";
    setge_dx10(a, b) -> W = a.float_at_least(b), "All bits set if a >= b (floats), otherwise 0.";
    setne_dx10(a, b) -> W = !a.float_equal(b), "All bits set if a != b (floats), otherwise 0.";
    sete_int(a, b) -> W = a.equal(b), "All bits set if a == b, otherwise 0.";
    setgt_int(a, b) -> W = a.greater(b), "All bits set if a > b (signed), otherwise 0.";
    setge_int(a, b) -> W = a.at_least(b), "All bits set if a >= b (signed), otherwise 0.";
    setne_int(a, b) -> W = !a.equal(b), "All bits set if a != b, otherwise 0.";
    setgt_uint(a, b) -> W = a.greater_unsigned(b), "All bits set if a > b (unsigned), otherwise 0.";
    setge_uint(a, b) -> W = a.at_least_unsigned(b), "All bits set if a >= b (unsigned), otherwise 0.";

    // Selections of an operand.
    cnde(a, b, c) -> W = a.float_equal(a.same(0)).choose(b, c), "a == 0.0 ? b : c.";
    cndgt(a, b, c) -> W = a.float_greater(a.same(0)).choose(b, c), "a > 0.0 ? b : c.";
    cndge(a, b, c) -> W = a.float_at_least(a.same(0)).choose(b, c), "a >= 0.0 ? b : c.";
    cnde_int(a, b, c) -> W = a.equal(a.same(0)).choose(b, c), "a == 0 ? b : c.";
    cndgt_int(a, b, c) -> W = a.greater(a.same(0)).choose(b, c), "a > 0 (signed) ? b : c.";
    cndge_int(a, b, c) -> W = a.at_least(a.same(0)).choose(b, c), "a >= 0 (signed) ? b : c.";

    // Integer operations.
    and_int(a, b) -> W = a & b, "a and b, bit by bit.";
    or_int(a, b) -> W = a | b, "a or b, bit by bit.";
    xor_int(a, b) -> W = a ^ b, "a exclusive-or b, bit by bit.";
    add_int(a, b) -> W = a.plus(b), "a + b, modulo 2^32.";
    sub_int(a, b) -> W = a.minus(b), "a - b, modulo 2^32.";
    max_int(a, b) -> W = a.max_signed(b), "The larger signed integer.";
    min_int(a, b) -> W = a.min_signed(b), "The smaller signed integer.";
    max_uint(a, b) -> W = a.max_unsigned(b), "The larger unsigned integer.";
    min_uint(a, b) -> W = a.min_unsigned(b), "The smaller unsigned integer.";
    ashr_int(a, b) -> W = a.right_signed(b & a.same(31)),
        "a shifted right by the low five bits of b, copying the sign bit. ([`Rule::SHIFTS_USE_FIVE_BITS`])";
    lshr_int(a, b) -> W = a.right(b & a.same(31)),
        "a shifted right by the low five bits of b, inserting zeros. ([`Rule::SHIFTS_USE_FIVE_BITS`])";
    lshl_int(a, b) -> W = a.left(b & a.same(31)),
        "a shifted left by the low five bits of b. ([`Rule::SHIFTS_USE_FIVE_BITS`])";
    mullo_int(a, b) -> W = a.times(b), "The low half of the signed product.";
    mulhi_int(a, b) -> u32 = ((i64::from(a as i32) * i64::from(b as i32)) >> 32) as u32,
        "The high half of the signed product.";
    mullo_uint(a, b) -> W = a.times(b), "The low half of the unsigned product.";
    mulhi_uint(a, b) -> u32 = ((u64::from(a) * u64::from(b)) >> 32) as u32, "The high half of the unsigned product.";
    not_int(a) -> W = !a, "Every bit inverted.";
    recip_uint(a) -> u32 = u32::MAX.checked_div(a).unwrap_or(u32::MAX),
        "floor((2^32 - 1) / a), or all bits set if a is 0. Compilers refine the result, so an error of 1 is harmless.";

    // Conversions between floats and integers.
    flt_to_int(a) -> u32 = number(a) as i32 as u32,
        "a rounded toward zero and saturated, or 0 for a NaN. ([`Rule::FLT_TO_INT_SATURATES`])";
    flt_to_uint(a) -> u32 = number(a) as u32,
        "a rounded toward zero and saturated, or 0 for a NaN. ([`Rule::FLT_TO_INT_SATURATES`])";
    int_to_flt(a) -> W = a.to_float(), "The signed integer as a float, rounded to nearest even.";
    uint_to_flt(a) -> u32 = (a as f32).to_bits(), "The unsigned integer as a float, rounded to nearest even.";

    // Transcendental functions. RECIP and RECIPSQRT have three variants each. The variants differ only if the result is
    // infinite.
    recip_ieee(a) -> u32 = result1(1.0 / number(a), a), "1 / a.";
    recip_clamped(a) -> u32 = clamped(recip_ieee(a)), "[`recip_ieee`] with ±infinity replaced by ±FLT_MAX.";
    recip_ff(a) -> u32 = finite(recip_ieee(a)), "[`recip_ieee`] with ±infinity replaced by ±0.";
    recipsqrt_clamped(a) -> u32 = clamped(recipsqrt_ieee(a)), "[`recipsqrt_ieee`] with ±infinity replaced by ±FLT_MAX.";
    recipsqrt_ff(a) -> u32 = finite(recipsqrt_ieee(a)), "[`recipsqrt_ieee`] with ±infinity replaced by ±0.";
    sqrt_ieee(a) -> u32 = result1(number(a).sqrt(), a),
        "sqrt(a). The result is -0 for -0, and a NaN for numbers below 0.";

    // Conversions for the address registers.
    mova(a) -> i32 = (number(a).round_ties_even() as i32).clamp(-256, 255),
        "MOVA: a rounded to nearest even and clamped to -256 to 255, or 0 for a NaN.";
    mova_floor(a) -> i32 = (number(a).floor() as i32).clamp(-256, 255),
        "MOVA_FLOOR: floor(a) clamped to -256 to 255, or 0 for a NaN.";
    mova_int(a) -> i32 = (a as i32).clamp(-256, 255), "MOVA_INT: the signed integer a clamped to -256 to 255.";
}

// Float arithmetic.

/// Returns a * b. If at least one factor is zero, the product is +0.
#[inline(always)]
pub fn mul(a: u32, b: u32) -> u32 {
    let product = mul_ieee(a, b);
    if number(a) == 0.0 || number(b) == 0.0 { 0 } else { product }
}

/// Returns -FLT_MAX if src1 is -FLT_MAX, -infinity or a NaN, or if src2 is not above 0. Otherwise returns the legacy
/// product of src0 and src1. ([`Rule::MUL_LIT_TESTS_SRC1`])
#[inline(always)]
pub fn mul_lit(a: u32, b: u32, c: u32) -> u32 {
    let product = mul(a, b);
    let lowest = f32::from_bits(neg(FLT_MAX));
    let ordinary = number(b) > lowest && number(c) > 0.0;
    if ordinary { product } else { neg(FLT_MAX) }
}

/// Returns a - floor(a).
#[inline(always)]
pub fn fract(a: u32) -> u32 {
    let x = number(a);
    result1(x - x.floor(), a)
}

// Integer operations.

/// Returns [`recip_uint`] of the magnitude of `a`, with the sign of `a`.
#[inline(always)]
pub fn recip_int(a: u32) -> u32 {
    let magnitude = recip_uint((a as i32).unsigned_abs());
    if (a as i32) < 0 { magnitude.wrapping_neg() } else { magnitude }
}

// Transcendental functions. RECIP and RECIPSQRT have three variants each. The variants differ only if the result is
// infinite.

#[inline(always)]
fn rounded(value: f64, a: u32) -> u32 {
    result1(value as f32, a)
}

/// Replaces ±infinity by ±FLT_MAX.
#[inline(always)]
fn clamped(a: u32) -> u32 {
    if a & !SIGN == 0x7f80_0000 { a & SIGN | FLT_MAX } else { a }
}

/// Replaces ±infinity by ±0.
#[inline(always)]
fn finite(a: u32) -> u32 {
    if a & !SIGN == 0x7f80_0000 { a & SIGN } else { a }
}

/// Returns 2^a.
pub fn exp_ieee(a: u32) -> u32 {
    rounded(libm::exp2(f64::from(number(a))), a)
}

/// Returns log2(a). The result is -infinity for ±0, and a NaN for numbers below 0.
pub fn log_ieee(a: u32) -> u32 {
    let x = number(a);
    // The platform-independent log2 receives only positive numbers. For all other operands, the function computes the
    // result without this log2.
    let value = if x == 0.0 {
        f64::NEG_INFINITY
    } else if x < 0.0 {
        f64::NAN
    } else {
        libm::log2(f64::from(x))
    };
    rounded(value, a)
}

/// Returns [`log_ieee`] with -infinity replaced by -FLT_MAX.
pub fn log_clamped(a: u32) -> u32 {
    lowest(log_ieee(a))
}

/// Replaces -infinity by -FLT_MAX.
#[inline(always)]
pub(crate) fn lowest(value: u32) -> u32 {
    if value == 0xff80_0000 { neg(FLT_MAX) } else { value }
}

/// Returns 1 / sqrt(a). The result is ±infinity for ±0, and a NaN for numbers below 0.
#[inline(always)]
pub fn recipsqrt_ieee(a: u32) -> u32 {
    let x = number(a);
    let value = if x == 0.0 { f64::INFINITY.copysign(f64::from(x)) } else { 1.0 / f64::from(x).sqrt() };
    rounded(value, a)
}

/// Returns an angle from -1/4 to 1/4 revolutions. The sine of this angle is the sine of `turns` revolutions. The
/// function first reduces `turns` exactly to [-1/2, 1/2]. The function then mirrors the reduced angle into the range in
/// which sin(x) is well conditioned.
#[inline(always)]
fn folded(turns: f64) -> f64 {
    let nearest = turns - turns.round_ties_even();
    if nearest > 0.25 {
        0.5 - nearest
    } else if nearest < -0.25 {
        -0.5 - nearest
    } else {
        nearest
    }
}

/// Returns the sine of `turns` revolutions. The result is exact for multiples of a quarter of a revolution.
fn sin_turns(turns: f64) -> f64 {
    let folded = folded(turns);
    if folded.abs() == 0.25 { 1f64.copysign(folded) } else { libm::sin(std::f64::consts::TAU * folded) }
}

/// Returns sin(2 pi a). On R700, an angle is a number of revolutions.
pub fn sin(a: u32) -> u32 {
    rounded(sin_turns(f64::from(number(a))), a)
}

/// Returns an angle whose sine is the cosine of `turns`. This angle is the magnitude of `turns`, plus a quarter of a
/// revolution. The function first subtracts whole revolutions, because adding a quarter to a large angle would have no
/// effect after rounding.
#[inline(always)]
fn quarter_on(turns: f64) -> f64 {
    let turns = turns.abs();
    (turns - turns.round_ties_even()) + 0.25
}

/// Returns cos(2 pi a). On R700, an angle is a number of revolutions.
pub fn cos(a: u32) -> u32 {
    rounded(sin_turns(quarter_on(f64::from(number(a)))), a)
}

/// Returns sin(a) with `a` in radians, as on R600. ([`Rule::R600_SIN_TAKES_RADIANS`])
pub fn sin_radians(a: u32) -> u32 {
    rounded(libm::sin(f64::from(number(a))), a)
}

/// Returns cos(a) with `a` in radians, as on R600. ([`Rule::R600_SIN_TAKES_RADIANS`])
pub fn cos_radians(a: u32) -> u32 {
    rounded(libm::cos(f64::from(number(a))), a)
}

// Predicates. A PRED_SET* decides whether the lane executes, and writes a word to the destination register
// ([`Rule::PRED_SET_WRITES_ZERO_FOR_TRUE`]).

/// Result of a PRED_SET* for a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Predicate {
    /// Whether the lane executes after the instruction.
    pub execute: bool,
    /// The word that the destination register receives.
    pub value: u32,
}

/// PRED_SETE to PRED_SETNE and their variants _INT and _UINT. `execute` is the result of the comparison.
#[inline(always)]
pub fn pred_set(execute: bool) -> Predicate {
    Predicate { execute, value: float_flag(!execute) }
}

/// PRED_SET*_PUSH. `a` is the lane's counter of nested skips. The counter is 0.0 while the lane executes. `condition`
/// is the result of comparing src1 with zero.
#[inline(always)]
pub fn pred_set_push(a: u32, condition: bool) -> Predicate {
    let execute = number(a) == 0.0 && condition;
    Predicate { execute, value: if execute { 0 } else { add(a, ONE) } }
}

/// PRED_SET_INV. A counter of 1.0 becomes 0.0, and the lane executes. A counter of 0.0 becomes 1.0. A counter with any
/// other value does not change.
#[inline(always)]
pub fn pred_set_inv(a: u32) -> Predicate {
    let execute = number(a) == 1.0;
    let other = if number(a) == 0.0 { ONE } else { a };
    Predicate { execute, value: if execute { 0 } else { other } }
}

/// PRED_SET_POP: subtracts b from the counter a. If the difference is 0.0 or less, the lane executes.
#[inline(always)]
pub fn pred_set_pop(a: u32, b: u32) -> Predicate {
    let execute = number(a) <= number(b);
    Predicate { execute, value: if execute { 0 } else { add(a, neg(b)) } }
}

/// PRED_SET_CLR: the counter becomes FLT_MAX, and the lane does not execute.
#[inline(always)]
pub fn pred_set_clr() -> Predicate {
    Predicate { execute: false, value: FLT_MAX }
}

/// PRED_SET_RESTORE: the lane executes if the counter a is 0.0.
#[inline(always)]
pub fn pred_set_restore(a: u32) -> Predicate {
    let execute = number(a) == 0.0;
    Predicate { execute, value: if execute { 0 } else { a } }
}

// Operations on the operands of the four vector slots. Index 0 of each array is slot x.

/// DOT4: returns the sum of legacy products, ((x + y) + z) + w. ([`Rule::SUMS_GO_LEFT_TO_RIGHT`])
#[inline(always)]
pub fn dot4(a: [u32; 4], b: [u32; 4]) -> u32 {
    add(add(add(mul(a[0], b[0]), mul(a[1], b[1])), mul(a[2], b[2])), mul(a[3], b[3]))
}

/// DOT4_IEEE: returns the sum of IEEE products, ((x + y) + z) + w. ([`Rule::SUMS_GO_LEFT_TO_RIGHT`])
#[inline(always)]
pub fn dot4_ieee(a: [u32; 4], b: [u32; 4]) -> u32 {
    let product = |slot: usize| mul_ieee(a[slot], b[slot]);
    add(add(add(product(0), product(1)), product(2)), product(3))
}

/// MAX4: returns the largest src0 of the four slots. [`max`] defines the comparison.
#[inline(always)]
pub fn max4(a: [u32; 4]) -> u32 {
    max(max(max(a[0], a[1]), a[2]), a[3])
}

/// CUBE: selects the cube face to which the direction (X, Y, Z) points. In slots x to w, src0 is Z, Z, X, Y and src1 is
/// Y, X, Z, Z.
///
/// Returns four values for the slots x to w: tc, sc, twice the major axis, and the number of the face as a float.
/// ([`Rule::CUBE_SC_SIGN`])
#[inline(always)]
pub fn cube(a: [u32; 4], _b: [u32; 4]) -> [u32; 4] {
    let (x, y, z) = (a[2], a[3], a[0]);
    let magnitude = |v: u32| f32::from_bits(abs(flush(v)));
    let negative = |v: u32| number(v) < 0.0;
    let flip = |v: u32, flip: bool| if flip { neg(v) } else { v };
    let (major, face, sc, tc) = if magnitude(z) >= magnitude(x) && magnitude(z) >= magnitude(y) {
        (z, if negative(z) { 5.0 } else { 4.0 }, flip(x, negative(z)), neg(y))
    } else if magnitude(y) >= magnitude(x) {
        (y, if negative(y) { 3.0 } else { 2.0 }, x, flip(z, negative(y)))
    } else {
        (x, if negative(x) { 1.0f32 } else { 0.0 }, flip(z, !negative(x)), neg(y))
    };
    [flush(tc), flush(sc), scale(flush(major), 2.0), face.to_bits()]
}
