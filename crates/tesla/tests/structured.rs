//! Generated structured programs, lowered to the token stack, equal a direct evaluation of their tree. They use
//! joinat and join, breakaddr and break, calls, returns and exits of some lanes, predication, and `if`s that never
//! join. The stack is empty at the end, and every step of a lane is an edge of the program's graph.

use reconverge_isa::Program as Words;
use reconverge_isa::graph::Graph;
use reconverge_isa::program::ConstantBlock;
use reconverge_simt::{Engine, FlowView, Lane as LaneNumber, Level, Options, Step, Why};
use reconverge_tesla::code::Code;
use reconverge_tesla::graph::graph;
use reconverge_tesla::inst::{Chip, Stage};
use reconverge_tesla::launch::{Launch, Setup, Vertex};
use reconverge_tesla::run::{Run, run};
use reconverge_tesla::text::assemble;
use reconverge_testkit::{
    Campaign, Compare, Condition, Lane, LaneSteps, LoweredProgram, MIX_MODULUS, Program, Random, Returns,
    STEP_MODULUS, Shape, Statement, VARIABLES, generate,
};

/// Offset of the boolean constants in c0[]; before them are the addresses of the functions.
const BOOLEANS: usize = 0x40;
/// Lanes of a warp.
const WARP: u32 = 32;
/// First register in which loops count iterations and record breaks.
const COUNTERS: usize = 16;

/// The way in which lanes leave an iteration, or the loop.
#[derive(Clone)]
enum Leave {
    /// They branch to a label; no join that they would pass lies between.
    Branch(String),
    /// `break`.
    Break,
    /// They set a register and `break` out of the iteration; after it they `break` out of the loop.
    Noted(String),
}

/// The innermost loop.
#[derive(Clone)]
struct Loop {
    break_: Leave,
    continue_: Leave,
}

/// Writes a tree as Tesla source. `$r1` to `$r3` hold the variables of these numbers, `$r4` the trace, `$r5` to
/// `$r8` temporary values, `$r10` to `$r13` numbers. Every instruction has two words.
struct Lowering<'a> {
    lines: Vec<String>,
    labels: Vec<(String, usize)>,
    named: usize,
    /// Selects between equivalent idioms.
    choice: &'a mut Random,
    chip: Chip,
    loops: Vec<Loop>,
    /// The current function; `None` is the body.
    function: Option<usize>,
    /// Byte addresses of the functions that have been written.
    addresses: Vec<Option<u32>>,
    /// Whether some idiom keeps lanes diverged that could run together, possibly to the end of the program.
    unjoined: bool,
}

struct Lowered {
    text: String,
    /// Byte addresses of the functions.
    functions: Vec<Option<u32>>,
    /// Byte address of the last instruction of the body.
    end: u32,
    unjoined: bool,
}

/// A predicate and its opposite.
struct Predicate {
    holds: String,
    fails: String,
}

