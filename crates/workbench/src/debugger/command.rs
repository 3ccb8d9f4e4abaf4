//! The debugger's command line: a line of text in, lines of text out.

use std::fmt::Write;

use reconverge_isa::source::closest;
use reconverge_simt::{Event, Lane, Mask, StackRow};
use reconverge_trace::place;
use thiserror::Error;

use super::formula::Formula;
use super::log::LogText;
use super::names::{bits, brief, lane_of, no_hits, number, numeral, place_of, shown_in, space_of};
use super::stop::{FlowChange, Hits, On, Only, Watched};
use super::table::{self, Notation};
use super::{Change, Debugger, Halt, flow};
use crate::error::counted;
use crate::listing::Line;
use crate::session::GroupState;

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
    row(&["out", "o"], "", "continue until the group's stack has fewer entries", |call| call.moved(|debugger| debugger.out(BUDGET))),
    row(&["follow", "f"], "[LANE]", "continue to the next instruction that the lane takes part in", follow),
    row(&["until", "u"], "PLACE", "continue until the group is in front of a place", until),
    row(&["continue", "c"], "[COUNT]", "continue to the next stop, or for COUNT instructions", resume),
    row(&["back", "b"], "[COUNT]", "go back by instructions of the group", back),
    row(&["back-follow", "bf"], "[LANE]", "go back to the last instruction that the lane took part in", back_follow),
    row(&["back-continue", "bc"], "", "go back to the last stop", |call| call.moved(|debugger| debugger.back_until(&mut |_| false))),
    row(&["goto", "g"], "STEP", "go to a step: that many instructions of the launch have run", go_to),
    row(&["break", "br"], "PLACE [ONLY]", "stop in front of an instruction", break_at),
    row(&["log"], "PLACE [ONLY] : TEXT", "write a text there instead of stopping; {FORMULA} in it is a value", log_at),
    row(&["stop", "st"], "diverge|resume|reconverge|lane LANE|if CONDITION [ONLY]", "stop when the flow changes, or when a condition holds", stop),
    row(&["watch", "wa"], "REGISTER[@LANE] | SPACE ADDRESS [BYTES] | ADDRESS [ONLY]", "stop when a register or memory changes, or when an address is written", watch),
    row(&["stops"], "", "list the stops", stops),
    row(&["delete", "d"], "NUMBER|all", "remove a stop", delete),
    row(&["where", "w"], "", "the next instruction, its lanes, and the place in the launch", |call| text(position(call.debugger))),
    row(&["lanes", "l"], "", "every lane, and why it runs or does not", lanes),
    row(&["why", "y"], "[LANE]", "why the lane runs or does not", |call| why(call.debugger, call.lane(0)?)),
    row(&["stack", "k"], "", "the machine's own stack, innermost first", |call| text(stack(call.debugger))),
    row(&["print", "p"], "FORMULA", "a value: $r1, $r3@5 + 1, g[0x10]; lanes with equal values share a line", print),
    row(&["registers", "r"], "[REGISTER…]", "registers of the lane, or these registers of all lanes", registers),
    row(&["table", "t"], "[REGISTER…]", "lanes by registers: those that are not 0, or these", registers_by_lane),
    row(&["memory", "m"], "SPACE ADDRESS [BYTES]", "bytes of a memory", |call| text(memory(call.debugger, &call.words)?)),
    row(&["set"], "REGISTER[@LANE] NUMBER | mask|token|entry|counter|predicate …", "change a register of the lane, or flow state", set),
    row(&["write"], "SPACE ADDRESS NUMBER…", "change 32-bit words of a memory", write),
    row(&["list", "i"], "[PLACE]", "the program around the next instruction, or a place", list),
    row(&["source", "v"], "[PLACE]", "the source around the next instruction, or a place", source),
    row(&["events", "e"], "", "what the last instruction did", events),
    row(&["group"], "[NUMBER]", "the group that questions are about", group),
    row(&["lane"], "[NUMBER]", "the lane that questions are about", lane),
    row(&["groups"], "", "the groups that run", |call| text(groups(call.debugger))),
    row(&["state"], "", "a number that is equal for equal states", |call| text(format!("{:016x}\n", call.debugger.digest()))),
    row(&["mark"], "", "remember this state for `expect marked`", mark),
    row(&["expect"], "CONDITION | at PLACE | lane LANE WORD | marked", "end a script with status 1 unless it holds", expect),
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

