//! Functions that are implemented separately for each [level](Kind) of the host's vector instructions. The functions
//! process rows whose number of lanes is a multiple of 16. The compiler vectorizes most loops over lanes. It does not
//! reliably vectorize the loops of these functions.

// Unsafe code is required for intrinsics. A comment at each unsafe block states which level has the intrinsics, and
// that all accesses are inside their arrays.
#![allow(unsafe_code)]

use std::fmt;

reconverge_isa::choices! {
    /// The instruction set extensions for which code is compiled, lowest first.
    #[derive(Hash, PartialOrd, Ord)]
    pub enum Kind {
        /// The instructions that every processor of the target has.
        Baseline = "baseline",
        /// x86-64 with AVX2, FMA, BMI1, BMI2, POPCNT and LZCNT. Vectors have 256 bits.
        Avx2 = "avx2",
        /// x86-64 with the extensions of `Avx2` and with AVX-512 F, BW, CD, DQ and VL. Vectors have 512 bits.
        Avx512 = "avx512",
    }
}

/// A task that runs in code compiled for a level.
pub trait Task {
    /// Result of the task.
    type Output;

    /// Runs the task. An implementation must be marked `#[inline(always)]`. It is then compiled as part of the code for
    /// the level.
    fn run<W: Wide>(self, wide: W) -> Self::Output;
}

mod eight;

pub use eight::{Eight, Words8};

/// A token for a level of vector instructions. A value exists only if the processor has the level.
pub trait Wide: Copy + fmt::Debug {
    /// Kind of the level.
    const KIND: Kind;

    /// Whether the level has an instruction for a multiply-add of singles with one rounding. Such an instruction makes
    /// [`multiply_add`] fast.
    const FUSED: bool;

    /// Returns the token without checking the processor.
    ///
    /// # Safety
    /// The processor must have the level.
    unsafe fn assume() -> Self;

    /// Runs a task in a separate function that is compiled for the level.
    fn call<T: Task>(self, task: T) -> T::Output;

    /// The level for code that reads and writes words of single lanes. This code uses vectors of eight lanes. Splitting
    /// one vector of sixteen lanes takes longer than splitting two vectors of eight lanes.
    type Eight: Eight;

    /// Returns the token of the level for eight lanes.
    fn eight(self) -> Self::Eight;

    /// Returns a row of bytes. In the bytes of the lanes of a set, all bits are set. In the bytes of other lanes, all
    /// bits are clear.
    #[inline(always)]
    fn spread_bytes<const N: usize>(self, bits: u64) -> [u8; N] {
        let words = spread::<N>(bits);
        let mut bytes = [0; N];
        for lane in 0..N {
            bytes[lane] = words[lane] as u8;
        }
        bytes
    }

    /// Replaces the words of the lanes in a set by new words. Lane n is in the set if bit n is set. Lanes that are not
    /// in the set keep their words. The code first checks whether the set contains all lanes. In that case, the code
    /// does not read the old words.
    #[inline(always)]
    fn write<const N: usize>(self, row: &mut [u32; N], new: &[u32; N], bits: u64) {
        const { assert!(N <= 64, "a set has at most 64 lanes") };
        if bits == u64::MAX >> (64 - N) {
            *row = *new;
        } else {
            self.merge(row, new, bits);
        }
    }

    /// Writes words as [`Wide::write`] does, for sets that rarely contain all lanes.
    #[inline(always)]
    fn merge<const N: usize>(self, row: &mut [u32; N], new: &[u32; N], bits: u64) {
        let members = spread::<N>(bits);
        for lane in 0..N {
            row[lane] = new[lane] & members[lane] | row[lane] & !members[lane];
        }
    }

    /// Writes the four components of each lane to four rows, one row per component. `values` contains the four
    /// components of each lane, from lane 0 on. Lanes without a value keep their components.
    #[inline(always)]
    fn to_rows<const N: usize>(self, values: &[[u32; 4]], mut rows: [&mut [u32; N]; 4]) {
        let values = &values[..values.len().min(N)];
        let (fours, rest) = values.as_chunks::<4>();
        // The compiler transposes the values of four lanes in vector registers.
        for (place, four) in fours.iter().enumerate() {
            for (component, row) in rows.iter_mut().enumerate() {
                row[4 * place..][..4].copy_from_slice(&four.map(|value| value[component]));
            }
        }
        lanes_to_rows(rest, 4 * fours.len(), rows);
    }

    /// Reads four rows, one row per component. Writes the four components of each lane to `values`, from lane 0 on.
    /// This is the inverse of [`Wide::to_rows`].
    #[inline(always)]
    fn vectors<const N: usize>(self, rows: [&[u32; N]; 4], values: &mut [[u32; 4]]) {
        lanes_from_rows(rows, 0, values);
    }

    /// Returns the set of lanes in which the highest bit of the word is set.
    fn signs<const N: usize>(self, words: &[u32; N]) -> u64;

