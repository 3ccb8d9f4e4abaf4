//! `reconverge run`

use std::io::{BufWriter, Write};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use anyhow::{Context, Result, anyhow, bail};
use clap::ArgMatches;
use clap::parser::ValueSource;
use comfy_table::{CellAlignment, ColumnConstraint, Table, Width};
use reconverge_cases::{Folder, NoFolder};
use reconverge_isa::Isa;
use reconverge_simt::{Mode, Options};
use reconverge_workbench::Opened;
use reconverge_workbench::array::Array;
use reconverge_workbench::launch::{LaunchFile, choose_program};
use reconverge_workbench::manifest::Manifest;
use reconverge_workbench::request::{Error, MOST_LANES};
use reconverge_workbench::result::RunResult;
use reconverge_workbench::trapped::Trapped;
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Value, json};

use crate::beside::{Beside, folder_of};
use crate::files::open_program;
use crate::limit::{Limit, Seconds};
use crate::messages::{self, counted, note};
use crate::{Answer, EngineArgs, TargetArgs, files};

/// Run a program, a launch file or a run manifest
///
/// VALUES is a file (.npy, .npz:NAME, .json, .bin:TYPE) or written in place: a list 1,2.5,-3, a range 0..64 or
/// 0..1..0.125, or zeros f32[64]. Numbers are floats where floats are expected, unless :u32, :i32, :f32 or :bits is behind
/// them. A .toml or .json file is a launch file or a run manifest, which say everything themselves.
#[derive(clap::Args)]
pub(crate) struct Run {
    /// A program (.s, cubin, hex, bin, ELF), a launch file (.toml, .json), a run manifest (.json) or a file of cases
    file: PathBuf,
    /// One case of a file of cases, by name
    #[arg(long, value_name = "NAME")]
    case: Option<String>,
    /// Which of the case's sets of constants, from 0
    #[arg(long, value_name = "N", default_value_t = 0, requires = "case", hide_default_value = true)]
    set: usize,
    /// The program of this name, where the file has several
    #[arg(long)]
    kernel: Option<String>,
    /// Blocks, 4 or 4x2 (tesla kernels)
    #[arg(long, value_name = "XxY")]
    grid: Option<String>,
    /// Threads of a block, 64 or 8x8 or 8x8x2 (tesla kernels)
    #[arg(long, value_name = "XxYxZ")]
    block: Option<String>,
    /// Bytes of dynamic shared memory (tesla kernels)
    #[arg(long, value_name = "BYTES")]
    shared: Option<u32>,
    /// A buffer whose address is the next parameter: a=in.npy or out=f32[256] (tesla kernels); with --domain, a typed
    /// surface: in0=VALUES:FLOAT32_1:8x8 or out0=FLOAT32_1:8x8 (r500); a vertex resource with the bytes of an element:
    /// 160=VALUES:16 (r700)
    #[arg(long = "buf", value_name = "NAME=VALUES")]
    buffer: Vec<String>,
    /// The next parameter: n=256, x=0.5, n=256:u64 (tesla kernels)
    #[arg(long = "arg", value_name = "NAME=VALUE", allow_hyphen_values = true)]
    argument: Vec<String>,
    /// Bytes of a pointer among the parameters, where the program's file does not state them: 4 or 8 (tesla kernels)
    #[arg(long, value_name = "N")]
    pointer_bytes: Option<u32>,
    /// Type of what a pixel, vertex or geometry program exports: f32, u32 or i32 (r700)
    #[arg(long, value_name = "TYPE")]
    output_type: Option<String>,
    /// How many lanes (all but kernels)
    #[arg(long, value_name = "N", value_parser = lanes)]
    lanes: Option<usize>,
    /// Values at the start: temp0=VALUES (r500), R0=VALUES (r700), v4=VALUES for v[0x10] and following (tesla)
    #[arg(long, value_name = "NAME=VALUES")]
    input: Vec<String>,
    /// Constants: 3=1,2,3,4 (r500), 0=VALUES for constant buffer 0 (r700), c1[0x10]=VALUES (tesla)
    #[arg(long = "const", value_name = "PLACE=VALUES")]
    constant: Vec<String>,
    /// A texture: 0=VALUES:8x8
    #[arg(long, value_name = "UNIT=VALUES:SIZE")]
    texture: Vec<String>,
    /// Run over a domain of index pairs, WIDTHxHEIGHT, in the CTM model (r500)
    #[arg(long, value_name = "WxH")]
    domain: Option<String>,
    /// The program's outputs are uncached: each goes to out0 at once (r500 with --domain)
    #[arg(long)]
    uncached: bool,
    /// strict: undefined behaviour traps; lenient: it does what is recommended
    #[arg(long, value_name = "MODE", value_parser = crate::mode())]
    mode: Option<Mode>,
    /// Lanes that share a program counter (r500)
    #[arg(long, value_name = "N")]
    group_width: Option<usize>,
    /// Instructions that a group may issue
    #[arg(long, value_name = "N")]
    watchdog: Option<u64>,
    #[command(flatten)]
    engine: EngineArgs,
    /// Threads; as many as there are processors when absent
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
    /// Stop after so many seconds, with exit status 1
    #[arg(long, value_name = "SECONDS")]
    timeout: Option<Seconds>,
    /// Read what a launch file or manifest names wherever it is, not only in its folder (of a manifest the folder above)
    #[arg(long)]
    allow_outside: bool,
    /// Rows of each output that are printed: a number, or all
    #[arg(long, value_name = "N", default_value = "64")]
    rows: Rows,
    /// Write an output to a file (.npy, .json, .bin): color0=out.npy
    #[arg(long = "out", value_name = "NAME=FILE")]
    output: Vec<String>,
    /// One JSON object on standard output
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    target: TargetArgs,
}

