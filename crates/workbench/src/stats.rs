//! Counts the events of each instruction, and measures the cost of divergence. [`Profile`] counts these events while a
//! program runs.
//!
//! Each machine defines how to count instructions, active lanes and divergences; see docs/r500.md, docs/r700.md and
//! docs/tesla.md. The sums over all instructions are equal to [`reconverge_simt::Statistics`].

pub mod banks;
pub mod memory;

use foldhash::HashMap;
use litemap::LiteMap;
use reconverge_simt::{Depth, Event, Mask};
use serde::Serialize;
use serde_json::{Value, json};

use self::banks::{BankCounts, BankedAccess, Banks};
use self::memory::{Access, Accesses, Coalescing, MemoryCounts};
use crate::listing::Lines;
use crate::trace::Sink;

reconverge_isa::choices! {
    /// Purpose of an instruction.
    #[derive(PartialOrd, Ord, Hash)]
    pub enum Class {
        /// Computes a value.
        Alu = "ALU",
        /// Interpolates an input.
        Interpolation = "interpolation",
        /// Samples or queries a texture.
        Texture = "texture",
        /// Reads or writes memory.
        Memory = "memory",
        /// Writes a pixel, a vertex or a parameter as a result of the program.
        Output = "output",
        /// Determines which lanes run next, and at which instruction these lanes continue.
        Flow = "flow",
        /// Any other instruction.
        Other = "other",
    }
}

/// Properties of a program's instructions that statistics need for counting. The properties come from the machine's
/// tables and manual.
#[derive(Clone, Debug)]
pub struct Conventions {
    /// Class of each instruction, indexed by address.
    pub classes: LiteMap<u32, Class>,
    /// Instructions whose memory accesses are coalesced, indexed by address.
    pub accesses: LiteMap<u32, Access>,
    /// The rule for coalescing. If the manual does not define a rule, the value is a message that states this.
    pub coalescing: Result<Coalescing, &'static str>,
    /// Instructions that access the banks of shared memory, indexed by address.
    pub banked: LiteMap<u32, BankedAccess>,
}

impl Conventions {
    /// Returns whether memory accesses can be counted. The manual must define the rule for coalescing, and the program
    /// must have memory accesses to which the rule applies.
    pub fn have_accesses(&self) -> bool {
        self.coalescing.is_ok() && !(self.accesses.is_empty() && self.banked.is_empty())
    }
}

/// Usage of a stack or counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct StackCounts {
    /// The manual's name for the stack or counter.
    pub of: &'static str,
    /// Maximum number of entries that a group used at the same time, in the manual's unit.
    pub high_water: u32,
    /// Number of entries that the program declares, or number of entries that the machine has.
    pub room: Option<u32>,
}

/// Counts of all instructions of one class.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ClassCounts {
    /// Name of the class.
    pub class: &'static str,
    /// Number of times that an instruction of the class was issued to a group.
    pub executed: u64,
    /// Number of active lanes, summed over all issues of instructions of the class.
    pub lanes: u64,
    /// Share of this class in all issued instructions, 0 to 1.
    pub share: f64,
}

/// Counts of one instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct InstructionCounts {
    /// Number of times that the instruction was issued to a group.
    pub executed: u64,
    /// Number of active lanes, summed over all issues of the instruction.
    pub lanes: u64,
    /// Number of times that the instruction split the active lanes.
    pub diverged: u64,
    /// Number of instructions that were issued to the side that runs first after a divergence at this instruction. For
    /// each divergence, the count ends when lanes of both sides run together again.
    pub taken_cost: u64,
    /// Number of instructions that were issued to the side that runs later after a divergence at this instruction. For
    /// each divergence, the count ends when lanes of both sides run together again.
    pub not_cost: u64,
    /// Number of divergences at this instruction after which lanes of both sides ran together again.
    pub reconverged: u64,
    /// Sum of the distances of all divergences at this instruction. The distance is the number of instructions that the
    /// group issued between the divergence and the reconvergence.
    pub distance: u64,
    /// The largest distance of a divergence at this instruction. The distance is the number of instructions that the
    /// group issued between the divergence and the reconvergence.
    pub farthest: u64,
}

