//! A region: the code that a group executes between two evaluations of its flow, repeated while control returns to its entry.
//!
//! ```text
//! iteration --> segment: strip after strip --> call --> segment ... --> the flow
//!  ^                                                                      |
//!  +----------------- all lanes return, none has exited -----------------+
//! ```
//! A [`Segment`] has a fast path and a slow path. The fast path handles strips in which no lane exits and no value
//! needs special treatment. If a guard fails, it bails out before the first store, and the slow path recomputes the
//! strip. The flow of an iteration is a list of [`Step`]s. The generated code counts two kinds of iterations: those
//! in which no lane exits, and those in which lanes exit outside branches while others continue. For all other
//! iterations, [`Regions::run`] counts the steps one by one.

// Generated code is called only in this file.
#![allow(unsafe_code)]

use std::ops::Range;

use iced_x86::{Code, Instruction, MemoryOperand, Register};
use reconverge_guarded::{Guarded, Plain};

use crate::CompileError;
use crate::asm::{Assembler, Label, Rm, at_base};
use crate::called::Callee;
use crate::emit::{self, Cold, Exits, Frame, GATHERED, POOL, Pool, ROWS, STATE};
use crate::fault::{self, Fault};
use crate::level::Level;
use crate::pages::Pages;
use crate::state::{BRANCHES, LEAVES, State, place};
use crate::strip::{Row, Strip};

/// Straight-line code for all strips of a group, then a call.
#[derive(Clone, Debug, PartialEq)]
pub struct Segment {
    /// Runs for all strips before any effect. The segment bails out if a lane on the slow path is outside the window.
    pub(crate) check: Option<Strip>,
    /// Strip for the case that no lane exits and no value needs special treatment.
    pub(crate) fast: Option<Strip>,
    /// Strip for all other cases.
    pub(crate) exact: Strip,
    /// Call after the strips: the function, its number, and the word of the lanes for which it is called.
    pub(crate) call: Option<(Callee, u32, u32)>,
}

impl Segment {
    /// Returns a segment: an optional fast path, a slow path, and an optional call of a function with a number, for
    /// the lanes of a word.
    ///
    /// The segment bails out before any effect if a lane accesses a word outside the window on the slow path. The
    /// fast path may have additional lanes, which have exited on the slow path. Their accesses do not reach memory
    /// unless they are inside the window.
    pub fn new(fast: Option<Strip>, exact: Strip, call: Option<(Callee, u32, u32)>) -> Segment {
        Segment { check: exact.check(), fast, exact, call }
    }

    /// Returns a segment like [`Segment::new`]. If its only effect on memory is one store, a strip in which a lane is
    /// outside bails out by itself: the strips before it have stored what the whole store stores again, or what lanes
    /// before a trap have stored.
    pub(crate) fn restarting(mut fast: Strip, mut exact: Strip) -> Segment {
        if !fast.only_stores() || !exact.only_stores() {
            return Segment::new(Some(fast), exact, None);
        }
        fast.guard_spans();
        exact.guard_spans();
        Segment { check: None, fast: Some(fast), exact, call: None }
    }

    /// Returns the strips of the segment.
    pub(crate) fn strips(&self) -> impl Iterator<Item = &Strip> {
        self.check.iter().chain(&self.fast).chain([&self.exact])
    }
}

/// A step of the flow in an iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The given number of instructions, for the active lanes.
    Run(u32),
    /// The given number of instructions on a side of a branch. The flow also runs them if no lane takes that side.
    Meanwhile(u32),
    /// The lanes of a word take a branch and run up to its `Else`. With [`Plan::joins`] they arrive at a join there.
    If(u32),
    /// The other lanes of the branch run.
    Else,
    /// All lanes of the branch reconverge.
    End,
    /// The lanes of a word exit. `arrives`: they do so through a join, which takes one instruction.
    Leave {
        /// Word of the lanes.
        word: u32,
        /// Whether the lanes exit through a join.
        arrives: bool,
    },
    /// The same as `Leave`, if the set of lanes that exit in each iteration must be known.
    LeaveInIteration(u32),
    /// The call after a segment.
    Call,
    /// Start of the segment with this number, which may bail out.
    Begin(u32),
}

/// Condition under which the flow returns to the entry of the region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Back {
    /// The flow does not return.
    Never,
    /// The flow returns if some lane remains.
    Always,
    /// The flow returns if all remaining lanes are in the word.
    All(u32),
}

/// A region, ready to be compiled.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Code of the region.
    pub segments: Vec<Segment>,
    /// Steps of the flow in one iteration.
    pub steps: Vec<Step>,
    /// Return to the entry after the steps.
    pub back: Back,
    /// The row of the active lanes.
    pub mask: Row,
    /// Whether the fast path of the last segment omits some stores. The last iteration before the budget ends then
    /// uses the slow path.
    pub lazy: bool,
    /// Whether the lanes that take a branch arrive at a join if the branch diverges. The join takes one instruction.
    pub joins: bool,
}

/// Side of a branch to which a count belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    All,
    Taken(usize),
    Not(usize),
}

