//! Values of rows in the middle of a strip, for instructions in order and inside branches.
//!
//! [`Rows`] is a strip under construction: a machine adds its instructions. A row that is written is a value until
//! the end, where it is stored for the active lanes. In a branch it changes for the lanes that take the branch.
//!
//! A result of floats may be a denormal that the machine flushes, and on the fast path a NaN that is not the
//! machine's. Such values are *raw* (non-canonical). Operations on floats use them unchanged. All other uses of their
//! bits [canonicalize](Rows::settle) them.

use litemap::LiteMap;
use reconverge_isa::sets::{NumberSet, SortedSet};

use crate::strip::{One, Row, Strip, Two, Value, predicate};

/// The words of a row, or one of its bits.
type Part = (Row, Option<u8>);

/// Values that have changed. A row is stored as words or as bits, but not as both.
type Now = LiteMap<Part, Value>;

/// Code for some lanes only. At its end, the other lanes have the values from its entry.
#[derive(Clone, Debug)]
struct Scope {
    /// The lanes.
    mask: Value,
    /// The same lanes, with any bits for lanes that are not active at entry.
    held: Value,
    /// Row values at entry. For the else side, the values after the then side.
    before: Now,
    /// Row values at the branch.
    start: Now,
}

/// A strip under construction, for the fast or the slow path.
#[derive(Clone, Debug)]
pub struct Rows {
    /// The strip. Rows are read and written here, and truth values are kept in it.
    pub strip: Strip,
    /// Whether this is the slow path, for strips in which lanes leave or guards fail.
    pub exact: bool,
    /// Whether lanes leave on the fast path too: if it loads, computing a strip twice costs more than one path without
    /// leaving lanes saves (spmv of R700 then takes 1.5 times the time, an AMD EPYC).
    pub leaves: bool,
    mask: Row,
    /// The lanes that are active at the start of the node.
    entry: Value,
    now: Now,
    scopes: Vec<Scope>,
    /// Whether the code leaves denormals as results that the machine flushes.
    denormals: bool,
    raw: NumberSet,
    /// Raw values that the fast path guards.
    guarded: NumberSet,
    /// Rows whose old words have been needed, and those that were written as a whole before.
    needed: SortedSet<Row>,
    covered: SortedSet<Row>,
    left: bool,
}

impl Rows {
    /// Returns unchanged rows. `mask` is the row of the active lanes. The code leaves denormals as results.
    pub fn new(mask: Row, exact: bool) -> Rows {
        Rows::on(Strip::new(), mask, exact, true)
    }

    /// Returns unchanged rows on an empty strip. `denormals`: the code leaves denormals as results.
    pub fn on(mut strip: Strip, mask: Row, exact: bool, denormals: bool) -> Rows {
        let entry = strip.row(mask);
        Rows {
            strip,
            exact,
            leaves: exact,
            mask,
            entry,
            now: Now::new(),
            scopes: Vec::new(),
            denormals,
            raw: NumberSet::new(),
            guarded: NumberSet::new(),
            needed: SortedSet::new(),
            covered: SortedSet::new(),
            left: false,
        }
    }

    /// Computes an operation of two values.
    pub fn two(&mut self, op: Two, a: Value, b: Value) -> Value {
        self.strip.two(op, a, b)
    }

    /// Computes an operation of one value.
    pub fn one(&mut self, op: One, a: Value) -> Value {
        self.strip.one(op, a)
    }

    /// Returns a constant.
    pub fn word(&mut self, word: u32) -> Value {
        self.strip.constant(word)
    }

    /// Inverts the bits of a value.
    pub fn not(&mut self, a: Value) -> Value {
        self.strip.not(a)
    }

    /// Compares floats.
    pub fn compare(&mut self, predicate: u8, a: Value, b: Value) -> Value {
        self.strip.two(Two::FCompare(predicate), a, b)
    }

