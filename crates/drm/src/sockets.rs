//! Descriptors that represent an input device or the terminal. These descriptors are sockets with a mark.
//!
//! The mark is the mode of the socket's inode, which `fchmod` sets and `fstat` returns. The kernel does not use the
//! mode of a socket without a path. Duplicates of a descriptor have the same mark. A descriptor keeps the mark after
//! `exec`, and in another process that receives the descriptor. Therefore, no list of descriptors is needed. The signal
//! of an open file (`F_SETSIG`) is not suitable as a mark, because the kernel would send this signal instead of
//! `SIGIO`.

use std::ffi::{c_char, c_int};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::ioctls::Errno;
use crate::real;

/// The device that a socket represents. In the mode of the socket, the value begins at bit 3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    /// The keyboard.
    Keyboard = 1,
    /// The pointer.
    Pointer = 2,
    /// The terminal.
    Terminal = 3,
}

/// Returns the mode of a socket that has the mark `mark`. The modes of other sockets do not have the sticky bit. The
/// lowest bits are the access mode of the device. The mode contains the access mode because the kernel opens every
/// socket for reading and writing.
fn mode(mark: Mark, flags: c_int) -> libc::mode_t {
    libc::S_IFSOCK | libc::S_ISVTX | (mark as libc::mode_t) << 3 | (flags & libc::O_ACCMODE) as libc::mode_t
}

/// Returns the mark and the access mode of a socket, if the socket has a mark. The access mode is `O_RDONLY`,
/// `O_WRONLY` or `O_RDWR`. Leaves `errno` unchanged.
pub(crate) fn marked(descriptor: c_int) -> Option<(Mark, c_int)> {
    let found = real::status(descriptor)?.st_mode;
    let access = found as c_int & libc::O_ACCMODE;
    let marks = [Mark::Keyboard, Mark::Pointer, Mark::Terminal];
    marks.into_iter().find(|mark| mode(*mark, access) == found).map(|mark| (mark, access))
}

/// Returns the mark of a socket, if the socket has a mark. Leaves `errno` unchanged.
pub(crate) fn mark(descriptor: c_int) -> Option<Mark> {
    marked(descriptor).map(|(mark, _)| mark)
}

/// Creates a socket that never receives data. The mark is optional. `flags` are the flags of `open`.
///
/// # Errors
/// The errors of the C function `socket`.
pub(crate) fn silent(mark: Option<Mark>, flags: c_int) -> Result<c_int, Errno> {
    // A datagram socket without a peer never becomes readable.
    created(libc::SOCK_DGRAM, mark, flags)
}

/// Creates a socket with a mark, and connects the socket to a listening socket. `flags` are the flags of `open`.
///
/// # Errors
/// The errors of the C functions `socket` and `connect`, and `ENAMETOOLONG` if the path does not fit in an address.
pub(crate) fn connected(path: &Path, mark: Mark, flags: c_int) -> Result<c_int, Errno> {
    let descriptor = created(libc::SOCK_STREAM, Some(mark), flags)?;
    // The peer is on this machine. A nonblocking socket therefore connects at once or not at all.
    connect(descriptor, path).inspect_err(|_| real::close_own(descriptor))?;
    Ok(descriptor)
}

/// Connects a socket to a listening socket.
///
/// # Errors
/// The errors of the C function `connect`, and `ENAMETOOLONG` if the path does not fit in an address.
pub(crate) fn connect(descriptor: c_int, path: &Path) -> Result<(), Errno> {
    // SAFETY: all-zero bytes are valid for this plain structure.
    let mut address: libc::sockaddr_un = unsafe { std::mem::zeroed() };
    address.sun_family = libc::AF_UNIX as libc::sa_family_t;
    let bytes = path.as_os_str().as_bytes();
    if bytes.len() >= address.sun_path.len() {
        return Err(Errno(libc::ENAMETOOLONG));
    }
    for (letter, byte) in address.sun_path.iter_mut().zip(bytes) {
        *letter = *byte as c_char;
    }
    let length = size_of::<libc::sockaddr_un>() as libc::socklen_t;
    // SAFETY: the structure has at least this length.
    let connected = unsafe { libc::connect(descriptor, (&raw const address).cast(), length) };
    if connected == 0 { Ok(()) } else { Err(Errno(real::errno())) }
}

fn created(kind: c_int, mark: Option<Mark>, flags: c_int) -> Result<c_int, Errno> {
    let either = |flag: c_int, socket: c_int| if flags & flag != 0 { socket } else { 0 };
    let kind =
        kind | either(libc::O_NONBLOCK, libc::SOCK_NONBLOCK) | either(libc::O_CLOEXEC, libc::SOCK_CLOEXEC);
    // SAFETY: the system calls do not access memory of the process.
    unsafe {
        let descriptor = libc::socket(libc::AF_UNIX, kind, 0);
        if descriptor < 0 {
            return Err(Errno(real::errno()));
        }
        if let Some(mark) = mark {
            libc::fchmod(descriptor, mode(mark, flags) & !libc::S_IFMT);
        }
        Ok(descriptor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silent_socket_has_its_mark_and_is_never_ready() {
        let descriptor = silent(Some(Mark::Pointer), libc::O_NONBLOCK | libc::O_CLOEXEC).unwrap();
        let mut asked = libc::pollfd { fd: descriptor, events: libc::POLLIN, revents: 0 };
        let mut byte = 0_u8;
        // SAFETY: `poll` accesses one local `pollfd`, and the buffer has one byte.
        unsafe {
            assert_eq!(libc::poll(&raw mut asked, 1, 0), 0);
            assert_eq!(libc::syscall(libc::SYS_read, descriptor, &raw mut byte, 1), -1);
            assert_eq!(real::errno(), libc::EAGAIN);
        }
        assert_eq!((mark(descriptor), mark(0), mark(-1)), (Some(Mark::Pointer), None, None));
        real::close_own(descriptor);
    }

    #[test]
    fn a_path_that_has_no_room_in_an_address_is_an_error() {
        let long = "x".repeat(200);
        assert_eq!(connected(Path::new(&long), Mark::Keyboard, 0), Err(Errno(libc::ENAMETOOLONG)));
        assert_eq!(connected(Path::new("/none/keyboard"), Mark::Keyboard, 0), Err(Errno(libc::ENOENT)));
    }
}
