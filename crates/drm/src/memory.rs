//! The memory of the chip. The memory is a range of addresses. Each buffer in the range is a separate file that exists
//! only in memory.
//!
//! ```text
//! chip    |......| buffer |....| buffer |.......|     what submissions read and write
//! floor   |.....................................|     zeros that the chip reads outside of buffers
//! ```
//!
//! If a program maps a buffer, the library creates a second mapping of the buffer's file. The kernel keeps the pages of
//! a file while a mapping of the file exists. The program's mapping can therefore outlive the buffer. A new buffer in
//! the same range uses a new file.
//!
//! The kernel needs 2.4 microseconds to allocate a page. To fill an existing page with zeros takes 0.2 microseconds
//! (Linux 6.18, a virtual machine on an AMD EPYC). The library therefore keeps the file of a freed buffer. As soon as
//! the program has no mapping of the file, a new buffer of the same size can use the file.
//!
//! The files have no descriptors. The memory of a buffer is shared anonymous memory, and `mremap` duplicates the
//! mapping of this memory. A program therefore cannot close or resize the file of a buffer. A program also cannot open
//! another file with the descriptor number of the buffer's file.
//!
//! A fill of a whole surface may stay outstanding ([`Fills`]) between submissions if only the chip can read the
//! surface. [`Memory::end_submission`] stores the fills that the program can read.

use std::collections::BTreeMap;
use std::ffi::{c_int, c_void};
use std::io;
use std::ops::Range;
use std::ptr::null_mut;

use reconverge_simt::vram::{Fills, Vram};

use crate::ioctls::Errno;
use crate::mapped::{self, Mapped};
use crate::real;

/// Size of the memory in bytes. The memory is far larger than the buffers of any program. Pages that were never written
/// take no memory of the host.
pub(crate) const BYTES: u64 = 1 << 40;

/// Maximum sizes in bytes of the kept files of freed buffers. The first value is for one file. The second value is for
/// all kept files together.
const MOST_PARKED: [u64; 2] = [16 << 20, 64 << 20];

/// Maximum number of consecutive submissions without a new fill. After more submissions than this number, the memory
/// stores all outstanding fills. Outstanding fills make accesses slower, because an access near a fill must search the
/// list of fills.
const MOST_PAUSES: u32 = 8;

/// The mappings of the chip's memory. The mappings last until the process ends.
#[derive(Debug)]
pub(crate) struct Memory {
    chip: *mut u8,
    floor: *mut u8,
    /// The files of buffers. The key is the start of the buffer's range.
    placed: BTreeMap<u64, Placed>,
    /// Files of freed buffers. A new buffer may reuse one of these files. The newest file is the last.
    parked: Vec<Parked>,
    /// Number of files that were created so far. This is also the number of the newest file.
    files: u64,
    /// Outstanding fills. The chip has executed these fills, but the values are not yet in the files.
    fills: Fills,
    /// The value of [`mapped::forks`] when this memory was created.
    forks: u32,
}

/// The file of a buffer.
#[derive(Clone, Copy, Debug)]
struct Placed {
    /// The end of the buffer's range.
    end: u64,
    /// The number of the file.
    file: u64,
    /// The value of [`mapped::forks`] when the buffer was created. If [`mapped::forks`] returns a different value
    /// later, the process has forked since the creation of the buffer. In this case, the child also has the file.
    forks: u32,
    /// Whether other processes may have opened the file.
    is_shared: bool,
}

/// The file of a freed buffer. A new buffer may use this file.
#[derive(Debug)]
struct Parked {
    /// Start of a mapping of the file.
    start: *mut c_void,
    length: u64,
    file: u64,
    forks: u32,
}

// SAFETY: the addresses are valid in every thread, until the process ends.
unsafe impl Send for Memory {}

/// Smallest page size in bytes among the processors that Linux supports.
const SMALLEST_PAGE: usize = 4096;

/// Protection of the mappings of the chip.
const ACCESS: c_int = libc::PROT_READ | libc::PROT_WRITE;

