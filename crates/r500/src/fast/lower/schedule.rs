//! Lowers one arithmetic instruction to vector operations. Selects the channels that one operation computes. Orders the
//! operations so that both units (RGB and alpha) read all sources before the first write. (CTM guide pp. 26-29)

use super::super::bodies::{
    AluResult, AluResultOf, ColorWritten, DepthWritten, EQ, GE, LT, NE, OfQuad, Predicate, Predicated,
    ToTempByAl,
};
use super::super::kernels::{self, AnyMad, Mad};
use super::super::lanes::{Channel, Operation};
use super::super::memory::Scattered;
use super::super::operands::Scatter;
use super::super::operands::{Place, Set};
use super::codes::{self, Code, Shape};
use super::operands::{Computed, Instruction, Operand};
use super::{Lowering, Template};
use crate::group::{DEPTH_ROW, ROWS, color_row};
use crate::inst::Alu;
use crate::memory;
use crate::operations::{self, Dot};
use crate::words::{AlphaOp, AluResultOp, CmnInst, InstType, Omod, RgbOp, Target};

/// Channels that one operation computes. `set` holds the lanes to write. If `set` is `None`, the operation writes all
/// lanes of scratch rows.
#[derive(Clone, Debug)]
struct Together {
    code: Code,
    omod: Omod,
    clamp: bool,
    set: Option<Set>,
    channels: Vec<Channel>,
}

impl<'a, 'l> Instruction<'a, 'l> {
    pub(super) fn new(lowering: &'a mut Lowering<'l>, common: &'a CmnInst, alu: &'a Alu, slot: u16) -> Self {
        let (normal, presubtracted) = (Vec::new(), Vec::new());
        let (copied, sets) = (Vec::new(), Vec::new());
        Instruction { lowering, common, alu, slot, presubtracted, copied, normal, sets }
    }

