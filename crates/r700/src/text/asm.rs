//! Assembles text into words.
//!
//! A line is a directive, a label, a control-flow instruction, or a line of a clause. A line of a clause belongs to the
//! nearest control-flow instruction above the line. The text may state no address for a control-flow instruction. The
//! instruction then comes directly after the previous control-flow instruction. The text may also state no address for
//! a clause. The clause then comes after all control flow and after all code with a stated address.

mod alu;
mod amd;
mod control;
mod directive;
mod fetch;
mod lex;
mod metadata;
mod operand;

use std::collections::HashMap;

use reconverge_isa::source::{lines, name_of, parse_number, suggest};
use reconverge_isa::{Diagnostic, Span};

use super::dis::is_fetch_clause;
use super::literal_pairs;
use crate::chip::{Chip, Family};
use crate::code::{CfOp, Code, CodeOptions, ExportKind};
use crate::uses::registers_needed;
use alu::Group;
use amd::Dialect;
pub use directive::DIRECTIVES;
use lex::{Parse, Token, tokens, wrong};

/// Result of assembling a program.
#[derive(Clone, Debug, PartialEq)]
pub struct Assembled {
    /// The name that `.program` states.
    pub name: Option<String>,
    /// The program as 32-bit words, in memory order.
    pub words: Vec<u32>,
    /// The chip that `.chip` names. If the text has no `.chip`, this field is the chip that the caller passed.
    pub chip: Chip,
    /// The spelling of the chip's name in `.chip`.
    pub chip_name: Option<String>,
    /// State directives in the order of the text. An entry has the name of the directive without the dot, and the
    /// numbers after the name.
    pub state: Vec<(String, Vec<u32>)>,
    /// Addresses of control-flow instructions, ALU groups and fetches. Each entry also has the position of the
    /// instruction in the text.
    pub lines: Vec<(u32, usize)>,
    /// Warnings about code that probably has another meaning than the author intended.
    pub warnings: Vec<Diagnostic>,
}

/// Returns whether a text has the syntax of AMD or latte-assembler. The text has this syntax if some line contains only
/// END_OF_PROGRAM, or if some comment states a register.
pub fn is_amd(source: &str) -> bool {
    amd::dialect_of(source) == Dialect::Latte
}

/// Assembles `source`, which must contain only one program. Assembles for `chip` unless the text names another chip.
///
/// # Errors
/// Returns one diagnostic for each wrong part of the text. A diagnostic has a position. A second program in the text is
/// also an error.
pub fn assemble(source: &str, chip: Chip) -> Result<Assembled, Vec<Diagnostic>> {
    let mut programs = assemble_all(source, chip)?;
    match (programs.pop(), &programs[..]) {
        (Some(only), []) => Ok(only),
        (_, rest) => {
            let message = format!("one program was expected, {} are here", rest.len() + 1);
            Err(vec![Diagnostic::error(Span::default(), message)])
        }
    }
}

/// Assembles the programs of `source`. Assembles for `chip` unless the text names another chip. A text without
/// `.program` is one program.
///
/// # Errors
/// Returns one diagnostic for each wrong part of the text. A diagnostic has a position.
pub fn assemble_all(source: &str, chip: Chip) -> Result<Vec<Assembled>, Vec<Diagnostic>> {
    let mut asm = Asm { dialect: amd::dialect_of(source), ..Asm::new(source, chip) };
    let (mut programs, mut faults) = (Vec::new(), Vec::new());
    let mut end = |asm: Asm<'_>, faults: &mut Vec<Diagnostic>| match asm.finish() {
        Ok(program) => programs.push(program),
        Err(mut found) => faults.append(&mut found),
    };
    let mut names: HashMap<String, Span> = HashMap::new();
    let mut words = Vec::new();
    asm.metadata();
    for (offset, line) in lines(source) {
        tokens(line, offset, &mut words);
        match words.split_first() {
            Some((first, rest)) if first.text == ".program" => {
                if asm.dialect == Dialect::Latte && asm.begun {
                    asm.faults.push(wrong(*first, "a text of latte-assembler is one program"));
                }
                let next = asm.program(*first, rest);
                let last = std::mem::replace(&mut asm, next);
                if last.begun {
                    end(last, &mut faults);
                }
                if let (Some(name), Some(token)) = (&asm.name, rest.first())
                    && let Some(first) = names.insert(name.clone(), token.span)
                {
                    let message = format!("two programs are named `{name}`");
                    faults.push(Diagnostic::error(token.span, message).related(first, "the first"));
                }
            }
            Some(_) => {
                if let Err(fault) = asm.line(&words) {
                    asm.faults.push(fault);
                }
            }
            None => {}
        }
        if asm.gone_astray {
            break;
        }
    }
    end(asm, &mut faults);
    Diagnostic::sort(&mut faults);
    if faults.is_empty() { Ok(programs) } else { Err(faults) }
}

