//! Modifiers. (Appendix B)

use reconverge_isa::row::{Case, Cases, Words, at};

use crate::inst::Access;
use crate::lane::{Compare, Rounding};
use crate::lane::integer::{Addition, Logic};
use crate::lane::quad::{QuadOp, QuadSource};

use super::*;

pub(super) const fn addition(code: u32) -> Addition {
    [Addition::Add, Addition::Sub, Addition::Subr, Addition::Addc][code as usize & 3]
}
pub(super) const ADDITIONS: &[Option<&str>] = &[Some("add"), Some("sub"), Some("subr"), Some("addc")];
pub(crate) const ADDOP: P = word!(
    "operation",
    at(22, 1).and(28, 1),
    ADDITIONS,
    |draft, code| draft.addition = addition(code),
);
pub(crate) const ADDOP2: P = word!("operation", at(58, 2), ADDITIONS, |draft, code| draft.addition = addition(code));

pub(crate) const LOGOP: P = word!(
    "operation",
    at(46, 2),
    &[Some("and"), Some("or"), Some("xor"), Some("mov2")],
    |draft, code| {
        draft.logic = [Logic::And, Logic::Or, Logic::Xor, Logic::Mov2][code as usize & 3];
    },
);

/// Returns the part for `sat`, at bit BIT.
pub(crate) const fn sat<const BIT: u8>() -> P {
    flag!("sat", BIT, |draft, value| draft.sat = value != 0)
}

/// Returns the part for `sat`, at bit BIT. Chips before G200 ignore this bit.
pub(crate) const fn sat_g200<const BIT: u8>() -> P {
    choice!("saturation", [case_in!(SM12, 0, 0, &[sat::<BIT>()]), case!(0, 0, &[])])
}

/// Returns the part for `neg` of a source, at bit BIT.
pub(crate) const fn neg<const BIT: u8, const SLOT: usize>() -> P {
    flag!("neg", BIT, |draft, value| draft.inst.modifiers[SLOT].neg = value != 0)
}

/// Returns the part for `abs` of a source, at bit BIT.
pub(crate) const fn abs<const BIT: u8, const SLOT: usize>() -> P {
    flag!("abs", BIT, |draft, value| draft.inst.modifiers[SLOT].abs = value != 0)
}

/// Returns the part for `not` of a source, at bit BIT.
pub(crate) const fn not<const BIT: u8, const SLOT: usize>() -> P {
    flag!("not", BIT, |draft, value| draft.not[SLOT] = value != 0)
}

/// Returns the part that selects the upper bits of a 24-bit product, at bit BIT.
pub(crate) const fn high<const BIT: u8>() -> P {
    flag!("high", BIT, |draft, value| draft.high = value != 0)
}

/// Returns the part that selects the unit of a move, at bit BIT. The bit has no effect on the result. (3.4)
pub(crate) const fn sfu<const BIT: u8>() -> P {
    flag!("sfu", BIT, |_, _| {})
}

/// The part for the signedness of a source, at a bit.
macro_rules! signedness {
    ($name:ident, $unsigned:literal, $signed:literal, $doc:literal) => {
        #[doc = $doc]
        pub(crate) const fn $name<const BIT: u8, const SLOT: usize>() -> P {
            word!(
                "type",
                at(BIT, 1),
                &[Some($unsigned), Some($signed)],
                |draft, value| draft.signed[SLOT] = value != 0,
            )
        }
    };
}
signedness!(us16, "u16", "s16", "u16 or s16, in this bit.");
signedness!(us24, "u24", "s24", "u24 or s24, in this bit.");
signedness!(us32, "u32", "s32", "u32 or s32, in this bit.");

pub(super) const fn rounding(code: u32) -> Rounding {
    [Rounding::Nearest, Rounding::Down, Rounding::Up, Rounding::Zero][code as usize & 3]
}

/// Returns the part for the rounding mode. The lowest bit of the rounding mode is bit BIT of the instruction. For the
/// two codes other than rn and rz, this part follows the recommendation of the machine's description. (13.16)
pub(crate) const fn rnd<const BIT: u8>() -> P {
    word!(
        "rounding",
        at(BIT, 2),
        &[Some("rn"), Some("rm"), Some("rp"), Some("rz")],
        |draft, code| draft.rounding = rounding(code),
    )
}

/// Rounding mode for a result that is a whole number.
pub(crate) const RINT17: P = word!(
    "rounding",
    at(49, 2),
    &[Some("rni"), Some("rmi"), Some("rpi"), Some("rzi")],
    |draft, code| draft.rounding = rounding(code),
);

