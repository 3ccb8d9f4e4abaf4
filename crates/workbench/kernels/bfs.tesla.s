; A step of a breadth-first search, one thread per vertex: a vertex of level 4 gives each of its neighbours level 5 that does not
; have a level yet.
;
;     if levels[v] == 4:  for j from rows[v] up to rows[v + 1]:  n = neighbours[j],  if levels[n] == -1: levels[n] = 5
;
; Several threads may find a neighbour. All of them store the same level.
;
; Launch: blocks of 256 threads; the addresses of the lists' starts, of the lists of neighbours and of the levels.
.chip sm_11
.type CP
.kernel bfs
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
    add b32 $r1 b32 s[0x18] $r0
    ld b32 $r2 g14[$r1]                 ; the vertex's level
    mov b32 $r3 0x4
    joinat done
    set $c0 # lg u32 $r2 $r3
    (lg $c0) bra done
    add b32 $r1 b32 s[0x10] $r0
    ld b32 $r2 g14[$r1]                 ; the list's start
    add b32 $r1 $r1 0x4
    ld b32 $r3 g14[$r1]                 ; and its end
    set $c0 # ge u32 $r2 $r3
    (lg $c0) bra done
    shl b32 $r2 $r2 0x2
    shl b32 $r3 $r3 0x2
    add b32 $r2 b32 s[0x14] $r2
    add b32 $r3 b32 s[0x14] $r3
    mov b32 $r4 0xffffffff
    mov b32 $r5 0x5
next:
    ld b32 $r6 g14[$r2]
    shl b32 $r6 $r6 0x2
    add b32 $r6 b32 s[0x18] $r6
    ld b32 $r7 g14[$r6]
    set $c0 # e u32 $r7 $r4
    (lg $c0) st b32 g14[$r6] $r5
    add b32 $r2 $r2 0x4
    set $c0 # l u32 $r2 $r3
    (lg $c0) bra next
done:
    join nop
    exit nop
