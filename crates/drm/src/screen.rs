//! The screen of the emulated board: one output with one connector, framebuffers, and what is shown.
//!
//! A frame is shown when it is asked for: a page flip is done before its request returns, and its event waits for
//! `drmHandleEvent`. Nothing is waited for, so that frames do not depend on the host's clock.
//!
//! Where `RECONVERGE_DRM_SCREEN` names a folder, each frame that is shown is written there, `frame-0001.ppm` and so on, from
//! the upper row down. If the names are taken, as by another process, they are `frame-p2-0001.ppm` and so on. Files are
//! complete, see [`whole`]. The report counts frames and files.
//!
//! Source: the kernel's `include/uapi/drm/drm.h` and `drm_mode.h`. Left out: planes, properties, cursors, gamma.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use crate::buffers::{BufferId, FileId};
use crate::ioctls::*;
use crate::messages::say_once;
use crate::node::{Client, State};
use crate::report;
use crate::user;
use crate::whole;

/// The identifiers of what the board has. Those of framebuffers follow.
pub(crate) const CRTC: u32 = 1;
const ENCODER: u32 = 2;
const CONNECTOR: u32 = 3;
/// The framebuffer of a request that keeps the one that is shown.
const UNCHANGED: u32 = u32::MAX;

/// A digital output, and a connection that is there. (`DRM_MODE_ENCODER_TMDS`, `DRM_MODE_CONNECTOR_DVID`,
/// `DRM_MODE_CONNECTED`)
const TMDS: u32 = 2;
const DVI: u32 = 3;
const CONNECTED: u32 = 1;

/// The largest framebuffer, in pixels of each direction.
const LARGEST: u32 = 8192;
/// Maximum number of rectangles of a change. (`DRM_MODE_FB_DIRTY_MAX_CLIPS`)
const MOST_RECTANGLES: u32 = 256;
/// Number of frames of a process that are written.
const WRITTEN: u64 = 10_000;
/// Number of processes that can write frames into a folder.
const PROCESSES: u32 = 10_000;
/// Number of flips that wait for `drmHandleEvent`. The kernel has room for as many, 4096 bytes.
const WAITING: usize = 128;

/// Flags of a page flip. (`DRM_MODE_PAGE_FLIP_EVENT`, `DRM_MODE_PAGE_FLIP_ASYNC`)
const FLIP_EVENT: u32 = 1;
const FLIP_ASYNC: u32 = 2;

/// Sizes of the screen, the preferred one first.
const MODES: [ModeInfo; 2] = [
    mode(b"640x480", 25_175, [640, 656, 752, 800], [480, 490, 492, 525], PREFERRED),
    mode(b"1024x768", 65_000, [1024, 1048, 1184, 1344], [768, 771, 777, 806], 0),
];
/// `DRM_MODE_TYPE_PREFERRED`
const PREFERRED: u32 = 1 << 3;

/// A mode of 60 Hz: the clock in kHz; of each direction what is seen, where the pulse begins and ends, and all.
const fn mode(name: &[u8], clock: u32, across: [u16; 4], down: [u16; 4], kind: u32) -> ModeInfo {
    let mut text = [0; 32];
    let mut at = 0;
    while at < name.len() {
        text[at] = name[at];
        at += 1;
    }
    let [h, v] = [across, down];
    // Both pulses are negative; the driver has made the mode.
    ModeInfo {
        clock,
        horizontal: [h[0], h[1], h[2], h[3], 0],
        vertical: [v[0], v[1], v[2], v[3], 0],
        refresh: 60,
        flags: 1 << 1 | 1 << 3,
        kind: kind | 1 << 6,
        name: text,
    }
}

/// How the bytes of a pixel are red, green and blue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pixels {
    /// Four bytes, blue first.
    Bgrx,
    /// Four bytes, red first.
    Rgbx,
    /// Two bytes: five bits of blue, six of green, five of red.
    Rgb565,
}

