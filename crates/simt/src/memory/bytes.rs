//! The bytes of a buffer. Either the buffer owns the bytes, or the bytes are part of a memory that other code also
//! uses.

// Unsafe code is required because borrowed bytes are accessed through a pointer.
#![allow(unsafe_code)]

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// The bytes of a buffer. A value that [`Bytes::borrowed`] created borrows its bytes. Any other value owns its bytes. A
/// clone always owns its bytes.
pub struct Bytes {
    start: NonNull<u8>,
    length: usize,
    /// Whether the bytes are a boxed slice, which is freed together with this value.
    own: bool,
}

// SAFETY: the bytes are plain data. A `Bytes` accesses the bytes under the same rules as a slice.
unsafe impl Send for Bytes {}
// SAFETY: the bytes are plain data. A `Bytes` accesses the bytes under the same rules as a slice.
unsafe impl Sync for Bytes {}

impl Bytes {
    /// Returns bytes that are part of a chip's memory. A launch then works on the memory of the chip without a copy.
    ///
    /// # Safety
    /// As long as the returned value exists, the range must be valid for reads and writes. As long as the returned
    /// value exists, this process must not use any other reference to the range. Accesses through other mappings of the
    /// same pages are allowed. They behave like accesses of another processor. A launch may or may not see writes
    /// through other mappings.
    pub(crate) unsafe fn borrowed(start: NonNull<u8>, length: usize) -> Bytes {
        Bytes { start, length, own: false }
    }
}

impl From<Vec<u8>> for Bytes {
    fn from(bytes: Vec<u8>) -> Bytes {
        let length = bytes.len();
        let start = Box::into_raw(bytes.into_boxed_slice()).cast();
        // SAFETY: the pointer of a box is not null.
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
            // SAFETY: the bytes are a boxed slice of this length, and no other value uses this slice.
            drop(unsafe { Box::from_raw(slice) });
        }
    }
}

impl Deref for Bytes {
    type Target = [u8];

    #[inline(always)]
    fn deref(&self) -> &[u8] {
        // SAFETY: the bytes are valid as long as this value exists. `From` or the caller of `borrowed` guarantees this.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.length) }
    }
}

impl DerefMut for Bytes {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: the bytes are valid for the reason that `deref` states. `self` is borrowed mutably.
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
