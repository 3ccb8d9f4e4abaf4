//! What is written differently for each [level](crate::level) of the host's vector instructions, for rows of any number
//! of lanes that is a multiple of 16: the compiler makes vector code of most loops over lanes, but not of these, or not
//! with certainty.

// Intrinsics are unsafe: each block says which level has them, and that its accesses stay inside their arrays.
#![allow(unsafe_code)]

use std::fmt;

use crate::level::{Kind, Task};
use crate::registers::Row;

mod eight;

pub use eight::{Eight, Words8};

/// A level of vector instructions, as a token: a value exists only where the processor has the level.
pub trait Wide: Copy + fmt::Debug {
    /// The level.
    const KIND: Kind;

    /// Whether a multiply-add of singles with one rounding is one instruction, so that [`Wide::multiply_add`] is quick.
    const FUSED: bool;

    /// Whether a [`Set`] is blended by its bits, so that it needs no words.
    const BY_BITS: bool;

    /// The token.
    ///
    /// # Safety
    /// The processor has the level.
    unsafe fn assume() -> Self;

    /// Runs a task in a function of its own, compiled for the level.
    fn call<T: Task>(self, task: T) -> T::Output;

    /// The level for what reads and writes words of single lanes: a vector of sixteen lanes that is taken apart takes longer
    /// than two of eight.
    type Eight: Eight;

    /// Its token.
    fn eight(self) -> Self::Eight;

    /// All ones for the lanes of a set, zeros for the others.
    #[inline(always)]
    fn spread<const N: usize>(self, bits: u64) -> [u32; N] {
        let mut words = [0; N];
        for (chunk, words) in words.as_chunks_mut::<16>().0.iter_mut().enumerate() {
            let bits = (bits >> (16 * chunk)) as u32;
            for lane in 0..16 {
                words[lane] = if bits & 1 << lane != 0 { u32::MAX } else { 0 };
            }
        }
        words
    }

    /// [`Wide::spread`] for rows of bytes.
    #[inline(always)]
    fn spread_bytes<const N: usize>(self, bits: u64) -> [u8; N] {
        let words = self.spread::<N>(bits);
        let mut bytes = [0; N];
        for lane in 0..N {
            bytes[lane] = words[lane] as u8;
        }
        bytes
    }

    /// `new` where `members` has all ones, `old` where it has zeros.
    #[inline(always)]
    fn blend<const N: usize>(self, new: &[u32; N], old: &[u32; N], members: &[u32; N]) -> [u32; N] {
        let mut words = [0; N];
        for lane in 0..N {
            words[lane] = new[lane] & members[lane] | old[lane] & !members[lane];
        }
        words
    }

    /// Replaces the words of a row in the lanes of a set that is not all lanes.
    #[inline(always)]
    fn merge<const N: usize>(self, row: &mut Row<N>, new: &[u32; N], set: &Set<N>) {
        row.0 = self.blend(new, &row.0, &set.words.0);
    }

    /// The lanes whose word has its highest bit set.
    fn signs<const N: usize>(self, words: &[u32; N]) -> u64;

    /// The lanes for whose byte, a number below 16, the table says yes.
    fn select<const N: usize>(self, table: &Table, bytes: &[u8; N]) -> u64;

    /// The words of a table's pairs, of which each lane names one modulo their number.
    #[inline(always)]
    fn pairs<const N: usize, const M: usize>(
        self,
        table: &[[u32; 2]; M],
        places: &[u32; N],
    ) -> [[u32; N]; 2] {
        let mut words = [[0; N]; 2];
        for lane in 0..N {
            [words[0][lane], words[1][lane]] = table[places[lane] as usize % M];
        }
        words
    }

    /// Of numbers of 15 bits, the squares by 2^14, of which each partial product is cut: the sum of `x >> (14 - n)` over
    /// the set bits n of x.
    #[inline(always)]
    fn cut_squares<const N: usize>(self, numbers: &[u32; N]) -> [u32; N] {
        let mut sums = [0; N];
        for bit in 0..15 {
            for lane in 0..N {
                let part = numbers[lane] >> (14 - bit);
                sums[lane] += part & (numbers[lane] >> bit & 1).wrapping_neg();
            }
        }
        sums
    }

    /// A * B + C, rounded once, with denormals flushed and the one NaN of the [`Sum`]; and whether it may be wrong for
    /// some lane because of [`Sum::scale`].
    fn multiply_add<const N: usize>(self, src: &[[u32; N]; 3], sum: Sum) -> ([u32; N], bool);
}

