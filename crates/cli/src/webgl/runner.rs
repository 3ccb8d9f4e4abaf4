//! The runs on the chip and on the control, and the report of their results.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use anyhow::{Context, Result};
use reconverge_board::Driver;
use reconverge_output::random_name;
use serde::Serialize;
use serde_json::json;

use super::Webgl;
use super::browser::Drawn;
use super::server::Server;
use super::suite::{chosen, root};
use super::verdict::{Failures, FileVerdict};
use crate::args::Answer;
use crate::drm::board;
use crate::drm::setup::{Build, Setup};
use crate::messages::{answer_as, bar, counted};
use crate::{files, interrupt};

/// Maximum number of failures per file that are shown.
const SHOWN: usize = 5;

/// Options of the browser on R500 chips, which do not have vertex texture units. Chromium would paint the page with
/// programs that ANGLE cannot link on these chips, so the page would stay empty. With this option, Chromium does not
/// use the chip to paint pages.
const WITHOUT_PAINTING: &[&str] = &["--disable-gpu-compositing"];

/// The output of `--json`.
#[derive(Serialize)]
struct WebglAnswer<'a> {
    chip: &'a str,
    version: u8,
    files: usize,
    /// Number of files that have no verdict because of Ctrl-C.
    #[serde(skip_serializing_if = "Option::is_none")]
    interrupted: Option<usize>,
    on_chip: Tally,
    control: Tally,
    /// Failures that occur only on the chip.
    only_on_chip: Vec<Only<'a>>,
    /// Number of failures that occur only on the control.
    only_in_control: u64,
}

/// The assertions of all files.
#[derive(Serialize)]
struct Tally {
    assertions: u64,
    failures: u64,
    seconds: f64,
}

impl Tally {
    fn of<'a>(verdicts: impl Iterator<Item = &'a FileVerdict> + Clone) -> Tally {
        Tally {
            assertions: verdicts.clone().map(FileVerdict::total).sum(),
            failures: verdicts.clone().map(FileVerdict::failures).sum(),
            seconds: verdicts.map(|verdict| verdict.seconds).sum(),
        }
    }
}

/// The failures of a file that occur only on the chip.
#[derive(Serialize)]
struct Only<'a> {
    file: &'a str,
    assertions: Vec<Failures<'a>>,
}

