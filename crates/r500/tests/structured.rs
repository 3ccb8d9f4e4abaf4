//! Generated structured programs, lowered to the canonical constructs of R500, have the same results as a direct
//! evaluation of their tree. At the end, every lane is active and both stacks are empty.

use std::sync::Arc;

use reconverge_r500::flow::InhibitScope;
use reconverge_r500::launch::{Environment, Hardware, Input, Launch};
use reconverge_r500::run::{run, run_watched};
use reconverge_r500::setup::Setup;
use reconverge_r500::text::assemble;
use reconverge_simt::{Engine, FlowTrace, FlowView, Lane as LaneNumber, Level, Mask, Options, Watch};
use reconverge_testkit::{
    Campaign, Compare, Condition, Lane, LoweredProgram, MIX_MODULUS, MIX_MULTIPLIER, MOST_ROUNDS, Program,
    Random, Returns, STEP_MODULUS, Shape, Statement, generate,
};

const CHANNELS: [&str; 4] = ["", "r", "g", "b"];

/// Float constants from this number on hold the integers.
const NUMBERS: i32 = 64;

/// Writes a tree as R500 source. temp[0] holds variables 1 to 3 in r, g, b; temp[1].r is the trace.
struct Lowering<'a> {
    out: String,
    labels: usize,
    /// Chooses between equivalent idioms.
    choice: &'a mut Random,
    /// For each function, whether all its calls are unconditional. Such calls do not need a branch counter.
    simple: Vec<bool>,
    /// The current function is a simple one.
    in_simple: bool,
    /// Number of conditional returns in this function so far. Each has added one to the counters of the waiting
    /// lanes.
    returns: u32,
}

/// A computed condition.
struct Computed {
    name: &'static str,
    /// The stored value is inverted.
    negated: bool,
}

impl Computed {
    /// Returns the condition's name in flow instructions.
    fn text(&self) -> String {
        format!("{}{}", if self.negated { "!" } else { "" }, self.name)
    }

    /// Returns the JUMP_FUNC that jumps for lanes whose condition holds.
    fn jump_func(&self) -> u8 {
        let holds = if self.name == "alu" { 0xf0 } else { 0xcc };
        if self.negated { !holds } else { holds }
    }
}

