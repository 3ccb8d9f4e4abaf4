//! `reconverge campaign`

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Result, bail};
use comfy_table::{CellAlignment, Table};
use reconverge_campaign::summary::Counts;
use reconverge_campaign::{Campaign, Description, Progress, Recheck, Shard, Summary};
use serde_json::json;

use crate::args::Answer;
use crate::interrupt::{self, STATUS};
use crate::messages::{self, answer_as, answer_json, bar, counted, note};
use crate::part::Part;

mod replay;

/// Inject many faults into a launch, one per experiment, and count the outcomes; or run a launch for many parameters
///
/// FILE is a TOML file; docs/campaigns.md lists its fields. Results are Parquet files in a folder, one for each shard
/// of experiments. A shard that exists does not run again, unless it is damaged. Results do not depend on the number
/// of jobs. Several commands, on one host or on several, can share a folder and divide its shards. Ctrl-C keeps the
/// finished shards.
#[derive(clap::Args)]
pub(crate) struct CampaignArgs {
    /// The campaign file
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Folder of the results (default: FILE with the extension .results)
    #[arg(short, long, value_name = "FOLDER")]
    output: Option<PathBuf>,
    /// Number of shards that run at the same time (default: one per processor)
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
    /// Run only part K of N parts of the shards. The first part is 1 (default: all)
    #[arg(long, value_name = "K/N", conflicts_with_all = ["describe", "summary", "recheck", "replay"])]
    shard: Option<Part>,
    /// Run the launch once without a fault, and print its profile and the number of experiments
    #[arg(long, conflicts_with_all = ["summary", "recheck"])]
    describe: bool,
    /// Print the summary of the finished shards, without running experiments
    #[arg(long, conflicts_with = "recheck")]
    summary: bool,
    /// Run N experiments of the results folder again on the reference engine, and compare the new results with the
    /// stored results
    #[arg(long, value_name = "N")]
    recheck: Option<u64>,
    /// Seed that selects the experiments of --recheck
    #[arg(long, value_name = "S", default_value_t = 0, requires = "recheck")]
    seed: u64,
    #[command(flatten)]
    replay: replay::ReplayArgs,
    /// One JSON object on standard output
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &CampaignArgs) -> Result<Answer> {
    let campaign = Campaign::open(&args.file)?;
    if let Some(number) = args.replay.replay {
        return replay::run(&campaign, &args.file, number, &args.replay, args.json);
    }
    let folder = args.output.clone().unwrap_or_else(|| args.file.with_extension("results"));
    if (args.summary || args.recheck.is_some()) && !folder.is_dir() {
        bail!(
            "{}: folder of results not found; name it with -o, or first run the campaign without --summary and --recheck",
            crate::shown::path(&folder)
        );
    }
    if args.describe {
        answer_as(args.json, campaign.describe(), describe);
        return Ok(Answer::Yes);
    }
    if let Some(count) = args.recheck {
        let recheck = campaign.recheck(&folder, count, args.seed)?;
        answer_as(args.json, &recheck, print_recheck);
        return Ok(if recheck.differ.is_empty() { Answer::Yes } else { Answer::No });
    }
    let (mut stopped, mut damaged, mut ran) = (false, Vec::new(), 0);
    if !args.summary {
        let state = campaign.state(&folder)?;
        let is_ours = |shard: &Shard| args.shard.is_none_or(|part| part.has(shard.index));
        for file in state.damaged.iter().filter(|file| is_ours(&file.shard)) {
            note(&format!(
                "{}: damaged: {}; the shard is run again",
                crate::shown::path(&file.file),
                file.why
            ));
            damaged.push(file.shard.name().to_owned());
        }
        let missing = state.missing.into_iter().filter(is_ours).collect();
        (ran, stopped) = match run_shards(&campaign, missing, &folder, args)? {
            Some(ran) => (ran, false),
            None => (0, true),
        };
    }
    let summary = campaign.summary(&folder)?;
    if args.summary && summary.injections > 0 && summary.finished == 0 {
        bail!(
            "{}: no results of this campaign found; name another folder with -o, or first run the campaign without --summary",
            crate::shown::path(&folder)
        );
    }
    match args.json {
        true => {
            let mut answer = json!({ "campaign": campaign.describe(), "summary": summary });
            if !args.summary && !stopped {
                answer["ran"] = ran.into();
            }
            if stopped {
                answer["interrupted"] = true.into();
            }
            if !damaged.is_empty() {
                answer["damaged"] = damaged.into();
            }
            answer_json(&answer);
        }
        false => {
            if campaign.describe().points.len() > 1 || summary.injections == 0 {
                print_points(campaign.describe());
            }
            print_summary(&summary, campaign.describe());
        }
    }
    if stopped {
        let left = counted(summary.missing as u64, "shard");
        tell!("interrupted: {left} remaining; run the same command again to continue");
        return Ok(Answer::Status(STATUS as u8));
    }
    Ok(Answer::Yes)
}

