//! The branch counters of all lanes, bit by bit: an operation on them is a few on masks.

use reconverge_simt::{Lane, Mask};

/// A counter of eight bits a lane.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Counters {
    /// Bit n of each lane's counter.
    bits: [Mask; 8],
}

impl Counters {
    /// A lane's counter.
    pub(super) fn of(&self, lane: Lane) -> u8 {
        (0..8).fold(0, |value, bit| value | u8::from(self.bits[bit].has(lane)) << bit)
    }

    /// Changes a lane's counter.
    pub(super) fn set(&mut self, lane: Lane, value: u8) {
        for (place, bit) in self.bits.iter_mut().enumerate() {
            let lane = Mask::only(lane);
            *bit = if value >> place & 1 != 0 { *bit | lane } else { *bit - lane };
        }
    }

    /// Lanes whose counter is 0.
    pub(super) fn zero(&self) -> Mask {
        !self.bits.iter().fold(Mask::NONE, |any, bit| any | *bit)
    }

    /// Lanes whose counter is below a number.
    pub(super) fn below(&self, number: u8) -> Mask {
        self.minus(number).1
    }

    /// Sets the counters of some lanes to 0.
    pub(super) fn clear(&mut self, lanes: Mask) {
        for bit in &mut self.bits {
            *bit = *bit - lanes;
        }
    }

    /// Adds the counters of other lanes: a lane's counter is 0 in one of both.
    pub(super) fn add(&mut self, other: &Counters) {
        self.bits.iter_mut().zip(other.bits).for_each(|(bit, other)| *bit |= other);
    }

    /// Adds one to the counters of some lanes; 255 wraps.
    pub(super) fn increase(&mut self, lanes: Mask) {
        let mut carry = lanes;
        for bit in &mut self.bits {
            (*bit, carry) = (*bit ^ carry, *bit & carry);
        }
    }

    /// Subtracts a number from the counters of some lanes. Gives those of them that are below it, whose counters stay.
    pub(super) fn decrease(&mut self, lanes: Mask, number: u8) -> Mask {
        let (left, below) = self.minus(number);
        let changed = lanes - below;
        for (bit, left) in self.bits.iter_mut().zip(left) {
            *bit = (*bit - changed) | (left & changed);
        }
        lanes & below
    }

    /// All counters less a number, and the lanes that are below it.
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

    /// Against one number a lane.
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
