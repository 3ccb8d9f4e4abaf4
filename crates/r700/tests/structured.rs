//! Random structured programs, in the idioms that Mesa and LLVM emit: every lane must take the path that it takes in
//! a direct evaluation of the program, and the stack must be empty at the end.

use reconverge_r700::flow::{AluForm, Control, Flow, FlowSetup};
use reconverge_simt::Mask;

const LANES: usize = 8;

/// A statement; the number is its site, which decides its conditions and is what a trace shows.
enum Statement {
    Work(u32),
    If(u32, Vec<Statement>, Option<Vec<Statement>>),
    Loop(u32, Vec<Statement>),
    BreakIf(u32, Form),
    ContinueIf(u32, Form),
    Call(usize),
}

/// How a conditional exit is written: inside a pushed region, or as ALU_BREAK or ALU_CONTINUE.
#[derive(Clone, Copy)]
enum Form {
    Pushed,
    Alu,
}

struct Random(u64);

impl Random {
    fn below(&mut self, limit: u32) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 33) as u32 % limit
    }
}

/// A list of functions; function 0 is the main program, a function calls only later ones.
fn program(random: &mut Random) -> Vec<Vec<Statement>> {
    let mut site = 0;
    let functions = 1 + random.below(3) as usize;
    (0..functions).map(|own| block(random, &mut site, 3, false, own..functions)).collect()
}

fn block(
    random: &mut Random,
    site: &mut u32,
    depth: u32,
    in_loop: bool,
    functions: std::ops::Range<usize>,
) -> Vec<Statement> {
    let statements = 1 + random.below(3);
    let mut list = Vec::new();
    for _ in 0..statements {
        *site += 1;
        let own = *site;
        let form = if random.below(2) == 0 { Form::Pushed } else { Form::Alu };
        list.push(match random.below(7) {
            0 if depth > 0 => Statement::Loop(own, block(random, site, depth - 1, true, functions.clone())),
            1 | 2 if depth > 0 => {
                let then = block(random, site, depth - 1, in_loop, functions.clone());
                let other = (random.below(2) == 0)
                    .then(|| block(random, site, depth - 1, in_loop, functions.clone()));
                Statement::If(own, then, other)
            }
            3 if in_loop => Statement::BreakIf(own, form),
            4 if in_loop => Statement::ContinueIf(own, form),
            5 if functions.start + 1 < functions.end => {
                let choices = (functions.end - functions.start - 1) as u32;
                Statement::Call(functions.start + 1 + random.below(choices) as usize)
            }
            _ => Statement::Work(own),
        });
    }
    list
}

/// What every lane has done: the sites it worked at, and how often it has asked each site's condition.
#[derive(Clone, Default, PartialEq, Debug)]
struct Trace {
    worked: Vec<u32>,
    asked: Vec<u32>,
}

impl Trace {
    /// The next answer of a site's condition: any function of lane, site and count will do.
    fn ask(&mut self, lane: usize, site: u32) -> bool {
        let count = self.asked.iter().filter(|asked| **asked == site).count() as u32;
        self.asked.push(site);
        let mixed = (lane as u32).wrapping_mul(0x9e37_79b9)
            ^ site.wrapping_mul(0x85eb_ca6b)
            ^ count.wrapping_mul(0xc2b2_ae35);
        (mixed ^ mixed >> 15).wrapping_mul(0x2c1b_3c6d) >> 28 & 1 != 0
    }

    /// Whether a loop goes into another round: at most three.
    fn another_round(&mut self, site: u32, entered: usize) -> bool {
        self.asked.push(site);
        self.asked[entered..].iter().filter(|asked| **asked == site).count() <= 3
    }
}

/// How a block ended for one lane.
#[derive(PartialEq)]
enum End {
    Through,
    Break,
    Continue,
}

