; A search in a tree of 65535 numbers, one lane a key: the tree lies in a vertex buffer, the children of node i at 2 i and
; 2 i + 1. A lane ends at the node that has its key, or behind the last level.
;
;     i = 1;  while i < 65536 and tree[i] != key:  i = 2 i + (tree[i] < key)
;
; In:  R0.x, the key; vertex resource 160, the tree.
; Out: pixel 0, red: i as u32.
.chip rv770
.stage pixel
.gprs 4
.stack 1

ALU:
  0 x: MOV R1.x, 1
LOOP_START_DX10: ADDR(@done)
@level:
ALU_BREAK:
  1 x: PRED_SETGT_INT _.x, (0x10000).x, R1.x UPDATE_EXEC_MASK
VTX:
  FETCH R2.x___, R1.x, b160 FORMAT(32) NUM(INT) MEGA(4)
ALU_BREAK:
  2 x: PRED_SETNE_INT _.x, R2.x, R0.x UPDATE_EXEC_MASK
ALU:
  3 x: SETGT_UINT R2.x, R0.x, R2.x
  4 y: LSHL_INT R2.y, R1.x, 1
  5 x: SUB_INT R1.x, R2.y, R2.x                     ; what holds is -1
LOOP_END: ADDR(@level)
@done:
EXPORT_DONE: PIXEL[0], R1.x___ END_OF_PROGRAM
