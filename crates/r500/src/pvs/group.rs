//! One group: vertices that run together, and the registers of the vertices. A clone of a group is a snapshot.

use std::sync::Arc;

use reconverge_simt::fidelity::Report;
use reconverge_simt::registers::Registers;
use reconverge_simt::{Lane, Mask, Mode, Statistics};

use super::flow::Flow;
use super::inst::{ALT_TEMPORARIES, CONSTANTS, INPUTS, OUTPUTS, SLOTS, TEMPORARIES};
use super::setup::Setup;
use super::words::{DstType, SrcType};

/// Number of vertices in a group. The hardware does not have groups of vertices. In this emulator, any number of
/// vertices may run together, because flow control does not depend on vertex data.
pub const WIDTH: usize = 64;

/// A register file that is stored in rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct File {
    /// Name of the file in assembly text.
    pub(crate) name: &'static str,
    /// Row of the x channel of the first register.
    pub(crate) start: usize,
    /// Number of registers.
    pub(crate) size: usize,
}

pub(crate) const TEMPORARY: File = File { name: "t", start: 0, size: TEMPORARIES };
pub(crate) const ALT_TEMPORARY: File = TEMPORARY.behind("at", ALT_TEMPORARIES);
pub(crate) const INPUT: File = ALT_TEMPORARY.behind("i", INPUTS);
pub(crate) const OUTPUT: File = INPUT.behind("o", OUTPUTS);
/// Total number of rows of all files.
pub(crate) const ROWS: usize = OUTPUT.start + OUTPUT.size * 4;
/// The files in the order of their rows.
pub(crate) const FILES: [File; 4] = [TEMPORARY, ALT_TEMPORARY, INPUT, OUTPUT];

impl File {
    const fn behind(self, name: &'static str, size: usize) -> File {
        File { name, start: self.start + self.size * 4, size }
    }

    /// Returns the row of the x channel of a register, or `None` if the register is outside the file.
    pub(crate) fn row(self, register: i32) -> Option<usize> {
        let register = usize::try_from(register).ok().filter(|register| *register < self.size)?;
        Some(self.start + register * 4)
    }

    /// Returns the file of an operand, or `None` for constants, which are not stored in rows.
    pub(crate) const fn of_source(file: SrcType) -> Option<File> {
        match file {
            SrcType::TEMPORARY => Some(TEMPORARY),
            SrcType::INPUT => Some(INPUT),
            SrcType::CONSTANT => None,
            SrcType::ALT_TEMPORARY => Some(ALT_TEMPORARY),
        }
    }

    /// Returns the file of a destination, or `None` for A0, which is not stored in the rows of a file.
    pub(crate) const fn of_destination(file: DstType) -> Option<File> {
        match file {
            DstType::TEMPORARY => Some(TEMPORARY),
            DstType::A0 => None,
            DstType::OUT | DstType::OUT_REPL_X => Some(OUTPUT),
            DstType::ALT_TEMPORARY => Some(ALT_TEMPORARY),
            DstType::INPUT => Some(INPUT),
        }
    }
}

/// Returns the name of a row. For example, a row of a temporary is `t3.x`.
pub(crate) fn row_name(row: usize) -> String {
    let file = FILES.into_iter().rev().find(|file| file.start <= row).unwrap_or(TEMPORARY);
    let (register, channel) = ((row - file.start) / 4, (row - file.start) % 4);
    format!("{}{register}.{}", file.name, ['x', 'y', 'z', 'w'][channel])
}

