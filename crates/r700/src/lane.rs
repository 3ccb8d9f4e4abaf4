//! What one lane computes: pure functions on 32-bit registers, one a meaning, without branches so that a loop over
//! lanes can be vectorised.
//!
//! The float profile, the same for every function here (MAN chapter 4; comments say what the manual leaves open):
//!
//! * binary32, round to nearest even; operations are not fused;
//! * a denormal operand counts as zero of its sign, a denormal result becomes zero of its sign ([`flush`]);
//! * functions that only choose an operand (MAX, MIN, CND*) give its bits unchanged;
//! * a made NaN is [`NAN`]; a NaN operand comes out quieted, the first one first (no source);
//! * `MUL`, `MULADD`, `DOT4`, `MUL_LIT` are *legacy*: zero times anything is +0;
//! * in comparisons -0 equals +0, and with a NaN only "not equal" holds.
//!
//! Transcendental functions are computed in double precision and rounded once
//! ([`Rule::TRANSCENDENTALS_ARE_ROUNDED_ONCE`]); the hardware's tables are not published, and results may differ by
//! two units in the last place.
//!
//! Names are the manual's opcodes in lower case; arguments `a`, `b`, `c` are src0, src1, src2 after the input
//! modifiers [`abs`] and [`neg`].

#[cfg(doc)]
use crate::rules::Rule;

/// The NaN that an operation makes out of numbers.
pub const NAN: u32 = 0x7fc0_0000;

/// 1.0, what float comparisons give for true.
pub const ONE: u32 = 0x3f80_0000;

/// All bits set, what the integer results of comparisons are for true.
pub const TRUE: u32 = u32::MAX;

/// The largest finite number.
pub const FLT_MAX: u32 = 0x7f7f_ffff;

const SIGN: u32 = 0x8000_0000;

// Modifiers.

/// SRC_ABS: the sign bit cleared.
#[inline(always)]
pub fn abs(a: u32) -> u32 {
    a & !SIGN
}

/// SRC_NEG: the sign bit inverted.
#[inline(always)]
pub fn neg(a: u32) -> u32 {
    a ^ SIGN
}

/// Zero of the same sign for a denormal, anything else unchanged.
#[inline(always)]
pub fn flush(a: u32) -> u32 {
    if a & 0x7f80_0000 == 0 { a & SIGN } else { a }
}

/// OMOD, as the factor 2, 4 or 0.5, or MULADD's _M2, _M4, _D2: `a` (rounded already) times `factor`, flushed.
#[inline(always)]
pub fn scale(a: u32, factor: f32) -> u32 {
    let product = flush((number(a) * factor).to_bits());
    if is_nan(a) { quiet(a) } else { product }
}

/// CLAMP: to [0, 1]; `dx10_clamp` (SQ_PGM_RESOURCES bit 21) makes NaN 0, else a NaN passes unchanged.
///
/// With the bit an RV770 gives 0: piglit's isinf-and-isnan, whose `clamp(nan, 0.0, 1.0)` Mesa compiles to a MOV with
/// CLAMP, passes there (Mesa 22.3.6, `src/gallium/drivers/r600/ci/r600-rv770-fails.txt`). Without it: inferred.
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

// Private parts.

/// The operand as a number: denormals count as zero.
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

/// The result of an operation on one operand: NaN rule, then flush.
#[inline(always)]
fn result1(value: f32, a: u32) -> u32 {
    let made = if value.is_nan() { NAN } else { flush(value.to_bits()) };
    if is_nan(a) { quiet(a) } else { made }
}

/// The result of an operation on two operands: NaN rule, then flush.
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

// Float arithmetic.

/// a + b.
#[inline(always)]
pub fn add(a: u32, b: u32) -> u32 {
    result2(number(a) + number(b), a, b)
}

/// a * b with a zero factor giving +0, whatever the other is.
#[inline(always)]
pub fn mul(a: u32, b: u32) -> u32 {
    let product = mul_ieee(a, b);
    if number(a) == 0.0 || number(b) == 0.0 { 0 } else { product }
}

/// a * b.
#[inline(always)]
pub fn mul_ieee(a: u32, b: u32) -> u32 {
    result2(number(a) * number(b), a, b)
}

/// The legacy product, rounded, plus c, rounded.
#[inline(always)]
pub fn muladd(a: u32, b: u32, c: u32) -> u32 {
    add(mul(a, b), c)
}

/// The product, rounded, plus c, rounded.
#[inline(always)]
pub fn muladd_ieee(a: u32, b: u32, c: u32) -> u32 {
    add(mul_ieee(a, b), c)
}

