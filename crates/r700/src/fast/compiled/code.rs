//! From operations to values: the templates.
//!
//! A [`Way`] is a segment while it is made, on its fast or its slow path: [`Way::operation`] gives the effect of an operation
//! of the fast engine in the words of [`crate::lane`], eight lanes at once.
//!
//! The code takes denormal operands as zeros, and rounds results gradually, as the lane functions do; that a denormal result
//! is a zero is seen to where its bits are looked at ([`Rows::settle`]). The processor's NaN of two operands is the machine's:
//! the first one, quieted. Only the NaN that it makes of numbers has another sign.

use reconverge_jit::{One, Path, Row, Rows, Two, Value, predicate};

use super::ACTIVE_ROW;
use crate::fast::lanes::{FALSE, Operation, Place, TRUE, Tables};
use crate::fast::lower::Template;
use crate::lane;
use crate::meaning::AluCode;
use crate::words::{Op2, Op3};

/// Bytes of a row.
const ROW: u32 = 4 * crate::chip::LANES as u32;

/// What lowering knows of the program.
pub(super) struct Program<'a> {
    pub(super) tables: &'a Tables,
    /// By row, the word that it has in all lanes; its kind has no other rows.
    pub(super) constants: &'a [(u32, Place)],
    /// Rows of registers. What is behind them is dead at the end of a clause.
    pub(super) registers: usize,
}

/// A comparison of a PRED_SET*.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Test {
    Float(u8),
    Equal,
    NotEqual,
    Greater,
    GreaterEqual,
    GreaterUnsigned,
    GreaterEqualUnsigned,
}

/// A segment while it is made.
pub(super) struct Way<'a> {
    program: &'a Program<'a>,
    pub(super) rows: Rows,
    /// The predicate, and the lanes that run instructions with PRED_SEL: `None` for all.
    predicate: Option<Value>,
    chosen: [Option<Value>; 2],
    /// The lanes that UPDATE_EXECUTE_MASK switches off.
    skip: Option<Value>,
}

fn row(place: Place) -> Row {
    Row::Group(place.number() as u32 * ROW)
}

impl<'a> Way<'a> {
    pub(super) fn new(program: &'a Program<'a>, exact: bool) -> Self {
        Way { program, rows: Rows::new(ACTIVE_ROW, exact), predicate: None, chosen: [None; 2], skip: None }
    }

    fn place(&mut self, place: Place) -> Value {
        match self.program.constants.iter().find(|(_, constant)| *constant == place) {
            Some((word, _)) => self.rows.word(*word),
            None => self.rows.read(row(place)),
        }
    }

    fn modified(&mut self, value: Value, keep: u32, flip: u32) -> Value {
        let raw = self.rows.is_raw(value);
        let keep = self.rows.word(keep);
        let value = self.rows.two(Two::And, value, keep);
        let flip = self.rows.word(flip);
        let value = self.rows.two(Two::Xor, value, flip);
        if raw { self.rows.raw(value) } else { value }
    }

    fn source(&mut self, operation: &Operation, number: usize) -> Value {
        let value = self.place(operation.src[number]);
        self.modified(value, operation.keep[number], operation.flip[number])
    }

    // Clauses.

    /// A clause begins: the predicate holds for all lanes.
    pub(super) fn begin(&mut self) {
        (self.predicate, self.chosen, self.skip) = (None, [None; 2], None);
    }

    /// A clause ends: what is not a register is dead. Gives the lanes that UPDATE_EXECUTE_MASK switches off, among the active
    /// ones; what it says of others means nothing.
    pub(super) fn end(&mut self) -> Value {
        let registers = self.program.registers as u32 * ROW;
        self.rows.forget(|row| matches!(row, Row::Group(place) if place >= registers));
        let none = self.rows.word(0);
        self.skip.take().unwrap_or(none)
    }

    /// The lanes of a set among the active ones; `None` for all of those.
    fn chosen(&self, set: u8) -> Option<Value> {
        match set {
            TRUE => self.chosen[0],
            FALSE => self.chosen[1],
            _ => None,
        }
    }

    /// The sets [`TRUE`] and [`FALSE`].
    fn sets(&mut self) {
        let all = self.rows.word(u32::MAX);
        let holds = self.predicate.unwrap_or(all);
        self.chosen = [Some(holds), Some(self.rows.not(holds))];
    }

