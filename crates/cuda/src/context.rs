//! Contexts, the stack of contexts of each thread, the primary context, and the objects that belong to a context.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::{c_int, c_uint, c_void};
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use reconverge_simt::memory::Memory;

use crate::call::{give, offer};
use crate::device;
use crate::driver::{driver, ready, started};
use crate::handles::{Handles, fresh, lock};
use crate::queue::{self, Order};
use crate::status::{CallResult, CudaError};
use crate::work::{Health, Stream};

/// The contexts of the process.
pub(crate) static CONTEXTS: Handles<CudaContext> = Handles::new();
/// The primary context of the device.
static PRIMARY: Mutex<Primary> = Mutex::new(Primary { handle: 0, retained: 0, flags: 0 });
/// Functions that run when a context ends. Each source file with objects of a context defines one of these functions.
static ENDINGS: OnceLock<&'static [fn(usize)]> = OnceLock::new();

/// A context.
#[derive(Debug)]
pub(crate) struct CudaContext {
    pub(crate) handle: usize,
    flags: AtomicU32,
    is_primary: bool,
    /// Number of times that the program has attached the context. A call of `cuCtxCreate` also attaches the context.
    attached: AtomicUsize,
    /// The first error of a kernel of this context. After an error, calls that use the context fail.
    health: Arc<Health>,
    /// Memory of the device. A kernel holds the lock while the kernel runs.
    pub(crate) memory: Mutex<Memory>,
    pub(crate) null_stream: Arc<Stream>,
    /// The default stream of each thread that uses a default stream. The key is the number of the thread. Linux may
    /// assign the number of an ended thread to a new thread. In this case, the new thread uses the stream of the ended
    /// thread.
    per_thread: Mutex<HashMap<libc::pid_t, Arc<Stream>>>,
    cache: AtomicU32,
}

impl CudaContext {
    fn new(handle: usize, flags: u32, is_primary: bool) -> Arc<CudaContext> {
        let health = Arc::new(Health::default());
        Arc::new(CudaContext {
            handle,
            flags: AtomicU32::new(flags),
            is_primary,
            attached: AtomicUsize::new(1),
            health: health.clone(),
            memory: Mutex::default(),
            null_stream: Stream::new(handle, 0, Order::Null, &health),
            per_thread: Mutex::default(),
            cache: AtomicU32::new(0),
        })
    }

    /// Returns the default stream of this thread.
    pub(crate) fn per_thread_stream(&self) -> Arc<Stream> {
        let mut streams = lock(&self.per_thread);
        let new = || Stream::new(self.handle, 0, Order::Blocking, &self.health);
        // SAFETY: `gettid` takes no arguments. `std::thread::current` does not work in functions that run while the
        // process exits.
        let thread = unsafe { libc::gettid() };
        streams.entry(thread).or_insert_with(new).clone()
    }

    /// Returns an error if a kernel of this context has failed.
    pub(crate) fn check(&self) -> CallResult {
        self.health.check()
    }

    /// Creates a stream.
    pub(crate) fn new_stream(&self, flags: c_uint, order: Order) -> Arc<Stream> {
        Stream::new(self.handle, flags, order, &self.health)
    }

    /// Waits for the tasks of all streams of the context. Then ends the context.
    fn end(&self) {
        queue::wait_for_context(self.handle);
        CONTEXTS.remove(self.handle);
        // Other threads may still have a reference to this context. Later calls of these threads return
        // `CONTEXT_IS_DESTROYED`.
        self.health.fail(CudaError::CONTEXT_IS_DESTROYED);
        for ending in ENDINGS.get().into_iter().copied().flatten() {
            ending(self.handle);
        }
        queue::close(self.null_stream.handle);
        lock(&self.per_thread).drain().for_each(|(_, stream)| queue::close(stream.handle));
        if let Ok(driver) = started() {
            lock(&driver.addresses).free_all(self.handle);
        }
    }
}

