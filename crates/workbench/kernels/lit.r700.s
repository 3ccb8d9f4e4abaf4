; A lit and textured fragment: the surface's normal comes in interpolated and is brought to length 1, light falls along it,
; and the colour of a texture is scaled by what falls there and a rest that falls everywhere.
;
;     light = max(0, n . l / |n|) * 3/4 + 1/4,  colour = texture(u, v) * light
;
; In:  R0.xy, the texture's coordinates; R1.xyz, the normal; constant 0, the light's direction, its w 0.
; Out: pixel 0.
.chip rv770
.stage pixel
.gprs 4
.stack 0

TEX:
  SAMPLE R2.xyzw, R0.xyzw, t0, s0
ALU: KCACHE0(CB0:0-15)
  0 w: MOV R1.w, 0
  1 x: DOT4_IEEE R0.x, R1.x, R1.x
    y: DOT4_IEEE _.y, R1.y, R1.y
    z: DOT4_IEEE _.z, R1.z, R1.z
    w: DOT4_IEEE _.w, R1.w, R1.w
  2 x: DOT4_IEEE R3.x, R1.x, KC0[0].x
    y: DOT4_IEEE _.y, R1.y, KC0[0].y
    z: DOT4_IEEE _.z, R1.z, KC0[0].z
    w: DOT4_IEEE _.w, R1.w, KC0[0].w
    t: RECIPSQRT_IEEE R0.y, R0.x
  3 x: MUL_IEEE R3.x, R3.x, R0.y
  4 x: MAX_DX10 R3.x, R3.x, 0
  5 x: MULADD_IEEE R3.x, R3.x, (0.75f).x, (0.25f).y
  6 x: MUL_IEEE R2.x, R2.x, R3.x
    y: MUL_IEEE R2.y, R2.y, R3.x
    z: MUL_IEEE R2.z, R2.z, R3.x
    w: MUL_IEEE R2.w, R2.w, R3.x
EXPORT_DONE: PIXEL[0], R2.xyzw END_OF_PROGRAM
