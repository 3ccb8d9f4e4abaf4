//! Finds the source text of each instruction. The source text of an instruction has the lines of the instruction with
//! their comments. The text also has the labels and comments before the instruction.

use litemap::LiteMap;
use reconverge_isa::Program;
use reconverge_isa::sets::NumberSet;
use serde::Serialize;

use crate::open::Opened;

/// The source text of an instruction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Written {
    /// Number of the first line, from 1.
    line: usize,
    /// The lines of the instruction, without indentation.
    text: String,
    /// The labels and comments in the lines directly before the instruction.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    before: Vec<String>,
}

/// Returns the source text of each instruction of a program, indexed by address.
pub(super) fn lines(source: &str, opened: &Opened, program: &Program) -> LiteMap<u32, Option<Written>> {
    let number = opened.image.programs.iter().position(|known| known == program);
    let Some(places) = number.and_then(|number| opened.lines.get(number)) else { return LiteMap::new() };
    let starts: NumberSet = places.iter().map(|(_, line)| *line as u32).collect();
    let text: Vec<&str> = source.lines().map(str::trim).collect();
    let code = |line: &usize| text[line - 1].split(';').next().unwrap_or_default().trim_end();
    let label = |line: &usize| code(line).strip_suffix(':').filter(|name| !name.contains(' '));
    let of = |line: usize| {
        let before = (1..line).rev().take_while(|line| {
            !starts.contains(*line as u32)
                && (code(line).is_empty() || label(line).is_some() || code(line).starts_with('.'))
        });
        let before = before.filter(|line| !text[line - 1].is_empty() && !code(line).starts_with('.'));
        let before = before.map(|line| text[line - 1].to_owned());
        let before: Vec<String> = before.collect();
        let after = (line + 1..=text.len()).take_while(|line| {
            !starts.contains(*line as u32)
                && !code(line).is_empty()
                && label(line).is_none()
                && !code(line).starts_with('.')
        });
        let lines: Vec<&str> = std::iter::once(line).chain(after).map(|line| text[line - 1]).collect();
        Written { line, text: lines.join("\n"), before: before.into_iter().rev().collect() }
    };
    let known = places.iter().filter(|(_, line)| (1..=text.len()).contains(line));
    let mut lines = LiteMap::new();
    for (address, line) in known {
        lines.insert(*address, Some(of(*line)));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::open::{Known, open};

    #[test]
    fn an_instruction_has_its_comment_and_the_lines_before_it() {
        let source = "; counts\n.isa tesla\n.chip sm_10\n    mov b32 $r1 0x1 ; one\n\n; for ever\nagain: ; a loop\n    bra again\n    exit nop\n";
        let opened = open(source.as_bytes(), true, &Known::default()).unwrap();
        let written = lines(source, &opened, &opened.image.programs[0]);
        let texts: Vec<(usize, &str, usize)> = written
            .values()
            .flatten()
            .map(|line| (line.line, line.text.as_str(), line.before.len()))
            .collect();
        assert_eq!(texts, [(4, "mov b32 $r1 0x1 ; one", 1), (8, "bra again", 2), (9, "exit nop", 0)]);
        assert_eq!(written.values().flatten().nth(1).unwrap().before, ["; for ever", "again: ; a loop"]);
    }
}
