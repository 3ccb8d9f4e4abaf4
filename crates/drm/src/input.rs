//! The input devices of the emulated machine. The keyboard is `/dev/input/event0`. `/dev/input/event1` is a pointer
//! with absolute coordinates.
//!
//! `RECONVERGE_DRM_WINDOW` may name a folder. The folder contains the unix stream sockets `keyboard` and `pointer`. An
//! open file of a device is a connection to one of the two sockets. Without the variable, or if no process listens on
//! the socket, the device has no events.
//!
//! [`reconverge_board::screen`] describes the protocol. The time of an event is the time of `CLOCK_MONOTONIC`. The
//! devices do not repeat a key while the user holds the key, because programs repeat keys themselves.
//!
//! After the user closes the window, `read`, `write` and `ioctl` return `ENODEV`. A removed device returns the same
//! error.
//!
//! This library supports none of the following features: repeated keys (`EV_REP`), the state of keys at the time of
//! opening, masks of events, force feedback. No program can get exclusive access to a device. Changes of the lights
//! (`EV_LED`) are accepted but not shown.

use std::ffi::{CStr, c_int, c_ulong, c_void};
use std::path::Path;

use reconverge_board::screen::{KEYBOARD, POINTER, PREFERRED};

use crate::ioctls::{Errno, Plain};
use crate::messages::say_once;
use crate::real;
use crate::sockets::{self, Mark};
use crate::user;

/// An input device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InputDevice {
    /// All keys of a keyboard, and three lights.
    Keyboard,
    /// A pointer with absolute coordinates, five buttons and two wheels.
    Pointer,
}

/// Types of events. (`EV_SYN` and further constants, `include/uapi/linux/input-event-codes.h`)
pub(crate) const SYN: u8 = 0;
pub(crate) const KEY: u8 = 1;
pub(crate) const REL: u8 = 2;
pub(crate) const ABS: u8 = 3;
const MSC: u8 = 4;
const SW: u8 = 5;
pub(crate) const LED: u8 = 0x11;
const SND: u8 = 0x12;
const FF: u8 = 0x15;

/// Returns the number of codes of an event type, rounded up to a multiple of 64. The kernel returns whole words of 64
/// bits for `EVIOCGBIT`. (`KEY_CNT` and others)
const fn codes(kind: u8) -> Option<usize> {
    match kind {
        KEY => Some(0x300),
        FF => Some(0x80),
        SYN | REL | ABS | MSC | SW | LED | SND => Some(64),
        _ => None,
    }
}

/// The five buttons, from `BTN_LEFT` to `BTN_EXTRA`.
const BUTTONS: std::ops::RangeInclusive<u16> = 0x110..=0x114;
/// The keys of the keyboard, from `KEY_ESC` to `KEY_MICMUTE`.
const KEYS: std::ops::RangeInclusive<u16> = 1..=248;
/// `REL_HWHEEL` and `REL_WHEEL`
const WHEELS: [u16; 2] = [6, 8];
/// `LED_NUML`, `LED_CAPSL`, `LED_SCROLLL`
const LIGHTS: [u16; 3] = [0, 1, 2];
/// `BUS_VIRTUAL`
const VIRTUAL: u16 = 6;
/// The version of the interface. (`EV_VERSION`)
const VERSION: u32 = 0x01_00_01;

/// Bus, vendor, product and version of a device. (`struct input_id`)
#[derive(Clone, Copy)]
#[repr(C)]
struct InputId([u16; 4]);

/// Value, minimum, maximum, fuzz, flat and resolution of an axis. (`struct input_absinfo`)
#[derive(Clone, Copy)]
#[repr(C)]
struct AbsoluteAxis([i32; 6]);

// SAFETY: all fields of the type are integers, and the type has no padding.
unsafe impl Plain for InputId {}
// SAFETY: all fields of the type are integers, and the type has no padding.
unsafe impl Plain for AbsoluteAxis {}

impl InputDevice {
    /// All devices, in the order of their numbers.
    pub(crate) const ALL: [InputDevice; 2] = [InputDevice::Keyboard, InputDevice::Pointer];

    /// Returns the number of the device: N in `/dev/input/eventN`.
    pub(crate) fn number(self) -> u32 {
        self as u32
    }

