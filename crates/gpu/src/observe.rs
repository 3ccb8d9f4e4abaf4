//! Observers of a chip: programs before they are decoded, and draws with everything that they ran.
//!
//! A chip calls its [`Observer`] at three points: for the words of a program before they are decoded, after a draw
//! with the surfaces that it has stored into, and with every launch of its programs. Only two items here depend on
//! the chip: [`Machine`], which has a variant for each machine that can run a launch, and the text of a
//! [`ChipProgram`].

use std::fmt::{Debug, Write};
use std::sync::Arc;

use reconverge_isa::program::Stage;
use reconverge_isa::{Isa, Program};
use reconverge_r500::pvs;
use reconverge_simt::Options;
use reconverge_simt::vram::Vram;
use reconverge_tesla::launch::Varying;

/// Maximum number of lanes of a captured launch. A larger draw is captured without it. The limit exceeds 1920 x 1080.
pub const MOST_LANES: usize = 1 << 21;

/// An observer of a chip.
pub trait Observer: Debug + Send {
    /// Receives a program before it is decoded, and may change its words.
    fn program(&mut self, _program: &mut ChipProgram) {}

    /// Returns whether the observer captures the draw with this number, counted from 1. Other draws are not
    /// assembled.
    fn captures(&self, _draw: u64) -> bool {
        false
    }

    /// Receives a draw that has ended, or that a trap has ended.
    fn draw(&mut self, _draw: &Captured) {}

    /// Returns whether the observer reads the surfaces after each draw.
    fn looks(&self) -> bool {
        false
    }

    /// Receives the surfaces that a draw stores into, in the memory of all buffers. Draws are numbered from 1.
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
    /// The words, from the first instruction on. They may extend past the end of the program.
    pub words: Vec<u32>,
    /// The address of the first word, as [`Program::base`] counts it.
    pub base: u32,
    /// State registers of the program, by their names in the machine.
    pub state: Vec<(String, u32)>,
}

impl ChipProgram {
    /// Returns the program for its machine.
    pub fn program(&self) -> Program {
        let ChipProgram { words, base, state, .. } = self.clone();
        Program { base, state, ..Program::from_words(words) }
    }

    /// Returns the program as a file that the other commands read, and its extension: words if they contain
    /// everything, otherwise source text.
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

/// Returns the text of a program of R500, except for the lines of machine and chip.
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

/// A draw with everything that it ran.
#[derive(Clone, Debug, Default)]
pub struct Captured {
    /// Number of the draw, from 1, as in messages.
    pub number: u64,
    /// Kind of the primitives.
    pub primitive: String,
    /// Number of indices, and number of instances.
    pub indices: usize,
    /// See [`Captured::indices`].
    pub instances: u32,
    /// Surfaces that the draw stores into.
    pub targets: Vec<Target>,
    /// Launches, in the order of the pipeline.
    pub launches: Vec<Launched>,
    /// Reason why the draw did not end, if a trap ended it.
    pub trap: Option<String>,
}

/// A surface that a draw stores into.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// `color0` to `color7`, or `depth`.
    pub name: String,
    /// Format of the elements, as text.
    pub format: String,
    /// Offset of the first byte, in the memory of all buffers.
    pub start: usize,
    /// Bytes of an element.
    pub bytes: usize,
    /// Elements from one row to the next.
    pub pitch: usize,
    /// Rows.
    pub rows: usize,
}

impl Target {
    /// Returns a copy of the surface's bytes, as far as they are in memory.
    pub fn content(&self, memory: Vram<'_>) -> Vec<u8> {
        let end = self.start.saturating_add(self.pitch * self.rows * self.bytes).min(memory.len());
        memory.bytes(self.start..end)
    }
}

/// A launch of a program, with its inputs and outputs.
#[derive(Clone, Debug)]
pub struct Launched {
    /// `vertex`, `fragment` or `compute`.
    pub stage: &'static str,
    /// The program, as it ran.
    pub program: ChipProgram,
    /// State at the start of the launch.
    pub machine: Machine,
    /// Options of the run.
    pub options: Options,
    /// The lanes of the launch.
    pub lanes: Lanes,
    /// Outputs, by their names in the machine's launches.
    pub outputs: Vec<(String, Output)>,
    /// Whether its outputs are integers.
    pub integers: bool,
    /// Reason why the launch is not captured whole: it has too many lanes.
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
    /// A grid of Tesla, with the memory that it accesses, as it was before.
    TeslaCompute(Box<reconverge_tesla::launch::Compute>),
}

impl Machine {
    /// Sets the lanes of the launch, and their inputs by number of the register or word.
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

/// Inputs that identify the lanes of a launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lanes {
    /// Index and instance of each vertex.
    Vertices(Vec<[u32; 2]>),
    /// x, y, and 1 if the primitive covers the pixel. The other lanes only supply differences.
    Pixels(Vec<[i32; 3]>),
    /// The number of threads of a grid.
    Threads(usize),
}

/// Words of all lanes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rows {
    /// Words of a lane.
    pub width: usize,
    /// Words of the first lane, then those of the next.
    pub words: Vec<u32>,
}

impl Rows {
    /// Returns four words per lane.
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