/// How much of an output is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rows {
    All,
    First(usize),
}

impl FromStr for Rows {
    type Err = String;

    fn from_str(text: &str) -> Result<Rows, String> {
        match text {
            "all" => Ok(Rows::All),
            number => number.parse().map(Rows::First).map_err(|_| "a number or `all` fits here".to_owned()),
        }
    }
}

fn lanes(text: &str) -> Result<usize, String> {
    let lanes = text.parse().ok().filter(|lanes| (1..=MOST_LANES).contains(lanes));
    lanes.ok_or_else(|| format!("1 to {MOST_LANES} fits here"))
}

/// How a run ended.
enum Ended {
    /// To its end, or with the trap that it must end with; and why it is not as it must be.
    Judged(Option<RunResult>, Vec<String>),
    Trapped(Box<Trapped>),
    Differ(String),
}

pub(crate) fn run(args: &Run, matches: &ArgMatches) -> Result<Answer> {
    let limit = Limit::start(args.timeout, args.json, &args.file.display().to_string());
    let progress = messages::spinner("running");
    let ended = execute(args, matches);
    progress.finish_and_clear();
    limit.end();
    let file = args.file.display();
    let (result, wrong) = match ended? {
        Ended::Judged(result, wrong) => (result, wrong),
        Ended::Trapped(trapped) => {
            if args.json {
                say!("{}", json!({ "trap": trapped.message, "at": trapped.to_json() }));
            }
            tell!("{file}: {trapped}");
            let program = args.file.display().to_string();
            trapped.details(&program).iter().for_each(|line| tell!("  {line}"));
            return Ok(Answer::No);
        }
        Ended::Differ(why) => {
            if args.json {
                say!("{}", json!({ "differ": why }));
            }
            tell!("{file}: {why}");
            return Ok(Answer::No);
        }
    };
    let answer = if wrong.is_empty() { Answer::Yes } else { Answer::No };
    let mut result = result.unwrap_or_default();
    result.mismatches = wrong;
    for (name, file) in
        args.output.iter().map(|text| assignment(text, "--out")).collect::<Result<Vec<_>>>()?
    {
        let found = result.outputs.iter().find(|(known, _)| known == name);
        let names: Vec<&str> = result.outputs.iter().map(|(name, _)| name.as_str()).collect();
        let (_, array) =
            found.ok_or_else(|| anyhow!("--out {name}: no such output; there is {}", names.join(", ")))?;
        save(Path::new(file), array)?;
    }
    print(args, &result)?;
    Ok(answer)
}