    /// Returns the device name that programs display.
    pub(crate) fn name(self) -> &'static CStr {
        match self {
            InputDevice::Keyboard => c"Reconverge keyboard",
            InputDevice::Pointer => c"Reconverge pointer",
        }
    }

    /// Returns the physical location of the device. (`EVIOCGPHYS`)
    pub(crate) fn place(self) -> &'static CStr {
        match self {
            InputDevice::Keyboard => c"reconverge/input0",
            InputDevice::Pointer => c"reconverge/input1",
        }
    }

    /// Returns bus, vendor, product and version.
    pub(crate) fn id(self) -> [u16; 4] {
        [VIRTUAL, 0, self.number() as u16 + 1, 1]
    }

    fn mark(self) -> Mark {
        match self {
            InputDevice::Keyboard => Mark::Keyboard,
            InputDevice::Pointer => Mark::Pointer,
        }
    }

    /// Returns the codes that the device has for an event type, one bit per code. For type 0, returns the event types
    /// that the device has. Returns `None` if the type does not exist.
    pub(crate) fn bits(self, kind: u8) -> Option<Vec<u8>> {
        let mut bits = vec![0; codes(kind)? / 8];
        let mut set = |code: u16| bits[usize::from(code / 8)] |= 1 << (code % 8);
        match (self, kind) {
            (InputDevice::Keyboard, SYN) => [SYN, KEY, LED].map(u16::from).into_iter().for_each(set),
            (InputDevice::Keyboard, KEY) => KEYS.for_each(set),
            (InputDevice::Keyboard, LED) => LIGHTS.into_iter().for_each(set),
            (InputDevice::Pointer, SYN) => [SYN, KEY, REL, ABS].map(u16::from).into_iter().for_each(set),
            (InputDevice::Pointer, KEY) => BUTTONS.for_each(set),
            (InputDevice::Pointer, REL) => WHEELS.into_iter().for_each(set),
            (InputDevice::Pointer, ABS) => [0, 1].into_iter().for_each(&mut set),
            _ => (),
        }
        Some(bits)
    }
}

/// Opens a device. `flags` are the flags of `open`.
///
/// # Errors
/// The errors of the C function `socket`.
pub(crate) fn open(device: InputDevice, flags: c_int) -> Result<c_int, Errno> {
    if let Some(folder) = std::env::var_os("RECONVERGE_DRM_WINDOW").filter(|folder| !folder.is_empty()) {
        let name = match device {
            InputDevice::Keyboard => KEYBOARD,
            InputDevice::Pointer => POINTER,
        };
        let path = Path::new(&folder).join(name);
        match sockets::connected(&path, device.mark(), flags) {
            Ok(descriptor) => return Ok(descriptor),
            Err(Errno(why)) => {
                let why = std::io::Error::from_raw_os_error(why);
                say_once(&format!("{}: {why}: no input arrives", path.display()));
            }
        }
    }
    sockets::silent(Some(device.mark()), flags)
}

/// Returns the input device of a descriptor, if the descriptor belongs to an input device. Leaves `errno` unchanged.
pub(crate) fn of(descriptor: c_int) -> Option<InputDevice> {
    let mark = sockets::mark(descriptor)?;
    InputDevice::ALL.into_iter().find(|device| device.mark() == mark)
}

/// An open file of a device. The type has no destructor, because a thread may be cancelled during a read (see the macro
/// `call` in `real.rs`).
#[derive(Clone, Copy, Debug)]
pub(crate) struct InputFile {
    descriptor: c_int,
    /// `O_RDONLY`, `O_WRONLY` or `O_RDWR`
    access: c_int,
}

/// Size of an event in bytes. The fields of an event are, in order: two words for the time, the type, the code, and the
/// value. (`struct input_event`)
const EVENT: usize = size_of::<InputEvent>();

#[derive(Clone, Copy)]
#[repr(C)]
struct InputEvent([u64; 3]);

// SAFETY: all fields of the type are integers, and the type has no padding.
unsafe impl Plain for InputEvent {}

/// Sets `errno` and returns -1.
fn failed(errno: c_int) -> isize {
    real::set_errno(errno);
    -1
}

impl InputFile {
    /// Returns the open file of a descriptor, if the descriptor belongs to a device. Leaves `errno` unchanged.
    pub(crate) fn of(descriptor: c_int) -> Option<InputFile> {
        let (mark, access) = sockets::marked(descriptor)?;
        (mark != Mark::Terminal).then_some(InputFile { descriptor, access })
    }

