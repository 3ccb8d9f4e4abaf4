//! The part of `nouveau`'s interface that is named NVIF. A call of NVIF is an operation on an object. All calls use the
//! same request. The argument of the request names the object and the operation.
//!
//! ```text
//! | version, kind, owner, route | token | object |   data of the kind   |
//!   8 bytes                       8       8          from 24 on
//! ```
//!
//! The calls of NVIF create and delete the device and the objects of a channel, and describe the device. The node does
//! not store objects. Commands refer to an object by a handle, and the handle contains the class of the object. The
//! list of a channel's classes is empty. Drivers choose the Tesla classes by the number of the chip. Drivers read the
//! list only to find video units, and video units are not emulated.
//!
//! Source: the kernel's `include/nvif/ioctl.h`, `cl0080.h` and `class.h`.

use std::ffi::c_void;

use super::VRAM;
use crate::ioctls::*;
use crate::node::Client;

/// Kinds of calls. (`NVIF_IOCTL_V0_*`)
const CLASSES: u8 = 1;
const NEW: u8 = 2;
const DELETE: u8 = 3;
const METHOD: u8 = 4;

/// The only method that a device supports. (`NV_DEVICE_V0_INFO`)
const INFO_OF_DEVICE: u8 = 0;

/// The type of the bus (PCI Express), and the family of the chips G80 to GT21x. (`NV_DEVICE_INFO_V0_PCIE`,
/// `NV_DEVICE_INFO_V0_TESLA`)
const PCI_EXPRESS: u8 = 3;
const TESLA: u8 = 6;

/// Answers an NVIF call.
///
/// # Errors
/// `ENOSYS` for another version of the interface. `EINVAL` for a kind of call that this node does not answer.
pub(super) fn answer(node: &Client<'_>, request: Request, argument: *mut c_void) -> Result<(), Errno> {
    let mut call = NvifCall::default();
    request.exchange(argument, |found: &mut NvifCall| {
        call = *found;
        Ok(())
    })?;
    if call.version != 0 {
        return Err(Errno(libc::ENOSYS));
    }
    match call.kind {
        CLASSES => request.exchange(argument, |list: &mut NvifClasses| {
            list.count = 0;
            Ok(())
        }),
        NEW => request.exchange(argument, |_: &mut NvifNew| Ok(())),
        DELETE => Ok(()),
        METHOD => request.exchange(argument, |info: &mut NvifDeviceInfo| match info.method {
            INFO_OF_DEVICE => device(node, info),
            method => Err(node.lock().unanswered(format!("NOUVEAU_NVIF: method {method}"))),
        }),
        kind => Err(node.lock().unanswered(format!("NOUVEAU_NVIF: call of kind {kind}"))),
    }
}

/// Describes the device.
fn device(node: &Client<'_>, info: &mut NvifDeviceInfo) -> Result<(), Errno> {
    let board = node.device().board;
    (info.platform, info.family) = (PCI_EXPRESS, TESLA);
    info.chipset = board.chipset().ok_or(Errno(libc::ENODEV))?;
    (info.ram, info.ram_user) = (VRAM, VRAM);
    write(&mut info.chip, &board.chip.to_ascii_uppercase());
    write(info.name.as_flattened_mut(), board.name);
    Ok(())
}

/// Writes a string and a terminating zero to an array.
fn write(place: &mut [u8], text: &str) {
    place.fill(0);
    let most = place.len().saturating_sub(1);
    place.iter_mut().zip(text.bytes().take(most)).for_each(|(byte, letter)| *byte = letter);
}
