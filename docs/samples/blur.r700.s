; A row of eight texels, each as a quarter of its neighbours and itself twice. Pixels of alpha below 0.5 are killed.
; The number of the texel in R0.x.
.isa r700
.chip rv770
.stage pixel
ALU:
    0 x: ADD_INT R1.x, R0.x, -1
    0 y: ADD_INT R1.y, R0.x, 1
    1 x: MAX_INT R1.x, R1.x, 0
    1 y: MIN_INT R1.y, R1.y, 7
TEX:
    LD R2, R1.x000, t0, s0
    LD R3, R0.x000, t0, s0
    LD R4, R1.y000, t0, s0
ALU:
    2 x: ADD R2.x, R2.x, R4.x
    2 y: KILLGT ____, 0.5, R3.w
    3 x: MULADD R2.x, R3.x, 2.0f, R2.x
    4 x: MUL R2.x, R2.x, 0.25f
EXPORT_DONE: PIXEL[0], R2.xxx1 VALID_PIX END_OF_PROGRAM
