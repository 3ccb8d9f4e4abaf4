//! The reference interpreter. The interpreter executes one instruction at a time, for one vertex after another. Read
//! this file alongside docs/r500-vertex.md.
//!
//! [`super::flow`] executes flow control. [`mod@super::lane`] defines the arithmetic of one vertex.
//! [`super::operations`] names the function of each operation.

use reconverge_simt::{
    Event, FlowView, Issue, Lane, Machine, Mask, Mode as Strictness, Observer, Step, Trap, announced, stop,
};

use super::cause::Cause;
use super::group::{ALT_TEMPORARY, File, Group};
use super::inst::{Dual, Inst, Mode, Operand};
use super::lane;
use super::operations::{Operation, Value};
use super::outputs::mark;
use super::words::{Component, DstType, Select};

/// The result of an operation for one vertex.
#[derive(Clone, Copy, Default)]
struct Result4 {
    value: [f32; 4],
    /// Channels that the operation never writes. The write mask does not affect this field. Bit 0 is x.
    kept: u8,
    predicate: Option<bool>,
}

impl Group {
    /// Executes instructions to the end of the program, or until a [stop] is requested.
    ///
    /// # Errors
    /// Returns an error if an instruction traps.
    pub fn run<O: Observer>(&mut self, observer: &mut O) -> Result<(), Trap<Cause>> {
        if self.flow.is_done() {
            return Ok(());
        }
        while !stop::asked() && self.step(observer)? == Step::Running {}
        Ok(())
    }

    pub(crate) fn strict(&self) -> bool {
        self.mode == Strictness::Strict
    }

    /// Counts the instruction in a slot, reports the instruction to the observer, and returns the instruction.
    ///
    /// # Errors
    /// Returns an error if the instruction cannot be issued.
    pub(crate) fn issue_at<O: Observer>(&mut self, pc: u16, observer: &mut O) -> Result<Inst, Cause> {
        let slot = self.setup.slot(pc).ok_or(Cause::EmptySlot(pc))?;
        let inst = slot.inst.map_err(Cause::NoMeaning)?;
        if let Some(violation) = slot.violations.first().filter(|_| self.strict()) {
            return Err(Cause::Forbidden(*violation));
        }
        if self.statistics.instructions >= self.watchdog {
            return Err(Cause::Watchdog(self.watchdog));
        }
        let lanes = self.flow.lanes();
        self.issued[usize::from(pc)] += 1;
        self.statistics.instructions += 1;
        self.statistics.lane_instructions += u64::from(lanes.count());
        if O::ENABLED {
            observer.event(Event::Issue { pc: u32::from(pc), mask: lanes });
        }
        Ok(inst)
    }

    fn execute<O: Observer>(&mut self, pc: u16, observer: &mut O) -> Result<(), Cause> {
        let inst = self.issue_at(pc, observer)?;
        self.instruction(&inst, observer)?;
        let setup = self.setup.clone();
        self.flow.advance(&setup.control, self.mode, observer)?;
        Ok(())
    }

    /// Returns the vertices that execute an instruction. The predicates of the vertices determine the result.
    /// (docs/r500-vertex.md, section 3 and Q5)
    pub(crate) fn passing(&self, inst: &Inst) -> Mask {
        match inst.predicate {
            None => self.flow.lanes(),
            Some(true) => self.flow.lanes() & self.predicate,
            Some(false) => self.flow.lanes() - self.predicate,
        }
    }

    /// Executes an instruction, but not the flow control at this instruction. Both halves of a dual instruction read
    /// all operands before either half writes. The math half writes last. If no vertex executes the instruction, the
    /// interpreter does not compute the addresses of operands.
    pub(crate) fn instruction<O: Observer>(&mut self, inst: &Inst, observer: &mut O) -> Result<(), Cause> {
        let lanes = self.passing(inst);
        let mut results = [(Result4::default(), Result4::default()); 64];
        for lane in lanes.lanes() {
            let [a, b, c] = self.operands(inst, lane)?;
            let mut result = compute(inst.operation(), a, b, c);
            if inst.saturate {
                result.value = result.value.map(lane::saturate);
            }
            let dual = inst.dual.map(|dual| self.math_half(&dual, lane)).transpose()?;
            results[lane.index()] = (result, dual.unwrap_or_default());
        }
        for lane in lanes.lanes() {
            let (result, dual) = results[lane.index()];
            if !matches!(inst.operation().value, Value::Nothing) {
                self.write(inst, lane, &result, observer)?;
            }
            if let Some(half) = &inst.dual {
                self.write_math_half(half, lane, &dual, observer);
            }
            match result.predicate.or(dual.predicate) {
                Some(true) => self.predicate.insert(lane),
                Some(false) => self.predicate.remove(lane),
                None => {}
            }
        }
        Ok(())
    }

