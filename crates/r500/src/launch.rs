//! What is true before the first instruction: the program in its slots, the state registers, the lanes' inputs.
//!
//! [`Setup`] is a program with its state, checked once; [`Launch`] adds what differs from run to run; [`run`]
//! splits the lanes into threads of [`Options::group_width`] lanes and runs each on the engine of
//! [`Options::engine`]. [`run_in_pieces`] does the same for launches that memory has no room for, [`run_observed`] with an
//! observer.
//!
//! Lanes come in quads of four: top left, top right, bottom left, bottom right. (r500.md Q1)

use std::ops::Range;
use std::sync::Arc;

use reconverge_isa::Program;
use reconverge_isa::word::WordError;
use reconverge_simt::fidelity::Report;
use reconverge_simt::texture::{Image, Sampler};
use reconverge_simt::{Engine, Level, Mask, Mode, Observer, Silent, Statistics, Trap};
use thiserror::Error;

use crate::chip::Chip;
pub use crate::chip::{WIDTH_R520, WIDTH_R580};
use crate::fast::lockstep::Difference;
use crate::fast::threads;
use crate::flow::{InhibitScope, Limits, LoopConstant};
use crate::inst::{self, CONSTANTS, Inst, LOOP_CONSTANTS, SAMPLERS, SLOTS, TARGETS, Violation, WORDS};
pub use crate::outputs::{LaneOutput, Outputs};
use crate::reference::{Cause, Group, OUTPUTS};
use crate::words::*;

/// One loaded instruction slot.
#[derive(Clone, Debug, PartialEq)]
pub struct Slot {
    /// The words as loaded.
    pub words: [u32; WORDS],
    /// Their meaning, or why they have none.
    pub inst: Result<Inst, WordError>,
    /// What the documents forbid about them.
    pub violations: Vec<Violation>,
}

/// A program in its slots, with its state registers, decoded and checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Setup {
    slots: Vec<Option<Slot>>,
    /// US_CONFIG.ZERO_TIMES_ANYTHING_EQUALS_ZERO.
    pub zero_wins: bool,
    /// US_PIXSIZE: highest temporary allocated.
    pub pix_size: u8,
    /// US_FC_CTRL.FULL_FC_EN.
    pub fc_mode: FcMode,
    /// US_FC_BOOL_CONST: bit n is boolean constant n.
    pub bools: u32,
    /// US_FC_INT_CONST.
    pub ints: [LoopConstant; LOOP_CONSTANTS],
    /// US_CODE_OFFSET: added to addresses that are not global.
    pub offset: u16,
    /// First slot to execute, absolute.
    pub start: u16,
    /// Last slot to execute, absolute.
    pub end: u16,
    /// US_CODE_RANGE: first slot of the window, absolute.
    pub range_start: u16,
    /// Last slot of the window, absolute.
    pub range_end: u16,
    /// US_OUT_FMT.
    pub out_fmt: [OutFmtReg; TARGETS],
    /// FG_DEPTH_SRC.
    pub depth_src: DepthSrc,
    /// Float constants that came with the program: number and bits of r, g, b, a.
    pub constants: Vec<(u8, [u32; 4])>,
}

/// Why a program cannot be set up.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SetupError {
    /// There is no instruction.
    #[error("the program has no instruction")]
    Empty,
    /// The code ends inside an instruction.
    #[error("{words} words are not a whole number of instructions: the last one has {left} of {WORDS} words")]
    Cut {
        /// Words there are.
        words: usize,
        /// Words of the incomplete instruction.
        left: usize,
    },
    /// More instructions than slots.
    #[error("{count} instructions from slot {base} do not fit into the {SLOTS} instruction slots")]
    TooMany {
        /// Instructions.
        count: usize,
        /// First slot.
        base: u32,
    },
    /// A state register that this machine does not have.
    #[error("unknown state register {0}")]
    UnknownRegister(String),
    /// A state register with bits or codes that mean nothing.
    #[error("{name} = {value:#010x}: {error}")]
    Register {
        /// The register.
        name: String,
        /// Its value.
        value: u32,
        /// What is wrong with it.
        error: WordError,
    },
    /// A constant outside the file.
    #[error(
        "constant bytes {offset}..{end} of bank {bank} lie outside the {CONSTANTS} float constants (bank 0)"
    )]
    Constant {
        /// Bank.
        bank: u32,
        /// First byte.
        offset: u32,
        /// One past the last byte.
        end: u64,
    },
}

