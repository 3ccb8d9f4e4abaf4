//! Pinned memory of the host. Streams copy from and to pinned memory asynchronously, and kernels may access pinned
//! memory.

use std::collections::BTreeMap;
use std::ffi::{c_uint, c_void};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::addresses::AllocationKind;
use crate::call::give;
use crate::context;
use crate::driver::{driver, ready};
use crate::handles::lock;
use crate::queue;
use crate::status::{CallResult, CudaError};

/// `CU_MEMHOSTALLOC_DEVICEMAP`. `CU_MEMHOSTREGISTER_DEVICEMAP` has the same value.
const MAPPED: c_uint = 2;
/// Size of a page in bytes.
const PAGE: usize = 4096;

/// The pinned ranges of all contexts.
pub(crate) static PINNED: Mutex<Pinned> = Mutex::new(Pinned { ranges: BTreeMap::new() });

/// A pinned range of host memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Range {
    pub(crate) address: usize,
    pub(crate) bytes: usize,
    pub(crate) context: usize,
    /// The address on the device, if the device can access the range.
    pub(crate) device: Option<u32>,
    pub(crate) id: u64,
    flags: c_uint,
    /// Whether this library has allocated the range. If false, the program has registered the range.
    is_own: bool,
}

/// The pinned ranges, sorted by their addresses.
#[derive(Debug)]
pub(crate) struct Pinned {
    ranges: BTreeMap<usize, Range>,
}

impl Pinned {
    /// Returns the pinned range that contains all of the `bytes` bytes that start at `address`.
    pub(crate) fn find(&self, address: usize, bytes: usize) -> Option<Range> {
        let (_, range) = self.ranges.range(..=address).next_back()?;
        (address.checked_add(bytes)? <= range.address + range.bytes).then_some(*range)
    }

    fn overlaps(&self, address: usize, bytes: usize) -> bool {
        let before = self.ranges.range(..address.saturating_add(bytes)).next_back();
        before.is_some_and(|(_, range)| range.address + range.bytes > address)
    }

    /// Removes all ranges of a context. Frees the ranges that this library has allocated.
    fn free_all(&mut self, context: usize) {
        self.ranges.retain(|_, range| {
            if range.context == context && range.is_own {
                release(range);
            }
            range.context != context
        });
    }
}

/// Removes the pinned ranges of a context that ends.
pub(crate) fn end_of_context(context: usize) {
    lock(&PINNED).free_all(context);
}

/// Returns the pages of a range to the system. The caller passes only ranges that this library has allocated.
fn release(range: &Range) {
    // SAFETY: `mmap` returned this address for the same number of bytes, and the range is no longer in the table.
    unsafe { libc::munmap(range.address as *mut c_void, range.bytes.next_multiple_of(PAGE)) };
}

fn id() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1 << 32);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

