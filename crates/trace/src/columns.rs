//! A block's bytes: [`Record`]s in columns, so that each column packs well.

use reconverge_simt::{Event, Lane, Mask};

use crate::record::{Kind, Record, What};
use crate::{BLOCK_RECORDS, Error};

/// The columns, in the order of the file. Each has a subject of its own, so that neighbours are alike.
#[derive(Clone, Copy, Debug)]
enum Column {
    /// Instructions that are issued one after another: of each path its pieces of the listing, as places and lengths.
    Path,
    /// Which records go on as others some way back did: literals before them, how far back, how many.
    Copy,
    /// What a literal is, and the relation of its mask to those before it, a byte each.
    Tag,
    /// Of records in a row with the same group: how many, and the group.
    Group,
    /// Numbers of paths, and addresses that are jumped to.
    Place,
    /// Lane masks that do not follow from the masks before, as the bits that differ from the last one.
    Mask,
    /// Lanes and kinds, a byte each.
    Byte,
    /// Registers and byte addresses, as the difference to the one before.
    Number,
    /// Values, four bytes each.
    Value,
}

const COLUMNS: usize = 9;

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

/// A record without its masks, numbers and values: tag, relation of its mask, and what else it is. Never `u64::MAX`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Symbol(u64);

impl Symbol {
    /// Bits of the tag and the relation, which a literal has as a byte.
    const LOW: u32 = 6;
    /// No symbol.
    const NONE: Symbol = Symbol(u64::MAX);

    #[inline(always)]
    fn new(tag: u8, relation: u8, rest: u32) -> Symbol {
        Symbol(u64::from(tag | relation << 4) | u64::from(rest) << Symbol::LOW)
    }

    fn low(self) -> u8 {
        self.0 as u8 & ((1 << Symbol::LOW) - 1)
    }

    fn tag(self) -> u8 {
        self.0 as u8 & 15
    }

    fn relation(self) -> u8 {
        self.0 as u8 >> 4 & 3
    }

    fn rest(self) -> u32 {
        (self.0 >> Symbol::LOW) as u32
    }

    /// Its place in a table of [`RECENT`] places.
    fn slot(self) -> usize {
        (self.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - RECENT.trailing_zeros())) as usize
    }
}

/// Places of the tables of symbols that a copy may begin with, and of paths.
const RECENT: usize = 1 << 10;

/// What a mask is beside the ones before it. Of a divergence: [`SAME`], the lanes that wait are the rest of the last mask;
/// [`OTHER`], they follow.
const SAME: u8 = 0;
/// The mask before the last one that differed.
const OTHER: u8 = 1;
/// Both together.
const BOTH: u8 = 2;
/// None of these: its bits follow.
const EXPLICIT: u8 = 3;

/// The last two masks that differ.
#[derive(Clone, Copy, Debug, Default)]
struct Masks {
    last: u64,
    other: u64,
}

impl Masks {
    /// Moves on to the next mask.
    #[inline]
    fn on(&mut self, next: u64) {
        if next != self.last {
            *self = Masks { last: next, other: self.last };
        }
    }
}

/// Packs the records of a block as they come: a record that goes on as the records some way back did takes no bytes but
/// those of masks that do not follow from the masks before.
///
/// Where lanes part at every step a trace has more records than the run has instructions, and each may take a few
/// nanoseconds: one comparison with the symbol that is expected, and one store.
#[derive(Debug)]
pub(crate) struct Packer {
    /// The symbols so far, and [`Symbol::NONE`] at the end. A place of 16 bits needs no check.
    symbols: Box<[Symbol; 1 << 16]>,
    len: u16,
    /// The place of the symbol that the next one repeats, as far as is known; [`BLOCK_RECORDS`] otherwise.
    ahead: u16,
    /// Where the copy began.
    copies_from: u16,
    /// The records before the copy, or before the next one.
    literals: u16,
    columns: [Vec<u8>; COLUMNS],
    masks: Masks,
    /// How many lanes the last mask has.
    lanes: u32,
    /// Where a symbol was when it last began a copy or was a literal. Of another block, or of another symbol: no matter.
    recent: Box<[u16; RECENT]>,
    /// The addresses of the block's paths, where those of each are, and a path by its first address and length.
    addresses: Vec<u32>,
    paths: Vec<(u32, u32)>,
    recent_paths: Box<[u32; RECENT]>,
    /// The group, and the record from which on it is.
    group: u32,
    group_since: u16,
    number: u32,
    /// Instructions, and instructions of lanes, since the last time that they were asked for.
    instructions: u64,
    lane_instructions: u64,
}

