//! Questions on which the manual, the working compilers and the other interpreters of this code disagree or are silent.
//! Each is a named rule, with the interpretation that this machine follows and the reason.
//!
//! The rules are listed, by their numbers D1 to D36, in docs/r700.md, section 11. The list also contains
//! interpretations that only concern the encoding or the assembler (D8, D9, D19, D26, D29), so that it is complete. A
//! run reports on which of the others it depended (`Outcome::fidelity`).
//!
//! Sources by short name: MAN is AMD's "R700-Family Instruction Set Architecture" guide (PDF pages); Mesa is the r600
//! driver of Mesa 22.3.6; LLVM is the R600 back end of LLVM 14; DECAF and CEMU interpret the same instruction set from
//! vendor-compiled programs; M2S models the next generation.

/// Strength of the evidence for an interpretation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weight {
    /// Two production compilers depend on it.
    Compilers,
    /// One source, or several that are not independent.
    OneSource,
    /// No source: the interpretation is a recommendation.
    Recommended,
}

/// Description of one rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RuleInfo {
    /// The rule.
    pub rule: Rule,
    /// Question that the sources leave open.
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
        /// A disagreement between sources, by its number.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[allow(non_camel_case_types)]
        pub enum Rule { $( #[doc = $reading] $name = $number ),* }

        /// Every rule, in the order of the numbers.
        pub const RULES: &[RuleInfo] = &[ $( RuleInfo {
            rule: Rule::$name, question: $question, reading: $reading, why: $why, weight: Weight::$weight,
        } ),* ];

        impl Rule {
            /// Returns the number, without its "D".
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
        "Mesa quotes the manual as `[line + loop_ctr]`; DECAF adds it to the constant; no compiler emits it today.";
    TYPE_2_AND_3_BY_FAMILY = 2, Compilers,
        "What are TYPE 2 and 3 of a memory export?",
        "READ and READ_IND on R600, WRITE_ACK and WRITE_IND_ACK on R700.",
        "Mesa uses both, keyed on the family.";
    POP_KEEPS_BREAKS = 3, Compilers,
        "Does a pop overwrite the states inactive-continue and inactive-break?",
        "It changes only lanes that are active or inactive-branch.",
        "MAN p. 49 says the active state is overwritten, but Mesa and LLVM put LOOP_BREAK between PUSH and POP, and a subentry holds one bit per lane.";
    DX10_LOOP_HAS_NO_COUNT = 4, OneSource,
        "Does LOOP_START_DX10 have a trip count?",
        "No. It ends only by breaks, or at a limit that the launch sets (`dx10_loop_limit`).",
        "Mesa's loops run past the 4095 that a loop constant could hold.";
    POP_ONLY_WHEN_JUMPING = 5, Compilers,
        "Do JUMP and ELSE pop POP_COUNT entries always, or only when they jump?",
        "Only when they jump.",
        "MAN p. 53 states the opposite, but only this balances `JUMP POP 1` followed by a POP at the target's end. POP_JUMP exists for the other order.";
    ALU_PUSH_BEFORE_ALWAYS_PUSHES = 6, Compilers,
        "Does a push without any active lane push?",
        "PUSH does not push, and jumps, as the manual says. ALU_PUSH_BEFORE pushes.",
        "ALU_PUSH_BEFORE has no address or POP_COUNT of its own and is followed by `JUMP POP 1`.";
    EXECUTE_MASK_FROM_THE_NEXT_GROUP = 7, Recommended,
        "When does an UPDATE_EXECUTE_MASK result take effect inside its clause?",
        "For the next group. In strict mode, a next group traps.",
        "No statement found; every known compiler ends the clause there.";
    CONSTANT_READ_PORTS = 8, Compilers,
        "How many constants may one group read on R700?",
        "Execution accepts any number. The assembler checks the limits.",
        "Mesa and LLVM keep to two component pairs; MAN p. 70 shows four addresses.";
    EVERGREEN_NUMBERS_ARE_RESERVED = 9, OneSource,
        "Are OP2 0x54 to 0x5c, OP3 4 to 7 and fetch numbers above 0x1f instructions?",
        "No.",
        "DECAF lists them; Mesa marks them absent before Evergreen.";
    FLT_TO_INT_SATURATES = 10, Recommended,
        "What do FLT_TO_INT and FLT_TO_UINT return for values that do not fit?",
        "The nearest value that fits, or 0 for NaN.",
        "The Direct3D 10 rule; no text for this chip.";
    R600_SIN_TAKES_RADIANS = 11, OneSource,
        "What is the unit of SIN and COS on R600?",
        "Radians in [-pi, pi]; R700 takes revolutions.",
        "Mesa scales to +-pi; LLVM's R600 path multiplies by half of that.";
    TRANSCENDENTALS_ARE_ROUNDED_ONCE = 12, Recommended,
        "Which bits do the transcendental instructions return?",
        "The result is computed in double precision, rounded once, and marked approximate.",
        "The tables of the hardware are not published.";
    PRED_SET_WRITES_ZERO_FOR_TRUE = 13, OneSource,
        "What does PRED_SET* write to its destination?",
        "0.0 for execute, 1.0 for skip.",
        "M2S; DECAF has the opposite, but compilers clear WRITE_MASK.";
    DOUBLES_TAKE_THE_HIGH_HALF_FIRST = 14, Compilers,
        "Which half of a double is the source of the lower slot?",
        "The high half; results come out low half first.",
        "Mesa's order passed conformance tests on hardware; M2S has the other.";
    LDEXP_64_TAKES_THE_DOUBLE_FIRST = 15, OneSource,
        "Which source of LDEXP_64 is the double?",
        "src0, with a switch for the manual's src1.",
        "Mesa; MAN p. 175 has the opposite order.";
    CUBE_SC_SIGN = 16, OneSource,
        "Which sign does sc have on the +-X faces of CUBE?",
        "-Z on +X, +Z on -X.",
        "The mapping of Direct3D and OpenGL, and of later chips; DECAF has sign(X)*Z.";
    LOD_BIAS_IN_EIGHTHS = 17, OneSource,
        "Where is the binary point of LOD_BIAS in a texture fetch?",
        "The field counts in steps of 1/8.",
        "DECAF.";
    ARRAY_SIZE_IS_THE_LAST_ELEMENT = 18, OneSource,
        "Is ARRAY_SIZE a size or a size minus one?",
        "It is the highest element that may be accessed, relative to ARRAY_BASE.",
        "Mesa stores size - 1; the formula of MAN p. 45 uses it as a size.";
    DATA_SHARE_WORDS_ARE_OURS = 19, Recommended,
        "Where are the fields of the local data share instructions?",
        "This project defines its own layout.",
        "Only MEM_INST, MEM_OP and the word of MUX_CNTL are documented.";
    PUSH_ELSE_INVERTS = 20, Recommended,
        "What exactly do PUSH_ELSE and POP_PUSH_ELSE do?",
        "They always push, then keep the lanes that fail the test. They jump if no lane is left.",
        "Only one-line descriptions are known.";
    WHOLE_QUAD_REVIVES_BRANCHES_ONLY = 21, Recommended,
        "Which inactive lanes can WHOLE_QUAD_MODE activate?",
        "Those in inactive-branch.",
        "A lane that left the loop must not run in it again.";
    PREDICATE_STARTS_TRUE = 22, OneSource,
        "What is the predicate at the start of a clause?",
        "1 for every lane.",
        "M2S initializes it from the active mask. LLVM recomputes it in each clause.";
    MUL_LIT_TESTS_SRC1 = 23, OneSource,
        "Which operand does MUL_LIT test for -FLT_MAX, -infinity and NaN?",
        "src1.",
        "The vendor's text; Mesa swaps src0 and src1.";
    SHIFTS_USE_FIVE_BITS = 24, Recommended,
        "What does a shift by 32 or more do?",
        "The low five bits of the count are used.",
        "Undocumented.";
    BAD_INDEX_READS_R0 = 25, Recommended,
        "What does a register index outside the allocation do?",
        "A read returns R0 and a write is dropped. Strict mode traps.",
        "The manual refers to a page that says so.";
    MUL_LIT_IS_TRANS_ONLY = 26, OneSource,
        "Which slots take MUL_LIT_M2, _M4 and _D2?",
        "Only the trans slot.",
        "DECAF; Mesa's table says any.";
    SUMS_GO_LEFT_TO_RIGHT = 27, Recommended,
        "In which order does DOT4 add, and does MULADD_64 round its product?",
        "((x + y) + z) + w with every step rounded; MULADD_64 rounds once, with a switch.",
        "Undocumented.";
    GRADIENTS_ARE_COARSE = 28, Recommended,
        "Are gradients computed once per quad, or for each row and column?",
        "Once per quad: lane 1 - lane 0, lane 2 - lane 0.",
        "Undocumented.";
    MOVA_GPR_INT_IS_EARLY_R600 = 29, OneSource,
        "Does R700 have MOVA_GPR_INT, and what does it write on R600?",
        "No; on early R600 chips it writes aL and, for each lane, AR.",
        "A register header and DECAF name it. Mesa uses it only on R600. For RV610, Mesa 22.3 indexes by AR.x after it, without a MOVA; older versions index by aL.";
    KILL_JUMPS_WHEN_NONE_IS_VALID = 30, OneSource,
        "When does the control-flow KILL jump?",
        "When the wavefront has no valid lane left.",
        "Secondary description only.";
    INDEXED_WRITES_ARE_SEEN_IN_THE_GROUP = 31, OneSource,
        "Does a group see the indexed writes of its own instructions?",
        "The instructions after the write see it. All other writes are visible only to the next group.",
        "In the manual, every read of a group precedes every write, without an exception. LLVM packs an indexed write and a later plain read of the same array into one group; with any other rule, 21 of 631 such programs do not compute what their source states. No program of Mesa distinguishes the two interpretations.";
    GLOBAL_REGISTERS_ARE_COLUMNS = 32, Recommended,
        "What are the registers that INDEX_MODE GLOBAL and GLOBAL_AR_X reach?",
        "One file for all wavefronts, with a column for each lane position. Only indexed operands access it. Without the file, or outside it, the rule for bad indices (D25) applies.",
        "MAN p. 33 says only that global registers are shared by the wavefronts of a SIMD and lie before the clause temporaries.";
    KEEP_GRADIENTS_TAKES_THE_QUADS = 33, Recommended,
        "Which gradients does KEEP_GRADIENTS keep?",
        "The differences of its source vector within the quad. Each SAMPLE_*_G of the clause uses them as if SET_GRADIENTS_H and _V had loaded them.",
        "Opcode tables give it one source and no destination. No other source describes it.";
    GET_LERP_GIVES_FOUR_WEIGHTS = 34, Recommended,
        "In which order does GET_LERP return the filter's weights?",
        "Along x, y and z, then between the two levels. Each weight is the share of the upper neighbour.",
        "Only `filter weights` is known.";
    CUBEMAP_INDEX_IS_THE_ELEMENT = 35, Recommended,
        "Which operand of SET_CUBEMAP_INDEX is the index, and how long is it valid?",
        "The index is x of its source, as a float. The later cube fetches of the same clause use it instead of the element in the face number.",
        "Opcode tables give it one source and no destination. Gradients are also valid only within their clause.";
    MAX_DX10_GIVES_THE_NUMBER = 36, OneSource,
        "What do MAX_DX10 and MIN_DX10 return if one operand is a NaN?",
        "The other operand, in both orders.",
        "MAN names the Direct3D 10 rule. An RV770 (Mesa 22.3.6, r600/ci/r600-rv770-fails.txt) passes piglit's isinf-and-isnan, which requires the number from min(2, NaN) and max(2, NaN), and range_analysis_fmax_of_nan and _fmin_of_nan, which require it from max(NaN, -42) and min(NaN, 42). It fails fs-, vs-nan-builtin-min and -max. No rule about the order of operands explains these failures, because the tests also need a product and a sum that overflow, both to infinity.";
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
