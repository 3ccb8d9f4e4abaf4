//! The parts of the divergence machine: conditions, lane states, loops, stack entries, faults.

use std::fmt;
use std::ops::Deref;

use reconverge_simt::Mask;
use thiserror::Error;

#[cfg(doc)]
use crate::rules::Rule;

/// The condition of a control-flow instruction. The fields COND and CF_CONST of the instruction state the condition.
/// The condition selects the lanes that pass. (MAN 3.6.3)
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// CF_COND_ACTIVE: active lanes pass.
    Active,
    /// CF_COND_FALSE: no lane passes.
    False,
    /// CF_COND_BOOL. The condition is true for an active lane if the boolean constant with this number is 1.
    Bool(u8),
    /// CF_COND_NOT_BOOL. The condition is true for an active lane if the boolean constant with this number is 0.
    NotBool(u8),
}

/// The fields of a control-flow word that determine the flow of lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Control {
    /// ADDR, in 64-bit words from the start of the program.
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
    /// Returns fields with the condition ACTIVE and the address `addr`. All other fields are zero. Compilers use this
    /// combination of fields most often.
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

    /// Returns a copy of these fields with another POP_COUNT.
    pub const fn pop(self, pop_count: u8) -> Control {
        Control { pop_count, ..self }
    }
}

/// The state of a lane (MAN p. 47).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Active (A): the lane runs instructions.
    Active,
    /// Inactive-branch (IB): the lane waits for an ELSE or a POP.
    InactiveBranch,
    /// Inactive-continue (IC): the lane waits for the loop's next iteration.
    InactiveContinue,
    /// Inactive-break (IX): the lane waits for the end of the loop.
    InactiveBreak,
}

/// The states of all lanes, as three disjoint sets. A lane that is in none of the sets is inactive-branch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct States {
    /// Active lanes.
    pub active: Mask,
    /// Inactive-continue lanes.
    pub inactive_continue: Mask,
    /// Inactive-break lanes.
    pub inactive_break: Mask,
}

impl States {
    /// Returns the inactive-continue and inactive-break lanes. Only the loop that made such a lane inactive can make
    /// the lane active again.
    #[inline(always)]
    pub(super) fn out_of_round(self) -> Mask {
        self.inactive_continue | self.inactive_break
    }
}

/// Kind of a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoopKind {
    /// LOOP_START: the loop has a count and an index.
    Dx9,
    /// LOOP_START_NO_AL: the loop has a count, and uses the index of the enclosing loop.
    Repeat,
    /// LOOP_START_DX10: the loop ends only by LOOP_BREAK or ALU_BREAK.
    Dx10,
}

/// The registers of the innermost loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoopRegisters {
    /// Kind of the loop.
    pub kind: LoopKind,
    /// Remaining iterations, including the current iteration. In a DX10 loop without a limit, this number is 0.
    pub trip: u32,
    /// The value of aL. If neither this loop nor an enclosing loop has an index, the field is `None`.
    pub index: Option<i32>,
    /// Number that is added to aL after each iteration.
    pub step: i32,
}

/// One entry of the stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// A branch: the entry of a PUSH.
    Branch {
        /// The lanes that were active before the push.
        active: Mask,
        /// Whether the push was in WHOLE_QUAD_MODE. Such a push occupies a whole entry instead of a subentry.
        whole_quad: bool,
    },
    /// The entry of a LOOP_START*. The entry holds the state before the loop.
    Loop {
        /// The states of the lanes before the loop.
        states: States,
        /// The registers of the enclosing loop.
        registers: Option<LoopRegisters>,
        /// The first instruction of the loop's body. The LOOP_END of the loop jumps to this instruction.
        body: u32,
    },
    /// A call: the address to which RETURN jumps.
    Return {
        /// The instruction after the call.
        pc: u32,
        /// The CALL_COUNT that the call added to the nesting depth.
        calls: u8,
        /// Whether the call was a CALL_FS, which calls the fetch program.
        into_fetch_program: bool,
    },
}

/// Entries that remain on the stack at the end of a wavefront. In strict mode, the outcome reports these entries as a
/// finding. The entries do not cause a trap, because END_OF_PROGRAM stops a wavefront with any stack. At the end of a
/// structured program, no entries remain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the program ends with entries on its stack: {pushes} PUSH, {loops} LOOP, {calls} CALL")]
pub struct Open {
    /// Number of branch entries.
    pub pushes: usize,
    /// Number of loop entries.
    pub loops: usize,
    /// Number of call entries.
    pub calls: usize,
}

