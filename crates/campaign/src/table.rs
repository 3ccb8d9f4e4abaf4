//! Writes shards to Parquet files and reads these files. Equal records result in files with equal bytes.
//!
//! | column | contents |
//! |---|---|
//! | `index`, `point`, `site`, `model` | the experiment |
//! | `step`, `group`, `pc` | the instruction that follows the change. For the site `destination`, the change follows the instruction |
//! | `lane`, `place`, `before`, `after` | the change |
//! | `outcome`, `trap`, `flow_step`, `error`, `hits` | the result |
//! | `class` | the name from an outcome function |
//!
//! The footer of a file has notes. One note is a checksum of all other bytes of the file. [`read`] searches the bytes
//! for this note, and compares the checksum before [`read`] calls Parquet's reader. Parquet's reader trusts the lengths
//! and offsets in a file. Some wrong lengths and offsets make the reader panic. A change of a single byte always
//! changes the checksum, because each step of FNV-1a maps different states to different states.

use std::fs::File;
use std::io::{self, Read, Write};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use memchr::memmem;
use parquet::basic::Compression;
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::SerializedFileWriter;
use parquet::record::{Row, RowAccessor};
use parquet::schema::parser::parse_message_type;
use reconverge_isa::limits::FILE;
use reconverge_trace::parquet::{column, optional};
use thiserror::Error;

use crate::experiment::{Outcome, Record};
use crate::site::{Model, Site};
use crate::source::hash;

const SCHEMA: &str = "message campaign {
    required int64 index (UINT_64);
    required int32 point (UINT_32);
    required binary site (UTF8);
    required binary model (UTF8);
    required int64 step (UINT_64);
    required int32 group (UINT_32);
    required int32 pc (UINT_32);
    optional int32 lane (UINT_32);
    required binary place (UTF8);
    required int64 before (UINT_64);
    required int64 after (UINT_64);
    required binary outcome (UTF8);
    optional binary trap (UTF8);
    optional int64 flow_step (UINT_64);
    optional double error;
    required int32 hits (UINT_32);
    optional binary class (UTF8);
}";

/// The key of the note with the campaign's hash.
pub(crate) const CAMPAIGN: &str = "reconverge.campaign";
/// The key of the note with the version that wrote the file.
pub(crate) const VERSION: &str = "reconverge.version";

/// The key of the note with the range of experiments in the file.
pub(crate) const EXPERIMENTS: &str = "reconverge.experiments";
/// The key of the note with the checksum.
const CHECKSUM: &str = "reconverge.checksum";

/// The text before the digits of the checksum in the note.
const MARK: &str = "fnv1a128:";
/// Number of hexadecimal digits in the checksum.
const DIGITS: usize = 32;

/// The reason why a file cannot be used as a shard.
#[derive(Debug, Error)]
pub(crate) enum Damage {
    /// The file cannot be read.
    #[error("{0}")]
    Unreadable(#[from] io::Error),
    /// The file is a folder, a pipe or a device.
    #[error("not a regular file")]
    NotRegular,
    /// The file exceeds the limit on the size of files.
    #[error("{0}")]
    TooLarge(reconverge_isa::limits::Exceeded),
    /// The file does not have a checksum.
    #[error("missing checksum: an old version wrote the file, or it is truncated")]
    NoChecksum,
    /// The bytes of the file differ from the bytes that were written.
    #[error("the checksum differs")]
    Checksum,
    /// The file is complete, but its experiments are not the experiments of the shard.
    #[error("the file does not contain the shard's experiments")]
    Experiments,
    /// The checksum is valid, but the file is not a table of records.
    #[error("{0}")]
    Table(String),
}

/// Returns the bytes of a file that contains the records, the notes and a checksum.
pub(crate) fn file(records: &[Record], notes: &[(&str, &str)]) -> Result<Vec<u8>, ParquetError> {
    let unknown = format!("{MARK}{}", "0".repeat(DIGITS));
    let mut all = notes.to_vec();
    all.push((CHECKSUM, &unknown));
    let mut bytes = write(Vec::new(), records, &all)?;
    let digits =
        digits(&bytes).ok_or_else(|| ParquetError::General("the checksum was not written".to_owned()))?;
    let checksum = checksum(&bytes, &digits);
    bytes[digits].copy_from_slice(checksum.as_bytes());
    Ok(bytes)
}

/// Returns the range of byte offsets of the checksum's digits.
fn digits(bytes: &[u8]) -> Option<Range<usize>> {
    let start = memmem::rfind(bytes, MARK.as_bytes())? + MARK.len();
    let digits = start..start.checked_add(DIGITS)?;
    (digits.end <= bytes.len()).then_some(digits)
}

/// Returns the checksum of all bytes outside of `digits`, which are the digits of the checksum.
fn checksum(bytes: &[u8], digits: &Range<usize>) -> String {
    format!("{:032x}", hash([&bytes[..digits.start], &bytes[digits.end..]]))
}

/// Checks that a file is unchanged, and returns the bytes of the file.
pub(crate) fn read(path: &Path) -> Result<Bytes, Damage> {
    let bytes = content(path)?;
    verify(&bytes)?;
    Ok(bytes.into())
}

/// Returns the bytes of a regular file.
pub(crate) fn content(path: &Path) -> Result<Vec<u8>, Damage> {
    // If the file is a pipe, the function would wait until another process opens the other end of the pipe.
    if !std::fs::metadata(path)?.is_file() {
        return Err(Damage::NotRegular);
    }
    let mut bytes = Vec::new();
    let file = File::open(path)?;
    FILE.check(file.metadata()?.len()).map_err(Damage::TooLarge)?;
    file.take(FILE.get()).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Checks the checksum of a file's bytes.
pub(crate) fn verify(bytes: &[u8]) -> Result<(), Damage> {
    let digits = digits(bytes).ok_or(Damage::NoChecksum)?;
    let differs = checksum(bytes, &digits).as_bytes() != &bytes[digits];
    if differs { Err(Damage::Checksum) } else { Ok(()) }
}

/// Returns the value of a note in the bytes of a file. The file may be any file, even a file that is not a shard.
///
/// The footer uses Thrift's compact protocol. The header of the next field follows the key. The next field is the
/// value. The value is a string: first the length of the string, then the bytes of the string.
pub(crate) fn note<'a>(bytes: &'a [u8], key: &str) -> Option<&'a str> {
    let at = memmem::rfind(bytes, key.as_bytes())? + key.len();
    let (&[header, length], value) = bytes.get(at..)?.split_first_chunk()?;
    let is_note = header == 0x18 && length < 0x80;
    std::str::from_utf8(value.get(..usize::from(length)).filter(|_| is_note)?).ok()
}

