//! The state before the first instruction: the inputs of the lanes, the constants, the textures and the hardware
//! options.
//!
//! Four consecutive lanes form a quad, in the order top left, top right, bottom left, bottom right. (docs/r500.md, Q1)

use std::sync::Arc;

use reconverge_simt::registers::to_rows;
use reconverge_simt::{GroupId, GroupTrap, Level, Mask, Options, Trap};
use thiserror::Error;

use crate::cause::Cause;
use crate::chip::WIDTH_R520;
use crate::flow::{Flow, InhibitScope, Limits};
use crate::group::Group;
use crate::inst::{CONSTANTS, SAMPLERS, TEMPORARIES};
use crate::setup::{Setup, SetupError};
use crate::texture::Texture;

/// Values that the rasteriser has written into a temporary.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Input {
    /// The temporary, 0 to 127.
    pub temp: u8,
    /// The values of all lanes. A lane has four words: the bits of r, g, b and a. Launches share the values, so that a
    /// launch is cheap to copy.
    pub values: Arc<[[u32; 4]]>,
}

/// Values that the rasteriser has written into a temporary. Each channel is stored as one column.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Columns {
    /// The temporary, 0 to 127.
    pub temp: u8,
    /// Four lists, for r, g, b and a. A list has one word per lane. Lanes after the end of a list read zero.
    pub components: [Arc<Vec<u32>>; 4],
}

/// Properties of a chip that the documents leave open, or that differ between chips.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hardware {
    /// Number of lanes that share a program counter: a multiple of 4 from 4 to 64.
    pub group_width: usize,
    /// Stack sizes. `None` means the sizes that are recommended for the program's flow-control mode.
    pub limits: Option<Limits>,
    /// Selects the branch-inactive lanes that prevent a BREAK or CONTINUE from jumping.
    pub scope: InhibitScope,
}

impl Default for Hardware {
    fn default() -> Hardware {
        Hardware { group_width: WIDTH_R520, limits: None, scope: InhibitScope::Frame }
    }
}

impl Hardware {
    /// Checks the group width.
    ///
    /// # Errors
    /// Returns [`LaunchError::GroupWidth`] if the width is not a multiple of 4 from 4 to 64.
    pub fn check(&self) -> Result<(), LaunchError> {
        let width = self.group_width;
        let possible = (4..=64).contains(&width) && width.is_multiple_of(4);
        if possible { Ok(()) } else { Err(LaunchError::GroupWidth(width)) }
    }
}

/// The environment for which a program is loaded. All runs of the loaded program use the same environment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Environment {
    /// Float constants that replace constants of the program. Each element has the number of the constant, and the bits
    /// of r, g, b, a.
    pub constants: Vec<(u8, [u32; 4])>,
    /// Textures, each with the number of its unit.
    pub textures: Vec<(u8, Texture)>,
    /// The chip.
    pub hardware: Hardware,
}

impl Environment {
    /// Checks that the environment is valid.
    ///
    /// # Errors
    /// Returns [`LaunchError::GroupWidth`] or [`LaunchError::TextureUnit`].
    pub fn check(&self) -> Result<(), LaunchError> {
        self.hardware.check()?;
        match self.textures.iter().find(|(unit, _)| usize::from(*unit) >= SAMPLERS) {
            Some((unit, _)) => Err(LaunchError::TextureUnit(*unit)),
            None => Ok(()),
        }
    }

    /// Returns whether any float constant of a program is a denormal when the program runs in this environment.
    pub(crate) fn has_denormals(&self, setup: &Setup) -> bool {
        let denormal =
            |(_, value): &(u8, [u32; 4])| value.iter().any(|bits| f32::from_bits(*bits).is_subnormal());
        setup.constants.iter().chain(&self.constants).any(denormal)
    }

    /// Returns whether lowering a program has equal results for both environments. Assumes that either both
    /// environments have denormal constants, or neither has. Environments that differ only in constants have equal
    /// results. If the environments have equal images but do not share the images, this function returns `false`.
    pub fn lowers_alike(&self, other: &Environment) -> bool {
        let Environment { constants: _, textures, hardware } = self;
        let texture = |((unit, one), (number, other)): (&(u8, Texture), &(u8, Texture))| {
            unit == number && one.is_same(other)
        };
        *hardware == other.hardware
            && textures.len() == other.textures.len()
            && textures.iter().zip(&other.textures).all(texture)
    }

    /// Binds the textures and float constants to a group. A constant of the environment replaces the constant of the
    /// program with the same number. Launches that reuse one group must have one common program. The environments of
    /// such launches must [lower alike](Environment::lowers_alike).
    pub(crate) fn bind(&self, group: &mut Group) {
        let Group { setup, constants, textures, .. } = group;
        let constants = Arc::make_mut(constants);
        constants.clear();
        constants.resize(CONSTANTS, [0; 4]);
        for (number, value) in setup.constants.iter().chain(&self.constants) {
            constants[usize::from(*number)] = *value;
        }
        for (unit, texture) in &self.textures {
            textures[usize::from(*unit)] = Some(texture.clone());
        }
    }
}

/// The environment, lanes and inputs of a run.
#[derive(Clone, Debug, Default)]
pub struct Launch {
    /// The environment for which the program is loaded. Launches share the environment, so that a launch is cheap to
    /// copy.
    pub environment: Arc<Environment>,
    /// The number of lanes.
    pub lanes: usize,
    /// The values that the rasteriser writes.
    pub inputs: Vec<Input>,
    /// More values that the rasteriser has written into temporaries. Each channel is stored as one column.
    pub columns: Vec<Columns>,
}

