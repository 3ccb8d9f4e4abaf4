; A step of a radix sort by bits 8 to 11: a block of 64 threads sorts 512 numbers, eight per thread, by this digit. Each thread
; counts its digits in shared memory, a sum over all counts gives each thread the place of each digit, and the thread stores its
; numbers there.
;
; Numbers with equal digits keep their order, so that eight such steps sort numbers of 32 bits.
;
; Launch: blocks of 64 threads; the addresses of the numbers and of the result, which is sorted 512 by 512.
.chip sm_11
.type CP
.kernel radix
.reg 28
.shared 4416                            ; header and parameters, then counts[digit][thread] at 0x40 and sums at 0x1040
.param 0 4
.param 4 4

    and b32 $r0 $r0 0xffff
    mov b32 $r1 u16 s[0xc]
    shl b32 $r1 $r1 0xb                 ; the block's first number, in bytes
    shl b32 $r2 $r0 0x5
    add b32 $r2 $r1 $r2
    add b32 $r2 b32 s[0x10] $r2
    ld b128 $r8q g14[$r2]               ; eight contiguous numbers
    add b32 $r2 $r2 0x10
    ld b128 $r12q g14[$r2]
    shl $a1 $r0 0x2                     ; the thread's counts and its sum
    mov b32 $r3 0x0
    st b32 s[$a1+0x40] $r3
    st b32 s[$a1+0x140] $r3
    st b32 s[$a1+0x240] $r3
    st b32 s[$a1+0x340] $r3
    st b32 s[$a1+0x440] $r3
    st b32 s[$a1+0x540] $r3
    st b32 s[$a1+0x640] $r3
    st b32 s[$a1+0x740] $r3
    st b32 s[$a1+0x840] $r3
    st b32 s[$a1+0x940] $r3
    st b32 s[$a1+0xa40] $r3
    st b32 s[$a1+0xb40] $r3
    st b32 s[$a1+0xc40] $r3
    st b32 s[$a1+0xd40] $r3
    st b32 s[$a1+0xe40] $r3
    st b32 s[$a1+0xf40] $r3

    shl b32 $r4 $r0 0x2                 ; the address of each number's count: 256 * digit + 4 * thread
    and b32 $r16 $r8 0xf00
    add b32 $r16 $r16 $r4
    shl $a2 $r16 0x0
    ld $r5 b32 s[$a2+0x40]
    add b32 $r5 $r5 0x1
    st b32 s[$a2+0x40] $r5
    and b32 $r17 $r9 0xf00
    add b32 $r17 $r17 $r4
    shl $a2 $r17 0x0
    ld $r5 b32 s[$a2+0x40]
    add b32 $r5 $r5 0x1
    st b32 s[$a2+0x40] $r5
    and b32 $r18 $r10 0xf00
    add b32 $r18 $r18 $r4
    shl $a2 $r18 0x0
    ld $r5 b32 s[$a2+0x40]
    add b32 $r5 $r5 0x1
    st b32 s[$a2+0x40] $r5
    and b32 $r19 $r11 0xf00
    add b32 $r19 $r19 $r4
    shl $a2 $r19 0x0
    ld $r5 b32 s[$a2+0x40]
    add b32 $r5 $r5 0x1
    st b32 s[$a2+0x40] $r5
    and b32 $r20 $r12 0xf00
    add b32 $r20 $r20 $r4
    shl $a2 $r20 0x0
    ld $r5 b32 s[$a2+0x40]
    add b32 $r5 $r5 0x1
    st b32 s[$a2+0x40] $r5
    and b32 $r21 $r13 0xf00
    add b32 $r21 $r21 $r4
    shl $a2 $r21 0x0
    ld $r5 b32 s[$a2+0x40]
    add b32 $r5 $r5 0x1
    st b32 s[$a2+0x40] $r5
    and b32 $r22 $r14 0xf00
    add b32 $r22 $r22 $r4
    shl $a2 $r22 0x0
    ld $r5 b32 s[$a2+0x40]
    add b32 $r5 $r5 0x1
    st b32 s[$a2+0x40] $r5
    and b32 $r23 $r15 0xf00
    add b32 $r23 $r23 $r4
    shl $a2 $r23 0x0
    ld $r5 b32 s[$a2+0x40]
    add b32 $r5 $r5 0x1
    st b32 s[$a2+0x40] $r5
    bar inc wait 0x0 0xfff

    shl $a3 $r0 0x6                     ; the sum of 16 contiguous counts
    ld $r3 b32 s[$a3+0x40]
    add b32 $r3 b32 s[$a3+0x44] $r3
    add b32 $r3 b32 s[$a3+0x48] $r3
    add b32 $r3 b32 s[$a3+0x4c] $r3
    add b32 $r3 b32 s[$a3+0x50] $r3
    add b32 $r3 b32 s[$a3+0x54] $r3
    add b32 $r3 b32 s[$a3+0x58] $r3
    add b32 $r3 b32 s[$a3+0x5c] $r3
    add b32 $r3 b32 s[$a3+0x60] $r3
    add b32 $r3 b32 s[$a3+0x64] $r3
    add b32 $r3 b32 s[$a3+0x68] $r3
    add b32 $r3 b32 s[$a3+0x6c] $r3
    add b32 $r3 b32 s[$a3+0x70] $r3
    add b32 $r3 b32 s[$a3+0x74] $r3
    add b32 $r3 b32 s[$a3+0x78] $r3
    add b32 $r3 b32 s[$a3+0x7c] $r3
    mov b32 $r4 $r3                     ; the sum up to this thread
    st b32 s[$a1+0x1040] $r4
    bar inc wait 0x0 0xfff
    mov b32 $r5 0x1                     ; d
    mov b32 $r6 0x40
