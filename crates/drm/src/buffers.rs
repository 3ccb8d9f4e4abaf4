//! Buffers, their ranges of memory, and the handles by which open files refer to buffers.
//!
//! A buffer lasts as long as a handle or a framebuffer refers to the buffer. A handle belongs to the open file that
//! created the handle. Other open files cannot use the handle. This module does not access the memory of buffers.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::ioctls::Errno;

/// The minimum alignment of buffers in bytes. The size of each buffer is a multiple of this number. Among the
/// processors that Linux supports, the largest page size is 64 KiB.
pub(crate) const UNIT: u64 = 1 << 16;

/// Maximum number of buffers. Linux allows 65,530 mappings per process by default. Each buffer takes up to two of these
/// mappings. The other mappings remain available to the program.
const MOST: usize = 24_000;

/// Identifies an open file of the device node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct FileId(pub(crate) u64);

/// The identifier of a buffer. The value is the offset of the buffer's first byte in the memory of the chip.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct BufferId(u64);

impl BufferId {
    /// Returns the identifier of the buffer whose first byte is at the offset `start`.
    pub(crate) fn at(start: u64) -> BufferId {
        BufferId(start)
    }
}

/// A buffer. The library stores the tiling that the driver sets, but does not use the tiling.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Buffer {
    /// The buffer's range of bytes in memory.
    pub(crate) range: Range<u64>,
    /// The memory domains in which the driver created the buffer.
    pub(crate) domain: u32,
    /// The flags of `GEM_SET_TILING`.
    pub(crate) tiling: u32,
    /// The pitch of `GEM_SET_TILING`.
    pub(crate) pitch: u32,
    /// Whether the program or another process may write to the buffer. After an unmap, the program may still have more
    /// mappings of the same pages. The value therefore stays true until the buffer is freed.
    mapped: bool,
    /// Number of handles and framebuffers that refer to the buffer.
    references: usize,
}

/// The handles of an open file.
#[derive(Debug, Default)]
struct Handles {
    named: BTreeMap<u32, BufferId>,
    /// All handles from 1 to this number are in use.
    full: u32,
}

/// All buffers, and the handles of all open files.
#[derive(Debug)]
pub(crate) struct Buffers {
    live: BTreeMap<BufferId, Buffer>,
    files: BTreeMap<FileId, Handles>,
    /// Open file that sent the current request.
    file: FileId,
    /// Free ranges. The key is the start of a range, and the value is the end of the range. Adjacent ranges are merged.
    free: BTreeMap<u64, u64>,
    /// Cached results of [`Buffers::used`]. A change of the buffers clears this cache. Drivers request these results
    /// with each submission. The cache saves 1 % of the time of a small draw.
    used: Vec<(u32, u64)>,
}

impl Buffers {
    /// Returns an empty set of buffers. New buffers are allocated in the range `room`.
    pub(crate) fn new(room: Range<u64>) -> Buffers {
        let free = BTreeMap::from([(room.start, room.end)]);
        let (live, files, file) = (BTreeMap::new(), BTreeMap::new(), FileId::default());
        Buffers { live, files, file, free, used: Vec::new() }
    }

    /// Sets the open file that sent the current request. Later calls use the handles of this file.
    pub(crate) fn select(&mut self, file: FileId) {
        self.file = file;
    }

    /// Returns the open file of the current request.
    pub(crate) fn file(&self) -> FileId {
        self.file
    }

