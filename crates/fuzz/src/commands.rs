//! Targets for command streams of the chips. Any words must be executed, reported as unknown, or rejected.
//!
//! An input has four parts: a head, a word with the number of command words, the command words, and the contents of
//! memory. The head selects the board. The contents of memory are blocks. Each block has a byte address, a number of
//! words, and the words.

use std::io::Read;
use std::ops::Range;

use reconverge_board::{BOARDS, Board, Driver};
use reconverge_gpu::Submission;
use reconverge_isa::Isa;
use reconverge_simt::random::Random;
use reconverge_simt::vram::Vram;

use crate::Target;
use crate::input::{chosen, head, input, words};

/// The targets: one target per decoder of commands.
pub const TARGETS: &[Target] = &[
    Target {
        name: "commands-r300",
        isa: Some(Isa::R500),
        about: "any commands of an R500 chip are executed, reported as unknown or rejected",
        counts: "submissions",
        make: |random| make(random, Driver::R300),
        seeds: || seeds(include_bytes!("../seeds/r300.gz")),
        check: |bytes| check(bytes, Driver::R300),
    },
    Target {
        name: "commands-r600",
        isa: Some(Isa::R700),
        about: "any commands of an R600 or R700 are executed, reported as unknown or rejected",
        counts: "submissions",
        make: |random| make(random, Driver::R600),
        seeds: || seeds(include_bytes!("../seeds/r600.gz")),
        check: |bytes| check(bytes, Driver::R600),
    },
    Target {
        name: "commands-nv50",
        isa: Some(Isa::Tesla),
        about: "any methods of a Tesla chip are executed, reported as unknown or rejected",
        counts: "submissions",
        make: |random| make(random, Driver::Nv50),
        seeds: || seeds(include_bytes!("../seeds/nv50.gz")),
        check: |bytes| check(bytes, Driver::Nv50),
    },
];

/// The address ranges of the buffers of a relocation list. The streams in the tests of `crates/gpu` use the same
/// addresses.
const R300_BUFFERS: [Range<usize>; 4] =
    [0x1_0000..0x5_0000, 0x5_0000..0x9_0000, 0x9_0000..0xa_0000, 0xa_0000..0xb_0000];
const R600_BUFFERS: [Range<usize>; 5] =
    [0x1_0000..0x5_0000, 0x5_0000..0x6_0000, 0x6_0000..0x7_0000, 0x7_0000..0x8_0000, 0x8_0000..0x9_0000];
/// Byte address of the words of a Tesla chip's commands.
const PUSH: usize = 0x21_0000;

/// Returns the number of bytes of memory.
const fn memory(driver: Driver) -> usize {
    match driver {
        Driver::R300 => 0xb_0000,
        Driver::R600 => 0x9_0000,
        Driver::Nv50 => 0x22_0000,
    }
}

/// Returns the streams of a file. For each stream, the file contains a length in bytes, followed by the bytes of the
/// stream.
fn seeds(packed: &[u8]) -> Vec<Vec<u8>> {
    let mut bytes = Vec::new();
    // The code ignores errors, because the files are in the repository and a test reads the whole files.
    let _ = flate2::read::GzDecoder::new(packed).read_to_end(&mut bytes);
    let mut rest = &bytes[..];
    let mut seeds = Vec::new();
    while let Some((length, behind)) = rest.split_first_chunk() {
        let length = u32::from_le_bytes(*length) as usize;
        let (seed, behind) = behind.split_at(length.min(behind.len()));
        seeds.push(seed.to_vec());
        rest = behind;
    }
    seeds
}

/// Returns packets for random registers and methods, with random payloads.
fn make(random: &mut Random, driver: Driver) -> Vec<u8> {
    let mut commands = Vec::new();
    for _ in 0..1 + random.below(12) {
        let count = 1 + random.below(6);
        commands.push(match driver {
            _ if random.once_in(16) => random.next(),
            // If this guard is true, the packet is of type 0. Otherwise, the next arm makes a packet of type 3.
            Driver::R300 | Driver::R600 if random.once_in(3) => (count - 1) << 16 | random.below(0x2000),
            Driver::R300 | Driver::R600 => 3 << 30 | (count - 1) << 16 | random.below(0x80) << 8,
            Driver::Nv50 => {
                random.below(2) << 30 | count << 18 | random.below(8) << 13 | random.below(0x800) << 2
            }
        });
        commands.extend((0..count).map(|_| match random.below(3) {
            0 => random.next(),
            1 => random.below(16),
            _ => 1 << random.below(32),
        }));
    }
    let head = [random.next() as u8, 0, 0, 0];
    input(head, &[&[commands.len() as u32], &commands[..]].concat())
}

