//! Events. An event is a position in a stream, with the time at which the stream reached this position.

use std::ffi::c_uint;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use crate::call::give;
use crate::context;
use crate::driver::{driver, ready};
use crate::handles::{Handles, fresh, lock};
use crate::queue::{self, Point};
use crate::status::{CallResult, CudaError};
use crate::stream;

/// `CU_EVENT_DISABLE_TIMING`
const DISABLE_TIMING: c_uint = 2;
/// `CU_EVENT_INTERPROCESS`
const INTERPROCESS: c_uint = 4;

/// The events of all contexts.
pub(crate) static EVENTS: Handles<CudaEvent> = Handles::new();

/// An event of a context.
#[derive(Debug)]
pub(crate) struct CudaEvent {
    pub(crate) context: usize,
    flags: c_uint,
    record: Mutex<Option<EventRecord>>,
}

/// The last call of `cuEventRecord` for an event.
#[derive(Clone, Debug)]
struct EventRecord {
    point: Point,
    time: Arc<Mutex<Option<Instant>>>,
}

impl EventRecord {
    /// Returns the time at which the stream reached the event. Returns `None` if the stream has not yet reached the
    /// event.
    fn reached(&self) -> Option<Instant> {
        *lock(&self.time)
    }
}

impl CudaEvent {
    /// Returns a copy of the last record. A caller that compares two events may pass the same event twice. If the
    /// function returned a lock guard, the second call would block forever.
    fn record(&self) -> Option<EventRecord> {
        lock(&self.record).clone()
    }

    /// Returns the position in a stream that the event marks, if the event was recorded.
    pub(crate) fn point(&self) -> Option<Point> {
        lock(&self.record).as_ref().map(|record| record.point)
    }
}

/// Removes the events of a context that ends.
pub(crate) fn end_of_context(context: usize) {
    EVENTS.retain(|event| event.context != context);
}

fn find(handle: usize) -> Result<Arc<CudaEvent>, CudaError> {
    ready(&EVENTS)?.get(handle).ok_or(CudaError::INVALID_HANDLE)
}

/// `cuEventCreate`
pub(crate) unsafe fn create(to: *mut usize, flags: c_uint) -> CallResult {
    let context = context::usable()?;
    let without_timing = flags & INTERPROCESS == 0 || flags & DISABLE_TIMING != 0;
    if to.is_null() || flags > 7 || !without_timing {
        return Err(CudaError::INVALID_VALUE);
    }
    if flags & INTERPROCESS != 0 {
        return Err(CudaError::NOT_SUPPORTED);
    }
    let handle = fresh();
    let event = CudaEvent { context: context.handle, flags, record: Mutex::default() };
    ready(&EVENTS)?.insert(handle, Arc::new(event));
    // SAFETY: the caller passes null or a valid pointer.
    unsafe { give(to, handle) }
}

/// `cuEventDestroy`
pub(crate) unsafe fn destroy(handle: usize) -> CallResult {
    ready(&EVENTS)?.remove(handle).map(|_| ()).ok_or(CudaError::INVALID_HANDLE)
}

/// `cuEventRecord`
pub(crate) unsafe fn record(handle: usize, stream: usize) -> CallResult {
    let event = find(handle)?;
    let stream = stream::find(stream)?;
    context::of(stream.context)?.check()?;
    if stream.context != event.context {
        return Err(CudaError::INVALID_HANDLE);
    }
    let time = Arc::new(Mutex::new(None));
    let reached = time.clone();
    // This function locks the record before the task can run. Otherwise, another thread could see that the task has
    // run, and still read the previous record.
    let mut record = lock(&event.record);
    let point = stream.enqueue(move || {
        *lock(&reached) = Some(Instant::now());
        Ok(())
    });
    *record = Some(EventRecord { point, time });
    Ok(())
}

/// `cuEventRecordWithFlags`
pub(crate) unsafe fn record_with_flags(handle: usize, stream: usize, flags: c_uint) -> CallResult {
    // The value 1 is `CU_EVENT_RECORD_EXTERNAL`, which only affects graphs.
    if flags > 1 {
        return Err(CudaError::INVALID_VALUE);
    }
    // SAFETY: no argument is a pointer to memory of the host.
    unsafe { record(handle, stream) }
}

/// `cuEventQuery`
pub(crate) unsafe fn query(handle: usize) -> CallResult {
    let event = find(handle)?;
    context::of(event.context)?.check()?;
    if event.point().is_none_or(queue::is_reached) { Ok(()) } else { Err(CudaError::NOT_READY) }
}

/// `cuEventSynchronize`
pub(crate) unsafe fn synchronize(handle: usize) -> CallResult {
    let event = find(handle)?;
    if let Some(point) = event.point() {
        queue::wait(point);
    }
    context::of(event.context)?.check()
}

/// `cuStreamWaitEvent`
pub(crate) unsafe fn wait_in_stream(handle: usize, event: usize, flags: c_uint) -> CallResult {
    let stream = stream::find(handle)?;
    context::of(stream.context)?.check()?;
    // The value 1 is `CU_EVENT_WAIT_EXTERNAL`, which only affects graphs.
    if flags > 1 {
        return Err(CudaError::INVALID_VALUE);
    }
    let event = find(event)?;
    if let Some(point) = event.point().filter(|point| !queue::is_reached(*point)) {
        stream.enqueue_after(&[point], false, || Ok(()));
    }
    Ok(())
}

/// `cuEventElapsedTime`. The result is in milliseconds.
pub(crate) unsafe fn elapsed_time(to: *mut f32, start: usize, end: usize) -> CallResult {
    if to.is_null() {
        driver()?;
        return Err(CudaError::INVALID_VALUE);
    }
    let (start, end) = (find(start)?, find(end)?);
    context::of(start.context)?.check()?;
    if (start.flags | end.flags) & DISABLE_TIMING != 0 || start.context != end.context {
        return Err(CudaError::INVALID_HANDLE);
    }
    let (Some(start), Some(end)) = (start.record(), end.record()) else {
        return Err(CudaError::INVALID_HANDLE);
    };
    if !queue::is_reached(start.point) || !queue::is_reached(end.point) {
        return Err(CudaError::NOT_READY);
    }
    // After an error, a stream skips its tasks. An event whose task was skipped has no time.
    let (Some(start), Some(end)) = (start.reached(), end.reached()) else {
        return Err(CudaError::INVALID_HANDLE);
    };
    let elapsed = match end.checked_duration_since(start) {
        Some(time) => time.as_secs_f32(),
        None => -start.duration_since(end).as_secs_f32(),
    };
    // SAFETY: the caller passes null or a valid pointer.
    unsafe { give(to, elapsed * 1000.0) }
}
