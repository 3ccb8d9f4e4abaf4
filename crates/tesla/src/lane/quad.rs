//! `quadop`: f32 arithmetic between the lanes of a 2x2 quad. (6.3; hwtest/g80_fp.cc)

use super::float::{self, Saturate};
use super::{Flags, Rounding};

/// The operation of one lane of a quad. `t` is the value of the selected lane, and `c` is the value of the lane that
/// executes the operation.
///
/// Compared with integer add, the codes of subr and sub are swapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum QuadOp {
    /// 0: t + c
    Add,
    /// 1: c - t
    Subr,
    /// 2: t - c
    Sub,
    /// 3: c + 0, which flushes a denormal and canonicalizes a NaN.
    Mov2,
}

/// The lane of the quad from which a lane takes SRC1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum QuadSource {
    /// 0 to 3: all four lanes take SRC1 from this lane of the quad.
    Lane(u8),
    /// 4 and 6: the horizontal neighbour.
    Dx,
    /// 5 and 7: the vertical neighbour.
    Dy,
}

impl QuadSource {
    /// Returns the selector for a 3-bit code. Higher bits are ignored.
    pub const fn from_code(code: u8) -> QuadSource {
        match code & 7 {
            4 | 6 => QuadSource::Dx,
            5 | 7 => QuadSource::Dy,
            lane => QuadSource::Lane(lane),
        }
    }

    /// Returns the lane of the quad (0 to 3) whose SRC1 the lane `own` reads. The returned lane may be inactive.
    pub const fn lane(self, own: u8) -> u8 {
        match self {
            QuadSource::Lane(lane) => lane & 3,
            QuadSource::Dx => (own ^ 1) & 3,
            QuadSource::Dy => (own ^ 2) & 3,
        }
    }
}

/// Returns the result of a lane, rounded to nearest. `t` is SRC1 of the selected lane, and `c` is SRC3 of the lane that
/// executes the operation.
#[inline(always)]
pub fn quadop(op: QuadOp, t: u32, c: u32) -> (u32, Flags) {
    const SIGN: u32 = 0x8000_0000;
    let (a, b) = match op {
        QuadOp::Add => (t, c),
        QuadOp::Subr => (c, t ^ SIGN),
        QuadOp::Sub => (t, c ^ SIGN),
        QuadOp::Mov2 => (c, 0),
    };
    float::add(a, b, Rounding::Nearest, Saturate::No)
}

/// Returns the result of every lane for the selectors [`QuadSource::Dx`] and [`QuadSource::Dy`] outside fragment
/// programs. Whatever the operation, the result is 0, or +infinity if the machine's mode NONFP_DERIV is 1.
pub fn derivative_outside_fragment(nonfp_deriv: bool) -> (u32, Flags) {
    let result = if nonfp_deriv { 0x7f80_0000 } else { 0 };
    (result, float::flags(result))
}
