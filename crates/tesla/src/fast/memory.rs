//! Loads, stores and atomic operations of a warp, lane by lane.
//!
//! This module executes the loads and stores for which [`super::words`] has no fast path. Some of these loads and
//! stores access bytes in several buffers. Others access a view of memory that must be notified of each access, c[]
//! past its end, or inputs of stages. Tests compare the fast paths with the functions of this module. For an atomic
//! operation, this module looks up the bytes of all lanes once, and then executes the operation lane by lane.
//!
//! If a transfer fails, the reference interpreter executes the whole instruction from the first lane on. It repeats any
//! change that the transfer has made. A load writes no register before all lanes have loaded their values. If a store
//! fails at a lane, the reference interpreter starts at the first lane and stores the bytes of the earlier lanes again.
//! An atomic operation or a lock begins only after the address of every lane is known.

use reconverge_simt::Mode;
use reconverge_simt::level::Task;
use reconverge_simt::memory::{Picked, Store};
use reconverge_simt::wide::Wide;

use super::bodies::members;
use super::lanes::Lanes;
use super::operands::Place;
use super::words::{Kind, Transfer, addresses, greatest};
use crate::access::extended;
use crate::context::Context;
use crate::flow::WARP;
use crate::inst::{Chip, Space};
use crate::lane::atomic::{Atomic, Atomic64, atomic32, atomic64};
use crate::lane::interpolate::Position;
use crate::reference::truth;

type Row = [u32; WARP];

/// The words of an access, one row each.
type RowsOfValue = [Row; 4];

/// A transfer for the lanes of a set. The transfer is a task that returns `false` if some lane cannot execute the
/// transfer.
pub(super) struct Move<'a, 'w, G> {
    pub(super) context: &'a Context,
    pub(super) lanes: &'a mut Lanes<'w>,
    pub(super) global: &'a mut G,
    pub(super) transfer: &'a Transfer,
}

impl<G: Store> Task for Move<'_, '_, G> {
    type Output = bool;

    #[inline(always)]
    fn run<W: Wide>(mut self, wide: W) -> bool {
        let &Transfer { kind, mem, rows, upper, set, .. } = self.transfer;
        let bits = self.lanes.set(set);
        if bits == 0 {
            return true;
        }
        let (addresses, members) = (addresses(self.lanes, self.transfer), self.lanes.members(set));
        let warp = Warp { addresses, members, bits };
        let pair = [rows[0], upper[0]];
        let done = match kind {
            Kind::LoadLock => {
                self.load_lock(&warp).map(|values| self.write(wide, [rows[0], rows[1]], values))
            }
            Kind::StoreUnlock { shift } => self.store_unlock(&warp, shift),
            Kind::Atomic { atomic, signed } => {
                self.atomic(&warp, atomic, signed).map(|values| self.write(wide, [rows[0]], [values]))
            }
            Kind::Atomic64(atomic) => {
                self.atomic64(&warp, atomic).map(|values| self.write(wide, pair, values))
            }
            Kind::Load { .. } | Kind::Store { .. } => None,
        };
        let each = || {
            let values = self.each(&warp)?;
            let places = match kind {
                Kind::Load { .. } => &rows[..mem.access.bytes().div_ceil(4) as usize],
                Kind::Atomic { .. } => &rows[..1],
                Kind::Atomic64(_) => &pair,
                Kind::Store { .. } | Kind::LoadLock | Kind::StoreUnlock { .. } => &[],
            };
            for (place, values) in places.iter().zip(values) {
                self.write(wide, [*place], [values]);
            }
            Some(())
        };
        done.or_else(each).is_some()
    }
}

impl<G: Store> Move<'_, '_, G> {
    /// Writes the loaded values to their rows.
    #[inline(always)]
    fn write<W: Wide, const N: usize>(&mut self, wide: W, places: [Place; N], values: [Row; N]) {
        for number in 0..N {
            self.lanes.write(wide, places[number], self.transfer.set, values[number]);
        }
    }