    /// Reads whole events only, like the kernel. (`evdev_read`, `drivers/input/evdev.c`)
    ///
    /// # Safety
    /// The caller must meet the requirements of `read`.
    pub(crate) unsafe fn read(self, bytes: *mut c_void, count: usize) -> isize {
        if self.access == libc::O_WRONLY {
            return failed(libc::EBADF);
        }
        if count != 0 && count < EVENT {
            return failed(libc::EINVAL);
        }
        // SAFETY: the caller passes a buffer of `count` bytes.
        let result = unsafe { real::read(self.descriptor, bytes, count - count % EVENT) };
        let is_empty = result == 0 && count > 0 || result < 0 && real::errno() == libc::EAGAIN;
        if is_empty && is_removed(self.descriptor) {
            return failed(libc::ENODEV);
        }
        let Ok(mut done) = usize::try_from(result) else { return result };
        // The socket is a stream. The window sends whole events, but the kernel may first deliver only a part of an
        // event.
        while done % EVENT != 0 {
            let rest = EVENT - done % EVENT;
            // SAFETY: the caller passes a buffer of `count` bytes, which has room for the whole event.
            match unsafe { real::read(self.descriptor, bytes.wrapping_byte_add(done), rest) } {
                // The window was closed in the middle of an event.
                0 if done < EVENT => return failed(libc::ENODEV),
                0 => break,
                more @ 1.. => done += more.unsigned_abs(),
                _ if real::errno() == libc::EAGAIN => self.wait(),
                _ if real::errno() == libc::EINTR => (),
                _ => break,
            }
        }
        (done - done % EVENT) as isize
    }

    /// Waits until there are bytes to read.
    fn wait(self) {
        let mut asked = libc::pollfd { fd: self.descriptor, events: libc::POLLIN, revents: 0 };
        // SAFETY: the pointer refers to one local `pollfd`.
        unsafe { libc::poll(&raw mut asked, 1, -1) };
    }

    /// Accepts events from the program and discards the events. The lights of a keyboard are not shown. (`evdev_write`)
    pub(crate) fn write(self, bytes: *const c_void, count: usize) -> isize {
        if self.access == libc::O_RDONLY {
            return failed(libc::EBADF);
        }
        if count != 0 && count < EVENT {
            return failed(libc::EINVAL);
        }
        if is_removed(self.descriptor) {
            return failed(libc::ENODEV);
        }
        let address = bytes.expose_provenance() as u64;
        for number in 0..count / EVENT {
            if user::read::<InputEvent>(address.wrapping_add((number * EVENT) as u64)).is_err() {
                return failed(libc::EFAULT);
            }
        }
        (count - count % EVENT) as isize
    }

    /// Reads or writes the parts of a vector in order. For a driver that has only `read` and `write`, the kernel also
    /// makes one call per part. (`do_loop_readv_writev`, `fs/read_write.c`)
    pub(crate) fn each_part(
        self,
        parts: *const libc::iovec,
        count: c_int,
        one: impl Fn(InputFile, *mut c_void, usize) -> isize,
    ) -> isize {
        if !(0..=libc::UIO_MAXIOV).contains(&count) {
            return failed(libc::EINVAL);
        }
        let mut total = 0;
        for number in 0..count as u64 {
            let address = parts.expose_provenance() as u64 + number * size_of::<libc::iovec>() as u64;
            let part =
                user::read::<u64>(address).and_then(|start| Ok((start, user::read::<u64>(address + 8)?)));
            let Ok((start, length)) = part else { return failed(libc::EFAULT) };
            let done = one(self, std::ptr::with_exposed_provenance_mut(start as usize), length as usize);
            if done < 0 {
                return if total > 0 { total } else { done };
            }
            total += done;
            if done.unsigned_abs() as u64 != length {
                break;
            }
        }
        total
    }
}

/// Returns whether the device of a descriptor was revoked, or whether the window of the device was closed. Leaves
/// `errno` unchanged.
pub(crate) fn is_removed(descriptor: c_int) -> bool {
    if of(descriptor).is_none() {
        return false;
    }
    let errno = real::errno();
    let mut asked = libc::pollfd { fd: descriptor, events: libc::POLLRDHUP, revents: 0 };
    // SAFETY: the pointer refers to one local `pollfd`.
    unsafe { libc::poll(&raw mut asked, 1, 0) };
    real::set_errno(errno);
    asked.revents & (libc::POLLHUP | libc::POLLRDHUP) != 0
}