impl Default for Packer {
    fn default() -> Packer {
        Packer {
            symbols: Box::new([Symbol::NONE; 1 << 16]),
            len: 0,
            ahead: BLOCK_RECORDS,
            copies_from: BLOCK_RECORDS,
            literals: 0,
            columns: Default::default(),
            masks: Masks::default(),
            lanes: 0,
            recent: Box::new([0; RECENT]),
            addresses: Vec::new(),
            paths: Vec::new(),
            recent_paths: Box::new([0; RECENT]),
            group: 0,
            group_since: 0,
            number: 0,
            instructions: 0,
            lane_instructions: 0,
        }
    }
}

impl Packer {
    /// How many records it has.
    #[inline(always)]
    pub(crate) fn len(&self) -> u16 {
        self.len
    }

    /// Whether it has room for another record. There is always room for one.
    #[inline(always)]
    pub(crate) fn is_full(&self) -> bool {
        self.len == BLOCK_RECORDS
    }

    /// Instructions and lane instructions since the last call.
    pub(crate) fn counted(&mut self) -> (u64, u64) {
        (std::mem::take(&mut self.instructions), std::mem::take(&mut self.lane_instructions))
    }

    /// Instructions since the last call of [`Packer::counted`].
    pub(crate) fn instructions(&self) -> u64 {
        self.instructions
    }

    /// What follows happens to a group.
    #[inline(always)]
    pub(crate) fn group(&mut self, group: u32) {
        if group != self.group {
            self.close_group();
            self.group = group;
        }
    }

    #[inline(never)]
    fn close_group(&mut self) {
        let records = self.len - std::mem::replace(&mut self.group_since, self.len);
        if records > 0 {
            let column = self.column(Column::Group);
            varint(column, records.into());
            let group = self.group;
            varint(self.column(Column::Group), group.into());
        }
    }

    /// Appends instructions that are issued one after another, at least one.
    #[inline(always)]
    pub(crate) fn issues(&mut self, addresses: &[u32], mask: Mask) {
        let slot = (addresses[0].wrapping_mul(0x9e37_79b1) >> 20) as usize ^ addresses.len();
        let known = self.recent_paths[slot % RECENT];
        // Element by element: a call of `memcmp` takes longer than short lists do (18 % of a trace).
        let path = self.path(known);
        let same = path.len() == addresses.len() && path.iter().zip(addresses).all(|(a, b)| a == b);
        let path = if same { known } else { self.number_of(addresses, slot % RECENT) };
        let relation = self.relation(mask);
        self.symbol(Symbol::new(RAN, relation, path));
        self.instructions += addresses.len() as u64;
        self.lane_instructions += addresses.len() as u64 * u64::from(self.lanes);
    }

    /// The addresses of a path; none if there is no such path.
    #[inline(always)]
    fn path(&self, path: u32) -> &[u32] {
        let Some((start, end)) = self.paths.get(path as usize) else { return &[] };
        self.addresses.get(*start as usize..*end as usize).unwrap_or_default()
    }

    /// The number of a path that is not in the table.
    #[cold]
    fn number_of(&mut self, addresses: &[u32], slot: usize) -> u32 {
        let paths = self.paths.len() as u32;
        let path = (0..paths).find(|path| self.path(*path) == addresses).unwrap_or_else(|| {
            let start = self.addresses.len() as u32;
            self.addresses.extend_from_slice(addresses);
            self.paths.push((start, self.addresses.len() as u32));
            paths
        });
        self.recent_paths[slot] = path;
        path
    }

