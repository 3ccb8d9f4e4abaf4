//! Records the data of a run for the report page. The data has the state of every lane before every step. The data also
//! has the reason for each state.
//!
//! The counts cover the whole run. Steps, lane states, stacks and registers are recorded from the first instruction
//! until the recording reaches a limit. The page names each limit that was reached. `viewer/src/data.ts` reads this
//! format.

mod mechanism;
mod record;
mod written;

use reconverge_isa::program::Stage;
use reconverge_isa::{Isa, Program};
use reconverge_simt::{Fidelity, Options, Why};
use serde::Serialize;

use crate::array::Array;
use crate::error::{Error, counted};
use crate::listing::{Line, Style};
use crate::machine::Machine;
use crate::open::Opened;
use crate::result::RunResult;
use crate::session::{RegisterClass, Session};
use crate::stats::{Profile, Totals};
use crate::trace::Recorded;
use mechanism::{ReportRow, heading};
use record::Recorder;
use written::Written;

/// A report shows at most `ROWS` rows and `COLUMNS` columns of an output, and at most `OUTPUTS` outputs.
const ROWS: usize = 64;
const COLUMNS: usize = 16;
const OUTPUTS: usize = 16;
/// If the program has at most this number of lines, the report explains all lines. Otherwise, the report explains only
/// the lines that the program executed.
const EXPLAINED: usize = 256;

/// Limits on the size of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Maximum number of steps. A step is an instruction that is issued to a group.
    pub steps: usize,
    /// Maximum number of recorded register values. A write to a register adds one value for each lane.
    pub values: usize,
    /// Maximum number of bytes of the report in a page. If a report is larger, the recorder first omits registers. If
    /// the report is still larger, the recorder also omits steps.
    pub bytes: usize,
}

impl Default for Bounds {
    /// Returns the default limits: 100,000 steps, 1,500,000 values, and a size of less than 10 MB.
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

/// The first rows and columns of an output.
#[derive(Clone, Debug, Serialize)]
struct ReportOutput {
    name: String,
    kind: String,
    rows: Vec<Vec<String>>,
    left_rows: usize,
    left_columns: usize,
}

/// A grade of exactness. `ReportGrade` has a list of the operations with this grade, and states how often each
/// operation was issued.
#[derive(Clone, Debug, Serialize)]
struct ReportGrade {
    grade: &'static str,
    operations: Vec<(&'static str, u64)>,
}

/// The results of a run for the page. The results are the trap, failed expectations, the first rows of the outputs, and
/// the exactness of operations.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ReportOutcome {
    trap: Option<ReportTrap>,
    mismatches: Vec<String>,
    findings: Vec<String>,
    outputs: Vec<ReportOutput>,
    more_outputs: usize,
    fidelity: Vec<ReportGrade>,
}

/// The data of a run, in the form that the report page reads.
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
    /// Heading for the machine's flow state.
    mechanism: &'static str,
    stacks: Vec<Vec<ReportRow>>,
    registers: Vec<RegisterClass>,
    steps: PackedSteps,
    /// The registers of each group when the group starts. The report stores these registers as writes in the first step
    /// of the group.
    initial: PackedWrites,
    writes: PackedWrites,
    registers_until: usize,
    events: PackedEvents,
    notes: Vec<String>,
    outcome: ReportOutcome,
}

/// The program that runs, and the texts that describe the program.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// Title of the report.
    pub title: &'a str,
    /// The file that contains the program.
    pub opened: &'a Opened,
    /// The program.
    pub program: &'a Program,
    /// The text of the file, if the file is a source.
    pub source: Option<&'a str>,
}

impl Report {
    /// Returns the message of the trap that ended the run. Returns `None` if no trap ended the run.
    pub fn trap(&self) -> Option<&str> {
        self.outcome.trap.as_ref().map(|trap| trap.message.as_str())
    }

    /// Returns notes about data that the report omits.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Adds descriptions of the expectations that the run did not meet.
    pub fn mismatched(&mut self, mismatches: &[String]) {
        self.outcome.mismatches.extend_from_slice(mismatches);
    }

