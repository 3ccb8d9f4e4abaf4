//! The barriers of a block. Each barrier counts the warps that have arrived. (9.7)
//!
//! ```text
//! inc : v = v + 1; if v == count: v = 0
//! wait: the warp is blocked until v == 0
//! ```
//! A warp executes `inc` and `wait` once for all its lanes, whatever lanes are active. This file does not access
//! registers or memory.

use reconverge_simt::races::Races;

use crate::inst::BarrierCount;

/// Number of barriers of a block.
pub const BARRIERS: usize = 16;

/// The value of the count operand that stands for all warps of the block. The `all` flag has the same meaning.
pub const COUNT_ALL: u32 = 0xfff;

/// The number of warps for which a barrier waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    /// Every warp of the block that has not ended, see `Barriers::warps_expected_by_all`.
    All,
    /// A number of increments.
    Warps(u32),
}

impl Count {
    /// Returns the count of a `bar` instruction. The instruction specifies the count by its 12-bit operand or by its
    /// `all` flag.
    pub fn of(operand: u32, all: bool) -> Count {
        if all || operand == COUNT_ALL { Count::All } else { Count::Warps(operand) }
    }
}

impl From<BarrierCount> for Count {
    fn from(count: BarrierCount) -> Count {
        match count {
            BarrierCount::Count(warps) => Count::of(u32::from(warps), false),
            BarrierCount::All => Count::All,
        }
    }
}

/// The barrier counters of a block, and the warps that wait at barriers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Barriers {
    value: [u32; BARRIERS],
    /// For each barrier, the number of warps that the latest increment of the barrier specifies.
    expected: [Count; BARRIERS],
    /// For each warp, the barrier at which the warp waits, if any.
    waiting: Vec<Option<u8>>,
    finished: Vec<bool>,
    /// Number of warps that have not ended.
    running: u32,
}

impl Barriers {
    /// Creates the barriers of a block with `warps` warps. All counters are zero.
    pub fn new(warps: usize) -> Self {
        Barriers {
            value: [0; BARRIERS],
            expected: [Count::All; BARRIERS],
            waiting: vec![None; warps],
            finished: vec![false; warps],
            running: warps as u32,
        }
    }

    /// Resets the barriers to their state after [`Barriers::new`] for the same number of warps.
    pub fn begin(&mut self) {
        let Barriers { value, expected, waiting, finished, running } = self;
        (*value, *expected) = ([0; BARRIERS], [Count::All; BARRIERS]);
        waiting.fill(None);
        finished.fill(false);
        *running = finished.len() as u32;
    }

    /// Executes `bar`. `warp` increments the counter, waits at the barrier, or does both. Barrier numbers are taken
    /// modulo [`BARRIERS`]. The barrier imposes an order on memory accesses, and `races` receives this order.
    pub fn bar(
        &mut self,
        warp: usize,
        barrier: u8,
        (inc, wait): (bool, bool),
        count: Count,
        mut races: Option<&mut Races>,
    ) {
        let place = usize::from(barrier) % BARRIERS;
        if inc {
            self.value[place] += 1;
            self.expected[place] = count;
            // If the warp does not wait, `release` orders the earlier accesses of this warp before the later accesses
            // of the warps that wait at the barrier. If the warp waits, `races` orders the accesses of the warp later,
            // when the barrier is complete.
            if let (false, Some(races)) = (wait, &mut races) {
                races.release(warp as u32, place as u32);
            }
            self.release_if_complete(place, wait.then_some(warp), races.as_deref_mut());
        } else if let (true, 0, Some(races)) = (wait, self.value[place], &mut races) {
            races.acquire(warp as u32, place as u32);
        }
        if wait && self.value[place] != 0 {
            self.waiting[warp] = Some(place as u8);
        }
    }

    /// Records that `warp` has ended.
    pub fn finish(&mut self, warp: usize, mut races: Option<&mut Races>) {
        let was_finished = std::mem::replace(&mut self.finished[warp], true);
        self.running -= u32::from(!was_finished);
        if self.value == [0; BARRIERS] {
            return;
        }
        for place in 0..BARRIERS {
            if self.value[place] != 0 && self.expected[place] == Count::All {
                self.release_if_complete(place, None, races.as_deref_mut());
            }
        }
    }

    /// Returns the number of increments of `barrier`, if the warps that wait are exactly the warps `waiting`, all of
    /// them wait at this barrier, the barrier waits for all warps, and no other barrier is in use.
    pub fn only(&self, barrier: u8, waiting: impl Iterator<Item = usize>) -> bool {
        let place = usize::from(barrier) % BARRIERS;
        let mut count = 0;
        let all_wait = { waiting }.all(|warp| {
            count += 1;
            self.waiting[warp] == Some(place as u8)
        });
        let total: u32 = self.value.iter().sum();
        all_wait
            && self.value[place] == count
            && total == count
            && self.waiting.iter().flatten().count() == count as usize
            && self.expected == [Count::All; BARRIERS]
            && self.running as usize == self.waiting.len()
    }