/// How a multiply-add works: see [`Wide::multiply_add`].
#[derive(Clone, Copy, Debug)]
pub struct Sum {
    /// Sign bits to flip: of the product, and of the addend.
    pub flip: Option<[u32; 2]>,
    /// A source may be a denormal, and counts as zero.
    pub flush: bool,
    /// Zero times anything is zero.
    pub zero_wins: bool,
    /// A factor that is a power of two, with which A and C are multiplied first. If the bits of a magnitude lie among as
    /// many as the second number from the first on, that is not exact: its exponent leaves the range.
    pub scale: Option<(f32, [u32; 2])>,
    /// The bits of the NaN that comes out.
    pub nan: u32,
}

/// A truth table over the numbers below 16, as [`Wide::select`] reads it: all ones for yes.
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

/// A set of lanes with what a level needs to write them and keep the others.
#[derive(Clone, Debug)]
pub struct Set<const N: usize> {
    bits: u64,
    /// All ones or all zeros for each lane; without meaning on levels that blend by bits, and while all lanes are in.
    words: Row<N>,
}

impl<const N: usize> Set<N> {
    /// No lane.
    pub const NONE: Set<N> = Set { bits: 0, words: Row::ZERO };

    /// The bits of the set of all lanes.
    pub const ALL: u64 = if N >= 64 { u64::MAX } else { (1 << N) - 1 };

    /// Bit n is lane n.
    #[inline(always)]
    pub const fn bits(&self) -> u64 {
        self.bits
    }

    /// Becomes the set of these bits, those of lanes; costs nothing if it is that already.
    #[inline(always)]
    pub fn choose<W: Wide>(&mut self, wide: W, bits: u64) {
        if self.bits != bits {
            self.bits = bits;
            if !W::BY_BITS && bits != Self::ALL {
                self.words.0 = wide.spread(bits);
            }
        }
    }

    /// Writes the lanes of the set; the others keep what they have.
    #[inline(always)]
    pub fn write<W: Wide>(&self, wide: W, row: &mut Row<N>, words: &[u32; N]) {
        if self.bits == Self::ALL {
            row.0 = *words;
        } else {
            wide.merge(row, words, self);
        }
    }
}

/// What every processor has.
#[derive(Clone, Copy, Debug)]
pub struct Baseline;

/// Bit 0 of each byte, gathered.
#[inline(always)]
fn gather(bytes: [u8; 8]) -> u64 {
    // The product collects bit 0 of byte n in bit 56 + n.
    u64::from_le_bytes(bytes).wrapping_mul(0x0102_0408_1020_4080) >> 56
}

impl Wide for Baseline {
    const KIND: Kind = Kind::Baseline;
    const FUSED: bool = false;
    const BY_BITS: bool = false;

    #[inline(always)]
    unsafe fn assume() -> Baseline {
        Baseline
    }

    type Eight = Baseline;

    #[inline(always)]
    fn eight(self) -> Baseline {
        self
    }

