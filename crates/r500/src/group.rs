//! One group: lanes that share a program counter, and the registers of these lanes. A clone of a group is a snapshot.

use std::sync::Arc;

use reconverge_simt::fidelity::Report;
use reconverge_simt::registers::Registers;
use reconverge_simt::{Lane, Mask, Mode, Statistics};

use crate::fidelity;
use crate::flow::Flow;
use crate::inst::{SAMPLERS, SLOTS, TARGETS, TEMPORARIES};
use crate::memory::Bound;
use crate::setup::Setup;
use crate::texture::Texture;

/// One group: lanes, the registers of the lanes, and the flow state. The CTM guide calls a group a thread.
#[derive(Clone)]
pub struct Group {
    pub(crate) setup: Arc<Setup>,
    pub(crate) mode: Mode,
    /// Number of instructions that may be issued before the watchdog stops the group.
    pub(crate) watchdog: u64,
    pub(crate) flow: Flow,
    /// Lanes that were launched.
    pub(crate) lanes: Mask,
    /// Lanes that a TEXKILL has ended.
    pub(crate) killed: Mask,
    /// The registers. The temporaries come first, followed by the output registers. The word of a temporary is
    /// `rows[register * 4 + channel][lane]`. For the rows of outputs, see [`color_row`] and [`DEPTH_ROW`].
    pub(crate) rows: Registers<WIDEST>,
    /// Float constants of this run.
    pub(crate) constants: Arc<Vec<[u32; 4]>>,
    /// Predicate bits, one mask for each of the channels R, G, B, A.
    pub(crate) predicate: [Mask; 4],
    pub(crate) alu_result: Mask,
    /// Lanes whose ALU result an instruction has written after the last FC instruction.
    pub(crate) alu_result_valid: Mask,
    pub(crate) written: Written,
    pub(crate) textures: [Option<Texture>; SAMPLERS],
    /// The surfaces of the CTM model.
    pub(crate) memory: Option<Box<Bound>>,
    pub(crate) statistics: Statistics,
    /// For each slot, the number of times that its instruction was issued.
    pub(crate) issued: Vec<u64>,
}

/// The lanes that have written each output register. The values are in the rows of the registers. If a channel is
/// written several times, the last value is the result. (CTM guide p. 31)
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Written {
    /// Lanes that have written a channel of a render target: `color[target][channel]`.
    pub(crate) color: [[Mask; 4]; TARGETS],
    pub(crate) depth: Mask,
}

impl Written {
    /// Returns the lanes that have written an output. See [`OUTPUTS`] for the numbers.
    pub(crate) fn output(&self, output: usize) -> Mask {
        self.color.as_flattened().get(output).copied().unwrap_or(self.depth)
    }
}

/// Number of lanes in a row.
pub(crate) const WIDEST: usize = 64;
/// The row of the depth (W) output.
pub(crate) const DEPTH_ROW: usize = color_row(TARGETS, 0);
/// Number of rows of temporaries and outputs.
pub(crate) const ROWS: usize = DEPTH_ROW + 1;
/// Number of outputs. There are four channels for each of the render targets A to D, and one depth.
pub(crate) const OUTPUTS: usize = TARGETS * 4 + 1;

/// Returns the row of an output. See [`OUTPUTS`] for the numbers.
pub(crate) const fn output_row(output: usize) -> usize {
    color_row(0, 0) + output
}

/// Returns the row of a channel of a render target's output register.
pub(crate) const fn color_row(target: usize, channel: usize) -> usize {
    (TEMPORARIES + target) * 4 + channel
}

/// Clears the ALU result, because every FC instruction destroys the ALU result (CTM guide p. 35). The value 0 is
/// recommended, because the guide does not state the value after an FC instruction.
pub(crate) fn after_fc(alu_result: &mut Mask, alu_result_valid: &mut Mask) {
    (*alu_result, *alu_result_valid) = (Mask::NONE, Mask::NONE);
}

/// Groups that were split from the running groups. The groups wait until they are merged with the running groups.
/// [`Group`] holds the state of the running groups.
pub(crate) struct Parted {
    pub(crate) flow: Flow,
    lanes: Mask,
    alu_result: Mask,
    alu_result_valid: Mask,
    /// Number of instructions issued to each of the waiting groups. After a merge of groups with different numbers, the
    /// field contains the highest number.
    instructions: u64,
}

impl Parted {
    /// Splits off the groups that consist of `lanes`.
    pub(crate) fn take(group: &mut Group, lanes: Mask) -> Parted {
        let take = |mask: &mut Mask| {
            let taken = *mask & lanes;
            *mask = *mask - lanes;
            taken
        };
        Parted {
            flow: group.flow.part(lanes),
            lanes: take(&mut group.lanes),
            alu_result: take(&mut group.alu_result),
            alu_result_valid: take(&mut group.alu_result_valid),
            instructions: group.statistics.instructions,
        }
    }

