; red = 1 + 2 + ... + x: loop { if n < x { n += 1; sum += n } }, 100 rounds for every pixel.
; x in temp[0].r, sum in temp[1].r, n in temp[1].g.
.isa r500
.chip R520
.int 0 100 0 0
ALU temp[1].rgb = MAD src0.000, src0.000, src0.000
rep int[0]
    ALU alu_result[LT].r = MAD src0.ggg, src0.111, -src1.rrr : src0=temp[1] src1=temp[0]
    if alu
        ALU temp[1].g = MAD src0.ggg, src0.111, src0.111 : src0=temp[1]
        ALU temp[1].r = MAD src0.rrr, src0.111, src0.ggg : src0=temp[1]
    endif
endrep int[0]
OUT out[A].rgb = MAX*off src0.rrr, src0.rrr : src0=temp[1] {TEX_SEM_WAIT}
  + out[A].a = MAX*off src0.1, src0.1
