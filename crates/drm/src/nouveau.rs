//! Answers the requests of the `nouveau` driver to a render node.
//!
//! The address of a buffer on the chip is the offset of the buffer in the memory of all buffers. This address never
//! changes. If a driver presumes an address for a buffer, the presumed address is therefore always correct. A request
//! that submits commands returns after the execution of the commands. Therefore, no buffer is in use between requests.
//!
//! The node reports interface version 1.3.1. Since version 24.3, Mesa contains a copy of libdrm's nouveau library. This
//! copy requires interface version 1.3.1 or later. [`nvif`] creates the device and the objects of a channel. Channels
//! and notifiers have their own requests.

mod nvif;

use std::ffi::c_void;
use std::ops::Range;

use crate::ioctls::*;
use crate::messages::say_once;
use crate::node::{Client, State};
use crate::radeon::describe;
use crate::report;
use crate::submit::executed;
use crate::user;

/// Size in bytes of the chip's own memory.
const VRAM: u64 = 768 << 20;
/// Size in bytes of the system memory that the chip can use.
const GART: u64 = 1 << 30;

/// Memory domains of a buffer. (`NOUVEAU_GEM_DOMAIN_*`)
const VRAM_DOMAIN: u32 = 2;
const GART_DOMAIN: u32 = 4;

/// Flags of a relocation. `LOW` and `HIGH` select the part of the address that the relocation stores. `OR` adds a value
/// for the domain. (`NOUVEAU_GEM_RELOC_*`)
const LOW: u32 = 1;
const HIGH: u32 = 2;
const OR: u32 = 4;

/// Mask of the size in the length field of a segment. The size is in bytes. The bit above the mask requests that the
/// segment is not prefetched.
const LENGTH: u64 = 0x7f_ffff;

/// Maximum numbers of buffers, relocations and segments in a submission. (`NOUVEAU_GEM_MAX_*`)
const MOST_BUFFERS: u32 = 1024;
const MOST_RELOCATIONS: u32 = 1024;
const MOST_SEGMENTS: u32 = 512;

/// Answers a request.
///
/// # Errors
/// `EINVAL` for a request that this node does not answer. For requests that the node answers, the same errors as the
/// kernel.
pub(crate) fn answer(node: &Client<'_>, request: Request, argument: *mut c_void) -> Result<(), Errno> {
    match request.number() {
        VERSION => request
            .exchange(argument, |version| describe(node.device().board.driver, "emulated GeForce", version)),
        GEM_CLOSE => request.exchange(argument, |close: &mut GemClose| node.lock().close(close.handle)),
        NOUVEAU_GETPARAM => request.exchange(argument, |asked: &mut GetParam| {
            let unanswered = || node.lock().unanswered(format!("NOUVEAU_GETPARAM {}", asked.parameter));
            asked.value = parameter(node, asked.parameter).ok_or_else(unanswered)?;
            Ok(())
        }),
        NOUVEAU_CHANNEL_ALLOC => request.exchange(argument, |channel: &mut ChannelAlloc| {
            channel.channel = 1;
            channel.domains = VRAM_DOMAIN | GART_DOMAIN;
            channel.notifier = node.lock().create(4096, 0, GART_DOMAIN)?;
            channel.count = 0;
            Ok(())
        }),
        NOUVEAU_CHANNEL_FREE => request.exchange(argument, |_: &mut ChannelFree| Ok(())),
        // The request needs no action. Commands refer to the object by a handle, and the handle contains the class of
        // the object.
        NOUVEAU_GROBJ_ALLOC => request.exchange(argument, |_: &mut ObjectAlloc| Ok(())),
        NOUVEAU_NVIF => nvif::answer(node, request, argument),
        NOUVEAU_NOTIFIEROBJ_ALLOC => request.exchange(argument, |notifier: &mut NotifierAlloc| {
            notifier.offset = 0;
            Ok(())
        }),
        NOUVEAU_GPUOBJ_FREE => request.exchange(argument, |_: &mut ObjectFree| Ok(())),
        NOUVEAU_GEM_NEW => request.exchange(argument, |new| make(&mut node.lock(), new)),
        NOUVEAU_GEM_INFO => request.exchange(argument, |buffer: &mut NouveauBuffer| {
            *buffer = described(&node.lock(), buffer.handle)?;
            Ok(())
        }),
        NOUVEAU_GEM_CPU_PREP => request.exchange(argument, |prep: &mut CpuPrep| {
            node.lock().buffers.get(prep.handle)?;
            Ok(())
        }),
        NOUVEAU_GEM_CPU_FINI => request.exchange(argument, |fini: &mut CpuFini| {
            node.lock().buffers.get(fini.handle)?;
            Ok(())
        }),
        NOUVEAU_GEM_PUSHBUF => request.exchange(argument, |pushbuf| push(node, pushbuf)),
        _ => Err(node.lock().unanswered(request.to_string())),
    }
}

