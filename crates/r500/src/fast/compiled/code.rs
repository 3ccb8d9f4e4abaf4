//! From operations to values: the templates.
//!
//! A [`Way`] is a segment while it is made, on its fast or its slow path: [`Way::operation`] gives the effect of an operation
//! of the fast engine in the words of [`mod@crate::lane`], eight lanes at once.
//!
//! The code takes denormal operands as zeros, and rounds results gradually, as profile R does; that a denormal result is a
//! zero, and every NaN the same one, is seen to where the bits are looked at ([`Rows::settle`]).

use reconverge_jit::{One, Path, PerLane, Row, Rows, Two, Value, predicate};

use super::{ACTIVE_ROW, ROW};
use crate::fast::lanes::{Channel, Operation};
use crate::fast::lower::{Computes, Lowered, Template};
use crate::fast::operands::{Place, Set};
use crate::group::ROWS;
use crate::lane::{self, NAN, Term};
use crate::words::{AlphaOp, AluResultOp, Omod};

const SIGN: u32 = 1 << 31;

/// The bits of the smallest number that is not a denormal.
const NORMAL: u32 = 0x0080_0000;

/// A segment while it is made.
pub(super) struct Way<'a> {
    lowered: &'a Lowered,
    pub(super) rows: Rows,
    /// The ALU result of the active lanes, where it was written.
    pub(super) alu_result: Option<Value>,
}

fn row(place: Place) -> Row {
    Row::Group(place.number() as u32 * ROW)
}

impl<'a> Way<'a> {
    pub(super) fn new(lowered: &'a Lowered, exact: bool) -> Self {
        Way { lowered, rows: Rows::new(ACTIVE_ROW, exact), alu_result: None }
    }

    fn source(&mut self, channel: &Channel, number: usize) -> Value {
        let place = channel.src[number];
        let value = match self.lowered.constant(place) {
            Some(word) => self.rows.word(word),
            None => self.rows.read(row(place)),
        };
        let flip = self.rows.word(channel.flip[number]);
        let flipped = self.rows.two(Two::Xor, value, flip);
        if self.rows.is_raw(value) { self.rows.raw(flipped) } else { flipped }
    }

    /// What is behind the registers is dead at the end of an instruction.
    pub(super) fn end(&mut self) {
        self.rows.forget(|row| matches!(row, Row::Group(place) if place >= ROWS as u32 * ROW));
    }

    /// An operation's effect. `false` if there is no template for it; then the way means nothing any more.
    pub(super) fn operation(&mut self, operation: &Operation, template: Template) -> bool {
        operation.set == Set::ACTIVE && self.effect(operation, template).is_some()
    }

    fn effect(&mut self, operation: &Operation, template: Template) -> Option<()> {
        match template {
            Template::None | Template::Neighbours => return None,
            Template::Channels(computes, count) => {
                let channels = &operation.channels[..count];
                // All are read before one is written.
                let values: Option<Vec<Value>> =
                    channels.iter().map(|channel| self.channel(operation, channel, computes)).collect();
                for (channel, value) in channels.iter().zip(values?) {
                    self.rows.write(row(channel.dst), None, value);
                }
            }
            Template::AluResult { op, of_sum } => {
                let channel = &operation.channels[0];
                let value = match of_sum {
                    true => self.sum(&Channel { omod: Omod::MUL_1, scale: 1.0, ..*channel }),
                    false => self.source(channel, 0),
                };
                let zero = self.rows.word(0);
                let predicate = match op {
                    AluResultOp::EQ => predicate::EQ,
                    AluResultOp::LT => predicate::LT,
                    AluResultOp::GE => predicate::GE,
                    AluResultOp::NE => predicate::NEQ,
                };
                self.alu_result = Some(self.rows.compare(predicate, value, zero));
            }
        }
        Some(())
    }

