//! Sends a frame to the frame files, to the recording and to the window.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;

use crate::messages::say_once;
use crate::node::State;
use crate::whole;

use super::picture::picture;
use super::{Framebuffer, Screen, window};

/// Maximum number of frames that a process writes to files.
const WRITTEN: u64 = 10_000;
/// Maximum number of processes that can write frames into a folder.
const PROCESSES: u32 = 10_000;

/// Writes, records and shows a frame. The picture is the part of the framebuffer that starts at `place` and has the
/// size `size`. Without a framebuffer, the picture is black.
///
/// Frames that could not be written or recorded are counted. The first such frame is reported.
pub(super) fn put(state: &mut State, framebuffer: Option<&Framebuffer>, place: [u32; 2], size: [u32; 2]) {
    let writes = state.screen.folder.is_some() && !is_past_the_last(&state.screen);
    if !writes && state.screen.recording.is_none() && state.screen.window.is_none() {
        return;
    }
    let picture = picture(state, framebuffer, place, size);
    if writes && let Err(error) = write(&mut state.screen, &picture, size) {
        let folder = state.screen.folder.as_deref().unwrap_or(Path::new(""));
        say_once(&format!("{}: frames are not written: {error}", folder.display()));
        state.lost_frames += 1;
    }
    let screen = &mut state.screen;
    if let Some(recording) = &mut screen.recording
        && let Err(error) = result(&picture).and_then(|picture| recording.append(picture, size))
    {
        say_once(&format!("{}: frames are not recorded: {error}", recording.file().display()));
        screen.unrecorded += 1;
    }
    if let Ok(picture) = &picture {
        window::show(state, picture, size);
    }
}

/// Returns whether the number of frames exceeds [`WRITTEN`]. Reports once that further frames are not written.
fn is_past_the_last(screen: &Screen) -> bool {
    let is_past = screen.frames - screen.others > WRITTEN;
    if is_past {
        say_once(&format!("frames after the first {WRITTEN} are not written"));
    }
    is_past
}

fn write(screen: &mut Screen, picture: &io::Result<Vec<u8>>, [width, height]: [u32; 2]) -> io::Result<()> {
    let mut file = format!("P6\n{width} {height}\n255\n").into_bytes();
    file.extend(result(picture)?);
    save(screen, &file)
}

/// Returns the picture by reference, or a copy of the error.
fn result(picture: &io::Result<Vec<u8>>) -> io::Result<&[u8]> {
    match picture {
        Ok(picture) => Ok(picture),
        Err(error) => Err(io::Error::new(error.kind(), error.to_string())),
    }
}

/// Writes a picture to the file of the last frame.
pub(super) fn save(screen: &mut Screen, picture: &[u8]) -> io::Result<()> {
    while screen.process <= PROCESSES {
        let Some(folder) = &screen.folder else { return Ok(()) };
        let path = folder.join(screen.name());
        match whole::create(&path, picture) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            written => {
                screen.pictures += u64::from(written.is_ok());
                return written;
            }
        }
        // Processes write frames to regular files only. If the path is a link, the frame therefore replaces the link.
        // If the path is a file, the file is a frame of another process. In this case, the loop tries the next process
        // number.
        if fs::symlink_metadata(&path).is_ok_and(|about| about.is_symlink()) {
            fs::remove_file(&path)?;
        } else {
            screen.process += 1;
        }
    }
    Err(io::Error::other(format!("{PROCESSES} processes have already written frames to this folder")))
}
