//! The reference interpreter. The interpreter executes one instruction of one warp at a time. A reader can compare the
//! source of the interpreter with the manual.
//!
//! A step performs the actions of the step function in section 9.3: fetch, the join modifier, the predicate, the
//! instruction, and the exit modifier. The actions have this order. Each active lane whose predicate is true executes
//! the instruction. `meaning.rs` has the lane functions of operations. `access.rs` has the memory accesses. `flow.rs`
//! has the operations on the token stack. Engines other than the reference interpreter can use all three files.

use reconverge_simt::memory::Store;
use reconverge_simt::races::Accessor;
use reconverge_simt::{Event, Lane, Mask, Observer, Trap, announced};

use crate::access;
use crate::barrier::BARRIERS;
use crate::block::{Executor, Ran};
use crate::context::{Common, Context, Turn};
use crate::flow::{Decision, Join, WARP, whole_quads};
use crate::inst::{
    Arith, BarrierCount, Chip, Control, Dst, End, Group, Guard, Idle, Inst, Mem, Memory, Op, Operand,
    Special, Stage, Tex, TexOp,
};
use crate::lane::atomic::{Atomic, atomic32, atomic64};
use crate::lane::interpolate::{self, Position};
use crate::lane::{Flags, quad};
use crate::launch::SAMPLE_ID;
use crate::meaning::{self, Operands};
use crate::spaces::aligned;
use crate::state::{REGISTER_A, REGISTER_C, REGISTER_O, Warp};
use crate::texture::{self, Read, Request};
use crate::trap::{Access, Cause, Space};

/// The reference interpreter as an engine.
#[derive(Clone, Copy, Debug)]
pub struct Reference;

impl Executor for Reference {
    fn run<G: Store, O: Observer>(&self, turn: &mut Turn<'_, G, O>, most: u32) -> Ran {
        let mut tried = 0;
        loop {
            let end = step(turn);
            tried += 1;
            let stays =
                || !turn.warp.flow.finished() && turn.common.barriers.waits_for(turn.number).is_none();
            if tried >= most || end.is_err() || !stays() {
                return Ran { tried, end };
            }
        }
    }
}

/// Executes the instruction at the warp's program counter.
///
/// # Errors
/// The program trapped. The warp stays at the instruction. Lanes with a lower number than the lane that trapped have
/// executed the instruction.
pub fn step<G: Store, O: Observer>(turn: &mut Turn<'_, G, O>) -> Result<(), Trap<Cause>> {
    let arrived = turn.warp.flow.arrived();
    let Turn { context, common, warp, number, global, observer, .. } = turn;
    let observer = &mut **observer;
    announced!(O, |observer| {
        let mut step = Step::at(context, common, (warp, *number), *global, observer);
        let result = step.run();
        step.trapped(result, arrived)
    })
}

/// Executes an instruction without its join modifier. An engine calls this function after the engine has executed the
/// join. `arrived` are the lanes that were active before the join.
///
/// # Errors
/// The errors of [`step`].
pub fn step_joined<G: Store, O: Observer>(
    turn: &mut Turn<'_, G, O>,
    arrived: Mask,
) -> Result<(), Trap<Cause>> {
    let Turn { context, common, warp, number, global, observer, .. } = turn;
    let observer = &mut **observer;
    announced!(O, |observer| {
        let mut step = Step::at(context, common, (warp, *number), *global, observer);
        let result = step.fetch().and_then(|inst| step.joined(inst));
        step.trapped(result, arrived)
    })
}

/// The cause of a trap, and the lanes that caused the trap (`None` for all active lanes). Failures are rare, and the
/// box makes the results of all lane operations smaller.
type Failure = Box<(Option<Mask>, Cause)>;

fn everyone(cause: impl Into<Cause>) -> Failure {
    Box::new((None, cause.into()))
}

fn only(lane: Lane) -> impl Fn(Cause) -> Failure {
    move |cause| Box::new((Some(Mask::only(lane)), cause))
}

struct Step<'a, G, O> {
    context: &'a Context,
    common: &'a mut Common,
    warp: &'a mut Warp,
    global: &'a mut G,
    observer: &'a mut O,
    /// Number of the warp in the block.
    number: usize,
    pc: u32,
}

