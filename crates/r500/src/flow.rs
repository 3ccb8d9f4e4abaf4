//! Divergence and reconvergence of R500 lanes: branch counters, loop stack, address stack.
//!
//! All lanes of a group (a *thread* in the manual) share one program counter. There is no stack of masks. If a branch
//! switches off a lane, the lane starts a *counter*. The counter is the number of open constructs that were opened
//! after the branch. The lane resumes when the branch and all later constructs are closed. The loop stack has a frame
//! for each open loop. The address stack has a return address for each open call. (CTM guide pp. 35-40; REG,
//! US_FC_INST)
//!
//! ```text
//!   if A        lanes that fail A:  counter 0         INCR on stay: active lanes that voted to jump
//!     if B      the same lanes:     counter 1         INCR adds one to all that are off
//!     endif     the same lanes:     counter 0         DECR takes one off
//!   else        counter 0 <-> active                  B_ELSE swaps
//!   endif       below zero: active                    DECR reactivates
//! ```
//!
//! This file does not access registers or memory. The caller evaluates the conditions, and passes a mask of the lanes
//! that vote to jump. [`Flow::execute`] executes one instruction, in the order of the manual's steps, and returns the
//! group's decision.

use std::cmp::Ordering;

use reconverge_simt::{Depth, Event, FlowView, Issue, Lane, LastActive, Mask, Mode, Observer, StackRow, Why};
use thiserror::Error;

use crate::words::{AOp, BOp, FcInst, FcMode, FcOp};

/// Effect of an operation on the loop stack. `al` is true for a LOOP and false for a REP. Only a LOOP has the register
/// aL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Does not change the loop stack.
    Jump,
    /// Enters a loop.
    Begin {
        /// Whether the loop has aL.
        al: bool,
    },
    /// Ends an iteration.
    End {
        /// Whether the loop has aL.
        al: bool,
    },
    /// Leaves the loop.
    Break {
        /// Whether the loop has aL.
        al: bool,
    },
    /// Ends the current iteration of a loop of either kind, for the lanes that vote to jump.
    Continue,
}

impl FcOp {
    /// Returns the operation's effect on the loop stack. (CTM guide p. 37)
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
    /// Returns the number of branches that are open after `op`. `open` is the number of branches that are open before
    /// `op`. Returns `None` if `op` closes more than `open` branches.
    pub(crate) fn levels_after(&self, op: BOp, open: u32) -> Option<u32> {
        match op {
            BOp::NONE => Some(open),
            BOp::DECR => open.checked_sub(self.b_pop_cnt.into()),
            BOp::INCR => Some(open + 1),
        }
    }
}

impl Role {
    /// Returns whether the kind of a frame fits the operation. The two kinds are frames with aL and frames without aL.
    const fn fits(self, frame: &Frame) -> bool {
        match self {
            Role::End { al } | Role::Break { al } => frame.al.is_some() == al,
            Role::Jump | Role::Begin { .. } | Role::Continue => true,
        }
    }
}

/// Capacity of the stacks and the branch counters.
///
/// CTM guide p. 35 says that the capacities depend on the flow-control mode, and that overflow and underflow are
/// undefined. The guide's table of capacities was not available. The default capacities follow two sources: the limits
/// that Shader Model 3 requires, and the depths that Mesa relies on. (r500.md Q14)
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Highest value of a branch counter. The maximum nesting depth of branches is one higher than this value.
    pub branch_counter: u8,
    /// Maximum number of frames on the loop stack.
    pub loop_stack: usize,
    /// Maximum number of entries on the address stack.
    pub address_stack: usize,
}

impl Limits {
    /// Returns the recommended sizes for a flow-control mode.
    pub const fn recommended(mode: FcMode) -> Limits {
        match mode {
            FcMode::PARTIAL => Limits { branch_counter: 3, loop_stack: 0, address_stack: 0 },
            FcMode::FULL => Limits { branch_counter: 31, loop_stack: 4, address_stack: 4 },
        }
    }
}