impl Memory {
    /// Creates memory without buffers. All bytes of the memory read as zero.
    ///
    /// # Errors
    /// The system does not allow a file or an address range of this size.
    pub(crate) fn new() -> io::Result<Memory> {
        // The memory is a file, because strict overcommit accounting rejects anonymous memory of this size. SAFETY: the
        // name is a C string.
        let file = unsafe { libc::memfd_create(c"reconverge-drm".as_ptr(), libc::MFD_CLOEXEC) };
        if file < 0 {
            return Err(io::Error::last_os_error());
        }
        let map = || {
            let flags = libc::MAP_SHARED | libc::MAP_NORESERVE;
            // SAFETY: the kernel chooses unused addresses.
            let start = unsafe { real::mmap(null_mut(), BYTES as usize, ACCESS, flags, file, 0) };
            kept_out_of_core_files(start, BYTES as usize)
        };
        // SAFETY: the system call only affects a descriptor of this library.
        let mapped = match unsafe { libc::ftruncate(file, BYTES as libc::off_t) } {
            0 => map().and_then(|chip| {
                let (placed, parked, fills) = (BTreeMap::new(), Vec::new(), Fills::default());
                let forks = mapped::forks();
                Ok(Memory { chip, floor: map()?, placed, parked, files: 0, fills, forks })
            }),
            _ => Err(io::Error::last_os_error()),
        };
        real::close_own(file);
        mapped
    }

    /// Returns a copy of a part of memory.
    ///
    /// The program may write to the part during the call. In this case, each byte of the copy has either the old or the
    /// new value.
    pub(crate) fn read(&self, part: Range<usize>) -> Vec<u8> {
        assert!(part.start <= part.end && part.end <= BYTES as usize, "{part:?} is in memory");
        self.whole().bytes(part)
    }

    /// Stores bytes at an offset. The program may access these bytes during the call, as in [`Memory::read`].
    pub(crate) fn write(&self, at: usize, bytes: &[u8]) {
        let written = self.whole().write(at, bytes);
        assert!(written, "{} bytes at {at:#x} are in memory", bytes.len());
    }

