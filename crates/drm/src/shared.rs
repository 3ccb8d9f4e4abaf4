//! Buffers that several processes share. A process exports a buffer as a file, and another process imports the file as
//! a buffer.
//!
//! ```text
//! process 1              file in memory              process 2
//! buffer  --- export -->  its contents  --- import -->  buffer
//! chip 1 reads and writes  \____ the same pages ____/   chip 2 reads and writes
//! ```
//!
//! A program requests the file of a buffer (PRIME) and sends the file to another process. In each process, the request
//! of a submission returns after the execution of the submission. Therefore, a buffer contains all results when another
//! process uses the buffer, and no fence is needed.
//!
//! Before an export, the file of a buffer has no descriptor, see [`memory`](crate::memory). The export copies the
//! buffer into a new file with a descriptor. After the copy, the chip's mapping and all mappings of the program refer
//! to the new file instead of the old file. The name of the new file contains the domain, the tiling and the pitch.
//! Before the export, the driver has set the domain, the tiling and the pitch. The file cannot be resized, so no
//! process can remove pages that another process uses.
//!
//! The kernel frees the pages of the file after the last mapping was removed and the last descriptor was closed. If a
//! process is killed, the kernel removes the mappings and closes the descriptors of the process.
//!
//! Sources: the kernel's `drm_prime.c`, libdrm's `xf86drm.c`, and Mesa 22.3.6. To determine the size of a buffer,
//! libdrm and Mesa call `lseek`.

use std::collections::BTreeMap;
use std::ffi::{CString, c_int};

use crate::buffers::BufferId;
use crate::ioctls::{DMA_BUF_SYNC, Errno, PrimeHandle, Request};
use crate::messages::say_once;
use crate::node::State;
use crate::open_files::moved_away;
use crate::real;

/// Prefix of the names of buffer files.
const NAME: &str = "reconverge-drm-buffer";

/// Flags of an export. With the first flag, `exec` closes the descriptor. With the second flag, the descriptor can be
/// mapped for writing. (`DRM_CLOEXEC`, `DRM_RDWR`)
const CLOEXEC: u32 = libc::O_CLOEXEC as u32;
const READ_WRITE: u32 = libc::O_RDWR as u32;

/// Seals of a buffer file. The seals prevent changes of the size of the file, and changes of the seals.
const SEALS: c_int = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;

/// A buffer that was exported or imported.
#[derive(Debug)]
struct SharedBuffer {
    buffer: BufferId,
    /// A descriptor of the buffer's file.
    descriptor: c_int,
}

/// The device and the inode of a file. These two numbers identify the file among the files of all file systems.
type FileKey = (libc::dev_t, libc::ino_t);

/// Returns the identity of a descriptor's file.
fn file(descriptor: c_int) -> Option<FileKey> {
    real::status(descriptor).map(|status| (status.st_dev, status.st_ino))
}

/// The buffers of this process that were exported or imported. The key is the identity of the file.
#[derive(Debug, Default)]
pub(crate) struct SharedBuffers {
    files: BTreeMap<FileKey, SharedBuffer>,
}

impl SharedBuffers {
    /// Closes the file of a buffer that is freed, if the buffer is shared. Descriptors of the file in other processes
    /// stay open.
    pub(crate) fn end(&mut self, buffer: BufferId) {
        for (key, ended) in self.files.extract_if(.., |_, shared| shared.buffer == buffer) {
            // The program may have closed the descriptor and opened another file with the same number.
            if file(ended.descriptor) == Some(key) {
                real::close_own(ended.descriptor);
            }
        }
    }
}

/// Data that the driver stored with a buffer before the buffer was exported. The name of the file contains these data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stored {
    domain: u32,
    tiling: u32,
    pitch: u32,
}

impl Stored {
    fn name(self) -> String {
        format!("{NAME} {:x} {:x} {:x}", self.domain, self.tiling, self.pitch)
    }

    fn of_name(name: &str) -> Option<Stored> {
        let mut numbers = name.strip_prefix(NAME)?.split_whitespace();
        let mut number = || u32::from_str_radix(numbers.next()?, 16).ok();
        Some(Stored { domain: number()?, tiling: number()?, pitch: number()? })
    }

    /// Returns the data in the name of a descriptor's file, if the file belongs to a buffer.
    fn of_file(descriptor: c_int) -> Option<Stored> {
        let link = std::fs::read_link(format!("/proc/self/fd/{descriptor}")).ok()?;
        let name = link.to_str()?.strip_prefix("/memfd:")?;
        Stored::of_name(name.strip_suffix(" (deleted)").unwrap_or(name))
    }
}

