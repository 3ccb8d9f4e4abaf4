//! Sets that cost little to compile. [`NumberSet`] is compiled once for all machines; [`SortedSet`] is a sorted list.
//!
//! A `BTreeSet` of one more type gives the compiler several thousand more lines to optimise in each crate. A map of one
//! more type has this cost. So small maps, and maps that are filled in rising order, are [`LiteMap`]s.

use litemap::LiteMap;

/// A set of numbers, such as addresses.
///
/// Iteration is in rising order. Numbers that are close together share a block. So adding a number is cheap in any
/// order, even for tens of thousands of numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NumberSet {
    /// Blocks of 64 numbers, in rising order. A block has an index (number / 64) and one bit per number. No block is
    /// empty.
    blocks: Vec<(u32, u64)>,
}

impl NumberSet {
    /// Returns the empty set.
    pub const fn new() -> NumberSet {
        NumberSet { blocks: Vec::new() }
    }

    fn block(&self, number: u32) -> Result<usize, usize> {
        match self.blocks.last() {
            // Fast path: most sets grow in rising order.
            Some((last, _)) if *last < number / 64 => Err(self.blocks.len()),
            _ => self.blocks.binary_search_by_key(&(number / 64), |(block, _)| *block),
        }
    }

    /// Adds a number. Returns whether the number was absent before.
    pub fn insert(&mut self, number: u32) -> bool {
        let bit = 1 << (number % 64);
        match self.block(number) {
            Ok(at) => {
                let new = self.blocks[at].1 & bit == 0;
                self.blocks[at].1 |= bit;
                new
            }
            Err(at) => {
                self.blocks.insert(at, (number / 64, bit));
                true
            }
        }
    }

    /// Removes a number. Returns whether the number was in the set.
    pub fn remove(&mut self, number: u32) -> bool {
        let bit = 1 << (number % 64);
        let Ok(at) = self.block(number) else { return false };
        let had = self.blocks[at].1 & bit != 0;
        self.blocks[at].1 &= !bit;
        if self.blocks[at].1 == 0 {
            self.blocks.remove(at);
        }
        had
    }

    /// Returns whether a number is in the set.
    pub fn contains(&self, number: u32) -> bool {
        self.block(number).is_ok_and(|at| self.blocks[at].1 & 1 << (number % 64) != 0)
    }

    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        self.blocks.iter().map(|(_, bits)| bits.count_ones() as usize).sum()
    }

    /// Returns whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// Returns a map from each number of the set to `value(number)`.
    pub fn map<V>(&self, mut value: impl FnMut(u32) -> V) -> LiteMap<u32, V> {
        LiteMap::from_sorted_store_unchecked(self.iter().map(|number| (number, value(number))).collect())
    }

    /// Returns the numbers, in rising order.
    pub fn iter(&self) -> Numbered<'_> {
        Numbered { blocks: &self.blocks, done: 0 }
    }
}

/// Iterator over the numbers of a [`NumberSet`], in rising order.
#[derive(Clone, Debug)]
pub struct Numbered<'a> {
    blocks: &'a [(u32, u64)],
    /// The bits of `blocks[0]` whose numbers have been returned.
    done: u64,
}

impl Iterator for Numbered<'_> {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        let (block, bits) = self.blocks.first()?;
        let left = bits & !self.done;
        let bit = left.trailing_zeros();
        self.done |= 1 << bit;
        if left & (left - 1) == 0 {
            self.blocks = &self.blocks[1..];
            self.done = 0;
        }
        Some(block * 64 + bit)
    }
}

impl<'a> IntoIterator for &'a NumberSet {
    type Item = u32;
    type IntoIter = Numbered<'a>;

    fn into_iter(self) -> Numbered<'a> {
        self.iter()
    }
}

impl Extend<u32> for NumberSet {
    fn extend<I: IntoIterator<Item = u32>>(&mut self, numbers: I) {
        for number in numbers {
            self.insert(number);
        }
    }
}