/// One group: vertices, the registers of the vertices, and the flow state.
#[derive(Clone, Debug)]
pub struct Group {
    pub(crate) setup: Arc<Setup>,
    pub(crate) mode: Mode,
    /// Number of instructions that may be issued before the watchdog stops the group.
    pub(crate) watchdog: u64,
    pub(crate) flow: Flow,
    /// Registers of all files, one row per channel.
    pub(crate) rows: Registers<WIDTH>,
    /// A0, one row per component.
    pub(crate) a0: [[i32; WIDTH]; 4],
    /// For each component of A0, the vertices that have written the component.
    pub(crate) a0_written: [Mask; 4],
    /// The vertices whose predicate bit is set.
    pub(crate) predicate: Mask,
    /// The constants, four words each.
    pub(crate) constants: Arc<[[u32; 4]; CONSTANTS]>,
    /// For each channel of each output, the vertices that have written the channel.
    pub(crate) written: [[Mask; 4]; OUTPUTS],
    pub(crate) statistics: Statistics,
    /// For each slot, the number of times that its instruction was issued.
    pub(crate) issued: Vec<u64>,
}

impl Group {
    /// Returns a group at the start of a program. All registers are zero. (docs/r500-vertex.md, 1.2)
    pub(crate) fn new(
        setup: &Arc<Setup>,
        constants: Arc<[[u32; 4]; CONSTANTS]>,
        lanes: Mask,
        mode: Mode,
        watchdog: u64,
    ) -> Group {
        Group {
            setup: setup.clone(),
            mode,
            watchdog,
            flow: Flow::new(setup.first, lanes),
            rows: Registers::zero(ROWS),
            a0: [[0; WIDTH]; 4],
            a0_written: [Mask::NONE; 4],
            predicate: Mask::NONE,
            constants,
            written: [[Mask::NONE; 4]; OUTPUTS],
            statistics: Statistics::default(),
            issued: vec![0; SLOTS],
        }
    }

    /// Returns the counts so far.
    pub fn statistics(&self) -> Statistics {
        self.statistics
    }

    /// Returns the operations that the group has executed so far, and the accuracy of each operation.
    pub fn report(&self) -> Report {
        let mut report = Report::default();
        for (pc, slot) in self.setup.slots() {
            let times = self.issued[usize::from(pc)];
            if let Ok(inst) = &slot.inst {
                report.count(inst.op.name(), inst.operation().fidelity, times);
                if let Some(dual) = &inst.dual {
                    report.count(dual.op.name(), dual.op.operation().fidelity, times);
                }
            }
        }
        report
    }

    /// Returns the index of a register channel. [`Group::value`] and events use this index. `file` is the name of the
    /// register file (`t`, `at`, `i`, `o`), and `channel` is 0 (x) to 3 (w). Returns `None` if the register does not
    /// exist.
    pub fn register(file: &str, register: u8, channel: usize) -> Option<usize> {
        let file = FILES.into_iter().find(|known| known.name == file)?;
        Some(file.row(i32::from(register))? + channel.min(3))
    }

    /// Returns the bits of the register channel with the index `place`.
    pub fn value(&self, place: usize, lane: Lane) -> Option<u32> {
        self.rows.row(place)?.0.get(lane.index()).copied()
    }

    /// Sets the bits of the register channel with the index `place`. Returns `false` if the channel or the lane does
    /// not exist.
    pub fn set_value(&mut self, place: usize, lane: Lane, bits: u32) -> bool {
        let place = self.rows.row_mut(place).and_then(|row| row.0.get_mut(lane.index()));
        place.map(|place| *place = bits).is_some()
    }

    /// Returns a component of A0 (0 x to 3 w).
    pub fn address(&self, component: usize, lane: Lane) -> i32 {
        self.a0[component & 3][lane.index() % WIDTH]
    }

    /// Returns the predicate bits.
    pub fn predicate(&self) -> Mask {
        self.predicate
    }

    /// Returns the flow state.
    pub fn flow(&self) -> &Flow {
        &self.flow
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_names() {
        assert_eq!(
            [0, 5, 512, 592, 720, ROWS - 1].map(row_name),
            ["t0.x", "t1.y", "at0.x", "i0.x", "o0.x", "o31.w"]
        );
        assert_eq!(Group::register("o", 1, 2), Some(OUTPUT.start + 6));
        assert_eq!(Group::register("at", 20, 0), None);
    }
}