/// The state of the primary context.
#[derive(Debug)]
struct Primary {
    /// The handle. A context that is created again has the same handle.
    handle: usize,
    /// Number of calls of `cuDevicePrimaryCtxRetain` without a matching release.
    retained: usize,
    /// The flags of the context.
    flags: u32,
}

impl Primary {
    /// Returns the primary context if the primary context is active.
    fn context(&self) -> Option<Arc<CudaContext>> {
        CONTEXTS.get(self.handle)
    }
}

/// Ends a context in a forked child process if a stream of the context was busy during the fork. The function does not
/// free the memory of the context. A thread that exists only in the parent may hold the lock of the memory.
pub(crate) fn lose(handle: usize) {
    if let Some(context) = CONTEXTS.remove(handle) {
        context.health.fail(CudaError::CONTEXT_IS_DESTROYED);
        std::mem::forget(context);
    }
}

/// Sets the functions that run when a context ends.
pub(crate) fn set_endings(endings: &'static [fn(usize)]) {
    let _ = ENDINGS.set(endings);
}

thread_local! {
    /// The handles of this thread's contexts. The last handle is the handle of the current context. At the exit of the
    /// process, the main thread drops its thread-local variables. Later exit functions still use this list. For this
    /// reason, the list is never dropped.
    static STACK: RefCell<ManuallyDrop<Vec<usize>>> = const { RefCell::new(ManuallyDrop::new(Vec::new())) };
}

/// Returns the context to which an object belongs. The object contains the handle of the context.
pub(crate) fn of(handle: usize) -> Result<Arc<CudaContext>, CudaError> {
    ready(&CONTEXTS)?.get(handle).ok_or(CudaError::CONTEXT_IS_DESTROYED)
}

/// Returns the current context of this thread.
pub(crate) fn current() -> Result<Arc<CudaContext>, CudaError> {
    driver()?;
    let handle = STACK.with_borrow(|stack| stack.last().copied()).ok_or(CudaError::INVALID_CONTEXT)?;
    CONTEXTS.get(handle).ok_or(CudaError::CONTEXT_IS_DESTROYED)
}

/// Returns the current context of this thread. Returns an error if a kernel of the context has failed.
pub(crate) fn usable() -> Result<Arc<CudaContext>, CudaError> {
    let context = current()?;
    context.check()?;
    Ok(context)
}

/// Returns the context whose handle the program passes.
fn named(handle: usize) -> Result<Arc<CudaContext>, CudaError> {
    ready(&CONTEXTS)?.get(handle).ok_or(CudaError::INVALID_CONTEXT)
}

/// Whether flags of a context are valid. The low three bits select how the host waits for the device.
fn are_flags(flags: c_uint) -> bool {
    flags <= 0xff && matches!(flags & 7, 0 | 1 | 2 | 4)
}

/// `cuCtxCreate`
pub(crate) unsafe fn create(to: *mut usize, flags: c_uint, device: c_int) -> CallResult {
    driver()?;
    if to.is_null() || !are_flags(flags) {
        return Err(CudaError::INVALID_VALUE);
    }
    device::check(device)?;
    let context = CudaContext::new(fresh(), flags, false);
    ready(&CONTEXTS)?.insert(context.handle, context.clone());
    STACK.with_borrow_mut(|stack| stack.push(context.handle));
    // SAFETY: the caller passes null or a valid pointer.
    unsafe { give(to, context.handle) }
}

/// `cuCtxCreate` of CUDA 11.4. This library cannot restrict a context to a subset of the multiprocessors.
pub(crate) unsafe fn create_3(
    to: *mut usize,
    parts: *const c_void,
    count: c_int,
    flags: c_uint,
    device: c_int,
) -> CallResult {
    driver()?;
    if !parts.is_null() || count != 0 {
        return Err(CudaError::UNSUPPORTED_EXEC_AFFINITY);
    }
    // SAFETY: the caller passes null or a valid pointer.
    unsafe { create(to, flags, device) }
}

