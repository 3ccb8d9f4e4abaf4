; A picture of 128 x 128 texels brought to 512 x 512 pixels by a bilinear filter, clamped to the edge, one lane a pixel.
;
; In:  temp[0].rg, the position of the pixel's centre (x + 0.5, y + 0.5), 512 a row; texture 0 with a linear filter.
; Out: render target A.
.isa r500
.chip R580
.const 0 0.001953125 0 0 0               ; 1/512
.state US_PIXSIZE 1

ALU temp[0].rg = MAD src0.rgb, src1.rrr, src0.000 : src0=temp[0] src1=const[0]
TEX temp[1].rgba = LD tex[0], temp[0].rgaa TEX_SEM_ACQUIRE {TEX_SEM_WAIT}
OUT out[A].rgb = MAX src0.rgb, src0.rgb : src0=temp[1] {TEX_SEM_WAIT}
  + out[A].a = MAX src0.a, src0.a : src0=temp[1]
