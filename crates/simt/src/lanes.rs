//! Lane sets spread out for whole-row operations, and which instruction sets of the host's processor may be used.
//!
//! An engine that works on whole rows writes each operation once, as a loop over lanes that the compiler turns into
//! vector code, and compiles it once for each [`Level`] with `#[target_feature]`. The few things that a loop does not
//! express well are the functions of [`Wide`]. Results are the same on every level.

// The one function here that needs a level is unsafe to call, and says so.
#![allow(unsafe_code)]

pub use crate::level::{Kind, Level};
pub use crate::wide::Table;

/// Lanes of the rows here.
pub const LANES: usize = 32;

/// A set of lanes three ways: as bits, and as all ones or all zeros for words and bytes of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, align(64))]
pub struct Spread {
    /// For rows of words.
    pub words: [u32; LANES],
    /// For rows of bytes.
    pub bytes: [u8; LANES],
    /// Bit n is lane n.
    pub bits: u32,
}

impl Spread {
    /// No lane.
    pub const NONE: Spread = Spread { words: [0; LANES], bytes: [0; LANES], bits: 0 };

    /// The set of these bits.
    #[inline(always)]
    pub fn of(bits: u32) -> Spread {
        let mut spread = Spread { bits, ..Spread::NONE };
        for lane in 0..LANES {
            spread.words[lane] = if bits & 1 << lane != 0 { u32::MAX } else { 0 };
        }
        for lane in 0..LANES {
            spread.bytes[lane] = spread.words[lane] as u8;
        }
        spread
    }
}

/// What is written differently on different levels.
pub trait Wide {
    /// The lanes for whose byte, a number below 16, the table says yes.
    ///
    /// # Safety
    /// The processor has the level.
    unsafe fn select(table: &Table, bytes: &[u8; LANES]) -> u32;

    /// [`Spread::of`]
    ///
    /// # Safety
    /// The processor has the level.
    #[inline(always)]
    unsafe fn spread(bits: u32) -> Spread {
        Spread::of(bits)
    }
}

/// [`Kind::Baseline`]
#[derive(Clone, Copy, Debug)]
pub struct Baseline;

impl Wide for Baseline {
    #[inline(always)]
    unsafe fn select(table: &Table, bytes: &[u8; LANES]) -> u32 {
        let mut mask = 0;
        for (place, eight) in bytes.as_chunks::<8>().0.iter().enumerate() {
            let bits = eight.map(|byte| table.0[usize::from(byte & 15)] & 1);
            // The product collects bit 0 of byte n in bit 56 + n.
            let gathered = u64::from_le_bytes(bits).wrapping_mul(0x0102_0408_1020_4080) >> 56;
            mask |= (gathered as u32) << (8 * place);
        }
        mask
    }
}

/// [`Kind::Avx2`]
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug)]
pub struct Avx2;

#[cfg(target_arch = "x86_64")]
impl Wide for Avx2 {
    #[inline(always)]
    unsafe fn select(table: &Table, bytes: &[u8; LANES]) -> u32 {
        use std::arch::x86_64::{
            _mm_loadu_si128, _mm256_broadcastsi128_si256, _mm256_loadu_si256, _mm256_movemask_epi8,
            _mm256_shuffle_epi8,
        };
        // SAFETY: the caller says that the processor has AVX2; the loads need no alignment and stay inside arrays of
        // exactly their size.
        unsafe {
            let table = _mm256_broadcastsi128_si256(_mm_loadu_si128(table.0.as_ptr().cast()));
            let bytes = _mm256_loadu_si256(bytes.as_ptr().cast());
            _mm256_movemask_epi8(_mm256_shuffle_epi8(table, bytes)) as u32
        }
    }
}

/// [`Kind::Avx512`]
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug)]
pub struct Avx512;

#[cfg(target_arch = "x86_64")]
impl Wide for Avx512 {
    #[inline(always)]
    unsafe fn select(table: &Table, bytes: &[u8; LANES]) -> u32 {
        // SAFETY: what has AVX-512 has AVX2.
        unsafe { Avx2::select(table, bytes) }
    }

    #[inline(always)]
    unsafe fn spread(bits: u32) -> Spread {
        use std::arch::x86_64::{
            _mm256_movm_epi8, _mm256_storeu_si256, _mm512_movm_epi32, _mm512_storeu_si512,
        };
        let mut spread = Spread { bits, ..Spread::NONE };
        let (low, high) = spread.words.split_at_mut(LANES / 2);
        // SAFETY: the caller says that the processor has AVX-512 DQ, BW and VL; the stores need no alignment and fill
        // arrays of exactly their size.
        unsafe {
            _mm512_storeu_si512(low.as_mut_ptr().cast(), _mm512_movm_epi32(bits as u16));
            _mm512_storeu_si512(high.as_mut_ptr().cast(), _mm512_movm_epi32((bits >> 16) as u16));
            _mm256_storeu_si256(spread.bytes.as_mut_ptr().cast(), _mm256_movm_epi8(bits));
        }
        spread
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_set_says_the_same_three_times() {
        for bits in [0, 1, 0x8000_0001, 0x1234_5678, u32::MAX] {
            let spread = Spread::of(bits);
            for lane in 0..LANES {
                let member = bits >> lane & 1 != 0;
                assert_eq!(spread.words[lane], if member { u32::MAX } else { 0 });
                assert_eq!(spread.bytes[lane], if member { 0xff } else { 0 });
            }
            assert_eq!(spread.bits, bits);
            #[cfg(target_arch = "x86_64")]
            if Level::best().kind() == Kind::Avx512 {
                // SAFETY: the processor has been asked.
                assert_eq!(unsafe { Avx512::spread(bits) }, spread);
            }
        }
    }

    #[test]
    fn every_level_selects_the_same_lanes() {
        let bytes: [u8; LANES] = std::array::from_fn(|lane| (lane * 7 % 16) as u8);
        for set in [0u16, 1, 0x8000, 0xbb44, 0x3366, 0xffff] {
            let expected = (0..LANES).fold(0, |mask, lane| mask | u32::from(set >> bytes[lane] & 1) << lane);
            let table = &Table::of(set);
            for level in Level::available() {
                // SAFETY: the level is one that the processor has.
                let found = unsafe {
                    match level.kind() {
                        Kind::Baseline => Baseline::select(table, &bytes),
                        #[cfg(target_arch = "x86_64")]
                        Kind::Avx2 | Kind::Avx512 => Avx2::select(table, &bytes),
                        #[cfg(not(target_arch = "x86_64"))]
                        Kind::Avx2 | Kind::Avx512 => continue,
                    }
                };
                assert_eq!(found, expected, "{} {set:x}", level.name());
            }
        }
    }
}
