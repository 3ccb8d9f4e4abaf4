//! Rows of one-word instructions. (2.1, Appendix A)
//!
//! A row has seven parts, in this order: the name, the start of the assembly text, the fixed bits of the instruction,
//! the mask of the fixed bits, the section that describes the instruction, the parts of the assembly text, and the
//! meaning. Rows are in the order of the machine's description.

use reconverge_isa::row::Part;

use crate::inst::{Arith, Control, Idle, Memory, Op, TexOp};
use crate::lane::Width;
use crate::lane::interpolate::Position;
use crate::parts::*;

use super::{Row, bits16, bits24, mad, short, tex};

#[rustfmt::skip]
pub(super) static SHORT_ROWS: &[Row] = &[
    // Data movement (4)
    short("s.mov.b16", "mov", 0x1000_0000, 0xf000_8003, "4",
        &[SHORT, Part::Text("mov"), sfu::<17>(), Part::Text("b16"), SHDST, SSRC1H],
        |_| Op::Arith(Arith::Mov { width: Width::B16 })),
    short("s.mov.b32", "mov", 0x1000_8000, 0xf000_8003, "4",
        &[SHORT, Part::Text("mov"), sfu::<17>(), Part::Text("b32"), SDST, SSRC1W],
        |_| Op::Arith(Arith::Mov { width: Width::B32 })),

    // Integer addition (5.1)
    short("s.iadd.b16", "add|sub|subr|addc", 0x2000_0000, 0xe000_8003, "5.1",
        &[SHORT, ADDOP, sat::<8>(), Part::Text("b16"), SHDST, SSRC1H, SSRC2H, CARRY_S],
        |d| Op::Arith(Arith::Add { addition: d.addition, width: Width::B16, sat: d.sat })),
    short("s.iadd.b32", "add|sub|subr|addc", 0x2000_8000, 0xe000_8003, "5.1",
        &[SHORT, ADDOP, sat::<8>(), Part::Text("b32"), SDST, SSRC1W, SSRC2W, CARRY_S],
        |d| Op::Arith(Arith::Add { addition: d.addition, width: Width::B32, sat: d.sat })),

    // 16-bit products (5.2)
    short("s.mul16", "mul", 0x4000_0000, 0xf040_0003, "5.2",
        &[SHORT, Part::Text("mul"), SDST, us16::<15, 0>(), SSRC1H, us16::<8, 1>(), SSRC2H],
        |d| Op::Arith(Arith::Mul { product: bits16(d.signed) })),

    // 24-bit products (5.3)
    short("s.mul24", "mul", 0x4040_0000, 0xf040_0003, "5.3",
        &[SHORT, Part::Text("mul"), SDST, high::<8>(), us24::<15, 0>(), SSRC1W, SSRC2W],
        |d| Op::Arith(Arith::Mul { product: bits24(d.signed[0], d.high) })),

    // Sums of absolute differences (5.5)
    short("s.sad.16", "sad", 0x5000_0000, 0xf000_8003, "5.5",
        &[SHORT, Part::Text("sad"), SDST, us16::<8, 0>(), SHSRC1, SHSRC2, SDST_3],
        |d| Op::Arith(Arith::Sad { width: Width::B16, signed: d.signed[0] })),
    short("s.sad.32", "sad", 0x5000_8000, 0xf000_8003, "5.5",
        &[SHORT, Part::Text("sad"), SDST, us32::<8, 0>(), SSRC1, SSRC2, SDST_3],
        |d| Op::Arith(Arith::Sad { width: Width::B32, signed: d.signed[0] })),

    // Products and sums (5.4)
    short("s.imad.0", "add|sub|subr|addc", 0x6000_0000, 0xe000_8103, "5.4",
        &[SHORT, ADDOP, SDST, Part::Open, Part::Text("mul"), Part::Text("u16"), SSRC1H, SSRC2H, Part::Close, SDST_3, CARRY_S],
        |d| mad(d, bits16([false; 2]), false)),
    short("s.imad.1", "add|sub|subr|addc", 0x6000_0100, 0xe000_8103, "5.4",
        &[SHORT, ADDOP, SDST, Part::Open, Part::Text("mul"), Part::Text("s16"), SSRC1H, SSRC2H, Part::Close, SDST_3, CARRY_S],
        |d| mad(d, bits16([true; 2]), false)),
    short("s.imad.2", "add|sub|subr|addc", 0x6000_8000, 0xe000_8103, "5.4",
        &[SHORT, ADDOP, Part::Text("sat"), SDST, Part::Open, Part::Text("mul"), Part::Text("s16"), SSRC1H, SSRC2H, Part::Close, SDST_3, CARRY_S],
        |d| mad(d, bits16([true; 2]), true)),
    short("s.imad.3", "add|sub|subr|addc", 0x6000_8100, 0xe000_8103, "5.4",
        &[SHORT, ADDOP, SDST, Part::Open, Part::Text("mul"), Part::Text("u24"), SSRC1W, SSRC2W, Part::Close, SDST_3, CARRY_S],
        |d| mad(d, bits24(false, false), false)),

    // Interpolation (6.7)
    short("s.interp", "interp", 0x8000_0000, 0xf300_0103, "6.7",
        &[SHORT, Part::Text("interp"), SDST, SVAR],
        |_| Op::Memory(Memory::Interp { position: Position::Centre })).only(F),
    short("s.interp.cent", "interp", 0x8100_0000, 0xf300_0103, "6.7",
        &[SHORT, Part::Text("interp"), SDST, Part::Text("cent"), SVAR],
        |_| Op::Memory(Memory::Interp { position: Position::Centroid })).only(F),
    short("s.interp.mul", "interp", 0x8200_0000, 0xf300_0103, "6.7",
        &[SHORT, Part::Text("interp"), SDST, SVAR, SSRC1_2],
        |_| Op::Memory(Memory::Interp { position: Position::Centre })).only(F),
    short("s.interp.cent.mul", "interp", 0x8300_0000, 0xf300_0103, "6.7",
        &[SHORT, Part::Text("interp"), SDST, Part::Text("cent"), SVAR, SSRC1_2],
        |_| Op::Memory(Memory::Interp { position: Position::Centroid })).only(F),
    short("s.interp.flat", "interp", 0x8000_0100, 0xf300_0103, "6.7",
        &[SHORT, Part::Text("interp"), SDST, Part::Text("flat"), SVAR],
        |_| Op::Memory(Memory::Interp { position: Position::Flat })).only(F),

    // Special functions (8)
    short("s.rcp", "rcp", 0x9000_0000, 0xf000_0003, "8",
        &[SHORT, Part::Text("rcp"), Part::Text("f32"), SDST, neg::<22, 0>(), abs::<15, 0>(), SSRC1],
        |_| Op::Arith(Arith::Rcp)),

    // f32 add, mul, mad (6.2)
    short("s.fadd", "add", 0xb000_0000, 0xf000_0003, "6.2",
        &[SHORT, Part::Text("add"), sat::<8>(), Part::Text("f32"), SDST, neg::<15, 0>(), SSRC1W, neg::<22, 1>(), SSRC2W],
        |d| Op::Arith(Arith::FAdd { rounding: d.rounding, sat: d.sat })),
    short("s.fmul", "mul", 0xc000_0000, 0xf000_0003, "6.2",
        &[SHORT, Part::Text("mul"), sat_g200::<8>(), Part::Text("f32"), SDST, neg::<15, 0>(), SSRC1W, neg::<22, 1>(), SSRC2W],
        |d| Op::Arith(Arith::FMul { rounding: d.rounding, sat: d.sat })),
    short("s.fmad", "add", 0xe000_0000, 0xf000_0003, "6.2",
        &[SHORT, Part::Text("add"), sat::<8>(), Part::Text("f32"), SDST, neg::<15, 0>(), Part::Open, Part::Text("mul"), SSRC1W, SSRC2W, Part::Close, neg::<22, 2>(), SDST_3],
        |d| Op::Arith(Arith::FMad { sat: d.sat })),

    // Texture (6.9)
    short("s.texauto", "texauto", 0xf000_0000, 0xf100_0003, "6.9",
        &[SHORT, Part::Text("texauto"), tex_live::<8>(), STDST, TEX, SAMP, STSRC],
        |d| tex(d, TexOp::Auto, false)),
    short("s.texfetch", "texfetch", 0xf100_0000, 0xf100_0003, "6.9",
        &[SHORT, Part::Text("texfetch"), tex_live::<8>(), STDST, TEX, SAMP, STSRC],
        |d| tex(d, TexOp::Fetch, false)),

    // Further instructions (6.10)
    short("s.trap", "trap", 0x9000_0002, 0xf000_0003, "6.10",
        &[SHORT, Part::Text("trap")],
        |_| Op::Control(Control::Trap)),
    short("s.brkpt", "brkpt", 0xb000_0002, 0xf000_0003, "6.10",
        &[SHORT, Part::Text("brkpt")],
        |_| Op::Idle(Idle::Brkpt)).only(SM11),
];
