//! Submissions: read, checked, executed.

use std::any::Any;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

use reconverge_gpu::{Fault, Gpu, Submission};

use crate::buffers::Buffers;
use crate::ioctls::{Chunk, Errno, Submit};
use crate::messages::say_once;
use crate::node::{Node, State};
use crate::report;

/// The most chunks of a submission. There are three kinds.
const CHUNKS: u32 = 3;
/// The most words of a chunk: the kernel takes a command buffer from 1 MiB. Mesa's are up to 64 KiB.
const WORDS: u32 = 1 << 18;

/// A chunk of relocations.
const RELOCATIONS: u32 = 1;
/// A chunk of commands. (`RADEON_CHUNK_ID_IB`)
const COMMANDS: u32 = 2;
/// A chunk of flags: flags, ring, priority.
const FLAGS: u32 = 3;
/// Words of a relocation: handle, read domains, write domain, flags.
const RELOCATION: usize = 4;
/// The flag that asks for addresses of the chip's own virtual memory, which these chips do not have.
const USE_VM: u32 = 2;

/// Executes a submission. When this returns, everything that it writes is in memory.
///
/// A fault is a reset of the chip, and not an error of the request: on a chip, too, commands are executed later.
///
/// # Errors
/// `EINVAL` where it is malformed.
///
/// # Safety
/// The addresses in it are null or as long as stated beside them.
pub(crate) unsafe fn execute(node: &Node, submit: &Submit) -> Result<(), Errno> {
    // SAFETY: the caller's promise.
    let chunks = unsafe { chunks(submit) };
    let state = &mut *node.lock();
    let (commands, buffers) = chunks.and_then(|chunks| read(&state.buffers, chunks)).map_err(|why| {
        say_once(&format!("malformed submission: {why}"));
        Errno(libc::EINVAL)
    })?;
    report::submission(state);
    if let Some(why) = fault(state, &Submission { commands, buffers: &buffers }) {
        say_once(&why);
        report::reset(node.device(), state);
    }
    Ok(())
}

/// Executes what was read. Gives why it was not executed to its end, if it was not.
fn fault(state: &mut State, submission: &Submission<'_>) -> Option<String> {
    executed(state, |gpu, memory| gpu.submit(memory, submission))
}

/// Lets the chip execute something. Gives why it was not executed to its end, if it was not.
pub(crate) fn executed(
    state: &mut State,
    run: impl FnOnce(&mut dyn Gpu, &mut [u8]) -> Result<(), Fault>,
) -> Option<String> {
    let State { memory, gpu, .. } = state;
    let gpu = gpu.as_mut()?;
    match catch_unwind(AssertUnwindSafe(|| run(gpu.as_mut(), memory.bytes()))) {
        Ok(Ok(())) => None,
        Ok(Err(fault @ (Fault::Malformed(_) | Fault::Trap(_)))) => {
            Some(format!("{fault}; the chip is reset"))
        }
        Err(panic) => {
            let why = said(&*panic);
            Some(format!("a mistake of this program, please report it: {why}; the chip is reset"))
        }
    }
}

/// What a panic said.
fn said(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("a panic")
}

/// The chunks of a submission, by kind. What is absent is empty.
#[derive(Debug, Default)]
struct Chunks<'a> {
    commands: &'a [u32],
    relocations: &'a [u32],
    flags: &'a [u32],
}

