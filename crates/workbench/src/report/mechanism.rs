//! The flow state of a group as rows of the report page. Each row describes one item of flow state, for example a stack
//! entry. A row has sets of lanes, for example the mask of a stack entry. One set of the row contains the lanes that
//! the item keeps inactive.

use reconverge_isa::Isa;
use reconverge_simt::{Lane, Mask, StackRow, Why};
use serde::Serialize;

/// A row of the machine's flow state.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub(super) struct ReportRow {
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Option<i64>,
    /// Sets of lanes that belong to the row, each with a name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    masks: Vec<(&'static str, [u32; 2])>,
    /// The lanes that the item of flow state keeps inactive. No lane is in the `holds` set of two rows.
    #[serde(skip_serializing_if = "is_empty")]
    holds: [u32; 2],
}

fn is_empty(words: &[u32; 2]) -> bool {
    *words == [0, 0]
}

/// Splits a mask into its low and its high 32 bits.
pub(super) fn words(mask: Mask) -> [u32; 2] {
    [mask.0 as u32, (mask.0 >> 32) as u32]
}

/// Returns the heading of the rows for a machine.
pub(super) fn heading(isa: Isa, vertex: bool) -> &'static str {
    match isa {
        Isa::R500 if vertex => "Loops and subroutines, innermost first",
        Isa::R500 => "Counters",
        Isa::R700 => "Masks, innermost first",
        Isa::Tesla => "Tokens, innermost first",
    }
}

/// Returns the rows of a group, starting with the innermost row. `whys` has the state of each lane, and `stack` has the
/// entries of the machine's stack.
pub(super) fn rows(isa: Isa, whys: &[Why], stack: &[StackRow]) -> Vec<ReportRow> {
    let mut holds = vec![Mask::NONE; stack.len()];
    for (lane, why) in whys.iter().enumerate() {
        let lane = Lane(lane as u8);
        if let Some(row) = holding(isa, *why, lane, stack) {
            holds[row].insert(lane);
        }
    }
    let mut rows = match isa {
        Isa::R500 => branch_counters(whys),
        Isa::R700 => Vec::new(),
        Isa::Tesla => broken_lanes(whys),
    };
    let entry = |(row, holds): (&StackRow, Mask)| ReportRow {
        kind: row.kind,
        to: row.pc,
        count: row.count,
        masks: masks(isa, whys, row, holds),
        holds: words(holds),
    };
    rows.extend(stack.iter().zip(holds).map(entry));
    rows
}

/// Returns the index of the stack entry that keeps a lane inactive.
fn holding(isa: Isa, why: Why, lane: Lane, stack: &[StackRow]) -> Option<usize> {
    let has = |row: &StackRow| row.mask.is_some_and(|mask| mask.has(lane));
    match (isa, why) {
        (Isa::R700, Why::Branch { depth }) => Some(depth as usize).filter(|depth| *depth < stack.len()),
        // The innermost loop that the lane has entered keeps the lane inactive. An outer loop cannot be the reason. If
        // a lane has left an outer loop, the lane does not enter an inner loop.
        (_, Why::Break | Why::Continue) => stack.iter().position(|row| is_loop(isa, row) && has(row)),
        (_, Why::Parked { pc }) => stack.iter().position(|row| row.pc == Some(pc) && has(row)),
        (_, Why::Active | Why::Branch { .. } | Why::Exited | Why::Uncovered) => None,
    }
}

fn is_loop(isa: Isa, row: &StackRow) -> bool {
    match isa {
        Isa::R500 => matches!(row.kind, "LOOP" | "REP"),
        Isa::R700 => row.kind.starts_with("LOOP"),
        Isa::Tesla => row.kind == "BREAK",
    }
}

/// Returns the lane sets of a stack entry. The first set is the mask of the entry. For a loop, the result has two more
/// sets. One set has the lanes that have left the loop. The last set has the lanes that wait for the next iteration.
fn masks(isa: Isa, whys: &[Why], row: &StackRow, holds: Mask) -> Vec<(&'static str, [u32; 2])> {
    let of = |wanted: Why| with(whys, |why| why == wanted).0 & holds.0;
    let [own, broken, continued] = match isa {
        Isa::R500 => ["entered", "broken", "continued"],
        // In the manual, the names of the last two sets are IX (inactive-break) and IC (inactive-continue).
        Isa::R700 => ["before", "break IX", "continue IC"],
        Isa::Tesla => ["lanes", "", ""],
    };
    let mut masks: Vec<_> = row.mask.into_iter().map(|mask| (own, words(mask))).collect();
    if is_loop(isa, row) && isa != Isa::Tesla {
        masks.push((broken, words(Mask(of(Why::Break)))));
        masks.push((continued, words(Mask(of(Why::Continue)))));
    }
    masks
}

