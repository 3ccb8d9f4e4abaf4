//! Reads a whole trace, or some blocks of a trace. If a trace is truncated, all blocks up to the last complete block
//! can be read.

use std::io::{Read, Seek, SeekFrom};

use crate::columns::Order;
use crate::record::{End, Header, Kind, Line, Record, What};
use crate::unpack::unpack;
use crate::{END_MAGIC, Error, MAGIC, MOST_BYTES, SECTION_HEAD, Section, VERSION};

/// The position of a block in a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// Offset of the block in the file, in bytes.
    pub offset: u64,
    /// Number of instructions that were issued before the first record of the block.
    pub first_step: u64,
}

/// A trace that is open for reading.
#[derive(Debug)]
pub struct Reader<R> {
    input: R,
    header: Header,
    order: Order,
    blocks: Vec<Block>,
    kinds: Vec<String>,
    end: Option<End>,
    problem: Option<Error>,
}

impl<R: Read + Seek> Reader<R> {
    /// Opens a trace. If the end of the file is missing or damaged, the reader can read the blocks before the damage.
    /// In this case, [`Reader::problem`] returns the error in the file.
    ///
    /// # Errors
    /// Fails if the input is not a trace or does not have a header. Also fails if the trace has another version of the
    /// format.
    pub fn new(mut input: R) -> Result<Reader<R>, Error> {
        let size = input.seek(SeekFrom::End(0))?;
        input.rewind()?;
        let mut start = [0; MAGIC.len() + 2];
        let got = fill(&mut input, &mut start)?;
        let (magic, version) = start.split_at(MAGIC.len());
        if got < MAGIC.len() || magic != MAGIC {
            return Err(if magic.starts_with(b"RTRACE") { Error::LineEnds } else { Error::NotATrace });
        }
        let version = u16::from_le_bytes([version[0], version[1]]);
        if got == start.len() && version != VERSION {
            return Err(Error::Version { found: version });
        }
        let first = start.len() as u64;
        let Some((Section::Header, bytes, behind)) = section(&mut input, first, size)? else {
            return Err(Error::NoHeader { at: size });
        };
        let damaged = |at, what: &dyn std::fmt::Display| Error::Damaged { at, what: what.to_string() };
        let header: Header = serde_json::from_slice(&bytes).map_err(|error| damaged(first, &error))?;
        let addresses = header.listing.iter().map(|line| line.address).collect();
        let order = Order::new(addresses)
            .ok_or_else(|| damaged(first, &"the addresses of the listing are not in ascending order"))?;
        let mut reader =
            Reader { input, header, order, blocks: Vec::new(), kinds: Vec::new(), end: None, problem: None };
        match reader.indexed(size) {
            Ok(Some(end)) => {
                let block = |&(offset, first_step, _)| Block { offset, first_step };
                reader.blocks = end.blocks.iter().map(block).collect();
                reader.end = Some(end);
            }
            Ok(None) | Err(Error::Damaged { .. }) => reader.scan(behind, size)?,
            Err(error) => return Err(error),
        }
        Ok(reader)
    }

    /// Returns the header, which precedes the first record.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Returns the data after the last block. Returns `None` if the file is truncated.
    pub fn end(&self) -> Option<&End> {
        self.end.as_ref()
    }

    /// Returns the blocks, in order.
    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// Returns the error in the file after the last block. Returns `None` if the file has no error.
    pub fn problem(&self) -> Option<&Error> {
        self.problem.as_ref()
    }

    /// Returns the manual's word for a kind. The kind must come from a record of this trace.
    pub fn kind(&self, kind: Kind) -> &str {
        self.kinds.get(usize::from(kind.0)).map_or("?", String::as_str)
    }

    /// Returns the addresses of `count` consecutive instructions, in the machine's unit. The first address is `pc`.
    pub fn addresses(&self, pc: u32, count: u32) -> &[u32] {
        self.order.place(pc).map_or(&[], |place| self.order.from(place, count))
    }

    /// Returns the instruction of the listing at an address.
    pub fn line(&self, address: u32) -> Option<&Line> {
        Some(&self.header.listing[self.order.place(address)? as usize])
    }

