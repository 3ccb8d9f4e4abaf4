//! Counts bank conflicts in shared memory. The machine's manual defines the rule.
//!
//! Source for Tesla: CUDA C Programming Guide, appendix "Compute Capabilities", shared memory of compute capability
//! 1.x. Shared memory has 16 banks, and successive 32-bit words are in successive banks. The access of one half-warp is
//! a *request*. The memory serves a request in *passes*. In one pass of a read, the memory broadcasts one word to all
//! lanes that read this word. In the same pass, each of the 15 other banks serves one address. In one pass of a write,
//! each bank serves one address. If several lanes write to the same address, one pass serves all of these lanes. If
//! each lane accesses several 32-bit words, the accesses to the first word of each lane are one request, the accesses
//! to the second word of each lane are the next request, and so on.
//!
//! The guide does not define which word the memory broadcasts, and which address each bank serves. In this model, the
//! memory broadcasts the word that most of the remaining lanes read. A bank serves the address of the lowest lane.

use foldhash::{HashMap, HashMapExt as _};
use litemap::LiteMap;
use reconverge_simt::{Event, Lane};
use serde::Serialize;

use super::memory::HALF_WARP;

/// Number of banks of shared memory.
const BANKS: u32 = 16;

/// One line that describes how passes are counted.
pub const RULE: &str = "half-warps, 16 banks of 32 bits, one word is broadcast (compute capability 1.x)";

/// How an instruction accesses shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BankedAccess {
    /// Whether the access is a store.
    pub store: bool,
    /// Number of bytes per lane.
    pub bytes: u32,
    /// Index of the access to shared memory among all loads that the instruction performs for one lane.
    pub which: u8,
}

/// Counts of accesses to shared memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct BankCounts {
    /// Number of requests. If at least one lane of a half-warp accesses shared memory, the half-warp makes one request.
    pub requests: u64,
    /// Number of passes that serve the requests. Without conflicts, the number of passes is equal to the number of
    /// requests.
    pub passes: u64,
    /// Maximum number of passes that served one request.
    pub most: u64,
}

impl BankCounts {
    pub(super) fn add(&mut self, other: &BankCounts) {
        self.requests += other.requests;
        self.passes += other.passes;
        self.most = self.most.max(other.most);
    }
}

/// Returns the number of passes of a read of up to 32 bits. `addresses` has the byte addresses of a half-warp's lanes.
pub fn read_passes(addresses: &[u32]) -> u64 {
    let mut left: Vec<u32> = addresses.iter().map(|address| address / 4).collect();
    let mut passes = 0;
    while !left.is_empty() {
        let readers = |word: u32| left.iter().filter(|other| **other == word).count();
        // `max_by_key` returns the last of several maxima. The iteration is reversed, so the last maximum is the word
        // of the lowest lane.
        let broadcast = left.iter().copied().rev().max_by_key(|word| readers(*word)).unwrap_or_default();
        let mut served = 1u32 << (broadcast % BANKS);
        left.retain(|word| {
            let bank = 1 << (word % BANKS);
            let goes = *word == broadcast || served & bank == 0;
            served |= bank;
            !goes
        });
        passes += 1;
    }
    passes
}

/// Returns the number of passes of a write of up to 32 bits. `addresses` has the byte addresses of a half-warp's
/// lanes.
pub fn write_passes(addresses: &[u32]) -> u64 {
    let mut distinct = addresses.to_vec();
    distinct.sort_unstable();
    distinct.dedup();
    let of_bank = |bank: u32| distinct.iter().filter(|address| *address / 4 % BANKS == bank).count() as u64;
    (0..BANKS).map(of_bank).max().unwrap_or_default()
}

/// Counts accesses to shared memory while a program runs.
#[derive(Clone, Debug, Default)]
pub(super) struct Banks {
    of: LiteMap<u32, BankedAccess>,
    pub(super) counts: LiteMap<u32, BankCounts>,
    /// For each group, the accesses of the instruction that the group issued last. These accesses are not counted yet.
    pending: HashMap<usize, Unsettled>,
}

#[derive(Clone, Debug)]
struct Unsettled {
    pc: u32,
    accesses: Vec<(Lane, u32)>,
    /// For each lane, the number of loads that the instruction has performed so far.
    loads: [u8; 64],
}

impl Banks {
    pub(super) fn new(of: LiteMap<u32, BankedAccess>) -> Banks {
        Banks { of, counts: LiteMap::new(), pending: HashMap::new() }
    }

    /// Returns whether the program has no instructions that access shared memory.
    pub(super) fn is_empty(&self) -> bool {
        self.of.is_empty()
    }

    /// Records a load or store of the instruction at `pc`.
    pub(super) fn take(&mut self, group: usize, pc: u32, event: Event) {
        let Some(access) = self.of.get(&pc) else { return };
        let begun = || Unsettled { pc, accesses: Vec::new(), loads: [0; 64] };
        match event {
            Event::Load { lane, address } if !access.store => {
                let pending = self.pending.entry(group).or_insert_with(begun);
                let loads = &mut pending.loads[lane.index() % 64];
                if *loads == access.which {
                    pending.accesses.push((lane, address));
                }
                *loads = loads.saturating_add(1);
            }
            Event::Store { lane, address, .. } if access.store => {
                self.pending.entry(group).or_insert_with(begun).accesses.push((lane, address));
            }
            _ => {}
        }
    }