/// The direct evaluation for one lane.
fn evaluate(functions: &[Vec<Statement>], list: &[Statement], lane: usize, trace: &mut Trace) -> End {
    for statement in list {
        match statement {
            Statement::Work(site) => trace.worked.push(*site),
            Statement::If(site, then, other) => {
                let chosen = if trace.ask(lane, *site) { Some(then) } else { other.as_ref() };
                if let Some(list) = chosen {
                    match evaluate(functions, list, lane, trace) {
                        End::Through => {}
                        end => return end,
                    }
                }
            }
            Statement::Loop(site, body) => {
                let entered = trace.asked.len();
                while trace.another_round(*site, entered) {
                    if evaluate(functions, body, lane, trace) == End::Break {
                        break;
                    }
                }
            }
            Statement::BreakIf(site, _) if trace.ask(lane, *site) => return End::Break,
            Statement::ContinueIf(site, _) if trace.ask(lane, *site) => return End::Continue,
            Statement::BreakIf(..) | Statement::ContinueIf(..) => {}
            Statement::Call(function) => {
                evaluate(functions, &functions[*function], lane, trace);
            }
        }
    }
    End::Through
}

/// A control-flow instruction with what its clause would compute.
#[derive(Clone)]
enum Op {
    Work(u32),
    /// A clause whose last PRED_SET holds where the site's condition does.
    Predicate(AluForm, u32, bool),
    /// Notes where the loop's rounds begin to count.
    Enter(u32),
    /// A clause whose PRED_SET holds for lanes that go into another round; the others break.
    Round(u32),
    Jump(u32, u8),
    Else(u32, u8),
    Pop,
    LoopStart(u32),
    LoopEnd(u32),
    Break(u32),
    Continue(u32),
    Call(usize),
    Return,
}

struct Compiler<'a> {
    functions: &'a [Vec<Statement>],
    ops: Vec<Op>,
}

impl Compiler<'_> {
    fn here(&self) -> u32 {
        self.ops.len() as u32
    }

    /// Emits a block; gives the instructions that need the address of the innermost loop's end.
    fn block(&mut self, list: &[Statement]) -> Vec<usize> {
        let mut exits = Vec::new();
        for statement in list {
            match statement {
                Statement::Work(site) => self.ops.push(Op::Work(*site)),
                Statement::If(site, then, None) => {
                    self.ops.push(Op::Predicate(AluForm::PushBefore, *site, true));
                    let jump = self.ops.len();
                    self.ops.push(Op::Jump(0, 1));
                    exits.extend(self.block(then));
                    self.ops.push(Op::Pop);
                    self.ops[jump] = Op::Jump(self.here(), 1);
                }
                Statement::If(site, then, Some(other)) => {
                    self.ops.push(Op::Predicate(AluForm::PushBefore, *site, true));
                    let jump = self.ops.len();
                    self.ops.push(Op::Jump(0, 0));
                    exits.extend(self.block(then));
                    let middle = self.ops.len();
                    self.ops[jump] = Op::Jump(self.here(), 0);
                    self.ops.push(Op::Else(0, 1));
                    exits.extend(self.block(other));
                    self.ops.push(Op::Pop);
                    self.ops[middle] = Op::Else(self.here(), 1);
                }
                Statement::Loop(site, body) => {
                    self.ops.push(Op::Enter(*site));
                    let start = self.ops.len();
                    self.ops.push(Op::LoopStart(0));
                    let first = self.here();
                    self.ops.push(Op::Round(*site));
                    let inner = self.block(body);
                    let end = self.here();
                    for exit in inner {
                        match &mut self.ops[exit] {
                            Op::Break(addr) | Op::Continue(addr) => *addr = end,
                            _ => unreachable!("only exits are patched"),
                        }
                    }
                    self.ops.push(Op::LoopEnd(first));
                    self.ops[start] = Op::LoopStart(self.here());
                }
                Statement::BreakIf(site, Form::Alu) => {
                    self.ops.push(Op::Predicate(AluForm::Break, *site, false))
                }
                Statement::ContinueIf(site, Form::Alu) => {
                    self.ops.push(Op::Predicate(AluForm::Continue, *site, false));
                }
                Statement::BreakIf(site, Form::Pushed) | Statement::ContinueIf(site, Form::Pushed) => {
                    self.ops.push(Op::Predicate(AluForm::PushBefore, *site, true));
                    let jump = self.ops.len();
                    self.ops.push(Op::Jump(0, 1));
                    exits.push(self.ops.len());
                    let leaves = matches!(statement, Statement::BreakIf(..));
                    self.ops.push(if leaves { Op::Break(0) } else { Op::Continue(0) });
                    self.ops.push(Op::Pop);
                    self.ops[jump] = Op::Jump(self.here(), 1);
                }
                Statement::Call(function) => self.ops.push(Op::Call(*function)),
            }
        }
        exits
    }
}

