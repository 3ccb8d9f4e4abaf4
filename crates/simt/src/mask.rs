//! Sets of lanes.

use std::fmt;
use std::ops::{BitAnd, BitAndAssign, BitOr, BitOrAssign, BitXor, Not, Sub};

/// The number of a lane in its group, 0 to 63.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lane(pub u8);

impl Lane {
    /// Returns the lane as an index into a lane-wide array.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A set of up to 64 lanes. Bit n represents lane n.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Mask(pub u64);

impl Mask {
    /// The empty set.
    pub const NONE: Mask = Mask(0);

    /// Returns the lanes from 0 to `count` - 1, or all 64 lanes if `count` is 64 or more.
    #[inline]
    pub const fn first(count: usize) -> Mask {
        if count >= 64 { Mask(u64::MAX) } else { Mask((1 << count) - 1) }
    }

    /// Returns the set with only `lane`.
    #[inline]
    pub const fn only(lane: Lane) -> Mask {
        Mask(1 << lane.0)
    }

    /// Returns the lanes below `count` for which `choose` returns `true`.
    #[inline]
    pub fn from_fn(count: usize, mut choose: impl FnMut(Lane) -> bool) -> Mask {
        Mask((0..count).fold(0, |bits, lane| bits | (u64::from(choose(Lane(lane as u8))) << lane)))
    }

    /// Returns whether the set is empty.
    #[inline]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns whether at least one lane is in the set.
    #[inline]
    pub const fn any(self) -> bool {
        self.0 != 0
    }

    /// Returns the number of lanes in the set.
    #[inline]
    pub const fn count(self) -> u32 {
        self.0.count_ones()
    }

    /// Returns whether `lane` is in the set.
    #[inline]
    pub const fn has(self, lane: Lane) -> bool {
        self.0 >> lane.0 & 1 != 0
    }

    /// Adds `lane` to the set.
    #[inline]
    pub fn insert(&mut self, lane: Lane) {
        self.0 |= 1 << lane.0;
    }

    /// Removes `lane` from the set.
    #[inline]
    pub fn remove(&mut self, lane: Lane) {
        self.0 &= !(1 << lane.0);
    }

    /// Returns the lowest lane of the set.
    #[inline]
    pub const fn lowest(self) -> Option<Lane> {
        if self.0 == 0 { None } else { Some(Lane(self.0.trailing_zeros() as u8)) }
    }

    /// Returns the lanes of the set, lowest first.
    #[inline]
    pub fn lanes(self) -> impl Iterator<Item = Lane> {
        members(self.0).map(|lane| Lane(lane as u8))
    }
}

/// Returns the numbers of the set bits, lowest first.
#[inline(always)]
pub fn members(bits: u64) -> impl Iterator<Item = usize> {
    let mut left = bits;
    std::iter::from_fn(move || {
        (left != 0).then(|| {
            let place = left.trailing_zeros() as usize;
            left &= left - 1;
            place
        })
    })
}

/// Defines operators that work on the bits of two sets.
macro_rules! operators {
    ($($(#[$about:meta])* $Operator:ident: $name:ident(|$a:ident, $b:ident| $bits:expr);)+) => { $(
        $(#[$about])*
        impl $Operator for Mask {
            type Output = Mask;
            #[inline]
            fn $name(self, other: Mask) -> Mask {
                let (Mask($a), Mask($b)) = (self, other);
                Mask($bits)
            }
        }
    )+ };
}

operators! {
    BitAnd: bitand(|a, b| a & b);
    BitOr: bitor(|a, b| a | b);
    BitXor: bitxor(|a, b| a ^ b);
    /// Set difference: those lanes of the left set that are not in the right set.
    Sub: sub(|a, b| a & !b);
}

/// Returns the lanes from 0 to 63 that are not in the set. The caller must intersect the result with the lanes of the
/// group.
impl Not for Mask {
    type Output = Mask;
    #[inline]
    fn not(self) -> Mask {
        Mask(!self.0)
    }
}

impl BitAndAssign for Mask {
    #[inline]
    fn bitand_assign(&mut self, other: Mask) {
        self.0 &= other.0;
    }
}

impl BitOrAssign for Mask {
    #[inline]
    fn bitor_assign(&mut self, other: Mask) {
        self.0 |= other.0;
    }
}

impl fmt::Debug for Mask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Mask({self})")
    }
}

/// Writes the lanes as ranges: `0-3,7`. Writes `none` for the empty set.
impl fmt::Display for Mask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("none");
        }
        let mut left = self.0;
        let mut separator = "";
        while left != 0 {
            let start = left.trailing_zeros();
            let run = (left >> start).trailing_ones();
            write!(f, "{separator}{start}")?;
            if run > 1 {
                write!(f, "-{}", start + run - 1)?;
            }
            separator = ",";
            left &= if start + run >= 64 { 0 } else { u64::MAX << (start + run) };
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_lanes_are_joined_in_print() {
        assert_eq!(Mask(0b1000_1111).to_string(), "0-3,7");
        assert_eq!(Mask(u64::MAX).to_string(), "0-63");
        assert_eq!(Mask(1 << 63 | 1).to_string(), "0,63");
        assert_eq!(Mask::NONE.to_string(), "none");
    }

    #[test]
    fn lanes_come_lowest_first() {
        let lanes: Vec<u8> = Mask(1 << 63 | 0b101).lanes().map(|lane| lane.0).collect();
        assert_eq!(lanes, [0, 2, 63]);
    }

    #[test]
    fn difference_and_width() {
        assert_eq!(Mask::first(8) - Mask::first(4), Mask(0xf0));
        assert_eq!(Mask::first(64), Mask(u64::MAX));
        assert_eq!(Mask::first(0), Mask::NONE);
    }
}