/// Groups of steps whose counts the code keeps together.
#[derive(Clone, Debug)]
enum Settling {
    /// A range of runs of one side.
    Runs(Side, Range<usize>),
    /// A run that executes as often as the branch around its side.
    Meanwhile(Side, usize),
    Branch,
    /// Exit, with the number of its step.
    Leave(usize),
}

#[derive(Clone, Copy, Debug)]
struct Branch {
    word: u32,
    parent: Side,
    /// Instructions of the lanes that take the branch, of the others, and those that run even without lanes.
    sizes: [u32; 3],
}

/// A compiled region.
#[derive(Debug)]
pub struct RegionCode {
    start: usize,
    steps: Vec<Step>,
    /// Actions of settling, in order of the steps.
    settling: Vec<Settling>,
    branches: Vec<Branch>,
    back: Back,
    joins: bool,
    /// Maximum number of instructions of an iteration.
    pub most: u32,
}

/// Compiled regions.
#[derive(Debug)]
pub struct Regions {
    pages: Pages,
    pool: Guarded<Constants>,
    regions: Vec<RegionCode>,
    mode: u32,
    /// Minimum size in bytes of a group's rows and of the window for the code.
    rows: usize,
    window: usize,
}

#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(crate) struct Constants(pub(crate) [u32; 16]);

impl Plain for Constants {
    const ZERO: Self = Constants([0; 16]);
}

/// The reason a region ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// At its entry: the budget does not cover another iteration, or all iterations have run.
    Budget,
    /// Control reached the exit.
    Exit,
    /// All remaining lanes exited at this step. They count as active.
    Left(usize),
    /// A call stopped the region: the number of the call, and its step.
    Stopped(u32, usize),
    /// At this step, which starts a segment that has bailed out.
    Bailed(usize),
}

/// Executions of runs of a region.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Count {
    /// Indices of the [`Step::Run`]s and [`Step::Meanwhile`]s among those of the region.
    pub runs: Range<usize>,
    /// Number of executions.
    pub times: u64,
    /// Lanes, summed over all executions.
    pub lanes: u64,
}

const BUDGET: u32 = 0;
const DONE: u32 = 1;
const ITERATION: u32 = 2;
/// Stopped by a call or a segment.
const STOPPED: u32 = 3;

/// MXCSR for code: exceptions masked, rounding to nearest; denormal operands and results become zeros.
pub const FLUSH: u32 = 0x9fc0;
/// MXCSR for code: exceptions masked, rounding to nearest; denormal operands become zeros, results may be denormals.
pub const FLUSH_OPERANDS: u32 = 0x1fc0;
/// MXCSR for code: exceptions masked, rounding to nearest; denormals are kept.
pub const KEEP_DENORMALS: u32 = 0x1f80;

impl Step {
    /// Returns the word of the lanes that exit with the step.
    fn leaves(&self) -> Option<u32> {
        match *self {
            Step::Leave { word, .. } | Step::LeaveInIteration(word) => Some(word),
            _ => None,
        }
    }
}

impl Plan {
    /// Returns the side of each step, and the branches.
    fn branches(&self) -> (Vec<Side>, Vec<Branch>) {
        let mut branches: Vec<Branch> = Vec::new();
        let (mut sides, mut side, mut open) = (Vec::new(), Side::All, Vec::new());
        for step in &self.steps {
            match *step {
                Step::If(word) => {
                    branches.push(Branch { word, parent: side, sizes: [0; 3] });
                    open.push(branches.len() - 1);
                    side = Side::Taken(branches.len() - 1);
                }
                Step::Else => side = Side::Not(open.last().copied().unwrap_or(0)),
                Step::End => side = open.pop().map_or(Side::All, |branch| branches[branch].parent),
                Step::Run(size) => match side {
                    Side::All => {}
                    Side::Taken(branch) => branches[branch].sizes[0] += size,
                    Side::Not(branch) => branches[branch].sizes[1] += size,
                },
                Step::Meanwhile(size) => match side {
                    Side::All => {}
                    Side::Taken(branch) | Side::Not(branch) => branches[branch].sizes[2] += size,
                },
                Step::Leave { .. } | Step::LeaveInIteration(_) | Step::Call | Step::Begin(_) => {}
            }
            sides.push(side);
        }
        (sides, branches)
    }

    fn has_floats(&self) -> bool {
        self.segments
            .iter()
            .any(|segment| segment.exact.has_floats() || segment.fast.as_ref().is_some_and(Strip::has_floats))
    }

    /// Returns whether the plan can be compiled: the number of branches is limited.
    pub fn fits(&self) -> bool {
        self.steps.iter().filter(|step| matches!(step, Step::If(_))).count() <= BRANCHES
    }

    /// Returns the maximum number of instructions of an iteration. An arrival at a join counts as one.
    pub fn most(&self) -> u32 {
        let of = |step: &Step| match step {
            Step::Run(size) | Step::Meanwhile(size) => *size,
            Step::If(_) => self.joins.into(),
            Step::Leave { arrives: true, .. } => 1,
            _ => 0,
        };
        self.steps.iter().map(of).sum()
    }
}