impl<'a, G: Store, O: Observer> Step<'a, G, O> {
    fn at(
        context: &'a Context,
        common: &'a mut Common,
        (warp, number): (&'a mut Warp, usize),
        global: &'a mut G,
        observer: &'a mut O,
    ) -> Self {
        Step { context, common, pc: warp.flow.pc(), warp, global, observer, number }
    }

    fn fetch(&self) -> Result<&'a Inst, Failure> {
        self.context.code.at(self.pc).map_err(everyone)
    }

    fn run(&mut self) -> Result<(), Failure> {
        let inst = self.fetch()?;
        if inst.end == End::Join && self.warp.flow.join(self.observer).map_err(everyone)? == Join::Away {
            return Ok(());
        }
        self.joined(inst)
    }

    /// Executes the instruction after its join modifier.
    fn joined(&mut self, inst: &Inst) -> Result<(), Failure> {
        let context = self.context;
        let active = self.warp.flow.active();
        self.announce(Event::Issue { pc: self.pc, mask: active });
        self.common.count(context.code.place(self.pc), active);
        let executing = self.executing(inst, active);
        let next = self.pc + inst.form.bytes();
        // 1.4: if the destination field selects a register that the program does not have, the interpreter drops the
        // instruction.
        if inst.gate().is_some_and(|register| !self.warp.has_register(register)) {
            self.warp.flow.advance(next);
        } else if let Op::Control(control) = inst.op {
            self.control(control, inst, executing, next)?;
        } else {
            self.execute(inst, executing)?;
            self.warp.flow.advance(next);
        }
        if inst.end == End::Exit {
            self.warp.flow.exit(self.observer).map_err(everyone)?;
        }
        Ok(())
    }

    /// Converts a failure to the trap of this step.
    fn trapped(&mut self, result: Result<(), Failure>, arrived: Mask) -> Result<(), Trap<Cause>> {
        result.map_err(|failure| {
            let (lanes, cause) = *failure;
            let lanes = lanes.unwrap_or(arrived);
            self.announce(Event::Trap { mask: lanes });
            Trap { pc: self.pc, lanes, cause }
        })
    }

    /// Returns the active lanes whose predicate holds. (2.2)
    fn executing(&self, inst: &Inst, active: Mask) -> Mask {
        let Guard { condition, c } = inst.guard;
        if inst.guard.is_always() {
            return active;
        }
        let holds = |lane: &Lane| condition.holds(Flags::from_bits(self.warp.c(*lane, c)));
        active.lanes().filter(holds).fold(Mask::NONE, |all, lane| all | Mask::only(lane))
    }

    /// Executes control flow, which sets the program counter. (section 9)
    fn control(&mut self, control: Control, inst: &Inst, executing: Mask, next: u32) -> Result<(), Failure> {
        let observer = &mut *self.observer;
        let flow = &mut self.warp.flow;
        let mut decision = Decision::Uniform;
        match control {
            // Predicated instructions. (9.2)
            Control::Bra { target } => {
                decision = flow.bra(target, next, executing, observer).map_err(everyone)?;
            }
            Control::Ret => decision = flow.ret(executing, next, observer).map_err(everyone)?,
            Control::Break => decision = flow.break_(executing, next, observer).map_err(everyone)?,
            Control::Discard => flow.discard(executing, next),
            // Instructions that are not predicated. These instructions act on all active lanes.
            Control::Joinat { target } => flow.joinat(target, next, observer).map_err(everyone)?,
            Control::Breakaddr { target } => flow.breakaddr(target, next, observer).map_err(everyone)?,
            Control::Call { target, lim: false } => flow.call(target, next, observer).map_err(everyone)?,
            Control::Call { target, lim: true } => flow.call_lim(target, next, observer).map_err(everyone)?,
            Control::Preret { target, lim: false } => {
                flow.preret(target, next, observer).map_err(everyone)?
            }
            Control::Preret { target, lim: true } => {
                flow.preret_lim(target, next, observer).map_err(everyone)?;
            }
            Control::Quadon => {
                let woken = whole_quads(flow.active());
                self.warp.finalise(woken);
                self.warp.flow.quadon(next, observer).map_err(everyone)?;
            }
            Control::Quadpop => flow.quadpop(next, observer).map_err(everyone)?,
            // Open (9.9): the meaning of `lim` in `bra c[]` is unknown, so `lim` has no effect.
            Control::BraIndirect { lim: _ } => self.bra_indirect(inst)?,
            Control::Bar { inc, wait, barrier, count } => self.bar(inc, wait, barrier, count, next)?,
            // 6.10: `trap` ignores its predicate.
            Control::Trap => return Err(everyone(Cause::TrapInstruction)),
        }
        if decision == Decision::Divergent {
            self.common.statistics.divergent_branches += 1;
        }
        Ok(())
    }