/// Returns whether a request is a request for input devices.
pub(crate) fn is_request(request: c_ulong) -> bool {
    (request >> 8) & 0xff == c_ulong::from(b'E')
}

/// Answers a request to a device.
///
/// # Errors
/// The errors of the kernel (`drivers/input/evdev.c`). `ENODEV` if the device was removed or revoked. `EINVAL` for an
/// unknown request, axis or type of event. `ENOENT` for a string that the device does not have. `ENOSYS` for the repeat
/// rate, which the devices do not have. `EFAULT` if the argument cannot be read or written.
pub(crate) fn answer(
    device: InputDevice,
    descriptor: c_int,
    request: c_ulong,
    argument: *mut c_void,
) -> Result<c_int, Errno> {
    let (number, size) = ((request & 0xff) as u8, (request >> 16) as usize & 0x3fff);
    let address = argument.expose_provenance() as u64;
    // Writes as many bytes as the argument has room for. Returns the number of written bytes.
    let bytes = |bytes: &[u8]| {
        let bytes = &bytes[..bytes.len().min(size)];
        user::write_list(address, bytes).map(|()| bytes.len() as c_int)
    };
    if is_removed(descriptor) {
        return Err(Errno(libc::ENODEV));
    }
    let read_request = request >> 31 & 1 == 1;
    match (number, read_request) {
        // EVIOCGVERSION, EVIOCGID
        (0x01, true) => user::write(address, &VERSION).map(|()| 0),
        (0x02, true) => user::write(address, &InputId(device.id())).map(|()| 0),
        // EVIOCGREP and EVIOCSREP. `EV_REP` is not supported.
        (0x03, _) => Err(Errno(libc::ENOSYS)),
        // EVIOCGNAME, EVIOCGPHYS, EVIOCGUNIQ, EVIOCGPROP
        (0x06, true) => bytes(device.name().to_bytes_with_nul()),
        (0x07, true) => bytes(device.place().to_bytes_with_nul()),
        (0x08, true) => Err(Errno(libc::ENOENT)),
        (0x09, true) => bytes(&[0; 8]),
        // EVIOCGMTSLOTS. The devices have no slots for touches.
        (0x0a, true) => user::read::<u32>(address).and(Err(Errno(libc::EINVAL))),
        // EVIOCGKEY, EVIOCGLED, EVIOCGSND, EVIOCGSW
        (0x18, true) => bytes(&[0; 0x300 / 8]),
        (0x19..=0x1b, true) => bytes(&[0; 8]),
        // EVIOCGBIT
        (0x20..=0x3f, true) => bytes(&device.bits(number - 0x20).ok_or(Errno(libc::EINVAL))?),
        // EVIOCGABS
        (0x40..=0x7f, true) if device == InputDevice::Pointer => {
            let maximum = match number {
                0x40 => i32::from(PREFERRED[0]) - 1,
                0x41 => i32::from(PREFERRED[1]) - 1,
                _ => 0,
            };
            let axis = AbsoluteAxis([0, 0, maximum, 0, 0, 0]);
            // The kernel added the resolution to this structure later. Therefore, the structure of an old program has
            // no field for the resolution.
            let axis = axis.0.iter().flat_map(|value| value.to_ne_bytes()).collect::<Vec<_>>();
            bytes(&axis).map(|_| 0)
        }
        // EVIOCGEFFECTS. The device cannot play any effects.
        (0x84, true) => user::write(address, &0_u32).map(|()| 0),
        // EVIOCGRAB
        (0x90, false) => Ok(0),
        // EVIOCREVOKE
        (0x91, false) if argument.is_null() => {
            // After this call, no more events arrive, and `is_removed` returns true.
            // SAFETY: the system call does not access memory of the process.
            unsafe { libc::shutdown(descriptor, libc::SHUT_RDWR) };
            Ok(0)
        }
        // EVIOCSCLOCKID
        (0xa0, false) => match user::read::<u32>(address)? as c_int {
            libc::CLOCK_MONOTONIC => Ok(0),
            clock => {
                if [libc::CLOCK_REALTIME, libc::CLOCK_BOOTTIME].contains(&clock) {
                    say_once("input devices: only CLOCK_MONOTONIC is supported for the time of events");
                }
                Err(Errno(libc::EINVAL))
            }
        },
        // EVIOCSABS, EVIOCGMASK, EVIOCSMASK, EVIOCSFF and EVIOCRMFF. The kernel supports these requests, so the library
        // reports the first use.
        (0xc0..=0xff | 0x92 | 0x93 | 0x80 | 0x81, _) => {
            say_once(&format!("input devices: ioctl {number:#04x} is not supported"));
            Err(Errno(libc::EINVAL))
        }
        _ => Err(Errno(libc::EINVAL)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `_IOC(_IOC_READ, 'E', number, size)`
    fn get(number: c_ulong, size: c_ulong) -> c_ulong {
        2 << 30 | size << 16 | c_ulong::from(b'E') << 8 | number
    }

    fn asked<const N: usize>(device: InputDevice, number: c_ulong) -> (Result<c_int, Errno>, [u8; N]) {
        let mut room = [0xee_u8; N];
        (answer(device, -1, get(number, N as c_ulong), room.as_mut_ptr().cast()), room)
    }

    /// The expected values are from `include/uapi/linux/input.h` and `input-event-codes.h`.
    #[test]
    fn a_keyboard_has_keys_and_lights_and_a_pointer_has_axes() {
        use InputDevice::{Keyboard, Pointer};
        assert_eq!(asked::<4>(Keyboard, 1), (Ok(0), VERSION.to_ne_bytes()));
        let (length, types) = asked::<8>(Keyboard, 0x20);
        assert_eq!((length, u64::from_ne_bytes(types)), (Ok(8), 1 << 0 | 1 << 1 | 1 << 0x11));
        let (length, types) = asked::<4>(Pointer, 0x20);
        assert_eq!((length, u32::from_ne_bytes(types)), (Ok(4), 0b1111));
        let (length, keys) = asked::<96>(Keyboard, 0x21);
        assert_eq!(length, Ok(96));
        // The keys are KEY_RESERVED, KEY_ESC, KEY_A, KEY_MICMUTE, and BTN_MISC. The device does not have KEY_RESERVED
        // and BTN_MISC.
        let has = |key: usize| keys[key / 8] >> (key % 8) & 1 == 1;
        assert_eq!([0, 1, 30, 248, 249, 0x100].map(has), [false, true, true, true, false, false]);
        // The buttons are BTN_LEFT to BTN_EXTRA. The buffer is longer than the list of bits.
        let (length, buttons) = asked::<100>(Pointer, 0x21);
        assert_eq!((length, buttons[0x110 / 8], buttons[96]), (Ok(96), 0x1f, 0xee));
    }

    #[test]
    fn the_axes_span_the_preferred_mode() {
        let (answered, axis) = asked::<24>(InputDevice::Pointer, 0x40);
        assert_eq!((answered, i32::from_ne_bytes(axis[8..12].try_into().unwrap())), (Ok(0), 639));
        let (_, axis) = asked::<24>(InputDevice::Pointer, 0x41);
        assert_eq!(i32::from_ne_bytes(axis[8..12].try_into().unwrap()), 479);
        assert_eq!(asked::<24>(InputDevice::Keyboard, 0x40).0, Err(Errno(libc::EINVAL)));
    }

    /// The expected results are from `evdev_do_ioctl` and `str_to_user` in `drivers/input/evdev.c`.
    #[test]
    fn texts_are_cut_and_what_does_not_exist_is_an_error() {
        let device = InputDevice::Keyboard;
        let (length, name) = asked::<32>(device, 6);
        assert_eq!((length, &name[..20]), (Ok(20), &b"Reconverge keyboard\0"[..]));
        assert_eq!(asked::<4>(device, 6), (Ok(4), *b"Reco"));
        let errors = [(0x08, libc::ENOENT), (0x03, libc::ENOSYS), (0x0a, libc::EINVAL), (0x3e, libc::EINVAL)];
        for (number, error) in errors {
            assert_eq!(asked::<8>(device, number).0, Err(Errno(error)), "{number:#x}");
        }
        let null = std::ptr::null_mut();
        assert_eq!(answer(device, -1, get(1, 4), null), Err(Errno(libc::EFAULT)));
    }

    #[test]
    fn times_are_those_of_one_clock() {
        let set = |clock: c_int| {
            let mut clock = clock;
            answer(InputDevice::Pointer, -1, 1 << 30 | 4 << 16 | 0x45a0, (&raw mut clock).cast())
        };
        let invalid = Err(Errno(libc::EINVAL));
        assert_eq!(
            (set(libc::CLOCK_MONOTONIC), set(libc::CLOCK_REALTIME), set(77)),
            (Ok(0), invalid, invalid)
        );
    }
}