/// Returns the records of a file in order. [`read`] has checked the file.
pub(crate) fn records(bytes: Bytes) -> Result<Vec<Record>, Damage> {
    // The checksum detects only accidental changes. A file with a valid checksum can still cause a panic of Parquet's
    // reader.
    let parsed = catch_unwind(AssertUnwindSafe(|| -> Result<Vec<Record>, ParquetError> {
        SerializedFileReader::new(bytes)?.get_row_iter(None)?.map(|row| record(&row?)).collect()
    }));
    match parsed {
        Ok(parsed) => parsed.map_err(|error| Damage::Table(error.to_string())),
        Err(_) => Err(Damage::Table("Parquet's reader cannot read it".to_owned())),
    }
}

/// Writes a table that contains the records and the notes.
fn write<W: Write + Send>(out: W, records: &[Record], notes: &[(&str, &str)]) -> Result<W, ParquetError> {
    let schema = Arc::new(parse_message_type(SCHEMA)?);
    let notes = notes.iter().map(|(key, value)| KeyValue::new((*key).to_owned(), (*value).to_owned()));
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_created_by("reconverge".to_owned())
        .set_key_value_metadata(Some(notes.collect()))
        .build();
    let mut writer = SerializedFileWriter::new(out, schema, Arc::new(properties))?;
    let mut group = writer.next_row_group()?;
    let long = |of: fn(&Record) -> u64| records.iter().map(|it| of(it) as i64).collect::<Vec<_>>();
    let int = |of: fn(&Record) -> u32| records.iter().map(|it| of(it) as i32).collect::<Vec<_>>();
    let text = |of: fn(&Record) -> &str| records.iter().map(|it| of(it).into()).collect::<Vec<ByteArray>>();
    column::<Int64Type, W>(&mut group, &long(|it| it.index))?;
    column::<Int32Type, W>(&mut group, &int(|it| it.point))?;
    column::<ByteArrayType, W>(&mut group, &text(|it| it.site.name()))?;
    column::<ByteArrayType, W>(&mut group, &text(|it| it.model.name()))?;
    column::<Int64Type, W>(&mut group, &long(|it| it.step))?;
    column::<Int32Type, W>(&mut group, &int(|it| it.group))?;
    column::<Int32Type, W>(&mut group, &int(|it| it.pc))?;
    optional::<Int32Type, W>(&mut group, records.iter().map(|it| it.lane.map(|lane| lane as i32)))?;
    column::<ByteArrayType, W>(&mut group, &text(|it| &it.place))?;
    column::<Int64Type, W>(&mut group, &long(|it| it.before))?;
    column::<Int64Type, W>(&mut group, &long(|it| it.after))?;
    column::<ByteArrayType, W>(&mut group, &text(|it| it.outcome.name()))?;
    optional::<ByteArrayType, W>(&mut group, records.iter().map(|it| Some(it.trap.as_deref()?.into())))?;
    optional::<Int64Type, W>(&mut group, records.iter().map(|it| it.flow_step.map(|step| step as i64)))?;
    optional::<DoubleType, W>(&mut group, records.iter().map(|it| it.error))?;
    column::<Int32Type, W>(&mut group, &int(|it| it.hits))?;
    optional::<ByteArrayType, W>(&mut group, records.iter().map(|it| Some(it.class.as_deref()?.into())))?;
    group.close()?;
    writer.into_inner()
}

