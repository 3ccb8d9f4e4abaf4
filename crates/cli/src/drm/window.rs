//! The window of `--screen window`. The window shows the screen of the emulated board. The program receives the
//! keyboard and mouse events of the window.
//!
//! [`reconverge_board::screen`] defines the protocol. One thread reads frames. The loop in
//! [`ScreenWindow::until_end`] draws the newest frame and sends events.
//!
//! | module | |
//! |---|---|
//! | `frames` | the frames of the program, and the counts in the title |
//! | `input` | the sockets for events, and the state of keyboard and pointer |
//! | `keys` | the kernel's numbers of keys |

mod frames;
mod input;
mod keys;

use std::cell::RefCell;
use std::env;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{self, Child, ExitStatus};
use std::rc::Rc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};
use minifb::{InputCallback, Key, MouseButton, MouseMode, ScaleMode, Window, WindowOptions};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use raw_window_handle::{HasWindowHandle, RawWindowHandle};
use reconverge_board::Board;
use reconverge_board::screen::{FRAMES, KEYBOARD, POINTER, PREFERRED};

use crate::messages::counted;
use frames::{FrameReader, ScreenFrame};
use input::{Device, Pointer, Seen};

/// Interval at which keyboard and mouse are polled.
const LOOK: Duration = Duration::from_millis(8);
/// Interval after which the picture is drawn again. The window must be drawn again, because X11 does not keep content
/// that another window has covered.
const REDRAW: Duration = Duration::from_millis(250);
/// Interval at which the title is updated.
const TITLE: Duration = Duration::from_millis(500);

/// Part of a message that suggests an alternative to a window.
const INSTEAD: &str = "--screen DIR and --record FILE write frames without a window";

/// An open window, and the sockets to which programs connect.
pub(super) struct ScreenWindow {
    window: Window,
    /// Keys that were pressed or released after the last call of [`ScreenWindow::send_events`].
    keys: Rc<RefCell<Vec<(Key, bool)>>>,
    /// Start of the title.
    title: String,
    /// The scroll distances that the window library reports per step of a wheel. The first number is the distance to
    /// the right. The second number is the distance up.
    per_step: [f32; 2],
    reader: FrameReader,
    keyboard: Device,
    pointer: Device,
    folder: SocketFolder,
}

/// Checks that there is a window system.
///
/// # Errors
/// Returns an error if no environment variable of a window system is set.
pub(super) fn check() -> Result<()> {
    let is_set = |name: &str| env::var_os(name).is_some_and(|value| !value.is_empty());
    if !["WAYLAND_DISPLAY", "WAYLAND_SOCKET", "DISPLAY"].into_iter().any(is_set) {
        bail!("--screen window: neither DISPLAY nor WAYLAND_DISPLAY is set; {INSTEAD}");
    }
    Ok(())
}

impl ScreenWindow {
    /// Opens the window for a program on a board.
    ///
    /// # Errors
    /// Returns an error if the window or a socket cannot be created.
    pub(super) fn open(program: &OsStr, board: &Board) -> Result<ScreenWindow> {
        let folder = SocketFolder::new().context("--screen window: the folder for sockets")?;
        let socket = |name: &str| {
            let path = folder.0.join(name);
            let shown =
                || format!("--screen window: {}; set TMPDIR to another folder", crate::shown::path(&path));
            std::os::unix::net::UnixListener::bind(&path).with_context(shown)
        };
        let (frames, keyboard, pointer) = (socket(FRAMES)?, socket(KEYBOARD)?, socket(POINTER)?);
        let program = Path::new(program).file_name().unwrap_or(program);
        let title =
            format!("reconverge: {} on {} ({})", crate::shown::path(&program), board.name, board.chip);
        let options = WindowOptions {
            resize: true,
            scale_mode: ScaleMode::AspectRatioStretch,
            ..WindowOptions::default()
        };
        let [width, height] = PREFERRED.map(usize::from);
        let window = Window::new(&title, width, height, options);
        let mut window = window.map_err(|why| anyhow::anyhow!("--screen window: {why}; {INSTEAD}"))?;
        // The library does not limit the frame rate, because the loop in `until_end` waits for frames.
        window.set_target_fps(0);
        let keys = Rc::new(RefCell::new(Vec::new()));
        window.set_input_callback(Box::new(Keys(Rc::clone(&keys))));
        // On X11, the library adds a step for the press and another step for the release of a wheel button. The
        // positive directions of a wheel are up and to the left. On Wayland, a step of a wheel is 10 surface units. On
        // Wayland, the positive directions are down and to the right. (minifb 0.29, `process_button`; Weston)
        let on_wayland =
            window.window_handle().is_ok_and(|handle| matches!(handle.as_raw(), RawWindowHandle::Wayland(_)));
        let per_step = if on_wayland { [10., -10.] } else { [-2., 2.] };
        Ok(ScreenWindow {
            window,
            keys,
            title,
            per_step,
            reader: FrameReader::new(frames, folder.0.join(FRAMES)).context("--screen window")?,
            keyboard: Device::new(keyboard).context("--screen window")?,
            pointer: Device::new(pointer).context("--screen window")?,
            folder,
        })
    }

