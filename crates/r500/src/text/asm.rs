//! Text to words.
//!
//! Two passes: each line becomes a record, with a note of what its jump address depends on; then labels and flow
//! constructs are resolved. Errors are collected, so that one run shows many.

use std::collections::HashMap;

use reconverge_isa::program::ConstantBlock;
use reconverge_isa::source::{self, Cursor, Diagnostic, Level, Span, suggest};
use reconverge_isa::word::{FieldValue, Kind};
use reconverge_isa::{Field, Program};

use super::construct::{CONSTRUCTS, Condition, Construct, Jumps, Pop, Statement};
use super::dis::{blank, default_swizzle};
use super::syntax::{self, COMPARISONS, OMOD, TARGETS, UNUSED_SOURCE, UNUSED_SOURCES};
use crate::inst::{CONSTANTS, LOOP_CONSTANTS, SAMPLERS, SLOTS, TEMPORARIES, WORDS};
use crate::words::*;

/// What a source says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Assembled {
    /// Words, state and constants.
    pub program: Program,
    /// The chip, from `.chip`.
    pub chip: Option<String>,
    /// What is allowed but probably not meant.
    pub warnings: Vec<Diagnostic>,
}

/// Errors after which the rest of a file is not looked at.
const MOST_ERRORS: usize = 20;

/// The program of a source text.
///
/// # Errors
/// Everything that is wrong with it, up to twenty messages, in the order of the text.
pub fn assemble(source: &str) -> Result<Assembled, Vec<Diagnostic>> {
    let mut assembler = Assembler::default();
    for (offset, line) in source::lines(source) {
        if let Err(error) = assembler.line(Cursor::new(line, offset)) {
            assembler.errors.push(error);
            if assembler.errors.len() >= MOST_ERRORS {
                break;
            }
        }
    }
    assembler.finish()
}

type Parsed<T> = Result<T, Diagnostic>;

/// A record and where it stands in the text.
struct Record {
    words: [u32; WORDS],
    span: Span,
    /// What decides JUMP_ADDR.
    target: Target,
}

enum Target {
    /// It is in the words.
    Fixed,
    Label(String, Span),
    /// The construct's partner decides.
    Structure,
}

#[derive(Default)]
struct Assembler {
    records: Vec<Record>,
    data: Vec<u32>,
    labels: HashMap<String, usize>,
    base: u32,
    state: Vec<(String, u32)>,
    constants: Vec<(u8, [u32; 4])>,
    chip: Option<String>,
    errors: Vec<Diagnostic>,
    warnings: Vec<Diagnostic>,
}

/// Chips with an R500 fragment processor, and the family's own name. (AMD R5xx 3D register reference; Mesa's list)
const CHIPS: [&str; 7] = ["R500", "R520", "RV515", "RV530", "R580", "RV560", "RV570"];

const DIRECTIVES: [&str; 10] =
    [".isa", ".chip", ".base", ".const", ".int", ".bool", ".out", ".state", ".word", ".data"];

fn expected(cursor: &Cursor<'_>, message: impl Into<String>, fits: impl Into<String>) -> Diagnostic {
    let found = cursor.here();
    let label = if found.start == found.end { "the line ends here" } else { "" };
    Diagnostic::error(found, message).label(label).help(fits)
}

impl Assembler {
    fn line(&mut self, mut cursor: Cursor<'_>) -> Parsed<()> {
        if cursor.at_end() {
            return Ok(());
        }
        let start = cursor.offset();
        if cursor.eat("+") {
            return self.alpha_line(&mut cursor, start);
        }
        if cursor.peek() == Some('.') {
            return self.directive(&mut cursor, start);
        }
        let word = cursor.word().to_owned();
        if cursor.eat(":") {
            let span = cursor.since(start);
            if self.labels.insert(word.clone(), self.records.len()).is_some() {
                return Err(Diagnostic::error(span, format!("label `{word}` is defined twice")));
            }
            return self.line(cursor);
        }
        let mut target = Target::Fixed;
        let mut words = match word.as_str() {
            "ALU" => alu_line(&mut cursor, InstType::ALU)?,
            "OUT" => alu_line(&mut cursor, InstType::OUT)?,
            "TEX" => tex_line(&mut cursor)?,
            "FC" => raw_fc(&mut cursor, &mut target)?,
            name => match CONSTRUCTS.iter().any(|construct| construct.name == name) {
                true => statement(&mut cursor, name, &mut target)?,
                false => return Err(unknown_mnemonic(name, cursor.since(start))),
            },
        };
        let Some(kind) = InstType::from_bits(words[0] & 3, 2) else { unreachable!("two bits") };
        braces(&mut cursor, kind, &mut words)?;
        end(&cursor)?;
        if !self.data.is_empty() {
            return Err(Diagnostic::error(cursor.since(start), "an instruction behind .data")
                .help(".data holds words that are no whole instruction: it stands at the end"));
        }
        self.records.push(Record { words, span: cursor.since(start), target });
        Ok(())
    }

    /// The alpha half of the instruction before.
    fn alpha_line(&mut self, cursor: &mut Cursor<'_>, start: usize) -> Parsed<()> {
        let before = self.records.last_mut().filter(|record| record.words[0] & 3 <= InstType::OUT as u32);
        let Some(record) = before else {
            return Err(Diagnostic::error(
                cursor.since(start),
                "an alpha half without an ALU or OUT line before it",
            ));
        };
        alpha_half(cursor, &mut record.words)?;
        let Some(kind) = InstType::from_bits(record.words[0] & 3, 2) else { unreachable!("two bits") };
        braces(cursor, kind, &mut record.words)?;
        end(cursor)
    }

    // ---- Directives

    fn directive(&mut self, cursor: &mut Cursor<'_>, start: usize) -> Parsed<()> {
        cursor.eat(".");
        let name = format!(".{}", cursor.word());
        let span = cursor.since(start);
        match name.as_str() {
            ".isa" => {
                let at = cursor.here();
                let isa = cursor.token();
                if isa != "r500" {
                    return Err(Diagnostic::error(at, format!("this is the r500 assembler, not {isa}'s"))
                        .help("`r500` fits here"));
                }
            }
            ".chip" => {
                let at = cursor.here();
                let chip = cursor.token().to_owned();
                if !CHIPS.iter().any(|known| known.eq_ignore_ascii_case(&chip)) {
                    return Err(Diagnostic::error(at, format!("`{chip}` is not an R500 chip"))
                        .help(suggest(&chip, CHIPS)));
                }
                self.chip = Some(chip);
            }
            ".base" => self.base = number(cursor, "a slot", SLOTS as u64 - 1)? as u32,
            ".const" => {
                let n = number(cursor, "a float constant", CONSTANTS as u64 - 1)? as u8;
                let mut value = [0; 4];
                for channel in &mut value {
                    *channel = float(cursor)?;
                }
                self.constants.push((n, value));
            }
            ".int" => {
                let n = number(cursor, "an integer constant", LOOP_CONSTANTS as u64 - 1)?;
                let kr = number(cursor, "an iteration count (KR)", 255)? as u8;
                let kg = number(cursor, "an initial aL (KG)", 255)? as u8;
                let kb = signed(cursor, "an aL step (KB)", -128, 127)? as i8;
                self.set_state(format!("US_FC_INT_CONST_{n}"), FcIntConst { kr, kg, kb }.pack());
            }
            ".bool" => {
                let n = number(cursor, "a boolean constant", LOOP_CONSTANTS as u64 - 1)? as u32;
                let at = cursor.here();
                let value = match cursor.word() {
                    "true" | "1" => true,
                    "false" | "0" => false,
                    other => {
                        return Err(Diagnostic::error(at, format!("`{other}` is not a boolean"))
                            .help("true or false fits here"));
                    }
                };
                let name = "US_FC_BOOL_CONST".to_owned();
                let old = self.state.iter().find(|(known, _)| *known == name).map_or(0, |(_, value)| *value);
                self.set_state(name, old & !(1 << n) | u32::from(value) << n);
            }
            ".out" => {
                let at = cursor.here();
                let target = cursor.word();
                let n = TARGETS.iter().position(|known| *known == target).ok_or_else(|| {
                    Diagnostic::error(at, format!("`{target}` is not a render target"))
                        .help(suggest(target, TARGETS))
                })?;
                let mut raw = 0;
                for field in OutFmtReg::FIELDS.iter().take_while(|field| field.name != "out_sign") {
                    if field.name == "out_fmt" || !cursor.at_end() {
                        raw = field.set(raw, field_value(cursor, field)?);
                    }
                }
                self.set_state(format!("US_OUT_FMT_{n}"), raw);
            }
            ".state" => self.state_directive(cursor)?,
            ".word" => {
                let mut words = [0; WORDS];
                for word in &mut words {
                    *word = number(cursor, "a 32-bit word", u64::from(u32::MAX))? as u32;
                }
                self.records.push(Record { words, span, target: Target::Fixed });
            }
            ".data" => self.data.push(number(cursor, "a 32-bit word", u64::from(u32::MAX))? as u32),
            _ => {
                return Err(Diagnostic::error(span, format!("unknown directive `{name}`"))
                    .help(suggest(&name, DIRECTIVES)));
            }
        }
        end(cursor)
    }

