//! Loads and stores of a warp: each lane addresses memory itself, but most warps address one run of it.
//!
//! The quick way asks once for the bytes that the warp reaches: a window of a word a lane where the addresses follow each
//! other, one element where they are all the same, else all between the lowest and the highest. Where those bytes are
//! not to be had at once (they lie in several buffers, a view has to record what is read or written, c[] ends), the lanes
//! go one after another, as the reference interpreter does; that way is also what the quick one is compared with.
//!
//! A transfer that fails has changed nothing but what the reference interpreter, which then executes the instruction
//! from its first lane, changes in the same way: loads write no register before all lanes have theirs, the
//! bytes that lanes before the failing one have stored are stored again, and atomic operations begin only once every
//! lane has its place.

use reconverge_simt::level::Task;
use reconverge_simt::memory::{Picked, Store};
use reconverge_simt::wide::Wide;
use reconverge_simt::{Lane, Mode};

use super::bodies::members;
use super::lanes::{Lanes, Place};
use super::words::Mover;
use crate::access::extended;
use crate::context::Context;
use crate::flow::WARP;
use crate::inst::{Access, Base, Chip, Mem, Space};
use crate::lane::atomic::{Atomic, atomic32};
use crate::lane::interpolate::Position;
use crate::spaces::{aligned, load_global, store_global};
use crate::state::Local;

type Row = [u32; WARP];

/// What moves between rows and memory.
#[derive(Clone, Debug)]
pub(super) struct Transfer {
    pub(super) kind: Kind,
    /// The memory operand, without post-increment.
    pub(super) mem: Mem,
    /// The row of its base, when that is a `$r`.
    pub(super) base: Option<Place>,
    /// As many as the access has words; for atomic operations the old word's, then those of the two sources.
    pub(super) rows: [Place; 4],
    /// Which lanes, by number of the set.
    pub(super) set: u8,
    /// Its code, which takes the commonest shapes and gives all others to [`Move`].
    pub(super) mover: Mover,
}

/// Which way it moves.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    /// From memory to rows; of a[] and v[] what there is at a position.
    Load { position: Position },
    /// From rows to memory; of half a register: how far it is moved down.
    Store { shift: u8 },
    /// A word of g[] becomes another, and what it was goes to a row.
    Atomic { atomic: Atomic, signed: bool },
}

/// Moves for the lanes of a set; the output is `false` when some lane cannot.
pub(super) struct Move<'a, 'w, 'l, G> {
    pub(super) context: &'a Context,
    pub(super) lanes: &'a mut Lanes<'w>,
    pub(super) local: &'a mut Local<'l>,
    pub(super) global: &'a mut G,
    pub(super) transfer: &'a Transfer,
}

impl<G: Store> Task for Move<'_, '_, '_, G> {
    type Output = bool;

    #[inline(always)]
    fn run<W: Wide>(mut self, _: W) -> bool {
        let set = usize::from(self.transfer.set & 1);
        let bits = self.lanes.set(set).bits;
        if bits == 0 {
            return true;
        }
        let members = self.lanes.row(self.lanes.tables.sets[set]);
        let warp = Warp { addresses: addresses(self.lanes, self.transfer), members, bits };
        self.together(&warp) || self.each(&warp).is_some()
    }
}

