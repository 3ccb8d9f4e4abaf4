; The greatest common divisor of R0.x and R0.y, whole numbers above 0, by a subroutine.
.isa r700
.chip rv770
.stage pixel
CALL: ADDR(@gcd)
EXPORT_DONE: PIXEL[0], R0.yyyy END_OF_PROGRAM

@gcd:                       ; while x != 0 { (x, y) = (|x - y|, min(x, y)) }
LOOP_START_DX10: ADDR(@out)
@step: ALU_BREAK:
    0 x: PRED_SETNE ____, R0.x, 0 UPDATE_EXEC_MASK
ALU:
    1 x: MAX R1.x, R0.x, R0.y
    1 y: MIN R1.y, R0.x, R0.y
    2 x: ADD R0.x, R1.x, -R1.y
    2 y: MOV R0.y, R1.y
LOOP_END: ADDR(@step)
@out: RETURN:
