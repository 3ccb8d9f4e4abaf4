//! The slots and the read ports of an ALU group. Determines the slot of each instruction, and the register that each
//! source reads in each cycle. Also determines BANK_SWIZZLE values with which every instruction can read its operands.
//!
//! A group reads registers in three cycles. In each cycle, the group can read one register per component. (MAN 4, Mesa
//! `check_vector`, `check_scalar`; r700.md 4.6)

use crate::chip::Family;
use crate::code::is_op3;
use crate::meaning::{self, Opcode, Unit};

/// The cycle in which a vector slot fetches source 0, 1 or 2, indexed by BANK_SWIZZLE and source.
pub(crate) const VECTOR: [[usize; 3]; 6] = [[0, 1, 2], [0, 2, 1], [1, 2, 0], [1, 0, 2], [2, 0, 1], [2, 1, 0]];
/// The cycle in which slot t fetches source 0, 1 or 2, indexed by BANK_SWIZZLE and source.
pub(crate) const SCALAR: [[usize; 3]; 4] = [[2, 1, 0], [1, 2, 2], [2, 1, 2], [2, 2, 1]];

/// Returns the OP2 opcode with this number. Returns an R600 opcode even if `family` does not have this opcode.
pub(crate) fn op2_row(number: u32, family: Family) -> Option<&'static Opcode> {
    meaning::op2_row(number, family).or_else(|| meaning::op2_row(number, Family::R600))
}

/// Returns the position of the lowest bit of ALU_INST in an OP2 word.
pub(crate) const fn op2_shift(family: Family) -> u32 {
    match family {
        Family::R600 => 8,
        Family::R700 => 7,
    }
}

/// Returns the opcode of an ALU word pair, or `None` for an unassigned number.
pub(crate) fn alu_row(word1: u32, family: Family) -> Option<&'static Opcode> {
    match is_op3(word1) {
        true => meaning::op3_row(word1 >> 13 & 31),
        false => op2_row((word1 & 0x3ffff) >> op2_shift(family), family),
    }
}

/// Computes the slot of each instruction of a group: 0 to 4 for x to t. If the slot is already taken, the number is 5.
/// Some instructions can run in a vector slot or in slot t. Such an instruction runs in its vector slot if this slot is
/// free. Otherwise, the instruction runs in slot t (r700.md 4.2).
pub(crate) fn slots(group: &[[u32; 2]], family: Family, into: &mut [u8]) {
    let mut taken = [false; 5];
    for (&[_, word1], slot) in group.iter().zip(into) {
        let chan = (word1 >> 29 & 3) as usize;
        let wanted = match alu_row(word1, family).map(|row| row.unit) {
            Some(Unit::Trans) => 4,
            Some(Unit::Vector) => chan,
            Some(Unit::Either) | None if taken[chan] => 4,
            Some(Unit::Either) | None => chan,
        };
        *slot = if taken[wanted] { 5 } else { wanted as u8 };
        taken[wanted] = true;
    }
}

/// Registers and constants that an instruction reads.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reads {
    /// Whether the instruction runs in slot t.
    pub(crate) trans: bool,
    /// Register and component of each source, or `None` if the source is not a register.
    registers: [Option<(u32, u32)>; 3],
    /// Whether each source is a constant.
    constants: [bool; 3],
}

/// For each cycle and each component, the register that the group reads.
type Ports = [[Option<u32>; 4]; 3];

/// Returns the reads of each instruction of a group.
pub(crate) fn reads(group: &[[u32; 2]], family: Family) -> Vec<Reads> {
    let mut letters = vec![0; group.len()];
    slots(group, family, &mut letters);
    let of = |(words, slot): (&[u32; 2], u8)| {
        let unknown = if is_op3(words[1]) { 3 } else { 2 };
        let count = alu_row(words[1], family).map_or(unknown, |row| usize::from(row.sources));
        let mut reads = Reads { trans: slot == 4, ..Reads::default() };
        let raw = [words[0], words[0] >> 13, words[1]];
        for (source, raw) in raw.into_iter().enumerate().take(count) {
            match raw & 0x1ff {
                gpr @ 0..128 => reads.registers[source] = Some((gpr, raw >> 10 & 3)),
                128..192 | 244..254 | 256.. => reads.constants[source] = true,
                _ => {}
            }
        }
        reads
    };
    group.iter().zip(letters).map(of).collect()
}