impl<G: Store> Move<'_, '_, '_, G> {
    /// Moves with one question for the bytes; `false`: they are not to be had so, and nothing has changed.
    #[inline(always)]
    fn together(&mut self, warp: &Warp) -> bool {
        let size = self.transfer.mem.access.bytes();
        if self.transfer.mem.space != Space::Local {
            return self.reach(warp, size);
        }
        // The lanes' own bytes lie one lane after another.
        let each = self.local.all().1;
        let Span { last, .. } = warp.scattered().span(1);
        let fits = last.checked_add(size).is_some_and(|end| end <= each);
        if !fits || each.checked_mul(WARP as u32).is_none() {
            return false;
        }
        let mut addresses = warp.addresses;
        for lane in 0..WARP {
            addresses[lane] = addresses[lane].wrapping_add(each.wrapping_mul(lane as u32));
        }
        self.reach(&Warp { addresses, ..*warp }, size)
    }

    #[inline(always)]
    fn reach(&mut self, warp: &Warp, size: u32) -> bool {
        let mut shape = match self.transfer.kind {
            Kind::Atomic { .. } => warp.scattered(),
            Kind::Load { .. } | Kind::Store { .. } => warp.shape(size),
        };
        loop {
            let done = match self.transfer.kind {
                Kind::Load { .. } => self.load(warp, shape, size),
                Kind::Store { shift } => self.store(warp, shape, size, shift),
                Kind::Atomic { atomic, signed } => self.atomic(warp, shape, atomic, signed),
            };
            // A window may reach beyond what there is where its lanes do not.
            match shape {
                Shape::InRow(_) if done.is_none() => shape = warp.scattered(),
                _ => return done.is_some(),
            }
        }
    }

    #[inline(always)]
    fn load(&mut self, warp: &Warp, shape: Shape, size: u32) -> Option<()> {
        let Move { context, lanes, local, global, transfer } = self;
        let Span { first, last } = shape.span(size);
        let offsets = warp.offsets(first);
        let bytes = match transfer.mem.space {
            Space::Global(number) => {
                let (at, count) = place(context, number, first, last)?;
                global.reading(at, count, shape.picked(&offsets, warp.bits, size))?
            }
            Space::Shared => lanes.shared.bytes().get(first as usize..=last as usize)?,
            Space::Const(bank) => context.constants.bank(bank.into()).get(first as usize..=last as usize)?,
            Space::Local => local.all().0.get(first as usize..=last as usize)?,
            Space::Attribute | Space::Primitive | Space::Varying | Space::Output => return None,
        };
        if size <= 4 {
            let values = narrow(bytes, &offsets, shape, transfer.mem.access);
            lanes.write(transfer.rows[0], transfer.set, values);
            return Some(());
        }
        let mut values = [[0; WARP]; 4];
        for number in 0..size as usize / 4 {
            values[number & 3] = gather(bytes.get(4 * number..)?, &offsets, u32::from_le_bytes);
        }
        for number in 0..size as usize / 4 {
            lanes.write(transfer.rows[number & 3], transfer.set, values[number & 3]);
        }
        Some(())
    }

    #[inline(always)]
    fn store(&mut self, warp: &Warp, shape: Shape, size: u32, shift: u8) -> Option<()> {
        let Move { context, lanes, local, global, transfer } = self;
        let Span { first, last } = shape.span(size);
        let rows = transfer.rows.map(|place| lanes.rows.row(place));
        let offsets = warp.offsets(first);
        let bytes = match transfer.mem.space {
            Space::Global(number) => {
                let (at, count) = place(context, number, first, last)?;
                global.writing(at, count, shape.picked(&offsets, warp.bits, size))?
            }
            Space::Shared => lanes.shared.bytes_mut().get_mut(first as usize..=last as usize)?,
            Space::Local => local.all().0.get_mut(first as usize..=last as usize)?,
            Space::Const(_) | Space::Attribute | Space::Primitive | Space::Varying | Space::Output => {
                return None;
            }
        };
        let (offsets, bits) = match shape {
            Shape::InRow(_) => {
                let window = bytes.as_chunks_mut::<4>().0;
                for (lane, word) in window.iter_mut().enumerate().take(WARP) {
                    let members = warp.members[lane];
                    let new = rows[0][lane] & members | u32::from_le_bytes(*word) & !members;
                    *word = new.to_le_bytes();
                }
                return Some(());
            }
            // The last lane's remains.
            Shape::Same(_) => ([0; WARP], 1 << warp.last()),
            Shape::Scattered(..) => (offsets, warp.bits),
        };
        let word = |number: usize, lane: usize| u128::from(rows[number][lane]) << (32 * number);
        match size {
            1 => scatter(bytes, &offsets, bits, |lane| [(rows[0][lane] >> (shift & 31)) as u8]),
            2 => {
                scatter(bytes, &offsets, bits, |lane| ((rows[0][lane] >> (shift & 31)) as u16).to_le_bytes())
            }
            4 => scatter(bytes, &offsets, bits, |lane| rows[0][lane].to_le_bytes()),
            8 => {
                scatter(bytes, &offsets, bits, |lane| ((word(0, lane) | word(1, lane)) as u64).to_le_bytes())
            }
            _ => scatter(bytes, &offsets, bits, |lane| {
                (word(0, lane) | word(1, lane) | word(2, lane) | word(3, lane)).to_le_bytes()
            }),
        }
        Some(())
    }

    /// The lanes one after another, lowest first, on bytes that are all there.
    #[inline(always)]
    fn atomic(&mut self, warp: &Warp, shape: Shape, atomic: Atomic, signed: bool) -> Option<()> {
        let Move { context, lanes, global, transfer, .. } = self;
        let Space::Global(number) = transfer.mem.space else { return None };
        let Span { first, last } = shape.span(4);
        let offsets = warp.offsets(first);
        let (at, count) = place(context, number, first, last)?;
        let bytes = global.changing(at, count, shape.picked(&offsets, warp.bits, 4))?;
        let [src2, src3] = [lanes.row(transfer.rows[1]), lanes.row(transfer.rows[2])];
        let before_g200 = before_g200(context);
        let mut values = [0; WARP];
        for lane in members(warp.bits) {
            let word = bytes.get_mut(offsets[lane] as usize..)?.first_chunk_mut()?;
            let old = u32::from_le_bytes(*word);
            values[lane] = old;
            *word = atomic32(atomic, signed, before_g200, old, src2[lane], src3[lane]).to_le_bytes();
        }
        lanes.write(transfer.rows[0], transfer.set, values);
        Some(())
    }

    /// Moves lane by lane.
    #[cold]
    #[inline(never)]
    fn each(&mut self, warp: &Warp) -> Option<()> {
        let Move { context, lanes, local, global, transfer } = self;
        match transfer.kind {
            Kind::Load { position } => load_each(context, lanes, local, *global, (transfer, position), warp),
            Kind::Store { shift } => store_each(context, lanes, local, *global, transfer, shift, warp),
            Kind::Atomic { atomic, signed } => {
                atomic_each(context, lanes, *global, transfer, (atomic, signed), warp)
            }
        }
    }
}

