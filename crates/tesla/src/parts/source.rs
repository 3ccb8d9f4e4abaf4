//! Sources of instructions. Bits outside the source's field determine whether the source is a register or memory. Each
//! source has a list of cases. The first case whose bits match applies. (3.3, Appendix C)

use reconverge_isa::row::{Case, Cases, Number, Part, Scope, Words, at};

use crate::inst::Operand;
use crate::lane::convert::{Integer, Size};

use super::*;

/// w0\[23\] selects c[] as source 2. In short forms, w0\[24\] selects memory as source 1. In long forms, w0\[24\]
/// selects c[] as source 3. In geometry programs, both bits together select p[].
pub(super) const W0_23: u64 = 1 << 23;
pub(super) const W0_24: u64 = 1 << 24;
pub(super) const BOTH: u64 = W0_23 | W0_24;
/// w1\[21\] selects s[] or a[] as source 1 of a long form.
pub(super) const W1_21: u64 = 1 << 53;

/// The cases of source 1, in order. The cases before s[] come first. If `$first` is set, the cases of s[] follow. The
/// cases after s[] come last. The two bits from `$type` on hold the access of s[]. `$select` is a mask of further bits
/// that select a case.
macro_rules! source1 {
    ($shared:ident, $first:expr, $type:literal, $select:expr, [$($before:expr),* $(,)?], [$($after:expr),*]) => {{
        const SELECT: u64 = $select | INCREMENT | 3 << $type;
        choice!("kind of source 1", [
            $($before,)*
            case_in!(C, $first,                          SELECT, &[Part::Text("u8"), $shared::<U8, false>()]),
            case_in!(C, $first | 1 << $type,             SELECT, &[Part::Text("u16"), $shared::<U16, false>()]),
            case_in!(C, $first | 2 << $type,             SELECT, &[Part::Text("s16"), $shared::<S16, false>()]),
            case_in!(C, $first | 3 << $type,             SELECT, &[Part::Text("b32"), $shared::<B32, false>()]),
            case_in!(C, $first | INCREMENT,              SELECT, &[Part::Text("u8"), $shared::<U8, true>()]),
            case_in!(C, $first | INCREMENT | 1 << $type, SELECT, &[Part::Text("u16"), $shared::<U16, true>()]),
            case_in!(C, $first | INCREMENT | 2 << $type, SELECT, &[Part::Text("s16"), $shared::<S16, true>()]),
            case_in!(C, $first | INCREMENT | 3 << $type, SELECT, &[Part::Text("b32"), $shared::<B32, true>()]),
            $($after),*
        ])
    }};
}

/// Source 1 of a short form.
pub(super) const fn short_source1<const WIDE: bool>() -> P {
    source1!(sshared, W0_24, 13, BOTH, [
        case!(0, W0_24, &[if WIDE { SSRC1 } else { SHSRC1 }]),
        case_in!(G, BOTH, BOTH, &[SPRIM]),
    ], [case_in!(VG, W0_24, BOTH, &[SATTR])])
}
pub(crate) const SSRC1W: P = short_source1::<true>();
pub(crate) const SSRC1H: P = short_source1::<false>();

/// Source 1 of an immediate form. w0\[23\] is ignored.
pub(super) const fn immediate_source1<const WIDE: bool>() -> P {
    source1!(sshared, W0_24, 13, W0_24, [
        case!(0, W0_24, &[if WIDE { SSRC1 } else { SHSRC1 }]),
        case_in!(G, W0_24, W0_24, &[SPRIM]),
    ], [])
}
pub(crate) const ISRC1W: P = immediate_source1::<true>();
pub(crate) const ISRC1H: P = immediate_source1::<false>();

/// Source 2 of a short form. If w0\[24\] is also set, w0\[23\] belongs to source 1.
pub(super) const fn short_source2<const WIDE: bool>() -> P {
    choice!("kind of source 2", [
        case!(0, W0_23, &[if WIDE { SSRC2 } else { SHSRC2 }]),
        case!(BOTH, BOTH, &[if WIDE { SSRC2 } else { SHSRC2 }]),
        case!(W0_23, BOTH | INCREMENT, &[if WIDE { sconst::<B32, false>() } else { sconst::<U16, false>() }]),
        case!(W0_23 | INCREMENT, BOTH | INCREMENT, &[if WIDE { sconst::<B32, true>() } else { sconst::<U16, true>() }]),
    ])
}
pub(crate) const SSRC2W: P = short_source2::<true>();
pub(crate) const SSRC2H: P = short_source2::<false>();

