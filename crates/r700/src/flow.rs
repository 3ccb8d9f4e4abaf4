//! The divergence machine of a wavefront: active and valid masks, the states of the lanes, the stack, loops and
//! calls. Pure: no registers, no memory; inputs are lane masks and the fields of control-flow words.
//!
//! Source: AMD "R700-Family Instruction Set Architecture" (MAN), sections 3.4 to 3.6, PDF pages 47 to 54 and 120;
//! where working compilers show that the text cannot be meant literally, a [`Rule`] says so.
//!
//! Every lane is in one of four states (MAN p. 47):
//!
//! ```text
//!   A   active
//!   IB  inactive-branch     a PRED_SET or a branch switched it off
//!   IC  inactive-continue   LOOP_CONTINUE switched it off until the next round of the loop
//!   IX  inactive-break      it has left the loop, or was not active when the loop began
//! ```
//!
//! One stack serves everything. A branch entry has one bit a lane, "was active at the push"; therefore popping one
//! decides about `A` and `IB` lanes only ([`Rule::POP_KEEPS_BREAKS`]). A loop entry has the whole state before the
//! loop. A return entry has an address and no mask.
//!
//! Not here: clauses, which the engines run for the lanes that [`Flow::test`] or [`Flow::alu_enter`] name, and BARRIER,
//! which orders clauses that an in-order machine runs in order anyway.

mod events;
mod faults;
mod passes;
mod state;
mod view;

pub(crate) use events::{Before, Changes};
pub use faults::{Part, TRIP_BITS};
use state::Stack;
pub use state::{
    Condition, Control, Cost, Entry, FlowFault, FlowSetup, LoopConstant, LoopKind, LoopRegisters, Open,
    StackUse, State, States,
};

use reconverge_simt::{Lane, LastActive, Mask};

pub use crate::words::AluForm;

#[cfg(doc)]
use crate::rules::Rule;

/// The flow state of one wavefront. A copy is a snapshot.
#[derive(Clone, Debug, PartialEq)]
pub struct Flow {
    setup: FlowSetup,
    pc: u32,
    states: States,
    valid: Mask,
    stack: Stack,
    registers: Option<LoopRegisters>,
    call_depth: u32,
    deepest: u32,
    done: bool,
    /// The lanes that ran last. Only events depend on this field.
    ran: LastActive,
}

type Flows = Result<(), FlowFault>;

impl Flow {
    /// A wavefront before its first instruction: valid lanes are active, the others inactive-branch.
    pub fn new(setup: FlowSetup) -> Flow {
        Flow {
            pc: setup.start,
            states: States { active: setup.valid, ..States::default() },
            valid: setup.valid,
            stack: Stack::default(),
            registers: None,
            call_depth: 0,
            deepest: 0,
            done: false,
            ran: LastActive::default(),
            setup,
        }
    }

    /// Becomes the flow state of another launch, before [`Flow::restart`]. The memory of the stack stays.
    pub(crate) fn begin(&mut self, setup: FlowSetup) {
        self.setup = setup;
    }

    /// Resets to the state of [`Flow::new`] with these valid lanes.
    pub fn restart(&mut self, lanes: Mask) {
        let Flow { setup, pc, states, valid, stack, registers, call_depth, deepest, done, ran } = self;
        setup.valid = lanes;
        *pc = setup.start;
        *states = States { active: lanes, ..States::default() };
        *valid = lanes;
        stack.clear();
        *registers = None;
        (*call_depth, *deepest, *done, *ran) = (0, 0, false, LastActive::default());
    }

    // Queries.

    /// The next control-flow instruction, in 64-bit words from the start of its program.
    #[inline]
    pub fn pc(&self) -> u32 {
        self.pc
    }

    /// Lanes in state A.
    #[inline]
    pub fn active(&self) -> Mask {
        self.states.active
    }

    /// Lanes that no KILL has removed and that were covered at launch.
    pub fn valid(&self) -> Mask {
        self.valid
    }

    /// The lanes' states.
    pub fn states(&self) -> States {
        self.states
    }

    /// The state of one lane.
    pub fn state(&self, lane: Lane) -> State {
        if self.states.active.has(lane) {
            State::Active
        } else if self.states.inactive_continue.has(lane) {
            State::InactiveContinue
        } else if self.states.inactive_break.has(lane) {
            State::InactiveBreak
        } else {
            State::InactiveBranch
        }
    }

