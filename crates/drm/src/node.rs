//! The emulated device node after a program has opened the node. The node has a memory, buffers and a chip.

use std::collections::BTreeMap;
use std::ffi::{c_int, c_void};
use std::io;
use std::mem::{forget, take};
use std::ops::Range;
use std::process;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, Ordering};
use std::time::Duration;

use reconverge_gpu::Gpu;

use crate::buffers::{BufferId, Buffers, FileId, UNIT};
use crate::device::{self, Device};
use crate::fork;
use crate::ioctls::{Errno, ScreenEvent};
use crate::lock::{AroundFork, Guard, Lock, Refused};
use crate::mapped;
use crate::memory::{BYTES, Memory};
use crate::messages::{say_once, say_unusable};
use crate::open_files::{self, NodeKind};
use crate::report::{self, Record};
use crate::screen::Screen;
use crate::shared::SharedBuffers;
use crate::tally;

/// The node. A process has one node, from the first `open` to the end of the process.
pub(crate) struct Node {
    device: &'static Device,
    state: Lock<State>,
}

/// The node, together with one open file of the node. The open file sends requests and owns handles.
#[derive(Clone, Copy)]
pub(crate) struct Client<'a> {
    node: &'a Node,
    file: FileId,
}

/// State that requests change. The state is locked while a submission is executed, so all later requests wait for the
/// submission.
pub(crate) struct State {
    /// Contents of the buffers.
    pub(crate) memory: Memory,
    /// The buffers and the ranges of the buffers. No buffer has offset 0. If a driver forgets to set an address, the
    /// driver submits the address 0. This address is therefore never valid.
    pub(crate) buffers: Buffers,
    /// The buffers that this process shares with other processes.
    pub(crate) shared: SharedBuffers,
    /// The emulated screen.
    pub(crate) screen: Screen,
    /// The chip that executes submissions, or `None` if submissions are only counted.
    pub(crate) gpu: Option<Box<dyn Gpu>>,
    /// Whether a buffer was mapped or freed after the last call of [`State::share`].
    shares: bool,
    /// Number of submissions that were accepted.
    pub(crate) submissions: u64,
    /// Number of submissions that ended in a reset of the chip.
    pub(crate) resets: u32,
    /// Requests that the node does not answer. The key is the name of the request. The value is the number of times
    /// that a program has sent this request.
    pub(crate) unanswered: BTreeMap<String, u64>,
    /// Number of frames whose files could not be written.
    pub(crate) lost_frames: u64,
    /// Data of the report that are not among the counts above.
    pub(crate) record: Record,
}

/// The node, or null before the node is opened. This variable is not a `OnceLock`. If one thread forked while another
/// thread initialised a `OnceLock`, the child would wait for the `OnceLock` forever.
static NODE: AtomicPtr<Node> = AtomicPtr::new(null_mut());

/// A thread holds this lock during the creation of the node.
pub(crate) static OPENING: Lock<()> = Lock::new(());

/// Opens the node. Returns a descriptor for `ioctl`, `fstat` and `mmap`. `flags` are the flags of `open`.
///
/// # Errors
/// `ENODEV` if no chip is selected, or if the system does not provide the memory of the chip. The errors of the C
/// function `pipe`.
pub(crate) fn open(kind: NodeKind, flags: c_int) -> Result<c_int, Errno> {
    if opened().is_none() {
        first()?;
    }
    PROCESS.store(process::id() as i32, Ordering::Relaxed);
    end_closed();
    open_files::open(kind, flags & libc::O_NONBLOCK != 0)
}

/// Creates the node. If another thread has created the node in the meantime, returns the node of that thread.
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
        say_once(&format!("{}: submissions are not executed, so nothing is drawn", device.board.chip));
    }
    let node = Node::new(device, gpu).map_err(|error| {
        say_once(&format!("cannot create the memory of the chip: {error}"));
        Errno(libc::ENODEV)
    })?;
    let node: &'static Node = Box::leak(Box::new(node));
    report::begin(node);
    NODE.store(std::ptr::from_ref(node).cast_mut(), Ordering::Release);
    Ok(node)
}