/// The reason why a launch is invalid.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LaunchError {
    /// The group width is not a multiple of 4 from 4 to 64.
    #[error("a group of {0} lanes is not possible: 4 to 64, a multiple of 4")]
    GroupWidth(usize),
    /// An input names a temporary that does not exist.
    #[error("input temporary {0} does not exist: there are 128")]
    InputTemp(u8),
    /// The number of values of an input differs from the number of lanes.
    #[error("input temp[{temp}] has {found} values for {lanes} lanes")]
    InputLength {
        /// The temporary.
        temp: u8,
        /// Number of values.
        found: usize,
        /// Number of lanes in the launch.
        lanes: usize,
    },
    /// A texture unit does not exist.
    #[error("texture unit {0} does not exist: there are 16")]
    TextureUnit(u8),
    /// The program cannot be set up.
    #[error(transparent)]
    Setup(#[from] SetupError),
}

impl Launch {
    /// Checks that the launch is valid.
    ///
    /// # Errors
    /// Returns an error for the first problem that the check finds.
    pub fn check(&self) -> Result<(), LaunchError> {
        if let Some(columns) = self.columns.iter().find(|columns| usize::from(columns.temp) >= TEMPORARIES) {
            return Err(LaunchError::InputTemp(columns.temp));
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
        self.environment.check()
    }

    /// Returns the number of groups.
    pub(crate) fn groups(&self) -> usize {
        self.lanes.div_ceil(self.width())
    }

    /// Returns the number of lanes in a group.
    pub(crate) fn width(&self) -> usize {
        self.environment.hardware.group_width
    }

    /// Returns the temporaries that inputs write, as one bit for each temporary.
    pub(crate) fn temps(&self) -> u128 {
        self.input_temps().fold(0, |temps, temp| temps | 1 << temp)
    }

    /// Returns the numbers of the temporaries that inputs write.
    pub(crate) fn input_temps(&self) -> impl Iterator<Item = u8> {
        let inputs = self.inputs.iter().map(|input| input.temp);
        inputs.chain(self.columns.iter().map(|columns| columns.temp))
    }

    /// Returns a group in its initial state. Lane n of the group is lane `first_lane` + n of the launch. The launch
    /// must have passed [`Launch::check`].
    pub fn group(&self, setup: &Arc<Setup>, options: &Options, first_lane: usize, lanes: Mask) -> Group {
        let Options { mode, watchdog, .. } = *options;
        let Hardware { limits, scope, .. } = self.environment.hardware;
        let limits = limits.unwrap_or(Limits::recommended(setup.fc_mode));
        let flow = Flow::new(setup.start, lanes, lanes, setup.fc_mode, limits, mode).with_scope(scope);
        let mut group = Group::at(setup, flow, lanes, mode, watchdog);
        self.environment.bind(&mut group);
        self.load(&mut group, first_lane, |_| true, None);
        group
    }

    /// Restarts a group of this launch with new lanes. The new lanes must be among the first `width` lanes. Does not
    /// change issue counts. Sets the rows in `cleared` to zero. `cleared` need not include rows of inputs, because
    /// inputs overwrite the rows of inputs. Writes a column only if `reads` returns true for the row of the column.
    /// Copies the inputs with code that is compiled for `level`.
    pub(crate) fn restart(
        &self,
        group: &mut Group,
        first_lane: usize,
        (lanes, width): (Mask, usize),
        cleared: &[usize],
        reads: impl Fn(usize) -> bool,
        level: Option<Level>,
    ) {
        group.restart(lanes);
        cleared.iter().for_each(|row| group.rows[*row][..width].fill(0));
        if lanes != Mask::first(width) {
            // If the group has fewer lanes than the previous group, the inputs of the group overwrite only some inputs
            // of the previous group.
            for input in &self.inputs {
                (0..4).for_each(|channel| group.rows[usize::from(input.temp) * 4 + channel].fill(0));
            }
        }
        self.load(group, first_lane, reads, level);
    }

    /// Writes the values of the rasteriser to the temporaries. Uses code that is compiled for `level`, or for every
    /// processor if `level` is `None`.
    fn load(
        &self,
        group: &mut Group,
        first_lane: usize,
        reads: impl Fn(usize) -> bool,
        level: Option<Level>,
    ) {
        let count = group.lanes.count() as usize;
        for columns in &self.columns {
            for (channel, column) in columns.components.iter().enumerate() {
                let number = usize::from(columns.temp) * 4 + channel;
                if !reads(number) {
                    continue;
                }
                let row = &mut group.rows[number];
                let words = column.get(first_lane..).unwrap_or_default();
                if group.lanes == Mask::first(count) {
                    let words = &words[..words.len().min(count)];
                    row[..words.len()].copy_from_slice(words);
                    row[words.len()..].fill(0);
                    continue;
                }
                row.fill(0);
                for lane in group.lanes.lanes() {
                    row[lane.index()] = words.get(lane.index()).copied().unwrap_or(0);
                }
            }
        }
        for input in &self.inputs {
            let values = &input.values[first_lane..];
            let rows = &mut group.rows.rows_mut()[usize::from(input.temp) * 4..];
            let rows = rows.first_chunk_mut().expect("four channels a register");
            if group.lanes == Mask::first(count) {
                to_rows(level, &values[..count], rows);
                continue;
            }
            for lane in group.lanes.lanes() {
                for (row, bits) in rows.iter_mut().zip(values[lane.index()]) {
                    row.0[lane.index()] = bits;
                }
            }
        }
    }
}

/// The reason why a run failed.
pub type RunError = reconverge_simt::RunError<LaunchError, Cause>;

/// Returns the error for a trap of the group that begins with lane `first_lane`.
pub(crate) fn trapped(first_lane: usize, trap: Trap<Cause>) -> RunError {
    RunError::Trap(GroupTrap { group: GroupId::Lanes { first: first_lane }, words: None, trap })
}