    // ---- Operands. docs/r500-vertex.md 2.2, 4

    fn operands(&self, inst: &Inst, lane: Lane) -> Result<[[f32; 4]; 3], Cause> {
        let mut values = [[0.0; 4]; 3];
        for ((value, operand), used) in values.iter_mut().zip(&inst.operands).zip(inst.reads()) {
            if used != 0 {
                *value = self.operand(operand, used, lane)?;
            }
        }
        Ok(values)
    }

    /// Returns the value of an operand. Fetches the register and selects channels of the register. Then takes the
    /// absolute value if the operand's `abs` is set. Then negates the channels in the operand's `negate`.
    fn operand(&self, operand: &Operand, used: u8, lane: Lane) -> Result<[f32; 4], Cause> {
        let vector = self.fetch(operand, used, lane)?;
        Ok([0, 1, 2, 3].map(|channel| {
            let bits = match operand.select[channel] {
                Select::X => vector[0],
                Select::Y => vector[1],
                Select::Z => vector[2],
                Select::W => vector[3],
                Select::ZERO | Select::RESERVED | Select::UNUSED => 0,
                Select::ONE => 1f32.to_bits(),
            };
            lane::operand(bits, operand.abs, operand.negate >> channel & 1 == 1)
        }))
    }

    fn fetch(&self, operand: &Operand, used: u8, lane: Lane) -> Result<[u32; 4], Cause> {
        // If the operand selects only literals, the interpreter does not compute the address of the register.
        if !operand.needs_register(used) {
            return Ok([0; 4]);
        }
        let register = i32::from(operand.register) + self.offset(operand.mode, lane)?;
        let Some(file) = File::of_source(operand.file) else {
            // REG: a constant above PVS_MAX_CONST_ADDR is (0, 0, 0, 0).
            return Ok(self.setup.constant(register).map_or([0; 4], |place| self.constants[place]));
        };
        match file.row(register) {
            Some(row) => Ok([0, 1, 2, 3].map(|channel| self.rows[row + channel][lane.index()])),
            None => self.outside(file, register).map(|()| [0; 4]),
        }
    }

    /// Returns the value that an addressing mode adds to a register number.
    fn offset(&self, mode: Mode, lane: Lane) -> Result<i32, Cause> {
        match mode {
            Mode::Absolute => Ok(0),
            Mode::A0(component) => {
                let component = component as usize;
                if self.strict() && !self.a0_written[component].has(lane) {
                    return Err(Cause::UnwrittenAddress);
                }
                Ok(self.a0[component][lane.index()])
            }
            Mode::Loop => {
                let in_loop =
                    self.flow.frames().iter().any(|frame| matches!(frame, super::flow::Frame::Loop { .. }));
                if self.strict() && !in_loop {
                    return Err(Cause::NoLoopIndex);
                }
                Ok(self.flow.al())
            }
        }
    }

    fn outside(&self, file: File, register: i32) -> Result<(), Cause> {
        match self.mode {
            Strictness::Strict => Err(Cause::OutsideFile { file: file.name, register, size: file.size }),
            Strictness::Lenient => Ok(()),
        }
    }

    /// Computes the math half of a dual instruction. The source of the math half has two scalars. Operand A is the
    /// first scalar. Operands B and C are both the second scalar. (docs/r500-vertex.md 2.3, Q4)
    fn math_half(&self, dual: &Dual, lane: Lane) -> Result<Result4, Cause> {
        let [first, second, ..] = self.operand(&dual.source, dual.scalars(), lane)?;
        let mut result = compute(dual.op.operation(), [first; 4], [second; 4], [second; 4]);
        if dual.saturate {
            result.value = result.value.map(lane::saturate);
        }
        Ok(result)
    }

    // ---- Writes

