//! `reconverge asm`

use std::io::{IsTerminal, stdout};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use reconverge_workbench::Opened;
use reconverge_workbench::formats::{self, WriteError};
use reconverge_workbench::open::OpenError;

use crate::args::{Answer, TargetArgs};
use crate::files;
use crate::messages::{SourceErrors, note, warn};

/// Assemble a text
///
/// Formats: hex, 32-bit words one a line behind a comment with the machine and the chip; hex32, the words alone; bin,
/// 32-bit words, little endian; and the machine's own, such as cubin (tesla), gsh (r700) and elf (r500). A format that a
/// machine does not have is answered with those that it has.
#[derive(clap::Args)]
pub(crate) struct Asm {
    /// The source; `-` for standard input
    #[arg(required_unless_present_any = ["vsh", "psh"], conflicts_with_all = ["vsh", "psh"])]
    file: Option<PathBuf>,
    /// A vertex program in the text of latte-assembler, for one gsh with --psh (r700)
    #[arg(long, value_name = "FILE")]
    vsh: Option<PathBuf>,
    /// A pixel program in the text of latte-assembler (r700)
    #[arg(long, value_name = "FILE")]
    psh: Option<PathBuf>,
    /// Where the result goes; `-` or nothing for standard output
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
    /// What to write; by default as OUT's name says (.bin, .cubin, .elf, .gsh), otherwise hex
    #[arg(long, value_name = "FORMAT")]
    format: Option<String>,
    /// Write even where the format has no place for constants or other state of the source
    #[arg(long)]
    drop_state: bool,
    #[command(flatten)]
    target: TargetArgs,
}

pub(crate) fn run(args: &Asm) -> Result<Answer> {
    // latte-assembler's programs have their stage from the command line; this comment states it.
    let latte = [(&args.vsh, "\n; $STAGE = vertex\n"), (&args.psh, "\n; $STAGE = pixel\n")];
    let latte = latte.iter().filter_map(|(file, stage)| Some((file.as_deref()?, *stage)));
    let sources = args.file.as_deref().map(|file| (file, "")).into_iter().chain(latte);
    let mut all: Option<(Opened, String)> = None;
    for (file, stage) in sources {
        let (opened, name) = assembled(file, stage, args)?;
        match &mut all {
            Some((first, _)) => {
                first.image.programs.extend(opened.image.programs);
                first.target.stage = None;
            }
            None => all = Some((opened, name)),
        }
    }
    let (opened, name) = all.context("a source is missing")?;
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
        bail!("{format} is not for a terminal: say -o FILE, or send the output elsewhere");
    }
    files::write(output, &written.content)?;
    Ok(Answer::Yes)
}

/// Assembles a source file after adding `stage` to its end. Returns its programs and its name for messages.
fn assembled(file: &Path, stage: &str, args: &Asm) -> Result<(Opened, String)> {
    let mut bytes = files::read(file)?;
    bytes.extend(stage.as_bytes());
    let text = String::from_utf8_lossy(&bytes);
    let name = crate::shown::path(&file);
    let opened = match reconverge_workbench::open(&bytes, true, &args.target.known()) {
        Ok(opened) => opened,
        Err(OpenError::Source(errors)) => return Err(SourceErrors::new(&name, &text, &errors).into()),
        Err(error) => bail!("{name}: {error}"),
    };
    warn(file, &text, &opened.warnings);
    if opened.image.programs.is_empty() {
        bail!("{name}: there is no program");
    }
    Ok((opened, name.to_string()))
}
