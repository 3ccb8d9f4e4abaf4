//! A replay. The module runs apitrace's retracer in the environment of the chip or of a software renderer, and reads
//! the pictures of the retracer.
//!
//! With waffle's platform `surfaceless_egl`, `eglretrace` does not need a window system. `eglretrace` also replays GLX
//! traces, and writes pictures to standard output. The replay ignores calls after the last required call but does not
//! remove these calls, so all calls keep their numbers. All calls run in one thread. So when `eglretrace` ends, it
//! calls `glFinish` for the current context, and the draws of every call reach the chip.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{BufReader, Read};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};

use anyhow::{Context, Result, bail};
use nix::sys::signal::Signal;

use super::picture::Picture;
use super::trace_file::{INSTALL, TraceFile};
use crate::drm::setup::Setup;

const PROGRAM: &str = "eglretrace";
/// The largest call number in apitrace's sets.
const LAST_CALL: u64 = u32::MAX as u64;
/// Maximum number of message lines in an error.
const LINES: usize = 8;

/// The renderer of a replay.
#[derive(Clone, Copy)]
pub(super) struct Renderer<'a> {
    pub(super) setup: &'a Setup,
    /// The renderer's name for messages.
    pub(super) name: &'a str,
    /// Whether the renderer is a software renderer of Mesa. If so, `name` is also Mesa's name for the renderer.
    pub(super) is_software: bool,
}

/// The calls of a replay.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReplayedCalls<'a> {
    /// The set of calls after which pictures are taken, in apitrace's notation. If the value is `None`, the replay
    /// takes no pictures.
    pub(super) pictures: Option<&'a str>,
    /// The number of the first call that is ignored. All calls after this call are also ignored.
    pub(super) end: u64,
}

/// A running replay.
#[derive(Debug)]
pub(super) struct Retracer {
    name: String,
    child: Child,
    output: BufReader<ChildStdout>,
    /// The file that receives standard error.
    log: PathBuf,
    status: Option<ExitStatus>,
}

impl Retracer {
    /// Starts a replay with the environment variables in `variables`. The messages of the replay go to a file.
    ///
    /// # Errors
    /// Returns an error if apitrace is not installed.
    pub(super) fn start(
        renderer: &Renderer<'_>,
        recording: &TraceFile,
        calls: ReplayedCalls<'_>,
        log: PathBuf,
        variables: &[(&str, OsString)],
    ) -> Result<Retracer> {
        let mut command = Command::new(PROGRAM);
        renderer.setup.apply(&mut command);
        if renderer.is_software {
            Setup::draw_in_software(&mut command, renderer.name);
            // Makes llvmpipe filter textures with full precision.
            command.env("GALLIVM_PERF", "no_filter_hacks,no_aos_sampling");
        }
        command.env("WAFFLE_PLATFORM", "surfaceless_egl").env("EGL_PLATFORM", "surfaceless");
        command.envs(variables.iter().map(|(name, value)| (name, value)));
        command.args(["--headless", "--no-context-check", "--singlethread"]);
        if let Some(set) = calls.pictures {
            command.args(["--snapshot-prefix=-", "--snapshot-format=PNM"]).arg(format!("--snapshot={set}"));
        }
        if calls.end <= LAST_CALL {
            command.arg(format!("--ignore-calls={}-{LAST_CALL}", calls.end));
        }
        let shown = || crate::shown::path(&log);
        let errors = File::create(&log).with_context(shown)?;
        command.arg(&recording.path).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(errors);
        let mut child = command.spawn().with_context(|| format!("{PROGRAM}: {INSTALL}"))?;
        let output = child.stdout.take().context("missing standard output of the retracer")?;
        Ok(Retracer {
            name: renderer.name.to_owned(),
            child,
            output: BufReader::new(output),
            log,
            status: None,
        })
    }

