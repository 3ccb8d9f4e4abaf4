; Kernels of the tests of `reconverge cuda`.
.isa tesla
.chip sm_11
.type CP

.module
.pointers 4
.sampler row 1
.sampler picture 0
.variable scale 4 c0[0x0]
.const 0 0x0 0x40000000
.variable table 16 global c14[0x0]
.data 0x1 0x2 0x3 0x4

; out[i] = value + i, for i below count.
.kernel fill
.reg 4
.shared 28
.bar 0
.param 0x0 4 out
.param 0x4 4 count
.param 0x8 4 value
    ld $r0h u16 s[0x2]
    cvt u32 $r1 u16 $r0l
    add $r0 (mul u16 u16 s[0xc] $r0h) $r1
    set $c0 # le s32 b32 s[0x14] $r0
    (lg $c0) ret
    shl b32 $r1 $r0 0x2
    add b32 $r1 b32 s[0x10] $r1
    add b32 $r2 b32 s[0x18] $r0
    exit st b32 g14[$r1] $r2

; data[i] *= scale, which is a constant variable.
.kernel scaled
.reg 4
.shared 20
.bar 0
.param 0x0 4 data
    and b32 $r0 $r0 0xffff
    shl b32 $r1 $r0 0x2
    add b32 $r1 b32 s[0x10] $r1
    ld b32 $r2 g14[$r1]
    mul rn f32 $r2 $r2 c0[0x0]
    exit st b32 g14[$r1] $r2

; out[i] = table[i & 3], a variable in global memory.
.kernel looked
.reg 4
.shared 20
.bar 0
.param 0x0 4 out
    and b32 $r0 $r0 0xffff
    and b32 $r1 $r0 0x3
    shl b32 $r1 $r1 0x2
    add b32 $r1 $r1 c14[0x0]
    ld b32 $r2 g14[$r1]
    shl b32 $r1 $r0 0x2
    add b32 $r1 b32 s[0x10] $r1
    exit st b32 g14[$r1] $r2

; Dynamic shared memory: out[i] is what the thread n - 1 - i has put there.
.kernel turned
.reg 4
.shared 64
.bar 1
.param 0x0 4 out
    ld $r0h u16 s[0x2]
    cvt u32 $r1 u16 $r0l
    shl b32 $r2 $r1 0x2
    shl $a1 $r1 0x2
    st b32 s[$a1+0x40] $r1
    bar inc wait 0x0 0xfff
    ld $r0l u16 s[0x2]
    cvt u32 $r3 u16 $r0l
    sub b32 $r3 $r3 $r1
    shl $a1 $r3 0x2
    ld $r3 b32 s[$a1+0x3c]
    add b32 $r2 b32 s[0x10] $r2
    exit st b32 g14[$r2] $r3

; A store to an address that no buffer has.
.kernel wild
.reg 4
.shared 20
.bar 0
.param 0x0 4 out
    mov b32 $r1 0x10
    exit st b32 g14[$r1] $r0

; out[i] = texel i of the texture row.
.kernel fetched
.reg 4
.shared 20
.bar 0
.param 0x0 4 out
    and b32 $r0 $r0 0xffff
    mov b32 $r1 $r0
    texfetch live $r1:#:#:# $t1 $s1 $r1 0x0 0x0 0x0
    shl b32 $r2 $r0 0x2
    add b32 $r2 b32 s[0x10] $r2
    exit st b32 g14[$r2] $r1

; out[i] = the texture picture at (i + 0.5, 1.5), which are texels.
.kernel sampled
.reg 4
.shared 20
.bar 0
.param 0x0 4 out
    and b32 $r0 $r0 0xffff
    cvt rn f32 $r1 u32 $r0
    mov b32 $r2 0x3f000000
    add rn f32 $r1 $r1 $r2
    mov b32 $r2 0x3fc00000
    texauto live $r1:#:#:# $t0 $s0 $r1:$r2 0x0 0x0 0x0
    shl b32 $r2 $r0 0x2
    add b32 $r2 b32 s[0x10] $r2
    exit st b32 g14[$r2] $r1
