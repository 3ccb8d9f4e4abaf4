//! Commands that show the groups, the stack, and the state of each lane. The commands also show why each lane has its
//! state.

use std::fmt::Write;

use reconverge_simt::{Lane, StackRow};

use super::call::{Call, Done, lines, text};
use super::position::position;
use crate::debugger::{Debugger, flow};
use crate::session::GroupState;

pub(super) fn lanes(call: &mut Call<'_>) -> Done {
    let debugger = &*call.debugger;
    let line = |lane: usize| {
        let lane = Lane(lane as u8);
        let mark = if lane == debugger.lane() { '>' } else { ' ' };
        format!("{mark}{:>3}  {}", lane.0, debugger.why(lane))
    };
    lines((0..debugger.width()).map(line), "")
}

pub(super) fn why(call: &mut Call<'_>) -> Done {
    let lane = call.lane(0)?;
    described(call.debugger, lane)
}

/// Describes the reason why a lane runs or does not run.
fn described(debugger: &Debugger, lane: Lane) -> Done {
    text(format!("lane {}: {}\n", lane.0, debugger.why(lane)))
}

pub(super) fn place(call: &mut Call<'_>) -> Done {
    text(position(call.debugger))
}

pub(super) fn stack_rows(call: &mut Call<'_>) -> Done {
    text(stack(call.debugger))
}

/// Returns the stack of the selected group as text, innermost entry first. The machine defines the entries.
pub fn stack(debugger: &Debugger) -> String {
    let mut lines = String::new();
    for (depth, row) in debugger.stepping().stack(debugger.group()).iter().enumerate() {
        let _ = writeln!(lines, "{depth:>3}  {}", parts(debugger, row).join("  "));
    }
    lines += &flow::branch_counters(debugger);
    if lines.is_empty() {
        lines.push_str("the stack is empty\n");
    }
    lines
}

/// Returns the fields of a stack row as a list of texts.
pub(in crate::debugger) fn parts(debugger: &Debugger, row: &StackRow) -> Vec<String> {
    let pc = row.pc.map(|pc| format!("to {}", debugger.named(pc)));
    let mask = row.mask.map(|mask| format!("lanes {mask}"));
    let count = row.count.map(|count| format!("count {count}"));
    [Some(row.kind.to_owned()), pc, mask, count].into_iter().flatten().collect()
}

/// Lists the running groups and the next instruction of each group.
pub(super) fn groups(call: &mut Call<'_>) -> Done {
    let debugger = &*call.debugger;
    let stepping = debugger.stepping();
    let mut lines = String::new();
    for group in 0..stepping.groups() {
        if stepping.state(group) != GroupState::Running {
            continue;
        }
        let Some(issue) = stepping.issue(group) else { continue };
        let mark = if stepping.current() == Some(group) { '>' } else { ' ' };
        let _ = writeln!(lines, "{mark}{group:>5}  {}  lanes {}", debugger.named(issue.pc), issue.mask);
    }
    if lines.is_empty() {
        lines.push_str("no group runs\n");
    }
    text(lines)
}

pub(super) fn group(call: &mut Call<'_>) -> Done {
    if let Some(word) = call.words.first() {
        let group = word.parse().ok().filter(|group| call.debugger.choose_group(*group));
        let last = call.debugger.stepping().groups().saturating_sub(1);
        group.ok_or_else(|| format!("expected a group from 0 to {last}, found `{word}`"))?;
    }
    text(position(call.debugger))
}

pub(super) fn lane(call: &mut Call<'_>) -> Done {
    let lane = call.lane(0)?;
    call.debugger.choose_lane(lane);
    described(call.debugger, lane)
}