    /// Returns the row of the lanes that are active at entry.
    pub(crate) fn mask_row(&self) -> Row {
        self.mask
    }

    /// Returns the lanes that are active here.
    pub fn mask(&self) -> Value {
        self.scopes.last().map_or(self.entry, |scope| scope.mask)
    }

    /// Returns the rows that the node writes before it needs their old values.
    pub fn covered(&self) -> &SortedSet<Row> {
        &self.covered
    }

    /// Returns the value of a row here.
    pub fn read(&mut self, row: Row) -> Value {
        self.part((row, None))
    }

    /// Returns the low bits of a row here, as truth values.
    pub fn read_bits<const N: usize>(&mut self, row: Row) -> [Value; N] {
        std::array::from_fn(|bit| self.part((row, Some(bit as u8))))
    }

    fn part(&mut self, (row, bit): Part) -> Value {
        if let Some(value) = self.now.get(&(row, bit)) {
            return *value;
        }
        if !self.covered.contains(&row) {
            self.needed.insert(row);
        }
        let value = self.strip.row(row);
        bit.map_or(value, |bit| self.strip.one(One::Shl(31 - bit), value))
    }

    /// Writes a row for the active lanes, or those of them for which the predicate holds.
    pub fn write(&mut self, row: Row, predicate: Option<Value>, value: Value) {
        self.write_part((row, None), predicate, value);
    }

    /// Writes all bits of a row as truth values, like [`Rows::write`]. Such a row is not read or written as words.
    pub fn write_bits<const N: usize>(&mut self, row: Row, predicate: Option<Value>, bits: [Value; N]) {
        for (bit, value) in bits.into_iter().enumerate() {
            self.write_part((row, Some(bit as u8)), predicate, value);
        }
    }

    fn write_part(&mut self, part: Part, predicate: Option<Value>, value: Value) {
        let row = part.0;
        let value = match predicate {
            None => {
                if self.scopes.is_empty() && !self.left && !self.needed.contains(&row) {
                    self.covered.insert(row);
                }
                value
            }
            Some(predicate) => {
                let old = self.part(part);
                self.choose(predicate, old, value)
            }
        };
        self.now.insert(part, value);
    }