/// Returns the node if a program has opened the node.
pub(crate) fn opened() -> Option<&'static Node> {
    // SAFETY: if the pointer is not null, the node behind the pointer is never freed and has only shared references.
    unsafe { NODE.load(Ordering::Acquire).as_ref() }
}

/// Returns the error for a request that could not take the lock. `why` is the reason.
fn refused(why: Refused) -> Errno {
    match why {
        // The result is never EBUSY, EAGAIN or EINTR, because libraries repeat a request after these errors. The
        // repetition would never end.
        Refused::Held => Errno(libc::EDEADLK),
        Refused::Orphaned | Refused::Late => {
            say_unusable();
            Errno(libc::EIO)
        }
    }
}

/// Returns the node and the open file of a descriptor, if the descriptor belongs to the node.
pub(crate) fn of(descriptor: c_int) -> Option<Client<'static>> {
    let node = opened()?;
    open_files::of(descriptor).map(|file| Client { node, file })
}

/// Returns the node and the open file of a descriptor. Another process may have opened the file and sent the descriptor
/// to this process. In this case, the function opens the node if necessary. See also [`of`].
pub(crate) fn of_any(descriptor: c_int) -> Option<Client<'static>> {
    of(descriptor).or_else(|| {
        device::chosen()?;
        if !open_files::adopt(descriptor) || opened().is_none() && first().is_err() {
            return None;
        }
        PROCESS.store(process::id() as i32, Ordering::Relaxed);
        of(descriptor)
    })
}

/// Whether files were closed while the node was in use. If true, the buffers of the closed files still exist.
static CLOSED: AtomicBool = AtomicBool::new(false);

/// The process that last opened the node. A child of `vfork` shares the memory of this process, but has separate
/// descriptors. If the child closes a file, the file is still open in this process. The child must therefore not free
/// the buffers of the file.
static PROCESS: AtomicI32 = AtomicI32::new(0);

fn own_process() -> bool {
    process::id() as i32 == PROCESS.load(Ordering::Relaxed)
}

/// Frees the buffers and framebuffers of open files whose last descriptor was closed. If the node is in use, this
/// function frees nothing. In this case, [`end_closed_late`] frees the buffers and framebuffers at the end of the
/// current request.
pub(crate) fn end_closed() {
    let Some(node) = opened().filter(|_| own_process()) else { return };
    match node.lock_within(Duration::ZERO) {
        Ok(mut state) => state.end_closed(),
        Err(_) => CLOSED.store(true, Ordering::Relaxed),
    }
}

/// Runs [`end_closed`] again if the node was in use when files were closed.
pub(crate) fn end_closed_late() {
    if CLOSED.swap(false, Ordering::Relaxed) {
        end_closed();
    }
}

impl Node {
    /// Creates a node without buffers.
    ///
    /// # Errors
    /// The system does not have enough memory.
    pub(crate) fn new(device: &'static Device, gpu: Option<Box<dyn Gpu>>) -> io::Result<Node> {
        let memory = Memory::new()?;
        let state = State {
            memory,
            buffers: Buffers::new(UNIT..BYTES),
            shared: SharedBuffers::default(),
            screen: Screen::new(device.screen.clone()).with(device.record.clone(), device.window.clone()),
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

    /// Returns the emulated device.
    pub(crate) fn device(&self) -> &'static Device {
        self.device
    }

    /// Checks that [`Node::lock`] will succeed. Call this function before a request.
    ///
    /// # Errors
    /// `EDEADLK` in a signal handler that interrupted a request of this thread. `EIO` if the process was forked in
    /// the middle of a request of another thread, see [`fork`].
    pub(crate) fn usable(&self) -> Result<(), Errno> {
        self.state.refusal().map_or(Ok(()), |why| Err(refused(why)))
    }

    /// Locks the state. If the library panicked while a thread held the lock, later requests can still take the lock.
    /// The library has already reported the panic, and the state is usable after the panic.
    ///
    /// # Panics
    /// Panics if [`Node::usable`] returns an error.
    pub(crate) fn lock(&self) -> Guard<'_, State> {
        fork::wait();
        self.locked(self.state.lock()).unwrap_or_else(|why| panic!("the device cannot be used: {why:?}"))
    }

