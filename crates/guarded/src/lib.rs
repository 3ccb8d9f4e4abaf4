//! Memory that generated code accesses. A [`Guarded`] is a list of plain values, like a `Vec`. On request, the list is
//! placed directly before or after pages that cannot be accessed. With this placement, an access outside the list
//! causes a fault.
//!
//! ```text
//! AtEnd:    | no access, 128 KiB | (rest of a page) values | no access, 128 KiB |
//! AtStart:  | no access, 128 KiB | values (rest of a page) | no access, 128 KiB |
//! ```
//! [`Placement::process`] determines where this memory is placed. Inaccessible pages are available only on Unix. On
//! hosts other than Unix, the memory is always on the heap.

// This crate allocates memory and accesses the memory through a pointer.
#![allow(unsafe_code)]

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU8, Ordering};

#[cfg(unix)]
mod pages;

/// Alignment of values on the heap, in bytes: the size of the widest vector registers.
const ALIGN: usize = 64;

/// Position of the values of a [`Guarded`] in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// On the heap, aligned to 64 bytes.
    Heap,
    /// Between pages that cannot be accessed. The last value ends directly before the inaccessible page after the list.
    AtEnd,
    /// Between pages that cannot be accessed. The first value starts directly after the inaccessible page before the
    /// list.
    AtStart,
}

/// Placement of the process, as a number. 0: the placement is not determined yet. [`NONE`]: no placement was requested.
/// Any larger number below [`NONE`] is one plus the index of the placement in [`Placement::ALL`].
static PROCESS: AtomicU8 = AtomicU8::new(0);

/// The value of [`PROCESS`] if no placement was requested.
const NONE: u8 = u8::MAX;

impl Placement {
    const ALL: [Placement; 3] = [Placement::Heap, Placement::AtEnd, Placement::AtStart];

    /// Returns the placement of memory that generated code accesses.
    ///
    /// The environment variable `RECONVERGE_GUARD` selects the placement: `end`, `start` or `off`. Without the
    /// variable, builds with debug assertions use [`Placement::AtEnd`]. Without the variable and without debug
    /// assertions, builds use [`Placement::Heap`].
    pub fn process() -> Placement {
        Placement::requested().unwrap_or(Placement::Heap)
    }

    /// Returns the placement of memory that a program accesses at computed addresses.
    ///
    /// If no placement is requested, returns [`Placement::AtEnd`]. This placement and the heap were measured on an AMD
    /// EPYC with 1,000 bytes of shared memory s[]. With either placement, a launch of one block takes 40 us, and a
    /// launch of 64 blocks takes 94 us.
    pub fn addressed() -> Placement {
        Placement::requested().unwrap_or(Placement::AtEnd)
    }

    fn requested() -> Option<Placement> {
        let known = PROCESS.load(Ordering::Relaxed);
        if known != 0 {
            return Placement::ALL.get(usize::from(known) - 1).copied();
        }
        let requested = match std::env::var("RECONVERGE_GUARD").as_deref() {
            Ok("end") => Some(Placement::AtEnd),
            Ok("start") => Some(Placement::AtStart),
            Ok("off") => Some(Placement::Heap),
            _ => cfg!(debug_assertions).then_some(Placement::AtEnd),
        };
        PROCESS.store(requested.map_or(NONE, Placement::code), Ordering::Relaxed);
        requested
    }

    /// Makes this placement the placement of the process. This placement overrides the environment variable. Existing
    /// memory does not move.
    pub fn force(self) {
        PROCESS.store(self.code(), Ordering::Relaxed);
    }

    fn code(self) -> u8 {
        self as u8 + 1
    }
}

/// A type whose values a [`Guarded`] can hold. The type has no destructor, and the default value of the type consists
/// of zero bits.
pub trait Plain: Copy {
    /// The value of new elements.
    const ZERO: Self;
}

impl Plain for u8 {
    const ZERO: u8 = 0;
}

impl Plain for u32 {
    const ZERO: u32 = 0;
}

impl Plain for [u64; 2] {
    const ZERO: [u64; 2] = [0; 2];
}

/// A list of values in memory that belongs only to this list. A [`Placement`] determines where the memory is.
pub struct Guarded<T> {
    first: NonNull<T>,
    len: usize,
    held: Held,
    placement: Placement,
}

/// The allocation of a list.
enum Held {
    Nothing,
    Heap(Layout),
    #[cfg(unix)]
    Pages(#[expect(dead_code, reason = "its drop returns the pages")] pages::Pages),
}

// SAFETY: the list is the only owner of the values, like a `Vec`.
unsafe impl<T: Send> Send for Guarded<T> {}
// SAFETY: the list is the only owner of the values, like a `Vec`.
unsafe impl<T: Sync> Sync for Guarded<T> {}

impl<T: Plain> Guarded<T> {
    /// Returns a list of `len` zeros.
    ///
    /// # Panics
    /// Panics if the list is larger than half of the address space.
    pub fn new(len: usize, placement: Placement) -> Guarded<T> {
        let (first, held) = allocate(len, placement);
        Guarded { first, len, held, placement }
    }

