" Written by editors/generator/generate.mjs; do not edit.
if exists("b:current_syntax")
  finish
endif
syntax case match
syntax match reconvergeNumber '\v#?-?<(0x[0-9a-fA-F]+|0b[01]+|[0-9]+(\.[0-9]*)?([eE][-+]?[0-9]+)?f?)>'
syntax match reconvergeModifier '\v<(abs|all|any|barrier|cent|count|cube|dec|deriv|dx|dy|event|flat|half|high|inc|l0|l01|l012|l013|l02|l023|l03|l1|l12|l123|l13|l2|l23|l3|lim|live|lnone|lock|neg|not|of|offset|rm|rmi|rn|rni|rp|rpi|rz|rzi|sat|sfu|shift|texel|wait|warps)>'
syntax match reconvergeType '\v<(b128|b16|b32|b64|b8|f16|f32|f64|s16|s24|s32|s64|s8|u16|u24|u24\.1|u24\.2|u24\.3|u24\.4|u24\.5|u24\.6|u24\.7|u32|u64|u8)>'
syntax match reconvergeMnemonic '\v<(add|addc|and|bar|bra|break|breakaddr|brkpt|call|cas|cos|cvt|discard|emit|ex2|exch|fma|interp|joinat|ld|lg2|max|min|mov|mov2|mul|nop|or|pmevent|preex2|preret|presin|quadon|quadop|quadpop|rcp|red|restart|ret|rsqrt|sad|set|shl|shr|sin|slct|st|sub|subr|texauto|texbias|texcsaa|texfetch|texgather|texlod|texprep|texquerylod|texsize|trap|vote|xor)>'
syntax match reconvergePrefix '\v<(exit|join|short)>'
syntax match reconvergeCondition '\v\((a|always|c|cc20|cc21|cc22|cc23|cc24|cc25|cc26|cc27|e|eu|g|ge|geu|gu|l|le|leu|lg|lge|lgu|lu|na|nc|never|no|ns|o|s|u)>\ze(\s+\$c|\))'
syntax match reconvergeSpace '\v<(a|c[0-9]+|g[0-9]+|l|o|p|s|v)\ze\['
syntax match reconvergeBuiltin '\v<(threadIdx|blockIdx|blockDim|gridDim)\.[xyz]>'
syntax match reconvergeRegister '\v(\$a[0-9]+|\$c[0-9]+|\$clock|\$physid|\$pm0|\$pm1|\$pm2|\$pm3|\$r[0-9]+|\$r[0-9]+d|\$r[0-9]+h|\$r[0-9]+l|\$r[0-9]+q|\$s[0-9]+|\$sampleid|\$sr10|\$sr11|\$sr12|\$sr13|\$sr14|\$sr15|\$sr2|\$sr9|\$t[0-9]+|\$vstride)>'
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
let b:current_syntax = "reconverge-tesla"
