//! Operations on whole rows: the state they see, their operands, and how one body becomes code for each level.
//!
//! A [`Body`] is written once, as loops without branches over [`CHUNK`] lanes, repeated for as many chunks as the
//! threads of the launch have. A [`handler`] is that body compiled for a [`Level`]. Which rows an operation reads and
//! writes was decided when it was lowered: temporaries and outputs stand first, and behind them the room with lane
//! sets, intermediate results and constants, so that a handler does not ask where an operand comes from.

use reconverge_simt::lanes::Kind;
use reconverge_simt::registers::Row;
use reconverge_simt::{Level, Mask, for_avx512, handlers};

use crate::group::{ROWS, WIDEST, Written};
use crate::words::Omod;

/// Lanes of a body's loops: a thread of R520, and a vector of AVX-512.
pub(super) const CHUNK: usize = 16;

/// A chunk of a row.
pub(super) type Words = [u32; CHUNK];

/// Where a row stands: its distance from the first, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place(u32);

impl Place {
    /// The place of a row by number. Places are made for rows that the lowered program counts; whoever makes one sees
    /// to that.
    pub(super) const fn of(number: usize) -> Place {
        Place((number * size_of::<Row<WIDEST>>()) as u32)
    }

    /// The number of the row.
    pub(super) const fn number(self) -> usize {
        self.0 as usize / size_of::<Row<WIDEST>>()
    }
}

/// A set of lanes that operations write, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Set(pub(super) u8);

impl Set {
    /// The active lanes.
    pub(super) const ACTIVE: Set = Set(0);
    /// All lanes of the thread.
    pub(super) const ALL: Set = Set(1);
    /// How many there are, a power of two. From 2 on: those that a predicate leaves, two a channel.
    pub(super) const COUNT: usize = 16;

    /// The row of its words: all ones for a lane of the set.
    pub(super) const fn place(self) -> Place {
        Place::of(ROWS + self.0 as usize)
    }
}

/// What operations work on.
pub(super) struct Lanes<'a> {
    rows: &'a mut [Row<WIDEST>],
    /// Chunks that have lanes of the thread.
    pub(super) chunks: usize,
    sets: [u64; Set::COUNT],
    pub(super) predicate: &'a mut [Mask; 4],
    pub(super) alu_result: &'a mut Mask,
    pub(super) alu_result_valid: &'a mut Mask,
    pub(super) written: &'a mut Written,
}

impl<'a> Lanes<'a> {
    /// No lane is active.
    ///
    /// # Panics
    /// There are not `count` rows, those that the program was lowered for.
    pub(super) fn new(
        rows: &'a mut [Row<WIDEST>],
        count: usize,
        lanes: usize,
        predicate: &'a mut [Mask; 4],
        alu_result: &'a mut Mask,
        alu_result_valid: &'a mut Mask,
        written: &'a mut Written,
    ) -> Self {
        assert!(rows.len() == count && lanes <= WIDEST, "the thread was made for this program");
        let mut lanes = Lanes {
            rows,
            chunks: lanes.div_ceil(CHUNK),
            sets: [0; Set::COUNT],
            predicate,
            alu_result,
            alu_result_valid,
            written,
        };
        for chunk in 0..lanes.chunks {
            lanes.write(Set::ACTIVE.place(), chunk, [0; CHUNK]);
        }
        lanes
    }

    /// A chunk of a row, by value: operations read all that they need before they write, perhaps the same row.
    #[inline(always)]
    pub(super) fn read(&self, place: Place, chunk: usize) -> Words {
        debug_assert!(place.number() < self.rows.len() && chunk < WIDEST / CHUNK);
        // SAFETY: lowering makes only places of rows that it counts, and `new` has seen that there are so many; a
        // chunk is one of those below `chunks`, which lie inside the row, as `new` has seen too.
        unsafe { self.rows.as_ptr().byte_add(place.0 as usize).cast::<Words>().add(chunk).read() }
    }

    /// Writes all lanes of a chunk.
    #[inline(always)]
    pub(super) fn write(&mut self, place: Place, chunk: usize, words: Words) {
        debug_assert!(place.number() < self.rows.len() && chunk < WIDEST / CHUNK);
        // SAFETY: as in `read`.
        unsafe { self.rows.as_mut_ptr().byte_add(place.0 as usize).cast::<Words>().add(chunk).write(words) }
    }

