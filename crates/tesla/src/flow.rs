//! The divergence and reconvergence of the lanes of a warp, by means of the warp's token stack.
//!
//! This file follows docs/tesla.md, section 9. The sources describe different parts: \[mp.xml, compute.xml\] describe
//! the field layout and limits of the hardware stack, \[INSNS\] describes each instruction in one line, and the patents
//! \[pat\] describe the token algorithm. Some questions remain open in the sources. For each open question, a constant
//! or function contains the interpretation of this file. Such a constant or function is marked **Open**. A reader with
//! access to the hardware can then correct this interpretation at a single place. Open interpretations of this file:
//! [`TAKEN_SIDE_RUNS_FIRST`], [`DEFAULT_STACK_ENTRIES`], `Flow::join_without_token`, `Flow::break_through_call`,
//! `Flow::broken_at_the_end`, `Flow::joinat_while_unwinding`, [`Flow::uniform_target`], `Flow::control_inside_quadon`,
//! `Flow::call_beyond_limit`.
//!
//! The flow state does not access registers, memory or predicates. The method for a predicated instruction (`bra`,
//! `ret`, `break`, `discard`) has a parameter with the lanes whose predicate is true. The method for any other
//! instruction acts on all active lanes. Addresses are byte addresses in the stage's code window. Barriers belong to
//! the block, not to the warp (`barrier.rs`).

use std::fmt;

use reconverge_simt::{Depth, Event, FlowView, Issue, Lane, Mask, Mode, Observer, StackRow, Why};

/// Number of lanes of a warp. (1.3)
pub const WARP: usize = 32;

/// **Open** (13.2): as in the patents' token algorithm, the taken side of a divergent `bra` runs first, and the warp
/// pushes an entry for the fall-through side. Programs without races produce the same results in either order.
pub const TAKEN_SIDE_RUNS_FIRST: bool = true;

/// **Open** (9.1): the number of stack entries, if a launch does not specify this number. The largest value of
/// `STACK_SIZE_LOG` provides memory for 4096 entries.
pub const DEFAULT_STACK_ENTRIES: usize = 4096;

/// Number of entries of a warp's stack that are on chip. Deeper entries spill to memory. (9.1)
pub const ON_CHIP_ENTRIES: usize = 16;

reconverge_isa::choices! {
    /// The purpose of a stack entry. (Type field, bits 29..31 of the hardware entry; 9.1.)
    #[derive(Hash, PartialOrd, Ord)]
    pub enum TokenType {
        /// 1: pushed by a divergent `bra`, for the side that waits.
        Branch = "BRANCH",
        /// 2: pushed by `call` and `preret`.
        Call = "CALL",
        /// 3: pushed by `call lim` and `preret lim`.
        CallLim = "CALL_LIM",
        /// 4: pushed by `breakaddr`.
        Break = "BREAK",
        /// 5: pushed by `quadon`.
        Quadon = "QUADON",
        /// 6: pushed by `joinat`.
        Joinat = "JOINAT",
    }
}

/// One entry of the stack: type, address, lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    /// Purpose of the entry.
    pub token: TokenType,
    /// Byte address. BRANCH: the start of the side that waits. CALL: the return address. BREAK and JOINAT: the operand
    /// of the instruction. QUADON: 0.
    pub pc: u32,
    /// BRANCH: the lanes of the side that waits. Any other type of entry: the lanes that were active at the push.
    pub mask: Mask,
}

/// An error of a program, detected by means of the token stack. (`ERROR_CODE` bits and MPC traps; section 10.)
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// An entry was needed, but the stack was empty.
    StackUnderflow,
    /// The entry on top has the wrong type.
    StackMismatch,
    /// The program executed a control instruction between `quadon` and `quadpop`.
    QuadonActive,
    /// The stack was full when an entry was pushed.
    StackLimit,
    /// The active lanes of a `bra c[]` have different targets. The hardware has no code for this fault. (9.9)
    TargetsDiffer,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Fault::StackUnderflow => "STACK_UNDERFLOW: an entry was needed and the stack is empty",
            Fault::StackMismatch => "STACK_MISMATCH: the entry on top of the stack has the wrong type",
            Fault::QuadonActive => "QUADON_ACTIVE: control instruction between quadon and quadpop",
            Fault::StackLimit => "STACK_LIMIT: the stack is full",
            Fault::TargetsDiffer => "active lanes have different targets in an indirect branch",
        })
    }
}