/// Runs the compiled functions one behind the other on the divergence machine.
fn run(functions: &[Vec<Statement>]) -> (Vec<Trace>, Flow) {
    let mut compiler = Compiler { functions, ops: Vec::new() };
    let mut starts = Vec::new();
    for list in compiler.functions {
        starts.push(compiler.here());
        compiler.block(list);
        compiler.ops.push(Op::Return);
    }
    let mut flow = Flow::new(FlowSetup::new(64, Mask::first(LANES)));
    let mut traces = vec![Trace::default(); LANES];
    let mut entered = vec![Vec::new(); LANES];
    for _ in 0..200_000 {
        let op = compiler.ops[flow.pc() as usize].clone();
        let result = match op {
            Op::Work(site) => {
                flow.active().lanes().for_each(|lane| traces[lane.index()].worked.push(site));
                flow.nop();
                Ok(())
            }
            Op::Enter(site) => {
                for lane in flow.active().lanes() {
                    let asked = traces[lane.index()].asked.len();
                    entered[lane.index()].retain(|(known, _)| *known != site);
                    entered[lane.index()].push((site, asked));
                }
                flow.nop();
                Ok(())
            }
            Op::Predicate(form, site, execute_where) => {
                let lanes = flow.alu_enter(form, false).unwrap();
                let holds = Mask::from_fn(LANES, |lane| {
                    lanes.has(lane) && traces[lane.index()].ask(lane.index(), site) == execute_where
                });
                flow.update_execute_mask(form, lanes - holds);
                flow.alu_leave(form)
            }
            Op::Round(site) => {
                let lanes = flow.alu_enter(AluForm::Break, false).unwrap();
                let stays = Mask::from_fn(LANES, |lane| {
                    let since = entered[lane.index()].iter().find(|(known, _)| *known == site);
                    lanes.has(lane) && traces[lane.index()].another_round(site, since.expect("entered").1)
                });
                flow.update_execute_mask(AluForm::Break, lanes - stays);
                flow.alu_leave(AluForm::Break)
            }
            Op::Jump(addr, pop) => flow.jump(&Control::to(addr).pop(pop)),
            Op::Else(addr, pop) => flow.else_(&Control::to(addr).pop(pop)),
            Op::Pop => flow.pop(&Control::to(0).pop(1)),
            Op::LoopStart(addr) => flow.loop_start_dx10(&Control::to(addr)),
            Op::LoopEnd(addr) => flow.loop_end(&Control::to(addr)),
            Op::Break(addr) => flow.loop_break(&Control::to(addr)),
            Op::Continue(addr) => flow.loop_continue(&Control::to(addr)),
            Op::Call(function) => flow.call(&Control { call_count: 1, ..Control::to(starts[function]) }),
            Op::Return if flow.call_depth() == 0 => return (traces, flow),
            Op::Return => flow.return_(&Control::to(0)),
        };
        result.expect("well-formed flow");
    }
    panic!("no end after 200,000 instructions");
}

#[test]
fn every_lane_takes_the_path_of_a_direct_evaluation() {
    for seed in 1..=3000u64 {
        let functions = program(&mut Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
        let (traces, flow) = run(&functions);
        for (lane, trace) in traces.iter().enumerate() {
            let mut wanted = Trace::default();
            evaluate(&functions, &functions[0], lane, &mut wanted);
            assert_eq!(trace.worked, wanted.worked, "seed {seed}, lane {lane}");
        }
        assert!(flow.entries().is_empty(), "seed {seed}");
        assert_eq!(flow.active(), Mask::first(LANES), "seed {seed}");
    }
}
