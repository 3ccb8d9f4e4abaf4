//! `reconverge webgl`
//!
//! Runs files of Khronos' WebGL conformance suite in Chromium, on an emulated chip and on llvmpipe, and compares
//! their assertions. [`suite`] selects the files, [`server`] sends them to a page in the browser, [`browser`] runs
//! the browser, and [`verdict`] compares the results.

#[cfg(all(target_os = "linux", feature = "webgl"))]
mod browser;
#[cfg(all(target_os = "linux", feature = "webgl"))]
mod runner;
#[cfg(all(target_os = "linux", feature = "webgl"))]
mod server;
#[cfg(all(target_os = "linux", feature = "webgl"))]
mod suite;
#[cfg(all(target_os = "linux", feature = "webgl"))]
mod verdict;

use std::path::PathBuf;

use anyhow::Result;
use regex_lite::Regex;

use crate::args::Answer;
use crate::drm::ErrataArgs;
use crate::timeout::Seconds;

/// Run Khronos' WebGL conformance suite in Chromium on an emulated chip, and compare with llvmpipe
///
/// Every file runs twice in the same headless Chromium: on Mesa's driver and the emulated chip, and on llvmpipe. The
/// assertions that fail only on the chip are printed, and the exit status is 1 if there are any.
#[derive(clap::Args)]
pub(crate) struct Webgl {
    /// The chip, a board's name or its PCI id, for instance rv770
    #[arg(long, value_name = "NAME")]
    chip: String,
    #[command(flatten)]
    errata: ErrataArgs,
    /// A checkout of github.com/KhronosGroup/WebGL, or a folder in it with a 00_test_list.txt
    #[arg(long, value_name = "DIR")]
    suite: PathBuf,
    /// The version of WebGL
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u8).range(1..=2))]
    version: u8,
    /// Only files whose name matches, for instance `^conformance/textures/`
    #[arg(long, value_name = "REGEX")]
    tests: Option<Regex>,
    /// Run a sample of N files, chosen by the seed
    #[arg(long, value_name = "N")]
    sample: Option<usize>,
    /// The seed of --sample
    #[arg(long, value_name = "S", default_value_t = 0)]
    seed: u64,
    /// The program of Chromium
    #[arg(long, value_name = "PROGRAM", default_value = "chromium")]
    browser: PathBuf,
    /// Bound the time of each file
    #[arg(long, value_name = "SECONDS", default_value = "60")]
    timeout: Seconds,
    /// Below this folder is the build of Mesa to take instead of the installed one: unpacked packages, or an installation
    #[arg(long, value_name = "DIR")]
    driver: Option<PathBuf>,
    /// Write chip.jsonl and control.jsonl into this folder: a line for each file with its assertions, equal ones once
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// One JSON object on standard output
    #[arg(long)]
    json: bool,
}

#[cfg(all(target_os = "linux", feature = "webgl"))]
pub(crate) fn run(args: &Webgl) -> Result<Answer> {
    runner::run(args)
}

#[cfg(all(target_os = "linux", not(feature = "webgl")))]
pub(crate) fn run(_args: &Webgl) -> Result<Answer> {
    anyhow::bail!(crate::features::missing("`reconverge webgl`", "webgl"))
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn run(_args: &Webgl) -> Result<Answer> {
    anyhow::bail!("webgl: only on Linux, whose graphics drivers these are")
}
