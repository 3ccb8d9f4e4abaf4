//! Input of `run`, `trace`, `stats` and `debug`: a program with options, a launch file, a run manifest or a case.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, anyhow, bail};
use clap::ArgMatches;
use clap::parser::ValueSource;
use reconverge_cases::{Folder, NoFolder};
use reconverge_isa::{Isa, Program};
use reconverge_simt::{Engine, Mode, Options};
use reconverge_workbench::choose::{Asked, Piece};
use reconverge_workbench::keys::placed;
use reconverge_workbench::launch::{LaunchFile, choose_program};
use reconverge_workbench::manifest::Manifest;
use reconverge_workbench::result::RunResult;
use reconverge_workbench::session::Outcome;
use reconverge_workbench::{Opened, Session};

use crate::args::{EngineArgs, InputArgs, RaceArgs, TargetArgs};
use crate::beside::{Beside, folder_of};
use crate::files;
use crate::files::open_program;
use crate::messages::{counted, note};

/// Input of a run.
#[derive(clap::Args, Clone)]
pub(crate) struct LaunchArgs {
    /// Program (.s, cubin, hex, bin, ELF), launch file (.toml, .json), run manifest (.json) or file of cases
    pub(crate) file: PathBuf,
    /// Use the case with this name in a file of cases
    #[arg(long, value_name = "NAME")]
    case: Option<String>,
    /// Index of the case's set of constants (default: 0)
    #[arg(long, value_name = "N", default_value_t = 0, requires = "case", hide_default_value = true)]
    set: usize,
    /// Use the program with this name; needed if the file contains several programs
    #[arg(long)]
    pub(crate) kernel: Option<String>,
    /// Number of blocks: 4 or 4x2 (tesla kernels)
    #[arg(long, value_name = "XxY")]
    grid: Option<String>,
    /// Threads per block: 64, 8x8 or 8x8x2 (tesla kernels)
    #[arg(long, value_name = "XxYxZ")]
    block: Option<String>,
    /// Bytes of dynamic shared memory (tesla kernels)
    #[arg(long, value_name = "BYTES")]
    shared: Option<u32>,
    /// Tesla kernels: a buffer whose address is a parameter of the kernel, for example a=in.npy or out=f32[256]. R500
    /// with --domain: a typed surface, for example in0=VALUES:FLOAT32_1:8x8 or out0=FLOAT32_1:8x8. R700: a vertex
    /// resource with its number of bytes per element, for example 160=VALUES:16
    #[arg(long = "buf", value_name = "NAME=VALUES")]
    buffer: Vec<String>,
    /// Value of a kernel parameter: n=256, x=0.5, n=256:u64 (tesla kernels). If the program does not name its
    /// parameters, --buf and --arg set the parameters in the order of these options
    #[arg(long = "arg", value_name = "NAME=VALUE", allow_hyphen_values = true)]
    argument: Vec<String>,
    /// Size of a pointer parameter in bytes: 4 or 8 (tesla kernels). Needed only if the program's file does not state
    /// this size
    #[arg(long, value_name = "N")]
    pointer_bytes: Option<u32>,
    /// Type of the exports of a pixel, vertex or geometry program: f32, u32 or i32 (r700)
    #[arg(long, value_name = "TYPE")]
    output_type: Option<String>,
    /// Number of lanes (all programs except for kernels)
    #[arg(long, value_name = "N", value_parser = lanes)]
    lanes: Option<usize>,
    /// Initial values: temp0=VALUES (r500), R0=VALUES (r700), v4=VALUES for v[0x10] and following (tesla). (1,2,3,4)
    /// sets the four channels of a register to the same values in all lanes; (1,2),(3,4) sets two channels in each of
    /// two lanes
    #[arg(long, value_name = "NAME=VALUES")]
    input: Vec<String>,
    /// Segment of global memory that is a buffer and an output: 1=VALUES for g1[] (tesla kernels)
    #[arg(long, value_name = "NUMBER=VALUES")]
    segment: Vec<String>,
    /// Constants: 3=1,2,3,4 (r500), 0=VALUES for constant buffer 0 or C3=1,2,3,4 for the constant file (r700),
    /// c1[0x10]=VALUES (tesla)
    #[arg(long = "const", value_name = "PLACE=VALUES")]
    constant: Vec<String>,
    /// Texture: 0=VALUES:8x8
    #[arg(long, value_name = "UNIT=VALUES:SIZE")]
    texture: Vec<String>,
    /// Set fields of a sampler: 0=mag=linear,min=linear,wrap=repeat. The fields are those of [[sampler]] in a launch
    /// file
    #[arg(long, value_name = "NUMBER=FIELDS")]
    sampler: Vec<String>,
    /// Loop constant: 0=COUNT,INIT,INC (r700)
    #[arg(long = "loop", value_name = "NUMBER=VALUES")]
    loop_constant: Vec<String>,
    /// Start address of the program in 64-bit words (r700)
    #[arg(long, value_name = "ADDRESS")]
    start: Option<u32>,
    /// Run on a domain of index pairs, WIDTHxHEIGHT, in the CTM model (r500)
    #[arg(long, value_name = "WxH")]
    domain: Option<String>,
    /// Treat outputs as uncached: the program writes each output to out0 at once (r500 with --domain)
    #[arg(long)]
    uncached: bool,
    /// Treatment of undefined behaviour: strict traps; lenient continues and follows the recommended interpretation
    #[arg(long, value_name = "MODE", value_parser = crate::args::mode())]
    pub(crate) mode: Option<Mode>,
    /// Number of lanes that share a program counter (r500)
    #[arg(long, value_name = "N")]
    group_width: Option<usize>,
    /// Number of instructions that a group can issue
    #[arg(long, value_name = "N")]
    pub(crate) watchdog: Option<u64>,
    /// Run only the quad of pixel X,Y. If several fragments cover the pixel, N is the number of one fragment, counted
    /// from 0 (default: the last fragment). Needs a launch file that states the pixels of its lanes, such as a file
    /// that `drm --capture` writes
    #[arg(long, value_name = "X,Y[,N]", value_parser = pixel, conflicts_with = "vertex", allow_hyphen_values = true)]
    pixel: Option<Asked>,
    /// Run only the vertex with this index in this instance (default: 0). Needs a launch file that states the vertices
    /// of its lanes
    #[arg(long, value_name = "INDEX[,INSTANCE]", value_parser = vertex)]
    vertex: Option<Asked>,
    /// Run experiment N of the campaign FILE, with the fault of the experiment
    #[cfg(feature = "campaign")]
    #[arg(long, value_name = "N", conflicts_with = "case")]
    experiment: Option<u64>,
    /// Run the experiment without its fault: the golden run
    #[cfg(feature = "campaign")]
    #[arg(long, requires = "experiment")]
    without_fault: bool,
    #[command(flatten)]
    engine: EngineArgs,
    #[command(flatten)]
    races: RaceArgs,
    /// Number of threads (default: one per processor)
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
    /// Let a launch file name files outside its folder, and let a manifest name files outside the parent of its folder
    #[arg(long)]
    allow_outside: bool,
    #[command(flatten)]
    known: InputArgs,
}

