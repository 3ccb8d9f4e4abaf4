; if x >= 2 { if x >= 5 { r = 1 } else { r = 2 } } else { r = 3 }; r += 10
; x in R0.x, r in R1.x. An if pushes the active lanes: mask stack.
.isa r700
.chip rv770
.stage pixel
.gprs 2
.stack 2
ALU_PUSH_BEFORE:
    0 x: PRED_SETGE _.x, R0.x, 2.0f UPDATE_EXEC_MASK
JUMP: ADDR(@else)
ALU_PUSH_BEFORE:
    1 x: PRED_SETGE _.x, R0.x, 5.0f UPDATE_EXEC_MASK
JUMP: ADDR(@small)
ALU:
    2 x: MOV R1.x, 1.0f
@small: ELSE: ADDR(@else) POP_CNT(1)
ALU_POP_AFTER:
    3 x: MOV R1.x, 2.0f
@else: ELSE: ADDR(@end) POP_CNT(1)
ALU_POP_AFTER:
    4 x: MOV R1.x, 3.0f
@end: ALU:
    5 x: ADD R1.x, R1.x, 10.0f
EXPORT_DONE: PIXEL[0], R1.xxxx END_OF_PROGRAM
