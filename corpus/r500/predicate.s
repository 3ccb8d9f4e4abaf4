; Predicate bits: written by a comparison, gating channels, deciding an if; a static if on a boolean constant.
.isa r500
.chip R520
.bool 7 false
; r0 = lane number. pred.r: lane >= 4; pred.a: lane != 0
ALU pred[GE].r = MAD src0.rrr, src0.111, -src1.rrr : src0=temp[0] src1=#4
  + pred[NE].a = MAD src0.r, src0.1, src0.0 : src0=temp[0]
ALU temp[1].rgb = MAD src0.000, src0.000, src0.000
ALU (pred.r) temp[1].r = MAD src0.111, src0.111, src0.000
ALU (!pred.a) temp[1].g = MAD src0.111, src0.111, src0.000
if pred.a
    ALU temp[1].b = MAD src0.bbb, src0.111, src1.rrr : src0=temp[1] src1=#0.5
endif
if bool[7] -> taken
    ALU temp[1].rgb = MAD src0.000, src0.000, src0.000
taken:
OUT out[A].rgb = MAX*off src0.rgb, src0.rgb : src0=temp[1] {TEX_SEM_WAIT}
  + out[A].a = MAX*off src0.1, src0.1
