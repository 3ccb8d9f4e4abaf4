//! Launches: the state before the first instruction, and the results of the run.
//!
//! A launch is a [`Compute`], [`Fragment`], [`Vertex`] or [`Geometry`]. Each of these types contains a [`Setup`] with
//! the fields that all stages have. This module only defines data: `grid.rs` builds blocks from a launch, and `run.rs`
//! executes the blocks. See tesla.md 1.3 (warps), tesla.md 1.6 (start) and tesla.md 11.4 (launching).

use std::sync::Arc;

use litemap::LiteMap;
use reconverge_isa::Program;
use reconverge_isa::limits::{Exceeded, LANES};
use reconverge_isa::program::{Module, Place};
use reconverge_isa::sets::NumberSet;
use reconverge_simt::Statistics;
use reconverge_simt::fidelity::Report;
use reconverge_simt::memory::{Buffer, LayoutError, Memory};
use thiserror::Error;

use crate::driver_fixes::DriverFixes;
use crate::flow::{Limits, WARP};
use crate::inst::{Chip, Stage};
use crate::meaning::Modes;
pub use crate::results::LaneResults;
use crate::spaces::{Constants, Segments};
pub use crate::state::LaneResult;
use crate::state::MOST_REGISTERS;
use crate::texture::Textures;
use crate::trap::Cause;

/// Number of registers of a program if the program's container does not specify the number. Compilers do not use more
/// registers than this number. In a program without a specified number, registers $r124 to $r127 are absent. Reads of
/// absent registers return zero, and writes to absent registers are dropped. Compiled code expects this behaviour.
/// (1.4)
pub const UNSPECIFIED_REGISTERS: u32 = 124;

/// The maximum size of s[] per block, in bytes. If the container does not specify a size, s[] has the maximum size.
/// (1.6)
pub const MOST_SHARED: u32 = 0x4000;

/// Byte address of the first parameter in s[]. (1.6)
pub const PARAMETERS: u32 = 0x10;

/// The maximum size of l[] of a thread, in bytes. (1.6)
pub const MOST_LOCAL: u32 = 0x1_0000;

/// The maximum number of threads per block. The encoding could express 64 · 1024 · 65536 threads, and hardware allows
/// 512 threads (CUDA). This machine also runs blocks of more than 512 threads.
pub const MOST_THREADS: u32 = 1 << 16;

/// The maximum size of l[] of all threads of a block together, in bytes. This maximum and [`MOST_THREADS`] limit the
/// host memory of a launch. For 512 threads with the largest l[] of the hardware, an eighth of this maximum is enough.
pub const MOST_LOCAL_OF_BLOCK: u64 = 1 << 28;

/// The fields that every stage has.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The chip. The chip determines which instructions can be decoded, and affects a few results.
    pub chip: Chip,
    /// Number of general registers per thread. Registers beyond this number read zero.
    pub registers: u32,
    /// Number of bytes of l[] per thread. If the number is not 0, it is rounded up to a power of two, and to at least
    /// 0x10. (1.6)
    pub local_bytes: u32,
    /// Address of the first word of the code in the code window. Branch targets are absolute addresses in this window.
    /// (11.4)
    pub code_base: u32,
    /// The constant banks c0..c15[].
    pub constants: Constants,
    /// Textures and samplers.
    pub textures: Textures,
    /// Limits of the token stack.
    pub limits: Limits,
    /// Mode bits that affect f32 results.
    pub modes: Modes,
    /// Fixes for a program of Mesa's compiler. The fixes replace each wrong address in s[] by the address that the
    /// compiler means.
    pub driver_fixes: Option<DriverFixes>,
    /// $pm0 to $pm3, which no instruction changes.
    pub counters: [u32; 4],
}

impl Setup {
    /// Creates a setup for `chip` with [`UNSPECIFIED_REGISTERS`] and code at address 0. No constants, textures or
    /// samplers are bound.
    pub fn new(chip: Chip) -> Self {
        Setup {
            chip,
            registers: UNSPECIFIED_REGISTERS,
            local_bytes: 0,
            code_base: 0,
            constants: Constants::new(),
            textures: Textures::default(),
            limits: Limits::default(),
            modes: Modes::default(),
            driver_fixes: None,
            counters: [0; 4],
        }
    }

