; A second loop inside the first, on a machine whose loop stack holds one frame (CTM guide p. 35).
.isa r500
.int 0 2 0 0
loop int[0]
    rep int[0]
    endrep int[0]
endloop int[0]
OUT nop {TEX_SEM_WAIT}
