//! Reads a trace with the command `apitrace`.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// The command that installs apitrace on Debian.
pub(super) const INSTALL: &str = "apt-get install apitrace";

/// If the name of an interface contains this text, apitrace's OpenGL retracers can replay the trace.
const OPENGL: &str = "OpenGL";

/// A trace of OpenGL or OpenGL ES.
#[derive(Debug)]
pub(super) struct TraceFile {
    pub(super) path: PathBuf,
    /// The name of the recorded interface.
    pub(super) api: String,
    /// The frames of the trace. The list is empty if the trace does not present frames.
    pub(super) frames: Vec<TracedFrame>,
    /// apitrace's warning about an incomplete file.
    pub(super) warning: Option<String>,
}

/// The calls of a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TracedFrame {
    /// The frame's number, counted from 0 as in `apitrace trim --frames`.
    pub(super) number: usize,
    /// The numbers of the frame's calls. The last call presents the frame.
    pub(super) calls: RangeInclusive<u64>,
    /// The function that presents the frame.
    pub(super) shown_by: String,
}

/// A call in the notation of `apitrace dump`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TracedCall {
    pub(super) number: u64,
    /// The function, the arguments, and the result of the call.
    pub(super) text: String,
}

impl TracedCall {
    /// Returns the name of the function.
    pub(super) fn function(&self) -> &str {
        self.text.split('(').next().unwrap_or(&self.text)
    }
}

impl TraceFile {
    /// Reads the frames of a trace.
    ///
    /// # Errors
    /// Returns an error if apitrace is not installed, if the file is not a trace, or if the recorded interface is not
    /// OpenGL.
    pub(super) fn open(path: &Path) -> Result<TraceFile> {
        let shown = || crate::shown::path(path);
        let about = path.metadata().with_context(shown)?;
        if !about.is_file() {
            bail!("{}: not a regular file", shown());
        }
        // apitrace would parse a relative name that starts with a dash as an option.
        let path = std::path::absolute(path).with_context(shown)?;
        let (info, warning) = apitrace(&path, &["info"])?;
        let api = api(&info).with_context(|| format!("{}: expected a trace of apitrace", shown()))?;
        if !api.contains(OPENGL) {
            bail!("{}: expected a trace of OpenGL or OpenGL ES, found {api}", shown());
        }
        let mut recording = TraceFile { path, api, frames: Vec::new(), warning };
        recording.frames = frames(&recording.calls("*/frame", None)?);
        Ok(recording)
    }

    /// Returns the calls of a set. If `function` is a regular expression, returns only the calls whose function matches
    /// this expression. The set is in apitrace's notation.
    pub(super) fn calls(&self, set: &str, function: Option<&str>) -> Result<Vec<TracedCall>> {
        let (set, grep) = (format!("--calls={set}"), function.map(|function| format!("--grep={function}")));
        let mut arguments = vec!["dump", "--color=never", "--multiline=no", &set];
        arguments.extend(grep.as_deref());
        Ok(calls(&apitrace(&self.path, &arguments)?.0))
    }

    /// Returns a call with its arguments.
    pub(super) fn call(&self, number: u64) -> Result<TracedCall> {
        let missing = || TracedCall { number, text: "?".to_owned() };
        let calls = self.calls(&format!("{number}-{number}"), None)?;
        Ok(calls.into_iter().find(|call| call.number == number).unwrap_or_else(missing))
    }

    /// Returns the calls that failed to create a context.
    pub(super) fn failed_contexts(&self) -> Result<Vec<TracedCall>> {
        let creations = self.calls("*", Some("CreateContext"))?;
        Ok(creations.into_iter().filter(|call| call.text.ends_with("= NULL")).collect())
    }

    /// Returns whether a call draws into a window instead of a framebuffer object. For this check, the function looks
    /// for the last earlier call that binds a framebuffer.
    pub(super) fn draws_into_window(&self, number: u64) -> Result<bool> {
        Ok(binds_window(&self.calls(&format!("0-{number}"), Some("^glBindFramebuffer"))?))
    }
}

