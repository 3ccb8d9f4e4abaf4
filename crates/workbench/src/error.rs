//! Errors of launches, including traps.

use std::fmt;

use reconverge_isa::Isa;
use reconverge_isa::limits::{LANES, NoRoom};
use reconverge_simt::texture::ImageError;
use reconverge_simt::{CodeFault, GroupTrap, Lane, Mask, RunError};
use serde_json::{Value, json};
use thiserror::Error;

use crate::values::ValuesError;

/// The reason why a launch does not have a result.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum Error {
    /// The numbers of an input cannot be loaded.
    #[error(transparent)]
    Values(#[from] ValuesError),
    /// The program or the launch is not valid for the machine.
    #[error("{0}")]
    Machine(String),
    /// A texture is invalid.
    #[error("texture {unit}: {error}")]
    Texture {
        /// The texture unit.
        unit: u8,
        /// The problem.
        error: ImageError,
    },
    /// A field has the wrong number of values.
    #[error("{place}: expected {wanted}, found {found} numbers")]
    Count {
        /// The field.
        place: String,
        /// Number of values found.
        found: usize,
        /// Description of the expected values.
        wanted: String,
    },
    /// The number of lanes is 0 or exceeds the limit.
    #[error("lanes: expected 1 to {most}, found {0}; {more}", most = LANES.get(), more = LANES.remedy())]
    Lanes(usize),
    /// The launch needs more memory than is available.
    #[error(transparent)]
    NoRoom(#[from] NoRoom),
    /// The number of lanes is unknown. The launch does not state the number of lanes, and the numbers of the input are
    /// not divided into rows.
    #[error(
        "{place}: the file has {count} numbers without rows, so the number of lanes is unknown; state --lanes \
         (lanes = in a launch file){}", splits(*.count)
    )]
    Flat {
        /// The field with the numbers.
        place: String,
        /// Number of values found.
        count: usize,
    },
    /// A value is not one of the expected names.
    #[error("{place}: unknown value `{found}`: {help}")]
    Name {
        /// The field with the value.
        place: String,
        /// The value.
        found: String,
        /// Description of the expected values.
        help: String,
    },
    /// The program does not assemble, or cannot be loaded.
    #[error("{0}")]
    Program(String),
    /// The command has an option that does not exist for programs of this machine.
    #[error("--{option} is not for {isa} programs")]
    Option {
        /// Name of the option.
        option: String,
        /// The machine.
        isa: Isa,
    },
    /// Two engines that run in lockstep have different results. The difference is due to a defect of an engine, not of
    /// the program.
    #[error("{0}")]
    Differ(String),
    /// Generated code accessed invalid memory. The access is due to a defect of the compiled engine, not of the
    /// program.
    #[error("{0}")]
    Fault(CodeFault),
    /// The program trapped because the program did something forbidden or undefined.
    #[error("{0}")]
    Trap(Box<Trapped>),
}

impl Error {
    /// Returns the error that a field does not accept a value.
    pub(crate) fn name(place: impl Into<String>, found: impl ToString, help: impl Into<String>) -> Error {
        Error::Name { place: place.into(), found: found.to_string(), help: help.into() }
    }
}

/// Returns a hint that suggests numbers of lanes for an input of `count` values.
fn splits(count: usize) -> String {
    let ways: Vec<String> = (1..=4)
        .filter(|each| count > 0 && count.is_multiple_of(*each))
        .map(|each| format!("{} with {each} per lane", count / each))
        .collect();
    if ways.is_empty() { String::new() } else { format!(", for instance {}", ways.join(", ")) }
}

impl<L: fmt::Display, C: Cause> From<RunError<L, C>> for Error {
    fn from(error: RunError<L, C>) -> Error {
        match error {
            RunError::Launch(error) => Error::Machine(error.to_string()),
            RunError::Trap(trap) => Error::Trap(Box::new(Trapped::from(&trap))),
            RunError::Differ(difference) => Error::Differ(difference.to_string()),
            RunError::Fault(fault) => Error::Fault(fault),
        }
    }
}

impl From<CodeFault> for Error {
    fn from(fault: CodeFault) -> Error {
        Error::Fault(fault)
    }
}

