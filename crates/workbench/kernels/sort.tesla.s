; A bitonic sort in shared memory: a block of 256 threads sorts 512 numbers, each thread compares and swaps one pair a step.
;
; Launch: blocks of 256 threads; the address of the numbers, which are sorted where they are, 512 by 512.
.chip sm_11
.type CP
.kernel sort
.reg 24
.shared 2112                            ; header and parameter, then the numbers at 0x40
.param 0 4

    and b32 $r0 $r0 0xffff
    mov b32 $r1 u16 s[0xc]
    shl b32 $r1 $r1 0xb
    add b32 $r1 b32 s[0x10] $r1
    shl b32 $r2 $r0 0x2
    add b32 $r1 $r1 $r2                 ; the thread's first number; its second is 256 behind
    mov b32 $r9 0x400
    add b32 $r3 $r1 $r9
    shl $a3 $r0 0x2
    ld b32 $r4 g14[$r1]
    ld b32 $r5 g14[$r3]
    st b32 s[$a3+0x40] $r4
    st b32 s[$a3+0x440] $r5
    bar inc wait 0x0 0xfff
    mov b32 $r20 0x1
    mov b32 $r21 0x200
    mov b32 $r10 0x2                    ; k: runs of k numbers are sorted, up and down in turn
merge:
    shr u32 $r11 $r10 0x1               ; j: how far the numbers of a pair are apart
step:
    sub b32 $r12 $r11 $r20
    and b32 $r12 $r0 $r12
    add b32 $r13 $r0 $r0
    sub b32 $r13 $r13 $r12              ; i = 2 t - (t mod j)
    add b32 $r14 $r13 $r11
    shl $a1 $r13 0x2
    shl $a2 $r14 0x2
    ld $r4 b32 s[$a1+0x40]
    ld $r5 b32 s[$a2+0x40]
    min u32 $r6 $r4 $r5
    max u32 $r7 $r4 $r5
    and b32 $c0 # $r13 $r10             ; up where i and k share no bit
    (e $c0) st b32 s[$a1+0x40] $r6
    (e $c0) st b32 s[$a2+0x40] $r7
    (lg $c0) st b32 s[$a1+0x40] $r7
    (lg $c0) st b32 s[$a2+0x40] $r6
    bar inc wait 0x0 0xfff
    shr u32 $c1 $r11 $r11 0x1
    (lg $c1) bra step
    add b32 $r10 $r10 $r10
    set $c0 # le u32 $r10 $r21
    (lg $c0) bra merge
    ld $r4 b32 s[$a3+0x40]
    ld $r5 b32 s[$a3+0x440]
    st b32 g14[$r1] $r4
    exit st b32 g14[$r3] $r5
