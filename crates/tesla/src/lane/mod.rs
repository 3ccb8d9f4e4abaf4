//! The computations of one lane, exact to the bit. The computations are pure functions from operand values and
//! modifiers to a result and its flags.
//!
//! Lane values are plain `u32` or `u64`. A `u32` contains the bits of an f32, or a zero-extended 16-bit value. Every
//! function takes the modifiers as plain values and is inlined. If a caller passes constant modifiers, the compiled
//! call therefore contains only the arithmetic of a single instruction. Frequent functions have no branches, so a loop
//! over lanes becomes vector code. A function computes the flags from the final result. If the caller ignores the
//! flags, the compiler removes this computation.
//!
//! | file | subject | chapter of the machine's description |
//! |---|---|---|
//! | [`integer`] | add, mul, mad, sad, min, max, set, logic, shifts | 5 |
//! | [`float`] | f32 add, mul, mad, min, max, set, slct | 6.1 to 6.3 |
//! | [`quad`] | quadop: arithmetic across the four lanes of a quad | 6.3 |
//! | [`convert`] | cvt among 8, 16 and 32 bits | 6.4 |
//! | [`convert64`] | cvt with a 64-bit side | 6.5 |
//! | [`double`] | f64 add, mul, fma, min, max, set | 6.5 |
//! | [`interpolate`] | interp | 6.7 |
//! | [`atomic`] | atomics and reductions on one memory word | 6.8 |
//! | [`special`] | rcp, rsqrt, lg2, presin, preex2, sin, cos, ex2 | 8 |
//!
//! All functions follow the facts in the hardware models and hardware tests of envytools (nvhw/fp.c, nvhw/sfu.c,
//! hwtest/g80_*.cc). If these tests never compared a function with silicon, the documentation of this function says so.

pub mod atomic;
pub mod convert;
pub mod convert64;
pub mod double;
pub mod float;
pub mod integer;
pub mod interpolate;
pub mod quad;
pub(crate) mod sfu_tables;
pub mod special;

pub use interpolate::plane;
pub use reconverge_simt::float::Rounding;
use reconverge_simt::word::Word;

/// The four condition flags of a `$c` register. (2.3)
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Flags(u8);

impl Flags {
    /// No flag.
    pub const NONE: Flags = Flags(0);
    /// Zero.
    pub const Z: Flags = Flags(1);
    /// Sign. After a comparison, this flag means that the comparison is true.
    pub const S: Flags = Flags(2);
    /// Carry out of the top bit.
    pub const C: Flags = Flags(4);
    /// Signed overflow.
    pub const O: Flags = Flags(8);
    /// The flags of a NaN result: Z and S together mean unordered.
    pub const UNORDERED: Flags = Flags(3);

    /// Returns the flags for a nibble with Z=1, S=2, C=4, O=8. Higher bits are ignored.
    #[inline(always)]
    pub const fn from_bits(bits: u8) -> Flags {
        Flags(bits & 0xf)
    }

    /// Returns the flags as a nibble with Z=1, S=2, C=4, O=8.
    #[inline(always)]
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// Returns whether the flag C is set. C is the carry into `addc`.
    #[inline(always)]
    pub const fn carry(self) -> bool {
        self.0 & Flags::C.0 != 0
    }

    /// Creates flags from boolean values.
    #[inline(always)]
    const fn of(zero: bool, sign: bool, carry: bool, overflow: bool) -> Flags {
        Flags(zero as u8 | (sign as u8) << 1 | (carry as u8) << 2 | (overflow as u8) << 3)
    }

    /// Returns the flags of a comparison: S for true, Z for false.
    #[inline(always)]
    const fn truth(held: bool) -> Flags {
        Flags(1 + held as u8)
    }
}

/// The width of an untyped operation: b16 or b32.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Width {
    /// The low 16 bits of each source. Results are zero-extended.
    B16,
    /// All 32 bits.
    B32,
}

impl Width {
    /// Returns the number of bits.
    #[inline(always)]
    pub const fn bits(self) -> u32 {
        match self {
            Width::B16 => 16,
            Width::B32 => 32,
        }
    }

    #[inline(always)]
    const fn mask(self) -> u32 {
        u32::MAX >> (32 - self.bits())
    }

    /// Returns the magnitude of the smallest signed value of this width.
    #[inline(always)]
    const fn limit(self) -> u32 {
        1 << (self.bits() - 1)
    }

    /// Moves the top bit of a value of this width to the sign bit of the word.
    #[inline(always)]
    fn top<W: Word>(self, x: W) -> W {
        x.left(x.same(32 - self.bits()))
    }

    /// Returns the value's low bits, sign-extended or zero-extended to 32 bits.
    #[inline(always)]
    fn extend<W: Word>(self, x: W, signed: bool) -> W {
        x.extended(self.bits(), signed)
    }
}

/// Source modifiers of floating-point operands. `abs` acts before `neg`. (6.1)
///
/// For f32, both modifiers act on the bits of the source, even if the source is NaN. The operations of [`double`] state
/// how their modifiers differ from this rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Modifiers {
    /// Whether to clear the sign of the source.
    pub abs: bool,
    /// Whether to flip the sign of the source.
    pub neg: bool,
}

impl Modifiers {
    /// No modifier.
    pub const NONE: Modifiers = Modifiers { abs: false, neg: false };
    /// The modifier `neg` only.
    pub const NEG: Modifiers = Modifiers { abs: false, neg: true };

    /// Applies the modifiers to the bits of an f32.
    #[inline(always)]
    pub const fn f32(self, x: u32) -> u32 {
        (x & !((self.abs as u32) << 31)) ^ (self.neg as u32) << 31
    }

    /// Applies the modifiers to the bits of an f64.
    #[inline(always)]
    pub const fn f64(self, x: u64) -> u64 {
        (x & !((self.abs as u64) << 63)) ^ (self.neg as u64) << 63
    }

    /// Applies the modifiers to the sign of a magnitude or of an f16.
    #[inline(always)]
    const fn sign(self, negative: bool) -> bool {
        (negative & !self.abs) ^ self.neg
    }
}

/// A comparison, as a set of outcomes: L = 1, E = 2, G = 4, U (unordered) = 8. The comparison is true for the outcomes
/// in the set.
///
/// A value of this type is a code from 0 to 15 of the condition table ([`Compare::from_bits`]`(6)` is `ge`). Integers
/// use L, E and G. (2.3)
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Compare(u8);

impl Compare {
    /// Returns the comparison for a nibble with L=1, E=2, G=4, U=8. Higher bits are ignored.
    #[inline(always)]
    pub const fn from_bits(bits: u8) -> Compare {
        Compare(bits & 0xf)
    }

    /// Returns the comparison as a nibble with L=1, E=2, G=4, U=8.
    #[inline(always)]
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// Returns whether the comparison holds. At most one of the three relations may be true. If no relation is true,
    /// the operands are unordered.
    #[inline(always)]
    const fn holds(self, less: bool, equal: bool, greater: bool) -> bool {
        let unordered = !(less | equal | greater);
        let outcome = less as u8 | (equal as u8) << 1 | (greater as u8) << 2 | (unordered as u8) << 3;
        self.0 & outcome != 0
    }
}
