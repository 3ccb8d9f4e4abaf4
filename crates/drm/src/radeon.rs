//! The requests of a render node of the `radeon` driver, apart from submissions.
//!
//! What a chip would rather do with hardware that is not emulated it says it does not have: no ring but graphics, no
//! hierarchical depth (HyperZ), no CMASK. Every chip has the same pipes and backends; they decide the layout of results of
//! occlusion queries alone, which the driver and the chip here read from the same numbers.

use std::ffi::c_void;

use crate::ioctls::*;
use crate::memory::Memory;
use crate::node::{Node, State};
use crate::submit;

/// Bytes of the chip's own memory, and as many of the system's that it can use.
const VRAM: u64 = 512 << 20;

/// Memory domains.
const GTT_DOMAIN: u32 = 2;
const VRAM_DOMAIN: u32 = 4;

/// Backends that count pixels of occlusion queries.
pub(crate) const BACKENDS: u32 = 4;

/// Answers a request.
///
/// # Errors
/// `EINVAL` for what is not answered, and as the kernel's for what is.
///
/// # Safety
/// The argument is null or as many bytes as the request says, and what it points at is what the kernel expects there.
pub(crate) unsafe fn answer(node: &Node, request: Request, argument: *mut c_void) -> Result<(), Errno> {
    // SAFETY: the caller's promise, for every call below.
    unsafe {
        match request.number() {
            VERSION => request.exchange(argument, |version| describe(node, version)),
            GET_CAP => request.exchange(argument, |cap: &mut GetCap| {
                cap.value = 0;
                Ok(())
            }),
            GEM_INFO => request.exchange(argument, |info| {
                *info = GemInfo { gart: VRAM, vram: VRAM, vram_visible: VRAM };
                Ok(())
            }),
            GEM_CREATE => request.exchange(argument, |create| make(&mut node.lock(), create)),
            GEM_CLOSE => request.exchange(argument, |close: &mut GemClose| {
                let State { memory, buffers, .. } = &mut *node.lock();
                buffers.close(close.handle).map(|range| Memory::discard(memory, &range))
            }),
            GEM_MMAP => request.exchange(argument, |map: &mut GemMmap| {
                map.address = node.lock().buffers.get(map.handle)?.range.start;
                Ok(())
            }),
            GEM_SET_TILING => request.exchange(argument, |tiling: &mut GemTiling| {
                let state = &mut *node.lock();
                let buffer = state.buffers.get_mut(tiling.handle)?;
                (buffer.tiling, buffer.pitch) = (tiling.flags, tiling.pitch);
                Ok(())
            }),
            GEM_GET_TILING => request.exchange(argument, |tiling: &mut GemTiling| {
                let state = node.lock();
                let buffer = state.buffers.get(tiling.handle)?;
                (tiling.flags, tiling.pitch) = (buffer.tiling, buffer.pitch);
                Ok(())
            }),
            // Submissions are executed before their request returns: no buffer is ever in use.
            GEM_WAIT_IDLE => request.exchange(argument, |wait: &mut GemBusy| {
                node.lock().buffers.get(wait.handle)?;
                Ok(())
            }),
            GEM_BUSY => request.exchange(argument, |busy: &mut GemBusy| {
                busy.domain = node.lock().buffers.get(busy.handle)?.domain;
                Ok(())
            }),
            GEM_SET_DOMAIN => request.exchange(argument, |domain: &mut GemDomain| {
                node.lock().buffers.get(domain.handle)?;
                Ok(())
            }),
            GEM_OP => request.exchange(argument, |operation| operate(&mut node.lock(), operation)),
            INFO => request.exchange(argument, |info| inform(node, info)),
            CS => request.exchange(argument, |submit| submit::execute(node, submit)),
            _ => Err(Errno(libc::EINVAL)),
        }
    }
}

