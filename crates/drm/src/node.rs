//! The node, once it is opened: its memory, its buffers and its chip.

use std::collections::BTreeMap;
use std::ffi::{c_int, c_void};
use std::io;
use std::mem::take;
use std::ops::Range;
use std::process;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, Ordering};
use std::time::Duration;

use reconverge_gpu::Gpu;

use crate::buffers::{BufferId, Buffers, FileId, UNIT};
use crate::device::{self, Device};
use crate::fork;
use crate::ioctls::Errno;
use crate::lock::{AroundFork, Guard, Lock, Refused};
use crate::memory::{BYTES, Memory};
use crate::messages::{say_once, say_unusable};
use crate::open_files;
use crate::report::{self, Record};
use crate::screen::{Flip, Screen};
use crate::tally;

/// The node. There is one in a process, from when it is first opened to the end.
pub(crate) struct Node {
    device: &'static Device,
    state: Lock<State>,
}

/// The node together with one of its open files: the source of a request, to which handles belong.
#[derive(Clone, Copy)]
pub(crate) struct Client<'a> {
    node: &'a Node,
    file: FileId,
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
    /// Whether buffers were mapped or freed since the last [`State::share`].
    shares: bool,
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

/// Opens the node: a descriptor that `ioctl`, `fstat` and `mmap` take. `flags` are those of `open`.
///
/// # Errors
/// `ENODEV` if no chip is selected, or if the system refuses its memory. The errors of `pipe`.
pub(crate) fn open(flags: c_int) -> Result<c_int, Errno> {
    if opened().is_none() {
        first()?;
    }
    PROCESS.store(process::id() as i32, Ordering::Relaxed);
    end_closed();
    open_files::open(flags & libc::O_NONBLOCK != 0)
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

/// Returns the node and the open file of a descriptor, if it is one of the node.
pub(crate) fn of(descriptor: c_int) -> Option<Client<'static>> {
    let node = opened()?;
    open_files::of(descriptor).map(|file| Client { node, file })
}

/// Whether files were closed while the node was in use. Their buffers are not freed yet.
static CLOSED: AtomicBool = AtomicBool::new(false);

/// The process that last opened the node. A child of `vfork` shares the memory of this process but not its descriptors, and
/// must not end files that it closes.
static PROCESS: AtomicI32 = AtomicI32::new(0);

fn own_process() -> bool {
    process::id() as i32 == PROCESS.load(Ordering::Relaxed)
}

/// Frees the buffers and framebuffers of open files whose last descriptor is closed. If the node is in use, the end of the
/// current request does this, see [`end_closed_late`].
pub(crate) fn end_closed() {
    let Some(node) = opened().filter(|_| own_process()) else { return };
    match node.lock_within(Duration::ZERO) {
        Ok(mut state) => state.end_closed(),
        Err(_) => CLOSED.store(true, Ordering::Relaxed),
    }
}

/// Runs [`end_closed`] again, if the node was in use when files were closed.
pub(crate) fn end_closed_late() {
    if CLOSED.swap(false, Ordering::Relaxed) {
        end_closed();
    }
}

impl Node {
    /// A node without buffers.
    ///
    /// # Errors
    /// The system has no room for its memory.
    pub(crate) fn new(device: &'static Device, gpu: Option<Box<dyn Gpu>>) -> io::Result<Node> {
        let memory = Memory::new()?;
        let state = State {
            memory,
            buffers: Buffers::new(UNIT..BYTES),
            screen: Screen::new(device.screen.clone()),
            gpu,
            shares: true,
            submissions: 0,
            resets: 0,
            unanswered: BTreeMap::new(),
            lost_frames: 0,
            record: Record::default(),
        };
        Ok(Node { device, state: Lock::new(state) })
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
            fork::note_copy();
            report::copied(self.device, &mut state);
        }
        Ok(state)
    }

    /// The lock of the state, for a fork.
    pub(crate) fn around_fork(&self) -> &dyn AroundFork {
        &self.state
    }
}

