//! In the place of the compiled engine, on hosts or in builds without it: there are no passes.

use std::convert::Infallible;
use std::marker::PhantomData;

use reconverge_simt::compiling::{self, Extent};

use reconverge_simt::Level;

use super::Fast;
use super::lanes::Lanes;
use super::lower::Lowered;
use crate::flow::Flow;

impl Fast {
    /// As it is.
    pub(super) fn with_passes(self, _: Extent) -> Self {
        compiling::refuse("this build makes no code: it is made for x86-64, with the feature `compiled`");
        self
    }
}

/// There is none.
#[derive(Clone, Copy, Debug)]
pub(super) struct Passer<'a>(Infallible, PhantomData<&'a ()>);

/// What a pass works on.
#[expect(dead_code, reason = "no pass reads it")]
pub(super) struct Work<'a, 'w> {
    pub(super) lowered: &'a Lowered,
    pub(super) level: Level,
    pub(super) lanes: &'a mut Lanes<'w>,
    pub(super) flow: &'a mut Flow,
    pub(super) divergent_branches: &'a mut u64,
    pub(super) runs: &'a mut [u64],
    pub(super) budget: &'a mut u64,
    pub(super) lane_instructions: &'a mut u64,
}

/// Where the group is behind a pass.
#[expect(dead_code, reason = "no pass gives it")]
pub(super) enum Passed {
    /// Where its flow says.
    On,
    /// Its operations have run.
    Behind(u32),
    /// At its flow instruction.
    Left(u32),
}

impl Passer<'_> {
    pub(super) fn pass(&self, _: u32, _: u64, _: &Flow) -> Option<u32> {
        match self.0 {}
    }

    pub(super) fn run(&self, _: u32, _: Work<'_, '_>) -> Passed {
        match self.0 {}
    }
}