    /// A PRED_SET* that holds for these lanes. (Lanes::decide)
    fn decide(&mut self, operation: &Operation, holds: Value) {
        let running = self.chosen(operation.set);
        if operation.update_pred {
            let holds = match running {
                Some(running) => {
                    let all = self.rows.word(u32::MAX);
                    let before = self.predicate.unwrap_or(all);
                    self.rows.strip.select(running, before, holds)
                }
                None => holds,
            };
            self.predicate = Some(holds);
        }
        if operation.update_execute_mask {
            let not = self.rows.not(holds);
            self.skip = Some(match running {
                Some(running) => self.rows.two(Two::And, running, not),
                None => not,
            });
        }
    }

    /// An operation's effect. `false` if there is no template for it; then the way means nothing any more.
    pub(super) fn operation(&mut self, operation: &Operation, template: Template) -> bool {
        self.effect(operation, template).is_some()
    }

    fn effect(&mut self, operation: &Operation, template: Template) -> Option<()> {
        let value = match template {
            Template::None => return None,
            Template::Sets => {
                self.sets();
                return Some(());
            }
            Template::Dot4 { ieee } => {
                let sum = self.dot4(operation, ieee);
                self.finish(operation, sum, false)
            }
            Template::Code(AluCode::Op2(code)) => match test(code) {
                Some(test) => {
                    let [a, b] = [0, 1].map(|number| self.source(operation, number));
                    let holds = self.holds(test, a, b);
                    self.decide(operation, holds);
                    let one = self.rows.word(lane::ONE);
                    self.rows.two(Two::AndNot, holds, one)
                }
                None => self.op2(code, operation)?,
            },
            Template::Code(AluCode::Op3(code)) => self.op3(code, operation)?,
            Template::Both(first, second) => {
                let value = self.op2(first, operation)?;
                let other = self.place(operation.src[2]);
                if let Some(test) = test(second) {
                    let holds = self.holds(test, value, other);
                    self.decide(operation, holds);
                }
                value
            }
        };
        let chosen = self.chosen(operation.set);
        self.rows.write(row(operation.dst), chosen, value);
        Some(())
    }

    // Floats.

    /// A result that the machine makes of floats by its usual rule of NaN: the first of the operands that is one, else its own.
    fn float(&mut self, value: Value, operands: &[Value]) -> Value {
        if !self.rows.exact {
            return self.rows.raw(value);
        }
        let mut made = self.rows.compare(predicate::UNORD, value, value);
        if let [a, rest @ ..] = operands {
            let b = rest.first().unwrap_or(a);
            let numbers = self.rows.compare(predicate::ORD, *a, *b);
            made = self.rows.two(Two::And, made, numbers);
        }
        let nan = self.rows.word(lane::NAN);
        let value = self.rows.strip.select(made, value, nan);
        self.rows.raw(value)
    }

    fn add(&mut self, a: Value, b: Value) -> Value {
        let sum = self.rows.two(Two::FAdd, a, b);
        self.float(sum, &[a, b])
    }

    fn multiply(&mut self, a: Value, b: Value) -> Value {
        let product = self.rows.two(Two::FMul, a, b);
        self.float(product, &[a, b])
    }

    /// Zero times anything is +0.
    fn legacy(&mut self, a: Value, b: Value) -> Value {
        let product = self.multiply(a, b);
        let zero = self.rows.word(0);
        let is_zero = |way: &mut Self, factor: Value| match way.rows.strip.is_constant(factor) {
            Some(word) => way.rows.word(if lane::flush(word) << 1 == 0 { u32::MAX } else { 0 }),
            None => way.rows.compare(predicate::EQ, factor, zero),
        };
        let (no_a, no_b) = (is_zero(self, a), is_zero(self, b));
        let none = self.rows.two(Two::Or, no_a, no_b);
        let product = self.rows.two(Two::AndNot, none, product);
        self.rows.raw(product)
    }

    fn product(&mut self, ieee: bool, a: Value, b: Value) -> Value {
        if ieee { self.multiply(a, b) } else { self.legacy(a, b) }
    }

    fn dot4(&mut self, operation: &Operation, ieee: bool) -> Value {
        let across = &self.program.tables.across[operation.number as usize];
        let mut sum = None;
        for slot in 0..4 {
            let [a, b] = [across[slot], across[slot + 4]].map(|source| {
                let value = self.place(source.place);
                self.modified(value, source.keep, source.flip)
            });
            let product = self.product(ieee, a, b);
            sum = Some(sum.map_or(product, |sum| self.add(sum, product)));
        }
        let zero = self.rows.word(0);
        sum.unwrap_or(zero)
    }

