//! The report on how a process has used the node. `reconverge drm` reads the report.
//!
//! The report is a list of lines. The process appends these lines to the file `RECONVERGE_DRM_REPORT`. Each line is a
//! JSON object. The process appends a line when the node is first opened and when the process ends. The process also
//! appends a line at the first reset of the chip. After this line, the process appends a line whenever the number of
//! resets has doubled. If a process is killed or calls `_exit`, the process does not append a line when the process
//! ends.
//!
//! Every line has all fields. If several lines have the same `pid` and `opened`, only the last of these lines is valid.
//! A forked process appends separate lines. The lines of the forked process count only requests of the forked process.
//!
//! | field | meaning |
//! |---|---|
//! | `pid`, `opened` | the id of the process, and the time at which the process opened the node. The time is in nanoseconds since 1970 |
//! | `complete` | `false` if counts are missing, for example because the process ended in the middle of a request. The missing counts belong to the fields `unknown`, `unanswered`, `uncaptured` and `lost` |
//! | `chip`, `executes` | the emulated chip, and whether submissions are executed |
//! | `submissions`, `resets` | number of submissions, and number of submissions that reset the chip |
//! | `draws` | number of draws that were executed. This is also the number of the last draw |
//! | `unknown` | operations that the chip does not emulate, with their number of occurrences (`Gpu::unknown`) |
//! | `captured`, `uncaptured` | number of written launch files, and the reasons why launch files were not written. Each reason has a number of occurrences |
//! | `patched` | number of positions in programs at which words were replaced, counted at each start of a program |
//! | `frames`, `pictures` | number of frames that were shown, and number of frames that were written to files |
//! | `lost` | numbers of frames, recorded frames, programs and surfaces that could not be written, and number of captures that ended early |
//! | `unanswered` | requests that the node does not answer, with their number of occurrences |
//!
//! A line has less than 1 MiB, because the number and the length of names are limited, see [`tally`](crate::tally). The
//! file must be a regular file, so that a report never waits for a reader.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::device::Device;
use crate::fork;
use crate::json::{self, Quoted};
use crate::messages::say_once;
use crate::node::{self, Node, State};
use crate::whole;

/// Maximum time for which a process that ends waits for a request of another thread.
const EXIT: Duration = Duration::from_secs(2);
/// Capacity of a line in bytes. The line is allocated in advance, because a process may end in a signal handler that
/// interrupted an allocation.
const LINE: usize = 64 << 10;
/// Capacity in bytes of a line without counts by name.
const SHORT_LINE: usize = 1024;

/// Data for a process's report. The data consist of a buffer for a line, and the counts that the process has inherited.
#[derive(Debug, Default)]
pub(crate) struct Record {
    line: String,
    before: Before,
}

/// Counts that a forked process has inherited from its parent.
#[derive(Debug, Default)]
struct Before {
    numbers: Numbers,
    unknown: BTreeMap<String, u64>,
}

/// Counts that the lock of the node protects.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Numbers {
    submissions: u64,
    resets: u64,
    draws: u64,
    frames: u64,
    pictures: u64,
}

impl Numbers {
    fn of(state: &State) -> Numbers {
        let (frames, pictures) = (state.screen.frames, state.screen.pictures);
        let draws = state.gpu.as_ref().map_or(0, |gpu| gpu.draws());
        Numbers { submissions: state.submissions, resets: state.resets.into(), draws, frames, pictures }
    }

    fn since(self, before: Numbers) -> Numbers {
        Numbers {
            submissions: self.submissions.wrapping_sub(before.submissions),
            resets: self.resets.wrapping_sub(before.resets),
            draws: self.draws.wrapping_sub(before.draws),
            frames: self.frames.wrapping_sub(before.frames),
            pictures: self.pictures.wrapping_sub(before.pictures),
        }
    }
}

/// The process id of this report, and copies of the counts in the report. If a thread cannot take the lock of the node,
/// the thread reads these copies.
static LIVE: Live = Live {
    process: AtomicU32::new(0),
    opened: AtomicU64::new(0),
    submissions: AtomicU64::new(0),
    resets: AtomicU64::new(0),
    draws: AtomicU64::new(0),
    frames: AtomicU64::new(0),
    pictures: AtomicU64::new(0),
};

struct Live {
    process: AtomicU32,
    opened: AtomicU64,
    submissions: AtomicU64,
    resets: AtomicU64,
    draws: AtomicU64,
    frames: AtomicU64,
    pictures: AtomicU64,
}

