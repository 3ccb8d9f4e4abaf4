; Halves x until it is below 1, eight times at most, and counts the rounds in y. Flow control always runs all eight; a vertex
; that is done has its predicate off, by a counter in t1.w that no POP brings back.
.isa r500
.stage vertex
.state VAP_PVS_CODE_CNTL_0 PVS_XYZW_VALID_INST=11 PVS_LAST_INST=11
.state VAP_PVS_CODE_CNTL_1 0x0
.state VAP_PVS_FLOW_CNTL_OPC 0x2
.state VAP_PVS_FLOW_CNTL_ADDRS_LW_0 PVS_FC_ACT_ADRS=3 PVS_FC_LOOP_CNT_JMP_INST=8
.state VAP_PVS_FLOW_CNTL_ADDRS_UW_0 PVS_FC_LAST_INST=9 PVS_FC_RTN_INST=4
VE_ADD t0 = i0, i0.0
ME_PRED_SET_EQ t1.w = t0.0
VE_ADD t2 = t0.0, t0.0
VECTOR_NO_OP
(p) VE_SET_LESS_THAN t2.x = t0.x, t0.1
VE_PRED_SET_NEQ_PUSH t1.w = t1, t2.x
(p) ME_RECIP_DX t1.w = t1.0
ME_PRED_SET_POP t1.w = t1
(p) VE_MULTIPLY t0.x = t0.x, c0.x
(p) VE_ADD t0.y = t0.y, t0.1
VECTOR_NO_OP
VE_ADD o0 = t0, t0.0
