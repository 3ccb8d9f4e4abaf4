//! The data of a launch: constants, resources and initial registers of a program.
//!
//! A launch with more lanes than the chip's wavefront is split into wavefronts. The wavefronts run in the order of
//! their lanes. Sources: MAN p. 33 to 37; Mesa `r600d.h` for the positions of register fields.

use std::sync::{Arc, LazyLock};

use litemap::LiteMap;
use reconverge_isa::limits::{self, Exceeded};
use reconverge_simt::Mask;
use thiserror::Error;

use crate::chip::{Chip, LANES};
use crate::code::{Code, CodeOptions};
pub use crate::control::Stage;
use crate::flow::{FlowSetup, LoopConstant};
use crate::memory::VertexBuffer;
#[cfg(doc)]
use crate::rules::Rule;
use crate::texture::{Texture, TextureSampler};

/// Constants, buffers, textures and samplers that a stage reads.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Resources {
    /// Dwords of each constant buffer, indexed by the number of the buffer. Words past the end of a buffer read as 0.
    pub constant_buffers: [Vec<u32>; 16],
    /// The constant file of DX9 mode, with up to 256 entries. Missing entries read as 0.
    pub constant_file: Vec<[u32; 4]>,
    /// SQ_LOOP_CONST, indexed by the number of the constant.
    pub loop_constants: [LoopConstant; 32],
    /// SQ_BOOL_CONST: bit n is boolean n.
    pub booleans: u32,
    /// Vertex resources by BUFFER_ID.
    pub vertex_buffers: LiteMap<u8, VertexBuffer>,
    /// Textures by RESOURCE_ID.
    pub textures: LiteMap<u8, Texture>,
    /// Samplers by SAMPLER_ID.
    pub samplers: LiteMap<u8, TextureSampler>,
}

impl Resources {
    /// Returns whether lowering produces the same program for both sets of resources (see
    /// [`Environment::lowers_alike`]).
    fn lowers_alike(&self, other: &Resources) -> bool {
        let Resources {
            constant_buffers: _,
            constant_file: _,
            // Lowered code does not contain the loop constants. Only the flow state reads these constants.
            loop_constants: _,
            booleans: _,
            vertex_buffers,
            textures,
            samplers,
        } = self;
        let buffer = |((id, one), (number, other)): ((&u8, &VertexBuffer), (&u8, &VertexBuffer))| {
            id == number && one.is_read_alike(other)
        };
        let texture = |((id, one), (number, other)): ((&u8, &Texture), (&u8, &Texture))| {
            id == number && one.is_same(other)
        };
        vertex_buffers.len() == other.vertex_buffers.len()
            && textures.len() == other.textures.len()
            && vertex_buffers.iter().zip(&other.vertex_buffers).all(buffer)
            && textures.iter().zip(&other.textures).all(texture)
            && *samplers == other.samplers
    }
}

/// Initial values of one register.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Input {
    /// The register.
    pub gpr: u8,
    /// The components x, y, z, w for each lane. Lanes past the end of the list receive 0. Copies of a launch share the
    /// list, so a copy is cheap.
    pub values: Arc<[[u32; 4]]>,
}

/// The fetch program that CALL_FS calls. Its addresses are relative to the first word of the fetch program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FetchProgram {
    /// The words of the program. Copies of an environment share the words. So copying or comparing environments takes
    /// little time.
    pub words: Arc<[u32]>,
    /// Address of the first instruction of the fetch program, in 64-bit words.
    pub start: u32,
}

