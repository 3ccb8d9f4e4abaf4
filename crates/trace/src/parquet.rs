//! Writes a trace as a table in an Apache Parquet file, for data frames. The table has one row for each instruction of
//! a group, and one row for each event.
//!
//! | column | rows and contents |
//! |---|---|
//! | `step`, `group`, `pc` | every row |
//! | `event` | every row: the name of the event in filters, but `load` or `store` instead of `memory` |
//! | `text` | issue: the instruction |
//! | `mask` | issue, resume, reconverge, trap: the lanes; diverge: the lanes that run first |
//! | `other` | diverge: the lanes that do not run first |
//! | `kind` | push, pop: the manual's word for the entry |
//! | `lane` | write, load, store: the lane |
//! | `number` | write: the number of the register; load, store: the byte address; jump: the target address |
//! | `value` | write, store: the new bits |
//! | `register` | write: the register's name |
//! | `space` | load, store: the name of the memory, if the machine has a name for the memory |
//!
//! Other crates can write columns of other tables with [`column()`] and [`optional`]. For example, campaigns write
//! their tables with these functions.

use std::io::{Read, Seek, Write};
use std::sync::Arc;

use parquet::basic::Compression;
use parquet::data_type::{ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;

use crate::export::walk;
use crate::filter::Filter;
use crate::{Error, Reader, RecordPlace, What};

const SCHEMA: &str = "message trace {
    required int64 step (UINT_64);
    required int32 group (UINT_32);
    required binary event (UTF8);
    required int32 pc (UINT_32);
    optional binary text (UTF8);
    optional int64 mask (UINT_64);
    optional int64 other (UINT_64);
    optional binary kind (UTF8);
    optional int32 lane (UINT_32);
    optional int32 number (UINT_32);
    optional int32 value (UINT_32);
    optional binary register (UTF8);
    optional binary space (UTF8);
}";

/// Number of rows in a row group.
const ROWS: usize = 1 << 17;

/// Rows that have not been written yet, stored in columns.
#[derive(Default)]
struct Rows {
    step: Vec<i64>,
    group: Vec<i32>,
    event: Vec<ByteArray>,
    pc: Vec<i32>,
    text: Vec<Option<ByteArray>>,
    mask: Vec<Option<i64>>,
    other: Vec<Option<i64>>,
    kind: Vec<Option<ByteArray>>,
    lane: Vec<Option<i32>>,
    number: Vec<Option<i32>>,
    value: Vec<Option<i32>>,
    register: Vec<Option<ByteArray>>,
    space: Vec<Option<ByteArray>>,
}

/// Writes the records that a filter selects as a Parquet table.
///
/// # Errors
/// Fails if the trace is damaged, or if the output fails.
pub fn table<R: Read + Seek>(
    reader: &mut Reader<R>,
    filter: &Filter,
    out: impl Write + Send,
) -> Result<(), Error> {
    let schema = Arc::new(parse_message_type(SCHEMA).map_err(failed)?);
    let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
    let mut writer = SerializedFileWriter::new(out, schema, Arc::new(properties)).map_err(failed)?;
    let mut rows = Rows::default();
    walk(reader, filter, |reader, record, RecordPlace { pc, space }| {
        let group = record.group;
        if let What::Ran { pc, count, mask } = record.what {
            for (step, address) in (record.step..).zip(reader.addresses(pc, count)) {
                rows.begin(step, group, "issue", *address);
                rows.text.push(reader.line(*address).map(|line| line.text.as_str().into()));
                rows.mask.push(Some(mask.0 as i64));
                rows.end();
            }
        } else {
            let name = match record.what {
                What::Ran { .. } => "issue",
                What::Diverge { .. } => "diverge",
                What::Resume { .. } => "resume",
                What::Reconverge { .. } => "reconverge",
                What::Push { .. } => "push",
                What::Pop { .. } => "pop",
                What::Jump { .. } => "jump",
                What::Trap { .. } => "trap",
                What::Write { .. } => "write",
                What::Load { .. } => "load",
                What::Store { .. } => "store",
            };
            rows.begin(record.step, group, name, pc);
            match record.what {
                What::Ran { mask, .. }
                | What::Resume { mask }
                | What::Reconverge { mask }
                | What::Trap { mask } => {
                    rows.mask.push(Some(mask.0 as i64));
                }
                What::Diverge { taken, not } => {
                    rows.mask.push(Some(taken.0 as i64));
                    rows.other.push(Some(not.0 as i64));
                }
                What::Push { kind } | What::Pop { kind } => rows.kind.push(Some(reader.kind(kind).into())),
                What::Jump { to } => rows.number.push(Some(to as i32)),
                What::Load { lane, address } => {
                    rows.lane.push(Some(lane.0.into()));
                    rows.number.push(Some(address as i32));
                }
                What::Write { lane, register: number, value }
                | What::Store { lane, address: number, value } => {
                    rows.lane.push(Some(lane.0.into()));
                    rows.number.push(Some(number as i32));
                    rows.value.push(Some(value as i32));
                }
            }
            if let What::Write { register, .. } = record.what {
                rows.register.push(Some(reader.header().register(register).as_str().into()));
            }
            rows.space.extend(space.map(|space| Some(space.into())));
            rows.end();
        }
        if rows.step.len() >= ROWS {
            return std::mem::take(&mut rows).write(&mut writer).map_err(failed);
        }
        Ok(())
    })?;
    rows.write(&mut writer).and_then(|()| writer.close()).map_err(failed)?;
    Ok(())
}

fn failed(error: ParquetError) -> Error {
    Error::Io(std::io::Error::other(error))
}