    /// Appends an event that is no issue; `number` gives the number of a word.
    #[inline(always)]
    pub(crate) fn event(&mut self, event: Event, number: impl FnOnce(&'static str) -> Kind) {
        let symbol = match event {
            Event::Issue { pc, mask } => return self.issues(&[pc], mask),
            Event::Diverge { taken, not } => {
                let Masks { last, .. } = self.masks;
                self.masks = Masks { last: taken.0, other: not.0 };
                self.lanes = taken.count();
                varint(self.column(Column::Mask), taken.0 ^ last);
                let rest = not.0 == last & !taken.0;
                if !rest {
                    varint(self.column(Column::Mask), taken.0 ^ not.0);
                }
                Symbol::new(DIVERGE, if rest { SAME } else { OTHER }, 0)
            }
            Event::Reconverge { mask } => Symbol::new(RECONVERGE, self.relation(mask), 0),
            Event::Trap { mask } => Symbol::new(TRAP, self.relation(mask), 0),
            Event::Push { kind } => Symbol::new(PUSH, 0, number(kind).0.into()),
            Event::Pop { kind } => Symbol::new(POP, 0, number(kind).0.into()),
            Event::Jump { to } => Symbol::new(JUMP, 0, to),
            Event::Write { lane, register, value } => self.data(WRITE, lane, register, Some(value)),
            Event::Load { lane, address } => self.data(LOAD, lane, address, None),
            Event::Store { lane, address, value } => self.data(STORE, lane, address, Some(value)),
        };
        self.symbol(symbol);
    }

    fn data(&mut self, tag: u8, lane: Lane, number: u32, value: Option<u32>) -> Symbol {
        delta(&mut self.columns[Column::Number as usize], &mut self.number, number);
        if let Some(value) = value {
            self.column(Column::Value).extend(value.to_le_bytes());
        }
        Symbol::new(tag, 0, lane.0.into())
    }

    #[inline(always)]
    fn symbol(&mut self, symbol: Symbol) {
        if self.symbols[usize::from(self.ahead)] == symbol {
            self.ahead += 1;
        } else {
            self.change(symbol);
        }
        self.symbols[usize::from(self.len)] = symbol;
        self.len += 1;
    }

    /// The next symbol is not the one that the copy goes on with.
    #[inline(never)]
    fn change(&mut self, symbol: Symbol) {
        self.close_copy();
        let before = std::mem::replace(&mut self.recent[symbol.slot()], self.len);
        if before < self.len && self.symbols[usize::from(before)] == symbol {
            (self.copies_from, self.ahead) = (before, before + 1);
        } else {
            self.literals += 1;
            self.literal(symbol);
        }
    }

    /// A copy ends, if there is one.
    fn close_copy(&mut self) {
        if self.ahead != BLOCK_RECORDS {
            let copied = self.ahead - self.copies_from;
            // It copies to where the literals and it end now.
            let distance = self.len - self.ahead;
            let literals = std::mem::take(&mut self.literals);
            let column = self.column(Column::Copy);
            [literals, distance, copied].into_iter().for_each(|number| varint(column, number.into()));
            self.ahead = BLOCK_RECORDS;
        }
    }

    fn literal(&mut self, symbol: Symbol) {
        self.column(Column::Tag).push(symbol.low());
        let rest = symbol.rest();
        match symbol.tag() {
            RAN | JUMP => varint(self.column(Column::Place), rest.into()),
            PUSH | POP | WRITE | LOAD | STORE => self.column(Column::Byte).push(rest as u8),
            _ => {}
        }
    }

    #[inline(always)]
    fn column(&mut self, column: Column) -> &mut Vec<u8> {
        &mut self.columns[column as usize]
    }

    /// The relation of a mask to those before it; its bits, where they do not follow.
    #[inline(always)]
    fn relation(&mut self, mask: Mask) -> u8 {
        if mask.0 == self.masks.last { SAME } else { self.other_mask(mask) }
    }

    #[inline(never)]
    fn other_mask(&mut self, mask: Mask) -> u8 {
        let Masks { last, other } = self.masks;
        let relation = match mask.0 {
            next if next == other => OTHER,
            next if next == last | other => BOTH,
            next => {
                varint(self.column(Column::Mask), next ^ last);
                EXPLICIT
            }
        };
        self.masks.on(mask.0);
        self.lanes = mask.count();
        relation
    }

    /// Appends the bytes of the block, and begins the next.
    ///
    /// # Errors
    /// The listing has no instruction at an address of a path; the block is lost.
    pub(crate) fn take(&mut self, first_step: u64, order: &Order, bytes: &mut Vec<u8>) -> Result<(), Error> {
        self.close_group();
        self.close_copy();
        let known = self.write_paths(order);
        varint(bytes, self.len.into());
        varint(bytes, first_step);
        self.columns.iter().for_each(|column| varint(bytes, column.len() as u64));
        for column in &mut self.columns {
            bytes.append(column);
        }
        self.addresses.clear();
        self.paths.clear();
        (self.len, self.literals, self.group_since, self.number) = (0, 0, 0, 0);
        (self.masks, self.lanes) = (Masks::default(), 0);
        known
    }

    /// Writes the paths: of each, how many pieces of the listing it has, where each begins and how long it is.
    fn write_paths(&mut self, order: &Order) -> Result<(), Error> {
        let mut column = Vec::new();
        let mut behind = 0;
        for path in 0..self.paths.len() as u32 {
            let mut pieces: Vec<(u32, u32)> = Vec::new();
            for pc in self.path(path) {
                let place = order.place(*pc).ok_or(Error::UnknownInstruction { pc: *pc })?;
                match pieces.last_mut() {
                    Some((start, count)) if *start + *count == place => *count += 1,
                    _ => pieces.push((place, 1)),
                }
            }
            varint(&mut column, pieces.len() as u64);
            for (place, count) in pieces {
                delta(&mut column, &mut behind, place);
                varint(&mut column, count.into());
                behind = place + count;
            }
        }
        self.columns[Column::Path as usize] = column;
        Ok(())
    }
}

/// Reads the symbols of a block.
#[derive(Default)]
struct Symbols {
    read: Vec<Symbol>,
    /// Literals, and records of the copy behind them, that are still to come.
    literals: u64,
    copied: u64,
    distance: u64,
}

impl Symbols {
    fn next(&mut self, columns: &mut Columns<'_>) -> Result<Symbol, String> {
        if self.literals == 0 && self.copied == 0 {
            let copies = columns.of(Column::Copy);
            if copies.is_at_end() {
                self.literals = u64::MAX;
            } else {
                (self.literals, self.distance, self.copied) =
                    (copies.varint()?, copies.varint()?, copies.varint()?);
            }
        }
        let symbol = if self.literals > 0 {
            self.literals -= 1;
            Symbols::literal(columns)?
        } else {
            self.copied = self.copied.checked_sub(1).ok_or("a copy of no records")?;
            let back = self.read.len().checked_sub(self.distance as usize).filter(|_| self.distance > 0);
            back.and_then(|at| self.read.get(at).copied())
                .ok_or_else(|| format!("record {} copies {} records back", self.read.len(), self.distance))?
        };
        self.read.push(symbol);
        Ok(symbol)
    }

