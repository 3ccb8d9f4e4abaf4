//! `reconverge asm`

use std::io::{IsTerminal, stdout};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result, anyhow, bail};
use reconverge_workbench::formats::{self, WriteError};
use reconverge_workbench::open::OpenError;
use reconverge_workbench::{Known, Opened};

use crate::args::{Answer, TargetArgs};
use crate::files;
use crate::messages::{self, SourceErrors, counted, note, warn};

/// Assemble a source
///
/// Formats of the output: hex has a comment with the machine and the chip, then one 32-bit word per line. hex32 has
/// the words only. bin has little-endian 32-bit words. Each machine also has its own formats, such as cubin (tesla),
/// gsh (r700) and elf (r500). For an unknown format, the error message lists the formats of the machine.
#[derive(clap::Args)]
pub(crate) struct Asm {
    /// The source; `-` for standard input
    #[arg(required_unless_present_any = ["vsh", "psh"], conflicts_with_all = ["vsh", "psh"])]
    file: Option<PathBuf>,
    /// Vertex program in the syntax of latte-assembler. With --psh, both programs are written to one gsh file (r700)
    #[arg(long, value_name = "FILE")]
    vsh: Option<PathBuf>,
    /// Pixel program in the syntax of latte-assembler (r700)
    #[arg(long, value_name = "FILE")]
    psh: Option<PathBuf>,
    /// Output file; `-` for standard output (default: standard output)
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
    /// Format of the output. By default, the extension of OUT (.bin, .cubin, .elf, .gsh) decides; with any other
    /// extension, the format is hex
    #[arg(long, value_name = "FORMAT")]
    format: Option<String>,
    /// Write the output even if the format cannot hold constants or other state of the source
    #[arg(long)]
    drop_state: bool,
    /// Define a constant of the source (default value: 1). Can be repeated
    #[arg(short = 'D', long = "define", value_name = "NAME[=VALUE]")]
    defines: Vec<String>,
    /// Assemble again whenever the source or an included file changes, until Ctrl-C
    #[arg(long)]
    watch: bool,
    #[command(flatten)]
    target: TargetArgs,
}

pub(crate) fn run(args: &Asm) -> Result<Answer> {
    match args.watch {
        true => watch(args),
        false => assemble(args, &mut Vec::new()).map(|_| Answer::Yes),
    }
}

/// Assembles the sources after each change. An error does not end the command.
fn watch(args: &Asm) -> Result<Answer> {
    let Some(output) = args.output.as_deref().filter(|_| args.file.as_deref() != Some(Path::new("-"))) else {
        bail!("--watch: expected a source file and an output file -o OUT");
    };
    loop {
        let mut watched = Vec::new();
        match assemble(args, &mut watched) {
            Ok(programs) => tell!("{}: {}", crate::shown::path(&output), counted(programs as u64, "program")),
            Err(error) => messages::error(&error, false),
        }
        while watched.iter().all(|(path, before)| changed(path) == *before) {
            std::thread::sleep(POLL);
        }
    }
}

/// Time between two checks of the files.
const POLL: Duration = Duration::from_millis(200);

/// Returns the time of a file's last change.
fn changed(path: &Path) -> Option<SystemTime> {
    std::fs::metadata(path).and_then(|data| data.modified()).ok()
}

/// The files that were read, and the time of the last change of each file.
type Watched = Vec<(PathBuf, Option<SystemTime>)>;

/// Assembles the sources and writes the output. Returns the number of programs. Adds the names of the files that the
/// function reads to `watched`.
fn assemble(args: &Asm, watched: &mut Watched) -> Result<usize> {
    // The options --vsh and --psh state the program type of a source for latte-assembler. The code appends a comment to
    // the source. This comment passes the program type to the assembler.
    let latte = [(&args.vsh, "\n; $STAGE = vertex\n"), (&args.psh, "\n; $STAGE = pixel\n")];
    let latte = latte.iter().filter_map(|(file, stage)| Some((file.as_deref()?, *stage)));
    let sources = args.file.as_deref().map(|file| (file, "")).into_iter().chain(latte);
    let mut all: Option<(Opened, String)> = None;
    for (file, stage) in sources {
        let (opened, name) = assembled(file, stage, args, watched)?;
        match &mut all {
            Some((first, _)) => {
                first.image.programs.extend(opened.image.programs);
                first.target.stage = None;
            }
            None => all = Some((opened, name)),
        }
    }
    let (opened, name) = all.context("missing source")?;
    let output = args.output.as_deref().unwrap_or(Path::new("-"));
    let ending = output.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    let format = match &args.format {
        Some(format) => &format[..],
        None => formats::by_ending(opened.target.isa, ending).with_context(|| crate::shown::path(&output))?,
    };
    let written = formats::write(&opened.target, &opened.image, format, args.drop_state);
    let written = written.map_err(|error| match error {
        WriteError::Unknown { .. } => anyhow!(error),
        error => anyhow!(error).context(name.clone()),
    })?;
    written.notes.iter().for_each(|text| note(&format!("{name}: {text}")));
    if output == Path::new("-") && stdout().is_terminal() && std::str::from_utf8(&written.content).is_err() {
        bail!("{format}: cannot write binary output to a terminal; use -o FILE or redirect the output");
    }
    files::write(output, &written.content)?;
    Ok(opened.image.programs.len())
}

/// Assembles a source file, with the text `stage` appended to the source. Returns the programs of the source, and the
/// name of the source for messages.
fn assembled(file: &Path, stage: &str, args: &Asm, watched: &mut Watched) -> Result<(Opened, String)> {
    watched.push((file.to_path_buf(), changed(file)));
    let mut bytes = files::read(file)?;
    bytes.extend(stage.as_bytes());
    let text = String::from_utf8_lossy(&bytes);
    let name = crate::shown::path(&file);
    let known = Known { defines: args.defines.clone(), ..args.target.known() };
    let known = files::with_included(known, file, &bytes);
    let folder = file.parent().unwrap_or(Path::new(""));
    let included = known.included.iter().map(|file| folder.join(&file.name));
    watched.extend(included.map(|path| (path.clone(), changed(&path))));
    let opened = match reconverge_workbench::open(&bytes, true, &known) {
        Ok(opened) => opened,
        Err(OpenError::Source(errors)) => return Err(SourceErrors::new(&name, &text, &errors).into()),
        Err(error) => bail!("{name}: {error}"),
    };
    warn(file, &text, &opened.warnings);
    if opened.image.programs.is_empty() {
        bail!("{name}: no program found");
    }
    Ok((opened, name.to_string()))
}
