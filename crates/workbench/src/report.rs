//! A run as data for the report page: what every lane did in front of every step, and why.
//!
//! The counts are those of the whole run; steps, lanes, stacks and registers are recorded from the first instruction on,
//! up to bounds that the page names when it reaches them. `viewer/src/data.ts` is the other side of this format.

use std::collections::HashMap;
use std::hash::Hash;
use std::io::Write;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use reconverge_isa::Program;
use reconverge_simt::{Event, Lane, Mask, Options, StackRow, Why};
use serde::Serialize;

use crate::listing::Style;
use crate::machine::Target;
use crate::request::Error;
use crate::session::{Session, Stepping};
use crate::stats::{Profile, Totals};
use crate::trace::Recorded;

/// How much of a run a report has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Steps: instructions issued to a group.
    pub steps: usize,
    /// Values written to registers, a value a lane.
    pub values: usize,
}

impl Default for Bounds {
    /// 100,000 steps and 1,500,000 values: a page of less than 10 MB.
    fn default() -> Bounds {
        Bounds { steps: 100_000, values: 1_500_000 }
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
}

#[derive(Clone, Debug, Serialize)]
struct ReportWhy {
    text: String,
    state: usize,
}

#[derive(Clone, Debug, Serialize)]
struct ReportClass {
    name: &'static str,
    count: usize,
    channels: &'static str,
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

/// A run as the page reads it.
#[derive(Clone, Debug, Serialize)]
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
    stacks: Vec<Vec<String>>,
    registers: Vec<ReportClass>,
    steps: PackedSteps,
    writes: PackedWrites,
    registers_until: usize,
    events: PackedEvents,
    notes: Vec<String>,
    trap: Option<String>,
}

/// A program that runs, and what it is called.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// What heads the report.
    pub title: &'a str,
    /// How the program is read.
    pub target: &'a Target,
    /// The program.
    pub program: &'a Program,
}

impl Report {
    /// The trap that ended the run.
    pub fn trap(&self) -> Option<&str> {
        self.trap.as_deref()
    }

    /// Runs a launch and records it. A trap ends the record and is part of it.
    ///
    /// # Errors
    /// A launch that does not fit the machine, or a program that has no listing.
    pub fn of(
        subject: Subject<'_>,
        session: &Session,
        options: &Options,
        bounds: Bounds,
    ) -> Result<Report, Error> {
        let Subject { title, target, program } = subject;
        let machine = target.machine();
        let style = Style { structure: true, ..Style::default() };
        let listing = machine.disassemble(target, program, style);
        let listing = listing.map_err(|error| Error::Machine(error.to_string()))?;
        let mut lines: Vec<_> = listing.lines(&program.words);
        lines.retain(|line| line.address.is_some());
        lines.sort_by_key(|line| line.address);
        let mut recorder = Recorder::new(session.start(options)?, bounds);
        recorder.lines =
            lines.iter().enumerate().filter_map(|(number, line)| Some((line.address?, number))).collect();
        let mut trap = recorder.run();
        let mut profile = Profile::new(recorder.width as u32);
        if trap.is_none() || !recorder.ended {
            let whole = session.copy().run_traced(options, Recorded::Flow, &mut profile);
            trap = trap.or(whole.err());
        } else {
            // The trap is within the steps: they are the whole run.
            let _ = session.copy().run_traced(options, Recorded::Flow, &mut profile);
        }
        let trap = match trap {
            None => None,
            Some(Error::Trap(trapped)) => Some(trapped.to_string()),
            Some(other) => return Err(other),
        };
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
        let executed = |number: usize| counts[number][0] > 0;
        let lines = lines.iter().enumerate().map(|(number, line)| {
            let address = line.address.unwrap_or(0);
            let explained =
                executed(number).then(|| machine.explain_at(target, program, address).ok()).flatten();
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
            }
        });
        let lines: Vec<ReportLine> = lines.collect();
        let totals = profile.totals();
        let mut notes = Vec::new();
        if totals.instructions > recorder.group.len() as u64 {
            notes.push(format!(
                "the timeline has the first {} of {} steps; the counts are of all",
                recorder.group.len(),
                totals.instructions
            ));
        }
        Ok(recorder.finish(Report {
            title: title.to_owned(),
            isa: target.isa.name(),
            chip: target.chip.clone(),
            program: program.name.clone(),
            unit: machine.unit(),
            lanes_per_group: 0,
            groups: 0,
            lanes: 0,
            listing: lines,
            counts,
            totals,
            whys: Vec::new(),
            vectors: Vec::new(),
            stacks: Vec::new(),
            registers: Vec::new(),
            steps: PackedSteps::default(),
            writes: PackedWrites::default(),
            registers_until: 0,
            events: PackedEvents::default(),
            notes,
            trap,
        }))
    }
}

