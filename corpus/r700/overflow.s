; A push on a stack of no entries.
.chip RV770
.stage pixel
.gprs 1
.stack 0
PUSH: ADDR(@end)
@end:
POP: ADDR(@out) POP_CNT(1)
@out:
EXPORT_DONE: PIXEL[0], R0.xyzw END_OF_PROGRAM