impl FromIterator<u32> for NumberSet {
    fn from_iter<I: IntoIterator<Item = u32>>(numbers: I) -> NumberSet {
        let mut set = NumberSet::new();
        set.extend(numbers);
        set
    }
}

/// A set as a sorted vector, for few items or for items that are added in rising order.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SortedSet<T>(Vec<T>);

impl<T> SortedSet<T> {
    /// Returns the empty set.
    pub const fn new() -> SortedSet<T> {
        SortedSet(Vec::new())
    }

    /// Returns the items, in rising order.
    pub fn as_slice(&self) -> &[T] {
        &self.0
    }

    /// Returns the number of items.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the items, in rising order.
    pub fn iter(&self) -> std::slice::Iter<'_, T> {
        self.0.iter()
    }
}

impl<T: Ord> SortedSet<T> {
    /// Adds an item. Returns whether the item was absent before.
    pub fn insert(&mut self, item: T) -> bool {
        match self.0.last() {
            Some(last) if *last >= item => match self.0.binary_search(&item) {
                Ok(_) => return false,
                Err(at) => self.0.insert(at, item),
            },
            _ => self.0.push(item),
        }
        true
    }

    /// Returns whether an item is in the set.
    pub fn contains(&self, item: &T) -> bool {
        self.0.binary_search(item).is_ok()
    }
}

impl<T> Default for SortedSet<T> {
    fn default() -> SortedSet<T> {
        SortedSet::new()
    }
}

impl<T> IntoIterator for SortedSet<T> {
    type Item = T;
    type IntoIter = std::vec::IntoIter<T>;

    fn into_iter(self) -> std::vec::IntoIter<T> {
        self.0.into_iter()
    }
}

impl<'a, T> IntoIterator for &'a SortedSet<T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> std::slice::Iter<'a, T> {
        self.0.iter()
    }
}

impl<T: Ord> Extend<T> for SortedSet<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, items: I) {
        for item in items {
            self.insert(item);
        }
    }
}

impl<T: Ord> FromIterator<T> for SortedSet<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> SortedSet<T> {
        let mut set = SortedSet::new();
        set.extend(items);
        set
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    /// Generates numbers that are close together, and numbers at both ends of the `u32` range.
    fn number() -> impl Strategy<Value = u32> {
        prop_oneof![0..300u32, 0..300u32, u32::MAX - 70..=u32::MAX, any::<u32>()]
    }

    proptest! {
        #[test]
        fn a_set_of_numbers_is_a_tree(changes in proptest::collection::vec((any::<bool>(), number()), 0..400)) {
            let (mut set, mut tree) = (NumberSet::new(), BTreeSet::new());
            for (add, number) in changes {
                match add {
                    true => prop_assert_eq!(set.insert(number), tree.insert(number)),
                    false => prop_assert_eq!(set.remove(number), tree.remove(&number)),
                }
                prop_assert_eq!(set.contains(number), add);
            }
            prop_assert_eq!((set.len(), set.is_empty()), (tree.len(), tree.is_empty()));
            prop_assert!(set.iter().eq(tree.iter().copied()));
            prop_assert_eq!(tree.iter().rev().copied().collect::<NumberSet>(), set);
        }

        #[test]
        fn a_sorted_set_is_a_tree(items in proptest::collection::vec(0..100u8, 0..200), other in 0..100u8) {
            let (mut set, mut tree) = (SortedSet::new(), BTreeSet::new());
            for item in &items {
                prop_assert_eq!(set.insert(*item), tree.insert(*item));
            }
            prop_assert_eq!(set.contains(&other), tree.contains(&other));
            prop_assert_eq!((set.len(), set.is_empty()), (tree.len(), tree.is_empty()));
            prop_assert!(set.iter().eq(&tree));
            prop_assert_eq!(items.into_iter().collect::<SortedSet<_>>(), set);
        }
    }
}
