" Written by editors/generator/generate.mjs; do not edit.
if exists("b:current_syntax")
  finish
endif
syntax case match
syntax match reconvergeFlag '\v<([A-Z][A-Z0-9_]+|[0-9]+_[A-Z0-9_]+)>'
syntax match reconvergeNumber '\v#?-?<(0x[0-9a-fA-F]+|0b[01]+|[0-9]+(\.[0-9]*)?([eE][-+]?[0-9]+)?f?)>'
syntax match reconvergeModifier '\v<(alu|dx|dy|merged|off|pop|simple|srcp|swz)>'
syntax match reconvergeMnemonic '\v<(ADD|ALU|CMP|CND|COS|D2A|DP|DP3|DP4|DXDY|EX2|FC|FRC|GEZ|LD|LN2|LOD|LODBIAS|LTZ|MACRO_OP_2CLK_M2X_ADD|MACRO_OP_2CLK_MADD|MAD|MATH_NO_OP|MAX|MDH|MDV|ME_COS|ME_EXP_BASE2_DX|ME_EXP_BASE2_FULL_DX|ME_EXP_BASEE_FF|ME_LIGHT_COEFF_DX|ME_LOG_BASE2_DX|ME_LOG_BASE2_FULL_DX|ME_LOG_BASE2_IEEE|ME_MULTIPLY|ME_POWER_FUNC_FF|ME_POWER_FUNC_FF_CLAMP_01|ME_POWER_FUNC_FF_CLAMP_B|ME_POWER_FUNC_FF_CLAMP_B1|ME_PRED_SET_CLR|ME_PRED_SET_EQ|ME_PRED_SET_GT|ME_PRED_SET_GTE|ME_PRED_SET_INV|ME_PRED_SET_NEQ|ME_PRED_SET_POP|ME_PRED_SET_RESTORE|ME_RECIP_DX|ME_RECIP_FF|ME_RECIP_IEEE|ME_RECIP_SQRT_DX|ME_RECIP_SQRT_FF|ME_RECIP_SQRT_IEEE|ME_SIN|MIN|MOV|MUL|NOP|OUT|PROJ|RCP|RSQ|SIN|SOP|SUB|TEX|TEXKILL|VECTOR_NO_OP|VE_ADD|VE_COND_MUX_EQ|VE_COND_MUX_GT|VE_COND_MUX_GTE|VE_COND_WRITE_EQ|VE_COND_WRITE_GT|VE_COND_WRITE_GTE|VE_COND_WRITE_NEQ|VE_DISTANCE_VECTOR|VE_DOT_PRODUCT|VE_FLT2FIX_DX|VE_FLT2FIX_DX_RND|VE_FRACTION|VE_MAXIMUM|VE_MINIMUM|VE_MULTIPLY|VE_MULTIPLYX2_ADD|VE_MULTIPLY_ADD|VE_MULTIPLY_CLAMP|VE_PRED_SET_EQ_PUSH|VE_PRED_SET_GTE_PUSH|VE_PRED_SET_GT_PUSH|VE_PRED_SET_NEQ_PUSH|VE_SET_EQUAL|VE_SET_GREATER_THAN|VE_SET_GREATER_THAN_EQUAL|VE_SET_LESS_THAN|VE_SET_NOT_EQUAL|break|breakrep|call|continue|else|endif|endloop|endrep|goto|if|loop|rep|return)>'
syntax match reconvergeRegister '\v<(alu_result|bool|const|int|out|pred|temp|tex|src0|src1|src2|srcp)>'
syntax match reconvergeRegister '\v<(at|ox|[aciot])[0-9]+>'
syntax match reconvergeRegister '\v<aL>'
syntax match reconvergeLabel '\v\@[A-Za-z_][A-Za-z0-9_.$]*'
syntax match reconvergeLabel '\v^\s*[A-Za-z_][A-Za-z0-9_.$]*:\ze(\s|$)'
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
let b:current_syntax = "reconverge-r500"
