//! The screen of the emulated board. The screen consists of one output with one connector, framebuffers, and the
//! displayed picture.
//!
//! A frame is shown as soon as a program requests the frame. A page flip is complete when the request returns. The
//! request queues an event for `drmHandleEvent`. No request waits for a refresh of the screen, so frames do not depend
//! on the clock of the host.
//!
//! The screen shows a frame after each request that changes the picture. Examples are a mode change, a flip, a report
//! that the shown framebuffer has changed, a change of the cursor, the gamma table or the power, and the removal of the
//! shown framebuffer. If an open file is closed, the screen shows no new frame, and the last picture stays.
//!
//! If `RECONVERGE_DRM_SCREEN` names a folder, each frame is written to this folder. The files are named
//! `frame-0001.ppm` and so on. The pixels in a file begin with the upper row. If files of another process already have
//! these names, this process uses the names `frame-p2-0001.ppm` and so on. A file is either complete or absent, see
//! [`whole`](crate::whole). The report counts the frames and the files. `RECONVERGE_DRM_RECORD` names a file that
//! records the frames. `RECONVERGE_DRM_WINDOW` names the folder with the sockets of a window that shows the frames.
//!
//! | module | contents |
//! |---|---|
//! | `modes` | modes, and the description of the monitor (EDID) |
//! | `objects` | properties of the connector and the plane |
//! | `picture` | framebuffer, cursor and gamma table as one picture |
//! | `frames` | a file for each frame |
//! | `record` | a file with all frames, for ffmpeg |
//! | `window` | the connection to the window that shows the frames |
//! | `vblank` | the frame count, and events |
//!
//! Source: the kernel's `include/uapi/drm/drm.h` and `drm_mode.h`. The screen does not support atomic requests, leases
//! or scaling, and has only one plane.

mod frames;
mod modes;
mod objects;
mod picture;
mod record;
pub(crate) mod vblank;
mod window;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{c_int, c_void};
use std::path::PathBuf;

use reconverge_board::Driver;

use crate::buffers::{BufferId, FileId};
use crate::device::kernel_version;
use crate::ioctls::*;
use crate::node::{Client, State};
use crate::report;
use crate::shared;
use crate::user;

use modes::{MILLIMETRES, MODES};
use picture::{CURSOR, GAMMA, Gamma, Pixels, ScreenCursor};
use record::ScreenRecording;
use vblank::FLIP_COMPLETE;

/// The identifiers of the objects of the board. The identifiers of framebuffers are greater than [`LAST`].
pub(crate) const CRTC: u32 = 1;
const ENCODER: u32 = 2;
const CONNECTOR: u32 = 3;
const PLANE: u32 = 4;
/// The last identifier that does not belong to a framebuffer.
const LAST: u32 = 31;
/// This value in the framebuffer field of a request means that the screen keeps its framebuffer.
const UNCHANGED: u32 = u32::MAX;

/// The kinds of the encoder and of the connector, and the status of a connected connector. (`DRM_MODE_ENCODER_TMDS`,
/// `DRM_MODE_CONNECTOR_DVID`, `DRM_MODE_CONNECTED`)
const TMDS: u32 = 2;
const DVI: u32 = 3;
const CONNECTED: u32 = 1;

/// Maximum width and height of a framebuffer, in pixels.
const LARGEST: u32 = 8192;
/// Maximum number of rectangles in a report that a framebuffer has changed. (`DRM_MODE_FB_DIRTY_MAX_CLIPS`)
const MOST_RECTANGLES: u32 = 256;
/// Flags of a page flip. (`DRM_MODE_PAGE_FLIP_EVENT`, `DRM_MODE_PAGE_FLIP_ASYNC`)
const FLIP_EVENT: u32 = 1;
const FLIP_ASYNC: u32 = 2;
/// Flag of a framebuffer with two interlaced fields. (`DRM_MODE_FB_INTERLACED`)
const INTERLACED: u32 = 1;
/// Capabilities of a program that handles stereo modes and aspect ratios. (`DRM_CLIENT_CAP_STEREO_3D`,
/// `DRM_CLIENT_CAP_ASPECT_RATIO`)
const STEREO_3D: u64 = 1;
const ASPECT_RATIO: u64 = 4;
/// Capability of a program that handles planes of all kinds. (`DRM_CLIENT_CAP_UNIVERSAL_PLANES`)
const UNIVERSAL_PLANES: u64 = 2;
/// Capability of a program that uses atomic requests. (`DRM_CLIENT_CAP_ATOMIC`)
const ATOMIC: u64 = 3;
/// The supported formats of framebuffers, as four-letter codes.
const FORMATS: [[u8; 4]; 5] = [*b"XR24", *b"AR24", *b"XB24", *b"AB24", *b"RG16"];