/// -FLT_MAX where src1 is -FLT_MAX, -infinity or NaN, or src2 is not above 0; else the legacy product of src0 and
/// src1. ([`Rule::MUL_LIT_TESTS_SRC1`])
#[inline(always)]
pub fn mul_lit(a: u32, b: u32, c: u32) -> u32 {
    let product = mul(a, b);
    let lowest = f32::from_bits(neg(FLT_MAX));
    let ordinary = number(b) > lowest && number(c) > 0.0;
    if ordinary { product } else { neg(FLT_MAX) }
}

/// a >= b ? a : b.
#[inline(always)]
pub fn max(a: u32, b: u32) -> u32 {
    if number(a) >= number(b) { a } else { b }
}

/// a < b ? a : b.
#[inline(always)]
pub fn min(a: u32, b: u32) -> u32 {
    if number(a) < number(b) { a } else { b }
}

/// The larger; the other one where one is NaN. ([`Rule::MAX_DX10_GIVES_THE_NUMBER`])
#[inline(always)]
pub fn max_dx10(a: u32, b: u32) -> u32 {
    if is_nan(b) || number(a) >= number(b) { a } else { b }
}

/// The smaller; the other one where one is NaN. ([`Rule::MAX_DX10_GIVES_THE_NUMBER`])
#[inline(always)]
pub fn min_dx10(a: u32, b: u32) -> u32 {
    if is_nan(b) || number(a) < number(b) { a } else { b }
}

/// a - floor(a).
#[inline(always)]
pub fn fract(a: u32) -> u32 {
    let x = number(a);
    result1(x - x.floor(), a)
}

/// Toward zero, as a float.
#[inline(always)]
pub fn trunc(a: u32) -> u32 {
    result1(number(a).trunc(), a)
}

/// Toward plus infinity, as a float.
#[inline(always)]
pub fn ceil(a: u32) -> u32 {
    result1(number(a).ceil(), a)
}

/// To the nearest integer, ties to even, as a float.
#[inline(always)]
pub fn rndne(a: u32) -> u32 {
    result1(number(a).round_ties_even(), a)
}

/// Toward minus infinity, as a float.
#[inline(always)]
pub fn floor(a: u32) -> u32 {
    result1(number(a).floor(), a)
}

/// a, all bits.
#[inline(always)]
pub fn mov(a: u32) -> u32 {
    a
}

// Float comparisons.

/// a == b.
#[inline(always)]
pub fn equal(a: u32, b: u32) -> bool {
    number(a) == number(b)
}

/// a > b.
#[inline(always)]
pub fn greater(a: u32, b: u32) -> bool {
    number(a) > number(b)
}

/// a >= b.
#[inline(always)]
pub fn greater_equal(a: u32, b: u32) -> bool {
    number(a) >= number(b)
}

/// a != b, also where one is NaN.
#[inline(always)]
pub fn not_equal(a: u32, b: u32) -> bool {
    number(a) != number(b)
}

macro_rules! comparisons {
    ($( $name:ident, $flag:ident, |$a:ident, $b:ident| $condition:expr, $doc:literal; )*) => { $(
        #[doc = $doc]
        #[inline(always)]
        pub fn $name($a: u32, $b: u32) -> u32 {
            $flag($condition)
        }
    )* };
}

comparisons! {
    sete, float_flag, |a, b| equal(a, b), "1.0 where a == b, else 0.0.";
    setgt, float_flag, |a, b| greater(a, b), "1.0 where a > b, else 0.0.";
    setge, float_flag, |a, b| greater_equal(a, b), "1.0 where a >= b, else 0.0.";
    setne, float_flag, |a, b| not_equal(a, b), "1.0 where a != b, else 0.0.";
    sete_dx10, int_flag, |a, b| equal(a, b), "All bits where a == b (floats), else 0.";
    setgt_dx10, int_flag, |a, b| greater(a, b), "All bits where a > b (floats), else 0.";
    setge_dx10, int_flag, |a, b| greater_equal(a, b), "All bits where a >= b (floats), else 0.";
    setne_dx10, int_flag, |a, b| not_equal(a, b), "All bits where a != b (floats), else 0.";
    sete_int, int_flag, |a, b| a == b, "All bits where a == b, else 0.";
    setgt_int, int_flag, |a, b| a as i32 > b as i32, "All bits where a > b (signed), else 0.";
    setge_int, int_flag, |a, b| a as i32 >= b as i32, "All bits where a >= b (signed), else 0.";
    setne_int, int_flag, |a, b| a != b, "All bits where a != b, else 0.";
    setgt_uint, int_flag, |a, b| a > b, "All bits where a > b (unsigned), else 0.";
    setge_uint, int_flag, |a, b| a >= b, "All bits where a >= b (unsigned), else 0.";
}

