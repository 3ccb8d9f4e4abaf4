//! Lowers operands. The steps are fetch, presubtract, select, swizzle and modify. (CTM guide pp. 26-27)

use super::super::bodies::{ConstantByAl, OfQuad, TempByAl};
use super::super::operands::{Place, Set};
use super::codes::Code;
use super::{Lowering, Template};
use crate::inst::{Alu, CONSTANTS, Source, TEMPORARIES, inline_constant};
use crate::lane;
use crate::operations::used_sources;
use crate::words::{CmnInst, Imod, Omod, Sel, SrcpOp, Swiz};

/// A source component: a number that all lanes share, or a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value {
    Shared(Shared),
    Row(Place),
}

/// A number without modifiers. All lanes have this number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shared {
    Source(Given),
    /// The presubtract result of sources 0 and 1.
    Presubtracted(SrcpOp, [Given; 2]),
}

/// A number that comes from the program or from the environment of the launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Given {
    Bits(u32),
    /// The number and the channel of a float constant. The lowered program depends on whether any float constant is a
    /// denormal, but not on the values of the constants.
    Constant(u8, u8),
}

impl Given {
    fn is_known(self) -> bool {
        matches!(self, Given::Bits(_))
    }

    fn value(self, constants: &[[u32; 4]]) -> f32 {
        f32::from_bits(match self {
            Given::Bits(bits) => bits,
            Given::Constant(number, channel) => constants[usize::from(number)][usize::from(channel)],
        })
    }
}

/// A number with a modifier. All lanes have this number. A number that depends on float constants has a separate row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::fast) struct Uniform {
    shared: Shared,
    modifier: Imod,
}

impl Uniform {
    /// Returns the bits of the number, or `None` if the bits depend on a float constant.
    pub(super) fn known(&self) -> Option<u32> {
        let known = match &self.shared {
            Shared::Source(given) => given.is_known(),
            Shared::Presubtracted(_, sources) => sources.iter().all(|given| given.is_known()),
        };
        known.then(|| self.bits(&[]))
    }

    /// Returns the bits of the number, given the float constants.
    pub(in crate::fast) fn bits(&self, constants: &[[u32; 4]]) -> u32 {
        let value = match self.shared {
            Shared::Source(given) => given.value(constants),
            Shared::Presubtracted(op, sources) => {
                let [a, b] = sources.map(|given| given.value(constants));
                lane::presubtract(op, a, b)
            }
        };
        lane::modify(value, self.modifier).to_bits()
    }

    /// Returns whether the number cannot be a denormal. `denormals` states whether any float constant may be a
    /// denormal.
    pub(super) fn is_normal(&self, denormals: bool) -> bool {
        match self.shared {
            Shared::Source(Given::Bits(bits)) => !f32::from_bits(bits).is_subnormal(),
            Shared::Source(Given::Constant(..)) => !denormals,
            // A presubtract is a sum, which flushes denormals.
            Shared::Presubtracted(..) => true,
        }
    }
}

/// An operand: a row, and sign bits to flip.
#[derive(Clone, Copy, Debug)]
pub(super) struct Operand {
    pub(super) place: Place,
    pub(super) flip: u32,
}

impl Value {
    fn bits(bits: u32) -> Value {
        Value::Shared(Shared::Source(Given::Bits(bits)))
    }
}

/// The computation of one channel's result.
#[derive(Clone, Copy, Debug)]
pub(super) struct Computed {
    pub(super) code: Code,
    pub(super) src: [Operand; 3],
    pub(super) omod: Omod,
    pub(super) clamp: bool,
}

/// An instruction that is being lowered. The methods return `None` if all scratch rows are in use.
pub(super) struct Instruction<'a, 'l> {
    pub(super) lowering: &'a mut Lowering<'l>,
    pub(super) common: &'a CmnInst,
    pub(super) alu: &'a Alu,
    /// The presubtract results computed so far. The first element of a pair is the channel.
    pub(super) presubtracted: Vec<(usize, Value)>,
    /// Copies of sources that are relative to aL. Each element has the source, the channel, and the row of the copy.
    pub(super) copied: Vec<(Source, usize, Place)>,
    pub(super) slot: u16,
    /// Scratch rows that cannot contain a denormal.
    pub(super) normal: Vec<Place>,
    /// Lane sets of this instruction. The key of a set consists of a base set, a predicate bit, and whether the bit is
    /// inverted.
    pub(super) sets: Vec<((Set, usize, bool), Set)>,
}

impl Instruction<'_, '_> {
    pub(super) fn operand(&mut self, channel: usize, number: usize) -> Option<Operand> {
        let (sel, swiz, modifier) = self.alu.operand(channel, number);
        let value = self.swizzled(sel, swiz)?;
        self.modified(value, modifier)
    }

    /// Returns source 0 of another lane of the quad, with the modifier of operand `number`. The derivative instructions
    /// use this value.
    pub(super) fn neighbour(&mut self, channel: usize, number: usize, lane: u8) -> Option<Operand> {
        let (.., modifier) = self.alu.operand(channel, number);
        let mut value = self.component(Sel::SRC0, channel)?;
        if let Value::Row(place) = value {
            let dst = self.lowering.scratch()?;
            let mut operation = self.lowering.plain::<OfQuad>(Set::ACTIVE);
            operation.number[0] = lane;
            (operation.channels[0].src[0], operation.channels[0].dst) = (place, dst);
            if self.is_normal(place) {
                self.normal.push(dst);
            }
            self.lowering.push_as(operation, Template::Neighbours);
            value = Value::Row(dst);
        }
        self.modified(value, modifier)
    }