/// Returns the help of all commands, in lines of up to 80 characters.
pub fn help() -> String {
    let mut text = String::new();
    for Command { names, takes, help, .. } in COMMANDS {
        let head = format!("{:<16} {takes}", names.join(", "));
        let _ = match head.trim_end().len() {
            ..28 => writeln!(text, "{head:<28} {help}"),
            _ => writeln!(text, "{head}\n{:<28} {help}", ""),
        };
    }
    let mut lines = String::new();
    for line in text.lines() {
        lines += &wrapped(line, 29);
    }
    lines + HELP
}

/// Columns of a line of the help.
const COLUMNS: usize = 80;

/// Breaks a line between words; what follows begins at column `indent`.
fn wrapped(line: &str, indent: usize) -> String {
    let (mut lines, mut rest) = (String::new(), line.to_owned());
    while rest.chars().count() > COLUMNS {
        let end = rest.char_indices().nth(COLUMNS).map_or(rest.len(), |(end, _)| end);
        let Some(at) = rest[..end].rfind(' ').filter(|at| *at > indent) else { break };
        let _ = writeln!(lines, "{}", rest[..at].trim_end());
        rest = format!("{:indent$}{}", "", &rest[at + 1..]);
    }
    lines + rest.trim_end() + "\n"
}

const HELP: &str = "
PLACE: an address, a label of the source or the listing, or a line of the source
  as :20 or FILE.s:20. A line without an instruction means the next with one.
FORMULA: registers ($r3, R1.x, temp0.r), $r3@5 in lane 5, memory g[0x10], step,
  numbers, + - * / % & | ^ << >> and parentheses. A number with a point is a
  float, one with a minus sign an integer, otherwise unsigned (0x… too).
  Registers of R500 are floats, so that 2 is 2.0 next to them.
CONDITION: formulas with == != < <= > >= && ||; true for any active lane unless
  each register in it names a lane.
ONLY: if CONDITION, group NUMBER, hits 3 (the third time), hits >= 3, hits % 3;
  several of them fit.
LANES: 0-3,8, all, none, or bits as 0x…
set mask LANES                which lanes take part in the next instruction
set token N mask LANES        Tesla: an entry of the stack, 0 is the innermost;
  or address PLACE, or type BRANCH, CALL, CALL_LIM, BREAK, QUADON, JOINAT
set entry N active LANES      R700: an entry of the stack; of a loop also break
set counter branch LANE N     R500: the branch counter of a lane that waits
set counter loop N COUNT      R500, R700: iterations that a loop has left
set predicate …               R500: r, g, b, a or alu and LANES; R700: LANES
A trap always stops; a step backward undoes it. What `set` and `write` change
stays changed when its place is passed again. After the end, registers, memory
and stacks of the last state can be read.
";

/// All names of commands.
pub fn names() -> impl Iterator<Item = &'static str> {
    COMMANDS.iter().flat_map(|command| command.names.iter().copied())
}

/// Returns the texts that complete the last word of a line: names of commands, then registers, labels, spaces and words
/// that commands take.
pub fn completions(debugger: &Debugger, line: &str) -> Vec<String> {
    let word = last_word(line);
    let fits = |name: &str| name.starts_with(word);
    let is_first = line.trim_start().len() == word.len();
    if is_first {
        let names = COMMANDS.iter().filter_map(|command| command.names.first().copied());
        return names.filter(|name| fits(name)).map(str::to_owned).collect();
    }
    if word.is_empty() {
        return Vec::new();
    }
    const WORDS: [&str; 18] = [
        "diverge",
        "resume",
        "reconverge",
        "lane",
        "group",
        "hits",
        "all",
        "none",
        "marked",
        "mask",
        "token",
        "entry",
        "counter",
        "predicate",
        "branch",
        "loop",
        "address",
        "active",
    ];
    let mut found: Vec<String> =
        WORDS.iter().filter(|name| fits(name)).map(|name| (*name).to_owned()).collect();
    if let Some(source) = debugger.source() {
        found.extend(source.labels().filter(|name| fits(name)).map(str::to_owned));
    }
    found.extend(debugger.lines().iter().filter_map(|line| line.label.clone()).filter(|label| fits(label)));
    found.extend(
        debugger.stepping().spaces().iter().map(|space| space.name.to_owned()).filter(|name| fits(name)),
    );
    found.extend(debugger.register_names().into_iter().map(|(name, _)| name).filter(|name| fits(name)));
    found.truncate(MOST_COMPLETIONS);
    found
}

