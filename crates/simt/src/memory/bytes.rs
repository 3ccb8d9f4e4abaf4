//! The bytes of a buffer: owned, or part of a memory that others also use.

// Borrowed bytes are accessed through a pointer.
#![allow(unsafe_code)]

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// The bytes of a buffer. They are owned, except those of [`Bytes::borrowed`]; a copy always owns its bytes.
pub struct Bytes {
    start: NonNull<u8>,
    length: usize,
    /// Whether they are a boxed slice, which is freed with this value.
    own: bool,
}

// SAFETY: the bytes are plain data, which this value accesses under the rules of a slice.
unsafe impl Send for Bytes {}
// SAFETY: as above.
unsafe impl Sync for Bytes {}

impl Bytes {
    /// Returns bytes in the memory of a chip, so that a launch runs on them in place.
    ///
    /// # Safety
    /// While the value exists, the range is valid for reads and writes, and no other reference to it in this process
    /// is used. Accesses through other mappings of the same pages are like those of another processor: a launch may
    /// see them or not.
    pub(crate) unsafe fn borrowed(start: NonNull<u8>, length: usize) -> Bytes {
        Bytes { start, length, own: false }
    }
}

impl From<Vec<u8>> for Bytes {
    fn from(bytes: Vec<u8>) -> Bytes {
        let length = bytes.len();
        let start = Box::into_raw(bytes.into_boxed_slice()).cast();
        // SAFETY: a box is not null.
        Bytes { start: unsafe { NonNull::new_unchecked(start) }, length, own: true }
    }
}

impl FromIterator<u8> for Bytes {
    fn from_iter<I: IntoIterator<Item = u8>>(bytes: I) -> Bytes {
        Vec::from_iter(bytes).into()
    }
}

impl Drop for Bytes {
    fn drop(&mut self) {
        if self.own {
            let slice = std::ptr::slice_from_raw_parts_mut(self.start.as_ptr(), self.length);
            // SAFETY: they are a boxed slice of this length, which is not used any more.
            drop(unsafe { Box::from_raw(slice) });
        }
    }
}

impl Deref for Bytes {
    type Target = [u8];

    #[inline(always)]
    fn deref(&self) -> &[u8] {
        // SAFETY: the bytes are valid as long as the value, by `From` or by the caller of `borrowed`.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.length) }
    }
}

impl DerefMut for Bytes {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and the value is borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.length) }
    }
}

impl Default for Bytes {
    fn default() -> Bytes {
        Vec::new().into()
    }
}

impl Clone for Bytes {
    fn clone(&self) -> Bytes {
        self.to_vec().into()
    }
}

impl PartialEq for Bytes {
    fn eq(&self, other: &Bytes) -> bool {
        **self == **other
    }
}

impl Eq for Bytes {}

impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
