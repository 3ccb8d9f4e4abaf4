; Lanes below zero are killed: they run on, but export nothing.
.chip RV770
.stage pixel
.gprs 1
ALU:
  0 x: KILLGT _.x, 0, R0.x
EXPORT_DONE: PIXEL[0], R0.xyzw VALID_PIX END_OF_PROGRAM