pub(crate) const ICMP: P = word!(
    "comparison",
    at(46, 3),
    &[Some("never"), Some("l"), Some("e"), Some("le"), Some("g"), Some("lg"), Some("ge"), Some("always")],
    |draft, code| draft.compare = Compare::from_bits(code as u8),
);

pub(crate) const FCMP: P = word!(
    "comparison",
    at(46, 4),
    &[
        Some("never"), Some("l"), Some("e"), Some("le"), Some("g"), Some("lg"), Some("ge"), Some("lge"),
        Some("u"), Some("lu"), Some("eu"), Some("leu"), Some("gu"), Some("lgu"), Some("geu"), Some("always"),
    ],
    |draft, code| draft.compare = Compare::from_bits(code as u8),
);

pub(crate) const UNLOCK: P = choice!("unlock", [
    case_in!(SM12, 0, 0, &[flag!("unlock", 55, |draft, value| draft.unlock = value != 0)]),
    case!(0, 0, &[]),
]);

/// Type of an l[] or g[] access. The value 7 is not a type.
pub(crate) const LG_TYPE: P = word!(
    "type",
    at(53, 3),
    &[Some("u8"), Some("s8"), Some("u16"), Some("s16"), Some("b64"), Some("b128"), Some("b32"), None],
    |draft, code| {
        use Access::{B32, B64, B128, S8, S16, U8, U16};
        draft.access = [U8, S8, U16, S16, B64, B128, B32, B32][code as usize & 7];
    },
);

macro_rules! atomic_type {
    ($($text:expr),*) => {
        word!("type", at(53, 3), &[None, None, None, None, $($text),*], |draft, code| {
            draft.wide = code == 4;
            draft.signed[0] = code == 7;
            draft.access = if code == 4 { Access::B64 } else { Access::B32 };
        })
    };
}
pub(crate) const AT_ADD: P = choice!("type", [
    case_in!(SM12, 0, 0, &[atomic_type!(Some("u64"), None, Some("u32"), Some("s32"))]),
    case!(0, 0, &[AT_MM]),
]);
pub(crate) const AT_B: P = choice!("type", [
    case_in!(SM12, 0, 0, &[atomic_type!(Some("b64"), None, Some("b32"), None)]),
    case!(0, 0, &[AT_B32]),
]);
pub(crate) const AT_MM: P = atomic_type!(None, None, Some("u32"), Some("s32"));
pub(crate) const AT_B32: P = atomic_type!(None, None, Some("b32"), None);
pub(crate) const AT_U32: P = atomic_type!(None, None, Some("u32"), None);

// Quad operations.

/// Returns the part for the operation of lane LANE, in the two bits from BIT on. Compared with integer add, the codes
/// of subr and sub are swapped. (6.3)
pub(crate) const fn qop<const LANE: usize, const BIT: u8>() -> P {
    word!(
        ["operation of lane 0", "operation of lane 1", "operation of lane 2", "operation of lane 3"][LANE],
        at(BIT, 2),
        &[Some("add"), Some("subr"), Some("sub"), Some("mov2")],
        |draft, code| {
            draft.quad[LANE] = [QuadOp::Add, QuadOp::Subr, QuadOp::Sub, QuadOp::Mov2][code as usize & 3];
        },
    )
}

/// The lane of the quad from which source 1 is taken. For the two neighbours, w0\[17\] is ignored.
pub(crate) const QLANE: P = choice!("source lane", [
    case!(0, 1 << 18, &[word!(
        "source lane",
        at(16, 2),
        &[Some("l0"), Some("l1"), Some("l2"), Some("l3")],
        |draft, lane| draft.quad_from = QuadSource::Lane(lane as u8),
    )]),
    case!(1 << 18, 1 << 18, &[word!(
        "source lane",
        at(16, 1),
        &[Some("dx"), Some("dy")],
        |draft, code| draft.quad_from = if code == 0 { QuadSource::Dx } else { QuadSource::Dy },
    )]),
]);

/// The secondary opcode of opcode 7. Each value from 1 to 7 of this field selects a u24 multiplication. The text has a
/// different word for each value.
pub(crate) const MUL_U24_ALIAS: P = word!(
    "secondary opcode",
    at(61, 3),
    &[None, Some("u24.1"), Some("u24.2"), Some("u24.3"), Some("u24.4"), Some("u24.5"), Some("u24.6"), Some("u24.7")],
    |_, _| {},
);
