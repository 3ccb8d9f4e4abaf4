//! How R500 lanes diverge and come together again: branch counters, loop stack, address stack.
//!
//! All lanes of a group (the manual's thread) share one program counter. There is no stack of masks: a lane that a branch switched
//! off *counts*, for itself, how many constructs have been opened since, and wakes when that many have been
//! closed. Loops keep a frame each; calls keep a return address each. (CTM guide pp. 35-40; REG, US_FC_INST)
//!
//! ```text
//!   if A        lanes that fail A:  counter 0         INCR on stay: active lanes that wanted to jump
//!     if B      the same lanes:     counter 1         INCR adds one to all that are off
//!     endif     the same lanes:     counter 0         DECR takes one off
//!   else        counter 0 <-> active                  B_ELSE swaps
//!   endif       below zero: active                    DECR wakes
//! ```
//!
//! This file is pure: the lanes that *want* to jump come in as a mask, the decision comes back as a value. It knows
//! neither registers nor memory. One instruction is [`Flow::execute`], whose steps are those of the manual.

use std::cmp::Ordering;

use reconverge_simt::{Depth, Event, FlowView, Issue, Lane, LastActive, Mask, Mode, Observer, StackRow, Why};
use thiserror::Error;

use crate::words::{AOp, BOp, FcInst, FcMode, FcOp};

/// What an operation does to the loop stack. `al`: it is of LOOP, which has aL, and not of REP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Nothing.
    Jump,
    /// Enters a loop.
    Begin {
        /// The frame has aL.
        al: bool,
    },
    /// Ends an iteration.
    End {
        /// The frame has aL.
        al: bool,
    },
    /// Leaves the loop.
    Break {
        /// The frame has aL.
        al: bool,
    },
    /// Leaves the iteration, of a loop of either kind.
    Continue,
}

impl FcOp {
    /// The operation's role. (CTM guide p. 37)
    pub const fn role(self) -> Role {
        match self {
            FcOp::JUMP => Role::Jump,
            FcOp::LOOP => Role::Begin { al: true },
            FcOp::REP => Role::Begin { al: false },
            FcOp::ENDLOOP => Role::End { al: true },
            FcOp::ENDREP => Role::End { al: false },
            FcOp::BREAKLOOP => Role::Break { al: true },
            FcOp::BREAKREP => Role::Break { al: false },
            FcOp::CONTINUE => Role::Continue,
        }
    }
}

impl FcInst {
    /// Returns how many branches are open after an operation of the branch counters that finds `open` of them, or `None`
    /// if it closes more.
    pub(crate) fn levels_after(&self, op: BOp, open: u32) -> Option<u32> {
        match op {
            BOp::NONE => Some(open),
            BOp::DECR => open.checked_sub(self.b_pop_cnt.into()),
            BOp::INCR => Some(open + 1),
        }
    }
}

impl Role {
    /// Whether the innermost frame is one of the operation's kind.
    const fn fits(self, frame: &Frame) -> bool {
        match self {
            Role::End { al } | Role::Break { al } => frame.al.is_some() == al,
            Role::Jump | Role::Begin { .. } | Role::Continue => true,
        }
    }
}

/// How much the stacks and counters hold.
///
/// CTM guide p. 35 says that the sizes depend on the flow-control mode and that over- and underflow are
/// undefined; its table was not available. The defaults follow the limits that Shader Model 3 demands and the
/// depths that Mesa relies on. (r500.md Q14)
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The highest value of a branch counter; nesting is one more.
    pub branch_counter: u8,
    /// Frames of the loop stack.
    pub loop_stack: usize,
    /// Entries of the address stack.
    pub address_stack: usize,
}

impl Limits {
    /// The recommended sizes for a flow-control mode.
    pub const fn recommended(mode: FcMode) -> Limits {
        match mode {
            FcMode::PARTIAL => Limits { branch_counter: 3, loop_stack: 0, address_stack: 0 },
            FcMode::FULL => Limits { branch_counter: 31, loop_stack: 4, address_stack: 4 },
        }
    }
}

/// Which branch-inactive lanes keep a BREAK or CONTINUE from jumping. (r500.md Q15)
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InhibitScope {
    /// Those that were active when the innermost loop was entered: lanes that were off already cannot care.
    #[default]
    Frame,
    /// All of them, the literal reading of CTM guide p. 37. Only walks more instructions with no lane active.
    All,
}

