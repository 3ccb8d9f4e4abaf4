//! Counts the transactions into which the memory coalesces the accesses of a group. The machine's manual defines the
//! rule.
//!
//! Source for Tesla: CUDA C Programming Guide, appendix "Compute Capabilities", global memory of compute capability
//! 1.x. The access of each half-warp is one request. The memory serves a request in transactions of 32, 64 or 128
//! bytes. The guide does not define transactions for atomic operations and local memory.

use foldhash::{HashMap, HashMapExt as _};
use litemap::LiteMap;
use reconverge_simt::{Event, Lane};
use serde::Serialize;

/// Number of lanes in a half-warp. The accesses of a half-warp form one request.
pub(super) const HALF_WARP: usize = 16;

/// The rule that determines the transactions of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coalescing {
    /// Compute capability 1.0 and 1.1. If lane k accesses word k of an aligned segment, the request is one transaction.
    /// For words of 16 bytes, the request is two transactions. Otherwise, the request has one transaction of 32 bytes
    /// for each lane.
    InSequence,
    /// Compute capability 1.2 and 1.3. The request has one transaction for each segment that a lane accesses. Each
    /// transaction is as small as possible.
    BySegment,
}

impl Coalescing {
    /// Returns a description of the rule in one line.
    pub const fn name(self) -> &'static str {
        match self {
            Coalescing::InSequence => {
                "half-warps, lane k at word k of a segment (compute capability 1.0 and 1.1)"
            }
            Coalescing::BySegment => "half-warps, any order in a segment (compute capability 1.2 and 1.3)",
        }
    }

    /// Returns the size in bytes of each transaction of a request. `addresses` has the active lanes of the half-warp,
    /// each with its address. Each lane accesses a word of `bytes` bytes.
    pub fn transactions(self, bytes: u32, addresses: &[(usize, u32)]) -> Vec<u32> {
        match self {
            Coalescing::InSequence => in_sequence(bytes, addresses),
            Coalescing::BySegment => by_segment(bytes, addresses),
        }
    }
}

fn in_sequence(bytes: u32, addresses: &[(usize, u32)]) -> Vec<u32> {
    let segment = match bytes {
        4 => 64,
        8 | 16 => 128,
        _ => return vec![32; addresses.len()],
    };
    let start = |&(lane, address): &(usize, u32)| address.wrapping_sub(lane as u32 * bytes);
    let first = addresses.first().map(start).unwrap_or_default();
    if first.is_multiple_of(segment) && addresses.iter().all(|access| start(access) == first) {
        return vec![segment; if bytes == 16 { 2 } else { 1 }];
    }
    vec![32; addresses.len()]
}

fn by_segment(bytes: u32, addresses: &[(usize, u32)]) -> Vec<u32> {
    let segment = match bytes {
        1 => 32,
        2 => 64,
        _ => 128,
    };
    let mut open = addresses.to_vec();
    let mut transactions = Vec::new();
    while let Some(&(_, lowest)) = open.first() {
        let base = lowest / segment * segment;
        let (served, rest): (Vec<_>, Vec<_>) =
            open.into_iter().partition(|(_, at)| at / segment * segment == base);
        open = rest;
        let (mut start, mut size) = (base, segment);
        let from = served.iter().map(|(_, at)| *at).min().unwrap_or(base);
        let to = served.iter().map(|(_, at)| at + (bytes - 1)).max().unwrap_or(base);
        while size > 32 {
            size /= 2;
            if from >= start + size {
                start += size;
            } else if to >= start + size {
                size *= 2;
                break;
            }
        }
        transactions.push(size);
    }
    transactions
}

/// How an instruction accesses memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// Whether the access is a store.
    pub store: bool,
    /// Number of bytes per lane.
    pub bytes: u32,
}

/// Counts of memory accesses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct MemoryCounts {
    /// Number of requests. If at least one lane of a half-warp accesses memory, the half-warp makes one request.
    pub requests: u64,
    /// Number of transactions that serve the requests.
    pub transactions: u64,
    /// Number of bytes that the transactions transfer.
    pub bytes_moved: u64,
    /// Number of bytes that the lanes request.
    pub bytes_wanted: u64,
}

impl MemoryCounts {
    pub(super) fn add(&mut self, other: &MemoryCounts) {
        self.requests += other.requests;
        self.transactions += other.transactions;
        self.bytes_moved += other.bytes_moved;
        self.bytes_wanted += other.bytes_wanted;
    }
}

/// Counts memory accesses while a program runs.
#[derive(Clone, Debug)]
pub(super) struct Accesses {
    rule: Coalescing,
    of: LiteMap<u32, Access>,
    pub(super) counts: LiteMap<u32, MemoryCounts>,
    /// For each group, the address and the accesses of the instruction that the group issued last. These accesses are
    /// not counted yet.
    pending: HashMap<usize, (u32, Vec<(Lane, u32)>)>,
}

impl Accesses {
    pub(super) fn new(rule: Coalescing, of: LiteMap<u32, Access>) -> Accesses {
        Accesses { rule, of, counts: LiteMap::new(), pending: HashMap::new() }
    }

