//! Single instructions in loops, whose costs `bench --micro` measures. Each kind of instruction has a [`Row`], and so
//! has each pattern of its addresses and its mask.
//!
//! The program of a row sets up registers, runs the instruction [`COPIES`] times per iteration and ends. The cost of
//! the same program with an empty loop is subtracted. The programs are source text and run like any other program.

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

/// Number of copies of the instruction per iteration.
pub const COPIES: u32 = 8;
/// Number of groups of a launch.
pub const GROUPS: u32 = 64;
/// Maximum number of iterations of a launch. R500 does not count further.
pub const MOST_ROUNDS: u32 = 255;

/// An image as two textures, one for each filter.
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

/// The program around the instruction, and the launch.
#[derive(Debug)]
struct Frame {
    /// The program up to the loop's body. `{rounds}` is the number of iterations.
    before: &'static str,
    /// The end of the loop and of the program.
    behind: &'static str,
    /// The launch file. `{positions}` is replaced by [`positions`], and `{textures}` by [`TEXTURES`].
    launch: &'static str,
}

/// An instruction.
#[derive(Debug)]
pub struct Row {
    /// The machine.
    pub isa: Isa,
    /// The instruction, and the pattern of its addresses and its mask.
    pub name: &'static str,
    /// Target for the cost: at most this multiple of the cost of [`unit()`].
    pub bound: Option<f64>,
    frame: &'static Frame,
    /// The line that begins a clause around the copies, if the machine has clauses.
    clause: &'static str,
    /// The instruction. `{n}` is the number of the copy, `{d}` the number of a register that no other copy writes, and
    /// `{q}` one of four registers.
    body: &'static str,
    /// Instructions that must precede it in each copy. They are also part of the empty loop.
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

    /// Returns the program that runs `rounds` iterations. If `alone` is set, the loop does not contain the
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

    /// Returns the launch of [`Row::source`] with [`GROUPS`] groups, ready to run.
    ///
    /// # Errors
    /// Returns an error if the source does not assemble or the launch is invalid. Both are mistakes in this crate.
    pub fn prepare(&self, rounds: u32, alone: bool) -> Result<Session, KernelError> {
        let source = self.source(rounds, alone);
        let opened = open(source.as_bytes(), true, &Known { isa: Some(self.isa), ..Known::default() })?;
        let launch = self.frame.launch.replace("{positions}", &positions()).replace("{textures}", TEXTURES);
        let launch = LaunchFile::parse(&launch);
        let launch = launch.map_err(|error| crate::Error::Machine(error.to_string()))?;
        Ok(launch.prepare(&opened.image, choose_program(&opened.image, None)?, &NoFiles)?)
    }

    /// Returns the number of times that the instruction executes in a launch of `rounds` iterations, summed over
    /// groups.
    pub fn executions(&self, rounds: u32) -> u64 {
        u64::from(GROUPS) * u64::from(COPIES) * u64::from(rounds)
    }
}

/// Returns every instruction that is measured.
pub fn rows() -> impl Iterator<Item = &'static Row> {
    tesla::ROWS.iter().chain(r700::ROWS).chain(r500::ROWS)
}

/// Returns the row that is the unit of cost: an addition of a Tesla warp.
pub fn unit() -> &'static Row {
    &tesla::UNIT
}

/// Returns the positions of the 4096 lanes of a launch over pixels, 64 per row, as fractions of a texture of 64 by 64
/// texels. Quads are placed along the rows. Each position is halfway between a texel's centre and its corner, so that
/// a linear filter weights four texels.
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