    /// Executes an atomic operation lane by lane, in ascending order. The bytes of all lanes must exist.
    #[inline(always)]
    fn atomic(&mut self, warp: &Warp, atomic: Atomic, signed: bool) -> Option<Row> {
        let Move { context, lanes, global, transfer, .. } = self;
        let Space::Global(number) = transfer.mem.space else { return None };
        let (first, highest) = warp.span();
        let offsets = warp.offsets(first);
        let (at, count) = place(context, number, first, highest.checked_add(4 - 1)?)?;
        let bytes = global.changing(at, count, Picked::Each(&offsets, warp.bits, 4))?;
        let [src2, src3] = [lanes.row(transfer.rows[1]), lanes.row(transfer.rows[2])];
        let before_g200 = before_g200(context);
        // The code has one loop for each operation. A single loop that selects the operation per lane would take three
        // times as long.
        macro_rules! with_loops_for {
            ($($name:ident)*) => {
                match atomic {
                    $(Atomic::$name => each_word(bytes, &offsets, warp.bits, |lane, old| {
                        atomic32(Atomic::$name, signed, before_g200, old, src2[lane], src3[lane])
                    }),)*
                }
            };
        }
        Some(with_loops_for! { Add Exch Cas Inc Dec Max Min And Or Xor })
    }

    /// Executes [`Move::atomic`] with two words per lane.
    #[inline(always)]
    fn atomic64(&mut self, warp: &Warp, atomic: Atomic64) -> Option<[Row; 2]> {
        let Move { context, lanes, global, transfer, .. } = self;
        let Space::Global(number) = transfer.mem.space else { return None };
        let (first, highest) = warp.span();
        let offsets = warp.offsets(first);
        let (at, count) = place(context, number, first, highest.checked_add(8 - 1)?)?;
        let bytes = global.changing(at, count, Picked::Each(&offsets, warp.bits, 8))?;
        let sources = Pairs::of(lanes, transfer);
        let mut values = [[0; WARP]; 2];
        for lane in members(warp.bits) {
            let word = bytes.get_mut(offsets[lane] as usize..)?.first_chunk_mut()?;
            let old = u64::from_le_bytes(*word);
            (values[0][lane], values[1][lane]) = (old as u32, (old >> 32) as u32);
            *word = sources.combined(atomic, old, lane).to_le_bytes();
        }
        Some(values)
    }

    /// Loads words and takes the locks of the words, lane by lane, in ascending order. If several lanes load the same
    /// word, the first of these lanes gets the word's lock. If some lane's word does not exist, changes nothing.
    fn load_lock(&mut self, warp: &Warp) -> Option<[Row; 2]> {
        let Move { lanes, transfer, .. } = self;
        let access = transfer.mem.access;
        let first = lanes.warp * WARP as u32;
        let (mut values, mut flags) = ([0; WARP], [0; WARP]);
        for lane in members(warp.bits) {
            let raw = lanes.shared.read(warp.addresses[lane], access.bytes())?;
            values[lane] = extended(raw.into(), access) as u32;
        }
        for lane in members(warp.bits) {
            let locked = lanes.shared.lock(warp.addresses[lane] & !3, first + lane as u32);
            flags[lane] = truth(locked).bits().into();
        }
        Some([values, flags])
    }

    /// Stores words and releases their locks lane by lane. Changes nothing unless the words of all lanes exist.
    fn store_unlock(&mut self, warp: &Warp, shift: u8) -> Option<()> {
        let Move { lanes, transfer, .. } = self;
        let bytes = transfer.mem.access.bytes();
        let values = lanes.row(transfer.rows[0]);
        for lane in members(warp.bits) {
            lanes.shared.read(warp.addresses[lane], bytes)?;
        }
        for lane in members(warp.bits) {
            lanes.shared.write(warp.addresses[lane], bytes, values[lane] >> (shift & 31))?;
            lanes.shared.unlock(warp.addresses[lane] & !3);
        }
        Some(())
    }

    /// Loads or stores lane by lane, and returns the loaded values.
    #[cold]
    #[inline(never)]
    fn each(&mut self, warp: &Warp) -> Option<RowsOfValue> {
        let Move { context, lanes, global, transfer } = self;
        let mut values = [[0; WARP]; 4];
        match transfer.kind {
            Kind::Load { position } => {
                load_each(context, lanes, *global, (transfer, position), warp, &mut values)?;
            }
            Kind::Store { shift } => store_each(context, lanes, *global, transfer, shift, warp)?,
            Kind::Atomic { atomic, signed } => {
                values[0] = atomic_each(context, lanes, *global, transfer, (atomic, signed), warp)?;
            }
            Kind::Atomic64(atomic) => {
                [values[0], values[1]] = atomic64_each(context, lanes, *global, transfer, atomic, warp)?;
            }
            Kind::LoadLock | Kind::StoreUnlock { .. } => return None,
        }
        Some(values)
    }
}

