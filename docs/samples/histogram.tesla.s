; bins[values[i] % BINS] += 1, with an atomic addition to global memory.
.isa tesla
.chip sm_11
.ifndef BINS
.equ BINS, 8
.endif
.kernel histogram
.reg 4
.shared 24
.param s[0x10] 4 values
.param s[0x14] 4 bins

; $r\to = the address of word \index of the buffer that parameter \buffer names
.macro element to, buffer, index
    shl b32 \to, \index, 2
    add b32 \to, b32 s[\buffer], \to
.endm

    and b32 $r0, $r0, 0xffff
    element $r1, values, $r0
    ld b32 $r2, g14[$r1]
    and b32 $r2, $r2, BINS-1
    element $r3, bins, $r2
    mov b32 $r2, 1
    exit red add u32 g14[$r3], $r2
