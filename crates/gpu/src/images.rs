//! Images of textures, made again only if what they were made from has changed.
//!
//! A program writes to memory that it has mapped unseen. While a submission is executed, only the chip itself writes to what
//! the submission reads. So an image is compared with memory once a submission, if the program may have written to its
//! memory, and again after a write of the chip.
//!
//! An image keeps the bytes that it was made of, and its texels may be decoded. [`MOST`] and [`MOST_BYTES`] limit how many stay
//! beyond the last one. An image whose buffer is freed is dropped.

use std::ops::Range;
use std::sync::Arc;

use reconverge_simt::texture::Image;
use reconverge_simt::vram::Vram;

/// Images that are kept, at most: a program may bind hundreds of textures in a frame.
const MOST: usize = 1024;

/// Bytes of the images that are kept, at most, if they are more than one.
const MOST_BYTES: usize = 1 << 29;

/// The memory that an image takes in addition to the bytes that it was made of.
pub(crate) trait OwnBytes {
    /// Returns the number of bytes, once all texels are decoded.
    fn own_bytes(&self) -> usize;
}

/// Zeros after the bytes of an image: the sampler reads four bytes of an element, however short it is.
const ZEROS: usize = 16;

/// Zeros that replace bytes beyond the end of memory, at most.
const BEYOND: usize = 1 << 30;

/// Images of the last textures, the latest used last.
#[derive(Clone, Debug)]
pub(crate) struct Images<K, I> {
    kept: Vec<Kept<K, I>>,
    shared: SharedParts,
}

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
    /// Whether others than the chip may write to them.
    shared: bool,
}

impl<K, I> Kept<K, I> {
    fn range(&self) -> Range<usize> {
        self.start..self.start + self.length
    }
}

/// The memory to which others than the chip may write; `None` for all of it.
#[derive(Clone, Debug, Default)]
struct SharedParts(Option<Vec<Range<usize>>>);

impl SharedParts {
    fn has(&self, range: &Range<usize>) -> bool {
        self.0.as_ref().is_none_or(|parts| parts.iter().any(|part| overlap(part, range)))
    }
}

fn overlap(one: &Range<usize>, other: &Range<usize>) -> bool {
    one.start < other.end && other.start < one.end
}

impl<K, I> Default for Images<K, I> {
    fn default() -> Images<K, I> {
        Images { kept: Vec::new(), shared: SharedParts::default() }
    }
}

impl<K: PartialEq, I: Clone + OwnBytes> Images<K, I> {
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
            kept.range() == (start..end)
                && kept.key == key
                && (kept.current || memory.holds(start, &kept.bytes[..kept.length]))
        };
        if let Some(kept) = self.kept.last_mut().filter(|kept| same(kept)) {
            kept.current = true;
            return Ok(kept.image.clone());
        }
        let mut kept = match self.kept.iter().position(same) {
            Some(at) => self.kept.remove(at),
            None => {
                let bytes = Arc::new(memory.bytes_before(start..end, beyond + ZEROS));
                let image = make(&bytes)?;
                // Memory no longer has the bytes of an earlier image with this key.
                self.kept.retain(|kept| kept.key != key);
                let shared = self.shared.has(&(start..end));
                Kept { key, start, length: end - start, bytes, image, current: true, shared }
            }
        };
        kept.current = true;
        let image = kept.image.clone();
        self.kept.push(kept);
        self.drop_oldest();
        Ok(image)
    }

    /// Drops the images that were used last longest ago, as far as there are too many.
    fn drop_oldest(&mut self) {
        let (mut bytes, mut first) = (0, 0);
        for (place, kept) in self.kept.iter().enumerate().rev() {
            bytes += kept.length + kept.image.own_bytes();
            if bytes > MOST_BYTES || self.kept.len() - place > MOST {
                first = (place + 1).min(self.kept.len() - 1);
                break;
            }
        }
        self.kept.drain(..first);
    }

    /// Drops the images of a range of memory that is freed or has other contents.
    pub(crate) fn replaced(&mut self, range: &Range<usize>) {
        self.kept.retain(|kept| !overlap(range, &kept.range()));
    }

    /// Notes that memory may have changed.
    pub(crate) fn changed(&mut self) {
        self.kept.iter_mut().for_each(|kept| kept.current = false);
    }

    /// Notes that a range of memory may have changed.
    pub(crate) fn written(&mut self, range: &Range<usize>) {
        for kept in &mut self.kept {
            kept.current &= !overlap(range, &kept.range());
        }
    }

    /// Notes that others may have written to memory: a submission begins.
    pub(crate) fn begin(&mut self) {
        for kept in &mut self.kept {
            kept.current &= !kept.shared;
        }
    }

    /// Sets the memory to which others than the chip may write; `None` for all of it.
    pub(crate) fn share(&mut self, parts: Option<&[Range<usize>]>) {
        self.shared = SharedParts(parts.map(<[_]>::to_vec));
        for kept in &mut self.kept {
            kept.shared = self.shared.has(&kept.range());
        }
    }
}

