//! Copies data between the memory of the program and this library. The program passes the addresses.
//!
//! No other module dereferences an address from a request. As in the kernel, an invalid address causes the error
//! `EFAULT` instead of a signal. There are three methods:
//!
//! | bytes | method |
//! |---|---|
//! | few | the kernel checks each page. Then this library copies the bytes |
//! | many | `process_vm_readv` and `process_vm_writev` on this process. These calls check addresses |
//! | many, if a sandbox forbids `process_vm_readv` | a pipe. `read` and `write` on the pipe check addresses |
//!
//! If a driver submits each draw separately, every draw copies a few hundred bytes in four parts. On an AMD EPYC, the
//! second method takes 5.6 us for these copies. The first method takes a tenth of this time.

use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;
use std::ops::Range;

use crate::ioctls::{Errno, Plain};
use crate::real;

/// Number of bytes per step of a copy through a pipe. (`PIPE_BUF`)
const STEP: usize = 4096;
/// Smallest page size in bytes among the processors that Linux supports.
const PAGE: u64 = 4096;

/// Reads a value from the memory of the program.
///
/// # Errors
/// `EFAULT` if any byte of the value cannot be read.
pub(crate) fn read<T: Plain>(address: u64) -> Result<T, Errno> {
    let mut value = MaybeUninit::<T>::uninit();
    copy(Way::FromProgram, &[(address, size_of::<T>())], value.as_mut_ptr().cast())?;
    // SAFETY: all bytes were copied, and every bit pattern is valid for a `Plain` type.
    Ok(unsafe { value.assume_init() })
}

/// Reads `count` contiguous values from the memory of the program.
///
/// # Errors
/// `EFAULT` if any byte of the values cannot be read.
pub(crate) fn read_list<T: Plain>(address: u64, count: usize) -> Result<Vec<T>, Errno> {
    let bytes = count.checked_mul(size_of::<T>()).ok_or(Errno(libc::EFAULT))?;
    read_parts(&[(address, bytes)], count)
}

/// Reads several lists from the memory of the program. Each pair is the address and the number of values of a list.
/// Returns all values in order.
///
/// # Errors
/// `EFAULT` if any byte of the values cannot be read.
pub(crate) fn read_lists<T: Plain>(lists: &[(u64, usize)]) -> Result<Vec<T>, Errno> {
    let fault = Errno(libc::EFAULT);
    let bytes = |&(address, count): &(u64, usize)| Some((address, count.checked_mul(size_of::<T>())?));
    let parts: Vec<Part> = lists.iter().map(bytes).collect::<Option<_>>().ok_or(fault)?;
    let count = lists.iter().try_fold(0_usize, |sum, (_, count)| sum.checked_add(*count)).ok_or(fault)?;
    read_parts(&parts, count)
}

/// Reads `count` values. The bytes of these values are in `parts`.
fn read_parts<T: Plain>(parts: &[Part], count: usize) -> Result<Vec<T>, Errno> {
    assert_eq!(length(parts), count * size_of::<T>());
    let mut values = Vec::<T>::with_capacity(count);
    copy(Way::FromProgram, parts, values.as_mut_ptr().cast())?;
    // SAFETY: the list has room for `count` values. All bytes of the values were copied, and every bit pattern is valid
    // for a `Plain` type.
    unsafe { values.set_len(count) };
    Ok(values)
}

/// Writes a value to the memory of the program.
///
/// # Errors
/// `EFAULT` if any byte of the value cannot be written.
pub(crate) fn write<T: Plain>(address: u64, value: &T) -> Result<(), Errno> {
    write_list(address, std::slice::from_ref(value))
}

/// Writes contiguous values to the memory of the program.
///
/// # Errors
/// `EFAULT` if any byte of the values cannot be written.
pub(crate) fn write_list<T: Plain>(address: u64, values: &[T]) -> Result<(), Errno> {
    copy(Way::ToProgram, &[(address, size_of_val(values))], values.as_ptr().cast_mut().cast())
}

