//! Conversion of words to values and text: decode, describe the bits, print.

use std::collections::HashMap;
use std::fmt;

use crate::reader::{NameHash, token_bit};
use crate::row::{Bits, Draft, Location, Memory, Number, Part, Row, Scope, Style};

/// Reason why a word cannot be decoded or printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoReading {
    /// No row of the table matches the word, on any chip or in any program type.
    NoRow,
    /// A row matches the word, but the row is for another chip or program type.
    Elsewhere {
        /// Name of the row.
        row: &'static str,
    },
    /// A row matches the word, but one part of the row is not defined for the word.
    NoPart {
        /// Name of the row.
        row: &'static str,
        /// Name of the part.
        part: &'static str,
    },
}

impl fmt::Display for NoReading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoReading::NoRow => f.write_str("no instruction has these bits"),
            NoReading::Elsewhere { row } => {
                write!(f, "{row} has these bits, but not on this chip or in this program type")
            }
            NoReading::NoPart { row, part } => write!(f, "{row} has no such {part}"),
        }
    }
}

impl std::error::Error for NoReading {}

/// A row in the list of rows with a certain name.
#[derive(Debug)]
pub(crate) struct Named<D: Draft> {
    pub(crate) row: &'static Row<D>,
    /// The [`token_bit`]s of the tokens that occur in every text of the row.
    pub(crate) needs: u64,
}

/// Returns the [`token_bit`]s of the fixed words and brackets in a row. These tokens occur in every text of the row.
fn needs<D: Draft>(row: &Row<D>) -> u64 {
    row.parts.iter().fold(0, |needs, part| {
        needs
            | match part {
                Part::Text(text) => token_bit(text.as_bytes()),
                Part::Open => token_bit(b"("),
                Part::Close => token_bit(b")"),
                Part::Memory(_) => token_bit(b"["),
                Part::Word(_) | Part::Number(_) | Part::Case(_) | Part::Custom(_) | Part::Set(_) => 0,
            }
    })
}

/// Maximum number of fields in the key of a table.
const KEY_FIELDS: usize = 4;

/// One field of the key: a run of bits. The fields of the key together select a bucket.
#[derive(Clone, Copy, Debug, Default)]
struct KeyField {
    /// Lowest bit of the field in the word.
    position: u32,
    mask: u64,
    /// Position of the field's lowest bit in the number of the bucket.
    place: u32,
}

/// The fields of a row that decide whether the row matches a word. The fields are copies, so that the candidates of a
/// bucket are close together in memory.
#[derive(Debug)]
struct Candidate<D: Draft> {
    mask: u64,
    fixed: u64,
    scope: Scope,
    row: &'static Row<D>,
}

/// The rows of an instruction set, with an index that finds the row of a word.
#[derive(Debug)]
pub struct Table<D: Draft> {
    rows: Vec<&'static Row<D>>,
    key: [KeyField; KEY_FIELDS],
    /// Index in `list` of the first candidate of each bucket.
    starts: Vec<u32>,
    list: Vec<Candidate<D>>,
    /// Rows by name. Each row is stored with the tokens that occur in every text of the row.
    names: HashMap<&'static str, Vec<Named<D>>, NameHash>,
}

impl<D: Draft> Table<D> {
    /// Builds the index over the rows of all groups. The table keeps the order of the groups, and the order of the rows
    /// in each group.
    ///
    /// The bit fields `key` together select a bucket. There are at most four fields. Each field consists of consecutive
    /// bits. The caller should select bits that distinguish many rows. If a word matches several rows, [`Table::find`]
    /// returns the first matching row in the table's order.
    pub fn new(groups: &[&'static [Row<D>]], key: &'static [Bits]) -> Self {
        let rows: Vec<_> = groups.iter().copied().flatten().collect();
        let mut fields = [KeyField::default(); KEY_FIELDS];
        let mut width = 0;
        for (field, bits) in fields.iter_mut().zip(key) {
            let position = bits.mask().trailing_zeros();
            *field = KeyField { position, mask: bits.mask() >> position, place: width };
            width += u32::from(bits.len());
        }
        let mut starts = Vec::with_capacity((1 << width) + 1);
        let mut list = Vec::new();
        let mask = key.iter().fold(0, |mask, field| mask | field.mask());
        for bucket in 0..1_u64 << width {
            starts.push(list.len() as u32);
            let word = fields
                .iter()
                .fold(0, |word, field| word | ((bucket >> field.place) & field.mask) << field.position);
            list.extend(
                rows.iter().filter(|row| (row.fixed ^ word) & row.mask & mask == 0).map(|row| Candidate {
                    mask: row.mask,
                    fixed: row.fixed,
                    scope: row.scope,
                    row,
                }),
            );
        }
        starts.push(list.len() as u32);
        let mut names: HashMap<_, Vec<_>, _> = HashMap::default();
        for &row in &rows {
            for name in row.names.split('|') {
                names.entry(name).or_default().push(Named { row, needs: needs(row) });
            }
        }
        Table { rows, key: fields, starts, list, names }
    }

    /// Returns all rows in the table's order.
    pub fn rows(&self) -> &[&'static Row<D>] {
        &self.rows
    }

    /// Returns the rows whose text can begin with `name`, in the table's order.
    pub(crate) fn named(&self, name: &str) -> &[Named<D>] {
        self.names.get(name).map_or(&[], Vec::as_slice)
    }

    /// Returns all names with which a text can begin.
    pub fn names(&self) -> impl Iterator<Item = &'static str> + Clone {
        self.names.keys().copied()
    }

