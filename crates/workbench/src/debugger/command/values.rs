//! Commands that print registers, memory and the values of formulas. Commands of this file can also change registers,
//! memory and flow state.

use std::fmt::Write;

use reconverge_simt::{Lane, Mask};

use super::call::{Call, Done, range, space_and_address, text};
use crate::debugger::formula::Formula;
use crate::debugger::names::{place_of, shown_in, word_of};
use crate::debugger::table::{self, Notation};
use crate::debugger::{Change, Debugger, flow};
use crate::session::Register;

pub(super) fn print(call: &mut Call<'_>) -> Done {
    let formula = Formula::parse(call.debugger, call.rest)?;
    text(printed(call.debugger, &formula)?)
}

/// Parses one word of a list of registers.
fn register(debugger: &Debugger, word: &str) -> Result<Register, String> {
    match word.contains(',') {
        true => Err(format!("expected spaces between registers, found a comma in `{word}`")),
        false => debugger.register(word),
    }
}

/// Returns the values of a formula as text. Lanes with equal values share a line.
fn printed(debugger: &Debugger, formula: &Formula) -> Result<String, String> {
    let here = debugger.here(debugger.group());
    if !formula.is_of_a_lane() {
        let value = formula.value(&here, debugger.lane())?;
        return Ok(format!("{formula}  {}\n", formula.shown(value)));
    }
    let mut values: Vec<(String, Mask)> = Vec::new();
    for lane in 0..debugger.stepping().lanes(debugger.group()).len() {
        let lane = Lane(lane as u8);
        let value = formula.shown(formula.value(&here, lane)?);
        match values.iter_mut().find(|(known, _)| *known == value) {
            Some((_, lanes)) => lanes.insert(lane),
            None => values.push((value, Mask::only(lane))),
        }
    }
    let lines = values.iter().map(|(value, lanes)| format!("{value}  lanes {lanes}\n"));
    Ok(format!("{formula}\n{}", lines.collect::<String>()))
}

pub(super) fn registers(call: &mut Call<'_>) -> Done {
    if call.words.is_empty() {
        return text(all_registers(call.debugger));
    }
    let mut lines = String::new();
    for word in &call.words {
        let register = register(call.debugger, word)?;
        let values = call.debugger.stepping().read(call.debugger.group(), register);
        let values = values.ok_or_else(|| format!("the group currently has no {word}"))?;
        for (lane, value) in values.iter().enumerate() {
            let _ = writeln!(lines, "{word}@{lane:<3} {}", shown_in(register, *value));
        }
    }
    text(lines)
}

/// Returns the nonzero registers of the selected lane as text.
fn all_registers(debugger: &Debugger) -> String {
    let (group, lane) = (debugger.group(), debugger.lane());
    let mut lines = format!("lane {}, registers that are not 0:\n", lane.0);
    for (name, register) in debugger.register_names() {
        let value =
            debugger.stepping().read(group, register).and_then(|values| values.get(lane.index()).copied());
        if let Some(value) = value.filter(|value| *value != 0) {
            let _ = writeln!(lines, "{name:<10} {}", shown_in(register, value));
        }
    }
    lines
}

pub(super) fn registers_by_lane(call: &mut Call<'_>) -> Done {
    let debugger = &*call.debugger;
    let group = debugger.group();
    let rows = match call.words[..] {
        [] => table::rows(debugger, group, false),
        ref words => {
            let row = |word: &&str| {
                let register = register(debugger, word)?;
                table::row(debugger, group, register)
                    .ok_or_else(|| format!("the group currently has no {word}"))
            };
            words.iter().map(row).collect::<Result<Vec<_>, String>>()?
        }
    };
    match rows.is_empty() {
        true => text("all registers are 0\n".to_owned()),
        false => text(table::text(debugger, &rows, Notation::of(debugger.isa()))),
    }
}

pub(super) fn bytes(call: &mut Call<'_>) -> Done {
    text(memory(call.debugger, &call.words)?)
}

/// Returns a range of memory as text, four 32-bit words per line. `words` are the arguments of the command.
///
/// # Errors
/// Returns a message if the arguments are invalid.
pub fn memory(debugger: &Debugger, words: &[&str]) -> Result<String, String> {
    let (space, at, count) = range(debugger, words, 64)?;
    let bytes = debugger.stepping().memory(space, debugger.group(), debugger.lane(), at, count as usize);
    let mut lines = String::new();
    for (row, bytes) in bytes.chunks(16).enumerate() {
        let _ = write!(lines, "{:08x} ", at as usize + 16 * row);
        for word in bytes.chunks(4) {
            let digits = word.iter().rev().map(|byte| format!("{byte:02x}")).collect::<String>();
            let _ = write!(lines, " {digits:>8}");
        }
        lines.push('\n');
    }
    if bytes.len() < count as usize {
        let has = bytes.len();
        let _ = writeln!(
            lines,
            "{space} has only {has} of the {count} bytes from {at:#x}{}",
            places(debugger, space)
        );
    }
    Ok(lines)
}

/// Lists the buffers of a memory space with their addresses, for messages.
fn places(debugger: &Debugger, space: &str) -> String {
    let buffers = debugger.stepping().buffers(space, debugger.group(), debugger.lane());
    let place =
        |(name, at): &(String, std::ops::Range<u64>)| format!("{name} at {:#x} to {:#x}", at.start, at.end);
    match buffers.is_empty() {
        true => String::new(),
        false => format!("; its buffers are {}", buffers.iter().map(place).collect::<Vec<_>>().join(", ")),
    }
}

pub(super) fn set(call: &mut Call<'_>) -> Done {
    if call.words.first().is_some_and(|word| flow::is_flow(word)) {
        return text(flow::set(call.debugger, &call.words)?);
    }
    let Some(place) = call.words.first() else {
        let flow = flow::NAMES.join(", ");
        return Err(format!("expected a register and a number, or flow state ({flow}), found nothing").into());
    };
    let (register, of) = place_of(call.debugger, place).map_err(|why| match flow::meant(place) {
        Some(meant) => format!("`{place}` is not a register, did you mean `{meant}`?"),
        None => why,
    })?;
    let value = match call.words[..] {
        [_, value] => word_of(value)?,
        [_, _, more, ..] => return Err(format!("unexpected `{more}`").into()),
        _ => return Err(format!("the new value of {place} is missing, such as 7, 0x1f, -3 or 0.5").into()),
    };
    let lane = of.unwrap_or(call.debugger.lane());
    let group = call.debugger.group();
    if !call.debugger.change(Change::Register { group, register, lane, value }) {
        return Err(format!("cannot set {place} of lane {} to {value:#x} here", lane.0).into());
    }
    text(format!(
        "{}@{} is {}\n",
        place.split('@').next().unwrap_or(place),
        lane.0,
        shown_in(register, value)
    ))
}

pub(super) fn write(call: &mut Call<'_>) -> Done {
    let (space, address, values) = space_and_address(call.debugger, &call.words)?;
    let mut bytes = Vec::new();
    for value in values {
        let value = word_of(value)?;
        bytes.extend(value.to_le_bytes());
    }
    if bytes.is_empty() {
        return Err("the new words are missing, such as 7, 0x1f, -3 or 0.5".to_owned().into());
    }
    let (group, lane, many) = (call.debugger.group(), call.debugger.lane(), bytes.len());
    if !call.debugger.change(Change::Memory { space, group, lane, address, bytes }) {
        let places = places(call.debugger, space);
        return Err(format!("cannot write {many} bytes to {space} at {address:#x}{places}").into());
    }
    text(format!("{many} bytes of {space} from {address:#x} are changed\n"))
}
