; The Collatz sequence from lane + 1 as a pixel program, 1024 pixels a row: how many of at most 255 steps it takes
; to come to 1.
;
;     n = lane + 1
;     while n != 1 and steps < 255:  n = n odd ? 3 * n + 1 : n / 2,  steps += 1        (32 bits, wrapping)
;
; The if works on the mask stack, as compilers write it: ALU_PUSH_BEFORE saves the active lanes and its PRED_SET
; narrows them; JUMP skips a side that no lane takes; ELSE changes to the other lanes, within those that were saved;
; ALU_POP_AFTER brings all of them back behind its clause.
;
; In:  R0.xy, the position of the pixel's centre (x + 0.5, y + 0.5).
; Out: pixel 0, red: the steps as u32 (a target of format 32, number type UINT).
.chip rv770
.stage pixel
.gprs 3
.stack 2

; R1.x = n = 1024 * y + x + 1, R1.y = steps. FLT_TO_INT truncates and runs in slot t only.
ALU:
  0 t: FLT_TO_INT R0.x, R0.x
  1 t: FLT_TO_INT R0.y, R0.y
  2 y: LSHL_INT R0.y, R0.y, (10).x
  3 x: ADD_INT R1.x, R0.x, R0.y
    y: MOV R1.y, 0
  4 x: ADD_INT R1.x, R1.x, 1
LOOP_START_DX10: ADDR(@done)

; One PRED_SET decides, so both conditions become masks of integers first: all ones where they hold.
@step:
ALU_BREAK:
  5 x: SETNE_INT R2.x, R1.x, 1
    y: SETGT_UINT R2.y, (255).x, R1.y
  6 x: AND_INT R2.x, R2.x, R2.y
  7 x: PRED_SETNE_INT _.x, R2.x, 0 UPDATE_EXEC_MASK

ALU_PUSH_BEFORE:
  8 x: AND_INT R2.x, R1.x, 1
  9 x: PRED_SETNE_INT _.x, R2.x, 0 UPDATE_EXEC_MASK
JUMP: ADDR(@else)
ALU:
  10 t: MULLO_UINT R1.x, R1.x, (3).x
  11 x: ADD_INT R1.x, R1.x, 1
@else:
ELSE: ADDR(@endif) POP_CNT(1)
ALU_POP_AFTER:
  12 x: LSHR_INT R1.x, R1.x, 1
@endif:
ALU:
  13 y: ADD_INT R1.y, R1.y, 1
LOOP_END: ADDR(@step)

@done:
EXPORT_DONE: PIXEL[0], R1.y___ END_OF_PROGRAM