/// Returns the word at the end of a line that completions replace.
pub fn last_word(line: &str) -> &str {
    let ends = |letter: char| letter.is_whitespace() || "(+*/%&|^<>=!,{".contains(letter);
    line.rsplit(ends).next().unwrap_or(line)
}

/// Completions that are listed.
const MOST_COMPLETIONS: usize = 200;

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
        CommandError::Unknown(shortened(name), meant.unwrap_or_default())
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
            why: brief(&why),
        },
        Refused::Fails(found) => CommandError::Expectation { wanted: shortened(rest), found },
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
        let logs = self.debugger.take_logs().into_iter().map(|line| line + "\n");
        let text = logs.collect::<String>() + &describe(self.debugger, &halt);
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
    let position = word.parse().map_err(|_| format!("`{word}` is not a number"))?;
    call.moved(|debugger| debugger.go_to(position))
}

fn break_at(call: &mut Call<'_>) -> Done {
    let (head, only) = only(call.debugger, &call.words)?;
    let address = address(call.debugger, head.first())?;
    if let Some(more) = head.get(1) {
        return Err(format!("`{more}` is not a condition").into());
    }
    let number = call.debugger.stops.add(On::Address(address), only, call.rest);
    text(format!("stop {number} at {}\n", spelled_place(call.debugger, address)))
}

/// An address, and its place in the source if that is known: `0x38, collatz.s:14`.
fn spelled_place(debugger: &Debugger, address: u32) -> String {
    let place = debugger.source_place(address).map(|place| format!(", {place}")).unwrap_or_default();
    debugger.spelled(address) + &place
}

fn log_at(call: &mut Call<'_>) -> Done {
    let (head, text_of) = call.rest.split_once(" : ").ok_or_else(|| "` : TEXT` is missing".to_owned())?;
    let words: Vec<&str> = head.split_whitespace().collect();
    let (head, only) = only(call.debugger, &words)?;
    let address = address(call.debugger, head.first())?;
    if let Some(more) = head.get(1) {
        return Err(format!("`{more}` is not a condition").into());
    }
    let log = Some(LogText::parse(call.debugger, text_of.trim())?);
    let number = call.debugger.stops.add(On::Address(address), Only { log, ..only }, call.rest);
    text(format!("stop {number} writes at {}\n", spelled_place(call.debugger, address)))
}

fn stop(call: &mut Call<'_>) -> Done {
    let (head, only) = only(call.debugger, &call.words)?;
    let on = match head[..] {
        ["lane", _] => On::Lane(call.lane(1)?),
        [] if only.condition.is_some() => On::Always,
        [name] => {
            let change = FlowChange::ALL.into_iter().find(|change| change.name() == name);
            let meant = || closest(name, FlowChange::ALL.map(FlowChange::name));
            On::Flow(change.ok_or_else(|| match meant() {
                Some(meant) => format!("`{name}` is none of these, did you mean `{meant}`?"),
                None => format!("`{name}` is none of these"),
            })?)
        }
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
        _ => return Err(format!("`{}` is not a stop", call.rest).into()),
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
        let register = call.debugger.register(word)?;
        let values = call.debugger.stepping().read(call.debugger.group(), register);
        let values = values.ok_or_else(|| format!("the group has no {word} now"))?;
        for (lane, value) in values.iter().enumerate() {
            let _ = writeln!(lines, "{word}@{lane:<3} {}", shown_in(register, *value));
        }
    }
    text(lines)
}