// Choices.

/// a == 0.0 ? b : c.
#[inline(always)]
pub fn cnde(a: u32, b: u32, c: u32) -> u32 {
    if number(a) == 0.0 { b } else { c }
}

/// a > 0.0 ? b : c.
#[inline(always)]
pub fn cndgt(a: u32, b: u32, c: u32) -> u32 {
    if number(a) > 0.0 { b } else { c }
}

/// a >= 0.0 ? b : c.
#[inline(always)]
pub fn cndge(a: u32, b: u32, c: u32) -> u32 {
    if number(a) >= 0.0 { b } else { c }
}

/// a == 0 ? b : c.
#[inline(always)]
pub fn cnde_int(a: u32, b: u32, c: u32) -> u32 {
    if a == 0 { b } else { c }
}

/// a > 0 (signed) ? b : c.
#[inline(always)]
pub fn cndgt_int(a: u32, b: u32, c: u32) -> u32 {
    if a as i32 > 0 { b } else { c }
}

/// a >= 0 (signed) ? b : c.
#[inline(always)]
pub fn cndge_int(a: u32, b: u32, c: u32) -> u32 {
    if a as i32 >= 0 { b } else { c }
}

// Integers.

macro_rules! integers {
    ($( $name:ident, |$a:ident, $b:ident| $value:expr, $doc:literal; )*) => { $(
        #[doc = $doc]
        #[inline(always)]
        pub fn $name($a: u32, $b: u32) -> u32 {
            $value
        }
    )* };
}

integers! {
    and_int, |a, b| a & b, "a and b, bit by bit.";
    or_int, |a, b| a | b, "a or b, bit by bit.";
    xor_int, |a, b| a ^ b, "a exclusive-or b, bit by bit.";
    add_int, |a, b| a.wrapping_add(b), "a + b, modulo 2^32.";
    sub_int, |a, b| a.wrapping_sub(b), "a - b, modulo 2^32.";
    max_int, |a, b| (a as i32).max(b as i32) as u32, "The larger, signed.";
    min_int, |a, b| (a as i32).min(b as i32) as u32, "The smaller, signed.";
    max_uint, |a, b| a.max(b), "The larger, unsigned.";
    min_uint, |a, b| a.min(b), "The smaller, unsigned.";
    ashr_int, |a, b| ((a as i32) >> (b & 31)) as u32,
        "a shifted right by the low five bits of b, the sign coming in. ([`Rule::SHIFTS_USE_FIVE_BITS`])";
    lshr_int, |a, b| a >> (b & 31),
        "a shifted right by the low five bits of b, zeros coming in. ([`Rule::SHIFTS_USE_FIVE_BITS`])";
    lshl_int, |a, b| a << (b & 31),
        "a shifted left by the low five bits of b. ([`Rule::SHIFTS_USE_FIVE_BITS`])";
    mullo_int, |a, b| a.wrapping_mul(b), "The low half of the signed product.";
    mulhi_int, |a, b| ((i64::from(a as i32) * i64::from(b as i32)) >> 32) as u32, "The high half of the signed product.";
    mullo_uint, |a, b| a.wrapping_mul(b), "The low half of the unsigned product.";
    mulhi_uint, |a, b| ((u64::from(a) * u64::from(b)) >> 32) as u32, "The high half of the unsigned product.";
}

/// Every bit inverted.
#[inline(always)]
pub fn not_int(a: u32) -> u32 {
    !a
}

/// About 2^32 / a: floor((2^32 - 1) / a), and all bits for 0. Compilers refine it and are content with one more or
/// less.
#[inline(always)]
pub fn recip_uint(a: u32) -> u32 {
    u32::MAX.checked_div(a).unwrap_or(u32::MAX)
}

/// [`recip_uint`] of the magnitude, with a's sign.
#[inline(always)]
pub fn recip_int(a: u32) -> u32 {
    let magnitude = recip_uint((a as i32).unsigned_abs());
    if (a as i32) < 0 { magnitude.wrapping_neg() } else { magnitude }
}

// Conversions.

/// Toward zero; the nearest that fits, 0 for NaN. ([`Rule::FLT_TO_INT_SATURATES`])
#[inline(always)]
pub fn flt_to_int(a: u32) -> u32 {
    number(a) as i32 as u32
}

/// Toward zero; the nearest that fits, 0 for NaN. ([`Rule::FLT_TO_INT_SATURATES`])
#[inline(always)]
pub fn flt_to_uint(a: u32) -> u32 {
    number(a) as u32
}

