//! Facts about registers before each instruction: whether some path has written a register, and whether a register is
//! equal in all lanes.
//!
//! Each fact is a set of locations that grows along the edges of the graph. The analysis does not track the stack. In
//! the analysis, a `ret` therefore continues after every call to which the `ret` may return. A location therefore
//! counts as written if any path writes the location.

use reconverge_isa::sets::{NumberSet, SortedSet};

use super::{Subject, UNWRITTEN};
use crate::graph::Passes;
use crate::inst::{Arith, Dst, Group, Inst, Memory, Op, Operand, Space, Special, Stage};
use crate::launch::UNSPECIFIED_REGISTERS;
use crate::uses::{Accesses, Place, accesses};

/// A set of locations: half registers, address registers and flags.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Places {
    halves: [u128; 2],
    others: u16,
}

impl Places {
    /// Returns the set with a location added.
    fn with(mut self, place: Place) -> Places {
        let mut half = |half: u8| self.halves[usize::from(half >> 7)] |= 1 << (half & 127);
        match place {
            Place::R(register) if register < 128 => {
                half(2 * register);
                half(2 * register + 1);
            }
            Place::Half(field) => half(field),
            Place::A(register) => self.others |= 1 << (register & 7),
            Place::C(register) => self.others |= 0x100 << (register & 7),
            Place::R(_) | Place::O(_) | Place::IndexedO => {}
        }
        self
    }

    /// Returns whether the set contains any part of a location.
    pub(super) fn has(self, place: Place) -> bool {
        let wanted = Places::default().with(place);
        wanted.halves[0] & self.halves[0] != 0
            || wanted.halves[1] & self.halves[1] != 0
            || wanted.others & self.others != 0
    }

    fn and(self, other: Places) -> Places {
        Places {
            halves: [0, 1].map(|at| self.halves[at] | other.halves[at]),
            others: self.others | other.others,
        }
    }

    fn without(mut self, place: Place) -> Places {
        let gone = Places::default().with(place);
        self.halves = [0, 1].map(|at| self.halves[at] & !gone.halves[at]);
        self.others &= !gone.others;
        self
    }
}

/// For each node of the graph, by number: the set of locations for which the fact is true before the instruction of the
/// node. `None` means that no path leads to the node.
pub(super) type PlacesByNode = Vec<Option<Places>>;

/// Returns the set of locations before each reachable instruction. `start` is the set at the start of the program.
/// `after` computes the set after an instruction from the set before that instruction.
fn before(
    subject: &Subject<'_>,
    start: Places,
    after: &dyn Fn(u32, &Inst, Places) -> Places,
) -> PlacesByNode {
    let mut known: PlacesByNode = vec![None; subject.graph.nodes.len()];
    let mut open = vec![(subject.code.base(), start)];
    while let Some((pc, from)) = open.pop() {
        let (Some(number), Ok(inst)) = (subject.graph.number(pc), subject.code.at(pc)) else { continue };
        let node = &subject.graph.nodes[number];
        let here = known[number].unwrap_or_default().and(from);
        if known[number].replace(here) == Some(here) {
            continue;
        }
        let behind = after(pc, inst, here);
        open.extend(node.next.iter().map(|edge| (edge.to, behind)));
    }
    known
}

/// Returns the number of general registers of a program. If the program does not declare the number, the result is the
/// highest number of a written register, plus one.
fn registers(subject: &Subject<'_>) -> u32 {
    let highest = || {
        let insts = subject.graph.nodes.iter().filter_map(|node| subject.code.at(node.pc).ok());
        let written = insts.flat_map(|inst| accesses(inst, subject.stage).writes);
        let numbers = written.filter_map(|place| match place {
            Place::R(register) => Some(u32::from(register) + 1),
            Place::Half(half) => Some(u32::from(half / 2) + 1),
            Place::A(_) | Place::C(_) | Place::O(_) | Place::IndexedO => None,
        });
        numbers.filter(|count| *count <= UNSPECIFIED_REGISTERS).max().unwrap_or(0)
    };
    subject.program.resources.registers.unwrap_or_else(highest)
}

