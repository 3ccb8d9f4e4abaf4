//! Seeded pseudorandom numbers. The generator is xorshift, which returns the same numbers on every platform.

/// A generator of pseudorandom numbers. Generators with the same seed return the same numbers.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Returns a generator for a seed, which may be any number.
    pub fn new(seed: u64) -> Random {
        // The state must not be 0, because the generator (xorshift) would then return only zeros.
        let mut random = Random((seed ^ 0x9e37_79b9_7f4a_7c15).max(1));
        // Without these eight steps, generators with similar seeds would start with similar numbers.
        for _ in 0..8 {
            random.next();
        }
        random
    }

    /// Returns the next 32 bits.
    #[allow(clippy::should_implement_trait)]
    #[inline]
    pub fn next(&mut self) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 20) as u32
    }

    /// Returns the next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        u64::from(self.next()) << 32 | u64::from(self.next())
    }

    /// Returns a number below `limit`, which must be at least 1.
    #[inline]
    pub fn below(&mut self, limit: u32) -> u32 {
        self.next() % limit
    }

    /// Returns `true` with a probability of 1 in `times`.
    pub fn once_in(&mut self, times: u32) -> bool {
        self.below(times) == 0
    }

    /// Returns one of the choices. There must be at least one choice.
    pub fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.next() as usize % choices.len()]
    }

    /// Reduces a list to `count` items, which are selected at random and are in random order. A list of at most `count`
    /// items keeps all its items.
    pub fn choose<T>(&mut self, items: &mut Vec<T>, count: usize) {
        for place in 0..count.min(items.len()) {
            let left = (items.len() - place) as u32;
            items.swap(place, place + self.below(left) as usize);
        }
        items.truncate(count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_seed_has_numbers_of_its_own() {
        let mut first: Vec<u64> = (0..1000).map(|seed| Random::new(seed).next_u64()).collect();
        first.sort_unstable();
        first.dedup();
        assert_eq!(first.len(), 1000);
        assert_ne!(Random::new(0x9e37_79b9_7f4a_7c15).next_u64(), 0);
    }
}