    /// Returns the folder of the sockets.
    pub(super) fn folder(&self) -> &Path {
        &self.folder.0
    }

    /// Shows the screen until the program ends. If the user closes the window, the program receives SIGTERM.
    ///
    /// # Errors
    /// Returns an error if the system cannot wait for the program.
    pub(super) fn until_end(mut self, child: &mut Child) -> io::Result<ExitStatus> {
        let [width, height] = PREFERRED.map(u32::from);
        let mut frame = ScreenFrame { size: [width, height], pixels: vec![0; (width * height) as usize] };
        let mut pointer = Pointer::default();
        let (mut drawn, mut titled) = (None::<(Instant, (usize, usize))>, None::<Instant>);
        loop {
            if let Some(status) = child.try_wait()? {
                return Ok(status);
            }
            let new = self.reader.newest(LOOK);
            let is_new = new.is_some();
            frame = new.unwrap_or(frame);
            let size = self.window.get_size();
            let is_stale = drawn.is_none_or(|(when, of)| when.elapsed() >= REDRAW || of != size);
            if is_new || is_stale {
                let [width, height] = frame.size.map(|size| size as usize);
                if let Err(why) = self.window.update_with_buffer(&frame.pixels, width, height) {
                    tell!("warning: --screen window: {why}");
                    break;
                }
                drawn = Some((Instant::now(), size));
            } else {
                self.window.update();
            }
            if !self.window.is_open() {
                break;
            }
            self.send_events(&mut pointer, frame.size);
            if titled.is_none_or(|when| when.elapsed() >= TITLE) {
                let [rate, resets, unknown] = self.reader.counts();
                let counts = [counted(resets, "reset"), counted(unknown, "unknown feature")].join(", ");
                let rate = rate as f64 / 10.;
                self.window.set_title(&format!("{} — {rate:.1} frames/s, {counts}", self.title));
                titled = Some(Instant::now());
            }
        }
        if let Ok(id) = i32::try_from(child.id()) {
            // `kill` fails if the program has just ended.
            let _ = kill(Pid::from_raw(id), Signal::SIGTERM);
        }
        // If the program continues, the preloaded library detects the closed sockets and no longer uses these sockets.
        drop(self);
        child.wait()
    }

    /// Sends keyboard and mouse events to the program. The events are the changes after the last call of this method.
    fn send_events(&mut self, pointer: &mut Pointer, picture: [u32; 2]) {
        let changes = self.keys.take();
        self.keyboard.accept();
        if self.pointer.accept() {
            pointer.forget_place();
        }
        for (key, is_down) in changes {
            self.keyboard.key(keys::code(key), is_down);
        }
        self.keyboard.set_active(self.window.is_active());
        let buttons = [MouseButton::Left, MouseButton::Right, MouseButton::Middle]
            .map(|button| self.window.get_mouse_down(button));
        // During a drag, positions outside of the window are moved to the window's edge.
        let mode = if buttons.contains(&true) { MouseMode::Clamp } else { MouseMode::Discard };
        let place = self.window.get_mouse_pos(mode);
        let (across, down) = self.window.get_scroll_wheel().unwrap_or_default();
        let steps = [across / self.per_step[0], down / self.per_step[1]];
        let (width, height) = self.window.get_size();
        let seen = Seen { place, window: [width as f32, height as f32], picture, buttons, steps };
        self.pointer.send(&pointer.events(&seen));
    }
}

/// Collects key changes in order.
struct Keys(Rc<RefCell<Vec<(Key, bool)>>>);

impl InputCallback for Keys {
    fn add_char(&mut self, _: u32) {}

    fn set_key_state(&mut self, key: Key, is_down: bool) {
        self.0.borrow_mut().push((key, is_down));
    }
}

/// A temporary folder that other users cannot open.
struct SocketFolder(PathBuf);

impl SocketFolder {
    fn new() -> io::Result<SocketFolder> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        let path = env::temp_dir().join(format!("reconverge-window-{}-{now}", process::id()));
        let path = std::path::absolute(path)?;
        fs::DirBuilder::new().mode(0o700).create(&path)?;
        Ok(SocketFolder(path))
    }
}

impl Drop for SocketFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
