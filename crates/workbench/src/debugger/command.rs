//! The debugger's command line: a line of text in, lines of text out.

use std::fmt::Write;

use reconverge_isa::source::closest;
use reconverge_simt::Lane;
use thiserror::Error;

use super::stop::{Condition, Hits, Number, On, Only, Relation, Watched};
use super::{Change, Debugger, Halt};
use crate::session::{GroupState, Register};

/// Instructions that one command executes at most, unless it says otherwise.
pub const BUDGET: u64 = 100_000_000;

/// A command: its names, the shortest last; what follows it; what it does.
pub type Command = (&'static [&'static str], &'static str, &'static str);

/// All commands, in the order of the help.
pub const COMMANDS: &[Command] = &[
    (&["step", "s"], "[COUNT]", "execute instructions of the group"),
    (&["over", "n"], "", "execute the next instruction, and what it calls"),
    (&["out", "o"], "", "go on until the group's stack has fewer entries"),
    (&["follow", "f"], "[LANE]", "go on to the next instruction that the lane takes part in"),
    (&["until", "u"], "ADDRESS", "go on until the group is in front of an address"),
    (&["continue", "c"], "[COUNT]", "go on to the next stop, or for so many instructions"),
    (&["back", "b"], "[COUNT]", "go back by instructions of the group"),
    (&["back-follow", "bf"], "[LANE]", "go back to the last instruction that the lane took part in"),
    (&["back-continue", "bc"], "", "go back to the last stop"),
    (&["goto", "g"], "COUNT", "go to the place after so many instructions of the launch"),
    (&["break", "br"], "ADDRESS [ONLY]", "stop in front of an instruction"),
    (
        &["stop", "st"],
        "diverge|reconverge|lane LANE|if CONDITION [ONLY]",
        "stop at what happens to the flow, or when a condition holds",
    ),
    (
        &["watch", "w"],
        "REGISTER[@LANE] | SPACE ADDRESS [BYTES] | ADDRESS [ONLY]",
        "stop when a register or memory changes, or when an address is written",
    ),
    (&["stops"], "", "list the stops"),
    (&["delete", "d"], "NUMBER|all", "remove a stop"),
    (&["where", "p"], "", "the next instruction, its lanes, and the place in the launch"),
    (&["lanes", "l"], "", "every lane, and why it runs or does not"),
    (&["why", "y"], "[LANE]", "why the lane runs or does not"),
    (&["stack", "k"], "", "the machine's own stack, innermost first"),
    (&["registers", "r"], "[REGISTER…]", "registers of the lane, or these registers of all lanes"),
    (&["memory", "m"], "SPACE ADDRESS [BYTES]", "bytes of a memory"),
    (&["set"], "REGISTER[@LANE] NUMBER", "change a register of the lane"),
    (&["write"], "SPACE ADDRESS NUMBER…", "change 32-bit words of a memory"),
    (&["list", "i"], "[ADDRESS]", "the program around the next instruction, or an address"),
    (&["events", "e"], "", "what the last instruction did"),
    (&["group"], "[NUMBER]", "the group that questions are about"),
    (&["lane"], "[NUMBER]", "the lane that questions are about"),
    (&["groups"], "", "the groups that run"),
    (&["state"], "", "a number that is equal for equal states"),
    (&["mark"], "", "remember this state for `expect marked`"),
    (
        &["expect"],
        "CONDITION | at ADDRESS | lane LANE WORD | marked",
        "end a script with status 1 unless it holds",
    ),
    (&["help", "h"], "", "this list"),
    (&["quit", "q"], "", "end"),
];

/// A line that cannot be carried out.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CommandError {
    /// There is no such command.
    #[error("there is no command `{0}`{1}; `help` lists them")]
    Unknown(String, String),
    /// What follows the command does not fit.
    #[error("`{command}` takes {takes}: {why}")]
    Usage {
        /// The command.
        command: &'static str,
        /// What it takes.
        takes: &'static str,
        /// What is wrong.
        why: String,
    },
    /// An expectation does not hold.
    #[error("expected {wanted}, but {found}")]
    Expectation {
        /// What was expected.
        wanted: String,
        /// What is.
        found: String,
    },
}