/// Selects which branch-inactive lanes prevent a BREAK or CONTINUE from jumping. A lane is *branch-inactive* if a
/// branch has switched off the lane. (r500.md Q15)
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InhibitScope {
    /// Only lanes that were active when the innermost loop was entered. A BREAK or CONTINUE does not affect lanes that
    /// were inactive then.
    #[default]
    Frame,
    /// All branch-inactive lanes. This is the literal interpretation of CTM guide p. 37. The results equal those of
    /// [`InhibitScope::Frame`]. But the group issues more instructions without an active lane.
    All,
}

/// An integer constant: iteration count, initial aL, aL step. (US_FC_INT_CONST)
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LoopConstant {
    /// KR: the number of iterations.
    pub count: u8,
    /// KG: the value of aL in the first iteration.
    pub start: u8,
    /// KB: the number that is added to aL after each iteration.
    pub step: i8,
}

/// An open loop. CTM guide p. 35 names the iteration count, aL and a lane mask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Number of remaining iterations, including the current one.
    pub count: u8,
    /// The loop register aL, or `None` in a REP.
    pub al: Option<i32>,
    /// Lanes that were active when the loop was entered.
    pub mask: Mask,
    /// Lanes that a BREAK has switched off. These lanes resume when the frame is popped.
    pub broken: Mask,
    /// Lanes that a CONTINUE has switched off. These lanes resume at the end instruction of the loop.
    pub continued: Mask,
}

/// A call that has not returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// Slot at which the group continues after the return.
    pub return_to: u16,
    /// Lanes that were active after the call. Only the checks of strict mode read this mask. The hardware stores only
    /// an address.
    callers: Mask,
    /// The lanes of `callers` that a conditional return has switched off.
    returned: Mask,
    /// Number of frames on the loop stack at the time of the call.
    loop_depth: usize,
}

/// The number of entries on the stacks of a group that has ended. If entries remain, strict mode reports a finding and
/// does not trap. The reason is that a group may stop at END_ADDR in any state. But no structured program ends with
/// open loops or calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "entries on the stacks at the end of the program: {loops} on the loop stack, {calls} on the address stack"
)]
pub struct LeftOpen {
    /// Number of frames on the loop stack.
    pub loops: usize,
    /// Number of entries on the address stack.
    pub calls: usize,
}

/// A use of flow control whose effect the documents leave undefined. In strict mode, such a use traps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Undefined {
    /// The loop stack does not have a free frame for another loop. In lenient mode, the stack grows. (CTM guide p. 35)
    #[error("loop stack overflow: more than {limit} loops are open")]
    LoopStackOverflow {
        /// Capacity of the loop stack in frames.
        limit: usize,
    },
    /// An operation needs a frame, but the loop stack is empty. In lenient mode, at the end instruction of a loop, the
    /// group continues with the next slot. At a BREAK, the group jumps or stays according to the votes. (CTM guide p.
    /// 35)
    #[error("{op} with an empty loop stack")]
    LoopStackUnderflow {
        /// The operation.
        op: FcOp,
    },
    /// An operation for LOOP is inside a REP, or an operation for REP is inside a LOOP. BREAKLOOP is for LOOP, and
    /// BREAKREP is for REP. In lenient mode, the operation uses the innermost frame of any kind. (CTM guide p. 37)
    #[error("{op} inside a loop of the other kind")]
    LoopKind {
        /// The operation.
        op: FcOp,
    },
    /// The address stack does not have a free entry for another call. In lenient mode, the stack grows. (CTM guide p.
    /// 35)
    #[error("address stack overflow: more than {limit} calls are open")]
    AddressStackOverflow {
        /// Capacity of the address stack in entries.
        limit: usize,
    },
    /// A return is executed while the address stack is empty. In lenient mode, the group jumps to JUMP_ADDR. (CTM guide
    /// p. 35)
    #[error("return with an empty address stack")]
    AddressStackUnderflow,
    /// Branches are nested deeper than a branch counter can count. In lenient mode, the counter counts up to 255.
    #[error("branch counter overflow: lanes {lanes} would count beyond {limit}")]
    BranchCounterOverflow {
        /// The lanes whose counters would overflow.
        lanes: Mask,
        /// The highest value of a counter.
        limit: u8,
    },
    /// A loop or a subroutine call is executed in partial mode, which does not have loops or subroutines. In lenient
    /// mode, the instruction is executed as in full mode. (REG, US_FC_CTRL)
    #[error("{what} needs full flow-control mode (US_FC_CTRL.FULL_FC_EN)")]
    NeedsFullMode {
        /// The operation or the address-stack action.
        what: &'static str,
    },
    /// A return is executed inside a dynamic branch. In lenient mode, the group returns. Lanes that are off stay off
    /// until a DECR makes the lanes active. (CTM guide p. 36)
    #[error("return inside a dynamic branch: lanes {lanes} have not returned")]
    ReturnInsideBranch {
        /// Lanes that were active after the call, are now off, and have not returned.
        lanes: Mask,
    },
    /// A return is executed inside a loop of its subroutine. In lenient mode, the group returns, and the loop's frames
    /// stay on the loop stack. (CTM guide p. 36)
    #[error("return inside a loop of the subroutine")]
    ReturnInsideLoop,
}