    /// 9.9: reads the target from the c[] operand. All active lanes must have the same target.
    fn bra_indirect(&mut self, inst: &Inst) -> Result<(), Failure> {
        let mut targets = [0; WARP];
        for lane in self.warp.flow.active().lanes() {
            targets[lane.index()] = self.source(inst, 0, lane)? as u32;
        }
        let target = self.warp.flow.uniform_target(|lane| targets[lane.index()]).map_err(everyone)?;
        self.increment(inst, self.warp.flow.active());
        self.warp.flow.bra_indirect(target, self.observer).map_err(everyone)
    }

    /// 9.7: executes `bar` once for the warp, whatever the active mask of the warp.
    fn bar(
        &mut self,
        inc: bool,
        wait: bool,
        barrier: u8,
        count: BarrierCount,
        next: u32,
    ) -> Result<(), Failure> {
        if !self.context.has_barrier(barrier) {
            return Err(everyone(Cause::NoBarrier(barrier)));
        }
        self.warp.flow.advance(next);
        let Common { barriers, shared, .. } = &mut *self.common;
        barriers.bar(self.number, barrier, (inc, wait), count.into(), shared.races_mut());
        Ok(())
    }

    /// Executes an instruction that is not control flow, for the lanes `executing`.
    fn execute(&mut self, inst: &Inst, executing: Mask) -> Result<(), Failure> {
        match &inst.op {
            Op::Arith(op) => self.for_each(inst, executing, |step, lane| step.arithmetic(op, inst, lane)),
            Op::Memory(op) => self.for_each(inst, executing, |step, lane| step.memory(op, inst, lane)),
            Op::Group(Group::Quadop { ops, from }) => self.quadop(inst, executing, *ops, *from),
            Op::Group(Group::Tex(tex)) => self.texture(tex, executing),
            Op::Group(Group::Vote { all }) => {
                self.vote(inst, executing, *all);
                Ok(())
            }
            Op::Group(Group::Emit { vertex, restart }) => {
                // Open (6.10): if both `vertex` and `restart` are set, the instruction emits a vertex and then ends the
                // strip.
                if *vertex {
                    self.warp.emit(executing);
                }
                if *restart {
                    self.warp.restart(executing);
                }
                Ok(())
            }
            // The method `control` executes control flow. 6.10: `brkpt` has no effect unless debugging is enabled.
            Op::Control(_) | Op::Idle(Idle::Nop | Idle::PmEvent { .. } | Idle::Brkpt) => Ok(()),
        }
    }

    /// Calls `act` for each lane, in ascending order. After each call, applies the post-increment of the lane's address
    /// register, if any.
    fn for_each(
        &mut self,
        inst: &Inst,
        lanes: Mask,
        act: impl Fn(&mut Self, Lane) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let increments = inst.src.iter().filter_map(Operand::mem).any(|mem| mem.increment);
        // 3.4: `mov` and `ld a[]` can have a lane prefix.
        for lane in lanes.lanes().filter(|lane| inst.lanes >> (lane.0 & 3) & 1 != 0) {
            act(self, lane)?;
            if increments {
                self.increment(inst, Mask::only(lane));
            }
        }
        Ok(())
    }

    fn increment(&mut self, inst: &Inst, lanes: Mask) {
        for mem in inst.src.iter().filter_map(Operand::mem).filter(|mem| mem.increment) {
            for lane in lanes.lanes() {
                access::increment(self.warp, lane, mem);
            }
        }
    }

    fn arithmetic(&mut self, op: &Arith, inst: &Inst, lane: Lane) -> Result<(), Failure> {
        let src = [self.source(inst, 0, lane)?, self.source(inst, 1, lane)?, self.source(inst, 2, lane)?];
        let carry = Flags::from_bits(self.warp.c(lane, inst.guard.c));
        let writes_flags = inst.cdst.is_some();
        let operands = Operands { src, modifiers: inst.modifiers, carry, writes_flags };
        let (value, flags) = meaning::value(op, &operands, self.context.setup.chip, self.context.setup.modes);
        self.result(inst, lane, value.into());
        self.flags(inst, lane, flags);
        Ok(())
    }