impl std::error::Error for Fault {}

/// The stack limits in the configuration of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Number of entries of the stack. See [`Limits::stack_size_log`].
    pub stack_entries: usize,
    /// Maximum number of outstanding limited calls, or `None` for no limit. See [`Limits::call_limit_log`].
    pub calls: Option<u32>,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { stack_entries: DEFAULT_STACK_ENTRIES, calls: None }
    }
}

impl Limits {
    /// Returns the number of stack entries for a `STACK_SIZE_LOG` value. The value is 1 plus the binary logarithm of
    /// the number of entries in memory. Memory has at least 4 entries, or no entries for the value 0. Values above 13
    /// are clamped to 13 (9.1).
    ///
    /// **Open**: this function assumes that the hardware adds the [`ON_CHIP_ENTRIES`] to the entries in memory. A
    /// driver sets the value 4 (8 entries) for all programs, but compiled fragment programs need up to 20 entries.
    pub fn stack_size_log(value: u32) -> usize {
        match value {
            0 => ON_CHIP_ENTRIES,
            _ => ON_CHIP_ENTRIES + (1 << (value.clamp(3, 13) - 1)),
        }
    }

    /// Returns the maximum number of outstanding limited calls for a `CALL_LIMIT_LOG` value. The value 0 allows no
    /// calls, 1 to 8 allow 2^(n-1), and 15 sets no limit (`None`). The meaning of the values 9 to 14 is unknown. For
    /// the values 9 to 14, the function also returns `None`. (9.1)
    pub fn call_limit_log(value: u32) -> Option<u32> {
        match value {
            0 => Some(0),
            1..=8 => Some(1 << (value - 1)),
            _ => None,
        }
    }
}

/// Whether the active lanes agreed on a branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// All active lanes took the branch, or no active lane took the branch.
    Uniform,
    /// Only a part of the active lanes took the branch.
    Divergent,
}

/// The effect of a join on the instruction that has the join as a modifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Join {
    /// The instruction runs, for the lanes that are active after the join.
    Run,
    /// The warp continues on another path. The instruction is not executed now.
    Away,
}

/// The flow state of a warp: the program counter, the active lanes, the states of the lanes, and the token stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flow {
    pc: u32,
    active: Mask,
    launched: Mask,
    brk: Mask,
    ret: Mask,
    exited: Mask,
    dead: Mask,
    stack: Vec<Token>,
    calls: u32,
    limits: Limits,
    mode: Mode,
    /// The lanes that arrived at the join of the next instruction, after [`Flow::join_ahead`] has executed the join.
    joined: Mask,
}

impl Flow {
    /// Creates the flow state of a warp that starts at `pc` with the `launched` lanes active.
    pub fn new(pc: u32, launched: Mask, limits: Limits, mode: Mode) -> Self {
        let launched = launched & Mask::first(WARP);
        Flow {
            pc,
            active: launched,
            launched,
            brk: Mask::NONE,
            ret: Mask::NONE,
            exited: Mask::NONE,
            dead: Mask::first(WARP) - launched,
            stack: Vec::new(),
            calls: 0,
            limits,
            mode,
            joined: Mask::NONE,
        }
    }

    /// Resets the flow state to the state after [`Flow::new`] with the same limits and mode.
    pub fn begin(&mut self, pc: u32, launched: Mask) {
        let mut stack = std::mem::take(&mut self.stack);
        stack.clear();
        *self = Flow { stack, ..Flow::new(pc, launched, self.limits, self.mode) };
    }

    /// Returns the byte address of the next instruction.
    #[inline]
    pub fn pc(&self) -> u32 {
        self.pc
    }

    /// Returns the active lanes. A finished warp has none.
    #[inline]
    pub fn active(&self) -> Mask {
        self.active
    }

    /// Returns the dead lanes: helper lanes, discarded lanes, and lanes that were never launched. The texture unit's
    /// "live" mask is the inverse of this set.
    pub fn dead(&self) -> Mask {
        self.dead
    }