    /// Returns an address in the notation of listings. If the unit of addresses is bytes, the address is hexadecimal.
    pub fn spelled(&self, address: u32) -> String {
        if self.header.unit == "bytes" { format!("{address:#x}") } else { address.to_string() }
    }

    /// Returns a record as text. If the record is a run of instructions, the result is the text of the first
    /// instruction. If the record is an event, the result describes the event. `space` is the name of the memory that a
    /// load or store accesses. [`Following`](crate::Following) finds this name.
    pub fn described(&self, what: &What, space: Option<&str>) -> String {
        match *what {
            What::Ran { pc, .. } => self.line(pc).map_or_else(|| self.spelled(pc), |line| line.text.clone()),
            What::Diverge { taken, not } => format!("diverge: {taken} first, then {not}"),
            What::Resume { mask } => format!("resume: {mask}"),
            What::Reconverge { mask } => format!("reconverge: {mask}"),
            What::Push { kind } => format!("push {}", self.kind(kind)),
            What::Pop { kind } => format!("pop {}", self.kind(kind)),
            What::Jump { to } => format!("jump to {}", self.spelled(to)),
            What::Trap { mask } => format!("trap: {mask}"),
            What::Write { lane, register, value } => {
                format!("lane {} writes {}: {value:#010x}", lane.0, self.header.register(register))
            }
            What::Load { lane, address } => format!("lane {} loads {}", lane.0, place(space, address)),
            What::Store { lane, address, value } => {
                format!("lane {} stores {value:#010x} at {}", lane.0, place(space, address))
            }
        }
    }

    /// Returns the records of a block.
    ///
    /// # Errors
    /// Fails if the block is damaged.
    pub fn block(&mut self, number: usize) -> Result<Vec<Record>, Error> {
        let Some(block) = self.blocks.get(number).copied() else { return Ok(Vec::new()) };
        let size = self.input.seek(SeekFrom::End(0))?;
        let damaged = |what: String| Error::Damaged { at: block.offset, what };
        self.input.seek(SeekFrom::Start(block.offset))?;
        let Some((Section::Block, bytes, _)) = section(&mut self.input, block.offset, size)? else {
            return Err(damaged("no block".to_owned()));
        };
        let (kinds, columns) = words(&bytes).map_err(damaged)?;
        if kinds.len() > self.kinds.len() {
            self.kinds = kinds;
        }
        Ok(unpack(columns, &self.order).map_err(damaged)?.1)
    }

    /// Returns an iterator over all records. The iterator has only one block in memory at a time.
    pub fn records(&mut self) -> Records<'_, R> {
        Records { reader: self, next: 0, block: Vec::new().into_iter() }
    }

    /// Reads the end section of a complete file. The end section has the index of the blocks. Returns `None` if the
    /// file is not complete.
    fn indexed(&mut self, size: u64) -> Result<Option<End>, Error> {
        const TAIL: u64 = 8 + END_MAGIC.len() as u64;
        if size < TAIL {
            return Ok(None);
        }
        self.input.seek(SeekFrom::Start(size - TAIL))?;
        let mut tail = [0; TAIL as usize];
        self.input.read_exact(&mut tail)?;
        let (offset, magic) = tail.split_at(8);
        if magic != END_MAGIC {
            return Ok(None);
        }
        let at = u64::from_le_bytes(offset.try_into().unwrap_or_default());
        self.input.seek(SeekFrom::Start(at.min(size)))?;
        let Some((Section::End, bytes, _)) = section(&mut self.input, at, size)? else { return Ok(None) };
        serde_json::from_slice(&bytes)
            .map(Some)
            .map_err(|error| Error::Damaged { at, what: error.to_string() })
    }

    /// Finds the blocks of a file that does not have an end section.
    fn scan(&mut self, mut at: u64, size: u64) -> Result<(), Error> {
        let breaks_off = |at| Error::Damaged {
            at,
            what: "the file is truncated, or its recording did not finish".to_owned(),
        };
        self.problem = loop {
            self.input.seek(SeekFrom::Start(at))?;
            match section(&mut self.input, at, size) {
                Ok(Some((Section::Block, bytes, behind))) => {
                    let block = words(&bytes).and_then(|(_, columns)| unpack(columns, &self.order));
                    match block {
                        Ok((first_step, _)) => self.blocks.push(Block { offset: at, first_step }),
                        Err(what) => break Some(Error::Damaged { at, what }),
                    }
                    at = behind;
                }
                Ok(_) => break Some(breaks_off(at)),
                Err(Error::Damaged { at, what }) => break Some(Error::Damaged { at, what }),
                Err(error) => return Err(error),
            }
        };
        Ok(())
    }
}

