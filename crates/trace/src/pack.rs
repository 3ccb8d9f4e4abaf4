//! Packs records into the bytes of a block.
//!
//! The design was measured with traces of collatz on Tesla (64 blocks of 256 threads) and on R700 (4,096 pixels). The
//! measurement compared files in other formats with files in this format. The files of this format were compressed with
//! LZ4. Each factor below is the size of a file in another format, divided by the size of the corresponding file in
//! this format. In each pair of factors, the first number is for Tesla, and the second number is for R700. One format
//! for comparison stores relations between masks, but has no copies and no phrases. This format has the factors 1.8 and
//! 1.3 with LZ4, and the factors 1.0 and 0.9 with zstd. Another format has columns of plain values. The factors are 3.1
//! and 3.0 with LZ4, and 1.8 on both machines with zstd. Phrases also save time. If the packer already has the records
//! for a key, the engine sends only the key, without the events.

use std::collections::HashMap;
use std::ops::Range;

use reconverge_simt::{Event, Lane, Mask};

use crate::columns::{
    BOTH, COLUMNS, Column, DIVERGE, EXPLICIT, JUMP, LOAD, MOST_SYMBOLS, Masks, OTHER, Order, PHRASE, POP,
    PUSH, RAN, RECENT, RECONVERGE, RESUME, SAME, STORE, Symbol, TRAP, WRITE, delta, mask_bits, varint,
};
use crate::record::Kind;
use crate::{BLOCK_RECORDS, Error};

/// The records that a key replaces in the block. An engine often sends the same sequence of events again. The engine
/// can then send a key instead of the events. See [`Packer::again`].
#[derive(Clone, Copy, Debug)]
struct Known {
    /// The key. The value `u32::MAX` means that the entry is empty.
    key: u32,
    /// If the key has one record, the symbol of this record. Otherwise, the symbol of the phrase.
    symbol: Symbol,
    /// The numbers of instructions that were issued for three sets of lanes. The sets are all lanes, the lanes that run
    /// first after a divergence, and the lanes that wait first.
    issued: [u32; 3],
    /// Whether the lanes diverge in the records of the key.
    parts: bool,
    /// The two most recent masks after the records of the key, as indices into [`Parted`].
    masks: [u8; 2],
}

impl Known {
    const NONE: Known =
        Known { key: u32::MAX, symbol: Symbol::NONE, issued: [0; 3], parts: false, masks: [0; 2] };
}

/// The masks that a phrase can use. The four masks are all lanes at the start of the phrase, the lanes that run first
/// after a divergence, the lanes that wait after a divergence, and [`Masks::other`] at the start of the phrase.
type Parted = [u64; 4];

/// Indices into a [`Parted`].
const ALL: u8 = 0;
const FIRST: u8 = 1;
const REST: u8 = 2;
const BEFORE: u8 = 3;

