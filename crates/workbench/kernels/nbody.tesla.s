; The acceleration of each of 2048 bodies by all of them, one thread a body: a block goes over the bodies in tiles of 128, which
; its threads bring into shared memory together.
;
;     a[i] = sum of m[j] * d / |d|^3,  d = p[j] - p[i],  |d|^2 softened by 1/1024
;
; Launch: 16 blocks of 128 threads; the addresses of the bodies (x, y, z, mass) and of the accelerations (x, y, z, 0).
.chip sm_11
.type CP
.kernel nbody
.reg 28
.shared 2112                            ; header and parameters, then the tile at 0x40
.param 0 4
.param 4 4

    and b32 $r0 $r0 0xffff
    mov b32 $r1 u16 s[0xc]
    shl b32 $r1 $r1 0x7
    add b32 $r1 $r1 $r0                 ; i
    shl b32 $r1 $r1 0x4
    add b32 $r2 b32 s[0x14] $r1         ; its acceleration
    add b32 $r1 b32 s[0x10] $r1
    ld b128 $r4q g14[$r1]               ; x, y, z; the mass is not needed
    shl b32 $r3 $r0 0x4
    shl $a1 $r0 0x4                     ; its place in the tile
    add b32 $r3 b32 s[0x10] $r3         ; what it brings into the first tile
    mov b32 $r12 0x0
    mov b32 $r13 0x0
    mov b32 $r14 0x0
    mov b32 $r15 0x0
    mov b32 $r20 0x10                   ; tiles that are left
    mov b32 $r21 0x1
    mov b32 $r22 0x800
    mov b32 $r23 0x3a800000             ; 1/1024
    mov b32 $r25 0x0
tile:
    ld b128 $r8q g14[$r3]
    st b32 s[$a1+0x40] $r8
    st b32 s[$a1+0x44] $r9
    st b32 s[$a1+0x48] $r10
    st b32 s[$a1+0x4c] $r11
    bar inc wait 0x0 0xfff
    shl $a2 $r25 0x2
    mov b32 $r24 0x80
body:
    ld $r8 b32 s[$a2+0x40]
    ld $r9 b32 s[$a2+0x44]
    ld $r10 b32 s[$a2+0x48]
    add rn f32 $r8 $r8 neg $r4
    add rn f32 $r9 $r9 neg $r5
    add rn f32 $r10 $r10 neg $r6
    add f32 $r16 (mul $r8 $r8) $r23
    add f32 $r16 (mul $r9 $r9) $r16
    add f32 $r16 (mul $r10 $r10) $r16
    rsqrt f32 $r16 $r16
    mul rn f32 $r17 $r16 $r16
    mul rn f32 $r17 $r17 $r16
    mul rn f32 $r17 b32 s[$a2+0x4c] $r17
    add f32 $r12 (mul $r8 $r17) $r12
    add f32 $r13 (mul $r9 $r17) $r13
    add f32 $r14 (mul $r10 $r17) $r14
    add $a2 $a2 0x10
    sub b32 $c0 $r24 $r24 $r21
    (lg $c0) bra body
    bar inc wait 0x0 0xfff
    add b32 $r3 $r3 $r22
    sub b32 $c0 $r20 $r20 $r21
    (lg $c0) bra tile
    exit st b128 g14[$r2] $r12q