    #[inline(always)]
    fn call<T: Task>(self, task: T) -> T::Output {
        #[inline(never)]
        fn run<T: Task>(task: T) -> T::Output {
            task.run(Baseline)
        }
        run(task)
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    fn signs<const N: usize>(self, words: &[u32; N]) -> u64 {
        use std::arch::x86_64::{_mm_castsi128_ps, _mm_loadu_si128, _mm_movemask_ps};
        let mut bits = 0;
        for (chunk, four) in words.as_chunks::<4>().0.iter().enumerate() {
            // SAFETY: SSE2 is part of the baseline of x86-64; the load needs no alignment and stays inside four words.
            let signs = unsafe { _mm_movemask_ps(_mm_castsi128_ps(_mm_loadu_si128(four.as_ptr().cast()))) };
            bits |= u64::from(signs as u32) << (4 * chunk);
        }
        bits
    }

    #[cfg(not(target_arch = "x86_64"))]
    #[inline(always)]
    fn signs<const N: usize>(self, words: &[u32; N]) -> u64 {
        let chunks = words.as_chunks::<8>().0.iter().enumerate();
        chunks.fold(0, |bits, (chunk, eight)| {
            bits | gather(eight.map(|word| (word >> 31) as u8)) << (8 * chunk)
        })
    }

    #[inline(always)]
    fn select<const N: usize>(self, table: &Table, bytes: &[u8; N]) -> u64 {
        let chunks = bytes.as_chunks::<8>().0.iter().enumerate();
        chunks.fold(0, |bits, (chunk, eight)| {
            bits | gather(eight.map(|byte| table.0[usize::from(byte & 15)] & 1)) << (8 * chunk)
        })
    }

    fn multiply_add<const N: usize>(self, src: &[[u32; N]; 3], sum: Sum) -> ([u32; N], bool) {
        const SIGN: u32 = 1 << 31;
        let flush = |x: u32| if x & f32::INFINITY.to_bits() == 0 { x & SIGN } else { x };
        let zero = |x: u32| f32::from_bits(x) == 0.0;
        let mut exception = false;
        let mut result = [0; N];
        for lane in 0..N {
            let [mut a, mut b, mut c] = [src[0][lane], src[1][lane], src[2][lane]];
            if let Some([product, addend]) = sum.flip {
                (a, c) = (a ^ product, c ^ addend);
            }
            if sum.flush {
                (a, b, c) = (flush(a), flush(b), flush(c));
            }
            if sum.zero_wins {
                a = if zero(b) { a & SIGN } else { a };
                b = if zero(a) { b & SIGN } else { b };
            }
            let [mut x, y, mut z] = [a, b, c].map(f32::from_bits);
            if let Some((factor, [low, span])) = sum.scale {
                let beyond = |x: u32| (x & !SIGN).wrapping_sub(low) < span;
                exception |= beyond(a) | beyond(c);
                (x, z) = (x * factor, z * factor);
            }
            let exact = x.mul_add(y, z);
            result[lane] = if exact.is_nan() { sum.nan } else { flush(exact.to_bits()) };
        }
        (result, exception)
    }
}

/// [`Kind::Avx2`]
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug)]
pub struct Avx2(());

#[cfg(target_arch = "x86_64")]
impl Wide for Avx2 {
    const KIND: Kind = Kind::Avx2;
    const FUSED: bool = true;
    const BY_BITS: bool = false;

    #[inline(always)]
    unsafe fn assume() -> Avx2 {
        Avx2(())
    }

    type Eight = Avx2;

    #[inline(always)]
    fn eight(self) -> Avx2 {
        self
    }

    #[inline(always)]
    fn call<T: Task>(self, task: T) -> T::Output {
        crate::for_avx2! {
            #[inline(never)]
            fn run<T: Task>(wide: Avx2, task: T) -> T::Output {
                task.run(wide)
            }
        }
        // SAFETY: the processor has the level, or there would be no token.
        unsafe { run(self, task) }
    }

    #[inline(always)]
    fn spread_bytes<const N: usize>(self, bits: u64) -> [u8; N] {
        use std::arch::x86_64::{
            _mm256_and_si256, _mm256_cmpeq_epi8, _mm256_set_epi64x, _mm256_set1_epi32, _mm256_set1_epi64x,
            _mm256_shuffle_epi8, _mm256_storeu_si256,
        };
        let mut all = [0; N];
        let (chunks, rest) = all.as_chunks_mut::<32>();
        for (chunk, bytes) in chunks.iter_mut().enumerate() {
            // SAFETY: the processor has AVX2; the store needs no alignment and stays inside 32 bytes.
            unsafe {
                let words = _mm256_set1_epi32((bits >> (32 * chunk)) as i32);
                // Eight times the byte with the lanes' bits, then each lane's bit of it.
                let ones = 0x0101_0101_0101_0101;
                let byte = _mm256_shuffle_epi8(words, _mm256_set_epi64x(3 * ones, 2 * ones, ones, 0));
                let bit = _mm256_set1_epi64x(0x8040_2010_0804_0201_u64 as i64);
                let yes = _mm256_cmpeq_epi8(_mm256_and_si256(byte, bit), bit);
                _mm256_storeu_si256(bytes.as_mut_ptr().cast(), yes);
            }
        }
        for (lane, byte) in rest.iter_mut().enumerate() {
            *byte = if bits >> (32 * chunks.len() + lane) & 1 != 0 { 0xff } else { 0 };
        }
        all
    }

    #[inline(always)]
    fn signs<const N: usize>(self, words: &[u32; N]) -> u64 {
        use std::arch::x86_64::{_mm256_loadu_ps, _mm256_movemask_ps};
        let mut bits = 0;
        for (chunk, eight) in words.as_chunks::<8>().0.iter().enumerate() {
            // SAFETY: the processor has AVX2; the load needs no alignment and stays inside eight words.
            let signs = unsafe { _mm256_movemask_ps(_mm256_loadu_ps(eight.as_ptr().cast())) };
            bits |= u64::from(signs as u32) << (8 * chunk);
        }
        bits
    }

