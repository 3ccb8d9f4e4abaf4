//! Checks which branches, loops and calls are open at each instruction. The check follows all paths of the program and
//! assumes that every vote can have either result.
//!
//! The state of a path is the number of branch levels, the open loops and the open calls. In a structured program, all
//! paths that reach an instruction with equal call stacks have equal states. If the states of two paths differ, the
//! check reports a finding and continues with the state of the first path. Inside a loop, the state also tracks whether
//! lanes are active. If no lane is active and a nested loop is skipped, the skip may close the outer loop.

use std::collections::{BTreeMap, HashMap};

use litemap::LiteMap;

use super::*;
use crate::flow::{Limits, Role};
use crate::inst::Fc;

#[derive(Clone, Debug, PartialEq, Eq)]
struct Loop {
    /// The slot after the start of the loop.
    body: u16,
    al: bool,
    int: u8,
    /// Number of open branch levels at the entry of the loop.
    levels: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Call {
    return_to: u16,
    levels: u32,
    loops: usize,
}

#[derive(Clone, Debug, Default)]
struct Open {
    /// Number of open levels. Open branches add levels, and open calls that increment branch counters also add levels.
    /// If a lane was switched off before all open branches and calls, the lane's counter equals this number.
    levels: u32,
    loops: Vec<Loop>,
    /// Whether all lanes of the innermost loop may be off on this path. A lane is off if the lane has left the loop or
    /// waits at a branch.
    idle: bool,
}

impl Open {
    /// Returns whether both states have the same open levels and loops. Does not compare `idle`.
    fn same(&self, other: &Open) -> bool {
        (self.levels, &self.loops) == (other.levels, &other.loops)
    }

    /// Returns the number of open branches inside the innermost loop. A branch outside the loop cannot switch off lanes
    /// of the loop.
    fn in_loop(&self) -> u32 {
        self.loops.last().map_or(0, |innermost| self.levels.saturating_sub(innermost.levels))
    }
}

impl std::fmt::Display for Open {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let s = |count: u32| if count == 1 { "" } else { "s" };
        let loops = self.loops.len() as u32;
        write!(f, "{} branch{}", self.levels, if self.levels == 1 { "" } else { "es" })?;
        write!(f, " and {loops} loop{}", s(loops))
    }
}

type Calls = Vec<Call>;

struct Nesting<'a> {
    setup: &'a Setup,
    limits: Limits,
    found: &'a mut Found,
    seen: HashMap<(u16, Calls), Open>,
    /// Paths that have not been followed yet, ordered by slot. For each slot, the path from the previous slot comes
    /// first. Messages compare every later path to the slot with the first path.
    pending: BTreeMap<(u16, bool, Calls), Vec<(u16, Open)>>,
    /// Loop starts that jump to the end instruction of their loop. Each loop start has a message, and a flag that
    /// states whether the jump may close the enclosing loop.
    skips: LiteMap<u16, (bool, String)>,
}

/// Number of visited states after which the check stops. A limit is needed because, with four nested calls, many paths
/// may lead to an instruction.
const ENOUGH: usize = 1 << 14;

pub(super) fn check(setup: &Setup, found: &mut Found) {
    let full = Limits::recommended(FcMode::FULL);
    // A separate rule reports loops and calls in partial mode. So this check uses the loop and call limits of full
    // mode.
    let limits = Limits { branch_counter: Limits::recommended(setup.fc_mode).branch_counter, ..full };
    let (seen, pending, skips) = (HashMap::new(), BTreeMap::new(), LiteMap::new());
    let mut nesting = Nesting { setup, limits, found, seen, pending, skips };
    nesting.go(setup.start, setup.start, Vec::new(), Open::default());
    while let Some(((pc, _, calls), paths)) = nesting.pending.pop_first() {
        for (from, open) in paths {
            nesting.arrive(from, pc, &calls, open);
        }
        if nesting.seen.len() > ENOUGH {
            break;
        }
    }
    for (pc, (closes, message)) in nesting.skips {
        let rule = if closes { &LOOP_SKIP_INSIDE } else { &LOOP_SKIP };
        nesting.found.add(rule, pc, message);
    }
}

