//! Single instructions in loops, whose costs `bench --micro` measures: one [`Row`] for each kind of instruction, and for each
//! way in which its addresses and its mask can look.
//!
//! A row's program sets registers up, runs the instruction [`COPIES`] times a round and ends. The same program with the
//! loop alone is measured beside it and taken away. The programs are source text and run the way every program runs.

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

/// How often a round runs the instruction.
pub const COPIES: u32 = 8;
/// Groups of a launch.
pub const GROUPS: u32 = 64;
/// Rounds of a launch, at most: R500 counts no further.
pub const MOST_ROUNDS: u32 = 255;

/// A picture as two textures, one for each filter.
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

/// What surrounds the instruction: the program before and behind it, and the launch.
#[derive(Debug)]
struct Frame {
    /// The program up to the loop's body; `{rounds}` is how often it runs.
    before: &'static str,
    /// The end of the loop, and of the program.
    behind: &'static str,
    /// The launch file; `{positions}` stands for [`positions`], `{textures}` for [`TEXTURES`].
    launch: &'static str,
}

/// An instruction.
#[derive(Debug)]
pub struct Row {
    /// The machine.
    pub isa: Isa,
    /// What it is, and how its addresses and its mask look.
    pub name: &'static str,
    /// At most so many times the cost of [`unit()`] is wanted.
    pub bound: Option<f64>,
    frame: &'static Frame,
    /// The line that begins a clause around the copies, where the machine has clauses.
    clause: &'static str,
    /// The instruction. `{n}` is the copy's number, `{d}` the number of a register that no other copy writes, `{q}` one of
    /// four registers.
    body: &'static str,
    /// What it needs before it in each copy, which is measured with the loop alone too.
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

    /// The program that runs the instruction so many rounds, or the loop alone.
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

    /// The launch of [`Row::source`], ready: [`GROUPS`] groups.
    ///
    /// # Errors
    /// A source that does not assemble or a launch that cannot be: mistakes in this crate.
    pub fn prepare(&self, rounds: u32, alone: bool) -> Result<Session, KernelError> {
        let source = self.source(rounds, alone);
        let opened = open(source.as_bytes(), true, &Known { isa: Some(self.isa), ..Known::default() })?;
        let launch = self.frame.launch.replace("{positions}", &positions()).replace("{textures}", TEXTURES);
        let launch = LaunchFile::parse(&launch);
        let launch = launch.map_err(|error| crate::Error::Machine(error.to_string()))?;
        Ok(launch.prepare(&opened.image, choose_program(&opened.image, None)?, &NoFiles)?)
    }

    /// How often a group executes the instruction in a launch of so many rounds, all groups together.
    pub fn executions(&self, rounds: u32) -> u64 {
        u64::from(GROUPS) * u64::from(COPIES) * u64::from(rounds)
    }
}

/// Every instruction that is measured.
pub fn rows() -> impl Iterator<Item = &'static Row> {
    tesla::ROWS.iter().chain(r700::ROWS).chain(r500::ROWS)
}

/// What costs are multiples of: an addition of a Tesla warp.
pub fn unit() -> &'static Row {
    &tesla::UNIT
}

/// Where the 4096 lanes of a launch over pixels are, 64 a row, as fractions of a texture of 64 by 64 texels: quads along
/// the rows, in the middle between a texel's centre and its corner, so that a linear filter weighs four texels.
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