/// The page with these runs side by side: `template` is the page that the viewer's build makes.
///
/// # Errors
/// The template has no place for runs.
pub fn page(template: &str, runs: &[Report]) -> Result<String, String> {
    const PLACE: &str = "<script id=\"runs\" type=\"application/json\">[]</script>";
    let (before, after) = template.split_once(PLACE).ok_or("the page has no place for runs")?;
    // `<` could end the script; JSON may spell it so in every string, and has it nowhere else.
    let json = serde_json::to_string(runs).map_err(|error| error.to_string())?.replace('<', "\\u003c");
    Ok(format!("{before}<script id=\"runs\" type=\"application/json\">{json}</script>{after}"))
}

/// Things that occur again and again, by number.
struct Numbers<T> {
    numbers: HashMap<T, i32>,
    list: Vec<T>,
}

impl<T: Eq + Hash + Clone> Numbers<T> {
    fn new() -> Numbers<T> {
        Numbers { numbers: HashMap::new(), list: Vec::new() }
    }

    fn of(&mut self, thing: T) -> i32 {
        if let Some(number) = self.numbers.get(&thing) {
            return *number;
        }
        let number = self.list.len() as i32;
        self.list.push(thing.clone());
        self.numbers.insert(thing, number);
        number
    }
}

/// Records a run step by step.
struct Recorder {
    stepping: Stepping,
    bounds: Bounds,
    width: usize,
    /// Line of the listing by address.
    lines: HashMap<u32, usize>,
    ended: bool,
    group: Vec<i32>,
    line: Vec<i32>,
    vector: Vec<i32>,
    stack: Vec<i32>,
    whys: Numbers<Why>,
    vectors: Numbers<Vec<i32>>,
    stacks: Numbers<Vec<String>>,
    /// Step, register, lanes.
    writes: Vec<(i32, i32, Mask)>,
    values: Vec<i32>,
    registers_until: Option<usize>,
    events: Vec<(i32, i32)>,
}

impl Recorder {
    fn new(stepping: Stepping, bounds: Bounds) -> Recorder {
        let groups = stepping.groups();
        let width = (0..groups.min(64)).map(|group| stepping.lanes(group).len()).max().unwrap_or(1);
        Recorder {
            stepping,
            bounds,
            width: width.clamp(1, 64),
            lines: HashMap::new(),
            ended: false,
            group: Vec::new(),
            line: Vec::new(),
            vector: Vec::new(),
            stack: Vec::new(),
            whys: Numbers::new(),
            vectors: Numbers::new(),
            stacks: Numbers::new(),
            writes: Vec::new(),
            values: Vec::new(),
            registers_until: None,
            events: Vec::new(),
        }
    }

    /// Runs to the end or the bound; gives the error that ended it.
    fn run(&mut self) -> Option<Error> {
        while self.group.len() < self.bounds.steps {
            let Some(group) = self.stepping.current() else {
                self.ended = true;
                return None;
            };
            let Some(issue) = self.stepping.issue(group) else {
                self.ended = true;
                return None;
            };
            let step = self.group.len() as i32;
            let whys = (0..self.width).map(|lane| {
                let why = self.stepping.why(group, Lane(lane as u8)).unwrap_or(Why::Uncovered);
                self.whys.of(why)
            });
            let whys: Vec<i32> = whys.collect();
            let rows = self.stepping.stack(group).iter().map(row).collect();
            self.group.push(group as i32);
            self.line.push(self.lines.get(&issue.pc).map_or(0, |line| *line as i32));
            self.vector.push(self.vectors.of(whys));
            self.stack.push(self.stacks.of(rows));
            let mut written: Vec<(u32, Mask, [i32; 64])> = Vec::new();
            let events = &mut self.events;
            let result =
                self.stepping.step(
                    group,
                    crate::session::Stride::Instruction,
                    &mut |of, event| match event {
                        _ if of != group => {}
                        Event::Write { lane, register, value } => {
                            let place = written.iter().position(|(known, ..)| *known == register);
                            let place = place.unwrap_or_else(|| {
                                written.push((register, Mask::NONE, [0; 64]));
                                written.len() - 1
                            });
                            written[place].1.set(lane, true);
                            written[place].2[lane.index()] = value as i32;
                        }
                        Event::Diverge { .. } => events.push((step, 0)),
                        Event::Reconverge { .. } => events.push((step, 1)),
                        Event::Trap { .. } => events.push((step, 2)),
                        _ => {}
                    },
                );
            if self.registers_until.is_none() {
                for (register, mask, values) in written {
                    self.writes.push((step, register as i32, mask));
                    self.values.extend(mask.lanes().map(|lane| values[lane.index()]));
                }
                if self.values.len() > self.bounds.values {
                    self.registers_until = Some(step as usize);
                }
            }
            if let Err(error) = result {
                self.ended = true;
                return Some(error);
            }
        }
        None
    }

