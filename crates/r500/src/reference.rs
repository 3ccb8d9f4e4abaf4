//! The reference interpreter. The interpreter executes one instruction at a time, for one lane after another. Read this
//! file alongside the manual.
//!
//! [`crate::flow`] executes flow control. [`mod@crate::lane`] defines the arithmetic of one lane. [`crate::operations`]
//! names the function of each operation.

use reconverge_simt::{
    Event, FlowView, Issue, Lane, Machine, Mask, Mode, Observer, Step, Trap, announced, stop,
};

use crate::cause::{AccessError, Cause};
use crate::flow::Step as FlowStep;
use crate::group::{DEPTH_ROW, Group, after_fc, color_row};
use crate::inst::{Alu, Body, CONSTANTS, Source, Sources, TEMPORARIES, Tex, TexRegister, inline_constant};
use crate::lane::{self, Term};
use crate::memory::Scatter;
use crate::operations::{Dot, Operation, Value, used_sources};
use crate::texture::{self, Coordinates};
use crate::words::*;

/// Results of the RGB unit and the alpha unit for one lane. The instruction has not written the results yet.
#[derive(Clone, Copy, Default)]
struct Results {
    rgb: [f32; 3],
    alpha: f32,
}

/// A source whose address has been computed. The address is the same for all lanes, because aL belongs to the group.
#[derive(Clone, Copy)]
enum SourceValue {
    Temp(usize),
    Value([f32; 4]),
}

/// The results of an arithmetic instruction. The function `value` returns the result for a lane and a channel.
struct Computed<'a, V> {
    common: &'a CmnInst,
    alu: &'a Alu,
    active: Mask,
    /// For each channel, the lanes whose predicate enables the channel.
    enabled: [Mask; 4],
    value: V,
}

impl Group {
    /// Executes instructions to the end of the program, or until a [stop] is requested.
    ///
    /// # Errors
    /// Returns an error if an instruction traps.
    pub fn run<O: Observer>(&mut self, observer: &mut O) -> Result<(), Trap<Cause>> {
        while !stop::asked() && self.step(observer)? == Step::Running {}
        Ok(())
    }

    fn strict(&self) -> bool {
        self.mode == Mode::Strict
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
        if self.statistics.instructions >= self.watchdog {
            return Err(Cause::Watchdog(self.watchdog));
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
            Body::Fc(_) => self.fc(slot.step.as_ref().expect("it is prepared"), observer)?,
        }
        if !matches!(inst.body, Body::Fc(_)) {
            self.flow.advance();
        }
        if pc == setup.end {
            self.flow.end();
        }
        Ok(())
    }

    // ---- Arithmetic. An instruction reads all operands, then computes the values of both units, and then writes. If
    // no lane executes the instruction, the interpreter does not compute the addresses of operands.

