//! The clear interpreter: one wavefront, one instruction a step, written to be read beside the manual.
//!
//! A step is one control-flow instruction, one ALU group, or one fetch instruction. Within a group every operand is
//! read before anything is written (MAN chapter 4); PV and PS are the results of the group before.

mod cause;
mod group;

pub use cause::Cause;

use std::collections::BTreeMap;
use std::sync::Arc;

use reconverge_simt::registers::Row;
use reconverge_simt::{
    Event, FlowView, Issue, Lane, Machine, Mask, Observer, StackRow, Statistics, Step, Trap, Why,
};

use crate::code::{Cf, CfOp, Code, ExportKind};
use crate::export::{Spaces, Target};
use crate::flow::{AluForm, Before, Changes, Control, Flow, FlowFault, FlowSetup};
use crate::launch::{Emission, Executed, LANES, Launch, Options, Stage, lanes_of};
use crate::memory::Simd;
use crate::rules::Rule;
use crate::stack::stack_needed;
use crate::texture::Held;
use crate::words::CfInst;
pub(crate) use group::ClauseState;

/// One component of a register for every lane.
pub(crate) type Lanes = [u32; LANES];

/// PV.x to PV.w and PS stand behind the registers.
pub(crate) const PREVIOUS: usize = 5;

/// How many rows the registers of a launch are: four components each of the allocated ones, then of the clause
/// temporaries.
pub(crate) fn register_rows(launch: &Launch) -> usize {
    let allocated = usize::from(launch.num_gprs) + usize::from(launch.clause_temps);
    allocated.max(1) * 4
}

/// Where a register component lies among them; `None` outside both the allocation and the clause temporaries.
pub(crate) fn register_row(launch: &Launch, register: i32, chan: usize) -> Option<usize> {
    let (allocated, temps) = (i32::from(launch.num_gprs), i32::from(launch.clause_temps));
    let place = if (0..allocated).contains(&register) {
        register
    } else if (128 - temps..128).contains(&register) {
        allocated + register - (128 - temps)
    } else {
        return None;
    };
    Some(place as usize * 4 + chan)
}

/// Where the wavefront stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum At {
    /// Before a control-flow instruction.
    ControlFlow,
    /// Before a group of the clause that the control-flow instruction runs.
    Group(usize),
    /// Before a fetch instruction, for these lanes.
    Fetch(usize, Mask),
}

/// A wavefront with everything it owns.
///
/// What [`Statistics`] counts: `instructions` is the sum of control-flow instructions, ALU groups and fetch
/// instructions that were issued; `lane_instructions` sums the lanes that each ran for (for control flow the active
/// ones); `divergent_branches` counts the groups whose UPDATE_EXECUTE_MASK split the active lanes. Conditions of
/// control-flow instructions do not count: a boolean is the same for all lanes, so that only VALID_PIXEL_MODE can
/// split there, and those lanes are no longer valid.
#[derive(Clone, Debug)]
pub struct Wave {
    code: Arc<Code>,
    fetch_code: Option<Arc<Code>>,
    pub(crate) launch: Arc<Launch>,
    pub(crate) options: Options,
    /// Where in the launch the wavefront's lanes begin, and how many there are.
    pub(crate) place: usize,
    pub(crate) count: usize,
    pub(crate) flow: Flow,
    pub(crate) at: At,
    /// Registers, then clause temporaries, four components each; then PV and PS, and behind them the room of the fast
    /// engine, if that runs.
    pub(crate) registers: Vec<Row<LANES>>,
    pub(crate) clause: Box<ClauseState>,
    pub(crate) spaces: Spaces,
    /// What other wavefronts share.
    pub(crate) simd: Simd,
    /// What texture instructions of this clause have left for later ones.
    pub(crate) held: Held,
    pub(crate) exports: BTreeMap<(ExportKind, u16), Target>,
    pub(crate) emissions: Vec<Emission>,
    pub(crate) acknowledges: u32,
    pub(crate) statistics: Statistics,
    pub(crate) fidelity: Executed,
}

