; Each step adds the upper half of what is left to the lower half: six steps instead of 64.
.isa tesla
.chip sm_10
.kernel reduce
.reg 5
.shared 280
.param s[0x10] 4 in
.param s[0x14] 4 sum

    and b32 $r0 $r0 0xffff          ; threadIdx.x
    shl b32 $r1 $r0 0x2
    shl $a1 $r0 0x2
    add b32 $r2 b32 s[in] $r1
    ld b32 $r2 g14[$r2]
    st b32 s[$a1+0x18] $r2
    mov b32 $r3 0x20                ; threads of the step
step:
    bar inc wait 0x0 0xfff
    shl b32 $r4 $r3 0x2
    add b32 $r4 $r4 $r1
    shl $a2 $r4 0x0
    set $c0 # l u32 $r0 $r3
    (lg $c0) mov b32 $r2 b32 s[$a2+0x18]
    (lg $c0) add b32 $r2 b32 s[$a1+0x18] $r2
    (lg $c0) st b32 s[$a1+0x18] $r2
    shr u32 $r3 $r3 0x1
    and b32 $c1 # $r3 $r3
    (lg $c1) bra step
    and b32 $c0 # $r0 $r0
    mov b32 $r3 b32 s[sum]
    (e $c0) st b32 g14[$r3] $r2
    exit nop
