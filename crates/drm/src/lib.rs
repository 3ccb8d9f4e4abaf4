//! A library to preload into an OpenGL program. The library emulates a render node of a graphics chip.
//!
//! `reconverge drm` sets `LD_PRELOAD` to this library, and sets the variables that [`device`] reads. The program and
//! its OpenGL driver send requests to `/dev/dri/renderD128`, to `/dev/dri/card0`, and to the devices of the screen. The
//! library answers these requests. `/dev/dri/renderD128` and `/dev/dri/card0` name the same node. The library replaces
//! functions of other libraries. If a call does not concern an emulated device, or if the variables are not set, the
//! library calls the replaced function.
//!
//! ```text
//! program, Mesa, libdrm
//!    |  open, fstat, ioctl, mmap, close ...      files.rs  --- not the node ---> real.rs: the C library
//!    |  drmGetDevices2 and others, read /sys     libdrm.rs --- not the node ---> real.rs: libdrm
//!    |  opendir, readdir ...                     folders.rs --- another folder ---> real.rs: the C library
//!    |  stat, access ...                         paths.rs --- not the node ---> real.rs: the C library
//!    |  udev_new and others                      udev.rs --- no chip ---> real.rs: libudev
//!    v
//! open_files.rs: the open file of a descriptor
//!    |
//!    v
//! node.rs: the node, once opened                  user.rs: checked copies from and to the program
//!    |  ioctls.rs: numbers and layouts           radeon.rs, submit.rs, nouveau.rs: what each does
//!    v
//! buffers.rs: which handle is where              memory.rs: the mappings of the chip and of the program
//!    |                                           screen.rs: the board's screen, and frames that are shown
//!    |                                           shared.rs: buffers that other processes have
//!    |
//!    v
//! reconverge_gpu::Gpu: executes submissions before the ioctl returns
//!    |
//!    v
//! watch.rs: words of programs that are changed     capture.rs: draws as launch files
//! ```
//!
//! The memory of the chip is a range of 1 TiB. Each buffer in the range is a separate file that exists only in memory.
//! Only used pages of the file take memory. `mmap` creates another mapping of the buffer's file. The kernel keeps the
//! pages of the buffer as long as this mapping exists.
//!
//! `open` returns the read end of a pipe. The program reads events from the pipe, and the inode of the pipe identifies
//! the open file. The permission bits of the pipe are a mark. By this mark, another process recognizes an open file of
//! the emulated driver. `fstat` on the pipe describes the render node. Handles belong to an open file, and end when the
//! last descriptor of the file is closed.
//!
//! Sources: the kernel's `include/uapi/drm/drm.h`, `radeon_drm.h` and `nouveau_drm.h` for the requests. libdrm's
//! `xf86drm.h` for the functions of libdrm. Recorded requests of Mesa 22.3.6.
//!
//! `input.rs` emulates the keyboard and the pointer. `terminal.rs` emulates the terminal of the screen. The descriptors
//! of the keyboard, the pointer and the terminal are sockets with marks (`sockets.rs`).
//!
//! `probe.rs` creates an OpenGL context (`gl.rs`) in a process that runs no OpenGL program. `probe.rs` also measures
//! loads (`loads.rs`).
//!
//! `lock.rs` defines the locks. `fork.rs` prepares for forks of the program, and `wiped.rs` detects a forked process.
//! `whole.rs` writes files.
//!
//! Limits: a program can import a file as a buffer only if this library has exported the file. A process has up to
//! 24,000 buffers at a time. After a fork, the parent and the child share the existing buffers. The handles of the two
//! processes are separate after the fork. Draws of a forked child are not captured. After `exec`, a descriptor of the
//! node does not work, even if the descriptor is a duplicate. glibc before 2.33 names `fstat` differently and is not
//! supported.

#![cfg(target_os = "linux")]
#![allow(
    unsafe_code,
    reason = "the crate defines and calls C functions, and shares memory with the program that loads it"
)]

mod buffers;
mod capture;
mod cl;
mod device;
pub mod files;
pub mod folders;
mod fork;
mod gl;
mod input;
mod ioctls;
mod json;
pub mod libdrm;
mod loads;
mod lock;
mod mapped;
mod memory;
mod messages;
mod node;
mod nouveau;
mod open_files;
pub mod paths;
mod probe;
mod programs;
mod radeon;
mod real;
mod report;
mod screen;
mod shared;
mod sockets;
mod submit;
mod surfaces;
mod tally;
mod terminal;
pub mod udev;
mod user;
mod watch;
mod whole;
mod wiped;
