//! `libcuda.so.1`: CUDA's driver API on an emulated Tesla chip, G80 to GT215.
//!
//! `reconverge cuda` sets `LD_LIBRARY_PATH` to a folder in which this library has the name `libcuda.so.1`. A CUDA
//! program can then load cubins for sm_10 to sm_13, launch kernels, and read the results.
//!
//! ```text
//! program, cuda.bindings, PyCUDA
//!    |  symbols, cuGetProcAddress        table.rs: one row per function    missing.rs: those that do nothing
//!    v
//! call.rs: the way in; panics end there                  lookup.rs: cuGetProcAddress
//!    |
//!    v
//! context.rs, stream.rs, event.rs, module.rs, library.rs, function.rs, memory.rs, host.rs, copy.rs, fill.rs,
//! array.rs, texture.rs, device.rs: what each function does
//!    |
//!    v
//! driver.rs: the chip, the addresses in use (addresses.rs)   handles.rs: tables of handles
//! work.rs, queue.rs: the order of streams                  image.rs, parameters.rs: cubins
//!    |
//!    v
//! launch.rs: the machine of reconverge-tesla
//! ```
//!
//! Handles are keys of tables, so that an invalid handle is an error. The memory of a context is one
//! [`Memory`](reconverge_simt::memory::Memory) with a buffer for each allocation. The memory is locked while a kernel
//! runs. Addresses are unique across contexts. A context keeps the first error of its kernels, as CUDA documents.
//!
//! The functions, numbers and structures are from cuda.h of CUDA 12.9 and 13.5 and from the documentation of CUDA. The
//! properties of the chips are from the appendices of the CUDA C Programming Guide 3.1 to 4.2.

#![cfg(target_os = "linux")]
#![allow(
    unsafe_code,
    reason = "the crate defines C functions, and accesses memory of the program that calls them"
)]
#![allow(
    clippy::missing_safety_doc,
    reason = "every function requires that its caller passes the arguments that CUDA documents"
)]

mod addresses;
mod array;
mod board;
mod call;
mod context;
mod copy;
mod device;
mod driver;
mod event;
mod fill;
mod function;
mod general;
mod handles;
mod host;
mod image;
mod launch;
mod library;
mod lookup;
mod memory;
mod messages;
mod missing;
mod module;
mod parameters;
mod queue;
mod rows;
mod start;
mod status;
mod stream;
mod table;
mod texture;
mod work;
