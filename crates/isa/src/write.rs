//! Conversion of text to words: parse and encode.
//!
//! The rows are the grammar. A line is split into tokens once. The rows of the line's mnemonic are tried in order, and
//! each row collects the bits that the text determines. If no row fits, the message points at the furthest token that a
//! row reached. The message lists the texts that would fit at that token.

use crate::forms::example;
use crate::read::{Named, Table};
use crate::reader::{Token, same, split_decimal, strip, tokenize};
use crate::row::{BitPattern, Bits, Cases, Draft, Memory, Number, Part, Row, Scope, Style};
use crate::source::{Diagnostic, Span, parse_number, suggest};

pub use crate::reader::{NameHash, NameHasher, Reader};

/// A label that a line uses as a code address. The caller sets the address bits when the label's address is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LabelUse<'a> {
    /// Name of the label.
    pub name: &'a str,
    /// Span of the label in the line.
    pub span: Span,
    /// Bits of the instruction that hold the address.
    pub field: Bits,
    /// The field contains the address, shifted right by this number of bits.
    pub shift: u8,
}

impl LabelUse<'_> {
    /// Returns a word with the address in the field and zeros elsewhere. Returns `None` if the address does not fit
    /// into the field.
    pub fn bits(&self, address: u32) -> Option<u64> {
        fit_code(self.field, self.shift, address)
    }
}

fn fit_code(field: Bits, shift: u8, address: u32) -> Option<u64> {
    let bits = field.put(address >> shift);
    (field.get(bits) << shift == address).then_some(bits)
}

/// An instruction that was read from a line.
#[derive(Debug)]
pub struct Line<'a, D: Draft> {
    /// Row of the instruction.
    pub row: &'static Row<D>,
    /// Bits of the instruction. If the instruction uses a label, the bits of the label's address are 0.
    pub word: u64,
    /// The label that the instruction uses.
    pub label: Option<LabelUse<'a>>,
}

/// Bits of the word that the text read so far determines.
#[derive(Clone, Copy)]
struct Known {
    at: usize,
    mask: u64,
    fixed: u64,
    choices: usize,
}

/// Prefixes that may precede the mnemonic of an instruction in a machine's text.
pub trait Prefixes {
    /// Moves the reader past the prefixes, to the mnemonic.
    fn skip(reader: &mut Reader);
}

/// Reads lines, and uses the rows of a table as the grammar. The reader reuses its buffers from line to line.
#[derive(Debug)]
pub struct LineReader<'t, D: Draft> {
    table: &'t Table<D>,
    here: Scope,
    tokens: Vec<Token>,
    choices: Vec<(&'static Cases<D>, usize)>,
    hidden: &'static [&'static str],
}

impl<'t, D: Draft> LineReader<'t, D> {
    /// Returns a reader for the chip and program type `here`.
    pub fn new(table: &'t Table<D>, here: Scope) -> Self {
        LineReader { table, here, tokens: Vec::new(), choices: Vec::new(), hidden: &[] }
    }