impl OwnBytes for Arc<Image> {
    fn own_bytes(&self) -> usize {
        self.decoded_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl OwnBytes for u8 {
        fn own_bytes(&self) -> usize {
            usize::from(*self) << 20
        }
    }

    impl OwnBytes for Vec<u8> {
        fn own_bytes(&self) -> usize {
            0
        }
    }

    #[test]
    fn images_are_dropped_by_their_bytes_and_with_their_buffers() {
        let (mut images, mut memory) = (Images::default(), vec![100; 8]);
        let mut get = |images: &mut Images<usize, u8>, key: usize| {
            let image = images.get(key, key..key + 1, Vram::new(&mut memory), |bytes| Ok::<u8, ()>(bytes[0]));
            assert_eq!(image, Ok(100));
            images.kept.iter().map(|kept| kept.key).collect::<Vec<_>>()
        };
        (0..5).for_each(|key| drop(get(&mut images, key)));
        // Six times 100 MiB are too many.
        assert_eq!(get(&mut images, 5), [1, 2, 3, 4, 5]);
        assert_eq!(get(&mut images, 2), [1, 3, 4, 5, 2]);
        images.replaced(&(3..5));
        assert_eq!(get(&mut images, 2), [1, 5, 2]);
    }

    #[test]
    fn one_image_stays_however_large_it_is() {
        let (mut images, mut memory) = (Images::default(), vec![255; 4]);
        for key in [0, 1] {
            let range = key..key + 3;
            let made = images.get(key, range, Vram::new(&mut memory), |bytes| Ok::<u8, ()>(bytes[0]));
            assert_eq!(made, Ok(255));
        }
        assert_eq!(images.kept.len(), 2);
        images.kept[0].length = MOST_BYTES;
        images.drop_oldest();
        assert_eq!(images.kept.iter().map(|kept| kept.key).collect::<Vec<_>>(), [1]);
        images.kept[0].length = MOST_BYTES;
        images.drop_oldest();
        assert_eq!(images.kept.len(), 1);
    }

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
        assert_eq!(images.kept.len(), 1, "the old ones are gone");
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
    fn only_memory_that_others_write_to_is_compared_once_a_submission() {
        let (mut images, mut memory) = (Images::default(), vec![0; 8]);
        let first = |images: &mut Images<u8, u8>, memory: &mut [u8]| {
            images.get(1, 2..4, Vram::new(memory), |bytes| Ok::<u8, ()>(bytes[0])).unwrap()
        };
        assert_eq!(first(&mut images, &mut memory), 0);
        let mut expected = 0;
        for (parts, seen) in
            [(Some(&[0..2, 4..8][..]), false), (Some(&[3..4, 6..8]), true), (Some(&[]), false), (None, true)]
        {
            images.share(parts);
            memory[2] += 1;
            images.begin();
            expected = if seen { memory[2] } else { expected };
            assert_eq!(first(&mut images, &mut memory), expected);
        }
        images.share(Some(&[]));
        memory[2] += 1;
        images.written(&(2..3));
        assert_eq!(first(&mut images, &mut memory), memory[2]);
    }

    #[test]
    fn bytes_beyond_the_end_of_memory_are_zeros() {
        let (mut images, mut memory) = (Images::default(), vec![3; 4]);
        let all = |bytes: &Arc<Vec<u8>>| Ok::<Vec<u8>, ()>(bytes[..bytes.len() - ZEROS].to_vec());
        assert_eq!(images.get(0, 2..9, Vram::new(&mut memory), all), Ok(vec![3, 3, 0, 0, 0, 0, 0]));
        assert_eq!(images.get(1, 8..9, Vram::new(&mut memory), all), Ok(vec![0]));
    }
}
