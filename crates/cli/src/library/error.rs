//! Errors of the library.

use std::fmt;

use reconverge_isa::Diagnostic;
use reconverge_workbench::Error as LaunchError;
use reconverge_workbench::error::Trapped;
use reconverge_workbench::formats::WriteError;
use reconverge_workbench::launch::LaunchFileError;
use reconverge_workbench::machine::ExplainError;
use reconverge_workbench::open::OpenError;
use reconverge_workbench::target::TargetError;
use thiserror::Error;

/// An error of the library.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The source does not assemble.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The bytes are not a program, or the options state a different machine or chip than the program.
    #[error(transparent)]
    Open(OpenError),
    /// The file does not contain the program.
    #[error("{}", missing(.name.as_deref(), .has))]
    NoProgram {
        /// Name of the requested program. The value is `None` if the caller requested the only program of the file.
        name: Option<String>,
        /// Names of the file's programs.
        has: Vec<String>,
    },
    /// The machine, chip or program type does not exist, or does not match the program.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// The words are not an instruction.
    #[error(transparent)]
    Explain(#[from] ExplainError),
    /// The format cannot hold the programs.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The text is not a launch file.
    #[error(transparent)]
    LaunchFile(#[from] LaunchFileError),
    /// The machine of the launch file differs from the machine of the program.
    #[error("expected a program for {launch}, as in the launch file; found one for {program}")]
    OtherMachine {
        /// Machine of the launch file.
        launch: crate::Isa,
        /// Machine of the program.
        program: crate::Isa,
    },
    /// The program trapped. The program did something that the documents of the machine forbid or leave undefined.
    #[error(transparent)]
    Trap(Box<Trap>),
    /// The launch does not fit the program or the machine, or an engine has a defect.
    #[error(transparent)]
    Launch(LaunchError),
    /// The register or memory does not exist in this group, or cannot be changed.
    #[error("cannot change {what}: it does not exist in this group, or it is derived from other state")]
    Unchangeable {
        /// The register or memory.
        what: String,
    },
}

fn missing(name: Option<&str>, has: &[String]) -> String {
    let has = if has.is_empty() { "none".to_owned() } else { has.join(", ") };
    match name {
        Some(name) => format!("unknown program `{name}`: the file has {has}"),
        None => format!("expected one program, found {has}"),
    }
}

impl From<LaunchError> for Error {
    fn from(error: LaunchError) -> Error {
        match error {
            LaunchError::Trap(trapped) => Error::Trap(Box::new(Trap(*trapped))),
            other => Error::Launch(other),
        }
    }
}

/// A trap, with the instruction and the state of the first affected lane.
#[derive(Clone, Debug, PartialEq)]
pub struct Trap(pub(crate) Trapped);

impl Trap {
    /// Returns the address of the instruction, in the machine's address unit.
    pub fn pc(&self) -> u32 {
        self.0.pc
    }

    /// Returns the affected lanes, numbered within their group.
    pub fn lanes(&self) -> crate::Mask {
        self.0.lanes
    }

    /// Returns the name of the cause of the trap, such as `Memory` or `Flow.StackMismatch`.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Returns the text of the instruction, which a second run of the launch determines. Returns `None` if the second
    /// run did not reach the trap.
    pub fn instruction(&self) -> Option<&str> {
        self.0.instruction.as_deref()
    }

    /// Returns the line of the instruction in the source, counted from 1. Returns `None` if the program was not
    /// assembled from a source.
    pub fn line(&self) -> Option<usize> {
        self.0.line
    }

    /// Returns the registers that the instruction names, and the words of each register in the first affected lane.
    pub fn registers(&self) -> &[(String, Vec<u32>)] {
        self.0.state.as_ref().map_or(&[], |state| &state.registers)
    }
}

impl fmt::Display for Trap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Trap {}

/// The errors of a source, in the order of their positions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceError {
    diagnostics: Vec<Diagnostic>,
    places: Vec<(usize, usize)>,
}

impl SourceError {
    pub(crate) fn new(source: &str, diagnostics: Vec<Diagnostic>) -> SourceError {
        let places = diagnostics.iter().map(|error| error.line_column(source)).collect();
        SourceError { diagnostics, places }
    }

    /// Returns each error, and the line and column of the error. Lines and columns are counted from 1.
    pub fn errors(&self) -> impl Iterator<Item = (usize, usize, &Diagnostic)> {
        self.places.iter().zip(&self.diagnostics).map(|((line, column), error)| (*line, *column, error))
    }
}

/// One line per error: `2:11: message (help)`.
impl fmt::Display for SourceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, (line, column, error)) in self.errors().enumerate() {
            let end = if number == 0 { "" } else { "\n" };
            write!(f, "{end}{line}:{column}: {error}")?;
        }
        Ok(())
    }
}

impl std::error::Error for SourceError {}
