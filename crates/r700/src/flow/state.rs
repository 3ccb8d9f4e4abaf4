//! The parts of the divergence machine: conditions, states of lanes, loops, entries of the stack, faults.

use std::fmt;
use std::ops::Deref;

use reconverge_simt::Mask;
use thiserror::Error;

#[cfg(doc)]
use crate::rules::Rule;

/// Test of a control-flow instruction that selects the lanes that pass: the fields COND and CF_CONST. (MAN 3.6.3)
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
    /// Returns the fields with COND = ACTIVE and this address, everything else zero. Compilers write this combination
    /// most often.
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

    /// Returns these fields with another POP_COUNT.
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
    /// Returns the lanes in IC or IX, which only the loop resumes.
    #[inline(always)]
    pub(super) fn out_of_round(self) -> Mask {
        self.inactive_continue | self.inactive_break
    }
}

/// The three kinds of loops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoopKind {
    /// LOOP_START: a count and an index.
    Dx9,
    /// LOOP_START_NO_AL: a count. The index remains that of the outer loop.
    Repeat,
    /// LOOP_START_DX10: only breaks end it.
    Dx10,
}

/// The registers of the innermost loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoopRegisters {
    /// Kind of the loop.
    pub kind: LoopKind,
    /// Remaining iterations, including this one; 0 in a DX10 loop without a limit.
    pub trip: u32,
    /// aL, if this loop or an enclosing one has an index.
    pub index: Option<i32>,
    /// Number that is added to aL after each iteration.
    pub step: i32,
}

/// One entry of the stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// PUSH.
    Branch {
        /// The lanes that were active before the push.
        active: Mask,
        /// Whether the push was in WHOLE_QUAD_MODE and takes a whole entry.
        whole_quad: bool,
    },
    /// LOOP_START*: the state before the loop.
    Loop {
        /// The lanes' states.
        states: States,
        /// The registers of the enclosing loop.
        registers: Option<LoopRegisters>,
        /// The first instruction of the loop's body, to which its LOOP_END jumps.
        body: u32,
    },
    /// CALL: the target of RETURN.
    Return {
        /// The instruction after the call.
        pc: u32,
        /// Number that the call added to the nesting depth.
        calls: u8,
        /// Whether the call went into the fetch program.
        into_fetch_program: bool,
    },
}

/// Entries on the stack of a wavefront that has ended. In strict mode they are a finding, not a trap. END_OF_PROGRAM
/// stops the wavefront whatever its stack, but no structured program ends with entries on its stack.
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

/// Size of an entry on the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cost {
    /// A push: one subentry.
    Push,
    /// A push in WHOLE_QUAD_MODE: one entry.
    WholeQuadPush,
    /// A loop: one entry.
    Loop,
    /// A call: one subentry; two on chips that are 16 lanes wide.
    Call,
}

impl Entry {
    /// Returns the size of the entry.
    #[inline(always)]
    pub const fn cost(&self) -> Cost {
        match self {
            Entry::Branch { whole_quad: false, .. } => Cost::Push,
            Entry::Branch { whole_quad: true, .. } => Cost::WholeQuadPush,
            Entry::Loop { .. } => Cost::Loop,
            Entry::Return { .. } => Cost::Call,
        }
    }

    /// Returns the manual's word for the instruction that pushed the entry.
    pub const fn kind(&self) -> &'static str {
        match self {
            Entry::Branch { .. } => "PUSH",
            Entry::Loop { .. } => "LOOP",
            Entry::Return { into_fetch_program: false, .. } => "CALL",
            Entry::Return { into_fetch_program: true, .. } => "CALL_FS",
        }
    }
}

/// The constants of a launch that affect flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowSetup {
    /// Lanes of a wavefront: 16, 32 or 64. Determines the number of subentries in an entry of the stack.
    pub wave_width: u8,
    /// The lanes that are valid at the start.
    pub valid: Mask,
    /// STACK_SIZE of SQ_PGM_RESOURCES, in entries; `None` for [`FlowSetup::MOST_STACK`].
    pub stack_size: Option<u32>,
    /// SQ_LOOP_CONST, by number.
    pub loop_constants: [LoopConstant; 32],
    /// SQ_BOOL_CONST of the stage: bit n is boolean n.
    pub booleans: u32,
    /// Maximum nesting depth of CALL.
    pub call_limit: u32,
    /// Iterations after which a DX10 loop ends; the hardware has no such limit ([`Rule::DX10_LOOP_HAS_NO_COUNT`]).
    pub dx10_loop_limit: Option<u32>,
    /// First instruction of the main program.
    pub start: u32,
    /// First instruction of the fetch program. `None` makes CALL_FS return at once.
    pub fetch_start: Option<u32>,
    /// Whether undefined behaviour traps.
    pub strict: bool,
}

