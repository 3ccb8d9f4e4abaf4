//! Questions that the manual does not answer, or on which the manual, working compilers and other interpreters of this
//! machine code disagree. For each question, this module has a named rule. The rule states the interpretation that this
//! machine follows, and the reason for the interpretation.
//!
//! docs/r700.md, section 11, lists the rules by their numbers D1 to D36. The list is complete: it also contains
//! interpretations that concern only the encoding or the assembler (D8, D9, D19, D26, D29). For all other rules, the
//! outcome of a run states whether the result depended on the rule (`Outcome::fidelity`).
//!
//! Short names of sources: MAN is AMD's "R700-Family Instruction Set Architecture" guide (PDF pages). Mesa is the r600
//! driver of Mesa 22.3.6. LLVM is the R600 back end of LLVM 14. DECAF and CEMU interpret vendor-compiled programs of
//! the same instruction set. M2S models the next generation.

/// Strength of the evidence for an interpretation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weight {
    /// Two production compilers depend on the interpretation.
    Compilers,
    /// Only one source states the interpretation. Sources that depend on each other count as one source.
    OneSource,
    /// No source states the interpretation. The interpretation is a recommendation.
    Recommended,
}

/// Description of one rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RuleInfo {
    /// The rule.
    pub rule: Rule,
    /// Question on which the sources disagree or are silent.
    pub question: &'static str,
    /// Behaviour of this machine.
    pub reading: &'static str,
    /// Reason for the interpretation.
    pub why: &'static str,
    /// Strength of the evidence.
    pub weight: Weight,
}