    /// OMOD or the factor of a MULADD, then CLAMP. `chosen`: the value is one of the operands, with its own bits.
    fn finish(&mut self, operation: &Operation, value: Value, chosen: bool) -> Value {
        let (mut value, mut chosen) = (value, chosen);
        if operation.factor != 1.0 {
            let factor = self.rows.word(operation.factor.to_bits());
            let scaled = self.rows.two(Two::FMul, value, factor);
            value = self.rows.raw(scaled);
            chosen = false;
        }
        if !operation.clamp {
            return value;
        }
        let (zero, one) = (self.rows.word(0), self.rows.word(lane::ONE));
        // A NaN becomes the second operand, as a zero does.
        let positive = self.rows.two(Two::FMax, value, zero);
        let mut clamped = self.rows.two(Two::FMin, positive, one);
        if chosen {
            let normal = self.rows.word(0x0080_0000);
            let (above, below) =
                (self.rows.two(Two::Greater, value, zero), self.rows.two(Two::Greater, normal, value));
            let denormal = self.rows.two(Two::And, above, below);
            clamped = self.rows.strip.select(denormal, clamped, value);
        }
        if operation.dx10_clamp {
            return clamped;
        }
        let nan = self.rows.compare(predicate::UNORD, value, value);
        let kept = self.rows.strip.select(nan, clamped, value);
        // The NaN may not be the machine's yet; what is a number is settled, and settling it again would change denormals.
        if chosen || self.rows.exact {
            return kept;
        }
        self.rows.strip.guard(nan);
        kept
    }

    fn holds(&mut self, test: Test, a: Value, b: Value) -> Value {
        if let Test::Float(predicate) = test {
            return self.rows.compare(predicate, a, b);
        }
        let (a, b) = (self.rows.settle(a), self.rows.settle(b));
        match test {
            Test::Float(_) | Test::Equal => self.rows.two(Two::Equal, a, b),
            Test::NotEqual => {
                let equal = self.rows.two(Two::Equal, a, b);
                self.rows.not(equal)
            }
            Test::Greater => self.rows.two(Two::Greater, a, b),
            Test::GreaterEqual => {
                let less = self.rows.two(Two::Greater, b, a);
                self.rows.not(less)
            }
            Test::GreaterUnsigned => {
                let at_most = self.at_least(b, a);
                self.rows.not(at_most)
            }
            Test::GreaterEqualUnsigned => self.at_least(a, b),
        }
    }

    /// a >= b, unsigned.
    fn at_least(&mut self, a: Value, b: Value) -> Value {
        let larger = self.rows.two(Two::MaxUnsigned, a, b);
        self.rows.two(Two::Equal, larger, a)
    }

    /// The integer part toward zero, the nearest that fits; 0 for NaN.
    fn whole(&mut self, a: Value) -> Value {
        let part = self.rows.one(One::Truncate, a);
        let limit = self.rows.word(0x4f00_0000); // 2^31
        let above = self.rows.compare(predicate::GE, a, limit);
        let part = self.rows.two(Two::Xor, part, above);
        let nan = self.rows.compare(predicate::UNORD, a, a);
        self.rows.two(Two::AndNot, nan, part)
    }

    fn whole_unsigned(&mut self, a: Value) -> Value {
        let (limit, twice) = (self.rows.word(0x4f00_0000), self.rows.word(0x4f80_0000)); // 2^31, 2^32
        let upper = self.rows.compare(predicate::GE, a, limit);
        let over = self.rows.two(Two::And, upper, limit);
        let rest = self.rows.two(Two::FSub, a, over);
        let part = self.rows.one(One::Truncate, rest);
        let top = self.rows.one(One::Shl(31), upper);
        let part = self.rows.two(Two::Xor, part, top);
        let zero = self.rows.word(0);
        let positive = self.rows.compare(predicate::GT, a, zero);
        let part = self.rows.two(Two::And, part, positive);
        let beyond = self.rows.compare(predicate::GE, a, twice);
        self.rows.two(Two::Or, part, beyond)
    }

    /// A shift by the low five bits of a count.
    fn shift(&mut self, by: Two, known: fn(u8) -> One, a: Value, count: Value) -> Value {
        if let Some(count) = self.rows.strip.is_constant(count) {
            return self.rows.one(known((count & 31) as u8), a);
        }
        let low = self.rows.word(31);
        let count = self.rows.two(Two::And, count, low);
        self.rows.two(by, a, count)
    }

