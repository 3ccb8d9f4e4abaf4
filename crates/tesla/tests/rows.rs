//! Executes every row of the tables: the example of the coverage page, as a program with everything bound.

mod coverage;

use std::sync::Arc;

use reconverge_isa::Program;
use reconverge_simt::memory::{Buffer, Memory};
use reconverge_simt::texture::{Image, Sampler};
use reconverge_simt::{Engine, Mode, Options};
use reconverge_tesla::decode::decode;
use reconverge_tesla::fidelity;
use reconverge_tesla::inst::{Chip, Stage};
use reconverge_tesla::launch::{Compute, Fragment, Geometry, Launch, Outcome, RunError, Setup, Vertex};
use reconverge_tesla::run::run;
use reconverge_tesla::text::assemble;

/// An encoding with its example, and the chip and stage for which it exists.
struct Example {
    id: String,
    text: String,
    chip: Chip,
    stage: Stage,
}

/// Returns the last of the names in a column; all of them include the newest chip and compute programs.
fn last(column: &str, all: &'static str) -> String {
    if column == "all" { all.to_owned() } else { column.split(' ').next_back().unwrap().to_owned() }
}

fn examples() -> Vec<Example> {
    let page = coverage::coverage();
    let lines = page.lines().filter(|line| {
        line.starts_with("| s.")
            || line.starts_with("| i.")
            || line.starts_with("| l.")
            || line.starts_with("| c.")
    });
    lines
        .map(|line| {
            let columns: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
            Example {
                id: columns[0].to_owned(),
                text: columns[1].trim_matches('`').to_owned(),
                stage: Stage::from_name(&last(columns[2], "CP")).unwrap(),
                chip: Chip::from_name(&last(columns[3], "GT215")).unwrap(),
            }
        })
        .collect()
}

fn setup(chip: Chip) -> Setup {
    let mut setup = Setup::new(chip);
    setup.local_bytes = 0x100;
    let image = Image::flat(1, 1, vec![[0x3f80_0000; 4]]).unwrap();
    setup.textures.bind(0, Arc::new(image), Sampler::default());
    setup
}

/// Runs the example and then `exit` in one lane. Returns the outcome, or the reason for a trap.
fn execute(example: &Example) -> Result<Outcome, String> {
    let Example { id, text, chip, stage } = example;
    // A short instruction is written twice, so that the next instruction starts at an even word.
    let twice = if text.starts_with("short") { format!("{text}\n{text}") } else { text.clone() };
    let assembled = assemble(&format!("{twice}\nexit nop\n"), *chip, *stage);
    let words = assembled.unwrap_or_else(|errors| panic!("{id}: {errors:?}")).words();
    let program = Program::from_words(words);
    let launch = match stage {
        Stage::Compute => {
            let mut compute = Compute::of(&program, *chip).unwrap();
            compute.setup = setup(*chip).into();
            compute.segments.0[0] = compute.segments.0[14];
            compute.memory = Memory::new(vec![Buffer::new(0, vec![0; 64])]).unwrap();
            Launch::Compute(compute)
        }
        Stage::Fragment => Launch::Fragment(Fragment::new(setup(*chip), 1)),
        Stage::Vertex => Launch::Vertex(Vertex {
            setup: setup(*chip).into(),
            lanes: 1,
            inputs: (0..4).map(|word| (word, vec![0])).collect(),
        }),
        Stage::Geometry => Launch::Geometry(Geometry {
            setup: setup(*chip).into(),
            lanes: 1,
            inputs: (0..4).map(|word| (word, vec![0])).collect(),
            vertices: vec![0; 4],
        }),
    };
    let options =
        Options { mode: Mode::Lenient, watchdog: 100, engine: Engine::Lockstep, ..Options::default() };
    let name =
        decode([program.words[0], program.words[1]], *chip, *stage).map(|inst| fidelity::of(&inst.op).0);
    let outcome = run(&program, launch, &options).map_err(|error| match error {
        RunError::Trap(trap) => trap.trap.cause.to_string(),
        RunError::Launch(error) => panic!("{id}: {error}"),
        RunError::Differ(difference) => panic!("{id}: {difference}"),
        RunError::Fault(fault) => panic!("{id}: {fault}"),
    })?;
    assert!(outcome.report.operations.contains_key(name.unwrap()), "{id} was not executed");
    Ok(outcome)
}

#[test]
fn every_row_is_executed() {
    let examples = examples();
    assert!(examples.len() >= 214, "{} examples", examples.len());
    let trapped: Vec<(&str, String)> =
        examples.iter().filter_map(|example| Some((example.id.as_str(), execute(example).err()?))).collect();
    let expected: &[(&str, &str)] = &[
        ("s.trap", "TRAP_INSTRUCTION"),
        // No document describes coverage samples.
        ("l.texcsaa", "texcsaa: not documented"),
        // The target is the instruction's own address, so that it never ends.
        ("c.bra", "TIMEOUT"),
        ("c.call", "TIMEOUT"),
        ("c.quadon", "QUADON_ACTIVE"),
        ("c.quadpop", "STACK_UNDERFLOW"),
        ("c.trap", "TRAP_INSTRUCTION"),
        ("c.bra.c", "TIMEOUT"),
    ];
    assert_eq!(trapped.len(), expected.len(), "{trapped:?}");
    for ((id, cause), (expected_id, expected_cause)) in trapped.iter().zip(expected) {
        assert!(id == expected_id && cause.starts_with(expected_cause), "{id}: {cause}");
    }
}
