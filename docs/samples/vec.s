; out[i] = a[i] + n, for one-dimensional grids.
.isa tesla
.chip sm_10
.kernel add
.reg 4
.shared 28
.param 0 4
.param 4 4
.param 8 4
    mov b32 $r1 u16 s[0xc]      ; blockIdx.x
    mov b32 $r2 u16 s[0x2]      ; blockDim.x
    mul $r1 u16 $r1l u16 $r2l
    add b32 $r1 $r1 $r0
    shl b32 $r1 $r1 0x2
    add b32 $r2 b32 s[0x10] $r1
    ld b32 $r3 g14[$r2]
    add b32 $r3 b32 s[0x18] $r3
    add b32 $r2 b32 s[0x14] $r1
    exit st b32 g14[$r2] $r3