/// Gives the name and the version of the driver: `radeon` 2.50, the last that drove these chips.
///
/// # Safety
/// The addresses of texts are null or have the room that is stated.
unsafe fn describe(node: &Node, version: &mut Version) -> Result<(), Errno> {
    (version.major, version.minor, version.patch) = (2, 50, 0);
    let texts = [
        (node.device().board.driver.kernel(), version.name, &mut version.name_length),
        ("20080528", version.date, &mut version.date_length),
        ("emulated Radeon", version.description, &mut version.description_length),
    ];
    for (text, address, length) in texts {
        let fits = text.len().min(usize::try_from(*length).unwrap_or(usize::MAX));
        if address != 0 {
            // SAFETY: not null, so there is room for `length` bytes.
            unsafe { std::ptr::copy_nonoverlapping(text.as_ptr(), address as *mut u8, fits) };
        }
        *length = text.len() as u64;
    }
    Ok(())
}

fn make(state: &mut State, create: &mut GemCreate) -> Result<(), Errno> {
    if create.size > VRAM {
        return Err(Errno(libc::ENOMEM));
    }
    create.handle = state.buffers.create(create.size, create.alignment, create.domain)?;
    Ok(())
}

/// Gives or sets the memory domain that a buffer was created in.
fn operate(state: &mut State, operation: &mut GemOp) -> Result<(), Errno> {
    let buffer = state.buffers.get_mut(operation.handle)?;
    match operation.operation {
        0 => operation.value = u64::from(buffer.domain),
        // The kernel keeps the three bits of its domains.
        1 => buffer.domain = operation.value as u32 & 7,
        _ => return Err(Errno(libc::EINVAL)),
    }
    Ok(())
}

/// An answer of `INFO`, as long as the kernel's.
enum Answer {
    Word(u32),
    Long(u64),
}

/// Answers a question about the chip.
///
/// # Safety
/// The address of the value is null or has room for the answer to that question.
unsafe fn inform(node: &Node, info: &mut Info) -> Result<(), Errno> {
    let answer = information(node, info.request).ok_or(Errno(libc::EINVAL))?;
    if info.value == 0 {
        return Err(Errno(libc::EFAULT));
    }
    match answer {
        // SAFETY: not null, so there is room for the answer.
        Answer::Word(word) => unsafe { (info.value as *mut u32).write_unaligned(word) },
        // SAFETY: as above.
        Answer::Long(long) => unsafe { (info.value as *mut u64).write_unaligned(long) },
    }
    Ok(())
}

/// What the node says about the chip, by the number of the question.
fn information(node: &Node, question: u32) -> Option<Answer> {
    use Answer::{Long, Word};
    Some(match question {
        0x00 => Word(u32::from(node.device().board.pci)), // DEVICE_ID
        0x01 => Word(1),                                  // NUM_GB_PIPES
        0x02 => Word(1),                                  // NUM_Z_PIPES
        0x03 | 0x05 => Word(1),                           // ACCEL_WORKING, ACCEL_WORKING2
        0x06 => Word(0),                                  // TILING_CONFIG
        0x07 | 0x08 => Word(0),                           // WANT_HYPERZ, WANT_CMASK
        0x09 => Word(27_000),                             // CLOCK_CRYSTAL_FREQ, in kHz
        0x0a => Word(BACKENDS),                           // NUM_BACKENDS
        0x0b => Word(8),                                  // NUM_TILE_PIPES
        0x0d => Word(0),                                  // BACKEND_MAP
        0x10 => Word(8),                                  // MAX_PIPES
        // TIMESTAMP. The same in every run: results do not depend on the host's clock.
        0x11 => Long(0),
        0x12 => Word(1),                                             // MAX_SE
        0x15 => Word(0),                                             // RING_WORKING: none but graphics
        0x1a => Word(750_000),                                       // MAX_SCLK, in kHz
        0x1d => Long(0),                                             // NUM_BYTES_MOVED
        0x1e => Long(node.lock().buffers.used(VRAM_DOMAIN)),         // VRAM_USAGE
        0x1f => Long(node.lock().buffers.used(GTT_DOMAIN)),          // GTT_USAGE
        0x26 => Word(node.lock().resets),                            // GPU_RESET_COUNTER
        _ => return None,
    })
}