    /// Returns the lanes whose byte is the index of a true entry of the table. Each byte is a number below 16.
    fn select<const N: usize>(self, table: &Table, bytes: &[u8; N]) -> u64;

    /// Each lane selects a pair of words in a table. Returns both words of that pair for each lane. The index of the
    /// pair is taken modulo the number of pairs.
    #[inline(always)]
    fn pairs<const N: usize, const M: usize>(self, table: &Pairs<M>, places: &[u32; N]) -> [[u32; N]; 2] {
        let mut words = [[0; N]; 2];
        for lane in 0..N {
            [words[0][lane], words[1][lane]] = table.pairs[places[lane] as usize % M];
        }
        words
    }

    /// Returns the squares of 15-bit numbers divided by 2^14, with each partial product truncated. The result for a
    /// number x is the sum of `x >> (14 - n)` over all bits n of x that are set.
    ///
    /// This sum is the sum of 2^(m + n - 14) over all pairs of set bits m and n with m + n of 14 or more. The pairs of
    /// two upper bits, 7 to 14, are the square of these bits. A pair of two lower bits is too small. So the pairs of an
    /// upper and a lower bit remain, and each of these pairs counts twice. They are seven partial products, instead of
    /// fifteen.
    #[inline(always)]
    fn cut_squares<const N: usize>(self, numbers: &[u32; N]) -> [u32; N] {
        let mut sums = [0; N];
        for lane in 0..N {
            let x = numbers[lane];
            let mut mixed = 0;
            for bit in 8..15 {
                mixed += (x & 0x7f) >> (14 - bit) & (x >> bit & 1).wrapping_neg();
            }
            sums[lane] = (x >> 7) * (x >> 7) + 2 * mixed;
        }
        sums
    }
}

/// A table of pairs of words for [`Wide::pairs`]. The number of pairs is 32, 64 or 128.
#[derive(Clone, Debug)]
pub struct Pairs<const M: usize> {
    pairs: [[u32; 2]; M],
    /// The first words of all pairs, and the second words. Only code for AVX-512 reads these words.
    #[cfg_attr(not(all(feature = "every-level", target_arch = "x86_64")), allow(dead_code))]
    words: [[u32; M]; 2],
}

impl<const M: usize> Pairs<M> {
    /// Returns the table of these pairs.
    pub const fn of(pairs: [[u32; 2]; M]) -> Pairs<M> {
        const { assert!(M == 32 || M == 64 || M == 128, "a number of pairs that every level supports") };
        let mut words = [[0; M]; 2];
        let mut place = 0;
        while place < M {
            [words[0][place], words[1][place]] = pairs[place];
            place += 1;
        }
        Pairs { pairs, words }
    }
}

/// The variant of the operation that [`multiply_add`] computes.
#[derive(Clone, Copy, Debug)]
pub struct Sum {
    /// Sign bits that are flipped before the operation. The first element is for the product, and the second element is
    /// for the addend.
    pub flip: Option<[u32; 2]>,
    /// Whether denormal sources count as zero. The flag need not be set if no source is a denormal.
    pub flush: bool,
    /// Whether the product of zero and any number, including infinity and NaN, is zero.
    pub zero_wins: bool,
    /// A power of two, and a range of bit patterns. A and C are multiplied by the power of two. The range has a first
    /// pattern and a size. If the magnitude of A or C has a pattern in this range, the multiplication overflows or
    /// underflows, and the result may be wrong.
    pub scale: Option<(f32, [u32; 2])>,
    /// Bits of the result if the result is a NaN.
    pub nan: u32,
}

/// A truth table for the numbers below 16. Byte n is 0xff if the table is true for the number n, otherwise 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Table(pub [u8; 16]);