/// Returns the property of the chip that has the number `question`. (`NOUVEAU_GETPARAM_*`)
fn parameter(node: &Client<'_>, question: u64) -> Option<u64> {
    let board = node.device().board;
    Some(match question {
        3 => board.driver.vendor().into(), // PCI_VENDOR
        4 => node.device().pci.into(),     // PCI_DEVICE
        5 => 2,                            // BUS_TYPE: PCI Express
        8 => VRAM,                         // FB_SIZE
        9 => GART,                         // AGP_SIZE
        11 => board.chipset()?.into(),     // CHIPSET_ID
        // GRAPH_UNITS: masks of the processors and of the clusters that contain the processors. The size of the local
        // memory that drivers allocate depends on the numbers of processors and clusters.
        13 => 0x0300_00ff,
        // PTIMER_TIME: the value is constant, because results must not depend on the clock of the host.
        14 => 0,
        15 => 1, // HAS_BO_USAGE
        _ => return None,
    })
}

/// Creates a buffer.
fn make(state: &mut State, new: &mut NouveauNew) -> Result<(), Errno> {
    // The words are the fields of a `NouveauBuffer`, in this order: handle, domain, size, offset, map, tile mode, tile
    // flags.
    let [_, domain, low, high, _, _, _, _, tile_mode, tile_flags] = new.buffer;
    let size = u64::from(low) | u64::from(high) << 32;
    if size > VRAM {
        return Err(Errno(libc::ENOMEM));
    }
    let handle = state.create(size, new.alignment.into(), domain)?;
    let buffer = state.buffers.get_mut(handle)?;
    (buffer.tiling, buffer.pitch) = (tile_mode, tile_flags);
    let made = described(state, handle)?;
    let halves = |long: u64| [long as u32, (long >> 32) as u32];
    let ([size_low, size_high], [low, high]) = (halves(made.size), halves(made.offset));
    new.buffer = [handle, domain, size_low, size_high, low, high, low, high, tile_mode, tile_flags];
    Ok(())
}

/// Describes a buffer.
fn described(state: &State, handle: u32) -> Result<NouveauBuffer, Errno> {
    let buffer = state.buffers.get(handle)?;
    Ok(NouveauBuffer {
        handle,
        domain: buffer.domain,
        size: buffer.range.end - buffer.range.start,
        offset: buffer.range.start,
        map: buffer.range.start,
        tile_mode: buffer.tiling,
        tile_flags: buffer.pitch,
    })
}

