; A counted loop: three rounds, aL = 4, 6, 8, that sums constants from the lines aL of a buffer; a break for lanes that have enough.
.chip RV770
.stage pixel
.gprs 3
.stack 1
.loop 0 0x02004003          ; COUNT 3, INIT 4, INC 2
.const 0 256 0x3f800000   ; line 4: 1.0
.const 0 384 0x41200000   ; line 6: 10.0
.const 0 512 0x42c80000   ; line 8: 100.0
ALU:
  0 x: MOV R1.x, 0
LOOP_START: ADDR(@done) CF_CONST(0)
@round:
ALU: KCACHE0(CB0:0-31+aL)
  1 x: ADD R1.x, R1.x, KC0[0].x
ALU_BREAK:
  2 x: PRED_SETGT _.x, R0.x, R1.x UPDATE_EXEC_MASK    ; goes on while R0.x > sum
LOOP_END: ADDR(@round)
@done:
EXPORT_DONE: PIXEL[0], R1.x000 END_OF_PROGRAM
