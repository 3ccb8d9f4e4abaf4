; sum[0] = in[0] + ... + in[63]. Thread 0 adds all numbers; the other threads wait.
.isa tesla
.chip sm_10
.kernel reduce
.reg 6
.shared 280
.param s[0x10] 4 in
.param s[0x14] 4 sum

    and b32 $r0 $r0 0xffff          ; threadIdx.x
    and b32 $c0 # $r0 $r0
    (lg $c0) ret                    ; ends all threads but the first
    mov b32 $r1 b32 s[in]
    mov b32 $r2 0x0                 ; sum
    mov b32 $r3 0x40                ; numbers to go
    mov b32 $r4 0x1
step:
    ld b32 $r5 g14[$r1]
    add b32 $r2 $r2 $r5
    add b32 $r1 $r1 0x4
    sub b32 $r3 $r3 $r4
    and b32 $c0 # $r3 $r3
    (lg $c0) bra step
    mov b32 $r1 b32 s[sum]
    exit st b32 g14[$r1] $r2