/// An integer constant: iteration count, initial aL, aL step. (US_FC_INT_CONST)
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LoopConstant {
    /// KR, the number of iterations.
    pub count: u8,
    /// KG, aL in the first iteration.
    pub start: u8,
    /// KB, added to aL after each.
    pub step: i8,
}

/// An open loop. (CTM guide p. 35: iteration count, aL and a lane mask)
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Iterations to go, this one included.
    pub count: u8,
    /// The loop register; REP has none.
    pub al: Option<i32>,
    /// Lanes that were active when the loop was entered.
    pub mask: Mask,
    /// Lanes that a BREAK switched off: they wake when the frame is popped.
    pub broken: Mask,
    /// Lanes that a CONTINUE switched off: they wake at the loop's end instruction.
    pub continued: Mask,
}

/// A call that has not returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// Where the group goes on.
    pub return_to: u16,
    /// Lanes that were active after the call. For the strict checks only; hardware keeps an address.
    callers: Mask,
    /// Of those, the ones that a conditional return has switched off.
    returned: Mask,
    /// Loop frames at the time of the call.
    loop_depth: usize,
}

/// Entries on the stacks of a group that has ended: a finding in strict mode, not a trap. Reaching END_ADDR stops the
/// group whatever its state, but no structured program ends so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "entries on the stacks at the end of the program: {loops} on the loop stack, {calls} on the address stack"
)]
pub struct LeftOpen {
    /// Frames of the loop stack.
    pub loops: usize,
    /// Entries of the address stack.
    pub calls: usize,
}

/// What the documents leave undefined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Undefined {
    /// CTM guide p. 35. Lenient: the stack grows.
    #[error("loop stack overflow: more than {limit} loops are open")]
    LoopStackOverflow {
        /// Frames it holds.
        limit: usize,
    },
    /// CTM guide p. 35. Lenient: an end of loop goes on, a break jumps or stays without a frame.
    #[error("{op} with an empty loop stack")]
    LoopStackUnderflow {
        /// The operation.
        op: FcOp,
    },
    /// CTM guide p. 37: BREAKLOOP for LOOP, BREAKREP for REP. Lenient: the innermost frame, whatever its kind.
    #[error("{op} inside a loop of the other kind")]
    LoopKind {
        /// The operation.
        op: FcOp,
    },
    /// CTM guide p. 35. Lenient: the stack grows.
    #[error("address stack overflow: more than {limit} calls are open")]
    AddressStackOverflow {
        /// Entries it holds.
        limit: usize,
    },
    /// CTM guide p. 35. Lenient: JUMP_ADDR is the target.
    #[error("return with an empty address stack")]
    AddressStackUnderflow,
    /// Nesting deeper than the counters go. Lenient: the counter keeps counting.
    #[error("branch counter overflow: lanes {lanes} would count beyond {limit}")]
    BranchCounterOverflow {
        /// The lanes.
        lanes: Mask,
        /// The highest value.
        limit: u8,
    },
    /// REG, US_FC_CTRL: partial mode has no loops and no subroutines. Lenient: executed as in full mode.
    #[error("{what} needs full flow-control mode (US_FC_CTRL.FULL_FC_EN)")]
    NeedsFullMode {
        /// The operation or address-stack action.
        what: &'static str,
    },
    /// CTM guide p. 36. Lenient: returns; lanes that are off stay off until a DECR wakes them.
    #[error("return inside a dynamic branch: lanes {lanes} have not returned")]
    ReturnInsideBranch {
        /// Lanes of the call that are switched off and would stay behind.
        lanes: Mask,
    },
    /// CTM guide p. 36. Lenient: returns; the frames stay on the stack.
    #[error("return inside a loop of the subroutine")]
    ReturnInsideLoop,
}

/// Frames or addresses beyond which even lenient mode stops: a program that gets here never ends.
const RUNAWAY: usize = 512;

/// What an instruction did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The group jumped.
    pub jumped: bool,
    /// Active lanes that wanted to jump, at the vote.
    pub wanted: Mask,
    /// Active lanes that wanted to stay, at the vote.
    pub unwilling: Mask,
}

impl Decision {
    /// Whether the active lanes did not agree.
    pub fn diverged(&self) -> bool {
        self.wanted.any() && self.unwilling.any()
    }

