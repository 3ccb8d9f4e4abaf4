//! The functions that the WebAssembly module exports. The module does not import any functions.
//!
//! A caller allocates a block for the request, fills the block, and calls `answer`. `answer` takes ownership of this
//! block, and returns the reply in another block. The first four bytes of the reply's block are the number of bytes
//! that follow. The caller reads the reply and releases its block.
//!
//! ```text
//! allocate(length) -> block          memory for a request
//! answer(block, length) -> reply     u32 little-endian: bytes of the reply; then the reply
//! panicked() -> reply                the message of a panic, after which only this function may be called
//! release(reply)
//! ```

// The page calls these functions from outside the WebAssembly module. The comment on each function states the duties of
// the caller.
#![allow(unsafe_code)]

use std::sync::{Mutex, Once, PoisonError};

use reconverge_isa::limits::{EXPANSION, FILE, LANES, MEMORY};

/// Limits in a browser. The limits are low for two reasons: a WebAssembly module can use at most 4 GiB of memory, and a
/// person waits for the reply.
const LIMITS: [(&reconverge_isa::limits::Limit, u64); 4] =
    [(&LANES, 1 << 22), (&MEMORY, 1 << 28), (&FILE, 1 << 24), (&EXPANSION, 1 << 22)];

/// Message of the last panic.
static PANIC: Mutex<String> = Mutex::new(String::new());

/// Before the first request, sets the limits and installs a hook. If a request panics, the hook stores the panic's
/// message.
fn prepare() {
    static PREPARED: Once = Once::new();
    PREPARED.call_once(|| {
        for (limit, value) in LIMITS {
            // Each limit accepts its value, so `set` does not fail.
            let _ = limit.set(value);
        }
        std::panic::set_hook(Box::new(|panic| {
            *PANIC.lock().unwrap_or_else(PoisonError::into_inner) = panic.to_string();
        }));
    });
}

/// Returns a block with the number of bytes, followed by the bytes.
fn block(bytes: &[u8]) -> *mut u8 {
    let length = (bytes.len() as u32).to_le_bytes();
    Box::into_raw([&length, bytes].concat().into_boxed_slice()).cast()
}

/// Returns a block for a request of `length` bytes.
#[unsafe(no_mangle)]
pub extern "C" fn allocate(length: usize) -> *mut u8 {
    Box::into_raw(vec![0_u8; length].into_boxed_slice()).cast()
}

/// Answers a request. Returns a block with the length of the reply, followed by the reply.
///
/// # Safety
/// `request` is a block of `length` bytes from [`allocate`]. The caller must not use the block after this call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn answer(request: *mut u8, length: usize) -> *mut u8 {
    prepare();
    // SAFETY: the caller passes a block from `allocate` and the block's length. The caller passes each block only once.
    let request = unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(request, length)) };
    block(&crate::answer(&request))
}

/// Returns the message of the panic that ended a request. If no request panicked, the message is empty.
#[unsafe(no_mangle)]
pub extern "C" fn panicked() -> *mut u8 {
    block(PANIC.lock().unwrap_or_else(PoisonError::into_inner).as_bytes())
}

/// Releases a reply.
///
/// # Safety
/// `reply` comes from [`answer`]. The caller must not use `reply` after this call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn release(reply: *mut u8) {
    // SAFETY: the caller passes a reply of `answer`. The reply starts with the number of bytes that come after this
    // number.
    unsafe {
        let length = u32::from_le_bytes(reply.cast::<[u8; 4]>().read()) as usize + 4;
        drop(Box::from_raw(std::ptr::slice_from_raw_parts_mut(reply, length)));
    }
}