    fn state_directive(&mut self, cursor: &mut Cursor<'_>) -> Parsed<()> {
        let at = cursor.here();
        let name = cursor.word().to_owned();
        let register = state_register(&name).map(|(register, _)| register);
        if register.is_none() && !name.starts_with("RS_") {
            let names = STATE.iter().map(|register| register.word.name).collect::<Vec<_>>();
            let help = suggest(name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '_'), names);
            return Err(Diagnostic::error(at, format!("unknown state register `{name}`")).help(help));
        }
        let mut raw = 0;
        if cursor.peek().is_some_and(|c| c.is_ascii_digit()) {
            raw = number(cursor, "a 32-bit word", u64::from(u32::MAX))? as u32;
        } else if let Some(register) = register {
            while !cursor.at_end() {
                let at = cursor.here();
                let field = cursor.word();
                let field = register.word.field(field).ok_or_else(|| {
                    let fields = register.word.fields.iter().map(|field| field.name).collect::<Vec<_>>();
                    Diagnostic::error(at, format!("{name} has no field `{field}`"))
                        .help(suggest(field, fields))
                })?;
                raw = assigned_field(cursor, field, raw)?;
            }
        }
        self.set_state(name, raw);
        Ok(())
    }

    fn set_state(&mut self, name: String, value: u32) {
        match self.state.iter_mut().find(|(known, _)| *known == name) {
            Some((_, old)) => *old = value,
            None => self.state.push((name, value)),
        }
    }

    // ---- Second pass

    fn finish(mut self) -> Result<Assembled, Vec<Diagnostic>> {
        if self.errors.is_empty() && self.records.len() + self.base as usize > SLOTS {
            let first_over = SLOTS.saturating_sub(self.base as usize);
            let message = format!(
                "{} instructions do not fit: R500 has {SLOTS} instruction slots{}",
                self.records.len(),
                if self.base > 0 {
                    format!(" and the program starts at slot {}", self.base)
                } else {
                    String::new()
                }
            );
            self.errors.push(
                Diagnostic::error(self.records[first_over].span, message)
                    .label("the first instruction too many")
                    .help("shorten the program; there is no way to load more"),
            );
        }
        let state = |name: &str| self.state.iter().find(|(known, _)| known == name).map(|(_, value)| *value);
        let offset = state("US_CODE_OFFSET").unwrap_or(0);
        let first = i64::from(self.base) - i64::from(offset);
        let structure = structure(&mut self.records, &mut self.errors, &mut self.warnings);
        for index in 0..self.records.len() {
            let (to, span) = match &self.records[index].target {
                Target::Fixed => continue,
                Target::Label(label, span) => match self.labels.get(label) {
                    Some(to) => (*to, *span),
                    None => {
                        let names: Vec<&str> = self.labels.keys().map(String::as_str).collect();
                        self.errors.push(
                            Diagnostic::error(*span, format!("undefined label `{label}`"))
                                .help(suggest(label, names)),
                        );
                        continue;
                    }
                },
                Target::Structure => match structure[index] {
                    Some(to) => (to, self.records[index].span),
                    None => continue,
                },
            };
            let address = first + to as i64;
            let words = &mut self.records[index].words;
            match u16::try_from(address).ok().filter(|address| usize::from(*address) < SLOTS) {
                Some(address) => words[3] = jump_addr().set(words[3], u32::from(address)),
                // A target behind the last slot is only ever a construct's unused end.
                None if address == SLOTS as i64 => {}
                None => self.errors.push(
                    Diagnostic::error(
                        span,
                        format!("the target is at address {address}, outside 0 to {}", SLOTS - 1),
                    )
                    .help("addresses count from US_CODE_OFFSET"),
                ),
            }
        }
        if !self.errors.is_empty() {
            self.errors.sort_by_key(|error| error.span.start);
            return Err(self.errors);
        }
        let words =
            self.records.iter().flat_map(|record| record.words).chain(self.data.iter().copied()).collect();
        let program = Program {
            words,
            base: self.base,
            state: self.state,
            constants: constant_blocks(&self.constants),
            ..Program::default()
        };
        Ok(Assembled { program, chip: self.chip, warnings: self.warnings })
    }
}

fn jump_addr() -> &'static Field {
    match FcAddr::INFO.field("jump_addr") {
        Some(field) => field,
        None => unreachable!("US_FC_ADDR has a JUMP_ADDR"),
    }
}

/// Constants that follow each other make one block.
fn constant_blocks(constants: &[(u8, [u32; 4])]) -> Vec<ConstantBlock> {
    let mut blocks: Vec<ConstantBlock> = Vec::new();
    for (number, value) in constants {
        let offset = u32::from(*number) * 16;
        let bytes = value.iter().flat_map(|word| word.to_le_bytes());
        match blocks.last_mut() {
            Some(block) if block.offset + block.bytes.len() as u32 == offset => block.bytes.extend(bytes),
            _ => blocks.push(ConstantBlock { bank: 0, offset, bytes: bytes.collect() }),
        }
    }
    blocks
}

fn unknown_mnemonic(name: &str, span: Span) -> Diagnostic {
    let mut known = vec!["ALU", "OUT", "TEX", "FC"];
    for construct in CONSTRUCTS {
        if !known.contains(&construct.name) {
            known.push(construct.name);
        }
    }
    Diagnostic::error(span, format!("unknown mnemonic `{name}`")).help(suggest(name, known))
}

fn end(cursor: &Cursor<'_>) -> Parsed<()> {
    if cursor.at_end() {
        return Ok(());
    }
    let found = cursor.rest().trim();
    let span = Span::new(cursor.offset(), cursor.offset() + found.len());
    Err(Diagnostic::error(span, format!("`{found}` is not understood here")).help("the line should end here"))
}