macro_rules! rules {
    ($( $name:ident = $number:literal, $weight:ident, $question:literal, $reading:literal, $why:literal; )*) => {
        /// A rule about a disagreement between sources. The number of the rule identifies the rule.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[allow(non_camel_case_types)]
        pub enum Rule { $( #[doc = $reading] $name = $number ),* }

        /// Every rule, in the order of the rules' numbers.
        pub const RULES: &[RuleInfo] = &[ $( RuleInfo {
            rule: Rule::$name, question: $question, reading: $reading, why: $why, weight: Weight::$weight,
        } ),* ];

        impl Rule {
            /// Returns the number of the rule without the letter "D".
            pub const fn number(self) -> u8 { self as u8 }

            /// Returns the rule's name in this crate.
            pub const fn name(self) -> &'static str {
                match self { $( Rule::$name => stringify!($name) ),* }
            }
        }
    };
}

#[rustfmt::skip]
rules! {
    LOCK_LOOP_INDEX_COUNTS_LINES = 1, OneSource,
        "Does LOCK_LOOP_INDEX add aL to the line or to the constant number?",
        "aL is added to the line.",
        "Mesa quotes the manual as `[line + loop_ctr]`. DECAF adds aL to the constant number. No current compiler emits this mode.";
    TYPE_2_AND_3_BY_FAMILY = 2, Compilers,
        "What are TYPE 2 and 3 of a memory export?",
        "READ and READ_IND on R600, WRITE_ACK and WRITE_IND_ACK on R700.",
        "Mesa uses the first pair on R600 and the second pair on R700.";
    POP_KEEPS_BREAKS = 3, Compilers,
        "Does a pop overwrite the states inactive-continue and inactive-break?",
        "A pop changes only lanes that are active or inactive-branch.",
        "MAN p. 49 says that a pop overwrites the active state. However, Mesa and LLVM put LOOP_BREAK between PUSH and POP. Also, a subentry holds only one bit per lane.";
    DX10_LOOP_HAS_NO_COUNT = 4, OneSource,
        "Does LOOP_START_DX10 have a trip count?",
        "No. The loop ends only by breaks, or at a limit that the launch sets (`dx10_loop_limit`).",
        "Mesa emits loops with more iterations than 4095, the maximum of a loop constant.";
    POP_ONLY_WHEN_JUMPING = 5, Compilers,
        "Do JUMP and ELSE pop POP_COUNT entries always, or only when they jump?",
        "JUMP and ELSE pop entries only when they jump.",
        "MAN p. 53 states the opposite. However, compilers emit `JUMP POP 1` with a POP at the end of the skipped code, and only this rule balances the stack. POP_JUMP exists for the other order.";
    ALU_PUSH_BEFORE_ALWAYS_PUSHES = 6, Compilers,
        "Do instructions push an entry if no lane is active?",
        "According to the manual, PUSH jumps and does not push an entry. ALU_PUSH_BEFORE pushes an entry.",
        "ALU_PUSH_BEFORE has no address or POP_COUNT of its own and is followed by `JUMP POP 1`.";
    EXECUTE_MASK_FROM_THE_NEXT_GROUP = 7, Recommended,
        "When does an UPDATE_EXECUTE_MASK result take effect inside its clause?",
        "It takes effect for the next group. In strict mode, a further group in the clause traps.",
        "No source states this. Every known compiler ends the clause after the group.";
    CONSTANT_READ_PORTS = 8, Compilers,
        "How many constants may one group read on R700?",
        "Execution accepts any number. The assembler checks the limits.",
        "Mesa and LLVM emit up to two component pairs. MAN p. 70 shows four addresses.";
    EVERGREEN_NUMBERS_ARE_RESERVED = 9, OneSource,
        "Are OP2 0x54 to 0x5c, OP3 4 to 7 and fetch numbers above 0x1f instructions?",
        "No.",
        "DECAF lists them. Mesa marks them as absent before Evergreen.";
    FLT_TO_INT_SATURATES = 10, Recommended,
        "What do FLT_TO_INT and FLT_TO_UINT return for values that do not fit?",
        "The instructions return the nearest value that fits, or 0 for NaN.",
        "This is the Direct3D 10 rule. No document covers this chip.";
    R600_SIN_TAKES_RADIANS = 11, OneSource,
        "What is the unit of SIN and COS on R600?",
        "The unit is a radian, in [-pi, pi]. On R700, the unit is a revolution.",
        "Mesa scales to +-pi. On R600, LLVM scales to half of this range.";
    TRANSCENDENTALS_ARE_ROUNDED_ONCE = 12, Recommended,
        "Which bits do the transcendental instructions return?",
        "The result is computed in double precision, rounded once, and marked approximate.",
        "The tables of the hardware are not published.";
    PRED_SET_WRITES_ZERO_FOR_TRUE = 13, OneSource,
        "What does PRED_SET* write to its destination?",
        "PRED_SET* writes 0.0 if the lane executes, and 1.0 if the lane is skipped.",
        "M2S writes these values. DECAF writes the opposite values. Compilers clear WRITE_MASK, so their programs do not show which values are right.";
    DOUBLES_TAKE_THE_HIGH_HALF_FIRST = 14, Compilers,
        "Which half of a double is the source of the lower slot?",
        "The high half. The lower slot of a result receives the low half.",
        "Mesa's order passed conformance tests on hardware. M2S has the opposite order.";
    LDEXP_64_TAKES_THE_DOUBLE_FIRST = 15, OneSource,
        "Which source of LDEXP_64 is the double?",
        "src0. A setting of the launch selects src1, as in the manual.",
        "Mesa uses this order. MAN p. 175 has the opposite order.";
    CUBE_SC_SIGN = 16, OneSource,
        "Which sign does sc have on the +-X faces of CUBE?",
        "sc is -Z on the +X face, and +Z on the -X face.",
        "This is the mapping of Direct3D, OpenGL and later chips. DECAF has sign(X)*Z.";
    LOD_BIAS_IN_EIGHTHS = 17, OneSource,
        "Where is the binary point of LOD_BIAS in a texture fetch?",
        "The field is a number of eighths.",
        "DECAF.";
    ARRAY_SIZE_IS_THE_LAST_ELEMENT = 18, OneSource,
        "Is ARRAY_SIZE a size or a size minus one?",
        "ARRAY_SIZE is the highest element that may be accessed, relative to ARRAY_BASE.",
        "Mesa stores the size minus one. The formula of MAN p. 45 uses the field as a size.";
    DATA_SHARE_WORDS_ARE_OURS = 19, Recommended,
        "Where are the fields of the local data share instructions?",
        "This project defines its own layout.",
        "Only MEM_INST, MEM_OP and the word of MUX_CNTL are documented.";
    PUSH_ELSE_INVERTS = 20, Recommended,
        "What exactly do PUSH_ELSE and POP_PUSH_ELSE do?",
        "Both instructions always push. Then only the lanes that fail the test stay active. If no lane stays active, the instruction jumps.",
        "Only one-line descriptions are known.";
    WHOLE_QUAD_REVIVES_BRANCHES_ONLY = 21, Recommended,
        "Which inactive lanes can WHOLE_QUAD_MODE activate?",
        "It activates only lanes in inactive-branch.",
        "A lane that left the loop must not run in the loop again.";
    PREDICATE_STARTS_TRUE = 22, OneSource,
        "What is the predicate at the start of a clause?",
        "The predicate is 1 for every lane.",
        "M2S initializes it from the active mask. LLVM recomputes it in each clause.";
    MUL_LIT_TESTS_SRC1 = 23, OneSource,
        "Which operand does MUL_LIT test for -FLT_MAX, -infinity and NaN?",
        "MUL_LIT tests src1.",
        "The vendor's text states this. Mesa swaps src0 and src1.";
    SHIFTS_USE_FIVE_BITS = 24, Recommended,
        "What does a shift by 32 or more do?",
        "A shift uses only the low five bits of the count.",
        "Undocumented.";
    BAD_INDEX_READS_R0 = 25, Recommended,
        "What does a register index outside the allocation do?",
        "A read returns R0 and a write is dropped. Strict mode traps.",
        "The manual refers to a page that describes these reads and writes.";
    MUL_LIT_IS_TRANS_ONLY = 26, OneSource,
        "Which slots take MUL_LIT_M2, _M4 and _D2?",
        "Only slot t takes them.",
        "DECAF allows only slot t. Mesa's table allows any slot.";
    SUMS_GO_LEFT_TO_RIGHT = 27, Recommended,
        "In which order does DOT4 add, and does MULADD_64 round its product?",
        "DOT4 computes ((x + y) + z) + w and rounds every sum. MULADD_64 does not round its product, unless a setting of the launch requires it.",
        "Undocumented.";
    GRADIENTS_ARE_COARSE = 28, Recommended,
        "Are gradients computed once per quad, or for each row and column?",
        "They are computed once per quad: lane 1 - lane 0, and lane 2 - lane 0.",
        "Undocumented.";
    MOVA_GPR_INT_IS_EARLY_R600 = 29, OneSource,
        "Does R700 have MOVA_GPR_INT, and what does it write on R600?",
        "No. On early R600 chips, it writes aL and, for each lane, AR.",
        "A register header and DECAF name the instruction. Mesa uses it only on R600. For RV610, Mesa 22.3 indexes by AR.x after a MOVA_GPR_INT, without a MOVA. Older versions index by aL.";
    KILL_JUMPS_WHEN_NONE_IS_VALID = 30, OneSource,
        "When does the control-flow KILL jump?",
        "KILL jumps when no lane of the wavefront is valid.",
        "Only a secondary source describes this.";
    INDEXED_WRITES_ARE_SEEN_IN_THE_GROUP = 31, OneSource,
        "Does a group see the indexed writes of its own instructions?",
        "Instructions after an indexed write read the new value. All other writes are visible only to the next group.",
        "In the manual, every read of a group precedes every write, without an exception. LLVM packs an indexed write and a later direct read of the same array into one group. With any other rule, 21 of 631 such programs compute results that differ from those of their source. No program of Mesa distinguishes the two interpretations.";
    GLOBAL_REGISTERS_ARE_COLUMNS = 32, Recommended,
        "What are the registers that INDEX_MODE GLOBAL and GLOBAL_AR_X reach?",
        "All wavefronts share one file of registers, which has a column for each lane position. Only indexed operands access the file. If the launch has no such file or the register is outside the file, the rule for bad indices (D25) applies.",
        "MAN p. 33 says only that global registers are shared by the wavefronts of a SIMD and lie before the clause temporaries.";
    KEEP_GRADIENTS_TAKES_THE_QUADS = 33, Recommended,
        "Which gradients does KEEP_GRADIENTS keep?",
        "KEEP_GRADIENTS keeps the differences of its source vector within the quad. Each SAMPLE_*_G of the clause uses these differences as if SET_GRADIENTS_H and _V had loaded them.",
        "Opcode tables show one source operand and no destination. No other document describes the instruction.";
    GET_LERP_GIVES_FOUR_WEIGHTS = 34, Recommended,
        "In which order does GET_LERP return the filter's weights?",
        "The weights along x, y and z come first, then the weight between the two levels. Each weight is the share of the upper neighbour.",
        "Only the description `filter weights` is known.";
    CUBEMAP_INDEX_IS_THE_ELEMENT = 35, Recommended,
        "Which operand of SET_CUBEMAP_INDEX is the index, and how long is it valid?",
        "The index is x of its source, as a float. Later cube fetches of the same clause use this index instead of the element in the face number.",
        "Opcode tables show one source operand and no destination. Gradients are also valid only within their clause.";
    MAX_DX10_GIVES_THE_NUMBER = 36, OneSource,
        "What do MAX_DX10 and MIN_DX10 return if one operand is a NaN?",
        "MAX_DX10 and MIN_DX10 return the operand that is not the NaN.",
        "MAN names the Direct3D 10 rule. An RV770 (Mesa 22.3.6, r600/ci/r600-rv770-fails.txt) passes the following tests of piglit. isinf-and-isnan requires the number from min(2, NaN) and max(2, NaN). range_analysis_fmax_of_nan and _fmin_of_nan require the number from max(NaN, -42) and min(NaN, 42). The RV770 fails fs-, vs-nan-builtin-min and -max. No rule about the order of operands explains these failures, because the tests also need a product and a sum that overflow, both to infinity.";
}

impl Rule {
    /// Returns the rule with its interpretation and reasons.
    pub fn info(self) -> &'static RuleInfo {
        &RULES[self as usize - 1]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_whole_and_in_order() {
        for (index, info) in RULES.iter().enumerate() {
            assert_eq!(usize::from(info.rule.number()), index + 1, "{}", info.rule.name());
            assert_eq!(info.rule.info(), info);
        }
        assert_eq!(RULES.len(), 36);
    }
}