/// An undefined combination: c[] in two sources outside geometry programs.
pub(super) const UNDEFINED: P = word!("pair of c[] sources", at(23, 1), &[None, None], |_, _| {});

/// Source 1 of a long form. ALONE means that the instruction has no source 2 and no source 3. Without other sources,
/// w0\[16..24\] are ignored outside geometry programs (2.1, measured for conversions). With other sources, setting both
/// w0\[23\] and w0\[24\] has no meaning outside geometry programs.
///
/// Fragment programs do not have s[] or a[], and ignore w1\[21\].
pub(super) const fn long_source1<const WIDE: bool, const ALONE: bool>() -> P {
    source1!(lshared, W1_21, 14, W1_21, [
        case_in!(G, BOTH, BOTH, &[LPRIM]),
        case_in!(if ALONE { Scope(0) } else { ALL }, BOTH, BOTH, &[UNDEFINED]),
        case_in!(F, 0, 0, &[if WIDE { LSRC1 } else { LHSRC1 }]),
        case!(0, W1_21, &[if WIDE { LSRC1 } else { LHSRC1 }]),
    ], [case_in!(VG, W1_21, W1_21, &[LATTR])])
}
pub(crate) const LSRC1W: P = long_source1::<true, false>();
pub(crate) const LSRC1H: P = long_source1::<false, false>();
/// Source 1 of an instruction that has no source 2 and no source 3.
pub(crate) const LSRC1W_ONLY: P = long_source1::<true, true>();
/// Source 1 with 16 bits, of an instruction that has no source 2 and no source 3.
pub(crate) const LSRC1H_ONLY: P = long_source1::<false, true>();

/// A source of a long form, as source number SLOT + 1. POSITION is 16 for source 2 and 46 for source 3. MINE is the bit
/// that selects c[].
pub(super) const fn long_source<const SLOT: usize, const POSITION: u8, const ACCESS: usize>() -> P {
    choice!(if SLOT == 1 { "kind of source 2" } else { "kind of source 3" }, {
        let mine = if POSITION == 16 { W0_23 } else { W0_24 };
        [
            case!(0, mine, &[if ACCESS == B32 { r32::<SLOT, POSITION, 7>() } else { r16::<SLOT, POSITION, 7>() }]),
            case_in!(C, mine,               BOTH | INCREMENT | W1_21, &[lconst::<SLOT, POSITION, ACCESS, 3, false>()]),
            case_in!(C, mine | INCREMENT,   BOTH | INCREMENT | W1_21, &[lconst::<SLOT, POSITION, ACCESS, 3, true>()]),
            // The operand in s[] uses the `$a` field.
            case_in!(C, mine | W1_21,       BOTH | W1_21,             &[lconst::<SLOT, POSITION, ACCESS, 0, false>()]),
            case_in!(VGF, mine,             BOTH | INCREMENT,         &[lconst::<SLOT, POSITION, ACCESS, 3, false>()]),
            case_in!(VGF, mine | INCREMENT, BOTH | INCREMENT,         &[lconst::<SLOT, POSITION, ACCESS, 3, true>()]),
            // Source 1 is p[] and uses the `$a` field. w1[21] selects c[].
            case_in!(G, BOTH,               BOTH | W1_21,             &[lconst::<SLOT, POSITION, ACCESS, 0, false>()]),
            case!(BOTH | W1_21,             BOTH | W1_21,             &[if ACCESS == B32 { r32::<SLOT, POSITION, 7>() } else { r16::<SLOT, POSITION, 7>() }]),
        ]
    })
}
pub(crate) const LSRC2W: P = long_source::<1, 16, B32>();
pub(crate) const LSRC2H: P = long_source::<1, 16, U16>();
pub(crate) const LSRC3W: P = long_source::<2, 46, B32>();
pub(crate) const LSRC3W_2: P = long_source::<1, 46, B32>();
pub(crate) const LSRC3H_2: P = long_source::<1, 46, U16>();