    fn channel(&mut self, operation: &Operation, channel: &Channel, computes: Computes) -> Option<Value> {
        let value = match computes {
            Computes::Sum => self.sum(channel),
            Computes::Pass => {
                let a = self.source(channel, 0);
                self.scaled(a, operation)
            }
            Computes::Magnitude => {
                let place = channel.src[0];
                let a = self.source(&Channel { src: [place; 3], flip: [0; 3], ..*channel }, 0);
                let magnitude = self.rows.word(!SIGN);
                let value = self.rows.two(Two::And, a, magnitude);
                return Some(if self.rows.is_raw(a) { self.rows.raw(value) } else { value });
            }
            Computes::Of(op) => self.function(operation, channel, op)?,
        };
        if !operation.clamp {
            return Some(value);
        }
        // A NaN becomes the second operand, as a zero does.
        let (zero, one) = (self.rows.word(0), self.rows.word(1f32.to_bits()));
        let positive = self.rows.two(Two::FMax, value, zero);
        Some(self.rows.two(Two::FMin, positive, one))
    }

    /// A result of arithmetic.
    fn float(&mut self, value: Value) -> Value {
        if !self.rows.exact {
            return self.rows.raw(value);
        }
        let made = self.rows.compare(predicate::UNORD, value, value);
        let nan = self.rows.word(NAN.to_bits());
        let value = self.rows.strip.select(made, value, nan);
        self.rows.raw(value)
    }

    /// OMOD of a result that is rounded already.
    fn scaled(&mut self, value: Value, operation: &Operation) -> Value {
        if operation.omod == Omod::DISABLED {
            return value;
        }
        if operation.scale != 1.0 {
            let scale = self.rows.word(operation.scale.to_bits());
            let value = self.rows.two(Two::FMul, value, scale);
            return self.float(value);
        }
        if self.rows.is_raw(value) {
            // A raw result's NaN is the machine's own on the slow path, but for a sign modifier since.
            return if self.rows.exact { self.float(value) } else { value };
        }
        let minus_zero = self.rows.word(SIGN);
        let value = self.rows.two(Two::FAdd, value, minus_zero);
        self.float(value)
    }

    /// A * B + C.
    fn sum(&mut self, channel: &Channel) -> Value {
        let [mut a, mut b, c] = [0, 1, 2].map(|number| self.source(channel, number));
        let zero_wins = self.lowered.zero_wins;
        let known = [a, b, c].map(|value| self.rows.strip.is_constant(value).map(f32::from_bits));
        if let [Some(x), Some(y), Some(z)] = known {
            let terms = [Term::product(x, y, zero_wins), Term::value(z)];
            return self.rows.word(lane::sum(&terms, channel.omod).to_bits());
        }
        let sources = [a, b, c];
        if zero_wins && self.rows.exact {
            let (zero, sign) = (self.rows.word(0), self.rows.word(SIGN));
            let (no_a, no_b) =
                (self.rows.compare(predicate::EQ, a, zero), self.rows.compare(predicate::EQ, b, zero));
            let (sign_a, sign_b) = (self.rows.two(Two::And, a, sign), self.rows.two(Two::And, b, sign));
            (a, b) = (self.rows.strip.select(no_b, a, sign_a), self.rows.strip.select(no_a, b, sign_b));
        }
        let sum = match known {
            // Times one, and what is added to nothing.
            [_, Some(1.0), _] => self.rows.two(Two::FAdd, a, c),
            [Some(1.0), ..] => self.rows.two(Two::FAdd, b, c),
            _ => self.rows.strip.fused(false, a, b, c),
        };
        if zero_wins && !self.rows.exact {
            // It may be a number on the slow path, which not everything asks about that takes it.
            let nan = self.rows.compare(predicate::UNORD, sum, sum);
            self.rows.strip.guard(nan);
        }
        if channel.scale == 1.0 {
            return self.float(sum);
        }
        // Scaling rounds nothing again, but for sums that are denormals, or become such or stop being infinite.
        let scale = self.rows.word(channel.scale.to_bits());
        let value = self.rows.two(Two::FMul, sum, scale);
        let (zero, magnitude) = (self.rows.word(0), self.rows.word(!SIGN));
        let size = self.rows.two(Two::And, sum, magnitude);
        let limit =
            if channel.scale > 1.0 { NORMAL } else { (f32::from_bits(NORMAL) / channel.scale).to_bits() + 1 };
        let limit = self.rows.word(limit);
        let (some, small) =
            (self.rows.two(Two::Greater, size, zero), self.rows.two(Two::Greater, limit, size));
        let mut test = self.rows.two(Two::And, some, small);
        if channel.scale < 1.0 {
            let most = self.rows.word(f32::MAX.to_bits());
            let beyond = self.rows.two(Two::Greater, size, most);
            test = self.rows.two(Two::Or, test, beyond);
        }
        if !self.rows.exact {
            self.rows.strip.guard(test);
            return self.float(value);
        }
        let value = self.float(value);
        let mask = self.rows.mask();
        let with = exact_sum(channel.omod, zero_wins);
        let value = self.rows.strip.per_lane(with, value, test, mask, sources);
        self.rows.raw(value)
    }