/// The chunks, where they are in the memory of the program.
///
/// # Safety
/// The addresses are null or as long as stated beside them, and nothing changes what they point at meanwhile.
unsafe fn chunks<'a>(submit: &Submit) -> Result<Chunks<'a>, String> {
    if submit.chunks == 0 || submit.chunks > CHUNKS {
        return Err(format!("{} chunks; 1 to {CHUNKS} fits here", submit.chunks));
    }
    let addresses = submit.addresses as *const u64;
    if addresses.is_null() {
        return Err("the list of chunks is at address 0".to_owned());
    }
    let mut found: [Option<&[u32]>; 3] = [None; 3];
    for number in 0..submit.chunks as usize {
        // SAFETY: not null, so as many addresses as there are chunks.
        let address = unsafe { addresses.add(number).read_unaligned() } as *const Chunk;
        if address.is_null() {
            return Err(format!("chunk {number} is at address 0"));
        }
        // SAFETY: not null, so a chunk.
        let chunk = unsafe { address.read_unaligned() };
        let place = match chunk.id {
            COMMANDS => 0,
            RELOCATIONS => 1,
            FLAGS => 2,
            id => return Err(format!("chunk {number} is of kind {id}; 1 to 3 fits here")),
        };
        // SAFETY: as the caller promises.
        let words = unsafe { words(&chunk) }.map_err(|why| format!("chunk {number}: {why}"))?;
        if found[place].replace(words).is_some() {
            return Err(format!("chunk {number} is the second of kind {}", chunk.id));
        }
    }
    let [commands, relocations, flags] = found;
    Ok(Chunks {
        commands: commands.ok_or("no commands")?,
        relocations: relocations.unwrap_or_default(),
        flags: flags.unwrap_or_default(),
    })
}

/// The words of a chunk.
///
/// # Safety
/// Its address is null or as long as stated beside it, and nothing changes the words meanwhile.
unsafe fn words<'a>(chunk: &Chunk) -> Result<&'a [u32], String> {
    let address = chunk.address as *const u32;
    if chunk.words == 0 {
        return Ok(&[]);
    }
    if address.is_null() || !address.is_aligned() {
        return Err(format!("its words are at address {:#x}", chunk.address));
    }
    if chunk.words > WORDS {
        return Err(format!("{} words; up to {WORDS} fits here", chunk.words));
    }
    // SAFETY: not null and aligned; the caller promises the length.
    Ok(unsafe { std::slice::from_raw_parts(address, chunk.words as usize) })
}

/// The commands, and where the buffers of the relocations are.
fn read<'a>(buffers: &Buffers, chunks: Chunks<'a>) -> Result<(&'a [u32], Vec<Range<usize>>), String> {
    let flags = chunks.flags.first().copied().unwrap_or(0);
    if flags & USE_VM != 0 {
        return Err("virtual addresses: these chips have none".to_owned());
    }
    match chunks.flags.get(1).copied().unwrap_or(0) {
        0 => {}
        ring => {
            return Err(format!(
                "the {} ring (ring {ring}): only graphics (ring 0) is there",
                ring_name(ring)
            ));
        }
    }
    if !chunks.relocations.len().is_multiple_of(RELOCATION) {
        return Err(format!("{} words of relocations, of 4 words each", chunks.relocations.len()));
    }
    let range = |(number, relocation): (usize, &[u32])| {
        let range =
            buffers.get(relocation[0]).map(|buffer| buffer.range.start as usize..buffer.range.end as usize);
        range.map_err(|_| format!("relocation {number} names buffer {}, which does not exist", relocation[0]))
    };
    let ranges: Result<Vec<_>, _> =
        chunks.relocations.chunks_exact(RELOCATION).enumerate().map(range).collect();
    Ok((chunks.commands, ranges?))
}

