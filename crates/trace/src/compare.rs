//! Finds the first difference between two traces.
//!
//! Two instructions are equal if their texts without labels are equal. The addresses of the two instructions may
//! differ. If both traces have equal listings, the addresses of instructions and jumps must also be equal.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::io::{Read, Seek};

use reconverge_simt::Mask;

use crate::record::{Header, Record, What};
use crate::{Error, Reader};

/// One issued instruction, or one event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// The step of the instruction.
    pub step: u64,
    /// The group.
    pub group: u32,
    /// Address of the issued instruction. For an event, the address of the group's last instruction.
    pub pc: u32,
    /// The instruction or the event. A [`What::Ran`] in this field has exactly one instruction.
    pub what: What,
}

/// The first difference between two traces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Difference {
    /// Pairs of moments before the difference, one moment from each trace. The oldest pair comes first.
    pub before: Vec<(Moment, Moment)>,
    /// Moment of the first trace at the difference. `None` if the first trace ends before the second trace.
    pub a: Option<Moment>,
    /// Moment of the second trace at the difference. `None` if the second trace ends before the first trace.
    pub b: Option<Moment>,
}

/// Maximum number of moments in [`Difference::before`].
const BEFORE: usize = 4;

/// Returns the first difference between two traces, or `None` if the traces are equal. If one trace was recorded
/// without register writes and memory accesses, the comparison ignores these events.
///
/// # Errors
/// Fails if a trace is damaged.
pub fn first_difference<A: Read + Seek, B: Read + Seek>(
    a: &mut Reader<A>,
    b: &mut Reader<B>,
) -> Result<Option<Difference>, Error> {
    let data = a.header().data && b.header().data;
    let same_listing = a.header().listing == b.header().listing;
    let (texts_a, texts_b) = (texts(a.header()), texts(b.header()));
    let (mut left, mut right) = (Moments::new(a, data), Moments::new(b, data));
    let mut before: VecDeque<(Moment, Moment)> = VecDeque::new();
    loop {
        let (a, b) = (left.next()?, right.next()?);
        let (Some(one), Some(other)) = (a, b) else {
            let differ = a.is_some() || b.is_some();
            return Ok(differ.then(|| Difference { before: before.into(), a, b }));
        };
        let same = one.group == other.group
            && match (one.what, other.what) {
                (What::Ran { mask, .. }, What::Ran { mask: others, .. }) => {
                    mask == others
                        && if same_listing {
                            one.pc == other.pc
                        } else {
                            texts_a.get(&one.pc) == texts_b.get(&other.pc)
                        }
                }
                (What::Push { kind }, What::Push { kind: other })
                | (What::Pop { kind }, What::Pop { kind: other }) => {
                    left.reader.kind(kind) == right.reader.kind(other)
                }
                (What::Jump { to }, What::Jump { to: other }) => !same_listing || to == other,
                (one, other) => one == other,
            };
        if !same {
            return Ok(Some(Difference { before: before.into(), a, b }));
        }
        if before.len() == BEFORE {
            before.pop_front();
        }
        before.push_back((one, other));
    }
}

/// Returns the texts of a listing, indexed by address. The label of an instruction depends on the address of the
/// instruction. In each text, the word `label` therefore replaces each label.
fn texts(header: &Header) -> HashMap<u32, String> {
    let labels: BTreeSet<&str> = header.listing.iter().filter_map(|line| line.label.as_deref()).collect();
    let plain = |word: &str| match labels.contains(word) {
        true => "label".to_owned(),
        false => word.to_owned(),
    };
    let text = |text: &str| text.split_whitespace().map(plain).collect::<Vec<_>>().join(" ");
    header.listing.iter().map(|line| (line.address, text(&line.text))).collect()
}

/// Iterates over the moments of a trace, in order. Only one block is in memory at a time.
struct Moments<'a, R> {
    reader: &'a mut Reader<R>,
    data: bool,
    block: usize,
    records: std::vec::IntoIter<Record>,
    /// The current run of instructions. The field has the record of the run, the active lanes, and the remaining
    /// addresses of the run. These addresses are in reverse order.
    run: Option<(Record, Mask, Vec<u32>)>,
    /// Address of the last instruction of each group.
    last: HashMap<u32, u32>,
}

impl<'a, R: Read + Seek> Moments<'a, R> {
    fn new(reader: &'a mut Reader<R>, data: bool) -> Self {
        Moments { reader, data, block: 0, records: Vec::new().into_iter(), run: None, last: HashMap::new() }
    }

