//! The commands `state`, `mark` and `expect`. Scripts use these commands to check the state of a run.

use super::call::{Answer, Call, Done, Refused, text};
use crate::debugger::formula::Formula;
use crate::debugger::names::lane_of;
use crate::error::counted;

pub(super) fn state(call: &mut Call<'_>) -> Done {
    text(format!("{:016x}\n", call.debugger.digest()))
}

pub(super) fn mark(call: &mut Call<'_>) -> Done {
    call.debugger.marked = Some(call.debugger.digest());
    Ok(Answer::default())
}

pub(super) fn expect(call: &mut Call<'_>) -> Done {
    let debugger = &*call.debugger;
    let fails = match call.words[..] {
        [] => return Err("a condition is missing".to_owned().into()),
        ["at"] => return Err("a place is missing: an address, a label or a line".to_owned().into()),
        ["lane"] => return Err("the number of a lane is missing".to_owned().into()),
        ["at", word] => {
            let wanted = debugger.named_place(word)?;
            match debugger.issue() {
                Some(issue) if issue.pc == wanted => None,
                Some(issue) => Some(format!("the group is at {}", debugger.named(issue.pc))),
                None => Some("the group does not run".to_owned()),
            }
        }
        ["lane", lane, ref wanted @ ..] => {
            let lane = lane_of(debugger, lane)?;
            if wanted.is_empty() {
                return Err("the state of the lane is missing: `lanes` shows it".to_owned().into());
            }
            let why = debugger.why(lane);
            let is_so = is_said(&wanted.join(" "), &[&debugger.why_short(lane), &why]);
            (!is_so).then(|| format!("lane {}: {why}", lane.0))
        }
        ["marked"] => {
            let marked = debugger.marked.ok_or_else(|| "no state is marked; use `mark` first".to_owned())?;
            let after = || counted(debugger.position(), "instruction");
            (marked != debugger.digest()).then(|| format!("the state after {} differs", after()))
        }
        _ => {
            let condition = Formula::parse(debugger, call.rest)?;
            let here = debugger.here(debugger.group());
            condition.holds(&here).ok().flatten().is_none().then(|| {
                let lane = debugger.lane();
                let of =
                    if condition.is_of_a_lane() { format!("in lane {} ", lane.0) } else { String::new() };
                let left = condition.compared();
                match left.value(&here, lane) {
                    Ok(value) => format!("{of}it is {}", left.shown(value)),
                    Err(why) => why,
                }
            })
        }
    };
    fails.map_or(Ok(Answer::default()), |found| Err(Refused::Fails(found)))
}

/// Returns whether one of `reasons` starts with the words `wanted`. Also returns `true` if the words `wanted` come
/// directly after a colon in one of `reasons`. Only whole words match. The function skips the words `it` or `it has` at
/// the start of a reason.
fn is_said(wanted: &str, reasons: &[&str]) -> bool {
    let begins = |part: &str| {
        let rest = part.strip_prefix(wanted);
        rest.is_some_and(|rest| !rest.starts_with(|letter: char| letter.is_alphanumeric()))
    };
    let parts = |reason: &&str| {
        let ends = std::iter::successors(Some(*reason), |rest| rest.split_once(": ").map(|(_, rest)| rest));
        ends.map(str::to_owned).collect::<Vec<_>>()
    };
    reasons.iter().flat_map(parts).any(|part| {
        begins(&part) || ["it has ", "it "].iter().any(|it| part.strip_prefix(it).is_some_and(begins))
    })
}
