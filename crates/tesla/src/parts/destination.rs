//! Destinations of results and flags. (3.1)

use reconverge_isa::row::{Case, Cases, Memory, Number, Part, at};

use crate::draft::Draft;
use crate::inst::{Dst, Half};

use super::*;

macro_rules! destination {
    ($length:literal, $style:expr, |$n:ident| $dst:expr) => {
        number!("destination", at(2, $length), $style, |draft, $n| draft.inst.dst = $dst)
    };
}

pub(crate) const SDST: P = destination!(6, R, |n| Dst::R32(n as u8));
pub(crate) const SHDST: P = destination!(6, RH, |n| Dst::R16(Half(n as u8)));
pub(crate) const LDST: P = destination!(7, R, |n| Dst::R32(n as u8));
pub(crate) const LHDST: P = destination!(7, RH, |n| Dst::R16(Half(n as u8)));
pub(crate) const LDDST: P = destination!(7, RD, |n| Dst::R64(n as u8));
pub(super) const LQDST: P = destination!(7, RQ, |n| Dst::R128(n as u8));

pub(crate) const ADST: P = number!("destination", at(2, 3), A, |draft, n| draft.inst.dst = Dst::A(n as u8));

pub(super) const BUCKET: P = Part::Set(|draft| draft.inst.dst = Dst::Discard);
pub(super) const DISCARD: &[P] = &[Part::Text("#"), BUCKET];

pub(super) const OUT32: P = Part::Memory(&Memory {
    shift: 2,
    set: |draft, at| draft.inst.dst = Dst::Out32(at.offset as u16),
    ..output()
});

/// The instruction rounds the address down to a word, and writes the 16-bit result to both halves of the word. (3.1)
pub(super) const OUT16: P = Part::Memory(&Memory {
    shift: 1,
    set: |draft, at| draft.inst.dst = Dst::Out16(at.offset as u16 & !3),
    ..output()
});

pub(super) const fn output() -> Memory<Draft> {
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

pub(crate) const LLDST: P = choice!(
    "destination type",
    [
        case!(0, 1 << 35, &[LDST]),
        case!(1 << 35 | 127 << 2, 1 << 35 | 127 << 2, DISCARD),
        case!(1 << 35, 1 << 35, &[OUT32]),
    ]
);

pub(crate) const LLHDST: P = choice!(
    "destination type",
    [
        case!(0, 1 << 35, &[LHDST]),
        case!(1 << 35 | 127 << 2, 1 << 35 | 127 << 2, DISCARD),
        case!(1 << 35, 1 << 35, &[OUT16]),
    ]
);

/// A half register as destination. The text of an instruction with this part does not show elsewhere that the
/// destination is a half. If the destination is not a register, the text has `half` before the destination.
pub(crate) const LLHDST_SAID: P = choice!(
    "destination type",
    [
        case!(0, 1 << 35, &[LHDST]),
        case!(1 << 35 | 127 << 2, 1 << 35 | 127 << 2, &[Part::Text("half"), Part::Text("#"), BUCKET]),
        case!(1 << 35, 1 << 35, &[Part::Text("half"), OUT16]),
    ]
);

/// Destination of ld c\[\] and ld s\[\]. w1\[26\] is the width of the destination.
pub(crate) const CSLD_DST: P =
    choice!("destination width", [case!(0, 1 << 58, &[LLHDST_SAID]), case!(1 << 58, 1 << 58, &[LLDST]),]);

/// The `$c` that receives flags, if any.
pub(crate) const MCDST: P =
    choice!("flags output", [case!(1 << 38, 1 << 38, &[FLAGS]), case!(0, 1 << 38, &[]),]);

/// The `$c` that receives flags, if any. This part also shows the `$c` of `ld lock`, which always writes a `$c`.
pub(crate) const FLAGS: P =
    number!("flags register", at(36, 2), CC, |draft, c| draft.inst.cdst = Some(c as u8));

/// The `$c` that is the result.
pub(crate) const CDST: P = number!("destination", at(36, 2), CC, |draft, c| draft.inst.dst = Dst::C(c as u8));
