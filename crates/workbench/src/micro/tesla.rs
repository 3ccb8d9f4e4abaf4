//! Measured instructions of Tesla.

use reconverge_isa::Isa;

use super::{Frame, Row};

/// A launch of blocks of 256 threads. `$r0` is the index of the thread. `$r16` and `$r18` are floats that differ in
/// every lane. `$r17` is a float that is equal in all lanes. Every fourth float in `$r19` is zero. `$r20` to `$r23` are
/// addresses in global memory. `$r20` addresses contiguous words. `$r21` addresses one word for all lanes. `$r22`
/// addresses scattered words in a range of 64 KiB. `$r23` addresses contiguous units of 16 bytes. `$a1` to `$a3` are
/// offsets in shared memory. `$a1` addresses contiguous words, `$a2` addresses one word for all lanes, and `$a3`
/// addresses scattered words. `$c1` is true in odd lanes, `$c2` is true in all lanes, and `$c3` is true in no lane.
static COMPUTE: Frame = Frame {
    before: "
.chip sm_13
.type CP
.kernel micro
.reg 64
.shared 4096
.local 64
.const 1 0x0 0x3fc00000 0x40200000 0x7 0x9
.param 0 4
    mov b32 $r1 b32 s[0x10]
    and b32 $r0 $r0 0xffff
    shl b32 $r2 $r0 0x2
    add b32 $r20 $r1 $r2
    mov b32 $r21 $r1
    mov b32 $r3 0x805
    mul $r3 u16 $r0l u16 $r3l
    mul $r4 u16 $r0l u16 $r0l
    xor b32 $r3 $r3 $r4
    and b32 $r3 $r3 0x3fff
    shl b32 $r3 $r3 0x2
    add b32 $r22 $r1 $r3
    shl b32 $r23 $r0 0x4
    add b32 $r23 $r1 $r23
    shl $a1 $r0 0x2
    mov b32 $r4 0x0
    shl $a2 $r4 0x2
    and b32 $r3 $r3 0x3fc
    shl $a3 $r3 0x0
    mov b32 $r61 0x1
    and b32 $c1 # $r0 $r61
    or b32 $c2 # $r0 $r61
    and b32 $c3 # $r4 $r61
    cvt rn f32 $r16 u32 $r0
    add f32 $r16 $r16 0x3f400000
    mov b32 $r17 0x3fc00000
    mul f32 $r18 $r16 0x40200000
    and b32 $r19 $r0 0x3
    cvt rn f32 $r19 u32 $r19
    mov b32 $r60 {rounds}
again:
",
    behind: "    sub b32 $c0 $r60 $r60 $r61
    (lg $c0) bra again
    exit nop
",
    launch: r#"
isa = "tesla"
grid = [8]
block = [256]
[[param]]
name = "data"
buffer = "0..65536:u32"
[[texture]]
unit = 0
size = [256]
texels = "0..1024"
"#,
};

/// A launch of 2048 fragments in one row of quads. `$r16` and `$r18` are texture coordinates, and `$r17` is a constant.
static FRAGMENT: Frame = Frame {
    before: "
.chip sm_13
.type FP
.kernel micro
.reg 64
    interp $r16 v[0x4]
    interp $r18 v[0x8]
    mov b32 $r17 0x3fc00000
    mov b32 $r61 0x1
    mov b32 $r60 {rounds}
again:
",
    behind: "    sub b32 $c0 $r60 $r60 $r61
    (lg $c0) bra again
    mov b32 $r0 $r16
    mov b32 $r1 $r16
    mov b32 $r2 $r16
    mov b32 $r3 $r16
    exit nop
",
    launch: r#"
isa = "tesla"
lanes = 2048
[[input]]
word = 1
plane = [0.25, 0.0009765625, 0.0]
[[input]]
word = 2
plane = [0.25, 0.000244140625, 0.015625]
{textures}"#,
};

const fn row(name: &'static str, body: &'static str) -> Row {
    Row::new(Isa::Tesla, &COMPUTE, name, body)
}

const fn fragment(name: &'static str, body: &'static str) -> Row {
    Row::new(Isa::Tesla, &FRAGMENT, name, body)
}

const ADD: Row = row("add b32", "add b32 $r{d} $r17 $r0");

/// The row whose cost is the unit of cost.
pub(super) static UNIT: Row = ADD;

/// Sets the texture coordinates again, because a texture instruction overwrites their registers.
const COORDINATES: &str = "mov b32 $r8 $r16\nmov b32 $r9 $r18";

