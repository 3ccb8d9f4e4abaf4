//! Lanes whose numbers need care, one by one: by the functions of [`crate::lane`].

// Code gives a pointer to what it keeps on its stack.
#![allow(unsafe_code)]

use reconverge_jit::{LANES, Rescue};

use crate::lane::float::{self, Saturate};
use crate::lane::{Modifiers, Rounding, Width, convert};

/// Computes the lanes of the mask.
///
/// # Safety
/// The pointer is to one that nothing else uses.
unsafe fn each(rescue: *mut Rescue, lane: impl Fn([u32; 3]) -> u32) {
    // SAFETY: as the caller says.
    let rescue = unsafe { &mut *rescue };
    for number in 0..LANES {
        if rescue.mask[number] >> 31 != 0 {
            rescue.value[number] = lane(rescue.sources.map(|source| source[number]));
        }
    }
}

macro_rules! rescuers {
    ($($(#[$doc:meta])* $name:ident($a:ident, $b:ident, $c:ident) $lane:expr;)*) => { $(
        $(#[$doc])*
        ///
        /// # Safety
        /// As for [`reconverge_jit::Rescuer`].
        pub(super) unsafe extern "sysv64" fn $name(rescue: *mut Rescue) {
            // SAFETY: as the caller says.
            unsafe { each(rescue, |[$a, $b, $c]| $lane) }
        }
    )* };
}

rescuers! {
    /// add f32
    add(a, b, _c) float::add(a, b, Rounding::Nearest, Saturate::No).0;
    /// mul f32
    mul(a, b, _c) float::mul(a, b, Rounding::Nearest, Saturate::No, false).0;
    /// mad f32
    mad(a, b, c) float::mad(a, b, c, false, Saturate::No, false).0;
    /// min f32
    min(a, b, _c) float::min(a, b).0;
    /// max f32
    max(a, b, _c) float::max(a, b).0;
    /// cvt f32 u32
    from_unsigned(a, _b, _c) convert::i2f(
        Rounding::Nearest,
        Saturate::No,
        convert::Integer { size: convert::Size::B32, signed: false },
        Modifiers::NONE,
        a,
    ).0;
    /// cvt s32 f32, to nearest
    to_signed_nearest(a, _b, _c) to_integer(true, Rounding::Nearest, a);
    /// cvt s32 f32, toward zero
    to_signed_zero(a, _b, _c) to_integer(true, Rounding::Zero, a);
    /// cvt u32 f32, to nearest
    to_unsigned_nearest(a, _b, _c) to_integer(false, Rounding::Nearest, a);
    /// cvt u32 f32, toward zero
    to_unsigned_zero(a, _b, _c) to_integer(false, Rounding::Zero, a);
}

fn to_integer(signed: bool, rounding: Rounding, a: u32) -> u32 {
    convert::f2i(Width::B32, signed, rounding, convert::FloatSize::F32, Modifiers::NONE, a).0
}