impl Regions {
    /// Compiles regions for groups of `lanes` lanes: a multiple of [`LANES`](crate::LANES), up to 64. Uses
    /// [`Level::Avx2`] if the vectors of the level do not divide the group.
    ///
    /// # Errors
    /// Memory for code cannot be allocated, a region cannot be encoded, or the [verifier](Plan::verify) rejects one.
    pub fn compile(plans: &[Plan], level: Level, lanes: usize, mode: u32) -> Result<Regions, CompileError> {
        if cfg!(not(target_arch = "x86_64")) {
            return Err(CompileError::Target);
        }
        let level = level.dividing(lanes);
        let (mut pool, mut bytes, mut regions) = (Pool::new(level), Vec::new(), Vec::new());
        for plan in plans {
            plan.verify()?;
            bytes.resize(bytes.len().next_multiple_of(64), 0xcc);
            let (sides, branches) = plan.branches();
            let start = bytes.len();
            let compiler = Compiler {
                asm: Assembler::default(),
                level,
                pool: &mut pool,
                cold: Vec::new(),
                plan,
                floats: plan.has_floats(),
                branches: &branches,
                lanes: lanes as i32,
                frame: 0,
            };
            bytes.extend(compiler.region()?);
            let (steps, back, joins, most) = (plan.steps.clone(), plan.back, plan.joins, plan.most());
            let settling = settling(&steps, &sides);
            regions.push(RegionCode { start, steps, settling, branches, back, joins, most });
        }
        let constants =
            |words: &[u32]| Constants(std::array::from_fn(|number| words.get(number).copied().unwrap_or(0)));
        let pool = pool.words.chunks(16).map(constants).collect();
        let strips = || plans.iter().flat_map(|plan| &plan.segments).flat_map(Segment::strips);
        let rows = strips().flat_map(Strip::rows).chain(plans.iter().map(|plan| plan.mask));
        let rows = rows.filter_map(|row| match row {
            Row::Group(distance) => Some(distance as usize + 4 * lanes),
            Row::Own(_) | Row::Bytes(_) | Row::Halves(_) => None,
        });
        let (rows, window) = (rows.max().unwrap_or(0), strips().map(Strip::reached).max().unwrap_or(0));
        Ok(Regions { pages: Pages::new(&bytes)?, pool, regions, mode, rows, window })
    }

    /// Returns a region by its number.
    pub fn get(&self, number: usize) -> &RegionCode {
        &self.regions[number]
    }

    /// Returns the number of bytes of code.
    pub fn size(&self) -> usize {
        self.pages.bytes().len()
    }

    /// Returns the code of a region, up to the next region's code.
    pub fn bytes(&self, number: usize) -> &[u8] {
        let end = self.regions.get(number + 1).map_or(self.size(), |region| region.start);
        &self.pages.bytes()[self.regions[number].start..end]
    }

    /// Runs a region for lanes of a group until it ends, and reports the counts. The budget covers an iteration. At
    /// exit, the state's [`active`](State::active) lanes are those that remain, and the row of the mask contains
    /// them. `exits` receives the step and the lanes that exited while others stayed: once per iteration, or for
    /// [`Step::Leave`] also once for many iterations.
    ///
    /// # Panics
    /// Panics if there are fewer rows than the code accesses, or if the window has fewer bytes.
    ///
    /// # Errors
    /// The code accesses memory that it must not access: a mistake in this crate or in the plan. The state and the
    /// rows are then undefined, and some executions have not been counted.
    ///
    /// # Safety
    /// The processor has the level. Only the functions of the region use the rows and the memory of the state's
    /// window during the call. The rows are aligned to 32 bytes, and the row of the mask contains the lanes. The
    /// state's context has the type that these functions expect.
    #[inline]
    pub unsafe fn run(
        &self,
        number: usize,
        state: &mut State,
        rows: *mut [u8],
        lanes: u64,
        mut count: impl FnMut(Count),
        mut exits: impl FnMut(usize, u64),
    ) -> Result<Ended, Fault> {
        let region = &self.regions[number];
        assert!(rows.len() >= self.rows, "the group has the rows that the code reaches");
        assert!(state.window_bytes >= self.window, "the window has the bytes that the code reaches");
        state.rows = fault::rows(rows.cast());
        state.pool = self.pool.as_ptr().cast();
        (state.host_mode, state.mode) = (KEEP_DENORMALS, self.mode);
        (state.active, state.population) = (lanes, lanes.count_ones().into());
        // SAFETY: the code of a region takes a state and returns a number.
        let code: fault::Entry = unsafe { std::mem::transmute(self.pages.address(region.start)) };
        let ended = loop {
            // SAFETY: guaranteed by the caller.
            match unsafe { fault::call(code, state) }? {
                BUDGET => break Ended::Budget,
                DONE => break Ended::Exit,
                ITERATION => match region.iteration(state, &mut count, &mut exits) {
                    None if state.budget < region.most as i32 || state.rounds == 0 => break Ended::Budget,
                    None => {}
                    Some(ended) => break ended,
                },
                _ => match region.iteration(state, &mut count, &mut exits) {
                    Some(ended) => break ended,
                    None => break Ended::Budget,
                },
            }
        };
        region.settle(state, &mut count, &mut exits);
        Ok(ended)
    }
}