impl Rows {
    fn begin(&mut self, step: u64, group: u32, event: &str, pc: u32) {
        self.step.push(step as i64);
        self.group.push(group as i32);
        self.event.push(event.into());
        self.pc.push(pc as i32);
    }

    /// Ends a row. Adds `None` to each column that does not have a value for this row.
    fn end(&mut self) {
        let rows = self.step.len();
        self.text.resize(rows, None);
        self.kind.resize(rows, None);
        self.mask.resize(rows, None);
        self.other.resize(rows, None);
        self.lane.resize(rows, None);
        self.number.resize(rows, None);
        self.value.resize(rows, None);
        self.register.resize(rows, None);
        self.space.resize(rows, None);
    }

    /// Writes the rows as one row group.
    fn write<W: Write + Send>(self, writer: &mut SerializedFileWriter<W>) -> Result<(), ParquetError> {
        let mut group = writer.next_row_group()?;
        column::<Int64Type, W>(&mut group, &self.step)?;
        column::<Int32Type, W>(&mut group, &self.group)?;
        column::<ByteArrayType, W>(&mut group, &self.event)?;
        column::<Int32Type, W>(&mut group, &self.pc)?;
        optional::<ByteArrayType, W>(&mut group, self.text)?;
        optional::<Int64Type, W>(&mut group, self.mask)?;
        optional::<Int64Type, W>(&mut group, self.other)?;
        optional::<ByteArrayType, W>(&mut group, self.kind)?;
        optional::<Int32Type, W>(&mut group, self.lane)?;
        optional::<Int32Type, W>(&mut group, self.number)?;
        optional::<Int32Type, W>(&mut group, self.value)?;
        optional::<ByteArrayType, W>(&mut group, self.register)?;
        optional::<ByteArrayType, W>(&mut group, self.space)?;
        group.close()?;
        Ok(())
    }
}

/// Writes the next column of a row group. Every row must have a value.
///
/// # Errors
/// Fails if the schema has no more columns, or if the output fails.
pub fn column<T: DataType, W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    values: &[T::T],
) -> Result<(), ParquetError> {
    next::<T, W>(group, values, None)
}

/// Writes the next column of a row group. Some rows may not have a value.
///
/// # Errors
/// Fails if the schema has no more columns, or if the output fails.
pub fn optional<T: DataType, W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    values: impl IntoIterator<Item = Option<T::T>>,
) -> Result<(), ParquetError> {
    let values: Vec<Option<T::T>> = values.into_iter().collect();
    let present: Vec<i16> = values.iter().map(|value| value.is_some().into()).collect();
    let values: Vec<T::T> = values.into_iter().flatten().collect();
    next::<T, W>(group, &values, Some(&present))
}

/// Writes the next column of a row group. `present` has the number 1 for each row with a value.
fn next<T: DataType, W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    values: &[T::T],
    present: Option<&[i16]>,
) -> Result<(), ParquetError> {
    let column = group.next_column()?;
    let mut column =
        column.ok_or_else(|| ParquetError::General("the schema has no more columns".to_owned()))?;
    column.typed::<T>().write_batch(values, present, None)?;
    column.close()
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use parquet::file::reader::{FileReader, SerializedFileReader};
    use reconverge_simt::{Event, Lane, Mask};

    use super::*;
    use crate::{Header, Limits, Line, Outcome, RegisterNames, Writer};

    #[test]
    fn a_table_has_a_row_an_instruction_and_an_event() {
        let line = |address, text: &str| Line {
            address,
            text: text.to_owned(),
            stores: Some("g14[]".to_owned()),
            ..Line::default()
        };
        let file = RegisterNames { name: "$c".to_owned(), first: 0x90, count: 4, channels: String::new() };
        let listing = vec![line(0, "set"), line(8, "bra")];
        let header = Header { listing, registers: vec![file], ..Header::default() };
        let mut writer = Writer::new(Vec::new(), &header, Limits::default()).unwrap();
        writer.issues(0, &[0, 8], Mask(0b11)).unwrap();
        writer.event(0, Event::Diverge { taken: Mask(1), not: Mask(2) }).unwrap();
        writer.event(0, Event::Push { kind: "BRANCH" }).unwrap();
        writer.event(0, Event::Store { lane: Lane(1), address: 64, value: 7 }).unwrap();
        writer.event(0, Event::Write { lane: Lane(1), register: 0x92, value: 3 }).unwrap();
        let trace = writer.finish(Outcome::default()).unwrap();
        let mut bytes = Vec::new();
        table(&mut Reader::new(Cursor::new(trace)).unwrap(), &Filter::default(), &mut bytes).unwrap();
        let path = std::env::temp_dir().join(format!("reconverge-{}.parquet", std::process::id()));
        std::fs::write(&path, bytes).unwrap();
        let file = SerializedFileReader::new(std::fs::File::open(&path).unwrap()).unwrap();
        let rows: Vec<String> =
            file.get_row_iter(None).unwrap().map(|row| row.unwrap().to_string()).collect();
        assert_eq!(rows.len(), 6);
        let has = |row: usize, parts: &[&str]| {
            assert!(parts.iter().all(|part| rows[row].contains(part)), "{}", rows[row]);
        };
        has(1, &["step: 1", "event: \"issue\"", "pc: 8", "text: \"bra\"", "mask: 3"]);
        has(2, &["step: 1", "event: \"diverge\"", "pc: 8", "mask: 1", "other: 2", "kind: null"]);
        has(3, &["kind: \"BRANCH\"", "mask: null"]);
        has(
            4,
            &["event: \"store\"", "lane: 1", "number: 64", "value: 7", "space: \"g14[]\"", "register: null"],
        );
        has(5, &["step: 1", "event: \"write\"", "register: \"$c2\"", "space: null"]);
    }
}