/// Counts of a whole run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Totals {
    /// Number of issued instructions, summed over groups.
    pub instructions: u64,
    /// Number of active lanes, summed over all issued instructions.
    pub lane_instructions: u64,
    /// Number of branch decisions that split the lanes of a group.
    pub divergent_branches: u64,
    /// Average share of a group's lanes that are active, from 0 to 1.
    pub simd_efficiency: f64,
    /// Maximum number of entries that the stack of a group had at one time.
    pub stack_high_water: u64,
    /// Number of groups that ran.
    pub groups: u64,
}

/// Counts of a group, or sums over the groups of a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct GroupCounts {
    /// Number of instructions that were issued to the group.
    pub instructions: u64,
    /// Number of active lanes, summed over the issued instructions.
    pub lane_instructions: u64,
    /// Number of branch decisions that split the group's lanes.
    pub divergent_branches: u64,
    /// Counts of memory accesses. The manual's rule for coalescing determines the transactions.
    pub memory: MemoryCounts,
    /// Counts of accesses to the banks of shared memory.
    pub banks: BankCounts,
}

impl GroupCounts {
    fn add(&mut self, other: &GroupCounts) {
        self.instructions += other.instructions;
        self.lane_instructions += other.lane_instructions;
        self.divergent_branches += other.divergent_branches;
        self.memory.add(&other.memory);
        self.banks.add(&other.banks);
    }

    /// Returns the average share of active lanes, from 0 to 1, if groups have `width` lanes.
    pub fn simd_efficiency(&self, width: u32) -> f64 {
        let places = self.instructions as f64 * f64::from(width);
        if places == 0.0 { 0.0 } else { self.lane_instructions as f64 / places }
    }
}

/// A divergence whose two sides have not run together again yet.
#[derive(Clone, Copy, Debug)]
struct Open {
    pc: u32,
    taken: Mask,
    not: Mask,
    distance: u64,
}

/// State of a group during the run.
#[derive(Clone, Debug, Default)]
struct Group {
    last: u32,
    /// Divergences that have not reconverged. Each divergence splits a set of lanes. So the number of divergences is at
    /// most the number of lanes.
    open: Vec<Open>,
    depth: u64,
    counts: GroupCounts,
}

/// Maximum number of groups for which [`Profile::to_json`] lists the counts of each group.
pub const MOST_GROUPS: usize = 1 << 16;

/// Collects the counts of a run.
#[derive(Clone, Debug, Default)]
pub struct Profile {
    width: u32,
    /// Counts of each instruction, indexed by address.
    counts: Vec<InstructionCounts>,
    /// State of every group that has run, including groups that have ended.
    groups: HashMap<usize, Group>,
    totals: Totals,
    classes: LiteMap<u32, Class>,
    stacks: Vec<StackCounts>,
    /// Whether the machine reports the depths of its stacks. If the machine does not report these depths, the profile
    /// computes the depths from push and pop events.
    announced: bool,
    accesses: Option<Accesses>,
    banks: Banks,
}

impl Profile {
    /// Creates an empty profile for groups of `width` lanes.
    pub fn new(width: u32) -> Profile {
        Profile { width, ..Profile::default() }
    }

    /// Sets the classes of instructions, the memory accesses of instructions, and the stacks. `stacks` is the result of
    /// [`reconverge_simt::FlowView::depths`] at the start of the run.
    pub fn by(mut self, conventions: Conventions, stacks: &[Depth]) -> Profile {
        let Conventions { classes, accesses, coalescing, banked } = conventions;
        self.banks = Banks::new(banked);
        self.classes = classes;
        self.accesses = coalescing.ok().map(|rule| Accesses::new(rule, accesses));
        let stack = |depth: &Depth| StackCounts { of: depth.of, high_water: depth.used, room: depth.room };
        self.stacks = stacks.iter().map(stack).collect();
        self
    }

    /// Counts the memory accesses that are still pending. The caller must call this method at the end of the run.
    /// During the run, the accesses of an instruction are counted when the group issues the next instruction.
    pub fn end(&mut self) {
        let accesses = self.accesses.iter_mut().flat_map(Accesses::settle_all);
        for (group, memory) in accesses {
            self.groups.entry(group).or_default().counts.memory.add(&memory);
        }
        for (group, banks) in self.banks.settle_all() {
            self.groups.entry(group).or_default().counts.banks.add(&banks);
        }
    }

