//! Functions that generated code calls. These functions use the calling convention of generated code.

// Generated code calls the functions of this module through raw pointers. A comment at each unsafe block states the
// assumptions of the block.
#![allow(unsafe_code)]

use std::ptr::NonNull;

use crate::state::State;

/// Applies the calling convention of generated code to a function or a function type. Targets without generated code
/// have only the types.
#[cfg(target_arch = "x86_64")]
macro_rules! convention {
    ($($function:tt)*) => { unsafe extern "sysv64" $($function)* };
}
#[cfg(not(target_arch = "x86_64"))]
macro_rules! convention {
    ($($function:tt)*) => { unsafe extern "C" $($function)* };
}
pub(crate) use convention;

/// A function that generated code calls. The function is either the call of a node, or the machine's flow control. The
/// arguments are the state and a number. The call of a node returns 0 if the node continues. Flow control returns the
/// next node.
///
/// # Safety
/// The argument must be the state of the current run. The context in the state must have the type that the function
/// expects.
pub(crate) type Callee = convention!(fn(*mut State, u32) -> u32);

/// Number of lanes of a [`PerLaneFrame`]. The width of a group is a multiple of this number.
pub const LANES: usize = 8;

/// Operands and result of a per-lane slow path.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(32))]
pub(crate) struct PerLaneFrame {
    /// The operands.
    sources: [[u32; LANES]; 3],
    /// Mask of the lanes to compute. In the mask, the sign bits of these lanes are set.
    mask: [u32; LANES],
    /// The value before and after the call. The function replaces this value in the lanes of the mask.
    value: [u32; LANES],
}

/// A per-lane slow path. The function computes the lanes of a mask one by one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PerLane(usize);

impl PerLane {
    /// Creates a slow path that calls a function for each lane. If the function is a closure, the closure must not
    /// capture variables.
    pub fn of<F: Fn([u32; 3]) -> u32>(_: F) -> PerLane {
        const { assert!(size_of::<F>() == 0, "the function captures nothing") };
        PerLane(per_lane::<F> as *const () as usize)
    }

    /// Returns the address that generated code calls.
    pub fn address(self) -> usize {
        self.0
    }
}

convention! {
    fn per_lane<F: Fn([u32; 3]) -> u32>(per_lane: *mut PerLaneFrame) {
        // SAFETY: a function without captures has a size of 0 bytes. The caller of `PerLane::of` has passed a value of
        // the type `F`.
        let lane = unsafe { NonNull::<F>::dangling().as_ref() };
        // SAFETY: the caller is generated code, which passes a pointer to a `PerLaneFrame`.
        let PerLaneFrame { sources, mask, value } = unsafe { &mut *per_lane };
        for number in (0..LANES).filter(|number| mask[*number] >> 31 != 0) {
            value[number] = lane(sources.map(|source| source[number]));
        }
    }
}
