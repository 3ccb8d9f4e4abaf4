//! Answers the requests of the `radeon` driver to a render node, except for submissions.
//!
//! The node reports that hardware is absent if the hardware is not emulated. The node emulates neither hierarchical
//! depth (HyperZ) nor CMASK, and no ring except the graphics ring. The node reports the same numbers of pipes and
//! backends for every chip. A driver derives two layouts from these numbers. The first layout is the layout of tiled
//! surfaces. Programs do not see this layout. The second layout is the layout of the results of an occlusion query. An
//! occlusion query has one result per backend ([`BACKENDS`]).

use std::ffi::c_void;

use reconverge_board::Driver;

use crate::device;
use crate::ioctls::*;
use crate::node::{Client, State};
use crate::submit;
use crate::user;

/// Size in bytes of the chip's own memory. The chip can use the same amount of system memory.
const VRAM: u64 = 512 << 20;

/// Memory domains of a buffer.
const GTT_DOMAIN: u32 = 2;
const VRAM_DOMAIN: u32 = 4;

/// Number of backends. Each backend counts pixels for occlusion queries.
pub(crate) const BACKENDS: u32 = 4;

/// Answers a request.
///
/// # Errors
/// `EINVAL` for a request that this node does not answer. For requests that the node answers, the same errors as the
/// kernel.
pub(crate) fn answer(node: &Client<'_>, request: Request, argument: *mut c_void) -> Result<(), Errno> {
    match request.number() {
        // In the kernel, version 2.50 is the last version of the driver for these chips.
        VERSION => request
            .exchange(argument, |version| describe(node.device().board.driver, "emulated Radeon", version)),
        GEM_INFO => request.exchange(argument, |info| {
            *info = GemInfo { gart: VRAM, vram: VRAM, vram_visible: VRAM };
            Ok(())
        }),
        GEM_CREATE => request.exchange(argument, |create| make(&mut node.lock(), create)),
        GEM_CLOSE => request.exchange(argument, |close: &mut GemClose| node.lock().close(close.handle)),
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
        // The request of a submission returns after the execution of the submission. Therefore, this request need not
        // wait.
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
        _ => Err(node.lock().unanswered(request.to_string())),
    }
}

/// Returns the name and the version of a driver.
///
/// # Errors
/// `EFAULT` if a string cannot be written.
pub(crate) fn describe(driver: Driver, description: &str, version: &mut Version) -> Result<(), Errno> {
    [version.major, version.minor, version.patch] = device::kernel_version(driver);
    let texts = [
        (driver.kernel(), version.name, &mut version.name_length),
        ("20080528", version.date, &mut version.date_length),
        (description, version.description, &mut version.description_length),
    ];
    for (text, address, length) in texts {
        let fits = text.len().min(usize::try_from(*length).unwrap_or(usize::MAX));
        if address != 0 {
            user::write_list(address, &text.as_bytes()[..fits])?;
        }
        *length = text.len() as u64;
    }
    Ok(())
}

fn make(state: &mut State, create: &mut GemCreate) -> Result<(), Errno> {
    if create.size > VRAM {
        return Err(Errno(libc::ENOMEM));
    }
    create.handle = state.create(create.size, create.alignment, create.domain)?;
    Ok(())
}

/// Reads or sets the memory domain in which a buffer was created.
fn operate(state: &mut State, operation: &mut GemOp) -> Result<(), Errno> {
    let buffer = state.buffers.get_mut(operation.handle)?;
    match operation.operation {
        0 => operation.value = u64::from(buffer.domain),
        // Like the kernel, this code stores only the three bits that select memory domains.
        1 => buffer.domain = operation.value as u32 & 7,
        _ => return Err(Errno(libc::EINVAL)),
    }
    Ok(())
}

/// A result of `INFO`. The kernel returns a result of the same size.
enum Answer {
    Word(u32),
    Long(u64),
}

