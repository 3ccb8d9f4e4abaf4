//! The search first compares frames. The search then compares the draws of the first frame that differs. Finally, the
//! search captures the launch files of the first draw that differs.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use reconverge_output::random_name;

use super::answer::{CapturedCall, DifferentDraw, DifferentFrame, ReplayAnswer, show};
use super::capture;
use super::picture::{Picture, PictureDifference, PixelCounts, compare};
use super::retracer::{Renderer, ReplayedCalls, Retracer, of_calls, of_library};
use super::trace_file::{TraceFile, TracedCall, TracedFrame};
use super::{Reference, Replay};
use crate::args::Answer;
use crate::drm::host::{Report, Seen, empty_folder};
use crate::drm::setup::{Build, Setup};
use crate::drm::{board, named_counts};
use crate::messages::{answer_as, bar, counted, note};
use crate::{files, interrupt};

/// Two pictures count as equal if the share of different pixels is at most 1 / `TOLERATED`. Some edges pass close to
/// the centre of a pixel. At such an edge, the two renderers may round to different sides of the edge. The pixel then
/// has different colours. In some of these cases, no neighbouring pixel has the colour that the second renderer draws.
const TOLERATED: u64 = 10_000;
/// Maximum number of messages that are shown.
const SHOWN: usize = 5;

pub(super) fn run(args: &Replay) -> Result<Answer> {
    let board = board(&args.chip)?;
    args.errata.check(board)?;
    let recording = TraceFile::open(&args.trace)?;
    let frames = chosen(args, &recording)?;
    if let Some(warning) = &recording.warning {
        tell!("warning: {}: {warning}", crate::shown::path(&args.trace));
    }
    let unused = [("--debug", args.debug), ("--output", args.output.is_some()), ("--all", args.all)];
    if let (Reference::None, Some((option, _))) = (args.compare, unused.into_iter().find(|(_, given)| *given))
    {
        bail!("{option}: not for --compare none, which does not compare pictures");
    }
    let reference = match args.compare {
        Reference::Llvmpipe => Some("llvmpipe"),
        Reference::Softpipe => Some("softpipe"),
        Reference::None => None,
    };
    let driver = args.driver.as_deref().map(Build::new).transpose()?.flatten();
    let setup = Setup::new(board, true, driver)?.with_errata(&args.errata).with(&args.shaders)?;
    let output = args.output.as_deref().map(|folder| empty_folder("--output", folder)).transpose()?;
    setup.check_renderer()?;
    if let Some(reference) = reference {
        setup.check_software(reference)?;
    }
    interrupt::watch();
    let search = Search {
        args,
        recording: &recording,
        chip: Renderer { setup: &setup, name: board.chip, is_software: false },
        reference: Renderer { setup: &setup, name: reference.unwrap_or_default(), is_software: true },
        output: output.as_deref(),
        folder: Temporary::new()?,
        replays: Cell::new(0),
    };
    let mut found = ReplayAnswer {
        trace: crate::shown::path(&args.trace),
        api: recording.api.clone(),
        chip: board.chip,
        reference,
        frames: recording.frames.len(),
        compared: 0,
        differ: 0,
        pixels: PixelCounts::default(),
        tolerated: 0,
        first_frame: None,
        draws: 0,
        draws_differ: 0,
        first_draw: None,
        captured: None,
        seconds: None,
        resets: 0,
        unknown: BTreeMap::new(),
        only_on_chip: Vec::new(),
    };
    let replayed = match reference {
        Some(_) => search.compared(frames, &mut found),
        None => search.timed(&mut found),
    };
    if let Err(why) = replayed {
        return Err(match remedy(&recording.failed_contexts().unwrap_or_default()) {
            Some(remedy) => anyhow::anyhow!("{why:#}\n{remedy}"),
            None => why,
        });
    }
    if interrupt::asked() {
        tell!("interrupted");
        return Ok(Answer::Status(interrupt::STATUS as u8));
    }
    answer_as(args.json, &found, show);
    told(&found);
    if let Some(captured) = found.captured.as_ref().filter(|_| args.debug) {
        match &captured.file {
            Some(file) => debug(file, captured.pixel, captured.is_covered)?,
            None => bail!("--debug: no launch of the call was captured"),
        }
    }
    let agrees = found.differ == 0 && found.draws_differ == 0;
    Ok(if agrees { Answer::Yes } else { Answer::No })
}

