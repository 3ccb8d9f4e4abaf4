; The predicate decides for each pixel which of the two sums is kept. The clause runs once, for all pixels.
.isa r700
.chip rv770
.stage pixel
.gprs 2

ALU:
    0 x: PRED_SETGT _.x, 4.0f, R0.x UPDATE_PRED
    1 x: ADD R1.x, R0.x, R0.x PRED(ONE)
    2 x: ADD R1.x, R0.x, 100.0f PRED(ZERO)
EXPORT_DONE: PIXEL[0], R1.xxxx END_OF_PROGRAM
