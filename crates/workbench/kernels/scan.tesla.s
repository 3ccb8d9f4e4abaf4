; Running sums of 256 numbers a block (Hillis and Steele): in step d each thread adds the sum that ends d places before its own.
;
; Launch: blocks of 256 threads; the address of the numbers, which their sums replace.
.chip sm_11
.type CP
.kernel scan
.reg 12
.shared 1088                            ; header and parameter, then the sums at 0x40
.param 0 4

    and b32 $r0 $r0 0xffff
    mov b32 $r1 u16 s[0xc]
    shl b32 $r1 $r1 0x8
    add b32 $r1 $r1 $r0
    shl b32 $r1 $r1 0x2
    add b32 $r1 b32 s[0x10] $r1
    ld b32 $r3 g14[$r1]                 ; the thread's sum
    shl $a1 $r0 0x2
    st b32 s[$a1+0x40] $r3
    bar inc wait 0x0 0xfff
    mov b32 $r4 0x1                     ; d
    mov b32 $r6 0x100
step:
    sub b32 $c0 $r5 $r0 $r4             ; the place d before; below zero there is none
    shl $a2 $r5 0x2
    (ns $c0) ld $r7 b32 s[$a2+0x40]
    bar inc wait 0x0 0xfff              ; all have read before any writes
    (ns $c0) add b32 $r3 $r3 $r7
    (ns $c0) st b32 s[$a1+0x40] $r3
    bar inc wait 0x0 0xfff
    add b32 $r4 $r4 $r4
    set $c1 # l u32 $r4 $r6
    (lg $c1) bra step
    exit st b32 g14[$r1] $r3
