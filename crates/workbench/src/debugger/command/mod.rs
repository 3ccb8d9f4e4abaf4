//! The debugger's command line. Each line is a command, and its answer is text.
//!
//! [`COMMANDS`] is the table of commands, with their names, arguments and help. `help.rs` prints the table, and
//! `completion.rs` completes words with the names and arguments in the table. `call.rs` defines the arguments and the
//! answer of a command. Each remaining module implements the commands of one subject.

mod call;
mod completion;
mod events;
mod expect;
mod help;
mod lanes;
mod movement;
mod position;
mod program;
mod stopping;
mod values;

use reconverge_isa::source::closest;

use super::Debugger;
use super::names::brief;
use call::{Call, Done, Refused, shortened, text};

pub use call::{Answer, CommandError};
pub use completion::{completions, last_word};
pub use help::help;
pub(super) use lanes::parts;
pub use lanes::stack;
pub use position::BUDGET;
pub use program::{ProgramLine, program_lines, source_lines};
pub use values::memory;

/// A command, one row of [`COMMANDS`].
pub struct Command {
    /// The names of the command. The shortest name comes last.
    pub names: &'static [&'static str],
    /// Syntax of the arguments. The text is empty if the command does not have arguments.
    pub takes: &'static str,
    /// The sentence that the help shows for the command.
    pub help: &'static str,
    run: fn(&mut Call<'_>) -> Done,
}

impl Command {
    /// Returns whether the command changes flow state. The arguments of a command that changes flow state depend on the
    /// machine.
    fn sets_flow(&self) -> bool {
        self.takes.contains(" …")
    }

    /// Returns whether the command takes at most one word.
    fn takes_one_word(&self) -> bool {
        !self.takes.contains([' ', '…']) && self.takes != "FORMULA"
    }
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
    row(&["step", "s"], "[COUNT]", "execute instructions of the group", movement::step),
    row(&["over", "n"], "", "execute the next instruction; for a call, also the callee", movement::over),
    row(&["out", "o"], "", "continue until the group's stack has fewer entries", movement::out),
    row(&["follow", "f"], "[LANE]", "continue to the next instruction that the lane executes", movement::follow),
    row(&["until", "u"], "PLACE", "continue until the instruction at a place is next", movement::until),
    row(&["continue", "c"], "[COUNT]", "continue to the next stop, or for COUNT instructions", movement::resume),
    row(&["back", "b"], "[COUNT]", "go back by COUNT instructions of the group", movement::back),
    row(&["back-follow", "bf"], "[LANE]", "go back to the last instruction that the lane executed", movement::back_follow),
    row(&["back-continue", "bc"], "", "go back to the last stop", movement::back_continue),
    row(&["goto", "g"], "STEP", "go to the state after STEP instructions of the launch", movement::go_to),
    row(&["break", "br"], "PLACE [ONLY]", "stop before an instruction", stopping::break_at),
    row(&["log"], "PLACE [ONLY] : TEXT", "print a text instead of stopping; {FORMULA} in the text prints a value", stopping::log_at),
    row(&["stop", "st"], "diverge|resume|reconverge|lane LANE|if CONDITION [ONLY]", "stop when the flow changes, or when a condition holds", stopping::stop),
    row(&["watch", "wa"], "REGISTER[@LANE] | SPACE ADDRESS [BYTES] | ADDRESS [ONLY]", "stop when a register or memory changes, or when an address is written", stopping::watch),
    row(&["stops"], "", "list the stops", stopping::stops),
    row(&["delete", "d"], "NUMBER|all", "remove a stop", stopping::delete),
    row(&["where", "w"], "", "the next instruction, its lanes, and the number of its step", lanes::place),
    row(&["lanes", "l"], "", "every lane, and why it runs or does not run", lanes::lanes),
    row(&["why", "y"], "[LANE]", "why the lane runs or does not run", lanes::why),
    row(&["stack", "k"], "", "the stack of the group, innermost entry first", lanes::stack_rows),
    row(&["print", "p"], "FORMULA", "a value: $r1, $r3@5 + 1, g[0x10]; lanes with equal values share a line", values::print),
    row(&["registers", "r"], "[REGISTER…]", "nonzero registers of the lane, or these registers in all lanes", values::registers),
    row(&["table", "t"], "[REGISTER…]", "a table of all lanes with nonzero registers, or with these registers", values::registers_by_lane),
    row(&["memory", "m"], "SPACE ADDRESS [BYTES]", "bytes of a memory", values::bytes),
    row(&["set"], "REGISTER[@LANE] NUMBER | mask|token|entry|counter|predicate …", "change a register of the lane, or flow state", values::set),
    row(&["write"], "SPACE ADDRESS NUMBER…", "change 32-bit words of a memory", values::write),
    row(&["list", "i"], "[PLACE]", "the program around the next instruction, or a place", program::list),
    row(&["source", "v"], "[PLACE]", "the source around the next instruction, or a place", program::source),
    row(&["events", "e"], "", "the effects of the last instruction", events::events),
    row(&["group"], "[NUMBER]", "select the group to which other commands refer", lanes::group),
    row(&["lane"], "[NUMBER]", "select the lane to which other commands refer", lanes::lane),
    row(&["groups"], "", "the groups that run", lanes::groups),
    row(&["state"], "", "a hash of the current state", expect::state),
    row(&["mark"], "", "store the current state for `expect marked`", expect::mark),
    row(&["expect"], "CONDITION | at PLACE | lane LANE WORD | marked", "end a script with status 1 if this does not hold", expect::expect),
    row(&["help", "h"], "", "this list", |_| text(help())),
    row(&["quit", "q"], "", "end", |_| Ok(Answer { quit: true, ..Answer::default() })),
];

/// Iterates over all names of commands.
pub fn names() -> impl Iterator<Item = &'static str> {
    COMMANDS.iter().flat_map(|command| command.names.iter().copied())
}

/// Executes a line. Empty lines and lines that begin with `#` have no effect.
///
/// # Errors
/// Returns an error if the line is not a command, or if the condition of an `expect` command is false.
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
    let most = if command.takes.is_empty() { 0 } else { 1 };
    let done = match call.words.get(most).filter(|_| command.takes_one_word()) {
        Some(more) => Err(Refused::Usage(format!("unexpected `{more}`"))),
        None => (command.run)(&mut call),
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
