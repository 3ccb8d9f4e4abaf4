; CTM: c0(i, j) = input0(i, j) * constant 0, and the conditional value is the input itself.
.isa r500
.chip R580
TEX temp[1].rgba = LD tex[0], temp[0].rgba UNSCALED TEX_SEM_ACQUIRE {TEX_SEM_WAIT}
OUT out[A].rgb = MAD src0.rgb, src1.rgb, src0.000 : src0=temp[1] src1=const[0] {TEX_SEM_WAIT}
  + out.w = MAX*off src0.r, src0.r : src0=temp[1]
