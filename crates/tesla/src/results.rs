//! The results of the lanes of a graphics launch. [`LaneResults`] stores registers by column, and all other results by
//! warp. Functions return results by lane.

use std::cell::RefCell;

use litemap::LiteMap;
use reconverge_simt::registers::Row;
use reconverge_simt::{Lane, Mask};

use crate::flow::WARP;
use crate::state::{Emitted, LaneResult, Warp};

thread_local! {
    /// Columns from [`LaneResults::give_back`]. The thread keeps the memory of the columns for later results. Returning
    /// the memory to the system after every launch takes a third of the time of a short program.
    static ROOM: RefCell<Vec<Vec<u32>>> = const { RefCell::new(Vec::new()) };

    /// Memory of o[] of warps whose results have been dropped. The thread keeps the memory for later results, because
    /// returning the memory to the system takes time.
    static OUTPUTS: RefCell<Vec<Vec<Row<WARP>>>> = const { RefCell::new(Vec::new()) };
}

/// Maximum number of columns that a thread keeps.
const MOST_KEPT: usize = 16;
/// Maximum size of a kept column, in words.
const LARGEST_KEPT: usize = 1 << 16;

/// Maximum number of warps for which a thread keeps the memory of o[].
const MOST_OUTPUTS: usize = 4;
/// Maximum size of the kept memory of one warp, in words of o[].
const LARGEST_OUTPUTS: usize = 128;

/// The results of all lanes, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LaneResults {
    /// Results by warp. All warps except for the last have [`WARP`] lanes.
    warps: Vec<WarpResult>,
    lanes: usize,
    /// A column for each register in the results. A column has one row per warp.
    registers: Vec<Vec<u32>>,
    /// Whether some lane is dead, or has ended before its warp ended.
    some_ended: bool,
}

/// The results of a warp except for registers.
#[derive(Clone, Debug, PartialEq, Eq)]
struct WarpResult {
    dead: Mask,
    /// Results that few fragment programs have.
    rest: Option<Box<WarpRest>>,
}

/// Results of a warp in addition to registers and dead lanes.
#[derive(Clone, Debug, PartialEq, Eq)]
struct WarpRest {
    outputs: Vec<Row<WARP>>,
    emitted: Vec<Vec<Emitted>>,
    /// Results of lanes that ended before the warp did.
    finalised: LiteMap<Lane, LaneResult>,
}

impl Drop for WarpRest {
    fn drop(&mut self) {
        let mut outputs = std::mem::take(&mut self.outputs);
        outputs.clear();
        // If the thread is about to end, `OUTPUTS` may no longer exist. The memory then returns to the system.
        let _ = OUTPUTS.try_with(|room| {
            let mut room = room.borrow_mut();
            if room.len() < MOST_OUTPUTS && (1..=LARGEST_OUTPUTS).contains(&outputs.capacity()) {
                room.push(outputs);
            }
        });
    }
}

/// Returns memory for `words` words of o[] of a warp.
pub(crate) fn room_for_outputs(words: usize) -> Vec<Row<WARP>> {
    if words == 0 {
        return Vec::new();
    }
    let mut outputs = OUTPUTS.with_borrow_mut(Vec::pop).unwrap_or_default();
    outputs.reserve_exact(words);
    outputs
}

impl LaneResults {
    /// Adds the results of the first `count` lanes (1 to [`WARP`]) of the next warp. `kept` is the number of registers,
    /// or `None` for all registers. `kept` is the same for all warps. Only the last warp has fewer lanes than [`WARP`].
    pub(crate) fn add(&mut self, warp: &Warp, count: usize, kept: Option<usize>) {
        let rows = warp.file().rows();
        let columns = self.columns_mut(kept.unwrap_or(rows.len()).min(rows.len()));
        for (register, (column, row)) in columns.iter_mut().zip(rows).enumerate() {
            column.extend_from_slice(&row.0);
            // The results of a lane that ended before its warp are the register values at the end of the lane.
            let first = column.len() - WARP;
            for (lane, result) in warp.finalised() {
                if let Some(word) = result.registers.get(register) {
                    column[first + lane.index()] = *word;
                }
            }
        }
        // Only geometry programs emit vertices.
        let emitted = warp.emitted.iter().any(|emitted| !emitted.is_empty());
        let has_rest = emitted || !warp.outputs.is_empty() || !warp.finalised().is_empty();
        let rest = || WarpRest {
            outputs: warp.outputs.clone(),
            emitted: if emitted { warp.emitted.clone() } else { Vec::new() },
            finalised: warp.finalised().clone(),
        };
        self.warps.push(WarpResult { dead: warp.flow.dead(), rest: has_rest.then(|| Box::new(rest())) });
        self.lanes += count;
        self.some_ended |= (warp.flow.dead() & Mask::first(count)).any() || !warp.finalised().is_empty();
    }

    /// Adds the results of `count` lanes of the next warp. The results of these lanes are words of o[] and registers.
    /// This function adds only the words of o[]. The caller adds the registers to the columns of
    /// [`LaneResults::columns_mut`].
    #[inline]
    pub(crate) fn add_outputs(&mut self, count: usize, dead: Mask, outputs: Vec<Row<WARP>>) {
        let has_rest = !outputs.is_empty();
        let rest = || WarpRest { outputs, emitted: Vec::new(), finalised: LiteMap::new() };
        self.warps.push(WarpResult { dead, rest: has_rest.then(|| Box::new(rest())) });
        self.lanes += count;
        // `dead` also contains the lanes after the last lane of the launch.
        self.some_ended |= (dead & Mask::first(count)).any();
    }

    /// Returns the columns of `kept` registers. Each warp adds a row to each column.
    pub(crate) fn columns_mut(&mut self, kept: usize) -> &mut [Vec<u32>] {
        self.registers.resize(kept, Vec::new());
        &mut self.registers
    }

