; R700: lanes above 4.5 are halved, the others doubled.
.isa r700
.chip rv770
.stage pixel
.gprs 1
.stack 1
ALU_PUSH_BEFORE:
    0 x: PRED_SETGT _.x, R0.x, 4.5f UPDATE_EXEC_MASK
JUMP: ADDR(@else) POP_CNT(1)
ALU:
    1 x: MUL R0.x, R0.x, 0.5f
@else: ELSE: ADDR(@out) POP_CNT(1)
ALU_POP_AFTER:
    2 x: MUL R0.x, R0.x, 2.0f
@out: EXPORT_DONE: PIXEL[0], R0.xxxx END_OF_PROGRAM
