//! The control-flow operations. Each operation has one row in this file. The row contains a name, the effect on the
//! lanes and the token stack, and sentences for `explain`. [`crate::flow`] executes the operations. The graph, the
//! linter and `explain` read the rows. (9)

use reconverge_simt::Fidelity;

use crate::flow::TokenType;
use crate::sentence::Words;

/// The lanes that execute an operation. (9.2)
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Executing {
    /// The active lanes whose guard holds.
    Guarded,
    /// All active lanes, whatever the guard.
    Active,
}

/// The effect of an operation on the executing lanes, and on the token stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// The lanes continue with the next instruction.
    Next,
    /// The lanes continue at an address.
    Goto(u32),
    /// The lanes continue at an address that the program reads from memory.
    Indirect,
    /// The warp pushes a token and continues at `goes`.
    Push {
        token: TokenType,
        /// The token's address; `None` for the next instruction.
        address: Option<u32>,
        /// The address at which the warp continues; `None` for the next instruction.
        goes: Option<u32>,
        /// Whether the operation is limited. A limited operation pushes nothing if too many limited calls are
        /// outstanding.
        limited: bool,
    },
    /// The lanes wait until the warp pops the innermost token of this type.
    Leave(TokenType),
    /// The warp pops a QUADON token.
    Quadpop,
    /// The warp waits for other warps.
    Barrier,
    /// The launch ends.
    Stop,
}

impl Effect {
    const fn push(token: TokenType, address: u32) -> Effect {
        Effect::Push { token, address: Some(address), goes: None, limited: false }
    }
}

/// The number of warps that a barrier waits for. (9.7)
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BarrierCount {
    /// A number of warps. 0xfff means all warps of the block.
    Count(u16),
    /// All warps of the block.
    All,
}

