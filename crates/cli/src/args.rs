//! Arguments that several commands share, and the result of a command.

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use reconverge_board::driver_fixes::DriverFixes;
use reconverge_container::{Endian, Format};
use reconverge_isa::Isa;
use reconverge_isa::program::Stage;
use reconverge_simt::{Engine, Level, Mode, Options};
use reconverge_workbench::target::TargetError;
use reconverge_workbench::{Known, Target};

/// Options that state properties of the input, such as its machine. The options are needed if the file does not state
/// these properties itself.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct TargetArgs {
    /// The machine
    #[arg(long, value_name = "MACHINE", value_parser = isa())]
    pub(crate) isa: Option<Isa>,
    /// The chip, for instance R580, RV770, GT200 or sm_13
    #[arg(long, value_name = "NAME")]
    pub(crate) chip: Option<String>,
    /// Program type, for machines and formats whose encoding depends on it
    #[arg(long, value_name = "TYPE", value_parser = stage())]
    pub(crate) stage: Option<Stage>,
    /// Byte order of raw words and arrays, if their contents do not show the order
    #[arg(long, value_name = "ORDER", value_parser = endian())]
    pub(crate) endian: Option<Endian>,
}

/// Options for reading a file.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct ReadArgs {
    /// Format of the file (default: detected from its contents). A file of another format is an error
    #[arg(long, value_name = "FORMAT", value_parser = file_kind())]
    pub(crate) format: Option<FileKind>,
    /// Define a macro for C sources (default value: 1). NAME(x)=x defines a function-like macro. Can be repeated
    #[arg(short = 'D', long = "define", value_name = "NAME[=VALUE]")]
    pub(crate) defines: Vec<String>,
    /// Read the lines before the change in a diff, instead of the lines after the change
    #[arg(long)]
    pub(crate) old: bool,
}

impl ReadArgs {
    /// Whether the command line has an option about the file's format.
    pub(crate) fn is_given(&self) -> bool {
        self.format.is_some() || self.old || !self.defines.is_empty()
    }

    /// Returns whether a file is read as an assembler source. If the command line does not state a format, returns the
    /// result of `otherwise`.
    pub(crate) fn is_source(&self, otherwise: impl FnOnce() -> bool) -> bool {
        self.format.map_or_else(otherwise, |format| format == FileKind::Source)
    }

    /// Returns a copy of `known` to which the properties in these options are added.
    pub(crate) fn known(&self, known: Known) -> Known {
        let format = match self.format {
            Some(FileKind::Container(format)) => Some(format),
            Some(FileKind::Source) | None => None,
        };
        Known { format, defines: self.defines.clone(), old: self.old, ..known }
    }
}

/// A kind of file that holds programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileKind {
    /// Assembler text.
    Source,
    /// A container.
    Container(Format),
}

impl FileKind {
    fn name(&self) -> &'static str {
        match self {
            FileKind::Source => "source",
            FileKind::Container(format) => format.name(),
        }
    }
}

/// Options for a file of programs.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct InputArgs {
    #[command(flatten)]
    pub(crate) target: TargetArgs,
    #[command(flatten)]
    pub(crate) read: ReadArgs,
}

impl InputArgs {
    /// Returns the properties that these options state about a file.
    pub(crate) fn known(&self) -> Known {
        self.read.known(self.target.known())
    }

    /// Returns an error if the command line has an option about the program's file. A case contains its program, so a
    /// command line that names a case must not have such options.
    pub(crate) fn no_case(&self) -> anyhow::Result<()> {
        match self.read.is_given() {
            true => anyhow::bail!(
                "--format, --define and --old apply to files of programs; a case of --case contains its program"
            ),
            false => Ok(()),
        }
    }
}

impl TargetArgs {
    /// Returns the properties that these options state about a file.
    pub(crate) fn known(&self) -> Known {
        let (isa, chip, stage, endian) = (self.isa, self.chip.clone(), self.stage, self.endian);
        Known { isa, chip, stage, endian, ..Known::default() }
    }

    /// Returns the target for the machine `isa`.
    pub(crate) fn target(&self, isa: Isa) -> Result<Target, TargetError> {
        Ok(Target { stage: self.stage, ..Target::new(isa, self.chip.as_deref())? })
    }
}

/// Options that select the engine and its check for races. If a program has no races, its results do not depend on
/// these options.
#[derive(Args, Clone)]
pub(crate) struct EngineArgs {
    /// Engine: compiled, fast, reference, or two engines in lockstep, of which one is reference (default: compiled; for
    /// check and for observed runs: fast). Results do not depend on the engine
    #[arg(long, value_parser = engine())]
    pub(crate) engine: Option<Engine>,
    /// Vector instructions that the fast engine uses (default: the best that this processor has). Results do not depend
    /// on the level
    #[arg(long, value_parser = level())]
    pub(crate) level: Option<Level>,
}

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct RaceArgs {
    /// In strict mode, do not check shared memory (Tesla's s[], R700's local data share) for races and uninitialized
    /// reads
    #[arg(long)]
    no_race_check: bool,
}

