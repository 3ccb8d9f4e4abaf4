; Three kinds of pixels: R0.x below 4, below 8, and the others. Each does something else with R0.x.
.isa r700
.chip RV610
.stage pixel
.gprs 1
.stack 1

ALU_PUSH_BEFORE:
  x: PRED_SETGT _.x, 8.0f, R0.x UPDATE_EXEC_MASK UPDATE_PRED
JUMP: ADDR(@other)
ALU_PUSH_BEFORE:
  x: PRED_SETGT _.x, 4.0f, R0.x UPDATE_EXEC_MASK UPDATE_PRED
JUMP: ADDR(@middle)
ALU:
  x: MUL R0.x, R0.x, R0.x
@middle:
ELSE: ADDR(@other) POP_CNT(1)
ALU_POP_AFTER:
  x: ADD R0.x, R0.x, 100.0f
@other:
ELSE: ADDR(@end) POP_CNT(1)
ALU:
  x: ADD R0.x, R0.x, 200.0f
@end:
EXPORT_DONE: PIXEL[0], R0.xyzw END_OF_PROGRAM
