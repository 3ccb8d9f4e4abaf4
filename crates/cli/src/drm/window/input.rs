//! Events of keyboard and pointer, and the sockets on which programs read the events.
//!
//! The numbers of keys and buttons are from the kernel's `include/uapi/linux/input-event-codes.h`.

use std::collections::BTreeSet;
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::Duration;

use nix::time::{ClockId, clock_gettime};
use reconverge_board::screen::{InputEvent, PREFERRED};

const EV_SYN: u16 = 0;
const EV_KEY: u16 = 1;
const EV_REL: u16 = 2;
const EV_ABS: u16 = 3;
const SYN_REPORT: u16 = 0;
const SYN_DROPPED: u16 = 3;
const ABS: [u16; 2] = [0, 1];
/// The numbers of the wheels: `REL_HWHEEL` and `REL_WHEEL`.
const WHEELS: [u16; 2] = [6, 8];
/// The numbers of the buttons: `BTN_LEFT`, `BTN_RIGHT` and `BTN_MIDDLE`.
const BUTTONS: [u16; 3] = [0x110, 0x111, 0x112];

fn event(kind: u16, code: u16, value: i32) -> InputEvent {
    InputEvent { kind, code, value }
}

/// A keyboard or a pointer. Any number of programs can read the device.
pub(super) struct Device {
    listener: UnixListener,
    connections: Vec<Connection>,
    /// Keys that are pressed.
    pressed: BTreeSet<u16>,
    /// Whether the window has the focus.
    is_active: bool,
}

/// A program that reads a device.
struct Connection {
    stream: UnixStream,
    /// Whether a group of events was dropped after the last group that was sent.
    has_dropped: bool,
}

impl Device {
    /// Returns a device that accepts connections of programs.
    ///
    /// # Errors
    /// Returns an error if the socket cannot be made non-blocking.
    pub(super) fn new(listener: UnixListener) -> io::Result<Device> {
        listener.set_nonblocking(true)?;
        Ok(Device { listener, connections: Vec::new(), pressed: BTreeSet::new(), is_active: false })
    }

    /// Drops closed connections and accepts waiting connections. Returns whether any connection is new.
    pub(super) fn accept(&mut self) -> bool {
        self.connections.retain(Connection::is_open);
        let before = self.connections.len();
        while let Ok((stream, _)) = self.listener.accept() {
            if stream.set_nonblocking(true).is_ok() {
                self.connections.push(Connection { stream, has_dropped: false });
            }
        }
        self.connections.len() > before
    }

    /// Sends the press or the release of the key with this kernel number. If the state of the key has not changed, the
    /// function does nothing.
    pub(super) fn key(&mut self, code: Option<u16>, is_down: bool) {
        let Some(code) = code else { return };
        let is_change = if is_down { self.pressed.insert(code) } else { self.pressed.remove(&code) };
        if is_change {
            self.send(&[event(EV_KEY, code, is_down.into())]);
        }
    }

    /// Stores whether the window has the focus. If the window loses the focus, the function sends the release of every
    /// pressed key. The reason is that the window system sends the actual release to another window.
    ///
    /// On an X server without a window manager, no window ever has the focus. Keys go to the window under the pointer.
    pub(super) fn set_active(&mut self, is_active: bool) {
        if std::mem::replace(&mut self.is_active, is_active) && !is_active {
            self.release_all();
        }
    }

    fn release_all(&mut self) {
        let events: Vec<_> =
            std::mem::take(&mut self.pressed).into_iter().map(|code| event(EV_KEY, code, 0)).collect();
        self.send(&events);
    }

    /// Sends a group of events to all programs, and drops closed connections.
    pub(super) fn send(&mut self, events: &[InputEvent]) {
        if events.is_empty() {
            return;
        }
        let time = clock_gettime(ClockId::CLOCK_MONOTONIC).map(Duration::from).unwrap_or_default();
        let bytes = |events: &[InputEvent]| events.iter().flat_map(|event| event.to_bytes(time)).collect();
        let mut group: Vec<u8> = bytes(events);
        group.extend(event(EV_SYN, SYN_REPORT, 0).to_bytes(time));
        let lost: Vec<u8> = bytes(&[event(EV_SYN, SYN_DROPPED, 0), event(EV_SYN, SYN_REPORT, 0)]);
        self.connections.retain_mut(|connection| connection.send(&group, &lost));
    }
}