    pub(super) fn lower(&mut self) -> Option<()> {
        let (common, alu) = (self.common, self.alu);
        let out = common.r#type == InstType::OUT;
        let cached = out && !self.lowering.uncached();
        let mut scatter = self.lowering.scatters(common).then(|| {
            let same_index = memory::Scatter::from_target(alu.rgb.target).same_index;
            Scatter {
                src: [Place::FIRST; 4],
                sets: [Set::ACTIVE; 4],
                strict: self.lowering.strict,
                same_index,
            }
        });
        let mut together: Vec<Together> = Vec::new();
        let mut after: Vec<Together> = Vec::new();
        let mut marks = Vec::new();
        let mut halves = [None; 2];
        for channel in 0..4 {
            let mut writes = Vec::new();
            // `by_al` holds writes to registers that are relative to aL. `flags` holds operations that compute
            // predicate bits or the ALU result.
            let (mut by_al, mut flags) = (Vec::new(), Vec::new());
            if common.writes_temp(channel) {
                let (temp, rel) = alu.destination(channel);
                let base = if common.write_inactive { Set::ALL } else { Set::ACTIVE };
                let set = self.set(base, channel);
                if rel {
                    let operation = self.lowering.plain::<ToTempByAl>(set);
                    let operation = Operation { number: [temp, channel as u8], ..operation };
                    by_al.push((operation, Template::None));
                } else {
                    writes.push((self.lowering.row(usize::from(temp) * 4 + channel), set));
                }
            }
            let active = |this: &mut Self| this.set(Set::ACTIVE, channel);
            if cached && common.writes_output(channel) {
                let target = alu.target(channel) as u8;
                let set = active(self);
                writes.push((self.lowering.row(color_row(usize::from(target), channel)), set));
                let operation = self.lowering.plain::<ColorWritten>(set);
                marks.push((Operation { number: [target, channel as u8], ..operation }, Template::None));
            }
            if cached && channel == 3 && alu.w_omask {
                let set = active(self);
                writes.push((self.lowering.row(DEPTH_ROW), set));
                marks.push((self.lowering.plain::<DepthWritten>(set), Template::None));
            }
            if !out && common.writes_output(channel) {
                let set = active(self);
                let operation = match alu.target(channel) {
                    Target::A => self.lowering.plain::<Predicate<EQ>>(set),
                    Target::B => self.lowering.plain::<Predicate<LT>>(set),
                    Target::C => self.lowering.plain::<Predicate<GE>>(set),
                    Target::D => self.lowering.plain::<Predicate<NE>>(set),
                };
                flags.push((Operation { number: [channel as u8, 0], ..operation }, Template::None));
            }
            if !out && alu.alu_wmask && channel == common.alu_result_channel() {
                let set = active(self);
                let operation = match common.alu_result_op {
                    AluResultOp::EQ => self.lowering.plain::<AluResult<EQ>>(set),
                    AluResultOp::LT => self.lowering.plain::<AluResult<LT>>(set),
                    AluResultOp::GE => self.lowering.plain::<AluResult<GE>>(set),
                    AluResultOp::NE => self.lowering.plain::<AluResult<NE>>(set),
                };
                flags.push((operation, Template::AluResult { op: common.alu_result_op, of_sum: false }));
            }
            if let Some(scatter) = &mut scatter {
                scatter.sets[channel] = active(self);
            }
            if scatter.is_none() && writes.is_empty() && by_al.is_empty() && flags.is_empty() {
                continue;
            }
            let computed = self.computed(channel, &mut halves)?;
            if scatter.is_none()
                && let ([(place, set)], [], []) = (writes.as_slice(), by_al.as_slice(), flags.as_slice())
            {
                add(&mut together, &computed, *place, Some(*set));
                continue;
            }
            if let ([], [], [flag]) = (writes.as_slice(), by_al.as_slice(), flags.as_slice())
                && let Some(judged) = self.judged(&computed, flag.0.set)
            {
                // The function can emit this operation now for two reasons. The operation reads the sources before any
                // write of the instruction. No operation of the instruction reads the ALU result.
                let template = Template::AluResult { op: common.alu_result_op, of_sum: true };
                self.lowering.push_as(judged, template);
                continue;
            }
            let scratch = self.lowering.scratch()?;
            if let Some(scatter) = &mut scatter {
                scatter.src[channel] = scratch;
            }
            add(&mut together, &computed, scratch, None);
            let moved = Computed::moved(scratch);
            writes.iter().for_each(|(place, set)| add(&mut after, &moved, *place, Some(*set)));
            for (mut flag, template) in by_al.into_iter().chain(flags) {
                flag.channels[0].src[0] = scratch;
                marks.push((flag, template));
            }
        }
        self.in_order(together, &mut after)?;
        if let Some(scatter) = scatter {
            let number = u16::try_from(self.lowering.lowered.scatters.len()).ok()?.to_le_bytes();
            self.lowering.lowered.scatters.push(scatter);
            self.lowering.push(Operation { number, ..self.lowering.plain::<Scattered>(Set::ACTIVE) });
            self.lowering.split = Some(self.lowering.lowered.operations.len() as u32);
        }
        after.iter().for_each(|moves| self.emit(moves));
        marks.into_iter().for_each(|(mark, template)| self.lowering.push_as(mark, template));
        Some(())
    }

    /// Returns an operation that computes a sum and compares the sum with zero. The operation writes only the ALU
    /// result. Returns `None` if the value is not an unscaled sum, or if the instruction also writes an output.
    fn judged(&self, computed: &Computed, set: Set) -> Option<Operation> {
        let clamps = computed.clamp && computed.omod != Omod::DISABLED;
        let only = (0..4).all(|channel| !self.common.writes_output(channel));
        if computed.code != Code::SUM || kernels::factor(computed.omod) != 1.0 || clamps || !only {
            return None;
        }
        let normal = computed.src.iter().all(|operand| self.is_normal(operand.place));
        let op = self.common.alu_result_op;
        let zero_wins = self.zero_wins(computed.src.map(|operand| operand.place));
        let mut operation = match (zero_wins, normal) {
            (false, false) => self.alu_result_of::<AnyMad<false, false>>(op, set),
            (false, true) => self.alu_result_of::<Mad<false, false, false, true>>(op, set),
            (true, false) => self.alu_result_of::<AnyMad<true, false>>(op, set),
            (true, true) => self.alu_result_of::<Mad<true, false, false, true>>(op, set),
        };
        operation.channels[0].src = computed.src.map(|operand| operand.place);
        operation.channels[0].flip = computed.src.map(|operand| operand.flip);
        Some(operation)
    }

