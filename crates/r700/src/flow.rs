//! The divergence machine of a wavefront. The machine consists of the active mask and the valid mask, the states of the
//! lanes, the stack, loops and calls. This machine does not access registers or memory. Its inputs are lane masks and
//! the fields of control-flow words.
//!
//! Source: AMD "R700-Family Instruction Set Architecture" (MAN), sections 3.4 to 3.6, PDF pages 47 to 54 and 120. In
//! some cases, the code of working compilers contradicts the literal text of the manual. A [`Rule`] then states the
//! interpretation.
//!
//! Each lane is in one of four states (MAN p. 47):
//!
//! ```text
//!   A   active
//!   IB  inactive-branch     a PRED_SET or a branch switched it off
//!   IC  inactive-continue   LOOP_CONTINUE switched it off until the next iteration
//!   IX  inactive-break      it has left the loop, or was not active when the loop began
//! ```
//!
//! One stack holds branch, loop and return entries. A branch entry has one bit per lane. The bit states whether the
//! lane was active at the push. Therefore a pop of a branch entry changes only `A` and `IB` lanes
//! ([`Rule::POP_KEEPS_BREAKS`]). A loop entry holds the states that all lanes had before the loop. A return entry has
//! an address and no mask.
//!
//! This module does not run clauses. The engines run a clause for the lanes that [`Flow::test`] or [`Flow::alu_enter`]
//! returns. On the chip, BARRIER makes a clause wait for earlier clauses. BARRIER has no effect here, because the
//! engines run clauses in order.

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

/// The flow state of one wavefront. A clone is a snapshot.
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
    /// The active lanes of the latest step that had active lanes. Only the events for observers depend on this field.
    ran: LastActive,
}

type Flows = Result<(), FlowFault>;

impl Flow {
    /// Returns the state before the first instruction of a wavefront. Valid lanes are active, and all other lanes are
    /// inactive-branch.
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

    /// Prepares this flow state for another launch. The flow state reuses the memory of its stack. The caller must then
    /// call [`Flow::restart`].
    pub(crate) fn begin(&mut self, setup: FlowSetup) {
        self.setup = setup;
    }

    /// Resets the flow state to the state that [`Flow::new`] returns, with `lanes` as the valid lanes.
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

    // Methods that query the flow state.

    /// Returns the address of the next control-flow instruction, in 64-bit words from the start of the program or fetch
    /// program.
    #[inline]
    pub fn pc(&self) -> u32 {
        self.pc
    }

    /// Returns the active lanes.
    #[inline]
    pub fn active(&self) -> Mask {
        self.states.active
    }

    /// Returns the lanes that were covered at launch and that no KILL has removed.
    pub fn valid(&self) -> Mask {
        self.valid
    }

    /// Returns the states of all lanes.
    pub fn states(&self) -> States {
        self.states
    }

    /// Returns the state of one lane.
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

    /// Returns the stack, outermost entry first.
    pub fn entries(&self) -> &[Entry] {
        &self.stack
    }

    /// Returns the registers of the innermost loop.
    pub fn loop_registers(&self) -> Option<LoopRegisters> {
        self.registers
    }

    /// Returns aL, the index of the innermost DX9 loop. Returns `None` outside every DX9 loop, where aL is undefined
    /// (MAN p. 120).
    pub fn loop_index(&self) -> Option<i32> {
        self.registers.and_then(|registers| registers.index)
    }

    /// Sets aL, as MOVA_GPR_INT does on early R600 chips. Outside a loop, aL keeps the set value until a loop begins or
    /// ends.
    pub fn set_loop_index(&mut self, index: i32) {
        match &mut self.registers {
            Some(registers) => registers.index = Some(index),
            None => {
                self.registers =
                    Some(LoopRegisters { kind: LoopKind::Dx10, trip: 0, index: Some(index), step: 0 })
            }
        }
    }

    /// Returns whether the program has ended.
    #[inline]
    pub fn done(&self) -> bool {
        self.done
    }

    /// Returns whether the wavefront is in the fetch program that CALL_FS calls.
    #[inline]
    pub fn in_fetch_program(&self) -> bool {
        self.stack.counts().has_calls()
            && self.stack.iter().any(|entry| matches!(entry, Entry::Return { into_fetch_program: true, .. }))
    }

    /// Returns the sum of the CALL_COUNTs of the calls on the stack.
    pub fn call_depth(&self) -> u32 {
        self.call_depth
    }

    /// Returns the number of subentries in an entry of the stack. On chips with wavefronts of 16 or 32 lanes, the
    /// number is 8. On chips with wider wavefronts, the number is 4 (MAN p. 51).
    #[inline(always)]
    pub fn subentries_an_entry(&self) -> u32 {
        StackUse::subentries_an_entry(self.setup.wave_width)
    }

