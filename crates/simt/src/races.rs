//! Finds races between the groups of a block on shared memory. Also finds reads of memory that no store has written.
//!
//! Two accesses to the same bytes race if three conditions are true. Different groups of the block make the two
//! accesses. At least one of the accesses is a store. Nothing orders the accesses. The program of a group orders the
//! accesses of that group. [`Races::floor`] orders all earlier accesses before all later accesses, like a barrier for
//! all groups. [`Races::release`], [`Races::acquire`] and [`Races::meet`] order accesses around a lock, or around a
//! barrier that only some groups reach. If groups store the same value to the same bytes, the groups *agree*, and the
//! stores of these groups do not race with each other. If a group that agrees also loads the value, its load does not
//! race with these stores.
//!
//! The memory is divided into cells. For each cell, [`Races`] records the latest store and the latest loads of two
//! groups. An access is recorded as a *stamp*. A stamp is the time of the access, with the number of the group in the
//! low bits. The time advances whenever the program orders accesses. So the code compares a stamp with a time to find
//! out whether the access is ordered before all later accesses. If lane n of a row accesses cell n, the code compares
//! all lanes of the row at once. Otherwise, the code compares one lane after another. If only [`Races::floor`] orders
//! accesses, two loads per cell are sufficient. The two loads are from different groups, so at least one of these
//! groups did not make the store. This module may miss a race if a lock orders accesses, or if a barrier that only some
//! groups reach orders accesses.

use std::collections::HashMap;
use std::ops::Range;

/// Number of bits for the number of a lane in its group.
const LANE_BITS: u32 = 6;

/// The lane and the instruction that make an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accessor {
    /// Number of the group in the block.
    pub group: u32,
    /// Number of the lane in the group.
    pub lane: u32,
    /// Address of the instruction, which must be less than 2^26.
    pub pc: u32,
}

/// Reason why an access is an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hazard {
    /// No access in the block has written the bytes.
    Unwritten,
    /// The access races with an earlier access.
    Race {
        /// The earlier access.
        earlier: Accessor,
        /// Whether the earlier access is a store.
        stored: bool,
    },
}

/// The record of the accesses to a block's shared memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Races {
    /// Number of groups in the block.
    groups: u32,
    /// Number of low bits of a stamp that contain the group's number.
    group_bits: u32,
    /// Binary logarithm of the size of a cell in bytes.
    cell_bits: u32,
    /// The current time, for the stamps of the next accesses.
    now: u32,
    /// Lowest stamp of the block. Lower stamps belong to earlier blocks.
    begin: u32,
    /// Every access with a stamp below this stamp is ordered before all later accesses.
    base: u32,
    /// Number of bytes, from address 0 on, that the launch initializes. Loads of these initialized bytes are not
    /// recorded until a store changes one of the bytes.
    given: u32,
    given_changed: bool,
    stores: Stamps,
    loads: Stamps,
    /// For each cell, a second load. `loads` has a load of the cell, and this field has the latest load by any other
    /// group.
    others: Stamps,
    /// For each cell, groups that have stored the same value, although nothing orders their stores.
    agreed: HashMap<u32, Agreed>,
    /// The order of accesses around locks, and around barriers that only some groups reach. The orders of
    /// [`Races::floor`] are not in this field.
    clocks: Option<Clocks>,
}

/// For each cell, the stamp of an access, and the instruction and lane that made the access.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Stamps {
    stamps: Vec<u32>,
    /// Addresses of the instructions, with the lane in the low bits.
    by: Vec<u32>,
}

impl Stamps {
    fn resize(&mut self, cells: usize) {
        self.stamps.resize(cells, 0);
        self.by.resize(cells, 0);
    }

    fn clear(&mut self) {
        self.stamps.fill(0);
    }

    fn set(&mut self, cell: usize, stamp: u32, by: u32) {
        (self.stamps[cell], self.by[cell]) = (stamp, by);
    }

