//! Caches images of textures. The cache creates an image again only if the bytes of the image in memory have changed.
//!
//! An application can write to mapped memory without notifying the chip. During a submission, however, only the chip
//! writes to memory that the submission reads. If the application may write to an image's memory, the image is
//! therefore compared with memory once per submission. Every image is also compared after the chip writes to the
//! image's memory.
//!
//! An image contains a copy of the image's bytes, and may also contain decoded texels. [`MOST`] and [`MOST_BYTES`]
//! limit the number and size of the cached images. The most recently used image is always kept. The cache drops an
//! image when the image's buffer is freed.

use std::ops::Range;
use std::sync::Arc;

use reconverge_simt::texture::Image;
use reconverge_simt::vram::Vram;

/// Maximum number of cached images. A program may bind hundreds of textures in a frame.
const MOST: usize = 1024;

/// Maximum number of bytes of all cached images. A single image may be larger than this maximum.
const MOST_BYTES: usize = 1 << 29;

/// An image that may use memory in addition to the cache's copy of the bytes.
pub(crate) trait OwnBytes {
    /// Returns the number of additional bytes that the image uses when all texels of the image are decoded.
    fn own_bytes(&self) -> usize;
}

/// Number of zeros after the bytes of an image. The sampler reads at least four bytes per element, even if the element
/// is shorter.
const ZEROS: usize = 16;

/// Maximum number of zeros that replace bytes past the end of memory.
const BEYOND: usize = 1 << 30;

/// Cached images of textures.
#[derive(Clone, Debug)]
pub(crate) struct Images<K, I> {
    kept: Vec<Kept<K, I>>,
    shared: SharedParts,
}

/// A cached image and its bytes.
#[derive(Clone, Debug)]
struct Kept<K, I> {
    key: K,
    /// Address of the image's first byte in memory, and the number of the image's bytes.
    start: usize,
    length: usize,
    /// Copy of the bytes, followed by zeros.
    bytes: Arc<Vec<u8>>,
    image: I,
    /// Parts of the image's memory that may have changed.
    stale: Stale,
    /// Whether memory and the copy differed in the last comparison.
    differs: bool,
    /// Whether writers other than the chip may change the image's memory.
    shared: bool,
}

impl<K, I> Kept<K, I> {
    /// Returns whether the image has this key and was created from this range of memory.
    fn is_of(&self, key: &K, range: Range<usize>) -> bool
    where
        K: PartialEq,
    {
        self.range() == range && self.key == *key
    }

    fn range(&self) -> Range<usize> {
        self.start..self.start + self.length
    }

    /// Returns whether memory and the copy are equal. Compares only the parts that may have changed.
    fn is_current(&mut self, memory: Vram<'_>) -> bool {
        let (start, bytes) = (self.start, &self.bytes);
        let holds =
            |part: &Range<usize>| memory.holds(part.start, &bytes[part.start - start..part.end - start]);
        // If memory and the copy differ in a part, the part stays in the list. `renewed` then reads the part from
        // memory.
        self.stale.0.retain(|part| !holds(part));
        self.differs = !self.stale.0.is_empty();
        !self.differs
    }

    /// Reads the stale parts of the bytes from memory, and returns the updated copy. Returns `None` if an image in use
    /// still refers to the copy. A simpler version of this function would copy all bytes with [`Vram::bytes_before`].
    /// Each draw of the test `tex3d-maxsize` copies a slice of 512 MB to the next slice. With the simpler version, this
    /// test did not end within 100 s on RV770. With the present version, the test takes 16 s of processor time (an AMD
    /// EPYC).
    fn renewed(self, memory: Vram<'_>) -> Option<Arc<Vec<u8>>> {
        let Kept { mut bytes, start, image, stale, .. } = self;
        drop(image);
        let all = Arc::get_mut(&mut bytes)?;
        for part in stale.0 {
            memory.read(part.start, all.get_mut(part.start - start..part.end - start)?)?;
        }
        Some(bytes)
    }
}

/// Parts of an image's memory that may have changed since the last comparison with the copy. The list has up to
/// [`PARTS`] parts.
#[derive(Clone, Debug, Default)]
struct Stale(Vec<Range<usize>>);

/// Maximum number of parts of an image that are compared separately.
const PARTS: usize = 16;

impl Stale {
    /// Adds a range to the list. Instead, extends the last range of the list to include the new range in two cases: if
    /// the two ranges touch, or if the list already has [`PARTS`] ranges.
    fn add(&mut self, range: Range<usize>) {
        let full = self.0.len() >= PARTS;
        match self.0.last_mut() {
            Some(last) if full || (range.start <= last.end && last.start <= range.end) => {
                *last = last.start.min(range.start)..last.end.max(range.end);
            }
            _ => self.0.push(range),
        }
    }

    /// Replaces all ranges of the list by one range.
    fn set(&mut self, range: Range<usize>) {
        self.0.clear();
        self.0.push(range);
    }
}

/// Parts of memory that the application or other processes may change. `None` means all of memory.
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

/// Limits a range to memory. Returns the start and the end of the limited range. Also returns how many bytes of the
/// original range are past the end of memory. This number is at most [`BEYOND`].
fn inside(range: &Range<usize>, memory: Vram<'_>) -> (usize, usize, usize) {
    let end = range.end.min(memory.len());
    let start = range.start.min(end);
    (start, end, range.len().saturating_sub(end - start).min(BEYOND))
}

impl<K, I> Default for Images<K, I> {
    fn default() -> Images<K, I> {
        Images { kept: Vec::new(), shared: SharedParts::default() }
    }
}