    /// Returns the part of the stack that is in use, in entries and subentries.
    #[inline(always)]
    pub fn stack_use(&self) -> StackUse {
        self.stack.counts().stack_use(self.setup.wave_width)
    }

    /// Returns the open entries of the stack. If the stack is empty, the function returns `None`. If a program ends
    /// with open entries, the program has not closed some branch, loop or call.
    pub fn open(&self) -> Option<Open> {
        let count = |wanted: &str| self.stack.iter().filter(|entry| entry.kind().starts_with(wanted)).count();
        let open = Open { pushes: count("PUSH"), loops: count("LOOP"), calls: count("CALL") };
        (!self.stack.is_empty()).then_some(open)
    }

    /// Returns the largest number of entries that the stack has held so far. STACK_SIZE must be at least this number.
    pub fn stack_needed(&self) -> u32 {
        self.deepest
    }

    // Methods that test the conditions of control-flow words.

    /// Returns the lanes that pass the condition test of a control-flow word (MAN 3.6.3, p. 49).
    ///
    /// | COND | default | WHOLE_QUAD_MODE | VALID_PIXEL_MODE |
    /// |---|---|---|---|
    /// | ACTIVE | active lanes | lanes of quads with an active lane | active and valid lanes |
    /// | FALSE | no lanes | no lanes | no lanes |
    /// | BOOL | as ACTIVE if the boolean is 1, otherwise no lanes | same rule | same rule |
    /// | NOT_BOOL | as ACTIVE if the boolean is 0, otherwise no lanes | same rule | same rule |
    ///
    /// # Errors
    /// In strict mode, fails if VALID_PIXEL_MODE and WHOLE_QUAD_MODE are both set. In lenient mode, WHOLE_QUAD_MODE has
    /// no effect if VALID_PIXEL_MODE is set.
    #[inline(always)]
    pub fn test(&self, control: &Control) -> Result<Mask, FlowFault> {
        self.passing(self.states.active, control)
    }

    /// Returns the result that [`Flow::test`] would return if the active lanes were `active`.
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

    /// Returns whether the condition COND lets any lane pass.
    #[inline(always)]
    fn boolean(&self, cond: Condition) -> bool {
        // The check for ACTIVE comes first, because nearly all instructions have this condition.
        cond == Condition::Active || self.constant(cond)
    }

    /// Computes [`Flow::boolean`] for conditions other than ACTIVE. These conditions are rare.
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

    /// Returns all lanes of every quad that contains one of `lanes`. A quad consists of four consecutive lanes.
    fn quads_of(&self, lanes: Mask) -> Mask {
        let first = 0x1111_1111_1111_1111;
        let any = (lanes.0 | lanes.0 >> 1 | lanes.0 >> 2 | lanes.0 >> 3) & first;
        Mask(any * 0xf) & Mask::first(self.setup.wave_width.into())
    }

    /// Updates the lane states after a condition test. Active lanes that fail the test become inactive-branch. In
    /// WHOLE_QUAD_MODE, inactive lanes can also pass the test. An inactive lane that passes the test resumes only if
    /// the lane was inactive-branch ([`Rule::WHOLE_QUAD_REVIVES_BRANCHES_ONLY`]).
    #[inline]
    fn keep(&mut self, pass: Mask) {
        self.states.active = pass - self.states.out_of_round();
    }

    // The following methods push and pop entries of the stack.

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

    /// Returns STACK_SIZE if a stack with more entries than STACK_SIZE is a fault. Otherwise returns `None`.
    #[inline(always)]
    fn declared(&self) -> Option<u32> {
        self.setup.stack_size.filter(|_| self.setup.strict)
    }

    /// Returns the maximum number of stack entries. If a number is declared, the maximum is the declared number.
    /// Otherwise, the maximum is the largest number that can be declared.
    #[inline(always)]
    fn stack_limit(&self) -> u32 {
        self.declared().unwrap_or(FlowSetup::MOST_STACK)
    }

    #[inline(always)]
    fn push_branch(&mut self, whole_quad: bool) -> Flows {
        self.push(Entry::Branch { active: self.states.active, whole_quad })
    }

    /// Pops `count` branch entries. The entry that is popped last determines which lanes are active
    /// ([`Rule::POP_KEEPS_BREAKS`]). If one of the entries is not a branch entry, returns a fault and changes nothing.
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

    /// Returns the lanes that were active at the push of the innermost branch or loop entry. If the stack has no branch
    /// or loop entry, the function returns the lanes that were valid at launch.
    #[inline(always)]
    fn top_mask(&self) -> Mask {
        let mask = self.stack.iter().rev().find_map(|entry| match entry {
            Entry::Branch { active, .. } => Some(*active),
            Entry::Loop { states, .. } => Some(states.active),
            Entry::Return { .. } => None,
        });
        mask.unwrap_or(self.setup.valid)
    }

