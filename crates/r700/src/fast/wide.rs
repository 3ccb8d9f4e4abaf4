//! What is written differently for each [level](Level) of the host's vector instructions: spreading a set of lanes
//! over a row, blending under it, and collecting a row's sign bits. Results are the same on every level.

use reconverge_simt::registers::Row;

use crate::chip::LANES;

/// A set of lanes with what a level needs to blend under it.
#[derive(Clone, Debug)]
pub(super) struct Set {
    /// Bit n is lane n.
    pub(super) bits: u64,
    /// All ones or all zeros for each lane; on levels that blend by bits, and while all lanes are in, of no meaning.
    words: Row<LANES>,
}

impl Set {
    /// No lane.
    pub(super) const NONE: Set = Set { bits: 0, words: Row::ZERO };

    /// Becomes the set of these bits; costs nothing when it is that already.
    ///
    /// # Safety
    /// The processor has the level of `W`.
    #[inline(always)]
    pub(super) unsafe fn choose<W: Wide>(&mut self, bits: u64) {
        if self.bits != bits {
            self.bits = bits;
            if bits != u64::MAX {
                // SAFETY: as the caller says.
                unsafe { W::spread(bits, &mut self.words.0) };
            }
        }
    }
}

/// A level of vector instructions.
pub(super) trait Wide {
    /// The words of a set, where [`Wide::blend`] of this level looks at them.
    ///
    /// # Safety
    /// The processor has the level.
    unsafe fn spread(bits: u64, words: &mut [u32; LANES]);

    /// `new` in the lanes of the set, `row` elsewhere.
    ///
    /// # Safety
    /// The processor has the level.
    unsafe fn blend(row: &mut [u32; LANES], new: &[u32; LANES], set: &Set);

    /// The lanes whose word has its highest bit set.
    ///
    /// # Safety
    /// The processor has the level.
    unsafe fn signs(row: &[u32; LANES]) -> u64;
}

/// What every processor has.
pub(super) struct Baseline;

#[inline(always)]
fn spread_words(bits: u64, words: &mut [u32; LANES]) {
    for (half, words) in words.as_chunks_mut::<32>().0.iter_mut().enumerate() {
        let bits = (bits >> (32 * half)) as u32;
        for lane in 0..32 {
            words[lane] = if bits & 1 << lane != 0 { u32::MAX } else { 0 };
        }
    }
}

#[inline(always)]
fn blend_words(row: &mut [u32; LANES], new: &[u32; LANES], set: &Set) {
    for lane in 0..LANES {
        row[lane] = new[lane] & set.words.0[lane] | row[lane] & !set.words.0[lane];
    }
}

impl Wide for Baseline {
    #[inline(always)]
    unsafe fn spread(bits: u64, words: &mut [u32; LANES]) {
        spread_words(bits, words);
    }

    #[inline(always)]
    unsafe fn blend(row: &mut [u32; LANES], new: &[u32; LANES], set: &Set) {
        blend_words(row, new, set);
    }

    #[inline(always)]
    unsafe fn signs(row: &[u32; LANES]) -> u64 {
        let mut bits = 0;
        for (place, eight) in row.as_chunks::<8>().0.iter().enumerate() {
            let bytes = eight.map(|word| (word >> 31) as u8);
            // The product collects bit 0 of byte n in bit 56 + n.
            let gathered = u64::from_le_bytes(bytes).wrapping_mul(0x0102_0408_1020_4080) >> 56;
            bits |= gathered << (8 * place);
        }
        bits
    }
}

/// AVX2.
#[cfg(target_arch = "x86_64")]
pub(super) struct Avx2;

#[cfg(target_arch = "x86_64")]
impl Wide for Avx2 {
    #[inline(always)]
    unsafe fn spread(bits: u64, words: &mut [u32; LANES]) {
        spread_words(bits, words);
    }

    #[inline(always)]
    unsafe fn blend(row: &mut [u32; LANES], new: &[u32; LANES], set: &Set) {
        blend_words(row, new, set);
    }