    #[inline(always)]
    fn select<const N: usize>(self, table: &Table, bytes: &[u8; N]) -> u64 {
        use std::arch::x86_64::{_mm_loadu_si128, _mm_movemask_epi8, _mm_shuffle_epi8};
        use std::arch::x86_64::{
            _mm256_broadcastsi128_si256, _mm256_loadu_si256, _mm256_movemask_epi8, _mm256_shuffle_epi8,
        };
        let (chunks, rest) = bytes.as_chunks::<32>();
        let mut bits = 0;
        // SAFETY: the processor has AVX2; the loads need no alignment and stay inside arrays of exactly their size.
        unsafe {
            let table = _mm_loadu_si128(table.0.as_ptr().cast());
            for (chunk, bytes) in chunks.iter().enumerate() {
                let bytes = _mm256_loadu_si256(bytes.as_ptr().cast());
                let yes = _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(table), bytes);
                bits |= u64::from(_mm256_movemask_epi8(yes) as u32) << (32 * chunk);
            }
            if let [bytes] = rest.as_chunks::<16>().0 {
                let yes = _mm_shuffle_epi8(table, _mm_loadu_si128(bytes.as_ptr().cast()));
                bits |= u64::from(_mm_movemask_epi8(yes) as u32) << (32 * chunks.len());
            }
        }
        bits
    }

    #[inline(always)]
    fn pairs<const N: usize, const M: usize>(
        self,
        table: &[[u32; 2]; M],
        places: &[u32; N],
    ) -> [[u32; N]; 2] {
        // SAFETY: the processor has AVX2.
        unsafe { pairs_by_eight(table, places) }
    }

    #[inline(always)]
    fn cut_squares<const N: usize>(self, numbers: &[u32; N]) -> [u32; N] {
        // SAFETY: the processor has AVX2.
        unsafe { cut_squares_by_sixteen(numbers) }
    }

    #[inline(always)]
    fn multiply_add<const N: usize>(self, src: &[[u32; N]; 3], sum: Sum) -> ([u32; N], bool) {
        use std::arch::x86_64::*;
        let mut result = [0; N];
        let mut exception = false;
        // SAFETY: the processor has AVX2 and FMA; loads and stores need no alignment and stay inside eight words.
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
            let [a, b, c] = src.each_ref().map(|row| row.as_chunks::<8>().0);
            for (chunk, result) in result.as_chunks_mut::<8>().0.iter_mut().enumerate() {
                let mut a = _mm256_loadu_si256(a[chunk].as_ptr().cast());
                let mut b = _mm256_loadu_si256(b[chunk].as_ptr().cast());
                let mut c = _mm256_loadu_si256(c[chunk].as_ptr().cast());
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
                let value = _mm256_blendv_epi8(flushed, _mm256_set1_epi32(sum.nan as i32), nan);
                _mm256_storeu_si256(result.as_mut_ptr().cast(), value);
            }
        }
        (result, exception)
    }
}

/// [`Wide::pairs`], eight lanes at a time, with a load a lane; two places leave their vector at once. A tenth of the time that
/// the loop over lanes takes: it moves every word alone.
///
/// # Safety
/// The processor has AVX2.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn pairs_by_eight<const N: usize, const M: usize>(
    table: &[[u32; 2]; M],
    places: &[u32; N],
) -> [[u32; N]; 2] {
    use std::arch::x86_64::*;
    let [mut first, mut second] = [[0; N]; 2];
    let chunks = first.as_chunks_mut::<8>().0.iter_mut().zip(second.as_chunks_mut::<8>().0);
    for (places, (first, second)) in places.as_chunks::<8>().0.iter().zip(chunks) {
        let at = |place: u64| table[place as usize % M].as_ptr();
        let [two, four, six, eight] =
            [0, 1, 2, 3].map(|two: usize| u64::from(places[2 * two]) | u64::from(places[2 * two + 1]) << 32);
        // SAFETY: the processor has AVX2, as the caller says; each load reads a pair, each store eight words.
        unsafe {
            let both = |two: u64| {
                let lower = _mm_castsi128_pd(_mm_loadl_epi64(at(two & 0xffff_ffff).cast()));
                _mm_castpd_ps(_mm_loadh_pd(lower, at(two >> 32).cast()))
            };
            let upper = |lower, upper| _mm256_insertf128_ps::<1>(_mm256_castps128_ps256(lower), upper);
            let (a, b) = (upper(both(two), both(six)), upper(both(four), both(eight)));
            _mm256_storeu_ps(first.as_mut_ptr().cast(), _mm256_shuffle_ps::<0b1000_1000>(a, b));
            _mm256_storeu_ps(second.as_mut_ptr().cast(), _mm256_shuffle_ps::<0b1101_1101>(a, b));
        }
    }
    [first, second]
}

