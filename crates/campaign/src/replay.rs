//! One experiment once more, to be looked at: the launch without the fault and the launch with it, both ready.
//!
//! The faulty launch is a [`Session`] like any other, so that a debugger, a page and a trace need to know nothing of
//! faults. It steps one instruction after another and makes the change where the experiment makes it.

use std::ops::Range;
use std::sync::Arc;

use reconverge_isa::Program;
use reconverge_simt::{Event, FlowView, Lane, Options, Statistics, Watch};
use reconverge_workbench::Error as LaunchError;
use reconverge_workbench::faults::{Kind, Word};
use reconverge_workbench::session::{
    Inspect, Outcome, Ready, Register, RegisterClass, Session, Space, Stepping, Steps,
};

use crate::experiment::{Chosen, Record};
use crate::spot::Flaw;

/// An experiment, ready to be looked at.
pub struct Replay {
    /// What it did, and what became of it.
    pub record: Record,
    /// The launch without the fault.
    pub golden: Session,
    /// The launch with the fault.
    pub faulty: Session,
    /// The program of both.
    pub program: Program,
    /// How both run: a group that exceeds the fuel hangs.
    pub options: Options,
}

/// A fault of a launch: what changes, and when.
#[derive(Debug)]
struct When {
    flaw: Flaw,
    /// Instructions that have been issued by then.
    at: u64,
    program: Program,
}

/// A launch with a fault.
struct FaultyLaunch {
    inner: Session,
    when: Arc<When>,
}

/// Returns the launch with the fault of an experiment. `inner` is the launch without it.
pub(crate) fn with_fault(inner: Session, chosen: &Chosen, program: &Program) -> Session {
    let at = chosen.step + u64::from(chosen.late);
    let when = When { flaw: chosen.flaw.clone(), at, program: program.clone() };
    Session::new(FaultyLaunch { inner, when: Arc::new(when) })
}

impl Ready for FaultyLaunch {
    fn copy(&self) -> Box<dyn Ready> {
        Box::new(FaultyLaunch { inner: self.inner.copy(), when: self.when.clone() })
    }

    fn run(self: Box<Self>, options: &Options, watch: Watch<'_>) -> Result<Box<dyn Outcome>, LaunchError> {
        let mut steps = self.start(options)?;
        steps.advance(u64::MAX, watch)?;
        Ok(steps.outcome())
    }

    fn start(&self, options: &Options) -> Result<Box<dyn Steps>, LaunchError> {
        let inner = self.inner.start(options)?;
        let mut steps = FaultySteps { inner, when: self.when.clone(), made: false };
        steps.settle();
        Ok(Box::new(steps))
    }
}

/// A launch with a fault, while it is stepped.
struct FaultySteps {
    inner: Stepping,
    when: Arc<When>,
    made: bool,
}

impl FaultySteps {
    /// Makes the change if it is time, and keeps bits that are stuck.
    fn settle(&mut self) {
        let When { flaw, at, program } = &*self.when;
        if !self.made && self.inner.statistics().instructions >= *at {
            self.made = true;
            flaw.apply(&mut self.inner, program);
        } else if self.made {
            flaw.hold(&mut self.inner, program);
        }
    }
}

impl Inspect for FaultySteps {
    fn registers(&self) -> Vec<RegisterClass> {
        self.inner.registers()
    }

    fn read(&self, group: usize, register: Register) -> Option<Vec<u32>> {
        self.inner.read(group, register)
    }

    fn spaces(&self) -> Vec<Space> {
        self.inner.spaces()
    }

    fn memory(&self, space: &str, group: usize, lane: Lane, address: u32, count: usize) -> Vec<u8> {
        self.inner.memory(space, group, lane, address, count)
    }

    fn set(&mut self, group: usize, register: Register, lane: Lane, value: u32) -> bool {
        self.inner.set(group, register, lane, value)
    }

    fn store(&mut self, space: &str, group: usize, lane: Lane, address: u32, bytes: &[u8]) -> bool {
        self.inner.store(space, group, lane, address, bytes)
    }

    fn buffers(&self, space: &str, group: usize, lane: Lane) -> Vec<(String, Range<u64>)> {
        self.inner.buffers(space, group, lane)
    }

    fn words(&self, kind: Kind) -> Vec<Word> {
        self.inner.words(kind)
    }

    fn word(&self, word: &Word) -> u64 {
        self.inner.word(word)
    }

    fn set_word(&mut self, word: &Word, value: u64) {
        self.inner.set_word(word, value);
    }
}

impl Steps for FaultySteps {
    fn copy(&self) -> Box<dyn Steps> {
        Box::new(FaultySteps { inner: self.inner.copy(), when: self.when.clone(), made: self.made })
    }

    fn shape(&self) -> (usize, usize) {
        self.inner.shape()
    }

    fn groups(&self) -> usize {
        self.inner.groups()
    }

    fn current(&self) -> Option<usize> {
        self.inner.current()
    }

    fn running(&self) -> Range<usize> {
        self.inner.running()
    }

    fn view(&self, group: usize) -> Option<&dyn FlowView> {
        self.inner.view(group)
    }

    fn lanes(&self, group: usize) -> Range<usize> {
        self.inner.lanes(group)
    }

    fn step(&mut self, observer: &mut dyn FnMut(Event)) -> Result<(), LaunchError> {
        Steps::step(&mut *self.inner, observer)?;
        self.settle();
        Ok(())
    }

    fn next_words(&self) -> Option<Vec<usize>> {
        self.inner.next_words()
    }

    fn set_program(&mut self, program: &Program) -> bool {
        self.inner.set_program(program)
    }

    fn is_independent(&self) -> bool {
        self.inner.is_independent()
    }

    fn statistics(&self) -> Statistics {
        self.inner.statistics()
    }

    fn outcome(&self) -> Box<dyn Outcome> {
        self.inner.outcome()
    }
}
