; If and else with the mask stack: lanes with R0.x < 4 double it, the others add 100.
.chip RV770
.stage pixel
.gprs 2
.stack 1
ALU_PUSH_BEFORE:
  0 x: PRED_SETGT _.x, (4.0f).x, R0.x UPDATE_EXEC_MASK UPDATE_PRED
JUMP: ADDR(@else)
ALU:
  1 x: ADD R0.x, R0.x, R0.x
@else:
ELSE: POP_CNT(1) ADDR(@endif)
ALU_POP_AFTER:
  2 x: ADD R0.x, R0.x, (100.0f).x
@endif:
EXPORT_DONE: PIXEL[0], R0.xyzw END_OF_PROGRAM
