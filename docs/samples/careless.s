; R700: two instructions of one group write R2.x.
.chip rv770
.stage pixel
.gprs 3
ALU:
    0 x: ADD R2.x, R0.x, R0.y
      t: RECIP_IEEE R2.x, R0.x
EXPORT_DONE: PIXEL[0], R2.xxxx END_OF_PROGRAM
