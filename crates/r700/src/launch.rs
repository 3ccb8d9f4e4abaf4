//! What is true before the first instruction, and what is left after the last: [`Launch`], [`Options`], [`run`],
//! [`run_in_pieces`], [`Outcome`].
//!
//! A launch of more lanes than the chip's wavefront has is split into wavefronts, which run one after another in the
//! order of their lanes. Sources: MAN p. 33 to 37; register positions from Mesa `r600d.h`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use reconverge_simt::fidelity::Report;
use reconverge_simt::{Engine, Fidelity, Lane, Level, Mask, Statistics};

use crate::chip::Chip;
use crate::code::{Code, CodeOptions, ExportKind};
use crate::fetch::VertexBuffer;
use crate::flow::{FlowSetup, LoopConstant};
use crate::rules::Rule;
use crate::texture::{Texture, TextureSampler};

#[cfg(doc)]
use crate::reference::Wave;

pub use crate::run::{run, run_in_pieces, run_observed};

/// The widest wavefront; every lane-wide array has this length.
pub const LANES: usize = 64;

/// The kind of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stage {
    /// PS.
    Pixel,
    /// VS, ES, and the fetch programs they call.
    Vertex,
    /// GS.
    Geometry,
}

/// What a stage reads besides its registers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Resources {
    /// Constant buffers by number, in dwords. What lies beyond the end, or in a buffer that is not there, reads 0.
    pub constant_buffers: [Vec<u32>; 16],
    /// The constant file of DX9 mode, at most 256 entries; missing ones read 0.
    pub constant_file: Vec<[u32; 4]>,
    /// SQ_LOOP_CONST.
    pub loop_constants: [LoopConstant; 32],
    /// SQ_BOOL_CONST: bit n is boolean n.
    pub booleans: u32,
    /// Vertex resources by BUFFER_ID.
    pub vertex_buffers: BTreeMap<u8, VertexBuffer>,
    /// Textures by RESOURCE_ID.
    pub textures: BTreeMap<u8, Texture>,
    /// Samplers by SAMPLER_ID.
    pub samplers: BTreeMap<u8, TextureSampler>,
}

/// Values of one register at the start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Input {
    /// The register.
    pub gpr: u8,
    /// x, y, z, w for each lane; missing lanes get 0. Shared, so that a launch is cheap to copy.
    pub values: Arc<[[u32; 4]]>,
}

/// The code of a fetch program, which CALL_FS calls. Its addresses count from its own start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FetchProgram {
    /// The words.
    pub words: Vec<u32>,
    /// Its first instruction, in 64-bit words.
    pub start: u32,
}

/// What a run starts from.
#[derive(Clone, Debug, PartialEq)]
pub struct Launch {
    /// The chip.
    pub chip: Chip,
    /// The program's kind.
    pub stage: Stage,
    /// Lanes, any number from 1 on.
    pub lanes: usize,
    /// The number of the first lane: not 0 when the launch is a piece of a longer one. Lists of a launch and of its
    /// outcome begin with it.
    pub first_lane: usize,
    /// Lanes that lie inside the primitive; `None` for all. The others start inactive and not valid.
    pub covered: Option<Vec<bool>>,
    /// First instruction, in 64-bit words.
    pub start: u32,
    /// NUM_GPRS: registers a lane, 0 to 128.
    pub num_gprs: u8,
    /// NUM_CLAUSE_TEMP_GPRS: how many of the topmost register numbers are clause temporaries.
    pub clause_temps: u8,
    /// STACK_SIZE, in entries; `None` for no limit.
    pub stack_size: Option<u32>,
    /// DX10_CLAMP: CLAMP makes NaN 0.
    pub dx10_clamp: bool,
    /// ALU_INST_PREFER_VECTOR.
    pub prefer_vector: bool,
    /// Registers at the start; those not named are 0.
    pub inputs: Vec<Input>,
    /// What this stage reads.
    pub resources: Resources,
    /// What ALT_CONST reads.
    pub alternate: Resources,
    /// The fetch program; without one CALL_FS returns at once.
    pub fetch_program: Option<FetchProgram>,
    /// What a vertex fetch of type VERTEX_DATA adds to its index.
    pub base_vertex: u32,
    /// What a vertex fetch of type INSTANCE_DATA adds to its index.
    pub base_instance: u32,
    /// SQ_VTX_SEMANTIC: a semantic found at position i goes to register i + 1.
    pub semantics: Vec<u8>,
    /// Dwords a lane of scratch memory.
    pub scratch_dwords: usize,
    /// Dwords a lane of each of ring, reduction and stream-out records.
    pub record_dwords: usize,
    /// The scatter buffer (MEM_EXPORT, READ_SCATTER), in dwords.
    pub scatter: Vec<u32>,
    /// Global registers, which all wavefronts share: x to w for each lane position. There are as many as stand here.
    pub global: Vec<[[u32; LANES]; 4]>,
}

