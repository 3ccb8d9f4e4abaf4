//! Flow constructs: the canonical instructions of structured programs. The table in this file has one row for each
//! construct.
//!
//! Source: the table of flow-control statements (CTM guide p. 40, r500.md 5.5). Code of compilers may differ from this
//! table in the bits JUMP_ANY and IGNORE_UNCOVERED and in unused addresses. The disassembler writes such bits and
//! addresses next to the mnemonic. If no row of the table fits an instruction, the disassembler writes the instruction
//! in its raw form.

use crate::flow::Role;
use crate::words::{AOp, BOp, FcAddr, FcInst, FcOp};

/// The condition of a construct.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// The ALU result.
    Alu,
    /// The predicate that word 0 selects.
    Predicate,
    /// A boolean constant.
    Boolean,
}

/// The condition under which a construct jumps. The JUMP_FUNC of the construct encodes this condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Jumps {
    /// The construct never jumps (0x00).
    Never,
    /// The construct always jumps (0xff).
    Always,
    /// The instruction jumps past the body if the condition is false.
    WhenFalse,
    /// The construct jumps if the condition is true.
    WhenTrue,
}

/// The contents of B_POP_CNT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pop {
    /// B_POP_CNT is unused and 0.
    None,
    /// B_POP_CNT is a count. If the text omits the count, the count is 1.
    One,
    /// B_POP_CNT is a count, which the text must state.
    Said,
}

/// A flow construct.
#[derive(Clone, Copy, Debug)]
pub struct Construct {
    /// The mnemonic.
    pub name: &'static str,
    /// A word after the condition. The word distinguishes two constructs that have the same mnemonic. The field is
    /// empty for a construct without such a word.
    pub variant: &'static str,
    /// The condition under which the construct jumps.
    pub jumps: Jumps,
    /// Whether the condition must be a boolean constant. Otherwise, the condition must be the ALU result or a
    /// predicate, which can differ between lanes.
    pub on_boolean: bool,
    /// The flow-control operation.
    pub op: FcOp,
    /// The value of JUMP_ANY in the canonical instruction.
    pub any: bool,
    /// Operation on the address stack.
    pub a_op: AOp,
    /// Operation on the branch counters if the group stays.
    pub b_op0: BOp,
    /// Operation on the branch counters if the group jumps.
    pub b_op1: BOp,
    /// Number of levels that the construct closes.
    pub pop: Pop,
    /// The value of B_ELSE.
    pub b_else: bool,
}

impl Construct {
    /// Returns whether the construct uses INT_ADDR.
    pub const fn has_int(&self) -> bool {
        matches!(self.op.role(), Role::Begin { .. } | Role::End { .. })
    }
}

#[allow(clippy::too_many_arguments)]
const fn row(
    name: &'static str,
    variant: &'static str,
    jumps: Jumps,
    any: bool,
    op: FcOp,
    a_op: AOp,
    b_op0: BOp,
    b_op1: BOp,
    pop: Pop,
) -> Construct {
    Construct { name, variant, jumps, on_boolean: false, op, any, a_op, b_op0, b_op1, pop, b_else: false }
}

const ALL: bool = false;
const ANY: bool = true;

