//! Kernels: arithmetic on a chunk of lanes.
//!
//! [`mod@crate::lane`] defines the results. Tests compare each kernel bit for bit with the function of that module.
//! Multiply-adds round once. If the host has a fused multiply-add instruction, kernels use that instruction. On other
//! hosts, a kernel computes the sum in double precision and rounds the double to odd. The kernel then rounds the double
//! to a single. The fast path of a kernel detects the few lanes with possibly wrong results. [`crate::lane`] recomputes
//! the lanes with possibly wrong results.

use std::marker::PhantomData;

use reconverge_simt::float::two_sum;
use reconverge_simt::wide::{Eight, Sum, Wide, multiply_add};
use reconverge_simt::word::Word;

use super::lanes::{Body, CHUNK, Channel, Lanes, Operation, Words};
use super::operands::Place;
use crate::lane::{self, NAN, Term};
use crate::words::{AlphaOp, Omod};

const SIGN: u32 = 0x8000_0000;
const EXPONENT: u32 = 0x7f80_0000;

/// The bits of the smallest number that is not a denormal.
const NORMAL: u32 = 0x0080_0000;

/// The computation of one channel of an operation.
pub(super) trait Kernel {
    /// Number of sources that the kernel reads.
    const SOURCES: usize;

    /// Whether the signs of the sources are flipped before the kernel receives the sources.
    const FLIPPED: bool = true;

    /// Returns a chunk of results, before the clamp.
    fn chunk<W: Wide>(wide: W, operation: &Operation, channel: &Channel, src: [Words; 3]) -> Words;
}

/// Applies a kernel to the first `N` channels of an operation. Reads all channels before the first write. `CLAMP`
/// clamps the results. `BLEND` writes only the lanes of the operation's set.
pub(super) struct Channels<K, const N: usize, const CLAMP: bool, const BLEND: bool>(PhantomData<K>);

impl<K: Kernel, const N: usize, const CLAMP: bool, const BLEND: bool> Body for Channels<K, N, CLAMP, BLEND> {
    #[inline(always)]
    fn run<W: Wide>(wide: W, lanes: &mut Lanes<'_>, operation: &Operation) {
        for chunk in lanes.chunks() {
            let mut results = [[0; CHUNK]; N];
            for (channel, result) in operation.channels.iter().zip(&mut results) {
                *result = K::chunk(wide, operation, channel, sources::<K>(lanes, channel, chunk));
                if CLAMP {
                    clamp(result);
                }
            }
            for (channel, result) in operation.channels.iter().zip(results) {
                if BLEND {
                    lanes.blend(wide, channel.dst, chunk, operation.set, result);
                } else {
                    lanes.write(channel.dst, chunk, result);
                }
            }
        }
    }
}

/// Returns the sources of a kernel. If [`Kernel::FLIPPED`] is set, applies the channel's sign flips to the sources.
#[inline(always)]
pub(super) fn sources<K: Kernel>(lanes: &Lanes<'_>, channel: &Channel, chunk: usize) -> [Words; 3] {
    let mut src = [[0; CHUNK]; 3];
    for number in 0..K::SOURCES {
        src[number] = lanes.read(channel.src[number], chunk);
        if K::FLIPPED {
            for lane in 0..CHUNK {
                src[number][lane] ^= channel.flip[number];
            }
        }
    }
    src
}

/// [`reconverge_simt::float::flush`]
#[inline(always)]
pub(super) fn flushed(x: u32) -> u32 {
    if x & EXPONENT == 0 { x & SIGN } else { x }
}

/// Converts a result of arithmetic to canonical form. A denormal becomes zero, and a NaN becomes the machine's NaN.
#[inline(always)]
fn normalised(x: f32) -> u32 {
    // Because of the integer instructions, the compiler can turn loops over lanes into vector code. A DP3 of 64 lanes
    // then takes 171 ns instead of 247 ns.
    let bits = x.to_bits();
    if (bits & !SIGN) as i32 > EXPONENT as i32 { NAN.to_bits() } else { flushed(bits) }
}

/// Computes [`lane::scaled`]. `scale` is OMOD as a factor. The compiler moves the test of `omod` out of loops over
/// lanes.
#[inline(always)]
fn scaled(x: u32, omod: Omod, scale: f32) -> u32 {
    if omod == Omod::DISABLED { x } else { normalised(f32::from_bits(flushed(x)) * scale) }
}

