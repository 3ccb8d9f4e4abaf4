//! Measured instructions of R500, in groups of 64 lanes.

use reconverge_isa::Isa;

use super::{Frame, Row};

/// A launch over pixels. temp[1] and temp[2] are numbers that differ in every lane. temp[1].rg is the pixel's position
/// as a texture coordinate. aL is 1.
static PIXELS: Frame = Frame {
    before: "
.isa r500
.chip R580
.int 0 {rounds} 1 0
.const 0 1.5 2.5 3.5 0.25
.const 1 0.5 0.25 0.125 0.75
.state US_PIXSIZE 32
ALU temp[1].rgb = MAD src0.rgb, src0.111, src0.000 : src0=temp[0]
  + temp[1].a = MAD src0.r, src0.1, src0.0
ALU temp[2].rgb = MAD src0.rgr, src1.rgb, src1.gbr : src0=temp[0] src1=const[0]
  + temp[2].a = MAD src0.r, src0.1, src0.0
loop int[0]
",
    behind: "endloop int[0]
OUT out[A].rgb = MAD src0.rgb, src0.111, src0.000 : src0=temp[1] {TEX_SEM_WAIT}
  + out[A].a = MAD src0.a, src0.1, src0.0 : src0=temp[1]
",
    launch: r#"
isa = "r500"
group_width = 64
[[input]]
temp = 0
values = {positions}
{textures}"#,
};

/// A launch over index pairs with scattered outputs (CTM).
static DOMAIN: Frame = Frame {
    before: "
.isa r500
.chip R580
.int 0 {rounds} 1 0
.state US_PIXSIZE 32
ALU temp[1].gb = MAX src0.0gr, src0.0gr : src0=temp[0]
loop int[0]
",
    behind: "endloop int[0]
OUT out[C].rgb = MAX src0.rgb, src0.rgb : src0=temp[1]
  + out[A].a = MAX src0.0, src0.0
",
    launch: r#"
isa = "r500"
group_width = 64
[ctm]
domain = [64, 64]
uncached = true
output = [{ number = 0, format = "FLOAT32_1", pitch = 64, height = 64 }]
"#,
};

const fn row(name: &'static str, body: &'static str) -> Row {
    Row::new(Isa::R500, &PIXELS, name, body)
}

#[rustfmt::skip]
pub(super) static ROWS: &[Row] = &[
    row("MAD", "ALU temp[{d}].rgb = MAD src0.rgb, src1.rgb, src0.rgb : src0=temp[1] src1=temp[2]"),
    row("MAD, both units", "ALU temp[{d}].rgb = MAD src0.rgb, src1.rgb, src0.rgb : src0=temp[1] src1=temp[2]\n  + temp[{d}].a = MAD src0.a, src1.a, src0.a : src0=temp[1] src1=temp[2]"),
    row("MAX", "ALU temp[{d}].rgb = MAX src0.rgb, src1.rgb : src0=temp[1] src1=temp[2]"),
    row("DP3", "ALU temp[{d}].rgb = DP3 src0.rgb, src1.rgb : src0=temp[1] src1=temp[2]"),
    row("RCP", "ALU nop\n  + temp[{d}].a = RCP src0.a : src0=temp[1]"),
    row("RSQ", "ALU nop\n  + temp[{d}].a = RSQ src0.a : src0=temp[1]"),
    row("EX2", "ALU nop\n  + temp[{d}].a = EX2 src0.a : src0=temp[1]"),
    row("LN2", "ALU nop\n  + temp[{d}].a = LN2 src0.a : src0=temp[1]"),
    row("SIN", "ALU nop\n  + temp[{d}].a = SIN src0.a : src0=temp[1]"),
    row("COS", "ALU nop\n  + temp[{d}].a = COS src0.a : src0=temp[1]"),
    row("MDH", "ALU temp[{d}].rgb = MDH src0.rgb, src1.rgb, src0.rgb : src0=temp[1] src1=temp[2]"),
    row("constant", "ALU temp[{d}].rgb = MAD src0.rgb, src1.rgb, src0.rgb : src0=temp[1] src1=const[1]"),
    row("constant by aL", "ALU temp[{d}].rgb = MAD src0.rgb, src1.rgb, src0.rgb : src0=temp[1] src1=const[0+aL]"),
    row("read of a temporary by aL", "ALU temp[{d}].rgb = MAD src0.rgb, src1.rgb, src0.rgb : src0=temp[1] src1=temp[1+aL]"),
    row("write of a temporary by aL", "ALU temp[{d}+aL].rgb = MAD src0.rgb, src1.rgb, src0.rgb : src0=temp[1] src1=temp[2]"),
    row("if, divergent", "ALU alu_result[LT].r = MAD src0.rrr, src0.111, -src0.hhh : src0=temp[1]\nif alu\nALU temp[{d}].rgb = MAD src0.rgb, src1.rgb, src0.rgb : src0=temp[1] src1=temp[2]\nendif"),
    row("LD, nearest", "TEX temp[{d}].rgba = LD tex[0], temp[1].rgaa TEX_SEM_ACQUIRE {TEX_SEM_WAIT}").bound(110.0),
    row("LD, bilinear", "TEX temp[{d}].rgba = LD tex[1], temp[1].rgaa TEX_SEM_ACQUIRE {TEX_SEM_WAIT}").bound(280.0),
    row("PROJ, bilinear", "TEX temp[{d}].rgba = PROJ tex[1], temp[1].rgaa TEX_SEM_ACQUIRE {TEX_SEM_WAIT}"),
    row("LODBIAS, nearest", "TEX temp[{d}].rgba = LODBIAS tex[0], temp[1].rgaa TEX_SEM_ACQUIRE {TEX_SEM_WAIT}"),
    row("DXDY, nearest", "TEX temp[{d}].rgba = DXDY tex[0], temp[1].rgaa dx=temp[2].rgba dy=temp[2].rgba TEX_SEM_ACQUIRE {TEX_SEM_WAIT}"),
    Row::new(Isa::R500, &DOMAIN, "scatter", "OUT out[C].rgb = MAX src0.rgb, src0.rgb : src0=temp[1]\n  + out[A].a = MAX src0.0, src0.0"),
];