    fn literal(columns: &mut Columns<'_>) -> Result<Symbol, String> {
        let low = Symbol(columns.of(Column::Tag).byte()?.into());
        let rest = match low.tag() {
            RAN | JUMP => {
                let rest = columns.of(Column::Place).varint()?;
                u32::try_from(rest).map_err(|_| format!("a path or a jump beyond 32 bits: {rest:#x}"))?
            }
            PUSH | POP | WRITE | LOAD | STORE => columns.of(Column::Byte).byte()?.into(),
            DIVERGE | RECONVERGE | TRAP => 0,
            other => return Err(format!("record type {other}")),
        };
        Ok(Symbol::new(low.tag(), low.relation(), rest))
    }
}

/// The columns of a block that is read.
struct Columns<'a>([Cursor<'a>; COLUMNS]);

impl<'a> Columns<'a> {
    fn of(&mut self, column: Column) -> &mut Cursor<'a> {
        &mut self.0[column as usize]
    }

    /// The next mask of a relation to those before it.
    fn mask(&mut self, masks: &mut Masks, relation: u8) -> Result<Mask, String> {
        let Masks { last, other } = *masks;
        masks.on(match relation {
            SAME => last,
            OTHER => other,
            BOTH => last | other,
            _ => last ^ self.of(Column::Mask).varint()?,
        });
        Ok(Mask(masks.last))
    }

    /// The paths: of each its pieces, as the place of the first instruction and how many there are.
    fn paths(&mut self, order: &Order) -> Result<Vec<Vec<(u32, u32)>>, String> {
        let column = self.of(Column::Path);
        let (mut paths, mut behind) = (Vec::new(), 0u32);
        while !column.is_at_end() {
            let mut pieces = Vec::new();
            for _ in 0..column.varint()? {
                column.delta(&mut behind)?;
                let (place, count) = (behind, column.varint()?);
                let there = u32::try_from(count).map_or(0, |count| order.from(place, count).len() as u64);
                if count == 0 || there != count {
                    return Err(format!("a run of {count} instructions from place {place} of the listing"));
                }
                behind = place + count as u32;
                pieces.push((place, count as u32));
            }
            paths.push(pieces);
        }
        Ok(paths)
    }
}