fn number(cursor: &mut Cursor<'_>, what: &str, max: u64) -> Parsed<u64> {
    let at = cursor.here();
    match cursor.number() {
        Some(value) if value <= max => Ok(value),
        Some(value) => {
            Err(Diagnostic::error(at, format!("{what} cannot be {value}"))
                .help(format!("0 to {max} fits here")))
        }
        None => {
            Err(expected(cursor, format!("expected {what}"), format!("a number from 0 to {max} fits here")))
        }
    }
}

fn signed(cursor: &mut Cursor<'_>, what: &str, min: i64, max: i64) -> Parsed<i64> {
    let start = cursor.offset();
    let negative = cursor.eat("-");
    let value = cursor.number().and_then(|value| i64::try_from(value).ok());
    let value = value.map(|value| if negative { -value } else { value });
    value.filter(|value| (min..=max).contains(value)).ok_or_else(|| {
        Diagnostic::error(cursor.since(start), format!("expected {what}"))
            .help(format!("{min} to {max} fits here"))
    })
}

/// A float, or its bits as `0x…`.
fn float(cursor: &mut Cursor<'_>) -> Parsed<u32> {
    let start = cursor.offset();
    let text = cursor.token().trim_end_matches(',');
    let bits = match text.strip_prefix("0x") {
        Some(_) => source::parse_number(text).and_then(|bits| u32::try_from(bits).ok()),
        None => text.parse::<f32>().ok().map(f32::to_bits),
    };
    bits.ok_or_else(|| {
        Diagnostic::error(cursor.since(start), format!("`{text}` is not a number"))
            .help("four floats (1.5) or 32-bit patterns (0x3f800000) fit here")
    })
}

// ---- Fields

fn assigned_field(cursor: &mut Cursor<'_>, field: &'static Field, raw: u32) -> Parsed<u32> {
    if cursor.eat("=") {
        return Ok(field.set(raw, field_value(cursor, field)?));
    }
    if field.kind == Kind::Flag {
        return Ok(field.set(raw, 1));
    }
    let name = field.name.to_ascii_uppercase();
    Err(expected(cursor, format!("{name} needs a value"), format!("{name}=VALUE fits here")))
}

fn field_value(cursor: &mut Cursor<'_>, field: &'static Field) -> Parsed<u32> {
    let at = cursor.here();
    let start = cursor.offset();
    if field.kind == Kind::Signed && cursor.eat("-") {
        let value = cursor.number().unwrap_or(u64::MAX);
        return match i64::try_from(value) {
            Ok(value) if value <= i64::from(field.max() / 2) + 1 => Ok((-value) as u32 & field.max()),
            _ => Err(Diagnostic::error(cursor.since(start), "the number does not fit the field")),
        };
    }
    let word = cursor.word();
    let value = field
        .value_of(word)
        .or_else(|| source::parse_number(word).and_then(|value| u32::try_from(value).ok()));
    match value {
        Some(value) if value <= field.max() => Ok(value),
        Some(value) => {
            Err(Diagnostic::error(at, format!("{} cannot be {value}", field.name.to_ascii_uppercase()))
                .help(format!("0 to {} fits here", field.max())))
        }
        None => {
            let names = field.names.iter().map(|name| name.text).collect::<Vec<_>>();
            let help = if names.is_empty() {
                format!("a number from 0 to {} fits here", field.max())
            } else {
                suggest(word, names)
            };
            Err(Diagnostic::error(
                at,
                format!("unknown value `{word}` for {}", field.name.to_ascii_uppercase()),
            )
            .help(help))
        }
    }
}

/// `{NAME NAME=value -NAME WORD|=bits}`: fields of any word, by name.
fn braces(cursor: &mut Cursor<'_>, kind: InstType, words: &mut [u32; WORDS]) -> Parsed<()> {
    if !cursor.eat("{") {
        return Ok(());
    }
    let formats = layout(kind);
    loop {
        if cursor.eat("}") {
            return Ok(());
        }
        let at = cursor.here();
        let start = cursor.offset();
        let off = cursor.eat("-");
        let mut name = cursor.word().to_owned();
        if name.is_empty() {
            return Err(expected(
                cursor,
                "expected a field or `}`",
                "fields stand between braces: {NOP LAST}",
            ));
        }
        if cursor.eat(".") {
            name = format!("{name}.{}", cursor.word());
        }
        if cursor.eat("|=") {
            let word = (0..WORDS).find(|word| syntax::word_name(&formats[*word], *word) == name);
            let Some(word) = word else {
                let names =
                    (0..WORDS).map(|word| syntax::word_name(&formats[word], word)).collect::<Vec<_>>();
                let names = names.iter().map(String::as_str).collect::<Vec<_>>();
                return Err(
                    Diagnostic::error(at, format!("{kind} has no word `{name}`")).help(suggest(&name, names))
                );
            };
            words[word] |= number(cursor, "the bits to set", u64::from(u32::MAX))? as u32;
            continue;
        }
        let Some((word, field)) = syntax::field(kind, &name) else {
            let names =
                formats.iter().flat_map(|info| info.fields).map(|field| field.name).collect::<Vec<_>>();
            return Err(Diagnostic::error(cursor.since(start), format!("{kind} has no field `{name}`"))
                .help(suggest(&name, names)));
        };
        words[word] =
            if off { field.set(words[word], 0) } else { assigned_field(cursor, field, words[word])? };
    }
}

fn set(words: &mut [u32; WORDS], kind: InstType, name: &str, value: u32) {
    match syntax::field(kind, name) {
        Some((word, field)) => words[word] = field.set(words[word], value),
        None => unreachable!("{kind} has a field {name}"),
    }
}

// ---- Arithmetic

fn alu_line(cursor: &mut Cursor<'_>, kind: InstType) -> Parsed<[u32; WORDS]> {
    let mut words = [blank(kind).pack(), UNUSED_SOURCES, UNUSED_SOURCES, 0, 0, 0];
    if cursor.eat_word("nop") {
        words[1..].fill(0);
        return Ok(words);
    }
    if !matches!(cursor.peek(), None | Some('{')) {
        rgb_half(cursor, kind, &mut words)?;
    }
    Ok(words)
}

/// Where a half writes.
enum Dest {
    Temp { address: u32, rel: bool },
    Output { target: u32 },
    Depth,
    AluResult { op: AluResultOp, alpha: bool },
}

/// `temp[2].rg`, `out[A].rgb`, `pred[GE].a`, `out.w`, `alu_result[LT].r`; gives the place and the mask letters.
fn dest(cursor: &mut Cursor<'_>, kind: InstType) -> Parsed<(Dest, String, Span)> {
    let start = cursor.offset();
    let at = cursor.here();
    let file = cursor.word().to_owned();
    let dest = match (file.as_str(), kind) {
        ("temp", _) => {
            let (address, rel) = indexed(cursor, "a temporary", TEMPORARIES as u64 - 1)?;
            Dest::Temp { address, rel }
        }
        ("out", _) if cursor.peek() == Some('.') => Dest::Depth,
        ("out", InstType::OUT) => Dest::Output { target: named_index(cursor, "a render target", &TARGETS)? },
        ("pred", InstType::ALU) => {
            Dest::Output { target: named_index(cursor, "a comparison", &COMPARISONS)? }
        }
        ("alu_result", _) => {
            let names: Vec<&str> = AluResultOp::ALL.iter().map(|op| op.name()).collect();
            let op = AluResultOp::ALL[named_index(cursor, "a comparison", &names)? as usize];
            Dest::AluResult { op, alpha: false }
        }
        _ => {
            let fits: &[&str] = if kind == InstType::OUT {
                &["temp", "out", "alu_result"]
            } else {
                &["temp", "pred", "alu_result"]
            };
            let message = format!("{kind} cannot write to `{file}`");
            return Err(Diagnostic::error(at, message).help(suggest(&file, fits.to_vec())));
        }
    };
    if !cursor.eat(".") {
        return Err(expected(
            cursor,
            "expected the channels that are written",
            ".rgb, .a or ._ (none) fits here",
        ));
    }
    let mask = cursor.word().to_owned();
    let span = cursor.since(start);
    match dest {
        Dest::AluResult { op, .. } => {
            match mask.as_str() {
                "r" | "a" => Ok((Dest::AluResult { op, alpha: mask == "a" }, mask, span)),
                _ => Err(Diagnostic::error(span, "the ALU result comes from red or alpha")
                    .help(".r or .a fits here")),
            }
        }
        Dest::Depth if mask != "w" => Err(Diagnostic::error(span, "the depth output is out.w")),
        dest => Ok((dest, mask, span)),
    }
}

