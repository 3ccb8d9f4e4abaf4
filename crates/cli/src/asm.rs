//! `reconverge asm`

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::ValueEnum;
use reconverge_container::{bin, hex};
use reconverge_workbench::Opened;
use reconverge_workbench::open::OpenError;

use crate::messages::{SourceErrors, note, warn};
use crate::{Answer, TargetArgs, files};

/// Assemble a text
#[derive(clap::Args)]
pub(crate) struct Asm {
    /// The source; `-` for standard input
    file: PathBuf,
    /// Where the result goes; `-` for standard output
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,
    /// What to write; by default as OUT's name says (.bin, .cubin, .elf), otherwise hex
    #[arg(long, value_enum)]
    format: Option<Format>,
    #[command(flatten)]
    target: TargetArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// One 32-bit word a line, as hexadecimal digits
    Hex,
    /// 32-bit words, little endian
    Bin,
    /// Text cubin (tesla)
    Cubin,
    /// CTM executable with program state and constants (r500), or ELF cubin as wide as its pointers (tesla)
    Elf,
    /// 32-bit ELF cubin (tesla)
    CubinElf32,
    /// 64-bit ELF cubin (tesla)
    CubinElf64,
}

pub(crate) fn run(args: &Asm) -> Result<Answer> {
    let bytes = files::read(&args.file)?;
    let text = String::from_utf8_lossy(&bytes);
    let name = args.file.display().to_string();
    let opened = match reconverge_workbench::open(&bytes, true, &args.target.known()) {
        Ok(opened) => opened,
        Err(OpenError::Source(errors)) => return Err(SourceErrors::new(&name, &text, &errors).into()),
        Err(error) => bail!("{name}: {error}"),
    };
    warn(&args.file, &text, &opened.warnings);
    let Opened { target, image, .. } = opened;
    let Some(program) = image.programs.first() else { bail!("{name}: there is no program") };
    let format = args.format.unwrap_or_else(|| by_name(&args.output));
    if image.programs.len() > 1 && matches!(format, Format::Hex | Format::Bin) {
        bail!("{name}: {} kernels; only --format cubin and elf hold several", image.programs.len());
    }
    let content = match format {
        Format::Hex => hex::write(&program.words).into_bytes(),
        Format::Bin => bin::write(&program.words),
        Format::Cubin | Format::Elf | Format::CubinElf32 | Format::CubinElf64 => {
            let format = match format {
                Format::Cubin => "cubin",
                Format::CubinElf32 => "cubin-elf32",
                Format::CubinElf64 => "cubin-elf64",
                _ => "elf",
            };
            let machine = target.machine();
            let Some(written) = machine.write(&target, &image, format) else {
                let has: Vec<&str> = ["hex", "bin"].iter().chain(machine.containers()).copied().collect();
                bail!("--format {format} is not for {}, which has {}", target.isa, has.join(", "));
            };
            let written = written?;
            written.notes.iter().for_each(|text| note(text));
            written.content
        }
    };
    files::write(&args.output, &content)?;
    Ok(Answer::Yes)
}

fn by_name(output: &std::path::Path) -> Format {
    match output.extension().and_then(|extension| extension.to_str()) {
        Some("bin") => Format::Bin,
        Some("cubin") => Format::Cubin,
        Some("elf") => Format::Elf,
        _ => Format::Hex,
    }
}
