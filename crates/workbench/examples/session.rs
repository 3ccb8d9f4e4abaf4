//! Steps one program on each of the three machines: inspects why lanes wait, follows a lane, takes a snapshot, runs
//! further, and restores the snapshot.
//!
//! `cargo run -p reconverge-workbench --example session`

use std::error::Error;
use std::fmt::Write;

use reconverge_isa::Isa;
use reconverge_simt::{Lane, Mask, Options, Why};
use reconverge_workbench::kernels::find;
use reconverge_workbench::session::{Stepping, Stop, Stride};
use reconverge_workbench::{Style, machine};

fn main() -> Result<(), Box<dyn Error>> {
    for isa in Isa::ALL {
        println!("{}", walk(isa)?);
    }
    Ok(())
}

/// Returns a walk through the Mandelbrot kernel, as text.
pub(crate) fn walk(isa: Isa) -> Result<String, Box<dyn Error>> {
    let kernel = find(isa, "mandel").ok_or("every machine has it")?;
    let opened = kernel.open()?;
    let program = &opened.image.programs[0];
    let style = Style { structure: true, ..Default::default() };
    let lines = machine(isa).disassemble(&opened.target, program, style)?.lines(&program.words);
    let line = |pc: u32| lines.iter().find(|line| line.address == Some(pc)).map_or("", |line| &line.text);

    let mut text = format!("{isa}: ");
    let mut stepping = kernel.prepare(1 << 10)?.start(&Options::default())?;
    writeln!(text, "{} groups", stepping.groups())?;

    // Runs until the lanes of the first group diverge.
    let parted = |stepping: &Stepping, group: usize| {
        let all = Mask::first(stepping.lanes(group).len());
        stepping.issue(group).is_some_and(|issue| issue.mask.any() && issue.mask != all)
    };
    let stop =
        stepping.run_until(1_000_000, &mut |stepping, group| parted(stepping, group), &mut |_, _| {})?;
    let group = stepping.current().filter(|_| stop == Stop::Predicate).ok_or("no lanes part")?;
    let issue = stepping.issue(group).ok_or("nothing is issued")?;
    writeln!(text, "group {group} at {}: {} for lanes {}", issue.pc, line(issue.pc), issue.mask)?;

    // Finds out why one of the other lanes does not run.
    let lanes = stepping.lanes(group).len();
    let waits = |lane: &Lane| !issue.mask.has(*lane) && lane.index() < lanes;
    let waiting = (0..64).map(Lane).find(waits).ok_or("all lanes run")?;
    let why = stepping.why(group, waiting).ok_or("the group runs")?;
    writeln!(text, "lane {} does not run: {}", waiting.0, in_words(why))?;
    for row in stepping.stack(group) {
        writeln!(text, "  {} {:?} {:?}", row.kind, row.mask.map(|mask| mask.to_string()), row.count)?;
    }

    // Runs until a lane that runs has run again, then goes back.
    let here = stepping.snapshot();
    let before = stepping.statistics().instructions;
    let lane = issue.mask.lanes().next().ok_or("some lane runs")?;
    for _ in 0..3 {
        stepping.step(group, Stride::Lane(lane), &mut |_, _| {})?;
    }
    let after = stepping.statistics().instructions;
    writeln!(text, "lane {} ran 3 times in {} instructions", lane.0, after - before)?;
    stepping.restore(&here);
    assert_eq!(stepping.issue(group), Some(issue));
    writeln!(text, "back at {}, after {} instructions", issue.pc, stepping.statistics().instructions)?;

    // Runs to the end. The steps leave the same results as a run.
    stepping.run_until(u64::MAX, &mut |_, _| false, &mut |_, _| {})?;
    let ran = kernel.prepare(1 << 10)?.run(&Options::default())?;
    assert!(kernel.counts(&*stepping.outcome())? == kernel.counts(&*ran)?);
    writeln!(text, "at the end after {} instructions, as a run", stepping.statistics().instructions)?;
    Ok(text)
}

fn in_words(why: Why) -> String {
    match why {
        Why::Active => "it is active".to_owned(),
        Why::Branch { depth } => format!("a branch switched it off, {depth} constructs ago"),
        Why::Break => "it has left the loop".to_owned(),
        Why::Continue => "it waits for the loop's next iteration".to_owned(),
        Why::Parked { pc } => format!("it waits at {pc}"),
        Why::Uncovered => "it lies outside the primitive".to_owned(),
        Why::Exited => "it has finished".to_owned(),
    }
}
