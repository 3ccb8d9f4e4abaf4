//! Finds the instruction that each record of a trace belongs to, and the memory of each access. The record itself does
//! not state them.

use std::io::{Read, Seek};

use crate::Reader;
use crate::record::{Line, Record, What};

/// The instruction of a record, and the memory of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordPlace<'a> {
    /// Address of the instruction. For a run of instructions, the address of the first one.
    pub pc: u32,
    /// The memory of a load or store, if the machine names it: `g14[]`, `LDS`.
    pub space: Option<&'a str>,
}

/// The last instruction of each group. [`Following::take`] must receive the records in their order.
#[derive(Clone, Debug, Default)]
pub struct Following {
    groups: Vec<GroupPlace>,
}

/// A group's last instruction, and the number of loads by each lane in that instruction.
#[derive(Clone, Debug)]
struct GroupPlace {
    pc: u32,
    loads: [u8; 64],
}

impl Following {
    /// Processes the next record. Returns the record's instruction and memory.
    pub fn take<'a, R: Read + Seek>(&mut self, reader: &'a Reader<R>, record: &Record) -> RecordPlace<'a> {
        let number = record.group as usize;
        if number >= self.groups.len() {
            self.groups.resize(number + 1, GroupPlace { pc: 0, loads: [0; 64] });
        }
        let group = &mut self.groups[number];
        let mut place = RecordPlace { pc: group.pc, space: None };
        let line = || reader.line(place.pc);
        match record.what {
            What::Ran { pc, count, .. } => {
                let last = reader.addresses(pc, count).last().copied().unwrap_or(pc);
                *group = GroupPlace { pc: last, loads: [0; 64] };
                place.pc = pc;
            }
            What::Load { lane, .. } => {
                let before = group.loads.get_mut(lane.index());
                let number = before.map_or(0, |before| std::mem::replace(before, before.saturating_add(1)));
                place.space = line().and_then(|line| loaded(line, number.into()));
            }
            What::Store { .. } => place.space = line().and_then(|line| line.stores.as_deref()),
            _ => {}
        }
        place
    }
}

/// Returns the memory of a load. `number` is the index of the load among a lane's loads in the instruction.
fn loaded(line: &Line, number: usize) -> Option<&str> {
    match &line.loads[..] {
        [only] => Some(only),
        several => several.get(number).map(String::as_str),
    }
}
