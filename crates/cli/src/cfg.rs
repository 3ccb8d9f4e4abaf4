//! `reconverge cfg`

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use clap::ArgMatches;
use reconverge_workbench::Error;
use reconverge_workbench::graph::{Drawing, Passages};
use reconverge_workbench::launch::choose_program;
use reconverge_workbench::trace::Recorded;

use crate::args::Answer;
use crate::launch::LaunchArgs;
use crate::{files, messages};

/// Draw the control flow of a program: basic blocks, the edges between them, and where lanes diverge and reconverge
///
/// The labels of edges are next, jump, loop, break, continue, call and return. --counts runs the program like `run`.
/// A block then shows how often its first instruction was issued, for how many lanes, and how often lanes diverged in
/// it. An edge shows the number of lanes that followed it. The edges into a block include all lanes that execute the
/// block, and lanes that wait.
#[derive(clap::Args)]
pub(crate) struct Cfg {
    #[command(flatten)]
    launch: LaunchArgs,
    /// Output file: .dot or .gv for Graphviz, .svg for a picture. By default, and for `-`, the graph is printed on
    /// standard output as DOT
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Run the launch and add the counts of the run to the graph
    #[arg(long)]
    counts: bool,
}

pub(crate) fn run(args: &Cfg, matches: &ArgMatches) -> Result<Answer> {
    let output = args.output.as_deref().filter(|path| *path != Path::new("-"));
    let picture = match output.map(|path| path.extension().and_then(|extension| extension.to_str())) {
        None | Some(Some("dot" | "gv")) => false,
        Some(Some("svg")) => true,
        Some(_) => {
            bail!(
                "{}: expected the extension .dot, .gv or .svg",
                crate::shown::path(output.unwrap_or(Path::new("-")))
            )
        }
    };
    let (drawing, trap) = match args.counts {
        true => counted(args, matches)?,
        false => (plain(args)?, None),
    };
    let text = if picture { drawing.svg() } else { drawing.dot() };
    files::write(output.unwrap_or(Path::new("-")), text.as_bytes())?;
    let file = crate::shown::path(&args.launch.file());
    for place in drawing.nowhere() {
        tell!("{file}: lanes reach {place}, which does not contain an instruction; `lint` prints the reason");
    }
    trap.iter().for_each(|trap| tell!("{trap}"));
    let sound = trap.is_none() && drawing.nowhere().next().is_none();
    Ok(if sound { Answer::Yes } else { Answer::No })
}

fn plain(args: &Cfg) -> Result<Drawing> {
    let programs = args.launch.programs()?;
    let place = || crate::shown::path(&args.launch.file());
    let kernel = args.launch.kernel.as_deref().or(programs.kernel());
    let program = choose_program(&programs.opened.image, kernel).with_context(place)?;
    let title = program.name.clone().unwrap_or_else(place);
    let target = programs.opened.target.for_program(&programs.opened.image, program);
    Drawing::of(&title, &target, program, None).with_context(place)
}

/// Returns the drawing with the counts of a run. If a trap ended the run, also returns the trap.
fn counted(args: &Cfg, matches: &ArgMatches) -> Result<(Drawing, Option<String>)> {
    let ready = args.launch.ready(matches)?;
    let stepping = ready.session.start(&ready.options).ok();
    let width = stepping.map_or(64, |stepping| stepping.lanes(0).len().max(1));
    let mut counts = Passages::new(width as u32);
    let progress = messages::spinner("running");
    let ended = ready.session.copy().run_traced(&ready.options, Recorded::Flow, &mut counts);
    progress.finish_and_clear();
    let trap = match ended {
        Ok(_) => None,
        Err(Error::Trap(trap)) => Some(format!("{}: {trap}", ready.title)),
        Err(error) => return Err(anyhow!("{}: {error}", ready.title)),
    };
    let program = ready.program();
    let title = program.name.clone().unwrap_or_else(|| ready.title.clone());
    let drawing = Drawing::of(&title, &ready.opened.target, program, Some(&counts));
    Ok((drawing.with_context(|| ready.title.clone())?, trap))
}