/// A control-flow word, and the clause that comes after this word in the text.
struct Cf {
    addr: usize,
    words: [u32; 2],
    span: Span,
    /// Whether the text states ADDR.
    placed: bool,
    /// Whether the text states CNT.
    counted: bool,
    label: Option<(String, Span)>,
    body: Vec<u32>,
    /// Groups of the body that would be shorter if equal literals shared a position. Each entry has the index of the
    /// group in the body, and the words of the shorter group.
    shorter: Vec<(usize, Vec<u32>)>,
    /// An entry for each line of the body. The first number counts the 64-bit words of the body before the line. The
    /// second number is the position of the line in the text.
    lines: Vec<(usize, usize)>,
}

/// Target of a label.
#[derive(Clone, Copy)]
enum LabelTarget {
    /// A control-flow instruction, by its address.
    Control(usize),
    /// A line of a clause. The first number is the index of the clause's control-flow instruction. The second number
    /// counts the 64-bit words of the clause before the line.
    Clause(usize, usize),
}

struct Asm<'a> {
    /// The whole text, for the positions in messages.
    source: &'a str,
    chip: Chip,
    chip_name: Option<String>,
    name: Option<String>,
    /// Whether a program has begun. A program begins with `.program`, or with any line except `.isa`, `.chip` and
    /// `.syntax`.
    begun: bool,
    /// Whether another program precedes this program in the text.
    later: bool,
    /// Whether the text continues with lines that do not belong to this program. Messages about these lines would be
    /// misleading.
    gone_astray: bool,
    state: Vec<(String, Vec<u32>)>,
    /// For each state that a text may set only once, the position at which the text set the state.
    set: HashMap<String, Span>,
    cf: Vec<Cf>,
    data: Vec<(usize, [u32; 2], Span)>,
    tail: Option<u32>,
    at: usize,
    /// Label that `.start` names, or `None` if no `.start` names a label.
    start: Option<(String, Span)>,
    labels: HashMap<String, (LabelTarget, Span)>,
    pending_labels: Vec<(String, Span)>,
    group: Group,
    dialect: Dialect,
    /// Data that the comments of latte-assembler state.
    stated: metadata::Stated,
    faults: Vec<Diagnostic>,
    warnings: Vec<Diagnostic>,
}

/// Maximum size of a program in 64-bit words. The address of a clause has 22 bits.
const LIMIT: usize = 1 << 22;

impl Cf {
    fn is_alu(&self) -> bool {
        self.words[1] >> 29 & 1 != 0
    }

    /// Merges equal literals in the groups of a clause. The function does this only if the text states a count for the
    /// clause and the clause has a different size.
    fn share_literals(&mut self) {
        let count = (self.words[1] >> 18 & 0x7f) as usize + 1;
        if !self.is_alu() || !self.counted || self.body.len() / 2 == count {
            return;
        }
        for (at, words) in std::mem::take(&mut self.shorter).into_iter().rev() {
            // A group ends with its LAST instruction and its literals.
            let slots = self.body[at..]
                .chunks_exact(2)
                .position(|pair| pair[0] >> 31 != 0)
                .map_or(0, |last| last + 1);
            let group: Vec<[u32; 2]> = self.body[at..].as_chunks::<2>().0[..slots].to_vec();
            let len = 2 * (slots + literal_pairs(&group));
            let gone = (len - words.len()) / 2;
            self.body.splice(at..at + len, words);
            self.lines
                .iter_mut()
                .filter(|(before, _)| *before > at / 2)
                .for_each(|(before, _)| *before -= gone);
        }
    }