/// Returns the frames to compare. For a trace without frames, the result is empty.
fn chosen<'a>(args: &Replay, recording: &'a TraceFile) -> Result<&'a [TracedFrame]> {
    let frames = &recording.frames;
    let Some(range) = &args.frames else { return Ok(frames) };
    let spelled = format!("--frames {}-{}", range.start(), range.end());
    match frames.get(range.clone()) {
        Some(chosen) => Ok(chosen),
        None if frames.is_empty() => bail!("{spelled}: the trace does not contain a frame"),
        None => bail!("{spelled}: the trace has frames 0 to {}", frames.len() - 1),
    }
}

/// Returns a command that removes the failed calls from the trace. These calls failed to create a context when the
/// trace was recorded. For example, a program makes such calls if it tries several versions of OpenGL. If one of these
/// calls fails again in a replay, apitrace ends the replay.
fn remedy(failed: &[TracedCall]) -> Option<String> {
    let first = failed.first()?;
    let starts = std::iter::once(0).chain(failed.iter().map(|call| call.number + 1));
    let ends = failed.iter().map(|call| Some(call.number)).chain([None]);
    let kept: Vec<String> = starts
        .zip(ends)
        .filter(|(start, end)| end.is_none_or(|end| *start < end))
        .map(|(start, end)| format!("{start}-{}", end.map(|end| (end - 1).to_string()).unwrap_or_default()))
        .collect();
    Some(format!(
        "call {} {} failed when the trace was recorded, and apitrace cannot replay such a call; `apitrace trim --calls={} -o COPY FILE` \
         removes it",
        first.number,
        first.function(),
        kept.join(",")
    ))
}

/// A call after which the two pictures differ.
struct Different {
    call: u64,
    size: [usize; 2],
    difference: PictureDifference,
}

/// The result of comparing the pictures of two replays.
#[derive(Default)]
struct Pass {
    /// Calls whose pictures were compared.
    calls: BTreeSet<u64>,
    differ: u64,
    pixels: PixelCounts,
    first: Option<Different>,
    /// Whether the comparison ended at the first difference.
    is_cut: bool,
}

struct Search<'a> {
    args: &'a Replay,
    recording: &'a TraceFile,
    chip: Renderer<'a>,
    reference: Renderer<'a>,
    output: Option<&'a Path>,
    folder: Temporary,
    /// Number of replays so far. The names of the message files contain this number.
    replays: Cell<u32>,
}