impl Setup {
    /// Loads and decodes a program.
    ///
    /// A state register that the program does not bring gets the value that lets every program run: code from
    /// its first to its last slot, 128 temporaries, full flow control, zero times anything as IEEE has it.
    /// Registers of other blocks (`RS_…`, which route the inputs) are passed over.
    ///
    /// # Errors
    /// See [`SetupError`]. Codes without a meaning in an instruction are not an error here: they trap when the
    /// instruction is reached.
    pub fn new(program: &Program) -> Result<Setup, SetupError> {
        let words = &program.words;
        let (count, left) = (words.len() / WORDS, words.len() % WORDS);
        if left != 0 {
            return Err(SetupError::Cut { words: words.len(), left });
        }
        if count == 0 {
            return Err(SetupError::Empty);
        }
        if count as u64 + u64::from(program.base) > SLOTS as u64 {
            return Err(SetupError::TooMany { count, base: program.base });
        }
        let (first, last) = (program.base as u16, program.base as u16 + count as u16 - 1);
        let mut slots = vec![None; SLOTS];
        for (slot, words) in slots[usize::from(first)..].iter_mut().zip(words.as_chunks::<WORDS>().0) {
            let inst = inst::decode(words);
            let violations = inst.as_ref().map_or_else(|_| Vec::new(), |inst| inst::violations(words, inst));
            *slot = Some(Slot { words: *words, inst, violations });
        }
        let unused = OutFmtReg {
            out_fmt: OutFmt::UNUSED,
            c0_sel: OutSel::A,
            c1_sel: OutSel::A,
            c2_sel: OutSel::A,
            c3_sel: OutSel::A,
            out_sign: 0,
            round_adj: RoundAdj::NORMAL,
        };
        let mut setup = Setup {
            slots,
            zero_wins: false,
            pix_size: 127,
            fc_mode: FcMode::FULL,
            bools: 0,
            ints: [LoopConstant::default(); LOOP_CONSTANTS],
            offset: 0,
            start: first,
            end: last,
            range_start: first,
            range_end: last,
            out_fmt: [unused; TARGETS],
            depth_src: DepthSrc::SCAN,
            constants: Vec::new(),
        };
        setup.load_state(program)?;
        setup.load_constants(program)?;
        Ok(setup)
    }

    fn load_state(&mut self, program: &Program) -> Result<(), SetupError> {
        let mut code_addr = None;
        for (name, value) in &program.state {
            // The rasteriser's set-up says which temporary an input arrives in; a launch says that itself.
            if name.starts_with("RS_") {
                continue;
            }
            let Some((register, n)) = state_register(name) else {
                return Err(SetupError::UnknownRegister(name.clone()));
            };
            let bad = |error| SetupError::Register { name: name.clone(), value: *value, error };
            match register.word.name {
                "US_CONFIG" => {
                    let config = Config::unpack(*value).map_err(bad)?;
                    self.zero_wins = config.zero_times_anything_equals_zero == ZeroMul::ZERO_WINS;
                }
                "US_PIXSIZE" => self.pix_size = PixSize::unpack(*value).map_err(bad)?.pix_size,
                "US_FC_BOOL_CONST" => self.bools = *value,
                "US_FC_CTRL" => self.fc_mode = FcCtrl::unpack(*value).map_err(bad)?.full_fc_en,
                "US_FC_INT_CONST" => {
                    let FcIntConst { kr, kg, kb } = FcIntConst::unpack(*value).map_err(bad)?;
                    self.ints[n as usize] = LoopConstant { count: kr, start: kg, step: kb };
                }
                "US_CODE_ADDR" => code_addr = Some(CodeAddr::unpack(*value).map_err(bad)?),
                "US_CODE_RANGE" => {
                    let range = CodeRange::unpack(*value).map_err(bad)?;
                    self.range_start = range.code_addr;
                    self.range_end = range.code_addr + range.code_size;
                }
                "US_CODE_OFFSET" => self.offset = CodeOffset::unpack(*value).map_err(bad)?.offset_addr,
                "US_OUT_FMT" => self.out_fmt[n as usize] = OutFmtReg::unpack(*value).map_err(bad)?,
                "FG_DEPTH_SRC" => self.depth_src = DepthSrcReg::unpack(*value).map_err(bad)?.depth_src,
                // Texture sizes come with the textures, the depth format acts behind the shader, and how a
                // program was uploaded does not matter once it is in its slots.
                "US_FORMAT0" | "US_W_FMT" | "GA_US_VECTOR_INDEX" | "GA_US_VECTOR_DATA" => {}
                other => unreachable!("{other} is in words::STATE but is not loaded"),
            }
        }
        // START_ADDR and END_ADDR count from OFFSET_ADDR, whichever register came first.
        if let Some(CodeAddr { start_addr, end_addr }) = code_addr {
            self.start = self.offset + start_addr;
            self.end = self.offset + end_addr;
        }
        Ok(())
    }