/// `[12]` or `[12+aL]`.
fn indexed(cursor: &mut Cursor<'_>, what: &str, max: u64) -> Parsed<(u32, bool)> {
    if !cursor.eat("[") {
        return Err(expected(cursor, format!("expected the number of {what}"), "[NUMBER] fits here"));
    }
    let value = number(cursor, what, max)? as u32;
    let rel = cursor.eat("+");
    if rel && !cursor.eat_word("aL") {
        return Err(expected(cursor, "expected aL", "only aL can be added to an address"));
    }
    if !cursor.eat("]") {
        return Err(expected(cursor, "expected `]`", "] or +aL fits here"));
    }
    Ok((value, rel))
}

/// `[NAME]`, as its place in a list.
fn named_index(cursor: &mut Cursor<'_>, what: &str, names: &[&str]) -> Parsed<u32> {
    if !cursor.eat("[") {
        return Err(expected(cursor, format!("expected {what}"), format!("[{}] fits here", names.join("|"))));
    }
    let at = cursor.here();
    let name = cursor.word();
    let index = names.iter().position(|known| *known == name).ok_or_else(|| {
        Diagnostic::error(at, format!("`{name}` is not {what}")).help(suggest(name, names.to_vec()))
    })?;
    if !cursor.eat("]") {
        return Err(expected(cursor, "expected `]`", "] fits here"));
    }
    Ok(index as u32)
}

/// `(pred.g)` or `(!pred.rgba)`.
fn predicate(cursor: &mut Cursor<'_>) -> Parsed<Option<(PredSel, bool)>> {
    if !cursor.eat("(") {
        return Ok(None);
    }
    let inverted = cursor.eat("!");
    let select = predicate_name(cursor)?;
    if !cursor.eat(")") {
        return Err(expected(cursor, "expected `)`", ") fits here"));
    }
    Ok(Some((select, inverted)))
}

fn predicate_name(cursor: &mut Cursor<'_>) -> Parsed<PredSel> {
    let at = cursor.here();
    if !(cursor.eat_word("pred") && cursor.eat(".")) {
        return Err(Diagnostic::error(at, "expected a predicate")
            .help("pred.r, pred.g, pred.b, pred.a or pred.rgba fits here"));
    }
    let at = cursor.here();
    match cursor.word() {
        "rgba" => Ok(PredSel::RGBA),
        "r" => Ok(PredSel::RRRR),
        "g" => Ok(PredSel::GGGG),
        "b" => Ok(PredSel::BBBB),
        "a" => Ok(PredSel::AAAA),
        other => Err(Diagnostic::error(at, format!("`{other}` is not a predicate"))
            .help("r, g, b, a or rgba fits here")),
    }
}

/// Whether the rest of a half has destinations: an `=` before the sources.
fn has_dests(cursor: &Cursor<'_>) -> bool {
    let rest = cursor.rest();
    let rest = rest.split(['{', ':']).next().unwrap_or("");
    rest.contains('=')
}

fn mask_bits(letters: &str, allowed: &str, span: Span) -> Parsed<u32> {
    if letters == "_" {
        return Ok(0);
    }
    let mut bits = 0;
    for letter in letters.chars() {
        match allowed.find(letter) {
            Some(bit) if bits >> bit & 1 == 0 => bits |= 1 << bit,
            _ => {
                return Err(Diagnostic::error(span, format!("`{letters}` is not a mask of this half"))
                    .help(format!("letters of {allowed}, each once, or _ for none fit here")));
            }
        }
    }
    Ok(bits)
}

/// Opcode with its output modifier and clamp: `MAD*2.sat`.
fn operation<Op: FieldValue>(cursor: &mut Cursor<'_>, unit: &str) -> Parsed<(Op, Omod, bool)> {
    let at = cursor.here();
    let name = cursor.word();
    let known = Op::NAMES.iter().find(|known| known.text == name);
    let op = known.and_then(|known| Op::from_bits(known.value, Op::BITS)).ok_or_else(|| {
        let names = Op::NAMES.iter().map(|known| known.text).collect::<Vec<_>>();
        Diagnostic::error(at, format!("the {unit} unit has no operation `{name}`")).help(suggest(name, names))
    })?;
    let rest = cursor.rest();
    let suffix = OMOD.iter().rev().find(|(suffix, _)| !suffix.is_empty() && rest.starts_with(suffix));
    let omod = match suffix {
        Some((suffix, omod)) => {
            cursor.eat(suffix);
            *omod
        }
        None if rest.starts_with(['*', '/']) => {
            return Err(expected(cursor, "unknown output modifier", "*2 *4 *8 /2 /4 /8 or *off fits here"));
        }
        None => Omod::MUL_1,
    };
    let clamp = cursor.rest().starts_with(".sat") && cursor.eat(".sat");
    Ok((op, omod, clamp))
}

/// `-|src1.rgb|`: selection, swizzle letters, modifier.
fn operand(cursor: &mut Cursor<'_>, letters: usize) -> Parsed<(Sel, Vec<Swiz>, Imod)> {
    let negative = cursor.eat("-");
    let absolute = cursor.eat("|");
    let at = cursor.here();
    let name = cursor.word();
    let sel =
        Sel::ALL.iter().copied().find(|sel| sel.name().eq_ignore_ascii_case(name)).ok_or_else(|| {
            Diagnostic::error(at, format!("`{name}` is not a source"))
                .help(suggest(name, ["src0", "src1", "src2", "srcp"]))
        })?;
    if !cursor.eat(".") {
        return Err(expected(cursor, "expected a swizzle", ".LETTERS of r g b a 0 h 1 fits here"));
    }
    let at = cursor.here();
    let text = cursor.word();
    let swizzle: Option<Vec<Swiz>> = text.chars().map(syntax::swiz).collect();
    let swizzle = swizzle.filter(|swizzle| swizzle.len() == letters).ok_or_else(|| {
        Diagnostic::error(at, format!("`{text}` is not a swizzle of this half"))
            .help(format!("{letters} of the letters r g b a 0 h 1 fit here"))
    })?;
    if absolute && !cursor.eat("|") {
        return Err(expected(cursor, "expected `|`", "| closes the absolute value"));
    }
    let modifier = match (negative, absolute) {
        (false, false) => Imod::NOP,
        (true, false) => Imod::NEG,
        (false, true) => Imod::ABS,
        (true, true) => Imod::NAB,
    };
    Ok((sel, swizzle, modifier))
}

