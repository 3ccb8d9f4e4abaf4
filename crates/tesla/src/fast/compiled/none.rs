//! In the place of the compiled engine, on hosts or in builds without it: there are no passes.

use std::convert::Infallible;
use std::marker::PhantomData;

use reconverge_simt::compiling::{self, Extent};

use reconverge_simt::Statistics;

use super::Fast;
use super::lanes::Lanes;
use super::lower::Lowered;
use super::words::Reach;
use crate::context::Context;
use crate::flow::Flow;

impl Fast {
    /// As it is.
    pub(super) fn with_passes(self, _: &Context, _: usize, _: Extent) -> Self {
        compiling::refuse("this build makes no code: it is made for x86-64, with the feature `compiled`");
        self
    }
}

/// There is none.
pub(super) struct Runner<'a>(Infallible, PhantomData<&'a ()>);

/// What a pass works on.
#[expect(dead_code, reason = "no pass reads it")]
pub(super) struct Work<'a, 'w> {
    pub(super) lowered: &'a Lowered,
    pub(super) lanes: &'a mut Lanes<'w>,
    pub(super) memory: &'a mut dyn Reach,
    pub(super) flow: &'a mut Flow,
    pub(super) statistics: &'a mut Statistics,
    pub(super) runs: &'a mut [u64],
    pub(super) budget: &'a mut u32,
    pub(super) active: &'a mut u32,
}

/// Where the warp is behind a pass.
pub(super) enum Passed {
    /// Before this block.
    Before(u32),
    /// Behind this block, whose flow has not been asked.
    #[expect(dead_code, reason = "no pass gives it")]
    Behind(u32),
    /// At the load or store at the end of this block, which some lane cannot do.
    #[expect(dead_code, reason = "no pass gives it")]
    Refused(u32),
    /// Before this block, which runs without a pass.
    Apart(u32),
}

impl Runner<'_> {
    pub(super) fn pass(&self, _: u32, _: u32, _: &Flow) -> Option<u32> {
        match self.0 {}
    }

    pub(super) fn run(&mut self, _: u32, _: Work<'_, '_>) -> Passed {
        match self.0 {}
    }
}
