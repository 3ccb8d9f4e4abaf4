; R700: lanes whose reciprocal is above 0.3 export it, the others their input.
.chip rv770
.stage pixel
.gprs 2
.stack 1
ALU_PUSH_BEFORE:
    0 t: RECIP_IEEE R1.x, R0.x
    1 x: PRED_SETGT _.x, R1.x, 0.3f UPDATE_EXEC_MASK
ALU_POP_AFTER:
    2 x: MOV R0.x, R1.x
EXPORT_DONE: PIXEL[0], R0.xxxx END_OF_PROGRAM
