//! Describes the engine: the machines, the chips of each machine, and the limits. Also runs the kernels of `bench`.

use reconverge_isa::Isa;
use reconverge_isa::limits::{LANES, MEMORY};
use reconverge_simt::Options;
use reconverge_workbench::kernels;
use reconverge_workbench::target::chips;
use serde::Serialize;

use crate::error::{FaultyPart, PlayError};

/// The machines and limits of the engine.
#[derive(Clone, Debug, Serialize)]
pub struct EngineDescribed {
    /// The version of this crate.
    pub version: &'static str,
    /// `wasm` or `native`.
    pub engine: &'static str,
    /// The machines.
    pub machines: Vec<MachineShown>,
    /// Maximum number of lanes in a launch.
    pub lanes: u64,
    /// Maximum size of a buffer in bytes.
    pub memory: u64,
}

/// A machine.
#[derive(Clone, Debug, Serialize)]
pub struct MachineShown {
    /// Name of the machine.
    pub isa: &'static str,
    /// Names of the chips.
    pub chips: Vec<&'static str>,
}

/// Returns the machines and limits of the engine.
pub fn describe() -> EngineDescribed {
    let machine = |isa: Isa| MachineShown {
        isa: isa.name(),
        chips: chips(isa).into_iter().map(|chip| chip.name).collect(),
    };
    EngineDescribed {
        version: env!("CARGO_PKG_VERSION"),
        engine: if cfg!(target_family = "wasm") { "wasm" } else { "native" },
        machines: Isa::ALL.map(machine).to_vec(),
        lanes: LANES.get(),
        memory: MEMORY.get(),
    }
}

/// The result of a kernel of `bench`.
#[derive(Clone, Debug, Serialize)]
pub struct KernelRan {
    /// The hash of the counts that all lanes computed.
    pub hash: String,
    /// The expected hash for a launch with all lanes.
    pub golden: String,
    /// Whether the launch has all lanes of the kernel.
    pub full: bool,
    /// Number of instructions issued to groups.
    pub group_instructions: u64,
}

/// Runs a kernel of `bench` over the first `lanes` lanes.
///
/// # Errors
/// Returns an error if the machine or kernel does not exist, or if the number of lanes is not possible.
pub fn run_kernel(isa: &str, kernel: &str, lanes: u32) -> Result<KernelRan, PlayError> {
    let wrong = |message: String| PlayError::of(FaultyPart::Request, message);
    let isa: Isa =
        isa.parse().map_err(|error: reconverge_isa::program::UnknownIsa| wrong(error.to_string()))?;
    let kernel =
        kernels::find(isa, kernel).ok_or_else(|| wrong(format!("{isa} has no kernel `{kernel}`")))?;
    let failed = |error: kernels::KernelError| wrong(error.to_string());
    let session = kernel.prepare(lanes).map_err(failed)?;
    let outcome = session.run(&Options::default())?;
    let counts = kernel.counts(&*outcome).map_err(failed)?;
    Ok(KernelRan {
        hash: format!("{:08x}", kernels::hash(&counts)),
        golden: format!("{:08x}", kernel.golden),
        full: lanes == kernels::LANES,
        group_instructions: outcome.statistics().instructions,
    })
}
