//! Tables of handles, and locks. A handle is a number that is never reused. The tables therefore detect the handle of a
//! destroyed object, and a number that is not a handle. This detection does not use the number as an address of memory.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

/// The value of the next handle. Handles look like pointers. The values of handles are far from 0, because 0, 1 and 2
/// name default streams.
static NEXT: AtomicUsize = AtomicUsize::new(0x5245_0000_0000);

/// Returns a new handle.
pub(crate) fn fresh() -> usize {
    NEXT.fetch_add(0x10, Ordering::Relaxed)
}

/// The objects of one kind, with their handles as keys.
#[derive(Debug)]
pub(crate) struct Handles<T> {
    objects: RwLock<BTreeMap<usize, Arc<T>>>,
}

impl<T> Handles<T> {
    /// Returns an empty table.
    pub(crate) const fn new() -> Handles<T> {
        Handles { objects: RwLock::new(BTreeMap::new()) }
    }

    /// Returns the object of a handle.
    pub(crate) fn get(&self, handle: usize) -> Option<Arc<T>> {
        self.objects.read().unwrap_or_else(PoisonError::into_inner).get(&handle).cloned()
    }

    /// Adds an object. The handle of the object is a result of [`fresh`].
    pub(crate) fn insert(&self, handle: usize, object: Arc<T>) {
        self.objects.write().unwrap_or_else(PoisonError::into_inner).insert(handle, object);
    }

    /// Removes an object.
    pub(crate) fn remove(&self, handle: usize) -> Option<Arc<T>> {
        self.objects.write().unwrap_or_else(PoisonError::into_inner).remove(&handle)
    }

    /// Removes all objects for which `keep` returns false.
    pub(crate) fn retain(&self, keep: impl Fn(&T) -> bool) {
        self.objects.write().unwrap_or_else(PoisonError::into_inner).retain(|_, object| keep(object));
    }

    /// Returns all objects for which `wanted` returns true, in the order of their handles.
    pub(crate) fn all(&self, wanted: impl Fn(&T) -> bool) -> Vec<Arc<T>> {
        let objects = self.objects.read().unwrap_or_else(PoisonError::into_inner);
        objects.values().filter(|object| wanted(object)).cloned().collect()
    }
}

/// Locks a mutex. Ignores a panic of a thread that held the mutex. The call that panicked has returned an error to the
/// program.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
