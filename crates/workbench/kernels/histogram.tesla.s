; How often each of 256 values occurs in 2^21 bytes, one word each: a thread counts 16 of them, 2^17 apart, with atomic additions
; to global memory.
;
; Launch: 512 blocks of 256 threads; the addresses of the words and of the 256 counts.
.chip sm_11
.type CP
.kernel histogram
.reg 12
.shared 24
.param 0 4
.param 4 4

    mov b32 $r1 u16 s[0xc]
    mov b32 $r2 u16 s[0x2]
    mul $r1 u16 $r1l u16 $r2l
    add b32 $r0 $r1 $r0
    shl b32 $r0 $r0 0x2
    add b32 $r0 b32 s[0x10] $r0
    mov b32 $r1 0x80000                 ; 2^17 words
    mov b32 $r2 0x10
    mov b32 $r3 0x1
next:
    ld b32 $r4 g14[$r0]
    shl b32 $r4 $r4 0x2
    add b32 $r4 b32 s[0x14] $r4
    red add u32 g14[$r4] $r3
    add b32 $r0 $r0 $r1
    sub b32 $c0 $r2 $r2 $r3
    (lg $c0) bra next
    exit nop
