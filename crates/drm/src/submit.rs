//! Reads, checks and executes submissions of the `radeon` driver. [`executed`] also runs submissions of `nouveau`.

use std::any::Any;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

use reconverge_gpu::{Fault, Gpu, Submission};
use reconverge_simt::vram::Vram;

use crate::buffers::Buffers;
use crate::ioctls::{Chunk, Errno, Submit};
use crate::messages::say_once;
use crate::node::{Client, State};
use crate::report;
use crate::user;

/// Maximum number of chunks in a submission. There are three kinds of chunks, and each kind may occur once.
const CHUNKS: u32 = 3;
/// Maximum number of words in a chunk. The kernel allocates command buffers in a pool of 1 MiB. The command buffers of
/// Mesa have up to 64 KiB.
const WORDS: u32 = 1 << 18;

/// Kind of the chunk with relocations.
const RELOCATIONS: u32 = 1;
/// Kind of the chunk with commands. (`RADEON_CHUNK_ID_IB`)
const COMMANDS: u32 = 2;
/// Kind of the chunk with three words: flags, ring and priority.
const FLAGS: u32 = 3;
/// Number of words in a relocation: handle, read domains, write domain, flags.
const RELOCATION: usize = 4;
/// The flag that requests virtual addresses of the chip. These chips do not support virtual addresses.
const USE_VM: u32 = 2;

/// Executes a submission. All writes of the submission are in memory when this function returns.
///
/// A fault resets the chip and is not an error of the request. Real chips execute commands after the request returns,
/// so the request cannot report a fault.
///
/// # Errors
/// `EINVAL` if the submission is malformed. `EFAULT` if a part of the submission cannot be read.
pub(crate) fn execute(node: &Client<'_>, submit: &Submit) -> Result<(), Errno> {
    let chunks = chunks(submit);
    let state = &mut *node.lock();
    let read = chunks.and_then(|chunks| read(&state.buffers, chunks));
    let (commands, buffers) = read.map_err(|refused| {
        say_once(&format!("malformed submission: {}", refused.why));
        refused.errno
    })?;
    report::submission(state);
    if let Some(why) = fault(state, &Submission { commands: &commands, buffers: &buffers }) {
        say_once(&why);
        report::reset(node.device(), state);
    }
    Ok(())
}

/// Executes a submission. If the chip did not execute the submission completely, returns the reason.
fn fault(state: &mut State, submission: &Submission<'_>) -> Option<String> {
    executed(state, |gpu, memory| gpu.submit(memory, submission))
}

