//! The functions that describe the device.

use std::ffi::{c_char, c_int, c_uint};

use crate::board::Board;
use crate::call::{give, give_text, text};
use crate::driver::driver;
use crate::status::{CallResult, CudaError};

/// Checks that a device number is 0, the number of the only device.
pub(crate) fn check(device: c_int) -> CallResult {
    driver()?;
    if device == 0 { Ok(()) } else { Err(CudaError::INVALID_DEVICE) }
}

pub(crate) fn board(device: c_int) -> Result<&'static Board, CudaError> {
    check(device)?;
    Ok(driver()?.board)
}

/// `cuDeviceGet`
pub(crate) unsafe fn get(device: *mut c_int, ordinal: c_int) -> CallResult {
    driver()?;
    if device.is_null() {
        return Err(CudaError::INVALID_VALUE);
    }
    check(ordinal)?;
    // SAFETY: the caller passes null or a valid pointer.
    unsafe { give(device, 0) }
}

/// `cuDeviceGetCount`
pub(crate) unsafe fn count(count: *mut c_int) -> CallResult {
    driver()?;
    // SAFETY: the caller passes null or a valid pointer.
    unsafe { give(count, 1) }
}

/// `cuDeviceGetName`
pub(crate) unsafe fn name(name: *mut c_char, room: c_int, device: c_int) -> CallResult {
    let board = board(device)?;
    // SAFETY: the caller passes null or a buffer of `room` bytes.
    unsafe { give_text(name, room, board.name) }
}

/// Returns the UUID of the device. The UUID consists of the project's name and the PCI id.
const fn uuid(pci_id: u32) -> [u8; 16] {
    let id = pci_id.to_be_bytes();
    [
        b'R',
        b'e',
        b'c',
        b'o',
        b'n',
        b'v',
        0x40 | b'e' & 0xf,
        b'r',
        0x80 | b'g' & 0x3f,
        b'e',
        0,
        0,
        id[0],
        id[1],
        id[2],
        id[3],
    ]
}

/// `cuDeviceGetUuid`
pub(crate) unsafe fn get_uuid(to: *mut [u8; 16], device: c_int) -> CallResult {
    let board = board(device)?;
    // SAFETY: the caller passes null or a valid pointer.
    unsafe { give(to, uuid(board.pci_id)) }
}

/// `cuDeviceGetLuid`. This call is not supported, because only Windows has LUIDs.
pub(crate) unsafe fn get_luid(_luid: *mut c_char, _mask: *mut c_uint, device: c_int) -> CallResult {
    check(device)?;
    Err(CudaError::NOT_SUPPORTED)
}

/// `cuDeviceTotalMem`
pub(crate) unsafe fn total_memory(bytes: *mut usize, device: c_int) -> CallResult {
    let board = board(device)?;
    // SAFETY: the caller passes null or a valid pointer.
    unsafe { give(bytes, board.memory as usize) }
}

/// `cuDeviceTotalMem` of CUDA 3.1 and earlier.
pub(crate) unsafe fn total_memory_32(bytes: *mut u32, device: c_int) -> CallResult {
    let board = board(device)?;
    // SAFETY: the caller passes null or a valid pointer.
    unsafe { give(bytes, board.memory as u32) }
}

/// `cuDeviceGetAttribute`
pub(crate) unsafe fn get_attribute(value: *mut c_int, attribute: c_int, device: c_int) -> CallResult {
    driver()?;
    let found = driver()?.board.attribute(attribute).ok_or(CudaError::INVALID_VALUE)?;
    if value.is_null() {
        return Err(CudaError::INVALID_VALUE);
    }
    check(device)?;
    // SAFETY: the caller passes null or a valid pointer.
    unsafe { give(value, found as c_int) }
}