    fn get(&self, cell: usize) -> (u32, u32) {
        (self.stamps[cell], self.by[cell])
    }
}

/// Groups that have stored the same value to a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Agreed {
    /// Set of the groups. Bit n represents all groups whose number modulo 64 is n.
    groups: u64,
    /// Stamp of the latest store that agrees with the store in `stores`.
    stamp: u32,
    /// Instruction and lane of this latest store, as in [`Stamps::by`].
    by: u32,
}

/// For each group, the accesses of other groups that are ordered before the next access of the group.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Clocks {
    /// `known[g][h]` is a time. Accesses of group h before this time are ordered before the next access of group g.
    known: Vec<Vec<u32>>,
    /// For the number of each barrier or lock, one time per group. Accesses of a group before this time are ordered
    /// before the later accesses of any group that acquires the barrier or the lock.
    points: HashMap<u32, Vec<u32>>,
}

impl Races {
    /// Begins a block of `groups` groups with `bytes` bytes of shared memory. The launch initializes the bytes below
    /// address `given`. `narrow` means that stores may be narrower than a word. `stored` means that the program has a
    /// store. If the program has no store, a load is an error unless the launch initializes the loaded bytes.
    pub fn begin(&mut self, groups: u32, bytes: usize, given: u32, narrow: bool, stored: bool) {
        let cell_bits = if narrow { 0 } else { 2 };
        let group_bits = groups.max(1).next_power_of_two().trailing_zeros();
        if (self.group_bits, self.cell_bits) != (group_bits, cell_bits) {
            *self = Races { group_bits, cell_bits, ..Races::default() };
        }
        self.groups = groups;
        let cells = if stored { bytes.div_ceil(1 << cell_bits) } else { 0 };
        self.stores.resize(cells);
        if groups > 1 {
            self.loads.resize(cells);
            self.others.resize(cells);
        }
        // This value makes all stamps of the previous block recognizable. If `advance` restarts the stamps, the stamps
        // of the previous block become 0. Otherwise, the stamps of the previous block are below the new `begin`.
        self.begin = u32::MAX;
        self.advance();
        self.begin = self.now << self.group_bits;
        self.floor();
        (self.given, self.given_changed) = (given.next_multiple_of(4), false);
        self.preset(0..given as usize);
    }

    /// Marks bytes as written before the block started.
    pub fn preset(&mut self, bytes: Range<usize>) {
        let cells = bytes.start >> self.cell_bits..bytes.end.div_ceil(1 << self.cell_bits);
        let begin = self.begin;
        self.stores.stamps.iter_mut().take(cells.end).skip(cells.start).for_each(|stamp| *stamp = begin);
    }

    /// Returns whether a store has changed bytes that the launch initializes.
    #[inline(always)]
    pub fn given_changed(&self) -> bool {
        self.given_changed
    }

    // `floor` and the functions after it order accesses.

    /// Orders all earlier accesses before all later accesses.
    pub fn floor(&mut self) {
        self.advance();
        self.base = self.now << self.group_bits;
        self.clocks = None;
        self.agreed.clear();
    }

    /// Orders the earlier accesses of a group before the later accesses of other groups that [acquire](Races::acquire)
    /// the same point after this call. A point is the number of a barrier or of a lock.
    pub fn release(&mut self, group: u32, point: u32) {
        if self.groups > 1 {
            let view = self.view(group);
            merge(self.clocks().points.entry(point).or_default(), &view);
            self.advance();
        }
    }

    /// Orders the accesses that were [released](Races::release) at a point before the later accesses of a group.
    pub fn acquire(&mut self, group: u32, point: u32) {
        let Some(Clocks { known, points }) = &mut self.clocks else { return };
        if let (Some(known), Some(released)) = (known.get_mut(group as usize), points.get(&point)) {
            merge(known, released);
        }
    }