    fn write<O: Observer>(
        &mut self,
        inst: &Inst,
        lane: Lane,
        result: &Result4,
        observer: &mut O,
    ) -> Result<(), Cause> {
        let replicated = inst.dst.file == DstType::OUT_REPL_X;
        // OUT_REPL_X writes x to all enabled channels. If the operation does not write x, no channel is written.
        let kept = if replicated { 0u8.wrapping_sub(result.kept & 1) } else { result.kept };
        let channels = inst.dst.mask & !kept;
        if channels == 0 {
            return Ok(());
        }
        let register = i32::from(inst.dst.register) + self.offset(inst.dst.mode, lane)?;
        let Some(file) = File::of_destination(inst.dst.file) else {
            for channel in (0..4).filter(|channel| channels >> channel & 1 == 1) {
                self.a0[channel][lane.index()] = lane::address(result.value[channel]);
                self.a0_written[channel].insert(lane);
            }
            return Ok(());
        };
        let Some(row) = file.row(register) else { return self.outside(file, register) };
        for channel in (0..4).filter(|channel| channels >> channel & 1 == 1) {
            let from = if replicated { 0 } else { channel };
            self.write_row(row + channel, lane, result.value[from], observer);
        }
        if matches!(inst.dst.file, DstType::OUT | DstType::OUT_REPL_X) {
            mark(&mut self.written[register as usize], channels, Mask::only(lane));
        }
        Ok(())
    }

    fn write_math_half<O: Observer>(&mut self, dual: &Dual, lane: Lane, result: &Result4, observer: &mut O) {
        if matches!(dual.op.operation().value, Value::Nothing) {
            return;
        }
        let channel = dual.channel as usize;
        let row = ALT_TEMPORARY.start + usize::from(dual.register) * 4 + channel;
        self.write_row(row, lane, result.value[channel], observer);
    }

    fn write_row<O: Observer>(&mut self, row: usize, lane: Lane, value: f32, observer: &mut O) {
        self.rows[row][lane.index()] = value.to_bits();
        if O::DATA {
            observer.event(Event::Write { lane, register: row as u32, value: value.to_bits() });
        }
    }
}

/// Computes an operation for one vertex. (docs/r500-vertex.md, section 3)
fn compute(operation: &Operation, a: [f32; 4], b: [f32; 4], c: [f32; 4]) -> Result4 {
    let channels = |function: &dyn Fn(usize) -> f32| [0, 1, 2, 3].map(function);
    let w = Component::W as usize;
    let (value, kept, predicate) = match operation.value {
        Value::Nothing => ([0.0; 4], 15, None),
        Value::Channel(function) => (channels(&|n| function(a[n], b[n], c[n])), 0, None),
        Value::Dot => ([lane::dot(a, b); 4], 0, None),
        Value::Distance => ([1.0, lane::multiply(a[1], b[1]), a[2], b[3]], 0, None),
        Value::MultiplyClamp => ([lane::multiply_clamp(a, b, c); 4], 0, None),
        Value::Address(function) => (channels(&|n| function(a[n])), 0, None),
        Value::Push(compare) => {
            let (predicate, value) = lane::push(compare, a[w], b[w]);
            ([value; 4], 0, Some(predicate))
        }
        Value::Write(compare) => {
            let kept = (0..4).filter(|n| !compare.holds(a[*n])).fold(0, |mask, n| mask | 1 << n);
            (b, kept, None)
        }
        Value::Scalar(function) => ([function(a[w], b[w], c[w]); 4], 0, None),
        Value::Vector(function) => (function(a[w], b[w], c[w]), 0, None),
        Value::Predicate(function) => {
            let (predicate, value) = function(a[w]);
            ([value; 4], 0, Some(predicate))
        }
    };
    Result4 { value, kept, predicate }
}

impl Machine for Group {
    type Cause = Cause;

    fn step<O: Observer>(&mut self, observer: &mut O) -> Result<Step, Trap<Cause>> {
        let Some(Issue { pc, mask }) = self.flow.issue() else { return Ok(Step::Done) };
        if let Err(cause) = announced!(O, |observer| self.execute(self.flow.pc(), observer)) {
            if O::ENABLED {
                observer.event(Event::Trap { mask });
            }
            return Err(Trap { pc, lanes: mask, cause });
        }
        Ok(if self.flow.is_done() { Step::Done } else { Step::Running })
    }
}
