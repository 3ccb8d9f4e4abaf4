//! Rows, parts, cases: the vocabulary of an instruction table.
//!
//! A [`Row`] is one line of the manual: the bits that say which instruction it is, and the [`Part`]s of its text in
//! order. A part owns bits *and* a spelling; what it adds to the decoded value is a function beside it. The rows are
//! read five ways: decode, describe and print in [`crate::read`], parse and encode in [`crate::write`].
//!
//! `D` is the machine's draft: what decode fills while it walks the parts.
//!
//! A row claims its fixed bits and those of the parts that its text uses. All other bits that differ from the row's
//! default are printed behind the instruction as `bits 0x...`, so that text never loses a bit of a word.

/// Up to two runs of bits that together are one number, the first run its lower end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bits {
    first: (u8, u8),
    second: (u8, u8),
}

/// A run of `length` bits from bit `position` on.
pub const fn at(position: u8, length: u8) -> Bits {
    assert!(length >= 1 && length <= 32 && position + length <= 64);
    Bits { first: (position, length), second: (0, 0) }
}

const fn ones(length: u8) -> u64 {
    if length == 0 { 0 } else { u64::MAX >> (64 - length) }
}

impl Bits {
    /// Extends the number by `length` higher bits, which lie from bit `position` on.
    pub const fn and(self, position: u8, length: u8) -> Bits {
        let joined = Bits { first: self.first, second: (position, length) };
        assert!(self.second.1 == 0 && self.mask() & ones(length) << position == 0);
        assert!(self.first.1 + length <= 32);
        joined
    }

    /// The bits that it occupies.
    #[inline(always)]
    pub const fn mask(self) -> u64 {
        ones(self.first.1) << self.first.0 | ones(self.second.1) << self.second.0
    }

    /// How many bits it has.
    #[inline(always)]
    pub const fn len(self) -> u8 {
        self.first.1 + self.second.1
    }

    /// Whether it has no bits; none has.
    pub const fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Its value in `word`.
    #[inline(always)]
    pub const fn get(self, word: u64) -> u32 {
        let low = word >> self.first.0 & ones(self.first.1);
        let high = word >> self.second.0 & ones(self.second.1);
        (low | high << self.first.1) as u32
    }

    /// A word with this value in it and nothing else; higher bits of the value are dropped.
    #[inline(always)]
    pub const fn put(self, value: u32) -> u64 {
        let low = value as u64 & ones(self.first.1);
        let high = value as u64 >> self.first.1 & ones(self.second.1);
        low << self.first.0 | high << self.second.0
    }

    /// The value taken as two's complement.
    #[inline(always)]
    pub const fn get_signed(self, word: u64) -> i32 {
        let room = 32 - self.len() as u32;
        ((self.get(word) << room) as i32) >> room
    }
}

/// A set of circumstances (chips, program types) in which an encoding is valid; a machine gives the bits meaning.
///
/// One circumstance has one bit of each kind set; it is in the set if all its bits are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scope(pub u16);

impl Scope {
    /// Everywhere.
    pub const ALL: Scope = Scope(u16::MAX);

    /// Whether the circumstance `here` is in this set.
    #[inline(always)]
    pub const fn admits(self, here: Scope) -> bool {
        here.0 & !self.0 == 0
    }
}

/// What decode fills, and what comes of it.
pub trait Draft: Default + std::fmt::Debug + 'static {
    /// What a row means, given what its parts left in the draft.
    type Meaning: std::fmt::Debug;
}

/// One of several spellings, selected by the value of a field.
#[derive(Debug)]
pub struct Words<D: 'static> {
    /// What the field is, for the bit picture.
    pub name: &'static str,
    /// Its bits.
    pub field: Bits,
    /// By value: its spelling, `""` for one that is not written, `None` for one that does not exist.
    pub texts: &'static [Option<&'static str>],
    /// What the value adds to the draft.
    pub set: fn(&mut D, u32),
}

