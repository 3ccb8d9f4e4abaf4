; Interpolation over a quad: linear, perspective (times w), flat, and each pixel's difference from the first.
.chip G80
.type FP
.kernel planes
    interp $r4 v[0x0]               ; 1 / w
    rcp f32 $r4 $r4                 ; w
    interp $r0 v[0x4]               ; linear
    interp $r1 v[0x8] $r4           ; attribute / w, times w
    interp $r2 flat v[0xc]
    quadop f32 subr subr subr subr $r3 l0 $r0 $r0
    exit nop
