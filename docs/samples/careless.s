; R700: the branch leaves R1.x alone where R0.x is below 1, and two instructions of one group write R2.x.
.chip rv770
.stage pixel
.gprs 3
.stack 1
ALU_PUSH_BEFORE:
    0 x: PRED_SETGE _.x, R0.x, 1.0 UPDATE_EXEC_MASK
ALU_POP_AFTER:
    1 x: MUL R1.x, R0.x, 2.0f
ALU:
    2 x: ADD R2.x, R1.x, R0.x
      t: RECIP_IEEE R2.x, R0.x
EXPORT_DONE: PIXEL[0], R2.xxxx END_OF_PROGRAM
