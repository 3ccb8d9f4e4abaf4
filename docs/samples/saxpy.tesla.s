; y[i] = a * x[i] + y[i], one thread for each i below n.
.isa tesla
.chip sm_11
.kernel saxpy
.reg 6
.shared 32
.param s[0x10] 4 n
.param s[0x14] 4 a
.param s[0x18] 4 x
.param s[0x1c] 4 y
.alias i, $r1
.alias at, $r2

    mov b16 $r2l threadIdx.x
    cvt u32 i, u16 $r2l
    cvt u32 $r3, blockIdx.x
    cvt u32 $r4, blockDim.x
    add i, (mul u16 $r3l, $r4l), i          ; i = blockIdx.x * blockDim.x + threadIdx.x
    mov b32 $r5, b32 s[n]
    set $c0 # ge u32 i, $r5
    (lg $c0) ret                            ; outside a subroutine it ends the lane
    shl b32 at, i, 2
    add b32 $r3, b32 s[x], at
    ld b32 $r3, g14[$r3]
    add b32 at, b32 s[y], at
    ld b32 $r4, g14[at]
    mov b32 $r5, b32 s[a]
    add f32 $r4, (mul $r3, $r5), $r4
    exit st b32 g14[at], $r4