fn allocate(bytes: usize, flags: c_uint) -> Result<usize, CudaError> {
    let context = context::usable()?;
    if bytes == 0 || flags > 7 {
        return Err(CudaError::INVALID_VALUE);
    }
    let pages = bytes.checked_next_multiple_of(PAGE).ok_or(CudaError::OUT_OF_MEMORY)?;
    let (protection, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: the system chooses an unused address for the new pages.
    let address = unsafe { libc::mmap(std::ptr::null_mut(), pages, protection, kind, -1, 0) };
    if address == libc::MAP_FAILED {
        return Err(CudaError::OUT_OF_MEMORY);
    }
    let address = address as usize;
    pin(address, bytes, flags, context.handle, true).inspect_err(|_| {
        // SAFETY: this function has mapped the pages, and has not passed the address to other code.
        unsafe { libc::munmap(address as *mut c_void, pages) };
    })?;
    Ok(address)
}

/// Whether all pages of a range are mapped in this process.
pub(crate) fn exists(address: usize, bytes: usize) -> bool {
    /// Number of pages per call of `mincore`.
    const PART: usize = 1 << 16;
    let Some(end) = address.checked_add(bytes) else { return false };
    let mut states = vec![0u8; PART.min(bytes / PAGE + 2)];
    (address / PAGE * PAGE..end).step_by(PART * PAGE).all(|start| {
        let count = (end - start).min(PART * PAGE);
        // SAFETY: the kernel checks the addresses of the pages, and `states` has one byte per page.
        unsafe { libc::mincore(start as *mut c_void, count, states.as_mut_ptr()) == 0 }
    })
}

/// Adds a pinned range.
///
/// # Errors
/// Returns an error if the range overlaps another pinned range, or if no addresses of the device are free.
fn pin(address: usize, bytes: usize, flags: c_uint, context: usize, is_own: bool) -> CallResult {
    let driver = driver()?;
    let mut pinned = lock(&PINNED);
    if pinned.overlaps(address, bytes) {
        return Err(CudaError::HOST_MEMORY_ALREADY_REGISTERED);
    }
    let device = match flags & MAPPED != 0 && driver.board.maps_host_memory() {
        true => {
            let mut addresses = lock(&driver.addresses);
            let found = addresses
                .allocate(bytes as u64, context, AllocationKind::Host(address))
                .ok_or(CudaError::OUT_OF_MEMORY)?;
            Some(found.address)
        }
        false => None,
    };
    let range = Range { address, bytes, context, device, id: id(), flags, is_own };
    pinned.ranges.insert(address, range);
    Ok(())
}

/// `cuMemHostAlloc`
pub(crate) unsafe fn alloc(to: *mut usize, bytes: usize, flags: c_uint) -> CallResult {
    context::usable()?;
    if to.is_null() {
        return Err(CudaError::INVALID_VALUE);
    }
    // SAFETY: the caller passes null or a valid pointer.
    unsafe { give(to, allocate(bytes, flags)?) }
}

/// `cuMemAllocHost`
pub(crate) unsafe fn alloc_plain(to: *mut usize, bytes: usize) -> CallResult {
    // SAFETY: the caller passes null or a valid pointer.
    unsafe { alloc(to, bytes, 0) }
}

/// `cuMemAllocHost` of CUDA 3.1 and earlier.
pub(crate) unsafe fn alloc_plain_32(to: *mut usize, bytes: u32) -> CallResult {
    // SAFETY: the caller passes null or a valid pointer.
    unsafe { alloc(to, bytes as usize, 0) }
}

/// Waits for the tasks of two contexts: the context of the range, and the current context. Then removes the range from
/// the table. Returns the error `absent` if the table does not contain the range.
fn unpin(address: usize, is_own: bool, absent: CudaError) -> CallResult {
    let (driver, current) = (driver()?, context::usable()?);
    let known = lock(&PINNED).ranges.get(&address).copied().filter(|range| range.is_own == is_own);
    let range = known.ok_or(absent)?;
    queue::wait_for_context(range.context);
    queue::wait_for_context(current.handle);
    // During the wait, another thread may have removed the range. In this case, the address may now belong to a
    // different range.
    let mut pinned = lock(&PINNED);
    if pinned.ranges.get(&address).is_none_or(|found| found.id != range.id) {
        return Err(absent);
    }
    pinned.ranges.remove(&address);
    if let Some(device) = range.device {
        lock(&driver.addresses).free(device, |_| true);
    }
    if is_own {
        release(&range);
    }
    Ok(())
}

/// `cuMemFreeHost`
pub(crate) unsafe fn free(address: usize) -> CallResult {
    unpin(address, true, CudaError::INVALID_VALUE)
}

/// `cuMemHostRegister`
pub(crate) unsafe fn register(address: usize, bytes: usize, flags: c_uint) -> CallResult {
    let context = context::usable()?;
    if address == 0 || bytes == 0 || flags > 0xf || address.checked_add(bytes).is_none() {
        return Err(CudaError::INVALID_VALUE);
    }
    if flags & 4 != 0 {
        // CU_MEMHOSTREGISTER_IOMEMORY
        return Err(CudaError::NOT_SUPPORTED);
    }
    if !exists(address, bytes) {
        return Err(CudaError::INVALID_VALUE);
    }
    pin(address, bytes, flags, context.handle, false)
}

/// `cuMemHostUnregister`
pub(crate) unsafe fn unregister(address: usize) -> CallResult {
    unpin(address, false, CudaError::HOST_MEMORY_NOT_REGISTERED)
}

fn device_pointer(address: usize, flags: c_uint) -> Result<u32, CudaError> {
    context::usable()?;
    if flags != 0 {
        return Err(CudaError::INVALID_VALUE);
    }
    let range = lock(ready(&PINNED)?).find(address, 1).ok_or(CudaError::INVALID_VALUE)?;
    let device = range.device.ok_or(CudaError::INVALID_VALUE)?;
    Ok(device + (address - range.address) as u32)
}

/// `cuMemHostGetDevicePointer`, for memory that was allocated or registered with `DEVICEMAP`.
pub(crate) unsafe fn get_device_pointer(to: *mut u64, address: usize, flags: c_uint) -> CallResult {
    // SAFETY: the caller passes null or a valid pointer.
    unsafe { give(to, device_pointer(address, flags)?.into()) }
}

/// `cuMemHostGetDevicePointer` of CUDA 3.1 and earlier.
pub(crate) unsafe fn get_device_pointer_32(to: *mut u32, address: usize, flags: c_uint) -> CallResult {
    // SAFETY: the caller passes null or a valid pointer.
    unsafe { give(to, device_pointer(address, flags)?) }
}

/// `cuMemHostGetFlags`
pub(crate) unsafe fn get_flags(to: *mut c_uint, address: usize) -> CallResult {
    context::current()?;
    let range = lock(ready(&PINNED)?).find(address, 1).filter(|range| range.is_own);
    // SAFETY: the caller passes null or a valid pointer.
    unsafe { give(to, range.ok_or(CudaError::INVALID_VALUE)?.flags) }
}

/// Whether all of the `bytes` bytes that start at `address` are pinned. A copy of pinned memory may still be in
/// progress when the call that started the copy returns.
pub(crate) fn is_pinned(address: usize, bytes: usize) -> bool {
    driver().is_ok_and(|_| lock(&PINNED).find(address, bytes).is_some())
}
