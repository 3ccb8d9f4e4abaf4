//! Words that compiled code computes: a function over [`Word`] emits code.

use std::cell::RefCell;
use std::ops::{BitAnd, BitOr, BitXor, Not};

use reconverge_simt::word::Word;

use crate::rows::Rows;
use crate::strip::{One, Two, Value, predicate};

/// A value of the code under construction. An operation on the value adds an operation to the code.
#[derive(Clone, Copy)]
pub struct Emitted<'a> {
    rows: &'a RefCell<&'a mut Rows>,
    value: Value,
}

impl Rows {
    /// Emits the code of a function over words. Returns the result of the function.
    pub fn emit<const N: usize, R>(
        &mut self,
        sources: [Value; N],
        meaning: impl for<'a> FnOnce([Emitted<'a>; N]) -> R,
    ) -> R {
        let rows = RefCell::new(self);
        meaning(sources.map(|value| Emitted { rows: &rows, value }))
    }
}

impl Emitted<'_> {
    /// Returns the value that holds the words.
    pub fn value(self) -> Value {
        self.value
    }

    fn with(self, value: impl FnOnce(&mut Rows) -> Value) -> Self {
        let value = value(&mut self.rows.borrow_mut());
        Emitted { value, ..self }
    }

    /// Returns an operation on the bits of two words. The bits are [canonical](Rows::settle).
    fn two(self, op: Two, other: Self) -> Self {
        self.with(|rows| {
            let (a, b) = (rows.settle(self.value), rows.settle(other.value));
            rows.two(op, a, b)
        })
    }

    /// Returns an operation on the bits of a word. The bits are canonical.
    fn one(self, op: One) -> Self {
        self.with(|rows| {
            let a = rows.settle(self.value);
            rows.one(op, a)
        })
    }

    fn compare(self, predicate: u8, other: Self) -> Self {
        self.with(|rows| rows.compare(predicate, self.value, other.value))
    }

    fn shifted(self, by: Two, known: fn(u8) -> One, count: Self) -> Self {
        let constant = self.rows.borrow().strip.is_constant(count.value);
        match constant {
            Some(count) => self.one(known(count.min(32) as u8)),
            None => self.two(by, count),
        }
    }
}

/// Implements the traits of bitwise operators.
macro_rules! operators {
    ($( $Trait:ident::$method:ident => $op:expr; )*) => { $(
        impl $Trait for Emitted<'_> {
            type Output = Self;

            fn $method(self, other: Self) -> Self {
                self.two($op, other)
            }
        }
    )* };
}

operators! {
    BitAnd::bitand => Two::And;
    BitOr::bitor => Two::Or;
    BitXor::bitxor => Two::Xor;
}

impl Not for Emitted<'_> {
    type Output = Self;

    fn not(self) -> Self {
        self.with(|rows| {
            let a = rows.settle(self.value);
            rows.not(a)
        })
    }
}

/// Defines methods that are one operation on two words, and methods that compare two floats.
macro_rules! methods {
    (bits { $( $bits:ident => $op:expr; )* } floats { $( $floats:ident => $predicate:expr; )* }) => {
        $(
            fn $bits(self, other: Self) -> Self {
                self.two($op, other)
            }
        )*
        $(
            fn $floats(self, other: Self) -> Self {
                self.compare($predicate, other)
            }
        )*
    };
}

impl Word for Emitted<'_> {
    methods! {
        bits {
            plus => Two::Add;
            minus => Two::Sub;
            times => Two::Mul;
            min_signed => Two::MinSigned;
            max_signed => Two::MaxSigned;
            min_unsigned => Two::MinUnsigned;
            max_unsigned => Two::MaxUnsigned;
            equal => Two::Equal;
            greater => Two::Greater;
        }
        floats {
            float_equal => predicate::EQ;
            float_greater => predicate::GT;
            float_at_least => predicate::GE;
        }
    }

    fn same(self, word: u32) -> Self {
        self.with(|rows| rows.word(word))
    }

    fn left(self, count: Self) -> Self {
        self.shifted(Two::Shl, One::Shl, count)
    }

    fn right(self, count: Self) -> Self {
        self.shifted(Two::Shr, One::Shr, count)
    }

    fn right_signed(self, count: Self) -> Self {
        self.shifted(Two::Sar, One::Sar, count)
    }

    fn is_nan(self) -> Self {
        self.compare(predicate::UNORD, self)
    }

    fn to_float(self) -> Self {
        self.one(One::Float)
    }

    fn truncated(self) -> Self {
        self.with(|rows| rows.one(One::Truncate, self.value))
    }

    fn choose(self, then: Self, other: Self) -> Self {
        self.with(|rows| rows.choose(self.value, other.value, then.value))
    }
}
