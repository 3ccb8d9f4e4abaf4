//! Text to words.
//!
//! A line is a directive, a label, a control-flow instruction, or a line of the clause that the last one launches. What
//! has no address is laid out at the end: clauses after all control flow and after what the text places itself.

mod alu;
mod control;
mod directive;
mod fetch;
mod lex;
mod operand;

use std::collections::HashMap;

use reconverge_isa::source::{lines, parse_number, suggest};
use reconverge_isa::{Diagnostic, Span};

use super::dis::is_fetch_clause;
use crate::chip::{Chip, Family};
use alu::Group;
use lex::{Parse, Token, tokens, wrong};

/// What a text says.
#[derive(Clone, Debug, PartialEq)]
pub struct Assembled {
    /// The program, 32-bit words in memory order.
    pub words: Vec<u32>,
    /// The chip of `.chip`, or the one given.
    pub chip: Chip,
    /// State directives in order: name without the dot, numbers.
    pub state: Vec<(String, Vec<u32>)>,
}

/// The words of `source`, for `chip` unless the text names another.
///
/// # Errors
/// Everything in the text that has no meaning, each with its place.
pub fn assemble(source: &str, chip: Chip) -> Result<Assembled, Vec<Diagnostic>> {
    let mut asm = Asm {
        chip,
        state: Vec::new(),
        cf: Vec::new(),
        data: Vec::new(),
        tail: None,
        at: 0,
        start: None,
        labels: HashMap::new(),
        pending_labels: Vec::new(),
        group: Group::default(),
        faults: Vec::new(),
    };
    let mut words = Vec::new();
    for (offset, line) in lines(source) {
        tokens(line, offset, &mut words);
        if let Err(fault) = asm.line(&words) {
            asm.faults.push(fault);
        }
    }
    asm.finish()
}

/// A control-flow word and the clause written after it.
struct Cf {
    addr: usize,
    words: [u32; 2],
    span: Span,
    /// ADDR was written.
    placed: bool,
    /// CNT was written.
    counted: bool,
    label: Option<(String, Span)>,
    body: Vec<u32>,
}

/// What a label names.
#[derive(Clone, Copy)]
enum Place {
    /// A control-flow instruction, by its address.
    Control(usize),
    /// A line of a clause: its control-flow instruction, and the 64-bit words of the clause before it.
    Clause(usize, usize),
}

struct Asm {
    chip: Chip,
    state: Vec<(String, Vec<u32>)>,
    cf: Vec<Cf>,
    data: Vec<(usize, [u32; 2], Span)>,
    tail: Option<u32>,
    at: usize,
    /// `.start` with a label.
    start: Option<(String, Span)>,
    labels: HashMap<String, Place>,
    pending_labels: Vec<(String, Span)>,
    group: Group,
    faults: Vec<Diagnostic>,
}

/// The largest program: 22 bits of clause address.
const LIMIT: usize = 1 << 22;

impl Cf {
    fn is_alu(&self) -> bool {
        self.words[1] >> 29 & 1 != 0
    }

    /// The address of its clause.
    fn clause_addr(&self) -> usize {
        (if self.is_alu() { self.words[0] & 0x3f_ffff } else { self.words[0] }) as usize
    }
}