/// Returns the lanes whose state meets a condition.
fn with(whys: &[Why], condition: impl Fn(Why) -> bool) -> Mask {
    let mut lanes = Mask::NONE;
    for (lane, why) in whys.iter().enumerate() {
        if condition(*why) {
            lanes.insert(Lane(lane as u8));
        }
    }
    lanes
}

/// Returns R500's branch counters as rows, one row per value. For a lane that a branch disabled, the counter is the
/// number of branches that other lanes have opened inside this branch.
fn branch_counters(whys: &[Why]) -> Vec<ReportRow> {
    let mut values: Vec<u32> = whys
        .iter()
        .filter_map(|why| match why {
            Why::Branch { depth } => Some(*depth),
            _ => None,
        })
        .collect();
    values.sort_unstable();
    values.dedup();
    let row = |depth| {
        let lanes = words(with(whys, |why| why == Why::Branch { depth }));
        let count = Some(i64::from(depth));
        ReportRow { kind: "branch counter", to: None, count, masks: vec![("lanes", lanes)], holds: lanes }
    };
    values.into_iter().map(row).collect()
}

/// Returns a row with the lanes that a `break` disabled on Tesla. The mask of the disabled lanes is not an entry of the
/// token stack. The lanes wait for the BREAK token.
fn broken_lanes(whys: &[Why]) -> Vec<ReportRow> {
    let lanes = with(whys, |why| why == Why::Break);
    let masks = vec![("", words(lanes))];
    let row = ReportRow { kind: "mask of broken lanes", to: None, count: None, masks, holds: [0, 0] };
    if lanes.any() { vec![row] } else { Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn entry(kind: &'static str, pc: Option<u32>, mask: u64) -> StackRow {
        StackRow { kind, pc, mask: Some(Mask(mask)), count: None }
    }

    fn held(rows: &[ReportRow]) -> Vec<(&'static str, u32)> {
        rows.iter().map(|row| (row.kind, row.holds[0])).collect()
    }

    #[test]
    fn branch_counters_are_rows_from_the_inside_out() {
        let off = |depth| Why::Branch { depth };
        let rows = rows(Isa::R500, &[off(2), Why::Active, off(0), off(2)], &[]);
        assert_eq!(held(&rows), [("branch counter", 0b0100), ("branch counter", 0b1001)]);
        assert_eq!([rows[0].count, rows[1].count], [Some(0), Some(2)]);
    }

    #[test]
    fn a_lane_that_left_a_loop_is_held_by_the_innermost_loop_that_it_entered() {
        let stack = [entry("REP", None, 0b0011), entry("LOOP", None, 0b1111)];
        let rows = rows(Isa::R500, &[Why::Active, Why::Break, Why::Break, Why::Continue], &stack);
        assert_eq!(held(&rows), [("REP", 0b0010), ("LOOP", 0b1100)]);
        assert_eq!(
            rows[1].masks,
            [("entered", [0b1111, 0]), ("broken", [0b0100, 0]), ("continued", [0b1000, 0])]
        );
    }

    #[test]
    fn a_lane_is_held_by_the_entry_it_waits_for_and_by_no_other() {
        let push = |mask| entry("PUSH", None, mask);
        let waits = Why::Branch { depth: 1 };
        let masks = rows(Isa::R700, &[Why::Active, waits], &[push(0b01), push(0b11)]);
        assert_eq!(held(&masks), [("PUSH", 0), ("PUSH", 0b10)]);
        let tokens = [entry("BRANCH", Some(8), 0b10), entry("JOINAT", Some(16), 0b11)];
        let parked = rows(Isa::Tesla, &[Why::Active, Why::Parked { pc: 8 }], &tokens);
        assert_eq!(held(&parked), [("BRANCH", 0b10), ("JOINAT", 0)]);
        let token = [entry("BREAK", Some(8), 0b11)];
        let left = rows(Isa::Tesla, &[Why::Active, Why::Break], &token);
        assert_eq!(held(&left), [("mask of broken lanes", 0), ("BREAK", 0b10)]);
    }
}
