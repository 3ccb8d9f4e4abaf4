//! The locations and memory that each instruction reads and writes.
//!
//! There are two functions for the same facts. [`accesses`] treats half registers separately. A caller can therefore
//! find values that a program reads before writing them. [`uses`] has the form that all machines share, with registers
//! numbered as in events.
//!
//! [`uses`] simplifies three cases. First, an instruction that writes half a register also counts as a reader of the
//! register, because the other half does not change. Second, if an instruction reads c[] and a second memory space,
//! [`Uses::loads`] names only the second space. No store can change the values in c[], because programs do not store to
//! c[]. Third, a post-increment counts as a write of an `$a`, although engines emit no event for the write.

use reconverge_isa::graph::{EdgeKind, Graph};
use reconverge_isa::sets::NumberSet;
use reconverge_simt::Fidelity;
use reconverge_simt::uses::{Read, Role, Slot, Space as Memory, Uses, UsesAt};

use crate::code::Code;
use crate::fidelity;
use crate::graph::{Passes, listed};
use crate::inst::{
    Arith, Base, Control, Dst, End, Group, Idle, Inst, Mem, Memory as MemoryOp, Op, Operand, Space, Stage,
    Tex, TexOp,
};
use crate::lane::integer::Addition;
use crate::state::{REGISTER_A, REGISTER_C, REGISTER_O};

/// A location that holds one value per lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// A general register `$r`.
    R(u8),
    /// A half of a `$r`. The number is the value of the half's field in the encoding.
    Half(u8),
    /// One of the address registers `$a1` to `$a4`.
    A(u8),
    /// A condition register `$c`.
    C(u8),
    /// A word of o[].
    O(u16),
    /// A word of o[] that an `$a` selects.
    IndexedO,
}

impl Place {
    /// Returns the location in the form that all machines share.
    pub fn slot(self) -> Slot {
        let slot = |file, number: u32| Slot { file, number: Some(number) };
        match self {
            Place::R(register) => slot("$r", register.into()),
            Place::Half(half) => slot("$r", (half / 2).into()),
            Place::A(register) => slot("$a", REGISTER_A + u32::from(register)),
            Place::C(register) => slot("$c", REGISTER_C + u32::from(register)),
            Place::O(word) => slot("o[]", REGISTER_O + u32::from(word)),
            Place::IndexedO => Slot { file: "o[]", number: None },
        }
    }
}

/// The reads and writes of an instruction, in the order of its operands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Accesses {
    /// The locations that the instruction reads, with the role of each location. The third field states whether the
    /// instruction also reads the location in the remaining lanes of the quad.
    pub reads: Vec<(Place, Role, bool)>,
    /// The locations that the instruction writes.
    pub writes: Vec<Place>,
    /// Memory operands, and whether the instruction writes each operand.
    pub memory: Vec<(Mem, bool)>,
    /// Whether the instruction may leave its destinations unchanged in some active lanes.
    pub conditional: bool,
}

impl Accesses {
    fn read(&mut self, place: Place, role: Role) {
        self.reads.push((place, role, false));
    }

    /// Adds a memory operand, the address register of the operand, and the `$a` that the access increments, if any.
    fn place(&mut self, mem: &Mem, written: bool) {
        match mem.base {
            Base::A(0) => {}
            Base::A(register) => self.read(Place::A(register), Role::Address),
            Base::R(register) => self.read(Place::R(register), Role::Address),
        }
        self.memory.push((*mem, written));
        if let (true, Base::A(register @ 1..=4)) = (mem.increment, mem.base) {
            self.writes.push(Place::A(register));
        }
    }

    fn source(&mut self, operand: &Operand, roles: &[Role], quad: bool) {
        let mut read = |place| self.reads.extend(roles.iter().map(|role| (place, *role, quad)));
        match *operand {
            Operand::None | Operand::Imm(_) | Operand::Special(_) => {}
            Operand::R32(register) => read(Place::R(register)),
            Operand::R16(half) => read(Place::Half(half.0)),
            Operand::R64(register) => (0..2).for_each(|step| read(Place::R(register.wrapping_add(step)))),
            Operand::R128(register) => (0..4).for_each(|step| read(Place::R(register.saturating_add(step)))),
            Operand::A(0) => {}
            Operand::A(register) => read(Place::A(register)),
            Operand::C(register) => read(Place::C(register)),
            Operand::Mem(mem) => self.place(&mem, false),
        }
    }

