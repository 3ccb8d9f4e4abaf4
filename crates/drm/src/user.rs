//! Copies between the memory of the program and this library, at addresses that the program passes.
//!
//! No other module dereferences an address from a request. As in the kernel, an invalid address is `EFAULT` and not a
//! signal: `process_vm_readv` and `process_vm_writev` on the own process check it. Some sandboxes refuse these calls. The
//! bytes are then copied through a pipe, whose `read` and `write` check addresses as well.

use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;

use crate::ioctls::{Errno, Plain};
use crate::real;

/// Bytes per step of a copy through a pipe. (`PIPE_BUF`)
const STEP: usize = 4096;
/// The smallest page of the processors that Linux runs on.
const PAGE: u64 = 4096;

/// Reads a value.
///
/// # Errors
/// `EFAULT` if a byte of it cannot be read.
pub(crate) fn read<T: Plain>(address: u64) -> Result<T, Errno> {
    let mut value = MaybeUninit::<T>::uninit();
    copy(Way::FromProgram, address, value.as_mut_ptr().cast(), size_of::<T>())?;
    // SAFETY: all bytes were copied, and any bytes are a value of a `Plain` type.
    Ok(unsafe { value.assume_init() })
}

/// Reads `count` contiguous values.
///
/// # Errors
/// `EFAULT` if a byte of them cannot be read.
pub(crate) fn read_list<T: Plain>(address: u64, count: usize) -> Result<Vec<T>, Errno> {
    let bytes = count.checked_mul(size_of::<T>()).ok_or(Errno(libc::EFAULT))?;
    let mut values = Vec::<T>::with_capacity(count);
    copy(Way::FromProgram, address, values.as_mut_ptr().cast(), bytes)?;
    // SAFETY: there is room for `count` values, all their bytes were copied, and any bytes are a value of a `Plain` type.
    unsafe { values.set_len(count) };
    Ok(values)
}

/// Writes a value.
///
/// # Errors
/// `EFAULT` if a byte of it cannot be written.
pub(crate) fn write<T: Plain>(address: u64, value: &T) -> Result<(), Errno> {
    write_list(address, std::slice::from_ref(value))
}

/// Writes contiguous values.
///
/// # Errors
/// `EFAULT` if a byte of them cannot be written.
pub(crate) fn write_list<T: Plain>(address: u64, values: &[T]) -> Result<(), Errno> {
    copy(Way::ToProgram, address, values.as_ptr().cast_mut().cast(), size_of_val(values))
}

/// Returns whether the C string at an address is `text`, which includes the zero at its end. An invalid address is not.
/// Does not allocate, and leaves `errno` unchanged.
pub(crate) fn is_text<const LENGTH: usize>(address: u64, text: &[u8; LENGTH]) -> bool {
    let errno = real::errno();
    let mut found = [0_u8; LENGTH];
    // A shorter string may end at the end of its page, and the next page may not exist.
    let first = LENGTH.min((PAGE - address % PAGE) as usize);
    let (head, tail) = found.split_at_mut(first);
    let same = copy(Way::FromProgram, address, head.as_mut_ptr(), head.len()).is_ok()
        && *head == text[..first]
        && copy(Way::FromProgram, address + first as u64, tail.as_mut_ptr(), tail.len()).is_ok()
        && *tail == text[first..];
    real::set_errno(errno);
    same
}

/// Direction of a copy.
#[derive(Clone, Copy)]
enum Way {
    FromProgram,
    ToProgram,
}

/// Copies `count` bytes between the memory of the program at `address` and `ours`, which has room for them. Only
/// [`Way::FromProgram`] writes to `ours`.
fn copy(way: Way, address: u64, ours: *mut u8, count: usize) -> Result<(), Errno> {
    if count == 0 {
        return Ok(());
    }
    if address == 0 {
        return Err(Errno(libc::EFAULT));
    }
    match at_once(way, address, ours, count) {
        Err(Errno(libc::EPERM | libc::ENOSYS | libc::EACCES)) => through_a_pipe(way, address, ours, count),
        done => done,
    }
}

/// Copies with one system call on the own process.
fn at_once(way: Way, address: u64, ours: *mut u8, count: usize) -> Result<(), Errno> {
    let local = libc::iovec { iov_base: ours.cast(), iov_len: count };
    let theirs = std::ptr::with_exposed_provenance_mut::<c_void>(address as usize);
    let remote = libc::iovec { iov_base: theirs, iov_len: count };
    // SAFETY: `local` has `count` bytes. The kernel checks the addresses of `remote`. The program passed them, and could
    // read or write there itself.
    let copied = unsafe {
        let process = libc::getpid();
        match way {
            Way::FromProgram => libc::process_vm_readv(process, &raw const local, 1, &raw const remote, 1, 0),
            Way::ToProgram => libc::process_vm_writev(process, &raw const local, 1, &raw const remote, 1, 0),
        }
    };
    match copied {
        -1 => Err(Errno(real::errno())),
        _ if copied as usize == count => Ok(()),
        _ => Err(Errno(libc::EFAULT)),
    }
}