impl RaceArgs {
    /// Whether strict mode checks for races.
    pub(crate) fn check(&self) -> bool {
        !self.no_race_check
    }
}

impl EngineArgs {
    pub(crate) fn options(&self) -> Options {
        self.options_or(Engine::Compiled)
    }

    /// Returns the options of a run. If the command line names an engine, the options have this engine. Otherwise, the
    /// options have `engine`.
    pub(crate) fn options_or(&self, engine: Engine) -> Options {
        let engine = self.engine.unwrap_or(engine);
        Options { engine, level: self.level, ..Options::default() }
    }
}

/// Returns a parser that accepts one of several names. Help texts and completions list these names.
pub(crate) fn one_of<T: Clone + Send + Sync + 'static>(
    values: Vec<T>,
    name: fn(&T) -> &'static str,
) -> impl TypedValueParser<Value = T> {
    let names = PossibleValuesParser::new(values.iter().map(name));
    names
        .try_map(move |given| values.iter().find(|value| name(value) == given).cloned().ok_or("unknown name"))
}

pub(crate) fn isa() -> impl TypedValueParser<Value = Isa> {
    one_of(Isa::ALL.to_vec(), |isa| isa.name())
}

pub(crate) fn stage() -> impl TypedValueParser<Value = Stage> {
    one_of(Stage::ALL.to_vec(), |stage| stage.name())
}

pub(crate) fn endian() -> impl TypedValueParser<Value = Endian> {
    one_of(Endian::ALL.to_vec(), |endian| endian.name())
}

fn file_kind() -> impl TypedValueParser<Value = FileKind> {
    let containers = Format::ALL.into_iter().map(FileKind::Container);
    let kinds: Vec<FileKind> = [FileKind::Source].into_iter().chain(containers).collect();
    let named = |kind: &FileKind| match kind {
        FileKind::Container(Format::Dump) => PossibleValue::new(kind.name()).alias("listing"),
        _ => PossibleValue::new(kind.name()),
    };
    let named: Vec<PossibleValue> = kinds.iter().map(named).collect();
    PossibleValuesParser::new(named.clone()).try_map(move |given| {
        let at = named.iter().position(|name| name.matches(&given, false));
        at.and_then(|at| kinds.get(at).copied()).ok_or("unknown name")
    })
}

pub(crate) fn engine() -> impl TypedValueParser<Value = Engine> {
    let names = Engine::ALL.map(|engine| match engine {
        Engine::Lockstep => PossibleValue::new(engine.name()).alias("lockstep=reference,fast"),
        _ => PossibleValue::new(engine.name()),
    });
    PossibleValuesParser::new(names).try_map(|given| Engine::from_name(&given).ok_or("unknown engine"))
}

/// Returns the parser of `--driver-fixes`. Each value of this option names known faults of a driver. The emulation
/// fixes these faults.
pub(crate) fn driver_fixes() -> impl TypedValueParser<Value = DriverFixes> {
    let names = DriverFixes::ALL.map(DriverFixes::name);
    PossibleValuesParser::new(names).try_map(|given| DriverFixes::from_name(&given).ok_or("unknown fixes"))
}

/// Returns the parser of levels. The parser rejects levels that this processor or build does not have, and help texts
/// do not list these levels.
pub(crate) fn level() -> impl TypedValueParser<Value = Level> {
    let names = Level::NAMES.map(|name| PossibleValue::new(name).hide(Level::from_name(name).is_none()));
    PossibleValuesParser::new(names).try_map(|given| {
        Level::from_name(&given)
            .ok_or("not available on this processor or in this build (feature `every-level`)")
    })
}

pub(crate) fn mode() -> impl TypedValueParser<Value = Mode> {
    one_of(Mode::ALL.to_vec(), |mode| mode.name())
}

/// Returns the list of container formats for help texts.
pub(crate) fn files_help() -> String {
    let formats = reconverge_container::formats().map(|(name, about)| format!("  {name:<12} {about}"));
    format!(
        "Formats, by their names for --format:\n  source       assembler text, by the file name's extension .s or .asm\n{}",
        formats.collect::<Vec<_>>().join("\n")
    )
}

/// The result of a command that completed without an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Success.
    Yes,
    /// A case failed, a rule was broken, or the program trapped.
    No,
    /// The exit status of another program.
    Status(u8),
}