impl Reads {
    /// Adds the reads of this instruction to `ports`, and returns the sum. `ports` contains the reads of other
    /// instructions. `bank` is the BANK_SWIZZLE of this instruction. If two reads need the same port for different
    /// registers, the function returns `None`.
    fn with(&self, bank: u32, ports: &Ports) -> Option<Ports> {
        let cycles = match self.trans {
            true => SCALAR.get(bank as usize)?,
            false => VECTOR.get(bank as usize)?,
        };
        let mut ports = *ports;
        let constants = self.constants.iter().filter(|constant| **constant).count();
        for (source, register) in self.registers.iter().enumerate() {
            let &Some((gpr, chan)) = register else { continue };
            let cycle = cycles[source];
            // Slot t reads one constant per cycle, in the first cycles. In a cycle with a constant, slot t cannot read
            // a register.
            if self.trans && cycle < constants {
                return None;
            }
            // If both the first and the second source of a vector slot name the same register, the slot reads this
            // register only once.
            if !self.trans && source == 1 && *register == self.registers[0] {
                continue;
            }
            let port = &mut ports[cycle][chan as usize];
            if port.is_some_and(|other| other != gpr) {
                return None;
            }
            *port = Some(gpr);
        }
        Some(ports)
    }

    /// Returns the possible BANK_SWIZZLE values of the instruction.
    fn banks(&self) -> std::ops::Range<u32> {
        0..(if self.trans { SCALAR.len() } else { VECTOR.len() }) as u32
    }
}

/// Returns a BANK_SWIZZLE for each instruction. Instructions with a value in `given` keep this value. For all other
/// instructions, the function chooses the lowest possible values. Returns `None` if no choice lets every instruction
/// read its operands.
pub(crate) fn schedule(reads: &[Reads], given: &[Option<u32>]) -> Option<Vec<u32>> {
    fn rest(reads: &[Reads], given: &[Option<u32>], ports: &Ports, found: &mut Vec<u32>) -> bool {
        let (Some((first, others)), Some((own, after))) = (reads.split_first(), given.split_first()) else {
            return true;
        };
        let banks = own.map_or(first.banks(), |bank| bank..bank + 1);
        for bank in banks {
            let Some(ports) = first.with(bank, ports) else { continue };
            found.push(bank);
            if rest(others, after, &ports, found) {
                return true;
            }
            found.pop();
        }
        false
    }
    let mut found = Vec::with_capacity(reads.len());
    rest(reads, given, &Ports::default(), &mut found).then_some(found)
}

/// Returns each BANK_SWIZZLE with which instruction `place` can read its operands. All other instructions keep their
/// BANK_SWIZZLE in `banks`.
pub(crate) fn fitting(reads: &[Reads], banks: &[u32], place: usize) -> Vec<&'static str> {
    let Some(own) = reads.get(place) else { return Vec::new() };
    let fits = |bank: &u32| {
        let given: Vec<Option<u32>> = banks
            .iter()
            .enumerate()
            .map(|(at, other)| Some(if at == place { *bank } else { *other }))
            .collect();
        schedule(reads, &given).is_some()
    };
    own.banks().filter(fits).map(|bank| name(bank)).collect()
}

/// Returns the name of a BANK_SWIZZLE in assembler text.
pub(crate) fn name(bank: u32) -> &'static str {
    ["012", "021", "120", "102", "201", "210"].get(bank as usize).copied().unwrap_or("?")
}

/// Returns text for a message. The text states why the ports cannot serve all reads of a group, whatever the
/// BANK_SWIZZLE values are.
pub(crate) fn conflict(reads: &[Reads]) -> String {
    let mut all: Vec<(u32, u32)> =
        reads.iter().flat_map(|read| read.registers).flatten().map(|(gpr, chan)| (chan, gpr)).collect();
    all.sort_unstable();
    all.dedup();
    let list = |chan: Option<u32>| {
        let names: Vec<String> = all
            .iter()
            .filter(|(own, _)| chan.is_none_or(|chan| chan == *own))
            .map(|(chan, gpr)| format!("R{gpr}.{}", char::from(b"xyzw"[*chan as usize & 3])))
            .collect();
        names.join(", ")
    };
    let crowded = (0..4).find(|chan| all.iter().filter(|(own, _)| own == chan).count() > 3);
    match crowded {
        Some(chan) => {
            format!("the group reads more than three registers of one component: {}", list(Some(chan)))
        }
        None => format!("no BANK_SWIZZLE lets the group read {}", list(None)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_registers_of_one_component_have_no_port_and_three_have() {
        let read = |gprs: [u32; 2]| Reads {
            registers: [Some((gprs[0], 0)), Some((gprs[1], 0)), None],
            ..Reads::default()
        };
        assert_eq!(schedule(&[read([1, 2]), read([3, 1])], &[None; 2]), Some(vec![0, 4]));
        assert_eq!(schedule(&[read([1, 2]), read([3, 4])], &[None; 2]), None);
        assert_eq!(
            conflict(&[read([1, 2]), read([3, 4])]),
            "the group reads more than three registers of one component: R1.x, R2.x, R3.x, R4.x"
        );
        assert_eq!(fitting(&[read([1, 2]), read([3, 1])], &[0, 0], 1), ["201"]);
    }
}