impl Lowering<'_> {
    fn program(program: &Program, seed: u64) -> String {
        let mut choice = Random::new(!seed);
        let mut lowering = Lowering {
            out: String::new(),
            labels: 0,
            choice: &mut choice,
            simple: (0..program.functions.len()).map(|index| only_called_always(program, index)).collect(),
            in_simple: false,
            returns: 0,
        };
        for count in 0..=MOST_ROUNDS {
            lowering.line(format!(".int {count} {count} 3 -1"));
        }
        for bit in 0..32 {
            lowering.line(format!(".bool {bit} {}", program.booleans >> bit & 1));
        }
        let (mix, step) = (f64::from(MIX_MODULUS), f64::from(STEP_MODULUS));
        lowering.line(format!(".const 0 {MIX_MULTIPLIER} {} {mix} {}", 1.0 / mix, 1.0 / step));
        lowering.line(format!(".const 1 {step} 0 0 0"));
        for number in 0..64 {
            lowering.line(format!(".const {} {number} 0 0 0", NUMBERS + number));
        }
        lowering.block(&program.body);
        lowering.line("goto end");
        for (index, body) in program.functions.iter().enumerate() {
            lowering.line(format!("f{index}:"));
            (lowering.in_simple, lowering.returns) = (lowering.simple[index], 0);
            lowering.block(body);
            lowering.return_();
        }
        lowering.line("end:");
        lowering.line("OUT nop {TEX_SEM_WAIT}");
        lowering.out
    }

    fn line(&mut self, text: impl AsRef<str>) {
        self.out.push_str(text.as_ref());
        self.out.push('\n');
    }

    /// Computes the condition into the ALU result or a predicate.
    fn condition(&mut self, condition: &Condition, only_predicate: bool) -> Computed {
        let negated = self.choice.once_in(3);
        let compare = if negated { condition.compare.negated() } else { condition.compare };
        let op = match compare {
            Compare::Less => "LT",
            Compare::GreaterEqual => "GE",
            Compare::Equal => "EQ",
            Compare::NotEqual => "NE",
        };
        let swizzle = CHANNELS[condition.variable].repeat(3);
        let number = NUMBERS + condition.number;
        let (dest, name) = match self.choice.below(4) {
            0 => (format!("pred[{op}].g"), "pred.g"),
            1 => (format!("pred[{op}].b"), "pred.b"),
            _ if only_predicate => (format!("pred[{op}].r"), "pred.r"),
            _ => (format!("alu_result[{op}].r"), "alu"),
        };
        self.line(format!(
            "ALU {dest} = MAD src0.{swizzle}, src0.111, -src1.rrr : src0=temp[0] src1=const[{number}]"
        ));
        Computed { name, negated }
    }

    fn block(&mut self, statements: &[Statement]) {
        statements.iter().for_each(|statement| self.statement(statement));
    }

    /// Writes a block at the end of an `if`. Returns the number of pending endifs for ifs at the end of the block.
    fn block_of_if(&mut self, statements: &[Statement]) -> u32 {
        match statements.split_last() {
            Some((Statement::If(condition, then, otherwise), before)) if self.choice.once_in(2) => {
                self.block(before);
                self.if_open(condition, then, otherwise.as_deref())
            }
            _ => {
                self.block(statements);
                0
            }
        }
    }

    fn statement(&mut self, statement: &Statement) {
        match statement {
            Statement::Mix(_) | Statement::Step(_) => self.work(statement, ""),
            Statement::If(condition, then, otherwise) => {
                let computes = |block: &[Statement]| {
                    let work = |statement| matches!(statement, &Statement::Mix(_) | &Statement::Step(_));
                    block.len() < 3 && block.iter().all(work)
                };
                let other_side = otherwise.as_deref().unwrap_or_default();
                if computes(then) && computes(other_side) && self.choice.once_in(3) {
                    return self.if_predicated(condition, then, other_side);
                }
                match self.if_open(condition, then, otherwise.as_deref()) {
                    1 => self.line("endif"),
                    several => self.line(format!("endif {several}")),
                }
            }
            Statement::IfStatic(index, body) => {
                self.labels += 1;
                let label = format!("static{}", self.labels);
                self.line(format!("if bool[{index}] -> {label}"));
                self.block(body);
                self.line(format!("{label}:"));
            }
            Statement::Loop(count, body) => {
                let kind = if self.choice.once_in(2) { "loop" } else { "rep" };
                self.line(format!("{kind} int[{count}]"));
                self.block(body);
                self.line(format!("end{kind} int[{count}]"));
            }
            Statement::Break(condition) => self.leave("break", condition),
            Statement::Continue(condition) => self.leave("continue", condition),
            Statement::Call(index, None) if self.simple[*index] => {
                self.line(format!("call simple -> f{index}"));
            }
            Statement::Call(index, None) => self.line(format!("call f{index}")),
            Statement::Call(index, Some(condition)) => {
                let computed = self.condition(condition, false);
                self.line(format!("call if {} -> f{index}", computed.text()));
            }
            Statement::Return(None) => self.return_(),
            Statement::Return(Some(condition)) => self.return_if(condition),
            Statement::Exit(_) => unreachable!("no lane ends alone: not asked for"),
        }
    }

    /// Writes a statement that computes, under a predicate.
    fn work(&mut self, statement: &Statement, predicate: &str) {
        match statement {
            Statement::Mix(k) => {
                self.line(format!(
                    "ALU {predicate} temp[2].r = MAD src0.rrr, src1.rrr, src2.rrr : src0=temp[1] src1=const[0] \
                     src2=const[{}]",
                    NUMBERS + k
                ));
                self.line("ALU temp[2].r = MAD src0.rrr, src1.ggg, src0.000 : src0=temp[2] src1=const[0]");
                self.line("ALU temp[2].r = FRC src0.rrr : src0=temp[2]");
                self.line(format!(
                    "ALU {predicate} temp[1].r = MAD src0.rrr, src1.bbb, src0.000 : src0=temp[2] src1=const[0]"
                ));
            }
            Statement::Step(variable) => {
                let channel = CHANNELS[*variable];
                let swizzle = channel.repeat(3);
                self.line(format!(
                    "ALU {predicate} temp[2].r = MAD src0.{swizzle}, src0.111, src0.111 : src0=temp[0]"
                ));
                // The swizzle letter a reads the alpha half's source.
                self.line(
                    "ALU temp[2].r = MAD src0.rrr, src1.aaa, src0.000 : src0=temp[2]\n  + MAD src0.r, src0.r, \
                     src0.r : src1=const[0]",
                );
                self.line("ALU temp[2].r = FRC src0.rrr : src0=temp[2]");
                self.line(format!(
                    "ALU {predicate} temp[0].{channel} = MAD src0.rrr, src1.rrr, src0.000 : src0=temp[2] \
                     src1=const[1]"
                ));
            }
            other => unreachable!("{other:?} computes nothing"),
        }
    }

    /// Writes an if without flow: both sides run under a predicate.
    fn if_predicated(&mut self, condition: &Condition, then: &[Statement], otherwise: &[Statement]) {
        let computed = self.condition(condition, true);
        let holds = format!("({})", computed.text());
        let fails = format!("({})", Computed { negated: !computed.negated, ..computed }.text());
        then.iter().for_each(|statement| self.work(statement, &holds));
        otherwise.iter().for_each(|statement| self.work(statement, &fails));
    }

    /// Writes an `if` without its endif. Returns the number of levels that must close.
    fn if_open(&mut self, condition: &Condition, then: &[Statement], otherwise: Option<&[Statement]>) -> u32 {
        let computed = self.condition(condition, false);
        self.line(format!("if {}", computed.text()));
        let Some(otherwise) = otherwise else { return 1 + self.block_of_if(then) };
        self.block(then);
        self.line("else");
        1 + self.block_of_if(otherwise)
    }

    fn leave(&mut self, name: &str, condition: &Option<Condition>) {
        match condition {
            None => self.line(name),
            Some(condition) => {
                let computed = self.condition(condition, false);
                self.line(format!("{name} if {}", computed.text()));
            }
        }
    }

    /// Writes a return of all lanes. It also takes back the counts of the earlier conditional returns.
    fn return_(&mut self) {
        match (self.in_simple, self.returns) {
            (true, 0) => self.line("return simple"),
            (false, 0) => self.line("return"),
            (simple, before) => {
                let pop = before + u32::from(!simple);
                self.line(format!("FC JUMP FUNC=0xff A_OP=POP B_OP1=DECR POP={pop}"));
            }
        }
    }

    /// Writes a conditional return. Lanes that return wait as if a branch had switched them off. When all of them
    /// have returned, the thread returns. (CTM guide p. 36)
    fn return_if(&mut self, condition: &Condition) {
        let computed = self.condition(condition, false);
        let predicate = if computed.name == "alu" { String::new() } else { format!("({}) ", computed.name) };
        let jump = match self.returns + u32::from(!self.in_simple) {
            0 => String::new(),
            pop => format!(" B_OP1=DECR POP={pop}"),
        };
        self.line(format!("FC {predicate}JUMP FUNC={:#04x} A_OP=POP B_OP0=INCR{jump}", computed.jump_func()));
        self.returns += 1;
    }
}

