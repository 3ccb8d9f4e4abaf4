//! Measured instructions of R700, in wavefronts of 64 lanes.

use reconverge_isa::Isa;

use super::{Frame, Row};

const LAUNCH: &str = r#"
isa = "r700"
scatter = "u32[4096]"
clause_temps = 0
[[input]]
gpr = 0
values = {positions}
[[constant]]
number = 0
values = "1..257:f32"
[[buffer]]
number = 160
stride = 16
values = "0..16384:f32"
{textures}"#;

/// A launch over pixels. R2 and R3 contain different numbers in every lane. R2.xy is the pixel's position as a texture
/// coordinate. R4.x is 0 to 3, R4.y is twice R4.x, and R4.z is the lane's number.
static PIXELS: Frame = Frame {
    before: "
.isa r700
.chip rv770
.stage pixel
.gprs 40
.stack 2
ALU:
 0 x: MOV R1.x, ({rounds}).x
 1 x: MOV R2.x, R0.x
   y: MOV R2.y, R0.y
   z: MOV R2.z, (0.75f).x
   w: MOV R2.w, (1.25f).y
 2 x: MUL R3.x, R0.x, (2.5f).x
   y: MUL R3.y, R0.y, (3.5f).y
   z: MOV R3.z, R0.x
   w: MOV R3.w, R0.y
 3 x: MUL R4.x, R0.x, (64.0f).x
   y: MUL R4.y, R0.y, (64.0f).x
 4 t: FLT_TO_INT R4.x, R4.x
 5 t: FLT_TO_INT R4.y, R4.y
 6 y: LSHL_INT R4.y, R4.y, (6).x
 7 z: ADD_INT R4.z, R4.x, R4.y
 8 x: AND_INT R4.x, R4.x, (3).x
 9 y: LSHL_INT R4.y, R4.x, 1
LOOP_START_DX10: ADDR(@done)
@step:
ALU_BREAK:
 0 x: PRED_SETNE_INT _.x, R1.x, 0 UPDATE_EXEC_MASK
",
    behind: "ALU:
 0 x: SUB_INT R1.x, R1.x, 1
LOOP_END: ADDR(@step)
@done:
EXPORT_DONE: PIXEL[0], R2.xyzw END_OF_PROGRAM
",
    launch: LAUNCH,
};

/// A launch over pixels with a counted loop, in which aL counts from 0.
static COUNTED: Frame = Frame {
    before: "
.isa r700
.chip rv770
.stage pixel
.gprs 40
.stack 2
.loop 0 {rounds}
ALU:
 0 x: MOV R2.x, R0.x
   y: MOV R2.y, R0.y
LOOP_START: ADDR(@done) CF_CONST(0)
@step:
",
    behind: "LOOP_END: ADDR(@step) CF_CONST(0)
@done:
EXPORT_DONE: PIXEL[0], R2.xyzw END_OF_PROGRAM
",
    launch: LAUNCH,
};

const fn row(clause: &'static str, name: &'static str, body: &'static str) -> Row {
    Row::new(Isa::R700, &PIXELS, name, body).clause(clause)
}

const fn counted(clause: &'static str, name: &'static str, body: &'static str) -> Row {
    Row::new(Isa::R700, &COUNTED, name, body).clause(clause)
}

/// Sets the address register. A clause that reads the address register must also write the address register. The
/// write must come at least two ALU groups before the read.
const ADDRESS: &str = "0 x: MOVA_INT _.x, R4.x\n1 x: MOV R7.x, R2.x";