    fn load_constants(&mut self, program: &Program) -> Result<(), SetupError> {
        for block in &program.constants {
            let end = u64::from(block.offset) + block.bytes.len() as u64;
            let aligned = block.offset.is_multiple_of(16) && end.is_multiple_of(16);
            if block.bank != 0 || end > CONSTANTS as u64 * 16 || !aligned {
                return Err(SetupError::Constant { bank: block.bank, offset: block.offset, end });
            }
            for (index, bytes) in block.bytes.as_chunks::<16>().0.iter().enumerate() {
                let (words, _) = bytes.as_chunks::<4>();
                let value = [0, 1, 2, 3].map(|channel| u32::from_le_bytes(words[channel]));
                self.constants.push(((block.offset / 16) as u8 + index as u8, value));
            }
        }
        Ok(())
    }

    /// What is loaded in an absolute slot.
    pub fn slot(&self, slot: u16) -> Option<&Slot> {
        self.slots.get(usize::from(slot))?.as_ref()
    }

    /// The loaded slots in order.
    pub fn slots(&self) -> impl Iterator<Item = (u16, &Slot)> {
        self.slots.iter().enumerate().filter_map(|(n, slot)| Some((n as u16, slot.as_ref()?)))
    }
}

/// A texture unit: what it reads and how.
#[derive(Clone, Debug)]
pub struct Texture {
    /// The texels.
    pub image: Arc<Image>,
    /// Filtering and wrapping.
    pub sampler: Sampler,
}

/// Values that the rasteriser has written into a temporary.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Input {
    /// The temporary, 0 to 127.
    pub temp: u8,
    /// Bits of r, g, b, a for each lane. Shared, so that a launch is cheap to copy.
    pub values: Arc<[[u32; 4]]>,
}

/// How to run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// Whether undefined behaviour traps.
    pub mode: Mode,
    /// Stack sizes; `None` for those recommended for the program's flow-control mode.
    pub limits: Option<Limits>,
    /// Which lanes keep a BREAK from jumping.
    pub scope: InhibitScope,
    /// Lanes that share a program counter, 4 to 64 and a multiple of 4.
    pub group_width: usize,
    /// Instructions a thread may issue before the watchdog stops it.
    pub watchdog: u64,
    /// Which engine executes. Results do not depend on it.
    pub engine: Engine,
    /// The vector instructions that the fast engine uses; `None` is the best that the processor has. Results do not
    /// depend on it.
    pub level: Option<Level>,
    /// Whether the fast engine uses the threads of the rayon pool in which [`run`] is called. Results do not depend on
    /// it.
    pub parallel: bool,
}

/// Lanes of a thread on a chip, by name; R520's where there is no such chip.
pub fn group_width(chip: Option<&str>) -> usize {
    chip.and_then(Chip::named).map_or(WIDTH_R520, |chip| chip.group_width)
}

impl Default for Options {
    fn default() -> Options {
        Options {
            mode: Mode::Strict,
            limits: None,
            scope: InhibitScope::Frame,
            group_width: WIDTH_R520,
            watchdog: 10_000_000,
            engine: Engine::Fast,
            level: None,
            parallel: true,
        }
    }
}

/// What differs from run to run.
#[derive(Clone, Debug, Default)]
pub struct Launch {
    /// How many lanes there are.
    pub lanes: usize,
    /// What the rasteriser wrote.
    pub inputs: Vec<Input>,
    /// Float constants: number and bits of r, g, b, a. They replace those of the program.
    pub constants: Vec<(u8, [u32; 4])>,
    /// Textures by unit.
    pub textures: Vec<(u8, Texture)>,
    /// How to run.
    pub options: Options,
}