fn print(call: &mut Call<'_>) -> Done {
    if call.rest.is_empty() {
        return Err("a formula is missing".to_owned().into());
    }
    let formula = Formula::parse(call.debugger, call.rest)?;
    text(printed(call.debugger, &formula)?)
}

/// The values of a formula: lanes with equal values share a line.
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

fn registers_by_lane(call: &mut Call<'_>) -> Done {
    let debugger = &*call.debugger;
    let group = debugger.group();
    let rows = match call.words[..] {
        [] => table::rows(debugger, group, false),
        ref words => {
            let row = |word: &&str| {
                let register = debugger.register(word)?;
                table::row(debugger, group, register).ok_or_else(|| format!("the group has no {word} now"))
            };
            words.iter().map(row).collect::<Result<Vec<_>, String>>()?
        }
    };
    match rows.is_empty() {
        true => text("all registers are 0\n".to_owned()),
        false => text(table::text(debugger, &rows, Notation::of(debugger.isa()))),
    }
}

fn set(call: &mut Call<'_>) -> Done {
    if call.words.first().is_some_and(|word| flow::is_flow(word)) {
        return text(flow::set(call.debugger, &call.words)?);
    }
    let [place, value] = call.words[..] else {
        let meant = call.words.first().and_then(|word| flow::meant(word));
        let meant = meant.map(|meant| format!(", did you mean `{meant}`?")).unwrap_or_default();
        let wanted =
            "a register and a number are wanted, or flow state: mask, token, entry, counter, predicate";
        return Err(format!("{wanted}{meant}").into());
    };
    let (register, of) = place_of(call.debugger, place)?;
    let lane = of.unwrap_or(call.debugger.lane());
    let value = bits(value).ok_or_else(|| format!("`{value}` is not a number"))?;
    let group = call.debugger.group();
    if !call.debugger.change(Change::Register { group, register, lane, value }) {
        return Err(format!("{place} of lane {} does not take {value:#x} here", lane.0).into());
    }
    text(format!(
        "{}@{} is {}\n",
        place.split('@').next().unwrap_or(place),
        lane.0,
        shown_in(register, value)
    ))
}

fn write(call: &mut Call<'_>) -> Done {
    let [space, at, ref values @ ..] = call.words[..] else {
        return Err("a space and an address are missing".to_owned().into());
    };
    let (space, address, _) = range(call.debugger, space, at, &[], 0)?;
    let mut bytes = Vec::new();
    for value in values {
        let value = bits(value).ok_or_else(|| format!("`{value}` is not a number"))?;
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
        None => call.debugger.place(),
    };
    text(listing(call.debugger, around, 6))
}

fn source(call: &mut Call<'_>) -> Done {
    let debugger = &*call.debugger;
    let source = debugger
        .source()
        .ok_or_else(|| "the program's source is not known: `list` shows the program".to_owned())?;
    let around = match call.words.first() {
        Some(word) => Some(address(debugger, Some(word))?),
        None => debugger.place(),
    };
    let at = around.and_then(|address| source.line_of(address)).unwrap_or(1);
    let lines = source_lines(debugger).into_iter().skip(at.saturating_sub(7)).take(13);
    text(lines.map(|line| line.to_string() + "\n").collect())
}

/// A line of a program or source for a screen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramLine {
    /// The address of its first instruction.
    pub address: Option<u32>,
    /// Whether the next instruction is on it.
    pub is_next: bool,
    /// Whether a stop is on it.
    pub has_stop: bool,
    /// Number of the line, or the address, and the text.
    pub text: String,
}

impl std::fmt::Display for ProgramLine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mark = |is: bool, mark: char| if is { mark } else { ' ' };
        match self.address {
            // A label, or a line of the source without an instruction.
            None if !self.is_next => f.write_str(&self.text),
            _ => write!(f, "{}{}{}", mark(self.is_next, '>'), mark(self.has_stop, '*'), self.text),
        }
    }
}

