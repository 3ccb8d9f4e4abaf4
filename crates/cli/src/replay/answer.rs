//! The result of a comparison, as JSON and as text.

use std::collections::BTreeMap;

use serde::Serialize;

use super::picture::{PictureDifference, PixelCounts, PixelPair};
use crate::messages::counted;

/// The output of `--json`.
#[derive(Debug, Serialize)]
pub(super) struct ReplayAnswer {
    pub(super) trace: String,
    pub(super) api: String,
    pub(super) chip: &'static str,
    /// The renderer whose pictures are compared with the chip's pictures.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reference: Option<&'static str>,
    /// Number of frames in the trace.
    pub(super) frames: usize,
    /// Number of compared frames.
    pub(super) compared: u64,
    /// Number of compared frames that differ.
    pub(super) differ: u64,
    /// Pixel counts over all compared frames.
    pub(super) pixels: PixelCounts,
    /// Two pictures count as equal if at most this number of pixels differ.
    pub(super) tolerated: u64,
    pub(super) first_frame: Option<DifferentFrame>,
    /// Number of draws whose pictures were compared. The compared draws are the draws of the first frame that differs.
    /// If the trace does not have frames, all draws of the trace are compared.
    pub(super) draws: u64,
    /// Number of draws after which the pictures differ.
    pub(super) draws_differ: u64,
    pub(super) first_draw: Option<DifferentDraw>,
    pub(super) captured: Option<CapturedCall>,
    /// Duration of a replay without a comparison, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) seconds: Option<f64>,
    pub(super) resets: u64,
    /// Features that the chip does not have, each with the number of uses.
    pub(super) unknown: BTreeMap<String, u64>,
    /// Warnings and errors that occur only in the replay on the chip.
    pub(super) only_on_chip: Vec<String>,
}

/// A frame that differs.
#[derive(Debug, Serialize)]
pub(super) struct DifferentFrame {
    pub(super) frame: usize,
    pub(super) call: u64,
    pub(super) function: String,
    pub(super) size: [usize; 2],
    #[serde(flatten)]
    pub(super) difference: PictureDifference,
}

/// A draw after which the pictures differ.
#[derive(Debug, Serialize)]
pub(super) struct DifferentDraw {
    pub(super) call: u64,
    pub(super) text: String,
    pub(super) size: [usize; 2],
    #[serde(flatten)]
    pub(super) difference: PictureDifference,
}

/// The chip's draws for a call of the trace.
#[derive(Debug, Serialize)]
pub(super) struct CapturedCall {
    /// Numbers of the draws that the driver submitted for the call.
    pub(super) draws: Vec<u64>,
    /// The pixel in the coordinates of launch files.
    pub(super) pixel: [usize; 2],
    /// Whether a captured draw covers the pixel.
    pub(super) is_covered: bool,
    /// The launch file of the last draw that covers the pixel. If no draw covers the pixel, the field names the launch
    /// file for the vertices of the last draw.
    pub(super) file: Option<String>,
    /// The command that opens the debugger with this launch file.
    pub(super) command: Option<String>,
}

/// Prints the answer as text.
pub(super) fn show(found: &ReplayAnswer) {
    let chip = found.chip;
    if let Some(seconds) = found.seconds {
        let frames = counted(found.frames as u64, "frame");
        say!("{frames} in {seconds:.2} s, {:.2} frames/s", found.frames as f64 / seconds.max(1e-9));
        return;
    }
    let reference = found.reference.unwrap_or_default();
    if let Some(frame) = &found.first_frame {
        let DifferentFrame { frame, call, function, size, difference } = frame;
        say!("frame {frame}, call {call} {function}: {}", pixels(difference, *size));
        colours(&difference.first, chip, reference);
    }
    if let Some(draw) = &found.first_draw {
        let DifferentDraw { call, text, size, difference } = draw;
        say!("draw, call {call}: {}", pixels(difference, *size));
        say!("  {}", crate::shown::name(text));
        colours(&difference.first, chip, reference);
    } else if found.first_frame.is_some() {
        say!(
            "no draw of the frame differs ({} agree); a call after the last draw causes the difference",
            counted(found.draws, "picture")
        );
    }
    if let Some(captured) = &found.captured {
        let [x, y] = captured.pixel;
        match captured.draws.len() {
            0 => say!("the driver submitted no draw for this call"),
            _ if captured.is_covered => {}
            1 => say!("the driver's draw for this call does not cover pixel {x},{y}"),
            count => say!("none of the driver's {count} draws for this call covers pixel {x},{y}"),
        }
        if let Some(command) = &captured.command {
            say!("debugger: {command}");
        }
    }
    if found.frames > 0 {
        let frames = counted(found.compared, "frame");
        match found.differ {
            0 => say!("{frames} compared, all agree"),
            differ => say!("{frames} compared, {differ} differ"),
        }
        shares(found.pixels);
    }
    if found.draws > 0 {
        let in_frame = if found.frames > 0 { " in the frame" } else { "" };
        let draws = counted(found.draws, "draw");
        match found.draws_differ {
            0 => say!("{draws}{in_frame} compared, all agree"),
            differ => say!("{draws}{in_frame} compared, {differ} differ"),
        }
    }
}

/// Prints the percentage of pixels in each class, over all frames.
fn shares(pixels: PixelCounts) {
    let PixelCounts { agree, at_edges, near, rest } = pixels;
    let all = (agree + at_edges + near + rest).max(1) as f64;
    let [agree, at_edges, near, rest] = [agree, at_edges, near, rest].map(|count| 100. * count as f64 / all);
    say!(
        "pixels: {agree:.3} % agree, {at_edges:.3} % at edges, {near:.3} % within 16/255, {rest:.3} % by more"
    );
}

/// Returns a text with the number of different pixels and the rectangle that contains these pixels.
fn pixels(difference: &PictureDifference, [width, height]: [usize; 2]) -> String {
    let PictureDifference { pixels, worst, x, y, .. } = difference;
    let verb = if *pixels == 1 { "differs" } else { "differ" };
    format!(
        "{} of {} {verb}, by up to {worst}/255, in {},{} to {},{}",
        counted(*pixels, "pixel"),
        width * height,
        x[0],
        y[0],
        x[1],
        y[1]
    )
}

/// Prints the colours of the first pixel that differs.
fn colours(first: &PixelPair, chip: &str, reference: &str) {
    let PixelPair { x, y, chip: ours, reference: theirs } = first;
    say!("  first at {x},{y}: {chip} {}, {reference} {}", colour(*ours), colour(*theirs));
}

fn colour([red, green, blue]: [u8; 3]) -> String {
    format!("{red} {green} {blue}")
}
