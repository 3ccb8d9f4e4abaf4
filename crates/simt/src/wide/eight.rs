//! Vectors of eight lanes. Some code is written explicitly with these vectors. It performs many steps on few lanes, and
//! its values stay in registers. From loops over rows of sixteen lanes, the compiler would produce a mixture of single
//! words and vectors (rustc 1.95).

use super::Wide;

/// One word for each of eight lanes, in memory.
pub type Words8 = [u32; 8];

/// A level with vectors of eight lanes. A mask is a vector whose words are all ones or all zeros.
pub trait Eight: Wide {
    /// A vector of eight singles.
    type Floats: Copy;
    /// A vector of eight integers, or a mask.
    type Ints: Copy;

    /// Returns a vector with these words.
    fn load(self, words: &Words8) -> Self::Ints;
    /// Returns the words of a vector.
    fn store(self, vector: Self::Ints) -> Words8;
    /// Returns a vector with the same integer in all lanes.
    fn ints(self, value: i32) -> Self::Ints;
    /// Returns a vector with the same single in all lanes.
    fn floats(self, value: f32) -> Self::Floats;
    /// Returns the bits of singles.
    fn bits(self, a: Self::Floats) -> Self::Ints;
    /// Returns the singles with these bits.
    fn of_bits(self, a: Self::Ints) -> Self::Floats;
    /// Converts integers to singles, rounded to nearest.
    fn to_floats(self, a: Self::Ints) -> Self::Floats;
    /// Converts singles to integers, rounded towards zero. The result for a NaN is unspecified.
    fn to_ints(self, a: Self::Floats) -> Self::Ints;
    /// Rounds down to whole numbers.
    fn floor(self, a: Self::Floats) -> Self::Floats;
    /// Returns 1 / sqrt(a) with a relative error below 2^-11, for normal numbers above 0.
    fn near_rsqrt(self, a: Self::Floats) -> Self::Floats;

    /// a + b.
    fn add(self, a: Self::Floats, b: Self::Floats) -> Self::Floats;
    /// a - b.
    fn sub(self, a: Self::Floats, b: Self::Floats) -> Self::Floats;
    /// a * b.
    fn mul(self, a: Self::Floats, b: Self::Floats) -> Self::Floats;
    /// a / b.
    fn div(self, a: Self::Floats, b: Self::Floats) -> Self::Floats;
    /// a * b + c, rounded once. This operation is slow on a level without [`Wide::FUSED`].
    fn mul_add(self, a: Self::Floats, b: Self::Floats, c: Self::Floats) -> Self::Floats;
    /// The smaller operand. If a or b is a NaN, the result is b.
    fn min(self, a: Self::Floats, b: Self::Floats) -> Self::Floats;
    /// The larger operand. If a or b is a NaN, the result is b.
    fn max(self, a: Self::Floats, b: Self::Floats) -> Self::Floats;
    /// Mask of the lanes with a < b.
    fn less(self, a: Self::Floats, b: Self::Floats) -> Self::Ints;
    /// Mask of the lanes with a <= b.
    fn less_equal(self, a: Self::Floats, b: Self::Floats) -> Self::Ints;
    /// Mask of the lanes with a = b.
    fn equal(self, a: Self::Floats, b: Self::Floats) -> Self::Ints;

