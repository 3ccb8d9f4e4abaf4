; 128 rounds of MurmurHash3's final mix on the four components of a register, which begin at four times the lane's number.
;
;     128 times, r = 0 to 127:  h ^= h >> 16,  h *= 0x85ebca6b,  h ^= h >> 13,  h *= 0xc2b2ae35,  h ^= h >> 16,  h += r
;
; In:  R0.xy, the position of the pixel's centre (x + 0.5, y + 0.5), 1024 a row.
; Out: pixel 0: the four numbers as u32.
.chip rv770
.stage pixel
.gprs 4
.stack 1

; A 32-bit product is made in slot t, one a group.
ALU:
  0 t: FLT_TO_INT R0.x, R0.x
  1 t: FLT_TO_INT R0.y, R0.y
  2 y: LSHL_INT R0.y, R0.y, (10).x
  3 x: ADD_INT R1.x, R0.x, R0.y
  4 x: LSHL_INT R1.x, R1.x, (2).x
  5 y: ADD_INT R1.y, R1.x, 1
    z: ADD_INT R1.z, R1.x, (2).x
    w: ADD_INT R1.w, R1.x, (3).y
    t: MOV R3.x, 0
LOOP_START_DX10: ADDR(@done)
@round:
ALU_BREAK:
  6 x: PRED_SETGT_INT _.x, (128).x, R3.x UPDATE_EXEC_MASK
ALU:
  7 x: LSHR_INT R2.x, R1.x, (16).x
    y: LSHR_INT R2.y, R1.y, (16).x
    z: LSHR_INT R2.z, R1.z, (16).x
    w: LSHR_INT R2.w, R1.w, (16).x
  8 x: XOR_INT R1.x, R1.x, R2.x
    y: XOR_INT R1.y, R1.y, R2.y
    z: XOR_INT R1.z, R1.z, R2.z
    w: XOR_INT R1.w, R1.w, R2.w
  9 t: MULLO_UINT R1.x, R1.x, (0x85ebca6b).x
  10 t: MULLO_UINT R1.y, R1.y, (0x85ebca6b).x
  11 t: MULLO_UINT R1.z, R1.z, (0x85ebca6b).x
  12 t: MULLO_UINT R1.w, R1.w, (0x85ebca6b).x
  13 x: LSHR_INT R2.x, R1.x, (13).x
    y: LSHR_INT R2.y, R1.y, (13).x
    z: LSHR_INT R2.z, R1.z, (13).x
    w: LSHR_INT R2.w, R1.w, (13).x
  14 x: XOR_INT R1.x, R1.x, R2.x
    y: XOR_INT R1.y, R1.y, R2.y
    z: XOR_INT R1.z, R1.z, R2.z
    w: XOR_INT R1.w, R1.w, R2.w
  15 t: MULLO_UINT R1.x, R1.x, (0xc2b2ae35).x
  16 t: MULLO_UINT R1.y, R1.y, (0xc2b2ae35).x
  17 t: MULLO_UINT R1.z, R1.z, (0xc2b2ae35).x
  18 t: MULLO_UINT R1.w, R1.w, (0xc2b2ae35).x
  19 x: LSHR_INT R2.x, R1.x, (16).x
    y: LSHR_INT R2.y, R1.y, (16).x
    z: LSHR_INT R2.z, R1.z, (16).x
    w: LSHR_INT R2.w, R1.w, (16).x
  20 x: XOR_INT R1.x, R1.x, R2.x
    y: XOR_INT R1.y, R1.y, R2.y
    z: XOR_INT R1.z, R1.z, R2.z
    w: XOR_INT R1.w, R1.w, R2.w
  21 x: ADD_INT R1.x, R1.x, R3.x
    y: ADD_INT R1.y, R1.y, R3.x
    z: ADD_INT R1.z, R1.z, R3.x
    w: ADD_INT R1.w, R1.w, R3.x
  22 x: ADD_INT R3.x, R3.x, 1
LOOP_END: ADDR(@round)
@done:
EXPORT_DONE: PIXEL[0], R1.xyzw END_OF_PROGRAM
