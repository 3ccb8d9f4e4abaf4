//! Streams, and host functions of the program that run in streams.

use std::ffi::{c_int, c_uint, c_void};
use std::sync::Arc;

use crate::call::{as_host_function, give, offer, per_thread};
use crate::context::{self, CudaContext};
use crate::driver::{driver, ready};
use crate::handles::Handles;
use crate::queue::{self, Order};
use crate::status::{CallResult, CudaError};
use crate::work::Stream;

/// `CU_STREAM_LEGACY` and `CU_STREAM_PER_THREAD`: the handles of the default streams. Default streams always exist.
const LEGACY: usize = 1;
const PER_THREAD: usize = 2;

/// The streams of all contexts.
pub(crate) static STREAMS: Handles<Stream> = Handles::new();

/// `CU_STREAM_NON_BLOCKING`
const NON_BLOCKING: c_uint = 1;

/// Removes the streams of a context that ends.
pub(crate) fn end_of_context(context: usize) {
    STREAMS.all(|stream| stream.context == context).iter().for_each(|stream| queue::close(stream.handle));
    STREAMS.retain(|stream| stream.context != context);
}

/// Returns the stream that has the handle `handle`. The handles 0, 1 and 2 mean default streams of the current context.
pub(crate) fn find(handle: usize) -> Result<Arc<Stream>, CudaError> {
    driver()?;
    match handle {
        0 if per_thread() => Ok(context::current()?.per_thread_stream()),
        0 | LEGACY => Ok(context::current()?.null_stream.clone()),
        PER_THREAD => Ok(context::current()?.per_thread_stream()),
        _ => STREAMS.get(handle).ok_or(CudaError::INVALID_HANDLE),
    }
}

/// Returns the current context, and the stream that has the handle `handle`. Fails if a kernel of the context has
/// failed, or if the stream belongs to another context.
pub(crate) fn find_for_work(handle: usize) -> Result<(Arc<CudaContext>, Arc<Stream>), CudaError> {
    let context = context::usable()?;
    let stream = find(handle)?;
    if stream.context == context.handle { Ok((context, stream)) } else { Err(CudaError::INVALID_HANDLE) }
}

/// `cuStreamCreate`
pub(crate) unsafe fn create(to: *mut usize, flags: c_uint) -> CallResult {
    let context = context::usable()?;
    if to.is_null() || flags & !NON_BLOCKING != 0 {
        return Err(CudaError::INVALID_VALUE);
    }
    let order = if flags == NON_BLOCKING { Order::Free } else { Order::Blocking };
    let stream = context.new_stream(flags, order);
    ready(&STREAMS)?.insert(stream.handle, stream.clone());
    // SAFETY: the caller passes null or a valid pointer.
    unsafe { give(to, stream.handle) }
}

/// `cuStreamCreateWithPriority`. The priority has no effect, because Tesla chips have only one priority.
pub(crate) unsafe fn create_with_priority(to: *mut usize, flags: c_uint, _priority: c_int) -> CallResult {
    // SAFETY: the caller passes null or a valid pointer.
    unsafe { create(to, flags) }
}

/// `cuStreamDestroy`. The tasks that are in the stream still run.
pub(crate) unsafe fn destroy(handle: usize) -> CallResult {
    context::current()?;
    let stream = ready(&STREAMS)?.remove(handle).ok_or(CudaError::INVALID_HANDLE)?;
    queue::close(stream.handle);
    Ok(())
}

/// `cuStreamQuery`
pub(crate) unsafe fn query(handle: usize) -> CallResult {
    let stream = find(handle)?;
    context::of(stream.context)?.check()?;
    if queue::is_reached(stream.last()) { Ok(()) } else { Err(CudaError::NOT_READY) }
}

/// `cuStreamSynchronize`
pub(crate) unsafe fn synchronize(handle: usize) -> CallResult {
    let stream = find(handle)?;
    let context = context::of(stream.context)?;
    // A wait for the null stream is also a wait for all streams that are ordered with the null stream. This call
    // enqueues a task in the null stream. The task waits for the streams that are ordered with the null stream. The
    // call waits for the task.
    let end =
        if stream.handle == context.null_stream.handle { stream.enqueue(|| Ok(())) } else { stream.last() };
    queue::wait(end);
    context.check()
}

/// `CUhostFn`
pub(crate) type HostFunction = Option<unsafe extern "C" fn(*mut c_void)>;
/// `CUstreamCallback`
pub(crate) type Callback = Option<unsafe extern "C" fn(usize, u32, *mut c_void)>;

/// `cuLaunchHostFunc`
pub(crate) unsafe fn launch_host_function(
    handle: usize,
    function: HostFunction,
    data: *mut c_void,
) -> CallResult {
    let (_, stream) = find_for_work(handle)?;
    let function = function.ok_or(CudaError::INVALID_VALUE)?;
    let data = data as usize;
    stream.enqueue_after(&[], true, move || {
        // SAFETY: the program has passed this function for this call.
        as_host_function(|| unsafe { function(data as *mut c_void) });
        Ok(())
    });
    Ok(())
}

/// `cuLaunchHostFunc` of CUDA 13.1. `mode` selects how the host waits. In this library, `mode` has no effect.
pub(crate) unsafe fn launch_host_function_2(
    handle: usize,
    function: HostFunction,
    data: *mut c_void,
    _mode: c_uint,
) -> CallResult {
    // SAFETY: the caller meets the requirements, which are those of the called function.
    unsafe { launch_host_function(handle, function, data) }
}