    /// Takes the lock as [`Node::lock`] does, but waits for at most `most`.
    pub(crate) fn lock_within(&self, most: Duration) -> Result<Guard<'_, State>, Refused> {
        self.locked(self.state.lock_within(most))
    }

    /// Finishes an attempt to take the lock. The first request of a forked process also begins the report of that
    /// process.
    fn locked<'a>(&self, state: Result<Guard<'a, State>, Refused>) -> Result<Guard<'a, State>, Refused> {
        let mut state = state?;
        if fork::copied() {
            fork::claim();
            mapped::note_copy();
            state.memory.forget_fills();
            report::copied(self.device, &mut state);
        }
        Ok(state)
    }
}

/// Locks the state around a fork. The parent and the child share the memory but have separate lists of fills.
/// Therefore, all outstanding fills are stored before the fork.
impl AroundFork for Node {
    fn before(&self, most: Duration) -> bool {
        let Ok(state) = self.lock_within(most) else { return false };
        state.memory.settle();
        forget(state);
        true
    }

    fn in_parent(&self, taken: bool) {
        self.state.in_parent(taken);
    }

    fn in_child(&self, taken: bool, parent_thread: u32) {
        self.state.in_child(taken, parent_thread);
    }
}

impl Client<'_> {
    /// Returns a client that represents the open file with this number.
    #[cfg(test)]
    pub(crate) fn new(node: &Node, file: u64) -> Client<'_> {
        Client { node, file: FileId(file) }
    }

    /// Returns a client that represents another open file of the node.
    #[cfg(test)]
    pub(crate) fn as_file(&self, file: u64) -> Self {
        Client { file: FileId(file), ..*self }
    }

    /// Returns the emulated device.
    pub(crate) fn device(&self) -> &'static Device {
        self.node.device()
    }

    /// Checks that [`Client::lock`] will succeed. Call this function before a request.
    ///
    /// # Errors
    /// The errors of [`Node::usable`].
    pub(crate) fn usable(&self) -> Result<(), Errno> {
        self.node.usable()
    }

    /// Locks the state, and selects the handles of this open file.
    ///
    /// # Panics
    /// Panics if [`Client::usable`] returns an error.
    pub(crate) fn lock(&self) -> Guard<'_, State> {
        let mut state = self.node.lock();
        state.buffers.select(self.file);
        state
    }

    /// Removes and returns the events for this open file that the program has not received yet.
    pub(crate) fn events(&self) -> Vec<ScreenEvent> {
        self.lock().screen.events(self.file)
    }

    /// Maps a part of memory for the program. The arguments are those of `mmap`.
    ///
    /// # Errors
    /// Returns the same errors as the kernel: `EINVAL` for a private mapping, and for a part that no buffer contains.
    /// Returns `EACCES` if this open file has no handle of the buffer. Also returns the errors of the C function
    /// `mmap`.
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
    /// Creates a buffer, filled with zeros, and returns the handle of the buffer.
    ///
    /// # Errors
    /// The errors of [`Buffers::create`]. `ENOMEM` if the system does not have enough memory.
    pub(crate) fn create(&mut self, size: u64, alignment: u64, domain: u32) -> Result<u32, Errno> {
        // Buffers of closed files may still occupy memory that the new buffer needs. The list of open files always
        // contains the file of this request, which is open. Therefore, a list with one entry contains no closed file.
        if open_files::several() && own_process() {
            self.end_closed();
        }
        let handle = self.buffers.create(size, alignment, domain)?;
        let range = self.buffers.get(handle)?.range.clone();
        if let Err(error) = self.memory.place(&range) {
            say_once(&format!("cannot create the memory of a buffer: {error}"));
            self.close(handle)?;
            return Err(Errno(libc::ENOMEM));
        }
        // Until now, the range may have contained the file of an earlier buffer. The file that the range contains now
        // may have belonged to another buffer. Therefore, the chip must discard cached contents of the range.
        self.replaced(&(range.start as usize..range.end as usize));
        Ok(handle)
    }

    /// Closes a handle. Frees the buffer of the handle if the handle was the last reference to the buffer.
    ///
    /// # Errors
    /// The errors of [`Buffers::close`].
    pub(crate) fn close(&mut self, handle: u32) -> Result<(), Errno> {
        let unused = self.buffers.close(handle)?;
        unused.iter().for_each(|range| self.discard(range));
        Ok(())
    }

    /// Drops a reference to a buffer. Frees the buffer if this was the last reference to the buffer.
    pub(crate) fn release(&mut self, id: BufferId) {
        let unused = self.buffers.release(id);
        unused.iter().for_each(|range| self.discard(range));
    }

    /// Discards the contents of a buffer.
    fn discard(&mut self, range: &Range<u64>) {
        self.shared.end(BufferId::at(range.start));
        self.memory.discard(range);
        self.replaced(&(range.start as usize..range.end as usize));
        self.shares = true;
    }

    /// Reports to the chip that the contents of a part of memory have changed.
    pub(crate) fn replaced(&mut self, part: &Range<usize>) {
        if let Some(gpu) = &mut self.gpu {
            gpu.replaced(part);
        }
    }

    /// Records that the program or another process may write to a buffer.
    pub(crate) fn others_write(&mut self, range: &Range<u64>) {
        self.shares |= self.buffers.set_mapped(range);
    }

    /// The program and other processes may write to parts of memory. This function reports these parts to the chip.
    /// Called before each submission.
    pub(crate) fn share(&mut self) {
        let Some(gpu) = &mut self.gpu else { return };
        if fork::has_copies() {
            // A forked process has a separate chip. This chip may write to any part of the memory.
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

    /// Counts a request that the node does not answer, and returns the error for the caller.
    pub(crate) fn unanswered(&mut self, request: String) -> Errno {
        tally::count(&mut self.unanswered, &request);
        Errno(libc::EINVAL)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::process::Command;
    use std::sync::{Arc, Mutex};

    use reconverge_board::Board;
    use reconverge_gpu::observe::Observer;
    use reconverge_gpu::{Fault, Submission};
    use reconverge_simt::Engine;
    use reconverge_simt::vram::{RowFill, Vram};

    use super::*;
    use crate::files::{mremap, munmap};
    use crate::submit::executed;

    const DOMAIN: u32 = 4;
    const SIZE: u64 = 1 << 17;
    const CLEAR: u32 = 1 << 8;

    /// A chip that caches the first byte of each buffer of a submission. The chip discards a byte when the node reports
    /// that the byte may have changed. Each command is a byte, and the chip fills the buffers with this byte. If the
    /// command has the bit [`CLEAR`], the fill may stay outstanding.
    #[derive(Default)]
    struct Keeping {
        kept: BTreeMap<usize, u8>,
        shared: Option<Vec<Range<usize>>>,
        /// The first byte of each buffer in the chip's cache, after the last submission.
        seen: Arc<Mutex<Vec<u8>>>,
    }

    impl Gpu for Keeping {
        fn submit(&mut self, memory: Vram<'_>, submission: &Submission<'_>) -> Result<(), Fault> {
            let Keeping { kept, shared, seen } = self;
            let is_shared =
                |at: &usize| shared.as_ref().is_none_or(|parts| parts.iter().any(|part| part.contains(at)));
            kept.retain(|at, _| !is_shared(at));
            for buffer in submission.buffers {
                for command in submission.commands {
                    let value = u32::from_ne_bytes([*command as u8; 4]);
                    let (start, rows) = (buffer.start, buffer.len() / 1024);
                    let fill = RowFill { start, words: 256, pitch: 1024, rows, value, mask: u32::MAX };
                    assert!(memory.fill(&fill));
                    if command & CLEAR == 0 {
                        memory.settle(buffer.clone());
                    }
                    kept.remove(&buffer.start);
                }
            }
            let starts = submission.buffers.iter().map(|buffer| buffer.start);
            let bytes = starts.map(|at| *kept.entry(at).or_insert_with(|| memory.bytes(at..at + 1)[0]));
            *seen.lock().unwrap() = bytes.collect();
            Ok(())
        }

        fn share(&mut self, parts: Option<&[Range<usize>]>) {
            self.shared = parts.map(<[_]>::to_vec);
        }

        fn replaced(&mut self, part: &Range<usize>) {
            self.kept.retain(|at, _| !part.contains(at));
        }

        fn use_engine(&mut self, _engine: Engine) {}

        fn observe(&mut self, _observer: Box<dyn Observer>) {}

        fn unknown(&self) -> Vec<(String, u64)> {
            Vec::new()
        }
    }

    struct Tested {
        client: Client<'static>,
        seen: Arc<Mutex<Vec<u8>>>,
    }

    impl Tested {
        fn new() -> Tested {
            fork::begin();
            assert!(!fork::has_copies());
            let board = Board::named("rv730").unwrap();
            let device = Device { engine: Engine::Fast, ..Device::new(board) };
            let (chip, device) = (Keeping::default(), Box::leak(Box::new(device)));
            let seen = chip.seen.clone();
            let node = Box::leak(Box::new(Node::new(device, Some(Box::new(chip))).unwrap()));
            Tested { client: Client::new(node, 1), seen }
        }

        fn created(&self, size: u64) -> u32 {
            self.client.lock().create(size, 0, DOMAIN).unwrap()
        }

        fn closed(&self, handle: u32) {
            self.client.lock().close(handle).unwrap();
        }

        fn range(&self, handle: u32) -> Range<usize> {
            let range = self.client.lock().buffers.get(handle).unwrap().range.clone();
            range.start as usize..range.end as usize
        }

        fn mapped(&self, handle: u32) -> *mut u8 {
            let range = self.range(handle);
            let part = range.start as u64..range.end as u64;
            let access = libc::PROT_READ | libc::PROT_WRITE;
            self.client.map(part, null_mut(), access, libc::MAP_SHARED).unwrap().cast()
        }

        /// Submits commands. Returns the first byte of the buffer in the chip's cache.
        fn submitted(&self, handle: u32, commands: &[u32]) -> u8 {
            let buffers = [self.range(handle)];
            let submission = Submission { commands, buffers: &buffers };
            let state = &mut *self.client.lock();
            assert_eq!(executed(state, |gpu, memory| gpu.submit(memory, &submission)), None);
            self.seen.lock().unwrap()[0]
        }

        fn look(&self, handle: u32) -> u8 {
            self.submitted(handle, &[])
        }

        fn parked(&self) -> u64 {
            self.client.lock().memory.parked_bytes()
        }

        /// Returns the last byte of a buffer in memory. Outstanding fills do not affect this byte.
        fn stored(&self, handle: u32) -> u8 {
            let end = self.range(handle).end;
            self.client.lock().memory.whole().as_stored().bytes(end - 1..end)[0]
        }

        fn is_zero(&self, handle: u32) -> bool {
            let range = self.range(handle);
            self.client.lock().memory.read(range).iter().all(|byte| *byte == 0)
        }
    }

    /// Runs a test again in a child process, because forks and mappings affect a whole process. Returns true in the
    /// child.
    fn in_a_process_of_its_own(test: &str) -> bool {
        const NAME: &str = "RECONVERGE_TEST_ALONE";
        if std::env::var_os(NAME).is_some() {
            return true;
        }
        let mut again = Command::new(std::env::current_exe().unwrap());
        let test = format!("node::tests::{test}");
        let output = again.args(["--exact", &test, "--nocapture"]).env(NAME, "1").output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success() && said.contains("1 passed"), "{said}{output:?}");
        false
    }

    fn unmapped(start: *mut u8, length: u64) {
        // SAFETY: the test has created the mapping and does not use the mapping after this call.
        assert_eq!(unsafe { munmap(start.cast(), length as usize) }, 0);
    }

    #[test]
    fn the_chip_sees_what_the_program_writes() {
        if !in_a_process_of_its_own("the_chip_sees_what_the_program_writes") {
            return;
        }
        let tested = Tested::new();
        let one = tested.created(SIZE);
        assert_eq!(tested.look(one), 0);
        // Only the chip writes to a buffer that was never mapped.
        let range = tested.range(one);
        tested.client.lock().memory.write(range.start, &[9]);
        assert_eq!(tested.look(one), 0);
        tested.client.lock().replaced(&range);
        assert_eq!(tested.look(one), 9);
        // The program writes through a new mapping. Then the chip reads 20 other buffers. After these reads, the
        // program writes through the same mapping again.
        let map = tested.mapped(one);
        // SAFETY: callers pass a mapping of a buffer. The mapping still exists at the time of the call.
        let write = |map: *mut u8, value: u8| unsafe { map.write_volatile(value) };
        write(map, 5);
        assert_eq!(tested.look(one), 5);
        for value in 0..20 {
            let other = tested.created(SIZE);
            let map = tested.mapped(other);
            write(map, value);
            assert_eq!(tested.look(other), value);
            unmapped(map, SIZE);
            tested.closed(other);
        }
        write(map, 6);
        assert_eq!(tested.look(one), 6);
        unmapped(map, SIZE);
        let map = tested.mapped(one);
        write(map, 7);
        assert_eq!(tested.look(one), 7);
        unmapped(map, SIZE);
    }

    #[test]
    fn the_file_of_a_closed_buffer_is_used_again_and_has_zeros() {
        if !in_a_process_of_its_own("the_file_of_a_closed_buffer_is_used_again_and_has_zeros") {
            return;
        }
        let tested = Tested::new();
        for maps in [false, true, true] {
            let one = tested.created(SIZE);
            assert!(tested.is_zero(one) && tested.look(one) == 0, "{maps}");
            if maps {
                let map = tested.mapped(one);
                assert_eq!(tested.submitted(one, &[3]), 3);
                unmapped(map, SIZE);
            }
            assert_eq!(tested.submitted(one, &[4]), 4);
            let range = tested.range(one);
            tested.closed(one);
            assert_eq!(tested.parked(), SIZE, "the file is kept");
            // No buffer is in the range of the closed buffer, so the range reads as zero.
            assert_eq!(tested.client.lock().memory.read(range.clone()), vec![0; SIZE as usize]);
            let two = tested.created(SIZE);
            assert_eq!((tested.parked(), tested.range(two)), (0, range), "the file is used again");
            assert_eq!(tested.look(two), 0, "the chip has the bytes of the new buffer");
            assert!(tested.is_zero(two));
            let map = tested.mapped(two);
            // SAFETY: the mapping has `SIZE` bytes. The test unmaps the mapping only after the last use.
            unsafe {
                assert_eq!(std::slice::from_raw_parts(map, SIZE as usize), vec![0; SIZE as usize]);
                map.write_volatile(8);
            }
            assert_eq!(tested.look(two), 8);
            unmapped(map, SIZE);
            tested.submitted(two, &[1]);
            tested.closed(two);
        }
    }

    #[test]
    fn a_file_that_the_program_may_see_is_not_used_again() {
        if !in_a_process_of_its_own("a_file_that_the_program_may_see_is_not_used_again") {
            return;
        }
        let tested = Tested::new();
        let read = |map: *mut u8| {
            // SAFETY: callers pass a mapping of a buffer, or the still mapped part of a mapping.
            unsafe { map.read_volatile() }
        };
        let filled = |value: u32| {
            let handle = tested.created(SIZE);
            let map = tested.mapped(handle);
            assert_eq!((tested.submitted(handle, &[value]), read(map)), (value as u8, value as u8));
            (handle, map)
        };
        let next_has_another = |left: *mut u8, value: u8| {
            let next = tested.created(SIZE);
            assert!(tested.is_zero(next));
            tested.submitted(next, &[100]);
            assert_eq!(read(left), value);
            next
        };
        // The first buffer is mapped when the test closes the buffer. Only a part of the second buffer is mapped.
        let (whole, map) = filled(1);
        tested.closed(whole);
        let next = next_has_another(map, 1);
        let (part, half) = filled(2);
        unmapped(half, SIZE / 2);
        tested.closed(part);
        next_has_another(half.wrapping_add(SIZE as usize / 2), 2);
        // A program may duplicate a mapping or move a mapping.
        let (moved, first) = filled(3);
        // SAFETY: the test has created the mapping. With a length of zero, the call duplicates the mapping.
        let second =
            unsafe { mremap(first.cast(), 0, SIZE as usize, libc::MREMAP_MAYMOVE, null_mut()) }.cast::<u8>();
        assert_ne!(second.cast(), libc::MAP_FAILED);
        unmapped(first, SIZE);
        tested.closed(moved);
        next_has_another(second, 3);
        tested.closed(next);
    }

    #[test]
    fn memory_is_bounded_over_many_buffers() {
        if !in_a_process_of_its_own("memory_is_bounded_over_many_buffers") {
            return;
        }
        const MOST: u64 = 64 << 20;
        let tested = Tested::new();
        let resident = || {
            let status = fs::read_to_string("/proc/self/status").unwrap();
            let line = status.lines().find_map(|line| line.strip_prefix("RssShmem:")).unwrap();
            1024 * line.trim().trim_end_matches(" kB").parse::<u64>().unwrap()
        };
        let mappings = || fs::read_to_string("/proc/self/maps").unwrap().lines().count();
        let (before, first) = (resident(), mappings());
        let mut most = 0;
        for round in 0..1_000 {
            // The buffers have 48 different sizes. The sum of the sizes is 74 MiB.
            let handle = tested.created((1 + round % 48) << 16);
            tested.submitted(handle, &[7]);
            tested.closed(handle);
            most = most.max(tested.parked());
        }
        assert!((MOST / 2..=MOST).contains(&most), "{most}");
        assert!(resident() <= before + MOST + (8 << 20), "{} {before}", resident());
        assert!(mappings() < first + 200, "{} {first}", mappings());
        // The files of larger buffers are not kept.
        let kept = tested.parked();
        let large = tested.created(17 << 20);
        tested.submitted(large, &[7]);
        tested.closed(large);
        assert_eq!(tested.parked(), kept);
    }

    #[test]
    fn fills_are_outstanding_until_the_program_can_read_them() {
        if !in_a_process_of_its_own("fills_are_outstanding_until_the_program_can_read_them") {
            return;
        }
        let tested = Tested::new();
        // SAFETY: callers pass a mapping of a whole buffer. No thread writes to the buffer during the read.
        let bytes = |map: *mut u8| unsafe { std::slice::from_raw_parts(map, SIZE as usize) }.to_vec();
        let [one, two] = [(); 2].map(|()| tested.created(SIZE));
        tested.submitted(one, &[CLEAR | 1]);
        tested.submitted(one, &[CLEAR | 2]);
        assert_eq!(tested.stored(one), 0, "only the chip can read it");
        let map = tested.mapped(one);
        assert!(bytes(map) == [2; SIZE as usize]);
        tested.submitted(one, &[CLEAR | 3]);
        assert!(bytes(map) == [3; SIZE as usize], "it is mapped when the submission ends");
        // A read for a request returns the bytes of an outstanding fill.
        tested.submitted(two, &[CLEAR | 4]);
        let range = tested.range(two);
        let read = tested.client.lock().memory.read(range);
        assert!(read == [4; SIZE as usize]);
        // A fill stays outstanding for a limited number of submissions only.
        tested.submitted(two, &[CLEAR | 5]);
        let submissions = (1..20).take_while(|_| {
            tested.look(one);
            tested.stored(two) == 4
        });
        assert_eq!(submissions.count(), 7);
        // The mapping outlives its buffer.
        tested.submitted(one, &[CLEAR | 6]);
        tested.closed(one);
        assert!(bytes(map) == [6; SIZE as usize]);
        // A child process with a separate chip reads the buffer. Then the parent reads the buffer.
        NODE.store(std::ptr::from_ref(tested.client.node).cast_mut(), Ordering::Release);
        tested.submitted(two, &[CLEAR | 7]);
        assert_eq!(tested.stored(two), 5);
        // SAFETY: the child only reads a byte and ends.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let code = if tested.stored(two) == 7 { 0 } else { 1 };
            // SAFETY: `_exit` ends the child process without running exit handlers.
            unsafe { libc::_exit(code) };
        }
        let mut status = 0;
        // SAFETY: the status is a local integer.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        assert_eq!(status, 0, "the child has all fills");
        tested.submitted(two, &[CLEAR | 8]);
        assert_eq!(tested.stored(two), 8, "a child may read it");
    }

    #[test]
    fn what_a_copy_of_the_process_draws_is_seen_and_its_buffers_keep_their_files() {
        if !in_a_process_of_its_own(
            "what_a_copy_of_the_process_draws_is_seen_and_its_buffers_keep_their_files",
        ) {
            return;
        }
        let tested = Tested::new();
        let [one, two] = [(); 2].map(|()| tested.created(SIZE));
        assert_eq!([tested.look(one), tested.submitted(two, &[6])], [0, 6]);
        let mut pipes = [[0; 2]; 2];
        // SAFETY: the list has room for the descriptors.
        pipes.iter_mut().for_each(|pipe| unsafe { assert_eq!(libc::pipe(pipe.as_mut_ptr()), 0) });
        let [up, down] = pipes;
        let mut byte = [0_u8];
        // SAFETY: the child draws, reads and ends. Each process passes a buffer of one byte to reads and writes of a
        // pipe.
        let child = unsafe { libc::fork() };
        if child == 0 {
            // SAFETY: the buffer for reads and writes has one byte. `_exit` ends the child without running the exit
            // handlers of the test process.
            unsafe {
                // The child closes its write end of `down`. If the test process ends early, the read from `down`
                // therefore returns, and the child ends.
                libc::close(down[1]);
                tested.submitted(one, &[3]);
                libc::write(up[1], byte.as_ptr().cast(), 1);
                libc::read(down[0], byte.as_mut_ptr().cast(), 1);
                let range = tested.range(two);
                let kept = tested.client.lock().memory.read(range).iter().all(|byte| *byte == 6);
                libc::_exit(if kept { 0 } else { 1 });
            }
        }
        // SAFETY: the buffer has one byte.
        unsafe { libc::read(up[0], byte.as_mut_ptr().cast(), 1) };
        assert_eq!(tested.look(one), 3, "no buffer was mapped");
        // The child still has this buffer open.
        tested.closed(two);
        let next = tested.created(SIZE);
        assert!(tested.is_zero(next));
        tested.submitted(next, &[9]);
        let mut status = 0;
        // SAFETY: `byte` has one byte, and `status` is a local integer.
        unsafe {
            libc::write(down[1], byte.as_ptr().cast(), 1);
            assert_eq!(libc::waitpid(child, &raw mut status, 0), child);
        }
        assert_eq!(status, 0, "the child's buffer has other bytes");
        // The parent created the buffer after the fork, so the child does not have the buffer. The node therefore keeps
        // the file of the buffer.
        tested.closed(next);
        assert_eq!(tested.parked(), SIZE);
    }
}