/// `PRIME_HANDLE_TO_FD`: returns a descriptor of the file of a buffer.
///
/// # Errors
/// `ENOENT` for an unknown handle. `EINVAL` for unknown flags. `EIO` if the program has closed this library's
/// descriptor of the file. `EBUSY` if the program may have mappings of the buffer that this library has not recorded. The
/// errors of the operating system if a new file cannot be created.
pub(crate) fn export(state: &mut State, asked: &mut PrimeHandle) -> Result<(), Errno> {
    if asked.flags & !(CLOEXEC | READ_WRITE) != 0 {
        return Err(Errno(libc::EINVAL));
    }
    let id = state.buffers.id(asked.handle)?;
    let known = state.shared.files.iter().find(|(_, shared)| shared.buffer == id);
    let descriptor = match known {
        Some((key, shared)) if file(shared.descriptor) == Some(*key) => shared.descriptor,
        Some(_) => {
            say_once(
                "a shared buffer cannot be exported, because the program has closed a descriptor of this library",
            );
            return Err(Errno(libc::EIO));
        }
        None => new_file(state, asked.handle, id)?,
    };
    let kind = if asked.flags & CLOEXEC != 0 { libc::F_DUPFD_CLOEXEC } else { libc::F_DUPFD };
    // SAFETY: the system call only affects a descriptor of this library.
    asked.descriptor = unsafe { libc::fcntl(descriptor, kind, 0) };
    if asked.descriptor < 0 { Err(Errno(real::errno())) } else { Ok(()) }
}

/// Moves a buffer into a new file. Returns this library's descriptor of the file.
fn new_file(state: &mut State, handle: u32, id: BufferId) -> Result<c_int, Errno> {
    let buffer = state.buffers.get(handle)?;
    let stored = Stored { domain: buffer.domain, tiling: buffer.tiling, pitch: buffer.pitch };
    let range = buffer.range.clone();
    let name = CString::new(stored.name()).map_err(|_| Errno(libc::EINVAL))?;
    // SAFETY: the name is a C string.
    let descriptor =
        unsafe { libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING) };
    if descriptor < 0 {
        return Err(Errno(real::errno()));
    }
    let descriptor = moved_away(descriptor);
    let sealed = || {
        // SAFETY: the system calls only affect a descriptor of this library.
        unsafe {
            libc::ftruncate(descriptor, (range.end - range.start) as libc::off_t) == 0
                && libc::fcntl(descriptor, libc::F_ADD_SEALS, SEALS) == 0
        }
    };
    let moved = if sealed() { state.memory.move_to(&range, descriptor) } else { Err(Errno(real::errno())) };
    match moved.and(file(descriptor).ok_or(Errno(libc::EIO))) {
        Ok(key) => {
            state.shared.files.insert(key, SharedBuffer { buffer: id, descriptor });
            state.others_write(&range);
            Ok(descriptor)
        }
        Err(error) => {
            real::close_own(descriptor);
            Err(error)
        }
    }
}

/// `PRIME_FD_TO_HANDLE`: returns a handle of the buffer of a file. A process has one buffer for each imported file.
/// Each open file of the node has at most one handle of the buffer.
///
/// # Errors
/// `EBADF` for an unknown descriptor. `EINVAL` if the file is not a buffer file. Also the errors of creating a buffer.
pub(crate) fn import(state: &mut State, asked: &mut PrimeHandle) -> Result<(), Errno> {
    let status = real::status(asked.descriptor).ok_or(Errno(libc::EBADF))?;
    let key = (status.st_dev, status.st_ino);
    if let Some(known) = state.shared.files.get(&key) {
        asked.handle = state.buffers.name_once(known.buffer)?;
        return Ok(());
    }
    let stored = Stored::of_file(asked.descriptor).ok_or(Errno(libc::EINVAL))?;
    // SAFETY: the system call does not access memory of the process.
    let seals = unsafe { libc::fcntl(asked.descriptor, libc::F_GET_SEALS) };
    let size = u64::try_from(status.st_size).unwrap_or(0);
    // A file that can be resized is rejected, because an access to a removed page would raise a signal.
    if seals < 0 || seals & SEALS != SEALS {
        return Err(Errno(libc::EINVAL));
    }
    let handle = state.buffers.create(size, 0, stored.domain)?;
    let (id, range) = (state.buffers.id(handle)?, state.buffers.get(handle)?.range.clone());
    // SAFETY: the system call does not access memory of the process.
    let own = unsafe { libc::fcntl(asked.descriptor, libc::F_DUPFD_CLOEXEC, 0) };
    let placed = match own {
        0.. if range.end - range.start == size => state.memory.place_file(&range, own),
        0.. => Err(Errno(libc::EINVAL)),
        _ => Err(Errno(real::errno())),
    };
    if let Err(error) = placed {
        if own >= 0 {
            real::close_own(own);
        }
        state.close(handle)?;
        return Err(error);
    }
    let buffer = state.buffers.get_mut(handle)?;
    (buffer.tiling, buffer.pitch) = (stored.tiling, stored.pitch);
    state.shared.files.insert(key, SharedBuffer { buffer: id, descriptor: moved_away(own) });
    state.replaced(&(range.start as usize..range.end as usize));
    state.others_write(&range);
    asked.handle = handle;
    Ok(())
}