    /// Returns the ended lanes. An ended lane runs again only between `quadon` and `quadpop`, as a helper of its quad.
    /// An ended lane was never launched, has exited, or has returned without a waiting CALL entry. The outputs of an
    /// ended lane are final. (9.6)
    pub fn ended(&self) -> Mask {
        let is_call = |entry: &&Token| matches!(entry.token, TokenType::Call | TokenType::CallLim);
        let callers = self.stack.iter().filter(is_call).fold(Mask::NONE, |all, entry| all | entry.mask);
        (Mask::first(WARP) - self.launched) | self.exited | (self.ret - callers)
    }

    /// Returns whether no lane runs again.
    #[inline]
    pub fn finished(&self) -> bool {
        self.active.is_empty()
    }

    /// Returns the stack, outermost entry first.
    pub fn tokens(&self) -> &[Token] {
        &self.stack
    }

    /// Returns the lanes that are not in the state BRK, RET or EXIT. The returned lanes are active, or wait at a join
    /// or on the other side of a branch.
    #[inline]
    fn run(&self) -> Mask {
        self.launched - self.brk - self.ret - self.exited
    }

    /// Executes an instruction that is not control flow: the warp continues at `next`.
    #[inline]
    pub fn advance(&mut self, next: u32) {
        self.pc = next;
    }

    /// Executes `bra`. `taken` are the active lanes whose predicate holds.
    ///
    /// # Errors
    /// [`Fault::StackLimit`], [`Fault::QuadonActive`].
    #[inline]
    pub fn bra<O: Observer>(
        &mut self,
        target: u32,
        next: u32,
        taken: Mask,
        o: &mut O,
    ) -> Result<Decision, Fault> {
        self.control_inside_quadon()?;
        let taken = taken & self.active;
        if taken.is_empty() {
            self.pc = next;
            return Ok(Decision::Uniform);
        }
        if taken == self.active {
            self.jump(target, o);
            return Ok(Decision::Uniform);
        }
        let not = self.active - taken;
        let (first, first_pc, second, second_pc) =
            if TAKEN_SIDE_RUNS_FIRST { (taken, target, not, next) } else { (not, next, taken, target) };
        self.add(TokenType::Branch, second_pc, second)?;
        self.active = first;
        self.pc = first_pc;
        announce_division(o, first_pc, first, second);
        Ok(Decision::Divergent)
    }

    /// Applies two steps at once. The first step is a `bra` that divides the active lanes. The second step is the
    /// arrival of the first side at a join. The program must not contain control flow between the `bra` and the join.
    /// Afterwards, the second side, `last`, is at the join, and the BRANCH entry has been pushed and popped. If the
    /// `bra` would fault, returns `false` and changes nothing.
    #[inline]
    pub fn meet(&mut self, join: u32, last: Mask) -> bool {
        if self.stack.len() >= self.limits.stack_entries || self.control_inside_quadon().is_err() {
            return false;
        }
        self.active = last & self.run();
        self.pc = join;
        true
    }

    /// Updates the flow state after branches. At these branches, some lanes stayed on the path, and the remaining lanes
    /// left the path. The lanes `broke` executed `break`, and the lanes `returned` executed `ret`. Any other inactive
    /// lane waits at a join or belongs to a stack entry.
    pub fn stay(&mut self, active: Mask, broke: Mask, returned: Mask) {
        self.brk |= broke;
        self.ret |= returned;
        self.active = active & self.active;
    }

    /// Returns whether control flow may push `entries` entries now. A caller may replace a `joinat`, its `bra` and the
    /// joins of both sides by one step. The caller then needs room for two entries. The combined step pops the entries
    /// that it pushes, so the stack does not change.
    #[inline]
    pub fn has_room_for(&self, entries: usize) -> bool {
        self.stack.len() + entries <= self.limits.stack_entries && self.control_inside_quadon().is_ok()
    }

    /// Returns the number of entries that control flow may push now.
    #[inline]
    pub fn room(&self) -> usize {
        match self.control_inside_quadon() {
            Ok(()) => self.limits.stack_entries.saturating_sub(self.stack.len()),
            Err(_) => 0,
        }
    }