impl Launch {
    /// `lanes` lanes on `chip`, everything else as unrestricted as it can be: 124 registers and 4 clause temporaries,
    /// no limit on the stack, all that scratch instructions can address.
    pub fn new(chip: Chip, stage: Stage, lanes: usize) -> Launch {
        Launch {
            chip,
            stage,
            lanes,
            first_lane: 0,
            covered: None,
            start: 0,
            num_gprs: 124,
            clause_temps: 4,
            stack_size: None,
            dx10_clamp: true,
            prefer_vector: true,
            inputs: Vec::new(),
            resources: Resources::default(),
            alternate: Resources::default(),
            fetch_program: None,
            base_vertex: 0,
            base_instance: 0,
            semantics: Vec::new(),
            // ARRAY_BASE and ARRAY_SIZE in elements of four dwords.
            scratch_dwords: (8192 + 4096) * 4,
            record_dwords: (8192 + 4096) * 4,
            scatter: Vec::new(),
            global: Vec::new(),
        }
    }

    /// Takes NUM_GPRS, STACK_SIZE and DX10_CLAMP from a SQ_PGM_RESOURCES register.
    pub fn set_pgm_resources(&mut self, register: u32) {
        self.num_gprs = (register & 0xff).min(128) as u8;
        self.stack_size = Some(register >> 8 & 0xff);
        self.dx10_clamp = register >> 21 & 1 != 0;
    }

    /// How this program's code is to be decoded.
    pub fn code_options(&self) -> CodeOptions {
        CodeOptions { chip: self.chip, prefer_vector: self.prefer_vector }
    }
}

/// How to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Whether undefined behaviour traps; otherwise it does what the rules recommend.
    pub strict: bool,
    /// Instructions that a wavefront may take before it counts as stuck.
    pub watchdog: u64,
    /// The deepest nesting of calls.
    pub call_limit: u32,
    /// Rounds after which a LOOP_START_DX10 loop ends as if it had a count ([`Rule::DX10_LOOP_HAS_NO_COUNT`]).
    pub dx10_loop_limit: Option<u32>,
    /// Whether MULADD_64 keeps its product exact ([`Rule::SUMS_GO_LEFT_TO_RIGHT`]).
    pub fused_muladd_64: bool,
    /// Whether LDEXP_64 takes the integer as src0, as the manual has it ([`Rule::LDEXP_64_TAKES_THE_DOUBLE_FIRST`]).
    pub ldexp_64_integer_first: bool,
    /// Which engine runs. Results never depend on it.
    pub engine: Engine,
    /// The vector instructions that the fast engine may use; `None` for the best that the processor has. Results never
    /// depend on it.
    pub level: Option<Level>,
}

impl Options {
    /// Undefined behaviour traps.
    pub const STRICT: Options = Options {
        strict: true,
        watchdog: 1 << 26,
        call_limit: FlowSetup::CALL_LIMIT,
        dx10_loop_limit: None,
        fused_muladd_64: true,
        ldexp_64_integer_first: false,
        engine: Engine::Reference,
        level: None,
    };

    /// Undefined behaviour does what the rules recommend.
    pub const LENIENT: Options = Options { strict: false, ..Options::STRICT };
}

impl Default for Options {
    fn default() -> Self {
        Options::STRICT
    }
}

/// How exact a run was: what it executed, and which disputed readings it leaned on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Executed {
    /// ALU and fetch instructions by name, wave-wide executions.
    pub report: Report,
    /// Rules that decided something.
    pub rules: BTreeSet<Rule>,
}