/// Returns the number of failures.
fn sum(failures: &[Failures<'_>]) -> u64 {
    failures.iter().map(|failures| failures.count).sum()
}

pub(super) fn run(args: &Webgl) -> Result<Answer> {
    let board = board(&args.chip)?;
    args.errata.check(board)?;
    let root = root(&args.suite)?;
    let files: Arc<[String]> = chosen(args, &root)?.into();
    let driver = args.driver.as_deref().map(Build::new).transpose()?.flatten();
    let setup = Setup::new(board, true, driver)?.with_errata(&args.errata);
    setup.check_renderer()?;
    if let Some(folder) = &args.output {
        fs::create_dir_all(folder).with_context(|| crate::shown::path(folder))?;
    }
    interrupt::watch();

    let renderer = board.renderer();
    let options = if board.driver == Driver::R300 { WITHOUT_PAINTING } else { &[] };
    let chip = Drawn { setup: &setup, is_control: false, renderer: &renderer, options };
    let control = Drawn { is_control: true, renderer: "llvmpipe", ..chip };
    let folder = std::env::temp_dir().join(format!("reconverge-webgl-{}", random_name()?));
    let both = run_both(args, &root, &files, [&chip, &control], &folder);
    let _ = fs::remove_dir_all(&folder);
    let [on_chip, control] = both?;
    if let Some(folder) = &args.output {
        for (name, verdicts) in [("chip.jsonl", &on_chip), ("control.jsonl", &control)] {
            files::write(&folder.join(name), lines(&files, verdicts).as_bytes())?;
        }
    }

    let ran = || {
        let pairs = on_chip.iter().zip(&control).zip(files.iter());
        pairs.filter_map(|((chip, control), file)| Some((&**file, chip.as_ref()?, control.as_ref()?)))
    };
    let not_run = files.len() - ran().count();
    let only = ran().map(|(file, chip, control)| Only { file, assertions: chip.beyond(control) });
    let answered = WebglAnswer {
        chip: board.chip,
        version: args.version,
        files: files.len() - not_run,
        interrupted: (not_run > 0).then_some(not_run),
        on_chip: Tally::of(ran().map(|(_, chip, _)| chip)),
        control: Tally::of(ran().map(|(_, _, control)| control)),
        only_on_chip: only.filter(|only| !only.assertions.is_empty()).collect(),
        only_in_control: ran().map(|(_, chip, control)| sum(&control.beyond(chip))).sum(),
    };
    answer_as(args.json, &answered, show);
    if not_run > 0 {
        tell!("interrupted: {} did not run", counted(not_run as u64, "file"));
        return Ok(Answer::Status(interrupt::STATUS as u8));
    }
    Ok(if answered.only_on_chip.is_empty() { Answer::Yes } else { Answer::No })
}

/// Runs the files on the chip and on the control in parallel. Returns both lists of verdicts, in the order of the
/// files.
fn run_both(
    args: &Webgl,
    root: &Path,
    files: &Arc<[String]>,
    drawn: [&Drawn<'_>; 2],
    folder: &Path,
) -> Result<[Vec<Option<FileVerdict>>; 2]> {
    let progress = bar(Some(2 * files.len() as u64), "{bar:40} {pos}/{len} files {elapsed}, {eta} left");
    let servers = [(); 2].map(|()| Server::start(root, files, args.version, args.timeout.0));
    let [one, other] = servers;
    let servers = [one?, other?];
    let failed = AtomicBool::new(false);
    let goes_on = || {
        let count = |server: &Server| server.with(|queue| queue.verdicts.iter().flatten().count() as u64);
        progress.set_position(servers.iter().map(count).sum());
        !interrupt::asked() && !failed.load(Ordering::Relaxed)
    };
    let ends = thread::scope(|scope| {
        let runs = [0, 1].map(|which| {
            let (drawn, server, goes_on, failed) = (drawn[which], &servers[which], &goes_on, &failed);
            let folder = folder.join(which.to_string());
            scope.spawn(move || {
                let end = drawn.run(args, server, &folder, goes_on);
                failed.fetch_or(end.is_err(), Ordering::Relaxed);
                end
            })
        });
        runs.map(|run| run.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    });
    progress.finish_and_clear();
    for end in ends {
        end?;
    }
    Ok(servers.map(|server| server.with(|queue| std::mem::take(&mut queue.verdicts))))
}

/// Returns one line for each file of the suite that ran.
fn lines(files: &[String], verdicts: &[Option<FileVerdict>]) -> String {
    let ran = files.iter().zip(verdicts).filter_map(|(file, verdict)| Some((file, verdict.as_ref()?)));
    let line = |(file, FileVerdict { end, assertions, seconds }): (&String, &FileVerdict)| {
        let object = json!({ "file": file, "end": end.name(), "seconds": seconds, "assertions": assertions });
        format!("{object}\n")
    };
    ran.map(line).collect()
}

fn show(answered: &WebglAnswer<'_>) {
    for Only { file, assertions } in &answered.only_on_chip {
        say!("{file}: {} only on the chip", counted(sum(assertions), "failure"));
        for Failures { text, count } in assertions.iter().take(SHOWN) {
            let times = if *count > 1 { format!(" ({count} times)") } else { String::new() };
            say!("  {}{times}", crate::shown::name(text));
        }
        if assertions.len() > SHOWN {
            say!("  … {} more (--json has them)", sum(&assertions[SHOWN..]));
        }
    }
    let WebglAnswer { on_chip, control, .. } = answered;
    say!("{}", counted(answered.files as u64, "file"));
    say!("chip: {}, {}", counted(on_chip.assertions, "assertion"), counted(on_chip.failures, "failure"));
    say!("control: {}, {}", counted(control.assertions, "assertion"), counted(control.failures, "failure"));
    let only: u64 = answered.only_on_chip.iter().map(|only| sum(&only.assertions)).sum();
    say!("{} only on the chip, {} only in the control", counted(only, "failure"), answered.only_in_control);
}
