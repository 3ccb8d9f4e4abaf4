//! A run as data for the report page: what every lane did in front of every step, and why.
//!
//! The counts are those of the whole run; steps, lanes, stacks and registers are recorded from the first instruction on,
//! up to bounds that the page names when it reaches them. `viewer/src/data.ts` is the other side of this format.

mod record;
mod written;

use reconverge_isa::{Isa, Program};
use reconverge_simt::{Fidelity, Options, Why};
use serde::Serialize;

use crate::array::Array;
use crate::error::Error;
use crate::listing::{Style, addressed};
use crate::machine::Machine;
use crate::open::Opened;
use crate::result::RunResult;
use crate::session::{RegisterClass, Session};
use crate::stats::{Profile, Totals};
use crate::trace::Recorded;
use record::{Recorder, ReportRow};
use written::Written;

/// Rows and columns of an output that a report shows, and how many outputs.
const ROWS: usize = 64;
const COLUMNS: usize = 16;
const OUTPUTS: usize = 16;
/// Lines of a program that are all explained; of a longer one those that ran.
const EXPLAINED: usize = 256;

/// How much of a run a report has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Steps: instructions issued to a group.
    pub steps: usize,
    /// Values written to registers, a value a lane.
    pub values: usize,
    /// Bytes of the report in a page. Registers are left out first, then steps.
    pub bytes: usize,
}

impl Default for Bounds {
    /// 100,000 steps and 1,500,000 values, in less than 10 MB.
    fn default() -> Bounds {
        Bounds { steps: 100_000, values: 1_500_000, bytes: 9_900_000 }
    }
}

/// A line of the program in a report.
#[derive(Clone, Debug, Serialize)]
struct ReportLine {
    address: u32,
    text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<String>,
    depth: usize,
    words: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    meaning: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    flow: Vec<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    source: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    written: Option<Written>,
}

#[derive(Clone, Debug, Serialize)]
struct ReportWhy {
    text: String,
    more: String,
    state: usize,
}

#[derive(Clone, Debug, Default, Serialize)]
struct PackedSteps {
    count: usize,
    group: String,
    line: String,
    vector: String,
    stack: String,
}

#[derive(Clone, Debug, Default, Serialize)]
struct PackedWrites {
    count: usize,
    step: String,
    register: String,
    low: String,
    high: String,
    values: String,
}

#[derive(Clone, Debug, Default, Serialize)]
struct PackedEvents {
    count: usize,
    step: String,
    kind: String,
}

/// The trap that ended a run.
#[derive(Clone, Debug, Serialize)]
struct ReportTrap {
    message: String,
    address: u32,
    lanes: [u32; 2],
}

/// The first rows of an output.
#[derive(Clone, Debug, Serialize)]
struct ReportOutput {
    name: String,
    kind: String,
    rows: Vec<Vec<String>>,
    left_rows: usize,
    left_columns: usize,
}

/// How exact operations were: a grade, and the operations of it with how often they were issued.
#[derive(Clone, Debug, Serialize)]
struct ReportGrade {
    grade: &'static str,
    operations: Vec<(&'static str, u64)>,
}

/// How a run ended.
#[derive(Clone, Debug, Default, Serialize)]
struct ReportOutcome {
    trap: Option<ReportTrap>,
    mismatches: Vec<String>,
    findings: Vec<String>,
    outputs: Vec<ReportOutput>,
    more_outputs: usize,
    fidelity: Vec<ReportGrade>,
}

/// A run as the page reads it.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    title: String,
    isa: &'static str,
    chip: Option<String>,
    program: Option<String>,
    unit: &'static str,
    lanes_per_group: usize,
    groups: usize,
    lanes: usize,
    listing: Vec<ReportLine>,
    counts: Vec<[u64; 8]>,
    totals: Totals,
    whys: Vec<ReportWhy>,
    vectors: Vec<Vec<usize>>,
    stacks: Vec<Vec<ReportRow>>,
    registers: Vec<RegisterClass>,
    steps: PackedSteps,
    writes: PackedWrites,
    registers_until: usize,
    events: PackedEvents,
    notes: Vec<String>,
    outcome: ReportOutcome,
}