impl Wave {
    /// The wavefront whose first lane is at `place` of the launch, before its first instruction.
    ///
    /// `code` is the launch's program and `fetch_code` its fetch program, both decoded with
    /// [`Launch::code_options`].
    pub fn new(
        code: Arc<Code>,
        fetch_code: Option<Arc<Code>>,
        launch: Arc<Launch>,
        options: Options,
        place: usize,
    ) -> Wave {
        Wave::with_room(code, fetch_code, launch, options, place, &[])
    }

    /// [`Wave::new`] with rows behind the registers, which an engine uses for itself.
    pub(crate) fn with_room(
        code: Arc<Code>,
        fetch_code: Option<Arc<Code>>,
        launch: Arc<Launch>,
        options: Options,
        place: usize,
        room: &[Row<LANES>],
    ) -> Wave {
        let flow = Flow::new(FlowSetup {
            wave_width: launch.chip.wave_width,
            valid: Mask::NONE,
            stack_size: launch.stack_size,
            loop_constants: launch.resources.loop_constants,
            booleans: launch.resources.booleans,
            call_limit: options.call_limit,
            dx10_loop_limit: options.dx10_loop_limit,
            start: launch.start,
            fetch_start: launch.fetch_program.as_ref().map(|fetch| fetch.start),
            strict: options.strict,
        });
        let rows = register_rows(&launch) + PREVIOUS;
        let mut registers = Vec::with_capacity(rows + room.len());
        registers.resize(rows, Row::ZERO);
        registers.extend_from_slice(room);
        let mut wave = Wave {
            code,
            fetch_code,
            options,
            place,
            count: 0,
            flow,
            at: At::ControlFlow,
            registers,
            clause: Box::default(),
            spaces: Spaces::new(launch.scratch_dwords, launch.record_dwords),
            simd: Simd::default(),
            held: Held::default(),
            exports: BTreeMap::new(),
            emissions: Vec::new(),
            acknowledges: 0,
            statistics: Statistics::default(),
            fidelity: Executed::default(),
            launch,
        };
        wave.restart(place);
        wave
    }

    /// Becomes the wavefront whose first lane is at `place`, before its first instruction. What all wavefronts share
    /// stays.
    pub(crate) fn restart(&mut self, place: usize) {
        let Wave {
            code: _,
            fetch_code: _,
            launch,
            options: _,
            place: own_place,
            count,
            flow,
            at,
            registers,
            clause,
            spaces,
            simd: _,
            held,
            exports,
            emissions,
            acknowledges,
            statistics,
            fidelity,
        } = self;
        let (lanes, valid) = lanes_of(launch, place);
        (*own_place, *count, *at) = (place, lanes, At::ControlFlow);
        flow.restart(valid);
        registers[..register_rows(launch) + PREVIOUS].fill(Row::ZERO);
        for input in launch.inputs.iter().filter(|input| input.gpr < launch.num_gprs) {
            let values = input.values.get(place..).unwrap_or_default();
            let values = &values[..values.len().min(lanes)];
            for (chan, row) in registers[usize::from(input.gpr) * 4..][..4].iter_mut().enumerate() {
                row.0.iter_mut().zip(values).for_each(|(lane, value)| *lane = value[chan]);
            }
        }
        **clause = ClauseState::default();
        spaces.clear();
        *held = Held::default();
        exports.clear();
        emissions.clear();
        *acknowledges = 0;
        *statistics = Statistics::default();
        *fidelity = Executed::default();
    }

    /// The number of the first lane, from the start of the whole launch on.
    pub(crate) fn first_lane(&self) -> usize {
        self.launch.first_lane + self.place
    }

    /// Gives the wavefront what all wavefronts share, as the one before has left it.
    pub fn set_simd(&mut self, simd: Simd) {
        self.simd = simd;
    }