/// A framebuffer: a buffer that is interpreted as a picture.
#[derive(Clone, Copy, Debug)]
struct Framebuffer {
    /// The open file that created the framebuffer. When the open file is closed, the framebuffer is removed. `CLOSEFB`
    /// sets this value to `None` if the framebuffer is on the screen. The framebuffer is then removed when the screen
    /// shows another framebuffer.
    file: Option<FileId>,
    /// The buffer with the pixels. The framebuffer holds a reference to the buffer.
    buffer: BufferId,
    width: u32,
    height: u32,
    /// Offset of the first pixel and pitch of a row, both in bytes.
    offset: u64,
    pitch: u64,
    pixels: Pixels,
    /// The four-letter code of the format.
    code: u32,
}

/// The state of the screen.
#[derive(Debug, Default)]
pub(crate) struct Screen {
    folder: Option<PathBuf>,
    recording: Option<ScreenRecording>,
    /// The folder with the sockets of the window, or `None` after the window is closed.
    window: Option<PathBuf>,
    framebuffers: BTreeMap<u32, Framebuffer>,
    last: u32,
    shown: Option<Shown>,
    /// The power state of the screen. The state is a value of the property DPMS.
    power: u64,
    cursor: ScreenCursor,
    /// The gamma table, if a program has set a gamma table.
    gamma: Option<Gamma>,
    /// Data that programs have stored. The key is the identifier of the data. Each value consists of the open file that
    /// stored the data, and of the data.
    blobs: BTreeMap<u32, (FileId, Vec<u8>)>,
    /// The open files of programs that handle planes of all kinds. Only a program that handles planes of all kinds gets
    /// a list of planes.
    universal: BTreeSet<FileId>,
    /// The frame count. If a request waits for a later count, the request sets the frame count to the later count and
    /// does not wait, see [`vblank`].
    count: u64,
    /// Number of frames that were shown.
    pub(crate) frames: u64,
    /// Number of frames that were written to files.
    pub(crate) pictures: u64,
    /// Number of frames that could not be recorded.
    pub(crate) unrecorded: u64,
    /// Number of this process. The names of this process's frame files contain the number.
    process: u32,
    /// Number of frames that the parent process showed before the fork.
    others: u64,
    /// Number of unread events for the open file of the current request.
    unread: usize,
    /// Events that are not yet written to the pipe of their open file.
    events: Vec<(FileId, ScreenEvent)>,
}

/// The mode of the screen, and the framebuffer on the screen.
#[derive(Clone, Copy, Debug)]
struct Shown {
    /// The identifier of the shown framebuffer, or 0 if the plane of the screen is off.
    framebuffer: u32,
    mode: ModeInfo,
    /// Position of the screen's first pixel within the framebuffer.
    place: [u32; 2],
}

impl Shown {
    fn size(&self) -> [u32; 2] {
        [self.mode.horizontal[0], self.mode.vertical[0]].map(u32::from)
    }
}

impl Screen {
    /// Creates a screen. If `folder` is not `None`, frames are written to this folder.
    pub(crate) fn new(folder: Option<PathBuf>) -> Screen {
        Screen { folder, last: LAST, process: 1, ..Screen::default() }
    }

    /// Adds the file `record` that records the frames, and the folder `window` of a window that shows the frames.
    /// Either argument may be `None`.
    pub(crate) fn with(self, record: Option<PathBuf>, window: Option<PathBuf>) -> Screen {
        Screen { recording: record.map(ScreenRecording::new), window, ..self }
    }

    /// Restarts the numbering of frame files in a forked process.
    pub(crate) fn copied(&mut self) {
        self.recording.iter_mut().for_each(ScreenRecording::restart);
        (self.process, self.others) = (1, self.frames);
    }

    /// Returns the file name of the last frame.
    fn name(&self) -> String {
        let number = self.frames - self.others;
        match self.process {
            1 => format!("frame-{number:04}.ppm"),
            process => format!("frame-p{process}-{number:04}.ppm"),
        }
    }

