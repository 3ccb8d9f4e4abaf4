; out[n] = the number of bits of n: the smallest k for which n < 2^k. One thread for each n.
.isa tesla
.chip sm_10
.kernel bits
.reg 6
.shared 20
.param s[0x10] 4 out

    and b32 $r0 $r0 0xffff      ; n
    mov b32 $r1 $r0             ; what is left of n
    mov b32 $r2 0x0             ; k
    mov b32 $r3 0x20            ; rounds to go
    mov b32 $r4 0x1
step:
    and b32 $c0 # $r1 $r1       ; is anything left?
    (lg $c0) add b32 $r2 $r2 $r4
    shr u32 $r1 $r1 0x1
    sub b32 $r3 $r3 $r4
    and b32 $c1 # $r3 $r3
    (lg $c1) bra step
    shl b32 $r5 $r0 0x2
    add b32 $r5 b32 s[out] $r5
    exit st b32 g14[$r5] $r2