    /// a + b, modulo 2^32.
    fn add_ints(self, a: Self::Ints, b: Self::Ints) -> Self::Ints;
    /// a - b, modulo 2^32.
    fn sub_ints(self, a: Self::Ints, b: Self::Ints) -> Self::Ints;
    /// a * b, modulo 2^32.
    fn mul_ints(self, a: Self::Ints, b: Self::Ints) -> Self::Ints;
    /// The smaller operand. The operands are signed integers.
    fn min_ints(self, a: Self::Ints, b: Self::Ints) -> Self::Ints;
    /// The larger operand. The operands are signed integers.
    fn max_ints(self, a: Self::Ints, b: Self::Ints) -> Self::Ints;
    /// Mask of the lanes with a > b. The operands are signed integers.
    fn greater_ints(self, a: Self::Ints, b: Self::Ints) -> Self::Ints;
    /// Mask of the lanes with a = b.
    fn equal_ints(self, a: Self::Ints, b: Self::Ints) -> Self::Ints;
    /// a & b.
    fn and(self, a: Self::Ints, b: Self::Ints) -> Self::Ints;
    /// a & !b.
    fn and_not(self, a: Self::Ints, b: Self::Ints) -> Self::Ints;
    /// a | b.
    fn or(self, a: Self::Ints, b: Self::Ints) -> Self::Ints;
    /// a ^ b.
    fn xor(self, a: Self::Ints, b: Self::Ints) -> Self::Ints;
    /// a << count, for counts below 32.
    fn shl(self, a: Self::Ints, count: u32) -> Self::Ints;
    /// a >> count, logical, for counts below 32.
    fn shr(self, a: Self::Ints, count: u32) -> Self::Ints;
    /// a >> count, arithmetic, for counts below 32.
    fn sar(self, a: Self::Ints, count: u32) -> Self::Ints;
    /// Returns the word of a for lanes in the mask, and the word of b for all other lanes.
    fn choose(self, mask: Self::Ints, a: Self::Ints, b: Self::Ints) -> Self::Ints;
    /// Returns the set of lanes in which the highest bit of the word is set.
    fn lanes(self, a: Self::Ints) -> u32;

    /// Returns a set of lanes as a mask.
    #[inline(always)]
    fn mask(self, lanes: u32) -> Self::Ints {
        let bits = self.load(&[1, 2, 4, 8, 16, 32, 64, 128]);
        self.equal_ints(self.and(self.ints(lanes as i32), bits), bits)
    }

    /// Returns the little-endian words at these offsets in bytes.
    ///
    /// # Panics
    /// Panics if a word is not inside the bytes.
    #[inline(always)]
    fn words_at(self, bytes: &[u8], places: Self::Ints) -> Self::Ints {
        self.check_places(bytes.len().checked_sub(size_of::<u32>()), places);
        let mut words = [0; 8];
        for (word, place) in words.iter_mut().zip(self.store(places)) {
            // SAFETY: `bytes` contains four bytes from the offset on. The load does not require alignment.
            let found = unsafe { bytes.as_ptr().add(place as usize).cast::<u32>().read_unaligned() };
            *word = u32::from_le(found);
        }
        self.load(&words)
    }

    /// Returns two little-endian words per lane: the word at the offset in bytes, and the word directly after it.
    ///
    /// # Panics
    /// Panics if a word is not inside the bytes.
    #[inline(always)]
    fn pairs_at(self, bytes: &[u8], places: Self::Ints) -> [Self::Ints; 2] {
        let behind = self.add_ints(places, self.ints(size_of::<u32>() as i32));
        [self.words_at(bytes, places), self.words_at(bytes, behind)]
    }

    /// Returns the results of [`Eight::pairs_at`] for two offsets per lane. Usually the distance between the two
    /// offsets is the same in all lanes. The function is fast in this case.
    ///
    /// # Panics
    /// Panics if a word is not inside the bytes.
    #[inline(always)]
    fn two_pairs_at(self, bytes: &[u8], places: [Self::Ints; 2]) -> [[Self::Ints; 2]; 2] {
        [self.pairs_at(bytes, places[0]), self.pairs_at(bytes, places[1])]
    }

    /// Returns byte number `byte`, 0 to 3, of each word, zero-extended.
    #[inline(always)]
    fn byte(self, words: Self::Ints, byte: u32) -> Self::Ints {
        self.and(self.shr(words, 8 * (byte & 3)), self.ints(0xff))
    }

    /// Returns the texels at these offsets in bytes. The result has one vector per component. Each offset must be a
    /// multiple of 16. An offset past the last texel reads the last texel.
    ///
    /// # Panics
    /// Panics if the list is empty.
    #[inline(always)]
    fn texels_at(self, texels: &[[u32; 4]], places: Self::Ints) -> [Self::Ints; 4] {
        let last = texels.len() - 1;
        let found =
            self.store(places).map(|place| texels[(place as usize / size_of::<[u32; 4]>()).min(last)]);
        [0, 1, 2, 3].map(|component: usize| self.load(&found.map(|texel| texel[component])))
    }