/// Size that an entry occupies on the stack. The size depends on the kind of entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cost {
    /// A push: one subentry.
    Push,
    /// The cost of a push in WHOLE_QUAD_MODE is one entry.
    WholeQuadPush,
    /// A loop: one entry.
    Loop,
    /// A call. A call costs one subentry, or two subentries on chips with wavefronts of 16 lanes.
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

    /// Returns the manual's term for the instruction that pushed the entry.
    pub const fn kind(&self) -> &'static str {
        match self {
            Entry::Branch { .. } => "PUSH",
            Entry::Loop { .. } => "LOOP",
            Entry::Return { into_fetch_program: false, .. } => "CALL",
            Entry::Return { into_fetch_program: true, .. } => "CALL_FS",
        }
    }
}

/// The constants of a launch that affect the flow of lanes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowSetup {
    /// Lanes of a wavefront: 16, 32 or 64. This number determines how many subentries a stack entry has.
    pub wave_width: u8,
    /// The lanes that are valid at the start.
    pub valid: Mask,
    /// STACK_SIZE of SQ_PGM_RESOURCES, in entries. `None` means [`FlowSetup::MOST_STACK`].
    pub stack_size: Option<u32>,
    /// SQ_LOOP_CONST, indexed by the number of the constant.
    pub loop_constants: [LoopConstant; 32],
    /// SQ_BOOL_CONST of the stage: bit n is boolean n.
    pub booleans: u32,
    /// Maximum nesting depth of CALL.
    pub call_limit: u32,
    /// A DX10 loop ends after this number of iterations. The hardware has no such limit
    /// ([`Rule::DX10_LOOP_HAS_NO_COUNT`]).
    pub dx10_loop_limit: Option<u32>,
    /// First instruction of the main program.
    pub start: u32,
    /// First instruction of the fetch program. If this field is `None`, CALL_FS returns at once.
    pub fetch_start: Option<u32>,
    /// Whether undefined behaviour traps.
    pub strict: bool,
}

impl FlowSetup {
    /// Maximum nesting depth of calls that the manual allows (MAN p. 53).
    pub const CALL_LIMIT: u32 = 32;

    /// Maximum number of stack entries that the eight bits of STACK_SIZE can declare.
    pub const MOST_STACK: u32 = 255;

    /// Returns the setup for a wavefront of `wave_width` lanes. `valid` are the valid lanes of the wavefront. All
    /// constants are zero, no STACK_SIZE is declared, and the mode is strict.
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

    /// Returns the signed 8-bit number that is added to aL after each iteration.
    pub const fn inc(self) -> i32 {
        self.0 as i32 >> 24
    }
}

/// Reason why the program's flow is malformed, or undefined on the hardware.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FlowFault {
    /// An instruction must remove an entry, but the stack is empty.
    #[error("{op} pops an empty stack")]
    StackEmpty {
        /// Manual's name of the instruction.
        op: &'static str,
    },
    /// The instruction must remove an entry, but the entry on top of the stack is of another kind.
    #[error("{op} needs a {wanted} entry on top of the stack, but a {found} entry is there")]
    WrongEntry {
        /// Manual's name of the instruction.
        op: &'static str,
        /// Kind of entry that the instruction needs.
        wanted: &'static str,
        /// Kind of entry on top of the stack.
        found: &'static str,
    },
    /// The program runs LOOP_BREAK or LOOP_CONTINUE, but the current subroutine has no open loop on the stack.
    #[error("{op} is outside every loop of its subroutine")]
    OutsideLoop {
        /// Manual's name of the instruction.
        op: &'static str,
    },
    /// The ADDR of a LOOP_END is not the address after the loop's LOOP_START (strict mode).
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
        /// Number of entries that the stack needs.
        needed: u32,
        /// Number of entries that STACK_SIZE declares.
        declared: u32,
        /// Number of whole entries in use.
        full: u32,
        /// Number of subentries in use, in addition to the whole entries.
        sub: u32,
        /// Number of subentries in an entry, 4 or 8.
        subentries_an_entry: u32,
        /// Number of entries that the whole program needs, or `None` if this number is unknown. The wavefront sets this
        /// field, because the divergence machine cannot access the program.
        program: Option<u32>,
    },
    /// The program needs more stack than STACK_SIZE can declare.
    #[error(
        "the stack needs {needed} entries here, and STACK_SIZE cannot declare more than {}",
        FlowSetup::MOST_STACK
    )]
    StackTooDeep {
        /// Number of entries that the stack needs.
        needed: u32,
    },
    /// An instruction has both WHOLE_QUAD_MODE and VALID_PIXEL_MODE (strict mode; MAN p. 49).
    #[error("WHOLE_QUAD_MODE and VALID_PIXEL_MODE are both set")]
    BothModes,
    /// The program contains a CALL whose POP_COUNT is not 0 (strict mode; MAN p. 53).
    #[error("CALL has POP_COUNT {pop_count}; it must be 0")]
    CallPops {
        /// Value of POP_COUNT.
        pop_count: u8,
    },
    /// A fetch program runs CALL_FS.
    #[error("CALL_FS inside the fetch program")]
    NestedFetchProgram,
}