    fn finish(self, report: Report) -> Report {
        let groups = self.stepping.groups();
        let mut notes = report.notes;
        if let Some(until) = self.registers_until {
            notes.push(format!("registers are recorded up to step {until}"));
        }
        let why = |why: &Why| {
            let (text, state) = in_words(*why, report.unit);
            ReportWhy { text, state }
        };
        let column = |numbers: &mut dyn Iterator<Item = i32>| pack(numbers);
        Report {
            lanes_per_group: self.width,
            groups,
            lanes: self.stepping.lanes(groups.saturating_sub(1)).end,
            whys: self.whys.list.iter().map(why).collect(),
            vectors: self.vectors.list.iter().map(|lanes| runs(lanes)).collect(),
            stacks: self.stacks.list,
            registers: self
                .stepping
                .registers()
                .into_iter()
                .map(|class| ReportClass { name: class.name, count: class.count, channels: class.channels })
                .collect(),
            steps: PackedSteps {
                count: self.group.len(),
                group: column(&mut self.group.iter().copied()),
                line: column(&mut self.line.iter().copied()),
                vector: column(&mut self.vector.iter().copied()),
                stack: column(&mut self.stack.iter().copied()),
            },
            writes: PackedWrites {
                count: self.writes.len(),
                step: column(&mut self.writes.iter().map(|(step, ..)| *step)),
                register: column(&mut self.writes.iter().map(|(_, register, _)| *register)),
                low: column(&mut self.writes.iter().map(|(.., mask)| mask.0 as i32)),
                high: column(&mut self.writes.iter().map(|(.., mask)| (mask.0 >> 32) as i32)),
                values: column(&mut self.values.iter().copied()),
            },
            registers_until: self.registers_until.unwrap_or(self.group.len()),
            events: PackedEvents {
                count: self.events.len(),
                step: column(&mut self.events.iter().map(|(step, _)| *step)),
                kind: column(&mut self.events.iter().map(|(_, kind)| *kind)),
            },
            notes,
            ..report
        }
    }
}

/// What a lane does, in words, and the number of its state in the viewer.
fn in_words(why: Why, unit: &str) -> (String, usize) {
    match why {
        Why::Active => ("active".to_owned(), 0),
        Why::Branch { depth: 0 } => ("in another branch".to_owned(), 1),
        Why::Branch { depth } => (format!("in another branch, {depth} out"), 1),
        Why::Break => ("has left the loop".to_owned(), 2),
        Why::Continue => ("waits for the next round".to_owned(), 3),
        Why::Parked { pc } if unit == "bytes" => (format!("parked at {pc:#x}"), 4),
        Why::Parked { pc } => (format!("parked at {pc}"), 4),
        Why::Exited => ("exited".to_owned(), 5),
        Why::Uncovered => ("not covered".to_owned(), 6),
    }
}

/// A row of the stack as text.
fn row(row: &StackRow) -> String {
    let mut text = row.kind.to_owned();
    text.extend(row.pc.map(|pc| format!("  to {pc:#x}")));
    text.extend(row.mask.map(|mask| format!("  lanes {mask}")));
    text.extend(row.count.map(|count| format!("  count {count}")));
    text
}

/// Pairs of a number and how often it follows itself.
fn runs(numbers: &[i32]) -> Vec<usize> {
    let mut runs: Vec<usize> = Vec::new();
    for number in numbers {
        match runs.len() {
            2.. if runs[runs.len() - 2] == *number as usize => *runs.last_mut().unwrap_or(&mut 0) += 1,
            _ => runs.extend([*number as usize, 1]),
        }
    }
    runs
}

/// A column: zlib of zigzag varints of the differences, in base64.
fn pack(numbers: &mut dyn Iterator<Item = i32>) -> String {
    let mut packed = ZlibEncoder::new(Vec::new(), Compression::default());
    let mut last = 0i32;
    let mut bytes = Vec::with_capacity(5);
    for number in numbers {
        let difference = number.wrapping_sub(last);
        last = number;
        let mut value = (difference << 1 ^ difference >> 31) as u32;
        bytes.clear();
        while value >= 0x80 {
            bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        bytes.push(value as u8);
        // Writing to a vector does not fail.
        let _ = packed.write_all(&bytes);
    }
    STANDARD.encode(packed.finish().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_pairs_of_number_and_length() {
        assert_eq!(runs(&[0, 0, 0, 2, 1, 1]), [0, 3, 2, 1, 1, 2]);
        assert_eq!(runs(&[]), [0usize; 0]);
    }
}
