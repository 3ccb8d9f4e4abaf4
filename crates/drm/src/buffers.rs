//! Which handle is where: buffers laid out in one range of bytes, and laid out again when they are closed.
//!
//! Nothing here touches memory.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use crate::ioctls::Errno;

/// The least alignment and the unit of sizes: 64 KiB, the largest page of the processors that Linux runs on.
pub(crate) const UNIT: u64 = 1 << 16;

/// A buffer. Tiling is what the driver stored with it: nothing here follows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Buffer {
    /// Where it is.
    pub(crate) range: Range<u64>,
    /// The memory domains that it was created in.
    pub(crate) domain: u32,
    /// The flags of `GEM_SET_TILING`.
    pub(crate) tiling: u32,
    /// The pitch of `GEM_SET_TILING`.
    pub(crate) pitch: u32,
}

/// All buffers.
#[derive(Debug)]
pub(crate) struct Buffers {
    live: HashMap<u32, Buffer>,
    /// What is free, start to end; ranges that touch are one.
    free: BTreeMap<u64, u64>,
    last_handle: u32,
}

impl Buffers {
    /// No buffers, and room for them in a range.
    pub(crate) fn new(room: Range<u64>) -> Buffers {
        Buffers { live: HashMap::new(), free: BTreeMap::from([(room.start, room.end)]), last_handle: 0 }
    }

    /// Makes a buffer and gives its handle, which is never 0.
    ///
    /// # Errors
    /// `EINVAL` for a size of zero and for an alignment that is no power of two, `ENOMEM` when it does not fit.
    pub(crate) fn create(&mut self, size: u64, alignment: u64, domain: u32) -> Result<u32, Errno> {
        let alignment = alignment.max(UNIT);
        if size == 0 || !alignment.is_power_of_two() {
            return Err(Errno(libc::EINVAL));
        }
        let size = size.checked_next_multiple_of(UNIT).ok_or(Errno(libc::ENOMEM))?;
        let placed = self.free.iter().find_map(|(&start, &end)| {
            let at = start.checked_next_multiple_of(alignment)?;
            let behind = at.checked_add(size)?;
            (behind <= end).then_some((start..end, at..behind))
        });
        let (hole, range) = placed.ok_or(Errno(libc::ENOMEM))?;
        let handle = self.next_handle().ok_or(Errno(libc::ENOMEM))?;
        self.free.remove(&hole.start);
        for left in [hole.start..range.start, range.end..hole.end] {
            if !left.is_empty() {
                self.free.insert(left.start, left.end);
            }
        }
        self.live.insert(handle, Buffer { range, domain, tiling: 0, pitch: 0 });
        Ok(handle)
    }

    /// A handle that is not in use. Handles count up, so that one that was closed does not soon mean another buffer.
    fn next_handle(&mut self) -> Option<u32> {
        let candidates = (self.last_handle.wrapping_add(1)..=u32::MAX).chain(1..=self.last_handle);
        let handle = candidates.into_iter().find(|handle| *handle != 0 && !self.live.contains_key(handle))?;
        self.last_handle = handle;
        Some(handle)
    }

    /// Closes a buffer and gives where it was.
    ///
    /// # Errors
    /// `EINVAL` for a handle that means no buffer, as the kernel's `GEM_CLOSE`.
    pub(crate) fn close(&mut self, handle: u32) -> Result<Range<u64>, Errno> {
        let range = self.live.remove(&handle).ok_or(Errno(libc::EINVAL))?.range;
        let (mut start, mut end) = (range.start, range.end);
        if let Some((&before, _)) = self.free.range(..start).next_back().filter(|(_, until)| **until == start)
        {
            self.free.remove(&before);
            start = before;
        }
        if let Some(behind) = self.free.remove(&end) {
            end = behind;
        }
        self.free.insert(start, end);
        Ok(range)
    }

    /// The buffer of a handle.
    ///
    /// # Errors
    /// `ENOENT` for a handle that means none.
    pub(crate) fn get(&self, handle: u32) -> Result<&Buffer, Errno> {
        self.live.get(&handle).ok_or(Errno(libc::ENOENT))
    }

    /// The buffer of a handle, to change.
    ///
    /// # Errors
    /// `ENOENT` for a handle that means none.
    pub(crate) fn get_mut(&mut self, handle: u32) -> Result<&mut Buffer, Errno> {
        self.live.get_mut(&handle).ok_or(Errno(libc::ENOENT))
    }

