//! The operands and modifiers that rows are made of, named as in the description: S... short, I... immediate, L...
//! long; ...H 16 bits, ...D 64, ...Q 128; ...W and ...H choices of a 32- or 16-bit source among registers and memory.
//! (3, and its Appendices B to D)
//!
//! Bits are numbered 0 to 63: bit n of the second word is 32 + n. Where a field serves as another operand than its
//! name says, the name ends in that operand: `LSRC3W_2` is the field SRC3 as second source.

use reconverge_isa::read::push_decimal;
use reconverge_isa::row::{
    Bits, Case, Cases, Custom, Location, Memory, Number, Part, Scope, Style, Told, Words, at,
};
use reconverge_isa::write::Reader;

use crate::draft::Draft;
use crate::inst::{Access, Base, Chip, Condition, Dst, End, Half, Mem, Operand, Space, Special, Stage};
use crate::lane::convert::{Integer, Size};
use crate::lane::integer::{Addition, Logic};
use crate::lane::quad::{QuadOp, QuadSource};
use crate::lane::{Compare, Rounding};

/// A part of a Tesla row.
pub(crate) type P = Part<Draft>;

// Where rows and cases are valid: a bit a stage, a bit a chip.

const fn stage_bit(stage: Stage) -> u16 {
    1 << match stage {
        Stage::Vertex => 0,
        Stage::Geometry => 1,
        Stage::Fragment => 2,
        Stage::Compute => 3,
    }
}

const fn chip_bit(chip: Chip) -> u16 {
    1 << match chip {
        Chip::G80 => 4,
        Chip::G84 => 5,
        Chip::G200 => 6,
        Chip::Mcp77 => 7,
        Chip::Gt215 => 8,
    }
}

const STAGES: u16 = 0x00f;
const CHIPS: u16 = 0x1f0;

/// One chip and one stage.
pub const fn here(chip: Chip, stage: Stage) -> Scope {
    Scope(chip_bit(chip) | stage_bit(stage))
}

/// Both.
pub(crate) const fn both(one: Scope, other: Scope) -> Scope {
    Scope(one.0 & other.0)
}

const VP: u16 = stage_bit(Stage::Vertex);
const GP: u16 = stage_bit(Stage::Geometry);
const FP: u16 = stage_bit(Stage::Fragment);
const CP: u16 = stage_bit(Stage::Compute);
/// Everywhere.
pub(crate) const ALL: Scope = Scope(CHIPS | STAGES);
/// Geometry programs.
pub(crate) const G: Scope = Scope(CHIPS | GP);
/// Fragment programs.
pub(crate) const F: Scope = Scope(CHIPS | FP);
/// Compute programs.
pub(crate) const C: Scope = Scope(CHIPS | CP);
/// Vertex and geometry programs.
pub(crate) const VG: Scope = Scope(CHIPS | VP | GP);
/// Graphics programs.
pub(crate) const VGF: Scope = Scope(CHIPS | VP | GP | FP);
/// Chips with feature sm11.
pub(crate) const SM11: Scope = Scope(CHIPS & !chip_bit(Chip::G80) | STAGES);
/// Chips with feature sm12: those with a number from 0xa0 on.
pub(crate) const SM12: Scope = Scope(SM11.0 & !chip_bit(Chip::G84));
/// Chips with feature fp64.
pub(crate) const FP64: Scope = Scope(chip_bit(Chip::G200) | STAGES);
/// Chips with feature d3d10_1.
pub(crate) const D3D10_1: Scope = Scope(chip_bit(Chip::Gt215) | STAGES);

// Building blocks.

const fn number(number: &'static Number<Draft>) -> P {
    Part::Number(number)
}

const fn word(words: &'static Words<Draft>) -> P {
    Part::Word(words)
}

const fn choice(cases: &'static Cases<Draft>) -> P {
    Part::Case(cases)
}

/// A case of some chips and stages. (A macro because the compiler keeps what a literal refers to, but not what a
/// function's argument does.)
macro_rules! case_in {
    ($scope:expr, $fixed:expr, $mask:expr, $parts:expr $(,)?) => {
        Case { mask: $mask, fixed: $fixed, scope: $scope, parts: $parts }
    };
}

/// A case of any chip and stage.
macro_rules! case {
    ($fixed:expr, $mask:expr, $parts:expr $(,)?) => {
        case_in!(ALL, $fixed, $mask, $parts)
    };
}

const R: Style = Style::Register("$r", "");
const RH: Style = Style::Half("$r");
const RD: Style = Style::Register("$r", "d");
const RQ: Style = Style::Register("$r", "q");
const A: Style = Style::Register("$a", "");
const CC: Style = Style::Register("$c", "");

const SOURCES: [&str; 3] = ["source 1", "source 2", "source 3"];

/// A flag: written or not.
macro_rules! flag {
    ($text:literal, $bit:expr, $set:expr) => {
        word(const { &Words { name: $text, field: at($bit, 1), texts: &[Some(""), Some($text)], set: $set } })
    };
}

// Prefixes of long instructions.

/// exit and join; 3 is the immediate form.
pub(crate) const END: P = word(&Words {
    name: "exit or join",
    field: at(32, 2),
    texts: &[Some(""), Some("exit"), Some("join"), None],
    set: |draft, value| draft.inst.end = [End::None, End::Exit, End::Join, End::None][value as usize & 3],
});

/// Conditions by code; those without a name in any document are `cc20` to `cc27`. (2.3)
const CONDITION_NAMES: &[Option<&str>] = &[
    Some("never"),
    Some("l"),
    Some("e"),
    Some("le"),
    Some("g"),
    Some("lg"),
    Some("ge"),
    Some("lge"),
    Some("u"),
    Some("lu"),
    Some("eu"),
    Some("leu"),
    Some("gu"),
    Some("lgu"),
    Some("geu"),
    Some("always"),
    Some("o"),
    Some("c"),
    Some("a"),
    Some("s"),
    Some("cc20"),
    Some("cc21"),
    Some("cc22"),
    Some("cc23"),
    Some("cc24"),
    Some("cc25"),
    Some("cc26"),
    Some("cc27"),
    Some("ns"),
    Some("na"),
    Some("nc"),
    Some("no"),
];

const CONDITION: P = word(&Words {
    name: "condition",
    field: at(39, 5),
    texts: CONDITION_NAMES,
    set: |draft, code| draft.inst.guard.condition = Condition::from_code(code as u8),
});

/// The `$c` of the predicate.
const CONDITION_C: P = number(&Number {
    name: "condition register",
    field: at(44, 2),
    style: CC,
    set: |draft, c| draft.inst.guard.c = c as u8,
});

/// The condition field of the predicate "always".
pub(crate) const PREDICATE_ALWAYS: u64 = 15 << 39;

