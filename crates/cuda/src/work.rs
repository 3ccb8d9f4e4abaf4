//! Streams. A stream enqueues work. After an error, the stream skips the work.

use std::ffi::c_uint;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::handles::fresh;
use crate::queue::{self, Order, Point};
use crate::status::{CallResult, CudaError};

/// The first error of the kernels of a context, or 0 if there was no error.
#[derive(Debug, Default)]
pub(crate) struct Health(AtomicU32);

impl Health {
    /// Returns the error, if an error is set.
    pub(crate) fn check(&self) -> CallResult {
        match self.0.load(Ordering::Acquire) {
            0 => Ok(()),
            error => Err(CudaError(error)),
        }
    }

    /// Sets the error, unless an error is already set.
    pub(crate) fn fail(&self, error: CudaError) {
        let _ = self.0.compare_exchange(0, error.0, Ordering::AcqRel, Ordering::Acquire);
    }
}

/// A stream of a context.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) handle: usize,
    pub(crate) context: usize,
    pub(crate) flags: c_uint,
    health: Arc<Health>,
}

impl Stream {
    /// Creates a stream and its line of tasks.
    pub(crate) fn new(context: usize, flags: c_uint, order: Order, health: &Arc<Health>) -> Arc<Stream> {
        let stream = Stream { handle: fresh(), context, flags, health: health.clone() };
        queue::open(stream.handle, context, order);
        Arc::new(stream)
    }

    /// Enqueues work. If the work fails, the error of the work becomes the error of the context.
    pub(crate) fn enqueue(&self, work: impl FnOnce() -> CallResult + Send + 'static) -> Point {
        self.enqueue_after(&[], false, work)
    }

    /// Enqueues work. The work waits for points of other streams. If `elsewhere` is true, the work must not run on this
    /// thread.
    pub(crate) fn enqueue_after(
        &self,
        after: &[Point],
        elsewhere: bool,
        work: impl FnOnce() -> CallResult + Send + 'static,
    ) -> Point {
        let health = self.health.clone();
        let task = move || {
            // After an error, the work of the context is skipped.
            if health.check().is_ok()
                && let Err(error) = work()
            {
                health.fail(error);
            }
        };
        queue::enqueue(self.handle, after, elsewhere, Box::new(task))
    }

    /// Returns the end of the last task that was enqueued in the stream.
    pub(crate) fn last(&self) -> Point {
        queue::last(self.handle)
    }
}
