//! The report: what a process did with the node, for `reconverge drm` to read.
//!
//! Lines are appended to the file of `RECONVERGE_DRM_REPORT`, a JSON object each, when the node is first opened, when
//! the chip is reset, and when the process ends. A process that is killed leaves those from before. Every line has all
//! fields; of the lines with the same `pid` and `opened` the last one counts.
//!
//! | field | what |
//! |---|---|
//! | `pid`, `opened` | the process, and when it opened the node, in nanoseconds since 1970 |
//! | `chip`, `executes` | what is emulated, and whether submissions are executed |
//! | `submissions`, `resets` | how many there were, and how many of them reset the chip |
//! | `unknown` | what the chip does not do, with how often it came up: `Gpu::unknown` |
//! | `captured`, `uncaptured` | launch files of captured draws, and why others are not there, with how often |
//! | `patched` | places in programs where words were replaced, each time that one was started |
//! | `frames` | how many frames were shown |
//! | `unanswered` | requests that the node has no answer for, with how often they came up |

use std::fs::OpenOptions;
use std::io::Write;
use std::process;
use std::sync::OnceLock;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::device::Device;
use crate::json;
use crate::messages::say_once;
use crate::node::{self, Node, State};

/// Which process opened the node, and when, in nanoseconds: other processes may get the same number later.
static OPENED: OnceLock<(u32, u128)> = OnceLock::new();

/// Begins the report when the node is opened.
pub(crate) fn begin(node: &Node) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    if node.device().report.is_none() || OPENED.set((process::id(), now)).is_err() {
        return;
    }
    append(node.device(), &node.lock());
    // SAFETY: the function lives as long as this library, which is not unloaded before the process ends.
    unsafe { libc::atexit(end) };
}

/// Ends the report with the process. A process that was forked later has a copy of the numbers: they are not its own.
pub(crate) extern "C" fn end() {
    if let Some(node) = node::opened().filter(|_| OPENED.get().is_some_and(|(pid, _)| *pid == process::id()))
    {
        append(node.device(), &node.lock());
    }
}

/// Appends a line, in one write, so that lines of several processes do not mix.
pub(crate) fn append(device: &Device, state: &State) {
    let (Some(path), Some((pid, opened))) = (&device.report, OPENED.get()) else { return };
    let line = format!("{{\"pid\": {pid}, \"opened\": {opened}, {}}}\n", fields(device, state));
    let file = OpenOptions::new().append(true).create(true).open(path);
    if let Err(error) = file.and_then(|mut file| file.write_all(line.as_bytes())) {
        say_once(&format!("{}: {error}", path.display()));
    }
}

/// What there is to say, without the process.
fn fields(device: &Device, state: &State) -> String {
    let unknown = state.gpu.as_ref().map(|gpu| gpu.unknown()).unwrap_or_default();
    let unknown = json::counts(unknown.iter().map(|(name, count)| (name.as_str(), *count)));
    let unanswered = json::counts(state.unanswered.iter().map(|(name, count)| (name.as_str(), *count)));
    let counts = device.watch.counts();
    let uncaptured = json::counts(counts.uncaptured.iter().map(|(name, count)| (name.as_str(), *count)));
    format!(
        "\"chip\": {}, \"executes\": {}, \"submissions\": {}, \"resets\": {}, \
         \"frames\": {}, \"captured\": {}, \"uncaptured\": {uncaptured}, \"patched\": {}, \
         \"unknown\": {unknown}, \"unanswered\": {unanswered}",
        json::string(device.board.chip),
        state.gpu.is_some(),
        state.submissions,
        state.resets,
        state.screen.frames,
        counts.captured,
        counts.patched,
    )
}
