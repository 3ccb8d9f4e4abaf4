//! Two divergent kernels for every machine that can run them: what `bench` measures, and worked examples of each
//! machine's flow control.
//!
//! The sources are in `kernels/`, in the repository's own assembly. Both kernels compute one count a lane over rows
//! of [`ROW`] lanes:
//!
//! * **mandel**: c = (-2 + x * 3/1024, -1.5 + y * 3/1024) in binary32, every product and sum rounded; how many of at
//!   most 255 steps z = z^2 + c stays within radius 2.
//! * **collatz**: n = lane + 1 in wrapping 32-bit integers; how many of at most 255 steps n takes to come to 1.
//!   R500 has no integers, so there is none for it.
//!
//! [`find`] gives a [`Kernel`], [`Kernel::prepare`] assembles it and lays out its launch, [`Kernel::counts`] reads what a
//! run leaves, and [`hash`] folds the counts into the figure that must equal [`Kernel::golden`] over [`LANES`] lanes.

use std::sync::Arc;

use reconverge_isa::Isa;
use thiserror::Error;

use crate::array::{Array, Dtype};
use crate::error::Error;
use crate::launch::{LaunchFile, choose_program};
use crate::open::{Known, OpenError, Opened, open};
use crate::request::{Common, MachineLaunch};
use crate::session::{Outcome, Session};
use crate::values::{NoFiles, Values};
use crate::{r500, r700, tesla};

/// Lanes of a row of the picture.
pub const ROW: u32 = 1024;
/// Lanes that the golden hashes are for.
pub const LANES: u32 = 1 << 20;
/// Threads of a Tesla block; a launch there is a multiple of it.
pub const BLOCK: u32 = 256;

/// A kernel for one machine.
#[derive(Clone, Copy, Debug)]
pub struct Kernel {
    /// `mandel` or `collatz`.
    pub name: &'static str,
    /// The machine.
    pub isa: Isa,
    /// Its source, with comments.
    pub source: &'static str,
    /// [`hash`] of the counts of [`LANES`] lanes.
    pub golden: u32,
    /// The machine's part of a launch of so many lanes.
    own: fn(u32) -> Arc<dyn MachineLaunch>,
    /// The output whose first number in each row is a lane's count.
    output: &'static str,
    /// A launch has a multiple of so many lanes.
    unit: u32,
}

const MANDEL: u32 = 0xcc8e_da81;
const COLLATZ: u32 = 0xac70_67e1;

/// How a machine runs a kernel: its part of a launch, the output with the counts, and the unit of lanes.
type On = (Isa, fn(u32) -> Arc<dyn MachineLaunch>, &'static str, u32);

const fn kernel(
    name: &'static str,
    golden: u32,
    source: &'static str,
    (isa, own, output, unit): On,
) -> Kernel {
    Kernel { name, isa, source, golden, own, output, unit }
}

/// Positions come in through temp\[0\], counts leave as numbers through render target A, red.
const ON_R500: On = (Isa::R500, on_r500, "color0", 1);
/// Positions come in through R0, counts leave through pixel 0, red.
const ON_R700: On = (Isa::R700, on_r700, "pixel0", 1);
/// Blocks of [`BLOCK`] threads; counts leave through the one buffer.
const ON_TESLA: On = (Isa::Tesla, on_tesla, "out", BLOCK);

/// Every kernel.
#[rustfmt::skip]
pub static KERNELS: [Kernel; 5] = [
    kernel("mandel",  MANDEL,  include_str!("../kernels/mandel.r500.s"),   ON_R500),
    kernel("mandel",  MANDEL,  include_str!("../kernels/mandel.r700.s"),   ON_R700),
    kernel("collatz", COLLATZ, include_str!("../kernels/collatz.r700.s"),  ON_R700),
    kernel("mandel",  MANDEL,  include_str!("../kernels/mandel.tesla.s"),  ON_TESLA),
    kernel("collatz", COLLATZ, include_str!("../kernels/collatz.tesla.s"), ON_TESLA),
];

/// The kernel of this name for a machine.
pub fn find(isa: Isa, name: &str) -> Option<&'static Kernel> {
    KERNELS.iter().find(|kernel| kernel.isa == isa && kernel.name == name)
}

/// FNV-1a over words instead of bytes, 32 bits, in lane order.
pub fn hash(counts: &[u32]) -> u32 {
    counts.iter().fold(2_166_136_261, |hash, count| (hash ^ count).wrapping_mul(16_777_619))
}

