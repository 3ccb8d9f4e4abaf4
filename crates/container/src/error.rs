//! Errors in a file to be read, or in a program to be written.

use reconverge_isa::limits::Exceeded;
use reconverge_isa::{Image, Span};
use thiserror::Error;

/// The reason why a file could not be read or written.
///
/// Each message names the position, the value at this position, the expected value, and the remedy. The position is a
/// line and a column in a text, or a byte offset in a binary.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Error {
    /// The file is empty.
    #[error("the file is empty: expected a shader binary or its text")]
    Empty,
    /// A limit is exceeded.
    #[error(transparent)]
    Limit(Exceeded),
    /// A text does not follow its format.
    #[error("line {line}, column {column}: found {found}, expected {expected}")]
    Syntax {
        /// One-based line.
        line: usize,
        /// One-based column, in characters.
        column: usize,
        /// Text at this position, shortened.
        found: String,
        /// Expected text, and the remedy.
        expected: String,
    },
    /// Blocks are nested deeper than in any real file.
    #[error("line {line}, column {column}: blocks nest deeper than {limit}; a closing brace may be missing")]
    TooDeep {
        /// One-based line.
        line: usize,
        /// One-based column, in characters.
        column: usize,
        /// Maximum nesting depth.
        limit: usize,
    },
    /// The file or the surrounding part ends too early.
    #[error(
        "byte {at:#x}: {what} needs {wanted} bytes there, but the file has {size} bytes; it may be truncated or damaged"
    )]
    Truncated {
        /// The part that extends past the end of the file.
        what: &'static str,
        /// Offset of the first byte.
        at: u64,
        /// Length of the part in bytes.
        wanted: u64,
        /// Length of the file or of the surrounding part, in bytes.
        size: u64,
    },
    /// A length is not a multiple of the element size.
    #[error(
        "byte {at:#x}: {what} is {bytes} bytes long, expected a multiple of {multiple}; the file may be truncated, or not contain raw words"
    )]
    Uneven {
        /// The part that has this length.
        what: &'static str,
        /// Offset of the first byte.
        at: u64,
        /// The length in bytes.
        bytes: u64,
        /// The length must be a multiple of this number.
        multiple: u64,
    },
    /// A field holds a value that is undefined or that the hardware cannot have.
    #[error("byte {at:#x}: {what} is {found:#x}, expected {expected}")]
    Value {
        /// The field.
        what: &'static str,
        /// Offset of the field, or of the structure that contains the field.
        at: u64,
        /// Value of the field.
        found: u64,
        /// The expected values.
        expected: String,
    },
    /// A name is not terminated, not UTF-8, or too long.
    #[error("byte {at:#x}: {what}: expected UTF-8 text of at most {limit} bytes, ended by a zero byte")]
    Name {
        /// The kind of name.
        what: &'static str,
        /// Offset of the first byte.
        at: u64,
        /// Maximum length of a name, in bytes.
        limit: u64,
    },
    /// Two parts of the file contain the same bytes.
    #[error("byte {at:#x}: {first} and {second} overlap: the file is damaged")]
    Overlap {
        /// The first part.
        first: String,
        /// The second part.
        second: String,
        /// Offset at which the overlap starts.
        at: u64,
    },
    /// Two items have the same name.
    #[error("{what} `{name}` occurs twice: names must differ")]
    Duplicate {
        /// The kind of item.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// A relocation cannot be applied.
    #[error("byte {at:#x}: relocation {why}")]
    Relocation {
        /// Offset of the record.
        at: u64,
        /// The problem with the relocation, and the expected value.
        why: String,
    },
    /// A required item is missing from the file.
    #[error("{what} is missing: {remedy}")]
    Missing {
        /// The missing item.
        what: &'static str,
        /// The reason why the item is required, or the expected location of the item.
        remedy: String,
    },
    /// A member is compressed.
    #[error(
        "byte {at:#x}: member `{name}` is compressed (flags {flags:#x}): expected an uncompressed one, extract it with cuobjdump or rebuild without compression"
    )]
    Compressed {
        /// Offset of the member's header.
        at: u64,
        /// Name of the member.
        name: String,
        /// Flags of the member.
        flags: u64,
    },
    /// The code is for a chip that cannot be read.
    #[error("the file is for {found}, expected {expected}")]
    OtherChip {
        /// The chip or machine that the file names.
        found: String,
        /// The chips or machines that can be read.
        expected: &'static str,
    },
    /// A log contains a shader for a chip that is not emulated.
    #[error("line {line}: {name} is for {chip}, which is not supported: expected R500, R600, R700 or Tesla")]
    OtherShader {
        /// One-based line.
        line: usize,
        /// Name of the shader.
        name: String,
        /// Name of the chip in the log.
        chip: String,
    },
    /// The format of the file differs from the format that the hints state.
    #[error("the file is {found}, not {asked}")]
    OtherFormat {
        /// The format that the file's content has.
        found: &'static str,
        /// The format that the hints state.
        asked: &'static str,
    },
    /// A known variant of a format that cannot be read.
    #[error("byte {at:#x}: {what} cannot be read: {remedy}")]
    Unsupported {
        /// Offset of the variant in the file.
        at: u64,
        /// The variant.
        what: &'static str,
        /// The remedy.
        remedy: &'static str,
    },
    /// A member of a container has an error.
    #[error("in member `{name}` at byte {at:#x}: {source}")]
    Member {
        /// Name of the member.
        name: String,
        /// Offset of the member in the container.
        at: u64,
        /// The error in the member. The offsets in this error are relative to the start of the member.
        source: Box<Error>,
    },
    /// A program has a property that the format to be written cannot represent.
    #[error("{what} cannot be written as {format}: {remedy}")]
    Unwritable {
        /// The format.
        format: &'static str,
        /// The property that cannot be represented.
        what: String,
        /// The remedy.
        remedy: &'static str,
    },
    /// Words of a program cannot be changed in the file.
    #[error("{what} cannot be changed in the file: {remedy}")]
    Unpatchable {
        /// The item that the caller meant to change.
        what: String,
        /// The reason why the words cannot be changed, and the remedy.
        remedy: String,
    },
    /// A macro definition does not have the expected form.
    #[error("definition `{0}`: expected NAME, NAME=VALUE or NAME(x)=VALUE")]
    Define(String),
    /// A format name is unknown.
    #[error("unknown format `{0}`: expected one of {names}", names = crate::Format::ALL.map(crate::Format::name).join(", "))]
    UnknownFormat(String),
}

