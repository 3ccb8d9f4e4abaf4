//! Files with the frames that were shown.

use std::fs;
use std::io::{self, ErrorKind};

use crate::messages::say_once;
use crate::node::State;
use crate::whole;

use super::picture::picture;
use super::{Framebuffer, Screen};

/// Number of frames of a process that are written.
const WRITTEN: u64 = 10_000;
/// Number of processes that can write frames into a folder.
const PROCESSES: u32 = 10_000;

/// Writes the part of a framebuffer that is on the screen, of this size and from this place on.
pub(super) fn write(
    state: &mut State,
    framebuffer: &Framebuffer,
    place: [u32; 2],
    [width, height]: [u32; 2],
) -> io::Result<()> {
    if state.screen.folder.is_none() {
        return Ok(());
    }
    if state.screen.frames - state.screen.others > WRITTEN {
        say_once(&format!("frames after the first {WRITTEN} are not written"));
        return Ok(());
    }
    let mut file = format!("P6\n{width} {height}\n255\n").into_bytes();
    file.extend(picture(state, framebuffer, place, [width, height])?);
    save(&mut state.screen, &file)
}

/// Writes a picture under the name of the last frame.
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
        // A link is replaced, since no frame is one. A file belongs to another process.
        if fs::symlink_metadata(&path).is_ok_and(|about| about.is_symlink()) {
            fs::remove_file(&path)?;
        } else {
            screen.process += 1;
        }
    }
    Err(io::Error::other(format!("{PROCESSES} processes have written frames here")))
}
