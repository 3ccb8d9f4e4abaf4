//! Launch files.

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

/// The fields of [`Common`]; the others of a launch file are the machine's.
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
    /// The text begins with a brace and is not JSON.
    #[error("{}", of_json(.0))]
    Json(#[from] serde_json::Error),
    /// The text is JSON, and its value is not an object.
    #[error("line 1: expected a JSON object with the keys of a launch file, found {0}")]
    NotAnObject(&'static str),
    /// The text is not TOML.
    #[error("{}not TOML: {}", .line.map(|line| format!("line {line}: ")).unwrap_or_default(), .error.message())]
    Toml {
        /// The error.
        error: toml::de::Error,
        /// The line of the text, from 1 on.
        line: Option<usize>,
    },
    /// A field is unknown, or has a value of another type.
    #[error("{}{}", .line.map(|line| format!("line {line}: ")).unwrap_or_default(), self.of_field())]
    Field {
        /// The error, with the path of the field.
        error: toml::de::Error,
        /// The line of the text, from 1 on.
        line: Option<usize>,
    },
    /// The text does not name a machine.
    #[error("the launch file names no machine: add a line such as isa = \"r500\"")]
    NoMachine,
    /// The text names an unknown machine.
    #[error(transparent)]
    Machine(#[from] UnknownIsa),
    /// The text states a trap and expectations.
    #[error("trap stands in place of [[expect]]: a launch that traps leaves no results")]
    TrapAndExpect,
    /// The text of the trap is empty, and would fit every trap.
    #[error("trap: the text is empty; state a part of the trap's message")]
    AnyTrap,
}

impl LaunchFileError {
    /// The message about a field. An unknown one comes with all that fit: at the top of the file, those of all launches and
    /// of the machine.
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
            expected.starts_with("a sequence").then(|| format!("a list is expected: write `[{number}]`"))
        });
        one.unwrap_or_else(|| complaint(&message, &more))
    }

    /// The message with the name of the file: `FILE:LINE: MESSAGE`.
    pub fn at(&self, file: &str) -> String {
        placed(file, &self.to_string())
    }
}

/// The message of an error in JSON, which begins with its line.
fn of_json(error: &serde_json::Error) -> String {
    let (message, line, column) = (error.to_string(), error.line(), error.column());
    match message.strip_suffix(&format!(" at line {line} column {column}")) {
        Some(message) => format!("line {line}: not JSON: {message} (column {column})"),
        None => message,
    }
}

/// The line of a byte in a text, from 1 on.
fn line_in(text: &str, at: usize) -> Option<usize> {
    text.get(..at).map(|before| before.matches('\n').count() + 1)
}

/// Adds the line to an error in TOML.
fn not_toml(text: &str, error: toml::de::Error) -> LaunchFileError {
    let line = error.span().and_then(|span| line_in(text, span.start));
    LaunchFileError::Toml { error, line }
}

/// The kind of a JSON value that is not an object, with its article; `None` for any other text.
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

/// A launch of one of the machines.
#[derive(Clone, Debug)]
pub struct LaunchFile {
    /// The machine.
    pub isa: Isa,
    /// What all launches have.
    pub common: Common,
    /// The machine's own part.
    pub machine: Arc<dyn MachineLaunch>,
}

impl LaunchFile {
    /// Reads a launch file: TOML, or JSON with the same names when the text begins with a brace.
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

    /// Returns the fields of a launch file as they are written, without checks of their names and values.
    ///
    /// # Errors
    /// The text is not TOML, or begins with a brace and is not JSON.
    pub fn fields(text: &str) -> Result<toml::Table, LaunchFileError> {
        if let Some(found) = not_an_object(text) {
            return Err(LaunchFileError::NotAnObject(found));
        }
        match text.trim_start().starts_with('{') {
            true => Ok(serde_json::from_str(text)?),
            false => toml::from_str(text).map_err(|error| not_toml(text, error)),
        }
    }