/// Properties that are the same for all runs of a loaded program.
#[derive(Clone, Debug, PartialEq)]
pub struct Environment {
    /// The chip.
    pub chip: Chip,
    /// The program's kind.
    pub stage: Stage,
    /// Address of the first instruction, in 64-bit words.
    pub start: u32,
    /// NUM_GPRS: number of registers per lane, 0 to 128.
    pub num_gprs: u8,
    /// NUM_CLAUSE_TEMP_GPRS: number of clause temporaries. The clause temporaries have the highest register numbers.
    pub clause_temps: u8,
    /// STACK_SIZE, in entries. `None` means 255, the largest size that a program can declare.
    pub stack_size: Option<u32>,
    /// DX10_CLAMP: whether CLAMP turns a NaN into 0.
    pub dx10_clamp: bool,
    /// ALU_INST_PREFER_VECTOR of SQ_CONFIG.
    pub prefer_vector: bool,
    /// Resources that this stage reads.
    pub resources: Resources,
    /// Resources that instructions with ALT_CONST read. If the environment has no such resources, the field is `None`.
    pub alternate: Option<Box<Resources>>,
    /// The fetch program. If this field is `None`, CALL_FS returns at once.
    pub fetch_program: Option<FetchProgram>,
    /// Number that a vertex fetch of type VERTEX_DATA adds to its index.
    pub base_vertex: u32,
    /// Number that a vertex fetch of type INSTANCE_DATA adds to its index.
    pub base_instance: u32,
    /// SQ_VTX_SEMANTIC: the list of semantics. A fetch with the semantic at index i of this list writes register i + 1.
    pub semantics: Vec<u8>,
    /// Dwords of scratch memory per lane.
    pub scratch_dwords: usize,
    /// Dwords per lane in each record. A lane has a ring record, a reduction record and four stream-out records.
    pub record_dwords: usize,
    /// Maximum nesting depth of calls.
    pub call_limit: u32,
    /// A LOOP_START_DX10 loop ends after this number of iterations. `None` means no limit. The hardware has no limit
    /// ([`Rule::DX10_LOOP_HAS_NO_COUNT`]).
    pub dx10_loop_limit: Option<u32>,
    /// Whether MULADD_64 adds the exact product instead of the rounded product ([`Rule::SUMS_GO_LEFT_TO_RIGHT`]).
    pub fused_muladd_64: bool,
    /// Whether LDEXP_64 takes the integer as src0, as the manual states ([`Rule::LDEXP_64_TAKES_THE_DOUBLE_FIRST`]).
    pub ldexp_64_integer_first: bool,
}

/// Initial values of one register, in one list per component.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Columns {
    /// The register.
    pub gpr: u8,
    /// For each component, one word per lane. Lanes past the end of a list receive 0.
    pub components: [Arc<Vec<u32>>; 4],
}

/// The environment, lanes and inputs of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Launch {
    /// Environment of the program. Copies of a launch share the environment, so a copy is cheap.
    pub environment: Arc<Environment>,
    /// Number of lanes, 1 or more.
    pub lanes: usize,
    /// Number of the first lane. This number is not 0 if the launch is a part of a larger launch. The lists of a launch
    /// and of its outcome begin with the first lane.
    pub first_lane: usize,
    /// For each lane, whether the lane is inside the primitive. `None` means that all lanes are inside the primitive.
    /// Lanes outside the primitive start inactive and are not valid.
    pub covered: Option<Vec<bool>>,
    /// Initial values of registers, in one list per register. If a register is in neither `inputs` nor `columns`, its
    /// initial value is 0.
    pub inputs: Vec<Input>,
    /// Initial values of registers that are not in `inputs`, in one list per component.
    pub columns: Vec<Columns>,
    /// Registers and components whose initial values the program may read. All other register components may contain
    /// data of an earlier wavefront. If this field is `None`, every register has the initial value that the launch
    /// states.
    pub read: Option<Arc<[(u8, u8)]>>,
    /// Whether the outcome has one list per component of an export target
    /// ([`Outcome::columns`](crate::outcome::Outcome::columns)). If the field is not set, the outcome has one list per
    /// export target ([`Outcome::exports`](crate::outcome::Outcome::exports)).
    pub by_column: bool,
    /// Whether the outcome reports [the fidelity of the executed code](crate::outcome::Outcome::fidelity).
    pub reports: bool,
    /// The scatter buffer (MEM_EXPORT, READ_SCATTER), in dwords.
    pub scatter: Vec<u32>,
    /// Global registers, which all wavefronts share. For each register, there are four rows: x to w.
    pub global: Vec<[[u32; LANES]; 4]>,
}

/// Reason why the machine cannot run a launch.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LaunchError {
    /// [`Launch::lanes`] exceeds [`limits::LANES`]. [`run_in_pieces`](crate::run::run_in_pieces) can run more lanes.
    #[error(transparent)]
    Lanes(Exceeded),
    /// The number of the last lane is too large.
    #[error(
        "the launch begins at lane {first_lane} and has {lanes} lanes; the number of the last lane is too large"
    )]
    FirstLane {
        /// [`Launch::first_lane`].
        first_lane: usize,
        /// [`Launch::lanes`].
        lanes: usize,
    },
    /// The launch has more registers than instructions can address.
    #[error(
        "the launch has {gprs} registers and {clause_temps} clause temporaries; expected 0 to 128 of each"
    )]
    Registers {
        /// [`Environment::num_gprs`].
        gprs: u8,
        /// [`Environment::clause_temps`].
        clause_temps: u8,
    },
}

