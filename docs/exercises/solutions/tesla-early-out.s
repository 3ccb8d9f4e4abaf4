; A thread leaves the loop when nothing is left. The loop ends with the last thread, after 5 rounds instead of 32.
.isa tesla
.chip sm_10
.kernel bits
.reg 6
.shared 20
.param s[0x10] 4 out

    and b32 $r0 $r0 0xffff      ; n
    mov b32 $r1 $r0             ; what is left of n
    mov b32 $r2 0x0             ; k
    breakaddr done
step:
    and b32 $c0 # $r1 $r1       ; is anything left?
    (e $c0) break
    add b32 $r2 $r2 0x1
    shr u32 $r1 $r1 0x1
    bra step
done:
    shl b32 $r5 $r0 0x2
    add b32 $r5 b32 s[out] $r5
    exit st b32 g14[$r5] $r2