/// Returns an address in a memory space, in the notation of listings: `s[0x10]`, `LDS 0x10`.
pub fn place(space: Option<&str>, address: u32) -> String {
    match space.map(|space| (space, space.strip_suffix(']'))) {
        None => format!("{address:#x}"),
        Some((_, Some(open))) => format!("{open}{address:#x}]"),
        Some((space, None)) => format!("{space} {address:#x}"),
    }
}

/// Splits the bytes of a block into two parts. The first part is the words for the kinds, and the second part is the
/// columns.
fn words(bytes: &[u8]) -> Result<(Vec<String>, &[u8]), String> {
    let (length, rest) = bytes.split_first_chunk().ok_or("expected a block of at least 4 bytes")?;
    let length = u32::from_le_bytes(*length) as usize;
    let (words, columns) = rest.split_at_checked(length).ok_or("the words of a block extend past its end")?;
    Ok((serde_json::from_slice(words).map_err(|error| error.to_string())?, columns))
}

/// Reads the section at byte `at`. Returns the type of the section, its unpacked bytes, and the offset of its end.
/// Returns `None` if the file ends before the section ends.
fn section(
    input: &mut (impl Read + Seek),
    at: u64,
    size: u64,
) -> Result<Option<(Section, Vec<u8>, u64)>, Error> {
    let damaged = |what: &str| Error::Damaged { at, what: what.to_owned() };
    let mut head = [0; SECTION_HEAD];
    if fill(input, &mut head)? < head.len() {
        return Ok(None);
    }
    let number = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    let kind = Section::of(head[0]).ok_or_else(|| damaged("expected the start of a section"))?;
    let (packed, unpacked) = (number(1) as usize, number(5) as usize);
    let behind = at + (SECTION_HEAD + packed) as u64;
    if unpacked > MOST_BYTES {
        return Err(damaged("expected a section of at most 64 MiB"));
    }
    if behind > size {
        return Ok(None);
    }
    let mut bytes = vec![0; packed];
    input.read_exact(&mut bytes)?;
    let mut crc = flate2::Crc::new();
    crc.update(&bytes);
    if crc.sum() != number(9) {
        return Err(damaged("wrong checksum of a section"));
    }
    if packed == unpacked {
        return Ok(Some((kind, bytes, behind)));
    }
    let mut content = vec![0; unpacked];
    let got = lz4_flex::block::decompress_into(&bytes, &mut content);
    if got.map_err(|error| damaged(&error.to_string()))? != unpacked {
        return Err(damaged("the size of a section differs from its header"));
    }
    Ok(Some((kind, content, behind)))
}

/// Reads until the buffer is full or the input ends. Returns the number of bytes that were read.
fn fill(input: &mut impl Read, buffer: &mut [u8]) -> Result<usize, Error> {
    let mut got = 0;
    while got < buffer.len() {
        match input.read(&mut buffer[got..])? {
            0 => break,
            more => got += more,
        }
    }
    Ok(got)
}

/// An iterator over the records of a trace, in order.
#[derive(Debug)]
pub struct Records<'a, R> {
    reader: &'a mut Reader<R>,
    next: usize,
    block: std::vec::IntoIter<Record>,
}

impl<R: Read + Seek> Iterator for Records<'_, R> {
    type Item = Result<Record, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(record) = self.block.next() {
                return Some(Ok(record));
            }
            if self.next >= self.reader.blocks.len() {
                return None;
            }
            let block = self.reader.block(self.next);
            self.next += 1;
            match block {
                Ok(records) => self.block = records.into_iter(),
                Err(error) => return Some(Err(error)),
            }
        }
    }
}
