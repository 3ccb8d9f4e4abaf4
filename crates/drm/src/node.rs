//! The node, once it is opened: its memory, its buffers and its chip.

use std::collections::BTreeMap;
use std::ffi::c_int;
use std::io;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use reconverge_gpu::Gpu;

use crate::buffers::{Buffers, UNIT};
use crate::device::{self, Device};
use crate::ioctls::Errno;
use crate::memory::{BYTES, Identity, Memory};
use crate::messages::say_once;
use crate::report;
use crate::screen::Screen;

/// The node. There is one in a process, from when it is first opened to the end.
pub(crate) struct Node {
    device: &'static Device,
    identity: Identity,
    descriptor: c_int,
    state: Mutex<State>,
}

/// What requests change. A submission holds it until it is executed, so that whoever waits for a buffer waits for that.
pub(crate) struct State {
    /// What the buffers hold.
    pub(crate) memory: Memory,
    /// Where the buffers are. Offset 0 belongs to none, so that an address that was never set is not one by chance.
    pub(crate) buffers: Buffers,
    /// What is shown.
    pub(crate) screen: Screen,
    /// What executes submissions; absent where they are only counted.
    pub(crate) gpu: Option<Box<dyn Gpu>>,
    /// How many submissions were taken.
    pub(crate) submissions: u64,
    /// How many of them ended in a reset of the chip.
    pub(crate) resets: u32,
    /// Requests to which there is no answer here, by name, with how often they came up.
    pub(crate) unanswered: BTreeMap<String, u64>,
}

static NODE: OnceLock<Option<Node>> = OnceLock::new();

/// Opens the node: a descriptor that `ioctl`, `fstat` and `mmap` take.
///
/// # Errors
/// `ENODEV` where there is none, or the system has no room for its memory.
pub(crate) fn open() -> Result<c_int, Errno> {
    let node = NODE.get_or_init(|| {
        let device = device::chosen()?;
        let gpu = if device.execute { device::chip(device) } else { None };
        if device.execute && gpu.is_none() {
            say_once(&format!("{}: submissions are not executed yet: nothing is drawn", device.board.chip));
        }
        let failed = |error| say_once(&format!("the memory of the chip: {error}"));
        let node = Node::new(device, gpu).map_err(failed).ok();
        node.inspect(report::begin)
    });
    let node = node.as_ref().ok_or(Errno(libc::ENODEV))?;
    // Closed on `exec` whether or not that was asked for: another program would not know the descriptor.
    // SAFETY: a plain system call on a descriptor of our own.
    let descriptor = unsafe { libc::fcntl(node.descriptor, libc::F_DUPFD_CLOEXEC, 3) };
    if descriptor < 0 { Err(Errno(crate::real::errno())) } else { Ok(descriptor) }
}

/// The node, if it was opened.
pub(crate) fn opened() -> Option<&'static Node> {
    NODE.get()?.as_ref()
}

/// The node, if a descriptor is open on it.
pub(crate) fn of(descriptor: c_int) -> Option<&'static Node> {
    opened().filter(|node| Identity::of(descriptor) == Some(node.identity))
}

impl Node {
    /// A node without buffers.
    ///
    /// # Errors
    /// The system has no room for its memory.
    pub(crate) fn new(device: &'static Device, gpu: Option<Box<dyn Gpu>>) -> io::Result<Node> {
        let memory = Memory::new()?;
        let identity = memory.identity().ok_or_else(io::Error::last_os_error)?;
        let descriptor = memory.descriptor();
        let state = State {
            memory,
            buffers: Buffers::new(UNIT..BYTES),
            screen: Screen::new(device.screen.clone()),
            gpu,
            submissions: 0,
            resets: 0,
            unanswered: BTreeMap::new(),
        };
        Ok(Node { device, identity, descriptor, state: Mutex::new(state) })
    }

    /// What is emulated.
    pub(crate) fn device(&self) -> &'static Device {
        self.device
    }

    /// What requests change. A panic of ours while it was held is reported where it came up; it leaves no part half
    /// changed that a later request could not bear.
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Counts a request to which there is no answer, and gives the error that the caller gets.
    pub(crate) fn unanswered(&mut self, request: String) -> Errno {
        *self.unanswered.entry(request).or_default() += 1;
        Errno(libc::EINVAL)
    }
}
