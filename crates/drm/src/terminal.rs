//! The virtual terminal of the emulated screen. Its path is `/dev/tty1`. `/dev/tty0` names the same terminal, because
//! only one terminal exists.
//!
//! A program that shows pictures without a window system first acquires a terminal. While the program has the terminal,
//! the kernel draws no text on the screen, and shells receive no keys. The emulated screen has no text and no shells,
//! so the emulated terminal only stores a mode. Each process has a separate mode.
//!
//! Source: the kernel's `include/uapi/linux/vt.h` and `kd.h`.

use std::ffi::{c_int, c_ulong, c_void};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::ioctls::{Errno, Plain};
use crate::real;
use crate::sockets::{self, Mark};
use crate::user;

/// Number of the terminal.
pub(crate) const NUMBER: u32 = 1;

/// `KD_GRAPHICS`
const GRAPHICS: u64 = 1;
/// `KD_TEXT1`, the largest valid mode. The modes 2 and 3 have the same meaning as `KD_TEXT`. (`vt_kdsetmode`,
/// `drivers/tty/vt/vt_ioctl.c`)
const TEXTS: u64 = 3;
/// `VT_AUTO` and `VT_PROCESS`
const AUTO: u8 = 0;
const PROCESS: u8 = 1;
/// The mode of the display: `KD_TEXT` or `KD_GRAPHICS`.
static MODE: AtomicU32 = AtomicU32::new(0);
/// The mode of the keyboard. The mode is `K_UNICODE` until a program sets another mode.
static KEYBOARD: AtomicU32 = AtomicU32::new(3);

/// The switching mode that `VT_SETMODE` stored last. `VT_GETMODE` returns this mode. The mode is `VT_AUTO` until a
/// program sets another mode.
static SWITCH: AtomicU64 = AtomicU64::new(0);

/// The structure `vt_mode` as one word. The first byte of the structure is the switching mode of the terminal.
#[derive(Clone, Copy)]
#[repr(C)]
struct SwitchMode(u64);

/// The structure `vt_stat`. The fields are the number of the shown terminal, a signal, and a mask of the terminals in
/// use.
#[derive(Clone, Copy)]
#[repr(C)]
struct TerminalState([u16; 3]);

// SAFETY: all fields of the type are integers, and the type has no padding.
unsafe impl Plain for SwitchMode {}
// SAFETY: all fields of the type are integers, and the type has no padding.
unsafe impl Plain for TerminalState {}

/// Opens the terminal. `flags` are the flags of `open`.
///
/// # Errors
/// The errors of the C function `socket`.
pub(crate) fn open(flags: c_int) -> Result<c_int, Errno> {
    sockets::silent(Some(Mark::Terminal), flags)
}

/// Accepts text and discards the text, because no text is drawn. Returns the number of accepted bytes, or -1 with
/// `errno`.
pub(crate) fn write(access: c_int, bytes: *const c_void, count: usize) -> isize {
    let errno = match access {
        libc::O_RDONLY => libc::EBADF,
        _ if bytes.is_null() && count > 0 => libc::EFAULT,
        _ => return count as isize,
    };
    real::set_errno(errno);
    -1
}

/// Returns whether a request is a request for terminals with a screen.
pub(crate) fn is_request(request: c_ulong) -> bool {
    (0x4b00..0x4c00).contains(&request) || (0x5600..0x5700).contains(&request)
}

