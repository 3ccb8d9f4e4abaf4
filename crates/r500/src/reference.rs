//! The clear interpreter: one instruction at a time, one lane at a time, to be read beside the manual.
//!
//! A [`Group`] is one thread: the lanes that share a program counter, with all their registers. A copy of it is
//! a snapshot. What lanes do together is in [`crate::flow`], what one lane computes in [`crate::lane`].

use std::sync::Arc;

use reconverge_isa::word::WordError;
use reconverge_simt::fidelity::Report;
use reconverge_simt::registers::Registers;
use reconverge_simt::{
    Event, FlowView, Issue, Lane, Machine, Mask, Mode, Observer, StackRow, Statistics, Step, Trap, Why,
};
use thiserror::Error;

use crate::ctm;
use crate::fidelity;
use crate::flow::{self, Flow, Limits, Undefined};
use crate::inst::{
    AlphaOperand, Alu, Body, CONSTANTS, Fc, RgbOperand, SAMPLERS, Source, Sources, TARGETS, TEMPORARIES, Tex,
    Violation, inline_constant,
};
use crate::lane::{self, Term};
use crate::launch::{Launch, Options, Setup, Texture};
use crate::outputs::LaneOutput;
use crate::texture::{self, Coordinates};
use crate::words::*;

/// Why a program was stopped.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum Cause {
    /// A code that has no meaning.
    #[error("not an instruction: {0}")]
    NoMeaning(WordError),
    /// A combination that the documents forbid. (Strict)
    #[error("{0}")]
    Forbidden(Violation),
    /// No instruction was loaded there.
    #[error("slot {0} holds no instruction")]
    EmptySlot(u16),
    /// US_CODE_RANGE. (Strict)
    #[error("slot {pc} lies outside the program's slots {start} to {end} (US_CODE_RANGE)")]
    OutsideRange {
        /// The slot.
        pc: u16,
        /// First slot of the window.
        start: u16,
        /// Last slot.
        end: u16,
    },
    /// Flow control left undefined. (Strict)
    #[error("{0}")]
    Flow(#[from] Undefined),
    /// The first FC instruction after the write must consume the ALU result. (Strict; CTM guide p. 35)
    #[error("JUMP_FUNC reads an ALU result that no instruction since the last FC has written")]
    StaleAluResult,
    /// CTM guide p. 23: every execution must finish on an OUT instruction. (Strict)
    #[error("the last instruction (US_CODE_ADDR.END_ADDR) is not OUT")]
    EndIsNotOut,
    /// US_PIXSIZE. (Strict)
    #[error("temp[{temp}] is not allocated: US_PIXSIZE allows up to temp[{highest}]")]
    NotAllocated {
        /// The temporary.
        temp: usize,
        /// The highest one there is.
        highest: u8,
    },
    /// A relative address outside its file. (Strict; lenient: wraps)
    #[error("{file}[{base}+aL] with aL = {al} lies outside the file")]
    RelativeAddress {
        /// `temp` or `const`.
        file: &'static str,
        /// The address in the instruction.
        base: u8,
        /// The loop register.
        al: i32,
    },
    /// aL outside any LOOP. (Strict; lenient: 0)
    #[error("aL is read outside any LOOP")]
    NoLoopRegister,
    /// A fetch from a unit that nothing is bound to.
    #[error("texture unit {0} has no texture or input bound to it")]
    NoTexture(u8),
    /// A texture instruction met something the texture cannot do.
    #[error("{0}")]
    Texture(#[from] texture::Error),
    /// A memory access of the CTM model.
    #[error("{0}")]
    Ctm(#[from] ctm::AccessError),
    /// More instructions than the watchdog allows.
    #[error("watchdog: {0} instructions and no end")]
    Watchdog(u64),
}

/// One thread: its lanes, their registers, its flow state.
#[derive(Clone)]
pub struct Group {
    setup: Arc<Setup>,
    pub(crate) options: Options,
    pub(crate) flow: Flow,
    /// Lanes that were launched.
    pub(crate) lanes: Mask,
    /// Lanes that TEXKILL removed.
    pub(crate) killed: Mask,
    /// Temporaries, `rows[register * 4 + channel][lane]`, then the output registers: [`color_row`], [`DEPTH_ROW`].
    pub(crate) rows: Registers<WIDEST>,
    /// Float constants as seen by this run.
    pub(crate) constants: Arc<Vec<[u32; 4]>>,
    /// One bit a lane for R, G, B, A.
    pub(crate) predicate: [Mask; 4],
    pub(crate) alu_result: Mask,
    /// Lanes whose ALU result was written since the last FC instruction.
    pub(crate) alu_result_valid: Mask,
    pub(crate) written: Written,
    textures: [Option<Texture>; SAMPLERS],
    pub(crate) ctm: Option<Box<ctm::Bound>>,
    pub(crate) statistics: Statistics,
    /// How often each slot was issued.
    pub(crate) issued: Vec<u64>,
}

/// Which output registers were written. Their values are rows: the last write to a channel wins. (CTM guide p. 31)
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Written {
    /// `color[target][channel]`
    pub(crate) color: [[Mask; 4]; TARGETS],
    pub(crate) depth: Mask,
}

impl Written {
    /// The lanes that wrote an output, by its number.
    pub(crate) fn output(&self, output: usize) -> Mask {
        self.color.as_flattened().get(output).copied().unwrap_or(self.depth)
    }
}

/// The lanes a row has room for.
pub(crate) const WIDEST: usize = 64;
/// The row of the depth (W) output.
pub(crate) const DEPTH_ROW: usize = color_row(TARGETS, 0);
/// Temporaries and outputs.
pub(crate) const ROWS: usize = DEPTH_ROW + 1;
/// Channels of the render targets, and depth.
pub(crate) const OUTPUTS: usize = TARGETS * 4 + 1;

/// The row of an output: the channels of render targets A to D, then depth.
pub(crate) const fn output_row(output: usize) -> usize {
    color_row(0, 0) + output
}

/// The row of a channel of a render target's output register.
pub(crate) const fn color_row(target: usize, channel: usize) -> usize {
    (TEMPORARIES + target) * 4 + channel
}

/// Results of both units for one lane, before the writes.
#[derive(Clone, Copy, Default)]
struct Results {
    rgb: [f32; 3],
    alpha: f32,
}

/// A source whose address has been worked out; the same for all lanes, since aL belongs to the thread.
#[derive(Clone, Copy)]
enum Place {
    Temp(usize),
    Value([f32; 4]),
}

impl Group {
    /// A thread at its start: lane n of the thread is lane `first_lane` + n of the launch.
    ///
    /// The launch must have passed [`Launch::check`].
    pub fn new(setup: &Arc<Setup>, launch: &Launch, first_lane: usize, lanes: Mask) -> Group {
        let options = launch.options;
        let limits = options.limits.unwrap_or(Limits::recommended(setup.fc_mode));
        let mut textures = [const { None }; SAMPLERS];
        for (unit, texture) in &launch.textures {
            textures[usize::from(*unit)] = Some(texture.clone());
        }
        let mut group = Group {
            flow: Flow::new(setup.start, lanes, lanes, setup.fc_mode, limits, options.mode)
                .with_scope(options.scope),
            setup: setup.clone(),
            options,
            lanes,
            killed: Mask::NONE,
            rows: Registers::zero(ROWS),
            constants: Arc::new(launch.constants_of(setup)),
            predicate: [Mask::NONE; 4],
            alu_result: Mask::NONE,
            alu_result_valid: Mask::NONE,
            written: Written::default(),
            textures,
            ctm: None,
            statistics: Statistics::default(),
            issued: vec![0; crate::inst::SLOTS],
        };
        group.load(launch, first_lane);
        group
    }

    /// Becomes another thread of the same launch at its start, and keeps its counts by slot. `rows` are all those that
    /// anybody may have written, inputs aside.
    pub(crate) fn restart(&mut self, launch: &Launch, first_lane: usize, lanes: Mask, rows: &[usize]) {
        self.flow.restart(self.setup.start, lanes, lanes);
        self.lanes = lanes;
        self.killed = Mask::NONE;
        self.predicate = [Mask::NONE; 4];
        self.alu_result = Mask::NONE;
        self.alu_result_valid = Mask::NONE;
        self.written = Written::default();
        self.statistics = Statistics::default();
        let width = self.options.group_width;
        rows.iter().for_each(|row| self.rows[*row][..width].fill(0));
        if lanes != Mask::first(width) {
            // What the inputs of the last, smaller thread do not cover was never written.
            for input in &launch.inputs {
                (0..4).for_each(|channel| self.rows[usize::from(input.temp) * 4 + channel].fill(0));
            }
        }
        self.load(launch, first_lane);
    }

    /// What the rasteriser has written.
    fn load(&mut self, launch: &Launch, first_lane: usize) {
        for input in &launch.inputs {
            let values = &input.values[first_lane..];
            let first_row = usize::from(input.temp) * 4;
            let rows = &mut self.rows.rows_mut()[first_row..first_row + 4];
            for lane in self.lanes.lanes() {
                for (row, bits) in rows.iter_mut().zip(values[lane.index()]) {
                    row.0[lane.index()] = bits;
                }
            }
        }
    }

    /// Binds the surfaces of the CTM model, and marks the lanes that lie outside the domain as uncovered.
    pub(crate) fn bind_ctm(&mut self, bound: ctm::Bound, covered: Mask) {
        self.ctm = Some(Box::new(bound));
        self.flow.kill(self.lanes - covered);
    }

    /// Takes the surfaces back after a run.
    pub(crate) fn take_ctm(&mut self) -> Option<ctm::Bound> {
        self.ctm.take().map(|bound| *bound)
    }

    /// Executes to the end.
    ///
    /// # Errors
    /// The first trap.
    pub fn run<O: Observer>(&mut self, observer: &mut O) -> Result<(), Trap<Cause>> {
        while self.step(observer)? == Step::Running {}
        Ok(())
    }

    /// Counts so far. A warp instruction is one instruction issued to the thread, whatever its mask.
    pub fn statistics(&self) -> Statistics {
        self.statistics
    }

    /// What was executed so far, and how exact it was.
    pub fn report(&self) -> Report {
        let mut report = Report::default();
        for (slot, times) in self.setup.slots().map(|(pc, slot)| (slot, self.issued[usize::from(pc)])) {
            if let Ok(inst) = &slot.inst {
                fidelity::count(inst, times, &mut report);
            }
        }
        report
    }

    /// The output registers of a lane.
    pub fn output(&self, lane: usize) -> LaneOutput {
        let at = Lane(lane as u8);
        let mut output = LaneOutput { killed: self.killed.has(at), ..LaneOutput::default() };
        for target in 0..TARGETS {
            for channel in 0..4 {
                output.color[target][channel] = self.rows[color_row(target, channel)][lane];
                if self.written.color[target][channel].has(at) {
                    output.written[target] |= 1 << channel;
                }
            }
        }
        output.depth = self.written.depth.has(at).then(|| self.rows[DEPTH_ROW][lane]);
        output
    }

    /// Bits of a channel (0 red to 3 alpha) of a temporary.
    pub fn temp(&self, register: u8, channel: usize, lane: Lane) -> u32 {
        self.rows[usize::from(register) * 4 + channel][lane.index()]
    }

    /// The flow state.
    pub fn flow(&self) -> &Flow {
        &self.flow
    }

    /// US_CODE_OFFSET.
    pub(crate) fn code_offset(&self) -> u16 {
        self.setup.offset
    }

    fn strict(&self) -> bool {
        self.options.mode == Mode::Strict
    }

    fn execute<O: Observer>(&mut self, pc: u16, observer: &mut O) -> Result<(), Cause> {
        let setup = self.setup.clone();
        if self.strict() && !(setup.range_start..=setup.range_end).contains(&pc) {
            return Err(Cause::OutsideRange { pc, start: setup.range_start, end: setup.range_end });
        }
        let slot = setup.slot(pc).ok_or(Cause::EmptySlot(pc))?;
        let inst = slot.inst.as_ref().map_err(|error| Cause::NoMeaning(*error))?;
        if self.strict() {
            if let Some(violation) = slot.violations.first() {
                return Err(Cause::Forbidden(*violation));
            }
            if pc == setup.end && inst.common.r#type != InstType::OUT {
                return Err(Cause::EndIsNotOut);
            }
        }
        if self.statistics.instructions >= self.options.watchdog {
            return Err(Cause::Watchdog(self.options.watchdog));
        }
        let active = self.flow.active();
        self.issued[usize::from(pc)] += 1;
        self.statistics.instructions += 1;
        self.statistics.lane_instructions += u64::from(active.count());
        if O::ENABLED {
            observer.event(Event::Issue { pc: u32::from(pc), mask: active });
        }
        match &inst.body {
            Body::Alu(alu) => self.alu(&inst.common, alu, observer)?,
            Body::Tex(tex) => self.tex(&inst.common, tex, observer)?,
            Body::Fc(fc) => self.fc(&inst.common, fc, observer)?,
        }
        if !matches!(inst.body, Body::Fc(_)) {
            self.flow.advance();
        }
        if pc == setup.end {
            self.flow.end();
        }
        Ok(())
    }

    // ---- Arithmetic: read everything, compute both units, then write. An instruction that no lane executes has no effect:
    // its addresses are not even formed.

    fn alu<O: Observer>(&mut self, common: &CmnInst, alu: &Alu, observer: &mut O) -> Result<(), Cause> {
        let active = self.flow.active();
        let writing = if common.write_inactive { self.lanes } else { active };
        if writing.is_empty() {
            return Ok(());
        }
        let (rgb_used, alpha_used) = used_sources(alu);
        let rgb = self.places(&alu.rgb_sources, rgb_used)?;
        let alpha = self.places(&alu.alpha_sources, alpha_used)?;
        let mut results = [Results::default(); 64];
        for lane in writing.lanes() {
            results[lane.index()] = self.compute(common, alu, &rgb, &alpha, lane);
        }

        let value = |lane: Lane, channel: usize| match channel {
            3 => results[lane.index()].alpha,
            _ => results[lane.index()].rgb[channel],
        };
        let enabled = [0, 1, 2, 3].map(|channel| self.predicated(common, channel));
        for channel in 0..4 {
            if !temp_mask(common, channel) {
                continue;
            }
            let (base, rel) = match channel {
                3 => (alu.alpha.addrd, alu.alpha.addrd_rel),
                _ => (alu.rgb.addrd, alu.rgb.addrd_rel),
            };
            let register = self.temp_address(base, rel)?;
            for lane in (writing & enabled[channel]).lanes() {
                self.write_temp(register, channel, lane, value(lane, channel).to_bits(), observer);
            }
        }
        match common.r#type {
            InstType::OUT if self.ctm.as_ref().is_some_and(|ctm| ctm.uncached) => {
                self.scatter(common, alu, active, &enabled, value, observer)?;
            }
            InstType::OUT => self.output_writes(common, alu, active, &enabled, value),
            _ => self.flag_writes(common, alu, active, &enabled, value),
        }
        Ok(())
    }

    /// Both units for one lane. SOP and DP take the other unit's value before its OMOD and clamp, and apply their
    /// own. (r500.md Q7)
    fn compute(
        &self,
        common: &CmnInst,
        alu: &Alu,
        rgb: &[Place; 3],
        alpha: &[Place; 3],
        lane: Lane,
    ) -> Results {
        let read = Reader { group: self, alu, rgb, alpha, lane };
        let a = |channel| read.rgb(&alu.rgb.operands[0], channel);
        let b = |channel| read.rgb(&alu.rgb.operands[1], channel);
        let c = |channel| read.rgb(&alu.rgb.operands[2], channel);
        let (alpha_a, alpha_b, alpha_c) = (
            || read.alpha(&alu.alpha.operands[0]),
            || read.alpha(&alu.alpha.operands[1]),
            || read.alpha(&alu.alpha.operands[2]),
        );
        let zero_wins = self.setup.zero_wins;
        let product = |x: f32, y: f32| Term::product(x, y, zero_wins);

        let transcendental = match alu.alpha.op {
            AlphaOp::EX2 => Some(lane::ex2(alpha_a())),
            AlphaOp::LN2 => Some(lane::ln2(alpha_a())),
            AlphaOp::RCP => Some(lane::rcp(alpha_a())),
            AlphaOp::RSQ => Some(lane::rsq(alpha_a())),
            AlphaOp::SIN => Some(lane::sin(alpha_a())),
            AlphaOp::COS => Some(lane::cos(alpha_a())),
            _ => None,
        };
        let dot = |omod| match alu.rgb.op {
            RgbOp::DP3 => {
                Some(lane::dot(&[product(a(0), b(0)), product(a(1), b(1)), product(a(2), b(2))], omod))
            }
            // The fourth product is the alpha unit's, whatever the alpha opcode is. (CTM guide p. 27)
            RgbOp::DP4 => {
                let fourth = product(alpha_a(), alpha_b());
                Some(lane::dot(
                    &[product(a(0), b(0)), product(a(1), b(1)), product(a(2), b(2)), fourth],
                    omod,
                ))
            }
            RgbOp::D2A => {
                Some(lane::dot(&[product(a(0), b(0)), product(a(1), b(1)), Term::value(c(2))], omod))
            }
            _ => None,
        };

        let omod = alu.alpha.omod;
        let alpha_result = match alu.alpha.op {
            AlphaOp::MAD => lane::sum(&[product(alpha_a(), alpha_b()), Term::value(alpha_c())], omod),
            AlphaOp::MIN => lane::scaled(lane::min(alpha_a(), alpha_b()), omod),
            AlphaOp::MAX => lane::scaled(lane::max(alpha_a(), alpha_b()), omod),
            AlphaOp::CND => lane::scaled(lane::cnd(alpha_a(), alpha_b(), alpha_c()), omod),
            AlphaOp::CMP => lane::scaled(lane::cmp(alpha_a(), alpha_b(), alpha_c()), omod),
            AlphaOp::FRC => lane::frc(alpha_a(), omod),
            AlphaOp::MDH | AlphaOp::MDV => {
                let (near, far) = read.neighbours(alu.alpha.op == AlphaOp::MDH, 3);
                let near = lane::modify(near, alu.alpha.operands[0].modifier);
                let far = lane::modify(far, alu.alpha.operands[2].modifier);
                lane::sum(&[product(near, alpha_b()), Term::value(far)], omod)
            }
            // Lenient reading of a DP without a dot product: the RGB unit's red value.
            AlphaOp::DP => dot(omod).unwrap_or_else(|| lane::scaled(a(0), omod)),
            AlphaOp::EX2 | AlphaOp::LN2 | AlphaOp::RCP | AlphaOp::RSQ | AlphaOp::SIN | AlphaOp::COS => {
                lane::scaled(transcendental.unwrap_or_default(), omod)
            }
        };

        let omod = alu.rgb.omod;
        let each = |channel: usize| match alu.rgb.op {
            RgbOp::MAD => lane::sum(&[product(a(channel), b(channel)), Term::value(c(channel))], omod),
            RgbOp::MIN => lane::scaled(lane::min(a(channel), b(channel)), omod),
            RgbOp::MAX => lane::scaled(lane::max(a(channel), b(channel)), omod),
            RgbOp::CND => lane::scaled(lane::cnd(a(channel), b(channel), c(channel)), omod),
            RgbOp::CMP => lane::scaled(lane::cmp(a(channel), b(channel), c(channel)), omod),
            RgbOp::FRC => lane::frc(a(channel), omod),
            RgbOp::MDH | RgbOp::MDV => {
                let (near, far) = read.neighbours(alu.rgb.op == RgbOp::MDH, channel);
                let near = lane::modify(near, alu.rgb.operands[0].modifier);
                let far = lane::modify(far, alu.rgb.operands[2].modifier);
                lane::sum(&[product(near, b(channel)), Term::value(far)], omod)
            }
            // Lenient reading of an SOP without a transcendental: the alpha unit's operand A.
            RgbOp::SOP => lane::scaled(transcendental.unwrap_or_else(alpha_a), omod),
            RgbOp::DP3 | RgbOp::DP4 | RgbOp::D2A => 0.0,
        };
        let rgb_result = match dot(omod) {
            Some(value) => [value; 3],
            None => [each(0), each(1), each(2)],
        };

        // Clamp is not applied where OMOD is disabled, even if its bit is set. (CTM guide p. 29)
        let clamp = |x, clamp: bool, omod| if clamp && omod != Omod::DISABLED { lane::clamp(x) } else { x };
        Results {
            rgb: rgb_result.map(|x| clamp(x, common.rgb_clamp, alu.rgb.omod)),
            alpha: clamp(alpha_result, common.alpha_clamp, alu.alpha.omod),
        }
    }

    /// Predicate bits and the ALU result, of active lanes. (r500.md 3.6, 3.7)
    fn flag_writes(
        &mut self,
        common: &CmnInst,
        alu: &Alu,
        active: Mask,
        enabled: &[Mask; 4],
        value: impl Fn(Lane, usize) -> f32,
    ) {
        for channel in (0..4).filter(|channel| output_mask(common, *channel)) {
            let target = if channel == 3 { alu.alpha.target } else { alu.rgb.target };
            for lane in (active & enabled[channel]).lanes() {
                self.predicate[channel].set(lane, lane::predicate(value(lane, channel), target));
            }
        }
        if alu.alu_wmask {
            let channel = match common.alu_result_sel {
                AluResultSel::RED => 0,
                AluResultSel::ALPHA => 3,
            };
            let lanes = active & enabled[channel];
            for lane in lanes.lanes() {
                self.alu_result.set(lane, lane::compare(value(lane, channel), common.alu_result_op));
            }
            self.alu_result_valid |= lanes;
        }
    }

    /// Cached outputs. (CTM guide p. 31)
    fn output_writes(
        &mut self,
        common: &CmnInst,
        alu: &Alu,
        active: Mask,
        enabled: &[Mask; 4],
        value: impl Fn(Lane, usize) -> f32,
    ) {
        for channel in (0..4).filter(|channel| output_mask(common, *channel)) {
            let target = if channel == 3 { alu.alpha.target } else { alu.rgb.target } as usize;
            let lanes = active & enabled[channel];
            for lane in lanes.lanes() {
                self.rows[color_row(target, channel)][lane.index()] = value(lane, channel).to_bits();
            }
            self.written.color[target][channel] |= lanes;
        }
        if alu.w_omask {
            let lanes = active & enabled[3];
            for lane in lanes.lanes() {
                self.rows[DEPTH_ROW][lane.index()] = value(lane, 3).to_bits();
            }
            self.written.depth |= lanes;
        }
    }

    /// Uncached output: R is the value, G and B the position, all four channels or none; at once, ascending
    /// lanes, the last one wins. (CTM guide p. 31; order: recommended)
    fn scatter<O: Observer>(
        &mut self,
        common: &CmnInst,
        alu: &Alu,
        active: Mask,
        enabled: &[Mask; 4],
        value: impl Fn(Lane, usize) -> f32,
        observer: &mut O,
    ) -> Result<(), Cause> {
        let masks = [0, 1, 2, 3].map(|channel| output_mask(common, channel));
        if masks == [false; 4] || active.is_empty() {
            return Ok(());
        }
        if masks != [true; 4] && self.strict() {
            return Err(ctm::AccessError::PartialScatter.into());
        }
        let lanes = active & self.flow.covered() & enabled[0] & enabled[1] & enabled[2] & enabled[3];
        let variant = ctm::Scatter::from_target(alu.rgb.target);
        let strict = self.strict();
        let Some(ctm) = &mut self.ctm else { return Ok(()) };
        let mut shared = None;
        for lane in lanes.lanes() {
            let at = (value(lane, 1), value(lane, 2));
            if variant.same_index && *shared.get_or_insert(at) != at && strict {
                return Err(ctm::AccessError::IndexDiffers.into());
            }
            if strict && value(lane, 3) != 0.0 {
                return Err(ctm::AccessError::ScatterAlpha.into());
            }
            let bits = value(lane, 0).to_bits();
            let address = ctm.scatter(at, bits)?;
            if O::DATA {
                observer.event(Event::Store { lane, address, value: bits });
            }
        }
        Ok(())
    }

    // ---- Texture. r500.md 4

    fn tex<O: Observer>(&mut self, common: &CmnInst, tex: &Tex, observer: &mut O) -> Result<(), Cause> {
        let active = self.flow.active();
        let writing = if common.write_inactive { self.lanes } else { active };
        let enabled = [0, 1, 2, 3].map(|channel| self.predicated(common, channel));
        match tex.inst.inst {
            TexOp::NOP => return Ok(()),
            TexOp::TEXKILL if active.is_empty() => return Ok(()),
            TexOp::TEXKILL => {
                let source = self.temp_address(tex.addr.src_addr, tex.addr.src_addr_rel)?;
                let swizzle = source_swizzle(&tex.addr);
                for lane in active.lanes() {
                    let negative = |channel: usize| {
                        enabled[channel].has(lane)
                            && lane::texkill(self.temp_value(source, swizzle[channel] as usize, lane))
                    };
                    if (0..4).any(negative) {
                        self.killed.set(lane, true);
                    }
                }
                self.flow.kill(self.killed);
                return Ok(());
            }
            TexOp::LD | TexOp::PROJ | TexOp::LODBIAS | TexOp::LOD | TexOp::DXDY => {}
        }
        if writing.is_empty() {
            return Ok(());
        }
        let fetching = if tex.inst.ignore_uncovered { writing & self.flow.covered() } else { writing };
        let source = self.temp_address(tex.addr.src_addr, tex.addr.src_addr_rel)?;
        let swizzle = source_swizzle(&tex.addr);
        let coordinates = |lane: Lane| swizzle.map(|channel| self.temp_value(source, channel as usize, lane));
        let (dx, dy) = match tex.inst.inst {
            TexOp::DXDY => {
                let word = &tex.dxdy;
                let dx = self.temp_address(word.dx_addr, word.dx_addr_rel)?;
                let dy = self.temp_address(word.dy_addr, word.dy_addr_rel)?;
                let dx_swizzle = [word.dx_s_swiz, word.dx_t_swiz, word.dx_r_swiz, word.dx_q_swiz];
                let dy_swizzle = [word.dy_s_swiz, word.dy_t_swiz, word.dy_r_swiz, word.dy_q_swiz];
                (Some((dx, dx_swizzle)), Some((dy, dy_swizzle)))
            }
            _ => (None, None),
        };
        let derivative = |place: Option<(usize, [TexSwiz; 4])>, lane: Lane| {
            place.map(|(register, swizzle)| {
                swizzle.map(|channel| self.temp_value(register, channel as usize, lane))
            })
        };

        let mut fetched = [[0u32; 4]; 64];
        let unit = tex.inst.tex_id;
        for lane in fetching.lanes() {
            let position = coordinates(lane);
            fetched[lane.index()] = if let Some(ctm) = self.ctm.as_ref().filter(|ctm| ctm.has_input(unit)) {
                match ctm.fetch(unit, position, tex.inst.inst, tex.inst.unscaled) {
                    // A helper lane at the edge of a domain fetches beyond it, and nobody uses the value.
                    Err(ctm::AccessError::Outside { .. }) if !self.flow.covered().has(lane) => [0; 4],
                    value => value?,
                }
            } else {
                let bound = self.textures[usize::from(unit)].as_ref().ok_or(Cause::NoTexture(unit))?;
                let first = lane.0 & !3;
                let quad = [0, 1, 2, 3].map(|n| coordinates(Lane(first + n)));
                let at = Coordinates {
                    position,
                    quad,
                    dx: derivative(dx, lane),
                    dy: derivative(dy, lane),
                    unscaled: tex.inst.unscaled,
                };
                texture::fetch(bound, tex.inst.inst, &at)?
            };
        }

        let destination = self.temp_address(tex.addr.dst_addr, tex.addr.dst_addr_rel)?;
        let result = [tex.addr.dst_r_swiz, tex.addr.dst_g_swiz, tex.addr.dst_b_swiz, tex.addr.dst_a_swiz];
        for channel in (0..4).filter(|channel| temp_mask(common, *channel)) {
            for lane in (fetching & enabled[channel]).lanes() {
                let bits = fetched[lane.index()][result[channel] as usize];
                self.write_temp(destination, channel, lane, bits, observer);
            }
        }
        Ok(())
    }

    // ---- Flow control. r500.md 5.4

    fn fc<O: Observer>(&mut self, common: &CmnInst, fc: &Fc, observer: &mut O) -> Result<(), Cause> {
        // One predicate only; RGBA is forbidden and read as red in lenient mode.
        let predicate = self.predicated(common, 0);
        let active = self.flow.active();
        if self.strict()
            && flow::reads_alu_result(fc.inst.jump_func)
            && (active - self.alu_result_valid).any()
        {
            return Err(Cause::StaleAluResult);
        }
        let boolean = self.setup.bools >> fc.addr.bool_addr & 1 != 0;
        let want = flow::wants(fc.inst.jump_func, self.alu_result, predicate, boolean);
        let constant = self.setup.ints[usize::from(fc.addr.int_addr)];
        let decision =
            self.flow.execute_observed(&fc.inst, &fc.addr, want, constant, self.setup.offset, observer)?;
        // Every FC instruction destroys the ALU result. (CTM guide p. 35; cleared: recommended)
        self.alu_result = Mask::NONE;
        self.alu_result_valid = Mask::NONE;
        self.statistics.divergent_branches += u64::from(decision.diverged());
        Ok(())
    }

    // ---- Registers

    /// Lanes whose predicate lets `channel` be written. NONE is true whatever the inversion. (r500.md 2.1, Q4)
    fn predicated(&self, common: &CmnInst, channel: usize) -> Mask {
        let (select, inverted) = match channel {
            3 => (common.alpha_pred_sel, common.alpha_pred_inv),
            _ => (common.rgb_pred_sel, common.rgb_pred_inv),
        };
        let bits = match select {
            PredSel::NONE => return Mask(u64::MAX),
            PredSel::RGBA => self.predicate[channel],
            PredSel::RRRR => self.predicate[0],
            PredSel::GGGG => self.predicate[1],
            PredSel::BBBB => self.predicate[2],
            PredSel::AAAA => self.predicate[3],
        };
        if inverted { !bits } else { bits }
    }

    fn places(&self, sources: &Sources, used: [bool; 3]) -> Result<[Place; 3], Cause> {
        let mut places = [Place::Value([0.0; 4]); 3];
        for ((place, source), used) in places.iter_mut().zip(sources.src).zip(used) {
            if used {
                *place = match source {
                    Source::Temp { addr, rel } => Place::Temp(self.temp_address(addr, rel)?),
                    Source::Const { addr, rel } => {
                        let number = self.relative("const", addr, rel, CONSTANTS)?;
                        Place::Value(self.constants[number].map(f32::from_bits))
                    }
                    Source::Inline { code } => Place::Value([inline_constant(code); 4]),
                };
            }
        }
        Ok(places)
    }

    fn temp_address(&self, base: u8, rel: bool) -> Result<usize, Cause> {
        let temp = self.relative("temp", base, rel, TEMPORARIES)?;
        if self.strict() && temp > usize::from(self.setup.pix_size) {
            return Err(Cause::NotAllocated { temp, highest: self.setup.pix_size });
        }
        Ok(temp)
    }

    /// `base`, plus aL when `rel`. Outside the file: wraps in lenient mode. (r500.md Q6)
    fn relative(&self, file: &'static str, base: u8, rel: bool, size: usize) -> Result<usize, Cause> {
        if !rel {
            return Ok(usize::from(base));
        }
        if self.strict() && !self.flow.has_al() {
            return Err(Cause::NoLoopRegister);
        }
        let al = self.flow.al();
        let address = i64::from(base) + i64::from(al);
        if self.strict() && !(0..size as i64).contains(&address) {
            return Err(Cause::RelativeAddress { file, base, al });
        }
        Ok(address.rem_euclid(size as i64) as usize)
    }

    fn temp_value(&self, register: usize, channel: usize, lane: Lane) -> f32 {
        f32::from_bits(self.rows[register * 4 + channel][lane.index()])
    }

    fn write_temp<O: Observer>(
        &mut self,
        register: usize,
        channel: usize,
        lane: Lane,
        bits: u32,
        observer: &mut O,
    ) {
        let index = register * 4 + channel;
        self.rows[index][lane.index()] = bits;
        if O::DATA {
            observer.event(Event::Write { lane, register: index as u32, value: bits });
        }
    }
}

