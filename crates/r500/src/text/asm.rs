//! Text to words.
//!
//! Two passes: each line becomes a record, with a note of what its jump address depends on; then labels and flow
//! constructs are resolved. Errors are collected, so that one run shows many.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use reconverge_isa::Program;
use reconverge_isa::program::ConstantBlock;
use reconverge_isa::source::{Cursor, Diagnostic, Span, suggest};
use reconverge_isa::word::FieldValue;

use super::asm_alu::{alpha_half, alu_line, tex_line};
use super::asm_fc::{raw_fc, statement};
use super::construct::CONSTRUCTS;
use super::reading::{Line, Parsed, braces, end, field_value, float, lines, number, signed, state_value};
use super::record::{Reads, Record, Target, addr_field};
use super::structure::structure;
use super::syntax::TARGETS;
use crate::chip::{CHIPS, Chip};
use crate::inst::{CONSTANTS, LOOP_CONSTANTS, SLOTS, WORDS};
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
    /// The instructions by slot and their places in the text.
    pub lines: Vec<(u32, usize)>,
}

/// Errors after which the rest of a file is not looked at.
pub(crate) const MOST_ERRORS: usize = 20;

/// The program of a source text that has one. [`crate::programs::assemble_all`] takes several.
///
/// # Errors
/// Everything that is wrong with it, up to twenty messages, in the order of the text.
pub fn assemble(source: &str) -> Result<Assembled, Vec<Diagnostic>> {
    assemble_lines(lines(source))
}

pub(crate) fn assemble_lines<'a>(
    lines: impl IntoIterator<Item = Line<'a>>,
) -> Result<Assembled, Vec<Diagnostic>> {
    let mut assembler = Assembler::default();
    for (number, offset, line) in lines {
        assembler.line = number;
        if let Err(error) = assembler.line(Cursor::new(line, offset)) {
            assembler.errors.push(error);
            if assembler.errors.len() >= MOST_ERRORS {
                break;
            }
        }
    }
    assembler.finish()
}

#[derive(Default)]
struct Assembler {
    records: Vec<Record>,
    data: Vec<u32>,
    /// The record behind it, and its line.
    labels: HashMap<String, (usize, usize)>,
    line: usize,
    base: u32,
    state: Vec<(String, u32)>,
    constants: Vec<(u8, [u32; 4])>,
    chip: Option<String>,
    errors: Vec<Diagnostic>,
    warnings: Vec<Diagnostic>,
}

const DIRECTIVES: [&str; 10] =
    [".isa", ".chip", ".base", ".const", ".int", ".bool", ".out", ".state", ".word", ".data"];

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
        let word = cursor.word();
        if cursor.eat(":") {
            let span = cursor.since(start);
            match self.labels.entry(word.to_owned()) {
                Entry::Vacant(free) => {
                    free.insert((self.records.len(), self.line));
                }
                Entry::Occupied(first) => {
                    let error = Diagnostic::error(span, format!("label `{word}` is defined twice"));
                    return Err(error.help(format!("the first is in line {}", first.get().1)));
                }
            }
            return self.line(cursor);
        }
        let mut target = Target::Fixed;
        let mut reads = Reads::default();
        let mut words = match word {
            "ALU" => alu_line(&mut cursor, InstType::ALU, &mut reads)?,
            "OUT" => alu_line(&mut cursor, InstType::OUT, &mut reads)?,
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
                .help(".data holds words that are no whole instruction: it comes last"));
        }
        self.records.push(Record { words, span: cursor.since(start), target, reads });
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
        alpha_half(cursor, &mut record.words, &mut record.reads)?;
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
                if Chip::named(&chip).is_none() {
                    return Err(Diagnostic::error(at, format!("`{chip}` is not an R500 chip")).help(
                        suggest(
                            &chip,
                            CHIPS.iter().flat_map(|chip| chip.aliases.iter().copied().chain([chip.name])),
                        ),
                    ));
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
                self.records.push(Record { words, span, target: Target::Fixed, reads: Reads::default() });
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
        // Containers hold registers of other blocks, some by their address alone: those keep a raw value.
        if register.is_none() && !name.starts_with("RS_") && !name.starts_with("0x") {
            let names = STATE.iter().map(|register| register.word.name).collect::<Vec<_>>();
            let help = suggest(name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '_'), names);
            return Err(Diagnostic::error(at, format!("unknown state register `{name}`")).help(help));
        }
        let raw = state_value(cursor, &name, register.map(|register| &register.word))?;
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
            // Targets beyond the last slot would only repeat it.
            return Err(vec![
                Diagnostic::error(self.records[first_over].span, message)
                    .label("the first instruction too many")
                    .help("shorten the program; there is no way to load more"),
            ]);
        }
        self.errors.extend(self.records.iter().filter_map(|record| record.reads.undeclared(&record.words)));
        let state = |name: &str| self.state.iter().find(|(known, _)| known == name).map(|(_, value)| *value);
        let offset = state("US_CODE_OFFSET").unwrap_or(0);
        let first = i64::from(self.base) - i64::from(offset);
        let structure = structure(&mut self.records, &mut self.errors);
        for index in 0..self.records.len() {
            let (to, span) = match &self.records[index].target {
                Target::Fixed => continue,
                Target::Label(label, span) => match self.labels.get(label) {
                    Some((to, _)) => (*to, *span),
                    None => {
                        let names: Vec<&str> = self.labels.keys().map(String::as_str).collect();
                        self.errors.push(
                            Diagnostic::error(*span, format!("undefined label `{label}`"))
                                .help(suggest(label, names)),
                        );
                        continue;
                    }
                },
                Target::Structure { .. } => match structure[index] {
                    Some(to) => (to, self.records[index].span),
                    None => continue,
                },
            };
            let words = &mut self.records[index].words;
            // A global address counts from slot 0.
            let global = addr_field("jump_global").get(words[3]) != 0;
            let address = if global { i64::from(self.base) } else { first } + to as i64;
            match u16::try_from(address).ok().filter(|address| usize::from(*address) < SLOTS) {
                Some(address) => words[3] = addr_field("jump_addr").set(words[3], u32::from(address)),
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
        let slots = (self.base..).zip(&self.records);
        let lines = slots.map(|(slot, record)| (slot, record.span.start)).collect();
        let program = Program {
            words,
            base: self.base,
            state: self.state,
            constants: constant_blocks(&self.constants),
            ..Program::default()
        };
        Ok(Assembled { program, chip: self.chip, warnings: self.warnings, lines })
    }
}

/// Constants that follow each other make one block.
pub(crate) fn constant_blocks(constants: &[(u8, [u32; 4])]) -> Vec<ConstantBlock> {
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
