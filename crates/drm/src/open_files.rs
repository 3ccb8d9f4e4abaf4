//! The open files of the node. This module stores the descriptors of the open files. The module also detects that a
//! program has closed the last descriptor of an open file.
//!
//! An open file is a pipe. The program holds the read end. A completed page flip writes an event to the pipe. The read
//! end does not support other operations. For example, the program cannot write to the read end, map or resize the read
//! end, or change the file offset. The duplicates of the read end have the inode of the pipe. In the program, no
//! further descriptors have this inode.
//!
//! This library holds the write end, which is called the *watch*. After all processes have closed all duplicates of the
//! read end, the kernel reports an error condition on the watch. The kernel reports this condition no matter how the
//! duplicates were closed.
//!
//! A program may close the watch and open another file with the same descriptor number. Therefore, the library checks
//! before each use that the inode of the watch is the inode of the pipe. If the program has closed the watch, the
//! library opens a new watch through a descriptor of the program.
//!
//! `fstat`, `mmap` and `close` look up descriptors. Therefore, the lookup of a descriptor does not take a lock and does
//! not allocate.

use std::ffi::c_int;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicI32, AtomicPtr, AtomicU64, Ordering};

use crate::buffers::FileId;
use crate::ioctls::{Errno, Plain, ScreenEvent};
use crate::real;

/// Entry of the list of open files. An entry is reused after the file of the entry is closed. An entry is never freed.
#[derive(Debug)]
struct FileSlot {
    next: *mut FileSlot,
    /// Inode of the pipe. The value is [`FREE`] or [`TAKEN`] if the entry has no file.
    inode: AtomicU64,
    watch: AtomicI32,
}

/// Inode of an entry without a file. No pipe has this inode.
const FREE: u64 = 0;
/// Inode of an entry that a thread is filling in. No pipe has this inode.
const TAKEN: u64 = u64::MAX;
/// Descriptor number of an entry that has no watch.
const NONE: c_int = -1;

static FIRST: AtomicPtr<FileSlot> = AtomicPtr::new(null_mut());

fn places() -> impl Iterator<Item = &'static FileSlot> {
    let mut next = FIRST.load(Ordering::Acquire);
    std::iter::from_fn(move || {
        // SAFETY: the pointer is null, or points to an entry, and entries are never freed.
        let place = unsafe { next.as_ref() }?;
        next = place.next;
        Some(place)
    })
}

/// Device number of the file system of pipes, or 0 before the first open file. Named pipes are on other file systems.
static PIPES: AtomicU64 = AtomicU64::new(0);

/// Returns the inode of a descriptor, if the descriptor is a pipe without a name. Leaves `errno` unchanged.
fn pipe_of(descriptor: c_int) -> Option<u64> {
    let status = real::status(descriptor)?;
    (status.st_dev == PIPES.load(Ordering::Relaxed)).then_some(status.st_ino)
}

/// Returns the open file of a descriptor, if the descriptor belongs to the node. Leaves `errno` unchanged.
pub(crate) fn of(descriptor: c_int) -> Option<FileId> {
    if FIRST.load(Ordering::Acquire).is_null() {
        return None;
    }
    let inode = pipe_of(descriptor)?;
    places().any(|place| place.inode.load(Ordering::Acquire) == inode).then_some(FileId(inode))
}

/// The path by which an open file was opened. The number of each variant is the mode of the pipe's inode. Another
/// process recognizes the file by this mode (see `sockets.rs`). The mode has the sticky bit, which programs do not set
/// for a pipe. The mode allows all users to write, because a process of another user may open a watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NodeKind {
    /// The path of the render node.
    Render = 0o1622,
    /// The path of the node that controls the screen.
    Card = 0o1666,
}

/// Returns the path by which the open file of a descriptor was opened. Leaves `errno` unchanged.
pub(crate) fn kind(descriptor: c_int) -> Option<NodeKind> {
    let mode = real::status(descriptor)?.st_mode;
    let marks = |kind: &NodeKind| libc::S_IFIFO | *kind as libc::mode_t == mode;
    [NodeKind::Render, NodeKind::Card].into_iter().find(marks)
}