    fn next(&mut self) -> Result<Option<Moment>, Error> {
        loop {
            if let Some((record, mask, rest)) = &mut self.run
                && let Some(pc) = rest.pop()
            {
                let (step, group) = (record.step, record.group);
                record.step += 1;
                self.last.insert(group, pc);
                return Ok(Some(Moment { step, group, pc, what: What::Ran { pc, count: 1, mask: *mask } }));
            }
            let Some(record) = self.records.next() else {
                if self.block == self.reader.blocks().len() {
                    return Ok(None);
                }
                self.records = self.reader.block(self.block)?.into_iter();
                self.block += 1;
                continue;
            };
            match record.what {
                What::Ran { pc, count, mask } => {
                    let mut rest = self.reader.addresses(pc, count).to_vec();
                    rest.reverse();
                    self.run = Some((record, mask, rest));
                }
                What::Write { .. } | What::Load { .. } | What::Store { .. } if !self.data => {}
                what => {
                    let pc = self.last.get(&record.group).copied().unwrap_or(0);
                    return Ok(Some(Moment { step: record.step, group: record.group, pc, what }));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use reconverge_simt::Event;

    use super::*;
    use crate::{Limits, Line, Outcome, Writer};

    /// A program with instructions at these addresses. The last instruction jumps to the first instruction.
    fn header(addresses: [u32; 3]) -> Header {
        let line = |address, text: &str, label: Option<String>| Line {
            address,
            text: text.to_owned(),
            label,
            ..Line::default()
        };
        let label = format!("L{}", addresses[0]);
        let jump = format!("bra {label}");
        let listing = vec![
            line(addresses[0], "add", Some(label)),
            line(addresses[1], "mul", None),
            line(addresses[2], &jump, None),
        ];
        Header { listing, ..Header::default() }
    }

    fn trace(addresses: [u32; 3], last: u64, more: &[Event]) -> Reader<Cursor<Vec<u8>>> {
        let mut writer = Writer::new(Vec::new(), &header(addresses), Limits::default()).unwrap();
        writer.issues(0, &addresses, Mask(0b11)).unwrap();
        writer.event(0, Event::Jump { to: addresses[0] }).unwrap();
        writer.issues(0, &addresses[..2], Mask(last)).unwrap();
        more.iter().for_each(|event| writer.event(0, *event).unwrap());
        Reader::new(Cursor::new(writer.finish(Outcome::default()).unwrap())).unwrap()
    }

    #[test]
    fn the_same_instructions_at_other_addresses_are_the_same() {
        let (mut a, mut b) = (trace([0, 8, 16], 1, &[]), trace([8, 24, 32], 1, &[]));
        assert_eq!(first_difference(&mut a, &mut b).unwrap(), None);
    }

    #[test]
    fn a_difference_has_its_place_and_what_was_before_it() {
        let (mut a, mut b) = (trace([0, 8, 16], 1, &[]), trace([0, 8, 16], 2, &[]));
        let found = first_difference(&mut a, &mut b).unwrap().unwrap();
        let (a, b) = (found.a.unwrap(), found.b.unwrap());
        assert_eq!((a.step, a.pc, a.what), (3, 0, What::Ran { pc: 0, count: 1, mask: Mask(1) }));
        assert_eq!(b.what, What::Ran { pc: 0, count: 1, mask: Mask(2) });
        assert_eq!(found.before.len(), 4);
        assert_eq!(found.before[3].0.what, What::Jump { to: 0 });
    }

    #[test]
    fn a_trace_that_ends_earlier_differs_there() {
        let more = [Event::Reconverge { mask: Mask(3) }];
        let (mut a, mut b) = (trace([0, 8, 16], 1, &[]), trace([0, 8, 16], 1, &more));
        let found = first_difference(&mut a, &mut b).unwrap().unwrap();
        assert_eq!((found.a, found.b.unwrap().step), (None, 4), "the step of its instruction");
    }

    #[test]
    fn words_of_pushes_are_compared_whatever_their_numbers() {
        let (one, other) = ([Event::Push { kind: "LOOP" }], [Event::Push { kind: "CALL" }]);
        let mut traces = [&one, &one, &other].map(|more| trace([0, 8, 16], 1, more));
        let [a, b, c] = &mut traces;
        assert_eq!(first_difference(a, b).unwrap(), None);
        assert!(first_difference(a, c).unwrap().is_some());
    }
}