/// Applies [`scaled`] to each lane of a chunk.
#[inline(always)]
pub(super) fn scale(words: &mut Words, omod: Omod, factor: f32) {
    if omod == Omod::DISABLED {
        return;
    }
    for lane in 0..CHUNK {
        words[lane] = scaled(words[lane], omod, factor);
    }
}

/// [`lane::clamp`]
#[inline(always)]
fn clamped(x: u32) -> u32 {
    let x = f32::from_bits(x);
    let above = if x > 0.0 { x } else { 0.0 };
    (if above < 1.0 { above } else { 1.0 }).to_bits()
}

#[inline(always)]
pub(super) fn clamp(words: &mut Words) {
    for lane in 0..CHUNK {
        words[lane] = clamped(words[lane]);
    }
}

/// Returns a source as a number. `FLUSH` turns denormals into zeros.
#[inline(always)]
fn number<const FLUSH: bool>(x: u32) -> f32 {
    f32::from_bits(if FLUSH { flushed(x) } else { x })
}

/// Returns the factors of a product. If `ZERO_WINS` is set and one factor is zero, changes the factors so that the
/// product is zero. The second factor may be an infinity or a NaN.
#[inline(always)]
fn factors<const ZERO_WINS: bool, const FLUSH: bool>(a: u32, b: u32) -> (f32, f32) {
    let (a, b) = (number::<FLUSH>(a), number::<FLUSH>(b));
    if ZERO_WINS {
        let other = |x: f32, y: f32| if y == 0.0 { f32::from_bits(x.to_bits() & SIGN) } else { x };
        (other(a, b), other(b, a))
    } else {
        (a, b)
    }
}

/// Rounds a sum to odd. `error` is the rounding error of the sum. Rounding the returned double to a single gives the
/// exact sum rounded once. (simt::float::sum_rounded)
#[inline(always)]
fn to_odd(sum: f64, error: f64) -> f64 {
    let bits = sum.to_bits();
    let inexact = (error > 0.0) | (error < 0.0);
    let step = if (error > 0.0) == (sum > 0.0) { 1 } else { u64::MAX };
    let away = if inexact & (bits & 1 == 0) { step } else { 0 };
    f64::from_bits(bits.wrapping_add(away))
}

/// Computes A * B + C. `SCALED`: the OMOD of at least one channel is not ×1. `FLUSH`: a source may be a denormal.
/// `FLIP`: the sign of the product or of the addend is flipped.
pub(super) struct Mad<const ZERO_WINS: bool, const SCALED: bool, const FLUSH: bool, const FLIP: bool>;

/// The most general variant of [`Mad`]. The sources may be denormals. The operation may flip the signs of the sources.
pub(super) type AnyMad<const ZERO_WINS: bool, const SCALED: bool> = Mad<ZERO_WINS, SCALED, true, true>;

impl<const ZERO_WINS: bool, const SCALED: bool, const FLUSH: bool, const FLIP: bool> Kernel
    for Mad<ZERO_WINS, SCALED, FLUSH, FLIP>
{
    const SOURCES: usize = 3;
    const FLIPPED: bool = false;

    #[inline(always)]
    fn chunk<W: Wide>(_: W, _: &Operation, channel: &Channel, src: [Words; 3]) -> Words {
        let [product, _, addend] = channel.flip;
        if W::FUSED {
            // `multiply_add` first scales one factor and the addend. The scaling is exact if the exponents of the
            // scaled values stay in range.
            let sum = Sum {
                flip: FLIP.then_some([product, addend]),
                flush: FLUSH,
                zero_wins: ZERO_WINS,
                scale: SCALED.then_some((channel.scale, channel.beyond)),
                nan: NAN.to_bits(),
            };
            let (result, exception) = multiply_add(&src, sum);
            if SCALED && exception {
                // This slow path copies the sources, because only the slow path needs sources in memory. Without the
                // copy, the fast path would also store the sources in memory.
                let copy = [src[0], src[1], src[2]];
                let exact = mad_exactly::<ZERO_WINS>(&copy, channel.flip, channel.omod);
                return *std::hint::black_box(&exact);
            }
            return result;
        }
        let [a, b, c] = src;
        let mut result = [0; CHUNK];
        for lane in 0..CHUNK {
            let (x, y) = factors::<ZERO_WINS, FLUSH>(a[lane] ^ product, b[lane]);
            let z = number::<FLUSH>(c[lane] ^ addend);
            let (sum, error) = two_sum(f64::from(x) * f64::from(y), f64::from(z));
            result[lane] = normalised((to_odd(sum, error) * f64::from(channel.scale)) as f32);
        }
        result
    }
}

