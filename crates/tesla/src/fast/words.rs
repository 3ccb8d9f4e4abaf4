//! Loads and stores of a warp, for accesses of all lanes to a single slice of bytes. There are three patterns. In the
//! first pattern, the lanes access consecutive words. In the second pattern, all lanes access one word. In the third
//! pattern, each lane accesses an element at a separate address.
//!
//! [`super::memory`] executes all other accesses lane by lane. Examples are accesses to bytes in several buffers, and
//! accesses past the end of a buffer. Another example is a view of memory that must be notified of each access.

use reconverge_simt::level::{Level, Task};
use reconverge_simt::memory::Picked;
use reconverge_simt::races::Accessor;
use reconverge_simt::wide::Wide;
use reconverge_simt::{Identity, by_level};

use super::bodies::members;
use super::lanes::Lanes;
use super::operands::Place;
use crate::flow::WARP;
use crate::inst::{Access, Base, Mem, Space};
use crate::lane::atomic::{Atomic, Atomic64};
use crate::lane::interpolate::Position;
use crate::spaces::{Shared, aligned};
use crate::state::local_place;

type Row = [u32; WARP];

/// A load, store or atomic operation.
#[derive(Clone, Debug)]
pub(super) struct Transfer {
    pub(super) kind: Kind,
    /// The memory operand, without post-increment.
    pub(super) mem: Mem,
    /// The row of the base address, if a `$r` register holds the base address.
    pub(super) base: Option<Place>,
    /// One row per word of the access. An atomic operation uses the first row for the old word. Each source has one
    /// further row.
    pub(super) rows: [Place; 4],
    /// For 64-bit atomic operations: the rows of the upper words. The lower words are in the first three `rows`.
    pub(super) upper: [Place; 3],
    /// The number of the set of lanes that execute the transfer.
    pub(super) set: u8,
    /// Address of the instruction.
    pub(super) pc: u32,
    /// The code of the transfer. The code handles the most common access patterns. [`Move`](super::memory::Move)
    /// handles all other patterns.
    pub(super) mover: Mover,
}

/// The direction of a transfer.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    /// Loads memory to rows. Inputs in a[] and v[] are evaluated at `position`.
    Load { position: Position },
    /// Stores rows to memory. If the source is a half register, the function shifts the row of the source right by
    /// `shift` before the store.
    Store { shift: u8 },
    /// Replaces a word of g[], and writes its old value to a row.
    Atomic { atomic: Atomic, signed: bool },
    /// Replaces two words of g[]. The [`Transfer::upper`] rows hold the upper words of the operands.
    Atomic64(Atomic64),
    /// Loads a word of s[]. Takes the lock of the word if the lock is free. The flags go to the second row.
    LoadLock,
    /// Stores a word of s[] and releases its lock.
    StoreUnlock { shift: u8 },
}