    /// Removes and returns the events for an open file that are not yet written to the pipe of the file.
    pub(crate) fn events(&mut self, file: FileId) -> Vec<ScreenEvent> {
        self.events.extract_if(.., |(asked, _)| *asked == file).map(|(_, event)| event).collect()
    }

    /// Returns whether the power of the screen is off.
    fn is_off(&self) -> bool {
        self.power != 0
    }

    /// Returns an unused identifier.
    fn number(&mut self) -> u32 {
        self.last += 1;
        self.last
    }

    fn add(&mut self, framebuffer: Framebuffer) -> u32 {
        let id = self.number();
        self.framebuffers.insert(id, framebuffer);
        id
    }

    /// Returns whether the screen is on and shows a framebuffer.
    fn is_seen(&self) -> bool {
        !self.is_off() && self.shown.is_some_and(|shown| shown.framebuffer != 0)
    }

    /// Removes a framebuffer of an open file, and returns the buffer of the framebuffer. The caller must drop the
    /// reference that the framebuffer held to this buffer.
    fn remove(&mut self, id: u32, file: FileId) -> Result<BufferId, Errno> {
        let found = self.framebuffers.get(&id).filter(|framebuffer| framebuffer.file == Some(file));
        let buffer = found.ok_or(Errno(libc::ENOENT))?.buffer;
        self.framebuffers.remove(&id);
        self.shown.take_if(|shown| shown.framebuffer == id);
        Ok(buffer)
    }

    /// Removes the framebuffers, data and events of an open file. Returns the buffers of the framebuffers and of the
    /// cursor. The caller must drop the references to these buffers.
    pub(crate) fn end(&mut self, file: FileId) -> Vec<BufferId> {
        self.events.retain(|(asked, _)| *asked != file);
        self.blobs.retain(|_, (owner, _)| *owner != file);
        self.universal.remove(&file);
        let ids: Vec<u32> = self.framebuffers.keys().copied().collect();
        let framebuffers: Vec<BufferId> =
            ids.into_iter().filter_map(|id| self.remove(id, file).ok()).collect();
        let cursor = if self.cursor.file == file { self.cursor.buffer.take() } else { None };
        framebuffers.into_iter().chain(cursor).collect()
    }
}

