//! Both engines side by side: after every instruction everything that it may have changed is compared.
//!
//! Two copies of each wavefront run, one instruction at a time. Compared are how the instruction ended, who is next and
//! for which lanes, masks and stack, registers, predicates, exports, memory, counts; at the end everything that is
//! left, with the fidelity report. The first difference is the result, as [`Cause::Engines`].

use std::fmt;
use std::mem::take;

use reconverge_simt::engine::Views;
use reconverge_simt::{FlowView, Issue, Lane, Machine, Mask, Silent, Statistics, Step, Trap};
use thiserror::Error;

use super::Fast;
use super::run::Runner;
use crate::flow::Flow;
use crate::launch::{LANES, Outcome};
use crate::memory::Simd;
use crate::reference::{At, Cause, Wave, register_rows};
use crate::run::Origin;

/// What the engines disagree about.
#[derive(Clone, Debug, PartialEq)]
pub enum Differs {
    /// How the instruction ended.
    Step(Box<Views<Result<Step, Trap<Cause>>>>),
    /// Where the wavefront stands, and for which lanes.
    Issue(Views<Option<Issue>>),
    /// Masks, states, stack, loop registers.
    Flow(Box<Views<Flow>>),
    /// A register component; rows count the allocated registers' components, then those of clause temporaries.
    Register {
        /// The row.
        row: usize,
        /// The lane.
        lane: Lane,
        /// Its bits.
        value: Views<u32>,
    },
    /// The predicates of the clause.
    Predicate(Views<Mask>),
    /// Exports, memory, emitted vertices or acknowledges.
    Effects,
    /// What was counted.
    Statistics(Views<Statistics>),
    /// What all wavefronts left.
    Outcome(Box<Views<Outcome>>),
}

/// The first difference between the engines: a defect of one of them, not of the program.
#[derive(Clone, Debug, PartialEq, Error)]
pub struct Difference {
    /// The number of the wavefront's first lane in the whole launch.
    pub first_lane: usize,
    /// Where it stood.
    pub at: Option<Issue>,
    /// What differs.
    pub what: Differs,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Difference { first_lane, at, what } = self;
        write!(f, "the engines differ in the wavefront of lane {first_lane}")?;
        if let Some(Issue { pc, mask }) = at {
            write!(f, ", at {pc} for lanes {mask}")?;
        }
        match what {
            Differs::Register { row, lane, value: Views { reference, fast } } => {
                let (register, chan) = (row / 4, char::from(b"xyzw"[row % 4]));
                write!(f, ": R{register}.{chan} of lane {} is {reference:#x}, fast {fast:#x}", lane.0)
            }
            other => write!(f, ": {other:?}"),
        }
    }
}

/// [`crate::launch::run`] on both engines.
pub(crate) fn run(origin: &Origin, fast: &Fast, simd: &mut Simd) -> Result<Outcome, Trap<Cause>> {
    let mut runner = Runner::new(fast);
    let mut outcomes = [Outcome::default(), Outcome::default()];
    let mut simds = [simd.clone(), take(simd)];
    for place in origin.places() {
        let mut waves = [(); 2].map(|()| origin.wave(place, fast.room()));
        for (wave, simd) in waves.iter_mut().zip(&mut simds) {
            wave.set_simd(take(simd));
        }
        let [reference, other] = &mut waves;
        while step(&mut runner, reference, other)? == Step::Running {}
        let [reference, other] = waves;
        simds = [reference.finish(&mut outcomes[0]), other.finish(&mut outcomes[1])];
    }
    let [reference, mut other] = outcomes;
    runner.counts().settle(fast, &mut other.fidelity);
    if reference != other || simds[0] != simds[1] {
        let first_lane = origin.launch.first_lane;
        let what = Differs::Outcome(Box::new(Views { reference, fast: other }));
        return Err(trap(Difference { first_lane, at: None, what }));
    }
    [*simd, _] = simds;
    Ok(reference)
}

fn trap(difference: Difference) -> Trap<Cause> {
    let (pc, lanes) = difference.at.map_or((0, Mask::NONE), |at| (at.pc, at.mask));
    Trap { pc, lanes, cause: Cause::Engines(Box::new(difference)) }
}

