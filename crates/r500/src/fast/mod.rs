//! The fast engine: whole rows at a time, everything that can be known beforehand settled once a launch.
//!
//! | read | for |
//! |---|---|
//! | `lower` | from instructions to blocks of operations |
//! | `lanes` | what an operation is, and how one body becomes code for each level of vector instructions |
//! | `kernels`, `functions`, `bodies`, `fetch`, `memory` | the operations |
//! | `run` | blocks one after another, flow control between them, and groups that run together |
//! | `compiled` | runs blocks as host code |
//! | `parallel` | the groups of a launch on the host's threads |
//! | `lockstep` | a group on both engines, for [`reconverge_simt::lockstep`] |
//!
//! It works on the reference interpreter's [`Group`] and leaves the same registers, outputs, counts and traps; flow
//! control is [`crate::flow`]'s. What it does not know it gives to the reference interpreter, one instruction at a time.

// Code compiled for a processor's extensions is unsafe to call, and rows are found without a check: each place says why
// that is sound.
#![allow(unsafe_code)]

mod bodies;
mod compiled;
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
    /// Outputs that the program may write, by number.
    outputs: Vec<usize>,
    /// The group of an earlier run, without textures.
    spare: Spare<Box<GroupRoom>>,
}

/// Memory that a launch runs in.
struct GroupRoom {
    group: Group,
    /// Counts by block.
    runs: Vec<u64>,
}

impl Fast {
    /// Lowers a program for a launch with this setup.
    pub fn new(setup: &Setup, launch: &Launch, options: &Options) -> Fast {
        Fast::with(setup, launch, options, None)
    }

    /// `bound`: the surfaces of the CTM model, whatever is in memory.
    pub(crate) fn with(setup: &Setup, launch: &Launch, options: &Options, bound: Option<&Bound>) -> Fast {
        let fast = Fast::lowered(setup, launch, options, bound, false);
        // Without AVX2, or without memory for code, the compiled engine is the fast one.
        match options.engine {
            Engine::Reference | Engine::Fast | Engine::Lockstep => fast,
            Engine::Compiled => fast.with_code(Extent::worth(launch.groups())),
            Engine::LockstepCompiled => fast.with_code(Extent::Throughout),
        }
    }

    /// With host code of an extent.
    pub(crate) fn compiled(
        setup: &Setup,
        launch: &Launch,
        options: &Options,
        bound: Option<&Bound>,
        extent: Extent,
    ) -> Fast {
        Fast::lowered(setup, launch, options, bound, extent.cuts_blocks()).with_code(extent)
    }

    /// The program without host code. `singly`: in blocks of one instruction.
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

    /// Whether some of the program is host code.
    fn is_compiled(&self) -> bool {
        self.compiled.is_some()
    }

    /// Whether groups may run together: all of the program has a fast way, and none of it is host code.
    pub(crate) fn runs_together(&self) -> bool {
        !self.is_compiled() && self.by_reference().is_empty()
    }

    /// Slots whose instruction the reference interpreter executes: what has no fast way, or traps.
    pub fn by_reference(&self) -> &[u16] {
        &self.lowered.by_reference
    }

    /// Gives a group the room that its operations use.
    pub(crate) fn prepare(&self, group: &mut Group) {
        group.rows.add_room(&self.lowered.room);
        self.set_uniforms(group);
    }

    /// A group of no lanes that was prepared, and counts by block of 0: what an earlier launch of the program left, or new ones.
    /// The group's counts by slot are those of earlier launches.
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
                Box::new(GroupRoom { group, runs: vec![0; self.blocks()] })
            }
        }
    }

    /// Keeps what a launch has left for a later one.
    fn keep(&self, mut room: Box<GroupRoom>, launch: &Launch) {
        // Textures may be large.
        for (unit, _) in &launch.environment.textures {
            room.group.textures[usize::from(*unit)] = None;
        }
        self.spare.keep(room);
    }

    /// Fills the rows of what is made of float constants.
    fn set_uniforms(&self, group: &mut Group) {
        let Group { rows, constants, .. } = group;
        for (uniform, place) in &self.lowered.uniforms {
            rows.with_room_mut()[place.number()] = Row([uniform.bits(constants); WIDEST]);
        }
    }

    /// Adds the counts that were kept by block to those by slot.
    pub(crate) fn settle(&self, group: &mut Group, runs: &mut [u64]) {
        for (block, runs) in self.lowered.blocks.iter().zip(runs) {
            group.issued[block.slots()].iter_mut().for_each(|times| *times += *runs);
            *runs = 0;
        }
    }

    /// Rows that the program may write.
    pub(crate) fn written(&self) -> &[usize] {
        &self.lowered.written
    }

    /// Rows of temporaries that the program may read before it has written them.
    pub(crate) fn cleared(&self) -> &[usize] {
        &self.lowered.cleared
    }

    /// Whether it may read the row of a temporary.
    pub(crate) fn reads(&self, row: usize) -> bool {
        self.lowered.read[row]
    }

    /// Outputs that the program may write, by number.
    fn outputs(&self) -> impl Iterator<Item = usize> {
        self.outputs.iter().copied()
    }

    /// How many counts by block there are.
    pub(crate) fn blocks(&self) -> usize {
        self.lowered.blocks.len()
    }
}
