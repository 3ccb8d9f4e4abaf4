//! The protocol between the driver library in a program and the window of `reconverge drm --screen window`.
//!
//! The process with the window listens on three Unix stream sockets in a private folder. The environment variable
//! `RECONVERGE_DRM_WINDOW` names the folder. The driver library connects to the sockets.
//!
//! | socket | sender | data |
//! |---|---|---|
//! | [`FRAMES`] | library | one frame per connection: a [`FrameHeader`], then its pixels |
//! | [`KEYBOARD`] | window | [`InputEvent`]s of a keyboard, until the connection is closed |
//! | [`POINTER`] | window | [`InputEvent`]s of a pointer with absolute positions, like QEMU's tablet |
//!
//! The library opens a new connection for each frame. So the library needs no open descriptor between frames. An open
//! descriptor would be a problem for two reasons: a program may fork, and a program may close descriptors of the
//! library. The window reads connections in order, so the frames of each process arrive in order.
//!
//! A pixel has four bytes: blue, green, red, and an unused byte. The pixels of the top row come first.
//!
//! An event is the kernel's `struct input_event` of a 64-bit system. The event has the seconds and microseconds of
//! `CLOCK_MONOTONIC` (64 bits each), a type and a code (16 bits each), and a value (32 bits). `EV_SYN` with
//! `SYN_REPORT` ends each group of events. If the socket is full because the program does not read events, the window
//! drops events. After such a loss, the next group of events begins with `SYN_DROPPED`, as in the kernel's `evdev`. For
//! each key, the window sends one event for the press and one event for the release. While the key is held, the window
//! does not repeat the event. Each coordinate of the pointer ranges from 0 to [`PREFERRED`] minus one. This range does
//! not depend on the size of the picture.
//!
//! Sources: the kernel's `include/uapi/linux/input.h` and `input-event-codes.h`.

use std::time::Duration;

use thiserror::Error;

/// The socket for frames.
pub const FRAMES: &str = "frames";
/// The socket for events of the keyboard.
pub const KEYBOARD: &str = "keyboard";
/// The socket for events of the pointer.
pub const POINTER: &str = "pointer";

/// Width and height of the preferred mode of the emulated monitor.
pub const PREFERRED: [u16; 2] = [640, 480];

/// Maximum width and height of a frame.
pub const LARGEST: u32 = 8192;

/// The header of a frame. The header precedes the pixels of the frame.
///
/// ```text
/// byte   0      8         12      16       20        24       32        40
///        magic  version   width   height   process   resets   unknown
/// ```
///
/// Numbers are little-endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameHeader {
    /// Width and height in pixels.
    pub size: [u32; 2],
    /// The process that shows the frame.
    pub process: u32,
    /// Number of resets of the chip in this process.
    pub resets: u64,
    /// Number of different registers, packets and formats that the process has used but that the emulation does not
    /// support.
    pub unknown: u64,
}

const MAGIC: [u8; 8] = *b"RCVFRAME";
const VERSION: u32 = 1;

/// Error for bytes that are not a valid frame header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum FrameError {
    /// The first bytes are not the magic number.
    #[error("not a frame of the driver library")]
    Magic,
    /// The driver library and the window were built from different versions of the source.
    #[error(
        "expected version {VERSION} of a frame, found {0}; build the command and the driver library together"
    )]
    Version(u32),
    /// The width or height in pixels exceeds [`LARGEST`].
    #[error("expected a frame of up to {LARGEST}x{LARGEST} pixels, found {}x{}", .0[0], .0[1])]
    Size([u32; 2]),
}

impl FrameHeader {
    /// Length in bytes.
    pub const LENGTH: usize = 40;

    /// Returns the size of the pixels in bytes.
    pub const fn pixel_bytes(&self) -> usize {
        4 * self.size[0] as usize * self.size[1] as usize
    }

    /// Returns the bytes of the header.
    pub fn to_bytes(&self) -> [u8; FrameHeader::LENGTH] {
        let mut bytes = [0; FrameHeader::LENGTH];
        bytes[..8].copy_from_slice(&MAGIC);
        let words = [VERSION, self.size[0], self.size[1], self.process];
        bytes[8..24].copy_from_slice(&words.map(u32::to_le_bytes).concat());
        bytes[24..].copy_from_slice(&[self.resets, self.unknown].map(u64::to_le_bytes).concat());
        bytes
    }

