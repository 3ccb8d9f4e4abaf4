//! `reconverge run`

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use clap::ArgMatches;
use reconverge_isa::Isa;
use reconverge_workbench::array::Array;
use reconverge_workbench::launch::LaunchFile;
use reconverge_workbench::manifest::Manifest;
use reconverge_workbench::r500::{BufferValues, CtmValues};
use reconverge_workbench::request::{Error, TextureValues};
use reconverge_workbench::result::RunResult;
use reconverge_workbench::values::Values;
use reconverge_workbench::{Opened, r500, r700, tesla};

use crate::files::{Beside, choose, open_program};
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
    /// Bytes of a pointer among the parameters, where the program's file does not tell: 4 or 8 (tesla kernels)
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
    #[arg(long, value_name = "MODE")]
    mode: Option<String>,
    /// Lanes that share a program counter (r500)
    #[arg(long, value_name = "N")]
    group_width: Option<usize>,
    /// Instructions a group may issue
    #[arg(long, value_name = "N")]
    watchdog: Option<u64>,
    #[command(flatten)]
    engine: EngineArgs,
    /// Write an output to a file (.npy, .json, .bin): color0=out.npy
    #[arg(long = "out", value_name = "NAME=FILE")]
    output: Vec<String>,
    /// One JSON object on standard output
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    target: TargetArgs,
}

