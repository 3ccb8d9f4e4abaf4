; Sums of 1024 numbers per block along a tree in shared memory: each thread adds four numbers, and half of the threads add the sums
; of the other half until one is left.
;
; Launch: blocks of 256 threads; the addresses of the numbers and of the sums, one per block.
.chip sm_11
.type CP
.kernel reduce
.reg 8
.shared 1088                            ; header and parameters, then the sums at 0x40
.param 0 4
.param 4 4

    and b32 $r0 $r0 0xffff
    mov b32 $r1 u16 s[0xc]
    shl b32 $r2 $r1 0x8
    shl b32 $r2 $r2 0x2
    add b32 $r2 $r2 $r0
    shl b32 $r2 $r2 0x2
    add b32 $r2 b32 s[0x10] $r2
    ld b32 $r3 g14[$r2]                 ; four numbers, 256 apart
    add b32 $r2 $r2 0x400
    ld b32 $r4 g14[$r2]
    add b32 $r2 $r2 0x400
    ld b32 $r5 g14[$r2]
    add b32 $r2 $r2 0x400
    ld b32 $r6 g14[$r2]
    add rn f32 $r3 $r3 $r4
    add rn f32 $r3 $r3 $r5
    add rn f32 $r3 $r3 $r6
    shl $a1 $r0 0x2
    st b32 s[$a1+0x40] $r3
    bar inc wait 0x0 0xfff
    mov b32 $r4 0x80                    ; threads that add
half:
    joinat added
    set $c0 # ge u32 $r0 $r4
    (lg $c0) bra added
    add b32 $r5 $r0 $r4
    shl $a2 $r5 0x2
    ld $r5 b32 s[$a2+0x40]
    add rn f32 $r3 $r3 $r5              ; the thread's own sum is also in its register
    st b32 s[$a1+0x40] $r3
added:
    join nop
    bar inc wait 0x0 0xfff
    shr u32 $c1 $r4 $r4 0x1
    (lg $c1) bra half
    shl b32 $r1 $r1 0x2
    add b32 $r1 b32 s[0x14] $r1
    and b32 $c0 # $r0 $r0
    exit (e $c0) st b32 g14[$r1] $r3    ; thread 0 has the block's sum
