; Steps through a table of 16 numbers in registers, where every lane reads another one.
;
;     c = 0xffffffff, n = lane;  64 times:  c = table[(c ^ n) & 15] ^ c >> 4,  n += c
;
; In:  R0.xy, the position of the pixel's centre (x + 0.5, y + 0.5), 1024 a row; constants 0 to 15, the table in x.
; Out: pixel 0, red: c as u32.
.chip rv770
.stage pixel
.gprs 20
.stack 1

ALU: KCACHE0(CB0:0-15)
  0 t: FLT_TO_INT R0.x, R0.x
  1 t: FLT_TO_INT R0.y, R0.y
  2 y: LSHL_INT R0.y, R0.y, (10).x
  3 x: MOV R1.x, -1
    y: ADD_INT R1.y, R0.x, R0.y
    z: MOV R1.z, 0
  4 x: MOV R4.x, KC0[0].x
  5 x: MOV R5.x, KC0[1].x
  6 x: MOV R6.x, KC0[2].x
  7 x: MOV R7.x, KC0[3].x
  8 x: MOV R8.x, KC0[4].x
  9 x: MOV R9.x, KC0[5].x
  10 x: MOV R10.x, KC0[6].x
  11 x: MOV R11.x, KC0[7].x
  12 x: MOV R12.x, KC0[8].x
  13 x: MOV R13.x, KC0[9].x
  14 x: MOV R14.x, KC0[10].x
  15 x: MOV R15.x, KC0[11].x
  16 x: MOV R16.x, KC0[12].x
  17 x: MOV R17.x, KC0[13].x
  18 x: MOV R18.x, KC0[14].x
  19 x: MOV R19.x, KC0[15].x
LOOP_START_DX10: ADDR(@done)
@step:
ALU_BREAK:
  20 x: PRED_SETGT_INT _.x, (64).x, R1.z UPDATE_EXEC_MASK
ALU:
  21 x: XOR_INT R2.x, R1.x, R1.y
  22 x: AND_INT R2.x, R2.x, (15).x
  23 x: MOVA_INT _.x, R2.x
  24 y: LSHR_INT R2.y, R1.x, (4).x
    z: ADD_INT R1.z, R1.z, 1
  25 x: MOV R2.x, R[4+AR.x].x
  26 x: XOR_INT R1.x, R2.x, R2.y
  27 y: ADD_INT R1.y, R1.y, R1.x
LOOP_END: ADDR(@step)
@done:
EXPORT_DONE: PIXEL[0], R1.x___ END_OF_PROGRAM
