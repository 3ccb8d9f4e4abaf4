//! The frame count of the screen. The module also answers requests that wait for a value of the count, and creates
//! their events.
//!
//! The count depends on requests and not on the clock of the host. Each shown frame adds one. A request that waits for
//! a later value sets the count to the later value and does not wait. One count lasts 1/60 s.
//!
//! Source: the kernel's `drm.h` and `drm_vblank.c`.

use std::ffi::c_int;

use crate::buffers::FileId;
use crate::ioctls::*;
use crate::node::State;
use crate::real;

use super::{CRTC, Screen, known};

/// Frames per second. The time of an event, in seconds, is the event's frame count divided by this rate.
const RATE: u64 = 60;

/// Maximum number of queued events of an open file. The kernel limits the queued events to 4096 bytes, which is the
/// size of 128 events.
pub(super) const WAITING: usize = 128;

/// Kinds of events. (`DRM_EVENT_*`)
pub(crate) const VBLANK: u32 = 1;
pub(crate) const FLIP_COMPLETE: u32 = 2;
pub(crate) const SEQUENCE: u32 = 3;

/// Flags in the type of a wait. (`_DRM_VBLANK_*`)
const RELATIVE: u32 = 1;
const EVENT: u32 = 1 << 26;
const NEXT_ON_MISS: u32 = 1 << 28;
/// Mask of the bits that select the screen in the type of a wait. The only screen has the number 0.
const WHICH: u32 = 0x2000_003e;
const WAIT_FLAGS: u32 = RELATIVE | EVENT | 1 << 27 | NEXT_ON_MISS;

/// Flags of a request that queues an event. (`DRM_CRTC_SEQUENCE_*`)
const QUEUE_RELATIVE: u32 = 1;
const QUEUE_NEXT_ON_MISS: u32 = 2;

/// Returns an event for a count. `user` is the program's own value.
pub(crate) fn event(kind: u32, count: u64, user: u64) -> ScreenEvent {
    let mut event =
        ScreenEvent { kind, length: size_of::<ScreenEvent>() as u32, user, ..ScreenEvent::zeroed() };
    if kind == SEQUENCE {
        // The product is computed in 128 bits, because the product exceeds 64 bits after more than 9 years of frames.
        let time = u128::from(count) * 1_000_000_000 / u128::from(RATE);
        (event.time, event.place) = (halves(time as u64), halves(count));
    } else {
        event.time = [(count / RATE) as u32, (count % RATE * 1_000_000 / RATE) as u32];
        event.place = [count as u32, CRTC];
    }
    event
}

/// Splits a 64-bit word into two halves. The lower half comes first.
fn halves(word: u64) -> [u32; 2] {
    [word as u32, (word >> 32) as u32]
}

/// Joins two halves to a 64-bit word. The lower half comes first.
pub(crate) fn whole([low, high]: [u32; 2]) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

/// Returns the number of events that are queued for a descriptor's open file.
pub(super) fn unread(descriptor: c_int) -> usize {
    let mut bytes: c_int = 0;
    // SAFETY: the argument is the address of a local integer. The request is a request for pipes, and every open file
    // is a pipe.
    let answer = unsafe { real::ioctl(descriptor, libc::FIONREAD, (&raw mut bytes).cast()) };
    if answer == 0 { bytes as usize / size_of::<ScreenEvent>() } else { 0 }
}

impl Screen {
    /// Checks that another event can be queued for an open file.
    ///
    /// # Errors
    /// `ENOMEM` if too many events are queued.
    pub(super) fn room_for_event(&self, file: FileId) -> Result<(), Errno> {
        let queued = self.events.iter().filter(|(asked, _)| *asked == file).count();
        if self.unread + queued < WAITING { Ok(()) } else { Err(Errno(libc::ENOMEM)) }
    }

