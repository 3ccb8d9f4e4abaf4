//! A process of piglit's `shader_runner` with one test or several, in a new folder.
//!
//! With several tests and `-report-subtests` shader_runner runs them in the order of its arguments. It writes, unbuffered,
//! `PIGLIT TEST: 1 - NAME` to standard error when a test begins. When the test has ended, it writes the same line again and
//! `PIGLIT: {"subtest": {"NAME" : "pass"}}` to standard output, and flushes it. Some tests skip by an exit of the process,
//! which then ends without the tests after them.

use std::env;
use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use reconverge_output::random_name;

use super::Piglit;
use super::choice::Test;
use super::outcome::{Exit, Outcome, Reported, verdict_of};
use crate::drm::setup::Setup;
use crate::interrupt;

/// The time between two looks at a running process.
const POLL: Duration = Duration::from_millis(2);

/// Arguments and folder that all processes have in common.
#[derive(Clone, Copy)]
pub(super) struct Runner<'a> {
    pub(super) args: &'a Piglit,
    /// The folder of piglit's files.
    pub(super) root: &'a Path,
}

impl Runner<'_> {
    /// Processes at once.
    pub(super) fn jobs(&self) -> usize {
        let processors = thread::available_parallelism().map_or(1, usize::from);
        self.args.jobs.map_or(processors, usize::from)
    }

    /// Does something in a new folder, which is removed afterwards.
    pub(super) fn in_folder<T>(&self, work: impl FnOnce(&Path) -> Result<T>) -> Result<T> {
        let folder = env::temp_dir().join(format!("reconverge-piglit-{}", random_name()?));
        fs::create_dir(&folder).with_context(|| crate::shown::path(&folder))?;
        let done = work(&folder);
        let _ = fs::remove_dir_all(&folder);
        done
    }

    /// Runs a test alone in this folder, with these variables in its environment.
    pub(super) fn alone(
        &self,
        setup: &Setup,
        test: &Test,
        folder: &Path,
        variables: &[(&str, &OsStr)],
    ) -> Result<(Outcome, Reported)> {
        let start = Instant::now();
        let mut process = self.start(setup, &[test], folder, variables)?;
        let end = process.end()?;
        let outcome = Outcome::of(&process.text(), end, start.elapsed().as_secs_f64());
        Ok((outcome, process.reported()))
    }

    /// Starts a process with these tests in this folder, with these variables in its environment.
    pub(super) fn start(
        &self,
        setup: &Setup,
        tests: &[&Test],
        folder: &Path,
        variables: &[(&str, &OsStr)],
    ) -> Result<Process> {
        let runner = self.root.join("bin/shader_runner");
        let place = || crate::shown::path(&runner);
        let (output, report) = (folder.join("output"), folder.join("report"));
        let shown = || crate::shown::path(&output);
        let write = OpenOptions::new().create(true).append(true).open(&output).with_context(shown)?;
        let mut command = Command::new(&runner);
        setup.apply_with(&mut command, &[self.root.join("lib")]);
        command.env("PIGLIT_SOURCE_DIR", self.root);
        command.env("RECONVERGE_DRM_REPORT", &report).envs(variables.iter().copied());
        // As many processes as processors run at once.
        command.env("RAYON_NUM_THREADS", "1");
        command.args(tests.iter().map(|test| &test.file)).args(["-auto", "-fbo"]);
        if tests.len() > 1 {
            command.arg("-report-subtests");
        }
        command.current_dir(folder).stdin(Stdio::null());
        command.stdout(write.try_clone().with_context(shown)?).stderr(write);
        Ok(Process {
            child: command.spawn().with_context(place)?,
            output: File::open(&output).with_context(shown)?,
            report,
            timeout: self.args.timeout.0,
            left: tests.len(),
            text: Vec::new(),
            next: 0,
            since: Instant::now(),
            end: None,
        })
    }
}

/// A process.
pub(super) struct Process {
    child: Child,
    output: File,
    report: PathBuf,
    timeout: Duration,
    /// Number of tests without a verdict, in a process with several.
    left: usize,
    /// The output so far.
    text: Vec<u8>,
    /// Offset in the text of the next line that [`Process::verdict`] reads.
    next: usize,
    /// When the running test began.
    since: Instant,
    end: Option<Exit>,
}

impl Process {
    /// Waits for the verdict on this test, the next one in a process with several. Returns its outcome and its output, or
    /// `None` if the process ended before, or took too long. For the last test, the process must also end well.
    pub(super) fn verdict(&mut self, test: &Test) -> Result<Option<(Outcome, String)>> {
        let name = test.file.file_stem().unwrap_or_default().to_string_lossy();
        let (first, mut began) = (self.next, false);
        loop {
            let over = self.look()?;
            while let Some(line) = self.line() {
                if let Some(status) = verdict_of(&name, &line) {
                    let seconds = self.since.elapsed().as_secs_f64();
                    let text = String::from_utf8_lossy(&self.text[first..self.next]).into_owned();
                    self.since = Instant::now();
                    self.left -= 1;
                    let crashed = self.left == 0 && self.end()? != Exit::Done;
                    let outcome = Outcome { status, seconds, why: String::new() };
                    return Ok((!crashed).then_some((outcome, text)));
                }
                // The second of the two lines has the time of the verdict.
                if line.starts_with("PIGLIT TEST:") && !began {
                    (self.since, began) = (Instant::now(), true);
                }
            }
            if over {
                return Ok(None);
            }
            thread::sleep(POLL);
        }
    }

    /// Waits for the end of the process.
    pub(super) fn end(&mut self) -> Result<Exit> {
        while !self.look()? {
            thread::sleep(POLL);
        }
        Ok(self.end.unwrap_or(Exit::Done))
    }

    /// Reads the output so far, and returns whether the process has ended. A process whose test takes too long is killed.
    ///
    /// # Errors
    /// Ctrl-C was pressed.
    fn look(&mut self) -> Result<bool> {
        if self.end.is_none() {
            self.end = match self.child.try_wait().context("shader_runner")? {
                Some(status) => Some(status.signal().map_or(Exit::Done, Exit::Signal)),
                None if interrupt::asked() => bail!("interrupted"),
                None if self.since.elapsed() >= self.timeout => {
                    self.kill();
                    Some(Exit::Timeout)
                }
                None => None,
            };
        }
        self.output.read_to_end(&mut self.text).context("the output of shader_runner")?;
        Ok(self.end.is_some())
    }

    /// The next whole line.
    fn line(&mut self) -> Option<String> {
        let rest = &self.text[self.next..];
        let length = rest.iter().position(|byte| *byte == b'\n')?;
        self.next += length + 1;
        Some(String::from_utf8_lossy(&rest[..length]).into_owned())
    }

    /// The output so far.
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.text).into_owned()
    }

    /// The counts in the report so far.
    pub(super) fn reported(&self) -> Reported {
        Reported::of(&fs::read_to_string(&self.report).unwrap_or_default())
    }

    fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.end.is_none() {
            self.kill();
        }
    }
}