    /// Returns the [mean](Eight::mean) of four texels per lane. The first weight mixes the first two texels. The first
    /// weight also mixes the last two texels. The second weight mixes these two results.
    ///
    /// # Panics
    /// Panics if the list is empty.
    #[inline(always)]
    fn mean_at(
        self,
        texels: &[[u32; 4]],
        [a, b, c, d]: [Self::Ints; 4],
        [along_s, along_t]: [Self::Floats; 2],
    ) -> [Self::Ints; 4] {
        let (a, b) = (self.texels_at(texels, a), self.texels_at(texels, b));
        let (c, d) = (self.texels_at(texels, c), self.texels_at(texels, d));
        self.mean(along_t, self.mean(along_s, a, b), self.mean(along_s, c, d))
    }

    /// Returns a * (1 - weight) + b * weight for singles. Each operation is rounded.
    #[inline(always)]
    fn mean<const C: usize>(
        self,
        weight: Self::Floats,
        a: [Self::Ints; C],
        b: [Self::Ints; C],
    ) -> [Self::Ints; C] {
        let rest = self.sub(self.floats(1.0), weight);
        let mut mean = a;
        for channel in 0..C {
            let (a, b) = (self.of_bits(a[channel]), self.of_bits(b[channel]));
            mean[channel] = self.bits(self.add(self.mul(a, rest), self.mul(b, weight)));
        }
        mean
    }

    /// Checks that all offsets are at most `last`. If `last` is `None`, no offset is valid.
    #[inline(always)]
    fn check_places(self, last: Option<usize>, places: Self::Ints) {
        let last = last.map_or(-1, |last| i32::try_from(last).unwrap_or(i32::MAX));
        // An offset whose sign bit is set is, as an unsigned number, larger than all valid offsets.
        let beyond = self.or(self.greater_ints(places, self.ints(last)), places);
        assert!(self.lanes(beyond) == 0, "each offset is inside the bytes");
    }
}

/// Defines functions that compute each lane separately. The argument after `;` is a count that all lanes share.
macro_rules! by_lane {
    ($($name:ident($($argument:ident: $kind:ident),+ $(; $count:ident)?) -> $result:ident = $value:expr;)+) => {
        $(
            #[inline(always)]
            fn $name(self, $($argument: Self::$kind),+ $(, $count: u32)?) -> Self::$result {
                std::array::from_fn(|lane| {
                    $(let $argument = $argument[lane];)+
                    $value
                })
            }
        )+
    };
}

/// Returns a word in which all bits are set for `true`, and 0 for `false`.
#[inline(always)]
fn mask(yes: bool) -> u32 {
    if yes { u32::MAX } else { 0 }
}

impl Eight for super::Baseline {
    type Floats = [f32; 8];
    type Ints = Words8;

    #[inline(always)]
    fn load(self, words: &Words8) -> Words8 {
        *words
    }

    #[inline(always)]
    fn store(self, vector: Words8) -> Words8 {
        vector
    }

    #[inline(always)]
    fn ints(self, value: i32) -> Words8 {
        [value as u32; 8]
    }

    #[inline(always)]
    fn floats(self, value: f32) -> [f32; 8] {
        [value; 8]
    }

