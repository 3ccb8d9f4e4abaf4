//! Sends frames to the window of `reconverge drm --screen window`, see [`reconverge_board::screen`].
//!
//! The window reads all frames and draws only the newest frame. A program waits up to [`LONGEST`] for the window. If
//! the window does not respond or is closed, the program continues without the window.

use std::io::{self, ErrorKind};
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process;
use std::time::{Duration, Instant};

use reconverge_board::screen::{FRAMES, FrameHeader};

use crate::ioctls::Errno;
use crate::messages::say_once;
use crate::node::State;
use crate::report;
use crate::sockets;

/// Maximum time for which a program waits for the window.
const LONGEST: Duration = Duration::from_secs(3);

/// Shows a picture with three bytes per pixel in the window, if there is a window.
pub(super) fn show(state: &mut State, picture: &[u8], size: [u32; 2]) {
    let Some(folder) = &state.screen.window else { return };
    let [resets, unknown] = report::troubles(state);
    let header = FrameHeader { size, process: process::id(), resets, unknown };
    let Err(error) = send(folder, &header, picture, LONGEST) else { return };
    // Each of these errors means that the user has closed the window or that `reconverge drm` has ended.
    let is_closed = matches!(
        error.kind(),
        ErrorKind::NotFound
            | ErrorKind::ConnectionRefused
            | ErrorKind::ConnectionReset
            | ErrorKind::BrokenPipe
    );
    if !is_closed {
        say_once(&format!("the window does not show further frames of this process: {error}"));
    }
    state.screen.window = None;
}

/// Sends a frame to the window.
///
/// # Errors
/// The errors of the operating system, or `TimedOut`.
fn send(folder: &Path, header: &FrameHeader, picture: &[u8], longest: Duration) -> io::Result<()> {
    let begun = Instant::now();
    let left = || longest.checked_sub(begun.elapsed()).filter(|left| !left.is_zero());
    let stream = connect(&folder.join(FRAMES), || left().ok_or(ErrorKind::TimedOut.into()))?;
    let mut bytes = Vec::with_capacity(FrameHeader::LENGTH + header.pixel_bytes());
    bytes.extend(header.to_bytes());
    bytes.extend(picture.as_chunks::<3>().0.iter().flat_map(|[r, g, b]| [*b, *g, *r, 0]));
    let mut rest = &bytes[..];
    while !rest.is_empty() {
        stream.set_write_timeout(Some(left().ok_or(ErrorKind::TimedOut)?))?;
        // SAFETY: the address and the length belong to a slice.
        let sent = unsafe {
            // If the window is closed during the call, `write` would end the program with a signal. Therefore, the code
            // calls `send`.
            libc::send(stream.as_raw_fd(), rest.as_ptr().cast(), rest.len(), libc::MSG_NOSIGNAL)
        };
        match usize::try_from(sent) {
            Ok(sent) => rest = &rest[sent..],
            Err(_) => match io::Error::last_os_error() {
                error if error.kind() == ErrorKind::Interrupted => {}
                error if error.kind() == ErrorKind::WouldBlock => return Err(ErrorKind::TimedOut.into()),
                error => return Err(error),
            },
        }
    }
    Ok(())
}

/// Connects to the window. If the process of the window is stopped, the queue of connections may be full. In this case,
/// this function waits for at most the time that `left` returns.
///
/// # Errors
/// The errors of the operating system, or `TimedOut`.
fn connect(path: &Path, left: impl Fn() -> io::Result<Duration>) -> io::Result<UnixStream> {
    // SAFETY: the system call does not access memory of the process.
    let socket = unsafe { libc::socket(libc::AF_UNIX, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0) };
    if socket < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new, so no value owns the descriptor yet.
    let stream = unsafe { UnixStream::from_raw_fd(socket) };
    loop {
        // The time limit for writes also applies to `connect` (`socket(7)`, `SO_SNDTIMEO`).
        stream.set_write_timeout(Some(left()?))?;
        match sockets::connect(socket, path) {
            Ok(()) => return Ok(stream),
            Err(Errno(libc::EINTR)) => {}
            Err(Errno(libc::EAGAIN)) => return Err(ErrorKind::TimedOut.into()),
            Err(Errno(errno)) => return Err(io::Error::from_raw_os_error(errno)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Read;
    use std::os::unix::net::UnixListener;
    use std::path::PathBuf;

    use super::*;

    const HEADER: FrameHeader = FrameHeader { size: [2, 1], process: 7, resets: 1, unknown: 2 };

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("reconverge-window-{}-{name}", process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    #[test]
    fn a_frame_is_a_header_and_pixels_with_blue_first() {
        let folder = folder("frame");
        let listener = UnixListener::bind(folder.join(FRAMES)).unwrap();
        send(&folder, &HEADER, &[1, 2, 3, 4, 5, 6], LONGEST).unwrap();
        let mut bytes = Vec::new();
        listener.accept().unwrap().0.read_to_end(&mut bytes).unwrap();
        let (header, pixels) = bytes.split_first_chunk().unwrap();
        assert_eq!(FrameHeader::from_bytes(header), Ok(HEADER));
        assert_eq!(pixels, [3, 2, 1, 0, 6, 5, 4, 0]);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_window_that_is_closed_or_does_not_read_is_an_error() {
        let folder = folder("closed");
        let kind = |header: &FrameHeader, picture: &[u8]| {
            send(&folder, header, picture, Duration::from_millis(20)).unwrap_err().kind()
        };
        assert_eq!(kind(&HEADER, &[0; 6]), ErrorKind::NotFound);
        let listener = UnixListener::bind(folder.join(FRAMES)).unwrap();
        // The picture is larger than the buffer of the socket, so the write blocks.
        let large = FrameHeader { size: [2000, 2000], ..HEADER };
        assert_eq!(kind(&large, &vec![0; 12_000_000]), ErrorKind::TimedOut);
        drop(listener);
        assert_eq!(kind(&HEADER, &[0; 6]), ErrorKind::ConnectionRefused);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_window_that_does_not_accept_is_an_error_and_not_a_wait_for_ever() {
        let folder = folder("stopped");
        let listener = UnixListener::bind(folder.join(FRAMES)).unwrap();
        // The queue holds one more connection than the number that is passed to `listen`. SAFETY: the system call does
        // not access memory of the process.
        assert_eq!(unsafe { libc::listen(listener.as_raw_fd(), 0) }, 0);
        let sent =
            || send(&folder, &HEADER, &[0; 6], Duration::from_millis(20)).map_err(|error| error.kind());
        assert_eq!(sent(), Ok(()));
        assert_eq!(sent(), Err(ErrorKind::TimedOut));
        listener.accept().unwrap();
        assert_eq!(sent(), Ok(()));
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_path_that_no_socket_can_have_is_an_error() {
        let folder = PathBuf::from("x".repeat(200));
        assert_eq!(send(&folder, &HEADER, &[0; 6], LONGEST).unwrap_err().kind(), ErrorKind::InvalidFilename);
    }
}