/// Answers a request to the file of a buffer. Returns `None` for other files. `DMA_BUF_IOCTL_SYNC`, which marks the
/// beginning or the end of an access by the processor, does nothing. Requests for fences fail, as in kernels before
/// 6.0.
pub(crate) fn answer(descriptor: c_int, request: Request) -> Option<Result<(), Errno>> {
    Stored::of_file(descriptor)?;
    Some(if request.number() == DMA_BUF_SYNC { Ok(()) } else { Err(Errno(libc::ENOTTY)) })
}

#[cfg(test)]
mod tests {
    use std::ptr::null_mut;

    use reconverge_board::Board;

    use super::*;
    use crate::device::Device;
    use crate::node::{Client, Node};

    /// Returns a node that stands for a process.
    fn process() -> Client<'static> {
        let device =
            Box::leak(Box::new(Device { execute: false, ..Device::new(Board::named("rv770").unwrap()) }));
        Client::new(Box::leak(Box::new(Node::new(device, None).unwrap())), 1)
    }

    fn file_of(node: &Client<'_>, handle: u32) -> Result<c_int, Errno> {
        let mut asked = PrimeHandle { handle, flags: CLOEXEC | READ_WRITE, descriptor: -1 };
        export(&mut node.lock(), &mut asked).map(|()| asked.descriptor)
    }

    fn handle_of(node: &Client<'_>, descriptor: c_int) -> Result<u32, Errno> {
        let mut asked = PrimeHandle { handle: 0, flags: 0, descriptor };
        import(&mut node.lock(), &mut asked).map(|()| asked.handle)
    }

    fn start(node: &Client<'_>, handle: u32) -> usize {
        node.lock().buffers.get(handle).unwrap().range.start as usize
    }

    #[test]
    fn two_processes_have_the_same_bytes_and_what_the_driver_stored() {
        let [one, other] = [process(), process()];
        let handle = one.lock().create(200_000, 0, 4).unwrap();
        let from = start(&one, handle);
        one.lock().memory.write(from + 100_000, &[1, 2, 3]);
        let part = from as u64..from as u64 + 200_000;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let mapped = one.map(part, null_mut(), access, libc::MAP_SHARED).unwrap().cast::<u8>();
        {
            let mut state = one.lock();
            let buffer = state.buffers.get_mut(handle).unwrap();
            (buffer.tiling, buffer.pitch) = (3, 512);
        }
        let descriptor = file_of(&one, handle).unwrap();
        // Mesa determines the size by `lseek`.
        // SAFETY: the system call does not access memory of the process.
        assert_eq!(unsafe { libc::lseek(descriptor, 0, libc::SEEK_END) }, 4 << 16);
        let imported = handle_of(&other, descriptor).unwrap();
        let to = start(&other, imported);
        assert_eq!(other.lock().memory.read(to + 100_000..to + 100_003), [1, 2, 3]);
        {
            let state = other.lock();
            let buffer = state.buffers.get(imported).unwrap();
            assert_eq!((buffer.domain, buffer.tiling, buffer.pitch), (4, 3, 512));
            assert_eq!(state.buffers.mapped().count(), 1, "others write to it");
        }
        // The two processes read each other's writes. The mapping `mapped` is older than the export. Both processes
        // also read the bytes that the program writes through `mapped`.
        other.lock().memory.write(to, &[7]);
        one.lock().memory.write(from + 1, &[8]);
        // SAFETY: the mapping is larger than three bytes, and the test does not unmap the mapping.
        unsafe {
            mapped.add(2).write_volatile(9);
            assert_eq!([mapped.read_volatile(), mapped.add(1).read_volatile()], [7, 8]);
        }
        assert_eq!(other.lock().memory.read(to..to + 3), [7, 8, 9]);
        // The first process frees its buffer. The other process still reads the bytes of the buffer.
        one.lock().close(handle).unwrap();
        real::close_own(descriptor);
        assert_eq!(other.lock().memory.read(to..to + 3), [7, 8, 9]);
        assert!(one.lock().shared.files.is_empty());
    }

    /// Source: the kernel's `drm_gem_prime_fd_to_handle`. A file has one buffer, and an open file has one handle of the
    /// buffer.
    #[test]
    fn a_file_has_one_handle_in_an_open_file() {
        let node = process();
        let handle = node.lock().create(1, 0, 4).unwrap();
        let descriptors = [file_of(&node, handle).unwrap(), file_of(&node, handle).unwrap()];
        assert_eq!(descriptors.map(|descriptor| handle_of(&node, descriptor)), [Ok(handle); 2]);
        let other = process();
        let imported = handle_of(&other, descriptors[0]).unwrap();
        assert_eq!(handle_of(&other, descriptors[1]), Ok(imported));
        other.lock().close(imported).unwrap();
        assert_eq!(other.lock().buffers.used(u32::MAX), 0);
        assert!(handle_of(&other, descriptors[1]).is_ok(), "a buffer again");
        descriptors.into_iter().for_each(real::close_own);
    }

    #[test]
    fn a_descriptor_that_the_program_has_closed_is_not_used() {
        let node = process();
        let [one, other] = [0; 2].map(|_| node.lock().create(1, 0, 4).unwrap());
        let [first, second] = [one, other].map(|handle| file_of(&node, handle).unwrap());
        let own = |handle: u32| {
            let state = node.lock();
            let id = state.buffers.id(handle).unwrap();
            state.shared.files.values().find(|shared| shared.buffer == id).unwrap().descriptor
        };
        // As after `closefrom`, the descriptor number of the first buffer's file refers to another file.
        // SAFETY: the system call does not access memory of the process.
        assert_eq!(unsafe { libc::dup2(second, own(one)) }, own(one));
        assert_eq!(file_of(&node, one), Err(Errno(libc::EIO)));
        let kept = own(one);
        node.lock().close(one).unwrap();
        assert!(file(kept).is_some(), "it is the program's");
        [first, second, kept].into_iter().for_each(real::close_own);
    }

    #[test]
    fn a_file_of_another_file_system_with_the_same_inode_is_refused() {
        let node = process();
        let handle = node.lock().create(1, 0, 4).unwrap();
        let descriptor = file_of(&node, handle).unwrap();
        let key = file(descriptor).unwrap();
        let mut state = node.lock();
        let shared = state.shared.files.remove(&key).unwrap();
        state.shared.files.insert((key.0 + 1, key.1), shared);
        drop(state);
        assert_ne!(handle_of(&node, descriptor), Ok(handle));
        real::close_own(descriptor);
    }

    #[test]
    fn files_of_something_else_and_files_that_can_be_resized_are_refused() {
        let node = process();
        // SAFETY: the names are C strings.
        let [other, named] = unsafe {
            let sealable = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
            [c"other", c"reconverge-drm-buffer 4 0 0"].map(|name| libc::memfd_create(name.as_ptr(), sealable))
        };
        for (descriptor, error) in [(-1, libc::EBADF), (other, libc::EINVAL), (named, libc::EINVAL)] {
            assert_eq!(handle_of(&node, descriptor), Err(Errno(error)));
        }
        // The file is sealed, but the length of the file is not a length that a buffer can have. SAFETY: the system
        // calls only affect a descriptor of the test.
        unsafe {
            libc::ftruncate(named, 4096);
            libc::fcntl(named, libc::F_ADD_SEALS, SEALS);
        }
        assert_eq!(handle_of(&node, named), Err(Errno(libc::EINVAL)));
        assert_eq!(node.lock().buffers.used(u32::MAX), 0);
        assert_eq!(file_of(&node, 9), Err(Errno(libc::ENOENT)));
        let mut asked = PrimeHandle { handle: 1, flags: 1, descriptor: -1 };
        assert_eq!(export(&mut node.lock(), &mut asked), Err(Errno(libc::EINVAL)));
        [other, named].into_iter().for_each(real::close_own);
    }

    #[test]
    fn names_hold_what_was_stored() {
        let stored = Stored { domain: 4, tiling: 0xffff_ffff, pitch: 0 };
        assert_eq!(Stored::of_name(&stored.name()), Some(stored));
        for wrong in ["", "reconverge-drm-buffer", "reconverge-drm-buffer 1 2", "reconverge-drm-buffer 1 2 x"]
        {
            assert_eq!(Stored::of_name(wrong), None);
        }
    }
}