    /// The stack, outermost entry first.
    pub fn entries(&self) -> &[Entry] {
        &self.stack
    }

    /// The registers of the innermost loop.
    pub fn loop_registers(&self) -> Option<LoopRegisters> {
        self.registers
    }

    /// aL: the index of the innermost DX9 loop; `None` outside every one (undefined there, MAN p. 120).
    pub fn loop_index(&self) -> Option<i32> {
        self.registers.and_then(|registers| registers.index)
    }

    /// Sets aL, as MOVA_GPR_INT does on early R600 chips; outside a loop the value holds until one begins or ends.
    pub fn set_loop_index(&mut self, index: i32) {
        match &mut self.registers {
            Some(registers) => registers.index = Some(index),
            None => {
                self.registers =
                    Some(LoopRegisters { kind: LoopKind::Dx10, trip: 0, index: Some(index), step: 0 })
            }
        }
    }

    /// Whether the program has ended.
    #[inline]
    pub fn done(&self) -> bool {
        self.done
    }

    /// Whether the wavefront is in the fetch program that CALL_FS calls.
    #[inline]
    pub fn in_fetch_program(&self) -> bool {
        self.stack.iter().any(|entry| matches!(entry, Entry::Return { into_fetch_program: true, .. }))
    }

    /// The sum of the CALL_COUNTs of the calls on the stack.
    pub fn call_depth(&self) -> u32 {
        self.call_depth
    }

    /// Subentries in an entry of the stack: 8 on chips 16 or 32 lanes wide, 4 on wider ones (MAN p. 51).
    #[inline(always)]
    pub fn subentries_an_entry(&self) -> u32 {
        StackUse::subentries_an_entry(self.setup.wave_width)
    }

    /// How much of the stack is in use, in entries and subentries.
    #[inline(always)]
    pub fn stack_use(&self) -> StackUse {
        self.stack.counts().stack_use(self.setup.wave_width)
    }

    /// What is on the stack, if it is not empty. A program that ends so has not closed what it opened.
    pub fn open(&self) -> Option<Open> {
        let count = |wanted: &str| self.stack.iter().filter(|entry| entry.kind().starts_with(wanted)).count();
        let open = Open { pushes: count("PUSH"), loops: count("LOOP"), calls: count("CALL") };
        (!self.stack.is_empty()).then_some(open)
    }

    /// The most entries the stack has held so far: what STACK_SIZE must be at least.
    pub fn stack_needed(&self) -> u32 {
        self.deepest
    }

    // Conditions.

    /// The lanes that pass the condition test of a control-flow word (MAN 3.6.3, p. 49).
    ///
    /// | COND | default | WHOLE_QUAD_MODE | VALID_PIXEL_MODE |
    /// |---|---|---|---|
    /// | ACTIVE | active | in a quad with an active lane | active and valid |
    /// | FALSE | none | none | none |
    /// | BOOL, NOT_BOOL | as ACTIVE if the boolean is 1, or 0; otherwise none | | |
    ///
    /// # Errors
    /// Both modes at once, in strict mode; in lenient mode VALID_PIXEL_MODE wins.
    #[inline(always)]
    pub fn test(&self, control: &Control) -> Result<Mask, FlowFault> {
        self.passing(self.states.active, control)
    }

    /// [`Flow::test`] as if `active` were the active lanes.
    #[inline(always)]
    fn passing(&self, active: Mask, control: &Control) -> Result<Mask, FlowFault> {
        if !self.boolean(control.cond) {
            return Ok(Mask::NONE);
        }
        match (control.whole_quad_mode, control.valid_pixel_mode) {
            (true, true) if self.setup.strict => Err(FlowFault::BothModes),
            (_, true) => Ok(active & self.valid),
            (true, false) => Ok(self.quads_of(active)),
            (false, false) => Ok(active),
        }
    }

    /// Whether COND can pass for any lane.
    #[inline(always)]
    fn boolean(&self, cond: Condition) -> bool {
        // ACTIVE first: nearly all instructions have it.
        cond == Condition::Active || self.constant(cond)
    }