/// `cuDeviceComputeCapability`
pub(crate) unsafe fn compute_capability(major: *mut c_int, minor: *mut c_int, device: c_int) -> CallResult {
    let board = board(device)?;
    if major.is_null() || minor.is_null() {
        return Err(CudaError::INVALID_VALUE);
    }
    // SAFETY: the caller passes null or valid pointers.
    unsafe {
        give(major, 1)?;
        give(minor, board.minor as c_int)
    }
}

/// `CUdevprop`
#[repr(C)]
pub(crate) struct Properties {
    most_threads: c_int,
    most_block: [c_int; 3],
    most_grid: [c_int; 3],
    shared: c_int,
    constant: c_int,
    warp: c_int,
    most_pitch: c_int,
    registers: c_int,
    clock: c_int,
    texture_alignment: c_int,
}

/// `cuDeviceGetProperties`
pub(crate) unsafe fn properties(properties: *mut Properties, device: c_int) -> CallResult {
    let board = board(device)?;
    let attribute = |number| board.attribute(number).unwrap_or(0) as c_int;
    let found = Properties {
        most_threads: attribute(1),
        most_block: [attribute(2), attribute(3), attribute(4)],
        most_grid: [attribute(5), attribute(6), attribute(7)],
        shared: attribute(8),
        constant: attribute(9),
        warp: attribute(10),
        most_pitch: attribute(11),
        registers: attribute(12),
        clock: attribute(13),
        texture_alignment: attribute(14),
    };
    // SAFETY: the caller passes null or a valid pointer.
    unsafe { give(properties, found) }
}

/// The address of the device on the PCI bus.
const BUS_ID: &str = "0000:01:00.0";

/// `cuDeviceGetPCIBusId`
pub(crate) unsafe fn bus_id(to: *mut c_char, room: c_int, device: c_int) -> CallResult {
    check(device)?;
    // SAFETY: the caller passes null or a buffer of `room` bytes.
    unsafe { give_text(to, room, BUS_ID) }
}

/// `cuDeviceGetByPCIBusId`. The identifier may omit the domain and the function.
pub(crate) unsafe fn by_bus_id(device: *mut c_int, id: *const c_char) -> CallResult {
    driver()?;
    // SAFETY: the caller passes null or a C string.
    let id = unsafe { text(id) }.map_err(|_| CudaError::INVALID_VALUE)?;
    let forms = [BUS_ID, &BUS_ID[..10], &BUS_ID[5..], &BUS_ID[5..10]];
    if device.is_null() || !id.contains(':') {
        return Err(CudaError::INVALID_VALUE);
    }
    let found = forms.iter().any(|form| form.eq_ignore_ascii_case(id));
    if !found {
        return Err(CudaError::INVALID_DEVICE);
    }
    // SAFETY: the caller passes null or a valid pointer.
    unsafe { give(device, 0) }
}

/// `cuDeviceCanAccessPeer`
pub(crate) unsafe fn can_access_peer(can: *mut c_int, device: c_int, peer: c_int) -> CallResult {
    check(device)?;
    check(peer)?;
    // SAFETY: the caller passes null or a valid pointer.
    unsafe { give(can, 0) }
}

/// `cuDeviceGetP2PAttribute`. This call fails, because there is no second device.
pub(crate) unsafe fn peer_attribute(
    value: *mut c_int,
    _attribute: c_int,
    from: c_int,
    to: c_int,
) -> CallResult {
    check(from)?;
    check(to)?;
    if value.is_null() { Err(CudaError::INVALID_VALUE) } else { Err(CudaError::INVALID_DEVICE) }
}

/// `cuDeviceGetExecAffinitySupport`
pub(crate) unsafe fn exec_affinity(supported: *mut c_int, kind: c_int, device: c_int) -> CallResult {
    check(device)?;
    // `CU_EXEC_AFFINITY_TYPE_SM_COUNT` is the only kind of affinity.
    if kind != 0 {
        return Err(CudaError::INVALID_VALUE);
    }
    // SAFETY: the caller passes null or a valid pointer.
    unsafe { give(supported, 0) }
}
