//! `reconverge run`

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use reconverge_isa::{Isa, Program};
use reconverge_workbench::array::Array;
use reconverge_workbench::r500::{
    BufferValues, ConstantValues, CtmValues, Error as R500Error, InputValues, LaunchFile, TextureValues,
};
use reconverge_workbench::result::RunResult;
use reconverge_workbench::text::TargetError;
use reconverge_workbench::values::Values;

use crate::files::{Beside, choose, open_program};
use crate::{Answer, TargetArgs, files};

/// Run a program or a launch file
///
/// VALUES is a file (.npy, .json, .bin:TYPE) or written in place: a list 1,2.5,-3, a range 0..64 or 0..1..0.125, or
/// zeros f32[64]. A .toml file is a launch file that says everything itself.
#[derive(clap::Args)]
pub(crate) struct Run {
    /// A program (.s, hex, bin, ELF) or a launch file (.toml)
    file: PathBuf,
    /// The program of this name, where the file has several
    #[arg(long)]
    kernel: Option<String>,
    /// How many lanes (r500)
    #[arg(long)]
    lanes: Option<usize>,
    /// Values in a temporary register at the start: temp0=VALUES (r500)
    #[arg(long, value_name = "tempN=VALUES")]
    input: Vec<String>,
    /// A float constant: 3=1,2,3,4 (r500)
    #[arg(long = "const", value_name = "N=VALUES")]
    constant: Vec<String>,
    /// A texture: 0=VALUES:8x8 (r500)
    #[arg(long, value_name = "UNIT=VALUES:SIZE")]
    texture: Vec<String>,
    /// Run over a domain of index pairs, WIDTHxHEIGHT, in the CTM model (r500)
    #[arg(long, value_name = "WxH")]
    domain: Option<String>,
    /// A buffer: in0=VALUES:FLOAT32_1:8x8 or out0=FLOAT32_1:8x8 (r500 with --domain)
    #[arg(long = "buf", value_name = "NAME=SPEC")]
    buffer: Vec<String>,
    /// The program's outputs are uncached: each goes to out0 at once (r500 with --domain)
    #[arg(long)]
    uncached: bool,
    /// strict: undefined behaviour traps; lenient: it does what is recommended
    #[arg(long, value_name = "MODE")]
    mode: Option<String>,
    /// Lanes that share a program counter
    #[arg(long, value_name = "N")]
    group_width: Option<usize>,
    /// Instructions a group may issue
    #[arg(long, value_name = "N")]
    watchdog: Option<u64>,
    /// Write an output to a file (.npy, .json, .bin): color0=out.npy
    #[arg(long = "out", value_name = "NAME=FILE")]
    output: Vec<String>,
    /// One JSON object on standard output
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    target: TargetArgs,
}

pub(crate) fn run(args: &Run) -> Result<Answer> {
    let is_launch = args.file.extension().is_some_and(|extension| extension == "toml");
    let (launch, program, beside) = if is_launch { from_launch_file(args)? } else { from_arguments(args)? };
    let result = match reconverge_workbench::r500::run(&launch, &program, &beside) {
        Ok(result) => result,
        Err(R500Error::Trap(trap)) => return trapped(args, &trap),
        Err(error) => return Err(anyhow!(error).context(args.file.display().to_string())),
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

fn from_launch_file(args: &Run) -> Result<(LaunchFile, Program, Beside)> {
    let bytes = files::read(&args.file)?;
    let name = args.file.display().to_string();
    let text = std::str::from_utf8(&bytes).with_context(|| name.clone())?;
    let mut launch: LaunchFile = toml::from_str(text).map_err(|error| anyhow!("{name}: {error}"))?;
    launch.mode = args.mode.clone().or(launch.mode);
    launch.group_width = args.group_width.or(launch.group_width);
    launch.watchdog = args.watchdog.or(launch.watchdog);
    let isa = launch.isa.as_deref().map(str::parse::<Isa>).transpose().with_context(|| name.clone())?;
    let beside = Beside::file(&args.file);
    let file = launch.program.as_deref().ok_or_else(|| {
        anyhow!("{name}: the launch file names no program: add a line such as program = \"shader.s\"")
    })?;
    let path = beside.path(file);
    let target =
        TargetArgs { isa: args.target.isa.or(isa), chip: args.target.chip.clone().or(launch.chip.clone()) };
    let opened = open_program(&path, &target)?;
    only_r500(opened.target.isa)?;
    launch.chip = opened.target.chip.clone().or(launch.chip);
    let program = choose(&opened, args.kernel.as_deref(), &path)?.clone();
    Ok((launch, program, beside))
}

fn only_r500(isa: Isa) -> Result<()> {
    match isa {
        Isa::R500 => Ok(()),
        isa => Err(TargetError::NotImplemented(isa).into()),
    }
}

fn from_arguments(args: &Run) -> Result<(LaunchFile, Program, Beside)> {
    let opened = open_program(&args.file, &args.target)?;
    only_r500(opened.target.isa)?;
    let program = choose(&opened, args.kernel.as_deref(), &args.file)?.clone();
    let mut launch = LaunchFile {
        chip: opened.target.chip.clone(),
        lanes: args.lanes,
        mode: args.mode.clone(),
        group_width: args.group_width,
        watchdog: args.watchdog,
        ..LaunchFile::default()
    };
    for text in &args.input {
        let (name, values) = assignment(text, "--input")?;
        let temp = name.strip_prefix("temp").and_then(|digits| digits.parse().ok());
        let temp = temp.ok_or_else(|| {
            anyhow!("--input {text}: `{name}` is not a register; temp0 to temp127 fits here")
        })?;
        launch.input.push(InputValues { temp, values: Values::Text(values.to_owned()) });
    }
    for text in &args.constant {
        let (name, values) = assignment(text, "--const")?;
        let number = name
            .parse()
            .map_err(|_| anyhow!("--const {text}: `{name}` is not a constant; 0 to 255 fits here"))?;
        launch.constant.push(ConstantValues { number, values: Values::Text(values.to_owned()) });
    }
    for text in &args.texture {
        let (name, rest) = assignment(text, "--texture")?;
        let unit = name
            .parse()
            .map_err(|_| anyhow!("--texture {text}: `{name}` is not a unit; 0 to 15 fits here"))?;
        let (values, size) =
            rest.rsplit_once(':').ok_or_else(|| anyhow!("--texture {text}: UNIT=VALUES:8x8 is the form"))?;
        let texels = Values::Text(values.to_owned());
        launch.texture.push(TextureValues {
            unit,
            size: sizes(size)?,
            cube: false,
            texels,
            filter: None,
            wrap: None,
        });
    }
    match &args.domain {
        Some(domain) => launch.ctm = Some(ctm(args, domain)?),
        None if !args.buffer.is_empty() || args.uncached => {
            bail!("--buf and --uncached need --domain WIDTHxHEIGHT")
        }
        None => {}
    }
    Ok((launch, program, Beside::here()))
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
