//! Steps a program until its lanes diverge, shows why each lane runs or waits, and continues from a snapshot.
//!
//! `cargo run -p reconverge --example step`

use std::error::Error;
use std::io::Write;

use reconverge::{Lane, OpenOptions, RunOptions, Stop, Why, assemble};

/// An if inside an else: eight lanes on three paths.
const SOURCE: &str = include_str!("../../../docs/samples/nested-if.tesla.s");

fn main() -> Result<(), Box<dyn Error>> {
    show(&mut std::io::stdout())
}

pub(crate) fn show(out: &mut dyn Write) -> Result<(), Box<dyn Error>> {
    let program = assemble(SOURCE, &OpenOptions::default())?.only_program()?;
    let launch = program.launch().block(8, 1, 1)?.buffer("out", "u32[8]")?;
    let mut session = launch.session(&RunOptions::default())?;

    // Runs to the first instruction that only some of the lanes execute.
    let lanes = session.lanes(0).len();
    let stop = session.run_until(1000, |session, group| {
        session.issue(group).is_some_and(|issue| (issue.mask.count() as usize) < lanes)
    })?;
    assert_eq!(stop, Stop::Predicate);
    let issue = session.issue(0).ok_or("the group has ended")?;
    writeln!(out, "next: {} {} for lanes {}", program.spelled(issue.pc), session.code(issue.pc), issue.mask)?;
    let register = session.register("$r0").ok_or("no such register")?;
    let values = session.read(0, register).ok_or("no such register")?;
    for (lane, value) in (0..).map(Lane).zip(values).take(lanes) {
        let why = match session.why(0, lane).ok_or("no such lane")? {
            Why::Active => "active".to_owned(),
            Why::Parked { pc } => format!("resumes at {} {}", program.spelled(pc), session.code(pc)),
            other => format!("{other:?}"),
        };
        writeln!(out, "  lane {}: $r0 = {value}, {why}", lane.0)?;
    }

    let here = session.snapshot();
    session.run_until(u64::MAX, |_, _| false)?;
    writeln!(
        out,
        "end: {:?}",
        session.outcome().output("out").ok_or("no such output")?.words().collect::<Vec<_>>()
    )?;

    // Restores the snapshot and runs again. Lane 7 now computes and stores the values of lane 3.
    session.restore(&here);
    session.change(0, register, Lane(7), 3)?;
    session.run_until(u64::MAX, |_, _| false)?;
    writeln!(
        out,
        "end, after $r0 = 3 in lane 7: {:?}",
        session.outcome().output("out").ok_or("none")?.words().collect::<Vec<_>>()
    )?;
    Ok(())
}