/// Computes A * 1 + 0. Programs use this computation to move values, because R520 does not have a move instruction. A
/// zero becomes +0.
pub(super) struct Move;

impl Kernel for Move {
    const SOURCES: usize = 1;

    #[inline(always)]
    fn chunk<W: Wide>(wide: W, _: &Operation, _: &Channel, src: [Words; 3]) -> Words {
        // A plain loop over lanes would take three times as long for an operation with several channels.
        let eight = wide.eight();
        let mut result = [0; CHUNK];
        let (words, results) = (src[0].as_chunks().0, result.as_chunks_mut().0);
        for (words, result) in words.iter().zip(results) {
            let word = eight.load(words);
            let exponent = eight.ints(EXPONENT as i32);
            let nan = eight.greater_ints(eight.and(word, eight.ints(!SIGN as i32)), exponent);
            let zero = eight.equal_ints(eight.and(word, exponent), eight.ints(0));
            let number = eight.choose(zero, eight.ints(0), word);
            *result = eight.store(eight.choose(nan, eight.ints(NAN.to_bits() as i32), number));
        }
        result
    }
}

#[cold]
#[inline(never)]
fn mad_exactly<const ZERO_WINS: bool>(src: &[Words; 3], flip: [u32; 3], omod: Omod) -> Words {
    let mut result = [0; CHUNK];
    let [a, b, c] = [0, 1, 2].map(|number: usize| src[number].map(|x| f32::from_bits(x ^ flip[number])));
    for lane in 0..CHUNK {
        let terms = [Term::product(a[lane], b[lane], ZERO_WINS), Term::value(c[lane])];
        result[lane] = lane::sum(&terms, omod).to_bits();
    }
    result
}

const fn upward(powers: u32) -> [u32; 2] {
    let low = (255 - powers) << 23;
    [low, SIGN - low]
}

/// Returns the exponents that the scaling in [`Mad`] would move out of range. The first element is the lowest of these
/// exponents. The second element is the number of these exponents. Both elements are shifted to the position of the
/// exponent field in a float.
pub(super) const fn beyond(omod: Omod) -> [u32; 2] {
    match omod {
        Omod::MUL_1 | Omod::DISABLED => [0, 0],
        Omod::MUL_2 => upward(1),
        Omod::MUL_4 => upward(2),
        Omod::MUL_8 => upward(3),
        Omod::DIV_2 => [NORMAL, 1 << 23],
        Omod::DIV_4 => [NORMAL, 2 << 23],
        Omod::DIV_8 => [NORMAL, 3 << 23],
    }
}

/// Returns OMOD as a factor.
pub(super) const fn factor(omod: Omod) -> f32 {
    [1.0, 2.0, 4.0, 8.0, 0.5, 0.25, 0.125, 1.0][omod as usize]
}