/// The constructs, in the order of r500.md 5.5.
#[rustfmt::skip]
pub const CONSTRUCTS: &[Construct] = &[
    //  mnemonic    variant    jumps            vote op                A_OP        B_OP0       B_OP1       B_POP_CNT
    row("if",       "",        Jumps::WhenFalse, ALL, FcOp::JUMP,      AOp::NONE, BOp::INCR, BOp::NONE, Pop::None),
    row("if",       "else",    Jumps::WhenFalse, ALL, FcOp::JUMP,      AOp::NONE, BOp::INCR, BOp::INCR, Pop::None),
    row("if",       "merged",  Jumps::WhenFalse, ALL, FcOp::JUMP,      AOp::NONE, BOp::INCR, BOp::DECR, Pop::Said),
    Construct { on_boolean: true, ..
    row("if",       "",        Jumps::WhenFalse, ALL, FcOp::JUMP,      AOp::NONE, BOp::NONE, BOp::NONE, Pop::None) },
    Construct { b_else: true, ..
    row("else",     "",        Jumps::Never,     ALL, FcOp::JUMP,      AOp::NONE, BOp::NONE, BOp::DECR, Pop::One) },
    row("endif",    "",        Jumps::Never,     ANY, FcOp::JUMP,      AOp::NONE, BOp::DECR, BOp::NONE, Pop::One),
    row("loop",     "",        Jumps::Never,     ANY, FcOp::LOOP,      AOp::NONE, BOp::NONE, BOp::NONE, Pop::None),
    row("endloop",  "",        Jumps::Always,    ANY, FcOp::ENDLOOP,   AOp::NONE, BOp::NONE, BOp::NONE, Pop::None),
    row("rep",      "",        Jumps::Never,     ANY, FcOp::REP,       AOp::NONE, BOp::NONE, BOp::NONE, Pop::None),
    row("endrep",   "",        Jumps::Always,    ANY, FcOp::ENDREP,    AOp::NONE, BOp::NONE, BOp::NONE, Pop::None),
    row("break",    "",        Jumps::Always,    ALL, FcOp::BREAKLOOP, AOp::NONE, BOp::NONE, BOp::DECR, Pop::Said),
    row("break",    "",        Jumps::WhenTrue,  ALL, FcOp::BREAKLOOP, AOp::NONE, BOp::NONE, BOp::DECR, Pop::Said),
    row("break",    "",        Jumps::Always,    ALL, FcOp::BREAKLOOP, AOp::NONE, BOp::NONE, BOp::NONE, Pop::None),
    row("break",    "",        Jumps::WhenTrue,  ALL, FcOp::BREAKLOOP, AOp::NONE, BOp::NONE, BOp::NONE, Pop::None),
    row("breakrep", "",        Jumps::Always,    ALL, FcOp::BREAKREP,  AOp::NONE, BOp::NONE, BOp::DECR, Pop::Said),
    row("breakrep", "",        Jumps::WhenTrue,  ALL, FcOp::BREAKREP,  AOp::NONE, BOp::NONE, BOp::DECR, Pop::Said),
    row("breakrep", "",        Jumps::Always,    ALL, FcOp::BREAKREP,  AOp::NONE, BOp::NONE, BOp::NONE, Pop::None),
    row("breakrep", "",        Jumps::WhenTrue,  ALL, FcOp::BREAKREP,  AOp::NONE, BOp::NONE, BOp::NONE, Pop::None),
    row("continue", "",        Jumps::Always,    ALL, FcOp::CONTINUE,  AOp::NONE, BOp::NONE, BOp::DECR, Pop::Said),
    row("continue", "",        Jumps::WhenTrue,  ALL, FcOp::CONTINUE,  AOp::NONE, BOp::NONE, BOp::DECR, Pop::Said),
    row("continue", "",        Jumps::Always,    ALL, FcOp::CONTINUE,  AOp::NONE, BOp::NONE, BOp::NONE, Pop::None),
    row("continue", "",        Jumps::WhenTrue,  ALL, FcOp::CONTINUE,  AOp::NONE, BOp::NONE, BOp::NONE, Pop::None),
    row("call",     "",        Jumps::Always,    ANY, FcOp::JUMP,      AOp::PUSH, BOp::NONE, BOp::INCR, Pop::None),
    row("call",     "",        Jumps::WhenTrue,  ANY, FcOp::JUMP,      AOp::PUSH, BOp::NONE, BOp::INCR, Pop::None),
    row("call",     "simple",  Jumps::Always,    ANY, FcOp::JUMP,      AOp::PUSH, BOp::NONE, BOp::NONE, Pop::None),
    row("return",   "",        Jumps::Always,    ALL, FcOp::JUMP,      AOp::POP,  BOp::NONE, BOp::DECR, Pop::One),
    row("return",   "simple",  Jumps::Always,    ALL, FcOp::JUMP,      AOp::POP,  BOp::NONE, BOp::NONE, Pop::None),
    row("goto",     "",        Jumps::Always,    ALL, FcOp::JUMP,      AOp::NONE, BOp::NONE, BOp::NONE, Pop::None),
];

