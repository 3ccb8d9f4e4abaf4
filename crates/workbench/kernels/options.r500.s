; Prices of call options after Black and Scholes, one lane per option: a logarithm, exponentials, reciprocals and a root, and twice a
; polynomial for the normal distribution.
;
;     d = (ln(s / x) + 0.065 t) / (0.3 sqrt(t)),  e = d - 0.3 sqrt(t),  price = s N(d) - x exp(-0.02 t) N(e)
;
; In:  temp[0].rgb, the share s, the strike x and the time t.
; Out: render target A, red: the price.
.isa r500
.chip R580
.const 0 0.6931472 0.065 3.3333333 -0.3
.const 1 -0.028853901 0.2316419 -0.72134752 0.3989423
.const 2 1.3302744 -1.8212559 1.7814779 -0.35656378
.const 3 0.31938153 0 0 0
.state US_PIXSIZE 7

; The alpha unit computes one function after the other next to the sums and products of the RGB unit.
ALU MAD src0.000, src0.000, src0.000 : src0=temp[0]
  + temp[1].a = RCP src0.g : src0=temp[0]
ALU temp[1].r = MAD src0.rrr, src1.aaa, src0.000 : src0=temp[0] src1=temp[1]
  + temp[2].a = RSQ src0.b : src0=temp[0] src1=temp[1]
ALU temp[1].g = MAD src0.bbb, src1.rrr, src0.000 : src0=temp[0] src1=const[1] src2=temp[1]
  + temp[1].a = LN2 src2.r : src0=temp[0] src1=const[1] src2=temp[1]
ALU temp[2].r = MAD src0.bbb, src1.aaa, src0.000 : src0=temp[0] src1=temp[2] src2=temp[1]
  + temp[3].a = EX2 src2.g : src0=temp[0] src1=temp[2] src2=temp[1]
ALU temp[1].r = MAD src0.aaa, src1.rrr, src0.000 : src0=temp[1] src1=const[0]
  + MAD src0.0, src0.0, src0.0 : src0=temp[1] src1=const[0]
ALU temp[1].r = MAD src0.bbb, src1.ggg, src2.rrr : src0=temp[0] src1=const[0] src2=temp[1]
ALU temp[1].r = MAD src0.rrr, src1.aaa, src0.000 : src0=temp[1] src1=temp[2]
  + MAD src0.0, src0.0, src0.0 : src0=temp[1] src1=temp[2]
ALU temp[0].g = MAD src0.ggg, src1.aaa, src0.000 : src0=temp[0] src1=temp[3]
  + MAD src0.0, src0.0, src0.0 : src0=temp[0] src1=temp[3]
ALU temp[3].r = MAD src0.rrr, src1.bbb, src0.000 : src0=temp[1] src1=const[0]
ALU temp[3].g = MAD src0.rrr, src1.aaa, src2.rrr : src0=temp[2] src1=const[0] src2=temp[3]
  + MAD src0.0, src0.0, src0.0 : src0=temp[2] src1=const[0] src2=temp[3]
; d and e are in temp[3].rg.
ALU temp[4].rg = MAD |src0.rgb|, src1.ggg, src0.111 : src0=temp[3] src1=const[1]
ALU temp[5].rg = MAD src0.rgb, src0.rgb, src0.000 : src0=temp[3] src1=temp[4]
  + temp[4].a = RCP src1.r : src0=temp[3] src1=temp[4]
ALU temp[5].rg = MAD src0.rgb, src1.bbb, src0.000 : src0=temp[5] src1=const[1] src2=temp[4]
  + temp[5].a = RCP src2.g : src0=temp[5] src1=const[1] src2=temp[4]
ALU temp[4].r = MAX src0.aaa, src0.aaa : src0=temp[4] src1=temp[5]
  + temp[4].a = EX2 src1.r : src0=temp[4] src1=temp[5]
ALU temp[4].g = MAX src0.aaa, src0.aaa : src0=temp[5]
  + temp[5].a = EX2 src0.g : src0=temp[5]
ALU temp[6].r = MAD src0.aaa, src1.aaa, src0.000 : src0=temp[4] src1=const[1]
  + MAD src0.0, src0.0, src0.0 : src0=temp[4] src1=const[1]
ALU temp[6].g = MAD src0.aaa, src1.aaa, src0.000 : src0=temp[5] src1=const[1]
  + MAD src0.0, src0.0, src0.0 : src0=temp[5] src1=const[1]
ALU temp[5].rg = MAD src0.rgb, src1.rrr, src1.ggg : src0=temp[4] src1=const[2]
ALU temp[5].rg = MAD src0.rgb, src1.rgb, src2.bbb : src0=temp[5] src1=temp[4] src2=const[2]
ALU temp[5].rg = MAD src0.rgb, src1.rgb, src2.aaa : src0=temp[5] src1=temp[4] src2=const[2]
  + MAD src0.0, src0.0, src0.0 : src0=temp[5] src1=temp[4] src2=const[2]
ALU temp[5].rg = MAD src0.rgb, src1.rgb, src2.rrr : src0=temp[5] src1=temp[4] src2=const[3]
ALU temp[5].rg = MAD src0.rgb, src1.rgb, src0.000 : src0=temp[5] src1=temp[4]
ALU temp[5].rg = MAD src0.rgb, src1.rgb, src0.000 : src0=temp[5] src1=temp[6]
ALU temp[6].rg = MAD -src0.rgb, src0.111, src0.111 : src0=temp[5]
ALU temp[5].rg = CMP src0.rgb, src1.rgb, src2.rgb : src0=temp[6] src1=temp[5] src2=temp[3]
ALU temp[5].r = MAD src0.rrr, src1.rrr, src0.000 : src0=temp[0] src1=temp[5]
OUT out[A].rgb = MAD -src0.ggg, src1.ggg, src1.rrr : src0=temp[0] src1=temp[5] {TEX_SEM_WAIT}
  + out[A].a = MAX src0.1, src0.1
