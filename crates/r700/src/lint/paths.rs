//! Checks the stack on every path. The check reports pops without pushes, loops and calls that do not nest, and entries
//! on the stack at the end of the program. The check also reports a stack that exceeds STACK_SIZE.

use litemap::LiteMap;
use reconverge_isa::graph::EdgeKind;
use reconverge_isa::lint::Rule;
use reconverge_isa::program::Stage;
use reconverge_isa::sets::NumberSet;
use reconverge_simt::uses::Role;

use super::{
    ELSE, END_IN_CALL, LOOP_EXIT, LOOP_INDEX, LOOP_OPEN, LOOP_PAIR, Lint, OUTSIDE_LOOP, POP, RETURN,
    STACK_LEFT, STACK_MERGE, STACK_SIZE,
};
use crate::code::{Cf, CfOp, Code};
use crate::flow::{AluForm, Cost, StackUse};
use crate::graph::{Effect, Ways};
use crate::meaning::Meaning;
use crate::stack::{Met, StackEntry, Unfinished, innermost_loop, walk};
use crate::words::CfInst;

pub(super) fn paths(lint: &mut Lint<'_>, code: &Code, ways: &Ways) {
    let start = lint.known.start;
    let first = if called(lint, code, ways) { vec![StackEntry::CALLER] } else { Vec::new() };
    let by_loop = by_loop(lint, code);
    let mut watch =
        Watch { code, by_loop, frames: LiteMap::new(), merged: LiteMap::new(), found: LiteMap::new() };
    let needed = walk(code, start, first, &mut |pc, met| watch.meet(pc, met));
    for ((pc, _), (rule, message)) in std::mem::take(&mut watch.found) {
        lint.find(rule, pc, message);
    }
    // If paths with different stacks meet, the check reports only the first instruction after the meeting point. Later
    // instructions would have the same error.
    let same = |kind: EdgeKind| !matches!(kind, EdgeKind::Call | EdgeKind::Return);
    for (pc, message) in &watch.merged {
        let led = |(from, next): (&u32, &Vec<_>)| {
            from < pc
                && watch.merged.contains_key(from)
                && next.iter().any(|edge: &reconverge_isa::graph::Edge| edge.to == *pc && same(edge.kind))
        };
        if !ways.next.iter().any(led) {
            lint.find(&STACK_MERGE, *pc, message.clone());
        }
    }
    match (needed, lint.known.stack_size) {
        (Ok((needed, at)), Some(declared)) => {
            let each = StackUse::subentries_an_entry(code.chip().wave_width);
            let entries = needed.entries(each);
            if entries > declared {
                let StackUse { full, sub } = needed;
                let message = format!(
                    "the stack needs {entries} entries here ({full} whole entries and {sub} subentries, {each} to an \
                     entry), STACK_SIZE declares {declared}"
                );
                lint.find(&STACK_SIZE, at, message);
            }
        }
        (Err(Unfinished::Deep), _) => {
            lint.find(&STACK_SIZE, start, "the stack has no bound: calls or pushes repeat without an end");
        }
        // If a program has too many paths, the lint does not check the stack size.
        (Err(Unfinished::Long), _) | (Ok(_), None) => {}
    }
}

/// Returns whether other programs call this program. Other programs call a fetch program. Other programs also call a
/// program with a RETURN and without an END_OF_PROGRAM.
fn called(lint: &Lint<'_>, code: &Code, ways: &Ways) -> bool {
    match lint.known.stage {
        Some(stage) => stage == Stage::Fetch,
        None => {
            let returns = |cf: &Cf| matches!(cf.op, CfOp::Control(CfInst::RETURN, _));
            let within = ways.within(lint.known.start);
            let own = || within.iter().filter_map(|addr| code.cf(addr).ok());
            own().any(returns) && !own().any(|cf| cf.end_of_program)
        }
    }
}

/// Returns the addresses of the control-flow instructions that use aL as an index. If MOVA_GPR_INT writes aL, aL is
/// also valid outside loops, and the result is empty.
fn by_loop(lint: &Lint<'_>, code: &Code) -> NumberSet {
    let moved = |cf: &Cf| match &cf.op {
        CfOp::Alu(clause) => code
            .groups(clause)
            .any(|group| group.ops.iter().any(|op| matches!(op.opcode.meaning, Meaning::MovaLoop(_)))),
        _ => false,
    };
    if code.instructions().any(|(_, cf)| moved(cf)) {
        return NumberSet::new();
    }
    let indexed = |(addr, cf): &(u32, &Cf)| {
        Lint::uses_of(&lint.uses, code, *addr, &cf.op).into_iter().any(|(_, uses)| {
            uses.reads.iter().any(|read| read.slot.file == "aL" && read.role == Role::Address)
        })
    };
    code.instructions().filter(indexed).map(|(addr, _)| addr).collect()
}

