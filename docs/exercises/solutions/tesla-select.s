; Both sides are one instruction each. A condition on an instruction costs nothing and splits no warp.
.isa tesla
.chip sm_10
.kernel select
.reg 4
.shared 20
.param s[0x10] 4 out

    and b32 $r0 $r0 0xffff      ; n
    mov b32 $r1 0x1
    and b32 $c0 # $r0 $r1       ; odd?
    mov b32 $r3 0x64
    add b32 $r2 $r0 $r0
    (lg $c0) add b32 $r2 $r0 $r3
    shl b32 $r3 $r0 0x2
    add b32 $r3 b32 s[out] $r3
    exit st b32 g14[$r3] $r2
