; A picture of 512 x 512 texels weighed with 3 x 3 binomial weights, one lane a texel: nine fetches without a filter, clamped to
; the edge.
;
;     out = sum of weight[dy][dx] * texel[y + dy][x + dx],  weights 1 2 1, 2 4 2, 1 2 1
;
; In:  R0.xy, the position of the pixel's centre (x + 0.5, y + 0.5), 512 a row; texture and sampler 0.
; Out: pixel 0.
.chip rv770
.stage pixel
.gprs 12
.stack 0

ALU:
  0 x: MUL R1.x, R0.x, (0x3b000000).x                 ; 1/512
    y: MUL R1.y, R0.y, (0x3b000000).x
    z: MOV R1.z, 0
    w: MOV R1.w, 0
TEX:
  SAMPLE_LZ R2.xyzw, R1.xyzw, t0, s0 OFFSET_X(30) OFFSET_Y(30)
  SAMPLE_LZ R3.xyzw, R1.xyzw, t0, s0 OFFSET_Y(30)
  SAMPLE_LZ R4.xyzw, R1.xyzw, t0, s0 OFFSET_X(2) OFFSET_Y(30)
  SAMPLE_LZ R5.xyzw, R1.xyzw, t0, s0 OFFSET_X(30)
  SAMPLE_LZ R6.xyzw, R1.xyzw, t0, s0
  SAMPLE_LZ R7.xyzw, R1.xyzw, t0, s0 OFFSET_X(2)
  SAMPLE_LZ R8.xyzw, R1.xyzw, t0, s0 OFFSET_X(30) OFFSET_Y(2)
  SAMPLE_LZ R9.xyzw, R1.xyzw, t0, s0 OFFSET_Y(2)
TEX:
  SAMPLE_LZ R10.xyzw, R1.xyzw, t0, s0 OFFSET_X(2) OFFSET_Y(2)
ALU:
  1 x: MOV R11.x, R2.x
    y: MOV R11.y, R2.y
    z: MOV R11.z, R2.z
    w: MOV R11.w, R2.w
  2 x: MULADD_IEEE R11.x, R3.x, (2.0f).x, R11.x
    y: MULADD_IEEE R11.y, R3.y, (2.0f).x, R11.y
    z: MULADD_IEEE R11.z, R3.z, (2.0f).x, R11.z
    w: MULADD_IEEE R11.w, R3.w, (2.0f).x, R11.w
  3 x: ADD R11.x, R11.x, R4.x
    y: ADD R11.y, R11.y, R4.y
    z: ADD R11.z, R11.z, R4.z
    w: ADD R11.w, R11.w, R4.w
  4 x: MULADD_IEEE R11.x, R5.x, (2.0f).x, R11.x
    y: MULADD_IEEE R11.y, R5.y, (2.0f).x, R11.y
    z: MULADD_IEEE R11.z, R5.z, (2.0f).x, R11.z
    w: MULADD_IEEE R11.w, R5.w, (2.0f).x, R11.w
  5 x: MULADD_IEEE R11.x, R6.x, (4.0f).x, R11.x
    y: MULADD_IEEE R11.y, R6.y, (4.0f).x, R11.y
    z: MULADD_IEEE R11.z, R6.z, (4.0f).x, R11.z
    w: MULADD_IEEE R11.w, R6.w, (4.0f).x, R11.w
  6 x: MULADD_IEEE R11.x, R7.x, (2.0f).x, R11.x
    y: MULADD_IEEE R11.y, R7.y, (2.0f).x, R11.y
    z: MULADD_IEEE R11.z, R7.z, (2.0f).x, R11.z
    w: MULADD_IEEE R11.w, R7.w, (2.0f).x, R11.w
  7 x: ADD R11.x, R11.x, R8.x
    y: ADD R11.y, R11.y, R8.y
    z: ADD R11.z, R11.z, R8.z
    w: ADD R11.w, R11.w, R8.w
  8 x: MULADD_IEEE R11.x, R9.x, (2.0f).x, R11.x
    y: MULADD_IEEE R11.y, R9.y, (2.0f).x, R11.y
    z: MULADD_IEEE R11.z, R9.z, (2.0f).x, R11.z
    w: MULADD_IEEE R11.w, R9.w, (2.0f).x, R11.w
  9 x: ADD R11.x, R11.x, R10.x
    y: ADD R11.y, R11.y, R10.y
    z: ADD R11.z, R11.z, R10.z
    w: ADD R11.w, R11.w, R10.w
EXPORT_DONE: PIXEL[0], R11.xyzw END_OF_PROGRAM