/// A launch that is ready to run, and the program of the launch.
pub(crate) struct Ready {
    /// The launch.
    pub(crate) session: Session,
    /// The file that contains the program.
    pub(crate) opened: Opened,
    /// Engine and other options of the run.
    pub(crate) options: Options,
    /// Name of the launch in messages.
    pub(crate) title: String,
    /// Path of the program's file, if the launch names a file.
    pub(crate) path: Option<PathBuf>,
    /// Index of the lane that the command line selects, if the command line selects a lane.
    pub(crate) lane: Option<usize>,
    program: Program,
}

impl Ready {
    /// Returns the program.
    pub(crate) fn program(&self) -> &Program {
        &self.program
    }
}

impl LaunchArgs {
    /// Returns the path of the file that the command line names.
    pub(crate) fn file(&self) -> &Path {
        &self.file
    }

    /// Returns the programs of the file. Does not read a launch.
    pub(crate) fn programs(&self) -> Result<Programs> {
        open_programs(&self.file, self.case.as_deref(), self.allow_outside, &self.known)
    }

    /// Returns the options of a run: engine, vector level and threads.
    pub(crate) fn options(&self) -> Options {
        self.options_or(Engine::Compiled)
    }

    /// Returns the options of a run. If the command line names an engine, the options have this engine. Otherwise, the
    /// options have `engine`.
    fn options_or(&self, engine: Engine) -> Options {
        let jobs = self.jobs.and_then(|jobs| NonZeroUsize::new(jobs.into()));
        Options { jobs, race_check: self.races.check(), ..self.engine.options_or(engine) }
    }

