//! The branch counters of all lanes, stored as bit planes. With bit planes, a few operations on masks update the
//! counters of all lanes.

use reconverge_simt::{Lane, Mask};

/// An eight-bit counter for each lane.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Counters {
    /// The bit planes: element n holds bit n of each lane's counter.
    bits: [Mask; 8],
}

impl Counters {
    /// Returns the counter of a lane.
    pub(super) fn of(&self, lane: Lane) -> u8 {
        (0..8).fold(0, |value, bit| value | u8::from(self.bits[bit].has(lane)) << bit)
    }

    /// Sets the counter of a lane.
    pub(super) fn set(&mut self, lane: Lane, value: u8) {
        for (place, bit) in self.bits.iter_mut().enumerate() {
            let lane = Mask::only(lane);
            *bit = if value >> place & 1 != 0 { *bit | lane } else { *bit - lane };
        }
    }

    /// Returns the lanes whose counter is 0.
    pub(super) fn zero(&self) -> Mask {
        !self.bits.iter().fold(Mask::NONE, |any, bit| any | *bit)
    }

    /// Returns the lanes whose counter is below `number`.
    pub(super) fn below(&self, number: u8) -> Mask {
        self.minus(number).1
    }

    /// Sets the counters of some lanes to 0.
    pub(super) fn clear(&mut self, lanes: Mask) {
        for bit in &mut self.bits {
            *bit = *bit - lanes;
        }
    }

    /// Adds the counters of `other`. In each lane, at least one of the two counters must be 0.
    pub(super) fn add(&mut self, other: &Counters) {
        self.bits.iter_mut().zip(other.bits).for_each(|(bit, other)| *bit |= other);
    }

    /// Adds one to the counters of `lanes`. A counter of 255 wraps.
    pub(super) fn increase(&mut self, lanes: Mask) {
        let mut carry = lanes;
        for bit in &mut self.bits {
            (*bit, carry) = (*bit ^ carry, *bit & carry);
        }
    }

    /// Subtracts `number` from the counters of `lanes`. A counter below `number` does not change. Returns the lanes
    /// whose counter was below `number`.
    pub(super) fn decrease(&mut self, lanes: Mask, number: u8) -> Mask {
        let (left, below) = self.minus(number);
        let changed = lanes - below;
        for (bit, left) in self.bits.iter_mut().zip(left) {
            *bit = (*bit - changed) | (left & changed);
        }
        lanes & below
    }

    /// Subtracts `number` from all counters and returns the bit planes of the differences. Also returns the lanes whose
    /// counter is below `number`.
    fn minus(&self, number: u8) -> ([Mask; 8], Mask) {
        let mut left = [Mask::NONE; 8];
        let mut borrow = Mask::NONE;
        for (place, (left, bit)) in left.iter_mut().zip(self.bits).enumerate() {
            let subtrahend = if number >> place & 1 != 0 { u64::MAX } else { 0 };
            *left = Mask(bit.0 ^ subtrahend ^ borrow.0);
            borrow = Mask(!bit.0 & (subtrahend | borrow.0) | subtrahend & borrow.0);
        }
        (left, borrow)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares the bit planes with one integer per lane.
    #[test]
    fn counters_count_as_numbers_do() {
        let mut seed = 0x2545_f491_4f6c_dd1du64;
        println!("seed {seed:#x}");
        let mut random = || {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            seed
        };
        let (mut counters, mut plain) = (Counters::default(), [0u8; 64]);
        for _ in 0..20_000 {
            let lanes = Mask(random() | random());
            match random() % 8 {
                0 => {
                    let cleared = Mask(random() & random() & random());
                    counters.clear(cleared);
                    cleared.lanes().for_each(|lane| plain[lane.index()] = 0);
                }
                1 => {
                    let (lane, value) = (Lane(random() as u8 % 64), random() as u8);
                    counters.set(lane, value);
                    plain[lane.index()] = value;
                }
                2..=5 => {
                    counters.increase(lanes);
                    lanes.lanes().for_each(|lane| plain[lane.index()] = plain[lane.index()].wrapping_add(1));
                }
                _ => {
                    let number = random() as u8 >> (random() % 8);
                    let below = Mask::from_fn(64, |lane| plain[lane.index()] < number);
                    assert_eq!(counters.below(number), below);
                    assert_eq!(counters.decrease(lanes, number), lanes & below);
                    for lane in (lanes - below).lanes() {
                        plain[lane.index()] -= number;
                    }
                }
            }
            assert_eq!(counters.zero(), Mask::from_fn(64, |lane| plain[lane.index()] == 0));
            assert!(Mask(u64::MAX).lanes().all(|lane| counters.of(lane) == plain[lane.index()]));
        }
    }
}
