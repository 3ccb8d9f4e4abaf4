//! The programs of `bench --micro`: each runs, and executes its instruction as often as the calculation of costs
//! assumes.

use reconverge_simt::{Engine, Options};
use reconverge_workbench::micro::{Row, rows, unit};

/// Returns the number of instructions that a run issues to groups.
fn instructions(row: &Row, rounds: u32, alone: bool, engine: Engine) -> u64 {
    let what = format!("{}, {}", row.isa, row.name);
    let session = row.prepare(rounds, alone).unwrap_or_else(|error| panic!("{what}: {error}"));
    let outcome = session.run(&Options { engine, race_check: false, ..Options::default() });
    outcome.unwrap_or_else(|error| panic!("{what}: {error}")).statistics().instructions
}

#[test]
fn every_program_executes_its_instruction_as_often_as_it_says() {
    for row in rows() {
        let rounds = 2;
        let [whole, alone] = [false, true].map(|alone| instructions(row, rounds, alone, Engine::Fast));
        let each = (whole - alone) as f64 / row.executions(rounds) as f64;
        // An if consists of a branch, its body and the join. R700 adds the clause to the instruction.
        let most = if row.name.starts_with("if") { 6.0 } else { 2.0 };
        assert!((1.0..=most).contains(&each), "{}, {}: {each} instructions", row.isa, row.name);
    }
}

#[test]
fn names_are_unique_and_the_unit_is_an_addition() {
    let names: std::collections::BTreeSet<_> = rows().map(|row| (row.isa.name(), row.name)).collect();
    assert_eq!(names.len(), rows().count());
    assert!(unit().source(1, false).contains("add b32 $r8 "));
}
