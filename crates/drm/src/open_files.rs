//! The open files of the node: which descriptors belong to which, and which of them are closed.
//!
//! An open file is a pipe. The program has the end to read from: it has something to read when a page flip is done, and
//! cannot be written, mapped, resized or moved in. All duplicates of it, and nothing else, have the number of the pipe's
//! inode. The other end, the *watch*, stays here: the kernel says on it when no duplicate of the first is left, in this
//! process or another, however they were closed.
//!
//! A program may close the watch, and its number may mean another file then. Before each use the file is compared. A
//! watch that was lost is made anew from a descriptor of the program.
//!
//! Looking up a descriptor takes no lock and allocates nothing: it is part of `fstat`, `mmap` and `close`.

use std::ffi::c_int;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicI32, AtomicPtr, AtomicU64, Ordering};

use crate::buffers::FileId;
use crate::ioctls::{Errno, FlipEvent, Plain};
use crate::real;

/// An open file, or the place of one that is closed. Places are never given back, and used again.
#[derive(Debug)]
struct Place {
    next: *mut Place,
    /// The inode of the pipe, or one of the two below.
    inode: AtomicU64,
    watch: AtomicI32,
}

/// The inode of a place that is free, and of one that is being filled. No pipe has either.
const FREE: u64 = 0;
const TAKEN: u64 = u64::MAX;
/// The watch where there is none.
const NONE: c_int = -1;

static FIRST: AtomicPtr<Place> = AtomicPtr::new(null_mut());

fn places() -> impl Iterator<Item = &'static Place> {
    let mut next = FIRST.load(Ordering::Acquire);
    std::iter::from_fn(move || {
        // SAFETY: null, or a place, which lasts until the process ends.
        let place = unsafe { next.as_ref() }?;
        next = place.next;
        Some(place)
    })
}

/// The file system of pipes, once there is one of ours. Pipes with names are on others.
static PIPES: AtomicU64 = AtomicU64::new(0);

/// The inode of a descriptor's pipe, if it has one. Leaves `errno` as it is.
fn pipe_of(descriptor: c_int) -> Option<u64> {
    let status = status(descriptor)?;
    (status.st_dev == PIPES.load(Ordering::Relaxed)).then_some(status.st_ino)
}

fn status(descriptor: c_int) -> Option<libc::stat> {
    // SAFETY: all bytes zero is a value of this plain structure.
    let mut status: libc::stat = unsafe { std::mem::zeroed() };
    let errno = real::errno();
    // SAFETY: `status` is a structure of the kind that `fstat` fills.
    let answer = unsafe { real::fstat(descriptor, &raw mut status) };
    real::set_errno(errno);
    (answer == 0).then_some(status)
}

/// The open file of a descriptor, if it is one of the node. Leaves `errno` as it is.
pub(crate) fn of(descriptor: c_int) -> Option<FileId> {
    if FIRST.load(Ordering::Acquire).is_null() {
        return None;
    }
    let inode = pipe_of(descriptor)?;
    places().any(|place| place.inode.load(Ordering::Acquire) == inode).then_some(FileId(inode))
}

/// Makes an open file with its first descriptor.
///
/// # Errors
/// As `pipe`.
pub(crate) fn open(nonblocking: bool) -> Result<c_int, Errno> {
    let mut ends: [c_int; 2] = [NONE; 2];
    // Closed on `exec` whether or not that was asked for: another program would not know the descriptor.
    // SAFETY: room for two descriptors.
    if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC | libc::O_NONBLOCK) } != 0 {
        return Err(Errno(real::errno()));
    }
    let [descriptor, watch] = ends;
    if !nonblocking {
        // SAFETY: a plain system call on a descriptor of our own.
        unsafe { libc::fcntl(descriptor, libc::F_SETFL, 0) };
    }
    let Some(libc::stat { st_dev, st_ino: inode, .. }) = status(descriptor) else {
        ends.into_iter().for_each(real::close_own);
        return Err(Errno(libc::ENODEV));
    };
    PIPES.store(st_dev, Ordering::Relaxed);
    let watch = moved_away(watch);
    let free = |place: &&Place| {
        place.inode.compare_exchange(FREE, TAKEN, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    };
    if let Some(place) = places().find(free) {
        place.watch.store(watch, Ordering::Relaxed);
        place.inode.store(inode, Ordering::Release);
        return Ok(descriptor);
    }
    let (inode, watch) = (AtomicU64::new(inode), AtomicI32::new(watch));
    let place = Box::into_raw(Box::new(Place { next: null_mut(), inode, watch }));
    let mut first = FIRST.load(Ordering::Acquire);
    loop {
        // SAFETY: nobody else knows the place yet.
        unsafe { (*place).next = first };
        match FIRST.compare_exchange(first, place, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => return Ok(descriptor),
            Err(other) => first = other,
        }
    }
}

/// Gives a descriptor of our own a high number, which programs that count descriptors from 3 on do not meet. Keeps the
/// low one where there is no other.
fn moved_away(descriptor: c_int) -> c_int {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: a structure of the kind that is filled, and plain system calls.
    let high = unsafe {
        libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit);
        // Not beyond what a table of descriptors takes some KiB for.
        let from = (limit.rlim_cur - limit.rlim_cur / 4).min(1 << 14) as c_int;
        libc::fcntl(descriptor, libc::F_DUPFD_CLOEXEC, from)
    };
    if high < 0 {
        return descriptor;
    }
    real::close_own(descriptor);
    high
}

