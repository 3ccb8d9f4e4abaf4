//! The functions of the WebAssembly module. It imports nothing.
//!
//! A caller allocates a block for the request, fills it, and calls `answer`, which takes the block. The reply is a block whose
//! first four bytes are the number of bytes after them; the caller reads it and releases it.
//!
//! ```text
//! allocate(length) -> block          memory for a request
//! answer(block, length) -> reply     u32 little-endian: bytes of the reply; then the reply
//! panicked() -> reply                the message of a panic, after which only this function may be called
//! release(reply)
//! ```

// The functions are called from outside: each says what it requires.
#![allow(unsafe_code)]

use std::sync::{Mutex, Once, PoisonError};

use reconverge_isa::limits::{EXPANSION, FILE, LANES, MEMORY};

/// Limits in a browser: a page has at most 4 GiB, and a person waits for it.
const LIMITS: [(&reconverge_isa::limits::Limit, u64); 4] =
    [(&LANES, 1 << 22), (&MEMORY, 1 << 28), (&FILE, 1 << 24), (&EXPANSION, 1 << 22)];

/// The message of a panic.
static PANIC: Mutex<String> = Mutex::new(String::new());

/// Before the first request: sets the limits, and keeps the message of a panic.
fn prepare() {
    static PREPARED: Once = Once::new();
    PREPARED.call_once(|| {
        for (limit, value) in LIMITS {
            // Each value is one that the limit can have.
            let _ = limit.set(value);
        }
        std::panic::set_hook(Box::new(|panic| {
            *PANIC.lock().unwrap_or_else(PoisonError::into_inner) = panic.to_string();
        }));
    });
}

/// A block with the number of bytes and the bytes.
fn block(bytes: &[u8]) -> *mut u8 {
    let length = (bytes.len() as u32).to_le_bytes();
    Box::into_raw([&length, bytes].concat().into_boxed_slice()).cast()
}

/// Returns a block of bytes for a request.
#[unsafe(no_mangle)]
pub extern "C" fn allocate(length: usize) -> *mut u8 {
    Box::into_raw(vec![0_u8; length].into_boxed_slice()).cast()
}

/// Answers a request. Returns the reply after its length.
///
/// # Safety
/// `request` is a block of `length` bytes from [`allocate`]. It is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn answer(request: *mut u8, length: usize) -> *mut u8 {
    prepare();
    // SAFETY: the caller passes a block of `allocate` with its length, once.
    let request = unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(request, length)) };
    block(&crate::answer(&request))
}

/// Returns the message of the panic that ended a request; empty if none did.
#[unsafe(no_mangle)]
pub extern "C" fn panicked() -> *mut u8 {
    block(PANIC.lock().unwrap_or_else(PoisonError::into_inner).as_bytes())
}

/// Releases a reply.
///
/// # Safety
/// `reply` comes from [`answer`]. It is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn release(reply: *mut u8) {
    // SAFETY: the caller passes a reply of `answer`, which begins with the number of the bytes after it.
    unsafe {
        let length = u32::from_le_bytes(reply.cast::<[u8; 4]>().read()) as usize + 4;
        drop(Box::from_raw(std::ptr::slice_from_raw_parts_mut(reply, length)));
    }
}