    /// [`Flow::boolean`] for the rarer conditions.
    #[inline(never)]
    fn constant(&self, cond: Condition) -> bool {
        let boolean = |number: u8| self.setup.booleans >> (number & 31) & 1 != 0;
        match cond {
            Condition::Active => true,
            Condition::False => false,
            Condition::Bool(number) => boolean(number),
            Condition::NotBool(number) => !boolean(number),
        }
    }

    /// Every lane of the wavefront in a quad that has one of `lanes`. Four lanes in a row are a quad.
    fn quads_of(&self, lanes: Mask) -> Mask {
        let first = 0x1111_1111_1111_1111;
        let any = (lanes.0 | lanes.0 >> 1 | lanes.0 >> 2 | lanes.0 >> 3) & first;
        Mask(any * 0xf) & Mask::first(self.setup.wave_width.into())
    }

    /// Active lanes that fail become inactive-branch; lanes that pass without being active (WHOLE_QUAD_MODE) wake
    /// if they were inactive-branch ([`Rule::WHOLE_QUAD_REVIVES_BRANCHES_ONLY`]).
    #[inline]
    fn keep(&mut self, pass: Mask) {
        self.states.active = pass - self.states.out_of_round();
    }

    // The stack.

    #[inline(always)]
    fn push(&mut self, entry: Entry) -> Flows {
        self.stack.push(entry);
        let used = self.stack_use();
        let subentries_an_entry = self.subentries_an_entry();
        let needed = used.entries(subentries_an_entry);
        self.deepest = self.deepest.max(needed);
        if needed <= self.stack_limit() {
            return Ok(());
        }
        self.stack.pop();
        let Some(declared) = self.declared() else { return Err(FlowFault::StackTooDeep { needed }) };
        let (full, sub) = (used.full, used.sub);
        Err(FlowFault::StackOverflow { needed, declared, full, sub, subentries_an_entry, program: None })
    }

    /// STACK_SIZE, where more of the stack is a fault.
    #[inline(always)]
    fn declared(&self) -> Option<u32> {
        self.setup.stack_size.filter(|_| self.setup.strict)
    }

    /// The most entries of the stack: as declared, or as many as can be.
    #[inline(always)]
    fn stack_limit(&self) -> u32 {
        self.declared().unwrap_or(FlowSetup::MOST_STACK)
    }

    #[inline(always)]
    fn push_branch(&mut self, whole_quad: bool) -> Flows {
        self.push(Entry::Branch { active: self.states.active, whole_quad })
    }

    /// Pops `count` branch entries; the last one decides which lanes are active ([`Rule::POP_KEEPS_BREAKS`]).
    /// Nothing is changed when one of them is not a branch entry.
    #[inline(always)]
    fn pop_entries(&mut self, op: &'static str, count: u8) -> Flows {
        let count = usize::from(count);
        for depth in 0..count {
            match self.stack.iter().rev().nth(depth) {
                Some(Entry::Branch { .. }) => {}
                Some(other) => return Err(FlowFault::WrongEntry { op, wanted: "PUSH", found: other.kind() }),
                None => return Err(FlowFault::StackEmpty { op }),
            }
        }
        let depth = self.stack.len() - count;
        if let Some(Entry::Branch { active, .. }) = self.stack.get(depth) {
            self.states.active = *active - self.states.out_of_round();
        }
        self.stack.truncate(depth);
        Ok(())
    }

    /// The lanes that were active at the innermost push on the stack, or when the innermost loop began; without either
    /// the lanes that were valid at launch.
    #[inline(always)]
    fn top_mask(&self) -> Mask {
        let mask = self.stack.iter().rev().find_map(|entry| match entry {
            Entry::Branch { active, .. } => Some(*active),
            Entry::Loop { states, .. } => Some(states.active),
            Entry::Return { .. } => None,
        });
        mask.unwrap_or(self.setup.valid)
    }

    /// The depth of the stack up to and including the innermost loop's entry, if that loop began in this subroutine.
    #[inline]
    fn loop_entry(&self) -> Option<usize> {
        let top = self.stack.iter().rposition(|entry| !matches!(entry, Entry::Branch { .. }))?;
        matches!(self.stack[top], Entry::Loop { .. }).then_some(top + 1)
    }

    #[inline(always)]
    fn next(&mut self) -> Flows {
        self.pc += 1;
        Ok(())
    }

