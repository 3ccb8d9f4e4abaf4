; The Mandelbrot set over 1024 x 1024 points as a pixel program: how many of at most 255 steps a point stays
; within radius 2.
;
;     cx = -2.0 + x * 3/1024,  cy = -1.5 + y * 3/1024,  z = 0
;     while steps < 255 and zx^2 + zy^2 <= 4:  z = z^2 + c,  steps += 1
;
; The loop is one of DX10: it has no count and ends when its last lane has left. ALU_BREAK is the way out: lanes
; whose PRED_SET fails become inactive until the LOOP_END that no lane repeats.
;
; In:  R0.xy, the position of the pixel's centre (x + 0.5, y + 0.5).
; Out: pixel 0, red: the steps as u32 (a target of format 32, number type UINT).
.chip rv770
.stage pixel
.gprs 4
.stack 1

; R0.xy = c, R1 = zx, zy, zx^2, zy^2, R3.y = steps. First operands are fetched in one cycle, second ones in the next, and
; a cycle reads one register a component: what a group reads together must lie in different components, or differ in
; place. A MULADD_IEEE rounds its product first; here products and sums are exact anyway.
ALU:
  0 x: ADD R0.x, R0.x, -(0.5f).x
    y: ADD R0.y, R0.y, -(0.5f).x
  1 x: MULADD_IEEE R0.x, R0.x, (0x3b400000).x, -(2.0f).y                ; 3/1024
    y: MULADD_IEEE R0.y, R0.y, (0x3b400000).x, -(1.5f).z
  2 x: MOV R1.x, 0
    y: MOV R1.y, 0
    z: MOV R1.z, 0
    w: MOV R1.w, 0
  3 y: MOV R3.y, 0
LOOP_START_DX10: ADDR(@done)

; One PRED_SET decides, so both conditions become masks of integers first: all ones where they hold.
@step:
ALU_BREAK:
  4 x: ADD R2.x, R1.z, R1.w
    y: SETGT_UINT R2.y, (255).x, R3.y
  5 x: SETGE_DX10 R2.x, (4.0f).x, R2.x
  6 x: AND_INT R2.x, R2.x, R2.y
  7 x: PRED_SETNE_INT _.x, R2.x, 0 UPDATE_EXEC_MASK

; One step. OMOD doubles the rounded product, which is exact.
ALU:
  8 x: ADD R2.x, R1.z, -R1.w
    y: ADD_INT R3.y, R3.y, 1
    z: MUL_IEEE R2.z, R1.x, R1.y OMOD(M2)
  9 x: ADD R1.x, R2.x, R0.x
    y: ADD R1.y, R2.z, R0.y
  10 z: MUL_IEEE R1.z, R1.x, R1.x
    w: MUL_IEEE R1.w, R1.y, R1.y
LOOP_END: ADDR(@step)

@done:
EXPORT_DONE: PIXEL[0], R3.y___ END_OF_PROGRAM