    by_lane! {
        bits(a: Floats) -> Ints = a.to_bits();
        of_bits(a: Ints) -> Floats = f32::from_bits(a);
        to_floats(a: Ints) -> Floats = a as i32 as f32;
        to_ints(a: Floats) -> Ints = a as i32 as u32;
        floor(a: Floats) -> Floats = libm::floorf(a);
        near_rsqrt(a: Floats) -> Floats = 1.0 / libm::sqrtf(a);
        add(a: Floats, b: Floats) -> Floats = a + b;
        sub(a: Floats, b: Floats) -> Floats = a - b;
        mul(a: Floats, b: Floats) -> Floats = a * b;
        div(a: Floats, b: Floats) -> Floats = a / b;
        mul_add(a: Floats, b: Floats, c: Floats) -> Floats = a.mul_add(b, c);
        min(a: Floats, b: Floats) -> Floats = if a < b { a } else { b };
        max(a: Floats, b: Floats) -> Floats = if a > b { a } else { b };
        less(a: Floats, b: Floats) -> Ints = mask(a < b);
        less_equal(a: Floats, b: Floats) -> Ints = mask(a <= b);
        equal(a: Floats, b: Floats) -> Ints = mask(a == b);
        add_ints(a: Ints, b: Ints) -> Ints = a.wrapping_add(b);
        sub_ints(a: Ints, b: Ints) -> Ints = a.wrapping_sub(b);
        mul_ints(a: Ints, b: Ints) -> Ints = a.wrapping_mul(b);
        min_ints(a: Ints, b: Ints) -> Ints = (a as i32).min(b as i32) as u32;
        max_ints(a: Ints, b: Ints) -> Ints = (a as i32).max(b as i32) as u32;
        greater_ints(a: Ints, b: Ints) -> Ints = mask(a as i32 > b as i32);
        equal_ints(a: Ints, b: Ints) -> Ints = mask(a == b);
        and(a: Ints, b: Ints) -> Ints = a & b;
        and_not(a: Ints, b: Ints) -> Ints = a & !b;
        or(a: Ints, b: Ints) -> Ints = a | b;
        xor(a: Ints, b: Ints) -> Ints = a ^ b;
        shl(a: Ints; count) -> Ints = a << count;
        shr(a: Ints; count) -> Ints = a >> count;
        sar(a: Ints; count) -> Ints = (a as i32 >> count) as u32;
        choose(which: Ints, a: Ints, b: Ints) -> Ints = a & which | b & !which;
    }

    #[inline(always)]
    fn lanes(self, a: Words8) -> u32 {
        self.signs(&a) as u32
    }
}