    /// Orders the earlier accesses of all groups in `all` before the later accesses of some groups: the first `waiting`
    /// groups in `all`.
    pub fn meet(&mut self, point: u32, all: &[u32], waiting: usize) {
        all.iter().for_each(|group| self.release(*group, point));
        all.iter().take(waiting).for_each(|group| self.acquire(*group, point));
    }

    fn clocks(&mut self) -> &mut Clocks {
        let groups = self.groups as usize;
        self.clocks
            .get_or_insert_with(|| Clocks { known: vec![vec![0; groups]; groups], points: HashMap::new() })
    }

    /// Returns a time for each group. Suppose that `group` releases a point now. The accesses of each group before its
    /// time are then ordered before the later accesses of groups that acquire the point.
    fn view(&mut self, group: u32) -> Vec<u32> {
        let after = self.now + 1;
        let mut view = self.clocks().known.get(group as usize).cloned().unwrap_or_default();
        view.iter_mut().skip(group as usize).take(1).for_each(|time| *time = after);
        view
    }

    /// Advances the time. If all stamps have been used, the stamps restart at the lowest stamp. Accesses before the
    /// restart then count as ordered before later accesses.
    fn advance(&mut self) {
        if self.now < (u32::MAX >> self.group_bits) - 1 {
            self.now += 1;
            return;
        }
        let (begin, first) = (self.begin, 1 << self.group_bits);
        self.stores.stamps.iter_mut().for_each(|stamp| *stamp = if *stamp >= begin { first } else { 0 });
        self.loads.clear();
        self.others.clear();
        self.agreed.clear();
        self.clocks = None;
        (self.begin, self.now) = (first, 2);
        self.base = self.now << self.group_bits;
    }

    #[inline(always)]
    fn stamp(&self, group: u32) -> u32 {
        self.now << self.group_bits | group
    }

    #[inline(always)]
    fn group_mask(&self) -> u32 {
        (1 << self.group_bits) - 1
    }

    /// Returns whether two conditions are true for the access with this stamp. First, a group other than `group` made
    /// the access. Second, nothing orders the access before the next access of `group`.
    fn is_unordered(&self, stamp: u32, group: u32) -> bool {
        let of = stamp & self.group_mask();
        if stamp < self.base || of == group {
            return false;
        }
        let known = |clocks: &Clocks| clocks.known.get(group as usize)?.get(of as usize).copied();
        stamp >> self.group_bits >= self.clocks.as_ref().and_then(known).unwrap_or(0)
    }

    fn accessor(&self, (stamp, by): (u32, u32)) -> Accessor {
        let lane = by & ((1 << LANE_BITS) - 1);
        Accessor { group: stamp & self.group_mask(), lane, pc: by >> LANE_BITS }
    }

    fn cells(&self, address: u32, bytes: u32) -> Range<usize> {
        let last = u64::from(address) + u64::from(bytes.max(1)) - 1;
        (address >> self.cell_bits) as usize..(last >> self.cell_bits) as usize + 1
    }

    // `load` and the two functions after it record accesses of one lane.

    /// Records a lane's load of bytes. The bytes must exist.
    ///
    /// # Errors
    /// Returns the hazard if the load is an error. The load is then not recorded.
    pub fn load(&mut self, accessor: Accessor, address: u32, bytes: u32) -> Result<(), Hazard> {
        if address < self.given && !self.given_changed {
            return Ok(());
        }
        let group = accessor.group;
        let cells = self.cells(address, bytes);
        for cell in cells {
            let Some(&stamp) = self.stores.stamps.get(cell) else { return Err(Hazard::Unwritten) };
            if stamp < self.begin {
                return Err(Hazard::Unwritten);
            }
            if self.is_unordered(stamp, group) && !self.agrees(cell, group) {
                let earlier = self.accessor(self.stores.get(cell));
                return Err(Hazard::Race { earlier, stored: true });
            }
        }
        self.note_load(accessor, address, bytes);
        Ok(())
    }