/// One instruction on both.
fn step(runner: &mut Runner<'_>, reference: &mut Wave, fast: &mut Wave) -> Result<Step, Trap<Cause>> {
    let at = reference.issue();
    let first_lane = reference.first_lane();
    let wanted = reference.step(&mut Silent);
    let found = runner.step(fast);
    let what = if wanted != found {
        Some(Differs::Step(Box::new(Views { reference: wanted.clone(), fast: found })))
    } else {
        compare(runner, reference, fast)
    };
    match what {
        Some(what) => Err(trap(Difference { first_lane, at, what })),
        None => wanted,
    }
}

/// What differs between two wavefronts.
fn compare(runner: &Runner<'_>, reference: &Wave, fast: &Wave) -> Option<Differs> {
    let rows = register_rows(&reference.launch);
    for row in 0..rows {
        let (a, b) = (&reference.registers[row].0, &fast.registers[row].0);
        if let Some(lane) = (a != b).then(|| (0..LANES).find(|lane| a[*lane] != b[*lane])).flatten() {
            let value = Views { reference: a[lane], fast: b[lane] };
            return Some(Differs::Register { row, lane: Lane(lane as u8), value });
        }
    }
    if reference.flow != fast.flow {
        let views = Views { reference: reference.flow.clone(), fast: fast.flow.clone() };
        return Some(Differs::Flow(Box::new(views)));
    }
    let (a, b) = (reference.issue(), fast.issue());
    if a != b {
        return Some(Differs::Issue(Views { reference: a, fast: b }));
    }
    if matches!(reference.at, At::Group(_)) && reference.clause.predicate != runner.predicate() {
        let views = Views { reference: reference.clause.predicate, fast: runner.predicate() };
        return Some(Differs::Predicate(views));
    }
    if reference.statistics != fast.statistics {
        let views = Views { reference: reference.statistics, fast: fast.statistics };
        return Some(Differs::Statistics(views));
    }
    let same = reference.exports == fast.exports
        && reference.spaces == fast.spaces
        && reference.simd == fast.simd
        && reference.emissions == fast.emissions
        && reference.acknowledges == fast.acknowledges;
    (!same).then_some(Differs::Effects)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::chip::Chip;
    use crate::code::Code;
    use crate::launch::{Launch, Options, Stage};
    use crate::text::assemble;

    /// Two instructions into a clause, with a change to the wavefront of one engine in between.
    fn after(change: impl FnOnce(&mut Wave)) -> Option<Differs> {
        let source = "ALU:\n 0 x: MOV R0.x, 1.0\n 1 y: MOV R0.y, R0.x\nEXPORT_DONE: PIXEL[0], R0.xyzw END_OF_PROGRAM\n";
        let words = assemble(source, Chip::RV770).expect("it assembles").words;
        let launch = Arc::new(Launch::new(Chip::RV770, Stage::Pixel, 64));
        let code = Arc::new(Code::new(&words, 0, launch.code_options()));
        let origin = Origin { code, fetch_code: None, launch, options: Options::STRICT };
        let lowered = Fast::new(&origin);
        let mut runner = Runner::new(&lowered);
        let [mut reference, mut fast] = [(); 2].map(|()| origin.wave(0, lowered.room()));
        for _ in 0..2 {
            assert_eq!(step(&mut runner, &mut reference, &mut fast), Ok(Step::Running));
        }
        change(&mut fast);
        match step(&mut runner, &mut reference, &mut fast) {
            Ok(_) => None,
            Err(Trap { cause: Cause::Engines(difference), .. }) => Some(difference.what),
            Err(trap) => panic!("{trap}"),
        }
    }

    #[test]
    fn lockstep_finds_the_first_bit_that_differs() {
        assert_eq!(after(|_| {}), None);
        let value = Views { reference: 0, fast: 4 };
        assert_eq!(
            after(|wave| wave.registers[5].0[63] = 4),
            Some(Differs::Register { row: 5, lane: Lane(63), value })
        );
        assert!(matches!(after(|wave| wave.flow.kill_lanes(Mask(1))), Some(Differs::Flow(_))));
        assert!(matches!(after(|wave| wave.acknowledges += 1), Some(Differs::Effects)));
        assert!(matches!(
            after(|wave| wave.statistics.divergent_branches += 1),
            Some(Differs::Statistics(_))
        ));
    }
}