impl<K: PartialEq, I: Clone + OwnBytes> Images<K, I> {
    /// Returns the cached image with this key and this range of memory if the bytes of the image in memory have not
    /// changed. Otherwise, caches and returns the image that `make` creates. The argument of `make` contains the bytes
    /// of the range, followed by [`ZEROS`] zeros. Bytes of the range past the end of memory are also zeros.
    ///
    /// # Errors
    /// Returns the error of `make`.
    pub(crate) fn get<E>(
        &mut self,
        key: K,
        range: Range<usize>,
        memory: Vram<'_>,
        make: impl FnOnce(&Arc<Vec<u8>>) -> Result<I, E>,
    ) -> Result<I, E> {
        if let Some(image) = self.find(&key, &range, memory) {
            return Ok(image);
        }
        let (start, end, beyond) = inside(&range, memory);
        let before = self.kept.iter().position(|kept| kept.is_of(&key, start..end));
        let renewed = before.and_then(|at| self.kept.remove(at).renewed(memory));
        // The cached images with this key are out of date.
        self.kept.retain(|kept| kept.key != key);
        let renewed = renewed.filter(|bytes| bytes.len() == end - start + beyond + ZEROS);
        let bytes = renewed.unwrap_or_else(|| Arc::new(memory.bytes_before(start..end, beyond + ZEROS)));
        let image = make(&bytes)?;
        let shared = self.shared.has(&(start..end));
        let (length, stale) = (end - start, Stale::default());
        self.kept.push(Kept {
            key,
            start,
            length,
            bytes,
            image: image.clone(),
            stale,
            differs: false,
            shared,
        });
        self.drop_oldest();
        Ok(image)
    }

    /// Returns the cached image with this key and this range of memory if the bytes of the image in memory have not
    /// changed.
    pub(crate) fn find(&mut self, key: &K, range: &Range<usize>, memory: Vram<'_>) -> Option<I> {
        let (start, end, _) = inside(range, memory);
        let place = self.kept.iter().rposition(|kept| kept.is_of(key, start..end))?;
        if !self.kept[place].is_current(memory) {
            return None;
        }
        // The cached images are in the order of their last use.
        self.kept[place..].rotate_left(1);
        self.kept.last().map(|kept| kept.image.clone())
    }

    /// Returns whether the cache has an image that satisfies `is` and that was equal to memory in the last comparison.
    pub(crate) fn has(&self, is: impl Fn(&I) -> bool) -> bool {
        self.kept.iter().any(|kept| !kept.differs && is(&kept.image))
    }

    /// Drops the least recently used images until the limits are met.
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

    /// Drops each image that overlaps `range` in memory. The caller frees this range or has replaced the contents of
    /// this range.
    pub(crate) fn replaced(&mut self, range: &Range<usize>) {
        self.kept.retain(|kept| !overlap(range, &kept.range()));
    }

    /// Records that all of memory may have changed.
    pub(crate) fn changed(&mut self) {
        self.kept.iter_mut().for_each(|kept| kept.stale.set(kept.range()));
    }

    /// Records that a range of memory may have changed.
    pub(crate) fn written(&mut self, range: &Range<usize>) {
        for kept in &mut self.kept {
            let own = kept.range();
            if overlap(range, &own) {
                kept.stale.add(range.start.max(own.start)..range.end.min(own.end));
            }
        }
    }

    /// Begins a submission. Records that the application or other processes may have changed memory.
    pub(crate) fn begin(&mut self) {
        for kept in self.kept.iter_mut().filter(|kept| kept.shared) {
            kept.stale.set(kept.range());
        }
    }

    /// Sets the parts of memory that the application or other processes may change. `None` means all of memory.
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
    use reconverge_simt::random::Random;

    use super::*;

    impl OwnBytes for u8 {
        fn own_bytes(&self) -> usize {
            usize::from(*self) << 20
        }
    }

    #[derive(Clone)]
    struct Shown(Arc<Vec<u8>>);

    impl OwnBytes for Shown {
        fn own_bytes(&self) -> usize {
            0
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
        // Six images of 100 MiB exceed the limit.
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
        images.written(&(1..3));
        assert_eq!(get(&mut images, &mut memory), (6, 2));
    }

    /// The expected bytes of the image are a copy of the whole range of memory.
    #[test]
    fn bytes_are_loaded_where_they_have_changed() {
        let mut random = Random::new(3);
        let (mut images, mut memory) = (Images::default(), vec![0; 64]);
        let mut held = None;
        let (mut places, mut copied) = (Vec::new(), 0);
        for round in 0..500 {
            for _ in 0..random.below(20) {
                let start = random.below(64) as usize;
                let range = start..(start + 1 + random.below(12) as usize).min(64);
                memory[range.clone()].fill(random.below(4) as u8);
                images.written(&range);
            }
            if random.once_in(9) {
                images.changed();
            }
            let make = |bytes: &Arc<Vec<u8>>| {
                copied += 1;
                Ok::<_, ()>(Shown(bytes.clone()))
            };
            let image = images.get(1, 8..40, Vram::new(&mut memory), make).unwrap();
            let expected = Vram::new(&mut memory).bytes_before(8..40, ZEROS);
            assert_eq!(*image.0, expected, "{round}");
            places.push(image.0.as_ptr());
            // The bytes of an image that is still in use do not change.
            if let Some((Shown(bytes), before)) = held.take() {
                assert_eq!(bytes, before);
            }
            if random.once_in(3) {
                held = Some((image.clone(), Arc::new(expected)));
            }
        }
        let moves = places.windows(2).filter(|two| two[0] != two[1]).count();
        assert!(moves < copied * 3 / 4, "{moves} of {copied} images have bytes elsewhere");
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
