//! Rules about the token stack of a warp and about barriers. The rules examine every stack that is possible at each
//! instruction.
//!
//! A `bra` divides the lanes only if the flags of the `bra` may differ between the lanes
//! ([`values::varying`](super::values)). In the analysis, one token represents all tokens that an instruction pushes.
//! The analysis therefore needs no bound for loops and recursion. Two facts describe waiting lanes. *Apart* means that
//! lanes wait at a join, or on the side of a branch that does not run. *Away* means that lanes have left by `break` or
//! `ret`.

use std::collections::BTreeSet;

use litemap::LiteMap;
use reconverge_isa::lint::Rule;
use reconverge_isa::sets::{NumberSet, SortedSet};

use super::values::{self, PlacesByNode};
use super::{
    BAR_DIVERGENT, BREAK_EMPTY, BREAK_MISMATCH, BREAKADDR_UNANSWERED, JOIN_EMPTY, JOIN_MISMATCH,
    JOINAT_ADDRESS, JOINAT_UNANSWERED, QUADON_FLOW, QUADPOP, RECURSION, RET_MIXED, STACK_DIFFERS,
    STACK_GROWS, STACK_NEED, Subject,
};
use crate::control::{Control, Effect};
use crate::flow::{DEFAULT_STACK_ENTRIES, TokenType, WARP};
use crate::graph::{At, Leave, Moves, Passes, State, Token, Waiting};
use crate::inst::{End, Inst, Op};
use crate::paths::{Move, Paths};
use crate::uses::Place;

