//! Runs kernels. No other file starts the emulated chip.

use std::sync::{Arc, Mutex};

use reconverge_isa::Program;
use reconverge_simt::memory::{Buffer, Memory};
use reconverge_simt::{Options, RunError};
use reconverge_tesla::inst::Stage;
use reconverge_tesla::launch::{Compute, Environment, Launch, LaunchError, Setup};
use reconverge_tesla::run::Loaded;
use reconverge_tesla::texture::Textures;
use reconverge_tesla::trap::{Cause, Space};

use crate::handles::lock;
use crate::image::readable;
use crate::messages::say;
use crate::status::{self, CallResult, CudaError};

/// A loaded kernel. The kernel is decoded and lowered for the constants and the textures of the last launch.
#[derive(Debug)]
pub(crate) struct Prepared {
    template: Compute,
    banks: Arc<Vec<ConstantBank>>,
    loaded: Mutex<Loaded>,
}

/// A constant bank that contains variables of the program. The variables are in device memory, and the program changes
/// the variables there.
#[derive(Debug)]
pub(crate) struct ConstantBank {
    pub(crate) number: usize,
    pub(crate) address: u32,
    pub(crate) bytes: usize,
}

/// The sizes of a launch.
#[derive(Debug)]
pub(crate) struct Sizes {
    pub(crate) grid: [u32; 2],
    pub(crate) block: [u32; 3],
    pub(crate) dynamic_shared: u32,
}

impl Prepared {
    /// Loads a program.
    pub(crate) fn new(
        program: &Program,
        setup: Setup,
        banks: Arc<Vec<ConstantBank>>,
        options: &Options,
    ) -> Result<Prepared, CudaError> {
        let refused = |error: LaunchError| {
            say(&format!("kernel {}: {error}", program.name.as_deref().unwrap_or_default()));
            CudaError::INVALID_IMAGE
        };
        let mut template = Compute::of(program, setup.chip).map_err(refused)?;
        template.setup = setup.into();
        let environment = Environment { stage: Stage::Compute, setup: template.setup.clone() };
        let loaded = Loaded::new(program, &environment, options).map_err(refused)?;
        Ok(Prepared { template, banks, loaded: Mutex::new(loaded) })
    }
}

/// Updates the constant banks and textures of a kernel from the memory, and returns the loaded program.
fn loaded(kernel: &Prepared, memory: &Memory, textures: Option<Textures>) -> Result<Loaded, CudaError> {
    let mut loaded = lock(&kernel.loaded);
    for bank in kernel.banks.iter() {
        let Some(bytes) = memory.bytes(bank.address, bank.bytes) else { continue };
        let known = loaded.environment().setup.constants.bank(bank.number);
        if known.get(..bytes.len()) != Some(bytes) {
            loaded.constants_mut().place(bank.number, 0, bytes);
        }
    }
    if let Some(textures) = textures {
        let mut setup = Setup::clone(&loaded.environment().setup);
        setup.textures = textures;
        *loaded = loaded.with_setup(Arc::new(setup)).map_err(|_| CudaError::LAUNCH_INCOMPATIBLE_TEXTURING)?;
    }
    Ok(loaded.clone())
}

/// A range of host memory that a kernel may access. The values are the address on the device, the address on the host,
/// and the number of bytes.
pub(crate) type MappedRange = (u32, usize, u64);

/// Runs a kernel on the memory of a context. `name` is the name of the kernel in messages.
///
/// # Errors
/// Returns an error if the program traps. A message explains the trap.
pub(crate) fn run(
    kernel: &Prepared,
    name: &str,
    sizes: &Sizes,
    parameters: Vec<u8>,
    textures: Option<Textures>,
    mapped: Vec<MappedRange>,
    memory: &mut Memory,
) -> CallResult {
    let loaded = loaded(kernel, memory, textures)?;
    let mut compute = kernel.template.clone();
    compute.setup = loaded.environment().setup.clone();
    compute.grid = sizes.grid;
    compute.block = sizes.block;
    compute.dynamic_shared = sizes.dynamic_shared;
    compute.params = parameters;
    let mapped = Mapped::of(mapped, memory);
    let ran = loaded.run_on(Launch::Compute(compute), memory);
    mapped.give_back(memory);
    ran.map(|_| ()).map_err(|error| {
        let (code, why) = match error {
            RunError::Trap(trap) => (of_cause(&trap.trap.cause), trap.to_string()),
            RunError::Launch(error) => (CudaError::LAUNCH_OUT_OF_RESOURCES, error.to_string()),
            error => (CudaError::LAUNCH_FAILED, error.to_string()),
        };
        say(&format!("kernel {name}: {why} ({})", status::name(code.0)));
        code
    })
}

/// Returns the CUDA error for the cause of a trap.
fn of_cause(cause: &Cause) -> CudaError {
    match cause {
        Cause::Memory { space: Space::Global(_), .. } => CudaError::ILLEGAL_ADDRESS,
        Cause::Undecodable(_) | Cause::UnalignedLongInstruction => CudaError::ILLEGAL_INSTRUCTION,
        Cause::OutsideCode => CudaError::INVALID_PC,
        Cause::Timeout(_) => CudaError::LAUNCH_TIMEOUT,
        Cause::NoTexture(_) | Cause::NoSampler(_) => CudaError::LAUNCH_INCOMPATIBLE_TEXTURING,
        _ => CudaError::LAUNCH_FAILED,
    }
}

/// Host memory that the kernel may access. While the kernel runs, the memory of the context contains a copy of this
/// host memory.
struct Mapped {
    /// Address on the device, address on the host, contents before the run.
    ranges: Vec<(u32, usize, Vec<u8>)>,
}

impl Mapped {
    fn of(mapped: Vec<MappedRange>, memory: &mut Memory) -> Mapped {
        let mut ranges = Vec::new();
        for (address, start, count) in mapped {
            let mut bytes = vec![0; count as usize];
            let count = readable(start, &mut bytes);
            bytes.truncate(count);
            if memory.insert(Buffer::new(address, bytes.clone())).is_ok() {
                ranges.push((address, start, bytes));
            }
        }
        Mapped { ranges }
    }

    /// Copies the bytes that the kernel has changed back to the host. The program may have written to unchanged bytes
    /// during the run. Therefore, the function does not write unchanged bytes.
    fn give_back(self, memory: &mut Memory) {
        /// Number of bytes that are compared at a time.
        const PART: usize = 4096;
        for (address, start, before) in self.ranges {
            let Some(after) = memory.remove(address) else { continue };
            // In a large range, most parts are unchanged. Therefore, the loop compares whole parts before single bytes.
            let parts = before.chunks(PART).zip(after.bytes.chunks(PART));
            for (number, (before, after)) in parts.enumerate().filter(|(_, (before, after))| before != after)
            {
                let mut at = 0;
                while at < before.len() {
                    let pairs = before[at..].iter().zip(&after[at..]);
                    at += pairs.take_while(|(old, new)| old == new).count();
                    let pairs = before[at..].iter().zip(&after[at..]);
                    let differ = pairs.take_while(|(old, new)| old != new).count();
                    // SAFETY: the program has registered the range, so the range is memory of the program.
                    unsafe {
                        let to = (start + PART * number + at) as *mut u8;
                        to.copy_from_nonoverlapping(after[at..].as_ptr(), differ);
                    }
                    at += differ;
                }
            }
        }
    }
}
