//! The control-flow graph of a program. For each instruction, the graph has the instructions at which a lane can
//! continue, according to the token stack.
//!
//! The graph follows a single lane. The lane sees the JOINAT, BREAK and CALL tokens that the warp pushed while the lane
//! was active. BRANCH tokens belong to other lanes. So `break` continues at the address of the innermost `breakaddr`.
//! `ret` continues after the call whose token is on the stack. If a `join` switches the warp to another path, the lane
//! waits, and later continues after the `join`.

use reconverge_isa::graph::{Edge, EdgeKind, Graph, Node};
use reconverge_isa::program::ConstantBlock;
use reconverge_isa::sets::{NumberSet, SortedSet};

use crate::code::Code;
use crate::control::{Control, Effect};
use crate::decode::length;
use crate::flow::{INDIRECT_TARGET_BITS, TokenType};
use crate::inst::{Base, Condition, End, Guard, Inst, Op, Operand, Space};
use crate::paths::{Move, Paths};

/// The position of a lane or a warp, and the next step at this position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum At {
    /// At an address. The next step is the join of the instruction, if the instruction has a join.
    Before(u32),
    /// At an address. The join of the instruction is done, and the instruction is the next step.
    Joined(u32),
    /// The instruction at an address has removed the lane, or all active lanes of the warp, from the current path. The
    /// next step is to unwind the stack.
    Left(Leave, u32),
}

impl At {
    /// Returns the address of the position.
    fn pc(self) -> u32 {
        match self {
            At::Before(pc) | At::Joined(pc) | At::Left(_, pc) => pc,
        }
    }
}

/// The instructions by which lanes leave a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Leave {
    Exit,
    Ret,
    Break,
}

/// Facts about the waiting lanes of a warp. The graph follows a single lane, so all fields are `false` in the graph.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Waiting {
    /// Whether some lanes wait at a join, or on the side of a branch that does not run.
    pub(crate) apart: bool,
    /// Whether lanes have left by `break` or `ret`, and continue later.
    pub(crate) away: bool,
    /// Whether a CALL token is on the stack.
    pub(crate) called: bool,
}

/// The position of a lane or a warp, with the facts about lanes that wait.
pub(crate) type State = (At, Waiting);

/// A token that an instruction pushes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Token {
    pub(crate) kind: TokenType,
    /// Address of the instruction that pushed the token.
    pub(crate) by: u32,
    /// Address of the token, see [`crate::flow::Token`].
    pub(crate) to: u32,
    /// The facts about waiting lanes at the time when the instruction pushed the token.
    pub(crate) then: Waiting,
}

/// The states that can come directly after a state. Each move has the next state and the effect of the move on the
/// stack.
pub(crate) type Moves = Vec<Move<State, Token>>;

/// The lanes for which a guard holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Passes {
    /// No lane, whatever the flags.
    None,
    /// All lanes, whatever the flags.
    All,
    /// The lanes whose flags satisfy the condition.
    Some,
}

impl Passes {
    /// Returns the lanes for which a guard holds.
    pub(crate) fn of(guard: Guard) -> Passes {
        match guard.condition {
            condition if condition.table() == Condition::NEVER.table() => Passes::None,
            condition if condition.table() == Condition::ALWAYS.table() => Passes::All,
            _ => Passes::Some,
        }
    }

    /// Returns the lanes that execute a control-flow operation with this guard. (9.2)
    pub(crate) fn by(control: Control, guard: Guard) -> Passes {
        if control.is_predicated() { Passes::of(guard) } else { Passes::All }
    }

    /// Returns whether the guard may hold for some lane.
    pub(crate) fn any(self) -> bool {
        self != Passes::None
    }

    /// Returns whether the guard may fail for some lane.
    pub(crate) fn but_some(self) -> bool {
        self != Passes::All
    }
}

