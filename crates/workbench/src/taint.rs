//! Tracks the exactness of the values that determine the behaviour of a program. [`Taint`] follows the values of each
//! lane while a program runs. The machine reports the operands and results of each instruction to [`Taint`]
//! ([`Machine::uses`]).
//!
//! A value has a grade of exactness. The grade of a value is the worst of the grades of four items. These items are the
//! operation that computed the value, the operands of the operation, the memory word that the operation read, and the
//! predicate of the operation. Inputs are exact. A value is reported if an instruction reads the value in one of three
//! roles ([`Role`]). The instruction decides the flow with the value, computes an address from the value, or writes the
//! value to an output. For each role, the report has the worst grade and the first instruction that read a value of the
//! worst grade.
//!
//! * The reported grade is the grade of the value that the instruction reads. Some operations compute a value and also
//!   output the value. Examples are an operation whose result is an output register, and an atomic operation. For such
//!   an operation, the reported grade includes the grade of the operation.
//! * If a branch condition is inexact, the report lists this condition. The grade of a value does not depend on the
//!   conditions of the branches around the computation of the value.
//! * If a predicate disables a lane, the lane keeps the old value and the grade of the old value. Writes to some
//!   register files do not emit events. For these files, [`Taint`] cannot determine the lanes that wrote a register.
//!   After a conditional write to such a file, the register has the worse one of the old and the new grade.
//! * If an operation reads a register that an index selects, the read has the worst grade in the register file. If an
//!   operation reads all lanes of a quad, the read has the worst grade among these lanes. A vote has the worst grade
//!   among the active lanes.
//! * A killed lane continues to run, but its exports are not outputs.
//! * Memory has one grade per 32-bit word. A wide access covers one word for each register of the access. A narrow
//!   access covers the whole word that contains the accessed bytes.
//!
//! [`Machine::uses`]: crate::Machine::uses

use std::collections::HashMap;

use litemap::LiteMap;
use reconverge_isa::sets::{NumberSet, SortedSet};
use reconverge_simt::uses::{Read, Role, Slot, Space, Uses, UsesAt};
use reconverge_simt::{Event, Fidelity, Lane, Mask};

use crate::trace::Sink;

/// Maximum number of lanes in a group.
const LANES: usize = 64;
/// Register files whose writes emit events.
const ANNOUNCED: [&str; 4] = ["R", "temp", "$r", "$c"];
/// Memory that the groups of one block share. Each block starts with new memory.
const OF_BLOCK: [&str; 2] = ["s[]", "LDS"];
/// Memory whose accesses do not emit events.
const SILENT: &str = "texture";
/// If an index selects the slot of a write at run time, this value replaces the slot number.
const SOMEWHERE: u32 = u32::MAX;

/// The exactness of a value, and the operation that determined this exactness.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grade {
    /// The exactness of the value.
    pub fidelity: Fidelity,
    /// Address of the instruction that determined the exactness. The address is 0 if the value is exact.
    pub pc: u32,
    /// Name of the operation that determined the exactness. The name is empty if the value is exact.
    pub operation: &'static str,
}

impl Grade {
    /// Grade of an exact value, for example an input.
    pub const EXACT: Grade = Grade { fidelity: Fidelity::Exact, pc: 0, operation: "" };

    fn worst(self, other: Grade) -> Grade {
        if other.fidelity > self.fidelity { other } else { self }
    }
}

/// A read of a value in one of the roles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reached {
    /// The role of the value.
    pub role: Role,
    /// Address of the instruction that reads the value.
    pub pc: u32,
    /// The group.
    pub group: usize,
    /// Number of the lane in its group.
    pub lane: Lane,
    /// The grade of the value.
    pub grade: Grade,
    /// Number of instructions that ran before the instruction that reads the value.
    step: u64,
}

/// An instruction for which some events have not arrived.
#[derive(Clone, Debug, Default)]
struct Pending {
    group: usize,
    pc: u32,
    mask: Mask,
    loads: Vec<(Lane, u32)>,
    stores: Vec<(Lane, u32)>,
    writes: Vec<(Lane, u32)>,
}

/// A word of memory. The parts of the tuple are the memory space, the owner of the memory (the number of a lane, block
/// or launch), and the address.
type Word = (Space, usize, u32);

/// The grades of the slots of a register file, indexed by the slot's number. A slot has one grade per lane.
type GradesOfFile = LiteMap<u32, Box<[Grade; LANES]>>;

/// Follows values while a program runs. The events that [`Taint`] receives must include writes and memory accesses.
#[derive(Clone, Debug, Default)]
pub struct Taint {
    uses: UsesAt,
    /// Number of groups per block.
    of_block: usize,
    /// For each group, the lanes that are killed during the run.
    killed: HashMap<usize, Mask>,
    slots: HashMap<(usize, &'static str), GradesOfFile>,
    memory: HashMap<Word, Grade>,
    pending: Option<Pending>,
    steps: u64,
    found: Exactness,
}

impl Taint {
    /// Creates a tracker for a program before the program runs. `uses` lists the operands and results of the program's
    /// instructions. A block has `of_block` groups, which share memory. For each group, `killed` has the lanes that are
    /// killed during the run.
    pub fn new(uses: UsesAt, of_block: usize, killed: HashMap<usize, Mask>) -> Taint {
        Taint { uses, of_block: of_block.max(1), killed, ..Taint::default() }
    }

