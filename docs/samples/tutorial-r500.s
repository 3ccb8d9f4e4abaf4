; How many square roots bring temp0.r below 1.125, in the red channel; at most 255.
; Pixels outside of the shape have a negative temp0.r and are discarded.
.isa r500
.chip R580
.int 0 255 0 0
.out A C4_16_FP R G B A

TEX TEXKILL tex[0], temp[0].rrrr
ALU temp[1].r = MAX src0.rrr, src0.rrr : src0=temp[0] {TEX_SEM_WAIT}
rep int[0]
    ALU temp[1].r = SOP : src0=temp[1]
      + RSQ src0.r
    ALU temp[1].r = SOP : src0=temp[1]
      + RCP src0.r
    ALU temp[2].r = MAD src0.rrr, src0.111, src1.rrr : src0=temp[2] src1=#1
    ALU alu_result[LT].r = MAD src0.rrr, src0.111, -src1.rrr : src0=temp[1] src1=#1.125
    break if alu
endrep int[0]
OUT out[A].rgb = MAX src0.rrr, src0.rrr : src0=temp[2]
