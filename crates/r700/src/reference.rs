//! The clear interpreter: one wavefront, one instruction a step, written to be read beside the manual.
//!
//! A step is one control-flow instruction, one ALU group, or one fetch instruction. Within a group every operand is
//! read before anything is written (MAN chapter 4); PV and PS are the results of the group before.

use std::collections::BTreeMap;
use std::sync::Arc;

use reconverge_isa::FieldValue;
use reconverge_simt::{
    Event, FlowView, Issue, Lane, Machine, Mask, Observer, StackRow, Statistics, Step, Trap, Why,
};
use thiserror::Error;

use crate::chip::Family;
use crate::code::{
    AluClause, AluOp, Cf, CfOp, Code, CodeFault, ExportKind, Group, Operand, Source, TRANS, Window,
};
use crate::export::{Spaces, Target};
use crate::flow::{AluForm, Control, Flow, FlowFault, FlowSetup};
use crate::lane::{self, Predicate};
use crate::lane64;
use crate::launch::{Emission, Fidelity, LANES, Launch, Options, Stage, lanes_of};
use crate::meaning::{Double, Meaning};
use crate::memory::Simd;
use crate::rules::Rule;
use crate::texture::Held;
use crate::words::{CfInst, IndexModeR700, KcacheMode};

/// What a program can do wrong.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum Cause {
    /// The words have no meaning.
    #[error(transparent)]
    Code(#[from] CodeFault),
    /// The flow is malformed.
    #[error(transparent)]
    Flow(#[from] FlowFault),
    /// The fetch program is called, but its code is not there.
    #[error("CALL_FS has no fetch program to go to")]
    NoFetchProgram,
    /// A register outside the allocation (strict mode; lenient: reads give R0, writes are dropped).
    #[error("register {register} is outside the {declared} that NUM_GPRS declares")]
    Register {
        /// The register, after indexing.
        register: i32,
        /// NUM_GPRS.
        declared: u8,
    },
    /// AR was not written in this clause (strict mode; lenient: 0).
    #[error("AR.{0} is used, but no MOVA of this clause has written it")]
    AddressRegister(char),
    /// aL is used outside every DX9 loop (strict mode; lenient: 0).
    #[error("aL is used outside every loop that has an index")]
    LoopIndex,
    /// A global register that the launch does not have (strict mode; lenient: reads give R0, writes are dropped).
    #[error("global register {register} is outside the {declared} of the launch")]
    GlobalRegister {
        /// The register, after indexing.
        register: i32,
        /// How many there are.
        declared: usize,
    },
    /// PV or PS of a slot that the group before did not use (strict mode; lenient: the older value).
    #[error("{0} is read, but the group before left it undefined")]
    Previous(&'static str),
    /// A constant that the clause has not locked (strict mode; lenient: 0).
    #[error("constant {index} of kcache set {set} is read, but its mode is {mode}")]
    NotLocked {
        /// Set 0 or 1.
        set: u8,
        /// The constant, from the window's start.
        index: u8,
        /// KCACHE_MODE.
        mode: KcacheMode,
    },
    /// A group follows an UPDATE_EXECUTE_MASK in the same clause (strict mode).
    #[error("a group follows UPDATE_EXECUTE_MASK in the same clause")]
    ExecuteMaskNotLast,
    /// An instruction of another program kind (strict mode; lenient: it runs).
    #[error("{name} does not belong into a {stage:?} program")]
    WrongStage {
        /// The instruction.
        name: &'static str,
        /// The program's kind.
        stage: Stage,
    },
    /// A fetch from a resource that is not bound (strict mode; lenient: zeros).
    #[error("{what} {id} is not bound")]
    NoResource {
        /// What kind.
        what: &'static str,
        /// Its number.
        id: u8,
    },
    /// A SAMPLE_*_G without SET_GRADIENTS in its clause (strict mode; lenient: zeros).
    #[error("gradients are used, but no SET_GRADIENTS of this clause has loaded them")]
    Gradients,
    /// A DATA_FORMAT that a buffer fetch cannot convert.
    #[error("data format {0} has no conversion")]
    Format(u32),
    /// A store outside its buffer (strict mode; lenient: dropped).
    #[error("{what} of lanes {lanes} is outside its buffer")]
    MemoryBounds {
        /// The instruction.
        what: &'static str,
        /// The lanes.
        lanes: Mask,
    },
    /// The wavefront has taken more instructions than the watchdog allows.
    #[error("no end after {0} instructions")]
    Watchdog(u64),
}

/// One component of a register for every lane.
pub(crate) type Lanes = [u32; LANES];

/// Where the wavefront stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    /// Before a control-flow instruction.
    ControlFlow,
    /// Before a group of the clause that the control-flow instruction runs.
    Group(usize),
    /// Before a fetch instruction, for these lanes.
    Fetch(usize, Mask),
}

/// State that lives inside one ALU clause only.
#[derive(Clone, Debug, PartialEq)]
struct ClauseState {
    /// Results of the five slots of the group before; slot t is PS.
    previous: [Lanes; 5],
    /// Which of them that group defined.
    defined: [bool; 5],
    /// AR.x to AR.w.
    address: [[i32; LANES]; 4],
    /// Which of them a MOVA of this clause has written.
    address_defined: [bool; 4],
    /// The predicate bits.
    predicate: Mask,
    /// Whether a PRED_SET* of this clause has written them.
    predicate_written: bool,
    /// Whether a group has updated the execute mask.
    mask_updated: bool,
}

impl Default for ClauseState {
    fn default() -> Self {
        ClauseState {
            previous: [[0; LANES]; 5],
            defined: [false; 5],
            address: [[0; LANES]; 4],
            address_defined: [false; 4],
            predicate: Mask(u64::MAX),
            predicate_written: false,
            mask_updated: false,
        }
    }
}

/// A wavefront with everything it owns.
///
/// What [`Statistics`] counts: `instructions` is the sum of control-flow instructions, ALU groups and fetch
/// instructions that were issued; `lane_instructions` sums the lanes that each ran for (for control flow the active
/// ones); `divergent_branches` counts UPDATE_EXECUTE_MASK results, and CF instructions with a condition, that split
/// the active lanes.
#[derive(Clone, Debug)]
pub struct Wave {
    code: Arc<Code>,
    fetch_code: Option<Arc<Code>>,
    pub(crate) launch: Arc<Launch>,
    pub(crate) options: Options,
    /// The first lane of the launch that belongs to this wavefront, and how many do.
    pub(crate) first_lane: usize,
    pub(crate) count: usize,
    pub(crate) flow: Flow,
    at: At,
    /// Registers, then clause temporaries; four components each.
    registers: Vec<Lanes>,
    clause: Box<ClauseState>,
    pub(crate) spaces: Spaces,
    /// What other wavefronts share.
    pub(crate) simd: Simd,
    /// What texture instructions of this clause have left for later ones.
    pub(crate) held: Held,
    pub(crate) exports: BTreeMap<(ExportKind, u16), Target>,
    pub(crate) emissions: Vec<Emission>,
    pub(crate) acknowledges: u32,
    pub(crate) statistics: Statistics,
    pub(crate) fidelity: Fidelity,
}

impl Wave {
    /// The wavefront of `launch` that begins with lane `first_lane`, before its first instruction.
    ///
    /// `code` is the launch's program and `fetch_code` its fetch program, both decoded with
    /// [`Launch::code_options`].
    pub fn new(
        code: Arc<Code>,
        fetch_code: Option<Arc<Code>>,
        launch: Arc<Launch>,
        options: Options,
        first_lane: usize,
    ) -> Wave {
        let (count, valid) = lanes_of(&launch, first_lane);
        let flow = Flow::new(FlowSetup {
            wave_width: launch.chip.wave_width,
            valid,
            stack_size: launch.stack_size,
            loop_constants: launch.resources.loop_constants,
            booleans: launch.resources.booleans,
            call_limit: options.call_limit,
            dx10_loop_limit: options.dx10_loop_limit,
            start: launch.start,
            fetch_start: launch.fetch_program.as_ref().map(|fetch| fetch.start),
            strict: options.strict,
        });
        let allocated = usize::from(launch.num_gprs) + usize::from(launch.clause_temps);
        let mut registers = vec![[0; LANES]; allocated.max(1) * 4];
        for input in launch.inputs.iter().filter(|input| input.gpr < launch.num_gprs) {
            let values = input.values.iter().skip(first_lane).take(count);
            for (lane, value) in values.enumerate() {
                for (chan, component) in value.iter().enumerate() {
                    registers[usize::from(input.gpr) * 4 + chan][lane] = *component;
                }
            }
        }
        Wave {
            code,
            fetch_code,
            options,
            first_lane,
            count,
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
            fidelity: Fidelity::default(),
            launch,
        }
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
        Some(self.registers[row][lane.index()])
    }

    /// The counts so far.
    pub fn statistics(&self) -> Statistics {
        self.statistics
    }

    /// How exact the run has been so far.
    pub fn fidelity(&self) -> &Fidelity {
        &self.fidelity
    }

    /// Writes that have asked for an acknowledge and that no WAIT_ACK has waited for.
    pub fn acknowledges(&self) -> u32 {
        self.acknowledges
    }

    // Registers.

    /// Where a register component lies; `None` outside both the allocation and the clause temporaries.
    fn row(&self, register: i32, chan: usize) -> Option<usize> {
        let (allocated, temps) = (i32::from(self.launch.num_gprs), i32::from(self.launch.clause_temps));
        let place = if (0..allocated).contains(&register) {
            register
        } else if (128 - temps..128).contains(&register) {
            allocated + register - (128 - temps)
        } else {
            return None;
        };
        Some(place as usize * 4 + chan)
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
            Some(row) => Ok(self.registers[row]),
            None if lanes.is_empty() => Ok([0; LANES]),
            None => self.outside(register, self.registers[chan]),
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
            self.registers[row][lane.index()] = values[lane.index()];
            if O::ENABLED {
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

    // Operands.

    /// What INDEX_MODE adds to a relative operand, for each lane.
    fn index(&self, mode: IndexModeR700) -> Result<[i32; LANES], Cause> {
        if self.launch.chip.family == Family::R600 && is_global(mode) {
            return Err(CodeFault::Unknown { field: "INDEX_MODE", number: mode.to_bits() }.into());
        }
        let chan = match mode {
            IndexModeR700::GLOBAL => return Ok([0; LANES]),
            IndexModeR700::AR_X | IndexModeR700::GLOBAL_AR_X => 0,
            IndexModeR700::AR_Y => 1,
            IndexModeR700::AR_Z => 2,
            IndexModeR700::AR_W => 3,
            IndexModeR700::LOOP => return Ok([self.loop_offset(true)?; LANES]),
        };
        if !self.clause.address_defined[chan] && self.options.strict {
            return Err(Cause::AddressRegister(b"xyzw"[chan].into()));
        }
        Ok(self.clause.address[chan])
    }

    /// One operand for `lanes`, modifiers applied.
    fn operand(
        &mut self,
        clause: &AluClause,
        op: &AluOp,
        source: &Source,
        lanes: Mask,
    ) -> Result<Lanes, Cause> {
        let mut values = match source.operand {
            Operand::Value(value) => [value; LANES],
            Operand::Gpr { gpr, chan } if source.rel => {
                let index = self.index(op.index_mode)?;
                let mut values = [0; LANES];
                for lane in lanes.lanes() {
                    let register = i32::from(gpr) + index[lane.index()];
                    values[lane.index()] = self.indexed(op.index_mode, register, chan.into(), lane)?;
                }
                values
            }
            Operand::Gpr { gpr, chan } => self.read_register(gpr.into(), chan.into(), lanes, false)?,
            Operand::Kcache { set, index, chan } => [self.constant(clause, set, index, chan)?; LANES],
            Operand::ConstantFile { index, chan } => {
                let offset = if source.rel { self.index(op.index_mode)? } else { [0; LANES] };
                let resources =
                    if clause.alt_const { &self.launch.alternate } else { &self.launch.resources };
                offset.map(|offset| {
                    // Outside 0 to 255 a constant is 0.
                    let entry = usize::try_from(i32::from(index) + offset).ok().filter(|entry| *entry < 256);
                    entry
                        .and_then(|entry| resources.constant_file.get(entry))
                        .map_or(0, |entry| entry[usize::from(chan)])
                })
            }
            Operand::Previous(chan) => self.previous(chan)?,
            Operand::PreviousScalar => self.previous(TRANS)?,
        };
        if source.abs {
            values = values.map(lane::abs);
        }
        if source.neg {
            values = values.map(lane::neg);
        }
        Ok(values)
    }

    /// What an indexed operand reads: a register of the lane, or a global one
    /// ([`Rule::GLOBAL_REGISTERS_ARE_COLUMNS`]).
    fn indexed(&mut self, mode: IndexModeR700, register: i32, chan: usize, lane: Lane) -> Result<u32, Cause> {
        if is_global(mode) {
            return match self.global(register)? {
                Some(global) => Ok(self.simd.global[global][chan][lane.index()]),
                None => Ok(self.registers[chan][lane.index()]),
            };
        }
        let row = match self.row_for(register, chan, true) {
            Some(row) => row,
            None => self.outside(register, chan)?,
        };
        Ok(self.registers[row][lane.index()])
    }

    /// The global register with this number; `None` in lenient mode when there is none.
    fn global(&mut self, register: i32) -> Result<Option<usize>, Cause> {
        self.fidelity.rules.insert(Rule::GLOBAL_REGISTERS_ARE_COLUMNS);
        let declared = self.simd.global.len();
        let found = usize::try_from(register).ok().filter(|register| *register < declared);
        if found.is_none() {
            self.fidelity.rules.insert(Rule::BAD_INDEX_READS_R0);
            if self.options.strict {
                return Err(Cause::GlobalRegister { register, declared });
            }
        }
        Ok(found)
    }

    fn previous(&self, slot: u8) -> Result<Lanes, Cause> {
        let slot = usize::from(slot);
        if !self.clause.defined[slot] && self.options.strict {
            return Err(Cause::Previous(["PV.x", "PV.y", "PV.z", "PV.w", "PS"][slot]));
        }
        Ok(self.clause.previous[slot])
    }

    /// Constant `index` of a locked window (MAN 4, kcache).
    fn constant(&mut self, clause: &AluClause, set: u8, index: u8, chan: u8) -> Result<u32, Cause> {
        let Window { bank, line, mode } = clause.kcache[usize::from(set)];
        let (lines, offset) = match mode {
            KcacheMode::NOP => (0, 0),
            KcacheMode::LOCK_1 => (1, 0),
            KcacheMode::LOCK_2 => (2, 0),
            KcacheMode::LOCK_LOOP_INDEX => {
                self.fidelity.rules.insert(Rule::LOCK_LOOP_INDEX_COUNTS_LINES);
                (2, self.loop_offset(true)?)
            }
        };
        if index >= lines * 16 {
            if self.options.strict {
                return Err(Cause::NotLocked { set, index, mode });
            }
            return Ok(0);
        }
        let resources = if clause.alt_const { &self.launch.alternate } else { &self.launch.resources };
        let entry = (i32::from(line) + offset) * 16 + i32::from(index);
        let dword = usize::try_from(entry).map_or(usize::MAX, |entry| entry * 4 + usize::from(chan));
        Ok(resources.constant_buffers[usize::from(bank)].get(dword).copied().unwrap_or(0))
    }

    // Groups.

    /// One ALU group.
    fn group<O: Observer>(
        &mut self,
        clause: &AluClause,
        group: Group<'_>,
        observer: &mut O,
    ) -> Result<(), Cause> {
        let lanes = self.flow.alu_lanes(clause.whole_quad_mode);
        let mut operands = [[[0; LANES]; 3]; 5];
        let mut running = [Mask::NONE; 5];
        let mut write = Writes::default();
        // First every operand of every instruction is read ...
        for (number, op) in group.ops.iter().enumerate() {
            if op.pred_sel.is_some() && !self.clause.predicate_written {
                self.fidelity.rules.insert(Rule::PREDICATE_STARTS_TRUE);
            }
            running[number] = match op.pred_sel {
                None => lanes,
                Some(true) => lanes & self.clause.predicate,
                Some(false) => lanes - self.clause.predicate,
            };
            for (place, source) in op.sources.iter().take(op.opcode.sources.into()).enumerate() {
                operands[number][place] = self.operand(clause, op, source, running[number])?;
            }
            self.fidelity.count(op.opcode.name, op.opcode.exactness, op.opcode.rule);
            // ... except that the slots behind an indexed write see it (Rule::INDEXED_WRITES_ARE_SEEN_IN_THE_GROUP).
            if op.dst_rel && !op.opcode.meaning.spans_slots() {
                self.fidelity.rules.insert(Rule::INDEXED_WRITES_ARE_SEEN_IN_THE_GROUP);
                self.compute(group, number, op, &operands, running[number], &mut write);
                self.write_result(op, running[number], &write, observer)?;
            }
        }
        // Then everything is computed, then written.
        let others = |op: &&AluOp| !op.dst_rel || op.opcode.meaning.spans_slots();
        for (number, op) in group.ops.iter().enumerate().filter(|(_, op)| others(op)) {
            self.compute(group, number, op, &operands, running[number], &mut write);
        }
        for (number, op) in group.ops.iter().enumerate().filter(|(_, op)| others(op)) {
            self.write_result(op, running[number], &write, observer)?;
        }
        self.retire(clause, group, &running, write);
        Ok(())
    }

    /// Writes the result of one instruction to its register.
    fn write_result<O: Observer>(
        &mut self,
        op: &AluOp,
        running: Mask,
        write: &Writes,
        observer: &mut O,
    ) -> Result<(), Cause> {
        if matches!(op.opcode.meaning, Meaning::Nothing) || !op.write {
            return Ok(());
        }
        let values = &write.results[usize::from(op.slot)];
        if !op.dst_rel {
            return self.write_register(
                op.dst_gpr.into(),
                op.dst_chan.into(),
                running,
                values,
                false,
                observer,
            );
        }
        let index = self.index(op.index_mode)?;
        for lane in running.lanes() {
            let register = i32::from(op.dst_gpr) + index[lane.index()];
            let chan = usize::from(op.dst_chan);
            if is_global(op.index_mode) {
                if let Some(global) = self.global(register)? {
                    self.simd.global[global][chan][lane.index()] = values[lane.index()];
                }
                continue;
            }
            self.write_register(register, chan, Mask::only(lane), values, true, observer)?;
        }
        Ok(())
    }

    /// The results of one instruction of a group, into `write`.
    fn compute(
        &self,
        group: Group<'_>,
        number: usize,
        op: &AluOp,
        operands: &[[Lanes; 3]; 5],
        running: Mask,
        write: &mut Writes,
    ) {
        let [a, b, c] = &operands[number];
        let result = &mut write.results[usize::from(op.slot)];
        let finish = |value: u32| {
            let scaled = if op.omod == 1.0 { value } else { lane::scale(value, op.omod) };
            if op.clamp { lane::clamp(scaled, self.launch.dx10_clamp) } else { scaled }
        };
        // Operands of the four vector slots, for the operations that span them.
        let across = |place: usize, lane: usize| {
            [0, 1, 2, 3].map(|slot| {
                let found = group.ops.iter().position(|other| other.slot == slot);
                found.map_or(0, |number| operands[number][place][lane])
            })
        };
        match op.opcode.meaning {
            Meaning::Nothing => {}
            Meaning::Float1(f) => each(running, |lane| result[lane] = finish(f(a[lane]))),
            Meaning::Float2(f) => each(running, |lane| result[lane] = finish(f(a[lane], b[lane]))),
            Meaning::Float3(f, factor) => each(running, |lane| {
                let value = f(a[lane], b[lane], c[lane]);
                result[lane] = finish(if factor == 1.0 { value } else { lane::scale(value, factor) });
            }),
            Meaning::Bits1(f) => each(running, |lane| result[lane] = f(a[lane])),
            Meaning::Bits2(f) => each(running, |lane| result[lane] = f(a[lane], b[lane])),
            Meaning::Bits3(f) => each(running, |lane| result[lane] = f(a[lane], b[lane], c[lane])),
            Meaning::PredSet(f) => {
                let mut execute = Mask::NONE;
                each(running, |lane| {
                    let predicate = f(a[lane], b[lane]);
                    execute.set(Lane(lane as u8), predicate.execute);
                    result[lane] = predicate.value;
                });
                write.predicate = Some((number, execute));
            }
            Meaning::Kill(f) => each(running, |lane| {
                let kill = f(a[lane], b[lane]);
                write.killed.set(Lane(lane as u8), write.killed.has(Lane(lane as u8)) || kill);
                result[lane] = if kill { lane::ONE } else { 0 };
            }),
            Meaning::Mova(f) => {
                let chan = usize::from(op.dst_chan);
                each(running, |lane| {
                    let value = f(a[lane]);
                    write.address[chan][lane] = value;
                    result[lane] = value as u32;
                });
                write.address_written[chan] = running;
                write.mova[chan] = true;
            }
            Meaning::MovaLoop(f) => {
                each(running, |lane| result[lane] = f(a[lane]) as u32);
                write.loop_index = running.lowest().map(|lane| result[lane.index()] as i32);
            }
            Meaning::Reduce(f) => each(running, |lane| {
                result[lane] = finish(f(across(0, lane), across(1, lane)));
            }),
            Meaning::Cube => each(running, |lane| {
                let value = lane::cube(across(0, lane), across(1, lane))[usize::from(op.slot)];
                // OMOD and CLAMP do not act on the face number.
                result[lane] = if op.slot == 3 { value } else { finish(value) };
            }),
            Meaning::Double(double) => {
                let mut execute = Mask::NONE;
                each(running, |lane| {
                    let sources = [0, 1, 2].map(|place| across(place, lane));
                    let (value, predicate) = self.double(double, op.slot.into(), sources);
                    result[lane] = value;
                    execute.set(Lane(lane as u8), predicate.is_some_and(|predicate| predicate.execute));
                });
                // The lower slot of a pair decides.
                if matches!(double, Double::PredSet(_)) && op.slot & 1 == 0 {
                    write.predicate = Some((number, execute));
                }
            }
        }
    }

    /// What one slot of a double-precision operation gives; `sources[place][slot]` are the operands.
    ///
    /// The lower slot of a pair holds the high half of every source; of a four-slot operation x, y, z hold the high
    /// half and w the low one ([`Rule::DOUBLES_TAKE_THE_HIGH_HALF_FIRST`]).
    fn double(&self, double: Double, slot: usize, sources: [[u32; 4]; 3]) -> (u32, Option<Predicate>) {
        let join = |high: u32, low: u32| u64::from(high) << 32 | u64::from(low);
        let pair = slot & !1;
        let of_pair = |place: usize| join(sources[place][pair], sources[place][pair + 1]);
        let of_four = |place: usize| join(sources[place][0], sources[place][3]);
        let half = |value: u64| if slot & 1 == 0 { value as u32 } else { (value >> 32) as u32 };
        let value = match double {
            Double::Add => half(lane64::add_64(of_pair(0), of_pair(1))),
            Double::Mul => half(lane64::mul_64(of_four(0), of_four(1))),
            Double::MulAdd(factor) => {
                let fused = self.options.fused_muladd_64;
                half(lane64::muladd_64(of_four(0), of_four(1), of_four(2), factor, fused))
            }
            Double::Frexp => {
                let (exponent, mantissa) = lane64::frexp_64(join(sources[0][0], sources[0][1]));
                match slot {
                    0 => 0,
                    1 => exponent as u32,
                    _ => half(mantissa),
                }
            }
            Double::Ldexp => {
                let (double, integer) = if self.options.ldexp_64_integer_first { (1, 0) } else { (0, 1) };
                half(lane64::ldexp_64(of_pair(double), sources[integer][pair] as i32))
            }
            Double::Fract => half(lane64::fract_64(of_pair(0))),
            Double::ToFloat if slot & 1 == 0 => lane64::flt64_to_flt32(of_pair(0)),
            Double::ToFloat => 0,
            Double::FromFloat => half(lane64::flt32_to_flt64(sources[0][pair])),
            Double::PredSet(f) => {
                let predicate = lane::pred_set(f(of_pair(0), of_pair(1)));
                return (predicate.value, Some(predicate));
            }
        };
        (value, None)
    }

    /// Makes the results of a group visible to the next: PV, PS, AR, the predicate, the masks.
    fn retire(&mut self, clause: &AluClause, group: Group<'_>, running: &[Mask; 5], write: Writes) {
        let state = &mut *self.clause;
        state.defined = [false; 5];
        for (number, op) in group.ops.iter().enumerate() {
            if matches!(op.opcode.meaning, Meaning::Nothing) {
                continue;
            }
            let slot = usize::from(op.slot);
            state.defined[slot] = true;
            each(running[number], |lane| state.previous[slot][lane] = write.results[slot][lane]);
        }
        for chan in 0..4 {
            state.address_defined[chan] |= write.mova[chan];
            each(write.address_written[chan], |lane| state.address[chan][lane] = write.address[chan][lane]);
        }
        if let Some(index) = write.loop_index {
            self.flow.set_loop_index(index);
        }
        self.flow.kill_lanes(write.killed);
        if let Some((number, execute)) = write.predicate {
            let op = &group.ops[number];
            self.fidelity.rules.insert(Rule::PRED_SET_WRITES_ZERO_FOR_TRUE);
            if op.update_pred {
                state.predicate = (state.predicate - running[number]) | execute;
                state.predicate_written = true;
            }
            if op.update_execute_mask {
                let skip = running[number] - execute;
                state.mask_updated = true;
                let active = self.flow.active();
                if (skip & active).any() && (execute & active).any() {
                    self.statistics.divergent_branches += 1;
                }
                self.flow.update_execute_mask(clause.form, skip);
            }
        }
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
                self.group(clause, clause.group(number), observer)?;
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

    /// Back to control flow, or to the end.
    fn leave(&mut self, cf: &Cf) {
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
                    *self.clause = ClauseState::default();
                    self.at = At::Group(0);
                    return Ok(());
                }
                self.flow.alu_leave(clause.form)?;
            }
            CfOp::Fetch(_, control, _) => {
                let lanes = self.flow.test(control)?;
                if lanes.any() {
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

    /// Where the next instruction stands.
    fn position(&self) -> u32 {
        let pc = self.flow.pc();
        let code = if self.flow.in_fetch_program() { self.fetch_code.as_ref() } else { Some(&self.code) };
        let op = code.and_then(|code| code.cf(pc).ok()).map(|cf| &cf.op);
        match (self.at, op) {
            (At::Group(number), Some(CfOp::Alu(clause))) => clause.group(number).addr,
            (At::Fetch(number, _), Some(CfOp::Fetch(_, _, fetches))) => fetches[number].addr,
            _ => pc,
        }
    }

    fn announce<O: Observer>(&self, before: &Snapshot, observer: &mut O) {
        let after = Snapshot::of(self);
        let kind = |flow: &Flow| flow.entries().last().map_or("", |entry| entry.kind());
        for _ in before.depth..after.depth {
            observer.event(Event::Push { kind: kind(&self.flow) });
        }
        for _ in after.depth..before.depth {
            observer.event(Event::Pop { kind: before.top });
        }
        let (off, on) = (before.active - after.active, after.active - before.active);
        if off.any() && (after.active & before.active).any() {
            observer.event(Event::Diverge { taken: after.active & before.active, not: off });
        }
        if on.any() {
            observer.event(Event::Reconverge { mask: after.active });
        }
        if after.pc != before.pc && after.pc != before.pc + 1 {
            observer.event(Event::Jump { to: after.pc });
        }
    }
}

/// What [`Wave::announce`] compares.
struct Snapshot {
    pc: u32,
    active: Mask,
    depth: usize,
    top: &'static str,
}

impl Snapshot {
    fn of(wave: &Wave) -> Snapshot {
        Snapshot {
            pc: wave.flow.pc(),
            active: wave.flow.active(),
            depth: wave.flow.entries().len(),
            top: wave.flow.entries().last().map_or("", |entry| entry.kind()),
        }
    }
}

/// What a group writes, collected before anything is written.
struct Writes {
    /// Results by slot.
    results: [Lanes; 5],
    /// New AR by component.
    address: [[i32; LANES]; 4],
    address_written: [Mask; 4],
    mova: [bool; 4],
    loop_index: Option<i32>,
    killed: Mask,
    /// The PRED_SET* by its number in the group, and the lanes that are to execute.
    predicate: Option<(usize, Mask)>,
}

impl Default for Writes {
    fn default() -> Self {
        Writes {
            results: [[0; LANES]; 5],
            address: [[0; LANES]; 4],
            address_written: [Mask::NONE; 4],
            mova: [false; 4],
            loop_index: None,
            killed: Mask::NONE,
            predicate: None,
        }
    }
}

/// Whether indexed operands are global registers.
fn is_global(mode: IndexModeR700) -> bool {
    matches!(mode, IndexModeR700::GLOBAL | IndexModeR700::GLOBAL_AR_X)
}

fn each(lanes: Mask, mut act: impl FnMut(usize)) {
    for lane in lanes.lanes() {
        act(lane.index());
    }
}

/// The disputed reading that an instruction leans on.
fn leans_on(inst: CfInst) -> Option<Rule> {
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
        let mask = match self.at {
            At::Fetch(_, lanes) => lanes,
            At::Group(_) | At::ControlFlow => issue.mask,
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
        let before = O::ENABLED.then(|| Snapshot::of(self));
        if let Err(cause) = self.advance(observer) {
            if O::ENABLED {
                observer.event(Event::Trap { mask: lanes });
            }
            return Err(Trap { pc, lanes, cause });
        }
        if let Some(before) = before {
            self.announce(&before, observer);
        }
        Ok(if self.flow.done() { Step::Done } else { Step::Running })
    }
}