impl Table {
    /// Returns the table that is true for number n if bit n is set.
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

/// Returns a row of words. In the words of the lanes of a set, all bits are set. In the words of other lanes, all bits
/// are clear.
#[inline(always)]
pub fn spread<const N: usize>(bits: u64) -> [u32; N] {
    let mut words = [0; N];
    for (chunk, words) in words.as_chunks_mut::<16>().0.iter_mut().enumerate() {
        let bits = (bits >> (16 * chunk)) as u32;
        for lane in 0..16 {
            words[lane] = if bits & 1 << lane != 0 { u32::MAX } else { 0 };
        }
    }
    words
}

/// Loads bytes into the cache of the processor. Other code then reads these bytes. Any address is allowed.
#[inline(always)]
pub fn prefetch(start: *const u8, bytes: usize) {
    for line in (0..bytes).step_by(64) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: a prefetch has no effect on the program, whatever the address is.
        unsafe {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            _mm_prefetch::<_MM_HINT_T0>(start.wrapping_add(line).cast());
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = (start, line);
    }
}

/// Writes the components of each lane to the rows, one row per component. The function starts at lane `first` and
/// processes one lane after another.
#[inline(always)]
fn lanes_to_rows<const N: usize>(values: &[[u32; 4]], first: usize, mut rows: [&mut [u32; N]; 4]) {
    for (lane, value) in (first..N).zip(values) {
        for (row, word) in rows.iter_mut().zip(value) {
            row[lane] = *word;
        }
    }
}

/// Reads the components of each lane from the rows, one row per component. The function starts at lane `first` and
/// processes one lane after another.
#[inline(always)]
fn lanes_from_rows<const N: usize>(rows: [&[u32; N]; 4], first: usize, values: &mut [[u32; 4]]) {
    for (lane, value) in (first..N).zip(values) {
        *value = rows.map(|row| row[lane]);
    }
}

/// Returns A * B + C, rounded once. Denormal results are flushed, and a NaN is replaced by [`Sum::nan`]. If
/// [`Sum::scale`] may have made the value of a lane wrong, the second result is `true`.
///
/// The function has no branch that depends on a lane. So the compiler vectorizes the function.
#[inline(always)]
pub fn multiply_add<const N: usize>(src: &[[u32; N]; 3], sum: Sum) -> ([u32; N], bool) {
    const SIGN: u32 = 1 << 31;
    const EXPONENT: u32 = f32::INFINITY.to_bits();
    let ones = |holds: bool| u32::from(holds).wrapping_neg();
    let flush = |x: u32| x & (SIGN | ones(x & EXPONENT != 0));
    let unless_zero = |x: u32, other: u32| x & (SIGN | ones(f32::from_bits(other) != 0.0));
    let mut exceptions = 0;
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
            (a, b) = (unless_zero(a, b), unless_zero(b, a));
        }
        let (mut x, y, mut z) = (f32::from_bits(a), f32::from_bits(b), f32::from_bits(c));
        if let Some((factor, [low, span])) = sum.scale {
            let beyond = |x: u32| u32::from((x & !SIGN).wrapping_sub(low) < span);
            exceptions |= beyond(a) | beyond(c);
            (x, z) = (x * factor, z * factor);
        }
        let exact = x.mul_add(y, z).to_bits();
        let nan = ones((exact & !SIGN) as i32 > EXPONENT as i32);
        result[lane] = flush(exact) & !nan | sum.nan & nan;
    }
    (result, exceptions != 0)
}

/// Token for the instructions that every processor of the target has.
#[derive(Clone, Copy, Debug)]
pub struct Baseline;

/// Returns bit 0 of each byte as one bit of a number.
#[inline(always)]
fn gather(bytes: [u8; 8]) -> u64 {
    // The product moves bit 0 of byte n to bit 56 + n.
    u64::from_le_bytes(bytes).wrapping_mul(0x0102_0408_1020_4080) >> 56
}

impl Wide for Baseline {
    const KIND: Kind = Kind::Baseline;
    const FUSED: bool = false;

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
            // SAFETY: SSE2 is part of the baseline of x86-64. The load does not require alignment and reads exactly
            // four words.
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
}

/// Defines the constants of a level, and the functions `assume` and `call`. `$compiled` compiles the function that
/// `call` runs.
#[cfg(target_arch = "x86_64")]
macro_rules! extension {
    ($Level:ident, $compiled:ident) => {
        const KIND: Kind = Kind::$Level;
        const FUSED: bool = true;

        #[inline(always)]
        unsafe fn assume() -> $Level {
            $Level(())
        }

        #[inline(always)]
        fn call<T: Task>(self, task: T) -> T::Output {
            crate::$compiled! {
                #[inline(never)]
                fn run<T: Task>(wide: $Level, task: T) -> T::Output {
                    task.run(wide)
                }
            }
            // SAFETY: the processor has the level, because the token exists.
            unsafe { run(self, task) }
        }
    };
}

/// Token for [`Kind::Avx2`].
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug)]
pub struct Avx2(());

#[cfg(target_arch = "x86_64")]
impl Wide for Avx2 {
    extension!(Avx2, for_avx2);

    type Eight = Avx2;

