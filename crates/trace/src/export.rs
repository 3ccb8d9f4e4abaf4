//! Writes the trace formats of other programs. These formats are Chrome's JSON and Perfetto's protocol buffers. In both
//! formats, each group has a track, and each instruction lasts one microsecond. [`mod@crate::parquet`] writes a table
//! for data frames.

use std::collections::BTreeSet;
use std::io::{Read, Seek, Write};

use quick_protobuf::Writer;
use serde_json::json;

use crate::filter::Filter;
use crate::{Error, Following, Reader, Record, RecordPlace, What};

/// Calls a function for each record that a filter selects. The function receives the record and the record's
/// [`RecordPlace`].
pub(crate) fn walk<R: Read + Seek>(
    reader: &mut Reader<R>,
    filter: &Filter,
    mut take: impl FnMut(&Reader<R>, &Record, RecordPlace<'_>) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut following = Following::default();
    for number in 0..reader.blocks().len() {
        for record in reader.block(number)? {
            let place = following.take(reader, &record);
            if filter.takes(&record, place.pc) {
                take(reader, &record, place)?;
            }
        }
    }
    Ok(())
}

/// Returns the name of a record on the group's track, and the duration of the record in steps. A duration of 0 denotes
/// an instant event.
fn named<R: Read + Seek>(reader: &Reader<R>, record: &Record, space: Option<&str>) -> (String, u32) {
    match record.what {
        What::Ran { count, .. } => (reader.described(&record.what, None), count),
        What::Diverge { .. } => ("diverge".to_owned(), 0),
        What::Resume { .. } => ("resume".to_owned(), 0),
        What::Reconverge { .. } => ("reconverge".to_owned(), 0),
        What::Trap { .. } => ("trap".to_owned(), 0),
        _ => (reader.described(&record.what, space), 0),
    }
}

/// Writes a trace as JSON for Chrome's trace viewer (`chrome://tracing`), Perfetto and Speedscope.
///
/// # Errors
/// Fails if the trace is damaged, or if the output fails.
pub fn chrome<R: Read + Seek>(
    reader: &mut Reader<R>,
    filter: &Filter,
    out: &mut impl Write,
) -> Result<(), Error> {
    let isa = reader.header().isa.clone();
    let program = reader.header().program.clone().unwrap_or_default();
    write!(
        out,
        "{{\"displayTimeUnit\":\"ms\",\"otherData\":{},\"traceEvents\":[",
        json!({ "isa": isa, "program": program })
    )?;
    let mut groups = BTreeSet::new();
    let mut first = true;
    walk(reader, filter, |reader, record, RecordPlace { pc, space }| {
        let (name, lasts) = named(reader, record, space);
        let mut event = json!({ "name": name, "pid": 0, "tid": record.group, "ts": record.step });
        match record.what {
            What::Ran { mask, .. } => {
                event["ph"] = json!("X");
                event["dur"] = json!(lasts);
                event["args"] = json!({ "pc": pc, "lanes": format!("{mask}"), "active": mask.count() });
            }
            _ => {
                event["ph"] = json!("i");
                event["s"] = json!("t");
            }
        }
        groups.insert(record.group);
        write!(out, "{}{event}", if first { "\n" } else { ",\n" })?;
        first = false;
        Ok(())
    })?;
    for group in groups {
        let name = json!({ "name": "thread_name", "ph": "M", "pid": 0, "tid": group, "args": { "name": format!("group {group}") } });
        write!(out, "{}{name}", if first { "\n" } else { ",\n" })?;
        first = false;
    }
    writeln!(out, "\n]}}")?;
    Ok(())
}

/// The concatenated fields of a Perfetto message.
#[derive(Default)]
struct Fields(Vec<u8>);

/// The two wire types of protocol buffers that are used here. One wire type is a number of variable length. The second
/// wire type is a byte count, followed by as many bytes.
const VARINT: u32 = 0;
const LEN: u32 = 2;

impl Fields {
    fn field(
        mut self,
        tag: u32,
        wire: u32,
        put: impl FnMut(&mut Writer<&mut Vec<u8>>) -> quick_protobuf::Result<()>,
    ) -> Fields {
        Writer::new(&mut self.0).write_with_tag(tag << 3 | wire, put).expect("memory takes every byte");
        self
    }

    fn number(self, tag: u32, value: u64) -> Fields {
        self.field(tag, VARINT, |to| to.write_uint64(value))
    }

    fn text(self, tag: u32, value: &str) -> Fields {
        self.field(tag, LEN, |to| to.write_string(value))
    }

    fn message(self, tag: u32, value: &Fields) -> Fields {
        self.field(tag, LEN, |to| to.write_bytes(&value.0))
    }
}

// Field numbers of Perfetto's messages. Sources: perfetto/trace/trace_packet.proto and
// perfetto/trace/track_event/{track_event,track_descriptor}.proto.
mod trace {
    pub(super) const PACKET: u32 = 1;
}
mod packet {
    pub(super) const TIMESTAMP: u32 = 8;
    pub(super) const TRUSTED_PACKET_SEQUENCE_ID: u32 = 10;
    pub(super) const TRACK_EVENT: u32 = 11;
    pub(super) const TRACK_DESCRIPTOR: u32 = 60;
}
mod track_descriptor {
    pub(super) const UUID: u32 = 1;
    pub(super) const NAME: u32 = 2;
}
mod track_event {
    pub(super) const TYPE: u32 = 9;
    pub(super) const TRACK_UUID: u32 = 11;
    pub(super) const NAME: u32 = 23;
    pub(super) const SLICE_BEGIN: u64 = 1;
    pub(super) const SLICE_END: u64 = 2;
    pub(super) const INSTANT: u64 = 3;
}

/// Writes a trace for Perfetto (<https://ui.perfetto.dev>).
///
/// # Errors
/// Fails if the trace is damaged, or if the output fails.
pub fn perfetto<R: Read + Seek>(
    reader: &mut Reader<R>,
    filter: &Filter,
    out: &mut impl Write,
) -> Result<(), Error> {
    let mut groups = BTreeSet::new();
    // Each call of `put` writes a message with one packet. All messages in sequence form a single message with all
    // packets.
    let mut put = |packet: Fields| {
        out.write_all(&Fields::default().message(trace::PACKET, &packet).0).map_err(Error::from)
    };
    walk(reader, filter, |reader, record, place| {
        let track = u64::from(record.group) + 1;
        if groups.insert(record.group) {
            let name = format!("group {}", record.group);
            let descriptor = Fields::default().number(track_descriptor::UUID, track);
            let descriptor = descriptor.text(track_descriptor::NAME, &name);
            put(Fields::default().message(packet::TRACK_DESCRIPTOR, &descriptor))?;
        }
        let (name, lasts) = named(reader, record, place.space);
        let event = |kind, at: u64, name: Option<&str>| {
            let event = Fields::default().number(track_event::TYPE, kind);
            let event = event.number(track_event::TRACK_UUID, track);
            let event = match name {
                Some(name) => event.text(track_event::NAME, name),
                None => event,
            };
            Fields::default()
                .number(packet::TIMESTAMP, at * 1000)
                .number(packet::TRUSTED_PACKET_SEQUENCE_ID, 1)
                .message(packet::TRACK_EVENT, &event)
        };
        if lasts == 0 {
            return put(event(track_event::INSTANT, record.step, Some(&name)));
        }
        put(event(track_event::SLICE_BEGIN, record.step, Some(&name)))?;
        put(event(track_event::SLICE_END, record.step + u64::from(lasts), None))
    })
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use prost::Message;
    use reconverge_simt::{Event, Mask};

    use super::*;
    use crate::{Header, Limits, Line, Outcome, Writer};

    /// The part of Perfetto's messages that a trace needs. Sources: perfetto/trace/trace_packet.proto and
    /// perfetto/trace/track_event/{track_event,track_descriptor}.proto.
    #[derive(Clone, PartialEq, Message)]
    struct Packet {
        #[prost(uint64, optional, tag = "8")]
        timestamp: Option<u64>,
        #[prost(uint32, optional, tag = "10")]
        trusted_packet_sequence_id: Option<u32>,
        #[prost(message, optional, tag = "11")]
        track_event: Option<TrackEvent>,
        #[prost(message, optional, tag = "60")]
        track_descriptor: Option<TrackDescriptor>,
    }

    #[derive(Clone, PartialEq, Message)]
    struct TrackDescriptor {
        #[prost(uint64, optional, tag = "1")]
        uuid: Option<u64>,
        #[prost(string, optional, tag = "2")]
        name: Option<String>,
    }

    #[derive(Clone, PartialEq, Message)]
    struct TrackEvent {
        #[prost(int32, optional, tag = "9")]
        kind: Option<i32>,
        #[prost(uint64, optional, tag = "11")]
        track_uuid: Option<u64>,
        #[prost(string, optional, tag = "23")]
        name: Option<String>,
    }

    /// A trace. The trace consists of packets, and each packet is in field 1.
    #[derive(Clone, PartialEq, Message)]
    struct Packets {
        #[prost(message, repeated, tag = "1")]
        packet: Vec<Packet>,
    }

    fn trace() -> Reader<Cursor<Vec<u8>>> {
        let line = |address, text: &str| Line { address, text: text.to_owned(), ..Line::default() };
        let listing = vec![line(0, "set $c0"), line(8, "bra \"L\"")];
        let header = Header { isa: "tesla".to_owned(), listing, ..Header::default() };
        let mut writer = Writer::new(Vec::new(), &header, Limits::default()).unwrap();
        writer.issues(0, &[0, 8], Mask(0b11)).unwrap();
        writer.event(0, Event::Diverge { taken: Mask(1), not: Mask(2) }).unwrap();
        writer.issues(1, &[8], Mask(1)).unwrap();
        Reader::new(Cursor::new(writer.finish(Outcome::default()).unwrap())).unwrap()
    }

    #[test]
    fn chrome_json_has_a_slice_a_run_and_a_track_a_group() {
        let mut out = Vec::new();
        chrome(&mut trace(), &Filter::default(), &mut out).unwrap();
        let json: serde_json::Value = serde_json::from_slice(&out).unwrap();
        let events = json["traceEvents"].as_array().unwrap();
        assert_eq!(events.len(), 3 + 2);
        assert_eq!((&events[0]["ph"], &events[0]["dur"]), (&json!("X"), &json!(2)));
        assert_eq!(
            (&events[1]["name"], &events[1]["ts"]),
            (&json!("diverge"), &json!(1)),
            "with its instruction"
        );
        assert_eq!(events[2]["name"], "bra \"L\"");
    }

    #[test]
    fn perfetto_packets_are_read_back() {
        let mut out = Vec::new();
        perfetto(&mut trace(), &Filter::default(), &mut out).unwrap();
        let packets = Packets::decode(&out[..]).unwrap().packet;
        let descriptors = packets.iter().filter(|packet| packet.track_descriptor.is_some()).count();
        let kinds: Vec<i32> = packets.iter().filter_map(|packet| packet.track_event.as_ref()?.kind).collect();
        assert_eq!(descriptors, 2);
        assert_eq!(kinds, [1, 2, 3, 1, 2]);
        let names: Vec<String> =
            packets.iter().filter_map(|packet| packet.track_event.as_ref()?.name.clone()).collect();
        assert_eq!(names, ["set $c0", "diverge", "bra \"L\""]);
        let sequences = packets.iter().filter_map(|packet| packet.trusted_packet_sequence_id);
        assert!(sequences.eq([1; 5]));
    }

    #[test]
    fn an_export_has_what_the_filter_takes() {
        let mut out = Vec::new();
        let filter = Filter { groups: Some(1..=1), ..Filter::default() };
        chrome(&mut trace(), &filter, &mut out).unwrap();
        let json: serde_json::Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(json["traceEvents"].as_array().unwrap().len(), 2);
    }
}
