//! The allocations and the contents of the device's memory.

use std::ffi::{c_int, c_uint};

use reconverge_simt::memory::Buffer;

use crate::addresses::{Allocation, AllocationKind};
use crate::call::{give, offer};
use crate::context::{self, CudaContext};
use crate::driver::{driver, started};
use crate::handles::lock;
use crate::host;
use crate::queue;
use crate::status::{CallResult, CudaError};
use crate::stream;

/// Allocates memory in a context and fills the memory with zeros.
///
/// # Errors
/// Returns an error if the device or the host does not have enough memory.
pub(crate) fn place(
    context: &CudaContext,
    bytes: u64,
    kind: AllocationKind,
) -> Result<Allocation, CudaError> {
    let allocation =
        lock(&started()?.addresses).allocate(bytes, context.handle, kind).ok_or(CudaError::OUT_OF_MEMORY)?;
    let give_back = || {
        if let Ok(driver) = started() {
            lock(&driver.addresses).free(allocation.address, |_| true);
        }
        CudaError::OUT_OF_MEMORY
    };
    let mut contents = Vec::new();
    contents.try_reserve_exact(bytes as usize).map_err(|_| give_back())?;
    contents.resize(bytes as usize, 0);
    let buffer = Buffer::new(allocation.address, contents);
    lock(&context.memory).insert(buffer).map_err(|_| give_back())?;
    // Another thread may have destroyed the context in the meantime. In this case, the new allocation still exists.
    if context::CONTEXTS.get(context.handle).is_none() {
        give_back();
        return Err(CudaError::CONTEXT_IS_DESTROYED);
    }
    Ok(allocation)
}

/// Frees the allocation that starts at an address. Does nothing if `wanted` returns false for the kind of the
/// allocation.
pub(crate) fn free_kind(
    address: u64,
    wanted: impl Fn(AllocationKind) -> bool,
) -> Result<Allocation, CudaError> {
    let driver = started()?;
    let address = u32::try_from(address).map_err(|_| CudaError::INVALID_VALUE)?;
    let freed =
        lock(&driver.addresses).free(address, |found| wanted(found.kind)).ok_or(CudaError::INVALID_VALUE)?;
    if let Some(context) = context::CONTEXTS.get(freed.context) {
        lock(&context.memory).remove(address);
    }
    Ok(freed)
}

/// Returns the allocation that contains all bytes of a range.
///
/// # Errors
/// Returns `CUDA_ERROR_INVALID_VALUE` if no allocation contains the range.
pub(crate) fn find(address: u64, bytes: u64) -> Result<Allocation, CudaError> {
    lock(&started()?.addresses).find(address, bytes).ok_or(CudaError::INVALID_VALUE)
}

/// Returns the address on the host if the bytes at a device address are mapped host memory.
pub(crate) fn mapped(address: u64, count: usize) -> Option<usize> {
    let found = find(address, count as u64).ok()?;
    let AllocationKind::Host(start) = found.kind else { return None };
    Some(start + (address - u64::from(found.address)) as usize)
}

/// Calls a function with a range of bytes of the device.
fn with_bytes<T>(address: u64, count: usize, work: impl FnOnce(&mut [u8]) -> T) -> Result<T, CudaError> {
    let found = find(address, count as u64)?;
    if let Some(at) = mapped(address, count) {
        // SAFETY: the program has allocated or registered this host memory, and has not freed this memory.
        return Ok(work(unsafe { std::slice::from_raw_parts_mut(at as *mut u8, count) }));
    }
    let context = context::CONTEXTS.get(found.context).ok_or(CudaError::INVALID_VALUE)?;
    let mut memory = lock(&context.memory);
    memory.bytes_mut(address as u32, count).map(work).ok_or(CudaError::INVALID_VALUE)
}

/// Copies bytes from the device.
pub(crate) fn read(address: u64, to: &mut [u8]) -> CallResult {
    with_bytes(address, to.len(), |bytes| to.copy_from_slice(bytes))
}

