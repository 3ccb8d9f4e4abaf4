//! Replacements for the functions of libdrm that would search `/sys` for the device of the node.
//!
//! `drmGetDevices2` returns only the emulated device. If the function also returned a real device, a driver might use
//! the real device.

#![allow(non_snake_case, reason = "libdrm's names")]

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::ptr::null_mut;

use crate::device;
use crate::ioctls::ScreenEvent;
use crate::lock::Lock;
use crate::node;
use crate::open_files;
use crate::paths::{CARD, CARD_NUMBER, NUMBER, NodePath, PATH};
use crate::real::{Symbol, call};
use crate::screen::vblank;

/// libdrm's description of a device on a PCI bus. (`drmDevice`)
#[repr(C)]
pub struct Device {
    /// The paths of the device's nodes, indexed by the kind of node.
    nodes: *mut *mut c_char,
    /// The kinds of node that the device has, one bit per kind.
    available_nodes: c_int,
    bus_type: c_int,
    bus: *mut Bus,
    ids: *mut Ids,
}

/// The bus address of a device. (`drmPciBusInfo`)
#[repr(C)]
struct Bus {
    domain: u16,
    bus: u8,
    dev: u8,
    func: u8,
}

/// The identity of a device. (`drmPciDeviceInfo`)
#[repr(C)]
struct Ids {
    vendor: u16,
    device: u16,
    subvendor: u16,
    subdevice: u16,
    revision: u8,
}

/// Number of kinds of node: card, control and render.
const NODES: usize = 3;
/// The kind of node that controls the screen. (`DRM_NODE_PRIMARY`)
const PRIMARY: usize = 0;
/// The kind of the render node. (`DRM_NODE_RENDER`)
const RENDER: usize = 2;
/// `DRM_BUS_PCI`
const PCI: c_int = 0;

/// A [`Device`] and all data to which the [`Device`] refers, in one allocation. As in libdrm, a single `free` releases
/// the allocation.
#[repr(C)]
struct Description {
    device: Device,
    nodes: [*mut c_char; NODES],
    paths: [[u8; 64]; NODES],
    bus: Bus,
    ids: Ids,
}

/// The addresses of the descriptions that callers have received but not yet freed.
pub(crate) static GIVEN: Lock<Vec<usize>> = Lock::new(Vec::new());

/// Allocates a description of the emulated device.
fn description(device: &device::Device) -> *mut Device {
    // SAFETY: the size is not zero. All-zero bytes are valid for this structure.
    let made = unsafe { libc::calloc(1, size_of::<Description>()) }.cast::<Description>();
    // SAFETY: the pointer is null, or points to newly allocated memory that is not shared.
    let Some(description) = (unsafe { made.as_mut() }) else { return null_mut() };
    let paths = [CARD.to_bytes(), &[], PATH.to_bytes()];
    for (kind, path) in paths.into_iter().enumerate() {
        description.paths[kind][..path.len()].copy_from_slice(path);
        description.nodes[kind] = description.paths[kind].as_mut_ptr().cast();
    }
    description.bus.bus = 1;
    description.ids.vendor = device.board.driver.vendor();
    description.ids.device = device.pci;
    description.device = Device {
        nodes: description.nodes.as_mut_ptr(),
        available_nodes: 1 << PRIMARY | 1 << RENDER,
        bus_type: PCI,
        bus: &raw mut description.bus,
        ids: &raw mut description.ids,
    };
    // If the lock is not available, this code does not add the description to the list. In this case, libdrm frees the
    // description with one `free`.
    if let Ok(mut given) = GIVEN.lock() {
        given.push(made.addr());
    }
    made.cast()
}

/// Frees a description if this library has allocated the description. Returns whether this library has allocated the
/// description.
///
/// # Safety
/// The caller must not use the description again.
unsafe fn free(device: *mut Device) -> bool {
    let Ok(mut given) = GIVEN.lock() else { return false };
    let Some(place) = given.iter().position(|address| *address == device.addr()) else { return false };
    given.swap_remove(place);
    // SAFETY: the list contains only addresses that `calloc` returned and that were not freed. The list contained this
    // address.
    unsafe { libc::free(device.cast()) };
    true
}