impl Place {
    /// The watch, if the descriptor is still that.
    fn watch(&self) -> Option<c_int> {
        let watch = self.watch.load(Ordering::Acquire);
        (watch != NONE && pipe_of(watch) == Some(self.inode.load(Ordering::Acquire))).then_some(watch)
    }

    /// The watch, made anew from another descriptor of the pipe if it was lost.
    fn watch_or_anew(&self, descriptor: c_int) -> Option<c_int> {
        let known = self.watch();
        if known.is_some() {
            return known;
        }
        let path = format!("/proc/self/fd/{descriptor}\0");
        let flags = libc::O_WRONLY | libc::O_NONBLOCK | libc::O_CLOEXEC;
        // SAFETY: the path is a C string. The system call: `openat` is a function that this library answers.
        let made =
            unsafe { libc::syscall(libc::SYS_openat, libc::AT_FDCWD, path.as_ptr(), flags, 0) } as c_int;
        if made < 0 {
            return None;
        }
        self.watch.store(moved_away(made), Ordering::Release);
        self.watch()
    }

    /// Whether a descriptor is left.
    fn lives(&self) -> bool {
        if let Some(watch) = self.watch() {
            let mut asked = libc::pollfd { fd: watch, events: 0, revents: 0 };
            // SAFETY: one structure of this kind. An answer that does not come leaves `revents` at zero.
            unsafe { libc::poll(&raw mut asked, 1, 0) };
            return asked.revents & libc::POLLERR == 0;
        }
        // Without a watch, by the descriptors of this process. Where they cannot be listed, nothing is known to be closed.
        let Ok(all) = std::fs::read_dir("/proc/self/fd") else { return true };
        let numbers = all.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let inode = self.inode.load(Ordering::Acquire);
        let left = numbers.into_iter().find(|number: &c_int| pipe_of(*number) == Some(inode));
        left.inspect(|descriptor| _ = self.watch_or_anew(*descriptor)).is_some()
    }
}

/// Forgets the open files of which no descriptor is left, and gives them. Only under the lock of the node.
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

/// Whether there are several open files.
pub(crate) fn several() -> bool {
    places().filter(|place| place.inode.load(Ordering::Acquire) != FREE).nth(1).is_some()
}

/// Lets the program read an event from an open file, of which it has this descriptor. Gives whether there was room.
pub(crate) fn notify(descriptor: c_int, event: &FlipEvent) -> bool {
    let Some(inode) = pipe_of(descriptor) else { return false };
    let place = places().find(|place| place.inode.load(Ordering::Acquire) == inode);
    let Some(watch) = place.and_then(|place| place.watch_or_anew(descriptor)) else { return false };
    let written = {
        let event: *const FlipEvent = event;
        // SAFETY: as many bytes as the event has. The system call: `write` is a function that this library answers.
        unsafe { libc::syscall(libc::SYS_write, watch, event, size_of::<FlipEvent>()) }
    };
    // So few bytes are written whole or not at all.
    written > 0
}

/// The next event that the program was not notified of. Waits for none.
pub(crate) fn next_event(descriptor: c_int) -> Option<FlipEvent> {
    let mut waiting: c_int = 0;
    let mut event = FlipEvent::zeroed();
    // SAFETY: room for a number, and for as many bytes as an event has. The call of `ioctl` is one of the C library's
    // requests, which goes on to it.
    let read = unsafe {
        if real::ioctl(descriptor, libc::FIONREAD, (&raw mut waiting).cast()) != 0
            || (waiting as usize) < size_of::<FlipEvent>()
        {
            return None;
        }
        libc::syscall(libc::SYS_read, descriptor, &raw mut event, size_of::<FlipEvent>())
    };
    (read == size_of::<FlipEvent>() as libc::c_long).then_some(event)
}

#[cfg(test)]
mod tests {
    use std::sync::{Mutex, MutexGuard, PoisonError};

    use super::*;

    /// One test at a time: the open files are those of the process.
    fn alone() -> MutexGuard<'static, ()> {
        static ALONE: Mutex<()> = Mutex::new(());
        ALONE.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn place(file: FileId) -> &'static Place {
        places().find(|place| place.inode.load(Ordering::Acquire) == file.0).unwrap()
    }

    #[test]
    fn a_duplicate_is_the_same_file_and_another_open_is_not() {
        let _alone = alone();
        let [one, other] = [open(false).unwrap(), open(true).unwrap()];
        // SAFETY: a plain system call.
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
        let descriptor = open(true).unwrap();
        let file = of(descriptor).unwrap();
        let watch = place(file).watch().unwrap();
        let mut others: [c_int; 2] = [NONE; 2];
        // SAFETY: room for two descriptors, and plain system calls.
        unsafe {
            assert_eq!(libc::pipe(others.as_mut_ptr()), 0);
            assert_eq!(libc::dup2(others[1], watch), watch);
            real::close_own(others[0]);
        }
        // The other file says that its reader is gone. Ours has one.
        assert_eq!((place(file).watch(), closed()), (None, vec![]));
        let anew = place(file).watch().unwrap();
        assert_ne!(anew, watch);
        let event = FlipEvent { user: 7, ..FlipEvent::zeroed() };
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
        let descriptor = open(true).unwrap();
        let mut byte = 0_u8;
        // SAFETY: plain system calls, with room for one byte.
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