    /// Returns a launch that can be observed. The default engine is the fast engine, because the compiled engine cannot
    /// be observed. For a run manifest, returns the only launch of the manifest. If the manifest has several launches,
    /// returns an error.
    pub(crate) fn ready(&self, matches: &ArgMatches) -> Result<Ready> {
        #[cfg(feature = "campaign")]
        if let Some(number) = self.experiment {
            only_of_programs(matches, "a campaign")?;
            stated_by_campaign(matches)?;
            return self.experiment(number);
        }
        let title = crate::shown::path(&self.file);
        let options = self.options_or(Engine::Fast);
        match prepare(self, matches)? {
            Prepared::Launch { launch, mut opened, path, beside, lane } => {
                let kernel = self.kernel.as_deref().or(launch.common.kernel.as_deref());
                let program = choose_program(&opened.image, kernel);
                let program = program.with_context(|| crate::shown::path(&path))?.clone();
                opened.target = opened.target.for_program(&opened.image, &program);
                let session = launch.prepare(&opened.image, &program, &beside);
                let session = session.with_context(|| title.clone())?;
                let options = launch.options(&options)?;
                Ok(Ready { session, opened, options, title, path: Some(path), lane, program })
            }
            Prepared::Manifest { manifest, opened, beside } => {
                let prepared = manifest.prepare(&opened.image, &beside).with_context(|| title.clone())?;
                let (session, program) = prepared;
                Ok(Ready { session, opened, options, title, path: None, lane: None, program })
            }
        }
    }
}

#[cfg(feature = "campaign")]
impl LaunchArgs {
    /// Returns the launch of an experiment of a campaign. If the command line requests the golden run, the launch does
    /// not have the fault of the experiment. The launch can be observed.
    fn experiment(&self, number: u64) -> Result<Ready> {
        let campaign = reconverge_campaign::Campaign::open(&self.file)?;
        let replay = campaign.replay(number)?;
        let file = crate::shown::path(&self.file);
        let (session, title) = match self.without_fault {
            true => (replay.golden, format!("{file}, golden run")),
            false => (replay.faulty, format!("{file}, experiment {number}")),
        };
        let mut opened = campaign.opened().clone();
        opened.target = opened.target.for_program(&opened.image, &replay.program);
        let lane = replay.record.lane.map(|lane| lane as usize);
        let path = campaign.program_path().map(Path::to_path_buf);
        let program = replay.program;
        Ok(Ready { session, opened, options: replay.options, title, path, lane, program })
    }
}

fn pixel(text: &str) -> Result<Asked, String> {
    let form = || "expected X,Y or X,Y,N, for instance 3,5".to_owned();
    let numbers: Option<Vec<i32>> = text.split(',').map(|number| number.trim().parse().ok()).collect();
    match numbers.as_deref() {
        Some([x, y]) => Ok(Asked::Pixel { x: *x, y: *y, fragment: None }),
        Some([x, y, number]) => {
            let fragment = Some(usize::try_from(*number).map_err(|_| form())?);
            Ok(Asked::Pixel { x: *x, y: *y, fragment })
        }
        _ => Err(form()),
    }
}