    /// In messages, omits operands that begin with a text of `hidden`. The omitted operands exist in the encoding, but
    /// have no meaning for the reader's chip or program type.
    pub fn hiding(self, hidden: &'static [&'static str]) -> Self {
        LineReader { hidden, ..self }
    }

    /// Reads one instruction. The spans of an error message count bytes of `line`.
    ///
    /// # Errors
    /// Returns an error if the text is not an instruction in the reader's circumstance. The message is about the
    /// furthest position that a row reached. The message contains the text at this position and the text that would
    /// fit.
    pub fn read<'a, P: Prefixes>(&mut self, line: &'a str) -> Result<Line<'a, D>, Box<Diagnostic>> {
        let mut tokens = std::mem::take(&mut self.tokens);
        let bits = tokenize(line, &mut tokens);
        let read = self.read_tokens::<P>(line, &tokens, bits);
        self.tokens = tokens;
        read
    }

    fn read_tokens<'a, P: Prefixes>(
        &mut self,
        line: &'a str,
        tokens: &[Token],
        bits: u64,
    ) -> Result<Line<'a, D>, Box<Diagnostic>> {
        let mut reader = Reader::new(line, tokens);
        P::skip(&mut reader);
        let rows = self.table.named(reader.peek());
        match self.first(rows, line, tokens, bits) {
            Some(line) => Ok(line),
            None => Err(Box::new(self.explain(rows, reader, line, tokens))),
        }
    }

    /// Tries to read the line with each row, in order. Returns the result of the first row that fits.
    #[inline(always)]
    fn first<'a>(
        &mut self,
        rows: &[Named<D>],
        line: &'a str,
        tokens: &[Token],
        bits: u64,
    ) -> Option<Line<'a, D>> {
        for &Named { row, needs } in rows {
            if needs & !bits == 0 && row.scope.admits(self.here) {
                let mut attempt = Attempt {
                    reader: Reader::new(line, tokens),
                    here: self.here,
                    choices: &mut self.choices,
                    label: None,
                    failure: None,
                };
                if let Some(line) = attempt.row(row) {
                    return Some(line);
                }
            }
        }
        None
    }

    /// Tries all rows again, records how far each row matched, and returns the message.
    #[cold]
    fn explain(&mut self, rows: &[Named<D>], named: Reader, line: &str, tokens: &[Token]) -> Diagnostic {
        let place = named.place();
        if rows.is_empty() {
            let name = named.peek();
            if name.is_empty() {
                return Diagnostic::error(named.span_of(place), "an instruction is missing here");
            }
            return Diagnostic::error(named.span_of(place), format!("unknown instruction `{name}`"))
                .help(suggest(name, sorted(self.table.names()).iter().copied()));
        }
        let mut failure = Failure::default();
        for (number, row) in rows.iter().map(|named| named.row).enumerate() {
            if !row.scope.admits(self.here) {
                continue;
            }
            failure.trying = number;
            let mut attempt = Attempt {
                reader: Reader::new(line, tokens),
                here: self.here,
                choices: &mut self.choices,
                label: None,
                failure: Some(&mut failure),
            };
            attempt.row(row);
        }
        let Some(place) = failure.place else {
            let name = named.peek();
            let message = format!("`{name}` does not exist on this chip or in this program type");
            return Diagnostic::error(named.span_of(place), message)
                .help("choose another `.chip` or `.type`, or another instruction");
        };
        let found = Reader { line, tokens, at: place };
        let span = found.span_of(place);
        if let Some(why) = failure.why {
            return Diagnostic::error(span, why);
        }
        // If the position is after `[`, the line does not lack a word there. Instead, the operand in brackets has a
        // wrong value.
        let in_brackets = line[..span.start].trim_end().ends_with('[');
        let missing = match in_brackets {
            true => None,
            false => self.missing_word(rows, &failure.words, line, tokens),
        };
        let hidden = |text: &&str| self.hidden.iter().any(|start| text.starts_with(start));
        let fits = sorted(failure.expected.iter().map(String::as_str).filter(|text| !hidden(text)));
        let message = match found.peek() {
            "" => "the instruction is not complete".to_owned(),
            text => format!("unexpected `{text}`"),
        };
        if let Some(help) = missing {
            return Diagnostic::error(span, message).help(help);
        }
        let mut help = match fits.as_slice() {
            [END_OF_LINE] => "the instruction ends before this text".to_owned(),
            _ => suggest(found.peek(), fits.iter().copied()),
        };
        let example =
            rows.get(failure.row).and_then(|row| example(self.table, row.row, named.peek(), self.here));
        if let Some(example) = example {
            help.push_str(&format!(", as in `{example}`"));
        }
        Diagnostic::error(span, message).help(help)
    }
}

