//! A region while a machine traces it: its segments, the steps of its flow, its calls, and their words.

use reconverge_isa::sets::SortedSet;

use reconverge_simt::compiling::Extent;

use crate::called::Callee;
use crate::machine::{Machine, callee};
use crate::region::{Back, Plan, Segment, Step};
use crate::rows::Rows;
use crate::state::{BRANCHES, LEAVES, WORDS};
use crate::strip::Value;

/// Maximum number of instructions in a region. An iteration must fit into the number that a group may run at once.
const MOST_INSTRUCTIONS: u32 = 400;

/// Number of words for lanes of branches and calls. The words after them are for lanes that exit, and are zero
/// between runs.
const COMMON_WORDS: u32 = (WORDS - LEAVES) as u32;

/// The fast or the slow path of a segment, while a machine states its instructions.
pub trait Path {
    /// Returns an empty path of the same kind.
    fn next(&self) -> Self;

    /// Returns the rows of the path.
    fn rows(&mut self) -> &mut Rows;

    /// Returns the rows at the end.
    fn into_rows(self) -> Rows;
}

/// A region that a machine has traced.
#[derive(Debug)]
pub struct Found<M: Machine> {
    pub(crate) plan: Plan,
    pub(crate) at: Vec<M::At>,
    pub(crate) calls: Vec<M::Call>,
    /// Address of the first instruction.
    pub(crate) pc: u32,
    /// Maximum number of instructions that must fit into the budget at entry.
    pub most: u32,
    /// Position of the next instruction after the region.
    pub next: u32,
    /// Data of the machine.
    pub own: M::Region,
}

/// A region while it is traced.
#[derive(Debug)]
pub struct Builder<M: Machine, P> {
    /// Fast path of the current segment.
    pub fast: P,
    /// Slow path of the current segment.
    pub slow: P,
    segments: Vec<Segment>,
    steps: Vec<Step>,
    at: Vec<M::At>,
    calls: Vec<M::Call>,
    words: u32,
    leaves: u32,
    branches: usize,
    extent: Extent,
    /// Number of operations with a template: each saves a dispatch.
    pub templates: usize,
    /// Number of instructions so far.
    pub instructions: u32,
}

/// Returns the size and the position of each run among the steps.
pub(crate) fn ran<'a, A: Copy>(steps: &'a [Step], at: &'a [A]) -> impl Iterator<Item = (u32, A)> + 'a {
    steps.iter().zip(at).filter_map(|(step, at)| match step {
        Step::Run(size) | Step::Meanwhile(size) => Some((*size, *at)),
        _ => None,
    })
}

impl<M: Machine, P: Path> Builder<M, P> {
    /// Returns an empty region, with the paths of its first segment.
    pub fn new(extent: Extent, fast: P, slow: P) -> Self {
        Builder {
            fast,
            slow,
            segments: Vec::new(),
            steps: Vec::new(),
            at: Vec::new(),
            calls: Vec::new(),
            words: 0,
            leaves: 0,
            branches: 0,
            extent,
            templates: 0,
            instructions: 0,
        }
    }

    /// Returns the maximum number of instructions of a region.
    pub fn most(&self) -> u32 {
        MOST_INSTRUCTIONS.min(self.extent.most())
    }

    /// Returns whether the region has room for more instructions, words and branches, and for one more exit.
    pub fn has_room(&self, instructions: u32, words: usize, branches: usize) -> bool {
        self.instructions + instructions <= self.most()
            && self.words as usize + words <= COMMON_WORDS as usize
            && self.leaves < LEAVES as u32
            && self.branches + branches <= BRANCHES
    }

    /// Returns the positions of the runs so far.
    pub fn ran(&self) -> impl Iterator<Item = M::At> {
        ran(&self.steps, &self.at).map(|(_, at)| at)
    }

    /// Returns whether some segment has ended.
    pub fn has_segments(&self) -> bool {
        !self.segments.is_empty()
    }

    /// Adds a step.
    pub fn step(&mut self, step: Step, at: M::At) {
        self.steps.push(step);
        self.at.push(at);
    }

    /// Calls a function for both paths.
    pub fn both(&mut self, mut each: impl FnMut(&mut P)) {
        each(&mut self.fast);
        each(&mut self.slow);
    }

