//! Emits code for operations that have a template. The emitted code stores the result of each operation in a value of
//! the generated code.
//!
//! A [`Way`] is the fast or the slow path of a node under construction. [`Way::operation`] emits code for an operation
//! of the fast engine. The emitted code computes the functions of [`crate::lane`] for all lanes of a vector at once.

use std::ops::RangeInclusive;

use reconverge_jit::{Inside, Path, Row, Rows, Strip, Two, Value, predicate};
use reconverge_simt::word::Word;

use super::{ACTIVE_ROW, PLACES_ROW};
use crate::fast::kernels::{self, Emitter};
use crate::fast::lanes::{FALSE, Operation, Place, TRUE};
use crate::fast::lower::{Chosen, FetchInfo, FetchWork, Fetching, Lowered, Register, Template, Vertex};
use crate::fast::nodes;
use crate::format::{Number, Swap};
use crate::lane;
use crate::meaning::AluCode;

/// Size of a row in bytes.
const ROW: u32 = 4 * crate::chip::LANES as u32;

/// Bytes of a register: four rows.
const REGISTER: u32 = 4 * ROW;

/// Permitted sizes, in bytes, of a buffer from which compiled code loads. The minimum is 4 because the code loads whole
/// words.
pub(super) const FITS: RangeInclusive<usize> = 4..=i32::MAX as usize;

/// The buffer elements that the lanes fetch, one element per lane.
struct Elements<'a> {
    vertex: &'a Vertex,
    site: u32,
    /// For each lane, the offset of the lane's element in the buffer, in bytes. The offset is valid only for the lanes
    /// in `lanes`. In these lanes, the offset fits in 32 bits. The elements of all other lanes are outside every
    /// buffer.
    at: Value,
    lanes: Value,
}

/// The fast or the slow path of a node under construction.
pub(super) struct Way<'a> {
    lowered: &'a Lowered,
    pub(super) rows: Rows,
    /// The predicate of each lane. `None` means that the predicate is true for all lanes.
    predicate: Option<Value>,
    /// The sets [`TRUE`] and [`FALSE`]. `None` means all active lanes.
    chosen: [Option<Value>; 2],
    /// The lanes that UPDATE_EXECUTE_MASK disables.
    skip: Option<Value>,
}

fn is_vertex(fetching: &Fetching) -> bool {
    matches!(fetching.work, FetchWork::Vertex(_))
}

fn row(place: Place) -> Row {
    Row::Group(place.number() as u32 * ROW)
}

impl<'a> Way<'a> {
    pub(super) fn new(lowered: &'a Lowered, exact: bool) -> Self {
        // The window of the strip contains the registers that an index can select.
        let strip = Strip::with_window(lowered.tables.indexed * REGISTER);
        let mut rows = Rows::on(strip, ACTIVE_ROW, exact, true);
        let fetches = |info: &FetchInfo| info.fetching.as_ref().is_some_and(is_vertex);
        rows.leaves |= lowered.fetches.iter().any(fetches);
        Way { lowered, rows, predicate: None, chosen: [None; 2], skip: None }
    }

    fn place(&mut self, place: Place) -> Value {
        match self.lowered.constants.iter().find(|(_, constant)| *constant == place) {
            Some((word, _)) => self.rows.word(*word),
            None => self.rows.read(row(place)),
        }
    }

    fn modified(&mut self, value: Value, keep: u32, flip: u32) -> Value {
        let raw = self.rows.is_raw(value);
        let (keep, flip) = (self.rows.word(keep), self.rows.word(flip));
        let value = self.rows.two(Two::And, value, keep);
        let value = self.rows.two(Two::Xor, value, flip);
        if raw { self.rows.raw(value) } else { value }
    }

    fn source(&mut self, operation: &Operation, number: usize) -> Value {
        let value = self.place(operation.src[number]);
        self.modified(value, operation.keep[number], operation.flip[number])
    }

    // The methods that begin and end a clause.

    /// Begins a clause. When a clause begins, the predicate is 1 for all lanes.
    pub(super) fn begin(&mut self) {
        (self.predicate, self.chosen, self.skip) = (None, [None; 2], None);
    }

    /// Ends a clause. After the clause, only the rows of registers are live. Returns the lanes that UPDATE_EXECUTE_MASK
    /// disables. The result is meaningful only for active lanes.
    pub(super) fn end(&mut self) -> Value {
        let registers = self.lowered.registers as u32 * ROW;
        self.rows.forget(|row| matches!(row, Row::Group(place) if place >= registers));
        let none = self.rows.word(0);
        self.skip.take().unwrap_or(none)
    }

    /// Returns the active lanes that belong to a set. If every active lane belongs to the set, the function returns
    /// `None`.
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

    /// Emits code for a PRED_SET* whose test holds for the lanes `holds`. The emitted code has the same effect as
    /// `Lanes::decide`.
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

    /// Emits code for an operation. Returns `false` if the operation has no template. In this case, the node is
    /// invalid.
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
            Template::Indexed => self.indexed(operation)?,
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

