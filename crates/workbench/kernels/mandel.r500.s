; The Mandelbrot set over 1024 x 1024 points as a fragment program: how many of at most 255 steps a point stays
; within radius 2.
;
;     cx = -2.0 + x * 3/1024,  cy = -1.5 + y * 3/1024,  z = 0
;     while steps < 255 and zx^2 + zy^2 <= 4:  z = z^2 + c,  steps += 1
;
; R500 loops count by themselves: integer constant 0 holds 255 rounds, the most it can, which is just the limit that is
; wanted. The way out is a break on the ALU result. The thread leaves the loop when all its lanes have.
;
; An instruction multiplies and adds with one rounding at its end. Where the product must be rounded first, as here,
; it takes two instructions: one adds zero, the other multiplies by one.
;
; There are no integers, and no instruction reads a pixel's position: it comes in as an interpolated value, and
; steps are counted in single precision.
;
; In:  temp[0].rg, the position of the pixel's centre (x + 0.5, y + 0.5).
; Out: render target A, red: the steps as a number, 0.0 to 255.0.
.isa r500
.chip R520
.int 0 255 0 0
.const 0 0.0029296875 -2.0 -1.5 4.0      ; 3/1024, the corner of the picture, the square of the radius
.state US_PIXSIZE 4

; temp[0].rg = c, temp[1].rg = z, temp[2].rg = squares of z, temp[2].a = steps. Temporaries start undefined.
ALU temp[0].rg = MAD src0.rgb, src0.111, -src1.hhh : src0=temp[0]
ALU temp[0].rg = MAD src0.rgb, src1.rrr, src1.gbb : src0=temp[0] src1=const[0]
ALU temp[1].rg = MAD src0.000, src0.000, src0.000
ALU temp[2].rg = MAD src0.000, src0.000, src0.000
  + temp[2].a = MAD src0.0, src0.0, src0.0
loop int[0]

; Beyond radius 2, where 4 - (zx^2 + zy^2) is negative. The sum must be rounded before it is compared.
ALU temp[3].r = MAD src0.rrr, src0.111, src0.ggg : src0=temp[2]
ALU alu_result[LT].r = MAD -src0.rrr, src0.111, src1.aaa : src0=temp[3] src1=const[0]
  + MAD src0.0, src0.0, src0.0 : src1=const[0]
break if alu

; One step. The alpha half multiplies 2 * zx * zy while the RGB half subtracts the squares.
ALU temp[3].r = MAD src0.rrr, src0.111, -src0.ggg : src0=temp[2] src1=temp[1]
  + temp[3].a = MAD*2 src1.r, src1.g, src1.0
ALU temp[1].rg = MAD src0.raa, src0.111, src1.rgb : src0=temp[3] src1=temp[0]
  + MAD src0.0, src0.0, src0.0 : src0=temp[3]
ALU temp[2].rg = MAD src0.rgb, src0.rgb, src0.000 : src0=temp[1]
  + temp[2].a = MAD src0.a, src0.1, src0.1 : src0=temp[2]
endloop int[0]

OUT out[A].r = MAD src0.aaa, src0.111, src0.000 {TEX_SEM_WAIT}
  + MAD src0.0, src0.0, src0.0 : src0=temp[2]