impl Search<'_> {
    /// Finds the first frame and the first draw that differ.
    fn compared(&self, frames: &[TracedFrame], found: &mut ReplayAnswer) -> Result<()> {
        let last = frames.last().map(|frame| *frame.calls.end());
        let draws = match (frames.first(), last) {
            (Some(first), Some(last)) => {
                let set = format!("{}-{last}/frame", first.calls.start());
                let pass = self.pass(&set, last + 1, self.args.all, frames.len(), found)?;
                found.compared = pass.calls.len() as u64;
                (found.differ, found.pixels) = (pass.differ, pass.pixels);
                self.check_pictures(frames, &pass);
                let Some(different) = pass.first else { return Ok(()) };
                let at = frames.iter().find(|frame| *frame.calls.end() == different.call);
                let frame = at.with_context(|| format!("call {} does not show a frame", different.call))?;
                found.first_frame = Some(DifferentFrame {
                    frame: frame.number,
                    call: different.call,
                    function: frame.shown_by.clone(),
                    size: different.size,
                    difference: different.difference,
                });
                frame.calls.clone()
            }
            _ => {
                let draws = self.recording.calls("*/draw", None)?;
                let Some(last) = draws.last() else {
                    bail!("{}: the trace does not contain a frame or a draw", found.trace);
                };
                let count = counted(draws.len() as u64, "draw");
                note(&format!(
                    "{}: the trace does not contain a frame; pictures are taken after each of its {count}",
                    found.trace
                ));
                0..=last.number
            }
        };
        if interrupt::asked() {
            return Ok(());
        }
        let (start, end) = draws.into_inner();
        let set = format!("{start}-{end}/draw");
        let pass = self.pass(&set, end + 1, true, 0, found)?;
        (found.draws, found.draws_differ) = (pass.calls.len() as u64, pass.differ);
        let all = self.recording.calls(&set, None)?;
        let without: Vec<&TracedCall> =
            all.iter().filter(|call| !pass.calls.contains(&call.number)).collect();
        if let (Some(first), false) = (without.first(), interrupt::asked()) {
            let count = counted(without.len() as u64, "draw");
            note(&format!(
                "{count} without a picture on either renderer; the first is call {} {}",
                first.number,
                first.function()
            ));
        }
        if frames.is_empty() && pass.calls.is_empty() {
            bail!("{}: no draw of the trace produces a picture", found.trace);
        }
        let Some(Different { call, size, difference }) = pass.first else { return Ok(()) };
        let (x, y) = (difference.first.x, difference.first.y);
        let text = self.recording.call(call)?.text;
        found.first_draw = Some(DifferentDraw { call, text, size, difference });
        if (self.output.is_some() || self.args.debug) && !interrupt::asked() {
            let window = self.recording.draws_into_window(call)?;
            let pixel = if window { [x, y] } else { [x, size[1] - 1 - y] };
            found.captured = Some(self.captured(call, pixel)?);
        }
        Ok(())
    }

    /// Replays the trace on both renderers up to the call `end`, and compares the pictures after the calls in `set`.
    /// Unless `all` is set, the function ends at the first difference.
    fn pass(&self, set: &str, end: u64, all: bool, count: usize, found: &mut ReplayAnswer) -> Result<Pass> {
        let mut report = Report::new()?;
        let calls = ReplayedCalls { pictures: Some(set), end };
        let mut chip = self.start(&self.chip, calls, &report, &[])?;
        let mut reference = self.start(&self.reference, calls, &report, &[])?;
        let what = if count > 0 { "frames" } else { "draws" };
        let form = format!("{{bar:40}} {{pos}}/{{len}} {what} {{elapsed}}, {{eta}} left");
        let progress = bar((count > 0).then_some(count as u64), &form);
        let mut pass = Pass::default();
        while !interrupt::asked() {
            let (call, ours, theirs) = match (reference.next()?, chip.next()?) {
                (None, None) => break,
                (Some((call, theirs)), Some((other, ours))) if call == other => (call, ours, theirs),
                (theirs, ours) => return Err(self.missing([&ours, &theirs], &chip, &reference)),
            };
            let sizes = [&ours, &theirs].map(|picture| [picture.width, picture.height]);
            if let [[width, height], [w, h]] = sizes
                && sizes[0] != sizes[1]
            {
                let (chip, reference) = (self.chip.name, self.reference.name);
                bail!(
                    "call {call}: the picture has {width}x{height} pixels on {chip}, but {w}x{h} on {reference}"
                );
            }
            pass.calls.insert(call);
            progress.inc(1);
            let compared = compare(&ours, &theirs, self.args.tolerance, &mut pass.pixels);
            let Some(difference) = compared else { continue };
            let tolerated = self.args.pixels.unwrap_or(ours.count() / TOLERATED);
            if difference.pixels <= tolerated {
                found.tolerated = found.tolerated.max(difference.pixels);
                continue;
            }
            pass.differ += 1;
            if what == "frames" || pass.first.is_none() {
                self.write(what, call, &ours, &theirs)?;
            }
            pass.first.get_or_insert(Different { call, size: sizes[0], difference });
            if !all {
                pass.is_cut = true;
                break;
            }
        }
        progress.finish_and_clear();
        let messages = [chip.messages(), reference.messages()];
        // Dropping these values ends the replays. A replay that ends early has not written a final report.
        drop((chip, reference));
        self.reported(&mut report, &messages, found)?;
        if pass.is_cut {
            note("the search ended at the first frame that differs; --all compares every frame");
        }
        Ok(pass)
    }

    /// Returns the error for a call after which one renderer has a picture and the other renderer has no picture.
    fn missing(
        &self,
        [ours, theirs]: [&Option<(u64, Picture)>; 2],
        chip: &Retracer,
        reference: &Retracer,
    ) -> anyhow::Error {
        let call = |side: &Option<(u64, Picture)>| side.as_ref().map_or(u64::MAX, |(call, _)| *call);
        let on_chip = call(ours) < call(theirs);
        let (there, not, messages) = match on_chip {
            true => (self.chip.name, self.reference.name, reference.messages()),
            false => (self.reference.name, self.chip.name, chip.messages()),
        };
        let call = call(ours).min(call(theirs));
        let prefix = format!("{call}: ");
        let why = messages.lines().find(|line| line.starts_with(&prefix));
        let why = why.map(|line| format!(" ({line})")).unwrap_or_default();
        let frame = self.recording.frames.iter().find(|frame| *frame.calls.end() == call);
        let what = frame
            .map_or_else(|| format!("call {call}"), |frame| format!("frame {} (call {call})", frame.number));
        anyhow::anyhow!("{what}: a picture on {there}, but none on {not}{why}")
    }

    /// Reports frames for which neither renderer has a picture.
    fn check_pictures(&self, frames: &[TracedFrame], pass: &Pass) {
        let reached = pass.calls.last().copied().filter(|_| pass.is_cut).unwrap_or(u64::MAX);
        let ends = frames.iter().filter(|frame| *frame.calls.end() <= reached);
        let without: Vec<usize> =
            ends.filter(|frame| !pass.calls.contains(frame.calls.end())).map(|frame| frame.number).collect();
        if let (Some(first), false) = (without.first(), interrupt::asked()) {
            let count = counted(without.len() as u64, "frame");
            tell!("warning: {count} without a picture on either renderer; the first is frame {first}");
        }
    }

    /// Starts a replay.
    fn start(
        &self,
        renderer: &Renderer<'_>,
        calls: ReplayedCalls<'_>,
        report: &Report,
        others: &[(&str, OsString)],
    ) -> Result<Retracer> {
        let number = self.replays.get();
        self.replays.set(number + 1);
        let log = self.folder.0.join(format!("messages-{number}"));
        let mut variables = others.to_vec();
        if !renderer.is_software {
            variables.push(("RECONVERGE_DRM_REPORT", report.path.clone().into_os_string()));
            if let Some(patch) = &self.args.patch {
                variables.push(("RECONVERGE_DRM_PATCH", patch.to_string().into()));
            }
        }
        Retracer::start(renderer, self.recording, calls, log, &variables)
    }

    /// Adds the report of a replay on the chip. Also adds the messages that occur only in this replay.
    fn reported(
        &self,
        report: &mut Report,
        messages: &[String; 2],
        found: &mut ReplayAnswer,
    ) -> Result<Seen> {
        let seen = report.seen()?;
        found.resets = found.resets.max(seen.resets);
        for (name, count) in &seen.unknown {
            let most = found.unknown.entry(name.clone()).or_default();
            *most = (*most).max(*count);
        }
        let theirs: BTreeSet<&str> = of_calls(&messages[1]).into_iter().collect();
        let only = of_calls(&messages[0]).into_iter().filter(|line| !theirs.contains(line));
        let mut known: BTreeSet<String> = found.only_on_chip.iter().cloned().collect();
        for line in only.chain(of_library(&messages[0])) {
            if known.insert(line.to_owned()) {
                found.only_on_chip.push(line.to_owned());
            }
        }
        if let Some(patch) = self.args.patch.as_ref().filter(|_| seen.patched == 0 && seen.draws > 0) {
            tell!("warning: --patch {patch}: these words do not occur in any shader of a draw");
        }
        Ok(seen)
    }

    /// Writes two different pictures and their difference.
    fn write(&self, what: &str, call: u64, ours: &Picture, theirs: &Picture) -> Result<()> {
        let Some(folder) = self.output else { return Ok(()) };
        let name = match self.recording.frames.iter().find(|frame| *frame.calls.end() == call) {
            Some(frame) if what == "frames" => format!("frame-{:04}", frame.number),
            _ => format!("call-{call:06}"),
        };
        let pictures =
            [(self.chip.name, ours), (self.reference.name, theirs), ("difference", &ours.difference(theirs))];
        for (side, picture) in pictures {
            files::write(&folder.join(format!("{name}.{side}.ppm")), &picture.ppm())?;
        }
        Ok(())
    }

    /// Captures the draws that the driver submits for a call.
    fn captured(&self, call: u64, pixel: [usize; 2]) -> Result<CapturedCall> {
        let folder = self.output.unwrap_or(&self.folder.0).join("capture");
        let replay = |end, variables: &[(&str, OsString)]| {
            let mut report = Report::new()?;
            let mut retracer =
                self.start(&self.chip, ReplayedCalls { pictures: None, end }, &report, variables)?;
            retracer.said()?;
            report.seen()
        };
        let before = replay(call, &[])?.draws;
        let variables = [
            ("RECONVERGE_DRM_CAPTURE", folder.clone().into_os_string()),
            ("RECONVERGE_DRM_CAPTURE_FROM", (before + 1).to_string().into()),
        ];
        let seen = replay(call + 1, &variables)?;
        for (why, count) in &seen.uncaptured {
            tell!("warning: not captured, {}: {why}", counted(*count, "time"));
        }
        let draws = capture::draws(&folder);
        let covering = capture::covering(&draws, pixel)?;
        let vertices = draws.iter().rev().find_map(|draw| draw.vertices.as_deref());
        let command = |file: &Path| {
            let file = shlex::try_quote(&file.to_string_lossy())?.into_owned();
            let pixel = covering.map(|_| format!(" --pixel {},{}", pixel[0], pixel[1]));
            anyhow::Ok(format!("reconverge debug {file}{}", pixel.unwrap_or_default()))
        };
        let file = covering.or(vertices);
        Ok(CapturedCall {
            draws: draws.iter().map(|draw| draw.number).collect(),
            pixel,
            is_covered: covering.is_some(),
            file: file.map(|file| file.to_string_lossy().into_owned()),
            // If the user did not name a folder, the command is omitted, because the files are deleted at the end.
            command: file.filter(|_| self.output.is_some()).map(command).transpose()?,
        })
    }

    /// Replays on the chip only, and measures the time.
    fn timed(&self, found: &mut ReplayAnswer) -> Result<()> {
        let mut report = Report::new()?;
        let begin = Instant::now();
        let end = self.args.frames.as_ref().and_then(|range| self.recording.frames.get(*range.end()));
        if let Some(frame) = end {
            found.frames = frame.number + 1;
        }
        let end = end.map_or(u64::MAX, |frame| *frame.calls.end() + 1);
        let mut retracer = self.start(&self.chip, ReplayedCalls { pictures: None, end }, &report, &[])?;
        let said = retracer.said()?;
        found.seconds = Some(begin.elapsed().as_secs_f64());
        self.reported(&mut report, &[said, String::new()], found)?;
        Ok(())
    }
}

