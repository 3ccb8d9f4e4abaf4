//! Runs each wavefront in lockstep on the reference interpreter and on the fast engine. See
//! [`reconverge_simt::lockstep`].

use std::cell::RefCell;

use reconverge_simt::compiling::Extent;
use reconverge_simt::lockstep::{self, Differs, Stretch, Twin, check, check_rows};
use reconverge_simt::{Difference, FlowView, GroupId, Issue, Machine, Mask, Observer, Shares, Step, Trap};

use super::Fast;
use super::counts::Counts;
use super::runner::Runner;
use crate::cause::Cause;
use crate::launch::LaunchError;
use crate::memory::Simd;
use crate::outcome::{Executed, Outcome};
use crate::wave::{At, Origin, PREVIOUS, Wave};

type RunError = reconverge_simt::RunError<LaunchError, Cause>;

/// Runs a launch in lockstep on the reference interpreter and on the fast engine. `made` returns the fast engine with
/// compiled code of the requested extent. This function adds the instruction counts of the fast engine to `shares`.
pub(crate) fn run(
    origin: &Origin,
    fast: &Fast,
    simd: &mut Simd,
    words: &[u32],
    made: impl Fn(Extent) -> Fast,
    shares: &mut Shares,
) -> Result<Outcome, RunError> {
    let mut outcome = Outcome::default();
    // All wavefronts share one runner, as in a normal run.
    let runner = RefCell::new(Runner::new(fast, &origin.launch.environment, Counts::new(fast)));
    for place in origin.places() {
        let make = || Pair::new(origin, fast, &runner, place, simd);
        let first = origin.launch.first_lane + place;
        let pair = lockstep::run(make, lockstep::seed(words, first as u64), shares);
        let again = |extent, known: &Difference| {
            let fast = made(extent);
            let runner = RefCell::new(Runner::new(&fast, &origin.launch.environment, Counts::new(&fast)));
            let cut = extent.cuts_blocks();
            lockstep::again(|| Pair { cut, ..Pair::new(origin, &fast, &runner, place, simd) }, known)
        };
        let pair = pair.map_err(|failure| failure.first(fast.compiled.is_some(), again))?;
        *simd = pair.reference.finish(&mut outcome);
    }
    Ok(outcome)
}

/// One wavefront with two states: the state on the reference interpreter, and the state on the fast engine.
struct Pair<'a> {
    reference: Wave,
    fast: Wave,
    engine: &'a Fast,
    runner: &'a RefCell<Runner<'a>>,
    /// Whether compiled code may end inside a clause. After such an end, lockstep compares only the registers. The fast
    /// engine then continues with a copy of the reference interpreter's wavefront.
    cut: bool,
}

impl<'a> Pair<'a> {
    fn new(
        origin: &Origin,
        engine: &'a Fast,
        runner: &'a RefCell<Runner<'a>>,
        place: usize,
        simd: &Simd,
    ) -> Pair<'a> {
        runner.borrow_mut().counts = Counts::new(engine);
        let wave = || {
            let (mut wave, _) = engine.wave(origin);
            wave.restart(place);
            wave.set_simd(simd.clone());
            wave
        };
        Pair { reference: *wave(), fast: *wave(), engine, runner, cut: false }
    }
}

