//! The computations of one lane: pure functions on 32-bit registers, one function per meaning. They have no branches,
//! so that a loop over lanes can be vectorised.
//!
//! The float profile is the same for every function here (MAN chapter 4; comments state the points that the manual
//! leaves open):
//!
//! * binary32, round to nearest even; operations are not fused;
//! * a denormal operand counts as zero of its sign, and a denormal result becomes zero of its sign ([`flush`]);
//! * functions that only select an operand (MAX, MIN, CND*) return its bits unchanged;
//! * a NaN that an operation creates is [`NAN`]; a NaN operand is returned quieted, the first one if there are several
//!   (no source);
//! * `MUL`, `MULADD`, `DOT4`, `MUL_LIT` are *legacy*: zero times anything is +0;
//! * in comparisons -0 equals +0, and with a NaN only "not equal" holds.
//!
//! Transcendental functions are computed in double precision and rounded once
//! ([`Rule::TRANSCENDENTALS_ARE_ROUNDED_ONCE`]). The hardware's tables are not published, so results may differ by two
//! units in the last place.
//!
//! Functions have the names of the manual's opcodes in lower case. Arguments `a`, `b`, `c` are src0, src1, src2 after
//! the input modifiers [`abs`] and [`neg`].

#[cfg(doc)]
use crate::rules::Rule;

/// The NaN that an operation on numbers creates.
pub const NAN: u32 = 0x7fc0_0000;

/// 1.0, the result of float comparisons for true.
pub const ONE: u32 = 0x3f80_0000;

/// All bits set, the integer result of comparisons for true.
pub const TRUE: u32 = u32::MAX;

/// The largest finite number.
pub const FLT_MAX: u32 = 0x7f7f_ffff;

const SIGN: u32 = 0x8000_0000;

// Modifiers.

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

/// Returns zero of the same sign for a denormal, and any other word unchanged.
#[inline(always)]
pub fn flush(a: u32) -> u32 {
    if a & 0x7f80_0000 == 0 { a & SIGN } else { a }
}

/// OMOD with the factor 2, 4 or 0.5, or MULADD's _M2, _M4, _D2: multiplies the rounded `a` by `factor` and flushes the
/// result.
#[inline(always)]
pub fn scale(a: u32, factor: f32) -> u32 {
    let product = flush((number(a) * factor).to_bits());
    if is_nan(a) { quiet(a) } else { product }
}

/// CLAMP: clamps to [0, 1]. With `dx10_clamp` (SQ_PGM_RESOURCES bit 21), a NaN becomes 0; otherwise it passes
/// unchanged.
///
/// With the bit, an RV770 returns 0. piglit's isinf-and-isnan, whose `clamp(nan, 0.0, 1.0)` Mesa compiles to a MOV with
/// CLAMP, passes there (Mesa 22.3.6, `src/gallium/drivers/r600/ci/r600-rv770-fails.txt`). Without the bit: inferred.
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

// Private helpers.

/// Returns the operand as a number; denormals count as zero.
#[inline(always)]
pub(crate) fn number(a: u32) -> f32 {
    f32::from_bits(flush(a))
}

#[inline(always)]
pub(crate) fn is_nan(a: u32) -> bool {
    a & !SIGN > 0x7f80_0000
}

#[inline(always)]
fn quiet(a: u32) -> u32 {
    a | 0x0040_0000
}

/// Returns the result of an operation on one operand: applies the NaN rule, then flushes.
#[inline(always)]
fn result1(value: f32, a: u32) -> u32 {
    let made = if value.is_nan() { NAN } else { flush(value.to_bits()) };
    if is_nan(a) { quiet(a) } else { made }
}

/// Returns the result of an operation on two operands: applies the NaN rule, then flushes.
#[inline(always)]
fn result2(value: f32, a: u32, b: u32) -> u32 {
    let made = result1(value, b);
    if is_nan(a) { quiet(a) } else { made }
}