/// Prepares and runs what the arguments say.
fn execute(args: &Run, matches: &ArgMatches) -> Result<Ended> {
    let options =
        Options { jobs: args.jobs.and_then(|jobs| NonZeroUsize::new(jobs.into())), ..args.engine.options() };
    let (ended, beside) = match prepare(args, matches)? {
        Prepared::Launch { launch, opened, path, beside } => {
            let kernel = args.kernel.as_deref().or(launch.common.kernel.as_deref());
            let program = choose_program(&opened.image, kernel);
            let program = program.with_context(|| path.display().to_string())?;
            let ran = launch.run(&opened.image, program, &options, &beside);
            let ended = match launch.judged(ran) {
                Ok((result, wrong)) => Ok(Ended::Judged(result, wrong)),
                Err(Error::Trap(mut trapped)) => {
                    launch.look(&mut trapped, &opened, program, &options, &beside);
                    Ok(Ended::Trapped(trapped))
                }
                Err(error) => Err(error),
            };
            (ended, beside)
        }
        Prepared::Manifest { manifest, opened, beside } => {
            let mode = args.mode.unwrap_or(options.mode);
            let watchdog = args.watchdog.unwrap_or(options.watchdog);
            let ran = manifest.run(&opened.image, &Options { mode, watchdog, ..options }, &beside);
            let ended = match ran {
                Ok(result) => {
                    let wrong = result.mismatches.clone();
                    Ok(Ended::Judged(Some(result), wrong))
                }
                Err(Error::Trap(trapped)) => Ok(Ended::Trapped(trapped)),
                Err(error) => Err(error),
            };
            (ended, beside)
        }
    };
    let ended = match ended {
        Err(Error::Differ(why)) => Ended::Differ(why),
        ended => ended.with_context(|| args.file.display().to_string())?,
    };
    if let Some(types) = beside.types() {
        note(&types);
    }
    Ok(ended)
}

/// Everything that a run starts from.
enum Prepared {
    Launch { launch: Box<LaunchFile>, opened: Opened, path: PathBuf, beside: Beside },
    Manifest { manifest: Manifest, opened: Opened, beside: Beside },
}