/// What a command gives.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// Text, lines.
    pub text: String,
    /// Where a movement ended.
    pub halt: Option<Halt>,
    /// Whether the debugger should end.
    pub quit: bool,
}

/// The help of all commands.
pub fn help() -> String {
    let mut text = String::new();
    for (names, takes, what) in COMMANDS {
        let head = format!("{:<16} {takes}", names.join(", "));
        let _ = match head.len() {
            ..54 => writeln!(text, "{head:<54} {what}"),
            _ => writeln!(text, "{head}\n{:<54} {what}", ""),
        };
    }
    text + "
CONDITION: REGISTER[@LANE] ==|!=|<|<=|>|>= NUMBER, in any active lane where no LANE is given. A number with a point is a
float, with a minus sign an integer, otherwise unsigned (0x… too).
ONLY: if CONDITION, group NUMBER, hits 3 (the third time), hits >= 3, hits % 3; several of them fit.
A trap always stops. A step backward undoes it. What `set` and `write` change stays changed when its place is passed again.
"
}

/// The command of a name.
fn command(name: &str) -> Result<&'static Command, CommandError> {
    COMMANDS.iter().find(|(names, ..)| names.contains(&name)).ok_or_else(|| {
        let names = COMMANDS.iter().flat_map(|(names, ..)| names.iter().copied());
        let meant = closest(name, names).map(|meant| format!(", did you mean `{meant}`?"));
        CommandError::Unknown(name.to_owned(), meant.unwrap_or_default())
    })
}

/// The names that complete the beginning of a line.
pub fn completions(line: &str) -> Vec<&'static str> {
    let names = COMMANDS.iter().filter_map(|(names, ..)| names.first().copied());
    names.filter(|name| name.starts_with(line)).collect()
}

/// The answer to a command that only looks: `stack`, `registers`, `where`, `groups`, `memory SPACE ADDRESS`.
///
/// # Errors
/// Another command, or a memory that is not there.
pub fn look(debugger: &Debugger, line: &str) -> Result<String, CommandError> {
    let words: Vec<&str> = line.split_whitespace().collect();
    match words[..] {
        ["stack"] => Ok(stack(debugger)),
        ["registers"] => Ok(all_registers(debugger)),
        ["where"] => Ok(position(debugger)),
        ["groups"] => Ok(groups(debugger)),
        ["memory", ref words @ ..] => memory(debugger, words).map_err(|why| CommandError::Usage {
            command: "memory",
            takes: "SPACE ADDRESS [BYTES]",
            why,
        }),
        _ => Err(CommandError::Unknown(line.to_owned(), String::new())),
    }
}

