; red = 1 + 2 + ... + x: loop { if n < x { n += 1; sum += n } }, 100 rounds for every pixel.
; x in R0.x, sum in R1.x, n in R1.y, rounds in R1.z.
.isa r700
.chip rv770
.stage pixel
.gprs 2
.stack 1

ALU:
    0 x: MOV R1.x, 0
      y: MOV R1.y, 0
      z: MOV R1.z, 0
LOOP_START_DX10: ADDR(@done)
@step: ALU_BREAK:
    1 x: PRED_SETGT _.x, 100.0f, R1.z UPDATE_EXEC_MASK
ALU:
    2 x: PRED_SETGT _.x, R0.x, R1.y UPDATE_PRED
    3 y: ADD R1.y, R1.y, 1.0f PRED(ONE)
    4 x: ADD R1.x, R1.x, R1.y PRED(ONE)
    5 z: ADD R1.z, R1.z, 1.0f
LOOP_END: ADDR(@step)
@done: EXPORT_DONE: PIXEL[0], R1.xxxx END_OF_PROGRAM