/// Chips before G200 treat some signed operations in another way.
fn before_g200(context: &Context) -> bool {
    matches!(context.chip, Chip::G80 | Chip::G84)
}

/// Where `count` bytes of a segment of g[] from `first` to `last` lie, if they are all inside.
#[inline(always)]
pub(super) fn place(context: &Context, number: u8, first: u32, last: u32) -> Option<(u32, usize)> {
    let count = (last - first).checked_add(1)?;
    Some((context.segments.address(number, first, count)?, count as usize))
}

/// The byte address of each lane, its low bits as the access has them. (3.3, 13.18)
#[inline(always)]
fn addresses(lanes: &Lanes<'_>, transfer: &Transfer) -> [u32; WARP] {
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
        // Lowering gives the row of every `$r`.
        (None, Base::R(_)) => {}
    }
    addresses
}

/// The lanes of a set, some of which there are, and where each looks.
#[derive(Clone, Copy)]
struct Warp {
    addresses: Row,
    /// All ones for the lanes of the set, zeros for the others.
    members: Row,
    bits: u32,
}

/// How the addresses of a warp look.
#[derive(Clone, Copy)]
enum Shape {
    /// Each lane its word, from this address of lane 0 on.
    InRow(u32),
    /// All the same.
    Same(u32),
    /// Others: the lowest and the highest.
    Scattered(u32, u32),
}