/// Returns whether a descriptor was opened as the node that controls the screen.
fn is_card(descriptor: c_int) -> bool {
    NodePath::of_node(descriptor) == NodePath::Card
}

/// Returns a copy of a path, which the caller frees.
fn copied(path: &CStr) -> *mut c_char {
    // SAFETY: the path is a C string.
    unsafe { libc::strdup(path.as_ptr()) }
}

/// `drmGetDevice2`: returns the device of a descriptor.
///
/// # Safety
/// The caller must meet the requirements of libdrm's function.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn drmGetDevice2(descriptor: c_int, flags: u32, device: *mut *mut Device) -> c_int {
    static REAL: Symbol = Symbol::new(c"drmGetDevice2");
    if let Some(node) = node::of_any(descriptor) {
        if device.is_null() {
            return -libc::EINVAL;
        }
        let description = description(node.device());
        // SAFETY: `device` is not null, so the caller has passed the address of a pointer.
        unsafe { *device = description };
        return if description.is_null() { -libc::ENOMEM } else { 0 };
    }
    call!(
        REAL.address_in_libdrm(),
        fn(c_int, u32, *mut *mut Device) -> c_int,
        (descriptor, flags, device), else -libc::ENOSYS
    )
}

/// `drmGetDeviceFromDevId`: returns the device of a device number.
///
/// # Safety
/// The caller must meet the requirements of libdrm's function.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn drmGetDeviceFromDevId(
    number: libc::dev_t,
    flags: u32,
    device: *mut *mut Device,
) -> c_int {
    static REAL: Symbol = Symbol::new(c"drmGetDeviceFromDevId");
    if let Some(chosen) = device::chosen().filter(|_| [NUMBER, CARD_NUMBER].contains(&number)) {
        if device.is_null() {
            return -libc::EINVAL;
        }
        let description = description(chosen);
        // SAFETY: `device` is not null, so the caller has passed the address of a pointer.
        unsafe { *device = description };
        return if description.is_null() { -libc::ENOMEM } else { 0 };
    }
    call!(
        REAL.address_in_libdrm(),
        fn(libc::dev_t, u32, *mut *mut Device) -> c_int,
        (number, flags, device), else -libc::ENOSYS
    )
}

/// `drmGetDevice`: returns the device of a descriptor.
///
/// # Safety
/// The caller must meet the requirements of libdrm's function.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn drmGetDevice(descriptor: c_int, device: *mut *mut Device) -> c_int {
    // libdrm's function also requests the revision.
    // SAFETY: the caller meets the requirements of the called function.
    unsafe { drmGetDevice2(descriptor, GET_PCI_REVISION, device) }
}

/// `DRM_DEVICE_GET_PCI_REVISION`
const GET_PCI_REVISION: u32 = 1;

/// `drmGetDevices2`: returns all devices. If `devices` is null, returns only the number of devices.
///
/// # Safety
/// The caller must meet the requirements of libdrm's function.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn drmGetDevices2(flags: u32, devices: *mut *mut Device, most: c_int) -> c_int {
    static REAL: Symbol = Symbol::new(c"drmGetDevices2");
    if let Some(device) = device::chosen() {
        if !devices.is_null() && most > 0 {
            // SAFETY: the array has room for at least one address.
            unsafe { *devices = description(device) };
        }
        return 1;
    }
    call!(
        REAL.address_in_libdrm(),
        fn(u32, *mut *mut Device, c_int) -> c_int,
        (flags, devices, most), else -libc::ENOSYS
    )
}