pub(crate) fn run(args: &Run, matches: &ArgMatches) -> Result<Answer> {
    let place = || args.file.display().to_string();
    let how = args.engine.how();
    let result = match prepare(args, matches)? {
        Prepared::Launch { launch, opened, kernel, path, beside } => {
            let program = choose(&opened, kernel.as_deref(), &path)?;
            launch.run(&opened.image, program, how, &beside)
        }
        Prepared::Manifest { manifest, opened, beside } => {
            manifest.run(&opened.image, args.mode.as_deref(), how, &beside)
        }
    };
    let result = match result {
        Ok(result) => result,
        Err(Error::Trap(trap)) => return trapped(args, &trap),
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

fn trapped(args: &Run, trap: &str) -> Result<Answer> {
    if args.json {
        say!("{}", serde_json::json!({ "trap": trap }));
    }
    eprintln!("{}: {trap}", args.file.display());
    Ok(Answer::No)
}

/// Everything that a run starts from.
enum Prepared {
    Launch { launch: Box<LaunchFile>, opened: Opened, kernel: Option<String>, path: PathBuf, beside: Beside },
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
    let target = TargetArgs { isa: Some(isa), chip: Some(manifest.arch.clone()), stage: None };
    Ok(Prepared::Manifest { opened: open_program(&path, &target)?, manifest, beside })
}

fn from_launch_file(args: &Run) -> Result<Prepared> {
    let bytes = files::read(&args.file)?;
    let name = args.file.display().to_string();
    let text = std::str::from_utf8(&bytes).with_context(|| name.clone())?;
    let mut launch = LaunchFile::parse(text).map_err(|error| anyhow!("{name}: {error}"))?;
    let beside = Beside::file(&args.file);
    let file = launch.program().ok_or_else(|| {
        anyhow!("{name}: the launch file names no program: add a line such as program = \"shader.s\"")
    })?;
    let path = beside.path(file);
    let stage = launch.stage().map(str::parse).transpose().with_context(|| name.clone())?;
    let target = TargetArgs {
        isa: args.target.isa.or(Some(launch.isa())),
        chip: args.target.chip.clone().or(launch.chip().map(str::to_owned)),
        stage: args.target.stage.or(stage),
    };
    let opened = open_program(&path, &target)?;
    if let Some(chip) = &opened.target.chip {
        *launch.chip_mut() = Some(chip.clone());
    }
    if let Some(mode) = &args.mode {
        *launch.mode_mut() = Some(mode.clone());
    }
    if let Some(watchdog) = args.watchdog {
        *launch.watchdog_mut() = Some(watchdog);
    }
    if let (LaunchFile::R500(launch), Some(width)) = (&mut launch, args.group_width) {
        launch.group_width = Some(width);
    }
    let kernel = args.kernel.clone().or(launch.kernel().map(str::to_owned));
    Ok(Prepared::Launch { launch: Box::new(launch), opened, kernel, path, beside })
}

fn from_arguments(args: &Run, matches: &ArgMatches) -> Result<Prepared> {
    let opened = open_program(&args.file, &args.target)?;
    let launch = match opened.target.isa {
        Isa::R500 => LaunchFile::R500(r500_launch(args, &opened)?),
        Isa::R700 => LaunchFile::R700(Box::new(r700_launch(args, &opened)?)),
        Isa::Tesla => LaunchFile::Tesla(tesla_launch(args, matches, &opened)?),
    };
    let (kernel, path) = (args.kernel.clone(), args.file.clone());
    Ok(Prepared::Launch { launch: Box::new(launch), opened, kernel, path, beside: Beside::here() })
}

/// An option that the machine has no use for is a mistake.
fn refuse(isa: Isa, options: &[(&str, bool)]) -> Result<()> {
    match options.iter().find(|(_, given)| *given) {
        None => Ok(()),
        Some((option, _)) => bail!("{option} is not for {isa} programs"),
    }
}

fn r700_launch(args: &Run, opened: &Opened) -> Result<r700::LaunchFile> {
    refuse(
        Isa::R700,
        &[
            ("--grid", args.grid.is_some()),
            ("--block", args.block.is_some()),
            ("--shared", args.shared.is_some()),
            ("--pointer-bytes", args.pointer_bytes.is_some()),
            ("--arg", !args.argument.is_empty()),
            ("--domain", args.domain.is_some()),
            ("--uncached", args.uncached),
            ("--group-width", args.group_width.is_some()),
        ],
    )?;
    let mut launch = r700::LaunchFile {
        chip: opened.target.chip.clone(),
        stage: opened.target.stage.map(|stage| stage.name().to_owned()),
        lanes: args.lanes,
        mode: args.mode.clone(),
        watchdog: args.watchdog,
        texture: textures(args)?,
        output_type: args.output_type.clone(),
        ..r700::LaunchFile::default()
    };
    for text in &args.input {
        let (name, values) = assignment(text, "--input")?;
        let gpr = name.strip_prefix(['R', 'r']).and_then(|digits| digits.parse().ok());
        let gpr = gpr.filter(|gpr| *gpr < 128);
        let gpr =
            gpr.ok_or_else(|| anyhow!("--input {text}: `{name}` is not a register; R0 to R127 fits here"))?;
        launch.input.push(r700::InputValues { gpr, values: Values::Text(values.to_owned()) });
    }
    for text in &args.constant {
        let (name, values) = assignment(text, "--const")?;
        let number = name.strip_prefix("KC").unwrap_or(name).parse();
        let number = number
            .map_err(|_| anyhow!("--const {text}: `{name}` is not a constant buffer; 0 to 15 fits here"))?;
        let values = Values::Text(values.to_owned());
        launch.constant.push(r700::ConstantValues { number, offset: 0, values });
    }
    for text in &args.buffer {
        let (name, spec) = assignment(text, "--buf")?;
        let form = || anyhow!("--buf {text}: 160=VALUES:16 is the form, 16 being the bytes of an element");
        let (values, stride) = spec.rsplit_once(':').ok_or_else(form)?;
        let (number, stride) = (name.parse().map_err(|_| form())?, stride.parse().map_err(|_| form())?);
        let values = Values::Text(values.to_owned());
        launch.buffer.push(r700::BufferValues { number, values, stride });
    }
    Ok(launch)
}

fn tesla_launch(args: &Run, matches: &ArgMatches, opened: &Opened) -> Result<tesla::LaunchFile> {
    refuse(
        Isa::Tesla,
        &[
            ("--domain", args.domain.is_some()),
            ("--uncached", args.uncached),
            ("--group-width", args.group_width.is_some()),
            ("--output-type", args.output_type.is_some()),
        ],
    )?;
    let mut launch = tesla::LaunchFile {
        chip: opened.target.chip.clone(),
        stage: opened.target.stage.map(|stage| stage.name().to_owned()),
        mode: args.mode.clone(),
        watchdog: args.watchdog,
        grid: args.grid.as_deref().map(sizes).transpose()?.unwrap_or_default(),
        block: args.block.as_deref().map(sizes).transpose()?.unwrap_or_default(),
        shared: args.shared,
        pointer_bytes: args.pointer_bytes,
        lanes: args.lanes,
        texture: textures(args)?,
        ..tesla::LaunchFile::default()
    };
    // Buffers and numbers are parameters in the order in which they stand on the command line.
    let places = |name: &str| matches.indices_of(name).into_iter().flatten().collect::<Vec<_>>();
    let mut params = Vec::new();
    for (text, place) in args.buffer.iter().zip(places("buffer")) {
        let (name, values) = assignment(text, "--buf")?;
        let buffer = Some(Values::Text(values.to_owned()));
        params.push((place, tesla::ParamValue { name: name.to_owned(), buffer, ..Default::default() }));
    }
    for (text, place) in args.argument.iter().zip(places("argument")) {
        let (name, values) = assignment(text, "--arg")?;
        let value = Some(Values::Text(values.to_owned()));
        params.push((place, tesla::ParamValue { name: name.to_owned(), value, ..Default::default() }));
    }
    params.sort_by_key(|(place, _)| *place);
    launch.param = params.into_iter().map(|(_, param)| param).collect();
    for text in &args.constant {
        let (name, values) = assignment(text, "--const")?;
        let form = || anyhow!("--const {text}: c1=VALUES or c1[0x10]=VALUES is the form");
        let (bank, offset) = match name.strip_prefix('c').ok_or_else(form)?.split_once('[') {
            None => (name[1..].parse().map_err(|_| form())?, 0),
            Some((bank, offset)) => {
                let offset = offset.strip_suffix(']').and_then(reconverge_isa::source::parse_number);
                let offset = offset.and_then(|offset| u32::try_from(offset).ok());
                (bank.parse().map_err(|_| form())?, offset.ok_or_else(form)?)
            }
        };
        launch.constant.push(tesla::ConstantValues { bank, offset, values: Values::Text(values.to_owned()) });
    }
    for text in &args.input {
        let (name, values) = assignment(text, "--input")?;
        let word = name.strip_prefix(['v', 'a']).and_then(|digits| digits.parse().ok());
        let word = word.ok_or_else(|| {
            anyhow!("--input {text}: `{name}` is not an input; v4 fits here, which is v[0x10] and following")
        })?;
        let values = Some(Values::Text(values.to_owned()));
        launch.input.push(tesla::InputValues { word, values, ..Default::default() });
    }
    Ok(launch)
}

fn r500_launch(args: &Run, opened: &Opened) -> Result<r500::LaunchFile> {
    refuse(
        Isa::R500,
        &[
            ("--grid", args.grid.is_some()),
            ("--block", args.block.is_some()),
            ("--shared", args.shared.is_some()),
            ("--pointer-bytes", args.pointer_bytes.is_some()),
            ("--arg", !args.argument.is_empty()),
            ("--output-type", args.output_type.is_some()),
        ],
    )?;
    let mut launch = r500::LaunchFile {
        chip: opened.target.chip.clone(),
        lanes: args.lanes,
        mode: args.mode.clone(),
        group_width: args.group_width,
        watchdog: args.watchdog,
        texture: textures(args)?,
        ..r500::LaunchFile::default()
    };
    for text in &args.input {
        let (name, values) = assignment(text, "--input")?;
        let temp = name.strip_prefix("temp").and_then(|digits| digits.parse().ok());
        let temp = temp.ok_or_else(|| {
            anyhow!("--input {text}: `{name}` is not a register; temp0 to temp127 fits here")
        })?;
        launch.input.push(r500::InputValues { temp, values: Values::Text(values.to_owned()) });
    }
    for text in &args.constant {
        let (name, values) = assignment(text, "--const")?;
        let number = name
            .parse()
            .map_err(|_| anyhow!("--const {text}: `{name}` is not a constant; 0 to 255 fits here"))?;
        launch.constant.push(r500::ConstantValues { number, values: Values::Text(values.to_owned()) });
    }
    match &args.domain {
        Some(domain) => launch.ctm = Some(ctm(args, domain)?),
        None if !args.buffer.is_empty() || args.uncached => {
            bail!("--buf and --uncached need --domain WIDTHxHEIGHT")
        }
        None => {}
    }
    Ok(launch)
}

fn textures(args: &Run) -> Result<Vec<TextureValues>> {
    let texture = |text: &String| {
        let (name, rest) = assignment(text, "--texture")?;
        let unit = name
            .parse()
            .map_err(|_| anyhow!("--texture {text}: `{name}` is not a unit; 0 to 15 fits here"))?;
        let (values, size) =
            rest.rsplit_once(':').ok_or_else(|| anyhow!("--texture {text}: UNIT=VALUES:8x8 is the form"))?;
        let texels = Values::Text(values.to_owned());
        Ok(TextureValues { unit, size: sizes(size)?, cube: false, texels, filter: None, wrap: None })
    };
    args.texture.iter().map(texture).collect()
}

fn ctm(args: &Run, domain: &str) -> Result<CtmValues> {
    let mut ctm = CtmValues {
        domain: sizes(domain)?,
        origin: Vec::new(),
        uncached: args.uncached,
        input: Vec::new(),
        output: Vec::new(),
        conditional: None,
    };
    for text in &args.buffer {
        let (name, spec) = assignment(text, "--buf")?;
        let form = || anyhow!("--buf {text}: in0=VALUES:FORMAT:8x8 or out0=FORMAT:8x8 is the form");
        let (rest, size) = spec.rsplit_once(':').ok_or_else(form)?;
        let (values, format) = match rest.rsplit_once(':') {
            Some((values, format)) => (Some(Values::Text(values.to_owned())), format),
            None => (None, rest),
        };
        let (list, digits) = match (name.strip_prefix("in"), name.strip_prefix("out")) {
            (Some(digits), _) => (&mut ctm.input, digits),
            (_, Some(digits)) => (&mut ctm.output, digits),
            _ => return Err(form()),
        };
        let (pitch, height) = match sizes(size)?[..] {
            [pitch] => (pitch, None),
            [pitch, height] => (pitch, Some(height)),
            _ => return Err(form()),
        };
        let number = digits.parse().map_err(|_| form())?;
        list.push(BufferValues { number, format: format.to_owned(), tiling: None, pitch, height, values });
    }
    Ok(ctm)
}

fn assignment<'a>(text: &'a str, option: &str) -> Result<(&'a str, &'a str)> {
    text.split_once('=').ok_or_else(|| anyhow!("{option} {text}: NAME=VALUE is the form"))
}

fn sizes(text: &str) -> Result<Vec<u32>> {
    let sizes: Option<Vec<u32>> = text.split('x').map(|size| size.parse().ok()).collect();
    sizes.ok_or_else(|| anyhow!("`{text}` is not a size; 64 or 8x8 fits here"))
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
    for mismatch in &result.mismatches {
        eprintln!("{}: {mismatch}", args.file.display());
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