fn vertex(text: &str) -> Result<Asked, String> {
    let form = || "expected INDEX or INDEX,INSTANCE, for instance 2".to_owned();
    let (index, instance) = text.split_once(',').unwrap_or((text, "0"));
    let number = |text: &str| text.trim().parse().map_err(|_| form());
    Ok(Asked::Vertex { index: number(index)?, instance: number(instance)? })
}

fn lanes(text: &str) -> Result<usize, String> {
    // The upper bound depends on `--limits` and is checked later.
    text.parse().ok().filter(|lanes| *lanes > 0).ok_or_else(|| "expected a number greater than 0".to_owned())
}

/// A parsed launch or manifest with its files.
pub(crate) enum Prepared {
    Launch {
        launch: Box<LaunchFile>,
        opened: Opened,
        path: PathBuf,
        beside: Beside,
        /// Index in `launch` of the lane that the command line requests, if any. In this case, `launch` has only the
        /// lanes that the request needs.
        lane: Option<usize>,
    },
    Manifest {
        manifest: Manifest,
        opened: Opened,
        beside: Beside,
    },
}

pub(crate) fn prepare(args: &LaunchArgs, matches: &ArgMatches) -> Result<Prepared> {
    #[cfg(feature = "campaign")]
    if args.experiment.is_some() {
        bail!(
            "--experiment: not available for `run`; use `campaign FILE --replay N`, `trace`, `stats`, `debug` or --beside"
        );
    }
    if let Some(name) = &args.case {
        only_of_programs(matches, "a case")?;
        return from_case(args, name);
    }
    match args.file.extension().and_then(|extension| extension.to_str()) {
        Some("toml") => from_launch_file(args, matches),
        Some("json") => match Manifest::parse(&files::read(&args.file)?) {
            Some(manifest) => from_manifest(args, matches, manifest),
            None => from_launch_file(args, matches),
        },
        _ => from_arguments(args, matches),
    }
}

/// Options that describe a launch. Each entry consists of the name of the field in [`LaunchArgs`] and the name of the
/// option.
const LAUNCH_OPTIONS: [(&str, &str); 16] = [
    ("grid", "grid"),
    ("block", "block"),
    ("shared", "shared"),
    ("buffer", "buf"),
    ("argument", "arg"),
    ("pointer_bytes", "pointer-bytes"),
    ("output_type", "output-type"),
    ("lanes", "lanes"),
    ("input", "input"),
    ("constant", "const"),
    ("texture", "texture"),
    ("segment", "segment"),
    ("sampler", "sampler"),
    ("loop_constant", "loop"),
    ("start", "start"),
    ("domain", "domain"),
];

/// Returns an error if the command line has an option that describes a launch. The input `what` itself describes the
/// launch, so such options are not allowed.
fn only_of_programs(matches: &ArgMatches, what: &str) -> Result<()> {
    let given = |(id, _): &&(&str, &str)| matches.value_source(id) == Some(ValueSource::CommandLine);
    match LAUNCH_OPTIONS.iter().find(given) {
        Some((_, option)) => bail!("--{option}: allowed only for a program; {what} contains this setting"),
        None => Ok(()),
    }
}

/// Returns an error if an option on the command line sets a value that the campaign states.
#[cfg(feature = "campaign")]
fn stated_by_campaign(matches: &ArgMatches) -> Result<()> {
    const OPTIONS: [(&str, &str); 10] = [
        ("kernel", "kernel"),
        ("isa", "isa"),
        ("chip", "chip"),
        ("stage", "stage"),
        ("endian", "endian"),
        ("format", "format"),
        ("mode", "mode"),
        ("group_width", "group-width"),
        ("watchdog", "watchdog"),
        ("no_race_check", "no-race-check"),
    ];
    let given = |id: &str| {
        matches.try_contains_id(id).is_ok() && matches.value_source(id) == Some(ValueSource::CommandLine)
    };
    match OPTIONS.iter().find(|(id, _)| given(id)) {
        Some((_, option)) => {
            bail!(
                "--{option}: not allowed with --experiment, because the campaign file contains this setting"
            )
        }
        None => Ok(()),
    }
}

