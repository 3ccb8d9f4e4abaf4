//! The debugger's command line: a line of text in, lines of text out.

use std::fmt::Write;

use reconverge_isa::source::closest;
use reconverge_simt::{Lane, StackRow};
use thiserror::Error;

use super::stop::{Condition, Hits, Number, On, Only, Relation, Watched};
use super::{Change, Debugger, Halt};
use crate::error::counted;
use crate::listing::Line;
use crate::session::{GroupState, Register};

/// Instructions that one command executes at most, unless it says otherwise.
pub const BUDGET: u64 = 100_000_000;

/// A command, one row of [`COMMANDS`].
pub struct Command {
    /// The names of the command, the shortest last.
    pub names: &'static [&'static str],
    /// The arguments; empty if the command takes none.
    pub takes: &'static str,
    /// The sentence that the help shows.
    pub help: &'static str,
    run: fn(&mut Call<'_>) -> Done,
}

const fn row(
    names: &'static [&'static str],
    takes: &'static str,
    help: &'static str,
    run: fn(&mut Call<'_>) -> Done,
) -> Command {
    Command { names, takes, help, run }
}

/// All commands, in the order of the help.
#[rustfmt::skip]
pub const COMMANDS: &[Command] = &[
    row(&["step", "s"], "[COUNT]", "execute instructions of the group", step),
    row(&["over", "n"], "", "execute the next instruction, and what it calls", |call| call.moved(|debugger| debugger.over(BUDGET))),
    row(&["out", "o"], "", "go on until the group's stack has fewer entries", |call| call.moved(|debugger| debugger.out(BUDGET))),
    row(&["follow", "f"], "[LANE]", "go on to the next instruction that the lane takes part in", follow),
    row(&["until", "u"], "ADDRESS", "go on until the group is in front of an address", until),
    row(&["continue", "c"], "[COUNT]", "go on to the next stop, or for so many instructions", resume),
    row(&["back", "b"], "[COUNT]", "go back by instructions of the group", back),
    row(&["back-follow", "bf"], "[LANE]", "go back to the last instruction that the lane took part in", back_follow),
    row(&["back-continue", "bc"], "", "go back to the last stop", |call| call.moved(|debugger| debugger.back_until(&mut |_| false))),
    row(&["goto", "g"], "COUNT", "go to the place after so many instructions of the launch", go_to),
    row(&["break", "br"], "ADDRESS [ONLY]", "stop in front of an instruction", break_at),
    row(&["stop", "st"], "diverge|reconverge|lane LANE|if CONDITION [ONLY]", "stop at what happens to the flow, or when a condition holds", stop),
    row(&["watch", "w"], "REGISTER[@LANE] | SPACE ADDRESS [BYTES] | ADDRESS [ONLY]", "stop when a register or memory changes, or when an address is written", watch),
    row(&["stops"], "", "list the stops", stops),
    row(&["delete", "d"], "NUMBER|all", "remove a stop", delete),
    row(&["where", "p"], "", "the next instruction, its lanes, and the place in the launch", |call| text(position(call.debugger))),
    row(&["lanes", "l"], "", "every lane, and why it runs or does not", lanes),
    row(&["why", "y"], "[LANE]", "why the lane runs or does not", |call| why(call.debugger, call.lane(0)?)),
    row(&["stack", "k"], "", "the machine's own stack, innermost first", |call| text(stack(call.debugger))),
    row(&["registers", "r"], "[REGISTER…]", "registers of the lane, or these registers of all lanes", registers),
    row(&["memory", "m"], "SPACE ADDRESS [BYTES]", "bytes of a memory", |call| text(memory(call.debugger, &call.words)?)),
    row(&["set"], "REGISTER[@LANE] NUMBER", "change a register of the lane", set),
    row(&["write"], "SPACE ADDRESS NUMBER…", "change 32-bit words of a memory", write),
    row(&["list", "i"], "[ADDRESS]", "the program around the next instruction, or an address", list),
    row(&["events", "e"], "", "what the last instruction did", events),
    row(&["group"], "[NUMBER]", "the group that questions are about", group),
    row(&["lane"], "[NUMBER]", "the lane that questions are about", lane),
    row(&["groups"], "", "the groups that run", |call| text(groups(call.debugger))),
    row(&["state"], "", "a number that is equal for equal states", |call| text(format!("{:016x}\n", call.debugger.digest()))),
    row(&["mark"], "", "remember this state for `expect marked`", mark),
    row(&["expect"], "CONDITION | at ADDRESS | lane LANE WORD | marked", "end a script with status 1 unless it holds", expect),
    row(&["help", "h"], "", "this list", |_| text(help())),
    row(&["quit", "q"], "", "end", |_| Ok(Answer { quit: true, ..Answer::default() })),
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
    for Command { names, takes, help, .. } in COMMANDS {
        let head = format!("{:<16} {takes}", names.join(", "));
        let _ = match head.len() {
            ..54 => writeln!(text, "{head:<54} {help}"),
            _ => writeln!(text, "{head}\n{:<54} {help}", ""),
        };
    }
    text + "
CONDITION: REGISTER[@LANE] ==|!=|<|<=|>|>= NUMBER, in any active lane where no LANE is given. A number with a point is a
float, with a minus sign an integer, otherwise unsigned (0x… too).
ONLY: if CONDITION, group NUMBER, hits 3 (the third time), hits >= 3, hits % 3; several of them fit.
A trap always stops. A step backward undoes it. What `set` and `write` change stays changed when its place is passed again.
"
}