#[inline(always)]
fn float_flag(condition: bool) -> u32 {
    if condition { ONE } else { 0 }
}

#[inline(always)]
fn int_flag(condition: bool) -> u32 {
    if condition { TRUE } else { 0 }
}

/// Defines one lane function per row: operands, result and description.
macro_rules! functions {
    ($( $name:ident($($operand:ident),*) -> $Result:ty = $value:expr, $doc:literal; )*) => { $(
        #[doc = $doc]
        #[inline(always)]
        pub fn $name($($operand: u32),*) -> $Result {
            $value
        }
    )* };
}

functions! {
    // Float arithmetic.
    add(a, b) -> u32 = result2(number(a) + number(b), a, b), "a + b.";
    mul_ieee(a, b) -> u32 = result2(number(a) * number(b), a, b), "a * b.";
    muladd(a, b, c) -> u32 = add(mul(a, b), c), "The legacy product plus c. Both product and sum are rounded.";
    muladd_ieee(a, b, c) -> u32 = add(mul_ieee(a, b), c), "The product plus c. Both product and sum are rounded.";
    max(a, b) -> u32 = if number(a) >= number(b) { a } else { b }, "a >= b ? a : b.";
    min(a, b) -> u32 = if number(a) < number(b) { a } else { b }, "a < b ? a : b.";
    max_dx10(a, b) -> u32 = if is_nan(b) || number(a) >= number(b) { a } else { b },
        "The larger operand. If one operand is a NaN, the other operand. ([`Rule::MAX_DX10_GIVES_THE_NUMBER`])";
    min_dx10(a, b) -> u32 = if is_nan(b) || number(a) < number(b) { a } else { b },
        "The smaller operand. If one operand is a NaN, the other operand. ([`Rule::MAX_DX10_GIVES_THE_NUMBER`])";
    trunc(a) -> u32 = result1(number(a).trunc(), a), "a rounded toward zero, as a float.";
    ceil(a) -> u32 = result1(number(a).ceil(), a), "a rounded toward plus infinity, as a float.";
    rndne(a) -> u32 = result1(number(a).round_ties_even(), a),
        "a rounded to the nearest integer, ties to even, as a float.";
    floor(a) -> u32 = result1(number(a).floor(), a), "a rounded toward minus infinity, as a float.";
    mov(a) -> u32 = a, "a, all bits.";

    // Float comparisons.
    equal(a, b) -> bool = number(a) == number(b), "a == b.";
    greater(a, b) -> bool = number(a) > number(b), "a > b.";
    greater_equal(a, b) -> bool = number(a) >= number(b), "a >= b.";
    not_equal(a, b) -> bool = number(a) != number(b), "a != b. True if an operand is a NaN.";
    sete(a, b) -> u32 = float_flag(equal(a, b)), "1.0 if a == b, otherwise 0.0.";
    setgt(a, b) -> u32 = float_flag(greater(a, b)), "1.0 if a > b, otherwise 0.0.";
    setge(a, b) -> u32 = float_flag(greater_equal(a, b)), "1.0 if a >= b, otherwise 0.0.";
    setne(a, b) -> u32 = float_flag(not_equal(a, b)), "1.0 if a != b, otherwise 0.0.";
    sete_dx10(a, b) -> u32 = int_flag(equal(a, b)), "All bits set if a == b (floats), otherwise 0.";
    setgt_dx10(a, b) -> u32 = int_flag(greater(a, b)), "All bits set if a > b (floats), otherwise 0.";
    setge_dx10(a, b) -> u32 = int_flag(greater_equal(a, b)), "All bits set if a >= b (floats), otherwise 0.";
    setne_dx10(a, b) -> u32 = int_flag(not_equal(a, b)), "All bits set if a != b (floats), otherwise 0.";
    sete_int(a, b) -> u32 = int_flag(a == b), "All bits set if a == b, otherwise 0.";
    setgt_int(a, b) -> u32 = int_flag(a as i32 > b as i32), "All bits set if a > b (signed), otherwise 0.";
    setge_int(a, b) -> u32 = int_flag(a as i32 >= b as i32), "All bits set if a >= b (signed), otherwise 0.";
    setne_int(a, b) -> u32 = int_flag(a != b), "All bits set if a != b, otherwise 0.";
    setgt_uint(a, b) -> u32 = int_flag(a > b), "All bits set if a > b (unsigned), otherwise 0.";
    setge_uint(a, b) -> u32 = int_flag(a >= b), "All bits set if a >= b (unsigned), otherwise 0.";

    // Choices.
    cnde(a, b, c) -> u32 = if number(a) == 0.0 { b } else { c }, "a == 0.0 ? b : c.";
    cndgt(a, b, c) -> u32 = if number(a) > 0.0 { b } else { c }, "a > 0.0 ? b : c.";
    cndge(a, b, c) -> u32 = if number(a) >= 0.0 { b } else { c }, "a >= 0.0 ? b : c.";
    cnde_int(a, b, c) -> u32 = if a == 0 { b } else { c }, "a == 0 ? b : c.";
    cndgt_int(a, b, c) -> u32 = if a as i32 > 0 { b } else { c }, "a > 0 (signed) ? b : c.";
    cndge_int(a, b, c) -> u32 = if a as i32 >= 0 { b } else { c }, "a >= 0 (signed) ? b : c.";

    // Integers.
    and_int(a, b) -> u32 = a & b, "a and b, bit by bit.";
    or_int(a, b) -> u32 = a | b, "a or b, bit by bit.";
    xor_int(a, b) -> u32 = a ^ b, "a exclusive-or b, bit by bit.";
    add_int(a, b) -> u32 = a.wrapping_add(b), "a + b, modulo 2^32.";
    sub_int(a, b) -> u32 = a.wrapping_sub(b), "a - b, modulo 2^32.";
    max_int(a, b) -> u32 = (a as i32).max(b as i32) as u32, "The larger signed integer.";
    min_int(a, b) -> u32 = (a as i32).min(b as i32) as u32, "The smaller signed integer.";
    max_uint(a, b) -> u32 = a.max(b), "The larger unsigned integer.";
    min_uint(a, b) -> u32 = a.min(b), "The smaller unsigned integer.";
    ashr_int(a, b) -> u32 = ((a as i32) >> (b & 31)) as u32,
        "a shifted right by the low five bits of b, copying the sign bit. ([`Rule::SHIFTS_USE_FIVE_BITS`])";
    lshr_int(a, b) -> u32 = a >> (b & 31),
        "a shifted right by the low five bits of b, inserting zeros. ([`Rule::SHIFTS_USE_FIVE_BITS`])";
    lshl_int(a, b) -> u32 = a << (b & 31), "a shifted left by the low five bits of b. ([`Rule::SHIFTS_USE_FIVE_BITS`])";
    mullo_int(a, b) -> u32 = a.wrapping_mul(b), "The low half of the signed product.";
    mulhi_int(a, b) -> u32 = ((i64::from(a as i32) * i64::from(b as i32)) >> 32) as u32,
        "The high half of the signed product.";
    mullo_uint(a, b) -> u32 = a.wrapping_mul(b), "The low half of the unsigned product.";
    mulhi_uint(a, b) -> u32 = ((u64::from(a) * u64::from(b)) >> 32) as u32, "The high half of the unsigned product.";
    not_int(a) -> u32 = !a, "Every bit inverted.";
    recip_uint(a) -> u32 = u32::MAX.checked_div(a).unwrap_or(u32::MAX),
        "About 2^32 / a: floor((2^32 - 1) / a), or all bits set for 0. Compilers refine it; an error of one is harmless.";

    // Conversions.
    flt_to_int(a) -> u32 = number(a) as i32 as u32,
        "a rounded toward zero and saturated, or 0 for a NaN. ([`Rule::FLT_TO_INT_SATURATES`])";
    flt_to_uint(a) -> u32 = number(a) as u32,
        "a rounded toward zero and saturated, or 0 for a NaN. ([`Rule::FLT_TO_INT_SATURATES`])";
    int_to_flt(a) -> u32 = (a as i32 as f32).to_bits(), "The signed integer as a float, rounded to nearest even.";
    uint_to_flt(a) -> u32 = (a as f32).to_bits(), "The unsigned integer as a float, rounded to nearest even.";

    // Transcendental functions. RECIP and its variants have three rules for an infinite result.
    recip_ieee(a) -> u32 = result1(1.0 / number(a), a), "1 / a.";
    recip_clamped(a) -> u32 = clamped(recip_ieee(a)), "[`recip_ieee`] with ±infinity replaced by ±FLT_MAX.";
    recip_ff(a) -> u32 = finite(recip_ieee(a)), "[`recip_ieee`] with ±infinity replaced by ±0.";
    recipsqrt_clamped(a) -> u32 = clamped(recipsqrt_ieee(a)), "[`recipsqrt_ieee`] with ±infinity replaced by ±FLT_MAX.";
    recipsqrt_ff(a) -> u32 = finite(recipsqrt_ieee(a)), "[`recipsqrt_ieee`] with ±infinity replaced by ±0.";
    sqrt_ieee(a) -> u32 = result1(number(a).sqrt(), a),
        "sqrt(a). The result is -0 for -0, and a NaN for numbers below 0.";

    // Address registers.
    mova(a) -> i32 = (number(a).round_ties_even() as i32).clamp(-256, 255),
        "MOVA: a rounded to nearest even and clamped to -256 to 255, or 0 for a NaN.";
    mova_floor(a) -> i32 = (number(a).floor() as i32).clamp(-256, 255),
        "MOVA_FLOOR: floor(a) clamped to -256 to 255, or 0 for a NaN.";
    mova_int(a) -> i32 = (a as i32).clamp(-256, 255), "MOVA_INT: the signed integer a clamped to -256 to 255.";
}