/// Returns the folder that must contain all files that a launch file or manifest names. Returns `None` if the files may
/// be anywhere.
fn root(allow_outside: bool, folder: PathBuf) -> Option<PathBuf> {
    (!allow_outside).then_some(folder)
}

fn from_case(args: &LaunchArgs, name: &str) -> Result<Prepared> {
    let file = crate::shown::path(&args.file);
    args.known.no_case()?;
    let folder: Arc<dyn Folder> = Arc::new(NoFolder);
    let cases = reconverge_cases::read(&file, &files::read(&args.file)?, &folder, args.known.target.isa)?;
    let case = reconverge_cases::find(&cases, name).with_context(|| file.clone())?;
    let mut case = case.open().with_context(|| file.clone())?;
    let count = case.launches.len();
    if count == 0 {
        bail!("{file}: {name} has a program but not a launch; `dis --case` shows the program");
    }
    if args.set >= count {
        bail!(
            "--set {}: {name} has {}, numbered from 0",
            args.set,
            counted(count as u64, "set of constants")
        );
    }
    let launch = case.launches.swap_remove(args.set);
    let launch = launch_of(args, &case.opened, launch, &[])?;
    prepared(args, launch, case.opened, args.file.clone(), Beside::here())
}

/// Reduces the launch to the requested pixel or vertex.
fn prepared(
    args: &LaunchArgs,
    mut launch: Box<LaunchFile>,
    opened: Opened,
    path: PathBuf,
    beside: Beside,
) -> Result<Prepared> {
    let mut lane = None;
    if let Some(asked) = args.pixel.or(args.vertex) {
        let title = || crate::shown::path(&args.file);
        let Piece { lane: found, lanes, of, fragments } =
            launch.choose(asked, &beside).with_context(title)?;
        let several = match fragments {
            1 => String::new(),
            count => format!(", of {count} fragments that cover it"),
        };
        let last = lanes.end - 1;
        let run =
            if last > lanes.start { format!("; lanes {} to {last} run", lanes.start) } else { String::new() };
        note(&format!("{asked} is lane {found} of {of}{several}{run}"));
        lane = Some(found - lanes.start);
    }
    Ok(Prepared::Launch { launch, opened, path, beside, lane })
}

fn from_manifest(
    args: &LaunchArgs,
    matches: &ArgMatches,
    manifest: Result<Manifest, String>,
) -> Result<Prepared> {
    only_of_programs(matches, "a run manifest")?;
    if let Some(asked) = args.pixel.or(args.vertex) {
        bail!(
            "{}: {asked}: a run manifest has threads, not pixels or vertices",
            crate::shown::path(&args.file)
        );
    }
    let (manifest, opened, _, beside) = read_manifest(&args.file, args.allow_outside, manifest)?;
    Ok(Prepared::Manifest { manifest, opened, beside })
}

/// Returns a run manifest and the file of programs that the manifest names.
fn read_manifest(
    file: &Path,
    allow_outside: bool,
    manifest: Result<Manifest, String>,
) -> Result<(Manifest, Opened, PathBuf, Beside)> {
    let name = crate::shown::path(&file);
    let manifest = manifest.map_err(|why| anyhow!("{}", placed(&name, &why)))?;
    let above = folder_of(file).join("..");
    let beside = Beside::file(file, root(allow_outside, above));
    let path = beside.path(&format!("../{}", manifest.binary)).or_else(|_| beside.path(&manifest.binary));
    let path = path.map_err(|why| anyhow!("{name}: {}: {why}", manifest.binary))?;
    let isa = manifest.isa.parse::<Isa>().with_context(|| name.clone())?;
    let target = TargetArgs { isa: Some(isa), chip: Some(manifest.arch.clone()), ..TargetArgs::default() };
    let target = InputArgs { target, ..InputArgs::default() };
    Ok((manifest, open_program(&path, &target)?, path, beside))
}