    /// Runs a launch and records the run. If the program traps, the report ends with the trap.
    ///
    /// # Errors
    /// Returns an error if the launch is not valid for the machine, or if the program cannot be disassembled. Also
    /// returns an error if the report without steps already exceeds its size limit.
    pub fn of(
        subject: Subject<'_>,
        session: &Session,
        options: &Options,
        bounds: Bounds,
    ) -> Result<Report, Error> {
        let Subject { title, opened, program, source } = subject;
        let target = &opened.target.for_program(&opened.image, program);
        let machine = target.machine();
        let vertex = target.stage == Some(Stage::Vertex);
        let style = Style { structure: true, idioms: true, ..Style::default() };
        let listing = machine.disassemble(target, program, style);
        let listing = listing.map_err(|error| Error::Machine(error.to_string()))?;
        let lines = issued(target.isa, listing.lines(&program.words));
        let listed: Vec<(u32, String)> =
            lines.iter().map(|line| (line.address.unwrap_or(0), shown(target.isa, line))).collect();
        let mut recorder = Recorder::new(session.start(options)?, bounds, target.isa, &listed);
        let ended = recorder.run();
        // The recorder may stop at a limit. A second, complete run provides the counts and the results.
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
        let lines = lines.iter().zip(listed).enumerate().map(|(number, (line, (address, text)))| {
            let explained =
                explained(number).then(|| machine.explain_at(target, program, address).ok()).flatten();
            let (meaning, flow, source) = explained.map_or_else(Default::default, |explained| {
                (explained.meaning, explained.flow, explained.source)
            });
            ReportLine {
                address,
                text,
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
            mechanism: heading(target.isa, vertex),
            listing: lines,
            counts,
            totals: profile.totals(),
            outcome,
            ..Report::default()
        };
        recorder.finish(report, machine)
    }

    /// Returns the report as JSON that can be inserted into a page.
    fn json(&self) -> Result<String, serde_json::Error> {
        // A `<` could end the page's script element. In JSON, `<` occurs only inside strings. In a string, an escape
        // sequence can replace the `<`.
        Ok(serde_json::to_string(self)?.replace('<', "\\u003c"))
    }
}

/// Returns a page that shows the runs side by side. `template` is the page that the viewer's build creates.
///
/// # Errors
/// Returns an error if the template does not have an element for the runs.
pub fn page(template: &str, runs: &[Report]) -> Result<String, String> {
    const PLACE: &str = "<script id=\"runs\" type=\"application/json\">[]</script>";
    let (before, after) = template.split_once(PLACE).ok_or("the page template has no element for runs")?;
    let runs: Vec<String> =
        runs.iter().map(Report::json).collect::<Result<_, _>>().map_err(|error| error.to_string())?;
    let place = PLACE.trim_end_matches("[]</script>");
    Ok(format!("{before}{place}[{}]</script>{after}", runs.join(",")))
}

/// Returns the instructions of a listing, in order. On R700, the lines of a clause are nested below the instruction
/// that starts the clause. The operations of an ALU group become one line, because the machine issues all operations of
/// the group together.
fn issued(isa: Isa, lines: Vec<Line>) -> Vec<Line> {
    let mut issued: Vec<Line> = Vec::new();
    // Control-flow instructions have the consecutive addresses 0, 1, 2 and so on. A line with another address belongs
    // to a clause.
    let (mut next, mut depth) = (0, 0);
    for mut line in lines.into_iter().filter(|line| line.address.is_some()) {
        if isa == Isa::R700 {
            if line.address == Some(next) {
                (next, depth) = (next + 1, line.depth);
            } else {
                line.depth = depth + 1;
            }
            let is_operation = ["x:", "y:", "z:", "w:", "t:"].iter().any(|slot| line.text.starts_with(slot));
            if let Some(group) = issued.last_mut().filter(|_| is_operation) {
                group.text = format!("{}\n{}", group.text, line.text);
                group.words.extend(line.words);
                group.notes.extend(line.notes);
                continue;
            }
        }
        issued.push(line);
    }
    issued
}

/// Formats an instruction for the page. R500's ALU instructions always encode three sources. An unused source encodes
/// the inline constant 0. The disassembler prints this constant as `#0.0078125`. A reader could think that this number
/// is a constant of the program. So the function omits sources that no operand reads.
fn shown(isa: Isa, line: &Line) -> String {
    if isa == Isa::R700 {
        let operations = line.text.lines().map(|text| text.split_whitespace().collect::<Vec<_>>().join(" "));
        return operations.collect::<Vec<_>>().join("\n");
    }
    let code = line.code();
    if isa != Isa::R500 || code.contains("srcp") {
        return code;
    }
    let reads = |source: &str| {
        let operands = code.match_indices(source).map(|(at, found)| &code[at + found.len()..]);
        let swizzle = |text: &str| {
            text.starts_with('.') && text[1..].chars().take(3).any(|letter| "rgba".contains(letter))
        };
        operands.into_iter().any(|after| swizzle(after.split([',', ' ']).next().unwrap_or_default()))
    };
    let mut text = code.clone();
    for source in ["src0", "src1", "src2"].into_iter().filter(|source| !reads(source)) {
        text = text.replace(&format!(" {source}=#0.0078125"), "");
    }
    text.replace(" : + ", " + ").trim_end_matches(" :").to_owned()
}

impl ReportOutcome {
    /// Creates the outcome from the results of a run.
    pub fn of(result: &RunResult) -> ReportOutcome {
        let fidelity = Fidelity::ALL.into_iter().filter_map(|grade| {
            let of = result.report.operations.iter().filter(|(_, (known, _))| *known == grade);
            let operations: Vec<_> = of.map(|(name, (_, times))| (*name, *times)).collect();
            (!operations.is_empty()).then(|| ReportGrade { grade: grade.name(), operations })
        });
        ReportOutcome {
            trap: None,
            mismatches: result.mismatches.clone(),
            findings: result.findings.clone(),
            more_outputs: result.outputs.len().saturating_sub(OUTPUTS),
            outputs: result.outputs.iter().take(OUTPUTS).map(|(name, array)| output(name, array)).collect(),
            fidelity: fidelity.collect(),
        }
    }
}

/// Creates the outcome from the results of a run, or from the trap that ended the run. Returns all other errors
/// unchanged.
fn outcome(ended: Result<RunResult, Error>) -> Result<ReportOutcome, Error> {
    let result = match ended {
        Ok(result) => result,
        Err(Error::Trap(trapped)) => {
            let lanes = mechanism::words(trapped.lanes);
            let trap = ReportTrap { message: trapped.message, address: trapped.pc, lanes };
            return Ok(ReportOutcome { trap: Some(trap), ..ReportOutcome::default() });
        }
        Err(other) => return Err(other),
    };
    Ok(ReportOutcome::of(&result))
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

/// Describes the state of a lane in a few words and in a sentence. Also returns the number that the viewer uses for
/// this state. The sentence names the part of the machine that stores the state.
fn in_words(why: Why, isa: Isa, machine: &dyn Machine) -> ReportWhy {
    let (text, more, state): (String, String, usize) = match why {
        Why::Active => ("active".into(), "it executes the instruction".into(), 0),
        Why::Branch { depth } if isa == Isa::R500 => (
            format!("branch counter {depth}"),
            match depth {
                0 => "the innermost branch switched it off: its branch counter is 0".into(),
                _ => {
                    let levels = counted(u64::from(depth), "level");
                    format!("a branch {levels} further out switched it off: its branch counter is {depth}")
                }
            },
            1,
        ),
        Why::Branch { depth } => (
            format!("branch, entry {}", depth + 1),
            format!(
                "a branch switched it off: it is in entry {} of the stack, counted from the innermost",
                depth + 1
            ),
            1,
        ),
        Why::Break => ("break".into(), left(isa).into(), 2),
        Why::Continue => ("continue".into(), skipped(isa).into(), 3),
        Why::Parked { pc } => {
            let at = machine.isa().spelled(pc);
            (format!("parked at {at}"), format!("a token of the stack holds it: it resumes at {at}"), 4)
        }
        Why::Exited => ("exited".into(), "it has finished".into(), 5),
        Why::Uncovered => (
            "uncovered".into(),
            "it has no work or was discarded: if it runs, it helps its quad, and its results are dropped"
                .into(),
            6,
        ),
    };
    ReportWhy { text, more, state }
}

/// Returns a sentence about a lane that has left a loop. The sentence names the part of the machine that stores this
/// state.
fn left(isa: Isa) -> &'static str {
    match isa {
        Isa::R500 => "it has left the loop: the loop's frame marks it as broken, until the frame is popped",
        Isa::R700 => "it has left the loop: it is inactive-break (IX), until the LOOP entry is popped",
        Isa::Tesla => {
            "it has left the loop: the mask of broken lanes holds it, until the BREAK token is popped"
        }
    }
}

/// Returns a sentence about a lane that skips the remaining instructions of an iteration. If a part of the machine
/// stores this state, the sentence names this part.
fn skipped(isa: Isa) -> &'static str {
    match isa {
        Isa::R500 => "it waits for the next iteration: the loop's frame marks it as continued",
        Isa::R700 => "it waits for the next iteration: it is inactive-continue (IC)",
        Isa::Tesla => "it waits for the next iteration",
    }
}
