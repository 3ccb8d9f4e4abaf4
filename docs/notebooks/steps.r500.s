; n = lane + 1, count = 0; loop { if n == 1 { break }; if n is odd { n = 3 n + 1 } else { n = n / 2 }; count += 1 }
; n in temp[0].r, count in temp[1].r, n / 2 in temp[1].g. Numbers of binary32 are exact up to 2^24.
.isa r500
.chip R520
.int 0 255 0 0
ALU temp[1].rgb = MAD src0.000, src0.000, src0.000
rep int[0]
    ALU alu_result[EQ].r = MAD src0.rrr, src0.111, -src0.111 : src0=temp[0]
    break if alu
    ALU temp[1].g = MAD src0.rrr, src1.rrr, src0.000 : src0=temp[0] src1=#0.5
    ALU alu_result[NE].r = FRC src0.ggg : src0=temp[1]
    if alu
        ALU temp[0].r = MAD src0.rrr, src1.rrr, src0.111 : src0=temp[0] src1=#3
    else
        ALU temp[0].r = MAD src0.ggg, src0.111, src0.000 : src0=temp[1]
    endif
    ALU temp[1].r = MAD src0.rrr, src0.111, src0.111 : src0=temp[1]
endrep int[0]
OUT out[A].rgb = MAX*off src0.rrr, src0.rrr : src0=temp[1] {TEX_SEM_WAIT}
  + out[A].a = MAX*off src0.1, src0.1
