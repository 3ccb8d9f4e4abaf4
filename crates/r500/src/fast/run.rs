//! Runs groups to their end. If a node of compiled code begins at the current block, the node runs. Otherwise, the
//! block runs.

use std::ops::ControlFlow;

use reconverge_simt::{FlowView, Machine, Mask, Observer, Path, Silent, Trap, stop};

use super::Fast;
use super::compiled::{Exit, Runner};
use super::cursor::{Company, Cursor, NOWHERE, Stop, announce_path};
use super::lower::NONE;
use crate::cause::Cause;
use crate::group::{Group, Parted};

impl Fast {
    /// Runs a [prepared](Fast::prepare) group for up to `most` instructions. Adds the runs of each block to `runs`.
    /// Reports issues, divergence and stack changes to the observer. Data events are reported only for instructions
    /// that the reference interpreter executes.
    ///
    /// # Errors
    /// Returns an error if an instruction traps.
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

    /// Runs several groups together to their end, or until a [stop] is requested. `group` holds the lanes of all these
    /// groups, and must be [prepared](Fast::prepare). Adds the runs of each block to `runs`, once for each group. The
    /// counts of lanes and of divergence in `group` cover all groups. The count of instructions in `group` is that of a
    /// single group. Calls `ended` for groups that have ended. Returns `None` if a group traps or needs the reference
    /// interpreter. The caller then has to run the groups separately.
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

    /// Runs the next instruction of groups that run together. At this instruction, either all groups jump or no group
    /// jumps.
    fn run_one(&self, group: &mut Group, runs: &mut [u64], all: Mask) -> Option<()> {
        let end = group.statistics.instructions + 1;
        let stop = self.run_blocks(group, runs, end, Some(Company { all, waiting: NOWHERE }), &mut Silent);
        matches!(stop, Stop::Over).then_some(())
    }

    /// Runs blocks until the group has issued `end` instructions or the cursor returns a reason to stop.
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
        // If groups run together, compiled code counts one run for all these groups. A later multiplication by the
        // number of groups assumes one group or a full row of groups. So compiled code runs only for one group or for a
        // full row of groups.
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
        // If the budget is used up, the reference interpreter must not execute another instruction.
        let over = statistics.instructions >= end || group.flow.issue().is_none();
        if over && matches!(stop, Stop::Reference) { Stop::Over } else { stop }
    }
}

/// Runs compiled code, the next block, or one instruction of the next block. Does not run compiled code if there is an
/// observer.
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
