//! The warps of a block, for an engine that itself passes the turn from warp to warp.

// The warp that has the turn is borrowed while the others are read: each block states its assumptions.
#![allow(unsafe_code)]

use std::ptr::NonNull;

use crate::state::Warp;

/// All warps of a block. One of them has the turn.
#[derive(Clone, Copy, Debug)]
pub struct Warps {
    first: NonNull<Warp>,
    count: usize,
    /// Maximum number of instructions of the launch.
    pub(crate) watchdog: u64,
    /// Remaining number of times that the engine may pass the turn to another warp.
    pub(crate) passes: u32,
}

impl Warps {
    /// Returns the warps of a block, between which the turn may pass `passes` times.
    pub(crate) fn new(warps: &mut [Warp], watchdog: u64, passes: u32) -> Warps {
        let first = NonNull::from(&mut *warps).cast();
        Warps { first, count: warps.len(), watchdog, passes }
    }

    /// Returns the number of warps.
    pub(crate) fn count(self) -> usize {
        self.count
    }

    /// Returns a warp.
    ///
    /// # Panics
    /// Panics if the block has no warp with this number.
    ///
    /// # Safety
    /// While the result is used, the warps exist, and nothing else refers to this one.
    pub(crate) unsafe fn warp<'a>(self, number: usize) -> &'a mut Warp {
        assert!(number < self.count, "the block has the warp");
        // SAFETY: the warp is one of the slice's. The caller guarantees that it exists and that nothing else refers to it.
        unsafe { self.first.add(number).as_mut() }
    }

    /// Returns whether a warp that does not have the turn has ended.
    ///
    /// # Safety
    /// The warps exist.
    pub(crate) unsafe fn has_ended(self, number: usize) -> bool {
        // SAFETY: the caller guarantees the first part, and only the warp that has the turn is referred to.
        unsafe { self.warp(number) }.flow.finished()
    }
}