/// Returns the actions of settling.
fn settling(steps: &[Step], sides: &[Side]) -> Vec<Settling> {
    let (mut all, mut runs, mut leaves): (Vec<Settling>, _, _) = (Vec::new(), 0, 0);
    for (number, (step, side)) in steps.iter().zip(sides).enumerate() {
        match step {
            Step::Run(_) => {
                match all.last_mut() {
                    Some(Settling::Runs(before, range)) if *before == *side => range.end += 1,
                    _ => all.push(Settling::Runs(*side, runs..runs + 1)),
                }
                runs += 1;
            }
            Step::Meanwhile(_) => {
                all.push(Settling::Meanwhile(*side, runs));
                runs += 1;
            }
            Step::If(_) => all.push(Settling::Branch),
            Step::Leave { .. } if leaves < LEAVES => {
                all.push(Settling::Leave(number));
                leaves += 1;
            }
            _ => {}
        }
    }
    all
}

impl RegionCode {
    /// Counts an iteration in which lanes exited, after which not all lanes return, or that a call has stopped.
    /// Returns `None` if the next iteration may begin.
    #[inline(never)]
    fn iteration(
        &self,
        state: &mut State,
        count: &mut impl FnMut(Count),
        exits: &mut impl FnMut(usize, u64),
    ) -> Option<Ended> {
        let (mut tried, mut runs) = (0, 0);
        let mut active = state.active;
        // For each open branch: the lanes of the other side, and the lanes that have reached the end.
        let (mut open, mut depth) = ([(0, 0, false); BRANCHES], 0);
        // Whether lanes have reached each branch, and the region.
        let mut comes = [true; BRANCHES + 1];
        let mut calls = 0;
        let mut ended = None;
        for (number, step) in self.steps.iter().enumerate() {
            match *step {
                Step::Run(size) => {
                    if active != 0 {
                        tried += size;
                        count(Count { runs: runs..runs + 1, times: 1, lanes: active.count_ones().into() });
                    }
                    runs += 1;
                }
                Step::Meanwhile(size) => {
                    if comes[depth] {
                        tried += size;
                        count(Count { runs: runs..runs + 1, times: 1, lanes: active.count_ones().into() });
                    }
                    runs += 1;
                }
                Step::If(word) => {
                    let taken = state.words[word as usize] & active;
                    let not = active & !taken;
                    let divides = taken != 0 && not != 0;
                    state.divergent += u64::from(divides);
                    open[depth] = (not, 0, divides);
                    depth += 1;
                    comes[depth] = active != 0;
                    active = taken;
                }
                Step::Else => {
                    let (not, arrived, divides) = &mut open[depth.saturating_sub(1)];
                    tried += u32::from(self.joins && *divides && active != 0);
                    *arrived = active;
                    active = std::mem::take(not);
                }
                Step::End => {
                    depth = depth.saturating_sub(1);
                    active |= open[depth].1;
                }
                Step::Leave { .. } | Step::LeaveInIteration(_) => {
                    let arrives = matches!(step, Step::Leave { arrives: true, .. });
                    let word = step.leaves().unwrap_or(0);
                    let leaving = state.words[word as usize] & active;
                    let staying = active & !leaving;
                    let elsewhere =
                        open[..depth].iter().fold(0, |all, (not, arrived, _)| all | not | arrived);
                    if leaving != 0 && staying == 0 && elsewhere == 0 {
                        ended = Some(Ended::Left(number));
                        break;
                    }
                    let divides = leaving != 0 && staying != 0;
                    state.divergent += u64::from(divides);
                    tried += u32::from(arrives && divides);
                    if leaving != 0 {
                        exits(number, leaving);
                    }
                    active = staying;
                }
                Step::Call => {
                    // A call without lanes is skipped.
                    if active != 0 && state.stopped != 0 && calls == state.stopped - 1 {
                        ended = Some(Ended::Stopped(calls, number));
                        break;
                    }
                    calls += 1;
                }
                Step::Begin(segment) => {
                    // A segment without lanes does not bail out.
                    if active != 0 && state.refused == segment + 1 {
                        ended = Some(Ended::Bailed(number));
                        break;
                    }
                }
            }
        }
        for word in self.steps.iter().filter_map(Step::leaves) {
            state.words[word as usize] = 0;
        }
        state.budget -= tried as i32;
        state.left = 0;
        (state.stopped, state.refused) = (0, 0);
        (state.active, state.population) = (active, active.count_ones().into());
        let ended = ended.or_else(|| match self.back {
            Back::Never => Some(Ended::Exit),
            Back::Always => None,
            Back::All(word) => (state.words[word as usize] & active != active).then_some(Ended::Exit),
        });
        if ended.is_none() {
            state.rounds = state.rounds.wrapping_sub(1);
        }
        ended
    }