/// The first byte and the last one.
struct Span {
    first: u32,
    last: u32,
}

impl Shape {
    /// The bytes that a warp reaches with elements of so many bytes. One that would reach beyond the last address ends there.
    #[inline(always)]
    fn span(self, size: u32) -> Span {
        let (first, highest, size) = match self {
            Shape::InRow(start) => (start, start, 4 * WARP as u32),
            Shape::Same(at) => (at, at, size),
            Shape::Scattered(lowest, highest) => (lowest, highest, size),
        };
        Span { first, last: highest.saturating_add(size - 1) }
    }

    /// Which of those bytes are meant.
    #[inline(always)]
    fn picked(self, offsets: &Row, bits: u32, size: u32) -> Picked<'_> {
        match self {
            Shape::InRow(_) => Picked::Row(bits),
            Shape::Same(_) => Picked::All,
            Shape::Scattered(..) => Picked::Each(offsets, bits, size),
        }
    }
}

impl Warp {
    #[inline(always)]
    fn first(&self) -> usize {
        self.bits.trailing_zeros() as usize & 31
    }

    #[inline(always)]
    fn last(&self) -> usize {
        31 - (self.bits.leading_zeros() as usize & 31)
    }

    /// The shape for elements of so many bytes; only words are found in a row.
    #[inline(always)]
    fn shape(&self, size: u32) -> Shape {
        let first = self.addresses[self.first()];
        let start = first.wrapping_sub(4 * self.first() as u32);
        if size == 4 && start.checked_add(4 * WARP as u32 - 1).is_some() {
            let mut elsewhere = 0;
            for lane in 0..WARP {
                let follows = start.wrapping_add(4 * lane as u32);
                elsewhere |= (self.addresses[lane] ^ follows) & self.members[lane];
            }
            if elsewhere == 0 {
                return Shape::InRow(start);
            }
        }
        let mut apart = 0;
        for lane in 0..WARP {
            apart |= (self.addresses[lane] ^ first) & self.members[lane];
        }
        if apart == 0 {
            return Shape::Same(first);
        }
        self.scattered()
    }

    #[inline(always)]
    fn scattered(&self) -> Shape {
        let (mut lowest, mut highest) = (u32::MAX, 0);
        for lane in 0..WARP {
            lowest = lowest.min(self.addresses[lane] | !self.members[lane]);
            highest = highest.max(self.addresses[lane] & self.members[lane]);
        }
        Shape::Scattered(lowest, highest)
    }

    /// How far each lane's address lies behind the lowest; for lanes that are not in the set 0.
    #[inline(always)]
    fn offsets(&self, lowest: u32) -> Row {
        let mut offsets = [0; WARP];
        for lane in 0..WARP {
            offsets[lane] = self.addresses[lane].wrapping_sub(lowest) & self.members[lane];
        }
        offsets
    }
}

#[inline(always)]
fn greatest(offsets: &Row) -> u32 {
    let mut greatest = 0;
    for lane in 0..WARP {
        greatest = greatest.max(offsets[lane]);
    }
    greatest
}

/// One element for each lane, from its offset.
///
/// # Panics
/// An offset reaches beyond the bytes.
#[inline(always)]
pub(super) fn gather<const SIZE: usize>(
    bytes: &[u8],
    offsets: &Row,
    value: impl Fn([u8; SIZE]) -> u32,
) -> Row {
    let reach = greatest(offsets);
    assert!(reach as usize + SIZE <= bytes.len(), "the elements of a warp lie in their bytes");
    let mut values = [0; WARP];
    for lane in 0..WARP {
        // SAFETY: no offset reaches beyond the bytes, as the assertion has seen.
        let element = unsafe { bytes.as_ptr().add(offsets[lane] as usize).cast::<[u8; SIZE]>().read() };
        values[lane] = value(element);
    }
    values
}