    /// Writes the lanes of a set; the others keep what they have.
    ///
    /// # Safety
    /// The processor has the level of `W`.
    #[inline(always)]
    pub(super) unsafe fn blend<W: Wide>(&mut self, place: Place, chunk: usize, set: Set, words: Words) {
        let members = self.read(set.place(), chunk);
        let old = self.read(place, chunk);
        // SAFETY: as the caller says.
        self.write(place, chunk, unsafe { W::blend(&words, &old, &members) });
    }

    /// The lanes of a set.
    #[inline(always)]
    pub(super) fn set(&self, set: Set) -> Mask {
        Mask(self.sets[usize::from(set.0) % Set::COUNT])
    }

    /// A set becomes these lanes. (For code of a level; [`chooser`] is the same for everybody else.)
    ///
    /// # Safety
    /// The processor has the level of `W`.
    #[inline(always)]
    pub(super) unsafe fn choose<W: Wide>(&mut self, set: Set, lanes: Mask) {
        self.sets[usize::from(set.0) % Set::COUNT] = lanes.0;
        for chunk in 0..self.chunks {
            // SAFETY: as the caller says.
            let words = unsafe { W::spread((lanes.0 >> (chunk * CHUNK)) as u16) };
            self.write(set.place(), chunk, words);
        }
    }
}

/// Sources and destination of one channel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Channel {
    pub(super) src: [Place; 3],
    pub(super) dst: Place,
    /// Sign bits that are turned around: of the sources, or of the product and the addend.
    pub(super) flip: [u32; 3],
    /// For a sum: OMOD, and the same as a factor.
    pub(super) omod: Omod,
    pub(super) scale: f32,
    /// Exponents that OMOD takes out of the range: from the first, as many as the second, as bits.
    pub(super) beyond: [u32; 2],
}

impl Channel {
    pub(super) const NONE: Channel = Channel {
        src: [Place(0); 3],
        dst: Place(0),
        flip: [0; 3],
        omod: Omod::MUL_1,
        scale: 1.0,
        beyond: [0; 2],
    };
}

/// One step of an instruction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Operation {
    /// What runs: when some lane that the operation writes may be off, and when every lane of the thread is active.
    pub(super) handlers: [Handler; 2],
    /// As many as the handler wants.
    pub(super) channels: [Channel; 4],
    /// The lanes that are written.
    pub(super) set: Set,
    /// OMOD, and the same as a factor; disabled is 1. Of sums each channel has its own.
    pub(super) omod: Omod,
    pub(super) scale: f32,
    /// The result is clamped to 0..1.
    pub(super) clamp: bool,
    /// Which predicate bit, target and channel, or lane of the quad.
    pub(super) number: [u8; 2],
    /// The predicate bit is turned around.
    pub(super) inverted: bool,
}

