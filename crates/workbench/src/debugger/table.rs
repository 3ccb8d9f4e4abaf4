//! Prints a table. The table has one line per lane and one column per register.

use reconverge_isa::Isa;

use super::Debugger;
use super::names::register_name;
use crate::error::flags;
use crate::session::Register;

/// The notation of numbers in tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Notation {
    /// Eight hexadecimal digits.
    #[default]
    Hex,
    /// Signed decimal integers.
    Signed,
    /// Floats.
    Float,
}

impl Notation {
    /// Returns the machine's default notation. Registers of R500 are floats.
    pub const fn of(isa: Isa) -> Notation {
        match isa {
            Isa::R500 => Notation::Float,
            Isa::R700 | Isa::Tesla => Notation::Hex,
        }
    }

    /// Returns the name of the notation for titles.
    pub const fn name(self) -> &'static str {
        match self {
            Notation::Hex => "hex",
            Notation::Signed => "decimal",
            Notation::Float => "float",
        }
    }

    /// Returns the notation that comes after `self` in the cycle of notations.
    pub const fn next(self) -> Notation {
        match self {
            Notation::Hex => Notation::Signed,
            Notation::Signed => Notation::Float,
            Notation::Float => Notation::Hex,
        }
    }

    /// Formats a register's value in at most ten characters. In every notation, `$c` is shown as flags and `$a` as a
    /// number.
    pub fn written(self, register: Register, value: u32) -> String {
        match (register.class, self) {
            ("$c", _) => match value {
                0 => "0".to_owned(),
                value => flags(value),
            },
            ("$a", _) => format!("{value:#x}"),
            (_, Notation::Hex) => format!("{value:08x}"),
            (_, Notation::Signed) => (value as i32).to_string(),
            (_, Notation::Float) => {
                let plain = format!("{}", f32::from_bits(value));
                if plain.len() <= 10 { plain } else { format!("{:.3e}", f32::from_bits(value)) }
            }
        }
    }
}

/// A register with its value in each lane.
#[derive(Clone, Debug, PartialEq)]
pub struct TableRow {
    /// Name of the register, for example `R1.x`.
    pub name: String,
    /// The register.
    pub register: Register,
    /// The value of the register in each lane.
    pub values: Vec<u32>,
}

/// Returns the registers that are nonzero in at least one lane of a group. If `zeros` is set, returns all registers of
/// the group.
pub fn rows(debugger: &Debugger, group: usize, zeros: bool) -> Vec<TableRow> {
    let stepping = debugger.stepping();
    let row = |(name, register): (String, Register)| {
        let values = stepping.read(group, register)?;
        (zeros || values.iter().any(|value| *value != 0)).then_some(TableRow { name, register, values })
    };
    debugger.register_names().into_iter().filter_map(row).collect()
}

/// Formats registers as a table. The table has one column per register and one line per lane.
pub fn text(debugger: &Debugger, rows: &[TableRow], notation: Notation) -> String {
    let lanes = rows.iter().map(|row| row.values.len()).max().unwrap_or(0);
    let column = |row: &TableRow| {
        let cells: Vec<String> =
            row.values.iter().map(|value| notation.written(row.register, *value)).collect();
        let width = cells.iter().map(String::len).chain([row.name.len()]).max().unwrap_or(0);
        (row.name.clone(), cells, width)
    };
    let columns: Vec<(String, Vec<String>, usize)> = rows.iter().map(column).collect();
    let line = |lane: String, cells: Vec<String>| {
        let cells = cells.iter().zip(&columns).map(|(cell, (.., width))| format!("  {cell:>width$}"));
        format!("{lane:>4}{}\n", cells.collect::<String>())
    };
    let mut text = line("lane".to_owned(), columns.iter().map(|(name, ..)| name.clone()).collect());
    for lane in 0..lanes {
        let active = debugger.issue().is_some_and(|issue| issue.mask.has(reconverge_simt::Lane(lane as u8)));
        let mark = if active { "" } else { "-" };
        let cells = columns.iter().map(|(_, cells, _)| cells.get(lane).cloned().unwrap_or_default());
        text += &line(format!("{mark}{lane}"), cells.collect());
    }
    text
}

/// Returns a register of a group with its values. Returns `None` if the group does not have the register at present.
pub fn row(debugger: &Debugger, group: usize, register: Register) -> Option<TableRow> {
    let values = debugger.stepping().read(group, register)?;
    let name = register_name(&debugger.stepping().registers(), register);
    Some(TableRow { name, register, values })
}
