//! Manual changes to the flow state of a group. Flow state consists of the active mask, and of the stack entries and
//! counters of the machine.
//!
//! | machine | words |
//! |---|---|
//! | all | `mask LANES` |
//! | R500 | `counter branch LANE VALUE`, `counter loop N VALUE`, `predicate CHANNEL LANES` |
//! | R700 | `entry N active LANES`, `entry N break LANES`, `counter loop N VALUE`, `predicate LANES` |
//! | Tesla | `token N mask LANES`, `token N address ADDRESS`, `token N type TYPE` |
//!
//! Stack entries are numbered from the innermost entry to the outermost entry, as in the output of the command `stack`.
//! The file `flow/faults.rs` of each machine defines how a change affects the lanes. On Tesla, a predicate is the
//! ordinary register `$c0`.

use std::collections::BTreeMap;

use reconverge_isa::Isa;
use reconverge_isa::source::closest;
use reconverge_simt::Mask;

use super::names::{lane_of, lanes_of, numeral};
use super::{Change, Debugger};
use crate::faults::{Kind, Word};

/// The types of the entries on Tesla's token stack. In flow state, types are numbered from 1 in this order.
const TOKEN_TYPES: [&str; 6] = ["BRANCH", "CALL", "CALL_LIM", "BREAK", "QUADON", "JOINAT"];

/// Names of R500's predicate bits. The predicate bits are the four channels of the predicate register, and the bit of
/// the ALU result.
const CHANNELS: [&str; 5] = ["r", "g", "b", "a", "alu"];

/// Names of flow state. The first argument of the command `set` can be one of these names. The command then changes
/// flow state.
pub(super) const NAMES: [&str; 5] = ["mask", "token", "counter", "entry", "predicate"];

/// Returns all words that can occur in a change of flow state, for completion.
pub(super) fn words() -> impl Iterator<Item = &'static str> {
    const PARTS: [&str; 8] = ["mask", "address", "type", "active", "break", "branch", "loop", "all"];
    NAMES.into_iter().chain(PARTS).chain(["none"]).chain(TOKEN_TYPES)
}

/// Returns whether a word names flow state instead of a register.
pub(super) fn is_flow(word: &str) -> bool {
    NAMES.contains(&word)
}

/// Returns the name of flow state that is most similar to a misspelled word.
pub(super) fn meant(word: &str) -> Option<&'static str> {
    closest(word, NAMES)
}

/// Returns R500's branch counters as text. Each line has a counter value, and the lanes with this counter value. The
/// smallest value comes first, because the smallest value belongs to the innermost branch.
pub(super) fn branch_counters(debugger: &Debugger) -> String {
    if debugger.stepping().current() != Some(debugger.group()) {
        return String::new();
    }
    let mut lanes: BTreeMap<u64, Mask> = BTreeMap::new();
    for word in debugger.stepping().words(Kind::BranchCounter) {
        if let Some(lane) = word.lane {
            lanes.entry(debugger.stepping().word(&word)).or_insert(Mask::NONE).insert(lane);
        }
    }
    let line = |(count, lanes): (u64, Mask)| format!("     branch counter {count}  lanes {lanes}\n");
    lanes.into_iter().map(line).collect()
}

/// Changes flow state of the selected group, and returns the new value as text.
///
/// # Errors
/// Returns an error if the machine or the group does not have this flow state. Also returns an error if the selected
/// group is not the group that runs next.
pub(super) fn set(debugger: &mut Debugger, words: &[&str]) -> Result<String, String> {
    let group = debugger.group();
    let runs = debugger.stepping().current();
    if runs != Some(group) {
        return Err(match runs {
            Some(runs) => {
                format!("only the flow state of group {runs} can be changed, because group {runs} runs next")
            }
            None => "the launch has ended".to_owned(),
        });
    }
    let (word, value) = wanted(debugger, words)?;
    if !debugger.change(Change::Flow { group, word, value }) {
        return Err(format!("`{}` cannot change here", words.join(" ")));
    }
    // If the change leaves the group without active lanes, the debugger makes another group current. `Stepping::word`
    // would then read the state of the new current group.
    let stays = debugger.stepping().current() == Some(group);
    let held = if stays { debugger.stepping().word(&word) } else { value };
    let name = words[..words.len() - 1].join(" ");
    let kept = if held == value { "" } else { ", other bits are kept" };
    Ok(format!("{name} is {}{kept}\n", spelled(debugger, &word, held)))
}

/// Formats a value of flow state.
fn spelled(debugger: &Debugger, word: &Word, held: u64) -> String {
    match (word.kind, word.part) {
        _ if word.is_mask() => format!("lanes {}", Mask(held)),
        (Kind::Token, Word::TYPE) => {
            (held as usize).checked_sub(1).map_or("?", |at| TOKEN_TYPES[at]).to_owned()
        }
        (Kind::Token, _) => debugger.named(held as u32),
        _ => held.to_string(),
    }
}