/// [`Wide::cut_squares`], sixteen lanes at a time, in halves: bit n of x, moved to bit n + 2, times x has the part of that
/// bit as the upper half of the product; bit 14 has no place there. The loop over lanes takes four times as long.
///
/// # Safety
/// The processor has AVX2.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn cut_squares_by_sixteen<const N: usize>(numbers: &[u32; N]) -> [u32; N] {
    use std::arch::x86_64::*;
    let mut sums = [0; N];
    for (numbers, sums) in numbers.as_chunks::<16>().0.iter().zip(sums.as_chunks_mut::<16>().0) {
        let [lower, upper] = [&numbers[..8], &numbers[8..]];
        // SAFETY: the processor has AVX2, as the caller says; loads and stores need no alignment and stay inside eight words.
        unsafe {
            let load = |words: &[u32]| _mm256_loadu_si256(words.as_ptr().cast());
            let x = _mm256_packus_epi32(load(lower), load(upper));
            let moved = _mm256_slli_epi16::<2>(x);
            let highest = _mm256_srai_epi16::<15>(_mm256_slli_epi16::<1>(x));
            let mut sum = _mm256_and_si256(x, highest);
            for bit in 2..16 {
                let bit = _mm256_and_si256(moved, _mm256_set1_epi16(1i16.wrapping_shl(bit)));
                sum = _mm256_add_epi16(sum, _mm256_mulhi_epu16(x, bit));
            }
            // As they were packed: words of both chunks in each half.
            let zero = _mm256_setzero_si256();
            _mm256_storeu_si256(sums[..8].as_mut_ptr().cast(), _mm256_unpacklo_epi16(sum, zero));
            _mm256_storeu_si256(sums[8..].as_mut_ptr().cast(), _mm256_unpackhi_epi16(sum, zero));
        }
    }
    sums
}

/// [`Kind::Avx512`]
#[cfg(all(feature = "every-level", target_arch = "x86_64"))]
#[derive(Clone, Copy, Debug)]
pub struct Avx512(());

#[cfg(all(feature = "every-level", target_arch = "x86_64"))]
impl Wide for Avx512 {
    const KIND: Kind = Kind::Avx512;
    const FUSED: bool = true;
    const BY_BITS: bool = true;

    #[inline(always)]
    unsafe fn assume() -> Avx512 {
        Avx512(())
    }

    type Eight = Avx2;

    #[inline(always)]
    fn eight(self) -> Avx2 {
        Avx2(())
    }

    #[inline(always)]
    fn call<T: Task>(self, task: T) -> T::Output {
        crate::for_avx512! {
            #[inline(never)]
            fn run<T: Task>(wide: Avx512, task: T) -> T::Output {
                task.run(wide)
            }
        }
        // SAFETY: the processor has the level, or there would be no token.
        unsafe { run(self, task) }
    }

    #[inline(always)]
    fn spread<const N: usize>(self, bits: u64) -> [u32; N] {
        use std::arch::x86_64::{_mm512_movm_epi32, _mm512_storeu_si512};
        let mut words = [0; N];
        for (chunk, words) in words.as_chunks_mut::<16>().0.iter_mut().enumerate() {
            let bits = (bits >> (16 * chunk)) as u16;
            // SAFETY: the processor has AVX-512 DQ; the store needs no alignment and fills sixteen words.
            unsafe { _mm512_storeu_si512(words.as_mut_ptr().cast(), _mm512_movm_epi32(bits)) };
        }
        words
    }

