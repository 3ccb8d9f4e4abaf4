//! Shards as Parquet files: the same records give the same bytes.
//!
//! | column | of |
//! |---|---|
//! | `index`, `point`, `site`, `model` | the experiment |
//! | `step`, `group`, `pc` | the instruction before which the state changes |
//! | `lane`, `place`, `before`, `after` | the change |
//! | `outcome`, `trap`, `flow_step`, `error`, `hits` | what became of it |

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use parquet::basic::Compression;
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::SerializedFileWriter;
use parquet::record::{Row, RowAccessor};
use parquet::schema::parser::parse_message_type;
use reconverge_trace::parquet::{column, optional};

use crate::experiment::{Outcome, Record};
use crate::file::{Model, Site};

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
}";

/// The key of the campaign's hash in a file.
pub(crate) const CAMPAIGN: &str = "reconverge.campaign";
/// The key of the version that wrote a file.
pub(crate) const VERSION: &str = "reconverge.version";

/// Writes records as a file with these notes.
pub(crate) fn write<W: Write + Send>(
    out: W,
    records: &[Record],
    notes: &[(&str, &str)],
) -> Result<W, ParquetError> {
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
    group.close()?;
    writer.into_inner()
}

/// A file of records.
pub(crate) struct Table(SerializedFileReader<File>);

impl Table {
    /// Opens a file.
    pub(crate) fn open(path: &Path) -> Result<Table, ParquetError> {
        Ok(Table(SerializedFileReader::new(File::open(path)?)?))
    }

    /// A note of the file.
    pub(crate) fn note(&self, key: &str) -> Option<&str> {
        let notes = self.0.metadata().file_metadata().key_value_metadata()?;
        notes.iter().find(|note| note.key == key)?.value.as_deref()
    }

    /// Its records, in order.
    pub(crate) fn records(&self) -> Result<Vec<Record>, ParquetError> {
        self.0.get_row_iter(None)?.map(|row| record(&row?)).collect()
    }
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
        };
        let sdc =
            Record { outcome: Outcome::Sdc, lane: Some(3), error: Some(0.1), hits: 9, ..masked.clone() };
        let trap = Some("Flow.StackMismatch".to_owned());
        let trap = Record { outcome: Outcome::Trap, trap, flow_step: Some(0), ..masked.clone() };
        let records = [masked, sdc, trap];
        let notes = [(CAMPAIGN, "abc"), (VERSION, "1")];
        let bytes = write(Vec::new(), &records, &notes).unwrap();
        assert_eq!(bytes, write(Vec::new(), &records, &notes).unwrap());
        let path = std::env::temp_dir().join(format!("reconverge-table-{}.parquet", std::process::id()));
        std::fs::write(&path, bytes).unwrap();
        let table = Table::open(&path).unwrap();
        assert_eq!(table.records().unwrap(), records);
        assert_eq!((table.note(CAMPAIGN), table.note("other")), (Some("abc"), None));
        std::fs::remove_file(path).unwrap();
    }
}