/// All names of commands.
pub fn names() -> impl Iterator<Item = &'static str> {
    COMMANDS.iter().flat_map(|command| command.names.iter().copied())
}

/// The names that complete the beginning of a line.
pub fn completions(line: &str) -> Vec<&'static str> {
    let names = COMMANDS.iter().filter_map(|command| command.names.first().copied());
    names.filter(|name| name.starts_with(line)).collect()
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
    let command = COMMANDS.iter().find(|command| command.names.contains(&name)).ok_or_else(|| {
        let meant = closest(name, names()).map(|meant| format!(", did you mean `{meant}`?"));
        CommandError::Unknown(name.to_owned(), meant.unwrap_or_default())
    })?;
    let mut call = Call { debugger, rest, words: rest.split_whitespace().collect() };
    let done = match command.takes.is_empty() && !rest.is_empty() {
        true => Err(Refused::Usage(format!("`{rest}` is too much"))),
        false => (command.run)(&mut call),
    };
    done.map_err(|refused| match refused {
        Refused::Usage(why) => CommandError::Usage {
            command: command.names[0],
            takes: if command.takes.is_empty() { "nothing" } else { command.takes },
            why,
        },
        Refused::Fails(found) => CommandError::Expectation { wanted: rest.to_owned(), found },
    })
}

/// The result of a command.
type Done = Result<Answer, Refused>;

/// The reason a command is not executed.
enum Refused {
    /// The arguments do not fit.
    Usage(String),
    /// An expectation does not hold; what was found.
    Fails(String),
}

impl From<String> for Refused {
    fn from(why: String) -> Refused {
        Refused::Usage(why)
    }
}

/// A command with its arguments.
struct Call<'a> {
    debugger: &'a mut Debugger,
    /// The text after the command.
    rest: &'a str,
    /// The words of the command.
    words: Vec<&'a str>,
}

impl Call<'_> {
    /// The first word as a number, or `otherwise` without a word.
    fn count(&self, otherwise: u64) -> Result<u64, String> {
        self.words.first().map_or(Ok(otherwise), |word| numeral(word).map(u64::from))
    }

    /// The lane that a word names, or the chosen one without such a word.
    fn lane(&self, word: usize) -> Result<Lane, String> {
        self.words.get(word).map_or(Ok(self.debugger.lane()), |word| lane_of(self.debugger, word))
    }

    /// Moves, and reports where the movement ended.
    fn moved(&mut self, movement: impl FnOnce(&mut Debugger) -> Halt) -> Done {
        let halt = movement(self.debugger);
        let text = describe(self.debugger, &halt);
        Ok(Answer { text, halt: Some(halt), quit: false })
    }
}

fn text(text: String) -> Done {
    Ok(Answer { text, ..Answer::default() })
}

/// Lines, or `none` if there are none.
fn lines(lines: impl Iterator<Item = String>, none: &str) -> Done {
    let lines: Vec<String> = lines.collect();
    text(if lines.is_empty() { format!("{none}\n") } else { lines.join("\n") + "\n" })
}

fn step(call: &mut Call<'_>) -> Done {
    let count = call.count(1)?;
    call.moved(|debugger| debugger.step(count, BUDGET))
}

fn follow(call: &mut Call<'_>) -> Done {
    let lane = call.lane(0)?;
    call.debugger.choose_lane(lane);
    call.moved(|debugger| debugger.follow(lane, BUDGET))
}