fn from_launch_file(args: &LaunchArgs, matches: &ArgMatches) -> Result<Prepared> {
    only_of_programs(matches, "a launch file")?;
    let (launch, opened, path, beside) = read_launch_file(&args.file, args.allow_outside, &args.known)?;
    let width = ("group-width", args.group_width.map(|width| width.to_string()));
    let launch = launch_of(args, &opened, launch, &[width])?;
    prepared(args, launch, opened, path, beside)
}

/// Whether a text is a campaign file.
#[cfg(feature = "campaign")]
fn is_campaign(text: &str) -> bool {
    reconverge_campaign::file::CampaignFile::parse(text).is_ok()
}

#[cfg(not(feature = "campaign"))]
fn is_campaign(_text: &str) -> bool {
    false
}

/// Returns a launch file and the program that the launch file names.
fn read_launch_file(
    file: &Path,
    allow_outside: bool,
    known: &InputArgs,
) -> Result<(LaunchFile, Opened, PathBuf, Beside)> {
    let bytes = files::read(file)?;
    let name = crate::shown::path(&file);
    let text = std::str::from_utf8(&bytes).with_context(|| name.clone())?;
    let launch = LaunchFile::parse(text).map_err(|error| match is_campaign(text) {
        true => anyhow!(
            "{name}: expected a launch file, found a campaign file; run it with `reconverge campaign`, or select an \
             experiment with --experiment N of trace, stats, debug or run --beside"
        ),
        false => anyhow!("{}", error.at(&name)),
    })?;
    let beside = Beside::file(file, root(allow_outside, folder_of(file)));
    let file = launch.common.program.as_deref().ok_or_else(|| {
        anyhow!("{name}: missing `program` in the launch file; add a line such as program = \"shader.s\"")
    })?;
    let path = beside.path(file).map_err(|why| anyhow!("{name}: program {file}: {why}"))?;
    let stage = launch.stage().with_context(|| name.clone())?;
    let target = TargetArgs {
        isa: known.target.isa.or(Some(launch.isa)),
        chip: known.target.chip.clone().or(launch.common.chip.clone()),
        stage: known.target.stage.or(stage),
        endian: known.target.endian,
    };
    let opened = open_program(&path, &InputArgs { target, read: known.read.clone() })?;
    Ok((launch, opened, path, beside))
}

/// A launch file and the program of the launch file. The launch can be run several times.
pub(crate) struct LaunchOfFile {
    launch: LaunchFile,
    opened: Opened,
    program: Program,
    beside: Beside,
}

impl LaunchOfFile {
    pub(crate) fn read(file: &Path) -> Result<LaunchOfFile> {
        let (launch, opened, path, beside) = read_launch_file(file, false, &InputArgs::default())?;
        let program = choose_program(&opened.image, launch.common.kernel.as_deref());
        let program = program.with_context(|| crate::shown::path(&path))?.clone();
        Ok(LaunchOfFile { launch, opened, program, beside })
    }

    pub(crate) fn isa(&self) -> Isa {
        self.launch.isa
    }

    /// Prepares the launch for a run.
    pub(crate) fn prepare(&self) -> Result<Session> {
        Ok(self.launch.prepare(&self.opened.image, &self.program, &self.beside)?)
    }

    /// Returns a copy of `options`. If the launch states a value for an option, the copy has this value.
    pub(crate) fn options(&self, options: &Options) -> Result<Options> {
        Ok(self.launch.options(options)?)
    }

    /// Whether the file states expected results.
    pub(crate) fn expects_something(&self) -> bool {
        self.launch.expects_something()
    }

    /// Compares the results of a run with the expected results. Returns the results of the run together with the
    /// differences.
    pub(crate) fn result(&self, outcome: &dyn Outcome) -> Result<RunResult> {
        Ok(self.launch.result(outcome, &self.beside)?)
    }
}

