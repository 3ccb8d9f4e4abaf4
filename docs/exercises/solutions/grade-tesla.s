; Each comparison switches one instruction on or off.
.isa tesla
.chip sm_10
.kernel grade
.reg 3
.shared 20
.param s[0x10] 4 out

    and b32 $r0 $r0 0xffff      ; x
    mov b32 $r1 0x2
    mov b32 $r2 0xd             ; r = 3 + 10
    set $c0 # ge u32 $r0 $r1    ; x >= 2?
    mov b32 $r1 0xc
    (lg $c0) mov b32 $r2 $r1
    mov b32 $r1 0x5
    set $c0 # ge u32 $r0 $r1    ; x >= 5?
    mov b32 $r1 0xb
    (lg $c0) mov b32 $r2 $r1
    shl b32 $r0 $r0 0x2
    add b32 $r0 b32 s[out] $r0
    exit st b32 g14[$r0] $r2