impl Lowering<'_> {
    fn program(program: &Program, seed: u64, chip: Chip) -> Lowered {
        let mut choice = Random::new(!seed);
        let mut lowering = Lowering {
            lines: Vec::new(),
            labels: Vec::new(),
            named: 0,
            choice: &mut choice,
            chip,
            loops: Vec::new(),
            function: None,
            addresses: vec![None; program.functions.len()],
            unjoined: false,
        };
        // From the last one on, so that the address of a function is known at its calls.
        let functions_first = lowering.choice.once_in(2);
        if functions_first {
            lowering.line("bra main");
            lowering.functions(program);
            lowering.place("main".to_owned());
        }
        lowering.function = None;
        for variable in 1..VARIABLES {
            lowering.line(format!("mov b32 $r{variable} a[{:#x}]", 4 * variable));
        }
        lowering.number("$r4", 0);
        for (register, value) in
            [("$r10", MIX_MODULUS - 1), ("$r11", STEP_MODULUS - 1), ("$r12", 1), ("$r13", 0)]
        {
            lowering.number(register, value);
        }
        lowering.block(&program.body);
        let end = lowering.address();
        lowering.line("exit nop");
        if !functions_first {
            lowering.functions(program);
        }
        let text = lowering.text();
        Lowered { text, functions: lowering.addresses, end, unjoined: lowering.unjoined }
    }

    fn functions(&mut self, program: &Program) {
        for (index, function) in program.functions.iter().enumerate().rev() {
            self.addresses[index] = Some(self.address());
            self.place(format!("f{index}"));
            self.function = Some(index);
            self.block(function);
            self.line("ret");
        }
    }

    fn text(&self) -> String {
        let mut text = String::new();
        let mut labels = self.labels.iter().peekable();
        for (number, line) in self.lines.iter().enumerate() {
            while let Some((name, _)) = labels.next_if(|(_, at)| *at == number) {
                text += &format!("{name}:\n");
            }
            text += &format!("    {line}\n");
        }
        text
    }

    fn line(&mut self, text: impl Into<String>) {
        self.lines.push(text.into().trim_start().to_owned());
    }

    fn address(&self) -> u32 {
        8 * self.lines.len() as u32
    }

    fn label(&mut self, name: &str) -> String {
        self.named += 1;
        format!("{name}{}", self.named)
    }

    fn place(&mut self, label: String) {
        self.labels.push((label, self.lines.len()));
    }

    /// Places a label on an instruction that joins. The instruction may also compute.
    fn join(&mut self, label: String) {
        self.place(label);
        let work = ["nop", "mov b32 $r5 $r13", "add b32 $r6 $r12 $r13"][self.choice.below(3) as usize];
        self.line(format!("join {work}"));
    }

    fn number(&mut self, register: &str, value: i32) {
        self.line(format!("mov b32 {register} {value:#x}"));
    }

    fn one_of(&mut self, names: &[&'static str]) -> &'static str {
        names[self.choice.below(names.len() as u32) as usize]
    }

    /// Writes a comparison and returns the predicates.
    fn condition(&mut self, condition: &Condition) -> Predicate {
        let code = |compare| match compare {
            Compare::Less => "l",
            Compare::GreaterEqual => "ge",
            Compare::Equal => "e",
            Compare::NotEqual => "lg",
        };
        let flags = format!("$c{}", self.choice.below(4));
        let variable = format!("$r{}", condition.variable);
        self.number("$r8", condition.number);
        let (holds, fails) = match self.choice.below(4) {
            0 => {
                self.line(format!("sub b32 {flags} # {variable} $r8"));
                (code(condition.compare), code(condition.compare.negated()))
            }
            kind => {
                // The result is all ones, so S, if the condition holds; otherwise Z.
                let negated = kind == 1;
                let compare = if negated { condition.compare.negated() } else { condition.compare };
                let sign = self.one_of(&["s32", "u32"]);
                self.line(format!("set {flags} # {} {sign} {variable} $r8", code(compare)));
                let yes = self.one_of(&["lg", "s", "l"]);
                let no = self.one_of(&["e", "eu", "ns", "ge"]);
                if negated { (no, yes) } else { (yes, no) }
            }
        };
        Predicate { holds: format!("({holds} {flags})"), fails: format!("({fails} {flags})") }
    }

    fn block(&mut self, statements: &[Statement]) {
        for statement in statements {
            self.statement(statement);
            if self.choice.once_in(24) {
                self.line("nop");
            }
        }
    }

    fn statement(&mut self, statement: &Statement) {
        match statement {
            Statement::Mix(_) | Statement::Step(_) => self.work(statement, ""),
            Statement::If(condition, then, otherwise) => {
                self.if_(condition, then, otherwise.as_deref().unwrap_or_default());
            }
            Statement::IfStatic(index, body) => self.if_static(*index, body),
            Statement::Loop(count, body) => self.loop_(*count, body),
            Statement::Break(condition) => {
                let leave = self.innermost().break_;
                self.leave(&leave, condition);
            }
            Statement::Continue(condition) => {
                let leave = self.innermost().continue_;
                self.leave(&leave, condition);
            }
            Statement::Call(index, None) => self.call(*index),
            Statement::Call(index, Some(condition)) => {
                self.if_(condition, &[Statement::Call(*index, None)], &[]);
            }
            Statement::Return(None) => self.line("ret"),
            Statement::Return(Some(condition)) => {
                let predicate = self.condition(condition);
                self.line(format!("{} ret", predicate.holds));
            }
            Statement::Exit(None) => self.exit(),
            Statement::Exit(Some(condition)) => self.exit_if(condition),
        }
    }

    /// Writes a statement that computes, under a predicate.
    fn work(&mut self, statement: &Statement, predicate: &str) {
        match statement {
            Statement::Mix(k) => {
                self.line(format!("{predicate} shl b32 $r5 $r4 0x2"));
                self.line(format!("{predicate} add b32 $r5 $r5 $r4"));
                self.number("$r6", *k);
                self.line(format!("{predicate} add b32 $r5 $r5 $r6"));
                self.line(format!("{predicate} and b32 $r4 $r5 $r10"));
            }
            Statement::Step(variable) => {
                self.line(format!("{predicate} add b32 $r5 $r{variable} $r12"));
                self.line(format!("{predicate} and b32 $r{variable} $r5 $r11"));
            }
            other => unreachable!("{other:?} computes nothing"),
        }
    }

    fn computes(block: &[Statement]) -> bool {
        block.len() < 4
            && block.iter().all(|statement| matches!(statement, Statement::Mix(_) | Statement::Step(_)))
    }

    fn if_(&mut self, condition: &Condition, then: &[Statement], otherwise: &[Statement]) {
        let predicate = self.condition(condition);
        if Self::computes(then) && Self::computes(otherwise) && self.choice.once_in(3) {
            // No branch is needed.
            then.iter().for_each(|statement| self.work(statement, &predicate.holds));
            return otherwise.iter().for_each(|statement| self.work(statement, &predicate.fails));
        }
        // Both sides may stay diverged until an enclosing instruction joins them, or to the end.
        let joins = !self.choice.once_in(8);
        self.unjoined |= !joins;
        let [other, end] = ["other", "endif"].map(|name| self.label(name));
        if joins {
            self.line(format!("joinat {end}"));
        }
        // The taken side of a divergent branch runs first: it may be either of the two.
        let Predicate { holds, fails } = predicate;
        let (to_other, first, second) =
            if self.choice.once_in(2) { (fails, then, otherwise) } else { (holds, otherwise, then) };
        if second.is_empty() && self.choice.once_in(2) {
            self.line(format!("{to_other} bra {end}"));
            self.block(first);
        } else {
            self.line(format!("{to_other} bra {other}"));
            self.block(first);
            self.line(format!("bra {end}"));
            self.place(other);
            self.block(second);
        }
        if joins { self.join(end) } else { self.place(end) }
    }

    /// A constant is the same for all lanes: the branch cannot diverge and needs no join.
    fn if_static(&mut self, index: u32, body: &[Statement]) {
        let end = self.label("static");
        self.line(format!("ld $r8 b32 c0[{:#x}]", BOOLEANS + 4 * index as usize));
        self.line("set $c3 # lg u32 $r8 $r13");
        self.line(format!("(e $c3) bra {end}"));
        self.block(body);
        self.place(end);
    }

    fn innermost(&self) -> Loop {
        self.loops.last().expect("breaks and continues stand in loops").clone()
    }

    fn leave(&mut self, leave: &Leave, condition: &Option<Condition>) {
        let holds = match condition {
            Some(condition) => self.condition(condition).holds,
            None => String::new(),
        };
        match leave {
            Leave::Branch(label) => self.line(format!("{holds} bra {label}")),
            Leave::Break => self.line(format!("{holds} break")),
            Leave::Noted(register) => {
                self.line(format!("{holds} mov b32 {register} $r12"));
                self.line(format!("{holds} break"));
            }
        }
    }

    fn loop_(&mut self, count: u32, body: &[Statement]) {
        // Functions nest up to two loops and never call themselves.
        let nest = match self.function {
            None => self.loops.len(),
            Some(index) => 4 + 2 * index + self.loops.len(),
        };
        let [counter, noted] = [0, 1].map(|n| format!("$r{}", COUNTERS + 2 * nest + n));
        let [top, round, end] = ["top", "round", "end"].map(|name| self.label(name));
        let (breaks, continues) = (Leaves::of(body, true), Leaves::of(body, false));
        // A lane that branches out from below another join would resume at that join.
        let joins = breaks != Leaves::FromBelow && continues != Leaves::FromBelow && self.choice.once_in(2);
        self.number(&counter, 0);
        let (opens, break_) = match joins {
            true => ("joinat", Leave::Branch(end.clone())),
            false => ("breakaddr", Leave::Break),
        };
        self.line(format!("{opens} {end}"));
        self.place(top.clone());
        self.number("$r8", count as i32);
        self.line(format!("set $c0 # ge u32 {counter} $r8"));
        self.leave_round_if("(lg $c0)", &break_);
        self.line(format!("add b32 {counter} {counter} $r12"));
        // The end of an iteration: an ordinary one, a join, or a break address.
        let kind = match (continues, joins) {
            (Leaves::Nowhere, _) => 0,
            // A branch out of an iteration would leave its entry on the stack, but kind 0 pushes none.
            (Leaves::AtTop, true) if breaks != Leaves::Nowhere => 0,
            (Leaves::AtTop, true) => self.choice.below(2),
            (Leaves::AtTop, false) => self.choice.below(3),
            (Leaves::FromBelow, _) => 2,
        };
        let mut of_round = Loop { break_, continue_: Leave::Branch(top.clone()) };
        match kind {
            0 => self.unjoined |= continues != Leaves::Nowhere,
            1 => {
                self.line(format!("joinat {round}"));
                of_round.continue_ = Leave::Branch(round.clone());
            }
            _ => {
                self.number(&noted, 0);
                self.line(format!("breakaddr {round}"));
                of_round = Loop { break_: Leave::Noted(noted.clone()), continue_: Leave::Break };
            }
        }
        self.loops.push(of_round);
        self.block(body);
        self.loops.pop();
        match kind {
            0 => {}
            1 => self.join(round),
            _ => {
                self.line("break");
                self.place(round);
                self.line(format!("set $c0 # lg u32 {noted} $r13"));
                self.line("(lg $c0) break");
            }
        }
        self.line(format!("bra {top}"));
        if joins { self.join(end) } else { self.place(end) }
    }

    fn leave_round_if(&mut self, predicate: &str, leave: &Leave) {
        match leave {
            Leave::Branch(label) => self.line(format!("{predicate} bra {label}")),
            Leave::Break | Leave::Noted(_) => self.line(format!("{predicate} break")),
        }
    }

    fn call(&mut self, index: usize) {
        // `preret` and `bra c[]` came with GT215.
        let indirect = self.chip == Chip::Gt215 && self.addresses[index].is_some();
        let kinds = if indirect { 4 } else { 2 };
        match self.choice.below(kinds) {
            0 => self.line(format!("call f{index}")),
            1 => self.line(format!("call lim f{index}")),
            _ => {
                let back = self.label("back");
                let lim = self.one_of(&["", "lim "]);
                self.line(format!("preret {lim}{back}"));
                self.line(format!("bra c0[{:#x}]", 4 * index));
                self.place(back);
            }
        }
    }

    fn exit(&mut self) {
        let work = self.one_of(&["nop", "mov b32 $r5 $r12"]);
        self.line(format!("exit {work}"));
    }

    fn exit_if(&mut self, condition: &Condition) {
        let predicate = self.condition(condition);
        let goes_on = self.label("on");
        match self.choice.below(3) {
            // Outside every call, a return ends the lane.
            0 if self.function.is_none() => self.line(format!("{} ret", predicate.holds)),
            0 | 1 => {
                self.line(format!("joinat {goes_on}"));
                self.line(format!("{} bra {goes_on}", predicate.fails));
                self.exit();
                self.join(goes_on);
            }
            _ => {
                let out = self.label("out");
                self.line(format!("{} bra {out}", predicate.holds));
                self.line(format!("bra {goes_on}"));
                self.place(out);
                self.exit();
                self.place(goes_on);
            }
        }
    }
}

/// The position from which the breaks, or the continues, of a loop leave.
#[derive(Clone, Copy, PartialEq)]
enum Leaves {
    Nowhere,
    /// Between the constructs of its body.
    AtTop,
    /// From inside an `if` that may have a join.
    FromBelow,
}

impl Leaves {
    fn of(block: &[Statement], breaks: bool) -> Leaves {
        let mut found = Leaves::Nowhere;
        for statement in block {
            let here = match statement {
                Statement::Break(_) if breaks => Leaves::AtTop,
                Statement::Continue(_) if !breaks => Leaves::AtTop,
                Statement::IfStatic(_, body) => Leaves::of(body, breaks),
                Statement::If(_, then, otherwise) => {
                    let sides = [then.as_slice(), otherwise.as_deref().unwrap_or_default()];
                    match sides.iter().all(|side| Leaves::of(side, breaks) == Leaves::Nowhere) {
                        true => Leaves::Nowhere,
                        false => Leaves::FromBelow,
                    }
                }
                Statement::Mix(_)
                | Statement::Step(_)
                | Statement::Loop(..)
                | Statement::Break(_)
                | Statement::Continue(_)
                | Statement::Call(..)
                | Statement::Return(_)
                | Statement::Exit(_) => Leaves::Nowhere,
            };
            found = match (found, here) {
                (Leaves::FromBelow, _) | (_, Leaves::FromBelow) => Leaves::FromBelow,
                (Leaves::AtTop, _) | (_, Leaves::AtTop) => Leaves::AtTop,
                (Leaves::Nowhere, Leaves::Nowhere) => Leaves::Nowhere,
            };
        }
        found
    }
}

/// A program's words and the shared settings of its launches.
struct Prepared {
    lowered: Lowered,
    words: Words,
    setup: Setup,
    graph: Graph,
}

impl Prepared {
    fn new(seed: u64, program: &Program) -> Prepared {
        let chips = [Chip::G80, Chip::G84, Chip::G200, Chip::Mcp77, Chip::Gt215];
        let chip = chips[(seed / 3 % 5) as usize];
        let lowered = Lowering::program(program, seed, chip);
        let words = match assemble(&lowered.text, chip, Stage::Vertex) {
            Ok(assembled) => Words::from_words(assembled.words()),
            Err(errors) => panic!("seed {seed}: {}\n{}", errors[0], lowered.text),
        };
        let mut setup = Setup::new(chip);
        let functions = lowered
            .functions
            .iter()
            .enumerate()
            .filter_map(|(index, address)| Some((4 * index, (*address)?)));
        let booleans = (0..32).map(|bit| (BOOLEANS + 4 * bit, program.booleans >> bit & 1));
        for (offset, value) in functions.chain(booleans) {
            assert!(setup.constants.place(0, offset, &value.to_le_bytes()));
        }
        let table = lowered.functions.iter().flat_map(|address| address.unwrap_or(0).to_le_bytes()).collect();
        let constants = [ConstantBlock { bank: 0, offset: 0, bytes: table }];
        let graph = graph(&Code::new(&words.words, 0, Stage::Vertex, chip), &constants);
        Prepared { lowered, words, setup, graph }
    }

    /// Checks that every step of a lane is an edge of the graph.
    fn in_the_graph(&self, steps: &LaneSteps) -> Result<(), String> {
        let edge = |(from, to): &&(u32, u32)| {
            self.graph.node(*from).is_some_and(|node| node.next.iter().any(|edge| edge.to == *to))
        };
        match steps.steps.iter().find(|step| !edge(step)) {
            Some((from, to)) => Err(format!(
                "a lane goes from {from:#x} to {to:#x}, the graph has {:x?}",
                self.graph.node(*from)
            )),
            None => Ok(()),
        }
    }
}

impl LoweredProgram for Prepared {
    fn width(&self) -> usize {
        WARP as usize
    }

    fn text(&self) -> String {
        format!(".chip {:?}\n.type VP\n{}", self.setup.chip, self.lowered.text)
    }

    /// Returns the variables of every lane at the end, in strict mode. The engines also run in lockstep and must
    /// agree.
    fn outputs(&self, lanes: &[Lane]) -> Result<Vec<Lane>, String> {
        let inputs = (1..VARIABLES)
            .map(|variable| (variable as u16, lanes.iter().map(|lane| lane[variable] as u32).collect()));
        let launch =
            Vertex { setup: self.setup.clone().into(), lanes: lanes.len(), inputs: inputs.collect() };
        let options = Options { watchdog: 1 << 22, ..Options::default() };
        let mut together = Err(String::new());
        // The lowest level has no compiled code.
        let compiled =
            Level::available().into_iter().skip(1).map(|level| (Engine::LockstepCompiled, Some(level)));
        for (engine, level) in compiled.chain([(Engine::Lockstep, None)]) {
            let lockstep = Options { engine, level, ..options };
            let ran = run(&self.words, Launch::Vertex(launch.clone()), &lockstep);
            together = Ok(ran.map_err(|error| error.to_string())?);
        }
        let together = together?;
        let options = Options { engine: Engine::Reference, ..options };
        let mut run =
            Run::new(&self.words, Launch::Vertex(launch), &options).map_err(|error| error.to_string())?;
        let mut steps = LaneSteps::default();
        loop {
            let flow = &run.block().current().flow;
            if flow.pc() == self.lowered.end && !flow.finished() && !self.lowered.unjoined {
                // At this instruction, all lanes that have not ended are together.
                let apart =
                    |lane: &usize| !matches!(flow.why(LaneNumber(*lane as u8)), Why::Active | Why::Exited);
                if !flow.tokens().is_empty() || (0..lanes.len()).any(|lane| apart(&lane)) {
                    return Err(format!(
                        "at the last instruction: active {}, {:?}",
                        flow.active(),
                        flow.tokens()
                    ));
                }
            }
            if run.step(&mut steps).map_err(|trap| trap.to_string())? == Step::Done {
                break;
            }
        }
        self.in_the_graph(&steps)?;
        let left = run.block().current().flow.tokens();
        if !left.is_empty() {
            return Err(format!("left on the stack: {left:?}"));
        }
        let variables = |registers: &[u32]| [4, 1, 2, 3].map(|register| registers[register] as i32);
        let outcome = run.outcome();
        if (&outcome.lanes, outcome.statistics) != (&together.lanes, together.statistics) {
            return Err("stepping and lockstep leave something else".to_owned());
        }
        Ok(outcome.lanes.iter().map(|lane| variables(&lane.registers)).collect())
    }
}

fn program(seed: u64) -> Program {
    generate(seed, Shape { returns: Returns::Anywhere, exits: true, ..Shape::of(seed) })
}

/// Every program fits the machine.
fn lower(seed: u64, program: &Program) -> Option<Prepared> {
    Some(Prepared::new(seed, program))
}

#[test]
fn structured_programs_equal_the_direct_evaluation_of_their_tree() {
    Campaign::from_environment(2_000).run_against_evaluation("reconverge-tesla", program, lower);
}

#[test]
fn a_lane_alone_gives_the_same_as_all_lanes_together() {
    Campaign::from_environment(2_000).tenth().run_lanes_alone("reconverge-tesla", program, lower);
}

#[test]
fn every_idiom_is_written() {
    let texts: String = (0..300).map(|seed| Prepared::new(seed, &program(seed)).lowered.text).collect();
    #[rustfmt::skip]
    let idioms = [
        "    joinat", "    join nop", "    join add", "    breakaddr", "    break\n", ") break", "    call f", "    call lim",
        "    preret", "    bra c0[", "    bra ", ") bra ", "    ret", ") ret", "    exit nop", "    exit mov", ") shl", ") mov",
    ];
    for idiom in idioms {
        assert!(texts.contains(idiom), "{idiom}");
    }
}

#[test]
fn an_indirect_branch_reads_a_word_of_its_address() {
    let source = "bra c0[0x0]\nmov b32 $r1 0x1\nmov b32 $r2 0x2\nexit nop";
    let words = Words::from_words(assemble(source, Chip::Gt215, Stage::Vertex).unwrap().words());
    let mut setup = Setup::new(Chip::Gt215);
    setup.code_base = 0x1200;
    assert!(setup.constants.place(0, 0, &0x1210u32.to_le_bytes()));
    let launch = Vertex { setup: setup.into(), lanes: 1, inputs: Default::default() };
    let outcome = run(&words, Launch::Vertex(launch), &Options::default()).unwrap();
    assert_eq!(outcome.lanes.get(0).unwrap().registers[1..3], [0, 2]);
}