/// The 64-bit sources of an atomic operation, as pairs of rows.
struct Pairs {
    low: [Row; 2],
    high: [Row; 2],
}

impl Pairs {
    fn of(lanes: &Lanes<'_>, transfer: &Transfer) -> Self {
        let Transfer { rows, upper, .. } = transfer;
        Pairs {
            low: [lanes.row(rows[1]), lanes.row(rows[2])],
            high: [lanes.row(upper[1]), lanes.row(upper[2])],
        }
    }

    #[inline(always)]
    fn combined(&self, atomic: Atomic64, old: u64, lane: usize) -> u64 {
        let source =
            |number: usize| u64::from(self.low[number][lane]) | u64::from(self.high[number][lane]) << 32;
        atomic64(atomic, old, source(0), source(1))
    }
}

/// Returns whether the chip is older than G200. Older chips execute some signed operations differently.
fn before_g200(context: &Context) -> bool {
    matches!(context.setup.chip, Chip::G80 | Chip::G84)
}

/// Returns the address and the size in bytes of a range. The range is from offset `first` to offset `last` of a segment
/// of g[]. Returns `None` if some byte is outside the segment.
#[inline(always)]
pub(super) fn place(context: &Context, number: u8, first: u32, last: u32) -> Option<(u32, usize)> {
    let count = (last - first).checked_add(1)?;
    Some((context.segments.row(number, first, last)?, count as usize))
}

/// The lanes of a set that is not empty, and the address of each lane.
#[derive(Clone, Copy)]
struct Warp {
    addresses: Row,
    /// One word per lane: all ones if the lane is in the set, otherwise 0.
    members: Row,
    bits: u32,
}

impl Warp {
    /// Returns the lowest and the highest address.
    #[inline(always)]
    fn span(&self) -> (u32, u32) {
        let (mut lowest, mut highest) = (u32::MAX, 0);
        for lane in 0..WARP {
            lowest = lowest.min(self.addresses[lane] | !self.members[lane]);
            highest = highest.max(self.addresses[lane] & self.members[lane]);
        }
        (lowest, highest)
    }

    /// Returns the offset of each lane's address from the lowest address. For lanes outside the set, the offset is 0.
    #[inline(always)]
    fn offsets(&self, lowest: u32) -> Row {
        let mut offsets = [0; WARP];
        for lane in 0..WARP {
            offsets[lane] = self.addresses[lane].wrapping_sub(lowest) & self.members[lane];
        }
        offsets
    }
}

/// Replaces the word at the offset of each lane of the set, lane by lane. Returns the old words, and 0 for lanes
/// outside the set.
///
/// # Panics
/// An element extends past the end of the bytes.
#[inline(always)]
fn each_word(bytes: &mut [u8], offsets: &Row, bits: u32, new: impl Fn(usize, u32) -> u32) -> Row {
    let reach = greatest(offsets);
    assert!(reach as usize + 4 <= bytes.len(), "an element extends past the end of the bytes");
    let mut values = [0; WARP];
    for lane in members(bits) {
        // SAFETY: the assertion checks that no element extends past the end of the bytes.
        let word = unsafe { &mut *bytes.as_mut_ptr().add(offsets[lane] as usize).cast::<[u8; 4]>() };
        values[lane] = u32::from_le_bytes(*word);
        *word = new(lane, values[lane]).to_le_bytes();
    }
    values
}