/// Carries out a line. An empty line and one that begins with `#` do nothing.
///
/// # Errors
/// The line is no command, or an expectation does not hold.
pub fn run(debugger: &mut Debugger, line: &str) -> Result<Answer, CommandError> {
    let line = line.split_once(" #").map_or(line, |(line, _)| line).trim();
    if line.is_empty() || line.starts_with('#') {
        return Ok(Answer::default());
    }
    let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let rest = rest.trim();
    let (names, takes, _) = *command(name)?;
    let command = names[0];
    let wrong = |why: String| CommandError::Usage {
        command,
        takes: if takes.is_empty() { "nothing" } else { takes },
        why,
    };
    let words: Vec<&str> = rest.split_whitespace().collect();
    if takes.is_empty() && !words.is_empty() {
        return Err(wrong(format!("`{rest}` is too much")));
    }
    let count = |word: Option<&&str>, otherwise: u64| match word {
        None => Ok(otherwise),
        Some(word) => number(word).map(u64::from).ok_or_else(|| wrong(format!("`{word}` is no number"))),
    };
    let lane = |debugger: &Debugger, word: Option<&&str>| match word {
        None => Ok(debugger.lane()),
        Some(word) => word
            .parse::<u8>()
            .ok()
            .filter(|lane| usize::from(*lane) < debugger.width())
            .map(Lane)
            .ok_or_else(|| wrong(format!("`{word}` is no lane of 0 to {}", debugger.width() - 1))),
    };
    let address = |debugger: &Debugger, word: Option<&&str>| {
        let word = *word.ok_or_else(|| wrong("an address is missing".to_owned()))?;
        place(debugger, word)
            .ok_or_else(|| wrong(format!("`{word}` is neither an instruction's address nor a label")))
    };
    let text = |text: String| Ok(Answer { text, ..Answer::default() });
    let moved = |debugger: &Debugger, halt: Halt| {
        let text = describe(debugger, &halt);
        Ok(Answer { text, halt: Some(halt), quit: false })
    };
    match command {
        "step" => {
            let count = count(words.first(), 1)?;
            let halt = debugger.step(count, BUDGET);
            moved(debugger, halt)
        }
        "over" => {
            let halt = debugger.over(BUDGET);
            moved(debugger, halt)
        }
        "out" => {
            let halt = debugger.out(BUDGET);
            moved(debugger, halt)
        }
        "follow" => {
            let lane = lane(debugger, words.first())?;
            debugger.choose_lane(lane);
            let halt = debugger.follow(lane, BUDGET);
            moved(debugger, halt)
        }
        "until" => {
            let address = address(debugger, words.first())?;
            let halt = debugger.until(address, BUDGET);
            moved(debugger, halt)
        }
        "continue" => {
            let budget = count(words.first(), BUDGET)?;
            let halt = debugger.run(budget, &mut |_| false);
            moved(debugger, halt)
        }
        "back" => {
            let count = count(words.first(), 1)?;
            let halt = debugger.back(count);
            moved(debugger, halt)
        }
        "back-follow" => {
            let lane = lane(debugger, words.first())?;
            debugger.choose_lane(lane);
            let group = debugger.group();
            let halt = debugger.back_until(&mut |debugger| {
                debugger.stepping().current() == Some(group)
                    && debugger.stepping().issue(group).is_some_and(|issue| issue.mask.has(lane))
            });
            moved(debugger, halt)
        }
        "back-continue" => {
            let halt = debugger.back_until(&mut |_| false);
            moved(debugger, halt)
        }
        "goto" => {
            let word = words.first().ok_or_else(|| wrong("a number is missing".to_owned()))?;
            let position = word.parse().map_err(|_| wrong(format!("`{word}` is no number")))?;
            let halt = debugger.go_to(position);
            moved(debugger, halt)
        }
        "break" => {
            let (head, only) = only(debugger, &words).map_err(wrong)?;
            let address = address(debugger, head.first())?;
            if let Some(more) = head.get(1) {
                return Err(wrong(format!("`{more}` is no condition")));
            }
            let number = debugger.stops.add(On::Address(address), only, rest);
            text(format!("stop {number} at {}\n", debugger.spelled(address)))
        }
        "stop" => {
            let (head, only) = only(debugger, &words).map_err(wrong)?;
            let on = match head[..] {
                ["diverge"] => On::Diverge,
                ["reconverge"] => On::Reconverge,
                ["lane", ref word] => On::Lane(lane(debugger, Some(word))?),
                [] if only.condition.is_some() => On::Always,
                _ => return Err(wrong(format!("`{rest}` is none of these"))),
            };
            let number = debugger.stops.add(on, only, rest);
            text(format!("stop {number}: {rest}\n"))
        }
        "watch" => {
            let (head, only) = only(debugger, &words).map_err(wrong)?;
            let on = match head[..] {
                [word] => match number(word) {
                    Some(address) => On::Store(address),
                    None => {
                        let (register, of) = place_of(debugger, word).map_err(wrong)?;
                        On::Change(Watched::Register(register, of))
                    }
                },
                [space, at, ref bytes @ ..] => {
                    let space = space_of(debugger, space).map_err(wrong)?;
                    let address = number(at).ok_or_else(|| wrong(format!("`{at}` is no address")))?;
                    let bytes = match bytes {
                        [] => 4,
                        [word] => number(word).ok_or_else(|| wrong(format!("`{word}` is no number")))?,
                        [_, more, ..] => return Err(wrong(format!("`{more}` is too much"))),
                    };
                    let (lane, bytes) = (debugger.lane(), bytes as usize);
                    let there =
                        debugger.stepping().memory(space, debugger.group(), lane, address, bytes).len();
                    if bytes == 0 || there < bytes {
                        return Err(wrong(format!("{space} has {there} of {bytes} bytes from {at}")));
                    }
                    On::Change(Watched::Memory { space, lane, address, bytes })
                }
                [] => return Err(wrong("a register or an address is missing".to_owned())),
            };
            let what = if matches!(on, On::Store(_)) { "is written" } else { "changes" };
            let number = debugger.stops.add(on, only, rest);
            text(format!("stop {number} when {} {what}\n", head.join(" ")))
        }
        "stops" => {
            let mut lines = String::new();
            for stop in debugger.stops.iter() {
                let _ = writeln!(lines, "{:>3}  {}", stop.number, stop.text);
            }
            if lines.is_empty() {
                lines.push_str("no stops\n");
            }
            text(lines)
        }
        "delete" => match words[..] {
            ["all"] => {
                debugger.stops.clear();
                text(String::new())
            }
            [word] if word.parse().is_ok_and(|number| debugger.stops.remove(number)) => text(String::new()),
            _ => Err(wrong(format!("`{rest}` is no stop"))),
        },
        "where" => text(position(debugger)),
        "lanes" => {
            let mut lines = String::new();
            for lane in 0..debugger.width() {
                let lane = Lane(lane as u8);
                let mark = if lane == debugger.lane() { '>' } else { ' ' };
                let _ = writeln!(lines, "{mark}{:>3}  {}", lane.0, debugger.why(lane));
            }
            text(lines)
        }
        "why" => {
            let lane = lane(debugger, words.first())?;
            text(format!("lane {}: {}\n", lane.0, debugger.why(lane)))
        }
        "stack" => text(stack(debugger)),
        "registers" => {
            let mut lines = String::new();
            for word in &words {
                let register = register(debugger, word).map_err(wrong)?;
                let values = debugger.stepping().read(debugger.group(), register);
                let values = values.ok_or_else(|| wrong(format!("the group has no {word} now")))?;
                for (lane, value) in values.iter().enumerate() {
                    let _ = writeln!(lines, "{word}@{lane:<3} {}", shown(*value));
                }
            }
            if words.is_empty() {
                lines = all_registers(debugger);
            }
            text(lines)
        }
        "memory" => text(memory(debugger, &words).map_err(wrong)?),
        "set" => {
            let [place, value] = words[..] else {
                return Err(wrong("a register and a number are wanted".to_owned()));
            };
            let (register, of) = place_of(debugger, place).map_err(wrong)?;
            let lane = of.unwrap_or(debugger.lane());
            let value = bits(value).ok_or_else(|| wrong(format!("`{value}` is no number")))?;
            let group = debugger.group();
            if !debugger.change(Change::Register { group, register, lane, value }) {
                return Err(wrong(format!("{place} of lane {} does not take {value:#x} here", lane.0)));
            }
            text(format!("{}@{} is {}\n", place.split('@').next().unwrap_or(place), lane.0, shown(value)))
        }
        "write" => {
            let [space, at, ref values @ ..] = words[..] else {
                return Err(wrong("a space and an address are missing".to_owned()));
            };
            let space = space_of(debugger, space).map_err(wrong)?;
            let address = number(at).ok_or_else(|| wrong(format!("`{at}` is no address")))?;
            let mut bytes = Vec::new();
            for value in values {
                let value = bits(value).ok_or_else(|| wrong(format!("`{value}` is no number")))?;
                bytes.extend(value.to_le_bytes());
            }
            if bytes.is_empty() {
                return Err(wrong("a number is missing".to_owned()));
            }
            let (group, lane, many) = (debugger.group(), debugger.lane(), bytes.len());
            if !debugger.change(Change::Memory { space, group, lane, address, bytes }) {
                return Err(wrong(format!("{space} does not take {many} bytes at {at}")));
            }
            text(format!("{many} bytes of {space} from {at} on are changed\n"))
        }
        "list" => {
            let around = match words.first() {
                Some(word) => Some(address(debugger, Some(word))?),
                None => debugger.issue().map(|issue| issue.pc),
            };
            text(listing(debugger, around, 6))
        }
        "events" => {
            let mut lines = String::new();
            for (group, event) in debugger.events() {
                let _ = writeln!(lines, "group {group}: {event:?}");
            }
            if lines.is_empty() {
                lines.push_str("no events\n");
            }
            text(lines)
        }
        "group" => {
            if let Some(word) = words.first() {
                let group = word.parse().ok().filter(|group| debugger.choose_group(*group));
                let last = debugger.stepping().groups().saturating_sub(1);
                group.ok_or_else(|| wrong(format!("`{word}` is no group of 0 to {last}")))?;
            }
            text(position(debugger))
        }
        "lane" => {
            let lane = lane(debugger, words.first())?;
            debugger.choose_lane(lane);
            text(format!("lane {}: {}\n", lane.0, debugger.why(lane)))
        }
        "groups" => text(groups(debugger)),
        "state" => text(format!("{:016x}\n", debugger.digest())),
        "mark" => {
            debugger.marked = Some(debugger.digest());
            text(String::new())
        }
        "expect" => expect(debugger, rest, &words).map(|()| Answer::default()).map_err(|error| match error {
            Expect::Usage(why) => wrong(why),
            Expect::Fails(found) => CommandError::Expectation { wanted: rest.to_owned(), found },
        }),
        "help" => text(help()),
        "quit" => Ok(Answer { quit: true, ..Answer::default() }),
        other => unreachable!("`{other}` stands in the list of commands"),
    }
}

