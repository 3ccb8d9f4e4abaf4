//! Rows of two-word instructions with predicate, `$c` output, exit and join. (2.1, Appendix A)
//!
//! A row has seven parts, in this order: the name, the start of the assembly text, the fixed bits of the instruction,
//! the mask of the fixed bits, the section that describes the instruction, the parts of the assembly text, and the
//! meaning. Rows are in the order of the machine's description.

use reconverge_isa::row::Part;

use crate::inst::{Arith, Group, Idle, Memory, Op, TexOp};
use crate::lane::Width;
use crate::lane::atomic::{Atomic, Atomic64};
use crate::lane::convert::{FloatSize, Size};
use crate::lane::interpolate::Position;
use crate::parts::*;

use super::{Row, atom, atom32, bits16, bits24, i2i, mad, predicated as long, red, red32, tex, wide_integer};

/// A row for a multiplication with an addition. `sat` is the part of the text for saturation, and `factor` stands for
/// the parts for the factors.
macro_rules! imad {
    ($id:literal, $fixed:expr, $mask:literal, [$($sat:expr)?], [$($factor:expr),*], $meaning:expr) => {
        long($id, "add|sub|subr|addc", $fixed, [0xf000_0003, $mask], "5.4", &[
            END, PRED, ADDOP2, $($sat,)? MCDST, LLDST,
            Part::Open, Part::Text("mul"), $($factor,)* Part::Close, LSRC3W, CARRY_M,
        ], $meaning)
    };
}

/// A row for a conversion. `fixed` contains the fixed bits of the second word, and `mask` is the mask of the fixed
/// bits. `part` stands for the parts of the text after the modifiers of the source.
macro_rules! cvt {
    ($id:literal, $fixed:literal, $mask:literal, $section:literal, [$($part:expr),*], $meaning:expr) => {
        long($id, "cvt", [0xa000_0001, $fixed], [0xf000_0003, $mask], $section, &[
            END, PRED, Part::Text("cvt"), neg::<61, 0>(), abs::<52, 0>(), $($part),*
        ], $meaning)
    };
}

/// A row for an atomic operation on a word of g[].
macro_rules! global {
    ($id:literal, $name:literal, $fixed:literal, [$($part:expr),*], $meaning:expr) => {
        long($id, $name, [0xd000_0001, $fixed], [0xf000_0003, 0xe000_003c], "6.8", &[END, PRED, $($part),*], $meaning)
            .only(both(C, SM11))
    };
}