#[rustfmt::skip]
pub(super) static ROWS: &[Row] = &[
    row("ALU:", "MOV", "0 x: MOV R{d}.x, R2.x"),
    row("ALU:", "ADD", "0 x: ADD R{d}.x, R2.x, R3.x"),
    row("ALU:", "ADD in four slots", "0 x: ADD R{d}.x, R2.x, R3.x\ny: ADD R{d}.y, R2.y, R3.y\nz: ADD R{d}.z, R2.z, R3.z\nw: ADD R{d}.w, R2.w, R3.w"),
    row("ALU:", "MULADD_IEEE", "0 x: MULADD_IEEE R{d}.x, R2.x, R3.x, R2.y"),
    row("ALU:", "DOT4", "0 x: DOT4 R{d}.x, R2.x, R3.x\ny: DOT4 _.y, R2.y, R3.y\nz: DOT4 _.z, R2.z, R3.z\nw: DOT4 _.w, R2.w, R3.w"),
    row("ALU:", "ADD_INT", "0 x: ADD_INT R{d}.x, R4.x, R4.y"),
    row("ALU:", "MULLO_INT", "0 t: MULLO_INT R{d}.x, R4.x, R4.y"),
    row("ALU:", "FLT_TO_INT", "0 t: FLT_TO_INT R{d}.x, R2.x"),
    row("ALU:", "RECIP_IEEE", "0 t: RECIP_IEEE R{d}.x, R2.x"),
    row("ALU:", "RECIPSQRT_IEEE", "0 t: RECIPSQRT_IEEE R{d}.x, R2.x"),
    row("ALU:", "SQRT_IEEE", "0 t: SQRT_IEEE R{d}.x, R2.x"),
    row("ALU:", "LOG_IEEE", "0 t: LOG_IEEE R{d}.x, R2.x"),
    row("ALU:", "EXP_IEEE", "0 t: EXP_IEEE R{d}.x, R2.x"),
    row("ALU:", "SIN", "0 t: SIN R{d}.x, R2.x"),
    row("ALU: KCACHE0(CB0:0-15)", "kcache", "0 x: ADD R{d}.x, R2.x, KC0[1].x"),
    counted("ALU: KCACHE0(CB0:0-31+aL)", "kcache by aL", "0 x: ADD R{d}.x, R2.x, KC0[1].x"),
    row("ALU: KCACHE0(CB0:0-15)", "kcache by AR", "2 x: ADD R{d}.x, R2.x, KC0[1+AR.x].x").ahead(ADDRESS),
    row("ALU:", "MOVA_INT", "0 x: MOVA_INT _.x, R4.x"),
    row("ALU:", "read of a register by AR", "2 x: ADD R{d}.x, R2.x, R[2+AR.x].x").ahead(ADDRESS),
    row("ALU:", "write of a register by AR", "2 x: MOV R[{d}+AR.x].x, R2.x").ahead(ADDRESS),
    counted("ALU:", "read of a register by aL", "2 x: ADD R{d}.x, R2.x, R[2+aL].x"),
    row("", "if, lanes agree", "ALU_PUSH_BEFORE:\n0 x: PRED_SETGE_INT _.x, R4.x, 0 UPDATE_EXEC_MASK\nALU_POP_AFTER:\n0 x: MOV R{d}.x, R2.x"),
    row("", "if, divergent", "ALU_PUSH_BEFORE:\n0 x: PRED_SETGE_INT _.x, R4.x, 1 UPDATE_EXEC_MASK\nALU_POP_AFTER:\n0 x: MOV R{d}.x, R2.x"),
    row("TEX:", "LDS write", "LOCAL_DS_WRITE R2 DST_STRIDE(4)"),
    row("TEX:", "LDS read, scattered", "LOCAL_DS_READ R{d}.xyzw, R4.x SRC_Y(Y)"),
    row("VTX:", "vertex fetch of a word, consecutive", "FETCH R{d}.x001, R4.z, b160 FORMAT(32_FLOAT) MEGA(4)"),
    row("VTX:", "vertex fetch of four words, consecutive", "FETCH R{d}.xyzw, R4.z, b160 FORMAT(32_32_32_32_FLOAT) MEGA(16)"),
    row("VTX:", "vertex fetch of a word, four addresses", "FETCH R{d}.x001, R4.x, b160 FORMAT(32_FLOAT) MEGA(4)"),
    row("TEX:", "SAMPLE, nearest", "SAMPLE R{d}.xyzw, R2.xyzw, t0, s0").bound(110.0),
    row("TEX:", "SAMPLE, bilinear", "SAMPLE R{d}.xyzw, R2.xyzw, t1, s1").bound(280.0),
    row("TEX:", "SAMPLE_LZ, nearest", "SAMPLE_LZ R{d}.xyzw, R2.xyzw, t0, s0").bound(110.0),
    row("TEX:", "SAMPLE_LZ, bilinear", "SAMPLE_LZ R{d}.xyzw, R2.xyzw, t1, s1").bound(280.0),
    row("TEX:", "LD", "LD R{d}.xyzw, R4.xyzw, t0, s0"),
    row("TEX:", "GET_GRADIENTS_H", "GET_GRADIENTS_H R{d}.xyzw, R2.xyzw, t0, s0"),
    row("", "MEM_SCRATCH", "MEM_SCRATCH: WRITE[0], R2.xyzw ELEM_SIZE(3)"),
    row("", "MEM_SCRATCH, by a register", "MEM_SCRATCH: WRITE_IND[0], R2.xyzw INDEX_GPR(4) ELEM_SIZE(3) ARRAY_SIZE(7)"),
    row("", "MEM_EXPORT, scattered", "MEM_EXPORT: WRITE_IND[0], R2.x___ INDEX_GPR(4) ELEM_SIZE(0) ARRAY_SIZE(4095)"),
];
