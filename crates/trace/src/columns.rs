//! A block's bytes: [`Record`]s in columns, so that each column packs well.

use reconverge_simt::{Lane, Mask};

use crate::record::{Kind, Record, What};

/// The columns, in the order of the file. Each has a subject of its own, so that neighbours are alike.
#[derive(Clone, Copy, Debug)]
enum Column {
    /// What a record is, a byte each.
    Tag,
    /// Group, as the difference to the record before.
    Group,
    /// Places in the listing and jump targets, as the difference to the one before.
    Place,
    /// Instructions of a run.
    Count,
    /// Lane masks, as the bits that differ from the mask before.
    Mask,
    /// Lanes and kinds, a byte each.
    Byte,
    /// Registers and byte addresses, as the difference to the one before.
    Number,
    /// Values, four bytes each.
    Value,
}

const COLUMNS: usize = 8;

/// What a tag stands for.
const RAN: u8 = 0;
const DIVERGE: u8 = 1;
const RECONVERGE: u8 = 2;
const PUSH: u8 = 3;
const POP: u8 = 4;
const JUMP: u8 = 5;
const TRAP: u8 = 6;
const WRITE: u8 = 7;
const LOAD: u8 = 8;
const STORE: u8 = 9;

/// The addresses of the listing's instructions, and their places in it.
#[derive(Clone, Debug)]
pub(crate) struct Order {
    addresses: Vec<u32>,
    /// Place by address less the first; `u32::MAX` where no instruction is.
    places: Vec<u32>,
}

/// Addresses that a listing may span: 16 MiB of Tesla code.
const MOST_SPAN: u32 = 1 << 24;

impl Order {
    /// `None` when the addresses do not rise, or span too much.
    pub(crate) fn new(addresses: Vec<u32>) -> Option<Order> {
        let (first, last) = (addresses.first().copied().unwrap_or(0), addresses.last().copied().unwrap_or(0));
        if !addresses.is_sorted_by(|a, b| a < b) || last - first > MOST_SPAN {
            return None;
        }
        let mut places = vec![u32::MAX; addresses.last().map_or(0, |last| (last - first) as usize + 1)];
        for (place, address) in addresses.iter().enumerate() {
            places[(address - first) as usize] = place as u32;
        }
        Some(Order { addresses, places })
    }

    /// The place of the instruction at an address.
    #[inline]
    pub(crate) fn place(&self, pc: u32) -> Option<u32> {
        let at = pc.checked_sub(*self.addresses.first()?)?;
        self.places.get(at as usize).copied().filter(|place| *place != u32::MAX)
    }

    /// The addresses of `count` instructions from a place on, as many as there are.
    pub(crate) fn from(&self, place: u32, count: u32) -> &[u32] {
        let rest = self.addresses.get(place as usize..).unwrap_or_default();
        &rest[..rest.len().min(count as usize)]
    }
}

/// The bytes of a block of records.
pub(crate) fn pack(records: &[Record], order: &Order) -> Vec<u8> {
    let mut columns: [Vec<u8>; COLUMNS] = Default::default();
    let (mut group, mut place, mut number, mut mask) = (0u32, 0u32, 0u32, 0u64);
    for record in records {
        delta(&mut columns[Column::Group as usize], &mut group, record.group);
        let mut differs = |next: Mask| {
            varint(&mut columns[Column::Mask as usize], next.0 ^ mask);
            mask = next.0;
        };
        let tag = match record.what {
            What::Ran { mask, .. } => {
                differs(mask);
                RAN
            }
            What::Diverge { taken, not } => {
                differs(taken);
                differs(not);
                DIVERGE
            }
            What::Reconverge { mask } => {
                differs(mask);
                RECONVERGE
            }
            What::Trap { mask } => {
                differs(mask);
                TRAP
            }
            What::Push { .. } => PUSH,
            What::Pop { .. } => POP,
            What::Jump { .. } => JUMP,
            What::Write { .. } => WRITE,
            What::Load { .. } => LOAD,
            What::Store { .. } => STORE,
        };
        columns[Column::Tag as usize].push(tag);
        match record.what {
            What::Ran { pc, count, .. } => {
                let start = order.place(pc).unwrap_or(0);
                delta(&mut columns[Column::Place as usize], &mut place, start);
                place = place.wrapping_add(count);
                varint(&mut columns[Column::Count as usize], count.into());
            }
            What::Jump { to } => varint(&mut columns[Column::Number as usize], to.into()),
            What::Push { kind } | What::Pop { kind } => columns[Column::Byte as usize].push(kind.0),
            What::Write { lane, register: at, value } | What::Store { lane, address: at, value } => {
                columns[Column::Byte as usize].push(lane.0);
                delta(&mut columns[Column::Number as usize], &mut number, at);
                columns[Column::Value as usize].extend(value.to_le_bytes());
            }
            What::Load { lane, address } => {
                columns[Column::Byte as usize].push(lane.0);
                delta(&mut columns[Column::Number as usize], &mut number, address);
            }
            What::Diverge { .. } | What::Reconverge { .. } | What::Trap { .. } => {}
        }
    }
    let mut bytes = Vec::with_capacity(16 + columns.iter().map(Vec::len).sum::<usize>());
    varint(&mut bytes, records.len() as u64);
    varint(&mut bytes, records.first().map_or(0, |record| record.step));
    columns.iter().for_each(|column| varint(&mut bytes, column.len() as u64));
    columns.iter().for_each(|column| bytes.extend(column));
    bytes
}