    /// Returns the setup that the container of `program` specifies: registers, local memory, constants.
    ///
    /// # Errors
    /// A constant block is outside the sixteen banks of 64 KiB.
    pub fn of(program: &Program, chip: Chip) -> Result<Self, LaunchError> {
        let mut setup = Setup::new(chip);
        setup.registers = program.resources.registers.unwrap_or(UNSPECIFIED_REGISTERS);
        setup.local_bytes = program.resources.local_bytes.unwrap_or(0);
        for block in &program.constants {
            if !setup.constants.place(block.bank as usize, block.offset as usize, &block.bytes) {
                return Err(LaunchError::Constants { bank: block.bank, offset: block.offset });
            }
        }
        Ok(setup)
    }

    /// Checks that a program of `words` words fits the machine.
    ///
    /// # Errors
    /// The number of registers, the addresses of the code or the size of l[] exceed the machine's limits.
    pub fn check(&self, words: usize) -> Result<(), LaunchError> {
        if self.registers as usize > MOST_REGISTERS {
            return Err(LaunchError::Registers(self.registers));
        }
        let end = u64::from(self.code_base) + 4 * words as u64;
        if !self.code_base.is_multiple_of(8) || end > 1 << 24 {
            return Err(LaunchError::CodeBase { base: self.code_base, words });
        }
        self.local_size().map(|_| ())
    }

    /// Returns whether lowering produces the same program for both setups. Such setups differ at most in the contents
    /// of c[]. Two images count as equal only if both setups refer to a single image in memory.
    pub fn lowers_alike(&self, other: &Setup) -> bool {
        let Setup {
            chip,
            registers,
            local_bytes,
            code_base,
            constants: _,
            textures,
            limits,
            modes,
            driver_fixes,
            counters: _,
        } = self;
        (*chip, *registers, *local_bytes) == (other.chip, other.registers, other.local_bytes)
            && (*code_base, *limits, *modes) == (other.code_base, other.limits, other.modes)
            && *driver_fixes == other.driver_fixes
            && textures.is_same(&other.textures)
    }

    /// Returns the number of bytes of l[] that are allocated per thread. (1.6)
    pub(crate) fn local_size(&self) -> Result<u32, LaunchError> {
        match self.local_bytes {
            0 => Ok(0),
            bytes if bytes <= MOST_LOCAL => Ok(bytes.next_power_of_two().max(0x10)),
            bytes => Err(LaunchError::LocalBytes(bytes)),
        }
    }
}

/// The environment for which a program is loaded: the data that all runs of the program have in common.
#[derive(Clone, Debug)]
pub struct Environment {
    /// The program type.
    pub stage: Stage,
    /// The fields that every stage has.
    pub setup: Arc<Setup>,
}

/// A launch of a compute program: a grid of blocks.
#[derive(Clone, Debug)]
pub struct Compute {
    /// The fields that every stage has. Copies of a launch share these fields, so copying is cheap.
    pub setup: Arc<Setup>,
    /// Number of blocks in x and y, 1 to 0xffff each.
    pub grid: [u32; 2],
    /// Number of threads of a block in x, y and z.
    pub block: [u32; 3],
    /// Number of bytes of s[] per block, including header and parameters, but without the dynamic part. `None` means
    /// unspecified: the block gets all of s[].
    pub shared_bytes: Option<u32>,
    /// Number of bytes of the dynamic part of s[]. The dynamic part comes after all other bytes.
    pub dynamic_shared: u32,
    /// The number of the grid, which is written to s\[0x0\].
    pub grid_id: u16,
    /// The parameter area, which is copied to s[] from s\[0x10\] on.
    pub params: Vec<u8>,
    /// Number of allocated barriers. `None` means that the container does not specify the number, and the program may
    /// use all barriers.
    pub barriers: Option<u32>,
    /// The location of g0..g15[] in the memory.
    pub segments: Segments,
    /// Global memory.
    pub memory: Memory,
}

