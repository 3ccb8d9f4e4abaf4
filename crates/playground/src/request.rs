//! The requests of the page.

use serde::Deserialize;

/// A request: an object whose `request` names the variant in snake case. `source` is the text of a program, `launch` that of a
/// launch file, which may lack `isa` if the source states the machine. `program` in it has no effect.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "request", rename_all = "snake_case", deny_unknown_fields)]
pub enum PlayRequest {
    /// Machines, chips and limits.
    Describe,
    /// Runs a kernel of `bench`.
    Kernel {
        /// The machine.
        isa: String,
        /// `mandel` or `collatz`.
        kernel: String,
        /// Lanes.
        lanes: u32,
    },
    /// The messages about a source and its launch file, with fixes.
    Diagnose {
        /// The program.
        source: String,
        /// The launch file.
        #[serde(default)]
        launch: String,
    },
    /// The explanation of a place of the source.
    Hover {
        /// The program.
        source: String,
        /// The launch file.
        #[serde(default)]
        launch: String,
        /// The place in UTF-16 code units.
        at: usize,
    },
    /// The texts that fit at a place of the source.
    Complete {
        /// The program.
        source: String,
        /// The launch file.
        #[serde(default)]
        launch: String,
        /// The place in UTF-16 code units.
        at: usize,
    },
    /// Runs the launch and judges it.
    Run {
        /// The program.
        source: String,
        /// The launch file.
        launch: String,
    },
    /// Runs the launch and records it: a run as the page of `--html` has it.
    Record {
        /// The program.
        source: String,
        /// The launch file.
        launch: String,
        /// The heading of the page.
        title: String,
    },
    /// The text of a program's words.
    Disassemble(WordsGiven),
    /// Words to text and back.
    RoundTrip(WordsGiven),
}

impl PlayRequest {
    /// Whether the request runs a program, which can take any time.
    pub fn runs(&self) -> bool {
        matches!(self, PlayRequest::Kernel { .. } | PlayRequest::Run { .. } | PlayRequest::Record { .. })
    }
}

/// Words of a program: a file in hexadecimal digits, or in base64.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WordsGiven {
    /// The machine, if the file does not state it.
    #[serde(default)]
    pub isa: Option<String>,
    /// The chip.
    #[serde(default)]
    pub chip: Option<String>,
    /// The program type.
    #[serde(default)]
    pub stage: Option<String>,
    /// The text of a file: words as hexadecimal digits, a listing, a log.
    #[serde(default)]
    pub text: Option<String>,
    /// The bytes of a file, in base64.
    #[serde(default)]
    pub base64: Option<String>,
}
