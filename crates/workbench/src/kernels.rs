//! Two divergent kernels for every machine that can run them: what `bench` measures, and worked examples of each
//! machine's flow control.
//!
//! The sources stand in `kernels/`, in the repository's own assembly. Both kernels compute one count a lane over rows
//! of [`ROW`] lanes:
//!
//! * **mandel**: c = (-2 + x * 3/1024, -1.5 + y * 3/1024) in binary32, every product and sum rounded; how many of at
//!   most 255 steps z = z^2 + c stays within radius 2.
//! * **collatz**: n = lane + 1 in wrapping 32-bit integers; how many of at most 255 steps n takes to come to 1.
//!   R500 has no integers, so there is none for it.
//!
//! [`find`] gives a [`Kernel`], [`Kernel::prepare`] assembles it and lays out its launch, [`Prepared::run`] runs that
//! on an engine, [`Left::counts`] reads what it left, and [`hash`] folds the counts into the figure that must equal
//! [`Kernel::golden`] over [`LANES`] lanes.

use std::sync::Arc;

use reconverge_isa::source::Diagnostic;
use reconverge_isa::{Isa, Program};
use reconverge_r500::launch as r500;
use reconverge_r700::chip::Chip;
use reconverge_r700::code::ExportKind;
use reconverge_r700::launch as r700;
use reconverge_simt::memory::{Buffer, LayoutError, Memory};
use reconverge_simt::{Event, FlowTrace, Mask, Observer, Options, Statistics};
use reconverge_tesla::inst::{Chip as TeslaChip, Stage};
use reconverge_tesla::launch as tesla;
use thiserror::Error;

use crate::request::How;

/// Lanes of a row of the picture.
pub const ROW: u32 = 1024;
/// Lanes that the golden hashes are for.
pub const LANES: u32 = 1 << 20;
/// Threads of a Tesla block; a launch there is a multiple of it.
pub const BLOCK: u32 = 256;

/// Where a Tesla launch has its output.
const OUT: u32 = 0x1_0000;

/// A kernel for one machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// `mandel` or `collatz`.
    pub name: &'static str,
    /// The machine.
    pub isa: Isa,
    /// Its source, with comments.
    pub source: &'static str,
    /// [`hash`] of the counts of [`LANES`] lanes.
    pub golden: u32,
}

const MANDEL: u32 = 0xcc8e_da81;
const COLLATZ: u32 = 0xac70_67e1;

/// Every kernel.
#[rustfmt::skip]
pub static KERNELS: [Kernel; 5] = [
    Kernel { name: "mandel",  isa: Isa::R500,  source: include_str!("../kernels/mandel.r500.s"),   golden: MANDEL },
    Kernel { name: "mandel",  isa: Isa::R700,  source: include_str!("../kernels/mandel.r700.s"),   golden: MANDEL },
    Kernel { name: "collatz", isa: Isa::R700,  source: include_str!("../kernels/collatz.r700.s"),  golden: COLLATZ },
    Kernel { name: "mandel",  isa: Isa::Tesla, source: include_str!("../kernels/mandel.tesla.s"),  golden: MANDEL },
    Kernel { name: "collatz", isa: Isa::Tesla, source: include_str!("../kernels/collatz.tesla.s"), golden: COLLATZ },
];

/// The kernel of this name for a machine.
pub fn find(isa: Isa, name: &str) -> Option<&'static Kernel> {
    KERNELS.iter().find(|kernel| kernel.isa == isa && kernel.name == name)
}

/// FNV-1a over words instead of bytes, 32 bits, in lane order.
pub fn hash(counts: &[u32]) -> u32 {
    counts.iter().fold(2_166_136_261, |hash, count| (hash ^ count).wrapping_mul(16_777_619))
}

/// A kernel ready to run: program and launch.
#[derive(Clone, Debug)]
pub enum Prepared {
    /// Positions come in through temp\[0\], counts leave as numbers through render target A, red.
    R500 {
        /// The program in its slots.
        setup: Arc<reconverge_r500::setup::Setup>,
        /// The launch, with its options: threads as wide as R520's.
        launch: r500::Launch,
    },
    /// Positions come in through R0, counts leave through pixel 0, red. Boxed for its size.
    R700 {
        /// The program.
        program: Program,
        /// The launch.
        launch: Box<r700::Launch>,
        /// How to run.
        options: reconverge_simt::Options,
    },
    /// Blocks of [`BLOCK`] threads; counts leave through the one buffer of the launch's memory.
    Tesla {
        /// The program.
        program: Program,
        /// The launch. Boxed for its size.
        launch: Box<tesla::Compute>,
        /// How to run. `parallel` is on: the threads are those of the rayon pool in which the run is called.
        options: reconverge_simt::Options,
    },
}

