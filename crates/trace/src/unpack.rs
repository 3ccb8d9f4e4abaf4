//! Reads the bytes of a block.

use reconverge_simt::{Lane, Mask};

use crate::BLOCK_RECORDS;
use crate::columns::{
    BOTH, COLUMNS, Column, DIVERGE, JUMP, LOAD, MOST_SYMBOLS, Masks, OTHER, Order, PHRASE, POP, PUSH, RAN,
    RECONVERGE, RESUME, SAME, STORE, Symbol, TRAP, WRITE,
};
use crate::record::{Kind, Record, What};

/// Decodes the symbols of a block.
#[derive(Default)]
struct Symbols {
    read: Vec<Symbol>,
    /// Number of literals that remain before the next copy.
    literals: u64,
    /// Number of records that remain in the copy.
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
            self.copied = self.copied.checked_sub(1).ok_or("a copy of 0 records")?;
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
            RAN | JUMP | PHRASE => {
                let rest = columns.of(Column::Place).varint()?;
                u32::try_from(rest)
                    .map_err(|_| format!("expected a path, phrase or jump of 32 bits, found {rest:#x}"))?
            }
            PUSH | POP | WRITE | LOAD | STORE => columns.of(Column::Byte).byte()?.into(),
            DIVERGE | RESUME | RECONVERGE | TRAP => 0,
            other => return Err(format!("record type {other}")),
        };
        Ok(Symbol::new(low.tag(), low.relation(), rest))
    }
}

/// The columns of a block. Each column has the position of the next byte to read.
struct Columns<'a>([Cursor<'a>; COLUMNS]);

impl<'a> Columns<'a> {
    fn of(&mut self, column: Column) -> &mut Cursor<'a> {
        &mut self.0[column as usize]
    }

    /// Returns the next mask. `relation` is the relation between this mask and the previous masks.
    fn mask(&mut self, masks: &mut Masks, relation: u8) -> Result<Mask, String> {
        let Masks { last, other } = *masks;
        masks.on(match relation {
            SAME => last,
            OTHER => other,
            BOTH => last | other,
            _ => last ^ self.of(Column::Mask).mask_bits()?,
        });
        Ok(Mask(masks.last))
    }

    /// Reads the phrases of a block. Returns the symbols of each phrase.
    fn phrases(&mut self) -> Result<Vec<Vec<Symbol>>, String> {
        let column = self.of(Column::Phrase);
        let mut phrases = Vec::new();
        while !column.is_at_end() {
            let count = column.varint()?;
            if count > MOST_SYMBOLS as u64 {
                return Err(format!("expected at most {MOST_SYMBOLS} symbols in a phrase, found {count}"));
            }
            let mut phrase = Vec::new();
            for _ in 0..count {
                let low = Symbol(column.byte()?.into());
                let rest = match low.tag() {
                    RAN | PUSH | POP | JUMP => column.varint()?,
                    DIVERGE | RESUME | RECONVERGE => 0,
                    other => return Err(format!("unexpected record type {other} in a phrase")),
                };
                let rest = u32::try_from(rest).map_err(|_| format!("{rest:#x} in a phrase"))?;
                phrase.push(Symbol::new(low.tag(), low.relation(), rest));
            }
            phrases.push(phrase);
        }
        Ok(phrases)
    }

    /// Reads the paths of a block. Returns the ranges of each path. A range is the index of its first instruction and
    /// its number of instructions.
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
                    return Err(format!(
                        "invalid run of {count} instructions from position {place} of the listing"
                    ));
                }
                behind = place + count as u32;
                pieces.push((place, count as u32));
            }
            paths.push(pieces);
        }
        Ok(paths)
    }
}

/// Returns the first step and the records of a block. If the bytes are invalid, returns a description of the problem.
pub(crate) fn unpack(bytes: &[u8], order: &Order) -> Result<(u64, Vec<Record>), String> {
    let mut head = Cursor { bytes, at: 0 };
    let count = head.varint()? as usize;
    if count > BLOCK_RECORDS.into() {
        return Err(format!("expected at most {BLOCK_RECORDS} entries in a block, found {count}"));
    }
    let step = head.varint()?;
    let mut lengths = [0usize; COLUMNS];
    for length in &mut lengths {
        *length = head.varint()? as usize;
    }
    let mut rest = &bytes[head.at..];
    let mut columns = Columns([Cursor { bytes: &[], at: 0 }; COLUMNS]);
    for (column, length) in columns.0.iter_mut().zip(lengths) {
        let (bytes, behind) =
            rest.split_at_checked(length).ok_or("a column extends past the end of its block")?;
        (column.bytes, rest) = (bytes, behind);
    }
    if !rest.is_empty() {
        return Err(format!("{} unused bytes after the last column", rest.len()));
    }
    let paths = columns.paths(order)?;
    let phrases = columns.phrases()?;
    let mut records = Records {
        columns,
        order,
        paths,
        records: Vec::with_capacity(count),
        step,
        last: 0,
        group: 0,
        number: 0,
        masks: Masks::default(),
        behind: None,
    };
    let mut with_group = 0;
    let mut symbols = Symbols::default();
    for _ in 0..count {
        let columns = &mut records.columns;
        if with_group == 0 {
            with_group = columns.of(Column::Group).varint()?;
            let number = columns.of(Column::Group).varint()?;
            records.group = u32::try_from(number).map_err(|_| format!("group {number}"))?;
            let ago = columns.of(Column::Group).varint()?;
            let last = if ago == 0 { Some(records.step) } else { records.step.checked_sub(ago) };
            records.last = last.ok_or_else(|| format!("an instruction {ago} steps before the start"))?;
        }
        with_group = with_group.checked_sub(1).ok_or("a group without records")?;
        let symbol = symbols.next(columns)?;
        if symbol.tag() == PHRASE {
            let number = symbol.rest();
            let phrase = phrases.get(number as usize).ok_or_else(|| format!("no phrase {number}"))?;
            for symbol in phrase {
                records.add(*symbol)?;
            }
        } else {
            records.add(symbol)?;
        }
    }
    match records.columns.0.iter().find(|column| !column.is_at_end()) {
        None if with_group > 0 => {
            Err(format!("a group has {with_group} entries that its block does not contain"))
        }
        None if symbols.copied > 0 => {
            Err(format!("a copy has {} entries that its block does not contain", symbols.copied))
        }
        None => Ok((step, records.records)),
        Some(column) => {
            Err(format!("{} unused bytes at the end of a column", column.bytes.len() - column.at))
        }
    }
}

