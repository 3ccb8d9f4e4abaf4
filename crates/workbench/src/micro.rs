//! Programs that repeat a single instruction in a loop. The command `bench --micro` uses the programs to measure the
//! cost of instructions. Each [`Row`] is an instruction with a pattern of addresses and active lanes.
//!
//! The program of a row first sets up registers. Then the program runs a loop. The body of the loop contains [`COPIES`]
//! copies of the instruction. `bench` also measures the program with an empty loop, and subtracts the cost of the empty
//! loop. The programs are assembler sources and run like any other program.

mod r500;
mod r700;
mod tesla;

use std::fmt::Write;

use reconverge_isa::Isa;

use crate::kernels::KernelError;
use crate::launch::{LaunchFile, choose_program};
use crate::open::{Known, open};
use crate::session::Session;
use crate::values::NoFiles;

/// Number of copies of the instruction in the body of the loop.
pub const COPIES: u32 = 8;
/// Number of groups of a launch.
pub const GROUPS: u32 = 64;
/// Maximum number of iterations of a launch. R500's loop counter has eight bits.
pub const MOST_ROUNDS: u32 = 255;

/// One image as two textures. The first texture uses nearest filtering, and the second texture uses linear filtering.
const TEXTURES: &str = r#"
[[texture]]
unit = 0
size = [64, 64]
texels = "0..16384"
filter = "nearest"
[[texture]]
unit = 1
size = [64, 64]
texels = "0..16384"
filter = "linear"
"#;

/// The program that contains the measured instruction, and the launch of this program.
#[derive(Debug)]
struct Frame {
    /// The text of the program before the loop's body. `{rounds}` stands for the number of iterations.
    before: &'static str,
    /// The text of the program after the loop's body.
    behind: &'static str,
    /// The launch file. `{positions}` stands for the text of [`positions`], and `{textures}` stands for [`TEXTURES`].
    launch: &'static str,
}

/// An instruction that is measured.
#[derive(Debug)]
pub struct Row {
    /// The machine.
    pub isa: Isa,
    /// Description of the instruction and of its pattern of addresses and active lanes.
    pub name: &'static str,
    /// Upper limit for the cost of the instruction, as a multiple of the cost of [`unit()`].
    pub bound: Option<f64>,
    frame: &'static Frame,
    /// The first line of the clause. The clause contains the copies of the instruction. The line is empty if the
    /// machine does not have clauses.
    clause: &'static str,
    /// Text of the instruction. `{n}` stands for the index of the copy. `{d}` stands for the number of a register that
    /// no other copy writes. `{q}` stands for one of four register numbers.
    body: &'static str,
    /// Instructions that must precede the measured instruction in each copy. The empty loop also contains these
    /// instructions.
    ahead: &'static str,
}

impl Row {
    const fn new(isa: Isa, frame: &'static Frame, name: &'static str, body: &'static str) -> Row {
        Row { isa, name, bound: None, frame, clause: "", body, ahead: "" }
    }

    const fn bound(self, times: f64) -> Row {
        Row { bound: Some(times), ..self }
    }

    const fn clause(self, clause: &'static str) -> Row {
        Row { clause, ..self }
    }

    const fn ahead(self, ahead: &'static str) -> Row {
        Row { ahead, ..self }
    }

    /// Returns a program that runs `rounds` iterations. If `alone` is set, the loop does not contain the measured
    /// instruction.
    pub fn source(&self, rounds: u32, alone: bool) -> String {
        let mut source = self.frame.before.replace("{rounds}", &rounds.to_string());
        let copied = [self.ahead, if alone { "" } else { self.body }];
        if copied.iter().any(|text| !text.is_empty()) {
            source += self.clause;
            source += "\n";
        }
        for n in 0..COPIES {
            for text in copied.iter().filter(|text| !text.is_empty()) {
                let text = text
                    .replace("{n}", &n.to_string())
                    .replace("{d}", &(8 + n).to_string())
                    .replace("{q}", &(24 + 4 * (n % 4)).to_string());
                source += &text;
                source += "\n";
            }
        }
        source + self.frame.behind
    }

    /// Returns a session that is ready to run the program of [`Row::source`] with [`GROUPS`] groups.
    ///
    /// # Errors
    /// Returns an error if the source does not assemble or the launch is invalid. Both errors are defects of this
    /// crate.
    pub fn prepare(&self, rounds: u32, alone: bool) -> Result<Session, KernelError> {
        let source = self.source(rounds, alone);
        let opened = open(source.as_bytes(), true, &Known { isa: Some(self.isa), ..Known::default() })?;
        let launch = self.frame.launch.replace("{positions}", &positions()).replace("{textures}", TEXTURES);
        let launch = LaunchFile::parse(&launch);
        let launch = launch.map_err(|error| crate::Error::Machine(error.to_string()))?;
        Ok(launch.prepare(&opened.image, choose_program(&opened.image, None)?, &NoFiles)?)
    }

    /// Returns the number of times that the instruction is issued in a launch of `rounds` iterations. The number is the
    /// sum over all groups.
    pub fn executions(&self, rounds: u32) -> u64 {
        u64::from(GROUPS) * u64::from(COPIES) * u64::from(rounds)
    }
}

/// Returns every instruction that is measured.
pub fn rows() -> impl Iterator<Item = &'static Row> {
    tesla::ROWS.iter().chain(r700::ROWS).chain(r500::ROWS)
}

/// Returns the row whose cost is the unit of cost. The instruction of this row is an addition by a Tesla warp.
pub fn unit() -> &'static Row {
    &tesla::UNIT
}

/// Returns the pixel positions for the 4096 lanes of a launch. A position is a pair of coordinates in a texture of 64
/// by 64 texels. Four consecutive lanes are a quad, and consecutive quads form rows. Each position is halfway between
/// the centre and a corner of a texel. So a linear filter computes a weighted mean of four texels.
fn positions() -> String {
    let mut list = String::from("[");
    for lane in 0..GROUPS * 64 {
        let quad = lane / 4;
        let (x, y) = (quad % 32 * 2 + lane % 2, quad / 32 * 2 + lane / 2 % 2);
        let at = |pixel: u32| (f64::from(pixel) + 0.75) / 64.0;
        let _ = write!(list, "[{}, {}], ", at(x), at(y));
    }
    list + "]"
}
