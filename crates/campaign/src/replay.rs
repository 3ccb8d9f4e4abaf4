//! Repeats one experiment for inspection. Provides two launches that are ready to run. One launch has the fault. The
//! other launch does not have the fault.
//!
//! The launch with the fault is an ordinary [`Session`]. So debuggers, pages and traces do not need special support for
//! faults. The session runs one instruction at a time. At the step of the fault, the session changes the state.

use std::ops::Range;
use std::sync::Arc;

use reconverge_isa::Program;
use reconverge_simt::{Event, FlowView, Lane, Options, Statistics, Watch};
use reconverge_workbench::Error as LaunchError;
use reconverge_workbench::faults::{Kind, Word};
use reconverge_workbench::session::{
    Inspect, Outcome, Ready, Register, RegisterClass, Session, Space, Stepping, Steps,
};

use crate::experiment::{ChosenFault, Record};
use crate::spot::Flaw;

/// An experiment that is ready for inspection.
pub struct Replay {
    /// The fault, and the outcome.
    pub record: Record,
    /// The launch without the fault.
    pub golden: Session,
    /// The launch with the fault.
    pub faulty: Session,
    /// The program of both launches.
    pub program: Program,
    /// Options of both runs. A group that issues more instructions than the limit (fuel) counts as hung.
    pub options: Options,
}

/// A fault of a launch. A fault consists of the change of the state, and the step at which the state changes.
#[derive(Debug)]
struct When {
    flaw: Flaw,
    /// Number of instructions that the launch issues before the change.
    at: u64,
    program: Program,
}

/// A launch with a fault.
struct FaultyLaunch {
    inner: Session,
    when: Arc<When>,
}

/// Returns the launch with the fault of an experiment. `inner` is the launch without the fault.
pub(crate) fn with_fault(inner: Session, chosen: &ChosenFault, program: &Program) -> Session {
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
        let when = self.when.clone();
        let mut steps = FaultySteps { inner, when, made: false, ran: false, unsaid: Vec::new() };
        steps.settle();
        Ok(Box::new(steps))
    }
}

/// The step-by-step run of a launch with a fault.
struct FaultySteps {
    inner: Stepping,
    when: Arc<When>,
    made: bool,
    /// Whether the group of the fault has issued an instruction.
    ran: bool,
    /// Writes of the fault to registers. The observer has not received these writes yet. The writes belong to the group
    /// of the fault.
    unsaid: Vec<Event>,
}

impl FaultySteps {
    /// Applies the change when the launch reaches the step of the fault. After each later step, restores the stuck
    /// bits.
    fn settle(&mut self) {
        let When { flaw, at, program } = &*self.when;
        let changed = if self.made {
            flaw.hold(&mut self.inner, program)
        } else if self.inner.statistics().instructions >= *at {
            self.made = true;
            flaw.apply(&mut self.inner, program)
        } else {
            false
        };
        if changed && self.ran {
            self.unsaid.extend(flaw.written(&self.inner));
        }
    }

    /// Sends the fault's register writes to an observer, if `group` is the group of the fault.
    fn tell(&mut self, observer: &mut dyn FnMut(Event), group: Option<usize>) {
        if group == Some(self.when.flaw.group) {
            self.unsaid.drain(..).for_each(observer);
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
        Box::new(FaultySteps {
            inner: self.inner.copy(),
            when: self.when.clone(),
            made: self.made,
            ran: self.ran,
            unsaid: self.unsaid.clone(),
        })
    }

    fn shape(&self) -> (usize, usize) {
        self.inner.shape()
    }

    fn groups(&self) -> usize {
        self.inner.groups()
    }

    fn groups_per_block(&self) -> Option<usize> {
        self.inner.groups_per_block()
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
        let group = self.inner.current();
        self.tell(observer, group);
        Steps::step(&mut *self.inner, observer)?;
        self.ran |= group == Some(self.when.flaw.group);
        self.settle();
        self.tell(observer, group);
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
