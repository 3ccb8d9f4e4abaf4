; A conditional call inside an if, and a conditional return (CTM guide p. 36).
.isa r500
.chip R580
; r0 = lane number. Lanes below 6 enter the if; of those, lanes below 3 are called.
ALU temp[1].rgb = MAD src0.000, src0.000, src0.000
ALU alu_result[LT].r = MAD src0.rrr, src0.111, -src1.rrr : src0=temp[0] src1=#6
if alu
    ALU alu_result[LT].r = MAD src0.rrr, src0.111, -src1.rrr : src0=temp[0] src1=#3
    call if alu -> sub
    ALU temp[1].g = MAD src0.ggg, src0.111, src1.rrr : src0=temp[1] src1=#1
endif
call sub
goto end
sub:
    ALU temp[1].r = MAD src0.rrr, src0.111, src1.rrr : src0=temp[1] src1=#1
    ALU alu_result[EQ].r = MAD src0.rrr, src0.111, -src1.rrr : src0=temp[0] src1=#2
    ; lane 2 returns here: it sleeps until the return below closes two levels for it
    FC JUMP FUNC=0xf0 A_OP=POP B_OP0=INCR B_OP1=DECR POP=1
    ALU temp[1].b = MAD src0.bbb, src0.111, src1.rrr : src0=temp[1] src1=#1
    FC JUMP FUNC=0xff A_OP=POP B_OP1=DECR POP=2
end:
OUT out[A].rgb = MAX*off src0.rgb, src0.rgb : src0=temp[1] {TEX_SEM_WAIT}
  + out[A].a = MAX*off src0.1, src0.1