/// A program that runs, and what it is called.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// What heads the report.
    pub title: &'a str,
    /// The file of the program.
    pub opened: &'a Opened,
    /// The program.
    pub program: &'a Program,
    /// The text of the file, where it is a source.
    pub source: Option<&'a str>,
}

impl Report {
    /// The trap that ended the run.
    pub fn trap(&self) -> Option<&str> {
        self.outcome.trap.as_ref().map(|trap| trap.message.as_str())
    }

    /// What is not in the report, in words.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Adds expectations that the run did not meet, in words.
    pub fn mismatched(&mut self, mismatches: &[String]) {
        self.outcome.mismatches.extend_from_slice(mismatches);
    }

    /// Runs a launch and records it. A trap ends the record and is part of it.
    ///
    /// # Errors
    /// A launch that does not fit the machine, a program that has no listing, or one that alone takes more bytes than the
    /// report may have.
    pub fn of(
        subject: Subject<'_>,
        session: &Session,
        options: &Options,
        bounds: Bounds,
    ) -> Result<Report, Error> {
        let Subject { title, opened, program, source } = subject;
        let target = &opened.target.for_program(&opened.image, program);
        let machine = target.machine();
        let style = Style { structure: true, ..Style::default() };
        let listing = machine.disassemble(target, program, style);
        let listing = listing.map_err(|error| Error::Machine(error.to_string()))?;
        let lines = addressed(listing.lines(&program.words));
        let numbers = lines.iter().enumerate().filter_map(|(number, line)| Some((line.address?, number)));
        let mut recorder = Recorder::new(session.start(options)?, bounds, target.isa, numbers.collect());
        let ended = recorder.run();
        // The whole run, for the counts and for what it leaves.
        let mut profile = Profile::new(recorder.width() as u32);
        let whole = session.copy().run_traced(options, Recorded::Flow, &mut profile);
        let outcome = outcome(match (ended, whole) {
            (Some(error), _) => Err(error),
            (None, whole) => whole.map(|outcome| RunResult::of(&*outcome)),
        })?;
        let counts = lines.iter().map(|line| {
            let counts = line.address.map(|address| profile.at(address)).unwrap_or_default();
            [
                counts.executed,
                counts.lanes,
                counts.diverged,
                counts.taken_cost,
                counts.not_cost,
                counts.reconverged,
                counts.distance,
                counts.farthest,
            ]
        });
        let counts: Vec<[u64; 8]> = counts.collect();
        let explained = |number: usize| counts[number][0] > 0 || counts.len() <= EXPLAINED;
        let mut written = source.map(|source| written::lines(source, opened, program)).unwrap_or_default();
        let lines = lines.iter().enumerate().map(|(number, line)| {
            let address = line.address.unwrap_or(0);
            let explained =
                explained(number).then(|| machine.explain_at(target, program, address).ok()).flatten();
            let (meaning, flow, source) = explained.map_or_else(Default::default, |explained| {
                (explained.meaning, explained.flow, explained.source)
            });
            ReportLine {
                address,
                text: line.code(),
                label: line.label.clone(),
                depth: line.depth,
                words: line.words.iter().map(|word| format!("{word:08x}")).collect::<Vec<_>>().join(" "),
                notes: line.notes.clone(),
                meaning,
                flow,
                source,
                written: written.get_mut(&address).and_then(Option::take),
            }
        });
        let lines: Vec<ReportLine> = lines.collect();
        let report = Report {
            title: title.to_owned(),
            isa: target.isa.name(),
            chip: target.chip_name().map(str::to_owned),
            program: program.name.clone(),
            unit: target.isa.unit(),
            listing: lines,
            counts,
            totals: profile.totals(),
            outcome,
            ..Report::default()
        };
        recorder.finish(report, machine)
    }

    /// The report as it is written into a page.
    fn json(&self) -> Result<String, serde_json::Error> {
        // `<` could end the script; JSON may spell it so in every string, and has it nowhere else.
        Ok(serde_json::to_string(self)?.replace('<', "\\u003c"))
    }
}

