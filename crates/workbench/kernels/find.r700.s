; The first place of a word of 8 letters in each of 32768 lines of 64 letters, one lane per line: a lane compares letter by letter,
; leaves a place at the first letter that differs, and the line at the first place that fits.
;
;     for place in 0 .. 57:  if line[place + i] == word[i] for i in 0 .. 8: leave        (57: the line does not contain the word)
;
; In:  R0.xy, the position of the pixel's centre (x + 0.5, y + 0.5), 1024 a row; vertex resources 160 and 161: the lines and the word,
;      in bytes.
; Out: pixel 0, red: the place as u32.
.chip rv770
.stage pixel
.gprs 4
.stack 2

; R1.x = the place, R1.y = the index of its first letter, R2.x = i, R2.y = the letter's index.
ALU:
  0 t: FLT_TO_INT R0.x, R0.x
  1 t: FLT_TO_INT R0.y, R0.y
  2 y: LSHL_INT R0.y, R0.y, (10).x
  3 x: ADD_INT R0.x, R0.x, R0.y
  4 x: MOV R1.x, 0
    y: LSHL_INT R1.y, R0.x, (6).x
LOOP_START_DX10: ADDR(@done)
@place:
ALU_BREAK:
  5 x: PRED_SETGT_INT _.x, (57).x, R1.x UPDATE_EXEC_MASK
ALU:
  6 x: MOV R2.x, 0
    y: MOV R2.y, R1.y
LOOP_START_DX10: ADDR(@differs)
@letter:
ALU_BREAK:
  7 x: PRED_SETGT_INT _.x, (8).x, R2.x UPDATE_EXEC_MASK
VTX:
  FETCH R3.x___, R2.y, b160 FORMAT(8) NUM(INT) MEGA(1)
  FETCH R3._x__, R2.x, b161 FORMAT(8) NUM(INT) MEGA(1)
ALU_BREAK:
  8 x: PRED_SETE_INT _.x, R3.x, R3.y UPDATE_EXEC_MASK
ALU:
  9 x: ADD_INT R2.x, R2.x, 1
    y: ADD_INT R2.y, R2.y, 1
LOOP_END: ADDR(@letter)
@differs:
ALU_BREAK:
  10 x: PRED_SETGT_INT _.x, (8).x, R2.x UPDATE_EXEC_MASK
ALU:
  11 x: ADD_INT R1.x, R1.x, 1
    y: ADD_INT R1.y, R1.y, 1
LOOP_END: ADDR(@place)
@done:
EXPORT_DONE: PIXEL[0], R1.x___ END_OF_PROGRAM
