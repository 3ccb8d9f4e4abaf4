//! The warps of a block. The engine itself switches from warp to warp.

// The code reads other warps during a borrow of the current warp. A comment at each use of unsafe code states the
// assumptions of this use.
#![allow(unsafe_code)]

use std::ptr::NonNull;

use crate::state::Warp;

/// All warps of a block. The current warp is the warp that the engine runs.
#[derive(Clone, Copy, Debug)]
pub struct Warps {
    first: NonNull<Warp>,
    count: usize,
    /// Maximum number of instructions of the launch.
    pub(crate) watchdog: u64,
    /// Number of times that the engine may still switch to another warp.
    pub(crate) passes: u32,
}

impl Warps {
    /// Returns the warps of a block. The engine may switch between these warps `passes` times.
    pub(crate) fn new(warps: &mut [Warp], watchdog: u64, passes: u32) -> Warps {
        let first = NonNull::from(&mut *warps).cast();
        Warps { first, count: warps.len(), watchdog, passes }
    }

    /// Returns the number of warps.
    pub(crate) fn count(self) -> usize {
        self.count
    }

    /// Returns the warp with this number.
    ///
    /// # Panics
    /// Panics if the block has no warp with this number.
    ///
    /// # Safety
    /// While the caller uses the returned reference, the warp must exist, and no other reference to the warp may be in
    /// use.
    pub(crate) unsafe fn warp<'a>(self, number: usize) -> &'a mut Warp {
        assert!(number < self.count, "the block has the warp");
        // SAFETY: the warp is in the slice. The caller guarantees that the warp exists, and that no other reference to
        // the warp is in use.
        unsafe { self.first.add(number).as_mut() }
    }

    /// Returns whether a warp other than the current warp has ended.
    ///
    /// # Safety
    /// The warps must exist, and warp `number` must not be the current warp.
    pub(crate) unsafe fn has_ended(self, number: usize) -> bool {
        // SAFETY: the caller guarantees that the warps exist. Only the current warp is borrowed, and warp `number` is
        // another warp.
        unsafe { self.warp(number) }.flow.finished()
    }
}