/// Answers a request to the terminal.
///
/// # Errors
/// `EFAULT` if the argument cannot be read or written. `ENXIO` for another terminal. `ENOTTY` for an unknown request.
pub(crate) fn answer(request: c_ulong, argument: *mut c_void) -> Result<c_int, Errno> {
    let address = argument.expose_provenance() as u64;
    match request {
        // KDSETMODE, KDGETMODE
        0x4b3a if address <= TEXTS => MODE.store(u32::from(address == GRAPHICS), Ordering::Relaxed),
        0x4b3a => return Err(Errno(libc::EINVAL)),
        0x4b3b => user::write(address, &MODE.load(Ordering::Relaxed))?,
        // KDGKBMODE, KDSKBMODE
        0x4b44 => user::write(address, &KEYBOARD.load(Ordering::Relaxed))?,
        0x4b45 => KEYBOARD.store(address as u32, Ordering::Relaxed),
        // KDGKBTYPE returns KB_101. KDGKBLED and KDGETLED return 0.
        0x4b33 => user::write(address, &2_u8)?,
        0x4b64 | 0x4b31 => user::write(address, &0_u8)?,
        // KDSKBLED, KDSETLED, KDSKBMUTE, VT_RELDISP, VT_DISALLOCATE, VT_LOCKSWITCH, VT_UNLOCKSWITCH
        0x4b65 | 0x4b32 | 0x4b51 | 0x5605 | 0x5608 | 0x560b | 0x560c => (),
        // VT_OPENQRY
        0x5600 => user::write(address, &NUMBER)?,
        // VT_GETMODE and VT_SETMODE. VT_SETMODE only stores the mode, because the screen cannot switch to another
        // terminal.
        0x5601 => user::write(address, &SwitchMode(SWITCH.load(Ordering::Relaxed)))?,
        0x5602 => {
            let SwitchMode(mode) = user::read(address)?;
            if !matches!(mode.to_ne_bytes()[0], AUTO | PROCESS) {
                return Err(Errno(libc::EINVAL));
            }
            // The kernel does not store `frsig`, which is the last field and has no use. This code does not store
            // `frsig` either.
            let mut kept = mode.to_ne_bytes();
            kept[6..].fill(0);
            SWITCH.store(u64::from_ne_bytes(kept), Ordering::Relaxed);
        }
        // VT_GETSTATE
        0x5603 => user::write(address, &TerminalState([NUMBER as u16, 0, 1 << 0 | 1 << NUMBER]))?,
        // VT_ACTIVATE, VT_WAITACTIVE
        0x5606 | 0x5607 if address == u64::from(NUMBER) => (),
        0x5606 | 0x5607 => return Err(Errno(libc::ENXIO)),
        _ => return Err(Errno(libc::ENOTTY)),
    }
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected results are those of `include/uapi/linux/vt.h`.
    #[test]
    fn there_is_one_terminal_and_it_is_shown() {
        let mut number = 0_u32;
        assert_eq!(answer(0x5600, (&raw mut number).cast()), Ok(0));
        assert_eq!(number, 1);
        let mut state = [0_u16; 3];
        assert_eq!(answer(0x5603, state.as_mut_ptr().cast()), Ok(0));
        assert_eq!(state[0], 1);
        let activate = |number: usize| answer(0x5606, std::ptr::without_provenance_mut(number));
        assert_eq!((activate(1), activate(2)), (Ok(0), Err(Errno(libc::ENXIO))));
        assert_eq!(answer(0x5600, std::ptr::null_mut()), Err(Errno(libc::EFAULT)));
        assert_eq!(answer(0x56ff, std::ptr::null_mut()), Err(Errno(libc::ENOTTY)));
    }

    /// As in the kernel's `drivers/tty/vt/vt_ioctl.c`, `vt_kdsetmode` and `VT_SETMODE` reject unknown modes.
    /// `VT_GETMODE` returns the mode that was stored last.
    #[test]
    fn modes_are_kept_and_unknown_ones_refused() {
        let set = |mode: usize| answer(0x4b3a, std::ptr::without_provenance_mut(mode));
        let invalid = Err(Errno(libc::EINVAL));
        assert_eq!((set(1), set(77), set(2), set(0)), (Ok(0), invalid, Ok(0), Ok(0)));
        // The mode is VT_PROCESS with two signals.
        let mut mode = [1_u8, 0, 10, 0, 12, 0, 0, 0];
        assert_eq!(answer(0x5602, mode.as_mut_ptr().cast()), Ok(0));
        let mut found = [0_u8; 8];
        assert_eq!((answer(0x5601, found.as_mut_ptr().cast()), found), (Ok(0), mode));
        mode[0] = 9;
        assert_eq!(answer(0x5602, mode.as_mut_ptr().cast()), invalid);
    }
}
