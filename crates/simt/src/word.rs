//! Operations on words, from which a machine writes the meaning of an instruction once.
//!
//! A function over [`Word`] serves the reference interpreter, the kernels of rows and compiled code. For `u32`, the
//! function computes the word of one lane, and the compiler turns a loop over lanes into vector instructions. For a
//! node of compiled code, the function emits code that computes the words of all lanes.
//!
//! ```
//! use reconverge_simt::word::Word;
//!
//! /// a > b ? a - b : 0, for signed integers.
//! fn excess<W: Word>(a: W, b: W) -> W {
//!     a.greater(b) & a.minus(b)
//! }
//! assert_eq!(excess(7, 5), 2);
//! assert_eq!(excess(5, 7), 0);
//! ```

use std::ops::{BitAnd, BitOr, BitXor, Not};

/// A word of 32 bits for each lane.
///
/// A comparison returns all ones if it holds, and otherwise 0. In comparisons of floats, a denormal counts as a zero,
/// and no comparison with a NaN holds.
pub trait Word:
    Copy + BitAnd<Output = Self> + BitOr<Output = Self> + BitXor<Output = Self> + Not<Output = Self>
{
    /// Returns a constant, of the kind of `self`.
    fn same(self, word: u32) -> Self;

    /// self + other, modulo 2^32.
    fn plus(self, other: Self) -> Self;
    /// self - other, modulo 2^32.
    fn minus(self, other: Self) -> Self;
    /// The low half of self * other.
    fn times(self, other: Self) -> Self;
    /// Shifts to the left. For counts of 32 and more, the result is 0.
    fn left(self, count: Self) -> Self;
    /// Shifts to the right and inserts zeros. For counts of 32 and more, the result is 0.
    fn right(self, count: Self) -> Self;
    /// Shifts to the right and copies the sign. For counts of 32 and more, all bits are copies of the sign.
    fn right_signed(self, count: Self) -> Self;

    /// The smaller signed integer.
    fn min_signed(self, other: Self) -> Self;
    /// The larger signed integer.
    fn max_signed(self, other: Self) -> Self;
    /// The smaller unsigned integer.
    fn min_unsigned(self, other: Self) -> Self;
    /// The larger unsigned integer.
    fn max_unsigned(self, other: Self) -> Self;

    /// self == other.
    fn equal(self, other: Self) -> Self;
    /// self > other, for signed integers.
    fn greater(self, other: Self) -> Self;
    /// self >= other, for signed integers.
    #[inline(always)]
    fn at_least(self, other: Self) -> Self {
        !other.greater(self)
    }
    /// self >= other, for unsigned integers.
    #[inline(always)]
    fn at_least_unsigned(self, other: Self) -> Self {
        self.max_unsigned(other).equal(self)
    }
    /// self > other, for unsigned integers.
    #[inline(always)]
    fn greater_unsigned(self, other: Self) -> Self {
        !other.at_least_unsigned(self)
    }

    /// self == other, for floats.
    fn float_equal(self, other: Self) -> Self;
    /// self > other, for floats.
    fn float_greater(self, other: Self) -> Self;
    /// self >= other, for floats.
    fn float_at_least(self, other: Self) -> Self;
    /// Whether the float is a NaN.
    fn is_nan(self) -> Self;

    /// Converts a signed integer to a float, rounded to nearest even.
    fn to_float(self) -> Self;
    /// Converts a float to a signed integer, rounded toward zero. If no signed integer has this value, the result is
    /// 0x80000000.
    fn truncated(self) -> Self;

    /// Returns `then` if the sign bit of `self` is set, and otherwise `other`. All bits of the chosen word stay
    /// unchanged. The only exception is a denormal that an operation of a node has computed: the denormal becomes a
    /// zero, as everywhere where its bits are read.
    fn choose(self, then: Self, other: Self) -> Self;

    /// The low `bits` bits, 1 to 32, extended with zeros or with copies of the top bit.
    #[inline(always)]
    fn extended(self, bits: u32, signed: bool) -> Self {
        let count = self.same(32 - bits);
        if signed { self.left(count).right_signed(count) } else { self & self.same(u32::MAX >> (32 - bits)) }
    }
}

/// Returns a truth value as a word.
#[inline(always)]
fn truth(holds: bool) -> u32 {
    if holds { u32::MAX } else { 0 }
}

/// Returns the number with these bits. A denormal becomes a zero.
#[inline(always)]
fn number(word: u32) -> f32 {
    f32::from_bits(if word & 0x7f80_0000 == 0 { word & 1 << 31 } else { word })
}

impl Word for u32 {
    #[inline(always)]
    fn same(self, word: u32) -> u32 {
        word
    }

    #[inline(always)]
    fn plus(self, other: u32) -> u32 {
        self.wrapping_add(other)
    }

    #[inline(always)]
    fn minus(self, other: u32) -> u32 {
        self.wrapping_sub(other)
    }

    #[inline(always)]
    fn times(self, other: u32) -> u32 {
        self.wrapping_mul(other)
    }

    #[inline(always)]
    fn left(self, count: u32) -> u32 {
        if count < 32 { self << (count & 31) } else { 0 }
    }

    #[inline(always)]
    fn right(self, count: u32) -> u32 {
        if count < 32 { self >> (count & 31) } else { 0 }
    }

    #[inline(always)]
    fn right_signed(self, count: u32) -> u32 {
        (self as i32 >> count.min(31)) as u32
    }

    #[inline(always)]
    fn min_signed(self, other: u32) -> u32 {
        (self as i32).min(other as i32) as u32
    }

    #[inline(always)]
    fn max_signed(self, other: u32) -> u32 {
        (self as i32).max(other as i32) as u32
    }

    #[inline(always)]
    fn min_unsigned(self, other: u32) -> u32 {
        self.min(other)
    }

    #[inline(always)]
    fn max_unsigned(self, other: u32) -> u32 {
        self.max(other)
    }

    #[inline(always)]
    fn equal(self, other: u32) -> u32 {
        truth(self == other)
    }

    #[inline(always)]
    fn greater(self, other: u32) -> u32 {
        truth(self as i32 > other as i32)
    }

    #[inline(always)]
    fn float_equal(self, other: u32) -> u32 {
        truth(number(self) == number(other))
    }

    #[inline(always)]
    fn float_greater(self, other: u32) -> u32 {
        truth(number(self) > number(other))
    }

    #[inline(always)]
    fn float_at_least(self, other: u32) -> u32 {
        truth(number(self) >= number(other))
    }

    #[inline(always)]
    fn is_nan(self) -> u32 {
        truth(self & 0x7fff_ffff > 0x7f80_0000)
    }

    #[inline(always)]
    fn to_float(self) -> u32 {
        (self as i32 as f32).to_bits()
    }

    #[inline(always)]
    #[allow(unsafe_code, reason = "a checked conversion takes several host instructions for a vector")]
    fn truncated(self) -> u32 {
        let x = f32::from_bits(self);
        // -2^31 is a signed integer, and the result for all larger magnitudes is 0x80000000 too.
        let inside = x.abs() < 2_147_483_648.0;
        // SAFETY: the magnitude is less than 2^31.
        let part: i32 = unsafe { (if inside { x } else { 0.0 }).to_int_unchecked() };
        if inside { part as u32 } else { 1 << 31 }
    }

    #[inline(always)]
    fn choose(self, then: u32, other: u32) -> u32 {
        if self >> 31 != 0 { then } else { other }
    }
}