/// Packs the records of a block as the records arrive. If a sequence of records occurs again, the block stores a single
/// copy entry for the whole second sequence. A mask takes bytes only if the mask cannot be derived from the previous
/// masks.
///
/// If lanes diverge at every step, a trace has more records than the run has instructions. So the packer must pack a
/// record in a few nanoseconds. The packer compares the record with the expected symbol once, and stores one symbol.
#[derive(Debug)]
pub(crate) struct Packer {
    /// The symbols of the block so far, followed by [`Symbol::NONE`] in the unused elements. An array of 2^16 elements
    /// does not need a bounds check for a 16-bit index.
    symbols: Box<[Symbol; 1 << 16]>,
    len: u16,
    /// Index of an earlier symbol. The packer expects that the next symbol equals this earlier symbol. The index is
    /// [`BLOCK_RECORDS`] if no copy is open.
    ahead: u16,
    /// Index of the earlier symbol that the open copy repeats first.
    copies_from: u16,
    /// Number of literals before the open copy. If no copy is open, the number of literals before the next copy.
    literals: u16,
    columns: [Vec<u8>; COLUMNS],
    masks: Masks,
    /// Number of lanes in the last mask.
    lanes: u32,
    /// The index of a symbol for each [`Symbol::slot`]. The symbol is the last symbol with this slot that began a copy
    /// or was a literal. The symbol of an entry may come from an earlier block. Different symbols can have one slot. So
    /// [`Packer::change`] compares the symbols.
    recent: Box<[u16; RECENT]>,
    /// The addresses of all paths of the block.
    addresses: Vec<u32>,
    /// The range of each path in `addresses`.
    paths: Vec<(u32, u32)>,
    /// A hash table that finds the numbers of recent paths.
    recent_paths: Box<[u32; RECENT]>,
    /// The current group of lanes.
    group: u32,
    /// Index of the first record of the current group.
    group_since: u16,
    /// A hash table of the keys, with the records for each key.
    known: Box<[Known; RECENT]>,
    /// The symbols of all phrases.
    phrase_symbols: Vec<Symbol>,
    /// The end of each phrase in `phrase_symbols`.
    phrases: Vec<u32>,
    /// Index of the first record of the key that the packer is learning. The index is [`BLOCK_RECORDS`] if the packer
    /// is not learning a key.
    learns_from: u16,
    /// Whether `known` has entries.
    learned: bool,
    number: u32,
    /// Number of instructions since the last call of [`Packer::counted`].
    instructions: u64,
    /// Number of active lanes, summed over the instructions that `instructions` counts.
    lane_instructions: u64,
    /// Number of instructions that the launch had issued at the last call of [`Packer::counted`].
    before: u64,
    /// Number of instructions that the launch had issued before the records of the current group.
    group_from: u64,
    /// For each group, the number of instructions of the launch up to and including the group's last instruction.
    issued: HashMap<u32, u64>,
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
            known: Box::new([Known::NONE; RECENT]),
            phrase_symbols: Vec::new(),
            phrases: Vec::new(),
            learns_from: BLOCK_RECORDS,
            learned: false,
            number: 0,
            instructions: 0,
            lane_instructions: 0,
            before: 0,
            group_from: 0,
            issued: HashMap::new(),
        }
    }
}

impl Packer {
    /// Returns the number of records in the block.
    #[inline(always)]
    pub(crate) fn len(&self) -> u16 {
        self.len
    }

    /// Returns whether the block is full. The writer writes a full block before the writer appends the next record.
    #[inline(always)]
    pub(crate) fn is_full(&self) -> bool {
        self.len == BLOCK_RECORDS
    }

    /// Returns the number of instructions since the last call of this function. Also returns the sum of the active
    /// lanes over these instructions.
    pub(crate) fn counted(&mut self) -> (u64, u64) {
        self.before += self.instructions;
        (std::mem::take(&mut self.instructions), std::mem::take(&mut self.lane_instructions))
    }

    /// Returns the number of instructions since the last call of [`Packer::counted`].
    pub(crate) fn instructions(&self) -> u64 {
        self.instructions
    }