    /// Parses the bytes of a header.
    ///
    /// # Errors
    /// Returns an error if the bytes are not a frame header, if the version of the header differs from the version of
    /// this crate, or if the size is out of range.
    pub fn from_bytes(bytes: &[u8; FrameHeader::LENGTH]) -> Result<FrameHeader, FrameError> {
        if bytes[..8] != MAGIC {
            return Err(FrameError::Magic);
        }
        let long = |at: usize| {
            let mut value = [0; 8];
            value.copy_from_slice(&bytes[at..at + 8]);
            u64::from_le_bytes(value)
        };
        let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        if word(8) != VERSION {
            return Err(FrameError::Version(word(8)));
        }
        let size = [word(12), word(16)];
        if !size.iter().all(|size| (1..=LARGEST).contains(size)) {
            return Err(FrameError::Size(size));
        }
        Ok(FrameHeader { size, process: word(20), resets: long(24), unknown: long(32) })
    }
}

/// An event of the keyboard or the pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InputEvent {
    /// Type: a constant `EV_*` of the kernel.
    pub kind: u16,
    /// The key, the axis, or the kind of synchronization event.
    pub code: u16,
    /// For a key, 1 if the key is pressed and 0 if the key is released. For an axis, a position or a number of steps.
    pub value: i32,
}

impl InputEvent {
    /// Length in bytes.
    pub const LENGTH: usize = 24;

    /// Returns the bytes of the event, with a time of `CLOCK_MONOTONIC`.
    pub fn to_bytes(&self, time: Duration) -> [u8; InputEvent::LENGTH] {
        let mut bytes = [0; InputEvent::LENGTH];
        bytes[..8].copy_from_slice(&time.as_secs().to_le_bytes());
        bytes[8..16].copy_from_slice(&u64::from(time.subsec_micros()).to_le_bytes());
        bytes[16..18].copy_from_slice(&self.kind.to_le_bytes());
        bytes[18..20].copy_from_slice(&self.code.to_le_bytes());
        bytes[20..].copy_from_slice(&self.value.to_le_bytes());
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: FrameHeader =
        FrameHeader { size: [640, 480], process: 0x0102_0304, resets: 5, unknown: u64::MAX };

    #[test]
    fn a_header_is_read_as_it_was_written() {
        let bytes = HEADER.to_bytes();
        assert_eq!(bytes[..24], *b"RCVFRAME\x01\0\0\0\x80\x02\0\0\xe0\x01\0\0\x04\x03\x02\x01");
        assert_eq!(FrameHeader::from_bytes(&bytes), Ok(HEADER));
        assert_eq!(HEADER.pixel_bytes(), 1_228_800);
    }

    #[test]
    fn a_header_of_something_else_is_an_error() {
        let changed = |at: usize, value: u8| {
            let mut bytes = HEADER.to_bytes();
            bytes[at] = value;
            FrameHeader::from_bytes(&bytes).unwrap_err()
        };
        assert_eq!(changed(0, b'X'), FrameError::Magic);
        assert_eq!(changed(8, 2), FrameError::Version(2));
        assert_eq!(changed(14, 1), FrameError::Size([0x1_0280, 480]));
        let none = FrameHeader { size: [0, 480], ..HEADER };
        assert_eq!(FrameHeader::from_bytes(&none.to_bytes()), Err(FrameError::Size([0, 480])));
    }

    /// The expected layout is `struct input_event` of `include/uapi/linux/input.h` on a 64-bit system: a `struct
    /// timeval`, two `__u16`, an `__s32`.
    #[test]
    fn an_event_has_the_layout_of_the_kernels() {
        let event = InputEvent { kind: 2, code: 8, value: -1 };
        let bytes = event.to_bytes(Duration::new(0x0102_0304, 5_000));
        assert_eq!(bytes[..16], [4, 3, 2, 1, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(bytes[16..], [2, 0, 8, 0, 0xff, 0xff, 0xff, 0xff]);
    }
}