/// Defines functions that consist of one expression with intrinsics.
#[cfg(target_arch = "x86_64")]
macro_rules! by_intrinsic {
    ($($name:ident($($argument:ident: $kind:ty),+) -> $result:ty = $value:expr;)+) => {
        $(
            #[inline(always)]
            fn $name(self, $($argument: $kind),+) -> $result {
                // SAFETY: the processor has AVX2 and FMA, because the token exists.
                unsafe { $value }
            }
        )+
    };
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::{__m256 as F, __m256i as I, *};

    use super::super::{Avx2, prefetch};
    use super::{Eight, Words8};

    /// Distance, in words, from the texels of the current group to the prefetched texels of a later group. The distance
    /// is the size of the texels of 64 lanes.
    const AHEAD: usize = 64 * 4;

    impl Eight for Avx2 {
        type Floats = __m256;
        type Ints = __m256i;

        #[inline(always)]
        fn load(self, words: &Words8) -> __m256i {
            // SAFETY: the processor has AVX2. The load does not require alignment and reads exactly eight words.
            unsafe { _mm256_loadu_si256(words.as_ptr().cast()) }
        }

        #[inline(always)]
        fn store(self, vector: __m256i) -> Words8 {
            let mut words = [0; 8];
            // SAFETY: the processor has AVX2. The store does not require alignment and writes exactly eight words.
            unsafe { _mm256_storeu_si256(words.as_mut_ptr().cast(), vector) };
            words
        }

        by_intrinsic! {
            bits(a: F) -> I = _mm256_castps_si256(a);
            of_bits(a: I) -> F = _mm256_castsi256_ps(a);
            to_floats(a: I) -> F = _mm256_cvtepi32_ps(a);
            to_ints(a: F) -> I = _mm256_cvttps_epi32(a);
            floor(a: F) -> F = _mm256_floor_ps(a);
            near_rsqrt(a: F) -> F = _mm256_rsqrt_ps(a);
            add(a: F, b: F) -> F = _mm256_add_ps(a, b);
            sub(a: F, b: F) -> F = _mm256_sub_ps(a, b);
            mul(a: F, b: F) -> F = _mm256_mul_ps(a, b);
            div(a: F, b: F) -> F = _mm256_div_ps(a, b);
            mul_add(a: F, b: F, c: F) -> F = _mm256_fmadd_ps(a, b, c);
            min(a: F, b: F) -> F = _mm256_min_ps(a, b);
            max(a: F, b: F) -> F = _mm256_max_ps(a, b);
            less(a: F, b: F) -> I = _mm256_castps_si256(_mm256_cmp_ps::<_CMP_LT_OQ>(a, b));
            less_equal(a: F, b: F) -> I = _mm256_castps_si256(_mm256_cmp_ps::<_CMP_LE_OQ>(a, b));
            equal(a: F, b: F) -> I = _mm256_castps_si256(_mm256_cmp_ps::<_CMP_EQ_OQ>(a, b));
            add_ints(a: I, b: I) -> I = _mm256_add_epi32(a, b);
            sub_ints(a: I, b: I) -> I = _mm256_sub_epi32(a, b);
            mul_ints(a: I, b: I) -> I = _mm256_mullo_epi32(a, b);
            min_ints(a: I, b: I) -> I = _mm256_min_epi32(a, b);
            max_ints(a: I, b: I) -> I = _mm256_max_epi32(a, b);
            greater_ints(a: I, b: I) -> I = _mm256_cmpgt_epi32(a, b);
            equal_ints(a: I, b: I) -> I = _mm256_cmpeq_epi32(a, b);
            and(a: I, b: I) -> I = _mm256_and_si256(a, b);
            and_not(a: I, b: I) -> I = _mm256_andnot_si256(b, a);
            or(a: I, b: I) -> I = _mm256_or_si256(a, b);
            xor(a: I, b: I) -> I = _mm256_xor_si256(a, b);
            choose(which: I, a: I, b: I) -> I = _mm256_blendv_epi8(b, a, which);
            ints(value: i32) -> I = _mm256_set1_epi32(value);
            floats(value: f32) -> F = _mm256_set1_ps(value);
            shl(a: I, count: u32) -> I = _mm256_sll_epi32(a, _mm_cvtsi32_si128(count as i32));
            shr(a: I, count: u32) -> I = _mm256_srl_epi32(a, _mm_cvtsi32_si128(count as i32));
            sar(a: I, count: u32) -> I = _mm256_sra_epi32(a, _mm_cvtsi32_si128(count as i32));
            lanes(a: I) -> u32 = _mm256_movemask_ps(_mm256_castsi256_ps(a)) as u32;
        }

        #[inline(always)]
        fn words_at(self, bytes: &[u8], places: __m256i) -> __m256i {
            self.check_places(bytes.len().checked_sub(4), places);
            if let Some(first) = first_of(places, 4) {
                // SAFETY: the processor has AVX2. The words of all lanes are contiguous and inside the bytes.
                return unsafe { _mm256_loadu_si256(bytes.as_ptr().wrapping_add(first).cast()) };
            }
            let at = places_of(places).map(|place| bytes.as_ptr().wrapping_add(place).cast::<i32>());
            // SAFETY: the processor has AVX2, and `bytes` contains four bytes from each offset on.
            unsafe {
                let word = |number: usize| at[number].read_unaligned();
                _mm256_setr_epi32(word(0), word(1), word(2), word(3), word(4), word(5), word(6), word(7))
            }
        }

        #[inline(always)]
        fn pairs_at(self, bytes: &[u8], places: __m256i) -> [__m256i; 2] {
            self.check_places(bytes.len().checked_sub(8), places);
            // SAFETY: the processor has AVX2, and `bytes` contains eight bytes from each offset on.
            unsafe { pairs(bytes.as_ptr(), &places_of(places)) }
        }

        #[inline(always)]
        fn two_pairs_at(self, bytes: &[u8], places: [__m256i; 2]) -> [[__m256i; 2]; 2] {
            let [first, second] = places;
            self.check_places(bytes.len().checked_sub(8), first);
            self.check_places(bytes.len().checked_sub(8), second);
            // SAFETY: the processor has AVX2, and `bytes` contains eight bytes from each offset on. Suppose that the
            // distance between the two offsets is the same in all lanes. Each second offset is then the first offset
            // plus this distance.
            unsafe {
                let distance = _mm256_sub_epi32(second, first);
                let of_first = _mm256_broadcastd_epi32(_mm256_castsi256_si128(distance));
                let at = places_of(first);
                if self.lanes(_mm256_cmpeq_epi32(distance, of_first)) == 0xff {
                    let distance = _mm_cvtsi128_si32(_mm256_castsi256_si128(distance)) as isize;
                    [pairs(bytes.as_ptr(), &at), pairs(bytes.as_ptr().wrapping_offset(distance), &at)]
                } else {
                    [pairs(bytes.as_ptr(), &at), pairs(bytes.as_ptr(), &places_of(second))]
                }
            }
        }

        #[inline(always)]
        fn byte(self, words: __m256i, byte: u32) -> __m256i {
            // For each lane, the number of the selected byte, followed by three numbers that select zeros.
            let which = (byte & 3) as i32 | 0x8080_8000_u32 as i32;
            // SAFETY: the processor has AVX2.
            unsafe {
                let lanes = _mm256_setr_epi32(0, 4, 8, 12, 0, 4, 8, 12);
                _mm256_shuffle_epi8(words, _mm256_add_epi32(_mm256_set1_epi32(which), lanes))
            }
        }

        #[inline(always)]
        fn texels_at(self, texels: &[[u32; 4]], places: __m256i) -> [__m256i; 4] {
            let places = limited(texels, places);
            // If the texels of the lanes are contiguous, one address is sufficient for all lanes. With one address, 64
            // lanes take 64 ns instead of 83 ns.
            let at = match first_of(places, size_of::<[u32; 4]>() as i32) {
                Some(first) if has_distances(texels) => {
                    let at = texels.as_ptr().wrapping_byte_add(first).cast();
                    // SAFETY: the processor has AVX2, and the list contains the texels of all lanes.
                    return unsafe { consecutive(at) };
                }
                _ => at_places(texels, places),
            };
            // SAFETY: the processor has AVX2, and each address is that of a texel in the list.
            unsafe { by_component([of_two::<0>(&at), of_two::<1>(&at), of_two::<2>(&at), of_two::<3>(&at)]) }
        }

        /// Mixes the texels of two lanes in one vector. Then moves the values of one component for all lanes into one
        /// vector. This order requires eight moves. With moves before mixing, 32 moves would be necessary, and the
        /// texels of all lanes would have to be in registers at the same time.
        #[inline(always)]
        fn mean_at(
            self,
            texels: &[[u32; 4]],
            [a, b, c, d]: [__m256i; 4],
            weights: [__m256; 2],
        ) -> [__m256i; 4] {
            let [a, b, c, d] =
                [limited(texels, a), limited(texels, b), limited(texels, c), limited(texels, d)];
            let texel = self.ints(size_of::<[u32; 4]>() as i32);
            let row = self.sub_ints(c, a);
            // SAFETY: vectors of this type exist only in code for AVX2.
            let first = unsafe { _mm256_castsi256_si128(row) };
            // SAFETY: vectors of this type exist only in code for AVX2.
            let rows = unsafe { _mm256_broadcastd_epi32(first) };
            let same = self.and(
                self.and(
                    self.equal_ints(self.sub_ints(b, a), texel),
                    self.equal_ints(self.sub_ints(d, c), texel),
                ),
                self.equal_ints(row, rows),
            );
            let at = at_places(texels, a);
            if self.lanes(same) == 0xff && has_distances(texels) {
                // SAFETY: vectors of this type exist only in code for AVX2.
                let row = unsafe { _mm_cvtsi128_si32(first) } as isize;
                // In all lanes, the other three texels have the same distances from the first texel. With this
                // shortcut, enlarging a picture takes 15 % less time.
                let corners = [
                    at,
                    at.map(|at| at.wrapping_add(4)),
                    at.map(|at| at.wrapping_byte_offset(row)),
                    at.map(|at| at.wrapping_byte_offset(row).wrapping_add(4)),
                ];
                // SAFETY: the processor has AVX2, and the list contains each texel.
                return unsafe { mean_of(self, &corners, weights) };
            }
            let corners = [at, at_places(texels, b), at_places(texels, c), at_places(texels, d)];
            // SAFETY: the processor has AVX2, and each address is that of a texel in the list.
            unsafe { mean_of(self, &corners, weights) }
        }
    }

    /// Returns the means of the texels of eight lanes, as [`Eight::mean_at`] does.
    ///
    /// # Safety
    /// The four words at each address must be valid for reads.
    #[inline(always)]
    unsafe fn mean_of(wide: Avx2, corners: &[[*const f32; 8]; 4], weights: [__m256; 2]) -> [__m256i; 4] {
        let one = wide.floats(1.0);
        let rest = [wide.sub(one, weights[0]), wide.sub(one, weights[1])];
        /// Returns a vector with the means of lanes n and n + 4.
        macro_rules! two {
            ($n:literal) => {{
                const ALL: i32 = 0b0101_0101 * $n;
                let [a, b, c, d] = [
                    of_two::<$n>(&corners[0]),
                    of_two::<$n>(&corners[1]),
                    of_two::<$n>(&corners[2]),
                    of_two::<$n>(&corners[3]),
                ];
                let (weight, rest_s) =
                    (_mm256_permute_ps::<ALL>(weights[0]), _mm256_permute_ps::<ALL>(rest[0]));
                let low = wide.add(wide.mul(a, rest_s), wide.mul(b, weight));
                let high = wide.add(wide.mul(c, rest_s), wide.mul(d, weight));
                let (weight, rest_t) =
                    (_mm256_permute_ps::<ALL>(weights[1]), _mm256_permute_ps::<ALL>(rest[1]));
                wide.add(wide.mul(low, rest_t), wide.mul(high, weight))
            }};
        }
        // SAFETY: the caller guarantees that the processor has AVX2; otherwise the token would not exist.
        unsafe { by_component([two!(0), two!(1), two!(2), two!(3)]) }
    }

    /// Limits byte offsets to the texels of a list. [`Eight::texels_at`] reads texels at the limited offsets.
    #[inline(always)]
    fn limited(texels: &[[u32; 4]], places: __m256i) -> __m256i {
        let last = size_of_val(texels) - size_of::<[u32; 4]>();
        let last = u32::try_from(last).unwrap_or(!15) as i32;
        // SAFETY: a vector of this type exists only in code for AVX2.
        unsafe { _mm256_min_epu32(places, _mm256_set1_epi32(last)) }
    }

    /// Returns whether the distance between any two texels of a list fits into a signed word.
    #[inline(always)]
    fn has_distances(texels: &[[u32; 4]]) -> bool {
        i32::try_from(size_of_val(texels)).is_ok()
    }

    /// Returns the texels at offsets that [`limited`] has returned.
    #[inline(always)]
    fn at_places(texels: &[[u32; 4]], places: __m256i) -> [*const f32; 8] {
        places_of(places).map(|place| texels.as_ptr().wrapping_byte_add(place).cast())
    }

    /// If the offset of each lane is `step` bytes after the offset of the preceding lane, returns the first offset.
    #[inline(always)]
    fn first_of(places: __m256i, step: i32) -> Option<usize> {
        // SAFETY: a vector of this type exists only in code for AVX2.
        unsafe {
            let first = _mm256_castsi256_si128(places);
            let lanes =
                _mm256_mullo_epi32(_mm256_set1_epi32(step), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
            let wanted = _mm256_add_epi32(_mm256_broadcastd_epi32(first), lanes);
            let same = _mm256_movemask_epi8(_mm256_cmpeq_epi32(places, wanted)) == -1;
            same.then(|| _mm_cvtsi128_si32(first) as u32 as usize)
        }
    }

    /// Returns the components of eight contiguous texels.
    ///
    /// # Safety
    /// The processor must have AVX2. The texels at the address must be valid for reads.
    #[inline(always)]
    unsafe fn consecutive(texels: *const f32) -> [__m256i; 4] {
        // The next group often reads the texels directly after the texels of this group.
        prefetch(texels.wrapping_add(AHEAD).cast(), 8 * size_of::<[u32; 4]>());
        let at = [0, 1, 2, 3, 4, 5, 6, 7].map(|number: usize| texels.wrapping_add(4 * number));
        // SAFETY: the caller guarantees that the processor has AVX2 and that the addresses are valid.
        unsafe { by_component([of_two::<0>(&at), of_two::<1>(&at), of_two::<2>(&at), of_two::<3>(&at)]) }
    }

    /// Returns the texels of lanes N and N + 4.
    ///
    /// # Safety
    /// The processor must have AVX2, and four words must be readable at each address.
    #[inline(always)]
    unsafe fn of_two<const N: usize>(at: &[*const f32; 8]) -> __m256 {
        // SAFETY: the caller guarantees the level and the addresses. The loads do not require alignment.
        unsafe {
            _mm256_insertf128_ps::<1>(_mm256_castps128_ps256(_mm_loadu_ps(at[N])), _mm_loadu_ps(at[N + 4]))
        }
    }

    /// Returns texels as one vector per component. The argument with number n contains the texels of lanes n and n + 4.
    ///
    /// # Safety
    /// The processor must have AVX2.
    #[inline(always)]
    unsafe fn by_component([a, b, c, d]: [__m256; 4]) -> [__m256i; 4] {
        // SAFETY: the caller guarantees that the processor has AVX2.
        unsafe {
            let (ab, cd) = (_mm256_unpacklo_ps(a, b), _mm256_unpacklo_ps(c, d));
            let (ab_high, cd_high) = (_mm256_unpackhi_ps(a, b), _mm256_unpackhi_ps(c, d));
            [
                _mm256_castps_si256(_mm256_shuffle_ps::<0b0100_0100>(ab, cd)),
                _mm256_castps_si256(_mm256_shuffle_ps::<0b1110_1110>(ab, cd)),
                _mm256_castps_si256(_mm256_shuffle_ps::<0b0100_0100>(ab_high, cd_high)),
                _mm256_castps_si256(_mm256_shuffle_ps::<0b1110_1110>(ab_high, cd_high)),
            ]
        }
    }

    /// Returns the two words in the eight bytes at each offset from `start`.
    ///
    /// # Safety
    /// The processor must have AVX2, and eight bytes must be readable at each offset from `start`.
    #[inline(always)]
    unsafe fn pairs(start: *const u8, places: &[usize; 8]) -> [__m256i; 2] {
        /// Loads the words at the offsets of two lanes.
        macro_rules! two {
            ($a:expr, $b:expr) => {{
                let lower = _mm_loadl_epi64(start.wrapping_add(places[$a]).cast());
                _mm_castpd_ps(_mm_loadh_pd(_mm_castsi128_pd(lower), start.wrapping_add(places[$b]).cast()))
            }};
        }
        // SAFETY: the caller guarantees the level and the addresses.
        unsafe {
            let x = _mm256_insertf128_ps::<1>(_mm256_castps128_ps256(two!(0, 1)), two!(4, 5));
            let y = _mm256_insertf128_ps::<1>(_mm256_castps128_ps256(two!(2, 3)), two!(6, 7));
            let low = _mm256_shuffle_ps::<0b1000_1000>(x, y);
            let high = _mm256_shuffle_ps::<0b1101_1101>(x, y);
            [_mm256_castps_si256(low), _mm256_castps_si256(high)]
        }
    }

    /// Returns the offsets in a vector as numbers. Two offsets are extracted together.
    #[inline(always)]
    fn places_of(places: __m256i) -> [usize; 8] {
        // SAFETY: a vector of this type exists only in code for AVX2.
        unsafe {
            let (lower, upper) = (_mm256_castsi256_si128(places), _mm256_extracti128_si256::<1>(places));
            let [a, b] = [_mm_cvtsi128_si64(lower), _mm_extract_epi64::<1>(lower)];
            let [c, d] = [_mm_cvtsi128_si64(upper), _mm_extract_epi64::<1>(upper)];
            let [a, b, c, d] = [a, b, c, d].map(|two| [two as u32 as usize, (two as u64 >> 32) as usize]);
            [a[0], a[1], b[0], b[1], c[0], c[1], d[0], d[1]]
        }
    }
}