enum Expect {
    Usage(String),
    Fails(String),
}

fn expect(debugger: &Debugger, rest: &str, words: &[&str]) -> Result<(), Expect> {
    match *words {
        ["at", word] => {
            let wanted = place(debugger, word)
                .ok_or_else(|| Expect::Usage(format!("`{word}` is no address of an instruction")))?;
            match debugger.issue() {
                Some(issue) if issue.pc == wanted => Ok(()),
                Some(issue) => Err(Expect::Fails(format!("the group is at {}", debugger.spelled(issue.pc)))),
                None => Err(Expect::Fails("the group does not run".to_owned())),
            }
        }
        ["lane", lane, ..] => {
            let number = lane.parse().map_err(|_| Expect::Usage(format!("`{lane}` is no lane")))?;
            let wanted = words[2..].join(" ");
            let why = debugger.why(Lane(number));
            if why.contains(&wanted) { Ok(()) } else { Err(Expect::Fails(format!("lane {lane}: {why}"))) }
        }
        ["marked"] => match debugger.marked {
            None => Err(Expect::Usage("`mark` has remembered no state".to_owned())),
            Some(marked) if marked == debugger.digest() => Ok(()),
            Some(_) => Err(Expect::Fails(format!(
                "the state after {} is another",
                counted(debugger.position(), "instruction")
            ))),
        },
        _ => {
            let condition = condition_of(debugger, rest).map_err(Expect::Usage)?;
            if condition.holds(debugger.stepping(), debugger.group()).is_some() {
                return Ok(());
            }
            let values = debugger.stepping().read(debugger.group(), condition.register).unwrap_or_default();
            let lane = condition.lane.unwrap_or(debugger.lane());
            let value = values.get(lane.index()).map_or("not there".to_owned(), |value| shown(*value));
            Err(Expect::Fails(format!("in lane {} it is {value}", lane.0)))
        }
    }
}