    /// Reports the counts that the code itself has kept.
    fn settle(&self, state: &mut State, count: &mut impl FnMut(Count), exits: &mut impl FnMut(usize, u64)) {
        if state.iterations == 0 {
            return;
        }
        let (mut lanes, mut times) = ([[0; 2]; BRANCHES], [[0; 2]; BRANCHES]);
        let of = |lanes: &[[u64; 2]], all: u64, side: Side| match side {
            Side::All => all,
            Side::Taken(branch) => lanes[branch][0],
            Side::Not(branch) => lanes[branch][1],
        };
        // Lanes that have not exited so far.
        let mut all = state.lanes;
        let (mut branch, mut leave) = (0, 0);
        for settling in &self.settling {
            match settling {
                Settling::Branch => {
                    let [took, _, both, not] = std::mem::take(&mut state.outcomes[branch]);
                    let taken = std::mem::take(&mut state.taken[branch]);
                    let parent = self.branches[branch].parent;
                    lanes[branch] = [taken, of(&lanes, all, parent) - taken];
                    times[branch] = [took + both, both + not];
                    state.divergent += both;
                    branch += 1;
                }
                Settling::Runs(side, runs) => {
                    let times = of(&times, state.iterations, *side);
                    if times > 0 {
                        count(Count { runs: runs.clone(), times, lanes: of(&lanes, all, *side) });
                    }
                }
                Settling::Meanwhile(side, run) => {
                    let parent = match side {
                        Side::All => Side::All,
                        Side::Taken(branch) | Side::Not(branch) => self.branches[*branch].parent,
                    };
                    let times = of(&times, state.iterations, parent);
                    if times > 0 {
                        count(Count { runs: *run..run + 1, times, lanes: of(&lanes, all, *side) });
                    }
                }
                Settling::Leave(number) => {
                    all -= std::mem::take(&mut state.gone_lanes[leave]);
                    match std::mem::take(&mut state.exits[leave]) {
                        0 => {}
                        lanes => exits(*number, lanes),
                    }
                    leave += 1;
                }
            }
        }
        (state.iterations, state.lanes) = (0, 0);
    }
}

struct Compiler<'a> {
    asm: Assembler,
    level: Level,
    pool: &'a mut Pool,
    cold: Vec<Cold>,
    plan: &'a Plan,
    /// Whether some segment depends on the host's floating point modes.
    floats: bool,
    branches: &'a [Branch],
    lanes: i32,
    frame: i32,
}

/// Registers that a function preserves.
const SAVED: [Register; 6] =
    [Register::RBX, Register::RBP, Register::R12, Register::R13, Register::R14, Register::R15];

/// If not 0, strips take the slow path.
const EXACT: Register = Register::R15D;