fn whole(program: &Option<u32>) -> String {
    program.map_or_else(String::new, |entries| format!("; the whole program needs {entries}"))
}

/// For each cost, the number of stack entries with this cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CostCounts {
    full: u32,
    pushes: u32,
    calls: u32,
}

impl CostCounts {
    /// Returns the counter of the entries with cost `cost`.
    #[inline(always)]
    fn of(&mut self, cost: Cost) -> &mut u32 {
        match cost {
            Cost::WholeQuadPush | Cost::Loop => &mut self.full,
            Cost::Push => &mut self.pushes,
            Cost::Call => &mut self.calls,
        }
    }

    /// Returns the counts after `more` additional pushes.
    #[inline(always)]
    pub(super) fn and_pushes(self, more: u32) -> CostCounts {
        CostCounts { pushes: self.pushes + more, ..self }
    }

    /// Returns whether the stack has entries of calls.
    #[inline(always)]
    pub(super) fn has_calls(&self) -> bool {
        self.calls > 0
    }

    /// Returns the size of a stack with these entries. [`StackUse::of`] returns the same size.
    #[inline(always)]
    pub(super) fn stack_use(&self, wave_width: u8) -> StackUse {
        let CostCounts { full, pushes, calls } = *self;
        let own = pushes + calls * if wave_width == 16 { 2 } else { 1 };
        StackUse { full, sub: own + if pushes > 0 { 2 } else { 0 } }
    }
}

/// The entries of a stack. The last entry is on top.
///
/// For each cost, the stack also stores the number of entries with this cost. Each push and each pop updates these
/// numbers. If each push counted all entries, the counting would take 6 % of the time of a shader with 96 nested
/// branches.
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

    /// Removes all entries above depth `depth`.
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

    /// Returns the entries for modification. The caller must not change the costs of the entries.
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

/// The number of entries and subentries in use on a stack (MAN p. 51). If some entry is a push without WHOLE_QUAD_MODE,
/// the number includes two extra subentries (Mesa, LLVM).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StackUse {
    /// Number of whole entries.
    pub full: u32,
    /// Number of subentries in addition to the whole entries.
    pub sub: u32,
}

impl StackUse {
    /// Returns the size of a stack with these entries. The wavefronts of the chip have `wave_width` lanes. If some
    /// entry is a push without WHOLE_QUAD_MODE, the stack needs two extra subentries (Mesa, LLVM).
    #[inline]
    pub fn of(entries: impl IntoIterator<Item = Cost>, wave_width: u8) -> StackUse {
        let mut counts = CostCounts::default();
        entries.into_iter().for_each(|cost| *counts.of(cost) += 1);
        counts.stack_use(wave_width)
    }

    /// Returns the number of subentries in an entry of the stack. On chips with wavefronts of 16 or 32 lanes, the
    /// number is 8. On chips with wider wavefronts, the number is 4 (MAN p. 51).
    #[inline(always)]
    pub const fn subentries_an_entry(wave_width: u8) -> u32 {
        if wave_width <= 32 { 8 } else { 4 }
    }

    /// Returns the size in entries, rounded up. An entry has `subentries_an_entry` subentries.
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