/// `drmGetDevices`: returns all devices. If `devices` is null, returns only the number of devices.
///
/// # Safety
/// The caller must meet the requirements of libdrm's function.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn drmGetDevices(devices: *mut *mut Device, most: c_int) -> c_int {
    // SAFETY: the caller meets the requirements of the called function.
    unsafe { drmGetDevices2(GET_PCI_REVISION, devices, most) }
}

/// `drmFreeDevice`: frees a description.
///
/// # Safety
/// The caller must meet the requirements of libdrm's function.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn drmFreeDevice(device: *mut *mut Device) {
    static REAL: Symbol = Symbol::new(c"drmFreeDevice");
    if device.is_null() {
        return;
    }
    // SAFETY: `device` is not null, so the caller has passed the address of a pointer. The caller does not use the
    // pointer's target again.
    if unsafe { free(*device) } {
        // SAFETY: `device` is not null, so the caller has passed the address of a pointer.
        unsafe { *device = null_mut() };
        return;
    }
    call!(REAL.address_in_libdrm(), fn(*mut *mut Device) -> (), (device), else ());
}

/// `drmFreeDevices`: frees descriptions.
///
/// # Safety
/// The caller must meet the requirements of libdrm's function.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn drmFreeDevices(devices: *mut *mut Device, count: c_int) {
    if devices.is_null() {
        return;
    }
    for number in 0..usize::try_from(count).unwrap_or(0) {
        // SAFETY: the caller passes an array of this length.
        unsafe { drmFreeDevice(devices.add(number)) };
    }
}

/// `drmGetRenderDeviceNameFromFd`: returns the path of the render node of a descriptor's device.
///
/// # Safety
/// The caller must meet the requirements of libdrm's function.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn drmGetRenderDeviceNameFromFd(descriptor: c_int) -> *mut c_char {
    static REAL: Symbol = Symbol::new(c"drmGetRenderDeviceNameFromFd");
    if node::of_any(descriptor).is_some() {
        return copied(PATH);
    }
    call!(REAL.address_in_libdrm(), fn(c_int) -> *mut c_char, (descriptor), else null_mut())
}

/// `drmGetDeviceNameFromFd2`: returns the path of a descriptor's node.
///
/// # Safety
/// The caller must meet the requirements of libdrm's function.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn drmGetDeviceNameFromFd2(descriptor: c_int) -> *mut c_char {
    static REAL: Symbol = Symbol::new(c"drmGetDeviceNameFromFd2");
    if node::of_any(descriptor).is_some() {
        return copied(if is_card(descriptor) { CARD } else { PATH });
    }
    call!(REAL.address_in_libdrm(), fn(c_int) -> *mut c_char, (descriptor), else null_mut())
}

/// `drmGetNodeTypeFromFd`: returns the kind of the node that was opened for a descriptor.
///
/// # Safety
/// The caller must meet the requirements of libdrm's function.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn drmGetNodeTypeFromFd(descriptor: c_int) -> c_int {
    static REAL: Symbol = Symbol::new(c"drmGetNodeTypeFromFd");
    if node::of_any(descriptor).is_some() {
        return if is_card(descriptor) { PRIMARY } else { RENDER } as c_int;
    }
    call!(REAL.address_in_libdrm(), fn(c_int) -> c_int, (descriptor), else -1)
}

/// Handlers for the events of the screen. (`drmEventContext`. Later versions of the structure have more members.)
#[repr(C)]
pub struct EventContext {
    version: c_int,
    vblank: Option<FlipHandler>,
    flip: Option<FlipHandler>,
    flip_of: Option<FlipOfHandler>,
    sequence: Option<SequenceHandler>,
}

/// A handler. The arguments are the descriptor, the frame count, the time in seconds and microseconds, and a pointer
/// that the program has passed.
type FlipHandler = unsafe extern "C" fn(c_int, c_uint, c_uint, c_uint, *mut c_void);
/// A handler with the arguments of [`FlipHandler`] and the identifier of the screen. The identifier precedes the
/// program's pointer.
type FlipOfHandler = unsafe extern "C" fn(c_int, c_uint, c_uint, c_uint, c_uint, *mut c_void);