/// `CUctxCreateParams`
#[repr(C)]
pub(crate) struct CreateParameters {
    affinity: *const c_void,
    affinities: c_int,
    graphics: *const c_void,
}

/// `cuCtxCreate` of CUDA 12.5. This library cannot restrict a context to a subset of the multiprocessors. This library
/// does not support contexts for graphics.
pub(crate) unsafe fn create_4(
    to: *mut usize,
    parameters: *const CreateParameters,
    flags: c_uint,
    device: c_int,
) -> CallResult {
    driver()?;
    // SAFETY: the caller passes null or a pointer to a valid structure.
    if let Some(parameters) = unsafe { parameters.as_ref() } {
        if !parameters.graphics.is_null() {
            return Err(CudaError::NOT_SUPPORTED);
        }
        // SAFETY: the caller passes null or valid pointers.
        return unsafe { create_3(to, parameters.affinity, parameters.affinities, flags, device) };
    }
    // SAFETY: the caller passes null or a valid pointer.
    unsafe { create(to, flags, device) }
}

/// `cuCtxDestroy`. If the context is the current context, the call also removes the context from the thread's stack.
pub(crate) unsafe fn destroy(handle: usize) -> CallResult {
    let context = named(handle)?;
    if context.is_primary {
        return Err(CudaError::INVALID_CONTEXT);
    }
    context.end();
    STACK.with_borrow_mut(|stack| stack.pop_if(|last| *last == handle));
    Ok(())
}

/// `cuCtxAttach`
pub(crate) unsafe fn attach(to: *mut usize, flags: c_uint) -> CallResult {
    let context = current()?;
    if to.is_null() || flags != 0 {
        return Err(CudaError::INVALID_VALUE);
    }
    context.attached.fetch_add(1, Ordering::AcqRel);
    // SAFETY: the caller passes null or a valid pointer.
    unsafe { give(to, context.handle) }
}

/// `cuCtxDetach`
pub(crate) unsafe fn detach(handle: usize) -> CallResult {
    let context = current()?;
    if context.handle != handle || context.is_primary {
        return Err(CudaError::INVALID_CONTEXT);
    }
    if context.attached.fetch_sub(1, Ordering::AcqRel) == 1 {
        context.end();
        STACK.with_borrow_mut(|stack| stack.pop());
    }
    Ok(())
}

/// `cuCtxPushCurrent`
pub(crate) unsafe fn push(handle: usize) -> CallResult {
    named(handle)?;
    STACK.with_borrow_mut(|stack| stack.push(handle));
    Ok(())
}

/// `cuCtxPopCurrent`
pub(crate) unsafe fn pop(to: *mut usize) -> CallResult {
    driver()?;
    let handle = STACK.with_borrow_mut(|stack| stack.pop()).ok_or(CudaError::INVALID_CONTEXT)?;
    // SAFETY: the caller passes null or a valid pointer.
    unsafe { offer(to, handle) };
    Ok(())
}

/// `cuCtxSetCurrent`
pub(crate) unsafe fn set_current(handle: usize) -> CallResult {
    driver()?;
    if handle != 0 {
        named(handle)?;
    }
    STACK.with_borrow_mut(|stack| {
        stack.pop();
        if handle != 0 {
            stack.push(handle);
        }
    });
    Ok(())
}

/// `cuCtxGetCurrent`. The result is null if no context is current.
pub(crate) unsafe fn get_current(to: *mut usize) -> CallResult {
    driver()?;
    let handle = STACK.with_borrow(|stack| stack.last().copied()).unwrap_or(0);
    // SAFETY: the caller passes null or a valid pointer.
    unsafe { give(to, handle) }
}

/// `cuCtxGetDevice`
pub(crate) unsafe fn get_device(device: *mut c_int) -> CallResult {
    current()?;
    // SAFETY: the caller passes null or a valid pointer.
    unsafe { give(device, 0) }
}