    fn alu<O: Observer>(&mut self, common: &CmnInst, alu: &Alu, observer: &mut O) -> Result<(), Cause> {
        let active = self.flow.active();
        let writing = if common.write_inactive { self.lanes } else { active };
        if writing.is_empty() {
            return Ok(());
        }
        let [rgb_used, alpha_used] = used_sources(alu);
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
        let computed = Computed { common, alu, active, enabled, value };
        for channel in 0..4 {
            if !common.writes_temp(channel) {
                continue;
            }
            let (base, rel) = alu.destination(channel);
            let register = self.temp_address(base, rel)?;
            for lane in (writing & enabled[channel]).lanes() {
                self.write_temp(register, channel, lane, value(lane, channel).to_bits(), observer);
            }
        }
        match common.r#type {
            InstType::OUT if self.memory.as_ref().is_some_and(|memory| memory.uncached) => {
                self.scatter(&computed, observer)?;
            }
            InstType::OUT => self.output_writes(&computed),
            _ => self.flag_writes(&computed),
        }
        Ok(())
    }

    /// Computes the values of both units for one lane. A unit with the operation SOP or DP takes the value of the other
    /// unit. The other unit has not scaled and clamped this value. The unit with SOP or DP then scales the value by
    /// OMOD and clamps the result. (docs/r500.md, Q7)
    fn compute(
        &self,
        common: &CmnInst,
        alu: &Alu,
        rgb: &[SourceValue; 3],
        alpha: &[SourceValue; 3],
        lane: Lane,
    ) -> Results {
        let read = Reader { group: self, alu, rgb, alpha, lane };
        let of_rgb = |number: usize, channel: usize| read.operand(channel, number);
        let of_alpha = |number: usize| read.operand(3, number);
        let product = |x: f32, y: f32| Term::product(x, y, self.setup.zero_wins);
        let (rgb_op, alpha_op) = (alu.rgb.op.operation(), alu.alpha.op.operation());
        // Returns a unit's value for a channel. The function `operand` returns A, B or C. The function `quad` returns
        // src0 of another lane of the quad.
        let value = |op: &Operation,
                     omod,
                     operand: &dyn Fn(usize) -> f32,
                     quad: &dyn Fn(usize, u8) -> f32| {
            match op.value {
                Value::Sum => lane::sum(&[product(operand(0), operand(1)), Term::value(operand(2))], omod),
                Value::Derivative(neighbour) => {
                    lane::sum(&[product(quad(0, 0), operand(1)), Term::value(quad(2, neighbour))], omod)
                }
                Value::Choice(choose, _) => lane::scaled(choose(operand(0), operand(1), operand(2)), omod),
                Value::Rounded(function, _) => function(operand(0), omod),
                Value::Transcendental(function, _) => lane::scaled(function(operand(0)), omod),
                // The code after this closure computes dot products and forwarded values.
                Value::Dot(_) | Value::Forwarded => 0.0,
            }
        };
        let dot = |omod| {
            let term = |channel| product(of_rgb(0, channel), of_rgb(1, channel));
            match rgb_op.value {
                Value::Dot(Dot::Three) => Some(lane::dot(&[term(0), term(1), term(2)], omod)),
                Value::Dot(Dot::Four) => {
                    let fourth = product(of_alpha(0), of_alpha(1));
                    Some(lane::dot(&[term(0), term(1), term(2), fourth], omod))
                }
                Value::Dot(Dot::TwoAndAddend) => {
                    Some(lane::dot(&[term(0), term(1), Term::value(of_rgb(2, 2))], omod))
                }
                _ => None,
            }
        };

        let omod = alu.alpha.omod;
        let alpha_result = match alpha_op.value {
            // The RGB unit has no dot product. In lenient mode, DP returns the red channel of the RGB unit's operand A.
            Value::Forwarded => dot(omod).unwrap_or_else(|| lane::scaled(of_rgb(0, 0), omod)),
            _ => value(alpha_op, omod, &of_alpha, &|number, of_quad| read.of_quad(of_quad, 3, number)),
        };
        let omod = alu.rgb.omod;
        let rgb_result = match rgb_op.value {
            // In lenient mode, an SOP without a transcendental function returns operand A of the alpha unit.
            Value::Forwarded => {
                let a = of_alpha(0);
                let value = match alpha_op.value {
                    Value::Transcendental(function, _) => function(a),
                    _ => a,
                };
                [lane::scaled(value, omod); 3]
            }
            Value::Dot(_) => [dot(omod).unwrap_or_default(); 3],
            _ => [0, 1, 2].map(|channel| {
                value(rgb_op, omod, &|number| of_rgb(number, channel), &|number, of_quad| {
                    read.of_quad(of_quad, channel, number)
                })
            }),
        };

        // Disabled OMOD also disables clamping, even if the clamp bit is set. (CTM guide p. 29)
        let clamp = |x, clamp: bool, omod| if clamp && omod != Omod::DISABLED { lane::clamp(x) } else { x };
        Results {
            rgb: rgb_result.map(|x| clamp(x, common.rgb_clamp, alu.rgb.omod)),
            alpha: clamp(alpha_result, common.alpha_clamp, alu.alpha.omod),
        }
    }

    /// Writes the predicate bits and the ALU result of active lanes. (r500.md 3.6, 3.7)
    fn flag_writes(&mut self, computed: &Computed<'_, impl Fn(Lane, usize) -> f32>) {
        let Computed { common, alu, active, enabled, value } = computed;
        for channel in (0..4).filter(|channel| common.writes_output(*channel)) {
            let target = alu.target(channel);
            for lane in (*active & enabled[channel]).lanes() {
                match lane::predicate(value(lane, channel), target) {
                    true => self.predicate[channel].insert(lane),
                    false => self.predicate[channel].remove(lane),
                }
            }
        }
        if alu.alu_wmask {
            let channel = common.alu_result_channel();
            let lanes = *active & enabled[channel];
            for lane in lanes.lanes() {
                match lane::compare(value(lane, channel), common.alu_result_op) {
                    true => self.alu_result.insert(lane),
                    false => self.alu_result.remove(lane),
                }
            }
            self.alu_result_valid |= lanes;
        }
    }

    /// Writes cached outputs. (CTM guide p. 31)
    fn output_writes(&mut self, computed: &Computed<'_, impl Fn(Lane, usize) -> f32>) {
        let Computed { common, alu, active, enabled, value } = computed;
        for channel in (0..4).filter(|channel| common.writes_output(*channel)) {
            let target = alu.target(channel) as usize;
            let lanes = *active & enabled[channel];
            for lane in lanes.lanes() {
                self.rows[color_row(target, channel)][lane.index()] = value(lane, channel).to_bits();
            }
            self.written.color[target][channel] |= lanes;
        }
        if alu.w_omask {
            let lanes = *active & enabled[3];
            for lane in lanes.lanes() {
                self.rows[DEPTH_ROW][lane.index()] = value(lane, 3).to_bits();
            }
            self.written.depth |= lanes;
        }
    }

    /// Writes an uncached output to memory immediately. Red is the value, and green and blue are the position. The
    /// instruction must write all four channels or none. Lanes write in ascending order, so the value of the last lane
    /// remains in memory. (CTM guide p. 31; the order is recommended)
    fn scatter<O: Observer>(
        &mut self,
        computed: &Computed<'_, impl Fn(Lane, usize) -> f32>,
        observer: &mut O,
    ) -> Result<(), Cause> {
        let Computed { common, alu, active, enabled, value } = computed;
        let masks = [0, 1, 2, 3].map(|channel| common.writes_output(channel));
        if masks == [false; 4] || active.is_empty() {
            return Ok(());
        }
        if masks != [true; 4] && self.strict() {
            return Err(AccessError::PartialScatter.into());
        }
        let lanes = *active & self.flow.covered() & enabled[0] & enabled[1] & enabled[2] & enabled[3];
        let variant = Scatter::from_target(alu.rgb.target);
        let strict = self.strict();
        let Some(memory) = &mut self.memory else { return Ok(()) };
        let mut shared = None;
        for lane in lanes.lanes() {
            let at = (value(lane, 1), value(lane, 2));
            if variant.same_index && *shared.get_or_insert(at) != at && strict {
                return Err(AccessError::IndexDiffers.into());
            }
            if strict && value(lane, 3) != 0.0 {
                return Err(AccessError::ScatterAlpha.into());
            }
            let bits = value(lane, 0).to_bits();
            let address = memory.scatter(at, bits)?;
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
                let TexRegister { temp, rel, swizzle } = tex.src();
                let source = self.temp_address(temp, rel)?;
                for lane in active.lanes() {
                    let negative = |channel: usize| {
                        enabled[channel].has(lane)
                            && lane::texkill(self.temp_value(source, swizzle[channel] as usize, lane))
                    };
                    if (0..4).any(negative) {
                        self.killed.insert(lane);
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
        let place = |it: TexRegister| Ok::<_, Cause>((self.temp_address(it.temp, it.rel)?, it.swizzle));
        let vector = |(register, swizzle): (usize, [TexSwiz; 4]), lane: Lane| {
            swizzle.map(|channel| self.temp_value(register, channel as usize, lane))
        };
        let source = place(tex.src())?;
        let coordinates = |lane: Lane| vector(source, lane);
        let [dx, dy] = match tex.inst.inst {
            TexOp::DXDY => {
                let [dx, dy] = tex.derivatives();
                [Some(place(dx)?), Some(place(dy)?)]
            }
            _ => [None; 2],
        };

        let mut fetched = [[0u32; 4]; 64];
        let unit = tex.inst.tex_id;
        for lane in fetching.lanes() {
            let position = coordinates(lane);
            fetched[lane.index()] =
                if let Some(memory) = self.memory.as_ref().filter(|memory| memory.has_input(unit)) {
                    match memory.fetch(unit, position, tex.inst.inst, tex.inst.unscaled) {
                        // A helper lane at the edge of a domain may fetch outside the surface, because no result
                        // depends on this fetch.
                        Err(AccessError::Outside { .. }) if !self.flow.covered().has(lane) => [0; 4],
                        value => value?,
                    }
                } else {
                    let bound = self.textures[usize::from(unit)].as_ref().ok_or(Cause::NoTexture(unit))?;
                    let first = lane.0 & !3;
                    let quad = [0, 1, 2, 3].map(|n| coordinates(Lane(first + n)));
                    let at = Coordinates {
                        position,
                        quad,
                        dx: dx.map(|dx| vector(dx, lane)),
                        dy: dy.map(|dy| vector(dy, lane)),
                        unscaled: tex.inst.unscaled,
                    };
                    texture::fetch(bound, tex.inst.inst, &at)?
                };
        }

        let (destination, result) = place(tex.dst())?;
        for channel in (0..4).filter(|channel| common.writes_temp(*channel)) {
            for lane in (fetching & enabled[channel]).lanes() {
                let bits = fetched[lane.index()][result[channel] as usize];
                self.write_temp(destination, channel, lane, bits, observer);
            }
        }
        Ok(())
    }

    // ---- Flow control. r500.md 5.4

    fn fc<O: Observer>(&mut self, step: &FlowStep, observer: &mut O) -> Result<(), Cause> {
        let active = self.flow.active();
        if self.strict() && step.reads_alu_result() && (active - self.alu_result_valid).any() {
            return Err(Cause::StaleAluResult);
        }
        let want = step.want(self.alu_result, &self.predicate);
        let decision = self.flow.execute_observed(step, want, observer)?;
        after_fc(&mut self.alu_result, &mut self.alu_result_valid);
        self.statistics.divergent_branches += u64::from(decision.diverged());
        Ok(())
    }

    // ---- Registers

    /// Returns the lanes whose predicate enables `channel`. (docs/r500.md, Q4)
    fn predicated(&self, common: &CmnInst, channel: usize) -> Mask {
        match common.predicate(channel) {
            None => Mask(u64::MAX),
            Some((bit, false)) => self.predicate[bit],
            Some((bit, true)) => !self.predicate[bit],
        }
    }

    fn places(&self, sources: &Sources, used: [bool; 3]) -> Result<[SourceValue; 3], Cause> {
        let mut places = [SourceValue::Value([0.0; 4]); 3];
        for ((place, source), used) in places.iter_mut().zip(sources.src).zip(used) {
            if used {
                *place = match source {
                    Source::Temp { addr, rel } => SourceValue::Temp(self.temp_address(addr, rel)?),
                    Source::Const { addr, rel } => {
                        let number = self.relative("const", addr, rel, CONSTANTS)?;
                        SourceValue::Value(self.constants[number].map(f32::from_bits))
                    }
                    Source::Inline { code } => SourceValue::Value([inline_constant(code); 4]),
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

    /// Returns `base`, plus aL if `rel` is set. In lenient mode, a sum outside the register file wraps. (r500.md Q6)
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

/// Reads the operands of one lane. (r500.md 2.3)
struct Reader<'a> {
    group: &'a Group,
    alu: &'a Alu,
    rgb: &'a [SourceValue; 3],
    alpha: &'a [SourceValue; 3],
    lane: Lane,
}

impl Reader<'_> {
    /// Returns an operand of the unit that computes a channel. Fetches the sources, computes the presubtract, selects
    /// the component by the swizzle, and applies the modifier.
    fn operand(&self, channel: usize, number: usize) -> f32 {
        let (sel, swiz, modifier) = self.alu.operand(channel, number);
        lane::modify(self.channel(sel, swiz), modifier)
    }

    /// Returns a swizzled component. Components R, G and B come from the RGB address word. Component A comes from the
    /// alpha address word. (CTM p. 27)
    fn channel(&self, sel: Sel, swiz: Swiz) -> f32 {
        match swiz {
            Swiz::R | Swiz::G | Swiz::B | Swiz::A => self.component(sel, swiz as usize, self.lane),
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
        let fetch = |place: SourceValue| match place {
            SourceValue::Temp(register) => self.group.temp_value(register, channel, lane),
            SourceValue::Value(value) => value[channel],
        };
        match sel {
            Sel::SRC0 => fetch(places[0]),
            Sel::SRC1 => fetch(places[1]),
            Sel::SRC2 => fetch(places[2]),
            Sel::SRCP => lane::presubtract(srcp_op, fetch(places[0]), fetch(places[1])),
        }
    }

    /// Returns a channel of another lane's src0. The function applies the modifier of operand `number` to the channel.
    /// The other lane is in the same quad and may be inactive. (REG, MDH and MDV)
    fn of_quad(&self, of_quad: u8, channel: usize, number: usize) -> f32 {
        let (.., modifier) = self.alu.operand(channel, number);
        lane::modify(self.component(Sel::SRC0, channel, Lane(self.lane.0 & !3 | of_quad)), modifier)
    }
}

impl Machine for Group {
    type Cause = Cause;

    fn step<O: Observer>(&mut self, observer: &mut O) -> Result<Step, Trap<Cause>> {
        let Some(Issue { mask, .. }) = self.flow.issue() else { return Ok(Step::Done) };
        let pc = self.flow.pc();
        if let Err(cause) = announced!(O, |observer| self.execute(pc, observer)) {
            if O::ENABLED {
                observer.event(Event::Trap { mask });
            }
            return Err(Trap { pc: u32::from(pc), lanes: mask, cause });
        }
        Ok(if self.flow.issue().is_some() { Step::Running } else { Step::Done })
    }
}
