//! The results of the lanes of a graphics launch, kept by warp as rows and given out by lane.

use litemap::LiteMap;
use reconverge_simt::registers::Row;
use reconverge_simt::{Lane, Mask};

use crate::flow::WARP;
use crate::state::{Emitted, LaneResult, Warp};

/// The results of all lanes, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LaneResults {
    /// All but the last have [`WARP`] lanes.
    warps: Vec<WarpResult>,
    lanes: usize,
    /// `kept` rows a warp.
    registers: Vec<Row<WARP>>,
    kept: usize,
    /// Whether some lane is dead, or ended before its warp.
    some_ended: bool,
}

/// What a warp leaves besides registers.
#[derive(Clone, Debug, PartialEq, Eq)]
struct WarpResult {
    outputs: Vec<Row<WARP>>,
    dead: Mask,
    emitted: Vec<Vec<Emitted>>,
    /// Of lanes that ended before the warp did.
    finalised: LiteMap<Lane, LaneResult>,
}

impl LaneResults {
    /// Adds the first `count` lanes, 1 to [`WARP`], of the warp that follows those before, with as many registers as given,
    /// or all; only the last warp has fewer lanes than [`WARP`], and `kept` is the same for all.
    pub(crate) fn add(&mut self, warp: &Warp, count: usize, kept: Option<usize>) {
        let rows = warp.file().rows();
        self.kept = kept.unwrap_or(rows.len()).min(rows.len());
        let first = self.registers.len();
        self.registers.extend_from_slice(&rows[..self.kept]);
        // Lanes that ended before the warp keep the registers that they had then.
        for (lane, result) in warp.finalised() {
            for (row, word) in self.registers[first..].iter_mut().zip(&result.registers) {
                row.0[lane.index()] = *word;
            }
        }
        self.warps.push(WarpResult {
            outputs: warp.outputs.clone(),
            dead: warp.flow.dead(),
            // Only geometry programs emit anything.
            emitted: if warp.emitted.iter().all(Vec::is_empty) { Vec::new() } else { warp.emitted.clone() },
            finalised: warp.finalised().clone(),
        });
        self.lanes += count;
        self.some_ended |= warp.flow.dead().any() || !warp.finalised().is_empty();
    }

    /// Makes room for that many more warps with `kept` registers each, where there is memory for it: rows that move when
    /// there are too many of them cost more than a short program.
    pub(crate) fn reserve(&mut self, warps: usize, kept: usize) {
        // Where there is none, the rows find theirs one by one, or end the process as any others would.
        let _ = self.warps.try_reserve_exact(warps);
        let _ = self.registers.try_reserve_exact(warps.saturating_mul(kept));
    }

    /// Adds the results of later warps.
    pub(crate) fn append(&mut self, mut other: LaneResults) {
        self.warps.append(&mut other.warps);
        self.registers.append(&mut other.registers);
        self.lanes += other.lanes;
        self.kept = self.kept.max(other.kept);
        self.some_ended |= other.some_ended;
    }

    /// How many lanes there are.
    pub fn len(&self) -> usize {
        self.lanes
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.lanes == 0
    }

    /// The results of a lane; `None` where there is no such lane.
    pub fn get(&self, lane: usize) -> Option<LaneResult> {
        let warp = self.warps.get(lane / WARP).filter(|_| lane < self.lanes)?;
        let of = |rows: &[Row<WARP>]| rows.iter().map(|row| row.0[lane % WARP]).collect();
        let registers = of(&self.registers[lane / WARP * self.kept..][..self.kept]);
        let place = Lane((lane % WARP) as u8);
        Some(match warp.finalised.get(&place) {
            Some(result) => LaneResult { registers, ..result.clone() },
            None => LaneResult {
                registers,
                outputs: of(&warp.outputs),
                dead: warp.dead.has(place),
                emitted: warp.emitted.get(place.index()).cloned().unwrap_or_default(),
            },
        })
    }

    /// `$r<register>` of a lane; `None` where there is no such lane, or no such register was kept.
    pub fn register(&self, lane: usize, register: usize) -> Option<u32> {
        let is_there = lane < self.lanes && register < self.kept;
        is_there.then(|| self.registers[lane / WARP * self.kept + register].0[lane % WARP])
    }

    /// `$r<register>` of all lanes; zeros if no such register was kept.
    pub fn column(&self, register: usize) -> Vec<u32> {
        if register >= self.kept {
            return vec![0; self.lanes];
        }
        let mut column = Vec::with_capacity(self.warps.len() * WARP);
        for rows in self.registers.chunks_exact(self.kept) {
            column.extend_from_slice(&rows[register].0);
        }
        column.truncate(self.lanes);
        column
    }

    /// The words of o\[\] of each lane.
    pub fn outputs(&self) -> Vec<Vec<u32>> {
        let words = |lane: usize| {
            let (warp, lane) = (&self.warps[lane / WARP], Lane((lane % WARP) as u8));
            match warp.finalised.get(&lane) {
                Some(result) => result.outputs.clone(),
                None => warp.outputs.iter().map(|row| row.0[lane.index()]).collect(),
            }
        };
        (0..self.lanes).map(words).collect()
    }

    /// By lane, whether it was killed; empty if none was.
    pub fn dead(&self) -> Vec<bool> {
        if !self.some_ended {
            return Vec::new();
        }
        let mut dead = vec![false; self.warps.len() * WARP];
        for (warp, dead) in self.warps.iter().zip(dead.as_chunks_mut::<WARP>().0) {
            warp.dead.lanes().for_each(|lane| dead[lane.index()] = true);
            warp.finalised.iter().for_each(|(lane, result)| dead[lane.index()] = result.dead);
        }
        dead.truncate(self.lanes);
        dead
    }

    /// All lanes, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = LaneResult> + '_ {
        (0..self.lanes).map(|lane| self.get(lane).expect("a lane below their number"))
    }
}
