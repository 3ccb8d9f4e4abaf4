//! What looks at a chip from outside: programs on their way in, draws with all that they ran.
//!
//! A chip calls its [`Observer`] at three places: for the words of a program before they are decoded, after a draw with
//! the surfaces that it has stored into, and with every launch of its programs. Nothing here depends on the chip but [`Machine`], which has a variant for each
//! machine that launches can be of, and the text of a [`ChipProgram`].

use std::fmt::{Debug, Write};
use std::sync::Arc;

use reconverge_isa::program::Stage;
use reconverge_isa::{Isa, Program};
use reconverge_r500::pvs;
use reconverge_simt::Options;
use reconverge_simt::vram::Vram;
use reconverge_tesla::launch::Varying;

/// The most lanes that a captured launch has; a draw with more is captured without it. One more than 1920 x 1080.
pub const MOST_LANES: usize = 1 << 21;

/// What looks at a chip.
pub trait Observer: Debug + Send {
    /// Takes a program before it is decoded, and may change its words.
    fn program(&mut self, _program: &mut ChipProgram) {}

    /// Whether the draw with this number is wanted, from 1 on: without, it is not put together.
    fn captures(&self, _draw: u64) -> bool {
        false
    }

    /// Takes a draw that has ended, or was ended by a trap.
    fn draw(&mut self, _draw: &Captured) {}

    /// Whether surfaces are wanted after each draw.
    fn looks(&self) -> bool {
        false
    }

    /// Looks at the surfaces that a draw stores into, in the memory of all buffers. Draws are numbered from 1 on.
    fn surfaces(&mut self, _draw: u64, _targets: &[Target], _memory: Vram<'_>) {}
}

/// A program as the chip reads it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ChipProgram {
    /// The machine.
    pub isa: Isa,
    /// The chip, as the machine's table of chips spells it.
    pub chip: &'static str,
    /// The stage.
    pub stage: Stage,
    /// The words, from its first instruction on. They may go on beyond its end.
    pub words: Vec<u32>,
    /// The address of the first word, as [`Program::base`] counts it.
    pub base: u32,
    /// State registers that it runs by, by their names in the machine.
    pub state: Vec<(String, u32)>,
}

impl ChipProgram {
    /// The program for its machine.
    pub fn program(&self) -> Program {
        let ChipProgram { words, base, state, .. } = self.clone();
        Program { base, state, ..Program::from_words(words) }
    }

    /// The program as a file that the other commands read, and how its name ends: words where they say all of it, and
    /// otherwise source text.
    pub fn file(&self) -> (&'static str, String) {
        let ChipProgram { isa, chip, stage, words, .. } = self;
        let program = self.program();
        match isa {
            Isa::R700 => {
                let mut text = format!("# isa {isa}, chip {chip}, stage {}\n", stage.name());
                for word in words {
                    let _ = writeln!(text, "{word:08x}"); // A string never refuses.
                }
                ("hex", text)
            }
            Isa::R500 => ("s", format!(".isa {isa}\n.chip {chip}\n{}", r500_text(&program, *stage))),
            Isa::Tesla => ("s", format!(".isa {isa}\n{}", tesla_text(&program, chip, *stage))),
        }
    }
}

/// The text of a program of R500, but for machine and chip.
fn r500_text(program: &Program, stage: Stage) -> String {
    match stage {
        Stage::Vertex => pvs::text::disassemble(program, pvs::text::Listing::default()),
        _ => reconverge_r500::text::disassemble(program, reconverge_r500::text::Listing::default()),
    }
}

fn tesla_text(program: &Program, chip: &str, stage: Stage) -> String {
    use reconverge_tesla::inst;
    let known = inst::Chip::from_name(chip).zip(inst::Stage::of(stage));
    let (chip, stage) = known.unwrap_or((inst::Chip::G80, inst::Stage::Compute));
    reconverge_tesla::text::disassemble_program(
        program,
        chip,
        stage,
        reconverge_tesla::text::Listing::default(),
    )
}

/// A draw with what it ran.
#[derive(Clone, Debug, Default)]
pub struct Captured {
    /// Its number, from 1 on: the draw that messages name.
    pub number: u64,
    /// How primitives are made of vertices.
    pub primitive: String,
    /// Indices, and how many instances of them.
    pub indices: usize,
    /// See [`Captured::indices`].
    pub instances: u32,
    /// What it stores into.
    pub targets: Vec<Target>,
    /// What ran, in the order of the pipeline.
    pub launches: Vec<Launched>,
    /// Why it did not end.
    pub trap: Option<String>,
}

