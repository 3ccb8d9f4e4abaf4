//! The assembler: converts text to words.
//!
//! The assembler has two passes. The first pass turns each line into a record. The record states how the second pass
//! determines the jump address. The second pass resolves labels and flow constructs. The assembler does not stop at the
//! first error, so one run can report several errors.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use reconverge_isa::source::{Cursor, Diagnostic, DirectiveRow, Span, suggest};
use reconverge_isa::word::FieldValue;

use super::asm_alu::{alpha_half, alu_line, tex_line};
use super::asm_fc::{raw_fc, statement};
use super::construct::CONSTRUCTS;
use super::directives::{Assembled, Directives, Stated};
use super::reading::{
    Line, Parsed, braces, each_line, end, field_value, lines, number, place, signed, words,
};
use super::record::{Reads, Record, Target, addr_field};
use super::structure::structure;
use super::syntax::TARGETS;
use crate::inst::{CONSTANTS, LOOP_CONSTANTS, SLOTS};
use crate::words::*;

/// Assembles a source text with one program. [`crate::programs::assemble_all`] accepts several programs.
///
/// # Errors
/// Returns the errors in the order of the text, with up to twenty messages.
pub fn assemble(source: &str) -> Result<Assembled, Vec<Diagnostic>> {
    assemble_lines(lines(source))
}

pub(crate) fn assemble_lines<'a>(
    lines: impl IntoIterator<Item = Line<'a>>,
) -> Result<Assembled, Vec<Diagnostic>> {
    let mut assembler = Assembler::default();
    let errors = each_line(lines, |_, cursor| assembler.line(cursor));
    assembler.finish(errors)
}

#[derive(Default)]
struct Assembler {
    records: Vec<Record>,
    /// For each label, the index of the record that follows the label, and the position of the label.
    labels: HashMap<String, (usize, Span)>,
    stated: Stated,
}

const UNIT: Directives = Directives {
    slots: SLOTS,
    constant: ("a float constant", CONSTANTS),
    state: STATE,
    elsewhere: &["RS_", "0x"],
    numbered: true,
    directives: DIRECTIVES,
};

