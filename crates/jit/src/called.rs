//! Functions that generated code calls, in its calling convention.

// Generated code calls functions: each block states its assumptions.
#![allow(unsafe_code)]

use std::ptr::NonNull;

use crate::state::State;

/// The calling convention of generated code, for a function or its type. Targets without code have only the types.
#[cfg(target_arch = "x86_64")]
macro_rules! convention {
    ($($function:tt)*) => { unsafe extern "sysv64" $($function)* };
}
#[cfg(not(target_arch = "x86_64"))]
macro_rules! convention {
    ($($function:tt)*) => { unsafe extern "C" $($function)* };
}
pub(crate) use convention;

/// A function that code calls: that of a node, or the machine's flow control. Its arguments are the state and a
/// number. A node continues if its function returns 0; flow control returns the next node.
///
/// # Safety
/// The state is that of the run, and its context has the type that the function expects.
pub(crate) type Callee = convention!(fn(*mut State, u32) -> u32);

/// Lanes of a [`PerLaneFrame`]. The width of a group is a multiple of it.
pub const LANES: usize = 8;

/// Operands and result of a per-lane slow path.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(32))]
pub(crate) struct PerLaneFrame {
    /// The operands.
    sources: [[u32; LANES]; 3],
    /// Mask: the sign is set for each lane to compute.
    mask: [u32; LANES],
    /// The result; it changes in the lanes of the mask.
    value: [u32; LANES],
}

/// A per-lane slow path: computes the lanes of a mask one by one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PerLane(usize);

impl PerLane {
    /// Creates a slow path that calls a function for each lane. The function must not capture anything.
    pub fn of<F: Fn([u32; 3]) -> u32>(_: F) -> PerLane {
        const { assert!(size_of::<F>() == 0, "the function captures nothing") };
        PerLane(per_lane::<F> as *const () as usize)
    }

    /// Returns the address that code calls.
    pub fn address(self) -> usize {
        self.0
    }
}

convention! {
    fn per_lane<F: Fn([u32; 3]) -> u32>(per_lane: *mut PerLaneFrame) {
        // SAFETY: a function without captures has no bytes, and the caller of `PerLane::of` has provided one.
        let lane = unsafe { NonNull::<F>::dangling().as_ref() };
        // SAFETY: code passes a part of its frame.
        let PerLaneFrame { sources, mask, value } = unsafe { &mut *per_lane };
        for number in (0..LANES).filter(|number| mask[*number] >> 31 != 0) {
            value[number] = lane(sources.map(|source| source[number]));
        }
    }
}
