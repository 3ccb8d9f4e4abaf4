//! Compiles templates of operations to values of the generated code.
//!
//! A [`Way`] is the fast or the slow path of a node under construction. [`Way::operation`] emits code for an operation
//! of the fast engine. The code computes the functions of [`crate::lane`] for all lanes of a vector at once.

use reconverge_jit::{Path, Row, Rows, Two, Value, predicate};

use super::ACTIVE_ROW;
use crate::fast::kernels::{self, Emitter};
use crate::fast::lanes::{FALSE, Operation, Place, TRUE};
use crate::fast::lower::{Lowered, Template};
use crate::fast::nodes;
use crate::lane;
use crate::meaning::AluCode;

/// Size of a row in bytes.
const ROW: u32 = 4 * crate::chip::LANES as u32;

/// The fast or the slow path of a node under construction.
pub(super) struct Way<'a> {
    lowered: &'a Lowered,
    pub(super) rows: Rows,
    /// The predicate, and the lanes that run instructions with each PRED_SEL. `None` means all lanes.
    predicate: Option<Value>,
    chosen: [Option<Value>; 2],
    /// The lanes that UPDATE_EXECUTE_MASK disables.
    skip: Option<Value>,
}

fn row(place: Place) -> Row {
    Row::Group(place.number() as u32 * ROW)
}

impl<'a> Way<'a> {
    pub(super) fn new(lowered: &'a Lowered, exact: bool) -> Self {
        Way { lowered, rows: Rows::new(ACTIVE_ROW, exact), predicate: None, chosen: [None; 2], skip: None }
    }

    fn place(&mut self, place: Place) -> Value {
        match self.lowered.constants.iter().find(|(_, constant)| *constant == place) {
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

    // Begin and end of clauses.

    /// Begins a clause. The predicate is then 1 for all lanes.
    pub(super) fn begin(&mut self) {
        (self.predicate, self.chosen, self.skip) = (None, [None; 2], None);
    }

    /// Ends a clause, after which only the rows of registers are live. Returns the lanes that UPDATE_EXECUTE_MASK
    /// disables. The result is meaningful only for active lanes.
    pub(super) fn end(&mut self) -> Value {
        let registers = self.lowered.registers as u32 * ROW;
        self.rows.forget(|row| matches!(row, Row::Group(place) if place >= registers));
        let none = self.rows.word(0);
        self.skip.take().unwrap_or(none)
    }

    /// Returns the active lanes that belong to a set, or `None` if all active lanes do.
    fn chosen(&self, set: u8) -> Option<Value> {
        match set {
            TRUE => self.chosen[0],
            FALSE => self.chosen[1],
            _ => None,
        }
    }

    /// Emits code that computes the sets of lanes [`TRUE`] and [`FALSE`].
    fn sets(&mut self) {
        let all = self.rows.word(u32::MAX);
        let holds = self.predicate.unwrap_or(all);
        self.chosen = [Some(holds), Some(self.rows.not(holds))];
    }

    /// Emits code for a PRED_SET* whose test holds for the lanes `holds`, as `Lanes::decide` computes it.
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

    /// Emits code for an operation. Returns `false` if the operation has no template. The node is then invalid.
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
            Template::Code(code) => self.code(code, operation)?,
            Template::Both(first, second) => {
                let value = self.code(AluCode::Op2(first), operation)?;
                let other = self.place(operation.src[2]);
                if let Emitter::Test(holds) = kernels::emitter(AluCode::Op2(second))? {
                    let holds = holds(&mut self.rows, [value, other, other]);
                    self.decide(operation, holds);
                }
                value
            }
        };
        let chosen = self.chosen(operation.set);
        self.rows.write(row(operation.dst), chosen, value);
        Some(())
    }

    /// Emits code for one opcode and returns its result. Returns `None` if the opcode has no emitter.
    fn code(&mut self, code: AluCode, operation: &Operation) -> Option<Value> {
        let emitter = kernels::emitter(code)?;
        let sources = [0, 1, 2].map(|number| self.source(operation, number));
        Some(match emitter {
            Emitter::Float(emit) => {
                let value = emit(&mut self.rows, sources);
                self.finish(operation, value, false)
            }
            Emitter::Choice(emit) => {
                let value = emit(&mut self.rows, sources);
                if operation.factor == 1.0 && !operation.clamp {
                    return Some(value);
                }
                let value = self.rows.settle(value);
                self.finish(operation, value, true)
            }
            Emitter::Compare(emit) => emit(&mut self.rows, sources),
            Emitter::Bits(emit) => {
                let sources = sources.map(|value| self.rows.settle(value));
                emit(&mut self.rows, sources)
            }
            Emitter::Test(emit) => {
                let holds = emit(&mut self.rows, sources);
                self.decide(operation, holds);
                let one = self.rows.word(lane::ONE);
                self.rows.two(Two::AndNot, holds, one)
            }
        })
    }

    fn dot4(&mut self, operation: &Operation, ieee: bool) -> Value {
        let across = &self.lowered.tables.across[operation.number as usize];
        let mut sum = None;
        for slot in 0..4 {
            let [a, b] = [across[slot], across[slot + 4]].map(|source| {
                let value = self.place(source.place);
                self.modified(value, source.keep, source.flip)
            });
            let product = if ieee { nodes::product } else { nodes::legacy_product };
            let product = product(&mut self.rows, a, b);
            sum = Some(sum.map_or(product, |sum| nodes::add(&mut self.rows, sum, product)));
        }
        let zero = self.rows.word(0);
        sum.unwrap_or(zero)
    }

    /// Applies OMOD or the factor of a MULADD, then CLAMP. `chosen` states whether the value is an unchanged copy of
    /// one of the operands.
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
        // If the value is a NaN, the host returns the second operand, which is zero.
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
        // A computed NaN may not be canonical yet, so the slow path must compute it. All other values are already
        // canonical. Canonicalizing them again would change denormals.
        if chosen || self.rows.exact {
            return kept;
        }
        self.rows.strip.guard(nan);
        kept
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