impl Pixels {
    /// Of a code of four letters.
    fn of_code(code: u32) -> Option<Pixels> {
        Some(match &code.to_le_bytes() {
            b"XR24" | b"AR24" => Pixels::Bgrx,
            b"XB24" | b"AB24" => Pixels::Rgbx,
            b"RG16" => Pixels::Rgb565,
            _ => return None,
        })
    }

    fn bytes(self) -> usize {
        match self {
            Pixels::Bgrx | Pixels::Rgbx => 4,
            Pixels::Rgb565 => 2,
        }
    }

    /// Red, green and blue of a pixel's bytes.
    fn color(self, pixel: &[u8]) -> [u8; 3] {
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

/// A framebuffer: a buffer as a picture.
#[derive(Clone, Copy, Debug)]
struct Framebuffer {
    /// The open file that created it. The framebuffer ends with this file.
    file: FileId,
    /// The buffer, which lasts as long as the framebuffer.
    buffer: BufferId,
    width: u32,
    height: u32,
    /// Bytes from the start of the buffer, and from a row to the next.
    offset: u64,
    pitch: u64,
    pixels: Pixels,
}

/// A page flip that is done, and of which the program is not notified yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Flip {
    /// The number of the frame.
    pub(crate) frame: u64,
    /// What the program has given with it.
    pub(crate) user: u64,
}

/// The screen.
#[derive(Debug, Default)]
pub(crate) struct Screen {
    folder: Option<PathBuf>,
    framebuffers: BTreeMap<u32, Framebuffer>,
    last: u32,
    /// The framebuffer that is shown, and how large the screen is meanwhile.
    shown: Option<(u32, ModeInfo)>,
    /// How many frames were shown.
    pub(crate) frames: u64,
    /// Number of frames that are files.
    pub(crate) pictures: u64,
    /// Number of this process in the names of files.
    process: u32,
    /// Number of frames that the parent of this process has shown.
    others: u64,
    flips: Vec<(FileId, Flip)>,
}

impl Screen {
    /// A screen whose frames are written into a folder, if there is one.
    pub(crate) fn new(folder: Option<PathBuf>) -> Screen {
        Screen { folder, last: CONNECTOR, process: 1, ..Screen::default() }
    }

    /// Restarts the names of frames in a copy of the process.
    pub(crate) fn copied(&mut self) {
        (self.process, self.others) = (1, self.frames);
    }

    /// The name of the last frame's file.
    fn name(&self) -> String {
        let number = self.frames - self.others;
        match self.process {
            1 => format!("frame-{number:04}.ppm"),
            process => format!("frame-p{process}-{number:04}.ppm"),
        }
    }

    /// Takes the flips that an open file requested, and of which the program was not notified.
    pub(crate) fn flips(&mut self, file: FileId) -> Vec<Flip> {
        self.flips.extract_if(.., |(asked, _)| *asked == file).map(|(_, flip)| flip).collect()
    }

    fn add(&mut self, framebuffer: Framebuffer) -> u32 {
        self.last += 1;
        self.framebuffers.insert(self.last, framebuffer);
        self.last
    }

    /// Removes a framebuffer of an open file. Returns its buffer, whose reference the caller drops.
    fn remove(&mut self, id: u32, file: FileId) -> Result<BufferId, Errno> {
        let found = self.framebuffers.get(&id).filter(|framebuffer| framebuffer.file == file);
        let buffer = found.ok_or(Errno(libc::ENOENT))?.buffer;
        self.framebuffers.remove(&id);
        self.shown.take_if(|(shown, _)| *shown == id);
        Ok(buffer)
    }

