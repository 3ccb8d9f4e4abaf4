//! Writes a trace while a program runs.

use std::io::Write;

use flate2::Compression;
use flate2::write::ZlibEncoder;
use reconverge_simt::{Event, Mask};

use crate::columns::{Order, Packer};
use crate::record::{End, Header, Kind, Outcome, Record, What};
use crate::{BLOCK_RECORDS, END_MAGIC, Error, MAGIC, Section, VERSION};

/// How large a trace may become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the file. Beyond them nothing more is recorded but the totals; the file says so.
    pub bytes: u64,
}

impl Default for Limits {
    /// 1 GiB.
    fn default() -> Limits {
        Limits { bytes: 1 << 30 }
    }
}

/// Writes a trace. Dropped without [`Writer::finish`], it leaves a file whose complete blocks can be read.
#[derive(Debug)]
pub struct Writer<W> {
    out: W,
    order: Order,
    limits: Limits,
    /// The block that is not written yet, without the last record if that is a run of instructions: it may go on.
    block: Packer,
    open: Option<Record>,
    /// The words of [`Kind`]s.
    kinds: Vec<&'static str>,
    written: u64,
    /// The place behind the last instruction of the last run.
    behind: u32,
    end: End,
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
        let mut writer = Writer {
            out,
            order,
            limits,
            block: Packer::default(),
            open: None,
            kinds: Vec::new(),
            written: MAGIC.len() as u64 + 2,
            behind: 0,
            end: End::default(),
        };
        writer.section(Section::Header, &serde_json::to_vec(header).map_err(std::io::Error::from)?)?;
        Ok(writer)
    }

    /// Instructions recorded so far, with those beyond the bound.
    pub fn steps(&self) -> u64 {
        self.end.totals.instructions
    }

    /// Whether the file has reached its bound.
    pub fn is_full(&self) -> bool {
        self.end.bound_at.is_some()
    }

    /// Records instructions that follow each other with the same lanes, by their addresses.
    ///
    /// # Errors
    /// The output fails, or the listing has no such instruction.
    #[inline]
    pub fn issues(&mut self, group: u32, addresses: &[u32], mask: Mask) -> Result<(), Error> {
        let Some(&first) = addresses.first() else { return Ok(()) };
        let place = self.order.place(first).ok_or(Error::UnknownInstruction { pc: first })?;
        let count = addresses.len() as u32;
        if !same(self.order.from(place, count), addresses) {
            // Not neighbours in the listing: one after another.
            for pc in addresses {
                self.issues(group, &[*pc], mask)?;
            }
            return Ok(());
        }
        let step = self.end.totals.instructions;
        self.end.totals.instructions += u64::from(count);
        self.end.totals.lane_instructions += u64::from(count) * u64::from(mask.count());
        if let Some(Record { group: of, what: What::Ran { count: before, mask: lanes, .. }, .. }) =
            &mut self.open
            && *of == group
            && *lanes == mask
            && self.behind == place
        {
            *before += count;
        } else {
            self.push(Record { step, group, what: What::Ran { pc: first, count, mask } })?;
        }
        self.behind = place + count;
        Ok(())
    }

    /// Records an event.
    ///
    /// # Errors
    /// The output fails, or the listing has no such instruction.
    #[inline]
    pub fn event(&mut self, group: u32, event: Event) -> Result<(), Error> {
        if let Event::Issue { pc, mask } = event {
            return self.issues(group, &[pc], mask);
        }
        if let Event::Diverge { .. } = event {
            self.end.totals.divergences += 1;
        }
        let what = What::of(event, |word| self.kind(word));
        self.push(Record { step: self.end.totals.instructions, group, what })
    }

    fn kind(&mut self, word: &'static str) -> Kind {
        // Words of one place are the same; those of several may be.
        let known = self.kinds.iter().position(|known| std::ptr::eq(*known, word));
        let known = known.or_else(|| self.kinds.iter().position(|known| *known == word));
        let number = known.unwrap_or_else(|| {
            self.kinds.push(word);
            self.kinds.len() - 1
        });
        // The machines have about twenty words.
        Kind(number as u8)
    }

    #[inline]
    fn push(&mut self, record: Record) -> Result<(), Error> {
        if self.end.bound_at.is_some() {
            return Ok(());
        }
        self.close_run();
        if self.block.len() == BLOCK_RECORDS {
            self.flush()?;
            if self.written >= self.limits.bytes {
                self.end.bound_at = Some(record.step);
                return Ok(());
            }
        }
        match record.what {
            What::Ran { .. } => self.open = Some(record),
            _ => self.block.push(&record, &self.order),
        }
        Ok(())
    }

    /// The last run of instructions does not go on.
    #[inline]
    fn close_run(&mut self) {
        if let Some(run) = self.open.take() {
            self.block.push(&run, &self.order);
        }
    }

    /// Writes the records of the block that is not complete, so that a reader finds them.
    ///
    /// # Errors
    /// The output fails.
    pub fn flush(&mut self) -> Result<(), Error> {
        self.close_run();
        if self.block.len() == 0 {
            return Ok(());
        }
        self.end.blocks.push((self.written, self.block.first_step(), self.block.len() as u32));
        let mut bytes = Vec::new();
        // The words come with the block that uses them first, and with every block after it.
        let words = serde_json::to_vec(&self.kinds).map_err(std::io::Error::from)?;
        bytes.extend((words.len() as u32).to_le_bytes());
        bytes.extend(words);
        self.block.take(&mut bytes);
        self.section(Section::Block, &bytes)
    }

    /// Ends the trace and gives back the output.
    ///
    /// # Errors
    /// The output fails.
    pub fn finish(mut self, outcome: Outcome) -> Result<W, Error> {
        self.flush()?;
        let at = self.written;
        self.end.outcome = outcome;
        let end = serde_json::to_vec(&self.end).map_err(std::io::Error::from)?;
        self.section(Section::End, &end)?;
        self.out.write_all(&at.to_le_bytes())?;
        self.out.write_all(&END_MAGIC)?;
        self.out.flush()?;
        Ok(self.out)
    }

    fn section(&mut self, section: Section, bytes: &[u8]) -> Result<(), Error> {
        let mut packed = ZlibEncoder::new(Vec::new(), Compression::fast());
        packed.write_all(bytes)?;
        let packed = packed.finish()?;
        let mut crc = flate2::Crc::new();
        crc.update(&packed);
        self.out.write_all(&[section as u8])?;
        for number in [packed.len() as u32, bytes.len() as u32, crc.sum()] {
            self.out.write_all(&number.to_le_bytes())?;
        }
        self.out.write_all(&packed)?;
        self.written += (crate::SECTION_HEAD + packed.len()) as u64;
        Ok(())
    }
}

/// Whether two lists are the same. Inline: short lists take less time than a call of `memcmp` does (18 % of a trace).
#[inline]
fn same(a: &[u32], b: &[u32]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |differ, (a, b)| differ | (a ^ b)) == 0
}
