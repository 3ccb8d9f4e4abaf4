//! The browser that runs the files of a server.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::{Pid, Uid};

use super::Webgl;
use super::server::{Queue, Server};
use super::verdict::FileEnd;
use crate::drm::setup::Setup;

/// Interval at which the browser is polled.
const POLL: Duration = Duration::from_millis(20);

/// Maximum time from the start of a browser to the first file.
const START: Duration = Duration::from_secs(60);

/// Time from the timeout of a file until the browser is killed. Normally, the page ends a file at the timeout. If the
/// script of the file blocks the page, the page cannot end the file.
const GRACE: Duration = Duration::from_secs(10);

/// Options of Chromium. ANGLE uses OpenGL through EGL and runs in the browser process. Chromium's GPU watchdog is off.
const OPTIONS: &[&str] = &[
    "--headless=new",
    "--no-first-run",
    "--in-process-gpu",
    "--ignore-gpu-blocklist",
    "--disable-gpu-watchdog",
    "--use-gl=angle",
    "--use-angle=gl-egl",
    "--disable-extensions",
    "--disable-background-networking",
    "--disable-background-timer-throttling",
    "--disable-renderer-backgrounding",
    "--autoplay-policy=no-user-gesture-required",
    "--force-device-scale-factor=1",
    "--js-flags=--expose-gc",
];

/// The renderer that draws the files.
pub(super) struct Drawn<'a> {
    /// The environment of the browser.
    pub(super) setup: &'a Setup,
    /// Whether llvmpipe draws instead of the chip.
    pub(super) is_control: bool,
    /// The start of the renderer's name.
    pub(super) renderer: &'a str,
    /// Additional options of the browser.
    pub(super) options: &'a [&'a str],
}

impl Drawn<'_> {
    /// Runs all files of a server. If a browser ends or hangs, another browser is started for the remaining files. The
    /// browsers write to `folder`. If `goes_on` returns `false`, the function returns early.
    ///
    /// # Errors
    /// Returns an error if the browser cannot start, or if the browser does not use the expected renderer.
    pub(super) fn run(
        &self,
        args: &Webgl,
        server: &Server,
        folder: &Path,
        goes_on: &dyn Fn() -> bool,
    ) -> Result<()> {
        let mut number = 0;
        while !server.with(|queue| queue.is_done()) {
            number += 1;
            let mut browser = self.start(args, server.port, &folder.join(number.to_string()))?;
            let started = Instant::now();
            let before = server.with(|queue| done(queue));
            loop {
                thread::sleep(POLL);
                if !goes_on() {
                    return Ok(());
                }
                let (running, renderer, is_done) =
                    server.with(|queue| (queue.running, queue.renderer.clone(), queue.is_done()));
                self.check(renderer.as_deref(), args)?;
                if is_done {
                    return Ok(());
                }
                let ended = browser.child.try_wait().context("the browser")?;
                let hangs = match running {
                    Some((_, since)) => since.elapsed() > args.timeout.0 + GRACE,
                    None => renderer.is_none() && started.elapsed() > START,
                };
                if ended.is_some() || hangs {
                    let end = if hangs { FileEnd::Timeout } else { FileEnd::Crash };
                    server.with(|queue| queue.cut_off(end));
                    if server.with(|queue| done(queue)) == before {
                        bail!(
                            "{}: did not run any file{}",
                            crate::shown::program(&args.browser),
                            browser.said()
                        );
                    }
                    break;
                }
            }
        }
        Ok(())
    }

    /// Checks the browser's renderer.
    fn check(&self, found: Option<&str>, args: &Webgl) -> Result<()> {
        match found {
            Some("") => bail!("cannot create a context of WebGL {} on {}", args.version, self.renderer),
            Some(found) if !found.contains(self.renderer) => {
                bail!("WebGL draws with `{found}`, not with {}", self.renderer)
            }
            _ => Ok(()),
        }
    }

    fn start(&self, args: &Webgl, port: u16, folder: &Path) -> Result<Browser> {
        let shown = || crate::shown::path(folder);
        fs::create_dir_all(folder).with_context(shown)?;
        let log = File::create(folder.join("log")).with_context(shown)?;
        let mut command = Command::new(&args.browser);
        self.setup.apply(&mut command);
        if self.is_control {
            Setup::draw_in_software(&mut command, "llvmpipe");
        }
        command.args(OPTIONS).args(self.options);
        // The user root can run Chromium only without Chromium's sandbox.
        if Uid::effective().is_root() {
            command.arg("--no-sandbox");
        }
        command.arg(format!("--user-data-dir={}", folder.join("profile").display()));
        command.arg(format!("http://127.0.0.1:{port}/"));
        command.stdin(Stdio::null()).stdout(log.try_clone().with_context(shown)?).stderr(log);
        // The processes of the browser form a group, so that one signal can end all of these processes.
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let child = command.spawn().with_context(|| {
            format!("{}; install it with `apt-get install chromium`", crate::shown::program(&args.browser))
        })?;
        Ok(Browser { child, log: folder.join("log") })
    }
}

/// Returns the number of files that have a verdict.
fn done(queue: &Queue) -> usize {
    queue.verdicts.iter().flatten().count()
}

/// A running browser. Dropping the value ends the browser.
struct Browser {
    child: Child,
    log: std::path::PathBuf,
}

impl Browser {
    /// Returns the last lines of the browser's output, for a message.
    fn said(&self) -> String {
        let text = fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = text.lines().filter(|line| !line.contains("dbus")).collect();
        lines[lines.len().saturating_sub(5)..].iter().map(|line| format!("\n{line}")).collect()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = killpg(Pid::from_raw(self.child.id() as i32), Signal::SIGKILL);
        let _ = self.child.wait();
    }
}