/// The records of a block; what is wrong with its bytes otherwise.
pub(crate) fn unpack(bytes: &[u8], order: &Order, most: usize) -> Result<Vec<Record>, String> {
    let mut head = Cursor { bytes, at: 0 };
    let count = head.varint()? as usize;
    if count > most {
        return Err(format!("{count} records in a block, of which there are at most {most}"));
    }
    let mut step = head.varint()?;
    let mut lengths = [0usize; COLUMNS];
    for length in &mut lengths {
        *length = head.varint()? as usize;
    }
    let mut rest = &bytes[head.at..];
    let mut columns = [Cursor { bytes: &[], at: 0 }; COLUMNS];
    for (column, length) in columns.iter_mut().zip(lengths) {
        let (bytes, behind) = rest.split_at_checked(length).ok_or("a column ends behind its block")?;
        (column.bytes, rest) = (bytes, behind);
    }
    if !rest.is_empty() {
        return Err(format!("{} bytes behind the last column", rest.len()));
    }
    let (mut group, mut place, mut number, mut mask) = (0u32, 0u32, 0u32, 0u64);
    let mut records = Vec::with_capacity(count);
    for _ in 0..count {
        columns[Column::Group as usize].delta(&mut group)?;
        let mut next_mask = |columns: &mut [Cursor; COLUMNS]| {
            mask ^= columns[Column::Mask as usize].varint()?;
            Ok::<Mask, String>(Mask(mask))
        };
        let tag = columns[Column::Tag as usize].byte()?;
        let what = match tag {
            RAN => {
                let mask = next_mask(&mut columns)?;
                columns[Column::Place as usize].delta(&mut place)?;
                let count = u32::try_from(columns[Column::Count as usize].varint()?)
                    .map_err(|_| "a run of more than 2^32 instructions")?;
                let addresses = order.from(place, count);
                let (Some(pc), true) = (addresses.first(), addresses.len() == count as usize) else {
                    return Err(format!("a run of {count} instructions from place {place} of the listing"));
                };
                place = place.wrapping_add(count);
                What::Ran { pc: *pc, count, mask }
            }
            DIVERGE => What::Diverge { taken: next_mask(&mut columns)?, not: next_mask(&mut columns)? },
            RECONVERGE => What::Reconverge { mask: next_mask(&mut columns)? },
            TRAP => What::Trap { mask: next_mask(&mut columns)? },
            PUSH => What::Push { kind: Kind(columns[Column::Byte as usize].byte()?) },
            POP => What::Pop { kind: Kind(columns[Column::Byte as usize].byte()?) },
            JUMP => What::Jump {
                to: u32::try_from(columns[Column::Number as usize].varint()?)
                    .map_err(|_| "a jump beyond 2^32")?,
            },
            WRITE | LOAD | STORE => {
                let lane = Lane(columns[Column::Byte as usize].byte()?);
                if lane.0 >= 64 {
                    return Err(format!("lane {}", lane.0));
                }
                columns[Column::Number as usize].delta(&mut number)?;
                match tag {
                    WRITE => {
                        What::Write { lane, register: number, value: columns[Column::Value as usize].word()? }
                    }
                    LOAD => What::Load { lane, address: number },
                    _ => {
                        What::Store { lane, address: number, value: columns[Column::Value as usize].word()? }
                    }
                }
            }
            other => return Err(format!("record type {other}")),
        };
        records.push(Record { step, group, what });
        if let What::Ran { count, .. } = what {
            step += u64::from(count);
        }
    }
    match columns.iter().find(|column| column.at < column.bytes.len()) {
        None => Ok(records),
        Some(column) => Err(format!("{} bytes of a column without a record", column.bytes.len() - column.at)),
    }
}

/// Appends a number, seven bits a byte, the lowest first.
fn varint(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

/// Appends the difference to `last`, its sign in the lowest bit, and moves `last` on.
fn delta(bytes: &mut Vec<u8>, last: &mut u32, next: u32) {
    let difference = next.wrapping_sub(*last) as i32;
    varint(bytes, u64::from((difference << 1 ^ difference >> 31) as u32));
    *last = next;
}

#[derive(Clone, Copy)]
struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Cursor<'_> {
    fn byte(&mut self) -> Result<u8, String> {
        let byte = self.bytes.get(self.at).ok_or("a column ends before its records do")?;
        self.at += 1;
        Ok(*byte)
    }

    fn word(&mut self) -> Result<u32, String> {
        let mut word = [0; 4];
        for byte in &mut word {
            *byte = self.byte()?;
        }
        Ok(u32::from_le_bytes(word))
    }

    fn varint(&mut self) -> Result<u64, String> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err("a number of more than 64 bits".to_owned())
    }

    fn delta(&mut self, last: &mut u32) -> Result<(), String> {
        let value = self.varint()? as u32;
        *last = last.wrapping_add((value >> 1) ^ (value & 1).wrapping_neg());
        Ok(())
    }
}
