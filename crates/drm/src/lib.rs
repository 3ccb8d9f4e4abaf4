//! A library to preload: it shows an OpenGL program a render node of an emulated graphics chip.
//!
//! `reconverge drm` sets `LD_PRELOAD` to this library and the variables of [`device`]. The library answers requests
//! of the program and its OpenGL driver that concern `/dev/dri/renderD128` and `/dev/dri/card0`, which are the same
//! node, and the devices that belong to its screen. All other requests are passed to the function that this library
//! replaces. Without the variables, all requests are.
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
//! The memory of the chip is a range of 1 TiB. Each buffer in it is a separate file in memory, and only pages in use take
//! memory. `mmap` creates another mapping of the buffer's file, so that the kernel keeps its pages as long as the
//! mapping exists.
//!
//! `open` returns the read end of a pipe. Events are read from it, and its inode identifies the open file. The pipe
//! has a mark, by which another process recognizes it. `fstat` on it describes the render node. Handles belong to an
//! open file and end with its last descriptor.
//!
//! Sources: the kernel's `include/uapi/drm/drm.h`, `radeon_drm.h` and `nouveau_drm.h` for requests, libdrm's
//! `xf86drm.h` for its functions, and the observed requests of Mesa 22.3.6.
//!
//! `input.rs` emulates the keyboard and the pointer, and `terminal.rs` the terminal of the screen. Their descriptors
//! are marked sockets (`sockets.rs`).
//!
//! `probe.rs` creates an OpenGL context (`gl.rs`) in a process without an OpenGL program, and measures loads
//! (`loads.rs`).
//!
//! `lock.rs` defines the locks. `fork.rs` prepares for forks of the program, and `wiped.rs` detects a forked process.
//! `whole.rs` writes files.
//!
//! Limits: files of buffers are those of this library, and not of other devices. A process has up to 24,000 buffers
//! at a time. After a fork, both processes share the existing buffers, and each has its own handles from then on.
//! Draws of a child are not captured. A duplicate of a descriptor does not survive `exec`. glibc before 2.33 names
//! `fstat` differently and is not supported.

#![cfg(target_os = "linux")]
#![allow(
    unsafe_code,
    reason = "C functions are defined and called, and memory is shared with the program around"
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