/// A memory access that caused a trap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    /// The memory space, with its name in `session::Space`.
    pub space: &'static str,
    /// Address of the first byte.
    pub address: u32,
    /// Number of bytes.
    pub bytes: u32,
}

/// The cause of a trap. The cause may be a memory access.
pub trait Cause: fmt::Display + fmt::Debug {
    /// Returns the access if the cause is an invalid memory access.
    fn access(&self) -> Option<Access> {
        None
    }

    /// If the cause is a read of shared memory that no instruction has written, the result is the byte address of the
    /// read.
    fn unwritten(&self) -> Option<u32> {
        None
    }

    /// If the cause is a race between two accesses, returns the address of the instruction with the first access.
    fn other(&self) -> Option<u32> {
        None
    }
}

/// A trap with its context.
#[derive(Clone, Debug, PartialEq)]
pub struct Trapped {
    /// The complete message in one sentence.
    pub message: String,
    /// Address of the instruction, in the machine's address unit.
    pub pc: u32,
    /// The lanes that caused the trap, as numbers within their group.
    pub lanes: Mask,
    /// The cause, as text.
    pub cause: String,
    /// Name of the cause, without further details: `Memory`, `Flow.StackMismatch`.
    pub name: String,
    /// The access, if the cause is an invalid memory access.
    pub access: Option<Access>,
    /// Text of the instruction in the user's source, or in the disassembly if the source is unknown.
    pub instruction: Option<String>,
    /// The source line of the instruction, if the source line is known.
    pub line: Option<usize>,
    /// The registers of the first lane in `lanes`.
    pub state: Option<LaneState>,
    /// Description of the buffer whose addresses are closest to the invalid access.
    pub nearest: Option<String>,
    /// If the cause is a read of shared memory that no instruction has written, the byte address of the read.
    pub unwritten: Option<u32>,
    /// A change of the launch that avoids the trap, if known.
    pub remedy: Option<String>,
    /// The address and text of the instruction that made the first access of a race. `None` if the cause is not a race
    /// between two accesses.
    pub other: Option<(u32, Option<String>)>,
}

/// Registers of one lane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaneState {
    /// Number of the lane in the whole launch.
    pub lane: usize,
    /// The registers that the instruction names, in the order of its operands. Each entry has the register's name and
    /// its words.
    pub registers: Vec<(String, Vec<u32>)>,
}

impl fmt::Display for Trapped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl<C: Cause> From<&GroupTrap<C>> for Trapped {
    fn from(trap: &GroupTrap<C>) -> Trapped
    where
        GroupTrap<C>: fmt::Display,
    {
        Trapped {
            message: trap.to_string(),
            pc: trap.trap.pc,
            lanes: trap.trap.lanes,
            cause: trap.trap.cause.to_string(),
            name: name(&trap.trap.cause),
            access: trap.trap.cause.access(),
            instruction: None,
            line: None,
            state: None,
            nearest: None,
            unwritten: trap.trap.cause.unwritten(),
            remedy: None,
            other: trap.trap.cause.other().map(|pc| (pc, None)),
        }
    }
}

/// Returns the variant names of a cause without the contents of the variants. The names are joined from the outermost
/// variant to the innermost variant.
fn name(cause: &impl fmt::Debug) -> String {
    let text = format!("{cause:?}");
    let variants = text.split('(').map_while(|part| {
        let end = part.find(|letter: char| !letter.is_alphanumeric()).unwrap_or(part.len());
        part.starts_with(|letter: char| letter.is_uppercase()).then_some((&part[..end], end == part.len()))
    });
    let mut names = Vec::new();
    for (name, goes_on) in variants {
        names.push(name);
        if !goes_on {
            break;
        }
    }
    names.join(".")
}