/// Runs shards on threads until all shards are finished. Some of the shards may run in other processes. Returns the
/// number of experiments that this process ran, or `None` if Ctrl-C interrupted the run.
fn run_shards(
    campaign: &Campaign,
    missing: Vec<Shard>,
    folder: &Path,
    args: &CampaignArgs,
) -> Result<Option<u64>> {
    interrupt::watch();
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let jobs = args.jobs.map_or(processors, usize::from);
    let all = missing.iter().map(|shard| shard.range.end - shard.range.start).sum();
    let bar = bar(Some(all), "{bar:40} {pos}/{len} experiments {elapsed}, {eta} left");
    let waits = AtomicBool::new(false);
    let progress = |progress: Progress| {
        bar.set_position(progress.done);
        if let Some((shards, by)) = &progress.waiting
            && !waits.swap(true, Ordering::Relaxed)
        {
            bar.suspend(|| note(&format!("waiting for {} of {by}", counted(*shards as u64, "shard"))));
        }
        !interrupt::asked()
    };
    let ran = campaign.run_shards(missing, folder, jobs, &progress);
    bar.finish_and_clear();
    Ok(ran?)
}

fn table(head: &[&str], text_columns: usize) -> Table {
    let mut table = messages::table(head.to_vec());
    for column in table.column_iter_mut().skip(text_columns) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

fn print(table: &Table) {
    table.lines().for_each(|line| say!("{}", line.trim()));
}

fn describe(described: &Description) {
    let Description { campaign, injections, size_of_site, confidence, margin, shards, shard_size, .. } =
        described;
    say!("campaign {campaign}");
    if let (Some(size), Some(margin)) = (size_of_site, margin) {
        say!(
            "{} at each site estimate a rate to within {:.3} % with {:.1} % confidence",
            counted(*size, "experiment"),
            100. * margin,
            100. * confidence
        );
    }
    say!("{} in {} of {shard_size}", counted(*injections, "experiment"), counted(*shards as u64, "shard"));
    let names: Vec<&str> = described.models.iter().map(|model| model.name()).collect();
    say!("sites: {}", described.sites.iter().map(|site| site.name()).collect::<Vec<_>>().join(", "));
    say!("models: {}", names.join(", "));
    print_points(described);
    let mut rows = table(&["point", "site", "instants"], 2);
    for (number, point) in described.points.iter().enumerate() {
        for profile in &point.sites {
            rows.add_row([number.to_string(), profile.site.name().to_owned(), profile.instants.to_string()]);
        }
    }
    print(&rows);
}

fn print_points(described: &Description) {
    let head = [
        "point",
        "launch",
        "groups",
        "instructions",
        "lane instructions",
        "divergent branches",
        "fuel",
        "outputs",
    ];
    let mut rows = table(&head, 2);
    for (number, point) in described.points.iter().enumerate() {
        let mut launch = vec![point.isa.clone()];
        launch.extend(point.chip.clone().filter(|_| !point.parameters.contains_key("chip")));
        launch.extend((!point.parameters.contains_key("mode")).then(|| point.mode.clone()));
        launch.extend(point.parameters.iter().map(|(key, value)| format!("{key}={value}")));
        rows.add_row([
            number.to_string(),
            launch.join(" "),
            point.groups.to_string(),
            point.instructions.to_string(),
            point.lane_instructions.to_string(),
            point.divergent_branches.to_string(),
            point.fuel.to_string(),
            point.outputs[..8].to_owned(),
        ]);
    }
    print(&rows);
}

/// Returns a share in percent, and the confidence interval of the share.
fn percent(rate: f64, [low, high]: [f64; 2]) -> String {
    format!("{:.2} [{:.2}, {:.2}]", 100. * rate, 100. * low, 100. * high)
}

fn print_summary(summary: &Summary, described: &Description) {
    let Summary { injections, finished, confidence, .. } = summary;
    if *injections == 0 {
        return;
    }
    say!(
        "{finished} of {}; shares in percent, with their {:.1} % confidence intervals [low, high] (Wilson)",
        counted(*injections, "experiment"),
        100. * confidence
    );
    let several = described.points.len() > 1;
    let by_model = !summary.models.is_empty();
    let mut head = vec!["site"];
    head.extend(by_model.then_some("model"));
    if several {
        head.insert(0, "point");
    }
    let texts = head.len();
    head.extend(["experiments", "masked", "diverged", "sdc", "trap", "hang"]);
    let mut rows = table(&head, texts);
    let mut row = |counts: &Counts| {
        let mut cells = vec![counts.site.name().to_owned()];
        cells.extend(by_model.then(|| counts.model.map_or("all", |model| model.name()).to_owned()));
        if several {
            cells.insert(0, counts.point.to_string());
        }
        cells.push(counts.injections.to_string());
        cells.extend(counts.outcomes.iter().map(|rate| percent(rate.rate, rate.interval)));
        rows.add_row(cells);
    };
    for counts in &summary.sites {
        row(counts);
        let same = |other: &&Counts| (other.point, other.site) == (counts.point, counts.site);
        summary.models.iter().filter(same).for_each(&mut row);
    }
    print(&rows);
    print_classes(summary, several);
    let mut traps: Vec<(&str, u64)> = Vec::new();
    for (name, count) in summary.sites.iter().flat_map(|counts| &counts.traps) {
        match traps.iter_mut().find(|(known, _)| known == name) {
            Some((_, total)) => *total += count,
            None => traps.push((name, *count)),
        }
    }
    if !traps.is_empty() {
        traps.sort_by_key(|(name, count)| (std::cmp::Reverse(*count), *name));
        let list: Vec<String> = traps.iter().map(|(name, count)| format!("{name} {count}")).collect();
        say!("traps: {}", list.join(", "));
    }
}

/// Prints the share of each class of outcomes. An outcome function defines these classes.
fn print_classes(summary: &Summary, several: bool) {
    if summary.sites.iter().all(|counts| counts.classes.is_empty()) {
        return;
    }
    let mut rows = table(&["site", "class", "experiments", "share"], 2);
    for counts in &summary.sites {
        let point = if several { format!("point {}, ", counts.point) } else { String::new() };
        for class in &counts.classes {
            let share = percent(class.rate, class.interval);
            let site = format!("{point}{}", counts.site);
            rows.add_row([site, class.class.clone(), class.count.to_string(), share]);
        }
    }
    print(&rows);
}

fn print_recheck(recheck: &Recheck) {
    let Recheck { checked, differ } = recheck;
    say!("{} run again on the reference engine: {} differ", counted(*checked, "experiment"), differ.len());
    for one in differ {
        say!("{}:\n  stored    {}\n  reference {}", one.index, one.stored, one.reference);
    }
}
