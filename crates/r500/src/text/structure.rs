//! Finds the instructions of each flow construct. Sets the fields of instructions that depend on the surrounding
//! constructs.

use reconverge_isa::source::Diagnostic;

use super::construct::{Jumps, Pop, Statement};
use super::record::{Record, Target, addr_field};
use crate::inst::WORDS;
use crate::words::*;

/// An open construct.
pub(super) struct Open {
    name: &'static str,
    at: usize,
    /// Breaks and continues in this loop whose target is not known yet. These breaks and continues jump to the end of
    /// the loop.
    waiting: Vec<usize>,
}

/// Returns the target of each structured instruction, as the index of a record. Also sets the fields that surrounding
/// constructs determine. Three examples are the fields of an `if` with an `else`, the number of levels that a break
/// closes, and the operation BREAKREP of a break inside a `rep`.
pub(super) fn structure(records: &mut [Record], errors: &mut Vec<Diagnostic>) -> Vec<Option<usize>> {
    let mut targets = vec![None; records.len()];
    // An earlier error may have removed the line of an `if`. The matching `endif` then has no `if`.
    let whole = errors.is_empty();
    let mut closing_nothing = Vec::new();
    for (record, _) in
        records.iter().zip(strays(records.iter().map(|record| &record.words))).filter(|(_, stray)| *stray)
    {
        if whole && left_to_structure(record) {
            closing_nothing.push(
                Diagnostic::error(record.span, "`endif` closes more constructs than are open")
                    .help("remove it, or write `-> 0` at the end of the line to keep it"),
            );
        }
    }
    let mut open: Vec<Open> = Vec::new();
    for index in 0..records.len() {
        let record = &records[index];
        let wants_target = left_to_structure(record);
        let Some(statement) = recognised(&record.words) else { continue };
        let construct = statement.construct;
        match construct.name {
            // An `if` on a boolean constant must state its target. Such an `if` does not change counters. Such an `if`
            // is a plain jump without an `else` and without an `endif`.
            "if" if construct.on_boolean && !wants_target => {}
            "if" if construct.on_boolean => errors.push(
                Diagnostic::error(record.span, "an `if` on a boolean constant needs a target")
                    .help("it does not open a level that `endif` could close: write `-> LABEL`, and end the body with `goto`"),
            ),
            "if" | "loop" | "rep" => open.push(Open { name: construct.name, at: index, waiting: Vec::new() }),
            "else" => match open.last_mut().filter(|open| matches!(open.name, "if" | "else")) {
                Some(last) => {
                    targets[last.at] = Some(index + 1);
                    let opener = &mut records[last.at];
                    if last.name == "if" && left_to_structure(opener) {
                        change(&mut opener.words, |inst| inst.b_op1 = BOp::INCR);
                    }
                    *last = Open { name: "else", at: index, waiting: Vec::new() };
                }
                None if wants_target => errors.push(unopened(record, "else", "if")),
                None => {}
            },
            "endif" => {
                let ifs = open.iter().rev().take_while(|open| matches!(open.name, "if" | "else")).count();
                let closed = open.split_off(open.len() - ifs.min(usize::from(statement.pop)));
                for (around, last) in (0u8..).zip(&closed) {
                    targets[last.at] = Some(index + 1);
                    let opener = &mut records[last.at];
                    if around > 0 && left_to_structure(opener) {
                        // If one `endif` ends several ifs, a jump of an inner `if` goes past this `endif`. So the jump
                        // must also close the levels of the outer ifs. (r500.md 5.5; inferred for `else`)
                        change(&mut opener.words, |inst| match last.name {
                            "else" => inst.b_pop_cnt = 1 + around,
                            _ => (inst.b_op1, inst.b_pop_cnt) = (BOp::DECR, around),
                        });
                    }
                }
            }
            "endloop" | "endrep" => {
                let opener = if construct.name == "endloop" { "loop" } else { "rep" };
                match open.last().filter(|open| open.name == opener) {
                    Some(last) => {
                        targets[last.at] = Some(index + 1);
                        targets[index] = Some(last.at + 1);
                        if matches!(record.target, Target::Structure { int: false }) {
                            let int = addr_field("int_addr");
                            let opened = int.get(records[last.at].words[3]);
                            records[index].words[3] = int.set(records[index].words[3], opened);
                        }
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
                        let levels = open.len() - 1 - within;
                        let in_rep = open[within].name == "rep";
                        open[within].waiting.push(index);
                        if wants_target {
                            let Some(levels) = u8::try_from(levels).ok().filter(|levels| *levels < 32) else {
                                let message = format!("`{}` leaves {levels} ifs", construct.name);
                                errors.push(
                                    Diagnostic::error(record.span, message)
                                        .help("B_POP_CNT counts to 31: nest fewer ifs in the loop"),
                                );
                                continue;
                            };
                            change(&mut records[index].words, |inst| {
                                // In the canonical form, an unconditional break has DECR even if the break closes 0
                                // levels. (r500.md 5.5)
                                let decrements = levels > 0 || construct.jumps == Jumps::Always;
                                if construct.pop == Pop::None && decrements {
                                    (inst.b_op1, inst.b_pop_cnt) = (BOp::DECR, levels);
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
                    .help("write `-> LABEL` at the end of the line"),
            ),
            _ => {}
        }
    }
    for left in open {
        if left_to_structure(&records[left.at]) {
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
    // After another error, the assembler does not report an unmatched `endif`. The other error may have removed the
    // matching `if`.
    let first = errors.iter().map(|error| error.span.start).min().unwrap_or(usize::MAX);
    errors.extend(closing_nothing.into_iter().filter(|error| error.span.start < first));
    targets
}

/// Returns, for each instruction, whether the instruction is an `endif` that closes more constructs than are open.
pub(super) fn strays<'a>(records: impl Iterator<Item = &'a [u32; WORDS]>) -> Vec<bool> {
    let mut open: Vec<&str> = Vec::new();
    let stray = |words: &[u32; WORDS]| {
        let Some(statement) = recognised(words) else { return false };
        match statement.construct.name {
            "if" if statement.construct.on_boolean => {}
            name @ ("if" | "loop" | "rep") => open.push(name),
            "endif" => {
                let ifs = open.iter().rev().take_while(|name| **name == "if").count();
                open.truncate(open.len() - ifs.min(usize::from(statement.pop)));
                return usize::from(statement.pop) > ifs;
            }
            name @ ("endloop" | "endrep") if open.last() == Some(&&name[3..]) => {
                open.pop();
            }
            _ => {}
        }
        false
    };
    records.map(stray).collect()
}

/// Returns whether the assembler computes the target of this instruction from the construct. The construct's matching
/// instruction is then the target.
fn left_to_structure(record: &Record) -> bool {
    matches!(record.target, Target::Structure { .. })
}

pub(super) fn change(words: &mut [u32; WORDS], edit: impl FnOnce(&mut FcInst)) {
    if let Ok(mut inst) = FcInst::unpack_lenient(words[2]) {
        let reserved = words[2] & !FcInst::OWNED;
        edit(&mut inst);
        words[2] = inst.pack() | reserved;
    }
}

pub(super) fn unopened(record: &Record, name: &str, opener: &str) -> Diagnostic {
    Diagnostic::error(record.span, format!("`{name}` without {opener}"))
        .help(format!("open it with {opener}, or write a target, `-> LABEL`"))
}

pub(super) fn recognised(words: &[u32; WORDS]) -> Option<Statement> {
    if words[0] & 3 != InstType::FC as u32 {
        return None;
    }
    let inst = FcInst::unpack_lenient(words[2]).ok()?;
    let addr = FcAddr::unpack_lenient(words[3]).ok()?;
    Statement::recognise(&inst, &addr)
}
