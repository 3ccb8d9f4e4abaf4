//! Rows of two-word instructions with a 32-bit immediate. (2.1, Appendix A)
//!
//! A row has seven parts, in this order: the name, the start of the assembly text, the fixed bits of the instruction,
//! the mask of the fixed bits, the section that describes the instruction, the parts of the assembly text, and the
//! meaning. Rows are in the order of the machine's description.

use reconverge_isa::row::Part;

use crate::inst::{Arith, Op};
use crate::lane::Width;
use crate::lane::integer::Logic;
use crate::parts::*;

use super::{Row, bits16, bits24, immediate, mad};

#[rustfmt::skip]
pub(super) static IMMEDIATE_ROWS: &[Row] = &[
    // Data movement (4)
    immediate("i.mov.b16", "mov", 0x1000_0001, 0xf000_8003, "4",
        &[Part::Text("mov"), Part::Text("b16"), LHDST, IMM_1],
        |_| Op::Arith(Arith::Mov { width: Width::B16 })),
    immediate("i.mov.b32", "mov", 0x1000_8001, 0xf000_8003, "4",
        &[Part::Text("mov"), Part::Text("b32"), LDST, IMM_1],
        |_| Op::Arith(Arith::Mov { width: Width::B32 })),

    // Integer addition (5.1)
    immediate("i.iadd.b16", "add|sub|subr|addc", 0x2000_0001, 0xe000_8003, "5.1",
        &[ADDOP, sat::<8>(), Part::Text("b16"), SHDST, ISRC1H, IMM, CARRY_S],
        |d| Op::Arith(Arith::Add { addition: d.addition, width: Width::B16, sat: d.sat })),
    immediate("i.iadd.b32", "add|sub|subr|addc", 0x2000_8001, 0xe000_8003, "5.1",
        &[ADDOP, sat::<8>(), Part::Text("b32"), SDST, ISRC1W, IMM, CARRY_S],
        |d| Op::Arith(Arith::Add { addition: d.addition, width: Width::B32, sat: d.sat })),

    // 16-bit products (5.2)
    immediate("i.mul16", "mul", 0x4000_0001, 0xf040_0003, "5.2",
        &[Part::Text("mul"), SDST, us16::<15, 0>(), ISRC1H, us16::<8, 1>(), IMM],
        |d| Op::Arith(Arith::Mul { product: bits16(d.signed) })),

    // 24-bit products (5.3)
    immediate("i.mul24", "mul", 0x4040_0001, 0xf040_0003, "5.3",
        &[Part::Text("mul"), SDST, high::<8>(), us24::<15, 0>(), ISRC1W, IMM],
        |d| Op::Arith(Arith::Mul { product: bits24(d.signed[0], d.high) })),

    // Products and sums (5.4)
    immediate("i.imad.0", "add|sub|subr|addc", 0x6000_0001, 0xe000_8103, "5.4",
        &[ADDOP, SDST, Part::Open, Part::Text("mul"), Part::Text("u16"), ISRC1H, IMM, Part::Close, SDST_3, CARRY_S],
        |d| mad(d, bits16([false; 2]), false)),
    immediate("i.imad.1", "add|sub|subr|addc", 0x6000_0101, 0xe000_8103, "5.4",
        &[ADDOP, SDST, Part::Open, Part::Text("mul"), Part::Text("s16"), ISRC1H, IMM, Part::Close, SDST_3, CARRY_S],
        |d| mad(d, bits16([true; 2]), false)),
    immediate("i.imad.2", "add|sub|subr|addc", 0x6000_8001, 0xe000_8103, "5.4",
        &[ADDOP, Part::Text("sat"), SDST, Part::Open, Part::Text("mul"), Part::Text("s16"), ISRC1H, IMM, Part::Close, SDST_3, CARRY_S],
        |d| mad(d, bits16([true; 2]), true)),
    immediate("i.imad.3", "add|sub|subr|addc", 0x6000_8101, 0xe000_8103, "5.4",
        &[ADDOP, SDST, Part::Open, Part::Text("mul"), Part::Text("u24"), ISRC1W, IMM, Part::Close, SDST_3, CARRY_S],
        |d| mad(d, bits24(false, false), false)),

    // f32 add, mul, mad (6.2)
    immediate("i.fadd", "add", 0xb000_0001, 0xf000_0003, "6.2",
        &[Part::Text("add"), sat::<8>(), Part::Text("f32"), SDST, neg::<15, 0>(), ISRC1W, neg::<22, 1>(), IMM],
        |d| Op::Arith(Arith::FAdd { rounding: d.rounding, sat: d.sat })),
    immediate("i.fmul", "mul", 0xc000_0001, 0xf000_0003, "6.2",
        &[Part::Text("mul"), sat_g200::<8>(), Part::Text("f32"), SDST, neg::<15, 0>(), ISRC1W, neg::<22, 1>(), IMM],
        |d| Op::Arith(Arith::FMul { rounding: d.rounding, sat: d.sat })),

    // Logic (5.8)
    immediate("i.and", "and", 0xd000_0001, 0xf000_8103, "5.8",
        &[Part::Text("and"), Part::Text("b32"), SDST, not::<22, 0>(), ISRC1W, IMM],
        |d| Op::Arith(Arith::Logic { logic: Logic::And, width: Width::B32, not1: d.not[0], not2: false })),
    immediate("i.or", "or", 0xd000_0101, 0xf000_8103, "5.8",
        &[Part::Text("or"), Part::Text("b32"), SDST, not::<22, 0>(), ISRC1W, IMM],
        |d| Op::Arith(Arith::Logic { logic: Logic::Or, width: Width::B32, not1: d.not[0], not2: false })),
    immediate("i.xor", "xor", 0xd000_8001, 0xf000_8103, "5.8",
        &[Part::Text("xor"), Part::Text("b32"), SDST, not::<22, 0>(), ISRC1W, IMM],
        |d| Op::Arith(Arith::Logic { logic: Logic::Xor, width: Width::B32, not1: d.not[0], not2: false })),
    immediate("i.mov2", "mov2", 0xd000_8101, 0xf000_8103, "5.8",
        &[Part::Text("mov2"), Part::Text("b32"), SDST, not::<22, 0>(), ISRC1W, IMM],
        |d| Op::Arith(Arith::Logic { logic: Logic::Mov2, width: Width::B32, not1: d.not[0], not2: false })),

    // f32 add, mul, mad (6.2)
    immediate("i.fmad", "add", 0xe000_0001, 0xf000_0003, "6.2",
        &[Part::Text("add"), sat::<8>(), Part::Text("f32"), SDST, neg::<15, 0>(), Part::Open, Part::Text("mul"), ISRC1W, IMM, Part::Close, neg::<22, 2>(), SDST_3],
        |d| Op::Arith(Arith::FMad { sat: d.sat })),
];
