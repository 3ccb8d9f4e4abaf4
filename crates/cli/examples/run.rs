//! Runs a kernel with a buffer on two engines, prints its output and counts, and shows the trap that a buffer of
//! insufficient size causes.
//!
//! `cargo run -p reconverge --example run`

use std::error::Error;
use std::io::Write;

use reconverge::{Engine, Error as Failure, OpenOptions, RunOptions, assemble};

/// Computes the number of Collatz steps for each thread's number. The lanes of a warp leave the loop at different
/// times.
const SOURCE: &str = include_str!("../../../docs/samples/collatz.s");

fn main() -> Result<(), Box<dyn Error>> {
    show(&mut std::io::stdout())
}

pub(crate) fn show(out: &mut dyn Write) -> Result<(), Box<dyn Error>> {
    let program = assemble(SOURCE, &OpenOptions::default())?.only_program()?;
    let buffer = [0u32; 12];
    let launch = program.launch().block(12, 1, 1)?.buffer("steps", &buffer[..])?;

    let outcome = launch.run(&RunOptions::default())?;
    let steps: Vec<u32> = outcome.output("steps").ok_or("no such output")?.words().collect();
    for (number, steps) in (1..).zip(&steps) {
        writeln!(out, "{number:>2} reaches 1 in {steps:>2} steps")?;
    }
    let counts = outcome.statistics;
    let (issued, executed, divergent) =
        (counts.instructions, counts.lane_instructions, counts.divergent_branches);
    writeln!(
        out,
        "{issued} instructions issued, {executed} lane executions, {divergent} divergent branches"
    )?;

    let reference = launch.run(&RunOptions::default().engine(Engine::Reference))?;
    assert_eq!(reference, outcome);
    writeln!(out, "the reference interpreter gives the same")?;

    let small = program.launch().block(12, 1, 1)?.buffer("steps", "u32[4]")?;
    match small.run(&RunOptions::default()) {
        Err(Failure::Trap(trap)) => {
            writeln!(out, "\n{trap}")?;
            writeln!(
                out,
                "line {} of the source: {}",
                trap.line().unwrap_or(0),
                trap.instruction().unwrap_or("?")
            )?;
        }
        other => writeln!(out, "expected a trap, found {other:?}")?,
    }
    Ok(())
}