    fn memory(&mut self, op: &Memory, inst: &Inst, lane: Lane) -> Result<(), Failure> {
        match *op {
            Memory::Ld => self.load(inst, lane),
            Memory::St => self.store_to(inst, lane).map(|_| ()),
            Memory::LdLock => self.load_lock(inst, lane),
            Memory::StUnlock => self.store_unlock(inst, lane),
            Memory::Interp { position } => self.interp(inst, position, lane),
            Memory::Atom { atomic, signed } => {
                self.atomic(inst, lane, Access::Atom, &self.atomic32(atomic, signed))
            }
            Memory::Red { atomic, signed } => {
                self.atomic(inst, lane, Access::Red, &self.atomic32(atomic, signed))
            }
            Memory::Atom64 { atomic } => {
                self.atomic(inst, lane, Access::Atom, &|old, x, y| atomic64(atomic, old, x, y))
            }
            Memory::Red64 { atomic } => {
                self.atomic(inst, lane, Access::Red, &|old, x, y| atomic64(atomic, old, x, y))
            }
        }
    }

    fn load(&mut self, inst: &Inst, lane: Lane) -> Result<(), Failure> {
        let mem = place(inst).map_err(everyone)?;
        let (_, value) = self.load_from(mem, lane)?;
        self.result(inst, lane, value);
        Ok(())
    }

    /// Returns the address and the value of a memory operand.
    fn load_from(&mut self, mem: &Mem, lane: Lane) -> Result<(u32, u128), Failure> {
        let (address, value) = self.load_unchecked(mem, lane)?;
        self.check_load(mem, lane, address)?;
        self.announce_data(Event::Load { lane, address });
        Ok((address, value))
    }

    /// Loads like [`Step::load_from`], without the check for races and without an event.
    fn load_unchecked(&mut self, mem: &Mem, lane: Lane) -> Result<(u32, u128), Failure> {
        let address = access::address(self.context, self.warp, lane, mem).map_err(only(lane))?;
        let shared = &self.common.shared;
        let value = access::load(self.context, shared, self.global, self.warp, lane, mem, address)
            .map_err(only(lane))?;
        Ok((address, value))
    }

    /// Checks a load from s[] for races, if the search for races is enabled. The bytes must exist.
    #[inline(always)]
    fn check_load(&mut self, mem: &Mem, lane: Lane, address: u32) -> Result<(), Failure> {
        let accessor = self.accessor(lane);
        match (mem.space, self.common.shared.races_mut()) {
            (Space::Shared, Some(races)) => {
                let bytes = mem.access.bytes();
                let address = aligned(address, bytes);
                races.load(accessor, address, bytes).map_err(|hazard| {
                    only(lane)(Cause::of_hazard(hazard, accessor, Access::Read, address, bytes))
                })
            }
            _ => Ok(()),
        }
    }

    /// Checks a store to s[] for races, if the search for races is enabled.
    fn check_store(&mut self, mem: &Mem, lane: Lane, address: u32, value: u32) -> Result<(), Failure> {
        if mem.space != Space::Shared {
            return Ok(());
        }
        let accessor = self.accessor(lane);
        let bytes = mem.access.bytes();
        let address = aligned(address, bytes);
        let shared = &mut self.common.shared;
        let (Some(before), Some(races)) = (shared.read(address, bytes), shared.races_mut()) else {
            return Ok(());
        };
        let same = before == value & (u32::MAX >> (32 - 8 * bytes));
        races
            .store(accessor, address, bytes, same)
            .map_err(|hazard| only(lane)(Cause::of_hazard(hazard, accessor, Access::Write, address, bytes)))
    }

    #[inline(always)]
    fn accessor(&self, lane: Lane) -> Accessor {
        Accessor { group: self.number as u32, lane: lane.0.into(), pc: self.pc }
    }