    fn result(&mut self, dst: Dst) {
        match dst {
            Dst::None | Dst::Discard => {}
            Dst::R32(register) => self.writes.push(Place::R(register)),
            Dst::R16(half) => self.writes.push(Place::Half(half.0)),
            Dst::R64(register) => {
                self.writes.extend((0..2).map(|step| Place::R(register.saturating_add(step))));
            }
            Dst::R128(register) => {
                self.writes.extend((0..4).map(|step| Place::R(register.saturating_add(step))));
            }
            Dst::A(register) => self.writes.push(Place::A(register)),
            Dst::C(register) => self.writes.push(Place::C(register)),
            Dst::Out32(address) | Dst::Out16(address) => self.writes.push(Place::O(address / 4)),
        }
    }

    fn texture(&mut self, tex: &Tex, stage: Stage) {
        let quad = match tex.op {
            TexOp::Auto | TexOp::Bias | TexOp::Gather | TexOp::QueryLod => {
                tex.deriv || stage == Stage::Fragment
            }
            TexOp::Lod | TexOp::Fetch | TexOp::Size | TexOp::Csaa | TexOp::Prep => false,
        };
        let count = if tex.op == TexOp::Prep { 4 } else { tex.count };
        let sources = (0..count).map(|step| Place::R(tex.base.saturating_add(step)));
        self.reads.extend(sources.map(|place| (place, Role::Address, quad)));
        let components = tex.mask.count_ones() as u8;
        self.writes.extend((0..components).map(|step| Place::R(tex.base.saturating_add(step))));
        self.conditional |= tex.live;
    }
}

/// Returns the reads and writes of an instruction. At the end of a fragment program, some registers are the results.
/// These result registers do not count as reads here.
pub fn accesses(inst: &Inst, stage: Stage) -> Accesses {
    let mut found = Accesses { conditional: inst.lanes & 15 != 15, ..Accesses::default() };
    let to_output = matches!(inst.dst, Dst::Out32(_) | Dst::Out16(_));
    let value: &[Role] = if to_output { &[Role::Value, Role::Output] } else { &[Role::Value] };
    let guard = Place::C(inst.guard.c);
    let guarded = Passes::of(inst.guard) == Passes::Some;
    // 9.2: some instructions cannot have a predicate.
    let predicated = match inst.op {
        Op::Control(control) => control.is_predicated(),
        Op::Group(Group::Vote { .. }) | Op::Idle(_) => false,
        Op::Arith(_) | Op::Memory(_) | Op::Group(_) => true,
    };
    if predicated && Passes::of(inst.guard) == Passes::None {
        return Accesses::default();
    }
    if guarded && predicated {
        found.read(guard, Role::Flow);
        found.conditional = true;
    }
    match &inst.op {
        Op::Arith(op) => {
            inst.src.iter().for_each(|operand| found.source(operand, value, false));
            let carries = match op {
                Arith::Add { addition, .. } | Arith::Mad { addition, .. } => *addition == Addition::Addc,
                _ => false,
            };
            if carries {
                found.read(guard, Role::Value);
            }
            found.result(inst.dst);
            found.writes.extend(inst.cdst.map(Place::C));
        }
        Op::Memory(op) => memory(op, inst, value, &mut found),
        Op::Group(Group::Quadop { .. }) => {
            found.source(&inst.src[0], value, true);
            found.source(&inst.src[1], value, false);
            found.result(inst.dst);
            found.writes.extend(inst.cdst.map(Place::C));
        }
        Op::Group(Group::Tex(tex)) => found.texture(tex, stage),
        Op::Group(Group::Vote { .. }) => {
            if guarded {
                found.read(guard, Role::Value);
            }
            found.result(inst.dst);
        }
        Op::Group(Group::Emit { .. }) => {}
        // The instruction reads a word, which is the address at which lanes continue.
        Op::Control(_) => inst.src.iter().for_each(|operand| found.source(operand, &[Role::Flow], false)),
        Op::Idle(Idle::Nop | Idle::PmEvent { .. } | Idle::Brkpt) => {}
    }
    found
}

fn memory(op: &MemoryOp, inst: &Inst, value: &[Role], found: &mut Accesses) {
    let written = match op {
        MemoryOp::Ld | MemoryOp::LdLock | MemoryOp::Interp { .. } => false,
        MemoryOp::St
        | MemoryOp::StUnlock
        | MemoryOp::Atom { .. }
        | MemoryOp::Atom64 { .. }
        | MemoryOp::Red { .. }
        | MemoryOp::Red64 { .. } => true,
    };
    let mut leaves = false;
    if let Operand::Mem(mem) = &inst.src[0] {
        found.place(mem, written);
        leaves = written && matches!(mem.space, Space::Global(_) | Space::Output);
        if let (true, Space::Output) = (written, mem.space) {
            let fixed = mem.base == Base::A(0);
            found.writes.push(if fixed { Place::O(mem.offset as u16 / 4) } else { Place::IndexedO });
        }
    }
    let value: &[Role] = if leaves { &[Role::Value, Role::Output] } else { value };
    inst.src[1..].iter().for_each(|operand| found.source(operand, value, false));
    found.result(inst.dst);
    if matches!(op, MemoryOp::LdLock) {
        found.writes.extend(inst.cdst.map(Place::C));
    }
}