impl FlowSetup {
    /// Maximum nesting depth of calls that the manual allows (MAN p. 53).
    pub const CALL_LIMIT: u32 = 32;

    /// Maximum number of stack entries that the eight bits of STACK_SIZE can declare.
    pub const MOST_STACK: u32 = 255;

    /// Returns the setup for a wavefront of `wave_width` lanes with these valid lanes: constants zero, no STACK_SIZE,
    /// strict.
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
    /// Returns the number of iterations.
    pub const fn count(self) -> u32 {
        self.0 & 0xfff
    }

    /// Returns the first value of aL.
    pub const fn init(self) -> i32 {
        (self.0 >> 12 & 0xfff) as i32
    }

    /// Returns the number that each iteration adds to aL, a signed 8-bit number.
    pub const fn inc(self) -> i32 {
        self.0 as i32 >> 24
    }
}

/// Reason why the program's flow is malformed, or undefined on the hardware.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FlowFault {
    /// A pop found an empty stack.
    #[error("{op} pops an empty stack")]
    StackEmpty {
        /// Manual's name of the instruction.
        op: &'static str,
    },
    /// The entry on top of the stack is of another kind than the instruction removes.
    #[error("{op} needs a {wanted} entry on top of the stack, but a {found} entry is there")]
    WrongEntry {
        /// Manual's name of the instruction.
        op: &'static str,
        /// Kind of entry that the instruction needs.
        wanted: &'static str,
        /// Kind of entry on top of the stack.
        found: &'static str,
    },
    /// LOOP_BREAK or LOOP_CONTINUE without a loop on the stack, or with a loop only below a call.
    #[error("{op} is outside every loop of its subroutine")]
    OutsideLoop {
        /// Manual's name of the instruction.
        op: &'static str,
    },
    /// LOOP_END and its LOOP_START name different bodies (strict mode).
    #[error("LOOP_END leads to {end_leads_to}, but its LOOP_START leads to {body}")]
    LoopPair {
        /// ADDR of the LOOP_END.
        end_leads_to: u32,
        /// The instruction after the LOOP_START.
        body: u32,
    },
    /// The program needs more stack than STACK_SIZE declares (strict mode).
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
        /// Entries that the whole program needs, if known. The wavefront fills this in: the divergence machine does not
        /// see the program.
        program: Option<u32>,
    },
    /// The program needs more stack than STACK_SIZE can declare.
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
    /// Returns the count of the entries with a cost.
    #[inline(always)]
    fn of(&mut self, cost: Cost) -> &mut u32 {
        match cost {
            Cost::WholeQuadPush | Cost::Loop => &mut self.full,
            Cost::Push => &mut self.pushes,
            Cost::Call => &mut self.calls,
        }
    }

    /// Returns the counts with this many more pushes.
    #[inline(always)]
    pub(super) fn and_pushes(self, more: u32) -> CostCounts {
        CostCounts { pushes: self.pushes + more, ..self }
    }

    /// Returns whether there are calls.
    #[inline(always)]
    pub(super) fn has_calls(&self) -> bool {
        self.calls > 0
    }

    /// Returns the size of the stack; see [`StackUse::of`].
    #[inline(always)]
    pub(super) fn stack_use(&self, wave_width: u8) -> StackUse {
        let CostCounts { full, pushes, calls } = *self;
        let own = pushes + calls * if wave_width == 16 { 2 } else { 1 };
        StackUse { full, sub: own + if pushes > 0 { 2 } else { 0 } }
    }
}

/// The entries of a stack, the last one on top.
///
/// Their costs are counted when entries are added and removed. Otherwise a shader with 96 nested branches spends 6 % of
/// its time on counting.
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

    /// Returns the entries for modification. Their costs must not change.
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

/// Part of the stack that is in use. (MAN p. 51; the two extra subentries are Mesa's and LLVM's.)
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StackUse {
    /// Whole entries.
    pub full: u32,
    /// Subentries.
    pub sub: u32,
}

impl StackUse {
    /// Returns the size of a stack of these entries on a chip with wavefronts of `wave_width` lanes. If any of them is
    /// a plain push, two subentries are added to the entries' own costs (Mesa, LLVM).
    #[inline]
    pub fn of(entries: impl IntoIterator<Item = Cost>, wave_width: u8) -> StackUse {
        let mut counts = CostCounts::default();
        entries.into_iter().for_each(|cost| *counts.of(cost) += 1);
        counts.stack_use(wave_width)
    }

    /// Returns the number of subentries in an entry of the stack: 8 on chips 16 or 32 lanes wide, 4 on wider ones
    /// (MAN p. 51).
    #[inline(always)]
    pub const fn subentries_an_entry(wave_width: u8) -> u32 {
        if wave_width <= 32 { 8 } else { 4 }
    }

    /// Returns the number of entries, if one holds `subentries_an_entry` subentries.
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