struct Walk<'a, 'b> {
    subject: &'a Subject<'b>,
    varying: PlacesByNode,
    broken: BTreeSet<(u32, &'static str, String)>,
    rules: LiteMap<&'static str, &'static Rule>,
    /// Instructions that push a JOINAT or BREAK token which a matching instruction pops.
    answered: NumberSet,
}

/// Returns the possible token stacks of the program.
fn paths<'a, 'b>(subject: &'a Subject<'b>) -> (Walk<'a, 'b>, Paths<State, Token>) {
    let mut apart = NumberSet::new();
    loop {
        let mut walk = Walk {
            subject,
            varying: values::varying(subject, &apart),
            broken: BTreeSet::new(),
            rules: LiteMap::new(),
            answered: NumberSet::new(),
        };
        let start = (At::Before(subject.code.base()), Waiting::default());
        let found = Paths::from(start, |state, top, next| walk.warp(state, top, next));
        let before = apart.len();
        apart.extend(found.controls().iter().filter_map(|(at, waiting)| match at {
            At::Joined(pc) if waiting.apart || waiting.away => Some(*pc),
            At::Joined(_) | At::Before(_) | At::Left(..) => None,
        }));
        if apart.len() == before {
            return (walk, found);
        }
    }
}

/// Adds the findings about the stack and about barriers. If the program contains a `bra c[]`, the function adds
/// nothing, because a `bra c[]` may continue at any address.
pub(super) fn follow(subject: &mut Subject<'_>) {
    let indirect = |pc: u32| {
        matches!(subject.code.at(pc), Ok(Inst { op: Op::Control(Control::BraIndirect { .. }), .. }))
    };
    if subject.graph.nodes.iter().any(|node| indirect(node.pc)) {
        return;
    }
    let mut found = Vec::new();
    {
        let (walk, paths) = paths(subject);
        let Walk { broken, rules, answered, .. } = walk;
        found.extend(broken.into_iter().map(|(pc, rule, message)| (rules[&rule], pc, message)));
        unanswered(subject, &paths, &answered, &mut found);
        addresses(subject, &paths, &answered, &mut found);
        differing(&paths, &mut found);
        returning(&paths, &mut found);
        sizes(subject, &paths, &mut found);
    }
    for (rule, pc, message) in found {
        subject.find(rule, pc, message);
    }
}

type Found = Vec<(&'static Rule, u32, String)>;

impl Walk<'_, '_> {
    fn broken(&mut self, rule: &'static Rule, pc: u32, message: impl Into<String>) {
        self.rules.insert(rule.name, rule);
        self.broken.insert((pc, rule.name, message.into()));
    }

    fn warp(&mut self, (at, waiting): State, top: Option<Token>, next: &mut Moves) {
        match at {
            At::Before(pc) => self.join(pc, waiting, top, next),
            At::Joined(pc) => self.instruction(pc, waiting, top, next),
            At::Left(leave, pc) => self.unwind(leave, pc, waiting, top, next),
        }
    }

    fn join(&mut self, pc: u32, waiting: Waiting, top: Option<Token>, next: &mut Moves) {
        let Ok(inst) = self.subject.code.at(pc) else { return };
        let run = (At::Joined(pc), waiting);
        let Some(token) = top.filter(|_| inst.end == End::Join) else {
            if inst.end == End::Join {
                self.broken(&JOIN_EMPTY, pc, "the stack may be empty");
            }
            return next.push(Move::Go(run));
        };
        match token.kind {
            TokenType::Branch => {
                next.push(Move::Pop((At::Before(token.to), Waiting { apart: true, ..waiting })));
            }
            TokenType::Joinat => {
                self.answered.insert(token.by);
                next.push(Move::Pop((At::Joined(pc), Waiting { apart: token.then.apart, ..waiting })));
            }
            TokenType::Quadon => {
                self.broken(&QUADON_FLOW, pc, format!("the join is after the quadon at {:#x}", token.by))
            }
            TokenType::Break | TokenType::Call | TokenType::CallLim => {
                let what = if token.kind == TokenType::Break {
                    "BREAK token of the breakaddr"
                } else {
                    "CALL token of the call"
                };
                self.broken(&JOIN_MISMATCH, pc, format!("the {what} at {:#x} may be on top", token.by));
            }
        }
    }

    fn instruction(&mut self, pc: u32, waiting: Waiting, top: Option<Token>, next: &mut Moves) {
        let Ok(inst) = self.subject.code.at(pc) else { return };
        let behind = pc + inst.form.bytes();
        let quadon = top.filter(|token| token.kind == TokenType::Quadon);
        if let Some(quadon) = quadon
            && (inst.end == End::Exit
                || matches!(inst.op, Op::Control(control) if control != Control::Quadpop && control != Control::Discard))
        {
            return self.broken(
                &QUADON_FLOW,
                pc,
                format!("the instruction is after the quadon at {:#x}", quadon.by),
            );
        }
        if inst.end == End::Exit {
            return next.push(Move::Go((At::Left(Leave::Exit, pc), waiting)));
        }
        let go = |to| Move::Go((At::Before(to), waiting));
        let Op::Control(control) = inst.op else { return next.push(go(behind)) };
        let passes = Passes::by(control, inst.guard);
        let divides = passes == Passes::Some && self.varies(pc, inst);
        match control.effect() {
            Effect::Next => next.push(go(behind)),
            Effect::Goto(target) => {
                next.extend(passes.but_some().then_some(go(behind)));
                next.extend(passes.any().then_some(go(target)));
                next.extend(divides.then_some(Move::Push(
                    (At::Before(target), Waiting { apart: true, ..waiting }),
                    Token { kind: TokenType::Branch, by: pc, to: behind, then: waiting },
                )));
            }
            Effect::Indirect => {
                let node = self.subject.graph.node(pc);
                next.extend(node.into_iter().flat_map(|node| &node.next).map(|edge| go(edge.to)));
            }
            Effect::Leave(token) => {
                let leave = if token == TokenType::Break { Leave::Break } else { Leave::Ret };
                next.extend(passes.any().then_some(Move::Go((At::Left(leave, pc), waiting))));
                next.extend(passes.but_some().then_some(go(behind)));
                let parks = leave == Leave::Break || waiting.called;
                next.extend(
                    (divides && parks)
                        .then_some(Move::Go((At::Before(behind), Waiting { away: true, ..waiting }))),
                );
            }
            Effect::Push { token: kind, address, goes, limited } => {
                next.extend(limited.then_some(go(behind)));
                let inside = Waiting { called: waiting.called || kind == TokenType::Call, ..waiting };
                let token = Token { kind, by: pc, to: address.unwrap_or(behind), then: waiting };
                next.push(Move::Push((At::Before(goes.unwrap_or(behind)), inside), token));
            }
            Effect::Quadpop => match quadon {
                Some(_) => next.push(Move::Pop((At::Before(behind), waiting))),
                None => self.broken(&QUADPOP, pc, "the token on top may not be that of a quadon"),
            },
            Effect::Barrier => {
                if waiting.apart || waiting.away {
                    let how = if waiting.apart {
                        "at a join, or on the other side of a branch"
                    } else {
                        "after a loop or a call"
                    };
                    self.broken(&BAR_DIVERGENT, pc, format!("lanes may wait {how}"));
                }
                next.push(go(behind));
            }
            Effect::Stop => {}
        }
    }

    fn varies(&self, pc: u32, inst: &Inst) -> bool {
        let number = self.subject.graph.number(pc);
        number
            .and_then(|number| self.varying[number])
            .is_some_and(|places| places.has(Place::C(inst.guard.c)))
    }

    /// After no lane remains on the current path, adds the states of the lanes that may run next. (9.3)
    fn unwind(&mut self, leave: Leave, pc: u32, waiting: Waiting, top: Option<Token>, next: &mut Moves) {
        let Some(token) = top else {
            if leave == Leave::Break {
                self.broken(&BREAK_EMPTY, pc, "there may be no breakaddr before the break");
            }
            return;
        };
        let further = Move::Pop((At::Left(leave, pc), waiting));
        let then = |waiting| Move::Pop((At::Before(token.to), waiting));
        let parked = leave == Leave::Break || leave == Leave::Ret && token.then.called;
        match token.kind {
            TokenType::Branch => {
                let away = waiting.away || parked;
                next.push(then(Waiting { away, ..token.then }));
            }
            // Lanes that wait for the join continue at the token's address. The join at the token's address pops the
            // token.
            TokenType::Joinat => {
                let away = waiting.away || parked;
                next.push(Move::Go((At::Before(token.to), Waiting { away, ..waiting })));
                next.push(further);
            }
            TokenType::Break => {
                if leave == Leave::Break {
                    self.answered.insert(token.by);
                }
                if leave == Leave::Break || waiting.away {
                    next.push(then(Waiting {
                        away: token.then.away || leave == Leave::Ret && token.then.called,
                        ..token.then
                    }));
                }
                if leave != Leave::Break {
                    next.push(further);
                }
            }
            TokenType::Call | TokenType::CallLim => {
                if leave == Leave::Break {
                    let message = format!(
                        "the loop of the break is outside the subroutine that the call at {:#x} calls",
                        token.by
                    );
                    return self.broken(&BREAK_MISMATCH, pc, message);
                }
                if leave == Leave::Ret || waiting.away {
                    next.push(then(token.then));
                }
                if leave == Leave::Exit {
                    next.push(Move::Pop((
                        At::Left(leave, pc),
                        Waiting { called: token.then.called, ..waiting },
                    )));
                }
            }
            TokenType::Quadon => {}
        }
    }
}

/// Reports tokens that no matching instruction pops. A JOINAT token is not reported if its address is the address of an
/// `exit`, because the lanes end without a join.
fn unanswered(subject: &Subject<'_>, paths: &Paths<State, Token>, answered: &NumberSet, found: &mut Found) {
    let exits = |pc: u32| subject.code.at(pc).is_ok_and(|inst| inst.end == End::Exit);
    for Token { kind, by, to, .. } in paths.tokens().iter().filter(|token| !answered.contains(token.by)) {
        match kind {
            TokenType::Joinat if exits(*to) => {}
            TokenType::Joinat => found.push((&JOINAT_UNANSWERED, *by, "no join pops its token".to_owned())),
            TokenType::Break => {
                found.push((&BREAKADDR_UNANSWERED, *by, "no break uses its address".to_owned()))
            }
            TokenType::Branch | TokenType::Call | TokenType::CallLim | TokenType::Quadon => {}
        }
    }
}

/// Reports a JOINAT token if some join pops the token, but the instruction at the token's address has no join.
fn addresses(subject: &Subject<'_>, paths: &Paths<State, Token>, answered: &NumberSet, found: &mut Found) {
    let joinat = |token: &&Token| token.kind == TokenType::Joinat && answered.contains(token.by);
    for token in paths.tokens().iter().filter(joinat) {
        if !subject.code.at(token.to).is_ok_and(|inst| inst.end == End::Join) {
            found.push((&JOINAT_ADDRESS, token.by, format!("no instruction joins at {:#x}", token.to)));
        }
    }
}

/// Reports instructions that paths reach with different tokens on top of the stack. BRANCH and CALL tokens are
/// excluded. Tokens that accumulate in each iteration of a loop are also excluded, because another rule reports
/// accumulating tokens.
fn differing(paths: &Paths<State, Token>, found: &mut Found) {
    let cycling: NumberSet = cycles(paths).iter().flatten().collect();
    let before = |at: At| if let At::Before(pc) = at { Some(pc) } else { None };
    let places: NumberSet = paths.controls().iter().filter_map(|(at, _)| before(*at)).collect();
    let mut tops: LiteMap<u32, SortedSet<Option<(TokenType, u32)>>> = places.map(|_| SortedSet::new());
    for ((at, _), top) in paths.states() {
        let own = match top {
            Some(token) if cycling.contains(token) => continue,
            Some(token) => match paths.tokens()[token as usize] {
                Token { kind: TokenType::Branch, .. } => continue,
                Token { kind: TokenType::Call | TokenType::CallLim, .. } => None,
                Token {
                    kind: kind @ (TokenType::Joinat | TokenType::Break | TokenType::Quadon), by, ..
                } => Some((kind, by)),
            },
            None => None,
        };
        if let Some(tops) = before(at).and_then(|pc| tops.get_mut(&pc)) {
            tops.insert(own);
        }
    }
    // The function reports only the first such instruction, because later instructions have the same top tokens.
    let mut seen = SortedSet::new();
    for (pc, tops) in tops.into_iter().filter(|(_, tops)| tops.len() > 1) {
        if seen.insert(tops.clone()) {
            let named = tops.iter().map(|top| match top {
                None => "none".to_owned(),
                Some((kind, by)) => format!("{} of {by:#x}", kind.name()),
            });
            let message = format!("the token on top may be {}", named.collect::<Vec<_>>().join(" or "));
            found.push((&STACK_DIFFERS, pc, message));
        }
    }
}

/// Reports a `ret` that is a return from a subroutine on one path, and the end of the lanes on another path.
fn returning(paths: &Paths<State, Token>, found: &mut Found) {
    let by = |called: bool| -> NumberSet {
        let ret = |(at, waiting): &State| match at {
            At::Left(Leave::Ret, pc) if waiting.called == called => Some(*pc),
            _ => None,
        };
        paths.controls().iter().filter_map(ret).collect()
    };
    let uncalled = by(false);
    let mixed = by(true).iter().filter(|pc| uncalled.contains(*pc)).collect::<Vec<_>>();
    let message =
        || "some paths reach the ret after a call, and other paths reach the ret without a call".to_owned();
    found.extend(mixed.into_iter().map(|pc| (&RET_MIXED, pc, message())));
}

/// Returns the maximum number of entries on the stack at the same time. If a token can lie on top of itself, the number
/// of its entries has no bound, and this function excludes the token. There are at most 31 BRANCH tokens, because no
/// lane belongs to two BRANCH tokens.
fn entries(paths: &Paths<State, Token>) -> usize {
    const UNBOUNDED: [TokenType; 4] =
        [TokenType::Call, TokenType::Joinat, TokenType::Break, TokenType::Quadon];
    let cycles = cycles(paths);
    let unbounded = |token: u32| UNBOUNDED.contains(&paths.tokens()[token as usize].kind);
    let branches_grow = cycles.iter().any(|cycle| !cycle.iter().any(unbounded));
    let depth = |branch: bool| deepest(paths, &cycles, |token| (token.kind == TokenType::Branch) == branch);
    let branches = if branches_grow { WARP - 1 } else { depth(true).min(WARP - 1) };
    depth(false) + branches
}

fn sizes(subject: &Subject<'_>, paths: &Paths<State, Token>, found: &mut Found) {
    for cycle in cycles(paths) {
        let tokens = || cycle.iter().map(|token| paths.tokens()[token as usize]);
        let of = |kind| tokens().filter(|token| token.kind == kind).map(|token| token.by).min();
        if let Some(by) = of(TokenType::Call) {
            found.push((&RECURSION, by, "recursive: the stack has no bound".to_owned()));
        } else if let Some(by) =
            [TokenType::Joinat, TokenType::Break, TokenType::Quadon].into_iter().find_map(of)
        {
            found.push((&STACK_GROWS, by, "the token may lie on a token of an earlier iteration".to_owned()));
        }
    }
    let entries = entries(paths);
    let declared = subject.program.resources.stack.map(|entries| entries as usize);
    let most = declared.unwrap_or(DEFAULT_STACK_ENTRIES);
    if entries > most {
        let has = if declared.is_some() { "are declared" } else { "is the maximum" };
        found.push((&STACK_NEED, subject.code.base(), format!("{entries} entries are needed, {most} {has}")));
    }
}

/// Returns the cycles of tokens. In a cycle, each token can lie on top of every other token of the cycle, any number of
/// times.
fn cycles(paths: &Paths<State, Token>) -> Vec<NumberSet> {
    let reach = |from: u32| {
        let mut reached = NumberSet::new();
        let mut open: Vec<u32> = paths.below(from).collect();
        while let Some(token) = open.pop() {
            if reached.insert(token) {
                open.extend(paths.below(token));
            }
        }
        reached
    };
    let reached: Vec<NumberSet> = (0..paths.tokens().len() as u32).map(reach).collect();
    let mut groups: Vec<NumberSet> = Vec::new();
    for (token, below) in (0..).zip(&reached).filter(|(token, below)| below.contains(*token)) {
        if !groups.iter().any(|group| group.contains(token)) {
            groups.push(below.iter().filter(|other| reached[*other as usize].contains(token)).collect());
        }
    }
    groups
}

/// Returns the maximum number of tokens on one stack. Only tokens for which `counts` returns true are counted. Each
/// token of a cycle counts once.
fn deepest(paths: &Paths<State, Token>, cycles: &[NumberSet], counts: impl Fn(&Token) -> bool) -> usize {
    let group = |token: u32| cycles.iter().position(|cycle| cycle.contains(token));
    let mut depths = vec![0; paths.tokens().len()];
    // The depth of a token does not include other tokens of the token's cycle. So the depth of a token never depends on
    // itself, and the loop ends.
    loop {
        let mut changed = false;
        for (number, token) in paths.tokens().iter().enumerate() {
            let own = group(number as u32);
            let lower = paths.below(number as u32).filter(|other| own.is_none() || group(*other) != own);
            let depth =
                usize::from(counts(token)) + lower.map(|other| depths[other as usize]).max().unwrap_or(0);
            changed |= std::mem::replace(&mut depths[number], depth) != depth;
        }
        if !changed {
            return depths.into_iter().max().unwrap_or(0);
        }
    }
}
