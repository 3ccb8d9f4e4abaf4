; out[n] = 15 (100 + n) for odd threads, 15 (100 - n) for even ones.
.isa tesla
.chip sm_10
.kernel signs
.reg 5
.shared 20
.param 0 4

    and b32 $r0 $r0 0xffff      ; threadIdx.x
    mov b32 $r1 0x1
    mov b32 $r2 0x64
    and b32 $c0 # $r0 $r1       ; odd?
    joinat next
    (lg $c0) bra odd
    sub b32 $r2 $r2 $r0
    bra next
odd:
    add b32 $r2 $r2 $r0
next:
    join shl b32 $r3 $r2 0x1
    add b32 $r2 $r2 $r3
    shl b32 $r3 $r2 0x2
    add b32 $r2 $r2 $r3
    shl b32 $r0 $r0 0x2
    add b32 $r0 b32 s[0x10] $r0
    exit st b32 g14[$r0] $r2