fn prepare(args: &Run, matches: &ArgMatches) -> Result<Prepared> {
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

/// Options that describe a launch, by the names of their fields.
const LAUNCH_OPTIONS: [(&str, &str); 12] = [
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
    ("domain", "domain"),
];

/// Refuses options that what is run says itself.
fn only_of_programs(matches: &ArgMatches, what: &str) -> Result<()> {
    let given = |(id, _): &&(&str, &str)| matches.value_source(id) == Some(ValueSource::CommandLine);
    match LAUNCH_OPTIONS.iter().find(given) {
        Some((_, option)) => bail!("--{option}: {what} says this itself; the option is for programs"),
        None => Ok(()),
    }
}

/// The folder that what a file names must be in.
fn root(args: &Run, folder: PathBuf) -> Option<PathBuf> {
    (!args.allow_outside).then_some(folder)
}

fn from_case(args: &Run, name: &str) -> Result<Prepared> {
    let file = args.file.display().to_string();
    let folder: Arc<dyn Folder> = Arc::new(NoFolder);
    let cases = reconverge_cases::read(&file, &files::read(&args.file)?, &folder, args.target.isa)?;
    let case = reconverge_cases::find(&cases, name).with_context(|| file.clone())?;
    let mut case = case.open().with_context(|| file.clone())?;
    let count = case.launches.len();
    if count == 0 {
        bail!("{file}: {name} has a program, but no launch: `dis --case` shows it");
    }
    if args.set >= count {
        bail!("--set {}: {name} has {}, from 0 on", args.set, counted(count as u64, "set of constants"));
    }
    let launch = case.launches.swap_remove(args.set);
    let launch = launch_of(args, &case.opened, launch, &[])?;
    Ok(Prepared::Launch { launch, opened: case.opened, path: args.file.clone(), beside: Beside::here() })
}

fn from_manifest(args: &Run, matches: &ArgMatches, manifest: Result<Manifest, String>) -> Result<Prepared> {
    only_of_programs(matches, "a run manifest")?;
    let name = args.file.display().to_string();
    let manifest = manifest.map_err(|why| anyhow!("{name}: {why}"))?;
    let above = folder_of(&args.file).join("..");
    let beside = Beside::file(&args.file, root(args, above));
    let path = beside.path(&format!("../{}", manifest.binary)).or_else(|_| beside.path(&manifest.binary));
    let path = path.map_err(|why| anyhow!("{name}: {}: {why}", manifest.binary))?;
    let isa = manifest.isa.parse::<Isa>().with_context(|| name.clone())?;
    let target = TargetArgs { isa: Some(isa), chip: Some(manifest.arch.clone()), stage: None, endian: None };
    Ok(Prepared::Manifest { opened: open_program(&path, &target)?, manifest, beside })
}

fn from_launch_file(args: &Run, matches: &ArgMatches) -> Result<Prepared> {
    only_of_programs(matches, "a launch file")?;
    let bytes = files::read(&args.file)?;
    let name = args.file.display().to_string();
    let text = std::str::from_utf8(&bytes).with_context(|| name.clone())?;
    let launch = LaunchFile::parse(text).map_err(|error| anyhow!("{name}: {error}"))?;
    let beside = Beside::file(&args.file, root(args, folder_of(&args.file)));
    let file = launch.common.program.as_deref().ok_or_else(|| {
        anyhow!("{name}: the launch file names no program: add a line such as program = \"shader.s\"")
    })?;
    let path = beside.path(file).map_err(|why| anyhow!("{name}: program {file}: {why}"))?;
    let stage = launch.stage().with_context(|| name.clone())?;
    let target = TargetArgs {
        isa: args.target.isa.or(Some(launch.isa)),
        chip: args.target.chip.clone().or(launch.common.chip.clone()),
        stage: args.target.stage.or(stage),
        endian: args.target.endian,
    };
    let opened = open_program(&path, &target)?;
    launch_of(args, &opened, launch, &[("group-width", args.group_width.map(|width| width.to_string()))])
        .map(|launch| Prepared::Launch { launch, opened, path, beside })
}

fn from_arguments(args: &Run, matches: &ArgMatches) -> Result<Prepared> {
    let opened = open_program(&args.file, &args.target)?;
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
        ("uncached", args.uncached.then(String::new)),
    ];
    // Those that may be repeated, in the order in which they are given.
    let mut repeated = Vec::new();
    for (id, name, values) in [
        ("buffer", "buf", &args.buffer),
        ("argument", "arg", &args.argument),
        ("input", "input", &args.input),
        ("constant", "const", &args.constant),
        ("texture", "texture", &args.texture),
    ] {
        let places = matches.indices_of(id).into_iter().flatten();
        repeated.extend(places.zip(values).map(|(place, value)| (place, (name, Some(value.clone())))));
    }
    repeated.sort_by_key(|(place, _)| *place);
    options.extend(repeated.into_iter().map(|(_, option)| option));
    let launch = launch_of(args, &opened, launch, &options)?;
    Ok(Prepared::Launch { launch, opened, path: args.file.clone(), beside: Beside::here() })
}

/// A launch with what the command line says on top of it.
fn launch_of(
    args: &Run,
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
    common.chip = opened.target.chip.clone().or(common.chip.take());
    common.mode = args.mode.map(|mode| mode.name().to_owned()).or(common.mode.take());
    common.watchdog = args.watchdog.or(common.watchdog);
    Ok(Box::new(launch))
}

fn assignment<'a>(text: &'a str, option: &str) -> Result<(&'a str, &'a str)> {
    text.split_once('=').ok_or_else(|| anyhow!("{option} {text}: NAME=VALUE is the form"))
}

fn save(path: &Path, array: &Array) -> Result<()> {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("npy") => files::write(path, &array.to_npy()),
        Some("bin") => files::write(path, &array.bytes),
        Some("json") => {
            let place = || path.display().to_string();
            let mut file = BufWriter::new(std::fs::File::create(path).with_context(place)?);
            serde_json::to_writer(&mut file, array).with_context(place)?;
            file.flush().with_context(place)
        }
        _ => bail!("{}: the name must end in .npy, .json or .bin", path.display()),
    }
}