/// Number of stack entries above which lenient mode reports an overflow. A program that needs more entries would
/// probably never end.
const RUNAWAY: usize = 512;

/// The result of a flow-control instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Whether the group jumped.
    pub jumped: bool,
    /// Active lanes that voted to jump.
    pub wanted: Mask,
    /// Active lanes that voted to stay.
    pub unwilling: Mask,
}

impl Decision {
    /// Returns whether the active lanes diverge.
    pub fn diverged(&self) -> bool {
        self.wanted.any() && self.unwilling.any()
    }

    /// Returns two sets of lanes. The first set voted for the group's decision and runs first. The second set voted
    /// against the decision.
    fn sides(&self) -> (Mask, Mask) {
        if self.jumped { (self.wanted, self.unwilling) } else { (self.unwilling, self.wanted) }
    }
}

/// The flow state of one group.
#[derive(Clone, Debug, PartialEq)]
pub struct Flow {
    pc: u16,
    ended: bool,
    /// Lanes that execute the next instruction.
    active: Mask,
    /// Lanes that a branch has switched off. Only lanes in this mask have a meaningful counter.
    branch: Mask,
    counters: Counters,
    /// Lanes that are inside the primitive or domain and that TEXKILL has not killed.
    covered: Mask,
    loops: Vec<Frame>,
    calls: Vec<Call>,
    limits: Limits,
    fc_mode: FcMode,
    scope: InhibitScope,
    mode: Mode,
    /// The active lanes of the latest instruction that had an active lane. This field affects only events.
    ran: LastActive,
}

/// Returns whether JUMP_FUNC makes a lane vote to jump. The vote is one bit of JUMP_FUNC. The number of this bit is ALU
/// result * 4 + predicate * 2 + boolean. (REG, US_FC_INST.JUMP_FUNC)
pub const fn jumps(jump_func: u8, alu_result: bool, predicate: bool, boolean: bool) -> bool {
    jump_func >> (alu_result as u8 * 4 + predicate as u8 * 2 + boolean as u8) & 1 != 0
}

/// Returns whether the result of a JUMP_FUNC depends on the ALU result.
pub const fn reads_alu_result(jump_func: u8) -> bool {
    jump_func >> 4 != jump_func & 0xf
}

/// Returns whether the result of a JUMP_FUNC depends on the predicate.
pub const fn reads_predicate(jump_func: u8) -> bool {
    jump_func >> 2 & 0x33 != jump_func & 0x33
}

/// Returns whether the result of a JUMP_FUNC depends on the boolean constant.
pub const fn reads_boolean(jump_func: u8) -> bool {
    jump_func >> 1 & 0x55 != jump_func & 0x55
}