fn until(call: &mut Call<'_>) -> Done {
    let address = address(call.debugger, call.words.first())?;
    call.moved(|debugger| debugger.until(address, BUDGET))
}

fn resume(call: &mut Call<'_>) -> Done {
    let budget = call.count(BUDGET)?;
    call.moved(|debugger| debugger.run(budget, &mut |_| false))
}

fn back(call: &mut Call<'_>) -> Done {
    let count = call.count(1)?;
    call.moved(|debugger| debugger.back(count))
}

fn back_follow(call: &mut Call<'_>) -> Done {
    let lane = call.lane(0)?;
    call.debugger.choose_lane(lane);
    let group = call.debugger.group();
    call.moved(|debugger| {
        debugger.back_until(&mut |debugger| {
            debugger.stepping().current() == Some(group)
                && debugger.stepping().issue(group).is_some_and(|issue| issue.mask.has(lane))
        })
    })
}

fn go_to(call: &mut Call<'_>) -> Done {
    let word = call.words.first().ok_or_else(|| "a number is missing".to_owned())?;
    let position = word.parse().map_err(|_| format!("`{word}` is no number"))?;
    call.moved(|debugger| debugger.go_to(position))
}

fn break_at(call: &mut Call<'_>) -> Done {
    let (head, only) = only(call.debugger, &call.words)?;
    let address = address(call.debugger, head.first())?;
    if let Some(more) = head.get(1) {
        return Err(format!("`{more}` is no condition").into());
    }
    let number = call.debugger.stops.add(On::Address(address), only, call.rest);
    text(format!("stop {number} at {}\n", call.debugger.spelled(address)))
}

fn stop(call: &mut Call<'_>) -> Done {
    let (head, only) = only(call.debugger, &call.words)?;
    let on = match head[..] {
        ["diverge"] => On::Diverge,
        ["reconverge"] => On::Reconverge,
        ["lane", _] => On::Lane(call.lane(1)?),
        [] if only.condition.is_some() => On::Always,
        _ => return Err(format!("`{}` is none of these", call.rest).into()),
    };
    let number = call.debugger.stops.add(on, only, call.rest);
    text(format!("stop {number}: {}\n", call.rest))
}

fn watch(call: &mut Call<'_>) -> Done {
    let debugger = &mut *call.debugger;
    let (head, only) = only(debugger, &call.words)?;
    let on = match head[..] {
        [word] => match number(word) {
            Some(address) => On::Store(address),
            None => {
                let (register, of) = place_of(debugger, word)?;
                On::Change(Watched::Register(register, of))
            }
        },
        [space, at, ref bytes @ ..] => {
            let (space, address, bytes) = range(debugger, space, at, bytes, 4)?;
            let (lane, bytes) = (debugger.lane(), bytes as usize);
            let there = debugger.stepping().memory(space, debugger.group(), lane, address, bytes).len();
            if bytes == 0 || there < bytes {
                return Err(format!("{space} has {there} of {bytes} bytes from {at}").into());
            }
            On::Change(Watched::Memory { space, lane, address, bytes })
        }
        [] => return Err("a register or an address is missing".to_owned().into()),
    };
    let what = if matches!(on, On::Store(_)) { "is written" } else { "changes" };
    let number = debugger.stops.add(on, only, call.rest);
    text(format!("stop {number} when {} {what}\n", head.join(" ")))
}

fn stops(call: &mut Call<'_>) -> Done {
    lines(call.debugger.stops.iter().map(|stop| format!("{:>3}  {}", stop.number, stop.text)), "no stops")
}

fn delete(call: &mut Call<'_>) -> Done {
    let stops = &mut call.debugger.stops;
    match call.words[..] {
        ["all"] => stops.clear(),
        [word] if word.parse().is_ok_and(|number| stops.remove(number)) => {}
        _ => return Err(format!("`{}` is no stop", call.rest).into()),
    }
    Ok(Answer::default())
}

fn lanes(call: &mut Call<'_>) -> Done {
    let debugger = &*call.debugger;
    let line = |lane: usize| {
        let lane = Lane(lane as u8);
        let mark = if lane == debugger.lane() { '>' } else { ' ' };
        format!("{mark}{:>3}  {}", lane.0, debugger.why(lane))
    };
    lines((0..debugger.width()).map(line), "")
}

