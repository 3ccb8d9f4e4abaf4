//! Recordings of runs (traces). A trace has the instructions of each group with their active lanes, and the events
//! between the instructions.
//!
//! A file (`.rtrace`) starts with a [`Header`] that contains the program's listing. Blocks of [`Record`]s follow the
//! header. The data of a block is stored in columns. The file ends with an [`End`], which has totals and the offsets of
//! the blocks. [`Writer`] writes a file while a program runs. [`Reader`] can read each block independently of all other
//! blocks. [`Reader`] can also read the complete blocks of a truncated file. docs/trace-format.md describes the bytes
//! of a file.
//!
//! The crate does not open files. A writer accepts any [`Write`](std::io::Write). A reader accepts any
//! [`Read`](std::io::Read) that also implements [`Seek`](std::io::Seek).
//!
//! ```
//! use reconverge_simt::{Event, Mask};
//! use reconverge_trace::{Header, Limits, Line, Outcome, Reader, What, Writer};
//! let line = |address| Line { address, ..Line::default() };
//! let header = Header { lanes_per_group: 32, listing: vec![line(0), line(8)], ..Header::default() };
//! let mut writer = Writer::new(Vec::new(), &header, Limits::default())?;
//! writer.issues(0, &[0, 8], Mask::first(32))?;
//! writer.event(0, Event::Jump { to: 0 })?;
//! writer.issues(0, &[0], Mask::first(3))?;
//! let file = writer.finish(Outcome::default())?;
//! let mut reader = Reader::new(std::io::Cursor::new(file))?;
//! let records = reader.records().collect::<Result<Vec<_>, _>>()?;
//! assert_eq!(records[0].what, What::Ran { pc: 0, count: 2, mask: Mask::first(32) });
//! assert_eq!(records.len(), 3);
//! # Ok::<(), reconverge_trace::Error>(())
//! ```
//!
//! # Features
//!
//! * `parquet` (off): writes traces as Parquet tables.

#![forbid(unsafe_code)]

mod columns;
pub mod compare;
mod error;
pub mod export;
pub mod filter;
mod following;
mod pack;
#[cfg(feature = "parquet")]
pub mod parquet;
mod read;
mod record;
mod unpack;
mod write;

pub use error::Error;
pub use filter::Filter;
pub use following::{Following, RecordPlace};
pub use read::{Block, Reader, Records, place};
pub use record::{End, Header, Kind, Line, Outcome, Record, RegisterNames, Totals, What};
pub use write::{Limits, Recording, Writer};

/// The version of the file format. The writer writes this version, and the reader rejects all other versions.
pub const VERSION: u16 = 5;

/// The first bytes of a file. These bytes include line endings. If a transfer has changed the line endings of the file,
/// the reader detects the change.
const MAGIC: [u8; 8] = *b"RTRACE\r\n";

/// The last bytes of a complete file. The offset of the [`End`] section is in the eight bytes before `END_MAGIC`.
const END_MAGIC: [u8; 8] = *b"\r\nECARTR";

/// Type of a section of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Section {
    /// The [`Header`], as JSON.
    Header = 1,
    /// [`Record`]s, stored in columns.
    Block = 2,
    /// The [`End`], as JSON.
    End = 3,
}

impl Section {
    fn of(byte: u8) -> Option<Section> {
        [Section::Header, Section::Block, Section::End].into_iter().find(|section| *section as u8 == byte)
    }
}

/// Size of a section's head in bytes. The head has four numbers: the type (1 byte), the size of the payload (4), the
/// size of the unpacked payload (4), and the CRC-32 of the payload (4). The numbers are little-endian.
const SECTION_HEAD: usize = 13;

/// Maximum size of an unpacked payload, in bytes. No block can reach this size, whatever its records are.
const MOST_BYTES: usize = 64 << 20;

/// Maximum number of entries in a block. An entry is a record, or a phrase of several records.
const BLOCK_RECORDS: u16 = u16::MAX;
