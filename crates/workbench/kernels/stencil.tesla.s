; A step of heat on a grid of 1024 x 1024 numbers, one thread per number: each number approaches its four neighbours, and the border
; is its own neighbour.
;
;     out = c + (left + right + up + down - 4 c) / 8
;
; Launch: 64 x 64 blocks of 16 x 16 threads; the addresses of the grid and of the result.
.chip sm_11
.type CP
.kernel stencil
.reg 12
.shared 24
.param 0 4
.param 4 4

    and b32 $r1 $r0 0xffff
    shr u32 $r2 $r0 0x10
    mov b32 $r3 u16 s[0xc]
    mov b32 $r4 u16 s[0xe]
    shl b32 $r3 $r3 0x4
    shl b32 $r4 $r4 0x4
    add b32 $r1 $r3 $r1
    add b32 $r2 $r4 $r2
    shl b32 $r1 $r1 0x2                 ; x and y, in bytes
    shl b32 $r2 $r2 0xc
    mov b32 $r7 0x0
    mov b32 $r8 0xffc
    mov b32 $r9 0x3ff000
    sub b32 $r3 $r1 0x4
    add b32 $r4 $r1 0x4
    sub b32 $r5 $r2 0x1000
    add b32 $r6 $r2 0x1000
    max s32 $r3 $r3 $r7
    min s32 $r4 $r4 $r8
    max s32 $r5 $r5 $r7
    min s32 $r6 $r6 $r9
    add b32 $r7 b32 s[0x10] $r2         ; the row
    add b32 $r8 b32 s[0x10] $r1         ; the column
    add b32 $r3 $r7 $r3
    add b32 $r4 $r7 $r4
    add b32 $r5 $r8 $r5
    add b32 $r6 $r8 $r6
    add b32 $r7 $r7 $r1
    ld b32 $r3 g14[$r3]
    ld b32 $r4 g14[$r4]
    ld b32 $r5 g14[$r5]
    ld b32 $r6 g14[$r6]
    ld b32 $r7 g14[$r7]
    add rn f32 $r3 $r3 $r4
    add rn f32 $r3 $r3 $r5
    add rn f32 $r3 $r3 $r6
    add f32 $r3 (mul $r7 -4.0) $r3
    add f32 $r7 (mul $r3 0.125) $r7
    add b32 $r1 b32 s[0x14] $r1
    add b32 $r1 $r1 $r2
    exit st b32 g14[$r1] $r7