/// The signed integer as a float, rounded to nearest even.
#[inline(always)]
pub fn int_to_flt(a: u32) -> u32 {
    (a as i32 as f32).to_bits()
}

/// The unsigned integer as a float, rounded to nearest even.
#[inline(always)]
pub fn uint_to_flt(a: u32) -> u32 {
    (a as f32).to_bits()
}

// Transcendental functions. RECIP and its kin come in three rules for an infinite result.

#[inline(always)]
pub(crate) fn rounded(value: f64, a: u32) -> u32 {
    result1(value as f32, a)
}

/// ±infinity replaced by ±FLT_MAX.
#[inline(always)]
fn clamped(a: u32) -> u32 {
    if a & !SIGN == 0x7f80_0000 { a & SIGN | FLT_MAX } else { a }
}

/// ±infinity replaced by ±0.
#[inline(always)]
fn finite(a: u32) -> u32 {
    if a & !SIGN == 0x7f80_0000 { a & SIGN } else { a }
}

/// 2^a.
pub fn exp_ieee(a: u32) -> u32 {
    rounded(libm::exp2(f64::from(number(a))), a)
}

/// log2(a); -infinity for ±0, NaN below.
pub fn log_ieee(a: u32) -> u32 {
    let x = number(a);
    // The platform-independent log2 gets positive numbers only: special results are made here.
    let value = if x == 0.0 {
        f64::NEG_INFINITY
    } else if x < 0.0 {
        f64::NAN
    } else {
        libm::log2(f64::from(x))
    };
    rounded(value, a)
}

/// [`log_ieee`] with -infinity replaced by -FLT_MAX.
pub fn log_clamped(a: u32) -> u32 {
    lowest(log_ieee(a))
}

/// -infinity replaced by -FLT_MAX.
#[inline(always)]
pub(crate) fn lowest(value: u32) -> u32 {
    if value == 0xff80_0000 { neg(FLT_MAX) } else { value }
}

/// 1 / a.
#[inline(always)]
pub fn recip_ieee(a: u32) -> u32 {
    result1(1.0 / number(a), a)
}

/// [`recip_ieee`] with ±infinity replaced by ±FLT_MAX.
#[inline(always)]
pub fn recip_clamped(a: u32) -> u32 {
    clamped(recip_ieee(a))
}

/// [`recip_ieee`] with ±infinity replaced by ±0.
#[inline(always)]
pub fn recip_ff(a: u32) -> u32 {
    finite(recip_ieee(a))
}

/// 1 / sqrt(a); ±infinity for ±0, NaN below.
#[inline(always)]
pub fn recipsqrt_ieee(a: u32) -> u32 {
    let x = number(a);
    let value = if x == 0.0 { f64::INFINITY.copysign(f64::from(x)) } else { 1.0 / f64::from(x).sqrt() };
    rounded(value, a)
}

/// [`recipsqrt_ieee`] with ±infinity replaced by ±FLT_MAX.
#[inline(always)]
pub fn recipsqrt_clamped(a: u32) -> u32 {
    clamped(recipsqrt_ieee(a))
}

/// [`recipsqrt_ieee`] with ±infinity replaced by ±0.
#[inline(always)]
pub fn recipsqrt_ff(a: u32) -> u32 {
    finite(recipsqrt_ieee(a))
}

/// sqrt(a); -0 for -0, NaN below.
#[inline(always)]
pub fn sqrt_ieee(a: u32) -> u32 {
    result1(number(a).sqrt(), a)
}

/// The revolutions from -1/4 to 1/4 with the sine of these: reduced exactly to [-1/2, 1/2], then folded to where sin(x) is
/// well conditioned.
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

/// The sine of `turns` revolutions; exact at the quarters.
fn sin_turns(turns: f64) -> f64 {
    let folded = folded(turns);
    if folded.abs() == 0.25 { 1f64.copysign(folded) } else { libm::sin(std::f64::consts::TAU * folded) }
}

/// sin(2 pi a): R700's unit is a revolution.
pub fn sin(a: u32) -> u32 {
    rounded(sin_turns(f64::from(number(a))), a)
}

/// A quarter of a revolution further, for the cosine: reduced before, since a large number has no room for the quarter.
#[inline(always)]
pub(crate) fn quarter_on(turns: f64) -> f64 {
    let turns = turns.abs();
    (turns - turns.round_ties_even()) + 0.25
}

/// cos(2 pi a): R700's unit is a revolution.
pub fn cos(a: u32) -> u32 {
    rounded(sin_turns(quarter_on(f64::from(number(a)))), a)
}