    /// Counts the pending accesses of a group and returns the counts.
    pub(super) fn settle(&mut self, group: usize) -> Option<BankCounts> {
        if self.pending.is_empty() {
            return None;
        }
        let pending = self.pending.remove(&group)?;
        self.count(&pending)
    }

    /// Counts all pending accesses and returns the counts of each group.
    pub(super) fn settle_all(&mut self) -> Vec<(usize, BankCounts)> {
        let pending = std::mem::take(&mut self.pending);
        pending.into_iter().filter_map(|(group, pending)| Some((group, self.count(&pending)?))).collect()
    }

    fn count(&mut self, Unsettled { pc, accesses, .. }: &Unsettled) -> Option<BankCounts> {
        let BankedAccess { store, bytes, .. } = *self.of.get(pc)?;
        let mut counts = BankCounts::default();
        for half in 0..64 / HALF_WARP {
            let lanes = accesses.iter().filter(|(lane, _)| lane.index() / HALF_WARP == half);
            let addresses: Vec<u32> = lanes.map(|(_, address)| *address).collect();
            if addresses.is_empty() {
                continue;
            }
            for word in 0..bytes.div_ceil(4).max(1) {
                let part: Vec<u32> = addresses.iter().map(|address| address.wrapping_add(4 * word)).collect();
                let passes = if store { write_passes(&part) } else { read_passes(&part) };
                counts.add(&BankCounts { requests: 1, passes, most: passes });
            }
        }
        self.counts.entry(*pc).or_default().add(&counts);
        Some(counts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the addresses of 16 lanes. Lane k has the address `step * k`.
    fn lanes(step: u32) -> Vec<u32> {
        (0..16).map(|lane| step * lane).collect()
    }

    #[test]
    fn words_in_different_banks_are_one_pass() {
        assert_eq!([read_passes(&lanes(4)), write_passes(&lanes(4))], [1, 1]);
        // An odd stride of words does not cause conflicts (guide, 32-bit strided access).
        assert_eq!([read_passes(&lanes(12)), write_passes(&lanes(12))], [1, 1]);
    }

    #[test]
    fn a_stride_of_two_words_has_two_lanes_in_each_bank() {
        assert_eq!([read_passes(&lanes(8)), write_passes(&lanes(8))], [2, 2]);
        assert_eq!([read_passes(&lanes(64)), write_passes(&lanes(64))], [16, 16]);
    }

    #[test]
    fn one_word_is_broadcast_in_a_pass() {
        assert_eq!(read_passes(&[0x40; 16]), 1);
        // Half of the lanes read word 0. The other half of the lanes read word 16. Both words are in the same bank. Two
        // passes broadcast one word each.
        let halves: Vec<u32> = (0..16).map(|lane| lane % 2 * 64).collect();
        assert_eq!(read_passes(&halves), 2);
        // Three lanes read one word. The memory broadcasts this word. Each of the remaining lanes reads a word in a
        // different bank.
        let mut some = lanes(4);
        (some[3], some[9]) = (20, 20);
        assert_eq!(read_passes(&some), 1);
        // If several lanes read a second word, this word needs an additional pass.
        (some[0], some[1]) = (60, 60);
        assert_eq!(read_passes(&some), 2);
    }

    #[test]
    fn bytes_of_a_word_conflict_unless_the_word_is_broadcast() {
        // The guide's example of 8-bit access. In each of four banks, four lanes read different bytes.
        assert_eq!(read_passes(&lanes(1)), 4);
        assert_eq!(write_passes(&lanes(1)), 4);
        assert_eq!(write_passes(&[8; 16]), 1, "lanes that write to one address are one write");
    }

    #[test]
    fn half_warps_are_requests_of_their_own_and_wide_words_several() {
        let access = |bytes, which| BankedAccess { store: false, bytes, which };
        let mut banks = Banks::new([(8, access(4, 1)), (16, access(8, 0))].into_iter().collect());
        for lane in 0..32u8 {
            // The first load of the instruction does not access shared memory, so `banks` does not count this load.
            banks.take(0, 8, Event::Load { lane: Lane(lane), address: 0 });
            banks.take(0, 8, Event::Load { lane: Lane(lane), address: 8 * u32::from(lane) });
        }
        assert_eq!(banks.settle(0), Some(BankCounts { requests: 2, passes: 4, most: 2 }));
        (0..16).for_each(|lane| {
            banks.take(1, 16, Event::Load { lane: Lane(lane), address: 8 * u32::from(lane) });
        });
        assert_eq!(banks.settle_all(), [(1, BankCounts { requests: 2, passes: 4, most: 2 })]);
        assert_eq!(banks.settle(0), None);
    }
}
