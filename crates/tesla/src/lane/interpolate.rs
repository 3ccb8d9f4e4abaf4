//! Interpolation (`interp`) computes the value of an interpolant at a fragment. (6.7)
//!
//! The modes are known, but the hardware's rounding of the plane equation is not known. [`plane`] is the interpretation
//! that the machine's description recommends. The exactness of all results here is therefore *recommended*, not
//! measured.

use super::float::{self, NAN, Saturate};
use super::{Flags, Rounding};

/// The position at which an interpolant is evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Position {
    /// The centre of the fragment.
    Centre,
    /// The centroid of the part of the fragment that the primitive covers. (`cent`)
    Centroid,
    /// No position: the provoking vertex's value. (`flat`)
    Flat,
}

/// An interpolant of a primitive: a plane over the window, and the value for flat interpolation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interpolant {
    /// The value at the origin of the window.
    pub base: f32,
    /// Change of the value from one pixel to the right neighbour of the pixel.
    pub dx: f32,
    /// Change of the value for one pixel down.
    pub dy: f32,
    /// The bits of the provoking vertex's value.
    pub flat: u32,
}

/// Returns `(base + dx * x) + dy * y` in f32, with each operation rounded to nearest. The hardware uses fixed-point
/// arithmetic whose details are unknown.
///
/// Denormals are kept between the steps. A NaN has unspecified bits, which [`interp`] canonicalizes.
#[inline(always)]
pub fn plane(base: f32, dx: f32, dy: f32, at: [f32; 2]) -> f32 {
    (base + dx * at[0]) + dy * at[1]
}

/// Returns the value of the interpolant at a position, and the flags. In the "mul" forms, the function multiplies the
/// value by `factor`. The caller has already applied the modifiers of `factor`.
///
/// A perspective-correct attribute needs three instructions. The first is interp of 1/w. The second is rcp of this
/// value. The third is interp of the attribute with the result of rcp as factor. The plane for the last interp is the
/// plane of attribute / w. A flat value without a factor is copied bit by bit.
pub fn interp(
    of: Interpolant,
    position: Position,
    centre: [f32; 2],
    centroid: [f32; 2],
    factor: Option<u32>,
) -> u32 {
    let value = match position {
        Position::Centre => canonical(plane(of.base, of.dx, of.dy, centre)),
        Position::Centroid => canonical(plane(of.base, of.dx, of.dy, centroid)),
        Position::Flat => of.flat,
    };
    match factor {
        Some(factor) => multiplied(value, factor).0,
        None => value,
    }
}

/// For each lane, computes [`interp`] without a factor, at the position of the lane. The compiler vectorizes the loop.
#[inline(always)]
pub(crate) fn interp_row<const N: usize>(of: Interpolant, [x, y]: [&[f32; N]; 2]) -> [u32; N] {
    let mut row = [0; N];
    for lane in 0..N {
        row[lane] = canonical(plane(of.base, of.dx, of.dy, [x[lane], y[lane]]));
    }
    row
}

/// Executes the last step of the "mul" forms: an f32 mul rounded to nearest. The documents show no difference between
/// this step and the instruction mul. This file assumes that there is no difference.
#[inline(always)]
pub fn multiplied(value: u32, factor: u32) -> (u32, Flags) {
    float::mul(value, factor, Rounding::Nearest, Saturate::No, false)
}

#[inline(always)]
fn canonical(value: f32) -> u32 {
    if value.is_nan() { NAN } else { float::flush(value.to_bits()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OF: Interpolant = Interpolant { base: 1.0, dx: 0.5, dy: -0.25, flat: 0x1234_5678 };

    fn at(position: Position, factor: Option<f32>) -> u32 {
        interp(OF, position, [3.5, 2.5], [3.25, 2.75], factor.map(f32::to_bits))
    }

    #[test]
    fn centre_and_centroid_evaluate_the_plane_where_they_say() {
        assert_eq!(at(Position::Centre, None), (1.0f32 + 1.75 - 0.625).to_bits());
        assert_eq!(at(Position::Centroid, None), (1.0f32 + 1.625 - 0.6875).to_bits());
    }

    #[test]
    fn a_flat_value_is_copied_whatever_it_is() {
        assert_eq!(at(Position::Flat, None), 0x1234_5678);
    }

    #[test]
    fn the_factor_undoes_the_division_by_w() {
        // The plane is the plane of u / w. Here 1/w is 0.5, so rcp returns 2.
        let w = f32::from_bits(super::super::special::rcp(0.5f32.to_bits()));
        assert_eq!(at(Position::Centre, Some(w)), (2.125f32 * 2.0).to_bits());
    }

    #[test]
    fn a_nan_is_canonical_and_a_denormal_flushed() {
        let of = Interpolant { base: f32::INFINITY, dx: f32::NEG_INFINITY, ..OF };
        assert_eq!(interp(of, Position::Centre, [1.0, 1.0], [0.0, 0.0], None), NAN);
        let of = Interpolant { base: -1e-40, dx: 0.0, dy: 0.0, ..OF };
        assert_eq!(interp(of, Position::Centre, [1.0, 1.0], [0.0, 0.0], None), 0x8000_0000);
    }
}
