//! Errors of requests.

use reconverge_isa::limits::INSTRUCTIONS;
use reconverge_isa::source::Diagnostic;
use reconverge_workbench::Error;
use reconverge_workbench::launch::LaunchFileError;
use reconverge_workbench::open::OpenError;
use reconverge_workbench::target::TargetError;
use serde::Serialize;

use crate::place::{SourcePlace, error_at};

/// The part of a request that contains the error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultyPart {
    /// The error is in the request. The request is not JSON or has an unknown field.
    Request,
    /// The program.
    Source,
    /// The launch file.
    Launch,
    /// The words.
    Words,
}

/// The reason why a request does not have a reply.
#[derive(Clone, Debug, Serialize)]
pub struct PlayError {
    /// The part that contains the error.
    pub of: FaultyPart,
    /// The problem, in one sentence.
    pub message: String,
    /// Line of the launch file, counted from 1. If the line is not known, this field is `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// The diagnostics of the source.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub diagnostics: Vec<SourcePlace>,
}

/// A reply with an error.
#[derive(Serialize)]
struct ErrorReply<'a> {
    error: &'a PlayError,
}

impl PlayError {
    /// Returns an error in the part `of` of the request.
    pub fn of(of: FaultyPart, message: impl ToString) -> PlayError {
        PlayError { of, message: in_place(&message.to_string()), line: None, diagnostics: Vec::new() }
    }

    /// Returns the error of a request that cannot be read.
    pub fn request(error: serde_json::Error) -> PlayError {
        PlayError::of(FaultyPart::Request, error)
    }

    /// Returns the error of a source that does not assemble. The error contains the diagnostics of the source.
    pub fn source(source: &str, errors: &[Diagnostic]) -> PlayError {
        let message = match errors {
            [only] => only.to_string(),
            _ => format!("the program has {} errors", errors.len()),
        };
        let diagnostics = errors.iter().map(|error| error_at(source, error)).collect();
        PlayError { diagnostics, ..PlayError::of(FaultyPart::Source, message) }
    }

    /// Returns the error for a source or for words that cannot be opened.
    pub fn open(part: FaultyPart, source: &str, error: &OpenError) -> PlayError {
        match error {
            OpenError::Source(errors) => PlayError::source(source, errors),
            other => PlayError::of(part, other),
        }
    }

    /// Returns the error of a launch file that cannot be parsed. `added` is the number of lines that the playground
    /// inserted before the text of the request.
    pub fn launch_file(error: &LaunchFileError, added: usize) -> PlayError {
        let (message, line) = match error {
            LaunchFileError::Field { error, line } => {
                let field = LaunchFileError::Field { error: error.clone(), line: None };
                (field.to_string(), *line)
            }
            other => (other.to_string(), None),
        };
        let line = line.and_then(|line| line.checked_sub(added)).filter(|line| *line > 0);
        PlayError { line, ..PlayError::of(FaultyPart::Launch, message) }
    }

    /// Returns the bytes of the reply.
    pub(crate) fn to_json(&self) -> Vec<u8> {
        // The error contains only texts and numbers, so the conversion to JSON does not fail.
        serde_json::to_vec(&ErrorReply { error: self }).unwrap_or_default()
    }
}

impl From<Error> for PlayError {
    fn from(error: Error) -> PlayError {
        PlayError::of(FaultyPart::Launch, error)
    }
}

impl From<TargetError> for PlayError {
    fn from(error: TargetError) -> PlayError {
        PlayError::of(FaultyPart::Source, error)
    }
}

/// An example of a parameter, for messages.
const PARAMETER: &str = ", for example param = [{ name = \"out\", buffer = \"u32[64]\" }]";

/// Rewrites the advice in a message for the playground. The user of the playground edits a launch file and has no
/// command-line options.
pub(crate) fn in_place(message: &str) -> String {
    let watchdog = format!("{} allows more", INSTRUCTIONS.raise);
    let message = message.replace(&watchdog, "`watchdog = N` in the launch allows more");
    let message = message.replace("the order of --buf and --arg", "the order of `param` in the launch");
    let message = match message.split_once(": add --buf ") {
        Some((known, _)) => format!("{known}: `param` in the launch states it{PARAMETER}"),
        None => message,
    };
    let Some((known, option)) = message.split_once("; --limits ") else { return message };
    if cfg!(target_family = "wasm") {
        format!("{known}; the command line, or `reconverge serve`, has larger limits")
    } else {
        format!("{known}; `reconverge serve` with --limits {option}")
    }
}

#[cfg(test)]
mod unit {
    use reconverge_isa::limits::LANES;

    use super::*;

    #[test]
    fn remedies_are_those_of_the_page() {
        let lanes = in_place(&LANES.check(1 << 40).unwrap_err().to_string());
        assert!(lanes.ends_with("; `reconverge serve` with --limits lanes=N allows more"), "{lanes}");
        let watchdog = in_place(&INSTRUCTIONS.check(1 << 40).unwrap_err().to_string());
        assert!(watchdog.ends_with("`watchdog = N` in the launch allows more"), "{watchdog}");
        assert!(!watchdog.contains("--"), "{watchdog}");
        let source = ".isa tesla\n.kernel k\n.param s[0x10] 4 out\nexit nop\n";
        let error = crate::launch::run(source, "block = [1]").unwrap_err();
        assert!(error.message.contains("`param` in the launch"), "{error:?}");
        assert!(!error.message.contains("--"), "{error:?}");
    }
}
