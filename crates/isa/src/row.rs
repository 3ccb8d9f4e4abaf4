//! Rows, parts and cases: the data types of an instruction table.
//!
//! A [`Row`] is one line of the manual. A row has the bits that identify the instruction, and the [`Part`]s of the
//! instruction's text in order. A part has bits, a spelling, and a function that adds the part's value to the decoded
//! instruction. Five operations use the rows. [`crate::read`] decodes, describes and prints words, and [`crate::write`]
//! parses and encodes text.
//!
//! The type parameter `D` is the machine's draft, which collects the data of an instruction during decoding. Each part
//! of the row adds its value to the draft.
//!
//! A row claims its fixed bits and the bits of the parts in its text. If unclaimed bits differ from the row's default,
//! the text ends with `bits 0x...`. This ending states the unclaimed bits. So the text represents every bit of a word.

/// One or two runs of bits that form one number. The first run contains the number's lower bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bits {
    first: (u8, u8),
    second: (u8, u8),
}

/// Returns a run of `length` bits from bit `position` on.
pub const fn at(position: u8, length: u8) -> Bits {
    assert!(length >= 1 && length <= 32 && position + length <= 64);
    Bits { first: (position, length), second: (0, 0) }
}

const fn ones(length: u8) -> u64 {
    if length == 0 { 0 } else { u64::MAX >> (64 - length) }
}

impl Bits {
    /// Adds a second run of bits, which contains the higher bits of the number. The run has `length` bits and starts at
    /// bit `position`.
    pub const fn and(self, position: u8, length: u8) -> Bits {
        let joined = Bits { first: self.first, second: (position, length) };
        assert!(self.second.1 == 0 && self.mask() & ones(length) << position == 0);
        assert!(self.first.1 + length <= 32);
        joined
    }

    /// Returns the bits that the number occupies.
    #[inline(always)]
    pub const fn mask(self) -> u64 {
        ones(self.first.1) << self.first.0 | ones(self.second.1) << self.second.0
    }

    /// Returns the number of bits.
    #[inline(always)]
    pub const fn len(self) -> u8 {
        self.first.1 + self.second.1
    }

    /// Returns `false`, because a number has at least one bit.
    pub const fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Returns the value of the number in `word`.
    #[inline(always)]
    pub const fn get(self, word: u64) -> u32 {
        let low = word >> self.first.0 & ones(self.first.1);
        let high = word >> self.second.0 & ones(self.second.1);
        (low | high << self.first.1) as u32
    }

    /// Returns a word that contains only this value. Bits of the value that do not fit are dropped.
    #[inline(always)]
    pub const fn put(self, value: u32) -> u64 {
        let low = value as u64 & ones(self.first.1);
        let high = value as u64 >> self.first.1 & ones(self.second.1);
        low << self.first.0 | high << self.second.0
    }

    /// Returns the value of the number in `word`, sign-extended as two's complement.
    #[inline(always)]
    pub const fn get_signed(self, word: u64) -> i32 {
        let room = 32 - self.len() as u32;
        ((self.get(word) << room) as i32) >> room
    }
}

/// A set of circumstances (chips and program types) in which an encoding is valid. Each machine assigns the bits.
///
/// A single circumstance is also a `Scope`. For example, the argument `here` of functions is a single circumstance. A
/// single circumstance has one bit for the chip and one bit for the program type. A set contains the circumstance if
/// both bits are set in the set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scope(pub u16);

impl Scope {
    /// All circumstances.
    pub const ALL: Scope = Scope(u16::MAX);

    /// Returns whether the circumstance `here` is in this set.
    #[inline(always)]
    pub const fn admits(self, here: Scope) -> bool {
        here.0 & !self.0 == 0
    }
}

/// Data that decoding collects from the parts of a row. When the draft is complete, [`Row::meaning`] converts the draft
/// to the meaning.
pub trait Draft: Default + std::fmt::Debug + 'static {
    /// Meaning of a row, computed from the filled draft.
    type Meaning: std::fmt::Debug;
}