    /// Sets the group to which the following records belong.
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
        let until = self.before + self.instructions;
        let from = std::mem::replace(&mut self.group_from, until);
        if records == 0 {
            return;
        }
        let group = self.group;
        let last = match until > from {
            true => self.issued.insert(group, until),
            false => self.issued.get(&group).copied(),
        };
        // The distance to the group's last instruction. If these records directly follow the group's last instruction,
        // the distance is 1. The distance is 0 if the group has not issued an instruction.
        let ago = last.map_or(0, |last| from - last + 1);
        let column = self.column(Column::Group);
        [records.into(), group.into(), ago].into_iter().for_each(|number| varint(column, number));
    }

    /// Appends one or more consecutive instructions with the same active lanes.
    #[inline(always)]
    pub(crate) fn issues(&mut self, addresses: &[u32], mask: Mask) {
        let slot = (addresses[0].wrapping_mul(0x9e37_79b1) >> 20) as usize ^ addresses.len();
        let known = self.recent_paths[slot % RECENT];
        // The loop compares the addresses one by one. Calls of `memcmp` for short lists took 18 % of the time of a
        // trace.
        let path = self.path(known);
        let same = path.len() == addresses.len() && path.iter().zip(addresses).all(|(a, b)| a == b);
        let path = if same { known } else { self.number_of(addresses, slot % RECENT) };
        let relation = self.relation(mask);
        self.symbol(Symbol::new(RAN, relation, path));
        self.instructions += addresses.len() as u64;
        self.lane_instructions += addresses.len() as u64 * u64::from(self.lanes);
    }

    /// Returns the addresses of a path. Returns an empty slice if the path does not exist.
    #[inline(always)]
    fn path(&self, path: u32) -> &[u32] {
        let Some((start, end)) = self.paths.get(path as usize) else { return &[] };
        self.addresses.get(*start as usize..*end as usize).unwrap_or_default()
    }

    /// Returns the number of a path that is not in the table of recent paths.
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

    /// Appends an event that is not an issue. `number` returns the [`Kind`] that stands for a word.
    #[inline(always)]
    pub(crate) fn event(&mut self, event: Event, number: impl FnOnce(&'static str) -> Kind) {
        let symbol = match event {
            Event::Issue { pc, mask } => return self.issues(&[pc], mask),
            Event::Diverge { taken, not } => {
                let Masks { last, .. } = self.masks;
                self.masks = Masks { last: taken.0, other: not.0 };
                self.lanes = taken.count();
                mask_bits(self.column(Column::Mask), taken.0 ^ last);
                let rest = not.0 == last & !taken.0;
                if !rest {
                    mask_bits(self.column(Column::Mask), taken.0 ^ not.0);
                }
                Symbol::new(DIVERGE, if rest { SAME } else { OTHER }, 0)
            }
            Event::Resume { mask } => Symbol::new(RESUME, self.relation(mask), 0),
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

    /// Discards the records of all keys, because the following records come from another run.
    pub(crate) fn forget(&mut self) {
        if self.learned {
            self.known.fill(Known::NONE);
            self.learned = false;
        }
        self.learns_from = BLOCK_RECORDS;
    }

    /// Appends the records of a key. `first` are the lanes that run first after the divergence, if the lanes diverge in
    /// these records. Returns whether the lanes diverge in these records.
    ///
    /// Returns `None` if the key is unknown. After `None`, the caller must append the records of the key and then call
    /// [`Packer::learn`].
    #[inline(always)]
    pub(crate) fn again(&mut self, key: u32, active: Mask, first: Mask) -> Option<bool> {
        let Known { key: known, symbol, issued, parts, masks: [last, other] } =
            self.known[key as usize % RECENT];
        if known != key || self.masks.last != active.0 {
            self.learns_from = if self.masks.last == active.0 { self.len } else { BLOCK_RECORDS };
            return None;
        }
        self.symbol(symbol);
        if parts {
            let parted: Parted = [active.0, first.0, active.0 & !first.0, self.masks.other];
            let some = first.count();
            let lanes = [self.lanes, some, self.lanes - some, 0];
            mask_bits(self.column(Column::Mask), active.0 ^ first.0);
            self.masks = Masks { last: parted[usize::from(last & 3)], other: parted[usize::from(other & 3)] };
            self.lanes = lanes[usize::from(last & 3)];
            for (issued, lanes) in issued.into_iter().zip(lanes) {
                self.instructions += u64::from(issued);
                self.lane_instructions += u64::from(issued) * u64::from(lanes);
            }
        } else {
            self.instructions += u64::from(issued[0]);
            self.lane_instructions += u64::from(issued[0]) * u64::from(self.lanes);
        }
        Some(parts)
    }

    /// Stores the records of a key. The records of the key are all records since the call of [`Packer::again`]. Does
    /// nothing if some mask of these records does not follow from the masks of the key.
    pub(crate) fn learn(&mut self, key: u32, active: Mask, first: Mask) {
        let from = std::mem::replace(&mut self.learns_from, BLOCK_RECORDS);
        let symbols = usize::from(from)..usize::from(self.len);
        if !(1..=MOST_SYMBOLS).contains(&symbols.len()) || key == u32::MAX {
            return;
        }
        let Some(known) = self.understand(&self.symbols[symbols.clone()], active, first) else { return };
        let symbol = match symbols.len() {
            1 => self.symbols[symbols.start],
            _ => self.phrase(symbols),
        };
        self.known[key as usize % RECENT] = Known { key, symbol, ..known };
        self.learned = true;
    }

    /// Returns the symbol of a phrase. If the block does not have this phrase yet, adds the phrase.
    fn phrase(&mut self, symbols: Range<usize>) -> Symbol {
        let symbols = &self.symbols[symbols];
        let starts = std::iter::once(0).chain(self.phrases.iter().copied());
        let same = starts
            .zip(&self.phrases)
            .position(|(start, end)| &self.phrase_symbols[start as usize..*end as usize] == symbols);
        let number = same.unwrap_or_else(|| {
            self.phrase_symbols.extend_from_slice(symbols);
            self.phrases.push(self.phrase_symbols.len() as u32);
            self.phrases.len() - 1
        });
        Symbol::new(PHRASE, 0, number as u32)
    }

    /// Returns the effect of a sequence of symbols. `active` is the mask at the start of this sequence. Returns `None`
    /// if the symbols have explicit masks or data.
    fn understand(&self, symbols: &[Symbol], active: Mask, first: Mask) -> Option<Known> {
        let mut known = Known { masks: [ALL, BEFORE], ..Known::NONE };
        let proper = first.any() && (active - first).any() && (first - active).is_empty();
        for symbol in symbols {
            let [last, other] = known.masks;
            match symbol.tag() {
                PUSH | POP | JUMP => continue,
                DIVERGE if symbol.relation() == SAME && proper && !known.parts && last == ALL => {
                    (known.parts, known.masks) = (true, [FIRST, REST]);
                    continue;
                }
                RAN | RESUME | RECONVERGE => {}
                _ => return None,
            }
            known.masks = match symbol.relation() {
                SAME => [last, other],
                OTHER if other != BEFORE => [other, last],
                BOTH if last != other && last != ALL && ![ALL, BEFORE].contains(&other) => [ALL, last],
                _ => return None,
            };
            if symbol.tag() == RAN {
                known.issued[usize::from(known.masks[0])] += self.path(symbol.rest()).len() as u32;
            }
        }
        let parted = [active.0, first.0, active.0 & !first.0];
        (self.masks.last == parted[usize::from(known.masks[0])]).then_some(known)
    }

    /// Writes the phrases. The function writes each phrase as the number of its symbols, followed by the symbols. The
    /// symbols have the form of literals.
    fn write_phrases(&mut self) {
        let mut column = Vec::new();
        let mut start = 0;
        for end in &self.phrases {
            varint(&mut column, u64::from(end - start));
            for symbol in &self.phrase_symbols[start as usize..*end as usize] {
                column.push(symbol.low());
                if matches!(symbol.tag(), RAN | PUSH | POP | JUMP) {
                    varint(&mut column, symbol.rest().into());
                }
            }
            start = *end;
        }
        self.columns[Column::Phrase as usize] = column;
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

    /// Handles a symbol that differs from the expected symbol. First ends the open copy. Then begins a new copy or adds
    /// a literal.
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

    /// Ends the open copy, if a copy is open.
    fn close_copy(&mut self) {
        if self.ahead != BLOCK_RECORDS {
            let copied = self.ahead - self.copies_from;
            // The copy ends at `len`, and the repeated records end at `ahead`. The difference between `len` and `ahead`
            // is the distance of the whole copy.
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
            RAN | JUMP | PHRASE => varint(self.column(Column::Place), rest.into()),
            PUSH | POP | WRITE | LOAD | STORE => self.column(Column::Byte).push(rest as u8),
            _ => {}
        }
    }

    #[inline(always)]
    fn column(&mut self, column: Column) -> &mut Vec<u8> {
        &mut self.columns[column as usize]
    }

    /// Returns the relation between a mask and the previous masks. If the mask does not have a relation, writes the
    /// bits of the mask.
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
                mask_bits(self.column(Column::Mask), next ^ last);
                EXPLICIT
            }
        };
        self.masks.on(mask.0);
        self.lanes = mask.count();
        relation
    }

    /// Appends the bytes of the block to `bytes`, and begins the next block.
    ///
    /// # Errors
    /// Fails if the listing does not have an instruction at an address of a path. In this case, the records of the
    /// block are lost.
    pub(crate) fn take(&mut self, first_step: u64, order: &Order, bytes: &mut Vec<u8>) -> Result<(), Error> {
        self.close_group();
        self.close_copy();
        let known = self.write_paths(order);
        self.write_phrases();
        varint(bytes, self.len.into());
        varint(bytes, first_step);
        self.columns.iter().for_each(|column| varint(bytes, column.len() as u64));
        for column in &mut self.columns {
            bytes.append(column);
        }
        self.addresses.clear();
        self.paths.clear();
        self.phrase_symbols.clear();
        self.phrases.clear();
        self.forget();
        (self.len, self.literals, self.group_since, self.number) = (0, 0, 0, 0);
        (self.masks, self.lanes) = (Masks::default(), 0);
        known
    }

    /// Writes the paths. The function writes each path as the number of ranges in the path, followed by the ranges. A
    /// range consists of its start in the listing, followed by its length.
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
