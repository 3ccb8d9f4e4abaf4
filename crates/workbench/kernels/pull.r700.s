; A step of a breadth-first search from below, one lane per vertex: a vertex without a level gets level 5 at the first of its
; neighbours that has level 4.
;
;     level = levels[v];  if level == -1:  for j from rows[v] up to rows[v + 1]:  if levels[neighbours[j]] == 4:  level = 5, leave
;
; In:  R0.xy, the position of the pixel's centre (x + 0.5, y + 0.5), 1024 a row; vertex resources 160 to 162: the lists' starts, the
;      lists of neighbours and the levels.
; Out: pixel 0, red: the level as u32.
.chip rv770
.stage pixel
.gprs 4
.stack 2

; R1.x = j, R1.y = its end, R2.x = the level.
ALU:
  0 t: FLT_TO_INT R0.x, R0.x
  1 t: FLT_TO_INT R0.y, R0.y
  2 y: LSHL_INT R0.y, R0.y, (10).x
  3 x: ADD_INT R0.x, R0.x, R0.y
VTX:
  FETCH R2.x___, R0.x, b162 FORMAT(32) NUM(INT) MEGA(4)
ALU_PUSH_BEFORE:
  4 x: PRED_SETE_INT _.x, R2.x, -1 UPDATE_EXEC_MASK
JUMP: ADDR(@visited) POP_CNT(1)
VTX:
  FETCH R1.xy__, R0.x, b160 FORMAT(32_32) NUM(INT) MEGA(8)
LOOP_START_DX10: ADDR(@done)
@next:
ALU_BREAK:
  5 x: PRED_SETGT_INT _.x, R1.y, R1.x UPDATE_EXEC_MASK
VTX:
  FETCH R3.x___, R1.x, b161 FORMAT(32) NUM(INT) MEGA(4)
VTX:
  FETCH R3.x___, R3.x, b162 FORMAT(32) NUM(INT) MEGA(4)
ALU:
  6 x: ADD_INT R1.x, R1.x, 1
    y: SETE_INT R3.y, R3.x, (4).x
  7 x: CNDE_INT R2.x, R3.y, R2.x, (5).x
ALU_BREAK:
  8 x: PRED_SETE_INT _.x, R3.y, 0 UPDATE_EXEC_MASK
LOOP_END: ADDR(@next)
@done:
POP: ADDR(@visited) POP_CNT(1)
@visited:
EXPORT_DONE: PIXEL[0], R2.x___ END_OF_PROGRAM