macro_rules! lanewise {
    ($(#[$doc:meta])* $Kernel:ident($sources:literal), |$operation:ident, $src:ident| $result:expr) => {
        $(#[$doc])*
        pub(super) struct $Kernel;

        impl Kernel for $Kernel {
            const SOURCES: usize = $sources;

            #[inline(always)]
            fn chunk<W: Wide>(_: W, $operation: &Operation, _: &Channel, src: [Words; 3]) -> Words {
                let mut result = [0; CHUNK];
                for lane in 0..CHUNK {
                    let $src = [src[0][lane], src[1][lane], src[2][lane]];
                    result[lane] = $result;
                }
                result
            }
        }
    };
}

/// Returns all ones in the lanes in which MIN, MAX, CND or CMP returns its first source, and 0 in the lanes in which it
/// returns the second. Returns `None` for other operations. ([`lane::min`], [`lane::max`], [`lane::cnd`], [`lane::cmp`])
#[inline(always)]
pub(super) fn takes_first<W: Word>(op: AlphaOp, [a, b, c]: [W; 3]) -> Option<W> {
    Some(match op {
        AlphaOp::MIN => b.float_greater(a),
        // If the sources are equal, the sources are the same word, or zeros. MAX of two zeros returns the second source.
        AlphaOp::MAX => a.float_greater(b),
        AlphaOp::CND => c.float_greater(c.same(0.5f32.to_bits())),
        AlphaOp::CMP => c.float_at_least(c.same(0)),
        _ => return None,
    })
}

/// Returns the source that an operation chooses, with OMOD.
#[inline(always)]
fn choice(op: AlphaOp, src: [u32; 3], operation: &Operation) -> u32 {
    let first = takes_first(op, src).unwrap_or(0);
    scaled(src[0] & first | src[1] & !first, operation.omod, operation.scale)
}

lanewise! {
    /// MIN.
    Min(2), |operation, src| choice(AlphaOp::MIN, src, operation)
}

lanewise! {
    /// MAX.
    Max(2), |operation, src| choice(AlphaOp::MAX, src, operation)
}

lanewise! {
    /// CND.
    Cnd(3), |operation, src| choice(AlphaOp::CND, src, operation)
}

lanewise! {
    /// CMP.
    Cmp(3), |operation, src| choice(AlphaOp::CMP, src, operation)
}

lanewise! {
    /// [`lane::frc`]. The difference A - floor(A) is either exact, or rounded to a number between 0.5 and 1. Scaling
    /// such a number is exact. So the result is rounded only once.
    Frc(1), |operation, src| {
        let a = f32::from_bits(flushed(src[0]));
        let fraction = normalised((a - a.floor()) * operation.scale);
        if a.is_finite() { fraction } else { NAN.to_bits() }
    }
}

lanewise! {
    /// Returns the source, scaled by OMOD.
    Pass(1), |operation, src| scaled(src[0], operation.omod, operation.scale)
}

lanewise! {
    /// Clears the sign bit of the source. Does not change the lower 31 bits.
    Magnitude(1), |_operation, src| src[0] & !SIGN
}

lanewise! {
    /// [`lane::rcp`], with OMOD.
    Rcp(1), |operation, src| {
        let value = 1.0 / f64::from(f32::from_bits(flushed(src[0])));
        scaled(normalised(value as f32), operation.omod, operation.scale)
    }
}

/// [`lane::rsq`], with OMOD.
pub(super) struct Rsq;

impl Kernel for Rsq {
    const SOURCES: usize = 1;

    #[inline(always)]
    fn chunk<W: Wide>(wide: W, operation: &Operation, _: &Channel, src: [Words; 3]) -> Words {
        if W::FUSED
            && let Some(roots) = near_roots(wide, &src[0], operation.scale)
        {
            return roots;
        }
        roots(&src[0], operation.omod, operation.scale)
    }
}

/// Computes results of [`Rsq`] in singles, and returns the scaled results. Returns `None` if one of the results may be
/// wrong.
///
/// The first step from an approximation leaves a relative error below 2^-21. The second step adds a correction. The
/// error of the correction is below 2^-43 of the result. The function checks an interval around the result. The
/// distance from the result to each end is 2^-41 of the result, which is four times the bound of the error. If both
/// ends round to one single, that single is right.
#[inline(always)]
fn near_roots<W: Wide>(wide: W, numbers: &Words, scale: f32) -> Option<Words> {
    const SLACK: f32 = 1.0 / (1u64 << 41) as f32;
    /// Bounds of the numbers for which a single can represent each rounding error.
    const LEAST: f32 = 1.0 / (1u128 << 80) as f32;
    const MOST: f32 = (1u128 << 80) as f32;
    let eight = wide.eight();
    let mut result = [0; CHUNK];
    let mut good = 0xff;
    let (half, one) = (eight.floats(0.5), eight.floats(1.0));
    for (words, result) in numbers.as_chunks().0.iter().zip(result.as_chunks_mut().0) {
        let x = eight.of_bits(eight.load(words));
        let minus_x = eight.of_bits(eight.xor(eight.bits(x), eight.ints(SIGN as i32)));
        let near = eight.near_rsqrt(x);
        let rest = eight.mul_add(eight.mul(minus_x, near), near, one);
        let near = eight.mul_add(eight.mul(near, half), rest, near);
        let square = eight.mul(near, near);
        let minus_square = eight.of_bits(eight.xor(eight.bits(square), eight.ints(SIGN as i32)));
        let lost = eight.mul_add(near, near, minus_square);
        let rest = eight.mul_add(minus_x, lost, eight.mul_add(minus_x, square, one));
        let factor = eight.mul(rest, eight.mul_add(rest, eight.floats(0.375), half));
        let (correction, slack) = (eight.mul(near, factor), eight.mul(near, eight.floats(SLACK)));
        let low = eight.add(near, eight.sub(correction, slack));
        let high = eight.add(near, eight.add(correction, slack));
        let inside = eight.and(eight.less(eight.floats(LEAST), x), eight.less(x, eight.floats(MOST)));
        good &= eight.lanes(eight.and(eight.equal(low, high), inside));
        *result = eight.store(eight.bits(eight.mul(low, eight.floats(scale))));
    }
    (good == 0xff).then_some(result)
}

/// Returns results of [`Rsq`]. Every processor rounds square roots correctly.
#[inline(always)]
fn roots(numbers: &Words, omod: Omod, scale: f32) -> Words {
    let mut result = [0; CHUNK];
    for lane in 0..CHUNK {
        let a = flushed(numbers[lane]);
        let value = normalised((1.0 / f64::from(f32::from_bits(a)).sqrt()) as f32);
        let value = if a & !SIGN == 0 { a | f32::INFINITY.to_bits() } else { value };
        result[lane] = scaled(value, omod, scale);
    }
    result
}

/// A term of a dot product. A term is the product of a channel's first two sources, or the third source of a channel.
#[derive(Clone, Copy)]
enum Kind {
    Product,
    Addend,
}

/// Computes a dot product for all lanes and writes the result to the destination of the first channel. D2A adds two
/// products and the third source of the third channel. DP3 adds three products, and DP4 adds four products. `TERMS` is
/// 3 or 4.
pub(super) struct Dot<const TERMS: usize, const ADDEND: bool, const ZERO_WINS: bool>;

/// [`Dot`] for three products, the third of which is zero. `FLUSH`: a source may be a denormal.
pub(super) struct DotOfTwo<const ZERO_WINS: bool, const FLUSH: bool>;

impl<const TERMS: usize, const ADDEND: bool, const ZERO_WINS: bool> Body for Dot<TERMS, ADDEND, ZERO_WINS> {
    #[inline(always)]
    fn run<W: Wide>(wide: W, lanes: &mut Lanes<'_>, operation: &Operation) {
        let scale = f64::from(operation.scale);
        // Both cases call `dot` separately. The compiler would not always compile a common closure for the vector
        // level.
        if W::FUSED {
            dot::<TERMS, TERMS, ADDEND, ZERO_WINS>(lanes, operation, |lanes, chunk| {
                sums_of_singles::<W, TERMS, ADDEND>(wide, lanes, operation, chunk)
            });
        } else {
            dot::<TERMS, TERMS, ADDEND, ZERO_WINS>(lanes, operation, |lanes, chunk| {
                let src = factors_of::<TERMS, TERMS, ADDEND>(lanes, operation, chunk);
                plain_sums::<TERMS, ADDEND, ZERO_WINS>(&src, scale)
            });
        }
    }
}

impl<const ZERO_WINS: bool, const FLUSH: bool> Body for DotOfTwo<ZERO_WINS, FLUSH> {
    #[inline(always)]
    fn run<W: Wide>(_: W, lanes: &mut Lanes<'_>, operation: &Operation) {
        let scale = f64::from(operation.scale);
        dot::<3, 2, false, ZERO_WINS>(lanes, operation, |lanes, chunk| {
            let src = factors_of::<3, 2, false>(lanes, operation, chunk);
            sums_of_two::<ZERO_WINS, FLUSH>(&src, scale)
        });
    }
}

/// Computes a dot product that reads `READ` terms. All terms after these are zero. `sums` returns the sums of a chunk,
/// and whether one of the sums may be wrong.
#[inline(always)]
fn dot<const TERMS: usize, const READ: usize, const ADDEND: bool, const ZERO_WINS: bool>(
    lanes: &mut Lanes<'_>,
    operation: &Operation,
    sums: impl Fn(&Lanes<'_>, usize) -> (Words, bool),
) {
    for chunk in lanes.chunks() {
        let (mut result, refused) = sums(lanes, chunk);
        if refused {
            let (src, scale) =
                (factors_of::<TERMS, READ, ADDEND>(lanes, operation, chunk), f64::from(operation.scale));
            let exceptions = careful_sums::<TERMS, ADDEND, ZERO_WINS>(&src, scale, &mut result);
            if exceptions != 0 {
                dot_exactly::<TERMS, ADDEND, ZERO_WINS>(&src, operation.omod, exceptions, &mut result);
            }
        }
        if operation.clamp {
            clamp(&mut result);
        }
        lanes.write(operation.channels[0].dst, chunk, result);
    }
}

/// Returns the row and the sign bit to flip for each factor of a term. If the term is an addend, both elements are for
/// the addend.
#[inline(always)]
fn rows_of<const ADDEND: bool>(operation: &Operation, term: usize) -> [(Place, u32); 2] {
    let Channel { src, flip, .. } = &operation.channels[term & 3];
    match kind::<ADDEND>(term) {
        Kind::Product => [(src[0], flip[0]), (src[1], flip[1])],
        Kind::Addend => [(src[2], flip[2]); 2],
    }
}

/// Returns a chunk of the sources of a dot product, after the operation's sign flips.
#[inline(always)]
fn factors_of<const TERMS: usize, const READ: usize, const ADDEND: bool>(
    lanes: &Lanes<'_>,
    operation: &Operation,
    chunk: usize,
) -> [[Words; 2]; TERMS] {
    let mut src = [[[0; CHUNK]; 2]; TERMS];
    for (term, src) in src[..READ].iter_mut().enumerate() {
        for (words, (place, flip)) in src.iter_mut().zip(rows_of::<ADDEND>(operation, term)) {
            *words = lanes.read(place, chunk);
            for lane in 0..CHUNK {
                words[lane] ^= flip;
            }
        }
    }
    src
}

#[inline(always)]
const fn kind<const ADDEND: bool>(term: usize) -> Kind {
    if ADDEND && term == 2 { Kind::Addend } else { Kind::Product }
}

/// Returns the terms of a lane.
#[inline(always)]
fn terms<const TERMS: usize, const ADDEND: bool, const ZERO_WINS: bool>(
    src: &[[Words; 2]; TERMS],
    lane: usize,
) -> [f64; TERMS] {
    let mut terms = [0.0; TERMS];
    for term in 0..TERMS {
        let [a, b] = [src[term][0][lane], src[term][1][lane]];
        terms[term] = match kind::<ADDEND>(term) {
            Kind::Product => {
                let (x, y) = factors::<ZERO_WINS, true>(a, b);
                f64::from(x) * f64::from(y)
            }
            Kind::Addend => f64::from(f32::from_bits(flushed(a))),
        };
    }
    terms
}

/// Returns sums in double precision. Also returns whether one of the sums may be wrong.
///
/// The error of a sum in double precision is below 2^-50 of the total magnitude of the terms. If both ends of this
/// error interval round to one single, the sum is right. The documents describe a deviation of dot products from the
/// exact sum. The deviation can occur only if the sum is at most 2^-24 of the total magnitude.
#[inline(always)]
fn plain_sums<const TERMS: usize, const ADDEND: bool, const ZERO_WINS: bool>(
    src: &[[Words; 2]; TERMS],
    scale: f64,
) -> (Words, bool) {
    let mut result = [0; CHUNK];
    let (mut unlike, mut cancelled) = (0, 0);
    for lane in 0..CHUNK {
        let terms = terms::<TERMS, ADDEND, ZERO_WINS>(src, lane);
        let (mut sum, mut size) = (terms[0], terms[0].abs());
        for term in &terms[1..] {
            sum += term;
            size += term.abs();
        }
        let slack = size * (1.0 / (1u64 << 50) as f64);
        let (low, high) = (((sum - slack) * scale) as f32, ((sum + slack) * scale) as f32);
        // A NaN is not equal to any number or NaN. So the expression is also true if a bound is a NaN.
        unlike |= u32::from(!(low == high));
        cancelled |= u64::from((sum.abs() <= size * (1.0 / (1u64 << 24) as f64)) & (size != 0.0));
        result[lane] = flushed(((sum * scale) as f32).to_bits());
    }
    (result, (unlike != 0) | (cancelled != 0))
}

/// Computes sums in singles, together with the rounding errors of the sums. Returns the sums, and whether any of the
/// sums may be wrong. For a DP3 of 64 lanes, singles take 88 ns, and doubles take 171 ns.
///
/// The rounding errors of products and sums of singles are singles, unless an exponent leaves the range. The function
/// adds the sum of the rounding errors to the result. The sum of the rounding errors is less than 2^-21 of the total
/// magnitude of the terms. The error of this sum is less than 2^-43 of the total magnitude. The function checks an
/// interval around the result. The distance from the result to each end is 2^-42 of the total magnitude, which is twice
/// the bound of the error. If both ends round to one single, that single is right. For the product of a zero and an
/// infinity or a NaN, this function computes a NaN even in programs that require zero.
#[inline(always)]
fn sums_of_singles<W: Wide, const TERMS: usize, const ADDEND: bool>(
    wide: W,
    lanes: &Lanes<'_>,
    operation: &Operation,
    chunk: usize,
) -> (Words, bool) {
    const SLACK: f32 = 1.0 / (1u64 << 42) as f32;
    const CANCELLED: f32 = 1.0 / (1u64 << 20) as f32;
    /// Bounds of the total magnitudes for which singles can represent all rounding errors and the scaled result.
    const LEAST: f32 = 1.0 / (1u128 << 60) as f32;
    const MOST: f32 = (1u128 << 100) as f32;
    let eight = wide.eight();
    let mut result = [0; CHUNK];
    let mut doubtful = 0;
    let (sign, zero) = (eight.ints(SIGN as i32), eight.floats(0.0));
    let magnitude = |value| eight.of_bits(eight.and_not(eight.bits(value), sign));
    for (half, result) in result.as_chunks_mut().0.iter_mut().enumerate() {
        let (mut sum, mut size, mut error) = (zero, zero, zero);
        // The largest of the smaller factors of all products. If it is zero, each product has a factor that is zero.
        let mut smallest = zero;
        for term in 0..TERMS {
            let mut factors = [zero; 2];
            for (factor, (place, flip)) in factors.iter_mut().zip(rows_of::<ADDEND>(operation, term)) {
                let words = &lanes.row(place).as_chunks::<CHUNK>().0[chunk & 3].as_chunks().0[half];
                let words = eight.xor(eight.load(words), eight.ints(flip as i32));
                let tiny = eight.equal_ints(eight.and(words, eight.ints(EXPONENT as i32)), eight.ints(0));
                *factor = eight.of_bits(eight.and_not(words, eight.and(tiny, eight.ints(!SIGN as i32))));
            }
            let [a, b] = factors;
            let value = match kind::<ADDEND>(term) {
                Kind::Product => {
                    let product = eight.mul(a, b);
                    let negative = eight.of_bits(eight.xor(eight.bits(product), sign));
                    error = eight.add(error, eight.mul_add(a, b, negative));
                    let smaller = eight.min(magnitude(a), magnitude(b));
                    smallest = eight.max(smallest, smaller);
                    product
                }
                Kind::Addend => a,
            };
            if term == 0 {
                (sum, size) = (value, magnitude(value));
                continue;
            }
            let next = eight.add(sum, value);
            let part = eight.sub(next, sum);
            let lost = eight.add(eight.sub(sum, eight.sub(next, part)), eight.sub(value, part));
            error = eight.add(error, lost);
            (sum, size) = (next, eight.add(size, magnitude(value)));
        }
        let slack = eight.mul(size, eight.floats(SLACK));
        let low = eight.add(sum, eight.sub(error, slack));
        let high = eight.add(sum, eight.add(error, slack));
        let cancelled = eight.less_equal(magnitude(sum), eight.mul(size, eight.floats(CANCELLED)));
        // If all terms are zeros, the sum has the right sign. The rounding error may have the opposite sign. So the
        // code does not add the rounding error in this case. A product that is too small for a single is not a zero.
        let none = eight.and(eight.equal(size, zero), eight.equal(smallest, zero));
        let inside = eight.and(eight.less(eight.floats(LEAST), size), eight.less(size, eight.floats(MOST)));
        let good = eight.and(eight.equal(low, high), eight.and_not(inside, cancelled));
        doubtful |= !eight.lanes(eight.or(good, none)) & 0xff;
        let value = eight.choose(none, eight.bits(sum), eight.bits(low));
        *result = eight.store(eight.bits(eight.mul(eight.of_bits(value), eight.floats(operation.scale))));
    }
    (result, doubtful != 0)
}

/// Returns sums of two products and a zero, and whether any of the sums may be wrong.
///
/// The products are exact in double precision. So the double sum is rounded once. A second rounding, to a single, gives
/// the right result except in two cases. In the first case, the double is halfway between two singles. In the second
/// case, the result is a denormal.
#[inline(always)]
fn sums_of_two<const ZERO_WINS: bool, const FLUSH: bool>(src: &[[Words; 2]; 3], scale: f64) -> (Words, bool) {
    const LOST: u64 = (1 << 29) - 1;
    const LEAST: f64 = 2.0 * f32::MIN_POSITIVE as f64;
    let mut result = [0; CHUNK];
    let mut doubtful = 0;
    for lane in 0..CHUNK {
        let product = |[a, b]: &[Words; 2]| {
            let (x, y) = factors::<ZERO_WINS, FLUSH>(a[lane], b[lane]);
            f64::from(x) * f64::from(y)
        };
        let sum = (product(&src[0]) + product(&src[1]) + 0.0) * scale;
        let middle = sum.to_bits() & LOST == 1 << 28;
        let small = (sum.abs() < LEAST) & (sum != 0.0);
        doubtful |= u64::from(middle | small | sum.is_nan());
        result[lane] = (sum as f32).to_bits();
    }
    (result, doubtful != 0)
}

/// Computes the sums with more precision than a double. Returns the lanes whose sum may still be wrong.
#[cold]
#[inline(never)]
fn careful_sums<const TERMS: usize, const ADDEND: bool, const ZERO_WINS: bool>(
    src: &[[Words; 2]; TERMS],
    scale: f64,
    result: &mut Words,
) -> u32 {
    let mut exceptions = 0;
    for lane in 0..CHUNK {
        let (value, exception) = sum(&terms::<TERMS, ADDEND, ZERO_WINS>(src, lane));
        result[lane] = normalised((value * scale) as f32);
        exceptions |= u32::from(exception) << lane;
    }
    exceptions
}

/// Returns the sum rounded to odd, and whether the result may be wrong. The result may be wrong if the sum of the
/// rounding errors is not exact. The result may also be wrong if two terms cancel, because the documented deviation of
/// dot products may apply.
#[inline(always)]
fn sum<const TERMS: usize>(terms: &[f64; TERMS]) -> (f64, bool) {
    let mut exception = false;
    for first in 0..TERMS {
        for second in 0..first {
            exception |= (terms[first] == -terms[second]) & (terms[first] != 0.0);
        }
    }
    let (mut total, mut error) = (terms[0], 0.0);
    for term in &terms[1..] {
        let (next, lost) = two_sum(total, *term);
        let (errors, lost_again) = two_sum(error, lost);
        exception |= (lost_again > 0.0) | (lost_again < 0.0);
        (total, error) = (next, errors);
    }
    let inexact = (error > 0.0) | (error < 0.0);
    let (head, tail) = two_sum(total, error);
    // If the rounding error is zero, the total is the exact sum and is returned unchanged. The total may be a zero of
    // either sign, an infinity or a NaN.
    (if inexact { to_odd(head, tail) } else { total }, exception)
}

#[cold]
#[inline(never)]
fn dot_exactly<const TERMS: usize, const ADDEND: bool, const ZERO_WINS: bool>(
    src: &[[Words; 2]; TERMS],
    omod: Omod,
    exceptions: u32,
    result: &mut Words,
) {
    for lane in (0..CHUNK).filter(|lane| exceptions >> lane & 1 != 0) {
        let mut terms = [Term::value(0.0); TERMS];
        for (term, [a, b]) in src.iter().enumerate() {
            let (a, b) = (f32::from_bits(a[lane]), f32::from_bits(b[lane]));
            terms[term] = match kind::<ADDEND>(term) {
                Kind::Product => Term::product(a, b, ZERO_WINS),
                Kind::Addend => Term::value(a),
            };
        }
        result[lane] = lane::dot(&terms, omod).to_bits();
    }
}