impl Connection {
    /// Returns whether the program still has its end of the connection open. The function discards data that the
    /// program has sent.
    fn is_open(&self) -> bool {
        let mut bytes = [0; 256];
        match (&self.stream).read(&mut bytes) {
            Ok(count) => count > 0,
            Err(error) => matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted),
        }
    }

    /// Sends a group of events. If earlier groups were lost, first sends a report of the loss. Returns whether the
    /// connection is still usable.
    fn send(&mut self, group: &[u8], lost: &[u8]) -> bool {
        let before = if self.has_dropped { lost } else { &[] };
        // One call of `write` is enough, because a stream socket accepts either all bytes of such a short message or no
        // byte.
        match self.stream.write(&[before, group].concat()) {
            Ok(_) => self.has_dropped = false,
            Err(error) if error.kind() == ErrorKind::WouldBlock => self.has_dropped = true,
            Err(_) => return false,
        }
        true
    }
}

/// The state of the mouse at one time.
pub(super) struct Seen {
    /// Position in the window, or `None` if the mouse is outside of the window.
    pub(super) place: Option<(f32, f32)>,
    /// Size of the window.
    pub(super) window: [f32; 2],
    /// Size of the frame.
    pub(super) picture: [u32; 2],
    /// Left, right and middle button.
    pub(super) buttons: [bool; 3],
    /// Number of steps by which the wheels were turned. The first number counts steps to the right, and the second
    /// number counts steps up.
    pub(super) steps: [f32; 2],
}

/// The state of the pointer after the last events.
#[derive(Default)]
pub(super) struct Pointer {
    place: Option<[i32; 2]>,
    buttons: [bool; 3],
    /// Accumulated fractions of wheel steps.
    steps: [f32; 2],
}

impl Pointer {
    /// Clears the stored position, so that the next events contain the position. A new connection has not received the
    /// position yet.
    pub(super) fn forget_place(&mut self) {
        self.place = None;
    }

    /// Returns the changes after the last call of this method as a group of events.
    pub(super) fn events(&mut self, seen: &Seen) -> Vec<InputEvent> {
        let mut events = Vec::new();
        if let Some(place) = seen.place.and_then(|place| scaled(place, seen.window, seen.picture)) {
            for way in 0..2 {
                if self.place.is_none_or(|old| old[way] != place[way]) {
                    events.push(event(EV_ABS, ABS[way], place[way]));
                }
            }
            self.place = Some(place);
        }
        for (number, code) in BUTTONS.into_iter().enumerate() {
            if self.buttons[number] != seen.buttons[number] {
                events.push(event(EV_KEY, code, seen.buttons[number].into()));
            }
        }
        self.buttons = seen.buttons;
        for (way, code) in WHEELS.into_iter().enumerate() {
            self.steps[way] += seen.steps[way];
            let whole = self.steps[way].trunc();
            if whole != 0. {
                self.steps[way] -= whole;
                events.push(event(EV_REL, code, whole as i32));
            }
        }
        events
    }
}

