//! Runs a program with the emulated device, from the start to the end of the program.

use std::collections::{BTreeMap, HashMap};
use std::env;
use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{IsTerminal, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{self, Child, Command, ExitStatus};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};
use nix::libc;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use reconverge_board::patch::Patch;
use serde_json::Value;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use super::named_counts;
use super::recording::RecordingFiles;
use super::setup::{Setup, absolute};
use super::window::ScreenWindow;
use crate::args::Answer;
use crate::messages;
use crate::messages::{counted, note};

/// The options of a run.
pub(super) struct Wanted<'a> {
    /// The folder for captured draws.
    pub(super) capture: Option<PathBuf>,
    /// The folder for displayed frames.
    pub(super) screen: Option<PathBuf>,
    /// The files of the recording.
    pub(super) record: Option<RecordingFiles>,
    /// Words of shaders to replace.
    pub(super) patch: Option<&'a Patch>,
}

/// Runs a program and returns the exit status of the program. If a window is requested, the window shows the screen of
/// the program.
///
/// # Errors
/// Returns an error if the program cannot be started.
pub(super) fn run(
    setup: &Setup,
    command: &[OsString],
    wanted: &Wanted<'_>,
    window: Option<ScreenWindow>,
) -> Result<Answer> {
    let Wanted { capture, screen, record, patch } = wanted;
    let [name, arguments @ ..] = command else { unreachable!("clap requires a command") };
    let mut report = Report::new()?;
    let mut program = Command::new(name);
    setup.apply(&mut program);
    program.args(arguments).env("RECONVERGE_DRM_REPORT", &report.path);
    if let Some(folder) = capture {
        program.env("RECONVERGE_DRM_CAPTURE", folder);
    }
    if let Some(folder) = screen {
        program.env("RECONVERGE_DRM_SCREEN", folder);
    }
    if let Some(record) = record {
        program.env("RECONVERGE_DRM_RECORD", record.path());
    }
    if let Some(window) = &window {
        program.env("RECONVERGE_DRM_WINDOW", window.folder());
    }
    if let Some(patch) = patch {
        program.env("RECONVERGE_DRM_PATCH", patch.to_string());
    }
    // The code installs the handler before the start of the program. Otherwise, early signals would be lost.
    let signals = Signals::new([SIGINT, SIGTERM, SIGHUP]).context("signals")?;
    let mut child = program.spawn().with_context(|| crate::shown::program(&name))?;
    let until_end = |child: &mut Child| match window {
        Some(window) => window.until_end(child),
        None => child.wait(),
    };
    let status = ended(&mut child, signals, until_end).with_context(|| crate::shown::program(&name))?;
    let seen = report.seen()?;
    if seen.processes == 0 && !messages::quiet() {
        tell!("warning: {}: the program never opened the emulated device", crate::shown::program(&name));
    }
    if let Some(folder) = capture {
        note(&format!("{}: {}", crate::shown::path(&folder), counted(seen.captured, "launch file")));
        for (why, count) in &seen.uncaptured {
            tell!("warning: not captured, {}: {why}", counted(*count, "time"));
        }
    }
    if let Some(folder) = screen {
        note(&format!("{}: {}", crate::shown::path(&folder), counted(pictures(folder), "frame")));
        let missing = seen.frames.saturating_sub(seen.pictures);
        if missing > 0 {
            let folder = crate::shown::path(&folder);
            tell!("warning: {folder}: {} shown but not written", counted(missing, "frame"));
        }
    }
    if let Some(record) = record {
        for (path, frames) in record.files() {
            note(&format!("{}: {}", crate::shown::path(&path), counted(frames, "frame")));
        }
    }
    if let Some(patch) = patch.filter(|_| seen.patched == 0 && seen.processes > 0) {
        tell!("warning: --patch {patch}: these words do not occur in any shader of a draw");
    }
    if !seen.lost.is_empty() {
        tell!("error: incompletely written: {}", named_counts(&seen.lost));
    }
    match status_of(name, status) {
        0 if !seen.lost.is_empty() => Ok(Answer::Status(LOST)),
        status => Ok(Answer::Status(status)),
    }
}

/// The exit status if the program succeeds but a requested file cannot be written.
const LOST: u8 = 2;

/// Returns the number of frames in a folder. The function counts the files, because a killed process does not report
/// all of its frames.
fn pictures(folder: &Path) -> u64 {
    let names = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.file_name());
    let is_frame = |name: &OsString| name.as_encoded_bytes().starts_with(b"frame-");
    names.filter(is_frame).count() as u64
}

/// Creates the folder that an option names, if the folder does not exist. Checks that the folder is empty, and returns
/// the absolute path of the folder.
///
/// # Errors
/// Returns an error if the folder is not empty, if the path is not a folder, or if the folder cannot be created.
pub(crate) fn empty_folder(option: &str, path: &Path) -> Result<PathBuf> {
    let named = || format!("{option} {}", crate::shown::path(&path));
    if path.exists() && !path.is_dir() {
        bail!("{}: expected a folder, found a file; name an empty or new folder", named());
    }
    std::fs::create_dir_all(path).with_context(named)?;
    if std::fs::read_dir(path).with_context(named)?.next().is_some() {
        bail!("{}: expected an empty folder; name an empty or new folder", named());
    }
    Ok(absolute(path))
}