    /// How many bytes the buffers of some memory domains take.
    pub(crate) fn used(&self, domains: u32) -> u64 {
        let inside = self.live.values().filter(|buffer| buffer.domain & domains != 0);
        inside.map(|buffer| buffer.range.end - buffer.range.start).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INVALID: Errno = Errno(libc::EINVAL);
    const UNKNOWN: Errno = Errno(libc::ENOENT);
    const FULL: Errno = Errno(libc::ENOMEM);

    fn buffers() -> Buffers {
        Buffers::new(UNIT..1 << 40)
    }

    #[test]
    fn buffers_are_aligned_and_apart() {
        let mut buffers = buffers();
        let mut ranges = Vec::new();
        for (size, alignment) in
            [(1, 0), (100_000, 1), (UNIT, 4096), (5, 1 << 20), (1 << 20, 1 << 30), (7, 8)]
        {
            let handle = buffers.create(size, alignment, 4).unwrap();
            let range = buffers.get(handle).unwrap().range.clone();
            assert!(
                range.start.is_multiple_of(alignment.max(UNIT)) && range.end - range.start >= size,
                "{range:x?}"
            );
            assert!(
                ranges.iter().all(|other: &Range<u64>| other.end <= range.start || range.end <= other.start)
            );
            ranges.push(range);
        }
    }

    #[test]
    fn what_was_closed_is_used_again() {
        let mut buffers = buffers();
        let keep = buffers.create(1, 0, 0).unwrap();
        for _ in 0..10_000 {
            let handles: Vec<u32> =
                [3 << 20, 1, 100_000].map(|size| buffers.create(size, 0, 0).unwrap()).into();
            for handle in &handles {
                assert!(buffers.get(*handle).unwrap().range.end < 8 << 20);
            }
            for handle in handles {
                buffers.close(handle).unwrap();
            }
        }
        buffers.close(keep).unwrap();
        assert_eq!(buffers.free, BTreeMap::from([(UNIT, 1 << 40)]), "ranges that touch are one");
        assert!(buffers.live.is_empty());
    }

    #[test]
    fn any_order_of_closing_leaves_one_free_range() {
        for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
            let mut buffers = buffers();
            let handles = [1 << 20; 3].map(|alignment| buffers.create(1, alignment, 0).unwrap());
            for number in order {
                buffers.close(handles[number]).unwrap();
            }
            assert_eq!(buffers.free.len(), 1, "{order:?}");
        }
    }

    #[test]
    fn a_second_close_and_unknown_handles_are_errors() {
        let mut buffers = buffers();
        let handle = buffers.create(1, 0, 0).unwrap();
        buffers.close(handle).unwrap();
        assert_eq!(buffers.close(handle), Err(INVALID));
        for handle in [0, handle, handle + 1, u32::MAX] {
            assert_eq!(buffers.close(handle), Err(INVALID));
            assert_eq!(buffers.get(handle), Err(UNKNOWN));
            assert!(buffers.get_mut(handle).is_err());
        }
        assert_ne!(buffers.create(1, 0, 0).unwrap(), handle);
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let mut buffers = buffers();
        for (size, alignment, why) in [
            (0, 0, INVALID),
            (1, UNIT + 1, INVALID),
            (u64::MAX, 0, FULL),
            (1 << 40, 0, FULL),
            (1, 1 << 63, FULL),
        ] {
            assert_eq!(buffers.create(size, alignment, 0), Err(why), "{size:#x} {alignment:#x}");
        }
    }

    #[test]
    fn handles_begin_again_behind_the_last_one() {
        let mut buffers = buffers();
        buffers.last_handle = u32::MAX - 1;
        assert_eq!([0; 3].map(|_| buffers.create(1, 0, 0).unwrap()), [u32::MAX, 1, 2]);
    }

    #[test]
    fn bytes_in_use_count_by_domain() {
        let mut buffers = buffers();
        buffers.create(1, 0, 4).unwrap();
        let closed = buffers.create(1, 0, 6).unwrap();
        assert_eq!([2, 4].map(|domain| buffers.used(domain)), [UNIT, 2 * UNIT]);
        buffers.close(closed).unwrap();
        assert_eq!([2, 4].map(|domain| buffers.used(domain)), [0, UNIT]);
    }
}
