//! Checks the layout of a program's words. Reports control flow that leaves the program or enters a clause, and
//! unreachable words.

use std::ops::Range;

use reconverge_isa::sets::NumberSet;

use super::{INTO_CLAUSE, Lint, OFF_END, UNREACHABLE};
use crate::code::{CfOp, Code};
use crate::graph::Ways;

/// The addresses that contain control-flow instructions.
pub(super) struct Layout {
    /// Addresses that control flow reaches although the addresses are inside a clause or past the last word.
    unsound: NumberSet,
}

impl Layout {
    /// Returns whether the word pair at `addr` is a control-flow instruction.
    pub(super) fn sound(&self, addr: u32) -> bool {
        !self.unsound.contains(addr)
    }
}

pub(super) fn layout(lint: &mut Lint<'_>, code: &Code, ways: &Ways) -> Layout {
    let end = (lint.words.len() / 2) as u32;
    let mut clauses: Vec<(u32, Range<u32>)> = Vec::new();
    let mut reached: NumberSet = NumberSet::new();
    // The loop visits addresses in the order in which a program reaches the addresses. Therefore the words of a clause
    // are known before control flow can enter the clause.
    let mut open: Vec<u32> = ways.entries.iter().rev().copied().collect();
    let mut unsound = NumberSet::new();
    while let Some(addr) = open.pop() {
        if unsound.contains(addr) || !reached.insert(addr) {
            continue;
        }
        match code.cf(addr).map(|cf| &cf.op) {
            Ok(CfOp::Alu(clause)) => clauses.push((addr, clause.slots.clone())),
            Ok(CfOp::Fetch(_, control, fetches)) => {
                clauses.push((addr, control.addr..control.addr + 2 * fetches.len() as u32));
            }
            Ok(CfOp::Control(..) | CfOp::Export(..) | CfOp::Memory(..)) | Err(_) => {}
        }
        let mut next: Vec<u32> = ways.next.get(&addr).into_iter().flatten().map(|edge| edge.to).collect();
        next.dedup();
        for to in next.into_iter().rev() {
            if to >= end {
                lint.find(
                    &OFF_END,
                    addr,
                    format!("the next instruction is at {to}, but the program has only {end} words"),
                );
                unsound.insert(to);
            } else if let Some((owner, _)) = clauses.iter().find(|(_, clause)| clause.contains(&to)) {
                lint.find(
                    &INTO_CLAUSE,
                    addr,
                    format!("the next instruction is at {to}, inside the clause of {owner}"),
                );
                unsound.insert(to);
            } else {
                open.push(to);
            }
        }
    }
    let covered =
        |addr: u32| reached.contains(addr) || clauses.iter().any(|(_, clause)| clause.contains(&addr));
    let used = |addr: u32| {
        let pair = &lint.words[2 * addr as usize..][..2];
        // Compilers put a NOP with END_OF_PROGRAM after an export that already ends the program. This NOP does not
        // count as unreachable.
        pair != [0, 0] && pair != [0, 0x8020_0000] && !covered(addr)
    };
    let mut unused: Vec<Range<u32>> = Vec::new();
    for addr in (0..end).filter(|addr| used(*addr)) {
        match unused.last_mut().filter(|range| range.end == addr) {
            Some(range) => range.end = addr + 1,
            None => unused.push(addr..addr + 1),
        }
    }
    // An invalid word may lead to any other word. So if some reachable words are invalid, the check reports no word as
    // unreachable.
    let unread = code.faults().any(|(addr, _)| reached.contains(addr));
    for range in unused.into_iter().filter(|_| !unread) {
        let message = match range.len() {
            1 => format!("no path reaches word {}", range.start),
            _ => format!("no path reaches words {} to {}", range.start, range.end - 1),
        };
        lint.find(&UNREACHABLE, range.start, message);
    }
    // If control flow reaches an address only through the words of a clause, all other checks ignore the address.
    unsound.extend(ways.next.keys().copied().filter(|addr| !reached.contains(*addr)));
    Layout { unsound }
}
