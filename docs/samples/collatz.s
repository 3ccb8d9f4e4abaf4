; How many steps each number takes to come to 1 when even numbers are halved and odd ones become 3 n + 1.
; One thread a number: the lanes of a warp part at the if and leave the loop one after another.
.isa tesla
.chip sm_10
.kernel collatz
.reg 6
.shared 20
.param 0 4

    and b32 $r0 $r0 0xffff      ; threadIdx.x
    add b32 $r3 $r0 0x1         ; n
    mov b32 $r1 0x1
    mov b32 $r4 0x0             ; steps
    breakaddr done
step:
    set $c0 # e u32 $r3 $r1     ; n == 1?
    (lg $c0) break
    joinat next
    and b32 $c0 # $r3 $r1       ; is n odd?
    (lg $c0) bra odd
    shr u32 $r3 $r3 0x1
    bra next
odd:
    add b32 $r5 $r3 $r3
    add b32 $r3 $r5 $r3
    add b32 $r3 $r3 $r1
next:
    join add b32 $r4 $r4 $r1
    bra step
done:
    shl b32 $r0 $r0 0x2
    add b32 $r0 b32 s[0x10] $r0
    exit st b32 g14[$r0] $r4
