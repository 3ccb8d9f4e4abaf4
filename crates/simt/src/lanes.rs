//! Lane sets spread out for whole-row operations, and which instruction sets of the host's processor may be used.
//!
//! An engine that works on whole rows writes each operation once, as a loop over lanes that the compiler turns into
//! vector code, and compiles it once for each [`Level`] with `#[target_feature]`. The few things that a loop does not
//! express well are the functions of [`Wide`]. Results are the same on every level.

// The one function here that needs a level is unsafe to call, and says so.
#![allow(unsafe_code)]

/// Lanes of the rows here.
pub const LANES: usize = 32;

/// An instruction set extension that the processor at hand has. Only this module makes one, and only after asking
/// the processor: whoever holds a level may run code compiled for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Level(Kind);

/// The extensions that code is compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// What every processor of the target has.
    Baseline,
    /// x86-64 with AVX2, FMA, BMI1, BMI2, POPCNT and LZCNT: 256-bit vectors.
    Avx2,
    /// The same with AVX-512 F, BW, CD, DQ and VL: 512-bit vectors.
    Avx512,
}

impl Level {
    /// What every processor has.
    pub const BASELINE: Level = Level(Kind::Baseline);

    /// The levels that this processor has, lowest first.
    pub fn available() -> Vec<Level> {
        [Kind::Baseline, Kind::Avx2, Kind::Avx512].into_iter().filter(|kind| has(*kind)).map(Level).collect()
    }

    /// The highest level that this processor has.
    pub fn best() -> Level {
        Level::available().pop().unwrap_or(Level::BASELINE)
    }

    /// The level of a name, if this processor has it.
    pub fn from_name(name: &str) -> Option<Level> {
        Level::available().into_iter().find(|level| level.name() == name)
    }

    /// Which it is.
    pub const fn kind(self) -> Kind {
        self.0
    }

    /// Its name: `baseline`, `avx2`, `avx512`.
    pub const fn name(self) -> &'static str {
        match self.0 {
            Kind::Baseline => "baseline",
            Kind::Avx2 => "avx2",
            Kind::Avx512 => "avx512",
        }
    }
}

#[cfg(target_arch = "x86_64")]
fn has(kind: Kind) -> bool {
    let avx2 = || {
        is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("fma")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("popcnt")
            && is_x86_feature_detected!("lzcnt")
    };
    match kind {
        Kind::Baseline => true,
        Kind::Avx2 => avx2(),
        Kind::Avx512 => {
            avx2()
                && is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512cd")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512vl")
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn has(kind: Kind) -> bool {
    matches!(kind, Kind::Baseline)
}

/// Compiles one function for [`Kind::Avx2`]. It is unsafe to call, for whoever calls it must have the level.
///
/// The features are those that [`Level`] asks the processor for, here and in [`for_avx512`](crate::for_avx512), and
/// nowhere else.
#[macro_export]
macro_rules! for_avx2 {
    ($($function:tt)*) => {
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2,fma,bmi1,bmi2,popcnt,lzcnt")]
        $($function)*
    };
}

/// Compiles one function for [`Kind::Avx512`], as [`for_avx2`](crate::for_avx2).
#[macro_export]
macro_rules! for_avx512 {
    ($($function:tt)*) => {
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2,fma,bmi1,bmi2,popcnt,lzcnt,avx512f,avx512bw,avx512cd,avx512dq,avx512vl")]
        $($function)*
    };
}

/// Makes `handler`, which gives the code of a body for a level.
///
/// `Body` is a trait with `unsafe fn run<W: Wide>(&mut Lanes, &Operation)`, sound on a processor that has the level of `W`;
/// `Baseline`, `Avx2` and `Avx512` are an engine's `W`, and must be in scope.
#[macro_export]
macro_rules! handlers {
    ($Body:ident: fn(&mut $Lanes:ty, &$Operation:ty) as $Handler:ident) => {
        /// The code of a body for a level.
        pub(super) fn handler<B: $Body>(level: $crate::Level) -> $Handler {
            match level.kind() {
                $crate::lanes::Kind::Baseline => baseline::<B>,
                #[cfg(target_arch = "x86_64")]
                $crate::lanes::Kind::Avx2 => avx2::<B>,
                #[cfg(target_arch = "x86_64")]
                $crate::lanes::Kind::Avx512 => avx512::<B>,
                #[cfg(not(target_arch = "x86_64"))]
                $crate::lanes::Kind::Avx2 | $crate::lanes::Kind::Avx512 => baseline::<B>,
            }
        }

        unsafe fn baseline<B: $Body>(lanes: &mut $Lanes, operation: &$Operation) {
            // SAFETY: every processor has the baseline.
            unsafe { B::run::<Baseline>(lanes, operation) }
        }

        $crate::for_avx2! {
            unsafe fn avx2<B: $Body>(lanes: &mut $Lanes, operation: &$Operation) {
                // SAFETY: who calls a handler has its level.
                unsafe { B::run::<Avx2>(lanes, operation) }
            }
        }

        $crate::for_avx512! {
            unsafe fn avx512<B: $Body>(lanes: &mut $Lanes, operation: &$Operation) {
                // SAFETY: who calls a handler has its level.
                unsafe { B::run::<Avx512>(lanes, operation) }
            }
        }
    };
}

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

/// A truth table over the numbers below 16, as [`Wide::select`] wants it: all ones for yes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Table(pub [u8; 16]);

impl Table {
    /// Yes for the numbers of the set bits.
    pub const fn of(bits: u16) -> Table {
        let mut table = [0; 16];
        let mut number = 0;
        while number < 16 {
            table[number] = if bits >> number & 1 != 0 { 0xff } else { 0 };
            number += 1;
        }
        Table(table)
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