    #[inline(always)]
    fn jump_to(&mut self, addr: u32) -> Flows {
        self.pc = addr;
        Ok(())
    }

    // Control-flow instructions, by number. Each sets the program counter to the next one.

    /// 0x00 NOP, 0x19 END_PROGRAM, 0x1a WAIT_ACK, and every instruction whose work is done elsewhere (clauses,
    /// exports, EMIT and CUT): on to the next instruction. (MAN p. 37)
    #[inline]
    pub fn nop(&mut self) {
        self.pc += 1;
    }

    /// END_OF_PROGRAM of the instruction just executed: stop, whatever it decided. (MAN p. 37)
    #[inline]
    pub fn end_of_program(&mut self) {
        self.done = true;
    }

    /// 0x04 LOOP_START: a DX9 loop, with a count and an index from loop constant CF_CONST. (MAN p. 120)
    ///
    /// The page words one condition as "initial loop index is zero"; the sentences around it and its table say loop
    /// count.
    pub fn loop_start(&mut self, control: &Control) -> Flows {
        let constant = self.setup.loop_constants[usize::from(control.cf_const & 31)];
        let registers = LoopRegisters {
            kind: LoopKind::Dx9,
            trip: constant.count(),
            index: Some(constant.init()),
            step: constant.inc(),
        };
        self.start(control, registers, constant.count() > 0)
    }

    /// 0x07 LOOP_START_NO_AL: a repeat loop; aL stays that of the loop around it.
    pub fn loop_start_no_al(&mut self, control: &Control) -> Flows {
        let constant = self.setup.loop_constants[usize::from(control.cf_const & 31)];
        let registers = LoopRegisters {
            kind: LoopKind::Repeat,
            trip: constant.count(),
            index: self.loop_index(),
            step: 0,
        };
        self.start(control, registers, constant.count() > 0)
    }

    /// 0x06 LOOP_START_DX10: a loop that ends by breaks only ([`Rule::DX10_LOOP_HAS_NO_COUNT`]).
    pub fn loop_start_dx10(&mut self, control: &Control) -> Flows {
        let limit = self.setup.dx10_loop_limit;
        let registers = LoopRegisters {
            kind: LoopKind::Dx10,
            trip: limit.unwrap_or(0),
            index: self.loop_index(),
            step: 0,
        };
        self.start(control, registers, limit != Some(0))
    }

    /// Lanes that do not pass become inactive-break, so that LOOP_END cannot wake them. If no lane passes, nothing is
    /// pushed, POP_COUNT entries are popped, and the loop is jumped over.
    fn start(&mut self, control: &Control, registers: LoopRegisters, any_round: bool) -> Flows {
        let pass = self.test(control)? - self.states.out_of_round();
        if !any_round || pass.is_empty() {
            self.pop_entries("LOOP_START", control.pop_count)?;
            return self.jump_to(control.addr);
        }
        self.push(Entry::Loop { states: self.states, registers: self.registers, body: self.pc + 1 })?;
        self.states = States { active: pass, inactive_continue: Mask::NONE, inactive_break: !pass };
        self.registers = Some(registers);
        self.next()
    }

    /// 0x05 LOOP_END: wakes all lanes that have not left the loop, counts, and goes on with those that pass; when
    /// none does, the state before the loop is restored. POP_COUNT is ignored.
    ///
    /// # Errors
    /// In strict mode ADDR must be the instruction after the LOOP_START (MAN p. 120: the two name each other).
    #[inline(always)]
    pub fn loop_end(&mut self, control: &Control) -> Flows {
        let (saved, saved_registers, body) = match self.stack.last() {
            Some(Entry::Loop { states, registers, body }) => (*states, *registers, *body),
            Some(other) => {
                return Err(FlowFault::WrongEntry { op: "LOOP_END", wanted: "LOOP", found: other.kind() });
            }
            None => return Err(FlowFault::StackEmpty { op: "LOOP_END" }),
        };
        if control.addr != body {
            self.another_body(control.addr, body)?;
        }
        let pass = self.passing(!self.states.inactive_break, control)? - self.states.inactive_break;
        let mut another_round = pass.any();
        if let Some(registers) = &mut self.registers {
            match registers.kind {
                LoopKind::Dx9 => {
                    registers.trip = registers.trip.saturating_sub(1);
                    registers.index = registers.index.map(|index| index.wrapping_add(registers.step));
                    another_round &= registers.trip > 0;
                }
                LoopKind::Repeat => {
                    registers.trip = registers.trip.saturating_sub(1);
                    another_round &= registers.trip > 0;
                }
                LoopKind::Dx10 => {
                    // 0 is no limit.
                    if let Some(rounds) = registers.trip.checked_sub(1) {
                        registers.trip = rounds;
                        another_round &= rounds > 0;
                    }
                }
            }
        }
        if another_round {
            self.states = States { active: pass, inactive_continue: Mask::NONE, inactive_break: !pass };
            self.jump_to(control.addr)
        } else {
            self.stack.pop();
            self.states = saved;
            self.registers = saved_registers;
            self.next()
        }
    }

