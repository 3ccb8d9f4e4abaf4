//! A group on both engines, for the loop of [`reconverge_simt::lockstep`].

use reconverge_simt::lockstep::{self, Differs, Failure, Stretch, Twin, check, check_rows};
use reconverge_simt::{FlowView, GroupId, Issue, Machine, Observer, Shares, Step, Trap};

use super::Fast;
use crate::cause::Cause;
use crate::group::{DEPTH_ROW, Group, ROWS};
use crate::inst::TEMPORARIES;
use crate::launch::{RunError, trapped};
use crate::setup::Setup;

/// A group twice.
struct Both<'a> {
    engine: &'a Fast,
    first_lane: usize,
    reference: Group,
    fast: Group,
    /// The fast engine's counts by block.
    runs: Vec<u64>,
}

impl<'a> Both<'a> {
    fn new(engine: &'a Fast, first_lane: usize, reference: Group) -> Both<'a> {
        let mut fast = reference.clone();
        engine.prepare(&mut fast);
        Both { engine, first_lane, reference, fast, runs: vec![0; engine.blocks()] }
    }
}

/// A row as a message names it.
fn name(row: usize) -> String {
    let channel = ['r', 'g', 'b', 'a'][row % 4];
    match row / 4 {
        _ if row == DEPTH_ROW => "the depth output".to_owned(),
        temp @ 0..TEMPORARIES => format!("temp[{temp}].{channel}"),
        target => format!("out[{}].{channel}", ['A', 'B', 'C', 'D'][target - TEMPORARIES]),
    }
}

impl Twin for Both<'_> {
    type Cause = Cause;

    fn group(&self) -> GroupId {
        GroupId::Lanes { first: self.first_lane }
    }

    fn issue(&self) -> Option<Issue> {
        self.reference.issue()
    }

    fn reference<O: Observer>(&mut self, observer: &mut O) -> Result<Step, Trap<Cause>> {
        self.reference.step(observer)
    }

    fn fast<O: Observer>(&mut self, most: u64, observer: &mut O) -> Stretch<Cause> {
        let before = self.fast.statistics.instructions;
        let end = self.engine.run(&mut self.fast, &mut self.runs, most, observer);
        let end = end.map(|()| if self.fast.issue().is_some() { Step::Running } else { Step::Done });
        Stretch { instructions: self.fast.statistics.instructions - before, end }
    }

    fn compare(&mut self, end: &Result<Step, Trap<Cause>>) -> Result<(), Differs> {
        let (reference, fast) = (&self.reference, &mut self.fast);
        check("the flow state", &reference.flow, &fast.flow)?;
        check_rows(&reference.rows.rows()[..ROWS], &fast.rows.rows()[..ROWS], reference.lanes, name)?;
        check("the predicate bits", &reference.predicate, &fast.predicate)?;
        check("the ALU result", &reference.alu_result, &fast.alu_result)?;
        check("the lanes with an ALU result", &reference.alu_result_valid, &fast.alu_result_valid)?;
        check("the written outputs", &reference.written, &fast.written)?;
        check("the killed lanes", &reference.killed, &fast.killed)?;
        check("the counts", &reference.statistics, &fast.statistics)?;
        if *end == Ok(Step::Running) {
            return Ok(());
        }
        self.engine.settle(fast, &mut self.runs);
        check("the counts by slot", &reference.issued, &fast.issued)?;
        let (Some(a), Some(b)) = (&reference.memory, &fast.memory) else { return Ok(()) };
        match (0..a.memory.len()).find(|address| a.memory[*address] != b.memory[*address]) {
            Some(address) => {
                check(&format!("byte {address} of memory"), &a.memory[address], &b.memory[address])
            }
            None => Ok(()),
        }
    }
}

/// Runs a group to its end on both engines. `start` gives it at its start. Gives the reference interpreter's.
pub(crate) fn run(
    engine: &Fast,
    setup: &Setup,
    first_lane: usize,
    start: impl Fn() -> Group,
    shares: &mut Shares,
) -> Result<Group, RunError> {
    let seed = lockstep::seed(&setup.words(), first_lane as u64);
    match lockstep::run(|| Both::new(engine, first_lane, start()), seed, shares) {
        Ok(both) => Ok(both.reference),
        Err(Failure::Trap(_, trap)) => Err(trapped(first_lane, trap)),
        Err(Failure::Differ(difference)) => Err(RunError::Differ(difference)),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use reconverge_simt::{Mask, Options};

    use super::*;
    use crate::launch::Launch;

    #[test]
    fn a_difference_in_a_register_is_named_as_the_text_names_it() {
        let program = crate::text::assemble("OUT nop\n").expect("it assembles").program;
        let setup = Arc::new(Setup::new(&program).expect("a program"));
        let (launch, options) = (Launch { lanes: 4, ..Launch::default() }, Options::default());
        let engine = Fast::new(&setup, &launch, &options);
        let mut both = Both::new(&engine, 0, launch.group(&setup, &options, 0, Mask::first(4)));
        assert_eq!(both.compare(&Ok(Step::Running)), Ok(()));
        both.fast.rows[5][2] = 1;
        let [what, reference, fast] = ["temp[1].g of lane 2", "0x0", "0x1"].map(str::to_owned);
        assert_eq!(both.compare(&Ok(Step::Running)), Err(Differs { what, reference, fast }));
        assert_eq!(
            (name(DEPTH_ROW), name(4 * TEMPORARIES + 7)),
            ("the depth output".into(), "out[B].a".into())
        );
    }
}