    /// Returns the number of stack entries up to and including the entry of the innermost loop. Returns `None` if no
    /// loop began in the current subroutine.
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

    // Methods that execute control-flow instructions, in the order of the instructions' numbers. Each function sets the
    // program counter to the address at which the wavefront continues.

    /// Executes 0x00 NOP, 0x19 END_PROGRAM and 0x1a WAIT_ACK. For instructions that other modules execute (clauses,
    /// exports, EMIT and CUT), this function also only continues with the next instruction. (MAN p. 37)
    #[inline]
    pub fn nop(&mut self) {
        self.pc += 1;
    }

    /// Ends the program after an instruction with END_OF_PROGRAM. The program also ends if this instruction has jumped.
    /// (MAN p. 37)
    #[inline]
    pub fn end_of_program(&mut self) {
        self.done = true;
    }

    /// 0x04 LOOP_START: begins a DX9 loop, with a count and an index from loop constant CF_CONST. (MAN p. 120)
    ///
    /// Page 120 states one condition as "initial loop index is zero". The sentences before and after this condition
    /// name the loop count, and the table on the same page also names the loop count. So this function tests the loop
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

    /// 0x07 LOOP_START_NO_AL: begins a repeat loop. aL keeps the value of the enclosing loop.
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

    /// 0x06 LOOP_START_DX10: begins a loop. Only LOOP_BREAK and ALU_BREAK end this loop
    /// ([`Rule::DX10_LOOP_HAS_NO_COUNT`]).
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

    /// Starts a loop. Lanes that fail the condition become inactive-break, so LOOP_END cannot resume these lanes. If no
    /// lane passes, the function pushes nothing, pops POP_COUNT entries, and jumps over the loop.
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

    /// 0x05 LOOP_END: resumes all lanes that have not left the loop, and counts the iteration. Lanes that pass the
    /// condition run another iteration. If no lane passes, restores the state before the loop. POP_COUNT is ignored.
    ///
    /// # Errors
    /// In strict mode, fails if ADDR is not the instruction after the LOOP_START. (MAN p. 120: LOOP_START has the
    /// address after LOOP_END, and LOOP_END has the address after LOOP_START.)
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
                    // If the trip count is 0, the number of iterations is not limited.
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

    /// Handles a LOOP_END whose ADDR is not the address of the loop's body. In strict mode, such a LOOP_END is a fault.
    #[cold]
    fn another_body(&self, end_leads_to: u32, body: u32) -> Flows {
        if self.setup.strict { Err(FlowFault::LoopPair { end_leads_to, body }) } else { Ok(()) }
    }

    /// 0x09 LOOP_BREAK: lanes that pass the condition leave the loop.
    pub fn loop_break(&mut self, control: &Control) -> Flows {
        let pass = self.test(control)?;
        self.leave_round("LOOP_BREAK", control, |states| {
            states.inactive_break |= pass - states.inactive_continue
        })
    }

    /// 0x08 LOOP_CONTINUE: lanes that pass the condition become inactive-continue until the next iteration.
    ///
    /// A lane in inactive-break stays in inactive-break. In WHOLE_QUAD_MODE, the whole quad of such a lane can pass the
    /// condition. The lane has left the loop and does not return to the loop
    /// ([`Rule::WHOLE_QUAD_REVIVES_BRANCHES_ONLY`]).
    pub fn loop_continue(&mut self, control: &Control) -> Flows {
        let pass = self.test(control)?;
        self.leave_round("LOOP_CONTINUE", control, |states| {
            states.inactive_continue |= pass - states.inactive_break
        })
    }

    /// If every lane is in inactive-continue or inactive-break, the function pops the branch entries of the loop's body
    /// and jumps to the LOOP_END at ADDR. Otherwise, the function continues with the next instruction, even if no lane
    /// is active. If some lane is inactive-branch, a jump would skip the else side of an enclosing `if`. The function
    /// ignores POP_COUNT.
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

    /// 0x0a JUMP. If no lane passes the condition, the instruction pops POP_COUNT entries and jumps
    /// ([`Rule::POP_ONLY_WHEN_JUMPING`]).
    #[inline(always)]
    pub fn jump(&mut self, control: &Control) -> Flows {
        if self.test(control)?.any() {
            return self.next();
        }
        self.pop_entries("JUMP", control.pop_count)?;
        self.jump_to(control.addr)
    }

    /// 0x0b PUSH. If a lane passes the condition, the instruction pushes the active mask, and lanes that pass stay
    /// active. If no lane passes, the instruction pushes nothing, pops POP_COUNT entries and jumps. (MAN p. 53)
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

