; The product of a sparse matrix and a vector, one lane per row: the rows have different lengths, and each number of a row is
; multiplied with the number of the vector in its column (compressed sparse rows).
;
;     y[row] = sum of values[j] * x[columns[j]],  j from rows[row] up to rows[row + 1]
;
; In:  R0.xy, the position of the pixel's centre (x + 0.5, y + 0.5), 1024 a row; vertex resources 160 to 163: the rows' starts,
;      columns, values and x.
; Out: pixel 0, red: y.
.chip rv770
.stage pixel
.gprs 4
.stack 1

; R1.x = j, R1.y = its end, R2.y = the sum.
ALU:
  0 t: FLT_TO_INT R0.x, R0.x
  1 t: FLT_TO_INT R0.y, R0.y
  2 y: LSHL_INT R0.y, R0.y, (10).x
  3 x: ADD_INT R0.x, R0.x, R0.y
    y: MOV R2.y, 0
VTX:
  FETCH R1.xy__, R0.x, b160 FORMAT(32_32) NUM(INT) MEGA(8)
LOOP_START_DX10: ADDR(@done)
@next:
ALU_BREAK:
  4 x: PRED_SETGT_INT _.x, R1.y, R1.x UPDATE_EXEC_MASK
VTX:
  FETCH R3.x___, R1.x, b161 FORMAT(32) NUM(INT) MEGA(4)
  FETCH R3._x__, R1.x, b162 FORMAT(32_FLOAT) MEGA(4)
VTX:
  FETCH R3.x___, R3.x, b163 FORMAT(32_FLOAT) MEGA(4)
ALU:
  5 x: ADD_INT R1.x, R1.x, 1
    y: MULADD_IEEE R2.y, R3.y, R3.x, R2.y
LOOP_END: ADDR(@next)
@done:
EXPORT_DONE: PIXEL[0], R2.y___ END_OF_PROGRAM