    /// Stores src\[1\] to the memory operand src\[0\], and returns the address.
    fn store_to(&mut self, inst: &Inst, lane: Lane) -> Result<u32, Failure> {
        let mem = place(inst).map_err(everyone)?;
        let value = self.wide_source(inst, 1, lane)?;
        let address = access::address(self.context, self.warp, lane, mem).map_err(only(lane))?;
        if self.context.checks.is_some() {
            self.check_store(mem, lane, address, value as u32)?;
        }
        let shared = &mut self.common.shared;
        access::store(self.context, shared, self.global, self.warp, lane, mem, address, value)
            .map_err(only(lane))?;
        self.announce_data(Event::Store { lane, address, value: value as u32 });
        Ok(address)
    }

    /// Section 4, locks: if the lock of a word is free, the lane takes the lock, and the flags of the lane become S.
    /// The lowest lane gets the lock first. The destination is written even if the lane does not get the lock.
    fn load_lock(&mut self, inst: &Inst, lane: Lane) -> Result<(), Failure> {
        let mem = place(inst).map_err(everyone)?;
        let (address, value) = self.load_unchecked(mem, lane)?;
        let thread = self.warp.number * WARP as u32 + u32::from(lane.0);
        let locked = self.common.shared.lock(address & !3, thread);
        // A lane without the lock does not use the word, so the interpreter does not check the load of this lane for
        // races.
        if locked {
            let group = self.number as u32;
            self.common.shared.races_mut().into_iter().for_each(|races| races.acquire(group, lock(address)));
            self.check_load(mem, lane, address)?;
        }
        self.announce_data(Event::Load { lane, address });
        self.result(inst, lane, value);
        self.flags(inst, lane, truth(locked));
        Ok(())
    }

    fn store_unlock(&mut self, inst: &Inst, lane: Lane) -> Result<(), Failure> {
        let address = self.store_to(inst, lane)?;
        self.common.shared.unlock(address & !3);
        let group = self.number as u32;
        self.common.shared.races_mut().into_iter().for_each(|races| races.release(group, lock(address)));
        Ok(())
    }

    /// Returns a function that computes the new word of a 32-bit atomic operation from the old word and two sources.
    fn atomic32(&self, atomic: Atomic, signed: bool) -> impl Fn(u64, u64, u64) -> u64 + use<G, O> {
        let before_g200 = matches!(self.context.setup.chip, Chip::G80 | Chip::G84);
        move |old, x, y| atomic32(atomic, signed, before_g200, old as u32, x as u32, y as u32).into()
    }

    /// 6.8: executes a read and a write of a word. No other access to the word occurs between the read and the write.
    /// Reductions do not return a result.
    fn atomic(
        &mut self,
        inst: &Inst,
        lane: Lane,
        kind: Access,
        new: &dyn Fn(u64, u64, u64) -> u64,
    ) -> Result<(), Failure> {
        let mem = place(inst).map_err(everyone)?;
        let (src2, src3) = (self.source(inst, 1, lane)?, self.source(inst, 2, lane)?);
        let address = access::address(self.context, self.warp, lane, mem).map_err(only(lane))?;
        let mut stored = 0;
        let mut keep = |old| {
            stored = new(old, src2, src3);
            stored
        };
        let old =
            access::atomic(self.context, self.global, mem, address, kind, &mut keep).map_err(only(lane))?;
        self.announce_data(Event::Load { lane, address });
        self.announce_data(Event::Store { lane, address, value: stored as u32 });
        self.result(inst, lane, old.into());
        Ok(())
    }

    /// 6.7: executes `interp`.
    fn interp(&mut self, inst: &Inst, position: Position, lane: Lane) -> Result<(), Failure> {
        let mem = place(inst).map_err(everyone)?;
        let address = access::address(self.context, self.warp, lane, mem).map_err(only(lane))?;
        let value = access::input(self.context, self.warp, lane, Space::Varying, address, position)
            .map_err(only(lane))?;
        let value = match inst.src[1] {
            Operand::None => value,
            _ => {
                let factor = inst.modifiers[1].f32(self.source(inst, 1, lane)? as u32);
                interpolate::multiplied(value, factor).0
            }
        };
        self.result(inst, lane, value.into());
        Ok(())
    }

