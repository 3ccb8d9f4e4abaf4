//! Runs groups to their end, with code where a node begins and block by block elsewhere.

use std::ops::ControlFlow;

use reconverge_simt::{FlowView, Machine, Mask, Observer, Path, Silent, Trap, stop};

use super::Fast;
use super::compiled::{Exit, Runner};
use super::cursor::{Company, Cursor, NOWHERE, Stop, announce_path};
use super::lower::NONE;
use crate::cause::Cause;
use crate::group::{Group, Parted};

impl Fast {
    /// Runs a group that was [prepared](Fast::prepare), for up to `most` instructions. `runs` counts by block.
    /// Reports issues, divergence and stack changes; data events come only from the reference interpreter.
    ///
    /// # Errors
    /// The first trap.
    pub(crate) fn run<O: Observer>(
        &self,
        group: &mut Group,
        runs: &mut [u64],
        most: u64,
        observer: &mut O,
    ) -> Result<(), Trap<Cause>> {
        let end = group.statistics.instructions.saturating_add(most);
        while group.statistics.instructions < end && group.flow.issue().is_some() {
            match self.run_blocks(group, runs, end, None, observer) {
                Stop::Over => return Ok(()),
                Stop::Apart(_) | Stop::Met => unreachable!("the group runs alone"),
                Stop::Reference => {
                    let before = group.statistics.instructions;
                    let stepped = group.step(observer);
                    announce_path(observer, Path::Reference, group.statistics.instructions - before);
                    stepped?;
                }
                Stop::Trap(trap) => return Err(trap),
            }
        }
        Ok(())
    }

    /// Runs groups together to their end, or until a [stop] is requested. The groups are the lanes of `group`, which
    /// was [prepared](Fast::prepare). `runs` counts by block, once for each group. The counts of lanes and of
    /// divergence in `group` cover all groups; its count of instructions does not. Calls `ended` for groups that have
    /// ended. Returns `None` if the groups have to run separately because one of them traps or needs the reference
    /// interpreter.
    pub(crate) fn run_together(
        &self,
        group: &mut Group,
        runs: &mut [u64],
        mut ended: impl FnMut(&Group),
    ) -> Option<()> {
        let all = group.lanes;
        let mut waiting: Vec<Parted> = Vec::new();
        loop {
            let place = waiting.last().map_or(NOWHERE, |parted| parted.flow.pc());
            let end = group.statistics.instructions.saturating_add(stop::SLICE);
            let stop = match group.flow.issue() {
                Some(_) => {
                    self.run_blocks(group, runs, end, Some(Company { all, waiting: place }), &mut Silent)
                }
                None => Stop::Over,
            };
            match stop {
                Stop::Over if group.flow.issue().is_some() && !stop::asked() => {}
                Stop::Over => {
                    ended(group);
                    let Some(next) = waiting.pop() else { return Some(()) };
                    next.resume(group);
                }
                Stop::Apart(jumping) => {
                    let others = Parted::take(group, group.lanes - jumping);
                    self.run_one(group, runs, all)?;
                    if !waiting.last_mut().is_some_and(|parted| parted.join(group)) {
                        waiting.push(Parted::take(group, jumping));
                    }
                    others.resume(group);
                }
                Stop::Met => match waiting.pop_if(|parted| parted.join(group)) {
                    Some(joined) => joined.resume(group),
                    None => self.run_one(group, runs, all)?,
                },
                Stop::Reference | Stop::Trap(_) => return None,
            }
        }
    }

    /// Runs the next instruction of groups that run together and agree.
    fn run_one(&self, group: &mut Group, runs: &mut [u64], all: Mask) -> Option<()> {
        let end = group.statistics.instructions + 1;
        let stop = self.run_blocks(group, runs, end, Some(Company { all, waiting: NOWHERE }), &mut Silent);
        matches!(stop, Stop::Over).then_some(())
    }

    /// Runs blocks until something else has to happen, or until the group has issued `end` instructions.
    fn run_blocks<O: Observer>(
        &self,
        group: &mut Group,
        runs: &mut [u64],
        end: u64,
        company: Option<Company>,
        observer: &mut O,
    ) -> Stop {
        let before = group.statistics.instructions;
        let budget = end.min(group.watchdog).saturating_sub(before);
        // Code counts runs of all groups that fit in a row, or of one.
        let counts = company.is_none() || group.lanes == Mask::first(self.most_lanes());
        let mut runner = self.compiled.as_deref().filter(|_| counts).map(Runner::new);
        let mut cursor = Cursor::new(self, group, runs, company, budget);
        let stop = loop {
            if let ControlFlow::Break(stop) = next(runner.as_mut(), &mut cursor, observer) {
                break stop;
            }
        };
        let Cursor { budget: left, lane_instructions, .. } = cursor;
        let statistics = &mut group.statistics;
        statistics.instructions = before + (budget - left);
        statistics.lane_instructions += lane_instructions;
        // An exhausted budget takes precedence over the reference interpreter.
        let over = statistics.instructions >= end || group.flow.issue().is_none();
        if over && matches!(stop, Stop::Reference) { Stop::Over } else { stop }
    }
}

/// Runs code, the next block, or an instruction of a block. With an observer, code does not run.
#[inline(always)]
fn next<'a, O: Observer>(
    runner: Option<&mut Runner<'a>>,
    cursor: &mut Cursor<'a>,
    observer: &mut O,
) -> ControlFlow<Stop> {
    let position = cursor.enter()?;
    if !O::ENABLED
        && position.inside == 0
        && let Some(runner) = runner
        && let Some(node) = runner.node(cursor)
    {
        let left = cursor.budget;
        let exit = runner.run(node, cursor);
        announce_path(observer, Path::Compiled, left - cursor.budget);
        match exit {
            Exit::Here => {
                cursor.number = NONE;
                return ControlFlow::Continue(());
            }
            Exit::Apart(block) => cursor.number = block,
            Exit::Stop(stop) => return ControlFlow::Break(stop),
        }
    }
    cursor.run(position, observer)
}