impl Live {
    fn begin(&self) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        self.process.store(process::id(), Ordering::Relaxed);
        self.opened.store(now as u64, Ordering::Relaxed);
    }

    fn set(&self, numbers: Numbers) {
        let Numbers { submissions, resets, draws, frames, pictures } = numbers;
        self.submissions.store(submissions, Ordering::Relaxed);
        self.resets.store(resets, Ordering::Relaxed);
        self.draws.store(draws, Ordering::Relaxed);
        self.frames.store(frames, Ordering::Relaxed);
        self.pictures.store(pictures, Ordering::Relaxed);
    }

    fn get(&self) -> Numbers {
        Numbers {
            submissions: self.submissions.load(Ordering::Relaxed),
            resets: self.resets.load(Ordering::Relaxed),
            draws: self.draws.load(Ordering::Relaxed),
            frames: self.frames.load(Ordering::Relaxed),
            pictures: self.pictures.load(Ordering::Relaxed),
        }
    }
}

/// Begins the report when the node is opened.
pub(crate) fn begin(node: &Node) {
    LIVE.begin();
    if node.device().report.is_none() {
        return;
    }
    if let Ok(mut state) = node.lock_within(EXIT) {
        state.record.line.reserve(LINE);
        append(node.device(), &mut state);
    }
    // SAFETY: `end` exists until the process ends, because this library is never unloaded.
    unsafe { libc::atexit(end) };
}

/// Begins the report of a forked process. This report does not include the counts of the parent.
pub(crate) fn copied(device: &Device, state: &mut State) {
    LIVE.begin();
    let mut unknown = BTreeMap::new();
    if let Some(gpu) = &state.gpu {
        gpu.each_unknown(&mut |name, count| _ = unknown.insert(name.to_owned(), count));
    }
    state.record.before = Before { numbers: Numbers::of(state), unknown };
    state.unanswered.clear();
    (state.lost_frames, state.screen.unrecorded) = (0, 0);
    state.screen.copied();
    device.watch.restart();
    publish(state);
    append(device, state);
}

/// Counts a submission.
pub(crate) fn submission(state: &mut State) {
    state.submissions += 1;
    publish(state);
}

/// Counts a reset. Appends a line if the number of resets is a power of two.
pub(crate) fn reset(device: &Device, state: &mut State) {
    state.resets = state.resets.wrapping_add(1);
    if publish(state).resets.is_power_of_two() {
        append(device, state);
    }
}

/// Copies the counts of this process to [`LIVE`], and returns the counts.
pub(crate) fn publish(state: &State) -> Numbers {
    let numbers = Numbers::of(state).since(state.record.before.numbers);
    LIVE.set(numbers);
    numbers
}

/// Appends the last line of the report when the process ends. Never waits for a lock that the calling thread holds.
pub(crate) extern "C" fn end() {
    // A forked process that has not used the node does not report.
    let Some(node) = node::opened().filter(|_| !fork::copied()) else { return };
    match node.lock_within(EXIT) {
        Ok(mut state) => append(node.device(), &mut state),
        Err(_) => append_short(node.device()),
    }
}

/// Appends a complete line to the report.
fn append(device: &Device, state: &mut State) {
    let Some(path) = &device.report else { return };
    let mut line = std::mem::take(&mut state.record.line);
    line.clear();
    // Writing to a string never fails.
    let _ = write_line(&mut line, device, state);
    written(path, line.as_bytes());
    state.record.line = line;
}

fn write_line(line: &mut String, device: &Device, state: &State) -> std::fmt::Result {
    let numbers = Numbers::of(state).since(state.record.before.numbers);
    // If this process was forked while another thread changed the counts, the lock is not available. In this case, the
    // line does not contain these counts.
    let counts = device.watch.counts.lock_within(EXIT).ok();
    write_numbers(line, device, state.gpu.is_some(), counts.is_some(), numbers)?;
    let mut unknown = json::Object::new(line, ", \"unknown\": ");
    each_unknown(state, &mut |name, count| unknown.entry(name, count));
    unknown.end();
    let of = |counts: &BTreeMap<String, u64>, line: &mut String, before: &str| {
        let mut object = json::Object::new(line, before);
        counts.iter().for_each(|(name, count)| object.entry(name, *count));
        object.end();
    };
    of(&state.unanswered, line, ", \"unanswered\": ");
    let none = BTreeMap::new();
    of(counts.as_ref().map_or(&none, |counts| &counts.uncaptured), line, ", \"uncaptured\": ");
    let mut lost = json::Object::new(line, ", \"lost\": ");
    if state.lost_frames > 0 {
        lost.entry("frames", state.lost_frames);
    }
    if state.screen.unrecorded > 0 {
        lost.entry("recorded frames", state.screen.unrecorded);
    }
    counts.iter().flat_map(|counts| &counts.lost).for_each(|(name, count)| lost.entry(name, *count));
    lost.end();
    line.push_str("}\n");
    Ok(())
}