/// The memory that loads and stores access, except for rows and s[]. The code uses this trait as a trait object. The
/// compiler therefore compiles a chain of blocks once for all kinds of memory.
pub(super) trait Reach {
    /// Returns the bytes of a segment of g[] from `first` to `last`, like
    /// [`Store::reading`](reconverge_simt::memory::Store::reading).
    fn reading(&mut self, segment: u8, first: u32, last: u32, picked: Picked<'_>) -> Option<&[u8]>;

    /// Returns the bytes of a segment of g[] from `first` to `last` for writing, like
    /// [`Store::writing`](reconverge_simt::memory::Store::writing).
    fn writing(&mut self, segment: u8, first: u32, last: u32, picked: Picked<'_>) -> Option<&mut [u8]>;

    /// Returns the bytes of the buffer that contains `address` of a segment of g[], and the address of the first byte
    /// of the buffer, like [`Store::whole`](reconverge_simt::memory::Store::whole).
    fn whole(&mut self, segment: u8, address: u32, writes: bool) -> Option<(u32, *mut [u8])>;

    /// Returns the identity of the buffers that [`whole`](Self::whole) returns.
    fn layout(&self) -> Option<Identity>;

    /// Returns the bytes of a constant bank.
    fn constants(&self, bank: u8) -> &[u8];

    /// Returns the l[] of all lanes ([`local_place`]), and the size of the l[] of each lane in bytes.
    fn local(&self) -> (&[u8], u32);

    /// Returns the l[] of all lanes, for stores to offsets from `first` to `last` in the l[] of each lane.
    fn local_mut(&mut self, first: u32, last: u32) -> &mut [u8];

    /// Executes any transfer. If some lane cannot execute the transfer, this function returns `false`. The reference
    /// interpreter then executes the whole instruction again, including the changes that this function has made.
    fn transfer(&mut self, lanes: &mut Lanes<'_>, transfer: &Transfer) -> bool;
}

/// The code of a transfer, with the same result as [`Reach::transfer`]. A call is sound on a processor that has the
/// level for which the code is compiled.
pub(super) type Mover = unsafe fn(&mut Lanes<'_>, &mut dyn Reach, &Transfer) -> bool;

/// Returns the code of a transfer. If `checked` is set, the code checks accesses to s[] for races.
pub(super) fn mover(kind: Kind, space: Space, access: Access, level: Level, checked: bool) -> Mover {
    match (kind, space, access) {
        (Kind::Load { .. }, Space::Shared, Access::B32) if checked => of::<Checked<false, true>>(level),
        (Kind::Load { .. }, Space::Shared, _) if checked => of::<Checked<false, false>>(level),
        (Kind::Store { .. }, Space::Shared, Access::B32) if checked => of::<Checked<true, true>>(level),
        (Kind::Store { .. }, Space::Shared, _) if checked => of::<Checked<true, false>>(level),
        _ => unchecked(kind, space, access, level),
    }
}

fn unchecked(kind: Kind, space: Space, access: Access, level: Level) -> Mover {
    match access {
        Access::B32 => mover_of::<true>(kind, space, level),
        _ => mover_of::<false>(kind, space, level),
    }
}

fn mover_of<const WORD: bool>(kind: Kind, space: Space, level: Level) -> Mover {
    match (kind, space) {
        (Kind::Load { .. }, Space::Shared) => of::<Words<SHARED, false, WORD>>(level),
        (Kind::Load { .. }, Space::Const(_)) => of::<Words<CONSTANT, false, WORD>>(level),
        (Kind::Load { .. }, Space::Local) => of::<Words<LOCAL, false, WORD>>(level),
        (Kind::Load { .. }, Space::Global(_)) => of::<Words<GLOBAL, false, WORD>>(level),
        (Kind::Store { .. }, Space::Shared) => of::<Words<SHARED, true, WORD>>(level),
        (Kind::Store { .. }, Space::Local) => of::<Words<LOCAL, true, WORD>>(level),
        (Kind::Store { .. }, Space::Global(_)) => of::<Words<GLOBAL, true, WORD>>(level),
        _ => |lanes, memory, transfer| memory.transfer(lanes, transfer),
    }
}

const SHARED: u8 = 0;
const CONSTANT: u8 = 1;
const LOCAL: u8 = 2;
const GLOBAL: u8 = 3;

/// A kind of transfer that can be compiled for a level.
trait Moves {
    fn run<W: Wide>(wide: W, lanes: &mut Lanes<'_>, memory: &mut dyn Reach, transfer: &Transfer) -> bool;
}

/// Returns the code of a kind of transfer for a level. On a processor with AVX-512, the function returns the code for
/// AVX2 ([`Wide::eight`]). With this code, the program `table` takes 0.0360 s instead of 0.0451 s.
fn of<M: Moves>(level: Level) -> Mover {
    reconverge_simt::for_baseline! {
        unsafe fn baseline<M: Moves>(lanes: &mut Lanes<'_>, memory: &mut dyn Reach, transfer: &Transfer) -> bool {
            M::run(reconverge_simt::wide::Baseline, lanes, memory, transfer)
        }
    }
    reconverge_simt::for_avx2! {
        unsafe fn avx2<M: Moves>(lanes: &mut Lanes<'_>, memory: &mut dyn Reach, transfer: &Transfer) -> bool {
            // SAFETY: callers call this function only on a processor that supports AVX2.
            M::run(unsafe { reconverge_simt::wide::Avx2::assume() }, lanes, memory, transfer)
        }
    }
    by_level!(level, baseline::<M>, avx2::<M>, avx2::<M>)
}

/// Returns whether a warp's addresses are probably contiguous words. Looks only at the addresses of three lanes.
#[inline(always)]
fn is_row(addresses: &[u32; WARP]) -> bool {
    addresses[15].wrapping_sub(addresses[0]) == 4 * 15 && addresses[16].wrapping_sub(addresses[15]) == 4
}

/// Accesses s[] like [`Words`], after a check for races.
struct Checked<const STORE: bool, const WORD: bool>;

impl<const STORE: bool, const WORD: bool> Moves for Checked<STORE, WORD> {
    #[inline(always)]
    fn run<W: Wide>(wide: W, lanes: &mut Lanes<'_>, memory: &mut dyn Reach, transfer: &Transfer) -> bool {
        let bits = lanes.set(transfer.set);
        if bits == 0 {
            return true;
        }
        let addresses = addresses(lanes, transfer);
        let bytes = if WORD { 4 } else { transfer.mem.access.bytes() };
        let accessor = Accessor { group: lanes.warp, lane: 0, pc: transfer.pc };
        let may = match lanes.shared.races_mut() {
            Some(races) if STORE => races.store_row(accessor, &addresses, bits.into(), bytes),
            Some(races) if is_row(&addresses) => races.load_row(accessor, &addresses, bits.into(), bytes),
            // Each half of a warp often accesses contiguous words, or a single word, for example in `matmul`.
            Some(races) => {
                let (halves, _) = addresses.as_chunks::<{ WARP / 2 }>();
                (0..2).all(|half| {
                    let first = half as u32 * WARP as u32 / 2;
                    let bits = bits >> first & 0xffff;
                    let accessor = Accessor { lane: first, ..accessor };
                    bits == 0 || races.load_row(accessor, &halves[half], bits.into(), bytes)
                })
            }
            None => true,
        };
        may && Words::<SHARED, STORE, WORD>::run(wide, lanes, memory, transfer)
    }
}

/// Accesses an element per lane in a memory space. `STORE` selects stores. `WORD` means that elements are single words.
struct Words<const SPACE: u8, const STORE: bool, const WORD: bool>;

impl<const SPACE: u8, const STORE: bool, const WORD: bool> Moves for Words<SPACE, STORE, WORD> {
    #[inline(always)]
    fn run<W: Wide>(wide: W, lanes: &mut Lanes<'_>, memory: &mut dyn Reach, transfer: &Transfer) -> bool {
        if lanes.set(transfer.set) == 0 {
            return true;
        }
        if SPACE == LOCAL || !WORD {
            return Self::each(wide, lanes, memory, transfer).is_some() || memory.transfer(lanes, transfer);
        }
        // The separate function of the task [`Each`] contains the other access patterns. In a common function for all
        // patterns, the compiler would keep values of these patterns alive in the code of `together`.
        Self::together(wide, lanes, memory, transfer).is_some()
            || wide.call(Each::<SPACE, STORE>(lanes, memory, transfer))
            || memory.transfer(lanes, transfer)
    }
}

impl<const SPACE: u8, const STORE: bool, const WORD: bool> Words<SPACE, STORE, WORD> {
    /// Returns the size of an element in bytes.
    #[inline(always)]
    fn size(transfer: &Transfer) -> u32 {
        if WORD { 4 } else { transfer.mem.access.bytes() }
    }

    /// Executes the transfer if the lanes access consecutive words, or if all lanes access one word.
    #[inline(always)]
    fn together<W: Wide>(
        wide: W,
        lanes: &mut Lanes<'_>,
        memory: &mut dyn Reach,
        transfer: &Transfer,
    ) -> Option<()> {
        let offset = transfer.mem.offset as u32;
        // The low bits of an address are ignored. The number of ignored bits depends on the access size. (13.18)
        let keep = !(Self::size(transfer) - 1);
        let first = lanes.set(transfer.set).trailing_zeros() as usize & 31;
        match (transfer.base, transfer.mem.base) {
            (Some(place), _) => {
                let base = lanes.row(place);
                // This line reads the row from `lanes.rows`. Indexing the copy `base` would move the whole copy through
                // memory.
                let at = lanes.rows.row(place)[first].wrapping_add(offset) & keep;
                let address = |lane: usize| base[lane].wrapping_add(offset) & keep;
                Self::at_once(wide, lanes, memory, transfer, address, (first, at))
            }
            (None, Base::A(register)) => {
                let base = lanes.a(register);
                let from = |base: u16| u32::from(base.wrapping_add(offset as u16)) & keep;
                let at = from(lanes.a(register)[first]);
                Self::at_once(wide, lanes, memory, transfer, |lane| from(base[lane]), (first, at))
            }
            // Lowering provides the row of every `$r`.
            (None, Base::R(_)) => None,
        }
    }

    /// Executes the transfer if the addresses are contiguous or equal. `first` is the first lane of the set, and `at`
    /// is the address of that lane.
    #[inline(always)]
    fn at_once<W: Wide>(
        wide: W,
        lanes: &mut Lanes<'_>,
        memory: &mut dyn Reach,
        transfer: &Transfer,
        address: impl Fn(usize) -> u32,
        (first, at): (usize, u32),
    ) -> Option<()> {
        let members = lanes.members(transfer.set);
        let start = at.wrapping_sub(4 * first as u32);
        if all(&members, |lane| address(lane) ^ start.wrapping_add(4 * lane as u32)) {
            // `in_a_row` accesses the words of all 32 lanes. `in_a_row` may return `None` if a lane outside the set has
            // an address past the end of the memory. The words of the set's lanes can still exist.
            return Self::in_a_row(wide, lanes, memory, transfer, start);
        }
        if all(&members, |lane| address(lane) ^ at) {
            return Self::at_one(wide, lanes, memory, transfer, at);
        }
        None
    }

    /// Executes the transfer of one element per lane, at any addresses.
    #[inline(always)]
    fn each<W: Wide>(
        wide: W,
        lanes: &mut Lanes<'_>,
        memory: &mut dyn Reach,
        transfer: &Transfer,
    ) -> Option<()> {
        let offset = transfer.mem.offset as u32;
        let keep = !(Self::size(transfer) - 1);
        match (transfer.base, transfer.mem.base) {
            (Some(place), _) => {
                let base = lanes.row(place);
                Self::moved(wide, lanes, memory, transfer, |lane| base[lane].wrapping_add(offset) & keep)
            }
            (None, Base::A(register)) => {
                let base = lanes.a(register);
                Self::moved(wide, lanes, memory, transfer, |lane| {
                    u32::from(base[lane].wrapping_add(offset as u16)) & keep
                })
            }
            (None, Base::R(_)) => None,
        }
    }

    #[inline(always)]
    fn moved<W: Wide>(
        wide: W,
        lanes: &mut Lanes<'_>,
        memory: &mut dyn Reach,
        transfer: &Transfer,
        address: impl Fn(usize) -> u32,
    ) -> Option<()> {
        let (bits, members) = (lanes.set(transfer.set), lanes.members(transfer.set));
        let size = Self::size(transfer);
        let (mut lowest, mut highest) = (u32::MAX, 0);
        for lane in 0..WARP {
            lowest = lowest.min(address(lane) | !members[lane]);
            highest = highest.max(address(lane) & members[lane]);
        }
        let mut last = highest.checked_add(size - 1)?;
        let mut offsets = [0; WARP];
        let of_a_lane = (lowest, last);
        if SPACE == LOCAL {
            let (all, each) = memory.local();
            if last >= each {
                return None;
            }
            for lane in 0..WARP {
                offsets[lane] = local_place(lane, address(lane) & members[lane]);
            }
            (lowest, last) = (0, u32::try_from(all.len()).ok()?.checked_sub(1)?);
        } else {
            for lane in 0..WARP {
                offsets[lane] = address(lane).wrapping_sub(lowest) & members[lane];
            }
        }
        let picked = Picked::Each(&offsets, bits, size);
        // The words of a lane are consecutive, except in l[].
        let step = if SPACE == LOCAL { 4 * WARP } else { 4 };
        match STORE {
            false => {
                let bytes = Self::readable(lanes.shared, memory, transfer, (lowest, last), picked)?;
                // Each arm of the `match` contains separate loads, so that the compiler keeps the loaded values in
                // registers. Code with separate loads takes half the time of code with common loads for all arms.
                macro_rules! written {
                    ($from:expr) => {{
                        let values = gather(bytes, &offsets, $from);
                        lanes.write(wide, transfer.rows[0], transfer.set, values);
                    }};
                }
                let word =
                    |number: usize| Some(gather(bytes.get(step * number..)?, &offsets, u32::from_le_bytes));
                match transfer.mem.access {
                    _ if WORD => written!(u32::from_le_bytes),
                    Access::U8 => written!(|[byte]| byte.into()),
                    Access::S8 => written!(|[byte]| byte as i8 as u32),
                    Access::U16 => written!(|half| u16::from_le_bytes(half).into()),
                    Access::S16 => written!(|half| i16::from_le_bytes(half) as u32),
                    Access::B32 => written!(u32::from_le_bytes),
                    Access::B64 => {
                        let values = [word(0)?, word(1)?];
                        lanes.write(wide, transfer.rows[0], transfer.set, values[0]);
                        lanes.write(wide, transfer.rows[1], transfer.set, values[1]);
                    }
                    Access::B128 => {
                        let values = [word(0)?, word(1)?, word(2)?, word(3)?];
                        for (row, values) in transfer.rows.into_iter().zip(values) {
                            lanes.write(wide, row, transfer.set, values);
                        }
                    }
                }
            }
            true => {
                let Kind::Store { shift } = transfer.kind else { return None };
                let Lanes { rows, shared, .. } = lanes;
                let bytes = match SPACE {
                    LOCAL => memory.local_mut(of_a_lane.0, of_a_lane.1),
                    _ => Self::writable(shared, memory, transfer, (lowest, last), picked)?,
                };
                for number in 0..(size.div_ceil(4) as usize).min(4) {
                    let values = rows.row(transfer.rows[number]);
                    match size {
                        1 => scatter(bytes, &offsets, bits, |lane| [(values[lane] >> (shift & 31)) as u8]),
                        2 => scatter(bytes, &offsets, bits, |lane| {
                            ((values[lane] >> (shift & 31)) as u16).to_le_bytes()
                        }),
                        // Lanes with equal addresses store to the same words. The memory then contains the words of the
                        // last lane.
                        _ => {
                            let words = bytes.get_mut(step * number..)?;
                            scatter(words, &offsets, bits, |lane| values[lane].to_le_bytes());
                        }
                    }
                }
            }
        }
        Some(())
    }

    /// Executes the transfer of contiguous words. Lane 0 accesses the word at `start`.
    #[inline(always)]
    fn in_a_row<W: Wide>(
        wide: W,
        lanes: &mut Lanes<'_>,
        memory: &mut dyn Reach,
        transfer: &Transfer,
        start: u32,
    ) -> Option<()> {
        let bits = lanes.set(transfer.set);
        let picked = Picked::Row(bits);
        let last = start.checked_add(4 * WARP as u32 - 1)?;
        let row = transfer.rows[0];
        if STORE {
            let Lanes { rows, shared, .. } = lanes;
            let bytes = Self::writable(shared, memory, transfer, (start, last), picked)?;
            let window = bytes.first_chunk_mut::<{ 4 * WARP }>()?.as_chunks_mut::<4>().0;
            // The row is read only after this call. A read before the call would force the compiler to keep the values
            // of the row on the stack during the call.
            let mut values = *rows.row(row);
            if bits != u32::MAX {
                let mut kept = [0; WARP];
                for lane in 0..WARP {
                    kept[lane] = u32::from_le_bytes(window[lane]);
                }
                wide.merge(&mut kept, &values, bits.into());
                values = kept;
            }
            for lane in 0..WARP {
                window[lane] = values[lane].to_le_bytes();
            }
        } else {
            let bytes = Self::readable(lanes.shared, memory, transfer, (start, last), picked)?;
            let window = bytes.first_chunk::<{ 4 * WARP }>()?.as_chunks::<4>().0;
            let mut values = [0; WARP];
            for lane in 0..WARP {
                values[lane] = u32::from_le_bytes(window[lane]);
            }
            lanes.write(wide, row, transfer.set, values);
        }
        Some(())
    }

    /// Executes a transfer in which all lanes access one word. After a store, the word of the last lane remains.
    #[inline(always)]
    fn at_one<W: Wide>(
        wide: W,
        lanes: &mut Lanes<'_>,
        memory: &mut dyn Reach,
        transfer: &Transfer,
        at: u32,
    ) -> Option<()> {
        let (row, last) = (transfer.rows[0], at.checked_add(3)?);
        if STORE {
            let bits = lanes.set(transfer.set);
            let value = lanes.row(row)[31 - (bits.leading_zeros() as usize & 31)];
            let bytes = Self::writable(lanes.shared, memory, transfer, (at, last), Picked::All)?;
            *bytes.first_chunk_mut()? = value.to_le_bytes();
        } else {
            let bytes = Self::readable(lanes.shared, memory, transfer, (at, last), Picked::All)?;
            let value = u32::from_le_bytes(*bytes.first_chunk()?);
            lanes.write(wide, row, transfer.set, [value; WARP]);
        }
        Some(())
    }

    /// Returns the bytes of the space from `first` to `last`, for loads.
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
            (LOCAL, _) => memory.local().0.get(first as usize..last as usize + 1),
            (GLOBAL, Space::Global(segment)) => memory.reading(segment, first, last, picked),
            _ => None,
        }
    }

    /// Returns the bytes of the space from `first` to `last`, for stores.
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

/// Executes [`Words::each`] for single words, as a task.
struct Each<'a, 'b, const SPACE: u8, const STORE: bool>(&'a mut Lanes<'b>, &'a mut dyn Reach, &'a Transfer);

impl<const SPACE: u8, const STORE: bool> Task for Each<'_, '_, SPACE, STORE> {
    type Output = bool;

    #[inline(always)]
    fn run<W: Wide>(self, wide: W) -> bool {
        let Each(lanes, memory, transfer) = self;
        Words::<SPACE, STORE, true>::each(wide, lanes, memory, transfer).is_some()
    }
}

/// Returns the byte address of each lane. The low bits are cleared as the access requires. (3.3, 13.18)
#[inline(always)]
pub(super) fn addresses(lanes: &Lanes<'_>, transfer: &Transfer) -> [u32; WARP] {
    let Mem { base, offset, access, .. } = transfer.mem;
    let mut addresses = [0; WARP];
    match (transfer.base, base) {
        (Some(place), _) => {
            let row = lanes.row(place);
            for lane in 0..WARP {
                addresses[lane] = aligned(row[lane].wrapping_add(offset as u32), access.bytes());
            }
        }
        (None, Base::A(register)) => {
            let row = lanes.a(register);
            for lane in 0..WARP {
                addresses[lane] = aligned(row[lane].wrapping_add(offset as u16).into(), access.bytes());
            }
        }
        // Lowering provides the row of every `$r`.
        (None, Base::R(_)) => {}
    }
    addresses
}

/// Returns whether a word is zero for all lanes of a set.
#[inline(always)]
fn all(members: &[u32; WARP], word: impl Fn(usize) -> u32) -> bool {
    let mut elsewhere = 0;
    for lane in 0..WARP {
        elsewhere |= word(lane) & members[lane];
    }
    elsewhere == 0
}

#[inline(always)]
pub(super) fn greatest(offsets: &[u32; WARP]) -> u32 {
    let mut greatest = 0;
    for lane in 0..WARP {
        greatest = greatest.max(offsets[lane]);
    }
    greatest
}

/// Loads one element for each lane, from the offset of the lane.
///
/// # Panics
/// An element extends past the end of the bytes.
#[inline(always)]
fn gather<const SIZE: usize>(bytes: &[u8], offsets: &Row, value: impl Fn([u8; SIZE]) -> u32) -> Row {
    let reach = greatest(offsets);
    assert!(reach as usize + SIZE <= bytes.len(), "an element extends past the end of the bytes");
    // SAFETY: the assertion checks that no element extends past the end of the bytes.
    let element = |offset: u64| unsafe { bytes.as_ptr().add(offset as usize).cast::<[u8; SIZE]>().read() };
    let mut values = [0; WARP];
    for lane in (0..WARP).step_by(2) {
        // This code extracts two offsets at a time from the vector of offsets.
        let two = u64::from(offsets[lane]) | u64::from(offsets[lane + 1]) << 32;
        values[lane] = value(element(two & 0xffff_ffff));
        values[lane + 1] = value(element(two >> 32));
    }
    values
}

/// Writes one element for each lane of the set, in ascending order of the lanes. Each element is at the offset of its
/// lane.
///
/// # Panics
/// An element extends past the end of the bytes.
#[inline(always)]
fn scatter<const SIZE: usize>(
    bytes: &mut [u8],
    offsets: &Row,
    bits: u32,
    value: impl Fn(usize) -> [u8; SIZE],
) {
    let reach = greatest(offsets);
    assert!(reach as usize + SIZE <= bytes.len(), "an element extends past the end of the bytes");
    if bits == u32::MAX {
        for lane in 0..WARP {
            // SAFETY: the assertion checks that no element extends past the end of the bytes.
            unsafe { bytes.as_mut_ptr().add(offsets[lane] as usize).cast::<[u8; SIZE]>().write(value(lane)) };
        }
        return;
    }
    for lane in members(bits) {
        // SAFETY: the assertion checks that no element extends past the end of the bytes.
        unsafe { bytes.as_mut_ptr().add(offsets[lane] as usize).cast::<[u8; SIZE]>().write(value(lane)) };
    }
}
