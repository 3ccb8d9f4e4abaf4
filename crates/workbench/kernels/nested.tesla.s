; Two loops, one inside the other, whose rounds differ from thread to thread.
;
;     a = gid
;     for i in 0 .. (gid ^ gid >> 7) mod 32:
;         for j in 0 .. (a >> 3) mod 16:  a = (a << 1 ^ a >> 5) + j        (32 bits, wrapping)
;         a += i
;
; Launch: blocks of 256 threads; the address of an array of u32.
.chip sm_10
.type CP
.kernel nested
.reg 12
.shared 20
.param 0 4

    mov b32 $r1 u16 s[0xc]
    mov b32 $r2 u16 s[0x2]
    mul $r1 u16 $r1l u16 $r2l
    add b32 $r0 $r1 $r0
    mov b32 $r3 $r0                     ; a
    shr u32 $r4 $r0 0x7
    xor b32 $r4 $r0 $r4
    and b32 $r4 $r4 0x1f                ; rounds
    mov b32 $r5 0x0                     ; i
    mov b32 $r9 0x1
    breakaddr done
outer:
    set $c0 # ge u32 $r5 $r4
    (lg $c0) break
    shr u32 $r6 $r3 0x3
    and b32 $r6 $r6 0xf                 ; rounds inside
    mov b32 $r7 0x0                     ; j
    joinat after
inner:
    set $c0 # ge u32 $r7 $r6
    (lg $c0) bra after
    shl b32 $r1 $r3 0x1
    shr u32 $r2 $r3 0x5
    xor b32 $r3 $r1 $r2
    add b32 $r3 $r3 $r7
    add b32 $r7 $r7 $r9
    bra inner
after:
    join add b32 $r3 $r3 $r5
    add b32 $r5 $r5 $r9
    bra outer
done:
    shl b32 $r0 $r0 0x2
    add b32 $r0 b32 s[0x10] $r0
    exit st b32 g14[$r0] $r3
