//! Runs a group on two engines. The loop in [`reconverge_simt::lockstep`] drives both engines.

use reconverge_simt::compiling::Extent;
use reconverge_simt::lockstep::{self, Differs, Stretch, Twin, check, check_rows};
use reconverge_simt::{Difference, FlowView, GroupId, Issue, Machine, Observer, Shares, Step, Trap};

use super::Fast;
use crate::cause::Cause;
use crate::group::{DEPTH_ROW, Group, ROWS};
use crate::inst::TEMPORARIES;
use crate::launch::RunError;
use crate::setup::Setup;

/// One group. The group has a state on the reference interpreter and a state on the fast engine.
struct Both<'a> {
    engine: &'a Fast,
    first_lane: usize,
    reference: Group,
    fast: Group,
    /// Number of runs of each block in the fast engine, followed by the counters of compiled code.
    runs: Vec<u64>,
}

impl<'a> Both<'a> {
    fn new(engine: &'a Fast, first_lane: usize, reference: Group) -> Both<'a> {
        let mut fast = reference.clone();
        engine.prepare(&mut fast);
        Both { engine, first_lane, reference, fast, runs: vec![0; engine.counts()] }
    }
}

/// Returns the name of a row for messages.
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
        self.reference.flow.issue()
    }

    fn reference<O: Observer>(&mut self, observer: &mut O) -> Result<Step, Trap<Cause>> {
        self.reference.step(observer)
    }

    fn fast<O: Observer>(&mut self, most: u64, observer: &mut O) -> Stretch<Cause> {
        let before = self.fast.statistics.instructions;
        let end = self.engine.run(&mut self.fast, &mut self.runs, most, observer);
        let end = end.map(|()| if self.fast.flow.issue().is_some() { Step::Running } else { Step::Done });
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
        self.engine.settle(fast, &mut self.runs, 1);
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

/// Runs a group on both engines until the group ends. `start` returns the group in its initial state. `made` returns
/// the fast engine with compiled code for an extent. Returns the final group of the reference interpreter.
pub(crate) fn run(
    engine: &Fast,
    setup: &Setup,
    first_lane: usize,
    start: impl Fn() -> Group,
    made: impl Fn(Extent) -> Fast,
    shares: &mut Shares,
) -> Result<Group, RunError> {
    let seed = lockstep::seed(&setup.words(), first_lane as u64);
    let both = lockstep::run(|| Both::new(engine, first_lane, start()), seed, shares);
    let again = |extent, known: &Difference| {
        let engine = made(extent);
        lockstep::again(|| Both::new(&engine, first_lane, start()), known)
    };
    Ok(both.map_err(|failure| failure.first(engine.is_compiled(), again))?.reference)
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

    /// Compares two engines whose code multiplies by different constants. The lockstep run compares states only after a
    /// block. But the message names the instruction that caused the difference.
    #[test]
    fn an_instruction_whose_code_is_wrong_is_named() {
        let setup = |factor: &str| {
            let line = |to: u32, factor: &str| {
                let from = to - 1;
                format!(
                    "ALU temp[{to}].rgb = MAD src0.rgb, src1.{factor}, src1.ggg : src0=temp[{from}] src1=const[0]\n"
                )
            };
            // Both programs use the same constants in the same order. So a constant has equal rows in both programs.
            let lines = [line(1, "rrr"), line(2, factor), line(3, "bbb")].concat();
            let text = format!(".const 0 2 0.5 1 0\n.state US_PIXSIZE 8\n{lines}OUT nop\n");
            let program = crate::text::assemble(&text).expect("it assembles").program;
            Arc::new(Setup::new(&program).expect("a program"))
        };
        let [setup, other] = ["rrr", "bbb"].map(setup);
        let (launch, options) = (Launch { lanes: 16, ..Launch::default() }, Options::default());
        let made = |extent: Extent| Fast {
            compiled: Fast::compiled(&other, &launch, &options, None, extent).compiled,
            ..Fast::lowered(&setup, &launch, &options, None, extent.cuts_blocks())
        };
        let engine = made(Extent::Throughout);
        if !engine.is_compiled() {
            return;
        }
        let start = || launch.group(&setup, &options, 0, Mask::first(16));
        let mut found = 0;
        for first_lane in 0..16 {
            match run(&engine, &setup, first_lane, start, made, &mut Shares::default()) {
                Ok(_) => {}
                Err(RunError::Differ(difference)) => {
                    found += 1;
                    assert_eq!(difference.instructions, 1..2, "{difference}");
                    assert_eq!(difference.at, Some(Issue { pc: 1, mask: Mask::first(16) }), "{difference}");
                    let Difference { what, reference, fast, .. } = &*difference;
                    assert_eq!(
                        [&**what, reference, fast],
                        ["temp[2].r of lane 0", "0x3fc00000", "0x3f800000"]
                    );
                }
                Err(error) => panic!("{error}"),
            }
        }
        assert!(found > 4, "{found} of 16");
    }
}
