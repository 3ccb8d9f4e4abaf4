//! Memory operands. (3.3)

use reconverge_isa::row::{Bits, Case, Cases, Location, Memory, Part, at};

use crate::draft::Draft;
use crate::inst::{Access, Base, Mem, Operand, Space};

use super::*;

// In this file, SLOT is the index in `Inst::src`, and ACCESS is an index into ACCESSES.

pub(super) const SAREG_FIELD: Bits = at(26, 2);
pub(super) const AREG_FIELD: Bits = at(26, 2).and(34, 1);
pub(super) const BANK_FIELD: Bits = at(54, 4);
pub(super) const U8: usize = 0;
pub(super) const U16: usize = 1;
pub(super) const S16: usize = 2;
pub(super) const B32: usize = 3;
pub(super) const ACCESSES: [Access; 4] = [Access::U8, Access::U16, Access::S16, Access::B32];
/// For each access, the binary logarithm of its size in bytes.
pub(super) const SHIFTS: [u8; 4] = [0, 1, 1, 2];

pub(super) const SHARED: u8 = 0;
pub(super) const CONST: u8 = 1;
pub(super) const LOCAL: u8 = 2;
pub(super) const ATTRIBUTE: u8 = 3;
pub(super) const PRIMITIVE: u8 = 4;
pub(super) const VARYING: u8 = 5;
pub(super) const OUTPUT: u8 = 6;

/// Returns a memory operand with an optional `$a`. LENGTH is the length of the offset field. AREG selects the `$a`
/// field (0 none, 2 short, 3 long). INCREMENT means that the `$a` is post-incremented. SIGNED means that the increment
/// is signed.
pub(super) const fn memory<
    const SPACE: u8,
    const SLOT: usize,
    const ACCESS: usize,
    const POSITION: u8,
    const LENGTH: u8,
    const AREG: u8,
    const INCREMENT: bool,
    const SIGNED: bool,
>(bank: Option<Bits>) -> Memory<Draft> {
    Memory {
        name: SOURCES[SLOT],
        space: ["s", "c", "l", "a", "p", "v", "o"][SPACE as usize],
        bank,
        base: match AREG {
            2 => Some(("$a", SAREG_FIELD)),
            3 => Some(("$a", AREG_FIELD)),
            _ => None,
        },
        always_base: INCREMENT,
        offset: Some(at(POSITION, LENGTH)),
        shift: SHIFTS[ACCESS],
        signed: SIGNED,
        increment: INCREMENT,
        set: |draft: &mut Draft, location: Location| {
            let space = match SPACE {
                SHARED => Space::Shared,
                CONST => Space::Const(location.bank),
                LOCAL => Space::Local,
                ATTRIBUTE => Space::Attribute,
                PRIMITIVE => Space::Primitive,
                VARYING => Space::Varying,
                _ => Space::Output,
            };
            draft.inst.src[SLOT] = Operand::Mem(Mem {
                space,
                access: if SPACE == LOCAL { draft.access } else { ACCESSES[ACCESS] },
                base: Base::A(location.base),
                increment: INCREMENT,
                offset: location.offset,
            });
        },
    }
}

/// s[] in a short or immediate form.
pub(super) const fn sshared<const ACCESS: usize, const INCREMENT: bool>() -> P {
    Part::Memory(const { &memory::<SHARED, 0, ACCESS, 9, 4, 2, INCREMENT, INCREMENT>(None) })
}

/// s[] as an operand of a long form.
pub(super) const fn lshared<const ACCESS: usize, const INCREMENT: bool>() -> P {
    Part::Memory(const { &memory::<SHARED, 0, ACCESS, 9, 5, 3, INCREMENT, INCREMENT>(None) })
}

/// s[] in a load or store. The offset field covers 16 bits of address, whatever the unit of the field.
pub(super) const fn fshared<const ACCESS: usize, const LENGTH: u8, const INCREMENT: bool>() -> P {
    Part::Memory(const { &memory::<SHARED, 0, ACCESS, 9, LENGTH, 3, INCREMENT, false>(None) })
}

/// c[] in a load.
pub(super) const fn fconst<const ACCESS: usize, const LENGTH: u8, const INCREMENT: bool>() -> P {
    Part::Memory(const { &memory::<CONST, 0, ACCESS, 9, LENGTH, 3, INCREMENT, false>(Some(BANK_FIELD)) })
}

/// c0[] and c1[] in a short form.
pub(super) const fn sconst<const ACCESS: usize, const INCREMENT: bool>() -> P {
    Part::Memory(const { &memory::<CONST, 1, ACCESS, 16, 5, 2, INCREMENT, INCREMENT>(Some(at(21, 1))) })
}