/// How a number is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Prefix, decimal number, suffix: `$r4d`.
    Register(&'static str, &'static str),
    /// As `Register`, for several registers together: the number is a multiple of so many. Others have no text.
    Aligned(&'static str, &'static str, u32),
    /// Prefix, half of the number in decimal, `l` or `h`: `$r2h`.
    Half(&'static str),
    /// `0x1f`
    Hex,
    /// `-0x8`, two's complement.
    Signed,
    /// A code address: a label, or in hexadecimal; the field holds the address shifted right by so much.
    Code(u8),
}

/// A register or a number.
#[derive(Debug)]
pub struct Number<D: 'static> {
    /// What it is, for the bit picture and for messages.
    pub name: &'static str,
    /// Its bits.
    pub field: Bits,
    /// How it is written.
    pub style: Style,
    /// What the value adds to the draft. Sign-extended for [`Style::Signed`], an address for [`Style::Code`].
    pub set: fn(&mut D, u32),
}

/// What a memory operand says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Location {
    /// The bank; 0 where there are none.
    pub bank: u8,
    /// The number of the register that the address starts from; 0 where there is none.
    pub base: u8,
    /// Bytes.
    pub offset: i32,
}

/// A memory operand: `s[$a1+0x2c]`, `c1[0x4]`, `s[$a1++0x4]`, `g14[$r7]`.
#[derive(Debug)]
pub struct Memory<D: 'static> {
    /// What it is, for the bit picture and for messages.
    pub name: &'static str,
    /// The name before the bracket, without the bank.
    pub space: &'static str,
    /// The bank's number.
    pub bank: Option<Bits>,
    /// Prefix and number of the register in the bracket. Number 0 is not written unless `always_base`.
    pub base: Option<(&'static str, Bits)>,
    /// Whether register 0 is written as well.
    pub always_base: bool,
    /// The offset's field, in units.
    pub offset: Option<Bits>,
    /// Bytes in a unit, as a power of two.
    pub shift: u8,
    /// Whether the offset is two's complement.
    pub signed: bool,
    /// Written `++`: the register is incremented by the offset.
    pub increment: bool,
    /// What it adds to the draft.
    pub set: fn(&mut D, Location),
}

/// Parts that a text has when the word has these bits.
#[derive(Debug)]
pub struct Case<D: 'static> {
    /// Bits that decide.
    pub mask: u64,
    /// Their values.
    pub fixed: u64,
    /// Where the case exists.
    pub scope: Scope,
    /// Its text.
    pub parts: &'static [Part<D>],
}

impl<D> Case<D> {
    /// Whether a word here is this case.
    #[inline(always)]
    pub const fn holds(&self, word: u64, here: Scope) -> bool {
        word & self.mask == self.fixed && self.scope.admits(here)
    }
}

/// A choice among cases: the first that holds.
#[derive(Debug)]
pub struct Cases<D: 'static> {
    /// What is chosen, for the bit picture and for messages.
    pub name: &'static str,
    /// In order.
    pub cases: &'static [Case<D>],
}

/// A part that needs functions of its own.
#[derive(Debug)]
pub struct Custom<D: 'static> {
    /// What it is, for the bit picture and for messages.
    pub name: &'static str,
    /// All bits that it can occupy.
    pub bits: u64,
    /// The bits that its text determines, for this word.
    pub claims: fn(u64) -> u64,
    /// Appends its text.
    pub print: fn(u64, &mut String),
    /// Reads its text and gives the bits that it determines. Leaves the reader where it stopped.
    pub parse: fn(&mut crate::reader::Reader) -> Option<BitPattern>,
    /// What it adds to the draft.
    pub set: fn(&mut D, u64),
}

/// Bits that a piece of text determines, and their values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BitPattern {
    /// Which bits.
    pub mask: u64,
    /// Their values.
    pub fixed: u64,
}