    /// The flow state.
    pub fn flow(&self) -> &Flow {
        &self.flow
    }

    /// A register component of one lane; `None` where the program has no such register.
    pub fn register(&self, register: u8, chan: usize, lane: Lane) -> Option<u32> {
        let row = self.row(register.into(), chan)?;
        Some(self.registers[row].0[lane.index()])
    }

    /// The counts so far.
    pub fn statistics(&self) -> Statistics {
        self.statistics
    }

    /// How exact the run has been so far.
    pub fn fidelity(&self) -> &Executed {
        &self.fidelity
    }

    /// Writes and fetch clauses that have asked for an acknowledge and that no WAIT_ACK has waited for.
    pub fn acknowledges(&self) -> u32 {
        self.acknowledges
    }

    // Registers.

    fn row(&self, register: i32, chan: usize) -> Option<usize> {
        register_row(&self.launch, register, chan)
    }

    /// The row of PV or PS.
    fn previous_row(&self, slot: usize) -> usize {
        register_rows(&self.launch) + slot
    }

    fn outside<T>(&mut self, register: i32, lenient: T) -> Result<T, Cause> {
        self.fidelity.rules.insert(Rule::BAD_INDEX_READS_R0);
        if self.options.strict {
            return Err(Cause::Register { register, declared: self.launch.num_gprs });
        }
        Ok(lenient)
    }

    /// Component `chan` of `register`, the same for all lanes. What lies outside gives R0
    /// ([`Rule::BAD_INDEX_READS_R0`]); `relative` says whether an index is in it already.
    pub(crate) fn read_register(
        &mut self,
        register: i32,
        chan: usize,
        lanes: Mask,
        relative: bool,
    ) -> Result<Lanes, Cause> {
        match self.row_for(register, chan, relative) {
            Some(row) => Ok(self.registers[row].0),
            None if lanes.is_empty() => Ok([0; LANES]),
            None => self.outside(register, self.registers[chan].0),
        }
    }

    /// An indexed access reaches the allocation only, not the clause temporaries.
    fn row_for(&self, register: i32, chan: usize, relative: bool) -> Option<usize> {
        if relative && !(0..i32::from(self.launch.num_gprs)).contains(&register) {
            return None;
        }
        self.row(register, chan)
    }

    /// Writes `values` to component `chan` of `register` for `lanes`; outside, the write is dropped.
    pub(crate) fn write_register<O: Observer>(
        &mut self,
        register: i32,
        chan: usize,
        lanes: Mask,
        values: &Lanes,
        relative: bool,
        observer: &mut O,
    ) -> Result<(), Cause> {
        let Some(row) = self.row_for(register, chan, relative) else {
            return if lanes.any() { self.outside(register, ()) } else { Ok(()) };
        };
        for lane in lanes.lanes() {
            self.registers[row].0[lane.index()] = values[lane.index()];
            if O::DATA {
                let register = register as u32 * 4 + chan as u32;
                observer.event(Event::Write { lane, register, value: values[lane.index()] });
            }
        }
        Ok(())
    }

    /// aL if the operand is relative, else 0.
    pub(crate) fn loop_offset(&self, relative: bool) -> Result<i32, Cause> {
        match self.flow.loop_index() {
            _ if !relative => Ok(0),
            Some(index) => Ok(index),
            None if self.options.strict => Err(Cause::LoopIndex),
            None => Ok(0),
        }
    }

    /// Every lane of the wavefront in a quad of which `lanes` has one.
    pub(crate) fn whole_quads(&self, lanes: Mask) -> Mask {
        Mask::from_fn(self.launch.chip.wave_width.into(), |lane| lanes.0 >> (lane.0 & !3) & 0xf != 0)
    }
    // Steps.