/// What a ring is for.
fn ring_name(ring: u32) -> &'static str {
    match ring {
        0 => "graphics",
        1 => "compute",
        2 => "DMA",
        3 => "UVD",
        4 => "VCE",
        _ => "unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is said about a submission of these chunks: kind and words.
    fn taken(buffers: &Buffers, given: &[(u32, &[u32])]) -> Result<(Vec<u32>, Vec<Range<usize>>), String> {
        let chunk = |(id, words): &(u32, &[u32])| Chunk {
            id: *id,
            words: words.len() as u32,
            address: words.as_ptr().expose_provenance() as u64,
        };
        let list: Vec<Chunk> = given.iter().map(chunk).collect();
        let addresses: Vec<u64> =
            list.iter().map(|chunk| std::ptr::from_ref(chunk).expose_provenance() as u64).collect();
        let submit = Submit {
            chunks: list.len() as u32,
            addresses: addresses.as_ptr().expose_provenance() as u64,
            ..Submit::default()
        };
        // SAFETY: the addresses are those of slices with their lengths.
        let chunks = unsafe { chunks(&submit) }?;
        read(buffers, chunks).map(|(commands, ranges)| (commands.to_vec(), ranges))
    }

    #[test]
    fn chunks_come_in_any_order_and_relocations_become_ranges() {
        let mut buffers = Buffers::new(1 << 16..1 << 40);
        let handles = [1, 100_000].map(|size| buffers.create(size, 0, 0).unwrap());
        let relocations = [handles[1], 2, 0, 0, handles[0], 0, 4, 0, handles[1], 0, 4, 0];
        let ranges = [0x2_0000..0x4_0000, 0x1_0000..0x2_0000, 0x2_0000..0x4_0000];
        for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0]] {
            let given = [(COMMANDS, &[7, 8][..]), (RELOCATIONS, &relocations), (FLAGS, &[1, 0])];
            let taken = taken(&buffers, &order.map(|number| given[number])).unwrap();
            assert_eq!(taken, (vec![7, 8], ranges.to_vec()));
        }
        assert_eq!(taken(&buffers, &[(COMMANDS, &[])]), Ok((vec![], vec![])));
    }

    #[test]
    fn malformed_submissions_are_errors_that_name_the_place() {
        let buffers = Buffers::new(1 << 16..1 << 40);
        for (given, why) in [
            (&[][..], "0 chunks; 1 to 3"),
            (&[(COMMANDS, &[0][..]); 4], "4 chunks; 1 to 3"),
            (&[(COMMANDS, &[0]), (COMMANDS, &[0])], "chunk 1 is the second of kind 2"),
            (&[(COMMANDS, &[0]), (4, &[0])], "chunk 1 is of kind 4"),
            (&[(FLAGS, &[0])], "no commands"),
            (&[(COMMANDS, &[0]), (RELOCATIONS, &[1, 2, 3])], "3 words of relocations"),
            (&[(COMMANDS, &[0]), (RELOCATIONS, &[9, 0, 0, 0])], "relocation 0 names buffer 9"),
            (&[(COMMANDS, &[0]), (FLAGS, &[0, 2, 0])], "the DMA ring (ring 2)"),
            (&[(COMMANDS, &[0]), (FLAGS, &[0, u32::MAX, 0])], "the unknown ring (ring 4294967295)"),
            (&[(COMMANDS, &[0]), (FLAGS, &[USE_VM])], "virtual addresses"),
        ] {
            let said = taken(&buffers, given).unwrap_err();
            assert!(said.contains(why), "{said}");
        }
    }

    #[test]
    fn null_addresses_and_long_chunks_are_errors() {
        let word = [0_u32];
        let address = word.as_ptr().expose_provenance() as u64;
        for (words, address, why) in [
            (1, 0, "at address 0x0"),
            (1, address + 1, "its words are at address"),
            (WORDS + 1, address, "262145 words; up to 262144"),
        ] {
            // SAFETY: each is refused before the address is used.
            let said = unsafe { super::words(&Chunk { id: COMMANDS, words, address }) }.unwrap_err();
            assert!(said.contains(why), "{said}");
        }
        let lists = [0_u64];
        let addresses = lists.as_ptr().expose_provenance() as u64;
        for (addresses, why) in
            [(0, "the list of chunks is at address 0"), (addresses, "chunk 0 is at address 0")]
        {
            // SAFETY: null, or one null address.
            let said = unsafe { chunks(&Submit { chunks: 1, addresses, ..Submit::default() }) }.unwrap_err();
            assert!(said.contains(why), "{said}");
        }
    }
}