    /// Returns the rows that have changed as words, and their values here.
    pub fn changed(&self) -> impl Iterator<Item = (Row, Value)> + '_ {
        self.now.iter().filter_map(|((row, bit), value)| bit.is_none().then_some((*row, *value)))
    }

    /// Removes the stores of rows that are not read any more.
    pub fn forget(&mut self, dead: impl Fn(Row) -> bool) {
        self.now.retain(|(row, _), _| !dead(*row));
    }

    // Floats.

    /// Marks the value as raw.
    pub fn raw(&mut self, value: Value) -> Value {
        if self.strip.is_constant(value).is_none() {
            self.raw.insert(value.0);
        }
        value
    }

    /// Returns whether the value is raw.
    pub fn is_raw(&self, value: Value) -> bool {
        self.raw.contains(value.0)
    }

    /// Returns the canonical bits of a value: denormals become zeros of their sign, and on the fast path a guard
    /// fails for a NaN.
    pub fn settle(&mut self, value: Value) -> Value {
        if !self.raw.contains(value.0) {
            return value;
        }
        if !self.exact && self.guarded.insert(value.0) {
            let nan = self.strip.two(Two::FCompare(predicate::UNORD), value, value);
            self.strip.guard(nan);
        }
        if !self.denormals {
            self.raw.remove(value.0);
            return value;
        }
        let minus_zero = self.strip.constant(1 << 31);
        self.strip.two(Two::FAdd, value, minus_zero)
    }

    /// [`Strip::select`] of values that may be raw. The result is canonical if the bits of raw values differ from the
    /// machine's.
    pub fn choose(&mut self, condition: Value, other: Value, then: Value) -> Value {
        if other == then {
            return then;
        }
        if !self.denormals {
            // The guard for a NaN can be checked later.
            let value = self.strip.select(condition, other, then);
            return if self.is_raw(other) || self.is_raw(then) { self.raw(value) } else { value };
        }
        let (other, then) = (self.settle(other), self.settle(then));
        self.strip.select(condition, other, then)
    }

    // Flow.

    /// Opens a branch: the lanes of `held` run. Its bits of inactive lanes are ignored.
    pub fn open(&mut self, word: u32, held: Value) {
        self.strip.gather(word, held);
        let active = self.mask();
        let mask = self.strip.two(Two::And, held, active);
        self.scopes.push(Scope { mask, held, before: self.now.clone(), start: self.now.clone() });
    }

    /// Starts the else side: the other lanes run.
    pub fn other(&mut self) {
        let Some(mut scope) = self.scopes.pop() else { return };
        let active = self.mask();
        let mask = self.strip.two(Two::AndNot, scope.mask, active);
        scope.before = std::mem::replace(&mut self.now, scope.start.clone());
        let held = self.strip.not(scope.held);
        self.scopes.push(Scope { mask, held, ..scope });
    }

    /// Closes the branch: all its lanes reconverge.
    pub fn close(&mut self) {
        if let Some(scope) = self.scopes.pop() {
            self.merge(scope);
        }
    }

    /// Merges values at the end of a scope. The lanes of the scope keep their values, and the others get those from
    /// its entry. Lanes that are inactive at entry are don't-cares: an outer scope, or the end, sets their values.
    fn merge(&mut self, Scope { held, before, .. }: Scope) {
        let now = std::mem::take(&mut self.now);
        let parts: SortedSet<Part> = now.keys().chain(before.keys()).copied().collect();
        for part in parts {
            let mut of = |all: &Now| match all.get(&part) {
                Some(value) => *value,
                None => self.part(part),
            };
            let (other, then) = (of(&before), of(&now));
            let value = self.choose(held, other, then);
            self.now.insert(part, value);
        }
    }

    /// Lets the active lanes of `held` leave. No branch may be open.
    pub fn leave(&mut self, word: u32, held: Value) {
        if !self.leaves {
            self.strip.guard(held);
            // Later writes do not count as covering: the slow path still needs the old values.
            self.left = true;
            return;
        }
        let active = self.mask();
        let leaving = self.strip.two(Two::And, held, active);
        self.strip.leave(word, leaving);
        let (mask, held) = (self.strip.two(Two::AndNot, held, active), self.strip.not(held));
        self.scopes.push(Scope { mask, held, before: self.now.clone(), start: Now::new() });
    }

    /// Ends the node: stores the rows that have changed, except for `dropped` ones.
    pub(crate) fn finish(mut self, dropped: &SortedSet<Row>) -> Strip {
        let mask = self.mask();
        while let Some(scope) = self.scopes.pop() {
            self.merge(scope);
        }
        let zero = self.strip.constant(0);
        let mut packed = zero;
        let now = std::mem::take(&mut self.now).into_iter();
        let mut parts = now.filter(|((row, _), _)| !dropped.contains(row)).peekable();
        while let Some(((row, bit), value)) = parts.next() {
            let value = match bit {
                None => self.settle(value),
                Some(bit) => {
                    let value = self.strip.one(One::Shr(31), value);
                    let value = self.strip.one(One::Shl(bit), value);
                    packed = self.strip.two(Two::Or, packed, value);
                    if parts.peek().is_some_and(|((next, _), _)| *next == row) {
                        continue;
                    }
                    std::mem::replace(&mut packed, zero)
                }
            };
            let old = self.strip.row(row);
            let value = self.choose(self.entry, old, value);
            self.strip.store(row, value);
        }
        if mask != self.entry {
            let words = self.strip.one(One::Sar(31), mask);
            self.strip.store(self.mask, words);
        }
        self.strip
    }
}
