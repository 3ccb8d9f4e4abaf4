//! The fast engine. This engine executes an operation for whole rows at once. Once per launch, lowering resolves all
//! properties that are known before a run.
//!
//! | module | contents |
//! |---|---|
//! | `lower` | lowers instructions to blocks of operations |
//! | `lanes` | the type of operations, and the compilation of their code for each level of vector instructions |
//! | `kernels`, `functions`, `bodies`, `fetch`, `memory` | the code of the operations |
//! | `cursor` | runs blocks in order, and executes flow control between blocks |
//! | `compiled` | compiles a program to linked host code, and runs this code |
//! | `run` | runs groups, and chooses between compiled code and blocks |
//! | `parallel` | runs the groups of a launch on the host's threads |
//! | `lockstep` | runs a group on both engines, for [`reconverge_simt::lockstep`] |
//!
//! The engine and the reference interpreter both work on a [`Group`]. Their registers, outputs, counts and traps are
//! equal. [`crate::flow`] executes flow control. If the engine does not support an instruction, the reference
//! interpreter executes that instruction.

// Two operations are unsafe: a call of code that is compiled for extensions of the processor, and an access to a row
// without a bounds check. A comment at each use states why the use is sound.
#![allow(unsafe_code)]

mod bodies;
mod compiled;
mod cursor;
mod fetch;
mod functions;
mod kernels;
mod lanes;
pub(crate) mod lockstep;
mod lower;
mod memory;
mod operands;
pub(crate) mod parallel;
mod run;

use std::sync::Arc;

use reconverge_simt::compiling::Extent;
use reconverge_simt::loaded::Spare;
use reconverge_simt::registers::Row;
use reconverge_simt::{Engine, Level, Mask, Options};

use crate::group::{Group, OUTPUTS, WIDEST, output_row};
use crate::launch::Launch;
use crate::memory::Bound;
use crate::setup::Setup;
use compiled::Compiled;
use lower::Lowered;

/// A program lowered for a launch.
#[derive(Clone, Debug)]
pub struct Fast {
    lowered: Arc<Lowered>,
    level: Level,
    compiled: Option<Arc<Compiled>>,
    /// Numbers of the outputs that the program may write.
    outputs: Vec<usize>,
    /// A group of an earlier launch. Later launches reuse the memory of this group. The group has dropped its textures.
    spare: Spare<Box<GroupRoom>>,
}

/// The memory that a launch needs for a group.
struct GroupRoom {
    group: Group,
    /// Number of runs of each block, followed by the counters of compiled code.
    runs: Vec<u64>,
}

impl Fast {
    /// Lowers a program for a launch.
    pub fn new(setup: &Setup, launch: &Launch, options: &Options) -> Fast {
        Fast::with(setup, launch, options, None)
    }

    /// Lowers a program. `bound` holds the surfaces of the CTM model. The result does not depend on the contents of the
    /// memory.
    pub(crate) fn with(setup: &Setup, launch: &Launch, options: &Options, bound: Option<&Bound>) -> Fast {
        let fast = Fast::lowered(setup, launch, options, bound, false);
        // If AVX2 or memory for code is not available, `with_code` returns the fast engine without code.
        match options.engine {
            Engine::Reference | Engine::Fast | Engine::Lockstep => fast,
            Engine::Compiled => fast.with_code(Extent::worth(launch.groups())),
            Engine::LockstepCompiled => fast.with_code(Extent::Throughout),
        }
    }

    /// Lowers a program and compiles the parts that `extent` selects.
    pub(crate) fn compiled(
        setup: &Setup,
        launch: &Launch,
        options: &Options,
        bound: Option<&Bound>,
        extent: Extent,
    ) -> Fast {
        Fast::lowered(setup, launch, options, bound, extent.cuts_blocks()).with_code(extent)
    }

    /// Lowers a program. Does not compile the program. If `singly` is set, each block has one instruction.
    pub(crate) fn lowered(
        setup: &Setup,
        launch: &Launch,
        options: &Options,
        bound: Option<&Bound>,
        singly: bool,
    ) -> Fast {
        let level = options.level();
        let lowered = Arc::new(lower::lower(setup, launch, options.mode, bound, level, singly));
        let outputs = (0..OUTPUTS).filter(|output| lowered.written.contains(&output_row(*output))).collect();
        Fast { lowered, level, compiled: None, outputs, spare: Spare::default() }
    }