    /// Sets the state of all barriers: the warps `waiting` wait at `barrier` for all warps, and no other barrier is in
    /// use.
    pub fn set_only(&mut self, barrier: u8, waiting: impl Iterator<Item = usize>) {
        let place = usize::from(barrier) % BARRIERS;
        self.value = [0; BARRIERS];
        self.waiting.fill(None);
        for warp in waiting {
            self.value[place] += 1;
            self.waiting[warp] = Some(place as u8);
        }
    }

    /// Returns the barrier at which `warp` waits, if any.
    #[inline]
    pub fn waits_for(&self, warp: usize) -> Option<u8> {
        self.waiting[warp]
    }

    /// Returns each warp that waits, and the barrier at which the warp waits.
    pub fn waiting(&self) -> impl Iterator<Item = (usize, u8)> + '_ {
        self.waiting.iter().enumerate().filter_map(|(warp, barrier)| Some((warp, (*barrier)?)))
    }

    /// Returns how often warps have incremented a barrier since the barrier was last complete.
    pub fn value(&self, barrier: u8) -> u32 {
        self.value[usize::from(barrier) % BARRIERS]
    }

    /// **Open** (13.7): a barrier for all warps waits only for warps that have not ended. Some compiled programs with
    /// early exits rely on this rule. Without the rule, such programs would hang. The documents do not describe early
    /// exits.
    fn warps_expected_by_all(&self) -> u32 {
        self.running
    }

    /// Releases the warps that wait at a barrier if the barrier is complete. `arrives` is a warp that has just arrived
    /// and is about to wait.
    fn release_if_complete(&mut self, place: usize, arrives: Option<usize>, races: Option<&mut Races>) {
        let complete = match self.expected[place] {
            Count::All => self.value[place] >= self.warps_expected_by_all(),
            Count::Warps(count) => self.value[place] == count,
        };
        if complete {
            if let Some(races) = races {
                self.order(place, arrives, races);
            }
            self.value[place] = 0;
            for waiting in &mut self.waiting {
                if *waiting == Some(place as u8) {
                    *waiting = None;
                }
            }
        }
    }
}

impl Barriers {
    /// Reports to `races` that a barrier orders the accesses of the warps that meet at the barrier.
    fn order(&self, place: usize, arrives: Option<usize>, races: &mut Races) {
        let meets = |warp: usize| self.waiting[warp] == Some(place as u8) || arrives == Some(warp);
        let counts_ended = self.expected[place] == Count::All;
        let ended = |warp: usize| self.finished[warp];
        let warps = 0..self.waiting.len();
        if warps.clone().all(|warp| if ended(warp) { counts_ended } else { meets(warp) }) {
            return races.floor();
        }
        let mut all: Vec<u32> = Vec::new();
        all.extend(warps.clone().filter(|warp| meets(*warp)).map(|warp| warp as u32));
        let waiting = all.len();
        all.extend(warps.filter(|warp| ended(*warp) && counts_ended).map(|warp| warp as u32));
        races.meet(place as u32, &all, waiting);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_warp_to_arrive_releases_all() {
        let mut bars = Barriers::new(3);
        bars.bar(0, 0, (true, true), Count::All, None);
        bars.bar(2, 0, (true, true), Count::All, None);
        assert_eq!(bars.waiting().collect::<Vec<_>>(), [(0, 0), (2, 0)]);
        bars.bar(1, 0, (true, true), Count::All, None);
        assert_eq!(bars.waiting().count(), 0);
        assert_eq!(bars.value(0), 0);
    }

    #[test]
    fn a_count_of_warps_releases_at_that_count() {
        let mut bars = Barriers::new(4);
        bars.bar(0, 3, (true, true), Count::Warps(2), None);
        assert_eq!(bars.waits_for(0), Some(3));
        bars.bar(3, 3, (true, false), Count::Warps(2), None);
        assert_eq!(bars.waits_for(0), None);
    }

    #[test]
    fn waiting_at_an_unused_barrier_does_not_block() {
        let mut bars = Barriers::new(2);
        bars.bar(0, 1, (false, true), Count::All, None);
        assert_eq!(bars.waits_for(0), None);
    }

    #[test]
    fn an_increment_without_wait_does_not_block() {
        let mut bars = Barriers::new(2);
        bars.bar(0, 1, (true, false), Count::All, None);
        assert_eq!(bars.waits_for(0), None);
        bars.bar(1, 1, (false, true), Count::All, None);
        assert_eq!(bars.waits_for(1), Some(1));
    }

    #[test]
    fn a_finished_warp_is_not_waited_for() {
        let mut bars = Barriers::new(3);
        bars.bar(0, 0, (true, true), Count::All, None);
        bars.finish(2, None);
        assert_eq!(bars.waits_for(0), Some(0));
        bars.finish(1, None);
        assert_eq!(bars.waits_for(0), None);
    }

    #[test]
    fn the_operand_fff_and_the_flag_mean_all() {
        assert_eq!(
            [Count::of(0xfff, false), Count::of(3, true), Count::of(3, false)],
            [Count::All, Count::All, Count::Warps(3)]
        );
    }
}
