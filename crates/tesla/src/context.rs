//! The state that an instruction accesses. It consists of the fixed settings of a launch, the state that the warps of a
//! block share, and the state of the warp.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use reconverge_simt::memory::Store;
use reconverge_simt::{Identity, Mask, Mode, Statistics};

use crate::barrier::{BARRIERS, Barriers};
use crate::code::{Code, SharedChecks};
use crate::inst::Stage;
use crate::launch::Setup;
use crate::spaces::{Segments, Shared};
use crate::state::Warp;
use crate::turns::Warps;

/// The settings that all blocks of a launch share. The settings do not change during the launch.
#[derive(Clone, Debug)]
pub struct Context {
    /// The identity of the launch.
    pub identity: Identity,
    /// The decoded program.
    pub code: Arc<Code>,
    /// The program type.
    pub stage: Stage,
    /// The chip, c0..c15[], textures and samplers, modes.
    pub setup: Arc<Setup>,
    /// The location of g0..g15[].
    pub segments: Segments,
    /// Number of allocated barriers. `None` means that the launch does not specify the number, and the program may use
    /// all barriers.
    pub barriers: Option<u32>,
    /// The words of p[].
    pub vertices: Vec<u32>,
    /// The handling of undefined behaviour.
    pub mode: Mode,
    /// The check for races between accesses to s[], if enabled.
    pub checks: Option<SharedChecks>,
    /// Maximum number of instructions that a block may issue.
    pub watchdog: u64,
    /// Whether the launch has dropped an access beyond the limit of a lenient segment. If the block of this access runs
    /// a second time, the value stays `true`.
    pub dropped: Arc<AtomicBool>,
}

impl Context {
    /// Loads `count` bytes (1 to 16) at `offset` of a segment of g[]. Returns the bytes as a little-endian number, or
    /// `None` if the bytes do not exist.
    #[inline]
    pub fn load_global<G: Store>(
        &self,
        global: &mut G,
        segment: u8,
        offset: u32,
        count: u32,
    ) -> Option<u128> {
        let mut bytes = [0; 16];
        match self.segments.address(segment, offset, count) {
            Some(address) => global.load(address, &mut bytes[..count as usize]),
            None => self.drops(segment),
        }
        .then(|| u128::from_le_bytes(bytes))
    }

    /// Stores the low `count` bytes (1 to 16) of `value` at `offset` of a segment of g[]. Returns `None` if the
    /// bytes do not exist.
    #[inline]
    pub fn store_global<G: Store>(
        &self,
        global: &mut G,
        segment: u8,
        offset: u32,
        count: u32,
        value: u128,
    ) -> Option<()> {
        match self.segments.address(segment, offset, count) {
            Some(address) => global.store(address, &value.to_le_bytes()[..count as usize]),
            None => self.drops(segment),
        }
        .then_some(())
    }

    /// Returns whether the launch drops accesses beyond the limit of a segment. If so, records that an access was
    /// dropped.
    #[cold]
    fn drops(&self, segment: u8) -> bool {
        let drops = self.segments.is_lenient(segment);
        if drops {
            self.dropped.store(true, Ordering::Relaxed);
        }
        drops
    }

    /// Returns whether a program may use the barrier. In strict mode, the barrier must be allocated.
    pub fn has_barrier(&self, barrier: u8) -> bool {
        let allocated = match (self.barriers, self.mode) {
            (Some(count), Mode::Strict) => count,
            (None, _) | (Some(_), Mode::Lenient) => BARRIERS as u32,
        };
        u32::from(barrier) < allocated
    }
}

/// The state that the warps of a block share.
#[derive(Clone, Debug)]
pub struct Common {
    /// Index of the block in the grid; `[number, 0]` for graphics stages.
    pub index: [u32; 2],
    /// The shared memory s[].
    pub shared: Shared,
    /// The barriers of the block.
    pub barriers: Barriers,
    /// The counters. When an instruction executes, the counters count the instruction for all active lanes, even for
    /// lanes whose guard is false. If the `join` of an instruction switches the warp to another path, the instruction
    /// does not execute yet. The counters count the instruction when the warp executes it later. A divergent branch is
    /// a `bra`, `ret` or `break` on which the active lanes disagree.
    pub statistics: Statistics,
    /// For each word of the code, the number of times that warps have issued the instruction at that word. The number
    /// starts at 0 whenever these counts are added to the totals. If several blocks use this list in turn, all blocks
    /// add to the same counts.
    pub issued: Vec<u64>,
    /// For each basic block of the fast engine, the number of complete runs that are not yet in `issued`.
    pub runs: Vec<u64>,
}

impl Common {
    /// Creates the state of a block before the first instruction. The block has `warps` warps, and the program has
    /// `words` words.
    pub fn new(index: [u32; 2], warps: usize, words: usize) -> Self {
        Common {
            index,
            shared: Shared::default(),
            barriers: Barriers::new(warps),
            statistics: Statistics::default(),
            issued: vec![0; words],
            runs: Vec::new(),
        }
    }

    /// Changes this state to the state of another block of the same launch. The other block has not issued an
    /// instruction. s[] keeps its contents, and `issued` and `runs` keep their counts.
    pub fn begin(&mut self, index: [u32; 2]) {
        let Common { index: own_index, shared: _, barriers, statistics, issued: _, runs: _ } = self;
        (*own_index, *statistics) = (index, Statistics::default());
        barriers.begin();
    }

    /// Counts an instruction that the active lanes execute. `place` is the index of the instruction in the code.
    #[inline]
    pub fn count(&mut self, place: Option<usize>, active: Mask) {
        self.statistics.instructions += 1;
        self.statistics.lane_instructions += u64::from(active.count());
        if let Some(issued) = place.and_then(|place| self.issued.get_mut(place)) {
            *issued += 1;
        }
    }
}

/// A warp that an engine runs, with the state that the warp accesses.
#[derive(Debug)]
pub struct Turn<'a, G, O> {
    /// The settings that all blocks of the launch share.
    pub context: &'a Context,
    /// The state that the warps of the block share.
    pub common: &'a mut Common,
    /// The warp that runs.
    pub warp: &'a mut Warp,
    /// Number of the warp in the block.
    pub number: usize,
    /// Global memory.
    pub global: &'a mut G,
    /// Receives the events.
    pub observer: &'a mut O,
    /// All warps of the block, if the engine may switch to another warp. After a switch, the engine sets `warp` and
    /// `number` to the new warp.
    pub warps: Option<Warps>,
}
