//! `reconverge piglit`
//!
//! Runs piglit's shader tests on Mesa's driver and an emulated chip. A second run is the *control*, in which the chip
//! does not execute shaders. If a test also passes in the control, the result of the test does not depend on the chip.
//! If the user names a profile of piglit, the command runs all tests of this profile and not the shader tests.
//!
//! The command starts in [`runner`]. [`choice`] and [`profile`] list the tests. [`groups`] divides the tests among
//! processes, and [`process`] runs one process. [`against`] compares the results with a list of results from a real
//! chip.

#[cfg(target_os = "linux")]
mod against;
#[cfg(target_os = "linux")]
mod choice;
#[cfg(target_os = "linux")]
mod compare;
#[cfg(target_os = "linux")]
mod groups;
#[cfg(target_os = "linux")]
mod lists;
#[cfg(target_os = "linux")]
mod literal;
#[cfg(target_os = "linux")]
mod outcome;
#[cfg(target_os = "linux")]
mod process;
#[cfg(target_os = "linux")]
mod profile;
#[cfg(target_os = "linux")]
mod runner;
#[cfg(target_os = "linux")]
mod test;

use std::path::PathBuf;

use anyhow::Result;
use regex_lite::Regex;

use crate::args::Answer;
use crate::drm::{ErrataArgs, Shaders};
use crate::part::Part;
use crate::timeout::Seconds;

/// Run piglit's GLSL 1.10 to 1.30 execution tests, or its profiles, on Mesa's driver and an emulated chip
///
/// Every test runs twice: once on the chip, and once as a control in which nothing is executed. With --profile, tests
/// run once. Names and lists have the forms of deqp-runner. The files of Debian's package `piglit` are sufficient.
#[derive(clap::Args)]
pub(crate) struct Piglit {
    /// The chip: its name, a board's name or a PCI ID, for instance rv770
    #[arg(long, value_name = "NAME")]
    chip: String,
    #[command(flatten)]
    errata: ErrataArgs,
    #[command(flatten)]
    shaders: Shaders,
    /// Run all tests of a profile of piglit, for instance quick_gl, quick_shader or all. The control does not run,
    /// unless --control is given
    #[arg(long, value_name = "NAME", conflicts_with = "compare")]
    profile: Option<String>,
    /// Compare the results with a list of tests that fail on a real chip. Each line of FILE is NAME,STATUS or NAME, as
    /// in Mesa's *-fails.txt
    #[arg(long, value_name = "FILE", requires = "profile")]
    against: Option<PathBuf>,
    /// Run the tests of the profile a second time, as a control, on a chip that does not execute any command
    #[arg(long, requires = "profile")]
    control: bool,
    /// Run only tests whose name matches REGEX, for instance `glsl-1.20@.*clip`
    #[arg(long, value_name = "REGEX")]
    tests: Option<Regex>,
    /// Run only N of the tests, selected by --seed
    #[arg(long, value_name = "N")]
    sample: Option<usize>,
    /// Seed that selects the tests of --sample
    #[arg(long, value_name = "S", default_value_t = 0)]
    seed: u64,
    /// Run only part K of N parts of the tests. The first part is 1
    #[arg(long, value_name = "K/N")]
    shard: Option<Part>,
    /// List of known failures. Each line of FILE is NAME,STATUS. A failure in FILE does not affect the exit status. A
    /// test in FILE that passes counts as a failure
    #[arg(long, value_name = "FILE")]
    baseline: Option<PathBuf>,
    /// Number of tests that run at the same time (default: one per processor)
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
    /// Run one test per process (default: up to 50 tests share a process, and the tests that do not pass run again
    /// alone)
    #[arg(long)]
    isolate: bool,
    /// Folder of a build of Mesa to use instead of the installed build: unpacked packages, or an installation prefix
    #[arg(long, value_name = "DIR")]
    driver: Option<PathBuf>,
    /// Compare two builds of Mesa instead of running a control. A and B are folders as in --driver, or `installed`. For
    /// each test whose verdict or surfaces differ, the command prints the first draw that differs, with the pixels and
    /// the shaders of this draw
    #[arg(long, num_args = 2, value_names = ["A", "B"], conflicts_with_all = ["driver", "baseline", "resume", "output"])]
    compare: Option<Vec<PathBuf>>,
    /// Stop a test after this time
    #[arg(long, value_name = "SECONDS", default_value = "60")]
    timeout: Seconds,
    /// Folder of piglit (default: the folder of Debian's package)
    #[arg(long, value_name = "DIR")]
    piglit: Option<PathBuf>,
    /// Write results.csv, control.csv, failures.csv and junit.xml into this folder. results.csv and control.csv are
    /// updated after each test. Without a control, control.csv is not written
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Do not run the tests whose results are already in results.csv and control.csv of the folder
    #[arg(long, requires = "output")]
    resume: bool,
    /// One JSON object on standard output
    #[arg(long)]
    json: bool,
}

#[cfg(target_os = "linux")]
pub(crate) fn run(args: &Piglit) -> Result<Answer> {
    if let Some(drivers) = &args.compare {
        return compare::run(args, drivers);
    }
    runner::run(args)
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn run(_args: &Piglit) -> Result<Answer> {
    anyhow::bail!("piglit is available only on Linux, because it runs Linux graphics drivers")
}
