//! The picture on the screen. The picture consists of the framebuffer and the cursor above the framebuffer. The gamma
//! table is applied to the framebuffer and the cursor. This file also answers the requests for the cursor and the gamma
//! table.

use std::io;

use crate::buffers::{BufferId, FileId};
use crate::ioctls::{Errno, ModeCursor, ModeGamma};
use crate::node::State;
use crate::user;

use super::{CRTC, Framebuffer, Screen, Shown, known, refresh};

/// The order of red, green and blue in the bytes of a pixel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pixels {
    /// Four bytes, blue first.
    Bgrx,
    /// Four bytes, red first.
    Rgbx,
    /// Two bytes: five bits of blue, six of green, five of red.
    Rgb565,
}

impl Pixels {
    /// Returns the order of a format from its four-letter code.
    pub(super) fn of_code(code: u32) -> Option<Pixels> {
        Some(match &code.to_le_bytes() {
            b"XR24" | b"AR24" => Pixels::Bgrx,
            b"XB24" | b"AB24" => Pixels::Rgbx,
            b"RG16" => Pixels::Rgb565,
            _ => return None,
        })
    }

    pub(super) fn bytes(self) -> usize {
        match self {
            Pixels::Bgrx | Pixels::Rgbx => 4,
            Pixels::Rgb565 => 2,
        }
    }

    /// Returns two numbers: the number of bits in a pixel, and how many of these bits contain colours.
    pub(super) fn bits(self) -> [u32; 2] {
        match self {
            Pixels::Bgrx | Pixels::Rgbx => [32, 24],
            Pixels::Rgb565 => [16, 16],
        }
    }

    /// Returns red, green and blue from the bytes of a pixel.
    pub(super) fn color(self, pixel: &[u8]) -> [u8; 3] {
        match (self, pixel) {
            (Pixels::Bgrx, [b, g, r, _]) | (Pixels::Rgbx, [r, g, b, _]) => [*r, *g, *b],
            (Pixels::Rgb565, [low, high]) => {
                let word = u16::from_le_bytes([*low, *high]);
                let scaled = |value: u16, most: u16| ((value * 255 + most / 2) / most) as u8;
                [scaled(word >> 11, 31), scaled(word >> 5 & 63, 63), scaled(word & 31, 31)]
            }
            _ => unreachable!("pixels are cut to their size"),
        }
    }
}

/// Number of entries in the gamma table for each colour.
pub(super) const GAMMA: usize = 256;

/// The gamma table. For each value of red, green and blue, the table has the 16-bit value that the screen shows.
pub(super) type Gamma = [Vec<u16>; 3];

/// Returns the table that leaves colours unchanged.
pub(super) fn straight() -> Gamma {
    [0, 1, 2].map(|_| (0..GAMMA as u16).map(|value| value * 0x101).collect())
}

/// Flags of a cursor request that sets a new picture or a new position. (`DRM_MODE_CURSOR_BO`, `DRM_MODE_CURSOR_MOVE`)
pub(super) const CURSOR_PICTURE: u32 = 1;
pub(super) const CURSOR_MOVE: u32 = 2;
/// Maximum width and height of the cursor in pixels. This maximum is the same for R500, R600/R700 and Tesla.
pub(super) const CURSOR: u32 = 64;

/// The cursor: a small picture above the framebuffer. A pixel has four bytes: blue, green, red and alpha.
#[derive(Clone, Debug, Default)]
pub(super) struct ScreenCursor {
    /// The open file that set the cursor. When the open file is closed, the cursor is removed.
    pub(super) file: FileId,
    /// The buffer with the pixels. The cursor holds a reference to the buffer.
    pub(super) buffer: Option<BufferId>,
    pub(super) size: [u32; 2],
    /// Position of the cursor's first pixel on the screen.
    pub(super) place: [i32; 2],
}

/// Returns the picture on the screen. Each pixel has three bytes, and the upper row comes first. The picture is black
/// if the screen has no framebuffer or the power is off.
///
/// # Errors
/// The buffer of the framebuffer no longer exists.
pub(super) fn picture(
    state: &State,
    framebuffer: Option<&Framebuffer>,
    place: [u32; 2],
    [width, height]: [u32; 2],
) -> io::Result<Vec<u8>> {
    let screen = &state.screen;
    let mut picture = Vec::with_capacity(3 * width as usize * height as usize);
    let Some(framebuffer) = framebuffer.filter(|_| !screen.is_off()) else {
        picture.resize(3 * width as usize * height as usize, 0);
        return Ok(picture);
    };
    let Some(buffer) = state.buffers.held(framebuffer.buffer) else {
        return Err(io::Error::other("a framebuffer without its buffer"));
    };
    let bytes = framebuffer.pixels.bytes();
    let start = buffer.range.start + framebuffer.offset;
    for row in 0..height {
        let at = start + u64::from(place[1] + row) * framebuffer.pitch + u64::from(place[0]) * bytes as u64;
        let row = state.memory.read(at as usize..at as usize + width as usize * bytes);
        picture.extend(row.chunks_exact(bytes).flat_map(|pixel| framebuffer.pixels.color(pixel)));
    }
    lay_cursor(state, &mut picture, [width, height]);
    if let Some(gamma) = &screen.gamma {
        for (at, color) in picture.iter_mut().enumerate() {
            *color = (gamma[at % 3][usize::from(*color)] >> 8) as u8;
        }
    }
    Ok(picture)
}