    #[inline(always)]
    fn eight(self) -> Avx2 {
        self
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
            // SAFETY: the processor has AVX2. The store does not require alignment and writes exactly 32 bytes.
            unsafe {
                let words = _mm256_set1_epi32((bits >> (32 * chunk)) as i32);
                // Each lane has one bit in `words`. Copy the byte with this bit to the byte of the lane, and test the
                // bit there.
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
    fn merge<const N: usize>(self, row: &mut [u32; N], new: &[u32; N], bits: u64) {
        use std::arch::x86_64::{
            _mm256_blendv_epi8, _mm256_loadu_si256, _mm256_set_epi32, _mm256_set1_epi32, _mm256_sllv_epi32,
            _mm256_srai_epi32, _mm256_storeu_si256, _mm256_sub_epi32,
        };
        let news = new.as_chunks::<8>().0;
        for (chunk, (row, new)) in row.as_chunks_mut::<8>().0.iter_mut().zip(news).enumerate() {
            // SAFETY: the processor has AVX2. Loads and stores do not require alignment and access exactly eight words.
            unsafe {
                let bits = _mm256_set1_epi32((bits >> (32 * (chunk / 4))) as i32);
                // Shift the bit of each lane to the sign bit of the lane's word. Copy the sign bit to all bits of the
                // word.
                let of_first = _mm256_set_epi32(24, 25, 26, 27, 28, 29, 30, 31);
                let counts = _mm256_sub_epi32(of_first, _mm256_set1_epi32(8 * (chunk as i32 % 4)));
                let members = _mm256_srai_epi32::<31>(_mm256_sllv_epi32(bits, counts));
                let old = _mm256_loadu_si256(row.as_ptr().cast());
                // The blend selects bytes. The compiler would turn a blend of words into a masked store, which is slow
                // on AMD's processors.
                let words = _mm256_blendv_epi8(old, _mm256_loadu_si256(new.as_ptr().cast()), members);
                _mm256_storeu_si256(row.as_mut_ptr().cast(), words);
            }
        }
    }

    #[inline(always)]
    fn to_rows<const N: usize>(self, values: &[[u32; 4]], mut rows: [&mut [u32; N]; 4]) {
        let values = &values[..values.len().min(N)];
        let (eights, rest) = values.as_chunks::<8>();
        for (place, eight) in eights.iter().enumerate() {
            // Consecutive groups of a launch read consecutive values, so the values of the next group are loaded into
            // the cache.
            prefetch(eight.as_ptr().wrapping_add(N).cast(), size_of_val(eight));
            // SAFETY: the processor has AVX2.
            let columns = unsafe { columns_of_eight(eight) };
            for (row, column) in rows.iter_mut().zip(&columns) {
                row.as_chunks_mut::<8>().0[place] = *column;
            }
        }
        lanes_to_rows(rest, 8 * eights.len(), rows);
    }

    #[inline(always)]
    fn vectors<const N: usize>(self, rows: [&[u32; N]; 4], values: &mut [[u32; 4]]) {
        let (eights, rest) = values.as_chunks_mut::<8>();
        let chunks = rows.map(|row| row.as_chunks::<8>().0);
        for (place, eight) in eights.iter_mut().enumerate().take(N / 8) {
            // SAFETY: the processor has AVX2.
            *eight =
                unsafe { eight_of_columns([0, 1, 2, 3].map(|component: usize| &chunks[component][place])) };
        }
        lanes_from_rows(rows, 8 * eights.len(), rest);
    }

    #[inline(always)]
    fn signs<const N: usize>(self, words: &[u32; N]) -> u64 {
        use std::arch::x86_64::{_mm256_loadu_ps, _mm256_movemask_ps};
        let mut bits = 0;
        for (chunk, eight) in words.as_chunks::<8>().0.iter().enumerate() {
            // SAFETY: the processor has AVX2. The load does not require alignment and reads exactly eight words.
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
        // SAFETY: the processor has AVX2. The loads do not require alignment, and each reads exactly one array.
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
    fn pairs<const N: usize, const M: usize>(self, table: &Pairs<M>, places: &[u32; N]) -> [[u32; N]; 2] {
        // SAFETY: the processor has AVX2.
        unsafe { pairs_by_eight(&table.pairs, places) }
    }

    #[inline(always)]
    fn cut_squares<const N: usize>(self, numbers: &[u32; N]) -> [u32; N] {
        // SAFETY: the processor has AVX2.
        unsafe { cut_squares_by_sixteen(numbers) }
    }
}

/// Returns the components of eight lanes as one array per component. A loop that processes four lanes at a time takes
/// three times as long.
///
/// # Safety
/// The processor must have AVX2.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn columns_of_eight(values: &[[u32; 4]; 8]) -> [[u32; 8]; 4] {
    use std::arch::x86_64::*;
    let mut columns = [[0; 8]; 4];
    // SAFETY: the caller guarantees that the processor has AVX2. Loads do not require alignment and read exactly four
    // words. Stores write exactly eight words.
    unsafe {
        let load = |lane: usize| _mm_loadu_si128(values[lane].as_ptr().cast());
        // Each vector contains the components of lanes n and n + 4.
        let both =
            |lane: usize| _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(load(lane)), load(lane + 4));
        let (a, b, c, d) = (both(0), both(1), both(2), both(3));
        let (lower, lower_next) = (_mm256_unpacklo_epi32(a, b), _mm256_unpacklo_epi32(c, d));
        let (upper, upper_next) = (_mm256_unpackhi_epi32(a, b), _mm256_unpackhi_epi32(c, d));
        let all = [
            _mm256_unpacklo_epi64(lower, lower_next),
            _mm256_unpackhi_epi64(lower, lower_next),
            _mm256_unpacklo_epi64(upper, upper_next),
            _mm256_unpackhi_epi64(upper, upper_next),
        ];
        for (column, words) in columns.iter_mut().zip(all) {
            _mm256_storeu_si256(column.as_mut_ptr().cast(), words);
        }
    }
    columns
}

/// Converts the components of eight lanes from one array per component to one array per lane. This is the inverse of
/// [`columns_of_eight`].
///
/// # Safety
/// The processor must have AVX2.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn eight_of_columns(columns: [&[u32; 8]; 4]) -> [[u32; 4]; 8] {
    use std::arch::x86_64::*;
    let mut values = [[0; 4]; 8];
    // SAFETY: the caller guarantees that the processor has AVX2. Loads and stores do not require alignment and access
    // exactly eight words.
    unsafe {
        let load = |component: usize| _mm256_loadu_si256(columns[component].as_ptr().cast());
        let (a, b, c, d) = (load(0), load(1), load(2), load(3));
        // `lower` vectors contain components of lanes 0, 1, 4 and 5. `upper` vectors contain components of lanes 2, 3,
        // 6 and 7. Each vector contains components 0 and 1, or components 2 and 3.
        let (lower, lower_next) = (_mm256_unpacklo_epi32(a, b), _mm256_unpacklo_epi32(c, d));
        let (upper, upper_next) = (_mm256_unpackhi_epi32(a, b), _mm256_unpackhi_epi32(c, d));
        let [first, second, third, fourth] = [
            _mm256_unpacklo_epi64(lower, lower_next),
            _mm256_unpackhi_epi64(lower, lower_next),
            _mm256_unpacklo_epi64(upper, upper_next),
            _mm256_unpackhi_epi64(upper, upper_next),
        ];
        let all = [
            _mm256_permute2x128_si256::<0x20>(first, second),
            _mm256_permute2x128_si256::<0x20>(third, fourth),
            _mm256_permute2x128_si256::<0x31>(first, second),
            _mm256_permute2x128_si256::<0x31>(third, fourth),
        ];
        for (two, words) in values.as_chunks_mut::<2>().0.iter_mut().zip(all) {
            _mm256_storeu_si256(two.as_mut_ptr().cast(), words);
        }
    }
    values
}

/// Implements [`Wide::pairs`] for eight lanes at a time, with one load per lane. The code extracts two indices at a
/// time. A loop over lanes takes ten times as long, because the loop moves every word separately.
///
/// # Safety
/// The processor must have AVX2.
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
        // SAFETY: the caller guarantees that the processor has AVX2. Each load reads one pair, and each store writes
        // eight words.
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

/// Implements [`Wide::cut_squares`] for sixteen lanes at a time, in 16-bit words. For each bit n from 8 to 14 of x, the
/// code multiplies this bit alone by the lower bits of x times four. The upper half of this product is the lower bits
/// shifted right by 14 - n.
///
/// # Safety
/// The processor must have AVX2.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn cut_squares_by_sixteen<const N: usize>(numbers: &[u32; N]) -> [u32; N] {
    use std::arch::x86_64::*;
    let mut sums = [0; N];
    for (numbers, sums) in numbers.as_chunks::<16>().0.iter().zip(sums.as_chunks_mut::<16>().0) {
        let (numbers, sums) = (numbers.as_chunks::<8>().0, sums.as_chunks_mut::<8>().0);
        // SAFETY: the caller guarantees that the processor has AVX2. Loads and stores do not require alignment and
        // access exactly 8 words.
        unsafe {
            let lower = _mm256_loadu_si256(numbers[0].as_ptr().cast());
            let upper = _mm256_loadu_si256(numbers[1].as_ptr().cast());
            let x = _mm256_packus_epi32(lower, upper);
            let below = _mm256_slli_epi16::<2>(_mm256_and_si256(x, _mm256_set1_epi16(0x7f)));
            let mut mixed = _mm256_setzero_si256();
            for bit in 8..15 {
                let bit = _mm256_and_si256(x, _mm256_set1_epi16(1i16.wrapping_shl(bit)));
                mixed = _mm256_add_epi16(mixed, _mm256_mulhi_epu16(bit, below));
            }
            let above = _mm256_srli_epi16::<7>(x);
            let sum = _mm256_add_epi16(_mm256_mullo_epi16(above, above), _mm256_add_epi16(mixed, mixed));
            // After the packing, each 128 bits of the vector contain words of both chunks. Unpacking restores the
            // original order.
            let zero = _mm256_setzero_si256();
            _mm256_storeu_si256(sums[0].as_mut_ptr().cast(), _mm256_unpacklo_epi16(sum, zero));
            _mm256_storeu_si256(sums[1].as_mut_ptr().cast(), _mm256_unpackhi_epi16(sum, zero));
        }
    }
    sums
}

