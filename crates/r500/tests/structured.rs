//! Generated structured programs, lowered to R500 in its canonical constructs, equal a direct evaluation of their tree.

use std::fmt::Write;
use std::sync::Arc;

use reconverge_r500::flow::InhibitScope;
use reconverge_r500::launch::{Input, Launch, Options, RunError, Setup, run};
use reconverge_r500::text::assemble;
use reconverge_simt::Mode;
use reconverge_testkit::{Compare, Condition, Lane, Program, Random, Shape, Statement, evaluate, generate};

/// Writes a tree as R500 source. r0 holds variables 1 to 3 in r, g, b; r1.r is the trace.
struct Lowering<'a> {
    out: String,
    labels: usize,
    /// Chooses between equivalent idioms.
    choice: &'a mut Random,
    loops: Vec<&'static str>,
}

const CHANNELS: [&str; 4] = ["", "r", "g", "b"];

impl Lowering<'_> {
    fn program(program: &Program, seed: u64) -> String {
        let mut choice = Random::new(!seed);
        let mut lowering = Lowering { out: String::new(), labels: 0, choice: &mut choice, loops: Vec::new() };
        for count in 0..6 {
            let _ = writeln!(lowering.out, ".int {count} {count} 3 -1");
        }
        for bit in 0..32 {
            let _ = writeln!(lowering.out, ".bool {bit} {}", program.booleans >> bit & 1);
        }
        lowering.out += ".const 0 5.0 0.000244140625 4096.0 0.0625\n.const 1 16.0 0 0 0\n";
        for number in 0..64 {
            let _ = writeln!(lowering.out, ".const {} {number} 0 0 0", 64 + number);
        }
        lowering.block(&program.body);
        lowering.out += "goto end\n";
        for (index, body) in program.functions.iter().enumerate() {
            let _ = writeln!(lowering.out, "f{index}:");
            lowering.block(body);
            lowering.out += "return\n";
        }
        // The alpha half reads the trace through src1 of the RGB address word.
        lowering.line("end:");
        lowering
            .line("OUT out[A].rgb = MAX*off src0.rgb, src0.rgb : src0=temp[0] src1=temp[1] {TEX_SEM_WAIT}");
        lowering.line("  + out[A].a = MAX*off src1.r, src1.r");
        lowering.out
    }

    fn block(&mut self, statements: &[Statement]) {
        statements.iter().for_each(|statement| self.statement(statement));
    }

    fn line(&mut self, text: &str) {
        self.out.push_str(text);
        self.out.push('\n');
    }

    /// Computes the condition into the ALU result or a predicate; gives what the next FC instruction names.
    fn condition(&mut self, condition: &Condition) -> &'static str {
        let op = match condition.compare {
            Compare::Less => "LT",
            Compare::GreaterEqual => "GE",
            Compare::Equal => "EQ",
            Compare::NotEqual => "NE",
        };
        let swizzle = CHANNELS[condition.variable].repeat(3);
        let number = 64 + condition.number;
        let (dest, name) = match self.choice.below(3) {
            0 => (format!("pred[{op}].g"), "pred.g"),
            _ => (format!("alu_result[{op}].r"), "alu"),
        };
        let text = format!(
            "ALU {dest} = MAD src0.{swizzle}, src0.111, -src1.rrr : src0=temp[0] src1=const[{number}]"
        );
        self.line(&text);
        name
    }

    fn statement(&mut self, statement: &Statement) {
        match statement {
            Statement::Mix(k) => {
                let text = format!(
                    "ALU temp[1].r = MAD src0.rrr, src1.rrr, src2.rrr : src0=temp[1] src1=const[0] src2=const[{}]",
                    64 + k
                );
                self.line(&text);
                self.line("ALU temp[1].r = MAD src0.rrr, src1.ggg, src0.000 : src0=temp[1] src1=const[0]");
                self.line("ALU temp[1].r = FRC src0.rrr : src0=temp[1]");
                self.line("ALU temp[1].r = MAD src0.rrr, src1.bbb, src0.000 : src0=temp[1] src1=const[0]");
            }
            Statement::Step(variable) => {
                let channel = CHANNELS[*variable];
                let swizzle = channel.repeat(3);
                let text = format!("ALU temp[2].r = MAD src0.{swizzle}, src0.111, src0.111 : src0=temp[0]");
                self.line(&text);
                self.line("ALU temp[2].r = MAD src0.rrr, src1.aaa, src0.000 : src0=temp[2]\n  + MAD src0.r, src0.r, src0.r : src1=const[0]");
                self.line("ALU temp[2].r = FRC src0.rrr : src0=temp[2]");
                let text = format!(
                    "ALU temp[0].{channel} = MAD src0.rrr, src1.rrr, src0.000 : src0=temp[2] src1=const[1]"
                );
                self.line(&text);
            }
            Statement::If(condition, then, otherwise) => {
                let name = self.condition(condition);
                self.line(&format!("if {name}"));
                self.block(then);
                if let Some(otherwise) = otherwise {
                    self.line("else");
                    self.block(otherwise);
                }
                self.line("endif");
            }
            Statement::IfStatic(index, body) => {
                self.labels += 1;
                let label = format!("static{}", self.labels);
                self.line(&format!("if bool[{index}] -> {label}"));
                self.block(body);
                self.line(&format!("{label}:"));
            }
            Statement::Loop(count, body) => {
                let kind = if self.choice.once_in(2) { "loop" } else { "rep" };
                self.line(&format!("{kind} int[{count}]"));
                self.loops.push(kind);
                self.block(body);
                self.loops.pop();
                self.line(&format!("end{kind} int[{count}]"));
            }
            Statement::Break(condition) => self.leave("break", condition),
            Statement::Continue(condition) => self.leave("continue", condition),
            Statement::Call(index, None) => self.line(&format!("call f{index}")),
            Statement::Call(index, Some(condition)) => {
                let name = self.condition(condition);
                self.line(&format!("call if {name} -> f{index}"));
            }
        }
    }

    fn leave(&mut self, name: &str, condition: &Option<Condition>) {
        match condition {
            None => self.line(name),
            Some(condition) => {
                let condition = self.condition(condition);
                self.line(&format!("{name} if {condition}"));
            }
        }
    }
}