/// ` : src0=temp[1] src1=#0.5 srcp=NEG`
fn sources(cursor: &mut Cursor<'_>) -> Parsed<u32> {
    let mut word = UNUSED_SOURCES;
    if !cursor.eat(":") {
        return Ok(word);
    }
    while !matches!(cursor.peek(), None | Some('{')) {
        let at = cursor.here();
        let name = cursor.word();
        let number = ["src0", "src1", "src2"].iter().position(|known| *known == name);
        if number.is_none() && name != "srcp" {
            return Err(Diagnostic::error(at, format!("`{name}` is not a source"))
                .help(suggest(name, ["src0", "src1", "src2", "srcp"])));
        }
        if !cursor.eat("=") {
            return Err(expected(cursor, "expected `=`", "src0=temp[1] is the form"));
        }
        match number {
            Some(number) => {
                let shift = 10 * number as u32;
                word = word & !(0x3ff << shift) | source_bits(cursor)? << shift;
            }
            None => {
                let at = cursor.here();
                let name = cursor.word();
                let op = SrcpOp::ALL.iter().find(|op| op.name() == name).ok_or_else(|| {
                    let names = SrcpOp::ALL.iter().map(|op| op.name()).collect::<Vec<_>>();
                    Diagnostic::error(at, format!("`{name}` is not a presubtract operation"))
                        .help(suggest(name, names))
                })?;
                word = word & 0x3fff_ffff | op.to_bits() << 30;
            }
        }
    }
    Ok(word)
}

fn source_bits(cursor: &mut Cursor<'_>) -> Parsed<u32> {
    let start = cursor.offset();
    if cursor.eat("#") {
        let rest = cursor.rest();
        let len = rest.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(rest.len());
        let text = &rest[..len];
        cursor.eat(text);
        let value = text.parse::<f32>().ok();
        return value.and_then(syntax::inline_code).map(|code| UNUSED_SOURCE | code).ok_or_else(|| {
            Diagnostic::error(cursor.since(start), format!("`#{text}` is not an inline constant"))
                .help("inline constants are (8 to 15) / 8 times a power of two from 2^-7 to 2^8; others go into .const")
        });
    }
    let at = cursor.here();
    let file = cursor.word();
    let (base, is_const, max) = match file {
        "temp" => (0, false, TEMPORARIES as u64 - 1),
        "const" => (0, true, CONSTANTS as u64 - 1),
        "inline" => (UNUSED_SOURCE, false, 127),
        other => {
            return Err(Diagnostic::error(at, format!("`{other}` is not a register file"))
                .help("temp[N], const[N] or an inline constant #VALUE fits here"));
        }
    };
    let (address, rel) = indexed(cursor, &format!("a {file} address"), max)?;
    Ok(base | address | u32::from(is_const) << 8 | u32::from(rel) << 9)
}

/// Destinations, up to and including the `=`.
fn dests(
    cursor: &mut Cursor<'_>,
    kind: InstType,
    words: &mut [u32; WORDS],
    store: impl Fn(&mut [u32; WORDS], Dest, &str, Span) -> Parsed<()>,
) -> Parsed<()> {
    if !has_dests(cursor) {
        return Ok(());
    }
    loop {
        let (place, mask, span) = dest(cursor, kind)?;
        store(words, place, &mask, span)?;
        if cursor.eat("=") {
            return Ok(());
        }
        if !cursor.eat(",") {
            return Err(expected(cursor, "expected `,` or `=`", "more destinations or = fit here"));
        }
    }
}

/// Operands, up to the sources.
fn operands(cursor: &mut Cursor<'_>, letters: usize) -> Parsed<Vec<(Sel, Vec<Swiz>, Imod)>> {
    let mut list = Vec::new();
    while !matches!(cursor.peek(), None | Some('{' | ':')) {
        if !list.is_empty() && !cursor.eat(",") {
            return Err(expected(cursor, "expected `,`", ", or : or the end of the line fits here"));
        }
        let at = cursor.here();
        if list.len() == 3 {
            return Err(Diagnostic::error(at, "an operation has at most three operands"));
        }
        list.push(operand(cursor, letters)?);
    }
    Ok(list)
}

fn rgb_half(cursor: &mut Cursor<'_>, kind: InstType, words: &mut [u32; WORDS]) -> Parsed<()> {
    if let Some((select, inverted)) = predicate(cursor)? {
        set(words, kind, "RGB_PRED_SEL", select.to_bits());
        set(words, kind, "RGB_PRED_INV", u32::from(inverted));
    }
    dests(cursor, kind, words, |words, dest, mask, span| {
        match dest {
            Dest::Temp { address, rel } => {
                set(words, kind, "RGB_WMASK", mask_bits(mask, "rgb", span)?);
                set(words, kind, "RGB_ADDRD", address);
                set(words, kind, "RGB_ADDRD_REL", u32::from(rel));
            }
            Dest::Output { target } => {
                set(words, kind, "RGB_OMASK", mask_bits(mask, "rgb", span)?);
                set(words, kind, "US_ALU_RGB_INST.TARGET", target);
            }
            Dest::AluResult { op, alpha } => {
                set(words, kind, "ALU_WMASK", 1);
                set(words, kind, "ALU_RESULT_OP", op.to_bits());
                set(words, kind, "ALU_RESULT_SEL", u32::from(alpha));
            }
            Dest::Depth => return Err(Diagnostic::error(span, "only the alpha half writes out.w")),
        }
        Ok(())
    })?;
    let (op, omod, clamp) = operation::<RgbOp>(cursor, "RGB")?;
    set(words, kind, "RGB_OP", op.to_bits());
    set(words, kind, "US_ALU_RGB_INST.OMOD", omod.to_bits());
    set(words, kind, "RGB_CLAMP", u32::from(clamp));
    for ((sel, swizzle, modifier), name) in operands(cursor, 3)?.into_iter().zip(["A", "B", "C"]) {
        set(words, kind, &format!("RGB_SEL_{name}"), sel.to_bits());
        for (swiz, channel) in swizzle.into_iter().zip(["RED", "GREEN", "BLUE"]) {
            set(words, kind, &format!("{channel}_SWIZ_{name}"), swiz.to_bits());
        }
        set(words, kind, &format!("RGB_MOD_{name}"), modifier.to_bits());
    }
    words[1] = sources(cursor)?;
    Ok(())
}

fn alpha_half(cursor: &mut Cursor<'_>, words: &mut [u32; WORDS]) -> Parsed<()> {
    let kind = if words[0] & 3 == InstType::OUT as u32 { InstType::OUT } else { InstType::ALU };
    if let Some((select, inverted)) = predicate(cursor)? {
        set(words, kind, "ALPHA_PRED_SEL", select.to_bits());
        set(words, kind, "ALPHA_PRED_INV", u32::from(inverted));
    }
    dests(cursor, kind, words, |words, dest, mask, span| {
        match dest {
            Dest::Temp { address, rel } => {
                set(words, kind, "ALPHA_WMASK", mask_bits(mask, "a", span)?);
                set(words, kind, "ALPHA_ADDRD", address);
                set(words, kind, "ALPHA_ADDRD_REL", u32::from(rel));
            }
            Dest::Output { target } => {
                set(words, kind, "ALPHA_OMASK", mask_bits(mask, "a", span)?);
                set(words, kind, "US_ALU_ALPHA_INST.TARGET", target);
            }
            Dest::Depth => set(words, kind, "W_OMASK", 1),
            Dest::AluResult { .. } => {
                return Err(Diagnostic::error(span, "the ALU result is written on the RGB half's line")
                    .help("alu_result[OP].a there takes it from alpha"));
            }
        }
        Ok(())
    })?;
    let (op, omod, clamp) = operation::<AlphaOp>(cursor, "alpha")?;
    set(words, kind, "ALPHA_OP", op.to_bits());
    set(words, kind, "US_ALU_ALPHA_INST.OMOD", omod.to_bits());
    set(words, kind, "ALPHA_CLAMP", u32::from(clamp));
    for ((sel, swizzle, modifier), name) in operands(cursor, 1)?.into_iter().zip(["A", "B", "C"]) {
        set(words, kind, &format!("ALPHA_SEL_{name}"), sel.to_bits());
        set(words, kind, &format!("ALPHA_SWIZ_{name}"), swizzle[0].to_bits());
        set(words, kind, &format!("ALPHA_MOD_{name}"), modifier.to_bits());
    }
    words[2] = sources(cursor)?;
    Ok(())
}