/// Implements [`Wide::cut_squares`] as [`cut_squares_by_sixteen`] does, for 32 lanes at a time.
///
/// # Safety
/// The processor must have AVX-512 F and BW.
#[cfg(all(feature = "every-level", target_arch = "x86_64"))]
#[inline(always)]
unsafe fn cut_squares_by_32<const N: usize>(numbers: &[u32; N]) -> [u32; N] {
    use std::arch::x86_64::*;
    let mut sums = [0; N];
    for (numbers, sums) in numbers.as_chunks::<32>().0.iter().zip(sums.as_chunks_mut::<32>().0) {
        let (numbers, sums) = (numbers.as_chunks::<16>().0, sums.as_chunks_mut::<16>().0);
        // SAFETY: the caller guarantees that the processor has AVX-512 F and BW. Loads and stores do not require alignment and
        // access exactly 16 words.
        unsafe {
            let lower = _mm512_loadu_si512(numbers[0].as_ptr().cast());
            let upper = _mm512_loadu_si512(numbers[1].as_ptr().cast());
            let x = _mm512_packus_epi32(lower, upper);
            let below = _mm512_slli_epi16::<2>(_mm512_and_si512(x, _mm512_set1_epi16(0x7f)));
            let mut mixed = _mm512_setzero_si512();
            for bit in 8..15 {
                let bit = _mm512_and_si512(x, _mm512_set1_epi16(1i16.wrapping_shl(bit)));
                mixed = _mm512_add_epi16(mixed, _mm512_mulhi_epu16(bit, below));
            }
            let above = _mm512_srli_epi16::<7>(x);
            let sum = _mm512_add_epi16(_mm512_mullo_epi16(above, above), _mm512_add_epi16(mixed, mixed));
            // After the packing, each 128 bits of the vector contain words of both chunks. Unpacking restores the
            // original order.
            let zero = _mm512_setzero_si512();
            _mm512_storeu_si512(sums[0].as_mut_ptr().cast(), _mm512_unpacklo_epi16(sum, zero));
            _mm512_storeu_si512(sums[1].as_mut_ptr().cast(), _mm512_unpackhi_epi16(sum, zero));
        }
    }
    sums
}

