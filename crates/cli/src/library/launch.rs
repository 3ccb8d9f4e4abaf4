//! Launches: the input and the result of a run.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;

use reconverge_isa::limits::INSTRUCTIONS;
use reconverge_simt::{Options, Statistics};
use reconverge_workbench::Error as LaunchError;
use reconverge_workbench::array::{Array, Dtype};
use reconverge_workbench::launch::LaunchFile;
use reconverge_workbench::result::RunResult;
use reconverge_workbench::values::{Files, Stated};

use super::error::Error;
use super::file::Program;
use super::names::{Engine, Mode};
use super::observe::{Event, Observed, Taken};

/// Options of a run. If a launch states a mode or a watchdog, the launch takes precedence over the options.
///
/// ```
/// use reconverge::{Engine, RunOptions};
/// let options = RunOptions::default().engine(Engine::Lockstep);
/// # assert_eq!(options.engine, Engine::Lockstep);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RunOptions {
    /// The engine that runs the launch.
    pub engine: Engine,
    /// Behaviour in cases that the documents leave undefined.
    pub mode: Mode,
    /// Whether to turn off the check for races on shared memory in strict mode.
    pub no_race_check: bool,
    /// Maximum number of instructions per group (Tesla: per block). `None` selects the limit of the library.
    pub watchdog: Option<u64>,
    /// Maximum number of host threads. `None` selects one thread per processor.
    pub jobs: Option<NonZeroUsize>,
}

impl RunOptions {
    /// Sets the engine.
    #[must_use]
    pub fn engine(mut self, engine: Engine) -> RunOptions {
        self.engine = engine;
        self
    }

    /// Sets the behaviour in cases that the documents leave undefined.
    #[must_use]
    pub fn mode(mut self, mode: Mode) -> RunOptions {
        self.mode = mode;
        self
    }

    /// Turns off the check for races on shared memory in strict mode.
    #[must_use]
    pub fn no_race_check(mut self) -> RunOptions {
        self.no_race_check = true;
        self
    }

    /// Sets the maximum number of instructions per group (Tesla: per block).
    #[must_use]
    pub fn watchdog(mut self, instructions: u64) -> RunOptions {
        self.watchdog = Some(instructions);
        self
    }

    /// Sets the maximum number of host threads.
    #[must_use]
    pub fn jobs(mut self, threads: NonZeroUsize) -> RunOptions {
        self.jobs = Some(threads);
        self
    }

    pub(super) fn options(&self) -> Options {
        Options {
            mode: self.mode.into(),
            race_check: !self.no_race_check,
            engine: self.engine.into(),
            watchdog: self.watchdog.unwrap_or(INSTRUCTIONS.get()),
            jobs: self.jobs,
            ..Options::default()
        }
    }
}

/// The numbers of an input, buffer or constant.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Values {
    /// A value in the syntax of launch files: `0..64`, `1,2,3`, `f32[64]` (64 zeros), or the name of a file that
    /// [`Launch::file`] added.
    Text(String),
    /// An array of numbers with a type.
    Array(Array),
}

impl From<&str> for Values {
    fn from(text: &str) -> Values {
        Values::Text(text.to_owned())
    }
}

impl From<Array> for Values {
    fn from(array: Array) -> Values {
        Values::Array(array)
    }
}

impl From<&[f32]> for Values {
    fn from(numbers: &[f32]) -> Values {
        let words = numbers.iter().map(|number| number.to_bits());
        Values::Array(Array::from_words(Dtype::F32, vec![numbers.len()], words))
    }
}

impl From<&[u32]> for Values {
    fn from(numbers: &[u32]) -> Values {
        Values::Array(Array::from_words(Dtype::U32, vec![numbers.len()], numbers.iter().copied()))
    }
}

impl From<&[i32]> for Values {
    fn from(numbers: &[i32]) -> Values {
        let words = numbers.iter().map(|number| number.cast_unsigned());
        Values::Array(Array::from_words(Dtype::I32, vec![numbers.len()], words))
    }
}