/// The records that the reader has decoded so far, and the state for decoding the next record.
struct Records<'a> {
    columns: Columns<'a>,
    order: &'a Order,
    paths: Vec<Vec<(u32, u32)>>,
    records: Vec<Record>,
    /// Number of instructions that the launch issued before the next record.
    step: u64,
    /// The step of the group's last instruction.
    last: u64,
    group: u32,
    number: u32,
    masks: Masks,
    /// The listing index of the instruction that follows the last record. `None` if the last record is not a run of
    /// instructions.
    behind: Option<u32>,
}

impl Records<'_> {
    /// Adds the record of a symbol. If the symbol has a path, adds all records of the path.
    fn add(&mut self, symbol: Symbol) -> Result<(), String> {
        let Records { columns, masks, number, .. } = self;
        let (relation, rest) = (symbol.relation(), symbol.rest());
        let what = match symbol.tag() {
            RAN => {
                let mask = columns.mask(masks, relation)?;
                return self.ran(rest, mask);
            }
            DIVERGE => {
                let before = masks.last;
                let taken = before ^ columns.of(Column::Mask).mask_bits()?;
                let not = match relation {
                    SAME => before & !taken,
                    _ => taken ^ columns.of(Column::Mask).mask_bits()?,
                };
                *masks = Masks { last: taken, other: not };
                What::Diverge { taken: Mask(taken), not: Mask(not) }
            }
            RESUME => What::Resume { mask: columns.mask(masks, relation)? },
            RECONVERGE => What::Reconverge { mask: columns.mask(masks, relation)? },
            TRAP => What::Trap { mask: columns.mask(masks, relation)? },
            PUSH => What::Push { kind: Kind(rest as u8) },
            POP => What::Pop { kind: Kind(rest as u8) },
            JUMP => What::Jump { to: rest },
            tag => {
                let lane = Lane(rest as u8);
                if lane.0 >= 64 {
                    return Err(format!("lane {}", lane.0));
                }
                columns.of(Column::Number).delta(number)?;
                match tag {
                    WRITE => {
                        What::Write { lane, register: *number, value: columns.of(Column::Value).word()? }
                    }
                    LOAD => What::Load { lane, address: *number },
                    _ => What::Store { lane, address: *number, value: columns.of(Column::Value).word()? },
                }
            }
        };
        self.behind = None;
        self.records.push(Record { step: self.last, group: self.group, what });
        Ok(())
    }

    /// Adds the records of a path. If the first range of the path directly follows the last record, the function
    /// extends the last record instead of adding a record.
    fn ran(&mut self, path: u32, mask: Mask) -> Result<(), String> {
        let Records { order, paths, records, step, group, behind, .. } = self;
        let pieces = paths.get(path as usize).ok_or_else(|| format!("no path {path}"))?;
        for &(place, count) in pieces {
            if *behind == Some(place)
                && let Some(Record { group: of, what: What::Ran { count: before, mask: lanes, .. }, .. }) =
                    records.last_mut()
                && (*of, *lanes) == (*group, mask)
            {
                *before += count;
            } else {
                let pc = order.from(place, 1).first().copied().unwrap_or(0);
                records.push(Record { step: *step, group: *group, what: What::Ran { pc, count, mask } });
            }
            *behind = Some(place + count);
            *step += u64::from(count);
        }
        self.last = self.step.saturating_sub(1);
        Ok(())
    }
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
        let byte = self.bytes.get(self.at).ok_or("a column ends before its last record")?;
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
        Err("expected a number of at most 64 bits".to_owned())
    }

    fn mask_bits(&mut self) -> Result<u64, String> {
        let first = self.byte()?;
        let behind = first.trailing_zeros();
        let mut value = u128::from(first);
        for place in 1..=behind {
            value |= u128::from(self.byte()?) << (8 * place);
        }
        let value = value >> (behind + 1).min(8);
        u64::try_from(value).map_err(|_| "expected a mask of at most 64 bits".to_owned())
    }

    fn delta(&mut self, last: &mut u32) -> Result<(), String> {
        let value = self.varint()? as u32;
        *last = last.wrapping_add((value >> 1) ^ (value & 1).wrapping_neg());
        Ok(())
    }
}
