//! The parts of the divergence machine: conditions, states of lanes, loops, entries of the stack, faults.

use std::fmt;
use std::ops::Deref;

use reconverge_simt::Mask;
use thiserror::Error;

#[cfg(doc)]
use crate::rules::Rule;

/// Which lanes pass the test of a control-flow instruction: the fields COND and CF_CONST. (MAN 3.6.3)
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// CF_COND_ACTIVE.
    Active,
    /// CF_COND_FALSE.
    False,
    /// CF_COND_BOOL with the number of the boolean constant.
    Bool(u8),
    /// CF_COND_NOT_BOOL with the number of the boolean constant.
    NotBool(u8),
}

/// The fields of a CF word that decide about flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Control {
    /// ADDR, 64-bit words from the program's start.
    pub addr: u32,
    /// POP_COUNT, 0 to 7.
    pub pop_count: u8,
    /// COND with CF_CONST.
    pub cond: Condition,
    /// CF_CONST as the number of a loop constant, 0 to 31.
    pub cf_const: u8,
    /// CALL_COUNT, 0 to 63.
    pub call_count: u8,
    /// VALID_PIXEL_MODE.
    pub valid_pixel_mode: bool,
    /// WHOLE_QUAD_MODE.
    pub whole_quad_mode: bool,
}

impl Control {
    /// COND = ACTIVE, everything else zero, with this address: what compilers write most.
    pub const fn to(addr: u32) -> Control {
        Control {
            addr,
            pop_count: 0,
            cond: Condition::Active,
            cf_const: 0,
            call_count: 0,
            valid_pixel_mode: false,
            whole_quad_mode: false,
        }
    }

    /// This with another POP_COUNT.
    pub const fn pop(self, pop_count: u8) -> Control {
        Control { pop_count, ..self }
    }
}

/// The state of a lane (MAN p. 47).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// A.
    Active,
    /// IB.
    InactiveBranch,
    /// IC.
    InactiveContinue,
    /// IX.
    InactiveBreak,
}

/// The states of all lanes, as three disjoint sets; a lane in none of them is inactive-branch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct States {
    /// Lanes in A.
    pub active: Mask,
    /// Lanes in IC.
    pub inactive_continue: Mask,
    /// Lanes in IX.
    pub inactive_break: Mask,
}

impl States {
    /// Lanes in IC or IX, which only the loop wakes.
    #[inline(always)]
    pub(super) fn out_of_round(self) -> Mask {
        self.inactive_continue | self.inactive_break
    }
}

/// The three loops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoopKind {
    /// LOOP_START: a count and an index.
    Dx9,
    /// LOOP_START_NO_AL: a count; the index stays the outer loop's.
    Repeat,
    /// LOOP_START_DX10: ends by breaks only.
    Dx10,
}

/// The registers of the innermost loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoopRegisters {
    /// Which loop it is.
    pub kind: LoopKind,
    /// Remaining rounds, this one included; 0 in a DX10 loop without a limit.
    pub trip: u32,
    /// aL, if this loop or one around it has an index.
    pub index: Option<i32>,
    /// What a round adds to aL.
    pub step: i32,
}

/// One entry of the stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// PUSH: the lanes that were active.
    Branch {
        /// Those lanes.
        active: Mask,
        /// Whether it was pushed in WHOLE_QUAD_MODE and takes a whole entry.
        whole_quad: bool,
    },
    /// LOOP_START*: the state before the loop.
    Loop {
        /// The lanes' states.
        states: States,
        /// The registers of the loop around this one.
        registers: Option<LoopRegisters>,
        /// The first instruction of the loop's body, to which its LOOP_END leads.
        body: u32,
    },
    /// CALL: where RETURN goes.
    Return {
        /// The instruction after the call.
        pc: u32,
        /// What the call added to the depth.
        calls: u8,
        /// Whether the call went into the fetch program.
        into_fetch_program: bool,
    },
}

/// Entries on the stack of a wavefront that has ended: a finding in strict mode, not a trap. END_OF_PROGRAM stops the
/// wavefront whatever its stack, but no structured program ends so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the program ends with entries on its stack: {pushes} PUSH, {loops} LOOP, {calls} CALL")]
pub struct Open {
    /// Entries of PUSH and the like.
    pub pushes: usize,
    /// Entries of loops.
    pub loops: usize,
    /// Entries of calls.
    pub calls: usize,
}

/// How much of the stack an entry takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cost {
    /// A push: a subentry.
    Push,
    /// A push in WHOLE_QUAD_MODE: an entry.
    WholeQuadPush,
    /// A loop: an entry.
    Loop,
    /// A call: a subentry, on chips 16 lanes wide two.
    Call,
}

