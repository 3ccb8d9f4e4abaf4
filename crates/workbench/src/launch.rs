//! Reads launch files, and runs the launches that the files describe.

use std::sync::Arc;

use reconverge_isa::lint::Finding;
use reconverge_isa::program::{Stage, UnknownIsa};
use reconverge_isa::{Image, Isa, Program};
use reconverge_simt::{Mode, Options};
use serde::Deserialize as _;
use thiserror::Error as ThisError;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::counts::needed;
use crate::error::{Error, Trapped};
use crate::keys::{complaint, json_line, placed, unknown_key};
use crate::machine;
use crate::open::Opened;
use crate::request::{Common, MachineLaunch, Request, TextureValues, choose};
use crate::result::RunResult;
use crate::session::{Outcome, Session};
use crate::target::Target;
use crate::trapped::look;
use crate::values::{Files, ValuesError};

/// Names of the fields of [`Common`]. All other fields of a launch file belong to the machine.
const COMMON: [&str; 13] = [
    "program",
    "kernel",
    "chip",
    "stage",
    "lanes",
    "mode",
    "race_check",
    "watchdog",
    "texture",
    "expect",
    "trap",
    "pixels",
    "vertices",
];

/// An error in the text of a launch file.
#[derive(Debug, ThisError)]
#[non_exhaustive]
pub enum LaunchFileError {
    /// The text begins with a brace but is not valid JSON.
    #[error("{}", of_json(.0))]
    Json(#[from] serde_json::Error),
    /// The text is JSON, but its value is not an object.
    #[error("line 1: expected a JSON object with the keys of a launch file, found {0}")]
    NotAnObject(&'static str),
    /// The text is not valid TOML.
    #[error("{}not TOML: {}", .line.map(|line| format!("line {line}: ")).unwrap_or_default(), .error.message())]
    Toml {
        /// The error.
        error: toml::de::Error,
        /// Line number in the text, from 1.
        line: Option<usize>,
    },
    /// A field is unknown, or its value has the wrong type.
    #[error("{}{}", .line.map(|line| format!("line {line}: ")).unwrap_or_default(), self.of_field())]
    Field {
        /// The error, with the path of the field.
        error: toml::de::Error,
        /// Line number in the text, from 1.
        line: Option<usize>,
    },
    /// The text does not name a machine.
    #[error("missing machine in the launch file; add a line such as isa = \"r500\"")]
    NoMachine,
    /// The text names an unknown machine.
    #[error(transparent)]
    Machine(#[from] UnknownIsa),
    /// The text states both a trap and expectations.
    #[error("expected either trap or [[expect]]; a launch that traps does not have results")]
    TrapAndExpect,
    /// The text of the expected trap is empty. An empty text would match every trap.
    #[error("trap: the text is empty; state a part of the trap's message")]
    AnyTrap,
}

impl LaunchFileError {
    /// Returns the message about a field. If the field is unknown, the message lists all legal fields. At the top level
    /// of the file, the legal fields are the common fields and the machine's fields.
    fn of_field(&self) -> String {
        let LaunchFileError::Field { error, .. } = self else { return self.to_string() };
        let message = error.to_string();
        if let Some(missing) = message.strip_prefix("missing field `") {
            return format!("missing key `{}", missing.trim_end().replace('\n', " "));
        }
        let is_nested = message.contains("\nin `");
        let more: Vec<&str> = COMMON.into_iter().chain(["isa"]).filter(|_| !is_nested).collect();
        let one = message.strip_prefix("invalid type: ").and_then(|rest| {
            let (value, expected) = rest.split_once(", expected ")?;
            let number = value.strip_prefix("integer `")?.strip_suffix('`')?;
            expected.starts_with("a sequence").then(|| format!("expected a list; write `[{number}]`"))
        });
        one.unwrap_or_else(|| complaint(&message, &more))
    }

    /// Returns the message with the name of the file: `FILE:LINE: MESSAGE`.
    pub fn at(&self, file: &str) -> String {
        placed(file, &self.to_string())
    }
}

/// Returns the message of a JSON error. The message starts with the line number.
fn of_json(error: &serde_json::Error) -> String {
    let (message, line, column) = (error.to_string(), error.line(), error.column());
    match message.strip_suffix(&format!(" at line {line} column {column}")) {
        Some(message) => format!("line {line}: not JSON: {message} (column {column})"),
        None => message,
    }
}

/// Returns the number of the line that contains the byte position `at` of a text. Lines count from 1.
fn line_in(text: &str, at: usize) -> Option<usize> {
    text.get(..at).map(|before| before.matches('\n').count() + 1)
}

/// Converts a TOML error, and adds its line number.
fn not_toml(text: &str, error: toml::de::Error) -> LaunchFileError {
    let line = error.span().and_then(|span| line_in(text, span.start));
    LaunchFileError::Toml { error, line }
}

/// If the text is a JSON value, but not an object, returns the kind of the value with an article, such as `a list`.
fn not_an_object(text: &str) -> Option<&'static str> {
    Some(match serde_json::from_str(text).ok()? {
        serde_json::Value::Object(_) => return None,
        serde_json::Value::Array(_) => "an array",
        serde_json::Value::String(_) => "a string",
        serde_json::Value::Number(_) => "a number",
        serde_json::Value::Bool(_) => "a truth value",
        serde_json::Value::Null => "null",
    })
}

/// A launch for one of the machines.
#[derive(Clone, Debug)]
pub struct LaunchFile {
    /// The machine.
    pub isa: Isa,
    /// The fields that exist for all machines.
    pub common: Common,
    /// The fields of the machine.
    pub machine: Arc<dyn MachineLaunch>,
}

impl LaunchFile {
    /// Parses a launch file. The text is JSON if the text begins with a brace. Otherwise, the text is TOML. Both
    /// formats have the same fields.
    ///
    /// # Errors
    /// See [`LaunchFileError`].
    pub fn parse(text: &str) -> Result<LaunchFile, LaunchFileError> {
        if text.trim_start().starts_with('{') {
            let read = LaunchFile::of(&LaunchFile::fields(text)?);
            return read.map_err(|error| match error {
                LaunchFileError::Field { error, .. } => {
                    let line = unknown_key(&error.to_string()).and_then(|key| json_line(text, key));
                    LaunchFileError::Field { error, line }
                }
                other => other,
            });
        }
        if let Some(found) = not_an_object(text) {
            return Err(LaunchFileError::NotAnObject(found));
        }
        let table = DeTable::parse(text).map_err(|error| not_toml(text, error))?;
        LaunchFile::of_fields(table, |at| line_in(text, at))
    }

    /// Returns the fields of a launch file as written. The function does not check the names and the values of the
    /// fields.
    ///
    /// # Errors
    /// Returns an error if the text is neither valid TOML nor valid JSON with a brace at the start.
    pub fn fields(text: &str) -> Result<toml::Table, LaunchFileError> {
        if let Some(found) = not_an_object(text) {
            return Err(LaunchFileError::NotAnObject(found));
        }
        match text.trim_start().starts_with('{') {
            true => Ok(serde_json::from_str(text)?),
            false => toml::from_str(text).map_err(|error| not_toml(text, error)),
        }
    }

    /// Returns the launch that the fields in a table describe.
    ///
    /// # Errors
    /// Returns an error if the machine is missing, if a field is unknown, or if a value has the wrong type.
    pub fn of(table: &toml::Table) -> Result<LaunchFile, LaunchFileError> {
        // Messages do not have line numbers, because the function creates `text` from the table.
        let text = table.to_string();
        let parsed = DeTable::parse(&text);
        let parsed = parsed.map_err(|error| LaunchFileError::Toml { error, line: None })?;
        LaunchFile::of_fields(parsed, |_| None)
    }

    /// Reads the fields. `line` returns the line number of a byte position.
    fn of_fields(
        table: Spanned<DeTable<'_>>,
        line: impl Fn(usize) -> Option<usize>,
    ) -> Result<LaunchFile, LaunchFileError> {
        let whole = table.span();
        let mut table = table.into_inner();
        let isa = match table.remove("isa").map(Spanned::into_inner) {
            Some(DeValue::String(name)) => name.parse()?,
            _ => return Err(LaunchFileError::NoMachine),
        };
        let (common, own): (DeTable<'_>, DeTable<'_>) =
            table.into_iter().partition(|(name, _)| COMMON.contains(&name.get_ref().as_ref()));
        let fields = |table| toml::Deserializer::from(Spanned::new(whole.clone(), table));
        let refused = |error: toml::de::Error| {
            let line = error.span().and_then(|span| line(span.start));
            LaunchFileError::Field { error, line }
        };
        let common = Common::deserialize(fields(common)).map_err(refused)?;
        match &common.trap {
            Some(trap) if trap.trim().is_empty() => return Err(LaunchFileError::AnyTrap),
            Some(_) if !common.expect.is_empty() => return Err(LaunchFileError::TrapAndExpect),
            _ => {}
        }
        let machine = machine(isa).launch(fields(own)).map_err(refused)?;
        Ok(LaunchFile { isa, common, machine })
    }

    /// Returns a launch without any fields.
    pub fn empty(isa: Isa) -> LaunchFile {
        let nothing = toml::Deserializer::from(Spanned::new(0..0, DeTable::new()));
        let machine = machine(isa).launch(nothing);
        let machine = machine.unwrap_or_else(|error| unreachable!("no field is required: {error}"));
        LaunchFile { isa, common: Common::default(), machine }
    }

    /// Sets a field of the launch to the value of a command-line option. `option` is the option's name without dashes.
    ///
    /// # Errors
    /// Returns an error if the machine does not have the option, or if the value is malformed.
    pub fn set(&mut self, option: &str, value: &str) -> Result<(), Error> {
        if option == "texture" {
            self.common.texture.push(TextureValues::of_argument(value)?);
            return Ok(());
        }
        let mut machine = self.machine.copy();
        let own = Arc::get_mut(&mut machine).unwrap_or_else(|| unreachable!("it has just been made"));
        own.set(option, value)?;
        self.machine = machine;
        Ok(())
    }

    /// Returns the program type (stage) that the launch states.
    ///
    /// # Errors
    /// Returns an error if the name is unknown.
    pub fn stage(&self) -> Result<Option<Stage>, Error> {
        let names = Stage::ALL.map(|stage| (stage.name(), stage));
        self.common.stage.as_deref().map(|name| choose("stage", name, &names)).transpose()
    }

    /// Returns the mode that the launch states.
    ///
    /// # Errors
    /// Returns an error if the name is unknown.
    pub fn mode(&self) -> Result<Option<Mode>, Error> {
        let names = Mode::ALL.map(|mode| (mode.name(), mode));
        self.common.mode.as_deref().map(|name| choose("mode", name, &names)).transpose()
    }

    /// Returns `options` with the changes that the launch states.
    ///
    /// # Errors
    /// Returns an error if the mode is unknown.
    pub fn options(&self, options: &Options) -> Result<Options, Error> {
        let mode = self.mode()?.unwrap_or(options.mode);
        let watchdog = self.common.watchdog.unwrap_or(options.watchdog);
        // The race check runs unless the launch or `options` disables the check.
        let race_check = self.common.race_check.unwrap_or(true) && options.race_check;
        Ok(Options { mode, watchdog, race_check, ..*options })
    }

    /// Returns whether the launch states expected results or an expected trap.
    pub fn expects_something(&self) -> bool {
        !self.common.expect.is_empty() || self.common.trap.is_some()
    }

    /// Returns a session that is ready to run `program` with this launch. `image` contains the program.
    ///
    /// # Errors
    /// Returns an error if the launch is not valid for the program or the machine.
    pub fn prepare(&self, image: &Image, program: &Program, files: &dyn Files) -> Result<Session, Error> {
        let target = self.target(image)?.for_program(image, program);
        let request = Request { common: &self.common, image, program, target: &target, files };
        let session = self.machine.prepare(&request)?;
        match &self.common.piece {
            Some(lanes) => session.piece(lanes.clone()).ok_or_else(|| {
                Error::Machine(format!(
                    "lanes {} to {} of this {} program cannot run alone",
                    lanes.start, lanes.end, self.isa
                ))
            }),
            None => Ok(session),
        }
    }

    /// Returns the target. If the launch states a chip, this chip replaces the chip of the program's file.
    fn target(&self, image: &Image) -> Result<Target, Error> {
        let chip = self.common.chip.as_deref().or(image.chip.as_deref());
        let target = Target::new(self.isa, chip).map_err(|error| Error::Machine(error.to_string()))?;
        Ok(Target { stage: self.stage()?, ..target })
    }

    /// If the launch changes the program before the run, returns the changed program. Also returns the findings of
    /// [`Machine::lint`](crate::Machine::lint) for the changed program. Returns `None` if the launch runs the words
    /// unchanged.
    ///
    /// # Errors
    /// Returns an error if the launch is not valid for the program or the machine.
    pub fn lint(
        &self,
        image: &Image,
        program: &Program,
        files: &dyn Files,
    ) -> Result<Option<(Program, Vec<Finding>)>, Error> {
        let target = self.target(image)?.for_program(image, program);
        self.machine.lint(&Request { common: &self.common, image, program, target: &target, files })
    }

    /// Adds the context to a trap of the launch. To find the context, the function runs the launch again up to the
    /// trap.
    pub fn look(
        &self,
        trapped: &mut Trapped,
        opened: &Opened,
        program: &Program,
        options: &Options,
        files: &dyn Files,
    ) {
        trapped.remedy = self.machine.remedy(trapped, program);
        let Ok(options) = self.options(options) else { return };
        if let Ok(session) = self.prepare(&opened.image, program, files) {
            look(trapped, opened, program, &session, &options);
        }
    }

    /// Compares the result of a run with the trap or the results that the launch expects. Returns the differences as
    /// text. If the run has results, also returns the results. `file` is the name of the program's file, for messages.
    ///
    /// # Errors
    /// Returns an error if the launch cannot run, if the engines differ, or if the program traps unexpectedly.
    pub fn judged(
        &self,
        run: Result<RunResult, Error>,
        file: &str,
    ) -> Result<(Option<RunResult>, Vec<String>), Error> {
        match (run, &self.common.trap) {
            (Ok(result), None) => {
                let mismatches = result.mismatches.clone();
                Ok((Some(result), mismatches))
            }
            (Ok(result), Some(trap)) => {
                Ok((Some(result), vec![format!("must trap with `{trap}`, but ended")]))
            }
            (Err(Error::Trap(found)), Some(trap)) if found.message.contains(trap) => Ok((None, Vec::new())),
            (Err(Error::Trap(found)), Some(trap)) => {
                Ok((None, vec![format!("must trap with `{trap}`, but: {}", found.sentence(file))]))
            }
            (Err(error), _) => Err(error),
        }
    }

    /// Runs the launch of `program` and compares its results with the expected results.
    ///
    /// # Errors
    /// Returns [`Error::Trap`] if the program traps, and [`Error::Differ`] if the engines differ. All other errors are
    /// about the launch.
    pub fn run(
        &self,
        image: &Image,
        program: &Program,
        options: &Options,
        files: &dyn Files,
    ) -> Result<RunResult, Error> {
        let options = self.options(options)?;
        let session = self.prepare(image, program, files)?;
        // `session.run` consumes the session, so the check of the conditions needs a copy of the session. The check may
        // run and observe this copy.
        let again = (!self.common.expect.holds.is_empty()).then(|| session.copy());
        let outcome = session.run(&options)?;
        let mut result = self.result(&*outcome, files)?;
        if let Some(session) = again {
            self.judge_counts(&mut result, image, program, &session, &options)?;
        }
        Ok(result)
    }

    /// Checks the conditions on counts, and adds a sentence about each condition to the results. `session` is a copy of
    /// the session before the run.
    ///
    /// # Errors
    /// Returns an error if a count needs an observed run and the observed run fails.
    pub fn judge_counts(
        &self,
        result: &mut RunResult,
        image: &Image,
        program: &Program,
        session: &Session,
        options: &Options,
    ) -> Result<(), Error> {
        let conditions = &self.common.expect.holds;
        if conditions.is_empty() {
            return Ok(());
        }
        let target = self.target(image)?.for_program(image, program);
        let counts = needed(conditions, &result.statistics, &target, program, session, options)?;
        let mut is_right = result.mismatches.is_empty() && !self.common.expect.outputs.is_empty();
        for judged in conditions.iter().map(|condition| condition.judge(&counts)) {
            match judged {
                Ok(text) => result.held.push(text),
                Err(text) if is_right => {
                    result.mismatches.push(format!("the results are correct, but {text}"));
                    // Only the message about the first failed condition states that the results are correct.
                    is_right = false;
                }
                Err(text) => result.mismatches.push(text),
            }
        }
        Ok(())
    }

    /// Returns the results of a run of the launch, compared with the expected results.
    ///
    /// # Errors
    /// Returns an error if the expected numbers cannot be loaded.
    pub fn result(&self, outcome: &dyn Outcome, files: &dyn Files) -> Result<RunResult, ValuesError> {
        let mut result = RunResult::of(outcome);
        let piece = self.common.piece.as_ref().zip(self.common.lanes);
        for expected in &self.common.expect.outputs {
            result.compare(expected, piece, files)?;
        }
        Ok(result)
    }
}

/// If `kernel` is a name, returns the program with this name. If `kernel` is `None`, returns the only program.
///
/// # Errors
/// Returns an error if the image has no program, or if no program has this name. Also returns an error if `kernel` is
/// `None` and the image has several programs.
pub fn choose_program<'a>(image: &'a Image, kernel: Option<&str>) -> Result<&'a Program, Error> {
    let programs = &image.programs;
    let names =
        || programs.iter().filter_map(|program| program.name.as_deref()).collect::<Vec<_>>().join(", ");
    match (kernel, &programs[..]) {
        (_, []) => Err(Error::Machine("no program found in this file".to_owned())),
        (None, [only]) => Ok(only),
        (None, _) => Err(Error::Machine(format!("several programs; choose one with --kernel: {}", names()))),
        (Some(kernel), _) => {
            programs.iter().find(|program| program.name.as_deref() == Some(kernel)).ok_or_else(|| {
                Error::Machine(format!("unknown program `{kernel}`: expected one of {}", names()))
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_fields_are_refused_with_their_path() {
        let wrong = |text: &str| LaunchFile::parse(text).unwrap_err().to_string();
        assert!(
            wrong("isa = \"r500\"\nnonsense = 1\n")
                .starts_with("line 2: unknown key `nonsense`: the keys are")
        );
        let nested = wrong("isa = \"r500\"\n[ctm]\ndomain = [1]\nnonsense = 1\n");
        assert!(nested.starts_with("line 4: unknown key `nonsense` in `ctm`: the keys are"), "{nested}");
        let typed = wrong("isa = \"tesla\"\nlanes = \"many\"\n");
        assert!(typed.starts_with("line 2: ") && typed.contains("in `lanes`"), "{typed}");
        let segment = "[[segment]]\nnumber = 1\nlimit = 0\n";
        let second = wrong(&format!("isa = \"tesla\"\n{segment}{segment}base = -1\n"));
        assert!(second.starts_with("line 8: ") && second.contains("in `segment.base`"), "{second}");
        let json = wrong("{\"isa\": \"tesla\", \"grid_id\": 65536}");
        assert!(json.starts_with("invalid value") && json.contains("in `grid_id`"), "{json}");
        // A key that belongs to one machine is unknown in a launch file of another machine.
        assert!(wrong("isa = \"r700\"\ngrid = [1]\n").contains("unknown key `grid`"));
    }

    /// The message states the line, suggests the most similar key, and lists the common keys and the machine's keys.
    #[test]
    fn an_unknown_key_has_its_line_a_suggestion_and_the_whole_list() {
        let error = LaunchFile::parse("isa = \"tesla\"\nblcok = [1]\n").unwrap_err();
        let message = error.at("l.toml");
        assert!(
            message.starts_with("l.toml:2: unknown key `blcok`: did you mean `block`? the keys are "),
            "{message}"
        );
        for key in ["block", "expect", "grid", "isa", "param", "program", "watchdog"] {
            assert!(message.contains(&format!(" {key}")), "{message}");
        }
        let json = LaunchFile::parse("{\n\"isa\": \"tesla\",\n\"blcok\": [1]}").unwrap_err().at("l.json");
        assert!(json.starts_with("l.json:3: unknown key `blcok`: did you mean `block`?"), "{json}");
        let expect = "isa = \"r500\"\n[[expect]]\noutput = \"a\"\nvalue = [1]\n";
        let nested = LaunchFile::parse(expect).unwrap_err().at("l.toml");
        assert!(
            nested.starts_with("l.toml:4: unknown key `value` in `expect`: did you mean `values`?"),
            "{nested}"
        );
    }

    /// An invalid text causes a message of one line, which states the position. The texts are JSON texts that are not
    /// objects, invalid JSON, invalid TOML, and a text without a required key.
    #[test]
    fn a_text_that_is_no_launch_is_described_in_one_line_with_its_place() {
        for (text, message) in [
            ("[1, 2]\n", "l:1: expected a JSON object with the keys of a launch file, found an array"),
            ("\"x\"", "l:1: expected a JSON object with the keys of a launch file, found a string"),
            ("{\"isa\":\n3", "l:2: not JSON: EOF while parsing an object (column 1)"),
            ("isa = \"tesla\"\nlanes = \n", "l:2: not TOML: "),
            ("isa = \"tesla\"\n[[param]]\nvalue = 3\n", "l:2: missing key `name` in `param`"),
        ] {
            let error = LaunchFile::parse(text).unwrap_err().at("l");
            assert!(error.starts_with(message) && !error.contains('\n'), "{error}");
        }
    }

    #[test]
    fn every_common_field_is_listed() {
        for name in COMMON {
            let table: toml::Table = format!("{name} = 1").parse().unwrap();
            let known = table.try_into::<Common>().is_err()
                || matches!(name, "lanes" | "watchdog" | "pixels" | "vertices");
            assert!(known, "{name} is no field");
        }
    }
}