/// Files and arrays that a launch names.
#[derive(Clone, Debug, Default)]
struct Named {
    files: BTreeMap<String, Vec<u8>>,
    arrays: Vec<Array>,
}

impl Named {
    /// Returns the text that stands for the values in a launch. For an array, this text is a number after `@`.
    fn name(&mut self, values: Values) -> String {
        match values {
            Values::Text(text) => text,
            Values::Array(array) => {
                self.arrays.push(array);
                format!("@{}", self.arrays.len() - 1)
            }
        }
    }
}

impl Files for Named {
    fn read(&self, name: &str) -> Result<Vec<u8>, String> {
        self.files.get(name).cloned().ok_or_else(|| "file not found".to_owned())
    }

    fn array(&self, name: &str) -> Option<(&Array, Stated)> {
        let number: usize = name.strip_prefix('@')?.parse().ok()?;
        Some((self.arrays.get(number)?, Stated::File))
    }
}

/// A program with its inputs and options.
///
/// The machine determines which functions apply to a launch. The machine also determines the names of registers and
/// memories (`place`) that these functions accept. If a function does not apply or does not accept the name, the
/// function returns [`Error::Launch`]. The options of the command line use the same names.
#[derive(Clone, Debug)]
pub struct Launch {
    pub(super) program: Program,
    pub(super) file: LaunchFile,
    named: Named,
}

impl Program {
    /// Returns an empty launch.
    pub fn launch(&self) -> Launch {
        Launch::new(self.clone(), LaunchFile::empty(self.opened().target.isa))
    }

    /// Returns the launch that a launch file (TOML or JSON) describes. The fields `program` and `kernel` of the launch
    /// file are ignored.
    ///
    /// # Errors
    /// Returns [`Error::LaunchFile`] if the text is malformed. Returns [`Error::OtherMachine`] if the text is a launch
    /// for a different machine than the program.
    pub fn launch_from(&self, text: &str) -> Result<Launch, Error> {
        let file = LaunchFile::parse(text)?;
        if file.isa != self.opened().target.isa {
            return Err(Error::OtherMachine {
                launch: file.isa.into(),
                program: self.opened().target.isa.into(),
            });
        }
        Ok(Launch::new(self.clone(), file))
    }
}

impl Launch {
    pub(crate) fn new(program: Program, mut file: LaunchFile) -> Launch {
        let target = &program.opened().target;
        file.common.chip = target.chip_name().map(str::to_owned).or(file.common.chip.take());
        let stage = target.stage.map(|stage| stage.name().to_owned());
        file.common.stage = file.common.stage.take().or(stage);
        Launch { program, file, named: Named::default() }
    }

    /// Returns the program.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Sets an option of the command `run`. `option` is the name of the option without the dashes. For example,
    /// `("block", "64")` sets `--block` to 64.
    ///
    /// # Errors
    /// Returns [`Error::Launch`] if the machine does not have the option, or if the value is malformed.
    pub fn set(mut self, option: &str, value: &str) -> Result<Launch, Error> {
        self.file.set(option, value)?;
        Ok(self)
    }

    fn place(mut self, option: &str, place: &str, values: Values) -> Result<Launch, Error> {
        let text = self.named.name(values);
        self.set(option, &format!("{place}={text}"))
    }

    /// Sets the number of lanes. The default is the number of lanes of the longest input. (R500, R700)
    #[must_use]
    pub fn lanes(mut self, lanes: usize) -> Launch {
        self.file.common.lanes = Some(lanes);
        self
    }

    /// Sets the number of blocks in x and y. (Tesla)
    ///
    /// # Errors
    /// Returns [`Error::Launch`] if the machine is not Tesla.
    pub fn grid(self, x: u32, y: u32) -> Result<Launch, Error> {
        self.set("grid", &format!("{x}x{y}"))
    }

    /// Sets the number of threads of a block in x, y and z. (Tesla)
    ///
    /// # Errors
    /// Returns [`Error::Launch`] if the machine is not Tesla.
    pub fn block(self, x: u32, y: u32, z: u32) -> Result<Launch, Error> {
        self.set("block", &format!("{x}x{y}x{z}"))
    }