impl Entry {
    /// How much of the stack it takes.
    #[inline(always)]
    pub const fn cost(&self) -> Cost {
        match self {
            Entry::Branch { whole_quad: false, .. } => Cost::Push,
            Entry::Branch { whole_quad: true, .. } => Cost::WholeQuadPush,
            Entry::Loop { .. } => Cost::Loop,
            Entry::Return { .. } => Cost::Call,
        }
    }

    /// The manual's word for what pushed it.
    pub const fn kind(&self) -> &'static str {
        match self {
            Entry::Branch { .. } => "PUSH",
            Entry::Loop { .. } => "LOOP",
            Entry::Return { into_fetch_program: false, .. } => "CALL",
            Entry::Return { into_fetch_program: true, .. } => "CALL_FS",
        }
    }
}

/// The constants of a launch that decide about flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowSetup {
    /// Lanes of a wavefront: 16, 32 or 64. Decides how much of the stack an entry is.
    pub wave_width: u8,
    /// The lanes that are valid at the start.
    pub valid: Mask,
    /// STACK_SIZE of SQ_PGM_RESOURCES, in entries; `None` for [`FlowSetup::MOST_STACK`].
    pub stack_size: Option<u32>,
    /// SQ_LOOP_CONST, by number.
    pub loop_constants: [LoopConstant; 32],
    /// SQ_BOOL_CONST of the stage: bit n is boolean n.
    pub booleans: u32,
    /// The deepest nesting that CALL allows.
    pub call_limit: u32,
    /// Rounds after which a DX10 loop ends; the hardware has no such limit ([`Rule::DX10_LOOP_HAS_NO_COUNT`]).
    pub dx10_loop_limit: Option<u32>,
    /// First instruction of the main program.
    pub start: u32,
    /// First instruction of the fetch program; `None` makes CALL_FS return at once.
    pub fetch_start: Option<u32>,
    /// Whether undefined behaviour traps.
    pub strict: bool,
}

impl FlowSetup {
    /// The deepest nesting of calls the manual allows (MAN p. 53).
    pub const CALL_LIMIT: u32 = 32;

    /// The most entries of the stack that the eight bits of STACK_SIZE can declare.
    pub const MOST_STACK: u32 = 255;

    /// A wavefront of `wave_width` with these valid lanes, constants zero, no STACK_SIZE, strict.
    pub fn new(wave_width: u8, valid: Mask) -> FlowSetup {
        FlowSetup {
            wave_width,
            valid,
            stack_size: None,
            loop_constants: [LoopConstant::default(); 32],
            booleans: 0,
            call_limit: Self::CALL_LIMIT,
            dx10_loop_limit: None,
            start: 0,
            fetch_start: None,
            strict: true,
        }
    }
}

/// A loop constant, SQ_LOOP_CONST: COUNT in bits 11:0, INIT in 23:12, INC in 31:24.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LoopConstant(pub u32);

impl LoopConstant {
    /// Rounds.
    pub const fn count(self) -> u32 {
        self.0 & 0xfff
    }

    /// First value of aL.
    pub const fn init(self) -> i32 {
        (self.0 >> 12 & 0xfff) as i32
    }

    /// What a round adds to aL; signed 8 bit.
    pub const fn inc(self) -> i32 {
        self.0 as i32 >> 24
    }
}

/// The program's flow is malformed, or undefined on the hardware.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FlowFault {
    /// A pop met an empty stack.
    #[error("{op} pops an empty stack")]
    StackEmpty {
        /// The instruction, in the manual's word.
        op: &'static str,
    },
    /// The top of the stack is not what the instruction takes off.
    #[error("{op} needs a {wanted} entry on top of the stack, but a {found} entry is there")]
    WrongEntry {
        /// The instruction, in the manual's word.
        op: &'static str,
        /// What it needs.
        wanted: &'static str,
        /// What is there.
        found: &'static str,
    },
    /// LOOP_BREAK or LOOP_CONTINUE with no loop on the stack, or only beyond a call.
    #[error("{op} is outside every loop of its subroutine")]
    OutsideLoop {
        /// The instruction, in the manual's word.
        op: &'static str,
    },
    /// LOOP_END and its LOOP_START lead to different bodies (strict mode).
    #[error("LOOP_END leads to {end_leads_to}, but its LOOP_START leads to {body}")]
    LoopPair {
        /// ADDR of the LOOP_END.
        end_leads_to: u32,
        /// The instruction after the LOOP_START.
        body: u32,
    },
    /// More stack than STACK_SIZE declares (strict mode).
    #[error(
        "the stack needs {needed} entries here ({full} whole entries and {sub} subentries, {subentries_an_entry} \
         to an entry), STACK_SIZE declares {declared}{}", whole(.program)
    )]
    StackOverflow {
        /// Entries needed.
        needed: u32,
        /// Entries declared.
        declared: u32,
        /// Whole entries in use.
        full: u32,
        /// Subentries in use.
        sub: u32,
        /// Subentries in an entry, 4 or 8.
        subentries_an_entry: u32,
        /// Entries that the whole program needs, where that is known. The wavefront fills this in: the divergence
        /// machine does not see the program.
        program: Option<u32>,
    },
    /// More stack than STACK_SIZE can declare.
    #[error(
        "the stack needs {needed} entries here, and STACK_SIZE cannot declare more than {}",
        FlowSetup::MOST_STACK
    )]
    StackTooDeep {
        /// Entries needed.
        needed: u32,
    },
    /// WHOLE_QUAD_MODE with VALID_PIXEL_MODE (strict mode; MAN p. 49).
    #[error("WHOLE_QUAD_MODE and VALID_PIXEL_MODE are both set")]
    BothModes,
    /// CALL with a POP_COUNT (strict mode; MAN p. 53).
    #[error("CALL has POP_COUNT {pop_count}; it must be 0")]
    CallPops {
        /// The field.
        pop_count: u8,
    },
    /// CALL_FS inside a fetch program.
    #[error("CALL_FS inside the fetch program")]
    NestedFetchProgram,
}