    /// Records that a lane loads bytes. The function does not check for hazards.
    pub fn note_load(&mut self, accessor: Accessor, address: u32, bytes: u32) {
        let group = accessor.group;
        if self.groups > 1 {
            let (stamp, by) = (self.stamp(group), accessor.word());
            let cells = self.cells(address, bytes);
            for cell in cells.start..cells.end.min(self.loads.stamps.len()) {
                let before = self.loads.get(cell);
                // If the group has already loaded the cell at this time, the record does not change. So a repeated load
                // of the cell costs only a comparison.
                if before.0 == stamp {
                    continue;
                }
                if before.0 >= self.base && before.0 & self.group_mask() != group {
                    self.others.set(cell, before.0, before.1);
                }
                self.loads.set(cell, stamp, by);
            }
        }
    }

    /// Records a lane's store of bytes. The bytes must exist. `same` means that the store does not change the value of
    /// the bytes.
    ///
    /// # Errors
    /// Returns the hazard if the store is an error. The store is then not recorded.
    pub fn store(&mut self, accessor: Accessor, address: u32, bytes: u32, same: bool) -> Result<(), Hazard> {
        let group = accessor.group;
        let cells = self.cells(address, bytes);
        if self.groups > 1 {
            cells.clone().try_for_each(|cell| self.may_store(cell, group, same))?;
        }
        let (stamp, by) = (self.stamp(group), accessor.word());
        for cell in cells {
            let Some(&before) = self.stores.stamps.get(cell) else { continue };
            if self.groups > 1 && same && self.is_unordered(before, group) {
                let of = before & self.group_mask();
                let agreed = self.agreed.entry(cell as u32).or_insert(Agreed { groups: bit(of), stamp, by });
                (agreed.groups, agreed.stamp, agreed.by) = (agreed.groups | bit(group), stamp, by);
            } else {
                if !same {
                    self.agreed.remove(&(cell as u32));
                }
                self.stores.set(cell, stamp, by);
            }
        }
        self.given_changed |= address < self.given;
        Ok(())
    }

    fn may_store(&self, cell: usize, group: u32, same: bool) -> Result<(), Hazard> {
        let race = |access, stored| Err(Hazard::Race { earlier: self.accessor(access), stored });
        let Some(&store) = self.stores.stamps.get(cell) else { return Ok(()) };
        let unordered = self.is_unordered(store, group);
        if unordered && !same {
            return race(self.stores.get(cell), true);
        }
        let agreed = self.agreed.get(&(cell as u32));
        if let Some(agreed) = agreed.filter(|agreed| !same && self.is_unordered(agreed.stamp, group)) {
            return race((agreed.stamp, agreed.by), true);
        }
        let agreeing = agreed.map_or(0, |agreed| agreed.groups)
            | if unordered { bit(store & self.group_mask()) } else { 0 };
        for access in [self.loads.get(cell), self.others.get(cell)] {
            let agrees = same && agreeing & bit(access.0 & self.group_mask()) != 0;
            if !agrees && self.is_unordered(access.0, group) {
                return race(access, false);
            }
        }
        Ok(())
    }

    /// Returns whether a group has stored the value that the cell contains.
    fn agrees(&self, cell: usize, group: u32) -> bool {
        self.agreed.get(&(cell as u32)).is_some_and(|agreed| agreed.groups & bit(group) != 0)
    }

    // The following functions record accesses of the lanes of a row. `bits` is the set of lanes that access memory. The
    // set contains at least one lane. `accessor` describes the row's first lane.