    fn alu_result_of<K: kernels::Kernel>(&self, op: AluResultOp, set: Set) -> Operation {
        match op {
            AluResultOp::EQ => self.lowering.plain::<AluResultOf<K, EQ>>(set),
            AluResultOp::LT => self.lowering.plain::<AluResultOf<K, LT>>(set),
            AluResultOp::GE => self.lowering.plain::<AluResultOf<K, GE>>(set),
            AluResultOp::NE => self.lowering.plain::<AluResultOf<K, NE>>(set),
        }
    }

    /// The RGB unit and the alpha unit read all sources before the first write. So this function emits operations in an
    /// order in which no operation overwrites a source of a later operation. If no such order exists, an operation
    /// writes to scratch rows. For each operation that writes to scratch rows, the function adds to `after` an
    /// operation that copies the scratch rows to the destinations. (r500.md 3.1)
    fn in_order(&mut self, mut left: Vec<Together>, after: &mut Vec<Together>) -> Option<()> {
        while !left.is_empty() {
            let harmless = (0..left.len()).find(|&at| {
                let written = |place: Place| left[at].channels.iter().any(|channel| channel.dst == place);
                let reads = |other: &Together| {
                    other.channels.iter().any(|channel| channel.src.iter().any(|src| written(*src)))
                };
                !left.iter().enumerate().any(|(place, other)| place != at && reads(other))
            });
            let mut next = left.remove(harmless.unwrap_or(0));
            if harmless.is_none() {
                for channel in &mut next.channels {
                    let scratch = self.lowering.scratch()?;
                    add(after, &Computed::moved(scratch), channel.dst, next.set);
                    channel.dst = scratch;
                }
                next.set = None;
            }
            self.emit(&next);
        }
        Some(())
    }

    fn emit(&mut self, together: &Together) {
        let Together { code, omod, clamp, set, ref channels } = *together;
        let level = self.lowering.level;
        let arithmetic = code != Code::MAGNITUDE && omod != Omod::DISABLED;
        let shape = Shape {
            count: channels.len(),
            clamp,
            normal: channels.iter().all(|channel| channel.src.iter().all(|src| self.is_normal(*src))),
            flips: channels.iter().any(|channel| channel.flip != [0; 3]),
            scaled: channels.iter().any(|channel| channel.scale != 1.0),
            moves: channels.iter().all(|channel| self.moves(channel)),
            zero_wins: channels.iter().any(|channel| self.zero_wins(channel.src)),
            level,
        };
        let handlers = code.handlers(&shape).for_set(set);
        let mut operation = Operation {
            handlers,
            set: set.unwrap_or(self.base()),
            omod,
            scale: kernels::factor(omod),
            clamp,
            ..self.lowering.plain::<OfQuad>(Set::ACTIVE)
        };
        operation.channels[..channels.len()].copy_from_slice(channels);
        self.lowering.push_as(operation, Template::Channels(code.computes, channels.len()));
        if arithmetic || code == Code::SUM {
            self.normal.extend(channels.iter().map(|channel| channel.dst));
        }
    }

    /// Returns whether the rule "zero times any value is zero" can change the product of the first two sources.
    fn zero_wins(&self, src: [Place; 3]) -> bool {
        let is_number = |place: &Place| {
            let known = self.lowering.lowered.constant(*place);
            known.is_some_and(|bits| f32::from_bits(bits).is_normal())
        };
        // The rule does not change a square, because both factors are equal.
        self.lowering.setup.zero_wins && src[0] != src[1] && !src[..2].iter().any(is_number)
    }

    /// Returns whether a sum computes A * 1 + 0, where the zero is +0.
    fn moves(&self, channel: &Channel) -> bool {
        let is = |number: usize, flip: u32, value: f32| {
            let known = self.lowering.lowered.constant(channel.src[number]);
            known.is_some_and(|bits| bits ^ flip == value.to_bits())
        };
        is(1, 0, 1.) && is(2, channel.flip[2], 0.)
    }

    /// Returns whether a row cannot contain a denormal when this instruction reads the row.
    pub(super) fn is_normal(&self, place: Place) -> bool {
        match place.number() {
            row @ 0..ROWS => self.lowering.normal.is(row, self.slot),
            _ => self.normal.contains(&place) || self.lowering.is_normal_constant(place),
        }
    }

