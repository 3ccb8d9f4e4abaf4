//! Writes a trace while a program runs.

use std::io::Write;

use lz4_flex::block;
use reconverge_simt::{Event, Mask, Observer, limits};

use crate::columns::Order;
use crate::pack::Packer;
use crate::record::{End, Header, Kind, Outcome, Totals};
use crate::{END_MAGIC, Error, MAGIC, Section, VERSION};

/// Limit on the size of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum size of the file in bytes. When the file has reached this size, the writer sets [`End::bound_at`]. After
    /// this point, the writer updates only the totals.
    pub bytes: u64,
}

impl Default for Limits {
    /// Returns the limit [`limits::TRACE`].
    fn default() -> Limits {
        Limits { bytes: limits::TRACE.get() }
    }
}

/// Writes a trace. [`Writer::finish`] completes the file. Without a call of [`Writer::finish`], readers can still read
/// the complete blocks of the file.
#[derive(Debug)]
pub struct Writer<W> {
    open: Open,
    file: Blocks<W>,
}

/// The block to which records are added at present.
#[derive(Debug, Default)]
struct Open {
    block: Packer,
    /// The words of the [`Kind`]s, indexed by number.
    kinds: Vec<&'static str>,
    divergences: u64,
}

/// The output, and the counts over all blocks that were written to the output.
#[derive(Debug)]
struct Blocks<W> {
    out: W,
    /// Buffers for a block and for its packed form.
    bytes: Vec<u8>,
    packed: Vec<u8>,
    order: Order,
    limits: Limits,
    written: u64,
    /// The end section. The counts of the end section do not include the open block.
    end: End,
    failed: Option<Error>,
}

impl<W: Write> Writer<W> {
    /// Starts a trace, and writes the header of the trace.
    ///
    /// # Errors
    /// Fails if the output fails, or if the addresses of the listing are not in ascending order.
    pub fn new(mut out: W, header: &Header, limits: Limits) -> Result<Writer<W>, Error> {
        let addresses = header.listing.iter().map(|line| line.address).collect();
        let order = Order::new(addresses).ok_or_else(|| Error::Damaged {
            at: 0,
            what: "the addresses of the listing are not in ascending order, or span more than 16 Mi"
                .to_owned(),
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

    /// Returns the number of instructions recorded so far. Instructions after the size limit are included.
    pub fn steps(&self) -> u64 {
        self.file.end.totals.instructions + self.open.block.instructions()
    }

    /// Returns whether the file has reached its size limit.
    pub fn is_full(&self) -> bool {
        self.file.end.bound_at.is_some()
    }

    /// Records consecutive instructions of one group. All instructions in one call must have the same active lanes.
    /// `addresses` has the addresses of the instructions.
    ///
    /// # Errors
    /// Fails if the output fails, or if the listing does not have one of the instructions.
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
    /// Fails if the output fails, or if the listing does not have the instruction to which the event belongs.
    pub fn event(&mut self, group: u32, event: Event) -> Result<(), Error> {
        if let Event::Issue { pc, .. } = event {
            self.known(&[pc])?;
        }
        let mut recording = self.recording();
        recording.group(group as usize);
        recording.event(event);
        self.file.said()
    }

    /// Returns an error if the listing does not have one of the addresses.
    fn known(&self, addresses: &[u32]) -> Result<(), Error> {
        let unknown = addresses.iter().find(|pc| self.file.order.place(**pc).is_none());
        unknown.map_or(Ok(()), |pc| Err(Error::UnknownInstruction { pc: *pc }))
    }

    /// Returns an observer for one run. Until the observer receives the number of a group, the events belong to the
    /// group that was recorded last.
    ///
    /// The observer does not return errors. An example of an error is an instruction that is not in the listing. The
    /// next call of [`Writer::flush`] or [`Writer::finish`] returns the error of the observer.
    pub fn recording(&mut self) -> Recording<'_> {
        self.open.block.forget();
        Recording { open: &mut self.open, file: &mut self.file, after_block: || {} }
    }

    /// Writes the records of the incomplete block to the output, so that readers can already read these records.
    ///
    /// # Errors
    /// Fails if the output fails, or if a recorded instruction is not in the listing.
    pub fn flush(&mut self) -> Result<(), Error> {
        self.file.said()?;
        self.file.write(&mut self.open)
    }

    /// Ends the trace and returns the output.
    ///
    /// # Errors
    /// Fails if the output fails, or if a recorded instruction is not in the listing.
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

/// The output to which the writer writes full blocks.
trait File {
    /// Writes a full block, and begins the next block.
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
    /// If the writer failed to write a full block, returns the error of the first such block.
    fn said(&mut self) -> Result<(), Error> {
        self.failed.take().map_or(Ok(()), Err)
    }

    /// Writes a block, and begins the next block.
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
        // Each block contains all words that were used so far. So a reader can read each block independently of all
        // other blocks.
        let words = serde_json::to_vec(&open.kinds).map_err(std::io::Error::from)?;
        bytes.extend((words.len() as u32).to_le_bytes());
        bytes.extend(words);
        open.block.take(first_step, &self.order, &mut bytes)?;
        // After the file has reached its size limit, the writer packs records only to count the records. The writer
        // does not write these records to the output.
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

/// An observer that records a run. [`Writer::recording`] returns this observer.
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
    /// Sets a function that the observer calls after each written block. The function may unwind.
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

/// Returns the number of a word. If the word does not have a number yet, adds the word.
#[inline(always)]
fn kind(kinds: &mut Vec<&'static str>, word: &'static str) -> Kind {
    // If the source location of a word has sent the word before, the comparison of pointers finds the word. Equal words
    // from different source locations may have different pointers. So `new_kind` compares the texts.
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
    // The machines have about twenty words, so the number fits in a `u8`.
    Kind(number as u8)
}