    /// Records loads of `bytes` bytes per lane. Returns `false` if one of the loads is an error or may be outside the
    /// memory. After `false`, the caller calls [`Races::load`] for each lane. Some of these loads may already have been
    /// recorded. Recording a load again changes nothing.
    #[inline(always)]
    pub fn load_row<const N: usize>(
        &mut self,
        accessor: Accessor,
        addresses: &[u32; N],
        bits: u64,
        bytes: u32,
    ) -> bool {
        let (lowest, highest) = span(addresses, bits);
        if highest < self.given && !self.given_changed {
            return true;
        }
        if highest as usize + bytes as usize > self.stores.stamps.len() << self.cell_bits {
            return false;
        }
        if lowest == highest {
            return self.load(accessor.lowest(bits), lowest, bytes).is_ok();
        }
        if lowest >= self.given && bytes <= 1 << self.cell_bits {
            let done = match self.contiguous(addresses, bits, bytes) {
                Some(first) => self.load_cells::<N>(accessor, first, bits),
                None => self.load_each(accessor, addresses, bits),
            };
            if done {
                return true;
            }
        }
        lanes(bits).all(|lane| self.load(accessor.at(lane), addresses[lane], bytes).is_ok())
    }

    /// Records stores of `bytes` bytes per lane. Returns `false` if one of the stores is an error or may be outside the
    /// memory. Also returns `false` if a store changes bytes that the launch initializes, or may agree with stores of
    /// other groups. After `false`, the caller calls [`Races::store`] for each lane. Some of these stores may already
    /// have been recorded. Recording a store again changes nothing.
    #[inline(always)]
    pub fn store_row<const N: usize>(
        &mut self,
        accessor: Accessor,
        addresses: &[u32; N],
        bits: u64,
        bytes: u32,
    ) -> bool {
        let (lowest, highest) = span(addresses, bits);
        let beyond = highest as usize + bytes as usize > self.stores.stamps.len() << self.cell_bits;
        if lowest < self.given || beyond || !self.agreed.is_empty() {
            return false;
        }
        if lowest == highest {
            return self.store(accessor.highest(bits), lowest, bytes, false).is_ok();
        }
        if bytes <= 1 << self.cell_bits {
            let done = match self.contiguous(addresses, bits, bytes) {
                Some(first) => self.store_cells::<N>(accessor, first, bits),
                None => self.store_each(accessor, addresses, bits),
            };
            if done {
                return true;
            }
        }
        lanes(bits).all(|lane| self.store(accessor.at(lane), addresses[lane], bytes, false).is_ok())
    }

    /// Returns the index of the row's first cell, if all cells of the row exist and lane n accesses cell n of the row.
    #[inline(always)]
    fn contiguous<const N: usize>(&self, addresses: &[u32; N], bits: u64, bytes: u32) -> Option<usize> {
        if self.cell_bits != 2 || bytes != 4 {
            return None;
        }
        let lowest = bits.trailing_zeros() as usize % N;
        let start = addresses[lowest].checked_sub(4 * lowest as u32)?;
        let mut elsewhere = 0;
        for lane in 0..N {
            let member = if bits >> lane & 1 != 0 { u32::MAX } else { 0 };
            elsewhere |= (addresses[lane] ^ start.wrapping_add(4 * lane as u32)) & member;
        }
        let first = start as usize / 4;
        (elsewhere == 0 && first + N <= self.stores.stamps.len()).then_some(first)
    }

    #[inline(always)]
    fn load_cells<const N: usize>(&mut self, accessor: Accessor, first: usize, bits: u64) -> bool {
        let (begin, base, own) = (self.begin, self.base, self.stamp(accessor.group));
        let (mask, members) = (self.group_mask(), members::<N>(bits));
        let stores: &[u32; N] = row(&self.stores.stamps, first);
        let mut findings = 0;
        for lane in 0..N {
            let stamp = stores[lane];
            let finding = (stamp < begin) | is_foreign(stamp, base, own, mask);
            findings |= if finding { members[lane] } else { 0 };
        }
        if findings != 0 {
            return false;
        }
        if self.groups > 1 {
            let (loads, others) = (&mut self.loads, &mut self.others);
            let (stamps, bys) = (row_mut::<N>(&mut loads.stamps, first), row_mut::<N>(&mut loads.by, first));
            let other_stamps = row_mut::<N>(&mut others.stamps, first);
            let other_bys = row_mut::<N>(&mut others.by, first);
            let by = accessor.word();
            for lane in 0..N {
                let member = (members[lane] != 0) & (stamps[lane] != own);
                let foreign = is_foreign(stamps[lane], base, own, mask) & member;
                other_stamps[lane] = if foreign { stamps[lane] } else { other_stamps[lane] };
                other_bys[lane] = if foreign { bys[lane] } else { other_bys[lane] };
                stamps[lane] = if member { own } else { stamps[lane] };
                bys[lane] = if member { by | lane as u32 } else { bys[lane] };
            }
        }
        true
    }