/// An operation's code. Calling it is sound on a processor that has the level it was made for.
pub(super) type Handler = unsafe fn(&mut Lanes<'_>, &Operation);

/// What an operation does.
pub(super) trait Body {
    /// To be compiled for a level.
    ///
    /// # Safety
    /// The processor has the level of `W`.
    unsafe fn run<W: Wide>(lanes: &mut Lanes<'_>, operation: &Operation);
}

handlers!(Body: fn(&mut Lanes<'_>, &Operation) as Handler);

/// [`Lanes::choose`], compiled for a level. Calling it is sound on a processor that has the level it was made for.
pub(super) type Chooser = unsafe fn(&mut Lanes<'_>, Set, Mask);

/// The code of [`Lanes::choose`] for a level.
pub(super) fn chooser(level: Level) -> Chooser {
    match level.kind() {
        #[cfg(target_arch = "x86_64")]
        Kind::Avx512 => choose_avx512,
        Kind::Baseline | Kind::Avx2 => choose_baseline,
        #[cfg(not(target_arch = "x86_64"))]
        Kind::Avx512 => choose_baseline,
    }
}

unsafe fn choose_baseline(lanes: &mut Lanes<'_>, set: Set, members: Mask) {
    // SAFETY: every processor has the baseline.
    unsafe { lanes.choose::<Baseline>(set, members) }
}

for_avx512! {
    unsafe fn choose_avx512(lanes: &mut Lanes<'_>, set: Set, members: Mask) {
        // SAFETY: who calls this has the level.
        unsafe { lanes.choose::<Avx512>(set, members) }
    }
}

/// How a multiply-add is to be: see [`Wide::multiply_add`].
#[derive(Clone, Copy)]
pub(super) struct Sum {
    /// Signs of product and addend are turned around by these bits.
    pub(super) flip: Option<[u32; 2]>,
    /// A source may be a denormal.
    pub(super) flush: bool,
    /// Zero times anything is zero.
    pub(super) zero_wins: bool,
    /// A factor that is a power of two, and the exponents that it takes out of the range: from the first, as many as the
    /// second, as bits.
    pub(super) scale: Option<(f32, [u32; 2])>,
}

/// What is written differently on different levels: the compiler makes vector code of most loops over a chunk, but not
/// of the short ones with any certainty.
pub(super) trait Wide {
    /// A multiply-add of singles with one rounding is one instruction, and [`Wide::multiply_add`] does it.
    const FUSED: bool;

    /// A * B + C, rounded once, without denormals and with the one NaN; and whether it may be wrong for some lane because
    /// of the factor. Only where it is [`Wide::FUSED`].
    ///
    /// # Safety
    /// The processor has the level.
    unsafe fn multiply_add(src: &[Words; 3], sum: Sum) -> (Words, bool);

    /// `new` for the members, all ones in `members`, and `old` for the others.
    ///
    /// # Safety
    /// The processor has the level.
    #[inline(always)]
    unsafe fn blend(new: &Words, old: &Words, members: &Words) -> Words {
        let mut words = [0; CHUNK];
        for lane in 0..CHUNK {
            words[lane] = new[lane] & members[lane] | old[lane] & !members[lane];
        }
        words
    }

    /// The lanes whose sign bit is set.
    ///
    /// # Safety
    /// The processor has the level.
    unsafe fn signs(words: &Words) -> u16;

    /// All ones for the lanes of a set, zeros for the others.
    ///
    /// # Safety
    /// The processor has the level.
    #[inline(always)]
    unsafe fn spread(bits: u16) -> Words {
        let mut words = [0; CHUNK];
        for lane in 0..CHUNK {
            words[lane] = if u32::from(bits) & 1 << lane != 0 { u32::MAX } else { 0 };
        }
        words
    }
}

/// [`Kind::Baseline`]
pub(super) struct Baseline;

impl Wide for Baseline {
    const FUSED: bool = false;

    unsafe fn multiply_add(_: &[Words; 3], _: Sum) -> (Words, bool) {
        unreachable!("the baseline has no fused multiply-add")
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn signs(words: &Words) -> u16 {
        use std::arch::x86_64::{_mm_castsi128_ps, _mm_loadu_si128, _mm_movemask_ps};
        let mut bits = 0;
        for (place, four) in words.as_chunks::<4>().0.iter().enumerate() {
            // SAFETY: SSE2 is part of the baseline of x86-64; the load needs no alignment and stays inside four words.
            let signs = unsafe { _mm_movemask_ps(_mm_castsi128_ps(_mm_loadu_si128(four.as_ptr().cast()))) };
            bits |= (signs as u16) << (4 * place);
        }
        bits
    }

    #[cfg(not(target_arch = "x86_64"))]
    #[inline(always)]
    unsafe fn signs(words: &Words) -> u16 {
        (0..CHUNK).fold(0, |bits, lane| bits | ((words[lane] >> 31) as u16) << lane)
    }
}

/// [`Kind::Avx2`]
#[cfg(target_arch = "x86_64")]
pub(super) struct Avx2;

#[cfg(target_arch = "x86_64")]
impl Wide for Avx2 {
    const FUSED: bool = true;

    #[inline(always)]
    unsafe fn multiply_add(src: &[Words; 3], sum: Sum) -> (Words, bool) {
        use std::arch::x86_64::*;
        let mut result = [0; CHUNK];
        let mut exception = false;
        // SAFETY: the caller says that the processor has AVX2 and FMA; loads and stores need no alignment and stay inside
        // sixteen words.
        unsafe {
            let (sign, exponent) = (_mm256_set1_epi32(i32::MIN), _mm256_set1_epi32(0x7f80_0000));
            // Clears all but the sign where the mask is set.
            let clear = |x, mask| _mm256_andnot_si256(_mm256_andnot_si256(sign, mask), x);
            let flush = |x| {
                let denormal = _mm256_cmpeq_epi32(_mm256_and_si256(x, exponent), _mm256_setzero_si256());
                clear(x, denormal)
            };
            let zero = |x| {
                let zero = _mm256_cmp_ps::<_CMP_EQ_OQ>(_mm256_castsi256_ps(x), _mm256_setzero_ps());
                _mm256_castps_si256(zero)
            };
            for half in [0, 8] {
                let mut a = _mm256_loadu_si256(src[0][half..].as_ptr().cast());
                let mut b = _mm256_loadu_si256(src[1][half..].as_ptr().cast());
                let mut c = _mm256_loadu_si256(src[2][half..].as_ptr().cast());
                if let Some([product, addend]) = sum.flip {
                    a = _mm256_xor_si256(a, _mm256_set1_epi32(product as i32));
                    c = _mm256_xor_si256(c, _mm256_set1_epi32(addend as i32));
                }
                if sum.flush {
                    (a, b, c) = (flush(a), flush(b), flush(c));
                }
                if sum.zero_wins {
                    (a, b) = (clear(a, zero(b)), clear(b, zero(a)));
                }
                let (mut a, b, mut c) =
                    (_mm256_castsi256_ps(a), _mm256_castsi256_ps(b), _mm256_castsi256_ps(c));
                if let Some((factor, [low, span])) = sum.scale {
                    let beyond = |x| {
                        let magnitude = _mm256_andnot_si256(sign, _mm256_castps_si256(x));
                        let place = _mm256_sub_epi32(magnitude, _mm256_set1_epi32(low as i32));
                        // Unsigned comparison by way of the signed one.
                        let limit = _mm256_set1_epi32((span ^ 1 << 31) as i32);
                        _mm256_movemask_epi8(_mm256_cmpgt_epi32(limit, _mm256_xor_si256(place, sign))) != 0
                    };
                    exception |= beyond(a) | beyond(c);
                    let factor = _mm256_set1_ps(factor);
                    (a, c) = (_mm256_mul_ps(a, factor), _mm256_mul_ps(c, factor));
                }
                let exact = _mm256_fmadd_ps(a, b, c);
                let nan = _mm256_castps_si256(_mm256_cmp_ps::<_CMP_UNORD_Q>(exact, exact));
                let flushed = flush(_mm256_castps_si256(exact));
                let one_nan = _mm256_set1_epi32(crate::lane::NAN.to_bits() as i32);
                let value = _mm256_blendv_epi8(flushed, one_nan, nan);
                _mm256_storeu_si256(result[half..].as_mut_ptr().cast(), value);
            }
        }
        (result, exception)
    }

    #[inline(always)]
    unsafe fn signs(words: &Words) -> u16 {
        use std::arch::x86_64::{_mm256_loadu_ps, _mm256_movemask_ps};
        let mut bits = 0;
        for (place, eight) in words.as_chunks::<8>().0.iter().enumerate() {
            // SAFETY: the caller says that the processor has AVX2; the load needs no alignment and stays inside eight
            // words.
            let signs = unsafe { _mm256_movemask_ps(_mm256_loadu_ps(eight.as_ptr().cast())) };
            bits |= (signs as u16) << (8 * place);
        }
        bits
    }
}

/// [`Kind::Avx512`]
#[cfg(target_arch = "x86_64")]
pub(super) struct Avx512;

#[cfg(target_arch = "x86_64")]
impl Wide for Avx512 {
    const FUSED: bool = true;

    #[inline(always)]
    unsafe fn multiply_add(src: &[Words; 3], sum: Sum) -> (Words, bool) {
        use std::arch::x86_64::*;
        let mut result = [0; CHUNK];
        let mut exception = false;
        // SAFETY: the caller says that the processor has AVX-512 F and DQ; loads and stores need no alignment and stay
        // inside sixteen words.
        unsafe {
            let (sign, exponent) = (_mm512_set1_epi32(i32::MIN), _mm512_set1_epi32(0x7f80_0000));
            // Clears all but the sign of the lanes of a mask.
            let clear = |x, mask| _mm512_mask_and_epi32(x, mask, x, sign);
            let flush = |x| clear(x, _mm512_testn_epi32_mask(x, exponent));
            let zero = |x| _mm512_cmp_ps_mask::<_CMP_EQ_OQ>(_mm512_castsi512_ps(x), _mm512_setzero_ps());
            let mut a = _mm512_loadu_si512(src[0].as_ptr().cast());
            let mut b = _mm512_loadu_si512(src[1].as_ptr().cast());
            let mut c = _mm512_loadu_si512(src[2].as_ptr().cast());
            if let Some([product, addend]) = sum.flip {
                a = _mm512_xor_si512(a, _mm512_set1_epi32(product as i32));
                c = _mm512_xor_si512(c, _mm512_set1_epi32(addend as i32));
            }
            if sum.flush {
                (a, b, c) = (flush(a), flush(b), flush(c));
            }
            if sum.zero_wins {
                (a, b) = (clear(a, zero(b)), clear(b, zero(a)));
            }
            let (mut a, b, mut c) = (_mm512_castsi512_ps(a), _mm512_castsi512_ps(b), _mm512_castsi512_ps(c));
            if let Some((factor, [low, span])) = sum.scale {
                let beyond = |x| {
                    let magnitude = _mm512_andnot_si512(sign, _mm512_castps_si512(x));
                    let place = _mm512_sub_epi32(magnitude, _mm512_set1_epi32(low as i32));
                    _mm512_cmplt_epu32_mask(place, _mm512_set1_epi32(span as i32))
                };
                exception = beyond(a) | beyond(c) != 0;
                let factor = _mm512_set1_ps(factor);
                (a, c) = (_mm512_mul_ps(a, factor), _mm512_mul_ps(c, factor));
            }
            let exact = _mm512_fmadd_ps(a, b, c);
            let nan = _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(exact, exact);
            let one_nan = _mm512_set1_epi32(crate::lane::NAN.to_bits() as i32);
            let value = _mm512_mask_mov_epi32(flush(_mm512_castps_si512(exact)), nan, one_nan);
            _mm512_storeu_si512(result.as_mut_ptr().cast(), value);
        }
        (result, exception)
    }

    #[inline(always)]
    unsafe fn blend(new: &Words, old: &Words, members: &Words) -> Words {
        use std::arch::x86_64::{_mm512_loadu_si512, _mm512_storeu_si512, _mm512_ternarylogic_epi32};
        let mut words = [0; CHUNK];
        // SAFETY: the caller says that the processor has AVX-512 F; loads and stores need no alignment and stay inside
        // sixteen words.
        unsafe {
            let new = _mm512_loadu_si512(new.as_ptr().cast());
            let old = _mm512_loadu_si512(old.as_ptr().cast());
            let members = _mm512_loadu_si512(members.as_ptr().cast());
            // Bit members * 4 + new * 2 + old: new where members, else old.
            let value = _mm512_ternarylogic_epi32::<0b1100_1010>(members, new, old);
            _mm512_storeu_si512(words.as_mut_ptr().cast(), value);
        }
        words
    }

    #[inline(always)]
    unsafe fn signs(words: &Words) -> u16 {
        use std::arch::x86_64::{_mm512_loadu_si512, _mm512_movepi32_mask};
        // SAFETY: the caller says that the processor has AVX-512 DQ; the load needs no alignment and stays inside
        // sixteen words.
        unsafe { _mm512_movepi32_mask(_mm512_loadu_si512(words.as_ptr().cast())) }
    }

    #[inline(always)]
    unsafe fn spread(bits: u16) -> Words {
        use std::arch::x86_64::{_mm512_movm_epi32, _mm512_storeu_si512};
        let mut words = [0; CHUNK];
        // SAFETY: the caller says that the processor has AVX-512 DQ; the store needs no alignment and fills sixteen
        // words.
        unsafe { _mm512_storeu_si512(words.as_mut_ptr().cast(), _mm512_movm_epi32(bits)) };
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn there_and_back<W: Wide>(bits: u16) -> (Words, u16) {
        // SAFETY: the callers have the level.
        unsafe {
            let words = W::spread(bits);
            (words, W::signs(&words))
        }
    }

    #[test]
    fn every_level_spreads_and_collects_the_same_lanes() {
        for bits in [0, 1, 0x8000, 0x1234, 0xfedc, 0xffff] {
            let expected = std::array::from_fn(|lane| if bits >> lane & 1 != 0 { u32::MAX } else { 0 });
            for level in Level::available() {
                let found = match level.kind() {
                    Kind::Baseline => there_and_back::<Baseline>(bits),
                    #[cfg(target_arch = "x86_64")]
                    Kind::Avx2 => there_and_back::<Avx2>(bits),
                    #[cfg(target_arch = "x86_64")]
                    Kind::Avx512 => there_and_back::<Avx512>(bits),
                    #[cfg(not(target_arch = "x86_64"))]
                    Kind::Avx2 | Kind::Avx512 => continue,
                };
                assert_eq!(found, (expected, bits), "{}", level.name());
            }
        }
    }
}
