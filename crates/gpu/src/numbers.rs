//! Numbers the vertices of a draw. When a draw uses an index for the first time, the index gets the smallest unused
//! number.

use std::collections::HashMap;

/// Maps indices to numbers. Uses a table if the indices are close together, otherwise a hash map.
#[derive(Clone, Debug)]
pub(crate) struct Numbers {
    low: u32,
    /// The first entry belongs to the index `low`. An entry is 0 if the index has no number yet. Otherwise, the entry
    /// is the number plus 1.
    table: Vec<u32>,
    others: HashMap<u32, usize>,
    count: usize,
}

impl Numbers {
    /// Returns an empty map for these indices. The map has a table if the indices are close together.
    pub(crate) fn new(indices: impl Iterator<Item = u32> + Clone) -> Numbers {
        let count = indices.clone().count();
        let low = indices.clone().min().unwrap_or(0);
        let span = (indices.max().unwrap_or(0) - low) as usize;
        let table = if span < 4 * count + 1024 { vec![0; span + 1] } else { Vec::new() };
        Numbers { low, table, others: HashMap::new(), count: 0 }
    }

    /// Returns the number of an index. If the index has no number yet, the call assigns the next unused number. In this
    /// case, the result equals the count of numbers before the call.
    pub(crate) fn of(&mut self, index: u32) -> usize {
        let next = self.count;
        let number = match index.checked_sub(self.low).and_then(|at| self.table.get_mut(at as usize)) {
            Some(known @ 0) => {
                *known = next as u32 + 1;
                next
            }
            Some(known) => *known as usize - 1,
            None => *self.others.entry(index).or_insert(next),
        };
        self.count = next.max(number + 1);
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indices_are_numbered_in_the_order_in_which_they_come_up() {
        for indices in [[7, 5, 7, 9, 5, 6], [7, 5, 7, u32::MAX, 5, 0]] {
            let mut numbers = Numbers::new(indices.into_iter());
            assert_eq!(indices.map(|index| numbers.of(index)), [0, 1, 0, 2, 1, 3]);
        }
    }

    #[test]
    fn an_index_that_was_not_announced_gets_a_number_as_well() {
        let mut numbers = Numbers::new([5, 6].into_iter());
        assert_eq!([5, 1, 6, 100_000, 1].map(|index| numbers.of(index)), [0, 1, 2, 3, 1]);
    }
}