    /// Returns whether any part of the program is compiled.
    fn is_compiled(&self) -> bool {
        self.compiled.is_some()
    }

    /// Returns whether several groups may run together. There are three conditions: every instruction has a fast path,
    /// groups do not share surfaces, and compiled code does not execute flow instructions.
    pub(crate) fn runs_together(&self) -> bool {
        let flows = self.is_compiled() && !self.lowered.flows.is_empty();
        !flows && !self.lowered.shares && self.by_reference().is_empty()
    }

    /// Returns the maximum number of lanes that run together.
    pub(crate) fn most_lanes(&self) -> usize {
        let alone = self.lowered.width.max(1);
        if self.runs_together() { WIDEST / alone * alone } else { alone }
    }

    /// Returns the slots of the instructions that the reference interpreter executes. These instructions trap or do not
    /// have a fast path.
    pub fn by_reference(&self) -> &[u16] {
        &self.lowered.by_reference
    }

    /// Prepares a group for this engine. Adds more rows to the group. The operations use these rows in addition to the
    /// rows of registers.
    pub(crate) fn prepare(&self, group: &mut Group) {
        group.rows.add_room(&self.lowered.room);
        self.set_uniforms(group);
    }

    /// Returns a prepared group without lanes, and run counts of zero. Reuses the memory of an earlier launch of the
    /// program, if available. A reused group still has the issue counts of the earlier launch.
    fn room(&self, setup: &Arc<Setup>, launch: &Launch, options: &Options) -> Box<GroupRoom> {
        match self.spare.take() {
            Some(mut room) => {
                launch.environment.bind(&mut room.group);
                self.set_uniforms(&mut room.group);
                room.runs.fill(0);
                room
            }
            None => {
                let none = Launch { environment: launch.environment.clone(), ..Launch::default() };
                let mut group = none.group(setup, options, 0, Mask::NONE);
                self.prepare(&mut group);
                Box::new(GroupRoom { group, runs: vec![0; self.counts()] })
            }
        }
    }

    /// Keeps the memory of a launch for a later launch of the program.
    fn keep(&self, mut room: Box<GroupRoom>, launch: &Launch) {
        // The group drops its textures, because textures may be large.
        for (unit, _) in &launch.environment.textures {
            room.group.textures[usize::from(*unit)] = None;
        }
        self.spare.keep(room);
    }

    /// Fills the rows whose values depend on float constants.
    fn set_uniforms(&self, group: &mut Group) {
        let Group { rows, constants, .. } = group;
        for (uniform, place) in &self.lowered.uniforms {
            rows.with_room_mut()[place.number()] = Row([uniform.bits(constants); WIDEST]);
        }
    }

    /// Adds the run counts of blocks and of compiled code to the issue counts of the slots. In each run of compiled
    /// code, `groups` groups ran together.
    pub(crate) fn settle(&self, group: &mut Group, runs: &mut [u64], groups: usize) {
        let (of_blocks, of_code) = runs.split_at_mut(self.lowered.blocks.len());
        for (block, runs) in self.lowered.blocks.iter().zip(of_blocks) {
            group.issued[block.slots()].iter_mut().for_each(|times| *times += *runs);
            *runs = 0;
        }
        if let Some(compiled) = &self.compiled {
            compiled.settle(of_code, &mut group.issued, groups);
        }
    }

    /// Returns the rows that the program may write.
    pub(crate) fn written(&self) -> &[usize] {
        &self.lowered.written
    }

    /// Returns rows of temporaries. The program may read one of these rows before all lanes have written the row.
    pub(crate) fn cleared(&self) -> &[usize] {
        &self.lowered.cleared
    }

    /// Returns whether the program may read the row of a temporary.
    pub(crate) fn reads(&self, row: usize) -> bool {
        self.lowered.read[row]
    }

    /// Returns the numbers of the outputs that the program may write.
    fn outputs(&self) -> impl Iterator<Item = usize> {
        self.outputs.iter().copied()
    }

    /// Returns the number of run counters. Each block has one counter. The counters of compiled code follow.
    pub(crate) fn counts(&self) -> usize {
        self.lowered.blocks.len() + self.compiled.as_ref().map_or(0, |compiled| compiled.counts())
    }
}
