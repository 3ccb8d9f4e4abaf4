; Two warps reverse an array through shared memory; the barrier keeps the second from reading too early.
.chip G84
.type CP
.kernel reverse
.shared 512
    shl b32 $r1 $r0 0x2
    add b32 $r2 b32 s[0x10] $r1
    ld b32 $r3 g14[$r2]
    shl $a1 $r0 0x2
    st b32 s[$a1+0x40] $r3
    bar inc wait 0x0 0xfff
    mov b32 $r4 0x3f
    sub b32 $r4 $r4 $r0
    shl $a1 $r4 0x2
    ld $r3 b32 s[$a1+0x40]
    exit st b32 g14[$r2] $r3
