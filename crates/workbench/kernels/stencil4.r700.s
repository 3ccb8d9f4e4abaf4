; A step of heat on four grids of 512 x 512 numbers in the components of a texture, one lane per texel: each number approaches its
; four neighbours. Five fetches without a filter, clamped to the edge.
;
;     out = c + (left + right + up + down - 4 c) / 8
;
; In:  R0.xy, the position of the pixel's centre (x + 0.5, y + 0.5), 512 a row; texture and sampler 0.
; Out: pixel 0.
.chip rv770
.stage pixel
.gprs 7
.stack 0

ALU:
  0 x: MUL R1.x, R0.x, (0x3b000000).x                 ; 1/512
    y: MUL R1.y, R0.y, (0x3b000000).x
    z: MOV R1.z, 0
    w: MOV R1.w, 0
TEX:
  SAMPLE_LZ R2.xyzw, R1.xyzw, t0, s0
  SAMPLE_LZ R3.xyzw, R1.xyzw, t0, s0 OFFSET_X(30)
  SAMPLE_LZ R4.xyzw, R1.xyzw, t0, s0 OFFSET_X(2)
  SAMPLE_LZ R5.xyzw, R1.xyzw, t0, s0 OFFSET_Y(30)
  SAMPLE_LZ R6.xyzw, R1.xyzw, t0, s0 OFFSET_Y(2)
ALU:
  1 x: ADD R3.x, R3.x, R4.x
    y: ADD R3.y, R3.y, R4.y
    z: ADD R3.z, R3.z, R4.z
    w: ADD R3.w, R3.w, R4.w
  2 x: ADD R3.x, R3.x, R5.x
    y: ADD R3.y, R3.y, R5.y
    z: ADD R3.z, R3.z, R5.z
    w: ADD R3.w, R3.w, R5.w
  3 x: ADD R3.x, R3.x, R6.x
    y: ADD R3.y, R3.y, R6.y
    z: ADD R3.z, R3.z, R6.z
    w: ADD R3.w, R3.w, R6.w
  4 x: MULADD_IEEE R3.x, R2.x, (-4.0f).x, R3.x
    y: MULADD_IEEE R3.y, R2.y, (-4.0f).x, R3.y
    z: MULADD_IEEE R3.z, R2.z, (-4.0f).x, R3.z
    w: MULADD_IEEE R3.w, R2.w, (-4.0f).x, R3.w
  5 x: MULADD_IEEE R2.x, R3.x, (0.125f).x, R2.x
    y: MULADD_IEEE R2.y, R3.y, (0.125f).x, R2.y
    z: MULADD_IEEE R2.z, R3.z, (0.125f).x, R2.z
    w: MULADD_IEEE R2.w, R3.w, (0.125f).x, R2.w
EXPORT_DONE: PIXEL[0], R2.xyzw END_OF_PROGRAM
