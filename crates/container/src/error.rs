//! What can be wrong with a file, or with a program that is to be written.

use reconverge_isa::limits::Exceeded;
use reconverge_isa::{Image, Span};
use thiserror::Error;

/// Why a file could not be read or written.
///
/// Each message names the place (line and column of a text, byte offset of a binary), what was found, what
/// would fit, and what to do.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Error {
    /// Nothing to read.
    #[error("the file is empty: expected a shader binary or its text")]
    Empty,
    /// It has more of something than a limit allows.
    #[error(transparent)]
    Limit(Exceeded),
    /// A text does not follow its format.
    #[error("line {line}, column {column}: found {found}, expected {expected}")]
    Syntax {
        /// One-based line.
        line: usize,
        /// One-based column, in characters.
        column: usize,
        /// What was found there, shortened.
        found: String,
        /// What would fit there, and the remedy.
        expected: String,
    },
    /// Blocks inside blocks, deeper than any real file.
    #[error("line {line}, column {column}: blocks nest deeper than {limit}: is a closing brace missing?")]
    TooDeep {
        /// One-based line.
        line: usize,
        /// One-based column, in characters.
        column: usize,
        /// The deepest level that is read.
        limit: usize,
    },
    /// The file ends, or the surrounding part ends, before something in it does.
    #[error(
        "byte {at:#x}: {what} needs {wanted} bytes there, but the file has {size} bytes: is it cut off or damaged?"
    )]
    Truncated {
        /// What reaches beyond the end.
        what: &'static str,
        /// Where it starts.
        at: u64,
        /// Its length.
        wanted: u64,
        /// The length of what is there.
        size: u64,
    },
    /// A length that does not divide.
    #[error(
        "byte {at:#x}: {what} is {bytes} bytes long, expected a multiple of {multiple}: is the file cut off, or not raw words?"
    )]
    Uneven {
        /// What has the length.
        what: &'static str,
        /// Where it starts.
        at: u64,
        /// The length.
        bytes: u64,
        /// What it should be a multiple of.
        multiple: u64,
    },
    /// A field holds a value that has no meaning or that the hardware cannot have.
    #[error("byte {at:#x}: {what} is {found:#x}, expected {expected}")]
    Value {
        /// The field.
        what: &'static str,
        /// Its offset (the start of the structure it is in).
        at: u64,
        /// Its value.
        found: u64,
        /// What would fit.
        expected: String,
    },
    /// A name is not terminated, not text, or absurdly long.
    #[error("byte {at:#x}: {what}: expected UTF-8 text of at most {limit} bytes, ended by a zero byte")]
    Name {
        /// Whose name.
        what: &'static str,
        /// Where it starts.
        at: u64,
        /// The longest name read.
        limit: u64,
    },
    /// Two parts of the file claim the same bytes.
    #[error("byte {at:#x}: {first} and {second} overlap: the file is damaged")]
    Overlap {
        /// The one that comes first.
        first: String,
        /// The other.
        second: String,
        /// Where the overlap starts.
        at: u64,
    },
    /// Two things of the same name.
    #[error("{what} `{name}` is there twice: names must differ")]
    Duplicate {
        /// What they are.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// A relocation that cannot be carried out.
    #[error("byte {at:#x}: relocation {why}")]
    Relocation {
        /// Offset of the record.
        at: u64,
        /// What is wrong, and what would fit.
        why: String,
    },
    /// Something a file must have is not there.
    #[error("{what} is missing: {remedy}")]
    Missing {
        /// What is missing.
        what: &'static str,
        /// Why it is needed or where it should be.
        remedy: String,
    },
    /// A member is compressed.
    #[error(
        "byte {at:#x}: member `{name}` is compressed (flags {flags:#x}): expected an uncompressed one, extract it with cuobjdump or rebuild without compression"
    )]
    Compressed {
        /// Offset of the member's header.
        at: u64,
        /// Which member.
        name: String,
        /// Its flags.
        flags: u64,
    },
    /// Code of another chip.
    #[error("the file is for {found}, expected {expected}")]
    OtherChip {
        /// What it says.
        found: String,
        /// What is read here.
        expected: &'static str,
    },
    /// A shader of a log for a chip that is not emulated.
    #[error("line {line}: {name} is for {chip}, which is not supported: expected R500, R600, R700 or Tesla")]
    OtherShader {
        /// One-based line.
        line: usize,
        /// The shader.
        name: String,
        /// Chip as the log names it.
        chip: String,
    },
    /// A file of another format than the one that was stated.
    #[error("the file is {found}, not {asked}")]
    OtherFormat {
        /// The format of its content.
        found: &'static str,
        /// The format that was stated.
        asked: &'static str,
    },
    /// A form of a format that is known by name and cannot be read.
    #[error("byte {at:#x}: {what} cannot be read: {remedy}")]
    Unsupported {
        /// Where.
        at: u64,
        /// The form.
        what: &'static str,
        /// What to do instead.
        remedy: &'static str,
    },
    /// Something is wrong inside a member of a container.
    #[error("in member `{name}` at byte {at:#x}: {source}")]
    Member {
        /// The member.
        name: String,
        /// Where it starts in the container.
        at: u64,
        /// What is wrong, with places counted from the member's start.
        source: Box<Error>,
    },
    /// A program says something that the format to be written cannot carry.
    #[error("{what} cannot be written as {format}: {remedy}")]
    Unwritable {
        /// The format.
        format: &'static str,
        /// What is in the way.
        what: String,
        /// What would fit.
        remedy: &'static str,
    },
    /// Words of a program that cannot be changed in its file.
    #[error("{what} cannot be changed in the file: {remedy}")]
    Unpatchable {
        /// What was to be changed.
        what: String,
        /// Why not, and what to do instead.
        remedy: String,
    },
    /// A definition of a macro that does not follow its form.
    #[error("definition `{0}`: expected NAME, NAME=VALUE or NAME(x)=VALUE")]
    Define(String),
    /// A format name that is none.
    #[error("unknown format `{0}`: expected one of {names}", names = crate::Format::ALL.map(crate::Format::name).join(", "))]
    UnknownFormat(String),
}