/// Converts a position in the window to a position on the screen. The coordinates of the result are in the range of
/// [`PREFERRED`]. The picture fills the window in one direction. In the other direction, the picture is centred. A
/// position outside of the picture is moved to the picture's edge.
fn scaled((x, y): (f32, f32), window: [f32; 2], picture: [u32; 2]) -> Option<[i32; 2]> {
    let size = picture.map(|size| size as f32);
    let scale = (window[0] / size[0]).min(window[1] / size[1]);
    if !scale.is_finite() || scale <= 0. {
        return None;
    }
    let place = [x, y];
    Some([0, 1].map(|way| {
        let start = (window[way] - size[way] * scale) / 2.;
        let range = f32::from(PREFERRED[way]);
        // The code adds 0.5 to use the centre of the pixel. Otherwise, rounding could select the previous pixel.
        let at = (place[way] + 0.5 - start) / (size[way] * scale) * range;
        at.clamp(0., range - 1.) as i32
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_is_scaled_to_the_range_of_the_pointer() {
        let picture = [640, 480];
        assert_eq!(scaled((12., 34.), [640., 480.], picture), Some([12, 34]));
        assert_eq!(scaled((639., 479.), [640., 480.], picture), Some([639, 479]));
        // In the window of 1280x960 pixels, the picture is enlarged by a factor of 2. The window of 1000x480 pixels has
        // bars on the left and on the right of the picture.
        assert_eq!(scaled((1278., 959.), [1280., 960.], picture), Some([639, 479]));
        assert_eq!(scaled((180., 0.), [1000., 480.], picture), Some([0, 0]));
        assert_eq!(scaled((100., 240.), [1000., 480.], picture), Some([0, 240]));
        assert_eq!(scaled((999., 479.), [1000., 480.], picture), Some([639, 479]));
        // A larger screen uses the same range of positions.
        assert_eq!(scaled((512., 384.), [1024., 768.], [1024, 768]), Some([320, 240]));
        assert_eq!(scaled((0., 0.), [0., 0.], picture), None);
    }

    #[test]
    fn the_pointer_sends_changes_only() {
        let mut pointer = Pointer::default();
        let mut events = |place, buttons, steps| {
            let seen = Seen { place, window: [640., 480.], picture: [640, 480], buttons, steps };
            pointer.events(&seen)
        };
        let none = [false; 3];
        assert_eq!(events(Some((3., 4.)), none, [0.; 2]), [event(EV_ABS, 0, 3), event(EV_ABS, 1, 4)]);
        assert_eq!(events(Some((3., 5.)), none, [0.; 2]), [event(EV_ABS, 1, 5)]);
        assert_eq!(
            events(None, [true, false, true], [0.; 2]),
            [event(EV_KEY, 0x110, 1), event(EV_KEY, 0x112, 1)]
        );
        assert_eq!(
            events(None, none, [0.5, -1.]),
            [event(EV_KEY, 0x110, 0), event(EV_KEY, 0x112, 0), event(EV_REL, 8, -1)]
        );
        assert_eq!(events(None, none, [0.5, 0.]), [event(EV_REL, 6, 1)]);
        assert_eq!(events(None, none, [0.; 2]), []);
        pointer.forget_place();
        let seen = Seen {
            place: Some((3., 5.)),
            window: [640., 480.],
            picture: [640, 480],
            buttons: none,
            steps: [0.; 2],
        };
        assert_eq!(pointer.events(&seen), [event(EV_ABS, 0, 3), event(EV_ABS, 1, 5)]);
    }

    #[test]
    fn every_program_gets_groups_and_is_told_of_lost_ones() {
        let path = std::env::temp_dir().join(format!("reconverge-events-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let mut device = Device::new(UnixListener::bind(&path).unwrap()).unwrap();
        let mut programs = [0, 1].map(|_| UnixStream::connect(&path).unwrap());
        assert!(device.accept() && !device.accept());
        device.key(Some(30), true);
        device.key(Some(30), true);
        device.key(None, true);
        // The user does not release the key. The device sends the release because the window loses the focus.
        device.set_active(false);
        assert!(!device.pressed.is_empty());
        device.set_active(true);
        device.set_active(false);
        let mut read = |program: usize| {
            let mut bytes = [0; InputEvent::LENGTH];
            programs[program].read_exact(&mut bytes).unwrap();
            // The bytes are the type, the code and the value of the event.
            [bytes[16], bytes[18], bytes[20]]
        };
        for program in 0..2 {
            assert_eq!([0; 4].map(|_| read(program)), [[1, 30, 1], [0, 0, 0], [1, 30, 0], [0, 0, 0]]);
        }
        while device.connections.iter().any(|connection| !connection.has_dropped) {
            device.send(&[event(EV_ABS, 0, 1)]);
        }
        // The program reads the waiting events. Then the socket has room for another group.
        for _ in 0..8 {
            read(0);
        }
        device.send(&[event(EV_ABS, 1, 2)]);
        // The program reads, in this order, the earlier events, the report about the lost groups, and the group that
        // was sent after the loss.
        while read(0) != [0, 3, 0] {}
        assert_eq!([0; 3].map(|_| read(0)), [[0, 0, 0], [3, 1, 2], [0, 0, 0]]);
        drop(programs);
        device.key(Some(30), true);
        assert_eq!(device.connections.len(), 0);
        // If a connection is closed, the device drops the connection even if the device does not send events.
        drop(UnixStream::connect(&path).unwrap());
        assert!(device.accept() && !device.accept());
        assert_eq!(device.connections.len(), 0);
        std::fs::remove_file(path).unwrap();
    }
}
