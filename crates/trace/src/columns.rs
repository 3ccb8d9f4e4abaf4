//! A block's bytes: [`Record`]s in columns, so that each column packs well.

use reconverge_simt::{Lane, Mask};

use crate::record::{Kind, Record, What};

/// The columns, in the order of the file. Each has a subject of its own, so that neighbours are alike.
#[derive(Clone, Copy, Debug)]
enum Column {
    /// What a record is, a byte each.
    Tag,
    /// Of each row of records with the same group: the group, as the difference to the one before, and how many.
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
    #[inline]
    pub(crate) fn from(&self, place: u32, count: u32) -> &[u32] {
        let rest = self.addresses.get(place as usize..).unwrap_or_default();
        &rest[..rest.len().min(count as usize)]
    }
}

/// Packs the records of a block as they come.
#[derive(Debug, Default)]
pub(crate) struct Packer {
    columns: [Vec<u8>; COLUMNS],
    /// How many records.
    count: u32,
    /// The step of the first.
    first_step: u64,
    /// The last group, and how many records in a row have it.
    group: u32,
    with_group: u64,
    place: u32,
    number: u32,
    mask: u64,
}

impl Packer {
    /// How many records it has.
    pub(crate) fn len(&self) -> usize {
        self.count as usize
    }

    /// The step of the first record.
    pub(crate) fn first_step(&self) -> u64 {
        self.first_step
    }

    /// Appends a record.
    #[inline]
    pub(crate) fn push(&mut self, record: &Record, order: &Order) {
        if self.count == 0 {
            self.first_step = record.step;
        }
        if self.count == 0 || record.group != self.group {
            self.close_group();
            delta(&mut self.columns[Column::Group as usize], &mut self.group, record.group);
        }
        self.with_group += 1;
        self.count += 1;
        let tag = match record.what {
            What::Ran { pc, count, mask } => {
                self.mask(mask);
                let start = order.place(pc).unwrap_or(0);
                delta(&mut self.columns[Column::Place as usize], &mut self.place, start);
                self.place = self.place.wrapping_add(count);
                varint(&mut self.columns[Column::Count as usize], count.into());
                RAN
            }
            What::Diverge { taken, not } => {
                self.mask(taken);
                self.mask(not);
                DIVERGE
            }
            What::Reconverge { mask } => {
                self.mask(mask);
                RECONVERGE
            }
            What::Trap { mask } => {
                self.mask(mask);
                TRAP
            }
            What::Push { kind } => {
                self.byte(kind.0);
                PUSH
            }
            What::Pop { kind } => {
                self.byte(kind.0);
                POP
            }
            What::Jump { to } => {
                varint(&mut self.columns[Column::Number as usize], to.into());
                JUMP
            }
            What::Write { lane, register, value } => {
                self.number(lane, register);
                self.columns[Column::Value as usize].extend(value.to_le_bytes());
                WRITE
            }
            What::Load { lane, address } => {
                self.number(lane, address);
                LOAD
            }
            What::Store { lane, address, value } => {
                self.number(lane, address);
                self.columns[Column::Value as usize].extend(value.to_le_bytes());
                STORE
            }
        };
        self.columns[Column::Tag as usize].push(tag);
    }

    #[inline]
    fn mask(&mut self, next: Mask) {
        varint(&mut self.columns[Column::Mask as usize], next.0 ^ self.mask);
        self.mask = next.0;
    }

    #[inline]
    fn byte(&mut self, byte: u8) {
        self.columns[Column::Byte as usize].push(byte);
    }

    fn number(&mut self, lane: Lane, number: u32) {
        self.byte(lane.0);
        delta(&mut self.columns[Column::Number as usize], &mut self.number, number);
    }

    fn close_group(&mut self) {
        if self.with_group > 0 {
            varint(&mut self.columns[Column::Group as usize], self.with_group);
            self.with_group = 0;
        }
    }

    /// Appends the bytes of the block, and begins the next.
    pub(crate) fn take(&mut self, bytes: &mut Vec<u8>) {
        self.close_group();
        varint(bytes, self.count.into());
        varint(bytes, self.first_step);
        self.columns.iter().for_each(|column| varint(bytes, column.len() as u64));
        for column in &mut self.columns {
            bytes.append(column);
        }
        let columns = std::mem::take(&mut self.columns);
        *self = Packer { columns, ..Packer::default() };
    }
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
    let mut with_group = 0;
    let mut records = Vec::with_capacity(count);
    for _ in 0..count {
        if with_group == 0 {
            columns[Column::Group as usize].delta(&mut group)?;
            with_group = columns[Column::Group as usize].varint()?;
        }
        with_group = with_group.checked_sub(1).ok_or("a group without records")?;
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
        None if with_group > 0 => Err(format!("a group of {with_group} more records than the block has")),
        None => Ok(records),
        Some(column) => Err(format!("{} bytes of a column without a record", column.bytes.len() - column.at)),
    }
}

/// Appends a number, seven bits a byte, the lowest first.
#[inline]
fn varint(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

/// Appends the difference to `last`, its sign in the lowest bit, and moves `last` on.
#[inline]
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
