//! Open questions: where the documents are silent, unclear or contradict each other, with the reading of this machine.
//!
//! Each reading is one constant or function, marked **Open** there, so that a reader with the hardware can settle it in one
//! place. `tests/open.rs` shows each by what it makes of a small case.

use std::fmt::Write;

/// A question with its reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenQuestion {
    /// Which one.
    pub question: Question,
    /// Its section in docs/tesla.md.
    pub section: &'static str,
    /// What the documents leave open.
    pub subject: &'static str,
    /// What this machine does.
    pub reading: &'static str,
    /// Where in the crate.
    pub place: &'static str,
}

macro_rules! questions {
    ($( $name:ident = $section:literal, $subject:literal, $reading:literal, $place:literal; )*) => {
        /// An open question.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Question { $( #[doc = $subject] $name ),* }

        /// All questions.
        pub const QUESTIONS: &[OpenQuestion] = &[ $( OpenQuestion {
            question: Question::$name, section: $section, subject: $subject, reading: $reading, place: $place,
        } ),* ];
    };
}

#[rustfmt::skip]
questions! {
    ConditionCodes = "13.1", "condition codes 0x14 to 0x1b", "never true", "inst::Condition";
    FirstSide = "13.2", "which side of a divergent `bra` runs first", "the taken one", "flow::TAKEN_SIDE_RUNS_FIRST";
    JoinatUnwound = "13.3", "a JOINAT token met while unwinding", "resume at its address, leave it", "Flow::joinat_while_unwinding";
    JoinWithoutToken = "13.4", "`join` with an empty stack", "underflow; nothing in lenient mode", "Flow::join_without_token";
    BreakWithoutToken = "13.5", "`break` and no BREAK token", "underflow; the lane ends in lenient mode", "Flow::broken_at_the_end";
    BreakThroughCall = "9.5", "`break` in a subroutine for a loop outside", "mismatch; unwinds through the call in lenient mode", "Flow::break_through_call";
    LimitedCall = "13.6", "a limited call beyond the limit", "skipped", "Flow::call_beyond_limit";
    StackMemory = "9.1", "whether the 16 entries on chip come in addition to the configured memory", "they do", "Limits::stack_size_log";
    EndedWarps = "13.7", "barriers and warps that have ended", "they no longer count", "barrier.rs";
    IndirectTarget = "13.8", "`bra c[]` with lanes that disagree", "trap; the lowest lane's in lenient mode", "Flow::uniform_target";
    StackDepth = "9.1", "depth of the stack when it is not specified", "4096", "flow::DEFAULT_STACK_ENTRIES";
    ControlInQuad = "9.8", "control flow between quadon and quadpop", "trap", "Flow::control_inside_quadon";
    AddressRegisters = "13.9", "`$a5` to `$a7`", "trap; 0 in lenient mode", "access.rs";
    VoteFlags = "13.10", "flags of `vote` and `ld lock`", "S for yes, Z for no", "reference::truth";
    Discarded = "13.11", "a discarded fragment", "continues as a helper", "Flow::discard";
    GatheredComponent = "13.12", "component of `texgather`", "red", "texture::GATHERED_COMPONENT";
    PlaneRounding = "13.13", "rounding of interpolation", "each operation of the plane to nearest", "lane::interpolate";
    ZeroWinsInMad = "13.15", "zero wins in the long `mad`", "as in the short one", "lane::float";
    RoundingCodes = "13.16", "f32 rounding codes 1 and 2", "down and up, graded *recommended*", "lane::float";
    Alignment = "13.18", "unaligned addresses", "low bits count as zero", "spaces::aligned";
    InitialState = "13.19", "registers and memory at the start", "zero", "state.rs, spaces.rs";
    PostIncrement = "13.22", "post-increment of a lane that is predicated off", "its `$a` stays", "access::increment";
    ConstantsBeyond = "1.7", "c[] beyond its contents", "zero", "spaces.rs";
    Negation = "6.4", "`cvt neg s32 s32` of -2^31", "saturates where flags are written, wraps elsewhere", "meaning::negated";
    Locks = "4", "how words share the locks of s[]", "each word has its own", "spaces.rs";
    EmitAndRestart = "6.10", "`emit restart` in one instruction", "a vertex, then the end of the strip", "reference.rs";
    SameByte = "4", "lanes of one instruction that store to the same byte", "the highest lane's value stays", "access::store";
}

/// The questions as the table of docs/tesla.md.
pub fn table() -> String {
    let mut text = String::from("| | question | reading | in |\n|---|---|---|---|\n");
    for OpenQuestion { section, subject, reading, place, .. } in QUESTIONS {
        let _ = writeln!(text, "| {section} | {subject} | {reading} | `{place}` |");
    }
    text
}