    /// Returns a view of the whole memory. The program may access the same memory at any time through the program's
    /// mappings.
    pub(crate) fn whole(&self) -> Vram<'_> {
        // SAFETY: the mapping is `BYTES` long, readable and writable, and lasts until the process ends. This library
        // accesses the mapping only through values of `Vram`. All values of `Vram` begin at the same address, and
        // divide the mapping into the same units.
        unsafe { Vram::from_raw(self.chip, BYTES as usize) }.with_fills(&self.fills)
    }

    /// Stores the outstanding fills of the buffers in `mapped`. After the submission, the program can read these
    /// buffers without a request. Stores all fills in two cases: if another process shares this memory, or if more than
    /// [`MOST_PAUSES`] consecutive submissions have added no fill.
    pub(crate) fn end_submission<'r>(&self, mapped: impl Iterator<Item = &'r Range<u64>>) {
        let memory = self.whole();
        if !memory.has_fills() {
            return;
        }
        if self.forks != mapped::forks() || self.fills.pause() > MOST_PAUSES {
            self.settle();
        }
        mapped.for_each(|range| memory.settle(range.start as usize..range.end as usize));
    }

    /// Stores all fills that are outstanding.
    pub(crate) fn settle(&self) {
        self.whole().settle(0..BYTES as usize);
    }

    /// Drops the fills that a forked process has inherited. The parent of the process stores these fills.
    pub(crate) fn forget_fills(&self) {
        self.fills.forget();
    }

    /// Creates the file of a buffer, filled with zeros, and maps the file for the chip. The range must consist of whole
    /// pages.
    ///
    /// # Errors
    /// The process has too many mappings, or the system has too little memory.
    pub(crate) fn place(&mut self, range: &Range<u64>) -> io::Result<()> {
        if let Some(file) = self.unpark(range) {
            self.placed.insert(
                range.start,
                Placed { end: range.end, file, forks: mapped::forks(), is_shared: false },
            );
            return Ok(());
        }
        self.files += 1;
        let placed = Placed { end: range.end, file: self.files, forks: mapped::forks(), is_shared: false };
        self.placed.insert(range.start, placed);
        let (start, length) = (range.start as usize, (range.end - range.start) as usize);
        let start = self.chip.wrapping_add(start).cast();
        let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED;
        // SAFETY: the range is inside the mapping of the chip. No view of the range is in use, because `self` is
        // borrowed mutably.
        let start = unsafe { real::mmap(start, length, ACCESS, flags, -1, 0) };
        kept_out_of_core_files(start, length).map(drop)
    }

    /// Maps a file into the memory of the chip. The file is shared with other processes. The length of the file must be
    /// the length of the range.
    ///
    /// # Errors
    /// The errors of the C function `mmap`.
    pub(crate) fn place_file(&mut self, range: &Range<u64>, descriptor: c_int) -> Result<(), Errno> {
        self.files += 1;
        let placed = Placed { end: range.end, file: self.files, forks: mapped::forks(), is_shared: true };
        let (start, length) =
            (self.chip.wrapping_add(range.start as usize), (range.end - range.start) as usize);
        map_at(start.cast(), length, ACCESS, descriptor, 0)?;
        self.placed.insert(range.start, placed);
        Ok(())
    }

    /// Moves a buffer into a file of the same length. The chip's mapping and each mapping of the program then refer to
    /// the new file. The addresses of the mappings stay the same. Writes of other threads to the buffer during the move
    /// can be lost.
    ///
    /// # Errors
    /// `EBUSY` if the program may have mappings that are not on the list. The errors of the C function `mmap`.
    pub(crate) fn move_to(&mut self, range: &Range<u64>, descriptor: c_int) -> Result<(), Errno> {
        self.whole().settle(range.start as usize..range.end as usize);
        let number = self.placed.get(&range.start).map_or(0, |placed| placed.file);
        let mappings = mapped::all(number).ok_or(Errno(libc::EBUSY))?;
        // The loop does not write pieces of zeros, so that no pages are allocated for these pieces.
        const PIECE: usize = 1 << 16;
        for at in (range.start..range.end).step_by(PIECE) {
            let piece = self.read(at as usize..(at as usize + PIECE).min(range.end as usize));
            if piece.iter().any(|byte| *byte != 0) {
                store(descriptor, at - range.start, &piece)?;
            }
        }
        self.place_file(range, descriptor)?;
        let file = self.files;
        for mapping in mappings {
            let Mapped { address, length, offset, access } = mapping;
            let address = std::ptr::with_exposed_provenance_mut(address);
            map_at(address, length, access, descriptor, offset)?;
            mapped::remove(mapping.address, length);
            mapped::add(mapping, file);
        }
        Ok(())
    }

    /// Removes the file of a buffer from the chip's mapping. After the call, the range of the buffer reads as zero.
    /// Mappings of the program continue to refer to the file. When the last mapping of the file ends, the kernel frees
    /// the pages of the file.
    pub(crate) fn discard(&mut self, range: &Range<u64>) {
        self.whole().settle(range.start as usize..range.end as usize);
        let placed = self.placed.remove(&range.start);
        if let Some(placed) = placed.filter(|placed| placed.end == range.end && !placed.is_shared) {
            self.park(range, placed);
        }
        let (start, length) = (range.start as usize, (range.end - range.start) as usize);
        let [chip, floor] = [self.chip, self.floor].map(|base| base.wrapping_add(start).cast::<c_void>());
        let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
        // SAFETY: both ranges are inside mappings of `BYTES` bytes. No view of the ranges is in use, because `self` is
        // borrowed mutably. If the process has too many mappings, `mremap` fails. In this case, the old file stays
        // mapped until the file of a later buffer replaces the old file. The old file is harmless, because no buffer is
        // in this range.
        unsafe {
            libc::madvise(floor, length, libc::MADV_REMOVE);
            real::mremap(floor, 0, length, flags, chip);
        }
    }

    /// Keeps the file of a freed buffer for a new buffer. Does not keep the file if the kept files would then take too
    /// much memory.
    fn park(&mut self, range: &Range<u64>, Placed { file, forks, .. }: Placed) {
        let length = range.end - range.start;
        // If the process has forked since the creation of the file, the child also has the file. In this case, the
        // function does not keep the file.
        if length > MOST_PARKED[0] || forks != mapped::forks() || !self.is_resident(range) {
            return;
        }
        let chip = self.chip.wrapping_add(range.start as usize).cast::<c_void>();
        let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_DONTUNMAP;
        // SAFETY: the range is inside the mapping. No view of the range is in use, because `self` is borrowed mutably.
        // The mapping of the chip stays, but loses its pages. Kernels before 5.13 do not support `MREMAP_DONTUNMAP` for
        // shared memory.
        let start = unsafe { real::mremap(chip, length as usize, length as usize, flags, null_mut()) };
        if start == libc::MAP_FAILED {
            return;
        }
        self.parked.push(Parked { start, length, file, forks });
        while self.parked_bytes() > MOST_PARKED[1] {
            let Parked { start, length, .. } = self.parked.remove(0);
            // SAFETY: only this library uses this mapping, and the library does not use the mapping after this call.
            unsafe { real::munmap(start, length as usize) };
        }
    }

    /// Returns the total size in bytes of the files that are kept for new buffers.
    pub(crate) fn parked_bytes(&self) -> u64 {
        self.parked.iter().map(|parked| parked.length).sum()
    }

    /// Maps a kept file of the buffer's size into the range of the buffer, and fills the file with zeros. Returns the
    /// number of the file. Returns `None` if every kept file has another size or may have another mapping.
    fn unpark(&mut self, range: &Range<u64>) -> Option<u64> {
        let length = range.end - range.start;
        let forks = mapped::forks();
        let fits =
            |parked: &Parked| parked.length == length && parked.forks == forks && !mapped::has(parked.file);
        let place = self.parked.iter().rposition(fits)?;
        let Parked { start, file, .. } = self.parked.remove(place);
        let chip = self.chip.wrapping_add(range.start as usize).cast::<c_void>();
        let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
        // SAFETY: the range is inside the mapping of the chip. No view of the range is in use, because `self` is
        // borrowed mutably. The file is mapped with this length.
        let moved = unsafe { real::mremap(start, length as usize, length as usize, flags, chip) };
        if moved == libc::MAP_FAILED {
            // SAFETY: only this library uses this mapping, and the library does not use the mapping after this call.
            unsafe { real::munmap(start, length as usize) };
            return None;
        }
        let zeros = [0; 1 << 14];
        for at in (range.start..range.end).step_by(zeros.len()) {
            let count = zeros.len().min((range.end - at) as usize);
            self.write(at as usize, &zeros[..count]);
        }
        Some(file)
    }

    /// Returns whether at least three quarters of the pages of a range are in memory.
    fn is_resident(&self, range: &Range<u64>) -> bool {
        let length = (range.end - range.start) as usize;
        let mut pages = vec![0; length.div_ceil(SMALLEST_PAGE)];
        let start = self.chip.wrapping_add(range.start as usize).cast();
        // SAFETY: the range is inside the mapping. The length of `pages` assumes the smallest page size. Therefore,
        // `pages` has at least one byte per page.
        let known = unsafe { libc::mincore(start, length, pages.as_mut_ptr()) } == 0;
        // SAFETY: the call does not access memory.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
        let count = length / page.max(SMALLEST_PAGE);
        known && 4 * pages.iter().filter(|page| **page & 1 != 0).count() >= 3 * count
    }

    /// Maps a part of a buffer for the program. The arguments are those of `mmap`.
    ///
    /// # Errors
    /// The errors of the C function `mmap`.
    pub(crate) fn map(
        &self,
        part: &Range<u64>,
        address: *mut c_void,
        access: c_int,
        flags: c_int,
    ) -> Result<*mut c_void, Errno> {
        // The program may later extend the mapping with `mremap` to the whole buffer. Therefore, this call stores all
        // fills.
        self.settle();
        let length = (part.end - part.start) as usize;
        let place = self.chip.wrapping_add(part.start as usize).cast::<c_void>();
        let failed = || Errno(real::errno());
        // This call of `mmap` chooses, checks and reserves the addresses. The file is mapped later.
        let kept = libc::MAP_FIXED | libc::MAP_FIXED_NOREPLACE | MAP_32BIT;
        let reserve = flags & kept | libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: the addresses are new, or the program allows their replacement by `MAP_FIXED`. The part is inside the
        // mapping of the chip. If the old length is zero, `mremap` keeps the chip's mapping and creates a second
        // mapping of the same file.
        unsafe {
            let start = real::mmap(address, length, libc::PROT_NONE, reserve, -1, 0);
            if start == libc::MAP_FAILED {
                return Err(failed());
            }
            let moved = real::mremap(place, 0, length, libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED, start);
            if moved == libc::MAP_FAILED || access != ACCESS && libc::mprotect(start, length, access) != 0 {
                let why = failed();
                real::munmap(start, length);
                return Err(why);
            }
            let of = self.placed.range(..=part.start).next_back();
            let (offset, file) = of.map_or((0, 0), |(begin, placed)| (part.start - begin, placed.file));
            mapped::add(Mapped { address: start.addr(), length, offset, access }, file);
            // `MAP_LOCKED` and `MAP_POPULATE` only affect speed, so this function ignores errors of `mlock` and
            // `madvise`. The kernel's `mmap` also ignores these errors.
            if flags & libc::MAP_LOCKED != 0 {
                libc::mlock(start, length);
            } else if flags & libc::MAP_POPULATE != 0 {
                libc::madvise(start, length, libc::MADV_WILLNEED);
            }
            Ok(start)
        }
    }
}

