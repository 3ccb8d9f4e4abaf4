//! The node, once it is opened: its memory, its buffers and its chip.

use std::collections::BTreeMap;
use std::ffi::c_int;
use std::io;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::time::Duration;

use reconverge_gpu::Gpu;

use crate::buffers::{Buffers, UNIT};
use crate::device::{self, Device};
use crate::fork;
use crate::ioctls::Errno;
use crate::lock::{AroundFork, Guard, Lock, Refused};
use crate::memory::{BYTES, Identity, Memory};
use crate::messages::{say_once, say_unusable};
use crate::report::{self, Record};
use crate::screen::Screen;
use crate::tally;

/// The node. There is one in a process, from when it is first opened to the end.
pub(crate) struct Node {
    device: &'static Device,
    identity: Identity,
    descriptor: c_int,
    state: Lock<State>,
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
    /// Number of frames whose files could not be written.
    pub(crate) lost_frames: u64,
    /// Further data of the report.
    pub(crate) record: Record,
}

/// The node, once it is opened. Null before. Not a `OnceLock`: a process that is forked while one is set waits for ever.
static NODE: AtomicPtr<Node> = AtomicPtr::new(null_mut());

/// Held by the thread that opens the node first.
pub(crate) static OPENING: Lock<()> = Lock::new(());

/// Opens the node: a descriptor that `ioctl`, `fstat` and `mmap` take.
///
/// # Errors
/// `ENODEV` where there is none, or the system has no room for its memory.
pub(crate) fn open() -> Result<c_int, Errno> {
    let node = match opened() {
        Some(node) => node,
        None => first()?,
    };
    // Closed on `exec` whether or not that was asked for: another program would not know the descriptor.
    // SAFETY: a plain system call on a descriptor of our own.
    let descriptor = unsafe { libc::fcntl(node.descriptor, libc::F_DUPFD_CLOEXEC, 3) };
    if descriptor < 0 { Err(Errno(crate::real::errno())) } else { Ok(descriptor) }
}

/// Makes the node. If another thread has made it meanwhile, returns that one.
fn first() -> Result<&'static Node, Errno> {
    fork::begin();
    fork::wait();
    let _opening = OPENING.lock().map_err(refused)?;
    if let Some(node) = opened() {
        return Ok(node);
    }
    let device = device::chosen().ok_or(Errno(libc::ENODEV))?;
    let gpu = if device.execute { device::chip(device) } else { None };
    if device.execute && gpu.is_none() {
        say_once(&format!("{}: submissions are not executed yet: nothing is drawn", device.board.chip));
    }
    let node = Node::new(device, gpu).map_err(|error| {
        say_once(&format!("the memory of the chip: {error}"));
        Errno(libc::ENODEV)
    })?;
    let node: &'static Node = Box::leak(Box::new(node));
    report::begin(node);
    NODE.store(std::ptr::from_ref(node).cast_mut(), Ordering::Release);
    Ok(node)
}

/// The node, if it was opened.
pub(crate) fn opened() -> Option<&'static Node> {
    // SAFETY: null or a node that is never freed, and of which there are shared references only.
    unsafe { NODE.load(Ordering::Acquire).as_ref() }
}

/// The error of a request that does not get its lock.
fn refused(why: Refused) -> Errno {
    match why {
        // Not EBUSY, EAGAIN or EINTR: libraries repeat a request for ever that gives one of these.
        Refused::Held => Errno(libc::EDEADLK),
        Refused::Orphaned | Refused::Late => {
            say_unusable();
            Errno(libc::EIO)
        }
    }
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
            lost_frames: 0,
            record: Record::default(),
        };
        Ok(Node { device, identity, descriptor, state: Lock::new(state) })
    }

    /// What is emulated.
    pub(crate) fn device(&self) -> &'static Device {
        self.device
    }

    /// Checks, before a request, that [`Node::lock`] will return.
    ///
    /// # Errors
    /// `EDEADLK` in a signal handler that interrupted a request of this thread. `EIO` where the process was forked in the
    /// middle of a request of another thread, see [`fork`].
    pub(crate) fn usable(&self) -> Result<(), Errno> {
        self.state.refusal().map_or(Ok(()), |why| Err(refused(why)))
    }

    /// What requests change. A panic of ours while it was held is reported where it came up; it leaves no part half
    /// changed that a later request could not bear.
    ///
    /// # Panics
    /// Where [`Node::usable`] gives an error.
    pub(crate) fn lock(&self) -> Guard<'_, State> {
        fork::wait();
        self.locked(self.state.lock()).unwrap_or_else(|why| panic!("the device cannot be used: {why:?}"))
    }

    /// Takes the lock as [`Node::lock`] does, but waits for a limited time.
    pub(crate) fn lock_within(&self, most: Duration) -> Result<Guard<'_, State>, Refused> {
        self.locked(self.state.lock_within(most))
    }

    /// Begins the report of a copy of the process, at its first request.
    fn locked<'a>(&self, state: Result<Guard<'a, State>, Refused>) -> Result<Guard<'a, State>, Refused> {
        let mut state = state?;
        if fork::copied() {
            fork::claim();
            report::copied(self.device, &mut state);
        }
        Ok(state)
    }

    /// The lock of the state, for a fork.
    pub(crate) fn around_fork(&self) -> &dyn AroundFork {
        &self.state
    }
}

impl State {
    /// Counts a request to which there is no answer, and gives the error that the caller gets.
    pub(crate) fn unanswered(&mut self, request: String) -> Errno {
        tally::count(&mut self.unanswered, &request);
        Errno(libc::EINVAL)
    }
}
