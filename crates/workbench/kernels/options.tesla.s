; Prices of call options after Black and Scholes, one thread per option: a logarithm, exponentials, reciprocals and a root, and twice a
; polynomial for the normal distribution.
;
;     d = (ln(s / x) + 0.065 t) / (0.3 sqrt(t)),  e = d - 0.3 sqrt(t),  price = s N(d) - x exp(-0.02 t) N(e)
;
; Launch: blocks of 256 threads; the addresses of the options (share s, strike x, time t, 0) and of the prices.
.chip sm_11
.type CP
.kernel options
.reg 12
.shared 24
.param 0 4
.param 4 4
.const 1 0x0 0xbfe91eea 0x3fe40778 0xbeb68f87 0x3ea385fa 0x3f800000 0x00000000

    mov b32 $r1 u16 s[0xc]
    mov b32 $r2 u16 s[0x2]
    mul $r1 u16 $r1l u16 $r2l
    add b32 $r0 $r1 $r0
    shl b32 $r1 $r0 0x4
    add b32 $r1 b32 s[0x10] $r1
    ld b128 $r4q g14[$r1]               ; s, x, t
    rcp f32 $r1 $r5
    mul rn f32 $r1 $r4 $r1
    lg2 f32 $r1 $r1
    rsqrt f32 $r2 $r6
    mul f32 $r1 $r1 0.6931472
    add f32 $r1 (mul $r6 0.065) $r1
    mul rn f32 $r1 $r1 $r2
    mul f32 $r8 $r1 3.3333333           ; d
    mul rn f32 $r2 $r6 $r2              ; the root of t
    mov b32 $r9 $r8
    add f32 $r9 (mul $r2 -0.3) $r9      ; e
    mul f32 $r6 $r6 -0.028853901
    preex2 f32 $r6 $r6
    ex2 f32 $r6 $r6
    mul rn f32 $r5 $r5 $r6              ; the strike's present value
    mov b32 $r1 1.0                      ; N(d): k = 1 / (1 + 0.2316419 |d|)
    cvt abs f32 $r2 f32 $r8
    add f32 $r1 (mul $r2 0.2316419) $r1
    rcp f32 $r1 $r1
    mul rn f32 $r2 $r8 $r8
    mul f32 $r2 $r2 -0.72134752
    preex2 f32 $r2 $r2
    ex2 f32 $r2 $r2
    mov b32 $r3 1.3302744
    add f32 $r3 (mul $r3 $r1) c1[0x0]
    add f32 $r3 (mul $r3 $r1) c1[0x4]
    add f32 $r3 (mul $r3 $r1) c1[0x8]
    add f32 $r3 (mul $r3 $r1) c1[0xc]
    mul rn f32 $r3 $r3 $r1
    mul f32 $r2 $r2 0.3989423
    mul rn f32 $r3 $r3 $r2
    set $c0 # g f32 $r8 c1[0x14]
    (lg $c0) add rn f32 $r3 neg $r3 c1[0x10]
    mul rn f32 $r4 $r4 $r3
    mov b32 $r1 1.0                      ; N(e)
    cvt abs f32 $r2 f32 $r9
    add f32 $r1 (mul $r2 0.2316419) $r1
    rcp f32 $r1 $r1
    mul rn f32 $r2 $r9 $r9
    mul f32 $r2 $r2 -0.72134752
    preex2 f32 $r2 $r2
    ex2 f32 $r2 $r2
    mov b32 $r3 1.3302744
    add f32 $r3 (mul $r3 $r1) c1[0x0]
    add f32 $r3 (mul $r3 $r1) c1[0x4]
    add f32 $r3 (mul $r3 $r1) c1[0x8]
    add f32 $r3 (mul $r3 $r1) c1[0xc]
    mul rn f32 $r3 $r3 $r1
    mul f32 $r2 $r2 0.3989423
    mul rn f32 $r3 $r3 $r2
    set $c0 # g f32 $r9 c1[0x14]
    (lg $c0) add rn f32 $r3 neg $r3 c1[0x10]
    mul rn f32 $r5 $r5 $r3
    add rn f32 $r4 $r4 neg $r5
    shl b32 $r0 $r0 0x2
    add b32 $r0 b32 s[0x14] $r0
    exit st b32 g14[$r0] $r4