    /// Returns the lanes to which the instruction writes if no predicate disables a lane.
    fn base(&self) -> Set {
        if self.common.write_inactive { Set::ALL } else { Set::ACTIVE }
    }

    /// Emits an operation that writes a scratch row, and returns the row.
    pub(super) fn scratched(&mut self, computed: &Computed) -> Option<Place> {
        let dst = self.lowering.scratch()?;
        let mut together = Vec::new();
        add(&mut together, computed, dst, None);
        together.iter().for_each(|together| self.emit(together));
        Some(dst)
    }

    /// Returns the lanes of `base` whose predicate enables a channel. (r500.md 2.1)
    fn set(&mut self, base: Set, channel: usize) -> Set {
        let Some((bit, inverted)) = self.common.predicate(channel) else { return base };
        let key = (base, bit, inverted);
        if let Some((_, set)) = self.sets.iter().find(|(known, _)| *known == key) {
            return *set;
        }
        // There are enough set numbers, because each of the four channels needs at most two sets.
        let set = Set(2 + self.sets.len() as u8);
        self.sets.push((key, set));
        let operation = self.lowering.plain::<Predicated>(set);
        self.lowering.push(Operation { number: [bit as u8, base.0], inverted, ..operation });
        set
    }

    /// Returns the computation of a channel's result. The channels of a half (RGB or alpha) may share a value. `halves`
    /// holds the rows of the values that channels share.
    fn computed(&mut self, channel: usize, halves: &mut [Option<Place>; 2]) -> Option<Computed> {
        let alu = self.alu;
        let (rgb_op, alpha_op) = (alu.rgb.op, alu.alpha.op);
        let (half, omod, clamp) = match channel {
            3 => (1, alu.alpha.omod, self.common.alpha_clamp),
            _ => (0, alu.rgb.omod, self.common.rgb_clamp),
        };
        let one = |code, operand| Computed { code, src: [operand; 3], omod, clamp };
        if half == 0 && rgb_op == RgbOp::SOP || half == 1 && alpha_op.is_transcendental() {
            let a = self.operand(3, 0)?;
            if !alpha_op.is_transcendental() {
                // In lenient mode, an SOP without a transcendental function returns operand A of the alpha unit.
                return Some(one(Code::PASS, a));
            }
            let code = Code::of(alpha_op.operation())?;
            if rgb_op != RgbOp::SOP {
                return Some(one(code, a));
            }
            // Both units may use the value of the transcendental function. Each unit applies the unit's OMOD to the
            // value.
            let place = match halves[0] {
                Some(place) => place,
                None => self.scratched(&Computed { code, src: [a; 3], omod: Omod::MUL_1, clamp: false })?,
            };
            halves[0] = Some(place);
            return Some(one(Code::PASS, Operand { place, flip: 0 }));
        }
        if half == 1 && alpha_op == AlphaOp::DP && !rgb_op.is_dot_product() {
            // In lenient mode, an alpha DP returns operand A of the red channel if the RGB unit has no dot product.
            let a = self.operand(0, 0)?;
            return Some(one(Code::PASS, a));
        }
        if half == 0 && rgb_op.is_dot_product() || half == 1 && alpha_op == AlphaOp::DP {
            let place = match halves[half] {
                Some(place) => place,
                None => self.dot_product(omod, clamp)?,
            };
            halves[half] = Some(place);
            return Some(Computed::moved(place));
        }
        let operation = if half == 1 { alpha_op.operation() } else { rgb_op.operation() };
        let code = Code::of(operation)?;
        let mut src = [Operand { place: Place::FIRST, flip: 0 }; 3];
        for number in 0..code.sources {
            src[number] = match (operation.value, number) {
                (operations::Value::Derivative(_), 0) => self.neighbour(channel, number, 0)?,
                (operations::Value::Derivative(neighbour), 2) => {
                    self.neighbour(channel, number, neighbour)?
                }
                _ => self.operand(channel, number)?,
            };
        }
        let same = src[0].place == src[1].place && src[0].flip == src[1].flip;
        if same && matches!(operation.alpha, Some(AlphaOp::MIN | AlphaOp::MAX | AlphaOp::CND | AlphaOp::CMP))
        {
            return Some(Computed { code: Code::PASS, src: [src[0]; 3], omod, clamp });
        }
        if code == Code::SUM {
            // Only the sign of the product matters. So the first factor gets the sign flips of both factors.
            src[0].flip ^= src[1].flip;
            src[1].flip = 0;
        }
        Some(Computed { code, src, omod, clamp })
    }