/// Reads operands of one lane. (r500.md 2.3)
struct Reader<'a> {
    group: &'a Group,
    alu: &'a Alu,
    rgb: &'a [Place; 3],
    alpha: &'a [Place; 3],
    lane: Lane,
}

impl Reader<'_> {
    /// Fetch, presubtract, select, swizzle, modify: one channel of an operand of the RGB unit.
    fn rgb(&self, operand: &RgbOperand, channel: usize) -> f32 {
        lane::modify(self.channel(operand.sel, operand.swiz[channel]), operand.modifier)
    }

    /// An operand of the alpha unit.
    fn alpha(&self, operand: &AlphaOperand) -> f32 {
        lane::modify(self.channel(operand.sel, operand.swiz), operand.modifier)
    }

    /// R, G and B come from the RGB address word, A from the alpha address word, whichever unit asks. (CTM p. 27)
    fn channel(&self, sel: Sel, swiz: Swiz) -> f32 {
        match swiz {
            Swiz::R => self.component(sel, 0, self.lane),
            Swiz::G => self.component(sel, 1, self.lane),
            Swiz::B => self.component(sel, 2, self.lane),
            Swiz::A => self.component(sel, 3, self.lane),
            Swiz::ZERO => 0.0,
            Swiz::HALF => 0.5,
            Swiz::ONE => 1.0,
        }
    }

    fn component(&self, sel: Sel, channel: usize, lane: Lane) -> f32 {
        let (places, srcp_op) = match channel {
            3 => (self.alpha, self.alu.alpha_sources.srcp_op),
            _ => (self.rgb, self.alu.rgb_sources.srcp_op),
        };
        let fetch = |place: Place| match place {
            Place::Temp(register) => self.group.temp_value(register, channel, lane),
            Place::Value(value) => value[channel],
        };
        match sel {
            Sel::SRC0 => fetch(places[0]),
            Sel::SRC1 => fetch(places[1]),
            Sel::SRC2 => fetch(places[2]),
            Sel::SRCP => lane::presubtract(srcp_op, fetch(places[0]), fetch(places[1])),
        }
    }

    /// src0 of the quad's top-left lane and of its neighbour to the right (`horizontal`) or below, channel for
    /// channel and whether or not those lanes are active. (REG, MDH and MDV)
    fn neighbours(&self, horizontal: bool, channel: usize) -> (f32, f32) {
        let first = self.lane.0 & !3;
        let second = first + if horizontal { 1 } else { 2 };
        let at = |lane| self.component(Sel::SRC0, channel, Lane(lane));
        (at(first), at(second))
    }
}