    /// A LOOP_END that does not lead to the body of its loop.
    #[cold]
    fn another_body(&self, end_leads_to: u32, body: u32) -> Flows {
        if self.setup.strict { Err(FlowFault::LoopPair { end_leads_to, body }) } else { Ok(()) }
    }

    /// 0x09 LOOP_BREAK: lanes that pass leave the loop.
    pub fn loop_break(&mut self, control: &Control) -> Flows {
        let pass = self.test(control)?;
        self.leave_round("LOOP_BREAK", control, |states| {
            states.inactive_break |= pass - states.inactive_continue
        })
    }

    /// 0x08 LOOP_CONTINUE: lanes that pass become inactive-continue until the next round.
    ///
    /// "Lanes that pass" excludes those in inactive-break: WHOLE_QUAD_MODE lets them pass the test with their quad, but a
    /// lane that has left the loop does not come back ([`Rule::WHOLE_QUAD_REVIVES_BRANCHES_ONLY`]).
    pub fn loop_continue(&mut self, control: &Control) -> Flows {
        let pass = self.test(control)?;
        self.leave_round("LOOP_CONTINUE", control, |states| {
            states.inactive_continue |= pass - states.inactive_break
        })
    }

    /// Goes to the next instruction; or, when every lane is in inactive-continue or inactive-break, pops the branch
    /// entries of the loop's body and goes to the LOOP_END at ADDR. Jumping as soon as no lane is active would skip the
    /// else part of an `if` around it. POP_COUNT is ignored.
    fn leave_round(&mut self, op: &'static str, control: &Control, leave: impl FnOnce(&mut States)) -> Flows {
        let keep = self.loop_entry().ok_or(FlowFault::OutsideLoop { op })?;
        leave(&mut self.states);
        self.states.active = self.states.active - self.states.out_of_round();
        if self.states.out_of_round() == Mask(u64::MAX) {
            self.stack.truncate(keep);
            self.jump_to(control.addr)
        } else {
            self.next()
        }
    }

    /// 0x0a JUMP: pops POP_COUNT entries and jumps when no lane passes ([`Rule::POP_ONLY_WHEN_JUMPING`]).
    #[inline(always)]
    pub fn jump(&mut self, control: &Control) -> Flows {
        if self.test(control)?.any() {
            return self.next();
        }
        self.pop_entries("JUMP", control.pop_count)?;
        self.jump_to(control.addr)
    }

    /// 0x0b PUSH: saves the active mask and keeps those that pass. When none does: pushes nothing, pops
    /// POP_COUNT entries and jumps. (MAN p. 53)
    pub fn push_(&mut self, control: &Control) -> Flows {
        let pass = self.test(control)?;
        if pass.is_empty() {
            self.pop_entries("PUSH", control.pop_count)?;
            return self.jump_to(control.addr);
        }
        self.push_branch(control.whole_quad_mode)?;
        self.keep(pass);
        self.next()
    }

    /// 0x0c PUSH_ELSE ([`Rule::PUSH_ELSE_INVERTS`]): saves the active mask and keeps those that fail; jumps when
    /// none does.
    pub fn push_else(&mut self, control: &Control) -> Flows {
        let pass = self.test(control)?;
        self.push_branch(control.whole_quad_mode)?;
        self.states.active = self.states.active - pass;
        if self.states.active.is_empty() { self.jump_to(control.addr) } else { self.next() }
    }

