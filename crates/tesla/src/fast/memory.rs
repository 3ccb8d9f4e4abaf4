//! Loads and stores of a warp: each lane addresses memory itself, but most warps address one run of it.
//!
//! A transfer that fails has changed nothing but what the reference interpreter, which then executes the instruction
//! from its first lane, changes in the same way: loads write no register before all lanes have theirs, and the
//! bytes that lanes before the failing one have stored are stored again.

use reconverge_simt::Lane;
use reconverge_simt::memory::Store;

use super::bodies::members;
use super::lanes::{Lanes, Place};
use crate::access::extended;
use crate::context::Context;
use crate::flow::WARP;
use crate::inst::{Base, Mem, Space};
use crate::spaces::{aligned, load_global, store_global};
use crate::state::Local;

/// What moves between rows and memory.
#[derive(Clone, Debug)]
pub(super) struct Transfer {
    /// The memory operand, without post-increment.
    pub(super) mem: Mem,
    /// The row of its base, when that is a `$r`.
    pub(super) base: Option<Place>,
    /// As many as the access has words.
    pub(super) rows: [Place; 4],
    /// From rows to memory.
    pub(super) store: bool,
    /// Stores of half a register: how far it is moved down.
    pub(super) shift: u8,
    /// Which lanes, by number of the set.
    pub(super) set: usize,
}

/// Moves for the lanes of a set; `false` when some lane cannot.
#[inline]
pub(super) fn transfer<G: Store>(
    context: &Context,
    lanes: &mut Lanes<'_>,
    local: &mut Local<'_>,
    global: &mut G,
    transfer: &Transfer,
) -> bool {
    let addresses = addresses(lanes, transfer);
    match transfer.store {
        false => load(context, lanes, local, global, transfer, &addresses).is_some(),
        true => store(context, lanes, local, global, transfer, &addresses).is_some(),
    }
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

fn load<G: Store>(
    context: &Context,
    lanes: &mut Lanes<'_>,
    local: &mut Local<'_>,
    global: &mut G,
    transfer: &Transfer,
    addresses: &[u32; WARP],
) -> Option<()> {
    let (set, words) = (*lanes.set(transfer.set), lanes.tables.sets[transfer.set]);
    let (access, bytes) = (transfer.mem.access, transfer.mem.access.bytes());
    let mut values = [[0; WARP]; 4];
    match transfer.mem.space {
        Space::Global(segment) => {
            let together = if bytes == 4 { run(set.bits, addresses) } else { None };
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
                for lane in members(set.bits) {
                    let place = context.segments.address(segment, addresses[lane], bytes)?;
                    put(&mut values, lane, extended(load_global(global, place, bytes)?, access));
                }
            }
        }
        Space::Shared => {
            for lane in members(set.bits) {
                put(&mut values, lane, extended(lanes.shared.read(addresses[lane], bytes)?.into(), access));
            }
        }
        Space::Const(bank) => {
            for lane in members(set.bits) {
                let word = context.constants.read(bank, addresses[lane], bytes);
                put(&mut values, lane, extended(word.into(), access));
            }
        }
        Space::Local => {
            for lane in members(set.bits) {
                let found = local.at(Lane(lane as u8), addresses[lane], bytes)?;
                let mut raw = [0; 16];
                raw[..bytes as usize].copy_from_slice(found);
                put(&mut values, lane, extended(u128::from_le_bytes(raw), access));
            }
        }
        Space::Attribute | Space::Primitive | Space::Varying | Space::Output => return None,
    }
    for (place, values) in transfer.rows.iter().zip(values).take(bytes.div_ceil(4) as usize) {
        lanes.write(*place, words, values);
    }
    Some(())
}

#[inline(always)]
fn put(values: &mut [[u32; WARP]; 4], lane: usize, value: u128) {
    for (word, row) in values.iter_mut().enumerate() {
        row[lane] = (value >> (32 * word)) as u32;
    }
}

fn store<G: Store>(
    context: &Context,
    lanes: &mut Lanes<'_>,
    local: &mut Local<'_>,
    global: &mut G,
    transfer: &Transfer,
    addresses: &[u32; WARP],
) -> Option<()> {
    let set = *lanes.set(transfer.set);
    let bytes = transfer.mem.access.bytes();
    let [a, b, c, d] = transfer.rows;
    let values = [lanes.row(a), lanes.row(b), lanes.row(c), lanes.row(d)];
    let value = |lane: usize| {
        let words = [3, 2, 1, 0].map(|word: usize| values[word][lane]);
        words.into_iter().fold(0, |value, word| value << 32 | u128::from(word)) >> transfer.shift
    };
    match transfer.mem.space {
        Space::Global(segment) => {
            let together = if bytes == 4 { run(set.bits, addresses) } else { None };
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
                for lane in members(set.bits) {
                    let place = context.segments.address(segment, addresses[lane], bytes)?;
                    store_global(global, place, bytes, value(lane))?;
                }
            }
        }
        Space::Shared => {
            for lane in members(set.bits) {
                lanes.shared.write(addresses[lane], bytes, value(lane) as u32)?;
            }
        }
        Space::Local => {
            for lane in members(set.bits) {
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
