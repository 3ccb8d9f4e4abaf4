; A subroutine that lanes leave at two places; its CALL token brings them back together.
.chip G80
.type CP
.kernel main
    mov b32 $r1 $r0
    call absdiff
    add b32 $r1 $r1 0xa     ; with all lanes again
    shl b32 $r2 $r0 0x2
    add b32 $r2 b32 s[0x10] $r2
    exit st b32 g14[$r2] $r1
absdiff:                    ; $r1 = |$r1 - 3|
    mov b32 $r3 0x3
    sub b32 $c0 $r4 $r1 $r3
    (ns $c0) mov b32 $r1 $r4
    (ns $c0) ret            ; part of the warp waits as RET
    subr b32 $r1 $r1 $r3
    ret