    /// Returns the maximum number of lanes per group.
    pub fn width(&self) -> u32 {
        self.width
    }

    /// Returns the number and the counts of each group that ran.
    pub fn groups(&self) -> Vec<(usize, GroupCounts)> {
        let mut groups: Vec<_> = self.groups.iter().map(|(group, of)| (*group, of.counts)).collect();
        groups.sort_unstable_by_key(|(group, _)| *group);
        groups
    }

    /// Returns the number and the counts of each block that ran. A block has `groups_per_block` groups.
    pub fn blocks(&self, groups_per_block: usize) -> Vec<(usize, GroupCounts)> {
        let mut blocks: Vec<(usize, GroupCounts)> = Vec::new();
        for (group, counts) in self.groups() {
            let block = group / groups_per_block.max(1);
            match blocks.last_mut() {
                Some((last, sum)) if *last == block => sum.add(&counts),
                _ => blocks.push((block, counts)),
            }
        }
        blocks
    }

    /// Returns the shared-memory counts of the instruction at an address.
    pub fn banks(&self, pc: u32) -> Option<BankCounts> {
        self.banks.counts.get(&pc).copied()
    }

    /// Returns the shared-memory counts of all instructions.
    pub fn bank_totals(&self) -> BankCounts {
        let mut totals = BankCounts::default();
        self.banks.counts.values().for_each(|counts| totals.add(counts));
        totals
    }

    /// Returns the usage of each stack and counter of the machine.
    pub fn stacks(&self) -> Vec<StackCounts> {
        let counted = |stack: &StackCounts| match self.announced || self.stacks.len() > 1 {
            true => *stack,
            false => StackCounts { high_water: self.totals.stack_high_water as u32, ..*stack },
        };
        self.stacks.iter().map(counted).collect()
    }

    /// Returns the class of the instruction at an address.
    pub fn class(&self, pc: u32) -> Class {
        self.classes.get(&pc).copied().unwrap_or(Class::Other)
    }

    /// Groups the instructions that ran by class, and returns the counts of each class.
    pub fn mix(&self) -> Vec<ClassCounts> {
        let mut classes: LiteMap<Class, (u64, u64)> = LiteMap::new();
        for (pc, counts) in self.instructions() {
            let (executed, lanes) = classes.entry(self.class(pc)).or_default();
            *executed += counts.executed;
            *lanes += counts.lanes;
        }
        let all = self.totals.instructions.max(1) as f64;
        let class = |(class, (executed, lanes)): (Class, (u64, u64))| ClassCounts {
            class: class.name(),
            executed,
            lanes,
            share: executed as f64 / all,
        };
        classes.into_iter().map(class).collect()
    }

    /// Returns the counts of coalesced memory accesses of the instruction at an address.
    pub fn memory(&self, pc: u32) -> Option<MemoryCounts> {
        self.accesses.as_ref()?.counts.get(&pc).copied()
    }

    /// Returns the counts of coalesced memory accesses of all instructions.
    pub fn memory_totals(&self) -> MemoryCounts {
        let mut totals = MemoryCounts::default();
        let accesses = self.accesses.iter().flat_map(|accesses| accesses.counts.values());
        accesses.for_each(|counts| totals.add(counts));
        totals
    }

    /// Returns the address and the counts of each instruction that ran.
    pub fn instructions(&self) -> impl Iterator<Item = (u32, InstructionCounts)> {
        let counts = self.counts.iter().enumerate().filter(|(_, counts)| counts.executed > 0);
        counts.map(|(pc, counts)| (pc as u32, *counts))
    }

    /// Returns the counts of the instruction at an address.
    pub fn at(&self, pc: u32) -> InstructionCounts {
        self.counts.get(pc as usize).copied().unwrap_or_default()
    }