/// The predicate; "always" is not written, and "never" needs no register.
pub(crate) const PRED: P = choice(&Cases {
    name: "predicate",
    cases: &[
        case!(PREDICATE_ALWAYS, 31 << 39, &[]),
        case!(0, 0x7f << 39, &[Part::Open, Part::Text("never"), Part::Close, NEVER]),
        case!(0, 0, &[Part::Open, CONDITION, CONDITION_C, Part::Close]),
    ],
});

const NEVER: P = Part::Set(|draft| draft.inst.guard.condition = Condition::NEVER);

/// The first word of a short instruction's text.
pub(crate) const SHORT: P = Part::Text("short");

/// Lanes of a quad that are written; all of them is not written. (3.4)
pub(crate) const LANE: P = choice(&Cases {
    name: "lane mask",
    cases: &[case!(0xf << 46, 0xf << 46, &[]), case!(0, 0, &[Part::Open, LANES, Part::Close])],
});

const LANES: P = word(&Words {
    name: "lanes",
    field: at(46, 4),
    texts: &[
        Some("lnone"),
        Some("l0"),
        Some("l1"),
        Some("l01"),
        Some("l2"),
        Some("l02"),
        Some("l12"),
        Some("l012"),
        Some("l3"),
        Some("l03"),
        Some("l13"),
        Some("l013"),
        Some("l23"),
        Some("l023"),
        Some("l123"),
        None,
    ],
    set: |draft, mask| draft.inst.lanes = mask as u8,
});

// Destinations.

macro_rules! destination {
    ($length:literal, $style:expr, |$n:ident| $dst:expr) => {
        number(&Number {
            name: "destination",
            field: at(2, $length),
            style: $style,
            set: |draft, $n| draft.inst.dst = $dst,
        })
    };
}

pub(crate) const SDST: P = destination!(6, R, |n| Dst::R32(n as u8));
pub(crate) const SHDST: P = destination!(6, RH, |n| Dst::R16(Half(n as u8)));
pub(crate) const LDST: P = destination!(7, R, |n| Dst::R32(n as u8));
pub(crate) const LHDST: P = destination!(7, RH, |n| Dst::R16(Half(n as u8)));
pub(crate) const LDDST: P = destination!(7, RD, |n| Dst::R64(n as u8));
const LQDST: P = destination!(7, RQ, |n| Dst::R128(n as u8));

pub(crate) const ADST: P = number(&Number {
    name: "destination",
    field: at(2, 3),
    style: A,
    set: |draft, n| draft.inst.dst = Dst::A(n as u8),
});

const BUCKET: P = Part::Set(|draft| draft.inst.dst = Dst::Discard);
const DISCARD: &[P] = &[Part::Text("#"), BUCKET];

const OUT32: P = Part::Memory(&Memory {
    shift: 2,
    set: |draft, at| draft.inst.dst = Dst::Out32(at.offset as u16),
    ..output()
});

/// The address is rounded down to a word; the half goes to both halves of it. (3.1)
const OUT16: P = Part::Memory(&Memory {
    shift: 1,
    set: |draft, at| draft.inst.dst = Dst::Out16(at.offset as u16 & !3),
    ..output()
});

const fn output() -> Memory<Draft> {
    Memory {
        name: "output",
        space: "o",
        bank: None,
        base: None,
        always_base: false,
        offset: Some(at(2, 7)),
        shift: 0,
        signed: false,
        increment: false,
        set: |_, _| {},
    }
}

pub(crate) const LLDST: P = choice(&Cases {
    name: "destination type",
    cases: &[
        case!(0, 1 << 35, &[LDST]),
        case!(1 << 35 | 127 << 2, 1 << 35 | 127 << 2, DISCARD),
        case!(1 << 35, 1 << 35, &[OUT32]),
    ],
});

pub(crate) const LLHDST: P = choice(&Cases {
    name: "destination type",
    cases: &[
        case!(0, 1 << 35, &[LHDST]),
        case!(1 << 35 | 127 << 2, 1 << 35 | 127 << 2, DISCARD),
        case!(1 << 35, 1 << 35, &[OUT16]),
    ],
});

/// The same where nothing else in the text tells that it is a half: `half` does, before what is no register.
pub(crate) const LLHDST_SAID: P = choice(&Cases {
    name: "destination type",
    cases: &[
        case!(0, 1 << 35, &[LHDST]),
        case!(1 << 35 | 127 << 2, 1 << 35 | 127 << 2, &[Part::Text("half"), Part::Text("#"), BUCKET]),
        case!(1 << 35, 1 << 35, &[Part::Text("half"), OUT16]),
    ],
});

/// Destination of ld c\[\] and ld s\[\]: w1\[26\] tells its width.
pub(crate) const CSLD_DST: P = choice(&Cases {
    name: "destination width",
    cases: &[case!(0, 1 << 58, &[LLHDST_SAID]), case!(1 << 58, 1 << 58, &[LLDST])],
});

/// The `$c` that flags go to, if any.
pub(crate) const MCDST: P = choice(&Cases {
    name: "flags output",
    cases: &[case!(1 << 38, 1 << 38, &[FLAGS]), case!(0, 1 << 38, &[])],
});

/// The `$c` that flags go to; also that of `ld lock`, which is always written.
pub(crate) const FLAGS: P = number(&Number {
    name: "flags register",
    field: at(36, 2),
    style: CC,
    set: |draft, c| draft.inst.cdst = Some(c as u8),
});

/// The `$c` that is the result.
pub(crate) const CDST: P = number(&Number {
    name: "destination",
    field: at(36, 2),
    style: CC,
    set: |draft, c| draft.inst.dst = Dst::C(c as u8),
});

// Registers as sources: SLOT is the place in `Inst::src`, the run of bits follows.

const fn r32<const SLOT: usize, const POSITION: u8, const LENGTH: u8>() -> P {
    number(
        const {
            &Number {
                name: SOURCES[SLOT],
                field: at(POSITION, LENGTH),
                style: R,
                set: |draft, n| draft.inst.src[SLOT] = Operand::R32(n as u8),
            }
        },
    )
}

const fn r16<const SLOT: usize, const POSITION: u8, const LENGTH: u8>() -> P {
    number(
        const {
            &Number {
                name: SOURCES[SLOT],
                field: at(POSITION, LENGTH),
                style: RH,
                set: |draft, n| draft.inst.src[SLOT] = Operand::R16(Half(n as u8)),
            }
        },
    )
}

const fn r64<const SLOT: usize, const POSITION: u8>() -> P {
    number(
        const {
            &Number {
                name: SOURCES[SLOT],
                field: at(POSITION, 7),
                style: RD,
                set: |draft, n| draft.inst.src[SLOT] = Operand::R64(n as u8),
            }
        },
    )
}