    /// Records a load or store of the instruction at `pc`.
    pub(super) fn take(&mut self, group: usize, pc: u32, event: Event) {
        let (store, lane, address) = match event {
            Event::Load { lane, address } => (false, lane, address),
            Event::Store { lane, address, .. } => (true, lane, address),
            _ => return,
        };
        if self.of.get(&pc).is_some_and(|access| access.store == store) {
            self.pending.entry(group).or_insert_with(|| (pc, Vec::new())).1.push((lane, address));
        }
    }

    /// Counts the pending accesses of a group and returns the counts.
    pub(super) fn settle(&mut self, group: usize) -> Option<MemoryCounts> {
        let (pc, accesses) = self.pending.remove(&group)?;
        self.count(pc, &accesses)
    }

    /// Counts all pending accesses and returns the counts of each group.
    pub(super) fn settle_all(&mut self) -> Vec<(usize, MemoryCounts)> {
        let pending = std::mem::take(&mut self.pending);
        let counted =
            |(group, (pc, accesses)): (usize, (u32, Vec<_>))| Some((group, self.count(pc, &accesses)?));
        pending.into_iter().filter_map(counted).collect()
    }

    fn count(&mut self, pc: u32, accesses: &[(Lane, u32)]) -> Option<MemoryCounts> {
        let Access { bytes, .. } = self.of.get(&pc).copied()?;
        let mut counts = MemoryCounts::default();
        for half in 0..64 / HALF_WARP {
            let lanes = accesses.iter().filter(|(lane, _)| lane.index() / HALF_WARP == half);
            let request: Vec<_> = lanes.map(|(lane, at)| (lane.index() % HALF_WARP, *at)).collect();
            if request.is_empty() {
                continue;
            }
            let transactions = self.rule.transactions(bytes, &request);
            counts.add(&MemoryCounts {
                requests: 1,
                transactions: transactions.len() as u64,
                bytes_moved: transactions.iter().map(|size| u64::from(*size)).sum(),
                bytes_wanted: u64::from(bytes) * request.len() as u64,
            });
        }
        self.counts.entry(pc).or_default().add(&counts);
        Some(counts)
    }
}

#[cfg(test)]
mod tests {
    use super::Coalescing::{BySegment, InSequence};

    /// Returns 16 lanes with their addresses. Lane k has the address `base + step * k`.
    fn lanes(base: u32, step: u32) -> Vec<(usize, u32)> {
        (0..16).map(|lane| (lane, base + step * lane as u32)).collect()
    }

    #[test]
    fn words_in_sequence_are_one_transaction_on_all_chips() {
        assert_eq!(InSequence.transactions(4, &lanes(0x1000, 4)), [64]);
        assert_eq!(BySegment.transactions(4, &lanes(0x1000, 4)), [64]);
        assert_eq!(InSequence.transactions(8, &lanes(0x1000, 8)), [128]);
        assert_eq!(BySegment.transactions(8, &lanes(0x1000, 8)), [128]);
        assert_eq!(InSequence.transactions(16, &lanes(0x1080, 16)), [128, 128]);
        assert_eq!(BySegment.transactions(16, &lanes(0x1080, 16)), [128, 128]);
    }

    #[test]
    fn lanes_that_do_not_access_memory_leave_a_sequence_whole() {
        let some: Vec<_> = lanes(0x1000, 4).into_iter().filter(|(lane, _)| lane % 3 == 1).collect();
        assert_eq!(InSequence.transactions(4, &some), [64]);
    }

    #[test]
    fn words_beside_the_segment_s_start_or_in_another_order_are_one_a_lane_on_the_first_chips() {
        assert_eq!(InSequence.transactions(4, &lanes(0x1004, 4)), [32; 16]);
        let mut swapped = lanes(0x1000, 4);
        (swapped[3].1, swapped[4].1) = (swapped[4].1, swapped[3].1);
        assert_eq!(InSequence.transactions(4, &swapped), [32; 16]);
        assert_eq!(InSequence.transactions(2, &lanes(0x1000, 2)), [32; 16]);
    }

    #[test]
    fn later_chips_move_each_segment_once_and_no_more_than_the_half_that_is_used() {
        let mut swapped = lanes(0x1000, 4);
        (swapped[3].1, swapped[4].1) = (swapped[4].1, swapped[3].1);
        assert_eq!(BySegment.transactions(4, &swapped), [64]);
        // The first access crosses the middle of a 128-byte segment. The second access extends over two segments.
        assert_eq!(BySegment.transactions(4, &lanes(0x1004, 4)), [128]);
        assert_eq!(BySegment.transactions(4, &lanes(0x1048, 4)), [64, 32]);
        assert_eq!(BySegment.transactions(4, &[(0, 0x1000), (5, 0x1000)]), [32]);
        assert_eq!(BySegment.transactions(1, &lanes(0x1000, 1)), [32]);
        assert_eq!(BySegment.transactions(2, &lanes(0x1000, 2)), [32]);
        assert_eq!(BySegment.transactions(4, &lanes(0x1000, 128)), [32; 16]);
    }
}