    /// The code that the wavefront is in: the main program's or the fetch program's.
    fn current(&self) -> Result<Arc<Code>, Cause> {
        if self.flow.in_fetch_program() {
            self.fetch_code.clone().ok_or(Cause::NoFetchProgram)
        } else {
            Ok(self.code.clone())
        }
    }

    fn advance<O: Observer>(&mut self, observer: &mut O) -> Result<(), Cause> {
        if self.statistics.instructions >= self.options.watchdog {
            return Err(Cause::Watchdog(self.options.watchdog));
        }
        let code = self.current()?;
        let cf = code.cf(self.flow.pc())?;
        if let Some(Issue { pc, mask }) = self.issue() {
            self.statistics.instructions += 1;
            self.statistics.lane_instructions += u64::from(mask.count());
            if O::ENABLED {
                observer.event(Event::Issue { pc, mask });
            }
        }
        match (self.at, &cf.op) {
            (At::Group(number), CfOp::Alu(clause)) => {
                if self.clause.mask_updated {
                    if self.options.strict {
                        return Err(Cause::ExecuteMaskNotLast);
                    }
                    self.fidelity.rules.insert(Rule::EXECUTE_MASK_FROM_THE_NEXT_GROUP);
                }
                self.group(clause, code.group(clause, number), observer)?;
                let lanes = self.flow.alu_lanes(clause.whole_quad_mode);
                if number + 1 < clause.group_count()
                    && (lanes.any() || self.clause.mask_updated && self.options.strict)
                {
                    self.at = At::Group(number + 1);
                } else {
                    self.flow.alu_leave(clause.form)?;
                    self.leave(cf);
                }
            }
            (At::Fetch(number, lanes), CfOp::Fetch(_, _, fetches)) => {
                self.fetch(&fetches[number], lanes, observer)?;
                if number + 1 < fetches.len() {
                    self.at = At::Fetch(number + 1, lanes);
                } else {
                    self.flow.nop();
                    self.leave(cf);
                }
            }
            _ => self.control_flow(cf, observer)?,
        }
        Ok(())
    }

    /// What lives in a clause only starts anew.
    pub(crate) fn begin_clause(&mut self) {
        *self.clause = ClauseState::default();
        let first = self.previous_row(0);
        self.registers[first..first + PREVIOUS].fill(Row::ZERO);
    }

    /// Back to control flow, or to the end.
    pub(crate) fn leave(&mut self, cf: &Cf) {
        self.at = At::ControlFlow;
        if cf.end_of_program {
            self.flow.end_of_program();
        }
    }

    fn control_flow<O: Observer>(&mut self, cf: &Cf, observer: &mut O) -> Result<(), Cause> {
        match &cf.op {
            CfOp::Alu(clause) => {
                let lanes = self.flow.alu_enter(clause.form, clause.whole_quad_mode)?;
                if clause.form == AluForm::PushBefore && self.flow.active().is_empty() {
                    self.fidelity.rules.insert(Rule::ALU_PUSH_BEFORE_ALWAYS_PUSHES);
                }
                if lanes.any() {
                    self.begin_clause();
                    self.at = At::Group(0);
                    return Ok(());
                }
                self.flow.alu_leave(clause.form)?;
            }
            CfOp::Fetch(inst, control, _) => {
                let lanes = self.flow.test(control)?;
                if lanes.any() {
                    self.acknowledges += u32::from(acknowledged(*inst));
                    self.held = Held::default();
                    self.at = At::Fetch(0, lanes);
                    return Ok(());
                }
                self.flow.nop();
            }
            CfOp::Export(control, export) => {
                self.export(control, export)?;
                self.flow.nop();
            }
            CfOp::Memory(control, export) => {
                self.memory_export(control, export, observer)?;
                self.flow.nop();
            }
            CfOp::Control(inst, control) => self.control(*inst, control)?,
        }
        self.leave(cf);
        Ok(())
    }