/// The directives of programs of the fragment processor.
#[rustfmt::skip]
pub(crate) const DIRECTIVES: &[DirectiveRow] = &[
    DirectiveRow::new(".isa", "r500", "the machine"),
    DirectiveRow::new(".chip", "NAME", "the chip"),
    DirectiveRow::new(".base", "N", "slot of the first instruction"),
    DirectiveRow::new(".const", "N X Y Z W", "float constant"),
    DirectiveRow::new(".int", "N KR KG KB", "integer constant: count, initial aL, step"),
    DirectiveRow::new(".bool", "N true|false", "boolean constant"),
    DirectiveRow::new(".out", "A|B|C|D FORMAT CHANNEL…", "render target: format and channels"),
    DirectiveRow::new(".state", "REGISTER VALUE", "a state register"),
    DirectiveRow::new(".word", "W0 W1 W2 W3 W4 W5", "an instruction as words"),
    DirectiveRow::new(".data", "WORD", "a word that is not a whole instruction"),
];

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
                    free.insert((self.records.len(), span));
                }
                Entry::Occupied(first) => {
                    let error = Diagnostic::error(span, format!("label `{word}` is defined twice"));
                    return Err(error.related(first.get().1, "the first"));
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
        if !self.stated.data.is_empty() {
            return Err(Diagnostic::error(cursor.since(start), "an instruction after .data").help(
                ".data must come after all instructions, because it holds words that are not a whole \
                     instruction",
            ));
        }
        self.records.push(Record { words, span: cursor.since(start), target, reads });
        Ok(())
    }

    /// Parses an alpha half and adds this half to the previous instruction.
    fn alpha_line(&mut self, cursor: &mut Cursor<'_>, start: usize) -> Parsed<()> {
        let before = self.records.last_mut().filter(|record| record.words[0] & 3 <= InstType::OUT as u32);
        let Some(record) = before else {
            return Err(Diagnostic::error(
                cursor.since(start),
                "an alpha half must follow an ALU or OUT line",
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
                    return Err(Diagnostic::error(
                        at,
                        format!("this is the assembler of r500, not of {isa}"),
                    )
                    .help("expected `r500`"));
                }
            }
            ".int" => {
                let n = number(cursor, "an integer constant", LOOP_CONSTANTS as u64 - 1)?;
                let kr = number(cursor, "an iteration count (KR)", 255)? as u8;
                let kg = number(cursor, "an initial aL (KG)", 255)? as u8;
                let kb = signed(cursor, "an aL step (KB)", -128, 127)? as i8;
                self.stated.set(format!("US_FC_INT_CONST_{n}"), FcIntConst { kr, kg, kb }.pack());
            }
            ".bool" => {
                let n = number(cursor, "a boolean constant", LOOP_CONSTANTS as u64 - 1)? as u32;
                let at = cursor.here();
                let value = match cursor.word() {
                    "true" | "1" => true,
                    "false" | "0" => false,
                    other => {
                        return Err(Diagnostic::error(at, format!("`{other}` is not a boolean"))
                            .help("expected true or false"));
                    }
                };
                let old = self.stated.get("US_FC_BOOL_CONST").unwrap_or(0);
                self.stated.set("US_FC_BOOL_CONST".to_owned(), old & !(1 << n) | u32::from(value) << n);
            }
            ".out" => {
                let n = place(cursor, TARGETS, |target| format!("`{target}` is not a render target"))?;
                let mut raw = 0;
                for field in OutFmtReg::FIELDS.iter().take_while(|field| field.name != "out_sign") {
                    if field.name == "out_fmt" || !cursor.at_end() {
                        raw = field.set(raw, field_value(cursor, field)?);
                    }
                }
                self.stated.set(format!("US_OUT_FMT_{n}"), raw);
            }
            ".word" => {
                let words = words(cursor)?;
                self.records.push(Record { words, span, target: Target::Fixed, reads: Reads::default() });
            }
            _ => self.stated.directive(cursor, &UNIT, &name, span)?,
        }
        end(cursor)
    }

    // ---- Second pass

    fn finish(mut self, mut errors: Vec<Diagnostic>) -> Result<Assembled, Vec<Diagnostic>> {
        let base = self.stated.base;
        if errors.is_empty() && self.records.len() + base as usize > SLOTS {
            let first_over = SLOTS.saturating_sub(base as usize);
            let message = format!(
                "{} instructions do not fit: R500 has {SLOTS} instruction slots{}",
                self.records.len(),
                if base > 0 { format!(" and the program starts at slot {base}") } else { String::new() }
            );
            // In a program that is too long, jump targets after the last slot are also errors. Messages about such
            // targets would add nothing to this error, so the assembler stops here.
            return Err(vec![
                Diagnostic::error(self.records[first_over].span, message)
                    .label("the first instruction that does not fit")
                    .help("shorten the program; the hardware cannot load more"),
            ]);
        }
        errors.extend(self.records.iter().filter_map(|record| record.reads.undeclared(&record.words)));
        let offset = self.stated.get("US_CODE_OFFSET").unwrap_or(0);
        let first = i64::from(base) - i64::from(offset);
        let structure = structure(&mut self.records, &mut errors);
        for index in 0..self.records.len() {
            let (to, span) = match &self.records[index].target {
                Target::Fixed => continue,
                Target::Label(label, span) => match self.labels.get(label) {
                    Some((to, _)) => (*to, *span),
                    None => {
                        let mut names: Vec<&str> = self.labels.keys().map(String::as_str).collect();
                        names.sort_unstable();
                        let help = match names.is_empty() {
                            true => format!(
                                "the program has no labels: put `{label}:` in front of an instruction"
                            ),
                            false => suggest(label, names),
                        };
                        let message = format!("undefined label `{label}`");
                        errors.push(Diagnostic::error(*span, message).help(help));
                        continue;
                    }
                },
                Target::Structure { .. } => match structure[index] {
                    Some(to) => (to, self.records[index].span),
                    None => continue,
                },
            };
            let words = &mut self.records[index].words;
            // A global jump address is relative to slot 0.
            let global = addr_field("jump_global").get(words[3]) != 0;
            let address = if global { i64::from(base) } else { first } + to as i64;
            match u16::try_from(address).ok().filter(|address| usize::from(*address) < SLOTS) {
                Some(address) => words[3] = addr_field("jump_addr").set(words[3], u32::from(address)),
                None => errors.push(
                    Diagnostic::error(
                        span,
                        format!("the target is at address {address}, outside 0 to {}", SLOTS - 1),
                    )
                    .help("addresses count from US_CODE_OFFSET"),
                ),
            }
        }
        if !errors.is_empty() {
            Diagnostic::sort(&mut errors);
            return Err(errors);
        }
        let words = self.records.iter().map(|record| record.words);
        let places = self.records.iter().map(|record| record.span.start);
        Ok(self.stated.assembled(words, places))
    }
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