impl Compute {
    /// Returns a launch with a single block of one thread, without parameters or memory. The setup comes from the
    /// container of `program`.
    ///
    /// # Errors
    /// The errors of [`Setup::of`].
    pub fn of(program: &Program, chip: Chip) -> Result<Self, LaunchError> {
        Ok(Compute {
            setup: Setup::of(program, chip)?.into(),
            grid: [1, 1],
            block: [1, 1, 1],
            shared_bytes: program.resources.shared_bytes,
            dynamic_shared: 0,
            grid_id: 0,
            params: Vec::new(),
            barriers: program.resources.barriers,
            segments: Segments::default(),
            memory: Memory::default(),
        })
    }

    /// Returns the setup for modification.
    pub fn setup_mut(&mut self) -> &mut Setup {
        Arc::make_mut(&mut self.setup)
    }

    /// Returns the number of bytes of s[], rounded up to a multiple of 0x40. s[] contains the header, parameters,
    /// static variables and dynamic variables. (1.6)
    fn shared_size(&self) -> u64 {
        let least = u64::from(PARAMETERS) + self.params.len() as u64;
        match self.shared_bytes {
            Some(bytes) => {
                (u64::from(bytes).max(least) + u64::from(self.dynamic_shared)).next_multiple_of(0x40)
            }
            None => u64::from(MOST_SHARED).max(least),
        }
    }

    /// Loads the constants and the variables in global memory that all programs of a module share. (11.1, 11.4)
    ///
    /// Global variables become buffers from `address` on, at least 256 bytes apart, in the module's order. The function
    /// writes the addresses of the variables to constant slots. The module reserves these slots for the addresses
    /// (usually in c14\[\]). Returns the names and addresses of the variables.
    ///
    /// # Errors
    /// A constant or slot is outside the banks, or the new buffers overlap the buffers of [`Compute::memory`].
    pub fn load_module(&mut self, module: &Module, address: u32) -> Result<Vec<(String, u32)>, LaunchError> {
        let constants = &mut Arc::make_mut(&mut self.setup).constants;
        for block in &module.constants {
            if !constants.place(block.bank as usize, block.offset as usize, &block.bytes) {
                return Err(LaunchError::Constants { bank: block.bank, offset: block.offset });
            }
        }
        let mut placed = Vec::new();
        let mut next = u64::from(address);
        for variable in &module.variables {
            let Place::Global { slots, init } = &variable.place else { continue };
            let here = u32::try_from(next).map_err(|_| LaunchError::Memory(LayoutError::Beyond(u32::MAX)))?;
            let mut bytes = init.clone();
            bytes.resize(variable.bytes as usize, 0);
            next += (bytes.len() as u64).next_multiple_of(256).max(256);
            self.memory.insert(Buffer::new(here, bytes)).map_err(LaunchError::Memory)?;
            for slot in slots {
                let value = here.wrapping_add(slot.addend);
                if !constants.place(slot.bank as usize, slot.offset as usize, &value.to_le_bytes()) {
                    return Err(LaunchError::Constants { bank: slot.bank, offset: slot.offset });
                }
            }
            placed.push((variable.name.clone(), here));
        }
        Ok(placed)
    }
}

/// The word of v\[\] that holds the sample numbers, if fragments are single samples. `$sampleid` reads this word.
/// Programs that a driver creates do not read this word as an interpolant.
pub const SAMPLE_ID: u16 = 0xfe;

/// One interpolant word of a fragment program.
#[derive(Clone, Debug, PartialEq)]
pub enum Varying {
    /// For each fragment, the word that interpolation returns at every position, including the position "flat". For a
    /// perspective attribute, this word is the attribute divided by w, and the program multiplies the word by w. (6.7)
    /// Launches with the same column can share the column without a copy.
    Lanes(Arc<Vec<u32>>),
    /// A plane, evaluated at the fragment's position. For a perspective attribute, the plane is the plane of attribute
    /// / w.
    Plane {
        /// Value at position (0, 0).
        base: f32,
        /// Change of the value per pixel in x.
        dx: f32,
        /// Change of the value per pixel in y.
        dy: f32,
        /// Result of flat interpolation: the word of the provoking vertex.
        flat: u32,
    },
}

