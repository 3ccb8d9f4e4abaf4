//! Commands that set, list and remove stops.

use reconverge_isa::source::closest;

use super::call::{Answer, Call, Done, address, bracketed, lines, range, text};
use crate::debugger::Debugger;
use crate::debugger::formula::Formula;
use crate::debugger::log::LogText;
use crate::debugger::names::{no_hits, number, place_of};
use crate::debugger::stop::{FlowChange, Hits, On, Only, Watched};

pub(super) fn break_at(call: &mut Call<'_>) -> Done {
    let (head, only) = only(call.debugger, &call.words)?;
    let address = address(call.debugger, head.first())?;
    if let Some(more) = head.get(1) {
        return Err(no_narrowing(more).into());
    }
    let number = call.debugger.stops.add(On::Address(address), only, call.rest);
    text(format!("stop {number} at {}\n", call.debugger.placed(address)))
}

pub(super) fn log_at(call: &mut Call<'_>) -> Done {
    // `format!` adds a space at both ends of the line. So the line contains ` : ` even if nothing precedes or follows
    // the colon.
    let line = format!(" {} ", call.rest);
    let (head, text_of) = line.split_once(" : ").ok_or_else(|| "` : TEXT` is missing".to_owned())?;
    if text_of.trim().is_empty() {
        return Err("` : TEXT` is missing".to_owned().into());
    }
    let words: Vec<&str> = head.split_whitespace().collect();
    let (head, only) = only(call.debugger, &words)?;
    let address = address(call.debugger, head.first())?;
    if let Some(more) = head.get(1) {
        return Err(no_narrowing(more).into());
    }
    let log = Some(LogText::parse(call.debugger, text_of.trim())?);
    let number = call.debugger.stops.add(On::Address(address), Only { log, ..only }, call.rest);
    text(format!("stop {number} writes at {}\n", call.debugger.placed(address)))
}

pub(super) fn stop(call: &mut Call<'_>) -> Done {
    let (head, only) = only(call.debugger, &call.words)?;
    let on = match head[..] {
        ["lane", _] => On::Lane(call.lane(1)?),
        ["lane"] => return Err("the number of a lane is missing".to_owned().into()),
        [] if only.condition.is_some() => On::Always,
        [name] => {
            let change = FlowChange::ALL.into_iter().find(|change| change.name() == name);
            let meant = || closest(name, FlowChange::ALL.map(FlowChange::name));
            On::Flow(change.ok_or_else(|| match meant() {
                Some(meant) => format!("unknown event `{name}`, did you mean `{meant}`?"),
                None => format!("unknown event `{name}`; `break PLACE` stops at an instruction"),
            })?)
        }
        [] => {
            let flow = FlowChange::ALL.map(FlowChange::name).join(", ");
            return Err(format!("expected {flow}, lane LANE or if CONDITION").into());
        }
        [_, more, ..] => return Err(no_narrowing(more).into()),
    };
    let number = call.debugger.stops.add(on, only, call.rest);
    text(format!("stop {number}: {}\n", call.rest))
}

pub(super) fn watch(call: &mut Call<'_>) -> Done {
    let debugger = &*call.debugger;
    let (head, only) = only(debugger, &call.words)?;
    let is_space = |name: &str| debugger.stepping().spaces().iter().any(|space| space.name == name);
    let on = match head[..] {
        [word] if !is_space(bracketed(word).map_or(word, |(space, _)| space)) => match number(word) {
            Some(address) => On::Store(address),
            None if word.starts_with(|letter: char| letter.is_ascii_digit()) => {
                return Err(format!("expected a 32-bit address such as 0x10, found `{word}`").into());
            }
            None => {
                let (register, of) = place_of(debugger, word)?;
                On::Change(Watched::Register(register, of))
            }
        },
        [word, more, ..] if place_of(debugger, word).is_ok() => {
            return Err(no_narrowing(more).into());
        }
        [_, ..] => {
            let (space, address, bytes) = range(debugger, &head, 4)?;
            let (lane, bytes) = (debugger.lane(), bytes as usize);
            let there = debugger.stepping().memory(space, debugger.group(), lane, address, bytes).len();
            if there < bytes {
                return Err(format!("{space} has only {there} of the {bytes} bytes from {address:#x}").into());
            }
            On::Change(Watched::Memory { space, lane, address, bytes })
        }
        [] => return Err("a register, memory or an address is missing".to_owned().into()),
    };
    let what = if matches!(on, On::Store(_)) { "is written" } else { "changes" };
    let number = call.debugger.stops.add(on, only, call.rest);
    text(format!("stop {number} when {} {what}\n", head.join(" ")))
}

pub(super) fn stops(call: &mut Call<'_>) -> Done {
    lines(call.debugger.stops.iter().map(|stop| format!("{:>3}  {}", stop.number, stop.text)), "no stops")
}

pub(super) fn delete(call: &mut Call<'_>) -> Done {
    let stops = &mut call.debugger.stops;
    match call.words[..] {
        ["all"] => stops.clear(),
        [word] => {
            let number = word
                .parse()
                .map_err(|_| format!("expected the number of a stop or `all`, found `{word}`"))?;
            if !stops.remove(number) {
                return Err(format!("stop {number} does not exist; `stops` lists the stops").into());
            }
        }
        _ => return Err("expected the number of a stop or `all`, found nothing".to_owned().into()),
    }
    Ok(Answer::default())
}

/// Returns the message that `word` is not a restriction on a stop.
fn no_narrowing(word: &str) -> String {
    format!("expected `if CONDITION`, `group NUMBER` or `hits 3`, found `{word}`")
}

/// Splits the words of a command. Returns the words before the first `if`, `hits` or `group`. Parses the remaining
/// words as restrictions, and returns the restrictions.
fn only<'a>(debugger: &Debugger, words: &[&'a str]) -> Result<(Vec<&'a str>, Only), String> {
    const BEGINS: [&str; 3] = ["if", "hits", "group"];
    let first = words.iter().position(|word| BEGINS.contains(word)).unwrap_or(words.len());
    let (head, mut rest) = words.split_at(first);
    let mut only = Only::default();
    while let [what, after @ ..] = rest {
        let end = after.iter().position(|word| BEGINS.contains(word)).unwrap_or(after.len());
        let text = after[..end].join(" ");
        let known = match *what {
            "if" => only.condition.is_some(),
            "hits" => only.hits.is_some(),
            _ => only.group.is_some(),
        };
        if known {
            return Err(format!("duplicate `{what}`"));
        }
        match *what {
            "if" => only.condition = Some(Formula::parse(debugger, &text)?),
            "hits" => only.hits = Some(Hits::parse(&text).ok_or_else(|| no_hits(&text))?),
            _ => {
                let group = text.parse().ok().filter(|group| *group < debugger.stepping().groups());
                let last = debugger.stepping().groups().saturating_sub(1);
                only.group =
                    Some(group.ok_or_else(|| format!("expected a group from 0 to {last}, found `{text}`"))?);
            }
        }
        rest = &after[end..];
    }
    Ok((head.to_vec(), only))
}