/// A launch that does not fit the machine.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LaunchError {
    /// Not a multiple of a quad, or too wide.
    #[error("a group of {0} lanes is not possible: 4 to 64, a multiple of 4")]
    GroupWidth(usize),
    /// An input's temporary is outside the file.
    #[error("input temporary {0} does not exist: there are 128")]
    InputTemp(u8),
    /// An input does not have one value a lane.
    #[error("input temp[{temp}] has {found} values for {lanes} lanes")]
    InputLength {
        /// The temporary.
        temp: u8,
        /// Values it has.
        found: usize,
        /// Lanes of the launch.
        lanes: usize,
    },
    /// A texture unit outside the file.
    #[error("texture unit {0} does not exist: there are 16")]
    TextureUnit(u8),
}

impl Launch {
    /// Checks that everything fits.
    ///
    /// # Errors
    /// The first thing that does not.
    pub fn check(&self) -> Result<(), LaunchError> {
        let width = self.options.group_width;
        if !(4..=64).contains(&width) || !width.is_multiple_of(4) {
            return Err(LaunchError::GroupWidth(width));
        }
        for input in &self.inputs {
            if usize::from(input.temp) >= inst::TEMPORARIES {
                return Err(LaunchError::InputTemp(input.temp));
            }
            if input.values.len() != self.lanes {
                let found = input.values.len();
                return Err(LaunchError::InputLength { temp: input.temp, found, lanes: self.lanes });
            }
        }
        match self.textures.iter().find(|(unit, _)| usize::from(*unit) >= SAMPLERS) {
            Some((unit, _)) => Err(LaunchError::TextureUnit(*unit)),
            None => Ok(()),
        }
    }

    /// The same for lanes that have no inputs.
    pub(crate) fn without_lanes(&self) -> Launch {
        let Launch { constants, textures, options, .. } = self;
        let (constants, textures) = (constants.clone(), textures.clone());
        Launch { lanes: 0, inputs: Vec::new(), constants, textures, options: *options }
    }

    /// The float constants of a run of a program: its own, replaced by those of the launch.
    pub(crate) fn constants_of(&self, setup: &Setup) -> Vec<[u32; 4]> {
        let mut constants = vec![[0; 4]; CONSTANTS];
        for (number, value) in setup.constants.iter().chain(&self.constants) {
            constants[usize::from(*number)] = *value;
        }
        constants
    }
}

/// What a run gives back.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// What the lanes left in their output registers.
    pub outputs: Outputs,
    /// Counts over all threads.
    pub statistics: Statistics,
    /// What was executed, and how exact it was.
    pub report: Report,
}

impl Outcome {
    /// The output registers of a lane; `None` when there is no such lane.
    pub fn lane(&self, lane: usize) -> Option<LaneOutput> {
        self.outputs.get(lane)
    }

    /// The output registers of each lane, in lane order.
    pub fn lanes(&self) -> impl ExactSizeIterator<Item = LaneOutput> + '_ {
        self.outputs.iter()
    }
}

/// What the pieces of a run counted together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Totals {
    /// Counts over all threads.
    pub statistics: Statistics,
    /// What was executed, and how exact it was.
    pub report: Report,
}

/// Why a run gave no outcome.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum RunError {
    /// The launch does not fit the machine.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// The program trapped. Lane numbers are those of the launch's thread that starts at `first_lane`.
    #[error("{trap} (thread from lane {first_lane})")]
    Trap {
        /// First lane of the thread.
        first_lane: usize,
        /// What happened.
        trap: Trap<Cause>,
    },
    /// The engines differ, which is a defect of one of them. ([`Engine::Lockstep`])
    #[error(transparent)]
    Differ(Box<Difference>),
}

impl RunError {
    /// The same in a launch that has so many lanes before those of this one.
    fn behind(mut self, lanes: usize) -> RunError {
        match &mut self {
            RunError::Launch(_) => {}
            RunError::Trap { first_lane, .. } => *first_lane += lanes,
            RunError::Differ(difference) => difference.first_lane += lanes,
        }
        self
    }
}

