//! The requests of the page.

use serde::Deserialize;

/// A request. In JSON, a request is an object whose field `request` is the name of a variant in snake case. `source` is
/// the text of a program, and `launch` is the text of a launch file. The launch file may omit `isa` if the source
/// states the machine. The field `program` of the launch file has no effect.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "request", rename_all = "snake_case", deny_unknown_fields)]
pub enum PlayRequest {
    /// Returns machines, chips and limits.
    Describe,
    /// Runs a kernel of `bench`.
    Kernel {
        /// The machine.
        isa: String,
        /// `mandel` or `collatz`.
        kernel: String,
        /// Number of lanes.
        lanes: u32,
    },
    /// Returns the messages about a source and its launch file, with fixes.
    Diagnose {
        /// The program.
        source: String,
        /// The launch file.
        #[serde(default)]
        launch: String,
    },
    /// Returns the explanation at a position in the source.
    Hover {
        /// The program.
        source: String,
        /// The launch file.
        #[serde(default)]
        launch: String,
        /// The position in UTF-16 code units.
        at: usize,
    },
    /// Returns the texts that are valid at a position in the source.
    Complete {
        /// The program.
        source: String,
        /// The launch file.
        #[serde(default)]
        launch: String,
        /// The position in UTF-16 code units.
        at: usize,
    },
    /// Runs the launch and compares the results with the expected results.
    Run {
        /// The program.
        source: String,
        /// The launch file.
        launch: String,
    },
    /// Runs the launch and records the run in the form of the `--html` page.
    Record {
        /// The program.
        source: String,
        /// The launch file.
        launch: String,
        /// The heading of the page.
        title: String,
    },
    /// Returns the text of a program's words.
    Disassemble(WordsGiven),
    /// Disassembles words and assembles the text again.
    RoundTrip(WordsGiven),
}

impl PlayRequest {
    /// Returns whether the request runs a program. Running a program can take an unlimited time.
    pub fn runs(&self) -> bool {
        matches!(self, PlayRequest::Kernel { .. } | PlayRequest::Run { .. } | PlayRequest::Record { .. })
    }
}

/// A file with the words of a program. The request contains the text of the file, or the bytes of the file in base64.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WordsGiven {
    /// The machine. The field is required only if the file does not state the machine.
    #[serde(default)]
    pub isa: Option<String>,
    /// The chip.
    #[serde(default)]
    pub chip: Option<String>,
    /// The program type.
    #[serde(default)]
    pub stage: Option<String>,
    /// The text of a file. For example, the file contains words in hexadecimal digits, a listing or a log.
    #[serde(default)]
    pub text: Option<String>,
    /// The bytes of a file, in base64.
    #[serde(default)]
    pub base64: Option<String>,
}