/// Executes a submission. All writes of the submission are in memory when this function returns.
///
/// A fault is an error of the channel and not of the request. Real chips execute commands after the request returns, so
/// the request cannot report a fault.
///
/// # Errors
/// `EINVAL` if the submission is malformed. `ENOENT` for an unknown handle. `EFAULT` if a list cannot be read.
fn push(node: &Client<'_>, pushbuf: &mut Pushbuf) -> Result<(), Errno> {
    let buffers = list::<PushBuffer>(pushbuf.buffers, pushbuf.buffer_count, MOST_BUFFERS)?;
    let relocations =
        list::<PushRelocation>(pushbuf.relocations, pushbuf.relocation_count, MOST_RELOCATIONS)?;
    let segments = list::<PushSegment>(pushbuf.segments, pushbuf.segment_count, MOST_SEGMENTS)?;
    let state = &mut *node.lock();
    let range = |number: u32| -> Result<Range<usize>, Errno> {
        let buffer = buffers.get(number as usize).ok_or(Errno(libc::EINVAL))?;
        let range = &state.buffers.get(buffer.handle)?.range;
        Ok(range.start as usize..range.end as usize)
    };
    let part = |number: u32, offset: u64, length: u64| -> Result<Range<usize>, Errno> {
        let buffer = range(number)?;
        let offset = usize::try_from(offset).unwrap_or(usize::MAX);
        let start = buffer.start.checked_add(offset).ok_or(Errno(libc::EINVAL))?;
        let end = start.checked_add(length as usize).filter(|end| *end <= buffer.end);
        Ok(start..end.ok_or(Errno(libc::EINVAL))?)
    };
    let mut writes = Vec::new();
    for relocation in &relocations {
        let place = part(relocation.into, relocation.offset.into(), 4)?;
        let target = buffers.get(relocation.buffer as usize).ok_or(Errno(libc::EINVAL))?;
        let start = range(relocation.buffer)?.start as u64;
        // The driver has presumed the address `start` for the buffer, and has already stored this address in the word.
        // The presumed address is correct, so the word does not change.
        if target.presumed != 0 && target.presumed_offset == start {
            continue;
        }
        let mut word = match relocation.flags {
            flags if flags & LOW != 0 => start.wrapping_add(relocation.data.into()) as u32,
            flags if flags & HIGH != 0 => (start.wrapping_add(relocation.data.into()) >> 32) as u32,
            _ => relocation.data,
        };
        if relocation.flags & OR != 0 {
            let in_vram = state.buffers.get(target.handle)?.domain & VRAM_DOMAIN != 0;
            word |= if in_vram { relocation.if_vram } else { relocation.if_system };
        }
        writes.push((place, word));
    }
    let segments: Result<Vec<_>, _> =
        segments.iter().map(|push| part(push.buffer, push.offset, push.length & LENGTH)).collect();
    let segments = segments?;
    // A launch may use buffers that an earlier submission has bound. Therefore, the chip gets all buffers, not only the
    // buffers in the list of this submission.
    let all = state.buffers.ranges().map(|range| range.start as usize..range.end as usize);
    let all: Vec<Range<usize>> = all.collect();
    for (place, word) in writes {
        state.memory.write(place.start, &word.to_le_bytes());
        state.replaced(&place);
    }
    report::submission(state);
    if let Some(why) = executed(state, |gpu, memory| gpu.push(memory, &segments, &all)) {
        say_once(&why);
        report::reset(node.device(), state);
    }
    pushbuf.vram_available = VRAM.saturating_sub(state.buffers.used(VRAM_DOMAIN));
    pushbuf.gart_available = GART.saturating_sub(state.buffers.used(GART_DOMAIN));
    Ok(())
}

/// Copies a list from the memory of the program.
///
/// # Errors
/// `EINVAL` if the list is too long. `EFAULT` if the list cannot be read.
fn list<T: Plain>(address: u64, count: u32, most: u32) -> Result<Vec<T>, Errno> {
    if count > most { Err(Errno(libc::EINVAL)) } else { user::read_list(address, count as usize) }
}

#[cfg(test)]
mod tests {
    use reconverge_board::Board;
    use reconverge_gpu::observe::Observer;
    use reconverge_gpu::{Fault, Gpu, Submission};
    use reconverge_simt::Engine;
    use reconverge_simt::vram::Vram;

    use super::*;
    use crate::device::Device;
    use crate::node::Node;

    /// A chip that copies the words of all segments, in order, to the start of memory. If the first byte is 1, the chip
    /// traps.
    struct Storing;

    impl Gpu for Storing {
        fn submit(&mut self, _: Vram<'_>, _: &Submission<'_>) -> Result<(), Fault> {
            unreachable!("the driver has its commands read from memory")
        }

        fn push(
            &mut self,
            memory: Vram<'_>,
            segments: &[Range<usize>],
            _: &[Range<usize>],
        ) -> Result<(), Fault> {
            let bytes: Vec<u8> = segments.iter().flat_map(|segment| memory.bytes(segment.clone())).collect();
            assert!(memory.write(0, &bytes));
            match bytes.first() {
                Some(1) => Err(Fault::Trap("a test of traps".to_owned())),
                _ => Ok(()),
            }
        }

        fn use_engine(&mut self, _engine: Engine) {}

        fn observe(&mut self, _observer: Box<dyn Observer>) {}

        fn unknown(&self) -> Vec<(String, u64)> {
            Vec::new()
        }
    }