impl<D: Draft> LineReader<'_, D> {
    /// Returns advice for a line that lacks one word. The advice names the words with which the line would fit a row.
    /// If a word could be missing at several positions, the advice is about the last position. `words` contains the
    /// words that rows expected, and the position of each word in the line.
    fn missing_word(
        &mut self,
        rows: &[Named<D>],
        words: &[(usize, &'static str)],
        line: &str,
        tokens: &[Token],
    ) -> Option<String> {
        let mut words: Vec<(usize, &str)> = words
            .iter()
            .copied()
            .filter(|(_, word)| word.starts_with(|c: char| c.is_ascii_alphabetic()))
            .collect();
        // The code tries the last position first, because words before the mnemonic only select between encodings.
        // Words for one position keep the order of the table. In the table, the most common word comes first.
        words.sort_by_key(|(place, _)| std::cmp::Reverse(*place));
        let reader = Reader::new(line, tokens);
        let mut fitting: Vec<(usize, &str, String)> = Vec::new();
        for (place, word) in words {
            if fitting.first().is_some_and(|(first, ..)| *first != place) {
                break;
            }
            let (before, behind) = line.split_at(reader.span_of(place).start);
            let gap = if before.is_empty() || before.ends_with([' ', '\t']) { "" } else { " " };
            let longer = format!("{before}{gap}{word} {behind}").trim_end().to_owned();
            let mut tokens = Vec::new();
            let bits = tokenize(&longer, &mut tokens);
            let is_new = fitting.iter().all(|(_, known, _)| *known != word);
            if is_new && self.first(rows, &longer, &tokens, bits).is_some() {
                fitting.push((place, word, longer));
            }
        }
        let (_, _, example) = fitting.first()?;
        let words: Vec<&str> = fitting.iter().map(|(_, word, _)| *word).collect();
        let missing = match words.as_slice() {
            [one] => format!("`{one}`"),
            many => format!("one of {}", many.join(", ")),
        };
        Some(format!("{missing} is missing: did you mean `{example}`?"))
    }
}

/// Name of the end of the line, for messages about text after a complete instruction.
const END_OF_LINE: &str = "the end of the line";

/// Returns whether a text is a number of more than 32 bits.
fn is_long_number(text: &str) -> bool {
    let plain = text.replace('_', "");
    let all = |digits: &str, is_digit: fn(&u8) -> bool| {
        !digits.is_empty() && digits.as_bytes().iter().all(is_digit)
    };
    let is_number = match plain.strip_prefix("0x") {
        Some(digits) => all(digits, u8::is_ascii_hexdigit),
        None => all(&plain, u8::is_ascii_digit),
    };
    is_number && parse_number(text).is_none_or(|number| number > u64::from(u32::MAX))
}

/// Returns a number in hexadecimal digits. A negative number has a minus sign.
fn signed_hex(number: i64) -> String {
    let sign = if number < 0 { "-" } else { "" };
    format!("{sign}{:#x}", number.unsigned_abs())
}

fn sorted<'a>(words: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut words: Vec<&str> = words.collect();
    words.sort_unstable();
    words.dedup();
    words
}

/// The furthest position that any row reached, with the reasons why rows failed at that position.
#[derive(Default)]
struct Failure {
    place: Option<usize>,
    /// `trying` is the number of the row that the reader tries at the moment. `row` is the number of the first row that
    /// reached the position.
    trying: usize,
    row: usize,
    expected: Vec<String>,
    why: Option<String>,
    /// The largest number that would fit at the position. `None` if the number at the position is not too large.
    most: Option<u32>,
    /// Words that rows expected and did not find, each with its position.
    words: Vec<(usize, &'static str)>,
}

struct Attempt<'a, 'b, D: Draft> {
    reader: Reader<'a, 'b>,
    here: Scope,
    choices: &'b mut Vec<(&'static Cases<D>, usize)>,
    /// The label that the line uses as an address.
    label: Option<LabelUse<'a>>,
    failure: Option<&'b mut Failure>,
}