/// Returns the graph of a program that starts at the first word of `code`. `constants` are the constant blocks in the
/// program's container.
///
/// A `bra c[]` can continue at every code address in its constant bank. If no `$a` indexes the bank, the branch has a
/// single target. The instruction reads the target's address from a word of the bank. The container may lack the bank,
/// because a launch provides the bank. If the container lacks the bank, the branch can continue at every target of a
/// call. The branch can also continue after every exit or return, because subroutines begin at such positions.
pub fn graph(code: &Code, constants: &[ConstantBlock]) -> Graph {
    let slots = code.words().len();
    let (edges, joins) = (vec![SortedSet::new(); slots], vec![NumberSet::new(); slots]);
    let mut walk = Walk { code, constants, edges, joins };
    let start = (At::Before(code.base()), Waiting::default());
    let paths = Paths::from(start, |(at, _), top, next| walk.lane(at, top, next));
    walk.edges_of_waiting();
    let reached: NumberSet = paths.controls().iter().map(|(at, _)| at.pc()).collect();
    let breaks = paths.tokens().iter().filter(|token| token.kind == TokenType::Break);
    let broken: NumberSet = breaks.map(|token| token.to).collect();
    let mut entries = NumberSet::from_iter([code.base()]);
    let node = |pc: u32| {
        let inst = code.at(pc).ok()?;
        let next = code.place(pc).map(|place| std::mem::take(&mut walk.edges[place])).unwrap_or_default();
        entries.extend(next.iter().filter(|(_, kind)| *kind == EdgeKind::Call).map(|(to, _)| *to));
        Some(Node {
            pc,
            next: next.into_iter().map(|(to, kind)| Edge { to, kind }).collect(),
            diverges: predicated_flow(inst) && Passes::of(inst.guard) == Passes::Some,
            reconverges: match inst.end {
                End::Join => Some("join"),
                End::None | End::Exit => broken.contains(pc).then_some("breakaddr"),
            },
        })
    };
    let nodes = reached.iter().filter_map(node).collect();
    Graph { entries: entries.iter().collect(), nodes }
}

/// Returns the state of a lane at a position.
fn lane(at: At) -> State {
    (at, Waiting::default())
}

/// Returns whether the predicate of an instruction determines where lanes continue. (9.2)
fn predicated_flow(inst: &Inst) -> bool {
    matches!(inst.op, Op::Control(control) if control.is_predicated() && control.leaves())
}

struct Walk<'a> {
    code: &'a Code,
    constants: &'a [ConstantBlock],
    /// The edges from each instruction, by the index of the instruction in the code.
    edges: Vec<SortedSet<(u32, EdgeKind)>>,
    /// For each instruction that pushes a JOINAT token, the addresses at which lanes that wait for the token continue.
    joins: Vec<NumberSet>,
}

impl Walk<'_> {
    fn edge(&mut self, from: u32, to: u32, kind: EdgeKind) {
        if let Some(place) = self.code.place(from) {
            self.edges[place].insert((to, kind));
        }
    }

    fn lane(&mut self, at: At, top: Option<Token>, next: &mut Moves) {
        match at {
            At::Before(pc) => self.join(pc, top, next),
            At::Joined(pc) => self.instruction(pc, next),
            At::Left(leave, pc) => {
                let (wanted, kind) = match leave {
                    Leave::Break => (TokenType::Break, EdgeKind::Break),
                    Leave::Ret | Leave::Exit => (TokenType::Call, EdgeKind::Return),
                };
                match top {
                    // 13.5: without a BREAK token, the lane does not continue.
                    None => {}
                    Some(token) if token.kind == wanted => {
                        self.edge(pc, token.to, kind);
                        next.push(Move::Pop(lane(At::Before(token.to))));
                    }
                    // 9.5: in lenient mode, unwinding pops the token of a call.
                    Some(_) => next.push(Move::Pop(lane(at))),
                }
            }
        }
    }

    fn join(&mut self, pc: u32, top: Option<Token>, next: &mut Moves) {
        let joins = self.code.at(pc).is_ok_and(|inst| inst.end == End::Join);
        match top {
            _ if !joins => next.push(Move::Go(lane(At::Joined(pc)))),
            // 13.4: in lenient mode, the lane continues.
            None => next.push(Move::Go(lane(At::Joined(pc)))),
            Some(Token { kind: TokenType::Joinat, by, to, .. }) => {
                if let Some(place) = self.code.place(by) {
                    self.joins[place].extend([pc, to]);
                }
                next.push(Move::Pop(lane(At::Joined(pc))));
                // 13.3: if all active lanes end before the join, the waiting lanes continue at the token's address.
                if to != pc {
                    next.push(Move::Go(lane(At::Before(to))));
                }
            }
            // This join traps with STACK_MISMATCH.
            Some(_) => {}
        }
    }

    fn instruction(&mut self, pc: u32, next: &mut Moves) {
        let Ok(inst) = self.code.at(pc) else { return };
        let behind = pc + inst.form.bytes();
        if inst.end == End::Exit {
            return;
        }
        let mut go = |walk: &mut Self, to, kind| {
            walk.edge(pc, to, kind);
            next.push(Move::Go(lane(At::Before(to))));
        };
        let Op::Control(control) = inst.op else { return go(self, behind, EdgeKind::Next) };
        let passes = Passes::by(control, inst.guard);
        match control.effect() {
            Effect::Next | Effect::Quadpop | Effect::Barrier => go(self, behind, EdgeKind::Next),
            Effect::Goto(target) => {
                if passes.but_some() {
                    go(self, behind, EdgeKind::Next);
                }
                if passes.any() {
                    go(self, target, jump(pc, target));
                }
            }
            Effect::Indirect => {
                for target in &self.indirect_targets(inst) {
                    go(self, target, jump(pc, target));
                }
            }
            Effect::Leave(token) => {
                if passes.but_some() {
                    go(self, behind, EdgeKind::Next);
                }
                let leave = if token == TokenType::Break { Leave::Break } else { Leave::Ret };
                next.extend(passes.any().then_some(Move::Go(lane(At::Left(leave, pc)))));
            }
            Effect::Push { token: TokenType::Quadon, .. } => go(self, behind, EdgeKind::Next),
            Effect::Push { token: kind, address, goes, limited } => {
                if limited {
                    go(self, behind, EdgeKind::Next);
                }
                let edge = if goes.is_some() { EdgeKind::Call } else { EdgeKind::Next };
                let goes = goes.unwrap_or(behind);
                self.edge(pc, goes, edge);
                let to = address.unwrap_or(behind);
                let token = Token { kind, by: pc, to, then: Waiting::default() };
                next.push(Move::Push(lane(At::Before(goes)), token));
            }
            Effect::Stop => {}
        }
    }

    /// Returns the target addresses that `bra c[]` can read from the constants.
    fn indirect_targets(&self, inst: &Inst) -> NumberSet {
        let Operand::Mem(mem) = inst.src[0] else { return NumberSet::new() };
        let Space::Const(bank) = mem.space else { return NumberSet::new() };
        let blocks = self.constants.iter().filter(|block| block.bank == u32::from(bank));
        let words = blocks.flat_map(|block| {
            let words = block.bytes.chunks_exact(4).zip((block.offset..).step_by(4));
            words.map(|(bytes, at)| (at, u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])))
        });
        let fixed = mem.base == Base::A(0);
        let known: NumberSet = words
            .filter(|(at, _)| !fixed || *at == mem.offset as u32)
            .map(|(_, word)| word & INDIRECT_TARGET_BITS)
            .filter(|target| self.code.at(*target).is_ok())
            .collect();
        if known.is_empty() { subroutines(self.code) } else { known }
    }

    /// Adds the edges of lanes that wait at a join. A waiting lane continues at the join that pops the token, or at the
    /// token's address. Usually, this position is the instruction at which the lane waited. At any other position, the
    /// lane continues without executing the instruction of the wait.
    fn edges_of_waiting(&mut self) {
        for places in self.joins.iter().filter(|places| places.len() > 1) {
            for next in &mut self.edges {
                let waits: Vec<EdgeKind> =
                    next.iter().filter(|(to, _)| places.contains(*to)).map(|(_, kind)| *kind).collect();
                next.extend(waits.iter().flat_map(|kind| places.iter().map(|place| (place, *kind))));
            }
        }
    }
}