fn lanes(seed: u64, count: usize) -> Vec<Lane> {
    let mut random = Random::new(seed.rotate_left(32));
    (0..count)
        .map(|_| [0, random.below(16) as i32, random.below(16) as i32, random.below(16) as i32])
        .collect()
}

fn launch(lanes: &[Lane], options: Options) -> Launch {
    let bits = |value: i32| (value as f32).to_bits();
    let values = lanes.iter().map(|lane| [bits(lane[1]), bits(lane[2]), bits(lane[3]), 0]).collect();
    Launch { lanes: lanes.len(), inputs: vec![Input { temp: 0, values }], options, ..Launch::default() }
}

fn outputs(setup: &Arc<Setup>, lanes: &[Lane], options: Options) -> Result<Vec<Lane>, RunError> {
    let outcome = run(setup, &launch(lanes, options))?;
    let number = |bits: u32| f32::from_bits(bits) as i32;
    Ok(outcome.lanes.iter().map(|lane| lane.color[0].map(number)).map(|[r, g, b, a]| [a, r, g, b]).collect())
}

/// `None` for a program that is longer than the 512 slots.
fn setup(seed: u64) -> Option<(Program, Arc<Setup>, String)> {
    let program = generate(seed, Shape::default());
    let source = Lowering::program(&program, seed);
    match assemble(&source) {
        Ok(assembled) => Some((program, Arc::new(Setup::new(&assembled.program).unwrap()), source)),
        Err(errors) if errors[0].message.contains("do not fit") => None,
        Err(errors) => panic!("seed {seed}: {errors:?}\n{source}"),
    }
}

#[test]
fn structured_programs_equal_the_direct_evaluation_of_their_tree() {
    let (mut done, mut too_long) = (0, 0);
    for seed in 0.. {
        let Some((program, setup, source)) = setup(seed) else {
            too_long += 1;
            continue;
        };
        let mut random = Random::new(seed + 1);
        let lanes = lanes(seed, 1 + random.below(64) as usize);
        let scope = if random.once_in(2) { InhibitScope::Frame } else { InhibitScope::All };
        let group_width = 4 * (1 + random.below(16) as usize);
        let options = Options { mode: Mode::Strict, scope, group_width, ..Options::default() };
        let expected: Vec<Lane> = lanes.iter().map(|lane| evaluate(&program, *lane)).collect();
        match outputs(&setup, &lanes, options) {
            Ok(found) => assert_eq!(found, expected, "seed {seed}, {options:?}\n{source}"),
            Err(error) => panic!("seed {seed}: {error}\n{source}"),
        }
        done += 1;
        if done == 2_000 {
            break;
        }
    }
    println!("{done} programs, {too_long} were too long");
}

#[test]
fn a_lane_alone_gives_the_same_as_all_lanes_together() {
    for (seed, (_, setup, source)) in (10_000..).filter_map(|seed| Some((seed, setup(seed)?))).take(300) {
        let lanes = lanes(seed, 16);
        let options = Options { mode: Mode::Strict, group_width: 16, ..Options::default() };
        let together = outputs(&setup, &lanes, options).unwrap();
        for (lane, together) in lanes.iter().zip(together) {
            let alone = outputs(&setup, std::slice::from_ref(lane), options).unwrap();
            assert_eq!(alone, [together], "seed {seed}\n{source}");
        }
    }
}