/// Returns whether every call of the function includes all lanes of the caller.
fn only_called_always(program: &Program, function: usize) -> bool {
    fn always(block: &[Statement], function: usize) -> bool {
        block.iter().all(|statement| match statement {
            Statement::Call(index, condition) => *index != function || condition.is_none(),
            Statement::If(_, then, otherwise) => {
                always(then, function) && otherwise.as_ref().is_none_or(|block| always(block, function))
            }
            Statement::IfStatic(_, body) | Statement::Loop(_, body) => always(body, function),
            Statement::Mix(_)
            | Statement::Step(_)
            | Statement::Break(_)
            | Statement::Continue(_)
            | Statement::Return(_)
            | Statement::Exit(_) => true,
        })
    }
    always(&program.body, function) && program.functions.iter().all(|block| always(block, function))
}

struct Prepared {
    text: String,
    scope: InhibitScope,
    setup: Arc<Setup>,
}

impl Prepared {
    /// Returns `None` if the program is longer than the 512 slots.
    fn new(seed: u64, program: &Program) -> Option<Prepared> {
        let text = Lowering::program(program, seed);
        match assemble(&text) {
            Ok(assembled) => {
                let setup = Setup::new(&assembled.program).expect("the assembler gave it");
                let scope = Random::new(seed).one_of(&[InhibitScope::Frame, InhibitScope::All]);
                Some(Prepared { text, scope, setup: Arc::new(setup) })
            }
            Err(errors) if errors[0].message.contains("do not fit") => None,
            Err(errors) => panic!("seed {seed}: {}\n{text}", errors[0]),
        }
    }
}