/// Returns the JUMP_FUNC that makes lanes vote to jump if the condition equals `value`.
pub const fn jump_func(condition: Condition, value: bool) -> u8 {
    match (condition, value) {
        (Condition::Alu, true) => 0xf0,
        (Condition::Alu, false) => 0x0f,
        (Condition::Predicate, true) => 0xcc,
        (Condition::Predicate, false) => 0x33,
        (Condition::Boolean, true) => 0xaa,
        (Condition::Boolean, false) => 0x55,
    }
}

/// A construct with the values of its variable parts.
#[derive(Clone, Copy, Debug)]
pub struct Statement {
    /// The row of the construct.
    pub construct: &'static Construct,
    /// The condition, and whether the condition is negated.
    pub condition: Option<(Condition, bool)>,
    /// B_POP_CNT.
    pub pop: u8,
    /// JUMP_ANY.
    pub any: bool,
    /// IGNORE_UNCOVERED.
    pub ignore_uncovered: bool,
    /// The address word of the instruction.
    pub addr: FcAddr,
}

impl Statement {
    /// Returns the flow-control word and the address word of the instruction, as fields.
    pub fn encode(&self) -> (FcInst, FcAddr) {
        let construct = self.construct;
        let jump_func = match (construct.jumps, self.condition) {
            (Jumps::Never, _) => 0x00,
            (Jumps::Always, _) | (_, None) => 0xff,
            (Jumps::WhenTrue, Some((condition, negated))) => jump_func(condition, !negated),
            (Jumps::WhenFalse, Some((condition, negated))) => jump_func(condition, negated),
        };
        let inst = FcInst {
            op: construct.op,
            b_else: construct.b_else,
            jump_any: self.any,
            a_op: construct.a_op,
            jump_func,
            b_pop_cnt: self.pop,
            b_op0: construct.b_op0,
            b_op1: construct.b_op1,
            ignore_uncovered: self.ignore_uncovered,
        };
        (inst, self.addr)
    }

    /// Returns the construct of an instruction, or `None` if no row fits.
    pub fn recognise(inst: &FcInst, addr: &FcAddr) -> Option<Statement> {
        const CONDITIONS: [Condition; 3] = [Condition::Alu, Condition::Predicate, Condition::Boolean];
        CONSTRUCTS.iter().find_map(|construct| {
            let value_of = |condition| {
                [true, false].into_iter().find(|value| jump_func(condition, *value) == inst.jump_func)
            };
            let condition = match construct.jumps {
                Jumps::Never | Jumps::Always => None,
                Jumps::WhenTrue | Jumps::WhenFalse => {
                    let jumps_when = construct.jumps == Jumps::WhenTrue;
                    // A construct with a condition fits only if JUMP_FUNC is the code of a condition.
                    let found = CONDITIONS.into_iter().find_map(|condition| {
                        value_of(condition).map(|value| (condition, value != jumps_when))
                    });
                    Some(found?)
                }
            };
            let on_boolean = matches!(condition, Some((Condition::Boolean, _)));
            if construct.name == "if" && on_boolean != construct.on_boolean {
                return None;
            }
            let statement = Statement {
                construct,
                condition,
                pop: if construct.pop == Pop::None { 0 } else { inst.b_pop_cnt },
                any: inst.jump_any,
                ignore_uncovered: inst.ignore_uncovered,
                addr: FcAddr {
                    bool_addr: if on_boolean { addr.bool_addr } else { 0 },
                    int_addr: if construct.has_int() { addr.int_addr } else { 0 },
                    ..*addr
                },
            };
            (statement.encode() == (*inst, *addr)).then_some(statement)
        })
    }
}
