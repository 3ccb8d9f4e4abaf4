//! Registers and immediates as sources. (3.1, 3.2)

use reconverge_isa::row::{Number, Style, Words, at};

use crate::inst::{Half, Operand, Special};

use super::*;

// SLOT is the index in `Inst::src`. POSITION and LENGTH describe the field.

pub(super) const fn r32<const SLOT: usize, const POSITION: u8, const LENGTH: u8>() -> P {
    number!(SOURCES[SLOT], at(POSITION, LENGTH), R, |draft, n| draft.inst.src[SLOT] = Operand::R32(n as u8))
}

pub(super) const fn r16<const SLOT: usize, const POSITION: u8, const LENGTH: u8>() -> P {
    number!(SOURCES[SLOT], at(POSITION, LENGTH), RH, |draft, n| draft.inst.src[SLOT] =
        Operand::R16(Half(n as u8)))
}

pub(super) const fn r64<const SLOT: usize, const POSITION: u8>() -> P {
    number!(SOURCES[SLOT], at(POSITION, 7), RD, |draft, n| draft.inst.src[SLOT] = Operand::R64(n as u8))
}

pub(crate) const SSRC1: P = r32::<0, 9, 6>();
pub(crate) const SSRC1_2: P = r32::<1, 9, 6>();
pub(crate) const SHSRC1: P = r16::<0, 9, 6>();
pub(crate) const SSRC2: P = r32::<1, 16, 6>();
pub(crate) const SHSRC2: P = r16::<1, 16, 6>();
/// The destination register as a source. In short forms of mad and sad, this source is the addend.
pub(crate) const SDST_3: P = r32::<2, 2, 6>();
pub(crate) const LSRC1: P = r32::<0, 9, 7>();
pub(crate) const LSRC1_2: P = r32::<1, 9, 7>();
pub(super) const LHSRC1: P = r16::<0, 9, 7>();
pub(crate) const LDSRC1: P = r64::<0, 9>();
pub(crate) const LDSRC2: P = r64::<1, 16>();
pub(crate) const LSRC3_2: P = r32::<1, 46, 7>();
pub(crate) const LDSRC3: P = r64::<2, 46>();
pub(crate) const LDSRC3_2: P = r64::<1, 46>();

pub(crate) const AREG: P =
    number!("source 1", AREG_FIELD, A, |draft, n| draft.inst.src[0] = Operand::A(n as u8));

/// The `$c` that is read as data. This register is the `$c` of the predicate.
pub(crate) const COND: P = number!("condition register", at(44, 2), CC, |draft, c| {
    draft.inst.guard.c = c as u8;
    draft.inst.src[0] = Operand::C(c as u8);
});

pub(crate) const SREG: P = word!(
    "special register",
    at(46, 4),
    &[
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
    |draft, n| draft.inst.src[0] = Operand::Special(Special::from_code(n as u8)),
);

// Immediates.

/// A part for an immediate source.
macro_rules! immediate {
    ($slot:literal, $field:expr) => {
        immediate!($slot, $field, "immediate")
    };
    ($slot:literal, $field:expr, $name:literal) => {
        number!($name, $field, Style::Hex, |draft, n| draft.inst.src[$slot] = Operand::Imm(n))
    };
}

pub(crate) const IMM: P = immediate!(1, at(16, 6).and(34, 26));
/// The immediate that is the only source of mov.
pub(crate) const IMM_1: P = immediate!(0, at(16, 6).and(34, 26));
pub(crate) const OFFS: P = immediate!(1, at(9, 16));
pub(super) const SHCNT: P = immediate!(1, at(16, 7), "shift count");
pub(crate) const HSHCNT: P = immediate!(1, at(16, 4), "shift count");
