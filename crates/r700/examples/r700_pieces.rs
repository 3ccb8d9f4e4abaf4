//! Runs a launch of more lanes than memory can hold at once: `r700_pieces [LANES [LANES A PIECE]]`; the defaults are
//! 2^26 and 2^16.
//!
//! Every lane returns three times its number plus one. The program compares the sum of all results.

use std::ops::Range;
use std::process::ExitCode;

use reconverge_isa::Program;
use reconverge_r700::chip::Chip;
use reconverge_r700::code::ExportKind;
use reconverge_r700::launch::{Input, Launch, Stage};
use reconverge_r700::outcome::Outcome;
use reconverge_r700::run::run_in_pieces;
use reconverge_r700::text::assemble;
use reconverge_simt::Engine;
use reconverge_simt::Options;

const SOURCE: &str = "ALU:
 0 t: MULLO_UINT R0.x, R0.x, (3).x
 1 x: ADD_INT R0.x, R0.x, 1
EXPORT_DONE: PIXEL[0], R0.x___ END_OF_PROGRAM
";

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse().expect("a number"));
    let lanes = arguments.next().unwrap_or(1 << 26);
    let piece = arguments.next().unwrap_or(1 << 16);
    let program = Program::from_words(assemble(SOURCE, Chip::RV770).expect("it assembles").words);
    let mut launch = Launch::new(Chip::RV770, Stage::Pixel, lanes);
    (launch.environment_mut().num_gprs, launch.environment_mut().clause_temps) = (1, 0);
    let options = Options { engine: Engine::Fast, ..Options::default() };
    let inputs = |lanes: Range<usize>| {
        vec![Input { gpr: 0, values: lanes.map(|lane| [lane as u32, 0, 0, 0]).collect() }]
    };
    let mut sum = 0u64;
    let done = |_: Range<usize>, left: Outcome| {
        let pixels = left.export(ExportKind::Pixel, 0).expect("it exports");
        sum += pixels.values.iter().map(|value| u64::from(value[0])).sum::<u64>();
    };
    let whole = run_in_pieces(&program, &launch, &options, piece, inputs, done).expect("it ends");
    let expected: u64 = (0..lanes).map(|lane| u64::from((lane as u32).wrapping_mul(3).wrapping_add(1))).sum();
    println!("{lanes} lanes, {} wavefront instructions: sum {sum}", whole.statistics.instructions);
    if sum == expected { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
