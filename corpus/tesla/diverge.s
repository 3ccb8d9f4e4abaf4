; If and else: odd lanes take the branch, even lanes fall through, all meet at the join.
.chip G80
.type CP
.kernel diverge
    mov b32 $r1 $r0
    mov b32 $r3 0x1
    and b32 $c0 # $r1 $r3
    joinat both
    (e $c0) bra even        ; lanes disagree: a BRANCH token waits for the others
    add b32 $r1 $r1 0x64    ; odd: n + 100
    bra both
even:
    add b32 $r1 $r1 $r1     ; even: 2 n
both:
    join shl b32 $r2 $r0 0x2
    add b32 $r2 b32 s[0x10] $r2
    exit st b32 g14[$r2] $r1