pub(crate) const SSRC1: P = r32::<0, 9, 6>();
pub(crate) const SSRC1_2: P = r32::<1, 9, 6>();
pub(crate) const SHSRC1: P = r16::<0, 9, 6>();
pub(crate) const SSRC2: P = r32::<1, 16, 6>();
pub(crate) const SHSRC2: P = r16::<1, 16, 6>();
/// The destination register once more: what mad and sad of short forms add to.
pub(crate) const SDST_3: P = r32::<2, 2, 6>();
pub(crate) const LSRC1: P = r32::<0, 9, 7>();
pub(crate) const LSRC1_2: P = r32::<1, 9, 7>();
const LHSRC1: P = r16::<0, 9, 7>();
pub(crate) const LDSRC1: P = r64::<0, 9>();
pub(crate) const LDSRC2: P = r64::<1, 16>();
pub(crate) const LSRC3_2: P = r32::<1, 46, 7>();
pub(crate) const LDSRC3: P = r64::<2, 46>();
pub(crate) const LDSRC3_2: P = r64::<1, 46>();

pub(crate) const AREG: P = number(&Number {
    name: "source 1",
    field: AREG_FIELD,
    style: A,
    set: |draft, n| draft.inst.src[0] = Operand::A(n as u8),
});

/// The `$c` that is read: the one of the predicate.
pub(crate) const COND: P = number(&Number {
    name: "condition register",
    field: at(44, 2),
    style: CC,
    set: |draft, c| {
        draft.inst.guard.c = c as u8;
        draft.inst.src[0] = Operand::C(c as u8);
    },
});

pub(crate) const SREG: P = word(&Words {
    name: "special register",
    field: at(46, 4),
    texts: &[
        Some("$physid"),
        Some("$clock"),
        Some("$sr2"),
        Some("$vstride"),
        Some("$pm0"),
        Some("$pm1"),
        Some("$pm2"),
        Some("$pm3"),
        Some("$sampleid"),
        Some("$sr9"),
        Some("$sr10"),
        Some("$sr11"),
        Some("$sr12"),
        Some("$sr13"),
        Some("$sr14"),
        Some("$sr15"),
    ],
    set: |draft, n| draft.inst.src[0] = Operand::Special(Special::from_code(n as u8)),
});

// Immediates.

/// A number as source.
macro_rules! immediate {
    ($slot:literal, $field:expr) => {
        number(&Number {
            name: "immediate",
            field: $field,
            style: Style::Hex,
            set: |draft, n| draft.inst.src[$slot] = Operand::Imm(n),
        })
    };
}

pub(crate) const IMM: P = immediate!(1, at(16, 6).and(34, 26));
/// The only source of mov.
pub(crate) const IMM_1: P = immediate!(0, at(16, 6).and(34, 26));
pub(crate) const OFFS: P = immediate!(1, at(9, 16));
const SHCNT: P = immediate!(1, at(16, 7));
pub(crate) const HSHCNT: P = immediate!(1, at(16, 4));

pub(crate) const TARGET: P = number(&Number {
    name: "target",
    field: at(11, 16).and(46, 6),
    style: Style::Code(2),
    set: |draft, address| draft.target = address,
});

pub(crate) const BAR: P = number(&Number {
    name: "barrier",
    field: at(21, 4),
    style: Style::Hex,
    set: |draft, n| draft.numbers[0] = n,
});

pub(crate) const BARMASK: P = number(&Number {
    name: "count of warps",
    field: at(9, 12),
    style: Style::Hex,
    set: |draft, n| draft.numbers[1] = n,
});

pub(crate) const PM: P = number(&Number {
    name: "event",
    field: at(10, 4),
    style: Style::Hex,
    set: |draft, n| draft.numbers[0] = n,
});

// Memory. SLOT is the place in `Inst::src`, ACCESS an index of ACCESSES.

const SAREG_FIELD: Bits = at(26, 2);
const AREG_FIELD: Bits = at(26, 2).and(34, 1);
const BANK_FIELD: Bits = at(54, 4);
const U8: usize = 0;
const U16: usize = 1;
const S16: usize = 2;
const B32: usize = 3;
const ACCESSES: [Access; 4] = [Access::U8, Access::U16, Access::S16, Access::B32];
/// Element size of each access as a power of two.
const SHIFTS: [u8; 4] = [0, 1, 1, 2];

const SHARED: u8 = 0;
const CONST: u8 = 1;
const LOCAL: u8 = 2;
const ATTRIBUTE: u8 = 3;
const PRIMITIVE: u8 = 4;
const VARYING: u8 = 5;
const OUTPUT: u8 = 6;

/// A memory operand with an optional `$a`. LENGTH is that of the offset field, AREG says which `$a` field there is
/// (0 none, 2 short, 3 long), INCREMENT whether it is post-incremented, SIGNED whether the increment is signed.
const fn memory<
    const SPACE: u8,
    const SLOT: usize,
    const ACCESS: usize,
    const POSITION: u8,
    const LENGTH: u8,
    const AREG: u8,
    const INCREMENT: bool,
    const SIGNED: bool,
