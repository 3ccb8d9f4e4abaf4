//! Lane-major register files: a register is a row of one word per lane.

use std::ops::{Index, IndexMut};

use reconverge_guarded::{Guarded, Placement, Plain};

use crate::level::{Level, Task};
use crate::wide::{Baseline, Wide};

/// One register of a group. It has one word per lane, and its alignment allows operations on the whole row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, align(64))]
pub struct Row<const W: usize>(pub [u32; W]);

impl<const W: usize> Row<W> {
    /// A row of zeros.
    pub const ZERO: Self = Row([0; W]);

    /// Sets all words to zero.
    #[inline]
    pub fn clear(&mut self) {
        *self = Row::ZERO;
    }
}

impl<const W: usize> Plain for Row<W> {
    const ZERO: Self = Row::ZERO;
}

/// Writes the four components of each lane to four rows, one row per component. `values` contains the components, from
/// lane 0 on. Lanes without a value keep their components. The code is compiled for `level`, or for every processor if
/// `level` is `None`.
pub fn to_rows<const W: usize>(level: Option<Level>, values: &[[u32; 4]], rows: &mut [Row<W>; 4]) {
    let task = ToRows { values, rows };
    match level {
        Some(level) => level.run(task),
        None => Baseline.call(task),
    }
}

struct ToRows<'a, const W: usize> {
    values: &'a [[u32; 4]],
    rows: &'a mut [Row<W>; 4],
}

impl<const W: usize> Task for ToRows<'_, W> {
    type Output = ();

    #[inline(always)]
    fn run<L: Wide>(self, wide: L) {
        wide.to_rows(self.values, self.rows.each_mut().map(|row| &mut row.0));
    }
}

/// Reads the four components of each lane from four rows. Each row has one component. This function is the inverse of
/// [`to_rows`].
pub fn from_rows<const W: usize>(level: Option<Level>, rows: [&[u32; W]; 4], values: &mut [[u32; 4]]) {
    let task = FromRows { rows, values };
    match level {
        Some(level) => level.run(task),
        None => Baseline.call(task),
    }
}

struct FromRows<'a, const W: usize> {
    rows: [&'a [u32; W]; 4],
    values: &'a mut [[u32; 4]],
}

impl<const W: usize> Task for FromRows<'_, W> {
    type Output = ();

    #[inline(always)]
    fn run<L: Wide>(self, wide: L) {
        wide.vectors(self.rows, self.values);
    }
}

/// The registers of a group of `W` lanes, followed by the *room*: rows that only the engine uses.
#[derive(Clone, Debug)]
pub struct Registers<const W: usize> {
    /// The registers, followed by the rows that only the engine uses.
    rows: Guarded<Row<W>>,
    count: usize,
}

/// Compares only the registers, not the rows that only the engine uses.
impl<const W: usize> PartialEq for Registers<W> {
    fn eq(&self, other: &Self) -> bool {
        self.rows() == other.rows()
    }
}

impl<const W: usize> Eq for Registers<W> {}

impl<const W: usize> Registers<W> {
    /// Returns `count` registers, in which all words are zero.
    pub fn zero(count: usize) -> Self {
        Registers { rows: Guarded::new(count, Placement::process()), count }
    }

    /// Sets all registers to zero. The rows that only the engine uses are unchanged.
    pub fn clear(&mut self) {
        self.rows_mut().fill(Row::ZERO);
    }

    /// Returns the number of registers.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Adds rows after the registers, for an engine's constants and intermediate results.
    pub fn add_room(&mut self, rows: &[Row<W>]) {
        self.rows.extend_from_slice(rows);
    }

    /// Removes the rows that [`Registers::add_room`] has added.
    pub fn remove_room(&mut self) {
        self.rows.truncate(self.count);
    }

    /// Returns the registers, followed by the rows that only the engine uses. Some engines number all these rows as one
    /// list.
    pub fn with_room_mut(&mut self) -> &mut [Row<W>] {
        &mut self.rows
    }

    /// Returns the row of a register, or `None` if the file does not have the register.
    #[inline]
    pub fn row(&self, register: usize) -> Option<&Row<W>> {
        self.rows().get(register)
    }

    /// Returns the row of a register for writing, or `None` if the file does not have the register.
    #[inline]
    pub fn row_mut(&mut self, register: usize) -> Option<&mut Row<W>> {
        self.rows_mut().get_mut(register)
    }

    /// Returns the rows of all registers, lowest register first.
    pub fn rows(&self) -> &[Row<W>] {
        &self.rows[..self.count]
    }

    /// Returns the rows of all registers for writing, lowest register first.
    pub fn rows_mut(&mut self) -> &mut [Row<W>] {
        &mut self.rows[..self.count]
    }
}

/// Returns the row of a register. Panics if the file does not have the register.
impl<const W: usize> Index<usize> for Registers<W> {
    type Output = [u32; W];
    #[inline]
    fn index(&self, register: usize) -> &[u32; W] {
        &self.rows()[register].0
    }
}

impl<const W: usize> IndexMut<usize> for Registers<W> {
    #[inline]
    fn index_mut(&mut self, register: usize) -> &mut [u32; W] {
        &mut self.rows_mut()[register].0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_behind_the_registers_and_not_among_them() {
        let mut file = Registers::<32>::zero(2);
        let before = file.clone();
        file.add_room(&[Row([5; 32])]);
        assert_eq!((file.count(), file.rows().len(), file.row(2)), (2, 2, None));
        assert_eq!(file.with_room_mut()[2], Row([5; 32]));
        assert_eq!(file, before);
    }

    #[test]
    fn values_of_four_components_go_to_rows_and_back() {
        for lanes in [0, 1, 3, 4, 7, 32, 40] {
            let values: Vec<[u32; 4]> =
                (0..lanes).map(|lane| [0, 1, 2, 3].map(|of| 10 * lane + of)).collect();
            let mut rows = [Row([99; 32]); 4];
            to_rows(None, &values, &mut rows);
            for (lane, component) in (0..32).flat_map(|lane| (0..4).map(move |component| (lane, component))) {
                let expected = values.get(lane).map_or(99, |value| value[component]);
                assert_eq!(rows[component].0[lane], expected, "{lanes} lanes, lane {lane}, {component}");
            }
            let mut back = vec![[99; 4]; values.len().min(32)];
            from_rows(Some(Level::best()), rows.each_ref().map(|row| &row.0), &mut back);
            assert_eq!(back, values[..back.len()]);
        }
    }

    #[test]
    fn registers_start_at_zero_and_there_are_as_many_as_asked_for() {
        let mut file = Registers::<32>::zero(4);
        file[3][31] = 7;
        assert_eq!((file[3][31], file[3][30], file.count()), (7, 0, 4));
        assert!(file.row(4).is_none() && file.row_mut(4).is_none());
        assert_eq!(std::mem::align_of::<Row<32>>(), 64);
    }
}