    /// Returns the exactness of all values that were read in a role. The caller must call this method at the end of the
    /// run.
    pub fn finish(mut self) -> Exactness {
        self.complete();
        self.found
    }

    fn slot(&self, group: usize, slot: Slot, lane: Lane) -> Grade {
        let Some(file) = self.slots.get(&(group, slot.file)) else { return Grade::EXACT };
        let at = |number: &u32| file.get(number).map_or(Grade::EXACT, |lanes| lanes[lane.index()]);
        match slot.number {
            Some(number) => at(&number).worst(at(&SOMEWHERE)),
            None => file.values().map(|lanes| lanes[lane.index()]).fold(Grade::EXACT, Grade::worst),
        }
    }

    fn read(&self, group: usize, read: &Read, lane: Lane) -> Grade {
        let quad = lane.0 & !3..(lane.0 | 3) + 1;
        match read.quad {
            false => self.slot(group, read.slot, lane),
            true => quad.map(|lane| self.slot(group, read.slot, Lane(lane))).fold(Grade::EXACT, Grade::worst),
        }
    }

    fn word(&self, space: Space, group: usize, lane: Lane, address: u32) -> Word {
        let owner = match space {
            Space { private: true, .. } => group * LANES + lane.index(),
            Space { name, .. } if OF_BLOCK.contains(&name) => group / self.of_block,
            _ => 0,
        };
        (space, owner, address & !3)
    }

    fn reach(&mut self, role: Role, pending: &Pending, lane: Lane, grade: Grade) {
        let (group, pc, step) = (pending.group, pending.pc, self.steps);
        let first = Reached { role, pc, group, lane, grade, step };
        self.found.reached.entry((role, grade.fidelity)).or_insert(first);
    }

    /// Updates the grades for the pending instruction, whose events have all arrived.
    fn complete(&mut self) {
        let Some(pending) = self.pending.take() else { return };
        let Some(operations) = self.uses.get_mut(&pending.pc).map(std::mem::take) else {
            self.found.unknown.insert(pending.pc);
            return;
        };
        // All operations of an instruction read their operands before any of the operations writes a result. Operations
        // that only output values run last, because they output the results of the computing operations.
        let (leaving, computing): (Vec<&Uses>, Vec<&Uses>) =
            operations.iter().partition(|op| only_leaves(op));
        let results: Vec<_> = computing.iter().map(|op| self.operation(op, &pending)).collect();
        for (op, result) in computing.iter().zip(&results) {
            self.write(op, &pending, result);
        }
        for op in leaving {
            self.operation(op, &pending);
        }
        self.steps += 1;
        self.uses[&pending.pc] = operations;
    }

    /// Returns the grade of an operation's result in each lane. Records each value that the operation reads in a role.
    fn operation(&mut self, op: &Uses, pending: &Pending) -> [Grade; LANES] {
        let own = Grade { fidelity: op.fidelity, pc: pending.pc, operation: op.operation };
        let own = if own.fidelity == Fidelity::Exact { Grade::EXACT } else { own };
        let computes = !op.writes.is_empty() || op.loads.is_some();
        let dropped = match op.dropped_if_killed {
            true => self.killed.get(&pending.group).copied().unwrap_or(Mask::NONE),
            false => Mask::NONE,
        };
        let mut results = [Grade::EXACT; LANES];
        for lane in pending.mask.lanes() {
            let mut sources = Grade::EXACT;
            let accesses = accesses(op, pending, lane) && !dropped.has(lane);
            for read in &op.reads {
                let grade = self.read(pending.group, read, lane);
                sources = sources.worst(grade);
                match read.role {
                    Role::Value => {}
                    Role::Flow => self.reach(Role::Flow, pending, lane, grade),
                    Role::Address if accesses => self.reach(Role::Address, pending, lane, grade),
                    Role::Output if accesses => {
                        let grade = if computes { grade.worst(own) } else { grade };
                        self.reach(Role::Output, pending, lane, grade);
                    }
                    Role::Address | Role::Output => {}
                }
            }
            if let Some(space) = op.loads {
                for (_, address) in pending.loads.iter().filter(|(by, _)| *by == lane) {
                    for step in 0..op.writes.len().max(1) as u32 {
                        let word = self.word(space, pending.group, lane, address.wrapping_add(4 * step));
                        sources = sources.worst(self.memory.get(&word).copied().unwrap_or(Grade::EXACT));
                    }
                }
            }
            results[lane.index()] = sources.worst(own);
            if op.leaves && !dropped.has(lane) {
                self.reach(Role::Output, pending, lane, results[lane.index()]);
            }
        }
        if op.together {
            let worst =
                pending.mask.lanes().map(|lane| results[lane.index()]).fold(Grade::EXACT, Grade::worst);
            pending.mask.lanes().for_each(|lane| results[lane.index()] = worst);
        }
        results
    }

