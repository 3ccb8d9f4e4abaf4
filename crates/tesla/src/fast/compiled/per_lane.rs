//! Per-lane slow paths: the functions of [`crate::lane`].

use reconverge_jit::PerLane;

use crate::lane::float::{self, Saturate};
use crate::lane::{Modifiers, Rounding, Width, convert};

macro_rules! per_lane {
    ($($(#[$doc:meta])* $name:ident($a:ident, $b:ident, $c:ident) $lane:expr;)*) => { $(
        $(#[$doc])*
        pub(super) fn $name() -> PerLane {
            PerLane::of(|[$a, $b, $c]| $lane)
        }
    )* };
}

per_lane! {
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
