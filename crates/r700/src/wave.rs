//! A wavefront. A wavefront has registers, flow state, clause state, exports and memory. The engines run wavefronts.

mod results;
mod starts;

use std::sync::Arc;

use reconverge_isa::Program;
use reconverge_simt::guarded::{Guarded, Placement};
use reconverge_simt::loaded::count_decoded;
use reconverge_simt::registers::Row;
use reconverge_simt::{
    Depth, Event, FlowView, GroupId, GroupTrap, Issue, Lane, Level, Mask, Mode, Observer, Options, StackRow,
    Statistics, Trap, Why,
};

use crate::cause::Cause;
use crate::chip::LANES;
use crate::code::{CfOp, Code, FetchOp};
use crate::flow::{Flow, FlowFault, FlowSetup};
use crate::launch::Launch;
use crate::memory::{Simd, Space, Spaces};
use crate::outcome::{Emission, Executed};
use crate::rules::Rule;
use crate::stack::stack_needed;
pub(crate) use results::Targets;
use starts::Fill;
pub(crate) use starts::{ReadRows, Starts};

/// One component of a register for every lane.
pub(crate) type Lanes = [u32; LANES];

/// Four components for every lane.
pub(crate) type Values = [Lanes; 4];

/// Number of rows for PV.x to PV.w and PS. These rows come after the rows of the registers.
pub(crate) const PREVIOUS: usize = 5;

/// The next instruction of a wavefront.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum At {
    /// The next instruction is a control-flow instruction.
    ControlFlow,
    /// The next instruction is the group with this number, in the clause of the current control-flow instruction.
    Group(usize),
    /// The next instruction is the fetch with this number in the clause of the current control-flow instruction. The
    /// fetch runs for these lanes.
    Fetch(usize, Mask),
}

/// State of an ALU clause. Each clause begins with the default state.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ClauseState {
    /// For each slot, whether the previous group has defined the slot's PV or PS. The entry of PS has the index of slot
    /// t. The values of PV and PS are in the rows after the registers.
    pub(crate) defined: [bool; 5],
    /// Values of AR.x to AR.w.
    pub(crate) address: [[i32; LANES]; 4],
    /// For each component of AR, whether a MOVA of this clause has written this component.
    pub(crate) address_defined: [bool; 4],
    /// The predicate bit of each lane.
    pub(crate) predicate: Mask,
    /// Whether a PRED_SET* of this clause has written the predicate bits.
    pub(crate) predicate_written: bool,
    /// Whether a group of this clause has updated the execute mask.
    pub(crate) mask_updated: bool,
}

impl Default for ClauseState {
    fn default() -> Self {
        ClauseState {
            defined: [false; 5],
            address: [[0; LANES]; 4],
            address_defined: [false; 4],
            predicate: Mask(u64::MAX),
            predicate_written: false,
            mask_updated: false,
        }
    }
}

impl ClauseState {
    /// Resets the state to the default state, and reuses its memory.
    fn reset(&mut self) {
        let ClauseState { defined, address, address_defined, predicate, predicate_written, mask_updated } =
            self;
        (*defined, *address_defined) = ([false; 5], [false; 4]);
        address.iter_mut().for_each(|row| row.fill(0));
        *predicate = Mask(u64::MAX);
        (*predicate_written, *mask_updated) = (false, false);
    }
}

/// Data that texture instructions load. Later instructions of the same clause read these data.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Held {
    /// The horizontal and the vertical gradients. SET_GRADIENTS_H and SET_GRADIENTS_V load these gradients.
    /// KEEP_GRADIENTS can also load the gradients.
    pub(crate) gradients: [Option<Box<Values>>; 2],
    /// Index that SET_CUBEMAP_INDEX has loaded.
    pub(crate) cubemap_index: Option<Box<Lanes>>,
}

/// The program, launch and options from which the engines create the wavefronts of a launch.
#[derive(Clone, Debug)]
pub(crate) struct Origin {
    pub(crate) code: Arc<Code>,
    pub(crate) fetch_code: Option<Arc<Code>>,
    pub(crate) launch: Arc<Launch>,
    pub(crate) options: Options,
    /// Whether the program or its fetch program accesses the local data share.
    pub(crate) data_share: bool,
}