    /// Returns the candidates in the bucket that the key bits of `word` select.
    #[inline(always)]
    fn bucket(&self, word: u64) -> &[Candidate<D>] {
        let bucket = self
            .key
            .iter()
            .fold(0, |bucket, field| bucket | ((word >> field.position) & field.mask) << field.place);
        let bucket = bucket as usize;
        &self.list[self.starts[bucket] as usize..self.starts[bucket + 1] as usize]
    }

    /// Returns the row that matches a word in the circumstance `here`.
    ///
    /// # Errors
    /// Returns an error if no row matches the word in this circumstance.
    #[inline]
    pub fn find(&self, word: u64, here: Scope) -> Result<&'static Row<D>, NoReading> {
        let bucket = self.bucket(word);
        for candidate in bucket {
            if word & candidate.mask == candidate.fixed && candidate.scope.admits(here) {
                return Ok(candidate.row);
            }
        }
        let elsewhere = bucket.iter().find(|candidate| word & candidate.mask == candidate.fixed);
        Err(elsewhere.map_or(NoReading::NoRow, |candidate| NoReading::Elsewhere { row: candidate.row.id }))
    }

    /// Returns the row that matches a word, and fills the draft from the row's parts.
    ///
    /// # Errors
    /// Returns an error if no row matches the word in this circumstance. Also returns an error if a part of the row is
    /// not defined for the word.
    #[inline]
    pub fn decode(&self, word: u64, here: Scope, draft: &mut D) -> Result<&'static Row<D>, NoReading> {
        let row = self.find(word, here)?;
        match fill(row.parts, word, here, draft) {
            Ok(()) => Ok(row),
            Err(part) => Err(NoReading::NoPart { row: row.id, part }),
        }
    }

    /// Appends the text of a word to `out`. If unclaimed bits differ from the row's default, the function also appends
    /// `bits` and the values of the unclaimed bits.
    ///
    /// # Errors
    /// Returns the errors of [`Table::decode`]. In case of an error, `out` is unchanged.
    pub fn print(
        &self,
        word: u64,
        here: Scope,
        labels: Option<&dyn Labels>,
        out: &mut String,
    ) -> Result<&'static Row<D>, NoReading> {
        let row = self.find(word, here)?;
        let start = out.len();
        let mut printer = Printer { word, here, labels, out, space: false, claimed: row.mask };
        if let Err(part) = printer.parts(row.parts) {
            out.truncate(start);
            return Err(NoReading::NoPart { row: row.id, part });
        }
        let unclaimed = (word ^ row.default) & !printer.claimed & row.width();
        if unclaimed != 0 {
            print_unclaimed(row.long, unclaimed, out);
        }
        Ok(row)
    }

    /// Returns the meaning of every bit of a word. The bits that select the row come first. The bits of the parts
    /// follow, in the order of the text. Bits that belong to no part come last. Several parts may claim the same bits.
    ///
    /// # Errors
    /// The errors are those of [`Table::decode`].
    pub fn describe(&self, word: u64, here: Scope) -> Result<Vec<Described>, NoReading> {
        let row = self.find(word, here)?;
        let mut described = vec![Described { bits: row.mask, name: "opcode", text: row.id.to_owned() }];
        describe(row.parts, word, here, &mut described)
            .map_err(|part| NoReading::NoPart { row: row.id, part })?;
        let claimed = described.iter().fold(0, |bits, part| bits | part.bits);
        let unclaimed = row.width() & !claimed;
        let spare = unclaimed & row.unclaimed();
        for (bits, name) in [(unclaimed & !spare, "not used by this operand choice"), (spare, "spare")] {
            if bits != 0 {
                let set = (word ^ row.default) & bits;
                let text =
                    if set == 0 { String::new() } else { format!("{set:#x} differs from its default") };
                described.push(Described { bits, name, text });
            }
        }
        Ok(described)
    }
}