/// Maps a part of a file at an address, and thereby replaces the mapping at this address.
fn map_at(
    address: *mut c_void,
    length: usize,
    access: c_int,
    descriptor: c_int,
    offset: u64,
) -> Result<(), Errno> {
    let flags = libc::MAP_SHARED | libc::MAP_NORESERVE | libc::MAP_FIXED;
    // SAFETY: these addresses contain a mapping of a buffer, which this call replaces. The part is inside of the file.
    let start = unsafe { real::mmap(address, length, access, flags, descriptor, offset as libc::off_t) };
    kept_out_of_core_files(start, length).map(drop).map_err(|_| Errno(real::errno()))
}

/// Writes bytes to a file at an offset.
fn store(descriptor: c_int, at: u64, bytes: &[u8]) -> Result<(), Errno> {
    let mut done = 0;
    while done < bytes.len() {
        let rest = &bytes[done..];
        let place = (at + done as u64) as libc::off_t;
        // SAFETY: the address and the length belong to a slice. The code makes a system call instead of calling
        // `pwrite`, because this library replaces `pwrite`.
        let count =
            unsafe { libc::syscall(libc::SYS_pwrite64, descriptor, rest.as_ptr(), rest.len(), place) };
        match usize::try_from(count) {
            Ok(0) => return Err(Errno(libc::EIO)),
            Ok(count) => done += count,
            Err(_) => return Err(Errno(real::errno())),
        }
    }
    Ok(())
}

