//! Runs a group on two engines. The loop in [`reconverge_simt::lockstep`] drives both engines.

use reconverge_simt::lockstep::{self, Differs, Stretch, Twin, check, check_rows};
use reconverge_simt::{FlowView, GroupId, Issue, Machine, Observer, Shares, Step, Trap};

use super::Fast;
use crate::pvs::cause::Cause;
use crate::pvs::group::{Group, row_name};
use crate::pvs::launch::RunError;
use crate::pvs::setup::Setup;

/// One group. The group has a state on the reference interpreter and a state on the fast engine.
struct Both<'a> {
    engine: &'a Fast,
    first: usize,
    reference: Group,
    fast: Group,
}

impl Twin for Both<'_> {
    type Cause = Cause;

    fn group(&self) -> GroupId {
        GroupId::Lanes { first: self.first }
    }

    fn issue(&self) -> Option<Issue> {
        self.reference.flow.issue()
    }

    fn reference<O: Observer>(&mut self, observer: &mut O) -> Result<Step, Trap<Cause>> {
        self.reference.step(observer)
    }

    fn fast<O: Observer>(&mut self, most: u64, observer: &mut O) -> Stretch<Cause> {
        let before = self.fast.statistics.instructions;
        let end = self.engine.run(&mut self.fast, most, observer);
        let end = end.map(|()| if self.fast.flow.is_done() { Step::Done } else { Step::Running });
        Stretch { instructions: self.fast.statistics.instructions - before, end }
    }

    fn compare(&mut self, _: &Result<Step, Trap<Cause>>) -> Result<(), Differs> {
        let (reference, fast) = (&self.reference, &self.fast);
        check("the flow state", &reference.flow, &fast.flow)?;
        check_rows(reference.rows.rows(), fast.rows.rows(), reference.flow.lanes(), row_name)?;
        check("A0", &reference.a0, &fast.a0)?;
        check("the lanes that have written A0", &reference.a0_written, &fast.a0_written)?;
        check("the predicate bits", &reference.predicate, &fast.predicate)?;
        check("the written outputs", &reference.written, &fast.written)?;
        check("the counts", &reference.statistics, &fast.statistics)?;
        check("the counts by slot", &reference.issued, &fast.issued)
    }
}

/// Runs a group on both engines until the group ends. `start` returns the group in its initial state. The first vertex
/// of the group is `first`.
pub(crate) fn run(
    engine: &Fast,
    setup: &Setup,
    first: usize,
    start: impl Fn() -> Group,
) -> Result<Group, RunError> {
    let make = || {
        let reference = start();
        Both { engine, first, fast: reference.clone(), reference }
    };
    let seed = lockstep::seed(&setup.words(), first as u64);
    Ok(lockstep::run(make, seed, &mut Shares::default())?.fast)
}