impl Environment {
    /// Returns an environment with as few restrictions as possible for a program of `stage` on `chip`. The environment
    /// has 124 registers, 4 clause temporaries, no STACK_SIZE, and all memory that scratch instructions can address.
    pub fn new(chip: Chip, stage: Stage) -> Environment {
        Environment {
            chip,
            stage,
            start: 0,
            num_gprs: 124,
            clause_temps: 4,
            stack_size: None,
            dx10_clamp: true,
            prefer_vector: true,
            resources: Resources::default(),
            alternate: None,
            fetch_program: None,
            base_vertex: 0,
            base_instance: 0,
            semantics: Vec::new(),
            // ARRAY_BASE and ARRAY_SIZE are numbers of elements, and an element has up to four dwords.
            scratch_dwords: (8192 + 4096) * 4,
            record_dwords: (8192 + 4096) * 4,
            call_limit: FlowSetup::CALL_LIMIT,
            dx10_loop_limit: None,
            fused_muladd_64: true,
            ldexp_64_integer_first: false,
        }
    }

    /// Checks the numbers of registers and clause temporaries.
    ///
    /// # Errors
    /// Returns [`LaunchError::Registers`] if one of the numbers is larger than 128, the number of registers that an
    /// instruction can address.
    pub fn check(&self) -> Result<(), LaunchError> {
        let Environment { num_gprs: gprs, clause_temps, .. } = *self;
        if gprs.max(clause_temps) > 128 { Err(LaunchError::Registers { gprs, clause_temps }) } else { Ok(()) }
    }

    /// Sets NUM_GPRS, STACK_SIZE and DX10_CLAMP to the values in an SQ_PGM_RESOURCES register.
    pub fn set_pgm_resources(&mut self, register: u32) {
        self.num_gprs = (register & 0xff).min(128) as u8;
        self.stack_size = Some(register >> 8 & 0xff);
        self.dx10_clamp = register >> 21 & 1 != 0;
    }

    /// Returns whether the decoder produces the same code for both environments, for every program.
    pub(crate) fn decodes_alike(&self, other: &Environment) -> bool {
        (self.prefer_vector, self.start) == (other.prefer_vector, other.start)
            && self.chip.is_like(&other.chip)
            && self.fetch_program == other.fetch_program
    }

    /// Returns whether lowering produces the same program for both environments. The environments may differ only in
    /// the values of constants and in the contents of vertex buffers. Two textures count as equal only if both textures
    /// share one image in memory.
    pub fn lowers_alike(&self, other: &Environment) -> bool {
        let Environment {
            chip,
            stage,
            start,
            num_gprs,
            clause_temps,
            stack_size,
            dx10_clamp,
            prefer_vector,
            resources,
            alternate,
            fetch_program,
            base_vertex,
            base_instance,
            semantics,
            scratch_dwords,
            record_dwords,
            call_limit,
            dx10_loop_limit,
            fused_muladd_64,
            ldexp_64_integer_first,
        } = self;
        (*stage, *start) == (other.stage, other.start)
            && (*num_gprs, *clause_temps, *stack_size)
                == (other.num_gprs, other.clause_temps, other.stack_size)
            && (*dx10_clamp, *prefer_vector) == (other.dx10_clamp, other.prefer_vector)
            && (*base_vertex, *base_instance) == (other.base_vertex, other.base_instance)
            && (*scratch_dwords, *record_dwords) == (other.scratch_dwords, other.record_dwords)
            && (*call_limit, *dx10_loop_limit) == (other.call_limit, other.dx10_loop_limit)
            && (*fused_muladd_64, *ldexp_64_integer_first)
                == (other.fused_muladd_64, other.ldexp_64_integer_first)
            && chip.is_like(&other.chip)
            // A comparison of slices would call memcmp. The addresses of empty slices are not mapped. For such
            // addresses, glibc's memcmp takes 0.15 us on processors with AVX-512. So this code compares the elements
            // one by one.
            && semantics.iter().eq(&other.semantics)
            && *fetch_program == other.fetch_program
            && resources.lowers_alike(&other.resources)
            && match (alternate, &other.alternate) {
                (Some(own), Some(other)) => own.lowers_alike(other),
                (own, other) => own.is_none() && other.is_none(),
            }
    }

    /// Returns the resources that an instruction with this ALT_CONST reads.
    pub fn bound(&self, alternate: bool) -> &Resources {
        static NOTHING: LazyLock<Resources> = LazyLock::new(Resources::default);
        match alternate {
            false => &self.resources,
            true => self.alternate.as_deref().unwrap_or_else(|| &NOTHING),
        }
    }

