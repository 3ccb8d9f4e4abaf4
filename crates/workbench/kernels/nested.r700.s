; Two loops, one inside the other, whose rounds differ from lane to lane.
;
;     a = lane
;     for i in 0 .. (lane ^ lane >> 7) mod 32:
;         for j in 0 .. (a >> 3) mod 16:  a = (a << 1 ^ a >> 5) + j        (32 bits, wrapping)
;         a += i
;
; In:  R0.xy, the position of the pixel's centre (x + 0.5, y + 0.5), 1024 a row.
; Out: pixel 0, red: a as u32.
.chip rv770
.stage pixel
.gprs 4
.stack 2

; R1.x = a, R1.y = i, R1.z = its end, R2.x = j, R2.y = its end.
ALU:
  0 t: FLT_TO_INT R0.x, R0.x
  1 t: FLT_TO_INT R0.y, R0.y
  2 y: LSHL_INT R0.y, R0.y, (10).x
  3 x: ADD_INT R1.x, R0.x, R0.y
    y: MOV R1.y, 0
  4 z: LSHR_INT R1.z, R1.x, (7).x
  5 z: XOR_INT R1.z, R1.z, R1.x
  6 z: AND_INT R1.z, R1.z, (31).x
LOOP_START_DX10: ADDR(@done)
@outer:
ALU_BREAK:
  7 x: PRED_SETGT_INT _.x, R1.z, R1.y UPDATE_EXEC_MASK
ALU:
  8 y: LSHR_INT R2.y, R1.x, (3).x
    x: MOV R2.x, 0
  9 y: AND_INT R2.y, R2.y, (15).x
LOOP_START_DX10: ADDR(@behind)
@inner:
ALU_BREAK:
  10 x: PRED_SETGT_INT _.x, R2.y, R2.x UPDATE_EXEC_MASK
ALU:
  11 x: LSHL_INT R3.x, R1.x, 1
    y: LSHR_INT R3.y, R1.x, (5).x
  12 x: XOR_INT R3.x, R3.x, R3.y
  13 x: ADD_INT R1.x, R3.x, R2.x
  14 x: ADD_INT R2.x, R2.x, 1
LOOP_END: ADDR(@inner)
@behind:
ALU:
  15 x: ADD_INT R1.x, R1.x, R1.y
    y: ADD_INT R1.y, R1.y, 1
LOOP_END: ADDR(@outer)
@done:
EXPORT_DONE: PIXEL[0], R1.x___ END_OF_PROGRAM