/// c[] as an operand of a long form, in the field at POSITION. AREG is 0 if another operand uses the `$a` field.
pub(super) const fn lconst<const SLOT: usize, const POSITION: u8, const ACCESS: usize, const AREG: u8, const INCREMENT: bool>() -> P {
    Part::Memory(const { &memory::<CONST, SLOT, ACCESS, POSITION, 7, AREG, INCREMENT, INCREMENT>(Some(BANK_FIELD)) })
}

pub(super) const fn graphics<const SPACE: u8, const POSITION: u8, const LENGTH: u8, const AREG: u8>() -> P {
    Part::Memory(const { &memory::<SPACE, 0, B32, POSITION, LENGTH, AREG, false, false>(None) })
}

pub(super) const SATTR: P = graphics::<ATTRIBUTE, 9, 6, 0>();
pub(super) const LATTR: P = graphics::<ATTRIBUTE, 9, 7, 0>();
pub(crate) const FATTR: P = graphics::<ATTRIBUTE, 9, 7, 3>();
pub(super) const SPRIM: P = graphics::<PRIMITIVE, 9, 6, 2>();
pub(super) const LPRIM: P = graphics::<PRIMITIVE, 9, 7, 3>();
pub(crate) const SVAR: P = graphics::<VARYING, 16, 8, 2>();
pub(crate) const LVAR: P = graphics::<VARYING, 16, 8, 3>();
pub(crate) const FOUT32: P = graphics::<OUTPUT, 9, 14, 3>();
/// The c[] operand of an indirect branch. The operand is a word, but the offset of the operand counts bytes. (9.9)
pub(crate) const FCONST_CODE: P = Part::Memory(&Memory {
    shift: SHIFTS[U8],
    ..memory::<CONST, 0, B32, 9, 16, 3, false, false>(Some(BANK_FIELD))
});

/// w0\[25\]: the access has a post-increment.
pub(super) const INCREMENT: u64 = 1 << 25;

/// s[] in a load or store, with or without post-increment.
const fn stepped<const ACCESS: usize, const LENGTH: u8>() -> P {
    choice!("post-increment", [
        case!(0, INCREMENT, &[fshared::<ACCESS, LENGTH, false>()]),
        case!(INCREMENT, INCREMENT, &[fshared::<ACCESS, LENGTH, true>()]),
    ])
}
pub(crate) const FS8: P = stepped::<U8, 16>();
pub(crate) const FS16: P = stepped::<U16, 15>();
/// The operand of a load that sign-extends.
pub(crate) const FS16_SIGNED: P = stepped::<S16, 15>();
pub(crate) const FS32: P = stepped::<B32, 14>();

pub(crate) const LMEM: P = choice!("post-increment", [
    case!(0, INCREMENT, &[Part::Memory(&memory::<LOCAL, 0, U8, 9, 16, 3, false, false>(None))]),
    case!(INCREMENT, INCREMENT, &[Part::Memory(&memory::<LOCAL, 0, U8, 9, 16, 3, true, false>(None))]),
]);

pub(super) const MODE: u64 = 3 << 46;
pub(crate) const FCONST: P = choice!("access mode", [
    case!(0,                     INCREMENT | MODE, &[Part::Text("u8"), fconst::<U8, 16, false>()]),
    case!(1 << 46,               INCREMENT | MODE, &[Part::Text("u16"), fconst::<U16, 15, false>()]),
    case!(2 << 46,               INCREMENT | MODE, &[Part::Text("s16"), fconst::<S16, 15, false>()]),
    case!(3 << 46,               INCREMENT | MODE, &[Part::Text("b32"), fconst::<B32, 14, false>()]),
    case!(INCREMENT,             INCREMENT | MODE, &[Part::Text("u8"), fconst::<U8, 16, true>()]),
    case!(INCREMENT | (1 << 46), INCREMENT | MODE, &[Part::Text("u16"), fconst::<U16, 15, true>()]),
    case!(INCREMENT | (2 << 46), INCREMENT | MODE, &[Part::Text("s16"), fconst::<S16, 15, true>()]),
    case!(INCREMENT | (3 << 46), INCREMENT | MODE, &[Part::Text("b32"), fconst::<B32, 14, true>()]),
]);

/// g[], addressed by a register, in loads, stores and reductions.
pub(crate) const GLOBAL: P = Part::Memory(&Memory { bank: Some(at(16, 4)), ..global() });
/// g[], addressed by a register, in atomics.
pub(crate) const GLOBAL2: P = Part::Memory(&Memory { bank: Some(at(23, 4)), ..global() });

pub(super) const fn global() -> Memory<Draft> {
    Memory {
        name: "source 1",
        space: "g",
        bank: None,
        base: Some(("$r", at(9, 7))),
        always_base: true,
        offset: None,
        shift: 0,
        signed: false,
        increment: false,
        set: |draft, location| {
            draft.inst.src[0] = Operand::Mem(Mem {
                space: Space::Global(location.bank),
                access: draft.access,
                base: Base::R(location.base),
                increment: false,
                offset: 0,
            });
        },
    }
}