impl Client<'_> {
    /// The node as an open file with this number.
    #[cfg(test)]
    pub(crate) fn new(node: &Node, file: u64) -> Client<'_> {
        Client { node, file: FileId(file) }
    }

    /// What is emulated.
    pub(crate) fn device(&self) -> &'static Device {
        self.node.device()
    }

    /// Checks, before a request, that [`Client::lock`] will return.
    ///
    /// # Errors
    /// As [`Node::usable`].
    pub(crate) fn usable(&self) -> Result<(), Errno> {
        self.node.usable()
    }

    /// Locks the state, and selects the handles of this open file.
    ///
    /// # Panics
    /// Where [`Client::usable`] gives an error.
    pub(crate) fn lock(&self) -> Guard<'_, State> {
        let mut state = self.node.lock();
        state.buffers.select(self.file);
        state
    }

    /// Takes the page flips of this open file of which the program was not notified.
    pub(crate) fn flips(&self) -> Vec<Flip> {
        self.lock().screen.flips(self.file)
    }

    /// Maps a part of memory for the program, as `mmap` with these arguments.
    ///
    /// # Errors
    /// As in the kernel: `EINVAL` for a private mapping and for a part that no buffer contains, `EACCES` for a buffer for
    /// which this open file does not have a handle, and the errors of `mmap`.
    pub(crate) fn map(
        &self,
        part: Range<u64>,
        address: *mut c_void,
        access: c_int,
        flags: c_int,
    ) -> Result<*mut c_void, Errno> {
        if ![libc::MAP_SHARED, libc::MAP_SHARED_VALIDATE].contains(&(flags & libc::MAP_TYPE)) {
            return Err(Errno(libc::EINVAL));
        }
        self.usable()?;
        let mut state = self.lock();
        state.buffers.mappable(&part)?;
        state.shares |= state.buffers.set_mapped(&part);
        state.memory.map(&part, address, access, flags)
    }
}

impl State {
    /// Creates a buffer, filled with zeros, and returns its handle.
    ///
    /// # Errors
    /// As [`Buffers::create`]. `ENOMEM` if the system does not have enough memory.
    pub(crate) fn create(&mut self, size: u64, alignment: u64, domain: u32) -> Result<u32, Errno> {
        // Closed files may hold the memory that is needed. The file of this request is open.
        if open_files::several() && own_process() {
            self.end_closed();
        }
        let handle = self.buffers.create(size, alignment, domain)?;
        let range = self.buffers.get(handle)?.range.clone();
        if let Err(error) = self.memory.place(&range) {
            say_once(&format!("the memory of a buffer: {error}"));
            self.close(handle)?;
            return Err(Errno(libc::ENOMEM));
        }
        // The file of an earlier buffer may have been left in this range, and the file of another one may be in it now.
        self.replaced(&(range.start as usize..range.end as usize));
        Ok(handle)
    }

    /// Closes a handle, and frees its buffer if that was the last reference.
    ///
    /// # Errors
    /// As [`Buffers::close`].
    pub(crate) fn close(&mut self, handle: u32) -> Result<(), Errno> {
        let unused = self.buffers.close(handle)?;
        unused.iter().for_each(|range| self.discard(range));
        Ok(())
    }

    /// Drops a reference to a buffer, and frees the buffer if that was the last one.
    pub(crate) fn release(&mut self, id: BufferId) {
        let unused = self.buffers.release(id);
        unused.iter().for_each(|range| self.discard(range));
    }

    /// Removes what a buffer holds.
    fn discard(&mut self, range: &Range<u64>) {
        self.memory.discard(range);
        self.replaced(&(range.start as usize..range.end as usize));
        self.shares = true;
    }

    /// Notes that a part of memory has other contents.
    pub(crate) fn replaced(&mut self, part: &Range<usize>) {
        if let Some(gpu) = &mut self.gpu {
            gpu.replaced(part);
        }
    }

    /// States to the chip, before a submission, to which parts of memory others may write.
    pub(crate) fn share(&mut self) {
        let Some(gpu) = &mut self.gpu else { return };
        if fork::has_copies() {
            // A copy of the process has a chip of its own.
            gpu.share(None);
        } else if take(&mut self.shares) {
            let mapped = self.buffers.mapped();
            let parts: Vec<_> = mapped.map(|range| range.start as usize..range.end as usize).collect();
            gpu.share(Some(&parts));
        }
    }

    fn end_closed(&mut self) {
        for file in open_files::closed() {
            for id in self.screen.end(file) {
                self.release(id);
            }
            let unused = self.buffers.end(file);
            unused.iter().for_each(|range| self.discard(range));
        }
    }

    /// Counts a request to which there is no answer, and gives the error that the caller gets.
    pub(crate) fn unanswered(&mut self, request: String) -> Errno {
        tally::count(&mut self.unanswered, &request);
        Errno(libc::EINVAL)
    }
}