impl Flow {
    /// Returns the state of a group at slot `start`. All lanes in `lanes` are active, including helper lanes, and the
    /// stacks are empty.
    ///
    /// `covered` holds the lanes whose results are used. Lanes outside `covered` run as helpers for derivatives.
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

    /// Restarts the group at slot `start` with other lanes. Limits, modes and scope do not change.
    pub fn restart(&mut self, start: u16, lanes: Mask, covered: Mask) {
        (self.pc, self.ended) = (start, false);
        (self.active, self.covered) = (lanes, covered & lanes);
        (self.branch, self.counters) = (Mask::NONE, Counters::default());
        self.loops.clear();
        self.calls.clear();
        self.ran = LastActive::default();
    }

    /// Sets which branch-inactive lanes prevent a BREAK or CONTINUE from jumping.
    pub fn with_scope(mut self, scope: InhibitScope) -> Flow {
        self.scope = scope;
        self
    }

    /// Returns the slot of the next instruction.
    pub fn pc(&self) -> u16 {
        self.pc
    }

    /// Returns the lanes that execute the next instruction.
    pub fn active(&self) -> Mask {
        self.active
    }

    /// Returns the covered lanes. Only results of covered lanes are used.
    pub fn covered(&self) -> Mask {
        self.covered
    }

    /// Returns aL, the loop register of the innermost LOOP. REP frames inside that LOOP are ignored. Outside any LOOP,
    /// the documents leave aL undefined, and this function returns 0. (r500.md Q17)
    pub fn al(&self) -> i32 {
        self.loops.iter().rev().find_map(|frame| frame.al).unwrap_or(0)
    }

    /// Returns whether aL has a documented value, which requires an open LOOP.
    pub fn has_al(&self) -> bool {
        self.loops.iter().any(|frame| frame.al.is_some())
    }

    /// Advances the program counter to the next slot. All instructions except FC instructions advance the program
    /// counter in this way.
    pub fn advance(&mut self) {
        self.pc += 1;
    }

    /// Advances the program counter by `slots` slots. These slots must not contain FC instructions.
    pub fn advance_by(&mut self, slots: u16) {
        self.pc += slots;
    }

    /// Ends the group, after the group has executed the instruction at END_ADDR.
    pub fn end(&mut self) {
        self.ended = true;
    }

    /// Marks killed lanes as uncovered. Killed lanes continue as helpers. (r500.md Q2)
    pub fn kill(&mut self, lanes: Mask) {
        self.covered = self.covered - lanes;
    }

    /// Executes one flow-control instruction.
    ///
    /// `want` holds the lanes whose JUMP_FUNC votes to jump (see [`Step::want`]).
    ///
    /// # Errors
    /// In strict mode, returns an error if the behaviour of the instruction is [`Undefined`]. After an error, the state
    /// may be partly updated. In lenient mode, returns an error only if a stack would exceed 512 entries or a branch
    /// counter would exceed 255.
    pub fn execute(&mut self, step: &Step, want: Mask) -> Result<Decision, Undefined> {
        let Step { inst: fc, constant, .. } = step;
        self.check_mode(fc)?;
        let votes = self.votes(fc, want);

        // 1. The else operation is the first step of the instruction. (REG, B_ELSE)
        if fc.b_else {
            self.swap_else();
        }

        // 2. At the end of a loop, the lanes that executed CONTINUE in the loop become active again. (CTM guide p. 36)
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

        // 5. Iteration counts override the votes. (CTM guide p. 37)
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

        // 7. Branch counters: the operation is B_OP0 if the group stays, and B_OP1 if the group jumps.
        match if jump { fc.b_op1 } else { fc.b_op0 } {
            BOp::NONE => {}
            BOp::DECR => self.decr(fc.b_pop_cnt),
            BOp::INCR => self.incr(want, jump)?,
        }
        if fc.a_op == AOp::POP && !jump && fc.b_op0 == BOp::INCR {
            // If the group does not jump at a conditional return, the instruction switches off the lanes that voted to
            // return. The switched-off lanes stay off until a later return.
            if let Some(call) = self.calls.last_mut() {
                call.returned |= decision.wanted;
            }
        }

        // 8. The next instruction. The address stack changes only if the group jumps. (CTM guide p. 37)
        self.pc = if jump { self.target(step)? } else { self.pc + 1 };
        Ok(decision)
    }