/// Runs a command of apitrace on a trace. Returns the output of apitrace. If the trace file is incomplete, apitrace
/// reads the trace up to the end of the file and prints a warning. The function also returns this warning.
fn apitrace(path: &Path, arguments: &[&str]) -> Result<(String, Option<String>)> {
    let mut command = Command::new("apitrace");
    let output = command.args(arguments).arg(path).stdin(Stdio::null()).output();
    let output = output.with_context(|| format!("apitrace: {INSTALL}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let path = crate::shown::path(path);
        bail!("{path}: apitrace {}: {} ({})", arguments[0], said.trim(), output.status);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let warning = said.lines().find_map(|line| Some(line.strip_prefix("warning: ")?.trim().to_owned()));
    Ok((String::from_utf8_lossy(&output.stdout).into_owned(), warning))
}

/// Returns the name of the interface in the output of `apitrace info`, or `None` if the file is not a trace.
fn api(info: &str) -> Option<String> {
    let info: Value = serde_json::from_str(info).ok()?;
    let api = info["API"].as_str()?;
    // apitrace 11 accepts any file. If the file is not a trace, apitrace reports version 0 and no interface.
    let is_trace = info["ContainerVersion"].as_u64() != Some(0) || api.contains(OPENGL);
    is_trace.then(|| api.to_owned())
}

/// Returns the calls in the output of `apitrace dump`. Other lines are comments, or continue a value.
fn calls(dump: &str) -> Vec<TracedCall> {
    let call = |line: &str| {
        let (number, text) = line.split_once(' ')?;
        let call = TracedCall { number: number.parse().ok()?, text: text.trim_end().to_owned() };
        let is_function = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b':';
        let function = call.function();
        (function.len() < text.len() && !function.is_empty() && function.bytes().all(is_function))
            .then_some(call)
    };
    dump.lines().filter_map(call).collect()
}

/// Returns the frames that end with the calls `ends`.
fn frames(ends: &[TracedCall]) -> Vec<TracedFrame> {
    let starts = std::iter::once(0).chain(ends.iter().map(|end| end.number + 1));
    let frame = |(number, (start, end)): (usize, (u64, &TracedCall))| TracedFrame {
        number,
        calls: start..=end.number,
        shown_by: end.function().to_owned(),
    };
    starts.zip(ends).enumerate().map(frame).collect()
}

/// Whether the last call that binds a framebuffer for drawing binds the window's framebuffer.
fn binds_window(calls: &[TracedCall]) -> bool {
    let binds = |call: &&TracedCall| !call.text.contains("target = GL_READ_FRAMEBUFFER");
    let last = calls.iter().rev().find(binds);
    last.is_none_or(|call| call.text.contains("framebuffer = 0)"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DUMP: &str = "// process.name = \"/usr/bin/es2gears_x11\"\n\
        47 glClear(mask = GL_DEPTH_BUFFER_BIT | GL_COLOR_BUFFER_BIT)\n\
        56 glDrawArrays(mode = GL_TRIANGLE_STRIP, first = 0, count = 958)\n\
        57 glShaderSource(shader = 1, string = &\"\n12 not a call\n\")\n\
        81 eglSwapBuffers(dpy = 0x55b6105c5290, surface = 0x55b61084f750) = EGL_TRUE\n\n\
        117 eglSwapBuffers(dpy = 0x55b6105c5290, surface = 0x55b61084f750) = EGL_TRUE\n";

    #[test]
    fn a_dump_has_a_call_per_line_and_other_lines() {
        let calls = calls(DUMP);
        let numbers: Vec<u64> = calls.iter().map(|call| call.number).collect();
        assert_eq!(numbers, [47, 56, 57, 81, 117]);
        assert_eq!(calls[1].text, "glDrawArrays(mode = GL_TRIANGLE_STRIP, first = 0, count = 958)");
        assert_eq!(calls[3].function(), "eglSwapBuffers");
        assert_eq!(super::calls("12 (\n 13 a(b)\nx\n"), []);
    }

    #[test]
    fn a_frame_is_what_its_last_call_shows() {
        let frames = frames(&calls(DUMP)[3..]);
        let frame = |number, calls| TracedFrame { number, calls, shown_by: "eglSwapBuffers".to_owned() };
        assert_eq!(frames, [frame(0, 0..=81), frame(1, 82..=117)]);
    }

    #[test]
    fn the_last_framebuffer_bound_for_drawing_decides() {
        let bound = |lines: &str| binds_window(&calls(lines));
        let object = "3 glBindFramebuffer(target = GL_FRAMEBUFFER, framebuffer = 2)\n";
        let read = "4 glBindFramebuffer(target = GL_READ_FRAMEBUFFER, framebuffer = 0)\n";
        let window = "5 glBindFramebufferEXT(target = GL_DRAW_FRAMEBUFFER, framebuffer = 0)\n";
        assert!(bound("") && !bound(object) && !bound(&format!("{object}{read}")));
        assert!(bound(&format!("{object}{read}{window}")));
    }

    #[test]
    fn a_file_that_is_no_trace_has_no_interface() {
        let info =
            |version: u32, api: &str| format!("{{\"ContainerVersion\": {version}, \"API\": \"{api}\"}}");
        assert_eq!(api(&info(6, "OpenGL + GLX/WGL/CGL")).as_deref(), Some("OpenGL + GLX/WGL/CGL"));
        assert_eq!(api(&info(6, "DirectX")).as_deref(), Some("DirectX"));
        assert_eq!(api(&info(0, "Unknown API")), None);
        assert_eq!(api("apitrace: error"), None);
    }
}
