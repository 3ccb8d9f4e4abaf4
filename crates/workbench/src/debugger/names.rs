//! Parses registers, lanes, memory spaces and numbers in command lines and formulas. Also formats register values.

use reconverge_isa::source::closest;
use reconverge_simt::{Lane, Mask};

use super::Debugger;
use crate::error::flags;
use crate::session::{Register, RegisterClass};

/// Parses a 32-bit number in decimal, or in hexadecimal with the prefix 0x.
pub(super) fn number(word: &str) -> Option<u32> {
    match word.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None => word.parse().ok(),
    }
}

/// Parses a 64-bit number in decimal, or in hexadecimal with the prefix 0x.
pub(super) fn long_number(word: &str) -> Option<u64> {
    match word.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => word.parse().ok(),
    }
}

/// Parses a number, or returns the message that the word is not a number.
pub(super) fn numeral(word: &str) -> Result<u32, String> {
    number(word).ok_or_else(|| format!("`{word}` is not a number"))
}

/// Parses a number and returns its 32 bits. A number with a decimal point is a float. A number with a minus sign is a
/// signed integer. Other numbers are unsigned.
pub(super) fn bits(word: &str) -> Option<u32> {
    if word.contains('.') && !word.starts_with("0x") {
        word.parse().map(f32::to_bits).ok()
    } else if word.starts_with('-') {
        word.parse().map(|number: i32| number as u32).ok()
    } else {
        number(word)
    }
}

/// Parses a number in the same way as [`bits`]. The error message has examples of valid numbers.
pub(super) fn word_of(word: &str) -> Result<u32, String> {
    bits(word).ok_or_else(|| format!("expected a 32-bit number such as 7, 0x1f, -3 or 0.5, found `{word}`"))
}

/// Parses the number of a lane of the group.
pub(super) fn lane_of(debugger: &Debugger, word: &str) -> Result<Lane, String> {
    let lane = word.parse::<u8>().ok().filter(|lane| usize::from(*lane) < debugger.width());
    lane.map(Lane)
        .ok_or_else(|| format!("expected a lane from 0 to {}, found `{word}`", debugger.width() - 1))
}

/// Parses a set of lanes of the group. The set has the form `0-3,8`, `all`, `none`, or a bit mask with the prefix 0x.
pub(super) fn lanes_of(debugger: &Debugger, word: &str) -> Result<Mask, String> {
    let all = Mask::first(debugger.stepping().lanes(debugger.group()).len());
    if let Some(digits) = word.strip_prefix("0x") {
        let bits = u64::from_str_radix(digits, 16).ok().filter(|bits| bits & !all.0 == 0);
        return bits
            .map(Mask)
            .ok_or_else(|| format!("`{word}` has bits outside the lanes of the group, {all}"));
    }
    match word {
        "all" => return Ok(all),
        "none" => return Ok(Mask::NONE),
        _ => {}
    }
    let mut lanes = Mask::NONE;
    for part in word.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let bounds = (first.parse::<u8>(), last.parse::<u8>());
        let (Ok(first), Ok(last)) = bounds else {
            return Err(format!("`{part}` is not a lane: lanes are written as 0-3,8, all or none"));
        };
        if first > last {
            return Err(format!("`{part}`: expected the smaller lane first"));
        }
        if last > 63 || !all.has(Lane(last)) {
            return Err(format!("`{part}` is outside the lanes of the group, {all}"));
        }
        (first..=last).for_each(|lane| lanes.insert(Lane(lane)));
    }
    Ok(lanes)
}