>(
    bank: Option<Bits>,
) -> Memory<Draft> {
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
const fn sshared<const ACCESS: usize, const INCREMENT: bool>() -> P {
    Part::Memory(const { &memory::<SHARED, 0, ACCESS, 9, 4, 2, INCREMENT, INCREMENT>(None) })
}

/// s[] as an operand of a long form.
const fn lshared<const ACCESS: usize, const INCREMENT: bool>() -> P {
    Part::Memory(const { &memory::<SHARED, 0, ACCESS, 9, 5, 3, INCREMENT, INCREMENT>(None) })
}

/// s[] of a load or store: 16 bits of address, whatever the unit.
const fn fshared<const ACCESS: usize, const LENGTH: u8, const INCREMENT: bool>() -> P {
    Part::Memory(const { &memory::<SHARED, 0, ACCESS, 9, LENGTH, 3, INCREMENT, false>(None) })
}

/// c[] of a load.
const fn fconst<const ACCESS: usize, const LENGTH: u8, const INCREMENT: bool>() -> P {
    Part::Memory(const { &memory::<CONST, 0, ACCESS, 9, LENGTH, 3, INCREMENT, false>(Some(BANK_FIELD)) })
}

/// c0[] and c1[] in a short form.
const fn sconst<const ACCESS: usize, const INCREMENT: bool>() -> P {
    Part::Memory(const { &memory::<CONST, 1, ACCESS, 16, 5, 2, INCREMENT, INCREMENT>(Some(at(21, 1))) })
}

/// c[] as an operand of a long form, in the place of the field at POSITION; AREG 0 where another operand has the `$a`.
const fn lconst<
    const SLOT: usize,
    const POSITION: u8,
    const ACCESS: usize,
    const AREG: u8,
    const INCREMENT: bool,
>() -> P {
    Part::Memory(
        const { &memory::<CONST, SLOT, ACCESS, POSITION, 7, AREG, INCREMENT, INCREMENT>(Some(BANK_FIELD)) },
    )
}

const fn graphics<const SPACE: u8, const POSITION: u8, const LENGTH: u8, const AREG: u8>() -> P {
    Part::Memory(const { &memory::<SPACE, 0, B32, POSITION, LENGTH, AREG, false, false>(None) })
}

const SATTR: P = graphics::<ATTRIBUTE, 9, 6, 0>();
const LATTR: P = graphics::<ATTRIBUTE, 9, 7, 0>();
pub(crate) const FATTR: P = graphics::<ATTRIBUTE, 9, 7, 3>();
const SPRIM: P = graphics::<PRIMITIVE, 9, 6, 2>();
const LPRIM: P = graphics::<PRIMITIVE, 9, 7, 3>();
pub(crate) const SVAR: P = graphics::<VARYING, 16, 8, 2>();
pub(crate) const LVAR: P = graphics::<VARYING, 16, 8, 3>();
pub(crate) const FOUT32: P = graphics::<OUTPUT, 9, 14, 3>();
/// The address word of an indirect branch.
pub(crate) const FCONST_CODE: P =
    Part::Memory(&memory::<CONST, 0, U8, 9, 16, 3, false, false>(Some(BANK_FIELD)));

/// w0\[25\]: post-increment.
const INCREMENT: u64 = 1 << 25;

pub(crate) const FS8: P = choice(&Cases {
    name: "post-increment",
    cases: &[
        case!(0, INCREMENT, &[fshared::<U8, 16, false>()]),
        case!(INCREMENT, INCREMENT, &[fshared::<U8, 16, true>()]),
    ],
});
pub(crate) const FS16: P = choice(&Cases {
    name: "post-increment",
    cases: &[
        case!(0, INCREMENT, &[fshared::<U16, 15, false>()]),
        case!(INCREMENT, INCREMENT, &[fshared::<U16, 15, true>()]),
    ],
});
/// The same for a load that extends by sign.
pub(crate) const FS16_SIGNED: P = choice(&Cases {
    name: "post-increment",
    cases: &[
        case!(0, INCREMENT, &[fshared::<S16, 15, false>()]),
        case!(INCREMENT, INCREMENT, &[fshared::<S16, 15, true>()]),
    ],
});
pub(crate) const FS32: P = choice(&Cases {
    name: "post-increment",
    cases: &[
        case!(0, INCREMENT, &[fshared::<B32, 14, false>()]),
        case!(INCREMENT, INCREMENT, &[fshared::<B32, 14, true>()]),
    ],
});

pub(crate) const LMEM: P = choice(&Cases {
    name: "post-increment",
    cases: &[
        case!(0, INCREMENT, &[Part::Memory(&memory::<LOCAL, 0, U8, 9, 16, 3, false, false>(None))]),
        case!(INCREMENT, INCREMENT, &[Part::Memory(&memory::<LOCAL, 0, U8, 9, 16, 3, true, false>(None))]),
    ],
});

const MODE: u64 = 3 << 46;
pub(crate) const FCONST: P = choice(&Cases {
    name: "access mode",
    cases: &[
        case!(0, INCREMENT | MODE, &[Part::Text("u8"), fconst::<U8, 16, false>()]),
        case!(1 << 46, INCREMENT | MODE, &[Part::Text("u16"), fconst::<U16, 15, false>()]),
        case!(2 << 46, INCREMENT | MODE, &[Part::Text("s16"), fconst::<S16, 15, false>()]),
        case!(3 << 46, INCREMENT | MODE, &[Part::Text("b32"), fconst::<B32, 14, false>()]),
        case!(INCREMENT, INCREMENT | MODE, &[Part::Text("u8"), fconst::<U8, 16, true>()]),
        case!(INCREMENT | (1 << 46), INCREMENT | MODE, &[Part::Text("u16"), fconst::<U16, 15, true>()]),
        case!(INCREMENT | (2 << 46), INCREMENT | MODE, &[Part::Text("s16"), fconst::<S16, 15, true>()]),
        case!(INCREMENT | (3 << 46), INCREMENT | MODE, &[Part::Text("b32"), fconst::<B32, 14, true>()]),
    ],
});

/// g[], addressed by a register: loads, stores, reductions.
pub(crate) const GLOBAL: P = Part::Memory(&Memory { bank: Some(at(16, 4)), ..global() });
/// The same in atomics.
pub(crate) const GLOBAL2: P = Part::Memory(&Memory { bank: Some(at(23, 4)), ..global() });

const fn global() -> Memory<Draft> {
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

// Sources that can be a register or memory. First case first.

/// w0\[23\]: src2 is c[]; w0\[24\]: src1 is memory (short) or src3 is c[] (long); both: p[] in geometry programs.
const W0_23: u64 = 1 << 23;
const W0_24: u64 = 1 << 24;
const BOTH: u64 = W0_23 | W0_24;
/// w1\[21\]: src1 of a long form is s[] or a[].
const W1_21: u64 = 1 << 53;

/// Source 1 of a short form.
const fn short_source1<const WIDE: bool>() -> P {
    const SELECT: u64 = BOTH | INCREMENT | 3 << 13;
    choice(
        const {
            &Cases {
                name: "kind of source 1",
                cases: &[
                    case!(0, W0_24, &[if WIDE { SSRC1 } else { SHSRC1 }]),
                    case_in!(G, BOTH, BOTH, &[SPRIM]),
                    case_in!(C, W0_24, SELECT, &[Part::Text("u8"), sshared::<U8, false>()]),
                    case_in!(C, W0_24 | 1 << 13, SELECT, &[Part::Text("u16"), sshared::<U16, false>()]),
                    case_in!(C, W0_24 | 2 << 13, SELECT, &[Part::Text("s16"), sshared::<S16, false>()]),
                    case_in!(C, W0_24 | 3 << 13, SELECT, &[Part::Text("b32"), sshared::<B32, false>()]),
                    case_in!(C, W0_24 | INCREMENT, SELECT, &[Part::Text("u8"), sshared::<U8, true>()]),
                    case_in!(
                        C,
                        W0_24 | INCREMENT | 1 << 13,
                        SELECT,
                        &[Part::Text("u16"), sshared::<U16, true>()]
                    ),
                    case_in!(
                        C,
                        W0_24 | INCREMENT | 2 << 13,
                        SELECT,
                        &[Part::Text("s16"), sshared::<S16, true>()]
                    ),
                    case_in!(
                        C,
                        W0_24 | INCREMENT | 3 << 13,
                        SELECT,
                        &[Part::Text("b32"), sshared::<B32, true>()]
                    ),
                    case_in!(VG, W0_24, BOTH, &[SATTR]),
                ],
            }
        },
    )
}
pub(crate) const SSRC1W: P = short_source1::<true>();
pub(crate) const SSRC1H: P = short_source1::<false>();

/// Source 1 of an immediate form: w0\[23\] does not count.
const fn immediate_source1<const WIDE: bool>() -> P {
    const SELECT: u64 = W0_24 | INCREMENT | 3 << 13;
    choice(
        const {
            &Cases {
                name: "kind of source 1",
                cases: &[
                    case!(0, W0_24, &[if WIDE { SSRC1 } else { SHSRC1 }]),
                    case_in!(G, W0_24, W0_24, &[SPRIM]),
                    case_in!(C, W0_24, SELECT, &[Part::Text("u8"), sshared::<U8, false>()]),
                    case_in!(C, W0_24 | 1 << 13, SELECT, &[Part::Text("u16"), sshared::<U16, false>()]),
                    case_in!(C, W0_24 | 2 << 13, SELECT, &[Part::Text("s16"), sshared::<S16, false>()]),
                    case_in!(C, W0_24 | 3 << 13, SELECT, &[Part::Text("b32"), sshared::<B32, false>()]),
                    case_in!(C, W0_24 | INCREMENT, SELECT, &[Part::Text("u8"), sshared::<U8, true>()]),
                    case_in!(
                        C,
                        W0_24 | INCREMENT | 1 << 13,
                        SELECT,
                        &[Part::Text("u16"), sshared::<U16, true>()]
                    ),
                    case_in!(
                        C,
                        W0_24 | INCREMENT | 2 << 13,
                        SELECT,
                        &[Part::Text("s16"), sshared::<S16, true>()]
                    ),
                    case_in!(
                        C,
                        W0_24 | INCREMENT | 3 << 13,
                        SELECT,
                        &[Part::Text("b32"), sshared::<B32, true>()]
                    ),
                ],
            }
        },
    )
}
pub(crate) const ISRC1W: P = immediate_source1::<true>();
pub(crate) const ISRC1H: P = immediate_source1::<false>();

/// Source 2 of a short form. With w0\[24\] set as well, w0\[23\] belongs to source 1.
const fn short_source2<const WIDE: bool>() -> P {
    choice(
        const {
            &Cases {
                name: "kind of source 2",
                cases: &[
                    case!(0, W0_23, &[if WIDE { SSRC2 } else { SHSRC2 }]),
                    case!(BOTH, BOTH, &[if WIDE { SSRC2 } else { SHSRC2 }]),
                    case!(
                        W0_23,
                        BOTH | INCREMENT,
                        &[if WIDE { sconst::<B32, false>() } else { sconst::<U16, false>() }]
                    ),
                    case!(
                        W0_23 | INCREMENT,
                        BOTH | INCREMENT,
                        &[if WIDE { sconst::<B32, true>() } else { sconst::<U16, true>() }]
                    ),
                ],
            }
        },
    )
}
pub(crate) const SSRC2W: P = short_source2::<true>();
pub(crate) const SSRC2H: P = short_source2::<false>();

/// What does not exist: c[] in two sources outside geometry programs.
const UNDEFINED: P =
    word(&Words { name: "pair of c[] sources", field: at(23, 1), texts: &[None, None], set: |_, _| {} });

/// Source 1 of a long form. ALONE: the instruction has no other source, and outside geometry programs w0\[16..24\] are
/// ignored (2.1, measured for conversions); otherwise both bits set there have no meaning.
///
/// Fragment programs have neither s[] nor a[], and w1\[21\] does not count there. (13.17)
const fn long_source1<const WIDE: bool, const ALONE: bool>() -> P {
    const SELECT: u64 = W1_21 | INCREMENT | 3 << 14;
    choice(
        const {
            &Cases {
                name: "kind of source 1",
                cases: &[
                    case_in!(G, BOTH, BOTH, &[LPRIM]),
                    case_in!(if ALONE { Scope(0) } else { ALL }, BOTH, BOTH, &[UNDEFINED]),
                    case_in!(F, 0, 0, &[if WIDE { LSRC1 } else { LHSRC1 }]),
                    case!(0, W1_21, &[if WIDE { LSRC1 } else { LHSRC1 }]),
                    case_in!(C, W1_21, SELECT, &[Part::Text("u8"), lshared::<U8, false>()]),
                    case_in!(C, W1_21 | 1 << 14, SELECT, &[Part::Text("u16"), lshared::<U16, false>()]),
                    case_in!(C, W1_21 | 2 << 14, SELECT, &[Part::Text("s16"), lshared::<S16, false>()]),
                    case_in!(C, W1_21 | 3 << 14, SELECT, &[Part::Text("b32"), lshared::<B32, false>()]),
                    case_in!(C, W1_21 | INCREMENT, SELECT, &[Part::Text("u8"), lshared::<U8, true>()]),
                    case_in!(
                        C,
                        W1_21 | INCREMENT | 1 << 14,
                        SELECT,
                        &[Part::Text("u16"), lshared::<U16, true>()]
                    ),
                    case_in!(
                        C,
                        W1_21 | INCREMENT | 2 << 14,
                        SELECT,
                        &[Part::Text("s16"), lshared::<S16, true>()]
                    ),
                    case_in!(
                        C,
                        W1_21 | INCREMENT | 3 << 14,
                        SELECT,
                        &[Part::Text("b32"), lshared::<B32, true>()]
                    ),
                    case_in!(VG, W1_21, W1_21, &[LATTR]),
                ],
            }
        },
    )
}
pub(crate) const LSRC1W: P = long_source1::<true, false>();
pub(crate) const LSRC1H: P = long_source1::<false, false>();
/// Source 1 of an instruction without other sources.
pub(crate) const LSRC1W_ONLY: P = long_source1::<true, true>();
/// The same, 16 bits.
pub(crate) const LSRC1H_ONLY: P = long_source1::<false, true>();

/// Source 2 (POSITION 16) or 3 (POSITION 46) of a long form, as source number SLOT + 1. MINE is the bit that makes it c[].
const fn long_source<const SLOT: usize, const POSITION: u8, const ACCESS: usize>() -> P {
    choice(
        const {
            let mine = if POSITION == 16 { W0_23 } else { W0_24 };
            &Cases {
                name: if SLOT == 1 { "kind of source 2" } else { "kind of source 3" },
                cases: &[
                    case!(
                        0,
                        mine,
                        &[if ACCESS == B32 {
                            r32::<SLOT, POSITION, 7>()
                        } else {
                            r16::<SLOT, POSITION, 7>()
                        }]
                    ),
                    case_in!(
                        C,
                        mine,
                        BOTH | INCREMENT | W1_21,
                        &[lconst::<SLOT, POSITION, ACCESS, 3, false>()]
                    ),
                    case_in!(
                        C,
                        mine | INCREMENT,
                        BOTH | INCREMENT | W1_21,
                        &[lconst::<SLOT, POSITION, ACCESS, 3, true>()]
                    ),
                    // The `$a` field belongs to s[].
                    case_in!(C, mine | W1_21, BOTH | W1_21, &[lconst::<SLOT, POSITION, ACCESS, 0, false>()]),
                    case_in!(VGF, mine, BOTH | INCREMENT, &[lconst::<SLOT, POSITION, ACCESS, 3, false>()]),
                    case_in!(
                        VGF,
                        mine | INCREMENT,
                        BOTH | INCREMENT,
                        &[lconst::<SLOT, POSITION, ACCESS, 3, true>()]
                    ),
                    // Source 1 is p[] and has the `$a` field; w1[21] says whether this is c[].
                    case_in!(G, BOTH, BOTH | W1_21, &[lconst::<SLOT, POSITION, ACCESS, 0, false>()]),
                    case!(
                        BOTH | W1_21,
                        BOTH | W1_21,
                        &[if ACCESS == B32 {
                            r32::<SLOT, POSITION, 7>()
                        } else {
                            r16::<SLOT, POSITION, 7>()
                        }]
                    ),
                ],
            }
        },
    )
}
pub(crate) const LSRC2W: P = long_source::<1, 16, B32>();
pub(crate) const LSRC2H: P = long_source::<1, 16, U16>();
pub(crate) const LSRC3W: P = long_source::<2, 46, B32>();
pub(crate) const LSRC3W_2: P = long_source::<1, 46, B32>();
pub(crate) const LSRC3H_2: P = long_source::<1, 46, U16>();

pub(crate) const SHCNTW: P = choice(&Cases {
    name: "kind of shift count",
    cases: &[case!(0, 1 << 52, &[LSRC2W]), case!(1 << 52, 1 << 52, &[SHCNT])],
});
pub(crate) const SHCNTH: P = choice(&Cases {
    name: "kind of shift count",
    cases: &[case!(0, 1 << 52, &[LSRC2H]), case!(1 << 52, 1 << 52, &[SHCNT])],
});

/// Data of st s[]: w1\[21\] tells whether it is a half.
pub(crate) const ST_SRC: P = choice(&Cases {
    name: "kind of source 2",
    cases: &[case!(0, W1_21, &[r16::<1, 46, 7>()]), case!(W1_21, W1_21, &[LSRC3_2])],
});

const TYPE: u64 = 7 << 53;

/// Data register of l[] and g[] accesses, by type: where a load puts it.
pub(crate) const LG_REG: P = choice(&Cases {
    name: "register width",
    cases: &[case!(4 << 53, TYPE, &[LDDST]), case!(5 << 53, TYPE, &[LQDST]), case!(0, 0, &[LDST])],
});
/// The same where it is data to store: the destination field as source 2.
pub(crate) const LG_REG_2: P = choice(&Cases {
    name: "register width",
    cases: &[
        case!(4 << 53, TYPE, &[r64::<1, 2>()]),
        case!(
            5 << 53,
            TYPE,
            &[number(&Number {
                name: "source 2",
                field: at(2, 7),
                style: RQ,
                set: |draft, n| draft.inst.src[1] = Operand::R128(n as u8),
            })]
        ),
        case!(0, 0, &[r32::<1, 2, 7>()]),
    ],
});
pub(crate) const LG_SRC2: P = choice(&Cases {
    name: "register width",
    cases: &[case!(4 << 53, TYPE, &[LDSRC2]), case!(0, 0, &[r32::<1, 16, 7>()])],
});
pub(crate) const LG_SRC3: P = choice(&Cases {
    name: "register width",
    cases: &[case!(4 << 53, TYPE, &[LDSRC3]), case!(0, 0, &[r32::<2, 46, 7>()])],
});

/// Integer source of a conversion: w1\[14\] 32 bits, w1\[15\] byte, w1\[16\] signed.
pub(crate) const CVT_ISRC: P = choice(&Cases {
    name: "source type",
    cases: &[
        case!(0, 7 << 46, &[Part::Text("u16"), LSRC1H_ONLY, from::<1, false>()]),
        case!(1 << 46, 7 << 46, &[Part::Text("u32"), LSRC1W_ONLY, from::<2, false>()]),
        case!(2 << 46, 7 << 46, &[Part::Text("u8"), LSRC1H_ONLY, from::<0, false>()]),
        case!(3 << 46, 7 << 46, &[Part::Text("u8"), LSRC1, from::<0, false>()]),
        case!(4 << 46, 7 << 46, &[Part::Text("s16"), LSRC1H_ONLY, from::<1, true>()]),
        case!(5 << 46, 7 << 46, &[Part::Text("s32"), LSRC1W_ONLY, from::<2, true>()]),
        case!(6 << 46, 7 << 46, &[Part::Text("s8"), LSRC1H_ONLY, from::<0, true>()]),
        case!(7 << 46, 7 << 46, &[Part::Text("s8"), LSRC1, from::<0, true>()]),
    ],
});

const fn from<const SIZE: usize, const SIGNED: bool>() -> P {
    Part::Set(|draft| draft.from = Integer { size: [Size::B8, Size::B16, Size::B32][SIZE], signed: SIGNED })
}

/// The carry of a short or immediate addc.
pub(crate) const CARRY_S: P = choice(&Cases {
    name: "carry",
    cases: &[
        case!(1 << 22 | 1 << 28, 1 << 22 | 1 << 28, &[Part::Text("$c0")]),
        case!(0, 1 << 22, &[]),
        case!(1 << 22, 1 << 22 | 1 << 28, &[]),
    ],
});
/// The carry of a long addc: the `$c` of the predicate.
pub(crate) const CARRY_L: P = choice(&Cases {
    name: "carry",
    cases: &[
        case!(1 << 22 | 1 << 28, 1 << 22 | 1 << 28, &[CONDITION_C]),
        case!(0, 1 << 22, &[]),
        case!(1 << 22, 1 << 22 | 1 << 28, &[]),
    ],
});
/// The same where w1\[26..27\] tell the addition.
pub(crate) const CARRY_M: P = choice(&Cases {
    name: "carry",
    cases: &[case!(3 << 58, 3 << 58, &[CONDITION_C]), case!(0, 1 << 58, &[]), case!(1 << 58, 3 << 58, &[])],
});

// Modifiers.

const fn addition(code: u32) -> Addition {
    [Addition::Add, Addition::Sub, Addition::Subr, Addition::Addc][code as usize & 3]
}
const ADDITIONS: &[Option<&str>] = &[Some("add"), Some("sub"), Some("subr"), Some("addc")];
pub(crate) const ADDOP: P = word(&Words {
    name: "operation",
    field: at(22, 1).and(28, 1),
    texts: ADDITIONS,
    set: |draft, code| draft.addition = addition(code),
});
pub(crate) const ADDOP2: P = word(&Words {
    name: "operation",
    field: at(58, 2),
    texts: ADDITIONS,
    set: |draft, code| draft.addition = addition(code),
});

pub(crate) const LOGOP: P = word(&Words {
    name: "operation",
    field: at(46, 2),
    texts: &[Some("and"), Some("or"), Some("xor"), Some("mov2")],
    set: |draft, code| {
        draft.logic = [Logic::And, Logic::Or, Logic::Xor, Logic::Mov2][code as usize & 3];
    },
});

/// sat in this bit.
pub(crate) const fn sat<const BIT: u8>() -> P {
    flag!("sat", BIT, |draft, value| draft.sat = value != 0)
}

/// sat in this bit, which chips before G200 ignore.
pub(crate) const fn sat_g200<const BIT: u8>() -> P {
    choice(
        const { &Cases { name: "saturation", cases: &[case_in!(SM12, 0, 0, &[sat::<BIT>()]), case!(0, 0, &[])] } },
    )
}

/// neg of a source in this bit.
pub(crate) const fn neg<const BIT: u8, const SLOT: usize>() -> P {
    flag!("neg", BIT, |draft, value| draft.inst.modifiers[SLOT].neg = value != 0)
}

/// abs of a source in this bit.
pub(crate) const fn abs<const BIT: u8, const SLOT: usize>() -> P {
    flag!("abs", BIT, |draft, value| draft.inst.modifiers[SLOT].abs = value != 0)
}

/// not of a source in this bit.
pub(crate) const fn not<const BIT: u8, const SLOT: usize>() -> P {
    flag!("not", BIT, |draft, value| draft.not[SLOT] = value != 0)
}

/// The upper bits of a 24-bit product, in this bit.
pub(crate) const fn high<const BIT: u8>() -> P {
    flag!("high", BIT, |draft, value| draft.high = value != 0)
}

/// Which unit moves, in this bit. No effect on the result. (3.4)
pub(crate) const fn sfu<const BIT: u8>() -> P {
    flag!("sfu", BIT, |_, _| {})
}

/// Signedness of a source in this bit.
macro_rules! signedness {
    ($name:ident, $unsigned:literal, $signed:literal, $doc:literal) => {
        #[doc = $doc]
        pub(crate) const fn $name<const BIT: u8, const SLOT: usize>() -> P {
            word(
                const {
                    &Words {
                        name: "type",
                        field: at(BIT, 1),
                        texts: &[Some($unsigned), Some($signed)],
                        set: |draft, value| draft.signed[SLOT] = value != 0,
                    }
                },
            )
        }
    };
}
signedness!(us16, "u16", "s16", "u16 or s16, in this bit.");
signedness!(us24, "u24", "s24", "u24 or s24, in this bit.");
signedness!(us32, "u32", "s32", "u32 or s32, in this bit.");

const fn rounding(code: u32) -> Rounding {
    [Rounding::Nearest, Rounding::Down, Rounding::Up, Rounding::Zero][code as usize & 3]
}

/// Rounding mode from this bit on. f32 add and mul have rn and rz only; the other two codes are read as the description
/// recommends. (13.16)
pub(crate) const fn rnd<const BIT: u8>() -> P {
    word(
        const {
            &Words {
                name: "rounding",
                field: at(BIT, 2),
                texts: &[Some("rn"), Some("rm"), Some("rp"), Some("rz")],
                set: |draft, code| draft.rounding = rounding(code),
            }
        },
    )
}

/// Rounding mode to a whole number.
pub(crate) const RINT17: P = word(&Words {
    name: "rounding",
    field: at(49, 2),
    texts: &[Some("rni"), Some("rmi"), Some("rpi"), Some("rzi")],
    set: |draft, code| draft.rounding = rounding(code),
});

pub(crate) const ICMP: P = word(&Words {
    name: "comparison",
    field: at(46, 3),
    texts: &[
        Some("never"),
        Some("l"),
        Some("e"),
        Some("le"),
        Some("g"),
        Some("lg"),
        Some("ge"),
        Some("always"),
    ],
    set: |draft, code| draft.compare = Compare::from_bits(code as u8),
});

pub(crate) const FCMP: P = word(&Words {
    name: "comparison",
    field: at(46, 4),
    texts: &[
        Some("never"),
        Some("l"),
        Some("e"),
        Some("le"),
        Some("g"),
        Some("lg"),
        Some("ge"),
        Some("lge"),
        Some("u"),
        Some("lu"),
        Some("eu"),
        Some("leu"),
        Some("gu"),
        Some("lgu"),
        Some("geu"),
        Some("always"),
    ],
    set: |draft, code| draft.compare = Compare::from_bits(code as u8),
});

pub(crate) const UNLOCK: P = choice(&Cases {
    name: "unlock",
    cases: &[
        case_in!(SM12, 0, 0, &[flag!("unlock", 55, |draft, value| draft.unlock = value != 0)]),
        case!(0, 0, &[]),
    ],
});

/// Type of an l[] or g[] access; 7 is not one.
pub(crate) const LG_TYPE: P = word(&Words {
    name: "type",
    field: at(53, 3),
    texts: &[Some("u8"), Some("s8"), Some("u16"), Some("s16"), Some("b64"), Some("b128"), Some("b32"), None],
    set: |draft, code| {
        use Access::{B32, B64, B128, S8, S16, U8, U16};
        draft.access = [U8, S8, U16, S16, B64, B128, B32, B32][code as usize & 7];
    },
});

macro_rules! atomic_type {
    ($($text:expr),*) => {
        word(&Words {
            name: "type",
            field: at(53, 3),
            texts: &[None, None, None, None, $($text),*],
            set: |draft, code| {
                draft.wide = code == 4;
                draft.signed[0] = code == 7;
                draft.access = if code == 4 { Access::B64 } else { Access::B32 };
            },
        })
    };
}
pub(crate) const AT_ADD: P = choice(&Cases {
    name: "type",
    cases: &[
        case_in!(SM12, 0, 0, &[atomic_type!(Some("u64"), None, Some("u32"), Some("s32"))]),
        case!(0, 0, &[AT_MM]),
    ],
});
pub(crate) const AT_B: P = choice(&Cases {
    name: "type",
    cases: &[
        case_in!(SM12, 0, 0, &[atomic_type!(Some("b64"), None, Some("b32"), None)]),
        case!(0, 0, &[AT_B32]),
    ],
});
pub(crate) const AT_MM: P = atomic_type!(None, None, Some("u32"), Some("s32"));
pub(crate) const AT_B32: P = atomic_type!(None, None, Some("b32"), None);
pub(crate) const AT_U32: P = atomic_type!(None, None, Some("u32"), None);

// Quad operations.

/// What lane LANE does, in the two bits from BIT on. The codes of subr and sub are the reverse of integer add's. (6.3)
pub(crate) const fn qop<const LANE: usize, const BIT: u8>() -> P {
    word(
        const {
            &Words {
                name: [
                    "operation of lane 0",
                    "operation of lane 1",
                    "operation of lane 2",
                    "operation of lane 3",
                ][LANE],
                field: at(BIT, 2),
                texts: &[Some("add"), Some("subr"), Some("sub"), Some("mov2")],
                set: |draft, code| {
                    draft.quad[LANE] =
                        [QuadOp::Add, QuadOp::Subr, QuadOp::Sub, QuadOp::Mov2][code as usize & 3];
                },
            }
        },
    )
}

/// Whose source 1; w0\[17\] does not count for the neighbours.
pub(crate) const QLANE: P = choice(&Cases {
    name: "source lane",
    cases: &[
        case!(
            0,
            1 << 18,
            &[word(&Words {
                name: "source lane",
                field: at(16, 2),
                texts: &[Some("l0"), Some("l1"), Some("l2"), Some("l3")],
                set: |draft, lane| draft.quad_from = QuadSource::Lane(lane as u8),
            })]
        ),
        case!(
            1 << 18,
            1 << 18,
            &[word(&Words {
                name: "source lane",
                field: at(16, 1),
                texts: &[Some("dx"), Some("dy")],
                set: |draft, code| draft.quad_from = if code == 0 { QuadSource::Dx } else { QuadSource::Dy },
            })]
        ),
    ],
});

// Textures. (6.9)

/// live or all, in this bit.
pub(crate) const fn tex_live<const BIT: u8>() -> P {
    word(
        const {
            &Words {
                name: "lanes that take part",
                field: at(BIT, 1),
                texts: &[Some("all"), Some("live")],
                set: |draft, value| draft.tex.live = value != 0,
            }
        },
    )
}

pub(crate) const TEX_DERIV: P = flag!("deriv", 35, |draft, value| draft.tex.deriv = value != 0);

pub(crate) const TEX: P = number(&Number {
    name: "texture",
    field: at(9, 8),
    style: Style::Register("$t", ""),
    set: |draft, n| draft.tex.texture = n as u8,
});

pub(crate) const SAMP: P = number(&Number {
    name: "sampler",
    field: at(17, 5),
    style: Style::Register("$s", ""),
    set: |draft, n| draft.tex.sampler = n as u8,
});

macro_rules! texel_offset {
    ($axis:literal, $bit:literal) => {
        number(&Number {
            name: "texel offset",
            field: at($bit, 4),
            style: Style::Signed,
            set: |draft, n| draft.tex.offset[$axis] = n as i8,
        })
    };
}
pub(crate) const TOFFX: P = texel_offset!(0, 56);
pub(crate) const TOFFY: P = texel_offset!(1, 52);
pub(crate) const TOFFZ: P = texel_offset!(2, 48);

/// The only source of texsize.
pub(crate) const TEX_LEVEL: P = number(&Number {
    name: "level of detail",
    field: at(2, 7),
    style: R,
    set: |draft, n| {
        draft.tex.base = n as u8;
        draft.tex.count = 1;
    },
});

const SHORT_BASE: Bits = at(2, 6);
const LONG_BASE: Bits = at(2, 7);
const COUNT: Bits = at(22, 2);
const MASK: Bits = at(25, 2).and(46, 2);

/// Destination components: written ones take consecutive registers from the base on.
pub(crate) const LTDST: P = Part::Custom(&Custom {
    name: "destination components $r0:$r1:#:#",
    bits: LONG_BASE.mask() | MASK.mask(),
    claims: |word| MASK.mask() | if MASK.get(word) == 0 { 0 } else { LONG_BASE.mask() },
    print: |word, out| print_components(LONG_BASE.get(word), MASK.get(word), 4, out),
    parse: |reader| {
        let (base, mask, count) = parse_components(reader)?;
        let base = base.map(|base| told(LONG_BASE, base)).unwrap_or(Some(Told::default()))?;
        (count == 4).then(|| with(base, told(MASK, mask)))?
    },
    set: |draft, word| {
        draft.tex.base = LONG_BASE.get(word) as u8;
        draft.tex.mask = MASK.get(word) as u8;
    },
});

/// Destination of the short form: all four components.
pub(crate) const STDST: P = Part::Custom(&Custom {
    name: "destination components $r0:$r1:$r2:$r3",
    bits: SHORT_BASE.mask(),
    claims: |_| SHORT_BASE.mask(),
    print: |word, out| print_components(SHORT_BASE.get(word), 15, 4, out),
    parse: |reader| match parse_components(reader)? {
        (Some(base), 15, 4) => told(SHORT_BASE, base),
        _ => None,
    },
    set: |draft, word| draft.tex.base = SHORT_BASE.get(word) as u8,
});

/// One to four consecutive registers from the destination's base on.
macro_rules! texture_sources {
    ($base:expr) => {
        Part::Custom(&Custom {
            name: "source registers $r0:$r1",
            bits: $base.mask() | COUNT.mask(),
            claims: |_| $base.mask() | COUNT.mask(),
            print: |word, out| {
                let count = COUNT.get(word) + 1;
                print_components($base.get(word), (1 << count) - 1, count, out);
            },
            parse: |reader| {
                let (base, mask, count) = parse_components(reader)?;
                if mask != (1 << count) - 1 {
                    return None;
                }
                with(told($base, base?)?, told(COUNT, count - 1))
            },
            set: |draft, word| {
                draft.tex.base = $base.get(word) as u8;
                draft.tex.count = COUNT.get(word) as u8 + 1;
            },
        })
    };
}

/// Sources of the long form.
pub(crate) const LTSRC: P = texture_sources!(LONG_BASE);
/// Sources of the short form.
pub(crate) const STSRC: P = texture_sources!(SHORT_BASE);

fn told(field: Bits, value: u32) -> Option<Told> {
    let fixed = field.put(value);
    (field.get(fixed) == value).then_some(Told { mask: field.mask(), fixed })
}

fn with(one: Told, other: Option<Told>) -> Option<Told> {
    let other = other?;
    Some(Told { mask: one.mask | other.mask, fixed: one.fixed | other.fixed })
}

/// `$r4:#:$r5`: `count` components, those in `mask` in consecutive registers.
fn print_components(base: u32, mask: u32, count: u32, out: &mut String) {
    let mut register = base;
    for component in 0..count {
        if component > 0 {
            out.push(':');
        }
        if mask >> component & 1 != 0 {
            out.push_str("$r");
            push_decimal(register, out);
            register += 1;
        } else {
            out.push('#');
        }
    }
}

/// First register (if any), mask and number of components; `None` if they are not consecutive, or more than four.
fn parse_components(reader: &mut Reader) -> Option<(Option<u32>, u32, u32)> {
    let mut base = None;
    let mut mask = 0_u32;
    let mut count = 0;
    loop {
        if !reader.eat("#") {
            let register = reader.register("$r")?;
            let base = *base.get_or_insert(register);
            if register != base + mask.count_ones() {
                return None;
            }
            mask |= 1_u32 << count;
        }
        count += 1;
        if count == 4 || !reader.eat(":") {
            return Some((base, mask, count));
        }
    }
}

// Control flow.

pub(crate) const LIM: P = flag!("lim", 38, |draft, value| draft.lim = value != 0);
pub(crate) const BAR_INC: P = flag!("inc", 25, |draft, value| draft.barrier[0] = value != 0);
pub(crate) const BAR_WAIT: P = flag!("wait", 26, |draft, value| draft.barrier[1] = value != 0);

/// Second words 1 to 7 of opcode 7, which multiply as u24: the secondary opcode keeps them apart.
pub(crate) const MUL_U24_ALIAS: P = word(&Words {
    name: "secondary opcode",
    field: at(61, 3),
    texts: &[
        None,
        Some("u24.1"),
        Some("u24.2"),
        Some("u24.3"),
        Some("u24.4"),
        Some("u24.5"),
        Some("u24.6"),
        Some("u24.7"),
    ],
    set: |_, _| {},
});