/// Copies bytes to the device.
pub(crate) fn write(address: u64, from: &[u8]) -> CallResult {
    with_bytes(address, from.len(), |bytes| bytes.copy_from_slice(from))
}

/// Fills bytes of the device with a pattern.
pub(crate) fn fill(address: u64, count: usize, pattern: &[u8]) -> CallResult {
    with_bytes(address, count, |bytes| match pattern {
        [byte] => bytes.fill(*byte),
        _ => bytes.chunks_mut(pattern.len()).for_each(|part| part.copy_from_slice(&pattern[..part.len()])),
    })
}

fn allocate(bytes: u64) -> Result<u32, CudaError> {
    let context = context::usable()?;
    if bytes == 0 {
        return Err(CudaError::INVALID_VALUE);
    }
    Ok(place(&context, bytes, AllocationKind::Memory)?.address)
}

/// `cuMemAlloc`
pub(crate) unsafe fn alloc(to: *mut u64, bytes: usize) -> CallResult {
    context::usable()?;
    if to.is_null() {
        return Err(CudaError::INVALID_VALUE);
    }
    // SAFETY: the caller passes null or a valid pointer.
    unsafe { give(to, allocate(bytes as u64)?.into()) }
}

/// `cuMemAlloc` of CUDA 3.1 and earlier. The call stores a 32-bit address.
pub(crate) unsafe fn alloc_32(to: *mut u32, bytes: u32) -> CallResult {
    context::usable()?;
    if to.is_null() {
        return Err(CudaError::INVALID_VALUE);
    }
    // SAFETY: the caller passes null or a valid pointer.
    unsafe { give(to, allocate(bytes.into())?) }
}

/// The pitch is the distance in bytes between the starts of two consecutive rows. On Tesla chips, the pitch is a
/// multiple of this number.
const PITCH: u64 = 256;

fn pitched(width: u64, height: u64, element: c_uint) -> Result<(u32, u64), CudaError> {
    context::usable()?;
    if width == 0 || height == 0 || !matches!(element, 4 | 8 | 16) {
        return Err(CudaError::INVALID_VALUE);
    }
    let pitch = width.checked_next_multiple_of(PITCH).ok_or(CudaError::INVALID_VALUE)?;
    let bytes = pitch.checked_mul(height).ok_or(CudaError::OUT_OF_MEMORY)?;
    Ok((allocate(bytes)?, pitch))
}

/// `cuMemAllocPitch`
pub(crate) unsafe fn alloc_pitch(
    to: *mut u64,
    pitch: *mut usize,
    width: usize,
    height: usize,
    element: c_uint,
) -> CallResult {
    context::usable()?;
    if to.is_null() || pitch.is_null() {
        return Err(CudaError::INVALID_VALUE);
    }
    let (address, bytes) = pitched(width as u64, height as u64, element)?;
    // SAFETY: the caller passes null or valid pointers.
    unsafe {
        give(pitch, bytes as usize)?;
        give(to, address.into())
    }
}

/// `cuMemAllocPitch` of CUDA 3.1 and earlier.
pub(crate) unsafe fn alloc_pitch_32(
    to: *mut u32,
    pitch: *mut u32,
    width: u32,
    height: u32,
    element: c_uint,
) -> CallResult {
    context::usable()?;
    if to.is_null() || pitch.is_null() {
        return Err(CudaError::INVALID_VALUE);
    }
    let (address, bytes) = pitched(width.into(), height.into(), element)?;
    // SAFETY: the caller passes null or valid pointers.
    unsafe {
        give(pitch, bytes as u32)?;
        give(to, address)
    }
}

/// `cuMemAllocManaged`. This call is not supported, because chips of this generation have no managed memory.
pub(crate) unsafe fn alloc_managed(_to: *mut u64, _bytes: usize, _flags: c_uint) -> CallResult {
    context::usable()?;
    Err(CudaError::NOT_SUPPORTED)
}