/// Calls `visit` for each unsupported operation that this process has used. The arguments of `visit` are the name of
/// the operation, and the number of occurrences of the operation.
fn each_unknown(state: &State, visit: &mut dyn FnMut(&str, u64)) {
    let Some(gpu) = &state.gpu else { return };
    gpu.each_unknown(&mut |name, count| {
        let before = state.record.before.unknown.get(name).copied().unwrap_or(0);
        if count > before {
            visit(name, count - before);
        }
    });
}

/// Returns two numbers for this process: the number of resets, and the number of different unsupported operations.
pub(crate) fn troubles(state: &State) -> [u64; 2] {
    let mut unknown = 0;
    each_unknown(state, &mut |_, _| unknown += 1);
    [Numbers::of(state).since(state.record.before.numbers).resets, unknown]
}

/// Appends a line without counts by name. Does not allocate, and does not take a lock.
fn append_short(device: &Device) {
    let Some(path) = &device.report else { return };
    let mut line = [0; SHORT_LINE];
    let mut left = Room(&mut line[..]);
    let wrote = write_numbers(&mut left, device, device.execute, false, LIVE.get()).and_then(|()| {
        left.write_str(", \"unknown\": {}, \"unanswered\": {}, \"uncaptured\": {}, \"lost\": {}}\n")
    });
    let length = SHORT_LINE - left.0.len();
    if wrote.is_ok() {
        written(path, &line[..length]);
    }
}

/// An array to which text is written. The slice is the part of the array that is still unused.
struct Room<'a>(&'a mut [u8]);

impl std::fmt::Write for Room<'_> {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.0.write_all(text.as_bytes()).map_err(|_| std::fmt::Error)
    }
}

/// Writes the beginning of a line. This part has all fields except for the counts by name.
fn write_numbers(
    line: &mut dyn std::fmt::Write,
    device: &Device,
    executes: bool,
    complete: bool,
    numbers: Numbers,
) -> std::fmt::Result {
    let Numbers { submissions, resets, draws, frames, pictures } = numbers;
    write!(
        line,
        "{{\"pid\": {}, \"opened\": {}, \"complete\": {complete}, \"chip\": {}, \"executes\": {executes}, \
         \"submissions\": {submissions}, \"resets\": {resets}, \"draws\": {draws}, \"frames\": {frames}, \
         \"pictures\": {pictures}, \
         \"captured\": {}, \"patched\": {}",
        LIVE.process.load(Ordering::Relaxed),
        LIVE.opened.load(Ordering::Relaxed),
        Quoted(device.board.chip),
        device.watch.captured.load(Ordering::Relaxed),
        device.watch.patched.load(Ordering::Relaxed),
    )
}

/// Appends a line with one write, so that lines of different processes do not mix.
fn written(path: &Path, line: &[u8]) {
    if let Err(error) = file(path).and_then(|mut file| whole::append(&mut file, line)) {
        say_once(&format!("RECONVERGE_DRM_REPORT {}: {error}; no report is written", path.display()));
    }
}

/// Opens the file of the report. If the file is a pipe, this function does not wait for a reader.
fn file(path: &Path) -> io::Result<File> {
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
    let irregular = || io::Error::other("not a regular file");
    let opened = OpenOptions::new().append(true).create(true).custom_flags(flags).open(path);
    let file = opened.map_err(|error| match error.raw_os_error() {
        // The file is a pipe without a reader.
        Some(libc::ENXIO) => irregular(),
        _ if error.kind() == ErrorKind::IsADirectory => io::Error::other("it is a folder"),
        _ => error,
    })?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(irregular()) }
}

#[cfg(test)]
mod tests {
    use std::ffi::CString;
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    #[test]
    fn what_is_no_regular_file_is_refused_at_once() {
        let folder = std::env::temp_dir().join(format!("reconverge-report-{}", process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let pipe = folder.join("pipe");
        let name = CString::new(pipe.as_os_str().as_bytes()).unwrap();
        // SAFETY: the name is a C string.
        assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
        for (path, why) in [
            (&*pipe, "not a regular file"),
            (Path::new("/dev/null"), "not a regular file"),
            (&folder, "it is a folder"),
        ] {
            assert_eq!(file(path).unwrap_err().to_string(), why);
        }
        // A pipe with a reader is also rejected. If the reader ended, a write to the pipe would end the program.
        let reader = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(&pipe).unwrap();
        assert_eq!(file(&pipe).unwrap_err().to_string(), "not a regular file");
        drop(reader);
        file(&folder.join("report")).unwrap();
        std::fs::remove_dir_all(folder).unwrap();
    }
}