/// Checks the result of `mmap`. Excludes the mapping from core files, as the kernel does for mappings of drivers.
fn kept_out_of_core_files(start: *mut c_void, length: usize) -> io::Result<*mut u8> {
    if start == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: this library has created the mapping.
    unsafe { libc::madvise(start, length, libc::MADV_DONTDUMP) };
    Ok(start.cast())
}

/// Flag that requests an address below 2 GiB. The flag exists on x86-64 only.
#[cfg(target_arch = "x86_64")]
const MAP_32BIT: c_int = libc::MAP_32BIT;
#[cfg(not(target_arch = "x86_64"))]
const MAP_32BIT: c_int = 0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_discarded_reads_as_zero() {
        let mut memory = Memory::new().unwrap();
        let last = BYTES - (1 << 16);
        for start in [0, 1 << 16, last] {
            let at = start as usize;
            memory.write(at, &[1]);
            memory.discard(&(start..start + (1 << 16)));
            assert_eq!(memory.read(at..at + 1), [0]);
        }
    }

    #[test]
    fn a_mapping_keeps_its_pages_and_the_next_buffer_has_others() {
        let mut memory = Memory::new().unwrap();
        let range = 1 << 20..(1 << 20) + (1 << 17);
        memory.place(&range).unwrap();
        let part = range.start + (1 << 16)..range.end;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let mapped = memory.map(&part, null_mut(), access, libc::MAP_SHARED).unwrap().cast::<u8>();
        let at = part.start as usize;
        // SAFETY: the mapping contains the address, and the test does not unmap the mapping.
        let read = || unsafe { mapped.read_volatile() };
        let byte = |memory: &Memory| memory.read(at..at + 1)[0];
        memory.write(at, &[3]);
        assert_eq!(read(), 3);
        memory.discard(&range);
        assert_eq!((read(), byte(&memory)), (3, 0));
        memory.place(&range).unwrap();
        memory.write(at, &[4]);
        assert_eq!(read(), 3);
        // SAFETY: the mapping contains the address, and the test does not unmap the mapping.
        unsafe { mapped.write_volatile(5) };
        assert_eq!((read(), byte(&memory)), (5, 4));
    }

    #[test]
    fn a_file_that_nobody_else_sees_is_that_of_the_next_buffer_of_its_size() {
        let mut memory = Memory::new().unwrap();
        let range = 5 << 20..(5 << 20) + (1 << 17);
        let (start, length) = (range.start as usize, 1 << 17);
        let (all, zeros) = (vec![7; length], vec![0; length]);
        let read = |memory: &Memory| memory.read(start..start + length);
        memory.place(&range).unwrap();
        memory.write(start, &all);
        memory.discard(&range);
        assert!(read(&memory) == zeros && memory.parked.len() == 1);
        // The new buffer has the size of the freed buffer and a different range. The new buffer uses the kept file.
        let other = 8 << 20..(8 << 20) + (1 << 17);
        memory.place(&other).unwrap();
        let at = other.start as usize;
        assert!(memory.parked.is_empty() && memory.read(at..at + length) == zeros);
        memory.write(at, &all);
        memory.discard(&other);
        // The memory does not keep a file with few pages. A new buffer does not use a kept file of another size.
        let half = range.start..range.start + (1 << 16);
        memory.place(&half).unwrap();
        memory.write(start, &[1]);
        memory.discard(&half);
        assert_eq!((memory.parked.len(), read(&memory) == zeros), (1, true));
        // The program maps this buffer. The mapping still exists when the test creates a second buffer in the same
        // range.
        memory.place(&range).unwrap();
        memory.write(start, &all);
        let mapped = memory.map(&range, null_mut(), ACCESS, libc::MAP_SHARED).unwrap();
        memory.discard(&range);
        memory.place(&range).unwrap();
        // SAFETY: the mapping has `length` bytes.
        assert_eq!((memory.parked.len(), unsafe { mapped.cast::<u8>().read_volatile() }), (1, 7));
        memory.discard(&range);
        // SAFETY: the test has created the mapping and does not use the mapping after this call.
        assert_eq!(unsafe { crate::files::munmap(mapped, length) }, 0);
        memory.place(&range).unwrap();
        assert!(memory.parked.is_empty() && read(&memory) == zeros);
    }

    #[test]
    fn a_program_accesses_memory_while_the_chip_uses_it() {
        let mut memory = Memory::new().unwrap();
        memory.place(&(0..1 << 16)).unwrap();
        let mapped = memory.map(&(0..1 << 16), null_mut(), ACCESS, libc::MAP_SHARED).unwrap().cast::<u8>();
        let chip = memory.whole();
        // SAFETY: the mapping has 64 KiB, and the test does not unmap the mapping.
        unsafe { mapped.add(9).write_volatile(7) };
        assert_eq!(chip.bytes(8..12), [0, 7, 0, 0]);
        // The write changes only one byte of the word. The byte that the program has written keeps its value.
        assert!(chip.write(10, &[8]) && memory.read(8..12) == [0, 7, 8, 0]);
        // SAFETY: the mapping has 64 KiB, and the test does not unmap the mapping.
        assert_eq!(unsafe { [mapped.add(9).read_volatile(), mapped.add(10).read_volatile()] }, [7, 8]);
    }

    #[test]
    fn a_mapping_is_where_and_as_it_is_asked_for() {
        let mut memory = Memory::new().unwrap();
        memory.place(&(0..1 << 16)).unwrap();
        let first = memory.map(&(0..1 << 16), null_mut(), libc::PROT_READ, libc::MAP_SHARED).unwrap();
        let fixed = libc::MAP_SHARED | libc::MAP_FIXED;
        assert_eq!(memory.map(&(0..4096), first, libc::PROT_READ, fixed), Ok(first));
        let kept = libc::MAP_SHARED | libc::MAP_FIXED_NOREPLACE;
        assert_eq!(memory.map(&(0..4096), first, libc::PROT_READ, kept), Err(Errno(libc::EEXIST)));
        let address = first.expose_provenance() as u64;
        assert_eq!(crate::user::read::<u32>(address), Ok(0));
        assert_eq!(crate::user::write(address, &1_u32), Err(Errno(libc::EFAULT)), "only to read");
    }
}