    fn modified(&mut self, value: Value, modifier: Imod) -> Option<Operand> {
        const SIGN: u32 = 1 << 31;
        let place = match value {
            Value::Shared(shared) => {
                let place = self.lowering.uniform(Uniform { shared, modifier });
                return Some(Operand { place, flip: 0 });
            }
            Value::Row(place) => place,
        };
        let plain = Operand { place, flip: 0 };
        let magnitude =
            Computed { code: Code::MAGNITUDE, src: [plain; 3], omod: Omod::DISABLED, clamp: false };
        Some(match modifier {
            Imod::NOP => plain,
            Imod::NEG => Operand { flip: SIGN, ..plain },
            Imod::ABS => Operand { place: self.scratched(&magnitude)?, flip: 0 },
            Imod::NAB => Operand { place: self.scratched(&magnitude)?, flip: SIGN },
        })
    }

    fn swizzled(&mut self, sel: Sel, swiz: Swiz) -> Option<Value> {
        match swiz {
            Swiz::R | Swiz::G | Swiz::B | Swiz::A => self.component(sel, swiz as usize),
            Swiz::ZERO => Some(Value::bits(0)),
            Swiz::HALF => Some(Value::bits(0.5f32.to_bits())),
            Swiz::ONE => Some(Value::bits(1f32.to_bits())),
        }
    }

    /// Returns a source component. R, G and B come from the RGB address word, and A from the alpha address word. (CTM
    /// guide p. 27)
    fn component(&mut self, sel: Sel, channel: usize) -> Option<Value> {
        match sel {
            Sel::SRC0 => self.fetched(0, channel),
            Sel::SRC1 => self.fetched(1, channel),
            Sel::SRC2 => self.fetched(2, channel),
            Sel::SRCP => self.presubtract(channel),
        }
    }

    fn fetched(&mut self, number: usize, channel: usize) -> Option<Value> {
        let [rgb, alpha] = used_sources(self.alu);
        let (sources, used) = match channel {
            3 => (&self.alu.alpha_sources, alpha),
            _ => (&self.alu.rgb_sources, rgb),
        };
        if !used[number] {
            return Some(Value::bits(0));
        }
        Some(match sources.src[number] {
            source @ (Source::Temp { rel: true, .. } | Source::Const { rel: true, .. }) => {
                Value::Row(self.by_al(source, channel)?)
            }
            Source::Temp { addr, .. } => Value::Row(self.lowering.row(usize::from(addr) * 4 + channel)),
            Source::Const { addr, .. } => {
                let number = (usize::from(addr) % CONSTANTS) as u8;
                Value::Shared(Shared::Source(Given::Constant(number, channel as u8)))
            }
            Source::Inline { code } => Value::bits(inline_constant(code).to_bits()),
        })
    }

    /// Returns the row of a copy of a source channel that is relative to aL. If the current instruction has no copy of
    /// the channel yet, emits the operation that copies the channel.
    fn by_al(&mut self, source: Source, channel: usize) -> Option<Place> {
        if let Some((.., place)) =
            self.copied.iter().find(|(known, of, _)| (*known, *of) == (source, channel))
        {
            return Some(*place);
        }
        let dst = self.lowering.scratch()?;
        let (addr, normal, mut operation) = match source {
            Source::Const { addr, .. } => {
                let normal = !self.lowering.denormals;
                (addr, normal, self.lowering.plain::<ConstantByAl>(Set::ACTIVE))
            }
            Source::Temp { addr, .. } => {
                let normal =
                    (0..TEMPORARIES).all(|temp| self.is_normal(self.lowering.row(temp * 4 + channel)));
                (addr, normal, self.lowering.plain::<TempByAl>(Set::ACTIVE))
            }
            Source::Inline { .. } => return None,
        };
        operation.number = [addr, channel as u8];
        operation.channels[0].dst = dst;
        self.lowering.push(operation);
        self.normal.extend(normal.then_some(dst));
        self.copied.push((source, channel, dst));
        Some(dst)
    }

    fn presubtract(&mut self, channel: usize) -> Option<Value> {
        if let Some((_, value)) = self.presubtracted.iter().find(|(known, _)| *known == channel) {
            return Some(*value);
        }
        let op = match channel {
            3 => self.alu.alpha_sources.srcp_op,
            _ => self.alu.rgb_sources.srcp_op,
        };
        let value = match (self.fetched(0, channel)?, self.fetched(1, channel)?) {
            (Value::Shared(Shared::Source(a)), Value::Shared(Shared::Source(b))) => {
                Value::Shared(Shared::Presubtracted(op, [a, b]))
            }
            (a, b) => {
                let a = self.modified(a, Imod::NOP)?;
                let b = self.modified(b, Imod::NOP)?;
                let mut bits = |x: f32| Operand { place: self.lowering.constant(x.to_bits()), flip: 0 };
                // The presubtract becomes a multiply-add. A presubtract rounds once, and a multiply-add also rounds
                // once. (lane::presubtract)
                let (factor, addend) = match op {
                    SrcpOp::NEG2 => (bits(-2.0), bits(1.0)),
                    SrcpOp::SUB => (bits(-1.0), b),
                    SrcpOp::ADD => (bits(1.0), b),
                    SrcpOp::NEG => (bits(-1.0), bits(1.0)),
                };
                let src = [a, factor, addend];
                let computed = Computed { code: Code::SUM, src, omod: Omod::MUL_1, clamp: false };
                Value::Row(self.scratched(&computed)?)
            }
        };
        self.presubtracted.push((channel, value));
        Some(value)
    }
}