    /// Returns the options for decoding this program's code.
    pub fn code_options(&self) -> CodeOptions {
        CodeOptions { chip: self.chip, prefer_vector: self.prefer_vector }
    }

    /// Returns the decoded fetch program, or `None` if the environment has no fetch program.
    pub fn fetch_code(&self) -> Option<Arc<Code>> {
        let fetch = self.fetch_program.as_ref()?;
        Some(Arc::new(Code::new(&fetch.words, fetch.start, self.code_options())))
    }

    /// Returns the number of register rows. The rows of the allocated registers come first, followed by the rows of the
    /// clause temporaries. Each register or temporary has four rows.
    pub(crate) fn register_rows(&self) -> usize {
        let allocated = usize::from(self.num_gprs) + usize::from(self.clause_temps);
        allocated.max(1) * 4
    }

    /// Returns the name of a row, for messages.
    pub(crate) fn row_name(&self, row: usize) -> String {
        let (place, chan) = (row / 4, char::from(b"xyzw"[row % 4]));
        let (allocated, temps) = (usize::from(self.num_gprs), usize::from(self.clause_temps));
        match row.checked_sub(self.register_rows()) {
            None if place < allocated => format!("R{place}.{chan}"),
            None => format!("R{}.{chan}", place - allocated + 128 - temps),
            Some(previous) => ["PV.x", "PV.y", "PV.z", "PV.w", "PS"][previous % 5].to_owned(),
        }
    }

    /// Returns the row of a register component. Returns `None` if the register is neither allocated nor a clause
    /// temporary.
    pub(crate) fn register_row(&self, register: i32, chan: usize) -> Option<usize> {
        let (allocated, temps) = (i32::from(self.num_gprs), i32::from(self.clause_temps));
        let place = if (0..allocated).contains(&register) {
            register
        } else if (128 - temps..128).contains(&register) {
            allocated + register - (128 - temps)
        } else {
            return None;
        };
        Some(place as usize * 4 + chan)
    }
}

impl Launch {
    /// Returns a launch of `lanes` lanes in [`Environment::new`].
    pub fn new(chip: Chip, stage: Stage, lanes: usize) -> Launch {
        Launch::of(Environment::new(chip, stage).into(), lanes, Vec::new())
    }

    /// Returns a launch of `lanes` lanes in an environment, with the initial registers `inputs`.
    pub fn of(environment: Arc<Environment>, lanes: usize, inputs: Vec<Input>) -> Launch {
        Launch {
            environment,
            lanes,
            first_lane: 0,
            covered: None,
            inputs,
            columns: Vec::new(),
            read: None,
            by_column: false,
            reports: true,
            scatter: Vec::new(),
            global: Vec::new(),
        }
    }

    /// Returns a launch of `lanes` lanes in an environment. Initial registers and exports have one list per component.
    /// For `read`, see [`Launch::read`].
    pub fn of_columns(
        environment: Arc<Environment>,
        lanes: usize,
        columns: Vec<Columns>,
        read: Option<Arc<[(u8, u8)]>>,
    ) -> Launch {
        Launch { columns, read, by_column: true, ..Launch::of(environment, lanes, Vec::new()) }
    }

    /// Returns the environment for modification.
    pub fn environment_mut(&mut self) -> &mut Environment {
        Arc::make_mut(&mut self.environment)
    }

    /// Checks the launch. The caller must call this function before the caller allocates memory for the launch.
    ///
    /// # Errors
    /// See [`LaunchError`].
    pub fn check(&self) -> Result<(), LaunchError> {
        let Launch { lanes, first_lane, .. } = *self;
        limits::LANES.check(lanes as u64).map_err(LaunchError::Lanes)?;
        if first_lane.checked_add(lanes).is_none() {
            return Err(LaunchError::FirstLane { first_lane, lanes });
        }
        self.environment.check()
    }

    /// Returns the number of lanes of a wavefront, and the covered lanes of the wavefront. The wavefront's first lane
    /// has position `place` in the launch.
    pub(crate) fn wave_lanes(&self, place: usize) -> (usize, Mask) {
        let count = self.lanes.saturating_sub(place).min(self.environment.chip.wave_width.into());
        let Some(covered) = &self.covered else { return (count, Mask::first(count)) };
        let covered = covered.get(place..).unwrap_or_default();
        (count, Mask::from_fn(count.min(covered.len()), |lane| covered[lane.index()]))
    }
}
