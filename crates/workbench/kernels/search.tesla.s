; A search in a tree of 65535 numbers, one thread a key: the tree lies in an array, the children of node i at 2 i and 2 i + 1. A
; thread ends at the node that has its key, or behind the last level.
;
;     i = 1;  while i < 65536 and tree[i] != key:  i = 2 i + (tree[i] < key)
;
; Launch: blocks of 256 threads; the addresses of the tree, of the keys and of the results.
.chip sm_11
.type CP
.kernel search
.reg 12
.shared 28
.param 0 4
.param 4 4
.param 8 4

    mov b32 $r1 u16 s[0xc]
    mov b32 $r2 u16 s[0x2]
    mul $r1 u16 $r1l u16 $r2l
    add b32 $r0 $r1 $r0
    shl b32 $r0 $r0 0x2
    add b32 $r1 b32 s[0x14] $r0
    add b32 $r0 b32 s[0x18] $r0
    ld b32 $r3 g14[$r1]                 ; the key
    mov b32 $r4 0x1                     ; i
    mov b32 $r8 0x10000
    breakaddr done
level:
    shl b32 $r5 $r4 0x2
    add b32 $r5 b32 s[0x10] $r5
    ld b32 $r6 g14[$r5]
    set $c0 # e u32 $r6 $r3
    (lg $c0) break
    set $r7 l u32 $r6 $r3               ; -1 where the node is less
    add b32 $r4 $r4 $r4
    sub b32 $r4 $r4 $r7
    set $c0 # l u32 $r4 $r8
    (lg $c0) bra level
    break
done:
    exit st b32 g14[$r0] $r4