    /// Returns the launch with these fields.
    ///
    /// # Errors
    /// No machine, an unknown field, or a field with a value of another type.
    pub fn of(table: &toml::Table) -> Result<LaunchFile, LaunchFileError> {
        // The lines of this text are not those of a file.
        let text = table.to_string();
        let parsed = DeTable::parse(&text);
        let parsed = parsed.map_err(|error| LaunchFileError::Toml { error, line: None })?;
        LaunchFile::of_fields(parsed, |_| None)
    }

    /// Reads the fields. `line` returns the line of a position.
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

    /// A launch that states nothing.
    pub fn empty(isa: Isa) -> LaunchFile {
        let nothing = toml::Deserializer::from(Spanned::new(0..0, DeTable::new()));
        let machine = machine(isa).launch(nothing);
        let machine = machine.unwrap_or_else(|error| unreachable!("no field is required: {error}"));
        LaunchFile { isa, common: Common::default(), machine }
    }

    /// Takes one option of the command line, by its name without the dashes, and its value.
    ///
    /// # Errors
    /// An option that the machine does not have, or a malformed value.
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

    /// The program type that the launch states.
    ///
    /// # Errors
    /// A name of none.
    pub fn stage(&self) -> Result<Option<Stage>, Error> {
        let names = Stage::ALL.map(|stage| (stage.name(), stage));
        self.common.stage.as_deref().map(|name| choose("stage", name, &names)).transpose()
    }

    /// The mode that the launch states.
    ///
    /// # Errors
    /// A name of none.
    pub fn mode(&self) -> Result<Option<Mode>, Error> {
        let names = Mode::ALL.map(|mode| (mode.name(), mode));
        self.common.mode.as_deref().map(|name| choose("mode", name, &names)).transpose()
    }

    /// `options` with what the launch states itself.
    ///
    /// # Errors
    /// An unknown mode.
    pub fn options(&self, options: &Options) -> Result<Options, Error> {
        let mode = self.mode()?.unwrap_or(options.mode);
        let watchdog = self.common.watchdog.unwrap_or(options.watchdog);
        // Either can turn it off.
        let race_check = self.common.race_check.unwrap_or(true) && options.race_check;
        Ok(Options { mode, watchdog, race_check, ..*options })
    }

    /// Whether it says what must come out.
    pub fn expects_something(&self) -> bool {
        !self.common.expect.is_empty() || self.common.trap.is_some()
    }

    /// The launch of `program`, which `image` contains, ready.
    ///
    /// # Errors
    /// A launch that does not fit the program or the machine.
    pub fn prepare(&self, image: &Image, program: &Program, files: &dyn Files) -> Result<Session, Error> {
        let target = self.target(image)?.for_program(image, program);
        let request = Request { common: &self.common, image, program, target: &target, files };
        let session = self.machine.prepare(&request)?;
        match &self.common.piece {
            Some(lanes) => session.piece(lanes.clone()).ok_or_else(|| {
                Error::Machine(format!(
                    "lanes {} to {}: not of {} programs",
                    lanes.start, lanes.end, self.isa
                ))
            }),
            None => Ok(session),
        }
    }

    /// The machine, with the chip and the program type that the launch or else the file of the program states.
    fn target(&self, image: &Image) -> Result<Target, Error> {
        let chip = self.common.chip.as_deref().or(image.chip.as_deref());
        let target = Target::new(self.isa, chip).map_err(|error| Error::Machine(error.to_string()))?;
        Ok(Target { stage: self.stage()?, ..target })
    }

    /// Returns the program as the launch runs it and the findings of [`Machine::lint`](crate::Machine::lint) in it, or `None` if it runs
    /// the words as they are.
    ///
    /// # Errors
    /// A launch that does not fit the program or the machine.
    pub fn lint(
        &self,
        image: &Image,
        program: &Program,
        files: &dyn Files,
    ) -> Result<Option<(Program, Vec<Finding>)>, Error> {
        let target = self.target(image)?.for_program(image, program);
        self.machine.lint(&Request { common: &self.common, image, program, target: &target, files })
    }

