; CMP chooses by the sign of its third operand: r = x - 2 >= 0 ? 2 : 3, and then x - 5 >= 0 ? 1 : r.
.isa r500
.chip R520
ALU temp[1].r = MAD src0.rrr, src0.111, -src1.rrr : src0=temp[0] src1=#2
ALU temp[1].r = CMP src0.rrr, src1.rrr, src2.rrr : src0=#2 src1=#3 src2=temp[1]
ALU temp[2].r = MAD src0.rrr, src0.111, -src1.rrr : src0=temp[0] src1=#5
ALU temp[1].r = CMP src0.111, src0.rrr, src1.rrr : src0=temp[1] src1=temp[2]
ALU temp[1].r = MAD src0.rrr, src0.111, src1.rrr : src0=temp[1] src1=#10
OUT out[A].rgb = MAX*off src0.rgb, src0.rgb : src0=temp[1] {TEX_SEM_WAIT}
  + out[A].a = MAX*off src0.1, src0.1