/// A number: decimal, or hexadecimal behind 0x.
fn number(word: &str) -> Option<u32> {
    match word.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None => word.parse().ok(),
    }
}

/// The address that a word names: that of an instruction, or a label's.
fn place(debugger: &Debugger, word: &str) -> Option<u32> {
    let label = debugger.lines().iter().find(|line| line.label.as_deref() == Some(word));
    let address = label.and_then(|line| line.address).or_else(|| number(word))?;
    debugger.line(address).map(|_| address)
}

/// The register that a word names: `$r5`, `R1.x`, `temp3.w`. Case does not count.
pub(super) fn register(debugger: &Debugger, word: &str) -> Result<Register, String> {
    let classes = debugger.stepping().registers();
    let lower = word.to_ascii_lowercase();
    let class = classes.iter().filter(|class| lower.starts_with(&class.name.to_ascii_lowercase()));
    let Some(class) = class.max_by_key(|class| class.name.len()) else {
        let names: Vec<&str> = classes.iter().map(|class| class.name).collect();
        return Err(format!("`{word}` is no register; there is {}", names.join(", ")));
    };
    let rest = &lower[class.name.len()..];
    let (digits, channel) = rest.split_once('.').map_or((rest, None), |(digits, name)| (digits, Some(name)));
    let digits = digits.trim_matches(['[', ']']);
    let number = digits.parse().ok().filter(|number| *number < class.count);
    let number =
        number.ok_or_else(|| format!("{} has numbers 0 to {}", class.name, class.count.saturating_sub(1)))?;
    let channel = match channel {
        None if class.channels.is_empty() => 0,
        None => return Err(format!("{word} has channels: {word}.{}", &class.channels[..1])),
        Some(name) => class
            .channels
            .to_ascii_lowercase()
            .find(name)
            .filter(|_| name.len() == 1)
            .ok_or_else(|| format!("the channels of {} are {}", class.name, class.channels))?,
    };
    Ok(Register { class: class.name, number, channel })
}