    /// Returns the next picture and the number of its call. Returns `None` at the end of the replay.
    ///
    /// # Errors
    /// Returns an error if the replay failed, or if the output of the replay is not a picture.
    pub(super) fn next(&mut self) -> Result<Option<(u64, Picture)>> {
        match Picture::read(&mut self.output) {
            Ok(Some(found)) => Ok(Some(found)),
            Ok(None) => self.end().map(|()| None),
            Err(error) => {
                // A different signal may have ended the process before this SIGKILL. That signal is then the cause of
                // the error.
                let _ = self.child.kill();
                match self.wait()?.signal() {
                    Some(9) | None => bail!("the replay on {}: {error}{}", self.name, self.last_lines()),
                    Some(_) => self.end()?,
                }
                bail!("the replay on {}: {error}", self.name)
            }
        }
    }

    /// Waits for the end of a replay without pictures. Returns the standard output and the messages of the replay.
    ///
    /// # Errors
    /// Returns an error if the replay failed.
    pub(super) fn said(&mut self) -> Result<String> {
        let mut text = Vec::new();
        self.output.read_to_end(&mut text).with_context(|| format!("the replay on {}", self.name))?;
        self.end()?;
        Ok(String::from_utf8_lossy(&text).into_owned() + &self.messages())
    }

    /// Waits for the end of the process.
    fn end(&mut self) -> Result<()> {
        let status = self.wait()?;
        if status.success() {
            return Ok(());
        }
        let how = match status.signal() {
            Some(signal) => {
                let name = Signal::try_from(signal).map(|signal| format!(" ({signal})")).unwrap_or_default();
                format!("signal {signal}{name}")
            }
            None => status.to_string(),
        };
        bail!("the replay on {} ended with {how}{}", self.name, self.last_lines())
    }

    fn wait(&mut self) -> Result<ExitStatus> {
        if let Some(status) = self.status {
            return Ok(status);
        }
        let status = self.child.wait().context(PROGRAM)?;
        self.status = Some(status);
        Ok(status)
    }

    /// Returns the messages that the replay has written so far.
    pub(super) fn messages(&self) -> String {
        fs::read(&self.log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
    }

    /// Returns the last messages, each after a newline.
    fn last_lines(&self) -> String {
        let messages = self.messages();
        let lines: Vec<&str> = messages.lines().filter(|line| !line.trim().is_empty()).collect();
        let last = &lines[lines.len().saturating_sub(LINES)..];
        last.iter().map(|line| format!("\n{line}")).collect()
    }
}

impl Drop for Retracer {
    fn drop(&mut self) {
        if self.status.is_none() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// Returns the messages that start with a call number. These messages are warnings and errors of the retracer.
pub(super) fn of_calls(messages: &str) -> Vec<&str> {
    let is_of_call = |line: &&str| {
        let number = line.split_once(": ").map_or("", |(number, _)| number);
        let (_, rest) = line.split_at(number.len());
        !number.is_empty()
            && number.bytes().all(|byte| byte.is_ascii_digit())
            && [": warning: ", ": error: "].iter().any(|kind| rest.starts_with(kind))
    };
    messages.lines().filter(is_of_call).collect()
}

/// Returns the messages of the preloaded library.
pub(super) fn of_library(messages: &str) -> impl Iterator<Item = &str> {
    messages.lines().filter(|line| line.starts_with("reconverge:"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_sorted_by_who_writes_them() {
        let said = "/usr/bin/es2gears_x11\nrenderableType = 4\n12: warning: glGetError(glFoo) = GL_INVALID_ENUM\n\
            0: message: api info\n13: error: link failed\nreconverge: draw 3: trap\nwarning: x\n";
        let expected = ["12: warning: glGetError(glFoo) = GL_INVALID_ENUM", "13: error: link failed"];
        assert_eq!(of_calls(said), expected);
        assert_eq!(of_library(said).collect::<Vec<_>>(), ["reconverge: draw 3: trap"]);
    }
}
