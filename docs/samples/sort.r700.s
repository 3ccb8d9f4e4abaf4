; The four components of R0 in ascending order: a network of five comparisons.
.isa r700
.chip rv770
.stage pixel
ALU:
    0 x: MIN R1.x, R0.x, R0.y
    0 y: MAX R1.y, R0.x, R0.y
    0 z: MIN R1.z, R0.z, R0.w
    0 w: MAX R1.w, R0.z, R0.w
    1 x: MIN R0.x, R1.x, R1.z
    1 y: MIN R0.y, R1.y, R1.w
    1 z: MAX R0.z, R1.x, R1.z
    1 w: MAX R0.w, R1.y, R1.w
    2 y: MIN R0.y, R0.y, R0.z
    2 z: MAX R0.z, R0.y, R0.z
EXPORT_DONE: PIXEL[0], R0 END_OF_PROGRAM