/// Why there are no counts.
#[derive(Debug, Error)]
pub enum KernelError {
    /// The source does not assemble.
    #[error("{} errors, the first: {}", .0.len(), .0[0])]
    Source(Vec<Diagnostic>),
    /// The source has a directive that the launch has no use for.
    #[error("no launch has a .{0}")]
    Directive(String),
    /// No lanes, more than [`LANES`], or on Tesla not a multiple of [`BLOCK`].
    #[error("a launch of {0} lanes is not possible: 1 to {LANES}, on tesla a multiple of {BLOCK}")]
    Lanes(u32),
    /// R500: the program cannot be set up.
    #[error(transparent)]
    Setup(#[from] reconverge_r500::setup::SetupError),
    /// R500: the run failed.
    #[error(transparent)]
    R500(#[from] r500::RunError),
    /// R700: the run failed.
    #[error(transparent)]
    R700(#[from] reconverge_r700::run::RunError),
    /// Tesla: the launch cannot be.
    #[error(transparent)]
    TeslaLaunch(#[from] tesla::LaunchError),
    /// Tesla: the memory cannot be laid out.
    #[error(transparent)]
    Memory(#[from] LayoutError),
    /// Tesla: the run failed.
    #[error(transparent)]
    Tesla(#[from] tesla::RunError),
    /// The run left no counts where they should be.
    #[error("the program left no counts")]
    NoCounts,
}

impl Kernel {
    /// The launch of the first `lanes` lanes: 1 to [`LANES`], on Tesla a multiple of [`BLOCK`]. Undefined behaviour
    /// traps.
    ///
    /// # Errors
    /// A number of lanes that cannot be, or a source that does not assemble, which is a mistake in this crate.
    pub fn prepare(&self, lanes: u32) -> Result<Prepared, KernelError> {
        if !(1..=LANES).contains(&lanes) || self.isa == Isa::Tesla && !lanes.is_multiple_of(BLOCK) {
            return Err(KernelError::Lanes(lanes));
        }
        match self.isa {
            Isa::R500 => prepare_r500(self.source, lanes),
            Isa::R700 => prepare_r700(self.source, lanes),
            Isa::Tesla => prepare_tesla(self.source, lanes),
        }
    }
}

impl Prepared {
    /// Runs on an engine. Reading the counts out of what is left is not part of the run.
    ///
    /// # Errors
    /// The program trapped.
    pub fn run(self, how: How) -> Result<Left, KernelError> {
        Ok(match self {
            Prepared::R500 { setup, launch } => {
                Left::R500(reconverge_r500::run::run(&setup, &launch, &options_of(how))?.into())
            }
            Prepared::R700 { program, launch, options } => {
                Left::R700(reconverge_r700::run::run(&program, &launch, &r700_on(how, options))?.into())
            }
            Prepared::Tesla { program, launch, options } => {
                let options = tesla_on(how, options);
                Left::Tesla(reconverge_tesla::run::run(tesla::Launch::Compute(*launch), &program, &options)?)
            }
        })
    }

    /// Runs in order on one thread with a trace of who runs and what the stack does; gives the pieces of the trace
    /// beside what is left.
    ///
    /// # Errors
    /// The program trapped.
    pub fn run_traced(self, how: How) -> Result<(Left, u64), KernelError> {
        let mut trace = Streamed::default();
        let left = match self {
            Prepared::R500 { setup, launch } => Left::R500(
                reconverge_r500::run::run_observed(&setup, &launch, &options_of(how), &mut trace)?.into(),
            ),
            Prepared::R700 { program, launch, options } => {
                let options = r700_on(how, options);
                Left::R700(
                    reconverge_r700::run::run_observed(&program, &launch, &options, &mut trace)?.into(),
                )
            }
            Prepared::Tesla { program, launch, options } => {
                let options = tesla_on(how, options);
                let launch = tesla::Launch::Compute(*launch);
                Left::Tesla(reconverge_tesla::run::run_observed(launch, &program, &options, &mut trace)?)
            }
        };
        Ok((left, trace.steps + trace.trace.steps.len() as u64))
    }
}

/// What a run left.
#[derive(Clone, Debug, PartialEq)]
pub enum Left {
    /// Counts are numbers in the red of render target A. Boxed for its size.
    R500(Box<reconverge_r500::outputs::Outcome>),
    /// Counts are in the red of pixel 0. Boxed for its size.
    R700(Box<reconverge_r700::outcome::Outcome>),
    /// Counts are in the one buffer.
    Tesla(tesla::Outcome),
}

impl Left {
    /// One count a lane, in lane order.
    ///
    /// # Errors
    /// [`KernelError::NoCounts`], which is a mistake in this crate.
    pub fn counts(&self) -> Result<Vec<u32>, KernelError> {
        let counts = match self {
            Left::R500(outcome) => {
                let red = outcome.outputs.color(0, 0);
                red.map(|red| red.iter().map(|bits| f32::from_bits(*bits) as u32).collect())
            }
            Left::R700(outcome) => {
                let pixels = outcome.export(ExportKind::Pixel, 0);
                pixels.map(|pixels| pixels.values.iter().map(|[red, ..]| *red).collect())
            }
            Left::Tesla(outcome) => {
                let buffer = outcome.memory.at(OUT).map(|buffer| buffer.bytes.as_chunks::<4>().0);
                buffer.map(|words| words.iter().map(|word| u32::from_le_bytes(*word)).collect())
            }
        };
        counts.ok_or(KernelError::NoCounts)
    }

    /// Instructions of groups (warps, wavefronts, threads of quads), of lanes, and divergent branches, as the machine's
    /// documentation of its statistics defines them.
    pub fn statistics(&self) -> Statistics {
        match self {
            Left::R500(outcome) => outcome.statistics,
            Left::R700(outcome) => outcome.statistics,
            Left::Tesla(outcome) => outcome.statistics,
        }
    }
}

/// A trace of who runs and what the stack does, handed on in pieces so that it stays small.
#[derive(Clone, Debug, Default)]
struct Streamed {
    trace: FlowTrace,
    /// Pieces that have been handed on.
    steps: u64,
}

/// Pieces that are kept at a time.
const KEPT: usize = 1 << 14;

impl Streamed {
    #[inline(always)]
    fn hand_on(&mut self) {
        if self.trace.steps.len() >= KEPT {
            // The last one may grow.
            let done = self.trace.steps.len() - 1;
            self.trace.steps.drain(..done);
            self.steps += done as u64;
        }
    }
}

impl Observer for Streamed {
    const ENABLED: bool = true;
    const DATA: bool = false;

    #[inline(always)]
    fn event(&mut self, event: Event) {
        self.trace.event(event);
        self.hand_on();
    }

    #[inline(always)]
    fn issues(&mut self, addresses: &[u32], mask: Mask) {
        self.trace.issues(addresses, mask);
        self.hand_on();
    }
}

fn options_of(how: How) -> Options {
    Options { engine: how.engine(), level: how.level, ..Options::default() }
}

fn r700_on(how: How, options: reconverge_simt::Options) -> reconverge_simt::Options {
    reconverge_simt::Options { engine: how.engine(), level: how.level, ..options }
}

fn tesla_on(how: How, options: reconverge_simt::Options) -> reconverge_simt::Options {
    reconverge_simt::Options { engine: how.engine(), level: how.level, ..options }
}

/// What a rasteriser that fills its groups along the rows gives: the centre of each lane's pixel.
fn positions(lanes: u32) -> Vec<[u32; 4]> {
    let centre = |pixel: u32| (pixel as f32 + 0.5).to_bits();
    (0..lanes).map(|lane| [centre(lane % ROW), centre(lane / ROW), 0, 0]).collect()
}

fn prepare_r500(source: &str, lanes: u32) -> Result<Prepared, KernelError> {
    let assembled = reconverge_r500::text::assemble(source).map_err(KernelError::Source)?;
    let group_width = r500::group_width(assembled.chip.as_deref());
    let launch = r500::Launch {
        lanes: lanes as usize,
        inputs: vec![r500::Input { temp: 0, values: positions(lanes).into() }],
        hardware: r500::Hardware { group_width, ..r500::Hardware::default() },
        ..r500::Launch::default()
    };
    Ok(Prepared::R500 { setup: Arc::new(reconverge_r500::setup::Setup::new(&assembled.program)?), launch })
}

fn prepare_r700(source: &str, lanes: u32) -> Result<Prepared, KernelError> {
    let assembled = reconverge_r700::text::assemble(source, Chip::RV770).map_err(KernelError::Source)?;
    let mut launch = r700::Launch::new(assembled.chip, r700::Stage::Pixel, lanes as usize);
    launch.inputs.push(r700::Input { gpr: 0, values: positions(lanes).into() });
    launch.clause_temps = 0;
    for (name, values) in &assembled.state {
        match (name.as_str(), values.as_slice()) {
            ("stage pixel", []) => {}
            ("gprs", [count @ 0..=128]) => launch.num_gprs = *count as u8,
            ("stack", [entries]) => launch.stack_size = Some(*entries),
            _ => return Err(KernelError::Directive(name.clone())),
        }
    }
    let program = Program::from_words(assembled.words);
    Ok(Prepared::R700 { program, launch: Box::new(launch), options: reconverge_simt::Options::default() })
}

fn prepare_tesla(source: &str, lanes: u32) -> Result<Prepared, KernelError> {
    let chip = TeslaChip::G80;
    let assembled =
        reconverge_tesla::text::assemble(source, chip, Stage::Compute).map_err(KernelError::Source)?;
    let program = assembled.programs.into_iter().next().unwrap_or_default();
    let mut launch = tesla::Compute::of(&program, assembled.chip)?;
    launch.grid = [lanes / BLOCK, 1];
    launch.block = [BLOCK, 1, 1];
    launch.params = OUT.to_le_bytes().to_vec();
    launch.memory = Memory::new(vec![Buffer { address: OUT, bytes: vec![0; 4 * lanes as usize] }])?;
    Ok(Prepared::Tesla { program, launch: Box::new(launch), options: reconverge_simt::Options::default() })
}
