//! What is true before the first instruction: the lanes' inputs, constants, textures, and how to run. Data only.
//!
//! Lanes come in quads of four: top left, top right, bottom left, bottom right. (docs/r500.md, Q1)

use std::sync::Arc;

use reconverge_simt::{Engine, Level, Mask, Mode, Trap};
use thiserror::Error;

use crate::cause::Cause;
use crate::chip::Chip;
pub use crate::chip::{WIDTH_R520, WIDTH_R580};
use crate::fast::lockstep::Difference;
use crate::flow::{Flow, InhibitScope, Limits};
use crate::group::Group;
use crate::inst::{CONSTANTS, SAMPLERS, TEMPORARIES};
use crate::setup::Setup;
use crate::texture::Texture;

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
            if usize::from(input.temp) >= TEMPORARIES {
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

    /// The group whose lane n is lane `first_lane` + n of the launch, at its start. The launch has passed
    /// [`Launch::check`].
    pub fn group(&self, setup: &Arc<Setup>, first_lane: usize, lanes: Mask) -> Group {
        let Options { mode, limits, scope, watchdog, .. } = self.options;
        let limits = limits.unwrap_or(Limits::recommended(setup.fc_mode));
        let flow = Flow::new(setup.start, lanes, lanes, setup.fc_mode, limits, mode).with_scope(scope);
        let mut group = Group::at(setup, flow, lanes, mode, watchdog);
        group.constants = Arc::new(self.constants_of(setup));
        for (unit, texture) in &self.textures {
            group.textures[usize::from(*unit)] = Some(texture.clone());
        }
        self.load(&mut group, first_lane);
        group
    }

    /// Makes a group of this launch another one at its start. `written` are all rows that the program may write, those of
    /// inputs aside; its counts by slot stay.
    pub(crate) fn restart(&self, group: &mut Group, first_lane: usize, lanes: Mask, written: &[usize]) {
        group.restart(lanes);
        let width = self.options.group_width;
        written.iter().for_each(|row| group.rows[*row][..width].fill(0));
        if lanes != Mask::first(width) {
            // The inputs of a smaller group do not cover what those of the one before it left.
            for input in &self.inputs {
                (0..4).for_each(|channel| group.rows[usize::from(input.temp) * 4 + channel].fill(0));
            }
        }
        self.load(group, first_lane);
    }

    /// What the rasteriser has written.
    fn load(&self, group: &mut Group, first_lane: usize) {
        for input in &self.inputs {
            let values = &input.values[first_lane..];
            let first_row = usize::from(input.temp) * 4;
            let rows = &mut group.rows.rows_mut()[first_row..first_row + 4];
            for lane in group.lanes.lanes() {
                for (row, bits) in rows.iter_mut().zip(values[lane.index()]) {
                    row.0[lane.index()] = bits;
                }
            }
        }
    }
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
    pub(crate) fn behind(mut self, lanes: usize) -> RunError {
        match &mut self {
            RunError::Launch(_) => {}
            RunError::Trap { first_lane, .. } => *first_lane += lanes,
            RunError::Differ(difference) => difference.first_lane += lanes,
        }
        self
    }
}