/// `cuMemFree`. This call waits for the tasks of the context. If the address is 0, the call has no effect.
pub(crate) unsafe fn free(address: u64) -> CallResult {
    let context = context::usable()?;
    if address == 0 {
        return Ok(());
    }
    let is_memory = find(address, 1)
        .is_ok_and(|found| found.kind == AllocationKind::Memory && u64::from(found.address) == address);
    if !is_memory {
        return Err(CudaError::INVALID_VALUE);
    }
    queue::wait_for_context(context.handle);
    free_kind(address, |kind| kind == AllocationKind::Memory).map(|_| ())
}

/// `cuMemFree` of CUDA 3.1 and earlier.
pub(crate) unsafe fn free_32(address: u32) -> CallResult {
    // SAFETY: no argument is a pointer to memory of the host.
    unsafe { free(address.into()) }
}

/// `cuMemAllocAsync`. The memory is allocated before the call returns.
pub(crate) unsafe fn alloc_async(to: *mut u64, bytes: usize, stream: usize) -> CallResult {
    stream::find_for_work(stream)?;
    // SAFETY: the caller passes null or a valid pointer.
    unsafe { alloc(to, bytes) }
}

/// `cuMemFreeAsync`. The stream frees the memory after the earlier tasks of the stream have ended.
pub(crate) unsafe fn free_async(address: u64, stream: usize) -> CallResult {
    let (_, stream) = stream::find_for_work(stream)?;
    let start = u32::try_from(address).map_err(|_| CudaError::INVALID_VALUE)?;
    // The mark makes a second `cuMemFreeAsync` fail at once. Without the mark, the second call would succeed, and only
    // the stream would detect the error.
    lock(&started()?.addresses).leave(start).ok_or(CudaError::INVALID_VALUE)?;
    stream.enqueue(move || free_kind(address, |kind| kind == AllocationKind::Leaving).map(|_| ()));
    Ok(())
}

/// `cuMemGetInfo`
pub(crate) unsafe fn get_info(free: *mut usize, total: *mut usize) -> CallResult {
    context::current()?;
    let driver = driver()?;
    let found = lock(&driver.addresses).free_bytes();
    if free.is_null() || total.is_null() {
        return Err(CudaError::INVALID_VALUE);
    }
    // SAFETY: the caller passes null or valid pointers.
    unsafe {
        give(free, found as usize)?;
        give(total, driver.board.memory as usize)
    }
}

/// `cuMemGetInfo` of CUDA 3.1 and earlier.
pub(crate) unsafe fn get_info_32(free: *mut u32, total: *mut u32) -> CallResult {
    let (mut found, mut all) = (0, 0);
    // SAFETY: both pointers are addresses of local variables.
    unsafe { get_info(&raw mut found, &raw mut all)? };
    // SAFETY: the caller passes null or valid pointers.
    unsafe {
        give(free, found as u32)?;
        give(total, all as u32)
    }
}

/// `cuMemGetAddressRange`
pub(crate) unsafe fn address_range(base: *mut u64, bytes: *mut usize, address: u64) -> CallResult {
    context::current()?;
    let found = find(address, 1).map_err(|_| CudaError::NOT_FOUND)?;
    // SAFETY: the caller passes null or valid pointers.
    unsafe {
        offer(base, found.address.into());
        offer(bytes, found.bytes as usize);
    }
    Ok(())
}

/// `cuMemGetAddressRange` of CUDA 3.1 and earlier.
pub(crate) unsafe fn address_range_32(base: *mut u32, bytes: *mut u32, address: u32) -> CallResult {
    context::current()?;
    let found = find(address.into(), 1).map_err(|_| CudaError::NOT_FOUND)?;
    // SAFETY: the caller passes null or valid pointers.
    unsafe {
        offer(base, found.address);
        offer(bytes, found.bytes as u32);
    }
    Ok(())
}

/// `cuPointerGetAttribute`
pub(crate) unsafe fn pointer_attribute(to: *mut u8, attribute: c_int, address: u64) -> CallResult {
    driver()?;
    if to.is_null() {
        return Err(CudaError::INVALID_VALUE);
    }
    let value = pointer_value(attribute, address)?;
    // SAFETY: the caller passes a pointer to a value of the attribute's type.
    unsafe { to.copy_from_nonoverlapping(value.as_ptr(), value.len()) };
    Ok(())
}