impl Error {
    /// A field with a value that it cannot have.
    pub(crate) fn value(
        what: &'static str,
        at: u64,
        found: impl Into<u64>,
        expected: impl Into<String>,
    ) -> Error {
        Error::Value { what, at, found: found.into(), expected: expected.into() }
    }

    /// Something that a file must have.
    pub(crate) fn missing(what: &'static str, remedy: impl Into<String>) -> Error {
        Error::Missing { what, remedy: remedy.into() }
    }

    /// Two parts that claim the same bytes from `at` on.
    pub(crate) fn overlap(first: impl Into<String>, second: impl Into<String>, at: u64) -> Error {
        Error::Overlap { first: first.into(), second: second.into(), at }
    }

    /// Makes an error about the byte at an offset of a text.
    pub(crate) fn syntax(text: &str, at: usize, found: String, expected: impl Into<String>) -> Error {
        let (line, column) = Span::new(at, at).line_column(text);
        Error::Syntax { line, column, found, expected: expected.into() }
    }

    /// Makes an error about a line of a text.
    pub(crate) fn line(line: usize, found: &str, expected: impl Into<String>) -> Error {
        Error::Syntax { line, column: 1, found: quoted(found.trim()), expected: expected.into() }
    }

    /// Returns an error at `part`, which is a slice of `line`.
    pub(crate) fn at(number: usize, line: &str, part: &str, expected: impl Into<String>) -> Error {
        let at = (part.as_ptr() as usize).checked_sub(line.as_ptr() as usize);
        let before = at.and_then(|at| line.get(..at)).map_or(0, |before| before.chars().count());
        Error::Syntax { line: number, column: before + 1, found: quoted(part), expected: expected.into() }
    }

    /// Blocks that nest too deep at a byte of a text.
    pub(crate) fn too_deep(text: &str, at: usize, limit: usize) -> Error {
        let (line, column) = Span::new(at, at).line_column(text);
        Error::TooDeep { line, column, limit }
    }
}

/// At most 40 characters of `text`, quoted, for a message.
pub(crate) fn quoted(text: &str) -> String {
    let mut short: String = text.chars().take(40).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    format!("`{}`", short.escape_debug())
}

/// A number of things, with the right form of the word.
pub(crate) fn counted(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

/// Members of a container that could not be read. A member that cannot be read does not hide the others.
#[derive(Default)]
pub(crate) struct Unread {
    /// The first ones.
    errors: Vec<Error>,
    count: usize,
}

/// Members that cannot be read and are named; more are counted.
const MOST_NAMED: usize = 50;

impl Unread {
    pub(crate) fn push(&mut self, error: Error) {
        self.count += 1;
        if self.errors.len() < MOST_NAMED {
            self.errors.push(error);
        }
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// Names each in the image's notes. An image without programs is an error: that of the first member, or that `what` is
    /// missing of a container whose members are all something else.
    pub(crate) fn settle(self, image: &mut Image, what: &'static str, remedy: String) -> Result<(), Error> {
        if image.programs.is_empty() {
            return Err(self.errors.into_iter().next().unwrap_or(Error::Missing { what, remedy }));
        }
        let more = self.count - self.errors.len();
        image.notes.extend(self.errors.iter().map(|error| format!("passed over: {error}")));
        if more > 0 {
            image.notes.push(format!("{more} more that cannot be read were passed over"));
        }
        Ok(())
    }
}
