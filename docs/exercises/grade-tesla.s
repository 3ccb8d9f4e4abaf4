; if x >= 2 { if x >= 5 { r = 1 } else { r = 2 } } else { r = 3 }; r += 10
; x is the thread, r in $r2. An if pushes where its lanes meet, and a side that waits: token stack.
.isa tesla
.chip sm_10
.kernel grade
.reg 3
.shared 20
.param s[0x10] 4 out
    and b32 $r0 $r0 0xffff      ; x
    mov b32 $r1 0x2
    joinat end
    set $c0 # ge u32 $r0 $r1    ; x >= 2?
    (lg $c0) bra large
    mov b32 $r2 0x3             ; r = 3
    bra end
large:
    mov b32 $r1 0x5
    joinat inner
    set $c0 # ge u32 $r0 $r1    ; x >= 5?
    (lg $c0) bra larger
    mov b32 $r2 0x2             ; r = 2
    bra inner
larger:
    mov b32 $r2 0x1             ; r = 1
inner:
    join nop
end:
    join nop
    add b32 $r2 $r2 0xa
    shl b32 $r0 $r0 0x2
    add b32 $r0 b32 s[out] $r0
    exit st b32 g14[$r0] $r2
