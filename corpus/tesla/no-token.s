; A join with nothing on the stack.
.chip G80
.type CP
.kernel lost
    join nop
    exit nop
