//! In the place of the compiled engine, on hosts or in builds without it: there are no passes.

use std::convert::Infallible;
use std::marker::PhantomData;

use reconverge_simt::compiling::{self, Extent};

use super::Fast;
use super::lanes::Lanes;
use super::lower::Lowered;
use super::run::{Counts, Issued};
use crate::flow::Flow;
use crate::wave::Wave;
use reconverge_simt::Level;

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
    pub(super) wave: &'a mut Wave,
    pub(super) counts: &'a mut Counts,
    pub(super) issued: &'a mut Issued,
    pub(super) budget: u64,
}

impl Passer<'_> {
    pub(super) fn pass(&self, _: usize, _: u64, _: &Flow) -> Option<u32> {
        match self.0 {}
    }

    pub(super) fn run(&self, _: u32, _: Work<'_, '_>) {
        match self.0 {}
    }
}