    /// Returns the lanes that run first, because the group follows their vote, and the others.
    fn sides(&self) -> (Mask, Mask) {
        if self.jumped { (self.wanted, self.unwilling) } else { (self.unwilling, self.wanted) }
    }
}

/// The flow state of one group.
#[derive(Clone, Debug, PartialEq)]
pub struct Flow {
    pc: u16,
    ended: bool,
    /// Lanes that take part in the next instruction.
    active: Mask,
    /// Lanes that a branch switched off; only their counters count.
    branch: Mask,
    counters: Counters,
    /// Lanes inside the primitive or domain, and not killed.
    covered: Mask,
    loops: Vec<Frame>,
    calls: Vec<Call>,
    limits: Limits,
    fc_mode: FcMode,
    scope: InhibitScope,
    mode: Mode,
    /// The lanes that ran last. Only events depend on this field.
    ran: LastActive,
}

/// JUMP_FUNC: whether a lane wants to jump. Bit index = ALU result * 4 + predicate * 2 + boolean.
/// (REG, US_FC_INST.JUMP_FUNC)
pub const fn jumps(jump_func: u8, alu_result: bool, predicate: bool, boolean: bool) -> bool {
    jump_func >> (alu_result as u8 * 4 + predicate as u8 * 2 + boolean as u8) & 1 != 0
}

/// Whether a JUMP_FUNC looks at the ALU result at all.
pub const fn reads_alu_result(jump_func: u8) -> bool {
    jump_func >> 4 != jump_func & 0xf
}

/// Whether a JUMP_FUNC looks at the predicate at all.
pub const fn reads_predicate(jump_func: u8) -> bool {
    jump_func >> 2 & 0x33 != jump_func & 0x33
}

/// Whether a JUMP_FUNC looks at the boolean constant at all.
pub const fn reads_boolean(jump_func: u8) -> bool {
    jump_func >> 1 & 0x55 != jump_func & 0x55
}

impl Flow {
    /// The start of a group: every lane of `lanes` active (helper lanes too), stacks empty.
    ///
    /// `covered` are the lanes whose results count; the others run as helpers for derivatives.
    pub fn new(start: u16, lanes: Mask, covered: Mask, fc_mode: FcMode, limits: Limits, mode: Mode) -> Flow {
        Flow {
            pc: start,
            ended: false,
            active: lanes,
            branch: Mask::NONE,
            counters: Counters::default(),
            covered: covered & lanes,
            loops: Vec::new(),
            calls: Vec::new(),
            limits,
            fc_mode,
            scope: InhibitScope::default(),
            mode,
            ran: LastActive::default(),
        }
    }

    /// Goes back to the start, with other lanes; limits and readings stay.
    pub fn restart(&mut self, start: u16, lanes: Mask, covered: Mask) {
        (self.pc, self.ended) = (start, false);
        (self.active, self.covered) = (lanes, covered & lanes);
        (self.branch, self.counters) = (Mask::NONE, Counters::default());
        self.loops.clear();
        self.calls.clear();
        self.ran = LastActive::default();
    }

    /// Changes the reading of which lanes keep a BREAK or CONTINUE from jumping.
    pub fn with_scope(mut self, scope: InhibitScope) -> Flow {
        self.scope = scope;
        self
    }

    /// The next instruction's slot.
    pub fn pc(&self) -> u16 {
        self.pc
    }

    /// Lanes that take part in the next instruction.
    pub fn active(&self) -> Mask {
        self.active
    }

    /// Lanes whose results count.
    pub fn covered(&self) -> Mask {
        self.covered
    }

    /// aL: the loop register of the innermost LOOP; REP frames are transparent. 0 outside any LOOP, where the
    /// documents leave it undefined. (r500.md Q17)
    pub fn al(&self) -> i32 {
        self.loops.iter().rev().find_map(|frame| frame.al).unwrap_or(0)
    }

    /// Whether aL has a documented value.
    pub fn has_al(&self) -> bool {
        self.loops.iter().any(|frame| frame.al.is_some())
    }

    /// Goes on to the next slot, as every instruction but FC does.
    pub fn advance(&mut self) {
        self.pc += 1;
    }

    /// Goes on by a run of instructions other than FC.
    pub fn advance_by(&mut self, slots: u16) {
        self.pc += slots;
    }

    /// The group has executed the instruction at END_ADDR.
    pub fn end(&mut self) {
        self.ended = true;
    }

