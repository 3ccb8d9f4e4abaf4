; SETGE gives 1 or 0, which is subtracted: r = 13 - (x >= 2) - (x >= 5).
.isa r700
.chip rv770
.stage pixel
.gprs 2

ALU:
    0 x: SETGE R1.x, R0.x, 2.0f
      y: SETGE R1.y, R0.x, 5.0f
    1 x: ADD R1.x, 13.0f, -R1.x
    2 x: ADD R1.x, R1.x, -R1.y
EXPORT_DONE: PIXEL[0], R1.xxxx END_OF_PROGRAM