/// The page with these runs side by side: `template` is the page that the viewer's build makes.
///
/// # Errors
/// The template has no place for runs.
pub fn page(template: &str, runs: &[Report]) -> Result<String, String> {
    const PLACE: &str = "<script id=\"runs\" type=\"application/json\">[]</script>";
    let (before, after) = template.split_once(PLACE).ok_or("the page has no place for runs")?;
    let runs: Vec<String> =
        runs.iter().map(Report::json).collect::<Result<_, _>>().map_err(|error| error.to_string())?;
    let place = PLACE.trim_end_matches("[]</script>");
    Ok(format!("{before}{place}[{}]</script>{after}", runs.join(",")))
}

/// What a run left, or the trap that ended it.
fn outcome(ended: Result<RunResult, Error>) -> Result<ReportOutcome, Error> {
    let result = match ended {
        Ok(result) => result,
        Err(Error::Trap(trapped)) => {
            let lanes = record::words(trapped.lanes);
            let trap = ReportTrap { message: trapped.message, address: trapped.pc, lanes };
            return Ok(ReportOutcome { trap: Some(trap), ..ReportOutcome::default() });
        }
        Err(other) => return Err(other),
    };
    let fidelity = Fidelity::ALL.into_iter().filter_map(|grade| {
        let of = result.report.operations.iter().filter(|(_, (known, _))| *known == grade);
        let operations: Vec<_> = of.map(|(name, (_, times))| (*name, *times)).collect();
        (!operations.is_empty()).then(|| ReportGrade { grade: grade.name(), operations })
    });
    Ok(ReportOutcome {
        trap: None,
        mismatches: result.mismatches,
        findings: result.findings,
        more_outputs: result.outputs.len().saturating_sub(OUTPUTS),
        outputs: result.outputs.iter().take(OUTPUTS).map(|(name, array)| output(name, array)).collect(),
        fidelity: fidelity.collect(),
    })
}

fn output(name: &str, array: &Array) -> ReportOutput {
    let rows = array.rows();
    let columns = if rows == 0 { 0 } else { array.row(0).len() };
    let shown = (0..rows.min(ROWS))
        .map(|row| array.row(row).take(COLUMNS).map(|index| array.text(index)).collect::<Vec<_>>());
    ReportOutput {
        name: name.to_owned(),
        kind: format!("{} {:?}", array.dtype, array.shape),
        rows: shown.collect(),
        left_rows: rows.saturating_sub(ROWS),
        left_columns: columns.saturating_sub(COLUMNS),
    }
}

/// What a lane does, in few words and in a sentence, and the number of its state in the viewer. A branch that switched a
/// lane off is named as the machine counts it: R500's branch counter, R700's entry of the stack.
fn in_words(why: Why, isa: Isa, machine: &dyn Machine) -> ReportWhy {
    let (text, more, state): (String, String, usize) = match why {
        Why::Active => ("active".into(), "it takes part in the instruction".into(), 0),
        Why::Branch { depth } if isa == Isa::R500 => (
            format!("branch counter {depth}"),
            match depth {
                0 => "the innermost branch switched it off: its branch counter is 0".into(),
                _ => format!("a branch {depth} further out switched it off: its branch counter is {depth}"),
            },
            1,
        ),
        Why::Branch { depth } => (
            format!("branch, entry {}", depth + 1),
            format!("a branch switched it off: entry {} of the stack has it, from the inside", depth + 1),
            1,
        ),
        Why::Break => ("break".into(), "it has left the loop and waits for its end".into(), 2),
        Why::Continue => ("continue".into(), "it waits for the loop's next round".into(), 3),
        Why::Parked { pc } => {
            let at = machine.isa().spelled(pc);
            (format!("parked at {at}"), format!("an entry of the stack has it; it goes on at {at}"), 4)
        }
        Why::Exited => ("exited".into(), "it has finished".into(), 5),
        Why::Uncovered => (
            "uncovered".into(),
            "no work for it, or discarded: where it runs, it helps its quad, and its results go nowhere"
                .into(),
            6,
        ),
    };
    ReportWhy { text, more, state }
}
