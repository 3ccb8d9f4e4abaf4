//! Writes a trace while a program runs.

use std::io::Write;

use lz4_flex::block;
use reconverge_simt::{Event, Mask, Observer, limits};

use crate::columns::Order;
use crate::pack::Packer;
use crate::record::{End, Header, Kind, Outcome, Totals};
use crate::{END_MAGIC, Error, MAGIC, Section, VERSION};

/// How large a trace may become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the file. Beyond them nothing more is recorded but the totals; the file says so.
    pub bytes: u64,
}

impl Default for Limits {
    /// [`limits::TRACE`].
    fn default() -> Limits {
        Limits { bytes: limits::TRACE.get() }
    }
}

/// Writes a trace. Dropped without [`Writer::finish`], it leaves a file whose complete blocks can be read.
#[derive(Debug)]
pub struct Writer<W> {
    open: Open,
    file: Blocks<W>,
}

/// The block that is not written yet.
#[derive(Debug, Default)]
struct Open {
    block: Packer,
    /// The words of [`Kind`]s.
    kinds: Vec<&'static str>,
    divergences: u64,
}

/// The file, as far as it is written.
#[derive(Debug)]
struct Blocks<W> {
    out: W,
    /// Room for a block, and for what it becomes.
    bytes: Vec<u8>,
    packed: Vec<u8>,
    order: Order,
    limits: Limits,
    written: u64,
    /// All but what the open block counts.
    end: End,
    failed: Option<Error>,
}

impl<W: Write> Writer<W> {
    /// Begins a trace.
    ///
    /// # Errors
    /// The output fails, or the listing's addresses do not rise.
    pub fn new(mut out: W, header: &Header, limits: Limits) -> Result<Writer<W>, Error> {
        let addresses = header.listing.iter().map(|line| line.address).collect();
        let order = Order::new(addresses).ok_or_else(|| Error::Damaged {
            at: 0,
            what: "the listing's addresses do not rise, or span more than 16 Mi".to_owned(),
        })?;
        out.write_all(&MAGIC)?;
        out.write_all(&VERSION.to_le_bytes())?;
        let written = MAGIC.len() as u64 + 2;
        let mut file = Blocks {
            out,
            bytes: Vec::new(),
            packed: Vec::new(),
            order,
            limits,
            written,
            end: End::default(),
            failed: None,
        };
        file.section(Section::Header, &serde_json::to_vec(header).map_err(std::io::Error::from)?)?;
        Ok(Writer { open: Open::default(), file })
    }

    /// Instructions recorded so far, with those beyond the bound.
    pub fn steps(&self) -> u64 {
        self.file.end.totals.instructions + self.open.block.instructions()
    }

    /// Whether the file has reached its bound.
    pub fn is_full(&self) -> bool {
        self.file.end.bound_at.is_some()
    }

    /// Records instructions that follow each other with the same lanes, by their addresses.
    ///
    /// # Errors
    /// The output fails, or the listing has no such instruction.
    pub fn issues(&mut self, group: u32, addresses: &[u32], mask: Mask) -> Result<(), Error> {
        self.known(addresses)?;
        let mut recording = self.recording();
        recording.group(group as usize);
        recording.issues(addresses, mask);
        self.file.said()
    }

    /// Records an event.
    ///
    /// # Errors
    /// The output fails, or the listing has no such instruction.
    pub fn event(&mut self, group: u32, event: Event) -> Result<(), Error> {
        if let Event::Issue { pc, .. } = event {
            self.known(&[pc])?;
        }
        let mut recording = self.recording();
        recording.group(group as usize);
        recording.event(event);
        self.file.said()
    }

    /// Refuses addresses that the listing does not have.
    fn known(&self, addresses: &[u32]) -> Result<(), Error> {
        let unknown = addresses.iter().find(|pc| self.file.order.place(**pc).is_none());
        unknown.map_or(Ok(()), |pc| Err(Error::UnknownInstruction { pc: *pc }))
    }

    /// An observer that records what happens in a run; what comes first happens to the group that came last. What goes wrong,
    /// also an instruction that the listing does not have, the next call of [`Writer::flush`] or [`Writer::finish`] says.
    pub fn recording(&mut self) -> Recording<'_> {
        self.open.block.forget();
        Recording { open: &mut self.open, file: &mut self.file, after_block: || {} }
    }

    /// Writes the records of the block that is not complete, so that a reader finds them.
    ///
    /// # Errors
    /// The output fails, or the listing has no instruction that was recorded.
    pub fn flush(&mut self) -> Result<(), Error> {
        self.file.said()?;
        self.file.write(&mut self.open)
    }

    /// Ends the trace and gives back the output.
    ///
    /// # Errors
    /// Those of [`Writer::flush`].
    pub fn finish(mut self, outcome: Outcome) -> Result<W, Error> {
        self.flush()?;
        let mut file = self.file;
        let at = file.written;
        file.end.outcome = outcome;
        let end = serde_json::to_vec(&file.end).map_err(std::io::Error::from)?;
        file.section(Section::End, &end)?;
        file.out.write_all(&at.to_le_bytes())?;
        file.out.write_all(&END_MAGIC)?;
        file.out.flush()?;
        Ok(file.out)
    }
}

/// Where blocks go.
trait File {
    /// Writes a block that is full, and begins the next.
    fn full(&mut self, open: &mut Open);
}