impl Origin {
    pub(crate) fn new(program: &Program, launch: Launch, options: &Options) -> Origin {
        count_decoded();
        let code =
            Arc::new(Code::new(&program.words, launch.environment.start, launch.environment.code_options()));
        let fetch_code = launch.environment.fetch_code();
        let data_share = [Some(&code), fetch_code.as_ref()].into_iter().flatten().any(reaches_data_share);
        Origin { code, fetch_code, launch: Arc::new(launch), options: *options, data_share }
    }

    /// Creates the wavefront whose first lane is at position `place` of the launch. The wavefront has the rows in
    /// `room` after its registers, PV and PS.
    pub(crate) fn wave(&self, place: usize, room: &[Row<LANES>]) -> Wave {
        let (code, fetch_code, launch) = (self.code.clone(), self.fetch_code.clone(), self.launch.clone());
        Wave::with_room(code, fetch_code, launch, self.options, place, room)
    }

    /// Returns the number of lanes of a wavefront.
    pub(crate) fn width(&self) -> usize {
        self.launch.environment.chip.wave_width.into()
    }

    /// Returns the position of each wavefront's first lane in the launch.
    pub(crate) fn places(&self) -> impl ExactSizeIterator<Item = usize> {
        (0..self.launch.lanes).step_by(self.width())
    }

    /// Returns whether a wavefront may read data of earlier wavefronts from the scatter buffer, from global registers
    /// or from the local data share.
    pub(crate) fn shares(&self, simd: &Simd) -> bool {
        self.data_share || !simd.scatter.is_empty() || !simd.global.is_empty()
    }
}

fn reaches_data_share(code: &Arc<Code>) -> bool {
    code.instructions().any(|(_, cf)| match &cf.op {
        CfOp::Fetch(_, _, fetches) => fetches
            .iter()
            .any(|fetch| matches!(fetch.op, FetchOp::DataShareWrite(_) | FetchOp::DataShareRead(..))),
        CfOp::Control(..) | CfOp::Alu(_) | CfOp::Export(..) | CfOp::Memory(..) => false,
    })
}

fn flow_setup(launch: &Launch, options: &Options) -> FlowSetup {
    let environment = &launch.environment;
    FlowSetup {
        wave_width: environment.chip.wave_width,
        valid: Mask::NONE,
        stack_size: environment.stack_size,
        loop_constants: environment.resources.loop_constants,
        booleans: environment.resources.booleans,
        call_limit: environment.call_limit,
        dx10_loop_limit: environment.dx10_loop_limit,
        start: environment.start,
        fetch_start: environment.fetch_program.as_ref().map(|fetch| fetch.start),
        strict: options.mode == Mode::Strict,
    }
}

/// A wavefront. This structure contains the private state of the wavefront, and the state that all wavefronts share.
///
/// [`Statistics`] has three counts:
///
/// * `instructions`: the number of issued control-flow instructions, ALU groups and fetch instructions. Exports and the
///   words that start clauses count as control-flow instructions. If no lane runs a clause, only the clause's
///   control-flow word counts. An instruction that traps also counts.
/// * `lane_instructions`: the sum of the numbers of lanes of all instructions that `instructions` counts. For a
///   control-flow instruction, the number is the number of active lanes, whatever the condition is. For an ALU group,
///   the number is the number of active lanes. In WHOLE_QUAD_MODE, the number includes all lanes of every quad with an
///   active lane. For a fetch instruction, the number is the number of lanes that pass the condition of the clause.
///   PRED_SEL and FETCH_WHOLE_QUAD do not affect this count.
/// * `divergent_branches`: the number of ALU groups whose UPDATE_EXECUTE_MASK splits the active lanes. After a split,
///   some active lanes stay active and others become inactive. Conditions of control-flow instructions do not count. A
///   condition on a boolean constant cannot split the active lanes, because the constant is the same for all lanes. A
///   condition with VALID_PIXEL_MODE can split the active lanes, but the lanes that fail such a condition are not
///   valid.
#[derive(Clone, Debug)]
pub struct Wave {
    pub(crate) code: Arc<Code>,
    pub(crate) fetch_code: Option<Arc<Code>>,
    pub(crate) launch: Arc<Launch>,
    pub(crate) options: Options,
    /// Position of the wavefront's first lane in the launch.
    pub(crate) place: usize,
    /// Number of lanes of the wavefront.
    pub(crate) count: usize,
    pub(crate) flow: Flow,
    pub(crate) at: At,
    /// The rows of the registers come first, and the rows of the clause temporaries come second. A register or
    /// temporary has four rows. The rows of PV and PS come after the temporaries. If the fast engine runs, the rows of
    /// the fast engine are at the end.
    pub(crate) registers: Guarded<Row<LANES>>,
    pub(crate) clause: Box<ClauseState>,
    pub(crate) spaces: Spaces,
    /// State that all wavefronts of the launch share.
    pub(crate) simd: Simd,
    /// Data that texture instructions of this clause have loaded. Later instructions of the clause read these data.
    pub(crate) held: Held,
    pub(crate) exports: Targets,
    pub(crate) emissions: Vec<Emission>,
    pub(crate) acknowledges: u32,
    pub(crate) statistics: Statistics,
    pub(crate) fidelity: Executed,
}

