; if x >= 2 { if x >= 5 { r = 1 } else { r = 2 } } else { r = 3 }; r += 10
; x in temp[0].r, r in temp[1].r. An if keeps a counter a lane: branch counters.
.isa r500
.chip R520
ALU alu_result[GE].r = MAD src0.rrr, src0.111, -src1.rrr : src0=temp[0] src1=#2
if alu
    ALU alu_result[GE].r = MAD src0.rrr, src0.111, -src1.rrr : src0=temp[0] src1=#5
    if alu
        ALU temp[1].r = MAD src0.111, src0.111, src0.000      ; r = 1
    else
        ALU temp[1].r = MAD src0.rrr, src0.111, src0.000 : src0=#2
    endif
else
    ALU temp[1].r = MAD src0.rrr, src0.111, src0.000 : src0=#3
endif
ALU temp[1].r = MAD src0.rrr, src0.111, src1.rrr : src0=temp[1] src1=#10
OUT out[A].rgb = MAX*off src0.rgb, src0.rgb : src0=temp[1] {TEX_SEM_WAIT}
  + out[A].a = MAX*off src0.1, src0.1