    fn node() -> Client<'static> {
        let board = Board::named("gt215").unwrap();
        let device = Box::leak(Box::new(Device { engine: Engine::Fast, ..Device::new(board) }));
        Client::new(Box::leak(Box::new(Node::new(device, Some(Box::new(Storing))).unwrap())), 1)
    }

    /// Sends a request to the node. The node stores its reply in the argument.
    fn ask<T: Plain>(node: &Client<'_>, number: u8, argument: &mut T) -> Result<(), Errno> {
        let request =
            Request((3 << 30 | size_of::<T>() << 16 | usize::from(b'd') << 8 | usize::from(number)) as _);
        answer(node, request, std::ptr::from_mut(argument).cast())
    }

    fn parameter_of(node: &Client<'_>, parameter: u64) -> Result<u64, Errno> {
        let mut asked = GetParam { parameter, value: 0 };
        ask(node, NOUVEAU_GETPARAM, &mut asked).map(|()| asked.value)
    }

    /// Creates a buffer. Returns the handle of the buffer, and the address of the buffer on the chip.
    fn created(node: &Client<'_>, size: u32) -> (u32, u64) {
        let mut new =
            NouveauNew { buffer: [0, VRAM_DOMAIN, size, 0, 0, 0, 0, 0, 0x40, 7], ..NouveauNew::default() };
        ask(node, NOUVEAU_GEM_NEW, &mut new).unwrap();
        (new.buffer[0], u64::from(new.buffer[4]) | u64::from(new.buffer[5]) << 32)
    }

    fn address<T>(list: &[T]) -> u64 {
        list.as_ptr().expose_provenance() as u64
    }

    fn pushed(
        node: &Client<'_>,
        buffers: &[PushBuffer],
        relocations: &[PushRelocation],
        segments: &[PushSegment],
    ) -> Result<(), Errno> {
        let mut pushbuf = Pushbuf {
            buffer_count: buffers.len() as u32,
            buffers: address(buffers),
            relocation_count: relocations.len() as u32,
            relocations: address(relocations),
            segment_count: segments.len() as u32,
            segments: address(segments),
            ..Pushbuf::default()
        };
        ask(node, NOUVEAU_GEM_PUSHBUF, &mut pushbuf)
    }

    fn write(node: &Client<'_>, at: u64, words: &[u32]) {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        node.lock().memory.write(at as usize, &bytes);
    }

    fn stored(node: &Client<'_>, count: usize) -> Vec<u32> {
        let state = &mut *node.lock();
        let bytes = state.memory.read(0..4 * count);
        let words = bytes.chunks_exact(4);
        words.map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]])).collect()
    }

    #[test]
    fn the_chip_is_named_by_its_number_and_what_is_not_answered_is_counted() {
        let node = node();
        assert_eq!(parameter_of(&node, 11), Ok(0xa3), "CHIPSET_ID");
        assert_eq!([3, 4].map(|asked| parameter_of(&node, asked).unwrap()), [0x10de, 0x0ca3]);
        assert_eq!(parameter_of(&node, 77), Err(Errno(libc::EINVAL)));
        assert_eq!(node.lock().unanswered.get("NOUVEAU_GETPARAM 77"), Some(&1));
    }

    /// Mesa 25.0 makes these calls to find a chip and to create the objects of the chip.
    #[test]
    fn the_device_and_objects_are_made_by_calls() {
        let node = node();
        let call = |kind: u64| [kind << 8 | 0xff << 48, 0, 0];
        let mut new = NvifNew { call: call(2), class: 0x80, ..NvifNew::default() };
        assert_eq!(ask(&node, NOUVEAU_NVIF, &mut new), Ok(()));
        let mut info = NvifDeviceInfo { call: call(4), ..NvifDeviceInfo::default() };
        ask(&node, NOUVEAU_NVIF, &mut info).unwrap();
        assert_eq!((info.chipset, info.platform, info.family, info.ram), (0xa3, 3, 6, VRAM));
        assert!(
            info.chip.starts_with(b"GT215\0") && info.name.as_flattened().starts_with(b"GeForce GT 240\0")
        );
        let mut list = NvifClasses { call: call(1), count: 16, ..NvifClasses::default() };
        ask(&node, NOUVEAU_NVIF, &mut list).unwrap();
        assert_eq!(list.count, 0);
        let mut other = NvifDeviceInfo { method: 1, ..info };
        assert_eq!(ask(&node, NOUVEAU_NVIF, &mut other), Err(Errno(libc::EINVAL)));
        let mut map = NvifCall { kind: 7, ..NvifCall::default() };
        assert_eq!(ask(&node, NOUVEAU_NVIF, &mut map), Err(Errno(libc::EINVAL)));
        let mut newer = NvifCall { version: 1, ..NvifCall::default() };
        assert_eq!(ask(&node, NOUVEAU_NVIF, &mut newer), Err(Errno(libc::ENOSYS)));
        let state = node.lock();
        assert_eq!(
            state.unanswered.keys().collect::<Vec<_>>(),
            ["NOUVEAU_NVIF: call of kind 7", "NOUVEAU_NVIF: method 1"]
        );
    }

    #[test]
    fn a_buffer_is_what_it_was_made_as() {
        let node = node();
        let (handle, at) = created(&node, 100_000);
        let mut info = NouveauBuffer { handle, ..NouveauBuffer::default() };
        ask(&node, NOUVEAU_GEM_INFO, &mut info).unwrap();
        assert_eq!((info.size, info.offset, info.map), (2 << 16, at, at));
        assert_eq!((info.domain, info.tile_mode, info.tile_flags), (VRAM_DOMAIN, 0x40, 7));
        let mut prep = CpuPrep { handle: handle + 1, flags: 0 };
        assert_eq!(ask(&node, NOUVEAU_GEM_CPU_PREP, &mut prep), Err(Errno(libc::ENOENT)));
    }

    #[test]
    fn segments_are_executed_in_order_and_words_are_relocated_before() {
        let node = node();
        let (handle, at) = created(&node, 4096);
        write(&node, at, &[5, 6, 7, 8]);
        let moved = PushBuffer { handle, presumed: 1, presumed_offset: at + 64, ..PushBuffer::default() };
        let segment = |offset, length| PushSegment { offset, length, ..PushSegment::default() };
        let low = PushRelocation { offset: 4, flags: LOW, data: 16, ..PushRelocation::default() };
        let either = PushRelocation { offset: 12, flags: OR, data: 1, if_vram: 2, if_system: 4, ..low };
        // The upper bit of a length requests that the segment is not prefetched.
        pushed(&node, &[moved], &[low, either], &[segment(8, 8), segment(0, 8 | 1 << 23)]).unwrap();
        assert_eq!(stored(&node, 4), [7, 3, 5, at as u32 + 16]);
        let kept = PushBuffer { presumed_offset: at, ..moved };
        write(&node, at, &[5, 6]);
        pushed(&node, &[kept], &[low], &[segment(0, 8)]).unwrap();
        assert_eq!(stored(&node, 2), [5, 6], "where the driver is right, nothing is relocated");
    }

    #[test]
    fn a_trap_is_counted_and_the_next_submission_is_executed() {
        let node = node();
        let (handle, at) = created(&node, 4096);
        let buffers = [PushBuffer { handle, ..PushBuffer::default() }];
        let segments = [PushSegment { length: 4, ..PushSegment::default() }];
        for (word, resets) in [(1, 1), (9, 1), (1, 2)] {
            write(&node, at, &[word]);
            pushed(&node, &buffers, &[], &segments).unwrap();
            assert_eq!((stored(&node, 1), node.lock().resets), (vec![word], resets));
        }
    }

    #[test]
    fn lists_that_cannot_be_are_errors() {
        let node = node();
        let (handle, _) = created(&node, 4096);
        let buffers = [PushBuffer { handle, ..PushBuffer::default() }];
        let segment = |buffer, offset, length| [PushSegment { buffer, padding: 0, offset, length }];
        let invalid = Err(Errno(libc::EINVAL));
        for [segment] in [segment(1, 0, 4), segment(0, 1 << 16, 4), segment(0, u64::MAX, 4)] {
            assert_eq!(pushed(&node, &buffers, &[], &[segment]), invalid, "{segment:?}");
        }
        let unknown = [PushBuffer { handle: 77, ..PushBuffer::default() }];
        assert_eq!(pushed(&node, &unknown, &[], &segment(0, 0, 4)), Err(Errno(libc::ENOENT)));
        let mut pushbuf = Pushbuf { segment_count: 1, ..Pushbuf::default() };
        assert_eq!(ask(&node, NOUVEAU_GEM_PUSHBUF, &mut pushbuf), Err(Errno(libc::EFAULT)));
        let mut pushbuf = Pushbuf { segment_count: MOST_SEGMENTS + 1, segments: 8, ..Pushbuf::default() };
        assert_eq!(ask(&node, NOUVEAU_GEM_PUSHBUF, &mut pushbuf), invalid);
        assert_eq!(node.lock().submissions, 0);
    }
}
