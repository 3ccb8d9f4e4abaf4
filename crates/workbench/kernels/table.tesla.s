; A checksum by table, as CRC-32 has it, of 64 bytes that each thread makes itself; the table of 256 words is in constant memory,
; where every lane reads another word.
;
;     c = 0xffffffff, n = gid;  64 times:  c = table[(c ^ n) & 255] ^ c >> 8,  n += c
;
; Launch: blocks of 256 threads; the address of an array of u32; the table in c1[].
.chip sm_10
.type CP
.kernel table
.reg 8
.shared 20
.param 0 4

    mov b32 $r1 u16 s[0xc]
    mov b32 $r2 u16 s[0x2]
    mul $r1 u16 $r1l u16 $r2l
    add b32 $r0 $r1 $r0
    mov b32 $r3 0xffffffff              ; c
    mov b32 $r4 $r0                     ; n
    mov b32 $r6 0x40
    mov b32 $r7 0x1
byte:
    xor b32 $r5 $r3 $r4
    and b32 $r5 $r5 0xff
    shl $a1 $r5 0x2
    shr u32 $r3 $r3 0x8
    xor b32 $r3 $r3 c1[$a1]
    add b32 $r4 $r4 $r3
    sub b32 $c0 $r6 $r6 $r7
    (lg $c0) bra byte
    shl b32 $r0 $r0 0x2
    add b32 $r0 b32 s[0x10] $r0
    exit st b32 g14[$r0] $r3