/// Returns a copy of the commands in which large values are reduced. A command with a large value takes long, but this
/// is not a bug. With the reduced values, an R600 draws at most a few instances and vertices. The scissor of an R500
/// chip is at most 1024 by 1024 pixels. If a draw has no buffers, only the scissor limits the size of a primitive.
fn bounded(commands: &[u32], driver: Driver) -> Vec<u32> {
    const DRAW_INDEX: u32 = 0x2b;
    const DRAW_INDEX_AUTO: u32 = 0x2d;
    const NUM_INSTANCES: u32 = 0x2f;
    const SC_SCISSORS_BR: usize = 0x43e4;
    const CORNER: u32 = 0x3ff << 13 | 0x3ff;
    let mut commands = commands.to_vec();
    let mut at = 0;
    while let Some(header) = commands.get(at).copied() {
        let payload = (header >> 16 & 0x3fff) as usize + 1;
        let (first, one) = ((header & 0x1fff) as usize * 4, header >> 15 & 1 != 0);
        let bound = match (driver, header >> 30, header >> 8 & 0xff) {
            // If the packet writes all words to one register, only the last word has an effect.
            (Driver::R300, 0, _) if one && first == SC_SCISSORS_BR => Some((at + payload, CORNER)),
            (Driver::R300, 0, _) if !one && (first..first + 4 * payload).contains(&SC_SCISSORS_BR) => {
                Some((at + 1 + (SC_SCISSORS_BR - first) / 4, CORNER))
            }
            (Driver::R600, 3, NUM_INSTANCES) => Some((at + 1, 7)),
            (Driver::R600, 3, DRAW_INDEX_AUTO) => Some((at + 1, 0x3ff)),
            (Driver::R600, 3, DRAW_INDEX) => Some((at + 3, 0x3ff)),
            _ => None,
        };
        if let Some((place, most)) = bound
            && let Some(word) = commands.get_mut(place)
        {
            *word &= most;
        }
        // Packets of type 2 have no payload.
        at += if header >> 30 == 2 { 1 } else { 1 + payload };
    }
    commands
}

fn check(bytes: &[u8], driver: Driver) -> Result<u64, String> {
    let [board, ..] = head(bytes);
    let boards: Vec<&Board> = BOARDS.iter().filter(|board| board.driver == driver).collect();
    let board = chosen(board, &boards);
    let words = words(bytes);
    let (count, rest) = words.split_first().unwrap_or((&0, &[]));
    let (commands, mut rest) = rest.split_at((*count as usize).min(rest.len()));
    let mut memory = vec![0; memory(driver)];
    let mut put = |at: usize, words: &[u32]| {
        let bytes = words.iter().flat_map(|word| word.to_le_bytes());
        memory.iter_mut().skip(at).zip(bytes).for_each(|(byte, new)| *byte = new);
    };
    while let [at, count, behind @ ..] = rest {
        let (words, behind) = behind.split_at((*count as usize).min(behind.len()));
        put(*at as usize, words);
        rest = behind;
    }
    let mut gpu = reconverge_gpu::device::chip(board).ok_or_else(|| format!("{} has no chip", board.name))?;
    let result = match driver {
        Driver::R300 => gpu.submit(
            Vram::new(&mut memory),
            &Submission { commands: &bounded(commands, driver), buffers: &R300_BUFFERS },
        ),
        Driver::R600 => gpu.submit(
            Vram::new(&mut memory),
            &Submission { commands: &bounded(commands, driver), buffers: &R600_BUFFERS },
        ),
        Driver::Nv50 => {
            put(PUSH, commands);
            let end = (PUSH + 4 * commands.len()).min(memory.len());
            let (segment, all) = (PUSH..end, 0..memory.len());
            gpu.push(Vram::new(&mut memory), std::slice::from_ref(&segment), std::slice::from_ref(&all))
        }
    };
    match result {
        Err(error) if error.to_string().is_empty() => Err(format!("an error without a message: {error:?}")),
        _ if gpu.unknown().iter().any(|(name, _)| name.is_empty()) => {
            Err("something unknown has no name".to_owned())
        }
        _ => Ok(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each seed input draws on the board that the head of the input selects. The commands of the input are all
    /// supported.
    #[test]
    fn every_seed_is_a_whole_stream() {
        for target in TARGETS {
            let seeds = (target.seeds)();
            assert!(!seeds.is_empty(), "{}", target.name);
            for seed in seeds {
                let words = words(&seed);
                assert!(words[0] > 20 && words.len() > words[0] as usize, "{}", target.name);
                assert_eq!((target.check)(&seed), Ok(1));
            }
        }
    }
}