// ---- Texture

fn tex_line(cursor: &mut Cursor<'_>) -> Parsed<[u32; WORDS]> {
    let kind = InstType::TEX;
    let mut words = [blank(kind).pack(), 0, 0, 0, 0, 0];
    if cursor.peek() == Some('{') {
        return Ok(words);
    }
    if let Some((select, inverted)) = predicate(cursor)? {
        set(&mut words, kind, "RGB_PRED_SEL", select.to_bits());
        set(&mut words, kind, "RGB_PRED_INV", u32::from(inverted));
    }
    let has_dest = cursor.rest().trim_start().starts_with("temp");
    if has_dest {
        let (place, mask, span) = dest(cursor, kind)?;
        let Dest::Temp { address, rel } = place else {
            return Err(Diagnostic::error(span, "a fetch writes a temporary"));
        };
        let mask = mask_bits(&mask, "rgba", span)?;
        set(&mut words, kind, "RGB_WMASK", mask & 7);
        set(&mut words, kind, "ALPHA_WMASK", mask >> 3);
        set(&mut words, kind, "DST_ADDR", address);
        set(&mut words, kind, "DST_ADDR_REL", u32::from(rel));
        if !cursor.eat("=") {
            return Err(expected(cursor, "expected `=`", "= fits here"));
        }
    }
    let at = cursor.here();
    let name = cursor.word();
    let op = TexOp::ALL.iter().find(|op| op.name() == name).ok_or_else(|| {
        let names = TexOp::ALL.iter().map(|op| op.name()).collect::<Vec<_>>();
        Diagnostic::error(at, format!("unknown texture operation `{name}`")).help(suggest(name, names))
    })?;
    set(&mut words, kind, "INST", op.to_bits());
    let at = cursor.here();
    if !cursor.eat_word("tex") {
        return Err(Diagnostic::error(at, "expected a texture unit").help("tex[0] to tex[15] fits here"));
    }
    let (unit, rel) = indexed(cursor, "a texture unit", SAMPLERS as u64 - 1)?;
    if rel {
        return Err(Diagnostic::error(at, "a texture unit cannot be relative"));
    }
    set(&mut words, kind, "TEX_ID", unit);
    if !cursor.eat(",") {
        return Err(expected(cursor, "expected `,`", "a comma and the coordinate fit here"));
    }
    let names = ["SRC_S_SWIZ", "SRC_T_SWIZ", "SRC_R_SWIZ", "SRC_Q_SWIZ"];
    tex_register(cursor, &mut words, "SRC_ADDR", names)?;
    let dst = ["DST_R_SWIZ", "DST_G_SWIZ", "DST_B_SWIZ", "DST_A_SWIZ"];
    tex_swizzle(&mut words, default_swizzle(has_dest), dst);
    while !matches!(cursor.peek(), None | Some('{')) {
        let at = cursor.here();
        match cursor.word() {
            "swz" => {
                equals(cursor)?;
                let at = cursor.here();
                let letters = cursor.word();
                if !tex_swizzle(&mut words, letters, dst) {
                    return Err(bad_tex_swizzle(letters, at));
                }
            }
            "dx" => {
                equals(cursor)?;
                tex_register(
                    cursor,
                    &mut words,
                    "DX_ADDR",
                    ["DX_S_SWIZ", "DX_T_SWIZ", "DX_R_SWIZ", "DX_Q_SWIZ"],
                )?;
            }
            "dy" => {
                equals(cursor)?;
                tex_register(
                    cursor,
                    &mut words,
                    "DY_ADDR",
                    ["DY_S_SWIZ", "DY_T_SWIZ", "DY_R_SWIZ", "DY_Q_SWIZ"],
                )?;
            }
            flag @ ("UNSCALED" | "TEX_SEM_ACQUIRE" | "IGNORE_UNCOVERED") => set(&mut words, kind, flag, 1),
            other => {
                let fits = ["UNSCALED", "TEX_SEM_ACQUIRE", "IGNORE_UNCOVERED", "swz", "dx", "dy"];
                return Err(Diagnostic::error(at, format!("unknown texture modifier `{other}`"))
                    .help(suggest(other, fits)));
            }
        }
    }
    Ok(words)
}

fn equals(cursor: &mut Cursor<'_>) -> Parsed<()> {
    if cursor.eat("=") { Ok(()) } else { Err(expected(cursor, "expected `=`", "= fits here")) }
}

fn tex_register(
    cursor: &mut Cursor<'_>,
    words: &mut [u32; WORDS],
    address_field: &str,
    swizzle_fields: [&str; 4],
) -> Parsed<()> {
    let at = cursor.here();
    if !cursor.eat_word("temp") {
        return Err(
            Diagnostic::error(at, "a coordinate comes from a temporary").help("temp[N].LETTERS fits here")
        );
    }
    let (address, rel) = indexed(cursor, "a temporary", TEMPORARIES as u64 - 1)?;
    set(words, InstType::TEX, address_field, address);
    set(words, InstType::TEX, &format!("{address_field}_REL"), u32::from(rel));
    if !cursor.eat(".") {
        return Err(expected(cursor, "expected a swizzle", ".LETTERS of r g b a fits here"));
    }
    let at = cursor.here();
    let letters = cursor.word();
    if tex_swizzle(words, letters, swizzle_fields) { Ok(()) } else { Err(bad_tex_swizzle(letters, at)) }
}

fn bad_tex_swizzle(letters: &str, at: Span) -> Diagnostic {
    Diagnostic::error(at, format!("`{letters}` is not a texture swizzle"))
        .help("four of the letters r g b a fit here")
}

fn tex_swizzle(words: &mut [u32; WORDS], letters: &str, fields: [&str; 4]) -> bool {
    let codes: Option<Vec<TexSwiz>> = letters.chars().map(syntax::tex_swiz).collect();
    match codes.filter(|codes| codes.len() == 4) {
        Some(codes) => {
            fields
                .iter()
                .zip(codes)
                .for_each(|(field, code)| set(words, InstType::TEX, field, code.to_bits()));
            true
        }
        None => false,
    }
}

// ---- Flow control

fn fc_words(common: CmnInst, inst: FcInst, addr: FcAddr) -> [u32; WORDS] {
    [common.pack(), 0, inst.pack(), addr.pack(), 0, 0]
}

/// Compilers set ALU_WAIT on every FC instruction; the text assumes it.
fn fc_common() -> CmnInst {
    CmnInst { alu_wait: true, ..blank(InstType::FC) }
}

/// ` -> 12` or ` -> label`.
fn jump_target(cursor: &mut Cursor<'_>, addr: &mut FcAddr) -> Parsed<Option<Target>> {
    if !cursor.eat("->") {
        return Ok(None);
    }
    if cursor.peek().is_some_and(|c| c.is_ascii_digit()) {
        addr.jump_addr = number(cursor, "a target", SLOTS as u64 - 1)? as u16;
        return Ok(Some(Target::Fixed));
    }
    let at = cursor.here();
    let label = cursor.word();
    if label.is_empty() {
        return Err(expected(cursor, "expected a target", "a label or an address fits here"));
    }
    Ok(Some(Target::Label(label.to_owned(), at)))
}