    /// Creates a buffer. Returns the handle of the buffer. The handle is never 0.
    ///
    /// # Errors
    /// `EINVAL` if the size is zero or the alignment is not a power of two. `ENOMEM` if the buffer does not fit.
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
        let placed = placed.filter(|_| self.live.len() < MOST);
        let (hole, range) = placed.ok_or(Errno(libc::ENOMEM))?;
        let id = BufferId(range.start);
        let handle = self.files.entry(self.file).or_default().name(id).ok_or(Errno(libc::ENOMEM))?;
        self.free.remove(&hole.start);
        for left in [hole.start..range.start, range.end..hole.end] {
            if !left.is_empty() {
                self.free.insert(left.start, left.end);
            }
        }
        self.used.clear();
        self.live.insert(id, Buffer { range, domain, tiling: 0, pitch: 0, mapped: false, references: 1 });
        Ok(handle)
    }

    /// Closes a handle. If the handle was the last reference to a buffer, returns the range of the buffer.
    ///
    /// # Errors
    /// `EINVAL` for an unknown handle, as in the kernel's `GEM_CLOSE`.
    pub(crate) fn close(&mut self, handle: u32) -> Result<Option<Range<u64>>, Errno> {
        let handles = self.files.get_mut(&self.file);
        let id = handles.and_then(|handles| handles.remove(handle)).ok_or(Errno(libc::EINVAL))?;
        Ok(self.release(id))
    }

    /// Adds a reference to the buffer of a handle. [`Buffers::release`] drops the reference.
    ///
    /// # Errors
    /// `ENOENT` for an unknown handle.
    pub(crate) fn hold(&mut self, handle: u32) -> Result<BufferId, Errno> {
        let id = self.id(handle)?;
        self.live.get_mut(&id).ok_or(Errno(libc::ENOENT))?.references += 1;
        Ok(id)
    }

    /// Adds a handle of a buffer to the open file of the current request.
    ///
    /// # Errors
    /// `ENOENT` if the buffer was freed. `ENOMEM` if all handles are in use.
    pub(crate) fn name(&mut self, id: BufferId) -> Result<u32, Errno> {
        let buffer = self.live.get_mut(&id).ok_or(Errno(libc::ENOENT))?;
        let handle = self.files.entry(self.file).or_default().name(id).ok_or(Errno(libc::ENOMEM))?;
        buffer.references += 1;
        Ok(handle)
    }

    /// Returns a handle of a buffer. Returns the existing handle if the open file of the current request already has a
    /// handle of the buffer. Otherwise, adds a new handle.
    ///
    /// # Errors
    /// The errors of [`Buffers::name`].
    pub(crate) fn name_once(&mut self, id: BufferId) -> Result<u32, Errno> {
        let handles = self.files.get(&self.file);
        let known = handles.and_then(|handles| handles.named.iter().find(|(_, named)| **named == id));
        match known {
            Some((handle, _)) => Ok(*handle),
            None => self.name(id),
        }
    }

    /// Drops a reference to a buffer. Returns the range of the buffer if this was the last reference to the buffer.
    pub(crate) fn release(&mut self, id: BufferId) -> Option<Range<u64>> {
        let buffer = self.live.get_mut(&id)?;
        buffer.references -= 1;
        if buffer.references > 0 {
            return None;
        }
        let range = self.live.remove(&id)?.range;
        self.used.clear();
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
        Some(range)
    }

    /// Closes all handles of an open file. Returns the ranges of the buffers that have no references afterwards.
    pub(crate) fn end(&mut self, file: FileId) -> Vec<Range<u64>> {
        let handles = self.files.remove(&file).unwrap_or_default();
        handles.named.into_values().filter_map(|id| self.release(id)).collect()
    }

    /// Returns the identifier of the buffer of a handle.
    ///
    /// # Errors
    /// `ENOENT` for an unknown handle.
    pub(crate) fn id(&self, handle: u32) -> Result<BufferId, Errno> {
        let handles = self.files.get(&self.file);
        handles.and_then(|handles| handles.named.get(&handle)).copied().ok_or(Errno(libc::ENOENT))
    }

    /// Returns the buffer of a handle.
    ///
    /// # Errors
    /// `ENOENT` for an unknown handle.
    pub(crate) fn get(&self, handle: u32) -> Result<&Buffer, Errno> {
        self.held(self.id(handle)?).ok_or(Errno(libc::ENOENT))
    }

    /// Returns a mutable reference to the buffer of a handle.
    ///
    /// # Errors
    /// `ENOENT` for an unknown handle.
    pub(crate) fn get_mut(&mut self, handle: u32) -> Result<&mut Buffer, Errno> {
        let id = self.id(handle)?;
        self.used.clear();
        self.live.get_mut(&id).ok_or(Errno(libc::ENOENT))
    }

    /// Returns a buffer, if a handle or a framebuffer still refers to the buffer.
    pub(crate) fn held(&self, id: BufferId) -> Option<&Buffer> {
        self.live.get(&id)
    }

    /// Checks that an open file may map a part of memory. The part must lie inside a buffer for which the file has a
    /// handle.
    ///
    /// # Errors
    /// Returns the same errors as the kernel. The error is `EINVAL` if no buffer contains the part, and `EACCES` if the
    /// open file has no handle of the buffer.
    pub(crate) fn mappable(&self, part: &Range<u64>) -> Result<(), Errno> {
        let (id, buffer) = self.live.range(..=BufferId(part.start)).next_back().ok_or(Errno(libc::EINVAL))?;
        if part.is_empty() || part.end > buffer.range.end {
            return Err(Errno(libc::EINVAL));
        }
        let handles = self.files.get(&self.file);
        let named = handles.is_some_and(|handles| handles.named.values().any(|named| named == id));
        if named { Ok(()) } else { Err(Errno(libc::EACCES)) }
    }

    /// Marks the buffer that contains `part` as mapped. Returns whether the buffer did not have this mark before.
    pub(crate) fn set_mapped(&mut self, part: &Range<u64>) -> bool {
        let buffer = self.live.range_mut(..=BufferId(part.start)).next_back();
        buffer.is_some_and(|(_, buffer)| !std::mem::replace(&mut buffer.mapped, true))
    }

    /// Returns the ranges of all buffers.
    pub(crate) fn ranges(&self) -> impl Iterator<Item = &Range<u64>> {
        self.live.values().map(|buffer| &buffer.range)
    }

    /// Returns the ranges of buffers that programs have mapped.
    pub(crate) fn mapped(&self) -> impl Iterator<Item = &Range<u64>> {
        self.live.values().filter(|buffer| buffer.mapped).map(|buffer| &buffer.range)
    }

    /// Returns the total size in bytes of all buffers in the memory domains `domains`.
    pub(crate) fn used(&mut self, domains: u32) -> u64 {
        if let Some((_, bytes)) = self.used.iter().find(|(known, _)| *known == domains) {
            return *bytes;
        }
        let inside = self.live.values().filter(|buffer| buffer.domain & domains != 0);
        let bytes = inside.map(|buffer| buffer.range.end - buffer.range.start).sum();
        self.used.push((domains, bytes));
        bytes
    }
}