/// Loads lane by lane.
fn load_each<G: Store>(
    context: &Context,
    lanes: &Lanes<'_>,
    global: &mut G,
    (transfer, position): (&Transfer, Position),
    Warp { addresses, bits, .. }: &Warp,
    values: &mut RowsOfValue,
) -> Option<()> {
    let (access, bytes) = (transfer.mem.access, transfer.mem.access.bytes());
    match transfer.mem.space {
        Space::Global(segment) => {
            for lane in members(*bits) {
                let raw = context.load_global(global, segment, addresses[lane], bytes)?;
                put(values, lane, extended(raw, access));
            }
        }
        Space::Const(bank) => {
            for lane in members(*bits) {
                let word = context.setup.constants.read(bank, addresses[lane], bytes);
                put(values, lane, extended(word.into(), access));
            }
        }
        Space::Attribute | Space::Varying => {
            for lane in members(*bits) {
                values[0][lane] = match (lanes.inputs.get(addresses[lane] as usize / 4), context.mode) {
                    (Some(Some(input)), _) => input.at(position).0[lane],
                    (_, Mode::Lenient) => 0,
                    (_, Mode::Strict) => return None,
                };
            }
        }
        // If a load from s[] or l[] has no fast path, the bytes of some lane do not exist.
        Space::Shared | Space::Local | Space::Primitive | Space::Output => return None,
    }
    Some(())
}

#[inline(always)]
fn put(values: &mut RowsOfValue, lane: usize, value: u128) {
    for (word, row) in values.iter_mut().enumerate() {
        row[lane] = (value >> (32 * word)) as u32;
    }
}

/// Stores lane by lane.
fn store_each<G: Store>(
    context: &Context,
    lanes: &Lanes<'_>,
    global: &mut G,
    transfer: &Transfer,
    shift: u8,
    Warp { addresses, bits, .. }: &Warp,
) -> Option<()> {
    let bytes = transfer.mem.access.bytes();
    let [a, b, c, d] = transfer.rows;
    let values = [lanes.row(a), lanes.row(b), lanes.row(c), lanes.row(d)];
    let value = |lane: usize| {
        let words = [3, 2, 1, 0].map(|word: usize| values[word][lane]);
        words.into_iter().fold(0, |value, word| value << 32 | u128::from(word)) >> shift
    };
    // If a store to s[] or l[] has no fast path, the bytes of some lane do not exist.
    let Space::Global(segment) = transfer.mem.space else { return None };
    for lane in members(*bits) {
        context.store_global(global, segment, addresses[lane], bytes, value(lane))?;
    }
    Some(())
}

/// Checks that the words of all lanes exist. Then executes an atomic operation lane by lane.
fn atomic_each<G: Store>(
    context: &Context,
    lanes: &Lanes<'_>,
    global: &mut G,
    transfer: &Transfer,
    (atomic, signed): (Atomic, bool),
    Warp { addresses, bits, .. }: &Warp,
) -> Option<Row> {
    let Space::Global(segment) = transfer.mem.space else { return None };
    for lane in members(*bits) {
        context.load_global(global, segment, addresses[lane], 4)?;
    }
    let [src2, src3] = [lanes.row(transfer.rows[1]), lanes.row(transfer.rows[2])];
    let mut values = [0; WARP];
    for lane in members(*bits) {
        let old = context.load_global(global, segment, addresses[lane], 4)? as u32;
        values[lane] = old;
        let new = atomic32(atomic, signed, before_g200(context), old, src2[lane], src3[lane]);
        context.store_global(global, segment, addresses[lane], 4, new.into())?;
    }
    Some(values)
}

/// Executes a 64-bit atomic operation lane by lane, like [`atomic_each`].
fn atomic64_each<G: Store>(
    context: &Context,
    lanes: &Lanes<'_>,
    global: &mut G,
    transfer: &Transfer,
    atomic: Atomic64,
    Warp { addresses, bits, .. }: &Warp,
) -> Option<[Row; 2]> {
    let Space::Global(segment) = transfer.mem.space else { return None };
    for lane in members(*bits) {
        context.load_global(global, segment, addresses[lane], 8)?;
    }
    let sources = Pairs::of(lanes, transfer);
    let mut values = [[0; WARP]; 2];
    for lane in members(*bits) {
        let old = context.load_global(global, segment, addresses[lane], 8)? as u64;
        (values[0][lane], values[1][lane]) = (old as u32, (old >> 32) as u32);
        let new = sources.combined(atomic, old, lane);
        context.store_global(global, segment, addresses[lane], 8, new.into())?;
    }
    Some(values)
}