    /// Records loads of one cell per lane, at any addresses.
    #[inline(always)]
    fn load_each<const N: usize>(&mut self, accessor: Accessor, addresses: &[u32; N], bits: u64) -> bool {
        let (begin, base, own) = (self.begin, self.base, self.stamp(accessor.group));
        let (mask, by, shift) = (self.group_mask(), accessor.word(), self.cell_bits);
        let stores = &self.stores.stamps[..];
        let mut finding = false;
        for lane in lanes(bits) {
            let stamp = stores[(addresses[lane % N] >> shift) as usize];
            finding |= (stamp < begin) | is_foreign(stamp, base, own, mask);
        }
        if finding {
            return false;
        }
        if self.groups > 1 {
            let Races { loads, others, .. } = self;
            for lane in lanes(bits) {
                let cell = (addresses[lane % N] >> shift) as usize;
                let stamp = loads.stamps[cell];
                if stamp != own {
                    if is_foreign(stamp, base, own, mask) {
                        others.set(cell, stamp, loads.by[cell]);
                    }
                    loads.set(cell, own, by | lane as u32);
                }
            }
        }
        true
    }

    /// Records stores of one cell per lane, at any addresses.
    #[inline(always)]
    fn store_each<const N: usize>(&mut self, accessor: Accessor, addresses: &[u32; N], bits: u64) -> bool {
        let (base, own) = (self.base, self.stamp(accessor.group));
        let (mask, by, shift) = (self.group_mask(), accessor.word(), self.cell_bits);
        if self.groups > 1 {
            let Races { stores, loads, others, .. } = self;
            let mut finding = false;
            for lane in lanes(bits) {
                let cell = (addresses[lane % N] >> shift) as usize;
                finding |= is_foreign(stores.stamps[cell], base, own, mask)
                    | is_foreign(loads.stamps[cell], base, own, mask)
                    | is_foreign(others.stamps[cell], base, own, mask);
            }
            if finding {
                return false;
            }
        }
        for lane in lanes(bits) {
            self.stores.set((addresses[lane % N] >> shift) as usize, own, by | lane as u32);
        }
        true
    }

    #[inline(always)]
    fn store_cells<const N: usize>(&mut self, accessor: Accessor, first: usize, bits: u64) -> bool {
        let (base, own) = (self.base, self.stamp(accessor.group));
        let (mask, members) = (self.group_mask(), members::<N>(bits));
        if self.groups > 1 {
            let stores: &[u32; N] = row(&self.stores.stamps, first);
            let loads: &[u32; N] = row(&self.loads.stamps, first);
            let others: &[u32; N] = row(&self.others.stamps, first);
            let mut findings = 0;
            for lane in 0..N {
                let finding = is_foreign(stores[lane], base, own, mask)
                    | is_foreign(loads[lane], base, own, mask)
                    | is_foreign(others[lane], base, own, mask);
                findings |= if finding { members[lane] } else { 0 };
            }
            if findings != 0 {
                return false;
            }
        }
        let by = accessor.word();
        let (stamps, bys) =
            (row_mut::<N>(&mut self.stores.stamps, first), row_mut::<N>(&mut self.stores.by, first));
        for lane in 0..N {
            let member = members[lane] != 0;
            stamps[lane] = if member { own } else { stamps[lane] };
            bys[lane] = if member { by | lane as u32 } else { bys[lane] };
        }
        true
    }
}