/// The records of a block; what is wrong with its bytes otherwise.
pub(crate) fn unpack(bytes: &[u8], order: &Order) -> Result<Vec<Record>, String> {
    let mut head = Cursor { bytes, at: 0 };
    let count = head.varint()? as usize;
    if count > BLOCK_RECORDS.into() {
        return Err(format!("{count} records in a block, of which there are at most {BLOCK_RECORDS}"));
    }
    let mut step = head.varint()?;
    let mut lengths = [0usize; COLUMNS];
    for length in &mut lengths {
        *length = head.varint()? as usize;
    }
    let mut rest = &bytes[head.at..];
    let mut columns = Columns([Cursor { bytes: &[], at: 0 }; COLUMNS]);
    for (column, length) in columns.0.iter_mut().zip(lengths) {
        let (bytes, behind) = rest.split_at_checked(length).ok_or("a column ends behind its block")?;
        (column.bytes, rest) = (bytes, behind);
    }
    if !rest.is_empty() {
        return Err(format!("{} bytes behind the last column", rest.len()));
    }
    let paths = columns.paths(order)?;
    let (mut group, mut number, mut masks) = (0u32, 0u32, Masks::default());
    let mut with_group = 0;
    let mut symbols = Symbols::default();
    let mut records: Vec<Record> = Vec::with_capacity(count);
    // The place behind the last record, if that is a run of instructions.
    let mut behind = None;
    for _ in 0..count {
        if with_group == 0 {
            with_group = columns.of(Column::Group).varint()?;
            let number = columns.of(Column::Group).varint()?;
            group = u32::try_from(number).map_err(|_| format!("group {number}"))?;
        }
        with_group = with_group.checked_sub(1).ok_or("a group without records")?;
        let symbol = symbols.next(&mut columns)?;
        let (relation, rest) = (symbol.relation(), symbol.rest());
        let what = match symbol.tag() {
            RAN => {
                let mask = columns.mask(&mut masks, relation)?;
                let pieces = paths.get(rest as usize).ok_or_else(|| format!("no path {rest}"))?;
                for &(place, count) in pieces {
                    if behind == Some(place)
                        && let Some(Record {
                            group: of,
                            what: What::Ran { count: before, mask: lanes, .. },
                            ..
                        }) = records.last_mut()
                        && (*of, *lanes) == (group, mask)
                    {
                        *before += count;
                    } else {
                        let pc = order.from(place, 1).first().copied().unwrap_or(0);
                        records.push(Record { step, group, what: What::Ran { pc, count, mask } });
                    }
                    behind = Some(place + count);
                    step += u64::from(count);
                }
                continue;
            }
            DIVERGE => {
                let before = masks.last;
                let taken = before ^ columns.of(Column::Mask).varint()?;
                let not = match relation {
                    SAME => before & !taken,
                    _ => taken ^ columns.of(Column::Mask).varint()?,
                };
                masks = Masks { last: taken, other: not };
                What::Diverge { taken: Mask(taken), not: Mask(not) }
            }
            RECONVERGE => What::Reconverge { mask: columns.mask(&mut masks, relation)? },
            TRAP => What::Trap { mask: columns.mask(&mut masks, relation)? },
            PUSH => What::Push { kind: Kind(rest as u8) },
            POP => What::Pop { kind: Kind(rest as u8) },
            JUMP => What::Jump { to: rest },
            tag => {
                let lane = Lane(rest as u8);
                if lane.0 >= 64 {
                    return Err(format!("lane {}", lane.0));
                }
                columns.of(Column::Number).delta(&mut number)?;
                match tag {
                    WRITE => What::Write { lane, register: number, value: columns.of(Column::Value).word()? },
                    LOAD => What::Load { lane, address: number },
                    _ => What::Store { lane, address: number, value: columns.of(Column::Value).word()? },
                }
            }
        };
        behind = None;
        records.push(Record { step, group, what });
    }
    match columns.0.iter().find(|column| !column.is_at_end()) {
        None if with_group > 0 => Err(format!("a group of {with_group} more records than the block has")),
        None if symbols.copied > 0 => {
            Err(format!("a copy of {} more records than the block has", symbols.copied))
        }
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
    fn is_at_end(&self) -> bool {
        self.at == self.bytes.len()
    }

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
