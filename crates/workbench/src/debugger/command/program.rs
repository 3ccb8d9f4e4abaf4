//! Commands that print the program's listing or source.

use super::call::{Call, Done, address, text};
use crate::debugger::Debugger;
use crate::debugger::stop::On;

pub(super) fn list(call: &mut Call<'_>) -> Done {
    let around = match call.words.first() {
        Some(word) => Some(address(call.debugger, Some(word))?),
        None => call.debugger.place(),
    };
    text(listing(call.debugger, around, 6))
}

pub(super) fn source(call: &mut Call<'_>) -> Done {
    let debugger = &*call.debugger;
    let source = debugger
        .source()
        .ok_or_else(|| "the source of the program is unknown; `list` shows the program".to_owned())?;
    let around = match call.words.first() {
        Some(word) => Some(address(debugger, Some(word))?),
        None => debugger.place(),
    };
    let at = around.and_then(|address| source.line_of(address)).unwrap_or(1);
    let lines = source_lines(debugger).into_iter().skip(at.saturating_sub(7)).take(13);
    text(lines.map(|line| line.to_string() + "\n").collect())
}

/// A line of the listing or the source, with marks for the display.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramLine {
    /// The address of the line's first instruction, if the line has an instruction.
    pub address: Option<u32>,
    /// Whether the line contains the next instruction.
    pub is_next: bool,
    /// Whether a stop is set on the line.
    pub has_stop: bool,
    /// The displayed text. The text starts with the line number or the address.
    pub text: String,
}

impl std::fmt::Display for ProgramLine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mark = |is: bool, mark: char| if is { mark } else { ' ' };
        match self.address {
            // A label has no marks in the display. A source line without an instruction also has no marks.
            None if !self.is_next => f.write_str(&self.text),
            _ => write!(f, "{}{}{}", mark(self.is_next, '>'), mark(self.has_stop, '*'), self.text),
        }
    }
}

/// Returns all lines of the user's source. If the source is unknown, returns an empty list.
pub fn source_lines(debugger: &Debugger) -> Vec<ProgramLine> {
    let Some(source) = debugger.source() else { return Vec::new() };
    let next = debugger.issue().and_then(|issue| source.line_of(issue.pc));
    let stops: Vec<usize> = stopped_at(debugger).filter_map(|address| source.line_of(address)).collect();
    let line = |(at, text): (usize, &String)| {
        let number = at + 1;
        let address = source.instruction_at(number).filter(|(_, line)| *line == number);
        ProgramLine {
            address: address.map(|(address, _)| address),
            is_next: next == Some(number),
            has_stop: stops.contains(&number),
            text: format!("{number:>4}  {}", text.replace('\t', "    ")),
        }
    };
    source.lines().iter().enumerate().map(line).collect()
}

/// Iterates over the addresses that have a stop.
fn stopped_at(debugger: &Debugger) -> impl Iterator<Item = u32> {
    debugger.stops.iter().filter_map(|stop| match stop.on {
        On::Address(address) => Some(address),
        _ => None,
    })
}

/// Returns all lines of the listing. Each label is a separate line.
pub fn program_lines(debugger: &Debugger) -> Vec<ProgramLine> {
    let next = debugger.issue().map(|issue| issue.pc);
    let stops: Vec<u32> = stopped_at(debugger).collect();
    let mut lines = Vec::new();
    for line in debugger.lines() {
        let address = line.address.unwrap_or(0);
        if let Some(label) = &line.label {
            let text = format!("{label}:");
            lines.push(ProgramLine { address: None, is_next: false, has_stop: false, text });
        }
        let indent = 2 * line.depth;
        let text = format!("{:>7}  {:indent$}{}", debugger.spelled(address), "", line.code());
        let (is_next, has_stop) = (next == Some(address), stops.contains(&address));
        lines.push(ProgramLine { address: Some(address), is_next, has_stop, text });
    }
    lines
}

/// Returns the part of the listing around an address. The printed part has up to `many` instructions before the
/// address, and up to `many` instructions after the address. The part includes the labels of these instructions.
fn listing(debugger: &Debugger, around: Option<u32>, many: usize) -> String {
    let lines = program_lines(debugger);
    let instructions: Vec<usize> = (0..lines.len()).filter(|at| lines[*at].address.is_some()).collect();
    let at =
        around.and_then(|address| instructions.iter().position(|at| lines[*at].address == Some(address)));
    let at = at.unwrap_or(0);
    let part = &instructions[at.saturating_sub(many)..instructions.len().min(at + many + 1)];
    let (Some(first), Some(last)) = (part.first(), part.last()) else { return String::new() };
    // If the line before the first instruction is a label, the listing also shows the label.
    let labelled = first.checked_sub(1).filter(|before| lines[*before].address.is_none());
    lines[labelled.unwrap_or(*first)..=*last].iter().map(|line| format!("{line}\n")).collect()
}