    /// Stores the grades of an operation's results.
    fn write(&mut self, op: &Uses, pending: &Pending, results: &[Grade; LANES]) {
        let group = pending.group;
        let fixed = |number: u32| op.writes.iter().any(|slot| slot.number == Some(number));
        for slot in &op.writes {
            let announced = ANNOUNCED.contains(&slot.file);
            let file = self.slots.entry((group, slot.file)).or_default();
            let uncertain = op.conditional || slot.number.is_none();
            if announced && uncertain {
                let is = |number: u32| slot.number.map_or(!fixed(number), |only| only == number);
                for (lane, number) in pending.writes.iter().filter(|(_, number)| is(*number)) {
                    file.entry(*number).or_insert_with(empty)[lane.index()] = results[lane.index()];
                }
                continue;
            }
            let row = file.entry(slot.number.unwrap_or(SOMEWHERE)).or_insert_with(empty);
            for lane in pending.mask.lanes() {
                let (kept, result) = (row[lane.index()], results[lane.index()]);
                row[lane.index()] = if uncertain { kept.worst(result) } else { result };
            }
        }
        let Some(space) = op.stores else { return };
        let values: SortedSet<Slot> =
            op.reads.iter().filter(|read| read.role == Role::Value).map(|read| read.slot).collect();
        for (lane, address) in &pending.stores {
            let single = op.loads.is_some() || pending.stores.iter().filter(|(by, _)| by == lane).count() > 1;
            let words = if single { 1 } else { values.len().max(1) as u32 };
            for step in 0..words {
                let word = self.word(space, group, *lane, address.wrapping_add(4 * step));
                let kept = self.memory.get(&word).copied().filter(|_| op.narrow);
                let grade = results[lane.index()].worst(kept.unwrap_or(Grade::EXACT));
                match grade.fidelity {
                    Fidelity::Exact => drop(self.memory.remove(&word)),
                    _ => drop(self.memory.insert(word, grade)),
                }
            }
        }
    }
}

/// Returns the grades of a slot that has not been written.
fn empty() -> Box<[Grade; LANES]> {
    Box::new([Grade::EXACT; LANES])
}

/// Returns whether an operation writes outputs and has no other effect.
fn only_leaves(op: &Uses) -> bool {
    op.writes.is_empty() && op.stores.is_none() && op.reads.iter().any(|read| read.role == Role::Output)
}

/// Returns whether a lane performs the memory accesses of an operation. If the operation is conditional, the lane
/// performs the accesses only if an event reported an access of the lane.
fn accesses(op: &Uses, pending: &Pending, lane: Lane) -> bool {
    let memory = [op.loads, op.stores];
    let announced = memory.into_iter().flatten().any(|space| space.name != SILENT);
    let mut events = pending.loads.iter().chain(&pending.stores);
    !op.conditional || !announced || events.any(|(by, _)| *by == lane)
}

impl Sink for Taint {
    fn issues(&mut self, group: usize, addresses: &[u32], mask: Mask) {
        for pc in addresses {
            self.complete();
            self.pending = Some(Pending { group, pc: *pc, mask, ..Pending::default() });
        }
    }

    fn event(&mut self, group: usize, event: Event) {
        let Some(pending) = self.pending.as_mut().filter(|pending| pending.group == group) else { return };
        match event {
            Event::Load { lane, address } => pending.loads.push((lane, address)),
            Event::Store { lane, address, .. } => pending.stores.push((lane, address)),
            Event::Write { lane, register, .. } => pending.writes.push((lane, register)),
            _ => {}
        }
    }
}

/// The exactness of the values that were read in each role.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exactness {
    /// For each role and each exactness, the first read of a value that has this exactness in this role.
    reached: LiteMap<(Role, Fidelity), Reached>,
    unknown: NumberSet,
}

/// The roles with their names in reports.
pub const ROLES: [(Role, &str); 3] =
    [(Role::Flow, "flow control"), (Role::Address, "an address"), (Role::Output, "an output")];

impl Exactness {
    /// Returns the first read of a value that has the worst grade of all values read in this role. Returns `None` if no
    /// value was read in this role.
    pub fn worst(&self, role: Role) -> Option<&Reached> {
        self.reached.iter().rev().find(|((of, _), _)| *of == role).map(|(_, reached)| reached)
    }

    /// Returns the first read, in any role, of a value whose exactness is worse than `required`.
    pub fn worse_than(&self, required: Fidelity) -> Option<&Reached> {
        let worse = self.reached.iter().filter(|((_, grade), _)| *grade > required);
        worse.map(|(_, reached)| reached).min_by_key(|reached| reached.step)
    }

    /// Returns the addresses of executed instructions for which the machine does not report operands and results. The
    /// effect of these instructions on grades is unknown.
    pub fn unknown(&self) -> impl Iterator<Item = u32> {
        self.unknown.iter()
    }
}

#[cfg(test)]
mod tests;
