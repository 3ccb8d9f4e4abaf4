; Newton's iteration for a square root, from 1 on, until a step changes no more than a millionth, one lane a number. Lanes
; leave the loop one after the other.
;
;     x = 1;  at most 64 times:  y = (x + a / x) / 2;  done = |y - x| <= x / 1000000;  x = y
;
; In:  temp[0].r, a.
; Out: render target A, red: the root.
.isa r500
.chip R580
.int 0 64 0 0
.const 0 0.000001 0.5 0 0
.state US_PIXSIZE 3

ALU temp[1].r = MAD src0.111, src0.111, src0.000
loop int[0]
; The alpha unit gives the reciprocal; r is read through a source of the RGB half.
ALU MAD src0.000, src0.000, src0.000 : src0=temp[1]
  + temp[1].a = RCP src0.r
ALU temp[2].r = MAD src0.rrr, src1.aaa, src1.rrr : src0=temp[0] src1=temp[1]
  + MAD src0.0, src0.0, src0.0 : src0=temp[0] src1=temp[1]
ALU temp[2].r = MAD src0.rrr, src0.hhh, src0.000 : src0=temp[2]
ALU temp[2].g = MAD src0.rrr, src0.111, -src1.rrr : src0=temp[2] src1=temp[1]
ALU temp[2].g = MAX |src0.ggg|, |src0.ggg| : src0=temp[2]
ALU temp[2].b = MAD src0.rrr, src1.rrr, -src2.ggg : src0=temp[1] src1=const[0] src2=temp[2]
ALU temp[1].r = MAX src0.rrr, src0.rrr : src0=temp[2]
ALU alu_result[GE].r = MAX src0.bbb, src0.bbb : src0=temp[2]
break if alu
endloop int[0]
OUT out[A].rgb = MAX src0.rrr, src0.rrr : src0=temp[1] {TEX_SEM_WAIT}
  + out[A].a = MAX src0.1, src0.1