    /// Like [`Flow::execute`], executes one flow-control instruction. Also reports divergence, stack changes,
    /// reconvergence and jumps to an observer.
    ///
    /// # Errors
    /// Returns the same errors as [`Flow::execute`]. After an error, the observer receives no events.
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

    /// In strict mode, returns a finding if an ended group has entries on a stack.
    pub fn left_open(&self) -> Option<LeftOpen> {
        let (loops, calls) = (self.loops.len(), self.calls.len());
        (self.ended && self.mode == Mode::Strict && loops + calls != 0).then_some(LeftOpen { loops, calls })
    }

    /// Returns the total number of entries on both stacks.
    fn depth(&self) -> usize {
        self.loops.len() + self.calls.len()
    }

    /// Reports the effects of an instruction to the observer. Before the instruction, the lanes `before` were active,
    /// and the stacks held `depth` entries in total.
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

    /// B_ELSE: switches off the active lanes. Activates the branch-inactive lanes whose counter was 0.
    fn swap_else(&mut self) {
        let waking = self.branch & self.counters.zero();
        let sleeping = self.active;
        self.counters.clear(sleeping);
        self.active = waking;
        self.branch = (self.branch - waking) | sleeping;
    }

    /// Updates the loop stack as the table of operations in CTM guide p. 37 defines.
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

    /// Returns the maximum number of entries on a stack whose capacity is `size` entries. In lenient mode, this maximum
    /// is higher than `size`.
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

    /// Returns the innermost frame, which `op` uses. In lenient mode, returns `None` if the loop stack is empty.
    fn innermost(&mut self, op: FcOp) -> Result<Option<&mut Frame>, Undefined> {
        let strict = self.mode == Mode::Strict;
        match self.loops.last_mut() {
            None if strict => Err(Undefined::LoopStackUnderflow { op }),
            None => Ok(None),
            Some(frame) if strict && !op.role().fits(frame) => Err(Undefined::LoopKind { op }),
            Some(frame) => Ok(Some(frame)),
        }
    }

    /// Pops the innermost frame. Activates the lanes that a BREAK or CONTINUE in the popped loop has switched off.
    fn pop_frame(&mut self) {
        if let Some(frame) = self.loops.pop() {
            self.active |= frame.broken | frame.continued;
        }
    }

    /// DECR: subtracts B_POP_CNT from the counter of every branch-inactive lane. If the counter of a lane would become
    /// negative, the lane becomes active.
    fn decr(&mut self, b_pop_cnt: u8) {
        let waking = self.counters.decrease(self.branch, b_pop_cnt);
        self.branch = self.branch - waking;
        self.active |= waking;
    }

    /// INCR: adds one to the counter of every branch-inactive lane. Switches off active lanes that voted against the
    /// decision. Their counters start at 0.
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

    /// Returns the target of a jump and updates the address stack.
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

    /// Checks that a return is not inside a dynamic branch or a loop of its subroutine. (CTM guide p. 36) The return is
    /// inside a branch if a lane of the call is off after the return and no conditional return has switched off the
    /// lane.
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

/// Returns the address that PUSH stores for a call at `pc`. REG says "the current address". A return to the address of
/// the call would repeat the call forever. So either PUSH stores the next address, or POP returns to the stored address
/// plus one. (r500.md Q16)
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

    /// When a branch switches off a lane, the lane's counter starts at 0. So the nesting depth of a lane is the lane's
    /// counter plus one.
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