    /// Killed lanes go on as helpers: they are uncovered from here on. (r500.md Q2)
    pub fn kill(&mut self, lanes: Mask) {
        self.covered = self.covered - lanes;
    }

    /// Executes one flow-control instruction.
    ///
    /// `want` are the lanes whose JUMP_FUNC says jump (see [`Step::want`]).
    ///
    /// # Errors
    /// Strict mode: what [`Undefined`] lists; the state is then that at the moment of the finding. Lenient mode:
    /// only a stack that has run away.
    pub fn execute(&mut self, step: &Step, want: Mask) -> Result<Decision, Undefined> {
        let Step { inst: fc, constant, .. } = step;
        self.check_mode(fc)?;
        let votes = self.votes(fc, want);

        // 1. The else operation comes before anything else. (REG, B_ELSE)
        if fc.b_else {
            self.swap_else();
        }

        // 2. Lanes that continued rejoin at the end of their loop. (CTM guide p. 36)
        if let Role::End { .. } = fc.op.role()
            && let Some(frame) = self.loops.last_mut()
        {
            self.active |= std::mem::take(&mut frame.continued);
        }

        // 3. and 4. Votes.
        let want = votes.want;
        let decision =
            |jumped| Decision { jumped, wanted: self.active & want, unwilling: self.active - want };
        let mut jump = votes.jump(fc, Mask(u64::MAX));

        // 5. Counts overrule the votes. (CTM guide p. 37)
        match fc.op.role() {
            Role::Begin { .. } if constant.count == 0 => jump = true,
            Role::End { .. } => match self.loops.last_mut() {
                Some(frame) => {
                    frame.count = frame.count.saturating_sub(1);
                    jump &= frame.count != 0;
                }
                None => jump = false,
            },
            _ => {}
        }
        let decision = decision(jump);

        // 6. Loop stack.
        self.loop_stack(fc.op, jump, want, *constant)?;

        // 7. Branch counters: B_OP0 when staying, B_OP1 when jumping.
        match if jump { fc.b_op1 } else { fc.b_op0 } {
            BOp::NONE => {}
            BOp::DECR => self.decr(fc.b_pop_cnt),
            BOp::INCR => self.incr(want, jump)?,
        }
        if fc.a_op == AOp::POP && !jump && fc.b_op0 == BOp::INCR {
            // A conditional return that stays switches the lanes that returned off until a later one.
            if let Some(call) = self.calls.last_mut() {
                call.returned |= decision.wanted;
            }
        }

        // 8. Next instruction. The address stack changes only on a jump. (CTM guide p. 37)
        self.pc = if jump { self.target(step)? } else { self.pc + 1 };
        Ok(decision)
    }

    /// [`Flow::execute`], which announces divergence, stack changes, reconvergence and jumps to an observer.
    ///
    /// # Errors
    /// As [`Flow::execute`]; nothing is announced then.
    pub fn execute_observed<O: Observer>(
        &mut self,
        step: &Step,
        want: Mask,
        observer: &mut O,
    ) -> Result<Decision, Undefined> {
        let (before, depth) = (self.active, self.depth());
        let decision = self.execute(step, want)?;
        self.announce(step.inst.op, before, depth, decision, observer);
        Ok(decision)
    }

    /// What strict mode reports about a group that has ended: entries on its stacks.
    pub fn left_open(&self) -> Option<LeftOpen> {
        let (loops, calls) = (self.loops.len(), self.calls.len());
        (self.ended && self.mode == Mode::Strict && loops + calls != 0).then_some(LeftOpen { loops, calls })
    }

    /// Frames and addresses on the stacks.
    fn depth(&self) -> usize {
        self.loops.len() + self.calls.len()
    }

    /// Announces what an instruction did: before it, `before` were active and the stacks `depth` deep.
    #[inline(always)]
    fn announce<O: Observer>(
        &mut self,
        op: FcOp,
        before: Mask,
        depth: usize,
        decision: Decision,
        observer: &mut O,
    ) {
        if !O::ENABLED {
            return;
        }
        if decision.diverged() {
            let (first, others) = decision.sides();
            observer.event(Event::Diverge { taken: first, not: others });
        }
        let kind = op.name();
        match self.depth().cmp(&depth) {
            Ordering::Greater => observer.event(Event::Push { kind }),
            Ordering::Less => observer.event(Event::Pop { kind }),
            Ordering::Equal => {}
        }
        if observer.wants_depths() {
            for (number, depth) in self.depths().into_iter().enumerate() {
                observer.depth(number, depth.used);
            }
        }
        if let Some(event) = self.ran.changed(before, self.active) {
            observer.event(event);
        }
        if decision.jumped {
            observer.event(Event::Jump { to: u32::from(self.pc) });
        }
    }

