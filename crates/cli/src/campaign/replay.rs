//! `campaign --replay N`: runs one experiment again, and runs the launch of the experiment without the fault.
//!
//! The debugger, the page and the trace open the experiment as an ordinary launch. The option `--experiment N` of
//! [`LaunchArgs`] selects the experiment.

use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow};
use clap::{ArgMatches, Args, Command, FromArgMatches};
use reconverge_campaign::Campaign;
use reconverge_campaign::experiment::Record;
use reconverge_campaign::replay::Replay;
use reconverge_workbench::array::Array;
use reconverge_workbench::listing::{Lines, Style};
use reconverge_workbench::{Error, Outcome, Session};
use serde_json::{Value, json};

use crate::args::Answer;
use crate::debug::{self, Debug};
use crate::launch::LaunchArgs;
use crate::messages;
use crate::page::PageArgs;
use crate::trace::{self, Trace};

/// Options for an experiment that is run again.
#[derive(clap::Args)]
pub(crate) struct ReplayArgs {
    /// Run experiment N again. Print the fault, the first step at which the run differs from the golden run, and the
    /// outputs that differ
    #[arg(long, value_name = "N", conflicts_with_all = ["describe", "summary", "recheck"])]
    pub(super) replay: Option<u64>,
    /// Open the experiment in the debugger
    #[arg(long, requires = "replay", conflicts_with = "json")]
    debug: bool,
    /// Write a page that shows the golden run next to the experiment
    #[arg(long, value_name = "FILE", requires = "replay")]
    html: Option<PathBuf>,
    /// Write a trace of the experiment, and a trace of the golden run into NAME.golden.rtrace in the same folder
    #[arg(long, value_name = "FILE", requires = "replay")]
    trace: Option<PathBuf>,
}

/// Runs an experiment again and shows the experiment. `file` is the campaign file.
pub(super) fn run(
    campaign: &Campaign,
    file: &Path,
    number: u64,
    args: &ReplayArgs,
    json: bool,
) -> Result<Answer> {
    let replay = campaign.replay(number)?;
    let differences = differences(&replay);
    match json {
        true => messages::answer_json(&to_json(&replay.record, &differences)),
        false => describe(campaign, &replay, &differences),
    }
    let words = |without_fault: bool| {
        let mut words = vec![file.display().to_string(), "--experiment".to_owned(), number.to_string()];
        words.extend(without_fault.then(|| "--without-fault".to_owned()));
        words
    };
    if let Some(path) = &args.trace {
        for (path, without_fault) in [(path.clone(), false), (golden_name(path), true)] {
            let mut words = words(without_fault);
            words.extend(["-o".to_owned(), path.display().to_string()]);
            let (trace, matches) = parsed::<Trace>(words)?;
            // A trap of the experiment is a possible result of the experiment, not an error of the command.
            trace::run(&trace, &matches)?;
        }
    }
    if let Some(path) = &args.html {
        let beside = shlex::try_join(words(false).iter().map(String::as_str))?;
        let of_page = ["--html".to_owned(), path.display().to_string(), "--beside".to_owned(), beside];
        let (page, _) = parsed::<PageArgs>(of_page.to_vec())?;
        let (launch, matches) = parsed::<LaunchArgs>(words(true))?;
        page.write(&launch.ready(&matches)?, &[])?;
    }
    if args.debug {
        let (debug, matches) = parsed::<Debug>(words(false))?;
        return debug::run(&debug, &matches, Command::new("debug"));
    }
    Ok(Answer::Yes)
}

/// Parses the arguments of another command.
fn parsed<T: Args + FromArgMatches>(words: Vec<String>) -> Result<(T, ArgMatches)> {
    let command = T::augment_args(Command::new("replay").no_binary_name(true));
    let matches = command.try_get_matches_from(words).map_err(|error| anyhow!("{error}"))?;
    Ok((T::from_arg_matches(&matches)?, matches))
}

/// Returns the file name of the golden run's trace. This file is in the folder of the experiment's trace.
fn golden_name(path: &Path) -> PathBuf {
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or("rtrace");
    path.with_extension(format!("golden.{extension}"))
}

/// Returns one line for each output that has different values than in the golden run. If a run traps, there are no
/// outputs, and the result is empty.
fn differences(replay: &Replay) -> Vec<String> {
    let outputs = |session: &Session| -> Result<Vec<(String, Array)>, Error> {
        session.copy().run(&replay.options).map(|outcome: Box<dyn Outcome>| outcome.outputs())
    };
    let (Ok(golden), Ok(faulty)) = (outputs(&replay.golden), outputs(&replay.faulty)) else {
        return Vec::new();
    };
    let of = |(name, found): &(String, Array)| {
        let (_, wanted) = golden.iter().find(|(known, _)| known == name)?;
        reconverge_workbench::result::bits_that_differ(name, wanted, found)
    };
    faulty.iter().filter_map(of).collect()
}

/// Prints a description of an experiment.
fn describe(campaign: &Campaign, replay: &Replay, differences: &[String]) {
    let Record { index, site, model, step, group, pc, lane, place, before, after, .. } = &replay.record;
    let Record { outcome, trap, flow_step, class, .. } = &replay.record;
    let (program, _) = campaign.program();
    let opened = campaign.opened();
    let listing = opened.target.machine().disassemble(&opened.target, &replay.program, Style::default());
    let lines = listing.map(|listing| listing.instructions(&replay.program.words));
    let text = lines.as_ref().map(|lines: &Lines| lines.code(*pc)).unwrap_or_default();
    let line = opened.line(&replay.program, *pc).map(|line| format!("{program}:{line}: "));
    say!("experiment {index}: {site}, {model}");
    let when = if site.name() == "destination" { "after" } else { "before" };
    say!("  {when} step {step}, group {group}, {pc:#x}: {}{text}", line.unwrap_or_default());
    let word = lane.map_or(place.clone(), |lane| format!("{place} of lane {lane}"));
    say!("  {word}: {before:#x} becomes {after:#x}");
    let named = class.as_ref().map(|class| format!(" ({class})")).unwrap_or_default();
    let why = trap.as_ref().map(|trap| format!(": {trap}")).unwrap_or_default();
    say!("  {outcome}{why}{named}");
    match flow_step {
        Some(step) => say!("  from step {step}, the flow differs from that of the golden run"),
        None => say!("  the flow equals that of the golden run"),
    }
    differences.iter().for_each(|line| say!("  {line}"));
}

fn to_json(record: &Record, differences: &[String]) -> Value {
    json!({
        "index": record.index,
        "point": record.point,
        "site": record.site,
        "model": record.model,
        "step": record.step,
        "group": record.group,
        "pc": record.pc,
        "lane": record.lane,
        "place": record.place,
        "before": record.before,
        "after": record.after,
        "outcome": record.outcome.name(),
        "trap": record.trap,
        "flow_step": record.flow_step,
        "error": record.error.filter(|error| error.is_finite()),
        "hits": record.hits,
        "class": record.class,
        "differences": differences,
    })
}
