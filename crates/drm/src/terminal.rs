//! The virtual terminal that belongs to the emulated screen: `/dev/tty0`, and `/dev/tty1`, the only one.
//!
//! A program that shows pictures without a window system first takes a terminal, so that the kernel draws no text on the screen and no
//! key reaches a shell. Nothing else draws or reads keys here, so the terminal only keeps its mode, in each process its own.
//!
//! Source: the kernel's `include/uapi/linux/vt.h` and `kd.h`.

use std::ffi::{c_int, c_ulong, c_void};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::ioctls::{Errno, Plain};
use crate::sockets::{self, Mark};
use crate::user;

/// Number of the terminal.
pub(crate) const NUMBER: u32 = 1;

/// `KD_TEXT` or `KD_GRAPHICS`
static MODE: AtomicU32 = AtomicU32::new(0);
/// The mode of the keyboard: `K_UNICODE`, until a program sets another.
static KEYBOARD: AtomicU32 = AtomicU32::new(3);

/// The way in which the shown terminal changes. (`struct vt_mode`)
#[derive(Clone, Copy)]
#[repr(C)]
struct SwitchMode([u8; 8]);

/// The terminal that is shown, and those in use. (`struct vt_stat`)
#[derive(Clone, Copy)]
#[repr(C)]
struct TerminalState([u16; 3]);

// SAFETY: integers.
unsafe impl Plain for SwitchMode {}
// SAFETY: integers.
unsafe impl Plain for TerminalState {}

/// Opens the terminal. `flags` are those of `open`.
///
/// # Errors
/// As `socket`.
pub(crate) fn open(flags: c_int) -> Result<c_int, Errno> {
    sockets::silent(Some(Mark::Terminal), flags)
}

/// Whether a request is one of terminals with a screen.
pub(crate) fn is_request(request: c_ulong) -> bool {
    (0x4b00..0x4c00).contains(&request) || (0x5600..0x5700).contains(&request)
}

/// Answers a request to the terminal.
///
/// # Errors
/// `EFAULT`; `ENXIO` for another terminal; `ENOTTY` for a request that is not one of those below.
pub(crate) fn answer(request: c_ulong, argument: *mut c_void) -> Result<c_int, Errno> {
    let address = argument.expose_provenance() as u64;
    match request {
        // KDSETMODE, KDGETMODE
        0x4b3a => MODE.store(address as u32, Ordering::Relaxed),
        0x4b3b => user::write(address, &MODE.load(Ordering::Relaxed))?,
        // KDGKBMODE, KDSKBMODE
        0x4b44 => user::write(address, &KEYBOARD.load(Ordering::Relaxed))?,
        0x4b45 => KEYBOARD.store(address as u32, Ordering::Relaxed),
        // KDGKBTYPE: KB_101. KDGKBLED, KDGETLED
        0x4b33 => user::write(address, &2_u8)?,
        0x4b64 | 0x4b31 => user::write(address, &0_u8)?,
        // KDSKBLED, KDSETLED, KDSKBMUTE, VT_RELDISP, VT_DISALLOCATE, VT_LOCKSWITCH, VT_UNLOCKSWITCH
        0x4b65 | 0x4b32 | 0x4b51 | 0x5605 | 0x5608 | 0x560b | 0x560c => (),
        // VT_OPENQRY
        0x5600 => user::write(address, &NUMBER)?,
        // VT_GETMODE: VT_AUTO. VT_SETMODE: there is no other terminal to show.
        0x5601 => user::write(address, &SwitchMode([0; 8]))?,
        0x5602 => _ = user::read::<SwitchMode>(address)?,
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

    /// `include/uapi/linux/vt.h`
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
}
