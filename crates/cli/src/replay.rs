//! `reconverge replay`
//!
//! Replays a trace of apitrace on an emulated chip and on a software renderer. Finds the first frame and the first draw
//! with different pictures. The command starts in [`search`]. [`trace_file`] reads the trace with `apitrace`.
//! [`retracer`] runs a replay and returns the pictures of the replay. [`picture`] compares pictures. [`capture`] finds
//! the launch files of a draw.

#[cfg(target_os = "linux")]
mod answer;
#[cfg(target_os = "linux")]
mod capture;
#[cfg(target_os = "linux")]
mod picture;
#[cfg(target_os = "linux")]
mod retracer;
#[cfg(target_os = "linux")]
mod search;
#[cfg(target_os = "linux")]
mod trace_file;

use std::ops::RangeInclusive;
use std::path::PathBuf;

use anyhow::Result;
use clap::ValueEnum;
use reconverge_board::patch::Patch;

use crate::args::Answer;
use crate::drm::{ErrataArgs, Shaders};

/// Replay a trace of apitrace on an emulated chip, and find the first draw whose picture differs from llvmpipe's
///
/// The trace is replayed by Mesa's unmodified driver on the chip, and by llvmpipe. The command prints the first frame
/// that differs, then the first draw in this frame after which the pictures differ. A pixel agrees if every channel
/// is within 1/255 of llvmpipe's pixel at this position or at one of the eight around it. The exit status is 1 if a
/// frame differs.
#[derive(clap::Args)]
pub(crate) struct Replay {
    /// A trace of OpenGL or OpenGL ES, written by `apitrace trace`
    trace: PathBuf,
    /// The chip: its name, a board's name or a PCI ID, for instance rv770
    #[arg(long, value_name = "NAME")]
    chip: String,
    /// The renderer whose pictures are compared with the chip's pictures
    #[arg(long, value_name = "RENDERER", default_value = "llvmpipe")]
    compare: Reference,
    /// Compare only these frames, numbered from 0: N or N-M. Earlier frames are replayed, but not compared
    #[arg(long, value_name = "N-M", value_parser = frames)]
    frames: Option<RangeInclusive<usize>>,
    /// Compare every frame; do not stop at the first frame that differs
    #[arg(long)]
    all: bool,
    /// Accept differences of a channel up to N steps of 1/255
    #[arg(long, value_name = "N", default_value_t = 1)]
    tolerance: u8,
    /// Accept up to N pixels of a picture that differ (default: one in 10,000)
    #[arg(long, value_name = "N")]
    pixels: Option<u64>,
    #[command(flatten)]
    errata: ErrataArgs,
    #[command(flatten)]
    shaders: Shaders,
    /// Replace words of shaders before the chip runs them, like `drm --patch`
    #[arg(long, value_name = "OLD:NEW")]
    patch: Option<Patch>,
    /// Folder of a build of Mesa to use instead of the installed build, for the chip and for the other renderer
    #[arg(long, value_name = "DIR")]
    driver: Option<PathBuf>,
    /// Write the pictures that differ, and the launch files of the first draw that differs, into this folder, which
    /// must be new or empty
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Open the debugger at the first pixel that differs
    #[arg(long, conflicts_with = "json")]
    debug: bool,
    /// One JSON object on standard output
    #[arg(long)]
    json: bool,
}

/// The renderer that the chip's pictures are compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Reference {
    /// Mesa's renderer that compiles shaders for the processor
    Llvmpipe,
    /// Mesa's renderer that interprets shaders
    Softpipe,
    /// No renderer: the trace is replayed on the chip and timed
    None,
}

/// Parses `N` or `N-M`.
fn frames(text: &str) -> Result<RangeInclusive<usize>, String> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let number = |text: &str| text.trim().parse::<usize>().ok();
    match (number(first), number(last)) {
        (Some(first), Some(last)) if first <= last => Ok(first..=last),
        _ => Err("expected N or N-M, for instance 3 or 0-9".to_owned()),
    }
}

#[cfg(target_os = "linux")]
pub(crate) fn run(args: &Replay) -> Result<Answer> {
    search::run(args)
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn run(_args: &Replay) -> Result<Answer> {
    anyhow::bail!("replay is available only on Linux, because it runs Linux graphics drivers")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_one_or_a_range() {
        assert_eq!((frames("3"), frames("0-9")), (Ok(3..=3), Ok(0..=9)));
        for wrong in ["", "-", "3-2", "a", "1-", "-1", "99999999999999999999"] {
            assert!(frames(wrong).is_err(), "{wrong}");
        }
    }
}