    fn word(&mut self) -> u32 {
        self.words += 1;
        self.words - 1
    }

    // Flow.

    /// Opens a branch: the lanes whose condition holds run.
    pub fn open(&mut self, at: M::At, mut condition: impl FnMut(&mut P) -> Value) {
        let word = self.word();
        self.branches += 1;
        self.both(|path| {
            let held = condition(path);
            path.rows().open(word, held);
        });
        self.step(Step::If(word), at);
    }

    /// Starts the else side: the other lanes of the branch run.
    pub fn other(&mut self, at: M::At) {
        self.both(|path| path.rows().other());
        self.step(Step::Else, at);
    }

    /// Closes the branch: its lanes reconverge.
    pub fn close(&mut self, at: M::At) {
        self.both(|path| path.rows().close());
        self.step(Step::End, at);
    }

    /// Lets the active lanes exit whose condition holds. `step` receives their word.
    pub fn leave(
        &mut self,
        at: M::At,
        step: impl Fn(u32) -> Step,
        mut condition: impl FnMut(&mut P) -> Value,
    ) {
        let word = (WORDS as u32 - 1) - self.leaves;
        self.leaves += 1;
        self.both(|path| {
            let held = condition(path);
            path.rows().leave(word, held);
        });
        self.step(step(word), at);
    }

    // Segments.

    /// Starts a segment, which may bail out before any effect.
    pub fn begin(&mut self, at: M::At) {
        self.step(Step::Begin(self.segments.len() as u32), at);
    }

    /// Ends the segment.
    pub fn end_segment(&mut self) {
        self.end(None);
    }

    fn end(&mut self, call: Option<(Callee, u32, u32)>) {
        let nothing = SortedSet::new();
        let (fast, slow) = self.paths();
        let lanes = call.map(|(.., word)| word);
        let (fast, slow) = (fast.finish(&nothing, lanes), slow.finish(&nothing, lanes));
        self.segments.push(Segment::new(Some(fast), slow, call));
    }

    /// Ends the segment with a call for the active lanes.
    pub fn call(&mut self, at: M::At, call: M::Call) {
        let word = self.word();
        self.end(Some((callee::<M>(), self.calls.len() as u32, word)));
        self.calls.push(call);
        self.step(Step::Call, at);
    }

    /// Returns the rows of both paths and starts new ones.
    fn paths(&mut self) -> (Rows, Rows) {
        let (fast, slow) = (self.fast.next(), self.slow.next());
        let fast = std::mem::replace(&mut self.fast, fast);
        (fast.into_rows(), std::mem::replace(&mut self.slow, slow).into_rows())
    }

    /// Returns the region, or `None` if it is not worth compiling. `pc` is the address of its first instruction.
    pub fn finish(mut self, back: Back, pc: u32, next: u32, own: M::Region) -> Option<Found<M>> {
        let (fast, slow) = self.paths();
        // If a segment bails out, all rows must have the machine's values.
        let lazy = back == Back::Always && self.segments.is_empty() && !slow.strip.has_spans();
        let mut dropped = SortedSet::new();
        if lazy {
            dropped.extend(fast.covered().iter().filter(|row| slow.covered().contains(row)).copied());
        }
        let mask = slow.mask_row();
        let (fast, slow) = (fast.finish(&dropped, None), slow.finish(&SortedSet::new(), None));
        self.segments.push(Segment::new(Some(fast), slow, None));
        let (segments, steps) = (self.segments, self.steps);
        let lazy = lazy && !dropped.is_empty();
        let plan = Plan { segments, steps, back, mask, lazy, joins: M::JOINS };
        let gain = 2 * self.templates as i32 - 8 * self.calls.len() as i32;
        let worth = self.instructions > 0 && self.extent.pays(gain, back == Back::Never) && plan.fits();
        let (at, calls, most) = (self.at, self.calls, plan.most());
        worth.then_some(Found { plan, at, calls, pc, most, next, own })
    }
}

impl<M: Machine> Found<M> {
    /// Returns the number of instructions of an iteration, and the next position: for [`Extent::choose`].
    pub fn size(&self) -> (u32, u32) {
        (self.plan.most(), self.next)
    }
}
