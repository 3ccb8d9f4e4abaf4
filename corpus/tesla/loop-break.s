; A loop that every lane leaves after a number of steps of its own: the Collatz steps of n = lane + 1.
.chip G80
.type CP
.kernel steps
    add b32 $r1 $r0 0x1     ; n
    mov b32 $r2 $r63        ; steps
    mov b32 $r5 0x1
    breakaddr done
top:
    set $c0 # e u32 $r1 $r5
    (s $c0) break           ; these lanes wait as BRK until nobody is left
    and b32 $c1 # $r1 $r5
    joinat next
    (e $c1) bra halve
    shl b32 $r3 $r1 0x1     ; odd: 3 n + 1
    add b32 $r1 $r1 $r3
    add b32 $r1 $r1 0x1
    bra next
halve:
    shr u32 $r1 $r1 0x1
next:
    join add b32 $r2 $r2 $r5
    bra top
done:
    shl b32 $r4 $r0 0x2
    add b32 $r4 b32 s[0x10] $r4
    exit st b32 g14[$r4] $r2
