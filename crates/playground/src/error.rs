//! Errors of requests.

use reconverge_isa::source::Diagnostic;
use reconverge_workbench::Error;
use reconverge_workbench::launch::LaunchFileError;
use reconverge_workbench::open::OpenError;
use reconverge_workbench::target::TargetError;
use serde::Serialize;

use crate::place::{SourcePlace, error_at};

/// The part of a request that has the error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultyPart {
    /// The request itself: not JSON, or an unknown field.
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
    /// The part that has the error.
    pub of: FaultyPart,
    /// The problem, in one sentence.
    pub message: String,
    /// Line of the launch file, counted from 1, if it is known.
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
    /// Returns an error in a part of the request.
    pub fn of(of: FaultyPart, message: impl ToString) -> PlayError {
        PlayError { of, message: in_place(message.to_string()), line: None, diagnostics: Vec::new() }
    }

    /// Returns an error in the request itself.
    pub fn request(error: serde_json::Error) -> PlayError {
        PlayError::of(FaultyPart::Request, error)
    }

    /// Returns the error of a source that does not assemble, with its diagnostics.
    pub fn source(source: &str, errors: &[Diagnostic]) -> PlayError {
        let message = match errors {
            [only] => only.to_string(),
            _ => format!("the program has {} errors", errors.len()),
        };
        let diagnostics = errors.iter().map(|error| error_at(source, error)).collect();
        PlayError { diagnostics, ..PlayError::of(FaultyPart::Source, message) }
    }

    /// Returns the error of a source or of words that cannot be opened.
    pub fn open(part: FaultyPart, source: &str, error: &OpenError) -> PlayError {
        match error {
            OpenError::Source(errors) => PlayError::source(source, errors),
            other => PlayError::of(part, other),
        }
    }

    /// Returns the error of a launch file that cannot be parsed. `added` is the number of lines before the text of
    /// the request.
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
        // The error has only texts and numbers, so the conversion to JSON does not fail.
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

/// Returns a message for the playground. A WebAssembly module does not have the option `--limits`, so the message
/// names the programs with larger limits instead.
fn in_place(message: String) -> String {
    if !cfg!(target_family = "wasm") || !message.contains("--limits") {
        return message;
    }
    let known = message.split("; --limits").next().unwrap_or_default();
    format!("{known}; the command line, or `reconverge serve`, has larger limits")
}