    /// Merges the running groups into the waiting groups, if the flow states of both match. Returns whether the flow
    /// states match.
    pub(crate) fn join(&mut self, group: &Group) -> bool {
        if !self.flow.is_where(&group.flow) {
            return false;
        }
        self.flow.join(group.flow.clone());
        self.lanes |= group.lanes;
        self.alu_result |= group.alu_result;
        self.alu_result_valid |= group.alu_result_valid;
        // The merged group gets the higher count. So the watchdog does not stop a group too late.
        self.instructions = self.instructions.max(group.statistics.instructions);
        true
    }

    /// Makes the waiting groups run. The waiting groups replace the previous running groups.
    pub(crate) fn resume(self, group: &mut Group) {
        let Parted { flow, lanes, alu_result, alu_result_valid, instructions } = self;
        (group.flow, group.lanes) = (flow, lanes);
        (group.alu_result, group.alu_result_valid) = (alu_result, alu_result_valid);
        group.statistics.instructions = instructions;
    }
}

impl Group {
    /// Returns a group with the flow state `flow`. All registers are zero.
    pub(crate) fn at(setup: &Arc<Setup>, flow: Flow, lanes: Mask, mode: Mode, watchdog: u64) -> Group {
        Group {
            setup: setup.clone(),
            mode,
            watchdog,
            flow,
            lanes,
            killed: Mask::NONE,
            rows: Registers::zero(ROWS),
            constants: Arc::default(),
            predicate: [Mask::NONE; 4],
            alu_result: Mask::NONE,
            alu_result_valid: Mask::NONE,
            written: Written::default(),
            textures: [const { None }; SAMPLERS],
            memory: None,
            statistics: Statistics::default(),
            issued: vec![0; SLOTS],
        }
    }

    /// Turns this group into the initial state of a new group of the launch. Does not change issue counts or rows.
    pub(crate) fn restart(&mut self, lanes: Mask) {
        self.flow.restart(self.setup.start, lanes, lanes);
        self.lanes = lanes;
        self.killed = Mask::NONE;
        self.predicate = [Mask::NONE; 4];
        self.alu_result = Mask::NONE;
        self.alu_result_valid = Mask::NONE;
        self.written = Written::default();
        self.statistics = Statistics::default();
    }

    /// Binds the surfaces of the CTM model, and marks the lanes outside the domain as uncovered.
    pub(crate) fn bind_memory(&mut self, bound: Bound, covered: Mask) {
        self.memory = Some(Box::new(bound));
        self.flow.kill(self.lanes - covered);
    }

    /// Takes the surfaces of the CTM model from the group.
    pub(crate) fn take_memory(&mut self) -> Option<Bound> {
        self.memory.take().map(|bound| *bound)
    }

    /// Returns the counts so far. An instruction that is issued to the group is counted once, regardless of the number
    /// of active lanes.
    pub fn statistics(&self) -> Statistics {
        self.statistics
    }

    /// Returns the operations that the group has executed so far, and the accuracy of each operation.
    pub fn report(&self) -> Report {
        let mut report = Report::default();
        for (slot, times) in self.setup.slots().map(|(pc, slot)| (slot, self.issued[usize::from(pc)])) {
            if let Ok(inst) = &slot.inst {
                fidelity::count(inst, times, &mut report);
            }
        }
        report
    }

    /// Returns the bits of a channel (0 red to 3 alpha) of a temporary.
    pub fn temp(&self, register: u8, channel: usize, lane: Lane) -> u32 {
        self.rows[usize::from(register) * 4 + channel][lane.index()]
    }

    /// Sets the bits of a channel of a temporary. Returns `false` if the register or the channel does not exist.
    pub fn set_temp(&mut self, register: u8, channel: usize, lane: Lane, bits: u32) -> bool {
        let row = usize::from(register) * 4 + channel;
        let known = usize::from(register) < TEMPORARIES && channel < 4;
        let place = self.rows.row_mut(row).and_then(|row| row.0.get_mut(lane.index()));
        place.filter(|_| known).map(|place| *place = bits).is_some()
    }

    /// Returns the flow state.
    pub fn flow(&self) -> &Flow {
        &self.flow
    }

    /// Returns the flow state, mutably, for fault injection.
    pub fn flow_mut(&mut self) -> &mut Flow {
        &mut self.flow
    }

    /// Returns the lanes that were launched.
    pub fn lanes(&self) -> Mask {
        self.lanes
    }

    /// Returns the predicate bits of a channel (0 red to 3 alpha), or the ALU result for channel 4.
    pub fn flags(&self, channel: usize) -> Mask {
        self.predicate.get(channel).copied().unwrap_or(self.alu_result)
    }

    /// Sets the bits that [`Group::flags`] returns. Does not change whether the ALU result is valid.
    pub fn set_flags(&mut self, channel: usize, lanes: Mask) {
        *self.predicate.get_mut(channel).unwrap_or(&mut self.alu_result) = lanes;
    }
}