    /// 6.3: reads src\[0\] of a second lane of the quad, even if the second lane does not run. All lanes read their
    /// sources before any result is written.
    fn quadop(
        &mut self,
        inst: &Inst,
        executing: Mask,
        ops: [quad::QuadOp; 4],
        from: quad::QuadSource,
    ) -> Result<(), Failure> {
        let neighbours = matches!(from, quad::QuadSource::Dx | quad::QuadSource::Dy);
        let mut theirs = [0; WARP];
        for lane in executing.lanes() {
            let other = Lane(lane.0 & !3 | from.lane(lane.0 & 3));
            theirs[lane.index()] = self.source(inst, 0, other)? as u32;
        }
        for lane in executing.lanes() {
            let own = self.source(inst, 1, lane)? as u32;
            let (value, flags) = if neighbours && self.context.stage != Stage::Fragment {
                quad::derivative_outside_fragment(self.context.setup.modes.nonfp_deriv)
            } else {
                quad::quadop(ops[usize::from(lane.0 & 3)], theirs[lane.index()], own)
            };
            self.result(inst, lane, value.into());
            self.flags(inst, lane, flags);
        }
        self.increment(inst, executing);
        Ok(())
    }

    /// 6.9: the results of a lane overwrite the sources of the lane, but other lanes of the quad also read these
    /// sources. All sources are read before any result is written.
    fn texture(&mut self, tex: &Tex, executing: Mask) -> Result<(), Failure> {
        let read = match tex.op {
            TexOp::Auto => Read::Auto,
            TexOp::Bias => Read::Bias,
            TexOp::Lod => Read::Lod,
            TexOp::Fetch => Read::Fetch,
            TexOp::Size => Read::Size,
            TexOp::Gather => Read::Gather,
            TexOp::Csaa => return Err(everyone(Cause::Undocumented("texcsaa"))),
            TexOp::Prep => Read::Prep,
            TexOp::QueryLod => Read::QueryLod,
        };
        let lanes = if tex.live { executing - self.warp.flow.dead() } else { executing };
        let mut results = [[0; 4]; WARP];
        for lane in lanes.lanes() {
            let words =
                |lane: u8| [0, 1, 2, 3].map(|word| self.warp.r(Lane(lane), tex.base.saturating_add(word)));
            let corner = lane.0 & !3;
            let quad = [0, 1, 2, 3].map(|place| words(corner + place));
            let request = Request {
                read,
                texture: tex.texture,
                sampler: tex.sampler,
                quad: &quad,
                count: usize::from(tex.count),
                place: usize::from(lane.0 & 3),
                offset: tex.offset.map(i32::from),
                derivatives: tex.deriv || self.context.stage == Stage::Fragment,
                cube: tex.cube,
            };
            results[lane.index()] =
                texture::read(&self.context.setup.textures, &request).map_err(only(lane))?;
        }
        for lane in lanes.lanes() {
            // Enabled components go to consecutive registers.
            let enabled = (0..4).filter(|component| tex.mask >> component & 1 != 0);
            for (step, component) in enabled.enumerate() {
                let register = tex.base.saturating_add(step as u8);
                self.set_r(lane, register, results[lane.index()][component]);
            }
        }
        Ok(())
    }

    /// 6.10: the predicate is an operand, and every active lane receives the result.
    fn vote(&mut self, inst: &Inst, holding: Mask, all: bool) {
        let active = self.warp.flow.active();
        let answer = if all { holding == active } else { holding.any() };
        for lane in active.lanes() {
            self.result(inst, lane, truth(answer).bits().into());
        }
    }

    /// Returns the value of a source of up to 64 bits. The most common kinds are handled inline.
    #[inline(always)]
    fn source(&mut self, inst: &Inst, place: usize, lane: Lane) -> Result<u64, Failure> {
        match inst.src[place] {
            Operand::None => Ok(0),
            Operand::R32(register) => Ok(self.warp.r(lane, register).into()),
            Operand::Imm(value) => Ok(value.into()),
            _ => self.wide_source(inst, place, lane).map(|value| value as u64),
        }
    }