    /// Returns the address of the clause.
    fn clause_addr(&self) -> usize {
        (if self.is_alu() { self.words[0] & 0x3f_ffff } else { self.words[0] }) as usize
    }
}

impl<'a> Asm<'a> {
    fn new(source: &'a str, chip: Chip) -> Asm<'a> {
        Asm {
            source,
            chip,
            chip_name: None,
            name: None,
            begun: false,
            later: false,
            gone_astray: false,
            state: Vec::new(),
            set: HashMap::new(),
            cf: Vec::new(),
            data: Vec::new(),
            tail: None,
            at: 0,
            start: None,
            labels: HashMap::new(),
            pending_labels: Vec::new(),
            group: Group::default(),
            dialect: Dialect::Own,
            stated: metadata::Stated::default(),
            faults: Vec::new(),
            warnings: Vec::new(),
        }
    }

    /// Handles `.program`. Returns the assembler for the program that begins at this directive.
    fn program(&mut self, at: Token<'_>, rest: &[Token<'_>]) -> Asm<'a> {
        if self.begun && !self.set.contains_key("program") {
            let message = "a program has begun before this line";
            let help = "only `.isa` and `.chip` may come before the first `.program`";
            self.faults.push(wrong(at, message).help(help));
        }
        let mut next = Asm {
            chip_name: self.chip_name.clone(),
            dialect: self.dialect,
            begun: true,
            later: self.begun,
            ..Asm::new(self.source, self.chip)
        };
        next.set.insert("program".to_owned(), at.span);
        match rest {
            [] => {}
            [name] => match name_of(name.text) {
                Some(text) => next.name = Some(text),
                None => next.faults.push(
                    wrong(*name, "`%` and two hexadecimal digits were expected").help("`%` itself is `%25`"),
                ),
            },
            [_, more, ..] => {
                next.faults.push(wrong(*more, "a name is one word").help("a space is written as `%20`"))
            }
        }
        next
    }

    fn line(&mut self, tokens: &[Token<'_>]) -> Parse<()> {
        let Some(&first) = tokens.first() else { return Ok(()) };
        self.begun |= !matches!(first.text, ".isa" | ".chip" | ".syntax");
        if let Some(name) = first.text.strip_prefix('.') {
            return self.directive(name, first, &tokens[1..]);
        }
        if let Some(name) = first.text.strip_prefix('@').and_then(|name| name.strip_suffix(':')) {
            self.pending_labels.push((name.to_owned(), first.span));
            return self.line(&tokens[1..]);
        }
        let numbered = parse_number(first.text).filter(|_| tokens.len() > 1);
        let rest = if numbered.is_some() { &tokens[1..] } else { tokens };
        let Some(&head) = rest.first() else { return Ok(()) };
        match head.text {
            "x:" | "y:" | "z:" | "w:" | "t:" | "?:" => {
                // If a line has the group number of the previous line and the slot of the line is free, the line's
                // instruction belongs to the previous line's group.
                let goes_on = numbered.is_none_or(|number| self.group.goes_on(number, head.text));
                if !goes_on || !self.pending_labels.is_empty() {
                    self.close_group()?;
                }
                self.group.number = numbered.or(self.group.number);
                self.name_clause_line();
                self.alu(&rest[1..], head)
            }
            "END_OF_PROGRAM" if rest.len() == 1 => self.end_of_program(),
            text if text.ends_with(':') || amd::is_control(text) => {
                self.close_group()?;
                let addr = match numbered {
                    Some(addr) if addr < LIMIT as u64 => addr as usize,
                    Some(_) => return Err(wrong(first, "the address is beyond any program")),
                    None => self.cf.last().map_or(0, |cf| cf.addr + 1),
                };
                self.name_place(LabelTarget::Control(addr));
                // The assembler stores even a wrong instruction. So the assembler can check later lines in the right
                // context.
                self.cf.push(Cf {
                    addr,
                    words: [0, 0],
                    span: head.span,
                    placed: false,
                    counted: false,
                    label: None,
                    body: Vec::new(),
                    shorter: Vec::new(),
                    lines: Vec::new(),
                });
                self.control(head, &rest[1..])
            }
            _ => {
                self.close_group()?;
                self.name_clause_line();
                self.fetch(head, &rest[1..])
            }
        }
    }

    /// Handles a line that contains only END_OF_PROGRAM. Sets the END_OF_PROGRAM bit in the last instruction. If the
    /// format of the last instruction does not have the bit, the function adds a NOP with the bit.
    fn end_of_program(&mut self) -> Parse<()> {
        self.close_group()?;
        match self.cf.last_mut() {
            Some(cf) if !cf.is_alu() => cf.words[1] |= 1 << 21,
            last => {
                let addr = last.map_or(0, |cf| cf.addr + 1);
                let words = [0, 1 << 31 | 1 << 21];
                self.cf.push(Cf {
                    addr,
                    words,
                    span: Span::default(),
                    placed: false,
                    counted: false,
                    label: None,
                    body: Vec::new(),
                    shorter: Vec::new(),
                    lines: Vec::new(),
                });
            }
        }
        Ok(())
    }

    /// Assigns `place` to the labels that have no target yet.
    fn name_place(&mut self, place: LabelTarget) {
        for (name, span) in std::mem::take(&mut self.pending_labels) {
            match self.labels.get(&name) {
                Some((_, first)) => {
                    let message = format!("label `@{name}` is defined twice");
                    self.faults.push(Diagnostic::error(span, message).related(*first, "the first"));
                }
                None => drop(self.labels.insert(name, (place, span))),
            }
        }
    }

    /// Makes the next line of a clause the target of the labels that have no target yet.
    fn name_clause_line(&mut self) {
        if let Some((cf, before)) = self.cf.split_last() {
            self.name_place(LabelTarget::Clause(before.len(), cf.body.len() / 2));
        }
    }

    /// Returns the clause to which the assembler adds the current line. `alu`: whether the line is an ALU instruction.
    fn body(&mut self, at: Token<'_>, alu: bool) -> Parse<&mut Vec<u32>> {
        let cf =
            self.cf.last_mut().ok_or_else(|| wrong(at, "no control-flow instruction precedes this line"))?;
        // If the words are zero, the instruction is wrong, and a message about the instruction already exists.
        if cf.words != [0, 0] && (cf.words[1] >> 29 & 1 != 0) != alu {
            let kind = if alu { "an ALU" } else { "a TEX or VTX" };
            return Err(wrong(at, format!("this line is valid only in {kind} clause")));
        }
        // The position of an ALU group is the line of its first slot.
        let before = cf.body.len() / 2;
        if cf.lines.last().is_none_or(|(last, _)| *last != before) {
            cf.lines.push((before, at.span.start));
        }
        Ok(&mut cf.body)
    }

    /// Computes addresses and counts, and joins all words into one image.
    fn finish(mut self) -> Result<Assembled, Vec<Diagnostic>> {
        if let Err(fault) = self.close_group() {
            self.faults.push(fault);
        }
        for (name, span) in std::mem::take(&mut self.pending_labels) {
            let message = format!("no instruction comes after label `@{name}`: the text ends here");
            self.faults.push(Diagnostic::error(span, message));
        }
        let ends = |cf: &Cf| !cf.is_alu() && cf.words[1] >> 21 & 1 != 0;
        if self.dialect == Dialect::Latte && !self.cf.last().is_some_and(ends) {
            // latte-assembler sets END_OF_PROGRAM in the last instruction even if the text does not state
            // END_OF_PROGRAM.
            if let Err(fault) = self.end_of_program() {
                self.faults.push(fault);
            }
        }
        self.place_clauses();
        self.resolve_labels();
        let mut image = Image::default();
        for cf in &self.cf {
            if !cf.body.is_empty() {
                image.put(cf.clause_addr(), &cf.body, cf.span);
            }
            image.put(cf.addr, &cf.words, cf.span);
        }
        for (at, words, span) in &self.data {
            image.put(*at, words, *span);
        }
        self.faults.append(&mut image.faults);
        if !self.faults.is_empty() {
            Diagnostic::sort(&mut self.faults);
            return Err(self.faults);
        }
        let mut words: Vec<u32> = image.words.into_iter().map(|word| word.unwrap_or(0)).collect();
        words.extend(self.tail);
        let mut lines = Vec::new();
        for cf in &self.cf {
            lines.push((cf.addr as u32, cf.span.start));
            lines.extend(cf.lines.iter().map(|(before, at)| ((cf.clause_addr() + before) as u32, *at)));
        }
        let start = self.state.iter().find(|(name, _)| name == "start").map_or(0, |(_, values)| values[0]);
        if self.has_metadata() {
            let code = Code::new(&words, start, CodeOptions::new(self.chip));
            let pixels = code
                .instructions()
                .any(|(_, cf)| matches!(&cf.op, CfOp::Export(_, export) if export.kind == ExportKind::Pixel));
            self.state_of_metadata(registers_needed(&code), pixels);
        }
        let Asm { name, chip, chip_name, state, mut warnings, .. } = self;
        Diagnostic::sort(&mut warnings);
        Ok(Assembled { name, words, chip, chip_name, state, lines, warnings })
    }

    /// Assigns addresses to clauses without ADDR. The assigned addresses come after all other words. Also assigns
    /// counts to clauses without CNT.
    fn place_clauses(&mut self) {
        let mut end = self.cf.iter().map(|cf| cf.addr + 1).max().unwrap_or(0);
        for cf in self.cf.iter().filter(|cf| cf.placed && !cf.body.is_empty()) {
            end = end.max(cf.clause_addr() + cf.body.len() / 2);
        }
        end = self.data.iter().map(|(at, ..)| at + 1).fold(end, usize::max);
        // latte-assembler puts all ALU clauses before all fetch clauses. The first ALU clause begins at a multiple of
        // the alignment of ALU clauses. The first fetch clause begins at a multiple of the alignment of fetch clauses.
        let latte = self.dialect == Dialect::Latte;
        let mut order: Vec<usize> =
            (0..self.cf.len()).filter(|number| !self.cf[*number].body.is_empty()).collect();
        if latte {
            order.sort_by_key(|number| !self.cf[*number].is_alu());
        }
        let mut kinds = [false; 2];
        for number in order {
            let cf = &mut self.cf[number];
            let alu = cf.is_alu();
            cf.share_literals();
            if latte && !cf.placed && !std::mem::replace(&mut kinds[usize::from(alu)], true) {
                end = end.next_multiple_of(if alu || !kinds[1] { 32 } else { 16 });
            }
            if !alu && !is_fetch_clause(cf.words[1]) {
                self.faults.push(Diagnostic::error(cf.span, "this instruction has no clause"));
            }
            let len = cf.body.len() / 2;
            if !cf.placed {
                // A fetch clause begins at an even address.
                end += if alu { 0 } else { end % 2 };
                cf.words[0] |= end as u32;
                end += len;
            }
            if !cf.counted {
                let count = if alu { len } else { len / 2 };
                let most = most_in_clause(alu, self.chip.family);
                if count > most as usize || count == 0 {
                    let what = if alu { "64-bit words of slots and literals" } else { "instructions" };
                    let message = format!("the clause has {count} {what}; 1 to {most} fit");
                    let again = if alu { "ALU" } else { "another TEX or VTX" };
                    let help = format!(
                        "begin a second clause with a line `{again}:` before the first line that does not fit"
                    );
                    self.faults.push(Diagnostic::error(cf.span, message).help(help));
                } else {
                    cf.words[1] |= count_field(count as u32 - 1, alu);
                }
            }
        }
    }

    /// Writes the addresses of labels to `.start` and to the instructions whose ADDR names a label.
    fn resolve_labels(&mut self) {
        for number in 0..self.cf.len() {
            let Some((label, span)) = self.cf[number].label.take() else { continue };
            let Some(&(place, _)) = self.labels.get(&label) else {
                self.faults.push(self.no_label(&label, span));
                continue;
            };
            let launches = self.cf[number].is_alu() || is_fetch_clause(self.cf[number].words[1]);
            match place {
                LabelTarget::Control(addr) if !launches => self.cf[number].words[0] |= addr as u32,
                LabelTarget::Clause(owner, offset) if launches => {
                    self.share_clause(number, owner, offset, span)
                }
                LabelTarget::Control(_) => {
                    let message =
                        format!("`@{label}` names control flow, but this instruction launches a clause");
                    self.faults.push(
                        Diagnostic::error(span, message).help("put the label before a line of a clause"),
                    );
                }
                LabelTarget::Clause(..) => {
                    let message = format!(
                        "`@{label}` names a line of a clause, but this instruction continues in control flow"
                    );
                    let help = "put the label before a control-flow instruction";
                    self.faults.push(Diagnostic::error(span, message).help(help));
                }
            }
        }
        if let Some((label, span)) = self.start.take() {
            match self.labels.get(&label) {
                Some((LabelTarget::Control(addr), _)) => {
                    self.state.push(("start".to_owned(), vec![*addr as u32]))
                }
                Some((LabelTarget::Clause(..), _)) => {
                    let message =
                        format!("`@{label}` names a line of a clause; a program starts in control flow");
                    self.faults.push(Diagnostic::error(span, message));
                }
                None => self.faults.push(self.no_label(&label, span)),
            }
        }
    }

    /// Makes instruction `number` run part of the clause of instruction `owner`. The ADDR of instruction `number`
    /// becomes the address of word `offset` of the clause. If the text does not state CNT, the part extends to the end
    /// of the clause.
    fn share_clause(&mut self, number: usize, owner: usize, offset: usize, span: Span) {
        let alu = self.cf[number].is_alu();
        let addr = self.cf[owner].clause_addr() + offset;
        let left = self.cf[owner].body.len() / 2 - offset;
        if self.cf[owner].is_alu() != alu {
            let message = "the label names a line of a clause of another kind";
            self.faults.push(Diagnostic::error(span, message));
            return;
        }
        let cf = &mut self.cf[number];
        cf.words[0] |= addr as u32;
        if !cf.counted && cf.body.is_empty() {
            let count = if alu { left } else { left / 2 };
            cf.words[1] |= count_field((count as u32).saturating_sub(1), alu);
        }
    }

    fn no_label(&self, label: &str, span: Span) -> Diagnostic {
        let mut known: Vec<&str> = self.labels.keys().map(String::as_str).collect();
        known.sort_unstable();
        Diagnostic::error(span, format!("undefined label `@{label}`")).help(suggest(label, known))
    }
}