    #[expect(clippy::too_many_lines, reason = "one arm an opcode")]
    fn op2(&mut self, code: Op2, operation: &Operation) -> Option<Value> {
        let a = self.source(operation, 0);
        let one_source = matches!(
            code,
            Op2::MOV
                | Op2::NOT_INT
                | Op2::FLT_TO_INT
                | Op2::FLT_TO_UINT
                | Op2::INT_TO_FLT
                | Op2::UINT_TO_FLT
                | Op2::RECIP_IEEE
                | Op2::SQRT_IEEE
                | Op2::FRACT
                | Op2::TRUNC
                | Op2::CEIL
                | Op2::RNDNE
                | Op2::FLOOR
        );
        let b = if one_source { a } else { self.source(operation, 1) };
        let finished = |way: &mut Self, value: Value| way.finish(operation, value, false);
        // Floats.
        let float = match code {
            Op2::ADD => Some(self.add(a, b)),
            Op2::MUL => Some(self.legacy(a, b)),
            Op2::MUL_IEEE => Some(self.multiply(a, b)),
            Op2::RECIP_IEEE => {
                let one = self.rows.word(lane::ONE);
                let value = self.rows.two(Two::FDiv, one, a);
                Some(self.float(value, &[a]))
            }
            Op2::SQRT_IEEE => {
                let value = self.rows.one(One::Sqrt, a);
                Some(self.float(value, &[a]))
            }
            Op2::FRACT => {
                let floor = self.rows.one(One::Round(1), a);
                let value = self.rows.two(Two::FSub, a, floor);
                Some(self.float(value, &[a]))
            }
            Op2::RNDNE | Op2::FLOOR | Op2::CEIL | Op2::TRUNC => {
                let mode = match code {
                    Op2::RNDNE => 0,
                    Op2::FLOOR => 1,
                    Op2::CEIL => 2,
                    _ => 3,
                };
                let value = self.rows.one(One::Round(mode), a);
                Some(self.float(value, &[a]))
            }
            Op2::INT_TO_FLT => {
                let a = self.rows.settle(a);
                Some(self.rows.one(One::Float, a))
            }
            Op2::UINT_TO_FLT => {
                let a = self.rows.settle(a);
                let low = self.rows.word(0xffff);
                let (high, low) = (self.rows.one(One::Shr(16), a), self.rows.two(Two::And, a, low));
                let (high, low) = (self.rows.one(One::Float, high), self.rows.one(One::Float, low));
                let unit = self.rows.word(65536f32.to_bits());
                let high = self.rows.two(Two::FMul, high, unit);
                Some(self.rows.two(Two::FAdd, high, low))
            }
            Op2::SETE | Op2::SETGT | Op2::SETGE | Op2::SETNE => {
                let predicate = match code {
                    Op2::SETE => predicate::EQ,
                    Op2::SETGT => predicate::GT,
                    Op2::SETGE => predicate::GE,
                    _ => predicate::NEQ,
                };
                let held = self.rows.compare(predicate, a, b);
                let one = self.rows.word(lane::ONE);
                Some(self.rows.two(Two::And, held, one))
            }
            _ => None,
        };
        if let Some(value) = float {
            return Some(finished(self, value));
        }
        match code {
            Op2::SETE_DX10 => return Some(self.rows.compare(predicate::EQ, a, b)),
            Op2::SETGT_DX10 => return Some(self.rows.compare(predicate::GT, a, b)),
            Op2::SETGE_DX10 => return Some(self.rows.compare(predicate::GE, a, b)),
            Op2::SETNE_DX10 => return Some(self.rows.compare(predicate::NEQ, a, b)),
            Op2::FLT_TO_INT => return Some(self.whole(a)),
            Op2::FLT_TO_UINT => return Some(self.whole_unsigned(a)),
            Op2::MOV if operation.factor == 1.0 && !operation.clamp => return Some(a),
            _ => {}
        }
        // Bits.
        let (a, b) = (self.rows.settle(a), self.rows.settle(b));
        let choice = match code {
            Op2::MOV => Some(a),
            Op2::MAX | Op2::MIN | Op2::MAX_DX10 | Op2::MIN_DX10 => {
                let predicate =
                    if let Op2::MAX | Op2::MAX_DX10 = code { predicate::GE } else { predicate::LT };
                let mut first = self.rows.compare(predicate, a, b);
                if let Op2::MAX_DX10 | Op2::MIN_DX10 = code {
                    let nan = self.rows.compare(predicate::UNORD, b, b);
                    first = self.rows.two(Two::Or, first, nan);
                }
                Some(self.rows.strip.select(first, b, a))
            }
            _ => None,
        };
        if let Some(value) = choice {
            return Some(self.finish(operation, value, true));
        }
        Some(match code {
            Op2::AND_INT => self.rows.two(Two::And, a, b),
            Op2::OR_INT => self.rows.two(Two::Or, a, b),
            Op2::XOR_INT => self.rows.two(Two::Xor, a, b),
            Op2::NOT_INT => self.rows.not(a),
            Op2::ADD_INT => self.rows.two(Two::Add, a, b),
            Op2::SUB_INT => self.rows.two(Two::Sub, a, b),
            Op2::MAX_INT => self.rows.two(Two::MaxSigned, a, b),
            Op2::MIN_INT => self.rows.two(Two::MinSigned, a, b),
            Op2::MAX_UINT => self.rows.two(Two::MaxUnsigned, a, b),
            Op2::MIN_UINT => self.rows.two(Two::MinUnsigned, a, b),
            Op2::SETE_INT => self.holds(Test::Equal, a, b),
            Op2::SETNE_INT => self.holds(Test::NotEqual, a, b),
            Op2::SETGT_INT => self.holds(Test::Greater, a, b),
            Op2::SETGE_INT => self.holds(Test::GreaterEqual, a, b),
            Op2::SETGT_UINT => self.holds(Test::GreaterUnsigned, a, b),
            Op2::SETGE_UINT => self.holds(Test::GreaterEqualUnsigned, a, b),
            Op2::ASHR_INT => self.shift(Two::Sar, One::Sar, a, b),
            Op2::LSHR_INT => self.shift(Two::Shr, One::Shr, a, b),
            Op2::LSHL_INT => self.shift(Two::Shl, One::Shl, a, b),
            Op2::MULLO_INT | Op2::MULLO_UINT => self.rows.two(Two::Mul, a, b),
            _ => return None,
        })
    }