/// Outputs by name, as one object that is written as it is made.
struct Outputs<'a>(&'a [(String, Array)]);

impl Serialize for Outputs<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        self.0.iter().try_for_each(|(name, array)| map.serialize_entry(name, array))?;
        map.end()
    }
}

/// What a run leaves, as one object.
#[derive(serde::Serialize)]
struct Answered<'a> {
    outputs: Outputs<'a>,
    group_instructions: u64,
    /// The same: the name that `bench` has for it.
    warp_instructions: u64,
    lane_instructions: u64,
    divergent_branches: u64,
    fidelity: Value,
    findings: &'a [String],
    mismatches: &'a [String],
}

fn print(args: &Run, result: &RunResult) -> Result<()> {
    let statistics = result.statistics;
    if args.json {
        let fidelity = result.report.operations.iter().map(|(name, (fidelity, times))| {
            ((*name).to_owned(), json!({ "fidelity": fidelity.name(), "issued": times }))
        });
        let object = Answered {
            outputs: Outputs(&result.outputs),
            group_instructions: statistics.instructions,
            warp_instructions: statistics.instructions,
            lane_instructions: statistics.lane_instructions,
            divergent_branches: statistics.divergent_branches,
            fidelity: Value::Object(fidelity.collect()),
            findings: &result.findings,
            mismatches: &result.mismatches,
        };
        messages::answer_json(&object);
    } else {
        for (name, array) in &result.outputs {
            say!("{name}: {} {:?}", array.dtype, array.shape);
            print_rows(array, args.rows);
        }
        say!(
            "{}, {}, {}",
            counted(statistics.instructions, "group instruction"),
            counted(statistics.lane_instructions, "lane instruction"),
            divergent(statistics.divergent_branches)
        );
        for fidelity in reconverge_simt::Fidelity::ALL {
            let of = result.report.operations.iter().filter(|(_, (known, _))| *known == fidelity);
            let names: Vec<String> = of.map(|(name, (_, times))| format!("{name} x{times}")).collect();
            if !names.is_empty() {
                say!("{fidelity}: {}", names.join(", "));
            }
        }
    }
    for finding in &result.findings {
        note(&format!("{}: strict finding: {finding}", args.file.display()));
    }
    for mismatch in &result.mismatches {
        tell!("{}: {mismatch}", args.file.display());
    }
    Ok(())
}

fn divergent(count: u64) -> String {
    if count == 1 { "1 divergent branch".to_owned() } else { format!("{count} divergent branches") }
}

/// Rows that are laid out at a time: columns are as wide as their widest number among them.
const PIECE: usize = 1024;
/// Numbers of a row that are printed unless all rows are.
const COLUMNS: usize = 16;

fn print_rows(array: &Array, rows: Rows) {
    let all = array.rows();
    let (count, columns) = match rows {
        Rows::All => (all, usize::MAX),
        Rows::First(rows) => (rows.min(all), COLUMNS),
    };
    for first in (0..count).step_by(PIECE) {
        let mut table = Table::new();
        table.load_style(comfy_table::presets::NOTHING);
        for row in first..count.min(first + PIECE) {
            let numbers = array.row(row);
            let shown = numbers.clone().take(columns).map(|index| array.text(index));
            let left = numbers.len().saturating_sub(columns);
            let left = (left > 0).then(|| format!("… {left} more"));
            table.add_row(std::iter::once(row.to_string()).chain(shown).chain(left));
        }
        for (number, column) in table.column_iter_mut().enumerate() {
            column.set_cell_alignment(CellAlignment::Right);
            column.set_padding((if number < 2 { 2 } else { 1 }, 0));
            if number == 0 {
                column.set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(6)));
            }
        }
        say!("{}", table.trim_fmt());
    }
    if count < all {
        say!("  … {} (--rows all prints them)", counted((all - count) as u64, "more row"));
    }
}
