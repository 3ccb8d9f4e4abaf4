//! Creates cases from existing cases. The functions change, copy, insert and remove bits, bytes, words and ranges.

use reconverge_simt::random::Random;

/// Words near limits and sign bits.
const WORDS: [u32; 12] =
    [0, 1, 4, 0xff, 0x7fff, 0xffff, 0x1_0000, 0x7fff_ffff, 0x8000_0000, 0xffff_fff0, 0xffff_fffe, u32::MAX];

/// Bytes that are common in texts.
const TEXT: &[u8] = b"0123456789abcdefxrctsuv.,:;@#$%()[]{}<>+-*/|=_\"' \n";

/// Maximum length of a created case, in bytes.
const MOST: usize = 1 << 16;

/// Returns a random seed with 1 to 8 changes. `seeds` contains at least one seed.
pub fn mutated(seeds: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let seed = |random: &mut Random| &seeds[random.next() as usize % seeds.len()];
    let mut bytes = seed(random).clone();
    for _ in 0..1 << random.below(4) {
        change(&mut bytes, seed(random), random);
    }
    bytes.truncate(MOST);
    bytes
}

/// Makes one random change. Some changes copy a part of `other`, which is a seed.
fn change(bytes: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    if bytes.is_empty() {
        bytes.extend(other);
        return;
    }
    let at = random.next() as usize % bytes.len();
    let word = at & !3;
    let length = 1 + random.next() as usize % 32;
    let end = bytes.len().min(at + length);
    match random.below(13) {
        0 | 1 => bytes[at] ^= 1 << random.below(8),
        2 => bytes[at] = random.next() as u8,
        3 => bytes[at] = random.one_of(TEXT),
        4 => put(bytes, word, random.next()),
        5 => put(bytes, word, random.one_of(&WORDS)),
        6 => {
            let bit = 1 << random.below(32);
            flip(bytes, word, bit);
        }
        7 => {
            let range = bytes[at..end].to_vec();
            let to = random.next() as usize % bytes.len();
            bytes.splice(to..to, range);
        }
        8 => drop(bytes.drain(at..end)),
        9 => drop(bytes.drain(word..bytes.len().min(word + 4 * length))),
        // Copies a part of the other seed.
        10 | 11 if !other.is_empty() => {
            let from = (random.next() as usize % other.len()) & !3;
            let piece = other[from..other.len().min(from + 4 * length)].to_vec();
            let over = if random.once_in(2) { piece.len() } else { 0 };
            let end = bytes.len().min(word + over);
            bytes.splice(word..end, piece);
        }
        _ if random.once_in(4) => bytes.truncate(at),
        _ => bytes[at] = bytes[at].wrapping_add(random.one_of(&[1, 0xff, 2, 0xfe])),
    }
}

fn put(bytes: &mut [u8], at: usize, word: u32) {
    bytes[at..].iter_mut().zip(word.to_le_bytes()).for_each(|(byte, new)| *byte = new);
}

fn flip(bytes: &mut [u8], at: usize, bits: u32) {
    bytes[at..].iter_mut().zip(bits.to_le_bytes()).for_each(|(byte, bits)| *byte ^= bits);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mutation_is_that_of_its_seed_and_seldom_nothing() {
        let seeds = vec![(0..200).collect::<Vec<u8>>(), Vec::new(), b"nop\n".to_vec()];
        let all = |seed| {
            let mut random = Random::new(seed);
            (0..2000).map(|_| mutated(&seeds, &mut random)).collect::<Vec<_>>()
        };
        assert_eq!(all(3), all(3));
        let same = all(3).iter().filter(|bytes| seeds.contains(bytes)).count();
        assert!(same < 400, "{same} of 2000 are unchanged");
    }
}