/// Returns all lines of the user's own source.
pub fn source_lines(debugger: &Debugger) -> Vec<ProgramLine> {
    let Some(source) = debugger.source() else { return Vec::new() };
    let next = debugger.issue().and_then(|issue| source.line_of(issue.pc));
    let stops: Vec<usize> = stopped_at(debugger).filter_map(|address| source.line_of(address)).collect();
    let line = |(at, text): (usize, &String)| {
        let number = at + 1;
        let address = source.instruction_at(number).filter(|(_, line)| *line == number);
        ProgramLine {
            address: address.map(|(address, _)| address),
            is_next: next == Some(number),
            has_stop: stops.contains(&number),
            text: format!("{number:>4}  {}", text.replace('\t', "    ")),
        }
    };
    source.lines().iter().enumerate().map(line).collect()
}

/// The addresses that have a stop.
fn stopped_at(debugger: &Debugger) -> impl Iterator<Item = u32> {
    debugger.stops.iter().filter_map(|stop| match stop.on {
        On::Address(address) => Some(address),
        _ => None,
    })
}

/// Returns all lines of the listing, with labels on lines of their own.
pub fn program_lines(debugger: &Debugger) -> Vec<ProgramLine> {
    let next = debugger.issue().map(|issue| issue.pc);
    let stops: Vec<u32> = stopped_at(debugger).collect();
    let mut lines = Vec::new();
    for line in debugger.lines() {
        let address = line.address.unwrap_or(0);
        if let Some(label) = &line.label {
            let text = format!("{label}:");
            lines.push(ProgramLine { address: None, is_next: false, has_stop: false, text });
        }
        let indent = 2 * line.depth;
        let text = format!("{:>7}  {:indent$}{}", debugger.spelled(address), "", line.code());
        let (is_next, has_stop) = (next == Some(address), stops.contains(&address));
        lines.push(ProgramLine { address: Some(address), is_next, has_stop, text });
    }
    lines
}

fn events(call: &mut Call<'_>) -> Done {
    let debugger = &*call.debugger;
    let mut memory = MemoryNames::default();
    let line = |(group, event): &(usize, Event)| {
        let space = memory.of(debugger, event);
        format!("group {group}: {}", event_text(debugger, event, space))
    };
    let texts: Vec<String> = debugger.events().iter().map(line).collect();
    lines(texts.into_iter(), "no events")
}

/// The memory of the accesses in a list of events: known from the instruction that was issued last, and for an instruction with
/// several operands in memory from the number of the load.
#[derive(Default)]
struct MemoryNames {
    pc: u32,
    /// The lanes of the loads since then.
    loads: Vec<Lane>,
}

impl MemoryNames {
    fn of<'a>(&mut self, debugger: &'a Debugger, event: &Event) -> Option<&'a str> {
        match event {
            Event::Issue { pc, .. } => {
                (self.pc, self.loads) = (*pc, Vec::new());
                None
            }
            Event::Load { lane, .. } => {
                let number = self.loads.iter().filter(|known| *known == lane).count();
                self.loads.push(*lane);
                match &debugger.accessed(self.pc)?.loads[..] {
                    [one] => Some(one),
                    several => several.get(number).map(String::as_str),
                }
            }
            Event::Store { .. } => debugger.accessed(self.pc)?.stores.as_deref(),
            _ => None,
        }
    }
}

/// An event in words, with the machine's names of registers; `space` is the memory of an access.
fn event_text(debugger: &Debugger, event: &Event, space: Option<&str>) -> String {
    match event {
        Event::Issue { pc, mask } => format!("issue {} for lanes {mask}", debugger.spelled(*pc)),
        Event::Diverge { taken, not } => format!("diverge: lanes {taken} first, then {not}"),
        Event::Resume { mask } => format!("resume: lanes {mask}"),
        Event::Reconverge { mask } => format!("reconverge: lanes {mask}"),
        Event::Push { kind } => format!("push {kind}"),
        Event::Pop { kind } => format!("pop {kind}"),
        Event::Jump { to } => format!("jump to {}", debugger.spelled(*to)),
        Event::Write { lane, register, value } => {
            let name = debugger.stepping().register_name(*register);
            format!("lane {} writes {value:#010x} to {name}", lane.0)
        }
        Event::Load { lane, address } => format!("lane {} loads {}", lane.0, place(space, *address)),
        Event::Store { lane, address, value } => {
            format!("lane {} stores {value:#010x} at {}", lane.0, place(space, *address))
        }
        Event::Trap { mask } => format!("trap: lanes {mask}"),
    }
}

