; n = 0, sum = 0; loop { if n >= x { break }; n += 1; sum += n }
; x is the thread, n in $r1, sum in $r2.
.isa tesla
.chip sm_10
.kernel rounds
.reg 4
.shared 20
.param 0 4
    and b32 $r0 $r0 0xffff      ; x
    mov b32 $r1 0x0             ; n
    mov b32 $r2 0x0             ; sum
    breakaddr done
step:
    set $c0 # ge u32 $r1 $r0    ; n >= x?
    (lg $c0) break
    add b32 $r1 $r1 0x1
    add b32 $r2 $r2 $r1
    bra step
done:
    shl b32 $r0 $r0 0x2
    add b32 $r0 b32 s[0x10] $r0
    exit st b32 g14[$r0] $r2