/// A part with several spellings, selected by the value of a field.
#[derive(Debug)]
pub struct Words<D: 'static> {
    /// Name of the field in the bit picture.
    pub name: &'static str,
    /// Bits of the field.
    pub field: Bits,
    /// Spelling of each value. If the spelling is `""`, the text of the instruction omits the value. If the spelling is
    /// `None`, the value does not exist.
    pub texts: &'static [Option<&'static str>],
    /// Adds the field's value to the draft.
    pub set: fn(&mut D, u32),
}

/// Notation of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// A prefix, the decimal number, and a suffix: `$r4d`.
    Register(&'static str, &'static str),
    /// Several registers together, written like `Register`. The number of the first register is a multiple of the `u32`
    /// value. If the number in a word is not a multiple, the word has no text.
    Aligned(&'static str, &'static str, u32),
    /// A prefix, half of the number in decimal, and a letter: `$r2h`. The letter `l` or `h` is the lowest bit of the
    /// number.
    Half(&'static str),
    /// Hexadecimal: `0x1f`.
    Hex,
    /// Two's complement in hexadecimal: `-0x8`.
    Signed,
    /// A code address: a label, or a hexadecimal number. The field contains the address, shifted right by this number
    /// of bits.
    Code(u8),
}

/// A register or a number.
#[derive(Debug)]
pub struct Number<D: 'static> {
    /// Name in the bit picture and in messages.
    pub name: &'static str,
    /// Bits of the field.
    pub field: Bits,
    /// Notation of the value.
    pub style: Style,
    /// Adds the value to the draft. For [`Style::Signed`], the value is sign-extended. For [`Style::Code`], the value
    /// is an address.
    pub set: fn(&mut D, u32),
}

/// Value of a memory operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Location {
    /// Number of the bank, or 0 if the operand does not have a bank.
    pub bank: u8,
    /// Number of the base register, or 0 if the operand does not have a base register.
    pub base: u8,
    /// Offset in bytes.
    pub offset: i32,
}

/// A memory operand: `s[$a1+0x2c]`, `c1[0x4]`, `s[$a1++0x4]`, `g14[$r7]`.
#[derive(Debug)]
pub struct Memory<D: 'static> {
    /// Name in the bit picture and in messages.
    pub name: &'static str,
    /// Name of the memory space, without the number of the bank. The name precedes the bracket.
    pub space: &'static str,
    /// Bits of the bank's number.
    pub bank: Option<Bits>,
    /// Prefix and bits of the base register. The text of the operand omits register 0 unless `always_base` is set.
    pub base: Option<(&'static str, Bits)>,
    /// Whether the text of the operand contains the base register even if this register has the number 0.
    pub always_base: bool,
    /// Bits of the offset, which counts units of `1 << shift` bytes.
    pub offset: Option<Bits>,
    /// Binary logarithm of the bytes per unit of the offset.
    pub shift: u8,
    /// Whether the offset is two's complement.
    pub signed: bool,
    /// Whether the instruction adds the offset to the base register (written `++`).
    pub increment: bool,
    /// Adds the operand to the draft.
    pub set: fn(&mut D, Location),
}

/// One alternative of a [`Cases`]. The alternative has the parts of the text for words with certain bits.
#[derive(Debug)]
pub struct Case<D: 'static> {
    /// Bits that select the case.
    pub mask: u64,
    /// Values of these bits.
    pub fixed: u64,
    /// Circumstances in which the case exists.
    pub scope: Scope,
    /// Text of the case.
    pub parts: &'static [Part<D>],
}

impl<D> Case<D> {
    /// Returns whether this case applies to a word in the circumstance `here`.
    #[inline(always)]
    pub const fn holds(&self, word: u64, here: Scope) -> bool {
        word & self.mask == self.fixed && self.scope.admits(here)
    }
}

/// A choice among cases. For each word, the first case that applies to the word determines the text.
#[derive(Debug)]
pub struct Cases<D: 'static> {
    /// Name in the bit picture and in messages.
    pub name: &'static str,
    /// The cases, in order.
    pub cases: &'static [Case<D>],
}

