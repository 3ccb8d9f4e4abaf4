; A fragment program: a colour scaled by constants; fragments whose first component is negative are discarded.
.isa tesla
.chip G80
.type fragment
    interp $r0 v[0x4]
    interp $r1 v[0x8]
    interp $r2 v[0xc]
    interp $r3 v[0x10]
    set $c0 # l f32 $r0 $r63
    (s $c0) discard
    mul rn f32 $r0 $r0 c1[0x0]
    mul rn f32 $r1 $r1 c1[0x4]
    exit nop