impl<'a, D: Draft> Attempt<'a, '_, D> {
    fn row(&mut self, row: &'static Row<D>) -> Option<Line<'a, D>> {
        self.choices.clear();
        self.label = None;
        let mut known = Known { at: 0, mask: row.mask, fixed: row.fixed, choices: 0 };
        if !self.parts(row.parts, &mut known) {
            return None;
        }
        let mut word = known.fixed | row.default & !known.mask;
        self.reader.at = known.at;
        if self.reader.eat("bits") {
            word ^= self.unclaimed(row, known.mask)?;
        }
        if !self.reader.at_end() {
            let place = self.reader.at;
            self.fail(place, || END_OF_LINE.to_owned());
            return None;
        }
        for &(cases, chosen) in &self.choices[..known.choices] {
            if cases.cases[..chosen].iter().any(|case| case.holds(word, self.here)) {
                let place = self.reader.at;
                self.refuse(place, || format!("these bits select another form of {}", cases.name));
                return None;
            }
        }
        Some(Line { row, word, label: self.label })
    }

    /// Reads the numbers after the word `bits`: the unclaimed bits that differ from the row's default.
    fn unclaimed(&mut self, row: &Row<D>, claimed: u64) -> Option<u64> {
        let place = self.reader.at;
        let number = |attempt: &mut Self| {
            let place = attempt.reader.at;
            let number = attempt.reader.number();
            if number.is_none() {
                attempt.fail(place, || "a 32-bit number".to_owned());
            }
            number.map(u64::from)
        };
        let mut unclaimed = number(self)?;
        if row.long {
            unclaimed |= number(self)? << 32;
        }
        if unclaimed & claimed != 0 {
            let both = unclaimed & claimed;
            self.refuse(place, || format!("the text before `bits` already determines the bits {both:#x}"));
            return None;
        }
        Some(unclaimed)
    }

    fn parts(&mut self, parts: &'static [Part<D>], known: &mut Known) -> bool {
        parts.iter().all(|part| self.part(part, known))
    }

    #[inline]
    fn part(&mut self, part: &'static Part<D>, known: &mut Known) -> bool {
        self.reader.at = known.at;
        let start = known.at;
        let pattern = match part {
            Part::Set(_) => return true,
            Part::Text(text) => self.reader.eat(text).then_some(BitPattern::default()),
            Part::Open => self.reader.eat("(").then_some(BitPattern::default()),
            Part::Close => self.reader.eat(")").then_some(BitPattern::default()),
            Part::Word(words) => {
                let token = self.reader.token();
                let is_it = |known: &Option<&str>| known.is_some_and(|text| same(token, text));
                let value = if token.is_empty() { None } else { words.texts.iter().position(is_it) };
                let value = match value {
                    Some(value) => {
                        self.reader.at += 1;
                        Some(value)
                    }
                    None => words.texts.iter().position(|known| known.is_some_and(str::is_empty)),
                };
                value.map(|value| BitPattern {
                    mask: words.field.mask(),
                    fixed: words.field.put(value as u32),
                })
            }
            Part::Number(number) => self.number(number),
            Part::Memory(memory) => self.memory(memory),
            Part::Custom(custom) => (custom.parse)(&mut self.reader),
            Part::Case(cases) => return self.case(cases, known),
        };
        let Some(BitPattern { mask, fixed }) = pattern else {
            let place = self.reader.at.max(start);
            if self.failure.is_some() {
                self.expect(place, part);
            }
            return false;
        };
        if (fixed ^ known.fixed) & mask & known.mask != 0 {
            self.refuse(start, || "this text contradicts the earlier text of the instruction".to_owned());
            return false;
        }
        known.mask |= mask;
        known.fixed |= fixed;
        known.at = self.reader.at;
        true
    }

    /// Selects the first case whose bits and text fit. A case without text is selected only if no case with text fits.
    fn case(&mut self, cases: &'static Cases<D>, known: &mut Known) -> bool {
        let before = *known;
        let mut silent = None;
        let explaining = self.failure.is_some();
        for (index, case) in cases.cases.iter().enumerate() {
            if (case.fixed ^ known.fixed) & case.mask & known.mask != 0 || !case.scope.admits(self.here) {
                continue;
            }
            let first = match case.parts {
                [] | [Part::Set(_)] => {
                    silent = silent.or(Some((index, case)));
                    continue;
                }
                [first, ..] => first,
            };
            if !explaining && !can_begin(first, self.reader.token_at(known.at)) {
                continue;
            }
            self.choose(cases, index, known);
            if self.parts(case.parts, known) {
                return true;
            }
            *known = before;
        }
        match silent {
            Some((index, case)) => {
                self.choose(cases, index, known);
                self.parts(case.parts, known)
            }
            None => false,
        }
    }

    #[inline(always)]
    fn choose(&mut self, cases: &'static Cases<D>, index: usize, known: &mut Known) {
        let case = &cases.cases[index];
        known.mask |= case.mask;
        known.fixed |= case.fixed;
        self.choices.truncate(known.choices);
        self.choices.push((cases, index));
        known.choices += 1;
    }

    #[inline(always)]
    fn number(&mut self, number: &Number<D>) -> Option<BitPattern> {
        let field = number.field;
        let place = self.reader.at;
        let (value, fits) = match number.style {
            Style::Register(prefix, suffix) | Style::Aligned(prefix, suffix, _) => {
                let digits = strip(self.reader.token(), prefix)?;
                let (value, rest) = split_decimal(digits)?;
                if !same(rest, suffix) {
                    return None;
                }
                if let Style::Aligned(_, _, count) = number.style
                    && !value.is_multiple_of(count)
                {
                    self.refuse(place, || {
                        let below = value - value % count;
                        format!(
                            "{count} registers together begin at a multiple of {count}: {prefix}{below}{suffix} or \
                             {prefix}{}{suffix}",
                            below.saturating_add(count)
                        )
                    });
                    return None;
                }
                self.reader.at += 1;
                (value, true)
            }
            Style::Half(prefix) => {
                let digits = strip(self.reader.token(), prefix)?;
                let (value, rest) = split_decimal(digits)?;
                let high = match rest {
                    b"l" => 0,
                    b"h" => 1,
                    _ => return None,
                };
                self.reader.at += 1;
                (value << 1 | high, true)
            }
            Style::Hex => (self.reader.number().or_else(|| self.oversized(place, number))?, true),
            Style::Signed => {
                let value = self.reader.signed()?;
                let half = 1_i64 << (field.len() - 1);
                (value as u32, (-half..half).contains(&value))
            }
            Style::Code(shift) => {
                let text = self.reader.peek();
                if text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
                    self.label =
                        Some(LabelUse { name: text, span: self.reader.span_of(place), field, shift });
                    self.reader.at += 1;
                    return Some(BitPattern { mask: field.mask(), fixed: 0 });
                }
                let address = self.reader.number().or_else(|| self.oversized(place, number))?;
                (address >> shift, address >> shift << shift == address)
            }
        };
        let mut bits = field.put(value);
        if number.style == Style::Signed {
            bits = field.put(value);
        } else if !(fits && field.get(bits) == value) {
            self.too_large(place, number, value, fits);
            self.reader.at = place;
            return None;
        }
        if !fits {
            let half = 1_i64 << (field.len() - 1);
            let text = self.reader.text_from(place);
            let range = format!("{} to {}", signed_hex(-half), signed_hex(half - 1));
            self.refuse(place, || format!("{text} is out of range for {}: expected {range}", number.name));
            self.reader.at = place;
            return None;
        }
        Some(BitPattern { mask: field.mask(), fixed: bits })
    }

    /// Rejects a number that has more than 32 bits.
    #[cold]
    fn oversized(&mut self, place: usize, number: &Number<D>) -> Option<u32> {
        if is_long_number(self.reader.peek()) {
            self.too_large(place, number, u32::MAX, true);
        }
        None
    }

    #[inline(always)]
    fn memory(&mut self, memory: &Memory<D>) -> Option<BitPattern> {
        let start = self.reader.at;
        let rest = strip(self.reader.token(), memory.space)?;
        if self.reader.byte_at(1) != Some(b'[') {
            return None;
        }
        let mut pattern = BitPattern { mask: memory.bits(), fixed: 0 };
        match memory.bank {
            Some(field) => {
                let (bank, rest) = split_decimal(rest)?;
                if !rest.is_empty() {
                    return None;
                }
                let bits = field.put(bank);
                if field.get(bits) != bank {
                    let (space, most) = (memory.space, field.get(field.mask()));
                    self.refuse_above(start, most, || {
                        format!("{space}{bank}[] does not exist: expected {space}0[] to {space}{most}[]")
                    });
                    return None;
                }
                pattern.fixed |= bits;
            }
            None if rest.is_empty() => {}
            None => return None,
        }
        self.reader.at += 2;
        let place = self.reader.at;
        let mut has_offset = true;
        if let Some((prefix, field)) = memory.base {
            match self.reader.register(prefix) {
                Some(number) => {
                    let bits = field.put(number);
                    if field.get(bits) != number {
                        let (least, most) = (u8::from(!memory.always_base), field.get(field.mask()));
                        self.refuse_above(place, most, || {
                            format!(
                                "{prefix}{number} does not exist: expected {prefix}{least} to {prefix}{most}"
                            )
                        });
                        self.reader.at = place;
                        return None;
                    }
                    pattern.fixed |= bits;
                    let plus = self.reader.eat("+");
                    let increment = plus && self.reader.eat("+");
                    if increment != memory.increment {
                        self.reader.at = place;
                        return None;
                    }
                    has_offset = (plus || self.reader.peek() == "-") && self.reader.peek() != "]";
                }
                None if memory.always_base => return None,
                None => {}
            }
        }
        let place = self.reader.at;
        let offset = match has_offset {
            true => self.reader.signed().or_else(|| self.long_offset())?,
            false => 0,
        };
        let Some(bits) = memory.offset_bits(offset) else {
            self.misplaced(place, memory, offset);
            self.reader.at = place;
            return None;
        };
        pattern.fixed |= bits;
        self.reader.eat("]").then_some(pattern)
    }

    /// For a number of more than 32 bits at the reader's position, returns an offset that never fits.
    #[cold]
    fn long_offset(&self) -> Option<i64> {
        is_long_number(self.reader.peek()).then_some(i64::MAX)
    }

    /// Rejects the offset of a memory operand. The message describes the row with the largest range.
    #[cold]
    fn misplaced(&mut self, place: usize, memory: &Memory<D>, offset: i64) {
        let Some(field) = memory.offset else {
            return self.refuse(place, || {
                let space = memory.space;
                format!("an address in {space}[] cannot have an offset: add the offset to the register first")
            });
        };
        let (unit, limit) = (1_i64 << memory.shift, 1_i64 << field.len());
        let (least, end) = if memory.signed { (-limit / 2, limit / 2) } else { (0, limit) };
        let (least, most) = (least * unit, (end - 1) * unit);
        let text = self.reader.text_from(place);
        self.refuse_above(place, most as u32, || {
            if (least..=most).contains(&offset) {
                let below = offset.div_euclid(unit) * unit;
                let above = Some(below + unit).filter(|above| *above <= most).map(signed_hex);
                let above = above.map(|above| format!(" or {above}")).unwrap_or_default();
                return format!("{text} is not a multiple of {unit}: expected {}{above}", signed_hex(below));
            }
            let steps = if unit > 1 { format!(", multiples of {unit}") } else { String::new() };
            format!("{text} is out of range: expected {} to {}{steps}", signed_hex(least), signed_hex(most))
        });
    }

    /// Records that a number at `place` was read but exceeds `most`. The message describes the row with the largest
    /// limit.
    #[cold]
    fn refuse_above(&mut self, place: usize, most: u32, why: impl FnOnce() -> String) {
        let Some(failure) = &mut self.failure else { return };
        failure.reach(place);
        let is_nearer = failure.why.is_none() || failure.most.is_some_and(|before| before < most);
        if failure.place == Some(place) && is_nearer {
            failure.most = Some(most);
            failure.why = Some(why());
        }
    }

    /// Records that the text `what` would have fitted at `place`.
    fn fail(&mut self, place: usize, what: impl FnOnce() -> String) {
        if let Some(failure) = &mut self.failure {
            failure.reach(place);
            if failure.place == Some(place) {
                failure.expected.push(what());
            }
        }
    }

    /// Records that the text at `place` fits the syntax of the row, but that the row rejects the text. `why` returns
    /// the reason.
    fn refuse(&mut self, place: usize, why: impl FnOnce() -> String) {
        if let Some(failure) = &mut self.failure {
            failure.reach(place);
            if failure.place == Some(place) && failure.why.is_none() {
                failure.why = Some(why());
            }
        }
    }

    /// Records that the number at `place` does not fit into its field. The message describes the row that allows the
    /// largest number.
    #[cold]
    fn too_large(&mut self, place: usize, number: &Number<D>, value: u32, is_multiple: bool) {
        let most = number.field.get(number.field.mask());
        let (text, name) = (self.reader.text_at(place), number.name);
        self.refuse_above(place, most, || match number.style {
            Style::Register(prefix, suffix) | Style::Aligned(prefix, suffix, _) => {
                format!(
                    "{prefix}{value}{suffix} is too large: expected {prefix}0{suffix} to {prefix}{most}{suffix}"
                )
            }
            Style::Half(prefix) => {
                format!("{prefix}{} is too large: expected {prefix}0l to {prefix}{}h", value >> 1, most >> 1)
            }
            Style::Code(shift) if !is_multiple => {
                format!("{name}: expected a multiple of {:#x}, found {text}", 1_u32 << shift)
            }
            Style::Code(shift) => format!("{text} is too large for {name}: expected 0x0 to {:#x}", most << shift),
            Style::Hex | Style::Signed => format!("{text} is too large for {name}: expected 0x0 to {most:#x}"),
        });
    }

    #[cold]
    fn expect(&mut self, place: usize, part: &Part<D>) {
        if let Some(failure) = &mut self.failure {
            match part {
                Part::Text(text) => failure.words.push((place, text)),
                Part::Word(words) => {
                    failure.words.extend(words.texts.iter().flatten().map(|text| (place, *text)));
                }
                _ => {}
            }
        }
        match part {
            Part::Text(text) => self.fail(place, || (*text).to_owned()),
            Part::Open => self.fail(place, || "(".to_owned()),
            Part::Close => self.fail(place, || ")".to_owned()),
            Part::Word(words) => {
                for text in words.texts.iter().flatten() {
                    self.fail(place, || (*text).to_owned());
                }
            }
            Part::Number(number) => self.fail(place, || match number.style {
                Style::Register(prefix, suffix) | Style::Aligned(prefix, suffix, _) => {
                    format!("{prefix}0{suffix}")
                }
                Style::Half(prefix) => format!("{prefix}0l"),
                Style::Hex | Style::Signed if number.name == "immediate" => "0x0".to_owned(),
                Style::Hex | Style::Signed => format!("0x0 ({})", number.name),
                Style::Code(_) => "a label".to_owned(),
            }),
            Part::Memory(memory) => self.fail(place, || {
                let bank = if memory.bank.is_some() { "0" } else { "" };
                let inside = match memory.base {
                    Some((prefix, _)) if memory.always_base => format!("{prefix}1"),
                    Some(_) | None => "0x0".to_owned(),
                };
                let increment = if memory.increment { "++0x4" } else { "" };
                format!("{}{bank}[{inside}{increment}]", memory.space)
            }),
            Part::Custom(custom) => self.fail(place, || custom.name.to_owned()),
            Part::Case(_) | Part::Set(_) => {}
        }
    }
}

