; red = 2 x for x below 4, x + 100 for the others. x in R0.x.
.isa r700
.chip rv770
.stage pixel
.gprs 2
.stack 1

ALU_PUSH_BEFORE:
    0 x: PRED_SETGT _.x, 4.0f, R0.x UPDATE_EXEC_MASK
JUMP: ADDR(@else)
ALU:
    1 x: ADD R1.x, R0.x, R0.x
@else: ELSE: ADDR(@end) POP_CNT(1)
ALU_POP_AFTER:
    2 x: ADD R1.x, R0.x, 100.0f
@end: EXPORT_DONE: PIXEL[0], R1.xxxx END_OF_PROGRAM