    fn op3(&mut self, code: Op3, operation: &Operation) -> Option<Value> {
        let [a, b, c] = [0, 1, 2].map(|number| self.source(operation, number));
        let zero = self.rows.word(0);
        let choice = match code {
            Op3::CNDE => self.rows.compare(predicate::EQ, a, zero),
            Op3::CNDGT => self.rows.compare(predicate::GT, a, zero),
            Op3::CNDGE => self.rows.compare(predicate::GE, a, zero),
            Op3::CNDE_INT => self.holds(Test::Equal, a, zero),
            Op3::CNDGT_INT => self.holds(Test::Greater, a, zero),
            Op3::CNDGE_INT => self.holds(Test::GreaterEqual, a, zero),
            Op3::MULADD | Op3::MULADD_M2 | Op3::MULADD_M4 | Op3::MULADD_D2 => {
                return Some(self.muladd(false, [a, b, c], operation));
            }
            Op3::MULADD_IEEE | Op3::MULADD_IEEE_M2 | Op3::MULADD_IEEE_M4 | Op3::MULADD_IEEE_D2 => {
                return Some(self.muladd(true, [a, b, c], operation));
            }
            _ => return None,
        };
        let value = self.rows.choose(choice, c, b);
        Some(match code {
            Op3::CNDE_INT | Op3::CNDGT_INT | Op3::CNDGE_INT => value,
            _ => self.finish(operation, value, true),
        })
    }

    fn muladd(&mut self, ieee: bool, [a, b, c]: [Value; 3], operation: &Operation) -> Value {
        let product = self.product(ieee, a, b);
        let sum = self.add(product, c);
        self.finish(operation, sum, false)
    }
}

impl Path for Way<'_> {
    fn next(&self) -> Self {
        Way::new(self.program, self.rows.exact)
    }

    fn rows(&mut self) -> &mut Rows {
        &mut self.rows
    }

    fn into_rows(self) -> Rows {
        self.rows
    }
}

/// The comparison of a PRED_SET*.
fn test(code: Op2) -> Option<Test> {
    Some(match code {
        Op2::PRED_SETE => Test::Float(predicate::EQ),
        Op2::PRED_SETGT => Test::Float(predicate::GT),
        Op2::PRED_SETGE => Test::Float(predicate::GE),
        Op2::PRED_SETNE => Test::Float(predicate::NEQ),
        Op2::PRED_SETE_INT => Test::Equal,
        Op2::PRED_SETNE_INT => Test::NotEqual,
        Op2::PRED_SETGT_INT => Test::Greater,
        Op2::PRED_SETGE_INT => Test::GreaterEqual,
        Op2::PRED_SETGT_UINT => Test::GreaterUnsigned,
        Op2::PRED_SETGE_UINT => Test::GreaterEqualUnsigned,
        _ => return None,
    })
}
