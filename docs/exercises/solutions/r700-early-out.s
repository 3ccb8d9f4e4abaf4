; A pixel leaves the loop when n has come to x. The loop ends with the last pixel, after 7 rounds instead of 100.
.isa r700
.chip rv770
.stage pixel
.gprs 2
.stack 1

ALU:
    0 x: MOV R1.x, 0
      y: MOV R1.y, 0
LOOP_START_DX10: ADDR(@done)
@step: ALU_BREAK:
    1 x: PRED_SETGT _.x, R0.x, R1.y UPDATE_EXEC_MASK
ALU:
    2 y: ADD R1.y, R1.y, 1.0f
    3 x: ADD R1.x, R1.x, R1.y
LOOP_END: ADDR(@step)
@done: EXPORT_DONE: PIXEL[0], R1.xxxx END_OF_PROGRAM