#[rustfmt::skip]
pub(super) static ROWS: &[Row] = &[
    row("mov", "mov b32 $r{d} $r17"),
    ADD,
    row("add b32, half the lanes", "(lg $c1) add b32 $r{d} $r17 $r0"),
    row("add f32", "add rn f32 $r{d} $r17 $r16"),
    row("mul f32", "mul rn f32 $r{d} $r17 $r16"),
    row("mul f32, zeros in the row", "mul rn f32 $r{d} $r19 $r16"),
    row("mad f32", "add f32 $r{d} (mul $r17 $r16) $r18").bound(3.0),
    row("mad f32, zeros in the row", "add f32 $r{d} (mul $r19 $r16) $r18"),
    row("rcp", "rcp f32 $r{d} $r16").bound(18.0),
    row("rsqrt", "rsqrt f32 $r{d} $r16").bound(18.0),
    row("lg2", "lg2 f32 $r{d} $r16").bound(18.0),
    row("presin", "presin f32 $r{d} $r16"),
    row("sin", "sin f32 $r{d} $r16").bound(18.0),
    row("cos", "cos f32 $r{d} $r16").bound(18.0),
    row("preex2", "preex2 f32 $r{d} $r16"),
    row("ex2", "ex2 f32 $r{d} $r16").bound(18.0),
    row("cvt f32 s32", "cvt rn f32 $r{d} s32 $r0"),
    row("mul u16", "mul $r{d} u16 $r0l u16 $r3l"),
    row("mad u16", "add $r{d} (mul u16 $r0l $r3l) $r17"),
    row("mul u24", "mul $r{d} u24 $r0 $r3"),
    row("shl", "shl b32 $r{d} $r17 0x3"),
    row("shl by a register", "shl b32 $r{d} $r17 $r0"),
    row("xor", "xor b32 $r{d} $r17 $r0"),
    row("min u32", "min u32 $r{d} $r17 $r0"),
    row("min f32", "min f32 $r{d} $r17 $r16"),
    row("set u32 with flags", "set $c0 # l u32 $r17 $r0"),
    row("set f32 with flags", "set $c0 # l f32 $r17 $r16"),
    row("shl $a", "shl $a0 $r2 0x0"),
    row("if, all leave", "joinat L{n}\n(lg $c2) bra L{n}\nadd b32 $r{d} $r17 $r0\nL{n}:\njoin nop"),
    row("if, all stay", "joinat L{n}\n(lg $c3) bra L{n}\nadd b32 $r{d} $r17 $r0\nL{n}:\njoin nop"),
    row("if, divergent", "joinat L{n}\n(lg $c1) bra L{n}\nadd b32 $r{d} $r17 $r0\nL{n}:\njoin nop"),
    row("bar", "bar inc wait 0x0 0xfff"),
    row("ld s[], each lane its word", "ld $r{d} b32 s[$a1+0x40]").bound(6.0),
    row("ld s[], one word for all", "ld $r{d} b32 s[$a2+0x40]").bound(6.0),
    row("ld s[], half the lanes", "(lg $c1) ld $r{d} b32 s[$a1+0x40]").bound(6.0),
    row("ld s[], scattered", "ld $r{d} b32 s[$a3+0x40]"),
    row("ld s[] u16", "ld $r{d} u16 s[$a1+0x40]"),
    row("st s[], each lane its word", "st b32 s[$a1+0x40] $r17").bound(6.0),
    row("st s[], half the lanes", "(lg $c1) st b32 s[$a1+0x40] $r17").bound(6.0),
    row("st s[], scattered", "st b32 s[$a3+0x40] $r17"),
    row("operand s[], one word", "add b32 $r{d} b32 s[0x40] $r17"),
    row("operand s[], each lane its word", "add b32 $r{d} b32 s[$a1+0x40] $r17"),
    row("operand c1[]", "add b32 $r{d} $r17 c1[0x4]"),
    row("ld c1[], one word", "ld $r{d} b32 c1[0x4]"),
    row("ld c1[], by $a", "ld $r{d} b32 c1[$a2+0x4]"),
    row("ld l[]", "ld b32 $r{d} l[0x10]"),
    row("st l[]", "st b32 l[0x10] $r17"),
    row("ld g[], consecutive", "ld b32 $r{d} g14[$r20]").bound(5.0),
    row("ld g[], half the lanes", "(lg $c1) ld b32 $r{d} g14[$r20]").bound(5.0),
    row("ld g[], one word for all", "ld b32 $r{d} g14[$r21]"),
    row("ld g[], scattered", "ld b32 $r{d} g14[$r22]").bound(18.0),
    row("ld g[], scattered, half the lanes", "(lg $c1) ld b32 $r{d} g14[$r22]").bound(18.0),
    row("ld g[] u8, scattered", "ld u8 $r{d} g14[$r22]"),
    row("ld g[] b128, consecutive", "ld b128 $r{q}q g14[$r23]"),
    row("st g[], consecutive", "st b32 g14[$r20] $r17").bound(5.0),
    row("st g[], half the lanes", "(lg $c1) st b32 g14[$r20] $r17").bound(5.0),
    row("st g[], one word for all", "st b32 g14[$r21] $r17"),
    row("st g[], scattered", "st b32 g14[$r22] $r17").bound(18.0),
    row("st g[] b128, consecutive", "st b128 g14[$r23] $r24q"),
    row("red add, consecutive", "red add u32 g14[$r20] $r17").bound(33.0),
    row("red add, one word for all", "red add u32 g14[$r21] $r17").bound(33.0),
    row("red add, scattered", "red add u32 g14[$r22] $r17").bound(33.0),
    row("atomic add, consecutive", "ld add u32 $r{d} g14[$r20] $r17"),
    row("atomic add, one word for all", "ld add u32 $r{d} g14[$r21] $r17"),
    row("cas, consecutive", "cas b32 $r{d} g14[$r20] $r17 $r16"),
    row("ld lock and st unlock of s[]", "ld lock $c0 $r{d} b32 s[$a1+0x40]\n(lg $c0) st unlock b32 s[$a1+0x40] $r17"),
    row("vote", "(lg $c1) vote any $c0"),
    row("texfetch, consecutive", "texfetch live $r8:#:#:# $t0 $s0 $r8:$r9 0x0 0x0 0x0")
        .ahead("mov b32 $r8 $r0\nmov b32 $r9 0x0"),
    fragment("quadop", "quadop f32 subr subr subr subr $r{d} l0 $r16 $r16"),
    fragment("interp", "interp $r{d} v[0x4]"),
    fragment("interp, times a register", "interp $r{d} v[0x4] $r17"),
    fragment("tex, nearest", "texauto live $r8:$r9:$r10:$r11 $t0 $s0 $r8:$r9 0x0 0x0 0x0").ahead(COORDINATES),
    fragment("tex, bilinear", "texauto live $r8:$r9:$r10:$r11 $t1 $s1 $r8:$r9 0x0 0x0 0x0").ahead(COORDINATES),
];
