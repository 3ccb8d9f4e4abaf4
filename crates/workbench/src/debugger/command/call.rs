//! The arguments and the answer of a command, and helpers that several commands use.

use reconverge_simt::Lane;
use thiserror::Error;

use super::position::describe;
use crate::debugger::names::{brief, lane_of, long_number, number, space_of};
use crate::debugger::{Debugger, Halt};

/// The reason why a command line is not executed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CommandError {
    /// The command does not exist. The first field is the command's name. The second field is the part of the message
    /// that suggests another command.
    #[error("unknown command `{0}`{1}; `help` lists the commands")]
    Unknown(String, String),
    /// The command does not accept these arguments.
    #[error("`{command}` takes {takes}: {why}")]
    Usage {
        /// The command.
        command: &'static str,
        /// Syntax of the command's arguments.
        takes: &'static str,
        /// The problem.
        why: String,
    },
    /// The condition of an `expect` command does not hold.
    #[error("expected {wanted}, but {found}")]
    Expectation {
        /// The condition.
        wanted: String,
        /// Description of the state that the command found.
        found: String,
    },
}

/// The answer to a command.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// Lines of text to print.
    pub text: String,
    /// The reason why the movement stopped, if the command is a movement.
    pub halt: Option<Halt>,
    /// Whether the debugger should exit.
    pub quit: bool,
}

/// The result of a command.
pub(super) type Done = Result<Answer, Refused>;

/// The reason why a command is not executed.
pub(super) enum Refused {
    /// The command does not accept these arguments. The field describes the problem.
    Usage(String),
    /// The condition of an `expect` command does not hold. The field describes the state that the command found.
    Fails(String),
}

impl From<String> for Refused {
    fn from(why: String) -> Refused {
        Refused::Usage(why)
    }
}

/// A command with its arguments.
pub(super) struct Call<'a> {
    pub(super) debugger: &'a mut Debugger,
    /// The text after the command's name.
    pub(super) rest: &'a str,
    /// The words of `rest`.
    pub(super) words: Vec<&'a str>,
}

impl Call<'_> {
    /// Parses the first word as a number of instructions. Returns `otherwise` if no word is present.
    pub(super) fn count(&self, otherwise: u64) -> Result<u64, String> {
        let Some(word) = self.words.first() else { return Ok(otherwise) };
        let count = long_number(word).filter(|count| *count > 0);
        count.ok_or_else(|| format!("expected a number of instructions, 1 or more, found `{word}`"))
    }

    /// Parses the word at index `word` as a lane. Returns the selected lane if that word is absent.
    pub(super) fn lane(&self, word: usize) -> Result<Lane, String> {
        self.words.get(word).map_or(Ok(self.debugger.lane()), |word| lane_of(self.debugger, word))
    }

    /// Runs `movement`, and returns an answer that describes why the movement stopped.
    pub(super) fn moved(&mut self, movement: impl FnOnce(&mut Debugger) -> Halt) -> Done {
        let halt = movement(self.debugger);
        let logs = self.debugger.take_logs().into_iter().map(|line| line + "\n");
        let text = logs.collect::<String>() + &describe(self.debugger, &halt);
        Ok(Answer { text, halt: Some(halt), quit: false })
    }
}

pub(super) fn text(text: String) -> Done {
    Ok(Answer { text, ..Answer::default() })
}

/// Returns the lines as an answer. If the iterator is empty, the answer is the text `none`.
pub(super) fn lines(lines: impl Iterator<Item = String>, none: &str) -> Done {
    let lines: Vec<String> = lines.collect();
    text(if lines.is_empty() { format!("{none}\n") } else { lines.join("\n") + "\n" })
}

/// Returns a user's text, shortened for a message.
pub(super) fn shortened(text: &str) -> String {
    brief(&format!("`{text}`")).trim_matches('`').to_owned()
}

/// Parses a memory space, an address in the space, and a number of bytes. If the number is absent, returns `otherwise`
/// as the number.
pub(super) fn range(
    debugger: &Debugger,
    words: &[&str],
    otherwise: u32,
) -> Result<(&'static str, u32, u32), String> {
    let (space, at, bytes) = space_and_address(debugger, words)?;
    let bytes = match *bytes {
        [] => otherwise,
        [word] => number(word)
            .filter(|bytes| *bytes > 0)
            .ok_or_else(|| format!("expected a number of bytes such as 16 or 0x40, found `{word}`"))?,
        [_, more, ..] => return Err(format!("unexpected `{more}`")),
    };
    Ok((space, at, bytes))
}

/// Parses a memory space and an address in the space. Also returns the words after the address. The form is `SPACE
/// ADDRESS`, or `SPACE[ADDRESS]` as in formulas.
pub(super) fn space_and_address<'a, 'w>(
    debugger: &Debugger,
    words: &'a [&'w str],
) -> Result<(&'static str, u32, &'a [&'w str]), String> {
    let spaces = debugger.stepping().spaces();
    let example = spaces.first().map_or("g", |space| space.name);
    let (space, at, rest) = match *words {
        [] => return Err(format!("a space and an address are missing, such as `{example} 0x10`")),
        [word, ref rest @ ..] if bracketed(word).is_some_and(|(_, at)| !at.is_empty()) => {
            let (space, at) = bracketed(word).unwrap_or_default();
            (space_of(debugger, space)?, at, rest)
        }
        [word] => {
            let space = space_of(debugger, word)?;
            return Err(format!("an address in {space} is missing, such as `{space} 0x10`"));
        }
        [space, at, ref rest @ ..] => (space_of(debugger, space)?, at, rest),
    };
    let address = number(at).ok_or_else(|| {
        format!("expected an address in {space} such as 16 or 0x10, up to 0xffffffff, found `{at}`")
    })?;
    Ok((space, address, rest))
}

/// Splits `SPACE[ADDRESS]` into the space and the address.
pub(super) fn bracketed(word: &str) -> Option<(&str, &str)> {
    word.strip_suffix(']')?.split_once('[')
}

/// Parses an argument as an address, a label or a source line, and returns the address.
pub(super) fn address(debugger: &Debugger, word: Option<&&str>) -> Result<u32, String> {
    let word = *word.ok_or_else(|| "a place is missing: an address, a label or a line".to_owned())?;
    debugger.named_place(word)
}