impl Executed {
    pub(crate) fn count(&mut self, name: &'static str, fidelity: Fidelity, rule: Option<Rule>) {
        self.report.count(name, fidelity, 1);
        self.rules.extend(rule);
    }

    /// Adds another wavefront's.
    pub fn add(&mut self, other: &Executed) {
        self.report.add(&other.report);
        self.rules.extend(&other.rules);
    }
}

/// What left the program through one export target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exported {
    /// Pixel, position or parameter.
    pub kind: ExportKind,
    /// ARRAY_BASE, with the number of the register in its burst added.
    pub base: u16,
    /// x, y, z, w for each lane; 0 where nothing was written.
    pub values: Vec<[u32; 4]>,
    /// Which components each lane wrote; bit 0 is x.
    pub written: Vec<u8>,
}

/// What a geometry program emitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Emission {
    /// The number of the wavefront's first lane, [`Launch::first_lane`] included.
    pub first_lane: usize,
    /// The lanes of the wavefront that emitted.
    pub lanes: Mask,
    /// Whether a vertex ended.
    pub vertex: bool,
    /// Whether a strip ended.
    pub cut: bool,
}

/// Memory after a run. A lane-private space is a list of dwords a lane, as long as the lane's wavefront used; no list at
/// all, where no lane has written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryOutcome {
    /// Scratch memory.
    pub scratch: Vec<Vec<u32>>,
    /// The reduction buffer.
    pub reduction: Vec<Vec<u32>>,
    /// The ring.
    pub ring: Vec<Vec<u32>>,
    /// Stream-out records of the four streams.
    pub streams: [Vec<Vec<u32>>; 4],
    /// The scatter buffer.
    pub scatter: Vec<u32>,
    /// The global registers.
    pub global: Vec<[[u32; LANES]; 4]>,
}

/// What a run left.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Export targets, in the order of kind and base.
    pub exports: Vec<Exported>,
    /// Lanes that a KILL removed or that were not covered.
    pub killed: Vec<bool>,
    /// Memory.
    pub memory: MemoryOutcome,
    /// What a geometry program emitted, in order.
    pub emissions: Vec<Emission>,
    /// Counts: see [`Wave`] for what is counted.
    pub statistics: Statistics,
    /// How exact it was.
    pub fidelity: Executed,
    /// Stack entries that the deepest wavefront needed.
    pub stack_needed: u32,
}

impl Outcome {
    /// The export target, if anything was written to it.
    pub fn export(&self, kind: ExportKind, base: u16) -> Option<&Exported> {
        self.exports.iter().find(|exported| exported.kind == kind && exported.base == base)
    }

    /// The export target, which gets a place and zeros for `lanes` lanes if it has none yet.
    pub(crate) fn export_mut(&mut self, kind: ExportKind, base: u16, lanes: usize) -> &mut Exported {
        let place =
            self.exports.binary_search_by_key(&(kind, base), |exported| (exported.kind, exported.base));
        let place = place.unwrap_or_else(|place| {
            let (values, written) = (vec![[0; 4]; lanes], vec![0; lanes]);
            self.exports.insert(place, Exported { kind, base, values, written });
            place
        });
        &mut self.exports[place]
    }

    /// Adds the counts of other lanes.
    pub(crate) fn add_counts(&mut self, other: &Outcome) {
        self.statistics.add(&other.statistics);
        self.fidelity.add(&other.fidelity);
        self.stack_needed = self.stack_needed.max(other.stack_needed);
    }
}

/// The decoded fetch program of a launch, if it has one.
pub fn fetch_code(launch: &Launch) -> Option<Arc<Code>> {
    let fetch = launch.fetch_program.as_ref()?;
    Some(Arc::new(Code::new(&fetch.words, fetch.start, launch.code_options())))
}

/// The lanes of the wavefront that begins at `place` of the launch: those that exist, and those of them that are covered.
pub(crate) fn lanes_of(launch: &Launch, place: usize) -> (usize, Mask) {
    let count = launch.lanes.saturating_sub(place).min(launch.chip.wave_width.into());
    let covered = |lane: Lane| match &launch.covered {
        Some(covered) => covered.get(place + lane.index()).copied().unwrap_or(false),
        None => true,
    };
    (count, Mask::from_fn(count, covered))
}