/// A launch of a fragment program. Lanes 4q to 4q+3 form the quad q: upper left, upper right, lower left, lower right.
#[derive(Clone, Debug)]
pub struct Fragment {
    /// The fields that every stage has. Copies of a launch share these fields, so copying is cheap.
    pub setup: Arc<Setup>,
    /// Number of fragments. Helper lanes fill the last quad if `helpers` is set.
    pub lanes: usize,
    /// Whether lanes that are not covered, or are beyond `lanes`, run as helpers for derivatives of their quads.
    pub helpers: bool,
    /// Whether each fragment is covered. If the list is empty, all fragments are covered. An uncovered fragment runs
    /// only as a helper.
    pub covered: Vec<bool>,
    /// The position of each fragment's centre. Fragments without an entry form a row of quads. The first centre of this
    /// row is (0.5, 0.5).
    pub centres: Vec<[f32; 2]>,
    /// For each fragment, the centroid of its covered samples. Fragments without an entry use their centre.
    pub centroids: Vec<[f32; 2]>,
    /// Number of registers in the results, from `$r0` on: four per colour. `None` means all registers.
    pub kept: Option<usize>,
    /// Interpolants by slot: slot n is v\[4n\]. Slot 0 is 1/w. The default of slot 0 is 1.0.
    pub varyings: LiteMap<u16, Varying>,
}

impl Fragment {
    /// Creates a launch of `lanes` covered fragments without inputs.
    pub fn new(setup: impl Into<Arc<Setup>>, lanes: usize) -> Self {
        Fragment {
            setup: setup.into(),
            lanes,
            helpers: false,
            covered: Vec::new(),
            centres: Vec::new(),
            centroids: Vec::new(),
            kept: None,
            varyings: LiteMap::new(),
        }
    }

    /// Returns the setup for modification.
    pub fn setup_mut(&mut self) -> &mut Setup {
        Arc::make_mut(&mut self.setup)
    }
}

/// A launch of a vertex program.
#[derive(Clone, Debug)]
pub struct Vertex {
    /// The fields that every stage has. Copies of a launch share these fields, so copying is cheap.
    pub setup: Arc<Setup>,
    /// Number of vertices.
    pub lanes: usize,
    /// a[] by word number (byte address / 4), with one word per vertex.
    pub inputs: LiteMap<u16, Vec<u32>>,
}

/// A launch of a geometry program.
#[derive(Clone, Debug)]
pub struct Geometry {
    /// The fields that every stage has. Copies of a launch share these fields, so copying is cheap.
    pub setup: Arc<Setup>,
    /// Number of primitives.
    pub lanes: usize,
    /// a[] by word number, with one word per primitive. For each input vertex, the word is the p[] address of the
    /// vertex's attributes.
    pub inputs: LiteMap<u16, Vec<u32>>,
    /// The words of p[].
    pub vertices: Vec<u32>,
}

/// A launch of any stage.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant, reason = "a run has one launch")]
pub enum Launch {
    /// A grid of a compute program.
    Compute(Compute),
    /// Fragments.
    Fragment(Fragment),
    /// Vertices.
    Vertex(Vertex),
    /// Primitives.
    Geometry(Geometry),
}

impl Launch {
    /// The fields that every stage has.
    pub fn setup(&self) -> &Arc<Setup> {
        match self {
            Launch::Compute(launch) => &launch.setup,
            Launch::Fragment(launch) => &launch.setup,
            Launch::Vertex(launch) => &launch.setup,
            Launch::Geometry(launch) => &launch.setup,
        }
    }

    /// Returns the environment in which the program must be loaded to run this launch.
    pub fn environment(&self) -> Environment {
        Environment { stage: self.stage(), setup: self.setup().clone() }
    }

    /// Replaces the setup of the launch by the setup of `environment`. The stage of `environment` must be the stage of
    /// the launch.
    ///
    /// # Errors
    /// The environment is for another stage.
    pub(crate) fn put_into(&mut self, environment: &Environment) -> Result<(), LaunchError> {
        let (stage, loaded) = (self.stage(), environment.stage);
        if stage != loaded {
            return Err(LaunchError::Stage { stage, loaded });
        }
        let setup = match self {
            Launch::Compute(launch) => &mut launch.setup,
            Launch::Fragment(launch) => &mut launch.setup,
            Launch::Vertex(launch) => &mut launch.setup,
            Launch::Geometry(launch) => &mut launch.setup,
        };
        if !Arc::ptr_eq(setup, &environment.setup) {
            setup.clone_from(&environment.setup);
        }
        Ok(())
    }