fn record(row: &Row) -> Result<Record, ParquetError> {
    let named = |column: usize| row.get_string(column).map(String::as_str);
    let unknown = |name: &str| ParquetError::General(format!("unknown name `{name}`"));
    let (site, model, outcome) = (named(2)?, named(3)?, named(11)?);
    let there =
        |column: usize| !matches!(row.get_column_iter().nth(column), Some((_, parquet::record::Field::Null)));
    Ok(Record {
        index: row.get_ulong(0)?,
        point: row.get_uint(1)?,
        site: Site::all().find(|it| it.name() == site).ok_or_else(|| unknown(site))?,
        model: Model::ALL.into_iter().find(|it| it.name() == model).ok_or_else(|| unknown(model))?,
        step: row.get_ulong(4)?,
        group: row.get_uint(5)?,
        pc: row.get_uint(6)?,
        lane: there(7).then(|| row.get_uint(7)).transpose()?,
        place: named(8)?.to_owned(),
        before: row.get_ulong(9)?,
        after: row.get_ulong(10)?,
        outcome: Outcome::ALL.into_iter().find(|it| it.name() == outcome).ok_or_else(|| unknown(outcome))?,
        trap: there(12).then(|| named(12).map(str::to_owned)).transpose()?,
        flow_step: there(13).then(|| row.get_ulong(13)).transpose()?,
        error: there(14).then(|| row.get_double(14)).transpose()?,
        hits: row.get_uint(15)?,
        class: there(16).then(|| named(16).map(str::to_owned)).transpose()?,
    })
}

#[cfg(test)]
mod tests {
    use reconverge_workbench::faults::Kind;

    use super::*;

    #[test]
    fn records_come_back_as_they_were_and_always_as_the_same_bytes() {
        let masked = Record {
            index: 7,
            point: 1,
            site: Site::Flow(Kind::StackEntry),
            model: Model::WarpWide,
            step: u64::MAX,
            group: 2,
            pc: u32::MAX,
            lane: None,
            place: "entry 0 active".to_owned(),
            before: u64::MAX,
            after: 1 << 63,
            outcome: Outcome::Masked,
            trap: None,
            flow_step: None,
            error: None,
            hits: 0,
            class: None,
        };
        let class = Some("visible".to_owned());
        let sdc = Record {
            outcome: Outcome::Sdc,
            lane: Some(3),
            error: Some(0.1),
            hits: 9,
            class,
            ..masked.clone()
        };
        let trap = Some("Flow.StackMismatch".to_owned());
        let trap = Record { outcome: Outcome::Trap, trap, flow_step: Some(0), ..masked.clone() };
        let records = [masked, sdc, trap];
        let notes = [(CAMPAIGN, "abc"), (VERSION, "1")];
        let bytes = file(&records, &notes).unwrap();
        assert_eq!(bytes, file(&records, &notes).unwrap());
        verify(&bytes).unwrap();
        assert_eq!((note(&bytes, CAMPAIGN), note(&bytes, "other")), (Some("abc"), None));
        assert_eq!(super::records(bytes.clone().into()).unwrap(), records);
        each_flip_is_found(bytes);
    }

    /// Flips bits of the pages, the footer, the checksum, and the key of the checksum.
    fn each_flip_is_found(mut bytes: Vec<u8>) {
        for bit in 0..8 * bytes.len() {
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(verify(&bytes).is_err(), "bit {bit}");
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
        for length in 0..bytes.len() {
            assert!(verify(&bytes[..length]).is_err(), "{length} bytes");
        }
        verify(&bytes).unwrap();
    }

    #[test]
    fn notes_are_found_in_any_bytes_without_a_panic() {
        let key = CAMPAIGN.as_bytes();
        for rest in [&b""[..], &[0x18], &[0x18, 3], &[0x18, 3, b'a'], &[0x18, 1, 0xff], &[0x18, 0xff, 1]] {
            assert_eq!(note(&[key, rest].concat(), CAMPAIGN), None);
        }
        assert_eq!(note(&[key, &[0x18, 1, b'a']].concat(), CAMPAIGN), Some("a"));
    }
}