/// A piece of an instruction's text with the bits it represents.
#[derive(Debug)]
pub enum Part<D: 'static> {
    /// A word that is always written and represents no bits.
    Text(&'static str),
    /// `(`
    Open,
    /// `)`
    Close,
    /// One of several words.
    Word(&'static Words<D>),
    /// A register or number.
    Number(&'static Number<D>),
    /// A memory operand.
    Memory(&'static Memory<D>),
    /// A choice that bits make.
    Case(&'static Cases<D>),
    /// Something special.
    Custom(&'static Custom<D>),
    /// Nothing written; adds to the draft.
    Set(fn(&mut D)),
}

impl<D> Clone for Part<D> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<D> Copy for Part<D> {}

impl<D> Part<D> {
    /// All bits that it can occupy.
    pub fn bits(&self) -> u64 {
        match self {
            Part::Text(_) | Part::Open | Part::Close | Part::Set(_) => 0,
            Part::Word(words) => words.field.mask(),
            Part::Number(number) => number.field.mask(),
            Part::Memory(memory) => memory.bits(),
            Part::Custom(custom) => custom.bits,
            Part::Case(cases) => cases
                .cases
                .iter()
                .map(|case| case.parts.iter().fold(case.mask, |bits, part| bits | part.bits()))
                .fold(0, |bits, more| bits | more),
        }
    }
}

impl<D> Memory<D> {
    /// All bits that it occupies.
    #[inline(always)]
    pub fn bits(&self) -> u64 {
        let base = self.base.map_or(0, |(_, field)| field.mask());
        self.bank.map_or(0, Bits::mask) | base | self.offset.map_or(0, Bits::mask)
    }
}

/// One instruction of a table.
#[derive(Debug)]
pub struct Row<D: Draft> {
    /// The row's own name, unique in its table.
    pub id: &'static str,
    /// What its text can start with, apart from prefixes; several are separated by `|`.
    pub names: &'static str,
    /// Whether it takes two 32-bit words rather than one.
    pub long: bool,
    /// The values of the bits of `mask`.
    pub fixed: u64,
    /// The bits that make a word this instruction.
    pub mask: u64,
    /// The values of bits that no text determines.
    pub default: u64,
    /// Chips and program types that have it.
    pub scope: Scope,
    /// Its text.
    pub parts: &'static [Part<D>],
    /// What it means.
    pub meaning: fn(&D) -> D::Meaning,
    /// Where it is described.
    pub source: &'static str,
}

impl<D: Draft> Row<D> {
    /// Restricts the row to some chips and program types.
    pub const fn only(self, scope: Scope) -> Self {
        Row { scope, ..self }
    }

    /// Sets these bits of the first and second word where no text determines them.
    pub const fn usually(self, first: u32, second: u32) -> Self {
        Row { default: self.default | first as u64 | (second as u64) << 32, ..self }
    }

    /// Whether a word here is this instruction.
    #[inline(always)]
    pub const fn holds(&self, word: u64, here: Scope) -> bool {
        word & self.mask == self.fixed && self.scope.admits(here)
    }

    /// The bits of the words it takes.
    pub const fn width(&self) -> u64 {
        if self.long { u64::MAX } else { 0xffff_ffff }
    }

    /// The bits that neither decide nor belong to a part.
    pub fn unclaimed(&self) -> u64 {
        self.width() & !self.parts.iter().fold(self.mask, |bits, part| bits | part.bits())
    }

    /// Whether some word here can be both this row's and another's: an exact test.
    pub const fn overlaps(&self, other: &Row<D>) -> bool {
        (self.fixed ^ other.fixed) & self.mask & other.mask == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_runs_are_one_number() {
        let split = at(16, 6).and(34, 26);
        assert_eq!(split.len(), 32);
        let word = split.put(0xdead_beef);
        assert_eq!(split.get(word), 0xdead_beef);
        assert_eq!(word & !split.mask(), 0);
        assert_eq!(at(9, 4).get_signed(at(9, 4).put(0xf)), -1);
    }

    #[test]
    fn a_scope_admits_when_every_bit_of_the_circumstance_is_in_it() {
        let compute_on_new = Scope(0b10_01);
        assert!(Scope::ALL.admits(compute_on_new));
        assert!(Scope(0b11_01).admits(compute_on_new));
        assert!(!Scope(0b01_01).admits(compute_on_new));
    }
}