/// Answers a request for a property of the chip.
fn inform(node: &Client<'_>, info: &mut Info) -> Result<(), Errno> {
    let unanswered = || node.lock().unanswered(format!("RADEON_INFO {:#04x}", info.request));
    let answer = information(node, info.request).ok_or_else(unanswered)?;
    match answer {
        Answer::Word(word) => user::write(info.value, &word),
        Answer::Long(long) => user::write(info.value, &long),
    }
}

/// Returns the property of the chip that has the number `question`.
fn information(node: &Client<'_>, question: u32) -> Option<Answer> {
    use Answer::{Long, Word};
    Some(match question {
        0x00 => Word(u32::from(node.device().pci)), // DEVICE_ID
        0x01 => Word(1),                            // NUM_GB_PIPES
        0x02 => Word(1),                            // NUM_Z_PIPES
        0x03 | 0x05 => Word(1),                     // ACCEL_WORKING, ACCEL_WORKING2
        0x06 => Word(0),                            // TILING_CONFIG
        0x07 | 0x08 => Word(0),                     // WANT_HYPERZ, WANT_CMASK
        0x09 => Word(27_000),                       // CLOCK_CRYSTAL_FREQ, in kHz
        0x0a => Word(BACKENDS),                     // NUM_BACKENDS
        0x0b => Word(8),                            // NUM_TILE_PIPES
        0x0d => Word(0),                            // BACKEND_MAP
        0x10 => Word(8),                            // MAX_PIPES
        // TIMESTAMP: the value is constant, because results must not depend on the clock of the host.
        0x11 => Long(0),
        0x12 => Word(1),                                     // MAX_SE
        0x15 => Word(0),                                     // RING_WORKING: only the graphics ring works
        0x1a => Word(750_000),                               // MAX_SCLK, in kHz
        0x1d => Long(0),                                     // NUM_BYTES_MOVED
        0x1e => Long(node.lock().buffers.used(VRAM_DOMAIN)), // VRAM_USAGE
        0x1f => Long(node.lock().buffers.used(GTT_DOMAIN)),  // GTT_USAGE
        0x26 => Word(node.lock().resets),                    // GPU_RESET_COUNTER
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use reconverge_board::Board;
    use reconverge_gpu::observe::Observer;
    use reconverge_gpu::{Fault, Gpu, Submission};
    use reconverge_simt::Engine;
    use reconverge_simt::vram::Vram;

    use super::*;
    use crate::device::Device;
    use crate::node::Node;

    /// A chip whose first command selects the operation. The command 0 stores the second command at the start of the
    /// first buffer. The command 1 traps. All further commands panic.
    struct Storing;

    impl Gpu for Storing {
        fn submit(&mut self, memory: Vram<'_>, submission: &Submission<'_>) -> Result<(), Fault> {
            let Range { start, .. } = submission.buffers[0].clone();
            match submission.commands {
                [0, value] => assert!(memory.write(start, &value.to_le_bytes())),
                [1, ..] => return Err(Fault::Trap("a test of traps".to_owned())),
                _ => panic!("a test of panics"),
            }
            Ok(())
        }

        fn use_engine(&mut self, _engine: Engine) {}

        fn observe(&mut self, _observer: Box<dyn Observer>) {}

        fn unknown(&self) -> Vec<(String, u64)> {
            Vec::new()
        }
    }

    fn node() -> Client<'static> {
        let board = Board::named("rv730").unwrap();
        let device = Box::leak(Box::new(Device { engine: Engine::Fast, ..Device::new(board) }));
        Client::new(Box::leak(Box::new(Node::new(device, Some(Box::new(Storing))).unwrap())), 1)
    }

    /// Sends a request to the node. The node stores its reply in the argument.
    fn ask<T: Plain>(node: &Client<'_>, number: u8, argument: &mut T) -> Result<(), Errno> {
        let request =
            Request((3 << 30 | size_of::<T>() << 16 | usize::from(b'd') << 8 | usize::from(number)) as _);
        answer(node, request, std::ptr::from_mut(argument).cast())
    }

    fn created(node: &Client<'_>, size: u64) -> u32 {
        let mut create = GemCreate { size, domain: VRAM_DOMAIN, ..GemCreate::default() };
        ask(node, GEM_CREATE, &mut create).unwrap();
        create.handle
    }

    /// Submits commands with one relocation.
    fn submitted(node: &Client<'_>, commands: &[u32], handle: u32) -> Result<(), Errno> {
        let relocation = [handle, 0, VRAM_DOMAIN, 0];
        let chunk =
            |id, words: &[u32]| Chunk { id, words: words.len() as u32, address: address(words.as_ptr()) };
        let chunks = [chunk(2, commands), chunk(1, &relocation), chunk(3, &[0, 0])];
        let addresses = [0, 1, 2].map(|number: usize| address(&raw const chunks[number]));
        ask(node, CS, &mut Submit { chunks: 3, addresses: address(addresses.as_ptr()), ..Submit::default() })
    }

    fn address<T>(pointer: *const T) -> u64 {
        pointer.expose_provenance() as u64
    }

    /// Requests a property of the chip from the node, and returns the value of the property.
    fn informed(node: &Client<'_>, request: u32) -> Result<u64, Errno> {
        let mut value = 0_u64;
        ask(node, INFO, &mut Info { request, padding: 0, value: address(&raw mut value) }).map(|()| value)
    }

    fn first_word(node: &Client<'_>, handle: u32) -> u32 {
        let state = &mut *node.lock();
        let start = state.buffers.get(handle).unwrap().range.start as usize;
        u32::from_le_bytes(state.memory.read(start..start + 4).try_into().unwrap())
    }

    #[test]
    fn a_submission_is_executed_before_its_request_returns() {
        let node = node();
        let handles = [created(&node, 4), created(&node, 4)];
        submitted(&node, &[0, 0xabcd], handles[1]).unwrap();
        assert_eq!(handles.map(|handle| first_word(&node, handle)), [0, 0xabcd]);
        assert_eq!(node.lock().submissions, 1);
    }

    #[test]
    fn traps_and_panics_reset_the_chip_and_the_next_submission_is_executed() {
        let node = node();
        let handle = created(&node, 4);
        for (command, resets) in [(1, 1), (2, 2), (1, 3)] {
            submitted(&node, &[command], handle).unwrap();
            assert_eq!(informed(&node, 0x26), Ok(resets), "GPU_RESET_COUNTER");
        }
        submitted(&node, &[0, 5], handle).unwrap();
        assert_eq!((first_word(&node, handle), node.lock().submissions), (5, 4));
    }

    #[test]
    fn a_malformed_submission_is_an_error_and_no_reset() {
        let node = node();
        assert_eq!(submitted(&node, &[0, 5], 77), Err(Errno(libc::EINVAL)));
        assert_eq!((informed(&node, 0x26), node.lock().submissions), (Ok(0), 0));
    }

    /// The test creates and closes a buffer thousands of times. Only the memory of one buffer is in use at any time.
    #[test]
    fn a_buffer_in_the_place_of_a_closed_one_reads_as_zero() {
        let node = node();
        let mut places = Vec::new();
        for value in 1..=2_000 {
            let handle = created(&node, 1 << 20);
            assert_eq!(first_word(&node, handle), 0);
            submitted(&node, &[0, value], handle).unwrap();
            let mut map = GemMmap { handle, ..GemMmap::default() };
            ask(&node, GEM_MMAP, &mut map).unwrap();
            places.push(map.address);
            ask(&node, GEM_CLOSE, &mut GemClose { handle, padding: 0 }).unwrap();
        }
        places.dedup();
        assert_eq!(places.len(), 1);
    }

    #[test]
    fn what_a_buffer_was_given_is_read_back() {
        let node = node();
        let handle = created(&node, 100_000);
        ask(&node, GEM_SET_TILING, &mut GemTiling { handle, flags: 3, pitch: 512 }).unwrap();
        let mut tiling = GemTiling { handle, ..GemTiling::default() };
        ask(&node, GEM_GET_TILING, &mut tiling).unwrap();
        assert_eq!((tiling.flags, tiling.pitch), (3, 512));
        let mut busy = GemBusy { handle, domain: 0 };
        ask(&node, GEM_BUSY, &mut busy).unwrap();
        let mut operation = GemOp { handle, operation: 0, value: 0 };
        ask(&node, GEM_OP, &mut operation).unwrap();
        assert_eq!((busy.domain, operation.value), (VRAM_DOMAIN, u64::from(VRAM_DOMAIN)));
        assert_eq!(informed(&node, 0x1e), Ok(2 << 16), "VRAM_USAGE");
    }

    #[test]
    fn unknown_handles_are_errors_of_every_request() {
        let node = node();
        let (unknown, invalid) = (Err(Errno(libc::ENOENT)), Err(Errno(libc::EINVAL)));
        for handle in [0, 1, u32::MAX] {
            assert_eq!(ask(&node, GEM_CLOSE, &mut GemClose { handle, padding: 0 }), invalid);
            assert_eq!(ask(&node, GEM_MMAP, &mut GemMmap { handle, ..GemMmap::default() }), unknown);
            assert_eq!(ask(&node, GEM_OP, &mut GemOp { handle, operation: 0, value: 0 }), unknown);
            for number in [GEM_SET_TILING, GEM_GET_TILING, GEM_SET_DOMAIN] {
                assert_eq!(ask(&node, number, &mut GemTiling { handle, flags: 0, pitch: 0 }), unknown);
            }
            for number in [GEM_WAIT_IDLE, GEM_BUSY] {
                assert_eq!(ask(&node, number, &mut GemBusy { handle, domain: 0 }), unknown);
            }
        }
    }

    #[test]
    fn sizes_that_cannot_be_are_errors() {
        let node = node();
        for (size, error) in [(0, libc::EINVAL), (VRAM + 1, libc::ENOMEM), (u64::MAX, libc::ENOMEM)] {
            let mut create = GemCreate { size, ..GemCreate::default() };
            assert_eq!(ask(&node, GEM_CREATE, &mut create), Err(Errno(error)), "{size}");
        }
    }

    #[test]
    fn the_driver_and_the_chip_are_named() {
        let node = node();
        let mut name = [b'.'; 8];
        let mut version = Version {
            name_length: 3,
            name: address(name.as_mut_ptr()),
            date_length: 9,
            ..Version::default()
        };
        ask(&node, VERSION, &mut version).unwrap();
        assert_eq!((&name, version.name_length, version.date_length), (b"rad.....", 6, 8));
        assert_eq!((version.major, version.minor), (2, 50));
        assert_eq!([0x00, 0x0a, 0x15].map(|question| informed(&node, question)), [Ok(0x9490), Ok(4), Ok(0)]);
    }

    #[test]
    fn what_has_no_answer_is_counted_by_name() {
        let node = node();
        assert_eq!(informed(&node, 0x16), Err(Errno(libc::EINVAL)));
        assert_eq!(ask(&node, 0x2f, &mut GemBusy::default()), Err(Errno(libc::EINVAL)));
        let counted: Vec<(String, u64)> = node.lock().unanswered.clone().into_iter().collect();
        assert_eq!(counted, [("RADEON_INFO 0x16".to_owned(), 1), ("ioctl 0x2f".to_owned(), 1)]);
        assert_eq!(
            ask(&node, INFO, &mut Info { request: 0, padding: 0, value: 0 }),
            Err(Errno(libc::EFAULT))
        );
    }
}