    fn wide_source(&mut self, inst: &Inst, place: usize, lane: Lane) -> Result<u128, Failure> {
        let warp = &*self.warp;
        Ok(match inst.src[place] {
            Operand::None => 0,
            Operand::R32(register) => warp.r(lane, register).into(),
            Operand::R16(half) => warp.half(lane, half.0).into(),
            Operand::R64(register) => warp.pair(lane, register).into(),
            Operand::R128(register) => warp.quad(lane, register),
            Operand::Imm(value) => value.into(),
            Operand::A(register) => {
                access::check_address_register(self.context, register).map_err(everyone)?;
                warp.a(lane, register).into()
            }
            Operand::C(register) => warp.c(lane, register).into(),
            Operand::Special(special) => self.special(special, lane).into(),
            Operand::Mem(mem) => self.load_from(&mem, lane)?.1,
        })
    }

    /// 1.5: this machine has one multiprocessor. The cycle counter of the multiprocessor counts the instructions of the
    /// block.
    fn special(&self, special: Special, lane: Lane) -> u32 {
        match special {
            Special::Physid => u32::from(lane.0) | (self.warp.number & 0xff) << 8,
            Special::Clock => self.common.statistics.instructions as u32,
            Special::Vstride => 0x20,
            Special::Sampleid => {
                let input = self.warp.inputs.get(usize::from(SAMPLE_ID)).and_then(Option::as_ref);
                input.map_or(0, |input| input.at(Position::Centre).0[lane.index()])
            }
            Special::Pm(number) => self.context.setup.counters[usize::from(number & 3)],
            Special::Sr2 | Special::Unknown(_) => 0,
        }
    }

    fn result(&mut self, inst: &Inst, lane: Lane, value: u128) {
        let word = value as u32;
        match inst.dst {
            Dst::None | Dst::Discard => {}
            Dst::R32(register) => self.set_r(lane, register, word),
            Dst::R16(half) => {
                self.warp.set_half(lane, half.0, word as u16);
                let value = self.warp.r(lane, half.register());
                self.written(lane, u32::from(half.register()), value);
            }
            Dst::R64(register) => self.set_run(lane, register, 2, value),
            Dst::R128(register) => self.set_run(lane, register, 4, value),
            Dst::A(register) => {
                self.warp.set_a(lane, register, word as u16);
                self.written(lane, REGISTER_A + u32::from(register), word & 0xffff);
            }
            Dst::C(register) => {
                self.warp.set_c(lane, register, word as u8);
                self.written(lane, REGISTER_C + u32::from(register), word & 0xf);
            }
            Dst::Out32(address) => self.set_output(lane, address, word),
            Dst::Out16(address) => self.set_output(lane, address, (word & 0xffff) * 0x1_0001),
        }
    }

    /// 2.4: writes the flags.
    fn flags(&mut self, inst: &Inst, lane: Lane, flags: Flags) {
        if let Some(register) = inst.cdst {
            self.warp.set_c(lane, register, flags.bits());
            self.written(lane, REGISTER_C + u32::from(register), flags.bits().into());
        }
    }

    fn set_run(&mut self, lane: Lane, register: u8, count: u8, value: u128) {
        for step in 0..count {
            self.set_r(lane, register.saturating_add(step), (value >> (32 * u32::from(step))) as u32);
        }
    }

    fn set_r(&mut self, lane: Lane, register: u8, value: u32) {
        self.warp.set_r(lane, register, value);
        self.written(lane, register.into(), value);
    }

    fn set_output(&mut self, lane: Lane, address: u16, value: u32) {
        self.warp.set_output(lane, usize::from(address) / 4, value);
        self.written(lane, REGISTER_O + u32::from(address) / 4, value);
    }

    fn written(&mut self, lane: Lane, register: u32, value: u32) {
        self.announce_data(Event::Write { lane, register, value });
    }

    fn announce(&mut self, event: Event) {
        if O::ENABLED {
            self.observer.event(event);
        }
    }

    #[inline(always)]
    fn announce_data(&mut self, event: Event) {
        if O::DATA {
            self.observer.event(event);
        }
    }
}

/// **Open** (13.10): returns the flags of `vote` and `ld lock`: S for yes, Z for no.
pub fn truth(yes: bool) -> Flags {
    if yes { Flags::S } else { Flags::Z }
}

/// Returns the number that identifies a word's lock among all barriers and locks.
fn lock(address: u32) -> u32 {
    BARRIERS as u32 + address / 4
}

/// Returns the memory operand of a load or store.
fn place(inst: &Inst) -> Result<&Mem, Cause> {
    inst.src[0].mem().ok_or(Cause::Undocumented("a load or store without a memory operand"))
}