/// A register, and a lane behind `@`.
pub(super) fn place_of(debugger: &Debugger, word: &str) -> Result<(Register, Option<Lane>), String> {
    let (name, lane) =
        word.split_once('@').map_or((word, None), |(name, lane)| (name.trim(), Some(lane.trim())));
    let lane = match lane {
        None | Some("any") => None,
        Some(lane) => {
            let number = lane.parse::<u8>().ok().filter(|lane| usize::from(*lane) < debugger.width());
            Some(Lane(number.ok_or_else(|| format!("`{lane}` is no lane of 0 to {}", debugger.width() - 1))?))
        }
    };
    Ok((register(debugger, name)?, lane))
}

/// A memory by its name.
pub(super) fn space_of(debugger: &Debugger, name: &str) -> Result<&'static str, String> {
    let spaces: Vec<&'static str> = debugger.stepping().spaces().iter().map(|space| space.name).collect();
    let found = spaces.iter().find(|space| **space == name).copied();
    found.ok_or_else(|| match spaces[..] {
        [] => "the launch has no memory that programs write".to_owned(),
        _ => format!("there is no space `{name}`; there is {}", spaces.join(", ")),
    })
}

/// The words before what narrows a stop down, and that.
fn only<'a>(debugger: &Debugger, words: &[&'a str]) -> Result<(Vec<&'a str>, Only), String> {
    const BEGINS: [&str; 3] = ["if", "hits", "group"];
    let first = words.iter().position(|word| BEGINS.contains(word)).unwrap_or(words.len());
    let (head, mut rest) = words.split_at(first);
    let mut only = Only::default();
    while let [what, after @ ..] = rest {
        let end = after.iter().position(|word| BEGINS.contains(word)).unwrap_or(after.len());
        let text = after[..end].join(" ");
        match *what {
            "if" => only.condition = Some(condition_of(debugger, &text)?),
            "hits" => only.hits = Some(Hits::parse(&text).ok_or_else(|| no_hits(&text))?),
            _ => {
                let group = text.parse().ok().filter(|group| *group < debugger.stepping().groups());
                only.group = Some(group.ok_or_else(|| format!("`{text}` is no group"))?);
            }
        }
        rest = &after[end..];
    }
    Ok((head.to_vec(), only))
}