macro_rules! controls {
    ($(
        $(#[$doc:meta])*
        $Name:ident $({ $($(#[$field_doc:meta])* $field:ident: $type:ty,)* })?
            => $name:literal, $grade:ident, $executing:ident, $effect:expr, $does:expr, $lanes:expr;
    )*) => {
        /// A control-flow operation. (9)
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Control { $(
            $(#[$doc])*
            $Name $({ $($(#[$field_doc])* $field: $type,)* })?,
        )* }

        #[allow(unused_variables, reason = "a row uses the fields that it needs")]
        impl Control {
            /// Returns the name of the operation in reports, and the exactness of the operation with any modifiers.
            pub const fn fidelity(&self) -> (&'static str, Fidelity) {
                match self { $( Control::$Name { .. } => ($name, Fidelity::$grade), )* }
            }

            pub(crate) const fn executing(self) -> Executing {
                match self { $( Control::$Name { .. } => Executing::$executing, )* }
            }

            pub(crate) const fn effect(self) -> Effect {
                match self { $( Control::$Name $({ $($field),* })? => $effect, )* }
            }

            /// Returns two sentences of `explain`. The first sentence states the action of an instruction. The second
            /// sentence states the effect on the lanes of the warp and on the token stack.
            pub(crate) fn sentences(self, words: &Words) -> (String, &'static str) {
                fn of(does: impl Fn(&Words) -> String, words: &Words) -> String {
                    does(words)
                }
                match self { $( Control::$Name $({ $($field),* })? => (of($does, words), $lanes), )* }
            }
        }
    };
}

controls! {
    /// Kills the lane's fragment. \[discard\]
    Discard => "discard", Specified, Guarded, Effect::Next,
        |_| "Kills the lane's fragment.".to_owned(),
        "lanes that execute the discard are dead: these lanes continue only as helpers and write nothing";
    /// Branches to a byte address. \[bra\]
    Bra {
        /// The byte address that the instruction contains.
        target: u32,
    } => "bra", Specified, Guarded, Effect::Goto(target),
        |words| format!("Goes to {target:#x}{}.", words.taken_by),
        "lanes that take the branch go to the target; if only some active lanes take the branch, the warp pushes a \
         BRANCH entry for the lanes that do not take it";
    /// Branches to the byte address in src\[0\], which is an operand in c[]. \[bra c[]\]
    BraIndirect {
        /// Whether the branch is limited.
        lim: bool,
    } => "bra c[]", Recommended, Active, Effect::Indirect,
        |words| format!("Goes to the address that is {}.", words.a),
        "all active lanes go to the address in $a, which must be the same for all";
    /// Calls the subroutine at a byte address. \[call\]
    Call {
        /// The byte address that the instruction contains.
        target: u32,
        /// Whether the call is limited.
        lim: bool,
    } => "call", Specified, Active,
        Effect::Push { token: TokenType::Call, address: None, goes: Some(target), limited: lim },
        |_| format!("Calls the function at {target:#x}."),
        "pushes a CALL entry with the next address and goes to the target";
    /// Pushes a return address. \[preret\]
    Preret {
        /// The byte address that the instruction contains.
        target: u32,
        /// Whether the operation counts as a limited call.
        lim: bool,
    } => "preret", Recommended, Active,
        Effect::Push { token: TokenType::Call, address: Some(target), goes: None, limited: lim },
        |_| format!("A later `ret` continues at {target:#x}."),
        "pushes a CALL entry with the target as return address and continues";
    /// Returns from a subroutine. \[ret\]
    Ret => "ret", Specified, Guarded, Effect::Leave(TokenType::Call),
        |_| "Returns from the function; without a call, the lane ends.".to_owned(),
        "lanes that execute the ret wait for the innermost CALL entry; after all lanes have returned, the lanes \
         continue at the address of the entry";
    /// Pushes the address at which `break` continues. \[breakaddr\]
    Breakaddr {
        /// The byte address that the instruction contains.
        target: u32,
    } => "breakaddr", Specified, Active, Effect::push(TokenType::Break, target),
        |_| format!("A later `break` continues at {target:#x}."),
        "pushes a BREAK entry with the target and continues";
    /// Leaves the loop. \[break\]
    Break => "break", Specified, Guarded, Effect::Leave(TokenType::Break),
        |_| "Leaves the loop, to the address of the last `breakaddr`.".to_owned(),
        "lanes that execute the break wait for the innermost BREAK entry; after all lanes have left the loop, the \
         lanes continue at the address of the entry";
    /// Pushes the address at which lanes reconverge. \[joinat\]
    Joinat {
        /// The byte address that the instruction contains.
        target: u32,
    } => "joinat", Specified, Active, Effect::push(TokenType::Joinat, target),
        |_| format!("Lanes that diverge after this instruction reconverge at {target:#x}."),
        "pushes a JOINAT entry with the target, where paths that diverge after this instruction reconverge";
    /// Activates whole quads. \[quadon\]
    Quadon => "quadon", Specified, Active,
        Effect::Push { token: TokenType::Quadon, address: None, goes: None, limited: false },
        |_| "Switches on all lanes of quads with an active lane.".to_owned(),
        "pushes a QUADON entry and switches on every lane of a quad in which one is active";
    /// Ends `quadon`. \[quadpop\]
    Quadpop => "quadpop", Specified, Active, Effect::Quadpop,
        |_| "Switches off the lanes that `quadon` switched on.".to_owned(),
        "pops the QUADON entry and restores its lanes";
    /// Counts the warp as arrived at a barrier, makes the warp wait at the barrier, or does both. \[bar\]
    Bar {
        /// Whether the warp counts as arrived.
        inc: bool,
        /// Whether the warp waits until the barrier is complete.
        wait: bool,
        /// Barrier number, 0 to 15.
        barrier: u8,
        /// The number of warps that must arrive to complete the barrier.
        count: BarrierCount,
    } => "bar", Recommended, Active, Effect::Barrier,
        |_| bar_in_words(inc, wait, barrier, count),
        bar_on_lanes(inc, wait);
    /// Stops with the error TRAP_INSTRUCTION. \[trap\]
    Trap => "trap", Specified, Active, Effect::Stop,
        |_| "Stops the launch with an error.".to_owned(),
        "stops the launch";
}

impl Control {
    /// Returns the code address in the instruction, if the instruction has a code address.
    pub const fn target(self) -> Option<u32> {
        match self.effect() {
            Effect::Goto(target) | Effect::Push { goes: Some(target), .. } => Some(target),
            Effect::Push { address, goes: None, .. } => address,
            _ => None,
        }
    }

    /// Returns whether lanes with a false guard skip the operation. (9.2)
    pub const fn is_predicated(self) -> bool {
        matches!(self.executing(), Executing::Guarded)
    }

    /// Returns whether lanes that execute the operation cannot continue at the next instruction.
    pub const fn leaves(self) -> bool {
        matches!(self.effect(), Effect::Goto(_) | Effect::Indirect | Effect::Leave(_) | Effect::Stop)
    }
}

/// Returns the sentence of `explain` about the effect of a barrier on the lanes.
const fn bar_on_lanes(inc: bool, wait: bool) -> &'static str {
    match (inc, wait) {
        (_, true) => "the warp waits until the barrier is complete",
        (true, false) => "the warp counts as arrived and continues",
        (false, false) => "none: the warp neither counts as arrived nor waits",
    }
}

fn bar_in_words(inc: bool, wait: bool, barrier: u8, count: BarrierCount) -> String {
    let warps = match count {
        BarrierCount::All | BarrierCount::Count(0xfff) => "all warps of the block".to_owned(),
        BarrierCount::Count(count) => format!("{count} warps"),
    };
    let does = match (inc, wait) {
        (true, true) => "Arrives at, and waits at,",
        (true, false) => "Arrives at",
        (false, true) => "Waits at",
        (false, false) => "Neither arrives nor waits at",
    };
    format!("{does} barrier {barrier} of {warps}.")
}