/// Why there are no counts.
#[derive(Debug, Error)]
pub enum KernelError {
    /// No lanes, more than [`LANES`], or on Tesla not a multiple of [`BLOCK`].
    #[error("a launch of {0} lanes is not possible: 1 to {LANES}, on tesla a multiple of {BLOCK}")]
    Lanes(u32),
    /// The source does not assemble.
    #[error(transparent)]
    Source(#[from] OpenError),
    /// The launch cannot be, or the program traps.
    #[error(transparent)]
    Launch(#[from] Error),
    /// The run leaves no counts where they should be.
    #[error("the program left no counts")]
    NoCounts,
}

impl Kernel {
    /// The launch of the first `lanes` lanes, ready: 1 to [`LANES`], on Tesla a multiple of [`BLOCK`].
    ///
    /// # Errors
    /// A number of lanes that cannot be, or a source that does not assemble, which is a mistake in this crate.
    pub fn prepare(&self, lanes: u32) -> Result<Session, KernelError> {
        let opened = self.open()?;
        let launch = self.launch(lanes)?;
        Ok(launch.prepare(&opened.image, choose_program(&opened.image, None)?, &NoFiles)?)
    }

    /// The launch of the first `lanes` lanes.
    ///
    /// # Errors
    /// A number of lanes that cannot be.
    pub fn launch(&self, lanes: u32) -> Result<LaunchFile, KernelError> {
        if !(1..=LANES).contains(&lanes) || !lanes.is_multiple_of(self.unit) {
            return Err(KernelError::Lanes(lanes));
        }
        Ok(LaunchFile { isa: self.isa, common: Common::default(), machine: (self.own)(lanes) })
    }

    /// The program.
    ///
    /// # Errors
    /// A source that does not assemble, which is a mistake in this crate.
    pub fn open(&self) -> Result<Opened, OpenError> {
        open(self.source.as_bytes(), true, &Known { isa: Some(self.isa), ..Known::default() })
    }

    /// One count a lane, in lane order, of what a run leaves.
    ///
    /// # Errors
    /// [`KernelError::NoCounts`], which is a mistake in this crate.
    pub fn counts(&self, outcome: &dyn Outcome) -> Result<Vec<u32>, KernelError> {
        let outputs = outcome.outputs();
        let (_, array) = outputs.iter().find(|(name, _)| name == self.output).ok_or(KernelError::NoCounts)?;
        let row: usize = array.shape.iter().skip(1).product();
        let count = |bits: u32| if array.dtype == Dtype::F32 { f32::from_bits(bits) as u32 } else { bits };
        Ok(array.words().step_by(row).map(count).collect())
    }
}

/// The centre of each lane's pixel, as a rasteriser that fills its groups along the rows gives it.
pub(crate) fn positions(lanes: u32, row: u32) -> Values {
    let centre = |pixel: u32| (pixel as f32 + 0.5).to_bits();
    let words = (0..lanes).flat_map(|lane| [centre(lane % row), centre(lane / row)]);
    Array::from_words(Dtype::F32, vec![lanes as usize, 2], words).into()
}

fn on_r500(lanes: u32) -> Arc<dyn MachineLaunch> {
    let input = vec![r500::launch::InputValues { temp: 0, values: positions(lanes, ROW) }];
    Arc::new(r500::Launch { input, ..r500::Launch::default() })
}

fn on_r700(lanes: u32) -> Arc<dyn MachineLaunch> {
    Arc::new(r700::Launch {
        input: vec![r700::launch::InputValues { gpr: 0, values: positions(lanes, ROW) }],
        clause_temps: Some(0),
        output_type: Some("u32".to_owned()),
        ..r700::Launch::default()
    })
}

fn on_tesla(lanes: u32) -> Arc<dyn MachineLaunch> {
    let zeros = Array { dtype: Dtype::U32, shape: vec![lanes as usize], bytes: vec![0; 4 * lanes as usize] };
    let buffer = Some(zeros.into());
    Arc::new(tesla::Launch {
        grid: vec![lanes / BLOCK],
        block: vec![BLOCK],
        param: vec![tesla::launch::ParamValue { name: "out".to_owned(), buffer, ..Default::default() }],
        ..tesla::Launch::default()
    })
}
