; out[n] = n + 100 for odd n, 2 n for even n. One thread for each n.
.isa tesla
.chip sm_10
.kernel select
.reg 4
.shared 20
.param s[0x10] 4 out

    and b32 $r0 $r0 0xffff      ; n
    mov b32 $r1 0x1
    and b32 $c0 # $r0 $r1       ; odd?
    joinat both
    (lg $c0) bra odd
    add b32 $r2 $r0 $r0         ; even: 2 n
    bra both
odd:
    add b32 $r2 $r0 0x64        ; odd: n + 100
both:
    join shl b32 $r3 $r0 0x2
    add b32 $r3 b32 s[out] $r3
    exit st b32 g14[$r3] $r2