step:
    sub b32 $c0 $r2 $r0 $r5             ; the thread d before; below zero there is none
    shl $a2 $r2 0x2
    (ns $c0) ld $r7 b32 s[$a2+0x1040]
    bar inc wait 0x0 0xfff              ; all have read before any writes
    (ns $c0) add b32 $r4 $r4 $r7
    (ns $c0) st b32 s[$a1+0x1040] $r4
    bar inc wait 0x0 0xfff
    add b32 $r5 $r5 $r5
    set $c1 # l u32 $r5 $r6
    (lg $c1) bra step
    sub b32 $r4 $r4 $r3                 ; the sum before this thread
    ld $r5 b32 s[$a3+0x40]
    st b32 s[$a3+0x40] $r4
    add b32 $r4 $r4 $r5
    ld $r5 b32 s[$a3+0x44]
    st b32 s[$a3+0x44] $r4
    add b32 $r4 $r4 $r5
    ld $r5 b32 s[$a3+0x48]
    st b32 s[$a3+0x48] $r4
    add b32 $r4 $r4 $r5
    ld $r5 b32 s[$a3+0x4c]
    st b32 s[$a3+0x4c] $r4
    add b32 $r4 $r4 $r5
    ld $r5 b32 s[$a3+0x50]
    st b32 s[$a3+0x50] $r4
    add b32 $r4 $r4 $r5
    ld $r5 b32 s[$a3+0x54]
    st b32 s[$a3+0x54] $r4
    add b32 $r4 $r4 $r5
    ld $r5 b32 s[$a3+0x58]
    st b32 s[$a3+0x58] $r4
    add b32 $r4 $r4 $r5
    ld $r5 b32 s[$a3+0x5c]
    st b32 s[$a3+0x5c] $r4
    add b32 $r4 $r4 $r5
    ld $r5 b32 s[$a3+0x60]
    st b32 s[$a3+0x60] $r4
    add b32 $r4 $r4 $r5
    ld $r5 b32 s[$a3+0x64]
    st b32 s[$a3+0x64] $r4
    add b32 $r4 $r4 $r5
    ld $r5 b32 s[$a3+0x68]
    st b32 s[$a3+0x68] $r4
    add b32 $r4 $r4 $r5
    ld $r5 b32 s[$a3+0x6c]
    st b32 s[$a3+0x6c] $r4
    add b32 $r4 $r4 $r5
    ld $r5 b32 s[$a3+0x70]
    st b32 s[$a3+0x70] $r4
    add b32 $r4 $r4 $r5
    ld $r5 b32 s[$a3+0x74]
    st b32 s[$a3+0x74] $r4
    add b32 $r4 $r4 $r5
    ld $r5 b32 s[$a3+0x78]
    st b32 s[$a3+0x78] $r4
    add b32 $r4 $r4 $r5
    st b32 s[$a3+0x7c] $r4
    bar inc wait 0x0 0xfff

    add b32 $r1 b32 s[0x14] $r1
    shl $a2 $r16 0x0
    ld $r5 b32 s[$a2+0x40]              ; the number's place
    add b32 $r6 $r5 0x1
    st b32 s[$a2+0x40] $r6
    shl b32 $r5 $r5 0x2
    add b32 $r5 $r1 $r5
    st b32 g14[$r5] $r8
    shl $a2 $r17 0x0
    ld $r5 b32 s[$a2+0x40]
    add b32 $r6 $r5 0x1
    st b32 s[$a2+0x40] $r6
    shl b32 $r5 $r5 0x2
    add b32 $r5 $r1 $r5
    st b32 g14[$r5] $r9
    shl $a2 $r18 0x0
    ld $r5 b32 s[$a2+0x40]
    add b32 $r6 $r5 0x1
    st b32 s[$a2+0x40] $r6
    shl b32 $r5 $r5 0x2
    add b32 $r5 $r1 $r5
    st b32 g14[$r5] $r10
    shl $a2 $r19 0x0
    ld $r5 b32 s[$a2+0x40]
    add b32 $r6 $r5 0x1
    st b32 s[$a2+0x40] $r6
    shl b32 $r5 $r5 0x2
    add b32 $r5 $r1 $r5
    st b32 g14[$r5] $r11
    shl $a2 $r20 0x0
    ld $r5 b32 s[$a2+0x40]
    add b32 $r6 $r5 0x1
    st b32 s[$a2+0x40] $r6
    shl b32 $r5 $r5 0x2
    add b32 $r5 $r1 $r5
    st b32 g14[$r5] $r12
    shl $a2 $r21 0x0
    ld $r5 b32 s[$a2+0x40]
    add b32 $r6 $r5 0x1
    st b32 s[$a2+0x40] $r6
    shl b32 $r5 $r5 0x2
    add b32 $r5 $r1 $r5
    st b32 g14[$r5] $r13
    shl $a2 $r22 0x0
    ld $r5 b32 s[$a2+0x40]
    add b32 $r6 $r5 0x1
    st b32 s[$a2+0x40] $r6
    shl b32 $r5 $r5 0x2
    add b32 $r5 $r1 $r5
    st b32 g14[$r5] $r14
    shl $a2 $r23 0x0
    ld $r5 b32 s[$a2+0x40]
    add b32 $r6 $r5 0x1
    st b32 s[$a2+0x40] $r6
    shl b32 $r5 $r5 0x2
    add b32 $r5 $r1 $r5
    exit st b32 g14[$r5] $r15