    fn function(&mut self, operation: &Operation, channel: &Channel, op: AlphaOp) -> Option<Value> {
        let a = self.source(channel, 0);
        match op {
            AlphaOp::RCP => {
                let one = self.rows.word(1f32.to_bits());
                let value = self.rows.two(Two::FDiv, one, a);
                let value = self.float(value);
                return Some(self.scaled(value, operation));
            }
            AlphaOp::FRC => {
                let floor = self.rows.strip.one(One::Round(1), a);
                let value = self.rows.two(Two::FSub, a, floor);
                if operation.scale == 1.0 {
                    return Some(self.float(value));
                }
                let scale = self.rows.word(operation.scale.to_bits());
                let value = self.rows.two(Two::FMul, value, scale);
                return Some(self.float(value));
            }
            _ => {}
        }
        let b = self.source(channel, 1);
        let first = match op {
            AlphaOp::MIN => self.rows.compare(predicate::LT, a, b),
            AlphaOp::MAX => self.rows.compare(predicate::GT, a, b),
            AlphaOp::CND => {
                let (c, half) = (self.source(channel, 2), self.rows.word(0.5f32.to_bits()));
                self.rows.compare(predicate::GT, c, half)
            }
            AlphaOp::CMP => {
                let (c, zero) = (self.source(channel, 2), self.rows.word(0));
                self.rows.compare(predicate::GE, c, zero)
            }
            _ => return None,
        };
        let value = self.rows.choose(first, b, a);
        Some(self.scaled(value, operation))
    }
}

impl Path for Way<'_> {
    fn next(&self) -> Self {
        Way::new(self.lowered, self.rows.exact)
    }

    fn rows(&mut self) -> &mut Rows {
        &mut self.rows
    }

    fn into_rows(self) -> Rows {
        self.rows
    }
}

/// The sum to which an OMOD applies before rounding, for lanes in which the rounded sum does not decide the result.
fn exact_sum(omod: Omod, zero_wins: bool) -> PerLane {
    fn of<const OMOD: usize>(zero_wins: bool) -> PerLane {
        const OMODS: [Omod; 7] =
            [Omod::MUL_1, Omod::MUL_2, Omod::MUL_4, Omod::MUL_8, Omod::DIV_2, Omod::DIV_4, Omod::DIV_8];
        fn sum(omod: Omod, zero_wins: bool, sources: [u32; 3]) -> u32 {
            let [a, b, c] = sources.map(f32::from_bits);
            lane::sum(&[Term::product(a, b, zero_wins), Term::value(c)], omod).to_bits()
        }
        match zero_wins {
            false => PerLane::of(|sources| sum(OMODS[OMOD], false, sources)),
            true => PerLane::of(|sources| sum(OMODS[OMOD], true, sources)),
        }
    }
    let of = match omod {
        Omod::MUL_1 | Omod::DISABLED => of::<0>,
        Omod::MUL_2 => of::<1>,
        Omod::MUL_4 => of::<2>,
        Omod::MUL_8 => of::<3>,
        Omod::DIV_2 => of::<4>,
        Omod::DIV_4 => of::<5>,
        Omod::DIV_8 => of::<6>,
    };
    of(zero_wins)
}
