; The product of two matrices of 256 x 256 numbers, one thread a number of the result: a block computes a tile of 16 x 16 and
; goes along a row of tiles of A and a column of tiles of B, which its threads bring into shared memory together.
;
;     c[row][column] = sum of a[row][k] * b[k][column]
;
; Launch: 16 x 16 blocks of 16 x 16 threads; the addresses of A, B and C.
.chip sm_11
.type CP
.kernel matmul
.reg 20
.shared 2112                            ; header and parameters, then the tiles at 0x40 and 0x440
.param 0 4
.param 4 4
.param 8 4

    and b32 $r1 $r0 0xffff              ; tid.x
    shr u32 $r2 $r0 0x10                ; tid.y
    mov b32 $r3 u16 s[0xc]              ; ctaid.x
    mov b32 $r4 u16 s[0xe]              ; ctaid.y
    shl b32 $r5 $r3 0x4
    add b32 $r5 $r5 $r1                 ; column
    shl b32 $r6 $r4 0x4
    add b32 $r6 $r6 $r2                 ; row

    shl b32 $r7 $r6 0x8                 ; the thread's number in A's first tile
    add b32 $r7 $r7 $r1
    shl b32 $r7 $r7 0x2
    add b32 $r7 b32 s[0x10] $r7
    shl b32 $r8 $r2 0x8                 ; and in B's
    add b32 $r8 $r8 $r5
    shl b32 $r8 $r8 0x2
    add b32 $r8 b32 s[0x14] $r8
    shl b32 $r9 $r6 0x8                 ; its result
    add b32 $r9 $r9 $r5
    shl b32 $r9 $r9 0x2
    add b32 $r9 b32 s[0x18] $r9

    shl b32 $r10 $r2 0x4
    add b32 $r10 $r10 $r1
    shl $a1 $r10 0x2                    ; its place in both tiles
    shl $a2 $r2 0x6                     ; its row of A's tile
    shl $a3 $r1 0x2                     ; its column of B's tile
    mov b32 $r11 0x0                    ; the sum
    mov b32 $r12 0x10                   ; tiles that are left
    mov b32 $r13 0x1
    mov b32 $r16 0x40
    mov b32 $r17 0x4000
tile:
    ld b32 $r14 g14[$r7]
    ld b32 $r15 g14[$r8]
    st b32 s[$a1+0x40] $r14
    st b32 s[$a1+0x440] $r15
    bar inc wait 0x0 0xfff
    ld $r14 b32 s[$a3+0x440]
    add f32 $r11 (mul b32 s[$a2+0x40] $r14) $r11
    ld $r14 b32 s[$a3+0x480]
    add f32 $r11 (mul b32 s[$a2+0x44] $r14) $r11
    ld $r14 b32 s[$a3+0x4c0]
    add f32 $r11 (mul b32 s[$a2+0x48] $r14) $r11
    ld $r14 b32 s[$a3+0x500]
    add f32 $r11 (mul b32 s[$a2+0x4c] $r14) $r11
    ld $r14 b32 s[$a3+0x540]
    add f32 $r11 (mul b32 s[$a2+0x50] $r14) $r11
    ld $r14 b32 s[$a3+0x580]
    add f32 $r11 (mul b32 s[$a2+0x54] $r14) $r11
    ld $r14 b32 s[$a3+0x5c0]
    add f32 $r11 (mul b32 s[$a2+0x58] $r14) $r11
    ld $r14 b32 s[$a3+0x600]
    add f32 $r11 (mul b32 s[$a2+0x5c] $r14) $r11
    ld $r14 b32 s[$a3+0x640]
    add f32 $r11 (mul b32 s[$a2+0x60] $r14) $r11
    ld $r14 b32 s[$a3+0x680]
    add f32 $r11 (mul b32 s[$a2+0x64] $r14) $r11
    ld $r14 b32 s[$a3+0x6c0]
    add f32 $r11 (mul b32 s[$a2+0x68] $r14) $r11
    ld $r14 b32 s[$a3+0x700]
    add f32 $r11 (mul b32 s[$a2+0x6c] $r14) $r11
    ld $r14 b32 s[$a3+0x740]
    add f32 $r11 (mul b32 s[$a2+0x70] $r14) $r11
    ld $r14 b32 s[$a3+0x780]
    add f32 $r11 (mul b32 s[$a2+0x74] $r14) $r11
    ld $r14 b32 s[$a3+0x7c0]
    add f32 $r11 (mul b32 s[$a2+0x78] $r14) $r11
    ld $r14 b32 s[$a3+0x800]
    add f32 $r11 (mul b32 s[$a2+0x7c] $r14) $r11
    bar inc wait 0x0 0xfff              ; all have read the tiles before the next ones come
    add b32 $r7 $r7 $r16
    add b32 $r8 $r8 $r17
    sub b32 $c0 $r12 $r12 $r13
    (lg $c0) bra tile
    exit st b32 g14[$r9] $r11