/// What is said of a text that does not say which hits count.
pub(super) fn no_hits(text: &str) -> String {
    format!("`{text}` does not say which times count: 3, >= 3 or % 3 does")
}

/// A condition as it is written.
pub(super) fn condition_of(debugger: &Debugger, text: &str) -> Result<Condition, String> {
    let found = Relation::ALL
        .iter()
        .filter_map(|(spelling, relation)| text.find(spelling).map(|at| (at, *spelling, *relation)));
    let Some((at, spelling, relation)) = found.min_by_key(|(at, spelling, _)| (*at, 2 - spelling.len()))
    else {
        return Err(format!("`{text}` has none of ==, !=, <, <=, >, >="));
    };
    let (left, right) = (text[..at].trim(), text[at + spelling.len()..].trim());
    let number = written(right).ok_or_else(|| format!("`{right}` is no number"))?;
    let (register, lane) = place_of(debugger, left)?;
    Ok(Condition { register, lane, relation, number })
}

/// A number as it is written: with a point a float, with a minus sign an integer, otherwise unsigned.
fn written(word: &str) -> Option<Number> {
    if word.contains('.') && !word.starts_with("0x") {
        word.parse().map(Number::Float).ok()
    } else if word.starts_with('-') {
        word.parse().map(Number::Signed).ok()
    } else {
        number(word).map(Number::Bits)
    }
}

/// The bits of a number as it is written.
pub(super) fn bits(word: &str) -> Option<u32> {
    Some(match written(word)? {
        Number::Bits(bits) => bits,
        Number::Signed(number) => number as u32,
        Number::Float(number) => number.to_bits(),
    })
}

/// A value in the three ways of reading it.
pub fn shown(value: u32) -> String {
    format!("{value:#010x}  {:<11}  {:?}", value as i32, f32::from_bits(value))
}

/// Where a movement ended, and the next instruction.
fn describe(debugger: &Debugger, halt: &Halt) -> String {
    let what = match halt {
        Halt::There => String::new(),
        Halt::Stop(why) => format!("{why}\n"),
        Halt::End => "the launch has ended, or the group has\n".to_owned(),
        Halt::Start => "at the start of the launch\n".to_owned(),
        Halt::Trap(message) => format!("{message}\n"),
        Halt::Budget => format!("{BUDGET} instructions without a stop: `continue` goes on\n"),
        Halt::Interrupted => "interrupted\n".to_owned(),
    };
    what + &position(debugger)
}

/// The next instruction of the group, its lanes, and the place in the launch.
fn position(debugger: &Debugger) -> String {
    let group = debugger.group();
    let head = format!("group {group}, after {}: ", counted(debugger.position(), "instruction"));
    match debugger.stepping().state(group) {
        GroupState::Waiting => format!("{head}waits for the groups before it\n"),
        GroupState::Ended => format!("{head}ended\n"),
        GroupState::Running => {
            let Some(issue) = debugger.issue() else { return format!("{head}ended\n") };
            let line = debugger.line(issue.pc).map_or("", |line| line.text.as_str());
            let text = line.split_whitespace().collect::<Vec<_>>().join(" ");
            format!("{head}{}  {text}  for lanes {}\n", debugger.spelled(issue.pc), issue.mask)
        }
    }
}