impl Twin for Pair<'_> {
    type Cause = Cause;

    fn group(&self) -> GroupId {
        self.reference.group_id()
    }

    fn issue(&self) -> Option<Issue> {
        self.reference.issue()
    }

    fn reference<O: Observer>(&mut self, observer: &mut O) -> Result<Step, Trap<Cause>> {
        self.reference.step(observer)
    }

    fn fast<O: Observer>(&mut self, most: u64, observer: &mut O) -> Stretch<Cause> {
        let before = self.fast.statistics().instructions;
        let end = self.runner.borrow_mut().run(self.engine, &mut self.fast, most, observer);
        Stretch { instructions: self.fast.statistics().instructions - before, end }
    }

    fn compare(&mut self, end: &Result<Step, Trap<Cause>>) -> Result<(), Differs> {
        let (reference, fast) = (&self.reference, &self.fast);
        if end.is_err() {
            return Ok(());
        }
        if self.cut && matches!(fast.at, At::Group(_)) {
            let rows = reference.launch.environment.register_rows();
            check_rows(&reference.registers[..rows], &fast.registers[..rows], Mask(u64::MAX), |row| {
                reference.launch.environment.row_name(row)
            })?;
            self.fast = self.reference.clone();
            return Ok(());
        }
        check("the program counter", &reference.flow.pc(), &fast.flow.pc())?;
        check("the states of the lanes", &reference.flow.states(), &fast.flow.states())?;
        check("the valid lanes", &reference.flow.valid(), &fast.flow.valid())?;
        check("the stack", reference.flow.entries(), fast.flow.entries())?;
        check("the flow state", &reference.flow, &fast.flow)?;
        check("the next instruction", &reference.at, &fast.at)?;
        check("the counts", &reference.statistics, &fast.statistics)?;
        // Outside a clause, PV and PS are not valid, so lockstep does not compare PV and PS.
        let inside = matches!(reference.at, At::Group(_));
        let rows = reference.launch.environment.register_rows() + if inside { PREVIOUS } else { 0 };
        check_rows(&reference.registers[..rows], &fast.registers[..rows], Mask(u64::MAX), |row| {
            reference.launch.environment.row_name(row)
        })?;
        if inside {
            check("the state of the clause", &reference.clause, &fast.clause)?;
        }
        check("what texture instructions have loaded", &reference.held, &fast.held)?;
        check("the exports", &reference.exports, &fast.exports)?;
        check("the memory of lanes", &reference.spaces, &fast.spaces)?;
        check("the memory that wavefronts share", &reference.simd, &fast.simd)?;
        check("the emitted vertices", &reference.emissions, &fast.emissions)?;
        check("the acknowledges", &reference.acknowledges, &fast.acknowledges)?;
        if *end == Ok(Step::Done) && !self.cut {
            let mut executed = Executed::default();
            executed.add(&fast.fidelity);
            self.runner.borrow_mut().counts.settle(self.engine, &mut executed);
            check("the fidelity", &reference.fidelity, &executed)?;
        }
        self.fast.flow.take_last_active(&self.reference.flow);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use reconverge_isa::Program;
    use reconverge_simt::{Options, Path};

    use super::*;
    use crate::chip::Chip;
    use crate::launch::{Launch, Stage};
    use crate::text::assemble;

    /// The program has a clause of one run, a clause of several runs, and control flow. The program also has
    /// instructions that the reference interpreter runs.
    const SOURCE: &str =
        "ALU_PUSH_BEFORE:\n 0 x: MOV R0.x, 1.0\n 1 x: PRED_SETGT _.x, R0.x, 0 UPDATE_EXEC_MASK
        JUMP: ADDR(@on) POP_CNT(1)\n@on:\nALU:\n 2 x: KILLGT _.x, 0, R0.x\n 3 y: MOV R0.y, R0.x
        POP: POP_CNT(1)\nWAIT_ACK:\nEXPORT_DONE: PIXEL[0], R0.xyzw END_OF_PROGRAM\n";

    fn with<T>(act: impl FnOnce(&Origin, &Fast, &[u32]) -> T) -> T {
        let program = Program::from_words(assemble(SOURCE, Chip::RV770).expect("it assembles").words);
        let launch = Launch::new(Chip::RV770, Stage::Pixel, 64);
        let origin = Origin::new(&program, launch, &Options::default());
        act(&origin, &Fast::new(&origin), &program.words)
    }

    #[test]
    fn lockstep_runs_the_fast_engine_by_its_normal_paths_and_counts_them() {
        with(|origin, fast, words| {
            let mut shares = Shares::default();
            for seed in 0..64 {
                let words = [words, &[seed]].concat();
                run(origin, fast, &mut Simd::default(), &words, |_| fast.clone(), &mut shares)
                    .expect("the engines agree");
            }
            assert_eq!(shares.total(), 64 * 10);
            for path in [Path::Clause, Path::Block, Path::Single, Path::Reference] {
                assert!(shares.of(path) > 64, "{shares}");
            }
            assert_eq!(shares.of(Path::Other), 0);
        });
    }

    /// Runs a program in lockstep. Before lockstep compares the first clause, the function calls `change` on the fast
    /// engine's wavefront. Returns the difference that lockstep reports.
    fn after(change: impl FnOnce(&mut Wave)) -> Option<String> {
        with(|origin, fast, _| {
            let runner = RefCell::new(Runner::new(fast, &origin.launch.environment, Counts::new(fast)));
            let mut pair = Pair::new(origin, fast, &runner, 0, &Simd::default());
            let stretch = pair.fast(3, &mut Shares::default());
            assert_eq!(stretch, Stretch { instructions: 3, end: Ok(Step::Running) });
            for _ in 0..3 {
                pair.reference(&mut Shares::default()).expect("it runs");
            }
            change(&mut pair.fast);
            pair.compare(&Ok(Step::Running)).err().map(|differs| differs.what)
        })
    }

    #[test]
    fn everything_that_a_wavefront_has_is_compared() {
        assert_eq!(after(|_| {}), None);
        let what = |change: fn(&mut Wave)| after(change).expect("it differs");
        assert_eq!(what(|wave| wave.registers[5].0[63] = 4), "R1.y of lane 63");
        assert_eq!(what(|wave| wave.registers[124 * 4].0[0] = 4), "R124.x of lane 0");
        assert_eq!(what(|wave| wave.flow.kill_lanes(Mask(1))), "the valid lanes");
        assert_eq!(what(|wave| wave.acknowledges += 1), "the acknowledges");
        assert_eq!(what(|wave| wave.statistics.divergent_branches += 1), "the counts");
        assert_eq!(what(|wave| wave.simd.scatter.push(1)), "the memory that wavefronts share");
    }

    /// The program adds, but the compiled code multiplies. Lockstep finds the difference after the clause, and the
    /// report names the group.
    #[test]
    fn a_group_whose_code_is_wrong_is_named() {
        let program = |wrong: &str| {
            let text = format!(
                "ALU:\n 0 x: MOV R0.x, 1.0\n 1 y: {wrong} R0.y, R0.x, R0.x\n 2 z: ADD R0.z, R0.y, R0.x\n \
                 3 w: ADD R0.w, R0.z, R0.x\nEXPORT_DONE: PIXEL[0], R0.xyzw END_OF_PROGRAM\n"
            );
            Program::from_words(assemble(&text, Chip::RV770).expect("it assembles").words)
        };
        let [program, other] = ["ADD", "MUL"].map(program);
        let launch = || Launch::new(Chip::RV770, Stage::Pixel, 64);
        let [origin, other] = [&program, &other].map(|it| Origin::new(it, launch(), &Options::default()));
        let made = |extent: Extent| Fast {
            compiled: Fast::new(&other).compiled(extent).compiled,
            ..Fast::new(&origin)
        };
        let fast = made(Extent::Throughout);
        if fast.compiled.is_none() {
            return;
        }
        let mut found = 0;
        for seed in 0..16 {
            let words = [&program.words[..], &[seed]].concat();
            match run(&origin, &fast, &mut Simd::default(), &words, made, &mut Shares::default()) {
                Ok(_) => {}
                Err(RunError::Differ(difference)) => {
                    found += 1;
                    // The range contains the clause and its first group.
                    assert_eq!(difference.instructions, 0..3, "{difference}");
                    let mask = Mask(u64::MAX);
                    let pc = fast.lowered.addresses[1];
                    assert_eq!(difference.at, Some(Issue { pc, mask }), "{difference}");
                    assert_eq!(difference.from, Some(Issue { pc: 0, mask }), "{difference}");
                    let Difference { what, reference, fast, .. } = &*difference;
                    assert_eq!([&**what, reference, fast], ["R0.y of lane 0", "0x40000000", "0x3f800000"]);
                }
                Err(error) => panic!("{error}"),
            }
        }
        assert!(found > 2, "{found} of 16");
    }
}
