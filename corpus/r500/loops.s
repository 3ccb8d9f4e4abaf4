; LOOP with aL addressing around REP with break and continue (CTM guide p. 37).
.isa r500
.chip R520
.int 0 3 10 2      ; three rounds, aL = 10, 12, 14
.int 1 5 0 0       ; five rounds
.const 10 1 0 0 0
.const 12 10 0 0 0
.const 14 100 0 0 0
; r0.r = lane number; r1.r sums constants, r1.g counts rounds of the inner loop behind the continue
ALU temp[1].rgb = MAD src0.000, src0.000, src0.000
loop int[0]
    ALU temp[1].r = MAD src0.rrr, src0.111, src1.rrr : src0=temp[1] src1=const[0+aL]
    ALU temp[2].r = MAD src0.000, src0.000, src0.000
    rep int[1]
        ALU temp[2].r = MAD src0.rrr, src0.111, src1.rrr : src0=temp[2] src1=#1
        ; break when the round is beyond the lane number
        ALU alu_result[LT].r = MAD src0.rrr, src0.111, -src1.rrr : src0=temp[0] src1=temp[2]
        if alu
            break
        endif
        ; no count in the second round
        ALU alu_result[EQ].r = MAD src0.rrr, src0.111, -src1.rrr : src0=temp[2] src1=#2
        continue if alu
        ALU temp[1].g = MAD src0.ggg, src0.111, src1.rrr : src0=temp[1] src1=#1
    endrep int[1]
endloop int[0]
OUT out[A].rgb = MAX*off src0.rgb, src0.rgb : src0=temp[1] {TEX_SEM_WAIT}
  + out[A].a = MAX*off src0.1, src0.1
