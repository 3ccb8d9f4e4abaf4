; A subroutine from which some lanes return early.
.chip RV770
.stage pixel
.gprs 2
.stack 2
CALL: ADDR(@square) CALL_CNT(0)
ALU:
  0 x: ADD R0.x, R0.x, (0.5f).x
EXPORT_DONE: PIXEL[0], R0.x001 END_OF_PROGRAM

@square:                    ; R0.x = R0.x < 3 ? R0.x : R0.x * R0.x
ALU_PUSH_BEFORE:
  1 x: PRED_SETGE _.x, R0.x, (3.0f).x UPDATE_EXEC_MASK
JUMP: ADDR(@back) POP_CNT(1)
ALU_POP_AFTER:
  2 x: MUL R0.x, R0.x, R0.x
@back:
RETURN:
