; The first place of a word of 8 letters in each of 32768 lines of 64 letters, one thread per line: a thread compares letter by letter,
; leaves a place at the first letter that differs, and the line at the first place that fits.
;
;     for place in 0 .. 57:  if line[place + i] == word[i] for i in 0 .. 8: leave        (57: the line does not contain the word)
;
; Launch: blocks of 256 threads; the addresses of the lines, in bytes, and of the places; the word, in bytes, in c1[].
.chip sm_11
.type CP
.kernel find
.reg 12
.shared 24
.param 0 4
.param 4 4

    mov b32 $r1 u16 s[0xc]
    mov b32 $r2 u16 s[0x2]
    mul $r1 u16 $r1l u16 $r2l
    add b32 $r0 $r1 $r0
    shl b32 $r1 $r0 0x6
    add b32 $r1 b32 s[0x10] $r1         ; the line's address at the place
    mov b32 $r2 0x0                     ; the place
    mov b32 $r7 0x39
    mov b32 $r8 0x8
    breakaddr done
place:
    mov b32 $r3 $r1
    mov b32 $r4 0x0                     ; i
    joinat differs
letter:
    ld u8 $r5 g14[$r3]
    shl $a1 $r4 0x0
    ld $r6 u8 c1[$a1]
    set $c0 # lg u32 $r5 $r6
    (lg $c0) bra differs
    add b32 $r3 $r3 0x1
    add b32 $r4 $r4 0x1
    set $c0 # l u32 $r4 $r8
    (lg $c0) bra letter
    break                               ; all letters are equal
differs:
    join nop
    add b32 $r1 $r1 0x1
    add b32 $r2 $r2 0x1
    set $c0 # l u32 $r2 $r7
    (lg $c0) bra place
    break
done:
    shl b32 $r0 $r0 0x2
    add b32 $r0 b32 s[0x14] $r0
    exit st b32 g14[$r0] $r2
