; n = 0, sum = 0; loop { if n >= x { break }; n += 1; sum += n }
; x in temp[0].r, n in temp[1].g, sum in temp[1].r.
.isa r500
.chip R520
.int 0 8 0 0       ; at most eight rounds
ALU temp[1].rgb = MAD src0.000, src0.000, src0.000
rep int[0]
    ALU alu_result[GE].r = MAD src0.ggg, src0.111, -src1.rrr : src0=temp[1] src1=temp[0]
    break if alu
    ALU temp[1].g = MAD src0.ggg, src0.111, src0.111 : src0=temp[1]
    ALU temp[1].r = MAD src0.rrr, src0.111, src0.ggg : src0=temp[1]
endrep int[0]
OUT out[A].rgb = MAX*off src0.rrr, src0.rrr : src0=temp[1] {TEX_SEM_WAIT}
  + out[A].a = MAX*off src0.1, src0.1
