//! The initial registers of wavefronts.

use reconverge_simt::level::{Level, Task};
use reconverge_simt::registers::Row;
use reconverge_simt::wide::{Baseline, Wide};

use super::PREVIOUS;
use crate::chip::LANES;
use crate::launch::Launch;

/// The rows whose initial values a program may read, in ascending order.
#[derive(Clone, Debug)]
pub(crate) struct ReadRows {
    /// The rows that a program may read if all lanes of the chip's wavefront run.
    pub(crate) whole: Vec<usize>,
    /// The rows that a program may read in a wavefront in which some lanes do not run.
    pub(crate) all: Vec<usize>,
}

/// The rows that get initial values at the start of a wavefront, and the lists with these values. All other rows do not
/// change at the start of a wavefront.
#[derive(Clone, Debug)]
pub(crate) struct Starts<'a> {
    /// Rows that the engine sets to zero before it copies inputs and columns to the rows. The first list is for
    /// wavefronts in which all lanes run. The second list is for wavefronts in which some lanes do not run.
    zeroed: [Vec<usize>; 2],
    /// An entry has the number of the first row of a register. The entry also has the four words of each lane for the
    /// four rows of the register.
    inputs: Vec<(usize, &'a [[u32; 4]])>,
    /// Each entry has the number of a row, and the word of each lane for this row.
    columns: Vec<(usize, &'a [u32])>,
}

impl<'a> Starts<'a> {
    /// Returns the initial rows of a launch. `read` lists the rows that the program may read. If `read` is `None`, all
    /// rows have initial values, including PV and PS.
    pub(crate) fn of(launch: &'a Launch, read: Option<&ReadRows>) -> Starts<'a> {
        let environment = &launch.environment;
        let row = |gpr: u8, chan: u8| environment.register_row(gpr.into(), chan.into());
        let mut zeroed = match (&launch.read, read) {
            (Some(read), _) => {
                let mut rows: Vec<usize> = read.iter().filter_map(|(gpr, chan)| row(*gpr, *chan)).collect();
                rows.sort_unstable();
                [rows.clone(), rows]
            }
            (None, Some(ReadRows { whole, all })) => [whole.clone(), all.clone()],
            (None, None) => {
                [const { Vec::new() }; 2].map(|_: Vec<usize>| (0..environment.register_rows()).collect())
            }
        };
        let matters = |row: &usize| read.is_none() || zeroed[1].binary_search(row).is_ok();
        let is_there = |gpr: &u8| *gpr < environment.num_gprs;
        let first = |gpr: u8| usize::from(gpr) * 4;
        let inputs = launch.inputs.iter().filter(|input| is_there(&input.gpr));
        let inputs = inputs.map(|input| (first(input.gpr), &*input.values));
        let inputs: Vec<_> = inputs.filter(|(row, _)| (*row..row + 4).any(|row| matters(&row))).collect();
        let columns = launch.columns.iter().filter(|columns| is_there(&columns.gpr)).flat_map(|columns| {
            (first(columns.gpr)..).zip(&columns.components).map(|(row, column)| (row, column.as_slice()))
        });
        let columns: Vec<_> = columns.filter(|(row, _)| matters(row)).collect();
        // If an input has a word for every lane of the launch, and all lanes of the wavefront run, the input fills all
        // lanes of its rows. Such rows need no zeros.
        let fills = |row: usize| {
            let by_input = |(first, values): &(usize, &[[u32; 4]])| {
                (*first..first + 4).contains(&row) && values.len() >= launch.lanes
            };
            inputs.iter().any(by_input)
                || columns.iter().any(|(of, column)| *of == row && column.len() >= launch.lanes)
        };
        zeroed[0].retain(|row| !fills(*row));
        if read.is_none() {
            let rows = environment.register_rows();
            zeroed.iter_mut().for_each(|zeroed| zeroed.extend(rows..rows + PREVIOUS));
        }
        Starts { zeroed, inputs, columns }
    }

    /// Fills the rows of the wavefront whose first lane is at position `place` of the launch. The wavefront has `lanes`
    /// lanes. `whole`: whether all lanes of the chip's wavefront run.
    #[inline(always)]
    pub(crate) fn fill<W: Wide>(
        &self,
        wide: W,
        registers: &mut [Row<LANES>],
        (place, lanes): (usize, usize),
        whole: bool,
    ) {
        for row in &self.zeroed[usize::from(!whole)] {
            registers[*row].clear();
        }
        for (first, values) in &self.inputs {
            let values = values.get(place..).unwrap_or_default();
            let rows: &mut [Row<LANES>; 4] =
                registers[*first..].first_chunk_mut().expect("four channels a register");
            wide.to_rows(&values[..values.len().min(lanes)], rows.each_mut().map(|row| &mut row.0));
        }
        for (row, column) in &self.columns {
            let words = column.get(place..).unwrap_or_default();
            let words = &words[..words.len().min(lanes)];
            let row = &mut registers[*row].0;
            match words.first_chunk() {
                Some(words) => *row = *words,
                None => row[..words.len()].copy_from_slice(words),
            }
        }
    }
}

/// A call of [`Starts::fill`], compiled for each instruction set level.
pub(super) struct Fill<'a, 'b> {
    pub(super) starts: &'a Starts<'b>,
    pub(super) registers: &'a mut [Row<LANES>],
    /// Position of the wavefront's first lane in the launch, and number of lanes of the wavefront.
    pub(super) place: (usize, usize),
    pub(super) whole: bool,
}

impl Fill<'_, '_> {
    /// Fills the rows with code compiled for `level`. If `level` is `None`, uses code that runs on every processor.
    pub(super) fn at(self, level: Option<Level>) {
        match level {
            Some(level) => level.run(self),
            None => Baseline.call(self),
        }
    }
}

impl Task for Fill<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn run<W: Wide>(self, wide: W) {
        let Fill { starts, registers, place, whole } = self;
        starts.fill(wide, registers, place, whole);
    }
}