/// The programs of a file, for commands that inspect programs but do not run these programs.
pub(crate) struct Programs {
    /// The opened file of programs.
    pub(crate) opened: Opened,
    /// Path of the file of programs.
    pub(crate) path: PathBuf,
    /// The launch that a launch file describes, and access to the files that the launch names.
    pub(crate) launch: Option<(LaunchFile, Beside)>,
}

impl Programs {
    /// Returns the name of the program that the launch file selects.
    pub(crate) fn kernel(&self) -> Option<&str> {
        self.launch.as_ref()?.0.common.kernel.as_deref()
    }
}

/// Returns the programs of a program file. For a launch file, a run manifest or a case, returns the programs that this
/// file or case names.
pub(crate) fn open_programs(
    file: &Path,
    case: Option<&str>,
    allow_outside: bool,
    known: &InputArgs,
) -> Result<Programs> {
    let of_launch = file.extension().is_some_and(|extension| extension == "toml" || extension == "json");
    if case.is_some() || !of_launch {
        let opened = files::open_program_or_case(file, case, known)?;
        return Ok(Programs { opened, path: file.to_path_buf(), launch: None });
    }
    match Manifest::parse(&files::read(file)?) {
        Some(manifest) => {
            let (_, opened, path, _) = read_manifest(file, allow_outside, manifest)?;
            Ok(Programs { opened, path, launch: None })
        }
        None => {
            let (launch, opened, path, beside) = read_launch_file(file, allow_outside, known)?;
            Ok(Programs { opened, path, launch: Some((launch, beside)) })
        }
    }
}

fn from_arguments(args: &LaunchArgs, matches: &ArgMatches) -> Result<Prepared> {
    let opened = open_program(&args.file, &args.known)?;
    let mut launch = LaunchFile::empty(opened.target.isa);
    launch.common.lanes = args.lanes;
    launch.common.stage = opened.target.stage.map(|stage| stage.name().to_owned());
    let one = |name, value: &Option<_>| (name, value.as_ref().map(ToString::to_string));
    let mut options = vec![
        one("grid", &args.grid),
        one("block", &args.block),
        one("domain", &args.domain),
        one("output-type", &args.output_type),
        ("shared", args.shared.map(|bytes| bytes.to_string())),
        ("pointer-bytes", args.pointer_bytes.map(|bytes| bytes.to_string())),
        ("group-width", args.group_width.map(|width| width.to_string())),
        ("start", args.start.map(|address| address.to_string())),
        ("uncached", args.uncached.then(String::new)),
    ];
    // Options that may be repeated, in the order of the command line.
    let mut repeated = Vec::new();
    for (id, name, values) in [
        ("buffer", "buf", &args.buffer),
        ("argument", "arg", &args.argument),
        ("input", "input", &args.input),
        ("constant", "const", &args.constant),
        ("texture", "texture", &args.texture),
        ("segment", "segment", &args.segment),
        ("sampler", "sampler", &args.sampler),
        ("loop_constant", "loop", &args.loop_constant),
    ] {
        let places = matches.indices_of(id).into_iter().flatten();
        repeated.extend(places.zip(values).map(|(place, value)| (place, (name, Some(value.clone())))));
    }
    repeated.sort_by_key(|(place, _)| *place);
    options.extend(repeated.into_iter().map(|(_, option)| option));
    let launch = launch_of(args, &opened, launch, &options)?;
    prepared(args, launch, opened, args.file.clone(), Beside::here())
}

/// Returns a launch after applying the options of the command line.
fn launch_of(
    args: &LaunchArgs,
    opened: &Opened,
    mut launch: LaunchFile,
    options: &[(&str, Option<String>)],
) -> Result<Box<LaunchFile>> {
    for (name, value) in options {
        if let Some(value) = value {
            launch.set(name, value)?;
        }
    }
    let common = &mut launch.common;
    common.chip = opened.target.chip_name().map(str::to_owned).or(common.chip.take());
    common.mode = args.mode.map(|mode| mode.name().to_owned()).or(common.mode.take());
    common.watchdog = args.watchdog.or(common.watchdog);
    Ok(Box::new(launch))
}
