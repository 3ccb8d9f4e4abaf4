" Written by editors/generator/generate.mjs; do not edit.
if exists("b:current_syntax")
  finish
endif
syntax case match
syntax match reconvergeFlag '\v<([A-Z][A-Z0-9_]+|[0-9]+_[A-Z0-9_]+)>'
syntax match reconvergeNumber '\v#?-?<(0x[0-9a-fA-F]+|0b[01]+|[0-9]+(\.[0-9]*)?([eE][-+]?[0-9]+)?f?)>'
syntax match reconvergeMnemonic '\v<(ADD|ADD_64|ADD_INT|ALU|ALU_BREAK|ALU_CONTINUE|ALU_ELSE_AFTER|ALU_POP2_AFTER|ALU_POP_AFTER|ALU_PUSH_BEFORE|AND_INT|ASHR_INT|CALL|CALL_FS|CEIL|CNDE|CNDE_INT|CNDGE|CNDGE_INT|CNDGT|CNDGT_INT|COS|CUBE|CUT_VERTEX|DOT4|DOT4_IEEE|ELSE|EMIT_CUT_VERTEX|EMIT_VERTEX|END_PROGRAM|EXPORT|EXPORT_DONE|EXP_IEEE|FETCH|FETCH4|FLOOR|FLT32_TO_FLT64|FLT64_TO_FLT32|FLT_TO_INT|FLT_TO_UINT|FRACT|FRACT_64|FREXP_64|GET_GRADIENTS_H|GET_GRADIENTS_V|GET_LERP|GET_LOD|GET_NUMBER_OF_SAMPLES|GET_TEXTURE_RESINFO|GLOBAL_DS_READ|GLOBAL_DS_WRITE|INT_TO_FLT|JUMP|KEEP_GRADIENTS|KILL|KILLE|KILLE_INT|KILLGE|KILLGE_INT|KILLGE_UINT|KILLGT|KILLGT_INT|KILLGT_UINT|KILLNE|KILLNE_INT|LD|LDEXP_64|LOCAL_DS_READ|LOCAL_DS_WRITE|LOG_CLAMPED|LOG_IEEE|LOOP_BREAK|LOOP_CONTINUE|LOOP_END|LOOP_START|LOOP_START_DX10|LOOP_START_NO_AL|LSHL_INT|LSHR_INT|MAX|MAX4|MAX_DX10|MAX_INT|MAX_UINT|MEM_EXPORT|MEM_REDUCTION|MEM_RING|MEM_SCRATCH|MEM_STREAM0|MEM_STREAM1|MEM_STREAM2|MEM_STREAM3|MIN|MIN_DX10|MIN_INT|MIN_UINT|MOV|MOVA|MOVA_FLOOR|MOVA_GPR_INT|MOVA_INT|MUL|MULADD|MULADD_64|MULADD_64_D2|MULADD_64_M2|MULADD_64_M4|MULADD_D2|MULADD_IEEE|MULADD_IEEE_D2|MULADD_IEEE_M2|MULADD_IEEE_M4|MULADD_M2|MULADD_M4|MULHI_INT|MULHI_UINT|MULLO_INT|MULLO_UINT|MUL_64|MUL_IEEE|MUL_LIT|MUL_LIT_D2|MUL_LIT_M2|MUL_LIT_M4|NOP|NOT_INT|OR_INT|PASS|POP|POP_JUMP|POP_PUSH|POP_PUSH_ELSE|PRED_SETE|PRED_SETE_64|PRED_SETE_INT|PRED_SETE_PUSH|PRED_SETE_PUSH_INT|PRED_SETGE|PRED_SETGE_64|PRED_SETGE_INT|PRED_SETGE_PUSH|PRED_SETGE_PUSH_INT|PRED_SETGE_UINT|PRED_SETGT|PRED_SETGT_64|PRED_SETGT_INT|PRED_SETGT_PUSH|PRED_SETGT_PUSH_INT|PRED_SETGT_UINT|PRED_SETLE_PUSH_INT|PRED_SETLT_PUSH_INT|PRED_SETNE|PRED_SETNE_INT|PRED_SETNE_PUSH|PRED_SETNE_PUSH_INT|PRED_SET_CLR|PRED_SET_INV|PRED_SET_POP|PRED_SET_RESTORE|PUSH|PUSH_ELSE|RD_REDUC|RD_SCATTER|RD_SCRATCH|RECIPSQRT_CLAMPED|RECIPSQRT_FF|RECIPSQRT_IEEE|RECIP_CLAMPED|RECIP_FF|RECIP_IEEE|RECIP_INT|RECIP_UINT|RETURN|RNDNE|SAMPLE|SAMPLE_C|SAMPLE_C_G|SAMPLE_C_G_L|SAMPLE_C_G_LB|SAMPLE_C_G_LZ|SAMPLE_C_L|SAMPLE_C_LB|SAMPLE_C_LZ|SAMPLE_G|SAMPLE_G_L|SAMPLE_G_LB|SAMPLE_G_LZ|SAMPLE_L|SAMPLE_LB|SAMPLE_LZ|SEMANTIC|SETE|SETE_DX10|SETE_INT|SETGE|SETGE_DX10|SETGE_INT|SETGE_UINT|SETGT|SETGT_DX10|SETGT_INT|SETGT_UINT|SETNE|SETNE_DX10|SETNE_INT|SET_CUBEMAP_INDEX|SET_GRADIENTS_H|SET_GRADIENTS_V|SIN|SQRT_IEEE|SUB_INT|TEX|TEX_ACK|TRUNC|UINT_TO_FLT|VTX|VTX_ACK|VTX_TC|VTX_TC_ACK|WAIT_ACK|XOR_INT)>'
syntax match reconvergeSpace '\v<(PIXEL|POS|PARAM|READ|WRITE|READ_IND|WRITE_IND|DWORD_PTR|VEC_PTR)\ze\['
syntax match reconvergeRegister '\v<(R|T|KC|CB|PV|PS|S)[0-9]+>'
syntax match reconvergeRegister '\v<[tsbi][0-9]+>'
syntax match reconvergeRegister '\v<(PV|PS|AR|aL|GLOBAL_AR|GLOBAL)>'
syntax match reconvergeRegister '\v<(R|C|KC[01])\ze\['
syntax match reconvergeRegister '\v<_R[0-9]+>'
syntax match reconvergeSlot '\v<[xyzwt]:\ze\s'
syntax match reconvergeLabel '\v\@[A-Za-z_][A-Za-z0-9_.$]*'
syntax match reconvergeLabel '\v^\s*\@[A-Za-z_][A-Za-z0-9_.$]*:\ze(\s|$)'
syntax match reconvergeArgument '\v\\([A-Za-z_][A-Za-z0-9_]*|\@)'
syntax match reconvergeDirective '\v^\s*\.[A-Za-z_][A-Za-z0-9_]*'
syntax match reconvergeString '\v"(\\.|[^"\\])*"'
syntax match reconvergeComment '\v\/\*[^*]*\*\/'
syntax match reconvergeComment '\v(;|\/\/).*'
highlight default link reconvergeComment Comment
highlight default link reconvergeString String
highlight default link reconvergeDirective PreProc
highlight default link reconvergeArgument Special
highlight default link reconvergeRegister Identifier
highlight default link reconvergeBuiltin Constant
highlight default link reconvergeSpace Structure
highlight default link reconvergeCondition Conditional
highlight default link reconvergePrefix Statement
highlight default link reconvergeMnemonic Statement
highlight default link reconvergeType Type
highlight default link reconvergeModifier StorageClass
highlight default link reconvergeNumber Number
highlight default link reconvergeLabel Label
highlight default link reconvergeFlag Constant
highlight default link reconvergeSlot Special
let b:current_syntax = "reconverge-r700"