/// Returns the addresses of a program's listing. If an address has a valid instruction, the function also returns the
/// instruction.
pub(crate) fn listed(code: &Code) -> impl Iterator<Item = (u32, Option<&Inst>)> {
    let words = code.words();
    let mut place = 0;
    std::iter::from_fn(move || {
        let pc = code.base() + 4 * place as u32;
        place += length(*words.get(place)?) as usize;
        Some((pc, code.at(pc).ok()))
    })
}

/// Returns the targets of calls, and the instructions after the end of a program or subroutine.
fn subroutines(code: &Code) -> NumberSet {
    let (mut called, mut named) = (NumberSet::new(), NumberSet::new());
    for (_, inst) in listed(code) {
        match inst.map(|inst| inst.op) {
            Some(Op::Control(Control::Call { target, .. })) => drop(called.insert(target)),
            Some(Op::Control(control)) => named.extend(control.target()),
            Some(Op::Arith(_) | Op::Memory(_) | Op::Group(_) | Op::Idle(_)) | None => {}
        }
    }
    let pairs = listed(code).zip(listed(code).skip(1));
    let begins = |inst: &Inst, next: &u32| {
        let always = !Passes::of(inst.guard).but_some();
        match inst.op {
            // The instruction after a branch may be the first instruction of the `else` side of an `if`.
            Op::Control(Control::Bra { .. } | Control::Break) => always && !named.contains(*next),
            Op::Control(control) if control.leaves() => always || !control.is_predicated(),
            Op::Control(_) | Op::Arith(_) | Op::Memory(_) | Op::Group(_) | Op::Idle(_) => {
                inst.end == End::Exit
            }
        }
    };
    let behind = pairs.filter_map(|((_, inst), (next, found))| {
        let begins = begins(inst?, &next) && found.is_some();
        begins.then_some(next)
    });
    called.extend(behind);
    called
}

/// Returns the kind of a jump. A backward jump begins another iteration of a loop.
fn jump(pc: u32, target: u32) -> EdgeKind {
    if target <= pc { EdgeKind::Loop } else { EdgeKind::Jump }
}