/// `cuCtxGetDevice` of CUDA 13. A handle of 0 means the current context.
pub(crate) unsafe fn get_device_2(device: *mut c_int, handle: usize) -> CallResult {
    if handle == 0 {
        current()?
    } else {
        named(handle)?
    };
    // SAFETY: the caller passes null or a valid pointer.
    unsafe { give(device, 0) }
}

/// `cuCtxGetFlags`
pub(crate) unsafe fn get_flags(flags: *mut c_uint) -> CallResult {
    let context = current()?;
    // SAFETY: the caller passes null or a valid pointer.
    unsafe { give(flags, context.flags.load(Ordering::Relaxed)) }
}

/// `cuCtxSetFlags`
pub(crate) unsafe fn set_flags(flags: c_uint) -> CallResult {
    let context = current()?;
    if !are_flags(flags) {
        return Err(CudaError::INVALID_VALUE);
    }
    context.flags.store(flags, Ordering::Relaxed);
    Ok(())
}

/// `cuCtxGetId`
pub(crate) unsafe fn get_id(handle: usize, id: *mut u64) -> CallResult {
    let context = if handle == 0 { current()? } else { named(handle)? };
    // SAFETY: the caller passes null or a valid pointer.
    unsafe { give(id, context.handle as u64) }
}

/// `cuCtxGetApiVersion`. The result is 3020, which means 64-bit addresses.
pub(crate) unsafe fn get_api_version(handle: usize, version: *mut c_uint) -> CallResult {
    if handle == 0 {
        current()?
    } else {
        named(handle)?
    };
    // SAFETY: the caller passes null or a valid pointer.
    unsafe { give(version, 3020) }
}

/// `cuCtxSynchronize`
pub(crate) unsafe fn synchronize() -> CallResult {
    let context = current()?;
    queue::wait_for_context(context.handle);
    context.check()
}

/// `cuCtxSynchronize` of CUDA 13. A handle of 0 means the current context.
pub(crate) unsafe fn synchronize_2(handle: usize) -> CallResult {
    let context = if handle == 0 { current()? } else { named(handle)? };
    queue::wait_for_context(context.handle);
    context.check()
}

/// Number of values of `CUlimit`.
const LIMITS: c_int = 11;

/// `cuCtxGetLimit`. This call is not supported. Only chips of compute capability 2.0 or later have limits.
pub(crate) unsafe fn get_limit(value: *mut usize, limit: c_int) -> CallResult {
    current()?;
    if value.is_null() || !(0..LIMITS).contains(&limit) {
        return Err(CudaError::INVALID_VALUE);
    }
    Err(CudaError::UNSUPPORTED_LIMIT)
}

/// `cuCtxSetLimit`
pub(crate) unsafe fn set_limit(limit: c_int, _value: usize) -> CallResult {
    current()?;
    Err(if (0..LIMITS).contains(&limit) { CudaError::UNSUPPORTED_LIMIT } else { CudaError::INVALID_VALUE })
}

/// `cuCtxGetCacheConfig`
pub(crate) unsafe fn get_cache_config(config: *mut c_uint) -> CallResult {
    let context = current()?;
    // SAFETY: the caller passes null or a valid pointer.
    unsafe { give(config, context.cache.load(Ordering::Relaxed)) }
}

/// `cuCtxSetCacheConfig`. The preference has no effect, because the size of the shared memory is fixed.
pub(crate) unsafe fn set_cache_config(config: c_uint) -> CallResult {
    let context = current()?;
    if config > 3 {
        return Err(CudaError::INVALID_VALUE);
    }
    context.cache.store(config, Ordering::Relaxed);
    Ok(())
}

/// `cuCtxGetSharedMemConfig`. Banks are four bytes wide.
pub(crate) unsafe fn get_shared_config(config: *mut c_uint) -> CallResult {
    current()?;
    // SAFETY: the caller passes null or a valid pointer.
    unsafe { give(config, 1) }
}

/// `cuCtxSetSharedMemConfig`
pub(crate) unsafe fn set_shared_config(config: c_uint) -> CallResult {
    current()?;
    if config > 2 { Err(CudaError::INVALID_VALUE) } else { Ok(()) }
}

