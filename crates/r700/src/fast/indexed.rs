//! Access to registers and constants that an index selects. The index is AR or aL. AR is a row, and aL is one number
//! for all lanes. Before the group runs, an operation copies each indexed operand to a separate row. Another operation
//! copies an indexed result from a separate row to the register that the index selects.
//!
//! Before the group runs, a [`Check`] ensures that the registers exist. In an operation on a register, the field
//! `number` is the number of the row that index 0 selects. In an operation on a constant, `number` is an index into
//! [`Tables::constants`].

use reconverge_simt::mask::members;
use reconverge_simt::registers::Row;
use reconverge_simt::wide::{Eight, Wide, spread};

#[cfg(doc)]
use super::lanes::Tables;
use super::lanes::{Body, Lanes, Operation, Place};
use crate::chip::LANES;

/// A register that a group accesses through an index.
#[derive(Clone, Copy, Debug)]
pub(super) struct Check {
    /// The row of AR, or `None` if the index is aL.
    pub(super) index: Option<Place>,
    /// The register that is accessed if the index is 0.
    pub(super) register: u8,
}

impl Lanes<'_> {
    /// Returns whether the register that a check names exists for each of the lanes `lanes`. The number of the register
    /// is the number in the check plus the index of the lane.
    #[inline(always)]
    pub(super) fn is_there(&self, check: &Check, lanes: u64) -> bool {
        let outside = |index: i32| index.wrapping_add(check.register.into()) as u32 >= self.tables.indexed;
        let Some(place) = check.index else { return !outside(self.loop_index) };
        let (row, running) = (self.row(place), spread::<LANES>(lanes));
        let beyond = (0..LANES)
            .fold(0, |beyond, lane| beyond | if outside(row[lane] as i32) { running[lane] } else { 0 });
        beyond == 0
    }

    /// Returns the row of the register that `index` selects. `number` is the row for index 0. If the register does not
    /// exist, returns the row of R0.
    #[inline(always)]
    fn indexed(&self, number: u32, index: i32) -> Place {
        let (register, chan) = (number >> 2, number & 3);
        let register = register.wrapping_add(index as u32);
        let register = if register < self.tables.indexed { register } else { 0 };
        self.tables.registers.place((register << 2 | chan) as usize)
    }
}

/// Copies R[n + AR] to a row. The first source is AR.
pub(super) struct ReadByRow;

impl Body for ReadByRow {
    #[inline(always)]
    fn run<W: Wide>(wide: W, lanes: &mut Lanes<'_>, operation: &Operation) {
        let index = lanes.row(operation.src[0]);
        let (first, chan) = (operation.number >> 2, operation.number & 3);
        let mut places = [0; LANES];
        for lane in 0..LANES {
            let register = first.wrapping_add(index[lane]);
            let register = if register < lanes.tables.indexed { register } else { 0 };
            places[lane] = size_of::<Row<LANES>>() as u32 * (register << 2 | chan) + 4 * lane as u32;
        }
        // SAFETY: no code changes the rows while the slice exists.
        let rows = unsafe { &*lanes.frame.bytes() };
        let (eight, mut words) = (wide.eight(), [0; LANES]);
        for (words, places) in words.as_chunks_mut().0.iter_mut().zip(places.as_chunks().0) {
            *words = eight.store(eight.words_at(rows, eight.load(places)));
        }
        *lanes.frame.row_mut(operation.dst) = Row(words);
    }
}

/// Copies R[n + aL] to a row.
pub(super) struct ReadByLoop;

impl Body for ReadByLoop {
    #[inline(always)]
    fn run<W: Wide>(_wide: W, lanes: &mut Lanes<'_>, operation: &Operation) {
        let row = *lanes.row(lanes.indexed(operation.number, lanes.loop_index));
        *lanes.frame.row_mut(operation.dst) = Row(row);
    }
}

/// Writes the first source to R[n + AR]. The second source is AR.
pub(super) struct WriteByRow;

impl Body for WriteByRow {
    #[inline(always)]
    fn run<W: Wide>(_wide: W, lanes: &mut Lanes<'_>, operation: &Operation) {
        let [words, index, _] = lanes.sources(operation);
        let (words, index) = (*words, *index);
        for lane in members(lanes.set(operation.set)) {
            let place = lanes.indexed(operation.number, index[lane] as i32);
            lanes.frame.row_mut(place).0[lane] = words[lane];
        }
    }
}

/// Writes the first source to R[n + aL].
pub(super) struct WriteByLoop;

impl Body for WriteByLoop {
    #[inline(always)]
    fn run<W: Wide>(wide: W, lanes: &mut Lanes<'_>, operation: &Operation) {
        let words = *lanes.row(operation.src[0]);
        let place = lanes.indexed(operation.number, lanes.loop_index);
        lanes.write(wide, place, operation.set, &words);
    }
}

/// Copies the constant that AR selects to a row. The first source is AR.
pub(super) struct ConstantByRow;

impl Body for ConstantByRow {
    #[inline(always)]
    fn run<W: Wide>(_wide: W, lanes: &mut Lanes<'_>, operation: &Operation) {
        let constants = lanes.tables.constants[operation.number as usize].of(lanes.environment);
        let index = lanes.row(operation.src[0]);
        let mut words = [0; LANES];
        for lane in 0..LANES {
            words[lane] = constants.word(index[lane] as i32);
        }
        *lanes.frame.row_mut(operation.dst) = Row(words);
    }
}

/// Copies the constant that aL selects to a row.
pub(super) struct ConstantByLoop;

impl Body for ConstantByLoop {
    #[inline(always)]
    fn run<W: Wide>(_wide: W, lanes: &mut Lanes<'_>, operation: &Operation) {
        let constants = lanes.tables.constants[operation.number as usize].of(lanes.environment);
        let word = constants.word(lanes.loop_index);
        *lanes.frame.row_mut(operation.dst) = Row([word; LANES]);
    }
}
