; A lit and textured fragment: the surface's normal is interpolated and brought to length 1, light falls along it, and the
; colour of a texture is scaled by what falls there and a rest that falls everywhere.
;
;     light = max(0, n . l / |n|) * 3/4 + 1/4,  colour = texture(u, v) * light
;
; In:  v[0x4], v[0x8] the texture's coordinates, v[0xc] .. v[0x14] the normal; c1[0x0] .. c1[0x8] the light's direction.
; Out: one colour of four numbers.
.chip sm_11
.type FP
.kernel lit
.reg 16

    interp $r0 v[0x4]
    interp $r1 v[0x8]
    interp $r4 v[0xc]
    interp $r5 v[0x10]
    interp $r6 v[0x14]
    texauto live $r0:$r1:$r2:$r3 $t0 $s0 $r0:$r1 0x0 0x0 0x0
    mul rn f32 $r8 $r4 $r4
    add f32 $r8 (mul $r5 $r5) $r8
    add f32 $r8 (mul $r6 $r6) $r8
    rsqrt f32 $r8 $r8
    mul rn f32 $r9 $r4 c1[0x0]
    mov b32 $r10 0x0
    mul rn f32 $r11 $r5 c1[0x4]
    add rn f32 $r9 $r9 $r11
    mul rn f32 $r11 $r6 c1[0x8]
    add rn f32 $r9 $r9 $r11
    mul rn f32 $r9 $r9 $r8
    max f32 $r9 $r9 $r10
    mul f32 $r9 $r9 0x3f400000
    add f32 $r9 $r9 0x3e800000
    mul rn f32 $r0 $r0 $r9
    mul rn f32 $r1 $r1 $r9
    mul rn f32 $r2 $r2 $r9
    exit mul rn f32 $r3 $r3 $r9
