//! Two-word control flow. (2.1, Appendix A)
//!
//! A row: its name, what its text starts with, the bits that make a word this instruction and their mask, the section
//! that describes it; its text; its meaning. Rows stand in the order of the description.

use reconverge_isa::row::Part;

use crate::inst::{BarrierCount, Op};
use crate::parts::*;

use super::{Row, bar, control, predicated};

#[rustfmt::skip]
pub(super) static CONTROL_ROWS: &[Row] = &[
    // Others (6.10)
    predicated("c.discard", "discard", [0x0000_0003, 0x0000_0000], [0xf000_0003, 0x0000_0000], "6.10",
        &[PRED, Part::Text("discard")],
        |_| Op::Discard).only(F).spare(0x0fff_fffc, 0xffff_c07f),

    // Branches (9.3)
    predicated("c.bra", "bra", [0x1000_0003, 0x0000_0000], [0xf000_0003, 0x0000_0000], "9.3",
        &[PRED, Part::Text("bra"), TARGET],
        |d| Op::Bra { target: d.target }).spare(0x0800_07fc, 0xfff0_007f),
    control("c.call", "call", [0x2000_0003, 0x0000_0000], [0xf000_0003, 0x0000_0000], "9.3",
        &[Part::Text("call"), LIM, TARGET],
        |d| Op::Call { target: d.target, lim: d.lim }).spare(0x0800_07fc, 0xfff0_3fbf),

    // ret (9.6)
    predicated("c.ret", "ret", [0x3000_0003, 0x0000_0000], [0xf000_0003, 0x0000_0000], "9.6",
        &[PRED, Part::Text("ret")],
        |_| Op::Ret).spare(0x0fff_fffc, 0xffff_c07f),

    // Branches (9.3)
    control("c.breakaddr", "breakaddr", [0x4000_0003, 0x0000_0000], [0xf000_0003, 0x0000_0000], "9.3",
        &[Part::Text("breakaddr"), TARGET],
        |d| Op::Breakaddr { target: d.target }).spare(0x0800_07fc, 0xfff0_3fff),
    predicated("c.break", "break", [0x5000_0003, 0x0000_0000], [0xf000_0003, 0x0000_0000], "9.3",
        &[PRED, Part::Text("break")],
        |_| Op::Break).spare(0x0fff_fffc, 0xffff_c07f),

    // Quads (9.8)
    control("c.quadon", "quadon", [0x6000_0003, 0x0000_0000], [0xf000_0003, 0x0000_0000], "9.8",
        &[Part::Text("quadon")],
        |_| Op::Quadon).spare(0x0fff_fffc, 0xffff_ffff),
    control("c.quadpop", "quadpop", [0x7000_0003, 0x0000_0000], [0xf000_0003, 0x0000_0000], "9.8",
        &[Part::Text("quadpop")],
        |_| Op::Quadpop).spare(0x0fff_fffc, 0xffff_ffff),

    // Barriers (9.7)
    control("c.bar.n", "bar", [0x8000_0003, 0x0000_0000], [0xf000_0003, 0x0000_4000], "9.7",
        &[Part::Text("bar"), BAR_INC, BAR_WAIT, BAR, BARMASK],
        |d| bar(d, BarrierCount::Count(d.numbers[1] as u16))).spare(0x0800_01fc, 0xffff_bfff),
    control("c.bar.all", "bar", [0x8000_0003, 0x0000_4000], [0xf000_0003, 0x0000_4000], "9.7",
        &[Part::Text("bar"), BAR_INC, BAR_WAIT, BAR, Part::Text("all")],
        |d| bar(d, BarrierCount::All)).spare(0x081f_fffc, 0xffff_bfff),

    // Others (6.10)
    control("c.trap", "trap", [0x9000_0003, 0x0000_0000], [0xf000_0003, 0x0000_0000], "6.10",
        &[Part::Text("trap")],
        |_| Op::Trap).spare(0x0fff_fffc, 0xffff_ffff),

    // joinat (9.4)
    control("c.joinat", "joinat", [0xa000_0003, 0x0000_0000], [0xf000_0003, 0x0000_0000], "9.4",
        &[Part::Text("joinat"), TARGET],
        |d| Op::Joinat { target: d.target }).spare(0x0800_07fc, 0xfff0_3fff),

    // Others (6.10)
    predicated("c.brkpt", "brkpt", [0xb000_0003, 0x0000_0000], [0xf000_0003, 0x0000_0000], "6.10",
        &[PRED, Part::Text("brkpt")],
        |_| Op::Brkpt).only(SM11).spare(0x0fff_fffc, 0xffff_c07f),

    // Indirect branches (9.9)
    control("c.bra.c", "bra", [0xc000_0003, 0x0000_0000], [0xf000_0003, 0x0000_0000], "9.9",
        &[Part::Text("bra"), LIM, FCONST_CODE],
        |d| Op::BraIndirect { lim: d.lim }).only(SM12).spare(0x0200_01fc, 0xfc3f_ffbb),
    control("c.preret", "preret", [0xd000_0003, 0x0000_0000], [0xf000_0003, 0x0000_0000], "9.9",
        &[Part::Text("preret"), LIM, TARGET],
        |d| Op::Preret { target: d.target, lim: d.lim }).only(SM12).spare(0x0800_07fc, 0xfff0_3fbf),
];
