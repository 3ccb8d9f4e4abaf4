//! The memory that holds all buffers: one sparse file, mapped here as a whole and by the program in pieces.

use std::ffi::c_int;
use std::io;
use std::ops::Range;

use crate::real;

/// How many bytes there are: far more than the buffers of any program. Pages that were never written take no memory.
pub(crate) const BYTES: u64 = 1 << 40;

/// Which file a descriptor is open on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    device: libc::dev_t,
    inode: libc::ino_t,
}

impl Identity {
    /// The file of a descriptor, where it has one. Leaves `errno` as it is.
    pub(crate) fn of(descriptor: c_int) -> Option<Identity> {
        // SAFETY: all bytes zero is a value of this plain structure.
        let mut status: libc::stat = unsafe { std::mem::zeroed() };
        let errno = real::errno();
        // SAFETY: `status` is a structure of the kind that `fstat` fills.
        let answer = unsafe { real::fstat(descriptor, &raw mut status) };
        real::set_errno(errno);
        (answer == 0).then_some(Identity { device: status.st_dev, inode: status.st_ino })
    }
}

/// The file and its mapping. Both last until the process ends.
#[derive(Debug)]
pub(crate) struct Memory {
    descriptor: c_int,
    bytes: &'static mut [u8],
}

impl Memory {
    /// New memory, all zero.
    ///
    /// # Errors
    /// The system refuses a file or an address range of this size.
    pub(crate) fn new() -> io::Result<Memory> {
        // SAFETY: the name is a C string.
        let descriptor = unsafe { libc::memfd_create(c"reconverge-drm".as_ptr(), libc::MFD_CLOEXEC) };
        if descriptor < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: plain system calls on a descriptor of our own; the kernel chooses the addresses.
        let address = unsafe {
            if libc::ftruncate(descriptor, BYTES as libc::off_t) != 0 {
                return Err(io::Error::last_os_error());
            }
            let flags = libc::MAP_SHARED | libc::MAP_NORESERVE;
            let access = libc::PROT_READ | libc::PROT_WRITE;
            libc::mmap(std::ptr::null_mut(), BYTES as usize, access, flags, descriptor, 0)
        };
        if address == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the mapping is BYTES long, readable and writable, and never unmapped; this is the only slice of it. The
        // program maps the same file at other addresses. What it writes there while a submission runs may or may not be
        // seen, as on a real chip; the drivers write to no buffer that a submission uses before the ioctl returns.
        let bytes = unsafe { std::slice::from_raw_parts_mut(address.cast::<u8>(), BYTES as usize) };
        Ok(Memory { descriptor, bytes })
    }

    /// Which file it is.
    pub(crate) fn identity(&self) -> Option<Identity> {
        Identity::of(self.descriptor)
    }

    /// The descriptor of the file, for duplicates.
    pub(crate) fn descriptor(&self) -> c_int {
        self.descriptor
    }

    /// All of it.
    pub(crate) fn bytes(&mut self) -> &mut [u8] {
        self.bytes
    }

    /// Gives a range back to the system. It reads as zero afterwards, in all mappings.
    pub(crate) fn discard(&mut self, range: &Range<u64>) {
        let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        let (start, length) = (range.start as libc::off_t, (range.end - range.start) as libc::off_t);
        // SAFETY: a plain system call on a descriptor of our own.
        let answer = unsafe { libc::fallocate(self.descriptor, mode, start, length) };
        if answer != 0 {
            // A signal, or a system that cannot: the memory is not given back, and still reads as zero.
            self.bytes[range.start as usize..range.end as usize].fill(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_discarded_reads_as_zero() {
        let mut memory = Memory::new().unwrap();
        let last = BYTES - (1 << 16);
        for start in [0, 1 << 16, last] {
            let at = start as usize;
            memory.bytes()[at] = 1;
            memory.discard(&(start..start + (1 << 16)));
            assert_eq!(memory.bytes()[at], 0);
        }
    }

    #[test]
    fn a_duplicate_is_the_same_file_and_nothing_else_is() {
        let (one, other) = (Memory::new().unwrap(), Memory::new().unwrap());
        // SAFETY: a plain system call.
        let duplicate = unsafe { libc::dup(one.descriptor()) };
        assert_eq!(Identity::of(duplicate), one.identity());
        assert_ne!(one.identity(), other.identity());
        assert_eq!(Identity::of(-1), None);
        // SAFETY: a descriptor made above.
        unsafe { libc::close(duplicate) };
    }
}
