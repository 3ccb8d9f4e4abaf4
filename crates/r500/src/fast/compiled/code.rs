//! Templates, which emit host code for operations of the fast engine.
//!
//! A [`Way`] is the fast path or the slow path of a node that is being compiled. [`Way::operation`] emits host code
//! that executes an operation of the fast engine for eight lanes at once. [`mod@crate::lane`] defines the results of
//! the operations.
//!
//! The code reads denormal operands as zeros, but the results of the code may be denormals. A result stays
//! non-canonical until another operation uses the bits of the result. Before the bits are used, [`Rows::settle`]
//! replaces denormals by zeros and NaNs by the machine's NaN. So the final values are the values that profile R
//! defines.

use reconverge_jit::{Emitted, One, Path, PerLane, Row, Rows, Two, Value, predicate};

use super::{ACTIVE_ROW, ROW};
use crate::fast::kernels;
use crate::fast::lanes::{Channel, Operation};
use crate::fast::lower::{Computes, Lowered, Template};
use crate::fast::operands::{Place, Set};
use crate::group::ROWS;
use crate::lane::{self, NAN, Term};
use crate::words::{AlphaOp, AluResultOp, Omod};

const SIGN: u32 = 1 << 31;

/// The bits of the smallest number that is not a denormal.
const NORMAL: u32 = 0x0080_0000;

/// The fast path or the slow path of a node that is being compiled.
pub(super) struct Way<'a> {
    lowered: &'a Lowered,
    pub(super) rows: Rows,
    /// The ALU result of the active lanes, if the node has written the ALU result.
    pub(super) alu_result: Option<Value>,
}

fn row(place: Place) -> Row {
    Row::Group(place.number() as u32 * ROW)
}

impl<'a> Way<'a> {
    pub(super) fn new(lowered: &'a Lowered, exact: bool) -> Self {
        Way { lowered, rows: Rows::new(ACTIVE_ROW, exact), alu_result: None }
    }

    /// Returns a truth value per lane: whether the lane's ALU result equals `wish`.
    pub(super) fn judged(&mut self, wish: bool) -> Value {
        let result = self.alu_result.unwrap_or_else(|| self.rows.strip.constant(0));
        if wish { result } else { self.rows.strip.not(result) }
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

    /// Removes the stores to the rows that follow the registers in the layout. The removed rows contain intermediate
    /// results. At the end of an instruction, no operation needs intermediate results.
    pub(super) fn end(&mut self) {
        self.rows.forget(|row| matches!(row, Row::Group(place) if place >= ROWS as u32 * ROW));
    }

    /// Emits an operation. Returns `false` if the operation has no template. The node must then be discarded.
    pub(super) fn operation(&mut self, operation: &Operation, template: Template) -> bool {
        operation.set == Set::ACTIVE && self.effect(operation, template).is_some()
    }

    fn effect(&mut self, operation: &Operation, template: Template) -> Option<()> {
        match template {
            Template::None | Template::Neighbours => return None,
            Template::Channels(computes, count) => {
                let channels = &operation.channels[..count];
                // The code computes all channels before it writes a channel, because a destination may also be a
                // source.
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
        // If the first operand is a NaN, the host's maximum instruction returns the second operand. So a NaN becomes
        // zero.
        let (zero, one) = (self.rows.word(0), self.rows.word(1f32.to_bits()));
        let positive = self.rows.two(Two::FMax, value, zero);
        Some(self.rows.two(Two::FMin, positive, one))
    }

    /// Marks the value as a result of arithmetic, which may be non-canonical. On the slow path, first replaces a NaN by
    /// the machine's NaN.
    fn float(&mut self, value: Value) -> Value {
        if !self.rows.exact {
            return self.rows.raw(value);
        }
        let made = self.rows.compare(predicate::UNORD, value, value);
        let nan = self.rows.word(NAN.to_bits());
        let value = self.rows.strip.select(made, value, nan);
        self.rows.raw(value)
    }

    /// Applies OMOD to a result that is already rounded.
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
            // On the slow path, a NaN in a non-canonical result is the machine's NaN. The only exception is a NaN that
            // a sign modifier has changed.
            return if self.rows.exact { self.float(value) } else { value };
        }
        let minus_zero = self.rows.word(SIGN);
        let value = self.rows.two(Two::FAdd, value, minus_zero);
        self.float(value)
    }

    /// Returns A * B + C.
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
            // If one factor of the product is 1, the sum needs only an addition.
            [_, Some(1.0), _] => self.rows.two(Two::FAdd, a, c),
            [Some(1.0), ..] => self.rows.two(Two::FAdd, b, c),
            _ => self.rows.strip.fused(false, a, b, c),
        };
        if zero_wins && !self.rows.exact {
            // In programs that define zero times any value as zero, the correct sum may be a number although the host
            // computes a NaN. Later operations do not always detect the host's NaN. So the guard fails if the sum is a
            // NaN.
            let nan = self.rows.compare(predicate::UNORD, sum, sum);
            self.rows.strip.guard(nan);
        }
        if channel.scale == 1.0 {
            return self.float(sum);
        }
        // Scaling is exact except in two cases. In the first case, the sum is a denormal before or after scaling. In
        // the second case, the sum is infinite, and scaling would make the sum finite.
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
        let c = if matches!(op, AlphaOp::CND | AlphaOp::CMP) { self.source(channel, 2) } else { a };
        let sources = [a, self.source(channel, 1), c];
        let first =
            self.rows.emit(sources, |sources| kernels::takes_first(op, sources).map(Emitted::value))?;
        let value = self.rows.choose(first, sources[1], a);
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

/// Returns the function that computes the sum of one lane. The function applies OMOD before it rounds. Generated code
/// calls the function for a lane if OMOD after rounding could give a wrong result.
fn exact_sum(omod: Omod, zero_wins: bool) -> PerLane {
    fn of<const OMOD: usize>(zero_wins: bool) -> PerLane {
        fn sum(omod: Omod, zero_wins: bool, sources: [u32; 3]) -> u32 {
            let [a, b, c] = sources.map(f32::from_bits);
            lane::sum(&[Term::product(a, b, zero_wins), Term::value(c)], omod).to_bits()
        }
        match zero_wins {
            false => PerLane::of(|sources| sum(Omod::ALL[OMOD], false, sources)),
            true => PerLane::of(|sources| sum(Omod::ALL[OMOD], true, sources)),
        }
    }
    // For disabled OMOD, generated code calls the function for the OMOD factor 1.
    let of: [fn(bool) -> PerLane; 8] =
        [of::<0>, of::<1>, of::<2>, of::<3>, of::<4>, of::<5>, of::<6>, of::<0>];
    of[omod as usize](zero_wins)
}