/// Runs every lane of a launch.
///
/// # Errors
/// A launch that does not fit, or the first trap in the order of the threads.
pub fn run(setup: &Arc<Setup>, launch: &Launch) -> Result<Outcome, RunError> {
    launch.check()?;
    match launch.options.engine {
        Engine::Reference => run_observed(setup, launch, &mut Silent),
        Engine::Fast => threads::run(setup, launch),
        Engine::Lockstep => threads::run_in_lockstep(setup, launch),
    }
}

/// Runs a launch of any number of lanes in the memory that a piece of it needs.
///
/// `inputs` gives what the rasteriser wrote for a range of lanes, those of the next piece; `launch.inputs` is not looked
/// at. The piece is run as by [`run`], and `outcome` is handed what it left, with its range. A piece has `piece` lanes,
/// rounded up to whole threads, and at least one; the last has what is left. No thread sees anything of another, so that
/// the pieces are together what one run would give.
///
/// # Errors
/// Those of [`run`], of the first piece that has one: lanes are counted from the first of the launch. Pieces before it
/// have been handed on.
///
/// ```
/// use std::sync::Arc;
///
/// use reconverge_r500::launch::{Input, Launch, Setup, run_in_pieces};
/// use reconverge_r500::text::assemble;
///
/// let source = "OUT out[A].r = MAX*off src0.rgb, src0.rgb : src0=temp[0]\n";
/// let setup = Arc::new(Setup::new(&assemble(source).unwrap().program).unwrap());
/// let launch = Launch { lanes: 1 << 12, ..Launch::default() };
/// let (mut sum, mut pieces) = (0.0, 0);
/// let totals = run_in_pieces(
///     &setup,
///     &launch,
///     1 << 10,
///     |lanes| {
///         let values = lanes.map(|lane| [(lane as f32).to_bits(), 0, 0, 0]).collect();
///         vec![Input { temp: 0, values }]
///     },
///     |_, outcome| {
///         sum += outcome.lanes().map(|lane| f32::from_bits(lane.color[0][0])).sum::<f32>();
///         pieces += 1;
///     },
/// );
/// assert_eq!((sum, pieces), (4095.0 * 2048.0, 4));
/// assert_eq!(totals.unwrap().statistics.lane_instructions, 1 << 12);
/// ```
pub fn run_in_pieces(
    setup: &Arc<Setup>,
    launch: &Launch,
    piece: usize,
    mut inputs: impl FnMut(Range<usize>) -> Vec<Input>,
    mut outcome: impl FnMut(Range<usize>, Outcome),
) -> Result<Totals, RunError> {
    launch.without_lanes().check()?;
    let piece = piece.clamp(1, launch.lanes.max(1)).next_multiple_of(launch.options.group_width);
    let mut totals = Totals::default();
    for start in (0..launch.lanes).step_by(piece) {
        let range = start..launch.lanes.min(start.saturating_add(piece));
        let launch = Launch { lanes: range.len(), inputs: inputs(range.clone()), ..launch.without_lanes() };
        let left = run(setup, &launch).map_err(|error| error.behind(start))?;
        totals.statistics.add(&left.statistics);
        totals.report.add(&left.report);
        outcome(range, left);
    }
    Ok(totals)
}

/// The same thread after thread, announcing every event. What happens to data is announced by the reference interpreter,
/// whatever the options say; who runs and what the stacks do, by either engine.
///
/// # Errors
/// A launch that does not fit, or the first trap.
pub fn run_observed<O: Observer>(
    setup: &Arc<Setup>,
    launch: &Launch,
    observer: &mut O,
) -> Result<Outcome, RunError> {
    launch.check()?;
    if launch.options.engine == Engine::Fast && !O::DATA {
        return threads::run_in_order(setup, launch, observer);
    }
    let mut outcome = Outcome { outputs: Outputs::new(launch.lanes, 0..OUTPUTS), ..Outcome::default() };
    let mut outputs = outcome.outputs.all();
    for first_lane in (0..launch.lanes).step_by(launch.options.group_width) {
        let lanes = launch.options.group_width.min(launch.lanes - first_lane);
        let mut group = Group::new(setup, launch, first_lane, Mask::first(lanes));
        group.run(observer).map_err(|trap| RunError::Trap { first_lane, trap })?;
        outcome.statistics.add(&group.statistics());
        outcome.report.add(&group.report());
        outputs.put(&group, first_lane, lanes);
    }
    Ok(Outcome { outputs: outcome.outputs.settled(), ..outcome })
}
