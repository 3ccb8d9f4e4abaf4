; CTM: an uncached output transposes: the value of (i, j) goes to (j, i) (CTM guide p. 31).
.isa r500
.chip R580
TEX temp[1].r = LD tex[0], temp[0].rgba UNSCALED TEX_SEM_ACQUIRE {TEX_SEM_WAIT}
ALU temp[1].gb = MAX*off src0.0gr, src0.0gr : src0=temp[0] {TEX_SEM_WAIT}
OUT out[C].rgb = MAX*off src0.rgb, src0.rgb : src0=temp[1] {TEX_SEM_WAIT}
  + out[A].a = MAX*off src0.0, src0.0
