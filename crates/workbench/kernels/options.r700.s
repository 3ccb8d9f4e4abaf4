; Prices of call options after Black and Scholes, one lane per option: a logarithm, exponentials, reciprocals and a root, and twice a
; polynomial for the normal distribution.
;
;     d = (ln(s / x) + 0.065 t) / (0.3 sqrt(t)),  e = d - 0.3 sqrt(t),  price = s N(d) - x exp(-0.02 t) N(e)
;
; In:  R0.xyz, the share s, the strike x and the time t.
; Out: pixel 0, red: the price.
.chip rv770
.stage pixel
.gprs 6
.stack 0

; R2.xy = d and e; R4.xy = N(d) and N(e).
ALU:
  0 t: RECIP_IEEE R1.x, R0.y
  1 x: MUL R1.x, R0.x, R1.x
    t: RECIPSQRT_IEEE R1.y, R0.z
  2 z: MUL R1.z, R0.z, R1.y
    w: MUL R1.w, R0.z, (-0.028853901f).x
    t: LOG_IEEE R1.x, R1.x
  3 x: MUL R1.x, R1.x, (0.6931472f).x
    t: EXP_IEEE R1.w, R1.w
  4 x: MULADD_IEEE R1.x, R0.z, (0.065f).x, R1.x
    y: MUL R0.y, R0.y, R1.w
  5 x: MUL R1.x, R1.x, R1.y
  6 x: MUL R2.x, R1.x, (3.3333333f).x
  7 y: MULADD_IEEE R2.y, R1.z, (-0.3f).x, R2.x
  8 x: MAX R3.x, R2.x, -R2.x
    y: MAX R3.y, R2.y, -R2.y
    z: MUL R3.z, R2.x, R2.x
    w: MUL R3.w, R2.y, R2.y
  9 x: MULADD_IEEE R3.x, R3.x, (0.2316419f).x, 1.0f
    y: MULADD_IEEE R3.y, R3.y, (0.2316419f).x, 1.0f
    z: MUL R3.z, R3.z, (-0.72134752f).y
    w: MUL R3.w, R3.w, (-0.72134752f).y
  10 t: RECIP_IEEE R3.x, R3.x
  11 t: RECIP_IEEE R3.y, R3.y
  12 t: EXP_IEEE R3.z, R3.z
  13 x: MULADD_IEEE R4.x, R3.x, (1.3302744f).x, (-1.8212559f).y
     y: MULADD_IEEE R4.y, R3.y, (1.3302744f).x, (-1.8212559f).y
     t: EXP_IEEE R3.w, R3.w
  14 x: MULADD_IEEE R4.x, R4.x, R3.x, (1.7814779f).x
     y: MULADD_IEEE R4.y, R4.y, R3.y, (1.7814779f).x
  15 x: MULADD_IEEE R4.x, R4.x, R3.x, (-0.35656378f).x
     y: MULADD_IEEE R4.y, R4.y, R3.y, (-0.35656378f).x
  16 x: MULADD_IEEE R4.x, R4.x, R3.x, (0.31938153f).x
     y: MULADD_IEEE R4.y, R4.y, R3.y, (0.31938153f).x
  17 x: MUL R4.x, R4.x, R3.x
     y: MUL R4.y, R4.y, R3.y
     z: MUL R3.z, R3.z, (0.3989423f).x
     w: MUL R3.w, R3.w, (0.3989423f).x
  18 x: MUL R4.x, R4.x, R3.z
     y: MUL R4.y, R4.y, R3.w
  19 x: ADD R5.x, 1.0f, -R4.x
     y: ADD R5.y, 1.0f, -R4.y
  20 x: CNDGT R4.x, R2.x, R5.x, R4.x
     y: CNDGT R4.y, R2.y, R5.y, R4.y
  21 x: MUL R4.x, R0.x, R4.x
     y: MUL R4.y, R0.y, R4.y
  22 x: ADD R4.x, R4.x, -R4.y
EXPORT_DONE: PIXEL[0], R4.x___ END_OF_PROGRAM