const NO_ADDR: FcAddr = FcAddr { bool_addr: 0, int_addr: 0, jump_addr: 0, jump_global: false };

fn raw_fc(cursor: &mut Cursor<'_>, target: &mut Target) -> Parsed<[u32; WORDS]> {
    if cursor.peek() == Some('{') {
        return Ok([blank(InstType::FC).pack(), 0, 0, 0, 0, 0]);
    }
    let mut common = fc_common();
    if let Some((select, inverted)) = predicate(cursor)? {
        (common.rgb_pred_sel, common.rgb_pred_inv) = (select, inverted);
    }
    let at = cursor.here();
    let name = cursor.word();
    let op = FcOp::ALL.iter().copied().find(|op| op.name() == name).ok_or_else(|| {
        let names = FcOp::ALL.iter().map(|op| op.name()).collect::<Vec<_>>();
        Diagnostic::error(at, format!("unknown flow-control operation `{name}`")).help(suggest(name, names))
    })?;
    let mut inst = FcInst {
        op,
        b_else: false,
        jump_any: false,
        a_op: AOp::NONE,
        jump_func: 0,
        b_pop_cnt: 0,
        b_op0: BOp::NONE,
        b_op1: BOp::NONE,
        ignore_uncovered: false,
    };
    let mut addr = NO_ADDR;
    while !matches!(cursor.peek(), None | Some('{')) {
        if let Some(found) = jump_target(cursor, &mut addr)? {
            *target = found;
            continue;
        }
        let at = cursor.here();
        match cursor.word() {
            "ANY" => inst.jump_any = true,
            "B_ELSE" => inst.b_else = true,
            "IGNORE_UNCOVERED" => inst.ignore_uncovered = true,
            "GLOBAL" => addr.jump_global = true,
            name @ ("FUNC" | "A_OP" | "B_OP0" | "B_OP1" | "POP" | "BOOL" | "INT") => {
                equals(cursor)?;
                match name {
                    "FUNC" => inst.jump_func = number(cursor, "JUMP_FUNC", 255)? as u8,
                    "POP" => inst.b_pop_cnt = number(cursor, "B_POP_CNT", 31)? as u8,
                    "BOOL" => {
                        addr.bool_addr =
                            number(cursor, "a boolean constant", LOOP_CONSTANTS as u64 - 1)? as u8
                    }
                    "INT" => {
                        addr.int_addr =
                            number(cursor, "an integer constant", LOOP_CONSTANTS as u64 - 1)? as u8
                    }
                    "A_OP" => inst.a_op = choice(cursor, AOp::ALL, AOp::name)?,
                    "B_OP0" => inst.b_op0 = choice(cursor, BOp::ALL, BOp::name)?,
                    _ => inst.b_op1 = choice(cursor, BOp::ALL, BOp::name)?,
                }
            }
            other => {
                let fits = [
                    "FUNC",
                    "ANY",
                    "B_ELSE",
                    "A_OP",
                    "B_OP0",
                    "B_OP1",
                    "POP",
                    "BOOL",
                    "INT",
                    "IGNORE_UNCOVERED",
                    "GLOBAL",
                ];
                return Err(Diagnostic::error(at, format!("unknown flow-control field `{other}`"))
                    .help(suggest(other, fits)));
            }
        }
    }
    Ok(fc_words(common, inst, addr))
}

fn choice<T: Copy>(cursor: &mut Cursor<'_>, all: &[T], name_of: impl Fn(T) -> &'static str) -> Parsed<T> {
    let at = cursor.here();
    let name = cursor.word();
    all.iter().copied().find(|value| name_of(*value) == name).ok_or_else(|| {
        let names = all.iter().map(|value| name_of(*value)).collect::<Vec<_>>();
        Diagnostic::error(at, format!("unknown value `{name}`")).help(suggest(name, names))
    })
}

fn statement(cursor: &mut Cursor<'_>, name: &str, target: &mut Target) -> Parsed<[u32; WORDS]> {
    let mut common = fc_common();
    let mut addr = NO_ADDR;
    let condition = if name == "if" || cursor.eat_word("if") {
        Some(condition(cursor, &mut common, &mut addr)?)
    } else {
        None
    };
    let (mut variant, mut pop, mut any, mut ignore_uncovered) = (String::new(), None, None, false);
    let mut said_target = None;
    while !matches!(cursor.peek(), None | Some('{')) {
        if let Some(found) = jump_target(cursor, &mut addr)? {
            said_target = Some(found);
            continue;
        }
        let at = cursor.here();
        match cursor.word() {
            "int" => {
                let (n, rel) = indexed(cursor, "an integer constant", LOOP_CONSTANTS as u64 - 1)?;
                if rel {
                    return Err(Diagnostic::error(at, "an integer constant cannot be relative"));
                }
                addr.int_addr = n as u8;
            }
            "pop" => {
                equals(cursor)?;
                pop = Some(number(cursor, "a number of levels", 31)? as u8);
            }
            word @ ("else" | "merged" | "simple") => variant = word.to_owned(),
            "any" => any = Some(true),
            "all" => any = Some(false),
            "ignore_uncovered" => ignore_uncovered = true,
            "global" => addr.jump_global = true,
            // `endif 3`, `call label`, `goto label`
            word => match (name, source::parse_number(word)) {
                ("endif", Some(levels)) if levels <= 31 => pop = Some(levels as u8),
                ("call" | "goto", None) if !word.is_empty() => {
                    said_target = Some(Target::Label(word.to_owned(), at))
                }
                _ => {
                    let fits = [
                        "int",
                        "pop",
                        "else",
                        "merged",
                        "simple",
                        "any",
                        "all",
                        "ignore_uncovered",
                        "global",
                    ];
                    return Err(Diagnostic::error(at, format!("`{word}` is not understood after `{name}`"))
                        .help(suggest(word, fits)));
                }
            },
        }
    }
    let on_boolean = matches!(condition, Some((Condition::Boolean, _)));
    let in_structure = said_target.is_none();
    let construct = CONSTRUCTS.iter().find(|construct| {
        let condition_fits = match construct.jumps {
            Jumps::Never | Jumps::Always => condition.is_none(),
            Jumps::WhenTrue | Jumps::WhenFalse => condition.is_some(),
        };
        // Without `pop`, a break or continue in a structured program starts without levels to close; the second
        // pass adds them.
        let pop_fits = match construct.pop {
            Pop::None => pop.is_none() || name == "if" && variant.is_empty(),
            Pop::One => true,
            Pop::Said => pop.is_some(),
        };
        let boolean_fits = construct.name != "if" || on_boolean == construct.on_boolean;
        construct.name == name && construct.variant == variant && condition_fits && pop_fits && boolean_fits
    });
    let Some(construct) = construct else {
        let here = cursor.here();
        return Err(Diagnostic::error(here, format!("`{name}` does not take these words together"))
            .help(format!("forms of `{name}`: {}", forms(name))));
    };
    *target = match said_target {
        Some(target) => target,
        None if in_structure && needs_target(construct) => Target::Structure,
        None => Target::Fixed,
    };
    let statement = Statement {
        construct,
        condition,
        pop: pop.unwrap_or(if construct.pop == Pop::One { 1 } else { 0 }),
        any: any.unwrap_or(construct.any),
        ignore_uncovered,
        addr,
    };
    let (inst, addr) = statement.encode();
    Ok(fc_words(common, inst, addr))
}

