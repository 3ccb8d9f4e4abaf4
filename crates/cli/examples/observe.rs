//! Observes one program on three machines: prints each divergence and reconvergence, and the stack entries that each
//! machine pushes.
//!
//! `cargo run -p reconverge --example observe`

use std::error::Error;
use std::io::Write;

use reconverge::{Event, Observed, OpenOptions, RunOptions, assemble};

/// An if inside an else: eight lanes on three paths. Each launch file states the inputs and the expected outputs.
const SAMPLES: [(&str, &str); 3] = [
    (
        include_str!("../../../docs/samples/nested-if.r500.s"),
        include_str!("../../../docs/samples/nested-if.r500.toml"),
    ),
    (
        include_str!("../../../docs/samples/nested-if.r700.s"),
        include_str!("../../../docs/samples/nested-if.r700.toml"),
    ),
    (
        include_str!("../../../docs/samples/nested-if.tesla.s"),
        include_str!("../../../docs/samples/nested-if.tesla.toml"),
    ),
];

fn main() -> Result<(), Box<dyn Error>> {
    show(&mut std::io::stdout())
}

pub(crate) fn show(out: &mut dyn Write) -> Result<(), Box<dyn Error>> {
    for (source, launch) in SAMPLES {
        let program = assemble(source, &OpenOptions::default())?.only_program()?;
        let launch = program.launch_from(launch)?;
        writeln!(out, "{}", program.file().isa())?;

        let (mut at, mut issued, mut text) = (0, 0, String::new());
        let outcome = launch.observe(&RunOptions::default(), Observed::Flow, |_group, event| {
            let happened = match event {
                Event::Issue { pc, .. } => {
                    (at, issued) = (pc, issued + 1);
                    return;
                }
                Event::Diverge { taken, not } => format!("lanes {taken} first, then {not}"),
                Event::Resume { mask } => format!("lanes {mask} run, the others wait"),
                Event::Reconverge { mask } => format!("lanes {mask} are together"),
                Event::Push { kind } => format!("push {kind}"),
                _ => return,
            };
            text += &format!("  {:>5}: {happened}\n", program.spelled(at));
        })?;
        assert!(outcome.mismatches.is_empty(), "{:?}", outcome.mismatches);
        writeln!(out, "{text}  {issued} instructions, the expected outputs")?;
    }
    Ok(())
}