    /// Executes `bra c[]`: all active lanes continue at `target`. See [`Flow::uniform_target`]. (9.9)
    ///
    /// # Errors
    /// [`Fault::QuadonActive`].
    pub fn bra_indirect<O: Observer>(&mut self, target: u32, o: &mut O) -> Result<(), Fault> {
        self.control_inside_quadon()?;
        self.jump(target & INDIRECT_TARGET_BITS, o);
        Ok(())
    }

    /// Executes `joinat`. `target` is the address at which lanes wait for each other.
    ///
    /// # Errors
    /// [`Fault::StackLimit`], [`Fault::QuadonActive`].
    #[inline]
    pub fn joinat<O: Observer>(&mut self, target: u32, next: u32, o: &mut O) -> Result<(), Fault> {
        self.control_inside_quadon()?;
        self.push(TokenType::Joinat, target, self.active, o)?;
        self.pc = next;
        Ok(())
    }

    /// Executes `breakaddr`. `target` is the address at which lanes continue after a `break`.
    ///
    /// # Errors
    /// [`Fault::StackLimit`], [`Fault::QuadonActive`].
    #[inline]
    pub fn breakaddr<O: Observer>(&mut self, target: u32, next: u32, o: &mut O) -> Result<(), Fault> {
        self.control_inside_quadon()?;
        self.push(TokenType::Break, target, self.active, o)?;
        self.pc = next;
        Ok(())
    }

    /// Executes `call`: all active lanes continue at `target` and return to `next`.
    ///
    /// # Errors
    /// [`Fault::StackLimit`], [`Fault::QuadonActive`].
    #[inline]
    pub fn call<O: Observer>(&mut self, target: u32, next: u32, o: &mut O) -> Result<(), Fault> {
        self.control_inside_quadon()?;
        self.push(TokenType::Call, next, self.active, o)?;
        self.jump(target, o);
        Ok(())
    }

    /// Executes `call lim`, a call that is skipped if too many limited calls are outstanding. See
    /// `Flow::call_beyond_limit`.
    ///
    /// # Errors
    /// [`Fault::StackLimit`], [`Fault::QuadonActive`].
    pub fn call_lim<O: Observer>(&mut self, target: u32, next: u32, o: &mut O) -> Result<(), Fault> {
        self.control_inside_quadon()?;
        if self.call_beyond_limit() {
            self.pc = next;
            return Ok(());
        }
        self.push(TokenType::CallLim, next, self.active, o)?;
        self.calls += 1;
        self.jump(target, o);
        Ok(())
    }

    /// Executes `preret`, which sets the return address of an indirect call. A later `bra c[]` executes the call.
    ///
    /// # Errors
    /// [`Fault::StackLimit`], [`Fault::QuadonActive`].
    pub fn preret<O: Observer>(&mut self, return_to: u32, next: u32, o: &mut O) -> Result<(), Fault> {
        self.control_inside_quadon()?;
        self.push(TokenType::Call, return_to, self.active, o)?;
        self.pc = next;
        Ok(())
    }

    /// Executes `preret lim`. The instruction pushes nothing if too many limited calls are outstanding.
    ///
    /// # Errors
    /// [`Fault::StackLimit`], [`Fault::QuadonActive`].
    pub fn preret_lim<O: Observer>(&mut self, return_to: u32, next: u32, o: &mut O) -> Result<(), Fault> {
        self.control_inside_quadon()?;
        if !self.call_beyond_limit() {
            self.push(TokenType::CallLim, return_to, self.active, o)?;
            self.calls += 1;
        }
        self.pc = next;
        Ok(())
    }

    /// Executes `break`: the lanes `leaving` wait for the BREAK entry, and all other active lanes continue at `next`.
    ///
    /// # Errors
    /// [`Fault::QuadonActive`]. If no lane continues, unwinding can also fault.
    #[inline]
    pub fn break_<O: Observer>(&mut self, leaving: Mask, next: u32, o: &mut O) -> Result<Decision, Fault> {
        self.control_inside_quadon()?;
        let leaving = leaving & self.active;
        self.brk |= leaving;
        self.retire(leaving, next, o)
    }