/// `cuCtxGetStreamPriorityRange`. All streams have the same priority.
pub(crate) unsafe fn priority_range(least: *mut c_int, greatest: *mut c_int) -> CallResult {
    current()?;
    // SAFETY: the caller passes null or valid pointers.
    unsafe {
        offer(least, 0);
        offer(greatest, 0);
    }
    Ok(())
}

/// `cuCtxEnablePeerAccess`. This call fails, because the library has only one device.
pub(crate) unsafe fn enable_peer(handle: usize, flags: c_uint) -> CallResult {
    current()?;
    named(handle)?;
    if flags != 0 { Err(CudaError::INVALID_VALUE) } else { Err(CudaError::PEER_ACCESS_UNSUPPORTED) }
}

/// `cuCtxDisablePeerAccess`
pub(crate) unsafe fn disable_peer(handle: usize) -> CallResult {
    current()?;
    named(handle)?;
    Err(CudaError::PEER_ACCESS_NOT_ENABLED)
}

/// `cuCtxResetPersistingL2Cache`. This call is not supported, because the emulated chips have no L2 cache.
pub(crate) unsafe fn reset_cache() -> CallResult {
    current()?;
    Err(CudaError::NOT_SUPPORTED)
}

/// `cuDevicePrimaryCtxRetain`
pub(crate) unsafe fn retain_primary(to: *mut usize, device: c_int) -> CallResult {
    device::check(device)?;
    if to.is_null() {
        return Err(CudaError::INVALID_VALUE);
    }
    driver()?;
    let mut primary = lock(&PRIMARY);
    primary.retained += 1;
    // The context is not active before the first retain and after a reset.
    if primary.context().is_none() {
        // A primary context that is created again has the same handle.
        if primary.handle == 0 {
            primary.handle = fresh();
        }
        CONTEXTS.insert(primary.handle, CudaContext::new(primary.handle, primary.flags, true));
    }
    // SAFETY: the caller passes null or a valid pointer.
    unsafe { give(to, primary.handle) }
}

/// `cuDevicePrimaryCtxRelease`
pub(crate) unsafe fn release_primary(device: c_int) -> CallResult {
    device::check(device)?;
    driver()?;
    let mut primary = lock(&PRIMARY);
    primary.retained = primary.retained.checked_sub(1).ok_or(CudaError::INVALID_CONTEXT)?;
    if primary.retained == 0
        && let Some(context) = primary.context()
    {
        context.end();
    }
    Ok(())
}

/// `cuDevicePrimaryCtxReset`. The context ends, but the number of retains does not change.
pub(crate) unsafe fn reset_primary(device: c_int) -> CallResult {
    device::check(device)?;
    driver()?;
    let mut primary = lock(&PRIMARY);
    primary.flags = 0;
    if let Some(context) = primary.context() {
        context.end();
    }
    Ok(())
}

/// `cuDevicePrimaryCtxSetFlags`
pub(crate) unsafe fn set_primary_flags(device: c_int, flags: c_uint) -> CallResult {
    device::check(device)?;
    if !are_flags(flags) {
        return Err(CudaError::INVALID_VALUE);
    }
    driver()?;
    let mut primary = lock(&PRIMARY);
    primary.flags = flags;
    if let Some(context) = primary.context() {
        context.flags.store(flags, Ordering::Relaxed);
    }
    Ok(())
}

/// `cuDevicePrimaryCtxGetState`
pub(crate) unsafe fn primary_state(device: c_int, flags: *mut c_uint, active: *mut c_int) -> CallResult {
    device::check(device)?;
    if flags.is_null() || active.is_null() {
        return Err(CudaError::INVALID_VALUE);
    }
    let primary = lock(ready(&PRIMARY)?);
    // SAFETY: the caller passes null or valid pointers.
    unsafe {
        give(flags, primary.flags)?;
        give(active, c_int::from(primary.context().is_some()))
    }
}