    /// Queues an event for an open file.
    ///
    /// # Errors
    /// `ENOMEM` if too many events are queued.
    pub(super) fn queue(&mut self, file: FileId, event: ScreenEvent) -> Result<(), Errno> {
        self.room_for_event(file)?;
        self.events.push((file, event));
        Ok(())
    }
}

/// Maximum length of a wait, in frames. On a real screen, a wait of this length takes more than four years. On the
/// emulated screen, the count advances at once.
const LONGEST: u64 = 1 << 33;

/// Returns the count at which a wait for the count `until` ends. If `until` has passed and `next_on_miss` is set, the
/// wait ends at the next count. If `until` has passed and `next_on_miss` is not set, the wait ends at once.
///
/// Counts wrap. This function treats the half of all counts before the current count as past. The kernel
/// (`drm_vblank_passed`) treats only the last 2^23 counts as past.
fn until_of(now: u64, until: u64, next_on_miss: bool) -> Result<u64, Errno> {
    match until.wrapping_sub(now) as i64 {
        ..=0 => Ok(now.wrapping_add(next_on_miss.into())),
        ahead if ahead as u64 <= LONGEST => Ok(until),
        _ => Err(Errno(libc::EINVAL)),
    }
}

/// `WAIT_VBLANK`
///
/// # Errors
/// `EINVAL` if the screen is off or a flag is not supported. `ENOMEM` if too many events are queued.
pub(super) fn wait(state: &mut State, asked: &mut WaitVblank) -> Result<(), Errno> {
    let screen = &mut state.screen;
    if asked.kind & WHICH != 0 || asked.kind & !WAIT_FLAGS != 0 || screen.shown.is_none() {
        return Err(Errno(libc::EINVAL));
    }
    let now = screen.count;
    let until = if asked.kind & RELATIVE != 0 {
        now.wrapping_add(asked.sequence.into())
    } else {
        // The request contains only the lower 32 bits of a count. The function chooses the nearest count that has the
        // same lower bits.
        now.wrapping_add_signed(i64::from(asked.sequence.wrapping_sub(now as u32) as i32))
    };
    let until = until_of(now, until, asked.kind & NEXT_ON_MISS != 0)?;
    if asked.kind & EVENT != 0 {
        screen.queue(state.buffers.file(), event(VBLANK, until, asked.user))?;
    }
    screen.count = until;
    asked.sequence = until as u32;
    if asked.kind & EVENT == 0 {
        let [seconds, micros] = event(VBLANK, screen.count, 0).time;
        (asked.user, asked.micros) = (seconds.into(), micros.into());
    }
    Ok(())
}

/// `CRTC_GET_SEQUENCE`
pub(super) fn count(screen: &Screen, asked: &mut CrtcSequence) -> Result<(), Errno> {
    known(asked.crtc, CRTC)?;
    asked.active = u32::from(screen.shown.is_some() && !screen.is_off());
    asked.sequence = screen.count;
    asked.nanos = whole(event(SEQUENCE, screen.count, 0).time);
    Ok(())
}

/// `CRTC_QUEUE_SEQUENCE`
///
/// # Errors
/// `EINVAL` if a flag is unknown, if the screen is off, or if the requested count is too far from the current count.
/// `ENOMEM` if too many events are queued.
pub(super) fn queue(state: &mut State, asked: &mut QueueSequence) -> Result<(), Errno> {
    known(asked.crtc, CRTC)?;
    let screen = &mut state.screen;
    if asked.flags & !(QUEUE_RELATIVE | QUEUE_NEXT_ON_MISS) != 0 || screen.shown.is_none() {
        return Err(Errno(libc::EINVAL));
    }
    let now = screen.count;
    let from = if asked.flags & QUEUE_RELATIVE != 0 { now } else { 0 };
    let until = until_of(now, from.wrapping_add(asked.sequence), asked.flags & QUEUE_NEXT_ON_MISS != 0)?;
    screen.queue(state.buffers.file(), event(SEQUENCE, until, asked.user))?;
    screen.count = until;
    asked.sequence = until;
    Ok(())
}