fn why(debugger: &Debugger, lane: Lane) -> Done {
    text(format!("lane {}: {}\n", lane.0, debugger.why(lane)))
}

fn registers(call: &mut Call<'_>) -> Done {
    if call.words.is_empty() {
        return text(all_registers(call.debugger));
    }
    let mut lines = String::new();
    for word in &call.words {
        let register = register(call.debugger, word)?;
        let values = call.debugger.stepping().read(call.debugger.group(), register);
        let values = values.ok_or_else(|| format!("the group has no {word} now"))?;
        for (lane, value) in values.iter().enumerate() {
            let _ = writeln!(lines, "{word}@{lane:<3} {}", shown(*value));
        }
    }
    text(lines)
}

fn set(call: &mut Call<'_>) -> Done {
    let [place, value] = call.words[..] else {
        return Err("a register and a number are wanted".to_owned().into());
    };
    let (register, of) = place_of(call.debugger, place)?;
    let lane = of.unwrap_or(call.debugger.lane());
    let value = bits(value).ok_or_else(|| format!("`{value}` is no number"))?;
    let group = call.debugger.group();
    if !call.debugger.change(Change::Register { group, register, lane, value }) {
        return Err(format!("{place} of lane {} does not take {value:#x} here", lane.0).into());
    }
    text(format!("{}@{} is {}\n", place.split('@').next().unwrap_or(place), lane.0, shown(value)))
}

fn write(call: &mut Call<'_>) -> Done {
    let [space, at, ref values @ ..] = call.words[..] else {
        return Err("a space and an address are missing".to_owned().into());
    };
    let (space, address, _) = range(call.debugger, space, at, &[], 0)?;
    let mut bytes = Vec::new();
    for value in values {
        let value = bits(value).ok_or_else(|| format!("`{value}` is no number"))?;
        bytes.extend(value.to_le_bytes());
    }
    if bytes.is_empty() {
        return Err("a number is missing".to_owned().into());
    }
    let (group, lane, many) = (call.debugger.group(), call.debugger.lane(), bytes.len());
    if !call.debugger.change(Change::Memory { space, group, lane, address, bytes }) {
        return Err(format!("{space} does not take {many} bytes at {at}").into());
    }
    text(format!("{many} bytes of {space} from {at} on are changed\n"))
}

fn list(call: &mut Call<'_>) -> Done {
    let around = match call.words.first() {
        Some(word) => Some(address(call.debugger, Some(word))?),
        None => call.debugger.issue().map(|issue| issue.pc),
    };
    text(listing(call.debugger, around, 6))
}

fn events(call: &mut Call<'_>) -> Done {
    lines(
        call.debugger.events().iter().map(|(group, event)| format!("group {group}: {event:?}")),
        "no events",
    )
}

fn group(call: &mut Call<'_>) -> Done {
    if let Some(word) = call.words.first() {
        let group = word.parse().ok().filter(|group| call.debugger.choose_group(*group));
        let last = call.debugger.stepping().groups().saturating_sub(1);
        group.ok_or_else(|| format!("`{word}` is no group of 0 to {last}"))?;
    }
    text(position(call.debugger))
}

fn lane(call: &mut Call<'_>) -> Done {
    let lane = call.lane(0)?;
    call.debugger.choose_lane(lane);
    why(call.debugger, lane)
}

fn mark(call: &mut Call<'_>) -> Done {
    call.debugger.marked = Some(call.debugger.digest());
    Ok(Answer::default())
}

fn expect(call: &mut Call<'_>) -> Done {
    let debugger = &*call.debugger;
    let fails = match call.words[..] {
        ["at", word] => {
            let wanted =
                place(debugger, word).ok_or_else(|| format!("`{word}` is no address of an instruction"))?;
            match debugger.issue() {
                Some(issue) if issue.pc == wanted => None,
                Some(issue) => Some(format!("the group is at {}", debugger.spelled(issue.pc))),
                None => Some("the group does not run".to_owned()),
            }
        }
        ["lane", lane, ref wanted @ ..] => {
            let number = lane.parse().map_err(|_| format!("`{lane}` is no lane"))?;
            let why = debugger.why(Lane(number));
            (!why.contains(&wanted.join(" "))).then(|| format!("lane {lane}: {why}"))
        }
        ["marked"] => {
            let marked = debugger.marked.ok_or_else(|| "`mark` has remembered no state".to_owned())?;
            let after = || counted(debugger.position(), "instruction");
            (marked != debugger.digest()).then(|| format!("the state after {} is another", after()))
        }
        _ => {
            let condition = condition_of(debugger, call.rest)?;
            condition.holds(debugger.stepping(), debugger.group()).is_none().then(|| {
                let values =
                    debugger.stepping().read(debugger.group(), condition.register).unwrap_or_default();
                let lane = condition.lane.unwrap_or(debugger.lane());
                let value = values.get(lane.index()).map_or("not there".to_owned(), |value| shown(*value));
                format!("in lane {} it is {value}", lane.0)
            })
        }
    };
    fails.map_or(Ok(Answer::default()), |found| Err(Refused::Fails(found)))
}