    /// Returns the counts of the whole run.
    pub fn totals(&self) -> Totals {
        let places = self.totals.instructions as f64 * f64::from(self.width);
        let simd_efficiency = if places == 0.0 { 0.0 } else { self.totals.lane_instructions as f64 / places };
        Totals { simd_efficiency, groups: self.groups.len() as u64, ..self.totals }
    }

    /// Returns all counts as a JSON object, with the text of each instruction. `memory` is set if memory accesses were
    /// recorded. `rule` describes how accesses are counted, or why accesses cannot be counted. If more than
    /// [`MOST_GROUPS`] groups ran, the object omits the counts of single groups and blocks.
    pub fn to_json(&self, lines: &Lines, memory: bool, rule: &str, groups_per_block: Option<usize>) -> Value {
        let instructions = self.instructions().map(|(pc, counts)| {
            let mut entry = json!(counts);
            entry["pc"] = json!(pc);
            entry["text"] = json!(lines.code(pc));
            entry["class"] = json!(self.class(pc).name());
            if let Some(memory) = self.memory(pc) {
                entry["memory"] = json!(memory);
            }
            if let Some(banks) = self.banks(pc) {
                entry["banks"] = json!(banks);
            }
            entry
        });
        let instructions: Vec<Value> = instructions.collect();
        let mut accesses = if memory { json!(self.memory_totals()) } else { json!({}) };
        accesses["rule"] = json!(rule);
        let banked = memory && !self.banks.is_empty();
        let mut banks = if banked { json!(self.bank_totals()) } else { json!({}) };
        banks["rule"] = json!(if banked { banks::RULE } else { "" });
        let few = self.groups.len() <= MOST_GROUPS;
        let listed = |name: &str, counts: Vec<(usize, GroupCounts)>| -> Value {
            let entry = |(number, counts): (usize, GroupCounts)| {
                let mut entry = json!(counts);
                entry[name] = json!(number);
                entry["simd_efficiency"] = json!(counts.simd_efficiency(self.width));
                entry
            };
            counts.into_iter().map(entry).collect::<Vec<_>>().into()
        };
        let blocks = groups_per_block.filter(|_| few).map(|groups| listed("block", self.blocks(groups)));
        json!({
            "instructions": instructions,
            "totals": self.totals(),
            "mix": self.mix(),
            "stacks": self.stacks(),
            "memory": accesses,
            "banks": banks,
            "groups": few.then(|| listed("group", self.groups())),
            "blocks": blocks,
        })
    }

    fn count(&mut self, pc: u32) -> &mut InstructionCounts {
        let pc = pc as usize;
        if pc >= self.counts.len() {
            self.counts.resize(pc + 1, InstructionCounts::default());
        }
        &mut self.counts[pc]
    }
}

impl Sink for Profile {
    fn issues(&mut self, group: usize, addresses: &[u32], mask: Mask) {
        let Some(&last) = addresses.last() else { return };
        let issued = addresses.len() as u64;
        for pc in addresses {
            let counts = self.count(*pc);
            counts.executed += 1;
            counts.lanes += u64::from(mask.count());
        }
        self.totals.instructions += issued;
        self.totals.lane_instructions += issued * u64::from(mask.count());
        let memory = self.accesses.as_mut().and_then(|accesses| accesses.settle(group));
        let banks = self.banks.settle(group);
        let group = self.groups.entry(group).or_default();
        group.last = last;
        group.counts.instructions += issued;
        group.counts.lane_instructions += issued * u64::from(mask.count());
        memory.iter().for_each(|memory| group.counts.memory.add(memory));
        banks.iter().for_each(|banks| group.counts.banks.add(banks));
        let counts = &mut self.counts;
        group.open.retain_mut(|open| {
            let counts = &mut counts[open.pc as usize];
            match ((mask & open.taken).any(), (mask & open.not).any()) {
                (true, true) => {
                    counts.reconverged += 1;
                    counts.distance += open.distance;
                    counts.farthest = counts.farthest.max(open.distance);
                    return false;
                }
                (true, false) => counts.taken_cost += issued,
                (false, true) => counts.not_cost += issued,
                (false, false) => {}
            }
            open.distance += issued;
            true
        });
    }