impl<W: Write> File for Blocks<W> {
    fn full(&mut self, open: &mut Open) {
        if let Err(error) = self.write(open) {
            self.failed.get_or_insert(error);
        }
        if self.written >= self.limits.bytes {
            self.end.bound_at = self.end.bound_at.or(Some(self.end.totals.instructions));
        }
    }
}

impl<W: Write> Blocks<W> {
    /// The error of a full block, if there was one.
    fn said(&mut self) -> Result<(), Error> {
        self.failed.take().map_or(Ok(()), Err)
    }

    /// Writes a block, and begins the next.
    fn write(&mut self, open: &mut Open) -> Result<(), Error> {
        let Totals { instructions: first_step, .. } = self.end.totals;
        let (instructions, lane_instructions) = open.block.counted();
        self.end.totals.instructions += instructions;
        self.end.totals.lane_instructions += lane_instructions;
        self.end.totals.divergences += std::mem::take(&mut open.divergences);
        let records = open.block.len();
        if records == 0 {
            return Ok(());
        }
        let mut bytes = std::mem::take(&mut self.bytes);
        bytes.clear();
        // The words come with the block that uses them first, and with every block after it.
        let words = serde_json::to_vec(&open.kinds).map_err(std::io::Error::from)?;
        bytes.extend((words.len() as u32).to_le_bytes());
        bytes.extend(words);
        open.block.take(first_step, &self.order, &mut bytes)?;
        // Beyond the bound records are packed as ever, and left out here.
        if self.end.bound_at.is_none() {
            self.end.blocks.push((self.written, first_step, u32::from(records)));
            self.section(Section::Block, &bytes)?;
        }
        self.bytes = bytes;
        Ok(())
    }

    fn section(&mut self, section: Section, bytes: &[u8]) -> Result<(), Error> {
        let mut packed = std::mem::take(&mut self.packed);
        packed.resize(packed.len().max(block::get_maximum_output_size(bytes.len())), 0);
        let size = block::compress_into(bytes, &mut packed).map_err(std::io::Error::other)?;
        let smaller = size < bytes.len();
        self.payload(section, if smaller { &packed[..size] } else { bytes }, bytes.len())?;
        self.packed = packed;
        Ok(())
    }

    fn payload(&mut self, section: Section, payload: &[u8], unpacked: usize) -> Result<(), Error> {
        let mut crc = flate2::Crc::new();
        crc.update(payload);
        self.out.write_all(&[section as u8])?;
        for number in [payload.len() as u32, unpacked as u32, crc.sum()] {
            self.out.write_all(&number.to_le_bytes())?;
        }
        self.out.write_all(payload)?;
        self.written += (crate::SECTION_HEAD + payload.len()) as u64;
        Ok(())
    }
}

/// Records what happens in a run, as its observer: [`Writer::recording`].
pub struct Recording<'a> {
    open: &'a mut Open,
    file: &'a mut dyn File,
    after_block: fn(),
}

impl std::fmt::Debug for Recording<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recording").field("open", self.open).finish_non_exhaustive()
    }
}

impl Recording<'_> {
    /// Calls a function after each block that was written. It may unwind.
    pub fn after_each_block(self, after_block: fn()) -> Self {
        Recording { after_block, ..self }
    }

    #[inline(always)]
    fn make_room(&mut self) {
        if self.open.block.is_full() {
            self.block_is_full();
        }
    }

    #[cold]
    fn block_is_full(&mut self) {
        self.file.full(self.open);
        (self.after_block)();
    }
}

impl Observer for Recording<'_> {
    const ENABLED: bool = true;
    const DATA: bool = false;

    #[inline(always)]
    fn group(&mut self, number: usize) {
        self.open.block.group(number as u32);
    }

    #[inline(always)]
    fn issues(&mut self, addresses: &[u32], mask: Mask) {
        if !addresses.is_empty() {
            self.make_room();
            self.open.block.issues(addresses, mask);
        }
    }

    #[inline(always)]
    fn event(&mut self, event: Event) {
        self.make_room();
        let Open { block, kinds, divergences } = &mut *self.open;
        if let Event::Diverge { .. } = event {
            *divergences += 1;
        }
        block.event(event, |word| kind(kinds, word));
    }

    #[inline(always)]
    fn again(&mut self, key: u32, active: Mask, first: Mask) -> bool {
        self.make_room();
        let Open { block, divergences, .. } = &mut *self.open;
        let parts = block.again(key, active, first);
        *divergences += u64::from(parts == Some(true));
        parts.is_some()
    }

    #[cold]
    fn learn(&mut self, key: u32, active: Mask, first: Mask) {
        self.open.block.learn(key, active, first);
    }
}

/// The number of a word.
#[inline(always)]
fn kind(kinds: &mut Vec<&'static str>, word: &'static str) -> Kind {
    // Words of one place are the same; those of several may be.
    let known = kinds.iter().position(|known| std::ptr::eq(*known, word));
    known.map_or_else(|| new_kind(kinds, word), |known| Kind(known as u8))
}

#[cold]
fn new_kind(kinds: &mut Vec<&'static str>, word: &'static str) -> Kind {
    let known = kinds.iter().position(|known| *known == word);
    let number = known.unwrap_or_else(|| {
        kinds.push(word);
        kinds.len() - 1
    });
    // The machines have about twenty words.
    Kind(number as u8)
}