    /// 0x0c PUSH_ELSE ([`Rule::PUSH_ELSE_INVERTS`]). The instruction pushes the active mask. Lanes that fail the
    /// condition stay active. If no lane fails, the instruction jumps.
    pub fn push_else(&mut self, control: &Control) -> Flows {
        let pass = self.test(control)?;
        self.push_branch(control.whole_quad_mode)?;
        self.states.active = self.states.active - pass;
        if self.states.active.is_empty() { self.jump_to(control.addr) } else { self.next() }
    }

    /// 0x0d ELSE. The instruction changes only lanes that were active at the innermost push. Active lanes become
    /// inactive-branch, and inactive-branch lanes become active. If no lane is active after this change, the
    /// instruction pops POP_COUNT entries and jumps.
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

    /// 0x0e POP: pops POP_COUNT entries. Then, lanes that fail the condition become inactive-branch. (MAN p. 54)
    #[inline]
    pub fn pop(&mut self, control: &Control) -> Flows {
        self.pop_entries("POP", control.pop_count)?;
        let pass = self.test(control)?;
        self.keep(pass);
        self.next()
    }

    /// 0x0f POP_JUMP. The instruction pops POP_COUNT entries. If no lane passes the condition, the instruction then
    /// jumps.
    pub fn pop_jump(&mut self, control: &Control) -> Flows {
        self.pop_entries("POP_JUMP", control.pop_count)?;
        if self.test(control)?.any() { self.next() } else { self.jump_to(control.addr) }
    }

    /// 0x10 POP_PUSH. The instruction pops POP_COUNT entries, and then has the effect of a PUSH whose POP_COUNT is 0.
    pub fn pop_push(&mut self, control: &Control) -> Flows {
        self.pop_entries("POP_PUSH", control.pop_count)?;
        self.push_(&control.pop(0))
    }

    /// 0x11 POP_PUSH_ELSE. The instruction pops POP_COUNT entries, and then has the effect of PUSH_ELSE
    /// ([`Rule::PUSH_ELSE_INVERTS`]).
    pub fn pop_push_else(&mut self, control: &Control) -> Flows {
        self.pop_entries("POP_PUSH_ELSE", control.pop_count)?;
        self.push_else(&control.pop(0))
    }

    /// 0x12 CALL. If a lane passes the condition, the instruction pushes the address after the CALL and jumps. If the
    /// call would exceed the maximum depth, the instruction does nothing. CALL does not push a mask. (MAN p. 53)
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

    /// 0x13 CALL_FS: calls the fetch program of the launch. ADDR is ignored. If the launch has no fetch program, the
    /// call returns at once. The call needs an entry on the stack even if the launch has no fetch program.
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

    /// 0x14 RETURN. If every active lane passes the condition, or if no lane is active, the instruction jumps to the
    /// instruction after the call.
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

    /// 0x18 KILL: lanes that pass the condition are no longer valid. Jumps if no lane is valid
    /// ([`Rule::KILL_JUMPS_WHEN_NONE_IS_VALID`]). KILL does not change which lanes are active. (MAN p. 47)
    pub fn kill(&mut self, control: &Control) -> Flows {
        let pass = self.test(control)?;
        self.kill_lanes(pass);
        if self.valid.is_empty() { self.jump_to(control.addr) } else { self.next() }
    }

    /// Removes lanes from the valid mask permanently, as the KILL* instructions of ALU clauses do.
    #[inline]
    pub fn kill_lanes(&mut self, lanes: Mask) {
        self.valid = self.valid - lanes;
    }

    // Methods that change the flow state for ALU clauses.

    /// Starts an ALU clause. ALU_PUSH_BEFORE pushes an entry even if no lane is active
    /// ([`Rule::ALU_PUSH_BEFORE_ALWAYS_PUSHES`]). Returns the lanes that run the clause. Usually, the active lanes run
    /// the clause. In WHOLE_QUAD_MODE, every lane of a quad with an active lane runs the clause.
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

    /// Returns the lanes for which the next group of an ALU clause runs.
    #[inline(always)]
    pub fn alu_lanes(&self, whole_quad_mode: bool) -> Mask {
        if whole_quad_mode { self.quads_of(self.states.active) } else { self.states.active }
    }

    /// Executes a PRED_SET* with UPDATE_EXECUTE_MASK. `skip` is the set of lanes that the instruction disables. In
    /// ALU_CONTINUE, active lanes in `skip` become inactive-continue. In ALU_BREAK, these lanes become inactive-break.
    /// In other forms, these lanes become inactive-branch. Lanes outside `skip` keep their state. The function returns
    /// whether the active lanes diverge. The active lanes diverge if some of these lanes stay active and others become
    /// inactive.
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

    /// Ends an ALU clause. Pops entries or swaps the sides of a branch, as the form requires. Continues with the next
    /// instruction. An ALU clause never jumps.
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
