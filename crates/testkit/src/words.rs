//! Words for tests of 32-bit functions: special words, a sample of all words, and all words.

use std::env::{VarError, var};

use reconverge_simt::random::Random;

/// Returns about two hundred special words for floats or integers: zeros, denormals, both ends of the normal range, one
/// and its neighbours, ends of the integer ranges, halves, infinities, and NaN of both kinds. Each number occurs with
/// both signs.
pub fn special_words() -> Vec<u32> {
    let fields = [0, 1, 2, 24, 63, 64, 102, 103, 126, 127, 128, 149, 150, 157, 158, 253, 254, 255];
    let fractions = [0, 1, 0x3f_ffff, 0x40_0000, 0x7f_ffff];
    let patterns = fields.into_iter().flat_map(|field| fractions.map(|fraction| field << 23 | fraction));
    // 0.25, 1.5, 2.5, 3, 6, 7.5, 255.5, 256, -256.5 without its sign, 1 / 2 pi, pi, 0.1
    let numbers: [f32; 12] =
        [0.25, 1.5, 2.5, 3.0, 6.0, 7.5, 255.5, 256.0, 256.5, 0.159_154_94, std::f32::consts::PI, 0.1];
    let magnitudes = patterns.chain(numbers.map(f32::to_bits));
    magnitudes.flat_map(|word| [word, word | 1 << 31]).collect()
}

/// Returns a word for tests of sums of products. `round` and a random number determine whether the function returns a
/// special word or a number with a magnitude near 1. With numbers near 1, the sums are rounded, and terms cancel.
pub fn summand(random: &mut Random, special: &[u32], round: u32) -> u32 {
    match (round + random.below(4)) % 4 {
        0 => random.one_of(special),
        _ => random.next() & 0x83ff_ffff | 0x3c00_0000,
    }
}

/// Number of blocks for all words of 32 bits.
const BLOCKS: u64 = (1 << 32) / BLOCK as u64;

/// Number of words in a block.
pub const BLOCK: usize = 1 << 14;

/// Calls `check` with blocks of [`BLOCK`] words. Returns the number of words.
///
/// By default, there are two kinds of words. The first kind is 2^20 random words. The second kind combines every sign
/// and exponent with fractions that are likely to be special cases. With `RECONVERGE_WORDS=all` in the environment, the
/// words are all words of 32 bits. In this case, the exponent changes fastest from word to word, and the fraction
/// changes slowest. With `RECONVERGE_WORDS=edges`, there are no random words.
///
/// # Panics
/// Panics if `RECONVERGE_WORDS` has a value other than `all` and `edges`.
pub fn each_block(seed: u64, mut check: impl FnMut(&[u32; BLOCK])) -> u64 {
    let mut block = [0; BLOCK];
    let mut random_words = 1 << 20;
    match var("RECONVERGE_WORDS").as_deref() {
        Ok("edges") => random_words = 0,
        Ok("all") => {
            for number in 0..BLOCKS {
                let first = (number * BLOCK as u64) as u32;
                for (word, place) in block.iter_mut().zip(0..) {
                    *word = (first + place).rotate_left(23);
                }
                check(&block);
            }
            return 1 << 32;
        }
        Ok(other) => panic!("RECONVERGE_WORDS: expected all, edges or no variable, found `{other}`"),
        Err(VarError::NotPresent) => {}
        Err(error) => panic!("RECONVERGE_WORDS: {error}"),
    }
    let bits = (0..23).flat_map(|bit| [1 << bit, (1 << bit) - 1, 0x7f_ffff ^ ((1 << bit) - 1)]);
    let fractions: Vec<u32> = bits.chain([0x7f_fffe, 0x40_0001]).collect();
    let edges = (0..512).flat_map(|top| fractions.iter().map(move |fraction| top << 23 | fraction));
    let mut random = Random::new(seed);
    let mut words = edges.chain((0..random_words).map(|_| random.next() << 12 ^ random.next()));
    let mut count = 0;
    // Words at the end that do not fill a block are omitted.
    while block.iter_mut().all(|place| words.next().map(|word| *place = word).is_some()) {
        check(&block);
        count += BLOCK as u64;
    }
    count
}

/// Compares a function with the expected results for every word of [`each_block`]. The arguments of `expected` are the
/// word and the result of the function. So `expected` can also judge the result of the function instead of computing a
/// result. The panic message names the first word with a difference.
///
/// # Panics
/// Panics if the results differ.
pub fn same_of_each(name: &str, found: impl Fn(u32) -> u32, expected: impl Fn(u32, u32) -> u32) {
    let mut results = [0; BLOCK];
    each_block(0x5eed_2400, |words| {
        for (result, word) in results.iter_mut().zip(words) {
            *result = found(*word);
        }
        for (result, word) in results.iter().zip(words) {
            let wanted = expected(*word, *result);
            assert_eq!(*result, wanted, "{name} of {word:#010x} is {result:#010x}, not {wanted:#010x}");
        }
    });
}