    /// B_ELSE: active lanes and branch-inactive lanes of counter 0 change places.
    fn swap_else(&mut self) {
        let waking = self.branch & self.counters.zero();
        let sleeping = self.active;
        self.counters.clear(sleeping);
        self.active = waking;
        self.branch = (self.branch - waking) | sleeping;
    }

    /// CTM guide p. 37, the table of operations.
    fn loop_stack(
        &mut self,
        op: FcOp,
        jump: bool,
        want: Mask,
        constant: LoopConstant,
    ) -> Result<(), Undefined> {
        match (op.role(), jump) {
            (Role::Jump, _) | (Role::Begin { .. }, true) => Ok(()),
            (Role::Begin { al }, false) => self.push_frame(Frame {
                count: constant.count,
                al: al.then_some(i32::from(constant.start)),
                mask: self.active,
                broken: Mask::NONE,
                continued: Mask::NONE,
            }),
            (Role::End { .. }, true) => {
                let frame = self.innermost(op)?;
                if let Some(al) = frame.and_then(|frame| frame.al.as_mut()) {
                    *al += i32::from(constant.step);
                }
                Ok(())
            }
            (Role::End { .. }, false) | (Role::Break { .. }, true) => {
                if self.innermost(op)?.is_some() {
                    self.pop_frame();
                }
                Ok(())
            }
            (Role::Break { .. } | Role::Continue, false) => {
                let leaving = self.active & want;
                if let Some(frame) = self.innermost(op)? {
                    if op.role() == Role::Continue {
                        frame.continued |= leaving;
                    } else {
                        frame.broken |= leaving;
                    }
                    self.active = self.active - leaving;
                }
                Ok(())
            }
            (Role::Continue, true) => self.innermost(op).map(|_| ()),
        }
    }

    /// How many entries a stack of `size` entries may hold.
    fn limit(&self, size: usize) -> usize {
        if self.mode == Mode::Strict { size } else { RUNAWAY }
    }

    fn push_frame(&mut self, frame: Frame) -> Result<(), Undefined> {
        let limit = self.limit(self.limits.loop_stack);
        if self.loops.len() >= limit {
            return Err(Undefined::LoopStackOverflow { limit });
        }
        self.loops.push(frame);
        Ok(())
    }

    /// The frame that `op` works on; `None` only in lenient mode.
    fn innermost(&mut self, op: FcOp) -> Result<Option<&mut Frame>, Undefined> {
        let strict = self.mode == Mode::Strict;
        match self.loops.last_mut() {
            None if strict => Err(Undefined::LoopStackUnderflow { op }),
            None => Ok(None),
            Some(frame) if strict && !op.role().fits(frame) => Err(Undefined::LoopKind { op }),
            Some(frame) => Ok(Some(frame)),
        }
    }

    /// Lanes that broke or continued in this loop run again behind it.
    fn pop_frame(&mut self) {
        if let Some(frame) = self.loops.pop() {
            self.active |= frame.broken | frame.continued;
        }
    }

    /// DECR: every branch-inactive lane subtracts B_POP_CNT; those below zero become active.
    fn decr(&mut self, b_pop_cnt: u8) {
        let waking = self.counters.decrease(self.branch, b_pop_cnt);
        self.branch = self.branch - waking;
        self.active |= waking;
    }

    /// INCR: every branch-inactive lane adds one; every active lane whose wish differs from the decision goes to
    /// sleep at zero.
    fn incr(&mut self, want: Mask, jump: bool) -> Result<(), Undefined> {
        let limit = match self.mode {
            Mode::Strict => self.limits.branch_counter,
            Mode::Lenient => u8::MAX,
        };
        let over = self.branch - self.counters.below(limit);
        if over.any() {
            return Err(Undefined::BranchCounterOverflow { lanes: over, limit });
        }
        self.counters.increase(self.branch);
        let disagree = if jump { self.active - want } else { self.active & want };
        self.counters.clear(disagree);
        self.branch |= disagree;
        self.active = self.active - disagree;
        Ok(())
    }

