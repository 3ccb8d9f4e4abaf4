; out[i] = 1 if i is prime, and 0 otherwise. The subroutine returns early in some lanes; its CALL token brings them together.
.isa tesla
.chip sm_10
.kernel primes
.reg 6
.shared 20
.param s[0x10] 4 out
.alias number, $r1
.alias prime, $r2
.alias divisor, $r3
.alias rest, $r4
.alias zero, $r5

    and b32 $r0, $r0, 0xffff
    mov b32 number, $r0
    mov b32 zero, 0
    call is_prime
    shl b32 $r3, $r0, 2
    add b32 $r3, b32 s[out], $r3
    exit st b32 g14[$r3], prime

is_prime:
    mov b32 prime, 0
    mov b32 divisor, 2
    set $c0 # l u32 number, divisor
    (lg $c0) ret
    mov b32 prime, 1
    breakaddr done
next:
    set $c0 # ge u32 divisor, number
    (lg $c0) break
    mov b32 rest, number
    joinat divided
divide:                                     ; rest = number % divisor
    set $c0 # l u32 rest, divisor
    (lg $c0) bra divided
    sub b32 rest, rest, divisor
    bra divide
divided:
    join nop
    set $c0 # e u32 rest, zero
    (lg $c0) mov b32 prime, zero
    (lg $c0) break
    add b32 divisor, divisor, 1
    bra next
done:
    ret