fn whole(program: &Option<u32>) -> String {
    program.map_or_else(String::new, |entries| format!("; the whole program needs {entries}"))
}

/// The number of entries of each cost on a stack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CostCounts {
    full: u32,
    pushes: u32,
    calls: u32,
}

impl CostCounts {
    /// The count of the entries with a cost.
    #[inline(always)]
    fn of(&mut self, cost: Cost) -> &mut u32 {
        match cost {
            Cost::WholeQuadPush | Cost::Loop => &mut self.full,
            Cost::Push => &mut self.pushes,
            Cost::Call => &mut self.calls,
        }
    }

    /// See [`StackUse::of`].
    #[inline(always)]
    pub(super) fn stack_use(&self, wave_width: u8) -> StackUse {
        let CostCounts { full, pushes, calls } = *self;
        let own = pushes + calls * if wave_width == 16 { 2 } else { 1 };
        StackUse { full, sub: own + if pushes > 0 { 2 } else { 0 } }
    }
}

/// The entries of a stack, the last one on top.
///
/// Their costs are counted as they come and go: a shader with 96 nested branches spends 6 % of its time otherwise.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Stack {
    entries: Vec<Entry>,
    counts: CostCounts,
}

impl Stack {
    #[inline(always)]
    pub(super) fn push(&mut self, entry: Entry) {
        *self.counts.of(entry.cost()) += 1;
        self.entries.push(entry);
    }

    #[inline(always)]
    pub(super) fn pop(&mut self) {
        if let Some(entry) = self.entries.pop() {
            *self.counts.of(entry.cost()) -= 1;
        }
    }

    /// Pops all entries above a depth.
    #[inline(always)]
    pub(super) fn truncate(&mut self, depth: usize) {
        while self.entries.len() > depth {
            self.pop();
        }
    }

    #[inline]
    pub(super) fn clear(&mut self) {
        self.entries.clear();
        self.counts = CostCounts::default();
    }

    /// The entries, whose costs stay.
    pub(super) fn entries_mut(&mut self) -> &mut [Entry] {
        &mut self.entries
    }

    #[inline(always)]
    pub(super) fn counts(&self) -> CostCounts {
        self.counts
    }
}

impl Deref for Stack {
    type Target = [Entry];

    #[inline(always)]
    fn deref(&self) -> &[Entry] {
        &self.entries
    }
}

/// How much of the stack is in use. (MAN p. 51; the two extra subentries are Mesa's and LLVM's.)
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StackUse {
    /// Whole entries.
    pub full: u32,
    /// Subentries.
    pub sub: u32,
}

impl StackUse {
    /// How much a stack of these entries takes on a chip with wavefronts of `wave_width` lanes. While any plain push is
    /// among them, two subentries are added to the entries' own costs (Mesa, LLVM).
    #[inline]
    pub fn of(entries: impl IntoIterator<Item = Cost>, wave_width: u8) -> StackUse {
        let mut counts = CostCounts::default();
        entries.into_iter().for_each(|cost| *counts.of(cost) += 1);
        counts.stack_use(wave_width)
    }

    /// Subentries in an entry of the stack: 8 on chips 16 or 32 lanes wide, 4 on wider ones (MAN p. 51).
    #[inline(always)]
    pub const fn subentries_an_entry(wave_width: u8) -> u32 {
        if wave_width <= 32 { 8 } else { 4 }
    }

    /// Entries, when one holds `subentries_an_entry` subentries.
    #[inline(always)]
    pub const fn entries(self, subentries_an_entry: u32) -> u32 {
        self.full + self.sub.div_ceil(subentries_an_entry)
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            State::Active => "A",
            State::InactiveBranch => "IB",
            State::InactiveContinue => "IC",
            State::InactiveBreak => "IX",
        })
    }
}