impl Wave {
    /// Creates the wavefront whose first lane is at position `place` of the launch. No instruction of the wavefront has
    /// run yet.
    ///
    /// `code` is the program of the launch, and `fetch_code` is its fetch program. The caller has decoded both programs
    /// with [`Environment::code_options`](crate::launch::Environment::code_options).
    pub fn new(
        code: Arc<Code>,
        fetch_code: Option<Arc<Code>>,
        launch: Arc<Launch>,
        options: Options,
        place: usize,
    ) -> Wave {
        Wave::with_room(code, fetch_code, launch, options, place, &[])
    }

    /// Creates a wavefront like [`Wave::new`]. Also adds the rows in `room` after the registers, PV and PS. Only the
    /// fast engine uses these rows.
    pub(crate) fn with_room(
        code: Arc<Code>,
        fetch_code: Option<Arc<Code>>,
        launch: Arc<Launch>,
        options: Options,
        place: usize,
        room: &[Row<LANES>],
    ) -> Wave {
        let flow = Flow::new(flow_setup(&launch, &options));
        let rows = launch.environment.register_rows() + PREVIOUS;
        let mut registers = Guarded::new(rows + room.len(), Placement::process());
        registers[rows..].copy_from_slice(room);
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
            spaces: Spaces::new(launch.environment.scratch_dwords, launch.environment.record_dwords),
            simd: Simd::default(),
            held: Held::default(),
            exports: Targets::default(),
            emissions: Vec::new(),
            acknowledges: 0,
            statistics: Statistics::default(),
            fidelity: Executed::default(),
            launch,
        };
        wave.restart(place);
        wave
    }

    /// Reuses this wavefront for another launch of the same program. The environments of both launches must [lower
    /// alike](crate::launch::Environment::lowers_alike). After this call, the caller must [restart](Wave::restart) the
    /// wavefront. Rows after the registers do not change.
    pub(crate) fn begin(&mut self, origin: &Origin) {
        (self.launch, self.options) = (origin.launch.clone(), origin.options);
        self.flow.begin(flow_setup(&self.launch, &self.options));
        self.simd = Simd::default();
    }

    /// Turns this wavefront into the wavefront whose first lane is at position `place`. No instruction of the new
    /// wavefront has run yet. The state that all wavefronts share does not change.
    pub(crate) fn restart(&mut self, place: usize) {
        let launch = self.launch.clone();
        self.restart_with(place, &Starts::of(&launch, None), None);
    }

    /// Works like [`Wave::restart`], but takes the initial rows from `starts`, and uses code compiled for `level`.
    pub(crate) fn restart_with(&mut self, place: usize, starts: &Starts<'_>, level: Option<Level>) {
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
        let (lanes, valid) = launch.wave_lanes(place);
        (*own_place, *count, *at) = (place, lanes, At::ControlFlow);
        flow.restart(valid);
        let whole = valid == Mask::first(launch.environment.chip.wave_width.into());
        Fill { starts, registers, place: (place, lanes), whole }.at(level);
        clause.reset();
        spaces.clear();
        *held = Held::default();
        exports.clear();
        emissions.clear();
        *acknowledges = 0;
        *statistics = Statistics::default();
        *fidelity = Executed::default();
    }

    /// Returns the number of the wavefront's first lane in the whole launch.
    pub(crate) fn first_lane(&self) -> usize {
        self.launch.first_lane + self.place
    }

    /// Returns the number of the wavefront in the whole launch.
    pub(crate) fn number(&self) -> u32 {
        (self.first_lane() / usize::from(self.launch.environment.chip.wave_width)) as u32
    }

    /// Returns the identity of the wavefront. Each wavefront of a launch has a different identity.
    pub(crate) fn group_id(&self) -> GroupId {
        GroupId::Lanes { first: self.first_lane() }
    }

    /// Sets the state that all wavefronts share. `simd` is the shared state after the end of the previous wavefront.
    pub fn set_simd(&mut self, simd: Simd) {
        self.simd = simd;
    }

    /// Returns the state that all wavefronts share, including the changes of this wavefront.
    pub fn simd(&self) -> &Simd {
        &self.simd
    }

    /// Returns the state that all wavefronts share, for modification.
    pub fn simd_mut(&mut self) -> &mut Simd {
        &mut self.simd
    }

    /// Returns the flow state.
    pub fn flow(&self) -> &Flow {
        &self.flow
    }

    /// Returns the flow state for modification. Fault injection uses this function.
    pub fn flow_mut(&mut self) -> &mut Flow {
        &mut self.flow
    }

    /// Returns the lanes of the wavefront.
    pub fn lanes(&self) -> Mask {
        Mask::first(self.count)
    }

    /// Returns the predicate bits, or `None` if the next instruction is not in an ALU clause.
    pub fn predicate(&self) -> Option<Mask> {
        matches!(self.at, At::Group(_)).then_some(self.clause.predicate)
    }

    /// Changes the predicate bits. Does nothing outside an ALU clause.
    pub fn set_predicate(&mut self, lanes: Mask) {
        if let At::Group(_) = self.at {
            self.clause.predicate = lanes;
        }
    }

    /// Returns the numbers of the 32-bit words of the next control-flow instruction and of its clause. Returns `None`
    /// in a fetch program. Also returns `None` inside a clause, because the wavefront has already read the clause's
    /// words.
    pub fn next_words(&self) -> Option<Vec<usize>> {
        if self.at != At::ControlFlow || self.flow.in_fetch_program() || self.flow.done() {
            return None;
        }
        let pc = self.flow.pc();
        let clause = match &self.code.cf(pc).ok()?.op {
            CfOp::Alu(clause) => clause.slots.clone(),
            CfOp::Fetch(_, _, fetches) => match (fetches.first(), fetches.last()) {
                (Some(first), Some(last)) => first.addr..last.addr + 2,
                _ => 0..0,
            },
            CfOp::Control(..) | CfOp::Export(..) | CfOp::Memory(..) => 0..0,
        };
        Some((pc..pc + 1).chain(clause).flat_map(|word| [2 * word as usize, 2 * word as usize + 1]).collect())
    }

    /// Returns a component of a register in one lane. If the program does not have the register, the function returns
    /// `None`.
    pub fn register(&self, register: u8, chan: usize, lane: Lane) -> Option<u32> {
        let row = self.row(register.into(), chan)?;
        Some(self.registers[row].0[lane.index()])
    }

    /// Changes a component of a register in one lane. If the program does not have the register, the function returns
    /// `false`.
    pub fn set_register(&mut self, register: u8, chan: usize, lane: Lane, value: u32) -> bool {
        let row = self.row(register.into(), chan);
        let place = row.and_then(|row| self.registers[row].0.get_mut(lane.index()));
        place.map(|place| *place = value).is_some()
    }

    /// Returns the counts so far.
    pub fn statistics(&self) -> Statistics {
        self.statistics
    }

    /// Returns the fidelity of the run so far.
    pub fn fidelity(&self) -> &Executed {
        &self.fidelity
    }

    /// Returns the number of outstanding acknowledges. Writes and fetch clauses request acknowledges, and WAIT_ACK
    /// waits for these acknowledges.
    pub fn acknowledges(&self) -> u32 {
        self.acknowledges
    }

    /// Returns whether undefined behaviour traps.
    pub(crate) fn strict(&self) -> bool {
        self.options.mode == Mode::Strict
    }

    // Methods that access registers.

    fn row(&self, register: i32, chan: usize) -> Option<usize> {
        self.launch.environment.register_row(register, chan)
    }

    /// Returns the row of PV or PS.
    pub(crate) fn previous_row(&self, slot: usize) -> usize {
        self.launch.environment.register_rows() + slot
    }

    pub(crate) fn outside<T>(&mut self, register: i32, lenient: T) -> Result<T, Cause> {
        self.fidelity.rules.insert(Rule::BAD_INDEX_READS_R0);
        if self.strict() {
            return Err(Cause::Register { register, declared: self.launch.environment.num_gprs });
        }
        Ok(lenient)
    }

    /// Returns component `chan` of `register` in all lanes. If the register does not exist, returns R0
    /// ([`Rule::BAD_INDEX_READS_R0`]). `relative`: whether an index selects the register.
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

    /// Returns the row of a register component. `relative` states whether an index selects the register. If `relative`
    /// is set, the register must be allocated and must not be a clause temporary.
    pub(crate) fn row_for(&self, register: i32, chan: usize, relative: bool) -> Option<usize> {
        if relative && !(0..i32::from(self.launch.environment.num_gprs)).contains(&register) {
            return None;
        }
        self.row(register, chan)
    }

    /// Writes `values` to component `chan` of `register` in `lanes`. If the register does not exist, the write has no
    /// effect.
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

    /// Returns aL if an operand is relative, and otherwise 0.
    pub(crate) fn loop_offset(&self, relative: bool) -> Result<i32, Cause> {
        match self.flow.loop_index() {
            _ if !relative => Ok(0),
            Some(index) => Ok(index),
            None if self.strict() => Err(Cause::LoopIndex),
            None => Ok(0),
        }
    }

    /// Returns all lanes of every quad that contains one of `lanes`. Only lanes of the wavefront are in the result.
    pub(crate) fn whole_quads(&self, lanes: Mask) -> Mask {
        Mask::from_fn(self.launch.environment.chip.wave_width.into(), |lane| {
            lanes.0 >> (lane.0 & !3) & 0xf != 0
        })
    }

    // Methods that access memory.

    /// Returns a dword of a space, or 0 if the dword is outside the space.
    pub(crate) fn load(&self, space: Space, lane: Lane, dword: usize) -> u32 {
        match self.spaces.private(space) {
            Some(private) => private.read(lane, dword),
            None => self.simd.scatter.get(dword).copied().unwrap_or(0),
        }
    }

    /// Stores a dword. Returns whether the dword is inside the space. A store outside the space has no effect.
    pub(crate) fn store(&mut self, space: Space, lane: Lane, dword: usize, value: u32) -> bool {
        match self.spaces.private_mut(space) {
            Some(private) => private.write(lane, dword, value),
            None => match self.simd.scatter.get_mut(dword) {
                Some(place) => {
                    *place = value;
                    true
                }
                None => false,
            },
        }
    }

    // Methods that return the position of the wavefront in its program.

    /// Returns the running program and the current control-flow instruction. While a clause runs, the current
    /// control-flow instruction is the instruction with the clause. At any other time, the current control-flow
    /// instruction runs in the next step.
    fn op(&self) -> Option<(&Code, &CfOp)> {
        let code = if self.flow.in_fetch_program() { self.fetch_code.as_ref()? } else { &self.code };
        Some((code, &code.cf(self.flow.pc()).ok()?.op))
    }

    /// Returns the address of the next instruction.
    pub(crate) fn position(&self) -> u32 {
        let pc = self.flow.pc();
        match (self.at, self.op()) {
            (At::Group(number), Some((code, CfOp::Alu(clause)))) => code.group(clause, number).addr,
            (At::Fetch(number, _), Some((_, CfOp::Fetch(_, _, fetches)))) => fetches[number].addr,
            _ => pc,
        }
    }

    /// Adds the wavefront's position in the launch to a trap of this wavefront.
    pub(crate) fn trapped(&self, trap: Trap<Cause>) -> GroupTrap<Cause> {
        GroupTrap { group: self.group_id(), words: None, trap }
    }

    /// Returns the trap of the instruction at `pc`. `lanes` are the lanes that were active at the trap. If the stack is
    /// too small, the cause also states the stack size that the program needs.
    pub(crate) fn trap<O: Observer>(
        &self,
        pc: u32,
        lanes: Mask,
        mut cause: Cause,
        observer: &mut O,
    ) -> Trap<Cause> {
        let lanes = cause.lanes().unwrap_or(lanes);
        if O::ENABLED {
            observer.event(Event::Trap { mask: lanes });
        }
        if let Cause::Flow(FlowFault::StackOverflow { program, subentries_an_entry, .. }) = &mut cause {
            let needed = stack_needed(&self.code, self.launch.environment.start);
            *program = needed.map(|needed| needed.entries(*subentries_an_entry));
        }
        Trap { pc, lanes, cause }
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

    fn depths(&self) -> Vec<Depth> {
        self.flow.depths()
    }
}
