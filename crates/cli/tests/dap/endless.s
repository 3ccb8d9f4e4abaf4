; Never ends.
.isa tesla
.chip sm_10
.kernel endless
.reg 2
again:
    bra again
