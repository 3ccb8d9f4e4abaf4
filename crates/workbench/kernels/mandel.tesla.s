; The Mandelbrot set over 1024 x 1024 points, one thread a point: how many of at most 255 steps a point stays
; within radius 2.
;
;     cx = -2.0 + x * 3/1024,  cy = -1.5 + y * 3/1024,  z = 0
;     while steps < 255 and zx^2 + zy^2 <= 4:  z = z^2 + c,  steps += 1
;
; The loop is left with joinat and join. At each leaving branch where the warp does not agree, the leavers run
; first: they arrive at the join, which sends the warp back to those that stay in the loop. The leavers wait there,
; and the last arrival finds the JOINAT token on top of the stack and wakes them all.
;
; Launch: blocks of 256 threads in x, 1024 points a row; one parameter, the address of an array of u32.
.chip sm_10
.type CP
.kernel mandel
.reg 12
.shared 20                              ; the 16 bytes of the header, then the parameter
.param 0 4

    ; gid = ctaid.x * ntid.x + tid.x. A one-dimensional block has tid.x alone in $r0.
    mov b32 $r1 u16 s[0xc]              ; ctaid.x
    mov b32 $r2 u16 s[0x2]              ; ntid.x
    mul $r1 u16 $r1l u16 $r2l
    add b32 $r0 $r1 $r0

    ; The point. Both products and both sums are exact.
    mov b32 $r1 0x3ff
    and b32 $r1 $r0 $r1                 ; x = gid mod 1024
    shr u32 $r2 $r0 0xa                 ; y = gid / 1024
    cvt rn f32 $r1 u32 $r1
    cvt rn f32 $r2 u32 $r2
    mul f32 $r1 $r1 0x3b400000          ; 3/1024
    mul f32 $r2 $r2 0x3b400000
    add f32 $r1 $r1 0xc0000000          ; $r1 = cx, from -2.0
    add f32 $r2 $r2 0xbfc00000          ; $r2 = cy, from -1.5

    mov b32 $r3 0x0                     ; zx
    mov b32 $r4 0x0                     ; zy
    mov b32 $r5 0x0                     ; zx * zx
    mov b32 $r6 0x0                     ; zy * zy
    mov b32 $r7 0x0                     ; steps
    mov b32 $r8 0x1
    mov b32 $r9 0xff
    mov b32 $r10 0x40800000             ; 4.0
    joinat done
step:
    set $c0 # l u32 $r7 $r9             ; steps < 255?
    (e $c0) bra done
    add rn f32 $r11 $r5 $r6
    set $c0 # le f32 $r11 $r10          ; within radius 2?
    (e $c0) bra done
    ; Multiplications and additions are separate: a mad of this generation truncates its product.
    add rn f32 $r3 $r3 $r3              ; zy = 2 * zx * zy + cy; doubling is exact
    mul rn f32 $r4 $r3 $r4
    add rn f32 $r4 $r4 $r2
    add rn f32 $r3 $r5 neg $r6          ; zx = zx^2 - zy^2 + cx
    add rn f32 $r3 $r3 $r1
    mul rn f32 $r5 $r3 $r3
    mul rn f32 $r6 $r4 $r4
    add b32 $r7 $r7 $r8
    bra step
done:
    join shl b32 $r0 $r0 0x2
    add b32 $r0 b32 s[0x10] $r0
    exit st b32 g14[$r0] $r7
