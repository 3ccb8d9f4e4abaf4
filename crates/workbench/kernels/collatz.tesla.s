; The Collatz sequence from gid + 1, one thread a number: how many of at most 255 steps it takes to come to 1.
;
;     n = gid + 1
;     while n != 1 and steps < 255:  n = n odd ? 3 * n + 1 : n / 2,  steps += 1        (32 bits, wrapping)
;
; The loop is left with breakaddr and break, which needs no join: lanes that break are parked, the others
; go on, and when none is left the warp unwinds to the BREAK token and all continue at its address. The two sides of
; the if meet with joinat and join.
;
; Launch: blocks of 256 threads in x; one parameter, the address of an array of u32.
.chip sm_10
.type CP
.kernel collatz
.reg 8
.shared 20                              ; the 16 bytes of the header, then the parameter
.param 0 4

    ; gid = ctaid.x * ntid.x + tid.x. A one-dimensional block has tid.x alone in $r0.
    mov b32 $r1 u16 s[0xc]              ; ctaid.x
    mov b32 $r2 u16 s[0x2]              ; ntid.x
    mul $r1 u16 $r1l u16 $r2l
    add b32 $r0 $r1 $r0

    mov b32 $r1 0x1
    add b32 $r3 $r0 $r1                 ; n
    mov b32 $r2 0xff
    mov b32 $r4 $r2                     ; steps that are left
    breakaddr done
step:
    set $c0 # e u32 $r3 $r1             ; n == 1?
    (lg $c0) break
    joinat next
    and b32 $c0 # $r3 $r1               ; is n odd?
    (lg $c0) bra odd
    shr u32 $r3 $r3 0x1
    bra next
odd:
    add b32 $r5 $r3 $r3                 ; there is no 32-bit multiplication
    add b32 $r3 $r5 $r3
    add b32 $r3 $r3 $r1
next:
    join sub b32 $c0 $r4 $r4 $r1        ; the subtraction says whether any are left
    (lg $c0) bra step
    break                               ; nothing left: these lanes go too
done:
    sub b32 $r4 $r2 $r4
    shl b32 $r0 $r0 0x2
    add b32 $r0 b32 s[0x10] $r0
    exit st b32 g14[$r0] $r4