/// sin(a), a in radians: R600. ([`Rule::R600_SIN_TAKES_RADIANS`])
pub fn sin_radians(a: u32) -> u32 {
    rounded(libm::sin(f64::from(number(a))), a)
}

/// cos(a), a in radians: R600. ([`Rule::R600_SIN_TAKES_RADIANS`])
pub fn cos_radians(a: u32) -> u32 {
    rounded(libm::cos(f64::from(number(a))), a)
}

// Address registers.

/// MOVA: a rounded to nearest even, held in -256 to 255; 0 for NaN.
#[inline(always)]
pub fn mova(a: u32) -> i32 {
    (number(a).round_ties_even() as i32).clamp(-256, 255)
}

/// MOVA_FLOOR: floor(a), held in -256 to 255; 0 for NaN.
#[inline(always)]
pub fn mova_floor(a: u32) -> i32 {
    (number(a).floor() as i32).clamp(-256, 255)
}

/// MOVA_INT: the signed integer a, held in -256 to 255.
#[inline(always)]
pub fn mova_int(a: u32) -> i32 {
    (a as i32).clamp(-256, 255)
}

// Predicates. `execute`, and what goes to the destination ([`Rule::PRED_SET_WRITES_ZERO_FOR_TRUE`]).

/// What a PRED_SET* decides for a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Predicate {
    /// Whether the lane is to execute.
    pub execute: bool,
    /// The result for the destination.
    pub value: u32,
}

/// PRED_SETE to PRED_SETNE, _INT and _UINT: `execute` is the comparison.
#[inline(always)]
pub fn pred_set(execute: bool) -> Predicate {
    Predicate { execute, value: float_flag(!execute) }
}

/// PRED_SET*_PUSH: a is the lane's counter of nested skips (0.0 while it executes), `condition` the comparison of b
/// with zero.
#[inline(always)]
pub fn pred_set_push(a: u32, condition: bool) -> Predicate {
    let execute = number(a) == 0.0 && condition;
    Predicate { execute, value: if execute { 0 } else { add(a, ONE) } }
}

/// PRED_SET_INV: a counter of 1.0 becomes 0.0 (execute), 0.0 becomes 1.0, others stay.
#[inline(always)]
pub fn pred_set_inv(a: u32) -> Predicate {
    let execute = number(a) == 1.0;
    let other = if number(a) == 0.0 { ONE } else { a };
    Predicate { execute, value: if execute { 0 } else { other } }
}

/// PRED_SET_POP: the counter a less b, at 0.0 or below execute.
#[inline(always)]
pub fn pred_set_pop(a: u32, b: u32) -> Predicate {
    let execute = number(a) <= number(b);
    Predicate { execute, value: if execute { 0 } else { add(a, neg(b)) } }
}

/// PRED_SET_CLR: never execute; the counter becomes FLT_MAX.
#[inline(always)]
pub fn pred_set_clr() -> Predicate {
    Predicate { execute: false, value: FLT_MAX }
}

/// PRED_SET_RESTORE: the counter a decides: execute at 0.0.
#[inline(always)]
pub fn pred_set_restore(a: u32) -> Predicate {
    let execute = number(a) == 0.0;
    Predicate { execute, value: if execute { 0 } else { a } }
}

// Operations over the four vector slots; index 0 is slot x.

/// DOT4: the sum of legacy products, ((x + y) + z) + w. ([`Rule::SUMS_GO_LEFT_TO_RIGHT`])
#[inline(always)]
pub fn dot4(a: [u32; 4], b: [u32; 4]) -> u32 {
    add(add(add(mul(a[0], b[0]), mul(a[1], b[1])), mul(a[2], b[2])), mul(a[3], b[3]))
}

/// DOT4_IEEE: the sum of IEEE products, ((x + y) + z) + w. ([`Rule::SUMS_GO_LEFT_TO_RIGHT`])
#[inline(always)]
pub fn dot4_ieee(a: [u32; 4], b: [u32; 4]) -> u32 {
    let product = |slot: usize| mul_ieee(a[slot], b[slot]);
    add(add(add(product(0), product(1)), product(2)), product(3))
}

/// MAX4: the largest of the four src0, by [`max`].
#[inline(always)]
pub fn max4(a: [u32; 4]) -> u32 {
    max(max(max(a[0], a[1]), a[2]), a[3])
}

/// CUBE: face selection for the direction (X, Y, Z), which comes in as src0 = Z, Z, X, Y and src1 = Y, X, Z, Z.
///
/// Gives tc, sc, 2 * major axis, face number as a float. ([`Rule::CUBE_SC_SIGN`])
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
