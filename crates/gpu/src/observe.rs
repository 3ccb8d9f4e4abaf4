//! Observers of a chip, and the programs and draws that the observers receive.
//!
//! A chip passes three kinds of data to an [`Observer`]: the words of each program before decoding, the surfaces after
//! each draw, and all launches of each captured draw. Only two items of this module depend on the chip. [`Machine`] has
//! a variant for each kind of launch. The text of a [`ChipProgram`] depends on the instruction set.

use std::fmt::{Debug, Write};
use std::sync::Arc;

use reconverge_isa::program::Stage;
use reconverge_isa::{Isa, Program};
use reconverge_r500::pvs;
use reconverge_simt::Options;
use reconverge_simt::vram::Vram;
use reconverge_tesla::launch::Varying;

/// Maximum number of lanes of a captured launch. If a launch has more lanes than this limit, the captured draw does not
/// contain the lanes of this launch. The limit exceeds the number of pixels of 1920 x 1080.
pub const MOST_LANES: usize = 1 << 21;

/// An observer of a chip.
pub trait Observer: Debug + Send {
    /// Receives a program before the chip decodes the program. The observer may change the words of the program.
    fn program(&mut self, _program: &mut ChipProgram) {}

    /// Returns whether the observer captures the draw with this number, counted from 1. If the observer does not
    /// capture the draw, the chip does not collect launches of the draw.
    fn captures(&self, _draw: u64) -> bool {
        false
    }

    /// Receives a captured draw. The draw has completed or trapped.
    fn draw(&mut self, _draw: &Captured) {}

    /// Returns whether the observer reads the surfaces after each draw, in [`Observer::surfaces`].
    fn looks(&self) -> bool {
        false
    }

    /// Receives the surfaces that a draw stores into, and the memory that contains all buffers. Draws are numbered from
    /// 1.
    fn surfaces(&mut self, _draw: u64, _targets: &[Target], _memory: Vram<'_>) {}
}

/// A program, with the words that the chip reads from memory.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ChipProgram {
    /// The machine that runs the program.
    pub isa: Isa,
    /// Name of the chip in the machine's table of chips.
    pub chip: &'static str,
    /// The stage that runs the program.
    pub stage: Stage,
    /// Words that begin with the first instruction. The words may extend past the end of the program.
    pub words: Vec<u32>,
    /// Address of the first word, in the unit of [`Program::base`].
    pub base: u32,
    /// State registers of the program, each with the name that the machine uses for the register.
    pub state: Vec<(String, u32)>,
}

impl ChipProgram {
    /// Returns the program in the form that the machine loads.
    pub fn program(&self) -> Program {
        let ChipProgram { words, base, state, .. } = self.clone();
        Program { base, state, ..Program::from_words(words) }
    }

    /// Returns the extension and the contents of a file from which the commands of `reconverge` can read this program.
    /// For R700, the file contains words. For R500 and Tesla, the file contains source text. The text also contains the
    /// state registers or the address of the program.
    pub fn file(&self) -> (&'static str, String) {
        let ChipProgram { isa, chip, stage, words, .. } = self;
        let program = self.program();
        match isa {
            Isa::R700 => {
                let mut text = format!("# isa {isa}, chip {chip}, stage {}\n", stage.name());
                for word in words {
                    let _ = writeln!(text, "{word:08x}"); // Writing to a string cannot fail.
                }
                ("hex", text)
            }
            Isa::R500 => ("s", format!(".isa {isa}\n.chip {chip}\n{}", r500_text(&program, *stage))),
            Isa::Tesla => ("s", format!(".isa {isa}\n{}", tesla_text(&program, chip, *stage))),
        }
    }
}

/// Returns the source text of an R500 program, without the directives for machine and chip.
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

/// A captured draw with all its launches.
#[derive(Clone, Debug, Default)]
pub struct Captured {
    /// Number of the draw, counted from 1. Messages use the same number.
    pub number: u64,
    /// Kind of the primitives.
    pub primitive: String,
    /// Number of indices.
    pub indices: usize,
    /// Number of instances.
    pub instances: u32,
    /// Surfaces that the draw stores into.
    pub targets: Vec<Target>,
    /// Launches, in the order of the pipeline.
    pub launches: Vec<Launched>,
    /// Message of the trap that ended the draw, if any.
    pub trap: Option<String>,
}

/// A surface that a draw stores into.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// `color0` to `color7`, or `depth`.
    pub name: String,
    /// Format of the elements, as text.
    pub format: String,
    /// Offset of the first byte in the memory that contains all buffers.
    pub start: usize,
    /// Size of an element in bytes.
    pub bytes: usize,
    /// Number of elements from one row to the next.
    pub pitch: usize,
    /// Number of rows.
    pub rows: usize,
}

impl Target {
    /// Returns a copy of the surface's bytes, up to the end of memory.
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
    /// The program, with the observer's changes.
    pub program: ChipProgram,
    /// State at the start of the launch.
    pub machine: Machine,
    /// Options of the program's run.
    pub options: Options,
    /// Vertices, pixels or threads of the launch.
    pub lanes: Lanes,
    /// Outputs, each with the name that the machine's launches use for the output.
    pub outputs: Vec<(String, Output)>,
    /// Whether the outputs are integers.
    pub integers: bool,
    /// Reason for which the launch is not captured completely, for instance because the launch has too many lanes.
    pub too_large: Option<String>,
}

/// A launch in the form that a machine runs.
#[derive(Clone, Debug)]
pub enum Machine {
    /// A launch of R600 or R700.
    R700(Box<reconverge_r700::launch::Launch>),
    /// A launch of the fragment unit of R500.
    R500(Box<reconverge_r500::launch::Launch>),
    /// A launch of the vertex unit of R500.
    Pvs(Box<pvs::launch::Launch>),
    /// A fragment launch of Tesla.
    TeslaFragment(Box<reconverge_tesla::launch::Fragment>),
    /// A vertex launch of Tesla.
    TeslaVertex(Box<reconverge_tesla::launch::Vertex>),
    /// A compute launch of Tesla, with the contents of memory before the launch.
    TeslaCompute(Box<reconverge_tesla::launch::Compute>),
}

impl Machine {
    /// Sets the number of lanes, and the inputs. Each input is stored with the number of its register or word.
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
            // The grid of a compute launch already determines the threads.
            Machine::TeslaCompute(_) => {}
        }
    }
}

/// The vertices, pixels or threads of a launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lanes {
    /// Index and instance of each vertex.
    Vertices(Vec<[u32; 2]>),
    /// Each entry has x and y of a pixel, and a flag. The flag is 1 if the primitive covers the pixel. Pixels that the
    /// primitive does not cover only provide values for derivatives.
    Pixels(Vec<[i32; 3]>),
    /// The number of threads of a grid.
    Threads(usize),
}

/// A register, input or output of all lanes, as words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rows {
    /// Number of words per lane.
    pub width: usize,
    /// The words of all lanes, in the order of the lanes. The words of a lane are contiguous.
    pub words: Vec<u32>,
}

impl Rows {
    /// Returns the words in groups of four. Each lane has one group.
    fn vectors(self) -> Arc<[[u32; 4]]> {
        self.words.as_chunks::<4>().0.into()
    }
}

/// The values of one output for all lanes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Words, such as colours.
    Words(Rows),
    /// One flag per lane.
    Flags(Vec<bool>),
}