fn needs_target(construct: &Construct) -> bool {
    construct.name != "endif" && construct.a_op != AOp::POP
}

/// The forms of a mnemonic, for messages.
fn forms(name: &str) -> String {
    let of = |construct: &&Construct| construct.name == name;
    let text = |construct: &Construct| {
        let condition = match construct.jumps {
            Jumps::Never | Jumps::Always => "",
            Jumps::WhenFalse => " CONDITION",
            Jumps::WhenTrue => " if CONDITION",
        };
        let variant =
            if construct.variant.is_empty() { String::new() } else { format!(" {}", construct.variant) };
        let pop = if construct.pop == Pop::Said { " pop=N" } else { "" };
        format!("`{name}{condition}{variant}{pop}`")
    };
    let mut list: Vec<String> = CONSTRUCTS.iter().filter(of).map(text).collect();
    list.dedup();
    list.join(", ")
}

fn condition(cursor: &mut Cursor<'_>, common: &mut CmnInst, addr: &mut FcAddr) -> Parsed<(Condition, bool)> {
    let negated = cursor.eat("!");
    if cursor.eat_word("alu") {
        return Ok((Condition::Alu, negated));
    }
    let at = cursor.here();
    if cursor.eat_word("bool") {
        let (n, rel) = indexed(cursor, "a boolean constant", LOOP_CONSTANTS as u64 - 1)?;
        if rel {
            return Err(Diagnostic::error(at, "a boolean constant cannot be relative"));
        }
        addr.bool_addr = n as u8;
        return Ok((Condition::Boolean, negated));
    }
    if cursor.peek() != Some('p') {
        return Err(expected(
            cursor,
            "expected a condition",
            "alu, pred.r (g, b, a) or bool[N], perhaps with ! before it, fits here",
        ));
    }
    match predicate_name(cursor)? {
        PredSel::RGBA => Err(Diagnostic::error(at, "a flow-control instruction has one predicate")
            .help("pred.r, pred.g, pred.b or pred.a fits here")),
        select => {
            common.rgb_pred_sel = select;
            Ok((Condition::Predicate, negated))
        }
    }
}

/// An open construct.
struct Open {
    name: &'static str,
    at: usize,
    /// Breaks and continues that wait for the loop's end.
    waiting: Vec<usize>,
}

/// Where each structured instruction jumps, as an index of a record. What an instruction without a target of its own
/// leaves to its surroundings is filled in: the else form of an `if`, the levels that a break closes, BREAKREP in `rep`.
fn structure(
    records: &mut [Record],
    errors: &mut Vec<Diagnostic>,
    warnings: &mut Vec<Diagnostic>,
) -> Vec<Option<usize>> {
    let mut targets = vec![None; records.len()];
    let mut open: Vec<Open> = Vec::new();
    for index in 0..records.len() {
        let record = &records[index];
        let wants_target = matches!(record.target, Target::Structure);
        let Some(statement) = recognised(&record.words) else { continue };
        let construct = statement.construct;
        match construct.name {
            // A static if touches no counter: it is a plain jump, and neither else nor endif belongs to it.
            "if" if construct.on_boolean => {
                if wants_target {
                    errors.push(
                        Diagnostic::error(record.span, "an `if` on a boolean constant needs a target").help(
                            "it opens no level that `endif` could close: give -> LABEL, and leave with goto",
                        ),
                    );
                }
            }
            "if" | "loop" | "rep" => open.push(Open { name: construct.name, at: index, waiting: Vec::new() }),
            "else" => match open.last_mut().filter(|open| matches!(open.name, "if" | "else")) {
                Some(last) => {
                    targets[last.at] = Some(index + 1);
                    let opener = &mut records[last.at];
                    if last.name == "if" && matches!(opener.target, Target::Structure) {
                        change(&mut opener.words, |inst| inst.b_op1 = BOp::INCR);
                    }
                    *last = Open { name: "else", at: index, waiting: Vec::new() };
                }
                None if wants_target => errors.push(unopened(record, "else", "if")),
                None => {}
            },
            "endif" => {
                for _ in 0..statement.pop {
                    match open.last().filter(|open| matches!(open.name, "if" | "else")) {
                        Some(last) => {
                            targets[last.at] = Some(index + 1);
                            open.pop();
                        }
                        None => {
                            let message = "endif closes more than is open";
                            warnings.push(Diagnostic {
                                level: Level::Warning,
                                ..Diagnostic::error(record.span, message)
                            });
                            break;
                        }
                    }
                }
            }
            "endloop" | "endrep" => {
                let opener = if construct.name == "endloop" { "loop" } else { "rep" };
                match open.last().filter(|open| open.name == opener) {
                    Some(last) => {
                        targets[last.at] = Some(index + 1);
                        targets[index] = Some(last.at + 1);
                        for waiting in &last.waiting {
                            let is_continue = recognised(&records[*waiting].words)
                                .is_some_and(|statement| statement.construct.name == "continue");
                            targets[*waiting] = Some(if is_continue { index } else { index + 1 });
                        }
                        open.pop();
                    }
                    None if wants_target => errors.push(unopened(record, construct.name, opener)),
                    None => {}
                }
            }
            "break" | "breakrep" | "continue" => {
                let within = open.iter().rposition(|open| matches!(open.name, "loop" | "rep"));
                match within {
                    Some(within) => {
                        let levels = (open.len() - 1 - within) as u8;
                        let in_rep = open[within].name == "rep";
                        open[within].waiting.push(index);
                        if wants_target {
                            change(&mut records[index].words, |inst| {
                                if construct.pop == Pop::None && levels > 0 {
                                    (inst.b_op1, inst.b_pop_cnt) = (BOp::DECR, levels.min(31));
                                }
                                if in_rep && inst.op == FcOp::BREAKLOOP {
                                    inst.op = FcOp::BREAKREP;
                                }
                            });
                        }
                    }
                    None if wants_target => errors.push(unopened(record, construct.name, "loop or rep")),
                    None => {}
                }
            }
            _ if wants_target => errors.push(
                Diagnostic::error(record.span, format!("`{}` needs a target", construct.name))
                    .help("-> LABEL fits at the end of the line"),
            ),
            _ => {}
        }
    }
    for left in open {
        if matches!(records[left.at].target, Target::Structure) {
            let closer = match left.name {
                "if" | "else" => "endif",
                "loop" => "endloop",
                _ => "endrep",
            };
            errors.push(
                Diagnostic::error(records[left.at].span, format!("`{}` is never closed", left.name))
                    .help(format!("`{closer}` is missing, or `-> LABEL` at the end of this line")),
            );
        }
    }
    targets
}

fn change(words: &mut [u32; WORDS], edit: impl FnOnce(&mut FcInst)) {
    if let Ok(mut inst) = FcInst::unpack_lenient(words[2]) {
        let reserved = words[2] & !FcInst::OWNED;
        edit(&mut inst);
        words[2] = inst.pack() | reserved;
    }
}

fn unopened(record: &Record, name: &str, opener: &str) -> Diagnostic {
    Diagnostic::error(record.span, format!("`{name}` without {opener}"))
        .help(format!("open it with {opener}, or give a target with -> LABEL"))
}

fn recognised(words: &[u32; WORDS]) -> Option<Statement> {
    if words[0] & 3 != InstType::FC as u32 {
        return None;
    }
    let inst = FcInst::unpack_lenient(words[2]).ok()?;
    let addr = FcAddr::unpack_lenient(words[3]).ok()?;
    Statement::recognise(&inst, &addr)
}
