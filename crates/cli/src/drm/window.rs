//! The window of `--screen window`: it shows the screen of the emulated board, and its keyboard and mouse are those of the
//! program.
//!
//! The protocol is in [`reconverge_board::screen`]. A thread reads frames; the loop of [`ScreenWindow::until_end`] draws the
//! newest one and sends events.
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

/// The time from one look at keyboard and mouse to the next.
const LOOK: Duration = Duration::from_millis(8);
/// The time after which the picture is drawn again. X11 does not keep what other windows have covered.
const REDRAW: Duration = Duration::from_millis(250);
/// The time from one title to the next.
const TITLE: Duration = Duration::from_millis(500);

/// The remedy in messages.
const INSTEAD: &str = "--screen DIR and --record FILE keep frames without a window";

/// An open window, and the sockets of the program.
pub(super) struct ScreenWindow {
    window: Window,
    /// Changes of keys since the last look.
    keys: Rc<RefCell<Vec<(Key, bool)>>>,
    /// Start of the title.
    title: String,
    /// Scroll of the library per step of a wheel, up and to the right.
    per_step: [f32; 2],
    reader: FrameReader,
    keyboard: Device,
    pointer: Device,
    folder: SocketFolder,
}

/// Checks that there is a window system.
///
/// # Errors
/// Neither variable of one is set.
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
    /// The window system's, or that of the system for the sockets.
    pub(super) fn open(program: &OsStr, board: &Board) -> Result<ScreenWindow> {
        let folder = SocketFolder::new().context("--screen window: the folder for sockets")?;
        let socket = |name: &str| {
            let path = folder.0.join(name);
            let shown =
                || format!("--screen window: {}; TMPDIR names another folder", crate::shown::path(&path));
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
        // The loop waits for frames itself.
        window.set_target_fps(0);
        let keys = Rc::new(RefCell::new(Vec::new()));
        window.set_input_callback(Box::new(Keys(Rc::clone(&keys))));
        // On X11 the press and the release of a wheel's button are both counted, up and to the left. On Wayland a step is 10
        // units of a surface, down and to the right. (minifb 0.29, `process_button`; Weston)
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

    /// The folder of the sockets.
    pub(super) fn folder(&self) -> &Path {
        &self.folder.0
    }

    /// Shows the screen until the program has ended. If the user closes the window, the program gets SIGTERM.
    ///
    /// # Errors
    /// The system's, for the program.
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
            // It may have ended just now.
            let _ = kill(Pid::from_raw(id), Signal::SIGTERM);
        }
        // The library finds that the sockets are gone, and continues without them if the program does.
        drop(self);
        child.wait()
    }

    /// Sends what keyboard and mouse have done since the last time.
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
        // A drag continues outside of the window.
        let mode = if buttons.contains(&true) { MouseMode::Clamp } else { MouseMode::Discard };
        let place = self.window.get_mouse_pos(mode);
        let (across, down) = self.window.get_scroll_wheel().unwrap_or_default();
        let steps = [across / self.per_step[0], down / self.per_step[1]];
        let (width, height) = self.window.get_size();
        let seen = Seen { place, window: [width as f32, height as f32], picture, buttons, steps };
        self.pointer.send(&pointer.events(&seen));
    }
}

/// Collects changes of keys in their order.
struct Keys(Rc<RefCell<Vec<(Key, bool)>>>);

impl InputCallback for Keys {
    fn add_char(&mut self, _: u32) {}

    fn set_key_state(&mut self, key: Key, is_down: bool) {
        self.0.borrow_mut().push((key, is_down));
    }
}

/// A new folder that no other user can open, which is removed at the end.
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