    /// Returns a list of these values.
    pub fn copied(values: &[T], placement: Placement) -> Guarded<T> {
        let mut list = Guarded::new(values.len(), placement);
        list.copy_from_slice(values);
        list
    }

    /// Returns the requested placement of the values. If the system has not provided inaccessible pages, this function
    /// returns the requested placement, but the values are on the heap.
    pub fn placement(&self) -> Placement {
        self.placement
    }

    /// Changes the number of values. New values are zero. If the values are on the heap and the allocation is large
    /// enough, the values do not move. In all other cases, the values move to a new allocation.
    pub fn resize(&mut self, len: usize) {
        let (old, room) = (self.len, self.room());
        if len == old {
            return;
        }
        if len > room {
            // A new allocation on the heap has at least twice the old size. So a list that grows value by value is
            // rarely copied.
            let capacity = if self.placement == Placement::Heap { len.max(2 * room) } else { len };
            let (first, held) = allocate::<T>(capacity, self.placement);
            let mut list = Guarded { first, len, held, placement: self.placement };
            list[..old].copy_from_slice(self);
            *self = list;
            return;
        }
        if let Held::Heap(_) = self.held {
            self.len = len;
            if len > old {
                self[old..].fill(T::ZERO);
            }
            return;
        }
        let list = Guarded::copied(&self[..len], self.placement);
        *self = list;
    }

    /// Turns the list into `len` zeros. Reuses the allocation if the allocation has the right size.
    pub fn reset(&mut self, len: usize) {
        self.resize(len);
        self.fill(T::ZERO);
    }

    /// Shortens the list to its first `len` values.
    pub fn truncate(&mut self, len: usize) {
        self.resize(len.min(self.len));
    }

    /// Appends values.
    pub fn extend_from_slice(&mut self, values: &[T]) {
        let old = self.len;
        self.resize(old + values.len());
        self[old..].copy_from_slice(values);
    }

    /// Returns how many values fit into the current allocation.
    fn room(&self) -> usize {
        match &self.held {
            Held::Heap(layout) => layout.size() / size_of::<T>().max(1),
            _ => self.len,
        }
    }
}

/// Allocates memory for `len` zeros.
fn allocate<T: Plain>(len: usize, placement: Placement) -> (NonNull<T>, Held) {
    const { assert!(align_of::<T>() <= ALIGN && size_of::<T>() > 0) };
    let layout = Layout::array::<T>(len).and_then(|layout| layout.align_to(ALIGN));
    let layout =
        layout.unwrap_or_else(|_| panic!("a list of {len} values does not fit into the address space"));
    if layout.size() == 0 {
        return (NonNull::<Aligned>::dangling().cast(), Held::Nothing);
    }
    #[cfg(unix)]
    if placement != Placement::Heap
        && let Some(pages) = pages::Pages::new(layout.size())
    {
        let first = match placement {
            Placement::AtStart => pages.first(),
            _ => pages.end(layout.size()),
        };
        return (first.cast(), Held::Pages(pages));
    }
    #[cfg(not(unix))]
    let _ = placement;
    // SAFETY: the size is not 0.
    let first = NonNull::new(unsafe { alloc_zeroed(layout) }).unwrap_or_else(|| handle_alloc_error(layout));
    (first.cast(), Held::Heap(layout))
}

#[repr(align(64))]
struct Aligned;

impl<T> Drop for Guarded<T> {
    fn drop(&mut self) {
        if let Held::Heap(layout) = self.held {
            // SAFETY: `allocate` allocated this memory with this layout, and no references to this memory remain.
            unsafe { dealloc(self.first.as_ptr().cast(), layout) };
        }
    }
}

impl<T> Deref for Guarded<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        // SAFETY: `first` points to an allocation of at least `len` values. All these values are initialised.
        // `allocate` fills the values with zero bits. Zero bits are valid for `Plain` types. Later writes store valid
        // values.
        unsafe { std::slice::from_raw_parts(self.first.as_ptr(), self.len) }
    }
}

impl<T> DerefMut for Guarded<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: see `deref`. In addition, the exclusive borrow of the list lasts as long as the slice.
        unsafe { std::slice::from_raw_parts_mut(self.first.as_ptr(), self.len) }
    }
}

impl<T> AsRef<[T]> for Guarded<T> {
    #[inline(always)]
    fn as_ref(&self) -> &[T] {
        self
    }
}

impl<T> AsMut<[T]> for Guarded<T> {
    #[inline(always)]
    fn as_mut(&mut self) -> &mut [T] {
        self
    }
}

impl<T: Plain> Clone for Guarded<T> {
    fn clone(&self) -> Self {
        Guarded::copied(self, self.placement)
    }
}

/// Returns an empty list with the placement of the process.
impl<T: Plain> Default for Guarded<T> {
    fn default() -> Self {
        Guarded::new(0, Placement::process())
    }
}

/// Collects values into a list with the placement of the process.
impl<T: Plain> FromIterator<T> for Guarded<T> {
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> Self {
        Guarded::copied(&values.into_iter().collect::<Vec<_>>(), Placement::process())
    }
}

impl<T: PartialEq> PartialEq for Guarded<T> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<T: Eq> Eq for Guarded<T> {}

impl<T: fmt::Debug> fmt::Debug for Guarded<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}