impl Nesting<'_> {
    fn go(&mut self, from: u16, to: u16, calls: Calls, mut open: Open) {
        // Without an open branch inside the loop, all lanes that have not left the loop are active.
        open.idle &= open.in_loop() > 0;
        if self.setup.slot(to).is_some() {
            self.pending.entry((to, to != from + 1, calls)).or_default().push((from, open));
        }
    }

    fn arrive(&mut self, from: u16, pc: u16, calls: &Calls, open: Open) {
        match self.seen.get(&(pc, calls.clone())) {
            None => {
                self.seen.insert((pc, calls.clone()), open.clone());
                self.step(pc, calls, open);
            }
            Some(other) if other.same(&open) => {
                if open.idle && !other.idle {
                    self.seen.insert((pc, calls.clone()), open.clone());
                    self.step(pc, calls, open);
                }
            }
            Some(other) => {
                let message = format!(
                    "{open} are open on the path from slot {from}, but {other} are open on another path"
                );
                self.found.add(&JOIN, pc, message);
            }
        }
    }

    fn step(&mut self, pc: u16, calls: &Calls, open: Open) {
        let Some(Ok(inst)) = self.setup.slot(pc).map(|slot| &slot.inst) else { return };
        let al = open.loops.iter().any(|open| open.al);
        if !al && uses::of_instruction(inst).iter().flat_map(|uses| &uses.reads).any(reads_al) {
            self.found.add(&AL_OUTSIDE, pc, "a relative address outside all LOOPs");
        }
        if pc == self.setup.end {
            if !open.loops.is_empty() || open.levels > 0 || !calls.is_empty() {
                let behind = if calls.is_empty() { "" } else { ", and calls have not returned" };
                self.found.add(&LEFT_OPEN, pc, format!("the program ends with {open} open{behind}"));
            }
            return;
        }
        let Body::Fc(fc) = &inst.body else { return self.go(pc, pc + 1, calls.clone(), open) };
        let ways = ways_of(self.setup, inst, fc);
        if let Role::End { .. } | Role::Break { .. } | Role::Continue = fc.inst.op.role() {
            self.check_loop(pc, fc, &open);
        }
        let idle = self.idle(inst, fc, &open);
        if ways.stays {
            self.stay(pc, fc, calls, Open { idle: idle.0, ..open.clone() });
        }
        if ways.jumps {
            self.jump(pc, fc, calls, Open { idle: idle.1, ..open });
        }
    }

    /// Returns whether all lanes of the loop may be off after the instruction. The first result is for a group that
    /// does not jump, and the second is for a group that jumps. If no lane votes, an instruction with JUMP_ALL jumps,
    /// and an instruction with JUMP_ANY does not jump. (CTM guide p. 37)
    fn idle(&self, inst: &Inst, fc: &Fc, open: &Open) -> (bool, bool) {
        match fc.inst.op.role() {
            Role::Jump | Role::Begin { .. } if fc.inst.jump_any => (open.idle, open.idle && fc.inst.b_else),
            Role::Jump | Role::Begin { .. } => (false, open.idle),
            // A BREAK or CONTINUE jumps only if no branch has switched off a lane of the loop. Lanes that left the loop
            // resume at the target.
            Role::Break { .. } | Role::Continue => {
                let leaves = crate::graph::wishes(&inst.common, &fc.inst).jump && open.in_loop() > 0;
                (open.idle || leaves, false)
            }
            Role::End { .. } => (open.idle, open.idle),
        }
    }

    /// Checks that the innermost loop matches an end, BREAK or CONTINUE instruction.
    fn check_loop(&mut self, pc: u16, fc: &Fc, open: &Open) {
        let name = fc.inst.op.name();
        let Some(innermost) = open.loops.last() else {
            return self.found.add(&NO_LOOP, pc, format!("{name} outside all loops"));
        };
        let kind = if innermost.al { "LOOP" } else { "REP" };
        let (Role::End { al } | Role::Break { al }) = fc.inst.op.role() else { return };
        if al != innermost.al {
            return self.found.add(&LOOP_KIND, pc, format!("{name} inside {kind}"));
        }
        if matches!(fc.inst.op.role(), Role::End { .. }) {
            let (start, end) = (innermost.int, fc.addr.int_addr);
            if al && start != end {
                self.found.add(
                    &LOOP_CONSTANT,
                    pc,
                    format!("{name} names int[{end}], but its LOOP names int[{start}]"),
                );
            }
        }
    }

    fn levels(&mut self, pc: u16, name: &str, open: u32, outside: u32) {
        let message = match open.checked_sub(outside) {
            Some(left) => format!("{name} leaves {left} of the branches in the loop open"),
            None => format!("{name} closes {} outside the loop", outside - open),
        };
        self.found.add(&LOOP_LEVELS, pc, message);
    }

    /// Returns the number of open levels after an operation on the branch counters.
    fn count(&mut self, pc: u16, fc: &Fc, op: BOp, levels: u32) -> u32 {
        let Some(after) = fc.inst.levels_after(op, levels) else {
            let closes = fc.inst.b_pop_cnt;
            self.found.add(
                &NO_IF,
                pc,
                format!("the instruction closes {closes} branches, but {levels} are open"),
            );
            return 0;
        };
        let limit = u32::from(self.limits.branch_counter) + 1;
        if after > levels && levels >= limit {
            self.found.add(&BRANCH_DEPTH, pc, format!("{after} branches are open (maximum: {limit})"));
        }
        after
    }

    fn stay(&mut self, pc: u16, fc: &Fc, calls: &Calls, mut open: Open) {
        match fc.inst.op.role() {
            Role::Begin { al } => {
                if open.loops.len() >= self.limits.loop_stack {
                    let (count, limit) = (open.loops.len() + 1, self.limits.loop_stack);
                    return self.found.add(
                        &LOOP_DEPTH,
                        pc,
                        format!("{count} loops are open (maximum: {limit})"),
                    );
                }
                // If the instruction increments branch counters, the lanes whose condition is false wait outside the
                // loop. So the number of levels at the start of the loop includes the new level.
                let (int, levels) = (fc.addr.int_addr, self.count(pc, fc, fc.inst.b_op0, open.levels));
                open.levels = levels;
                open.loops.push(Loop { body: pc + 1, al, int, levels });
                return self.go(pc, pc + 1, calls.clone(), open);
            }
            Role::End { .. } => {
                // The end of a loop may also close a branch of the loop.
                let levels = self.count(pc, fc, fc.inst.b_op0, open.levels);
                if let Some(closed) = open.loops.pop() {
                    if levels != closed.levels {
                        self.levels(pc, fc.inst.op.name(), levels, closed.levels);
                    }
                    open.levels = closed.levels;
                }
                return self.go(pc, pc + 1, calls.clone(), open);
            }
            Role::Jump | Role::Break { .. } | Role::Continue => {}
        }
        open.levels = self.count(pc, fc, fc.inst.b_op0, open.levels);
        self.go(pc, pc + 1, calls.clone(), open);
    }

    fn jump(&mut self, pc: u16, fc: &Fc, calls: &Calls, mut open: Open) {
        let mut to = target(self.setup, fc);
        let innermost = open.loops.last().cloned();
        let before = open.levels;
        // In this check, a BREAK or CONTINUE outside all loops does not change the levels. Another rule reports such an
        // instruction.
        if !(innermost.is_none() && matches!(fc.inst.op.role(), Role::Break { .. } | Role::Continue)) {
            open.levels = self.count(pc, fc, fc.inst.b_op1, before);
        }
        match (fc.inst.op.role(), innermost) {
            (Role::Begin { .. }, _) => {
                // The target may be the end instruction of this loop or of the enclosing loop. The end instruction of
                // this loop jumps back to the body of this loop.
                let inst = self.setup.slot(to).and_then(|slot| slot.inst.as_ref().ok());
                let own_end = inst.is_some_and(|inst| match &inst.body {
                    Body::Fc(end) if matches!(end.inst.op.role(), Role::End { .. }) => {
                        target(self.setup, end) == pc + 1
                    }
                    Body::Fc(_) | Body::Alu(_) | Body::Tex(_) => false,
                });
                if own_end {
                    let closes = open.idle && !open.loops.is_empty();
                    let what = if closes { ", and may close the loop around it" } else { "" };
                    let message = format!("{} jumps to the loop's end at slot {to}{what}", fc.inst.op.name());
                    let known = self.skips.entry(pc).or_insert_with(|| (closes, message.clone()));
                    if closes {
                        *known = (closes, message);
                    }
                    to += 1;
                }
            }
            (Role::Break { .. }, Some(left)) => {
                if open.levels != left.levels {
                    self.levels(pc, fc.inst.op.name(), open.levels, left.levels);
                }
                open.loops.pop();
                open.levels = left.levels;
            }
            (Role::Continue, Some(around)) => {
                // The end instruction of the loop may close branches. At the CONTINUE, these branches are still open.
                let end = self.setup.slot(to).and_then(|slot| slot.inst.as_ref().ok());
                if let Some(Inst { body: Body::Fc(end), .. }) = end
                    && matches!(end.inst.op.role(), Role::End { .. })
                {
                    let closes = match end.inst.levels_after(end.inst.b_op0, open.levels) {
                        Some(left) => open.levels.saturating_sub(left),
                        None => end.inst.b_pop_cnt.into(),
                    };
                    if open.levels != around.levels + closes {
                        self.levels(pc, fc.inst.op.name(), open.levels, around.levels + closes);
                    }
                    open.levels = around.levels + closes;
                }
            }
            (Role::End { .. }, Some(around)) => {
                if open.levels != around.levels {
                    self.levels(pc, fc.inst.op.name(), open.levels, around.levels);
                }
                open.levels = around.levels;
                if to != around.body {
                    let message =
                        format!("the loop repeats at slot {to}, but it begins at slot {}", around.body);
                    self.found.add(&JOIN, pc, message);
                    return;
                }
            }
            // Outside all loops, there is no iteration count. So the group does not start an iteration.
            (Role::End { .. }, None) => return,
            (Role::Jump | Role::Break { .. } | Role::Continue, _) => {}
        }
        let mut calls = calls.clone();
        match fc.inst.a_op {
            AOp::NONE => {}
            AOp::PUSH => {
                let limit = self.limits.address_stack;
                if calls.len() >= limit {
                    let message = format!("{} calls are open (maximum: {limit})", calls.len() + 1);
                    return self.found.add(&CALL_DEPTH, pc, message);
                }
                calls.push(Call { return_to: pc + 1, levels: before, loops: open.loops.len() });
            }
            AOp::POP => {
                let Some(call) = calls.pop() else {
                    return self.found.add(&NO_CALL, pc, "a return outside all calls");
                };
                if (open.loops.len(), open.levels) != (call.loops, call.levels) {
                    let (inside, loops) = (
                        open.levels as i64 - i64::from(call.levels),
                        open.loops.len() as i64 - call.loops as i64,
                    );
                    let message =
                        format!("{inside} more branches and {loops} more loops are open than at the call");
                    self.found.add(&RETURN_LEVELS, pc, message);
                }
                to = call.return_to;
                open.levels = call.levels;
                open.loops.truncate(call.loops);
            }
        }
        self.go(pc, to, calls, open);
    }
}

fn reads_al(read: &reconverge_simt::uses::Read) -> bool {
    read.slot.file == uses::AL && read.role == reconverge_simt::uses::Role::Address
}
