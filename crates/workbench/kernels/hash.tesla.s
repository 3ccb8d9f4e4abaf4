; 256 rounds of an xorshift generator with a Weyl sequence from each thread's number, in registers alone.
;
;     h = gid, k = 0x9e3779b9
;     256 times:  h ^= h << 13,  h ^= h >> 17,  h ^= h << 5,  h += k,  k += 0x9e3779b9
;
; Launch: blocks of 256 threads; the address of an array of u32.
.chip sm_10
.type CP
.kernel hash
.reg 8
.shared 20
.param 0 4

    mov b32 $r1 u16 s[0xc]
    mov b32 $r2 u16 s[0x2]
    mul $r1 u16 $r1l u16 $r2l
    add b32 $r0 $r1 $r0                 ; gid
    mov b32 $r3 $r0                     ; h
    mov b32 $r4 0x9e3779b9
    mov b32 $r5 $r4                     ; k
    mov b32 $r6 0x100
    mov b32 $r7 0x1
round:
    shl b32 $r2 $r3 0xd
    xor b32 $r3 $r3 $r2
    shr u32 $r2 $r3 0x11
    xor b32 $r3 $r3 $r2
    shl b32 $r2 $r3 0x5
    xor b32 $r3 $r3 $r2
    add b32 $r3 $r3 $r5
    add b32 $r5 $r5 $r4
    sub b32 $c0 $r6 $r6 $r7
    (lg $c0) bra round
    shl b32 $r0 $r0 0x2
    add b32 $r0 b32 s[0x10] $r0
    exit st b32 g14[$r0] $r3
