//! `reconverge webgl`
//!
//! Runs files of Khronos' WebGL conformance suite in Chromium. Each file runs on an emulated chip and on llvmpipe. The
//! command compares the results of the file's assertions. [`suite`] selects the files, and [`server`] sends the files
//! to a page in the browser. [`browser`] runs the browser, and [`verdict`] compares the results.

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

/// Run Khronos' WebGL conformance suite in Chromium on an emulated chip, and compare the results with llvmpipe's
///
/// Every file runs twice in the same headless Chromium: on Mesa's driver and the emulated chip, and on llvmpipe. The
/// command prints the assertions that fail only on the chip. The exit status is 1 if there are any.
#[derive(clap::Args)]
pub(crate) struct Webgl {
    /// The chip: its name, a board's name or a PCI ID, for instance rv770
    #[arg(long, value_name = "NAME")]
    chip: String,
    #[command(flatten)]
    errata: ErrataArgs,
    /// Checkout of github.com/KhronosGroup/WebGL, or a folder in it with a 00_test_list.txt
    #[arg(long, value_name = "DIR")]
    suite: PathBuf,
    /// Version of WebGL
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u8).range(1..=2))]
    version: u8,
    /// Run only files whose name matches REGEX, for instance `^conformance/textures/`
    #[arg(long, value_name = "REGEX")]
    tests: Option<Regex>,
    /// Run only N of the files, selected by --seed
    #[arg(long, value_name = "N")]
    sample: Option<usize>,
    /// Seed that selects the files of --sample
    #[arg(long, value_name = "S", default_value_t = 0)]
    seed: u64,
    /// Executable of Chromium
    #[arg(long, value_name = "PROGRAM", default_value = "chromium")]
    browser: PathBuf,
    /// Stop a file after this time
    #[arg(long, value_name = "SECONDS", default_value = "60")]
    timeout: Seconds,
    /// Folder of a build of Mesa to use instead of the installed build: unpacked packages, or an installation prefix
    #[arg(long, value_name = "DIR")]
    driver: Option<PathBuf>,
    /// Write chip.jsonl and control.jsonl into this folder. Each line has the assertions of one file of the suite,
    /// without duplicates
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
    anyhow::bail!("webgl is available only on Linux, because it runs Linux graphics drivers")
}