    fn control(&mut self, inst: CfInst, control: &Control) -> Result<(), Cause> {
        self.needs_stage(inst)?;
        if control.whole_quad_mode {
            self.fidelity.rules.insert(Rule::WHOLE_QUAD_REVIVES_BRANCHES_ONLY);
        }
        let flow = &mut self.flow;
        match inst {
            CfInst::NOP | CfInst::END_PROGRAM => flow.nop(),
            CfInst::WAIT_ACK => {
                self.acknowledges = self.acknowledges.min(control.addr);
                flow.nop();
            }
            CfInst::LOOP_START => flow.loop_start(control)?,
            CfInst::LOOP_END => flow.loop_end(control)?,
            CfInst::LOOP_START_DX10 => flow.loop_start_dx10(control)?,
            CfInst::LOOP_START_NO_AL => flow.loop_start_no_al(control)?,
            CfInst::LOOP_CONTINUE => flow.loop_continue(control)?,
            CfInst::LOOP_BREAK => flow.loop_break(control)?,
            CfInst::JUMP => flow.jump(control)?,
            CfInst::PUSH => flow.push_(control)?,
            CfInst::PUSH_ELSE => flow.push_else(control)?,
            CfInst::ELSE => flow.else_(control)?,
            CfInst::POP => flow.pop(control)?,
            CfInst::POP_JUMP => flow.pop_jump(control)?,
            CfInst::POP_PUSH => flow.pop_push(control)?,
            CfInst::POP_PUSH_ELSE => flow.pop_push_else(control)?,
            CfInst::CALL => flow.call(control)?,
            CfInst::CALL_FS => flow.call_fs(control)?,
            CfInst::RETURN => flow.return_(control)?,
            CfInst::KILL => flow.kill(control)?,
            CfInst::EMIT_VERTEX => {
                flow.nop();
                self.emit(control, true, false)?;
            }
            CfInst::EMIT_CUT_VERTEX => {
                flow.nop();
                self.emit(control, true, true)?;
            }
            CfInst::CUT_VERTEX => {
                flow.nop();
                self.emit(control, false, true)?;
            }
            // Clauses have been taken apart when the code was decoded.
            CfInst::TEX
            | CfInst::VTX
            | CfInst::VTX_TC
            | CfInst::TEX_ACK
            | CfInst::VTX_ACK
            | CfInst::VTX_TC_ACK => flow.nop(),
        }
        if let Some(rule) = leans_on(inst) {
            self.fidelity.rules.insert(rule);
        }
        Ok(())
    }

    /// EMIT and CUT belong to geometry programs, CALL_FS to vertex programs. (MAN p. 47)
    fn needs_stage(&self, inst: CfInst) -> Result<(), Cause> {
        let stage = self.launch.stage;
        let fits = match inst {
            CfInst::EMIT_VERTEX | CfInst::EMIT_CUT_VERTEX | CfInst::CUT_VERTEX => stage == Stage::Geometry,
            CfInst::CALL_FS => stage == Stage::Vertex,
            _ => true,
        };
        if fits || !self.options.strict {
            Ok(())
        } else {
            Err(Cause::WrongStage { name: inst.name(), stage })
        }
    }

    /// The control-flow instruction that is next, or whose clause runs, and the code it is of.
    fn op(&self) -> Option<(&Code, &CfOp)> {
        let code = if self.flow.in_fetch_program() { self.fetch_code.as_ref()? } else { &self.code };
        Some((code, &code.cf(self.flow.pc()).ok()?.op))
    }

    /// Where the next instruction stands.
    pub(crate) fn position(&self) -> u32 {
        let pc = self.flow.pc();
        match (self.at, self.op()) {
            (At::Group(number), Some((code, CfOp::Alu(clause)))) => code.group(clause, number).addr,
            (At::Fetch(number, _), Some((_, CfOp::Fetch(_, _, fetches)))) => fetches[number].addr,
            _ => pc,
        }
    }

