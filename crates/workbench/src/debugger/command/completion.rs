//! Completes the last word of a command line. The table of commands states the arguments of each command. The possible
//! completions of the word depend on these arguments.

use super::{COMMANDS, Command};
use crate::debugger::{Debugger, flow};

/// Maximum number of completions.
const MOST_COMPLETIONS: usize = 200;

/// Returns the texts that complete the last word of a line. The first word of a line is completed as the name of a
/// command. Each later word is completed as an argument of this command. If the first word is not a command, the whole
/// line is a formula.
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
    let name = line.split_whitespace().next().unwrap_or_default();
    let command = COMMANDS.iter().find(|command| command.names.contains(&name));
    let takes = command.map_or("FORMULA", |command| command.takes);
    let mut found = Vec::new();
    for argument in takes.split(|letter: char| !letter.is_ascii_alphabetic()).filter(|part| !part.is_empty())
    {
        found.extend(fitting(debugger, argument));
    }
    if command.is_some_and(Command::sets_flow) {
        found.extend(flow::words().map(str::to_owned));
    }
    found.retain(|name| fits(name));
    let mut seen = Vec::new();
    found.retain(|name| {
        let is_new = !seen.contains(name);
        seen.push(name.clone());
        is_new
    });
    found.truncate(MOST_COMPLETIONS);
    found
}

/// Returns the candidates for an argument of a command. `argument` is the argument's name in the table of commands. If
/// the argument's name is in lower case, the argument is the literal word of the name.
fn fitting(debugger: &Debugger, argument: &str) -> Vec<String> {
    let all = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<String>>();
    let spaces =
        || debugger.stepping().spaces().iter().map(|space| space.name.to_owned()).collect::<Vec<_>>();
    let registers = || debugger.register_names().into_iter().map(|(name, _)| name).collect::<Vec<_>>();
    match argument {
        "PLACE" => {
            let own = debugger.source().into_iter().flat_map(|source| source.labels().map(str::to_owned));
            own.chain(debugger.lines().iter().filter_map(|line| line.label.clone())).collect()
        }
        "REGISTER" => registers(),
        "SPACE" => spaces(),
        "FORMULA" | "CONDITION" | "TEXT" => [registers(), spaces(), all(&["step"])].concat(),
        "ONLY" => [all(&["if", "group", "hits"]), fitting(debugger, "CONDITION")].concat(),
        _ if argument.starts_with(|letter: char| letter.is_ascii_lowercase()) => all(&[argument]),
        _ => Vec::new(),
    }
}

/// Returns the last word of a line. A completion replaces this word.
pub fn last_word(line: &str) -> &str {
    let ends = |letter: char| letter.is_whitespace() || "(+*/%&|^<>=!,{".contains(letter);
    line.rsplit(ends).next().unwrap_or(line)
}