impl Compiler<'_> {
    fn region(mut self) -> Result<Vec<u8>, CompileError> {
        // The frame size is known only at the end, so the segments are compiled before their prologue.
        let (iteration, leave) = (self.asm.label(), self.asm.label());
        self.asm.two(Code::Xor_r32_rm32, EXACT, EXACT);
        self.asm.bind(iteration);
        let most = self.plan.most() as i32;
        let budget = at_base(STATE, place!(budget));
        self.asm.two(Code::Mov_r32_rm32, Register::EAX, budget);
        self.asm.number(Code::Cmp_rm32_imm32, Register::EAX, most);
        self.returns_if(Code::Jl_rel32_64, BUDGET, leave);
        if self.plan.back != Back::Never {
            self.asm.number(Code::Cmp_rm32_imm8, at_base(STATE, place!(rounds)), 0);
            self.returns_if(Code::Je_rel32_64, BUDGET, leave);
        }
        if self.plan.lazy {
            let [last, others] = [(); 2].map(|()| self.asm.label());
            self.asm.number(Code::Cmp_rm32_imm32, Register::EAX, 2 * most);
            self.asm.branch(Code::Jl_rel32_64, last);
            self.asm.number(Code::Cmp_rm32_imm8, at_base(STATE, place!(rounds)), 1);
            self.asm.branch(Code::Jne_rel32_64, others);
            self.asm.bind(last);
            self.asm.push(Instruction::with2(Code::Mov_r32_imm32, EXACT, 1));
            self.asm.bind(others);
        }
        for number in 0..self.plan.segments.len() {
            self.segment(number, leave);
        }
        self.flow(iteration, leave);
        let mut asm = Assembler::default();
        std::mem::swap(&mut asm, &mut self.asm);
        emit::emit_cold(self.level, &mut asm, &self.cold);
        let (frame, end) = (self.frame, leave);
        asm.bind(end);
        let floats = self.floats;
        let caller = Frame::of(self.level).caller;
        epilogue(&mut asm, caller, floats);
        asm.before(|asm| prologue(asm, frame, caller, floats));
        asm.bytes()
    }

    /// Emits a return of a number if the condition holds.
    fn returns_if(&mut self, condition: Code, number: u32, leave: Label) {
        // The mov does not change flags.
        self.asm.push(Instruction::with2(Code::Mov_r32_imm32, Register::ECX, number));
        self.asm.branch(condition, leave);
    }

    fn segment(&mut self, number: usize, leave: Label) {
        let plan = self.plan;
        let segment = &plan.segments[number];
        let is_empty = |strip: &Strip| strip.effects.is_empty();
        if let Some(check) = &segment.check {
            self.check(number, check, leave);
        }
        if !is_empty(&segment.exact) || segment.fast.as_ref().is_some_and(|fast| !is_empty(fast)) {
            let (level, asm) = (self.level, &mut self.asm);
            let mut words: Vec<u32> =
                segment.fast.iter().chain([&segment.exact]).flat_map(Strip::words).collect();
            words.sort_unstable();
            words.dedup();
            words.truncate(GATHERED.len());
            let gathered = || words.iter().zip(GATHERED);
            let [strip, next, exact, done] = [(); 4].map(|()| asm.label());
            for (_, register) in gathered() {
                asm.two(Code::Xor_r64_rm64, register, register);
            }
            emit::begin_vectors(level, asm, strip, next);
            if let Some(fast) = &segment.fast {
                if plan.lazy || plan.steps.iter().any(|step| step.leaves().is_some()) {
                    asm.push(Instruction::with2(Code::Test_rm32_r32, EXACT, EXACT));
                    asm.branch(Code::Jne_rel32_64, exact);
                }
                self.strip(fast, Some(exact), &words);
                self.end_of_strip(strip, next, done);
                self.asm.bind(exact);
                self.strip(&segment.exact, None, &words);
                self.asm.branch(Code::Jmp_rel32_64, next);
            } else {
                self.asm.bind(exact);
                self.strip(&segment.exact, None, &words);
                self.end_of_strip(strip, next, done);
            }
            self.asm.bind(done);
            for (word, register) in gathered() {
                let word = at_base(STATE, place!(words) + 8 * *word as i32);
                self.asm.store(Code::Mov_rm64_r64, word, register);
            }
        }
        let Some((callee, argument, word)) = segment.call else { return };
        let asm = &mut self.asm;
        let skip = asm.label();
        let lanes = at_base(STATE, place!(words) + 8 * word as i32);
        asm.two(Code::Mov_r64_rm64, Register::RDX, lanes);
        // Strips without lanes do not write their bits, so the word has old bits there.
        asm.two(Code::And_r64_rm64, Register::RDX, at_base(STATE, place!(active)));
        asm.branch(Code::Je_rel32_64, skip);
        asm.push(Instruction::with2(Code::Mov_r64_rm64, Register::RDI, STATE));
        asm.push(Instruction::with2(Code::Mov_r32_imm32, Register::ESI, argument));
        asm.push(Instruction::with2(Code::Mov_r64_imm64, Register::RAX, callee as usize as u64));
        emit::leave_mode(asm, self.floats);
        asm.push(Instruction::with1(Code::Call_rm64, Register::RAX));
        emit::enter_mode(asm, self.floats);
        let calls = plan.segments[..number].iter().filter(|segment| segment.call.is_some()).count();
        asm.number(Code::Mov_rm32_imm32, at_base(STATE, place!(stopped)), calls as i32 + 1);
        asm.push(Instruction::with2(Code::Test_rm32_r32, Register::EAX, Register::EAX));
        self.returns_if(Code::Jne_rel32_64, STOPPED, leave);
        self.asm.number(Code::Mov_rm32_imm32, at_base(STATE, place!(stopped)), 0);
        self.asm.bind(skip);
    }

    /// Emits a return if a guard of the strip fails for some lanes.
    fn check(&mut self, number: usize, check: &Strip, leave: Label) {
        let [strip, next, refused, done] = [(); 4].map(|()| self.asm.label());
        emit::begin_vectors(self.level, &mut self.asm, strip, next);
        self.strip(check, Some(refused), &[]);
        self.end_of_strip(strip, next, done);
        self.asm.bind(refused);
        let segment = at_base(STATE, place!(refused));
        self.asm.number(Code::Mov_rm32_imm32, segment, number as i32 + 1);
        self.asm.push(Instruction::with2(Code::Mov_r32_imm32, Register::ECX, STOPPED));
        self.asm.branch(Code::Jmp_rel32_64, leave);
        self.asm.bind(done);
    }

    fn strip(&mut self, strip: &Strip, guard: Option<Label>, words: &[u32]) {
        let exits = Exits { guard, words, cold: &mut self.cold };
        let stride = 4 * self.lanes as u32;
        let frame = emit::emit(&mut self.asm, self.pool, strip, stride, self.plan.mask, exits);
        self.frame = self.frame.max(frame);
    }

    /// Continues with the next strip, if there is one.
    fn end_of_strip(&mut self, strip: Label, next: Label, done: Label) {
        emit::end_vectors(self.level, &mut self.asm, strip, next);
        self.asm.branch(Code::Jmp_rel32_64, done);
    }

    /// Emits the flow after the last segment.
    fn flow(&mut self, iteration: Label, leave: Label) {
        let (sides, _) = self.plan.branches();
        let leaves: Vec<_> =
            self.plan.steps.iter().zip(&sides).filter(|(step, _)| step.leaves().is_some()).collect();
        let counts_leaves = leaves.len() <= LEAVES
            && leaves
                .iter()
                .all(|(step, side)| **side == Side::All || matches!(step, Step::LeaveInIteration(_)));
        let left = self.asm.label();
        if !leaves.is_empty() {
            self.asm.number(Code::Cmp_rm32_imm8, at_base(STATE, place!(left)), 0);
            match counts_leaves {
                true => self.asm.branch(Code::Jne_rel32_64, left),
                false => self.returns_if(Code::Jne_rel32_64, ITERATION, leave),
            }
        }
        self.asm.two(Code::Mov_r64_rm64, Register::RDX, at_base(STATE, place!(active)));
        self.come_back(leave);
        self.count(false);
        self.asm.two(Code::Xor_r32_rm32, EXACT, EXACT);
        self.end_of_iteration(iteration, leave);
        if leaves.is_empty() || !counts_leaves {
            return;
        }
        // Some lane has exited. Nothing is counted until it is certain that others continue.
        self.asm.bind(left);
        self.asm.two(Code::Mov_r64_rm64, Register::RDX, at_base(STATE, place!(active)));
        for (step, _) in &leaves {
            let Some(word) = step.leaves() else { continue };
            let word = at_base(STATE, place!(words) + 8 * word as i32);
            self.asm.two(Code::Mov_r64_rm64, Register::RAX, word);
            if let Step::LeaveInIteration(_) = step {
                self.asm.store(Code::Test_rm64_r64, at_base(STATE, place!(active)), Register::RAX);
                self.returns_if(Code::Jne_rel32_64, ITERATION, leave);
            }
            let rest = Rm::Register(Register::RDX);
            self.asm.three(Code::VEX_Andn_r64_r64_rm64, Register::RDX, Register::RAX, rest);
        }
        self.asm.push(Instruction::with2(Code::Test_rm64_r64, Register::RDX, Register::RDX));
        self.returns_if(Code::Je_rel32_64, ITERATION, leave);
        self.come_back(leave);
        self.count(true);
        self.asm.number(Code::Mov_rm32_imm32, at_base(STATE, place!(left)), 0);
        // If lanes have exited, others are likely to exit soon: the next iteration does not try the fast path.
        self.asm.push(Instruction::with2(Code::Mov_r32_imm32, EXACT, 1));
        self.end_of_iteration(iteration, leave);
    }

    /// Emits a return if some of the lanes in RDX do not return to the entry.
    fn come_back(&mut self, leave: Label) {
        if let Back::All(word) = self.plan.back {
            // Strips without lanes do not write their bits, so the word has old bits there.
            let back = at_base(STATE, place!(words) + 8 * word as i32);
            self.asm.two(Code::Mov_r64_rm64, Register::RAX, back);
            self.asm.three(Code::VEX_Andn_r64_r64_rm64, Register::RAX, Register::RAX, Register::RDX);
            self.returns_if(Code::Jne_rel32_64, ITERATION, leave);
        }
    }

    fn end_of_iteration(&mut self, iteration: Label, leave: Label) {
        if self.plan.back == Back::Never {
            self.asm.push(Instruction::with2(Code::Mov_r32_imm32, Register::ECX, DONE));
            self.asm.branch(Code::Jmp_rel32_64, leave);
        } else {
            self.asm.branch(Code::Jmp_rel32_64, iteration);
        }
    }

    /// Emits the counts of an iteration.
    fn count(&mut self, leaves: bool) {
        let (sides, _) = self.plan.branches();
        let runs = self.plan.steps.iter().zip(&sides).map(|(step, side)| match (step, side) {
            (Step::Run(size) | Step::Meanwhile(size), Side::All) => *size,
            _ => 0,
        });
        let always: u32 = runs.sum();
        let asm = &mut self.asm;
        asm.number(Code::Add_rm64_imm8, at_base(STATE, place!(iterations)), 1);
        asm.two(Code::Mov_r64_rm64, Register::RAX, at_base(STATE, place!(population)));
        asm.store(Code::Add_rm64_r64, at_base(STATE, place!(lanes)), Register::RAX);
        asm.number(Code::Sub_rm32_imm32, at_base(STATE, place!(budget)), always as i32);
        if self.plan.back != Back::Never {
            asm.number(Code::Sub_rm32_imm8, at_base(STATE, place!(rounds)), 1);
        }
        let (mut branch, mut left) = (0, 0);
        for step in &self.plan.steps {
            match *step {
                Step::If(_) => {
                    self.count_branch(branch);
                    branch += 1;
                }
                Step::Leave { word, arrives } if leaves => {
                    self.count_leave(left, word, arrives);
                    left += 1;
                }
                _ => {}
            }
        }
    }

    /// Counts the lanes that exit with a step while others continue. `number` is the index of the step among the
    /// exits.
    fn count_leave(&mut self, number: i32, word: u32, arrives: bool) {
        let asm = &mut self.asm;
        let none = asm.label();
        let (word, active) =
            (at_base(STATE, place!(words) + 8 * word as i32), at_base(STATE, place!(active)));
        asm.two(Code::Mov_r64_rm64, Register::RAX, word);
        asm.number(Code::Mov_rm64_imm32, word, 0);
        asm.two(Code::And_r64_rm64, Register::RAX, active);
        asm.branch(Code::Je_rel32_64, none);
        asm.store(Code::Xor_rm64_r64, active, Register::RAX);
        asm.store(Code::Or_rm64_r64, at_base(STATE, place!(exits) + 8 * number), Register::RAX);
        asm.two(Code::Popcnt_r64_rm64, Register::RDX, Register::RAX);
        asm.store(Code::Add_rm64_r64, at_base(STATE, place!(gone_lanes) + 8 * number), Register::RDX);
        asm.store(Code::Sub_rm64_r64, at_base(STATE, place!(population)), Register::RDX);
        asm.number(Code::Add_rm64_imm8, at_base(STATE, place!(divergent)), 1);
        if arrives {
            asm.number(Code::Sub_rm32_imm32, at_base(STATE, place!(budget)), 1);
        }
        asm.bind(none);
    }

    /// Counts a branch: its outcome, and its instructions.
    fn count_branch(&mut self, number: usize) {
        let Compiler { asm, pool, branches, plan: Plan { joins, .. }, .. } = self;
        // The lanes of a side, if branches inside it need them.
        let not_word = |branch: usize| at_base(Register::RSP, 8 * branch as i32);
        let lanes_of = |side: Side, branches: &[Branch]| -> MemoryOperand {
            match side {
                Side::All => at_base(STATE, place!(active)),
                Side::Taken(branch) => at_base(STATE, place!(words) + 8 * branches[branch].word as i32),
                Side::Not(branch) => not_word(branch),
            }
        };
        let branch = &branches[number];
        let taken = at_base(STATE, place!(words) + 8 * branch.word as i32);
        let parent = lanes_of(branch.parent, branches);
        asm.two(Code::Mov_r64_rm64, Register::RAX, taken);
        // Strips without lanes do not write their bits, so the word has old bits there.
        asm.two(Code::And_r64_rm64, Register::RAX, parent);
        if branches.iter().any(|other| other.parent == Side::Taken(number)) {
            asm.store(Code::Mov_rm64_r64, taken, Register::RAX);
        }
        asm.two(Code::Popcnt_r64_rm64, Register::RDX, Register::RAX);
        asm.store(Code::Add_rm64_r64, at_base(STATE, place!(taken) + 8 * number as i32), Register::RDX);
        asm.two(Code::Xor_r32_rm32, Register::EDX, Register::EDX);
        asm.three(Code::VEX_Andn_r64_r64_rm64, Register::RCX, Register::RAX, parent);
        asm.push(Instruction::with1(Code::Setne_rm8, Register::DL));
        if branches.iter().any(|other| other.parent == Side::Not(number)) {
            asm.store(Code::Mov_rm64_r64, not_word(number), Register::RCX);
        }
        // The outcome: 2 if some lanes do not take the branch, plus 1 if none takes it.
        asm.number(Code::Cmp_rm64_imm8, Register::RAX, 1);
        asm.push(Instruction::with2(Code::Adc_r32_rm32, Register::EDX, Register::EDX));
        let outcome = place!(outcomes) + 32 * number as i32;
        let outcome =
            MemoryOperand::with_base_index_scale_displ_size(STATE, Register::RDX, 8, outcome.into(), 1);
        asm.number(Code::Add_rm64_imm8, outcome, 1);
        let [taken, not, always] = branch.sizes;
        let both = taken + not + u32::from(*joins);
        let table = pool.table([taken + always, 0, both + always, not + always]);
        let size = MemoryOperand::with_base_index_scale_displ_size(POOL, Register::RDX, 4, table.into(), 1);
        asm.two(Code::Mov_r32_rm32, Register::EAX, size);
        asm.store(Code::Sub_rm32_r32, at_base(STATE, place!(budget)), Register::EAX);
    }
}