/// Returns whether the C string at an address starts with `text`. If `text` ends with a zero byte, the string must be
/// equal to `text`. Returns false for an invalid address. Does not allocate, and leaves `errno` unchanged.
pub(crate) fn is_start(address: u64, text: &[u8]) -> bool {
    const MOST: usize = 32;
    let errno = real::errno();
    assert!(text.len() <= MOST, "a short text");
    let mut found = [0_u8; MOST];
    let found = &mut found[..text.len()];
    // The function first reads the part of the string that is in the first page. A string that is shorter than `text`
    // may end in the first page, and the next page may not exist.
    let first = text.len().min((PAGE - address % PAGE) as usize);
    let (head, tail) = found.split_at_mut(first);
    let same = copy(Way::FromProgram, &[(address, head.len())], head.as_mut_ptr()).is_ok()
        && *head == text[..first]
        && copy(Way::FromProgram, &[(address + first as u64, tail.len())], tail.as_mut_ptr()).is_ok()
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

/// A contiguous range of bytes in the memory of the program: address and length.
type Part = (u64, usize);

/// Maximum number of parts per system call.
const PARTS: usize = 8;

/// If the parts have at most this number of bytes in total, the library uses the first method in the table at the start
/// of this module.
const FEW: usize = PAGE as usize;

/// Copies parts of the program's memory to `ours`, or copies `ours` to parts of the program's memory. `ours` must have
/// room for all parts in order. Only [`Way::FromProgram`] writes to `ours`.
fn copy(way: Way, parts: &[Part], ours: *mut u8) -> Result<(), Errno> {
    let mut at = 0;
    for parts in parts.chunks(PARTS) {
        if parts.iter().any(|(address, count)| *address == 0 && *count > 0) {
            return Err(Errno(libc::EFAULT));
        }
        let ours = ours.wrapping_add(at);
        let refused = |error: &Errno| matches!(error, Errno(libc::EPERM | libc::ENOSYS | libc::EACCES));
        let mut done = Err(Errno(libc::ENOSYS));
        if length(parts) <= FEW {
            done = checked(way, parts, ours);
        }
        for copy in [at_once, through_a_pipe] {
            if done.as_ref().is_err_and(refused) {
                done = copy(way, parts, ours);
            }
        }
        done?;
        at += length(parts);
    }
    Ok(())
}

/// Size in bytes of a set of signals. A check is a system call that reads a set of signals from a page, or writes a set
/// of signals to a page.
const SET: u64 = 8;

/// Copies parts after the kernel has checked the pages of the parts. Returns `ENOSYS` if the kernel cannot check a
/// page.
///
/// Another thread of the program may remove a page after the check. In this case, the copy raises a signal. An access
/// by the program would raise the same signal.
fn checked(way: Way, parts: &[Part], ours: *mut u8) -> Result<(), Errno> {
    let errno = real::errno();
    let checked = parts.iter().try_for_each(|part| check(way, part));
    real::set_errno(errno);
    checked?;
    let mut start = 0;
    for (address, count) in parts {
        let (theirs, ours) = (pointer(*address), ours.wrapping_add(start));
        // SAFETY: the kernel has just accessed each page of the part, and `ours` has room for the part. The parts do
        // not overlap with `ours`, because the program does not have the address of `ours`. The elements are bytes.
        unsafe {
            match way {
                Way::FromProgram => std::ptr::copy(theirs, ours, *count),
                Way::ToProgram => std::ptr::copy(ours, theirs, *count),
            }
        }
        start += count;
    }
    Ok(())
}

thread_local! {
    /// While a function of this library runs a request of the program, this value is the address of a local variable of
    /// the function. Between requests, the value is 0.
    static CALLED: Cell<u64> = const { Cell::new(0) };
}

/// Runs the function that handles a request of the program. While this function runs, [`CALLED`] is the address of the
/// end of the program's stack. Most arguments of requests are on the program's stack, close to the frame of this
/// function. Pages of the program's stack need no check. A check would take 4 % of the time of a small draw.
pub(crate) fn on_stack_of<T>(call: impl FnOnce() -> T) -> T {
    /// Restores the previous value of `CALLED`, also after a panic.
    struct Restored(u64);
    impl Drop for Restored {
        fn drop(&mut self) {
            CALLED.set(self.0);
        }
    }
    let before = Restored(CALLED.get());
    CALLED.set((&raw const before).expose_provenance() as u64);
    call()
}

/// Maximum number of stack bytes that a call uses. If the distance between a frame and [`CALLED`] is larger, the frame
/// is on another stack. A signal handler that interrupted the call can have a frame on another stack.
const DEEPEST: u64 = 1 << 15;

/// Returns a range of addresses that are certainly on the stack. The range starts at `own`, a variable of this library.
/// The range contains all frames up to [`CALLED`], and the remaining bytes of the last page.
fn stack(own: &u8) -> Range<u64> {
    let (own, called) = ((&raw const *own).expose_provenance() as u64, CALLED.get());
    let is_near = called.checked_sub(own).is_some_and(|distance| distance < DEEPEST);
    own..if is_near { called - called % PAGE + PAGE } else { own }
}

/// Checks each page of a part. For a check, the kernel accesses the page. If the part will be written, the check may
/// change bytes of the part, but no bytes around the part.
fn check(way: Way, &(address, count): &Part) -> Result<(), Errno> {
    let own = 0;
    let stack = stack(&own);
    if stack.start <= address && address < stack.end && count as u64 <= stack.end - address {
        return Ok(());
    }
    let fault = Errno(libc::EFAULT);
    let end = address.checked_add(count as u64).ok_or(fault)?;
    let (mut at, mut unknown) = (address, false);
    while at < end {
        let next = (at - at % PAGE).checked_add(PAGE).ok_or(fault)?.min(end);
        let inside = at.next_multiple_of(SET);
        // Before a read, the check may also read bytes outside of the part. These bytes are in the same page as the
        // part.
        let (set, writes) = match way {
            Way::ToProgram if inside + SET <= next => (inside, true),
            Way::FromProgram | Way::ToProgram => (at - at % SET, false),
        };
        unknown |= matches!(way, Way::ToProgram) && !writes;
        let (none, set) = (std::ptr::null_mut::<u8>(), pointer(set));
        // SAFETY: the kernel checks the address. If `writes` is true, the kernel writes the set of blocked signals to
        // the address. Otherwise, the kernel reads a set from the address and rejects the call, because -1 is not a
        // valid operation. The blocked signals do not change in either case.
        let result = unsafe {
            match writes {
                true => libc::syscall(libc::SYS_rt_sigprocmask, libc::SIG_BLOCK, none, set, SET),
                false => libc::syscall(libc::SYS_rt_sigprocmask, -1, set, none, SET),
            }
        };
        match (result, real::errno()) {
            (0, _) if writes => {}
            (-1, libc::EINVAL) if !writes => {}
            (-1, libc::EFAULT) => return Err(fault),
            _ => unknown = true,
        }
        at = next;
    }
    if unknown { Err(Errno(libc::ENOSYS)) } else { Ok(()) }
}

fn length(parts: &[Part]) -> usize {
    parts.iter().map(|(_, count)| count).sum()
}

fn pointer(address: u64) -> *mut u8 {
    std::ptr::with_exposed_provenance_mut(address as usize)
}

/// Copies up to [`PARTS`] parts with one system call. The system call accesses the memory of this process.
fn at_once(way: Way, parts: &[Part], ours: *mut u8) -> Result<(), Errno> {
    let count = length(parts);
    if count == 0 {
        return Ok(());
    }
    let local = libc::iovec { iov_base: ours.cast(), iov_len: count };
    let mut remote = [libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }; PARTS];
    for (place, (address, count)) in remote.iter_mut().zip(parts) {
        *place = libc::iovec { iov_base: pointer(*address).cast::<c_void>(), iov_len: *count };
    }
    let (local, remote, number) = (&raw const local, remote.as_ptr(), parts.len() as _);
    // SAFETY: `local` has `count` bytes. The kernel checks the addresses of `remote`. The program passed the addresses,
    // and can access the same memory directly.
    let copied = unsafe {
        let process = libc::getpid();
        match way {
            Way::FromProgram => libc::process_vm_readv(process, local, 1, remote, number, 0),
            Way::ToProgram => libc::process_vm_writev(process, local, 1, remote, number, 0),
        }
    };
    match copied {
        -1 => Err(Errno(real::errno())),
        _ if copied as usize == count => Ok(()),
        _ => Err(Errno(libc::EFAULT)),
    }
}

