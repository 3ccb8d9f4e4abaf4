//! Images of textures, made again only if what they were made from has changed.
//!
//! A program writes to memory that it has mapped unseen. While a submission is executed, only the chip itself writes to what
//! the submission reads. So an image is compared with memory once a submission, and again after a write of the chip.

use std::ops::Range;
use std::sync::Arc;

use reconverge_simt::vram::Vram;

/// Images that are kept, at most.
const MOST: usize = 64;

/// Zeros after the bytes of an image: the sampler reads four bytes of an element, however short it is.
const ZEROS: usize = 16;

/// Zeros that replace bytes beyond the end of memory, at most.
const BEYOND: usize = 1 << 30;

/// Images of the last textures, the latest used last.
#[derive(Clone, Debug)]
pub(crate) struct Images<K, I>(Vec<Kept<K, I>>);

/// An image, with all that it was made of.
#[derive(Clone, Debug)]
struct Kept<K, I> {
    key: K,
    /// The address of the bytes in memory, and how many there are.
    start: usize,
    length: usize,
    /// The bytes, and zeros.
    bytes: Arc<Vec<u8>>,
    image: I,
    /// Whether memory still holds these bytes.
    current: bool,
}

impl<K, I> Default for Images<K, I> {
    fn default() -> Images<K, I> {
        Images(Vec::new())
    }
}

impl<K: PartialEq, I: Clone> Images<K, I> {
    /// Returns the image of a key and the bytes of a range, or makes one of them. Zeros follow the bytes, and replace those
    /// beyond the end of memory.
    ///
    /// # Errors
    /// The errors of `make`.
    pub(crate) fn get<E>(
        &mut self,
        key: K,
        range: Range<usize>,
        memory: Vram<'_>,
        make: impl FnOnce(&Arc<Vec<u8>>) -> Result<I, E>,
    ) -> Result<I, E> {
        let end = range.end.min(memory.len());
        let start = range.start.min(end);
        let beyond = range.len().saturating_sub(end - start).min(BEYOND);
        let same = |kept: &Kept<K, I>| {
            kept.key == key
                && (kept.start, kept.length) == (start, end - start)
                && (kept.current || memory.holds(start, &kept.bytes[..kept.length]))
        };
        let mut kept = match self.0.iter().position(same) {
            Some(at) => self.0.remove(at),
            None => {
                let bytes = Arc::new(memory.bytes_before(start..end, beyond + ZEROS));
                let image = make(&bytes)?;
                // Memory no longer has the bytes of an earlier image with this key.
                self.0.retain(|kept| kept.key != key);
                Kept { key, start, length: end - start, bytes, image, current: true }
            }
        };
        kept.current = true;
        let image = kept.image.clone();
        self.0.push(kept);
        if self.0.len() > MOST {
            self.0.remove(0);
        }
        Ok(image)
    }

    /// Notes that memory may have changed.
    pub(crate) fn changed(&mut self) {
        self.0.iter_mut().for_each(|kept| kept.current = false);
    }

    /// Notes that a range of memory may have changed.
    pub(crate) fn written(&mut self, range: &Range<usize>) {
        for kept in &mut self.0 {
            let end = kept.start + kept.length;
            kept.current &= range.end <= kept.start || end <= range.start;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_is_made_again_where_memory_has_changed() {
        let (mut images, mut memory) = (Images::default(), vec![0; 8]);
        let get = |images: &mut Images<u8, u8>, memory: &mut [u8]| {
            images.get(1, 2..4, Vram::new(memory), |bytes| Ok::<u8, ()>(bytes[0] + bytes[1])).unwrap()
        };
        assert_eq!(get(&mut images, &mut memory), 0);
        for (at, change, expected) in [(1, 7, 0), (2, 5, 5), (3, 2, 7), (4, 9, 7)] {
            memory[at] = change;
            images.changed();
            assert_eq!(get(&mut images, &mut memory), expected);
        }
        assert_eq!(images.0.len(), 1, "the old ones are gone");
    }

    #[test]
    fn only_a_write_to_an_image_has_it_compared() {
        let (mut images, mut memory) = (Images::default(), vec![0; 8]);
        let mut made = 0;
        let mut get = |images: &mut Images<u8, u8>, memory: &mut [u8]| {
            let make = |bytes: &Arc<Vec<u8>>| {
                made += 1;
                Ok::<u8, ()>(bytes[0])
            };
            (images.get(1, 2..4, Vram::new(memory), make).unwrap(), made)
        };
        assert_eq!(get(&mut images, &mut memory), (0, 1));
        memory[2] = 6;
        for range in [0..2, 4..8] {
            images.written(&range);
            assert_eq!(get(&mut images, &mut memory), (0, 1));
        }
        images.written(&(3..9));
        assert_eq!(get(&mut images, &mut memory), (6, 2));
    }

    #[test]
    fn bytes_beyond_the_end_of_memory_are_zeros() {
        let (mut images, mut memory) = (Images::default(), vec![3; 4]);
        let all = |bytes: &Arc<Vec<u8>>| Ok::<Vec<u8>, ()>(bytes[..bytes.len() - ZEROS].to_vec());
        assert_eq!(images.get(0, 2..9, Vram::new(&mut memory), all), Ok(vec![3, 3, 0, 0, 0, 0, 0]));
        assert_eq!(images.get(1, 8..9, Vram::new(&mut memory), all), Ok(vec![0]));
    }
}