    /// The program type.
    pub fn stage(&self) -> Stage {
        match self {
            Launch::Compute(_) => Stage::Compute,
            Launch::Fragment(_) => Stage::Fragment,
            Launch::Vertex(_) => Stage::Vertex,
            Launch::Geometry(_) => Stage::Geometry,
        }
    }

    /// Returns the number of blocks of a compute launch, or the number of warps of a graphics launch.
    pub fn blocks(&self) -> usize {
        match self {
            Launch::Compute(compute) => compute.grid[0] as usize * compute.grid[1] as usize,
            Launch::Fragment(_) | Launch::Vertex(_) | Launch::Geometry(_) => self.lanes().div_ceil(WARP),
        }
    }

    /// Returns the number of warps.
    pub(crate) fn warps(&self) -> usize {
        let of_a_block = match self {
            Launch::Compute(compute) => {
                compute.block.iter().map(|threads| *threads as usize).product::<usize>().div_ceil(WARP)
            }
            Launch::Fragment(_) | Launch::Vertex(_) | Launch::Geometry(_) => 1,
        };
        self.blocks() * of_a_block
    }

    /// Returns the number of lanes of a graphics launch. The results of these lanes form the outcome. Returns 0 for a
    /// compute launch.
    pub(crate) fn lanes(&self) -> usize {
        match self {
            Launch::Compute(_) => 0,
            Launch::Fragment(Fragment { lanes, .. })
            | Launch::Vertex(Vertex { lanes, .. })
            | Launch::Geometry(Geometry { lanes, .. }) => *lanes,
        }
    }

    /// Returns the number of registers in the results, or `None` for all registers.
    pub(crate) fn kept(&self) -> Option<usize> {
        match self {
            Launch::Fragment(fragment) => fragment.kept,
            Launch::Compute(_) | Launch::Vertex(_) | Launch::Geometry(_) => None,
        }
    }

    /// Returns the words of a[] or v[] that every lane has.
    pub(crate) fn inputs(&self) -> NumberSet {
        let of = |word: &u16| u32::from(*word);
        match self {
            Launch::Compute(_) => NumberSet::new(),
            // The word for 1/w always exists.
            Launch::Fragment(fragment) => fragment.varyings.keys().map(of).chain([0]).collect(),
            Launch::Vertex(Vertex { inputs, .. }) | Launch::Geometry(Geometry { inputs, .. }) => {
                inputs.keys().map(of).collect()
            }
        }
    }

    /// Checks that a program of `words` words can be run with this launch.
    ///
    /// # Errors
    /// A size is invalid, an input is too short, or the setup or the program exceeds the machine's limits.
    pub(crate) fn check(&self, words: usize) -> Result<(), LaunchError> {
        LANES.check(self.lanes() as u64).map_err(LaunchError::Lanes)?;
        self.setup().check(words)?;
        self.check_lanes()
    }

    /// Returns the number of defined bytes of s[] at the start of a block, rounded up to whole words. Returns `None`
    /// for graphics stages.
    pub(crate) fn given_bytes(&self) -> Option<u32> {
        match self {
            Launch::Compute(compute) => Some((PARAMETERS + compute.params.len() as u32).next_multiple_of(4)),
            Launch::Fragment(_) | Launch::Vertex(_) | Launch::Geometry(_) => None,
        }
    }

    /// Returns the number of bytes of s[] per block, or 0 for graphics stages.
    pub(crate) fn shared_bytes(&self) -> usize {
        match self {
            Launch::Compute(compute) => compute.shared_size() as usize,
            Launch::Fragment(_) | Launch::Vertex(_) | Launch::Geometry(_) => 0,
        }
    }