fn counted(count: u64, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// The machine's own stack of the group, innermost first.
fn stack(debugger: &Debugger) -> String {
    let mut lines = String::new();
    for (depth, row) in debugger.stepping().stack(debugger.group()).iter().enumerate() {
        let _ = write!(lines, "{depth:>3}  {}", row.kind);
        if let Some(pc) = row.pc {
            let _ = write!(lines, "  to {}", debugger.spelled(pc));
        }
        if let Some(mask) = row.mask {
            let _ = write!(lines, "  lanes {mask}");
        }
        if let Some(count) = row.count {
            let _ = write!(lines, "  count {count}");
        }
        lines.push('\n');
    }
    if lines.is_empty() {
        lines.push_str("the stack is empty\n");
    }
    lines
}

/// Bytes of a memory as words, four in a row.
fn memory(debugger: &Debugger, words: &[&str]) -> Result<String, String> {
    let [space, at, ref count @ ..] = *words else {
        return Err("a space and an address are missing".to_owned());
    };
    let space = space_of(debugger, space)?;
    let at = number(at).ok_or_else(|| format!("`{at}` is no address"))?;
    let count = match *count {
        [] => 64,
        [word] => number(word).ok_or_else(|| format!("`{word}` is no number"))?,
        [_, more, ..] => return Err(format!("`{more}` is too much")),
    };
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
        let _ = writeln!(lines, "{space} has {} of {count} bytes from there", bytes.len());
    }
    Ok(lines)
}

/// The groups that run, and where each is.
fn groups(debugger: &Debugger) -> String {
    let stepping = debugger.stepping();
    let mut lines = String::new();
    for group in 0..stepping.groups() {
        if stepping.state(group) != GroupState::Running {
            continue;
        }
        let Some(issue) = stepping.issue(group) else { continue };
        let mark = if stepping.current() == Some(group) { '>' } else { ' ' };
        let _ = writeln!(lines, "{mark}{group:>5}  {}  lanes {}", debugger.spelled(issue.pc), issue.mask);
    }
    if lines.is_empty() {
        lines.push_str("no group runs\n");
    }
    lines
}

/// Lines of the program around an address.
pub fn listing(debugger: &Debugger, around: Option<u32>, many: usize) -> String {
    let lines = debugger.lines();
    let next = debugger.issue().map(|issue| issue.pc);
    let at = around.and_then(|address| lines.iter().position(|line| line.address == Some(address)));
    let at = at.unwrap_or(0);
    let mut text = String::new();
    for line in &lines[at.saturating_sub(many)..lines.len().min(at + many + 1)] {
        let address = line.address.unwrap_or(0);
        if let Some(label) = &line.label {
            let _ = writeln!(text, "{label}:");
        }
        let mark = if next == Some(address) { '>' } else { ' ' };
        let stop = debugger.stops.iter().any(|stop| stop.on == On::Address(address));
        let stop = if stop { '*' } else { ' ' };
        let code = line.code();
        let indent = 2 * line.depth;
        let _ = writeln!(text, "{mark}{stop}{:>7}  {:indent$}{code}", debugger.spelled(address), "");
    }
    text
}

/// All registers of the lane that are not zero.
fn all_registers(debugger: &Debugger) -> String {
    let (group, lane) = (debugger.group(), debugger.lane());
    let mut lines = format!("lane {}, registers that are not 0:\n", lane.0);
    for (name, register) in debugger.register_names() {
        let value =
            debugger.stepping().read(group, register).and_then(|values| values.get(lane.index()).copied());
        if let Some(value) = value.filter(|value| *value != 0) {
            let _ = writeln!(lines, "{name:<10} {}", shown(value));
        }
    }
    lines
}