    /// Executes `ret`: the lanes `leaving` wait for the CALL entry, and all other active lanes continue at `next`.
    /// Without a CALL entry, the lanes `leaving` end.
    ///
    /// # Errors
    /// [`Fault::QuadonActive`]. If no lane continues, unwinding can also fault.
    #[inline]
    pub fn ret<O: Observer>(&mut self, leaving: Mask, next: u32, o: &mut O) -> Result<Decision, Fault> {
        self.control_inside_quadon()?;
        let leaving = leaving & self.active;
        self.ret |= leaving;
        self.retire(leaving, next, o)
    }

    /// Executes the exit modifier. After the instruction with this modifier, all active lanes end, whatever the
    /// predicate.
    ///
    /// # Errors
    /// [`Fault::QuadonActive`] and the faults of unwinding.
    #[inline]
    pub fn exit<O: Observer>(&mut self, o: &mut O) -> Result<(), Fault> {
        self.control_inside_quadon()?;
        let ran = self.active;
        self.exited |= ran;
        self.active = Mask::NONE;
        self.unwind(ran, o)
    }

    /// Executes the join modifier, before the instruction that has the modifier. If one side of a branch still waits,
    /// this arrival switches the warp to the waiting side. If the JOINAT entry is on top, the arrival reconverges all
    /// lanes. (9.4)
    ///
    /// # Errors
    /// [`Fault::StackMismatch`], and in strict mode [`Fault::StackUnderflow`].
    #[inline]
    pub fn join<O: Observer>(&mut self, o: &mut O) -> Result<Join, Fault> {
        if self.joined.any() {
            self.joined = Mask::NONE;
            return Ok(Join::Run);
        }
        let Some(&top) = self.stack.last() else {
            return self.join_without_token();
        };
        let arrival = match top.token {
            TokenType::Branch => Join::Away,
            TokenType::Joinat => Join::Run,
            TokenType::Quadon => return Err(Fault::QuadonActive),
            TokenType::Call | TokenType::CallLim | TokenType::Break => return Err(Fault::StackMismatch),
        };
        self.remove();
        let arrived = self.active;
        self.active = top.mask & self.run();
        if arrival == Join::Away {
            self.pc = top.pc;
        }
        announce_arrival(o, top.token, top.pc, arrived, self.active);
        if self.active.is_empty() {
            self.unwind(arrived, o)?;
            return Ok(Join::Away);
        }
        Ok(arrival)
    }

    /// Returns the effect that the join of the next instruction would have. Returns `None` if the join would have no
    /// effect or would fault.
    pub fn join_leads(&self) -> Option<Join> {
        let top = self.stack.last().filter(|_| self.active.any() && self.joined.is_empty())?;
        match top.token {
            TokenType::Branch => Some(Join::Away),
            TokenType::Joinat if (top.mask & self.run()).any() => Some(Join::Run),
            TokenType::Joinat => Some(Join::Away),
            TokenType::Quadon | TokenType::Call | TokenType::CallLim | TokenType::Break => None,
        }
    }

    /// If the join of the next instruction reconverges lanes, this function executes the join, but not the instruction.
    /// Front ends use this function to show the lanes of the next instruction. After `join_ahead`, the later call of
    /// [`Flow::join`] for the same instruction does nothing.
    ///
    /// # Errors
    /// Returns no error if [`Flow::join_leads`] returns [`Join::Run`]. Otherwise, returns the errors of [`Flow::join`].
    pub fn join_ahead<O: Observer>(&mut self, o: &mut O) -> Result<(), Fault> {
        let arrived = self.active;
        if self.join(o)? == Join::Run {
            self.joined = arrived;
        }
        Ok(())
    }

    /// Forgets that [`Flow::join_ahead`] has executed a join. The caller has replaced the next instruction by an
    /// instruction without a join.
    pub fn forget_join(&mut self) {
        self.joined = Mask::NONE;
    }

    /// Returns the lanes that arrived at the next instruction, before the join of that instruction.
    #[inline]
    pub fn arrived(&self) -> Mask {
        if self.joined.any() { self.joined } else { self.active }
    }

