//! Processes that run tests in a new folder. A process runs one of piglit's programs with one test, or `shader_runner`
//! with several tests.
//!
//! With several tests and `-report-subtests`, shader_runner runs the tests in the order of the arguments. When a test
//! starts, shader_runner writes `PIGLIT TEST: 1 - NAME` to standard error, unbuffered. When the test ends,
//! shader_runner writes the same line again. When the test ends, shader_runner also writes `PIGLIT: {"subtest": {"NAME"
//! : "pass"}}` to standard output, and flushes standard output. Some tests end the process instead of returning the
//! result skip. In that case, the remaining tests do not run.

use std::env;
use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::Read;
use std::os::unix::fs::symlink;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use reconverge_output::random_name;

use super::Piglit;
use super::outcome::{Exit, Outcome, Reported, Status, ends_with_skip, verdict_of};
use super::test::Test;
use crate::drm::setup::Setup;
use crate::interrupt;

/// Interval at which a running process is polled.
const POLL: Duration = Duration::from_millis(2);

/// The arguments and the folder that all processes share.
#[derive(Clone, Copy)]
pub(super) struct Runner<'a> {
    pub(super) args: &'a Piglit,
    /// The folder of piglit's files.
    pub(super) root: &'a Path,
}

impl Runner<'_> {
    /// Whether the tests belong to a profile.
    pub(super) const fn is_profile(&self) -> bool {
        self.args.profile.is_some()
    }

    /// Returns the number of concurrent processes.
    pub(super) fn jobs(&self) -> usize {
        let processors = thread::available_parallelism().map_or(1, usize::from);
        self.args.jobs.map_or(processors, usize::from)
    }

    /// Calls `work` with a new folder and deletes the folder afterwards.
    pub(super) fn in_folder<T>(&self, work: impl FnOnce(&Path) -> Result<T>) -> Result<T> {
        let folder = env::temp_dir().join(format!("reconverge-piglit-{}", random_name()?));
        fs::create_dir(&folder).with_context(|| crate::shown::path(&folder))?;
        let done = work(&folder);
        let _ = fs::remove_dir_all(&folder);
        done
    }

    /// Runs a test alone in `folder`, with the environment variables in `variables`.
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
        let (text, seconds) = (process.text(), start.elapsed().as_secs_f64());
        let outcome = match self.is_profile() {
            true => Outcome::of_command(&text, end, seconds),
            false => Outcome::of(&text, end, seconds),
        };
        Ok((outcome, process.reported()))
    }

    /// Starts a process that runs `tests` in `folder`, with the environment variables in `variables`. If `tests` has
    /// several tests, the tests must have equal needs.
    pub(super) fn start(
        &self,
        setup: &Setup,
        tests: &[&Test],
        folder: &Path,
        variables: &[(&str, &OsStr)],
    ) -> Result<Process> {
        let first = tests.first().context("a process needs a test")?;
        let runner = self.root.join("bin").join(&first.program);
        let place = || crate::shown::path(&runner);
        let (output, report) = (folder.join("output"), folder.join("report"));
        let shown = || crate::shown::path(&output);
        let write = OpenOptions::new().create(true).append(true).open(&output).with_context(shown)?;
        let mut command = Command::new(&runner);
        setup.apply_with(&mut command, &[self.root.join("lib")]);
        command.env("PIGLIT_SOURCE_DIR", self.root);
        command.env("RECONVERGE_DRM_REPORT", &report).envs(variables.iter().copied());
        // Each process uses one thread, because the command runs as many processes as the host has processors.
        command.env("RAYON_NUM_THREADS", "1");
        command.envs(first.environment.iter().map(|(name, value)| (name, value)));
        command.args(tests.iter().flat_map(|test| &test.arguments)).args(first.options);
        if tests.len() > 1 {
            command.arg("-report-subtests");
        }
        if self.is_profile() {
            // Some arguments are paths relative to piglit's folder, because deqp-runner starts programs in that folder.
            for name in ["tests", "generated_tests"] {
                symlink(self.root.join(name), folder.join(name)).with_context(place)?;
            }
            // The process group also contains programs that the test starts. So these programs end together with the
            // test.
            command.process_group(0);
        }
        command.current_dir(folder).stdin(Stdio::null());
        command.stdout(write.try_clone().with_context(shown)?).stderr(write);
        Ok(Process {
            child: command.spawn().with_context(place)?,
            output: File::open(&output).with_context(shown)?,
            report,
            timeout: self.args.timeout.0,
            is_profile: self.is_profile(),
            stopped: false,
            left: tests.len(),
            text: Vec::new(),
            next: 0,
            since: Instant::now(),
            end: None,
        })
    }
}