// Float arithmetic.

/// Returns a * b; a zero factor makes the product +0, whatever the other factor.
#[inline(always)]
pub fn mul(a: u32, b: u32) -> u32 {
    let product = mul_ieee(a, b);
    if number(a) == 0.0 || number(b) == 0.0 { 0 } else { product }
}

/// Returns -FLT_MAX if src1 is -FLT_MAX, -infinity or NaN, or if src2 is not above 0; otherwise the legacy product of
/// src0 and src1. ([`Rule::MUL_LIT_TESTS_SRC1`])
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

// Integers.

/// Returns [`recip_uint`] of the magnitude, with a's sign.
#[inline(always)]
pub fn recip_int(a: u32) -> u32 {
    let magnitude = recip_uint((a as i32).unsigned_abs());
    if (a as i32) < 0 { magnitude.wrapping_neg() } else { magnitude }
}

// Transcendental functions. RECIP and its variants have three rules for an infinite result.

#[inline(always)]
pub(crate) fn rounded(value: f64, a: u32) -> u32 {
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

/// Returns log2(a): -infinity for ±0, NaN below 0.
pub fn log_ieee(a: u32) -> u32 {
    let x = number(a);
    // The platform-independent log2 receives only positive numbers; special results are computed here.
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

/// Returns 1 / sqrt(a): ±infinity for ±0, NaN below 0.
#[inline(always)]
pub fn recipsqrt_ieee(a: u32) -> u32 {
    let x = number(a);
    let value = if x == 0.0 { f64::INFINITY.copysign(f64::from(x)) } else { 1.0 / f64::from(x).sqrt() };
    rounded(value, a)
}

/// Returns the revolutions from -1/4 to 1/4 with the same sine as `turns`. Reduces exactly to [-1/2, 1/2], then folds
/// to the range in which sin(x) is well conditioned.
#[inline(always)]
pub(crate) fn folded(turns: f64) -> f64 {
    let nearest = turns - turns.round_ties_even();
    if nearest > 0.25 {
        0.5 - nearest
    } else if nearest < -0.25 {
        -0.5 - nearest
    } else {
        nearest
    }
}

/// Returns the sine of `turns` revolutions; exact at the quarters.
fn sin_turns(turns: f64) -> f64 {
    let folded = folded(turns);
    if folded.abs() == 0.25 { 1f64.copysign(folded) } else { libm::sin(std::f64::consts::TAU * folded) }
}

/// Returns sin(2 pi a): R700's unit is a revolution.
pub fn sin(a: u32) -> u32 {
    rounded(sin_turns(f64::from(number(a))), a)
}

/// Adds a quarter of a revolution, for the cosine. The argument is reduced first, because the sum would round the
/// quarter away from a large number.
#[inline(always)]
pub(crate) fn quarter_on(turns: f64) -> f64 {
    let turns = turns.abs();
    (turns - turns.round_ties_even()) + 0.25
}

/// Returns cos(2 pi a): R700's unit is a revolution.
pub fn cos(a: u32) -> u32 {
    rounded(sin_turns(quarter_on(f64::from(number(a)))), a)
}

/// Returns sin(a) with a in radians: R600. ([`Rule::R600_SIN_TAKES_RADIANS`])
pub fn sin_radians(a: u32) -> u32 {
    rounded(libm::sin(f64::from(number(a))), a)
}

/// Returns cos(a) with a in radians: R600. ([`Rule::R600_SIN_TAKES_RADIANS`])
pub fn cos_radians(a: u32) -> u32 {
    rounded(libm::cos(f64::from(number(a))), a)
}

// Predicates: `execute`, and the result for the destination ([`Rule::PRED_SET_WRITES_ZERO_FOR_TRUE`]).

/// Decision of a PRED_SET* for a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Predicate {
    /// Whether the lane executes afterwards.
    pub execute: bool,
    /// The result for the destination.
    pub value: u32,
}

/// PRED_SETE to PRED_SETNE, _INT and _UINT: `execute` is the comparison.
#[inline(always)]
pub fn pred_set(execute: bool) -> Predicate {
    Predicate { execute, value: float_flag(!execute) }
}

/// PRED_SET*_PUSH: a is the lane's counter of nested skips (0.0 while it executes), `condition` is the comparison of b
/// with zero.
#[inline(always)]
pub fn pred_set_push(a: u32, condition: bool) -> Predicate {
    let execute = number(a) == 0.0 && condition;
    Predicate { execute, value: if execute { 0 } else { add(a, ONE) } }
}

/// PRED_SET_INV: a counter of 1.0 becomes 0.0 (execute), 0.0 becomes 1.0, others do not change.
#[inline(always)]
pub fn pred_set_inv(a: u32) -> Predicate {
    let execute = number(a) == 1.0;
    let other = if number(a) == 0.0 { ONE } else { a };
    Predicate { execute, value: if execute { 0 } else { other } }
}

/// PRED_SET_POP: subtracts b from the counter a. The lane executes at 0.0 or below.
#[inline(always)]
pub fn pred_set_pop(a: u32, b: u32) -> Predicate {
    let execute = number(a) <= number(b);
    Predicate { execute, value: if execute { 0 } else { add(a, neg(b)) } }
}

/// PRED_SET_CLR: the lane does not execute; the counter becomes FLT_MAX.
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

// Operations over the four vector slots; index 0 is slot x.

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

/// MAX4: returns the largest of the four src0, by [`max`].
#[inline(always)]
pub fn max4(a: [u32; 4]) -> u32 {
    max(max(max(a[0], a[1]), a[2]), a[3])
}

/// CUBE: selects the face for the direction (X, Y, Z), which is passed as src0 = Z, Z, X, Y and src1 = Y, X, Z, Z.
///
/// Returns tc, sc, 2 * major axis, face number as a float. ([`Rule::CUBE_SC_SIGN`])
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