/// The words of the program under construction. The image detects whether two instructions use the same address.
#[derive(Default)]
struct Image {
    words: Vec<Option<u32>>,
    faults: Vec<Diagnostic>,
}

impl Image {
    fn put(&mut self, at: usize, words: &[u32], span: Span) {
        let range = 2 * at..2 * at + words.len();
        if range.end > 2 * LIMIT {
            self.faults.push(Diagnostic::error(span, "the address is beyond any program"));
            return;
        }
        if self.words.len() < range.end {
            self.words.resize(range.end, None);
        }
        let place = &mut self.words[range];
        if place.iter().any(Option::is_some) {
            self.faults.push(Diagnostic::error(span, format!("address {at} is used twice")));
        }
        for (place, word) in place.iter_mut().zip(words) {
            *place = Some(*word);
        }
    }
}

/// Returns the maximum number of slots in an ALU clause, or the maximum number of instructions in a fetch clause.
const fn most_in_clause(alu: bool, family: Family) -> u32 {
    match (alu, family) {
        (true, _) => 128,
        (false, Family::R700) => 16,
        (false, Family::R600) => 8,
    }
}

/// Returns the bits of a count field. `count` is the count minus one, which is the value of the field. In a fetch
/// clause, the bits of COUNT and COUNT_3 are not adjacent.
fn count_field(count: u32, alu: bool) -> u32 {
    if alu { count << 18 } else { (count & 7) << 10 | (count >> 3) << 19 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jump_targets_and_clauses_are_laid_out_from_labels() {
        let source = "ALU_PUSH_BEFORE:\n 0 x: PRED_SETGT _.x, R0.x, 0 UPDATE_EXEC_MASK\nJUMP: ADDR(@end) POP_CNT(1)\n\
                      ALU_POP_AFTER:\n 1 x: MOV R1.x, 3.5f\n@end:\nEXPORT_DONE: PIXEL[0], R1.xyzw END_OF_PROGRAM";
        let words = assemble(source, Chip::RV770).unwrap().words;
        assert_eq!(words[..4], [4, 0xa400_0000, 3, 0x8500_0001]);
        assert_eq!(words[8..], [0x801f_0000, 0x0000_1084, 0x8000_00fd, 0x0020_0c90, 0x4060_0000, 0]);
    }
}
