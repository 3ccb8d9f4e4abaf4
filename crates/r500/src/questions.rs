//! What the documents leave open: one named question each, with the reading that this machine follows.
//!
//! Numbers are those of docs/r500.md, section 10, which says where each reading is in the code; `tests/questions.rs` holds
//! that page equal to this list, and has a test that shows each reading. Q20, about executables, is in `container`.

/// One question, for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuestionInfo {
    /// The question.
    pub question: Question,
    /// What is open.
    pub open: &'static str,
    /// What this machine does.
    pub reading: &'static str,
}

macro_rules! questions {
    ($( $name:ident = $number:literal, $open:literal, $reading:literal; )*) => {
        /// An open question, by its number.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[allow(non_camel_case_types)]
        pub enum Question { $( #[doc = $reading] $name = $number ),* }

        /// Every question, in the order of the numbers.
        pub const QUESTIONS: &[QuestionInfo] =
            &[ $( QuestionInfo { question: Question::$name, open: $open, reading: $reading } ),* ];
    };
}

#[rustfmt::skip]
questions! {
    GROUP_WIDTH = 1, "lanes of a group, and their order",
        "16 (R520), 48 (R580); quads TL TR BL BR; any width 4 to 64 can be chosen";
    KILLED_LANES_ARE_UNCOVERED = 2, "is a killed lane uncovered",
        "yes; it continues as a helper";
    PAIR_ARRIVES_IN_TEMP_0 = 3, "where (i, j) arrives",
        "red and green of temporary 0";
    PREDICATES_GATE_EVERY_EFFECT = 4, "what predication gates",
        "every side effect; NONE is true whatever the inversion";
    WRITE_INACTIVE_IS_FOR_TEMPORARIES = 5, "what WRITE_INACTIVE reaches",
        "temporaries";
    RELATIVE_ADDRESSES_WRAP = 6, "relative address outside the file",
        "wraps; strict traps";
    FORWARDED_BEFORE_OMOD = 7, "what SOP and DP forward; range before OMOD",
        "before OMOD and clamp; one rounding after OMOD";
    CLAMP_OF_NAN = 8, "clamp of NaN",
        "+0";
    ROUNDS_ONCE = 9, "rounding",
        "exact, then nearest even once (profile R)";
    TRANSCENDENTALS_AT_THE_ENDS = 10, "transcendentals at the ends",
        "as IEEE functions";
    NAN_COMPARES_NOT_EQUAL = 11, "comparisons of NaN",
        "only \"not equal\" holds";
    TEXKILL_LOOKS_AT_THE_SIGN = 12, "TEXKILL of -0 and NaN",
        "the sign bit";
    TEXELS_BY_FLOOR = 13, "which texel a coordinate names",
        "floor";
    STACK_SIZES = 14, "stack sizes and counter width",
        "full 4, 4, 31; partial 0, 0, 3; can be chosen";
    INHIBITION_BY_FRAME = 15, "which lanes keep a BREAK from jumping",
        "those of the innermost frame; the literal reading can be chosen";
    PUSH_STORES_THE_NEXT_ADDRESS = 16, "what PUSH stores",
        "the next address";
    AL_OUTSIDE_LOOPS = 17, "aL outside loops and inside REP",
        "0 (strict traps); REP is transparent";
    CONDITIONAL_VALUE_IS_W = 18, "where the conditional value comes from",
        "W_OMASK";
    SCATTER_VARIANTS = 19, "numbers of the uncached TARGET variants",
        "the order of the guide's list";
    INTEGERS_ARE_NORMALISED = 21, "CTM commands, tiling, integer inputs",
        "own equivalents; tiled layouts refused; v / maximum";
    ELSE_THEN_INCR = 22, "INCR in the same instruction as B_ELSE",
        "lanes that the else switches off count up to 1";
    INHIBITION_WINS = 23, "BREAK and CONTINUE with INCR or JUMP_ANY",
        "INCR leaves the lanes that stopped alone; inhibition wins over ANY";
    CONDITIONAL_LOOP_ENTRY = 24, "LOOP with a condition that only some lanes meet",
        "all lanes enter";
    CONDITIONAL_LOOP_END = 25, "ENDLOOP with a condition that only some lanes meet",
        "all lanes go on";
}
