//! The common rules of both units (r500.md 3.5; docs/r500-vertex.md, section 8), in integers. The code is independent
//! of the machine.

use reconverge_testkit::exact::{Real, nearest, parts};

pub(crate) const SIGN: u32 = 1 << 31;
pub(crate) const INFINITY: u32 = 0x7f80_0000;
pub(crate) const LARGEST: u32 = 0x7f7f_ffff;
pub(crate) const ONE: u32 = 0x3f80_0000;
/// The only NaN that arithmetic returns.
pub(crate) const NAN: u32 = 0x7fff_ffff;

/// Replaces a denormal by a zero of the same sign.
pub(crate) fn flushed(x: u32) -> u32 {
    if x << 1 < 1 << 24 { x & SIGN } else { x }
}

pub(crate) fn is_nan(x: u32) -> bool {
    x << 1 > INFINITY << 1
}

pub(crate) fn is_infinite(x: u32) -> bool {
    x << 1 == INFINITY << 1
}

/// Turns a function of floats into a function of words.
pub(crate) fn words(function: impl Fn(f32) -> f32) -> impl Fn(u32) -> u32 {
    move |x| function(f32::from_bits(x)).to_bits()
}

/// Applies a function to a flushed operand and flushes its result. A NaN operand returns [`NAN`].
pub(crate) fn of_numbers(x: u32, function: impl FnOnce(u32) -> u32) -> u32 {
    if is_nan(x) { NAN } else { flushed(function(flushed(x))) }
}

/// Returns `found` if it is right, or else a different word.
pub(crate) fn judged(found: u32, right: bool) -> u32 {
    if right { found } else { !found }
}

/// Returns `found` if it is a possible result of a function that computes in doubles and rounds once, or else another
/// possible result. Returns `zero` without a value.
pub(crate) fn near(found: u32, value: Option<Real>, zero: u32) -> u32 {
    let Some(value) = value else { return zero };
    let [low, high] = value.candidates().map(flushed);
    if found == high { high } else { low }
}

/// An integer multiple of 2^-298, which represents any sum of products of normal singles. Two's complement, lowest
/// word first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Exact([u64; 10]);

impl Exact {
    /// Returns a * b of finite words. Denormals count as zeros.
    pub(crate) fn product(a: u32, b: u32) -> Exact {
        let ((x, i), (y, j)) = (parts(flushed(a)), parts(flushed(b)));
        let magnitude = Exact([0; 10]).plus_shifted(u64::from(x) * u64::from(y), (i + j + 298) as u32);
        if (a ^ b) & SIGN != 0 { magnitude.negated() } else { magnitude }
    }

    fn plus_shifted(mut self, word: u64, shift: u32) -> Exact {
        let wide = u128::from(word) << (shift % 64);
        let at = shift as usize / 64;
        self.0[at] |= wide as u64;
        self.0[at + 1] |= (wide >> 64) as u64;
        self
    }

    pub(crate) fn plus(self, other: Exact) -> Exact {
        let mut carry = false;
        Exact(std::array::from_fn(|word| {
            let (sum, first) = self.0[word].overflowing_add(other.0[word]);
            let (sum, second) = sum.overflowing_add(carry.into());
            carry = first | second;
            sum
        }))
    }

    pub(crate) fn negated(self) -> Exact {
        Exact(self.0.map(|word| !word)).plus(Exact([1, 0, 0, 0, 0, 0, 0, 0, 0, 0]))
    }

    pub(crate) fn is_negative(self) -> bool {
        self.0[9] >> 63 == 1
    }

    pub(crate) fn is_zero(self) -> bool {
        self.0 == [0; 10]
    }

    pub(crate) fn magnitude(self) -> Exact {
        if self.is_negative() { self.negated() } else { self }
    }

    /// Returns whether this magnitude is below another one.
    pub(crate) fn is_below(self, other: Exact) -> bool {
        self.plus(other.negated()).is_negative()
    }

    /// Doubles the number `times` times.
    pub(crate) fn doubled(self, times: u32) -> Exact {
        (0..times).fold(self, |sum, _| sum.plus(sum))
    }

    /// Returns the nearest single to this number times 2^`scale`, with gradual underflow; +0 for 0.
    pub(crate) fn rounded(self, scale: i32) -> u32 {
        let magnitude = self.magnitude().0;
        let Some(top) = magnitude.iter().rposition(|word| *word != 0) else { return 0 };
        let below = if top > 0 { magnitude[top - 1] } else { 0 };
        let sticky = top > 1 && magnitude[..top - 1].iter().any(|word| *word != 0);
        let head = u128::from(magnitude[top]) << 64 | u128::from(below) | u128::from(sticky);
        nearest(self.is_negative(), head, (top as i32 - 1) * 64 - 298 + scale)
    }
}