/// A number: decimal, or hexadecimal behind 0x.
fn number(word: &str) -> Option<u32> {
    match word.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None => word.parse().ok(),
    }
}

/// A number, or what is wrong with it.
fn numeral(word: &str) -> Result<u32, String> {
    number(word).ok_or_else(|| format!("`{word}` is no number"))
}

/// A lane of the group by its number.
fn lane_of(debugger: &Debugger, word: &str) -> Result<Lane, String> {
    let lane = word.parse::<u8>().ok().filter(|lane| usize::from(*lane) < debugger.width());
    lane.map(Lane).ok_or_else(|| format!("`{word}` is no lane of 0 to {}", debugger.width() - 1))
}

/// A space, an address in it and a number of bytes, `otherwise` without a word for it.
fn range(
    debugger: &Debugger,
    space: &str,
    at: &str,
    bytes: &[&str],
    otherwise: u32,
) -> Result<(&'static str, u32, u32), String> {
    let space = space_of(debugger, space)?;
    let address = number(at).ok_or_else(|| format!("`{at}` is no address"))?;
    let bytes = match *bytes {
        [] => otherwise,
        [word] => numeral(word)?,
        [_, more, ..] => return Err(format!("`{more}` is too much")),
    };
    Ok((space, address, bytes))
}

/// The address in an argument.
fn address(debugger: &Debugger, word: Option<&&str>) -> Result<u32, String> {
    let word = *word.ok_or_else(|| "an address is missing".to_owned())?;
    place(debugger, word).ok_or_else(|| format!("`{word}` is neither an instruction's address nor a label"))
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
    let lane = lane.filter(|lane| *lane != "any").map(|lane| lane_of(debugger, lane)).transpose()?;
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
    // Of two relations that begin at one place, the longer comes first.
    let found =
        Relation::ALL.into_iter().filter_map(|relation| Some((text.find(relation.name())?, relation)));
    let Some((at, relation)) = found.min_by_key(|(at, _)| *at) else {
        return Err(format!("`{text}` has none of ==, !=, <, <=, >, >="));
    };
    let (left, right) = (text[..at].trim(), text[at + relation.name().len()..].trim());
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
            let text = debugger.line(issue.pc).map(Line::code).unwrap_or_default();
            format!("{head}{}  {text}  for lanes {}\n", debugger.spelled(issue.pc), issue.mask)
        }
    }
}

/// The machine's own stack of the group, innermost first.
pub fn stack(debugger: &Debugger) -> String {
    let mut lines = String::new();
    for (depth, row) in debugger.stepping().stack(debugger.group()).iter().enumerate() {
        let _ = writeln!(lines, "{depth:>3}  {}", parts(debugger, row).join("  "));
    }
    if lines.is_empty() {
        lines.push_str("the stack is empty\n");
    }
    lines
}

/// The parts of a row of a stack, in words.
pub(super) fn parts(debugger: &Debugger, row: &StackRow) -> Vec<String> {
    let pc = row.pc.map(|pc| format!("to {}", debugger.spelled(pc)));
    let mask = row.mask.map(|mask| format!("lanes {mask}"));
    let count = row.count.map(|count| format!("count {count}"));
    [Some(row.kind.to_owned()), pc, mask, count].into_iter().flatten().collect()
}

/// Bytes of a memory as words, four in a row; `words` are the arguments of the command.
///
/// # Errors
/// Arguments that do not fit, in words.
pub fn memory(debugger: &Debugger, words: &[&str]) -> Result<String, String> {
    let [space, at, ref count @ ..] = *words else {
        return Err("a space and an address are missing".to_owned());
    };
    let (space, at, count) = range(debugger, space, at, count, 64)?;
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
pub fn all_registers(debugger: &Debugger) -> String {
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
