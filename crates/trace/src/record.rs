//! The contents of a trace as values.

use reconverge_simt::{Event, Lane, Mask};
use serde::{Deserialize, Serialize};

/// Data at the start of a trace. The header has the machine, the launch, and the program's listing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// The machine's name.
    pub isa: String,
    /// The chip, if the chip is known.
    #[serde(default)]
    pub chip: Option<String>,
    /// The program's name, if the program has a name.
    #[serde(default)]
    pub program: Option<String>,
    /// The unit of addresses: `instructions`, `64-bit words` or `bytes`.
    #[serde(default)]
    pub unit: String,
    /// Maximum number of lanes per group, from 1 to 64.
    pub lanes_per_group: u32,
    /// Number of groups in the launch.
    pub groups: u32,
    /// Number of lanes in the launch.
    pub lanes: u64,
    /// Whether writes to registers and accesses to memory are recorded.
    #[serde(default)]
    pub data: bool,
    /// The program's instructions in the order of their addresses.
    pub listing: Vec<Line>,
    /// The machine's registers. These registers determine the name for each number in [`What::Write`].
    #[serde(default)]
    pub registers: Vec<RegisterNames>,
}

impl Header {
    /// Returns the name of the register and channel with number `number` in [`What::Write`], for example `$r3` or
    /// `R1.x`.
    pub fn register(&self, number: u32) -> String {
        let name = self.registers.iter().find_map(|file| file.register(number));
        name.unwrap_or_else(|| format!("register {number}"))
    }
}

/// Registers of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RegisterNames {
    /// The manual's name for this kind of register: `temp`, `R`, `$r`.
    pub name: String,
    /// The number that [`What::Write`] uses for the first register. If registers have channels, `first` is the number
    /// of the first channel of the first register.
    pub first: u32,
    /// Number of registers.
    pub count: u32,
    /// Names of the channels, one letter per channel. The text is empty if a register is a single word.
    #[serde(default)]
    pub channels: String,
}

impl RegisterNames {
    fn register(&self, number: u32) -> Option<String> {
        let place = number.checked_sub(self.first)?;
        let width = self.channels.chars().count().max(1) as u32;
        let (register, channel) = (place / width, self.channels.chars().nth((place % width) as usize));
        let channel = channel.map_or(String::new(), |channel| format!(".{channel}"));
        (register < self.count).then(|| format!("{}{register}{channel}", self.name))
    }
}

/// An instruction of the listing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    /// Address of the instruction.
    pub address: u32,
    /// Text of the instruction.
    pub text: String,
    /// The label directly before the instruction, if the instruction has a label.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Number of flow constructs that contain the instruction.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub depth: usize,
    /// Memory that the instruction reads. If the list has one name, the name applies to all loads. Otherwise, the list
    /// has one name for each load of a single lane, in the order of the loads.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub loads: Vec<String>,
    /// Memory that the instruction writes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stores: Option<String>,
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// A number that stands for a word. The word is the manual's word for a pushed or popped entry. [`crate::Reader::kind`]
/// returns the word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Kind(pub u8);

/// A run of consecutive instructions of a group, or an event of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// The step of the instruction. The step is the number of instructions that the launch issued before the
    /// instruction. An event has the step of the last instruction of its group.
    pub step: u64,
    /// The group.
    pub group: u32,
    /// The instructions or the event.
    pub what: What,
}

/// A run of instructions, or an event. Addresses are in the machine's own unit.
///
/// A record differs from a [`reconverge_simt::Event`] in two ways. First, one record can stand for several
/// instructions. Second, a push or pop has the number of a word ([`Kind`]), and not the word. [`What::event`] converts
/// a record to an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// The same lanes executed consecutive instructions of the listing.
    Ran {
        /// Address of the first instruction.
        pc: u32,
        /// Number of instructions.
        count: u32,
        /// The active lanes.
        mask: Mask,
    },
    /// A branch decision split the lanes.
    Diverge {
        /// The lanes that run first.
        taken: Mask,
        /// The lanes that do not run first. These lanes wait or leave a loop.
        not: Mask,
    },
    /// Waiting lanes resume without reconverging. The lanes that ran before the resumption wait or have ended.
    Resume {
        /// All lanes that are active after the event.
        mask: Mask,
    },
    /// Waiting lanes resume, and continue together with the lanes that ran before the resumption.
    Reconverge {
        /// All lanes that are active after the event.
        mask: Mask,
    },
    /// A stack or frame grew.
    Push {
        /// The pushed entry.
        kind: Kind,
    },
    /// A stack or frame shrank.
    Pop {
        /// The popped entry.
        kind: Kind,
    },
    /// The group does not continue at the instruction that follows the issued instruction.
    Jump {
        /// Address of the instruction at which the lanes continue.
        to: u32,
    },
    /// The program trapped.
    Trap {
        /// The lanes that trapped.
        mask: Mask,
    },
    /// A register was written.
    Write {
        /// The lane.
        lane: Lane,
        /// Number of the register. [`Header::register`] returns the name of the register with this number.
        register: u32,
        /// The new value of the register.
        value: u32,
    },
    /// Memory was read.
    Load {
        /// The lane.
        lane: Lane,
        /// Byte address in the memory space.
        address: u32,
    },
    /// Memory was written.
    Store {
        /// The lane.
        lane: Lane,
        /// Byte address in the memory space.
        address: u32,
        /// The new value in memory.
        value: u32,
    },
}

impl What {
    /// Returns the record as an event. If the record is a run of instructions, the event is the issue of the first
    /// instruction. If the record is a push or a pop, the event has an empty word.
    pub fn event(self) -> Event {
        match self {
            What::Ran { pc, mask, .. } => Event::Issue { pc, mask },
            What::Diverge { taken, not } => Event::Diverge { taken, not },
            What::Resume { mask } => Event::Resume { mask },
            What::Reconverge { mask } => Event::Reconverge { mask },
            What::Push { .. } => Event::Push { kind: "" },
            What::Pop { .. } => Event::Pop { kind: "" },
            What::Jump { to } => Event::Jump { to },
            What::Trap { mask } => Event::Trap { mask },
            What::Write { lane, register, value } => Event::Write { lane, register, value },
            What::Load { lane, address } => Event::Load { lane, address },
            What::Store { lane, address, value } => Event::Store { lane, address, value },
        }
    }
}

/// The end of a recorded run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// The trap's message, if the program trapped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trap: Option<String>,
    /// Whether the user interrupted the run.
    #[serde(default)]
    pub interrupted: bool,
}

/// Counts over all records of the run. Records that are not in the file because of the size limit are included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    /// Number of instructions issued to groups.
    pub instructions: u64,
    /// Number of instructions that lanes executed. This number is the sum of the active lanes of all instructions.
    pub lane_instructions: u64,
    /// Number of branch decisions that split the lanes of a group.
    pub divergences: u64,
}

/// Data after the last block. The data has the outcome, the totals, and an index of the blocks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    /// How the run ended.
    pub outcome: Outcome,
    /// Counts over the whole run.
    pub totals: Totals,
    /// The step at which the file reached its size limit. Records from this step on are not in the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound_at: Option<u64>,
    /// Three numbers for each block. The numbers of a block are the offset of the block in the file, the step of the
    /// block's first record, and the number of entries in the block.
    pub blocks: Vec<(u64, u64, u32)>,
}