    /// What stopped the instruction at `pc` while `lanes` were active; a stack that overflows is told what the program
    /// needs.
    pub(crate) fn trap<O: Observer>(
        &self,
        pc: u32,
        lanes: Mask,
        mut cause: Cause,
        observer: &mut O,
    ) -> Trap<Cause> {
        if O::ENABLED {
            observer.event(Event::Trap { mask: lanes });
        }
        if let Cause::Flow(FlowFault::StackOverflow { program, subentries_an_entry, .. }) = &mut cause {
            let needed = stack_needed(&self.code, self.launch.start);
            *program = needed.map(|needed| needed.entries(*subentries_an_entry));
        }
        Trap { pc, lanes, cause }
    }
}

/// Whether a fetch clause asks for an acknowledge, which WAIT_ACK can wait for.
fn acknowledged(inst: CfInst) -> bool {
    matches!(inst, CfInst::TEX_ACK | CfInst::VTX_ACK | CfInst::VTX_TC_ACK)
}

/// The disputed reading that an instruction leans on.
pub(crate) fn leans_on(inst: CfInst) -> Option<Rule> {
    match inst {
        CfInst::JUMP | CfInst::ELSE => Some(Rule::POP_ONLY_WHEN_JUMPING),
        CfInst::PUSH => Some(Rule::ALU_PUSH_BEFORE_ALWAYS_PUSHES),
        CfInst::POP => Some(Rule::POP_KEEPS_BREAKS),
        CfInst::LOOP_START_DX10 => Some(Rule::DX10_LOOP_HAS_NO_COUNT),
        CfInst::PUSH_ELSE | CfInst::POP_PUSH_ELSE => Some(Rule::PUSH_ELSE_INVERTS),
        CfInst::KILL => Some(Rule::KILL_JUMPS_WHEN_NONE_IS_VALID),
        CfInst::NOP
        | CfInst::TEX
        | CfInst::VTX
        | CfInst::VTX_TC
        | CfInst::LOOP_START
        | CfInst::LOOP_END
        | CfInst::LOOP_START_NO_AL
        | CfInst::LOOP_CONTINUE
        | CfInst::LOOP_BREAK
        | CfInst::POP_JUMP
        | CfInst::POP_PUSH
        | CfInst::CALL
        | CfInst::CALL_FS
        | CfInst::RETURN
        | CfInst::EMIT_VERTEX
        | CfInst::EMIT_CUT_VERTEX
        | CfInst::CUT_VERTEX
        | CfInst::END_PROGRAM
        | CfInst::WAIT_ACK
        | CfInst::TEX_ACK
        | CfInst::VTX_ACK
        | CfInst::VTX_TC_ACK => None,
    }
}

impl FlowView for Wave {
    fn issue(&self) -> Option<Issue> {
        let issue = self.flow.issue()?;
        let pc = self.position();
        let mask = match (self.at, self.op()) {
            (At::Fetch(_, lanes), _) => lanes,
            (At::Group(_), Some((_, CfOp::Alu(clause)))) => self.flow.alu_lanes(clause.whole_quad_mode),
            (At::Group(_) | At::ControlFlow, _) => issue.mask,
        };
        Some(Issue { pc, mask })
    }

    fn why(&self, lane: Lane) -> Why {
        self.flow.why(lane)
    }

    fn stack(&self) -> Vec<StackRow> {
        FlowView::stack(&self.flow)
    }
}

impl Machine for Wave {
    type Cause = Cause;

    fn step<O: Observer>(&mut self, observer: &mut O) -> Result<Step, Trap<Cause>> {
        if self.flow.done() {
            return Ok(Step::Done);
        }
        let pc = self.position();
        let lanes = self.flow.active();
        let before = Before::of::<O>(&self.flow, Changes::All);
        if let Err(cause) = self.advance(observer) {
            return Err(self.trap(pc, lanes, cause, observer));
        }
        before.announce(&self.flow, observer);
        Ok(if self.flow.done() { Step::Done } else { Step::Running })
    }
}