impl Handles {
    /// Assigns the lowest unused handle to a buffer, as the kernel does. libdrm allocates a list with one entry for
    /// each handle up to the largest handle. Low handles keep this list short.
    fn name(&mut self, id: BufferId) -> Option<u32> {
        let handle =
            (self.full.checked_add(1)?..=u32::MAX).find(|handle| !self.named.contains_key(handle))?;
        self.full = handle;
        self.named.insert(handle, id);
        Some(handle)
    }

    fn remove(&mut self, handle: u32) -> Option<BufferId> {
        let id = self.named.remove(&handle)?;
        self.full = self.full.min(handle - 1);
        Some(id)
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
        assert_eq!(buffers.create(1, 0, 0), Ok(handle));
        assert_eq!(buffers.close(handle + 1), Err(INVALID));
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
    fn a_buffer_gets_the_lowest_handle_that_is_unused() {
        let mut buffers = buffers();
        let create = |buffers: &mut Buffers| buffers.create(1, 0, 0).unwrap();
        assert_eq!([0; 4].map(|_| create(&mut buffers)), [1, 2, 3, 4]);
        assert!([3, 1].map(|handle| buffers.close(handle)).iter().all(Result::is_ok));
        assert_eq!([0; 3].map(|_| create(&mut buffers)), [1, 3, 5]);
        buffers.files.entry(FileId(0)).or_default().full = u32::MAX - 1;
        assert_eq!((create(&mut buffers), buffers.create(1, 0, 0)), (u32::MAX, Err(FULL)));
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

    #[test]
    fn a_handle_means_nothing_to_another_open_file() {
        let mut buffers = buffers();
        let handle = buffers.create(1, 0, 0).unwrap();
        let range = buffers.get(handle).unwrap().range.clone();
        assert_eq!(buffers.mappable(&range), Ok(()));
        buffers.select(FileId(7));
        assert_eq!(buffers.get(handle), Err(UNKNOWN));
        assert_eq!(buffers.close(handle), Err(INVALID));
        assert_eq!(buffers.hold(handle), Err(UNKNOWN));
        assert_eq!(buffers.mappable(&range), Err(Errno(libc::EACCES)));
        assert_eq!(buffers.create(1, 0, 0), Ok(handle), "handles of open files count alone");
        buffers.select(FileId(0));
        assert_eq!(buffers.get(handle).unwrap().range, range);
    }

    #[test]
    fn a_part_is_mapped_inside_of_one_buffer() {
        let mut buffers = buffers();
        let [one, _] = [1, 1].map(|size| buffers.create(size, 0, 0).unwrap());
        let Range { start, end } = buffers.get(one).unwrap().range.clone();
        assert_eq!(buffers.mappable(&(start + 4096..end)), Ok(()));
        for part in [start..end + 1, 0..start, 0..end, start..start, end + UNIT..end + UNIT + 1] {
            assert_eq!(buffers.mappable(&part), Err(INVALID), "{part:x?}");
        }
    }

    #[test]
    fn a_buffer_lasts_as_long_as_something_refers_to_it() {
        let mut buffers = buffers();
        let handle = buffers.create(1, 0, 0).unwrap();
        let range = buffers.get(handle).unwrap().range.clone();
        let id = buffers.hold(handle).unwrap();
        assert_eq!(buffers.close(handle), Ok(None));
        assert_eq!((buffers.get(handle), &buffers.held(id).unwrap().range), (Err(UNKNOWN), &range));
        let next = buffers.create(1, 0, 0).unwrap();
        assert_ne!(buffers.get(next).unwrap().range.start, range.start);
        assert_eq!((buffers.release(id), buffers.release(id)), (Some(range), None));
    }

    #[test]
    fn the_end_of_an_open_file_closes_its_handles_alone() {
        let mut buffers = buffers();
        let kept = buffers.create(1, 0, 0).unwrap();
        buffers.select(FileId(7));
        let ranges = [1, 2]
            .map(|size| buffers.create(size, 0, 0).unwrap())
            .map(|handle| buffers.get(handle).unwrap().range.clone());
        let mut ended = buffers.end(FileId(7));
        ended.sort_by_key(|range| range.start);
        assert_eq!((ended, buffers.end(FileId(7))), (ranges.to_vec(), vec![]));
        buffers.select(FileId(0));
        assert!(buffers.get(kept).is_ok() && buffers.live.len() == 1);
    }

    #[test]
    fn buffers_beyond_the_most_are_refused() {
        let mut buffers = buffers();
        let handles: Vec<u32> = (0..MOST).map(|_| buffers.create(1, 0, 0).unwrap()).collect();
        assert_eq!(buffers.create(1, 0, 0), Err(FULL));
        buffers.close(handles[0]).unwrap();
        assert!(buffers.create(1, 0, 0).is_ok());
    }
}