/// Creates an open file and returns its first descriptor.
///
/// # Errors
/// The errors of the C function `pipe`.
pub(crate) fn open(kind: NodeKind, nonblocking: bool) -> Result<c_int, Errno> {
    let mut ends: [c_int; 2] = [NONE; 2];
    // `exec` always closes the descriptor, even if the program did not request `O_CLOEXEC`. The program that `exec`
    // starts cannot use the descriptor. SAFETY: the array has room for two descriptors.
    if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC | libc::O_NONBLOCK) } != 0 {
        return Err(Errno(real::errno()));
    }
    let [descriptor, watch] = ends;
    if !nonblocking {
        // SAFETY: the system call only affects a descriptor of this library.
        unsafe { libc::fcntl(descriptor, libc::F_SETFL, 0) };
    }
    let Some(libc::stat { st_dev, st_ino: inode, .. }) = real::status(descriptor) else {
        ends.into_iter().for_each(real::close_own);
        return Err(Errno(libc::ENODEV));
    };
    PIPES.store(st_dev, Ordering::Relaxed);
    // SAFETY: the system call only affects a descriptor of this library.
    unsafe { libc::fchmod(descriptor, kind as libc::mode_t) };
    enlist(inode, moved_away(watch));
    Ok(descriptor)
}

/// Adopts an open file that another process opened. This process has received or inherited a descriptor of the file.
/// Returns false if the descriptor does not belong to an open file of the node. Leaves `errno` unchanged.
pub(crate) fn adopt(descriptor: c_int) -> bool {
    let Some(status) = real::status(descriptor).filter(|_| kind(descriptor).is_some()) else { return false };
    let is_file = |place: &&FileSlot| place.inode.load(Ordering::Acquire) == status.st_ino;
    if places().find(is_file).is_none() {
        let errno = real::errno();
        PIPES.store(status.st_dev, Ordering::Relaxed);
        enlist(status.st_ino, NONE);
        // This process opens a second watch. With only one watch, the pipe would lose its write end at the end of the
        // process with this watch. After the loss, a read of the pipe would return the end of the file.
        places().find(is_file).and_then(|place| place.watch_or_anew(descriptor));
        real::set_errno(errno);
    }
    true
}

/// Adds an open file to the list.
fn enlist(inode: u64, watch: c_int) {
    let free = |place: &&FileSlot| {
        place.inode.compare_exchange(FREE, TAKEN, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    };
    if let Some(place) = places().find(free) {
        place.watch.store(watch, Ordering::Relaxed);
        place.inode.store(inode, Ordering::Release);
        return;
    }
    let (inode, watch) = (AtomicU64::new(inode), AtomicI32::new(watch));
    let place = Box::into_raw(Box::new(FileSlot { next: null_mut(), inode, watch }));
    let mut first = FIRST.load(Ordering::Acquire);
    loop {
        // SAFETY: the entry is not yet in the list.
        unsafe { (*place).next = first };
        match FIRST.compare_exchange(first, place, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => return,
            Err(other) => first = other,
        }
    }
}

/// Moves a descriptor of this library to a high number, because programs may close low numbers. If no high number is
/// free, the descriptor keeps its number.
pub(crate) fn moved_away(descriptor: c_int) -> c_int {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `getrlimit` fills a local structure, and `fcntl` does not access memory.
    let high = unsafe {
        libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit);
        // The number is limited to keep the kernel's descriptor table small. The kernel allocates the table up to the
        // highest number in use.
        let from = (limit.rlim_cur - limit.rlim_cur / 4).min(1 << 14) as c_int;
        libc::fcntl(descriptor, libc::F_DUPFD_CLOEXEC, from)
    };
    if high < 0 {
        return descriptor;
    }
    real::close_own(descriptor);
    high
}

impl FileSlot {
    /// Returns the watch, if the descriptor number of the watch still refers to this pipe.
    fn watch(&self) -> Option<c_int> {
        let watch = self.watch.load(Ordering::Acquire);
        (watch != NONE && pipe_of(watch) == Some(self.inode.load(Ordering::Acquire))).then_some(watch)
    }

