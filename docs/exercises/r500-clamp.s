; red = x clamped to 2 to 5: if x < 2 { 2 } else { if x >= 5 { 5 } else { x } }. x in temp[0].r.
.isa r500
.chip R520
ALU alu_result[LT].r = MAD src0.rrr, src0.111, -src1.rrr : src0=temp[0] src1=#2
if alu
    ALU temp[1].r = MAD src0.rrr, src0.111, src0.000 : src0=#2
else
    ALU alu_result[GE].r = MAD src0.rrr, src0.111, -src1.rrr : src0=temp[0] src1=#5
    if alu
        ALU temp[1].r = MAD src0.rrr, src0.111, src0.000 : src0=#5
    else
        ALU temp[1].r = MAX src0.rrr, src0.rrr : src0=temp[0]
    endif
endif
OUT out[A].rgb = MAX*off src0.rrr, src0.rrr : src0=temp[1] {TEX_SEM_WAIT}
  + out[A].a = MAX*off src0.1, src0.1