    /// 0x0d ELSE: among the lanes that were active at the innermost push, active ones and inactive-branch ones
    /// change places. When no lane is active then: pops POP_COUNT entries and jumps.
    #[inline(always)]
    pub fn else_(&mut self, control: &Control) -> Flows {
        self.flip(control)?;
        if self.states.active.any() {
            return self.next();
        }
        self.pop_entries("ELSE", control.pop_count)?;
        self.jump_to(control.addr)
    }

    #[inline(always)]
    fn flip(&mut self, control: &Control) -> Flows {
        if control.whole_quad_mode && control.valid_pixel_mode && self.setup.strict {
            return Err(FlowFault::BothModes);
        }
        if !self.boolean(control.cond) {
            return Ok(());
        }
        let mut lanes = self.top_mask();
        if control.valid_pixel_mode {
            lanes &= self.valid;
        } else if control.whole_quad_mode {
            lanes = self.quads_of(lanes);
        }
        self.states.active = (self.states.active ^ lanes) - self.states.out_of_round();
        Ok(())
    }

    /// 0x0e POP: pops POP_COUNT entries; lanes that then fail the test become inactive-branch. (MAN p. 54)
    #[inline]
    pub fn pop(&mut self, control: &Control) -> Flows {
        self.pop_entries("POP", control.pop_count)?;
        let pass = self.test(control)?;
        self.keep(pass);
        self.next()
    }

    /// 0x0f POP_JUMP: pops POP_COUNT entries, then jumps when no lane passes.
    pub fn pop_jump(&mut self, control: &Control) -> Flows {
        self.pop_entries("POP_JUMP", control.pop_count)?;
        if self.test(control)?.any() { self.next() } else { self.jump_to(control.addr) }
    }

    /// 0x10 POP_PUSH: pops POP_COUNT entries, then PUSH with none.
    pub fn pop_push(&mut self, control: &Control) -> Flows {
        self.pop_entries("POP_PUSH", control.pop_count)?;
        self.push_(&control.pop(0))
    }

    /// 0x11 POP_PUSH_ELSE: pops POP_COUNT entries, then PUSH_ELSE ([`Rule::PUSH_ELSE_INVERTS`]).
    pub fn pop_push_else(&mut self, control: &Control) -> Flows {
        self.pop_entries("POP_PUSH_ELSE", control.pop_count)?;
        self.push_else(&control.pop(0))
    }

    /// 0x12 CALL: when a lane passes and the depth allows it, saves the next address and jumps. A call too deep is
    /// passed over. No mask is saved. (MAN p. 53)
    pub fn call(&mut self, control: &Control) -> Flows {
        if control.pop_count != 0 && self.setup.strict {
            return Err(FlowFault::CallPops { pop_count: control.pop_count });
        }
        let deeper = self.call_depth + u32::from(control.call_count);
        if self.test(control)?.is_empty() || deeper > self.setup.call_limit {
            return self.next();
        }
        self.push(Entry::Return { pc: self.pc + 1, calls: control.call_count, into_fetch_program: false })?;
        self.call_depth = deeper;
        self.jump_to(control.addr)
    }

    /// 0x13 CALL_FS: calls the fetch program of the launch; ADDR is ignored. Without one the call returns at once, but
    /// still needs its place on the stack.
    pub fn call_fs(&mut self, control: &Control) -> Flows {
        if self.in_fetch_program() {
            return Err(FlowFault::NestedFetchProgram);
        }
        let deeper = self.call_depth + u32::from(control.call_count);
        if self.test(control)?.is_empty() || deeper > self.setup.call_limit {
            return self.next();
        }
        let calls = control.call_count;
        self.push(Entry::Return { pc: self.pc + 1, calls, into_fetch_program: true })?;
        match self.setup.fetch_start {
            Some(start) => {
                self.call_depth = deeper;
                self.jump_to(start)
            }
            None => {
                self.stack.pop();
                self.next()
            }
        }
    }