/// Implements [`Wide::pairs`] for sixteen lanes at a time. The code keeps the table in vector registers. One permutation
/// selects among 32 words, and each further bit of the index selects between two such results. With a load per lane, and
/// with squares for sixteen lanes at a time, the reciprocal of Tesla takes 1.5 times as long.
///
/// # Safety
/// The processor must have AVX-512 F.
#[cfg(all(feature = "every-level", target_arch = "x86_64"))]
#[inline(always)]
unsafe fn pairs_in_registers<const N: usize, const M: usize>(
    table: &Pairs<M>,
    places: &[u32; N],
) -> [[u32; N]; 2] {
    use std::arch::x86_64::*;
    let mut found = [[0; N]; 2];
    for (found, words) in found.iter_mut().zip(&table.words) {
        let words = words.as_chunks::<32>().0;
        for (places, found) in places.as_chunks::<16>().0.iter().zip(found.as_chunks_mut::<16>().0) {
            // SAFETY: the caller guarantees that the processor has AVX-512 F. Loads and stores do not require alignment
            // and access exactly sixteen words.
            unsafe {
                let places = _mm512_loadu_si512(places.as_ptr().cast());
                let mut parts = [places; 4];
                for (part, words) in parts.iter_mut().zip(words) {
                    let lower = _mm512_loadu_si512(words[..16].as_ptr().cast());
                    let upper = _mm512_loadu_si512(words[16..].as_ptr().cast());
                    *part = _mm512_permutex2var_epi32(lower, places, upper);
                }
                let [a, b, c, d] = parts;
                let second = _mm512_test_epi32_mask(places, _mm512_set1_epi32(32));
                let last = _mm512_test_epi32_mask(places, _mm512_set1_epi32(64));
                let selected = match M {
                    32 => a,
                    64 => _mm512_mask_mov_epi32(a, second, b),
                    _ => {
                        let lower = _mm512_mask_mov_epi32(a, second, b);
                        _mm512_mask_mov_epi32(lower, last, _mm512_mask_mov_epi32(c, second, d))
                    }
                };
                _mm512_storeu_si512(found.as_mut_ptr().cast(), selected);
            }
        }
    }
    found
}

/// Token for [`Kind::Avx512`].
#[cfg(all(feature = "every-level", target_arch = "x86_64"))]
#[derive(Clone, Copy, Debug)]
pub struct Avx512(());

#[cfg(all(feature = "every-level", target_arch = "x86_64"))]
impl Wide for Avx512 {
    extension!(Avx512, for_avx512);

    type Eight = Avx2;

    #[inline(always)]
    fn eight(self) -> Avx2 {
        Avx2(())
    }

    #[inline(always)]
    fn spread_bytes<const N: usize>(self, bits: u64) -> [u8; N] {
        Avx2(()).spread_bytes(bits)
    }

    #[inline(always)]
    fn to_rows<const N: usize>(self, values: &[[u32; 4]], rows: [&mut [u32; N]; 4]) {
        Avx2(()).to_rows(values, rows);
    }