pub(crate) const SHCNTW: P = choice!("kind of shift count", [
    case!(0, 1 << 52, &[LSRC2W]),
    case!(1 << 52, 1 << 52, &[SHCNT]),
]);
pub(crate) const SHCNTH: P = choice!("kind of shift count", [
    case!(0, 1 << 52, &[LSRC2H]),
    case!(1 << 52, 1 << 52, &[SHCNT]),
]);

/// The value that st s[] stores. w1\[21\] selects a half register.
pub(crate) const ST_SRC: P = choice!("kind of source 2", [
    case!(0, W1_21, &[r16::<1, 46, 7>()]),
    case!(W1_21, W1_21, &[LSRC3_2]),
]);

pub(super) const TYPE: u64 = 7 << 53;

/// The destination register of a load or atomic operation on l[] or g[]. The width of the register depends on the type
/// of the access.
pub(crate) const LG_REG: P = choice!("register width", [
    case!(4 << 53, TYPE, &[LDDST]),
    case!(5 << 53, TYPE, &[LQDST]),
    case!(0, 0, &[LDST]),
]);
/// The data register of a store to l[] or g[]. The register is source 2, and its number is in the destination field.
pub(crate) const LG_REG_2: P = choice!("register width", [
    case!(4 << 53, TYPE, &[r64::<1, 2>()]),
    case!(5 << 53, TYPE, &[number!("source 2", at(2, 7), RQ, |draft, n| draft.inst.src[1] = Operand::R128(n as u8))]),
    case!(0, 0, &[r32::<1, 2, 7>()]),
]);
pub(crate) const LG_SRC2: P = choice!("register width", [
    case!(4 << 53, TYPE, &[LDSRC2]),
    case!(0, 0, &[r32::<1, 16, 7>()]),
]);
pub(crate) const LG_SRC3: P = choice!("register width", [
    case!(4 << 53, TYPE, &[LDSRC3]),
    case!(0, 0, &[r32::<2, 46, 7>()]),
]);

/// Integer source of a conversion. A set bit w1\[14\] means 32 bits, w1\[15\] means a byte, and w1\[16\] means that the
/// source is signed.
pub(crate) const CVT_ISRC: P = choice!("source type", [
    case!(0,       7 << 46, &[Part::Text("u16"), LSRC1H_ONLY, from::<1, false>()]),
    case!(1 << 46, 7 << 46, &[Part::Text("u32"), LSRC1W_ONLY, from::<2, false>()]),
    case!(2 << 46, 7 << 46, &[Part::Text("u8"), LSRC1H_ONLY, from::<0, false>()]),
    case!(3 << 46, 7 << 46, &[Part::Text("u8"), LSRC1, from::<0, false>()]),
    case!(4 << 46, 7 << 46, &[Part::Text("s16"), LSRC1H_ONLY, from::<1, true>()]),
    case!(5 << 46, 7 << 46, &[Part::Text("s32"), LSRC1W_ONLY, from::<2, true>()]),
    case!(6 << 46, 7 << 46, &[Part::Text("s8"), LSRC1H_ONLY, from::<0, true>()]),
    case!(7 << 46, 7 << 46, &[Part::Text("s8"), LSRC1, from::<0, true>()]),
]);

pub(super) const fn from<const SIZE: usize, const SIGNED: bool>() -> P {
    Part::Set(|draft| draft.from = Integer { size: [Size::B8, Size::B16, Size::B32][SIZE], signed: SIGNED })
}

/// The carry of a short or immediate addc.
pub(crate) const CARRY_S: P = choice!("carry", [
    case!(1 << 22 | 1 << 28, 1 << 22 | 1 << 28, &[Part::Text("$c0")]),
    case!(0, 1 << 22, &[]),
    case!(1 << 22, 1 << 22 | 1 << 28, &[]),
]);
/// The carry of a long addc. The carry comes from the `$c` of the predicate.
pub(crate) const CARRY_L: P = choice!("carry", [
    case!(1 << 22 | 1 << 28, 1 << 22 | 1 << 28, &[CONDITION_C]),
    case!(0, 1 << 22, &[]),
    case!(1 << 22, 1 << 22 | 1 << 28, &[]),
]);
/// Source 3 of instructions in which w1\[26..27\] select the addition.
pub(crate) const CARRY_M: P = choice!("carry", [
    case!(3 << 58, 3 << 58, &[CONDITION_C]),
    case!(0, 1 << 58, &[]),
    case!(1 << 58, 3 << 58, &[]),
]);