    /// Removes the framebuffers and flips of an open file. Returns the buffers, whose references the caller drops.
    pub(crate) fn end(&mut self, file: FileId) -> Vec<BufferId> {
        self.flips.retain(|(asked, _)| *asked != file);
        let ids: Vec<u32> = self.framebuffers.keys().copied().collect();
        ids.into_iter().filter_map(|id| self.remove(id, file).ok()).collect()
    }
}

/// Answers a request about the screen or the right to control it; `None` for any other.
pub(crate) fn answer(
    node: &Client<'_>,
    request: Request,
    argument: *mut c_void,
) -> Option<Result<(), Errno>> {
    Some({
        match request.number() {
            GET_CAP => request.exchange(argument, |cap: &mut GetCap| {
                cap.value = capability(cap.capability);
                Ok(())
            }),
            // There is no other process to have them.
            SET_MASTER | DROP_MASTER => Ok(()),
            MODE_GETRESOURCES => request.exchange(argument, |asked| {
                let state = node.lock();
                resources(&state.screen, state.buffers.file(), asked)
            }),
            MODE_GETCRTC => request.exchange(argument, |crtc| current(&node.lock().screen, crtc)),
            MODE_SETCRTC => request.exchange(argument, |crtc| set(&mut node.lock(), crtc)),
            MODE_GETENCODER => request.exchange(argument, |encoder: &mut ModeEncoder| {
                known(encoder.encoder, ENCODER)?;
                let crtc = if node.lock().screen.shown.is_some() { CRTC } else { 0 };
                *encoder = ModeEncoder { encoder: ENCODER, kind: TMDS, crtc, crtcs: 1, clones: 0 };
                Ok(())
            }),
            MODE_GETCONNECTOR => request.exchange(argument, |asked| connected(&node.lock().screen, asked)),
            MODE_ADDFB => request.exchange(argument, |asked: &mut ModeFramebuffer| {
                let code = match (asked.bits, asked.depth) {
                    (32, 24) => *b"XR24",
                    (32, 32) => *b"AR24",
                    (16, 16) => *b"RG16",
                    _ => return Err(Errno(libc::EINVAL)),
                };
                let ModeFramebuffer { width, height, pitch, handle, .. } = *asked;
                asked.framebuffer =
                    add(&mut node.lock(), [width, height, u32::from_le_bytes(code)], [handle, pitch, 0])?;
                Ok(())
            }),
            MODE_ADDFB2 => request.exchange(argument, |asked: &mut ModeFramebuffer2| {
                let ModeFramebuffer2 { width, height, format, handles, pitches, offsets, .. } = *asked;
                let plane = [handles[0], pitches[0], offsets[0]];
                asked.framebuffer = add(&mut node.lock(), [width, height, format], plane)?;
                Ok(())
            }),
            MODE_RMFB => request.exchange(argument, |asked: &mut ModeFramebufferId| {
                let state = &mut *node.lock();
                let buffer = state.screen.remove(asked.framebuffer, state.buffers.file())?;
                state.release(buffer);
                Ok(())
            }),
            MODE_PAGE_FLIP => request.exchange(argument, |flip| self::flip(&mut node.lock(), flip)),
            MODE_DIRTYFB => request.exchange(argument, |dirty: &mut ModeDirty| {
                if dirty.count > MOST_RECTANGLES || (dirty.count == 0) != (dirty.rectangles == 0) {
                    return Err(Errno(libc::EINVAL));
                }
                // Four coordinates of 16 bits per rectangle. They are checked to be readable, and not used.
                user::read_list::<u64>(dirty.rectangles, dirty.count as usize).map(drop)
            }),
            MODE_CREATE_DUMB => request.exchange(argument, |dumb| create(&mut node.lock(), dumb)),
            MODE_MAP_DUMB => request.exchange(argument, |map: &mut DumbMap| {
                map.offset = node.lock().buffers.get(map.handle)?.range.start;
                Ok(())
            }),
            MODE_DESTROY_DUMB => {
                request.exchange(argument, |dumb: &mut DumbDestroy| node.lock().close(dumb.handle))
            }
            _ => return None,
        }
    })
}

/// What the node can do, by the number of the question: buffers of plain pixels, 24 bits of colour. (`DRM_CAP_*`)
fn capability(question: u64) -> u64 {
    match question {
        1 => 1,  // DUMB_BUFFER
        3 => 24, // DUMB_PREFERRED_DEPTH
        // PRIME, export only: GBM of Mesa 25.0.7 creates surfaces only on a device that reports it. With import, drivers
        // would advertise EGL_EXT_image_dma_buf_import, whose requests are not answered.
        5 => 2,
        6 => 1, // TIMESTAMP_MONOTONIC
        _ => 0,
    }
}

fn known(asked: u32, id: u32) -> Result<(), Errno> {
    if asked == id { Ok(()) } else { Err(Errno(libc::ENOENT)) }
}

/// Stores values if the program has room for all of them, and then their number.
fn give<T: Plain>(values: &[T], address: u64, count: &mut u32) -> Result<(), Errno> {
    if address != 0 && *count as usize >= values.len() {
        user::write_list(address, values)?;
    }
    *count = values.len() as u32;
    Ok(())
}

/// Lists the outputs of the board and the framebuffers of an open file.
fn resources(screen: &Screen, file: FileId, asked: &mut ModeResources) -> Result<(), Errno> {
    let own = screen.framebuffers.iter().filter(|(_, framebuffer)| framebuffer.file == file);
    let framebuffers: Vec<u32> = own.map(|(id, _)| *id).collect();
    give(&framebuffers, asked.framebuffers, &mut asked.framebuffer_count)?;
    give(&[CRTC], asked.crtcs, &mut asked.crtc_count)?;
    give(&[CONNECTOR], asked.connectors, &mut asked.connector_count)?;
    give(&[ENCODER], asked.encoders, &mut asked.encoder_count)?;
    (asked.width, asked.height) = ([0, LARGEST], [0, LARGEST]);
    Ok(())
}

/// The connector and its modes.
fn connected(screen: &Screen, asked: &mut ModeConnector) -> Result<(), Errno> {
    known(asked.connector, CONNECTOR)?;
    give(&[ENCODER], asked.encoders, &mut asked.encoder_count)?;
    give(&MODES, asked.modes, &mut asked.mode_count)?;
    asked.property_count = 0;
    asked.encoder = if screen.shown.is_some() { ENCODER } else { 0 };
    (asked.kind, asked.number) = (DVI, 1);
    (asked.connection, asked.millimetres, asked.subpixel) = (CONNECTED, [320, 240], 1);
    Ok(())
}

/// What is shown.
fn current(screen: &Screen, asked: &mut ModeCrtc) -> Result<(), Errno> {
    known(asked.crtc, CRTC)?;
    let shown = screen.shown.map(|(framebuffer, mode)| ModeCrtc { framebuffer, valid: 1, mode, ..*asked });
    *asked = shown.unwrap_or(ModeCrtc { framebuffer: 0, valid: 0, mode: ModeInfo::default(), ..*asked });
    Ok(())
}

/// Sets the size of the screen and what it shows, or switches it off.
fn set(state: &mut State, asked: &mut ModeCrtc) -> Result<(), Errno> {
    known(asked.crtc, CRTC)?;
    if asked.valid == 0 {
        state.screen.shown = None;
        return Ok(());
    }
    let framebuffer = match (asked.framebuffer, state.screen.shown) {
        (UNCHANGED, Some((shown, _))) => shown,
        (other, _) => other,
    };
    if asked.connectors == 0 || asked.connector_count != 1 {
        return Err(Errno(libc::EINVAL));
    }
    known(user::read(asked.connectors)?, CONNECTOR)?;
    show(state, framebuffer, asked.mode)
}

/// Shows another framebuffer of the same size.
fn flip(state: &mut State, asked: &mut PageFlip) -> Result<(), Errno> {
    known(asked.crtc, CRTC)?;
    if asked.flags & !(FLIP_EVENT | FLIP_ASYNC) != 0 {
        return Err(Errno(libc::EINVAL));
    }
    let (_, mode) = state.screen.shown.ok_or(Errno(libc::EBUSY))?;
    if asked.flags & FLIP_EVENT != 0 && state.screen.flips.len() >= WAITING {
        return Err(Errno(libc::ENOMEM));
    }
    show(state, asked.framebuffer, mode)?;
    if asked.flags & FLIP_EVENT != 0 {
        let flip = Flip { frame: state.screen.frames, user: asked.user };
        state.screen.flips.push((state.buffers.file(), flip));
    }
    Ok(())
}

/// Makes a framebuffer of a width, a height and a code of four letters, and of a handle, a pitch and an offset.
fn add(
    state: &mut State,
    [width, height, code]: [u32; 3],
    [handle, pitch, offset]: [u32; 3],
) -> Result<u32, Errno> {
    let pixels = Pixels::of_code(code).ok_or_else(|| {
        let name: String = code.to_le_bytes().iter().map(|byte| char::from(*byte)).collect();
        state.unanswered(format!("a framebuffer of {}", name.escape_debug()))
    })?;
    let (offset, pitch) = (u64::from(offset), u64::from(pitch));
    let range = state.buffers.get(handle)?.range.clone();
    let row = u64::from(width) * pixels.bytes() as u64;
    let fits = (1..=LARGEST).contains(&width)
        && (1..=LARGEST).contains(&height)
        && row <= pitch
        && offset + pitch * u64::from(height - 1) + row <= range.end - range.start;
    if !fits {
        return Err(Errno(libc::EINVAL));
    }
    let (file, buffer) = (state.buffers.file(), state.buffers.hold(handle)?);
    Ok(state.screen.add(Framebuffer { file, buffer, width, height, offset, pitch, pixels }))
}

/// Shows a framebuffer: a frame.
fn show(state: &mut State, id: u32, mode: ModeInfo) -> Result<(), Errno> {
    let framebuffer = *state.screen.framebuffers.get(&id).ok_or(Errno(libc::ENOENT))?;
    let [width, height] = [mode.horizontal[0], mode.vertical[0]].map(u32::from);
    if framebuffer.width < width || framebuffer.height < height {
        return Err(Errno(libc::ENOSPC));
    }
    state.screen.shown = Some((id, mode));
    state.screen.frames += 1;
    if let Err(error) = written(state, &framebuffer, [width, height]) {
        let folder = state.screen.folder.as_deref().unwrap_or(Path::new(""));
        say_once(&format!("{}: frames are not written: {error}", folder.display()));
        state.lost_frames += 1;
    }
    report::publish(state);
    Ok(())
}

/// Writes the part of a framebuffer that is on the screen.
fn written(state: &mut State, framebuffer: &Framebuffer, [width, height]: [u32; 2]) -> io::Result<()> {
    if state.screen.folder.is_none() {
        return Ok(());
    }
    if state.screen.frames - state.screen.others > WRITTEN {
        say_once(&format!("frames after the first {WRITTEN} are not written"));
        return Ok(());
    }
    let Some(buffer) = state.buffers.held(framebuffer.buffer) else {
        return Err(io::Error::other("a framebuffer without its buffer"));
    };
    let start = buffer.range.start + framebuffer.offset;
    let mut picture = format!("P6\n{width} {height}\n255\n").into_bytes();
    for row in 0..u64::from(height) {
        let at = (start + row * framebuffer.pitch) as usize;
        let row = state.memory.read(at..at + width as usize * framebuffer.pixels.bytes());
        let pixels = row.chunks_exact(framebuffer.pixels.bytes());
        picture.extend(pixels.flat_map(|pixel| framebuffer.pixels.color(pixel)));
    }
    save(&mut state.screen, &picture)
}

/// Writes a picture under the name of the last frame.
fn save(screen: &mut Screen, picture: &[u8]) -> io::Result<()> {
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

/// Makes a buffer of plain pixels, which a program maps and fills.
fn create(state: &mut State, dumb: &mut DumbCreate) -> Result<(), Errno> {
    let sized = [dumb.width, dumb.height].iter().all(|size| (1..=LARGEST).contains(size));
    if !sized || !(1..=32).contains(&dumb.bits) {
        return Err(Errno(libc::EINVAL));
    }
    dumb.pitch = (dumb.width * dumb.bits.div_ceil(8)).next_multiple_of(256);
    dumb.size = u64::from(dumb.pitch) * u64::from(dumb.height);
    // 1 is the processor's memory, which no driver asks to use.
    dumb.handle = state.create(dumb.size, 0, 1)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use reconverge_board::Board;

    use super::*;
    use crate::device::Device;
    use crate::node::Node;

    fn node(folder: Option<PathBuf>) -> Client<'static> {
        let board = Board::named("rv770").unwrap();
        let device = Box::leak(Box::new(Device { execute: false, screen: folder, ..Device::new(board) }));
        Client::new(Box::leak(Box::new(Node::new(device, None).unwrap())), 1)
    }

    /// Asks with an argument, which is changed.
    fn ask<T: Plain>(node: &Client<'_>, number: u8, argument: &mut T) -> Result<(), Errno> {
        let request =
            Request((3 << 30 | size_of::<T>() << 16 | usize::from(b'd') << 8 | usize::from(number)) as _);
        answer(node, request, std::ptr::from_mut(argument).cast()).expect("a request of the screen")
    }

    fn address<T>(pointer: *const T) -> u64 {
        pointer.expose_provenance() as u64
    }

    /// A framebuffer of a dumb buffer: its identifier and the buffer.
    fn framebuffer(node: &Client<'_>, width: u32, height: u32) -> (u32, DumbCreate) {
        let mut dumb = DumbCreate { width, height, bits: 32, ..DumbCreate::default() };
        ask(node, MODE_CREATE_DUMB, &mut dumb).unwrap();
        let mut asked = ModeFramebuffer2 {
            width,
            height,
            format: u32::from_le_bytes(*b"XR24"),
            handles: [dumb.handle, 0, 0, 0],
            pitches: [dumb.pitch, 0, 0, 0],
            ..ModeFramebuffer2::default()
        };
        ask(node, MODE_ADDFB2, &mut asked).unwrap();
        (asked.framebuffer, dumb)
    }

    fn shown(node: &Client<'_>, framebuffer: u32) -> Result<(), Errno> {
        let connector = CONNECTOR;
        let (connectors, connector_count) = (address(&raw const connector), 1);
        let mut crtc = ModeCrtc { crtc: CRTC, connectors, connector_count, ..ModeCrtc::default() };
        (crtc.framebuffer, crtc.valid, crtc.mode) = (framebuffer, 1, MODES[0]);
        ask(node, MODE_SETCRTC, &mut crtc)
    }

    /// As libdrm asks: for the numbers first, and then for as many.
    #[test]
    fn a_program_finds_a_screen() {
        let node = node(None);
        let mut asked = ModeResources::default();
        ask(&node, MODE_GETRESOURCES, &mut asked).unwrap();
        assert_eq!(
            [asked.crtc_count, asked.connector_count, asked.encoder_count, asked.framebuffer_count],
            [1, 1, 1, 0]
        );
        let mut id = [0_u32; 3];
        let [crtc, connector, encoder] = [0, 1, 2].map(|at: usize| address(&raw mut id[at]));
        (asked.crtcs, asked.connectors, asked.encoders) = (crtc, connector, encoder);
        ask(&node, MODE_GETRESOURCES, &mut asked).unwrap();
        let [crtc, connector, encoder] = id;
        let mut modes = [ModeInfo::default(); 2];
        let mut asked = ModeConnector {
            connector,
            mode_count: 2,
            modes: address(modes.as_mut_ptr()),
            ..ModeConnector::default()
        };
        ask(&node, MODE_GETCONNECTOR, &mut asked).unwrap();
        assert_eq!((asked.connection, asked.encoder, asked.mode_count), (CONNECTED, 0, 2));
        assert_eq!(
            (modes[0].horizontal[0], modes[0].vertical[0], &modes[0].name[..8]),
            (640, 480, &b"640x480\0"[..])
        );
        let mut asked = ModeEncoder { encoder, ..ModeEncoder::default() };
        ask(&node, MODE_GETENCODER, &mut asked).unwrap();
        assert_eq!((asked.crtcs, asked.crtc), (1, 0));
        assert_eq!(ask(&node, MODE_GETCRTC, &mut ModeCrtc { crtc, ..ModeCrtc::default() }), Ok(()));
        for unknown in [0, 77] {
            let error = Err(Errno(libc::ENOENT));
            assert_eq!(
                ask(&node, MODE_GETCRTC, &mut ModeCrtc { crtc: unknown, ..ModeCrtc::default() }),
                error
            );
            assert_eq!(ask(&node, MODE_GETENCODER, &mut ModeEncoder { encoder: unknown, ..asked }), error);
        }
    }

    #[test]
    fn buffers_can_be_exported_and_not_imported() {
        let node = node(None);
        let mut prime = GetCap { capability: 5, ..GetCap::default() };
        ask(&node, GET_CAP, &mut prime).unwrap();
        assert_eq!(prime.value, 2);
    }

    #[test]
    fn a_flip_shows_a_frame_and_notifies_once() {
        let folder = std::env::temp_dir().join(format!("reconverge-screen-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let node = node(Some(folder.clone()));
        let frames = [0x0011_2233_u32, 0x0044_5566].map(|color| {
            let (framebuffer, dumb) = framebuffer(&node, 700, 480);
            let mut map = DumbMap { handle: dumb.handle, ..DumbMap::default() };
            ask(&node, MODE_MAP_DUMB, &mut map).unwrap();
            let start = map.offset as usize;
            // The last pixel that is on the screen.
            let at = start + 479 * dumb.pitch as usize + 639 * 4;
            node.lock().memory.write(at, &color.to_le_bytes());
            framebuffer
        });
        let mut flip = PageFlip {
            crtc: CRTC,
            framebuffer: frames[1],
            flags: FLIP_EVENT,
            user: 9,
            ..PageFlip::default()
        };
        assert_eq!(ask(&node, MODE_PAGE_FLIP, &mut flip), Err(Errno(libc::EBUSY)), "nothing is shown yet");
        shown(&node, frames[0]).unwrap();
        ask(&node, MODE_PAGE_FLIP, &mut flip).unwrap();
        assert_eq!(node.flips(), [Flip { frame: 2, user: 9 }]);
        assert_eq!(node.flips(), []);
        assert_eq!(node.lock().screen.pictures, 2);
        for (name, last) in [("frame-0001.ppm", [0x11, 0x22, 0x33]), ("frame-0002.ppm", [0x44, 0x55, 0x66])] {
            let picture = std::fs::read(folder.join(name)).unwrap();
            assert!(picture.starts_with(b"P6\n640 480\n255\n") && picture.ends_with(&last), "{name}");
            assert_eq!(picture.len(), 15 + 640 * 480 * 3);
        }
        std::fs::remove_dir_all(folder).unwrap();
    }

    /// A screen that writes into a folder, and the names of the files there.
    fn saved(screen: &mut Screen, picture: &[u8]) -> Vec<String> {
        screen.frames += 1;
        save(screen, picture).unwrap();
        let folder = screen.folder.as_ref().unwrap();
        let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<String> = names.map(|name| name.into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn frames_of_a_second_process_have_names_of_their_own_and_links_are_replaced() {
        let folder = std::env::temp_dir().join(format!("reconverge-frames-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        let victim = folder.join("victim");
        fs::write(&victim, "kept").unwrap();
        std::os::unix::fs::symlink(&victim, folder.join("frame-0001.ppm")).unwrap();
        let mut first = Screen::new(Some(folder.clone()));
        let mut second = Screen::new(Some(folder.clone()));
        assert_eq!(saved(&mut first, b"1"), ["frame-0001.ppm", "victim"]);
        assert_eq!(fs::read(&victim).unwrap(), b"kept");
        saved(&mut second, b"2");
        saved(&mut second, b"2");
        saved(&mut first, b"1");
        // A copy of the first process.
        first.copied();
        let names = saved(&mut first, b"3");
        let expected = [
            "frame-0001.ppm",
            "frame-0002.ppm",
            "frame-p2-0001.ppm",
            "frame-p2-0002.ppm",
            "frame-p3-0001.ppm",
        ];
        assert_eq!(names[..5], expected);
        let contents = expected.map(|name| fs::read(folder.join(name)).unwrap());
        assert_eq!(contents, [b"1", b"1", b"2", b"2", b"3"]);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn flips_that_nobody_handles_are_limited() {
        let node = node(None);
        let (framebuffer, _) = framebuffer(&node, 640, 480);
        shown(&node, framebuffer).unwrap();
        let mut flip = PageFlip { crtc: CRTC, framebuffer, flags: FLIP_EVENT, ..PageFlip::default() };
        for _ in 0..WAITING {
            ask(&node, MODE_PAGE_FLIP, &mut flip).unwrap();
        }
        assert_eq!(ask(&node, MODE_PAGE_FLIP, &mut flip), Err(Errno(libc::ENOMEM)));
        assert_eq!(node.flips().len(), WAITING);
        assert_eq!(ask(&node, MODE_PAGE_FLIP, &mut flip), Ok(()));
    }

    #[test]
    fn a_framebuffer_is_shown_after_its_handle_is_closed() {
        let folder = std::env::temp_dir().join(format!("reconverge-screen-closed-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let node = node(Some(folder.clone()));
        let (framebuffer, dumb) = framebuffer(&node, 640, 480);
        let mut map = DumbMap { handle: dumb.handle, ..DumbMap::default() };
        ask(&node, MODE_MAP_DUMB, &mut map).unwrap();
        node.lock().memory.write(map.offset as usize, &0x0011_2233_u32.to_le_bytes());
        ask(&node, MODE_DESTROY_DUMB, &mut DumbDestroy { handle: dumb.handle }).unwrap();
        shown(&node, framebuffer).unwrap();
        let picture = std::fs::read(folder.join("frame-0001.ppm")).unwrap();
        assert_eq!(picture[15..18], [0x11, 0x22, 0x33]);
        ask(&node, MODE_RMFB, &mut ModeFramebufferId { framebuffer }).unwrap();
        assert_eq!(node.lock().buffers.used(u32::MAX), 0, "the framebuffer was the last to need the buffer");
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn what_cannot_be_shown_is_an_error() {
        let node = node(None);
        let (small, dumb) = framebuffer(&node, 64, 64);
        assert_eq!(shown(&node, small), Err(Errno(libc::ENOSPC)));
        assert_eq!(shown(&node, 77), Err(Errno(libc::ENOENT)));
        ask(&node, MODE_RMFB, &mut ModeFramebufferId { framebuffer: small }).unwrap();
        assert_eq!(shown(&node, small), Err(Errno(libc::ENOENT)));
        let asked = ModeFramebuffer2 {
            width: 64,
            height: 64,
            format: u32::from_le_bytes(*b"XR24"),
            handles: [dumb.handle, 0, 0, 0],
            pitches: [dumb.pitch, 0, 0, 0],
            ..ModeFramebuffer2::default()
        };
        // 64 rows of 256 bytes are a buffer of 64 KiB.
        for (width, height, pitch, offset) in [
            (0, 64, 256, 0),
            (65, 64, 256, 0),
            (64, 8192, 256, 0),
            (64, 64, u32::MAX, 0),
            (64, 64, 256, u32::MAX),
        ] {
            let mut asked = ModeFramebuffer2 { width, height, ..asked };
            (asked.pitches[0], asked.offsets[0]) = (pitch, offset);
            assert_eq!(
                ask(&node, MODE_ADDFB2, &mut asked),
                Err(Errno(libc::EINVAL)),
                "{width} {height} {pitch} {offset}"
            );
        }
        let mut asked = ModeFramebuffer2 { format: u32::from_le_bytes(*b"NV12"), ..asked };
        assert_eq!(ask(&node, MODE_ADDFB2, &mut asked), Err(Errno(libc::EINVAL)));
        assert_eq!(node.lock().unanswered.keys().collect::<Vec<_>>(), ["a framebuffer of NV12"]);
    }

    #[test]
    fn colors_are_taken_from_the_bytes_of_a_format() {
        let of =
            |code: &[u8; 4], bytes: &[u8]| Pixels::of_code(u32::from_le_bytes(*code)).unwrap().color(bytes);
        assert_eq!(of(b"XR24", &[3, 2, 1, 0]), [1, 2, 3]);
        assert_eq!(of(b"AB24", &[1, 2, 3, 0]), [1, 2, 3]);
        assert_eq!(of(b"RG16", &0xf81f_u16.to_le_bytes()), [255, 0, 255]);
    }
}
