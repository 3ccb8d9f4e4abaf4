//! `reconverge dis`

use std::path::PathBuf;

use anyhow::Result;
use reconverge_workbench::Listing;
use reconverge_workbench::text::{disassemble, heading};

use crate::files::{choose, open_program};
use crate::{Answer, TargetArgs};

/// Print a program as text that `asm` takes back
#[derive(clap::Args)]
#[command(after_help = crate::files_help())]
pub(crate) struct Dis {
    /// The program; `-` for standard input
    file: PathBuf,
    /// Only the program of this name
    #[arg(long)]
    kernel: Option<String>,
    /// Add addresses and words
    #[arg(long)]
    hex: bool,
    /// Indent and label the flow constructs
    #[arg(long)]
    structure: bool,
    #[command(flatten)]
    target: TargetArgs,
}

pub(crate) fn run(args: &Dis) -> Result<Answer> {
    let opened = open_program(&args.file, &args.target)?;
    let listing = Listing { hex: args.hex, structure: args.structure };
    let programs = match &args.kernel {
        None => opened.image.programs.iter().collect(),
        Some(kernel) => vec![choose(&opened, Some(kernel), &args.file)?],
    };
    for (number, program) in programs.into_iter().enumerate() {
        if number > 0 {
            say!("");
        }
        say_part!("{}", heading(&opened.target, program));
        say_part!("{}", disassemble(&opened.target, program, listing)?);
    }
    Ok(Answer::Yes)
}
