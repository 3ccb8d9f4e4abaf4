; Every thread of several blocks takes a ticket.
.chip G84
.type CP
.kernel ticket
    mov b32 $r1 b32 s[0x10]
    mov b32 $r2 0x1
    exit red add u32 g14[$r1] $r2
