; The first FC instruction consumes the ALU result; the second reads one that is gone (CTM guide p. 35).
.isa r500
ALU alu_result[LT].r = MAD src0.rrr, src0.111, -src1.rrr : src0=temp[0] src1=#4
if alu
endif
if alu
endif
OUT nop {TEX_SEM_WAIT}
