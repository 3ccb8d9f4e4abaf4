//! Tracks the values of rows within a strip, outside and inside branches.
//!
//! [`Rows`] is a strip under construction. A machine adds instructions to the strip. A written row stays a value until
//! the end of the strip. The end of the strip stores the value for the active lanes. In a branch, a write changes the
//! row only for the lanes that take the branch.
//!
//! The result of a float operation may be a denormal that the machine flushes. On the fast path, the result may also be
//! a NaN whose bits differ from the machine's NaN. Such values are *raw* (non-canonical). Float operations use raw
//! values unchanged. Every operation that uses the bits in another way first [canonicalizes](Rows::settle) the value.

use litemap::LiteMap;
use reconverge_isa::sets::{NumberSet, SortedSet};

use crate::strip::{One, Row, Strip, Two, Value, predicate};

/// A part of a row: the whole words, or one bit of each word. The `u8` is the number of the bit.
type Part = (Row, Option<u8>);

/// The changed parts of rows and their values. A row changes either as words or as bits, never as both.
type Now = LiteMap<Part, Value>;

/// A scope is code that only some lanes run. The values of all lanes outside the scope do not change from the entry to
/// the end of the scope.
#[derive(Clone, Debug)]
struct Scope {
    /// The active lanes that run the scope.
    mask: Value,
    /// The lanes that run the scope. Unlike in `mask`, the bits of lanes that are not active at entry are arbitrary.
    held: Value,
    /// Values of the lanes outside the scope at the end of the scope. On the then side, the field contains the values
    /// at the entry of the scope. On the else side, the field contains the values at the end of the then side.
    before: Now,
    /// Values of the rows at the start of the branch.
    start: Now,
}

/// A strip under construction, for the fast or the slow path.
#[derive(Clone, Debug)]
pub struct Rows {
    /// The strip that is under construction.
    pub strip: Strip,
    /// Whether this is the slow path, which handles strips in which lanes leave or guards fail.
    pub exact: bool,
    /// Whether lanes also leave on the fast path. If `false`, generated code computes a strip with leaving lanes twice.
    /// In a node that loads, the second computation costs more than the simpler fast path saves. For example, `false`
    /// makes the kernel `spmv` of R700 take 1.5 times as long (an AMD EPYC).
    pub leaves: bool,
    mask: Row,
    /// The lanes that are active at the start of the node.
    entry: Value,
    now: Now,
    scopes: Vec<Scope>,
    /// Whether operations of the code can return denormals that the machine flushes.
    denormals: bool,
    raw: NumberSet,
    /// Raw values for which the fast path already has a guard that fails for a NaN.
    guarded: NumberSet,
    /// The rows whose old words are read.
    needed: SortedSet<Row>,
    /// The rows that are written for all lanes before any read.
    covered: SortedSet<Row>,
    left: bool,
}

impl Rows {
    /// Creates a new strip. No row has changed yet. `mask` is the row of the active lanes. Operations of the code can
    /// return denormals.
    pub fn new(mask: Row, exact: bool) -> Rows {
        Rows::on(Strip::new(), mask, exact, true)
    }

    /// Uses the empty strip `strip`. No row has changed yet. `denormals` states whether operations of the code can
    /// return denormals that the machine flushes.
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

    /// Adds an operation on two values, and returns its result.
    pub fn two(&mut self, op: Two, a: Value, b: Value) -> Value {
        self.strip.two(op, a, b)
    }

    /// Adds an operation on one value. Returns the result of the operation.
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

    /// Returns the lanes that are active at this point.
    pub fn mask(&self) -> Value {
        self.scopes.last().map_or(self.entry, |scope| scope.mask)
    }

    /// Returns the rows that the node overwrites without an earlier read of the row.
    pub fn covered(&self) -> &SortedSet<Row> {
        &self.covered
    }

    /// Returns the value of a row at this point.
    pub fn read(&mut self, row: Row) -> Value {
        self.part((row, None))
    }