    /// Adds to a trap of the launch what can be seen there, by repeating it up to the trap.
    pub fn look(
        &self,
        trapped: &mut Trapped,
        opened: &Opened,
        program: &Program,
        options: &Options,
        files: &dyn Files,
    ) {
        trapped.line = opened.line(program, trapped.pc);
        trapped.remedy = self.machine.remedy(trapped, program);
        let Ok(options) = self.options(options) else { return };
        if let Ok(session) = self.prepare(&opened.image, program, files) {
            let target = opened.target.for_program(&opened.image, program);
            look(trapped, &target, program, &session, &options);
        }
    }

    /// Judges how a run of the launch ended: by the trap that it must end with, and by what must come out. Gives
    /// what it left, if anything, and why it is not as it must be, in words. `file` is the program's, for places in it.
    ///
    /// # Errors
    /// The launch cannot run, the engines differ, or a trap that nothing announces.
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

    /// Runs the launch of `program` and compares what it leaves with what must come out.
    ///
    /// # Errors
    /// [`Error::Trap`] is the program's fault, [`Error::Differ`] is a defect of an engine, the others are the launch's.
    pub fn run(
        &self,
        image: &Image,
        program: &Program,
        options: &Options,
        files: &dyn Files,
    ) -> Result<RunResult, Error> {
        let options = self.options(options)?;
        let session = self.prepare(image, program, files)?;
        // Another one for the conditions, which may need a run that is observed.
        let again = (!self.common.expect.holds.is_empty()).then(|| session.copy());
        let outcome = session.run(&options)?;
        let mut result = self.result(&*outcome, files)?;
        if let Some(session) = again {
            self.judge_counts(&mut result, image, program, &session, &options)?;
        }
        Ok(result)
    }

    /// Judges the conditions on counts, and adds the sentences on them to what a run left. `session` is the launch.
    ///
    /// # Errors
    /// A run that is observed, which some counts need, fails.
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
                    // Said once.
                    is_right = false;
                }
                Err(text) => result.mismatches.push(text),
            }
        }
        Ok(())
    }

    /// Returns what a run of the launch left, and compares it with what must come out.
    ///
    /// # Errors
    /// The expected numbers cannot be had.
    pub fn result(&self, outcome: &dyn Outcome, files: &dyn Files) -> Result<RunResult, ValuesError> {
        let mut result = RunResult::of(outcome);
        let piece = self.common.piece.as_ref().zip(self.common.lanes);
        for expected in &self.common.expect.outputs {
            result.compare(expected, piece, files)?;
        }
        Ok(result)
    }
}

/// The program of a name, or the only one.
///
/// # Errors
/// No program, no such program, or several without a name to choose by.
pub fn choose_program<'a>(image: &'a Image, kernel: Option<&str>) -> Result<&'a Program, Error> {
    let programs = &image.programs;
    let names =
        || programs.iter().filter_map(|program| program.name.as_deref()).collect::<Vec<_>>().join(", ");
    match (kernel, &programs[..]) {
        (_, []) => Err(Error::Machine("there is no program in this file".to_owned())),
        (None, [only]) => Ok(only),
        (None, _) => Err(Error::Machine(format!("several programs; choose one with --kernel: {}", names()))),
        (Some(kernel), _) => programs
            .iter()
            .find(|program| program.name.as_deref() == Some(kernel))
            .ok_or_else(|| Error::Machine(format!("no program `{kernel}`; there is {}", names()))),
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
        // What only another machine has is unknown as well.
        assert!(wrong("isa = \"r700\"\ngrid = [1]\n").contains("unknown key `grid`"));
    }

    /// The line, the key that was meant, and all keys: those of the machine, and those of all launches.
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

    /// JSON without an object, broken JSON, broken TOML, and a key that is missing: one line with the place.
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