/// A handler. The arguments are the descriptor, the frame count, the time in nanoseconds, and a value that the program
/// has passed.
type SequenceHandler = unsafe extern "C" fn(c_int, u64, u64, u64);

/// Versions of [`EventContext`]. Each constant is the first version with a member. The members are `vblank`, `flip`,
/// `flip_of` and `sequence`.
const VBLANK: c_int = 1;
const FLIP: c_int = 2;
const FLIP_OF: c_int = 3;
const SEQUENCE: c_int = 4;

/// `drmHandleEvent`: calls the program's handlers for the queued events of the screen. Does not wait for an event.
///
/// # Safety
/// The caller must meet the requirements of libdrm's function.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn drmHandleEvent(descriptor: c_int, context: *mut EventContext) -> c_int {
    static REAL: Symbol = Symbol::new(c"drmHandleEvent");
    if node::of_any(descriptor).is_none() {
        return call!(
            REAL.address_in_libdrm(),
            fn(c_int, *mut EventContext) -> c_int,
            (descriptor, context), else -1
        );
    }
    if context.is_null() {
        return -1;
    }
    // This function reads all queued events before the function calls the first handler. A handler may request another
    // flip. This flip completes at once and queues another event. If the function read the queue after each handler,
    // the loop might never end.
    let events: Vec<ScreenEvent> = std::iter::from_fn(|| open_files::next_event(descriptor)).collect();
    for ScreenEvent { kind, user, time, place, .. } in events {
        let given = std::ptr::with_exposed_provenance_mut(user as usize);
        let ([seconds, micros], [frame, crtc]) = (time, place);
        // SAFETY: `context` is not null and has the members of the version that `context` states. The program has set
        // the handlers for these calls.
        unsafe {
            let version = (*context).version;
            let since = |first: c_int| version >= first;
            match kind {
                vblank::VBLANK => {
                    if let Some(handler) = if since(VBLANK) { (*context).vblank } else { None } {
                        handler(descriptor, frame, seconds, micros, given);
                    }
                }
                vblank::SEQUENCE => {
                    if let Some(handler) = if since(SEQUENCE) { (*context).sequence } else { None } {
                        handler(descriptor, vblank::whole(place), vblank::whole(time), user);
                    }
                }
                _ => {
                    if let Some(handler) = if since(FLIP_OF) { (*context).flip_of } else { None } {
                        handler(descriptor, frame, seconds, micros, crtc, given);
                    } else if let Some(handler) = if since(FLIP) { (*context).flip } else { None } {
                        handler(descriptor, frame, seconds, micros, given);
                    }
                }
            }
        }
    }
    0
}

const _: () = assert!(size_of::<*mut c_void>() == 8, "the layouts are those of 64-bit systems");
// The expected sizes are the sizes of the structures in the header of libdrm 2.4.114.
const _: () = assert!(size_of::<Device>() == 32 && size_of::<Bus>() == 6 && size_of::<Ids>() == 10);

#[cfg(test)]
mod tests {
    use std::ffi::CStr;

    use reconverge_board::Board;

    use super::*;

    #[test]
    fn a_description_names_the_board_and_is_freed_once() {
        let board = Board::named("rv730").unwrap();
        let mut made = description(&device::Device::new(board));
        // SAFETY: `description` has returned a valid address. The test does not use the address after the description
        // is freed.
        unsafe {
            let device = &*made;
            let paths = [PRIMARY, RENDER].map(|kind| CStr::from_ptr(*device.nodes.add(kind)));
            assert_eq!(paths, [CARD, PATH]);
            assert_eq!((device.available_nodes, device.bus_type, (*device.bus).bus), (5, PCI, 1));
            assert_eq!(((*device.ids).vendor, (*device.ids).device), (0x1002, 0x9490));
            drmFreeDevices(&raw mut made, 1);
            assert!(made.is_null() && !free(made));
        }
    }
}