/// Answers a request about the screen or about the control of the screen. Returns `None` if the request concerns
/// neither.
pub(crate) fn answer(
    node: &Client<'_>,
    descriptor: c_int,
    request: Request,
    argument: *mut c_void,
) -> Option<Result<(), Errno>> {
    // Locks the state for a request that may queue an event.
    let counted = || {
        let mut state = node.lock();
        state.screen.unread = vblank::unread(descriptor);
        state
    };
    Some({
        match request.number() {
            GET_CAP => request.exchange(argument, |cap: &mut GetCap| {
                cap.value = 0;
                cap.value = capability(cap.capability)?;
                Ok(())
            }),
            PRIME_HANDLE_TO_FD => request.exchange(argument, |asked| shared::export(&mut node.lock(), asked)),
            PRIME_FD_TO_HANDLE => request.exchange(argument, |asked| shared::import(&mut node.lock(), asked)),
            // SET_MASTER and DROP_MASTER always succeed, because no other process can control the emulated screen.
            SET_MASTER | DROP_MASTER => Ok(()),
            GET_MAGIC => request.exchange(argument, |magic: &mut Magic| {
                magic.magic = 1;
                Ok(())
            }),
            AUTH_MAGIC => request.exchange(argument, |magic: &mut Magic| match magic.magic {
                1 => Ok(()),
                _ => Err(Errno(libc::EINVAL)),
            }),
            GET_UNIQUE => request.exchange(argument, |unique: &mut Unique| {
                if unique.length >= BUS.len() as u64 {
                    user::write_list(unique.text, BUS)?;
                }
                unique.length = BUS.len() as u64;
                Ok(())
            }),
            SET_VERSION => request.exchange(argument, |version: &mut SetVersion| {
                let [major, minor, _] = kernel_version(node.device().board.driver);
                let own = SetVersion { interface: [1, 4], driver: [major, minor] };
                let asked = std::mem::replace(version, own);
                let fits = |asked: [i32; 2], own: [i32; 2]| {
                    asked[0] == -1 || asked[0] == own[0] && (0..=own[1]).contains(&asked[1])
                };
                let both = fits(asked.interface, own.interface) && fits(asked.driver, own.driver);
                if both { Ok(()) } else { Err(Errno(libc::EINVAL)) }
            }),
            SET_CLIENT_CAP => request.exchange(argument, |cap| client_capability(&mut node.lock(), cap)),
            WAIT_VBLANK => request.exchange(argument, |asked| vblank::wait(&mut counted(), asked)),
            CRTC_GET_SEQUENCE => {
                request.exchange(argument, |asked| vblank::count(&node.lock().screen, asked))
            }
            CRTC_QUEUE_SEQUENCE => request.exchange(argument, |asked| vblank::queue(&mut counted(), asked)),
            MODE_CURSOR => request.exchange(argument, |cursor| picture::set_cursor(&mut node.lock(), cursor)),
            MODE_CURSOR2 => request.exchange(argument, |asked: &mut ModeCursor2| {
                let ModeCursor2 { flags, crtc, place, size, handle, .. } = *asked;
                picture::set_cursor(&mut node.lock(), &ModeCursor { flags, crtc, place, size, handle })
            }),
            MODE_GETGAMMA => request.exchange(argument, |asked| picture::gamma(&node.lock().screen, asked)),
            MODE_SETGAMMA => request.exchange(argument, |asked| picture::set_gamma(&mut node.lock(), asked)),
            MODE_GETPROPERTY => request.exchange(argument, objects::describe),
            MODE_SETPROPERTY => {
                request.exchange(argument, |asked| objects::set_of_connector(&mut node.lock(), asked))
            }
            MODE_GETPROPBLOB => request.exchange(argument, |asked| objects::data(&node.lock().screen, asked)),
            MODE_CREATEPROPBLOB => request.exchange(argument, |asked| objects::keep(&mut node.lock(), asked)),
            MODE_DESTROYPROPBLOB => request.exchange(argument, |asked: &mut ModeBlobId| {
                let state = &mut *node.lock();
                objects::drop_data(&mut state.screen, state.buffers.file(), asked.blob)
            }),
            MODE_OBJ_GETPROPERTIES => {
                request.exchange(argument, |asked| objects::list(&node.lock().screen, asked))
            }
            MODE_OBJ_SETPROPERTY => request.exchange(argument, |asked: &mut ModeObjectProperty| {
                let ModeObjectProperty { value, property, object, kind, .. } = *asked;
                objects::set(&mut node.lock(), [kind, object], property, value)
            }),
            MODE_GETPLANERESOURCES => request.exchange(argument, |asked: &mut ModePlanes| {
                let state = node.lock();
                let is_universal = state.screen.universal.contains(&state.buffers.file());
                let planes: &[u32] = if is_universal { &[PLANE] } else { &[] };
                give(planes, asked.planes, &mut asked.count)
            }),
            MODE_GETPLANE => request.exchange(argument, |asked: &mut ModePlane| {
                known(asked.plane, PLANE)?;
                let shown = node.lock().screen.shown;
                give_all(&FORMATS.map(u32::from_le_bytes), asked.formats, &mut asked.format_count)?;
                (asked.crtcs, asked.gamma_size) = (1, 0);
                asked.framebuffer = shown.map_or(0, |shown| shown.framebuffer);
                asked.crtc = if asked.framebuffer != 0 { CRTC } else { 0 };
                Ok(())
            }),
            MODE_SETPLANE => request
                .exchange(argument, |asked| set_plane(&mut node.lock(), node.device().board.driver, asked)),
            MODE_GETFB => request.exchange(argument, |asked: &mut ModeFramebuffer| {
                let state = &mut *node.lock();
                let (framebuffer, handle) = handed_out(state, asked.framebuffer)?;
                let Framebuffer { width, height, pitch, pixels, .. } = framebuffer;
                let [bits, depth] = pixels.bits();
                let pitch = pitch as u32;
                *asked = ModeFramebuffer { width, height, pitch, bits, depth, handle, ..*asked };
                Ok(())
            }),
            MODE_GETFB2 => request.exchange(argument, |asked: &mut ModeFramebuffer2| {
                let state = &mut *node.lock();
                let (framebuffer, handle) = handed_out(state, asked.framebuffer)?;
                let Framebuffer { width, height, pitch, offset, code, .. } = framebuffer;
                let mut plane =
                    ModeFramebuffer2 { framebuffer: asked.framebuffer, ..ModeFramebuffer2::default() };
                (plane.width, plane.height, plane.format) = (width, height, code);
                (plane.handles[0], plane.pitches[0], plane.offsets[0]) =
                    (handle, pitch as u32, offset as u32);
                *asked = plane;
                Ok(())
            }),
            // A driver without atomic requests returns this error, see `client_capability`.
            MODE_ATOMIC => Err(Errno(libc::EOPNOTSUPP)),
            MODE_CLOSEFB => request.exchange(argument, |asked: &mut ModeCloseFramebuffer| {
                if asked.padding != 0 {
                    return Err(Errno(libc::EINVAL));
                }
                close(&mut node.lock(), asked.framebuffer)
            }),
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
                // For the unused planes, the kernel accepts any handle, pitch and offset, but accepts no modifier.
                if asked.flags & !INTERLACED != 0 || asked.modifiers != [0; 4] {
                    return Err(Errno(libc::EINVAL));
                }
                let plane = [handles[0], pitches[0], offsets[0]];
                asked.framebuffer = add(&mut node.lock(), [width, height, format], plane)?;
                Ok(())
            }),
            MODE_RMFB => request.exchange(argument, |asked: &mut ModeFramebufferId| {
                remove(&mut node.lock(), asked.framebuffer)
            }),
            MODE_PAGE_FLIP => request.exchange(argument, |flip| self::flip(&mut counted(), flip)),
            MODE_DIRTYFB => request.exchange(argument, |dirty: &mut ModeDirty| {
                if dirty.count > MOST_RECTANGLES || (dirty.count == 0) != (dirty.rectangles == 0) {
                    return Err(Errno(libc::EINVAL));
                }
                // A rectangle has four coordinates of 16 bits. The kernel requires that the list of rectangles can be
                // read. The whole frame is shown, so the list is not used.
                user::read_list::<u64>(dirty.rectangles, dirty.count as usize)?;
                let state = &mut *node.lock();
                match state.screen.shown {
                    Some(shown) if shown.framebuffer == dirty.framebuffer => show(state, shown),
                    _ if state.screen.framebuffers.contains_key(&dirty.framebuffer) => Ok(()),
                    _ => Err(Errno(libc::ENOENT)),
                }
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

/// The bus id of the board. `drmGetBusid` returns the same text.
const BUS: &[u8] = b"pci:0000:01:00.0";

/// Returns the value of a capability of the node. `question` is the number of the capability (`DRM_CAP_*`).
///
/// # Errors
/// `EINVAL` for a number that the kernel does not define.
fn capability(question: u64) -> Result<u64, Errno> {
    Ok(match question {
        1 => 1,                 // DUMB_BUFFER
        2 => 1,                 // VBLANK_HIGH_CRTC
        3 => 24,                // DUMB_PREFERRED_DEPTH
        5 => 3,                 // PRIME: export and import
        6 => 1,                 // TIMESTAMP_MONOTONIC
        7 => 1,                 // ASYNC_PAGE_FLIP
        8 | 9 => CURSOR.into(), // CURSOR_WIDTH, CURSOR_HEIGHT
        0x12 => 1,              // CRTC_IN_VBLANK_EVENT
        // DUMB_PREFER_SHADOW, ADDFB2_MODIFIERS, PAGE_FLIP_TARGET, SYNCOBJ, SYNCOBJ_TIMELINE, ATOMIC_ASYNC_PAGE_FLIP
        4 | 0x10 | 0x11 | 0x13..=0x15 => 0,
        _ => return Err(Errno(libc::EINVAL)),
    })
}

fn known(asked: u32, id: u32) -> Result<(), Errno> {
    if asked == id { Ok(()) } else { Err(Errno(libc::ENOENT)) }
}

/// Stores values at `address`. `count` is the number of values for which the program has room. If there are more
/// values, only the first `count` values are stored. Then sets `count` to the number of all values.
fn give<T: Plain>(values: &[T], address: u64, count: &mut u32) -> Result<(), Errno> {
    user::write_list(address, &values[..values.len().min(*count as usize)])?;
    *count = values.len() as u32;
    Ok(())
}

/// If the program has room for all values, stores all values at `address`. Otherwise, stores no values. In both cases,
/// sets `count` to the number of all values. The kernel does the same for three lists: the modes of a connector, the
/// encoders of a connector, and the formats of a plane. For other lists, see [`give`].
fn give_all<T: Plain>(values: &[T], address: u64, count: &mut u32) -> Result<(), Errno> {
    if *count as usize >= values.len() {
        user::write_list(address, values)?;
    }
    *count = values.len() as u32;
    Ok(())
}

/// Lists the outputs of the board and the framebuffers of an open file.
fn resources(screen: &Screen, file: FileId, asked: &mut ModeResources) -> Result<(), Errno> {
    let own = screen.framebuffers.iter().filter(|(_, framebuffer)| framebuffer.file == Some(file));
    let framebuffers: Vec<u32> = own.map(|(id, _)| *id).collect();
    give(&framebuffers, asked.framebuffers, &mut asked.framebuffer_count)?;
    give(&[CRTC], asked.crtcs, &mut asked.crtc_count)?;
    give(&[CONNECTOR], asked.connectors, &mut asked.connector_count)?;
    give(&[ENCODER], asked.encoders, &mut asked.encoder_count)?;
    (asked.width, asked.height) = ([0, LARGEST], [0, LARGEST]);
    Ok(())
}

/// Describes the connector and its modes.
fn connected(screen: &Screen, asked: &mut ModeConnector) -> Result<(), Errno> {
    known(asked.connector, CONNECTOR)?;
    give_all(&[ENCODER], asked.encoders, &mut asked.encoder_count)?;
    give_all(&MODES, asked.modes, &mut asked.mode_count)?;
    objects::of_connector(screen, asked)?;
    asked.encoder = if screen.shown.is_some() { ENCODER } else { 0 };
    (asked.kind, asked.number) = (DVI, 1);
    (asked.connection, asked.millimetres, asked.subpixel) = (CONNECTED, MILLIMETRES, 1);
    Ok(())
}

/// `SET_CLIENT_CAP`
///
/// # Errors
/// `EOPNOTSUPP` for atomic requests. `EINVAL` for an unknown capability.
fn client_capability(state: &mut State, asked: &ClientCap) -> Result<(), Errno> {
    let file = state.buffers.file();
    match (asked.capability, asked.value) {
        (UNIVERSAL_PLANES, 1) => _ = state.screen.universal.insert(file),
        (UNIVERSAL_PLANES, 0) => _ = state.screen.universal.remove(&file),
        // The setting has no effect, because no mode of the screen is a stereo mode or has an aspect ratio.
        (STEREO_3D | ASPECT_RATIO, 0 | 1) => {}
        (ATOMIC, _) => return Err(Errno(libc::EOPNOTSUPP)),
        _ => return Err(Errno(libc::EINVAL)),
    }
    Ok(())
}

/// `MODE_GETCRTC`. Returns the mode and the framebuffer on the screen.
fn current(screen: &Screen, asked: &mut ModeCrtc) -> Result<(), Errno> {
    known(asked.crtc, CRTC)?;
    asked.gamma_size = GAMMA as u32;
    let shown = screen.shown.map(|Shown { framebuffer, mode, place }| ModeCrtc {
        framebuffer,
        valid: 1,
        mode,
        place,
        ..*asked
    });
    let off = ModeCrtc { framebuffer: 0, valid: 0, mode: ModeInfo::default(), place: [0; 2], ..*asked };
    *asked = shown.unwrap_or(off);
    Ok(())
}

/// Sets the mode and the framebuffer of the screen, or switches the screen off.
fn set(state: &mut State, asked: &mut ModeCrtc) -> Result<(), Errno> {
    known(asked.crtc, CRTC)?;
    if asked.valid == 0 {
        if asked.connector_count != 0 {
            return Err(Errno(libc::EINVAL));
        }
        blank(state, None);
        return Ok(());
    }
    let framebuffer = match asked.framebuffer {
        UNCHANGED => {
            let shown = state.screen.shown.filter(|shown| shown.framebuffer != 0);
            shown.ok_or(Errno(libc::EINVAL))?.framebuffer
        }
        other => other,
    };
    let shown = Shown { framebuffer, mode: asked.mode, place: asked.place };
    known_framebuffer(&state.screen, framebuffer)?;
    if !modes::is_valid(&asked.mode) {
        return Err(Errno(libc::EINVAL));
    }
    fitting(&state.screen, &shown)?;
    if asked.connector_count != 1 {
        return Err(Errno(libc::EINVAL));
    }
    known(user::read(asked.connectors)?, CONNECTOR)?;
    // As in the kernel, setting a mode switches the screen on.
    state.screen.power = 0;
    show(state, shown)
}

/// `RMFB`. Removes a framebuffer. If the screen shows the framebuffer, the screen is switched off.
fn remove(state: &mut State, id: u32) -> Result<(), Errno> {
    let seen = state.screen.shown.filter(|shown| state.screen.is_seen() && shown.framebuffer == id);
    let buffer = state.screen.remove(id, state.buffers.file())?;
    state.release(buffer);
    if let Some(seen) = seen {
        frame(state, Shown { framebuffer: 0, ..seen });
    }
    Ok(())
}

/// `CLOSEFB`. Closes a framebuffer. If the screen shows the framebuffer, the framebuffer continues to exist until the
/// screen shows a different framebuffer.
///
/// # Errors
/// `ENOENT` if another open file created the framebuffer, or if the framebuffer was already closed.
fn close(state: &mut State, id: u32) -> Result<(), Errno> {
    let file = state.buffers.file();
    if state.screen.shown.is_some_and(|shown| shown.framebuffer == id) {
        let framebuffer = known_framebuffer(&state.screen, id)?;
        if framebuffer.file != Some(file) {
            return Err(Errno(libc::ENOENT));
        }
        state.screen.framebuffers.insert(id, Framebuffer { file: None, ..framebuffer });
        return Ok(());
    }
    let buffer = state.screen.remove(id, file)?;
    state.release(buffer);
    Ok(())
}

/// Shows another framebuffer of the same size.
fn flip(state: &mut State, asked: &mut PageFlip) -> Result<(), Errno> {
    known(asked.crtc, CRTC)?;
    // With some flags, `padding` is a frame count. The kernel supports these flags only for drivers with
    // `DRM_CAP_PAGE_FLIP_TARGET`.
    if asked.flags & !(FLIP_EVENT | FLIP_ASYNC) != 0 || asked.padding != 0 {
        return Err(Errno(libc::EINVAL));
    }
    let shown = state.screen.shown.ok_or(Errno(libc::EBUSY))?;
    let old = known_framebuffer(&state.screen, shown.framebuffer).map_err(|_| Errno(libc::EBUSY))?;
    let shown = Shown { framebuffer: asked.framebuffer, ..shown };
    if fitting(&state.screen, &shown)?.code != old.code {
        return Err(Errno(libc::EINVAL));
    }
    if asked.flags & FLIP_EVENT != 0 {
        state.screen.room_for_event(state.buffers.file())?;
    }
    show(state, shown)?;
    if asked.flags & FLIP_EVENT != 0 {
        let event = vblank::event(FLIP_COMPLETE, state.screen.count, asked.user);
        state.screen.queue(state.buffers.file(), event)?;
    }
    Ok(())
}

/// Shows a framebuffer on the plane of the screen. Without a framebuffer, switches the plane off. Switching the plane
/// off does not change the mode of the screen.
///
/// # Errors
/// `EINVAL` if the plane would scale the framebuffer, or if the framebuffer would not fill the screen. The plane
/// supports neither case. On a Radeon, `EINVAL` is also the error of a request without a framebuffer (the kernel's
/// `drm_plane_helper.c`).
fn set_plane(state: &mut State, driver: Driver, asked: &mut ModeSetPlane) -> Result<(), Errno> {
    known(asked.plane, PLANE)?;
    if asked.framebuffer == 0 {
        if driver != Driver::Nv50 {
            return Err(Errno(libc::EINVAL));
        }
        let shown = state.screen.shown.map(|shown| Shown { framebuffer: 0, ..shown });
        blank(state, shown);
        return Ok(());
    }
    known(asked.crtc, CRTC)?;
    let shown = state.screen.shown.ok_or(Errno(libc::EINVAL))?;
    let from = [asked.from_width, asked.from_height];
    let is_whole = asked.place == [0, 0]
        && asked.size == shown.size()
        && from.map(|size| size >> 16) == asked.size
        && from.iter().chain(&asked.from).all(|value| value & 0xffff == 0);
    if !is_whole {
        return Err(Errno(libc::EINVAL));
    }
    let place = asked.from.map(|value| value >> 16);
    show(state, Shown { framebuffer: asked.framebuffer, place, ..shown })
}

/// Returns a framebuffer, and a new handle for the buffer of the framebuffer.
fn handed_out(state: &mut State, id: u32) -> Result<(Framebuffer, u32), Errno> {
    let framebuffer = *state.screen.framebuffers.get(&id).ok_or(Errno(libc::ENOENT))?;
    let handle = state.buffers.name(framebuffer.buffer)?;
    Ok((framebuffer, handle))
}

/// Creates a framebuffer. The first array has the width, the height and the four-letter code. The second array has the
/// handle, the pitch and the offset.
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
    let (file, buffer) = (Some(state.buffers.file()), state.buffers.hold(handle)?);
    Ok(state.screen.add(Framebuffer { file, buffer, width, height, offset, pitch, pixels, code }))
}

fn known_framebuffer(screen: &Screen, id: u32) -> Result<Framebuffer, Errno> {
    screen.framebuffers.get(&id).copied().ok_or(Errno(libc::ENOENT))
}

/// Returns the framebuffer of `shown`. Checks that the framebuffer contains the part that the screen shows.
///
/// # Errors
/// `ENOENT` if the framebuffer does not exist. `ENOSPC` if the framebuffer is too small.
fn fitting(screen: &Screen, shown: &Shown) -> Result<Framebuffer, Errno> {
    let framebuffer = known_framebuffer(screen, shown.framebuffer)?;
    let size = shown.size();
    let ends = [0, 1].map(|way| shown.place[way].checked_add(size[way]));
    if ends[0].is_none_or(|end| end > framebuffer.width) || ends[1].is_none_or(|end| end > framebuffer.height)
    {
        return Err(Errno(libc::ENOSPC));
    }
    Ok(framebuffer)
}

/// Shows a framebuffer, and counts the shown framebuffer as a frame.
fn show(state: &mut State, shown: Shown) -> Result<(), Errno> {
    fitting(&state.screen, &shown)?;
    replace(state, Some(shown));
    frame(state, shown);
    Ok(())
}

/// Replaces the framebuffer on the screen by `shown`. If a framebuffer was visible before, shows a black frame.
fn blank(state: &mut State, shown: Option<Shown>) {
    let seen = state.screen.shown.filter(|_| state.screen.is_seen());
    replace(state, shown);
    if let Some(seen) = seen {
        frame(state, Shown { framebuffer: 0, ..seen });
    }
}

/// Replaces the framebuffer on the screen. If the old framebuffer was closed, removes the old framebuffer.
fn replace(state: &mut State, shown: Option<Shown>) {
    let old = std::mem::replace(&mut state.screen.shown, shown).map(|old| old.framebuffer);
    let gone = old.filter(|old| shown.is_none_or(|shown| shown.framebuffer != *old));
    let Some(id) = gone else { return };
    if let Ok(Framebuffer { file: None, buffer, .. }) = known_framebuffer(&state.screen, id) {
        state.screen.framebuffers.remove(&id);
        state.release(buffer);
    }
}

/// Shows the framebuffer again, because the cursor, the gamma table or the power has changed.
fn refresh(state: &mut State) {
    if let Some(shown) = state.screen.shown {
        frame(state, shown);
    }
}

/// Counts a frame. Writes, records and displays the picture of the frame.
fn frame(state: &mut State, shown: Shown) {
    let framebuffer = known_framebuffer(&state.screen, shown.framebuffer).ok();
    state.screen.frames += 1;
    state.screen.count = state.screen.count.wrapping_add(1);
    frames::put(state, framebuffer.as_ref(), shown.place, shown.size());
    report::publish(state);
}

/// Creates a dumb buffer: a buffer of plain pixels that the program maps and fills.
fn create(state: &mut State, dumb: &mut DumbCreate) -> Result<(), Errno> {
    let bytes = dumb.bits.div_ceil(8);
    if [dumb.width, dumb.height, dumb.bits].contains(&0) || dumb.bits > u32::MAX - 8 {
        return Err(Errno(libc::EINVAL));
    }
    // The pitch and the size must fit in 32 bits. The width and the height have no other limit.
    let row = dumb.width.checked_mul(bytes).filter(|row| row.checked_mul(dumb.height).is_some());
    dumb.pitch = row.and_then(|row| row.checked_next_multiple_of(256)).ok_or(Errno(libc::EINVAL))?;
    dumb.size = u64::from(dumb.pitch) * u64::from(dumb.height);
    // Domain 1 is the memory of the processor. Drivers do not request this domain.
    dumb.handle = state.create(dumb.size, 0, 1)?;
    Ok(())
}

#[cfg(test)]
mod tests;
