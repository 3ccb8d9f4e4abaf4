; A position of a buffer by its number in R0.x, times the rows of a matrix in the constant file.
.isa r700
.chip rv770
.stage vertex
.const file 0   0.0 -1.0 0.0 10.0    1.0 0.0 0.0 20.0    0.0 0.0 2.0 0.0    0.0 0.0 0.0 1.0
VTX:
    FETCH R1.xyz1, R0.x, b160 FORMAT(32_32_32_FLOAT) MEGA(12)
ALU:
    0 x: DOT4 R2.x, R1.x, C[0].x
    0 y: DOT4 ____, R1.y, C[0].y
    0 z: DOT4 ____, R1.z, C[0].z
    0 w: DOT4 ____, R1.w, C[0].w
    1 x: DOT4 ____, R1.x, C[1].x
    1 y: DOT4 R2.y, R1.y, C[1].y
    1 z: DOT4 ____, R1.z, C[1].z
    1 w: DOT4 ____, R1.w, C[1].w
    2 x: DOT4 ____, R1.x, C[2].x
    2 y: DOT4 ____, R1.y, C[2].y
    2 z: DOT4 R2.z, R1.z, C[2].z
    2 w: DOT4 ____, R1.w, C[2].w
    3 x: DOT4 ____, R1.x, C[3].x
    3 y: DOT4 ____, R1.y, C[3].y
    3 z: DOT4 ____, R1.z, C[3].z
    3 w: DOT4 R2.w, R1.w, C[3].w
EXPORT_DONE: POS[60], R2
EXPORT_DONE: PARAM[0], R1 END_OF_PROGRAM
