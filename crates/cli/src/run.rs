//! `reconverge run`

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use clap::ArgMatches;
use reconverge_simt::{Mode, Options};
use reconverge_workbench::Opened;
use reconverge_workbench::array::Array;
use reconverge_workbench::launch::{LaunchFile, choose_program};
use reconverge_workbench::manifest::Manifest;
use reconverge_workbench::request::Error;
use reconverge_workbench::result::RunResult;

use crate::files::{Beside, open_program};
use crate::messages::note;
use crate::{Answer, EngineArgs, TargetArgs, files};

/// Run a program, a launch file or a run manifest
///
/// VALUES is a file (.npy, .json, .bin:TYPE) or written in place: a list 1,2.5,-3, a range 0..64 or 0..1..0.125, each
/// with :TYPE behind it if need be, or zeros f32[64]. A .toml or .json file is a launch file or a run manifest,
/// which say everything themselves.
#[derive(clap::Args)]
pub(crate) struct Run {
    /// A program (.s, cubin, hex, bin, ELF), a launch file (.toml, .json) or a run manifest (.json)
    file: PathBuf,
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
    #[arg(long)]
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
    /// Write an output to a file (.npy, .json, .bin): color0=out.npy
    #[arg(long = "out", value_name = "NAME=FILE")]
    output: Vec<String>,
    /// One JSON object on standard output
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    target: TargetArgs,
}

pub(crate) fn run(args: &Run, matches: &ArgMatches) -> Result<Answer> {
    let place = || args.file.display().to_string();
    let options = args.engine.options();
    let result = match prepare(args, matches)? {
        Prepared::Launch { launch, opened, path, beside } => {
            let kernel = args.kernel.as_deref().or(launch.common.kernel.as_deref());
            let program = choose_program(&opened.image, kernel);
            let program = program.with_context(|| path.display().to_string())?;
            launch.run(&opened.image, program, &options, &beside)
        }
        Prepared::Manifest { manifest, opened, beside } => {
            let mode = args.mode.unwrap_or(options.mode);
            let watchdog = args.watchdog.unwrap_or(options.watchdog);
            manifest.run(&opened.image, &Options { mode, watchdog, ..options }, &beside)
        }
    };
    let result = match result {
        Ok(result) => result,
        Err(error @ (Error::Trap(_) | Error::Differ(_))) => return Ok(no_result(args, &error)),
        Err(error) => return Err(anyhow!(error).context(place())),
    };
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
    Ok(if result.mismatches.is_empty() { Answer::Yes } else { Answer::No })
}

/// The program trapped, or the engines differ.
fn no_result(args: &Run, error: &Error) -> Answer {
    if args.json {
        let kind = if matches!(error, Error::Differ(_)) { "differ" } else { "trap" };
        say!("{}", serde_json::json!({ kind: error.to_string() }));
    }
    tell!("{}: {error}", args.file.display());
    Answer::No
}

/// Everything that a run starts from.
enum Prepared {
    Launch { launch: Box<LaunchFile>, opened: Opened, path: PathBuf, beside: Beside },
    Manifest { manifest: Manifest, opened: Opened, beside: Beside },
}

fn prepare(args: &Run, matches: &ArgMatches) -> Result<Prepared> {
    match args.file.extension().and_then(|extension| extension.to_str()) {
        Some("toml") => from_launch_file(args),
        Some("json") => match Manifest::parse(&files::read(&args.file)?) {
            Some(manifest) => from_manifest(args, manifest),
            None => from_launch_file(args),
        },
        _ => from_arguments(args, matches),
    }
}

fn from_manifest(args: &Run, manifest: Result<Manifest, String>) -> Result<Prepared> {
    let name = args.file.display().to_string();
    let manifest = manifest.map_err(|why| anyhow!("{name}: {why}"))?;
    let beside = Beside::file(&args.file);
    let mut path = beside.path(&format!("../{}", manifest.binary));
    if !path.exists() {
        path = beside.path(&manifest.binary);
    }
    let isa = manifest.isa.parse().with_context(|| name.clone())?;
    let target = TargetArgs { isa: Some(isa), chip: Some(manifest.arch.clone()), stage: None, endian: None };
    Ok(Prepared::Manifest { opened: open_program(&path, &target)?, manifest, beside })
}

fn from_launch_file(args: &Run) -> Result<Prepared> {
    let bytes = files::read(&args.file)?;
    let name = args.file.display().to_string();
    let text = std::str::from_utf8(&bytes).with_context(|| name.clone())?;
    let launch = LaunchFile::parse(text).map_err(|error| anyhow!("{name}: {error}"))?;
    let beside = Beside::file(&args.file);
    let file = launch.common.program.as_deref().ok_or_else(|| {
        anyhow!("{name}: the launch file names no program: add a line such as program = \"shader.s\"")
    })?;
    let path = beside.path(file);
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
    let bytes = match path.extension().and_then(|extension| extension.to_str()) {
        Some("npy") => array.to_npy(),
        Some("json") => array.to_json().to_string().into_bytes(),
        Some("bin") => array.bytes.clone(),
        _ => bail!("{}: the name must end in .npy, .json or .bin", path.display()),
    };
    files::write(path, &bytes)
}

/// Rows of an output that are printed; --out or --json gives all of it.
const ROWS: usize = 64;

fn print(args: &Run, result: &RunResult) -> Result<()> {
    let statistics = result.statistics;
    if args.json {
        let outputs: serde_json::Map<String, serde_json::Value> =
            result.outputs.iter().map(|(name, array)| (name.clone(), array.to_json())).collect();
        let fidelity: serde_json::Map<String, serde_json::Value> = result
            .report
            .operations
            .iter()
            .map(|(name, (fidelity, times))| {
                ((*name).to_owned(), serde_json::json!({ "fidelity": fidelity.name(), "issued": times }))
            })
            .collect();
        let object = serde_json::json!({
            "outputs": outputs,
            "warp_instructions": statistics.instructions,
            "lane_instructions": statistics.lane_instructions,
            "divergent_branches": statistics.divergent_branches,
            "fidelity": fidelity,
            "findings": result.findings,
            "mismatches": result.mismatches,
        });
        say!("{object}");
        return Ok(());
    }
    for (name, array) in &result.outputs {
        say!("{name}: {} {:?}", array.dtype, array.shape);
        let rows = array.to_json();
        let rows = rows.as_array().map(Vec::as_slice).unwrap_or_default();
        for (index, row) in rows.iter().take(ROWS).enumerate() {
            say!("  {index:4}  {}", row_text(row));
        }
        if rows.len() > ROWS {
            say!("  … {} more rows", rows.len() - ROWS);
        }
    }
    say!(
        "{} group instructions, {} lane instructions, {} divergent branches",
        statistics.instructions,
        statistics.lane_instructions,
        statistics.divergent_branches
    );
    for fidelity in reconverge_simt::Fidelity::ALL {
        let of = result.report.operations.iter().filter(|(_, (known, _))| *known == fidelity);
        let names: Vec<String> = of.map(|(name, (_, times))| format!("{name} x{times}")).collect();
        if !names.is_empty() {
            say!("{fidelity}: {}", names.join(", "));
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

fn row_text(row: &serde_json::Value) -> String {
    match row {
        serde_json::Value::Array(items) => items.iter().map(row_text).collect::<Vec<_>>().join(" "),
        serde_json::Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