/// Prints notes about resets, missing features, and messages that occur only in the chip's replay.
fn told(found: &ReplayAnswer) {
    if found.tolerated > 0 {
        let pixels = counted(found.tolerated, "pixel");
        note(&format!("up to {pixels} can differ in a picture that agrees; --pixels 0 accepts none"));
    }
    if found.resets > 0 {
        tell!("warning: {} was reset {}", found.chip, counted(found.resets, "time"));
    }
    for line in found.only_on_chip.iter().take(SHOWN) {
        note(&format!("only on {}: {}", found.chip, crate::shown::name(line)));
    }
    let more = found.only_on_chip.len().saturating_sub(SHOWN);
    if more > 0 {
        note(&format!("{more} more messages only on {} (--json has them)", found.chip));
    }
    if !found.unknown.is_empty() {
        note(&format!("not done by {}: {}", found.chip, named_counts(&found.unknown)));
    }
}

/// Opens the debugger with a launch file. If a lane covers the pixel, selects this lane.
fn debug(file: &str, [x, y]: [usize; 2], is_covered: bool) -> Result<()> {
    let program = env::current_exe().context("the path of this program")?;
    let mut command = Command::new(&program);
    command.arg("debug").arg(file);
    if is_covered {
        command.arg("--pixel").arg(format!("{x},{y}"));
    }
    let status = command.status().with_context(|| crate::shown::program(&program))?;
    if !status.success() {
        bail!("the debugger ended with {status}");
    }
    Ok(())
}

/// A folder that is deleted when the value is dropped.
struct Temporary(PathBuf);

impl Temporary {
    fn new() -> Result<Temporary> {
        let folder = env::temp_dir().join(format!("reconverge-replay-{}", random_name()?));
        fs::create_dir(&folder).with_context(|| crate::shown::path(&folder))?;
        Ok(Temporary(folder))
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_that_created_no_context_are_left_out_of_the_copy() {
        let call = |number| TracedCall { number, text: "eglCreateContext(dpy = 0x1) = NULL".to_owned() };
        let kept = |numbers: &[u64]| {
            let said = remedy(&numbers.iter().map(|number| call(*number)).collect::<Vec<_>>()).unwrap();
            said.split_once("--calls=").unwrap().1.split(' ').next().unwrap().to_owned()
        };
        assert_eq!(kept(&[80]), "0-79,81-");
        assert_eq!(kept(&[0, 1, 5]), "2-4,6-");
        assert_eq!(remedy(&[]), None);
    }
}