/// A surface that a draw stores into.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// `color0` to `color7`, or `depth`.
    pub name: String,
    /// Its elements, in words.
    pub format: String,
    /// Its first byte, in the memory of all buffers.
    pub start: usize,
    /// Bytes of an element.
    pub bytes: usize,
    /// Elements from one row to the next.
    pub pitch: usize,
    /// Rows.
    pub rows: usize,
}

impl Target {
    /// Returns a copy of its bytes, as far as they are in memory.
    pub fn content(&self, memory: Vram<'_>) -> Vec<u8> {
        let end = self.start.saturating_add(self.pitch * self.rows * self.bytes).min(memory.len());
        memory.bytes(self.start..end)
    }
}

/// A program that ran, on what, and what it gave.
#[derive(Clone, Debug)]
pub struct Launched {
    /// `vertex`, `fragment` or `compute`.
    pub stage: &'static str,
    /// The program, as it ran.
    pub program: ChipProgram,
    /// What it started from.
    pub machine: Machine,
    /// How it ran.
    pub options: Options,
    /// What its lanes are.
    pub lanes: Lanes,
    /// What it left, by the name that the machine's launches have for it.
    pub outputs: Vec<(String, Output)>,
    /// Whether its outputs are integers.
    pub integers: bool,
    /// Why it is not here whole: it has too many lanes.
    pub too_large: Option<String>,
}

/// A launch of a machine.
#[derive(Clone, Debug)]
pub enum Machine {
    /// R600 and R700.
    R700(Box<reconverge_r700::launch::Launch>),
    /// The fragment unit of R500.
    R500(Box<reconverge_r500::launch::Launch>),
    /// The vertex unit of R500.
    Pvs(Box<pvs::launch::Launch>),
    /// Fragments of Tesla.
    TeslaFragment(Box<reconverge_tesla::launch::Fragment>),
    /// Vertices of Tesla.
    TeslaVertex(Box<reconverge_tesla::launch::Vertex>),
    /// A grid of Tesla, with the memory that it reaches as it was before.
    TeslaCompute(Box<reconverge_tesla::launch::Compute>),
}

impl Machine {
    /// Gives the launch its lanes, and what they start from by the number of the register or word.
    pub(crate) fn set_lanes(&mut self, count: usize, lanes: &Lanes, inputs: Vec<(u16, Rows)>) {
        match self {
            Machine::R700(launch) => {
                use reconverge_r700::launch::Input;
                let input = |(gpr, rows): (u16, Rows)| Input { gpr: gpr as u8, values: rows.vectors() };
                (launch.lanes, launch.inputs) = (count, inputs.into_iter().map(input).collect());
            }
            Machine::R500(launch) => {
                use reconverge_r500::launch::Input;
                let input = |(temp, rows): (u16, Rows)| Input { temp: temp as u8, values: rows.vectors() };
                (launch.lanes, launch.inputs) = (count, inputs.into_iter().map(input).collect());
            }
            Machine::Pvs(launch) => {
                use pvs::launch::Input;
                let input = |(register, rows): (u16, Rows)| Input {
                    register: register as u8,
                    values: rows.vectors(),
                };
                (launch.vertices, launch.inputs) = (count, inputs.into_iter().map(input).collect());
            }
            Machine::TeslaFragment(launch) => {
                launch.lanes = count;
                if let Lanes::Pixels(pixels) = lanes {
                    launch.covered = pixels.iter().map(|pixel| pixel[2] == 1).collect();
                }
                let input = |(word, rows): (u16, Rows)| (word, Varying::Lanes(rows.words.into()));
                launch.varyings = inputs.into_iter().map(input).collect();
            }
            Machine::TeslaVertex(launch) => {
                launch.lanes = count;
                launch.inputs = inputs.into_iter().map(|(word, rows)| (word, rows.words)).collect();
            }
            // Threads are numbered by the machine.
            Machine::TeslaCompute(_) => {}
        }
    }
}

/// What each lane of a launch is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lanes {
    /// Its index, and its instance.
    Vertices(Vec<[u32; 2]>),
    /// x, y, and 1 where the primitive covers the pixel: the others only help with differences.
    Pixels(Vec<[i32; 3]>),
    /// The threads of a grid. The value is their number.
    Threads(usize),
}

/// Words of all lanes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rows {
    /// Words of a lane.
    pub width: usize,
    /// Those of the first lane, then those of the next.
    pub words: Vec<u32>,
}

impl Rows {
    /// Four words a lane.
    fn vectors(self) -> Arc<[[u32; 4]]> {
        self.words.as_chunks::<4>().0.into()
    }
}

/// Values of all lanes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Numbers.
    Words(Rows),
    /// Yes or no.
    Flags(Vec<bool>),
}