    /// Emits a dot product and returns the row of its result.
    fn dot_product(&mut self, omod: Omod, clamp: bool) -> Option<Place> {
        let operations::Value::Dot(dot) = self.alu.rgb.op.operation().value else { return None };
        let mut channels = [Channel::NONE; 4];
        for (term, channel) in channels.iter_mut().enumerate() {
            let operands = match (dot, term) {
                (Dot::TwoAndAddend, 2) => [None, None, Some(self.operand(2, 2)?)],
                // The fourth product comes from the alpha unit, even if the alpha opcode is not DP. (CTM guide p. 27)
                (Dot::Four, 3) => [Some(self.operand(3, 0)?), Some(self.operand(3, 1)?), None],
                (_, 3) => continue,
                _ => [Some(self.operand(term, 0)?), Some(self.operand(term, 1)?), None],
            };
            for (number, operand) in operands.into_iter().enumerate() {
                if let Some(Operand { place, flip }) = operand {
                    (channel.src[number], channel.flip[number]) = (place, flip);
                }
            }
        }
        let is_zero = |number: usize| {
            let Channel { src, flip, .. } = channels[2];
            self.lowering.lowered.constant(src[number]) == Some(0) && flip[number] == 0
        };
        let Lowering { setup, level, .. } = *self.lowering;
        let handler = if dot == Dot::Three && is_zero(0) && is_zero(1) {
            let zero_wins = channels[..2].iter().any(|channel| self.zero_wins(channel.src));
            let normal = |channel: &Channel| channel.src[..2].iter().all(|src| self.is_normal(*src));
            codes::dot_of_two(zero_wins, channels[..2].iter().all(normal), level)
        } else {
            codes::dot(dot, setup.zero_wins, level)
        };
        let dst = self.lowering.scratch()?;
        channels[0].dst = dst;
        let operation = Operation {
            handlers: [handler; 2],
            channels,
            omod,
            scale: kernels::factor(omod),
            clamp: clamp && omod != Omod::DISABLED,
            ..self.lowering.plain::<OfQuad>(Set::ACTIVE)
        };
        self.lowering.push(operation);
        self.normal.push(dst);
        Some(dst)
    }
}

impl Computed {
    /// Returns the computation that copies a row bit for bit.
    fn moved(place: Place) -> Computed {
        let src = [Operand { place, flip: 0 }; 3];
        Computed { code: Code::PASS, src, omod: Omod::DISABLED, clamp: false }
    }
}

/// Adds a channel to an operation with equal properties (code, OMOD, clamp and lane set). If no operation has equal
/// properties, adds a new operation for the channel.
fn add(all: &mut Vec<Together>, computed: &Computed, dst: Place, set: Option<Set>) {
    let Computed { code, src, mut omod, clamp } = *computed;
    // Disabled OMOD also disables clamping, even if the clamp bit is set. (CTM guide p. 29)
    let clamp = clamp && omod != Omod::DISABLED;
    let mut channel = Channel { dst, ..Channel::NONE };
    if code == Code::SUM {
        (channel.omod, channel.scale, channel.beyond) = (omod, kernels::factor(omod), kernels::beyond(omod));
        omod = Omod::MUL_1;
    }
    for (number, operand) in src.iter().enumerate() {
        // Each unused source is a copy of the first source. So the operation does not depend on unrelated rows.
        let operand = if number < code.sources { operand } else { &src[0] };
        (channel.src[number], channel.flip[number]) = (operand.place, operand.flip);
    }
    let same = |other: &&mut Together| {
        let alike = (other.code, other.omod, other.clamp, other.set) == (code, omod, clamp, set);
        alike && other.channels.len() < code.most
    };
    match all.iter_mut().find(same) {
        Some(together) => together.channels.push(channel),
        None => all.push(Together { code, omod, clamp, set, channels: vec![channel] }),
    }
}