    /// Returns the watch. If the program has closed the watch, opens a new watch through `descriptor`, a descriptor of
    /// the pipe.
    fn watch_or_anew(&self, descriptor: c_int) -> Option<c_int> {
        let lost = self.watch.load(Ordering::Acquire);
        let known = self.watch();
        if known.is_some() {
            return known;
        }
        let path = format!("/proc/self/fd/{descriptor}\0");
        let flags = libc::O_WRONLY | libc::O_NONBLOCK | libc::O_CLOEXEC;
        // SAFETY: the path is a C string. The code makes a system call instead of calling `openat`, because this
        // library replaces `openat`.
        let made =
            unsafe { libc::syscall(libc::SYS_openat, libc::AT_FDCWD, path.as_ptr(), flags, 0) } as c_int;
        if made < 0 {
            return None;
        }
        let made = moved_away(made);
        if self.watch.compare_exchange(lost, made, Ordering::AcqRel, Ordering::Relaxed).is_err() {
            // Another thread has already stored a watch, so this thread closes the watch that this thread opened.
            real::close_own(made);
        }
        self.watch()
    }

    /// Returns whether any descriptor of the file is still open.
    fn lives(&self) -> bool {
        if let Some(watch) = self.watch() {
            let mut asked = libc::pollfd { fd: watch, events: 0, revents: 0 };
            // SAFETY: the pointer refers to one local `pollfd`. If the call fails, `revents` is still zero.
            unsafe { libc::poll(&raw mut asked, 1, 0) };
            return asked.revents & libc::POLLERR == 0;
        }
        // If the file has no watch, the function searches the descriptors of this process. If the descriptors cannot be
        // listed, the function assumes that the file is open.
        let Ok(all) = std::fs::read_dir("/proc/self/fd") else { return true };
        let numbers = all.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let inode = self.inode.load(Ordering::Acquire);
        let left = numbers.into_iter().find(|number: &c_int| pipe_of(*number) == Some(inode));
        left.inspect(|descriptor| _ = self.watch_or_anew(*descriptor)).is_some()
    }
}

/// Removes from the list all files whose last descriptor was closed. Returns these files. The caller must hold the lock
/// of the node.
pub(crate) fn closed() -> Vec<FileId> {
    let used = places().filter(|place| ![FREE, TAKEN].contains(&place.inode.load(Ordering::Acquire)));
    let ended = used.filter(|place| !place.lives()).map(|place| {
        let watch = place.watch();
        place.watch.store(NONE, Ordering::Release);
        watch.into_iter().for_each(real::close_own);
        FileId(place.inode.swap(FREE, Ordering::AcqRel))
    });
    ended.collect()
}

/// Returns whether there are two or more open files.
pub(crate) fn several() -> bool {
    places().filter(|place| place.inode.load(Ordering::Acquire) != FREE).nth(1).is_some()
}

/// Queues an event for the open file of a descriptor. Returns false if the queue is full.
pub(crate) fn notify(descriptor: c_int, event: &ScreenEvent) -> bool {
    let Some(inode) = pipe_of(descriptor) else { return false };
    let place = places().find(|place| place.inode.load(Ordering::Acquire) == inode);
    let Some(watch) = place.and_then(|place| place.watch_or_anew(descriptor)) else { return false };
    let written = {
        let event: *const ScreenEvent = event;
        // SAFETY: the address and the length belong to the event. The code makes a system call instead of calling
        // `write`, because this library replaces `write`.
        unsafe { libc::syscall(libc::SYS_write, watch, event, size_of::<ScreenEvent>()) }
    };
    // The event is either written completely or not at all, because a write of up to `PIPE_BUF` bytes is atomic.
    written > 0
}