/// Writes one element for each lane of the set to its offset, in ascending order.
///
/// # Panics
/// An offset reaches beyond the bytes.
#[inline(always)]
pub(super) fn scatter<const SIZE: usize>(
    bytes: &mut [u8],
    offsets: &Row,
    bits: u32,
    value: impl Fn(usize) -> [u8; SIZE],
) {
    let reach = greatest(offsets);
    assert!(reach as usize + SIZE <= bytes.len(), "the elements of a warp lie in their bytes");
    if bits == u32::MAX {
        for lane in 0..WARP {
            // SAFETY: no offset reaches beyond the bytes, as the assertion has seen.
            unsafe { bytes.as_mut_ptr().add(offsets[lane] as usize).cast::<[u8; SIZE]>().write(value(lane)) };
        }
        return;
    }
    for lane in members(bits) {
        // SAFETY: as above.
        unsafe { bytes.as_mut_ptr().add(offsets[lane] as usize).cast::<[u8; SIZE]>().write(value(lane)) };
    }
}

/// Each lane's element of at most four bytes, extended as the access says.
#[inline(always)]
fn narrow(bytes: &[u8], offsets: &Row, shape: Shape, access: Access) -> Row {
    match shape {
        Shape::InRow(_) => {
            let mut values = [0; WARP];
            for (value, word) in values.iter_mut().zip(bytes.as_chunks::<4>().0) {
                *value = u32::from_le_bytes(*word);
            }
            return values;
        }
        Shape::Same(_) => {
            let mut element = [0; 4];
            element[..bytes.len().min(4)].copy_from_slice(&bytes[..bytes.len().min(4)]);
            return [extended(u32::from_le_bytes(element).into(), access) as u32; WARP];
        }
        Shape::Scattered(..) => {}
    }
    match access {
        Access::U8 => gather(bytes, offsets, |[byte]| byte.into()),
        Access::S8 => gather(bytes, offsets, |[byte]| byte as i8 as u32),
        Access::U16 => gather(bytes, offsets, |half| u16::from_le_bytes(half).into()),
        Access::S16 => gather(bytes, offsets, |half| i16::from_le_bytes(half) as u32),
        Access::B32 | Access::B64 | Access::B128 => gather(bytes, offsets, u32::from_le_bytes),
    }
}

/// The lanes of a set that is one run and addresses one run of words, ascending: the first lane and how many.
#[inline(always)]
fn run(set: u32, addresses: &[u32; WARP]) -> Option<(usize, usize)> {
    let first = set.trailing_zeros() as usize;
    let count = (set >> (first & 31)).trailing_ones() as usize;
    if set == 0 || set.count_ones() as usize != count {
        return None;
    }
    let here = &addresses[first..first + count];
    let follows = here.iter().zip(0..).all(|(address, lane)| *address == here[0].wrapping_add(4 * lane));
    (follows && addresses[first].checked_add(4 * count as u32).is_some()).then_some((first, count))
}

