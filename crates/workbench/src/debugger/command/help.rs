//! The help text of all commands.

use std::fmt::Write;

use super::{COMMANDS, Command};

/// Returns the help for all commands. Lines have up to 80 characters.
pub fn help() -> String {
    let mut text = String::new();
    for Command { names, takes, help, .. } in COMMANDS {
        let head = format!("{:<16} {takes}", names.join(", "));
        let _ = match head.trim_end().len() {
            ..28 => writeln!(text, "{head:<28} {help}"),
            _ => writeln!(text, "{head}\n{:<28} {help}", ""),
        };
    }
    let mut lines = String::new();
    for line in text.lines() {
        lines += &wrapped(line, 29);
    }
    lines + HELP
}

/// Maximum number of characters in a line of the help.
const COLUMNS: usize = 80;

/// Breaks a line between words. Continuation lines begin at column `indent`.
fn wrapped(line: &str, indent: usize) -> String {
    let (mut lines, mut rest) = (String::new(), line.to_owned());
    while rest.chars().count() > COLUMNS {
        let end = rest.char_indices().nth(COLUMNS).map_or(rest.len(), |(end, _)| end);
        let Some(at) = rest[..end].rfind(' ').filter(|at| *at > indent) else { break };
        let _ = writeln!(lines, "{}", rest[..at].trim_end());
        rest = format!("{:indent$}{}", "", &rest[at + 1..]);
    }
    lines + rest.trim_end() + "\n"
}

const HELP: &str = "
PLACE: an address, a label of the source or the listing, or a line of the source
  as :20 or FILE.s:20. A line without an instruction stands for the next one
  that has an instruction.
FORMULA: registers ($r3, R1.x, temp0.r), $r3@5 in lane 5, memory g[0x10], step,
  numbers, + - * / % & | ^ << >> and parentheses. A number with a point is a
  float, and one with a minus sign a signed integer. Other numbers, such as 7
  and 0x…, are unsigned. Registers of R500 are floats, so 2 next to such a
  register is 2.0.
CONDITION: formulas with == != < <= > >= && ||. It holds if it is true for an
  active lane. If each register names a lane, only these lanes matter.
ONLY: if CONDITION, group NUMBER, hits 3 (the third time), hits >= 3, hits % 3;
  these can be combined.
LANES: 0-3,8, all, none, or bits as 0x…
set mask LANES                the active lanes of the next instruction
set token N mask LANES        Tesla: an entry of the stack, 0 is the innermost;
  or address PLACE, or type BRANCH, CALL, CALL_LIM, BREAK, QUADON, JOINAT
set entry N active LANES      R700: an entry of the stack;
  for a loop also: set entry N break LANES
set counter branch LANE N     R500: the branch counter of a lane that waits
set counter loop N COUNT      R500, R700: remaining iterations of a loop
set predicate …               R500: r, g, b, a or alu and LANES; R700: LANES
A trap always stops; a step backward undoes it. Changes by `set` and `write` are
repeated if the launch goes back and reaches their step again. After the end,
registers, memory and stacks of the last state can be read.
";
