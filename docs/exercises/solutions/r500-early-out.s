; A pixel leaves the loop when n has come to x. The loop ends with the last pixel, after 7 rounds instead of 100.
.isa r500
.chip R520
.int 0 100 0 0
ALU temp[1].rgb = MAD src0.000, src0.000, src0.000
rep int[0]
    ALU alu_result[GE].r = MAD src0.ggg, src0.111, -src1.rrr : src0=temp[1] src1=temp[0]
    break if alu
    ALU temp[1].g = MAD src0.ggg, src0.111, src0.111 : src0=temp[1]
    ALU temp[1].r = MAD src0.rrr, src0.111, src0.ggg : src0=temp[1]
endrep int[0]
OUT out[A].rgb = MAX*off src0.rrr, src0.rrr : src0=temp[1] {TEX_SEM_WAIT}
  + out[A].a = MAX*off src0.1, src0.1
