; A fragment program: the texel at the coordinates in v[0x4] and v[0x8], darkened.
.isa tesla
.chip G80
.type FP
.kernel textured
.reg 4
.equ DIM, 0.5
    interp $r0, v[0x4]
    interp $r1, v[0x8]
    texauto all $r0:$r1:$r2:$r3 $t0 $s0 $r0:$r1 0x0 0x0 0x0
    mul f32 $r0, $r0, DIM
    mul f32 $r1, $r1, DIM
    mul f32 $r2, $r2, DIM
    exit nop