impl Accessor {
    /// Returns the element of [`Stamps::by`] for this accessor. The element is the address of the instruction, with the
    /// lane in the low bits.
    #[inline(always)]
    fn word(self) -> u32 {
        self.pc << LANE_BITS | self.lane
    }

    #[inline(always)]
    fn at(self, lane: usize) -> Accessor {
        Accessor { lane: self.lane + lane as u32, ..self }
    }

    /// Returns the accessor for the lowest lane of a set.
    #[inline(always)]
    fn lowest(self, bits: u64) -> Accessor {
        self.at(bits.trailing_zeros() as usize)
    }

    /// Returns the accessor for the highest lane of a set.
    #[inline(always)]
    fn highest(self, bits: u64) -> Accessor {
        self.at(63 - bits.leading_zeros().min(63) as usize)
    }
}

/// Returns whether a stamp is at least `base` and belongs to another group. `own` is a stamp of the group that accesses
/// the cell.
#[inline(always)]
fn is_foreign(stamp: u32, base: u32, own: u32, group_mask: u32) -> bool {
    (stamp >= base) & ((stamp ^ own) & group_mask != 0)
}

fn bit(group: u32) -> u64 {
    1 << (group % 64)
}

fn merge(known: &mut Vec<u32>, other: &[u32]) {
    known.resize(known.len().max(other.len()), 0);
    known.iter_mut().zip(other).for_each(|(known, other)| *known = (*known).max(*other));
}

#[inline(always)]
fn row<const N: usize>(cells: &[u32], first: usize) -> &[u32; N] {
    cells[first..].first_chunk().expect("the cells of the row exist")
}

#[inline(always)]
fn row_mut<const N: usize>(cells: &mut [u32], first: usize) -> &mut [u32; N] {
    cells[first..].first_chunk_mut().expect("the cells of the row exist")
}

/// Returns one word per lane. In the words of the lanes of a set, all bits are set. In the words of other lanes, all
/// bits are clear.
#[inline(always)]
fn members<const N: usize>(bits: u64) -> [u32; N] {
    crate::wide::spread(bits)
}

#[inline(always)]
fn lanes(bits: u64) -> impl Iterator<Item = usize> {
    crate::mask::members(bits)
}