impl LoweredProgram for Prepared {
    fn width(&self) -> usize {
        64
    }

    fn text(&self) -> String {
        format!("inhibit scope {:?}\n{}", self.scope, self.text)
    }

    /// Returns the final variables of every lane in one thread, in strict mode.
    fn outputs(&self, lanes: &[Lane]) -> Result<Vec<Lane>, String> {
        let bits = |value: i32| (value as f32).to_bits();
        let values = lanes.iter().map(|lane| [bits(lane[1]), bits(lane[2]), bits(lane[3]), 0]).collect();
        let inputs = vec![Input { temp: 0, values }];
        let hardware = Hardware { scope: self.scope, group_width: 64, ..Hardware::default() };
        let environment = Environment { hardware, ..Environment::default() }.into();
        let launch = Launch { environment, lanes: lanes.len(), inputs, columns: Vec::new() };
        let all = Mask::first(lanes.len());
        let options = Options::default();
        // The engines agree after intervals of any length in the same run. The lowest level has no compiled engine.
        let compiled =
            Level::available().into_iter().skip(1).map(|level| (Engine::LockstepCompiled, Some(level)));
        for (engine, level) in compiled.chain([(Engine::Lockstep, None)]) {
            let lockstep = Options { engine, level, ..options };
            run(&self.setup, &launch, &lockstep).map_err(|error| error.to_string())?;
        }
        let fast = run(&self.setup, &launch, &options).map_err(|error| error.to_string())?;
        let mut group = launch.group(&self.setup, &options, 0, all);
        let mut reference = FlowTrace::default();
        group.run(&mut reference).map_err(|trap| trap.to_string())?;
        let mut trace = FlowTrace::default();
        run_watched(&self.setup, &launch, &options, Watch::of(&mut trace))
            .map_err(|error| error.to_string())?;
        if trace != reference {
            return Err(format!("the fast engine announces {trace:?}, not {reference:?}"));
        }
        if (fast.statistics, &fast.report) != (group.statistics(), &group.report()) {
            return Err(format!(
                "the fast engine counts {:?}, not {:?}",
                fast.statistics,
                group.statistics()
            ));
        }
        if group.flow().active() != all || !group.flow().stack().is_empty() {
            return Err(format!("at the end: active {}, {:?}", group.flow().active(), group.flow().stack()));
        }
        let number = |lane: usize, temp: u8, channel: usize| {
            f32::from_bits(group.temp(temp, channel, LaneNumber(lane as u8))) as i32
        };
        let variables =
            |lane| [number(lane, 1, 0), number(lane, 0, 0), number(lane, 0, 1), number(lane, 0, 2)];
        Ok((0..lanes.len()).map(variables).collect())
    }
}

fn program(seed: u64) -> Program {
    generate(seed, Shape { returns: Returns::AtTop, ..Shape::of(seed) })
}

#[test]
fn structured_programs_equal_the_direct_evaluation_of_their_tree() {
    Campaign::from_environment(2_000).run_against_evaluation("reconverge-r500", program, Prepared::new);
}

#[test]
fn a_lane_alone_gives_the_same_as_all_lanes_together() {
    Campaign::from_environment(2_000).tenth().run_lanes_alone("reconverge-r500", program, Prepared::new);
}

#[test]
fn every_idiom_is_written() {
    let texts: String = (0..300).map(|seed| Lowering::program(&program(seed), seed)).collect();
    #[rustfmt::skip]
    let idioms = [
        "if alu\n", "if !alu\n", "if pred.g\n", "if bool[", "else\n", "endif\n", "endif 2\n", "endif 3\n", "loop int", "rep int",
        "break\n", "break if ", "continue\n", "continue if ", "call f", "call if ", "call simple", "return\n", "return simple",
        "A_OP=POP B_OP0=INCR", "POP=2", "ALU (pred.r)", "ALU (!pred.g)",
    ];
    for idiom in idioms {
        assert!(texts.contains(idiom), "{idiom}");
    }
}
