;;; reconverge-mode.el --- Shader machine code of R500, R700 and Tesla -*- lexical-binding: t -*-

;; Version: 0.1.0
;; Package-Requires: ((emacs "28.1"))
;; Keywords: languages
;; SPDX-License-Identifier: MIT OR Apache-2.0

;;; Commentary:

;; `reconverge-mode' highlights the texts that `reconverge asm' reads.  Eglot
;; starts `reconverge lsp' for it.  A file `.s' opens in this mode if a `.isa' or
;; `.chip' line states one of the three machines.

;;; Code:

;; Written by editors/generator/generate.mjs from here on; do not edit.
(defconst reconverge--texts
  '(
    (r500
     (chips "r520" "r500" "rv515" "rv530" "r580" "rv560" "rv570")
     (mnemonics "ADD" "ALU" "CMP" "CND" "COS" "D2A" "DP" "DP3" "DP4" "DXDY" "EX2" "FC" "FRC" "GEZ" "LD" "LN2" "LOD" "LODBIAS" "LTZ" "MACRO_OP_2CLK_M2X_ADD" "MACRO_OP_2CLK_MADD" "MAD" "MATH_NO_OP" "MAX" "MDH" "MDV" "ME_COS" "ME_EXP_BASE2_DX" "ME_EXP_BASE2_FULL_DX" "ME_EXP_BASEE_FF" "ME_LIGHT_COEFF_DX" "ME_LOG_BASE2_DX" "ME_LOG_BASE2_FULL_DX" "ME_LOG_BASE2_IEEE" "ME_MULTIPLY" "ME_POWER_FUNC_FF" "ME_POWER_FUNC_FF_CLAMP_01" "ME_POWER_FUNC_FF_CLAMP_B" "ME_POWER_FUNC_FF_CLAMP_B1" "ME_PRED_SET_CLR" "ME_PRED_SET_EQ" "ME_PRED_SET_GT" "ME_PRED_SET_GTE" "ME_PRED_SET_INV" "ME_PRED_SET_NEQ" "ME_PRED_SET_POP" "ME_PRED_SET_RESTORE" "ME_RECIP_DX" "ME_RECIP_FF" "ME_RECIP_IEEE" "ME_RECIP_SQRT_DX" "ME_RECIP_SQRT_FF" "ME_RECIP_SQRT_IEEE" "ME_SIN" "MIN" "MOV" "MUL" "NOP" "OUT" "PROJ" "RCP" "RSQ" "SIN" "SOP" "SUB" "TEX" "TEXKILL" "VECTOR_NO_OP" "VE_ADD" "VE_COND_MUX_EQ" "VE_COND_MUX_GT" "VE_COND_MUX_GTE" "VE_COND_WRITE_EQ" "VE_COND_WRITE_GT" "VE_COND_WRITE_GTE" "VE_COND_WRITE_NEQ" "VE_DISTANCE_VECTOR" "VE_DOT_PRODUCT" "VE_FLT2FIX_DX" "VE_FLT2FIX_DX_RND" "VE_FRACTION" "VE_MAXIMUM" "VE_MINIMUM" "VE_MULTIPLY" "VE_MULTIPLYX2_ADD" "VE_MULTIPLY_ADD" "VE_MULTIPLY_CLAMP" "VE_PRED_SET_EQ_PUSH" "VE_PRED_SET_GTE_PUSH" "VE_PRED_SET_GT_PUSH" "VE_PRED_SET_NEQ_PUSH" "VE_SET_EQUAL" "VE_SET_GREATER_THAN" "VE_SET_GREATER_THAN_EQUAL" "VE_SET_LESS_THAN" "VE_SET_NOT_EQUAL" "break" "breakrep" "call" "continue" "else" "endif" "endloop" "endrep" "goto" "if" "loop" "rep" "return")
     (types )
     (modifiers "alu" "dx" "dy" "merged" "off" "pop" "simple" "srcp" "swz")
     (register . "\\(?:\\_<\\(?:alu_result\\|bool\\|const\\|int\\|out\\|pred\\|temp\\|tex\\|src0\\|src1\\|src2\\|srcp\\)\\_>\\|\\_<\\(?:at\\|ox\\|[aciot]\\)[0-9]+\\_>\\|\\_<aL\\_>\\)")
     (label . "[A-Za-z_][A-Za-z0-9_.$]*:"))
    (r700
     (chips "rv770" "r700" "rv790" "latte" "rv740" "rv730" "rv710" "r600" "rv670" "rv630" "rv635" "rv610" "rv620" "rs780" "rs880")
     (mnemonics "ADD" "ADD_64" "ADD_INT" "ALU" "ALU_BREAK" "ALU_CONTINUE" "ALU_ELSE_AFTER" "ALU_POP2_AFTER" "ALU_POP_AFTER" "ALU_PUSH_BEFORE" "AND_INT" "ASHR_INT" "CALL" "CALL_FS" "CEIL" "CNDE" "CNDE_INT" "CNDGE" "CNDGE_INT" "CNDGT" "CNDGT_INT" "COS" "CUBE" "CUT_VERTEX" "DOT4" "DOT4_IEEE" "ELSE" "EMIT_CUT_VERTEX" "EMIT_VERTEX" "END_PROGRAM" "EXPORT" "EXPORT_DONE" "EXP_IEEE" "FETCH" "FETCH4" "FLOOR" "FLT32_TO_FLT64" "FLT64_TO_FLT32" "FLT_TO_INT" "FLT_TO_UINT" "FRACT" "FRACT_64" "FREXP_64" "GET_GRADIENTS_H" "GET_GRADIENTS_V" "GET_LERP" "GET_LOD" "GET_NUMBER_OF_SAMPLES" "GET_TEXTURE_RESINFO" "GLOBAL_DS_READ" "GLOBAL_DS_WRITE" "INT_TO_FLT" "JUMP" "KEEP_GRADIENTS" "KILL" "KILLE" "KILLE_INT" "KILLGE" "KILLGE_INT" "KILLGE_UINT" "KILLGT" "KILLGT_INT" "KILLGT_UINT" "KILLNE" "KILLNE_INT" "LD" "LDEXP_64" "LOCAL_DS_READ" "LOCAL_DS_WRITE" "LOG_CLAMPED" "LOG_IEEE" "LOOP_BREAK" "LOOP_CONTINUE" "LOOP_END" "LOOP_START" "LOOP_START_DX10" "LOOP_START_NO_AL" "LSHL_INT" "LSHR_INT" "MAX" "MAX4" "MAX_DX10" "MAX_INT" "MAX_UINT" "MEM_EXPORT" "MEM_REDUCTION" "MEM_RING" "MEM_SCRATCH" "MEM_STREAM0" "MEM_STREAM1" "MEM_STREAM2" "MEM_STREAM3" "MIN" "MIN_DX10" "MIN_INT" "MIN_UINT" "MOV" "MOVA" "MOVA_FLOOR" "MOVA_GPR_INT" "MOVA_INT" "MUL" "MULADD" "MULADD_64" "MULADD_64_D2" "MULADD_64_M2" "MULADD_64_M4" "MULADD_D2" "MULADD_IEEE" "MULADD_IEEE_D2" "MULADD_IEEE_M2" "MULADD_IEEE_M4" "MULADD_M2" "MULADD_M4" "MULHI_INT" "MULHI_UINT" "MULLO_INT" "MULLO_UINT" "MUL_64" "MUL_IEEE" "MUL_LIT" "MUL_LIT_D2" "MUL_LIT_M2" "MUL_LIT_M4" "NOP" "NOT_INT" "OR_INT" "PASS" "POP" "POP_JUMP" "POP_PUSH" "POP_PUSH_ELSE" "PRED_SETE" "PRED_SETE_64" "PRED_SETE_INT" "PRED_SETE_PUSH" "PRED_SETE_PUSH_INT" "PRED_SETGE" "PRED_SETGE_64" "PRED_SETGE_INT" "PRED_SETGE_PUSH" "PRED_SETGE_PUSH_INT" "PRED_SETGE_UINT" "PRED_SETGT" "PRED_SETGT_64" "PRED_SETGT_INT" "PRED_SETGT_PUSH" "PRED_SETGT_PUSH_INT" "PRED_SETGT_UINT" "PRED_SETLE_PUSH_INT" "PRED_SETLT_PUSH_INT" "PRED_SETNE" "PRED_SETNE_INT" "PRED_SETNE_PUSH" "PRED_SETNE_PUSH_INT" "PRED_SET_CLR" "PRED_SET_INV" "PRED_SET_POP" "PRED_SET_RESTORE" "PUSH" "PUSH_ELSE" "RD_REDUC" "RD_SCATTER" "RD_SCRATCH" "RECIPSQRT_CLAMPED" "RECIPSQRT_FF" "RECIPSQRT_IEEE" "RECIP_CLAMPED" "RECIP_FF" "RECIP_IEEE" "RECIP_INT" "RECIP_UINT" "RETURN" "RNDNE" "SAMPLE" "SAMPLE_C" "SAMPLE_C_G" "SAMPLE_C_G_L" "SAMPLE_C_G_LB" "SAMPLE_C_G_LZ" "SAMPLE_C_L" "SAMPLE_C_LB" "SAMPLE_C_LZ" "SAMPLE_G" "SAMPLE_G_L" "SAMPLE_G_LB" "SAMPLE_G_LZ" "SAMPLE_L" "SAMPLE_LB" "SAMPLE_LZ" "SEMANTIC" "SETE" "SETE_DX10" "SETE_INT" "SETGE" "SETGE_DX10" "SETGE_INT" "SETGE_UINT" "SETGT" "SETGT_DX10" "SETGT_INT" "SETGT_UINT" "SETNE" "SETNE_DX10" "SETNE_INT" "SET_CUBEMAP_INDEX" "SET_GRADIENTS_H" "SET_GRADIENTS_V" "SIN" "SQRT_IEEE" "SUB_INT" "TEX" "TEX_ACK" "TRUNC" "UINT_TO_FLT" "VTX" "VTX_ACK" "VTX_TC" "VTX_TC_ACK" "WAIT_ACK" "XOR_INT")
     (types )
     (modifiers )
     (register . "\\(?:\\_<\\(?:R\\|T\\|KC\\|CB\\|PV\\|PS\\|S\\)[0-9]+\\_>\\|\\_<[tsbi][0-9]+\\_>\\|\\_<\\(?:PV\\|PS\\|AR\\|aL\\|GLOBAL_AR\\|GLOBAL\\)\\_>\\|\\_<\\(?:R\\|C\\|KC[01]\\)\\[\\|\\_<_R[0-9]+\\_>\\)")
     (space . "\\(?:\\_<\\(?:PIXEL\\|POS\\|PARAM\\|READ\\|WRITE\\|READ_IND\\|WRITE_IND\\|DWORD_PTR\\|VEC_PTR\\)\\[\\)")
     (label . "@[A-Za-z_][A-Za-z0-9_.$]*:"))
    (tesla
     (chips "g80" "sm_10" "nv50" "g84" "g86" "g92" "g94" "g96" "g98" "sm_11" "nv84" "nv86" "nv92" "nv94" "nv96" "nv98" "g200" "gt200" "sm_13" "nva0" "mcp77" "mcp79" "mcp7a" "nvaa" "nvac" "gt215" "gt212" "gt214" "gt216" "gt218" "mcp89" "sm_12" "nva3" "nva5" "nva8" "nvaf")
     (mnemonics "add" "addc" "and" "bar" "bra" "break" "breakaddr" "brkpt" "call" "cas" "cos" "cvt" "discard" "emit" "ex2" "exch" "fma" "interp" "joinat" "ld" "lg2" "max" "min" "mov" "mov2" "mul" "nop" "or" "pmevent" "preex2" "preret" "presin" "quadon" "quadop" "quadpop" "rcp" "red" "restart" "ret" "rsqrt" "sad" "set" "shl" "shr" "sin" "slct" "st" "sub" "subr" "texauto" "texbias" "texcsaa" "texfetch" "texgather" "texlod" "texprep" "texquerylod" "texsize" "trap" "vote" "xor" "exit" "join" "short")
     (types "b128" "b16" "b32" "b64" "b8" "f16" "f32" "f64" "s16" "s24" "s32" "s64" "s8" "u16" "u24" "u24.1" "u24.2" "u24.3" "u24.4" "u24.5" "u24.6" "u24.7" "u32" "u64" "u8")
     (modifiers "abs" "all" "any" "barrier" "cent" "count" "cube" "dec" "deriv" "dx" "dy" "event" "flat" "half" "high" "inc" "l0" "l01" "l012" "l013" "l02" "l023" "l03" "l1" "l12" "l123" "l13" "l2" "l23" "l3" "lim" "live" "lnone" "lock" "neg" "not" "of" "offset" "rm" "rmi" "rn" "rni" "rp" "rpi" "rz" "rzi" "sat" "sfu" "shift" "texel" "wait" "warps")
     (register . "\\(?:\\(?:\\$a[0-9]+\\|\\$c[0-9]+\\|\\$clock\\|\\$physid\\|\\$pm0\\|\\$pm1\\|\\$pm2\\|\\$pm3\\|\\$r[0-9]+\\|\\$r[0-9]+d\\|\\$r[0-9]+h\\|\\$r[0-9]+l\\|\\$r[0-9]+q\\|\\$s[0-9]+\\|\\$sampleid\\|\\$sr10\\|\\$sr11\\|\\$sr12\\|\\$sr13\\|\\$sr14\\|\\$sr15\\|\\$sr2\\|\\$sr9\\|\\$t[0-9]+\\|\\$vstride\\)\\_>\\|\\_<\\(?:threadIdx\\|blockIdx\\|blockDim\\|gridDim\\)\\.[xyz]\\_>\\)")
     (space . "\\(?:\\_<\\(?:a\\|c[0-9]+\\|g[0-9]+\\|l\\|o\\|p\\|s\\|v\\)\\[\\)")
     (condition . "(\\(?:a\\|always\\|c\\|cc20\\|cc21\\|cc22\\|cc23\\|cc24\\|cc25\\|cc26\\|cc27\\|e\\|eu\\|g\\|ge\\|geu\\|gu\\|l\\|le\\|leu\\|lg\\|lge\\|lgu\\|lu\\|na\\|nc\\|never\\|no\\|ns\\|o\\|s\\|u\\)\\_>")
     (label . "[A-Za-z_][A-Za-z0-9_.$]*:")))
  "Words and patterns of each machine.")
(defconst reconverge--shared
  '(
     (string . "\"\\(?:\\\\.\\|[^\"\\\\]\\)*\"")
     (number . "#?-?\\_<\\(?:0x[0-9a-fA-F]+\\|0b[01]+\\|[0-9]+\\(?:\\.[0-9]*\\)?\\(?:[eE][-+]?[0-9]+\\)?f?\\)\\_>")
     (jump . "@[A-Za-z_][A-Za-z0-9_.$]*")
     (argument . "\\\\\\(?:[A-Za-z_][A-Za-z0-9_]*\\|@\\)")
     (directive . "\\.[A-Za-z_][A-Za-z0-9_]*")
     (flag . "\\_<\\(?:[A-Z][A-Z0-9_]+\\|[0-9]+_[A-Z0-9_]+\\)\\_>"))
  "Patterns of all three texts.")
;; Written by editors/generator/generate.mjs up to here.

(defgroup reconverge nil
  "Shader machine code."
  :group 'languages)

(defcustom reconverge-command "reconverge"
  "The command of Reconverge."
  :type 'string
  :group 'reconverge)

(defvar-local reconverge-machine nil
  "The machine of the buffer: a symbol `r500', `r700' or `tesla', or nil.")

(defun reconverge--of-chip (chip)
  "Return the machine of CHIP, or nil."
  (car (seq-find (lambda (text) (member (downcase chip) (alist-get 'chips (cdr text))))
                 reconverge--texts)))

(defun reconverge-find-machine ()
  "Return the machine that the buffer states with `.isa' or `.chip', or nil.
