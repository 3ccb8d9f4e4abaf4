; A lit and textured fragment: the surface's normal comes in interpolated and is brought to length 1, light falls along it,
; and the colour of a texture is scaled by what falls there and a rest that falls everywhere.
;
;     light = max(0, n . l / |n|) * 3/4 + 1/4,  colour = texture(u, v) * light
;
; In:  temp[0].rg, the texture's coordinates; temp[1].rgb, the normal; const[0].rgb, the light's direction.
; Out: render target A.
.isa r500
.chip R580
.const 0 0.5 0.75 0.25 0
.const 1 0.75 0.25 0 0
.state US_PIXSIZE 3

TEX temp[2].rgba = LD tex[0], temp[0].rgaa TEX_SEM_ACQUIRE
ALU temp[0].r = DP3 src0.rgb, src0.rgb : src0=temp[1]
ALU temp[3].r = DP3 src0.rgb, src1.rgb : src0=temp[1] src1=const[0]
ALU MAD src0.000, src0.000, src0.000 : src0=temp[0]
  + temp[3].a = RSQ src0.r
ALU temp[3].r = MAD src0.rrr, src0.aaa, src0.000 : src0=temp[3]
  + MAD src0.0, src0.0, src0.0 : src0=temp[3]
ALU temp[3].r = MAX src0.rrr, src0.000 : src0=temp[3]
ALU temp[3].r = MAD src0.rrr, src1.rrr, src1.ggg : src0=temp[3] src1=const[1]
OUT out[A].rgb = MAD src0.rgb, src1.rrr, src0.000 : src0=temp[2] src1=temp[3] {TEX_SEM_WAIT}
  + out[A].a = MAD src0.a, src1.r, src0.0 : src0=temp[2] src1=temp[3]