/// Parses the name of a part of the flow state, and the new value of this part.
fn wanted(debugger: &Debugger, words: &[&str]) -> Result<(Word, u64), String> {
    let isa = debugger.isa();
    let of_isa = |wanted: Isa, word: &str| match isa == wanted {
        true => Ok(()),
        false => Err(format!("`{word}` is flow state of {wanted}; for {isa}, {}", fits(isa))),
    };
    match *words {
        ["mask", lanes] => {
            let lanes = lanes_of(debugger, lanes)?;
            Ok((only(debugger, Kind::ActiveMask)?, lanes.0))
        }
        ["token", number, part, value] => {
            of_isa(Isa::Tesla, "token")?;
            let outer = entry(debugger, "token", number)?;
            let of_part = |part: u8| {
                let words = debugger.stepping().words(Kind::Token).into_iter();
                words.filter(|word| word.number == outer).find(|word| word.part == part)
            };
            let mask = of_part(0).ok_or_else(|| format!("token {number} does not exist"))?;
            match part {
                "mask" => Ok((mask, lanes_of(debugger, value)?.0)),
                "address" => {
                    let word = of_part(1).ok_or("a QUADON token has no address")?;
                    let address = debugger.named_place(value)?;
                    Ok((word, address.into()))
                }
                "type" => {
                    let upper = value.to_ascii_uppercase();
                    let at = TOKEN_TYPES.iter().position(|name| *name == upper);
                    let at = at.ok_or_else(|| {
                        format!("expected a type of token ({}), found `{value}`", TOKEN_TYPES.join(", "))
                    })?;
                    Ok((Word { part: Word::TYPE, bits: 7, ..mask }, at as u64 + 1))
                }
                _ => Err(format!("expected mask, address or type of a token, found `{part}`")),
            }
        }
        ["entry", number, part, lanes] => {
            of_isa(Isa::R700, "entry")?;
            let outer = entry(debugger, "entry", number)?;
            let part = match part {
                "active" => 0,
                "break" => 1,
                _ => {
                    return Err(format!("expected active, or break for the entry of a loop, found `{part}`"));
                }
            };
            let words = debugger.stepping().words(Kind::StackEntry).into_iter();
            let word = words.filter(|word| word.number == outer).find(|word| word.part == part);
            let kind = debugger.stepping().stack(debugger.group()).len() - 1 - outer;
            let kind = debugger.stepping().stack(debugger.group())[kind].kind;
            let word =
                word.ok_or_else(|| format!("entry {number} is {kind}, which does not save these lanes"))?;
            Ok((word, lanes_of(debugger, lanes)?.0))
        }
        ["counter", "branch", lane, value] => {
            of_isa(Isa::R500, "counter branch")?;
            let lane = lane_of(debugger, lane)?;
            let words = debugger.stepping().words(Kind::BranchCounter).into_iter();
            let word = words.into_iter().find(|word| word.lane == Some(lane));
            let word =
                word.ok_or_else(|| format!("lane {} has no branch counter: {}", lane.0, debugger.why(lane)))?;
            Ok((word, fitting(&word, value)?))
        }
        ["counter", "loop", number, value] => {
            if isa == Isa::Tesla {
                return Err(format!("{isa} does not have loop counters; {}", fits(isa)));
            }
            let mut words = debugger.stepping().words(Kind::LoopCounter);
            // Users number loops from the innermost loop to the outermost loop. R700 lists its counters in this order.
            // R500 lists its frames in the opposite order.
            if isa == Isa::R500 {
                words.reverse();
            }
            let at = numeral(number)? as usize;
            let word = words.get(at).copied().ok_or_else(|| match words.len() {
                0 => "no open loop has a counter".to_owned(),
                count => format!("expected loop 0 to {}, found `{number}`", count - 1),
            })?;
            Ok((word, fitting(&word, value)?))
        }
        ["predicate", lanes] if isa == Isa::R700 => {
            let words = debugger.stepping().words(Kind::Predicate).into_iter().next();
            let word = words.ok_or("the wavefront has a predicate only inside an ALU clause")?;
            Ok((word, lanes_of(debugger, lanes)?.0))
        }
        ["predicate", channel, lanes] if isa == Isa::R500 => {
            let at = CHANNELS.iter().position(|name| *name == channel);
            let at = at.ok_or_else(|| {
                format!("expected a channel of the predicate, r, g, b, a or alu, found `{channel}`")
            })?;
            let words = debugger.stepping().words(Kind::Predicate).into_iter();
            let word =
                words.into_iter().find(|word| word.number == at).ok_or("the group has no predicate")?;
            Ok((word, lanes_of(debugger, lanes)?.0))
        }
        _ => Err(fits(isa)),
    }
}

/// Returns a message that lists the kinds of flow state that a machine has.
fn fits(isa: Isa) -> String {
    match isa {
        Isa::R500 => {
            "expected mask LANES, counter branch LANE VALUE, counter loop N VALUE or predicate r|g|b|a|alu LANES"
        }
        Isa::R700 => "expected mask LANES, entry N active|break LANES, counter loop N VALUE or predicate LANES",
        Isa::Tesla => {
            "expected mask LANES or token N mask LANES|address ADDRESS|type TYPE; a predicate is a register, $c0"
        }
    }
    .to_owned()
}

/// Returns the group's word of flow state of kind `kind`. A group must have exactly one word of this kind.
fn only(debugger: &Debugger, kind: Kind) -> Result<Word, String> {
    debugger
        .stepping()
        .words(kind)
        .into_iter()
        .next()
        .ok_or_else(|| format!("the group currently has no {kind}"))
}

/// Converts the number of a stack entry. `number` is counted from the innermost entry. The result is counted from the
/// outermost entry.
fn entry(debugger: &Debugger, what: &str, number: &str) -> Result<usize, String> {
    let count = debugger.stepping().stack(debugger.group()).len();
    let at = numeral(number)? as usize;
    (count.checked_sub(1 + at)).ok_or_else(|| match count {
        0 => "the stack is empty".to_owned(),
        _ => format!("expected {what} 0 to {}, found `{number}`", count - 1),
    })
}

/// Parses a value, and checks that the value is in the range of the word.
fn fitting(word: &Word, value: &str) -> Result<u64, String> {
    let number = u64::from(numeral(value)?);
    match number <= word.bits {
        true => Ok(number),
        false => Err(format!("expected 0 to {}, found `{value}`", word.bits)),
    }
}