impl Asm {
    fn line(&mut self, tokens: &[Token<'_>]) -> Parse<()> {
        let Some(&first) = tokens.first() else { return Ok(()) };
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
                if numbered.is_some() || !self.pending_labels.is_empty() {
                    self.close_group()?;
                }
                self.name_clause_line();
                self.alu(&rest[1..], head)
            }
            text if text.ends_with(':') => {
                self.close_group()?;
                let addr = match numbered {
                    Some(addr) if addr < LIMIT as u64 => addr as usize,
                    Some(_) => return Err(wrong(first, "the address is beyond any program")),
                    None => self.cf.last().map_or(0, |cf| cf.addr + 1),
                };
                self.name_place(Place::Control(addr));
                // Kept even when wrong, so that what follows is judged in its place.
                self.cf.push(Cf {
                    addr,
                    words: [0, 0],
                    span: head.span,
                    placed: false,
                    counted: false,
                    label: None,
                    body: Vec::new(),
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

    /// Gives the labels that wait for something to name this place.
    fn name_place(&mut self, place: Place) {
        for (name, span) in std::mem::take(&mut self.pending_labels) {
            if self.labels.insert(name.clone(), place).is_some() {
                self.faults.push(Diagnostic::error(span, format!("label `@{name}` is defined twice")));
            }
        }
    }

    /// The labels that wait name the line of a clause that comes next.
    fn name_clause_line(&mut self) {
        if let Some((cf, before)) = self.cf.split_last() {
            self.name_place(Place::Clause(before.len(), cf.body.len() / 2));
        }
    }

    /// The clause that lines are being added to; `alu` says of which kind they are.
    fn body(&mut self, at: Token<'_>, alu: bool) -> Parse<&mut Vec<u32>> {
        let cf = self.cf.last_mut().ok_or_else(|| wrong(at, "no control-flow instruction is before this"))?;
        // A word of zeros is an instruction that has its message already.
        if cf.words != [0, 0] && (cf.words[1] >> 29 & 1 != 0) != alu {
            let kind = if alu { "an ALU" } else { "a TEX or VTX" };
            return Err(wrong(at, format!("this fits in {kind} clause only")));
        }
        Ok(&mut cf.body)
    }

    /// Addresses, counts, and everything into one image.
    fn finish(mut self) -> Result<Assembled, Vec<Diagnostic>> {
        if let Err(fault) = self.close_group() {
            self.faults.push(fault);
        }
        for (name, span) in std::mem::take(&mut self.pending_labels) {
            self.faults
                .push(Diagnostic::error(span, format!("label `@{name}` names nothing: the text ends here")));
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
            self.faults.sort_by_key(|fault| fault.span.start);
            return Err(self.faults);
        }
        let mut words: Vec<u32> = image.words.into_iter().map(|word| word.unwrap_or(0)).collect();
        words.extend(self.tail);
        Ok(Assembled { words, chip: self.chip, state: self.state })
    }

    /// Places every clause without ADDR after everything else, and gives every one without CNT its count.
    fn place_clauses(&mut self) {
        let mut end = self.cf.iter().map(|cf| cf.addr + 1).max().unwrap_or(0);
        for cf in self.cf.iter().filter(|cf| cf.placed && !cf.body.is_empty()) {
            end = end.max(cf.clause_addr() + cf.body.len() / 2);
        }
        end = self.data.iter().map(|(at, ..)| at + 1).fold(end, usize::max);
        for cf in self.cf.iter_mut().filter(|cf| !cf.body.is_empty()) {
            let alu = cf.is_alu();
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
                    let message = format!("the clause has {count} instructions or slots; 1 to {most} fit");
                    self.faults.push(Diagnostic::error(cf.span, message));
                } else {
                    cf.words[1] |= count_field(count as u32 - 1, alu);
                }
            }
        }
    }

    /// Puts the addresses of labels where ADDR and `.start` name them.
    fn resolve_labels(&mut self) {
        for number in 0..self.cf.len() {
            let Some((label, span)) = self.cf[number].label.take() else { continue };
            let Some(&place) = self.labels.get(&label) else {
                self.faults.push(self.no_label(&label, span));
                continue;
            };
            let launches = self.cf[number].is_alu() || is_fetch_clause(self.cf[number].words[1]);
            match place {
                Place::Control(addr) if !launches => self.cf[number].words[0] |= addr as u32,
                Place::Clause(owner, offset) if launches => self.share_clause(number, owner, offset, span),
                Place::Control(_) => {
                    let message = format!("`@{label}` names control flow, but this launches a clause");
                    self.faults.push(
                        Diagnostic::error(span, message).help("put the label before a line of a clause"),
                    );
                }
                Place::Clause(..) => {
                    let message =
                        format!("`@{label}` names a line of a clause, but this goes on in control flow");
                    let help = "put the label before a control-flow instruction";
                    self.faults.push(Diagnostic::error(span, message).help(help));
                }
            }
        }
        if let Some((label, span)) = self.start.take() {
            match self.labels.get(&label) {
                Some(Place::Control(addr)) => self.state.push(("start".to_owned(), vec![*addr as u32])),
                Some(Place::Clause(..)) => {
                    let message =
                        format!("`@{label}` names a line of a clause; a program starts in control flow");
                    self.faults.push(Diagnostic::error(span, message));
                }
                None => self.faults.push(self.no_label(&label, span)),
            }
        }
    }

    /// Lets instruction `number` run the clause of instruction `owner` from its word `offset` on, to its end if no
    /// CNT says otherwise.
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
        Diagnostic::error(span, format!("no label `@{label}`")).help(suggest(label, known))
    }
}

/// The program under construction, with what is in two places at once.
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

/// The slots of an ALU clause, or the instructions of a fetch clause, at most.
const fn most_in_clause(alu: bool, family: Family) -> u32 {
    match (alu, family) {
        (true, _) => 128,
        (false, Family::R700) => 16,
        (false, Family::R600) => 8,
    }
}

/// The field of a count (minus one). COUNT_3 is apart from COUNT.
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