A file name such as `x.tesla.s' decides where the text does not."
  (save-excursion
    (goto-char (point-min))
    (let ((case-fold-search nil) isa chip)
      (while (and (not isa) (re-search-forward "^[ \t]*\\.\\(isa\\|chip\\)[ \t]+\\([[:alnum:]_-]+\\)" nil t))
        (if (equal (match-string 1) "chip")
            (setq chip (or chip (reconverge--of-chip (match-string 2))))
          (setq isa (car (assq (intern (downcase (match-string 2))) reconverge--texts)))))
      (or isa chip
          (and buffer-file-name
               (string-match "\\.\\(r500\\|r700\\|tesla\\)\\.[a-z]+\\'" buffer-file-name)
               (intern (match-string 1 buffer-file-name)))))))

(defun reconverge--words (words)
  "Return a pattern that matches one of WORDS."
  (concat "\\_<" (regexp-opt words t) "\\_>"))

(defun reconverge--keywords (machine)
  "Return the rules of font lock for MACHINE; nil is a text of an unknown one."
  (let* ((text (cdr (assq machine reconverge--texts)))
         (known (lambda (name) (alist-get name text)))
         (shared (lambda (name) (alist-get name reconverge--shared)))
         (words (lambda (name face)
                  (when (funcall known name) `((,(reconverge--words (funcall known name)) . ',face)))))
         (matched (lambda (name face)
                    (when (funcall known name) `((,(funcall known name) . ',face))))))
    `((,(concat "^[ \t]*\\(" (funcall shared 'directive) "\\)") 1 'font-lock-preprocessor-face)
      ,@(when text `((,(concat "^[ \t]*\\(" (funcall known 'label) "\\)\\(?:[ \t]\\|$\\)") 1 'font-lock-function-name-face)))
      ("/\\*[^*]*\\*/" 0 'font-lock-comment-face t)
      (,(funcall shared 'argument) . 'font-lock-variable-name-face)
      ,@(funcall matched 'condition 'font-lock-builtin-face)
      ,@(funcall matched 'register 'font-lock-variable-name-face)
      ,@(funcall matched 'space 'font-lock-builtin-face)
      ,@(funcall words 'mnemonics 'font-lock-keyword-face)
      ,@(funcall words 'types 'font-lock-type-face)
      ,@(funcall words 'modifiers 'font-lock-builtin-face)
      (,(funcall shared 'number) . 'font-lock-constant-face)
      (,(funcall shared 'jump) . 'font-lock-function-name-face)
      (,(funcall shared 'flag) . 'font-lock-builtin-face))))

(defvar reconverge-mode-syntax-table
  (let ((table (make-syntax-table)))
    (modify-syntax-entry ?\; "<" table)
    (modify-syntax-entry ?\n ">" table)
    (modify-syntax-entry ?/ ". 12b" table)
    (modify-syntax-entry ?\" "\"" table)
    (modify-syntax-entry ?_ "_" table)
    (dolist (mark '(?$ ?. ?@ ?# ?| ?\\))
      (modify-syntax-entry mark "." table))
    table)
  "Syntax of the three texts.")

;;;###autoload
(define-derived-mode reconverge-mode prog-mode "Reconverge"
  "Major mode for shader machine code."
  (setq reconverge-machine (reconverge-find-machine)
        mode-name (if reconverge-machine (format "Reconverge/%s" reconverge-machine) "Reconverge"))
  (setq-local comment-start "; "
              comment-end ""
              comment-start-skip "\\(?:;+\\|//+\\)[ \t]*"
              font-lock-defaults (list (reconverge--keywords reconverge-machine) nil nil)))

(defun reconverge-maybe-mode ()
  "Start `reconverge-mode' if the buffer states a machine, else `asm-mode'."
  (if (reconverge-find-machine) (reconverge-mode) (asm-mode)))

;;;###autoload
(add-to-list 'auto-mode-alist '("\\.\\(?:s\\|asm\\)\\'" . reconverge-maybe-mode))
;;;###autoload
(add-to-list 'auto-mode-alist '("\\.\\(?:r500\\|r700\\|tesla\\)\\.s\\'" . reconverge-mode))

(defvar eglot-server-programs)
(with-eval-after-load 'eglot
  (add-to-list 'eglot-server-programs
               `(reconverge-mode . ,(lambda (&rest _) (list reconverge-command "lsp")))))

(defun reconverge-run (options)
  "Run the program of the buffer with OPTIONS of `reconverge run'."
  (interactive "sOptions of reconverge run: ")
  (compile (format "%s run %s %s" reconverge-command (shell-quote-argument buffer-file-name) options)))

(provide 'reconverge-mode)
;;; reconverge-mode.el ends here