pub(crate) fn prologue(asm: &mut Assembler, frame: i32, caller: i32, floats: bool) {
    for register in SAVED {
        asm.push(Instruction::with1(Code::Push_r64, register));
    }
    asm.push(Instruction::with2(Code::Mov_r64_rm64, Register::RAX, Register::RSP));
    asm.number(Code::And_rm64_imm8, Register::RSP, -64);
    let frame = (frame.max(caller + 64) + 63) & !63;
    asm.number(Code::Sub_rm64_imm32, Register::RSP, frame);
    asm.store(Code::Mov_rm64_r64, at_base(Register::RSP, caller), Register::RAX);
    asm.push(Instruction::with2(Code::Mov_r64_rm64, STATE, Register::RDI));
    asm.two(Code::Mov_r64_rm64, ROWS, at_base(STATE, place!(rows)));
    asm.two(Code::Mov_r64_rm64, POOL, at_base(STATE, place!(pool)));
    emit::enter_mode(asm, floats);
}

pub(crate) fn epilogue(asm: &mut Assembler, caller: i32, floats: bool) {
    emit::leave_mode(asm, floats);
    asm.push(Instruction::with2(Code::Mov_r32_rm32, Register::EAX, Register::ECX));
    asm.two(Code::Mov_r64_rm64, Register::RSP, at_base(Register::RSP, caller));
    for register in SAVED.into_iter().rev() {
        asm.push(Instruction::with1(Code::Pop_r64, register));
    }
    asm.plain(Code::Retnq);
}