    fn check_lanes(&self) -> Result<(), LaunchError> {
        let short = |slot: u16, given: usize, lanes: usize| match given < lanes {
            true => Err(LaunchError::InputTooShort { slot, given, lanes }),
            false => Ok(()),
        };
        match self {
            Launch::Compute(compute) => {
                let side = |size: &u32| (1..=0xffff).contains(size);
                if !compute.grid.iter().all(side) {
                    return Err(LaunchError::Grid(compute.grid));
                }
                let [x, y, z] = compute.block.map(u64::from);
                // `$r0` has 16 bits for x, 10 bits for y and 6 bits for z.
                let fits = compute.block.iter().all(side) && y <= 1 << 10 && z <= 1 << 6;
                if !fits || x * y * z > u64::from(MOST_THREADS) {
                    return Err(LaunchError::Block(compute.block));
                }
                let local = x * y * z * u64::from(compute.setup.local_size()?);
                if local > MOST_LOCAL_OF_BLOCK {
                    return Err(LaunchError::LocalOfBlock(local));
                }
                match compute.shared_size() {
                    size if size > u64::from(MOST_SHARED) => Err(LaunchError::SharedBytes(size)),
                    _ => Ok(()),
                }
            }
            Launch::Fragment(fragment) => {
                fragment.varyings.iter().try_for_each(|(&slot, varying)| match varying {
                    Varying::Lanes(values) => short(slot, values.len(), fragment.lanes),
                    Varying::Plane { .. } => Ok(()),
                })
            }
            Launch::Vertex(Vertex { lanes, inputs, .. })
            | Launch::Geometry(Geometry { lanes, inputs, .. }) => {
                inputs.iter().try_for_each(|(&word, values)| short(word, values.len(), *lanes))
            }
        }
    }
}

/// The reason that a launch is invalid.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LaunchError {
    /// A grid size outside 1 to 0xffff.
    #[error("grid {0:?}: each side is 1 to 65535")]
    Grid([u32; 2]),
    /// A block without threads, or with too many threads.
    #[error("block {0:?}: 1 to 65535 threads a side, at most 64 in z, at most {MOST_THREADS} in all")]
    Block([u32; 3]),
    /// More lanes of a graphics stage than [`LANES`] allows.
    #[error(transparent)]
    Lanes(Exceeded),
    /// More shared memory than a block can have.
    #[error("{0} bytes of shared memory: at most {MOST_SHARED}")]
    SharedBytes(u64),
    /// More local memory than a thread can have.
    #[error("{0} bytes of local memory a thread: at most {MOST_LOCAL}")]
    LocalBytes(u32),
    /// More local memory for all threads of a block than this machine supports.
    #[error("{0} bytes of local memory for a block: at most {MOST_LOCAL_OF_BLOCK}")]
    LocalOfBlock(u64),
    /// More registers than a thread can have.
    #[error("{0} registers: at most {MOST_REGISTERS}")]
    Registers(u32),
    /// Constants outside the banks.
    #[error("constants at c{bank}[{offset:#x}]: there are sixteen banks of 64 KiB")]
    Constants {
        /// Number of the bank.
        bank: u32,
        /// Offset of the first byte in the bank.
        offset: u32,
    },
    /// Global memory whose layout is invalid.
    #[error(transparent)]
    Memory(LayoutError),
    /// An input with fewer words than there are lanes.
    #[error("input {slot} has {given} words for {lanes} lanes")]
    InputTooShort {
        /// Slot or word number.
        slot: u16,
        /// Number of words that the launch provides.
        given: usize,
        /// Number of lanes of the launch.
        lanes: usize,
    },
    /// A code base that is not a multiple of 8, or code beyond 24-bit addresses.
    #[error("code of {words} words at {base:#x}: it must start at a multiple of 8 and end within 24 bits")]
    CodeBase {
        /// Address of the first word.
        base: u32,
        /// Number of words of the code.
        words: usize,
    },
    /// The program type of the launch differs from the program type for which the program is loaded.
    #[error("a launch of type {stage:?}: the program is loaded for {loaded:?}")]
    Stage {
        /// Type of the launch.
        stage: Stage,
        /// Type of the program.
        loaded: Stage,
    },
}

/// The reason that a run returns no outcome.
pub type RunError = reconverge_simt::RunError<LaunchError, Cause>;

/// The results of a launch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Global memory, for compute launches.
    pub memory: Memory,
    /// Results of the lanes, for graphics stages.
    pub lanes: LaneResults,
    /// The counters; see [`crate::context::Common::statistics`].
    pub statistics: Statistics,
    /// The operations that were executed, and their exactness.
    pub report: Report,
    /// Whether an access beyond the limit of a lenient segment was dropped.
    pub dropped: bool,
}