    /// If memory is available, reserves the memory for `warps` more warps with `kept` registers each. Without the
    /// reservation, a growing column would move to a new allocation. These moves would take longer than the run of a
    /// short program.
    pub(crate) fn reserve(&mut self, warps: usize, kept: usize) {
        // If the reservation fails, memory is allocated row by row. If this allocation also fails, the process ends, as
        // for any allocation.
        let _ = self.warps.try_reserve_exact(warps);
        for column in self.columns_mut(kept) {
            *column = LaneResults::room();
            let _ = column.try_reserve_exact(warps.saturating_mul(WARP));
        }
    }

    /// Adds the results of later warps.
    pub(crate) fn append(&mut self, mut other: LaneResults) {
        self.warps.append(&mut other.warps);
        let kept = self.registers.len().max(other.registers.len());
        for (column, rows) in self.columns_mut(kept).iter_mut().zip(&mut other.registers) {
            column.append(rows);
        }
        self.lanes += other.lanes;
        self.some_ended |= other.some_ended;
    }

    /// Returns the number of lanes.
    pub fn len(&self) -> usize {
        self.lanes
    }

    /// Returns whether there are no lanes.
    pub fn is_empty(&self) -> bool {
        self.lanes == 0
    }

    /// Returns the results of a lane, or `None` if the lane does not exist.
    pub fn get(&self, lane: usize) -> Option<LaneResult> {
        let warp = self.warps.get(lane / WARP).filter(|_| lane < self.lanes)?;
        let registers = self.registers.iter().map(|column| column[lane]).collect();
        let place = Lane((lane % WARP) as u8);
        let Some(rest) = &warp.rest else {
            return Some(LaneResult { registers, dead: warp.dead.has(place), ..LaneResult::default() });
        };
        Some(match rest.finalised.get(&place) {
            Some(result) => LaneResult { registers, ..result.clone() },
            None => LaneResult {
                registers,
                outputs: rest.outputs.iter().map(|row| row.0[place.index()]).collect(),
                dead: warp.dead.has(place),
                emitted: rest.emitted.get(place.index()).cloned().unwrap_or_default(),
            },
        })
    }

    /// Returns `$r<register>` of a lane. Returns `None` if the lane does not exist, or if the results do not contain
    /// the register.
    pub fn register(&self, lane: usize, register: usize) -> Option<u32> {
        self.registers.get(register).filter(|_| lane < self.lanes).map(|column| column[lane])
    }

    /// Returns `$r<register>` of all lanes, or zeros if the results do not contain the register.
    pub fn column(&self, register: usize) -> Vec<u32> {
        match self.registers.get(register) {
            Some(column) => column[..self.lanes].to_vec(),
            None => vec![0; self.lanes],
        }
    }

    /// Returns the same column as [`LaneResults::column`]. The column is moved out of the results instead of copied.
    pub fn take_column(&mut self, register: usize) -> Vec<u32> {
        match self.registers.get_mut(register).map(std::mem::take) {
            Some(mut column) if column.len() >= self.lanes => {
                column.truncate(self.lanes);
                column
            }
            _ => vec![0; self.lanes],
        }
    }

    /// Returns an empty column. The column uses the memory of a column from [`LaneResults::give_back`], if available.
    pub fn room() -> Vec<u32> {
        ROOM.with_borrow_mut(Vec::pop).unwrap_or_default()
    }

    /// Stores the memory of a column for later results.
    pub fn give_back(mut column: Vec<u32>) {
        column.clear();
        ROOM.with_borrow_mut(|room| {
            if room.len() < MOST_KEPT && column.capacity() <= LARGEST_KEPT {
                room.push(column);
            }
        });
    }

    /// Returns the words of o\[\] of each lane.
    pub fn outputs(&self) -> Vec<Vec<u32>> {
        let words = |lane: usize| {
            let (warp, lane) = (&self.warps[lane / WARP], Lane((lane % WARP) as u8));
            let Some(rest) = &warp.rest else { return Vec::new() };
            match rest.finalised.get(&lane) {
                Some(result) => result.outputs.clone(),
                None => rest.outputs.iter().map(|row| row.0[lane.index()]).collect(),
            }
        };
        (0..self.lanes).map(words).collect()
    }

    /// Returns word `word` of o\[\] of each lane of a warp, or zeros if the warp has no outputs.
    pub fn output_row(&self, warp: usize, word: usize) -> [u32; WARP] {
        let Some(rest) = self.warps.get(warp).and_then(|warp| warp.rest.as_deref()) else { return [0; WARP] };
        let mut row = rest.outputs.get(word).map_or([0; WARP], |row| row.0);
        for (lane, result) in &rest.finalised {
            row[lane.index()] = result.outputs.get(word).copied().unwrap_or(0);
        }
        row
    }

    /// Returns, for each lane, whether the lane was killed. The list is empty if no lane was killed.
    pub fn dead(&self) -> Vec<bool> {
        if !self.some_ended {
            return Vec::new();
        }
        let mut dead = Vec::with_capacity(self.warps.len() * WARP);
        for warp in &self.warps {
            let mut row = [false; WARP];
            warp.dead.lanes().for_each(|lane| row[lane.index()] = true);
            let finalised = warp.rest.iter().flat_map(|rest| &rest.finalised);
            finalised.for_each(|(lane, result)| row[lane.index()] = result.dead);
            dead.extend_from_slice(&row);
        }
        dead.truncate(self.lanes);
        dead
    }

    /// Returns the results of all lanes, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = LaneResult> + '_ {
        (0..self.lanes).map(|lane| self.get(lane).expect("a lane below their number"))
    }
}