/// Reports reads of locations that no path has written. A register that the program does not have always reads 0. This
/// function does not report reads of such a register. (1.4)
pub(super) fn unwritten(subject: &mut Subject<'_>) {
    let stage = subject.stage;
    let inputs = match stage {
        Stage::Compute => Places::default().with(Place::R(0)),
        Stage::Vertex | Stage::Geometry | Stage::Fragment => Places::default(),
    };
    let count = registers(subject);
    let exists = |place: &Place| match place {
        Place::R(register) => u32::from(*register) < count,
        Place::Half(half) => u32::from(half / 2) < count,
        Place::A(register) => (1..5).contains(register),
        Place::C(_) => true,
        Place::O(_) | Place::IndexedO => false,
    };
    let written = before(subject, inputs, &|_, inst, places| {
        let Accesses { reads, writes, .. } = accesses(inst, stage);
        // The copy of an unwritten location is also unwritten. Only an instruction that computes with the unwritten
        // value breaks the rule.
        if is_copy(inst) && reads.iter().any(|(place, _, _)| exists(place) && !places.has(*place)) {
            return places;
        }
        writes.into_iter().fold(places, Places::with)
    });
    for (node, places) in subject.graph.nodes.iter().zip(written) {
        let pc = node.pc;
        let (Some(places), Ok(inst)) = (places, subject.code.at(pc)) else { continue };
        if is_copy(inst) {
            continue;
        }
        let reads: SortedSet<Place> =
            accesses(inst, stage).reads.into_iter().map(|(place, _, _)| place).collect();
        for place in reads.into_iter().filter(&exists).filter(|place| !places.has(*place)) {
            subject.find(&UNWRITTEN, pc, format!("{} is read before it is written", name(place)));
        }
    }
}

/// Returns whether an instruction only copies a register to another register. A copy of an undefined value is allowed,
/// because compilers copy undefined values at positions where paths meet.
fn is_copy(inst: &Inst) -> bool {
    matches!(inst.op, Op::Arith(Arith::Mov { .. }))
        && matches!(inst.src[0], Operand::R32(_) | Operand::R16(_))
        && matches!(inst.dst, Dst::R32(_) | Dst::R16(_))
}

/// Returns the name of a location in assembly text.
fn name(place: Place) -> String {
    match place {
        Place::R(register) => format!("$r{register}"),
        Place::Half(half) => format!("$r{}{}", half / 2, if half % 2 == 0 { "l" } else { "h" }),
        Place::A(register) => format!("$a{register}"),
        Place::C(register) => format!("$c{register}"),
        Place::O(word) => format!("o[{:#x}]", 4 * word),
        Place::IndexedO => "o[]".to_owned(),
    }
}

/// Returns the locations that may differ between the lanes of a warp, before each instruction. `apart` lists the
/// instructions that may run in only some lanes of the warp. The values that such an instruction writes may differ from
/// the values in lanes that did not execute the instruction.
pub(super) fn varying(subject: &Subject<'_>, apart: &NumberSet) -> PlacesByNode {
    let stage = subject.stage;
    let start = Places::default().with(Place::R(0));
    before(subject, start, &|pc, inst, places| {
        let Accesses { reads, writes, memory, .. } = accesses(inst, stage);
        let own =
            |space: Space| matches!(space, Space::Local | Space::Attribute | Space::Varying | Space::Output);
        let differs = match &inst.op {
            Op::Group(Group::Vote { .. }) => apart.contains(pc),
            // If all sources differ between the lanes, their differences may cancel. For example, an index and its
            // bound may both be computed from the thread's number. So this analysis assumes that the result is equal in
            // all lanes.
            Op::Arith(Arith::Set { .. } | Arith::Add { .. })
                if reads.len() > 1 && reads.iter().all(|(place, _, _)| places.has(*place)) =>
            {
                apart.contains(pc)
            }
            _ => {
                apart.contains(pc)
                    || reads.iter().any(|(place, _, _)| places.has(*place))
                    || memory.iter().any(|(mem, _)| own(mem.space))
                    || inst.src.contains(&Operand::Special(Special::Physid))
                    || matches!(
                        inst.op,
                        Op::Memory(Memory::Atom { .. } | Memory::Atom64 { .. } | Memory::LdLock)
                            | Op::Group(Group::Tex(_) | Group::Quadop { .. })
                    )
            }
        };
        // If an instruction writes in only some lanes, or writes half a register, the register keeps part of the old
        // value.
        let whole = inst.lanes & 15 == 15 && Passes::of(inst.guard) == Passes::All;
        writes.into_iter().fold(places, |places, place| match (differs, whole) {
            (true, _) => places.with(place),
            (false, true) => places.without(place),
            (false, false) => places,
        })
    })
}
