//! The data that a program needs before its first instruction: the inputs of the vertices, and the constants.

use std::sync::Arc;

use reconverge_simt::registers::to_rows;
use reconverge_simt::{GroupId, GroupTrap, Mask, Options, Trap};
use thiserror::Error;

use super::cause::Cause;
use super::group::{Group, INPUT, WIDTH};
use super::inst::{CONSTANTS, INPUTS};
use super::setup::{Setup, SetupError};

/// The values of one input vector for all vertices. The values have the form in which the stream unit writes values.
#[derive(Clone, Debug, PartialEq)]
pub struct Input {
    /// The input register, 0 to 31. (DST_VEC_LOC)
    pub register: u8,
    /// Bits of x, y, z, w for each vertex. Launches share the values, so that a launch is cheap to copy.
    pub values: Arc<[[u32; 4]]>,
}

/// The environment for which a program is loaded. All runs of the loaded program use the same environment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Environment {
    /// Constants that replace constants of the program. The first part of an element is the index of the constant in
    /// the constant file (including PVS_CONST_BASE_OFFSET). The second part has the bits of x, y, z and w.
    pub constants: Vec<(u8, [u32; 4])>,
}

/// The environment, vertices and inputs of a run.
#[derive(Clone, Debug, Default)]
pub struct Launch {
    /// The environment for which the program is loaded. Launches share the environment, so that a launch is cheap to
    /// copy.
    pub environment: Arc<Environment>,
    /// Number of vertices.
    pub vertices: usize,
    /// Inputs of the vertices. A register without an input holds zeros.
    pub inputs: Vec<Input>,
}

/// The reason why a launch is invalid.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LaunchError {
    /// An input names a register that does not exist.
    #[error("input register {0} does not exist: there are {INPUTS}")]
    InputRegister(u8),
    /// The number of values of an input differs from the number of vertices.
    #[error("input i{register} has {found} values for {vertices} vertices")]
    InputLength {
        /// The register.
        register: u8,
        /// Number of values.
        found: usize,
        /// Number of vertices in the launch.
        vertices: usize,
    },
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
        for input in &self.inputs {
            let (register, found, vertices) = (input.register, input.values.len(), self.vertices);
            if usize::from(register) >= INPUTS {
                return Err(LaunchError::InputRegister(register));
            }
            if found != vertices {
                return Err(LaunchError::InputLength { register, found, vertices });
            }
        }
        Ok(())
    }

    /// Returns the constant file of a run. The file holds the program's constants. A constant of the environment
    /// replaces the program's constant at the same index.
    pub(crate) fn constants_of(&self, setup: &Setup) -> Arc<[[u32; 4]; CONSTANTS]> {
        let mut constants = Arc::new([[0; 4]; CONSTANTS]);
        setup.put_constants(Arc::make_mut(&mut constants), &self.environment.constants);
        constants
    }

    /// Returns the lanes of the group that begins with vertex `first`.
    pub(crate) fn lanes(&self, first: usize) -> Mask {
        Mask::first(WIDTH.min(self.vertices.saturating_sub(first)))
    }

    /// Returns a group in its initial state. Lane n of the group is vertex `first` + n of the launch. The launch must
    /// have passed [`Launch::check`].
    pub fn group(&self, setup: &Arc<Setup>, options: &Options, first: usize) -> Group {
        let constants = self.constants_of(setup);
        let mut group = Group::new(setup, constants, self.lanes(first), options.mode, options.watchdog);
        self.load(&mut group, first);
        group
    }

    /// Writes the inputs to a group that begins with vertex `first`.
    pub(crate) fn load(&self, group: &mut Group, first: usize) {
        let count = group.flow.lanes().count() as usize;
        for input in &self.inputs {
            let start = INPUT.start + usize::from(input.register) * 4;
            let rows = group.rows.rows_mut()[start..].first_chunk_mut().expect("four channels a register");
            to_rows(None, &input.values[first..first + count], rows);
        }
    }
}

/// The reason why a run failed.
pub type RunError = reconverge_simt::RunError<LaunchError, Cause>;

/// Returns the error for a trap of the group that begins with vertex `first`.
pub(crate) fn trapped(first: usize, trap: Trap<Cause>) -> RunError {
    RunError::Trap(GroupTrap { group: GroupId::Lanes { first }, words: None, trap })
}