/// Copies with a `write` to a pipe and a `read` from it, both of which check addresses.
fn through_a_pipe(way: Way, address: u64, ours: *mut u8, count: usize) -> Result<(), Errno> {
    let mut ends: [c_int; 2] = [-1; 2];
    // SAFETY: room for two descriptors.
    if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC | libc::O_NONBLOCK) } != 0 {
        return Err(Errno(real::errno()));
    }
    let step = |at: usize| {
        let bytes = (count - at).min(STEP);
        let theirs = std::ptr::with_exposed_provenance_mut::<u8>((address as usize).wrapping_add(at));
        let ours = ours.wrapping_add(at);
        let (from, to) = match way {
            Way::FromProgram => (theirs, ours),
            Way::ToProgram => (ours, theirs),
        };
        // SAFETY: as in `at_once`. These are system calls because this library defines `write` itself.
        let (written, read) = unsafe {
            let written = libc::syscall(libc::SYS_write, ends[1], from, bytes);
            (written, if written < 0 { -1 } else { libc::syscall(libc::SYS_read, ends[0], to, bytes) })
        };
        match (written, read) {
            (-1, _) | (_, -1) => Err(Errno(real::errno())),
            _ if read as usize == bytes => Ok(()),
            _ => Err(Errno(libc::EFAULT)),
        }
    };
    let done = (0..count).step_by(STEP).try_for_each(step);
    for end in ends {
        real::close_own(end);
    }
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a page with this protection. The next page does not exist.
    fn page(protection: c_int) -> u64 {
        let length = 2 * PAGE as usize;
        // SAFETY: new addresses, which no other code uses.
        unsafe {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            let start = libc::mmap(std::ptr::null_mut(), length, protection, flags, -1, 0);
            assert_ne!(start, libc::MAP_FAILED);
            assert_eq!(libc::munmap(start.byte_add(PAGE as usize), PAGE as usize), 0);
            start.expose_provenance() as u64
        }
    }

    const FAULT: Errno = Errno(libc::EFAULT);

    #[test]
    fn addresses_that_cannot_be_read_or_written_are_faults_on_both_ways() {
        let writable = page(libc::PROT_READ | libc::PROT_WRITE);
        let [readable, absent] = [libc::PROT_READ, libc::PROT_NONE].map(page);
        for copy in [at_once, through_a_pipe] {
            let mut words = [7_u32; 2048];
            let ours = words.as_mut_ptr().cast::<u8>();
            for address in [0x10, absent, absent + PAGE, u64::MAX - 3, 1 << 63] {
                for way in [Way::FromProgram, Way::ToProgram] {
                    assert_eq!(copy(way, address, ours, 8), Err(FAULT), "{address:#x}");
                }
            }
            assert_eq!(copy(Way::ToProgram, readable, ours, 8), Err(FAULT));
            assert_eq!(copy(Way::ToProgram, writable + PAGE - 4, ours, 8), Err(FAULT), "over the end");
            assert_eq!(copy(Way::FromProgram, writable, ours, 8192), Err(FAULT), "over the end");
            let mut words = [7_u32; 1024];
            assert_eq!(copy(Way::ToProgram, writable, words.as_mut_ptr().cast(), 4096), Ok(()));
            words.fill(0);
            assert_eq!(copy(Way::FromProgram, writable, words.as_mut_ptr().cast(), 4096), Ok(()));
            assert_eq!(words, [7; 1024]);
            assert_eq!(copy(Way::FromProgram, readable, words.as_mut_ptr().cast(), 4096), Ok(()));
        }
    }

    #[test]
    fn values_and_lists_come_back_as_they_were_written() {
        let address = page(libc::PROT_READ | libc::PROT_WRITE);
        write(address, &0x0102_0304_u32).unwrap();
        write_list(address + 4, &[5_u32, 6]).unwrap();
        assert_eq!(read_list::<u32>(address, 3), Ok(vec![0x0102_0304, 5, 6]));
        assert_eq!((read::<u64>(address), read_list::<u64>(0, 0)), (Ok(0x5_0102_0304), Ok(vec![])));
        assert_eq!((read::<u32>(0), read_list::<u64>(8, usize::MAX)), (Err(FAULT), Err(FAULT)));
    }

    #[test]
    fn a_text_at_the_end_of_its_page_is_compared() {
        let address = page(libc::PROT_READ | libc::PROT_WRITE);
        let end = address + PAGE - 4;
        write_list(end, b"abc\0").unwrap();
        assert!(is_text(end, b"abc\0") && !is_text(end, b"abcdefgh\0") && !is_text(end, b"ab\0"));
        assert!(!is_text(8, b"abc\0") && !is_text(0, b"abc\0") && !is_text(end, b"abc\0d"));
    }
}
