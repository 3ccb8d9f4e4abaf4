//! Counts of a run. While operations run, the statistics of the wavefront do not include these counts.

use reconverge_simt::{Event, Mask, Observer, Path};

use super::Fast;
use crate::outcome::Executed;
use crate::rules::Rule;
use crate::wave::Wave;

/// The number of issued instructions, and the sum of the lanes that executed each instruction. The wavefront's
/// statistics do not include these numbers yet. This structure is separate from the statistics, so the loop over
/// operations can keep both numbers in registers of the host.
#[derive(Clone, Copy, Default)]
pub(super) struct Issued {
    pub(super) instructions: u64,
    pub(super) lane_instructions: u64,
}

impl Issued {
    /// Adds `instructions` instructions to the counts. Each of these instructions was issued for the lanes `lanes`.
    #[inline(always)]
    pub(super) fn count(&mut self, instructions: u64, lanes: Mask) {
        self.instructions += instructions;
        self.lane_instructions += instructions * u64::from(lanes.count());
    }

    /// Counts an instruction that the observer sees as a separate block, and notifies the observer.
    #[inline(always)]
    pub(super) fn alone<O: Observer>(&mut self, pc: u32, lanes: Mask, observer: &mut O) {
        self.count(1, lanes);
        if O::PATHS {
            observer.path(Path::Block, 1);
        }
        if O::ENABLED {
            observer.event(Event::Issue { pc, mask: lanes });
        }
    }

    /// Moves these counts to the statistics of the wavefront.
    pub(super) fn settle(&mut self, wave: &mut Wave) {
        wave.statistics.instructions += self.instructions;
        wave.statistics.lane_instructions += self.lane_instructions;
        *self = Issued::default();
    }
}

/// Counts of the executed runs, fetches and control-flow instructions of a program.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counts {
    /// Executions of each run.
    pub(super) runs: Vec<u64>,
    /// Executions of each instruction in a fetch clause.
    pub(super) fetches: Vec<u64>,
    /// Whether each control-flow instruction has executed.
    pub(super) nodes: Vec<bool>,
    /// Whether an ALU_PUSH_BEFORE has pushed an entry when no lane was active.
    pub(super) empty_push: bool,
    /// Counts of compiled code. The other fields do not include these counts yet.
    pub(super) code: Vec<u64>,
}

impl Counts {
    pub(super) fn new(fast: &Fast) -> Counts {
        let lowered = &fast.lowered;
        Counts {
            runs: vec![0; lowered.runs.len()],
            fetches: vec![0; lowered.fetches.len()],
            nodes: vec![false; lowered.nodes.len()],
            empty_push: false,
            code: vec![0; fast.compiled.as_ref().map_or(0, |compiled| compiled.linked.counts())],
        }
    }

    /// Sets all counts to zero. Returns the counts for another launch of the same program. The new counts use the
    /// memory of the old counts.
    pub(super) fn again(self) -> Counts {
        let Counts { mut runs, mut fetches, mut nodes, mut code, .. } = self;
        [&mut runs, &mut fetches, &mut code].into_iter().for_each(|counts| counts.fill(0));
        nodes.fill(false);
        Counts { runs, fetches, nodes, empty_push: false, code }
    }

    /// Adds the counts `other` to these counts. `other` are counts of other wavefronts of the same program.
    pub(crate) fn add(&mut self, other: &Counts) {
        for (counts, other) in [
            (&mut self.runs, &other.runs),
            (&mut self.fetches, &other.fetches),
            (&mut self.code, &other.code),
        ] {
            counts.iter_mut().zip(other).for_each(|(count, other)| *count += other);
        }
        for (node, other) in self.nodes.iter_mut().zip(&other.nodes) {
            *node |= other;
        }
        self.empty_push |= other.empty_push;
    }

    /// Adds the counts to the report on opcodes. Adds the disputed rules of the executed instructions to the list of
    /// disputed rules.
    pub(crate) fn settle(&mut self, fast: &Fast, executed: &mut Executed) {
        if let Some(compiled) = &fast.compiled {
            compiled.settle(self);
        }
        for (run, &count) in fast.lowered.runs.iter().zip(&self.runs).filter(|(_, count)| **count > 0) {
            for group in &fast.lowered.groups[run.first as usize..][..run.count as usize] {
                for opcode in &group.opcodes {
                    executed.report.count(opcode.name, opcode.exactness, count);
                }
                executed.rules.extend(group.rules.iter().copied());
            }
        }
        let fetches = fast.lowered.fetches.iter().zip(&self.fetches).filter(|(_, count)| **count > 0);
        for (fetching, &count) in fetches.filter_map(|(info, count)| Some((info.fetching.as_ref()?, count))) {
            if let Some(name) = fetching.name {
                executed.report.count(name, fetching.exactness, count);
            }
            executed.rules.extend(fetching.rules.iter().copied());
        }
        let nodes = fast.lowered.nodes.iter().zip(&self.nodes);
        executed
            .rules
            .extend(nodes.filter(|(_, seen)| **seen).flat_map(|(node, _)| node.rules.iter().copied()));
        if self.empty_push {
            executed.rules.insert(Rule::ALU_PUSH_BEFORE_ALWAYS_PUSHES);
        }
    }
}