/// A part with separate functions for text and bits.
#[derive(Debug)]
pub struct Custom<D: 'static> {
    /// Name in the bit picture and in messages.
    pub name: &'static str,
    /// All bits that the part can occupy.
    pub bits: u64,
    /// Returns the bits that the part's text determines in this word.
    pub claims: fn(u64) -> u64,
    /// Appends the text of the part.
    pub print: fn(u64, &mut String),
    /// Reads the text and returns the bits that the text determines. After the call, the position of the reader is
    /// after the last token of the text.
    pub parse: fn(&mut crate::reader::Reader) -> Option<BitPattern>,
    /// Adds the value to the draft.
    pub set: fn(&mut D, u64),
}

/// Bits that a piece of text determines, with their values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BitPattern {
    /// The bits that the text determines.
    pub mask: u64,
    /// Values of these bits.
    pub fixed: u64,
}

/// A piece of an instruction's text, with the bits that the piece represents.
#[derive(Debug)]
pub enum Part<D: 'static> {
    /// A word that is always written and does not represent bits.
    Text(&'static str),
    /// The character `(`.
    Open,
    /// The character `)`.
    Close,
    /// One of several words. A field selects the word.
    Word(&'static Words<D>),
    /// A register or number.
    Number(&'static Number<D>),
    /// A memory operand.
    Memory(&'static Memory<D>),
    /// A choice among texts that depends on bits of the word.
    Case(&'static Cases<D>),
    /// A part with separate functions for text and bits.
    Custom(&'static Custom<D>),
    /// A part without text. Its function adds data to the draft.
    Set(fn(&mut D)),
}

impl<D> Clone for Part<D> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<D> Copy for Part<D> {}

impl<D> Part<D> {
    /// Returns all bits that the part can occupy.
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
    /// Returns all bits that the operand occupies.
    #[inline(always)]
    pub fn bits(&self) -> u64 {
        let base = self.base.map_or(0, |(_, field)| field.mask());
        self.bank.map_or(0, Bits::mask) | base | self.offset.map_or(0, Bits::mask)
    }
}

/// One instruction of a table.
#[derive(Debug)]
pub struct Row<D: Draft> {
    /// Unique name of the row in its table.
    pub id: &'static str,
    /// Mnemonics: the words with which the text can begin, apart from prefixes. `|` separates several mnemonics.
    pub names: &'static str,
    /// Whether the instruction has two 32-bit words instead of one.
    pub long: bool,
    /// Values of the bits in `mask`.
    pub fixed: u64,
    /// Bits that identify the instruction.
    pub mask: u64,
    /// Default values of the bits that no text determines.
    pub default: u64,
    /// Chips and program types that have the instruction.
    pub scope: Scope,
    /// Text of the instruction.
    pub parts: &'static [Part<D>],
    /// Returns the meaning of the filled draft.
    pub meaning: fn(&D) -> D::Meaning,
    /// Document and section that describe the instruction.
    pub source: &'static str,
}

impl<D: Draft> Row<D> {
    /// Restricts the row to some chips and program types.
    pub const fn only(self, scope: Scope) -> Self {
        Row { scope, ..self }
    }

    /// Sets default bits to 1. `first` is the mask for the first word, and `second` is the mask for the second word.
    /// Defaults apply to bits that no text determines.
    pub const fn usually(self, first: u32, second: u32) -> Self {
        Row { default: self.default | first as u64 | (second as u64) << 32, ..self }
    }

    /// Returns whether a word is this instruction in the circumstance `here`.
    #[inline(always)]
    pub const fn holds(&self, word: u64, here: Scope) -> bool {
        word & self.mask == self.fixed && self.scope.admits(here)
    }

    /// Returns a mask of all bits of the instruction. A long instruction has 64 bits, and a short instruction has 32
    /// bits.
    pub const fn width(&self) -> u64 {
        if self.long { u64::MAX } else { 0xffff_ffff }
    }

    /// Returns the bits that neither identify the row nor belong to a part.
    pub fn unclaimed(&self) -> u64 {
        self.width() & !self.parts.iter().fold(self.mask, |bits, part| bits | part.bits())
    }

    /// Returns whether a word exists that has the identifying bits of both rows. The scopes of the rows are not
    /// compared.
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