/// Returns the lowest and the highest address in the lanes of a set.
#[inline(always)]
fn span<const N: usize>(addresses: &[u32; N], bits: u64) -> (u32, u32) {
    let members = members::<N>(bits);
    let (mut lowest, mut highest) = (u32::MAX, 0);
    for lane in 0..N {
        lowest = lowest.min(addresses[lane] | !members[lane]);
        highest = highest.max(addresses[lane] & members[lane]);
    }
    (lowest, highest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by(group: u32) -> Accessor {
        Accessor { group, lane: 3, pc: 8 * group }
    }

    fn block(groups: u32) -> Races {
        let mut races = Races::default();
        races.begin(groups, 64, 0, false, true);
        races
    }

    fn race(group: u32, stored: bool) -> Result<(), Hazard> {
        Err(Hazard::Race { earlier: by(group), stored })
    }

    #[test]
    fn a_floor_orders_everything_before_it() {
        let mut races = block(3);
        assert_eq!(races.load(by(0), 4, 4), Err(Hazard::Unwritten));
        assert_eq!(races.store(by(0), 4, 4, false), Ok(()));
        assert_eq!(races.load(by(0), 4, 4), Ok(()));
        assert_eq!(races.load(by(1), 4, 4), race(0, true));
        assert_eq!(races.store(by(2), 4, 4, false), race(0, true));
        races.floor();
        assert_eq!(races.load(by(1), 4, 4), Ok(()));
        assert_eq!(races.load(by(2), 4, 4), Ok(()));
        // The two recorded loads are those of groups 1 and 2. Each store races with the load of the other group.
        assert_eq!(races.store(by(2), 4, 4, false), race(1, false));
        assert_eq!(races.store(by(1), 4, 4, false), race(2, false));
    }

    #[test]
    fn a_point_orders_those_who_acquire_it() {
        let mut races = block(3);
        assert_eq!(races.store(by(0), 0, 4, false), Ok(()));
        races.release(0, 7);
        assert_eq!(races.store(by(0), 8, 4, false), Ok(()));
        races.acquire(1, 7);
        assert_eq!(races.load(by(1), 0, 4), Ok(()));
        assert_eq!(races.load(by(1), 8, 4), race(0, true), "stored after the release");
        assert_eq!(races.load(by(2), 0, 4), race(0, true), "did not acquire");
        // Orders are transitive. If a is before b, and b is before c, then a is before c.
        races.release(1, 9);
        races.acquire(2, 9);
        assert_eq!(races.load(by(2), 0, 4), Ok(()));
    }

    #[test]
    fn rows_note_what_their_lanes_note() {
        let mut random = crate::random::Random::new(7);
        let mut next = move |below: u32| u64::from(random.below(below));
        let (mut rows, mut lane_by_lane) = (Races::default(), Races::default());
        for races in [&mut rows, &mut lane_by_lane] {
            races.begin(4, 1024, 8, false, true);
        }
        let mut findings = 0;
        for _ in 0..20_000 {
            let (group, kind) = (next(4) as u32, next(4));
            let (start, turn) = (4 * next(200) as u32, next(16) as u32);
            let addresses: [u32; 16] = std::array::from_fn(|lane| match kind {
                0 => start.min(960) + 4 * lane as u32,
                1 => start,
                _ => start.min(960) + 4 * (lane as u32 ^ turn),
            });
            let bits = if next(2) == 0 { 0xffff } else { next(0xffff) + 1 };
            let accessor = Accessor { group, lane: 0, pc: 8 };
            let store = next(3) == 0;
            let mut each = true;
            for lane in lanes(bits) {
                let found = match store {
                    true => lane_by_lane.store(accessor.at(lane), addresses[lane], 4, false),
                    false => lane_by_lane.load(accessor.at(lane), addresses[lane], 4),
                };
                if found.is_err() {
                    each = false;
                    break;
                }
            }
            let row = match store {
                true => rows.store_row(accessor, &addresses, bits, 4),
                false => rows.load_row(accessor, &addresses, bits, 4),
            };
            if row {
                assert!(each);
            } else {
                findings += 1;
                // Record the accesses of one lane after another, up to the first lane with a hazard. The callers of the
                // functions for rows also record accesses in this way.
                for lane in lanes(bits) {
                    let found = match store {
                        true => rows.store(accessor.at(lane), addresses[lane], 4, false),
                        false => rows.load(accessor.at(lane), addresses[lane], 4),
                    };
                    if found.is_err() {
                        break;
                    }
                }
            }
            assert_eq!(rows, lane_by_lane);
            if next(8) == 0 {
                rows.floor();
                lane_by_lane.floor();
            }
        }
        assert!((1000..19_000).contains(&findings), "{findings}");
    }

    #[test]
    fn used_up_stamps_leave_what_is_written_and_ordered() {
        let mut races = block(2);
        assert_eq!(races.store(by(0), 4, 4, false), Ok(()));
        races.now = u32::MAX >> races.group_bits;
        races.floor();
        assert_eq!(races.load(by(1), 4, 4), Ok(()));
        assert_eq!(races.load(by(1), 8, 4), Err(Hazard::Unwritten));
        assert_eq!(races.store(by(0), 4, 4, false), race(1, false));
        races.begin(2, 64, 0, false, true);
        assert_eq!(races.load(by(1), 4, 4), Err(Hazard::Unwritten), "of another block");
    }
}