    #[inline(always)]
    fn spread_bytes<const N: usize>(self, bits: u64) -> [u8; N] {
        use std::arch::x86_64::{_mm_movm_epi8, _mm_storeu_si128};
        let mut bytes = [0; N];
        for (chunk, bytes) in bytes.as_chunks_mut::<16>().0.iter_mut().enumerate() {
            let bits = (bits >> (16 * chunk)) as u16;
            // SAFETY: the processor has AVX-512 BW and VL; the store needs no alignment and fills sixteen bytes.
            unsafe { _mm_storeu_si128(bytes.as_mut_ptr().cast(), _mm_movm_epi8(bits)) };
        }
        bytes
    }

    #[inline(always)]
    fn blend<const N: usize>(self, new: &[u32; N], old: &[u32; N], members: &[u32; N]) -> [u32; N] {
        use std::arch::x86_64::{_mm512_loadu_si512, _mm512_storeu_si512, _mm512_ternarylogic_epi32};
        let mut words = [0; N];
        let [new, old, members] = [new, old, members].map(|row| row.as_chunks::<16>().0);
        for (chunk, words) in words.as_chunks_mut::<16>().0.iter_mut().enumerate() {
            // SAFETY: the processor has AVX-512 F; loads and stores need no alignment and stay inside sixteen words.
            unsafe {
                let new = _mm512_loadu_si512(new[chunk].as_ptr().cast());
                let old = _mm512_loadu_si512(old[chunk].as_ptr().cast());
                let members = _mm512_loadu_si512(members[chunk].as_ptr().cast());
                // Bit members * 4 + new * 2 + old: new where members, else old.
                let value = _mm512_ternarylogic_epi32::<0b1100_1010>(members, new, old);
                _mm512_storeu_si512(words.as_mut_ptr().cast(), value);
            }
        }
        words
    }

