//! Runs the launch of a source, compares the results with the expected results, and records the run for the page.

use reconverge_isa::Program;
use reconverge_isa::limits::LANES;
use reconverge_simt::Options;
use reconverge_workbench::error::Error;
use reconverge_workbench::launch::{LaunchFile, choose_program};
use reconverge_workbench::report::{Bounds, Report, ReportOutcome, Subject};
use reconverge_workbench::result::RunResult;
use reconverge_workbench::values::Files;
use reconverge_workbench::{Opened, Session};
use serde::Serialize;

use crate::error::{FaultyPart, PlayError, in_place};
use crate::given::{opened, read, with_machine};

/// Maximum number of steps, values and bytes in a recorded run. A browser opens a page with a run of this size in less
/// than a second.
const RECORDED: Bounds = Bounds { steps: 50_000, values: 750_000, bytes: 5_000_000 };

/// The page records a short run without a request of the user. In a short run, all groups together issue at most this
/// number of instructions.
const AT_ONCE: u64 = 2_000_000;

/// Stands for the folder of a launch file. In the playground, this folder contains no files.
struct InPlace;

impl Files for InPlace {
    fn read(&self, _: &str) -> Result<Vec<u8>, String> {
        Err("the playground has no files: state the values in the launch".to_owned())
    }
}

/// Parses a launch file. If the launch file does not state a machine, uses the machine that the source states.
///
/// # Errors
/// Returns an error if the launch file cannot be parsed. Also returns an error if neither the launch file nor the
/// source states a machine.
fn launch_of(launch: &str, source: &str) -> Result<LaunchFile, PlayError> {
    let Some((text, added)) = with_machine(launch, source) else {
        // The expanded source may state the machine. So if the macros of the source cannot be expanded, the function
        // reports the error of the expansion and not the missing machine.
        read(source).map_err(|errors| PlayError::source(source, &errors))?;
        let message = "no machine is stated: choose one, or begin the program with .isa or .chip";
        return Err(PlayError::of(FaultyPart::Launch, message));
    };
    let lines = text[..added].matches('\n').count();
    let parsed = LaunchFile::parse(&text).map_err(|error| PlayError::launch_file(&error, lines))?;
    LANES.check(threads(&text)).map_err(|exceeded| PlayError::of(FaultyPart::Launch, exceeded))?;
    Ok(parsed)
}

/// Returns the number of threads in all blocks of a Tesla kernel. The command line does not limit this number. The
/// playground limits this number, because a person waits until all threads have run.
fn threads(launch: &str) -> u64 {
    let Ok(fields) = LaunchFile::fields(launch) else { return 0 };
    let sizes = ["grid", "block"].into_iter().filter_map(|name| fields.get(name)?.as_array());
    let sizes = sizes.flatten().filter_map(|size| u64::try_from(size.as_integer()?).ok());
    sizes.fold(1, u64::saturating_mul)
}

/// A launch with its program, ready to run.
struct PreparedLaunch {
    launch: LaunchFile,
    opened: Opened,
    program: Program,
}

fn prepared(source: &str, launch: &str) -> Result<PreparedLaunch, PlayError> {
    let launch = launch_of(launch, source)?;
    let opened =
        opened(source, &launch).map_err(|error| PlayError::open(FaultyPart::Source, source, &error))?;
    let kernel = launch.common.kernel.as_deref();
    if kernel.is_none() && opened.image.programs.len() > 1 {
        let names: Vec<&str> =
            opened.image.programs.iter().filter_map(|program| program.name.as_deref()).collect();
        let message = format!(
            "the source has several programs: add a line such as kernel = \"{}\" to the launch; there is {}",
            names.first().unwrap_or(&"main"),
            names.join(", ")
        );
        return Err(PlayError::of(FaultyPart::Launch, message));
    }
    let program = choose_program(&opened.image, kernel)?.clone();
    Ok(PreparedLaunch { launch, opened, program })
}

/// The trap that ended a run.
#[derive(Clone, Debug, Serialize)]
pub struct TrapShown {
    /// The trap in one sentence.
    pub message: String,
    /// The line of the source.
    pub line: Option<usize>,
    /// Details about the trap: the instruction, the registers of the instruction, and the nearest memory.
    pub details: Vec<String>,
    /// Whether the watchdog stopped the program because the program may be endless.
    pub endless: bool,
}