/// `cuPointerGetAttributes`. If a pointer does not have an attribute, the call stores 0 for the attribute.
pub(crate) unsafe fn pointer_attributes(
    count: c_uint,
    attributes: *const c_int,
    to: *const *mut u8,
    address: u64,
) -> CallResult {
    driver()?;
    if count == 0 || attributes.is_null() || to.is_null() {
        return Err(CudaError::INVALID_VALUE);
    }
    for index in 0..count as usize {
        // SAFETY: the caller's arrays have `count` elements.
        let (attribute, to) = unsafe { (*attributes.add(index), *to.add(index)) };
        if to.is_null() {
            return Err(CudaError::INVALID_VALUE);
        }
        let value = match pointer_value(attribute, address) {
            Ok(value) => value,
            Err(error) => match size_of_attribute(attribute) {
                // The ordinal -2 means that there is no device.
                Some(4) if attribute == 9 => (-2i32).to_le_bytes().to_vec(),
                Some(size) => vec![0; size],
                None => return Err(error),
            },
        };
        // SAFETY: the caller passes a pointer to a value of the attribute's type.
        unsafe { to.copy_from_nonoverlapping(value.as_ptr(), value.len()) };
    }
    Ok(())
}

/// Returns the size of an attribute's value in bytes.
fn size_of_attribute(attribute: c_int) -> Option<usize> {
    Some(match attribute {
        1 | 3 | 4 | 7 | 11 | 12 | 14 | 17 | 18 | 19 | 20 => 8,
        2 | 9 | 16 | 22 => 4,
        6 | 8 | 10 | 13 | 15 | 21 => 1,
        _ => return None,
    })
}

/// Returns the value of an attribute of a pointer. (`CUpointer_attribute`)
fn pointer_value(attribute: c_int, address: u64) -> Result<Vec<u8>, CudaError> {
    /// `CU_MEMORYTYPE_HOST`, `CU_MEMORYTYPE_DEVICE`
    const TYPES: [u32; 2] = [1, 2];
    let driver = driver()?;
    let size = size_of_attribute(attribute).ok_or(CudaError::INVALID_VALUE)?;
    let pinned = lock(&host::PINNED).find(address as usize, 1);
    let device = lock(&driver.addresses).find(address, 1);
    let (start, bytes, context, on_device, on_host, id) = match (device, pinned) {
        (Some(found), _) => {
            let host = match found.kind {
                AllocationKind::Host(start) => Some(start as u64 + address - u64::from(found.address)),
                _ => None,
            };
            (u64::from(found.address), found.bytes, found.context, Some(address), host, found.id)
        }
        (None, Some(found)) => {
            let offset = address - found.address as u64;
            let on_device = found.device.map(|start| u64::from(start) + offset);
            (found.address as u64, found.bytes as u64, found.context, on_device, Some(address), found.id)
        }
        (None, None) => return Err(CudaError::INVALID_VALUE),
    };
    let value = match attribute {
        1 => context as u64,
        2 => TYPES[usize::from(on_host.is_none())].into(),
        3 => on_device.ok_or(CudaError::INVALID_VALUE)?,
        4 => on_host.ok_or(CudaError::INVALID_VALUE)?,
        7 | 20 => id,
        11 | 19 => start,
        12 | 18 => bytes,
        13 => 1,
        // The access flags allow reads and writes.
        16 => 3,
        22 => u32::MAX.into(),
        _ => 0,
    };
    Ok(value.to_le_bytes()[..size].to_vec())
}

/// `cuPointerSetAttribute`. The only valid attribute makes synchronous copies of the memory always wait for the end of
/// the copy. In this library, all synchronous copies wait, so the attribute has no effect.
pub(crate) unsafe fn set_pointer_attribute(value: *const u8, attribute: c_int, address: u64) -> CallResult {
    driver()?;
    if value.is_null() || attribute != 6 {
        return Err(CudaError::INVALID_VALUE);
    }
    find(address, 1).map(|_| ())
}
