; R500: adds 1 to a register until it reaches the lane's input, at most eight times.
.isa r500
.chip R580
.int 0 8 0 0
ALU temp[1].rgb = MAD src0.000, src0.000, src0.000
rep int[0]
    ALU alu_result[GE].r = MAD src0.rrr, src0.111, -src1.rrr : src0=temp[1] src1=temp[0]
    if alu
        break
    endif
    ALU temp[1].r = MAD src0.rrr, src0.111, src1.rrr : src0=temp[1] src1=#1
endrep int[0]
OUT out[A].rgb = MAX*off src0.rgb, src0.rgb : src0=temp[1] {TEX_SEM_WAIT}
  + out[A].a = MAX*off src0.1, src0.1