/// Runs a function on the chip. Returns the reason if the function did not complete.
pub(crate) fn executed(
    state: &mut State,
    run: impl FnOnce(&mut dyn Gpu, Vram<'_>) -> Result<(), Fault>,
) -> Option<String> {
    state.share();
    let State { memory, gpu, buffers, .. } = state;
    let gpu = gpu.as_mut()?;
    let result = catch_unwind(AssertUnwindSafe(|| run(gpu.as_mut(), memory.whole())));
    gpu.take_remarks().iter().for_each(|remark| say_once(remark));
    memory.end_submission(buffers.mapped());
    match result {
        Ok(Ok(())) => None,
        Ok(Err(fault @ (Fault::Malformed(_) | Fault::Trap(_)))) => {
            Some(format!("{fault}; the chip is reset"))
        }
        Err(panic) => {
            let why = said(&*panic);
            Some(format!("internal error, please report it: {why}; the chip is reset"))
        }
    }
}

/// Returns the message with which a panic occurred.
fn said(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("a panic")
}

/// The error of a submission that is rejected.
#[derive(Debug, PartialEq)]
struct Refused {
    errno: Errno,
    why: String,
}

impl From<String> for Refused {
    /// Returns the error of a malformed submission.
    fn from(why: String) -> Refused {
        Refused { errno: Errno(libc::EINVAL), why }
    }
}

/// Returns a function that creates the error for a part of a submission that cannot be read.
fn unreadable(what: &str, address: u64) -> impl FnOnce(Errno) -> Refused {
    move |errno| Refused { errno, why: format!("{what} at address {address:#x} cannot be read") }
}

/// The words of the chunks of a submission, by kind. If the submission lacks a chunk, the list of the words of this
/// chunk is empty.
#[derive(Debug, Default)]
struct Chunks {
    commands: Vec<u32>,
    relocations: Vec<u32>,
    flags: Vec<u32>,
}

/// Copies the chunks from the memory of the program.
fn chunks(submit: &Submit) -> Result<Chunks, Refused> {
    if submit.chunks == 0 || submit.chunks > CHUNKS {
        return Err(format!("{} chunks; expected 1 to {CHUNKS}", submit.chunks).into());
    }
    let addresses = user::read_list::<u64>(submit.addresses, submit.chunks as usize);
    let addresses = addresses.map_err(unreadable("the list of chunks", submit.addresses))?;
    let headers: Vec<(u64, usize)> = addresses.iter().map(|address| (*address, 1)).collect();
    let headers = user::read_lists::<Chunk>(&headers).map_err(|errno| {
        let number = addresses.iter().position(|address| user::read::<Chunk>(*address).is_err()).unwrap_or(0);
        unreadable(&format!("chunk {number}"), addresses[number])(errno)
    })?;
    let mut places = [None; 3];
    for (number, chunk) in headers.iter().enumerate() {
        let place = match chunk.id {
            COMMANDS => 0,
            RELOCATIONS => 1,
            FLAGS => 2,
            id => return Err(format!("chunk {number} is of kind {id}; expected 1 to 3").into()),
        };
        check(chunk).map_err(|why| format!("chunk {number}: {why}"))?;
        if places[place].replace(number).is_some() {
            return Err(format!("chunk {number} is the second chunk of kind {}", chunk.id).into());
        }
    }
    let lists: Vec<(u64, usize)> =
        headers.iter().map(|chunk| (chunk.address, chunk.words as usize)).collect();
    let words = user::read_lists::<u32>(&lists).map_err(|errno| {
        let unread = |list: &(u64, usize)| user::read_lists::<u32>(&[*list]).is_err();
        let number = lists.iter().position(unread).unwrap_or(0);
        unreadable(&format!("chunk {number}: words"), lists[number].0)(errno)
    })?;
    let words_of = |number: usize| {
        let start: usize = lists[..number].iter().map(|(_, count)| count).sum();
        words[start..start + lists[number].1].to_vec()
    };
    let [commands, relocations, flags] = places.map(|number| number.map(words_of));
    Ok(Chunks {
        commands: commands.ok_or_else(|| "no commands".to_owned())?,
        relocations: relocations.unwrap_or_default(),
        flags: flags.unwrap_or_default(),
    })
}

/// Checks the length of a chunk and the alignment of its words.
fn check(chunk: &Chunk) -> Result<(), String> {
    if chunk.words > WORDS {
        return Err(format!("{} words; expected up to {WORDS}", chunk.words));
    }
    if chunk.words > 0 && !chunk.address.is_multiple_of(size_of::<u32>() as u64) {
        return Err(format!("expected an address that is a multiple of 4, found {:#x}", chunk.address));
    }
    Ok(())
}

/// Checks the chunks. Returns the commands, and the ranges of the buffers to which the relocations refer.
fn read(buffers: &Buffers, chunks: Chunks) -> Result<(Vec<u32>, Vec<Range<usize>>), Refused> {
    let flags = chunks.flags.first().copied().unwrap_or(0);
    if flags & USE_VM != 0 {
        return Err("virtual addresses are not supported by these chips".to_owned().into());
    }
    match chunks.flags.get(1).copied().unwrap_or(0) {
        0 => {}
        ring => {
            return Err(format!(
                "the {} ring ({ring}) is not emulated, only the graphics ring (0)",
                ring_name(ring)
            )
            .into());
        }
    }
    if !chunks.relocations.len().is_multiple_of(RELOCATION) {
        return Err(
            format!("{} words of relocations; expected a multiple of 4", chunks.relocations.len()).into()
        );
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

/// Returns the purpose of a ring, for messages.
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

    /// Reads a submission from the chunks of the submission. Each entry contains the kind and the words of a chunk.
    fn taken(buffers: &Buffers, given: &[(u32, &[u32])]) -> Result<(Vec<u32>, Vec<Range<usize>>), Refused> {
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
        read(buffers, chunks(&submit)?)
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
            (&[][..], "0 chunks; expected 1 to 3"),
            (&[(COMMANDS, &[0][..]); 4], "4 chunks; expected 1 to 3"),
            (&[(COMMANDS, &[0]), (COMMANDS, &[0])], "chunk 1 is the second chunk of kind 2"),
            (&[(COMMANDS, &[0]), (4, &[0])], "chunk 1 is of kind 4"),
            (&[(FLAGS, &[0])], "no commands"),
            (&[(COMMANDS, &[0]), (RELOCATIONS, &[1, 2, 3])], "3 words of relocations"),
            (&[(COMMANDS, &[0]), (RELOCATIONS, &[9, 0, 0, 0])], "relocation 0 names buffer 9"),
            (&[(COMMANDS, &[0]), (FLAGS, &[0, 2, 0])], "the DMA ring (2)"),
            (&[(COMMANDS, &[0]), (FLAGS, &[0, u32::MAX, 0])], "the unknown ring (4294967295)"),
            (&[(COMMANDS, &[0]), (FLAGS, &[USE_VM])], "virtual addresses"),
        ] {
            let Refused { errno, why: said } = taken(&buffers, given).unwrap_err();
            assert!(said.contains(why) && errno == Errno(libc::EINVAL), "{said}");
        }
    }

    #[test]
    fn null_addresses_and_long_chunks_are_errors() {
        let word = [0_u32];
        let address = word.as_ptr().expose_provenance() as u64;
        let (invalid, fault) = (Errno(libc::EINVAL), Errno(libc::EFAULT));
        let refused =
            |addresses: u64| chunks(&Submit { chunks: 1, addresses, ..Submit::default() }).unwrap_err();
        for (words, address, errno, why) in [
            (1, 0, fault, "at address 0x0"),
            (1, 0x1000, fault, "chunk 0: words at address 0x1000 cannot be read"),
            (1, address + 1, invalid, "expected an address that is a multiple of 4"),
            (WORDS + 1, address, invalid, "262145 words; expected up to 262144"),
        ] {
            let chunk = Chunk { id: COMMANDS, words, address };
            let list = (&raw const chunk).expose_provenance() as u64;
            let said = refused((&raw const list).expose_provenance() as u64);
            assert!(said.why.contains(why) && said.errno == errno, "{said:?}");
        }
        let lists = [0_u64, 16];
        let addresses = |number: usize| (&raw const lists[number]).expose_provenance() as u64;
        for (addresses, why) in [
            (0, "the list of chunks at address 0x0 cannot be read"),
            (16, "the list of chunks at address 0x10 cannot be read"),
            (addresses(0), "chunk 0 at address 0x0 cannot be read"),
            (addresses(1), "chunk 0 at address 0x10 cannot be read"),
        ] {
            let said = refused(addresses);
            assert!(said.why.contains(why) && said.errno == fault, "{said:?}");
        }
    }
}