/// Loads lane by lane.
fn load_each<G: Store>(
    context: &Context,
    lanes: &mut Lanes<'_>,
    local: &mut Local<'_>,
    global: &mut G,
    (transfer, position): (&Transfer, Position),
    Warp { addresses, bits, .. }: &Warp,
) -> Option<()> {
    let (access, bytes) = (transfer.mem.access, transfer.mem.access.bytes());
    let mut values = [[0; WARP]; 4];
    match transfer.mem.space {
        Space::Global(segment) => {
            let together = if bytes == 4 { run(*bits, addresses) } else { None };
            let done = together.is_some_and(|(first, count)| {
                let mut words = [0; 4 * WARP];
                let size = 4 * count;
                let place = context.segments.address(segment, addresses[first], size as u32);
                let there = place.is_some_and(|place| global.load(place, &mut words[..size]));
                for (value, word) in values[0][first..].iter_mut().zip(words[..size].as_chunks::<4>().0) {
                    *value = u32::from_le_bytes(*word);
                }
                there
            });
            if !done {
                for lane in members(*bits) {
                    let place = context.segments.address(segment, addresses[lane], bytes)?;
                    put(&mut values, lane, extended(load_global(global, place, bytes)?, access));
                }
            }
        }
        Space::Shared => {
            for lane in members(*bits) {
                put(&mut values, lane, extended(lanes.shared.read(addresses[lane], bytes)?.into(), access));
            }
        }
        Space::Const(bank) => {
            for lane in members(*bits) {
                let word = context.constants.read(bank, addresses[lane], bytes);
                put(&mut values, lane, extended(word.into(), access));
            }
        }
        Space::Local => {
            for lane in members(*bits) {
                let found = local.at(Lane(lane as u8), addresses[lane], bytes)?;
                let mut raw = [0; 16];
                raw[..bytes as usize].copy_from_slice(found);
                put(&mut values, lane, extended(u128::from_le_bytes(raw), access));
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
        Space::Primitive | Space::Output => return None,
    }
    for (place, values) in transfer.rows.iter().zip(values).take(bytes.div_ceil(4) as usize) {
        lanes.write(*place, transfer.set, values);
    }
    Some(())
}

#[inline(always)]
fn put(values: &mut [[u32; WARP]; 4], lane: usize, value: u128) {
    for (word, row) in values.iter_mut().enumerate() {
        row[lane] = (value >> (32 * word)) as u32;
    }
}

/// Stores lane by lane.
fn store_each<G: Store>(
    context: &Context,
    lanes: &mut Lanes<'_>,
    local: &mut Local<'_>,
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
    match transfer.mem.space {
        Space::Global(segment) => {
            let together = if bytes == 4 { run(*bits, addresses) } else { None };
            let done = together.is_some_and(|(first, count)| {
                let mut words = [0; 4 * WARP];
                let size = 4 * count;
                for (word, value) in words.as_chunks_mut::<4>().0.iter_mut().zip(&values[0][first..]) {
                    *word = value.to_le_bytes();
                }
                let place = context.segments.address(segment, addresses[first], size as u32);
                place.is_some_and(|place| global.store(place, &words[..size]))
            });
            if !done {
                for lane in members(*bits) {
                    let place = context.segments.address(segment, addresses[lane], bytes)?;
                    store_global(global, place, bytes, value(lane))?;
                }
            }
        }
        Space::Shared => {
            for lane in members(*bits) {
                lanes.shared.write(addresses[lane], bytes, value(lane) as u32)?;
            }
        }
        Space::Local => {
            for lane in members(*bits) {
                let place = local.at(Lane(lane as u8), addresses[lane], bytes)?;
                place.copy_from_slice(&value(lane).to_le_bytes()[..bytes as usize]);
            }
        }
        Space::Const(_) | Space::Attribute | Space::Primitive | Space::Varying | Space::Output => {
            return None;
        }
    }
    Some(())
}

/// An atomic operation lane by lane, once every lane has been seen to have its word.
fn atomic_each<G: Store>(
    context: &Context,
    lanes: &mut Lanes<'_>,
    global: &mut G,
    transfer: &Transfer,
    (atomic, signed): (Atomic, bool),
    Warp { addresses, bits, .. }: &Warp,
) -> Option<()> {
    let Space::Global(segment) = transfer.mem.space else { return None };
    let place = |lane: usize| context.segments.address(segment, addresses[lane], 4);
    for lane in members(*bits) {
        load_global(global, place(lane)?, 4)?;
    }
    let [src2, src3] = [lanes.row(transfer.rows[1]), lanes.row(transfer.rows[2])];
    let mut values = [0; WARP];
    for lane in members(*bits) {
        let old = load_global(global, place(lane)?, 4)? as u32;
        values[lane] = old;
        let new = atomic32(atomic, signed, before_g200(context), old, src2[lane], src3[lane]);
        store_global(global, place(lane)?, 4, new.into())?;
    }
    lanes.write(transfer.rows[0], transfer.set, values);
    Some(())
}
