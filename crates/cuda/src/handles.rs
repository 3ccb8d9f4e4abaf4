//! Tables of handles, and locks. A handle is a number that is never used twice, so that one of an object that is gone, or a number
//! that the program invents, is found out without following it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

/// The value of the next handle. Handles look like pointers, and none is near 0: 0, 1 and 2 mean default streams.
static NEXT: AtomicUsize = AtomicUsize::new(0x5245_0000_0000);

/// Returns a number that no other handle has.
pub(crate) fn fresh() -> usize {
    NEXT.fetch_add(0x10, Ordering::Relaxed)
}

/// The objects of one kind, by their handles.
#[derive(Debug)]
pub(crate) struct Handles<T> {
    objects: RwLock<BTreeMap<usize, Arc<T>>>,
}

impl<T> Handles<T> {
    /// A table without objects.
    pub(crate) const fn new() -> Handles<T> {
        Handles { objects: RwLock::new(BTreeMap::new()) }
    }

    /// The object of a handle.
    pub(crate) fn get(&self, handle: usize) -> Option<Arc<T>> {
        self.objects.read().unwrap_or_else(PoisonError::into_inner).get(&handle).cloned()
    }

    /// Adds an object under a handle of [`fresh`].
    pub(crate) fn insert(&self, handle: usize, object: Arc<T>) {
        self.objects.write().unwrap_or_else(PoisonError::into_inner).insert(handle, object);
    }

    /// Removes an object.
    pub(crate) fn remove(&self, handle: usize) -> Option<Arc<T>> {
        self.objects.write().unwrap_or_else(PoisonError::into_inner).remove(&handle)
    }

    /// Keeps the objects for which a condition holds.
    pub(crate) fn retain(&self, keep: impl Fn(&T) -> bool) {
        self.objects.write().unwrap_or_else(PoisonError::into_inner).retain(|_, object| keep(object));
    }

    /// All objects for which a condition holds, in the order of their handles.
    pub(crate) fn all(&self, wanted: impl Fn(&T) -> bool) -> Vec<Arc<T>> {
        let objects = self.objects.read().unwrap_or_else(PoisonError::into_inner);
        objects.values().filter(|object| wanted(object)).cloned().collect()
    }
}

/// Locks, also after a panic of another thread: its call has returned an error.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
