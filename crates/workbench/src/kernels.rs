//! Two kernels with divergent control flow. Each kernel exists for every machine that can run the kernel. The command
//! `bench` measures the kernels. The kernels are also examples of each machine's flow control.
//!
//! The sources are in `kernels/`, in the assembly language of this project. Each kernel computes one count per lane.
//! The lanes form rows of [`ROW`] lanes:
//!
//! * **mandel**: c = (-2 + x * 3/1024, -1.5 + y * 3/1024) in binary32. Every product and sum is rounded. The count is
//!   the number of steps z = z^2 + c that stay within radius 2. The count is at most 255.
//! * **collatz**: n = lane + 1 in wrapping 32-bit integers. The count is the number of steps until n is 1. The count is
//!   at most 255. R500 does not have integers, so R500 does not have this kernel.
//!
//! [`find`] returns a [`Kernel`]. [`Kernel::prepare`] assembles the kernel and prepares the kernel's launch.
//! [`Kernel::counts`] reads the counts from the results. For [`LANES`] lanes, the [`hash`] of the counts must equal
//! [`Kernel::golden`].

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

/// Number of lanes in a row of the image.
pub const ROW: u32 = 1024;
/// Number of lanes to which the golden hashes apply.
pub const LANES: u32 = 1 << 20;
/// Number of threads in a Tesla block. On Tesla, the number of lanes must be a multiple of this number.
pub const BLOCK: u32 = 256;

/// A kernel for one machine.
#[derive(Clone, Copy, Debug)]
pub struct Kernel {
    /// `mandel` or `collatz`.
    pub name: &'static str,
    /// The machine.
    pub isa: Isa,
    /// The assembler source.
    pub source: &'static str,
    /// The expected [`hash`] of the counts of [`LANES`] lanes.
    pub golden: u32,
    /// Function that returns the machine's part of the launch for a number of lanes.
    own: fn(u32) -> Arc<dyn MachineLaunch>,
    /// Name of the output. The first number in each row is the lane's count.
    output: &'static str,
    /// The number of lanes must be a multiple of this number.
    unit: u32,
}

const MANDEL: u32 = 0xcc8e_da81;
const COLLATZ: u32 = 0xac70_67e1;

/// The parts with which a machine runs a kernel. These parts are the machine, the function for the machine's part of
/// the launch, the output with the counts, and the unit of the number of lanes. The number of lanes must be a multiple
/// of the unit.
type On = (Isa, fn(u32) -> Arc<dyn MachineLaunch>, &'static str, u32);

const fn kernel(
    name: &'static str,
    golden: u32,
    source: &'static str,
    (isa, own, output, unit): On,
) -> Kernel {
    Kernel { name, isa, source, golden, own, output, unit }
}

/// Pixel positions are inputs in temp\[0\]. Counts are floats in the red channel of render target A.
const ON_R500: On = (Isa::R500, on_r500, "color0", 1);
/// Pixel positions are inputs in R0. Counts are integers in the red channel of export pixel 0.
const ON_R700: On = (Isa::R700, on_r700, "pixel0", 1);
/// The launch has blocks of [`BLOCK`] threads. The program writes the counts to the only buffer.
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

/// Returns the kernel with this name for a machine.
pub fn find(isa: Isa, name: &str) -> Option<&'static Kernel> {
    KERNELS.iter().find(|kernel| kernel.isa == isa && kernel.name == name)
}

/// Returns the 32-bit FNV-1a hash of the counts in lane order. The function hashes whole words instead of bytes.
pub fn hash(counts: &[u32]) -> u32 {
    counts.iter().fold(2_166_136_261, |hash, count| (hash ^ count).wrapping_mul(16_777_619))
}

/// The reason why a kernel does not return its counts.
#[derive(Debug, Error)]
pub enum KernelError {
    /// The number of lanes is 0 or is more than [`LANES`]. On Tesla, the number of lanes is also invalid if the number
    /// is not a multiple of [`BLOCK`].
    #[error("expected 1 to {LANES} lanes (on tesla, a multiple of {BLOCK}), found {0}")]
    Lanes(u32),
    /// The source does not assemble.
    #[error(transparent)]
    Source(#[from] OpenError),
    /// The launch is invalid, or the program traps.
    #[error(transparent)]
    Launch(#[from] Error),
    /// The output with the counts is missing.
    #[error("the program did not write counts")]
    NoCounts,
}

impl Kernel {
    /// Returns a session that runs the first `lanes` lanes. `lanes` is 1 to [`LANES`]. On Tesla, `lanes` must be a
    /// multiple of [`BLOCK`].
    ///
    /// # Errors
    /// Returns an error if the number of lanes is invalid. Also returns an error if the source does not assemble. A
    /// source that does not assemble is a defect of this crate.
    pub fn prepare(&self, lanes: u32) -> Result<Session, KernelError> {
        let opened = self.open()?;
        let launch = self.launch(lanes)?;
        Ok(launch.prepare(&opened.image, choose_program(&opened.image, None)?, &NoFiles)?)
    }

    /// Returns the launch of the first `lanes` lanes.
    ///
    /// # Errors
    /// Returns an error if the number of lanes is invalid.
    pub fn launch(&self, lanes: u32) -> Result<LaunchFile, KernelError> {
        if !(1..=LANES).contains(&lanes) || !lanes.is_multiple_of(self.unit) {
            return Err(KernelError::Lanes(lanes));
        }
        Ok(LaunchFile { isa: self.isa, common: Common::default(), machine: (self.own)(lanes) })
    }

    /// Returns the program.
    ///
    /// # Errors
    /// Returns an error if the source does not assemble. A source that does not assemble is a defect of this crate.
    pub fn open(&self) -> Result<Opened, OpenError> {
        open(self.source.as_bytes(), true, &Known { isa: Some(self.isa), ..Known::default() })
    }

    /// Returns the count of each lane, in lane order, from the results of a run.
    ///
    /// # Errors
    /// Returns [`KernelError::NoCounts`] if the output is missing, which is a defect of this crate.
    pub fn counts(&self, outcome: &dyn Outcome) -> Result<Vec<u32>, KernelError> {
        let outputs = outcome.outputs();
        let (_, array) = outputs.iter().find(|(name, _)| name == self.output).ok_or(KernelError::NoCounts)?;
        let row: usize = array.shape.iter().skip(1).product();
        let count = |bits: u32| if array.dtype == Dtype::F32 { f32::from_bits(bits) as u32 } else { bits };
        Ok(array.words().step_by(row).map(count).collect())
    }
}

/// Returns the centre of each lane's pixel. Consecutive lanes have consecutive pixels. The pixels form rows of `row`
/// pixels.
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