/// Copies through a pipe: `write` copies to the pipe, and `read` copies from the pipe. Both functions check addresses.
fn through_a_pipe(way: Way, parts: &[Part], ours: *mut u8) -> Result<(), Errno> {
    let mut ends: [c_int; 2] = [-1; 2];
    // SAFETY: the array has room for two descriptors.
    if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC | libc::O_NONBLOCK) } != 0 {
        return Err(Errno(real::errno()));
    }
    let step = |theirs: *mut u8, ours: *mut u8, bytes: usize| {
        let (from, to) = match way {
            Way::FromProgram => (theirs, ours),
            Way::ToProgram => (ours, theirs),
        };
        // SAFETY: the part of `ours` has enough bytes, and the kernel checks the addresses of the program. The code
        // makes system calls instead of calling `write`, because this library replaces `write`.
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
    let mut done = Ok(());
    let mut start = 0;
    for (address, count) in parts {
        let place = |at: usize| (pointer(*address).wrapping_add(at), ours.wrapping_add(start + at));
        done = done.and_then(|()| {
            (0..*count).step_by(STEP).try_for_each(|at| {
                let (theirs, ours) = place(at);
                step(theirs, ours, (count - at).min(STEP))
            })
        });
        start += count;
    }
    for end in ends {
        real::close_own(end);
    }
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the address of a page with this protection. The page after the returned page does not exist.
    fn page(protection: c_int) -> u64 {
        let length = 2 * PAGE as usize;
        // SAFETY: the kernel chooses unused addresses for the new mapping.
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
        for copy in [checked, at_once, through_a_pipe] {
            let mut words = [7_u32; 2048];
            let ours = words.as_mut_ptr().cast::<u8>();
            for address in [0x10, absent, absent + PAGE, u64::MAX - 3, 1 << 63] {
                for way in [Way::FromProgram, Way::ToProgram] {
                    assert_eq!(copy(way, &[(address, 8)], ours), Err(FAULT), "{address:#x}");
                }
            }
            assert_eq!(copy(Way::ToProgram, &[(readable, 8)], ours), Err(FAULT));
            assert_eq!(copy(Way::ToProgram, &[(writable + PAGE - 4, 8)], ours), Err(FAULT), "over the end");
            assert_eq!(copy(Way::FromProgram, &[(writable, 8192)], ours), Err(FAULT), "over the end");
            let mut words = [7_u32; 1024];
            assert_eq!(copy(Way::ToProgram, &[(writable, 4096)], words.as_mut_ptr().cast()), Ok(()));
            words.fill(0);
            assert_eq!(
                copy(Way::FromProgram, &[(writable, 1024), (writable, 3072)], words.as_mut_ptr().cast()),
                Ok(())
            );
            assert_eq!(words, [7; 1024]);
            assert_eq!(copy(Way::FromProgram, &[(readable, 4096)], words.as_mut_ptr().cast()), Ok(()));
        }
    }

    #[test]
    fn only_the_end_of_the_stack_is_not_checked() {
        let variable = 7_u32;
        let address = (&raw const variable).expose_provenance() as u64;
        let check = |address: u64| (stack(&0).contains(&address), read::<u32>(address));
        assert_eq!(check(address), (false, Ok(7)), "outside of a call");
        on_stack_of(|| {
            let (own, end) = (0, address - address % PAGE + PAGE);
            let here = (&raw const own).expose_provenance() as u64;
            let stack = stack(&own);
            assert_eq!(stack.start, here);
            assert!(stack.end <= end, "{:#x}..{end:#x}", stack.end);
            assert_eq!(read::<u32>(page(libc::PROT_NONE)), Err(FAULT));
            // The new thread has another stack, and no request runs on this stack. Therefore, `stack` returns an empty
            // range.
            assert_eq!(std::thread::spawn(|| super::stack(&0).count()).join().unwrap(), 0);
        });
        assert!(stack(&0).is_empty());
    }

    #[test]
    fn values_and_lists_come_back_as_they_were_written() {
        let address = page(libc::PROT_READ | libc::PROT_WRITE);
        write(address, &0x0102_0304_u32).unwrap();
        write_list(address + 4, &[5_u32, 6]).unwrap();
        assert_eq!(read_list::<u32>(address, 3), Ok(vec![0x0102_0304, 5, 6]));
        assert_eq!((read::<u64>(address), read_list::<u64>(0, 0)), (Ok(0x5_0102_0304), Ok(vec![])));
        let lists: Vec<(u64, usize)> = (0..20).map(|number| (address + number % 3 * 4, 1)).collect();
        let expected: Vec<u32> = (0..20).map(|number| [0x0102_0304, 5, 6][number % 3]).collect();
        assert_eq!(read_lists::<u32>(&lists), Ok(expected), "more lists than a system call takes");
        assert_eq!((read::<u32>(0), read_list::<u64>(8, usize::MAX)), (Err(FAULT), Err(FAULT)));
    }

    #[test]
    fn a_text_at_the_end_of_its_page_is_compared() {
        let address = page(libc::PROT_READ | libc::PROT_WRITE);
        let end = address + PAGE - 4;
        write_list(end, b"abc\0").unwrap();
        assert!(is_start(end, b"abc\0") && !is_start(end, b"abcdefgh\0") && !is_start(end, b"ab\0"));
        assert!(!is_start(8, b"abc\0") && !is_start(0, b"abc\0") && !is_start(end, b"abc\0d"));
    }
}
