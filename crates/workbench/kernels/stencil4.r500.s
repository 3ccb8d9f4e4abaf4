; A step of heat on four grids of 512 x 512 numbers in the components of a texture, one lane per texel: each number approaches its
; four neighbours. Five fetches without a filter, clamped to the edge.
;
;     out = c + (left + right + up + down - 4 c) / 8
;
; In:  temp[0].rg, the position of the pixel's centre (x + 0.5, y + 0.5), 512 a row; texture 0.
; Out: render target A.
.isa r500
.chip R580
.const 0 0.001953125 -4 0.125 0          ; 1/512
.state US_PIXSIZE 5

ALU temp[0].rg = MAD src0.rgb, src1.rrr, src0.000 : src0=temp[0] src1=const[0]
ALU temp[1].rg = MAD src0.rgb, src0.111, -src1.r00 : src0=temp[0] src1=const[0]
ALU temp[2].rg = MAD src0.rgb, src0.111, src1.r00 : src0=temp[0] src1=const[0]
ALU temp[3].rg = MAD src0.rgb, src0.111, -src1.0r0 : src0=temp[0] src1=const[0]
ALU temp[4].rg = MAD src0.rgb, src0.111, src1.0r0 : src0=temp[0] src1=const[0]
TEX temp[0].rgba = LD tex[0], temp[0].rgaa
TEX temp[1].rgba = LD tex[0], temp[1].rgaa
TEX temp[2].rgba = LD tex[0], temp[2].rgaa
TEX temp[3].rgba = LD tex[0], temp[3].rgaa
TEX temp[4].rgba = LD tex[0], temp[4].rgaa TEX_SEM_ACQUIRE {TEX_SEM_WAIT}
ALU temp[1].rgb = MAD src0.rgb, src0.111, src1.rgb : src0=temp[1] src1=temp[2] {TEX_SEM_WAIT}
  + temp[1].a = MAD src0.a, src0.1, src1.a : src0=temp[1] src1=temp[2]
ALU temp[1].rgb = MAD src0.rgb, src0.111, src1.rgb : src0=temp[1] src1=temp[3]
  + temp[1].a = MAD src0.a, src0.1, src1.a : src0=temp[1] src1=temp[3]
ALU temp[1].rgb = MAD src0.rgb, src0.111, src1.rgb : src0=temp[1] src1=temp[4]
  + temp[1].a = MAD src0.a, src0.1, src1.a : src0=temp[1] src1=temp[4]
ALU temp[1].rgb = MAD src0.rgb, src1.ggg, src2.rgb : src0=temp[0] src1=const[0] src2=temp[1]
  + temp[1].a = MAD src0.a, src1.g, src2.a : src0=temp[0] src1=const[0] src2=temp[1]
OUT out[A].rgb = MAD src0.rgb, src1.bbb, src2.rgb : src0=temp[1] src1=const[0] src2=temp[0] {TEX_SEM_WAIT}
  + out[A].a = MAD src0.a, src1.b, src2.a : src0=temp[1] src1=const[0] src2=temp[0]