    /// Returns the low bits of a row at this point, as truth values.
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

    /// Writes a row for the active lanes. With a predicate, writes the row only for the active lanes whose predicate is
    /// true.
    pub fn write(&mut self, row: Row, predicate: Option<Value>, value: Value) {
        self.write_part((row, None), predicate, value);
    }

    /// Writes a row bit by bit: `bits` has a truth value for each bit of a word. Writes the lanes that [`Rows::write`]
    /// would write. Other operations on the row must also read and write single bits.
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

    /// Returns the changed rows and the value of each changed row at this point. Omits rows that were written bit by
    /// bit.
    pub fn changed(&self) -> impl Iterator<Item = (Row, Value)> + '_ {
        self.now.iter().filter_map(|((row, bit), value)| bit.is_none().then_some((*row, *value)))
    }

    /// Removes the stores of rows whose values are dead, according to `dead`.
    pub fn forget(&mut self, dead: impl Fn(Row) -> bool) {
        self.now.retain(|(row, _), _| !dead(*row));
    }

    // This function and the following functions are for floats.

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

    /// Returns a value with canonical bits: a denormal becomes a zero with the sign of the denormal. On the fast path,
    /// the function adds a guard that fails for a NaN.
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

    /// Selects values like [`Strip::select`], but the values may be raw. If operations can return denormals that the
    /// machine flushes, the result is canonical.
    pub fn choose(&mut self, condition: Value, other: Value, then: Value) -> Value {
        if other == then {
            return then;
        }
        if !self.denormals {
            // Only a NaN may need a guard. A later use of the result can add this guard.
            let value = self.strip.select(condition, other, then);
            return if self.is_raw(other) || self.is_raw(then) { self.raw(value) } else { value };
        }
        let (other, then) = (self.settle(other), self.settle(then));
        self.strip.select(condition, other, then)
    }

    // This function and the following functions are for control flow.

    /// Opens a branch. The code in the branch runs for the active lanes in `held`. The bits of inactive lanes in `held`
    /// are ignored.
    pub fn open(&mut self, word: u32, held: Value) {
        self.strip.gather(word, held);
        let active = self.mask();
        let mask = self.strip.two(Two::And, held, active);
        self.scopes.push(Scope { mask, held, before: self.now.clone(), start: self.now.clone() });
    }

    /// Starts the else side of the branch. Active lanes that did not run the then side run the else side.
    pub fn other(&mut self) {
        let Some(mut scope) = self.scopes.pop() else { return };
        let active = self.mask();
        let mask = self.strip.two(Two::AndNot, scope.mask, active);
        scope.before = std::mem::replace(&mut self.now, scope.start.clone());
        let held = self.strip.not(scope.held);
        self.scopes.push(Scope { mask, held, ..scope });
    }

    /// Closes the branch: all lanes of the branch reconverge.
    pub fn close(&mut self) {
        if let Some(scope) = self.scopes.pop() {
            self.merge(scope);
        }
    }

    /// Merges values at the end of a scope. The lanes of the scope keep their current values. Every lane outside the
    /// scope gets the value from the entry of the scope. Values of lanes that are inactive at the entry may be
    /// arbitrary. An outer scope or the end of the strip discards these values.
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

    /// Lets the active lanes of `held` leave the node. No branch may be open.
    pub fn leave(&mut self, word: u32, held: Value) {
        if !self.leaves {
            self.strip.guard(held);
            // If a row is overwritten after this point, the row does not become a covered row. The slow path still
            // needs the old value of the row for the lanes that leave.
            self.left = true;
            return;
        }
        let active = self.mask();
        let leaving = self.strip.two(Two::And, held, active);
        self.strip.leave(word, leaving);
        let (mask, held) = (self.strip.two(Two::AndNot, held, active), self.strip.not(held));
        self.scopes.push(Scope { mask, held, before: self.now.clone(), start: Now::new() });
    }

    /// Ends the node: stores the rows that have changed, except the rows in `dropped`.
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