    /// Emits code that computes one opcode. Returns the value of the computed result. Returns `None` if the opcode has
    /// no emitter.
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
            Emitter::Bits(emit) => emit(&mut self.rows, sources),
            Emitter::Test(emit) => {
                let holds = emit(&mut self.rows, sources);
                self.decide(operation, holds);
                let one = self.rows.word(lane::ONE);
                self.rows.two(Two::AndNot, holds, one)
            }
        })
    }

    // Vertex fetches.

    /// Emits code for a vertex fetch from the buffer of a site. Returns `None` if this kind of fetch has no template.
    pub(super) fn fetch(&mut self, fetching: &Fetching, site: u32) -> Option<()> {
        let vertex = match &fetching.work {
            FetchWork::Nothing => return Some(()),
            FetchWork::Vertex(vertex) if vertex.conversion.swap == Swap::None => vertex,
            _ => return None,
        };
        let [[Register::Fixed(index), ..]] = fetching.src[..] else { return None };
        let [dst] = fetching.dst[..] else { return None };
        if fetching.whole_quad || vertex.stride == 0 {
            return None;
        }
        let index = self.place(index);
        let index = self.rows.settle(index);
        let elements = self.elements(vertex, site, index);
        for (register, chosen) in dst.into_iter().flatten() {
            let Register::Fixed(place) = register else { return None };
            let value = match chosen {
                Chosen::Word(word) => self.rows.word(word),
                Chosen::Component(component) => self.component(&elements, component)?,
            };
            self.rows.write(row(place), None, value);
        }
        Some(())
    }

    /// Returns the buffer elements with the indices `index`.
    fn elements<'v>(&mut self, vertex: &'v Vertex, site: u32, index: Value) -> Elements<'v> {
        let (stride, offset) = (vertex.stride as u32, vertex.offset as u32);
        let most = (u32::MAX - offset - (vertex.conversion.layout.bytes - 1)) / stride;
        let mask = self.rows.mask();
        let (at, lanes) = self.rows.emit([index, mask], |[index, mask]| {
            let number = index.plus(index.same(vertex.base));
            let at = number.times(number.same(stride)).plus(number.same(offset));
            let fits =
                if most < u32::MAX { number.same(most).at_least_unsigned(number) & mask } else { mask };
            (at.value(), fits.value())
        });
        Elements { vertex, site, at, lanes }
    }

    /// Returns one component of the elements. For a lane whose component is not completely inside the buffer, the
    /// result is [`Vertex::outside`].
    fn component(&mut self, elements: &Elements<'_>, component: usize) -> Option<Value> {
        let (layout, numbers) = (elements.vertex.conversion.layout, elements.vertex.conversion.numbers);
        let (first, width, float) = layout.part(component)?;
        let is_word = float || matches!(numbers, Number::UnsignedInt | Number::SignedInt);
        let (value, inside) = match width {
            // The format does not store this component. If the first byte of the element is in the buffer, the
            // component has its fill value.
            0 => (self.rows.word(layout.fill(component, numbers)), self.inside(elements, elements.at, 1)),
            32 if is_word => {
                let place = self.after(elements.at, first / 8);
                let [word, inside] = self.rows.strip.site_load(elements.site, place, elements.lanes);
                if elements.vertex.outside == 0 {
                    return Some(word);
                }
                (word, inside)
            }
            width if float || width > 16 => return None,
            width => {
                let place = self.after(elements.at, first / 32 * 4);
                let (first, width) = (first as u8 % 32, width);
                let word = self.bytes(elements, place);
                let value = self.number(word, first, width, numbers);
                let is_byte = first % 8 + width <= 8;
                if is_byte
                    && elements.vertex.outside == 0
                    && numbers != (Number::SignedNorm { no_zero: true })
                {
                    // Bytes outside the buffer are zeros, so the value of a component outside the buffer is already 0.
                    return Some(value);
                }
                (value, self.inside(elements, place, (first + width).div_ceil(8)))
            }
        };
        let outside = self.rows.word(elements.vertex.outside);
        Some(match elements.vertex.outside {
            0 => self.rows.two(Two::And, inside, value),
            _ => self.rows.strip.select(inside, outside, value),
        })
    }

    /// Returns the offsets that are `distance` bytes after the offsets `place`.
    fn after(&mut self, place: Value, distance: u32) -> Value {
        self.rows.emit([place], |[place]| place.plus(place.same(distance)).value())
    }

    /// Returns the lanes for which the buffer contains `bytes` bytes at the offset `place`. `bytes` is at most four.
    fn inside(&mut self, elements: &Elements<'_>, place: Value, bytes: u8) -> Value {
        let last = self.rows.strip.last_of_site(elements.site);
        self.rows.emit([place, last, elements.lanes], |[place, last, lanes]| {
            let last = last.plus(last.same(4 - u32::from(bytes.min(4))));
            (last.at_least_unsigned(place) & lanes).value()
        })
    }

    /// Returns the four bytes at the offset `place` as a word. Bytes that are not in the buffer are zeros.
    fn bytes(&mut self, elements: &Elements<'_>, place: Value) -> Value {
        let last = self.rows.strip.last_of_site(elements.site);
        let whole = self.rows.two(Two::MinUnsigned, place, last);
        let [word, _] = self.rows.strip.site_load(elements.site, whole, elements.lanes);
        self.rows.emit([word, place, whole], |[word, place, whole]| {
            // The shift removes the bytes outside the buffer from the word. If all four bytes are outside, the shift
            // removes all 32 bits.
            let beyond = place.minus(whole).min_unsigned(place.same(4));
            word.right(beyond.left(beyond.same(3))).value()
        })
    }

    /// Converts up to 16 bits of a word to a number. [`crate::format::convert`] returns the same number. `convert`
    /// divides doubles, and this function divides floats. Both quotients round to the same float.
    fn number(&mut self, word: Value, first: u8, width: u8, numbers: Number) -> Value {
        let codes = u32::MAX >> (32 - width);
        let (dividend, divisor) = self.rows.emit([word], |[word]| {
            let shifted = |bits: u8| word.same(bits.into());
            let bits = match numbers {
                Number::UnsignedInt | Number::UnsignedNorm | Number::UnsignedScaled => {
                    word.right(shifted(first)) & word.same(codes)
                }
                Number::SignedInt | Number::SignedNorm { .. } | Number::SignedScaled => {
                    word.left(shifted(32 - first - width)).right_signed(shifted(32 - width))
                }
            };
            let (dividend, divisor) = match numbers {
                Number::UnsignedInt | Number::SignedInt => return (bits.value(), None),
                Number::UnsignedScaled | Number::SignedScaled => (bits, None),
                Number::UnsignedNorm => (bits, Some(codes)),
                Number::SignedNorm { no_zero: false } => (bits, Some((codes >> 1).max(1))),
                Number::SignedNorm { no_zero: true } => (bits.plus(bits).plus(bits.same(1)), Some(codes)),
            };
            (dividend.to_float().value(), divisor)
        });
        let Some(divisor) = divisor else { return dividend };
        let (divisor, least) =
            (self.rows.word((divisor as f32).to_bits()), self.rows.word((-1.0_f32).to_bits()));
        let quotient = self.rows.two(Two::FDiv, dividend, divisor);
        self.rows.two(Two::FMax, quotient, least)
    }

    // Access to registers relative to AR.

    /// Returns R[n + AR] for each lane. If some lane's register R[n + AR] does not exist, the node does not run.
    fn indexed(&mut self, operation: &Operation) -> Option<Value> {
        let (first, chan) = (operation.number >> 2, operation.number & 3);
        let index = self.place(operation.src[0]);
        let index = self.rows.settle(index);
        let first = self.rows.word(first);
        let register = self.rows.two(Two::Add, index, first);
        let inside = self.reach(register, chan)?;
        let mut word = self.rows.strip.window_load(inside);
        // Memory does not contain the values that this node has computed. So computed values replace the loaded words.
        let number = |row: Row| match row {
            Row::Group(place) if place < self.lowered.tables.indexed * REGISTER => Some(place / ROW),
            _ => None,
        };
        let changed = self.rows.changed().filter_map(|(row, value)| Some((number(row)?, value)));
        let of_chan: Vec<(u32, Value)> = changed.filter(|(number, _)| number % 4 == chan).collect();
        for (number, value) in of_chan {
            let number = self.rows.word(number / 4);
            let same = self.rows.two(Two::Equal, register, number);
            word = self.rows.choose(same, word, value);
        }
        Some(word)
    }

    /// Returns the access to component `chan` of the registers with the numbers `register`. The access is out of bounds
    /// for lanes whose register does not exist.
    fn reach(&mut self, register: Value, chan: u32) -> Option<Inside> {
        let (places, mask, limit) =
            (self.rows.read(PLACES_ROW), self.rows.mask(), self.lowered.tables.indexed);
        let base = self.rows.emit([register, places], |[register, places]| {
            let least = register.min_unsigned(register.same(limit));
            least.times(least.same(REGISTER)).plus(places).value()
        });
        self.rows.strip.inside(base, (chan * ROW) as i32, mask)
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

    /// Multiplies a value by OMOD or by the factor of a MULADD. Then applies CLAMP to the product. `chosen`: whether
    /// the value is an unchanged copy of an operand.
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
        // If the value is a NaN, the host's maximum instruction returns its second operand. The second operand is zero.
        let positive = self.rows.two(Two::FMax, value, zero);
        let mut clamped = self.rows.two(Two::FMin, positive, one);
        if chosen {
            let denormal = self.rows.emit([value], |[value]| {
                (value.greater(value.same(0)) & value.same(0x0080_0000).greater(value)).value()
            });
            clamped = self.rows.strip.select(denormal, clamped, value);
        }
        if operation.dx10_clamp {
            return clamped;
        }
        let nan = self.rows.compare(predicate::UNORD, value, value);
        let kept = self.rows.strip.select(nan, clamped, value);
        // A computed NaN may not have the canonical bits, so the slow path must compute the value. All other values
        // already have canonical bits. Converting a denormal to canonical bits again would change the denormal.
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