    /// Where a jump goes, with what it does to the address stack.
    fn target(&mut self, step: &Step) -> Result<u16, Undefined> {
        let Step { inst, target, .. } = *step;
        match inst.a_op {
            AOp::NONE => Ok(target),
            AOp::PUSH => {
                let limit = self.limit(self.limits.address_stack);
                if self.calls.len() >= limit {
                    return Err(Undefined::AddressStackOverflow { limit });
                }
                self.calls.push(Call {
                    return_to: return_address(self.pc),
                    callers: self.active,
                    returned: Mask::NONE,
                    loop_depth: self.loops.len(),
                });
                Ok(target)
            }
            AOp::POP => match self.calls.pop() {
                Some(call) => {
                    if self.mode == Mode::Strict {
                        self.check_return(&call)?;
                    }
                    Ok(call.return_to)
                }
                None if self.mode == Mode::Strict => Err(Undefined::AddressStackUnderflow),
                None => Ok(target),
            },
        }
    }

    /// CTM guide p. 36: a return is not allowed inside a dynamic branch or a loop of its subroutine. Seen here as
    /// lanes of the call that are still off after the return although no conditional return switched them off.
    fn check_return(&self, call: &Call) -> Result<(), Undefined> {
        if self.loops.len() != call.loop_depth {
            return Err(Undefined::ReturnInsideLoop);
        }
        let lanes = (call.callers - call.returned) - self.active;
        if lanes.any() { Err(Undefined::ReturnInsideBranch { lanes }) } else { Ok(()) }
    }

    fn check_mode(&self, fc: &FcInst) -> Result<(), Undefined> {
        if self.mode == Mode::Lenient || self.fc_mode == FcMode::FULL {
            return Ok(());
        }
        match (fc.op, fc.a_op) {
            (FcOp::JUMP, AOp::NONE) => Ok(()),
            (FcOp::JUMP, a_op) => Err(Undefined::NeedsFullMode { what: a_op.name() }),
            (op, _) => Err(Undefined::NeedsFullMode { what: op.name() }),
        }
    }
}

/// What PUSH stores for a call at `pc`. REG says "the current address"; returning to the call itself would loop
/// for ever, so either the next address is stored or POP adds one. (r500.md Q16)
const fn return_address(pc: u16) -> u16 {
    pc + 1
}

impl FlowView for Flow {
    fn issue(&self) -> Option<Issue> {
        (!self.ended).then_some(Issue { pc: u32::from(self.pc), mask: self.active })
    }

    fn why(&self, lane: Lane) -> Why {
        if self.ended {
            Why::Exited
        } else if self.branch.has(lane) {
            Why::Branch { depth: u32::from(self.counters.of(lane)) }
        } else if self.loops.iter().any(|frame| frame.broken.has(lane)) {
            Why::Break
        } else if self.loops.iter().any(|frame| frame.continued.has(lane)) {
            Why::Continue
        } else if !self.covered.has(lane) {
            Why::Uncovered
        } else {
            Why::Active
        }
    }

    fn stack(&self) -> Vec<StackRow> {
        let frames = self.loops.iter().rev().map(|frame| StackRow {
            kind: if frame.al.is_some() { "LOOP" } else { "REP" },
            pc: None,
            mask: Some(frame.mask),
            count: Some(i64::from(frame.count)),
        });
        let calls = self.calls.iter().rev().map(|call| StackRow {
            kind: "return address",
            pc: Some(u32::from(call.return_to)),
            mask: None,
            count: None,
        });
        frames.chain(calls).collect()
    }

    /// A lane that a branch has switched off counts from 0, so the constructs that it is nested in are one more.
    fn depths(&self) -> Vec<Depth> {
        let nested = self.branch.lanes().map(|lane| u32::from(self.counters.of(lane)) + 1).max();
        let depth = |of, used, room: usize| Depth { of, used, room: Some(room as u32) };
        vec![
            depth("branch counter", nested.unwrap_or(0), usize::from(self.limits.branch_counter) + 1),
            depth("loop stack", self.loops.len() as u32, self.limits.loop_stack),
            depth("address stack", self.calls.len() as u32, self.limits.address_stack),
        ]
    }
}

mod counters;
mod faults;
use counters::Counters;

mod passes;
mod shortcut;
pub(crate) use shortcut::{InLoop, LoopStep};
mod step;
pub use step::{Step, target};
mod together;
mod votes;

#[cfg(test)]
mod tests;
