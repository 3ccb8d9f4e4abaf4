; The product of a sparse matrix and a vector, one thread per row: the rows have different lengths, and each number of a row is
; multiplied with the number of the vector in its column (compressed sparse rows).
;
;     y[row] = sum of values[j] * x[columns[j]],  j from rows[row] up to rows[row + 1]
;
; Launch: blocks of 256 threads; the addresses of the rows' starts, of columns and values, of x and of y.
.chip sm_11
.type CP
.kernel spmv
.reg 12
.shared 36
.param 0 4
.param 4 4
.param 8 4
.param 12 4
.param 16 4

    mov b32 $r1 u16 s[0xc]
    mov b32 $r2 u16 s[0x2]
    mul $r1 u16 $r1l u16 $r2l
    add b32 $r0 $r1 $r0
    shl b32 $r0 $r0 0x2
    add b32 $r1 b32 s[0x10] $r0
    ld b32 $r2 g14[$r1]                 ; the row's start
    add b32 $r1 $r1 0x4
    ld b32 $r3 g14[$r1]                 ; and its end
    mov b32 $r4 0x0                     ; the sum
    joinat done
    set $c0 # ge u32 $r2 $r3
    (lg $c0) bra done
    shl b32 $r2 $r2 0x2
    shl b32 $r3 $r3 0x2
    add b32 $r3 b32 s[0x14] $r3         ; where the row's columns end
    add b32 $r5 b32 s[0x18] $r2         ; the next value
    add b32 $r2 b32 s[0x14] $r2         ; and its column
next:
    ld b32 $r6 g14[$r2]
    ld b32 $r7 g14[$r5]
    shl b32 $r6 $r6 0x2
    add b32 $r6 b32 s[0x1c] $r6
    ld b32 $r6 g14[$r6]
    add b32 $r2 $r2 0x4
    add b32 $r5 $r5 0x4
    add f32 $r4 (mul $r7 $r6) $r4
    set $c0 # l u32 $r2 $r3
    (lg $c0) bra next
done:
    join add b32 $r0 b32 s[0x20] $r0
    exit st b32 g14[$r0] $r4