/// Takes the next queued event of a descriptor. Does not wait.
pub(crate) fn next_event(descriptor: c_int) -> Option<ScreenEvent> {
    let mut waiting: c_int = 0;
    let mut event = ScreenEvent::zeroed();
    // SAFETY: the arguments are the addresses of a local integer and of a local event. `ioctl` passes this request to
    // the C library.
    let read = unsafe {
        if real::ioctl(descriptor, libc::FIONREAD, (&raw mut waiting).cast()) != 0
            || (waiting as usize) < size_of::<ScreenEvent>()
        {
            return None;
        }
        libc::syscall(libc::SYS_read, descriptor, &raw mut event, size_of::<ScreenEvent>())
    };
    (read == size_of::<ScreenEvent>() as libc::c_long).then_some(event)
}

#[cfg(test)]
mod tests {
    use std::sync::{Mutex, MutexGuard, PoisonError};

    use super::*;

    /// Ensures that only one test runs at a time. All tests share the process's list of open files.
    fn alone() -> MutexGuard<'static, ()> {
        static ALONE: Mutex<()> = Mutex::new(());
        ALONE.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn place(file: FileId) -> &'static FileSlot {
        places().find(|place| place.inode.load(Ordering::Acquire) == file.0).unwrap()
    }

    #[test]
    fn a_duplicate_is_the_same_file_and_another_open_is_not() {
        let _alone = alone();
        let [one, other] = [open(NodeKind::Render, false).unwrap(), open(NodeKind::Render, true).unwrap()];
        // SAFETY: the system call does not access memory of the process.
        let duplicate = unsafe { libc::dup(one) };
        let file = of(one).unwrap();
        assert_eq!((of(duplicate), of(-1), of(0)), (Some(file), None, None));
        assert!(of(other).is_some_and(|other| other != file) && several());
        real::close_own(one);
        assert_eq!(closed(), [], "a duplicate is left");
        real::close_own(duplicate);
        assert_eq!(closed(), [file]);
        let last = of(other).unwrap();
        real::close_own(other);
        assert_eq!((closed(), closed()), (vec![last], vec![]));
    }

    #[test]
    fn a_watch_that_was_closed_is_not_mistaken_for_the_file_that_has_its_number() {
        let _alone = alone();
        let descriptor = open(NodeKind::Render, true).unwrap();
        let file = of(descriptor).unwrap();
        let watch = place(file).watch().unwrap();
        let mut others: [c_int; 2] = [NONE; 2];
        // SAFETY: the array has room for two descriptors. The calls after `pipe` do not access memory.
        unsafe {
            assert_eq!(libc::pipe(others.as_mut_ptr()), 0);
            assert_eq!(libc::dup2(others[1], watch), watch);
            real::close_own(others[0]);
        }
        // The test has closed the read end of the pipe `others`. The read end of the open file is still open.
        assert_eq!((place(file).watch(), closed()), (None, vec![]));
        let anew = place(file).watch().unwrap();
        assert_ne!(anew, watch);
        let event = ScreenEvent { user: 7, ..ScreenEvent::zeroed() };
        assert!(notify(descriptor, &event));
        assert_eq!(next_event(descriptor).map(|event| event.user), Some(7));
        assert!(next_event(descriptor).is_none());
        for mine in [watch, others[1], descriptor] {
            real::close_own(mine);
        }
        assert_eq!(closed(), [file]);
        assert_eq!(pipe_of(anew), None, "the watch ends with its file");
    }

    #[test]
    fn nothing_is_written_to_a_file_or_read_where_nothing_is() {
        let _alone = alone();
        let descriptor = open(NodeKind::Render, true).unwrap();
        let mut byte = 0_u8;
        // SAFETY: the buffer has one byte.
        unsafe {
            assert_eq!(libc::syscall(libc::SYS_read, descriptor, &raw mut byte, 1), -1);
            assert_eq!(real::errno(), libc::EAGAIN);
            assert_eq!(libc::syscall(libc::SYS_write, descriptor, &raw const byte, 1), -1);
            assert_eq!(libc::ftruncate(descriptor, 0), -1);
            assert_eq!(libc::lseek(descriptor, 0, libc::SEEK_SET), -1);
        }
        real::close_own(descriptor);
        closed();
    }
}