/// Waits for the end of a program, and forwards signals to the program.
pub(crate) fn ended(
    child: &mut Child,
    mut signals: Signals,
    until_end: impl FnOnce(&mut Child) -> std::io::Result<ExitStatus>,
) -> std::io::Result<ExitStatus> {
    let handle = signals.handle();
    let id = i32::try_from(child.id()).map(Pid::from_raw);
    let hand_on = move || {
        for signal in signals.forever() {
            // Ctrl-C in a terminal also reaches the program directly, so this function does not forward Ctrl-C. If this
            // function forwarded Ctrl-C, the program would receive Ctrl-C twice. Some programs treat a second Ctrl-C
            // differently.
            let from_terminal = signal == SIGINT && std::io::stdin().is_terminal();
            if let (false, Ok(id), Ok(signal)) = (from_terminal, id, Signal::try_from(signal)) {
                // `kill` fails if the program has just ended.
                let _ = kill(id, signal);
            }
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(hand_on);
        let status = until_end(child);
        handle.close();
        status
    })
}

/// Returns the exit status of a program, as in shells. If a signal ended the program, prints the signal's name.
pub(crate) fn status_of(name: &OsString, status: ExitStatus) -> u8 {
    if let Some(signal) = status.signal() {
        let spelled = Signal::try_from(signal).map(|signal| format!(" ({signal})")).unwrap_or_default();
        tell!("error: {}: ended by signal {signal}{spelled}", crate::shown::program(&name));
        return 128 | (signal & 0x7f) as u8;
    }
    status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX)
}

/// The combined reports of all processes that opened the device.
#[derive(Default)]
pub(crate) struct Seen {
    processes: usize,
    pub(crate) resets: u64,
    pub(crate) draws: u64,
    /// Features that the emulation does not support, each with the number of uses.
    pub(crate) unknown: BTreeMap<String, u64>,
    frames: u64,
    pictures: u64,
    /// Numbers of items that could not be written. The kinds of items are frames, recorded frames, programs, surfaces
    /// and captures.
    lost: BTreeMap<String, u64>,
    captured: u64,
    pub(crate) uncaptured: BTreeMap<String, u64>,
    pub(crate) patched: u64,
}

/// Every process that opens the device appends a report to this file. If no environment variable names the file, the
/// report is a temporary file. The command deletes this file at the end.
pub(crate) struct Report {
    pub(crate) path: PathBuf,
    file: File,
    ours: bool,
}

impl Report {
    pub(crate) fn new() -> Result<Report> {
        let given = env::var_os("RECONVERGE_DRM_REPORT").filter(|path| !path.is_empty()).map(PathBuf::from);
        let ours = given.is_none();
        let path = given.unwrap_or_else(|| {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
            env::temp_dir().join(format!("reconverge-drm-{}-{now}.jsonl", process::id()))
        });
        // A temporary file must be new. Otherwise, another user could have created the file.
        let mut options = OpenOptions::new();
        options.read(true).append(true).create(true).create_new(ours);
        // If the file is a pipe without a reader, this program and the library would wait for a reader. O_NONBLOCK
        // prevents this.
        options.custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY);
        let mut file = options.open(&path).with_context(|| crate::shown::path(&path))?;
        if !file.metadata().is_ok_and(|about| about.is_file()) {
            bail!("RECONVERGE_DRM_REPORT {}: not a regular file", crate::shown::path(&path));
        }
        file.seek(SeekFrom::End(0)).with_context(|| crate::shown::path(&path))?;
        // The program may change the working directory, so the path must be absolute.
        let path = absolute(&path);
        Ok(Report { path, file, ours })
    }

    /// Returns the reports that processes have appended.
    pub(crate) fn seen(&mut self) -> Result<Seen> {
        let mut text = Vec::new();
        self.file.read_to_end(&mut text).with_context(|| crate::shown::path(&self.path))?;
        let lines = String::from_utf8_lossy(&text);
        // The last report line of a process contains the final counts of the process.
        let mut last = HashMap::new();
        for line in lines.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
            last.insert((line["pid"].to_string(), line["opened"].to_string()), line);
        }
        let mut seen = Seen { processes: last.len(), ..Seen::default() };
        for line in last.values() {
            add(&mut seen.resets, &line["resets"]);
            add(&mut seen.draws, &line["draws"]);
            add(&mut seen.frames, &line["frames"]);
            add(&mut seen.pictures, &line["pictures"]);
            add(&mut seen.captured, &line["captured"]);
            add(&mut seen.patched, &line["patched"]);
            for (field, sums) in [
                ("uncaptured", &mut seen.uncaptured),
                ("lost", &mut seen.lost),
                ("unknown", &mut seen.unknown),
            ] {
                for (name, count) in line[field].as_object().into_iter().flatten() {
                    add(sums.entry(name.clone()).or_default(), count);
                }
            }
        }
        Ok(seen)
    }
}

/// Adds a count from a report line to a sum. The program that the command ran may have written report lines too, so the
/// count can be any number. If the sum would overflow, the sum saturates.
fn add(sum: &mut u64, count: &Value) {
    *sum = sum.saturating_add(count.as_u64().unwrap_or(0));
}

impl Drop for Report {
    fn drop(&mut self) {
        if self.ours {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}
