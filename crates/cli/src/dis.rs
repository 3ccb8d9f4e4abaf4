//! `reconverge dis`

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use reconverge_isa::Isa;
use reconverge_workbench::Style;
use reconverge_workbench::launch::choose_program;

use crate::args::{Answer, InputArgs};
use crate::files::open_program_or_case;
use crate::launch::open_programs;

/// Print a program as text that `asm` accepts
#[derive(clap::Args)]
#[command(after_help = crate::args::files_help())]
pub(crate) struct Dis {
    /// The program, a launch file (.toml) that names the program, or a file of cases; `-` for standard input
    file: PathBuf,
    /// Use the case with this name in a file of cases
    #[arg(long, value_name = "NAME")]
    case: Option<String>,
    /// Use only the program with this name
    #[arg(long)]
    kernel: Option<String>,
    /// Add addresses and words
    #[arg(long)]
    hex: bool,
    /// Indent and label the flow constructs
    #[arg(long)]
    structure: bool,
    /// Print common forms of an operation as pseudo-instructions, such as MOV and ADD (r500)
    #[arg(long)]
    idioms: bool,
    /// Syntax of the text: own, or amd for AMD's syntax of R600 and R700 (default: own)
    #[arg(long, value_name = "SYNTAX", value_parser = ["own", "amd"], default_value = "own", hide_default_value = true, hide_possible_values = true)]
    syntax: String,
    #[command(flatten)]
    known: InputArgs,
}

pub(crate) fn run(args: &Dis) -> Result<Answer> {
    let opened = match args.file.extension().is_some_and(|extension| extension == "toml") {
        true => open_programs(&args.file, args.case.as_deref(), false, &args.known)?.opened,
        false => open_program_or_case(&args.file, args.case.as_deref(), &args.known)?,
    };
    let amd = args.syntax == "amd";
    if amd && opened.target.isa != Isa::R700 {
        bail!("--syntax amd: expected a program for R600 or R700, found one for {}", opened.target.isa);
    }
    let style = Style { hex: args.hex, structure: args.structure, idioms: args.idioms, amd, notes: true };
    let (mut image, mut target) = (opened.image, opened.target);
    if let Some(kernel) = &args.kernel {
        let program = choose_program(&image, Some(kernel)).with_context(|| crate::shown::path(&args.file))?;
        target = target.for_program(&image, program);
        image = image.only(program);
    } else if let Some(chips) = target.several_chips(&image) {
        let names = chips.join(" and ");
        bail!(
            "{}: expected programs for one chip, found {names}; choose a program with --kernel or a chip with --chip",
            crate::shown::path(&args.file)
        );
    }
    say_part!("{}", target.machine().image_text(&target, &image, style)?);
    Ok(Answer::Yes)
}