    /// Executes `quadon`: activates every lane of each quad with an active lane. The states of the activated lanes do
    /// not matter. (9.8)
    ///
    /// # Errors
    /// [`Fault::QuadonActive`] inside another `quadon`, [`Fault::StackLimit`].
    pub fn quadon<O: Observer>(&mut self, next: u32, o: &mut O) -> Result<(), Fault> {
        if self.stack.last().is_some_and(|top| top.token == TokenType::Quadon) {
            return Err(Fault::QuadonActive); // "nesting is not supported"
        }
        self.push(TokenType::Quadon, 0, self.active, o)?;
        self.active = whole_quads(self.active);
        self.pc = next;
        Ok(())
    }

    /// Executes `quadpop`: the lanes that were active before `quadon` become the active lanes again. (9.8)
    ///
    /// # Errors
    /// [`Fault::StackMismatch`], [`Fault::StackUnderflow`]. Both faults occur in strict and in lenient mode.
    pub fn quadpop<O: Observer>(&mut self, next: u32, o: &mut O) -> Result<(), Fault> {
        let top = *self.stack.last().ok_or(Fault::StackUnderflow)?;
        if top.token != TokenType::Quadon {
            return Err(Fault::StackMismatch);
        }
        self.pop(o);
        self.active = top.mask;
        self.pc = next;
        Ok(())
    }

    /// Executes `discard`: the lanes `killed` become dead. Dead lanes continue as helpers for their quad. A warp runs
    /// to its end even if all its lanes are dead. (**Open** 13.11: hardware may end such a warp early.) (6.10)
    pub fn discard(&mut self, killed: Mask, next: u32) {
        self.dead |= killed & self.active;
        self.pc = next;
    }

    /// At the start of the warp, marks the lanes that run only to compute derivatives for their quad.
    pub fn mark_helpers(&mut self, helpers: Mask) {
        self.dead |= helpers & self.launched;
    }

    /// Returns the target of a `bra c[]`. **Open** (13.8): `bra c[]` reads its target through an address register, and
    /// the values of this register may differ between lanes. In strict mode, different targets are a fault. In lenient
    /// mode, the target of the lowest active lane is used.
    ///
    /// # Errors
    /// [`Fault::TargetsDiffer`] in strict mode.
    pub fn uniform_target(&self, target_of: impl Fn(Lane) -> u32) -> Result<u32, Fault> {
        let mut lanes = self.active.lanes();
        let first = lanes.next().map(&target_of).unwrap_or(0);
        match self.mode {
            Mode::Strict if lanes.any(|lane| target_of(lane) != first) => Err(Fault::TargetsDiffer),
            Mode::Strict | Mode::Lenient => Ok(first),
        }
    }

    /// **Open** (13.4): if the stack is empty, a join is an underflow in strict mode, and has no effect in lenient
    /// mode. (The simulator Barra restores the initial mask instead.)
    fn join_without_token(&self) -> Result<Join, Fault> {
        match self.mode {
            Mode::Strict => Err(Fault::StackUnderflow),
            Mode::Lenient => Ok(Join::Run),
        }
    }

    /// **Open** (9.5): a `break` in a subroutine leaves a loop of the caller. In strict mode, such a `break` is a
    /// mismatch. In lenient mode, the CALL entry is popped as for a return, and unwinding continues to the BREAK entry.
    fn break_through_call(&self, call: &Token) -> Result<(), Fault> {
        match self.mode {
            Mode::Strict if (call.mask & self.brk).any() => Err(Fault::StackMismatch),
            Mode::Strict | Mode::Lenient => Ok(()),
        }
    }

    /// **Open** (13.5): lanes have executed `break`, and the stack has no BREAK entry. In strict mode, this case is an
    /// underflow. In lenient mode, the lanes count as exited.
    fn broken_at_the_end(&self) -> Result<(), Fault> {
        match self.mode {
            Mode::Strict if self.brk.any() => Err(Fault::StackUnderflow),
            Mode::Strict | Mode::Lenient => Ok(()),
        }
    }

    /// **Open** (13.3): if unwinding reaches a JOINAT entry, the lanes that wait for this entry resume at the entry's
    /// address. The entry stays on the stack, because the join at that address pops the entry. If no lane waits for the
    /// entry, unwinding pops the entry. Returns whether the entry is popped.
    fn joinat_while_unwinding(waiting: Mask) -> bool {
        waiting.is_empty()
    }