/// Parses a register: `$r5`, `R1.x`, `temp3.w`. Case is ignored. The channels r, g, b, a can also be written x, y, z,
/// w.
pub(super) fn register(classes: &[RegisterClass], word: &str) -> Result<Register, String> {
    let lower = word.to_ascii_lowercase();
    let class = classes.iter().filter(|class| {
        let rest = lower.strip_prefix(&class.name.to_ascii_lowercase());
        rest.is_some_and(|rest| !rest.starts_with(|letter: char| letter.is_ascii_alphabetic()))
    });
    let Some(class) = class.max_by_key(|class| class.name.len()) else {
        let example = |class: &RegisterClass| match class.channels.get(..1) {
            Some(channel) => format!("{}0.{channel}", class.name),
            None => format!("{}0", class.name),
        };
        let examples: Vec<String> = classes.iter().map(example).collect();
        return Err(format!("`{word}` is not a register such as {}", examples.join(", ")));
    };
    let rest = &lower[class.name.len()..];
    let (digits, channel) = rest.split_once('.').map_or((rest, None), |(digits, name)| (digits, Some(name)));
    let digits = digits.trim_matches(['[', ']']);
    // The number can be omitted if the class has only one register.
    let number = if digits.is_empty() && class.count == 1 { Ok(0) } else { digits.parse() };
    let number = number.ok().filter(|number| *number < class.count);
    let number = number.ok_or_else(|| {
        let last = class.count.saturating_sub(1);
        format!("`{word}`: expected a number from 0 to {last} after {}", class.name)
    })?;
    let channel = match channel {
        None if class.channels.is_empty() => 0,
        None => {
            let channels: Vec<String> = class.channels.chars().map(|name| format!("{word}.{name}")).collect();
            return Err(format!("`{word}` has channels: {}", channels.join(", ")));
        }
        Some(name) => [class.channels, "xyzw"]
            .iter()
            .find_map(|channels| channels.find(name))
            .filter(|channel| name.len() == 1 && *channel < class.channels.len())
            .ok_or_else(|| format!("`{word}`: the channels of {} are {}", class.name, class.channels))?,
    };
    Ok(Register { class: class.name, number, channel })
}

/// Returns the name of a register: `$r5`, `R1.x`.
pub(super) fn register_name(classes: &[RegisterClass], register: Register) -> String {
    let Register { class, number, channel } = register;
    let channels = classes.iter().find(|known| known.name == class).map_or("", |known| known.channels);
    match channels.get(channel..=channel) {
        Some(channel) => format!("{class}{number}.{channel}"),
        None => format!("{class}{number}"),
    }
}

/// Parses a register. If `@` follows the register, also parses the lane after `@`. Returns no lane if the word does not
/// contain `@`, or if the text after `@` is `any`.
pub(super) fn place_of(debugger: &Debugger, word: &str) -> Result<(Register, Option<Lane>), String> {
    let (name, lane) =
        word.split_once('@').map_or((word, None), |(name, lane)| (name.trim(), Some(lane.trim())));
    let lane = lane.filter(|lane| *lane != "any").map(|lane| lane_of(debugger, lane)).transpose()?;
    Ok((register(&debugger.stepping().registers(), name)?, lane))
}

/// Parses the name of a memory space, with or without brackets.
pub(super) fn space_of(debugger: &Debugger, name: &str) -> Result<&'static str, String> {
    let spaces: Vec<&'static str> = debugger.stepping().spaces().iter().map(|space| space.name).collect();
    let name = name.strip_suffix("[]").unwrap_or(name);
    let found = spaces.iter().find(|space| **space == name).copied();
    found.ok_or_else(|| match spaces[..] {
        [] => "the launch has no memory that programs write".to_owned(),
        _ => {
            let meant = closest(name, spaces.iter().copied());
            let meant = meant.map(|meant| format!(", did you mean `{meant}`?")).unwrap_or_default();
            format!("unknown space `{name}`; expected one of {}{meant}", spaces.join(", "))
        }
    })
}

/// Formats 32 bits as a hexadecimal number, as a signed integer and as a float.
pub fn shown(value: u32) -> String {
    format!("{value:#010x}  {:<11}  {:?}", value as i32, f32::from_bits(value))
}

/// Formats the value of a register. The function formats `$c` as flags and `$a` as 16 bits. [`shown`] formats all other
/// registers.
pub fn shown_in(register: Register, value: u32) -> String {
    match register.class {
        "$c" => format!("{value:#x}  {}", flags(value)),
        "$a" => format!("{value:#06x}  {value}"),
        _ => shown(value),
    }
}

/// Maximum number of characters of the user's text that a message quotes.
const MOST_REPEATED: usize = 100;

/// Shortens every text between backticks in a message.
pub(super) fn brief(message: &str) -> String {
    let cut = |(number, part): (usize, &str)| {
        // A part with an odd number is between backticks, so this part quotes the user's text. If the user's text
        // contains a backtick, a part with an even number may also contain the user's text. So the parts with even
        // numbers also have a limit.
        let most = if number % 2 == 1 { MOST_REPEATED } else { 10 * MOST_REPEATED };
        match part.char_indices().nth(most) {
            Some((end, _)) => format!("{}…", &part[..end]),
            None => part.to_owned(),
        }
    };
    message.split('`').enumerate().map(cut).collect::<Vec<_>>().join("`")
}

/// Returns the message that a text is not a valid restriction on hits.
pub(super) fn no_hits(text: &str) -> String {
    brief(&format!("expected a condition on the number of hits, such as 3, >= 3 or % 3, found `{text}`"))
}