/// Appends `bits` and the unclaimed bits of a word, as one number per 32-bit word: ` bits 0x10000 0x40`.
fn print_unclaimed(long: bool, unclaimed: u64, out: &mut String) {
    out.push_str(" bits ");
    push_hex(unclaimed as u32, out);
    if long {
        out.push(' ');
        push_hex((unclaimed >> 32) as u32, out);
    }
}

/// Names of code addresses.
pub trait Labels {
    /// Appends the name of `address` to `out`. Returns whether the address has a name.
    fn push(&self, address: u32, out: &mut String) -> bool;
}

/// Bits of a word, with their meaning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Described {
    /// The bits, as a mask.
    pub bits: u64,
    /// Name of the part or field that the bits belong to.
    pub name: &'static str,
    /// Text of the bits' value in this word. The text may be empty.
    pub text: String,
}

/// Adds the values of the parts to the draft. If a part is not defined for `word`, the error is the name of that part.
#[inline]
fn fill<D: Draft>(parts: &[Part<D>], word: u64, here: Scope, draft: &mut D) -> Result<(), &'static str> {
    for part in parts {
        match part {
            Part::Text(_) | Part::Open | Part::Close => {}
            Part::Word(words) => {
                let value = words.field.get(word);
                match words.texts.get(value as usize) {
                    Some(Some(_)) => (words.set)(draft, value),
                    _ => return Err(words.name),
                }
            }
            Part::Number(number) => (number.set)(draft, number.value(word)),
            Part::Memory(memory) => (memory.set)(draft, memory.location(word)),
            Part::Custom(custom) => (custom.set)(draft, word),
            Part::Set(set) => set(draft),
            Part::Case(cases) => {
                let case = cases.cases.iter().find(|case| case.holds(word, here)).ok_or(cases.name)?;
                fill(case.parts, word, here, draft)?;
            }
        }
    }
    Ok(())
}

impl<D> Number<D> {
    /// Returns the value of the number in a word. For [`Style::Signed`], the value is sign-extended. For
    /// [`Style::Code`], the value is an address. For other styles, the returned value is the value of the field.
    #[inline(always)]
    fn value(&self, word: u64) -> u32 {
        match self.style {
            Style::Register(..) | Style::Aligned(..) | Style::Half(_) | Style::Hex => self.field.get(word),
            Style::Signed => self.field.get_signed(word) as u32,
            Style::Code(shift) => self.field.get(word) << shift,
        }
    }
}

impl<D> Memory<D> {
    /// Returns the location that the operand has in a word.
    #[inline(always)]
    pub fn location(&self, word: u64) -> Location {
        let units = match self.offset {
            Some(field) if self.signed => field.get_signed(word),
            Some(field) => field.get(word) as i32,
            None => 0,
        };
        Location {
            bank: self.bank.map_or(0, |field| field.get(word) as u8),
            base: self.base.map_or(0, |(_, field)| field.get(word) as u8),
            offset: units << self.shift,
        }
    }
}

struct Printer<'a> {
    word: u64,
    here: Scope,
    labels: Option<&'a dyn Labels>,
    out: &'a mut String,
    space: bool,
    claimed: u64,
}

impl Printer<'_> {
    #[inline(always)]
    fn gap(&mut self) {
        if self.space {
            self.out.push(' ');
        }
        self.space = true;
    }

    fn parts<D>(&mut self, parts: &[Part<D>]) -> Result<(), &'static str> {
        for part in parts {
            match part {
                Part::Text(text) => {
                    self.gap();
                    self.out.push_str(text);
                }
                Part::Open => {
                    self.gap();
                    self.out.push('(');
                    self.space = false;
                }
                Part::Close => {
                    self.out.push(')');
                    self.space = true;
                }
                Part::Word(words) => {
                    let Some(&Some(text)) = words.texts.get(words.field.get(self.word) as usize) else {
                        return Err(words.name);
                    };
                    self.claimed |= words.field.mask();
                    if !text.is_empty() {
                        self.gap();
                        self.out.push_str(text);
                    }
                }
                Part::Number(number) => {
                    self.gap();
                    self.claimed |= number.field.mask();
                    if let Style::Aligned(_, _, count) = number.style
                        && !number.value(self.word).is_multiple_of(count)
                    {
                        return Err(number.name);
                    }
                    self.number(number);
                }
                Part::Memory(memory) => {
                    self.gap();
                    self.claimed |= memory.bits();
                    push_memory(memory, memory.location(self.word), self.out);
                }
                Part::Custom(custom) => {
                    self.gap();
                    self.claimed |= (custom.claims)(self.word);
                    (custom.print)(self.word, self.out);
                }
                Part::Set(_) => {}
                Part::Case(cases) => {
                    let (word, here) = (self.word, self.here);
                    let case = cases.cases.iter().find(|case| case.holds(word, here)).ok_or(cases.name)?;
                    self.claimed |= case.mask;
                    self.parts(case.parts)?;
                }
            }
        }
        Ok(())
    }

    #[inline(always)]
    fn number<D>(&mut self, number: &Number<D>) {
        let value = number.value(self.word);
        let out = &mut *self.out;
        match number.style {
            Style::Register(prefix, suffix) | Style::Aligned(prefix, suffix, _) => {
                out.push_str(prefix);
                push_decimal(value, out);
                out.push_str(suffix);
            }
            Style::Half(prefix) => {
                out.push_str(prefix);
                push_decimal(value >> 1, out);
                out.push(if value & 1 == 0 { 'l' } else { 'h' });
            }
            Style::Hex => push_hex(value, out),
            Style::Signed => push_signed(value as i32, out),
            Style::Code(_) => {
                if !self.labels.is_some_and(|labels| labels.push(value, out)) {
                    push_hex(value, out);
                }
            }
        }
    }
}