    /// **Open** (9.8): "No other control instruction may run in between" `quadon` and `quadpop`. In strict mode, any
    /// such instruction is [`Fault::QuadonActive`]. In lenient mode, only three actions cause this fault: unwinding, a
    /// join, and a nested `quadon`. These actions would change the QUADON entry.
    #[inline]
    fn control_inside_quadon(&self) -> Result<(), Fault> {
        match (self.mode, self.stack.last()) {
            (Mode::Strict, Some(Token { token: TokenType::Quadon, .. })) => Err(Fault::QuadonActive),
            (Mode::Strict | Mode::Lenient, _) => Ok(()),
        }
    }

    /// **Open** (13.6): if the number of outstanding calls has reached the limit, a limited call is skipped. Returns
    /// whether the call is skipped. A limited call that is not skipped adds one to the number of outstanding calls.
    /// Popping the entry of the call subtracts one.
    fn call_beyond_limit(&self) -> bool {
        self.limits.calls.is_some_and(|limit| self.calls >= limit)
    }

    #[inline]
    fn retire<O: Observer>(&mut self, leaving: Mask, next: u32, o: &mut O) -> Result<Decision, Fault> {
        let staying = self.active - leaving;
        let decision = if leaving.any() && staying.any() { Decision::Divergent } else { Decision::Uniform };
        if decision == Decision::Divergent {
            announce(o, Event::Diverge { taken: staying, not: leaving });
        }
        let ran = self.active;
        self.active = staying;
        if staying.is_empty() {
            self.unwind(ran, o)?;
        } else {
            self.pc = next;
        }
        Ok(decision)
    }

    /// Unwinds the stack after no lane remains on the current path, and finds the lanes that run next. `ran` are the
    /// lanes that were active before the unwinding. (9.3)
    fn unwind<O: Observer>(&mut self, ran: Mask, o: &mut O) -> Result<(), Fault> {
        while let Some(&top) = self.stack.last() {
            match top.token {
                TokenType::Branch => self.pop(o),
                TokenType::Call | TokenType::CallLim => {
                    self.break_through_call(&top)?;
                    self.pop(o);
                    self.ret = self.ret - top.mask;
                }
                TokenType::Break => {
                    self.pop(o);
                    self.brk = self.brk - top.mask;
                }
                TokenType::Joinat => {
                    if Self::joinat_while_unwinding(top.mask & self.run()) {
                        self.pop(o);
                    }
                }
                TokenType::Quadon => return Err(Fault::QuadonActive),
            }
            let waiting = top.mask & self.run();
            if waiting.any() {
                self.active = waiting;
                self.pc = top.pc;
                announce(o, Event::Jump { to: top.pc });
                announce_active(o, ran, waiting);
                return Ok(());
            }
        }
        self.broken_at_the_end()
    }

    #[inline]
    fn push<O: Observer>(&mut self, token: TokenType, pc: u32, mask: Mask, o: &mut O) -> Result<(), Fault> {
        self.add(token, pc, mask)?;
        announce_push(o, token);
        Ok(())
    }

    /// Pushes an entry without an event.
    #[inline]
    fn add(&mut self, token: TokenType, pc: u32, mask: Mask) -> Result<(), Fault> {
        if self.stack.len() >= self.limits.stack_entries {
            return Err(Fault::StackLimit);
        }
        self.stack.push(Token { token, pc, mask });
        Ok(())
    }

    #[inline]
    fn pop<O: Observer>(&mut self, o: &mut O) {
        if let Some(top) = self.remove() {
            announce(o, Event::Pop { kind: top.token.name() });
        }
    }

    /// Pops an entry without an event.
    #[inline]
    fn remove(&mut self) -> Option<Token> {
        let top = self.stack.pop()?;
        if top.token == TokenType::CallLim {
            self.calls -= 1;
        }
        Some(top)
    }

    #[inline]
    fn jump<O: Observer>(&mut self, to: u32, o: &mut O) {
        self.pc = to;
        announce(o, Event::Jump { to });
    }
}