    /// Sets an input of all lanes, such as `temp0` or `R0`. The values have one row of numbers per lane.
    ///
    /// # Errors
    /// Returns [`Error::Launch`] if the machine does not have this register.
    pub fn input(self, place: &str, values: impl Into<Values>) -> Result<Launch, Error> {
        self.place("input", place, values.into())
    }

    /// Sets consecutive constants, starting at `place`: `0` (R500), `c1[0x10]` (Tesla).
    ///
    /// # Errors
    /// Returns [`Error::Launch`] if the machine does not have this constant.
    pub fn constants(self, place: &str, values: impl Into<Values>) -> Result<Launch, Error> {
        self.place("const", place, values.into())
    }

    /// Adds a buffer, which is also an output. For a Tesla kernel, `place` is a name, and the buffer is the next
    /// parameter. For any other program, `place` is the number or the name of the buffer.
    ///
    /// # Errors
    /// Returns [`Error::Launch`] if the machine does not have this buffer.
    pub fn buffer(self, place: &str, values: impl Into<Values>) -> Result<Launch, Error> {
        self.place("buf", place, values.into())
    }

    /// Adds a number as the next parameter of a kernel. (Tesla)
    ///
    /// # Errors
    /// Returns [`Error::Launch`] if the machine is not Tesla.
    pub fn argument(self, name: &str, value: impl Into<Values>) -> Result<Launch, Error> {
        self.place("arg", name, value.into())
    }

    /// Adds a file. Values and launch files refer to this file by the name `name`. The library itself does not read
    /// files.
    #[must_use]
    pub fn file(mut self, name: &str, bytes: Vec<u8>) -> Launch {
        self.named.files.insert(name.to_owned(), bytes);
        self
    }

    /// Runs the launch to its end.
    ///
    /// # Errors
    /// Returns [`Error::Trap`] if the program traps, and [`Error::Launch`] if the launch does not fit the program.
    pub fn run(&self, options: &RunOptions) -> Result<Outcome, Error> {
        let (opened, program, options) = (self.program.opened(), self.program.inner(), options.options());
        match self.file.run(&opened.image, program, &options, &self.named) {
            Ok(result) => Ok(Outcome::of(result)),
            Err(LaunchError::Trap(mut trapped)) => {
                self.file.look(&mut trapped, opened, program, &options, &self.named);
                Err(LaunchError::Trap(trapped).into())
            }
            Err(other) => Err(other.into()),
        }
    }

    /// Runs the launch to its end. The groups run in order on one thread. Passes each event and the number of the
    /// event's group to `observer`.
    ///
    /// # Errors
    /// See [`Launch::run`].
    pub fn observe(
        &self,
        options: &RunOptions,
        observed: Observed,
        observer: impl FnMut(usize, Event),
    ) -> Result<Outcome, Error> {
        let options = self.file.options(&options.options())?;
        let session = self.prepare()?;
        let outcome = session.run_traced(&options, observed.into(), &mut Taken(observer))?;
        Ok(Outcome::of(RunResult::of(&*outcome)))
    }

    pub(super) fn prepare(&self) -> Result<reconverge_workbench::Session, Error> {
        let (image, program) = (&self.program.opened().image, self.program.inner());
        Ok(self.file.prepare(image, program, &self.named)?)
    }
}

/// The result of a run.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Outcome {
    /// Outputs by name.
    pub outputs: Vec<(String, Array)>,
    /// Counts of instructions and branches.
    pub statistics: Statistics,
    /// Problems that [`Mode::Strict`] finds in the final state of the program.
    pub findings: Vec<String>,
    /// Differences from the values that the launch file expects.
    pub mismatches: Vec<String>,
}

impl Outcome {
    pub(crate) fn of(result: RunResult) -> Outcome {
        let RunResult { outputs, statistics, findings, mismatches, .. } = result;
        Outcome { outputs, statistics, findings, mismatches }
    }

    /// Returns the output with this name.
    pub fn output(&self, name: &str) -> Option<&Array> {
        self.outputs.iter().find(|(known, _)| known == name).map(|(_, array)| array)
    }
}