/// Draws the cursor over a picture. The colours of the cursor are premultiplied by alpha, as in Xorg and Weston.
fn lay_cursor(state: &State, picture: &mut [u8], [width, height]: [u32; 2]) {
    let ScreenCursor { buffer, size, place, .. } = &state.screen.cursor;
    let Some(buffer) = buffer.and_then(|id| state.buffers.held(id)) else { return };
    let pitch = size[0] as usize * 4;
    let words = state
        .memory
        .read(buffer.range.start as usize..buffer.range.start as usize + pitch * size[1] as usize);
    for (number, pixel) in words.chunks_exact(4).enumerate() {
        let [column, row] = [number % size[0] as usize, number / size[0] as usize];
        let [x, y] = [i64::from(place[0]) + column as i64, i64::from(place[1]) + row as i64];
        if !(0..i64::from(width)).contains(&x) || !(0..i64::from(height)).contains(&y) {
            continue;
        }
        let at = 3 * (y as usize * width as usize + x as usize);
        let rest = 255 - u16::from(pixel[3]);
        for (below, above) in picture[at..at + 3].iter_mut().zip([pixel[2], pixel[1], pixel[0]]) {
            let left = (u16::from(*below) * rest + 127) / 255;
            *below = (left + u16::from(above)).min(255) as u8;
        }
    }
}

/// Sets or moves the cursor.
///
/// # Errors
/// `EINVAL` for unknown flags or an unsupported size. `ENOENT` for an unknown handle.
pub(super) fn set_cursor(state: &mut State, asked: &ModeCursor) -> Result<(), Errno> {
    known(asked.crtc, CRTC)?;
    if asked.flags == 0 || asked.flags & !(CURSOR_PICTURE | CURSOR_MOVE) != 0 {
        return Err(Errno(libc::EINVAL));
    }
    let (was_seen, was_at) = (is_cursor_seen(&state.screen), state.screen.cursor.place);
    if asked.flags & CURSOR_PICTURE != 0 {
        let new = if asked.handle == 0 { None } else { Some(cursor_buffer(state, asked)?) };
        let old = std::mem::replace(&mut state.screen.cursor.buffer, new);
        (state.screen.cursor.size, state.screen.cursor.file) = (asked.size, state.buffers.file());
        old.into_iter().for_each(|buffer| state.release(buffer));
    }
    if asked.flags & CURSOR_MOVE != 0 {
        state.screen.cursor.place = asked.place.map(|at| at as i32);
    }
    // The program may have drawn into the buffer. Therefore, a request with a picture counts as a change even if the
    // buffer is the same.
    let is_changed = asked.flags & CURSOR_PICTURE != 0 || state.screen.cursor.place != was_at;
    if is_changed && (was_seen || is_cursor_seen(&state.screen)) {
        refresh(state);
    }
    Ok(())
}

/// Returns whether a part of the cursor is on the screen.
fn is_cursor_seen(screen: &Screen) -> bool {
    let ScreenCursor { buffer, size, place, .. } = &screen.cursor;
    let covers = |shown: Shown| {
        (0..2).all(|way| {
            let start = i64::from(place[way]);
            start < i64::from(shown.size()[way]) && start + i64::from(size[way]) > 0
        })
    };
    buffer.is_some() && screen.is_seen() && screen.shown.is_some_and(covers)
}

/// Returns the buffer for a new picture of the cursor, and adds a reference to the buffer.
fn cursor_buffer(state: &mut State, asked: &ModeCursor) -> Result<BufferId, Errno> {
    let range = state.buffers.get(asked.handle)?.range.clone();
    let [width, height] = asked.size;
    let sized = asked.size.iter().all(|size| (1..=CURSOR).contains(size));
    if !sized || u64::from(width) * u64::from(height) * 4 > range.end - range.start {
        return Err(Errno(libc::EINVAL));
    }
    state.buffers.hold(asked.handle)
}

/// `MODE_GETGAMMA`
pub(super) fn gamma(screen: &Screen, asked: &mut ModeGamma) -> Result<(), Errno> {
    known(asked.crtc, CRTC)?;
    if asked.size as usize != GAMMA {
        return Err(Errno(libc::EINVAL));
    }
    let table = screen.gamma.clone().unwrap_or_else(straight);
    asked.tables.iter().zip(&table).try_for_each(|(address, color)| user::write_list(*address, color))
}

/// `MODE_SETGAMMA`
pub(super) fn set_gamma(state: &mut State, asked: &mut ModeGamma) -> Result<(), Errno> {
    known(asked.crtc, CRTC)?;
    if asked.size as usize != GAMMA {
        return Err(Errno(libc::EINVAL));
    }
    let [red, green, blue] = asked.tables.map(|address| user::read_list::<u16>(address, GAMMA));
    let table = [red?, green?, blue?];
    let table = (table != straight()).then_some(table);
    if table != state.screen.gamma {
        state.screen.gamma = table;
        if state.screen.is_seen() {
            refresh(state);
        }
    }
    Ok(())
}