    /// 0x14 RETURN: when every active lane passes, also when there is none, goes to the instruction after the call.
    pub fn return_(&mut self, control: &Control) -> Flows {
        let pass = self.test(control)?;
        if (self.states.active - pass).any() {
            return self.next();
        }
        match self.stack.last() {
            Some(Entry::Return { pc, calls, .. }) => {
                let (pc, calls) = (*pc, *calls);
                self.call_depth -= u32::from(calls);
                self.stack.pop();
                self.jump_to(pc)
            }
            Some(other) => Err(FlowFault::WrongEntry { op: "RETURN", wanted: "CALL", found: other.kind() }),
            None => Err(FlowFault::StackEmpty { op: "RETURN" }),
        }
    }

    /// 0x18 KILL: lanes that pass are no longer valid; jumps when none is
    /// ([`Rule::KILL_JUMPS_WHEN_NONE_IS_VALID`]). The active state stays. (MAN p. 47)
    pub fn kill(&mut self, control: &Control) -> Flows {
        let pass = self.test(control)?;
        self.kill_lanes(pass);
        if self.valid.is_empty() { self.jump_to(control.addr) } else { self.next() }
    }

    /// Removes lanes from the valid mask for good, as the ALU's KILL* do.
    #[inline]
    pub fn kill_lanes(&mut self, lanes: Mask) {
        self.valid = self.valid - lanes;
    }

    // ALU clauses.

    /// The start of an ALU clause: pushes for ALU_PUSH_BEFORE, even when no lane is active
    /// ([`Rule::ALU_PUSH_BEFORE_ALWAYS_PUSHES`]), and gives the lanes that run: the active ones, in
    /// WHOLE_QUAD_MODE every lane of a quad that has one.
    #[inline(always)]
    pub fn alu_enter(&mut self, form: AluForm, whole_quad_mode: bool) -> Result<Mask, FlowFault> {
        match form {
            AluForm::ALU_PUSH_BEFORE => self.push_branch(whole_quad_mode)?,
            AluForm::ALU_CONTINUE | AluForm::ALU_BREAK
                if self.setup.strict && self.loop_entry().is_none() =>
            {
                return Err(FlowFault::OutsideLoop { op: form.name() });
            }
            AluForm::ALU
            | AluForm::ALU_POP_AFTER
            | AluForm::ALU_POP2_AFTER
            | AluForm::ALU_CONTINUE
            | AluForm::ALU_BREAK
            | AluForm::ALU_ELSE_AFTER => {}
        }
        Ok(self.alu_lanes(whole_quad_mode))
    }

    /// The lanes for which the next group of an ALU clause runs.
    #[inline(always)]
    pub fn alu_lanes(&self, whole_quad_mode: bool) -> Mask {
        if whole_quad_mode { self.quads_of(self.states.active) } else { self.states.active }
    }

    /// A PRED_SET* with UPDATE_EXECUTE_MASK: `skip` are the lanes whose result is "skip". Active ones become
    /// inactive-branch, in ALU_CONTINUE inactive-continue, in ALU_BREAK inactive-break; others keep their state. Gives
    /// whether the active lanes part: some stay active and some do not.
    #[inline(always)]
    pub fn update_execute_mask(&mut self, form: AluForm, skip: Mask) -> bool {
        let skip = skip & self.states.active;
        self.states.active = self.states.active - skip;
        match form {
            AluForm::ALU_CONTINUE => self.states.inactive_continue |= skip,
            AluForm::ALU_BREAK => self.states.inactive_break |= skip,
            AluForm::ALU
            | AluForm::ALU_PUSH_BEFORE
            | AluForm::ALU_POP_AFTER
            | AluForm::ALU_POP2_AFTER
            | AluForm::ALU_ELSE_AFTER => {}
        }
        skip.any() && self.states.active.any()
    }

    /// The end of an ALU clause: pops or flips as the form says, and goes on to the next instruction; an ALU clause
    /// never jumps.
    #[inline(always)]
    pub fn alu_leave(&mut self, form: AluForm) -> Flows {
        match form {
            AluForm::ALU_POP_AFTER => self.pop_entries("ALU_POP_AFTER", 1)?,
            AluForm::ALU_POP2_AFTER => self.pop_entries("ALU_POP2_AFTER", 2)?,
            AluForm::ALU_ELSE_AFTER => self.flip(&Control::to(0))?,
            AluForm::ALU | AluForm::ALU_PUSH_BEFORE | AluForm::ALU_CONTINUE | AluForm::ALU_BREAK => {}
        }
        self.next()
    }
}