impl Error {
    /// Returns an error for a field with an invalid value.
    pub(crate) fn value(
        what: &'static str,
        at: u64,
        found: impl Into<u64>,
        expected: impl Into<String>,
    ) -> Error {
        Error::Value { what, at, found: found.into(), expected: expected.into() }
    }

    /// Returns an error for a required item that is missing.
    pub(crate) fn missing(what: &'static str, remedy: impl Into<String>) -> Error {
        Error::Missing { what, remedy: remedy.into() }
    }

    /// Returns an error for two parts that contain the same bytes. `at` is the offset of the first of these bytes.
    pub(crate) fn overlap(first: impl Into<String>, second: impl Into<String>, at: u64) -> Error {
        Error::Overlap { first: first.into(), second: second.into(), at }
    }

    /// Returns an error at a byte offset of a text.
    pub(crate) fn syntax(text: &str, at: usize, found: String, expected: impl Into<String>) -> Error {
        let (line, column) = Span::new(at, at).line_column(text);
        Error::Syntax { line, column, found, expected: expected.into() }
    }

    /// Returns an error at the start of a line.
    pub(crate) fn line(line: usize, found: &str, expected: impl Into<String>) -> Error {
        Error::Syntax { line, column: 1, found: quoted(found.trim()), expected: expected.into() }
    }

    /// Returns an error at `part`, which is a slice of `line`.
    pub(crate) fn at(number: usize, line: &str, part: &str, expected: impl Into<String>) -> Error {
        let at = (part.as_ptr() as usize).checked_sub(line.as_ptr() as usize);
        let before = at.and_then(|at| line.get(..at)).map_or(0, |before| before.chars().count());
        Error::Syntax { line: number, column: before + 1, found: quoted(part), expected: expected.into() }
    }

    /// Returns an error for blocks that are nested too deeply at a byte of a text.
    pub(crate) fn too_deep(text: &str, at: usize, limit: usize) -> Error {
        let (line, column) = Span::new(at, at).line_column(text);
        Error::TooDeep { line, column, limit }
    }
}

/// Quotes up to 40 characters of `text` for a message.
pub(crate) fn quoted(text: &str) -> String {
    let mut short: String = text.chars().take(40).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    format!("`{}`", short.escape_debug())
}

/// Returns a number and a noun in the singular or plural.
pub(crate) fn counted(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

/// Members of a container that could not be read. The readable members are loaded nevertheless.
#[derive(Default)]
pub(crate) struct Unread {
    /// The first errors, up to [`MOST_NAMED`].
    errors: Vec<Error>,
    count: usize,
}

/// Maximum number of unreadable members that notes name. Further members are only counted.
const MOST_NAMED: usize = 50;

impl Unread {
    pub(crate) fn push(&mut self, error: Error) {
        self.count += 1;
        if self.errors.len() < MOST_NAMED {
            self.errors.push(error);
        }
    }

    /// Returns the number of unreadable members.
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// Adds a note for each unreadable member to the image. If the image has no programs, the function instead returns
    /// the error of the first unreadable member. If all members were readable but the image has no programs, the error
    /// states that `what` is missing.
    pub(crate) fn settle(self, image: &mut Image, what: &'static str, remedy: String) -> Result<(), Error> {
        if image.programs.is_empty() {
            return Err(self.errors.into_iter().next().unwrap_or(Error::Missing { what, remedy }));
        }
        let more = self.count - self.errors.len();
        image.notes.extend(self.errors.iter().map(|error| format!("passed over: {error}")));
        if more > 0 {
            image.notes.push(format!("skipped {} that cannot be read", counted(more, "further member")));
        }
        Ok(())
    }
}