    fn event(&mut self, number: usize, event: Event) {
        let group = self.groups.entry(number).or_default();
        match event {
            Event::Load { .. } | Event::Store { .. } => {
                if let Some(accesses) = &mut self.accesses {
                    accesses.take(number, group.last, event);
                }
                self.banks.take(number, group.last, event);
            }
            Event::Diverge { taken, not } => {
                group.open.push(Open { pc: group.last, taken, not, distance: 0 });
                group.counts.divergent_branches += 1;
                let pc = group.last;
                self.totals.divergent_branches += 1;
                self.count(pc).diverged += 1;
            }
            Event::Push { .. } => {
                group.depth += 1;
                self.totals.stack_high_water = self.totals.stack_high_water.max(group.depth);
            }
            Event::Pop { .. } => group.depth = group.depth.saturating_sub(1),
            _ => {}
        }
    }

    fn wants_depths(&self) -> bool {
        !self.stacks.is_empty()
    }

    fn depth(&mut self, _: usize, number: usize, used: u32) {
        self.announced = true;
        if let Some(stack) = self.stacks.get_mut(number) {
            stack.high_water = stack.high_water.max(used);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mask(bits: u64) -> Mask {
        Mask(bits)
    }

    /// The program `if (lanes 0, 1) { 8, 16 } else { 24 }; 32`, with the `if` at 0.
    fn profile() -> Profile {
        let mut profile = Profile::new(4);
        profile.issues(0, &[0], mask(0b1111));
        profile.event(0, Event::Push { kind: "JOINAT" });
        profile.event(0, Event::Diverge { taken: mask(0b0011), not: mask(0b1100) });
        profile.issues(0, &[8, 16], mask(0b0011));
        profile.issues(0, &[24], mask(0b1100));
        profile.event(0, Event::Pop { kind: "JOINAT" });
        profile.event(0, Event::Reconverge { mask: mask(0b1111) });
        profile.issues(0, &[32], mask(0b1111));
        profile
    }

    #[test]
    fn an_instruction_has_how_often_and_for_how_many_lanes_it_ran() {
        let counts = profile().at(8);
        assert_eq!((counts.executed, counts.lanes, counts.diverged), (1, 2, 0));
        assert_eq!(profile().instructions().map(|(pc, _)| pc).collect::<Vec<_>>(), [0, 8, 16, 24, 32]);
    }

    #[test]
    fn a_branch_has_the_cost_of_both_sides_and_the_distance_to_where_they_run_together() {
        let branch = profile().at(0);
        assert_eq!((branch.diverged, branch.taken_cost, branch.not_cost), (1, 2, 1));
        assert_eq!((branch.reconverged, branch.distance, branch.farthest), (1, 3, 3));
    }

    #[test]
    fn the_totals_are_the_sums() {
        let totals = profile().totals();
        assert_eq!((totals.instructions, totals.lane_instructions, totals.divergent_branches), (5, 14, 1));
        assert_eq!((totals.simd_efficiency, totals.stack_high_water), (0.7, 1));
    }

    #[test]
    fn sides_that_never_run_together_have_no_distance() {
        let mut profile = Profile::new(4);
        profile.issues(0, &[0], mask(0b1111));
        profile.event(0, Event::Diverge { taken: mask(0b0001), not: mask(0b1110) });
        profile.issues(0, &[8], mask(0b1110));
        let branch = profile.at(0);
        assert_eq!((branch.reconverged, branch.not_cost, branch.taken_cost), (0, 1, 0));
    }

    /// Conventions for the program of [`profile`]. The instructions at 8 and 16 access memory.
    fn conventions() -> Conventions {
        let access = |store| Access { store, bytes: 4 };
        Conventions {
            classes: [(0, Class::Flow), (8, Class::Memory), (16, Class::Memory), (24, Class::Alu)]
                .into_iter()
                .collect(),
            accesses: [(8, access(false)), (16, access(true))].into_iter().collect(),
            coalescing: Ok(Coalescing::InSequence),
            banked: LiteMap::new(),
        }
    }

    #[test]
    fn instructions_are_counted_by_what_they_are_for() {
        let mut profile = Profile::new(4).by(conventions(), &[]);
        profile.issues(0, &[0, 8, 16, 24, 32], mask(0b0011));
        profile.issues(0, &[24], mask(0b0001));
        let mix: Vec<_> = profile.mix().into_iter().map(|of| (of.class, of.executed, of.lanes)).collect();
        assert_eq!(mix, [("ALU", 2, 3), ("memory", 2, 4), ("flow", 1, 2), ("other", 1, 2)]);
        let shares: Vec<f64> = profile.mix().iter().map(|of| of.share).collect();
        assert_eq!(shares, [2.0, 2.0, 1.0, 1.0].map(|executed| executed / 6.0));
    }

    #[test]
    fn a_stack_whose_depth_is_announced_is_not_counted_by_its_entries() {
        let depth = Depth { of: "STACK_SIZE", used: 0, room: Some(3) };
        let mut counted = Profile::new(4).by(conventions(), &[depth]);
        counted.event(0, Event::Push { kind: "PUSH" });
        counted.event(0, Event::Push { kind: "PUSH" });
        let of = |high_water| [StackCounts { of: "STACK_SIZE", high_water, room: Some(3) }];
        assert_eq!(counted.stacks(), of(2));
        counted.depth(0, 0, 1);
        assert_eq!(counted.stacks(), of(1));
        assert!(counted.wants_depths());
    }

    #[test]
    fn accesses_of_an_instruction_come_together_in_their_group() {
        let mut profile = Profile::new(32).by(conventions(), &[]);
        for group in [0, 1] {
            profile.issues(group, &[8], mask(0xffff));
        }
        // Events of the two groups alternate. Group 1 accesses only every second word of memory.
        for lane in 0..16u8 {
            let load = |address| Event::Load { lane: reconverge_simt::Lane(lane), address };
            profile.event(0, load(0x1000 + 4 * u32::from(lane)));
            profile.event(1, load(0x1000 + 8 * u32::from(lane)));
        }
        assert_eq!(profile.memory(8), None, "the instruction may go on");
        profile.end();
        let counts =
            MemoryCounts { requests: 2, transactions: 17, bytes_moved: 64 + 16 * 32, bytes_wanted: 128 };
        assert_eq!(profile.memory(8), Some(counts));
        // The instruction at 16 is a store that also loads an operand. The profile does not count the load of the
        // operand as an access.
        profile.issues(0, &[16], mask(1));
        profile.event(0, Event::Load { lane: reconverge_simt::Lane(0), address: 0 });
        profile.end();
        assert_eq!(profile.memory_totals(), counts);
    }

    #[test]
    fn each_group_and_each_block_has_its_counts() {
        let mut profile = Profile::new(32).by(conventions(), &[]);
        for group in 0..3 {
            profile.issues(group, &[0, 8], mask(0xffff));
            profile.event(group, Event::Load { lane: reconverge_simt::Lane(0), address: 64 });
        }
        profile.event(2, Event::Diverge { taken: mask(1), not: mask(0xfffe) });
        profile.issues(2, &[16], mask(1));
        profile.end();
        let instructions = |counts: Vec<(usize, GroupCounts)>| {
            counts.into_iter().map(|(number, of)| (number, of.instructions)).collect::<Vec<_>>()
        };
        assert_eq!(instructions(profile.groups()), [(0, 2), (1, 2), (2, 3)]);
        assert_eq!(instructions(profile.blocks(2)), [(0, 4), (1, 3)]);
        let last = profile.groups()[2].1;
        assert_eq!((last.lane_instructions, last.divergent_branches, last.memory.requests), (33, 1, 1));
        assert_eq!(profile.groups()[0].1.simd_efficiency(32), 0.5);
    }

    #[test]
    fn groups_do_not_mix() {
        let mut profile = Profile::new(4);
        profile.issues(0, &[0], mask(0b1111));
        profile.event(0, Event::Diverge { taken: mask(0b0011), not: mask(0b1100) });
        profile.issues(1, &[0], mask(0b1111));
        profile.issues(0, &[8], mask(0b0011));
        assert_eq!(profile.at(0).taken_cost, 1);
        assert_eq!(profile.at(0).reconverged, 0);
        assert_eq!(profile.totals().groups, 2);
    }
}
