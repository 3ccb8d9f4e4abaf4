//! `reconverge patch`

use std::path::PathBuf;

use anyhow::{Context, Result, anyhow, bail};
use reconverge_container::Hints;
use reconverge_isa::source::parse_number;
use reconverge_workbench::edit::{self, EditError};
use reconverge_workbench::launch::choose_program;
use reconverge_workbench::open::is_source;

use crate::args::{Answer, InputArgs};
use crate::files;
use crate::messages::SourceErrors;

/// Change one instruction of a file and keep every other byte
///
/// TEXT has the syntax of `dis`: an instruction, one operation of an ALU group, or one fetch of a clause. Targets of
/// jumps are addresses. The new instruction must be as long as the old one.
#[derive(clap::Args)]
pub(crate) struct Patch {
    /// The file; `-` for standard input
    file: PathBuf,
    /// Use the program with this name; needed if the file contains several programs
    #[arg(long)]
    kernel: Option<String>,
    /// Address of the instruction as `dis --hex` prints it: in bytes (tesla), 64-bit words (r700) or slots (r500)
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    at: u32,
    /// The new instruction
    text: String,
    /// Output file; `-` for standard output
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,
    #[command(flatten)]
    known: InputArgs,
}

/// Parses an address, decimal or `0x…`.
pub(crate) fn address(text: &str) -> Result<u32, String> {
    let number = parse_number(text).and_then(|number| u32::try_from(number).ok());
    number.ok_or_else(|| "expected an address such as 56 or 0x38".to_owned())
}

pub(crate) fn run(args: &Patch) -> Result<Answer> {
    let name = crate::shown::path(&args.file);
    if is_source(&name) {
        bail!("{name}: expected a file of machine code, found a source; edit the source instead");
    }
    let bytes = files::read(&args.file)?;
    let opened = files::opened(&args.file, &bytes, &args.known)?;
    let program = choose_program(&opened.image, args.kernel.as_deref()).with_context(|| name.clone())?;
    let change =
        edit::replace(&opened.target.for_program(&opened.image, program), program, args.at, &args.text)
            .map_err(|error| match error {
                EditError::Text(errors) => anyhow!(SourceErrors::new("TEXT", &args.text, &errors)),
                error => anyhow!(error).context(name.clone()),
            })?;
    let index =
        opened.image.programs.iter().position(|other| std::ptr::eq(other, program)).unwrap_or_default();
    let known = args.known.known();
    let hints = Hints {
        isa: Some(opened.target.isa),
        chip: opened.target.chip_name().map(str::to_owned),
        format: known.format,
        endian: known.endian,
        defines: known.defines,
        old: known.old,
    };
    let patched = reconverge_container::patch(&bytes, &hints, index, change.first, &change.words)
        .with_context(|| name.clone())?;
    files::write(&args.output, &patched)?;
    Ok(Answer::Yes)
}
