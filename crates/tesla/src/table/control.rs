//! Rows of two-word control-flow instructions. (2.1, Appendix A)
//!
//! A row has seven parts, in this order: the name, the start of the assembly text, the fixed bits of the instruction,
//! the mask of the fixed bits, the section that describes the instruction, the parts of the assembly text, and the
//! meaning. Rows are in the order of the machine's description.

use reconverge_isa::row::Part;

use crate::inst::{BarrierCount, Control, Idle, Op};
use crate::parts::*;

use super::{Row, bar, control, predicated};

#[rustfmt::skip]
pub(super) static CONTROL_ROWS: &[Row] = &[
    // Further instructions (6.10)
    predicated("c.discard", "discard", [0x0000_0003, 0x0000_0000], [0xf000_0003, 0x0000_0000], "6.10",
        &[PRED, Part::Text("discard")],
        |_| Op::Control(Control::Discard)).only(F),

    // Branches (9.3)
    predicated("c.bra", "bra", [0x1000_0003, 0x0000_0000], [0xf000_0003, 0x0000_0000], "9.3",
        &[PRED, Part::Text("bra"), TARGET],
        |d| Op::Control(Control::Bra { target: d.target })),
    control("c.call", "call", [0x2000_0003, 0x0000_0000], [0xf000_0003, 0x0000_0000], "9.3",
        &[Part::Text("call"), LIM, TARGET],
        |d| Op::Control(Control::Call { target: d.target, lim: d.lim })),

    // ret (9.6)
    predicated("c.ret", "ret", [0x3000_0003, 0x0000_0000], [0xf000_0003, 0x0000_0000], "9.6",
        &[PRED, Part::Text("ret")],
        |_| Op::Control(Control::Ret)),

    // Branches (9.3)
    control("c.breakaddr", "breakaddr", [0x4000_0003, 0x0000_0000], [0xf000_0003, 0x0000_0000], "9.3",
        &[Part::Text("breakaddr"), TARGET],
        |d| Op::Control(Control::Breakaddr { target: d.target })),
    predicated("c.break", "break", [0x5000_0003, 0x0000_0000], [0xf000_0003, 0x0000_0000], "9.3",
        &[PRED, Part::Text("break")],
        |_| Op::Control(Control::Break)),

    // Quads (9.8)
    control("c.quadon", "quadon", [0x6000_0003, 0x0000_0000], [0xf000_0003, 0x0000_0000], "9.8",
        &[Part::Text("quadon")],
        |_| Op::Control(Control::Quadon)),
    control("c.quadpop", "quadpop", [0x7000_0003, 0x0000_0000], [0xf000_0003, 0x0000_0000], "9.8",
        &[Part::Text("quadpop")],
        |_| Op::Control(Control::Quadpop)),

    // Barriers (9.7)
    control("c.bar.n", "bar", [0x8000_0003, 0x0000_0000], [0xf000_0003, 0x0000_4000], "9.7",
        &[Part::Text("bar"), BAR_INC, BAR_WAIT, BAR, BARMASK],
        |d| bar(d, BarrierCount::Count(d.numbers[1] as u16))),
    control("c.bar.all", "bar", [0x8000_0003, 0x0000_4000], [0xf000_0003, 0x0000_4000], "9.7",
        &[Part::Text("bar"), BAR_INC, BAR_WAIT, BAR, Part::Text("all")],
        |d| bar(d, BarrierCount::All)),

    // Further instructions (6.10)
    control("c.trap", "trap", [0x9000_0003, 0x0000_0000], [0xf000_0003, 0x0000_0000], "6.10",
        &[Part::Text("trap")],
        |_| Op::Control(Control::Trap)),

    // joinat (9.4)
    control("c.joinat", "joinat", [0xa000_0003, 0x0000_0000], [0xf000_0003, 0x0000_0000], "9.4",
        &[Part::Text("joinat"), TARGET],
        |d| Op::Control(Control::Joinat { target: d.target })),

    // Further instructions (6.10)
    predicated("c.brkpt", "brkpt", [0xb000_0003, 0x0000_0000], [0xf000_0003, 0x0000_0000], "6.10",
        &[PRED, Part::Text("brkpt")],
        |_| Op::Idle(Idle::Brkpt)).only(SM11),

    // Indirect branches (9.9)
    control("c.bra.c", "bra", [0xc000_0003, 0x0000_0000], [0xf000_0003, 0x0000_0000], "9.9",
        &[Part::Text("bra"), LIM, FCONST_CODE],
        |d| Op::Control(Control::BraIndirect { lim: d.lim })).only(SM12),
    control("c.preret", "preret", [0xd000_0003, 0x0000_0000], [0xf000_0003, 0x0000_0000], "9.9",
        &[Part::Text("preret"), LIM, TARGET],
        |d| Op::Control(Control::Preret { target: d.target, lim: d.lim })).only(SM12),
];