fn group(call: &mut Call<'_>) -> Done {
    if let Some(word) = call.words.first() {
        let group = word.parse().ok().filter(|group| call.debugger.choose_group(*group));
        let last = call.debugger.stepping().groups().saturating_sub(1);
        group.ok_or_else(|| format!("`{word}` is not a group of 0 to {last}"))?;
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
            let wanted = debugger.named_place(word)?;
            match debugger.issue() {
                Some(issue) if issue.pc == wanted => None,
                Some(issue) => Some(format!("the group is at {}", debugger.spelled(issue.pc))),
                None => Some("the group does not run".to_owned()),
            }
        }
        ["lane", lane, ref wanted @ ..] => {
            let lane = lane_of(debugger, lane)?;
            if wanted.is_empty() {
                return Err("what the lane does is missing: `lanes` shows it".to_owned().into());
            }
            let why = debugger.why(lane);
            let is_so = is_said(&wanted.join(" "), &[&debugger.why_short(lane), &why]);
            (!is_so).then(|| format!("lane {}: {why}", lane.0))
        }
        ["marked"] => {
            let marked = debugger.marked.ok_or_else(|| "`mark` has remembered no state".to_owned())?;
            let after = || counted(debugger.position(), "instruction");
            (marked != debugger.digest()).then(|| format!("the state after {} is another", after()))
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

/// Returns whether a reason starts with the wanted words, or has them after a colon. Only whole words match. A leading
/// `it` or `it has` of a reason does not count.
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

/// A user's text for a message.
fn shortened(text: &str) -> String {
    brief(&format!("`{text}`")).trim_matches('`').to_owned()
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
    let address = number(at).ok_or_else(|| format!("`{at}` is not an address"))?;
    let bytes = match *bytes {
        [] => otherwise,
        [word] => numeral(word)?,
        [_, more, ..] => return Err(format!("`{more}` is too much")),
    };
    Ok((space, address, bytes))
}

/// The address in an argument.
fn address(debugger: &Debugger, word: Option<&&str>) -> Result<u32, String> {
    let word = *word.ok_or_else(|| "a place is missing: an address, a label or a line".to_owned())?;
    debugger.named_place(word)
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
        let known = match *what {
            "if" => only.condition.is_some(),
            "hits" => only.hits.is_some(),
            _ => only.group.is_some(),
        };
        if known {
            return Err(format!("`{what}` stands there twice"));
        }
        match *what {
            "if" => only.condition = Some(Formula::parse(debugger, &text)?),
            "hits" => only.hits = Some(Hits::parse(&text).ok_or_else(|| no_hits(&text))?),
            _ => {
                let group = text.parse().ok().filter(|group| *group < debugger.stepping().groups());
                only.group = Some(group.ok_or_else(|| format!("`{text}` is not a group"))?);
            }
        }
        rest = &after[end..];
    }
    Ok((head.to_vec(), only))
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
    lines += &flow::branch_counters(debugger);
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

/// Lines of the program around an address: `many` instructions before and after it, with their labels.
pub fn listing(debugger: &Debugger, around: Option<u32>, many: usize) -> String {
    let lines = program_lines(debugger);
    let instructions: Vec<usize> = (0..lines.len()).filter(|at| lines[*at].address.is_some()).collect();
    let at =
        around.and_then(|address| instructions.iter().position(|at| lines[*at].address == Some(address)));
    let at = at.unwrap_or(0);
    let part = &instructions[at.saturating_sub(many)..instructions.len().min(at + many + 1)];
    let (Some(first), Some(last)) = (part.first(), part.last()) else { return String::new() };
    // The label of the first line is before it.
    let labelled = first.checked_sub(1).filter(|before| lines[*before].address.is_none());
    lines[labelled.unwrap_or(*first)..=*last].iter().map(|line| format!("{line}\n")).collect()
}

/// All registers of the lane that are not zero.
pub fn all_registers(debugger: &Debugger) -> String {
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