/// The valid bits of the word that `bra c[]` reads. They are a 24-bit byte address whose low two bits are 0. (9.3)
pub(crate) const INDIRECT_TARGET_BITS: u32 = 0x00ff_fffc;

/// Returns all lanes of each quad that has a lane in `lanes`.
pub fn whole_quads(lanes: Mask) -> Mask {
    let pairs = lanes.0 | (lanes.0 >> 1 & 0x5555_5555) | (lanes.0 << 1 & 0xaaaa_aaaa);
    Mask(pairs | (pairs >> 2 & 0x3333_3333) | (pairs << 2 & 0xcccc_cccc))
}

/// Emits the event for the push of an entry.
#[inline(always)]
pub(crate) fn announce_push<O: Observer>(o: &mut O, token: TokenType) {
    announce(o, Event::Push { kind: token.name() });
}

/// Emits the events of a `bra` that divides the active lanes. The first event is the push of the entry for the waiting
/// lanes. The second event is the divergence. The third event is the jump to the first side.
#[inline(always)]
pub(crate) fn announce_division<O: Observer>(o: &mut O, first_pc: u32, first: Mask, second: Mask) {
    announce_push(o, TokenType::Branch);
    announce(o, Event::Diverge { taken: first, not: second });
    announce(o, Event::Jump { to: first_pc });
}

/// Emits the events of an arrival at a join. The events are the pop of the entry, the jump (if the entry is a BRANCH
/// entry), and the change of the active lanes (if any).
#[inline(always)]
pub(crate) fn announce_arrival<O: Observer>(
    o: &mut O,
    token: TokenType,
    pc: u32,
    arrived: Mask,
    active: Mask,
) {
    announce(o, Event::Pop { kind: token.name() });
    if token == TokenType::Branch {
        announce(o, Event::Jump { to: pc });
    }
    announce_active(o, arrived, active);
}

/// If the lanes `active` differ from the lanes `before`, emits an event for the lanes `active`. The lanes `before` ran
/// last.
#[inline(always)]
fn announce_active<O: Observer>(o: &mut O, before: Mask, active: Mask) {
    if O::ENABLED
        && let Some(event) = Event::of_active(before, active)
    {
        o.event(event);
    }
}

#[inline(always)]
fn announce<O: Observer>(observer: &mut O, event: Event) {
    if O::ENABLED {
        observer.event(event);
    }
}

impl FlowView for Flow {
    fn issue(&self) -> Option<Issue> {
        self.active.any().then_some(Issue { pc: self.pc, mask: self.active })
    }

    fn why(&self, lane: Lane) -> Why {
        if self.active.has(lane) {
            return Why::Active;
        }
        if self.exited.has(lane) {
            return Why::Exited;
        }
        if !self.launched.has(lane) {
            return Why::Uncovered;
        }
        if self.brk.has(lane) {
            return Why::Break;
        }
        // Finds the innermost entry at which the lane resumes.
        let waits_for = |token: TokenType| match token {
            TokenType::Call | TokenType::CallLim => self.ret.has(lane),
            TokenType::Branch | TokenType::Joinat => !self.ret.has(lane),
            TokenType::Break | TokenType::Quadon => false,
        };
        let entry = self.stack.iter().rev().find(|entry| entry.mask.has(lane) && waits_for(entry.token));
        entry.map_or(Why::Exited, |entry| Why::Parked { pc: entry.pc })
    }

    fn stack(&self) -> Vec<StackRow> {
        let row = |entry: &Token| StackRow {
            kind: entry.token.name(),
            pc: (entry.token != TokenType::Quadon).then_some(entry.pc),
            mask: Some(entry.mask),
            count: None,
        };
        self.stack.iter().rev().map(row).collect()
    }

    /// [`Observer::depth`] is not needed, because every push and pop has an event, and all entries have the same size.
    fn depths(&self) -> Vec<Depth> {
        let room = u32::try_from(self.limits.stack_entries).ok();
        vec![Depth { of: "token stack", used: self.stack.len() as u32, room }]
    }
}

mod faults;
pub use faults::ADDRESS_BITS;

#[cfg(test)]
mod tests;