    #[inline(always)]
    fn merge<const N: usize>(self, row: &mut Row<N>, new: &[u32; N], set: &Set<N>) {
        use std::arch::x86_64::{
            __m512i, _mm512_load_si512, _mm512_loadu_si512, _mm512_mask_mov_epi32, _mm512_store_si512,
        };
        let news = new.as_chunks::<16>().0;
        for (chunk, (row, new)) in row.0.as_chunks_mut::<16>().0.iter_mut().zip(news).enumerate() {
            let mask = (set.bits >> (16 * chunk)) as u16;
            let row: *mut __m512i = row.as_mut_ptr().cast();
            // SAFETY: the processor has AVX-512 F; each access stays inside 16 words, and those of the row are aligned,
            // because a `Row` is, to 64 bytes.
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
    fn signs<const N: usize>(self, words: &[u32; N]) -> u64 {
        use std::arch::x86_64::{_mm512_loadu_si512, _mm512_movepi32_mask};
        let mut bits = 0;
        for (chunk, words) in words.as_chunks::<16>().0.iter().enumerate() {
            // SAFETY: the processor has AVX-512 F and DQ; the load needs no alignment and stays inside sixteen words.
            let signs = unsafe { _mm512_movepi32_mask(_mm512_loadu_si512(words.as_ptr().cast())) };
            bits |= u64::from(signs) << (16 * chunk);
        }
        bits
    }

    #[inline(always)]
    fn select<const N: usize>(self, table: &Table, bytes: &[u8; N]) -> u64 {
        Avx2(()).select(table, bytes)
    }

    #[inline(always)]
    fn pairs<const N: usize, const M: usize>(
        self,
        table: &[[u32; 2]; M],
        places: &[u32; N],
    ) -> [[u32; N]; 2] {
        Avx2(()).pairs(table, places)
    }

    #[inline(always)]
    fn cut_squares<const N: usize>(self, numbers: &[u32; N]) -> [u32; N] {
        Avx2(()).cut_squares(numbers)
    }

    #[inline(always)]
    fn multiply_add<const N: usize>(self, src: &[[u32; N]; 3], sum: Sum) -> ([u32; N], bool) {
        use std::arch::x86_64::*;
        let mut result = [0; N];
        let mut exception = false;
        // SAFETY: the processor has AVX-512 F and DQ; loads and stores need no alignment and stay inside sixteen words.
        unsafe {
            let (sign, exponent) = (_mm512_set1_epi32(i32::MIN), _mm512_set1_epi32(0x7f80_0000));
            // Clears all but the sign of the lanes of a mask.
            let clear = |x, mask| _mm512_mask_and_epi32(x, mask, x, sign);
            let flush = |x| clear(x, _mm512_testn_epi32_mask(x, exponent));
            let zero = |x| _mm512_cmp_ps_mask::<_CMP_EQ_OQ>(_mm512_castsi512_ps(x), _mm512_setzero_ps());
            let [a, b, c] = src.each_ref().map(|row| row.as_chunks::<16>().0);
            for (chunk, result) in result.as_chunks_mut::<16>().0.iter_mut().enumerate() {
                let mut a = _mm512_loadu_si512(a[chunk].as_ptr().cast());
                let mut b = _mm512_loadu_si512(b[chunk].as_ptr().cast());
                let mut c = _mm512_loadu_si512(c[chunk].as_ptr().cast());
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
                let (mut a, b, mut c) =
                    (_mm512_castsi512_ps(a), _mm512_castsi512_ps(b), _mm512_castsi512_ps(c));
                if let Some((factor, [low, span])) = sum.scale {
                    let beyond = |x| {
                        let magnitude = _mm512_andnot_si512(sign, _mm512_castps_si512(x));
                        let place = _mm512_sub_epi32(magnitude, _mm512_set1_epi32(low as i32));
                        _mm512_cmplt_epu32_mask(place, _mm512_set1_epi32(span as i32))
                    };
                    exception |= beyond(a) | beyond(c) != 0;
                    let factor = _mm512_set1_ps(factor);
                    (a, c) = (_mm512_mul_ps(a, factor), _mm512_mul_ps(c, factor));
                }
                let exact = _mm512_fmadd_ps(a, b, c);
                let nan = _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(exact, exact);
                let one_nan = _mm512_set1_epi32(sum.nan as i32);
                let value = _mm512_mask_mov_epi32(flush(_mm512_castps_si512(exact)), nan, one_nan);
                _mm512_storeu_si512(result.as_mut_ptr().cast(), value);
            }
        }
        (result, exception)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::level::Level;
    use crate::random::Random;

    /// Sets with few, some and all lanes.
    fn sets() -> Vec<u64> {
        let mut random = Random::new(1);
        let some = std::iter::repeat_with(|| random.next_u64()).take(20);
        [0, 1, 1 << 63, 0x8000, 0xffff << 32, u64::MAX >> 1, u64::MAX].into_iter().chain(some).collect()
    }

    fn row<const N: usize>(random: &mut Random) -> [u32; N] {
        std::array::from_fn(|_| random.next())
    }

    /// What the functions give for `N` lanes, as they are defined lane by lane.
    struct AsDefined<const N: usize>;

    impl<const N: usize> Task for AsDefined<N> {
        type Output = ();

        #[inline(always)]
        fn run<W: Wide>(self, wide: W) {
            let mut random = Random::new(2);
            let mut chosen = Set::<N>::NONE;
            for bits in sets() {
                let bits = bits & Set::<N>::ALL;
                let has = |lane: usize| bits >> lane & 1 != 0;
                let words: [u32; N] = std::array::from_fn(|lane| if has(lane) { u32::MAX } else { 0 });
                assert_eq!(wide.spread::<N>(bits), words, "{wide:?} {bits:x}");
                assert_eq!(wide.spread_bytes::<N>(bits), words.map(|word| word as u8), "{wide:?} {bits:x}");
                assert_eq!(wide.signs(&words), bits, "{wide:?}");
                let (new, old) = (row::<N>(&mut random), row::<N>(&mut random));
                let blended: [u32; N] =
                    std::array::from_fn(|lane| if has(lane) { new[lane] } else { old[lane] });
                assert_eq!(wide.blend(&new, &old, &words), blended, "{wide:?} {bits:x}");
                chosen.choose(wide, bits);
                let mut written = Row(old);
                chosen.write(wide, &mut written, &new);
                assert_eq!((written.0, chosen.bits()), (blended, bits), "{wide:?} {bits:x}");
                let signs = (0..N).fold(0, |signs, lane| signs | u64::from(new[lane] >> 31) << lane);
                assert_eq!(wide.signs(&new), signs, "{wide:?}");
                let table: [[u32; 2]; 32] =
                    std::array::from_fn(|place| [new[place % N], !new[place % N] ^ place as u32]);
                let pairs = [0, 1].map(|word: usize| old.map(|place| table[place as usize % 32][word]));
                assert_eq!(wide.pairs(&table, &old), pairs, "{wide:?}");
                let numbers = new.map(|word| word & 0x7fff);
                let squares =
                    numbers.map(|x| (0..15).map(|n| if x >> n & 1 != 0 { x >> (14 - n) } else { 0 }).sum());
                assert_eq!(wide.cut_squares(&numbers), squares, "{wide:?}");
                let (table, bytes) = (new[0] as u16, old.map(|word| word as u8 & 15));
                let selected = (0..N).fold(0, |set, lane| set | u64::from(table >> bytes[lane] & 1) << lane);
                assert_eq!(wide.select(&Table::of(table), &bytes), selected, "{wide:?} {table:x}");
            }
        }
    }

    #[test]
    fn every_level_gives_what_each_function_defines_for_rows_of_16_32_and_64_lanes() {
        for level in Level::available() {
            level.run(AsDefined::<16>);
            level.run(AsDefined::<32>);
            level.run(AsDefined::<64>);
        }
    }

    #[derive(Clone, Copy)]
    struct MultiplyAdd<'a, const N: usize>(&'a [[u32; N]; 3], Sum);

    impl<const N: usize> Task for MultiplyAdd<'_, N> {
        type Output = ([u32; N], bool);

        #[inline(always)]
        fn run<W: Wide>(self, wide: W) -> Self::Output {
            wide.multiply_add(self.0, self.1)
        }
    }

    fn every_level_multiplies_and_adds<const N: usize>() {
        let mut random = Random::new(3);
        let special = [0, 1, 0x007f_ffff, 0x0080_0000, 0x3f80_0000, 0x7f7f_ffff, 0x7f80_0000, 0x7fc0_0000];
        for round in 0..2000 {
            let mut word = || match random.below(4) {
                0 => random.one_of(&special) | random.next() << 31,
                // Close to one another, so that sums cancel.
                1 => 0x3f00_0000 + (random.next() & 0x80ff_0001),
                _ => random.next(),
            };
            let src: [[u32; N]; 3] = std::array::from_fn(|_| std::array::from_fn(|_| word()));
            let sum = Sum {
                flip: (round & 1 != 0).then_some([1 << 31, (round & 16) << 27]),
                flush: round & 2 != 0,
                zero_wins: round & 4 != 0,
                scale: (round & 8 != 0).then_some((2.0, [0x7f00_0000, 0x00ff_ffff])),
                nan: 0x7fff_ffff,
            };
            let expected = Level::BASELINE.run(MultiplyAdd(&src, sum));
            for level in Level::available() {
                let found = level.run(MultiplyAdd(&src, sum));
                assert_eq!(found, expected, "{} {sum:?}", level.name());
            }
        }
    }

    #[test]
    fn every_level_multiplies_and_adds_with_one_rounding() {
        every_level_multiplies_and_adds::<16>();
        every_level_multiplies_and_adds::<32>();
        every_level_multiplies_and_adds::<64>();
    }

    #[test]
    fn a_multiply_add_flushes_lets_zero_win_and_gives_the_one_nan() {
        let lane = |src: [f32; 3], sum: Sum| {
            let rows = src.map(|value| [value.to_bits(); 16]);
            let (words, exception) = Level::best().run(MultiplyAdd(&rows, sum));
            (words[5], exception)
        };
        let plain = Sum { flip: None, flush: false, zero_wins: false, scale: None, nan: 0x7fff_ffff };
        let epsilon = f32::EPSILON;
        // Rounded once: the product alone would lose its last bit.
        let exact = f64::from(1.0 + epsilon) * f64::from(1.0 - epsilon) - 1.0;
        let found = lane([1.0 + epsilon, 1.0 - epsilon, -1.0], plain);
        assert_eq!(found, ((exact as f32).to_bits(), false));
        assert_eq!(lane([0.0, f32::INFINITY, 1.0], plain).0, 0x7fff_ffff);
        assert_eq!(lane([0.0, f32::INFINITY, 1.0], Sum { zero_wins: true, ..plain }).0, 1f32.to_bits());
        assert_eq!(lane([f32::MIN_POSITIVE, 0.5, 0.0], plain).0, 0);
        let denormal = f32::from_bits(0x0040_0000);
        assert_eq!(lane([denormal, 4.0, 0.0], Sum { flush: true, ..plain }).0, 0);
        assert_eq!(lane([2.0, 3.0, 1.0], Sum { flip: Some([1 << 31, 0]), ..plain }).0, (-5f32).to_bits());
        let scale = Some((2.0, [0x7f00_0000, 0x00ff_ffff]));
        assert_eq!(lane([2.0, 3.0, 1.0], Sum { scale, ..plain }), (14f32.to_bits(), false));
        assert!(lane([f32::MAX, 0.5, 1.0], Sum { scale, ..plain }).1);
    }
}
