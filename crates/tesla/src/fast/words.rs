//! Loads and stores of words as most warps make them: each lane its word in a row, one word for all, or each lane a word
//! of its own, in bytes that are all there.
//!
//! Whatever else there is ([`super::memory`]) and whatever is refused here goes there: other sizes, bytes in
//! several buffers or beyond an end, a view that records what is read and written.

use reconverge_simt::level::{Kind as LevelKind, Level};
use reconverge_simt::memory::Picked;
use reconverge_simt::wide::{Baseline, Wide};

use super::lanes::Lanes;
use super::memory::{Kind, Transfer, gather, scatter};
use crate::flow::WARP;
use crate::inst::{Base, Space};
use crate::spaces::Shared;

/// What loads and stores reach besides rows and s[]. Behind a pointer, so that a chain is compiled once for all kinds of
/// memory.
pub(super) trait Reach {
    /// The bytes of a segment of g[] from `first` to `last`, as [`Store::reading`](reconverge_simt::memory::Store::reading)
    /// gives them.
    fn reading(&mut self, segment: u8, first: u32, last: u32, picked: Picked<'_>) -> Option<&[u8]>;

    /// These bytes as [`Store::writing`](reconverge_simt::memory::Store::writing) gives them.
    fn writing(&mut self, segment: u8, first: u32, last: u32, picked: Picked<'_>) -> Option<&mut [u8]>;

    /// The bytes of a constant bank.
    fn constants(&self, bank: u8) -> &[u8];

    /// The l[] of all lanes, one behind another, and the size of each.
    fn local(&mut self) -> (&mut [u8], u32);

    /// Any transfer; `false` if some lane cannot, and then nothing has changed but what the reference interpreter, which
    /// executes the instruction then, changes in the same way.
    fn transfer(&mut self, lanes: &mut Lanes<'_>, transfer: &Transfer) -> bool;
}

/// The code of a transfer, as [`Reach::transfer`]. Calling it is sound on a processor that has the level it was made for.
pub(super) type Mover = unsafe fn(&mut Lanes<'_>, &mut dyn Reach, &Transfer) -> bool;

/// The code of a transfer.
pub(super) fn mover(kind: Kind, space: Space, bytes: u32, level: Level) -> Mover {
    match (kind, space, bytes) {
        (Kind::Load { .. }, Space::Shared, 4) => of::<Words<SHARED, false>>(level),
        (Kind::Load { .. }, Space::Const(_), 4) => of::<Words<CONSTANT, false>>(level),
        (Kind::Load { .. }, Space::Local, 4) => of::<Words<LOCAL, false>>(level),
        (Kind::Load { .. }, Space::Global(_), 4) => of::<Words<GLOBAL, false>>(level),
        (Kind::Store { .. }, Space::Shared, 4) => of::<Words<SHARED, true>>(level),
        (Kind::Store { .. }, Space::Local, 4) => of::<Words<LOCAL, true>>(level),
        (Kind::Store { .. }, Space::Global(_), 4) => of::<Words<GLOBAL, true>>(level),
        _ => |lanes, memory, transfer| memory.transfer(lanes, transfer),
    }
}

const SHARED: u8 = 0;
const CONSTANT: u8 = 1;
const LOCAL: u8 = 2;
const GLOBAL: u8 = 3;

/// A kind of transfer, to be compiled for a level.
trait Moves {
    fn run<W: Wide>(wide: W, lanes: &mut Lanes<'_>, memory: &mut dyn Reach, transfer: &Transfer) -> bool;
}

/// The code of a kind of transfer for a level.
fn of<M: Moves>(level: Level) -> Mover {
    unsafe fn baseline<M: Moves>(lanes: &mut Lanes<'_>, memory: &mut dyn Reach, transfer: &Transfer) -> bool {
        M::run(Baseline, lanes, memory, transfer)
    }
    reconverge_simt::for_avx2! {
        unsafe fn avx2<M: Moves>(lanes: &mut Lanes<'_>, memory: &mut dyn Reach, transfer: &Transfer) -> bool {
            // SAFETY: a mover is called only on a processor that has its level.
            M::run(unsafe { reconverge_simt::wide::Avx2::assume() }, lanes, memory, transfer)
        }
    }
    reconverge_simt::for_avx512! {
        unsafe fn avx512<M: Moves>(lanes: &mut Lanes<'_>, memory: &mut dyn Reach, transfer: &Transfer) -> bool {
            // SAFETY: a mover is called only on a processor that has its level.
            M::run(unsafe { reconverge_simt::wide::Avx512::assume() }, lanes, memory, transfer)
        }
    }
    match level.kind() {
        LevelKind::Baseline => baseline::<M>,
        #[cfg(target_arch = "x86_64")]
        LevelKind::Avx2 => avx2::<M>,
        #[cfg(target_arch = "x86_64")]
        LevelKind::Avx512 => avx512::<M>,
        #[cfg(not(target_arch = "x86_64"))]
        LevelKind::Avx2 | LevelKind::Avx512 => baseline::<M>,
    }
}

/// A word a lane, of a space; stored, or loaded.
struct Words<const SPACE: u8, const STORE: bool>;

impl<const SPACE: u8, const STORE: bool> Moves for Words<SPACE, STORE> {
    #[inline(always)]
    fn run<W: Wide>(_: W, lanes: &mut Lanes<'_>, memory: &mut dyn Reach, transfer: &Transfer) -> bool {
        let set = usize::from(transfer.set & 1);
        if lanes.set(set).bits == 0 {
            return true;
        }
        if Self::quick(lanes, memory, transfer).is_some() {
            return true;
        }
        memory.transfer(lanes, transfer)
    }
}

impl<const SPACE: u8, const STORE: bool> Words<SPACE, STORE> {
    #[inline(always)]
    fn quick(lanes: &mut Lanes<'_>, memory: &mut dyn Reach, transfer: &Transfer) -> Option<()> {
        let offset = transfer.mem.offset as u32;
        match (transfer.base, transfer.mem.base) {
            (Some(place), _) => {
                let base = lanes.row(place);
                Self::moved(lanes, memory, transfer, |lane| base[lane].wrapping_add(offset) & !3)
            }
            (None, Base::A(register)) => {
                let base = lanes.a(register);
                Self::moved(lanes, memory, transfer, |lane| {
                    u32::from(base[lane].wrapping_add(offset as u16)) & !3
                })
            }
            (None, Base::R(_)) => None,
        }
    }

    #[inline(always)]
    fn moved(
        lanes: &mut Lanes<'_>,
        memory: &mut dyn Reach,
        transfer: &Transfer,
        address: impl Fn(usize) -> u32,
    ) -> Option<()> {
        let set = usize::from(transfer.set & 1);
        let bits = lanes.set(set).bits;
        let members = lanes.row(lanes.tables.sets[set]);
        let first = bits.trailing_zeros() as usize & 31;
        let at = address(first);
        let start = at.wrapping_sub(4 * first as u32);
        let row = transfer.rows[0];
        if SPACE != LOCAL && all(&members, |lane| address(lane) ^ start.wrapping_add(4 * lane as u32)) {
            let last = start.checked_add(4 * WARP as u32 - 1)?;
            if STORE {
                let values = lanes.row(row);
                let bytes = Self::writable(lanes.shared, memory, transfer, (start, last), Picked::Row(bits))?;
                let window = bytes.first_chunk_mut::<{ 4 * WARP }>()?.as_chunks_mut::<4>().0;
                for lane in 0..WARP {
                    let kept = u32::from_le_bytes(window[lane]) & !members[lane];
                    window[lane] = (values[lane] & members[lane] | kept).to_le_bytes();
                }
            } else {
                let bytes = Self::readable(lanes.shared, memory, transfer, (start, last), Picked::Row(bits))?;
                let window = bytes.first_chunk::<{ 4 * WARP }>()?.as_chunks::<4>().0;
                let mut values = [0; WARP];
                for lane in 0..WARP {
                    values[lane] = u32::from_le_bytes(window[lane]);
                }
                lanes.write(row, transfer.set, values);
            }
            return Some(());
        }
        if all(&members, |lane| address(lane) ^ at) {
            return Self::at_one(lanes, memory, transfer, at, bits);
        }
        if SPACE == LOCAL {
            return None;
        }
        let (mut lowest, mut highest) = (u32::MAX, 0);
        for lane in 0..WARP {
            lowest = lowest.min(address(lane) | !members[lane]);
            highest = highest.max(address(lane) & members[lane]);
        }
        let mut offsets = [0; WARP];
        for lane in 0..WARP {
            offsets[lane] = address(lane).wrapping_sub(lowest) & members[lane];
        }
        let last = highest.checked_add(3)?;
        if STORE {
            let values = lanes.row(row);
            let bytes = Self::writable(
                lanes.shared,
                memory,
                transfer,
                (lowest, last),
                Picked::Each(&offsets, bits, 4),
            )?;
            scatter(bytes, &offsets, bits, |lane| values[lane].to_le_bytes());
        } else {
            let bytes = Self::readable(
                lanes.shared,
                memory,
                transfer,
                (lowest, last),
                Picked::Each(&offsets, bits, 4),
            )?;
            let values = gather(bytes, &offsets, u32::from_le_bytes);
            lanes.write(row, transfer.set, values);
        }
        Some(())
    }

    /// One address for all lanes. The last one's word remains where they store; in l[] each has its own.
    #[inline(always)]
    fn at_one(
        lanes: &mut Lanes<'_>,
        memory: &mut dyn Reach,
        transfer: &Transfer,
        at: u32,
        bits: u32,
    ) -> Option<()> {
        let row = transfer.rows[0];
        if SPACE == LOCAL {
            let (bytes, each) = memory.local();
            if at.checked_add(4)? > each {
                return None;
            }
            let mut offsets = [0; WARP];
            for lane in 0..WARP {
                offsets[lane] = at + each * lane as u32;
            }
            if STORE {
                let values = lanes.row(row);
                scatter(bytes, &offsets, bits, |lane| values[lane].to_le_bytes());
            } else {
                let values = gather(bytes, &offsets, u32::from_le_bytes);
                lanes.write(row, transfer.set, values);
            }
            return Some(());
        }
        let last = at.checked_add(3)?;
        if STORE {
            let value = lanes.row(row)[31 - (bits.leading_zeros() as usize & 31)];
            let bytes = Self::writable(lanes.shared, memory, transfer, (at, last), Picked::All)?;
            *bytes.first_chunk_mut()? = value.to_le_bytes();
        } else {
            let bytes = Self::readable(lanes.shared, memory, transfer, (at, last), Picked::All)?;
            let value = u32::from_le_bytes(*bytes.first_chunk()?);
            lanes.write(row, transfer.set, [value; WARP]);
        }
        Some(())
    }

    /// The bytes of the space from one to another, for loads.
    #[inline(always)]
    fn readable<'b>(
        shared: &'b Shared,
        memory: &'b mut dyn Reach,
        transfer: &Transfer,
        (first, last): (u32, u32),
        picked: Picked<'_>,
    ) -> Option<&'b [u8]> {
        match (SPACE, transfer.mem.space) {
            (SHARED, _) => shared.bytes().get(first as usize..last as usize + 1),
            (CONSTANT, Space::Const(bank)) => memory.constants(bank).get(first as usize..last as usize + 1),
            (GLOBAL, Space::Global(segment)) => memory.reading(segment, first, last, picked),
            _ => None,
        }
    }

    /// These bytes for stores.
    #[inline(always)]
    fn writable<'b>(
        shared: &'b mut Shared,
        memory: &'b mut dyn Reach,
        transfer: &Transfer,
        (first, last): (u32, u32),
        picked: Picked<'_>,
    ) -> Option<&'b mut [u8]> {
        match (SPACE, transfer.mem.space) {
            (SHARED, _) => shared.bytes_mut().get_mut(first as usize..last as usize + 1),
            (GLOBAL, Space::Global(segment)) => memory.writing(segment, first, last, picked),
            _ => None,
        }
    }
}

/// Whether a word is zero for all lanes of a set.
#[inline(always)]
fn all(members: &[u32; WARP], word: impl Fn(usize) -> u32) -> bool {
    let mut elsewhere = 0;
    for lane in 0..WARP {
        elsewhere |= word(lane) & members[lane];
    }
    elsewhere == 0
}