/// A running or ended process.
pub(super) struct Process {
    child: Child,
    output: File,
    report: PathBuf,
    timeout: Duration,
    /// Whether the tests belong to a profile.
    is_profile: bool,
    /// Whether the latest test with a verdict was skipped and ended the process.
    stopped: bool,
    /// Number of tests without a verdict, in a process with several tests.
    left: usize,
    /// The output that was read so far.
    text: Vec<u8>,
    /// Offset of the first line of the output that [`Process::verdict`] has not read yet.
    next: usize,
    /// Start time of the running test.
    since: Instant,
    end: Option<Exit>,
}

impl Process {
    /// Waits for the verdict of a test. The caller must pass the tests of a process to this function in the order in
    /// which the tests run. Returns the outcome and the output. Returns `None` if the process ended without a verdict
    /// or exceeded the timeout. Also returns `None` if the process does not exit normally after the last test. If a
    /// test of a profile ends the process to report a skip, the outcome is the reported skip.
    pub(super) fn verdict(&mut self, test: &Test) -> Result<Option<(Outcome, String)>> {
        let name = test.shared.as_ref().map_or("", |shared| &shared.stem);
        let (first, mut began) = (self.next, false);
        loop {
            let over = self.look()?;
            while let Some(line) = self.line() {
                if let Some(status) = verdict_of(name, &line) {
                    let seconds = self.since.elapsed().as_secs_f64();
                    let text = String::from_utf8_lossy(&self.text[first..self.next]).into_owned();
                    self.since = Instant::now();
                    self.left -= 1;
                    let crashed = self.left == 0 && self.end()? != Exit::Done;
                    return Ok((!crashed).then_some((Outcome::plain(status, seconds), text)));
                }
                // Each test writes two `PIGLIT TEST:` lines. The time of the second line is the time of the verdict.
                if line.starts_with("PIGLIT TEST:") && !began {
                    (self.since, began) = (Instant::now(), true);
                }
            }
            if over {
                let text = String::from_utf8_lossy(&self.text[first..]).into_owned();
                self.stopped = self.is_profile && self.end == Some(Exit::Done) && ends_with_skip(&text);
                let skip = Outcome::plain(Status::Skip, self.since.elapsed().as_secs_f64());
                return Ok(self.stopped.then_some((skip, text)));
            }
            thread::sleep(POLL);
        }
    }

    /// Returns whether the latest test with a verdict was skipped and ended the process. If so, the remaining tests
    /// have no verdicts.
    pub(super) const fn stopped(&self) -> bool {
        self.stopped
    }

    /// Waits for the end of the process.
    pub(super) fn end(&mut self) -> Result<Exit> {
        while !self.look()? {
            thread::sleep(POLL);
        }
        Ok(self.end.unwrap_or(Exit::Done))
    }

    /// Reads the new output. Returns whether the process has ended. If the current test exceeds the timeout, kills the
    /// process.
    ///
    /// # Errors
    /// Returns an error if the user pressed Ctrl-C.
    fn look(&mut self) -> Result<bool> {
        if self.end.is_none() {
            self.end = match self.child.try_wait().context("a test program")? {
                Some(status) => Some(match (status.signal(), status.code()) {
                    (Some(signal), _) => Exit::Signal(signal),
                    // Test programs exit with status 0, or with status 1 if the test fails.
                    (None, Some(code)) if self.is_profile && !(0..=1).contains(&code) => Exit::Status(code),
                    _ => Exit::Done,
                }),
                None if interrupt::asked() => bail!("interrupted"),
                None if self.since.elapsed() >= self.timeout => {
                    self.kill();
                    Some(Exit::Timeout)
                }
                None => None,
            };
        }
        self.output.read_to_end(&mut self.text).context("the output of a test program")?;
        Ok(self.end.is_some())
    }

    /// Returns the next complete line of the output.
    fn line(&mut self) -> Option<String> {
        let rest = &self.text[self.next..];
        let length = rest.iter().position(|byte| *byte == b'\n')?;
        self.next += length + 1;
        Some(String::from_utf8_lossy(&rest[..length]).into_owned())
    }

    /// Returns the output so far.
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.text).into_owned()
    }

    /// Returns the counts in the report that the process has written so far.
    pub(super) fn reported(&self) -> Reported {
        Reported::of(&fs::read_to_string(&self.report).unwrap_or_default())
    }

    fn kill(&mut self) {
        if self.is_profile
            && let Ok(group) = i32::try_from(self.child.id())
        {
            let _ = killpg(Pid::from_raw(group), Signal::SIGKILL);
        }
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