/// `cuStreamAddCallback`. Unlike a host function, a callback also runs after an error, and gets the error as an
/// argument.
pub(crate) unsafe fn add_callback(
    handle: usize,
    callback: Callback,
    data: *mut c_void,
    flags: c_uint,
) -> CallResult {
    let stream = find(handle)?;
    let context = context::of(stream.context)?;
    let callback = callback.filter(|_| flags == 0).ok_or(CudaError::INVALID_VALUE)?;
    let data = data as usize;
    let task = move || {
        let error = context.check().map_or_else(|error| error.0, |()| 0);
        // SAFETY: the program has passed this function for this call.
        as_host_function(|| unsafe { callback(handle, error, data as *mut c_void) });
    };
    queue::enqueue(stream.handle, &[], true, Box::new(task));
    Ok(())
}

/// `cuStreamGetFlags`
pub(crate) unsafe fn get_flags(handle: usize, flags: *mut c_uint) -> CallResult {
    let stream = find(handle)?;
    // SAFETY: the caller passes null or a valid pointer.
    unsafe { give(flags, stream.flags) }
}

/// `cuStreamGetPriority`
pub(crate) unsafe fn get_priority(handle: usize, priority: *mut c_int) -> CallResult {
    find(handle)?;
    // SAFETY: the caller passes null or a valid pointer.
    unsafe { give(priority, 0) }
}

/// `cuStreamGetId`
pub(crate) unsafe fn get_id(handle: usize, id: *mut u64) -> CallResult {
    let stream = find(handle)?;
    // SAFETY: the caller passes null or a valid pointer.
    unsafe { give(id, stream.handle as u64) }
}

/// `cuStreamGetCtx`
pub(crate) unsafe fn get_context(handle: usize, context: *mut usize) -> CallResult {
    let stream = find(handle)?;
    // SAFETY: the caller passes null or a valid pointer.
    unsafe { give(context, stream.context) }
}

/// `cuStreamGetCtx` of CUDA 12.5. The call also stores a green context, which is always null.
pub(crate) unsafe fn get_context_2(handle: usize, context: *mut usize, green: *mut usize) -> CallResult {
    let stream = find(handle)?;
    // SAFETY: the caller passes null or valid pointers.
    unsafe {
        offer(green, 0);
        give(context, stream.context)
    }
}

/// `cuStreamGetDevice`
pub(crate) unsafe fn get_device(handle: usize, device: *mut c_int) -> CallResult {
    find(handle)?;
    // SAFETY: the caller passes null or a valid pointer.
    unsafe { give(device, 0) }
}

/// `cuStreamIsCapturing`. The result is always "no", because graphs are not supported.
pub(crate) unsafe fn is_capturing(handle: usize, status: *mut c_int) -> CallResult {
    find(handle)?;
    // SAFETY: the caller passes null or a valid pointer.
    unsafe { give(status, 0) }
}

/// `cuStreamGetCaptureInfo`
pub(crate) unsafe fn capture_info(handle: usize, status: *mut c_int, id: *mut u64) -> CallResult {
    find(handle)?;
    // SAFETY: the caller passes null or valid pointers.
    unsafe {
        offer(id, 0);
        give(status, 0)
    }
}

/// `cuStreamGetCaptureInfo` of CUDA 11.3. Outside a capture, the call stores only the status and the number of the
/// capture.
pub(crate) unsafe fn capture_info_2(
    handle: usize,
    status: *mut c_int,
    id: *mut u64,
    _graph: *mut usize,
    _dependencies: *mut *const usize,
    _count: *mut usize,
) -> CallResult {
    // SAFETY: the caller meets the requirements, which are those of the called function.
    unsafe { capture_info(handle, status, id) }
}

/// `cuStreamGetCaptureInfo` of CUDA 12.3
pub(crate) unsafe fn capture_info_3(
    handle: usize,
    status: *mut c_int,
    id: *mut u64,
    _graph: *mut usize,
    _dependencies: *mut *const usize,
    _edges: *mut *const c_void,
    _count: *mut usize,
) -> CallResult {
    // SAFETY: the caller meets the requirements, which are those of the called function.
    unsafe { capture_info(handle, status, id) }
}

/// `cuThreadExchangeStreamCaptureMode`
pub(crate) unsafe fn exchange_capture_mode(mode: *mut c_int) -> CallResult {
    thread_local! {
        static MODE: std::cell::Cell<c_int> = const { std::cell::Cell::new(0) };
    }
    driver()?;
    if mode.is_null() {
        return Err(CudaError::INVALID_VALUE);
    }
    // SAFETY: the caller passes null or a valid pointer.
    let wanted = unsafe { mode.read_unaligned() };
    if !(0..=2).contains(&wanted) {
        return Err(CudaError::INVALID_VALUE);
    }
    // SAFETY: the caller passes null or a valid pointer.
    unsafe { give(mode, MODE.replace(wanted)) }
}

/// `cuStreamAttachMemAsync`. This call fails, because chips of this generation have no managed memory.
pub(crate) unsafe fn attach_memory(
    handle: usize,
    _address: u64,
    _bytes: usize,
    _flags: c_uint,
) -> CallResult {
    find(handle)?;
    Err(CudaError::NOT_SUPPORTED)
}
