//! What rows are in the middle of a slice: instruction after instruction, also where a branch is open.
//!
//! [`Rows`] is a slice while a machine makes it of its instructions. A row that is written is a value until the end, where it
//! is stored for the lanes that are active; in a branch it changes for the lanes that take it.
//!
//! The machine's floats: a result may be a denormal that the machine makes zero of, and in the quick way a NaN that is not
//! the machine's. Such values are *raw*. Operations on floats take them as they are; whatever looks at their bits
//! [settles](Rows::settle) them.

use std::collections::{BTreeMap, BTreeSet};

use crate::slice::{Row, Slice, Two, Value, predicate};

type Now = BTreeMap<Row, Value>;

/// A stretch for some lanes only: behind it the others have what they had before.
#[derive(Clone, Debug)]
struct Scope {
    /// The lanes.
    mask: Value,
    /// As the lanes, but for those that are not active before it.
    held: Value,
    /// Before it; of the second side of a branch, behind the first.
    before: Now,
    /// Before the branch.
    start: Now,
}

/// A slice while it is made, in its quick or its exact way.
#[derive(Clone, Debug)]
pub struct Rows {
    /// The slice. Rows are read and written here, and truth values are kept in it.
    pub slice: Slice,
    /// Whether it is for slices whose lanes leave, or whose numbers need care.
    pub exact: bool,
    mask: Row,
    /// The lanes that are active when the segment begins.
    entry: Value,
    now: Now,
    scopes: Vec<Scope>,
    raw: BTreeSet<Value>,
    /// Rows whose words from before have been needed, and those that were written as a whole before.
    needed: BTreeSet<Row>,
    covered: BTreeSet<Row>,
    left: bool,
}

impl Rows {
    /// Nothing has changed. `mask` is the row of the lanes that are active.
    pub fn new(mask: Row, exact: bool) -> Rows {
        let mut slice = Slice::new();
        let entry = slice.row(mask);
        Rows {
            slice,
            exact,
            mask,
            entry,
            now: Now::new(),
            scopes: Vec::new(),
            raw: BTreeSet::new(),
            needed: BTreeSet::new(),
            covered: BTreeSet::new(),
            left: false,
        }
    }

    /// The lanes that are active here.
    pub fn mask(&self) -> Value {
        self.scopes.last().map_or(self.entry, |scope| scope.mask)
    }

    /// Rows that the segment writes before anything needs what they held.
    pub fn covered(&self) -> &BTreeSet<Row> {
        &self.covered
    }

    /// What the row is here.
    pub fn read(&mut self, row: Row) -> Value {
        match self.now.get(&row) {
            Some(value) => *value,
            None => {
                if !self.covered.contains(&row) {
                    self.needed.insert(row);
                }
                self.slice.row(row)
            }
        }
    }

    /// Writes a row for the active lanes, or those of them for which the predicate holds.
    pub fn write(&mut self, row: Row, predicate: Option<Value>, value: Value) {
        let value = match predicate {
            None => {
                if self.scopes.is_empty() && !self.left && !self.needed.contains(&row) {
                    self.covered.insert(row);
                }
                value
            }
            Some(predicate) => {
                let old = self.read(row);
                self.choose(predicate, old, value)
            }
        };
        self.now.insert(row, value);
    }

    /// Rows that nothing reads any more are not stored.
    pub fn forget(&mut self, dead: impl Fn(Row) -> bool) {
        self.now.retain(|row, _| !dead(*row));
    }

    // Floats.

    /// The value is raw.
    pub fn raw(&mut self, value: Value) -> Value {
        if self.slice.is_constant(value).is_none() {
            self.raw.insert(value);
        }
        value
    }

    /// Whether the value is raw.
    pub fn is_raw(&self, value: Value) -> bool {
        self.raw.contains(&value)
    }

    /// The machine's bits of a value: denormals are zeros of their sign, and in the quick way the slice is given up for a NaN.
    pub fn settle(&mut self, value: Value) -> Value {
        if !self.raw.contains(&value) {
            return value;
        }
        if !self.exact {
            let nan = self.slice.two(Two::FCompare(predicate::UNORD), value, value);
            self.slice.doubt(nan);
        }
        let minus_zero = self.slice.constant(1 << 31);
        self.slice.two(Two::FAdd, value, minus_zero)
    }

    /// [`Slice::select`] of the bits of values that may be raw.
    pub fn choose(&mut self, condition: Value, other: Value, then: Value) -> Value {
        if other == then {
            return then;
        }
        let (other, then) = (self.settle(other), self.settle(then));
        self.slice.select(condition, other, then)
    }

    // Flow.

    /// Opens a branch: the lanes of `held` run. Its bits of lanes that are not active mean nothing.
    pub fn open(&mut self, word: u32, held: Value) {
        self.slice.gather(word, held);
        let active = self.mask();
        let mask = self.slice.two(Two::And, held, active);
        self.scopes.push(Scope { mask, held, before: self.now.clone(), start: self.now.clone() });
    }

    /// The others run.
    pub fn other(&mut self) {
        let Some(mut scope) = self.scopes.pop() else { return };
        let active = self.mask();
        let mask = self.slice.two(Two::AndNot, scope.mask, active);
        scope.before = std::mem::replace(&mut self.now, scope.start.clone());
        let held = self.slice.not(scope.held);
        self.scopes.push(Scope { mask, held, ..scope });
    }

    /// All run on together.
    pub fn close(&mut self) {
        if let Some(scope) = self.scopes.pop() {
            self.merge(scope);
        }
    }

    /// The lanes of a scope keep what they have now, others what they had before it. What lanes have that are not active
    /// before it does not matter: a scope around it, or the end, gives them theirs.
    fn merge(&mut self, Scope { held, before, .. }: Scope) {
        let now = std::mem::take(&mut self.now);
        let rows: BTreeSet<Row> = now.keys().chain(before.keys()).copied().collect();
        for row in rows {
            let mut of = |all: &Now| match all.get(&row) {
                Some(value) => *value,
                None => self.read(row),
            };
            let (other, then) = (of(&before), of(&now));
            let value = self.choose(held, other, then);
            self.now.insert(row, value);
        }
    }

    /// The active lanes of `held` leave. No branch is open.
    pub fn leave(&mut self, word: u32, held: Value) {
        if !self.exact {
            self.slice.doubt(held);
            // Who writes behind it does not cover: the exact way still needs what was there.
            self.left = true;
            return;
        }
        let active = self.mask();
        let leaving = self.slice.two(Two::And, held, active);
        self.slice.leave(word, leaving);
        let (mask, held) = (self.slice.two(Two::AndNot, held, active), self.slice.not(held));
        self.scopes.push(Scope { mask, held, before: self.now.clone(), start: Now::new() });
    }

    /// The end of the segment: what has changed is stored, but for rows that need not be. `lanes`: the word of the lanes
    /// that are still active.
    pub fn finish(mut self, dropped: &BTreeSet<Row>, lanes: Option<u32>) -> Slice {
        let mask = self.mask();
        while let Some(scope) = self.scopes.pop() {
            self.merge(scope);
        }
        for (row, value) in
            std::mem::take(&mut self.now).into_iter().filter(|(row, _)| !dropped.contains(row))
        {
            let old = self.slice.row(row);
            let value = self.choose(self.entry, old, value);
            self.slice.store(row, value);
        }
        if let Some(word) = lanes {
            self.slice.gather(word, mask);
        }
        if mask != self.entry {
            let words = self.slice.one(crate::slice::One::Sar(31), mask);
            self.slice.store(self.mask, words);
        }
        self.slice
    }
}