/// Returns a count, followed by its noun: `1 parameter`, `2 parameters`.
pub(crate) fn counted(count: u64, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// Formats the flags of a condition register. Z is 1, S is 2, C is 4, and O is 8. (docs/tesla.md 1.4)
pub(crate) fn flags(value: u32) -> String {
    let set = ["Z", "S", "C", "O"].iter().enumerate().filter(|(bit, _)| value >> bit & 1 != 0);
    let names: String = set.map(|(_, name)| *name).collect();
    if names.is_empty() { "no flags".to_owned() } else { names }
}

/// Formats the words of a register. A Tesla condition register is formatted as flags, and any other register is
/// formatted as numbers.
fn register_words(name: &str, values: &[u32]) -> String {
    match values {
        [value] if name.starts_with("$c") => format!("{value:#x} ({})", flags(*value)),
        _ => words(values),
    }
}

/// Formats words in hexadecimal and as numbers.
fn words(words: &[u32]) -> String {
    let list = |text: fn(&u32) -> String| words.iter().map(text).collect::<Vec<_>>().join(" ");
    let floats = list(|word| {
        let value = f32::from_bits(*word);
        let plain = value == 0. || (1e-6..1e9).contains(&value.abs());
        if plain { value.to_string() } else { format!("{value:e}") }
    });
    format!(
        "{} (i32 {}; f32 {floats})",
        list(|word| format!("{word:08x}")),
        list(|word| (*word as i32).to_string())
    )
}

impl Trapped {
    /// Returns the details that are not in the message, one per line. `file` is the name of the program's file.
    pub fn details(&self, file: &str) -> Vec<String> {
        let mut lines = Vec::new();
        match (self.line, &self.instruction) {
            (Some(line), Some(text)) => lines.push(format!("{file}:{line}: {text}")),
            (None, Some(text)) => lines.push(format!("instruction: {text}")),
            (Some(line), None) => lines.push(format!("{file}:{line}")),
            (None, None) => {}
        }
        if let Some(LaneState { lane, registers }) = &self.state {
            let named = registers
                .iter()
                .map(|(name, values)| format!("lane {lane}: {name} = {}", register_words(name, values)));
            lines.extend(named);
        }
        lines.extend(self.nearest.clone());
        lines.extend(self.remedy.clone());
        if let Some((_, Some(text))) = &self.other {
            lines.push(format!("the other access: {text}"));
        }
        lines
    }

    /// Returns whether the limit on the number of instructions caused the trap. The program may then be an endless
    /// loop.
    pub fn is_endless(&self) -> bool {
        ["Watchdog", "Timeout"].contains(&&*self.name)
    }

    /// Returns the message in one line, with the text of the instruction. `file` is the name of the program's file. If
    /// a limit stopped the program, the message starts with `endless: `.
    pub fn sentence(&self, file: &str) -> String {
        let endless = if self.is_endless() { "endless: " } else { "" };
        let remedy = self.remedy.as_ref().map(|remedy| format!("; {remedy}")).unwrap_or_default();
        let place = match (&self.instruction, self.line) {
            (Some(text), Some(line)) => format!("; {file}:{line}: {text}"),
            (Some(text), None) => format!("; instruction: {text}"),
            (None, Some(line)) => format!("; {file}:{line}"),
            (None, None) => String::new(),
        };
        format!("{endless}{}{place}{remedy}", self.message)
    }

    /// Returns the trap as a JSON object.
    pub fn to_json(&self) -> Value {
        let registers = self.state.iter().flat_map(|state| &state.registers);
        let registers: serde_json::Map<String, Value> =
            registers.map(|(name, words)| (name.clone(), json!(words))).collect();
        json!({
            "pc": self.pc,
            "lanes": self.lanes.lanes().map(Lane::index).collect::<Vec<_>>(),
            "cause": self.cause,
            "instruction": self.instruction,
            "line": self.line,
            "lane": self.state.as_ref().map(|state| state.lane),
            "registers": registers,
            "space": self.access.as_ref().map(|access| access.space),
            "address": self.access.as_ref().map(|access| access.address),
            "nearest": self.nearest,
            "remedy": self.remedy,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trap_is_named_by_its_variants() {
        use reconverge_tesla::flow::Fault;
        use reconverge_tesla::trap::{Access, Cause, Space};

        let (space, access) = (Space::Global(14), Access::Read);
        let memory = Cause::Memory { space, access, address: 4, bytes: 4 };
        assert_eq!(name(&memory), "Memory");
        assert_eq!(name(&Cause::Flow(Fault::StackMismatch)), "Flow.StackMismatch");
        assert_eq!(name(&Cause::Undecodable("Row (x)".to_owned())), "Undecodable");
        assert_eq!(name(&Cause::Timeout(9)), "Timeout");
    }
}