#[rustfmt::skip]
pub(super) static LONG_ROWS: &[Row] = &[
    // Data movement (4)
    long("l.ld.a", "ld", [0x0000_0001, 0x0420_0000], [0xf000_0003, 0xe420_0000], "4",
        &[END, PRED, LANE, Part::Text("ld"), Part::Text("b32"), LLDST, FATTR],
        |_| Op::Memory(Memory::Ld)).only(VG),
    long("l.mov.r.c", "mov", [0x0000_0001, 0x2000_0000], [0xf000_0003, 0xe000_0000], "4",
        &[END, PRED, Part::Text("mov"), LDST, COND],
        |_| Op::Arith(Arith::MovFromC)),
    long("l.mov.r.a", "mov", [0x0000_0001, 0x4000_0000], [0xf000_0003, 0xe000_0000], "4",
        &[END, PRED, Part::Text("mov"), LDST, AREG],
        |_| Op::Arith(Arith::MovFromA)),

    // Special registers (1.5)
    long("l.mov.r.sr", "mov", [0x0000_0001, 0x6000_0000], [0xf000_0003, 0xe000_0000], "1.5",
        &[END, PRED, Part::Text("mov"), LDST, SREG],
        |_| Op::Arith(Arith::MovFromSpecial)),

    // Data movement (4)
    long("l.st.o", "st", [0x0000_0001, 0x80c0_0000], [0xf000_0003, 0xe0c0_0000], "4",
        &[END, PRED, Part::Text("st"), Part::Text("b32"), FOUT32, LSRC3_2],
        |_| Op::Memory(Memory::St)),
    long("l.mov.c.r", "mov", [0x0000_0001, 0xa000_0000], [0xf000_0003, 0xe000_0000], "4",
        &[END, PRED, Part::Text("mov"), CDST, LSRC1],
        |_| Op::Arith(Arith::MovToC)).usually(0x0000_0000, 0x0000_0040),
    long("l.shl.a", "shl", [0x0000_0001, 0xc000_0000], [0xf000_0003, 0xe000_0000], "4",
        &[END, PRED, Part::Text("shl"), ADST, LSRC1W, HSHCNT],
        |_| Op::Arith(Arith::ShlA)),
    long("l.st.s.b8", "st", [0x0000_0001, 0xe040_0000], [0xf000_0003, 0xe040_0000], "4",
        &[END, PRED, Part::Text("st"), Part::Text("b8"), FS8, ST_SRC],
        |_| Op::Memory(Memory::St)).only(C),
    long("l.st.s.b16", "st", [0x0000_0001, 0xe000_0000], [0xf000_0003, 0xe440_0000], "4",
        &[END, PRED, Part::Text("st"), Part::Text("b16"), FS16, ST_SRC],
        |_| Op::Memory(Memory::St)).only(C),
    long("l.st.s.b32", "st", [0x0000_0001, 0xe400_0000], [0xf000_0003, 0xe440_0000], "4",
        &[END, PRED, Part::Text("st"), UNLOCK, Part::Text("b32"), FS32, ST_SRC],
        |d| if d.unlock { Op::Memory(Memory::StUnlock) } else { Op::Memory(Memory::St) }).only(C),
    long("l.mov.b16", "mov", [0x1000_0001, 0x0000_0000], [0xf000_0003, 0xe400_0000], "4",
        &[END, PRED, LANE, Part::Text("mov"), sfu::<57>(), Part::Text("b16"), LLHDST, LSRC1H],
        |_| Op::Arith(Arith::Mov { width: Width::B16 })),
    long("l.mov.b32", "mov", [0x1000_0001, 0x0400_0000], [0xf000_0003, 0xe400_0000], "4",
        &[END, PRED, LANE, Part::Text("mov"), sfu::<57>(), Part::Text("b32"), LLDST, LSRC1W],
        |_| Op::Arith(Arith::Mov { width: Width::B32 })),
    long("l.ld.c", "ld", [0x1000_0001, 0x2000_0000], [0xf000_0003, 0xe000_0000], "4",
        &[END, PRED, Part::Text("ld"), CSLD_DST, FCONST],
        |_| Op::Memory(Memory::Ld)),
    long("l.ld.s.u8", "ld", [0x1000_0001, 0x4000_0000], [0xf000_0003, 0xe000_c000], "4",
        &[END, PRED, Part::Text("ld"), CSLD_DST, Part::Text("u8"), FS8],
        |_| Op::Memory(Memory::Ld)).only(both(C, SM11)),
    long("l.ld.s.u16", "ld", [0x1000_0001, 0x4000_4000], [0xf000_0003, 0xe000_c000], "4",
        &[END, PRED, Part::Text("ld"), CSLD_DST, Part::Text("u16"), FS16],
        |_| Op::Memory(Memory::Ld)).only(both(C, SM11)),
    long("l.ld.s.s16", "ld", [0x1000_0001, 0x4000_8000], [0xf000_0003, 0xe000_c000], "4",
        &[END, PRED, Part::Text("ld"), CSLD_DST, Part::Text("s16"), FS16_SIGNED],
        |_| Op::Memory(Memory::Ld)).only(both(C, SM11)),
    long("l.ld.s.b32", "ld", [0x1000_0001, 0x4000_c000], [0xf000_0003, 0xe080_c000], "4",
        &[END, PRED, Part::Text("ld"), CSLD_DST, Part::Text("b32"), FS32],
        |_| Op::Memory(Memory::Ld)).only(both(C, SM11)),
    long("l.ld.s.lock", "ld", [0x1000_0001, 0x4080_c000], [0xf000_0003, 0xe080_c000], "4",
        &[END, PRED, Part::Text("ld"), Part::Text("lock"), FLAGS, CSLD_DST, Part::Text("b32"), FS32],
        |_| Op::Memory(Memory::LdLock)).only(both(C, SM12)).usually(0x0000_0000, 0x0000_0040),

    // Further instructions (6.10)
    long("l.vote.any", "vote", [0x1000_0201, 0x6000_0000], [0xf000_0603, 0xe000_0000], "6.10",
        &[END, PRED, Part::Text("vote"), Part::Text("any"), CDST],
        |_| Op::Group(Group::Vote { all: false })).only(SM12),
    long("l.vote.all", "vote", [0x1000_0401, 0x6000_0000], [0xf000_0603, 0xe000_0000], "6.10",
        &[END, PRED, Part::Text("vote"), Part::Text("all"), CDST],
        |_| Op::Group(Group::Vote { all: true })).only(SM12),

    // Integer addition (5.1)
    long("l.iadd.b16", "add|sub|subr|addc", [0x2000_0001, 0x0000_0000], [0xe000_0003, 0xe400_0000], "5.1",
        &[END, PRED, ADDOP, Part::Text("b16"), sat::<59>(), MCDST, LLHDST, LSRC1H, LSRC3H_2, CARRY_L],
        |d| Op::Arith(Arith::Add { addition: d.addition, width: Width::B16, sat: d.sat })),
    long("l.iadd.b32", "add|sub|subr|addc", [0x2000_0001, 0x0400_0000], [0xe000_0003, 0xe400_0000], "5.1",
        &[END, PRED, ADDOP, Part::Text("b32"), sat::<59>(), MCDST, LLDST, LSRC1W, LSRC3W_2, CARRY_L],
        |d| Op::Arith(Arith::Add { addition: d.addition, width: Width::B32, sat: d.sat })),

    // Comparisons (5.7)
    long("l.set.16", "set", [0x3000_0001, 0x6000_0000], [0xf000_0003, 0xe400_0000], "5.7",
        &[END, PRED, Part::Text("set"), MCDST, LLHDST, ICMP, us16::<59, 0>(), LSRC1H, LSRC2H],
        |d| Op::Arith(Arith::Set { compare: d.compare, width: Width::B16, signed: d.signed[0] })),
    long("l.set.32", "set", [0x3000_0001, 0x6400_0000], [0xf000_0003, 0xe400_0000], "5.7",
        &[END, PRED, Part::Text("set"), MCDST, LLDST, ICMP, us32::<59, 0>(), LSRC1W, LSRC2W],
        |d| Op::Arith(Arith::Set { compare: d.compare, width: Width::B32, signed: d.signed[0] })),

    // Minimum and maximum (5.6)
    long("l.max.16", "max", [0x3000_0001, 0x8000_0000], [0xf000_0003, 0xe400_0000], "5.6",
        &[END, PRED, Part::Text("max"), us16::<59, 0>(), MCDST, LLHDST, LSRC1H, LSRC2H],
        |d| Op::Arith(Arith::Max { width: Width::B16, signed: d.signed[0] })),
    long("l.max.32", "max", [0x3000_0001, 0x8400_0000], [0xf000_0003, 0xe400_0000], "5.6",
        &[END, PRED, Part::Text("max"), us32::<59, 0>(), MCDST, LLDST, LSRC1W, LSRC2W],
        |d| Op::Arith(Arith::Max { width: Width::B32, signed: d.signed[0] })),
    long("l.min.16", "min", [0x3000_0001, 0xa000_0000], [0xf000_0003, 0xe400_0000], "5.6",
        &[END, PRED, Part::Text("min"), us16::<59, 0>(), MCDST, LLHDST, LSRC1H, LSRC2H],
        |d| Op::Arith(Arith::Min { width: Width::B16, signed: d.signed[0] })),
    long("l.min.32", "min", [0x3000_0001, 0xa400_0000], [0xf000_0003, 0xe400_0000], "5.6",
        &[END, PRED, Part::Text("min"), us32::<59, 0>(), MCDST, LLDST, LSRC1W, LSRC2W],
        |d| Op::Arith(Arith::Min { width: Width::B32, signed: d.signed[0] })),

    // Shifts (5.9)
    long("l.shl.16", "shl", [0x3000_0001, 0xc000_0000], [0xf000_0003, 0xe400_0000], "5.9",
        &[END, PRED, Part::Text("shl"), Part::Text("b16"), MCDST, LLHDST, LSRC1H, SHCNTH],
        |_| Op::Arith(Arith::Shl { width: Width::B16, wrap: false })),
    long("l.shl.32", "shl", [0x3000_0001, 0xc400_0000], [0xf000_0003, 0xe400_0000], "5.9",
        &[END, PRED, Part::Text("shl"), Part::Text("b32"), MCDST, LLDST, LSRC1W, SHCNTW],
        |_| Op::Arith(Arith::Shl { width: Width::B32, wrap: false })),
    long("l.shr.16", "shr", [0x3000_0001, 0xe000_0000], [0xf000_0003, 0xe400_0000], "5.9",
        &[END, PRED, Part::Text("shr"), us16::<59, 0>(), MCDST, LLHDST, LSRC1H, SHCNTH],
        |d| Op::Arith(Arith::Shr { width: Width::B16, signed: d.signed[0], wrap: false })),
    long("l.shr.32", "shr", [0x3000_0001, 0xe400_0000], [0xf000_0003, 0xe400_0000], "5.9",
        &[END, PRED, Part::Text("shr"), us32::<59, 0>(), MCDST, LLDST, LSRC1W, SHCNTW],
        |d| Op::Arith(Arith::Shr { width: Width::B32, signed: d.signed[0], wrap: false })),

    // 16-bit products (5.2)
    long("l.mul16", "mul", [0x4000_0001, 0x0000_0000], [0xf000_0003, 0xe001_0000], "5.2",
        &[END, PRED, Part::Text("mul"), MCDST, LLDST, us16::<47, 0>(), LSRC1H, us16::<46, 1>(), LSRC2H],
        |d| Op::Arith(Arith::Mul { product: bits16(d.signed) })),

    // 24-bit products (5.3)
    long("l.mul24", "mul", [0x4000_0001, 0x0001_0000], [0xf000_0003, 0xe001_0000], "5.3",
        &[END, PRED, Part::Text("mul"), MCDST, LLDST, high::<46>(), us24::<47, 0>(), LSRC1W, LSRC2W],
        |d| Op::Arith(Arith::Mul { product: bits24(d.signed[0], d.high) })),

    // Sums of absolute differences (5.5)
    long("l.sad.16", "sad", [0x5000_0001, 0x0000_0000], [0xf000_0003, 0xe400_0000], "5.5",
        &[END, PRED, Part::Text("sad"), MCDST, LLDST, us16::<59, 0>(), LSRC1H, LSRC2H, LSRC3W],
        |d| Op::Arith(Arith::Sad { width: Width::B16, signed: d.signed[0] })),
    long("l.sad.32", "sad", [0x5000_0001, 0x0400_0000], [0xf000_0003, 0xe400_0000], "5.5",
        &[END, PRED, Part::Text("sad"), MCDST, LLDST, us32::<59, 0>(), LSRC1W, LSRC2W, LSRC3W],
        |d| Op::Arith(Arith::Sad { width: Width::B32, signed: d.signed[0] })),

    // Products and sums (5.4)
    imad!("l.imad.0", [0x6000_0001, 0x0000_0000], 0xe000_0000, [], [Part::Text("u16"), LSRC1H, LSRC2H], |d| mad(d, bits16([false; 2]), false)),
    imad!("l.imad.1", [0x6000_0001, 0x2000_0000], 0xe000_0000, [], [Part::Text("s16"), LSRC1H, LSRC2H], |d| mad(d, bits16([true; 2]), false)),
    imad!("l.imad.2", [0x6000_0001, 0x4000_0000], 0xe000_0000, [Part::Text("sat")], [Part::Text("s16"), LSRC1H, LSRC2H], |d| mad(d, bits16([true; 2]), true)),
    imad!("l.imad.3", [0x6000_0001, 0x6000_0000], 0xe000_0000, [], [Part::Text("u24"), LSRC1W, LSRC2W], |d| mad(d, bits24(false, false), false)),
    imad!("l.imad.4", [0x6000_0001, 0x8000_0000], 0xe000_0000, [], [Part::Text("s24"), LSRC1W, LSRC2W], |d| mad(d, bits24(true, false), false)),
    imad!("l.imad.5", [0x6000_0001, 0xa000_0000], 0xe000_0000, [Part::Text("sat")], [Part::Text("s24"), LSRC1W, LSRC2W], |d| mad(d, bits24(true, false), true)),
    imad!("l.imad.6", [0x6000_0001, 0xc000_0000], 0xe000_0000, [], [Part::Text("high"), Part::Text("u24"), LSRC1W, LSRC2W], |d| mad(d, bits24(false, true), false)),
    imad!("l.imad.7", [0x6000_0001, 0xe000_0000], 0xe000_0000, [], [Part::Text("high"), Part::Text("s24"), LSRC1W, LSRC2W], |d| mad(d, bits24(true, true), false)),
    imad!("l.imad.8", [0x7000_0001, 0x0000_0000], 0xe000_0000, [Part::Text("sat")], [Part::Text("high"), Part::Text("s24"), LSRC1W, LSRC2W], |d| mad(d, bits24(true, true), true)),
    // Measurements show that the secondary opcodes of this row multiply as u24. Compilers do not emit them.
    imad!("l.imad.9", [0x7000_0001, 0x0000_0000], 0x0000_0000, [], [MUL_U24_ALIAS, LSRC1W, LSRC2W], |d| mad(d, bits24(false, false), false)),

    // Interpolation (6.7)
    long("l.interp", "interp", [0x8000_0001, 0x0000_0000], [0xf000_0003, 0x0007_0000], "6.7",
        &[END, PRED, Part::Text("interp"), LDST, LVAR],
        |_| Op::Memory(Memory::Interp { position: Position::Centre })).only(F),
    long("l.interp.cent", "interp", [0x8000_0001, 0x0001_0000], [0xf000_0003, 0x0007_0000], "6.7",
        &[END, PRED, Part::Text("interp"), LDST, Part::Text("cent"), LVAR],
        |_| Op::Memory(Memory::Interp { position: Position::Centroid })).only(F),
    long("l.interp.mul", "interp", [0x8000_0001, 0x0002_0000], [0xf000_0003, 0x0007_0000], "6.7",
        &[END, PRED, Part::Text("interp"), LDST, LVAR, neg::<58, 1>(), LSRC1_2],
        |_| Op::Memory(Memory::Interp { position: Position::Centre })).only(F),
    long("l.interp.cent.mul", "interp", [0x8000_0001, 0x0003_0000], [0xf000_0003, 0x0007_0000], "6.7",
        &[END, PRED, Part::Text("interp"), LDST, Part::Text("cent"), LVAR, neg::<58, 1>(), LSRC1_2],
        |_| Op::Memory(Memory::Interp { position: Position::Centroid })).only(F),
    long("l.interp.flat", "interp", [0x8000_0001, 0x0004_0000], [0xf000_0003, 0x0007_0000], "6.7",
        &[END, PRED, Part::Text("interp"), LDST, Part::Text("flat"), LVAR],
        |_| Op::Memory(Memory::Interp { position: Position::Flat })).only(F),

    // Special functions (8)
    long("l.rcp", "rcp", [0x9000_0001, 0x0000_0000], [0xf000_0003, 0xe000_0000], "8",
        &[END, PRED, Part::Text("rcp"), Part::Text("f32"), LLDST, neg::<58, 0>(), abs::<52, 0>(), LSRC1],
        |_| Op::Arith(Arith::Rcp)),
    long("l.rsqrt", "rsqrt", [0x9000_0001, 0x4000_0000], [0xf000_0003, 0xe000_0000], "8",
        &[END, PRED, Part::Text("rsqrt"), Part::Text("f32"), LLDST, neg::<58, 0>(), abs::<52, 0>(), LSRC1],
        |_| Op::Arith(Arith::Rsqrt)),
    long("l.lg2", "lg2", [0x9000_0001, 0x6000_0000], [0xf000_0003, 0xe000_0000], "8",
        &[END, PRED, Part::Text("lg2"), Part::Text("f32"), LLDST, neg::<58, 0>(), abs::<52, 0>(), LSRC1],
        |_| Op::Arith(Arith::Lg2)),
    long("l.sin", "sin", [0x9000_0001, 0x8000_0000], [0xf000_0003, 0xe000_0000], "8",
        &[END, PRED, Part::Text("sin"), Part::Text("f32"), LLDST, LSRC1],
        |_| Op::Arith(Arith::Sin)),
    long("l.cos", "cos", [0x9000_0001, 0xa000_0000], [0xf000_0003, 0xe000_0000], "8",
        &[END, PRED, Part::Text("cos"), Part::Text("f32"), LLDST, LSRC1],
        |_| Op::Arith(Arith::Cos)),
    long("l.ex2", "ex2", [0x9000_0001, 0xc000_0000], [0xf000_0003, 0xe000_0000], "8",
        &[END, PRED, Part::Text("ex2"), Part::Text("f32"), sat::<59>(), LLDST, LSRC1],
        |d| Op::Arith(Arith::Ex2 { sat: d.sat })),

    // Conversions (6.4)
    cvt!("l.cvt.f16.f16", 0xc000_0000, 0xcc40_4000, "6.4", [sat::<51>(), Part::Text("f16"), MCDST, LLHDST, Part::Text("f16"), LSRC1H_ONLY],
        |d| Op::Arith(Arith::F2F16 { integral: false, rounding: d.rounding, sat: d.sat, from: FloatSize::F16 })),
    cvt!("l.cvt.f16.f16.rint", 0xc800_0000, 0xcc40_4000, "6.4", [sat::<51>(), RINT17, Part::Text("f16"), MCDST, LLHDST, Part::Text("f16"), LSRC1H_ONLY],
        |d| Op::Arith(Arith::F2F16 { integral: true, rounding: d.rounding, sat: d.sat, from: FloatSize::F16 })),
    cvt!("l.cvt.f16.f32", 0xc000_4000, 0xcc40_4000, "6.4", [sat::<51>(), rnd::<49>(), Part::Text("f16"), MCDST, LLHDST, Part::Text("f32"), LSRC1W_ONLY],
        |d| Op::Arith(Arith::F2F16 { integral: false, rounding: d.rounding, sat: d.sat, from: FloatSize::F32 })),
    cvt!("l.cvt.f16.f32.rint", 0xc800_4000, 0xcc40_4000, "6.4", [sat::<51>(), RINT17, Part::Text("f16"), MCDST, LLHDST, Part::Text("f32"), LSRC1W_ONLY],
        |d| Op::Arith(Arith::F2F16 { integral: true, rounding: d.rounding, sat: d.sat, from: FloatSize::F32 })),
    cvt!("l.cvt.f32.f32", 0xc400_4000, 0xcc40_4000, "6.4", [sat::<51>(), Part::Text("f32"), MCDST, LLDST, Part::Text("f32"), LSRC1W_ONLY],
        |d| Op::Arith(Arith::F2F32 { integral: None, sat: d.sat, from: FloatSize::F32 })),
    cvt!("l.cvt.f32.f32.rint", 0xcc00_4000, 0xcc40_4000, "6.4", [sat::<51>(), RINT17, Part::Text("f32"), MCDST, LLDST, Part::Text("f32"), LSRC1W_ONLY],
        |d| Op::Arith(Arith::F2F32 { integral: Some(d.rounding), sat: d.sat, from: FloatSize::F32 })),
    cvt!("l.cvt.f32.f16", 0xc400_0000, 0xcc40_4000, "6.4", [sat::<51>(), Part::Text("f32"), MCDST, LLDST, Part::Text("f16"), LSRC1H_ONLY],
        |d| Op::Arith(Arith::F2F32 { integral: None, sat: d.sat, from: FloatSize::F16 })),
    cvt!("l.cvt.f32.f16.rint", 0xcc00_0000, 0xcc40_4000, "6.4", [sat::<51>(), RINT17, Part::Text("f32"), MCDST, LLDST, Part::Text("f16"), LSRC1H_ONLY],
        |d| Op::Arith(Arith::F2F32 { integral: Some(d.rounding), sat: d.sat, from: FloatSize::F16 })),

    // f64 (6.5)
    cvt!("l.cvt.f32.f64", 0xc040_4000, 0xc440_4000, "6.5", [rnd::<49>(), Part::Text("f32"), MCDST, LLDST, Part::Text("f64"), LDSRC1],
        |d| Op::Arith(Arith::F64ToF32 { rounding: d.rounding })).only(FP64),
    cvt!("l.cvt.f64.f64", 0xc440_4000, 0xcc40_4000, "6.5", [Part::Text("f64"), MCDST, LDDST, Part::Text("f64"), LDSRC1],
        |_| Op::Arith(Arith::F64ToF64 { integral: None })).only(FP64),
    cvt!("l.cvt.f64.f64.rint", 0xcc40_4000, 0xcc40_4000, "6.5", [RINT17, Part::Text("f64"), MCDST, LDDST, Part::Text("f64"), LDSRC1],
        |d| Op::Arith(Arith::F64ToF64 { integral: Some(d.rounding) })).only(FP64),
    cvt!("l.cvt.f64.f32", 0xc440_0000, 0xc440_4000, "6.5", [Part::Text("f64"), MCDST, LDDST, Part::Text("f32"), LSRC1W_ONLY],
        |_| Op::Arith(Arith::F32ToF64)).only(FP64),

    // Conversions (6.4)
    cvt!("l.cvt.u16.f16", 0x8000_0000, 0xcc40_4000, "6.4", [RINT17, Part::Text("u16"), MCDST, LLHDST, Part::Text("f16"), LSRC1H_ONLY],
        |d| Op::Arith(Arith::F2I { to: Width::B16, signed: false, rounding: d.rounding, from: FloatSize::F16 })),
    cvt!("l.cvt.u32.f16", 0x8400_0000, 0xcc40_4000, "6.4", [RINT17, Part::Text("u32"), MCDST, LLDST, Part::Text("f16"), LSRC1H_ONLY],
        |d| Op::Arith(Arith::F2I { to: Width::B32, signed: false, rounding: d.rounding, from: FloatSize::F16 })),
    cvt!("l.cvt.u16.f32", 0x8000_4000, 0xcc40_4000, "6.4", [RINT17, Part::Text("u16"), MCDST, LLHDST, Part::Text("f32"), LSRC1W_ONLY],
        |d| Op::Arith(Arith::F2I { to: Width::B16, signed: false, rounding: d.rounding, from: FloatSize::F32 })),
    cvt!("l.cvt.u32.f32", 0x8400_4000, 0xcc40_4000, "6.4", [RINT17, Part::Text("u32"), MCDST, LLDST, Part::Text("f32"), LSRC1W_ONLY],
        |d| Op::Arith(Arith::F2I { to: Width::B32, signed: false, rounding: d.rounding, from: FloatSize::F32 })),
    cvt!("l.cvt.s16.f16", 0x8800_0000, 0xcc40_4000, "6.4", [RINT17, Part::Text("s16"), MCDST, LLHDST, Part::Text("f16"), LSRC1H_ONLY],
        |d| Op::Arith(Arith::F2I { to: Width::B16, signed: true, rounding: d.rounding, from: FloatSize::F16 })),
    cvt!("l.cvt.s32.f16", 0x8c00_0000, 0xcc40_4000, "6.4", [RINT17, Part::Text("s32"), MCDST, LLDST, Part::Text("f16"), LSRC1H_ONLY],
        |d| Op::Arith(Arith::F2I { to: Width::B32, signed: true, rounding: d.rounding, from: FloatSize::F16 })),
    cvt!("l.cvt.s16.f32", 0x8800_4000, 0xcc40_4000, "6.4", [RINT17, Part::Text("s16"), MCDST, LLHDST, Part::Text("f32"), LSRC1W_ONLY],
        |d| Op::Arith(Arith::F2I { to: Width::B16, signed: true, rounding: d.rounding, from: FloatSize::F32 })),
    cvt!("l.cvt.s32.f32", 0x8c00_4000, 0xcc40_4000, "6.4", [RINT17, Part::Text("s32"), MCDST, LLDST, Part::Text("f32"), LSRC1W_ONLY],
        |d| Op::Arith(Arith::F2I { to: Width::B32, signed: true, rounding: d.rounding, from: FloatSize::F32 })),

    // f64 (6.5)
    cvt!("l.cvt.u32.f64", 0x8040_4000, 0xcc40_4000, "6.5", [RINT17, Part::Text("u32"), MCDST, LLDST, Part::Text("f64"), LDSRC1],
        |d| Op::Arith(Arith::F64ToI { to: wide_integer(false, false), rounding: d.rounding })).only(FP64),
    cvt!("l.cvt.u64.f32", 0x8440_0000, 0xcc40_4000, "6.5", [RINT17, Part::Text("u64"), MCDST, LDDST, Part::Text("f32"), LSRC1W_ONLY],
        |d| Op::Arith(Arith::F32ToI64 { to: wide_integer(true, false), rounding: d.rounding })).only(FP64),
    cvt!("l.cvt.u64.f64", 0x8440_4000, 0xcc40_4000, "6.5", [RINT17, Part::Text("u64"), MCDST, LDDST, Part::Text("f64"), LDSRC1],
        |d| Op::Arith(Arith::F64ToI { to: wide_integer(true, false), rounding: d.rounding })).only(FP64),
    cvt!("l.cvt.s32.f64", 0x8840_4000, 0xcc40_4000, "6.5", [RINT17, Part::Text("s32"), MCDST, LLDST, Part::Text("f64"), LDSRC1],
        |d| Op::Arith(Arith::F64ToI { to: wide_integer(false, true), rounding: d.rounding })).only(FP64),
    cvt!("l.cvt.s64.f32", 0x8c40_0000, 0xcc40_4000, "6.5", [RINT17, Part::Text("s64"), MCDST, LDDST, Part::Text("f32"), LSRC1W_ONLY],
        |d| Op::Arith(Arith::F32ToI64 { to: wide_integer(true, true), rounding: d.rounding })).only(FP64),
    cvt!("l.cvt.s64.f64", 0x8c40_4000, 0xcc40_4000, "6.5", [RINT17, Part::Text("s64"), MCDST, LDDST, Part::Text("f64"), LDSRC1],
        |d| Op::Arith(Arith::F64ToI { to: wide_integer(true, true), rounding: d.rounding })).only(FP64),

    // Conversions (6.4)
    cvt!("l.cvt.f16.int", 0x4000_0000, 0xc440_0000, "6.4", [sat::<51>(), rnd::<49>(), Part::Text("f16"), MCDST, LLHDST, CVT_ISRC],
        |d| Op::Arith(Arith::I2F16 { from: d.from, rounding: d.rounding, sat: d.sat })),
    cvt!("l.cvt.f32.int", 0x4400_0000, 0xc440_0000, "6.4", [sat::<51>(), rnd::<49>(), Part::Text("f32"), MCDST, LLDST, CVT_ISRC],
        |d| Op::Arith(Arith::I2F32 { from: d.from, rounding: d.rounding, sat: d.sat })),

    // f64 (6.5)
    cvt!("l.cvt.f64.u32", 0x4440_0000, 0xc441_4000, "6.5", [sat::<51>(), rnd::<49>(), Part::Text("f64"), MCDST, LDDST, Part::Text("u32"), LSRC1W_ONLY],
        |d| Op::Arith(Arith::I2F64 { from: wide_integer(false, false), rounding: d.rounding })).only(FP64),
    cvt!("l.cvt.f32.u64", 0x4040_4000, 0xc441_4000, "6.5", [sat::<51>(), rnd::<49>(), Part::Text("f32"), MCDST, LLDST, Part::Text("u64"), LDSRC1],
        |d| Op::Arith(Arith::I64ToF32 { from: wide_integer(true, false), rounding: d.rounding })).only(FP64),
    cvt!("l.cvt.f64.u64", 0x4440_4000, 0xc441_4000, "6.5", [sat::<51>(), rnd::<49>(), Part::Text("f64"), MCDST, LDDST, Part::Text("u64"), LDSRC1],
        |d| Op::Arith(Arith::I2F64 { from: wide_integer(true, false), rounding: d.rounding })).only(FP64),
    cvt!("l.cvt.f64.s32", 0x4441_0000, 0xc441_4000, "6.5", [sat::<51>(), rnd::<49>(), Part::Text("f64"), MCDST, LDDST, Part::Text("s32"), LSRC1W_ONLY],
        |d| Op::Arith(Arith::I2F64 { from: wide_integer(false, true), rounding: d.rounding })).only(FP64),
    cvt!("l.cvt.f32.s64", 0x4041_4000, 0xc441_4000, "6.5", [sat::<51>(), rnd::<49>(), Part::Text("f32"), MCDST, LLDST, Part::Text("s64"), LDSRC1],
        |d| Op::Arith(Arith::I64ToF32 { from: wide_integer(true, true), rounding: d.rounding })).only(FP64),
    cvt!("l.cvt.f64.s64", 0x4441_4000, 0xc441_4000, "6.5", [sat::<51>(), rnd::<49>(), Part::Text("f64"), MCDST, LDDST, Part::Text("s64"), LDSRC1],
        |d| Op::Arith(Arith::I2F64 { from: wide_integer(true, true), rounding: d.rounding })).only(FP64),

    // Conversions (6.4)
    cvt!("l.cvt.u16.int", 0x0000_0000, 0xcc08_0000, "6.4", [Part::Text("u16"), MCDST, LLHDST, CVT_ISRC],
        |d| i2i(d, Size::B16, false, Width::B16)),
    cvt!("l.cvt.u8h.int", 0x0008_0000, 0xcc08_0000, "6.4", [Part::Text("u8"), MCDST, LLHDST_SAID, CVT_ISRC],
        |d| i2i(d, Size::B8, false, Width::B16)),
    cvt!("l.cvt.u32.int", 0x0400_0000, 0xcc08_0000, "6.4", [Part::Text("u32"), MCDST, LLDST, CVT_ISRC],
        |d| i2i(d, Size::B32, false, Width::B32)),
    cvt!("l.cvt.u8w.int", 0x0408_0000, 0xcc08_0000, "6.4", [Part::Text("u8"), MCDST, LLDST, CVT_ISRC],
        |d| i2i(d, Size::B8, false, Width::B32)),
    cvt!("l.cvt.s16.int", 0x0800_0000, 0xcc08_0000, "6.4", [Part::Text("s16"), MCDST, LLHDST, CVT_ISRC],
        |d| i2i(d, Size::B16, true, Width::B16)),
    cvt!("l.cvt.s8h.int", 0x0808_0000, 0xcc08_0000, "6.4", [Part::Text("s8"), MCDST, LLHDST_SAID, CVT_ISRC],
        |d| i2i(d, Size::B8, true, Width::B16)),
    cvt!("l.cvt.s32.int", 0x0c00_0000, 0xcc08_0000, "6.4", [Part::Text("s32"), MCDST, LLDST, CVT_ISRC],
        |d| i2i(d, Size::B32, true, Width::B32)),
    cvt!("l.cvt.s8w.int", 0x0c08_0000, 0xcc08_0000, "6.4", [Part::Text("s8"), MCDST, LLDST, CVT_ISRC],
        |d| i2i(d, Size::B8, true, Width::B32)),

    // f32 add, mul, mad (6.2)
    long("l.fadd", "add", [0xb000_0001, 0x0000_0000], [0xf000_0003, 0xc000_0000], "6.2",
        &[END, PRED, Part::Text("add"), sat::<61>(), rnd::<16>(), Part::Text("f32"), MCDST, LLDST, neg::<58, 0>(), LSRC1W, neg::<59, 1>(), LSRC3W_2],
        |d| Op::Arith(Arith::FAdd { rounding: d.rounding, sat: d.sat })),

    // f32 min, max, set, slct, quadop (6.3)
    long("l.fset", "set", [0xb000_0001, 0x6000_0000], [0xf000_0003, 0xe000_0000], "6.3",
        &[END, PRED, Part::Text("set"), MCDST, LLDST, FCMP, Part::Text("f32"), neg::<58, 0>(), abs::<52, 0>(), LSRC1W, neg::<59, 1>(), abs::<51, 1>(), LSRC2W],
        |d| Op::Arith(Arith::FSet { compare: d.compare })),
    long("l.fmax", "max", [0xb000_0001, 0x8000_0000], [0xf000_0003, 0xe000_0000], "6.3",
        &[END, PRED, Part::Text("max"), Part::Text("f32"), MCDST, LLDST, neg::<58, 0>(), abs::<52, 0>(), LSRC1W, neg::<59, 1>(), abs::<51, 1>(), LSRC2W],
        |_| Op::Arith(Arith::FMax)),
    long("l.fmin", "min", [0xb000_0001, 0xa000_0000], [0xf000_0003, 0xe000_0000], "6.3",
        &[END, PRED, Part::Text("min"), Part::Text("f32"), MCDST, LLDST, neg::<58, 0>(), abs::<52, 0>(), LSRC1W, neg::<59, 1>(), abs::<51, 1>(), LSRC2W],
        |_| Op::Arith(Arith::FMin)),

    // Special functions (8)
    long("l.presin", "presin", [0xb000_0001, 0xc000_0000], [0xf000_0003, 0xe000_4000], "8",
        &[END, PRED, Part::Text("presin"), Part::Text("f32"), LLDST, neg::<58, 0>(), abs::<52, 0>(), LSRC1W_ONLY],
        |_| Op::Arith(Arith::PreSin)),
    long("l.preex2", "preex2", [0xb000_0001, 0xc000_4000], [0xf000_0003, 0xe000_4000], "8",
        &[END, PRED, Part::Text("preex2"), Part::Text("f32"), LLDST, neg::<58, 0>(), abs::<52, 0>(), LSRC1W_ONLY],
        |_| Op::Arith(Arith::PreEx2)),

    // f32 add, mul, mad (6.2)
    long("l.fmul", "mul", [0xc000_0001, 0x0000_0000], [0xf000_0003, 0xe000_0000], "6.2",
        &[END, PRED, Part::Text("mul"), sat_g200::<52>(), rnd::<46>(), Part::Text("f32"), MCDST, LLDST, neg::<58, 0>(), LSRC1W, neg::<59, 1>(), LSRC2W],
        |d| Op::Arith(Arith::FMul { rounding: d.rounding, sat: d.sat })),

    // f32 min, max, set, slct, quadop (6.3)
    long("l.fslct", "slct", [0xc000_0001, 0x4000_0000], [0xf000_0003, 0xc000_0000], "6.3",
        &[END, PRED, Part::Text("slct"), Part::Text("b32"), MCDST, LLDST, LSRC1W, LSRC2W, Part::Text("f32"), neg::<61, 2>(), LSRC3W],
        |_| Op::Arith(Arith::Slct)),
    long("l.quadop", "quadop", [0xc000_0001, 0x8000_0000], [0xf000_0003, 0xe000_0000], "6.3",
        &[END, PRED, Part::Text("quadop"), Part::Text("f32"), qop::<0, 58>(), qop::<1, 56>(), qop::<2, 54>(), qop::<3, 20>(), MCDST, LLDST, QLANE, LSRC1, LSRC3_2],
        |d| Op::Group(Group::Quadop { ops: d.quad, from: d.quad_from })),

    // Logic (5.8)
    long("l.logop.b16", "and|or|xor|mov2", [0xd000_0001, 0x0000_0000], [0xf000_0003, 0xe400_0000], "5.8",
        &[END, PRED, LOGOP, Part::Text("b16"), MCDST, LLHDST, not::<48, 0>(), LSRC1H, not::<49, 1>(), LSRC2H],
        |d| Op::Arith(Arith::Logic { logic: d.logic, width: Width::B16, not1: d.not[0], not2: d.not[1] })),
    long("l.logop.b32", "and|or|xor|mov2", [0xd000_0001, 0x0400_0000], [0xf000_0003, 0xe400_0000], "5.8",
        &[END, PRED, LOGOP, Part::Text("b32"), MCDST, LLDST, not::<48, 0>(), LSRC1W, not::<49, 1>(), LSRC2W],
        |d| Op::Arith(Arith::Logic { logic: d.logic, width: Width::B32, not1: d.not[0], not2: d.not[1] })),

    // Data movement (4)
    long("l.add.a", "add", [0xd000_0001, 0x2000_0000], [0xf000_0003, 0xe000_0000], "4",
        &[END, PRED, Part::Text("add"), ADST, AREG, OFFS],
        |_| Op::Arith(Arith::AddA)),
    long("l.ld.l", "ld", [0xd000_0001, 0x4000_0000], [0xf000_0003, 0xe000_0000], "4",
        &[END, PRED, Part::Text("ld"), LG_TYPE, LG_REG, LMEM],
        |_| Op::Memory(Memory::Ld)),
    long("l.st.l", "st", [0xd000_0001, 0x6000_0000], [0xf000_0003, 0xe000_0000], "4",
        &[END, PRED, Part::Text("st"), LG_TYPE, LMEM, LG_REG_2],
        |_| Op::Memory(Memory::St)),
    long("l.ld.g", "ld", [0xd000_0001, 0x8000_0000], [0xf000_0003, 0xe000_0000], "4",
        &[END, PRED, Part::Text("ld"), LG_TYPE, LG_REG, GLOBAL],
        |_| Op::Memory(Memory::Ld)).only(C),
    long("l.st.g", "st", [0xd000_0001, 0xa000_0000], [0xf000_0003, 0xe000_0000], "4",
        &[END, PRED, Part::Text("st"), LG_TYPE, GLOBAL, LG_REG_2],
        |_| Op::Memory(Memory::St)).only(C),

    // Global atomics (6.8)
    global!("l.red.g.add", "red", 0xc000_0000, [Part::Text("red"), Part::Text("add"), AT_ADD, GLOBAL, LG_REG_2], |d| red(d, Atomic::Add, Atomic64::Add)),
    global!("l.red.g.inc", "red", 0xc000_0010, [Part::Text("red"), Part::Text("inc"), AT_U32, GLOBAL, LG_REG_2], |d| red32(d, Atomic::Inc)),
    global!("l.red.g.dec", "red", 0xc000_0014, [Part::Text("red"), Part::Text("dec"), AT_U32, GLOBAL, LG_REG_2], |d| red32(d, Atomic::Dec)),
    global!("l.red.g.max", "red", 0xc000_0018, [Part::Text("red"), Part::Text("max"), AT_MM, GLOBAL, LG_REG_2], |d| red32(d, Atomic::Max)),
    global!("l.red.g.min", "red", 0xc000_001c, [Part::Text("red"), Part::Text("min"), AT_MM, GLOBAL, LG_REG_2], |d| red32(d, Atomic::Min)),
    global!("l.red.g.and", "red", 0xc000_0028, [Part::Text("red"), Part::Text("and"), AT_B32, GLOBAL, LG_REG_2], |d| red32(d, Atomic::And)),
    global!("l.red.g.or", "red", 0xc000_002c, [Part::Text("red"), Part::Text("or"), AT_B32, GLOBAL, LG_REG_2], |d| red32(d, Atomic::Or)),
    global!("l.red.g.xor", "red", 0xc000_0030, [Part::Text("red"), Part::Text("xor"), AT_B32, GLOBAL, LG_REG_2], |d| red32(d, Atomic::Xor)),
    global!("l.atom.g.exch", "exch", 0xe000_0004, [Part::Text("exch"), AT_B, LG_REG, GLOBAL2, LG_SRC2], |d| atom(d, Atomic::Exch, Atomic64::Exch)),
    global!("l.atom.g.cas", "cas", 0xe000_0008, [Part::Text("cas"), AT_B, LG_REG, GLOBAL2, LG_SRC2, LG_SRC3], |d| atom(d, Atomic::Cas, Atomic64::Cas)),
    global!("l.atom.g.add", "ld", 0xe000_0000, [Part::Text("ld"), Part::Text("add"), AT_ADD, LG_REG, GLOBAL2, LG_SRC2], |d| atom(d, Atomic::Add, Atomic64::Add)),
    global!("l.atom.g.inc", "ld", 0xe000_0010, [Part::Text("ld"), Part::Text("inc"), AT_U32, LG_REG, GLOBAL2, LG_SRC2], |d| atom32(d, Atomic::Inc)),
    global!("l.atom.g.dec", "ld", 0xe000_0014, [Part::Text("ld"), Part::Text("dec"), AT_U32, LG_REG, GLOBAL2, LG_SRC2], |d| atom32(d, Atomic::Dec)),
    global!("l.atom.g.max", "ld", 0xe000_0018, [Part::Text("ld"), Part::Text("max"), AT_MM, LG_REG, GLOBAL2, LG_SRC2], |d| atom32(d, Atomic::Max)),
    global!("l.atom.g.min", "ld", 0xe000_001c, [Part::Text("ld"), Part::Text("min"), AT_MM, LG_REG, GLOBAL2, LG_SRC2], |d| atom32(d, Atomic::Min)),
    global!("l.atom.g.and", "ld", 0xe000_0028, [Part::Text("ld"), Part::Text("and"), AT_B32, LG_REG, GLOBAL2, LG_SRC2], |d| atom32(d, Atomic::And)),
    global!("l.atom.g.or", "ld", 0xe000_002c, [Part::Text("ld"), Part::Text("or"), AT_B32, LG_REG, GLOBAL2, LG_SRC2], |d| atom32(d, Atomic::Or)),
    global!("l.atom.g.xor", "ld", 0xe000_0030, [Part::Text("ld"), Part::Text("xor"), AT_B32, LG_REG, GLOBAL2, LG_SRC2], |d| atom32(d, Atomic::Xor)),

    // f32 add, mul, mad (6.2)
    long("l.fmad", "add", [0xe000_0001, 0x0000_0000], [0xf000_0003, 0xc000_0000], "6.2",
        &[END, PRED, Part::Text("add"), sat::<61>(), Part::Text("f32"), MCDST, LLDST, neg::<58, 0>(), Part::Open, Part::Text("mul"), LSRC1W, LSRC2W, Part::Close, neg::<59, 2>(), LSRC3W],
        |d| Op::Arith(Arith::FMad { sat: d.sat })),

    // f64 (6.5)
    long("l.dfma", "fma", [0xe000_0001, 0x4000_0000], [0xf000_0003, 0xe000_0000], "6.5",
        &[END, PRED, Part::Text("fma"), rnd::<54>(), Part::Text("f64"), MCDST, LDDST, neg::<58, 0>(), LDSRC1, LDSRC2, neg::<59, 2>(), LDSRC3],
        |d| Op::Arith(Arith::DFma { rounding: d.rounding })).only(FP64),
    long("l.dadd", "add", [0xe000_0001, 0x6000_0000], [0xf000_0003, 0xe000_0000], "6.5",
        &[END, PRED, Part::Text("add"), rnd::<16>(), Part::Text("f64"), MCDST, LDDST, neg::<58, 0>(), LDSRC1, neg::<59, 1>(), LDSRC3_2],
        |d| Op::Arith(Arith::DAdd { rounding: d.rounding })).only(FP64),
    long("l.dmul", "mul", [0xe000_0001, 0x8000_0000], [0xf000_0003, 0xe000_0000], "6.5",
        &[END, PRED, Part::Text("mul"), rnd::<49>(), Part::Text("f64"), MCDST, LDDST, neg::<58, 0>(), LDSRC1, LDSRC2],
        |d| Op::Arith(Arith::DMul { rounding: d.rounding })).only(FP64),
    long("l.dmin", "min", [0xe000_0001, 0xa000_0000], [0xf000_0003, 0xe000_0000], "6.5",
        &[END, PRED, Part::Text("min"), Part::Text("f64"), MCDST, LDDST, neg::<58, 0>(), abs::<52, 0>(), LDSRC1, neg::<59, 1>(), abs::<51, 1>(), LDSRC2],
        |_| Op::Arith(Arith::DMin)).only(FP64),
    long("l.dmax", "max", [0xe000_0001, 0xc000_0000], [0xf000_0003, 0xe000_0000], "6.5",
        &[END, PRED, Part::Text("max"), Part::Text("f64"), MCDST, LDDST, neg::<58, 0>(), abs::<52, 0>(), LDSRC1, neg::<59, 1>(), abs::<51, 1>(), LDSRC2],
        |_| Op::Arith(Arith::DMax)).only(FP64),
    long("l.dset", "set", [0xe000_0001, 0xe000_0000], [0xf000_0003, 0xe000_0000], "6.5",
        &[END, PRED, Part::Text("set"), MCDST, LLDST, FCMP, Part::Text("f64"), neg::<58, 0>(), abs::<52, 0>(), LDSRC1, neg::<59, 1>(), abs::<51, 1>(), LDSRC2],
        |d| Op::Arith(Arith::DSet { compare: d.compare })).only(FP64),

    // Texture (6.9)
    long("l.texauto", "texauto", [0xf000_0001, 0x0000_0000], [0xf900_0003, 0xf000_0000], "6.9",
        &[END, PRED, Part::Text("texauto"), tex_live::<34>(), TEX_DERIV, LTDST, TEX, SAMP, LTSRC, TOFFX, TOFFY, TOFFZ],
        |d| tex(d, TexOp::Auto, false)),
    long("l.texauto.cube", "texauto", [0xf800_0001, 0x0000_0000], [0xf900_0003, 0xf000_0000], "6.9",
        &[END, PRED, Part::Text("texauto"), Part::Text("cube"), tex_live::<34>(), TEX_DERIV, LTDST, TEX, SAMP, LTSRC],
        |d| tex(d, TexOp::Auto, true)),
    long("l.texfetch", "texfetch", [0xf100_0001, 0x0000_0000], [0xf100_0003, 0xf000_0000], "6.9",
        &[END, PRED, Part::Text("texfetch"), tex_live::<34>(), TEX_DERIV, LTDST, TEX, SAMP, LTSRC, TOFFX, TOFFY, TOFFZ],
        |d| tex(d, TexOp::Fetch, false)),
    long("l.texbias", "texbias", [0xf000_0001, 0x2000_0000], [0xf800_0003, 0xf000_0000], "6.9",
        &[END, PRED, Part::Text("texbias"), tex_live::<34>(), TEX_DERIV, LTDST, TEX, SAMP, LTSRC, TOFFX, TOFFY, TOFFZ],
        |d| tex(d, TexOp::Bias, false)),
    long("l.texbias.cube", "texbias", [0xf800_0001, 0x2000_0000], [0xf800_0003, 0xf000_0000], "6.9",
        &[END, PRED, Part::Text("texbias"), Part::Text("cube"), tex_live::<34>(), TEX_DERIV, LTDST, TEX, SAMP, LTSRC],
        |d| tex(d, TexOp::Bias, true)),
    long("l.texlod", "texlod", [0xf000_0001, 0x4000_0000], [0xf800_0003, 0xf000_0000], "6.9",
        &[END, PRED, Part::Text("texlod"), tex_live::<34>(), TEX_DERIV, LTDST, TEX, SAMP, LTSRC, TOFFX, TOFFY, TOFFZ],
        |d| tex(d, TexOp::Lod, false)),
    long("l.texlod.cube", "texlod", [0xf800_0001, 0x4000_0000], [0xf800_0003, 0xf000_0000], "6.9",
        &[END, PRED, Part::Text("texlod"), Part::Text("cube"), tex_live::<34>(), TEX_DERIV, LTDST, TEX, SAMP, LTSRC],
        |d| tex(d, TexOp::Lod, true)),
    long("l.texsize", "texsize", [0xf000_0001, 0x6000_0000], [0xf000_0003, 0xf00f_0000], "6.9",
        &[END, PRED, Part::Text("texsize"), tex_live::<34>(), TEX_DERIV, LTDST, TEX, SAMP, TEX_LEVEL],
        |d| tex(d, TexOp::Size, false)),
    long("l.texprep.cube", "texprep", [0xf800_0001, 0x6001_0000], [0xf800_0003, 0xf00f_0000], "6.9",
        &[END, PRED, Part::Text("texprep"), Part::Text("cube"), tex_live::<34>(), TEX_DERIV, LTDST, TEX, SAMP, LTSRC],
        |d| tex(d, TexOp::Prep, true)).only(D3D10_1),
    long("l.texquerylod", "texquerylod", [0xf000_0001, 0x6002_0000], [0xf800_0003, 0xf00f_0000], "6.9",
        &[END, PRED, Part::Text("texquerylod"), tex_live::<34>(), TEX_DERIV, LTDST, TEX, SAMP, LTSRC],
        |d| tex(d, TexOp::QueryLod, false)).only(D3D10_1),
    long("l.texquerylod.cube", "texquerylod", [0xf800_0001, 0x6002_0000], [0xf800_0003, 0xf00f_0000], "6.9",
        &[END, PRED, Part::Text("texquerylod"), Part::Text("cube"), tex_live::<34>(), TEX_DERIV, LTDST, TEX, SAMP, LTSRC],
        |d| tex(d, TexOp::QueryLod, true)).only(D3D10_1),
    long("l.texcsaa", "texcsaa", [0xf000_0001, 0x8000_0000], [0xf100_0003, 0xf000_0000], "6.9",
        &[END, PRED, Part::Text("texcsaa"), tex_live::<34>(), TEX_DERIV, LTDST, TEX, SAMP, LTSRC, TOFFX, TOFFY, TOFFZ],
        |d| tex(d, TexOp::Csaa, false)),
    long("l.texgather", "texgather", [0xf100_0001, 0x8000_0000], [0xf900_0003, 0xf000_0000], "6.9",
        &[END, PRED, Part::Text("texgather"), tex_live::<34>(), TEX_DERIV, LTDST, TEX, SAMP, LTSRC, TOFFX, TOFFY, TOFFZ],
        |d| tex(d, TexOp::Gather, false)).only(D3D10_1),
    long("l.texgather.cube", "texgather", [0xf900_0001, 0x8000_0000], [0xf900_0003, 0xf000_0000], "6.9",
        &[END, PRED, Part::Text("texgather"), Part::Text("cube"), tex_live::<34>(), TEX_DERIV, LTDST, TEX, SAMP, LTSRC],
        |d| tex(d, TexOp::Gather, true)).only(D3D10_1),

    // Further instructions (6.10)
    long("l.emit", "emit", [0xf000_0201, 0xc000_0000], [0xf000_0603, 0xe000_0000], "6.10",
        &[END, PRED, Part::Text("emit")],
        |_| Op::Group(Group::Emit { vertex: true, restart: false })).only(G),
    long("l.restart", "restart", [0xf000_0401, 0xc000_0000], [0xf000_0603, 0xe000_0000], "6.10",
        &[END, PRED, Part::Text("restart")],
        |_| Op::Group(Group::Emit { vertex: false, restart: true })).only(G),
    // With both bits (emit and restart), the instruction emits a vertex and then ends the strip. This behaviour is an
    // assumption, because no program that sets both bits is known.
    long("l.emit.restart", "emit", [0xf000_0601, 0xc000_0000], [0xf000_0603, 0xe000_0000], "6.10",
        &[END, PRED, Part::Text("emit"), Part::Text("restart")],
        |_| Op::Group(Group::Emit { vertex: true, restart: true })).only(G),
    long("l.nop", "nop", [0xf000_0001, 0xe000_0000], [0xf000_0003, 0xe000_0004], "6.10",
        &[END, PRED, Part::Text("nop")],
        |_| Op::Idle(Idle::Nop)),
    long("l.pmevent", "pmevent", [0xf000_0001, 0xe000_0004], [0xf000_0003, 0xe000_0004], "6.10",
        &[END, PRED, Part::Text("pmevent"), PM],
        |d| Op::Idle(Idle::PmEvent { event: d.numbers[0] as u8 })),
];
