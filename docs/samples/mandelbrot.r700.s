; Steps of z = z * z + c until |z| > 2, at most 16.
; c in R0.xy, z in R1.xy, the number of steps in R1.z.
.isa r700
.chip rv770
.stage pixel
ALU:
    0 x: MOV R1.x, 0
    0 y: MOV R1.y, 0
    0 z: MOV R1.z, 0
LOOP_START_DX10: ADDR(@done)
@step: ALU_BREAK:
    1 x: MUL R2.x, R1.x, R1.x
    1 y: MUL R2.y, R1.y, R1.y
    2 z: ADD R2.z, R2.x, R2.y
    3 x: SETGE R3.x, 4.0f, R2.z
    3 y: SETGT R3.y, 16.0f, R1.z
    4 x: MUL R3.x, R3.x, R3.y
    5 x: PRED_SETNE ____, R3.x, 0 UPDATE_EXEC_MASK
ALU:
    6 x: ADD R2.x, R2.x, -R2.y
    6 y: MUL*2 R2.y, R1.x, R1.y
    7 x: ADD R1.x, R2.x, R0.x
    7 y: ADD R1.y, R2.y, R0.y
    7 z: ADD R1.z, R1.z, 1.0
LOOP_END: ADDR(@step)
@done: EXPORT_DONE: PIXEL[0], R1.zzzz END_OF_PROGRAM