/// Registers that contain a fragment's first colour when the fragment program ends. (1.6)
const COLOUR: std::ops::Range<u8> = 0..4;

/// Returns the reads and writes of each instruction of a program, by address. The result contains the instructions of
/// the program's listing, and also instructions outside the listing that `graph` reaches. An instruction that ends
/// fragments also has the operation `exit`. The results of `exit` are `$r0` to `$r3`. More registers may be results,
/// but the program does not state how many registers are results.
pub fn uses(code: &Code, stage: Stage, graph: &Graph) -> UsesAt {
    let starts: NumberSet =
        graph.nodes.iter().map(|node| node.pc).chain(listed(code).map(|(pc, _)| pc)).collect();
    let instruction = |pc: u32| {
        let inst = code.at(pc).ok()?;
        let mut operations = vec![of(inst, stage)];
        let returns =
            || graph.node(pc).is_some_and(|node| node.next.iter().any(|edge| edge.kind == EdgeKind::Return));
        let ends = inst.end == End::Exit || (matches!(inst.op, Op::Control(Control::Ret)) && !returns());
        if ends && stage == Stage::Fragment {
            let mut exit = Uses::new("exit", Fidelity::Specified);
            let result = |register| Read { slot: Place::R(register).slot(), role: Role::Output, quad: false };
            exit.reads = COLOUR.map(result).collect();
            exit.dropped_if_killed = true;
            operations.push(exit);
        }
        Some((pc, operations))
    };
    UsesAt::from_sorted_store_unchecked(starts.iter().filter_map(instruction).collect())
}

/// Returns the reads and writes of one instruction.
fn of(inst: &Inst, stage: Stage) -> Uses {
    let Accesses { reads, writes, memory, conditional } = accesses(inst, stage);
    let (operation, fidelity) = fidelity::of(&inst.op);
    let halves = writes.iter().filter(|place| matches!(place, Place::Half(_)));
    let kept = halves.map(|place| Read { slot: place.slot(), role: Role::Value, quad: false });
    let read =
        |(place, role, quad): &(Place, Role, bool)| Read { slot: place.slot(), role: *role, quad: *quad };
    let space = |place: Option<&(Mem, bool)>| place.map(|(mem, _)| named(mem.space));
    let stored = memory.iter().find(|(_, written)| *written);
    let atomic = matches!(
        inst.op,
        Op::Memory(
            MemoryOp::Atom { .. } | MemoryOp::Atom64 { .. } | MemoryOp::Red { .. } | MemoryOp::Red64 { .. }
        )
    );
    let is_const = |mem: &Mem| matches!(mem.space, Space::Const(_));
    let loaded = memory.iter().filter(|(_, written)| atomic || !*written);
    let operands: Vec<Memory> = loaded.clone().map(|(mem, _)| named(mem.space)).collect();
    let operands = if operands.len() > 1 { operands } else { Vec::new() };
    Uses {
        reads: reads.iter().map(read).chain(kept).collect(),
        writes: writes.iter().map(|place| place.slot()).collect(),
        conditional,
        together: matches!(inst.op, Op::Group(Group::Vote { .. })),
        operands,
        loads: space(loaded.min_by_key(|(mem, _)| is_const(mem))),
        stores: space(stored),
        narrow: stored.is_some_and(|(mem, _)| mem.access.bytes() < 4),
        ..Uses::new(operation, fidelity)
    }
}

/// Returns a memory space in the form that all machines share.
fn named(space: Space) -> Memory {
    let numbered = |name, number: u8| Memory { number: Some(number.into()), ..Memory::shared(name) };
    match space {
        Space::Const(bank) => numbered("c[]", bank),
        Space::Local => Memory::private("l[]"),
        Space::Shared => Memory::shared("s[]"),
        Space::Global(segment) => numbered("g[]", segment),
        Space::Attribute => Memory::private("a[]"),
        Space::Primitive => Memory::shared("p[]"),
        Space::Varying => Memory::private("v[]"),
        Space::Output => Memory::private("o[]"),
    }
}