fn push_memory<D>(memory: &Memory<D>, Location { bank, base, offset }: Location, out: &mut String) {
    out.push_str(memory.space);
    if memory.bank.is_some() {
        push_decimal(bank.into(), out);
    }
    out.push('[');
    match memory.base {
        Some((prefix, _)) if base != 0 || memory.always_base => {
            out.push_str(prefix);
            push_decimal(base.into(), out);
            if memory.increment {
                out.push_str("++");
                push_signed(offset, out);
            } else if offset != 0 {
                out.push('+');
                push_signed(offset, out);
            }
        }
        Some(_) | None => push_signed(offset, out),
    }
    out.push(']');
}

/// Appends a number in decimal.
#[inline(always)]
pub fn push_decimal(value: u32, out: &mut String) {
    if value < 10 {
        out.push(char::from(b'0' + value as u8));
        return;
    }
    let mut digits = [0_u8; 10];
    let mut first = digits.len();
    let mut rest = value;
    loop {
        first -= 1;
        digits[first] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    push_ascii(&digits[first..], out);
}

/// Appends a number as `0x1f`.
#[inline(always)]
pub fn push_hex(value: u32, out: &mut String) {
    let len = (8 - value.leading_zeros() / 4).max(1) as usize;
    let mut digits = [b'0', b'x', 0, 0, 0, 0, 0, 0, 0, 0];
    for place in 0..len {
        digits[1 + len - place] = b"0123456789abcdef"[(value >> (4 * place) & 15) as usize];
    }
    push_ascii(&digits[..2 + len], out);
}

/// Appends a word as eight hexadecimal digits.
pub fn push_word(word: u32, out: &mut String) {
    let digits: [u8; 8] =
        std::array::from_fn(|place| b"0123456789abcdef"[(word >> (28 - 4 * place) & 15) as usize]);
    push_ascii(&digits, out);
}

fn push_signed(value: i32, out: &mut String) {
    if value < 0 {
        out.push('-');
    }
    push_hex(value.unsigned_abs(), out);
}

#[inline(always)]
fn push_ascii(digits: &[u8], out: &mut String) {
    for &digit in digits {
        out.push(char::from(digit));
    }
}

fn describe<D>(
    parts: &[Part<D>],
    word: u64,
    here: Scope,
    described: &mut Vec<Described>,
) -> Result<(), &'static str> {
    for part in parts {
        let (bits, name) = match part {
            Part::Text(_) | Part::Open | Part::Close | Part::Set(_) => continue,
            Part::Word(words) => (words.field.mask(), words.name),
            Part::Number(number) => (number.field.mask(), number.name),
            Part::Memory(memory) => (memory.bits(), memory.name),
            Part::Custom(custom) => ((custom.claims)(word), custom.name),
            Part::Case(cases) => {
                let case = cases.cases.iter().find(|case| case.holds(word, here)).ok_or(cases.name)?;
                if case.mask != 0 {
                    let text = alone(case.parts, word, here)?;
                    described.push(Described { bits: case.mask, name: cases.name, text });
                }
                describe(case.parts, word, here, described)?;
                continue;
            }
        };
        described.push(Described { bits, name, text: alone(std::slice::from_ref(part), word, here)? });
    }
    Ok(())
}

/// Returns only the text of `parts`, without a mnemonic or other text.
fn alone<D>(parts: &[Part<D>], word: u64, here: Scope) -> Result<String, &'static str> {
    let mut text = String::new();
    Printer { word, here, labels: None, out: &mut text, space: false, claimed: 0 }.parts(parts)?;
    Ok(text)
}
