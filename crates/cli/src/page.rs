//! The HTML page of a run, for `run` and `trace`. The page can show several runs next to each other.

use std::path::PathBuf;

use anyhow::{Context, Result, anyhow, bail};
use clap::{Args as _, Command, FromArgMatches as _};
use reconverge_workbench::report::{Bounds, Report, Subject, page};

use crate::files;
use crate::interrupt;
use crate::launch::{LaunchArgs, Ready};
use crate::messages::{self, note};

/// The page that displays reports. `npm run build` in viewer/ creates this page.
const PAGE: &str = include_str!("../assets/report.html");

/// Maximum size of a page in bytes.
const BYTES: usize = 10_000_000;

/// Maximum number of runs in one page.
const RUNS: usize = 3;

/// Options for a page that shows the run.
#[derive(clap::Args)]
pub(crate) struct PageArgs {
    /// Write a page that shows the run: program, counts, a timeline of all lanes, registers, and why each lane waits
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Show another launch next to this launch in the page. LAUNCH is one argument with the file and the options of the
    /// other launch: 'other.s --lanes 8'. Can be given twice
    #[arg(long, value_name = "LAUNCH", requires = "html")]
    beside: Vec<String>,
    /// Maximum number of steps of each run in the page
    #[arg(long, value_name = "N", default_value_t = Bounds::default().steps, hide_default_value = true)]
    steps: usize,
    /// Maximum size of the page in bytes. If the page would be larger, it omits registers first and then steps
    #[arg(long, value_name = "BYTES", default_value_t = BYTES, hide_default_value = true)]
    page_limit: usize,
}

impl PageArgs {
    /// Reports that the page was not written because Ctrl-C interrupted the command.
    pub(crate) fn say_interrupted(&self) {
        if let Some(file) = &self.html {
            let file = crate::shown::path(&file);
            tell!("{file}: interrupted: the page is not written; use --watchdog N to end a run with a page");
        }
    }

    /// Records the launches and writes the page. If Ctrl-C interrupts the recording, the page is not written. Returns
    /// the trap of the first launch. `mismatches` are the expectations that the first launch did not meet.
    pub(crate) fn write(&self, ready: &Ready, mismatches: &[String]) -> Result<Option<String>> {
        let Some(file) = &self.html else { return Ok(None) };
        if self.beside.len() >= RUNS {
            bail!("--beside: expected at most {RUNS} runs in one page, found {}", self.beside.len() + 1);
        }
        let others: Vec<Ready> = self.beside.iter().map(|text| launch(text)).collect::<Result<_>>()?;
        let count = others.len() + 1;
        let room = self.page_limit.checked_sub(PAGE.len()).ok_or_else(|| {
            anyhow!(
                "--page-limit {}: expected more than {} bytes, the size of the page without a run",
                self.page_limit,
                PAGE.len()
            )
        })?;
        let whole = Bounds::default();
        let bounds = Bounds {
            steps: self.steps,
            values: whole.values / count,
            bytes: (room / count).saturating_sub(2),
        };
        let progress = messages::spinner("recording");
        let mut reports = Vec::new();
        for ready in std::iter::once(ready).chain(&others) {
            let subject = Subject {
                title: &ready.title,
                opened: &ready.opened,
                program: ready.program(),
                source: ready.opened.source.as_deref(),
            };
            let report = Report::of(subject, &ready.session, &ready.options, bounds);
            let report = report.map_err(|error| anyhow!("{}: {error}", ready.title))?;
            let place = crate::shown::path(&file);
            report.notes().iter().for_each(|text| note(&format!("{place}: {}: {text}", ready.title)));
            reports.push(report);
        }
        progress.finish_and_clear();
        if interrupt::asked() {
            self.say_interrupted();
            files::leave(interrupt::STATUS);
        }
        reports[0].mismatched(mismatches);
        let page = page(PAGE, &reports).map_err(|why| anyhow!(why))?;
        files::write(file, page.as_bytes())?;
        for (ready, report) in others.iter().zip(&reports[1..]) {
            report.trap().into_iter().for_each(|trap| tell!("{}: {trap}", ready.title));
        }
        Ok(reports[0].trap().map(str::to_owned))
    }
}

/// Returns the launch that `--beside` describes.
fn launch(text: &str) -> Result<Ready> {
    let place = || format!("--beside '{text}'");
    let words = shlex::split(text).ok_or_else(|| anyhow!("{}: missing closing quotation mark", place()))?;
    let command = LaunchArgs::augment_args(Command::new("--beside").no_binary_name(true));
    let matches = command.try_get_matches_from(words).map_err(|error| {
        let text = error.to_string();
        anyhow!("{}", text.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned())
    });
    let matches = matches.with_context(place)?;
    let args = LaunchArgs::from_arg_matches(&matches).with_context(place)?;
    args.ready(&matches).with_context(place)
}