struct Watch<'a> {
    code: &'a Code,
    by_loop: NumberSet,
    /// For each instruction, the stack before the instruction on the first path that reaches the instruction. Only the
    /// entries of the instruction's subroutine are listed.
    frames: LiteMap<u32, Vec<StackEntry>>,
    merged: LiteMap<u32, String>,
    found: LiteMap<(u32, &'static str), (&'static Rule, String)>,
}

impl Watch<'_> {
    fn find(&mut self, rule: &'static Rule, pc: u32, message: String) {
        self.found.entry((pc, rule.name)).or_insert((rule, message));
    }

    fn meet(&mut self, pc: u32, met: Met<'_>) {
        match met {
            Met::Instruction(stack) => self.instruction(pc, stack),
            Met::Fault(effect, stack) => self.fault(pc, effect, stack),
            Met::End(stack) => {
                let left = stack.strip_prefix(&[StackEntry::CALLER]).unwrap_or(stack);
                if left.iter().any(StackEntry::is_call) {
                    self.find(&END_IN_CALL, pc, format!("{} on the stack", entries(left)));
                } else if !left.is_empty() {
                    self.find(&STACK_LEFT, pc, format!("{} on the stack", entries(left)));
                }
            }
        }
    }

    fn instruction(&mut self, pc: u32, stack: &[StackEntry]) {
        let frame = stack.rsplit(StackEntry::is_call).next().unwrap_or_default();
        match self.frames.get(&pc) {
            None => drop(self.frames.insert(pc, frame.to_vec())),
            Some(other) if *other != frame => {
                let message = format!("{} on one path, {} on another", entries(other), entries(frame));
                self.merged.entry(pc).or_insert(message);
            }
            Some(_) => {}
        }
        if self.by_loop.contains(pc) && !stack.iter().any(|place| place.indexed) {
            self.find(&LOOP_INDEX, pc, "no loop around it has an index".to_owned());
        }
        let code = self.code;
        match code.cf(pc).map(|cf| &cf.op) {
            Ok(CfOp::Control(CfInst::ELSE, _)) => self.branch(pc, frame),
            Ok(CfOp::Alu(clause)) if clause.form == AluForm::ALU_ELSE_AFTER => self.branch(pc, frame),
            Ok(CfOp::Control(CfInst::LOOP_END, control)) => {
                if let Some(own) = frame.last().filter(|top| top.is_loop() && top.to != control.addr) {
                    self.find(
                        &LOOP_PAIR,
                        pc,
                        format!("ADDR is {}, but the loop's body starts at {}", control.addr, own.to),
                    );
                }
            }
            Ok(CfOp::Control(CfInst::LOOP_BREAK | CfInst::LOOP_CONTINUE, control)) => {
                let own = innermost_loop(frame).map(|place| frame[place].to);
                let named = code.cf(control.addr).ok().and_then(|cf| match &cf.op {
                    CfOp::Control(CfInst::LOOP_END, end) => Some(end.addr),
                    _ => None,
                });
                if own.zip(named).is_some_and(|(own, named)| own != named) {
                    self.find(&LOOP_EXIT, pc, format!("the LOOP_END at {} ends another loop", control.addr));
                }
            }
            _ => {}
        }
    }

    fn branch(&mut self, pc: u32, frame: &[StackEntry]) {
        if !frame.last().is_some_and(StackEntry::is_branch) {
            self.find(&ELSE, pc, format!("{} on the stack", entries(frame)));
        }
    }

    fn fault(&mut self, pc: u32, effect: Effect, stack: &[StackEntry]) {
        let top = stack.last().map_or("nothing", kind);
        let found = format!("{top} is on top of the stack");
        match effect {
            Effect::Pop(count) => self.find(&POP, pc, format!("it pops {count} entries, but {found}")),
            Effect::InLoop | Effect::Unwind => {
                self.find(&OUTSIDE_LOOP, pc, "no loop is around it".to_owned())
            }
            Effect::LoopOnTop | Effect::EndLoop => self.find(&LOOP_OPEN, pc, found),
            Effect::Return => self.find(&RETURN, pc, found),
            // Pushes and calls are valid with any stack, so a push or a call cannot fail.
            Effect::Push(_) | Effect::Call(_) => {}
        }
    }
}

fn kind(place: &StackEntry) -> &'static str {
    match place.cost {
        Cost::Push | Cost::WholeQuadPush => "PUSH",
        Cost::Loop => "LOOP",
        Cost::Call => "CALL",
    }
}

/// Returns a description of the entries, outermost first.
fn entries(stack: &[StackEntry]) -> String {
    match stack {
        [] => "nothing".to_owned(),
        _ => stack.iter().map(kind).collect::<Vec<_>>().join(", "),
    }
}
