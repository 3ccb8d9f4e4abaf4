//! The fast engine: whole rows at a time, everything that can be known beforehand settled once a program.
//!
//! | read | for |
//! |---|---|
//! | `lower` | from instructions to blocks of operations |
//! | `lanes` | what an operation is, and how one body becomes code for each level of vector instructions |
//! | `kernels`, `bodies` | the operations |
//! | `usual` | f32 sums and products where no lane is an exception |
//! | `memory` | loads and stores of a warp |
//! | [`lockstep`] | both engines side by side |
//! | `run` | blocks one after another; what control flow does between them |
//!
//! It shares [`crate::flow`], [`crate::lane`], memory and launches with the reference interpreter and leaves the same
//! registers, memory, counts and traps. What it does not know it gives to the reference interpreter, one instruction
//! at a time.

// Code compiled for a processor's extensions is unsafe to call, and rows are found without a check: each place says why
// that is sound.
#![allow(unsafe_code)]

mod bodies;
mod kernels;
mod lanes;
pub mod lockstep;
mod lower;
mod memory;
mod run;
mod usual;

use reconverge_simt::Level;

use crate::block::Common;
use crate::launch::Context;
use crate::state::Warp;
use lower::Lowered;
pub(crate) use run::Running;

/// A program lowered for a launch.
#[derive(Clone, Debug)]
pub struct Fast {
    lowered: Lowered,
    level: Level,
}

impl Fast {
    /// Lowers the program of a launch whose threads have `registers` general registers and whose blocks have
    /// `shared_bytes` of s[].
    pub fn new(context: &Context, registers: usize, shared_bytes: usize, level: Level) -> Self {
        Fast { lowered: lower::lower(context, registers, shared_bytes, level), level }
    }

    /// Gives a warp the room that its operations use.
    pub fn prepare(&self, warp: &mut Warp) {
        warp.add_room(&self.lowered.room);
    }

    /// How many basic blocks there are: the length of [`Common::runs`].
    pub fn blocks(&self) -> usize {
        self.lowered.blocks.len()
    }

    /// Adds the counts that were kept by basic block to those by word.
    pub fn settle(&self, common: &mut Common) {
        for (inside, runs) in self.lowered.inside.iter().zip(&mut common.runs) {
            for place in &inside.places {
                common.issued[*place] += *runs;
            }
            *runs = 0;
        }
    }

    /// Places of the code whose instruction the reference interpreter executes: what has no fast way yet.
    pub fn by_reference(&self) -> Vec<usize> {
        let blocks = self.lowered.blocks.iter().zip(&self.lowered.inside);
        let last = |(block, inside): (&lower::Block, &lower::Inside)| match block.last {
            lower::Last::Reference => inside.places.last().copied(),
            _ => None,
        };
        blocks.filter_map(last).collect()
    }
}