/// Returns whether a part's text can begin with a token. Only the first characters are compared.
#[inline(always)]
fn can_begin<D>(part: &Part<D>, token: &[u8]) -> bool {
    let starts = |text: &str| token.first() == text.as_bytes().first();
    match part {
        Part::Text(text) => starts(text),
        Part::Open => token == b"(",
        Part::Close => token == b")",
        Part::Number(number) => match number.style {
            Style::Register(prefix, _) | Style::Aligned(prefix, ..) | Style::Half(prefix) => {
                token.get(1) == prefix.as_bytes().get(1) && starts(prefix)
            }
            Style::Hex | Style::Signed | Style::Code(_) => true,
        },
        Part::Memory(memory) => starts(memory.space),
        Part::Word(_) | Part::Case(_) | Part::Custom(_) | Part::Set(_) => true,
    }
}

impl Failure {
    fn reach(&mut self, place: usize) {
        if self.place.is_none_or(|furthest| furthest < place) {
            *self = Failure {
                place: Some(place),
                row: self.trying,
                trying: self.trying,
                words: std::mem::take(&mut self.words),
                ..Failure::default()
            };
        }
    }
}

impl<D> Memory<D> {
    /// Returns the bits of the field for an offset in bytes, or `None` if the offset cannot be encoded.
    #[inline(always)]
    fn offset_bits(&self, offset: i64) -> Option<u64> {
        let Some(field) = self.offset else {
            return (offset == 0).then_some(0);
        };
        let units = offset >> self.shift;
        if units << self.shift != offset {
            return None;
        }
        let limit = 1_i64 << field.len();
        let range = if self.signed { -limit / 2..limit / 2 } else { 0..limit };
        range.contains(&units).then(|| field.put(units as u32))
    }
}
