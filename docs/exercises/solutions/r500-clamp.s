; MAX and MIN choose for each pixel, so that nothing has to be decided.
.isa r500
.chip R520
ALU temp[1].r = MAX src0.rrr, src1.rrr : src0=temp[0] src1=#2
OUT out[A].rgb = MIN src0.rrr, src1.rrr : src0=temp[1] src1=#5 {TEX_SEM_WAIT}
  + out[A].a = MAX*off src0.1, src0.1