    #[inline(always)]
    unsafe fn signs(row: &[u32; LANES]) -> u64 {
        use std::arch::x86_64::{_mm256_loadu_ps, _mm256_movemask_ps};
        let mut bits = 0;
        for (place, eight) in row.as_chunks::<8>().0.iter().enumerate() {
            // SAFETY: the caller says that the processor has AVX2; the load needs no alignment and stays inside eight
            // words.
            let eight = unsafe { _mm256_movemask_ps(_mm256_loadu_ps(eight.as_ptr().cast())) };
            bits |= u64::from(eight as u32) << (8 * place);
        }
        bits
    }
}

/// AVX-512, which blends by the bits themselves.
#[cfg(target_arch = "x86_64")]
pub(super) struct Avx512;

#[cfg(target_arch = "x86_64")]
impl Wide for Avx512 {
    #[inline(always)]
    unsafe fn spread(_bits: u64, _words: &mut [u32; LANES]) {}

    #[inline(always)]
    unsafe fn blend(row: &mut [u32; LANES], new: &[u32; LANES], set: &Set) {
        use std::arch::x86_64::{
            __m512i, _mm512_load_si512, _mm512_loadu_si512, _mm512_mask_mov_epi32, _mm512_store_si512,
        };
        let news = new.as_chunks::<16>().0;
        for (place, (row, new)) in row.as_chunks_mut::<16>().0.iter_mut().zip(news).enumerate() {
            let mask = (set.bits >> (16 * place)) as u16;
            let row: *mut __m512i = row.as_mut_ptr().cast();
            // SAFETY: the caller says that the processor has AVX-512 F; each access stays inside 16 words, and those of
            // a register's row are aligned, because a row is, to 64 bytes.
            unsafe {
                let blended = _mm512_mask_mov_epi32(
                    _mm512_load_si512(row),
                    mask,
                    _mm512_loadu_si512(new.as_ptr().cast()),
                );
                _mm512_store_si512(row, blended);
            }
        }
    }

    #[inline(always)]
    unsafe fn signs(row: &[u32; LANES]) -> u64 {
        use std::arch::x86_64::{_mm512_loadu_si512, _mm512_movepi32_mask};
        let mut bits = 0;
        for (place, part) in row.as_chunks::<16>().0.iter().enumerate() {
            // SAFETY: the caller says that the processor has AVX-512 F and DQ; the load needs no alignment and stays
            // inside 16 words.
            let part = unsafe { _mm512_movepi32_mask(_mm512_loadu_si512(part.as_ptr().cast())) };
            bits |= u64::from(part) << (16 * place);
        }
        bits
    }
}

#[cfg(test)]
mod tests {
    use reconverge_simt::Level;
    use reconverge_simt::lanes::Kind;

    use super::*;

    /// # Safety
    /// The processor has the level of `W`.
    unsafe fn as_it_must<W: Wide>() {
        let old = Row(std::array::from_fn(|lane| (lane as u32).wrapping_mul(0x9e37_79b9)));
        let new = Row(std::array::from_fn(|lane| (lane as u32).wrapping_mul(0x85eb_ca6b) ^ 0xffff));
        let signs = (0..LANES).fold(0, |bits, lane| bits | u64::from(old.0[lane] >> 31) << lane);
        // SAFETY: as the caller says.
        unsafe {
            assert_eq!(W::signs(&old.0), signs);
            let mut set = Set::NONE;
            for bits in [1, 0, 1 << 63, 0x0123_4567_89ab_cdef, u64::MAX >> 1, 0xffff << 32] {
                set.choose::<W>(bits);
                let mut row = old;
                W::blend(&mut row.0, &new.0, &set);
                for lane in 0..LANES {
                    let expected = if bits >> lane & 1 != 0 { new.0[lane] } else { old.0[lane] };
                    assert_eq!(row.0[lane], expected, "lane {lane} of {bits:x}");
                }
            }
        }
    }

    #[test]
    fn every_level_blends_and_collects_the_same_lanes() {
        for level in Level::available() {
            // SAFETY: the level is one that the processor has.
            unsafe {
                match level.kind() {
                    Kind::Baseline => as_it_must::<Baseline>(),
                    #[cfg(target_arch = "x86_64")]
                    Kind::Avx2 => as_it_must::<Avx2>(),
                    #[cfg(target_arch = "x86_64")]
                    Kind::Avx512 => as_it_must::<Avx512>(),
                    #[cfg(not(target_arch = "x86_64"))]
                    Kind::Avx2 | Kind::Avx512 => {}
                }
            }
        }
    }
}