    #[inline(always)]
    fn vectors<const N: usize>(self, rows: [&[u32; N]; 4], values: &mut [[u32; 4]]) {
        Avx2(()).vectors(rows, values);
    }

    #[inline(always)]
    fn merge<const N: usize>(self, row: &mut [u32; N], new: &[u32; N], bits: u64) {
        use std::arch::x86_64::{_mm512_loadu_si512, _mm512_mask_mov_epi32, _mm512_storeu_si512};
        let news = new.as_chunks::<16>().0;
        for (chunk, (row, new)) in row.as_chunks_mut::<16>().0.iter_mut().zip(news).enumerate() {
            // SAFETY: the processor has AVX-512 F. Loads and stores do not require alignment and access exactly sixteen
            // words.
            unsafe {
                let (old, new) =
                    (_mm512_loadu_si512(row.as_ptr().cast()), _mm512_loadu_si512(new.as_ptr().cast()));
                let words = _mm512_mask_mov_epi32(old, (bits >> (16 * chunk)) as u16, new);
                _mm512_storeu_si512(row.as_mut_ptr().cast(), words);
            }
        }
    }

    #[inline(always)]
    fn signs<const N: usize>(self, words: &[u32; N]) -> u64 {
        use std::arch::x86_64::{_mm512_loadu_si512, _mm512_movepi32_mask};
        let mut bits = 0;
        for (chunk, words) in words.as_chunks::<16>().0.iter().enumerate() {
            // SAFETY: the processor has AVX-512 F and DQ. The load does not require alignment and reads exactly sixteen
            // words.
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
    fn pairs<const N: usize, const M: usize>(self, table: &Pairs<M>, places: &[u32; N]) -> [[u32; N]; 2] {
        // SAFETY: the processor has AVX-512 F.
        unsafe { pairs_in_registers(table, places) }
    }

    #[inline(always)]
    fn cut_squares<const N: usize>(self, numbers: &[u32; N]) -> [u32; N] {
        if !N.is_multiple_of(32) {
            return Avx2(()).cut_squares(numbers);
        }
        // SAFETY: the processor has AVX-512 F and BW.
        unsafe { cut_squares_by_32(numbers) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::level::Level;
    use crate::random::Random;

    /// Returns sets with few, some and all lanes.
    fn sets() -> Vec<u64> {
        let mut random = Random::new(1);
        let some = std::iter::repeat_with(|| random.next_u64()).take(20);
        [0, 1, 1 << 63, 0x8000, 0xffff << 32, u64::MAX >> 1, u64::MAX].into_iter().chain(some).collect()
    }

    fn row<const N: usize>(random: &mut Random) -> [u32; N] {
        std::array::from_fn(|_| random.next())
    }

    #[inline(always)]
    fn has_pairs<W: Wide, const N: usize, const M: usize>(wide: W, words: &[u32; N], places: &[u32; N]) {
        let table: [[u32; 2]; M] =
            std::array::from_fn(|place| [words[place % N] ^ place as u32, !words[place % N] ^ place as u32]);
        let pairs = [0, 1].map(|word: usize| places.map(|place| table[place as usize % M][word]));
        assert_eq!(wide.pairs(&Pairs::of(table), places), pairs, "{wide:?} {M}");
    }

    /// The task that compares results of functions with expected results. The expected results are computed for single
    /// lanes, from the definition of each function.
    struct AsDefined<const N: usize>;

    impl<const N: usize> Task for AsDefined<N> {
        type Output = ();

        #[inline(always)]
        fn run<W: Wide>(self, wide: W) {
            let mut random = Random::new(2);
            for bits in sets() {
                let bits = bits & u64::MAX >> (64 - N);
                let has = |lane: usize| bits >> lane & 1 != 0;
                let words: [u32; N] = std::array::from_fn(|lane| if has(lane) { u32::MAX } else { 0 });
                assert_eq!(spread::<N>(bits), words, "{wide:?} {bits:x}");
                assert_eq!(wide.spread_bytes::<N>(bits), words.map(|word| word as u8), "{wide:?} {bits:x}");
                assert_eq!(wide.signs(&words), bits, "{wide:?}");
                let (new, old) = (row::<N>(&mut random), row::<N>(&mut random));
                let blended: [u32; N] =
                    std::array::from_fn(|lane| if has(lane) { new[lane] } else { old[lane] });
                let (mut merged, mut written) = (old, old);
                wide.merge(&mut merged, &new, bits);
                wide.write(&mut written, &new, bits);
                assert_eq!((merged, written), (blended, blended), "{wide:?} {bits:x}");
                let signs = (0..N).fold(0, |signs, lane| signs | u64::from(new[lane] >> 31) << lane);
                assert_eq!(wide.signs(&new), signs, "{wide:?}");
                has_pairs::<W, N, 32>(wide, &new, &old);
                has_pairs::<W, N, 64>(wide, &new, &old);
                has_pairs::<W, N, 128>(wide, &new, &old);
                for lanes in [0, 1, 7, 8, 12, N - 1, N, N + 3] {
                    let values: Vec<[u32; 4]> = (0..lanes)
                        .map(|lane| [0, 1, 2, 3].map(|component| new[lane % N] ^ component))
                        .collect();
                    let mut rows = [old; 4];
                    wide.to_rows(&values, rows.each_mut());
                    for (component, row) in rows.iter().enumerate() {
                        let word = |lane: usize| values.get(lane).map_or(old[lane], |value| value[component]);
                        assert_eq!(*row, std::array::from_fn(word), "{wide:?} {lanes} {component}");
                    }
                    let mut back = vec![[99; 4]; lanes];
                    wide.vectors(rows.each_ref(), &mut back);
                    let kept = lanes.min(N);
                    assert_eq!(back[..kept], values[..kept], "{wide:?} {lanes}");
                    assert!(back[kept..].iter().all(|value| *value == [99; 4]), "{wide:?} {lanes}");
                }
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
        fn run<W: Wide>(self, _: W) -> Self::Output {
            multiply_add(self.0, self.1)
        }
    }

    fn every_level_multiplies_and_adds<const N: usize>() {
        let mut random = Random::new(3);
        let special = [0, 1, 0x007f_ffff, 0x0080_0000, 0x3f80_0000, 0x7f7f_ffff, 0x7f80_0000, 0x7fc0_0000];
        for round in 0..2000 {
            let mut word = || match random.below(4) {
                0 => random.one_of(&special) | random.next() << 31,
                // These operands are close to one another. So sums of them often cancel.
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
            // The expected results are those of the baseline. This test compiles the baseline even if the build does
            // not have this level.
            let expected = Baseline.call(MultiplyAdd(&src, sum));
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
        // The result is rounded once. A product that is rounded separately would lose its last bit.
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

    /// Compares the reads of vectors with reads of single lanes. Some of the texels are adjacent.
    struct OfTexels;

    impl Task for OfTexels {
        type Output = ();

        #[inline(always)]
        fn run<W: Wide>(self, wide: W) {
            let eight = wide.eight();
            let texels: Vec<[u32; 4]> = (0..40)
                .map(|texel| [0, 1, 2, 3].map(|at| ((texel * 4 + at) as f32 * 0.37).to_bits()))
                .collect();
            let bytes: Vec<u8> = texels.as_flattened().iter().flat_map(|word| word.to_le_bytes()).collect();
            let weights = [0.25, 0.625].map(|weight| std::array::from_fn(|lane| weight + lane as f32 / 64.0));
            for first in [0u32, 16, 20 * 16, 32 * 16, 33 * 16, 39 * 16] {
                for step in [0, 16, 32, 16u32.wrapping_neg()] {
                    let places =
                        std::array::from_fn(|lane| first.wrapping_add(step.wrapping_mul(lane as u32)));
                    let found = eight.texels_at(&texels, eight.load(&places)).map(|row| eight.store(row));
                    let expected = Baseline.texels_at(&texels, places);
                    assert_eq!(found, expected, "{wide:?} {first} {step}");
                    for row in [0, 16, 160] {
                        let corners =
                            [0, 16, row, row + 16].map(|at| places.map(|place| place.wrapping_add(at)));
                        let of_lanes = weights
                            .map(|weight: [f32; 8]| eight.of_bits(eight.load(&weight.map(f32::to_bits))));
                        let corners_of_lanes = corners.map(|places| eight.load(&places));
                        let found = eight.mean_at(&texels, corners_of_lanes, of_lanes);
                        let expected = Baseline.mean_at(&texels, corners, weights);
                        assert_eq!(
                            found.map(|row| eight.store(row)),
                            expected,
                            "{wide:?} {first} {step} {row}"
                        );
                    }
                }
                for step in [0, 3, 4] {
                    let places = std::array::from_fn(|lane| first + step * lane as u32);
                    if places.iter().all(|place| *place as usize + 4 <= bytes.len()) {
                        let found = eight.store(eight.words_at(&bytes, eight.load(&places)));
                        assert_eq!(found, Baseline.words_at(&bytes, places), "{wide:?} {first} {step}");
                    }
                }
            }
            for exponent in -80..80 {
                let number = 1.7f32 * 2f32.powi(exponent);
                let root = eight.store(eight.bits(eight.near_rsqrt(eight.floats(number))))[0];
                let exact = 1.0 / f64::from(number).sqrt();
                let error = (f64::from(f32::from_bits(root)) - exact) / exact;
                assert!(error.abs() < 1.0 / 2048.0, "{wide:?} {number:e}: {error:e}");
            }
        }
    }

    #[test]
    fn adjacent_texels_are_those_of_single_lanes() {
        for level in Level::available() {
            level.run(OfTexels);
        }
    }
}
