//! Finds the instruction to which each record of a trace belongs, and the memory to which each access refers. The
//! records themselves do not state the instruction and the memory.

use std::io::{Read, Seek};

use crate::Reader;
use crate::record::{Line, Record, What};

/// The instruction to which a record belongs, and the memory that an access refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordPlace<'a> {
    /// Address of the instruction. If the record is a run of instructions, this field is the address of the run's first
    /// instruction.
    pub pc: u32,
    /// The name of the memory that a load or store accesses, if the machine has a name for the memory. Examples of
    /// names are `g14[]` and `LDS`.
    pub space: Option<&'a str>,
}

/// The last instruction of each group. Callers must pass the records to [`Following::take`] in the order of the trace.
#[derive(Clone, Debug, Default)]
pub struct Following {
    groups: Vec<GroupPlace>,
}

/// The last instruction of a group. For each lane, the struct also has the number of loads that the lane has performed
/// in this instruction.
#[derive(Clone, Debug)]
struct GroupPlace {
    pc: u32,
    loads: [u8; 64],
}

impl Following {
    /// Processes the next record of the trace. Returns the instruction and the memory of this record.
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

/// Returns the memory that a load accesses. `number` is the position of the load among all loads of one lane in this
/// instruction. Positions count from 0.
fn loaded(line: &Line, number: usize) -> Option<&str> {
    match &line.loads[..] {
        [only] => Some(only),
        several => several.get(number).map(String::as_str),
    }
}
