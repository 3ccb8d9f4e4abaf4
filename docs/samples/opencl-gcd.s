.isa tesla
.chip GT215
.type CP
    mov b32 $r3 u8 s[0x2]
    cvt u32 $r1 u16 u16 s[0x2]
    cvt u32 $r2 u16 u16 s[0xc]
    and b32 $r0 $r0 0xffff
    short mul $r4 u16 $r2l u16 $r1h
    short add $r4 (mul u16 $r2h $r1l) $r4
    shl b32 $r4 $r4 0x10
    add $r1 (mul u16 $r2l $r1l) $r4
    add b32 $r0 $r1 $r0
    add b32 $r0 b32 s[0x10] $r0
    shl b32 $r0 $r0 0x2
    add b32 $r1 b32 s[0x0] $r0
    ld b32 $r1 g0[$r1]
    breakaddr Lc8
L68:
    set $c0 # e s32 $r1 $r3
    (lg $c0) break
    breakaddr La0
L80:
    set $c0 # ge u32 $r3 $r1
    (lg $c0) break
    sub b32 $r1 $r1 $r3
    bra L80
La0:
    breakaddr Ld8
La8:
    set $c0 # ge u32 $r1 $r3
    (lg $c0) break
    sub b32 $r3 $r3 $r1
    bra La8
Lc8:
    add b32 $r0 b32 s[0x4] $r0
    exit st b32 g0[$r0] $r1
Ld8:
    bra L68