/// Whether a channel of the destination temporary is written.
pub(crate) fn temp_mask(common: &CmnInst, channel: usize) -> bool {
    if channel == 3 { common.alpha_wmask } else { common.rgb_wmask >> channel & 1 != 0 }
}

/// Whether a channel of the output, or its predicate bit, is written.
pub(crate) fn output_mask(common: &CmnInst, channel: usize) -> bool {
    if channel == 3 { common.alpha_omask } else { common.rgb_omask >> channel & 1 != 0 }
}

fn source_swizzle(addr: &TexAddr) -> [TexSwiz; 4] {
    [addr.src_s_swiz, addr.src_t_swiz, addr.src_r_swiz, addr.src_q_swiz]
}

/// Which of src0 to src2 an instruction reads, in the RGB and in the alpha address word: only those can trap.
pub(crate) fn used_sources(alu: &Alu) -> ([bool; 3], [bool; 3]) {
    let mut used = [[false; 3]; 2];
    let mut mark = |sel: Sel, swiz: Swiz| {
        let (word, srcp_op) = match swiz {
            Swiz::R | Swiz::G | Swiz::B => (0, alu.rgb_sources.srcp_op),
            Swiz::A => (1, alu.alpha_sources.srcp_op),
            Swiz::ZERO | Swiz::HALF | Swiz::ONE => return,
        };
        match sel {
            Sel::SRC0 => used[word][0] = true,
            Sel::SRC1 => used[word][1] = true,
            Sel::SRC2 => used[word][2] = true,
            Sel::SRCP => {
                used[word][0] = true;
                used[word][1] |= matches!(srcp_op, SrcpOp::SUB | SrcpOp::ADD);
            }
        }
    };
    let rgb = &alu.rgb.operands;
    let mut mark_rgb = |operand: &RgbOperand, channels: std::ops::Range<usize>| {
        operand.swiz[channels].iter().for_each(|swiz| mark(operand.sel, *swiz));
    };
    match alu.rgb.op {
        RgbOp::MDH | RgbOp::MDV => {
            mark_rgb(&rgb[1], 0..3);
            mark(Sel::SRC0, Swiz::R);
        }
        RgbOp::D2A => {
            rgb[..2].iter().for_each(|operand| mark_rgb(operand, 0..2));
            mark_rgb(&rgb[2], 2..3);
        }
        op => rgb[..op.operands()].iter().for_each(|operand| mark_rgb(operand, 0..3)),
    }
    let alpha = &alu.alpha.operands;
    let reads = match alu.alpha.op {
        AlphaOp::MDH | AlphaOp::MDV => {
            mark(Sel::SRC0, Swiz::A);
            &alpha[1..2]
        }
        op => &alpha[..op.operands()],
    };
    reads.iter().for_each(|operand| mark(operand.sel, operand.swiz));
    if alu.rgb.op == RgbOp::DP4 {
        alpha[..2].iter().for_each(|operand| mark(operand.sel, operand.swiz));
    }
    (used[0], used[1])
}

impl FlowView for Group {
    fn issue(&self) -> Option<Issue> {
        self.flow.issue()
    }

    fn why(&self, lane: Lane) -> Why {
        self.flow.why(lane)
    }

    fn stack(&self) -> Vec<StackRow> {
        self.flow.stack()
    }
}

impl Machine for Group {
    type Cause = Cause;

    fn step<O: Observer>(&mut self, observer: &mut O) -> Result<Step, Trap<Cause>> {
        let Some(Issue { mask, .. }) = self.flow.issue() else { return Ok(Step::Done) };
        let pc = self.flow.pc();
        if let Err(cause) = self.execute(pc, observer) {
            if O::ENABLED {
                observer.event(Event::Trap { mask });
            }
            return Err(Trap { pc: u32::from(pc), lanes: mask, cause });
        }
        Ok(if self.flow.issue().is_some() { Step::Running } else { Step::Done })
    }
}