/// The results of a run.
#[derive(Clone, Debug, Default, Serialize)]
pub struct LaunchReply {
    /// The machine.
    pub isa: &'static str,
    /// The chip, or `None` if neither the source nor the launch file states the chip.
    pub chip: Option<String>,
    /// Outputs, findings and fidelity of the run, in the form that the page of the run uses.
    pub outcome: ReportOutcome,
    /// Number of issued instructions, summed over the groups.
    pub group_instructions: u64,
    /// Number of active lanes of each instruction, summed over all instructions.
    pub lane_instructions: u64,
    /// Number of branches that split the lanes of a group.
    pub divergent_branches: u64,
    /// The conditions on counts that the launch file states and that hold in this run.
    pub held: Vec<String>,
    /// Whether all results equal the expected results, or `None` if the launch does not state expected results.
    pub passed: Option<bool>,
    /// The trap that ended the run. `None` if the run did not trap.
    pub trap: Option<TrapShown>,
    /// Whether the run is short. The page records a short run without a request of the user.
    pub short: bool,
}

/// Runs a launch and compares its results with the expected results.
///
/// # Errors
/// Returns an error if the source does not assemble, or if the launch is not possible. A trap is a result, not an
/// error.
pub fn run(source: &str, launch: &str) -> Result<LaunchReply, PlayError> {
    let PreparedLaunch { launch, opened, program } = prepared(source, launch)?;
    let options = Options::default();
    let ran = launch.run(&opened.image, &program, &options, &InPlace);
    let target = opened.target.for_program(&opened.image, &program);
    let mut reply = LaunchReply {
        isa: target.isa.name(),
        chip: launch.common.chip.clone().or_else(|| target.chip_name().map(str::to_owned)),
        ..LaunchReply::default()
    };
    if let Err(Error::Trap(trapped)) = &ran {
        let mut trapped = trapped.clone();
        launch.look(&mut trapped, &opened, &program, &options, &InPlace);
        reply.trap = Some(TrapShown {
            message: in_place(&trapped.message),
            line: trapped.line,
            details: trapped.details("program"),
            endless: trapped.is_endless(),
        });
        // The page records a run that the watchdog stopped only at the user's request.
        reply.short = !trapped.is_endless();
    }
    match launch.judged(ran, "program") {
        Ok((result, wrong)) => {
            reply.passed = launch.expects_something().then_some(wrong.is_empty());
            let recorded = reply.short || result.is_some();
            fill(&mut reply, RunResult { mismatches: wrong, ..result.unwrap_or_default() });
            reply.short &= recorded;
        }
        Err(Error::Trap(_)) => reply.passed = launch.expects_something().then_some(false),
        Err(error) => return Err(error.into()),
    }
    Ok(reply)
}

fn fill(reply: &mut LaunchReply, result: RunResult) {
    reply.outcome = ReportOutcome::of(&result);
    reply.group_instructions = result.statistics.instructions;
    reply.lane_instructions = result.statistics.lane_instructions;
    reply.divergent_branches = result.statistics.divergent_branches;
    reply.short = reply.group_instructions <= AT_ONCE;
    reply.held = result.held;
}

/// Runs a launch and records the run. Returns the run in the form of the `--html` page.
///
/// # Errors
/// Returns an error if the source does not assemble, or if the launch is not possible.
pub fn record(source: &str, launch: &str, title: &str) -> Result<Report, PlayError> {
    let PreparedLaunch { launch, opened, program } = prepared(source, launch)?;
    let options = launch.options(&Options::default())?;
    let session: Session = launch.prepare(&opened.image, &program, &InPlace)?;
    let subject = Subject { title, opened: &opened, program: &program, source: Some(source) };
    Ok(Report::of(subject, &session, &options, RECORDED)?)
}

#[cfg(test)]
mod unit {
    use super::*;

    const SOURCE: &str = ".isa tesla\n.kernel k\nexit nop\n";

    #[test]
    fn a_launch_of_too_many_threads_is_refused_at_once() {
        let error = launch_of("block = [512]\ngrid = [65535, 65535]\n", SOURCE).unwrap_err();
        assert!(error.message.contains("2198956147200 lanes exceed the limit `lanes`"), "{error:?}");
        assert!(launch_of("{\"block\": [512], \"grid\": [1024, 2]}", SOURCE).is_ok());
    }

    #[test]
    fn the_machine_of_the_source_fills_in_and_lines_stay() {
        assert!(launch_of("block = [4]\n", SOURCE).is_ok());
        assert!(launch_of("{}", SOURCE).is_ok() && launch_of("{\"block\": [4]}", SOURCE).is_ok());
        for text in ["block = [4]\nblcok = 3\n", "isa = \"tesla\"\nblcok = 3\n"] {
            let error = launch_of(text, SOURCE).unwrap_err();
            assert_eq!(error.line, Some(2), "{error:?}");
            assert!(error.message.starts_with("unknown key `blcok`: did you mean `block`?"), "{error:?}");
        }
        let file = launch_of("", ".isa tesla\n.include \"a.s\"\nexit nop\n").unwrap_err();
        assert_eq!((file.of, file.message.contains("machine")), (FaultyPart::Source, false), "{file:?}");
        let none = launch_of("", "nop\n").unwrap_err();
        assert!(none.message.starts_with("no machine is stated"), "{none:?}");
    }
}
