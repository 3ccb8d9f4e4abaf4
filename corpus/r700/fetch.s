; A vertex program: positions from a buffer by the index in R0.x, scaled by a constant.
.chip R600
.stage vertex
.gprs 3
.const 0 0 0x40000000 0x40000000 0x40000000 0x3f800000    ; 2.0 2.0 2.0 1.0
VTX:
  FETCH R1.xyz1, R0.x, b160 FORMAT(32_32_32_FLOAT) MEGA(12)
ALU: KCACHE0(CB0:0-15)
  0 x: MUL R1.x, R1.x, KC0[0].x
    y: MUL R1.y, R1.y, KC0[0].y
    z: MUL R1.z, R1.z, KC0[0].z
EXPORT_DONE: POS[60], R1.xyzw
EXPORT_DONE: PARAM[0], R1.0000 END_OF_PROGRAM
