//! Records every step of a run, and compresses the recorded data.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;
use std::io::Write;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use reconverge_isa::Isa;
use reconverge_simt::{Event, Lane, Mask, Why};

use super::mechanism::{ReportRow, rows};
use super::{Bounds, PackedEvents, PackedSteps, PackedWrites, Report, in_words};
use crate::error::Error;
use crate::machine::Machine;
use crate::session::{Register, RegisterClass, Stepping, Stride};

/// The registers that occur in a program's text. The name of a register is a word of letters with a number, such as
/// `$r3`, `R1` or `temp[1]`.
struct NamedRegisters(HashSet<String>);

impl NamedRegisters {
    fn of<'a>(lines: impl Iterator<Item = &'a str>) -> NamedRegisters {
        let mut names = HashSet::new();
        for line in lines {
            let line = line.replace('[', "");
            let words = line.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '$');
            for word in words {
                // On Tesla, names of register halves and register pairs have a letter after the number. This function
                // ignores the letter.
                let start = word.find(|letter: char| letter.is_ascii_digit()).unwrap_or(word.len());
                let digits = word[start..].bytes().take_while(u8::is_ascii_digit).count();
                if start > 0 && digits > 0 {
                    names.insert(word[..start + digits].to_owned());
                }
            }
        }
        NamedRegisters(names)
    }

    fn contains(&self, class: &RegisterClass, number: usize) -> bool {
        self.0.contains(&format!("{}{number}", class.name))
    }
}

/// Assigns numbers to values, so that each value is stored only once.
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

/// Returns the number of elements of `list` up to the highest index in `numbers`. This number is the highest index plus
/// one.
fn used<T>(list: &[T], numbers: &[i32]) -> usize {
    numbers.iter().max().map_or(0, |most| *most as usize + 1).min(list.len())
}

/// A step. A step is an instruction that is issued to a group.
#[derive(Clone, Copy, Debug)]
struct RecordedStep {
    group: i32,
    line: i32,
    vector: i32,
    stack: i32,
}

/// Writes to registers, in the order of their steps.
#[derive(Default)]
struct RegisterWrites {
    /// Step, register and lanes of each write.
    places: Vec<(i32, i32, Mask)>,
    /// Values of all writes, one per lane in each write.
    values: Vec<i32>,
}

impl RegisterWrites {
    fn add(&mut self, step: i32, register: u32, lanes: Mask, values: &[i32; 64]) {
        self.places.push((step, register as i32, lanes));
        self.values.extend(lanes.lanes().map(|lane| values[lane.index()]));
    }

    /// Compresses the writes of the first `until` steps.
    fn packed(&self, until: usize) -> PackedWrites {
        let count = self.places.partition_point(|(step, ..)| (*step as usize) < until);
        let places = &self.places[..count];
        let values: usize = places.iter().map(|(.., mask)| mask.count() as usize).sum();
        PackedWrites {
            count,
            step: pack(places.iter().map(|(step, ..)| *step)),
            register: pack(places.iter().map(|(_, register, _)| *register)),
            low: pack(places.iter().map(|(.., mask)| mask.0 as i32)),
            high: pack(places.iter().map(|(.., mask)| (mask.0 >> 32) as i32)),
            values: pack(self.values[..values].iter().copied()),
        }
    }
}

/// Records every step of a run.
pub(super) struct Recorder {
    stepping: Stepping,
    bounds: Bounds,
    isa: Isa,
    width: usize,
    /// For each address, the index of its line in the listing.
    lines: HashMap<u32, usize>,
    /// Registers that occur in the program's text.
    named: NamedRegisters,
    steps: Vec<RecordedStep>,
    /// The most recently recorded step of each group.
    last: HashMap<usize, i32>,
    /// Whether the recorder stopped because the run has more steps than the limit.
    full: bool,
    whys: Numbers<Why>,
    vectors: Numbers<Vec<i32>>,
    stacks: Numbers<Vec<ReportRow>>,
    /// The registers of each group before the group's first step. The recorder stores these registers as writes in the
    /// first step of the group.
    initial: RegisterWrites,
    writes: RegisterWrites,
    registers_until: Option<usize>,
    events: Vec<(i32, i32)>,
}

impl Recorder {
    /// Creates a recorder for a launch that has not started. `listing` has the address and the text of each line.
    pub(super) fn new(stepping: Stepping, bounds: Bounds, isa: Isa, listing: &[(u32, String)]) -> Recorder {
        let lines = listing.iter().enumerate().map(|(number, (address, _))| (*address, number)).collect();
        let named = NamedRegisters::of(listing.iter().map(|(_, text)| text.as_str()));
        let groups = stepping.groups();
        let width = (0..groups.min(64)).map(|group| stepping.lanes(group).len()).max().unwrap_or(1);
        Recorder {
            stepping,
            bounds,
            isa,
            width: width.clamp(1, 64),
            lines,
            named,
            steps: Vec::new(),
            last: HashMap::new(),
            full: false,
            whys: Numbers::new(),
            vectors: Numbers::new(),
            stacks: Numbers::new(),
            initial: RegisterWrites::default(),
            writes: RegisterWrites::default(),
            registers_until: None,
            events: Vec::new(),
        }
    }

    /// Returns the maximum number of lanes in a group.
    pub(super) fn width(&self) -> usize {
        self.width
    }

    /// Runs to the end or to the maximum number of steps. Returns the error that ended the run. Returns `None` if no
    /// error ended the run.
    pub(super) fn run(&mut self) -> Option<Error> {
        loop {
            let group = self.stepping.current()?;
            let issue = self.stepping.issue(group)?;
            if self.steps.len() >= self.bounds.steps {
                self.full = true;
                return None;
            }
            let step = self.steps.len() as i32;
            if self.registers_until.is_none() && !self.last.contains_key(&group) {
                self.start(group, step);
            }
            let recorded = self.before(group, issue.pc);
            self.steps.push(recorded);
            let mut issued = false;
            let mut events = Vec::new();
            let mut written: Vec<(u32, Mask, [i32; 64])> = Vec::new();
            let result = self.stepping.step(group, Stride::Instruction, &mut |of, event| match event {
                _ if of != group => {}
                Event::Issue { .. } => issued = true,
                Event::Write { lane, register, value } => {
                    let place = written.iter().position(|(known, ..)| *known == register);
                    let place = place.unwrap_or_else(|| {
                        written.push((register, Mask::NONE, [0; 64]));
                        written.len() - 1
                    });
                    written[place].1.insert(lane);
                    written[place].2[lane.index()] = value as i32;
                }
                Event::Diverge { .. } => events.push(0),
                Event::Reconverge { .. } => events.push(1),
                Event::Trap { .. } => events.push(2),
                Event::Resume { .. } => events.push(3),
                _ => {}
            });
            // A group can change its active lanes without issuing an instruction. For example, a `join` can switch to
            // the other side of a branch. The recorder adds the events of this change to the previous step of the
            // group. So the step numbers equal the step numbers of the commands `run`, `stats` and `trace`.
            if issued || result.is_err() {
                self.last.insert(group, step);
            } else {
                self.steps.pop();
            }
            let step = self.last.get(&group).copied().unwrap_or(step);
            self.events.extend(events.into_iter().map(|kind| (step, kind)));
            if self.registers_until.is_none() {
                for (register, mask, values) in written {
                    self.writes.add(step, register, mask, &values);
                }
                if self.initial.values.len() + self.writes.values.len() > self.bounds.values {
                    self.registers_until = Some(step as usize);
                }
            }
            if let Err(error) = result {
                return Some(error);
            }
        }
    }

    /// Records the registers of a group before the group's first step. A register is recorded if the register occurs in
    /// the program's text, or if the register's value is not 0.
    fn start(&mut self, group: usize, step: i32) {
        for class in self.stepping.registers() {
            for number in 0..class.count {
                for channel in 0..class.channels.len().max(1) {
                    let register = Register { class: class.name, number, channel };
                    let Some(words) = self.stepping.read(group, register) else { continue };
                    if words.iter().all(|word| *word == 0) && !self.named.contains(&class, number) {
                        continue;
                    }
                    let mut values = [0; 64];
                    values.iter_mut().zip(&words).for_each(|(value, word)| *value = *word as i32);
                    let number = class.first as usize + number * class.channels.len().max(1) + channel;
                    self.initial.add(step, number as u32, Mask::first(words.len()), &values);
                }
            }
        }
    }

    /// Returns the state of a group before a step.
    fn before(&mut self, group: usize, pc: u32) -> RecordedStep {
        let lanes = |lane: usize| self.stepping.why(group, Lane(lane as u8)).unwrap_or(Why::Uncovered);
        let whys: Vec<Why> = (0..self.width).map(lanes).collect();
        let rows = rows(self.isa, &whys, &self.stepping.stack(group));
        let vector = whys.into_iter().map(|why| self.whys.of(why)).collect();
        RecordedStep {
            group: group as i32,
            line: self.lines.get(&pc).map_or(0, |line| *line as i32),
            vector: self.vectors.of(vector),
            stack: self.stacks.of(rows),
        }
    }

    /// Returns the report. The report has as much of the recorded data as the limit on the report's size allows.
    ///
    /// # Errors
    /// Returns an error if the report without steps already exceeds its size limit.
    pub(super) fn finish(self, report: Report, machine: &dyn Machine) -> Result<Report, Error> {
        let until = self.registers_until.unwrap_or(self.steps.len());
        let (mut steps, mut until) = (self.steps.len(), until);
        loop {
            let packed = self.packed(report.clone(), machine, steps, until);
            let bytes = packed.json().map_or(usize::MAX, |json| json.len());
            if bytes <= self.bounds.bytes {
                return Ok(packed);
            }
            // Computes a smaller count. The function multiplies the count by the ratio of the size limit to the
            // report's size, and then by 0.9. The factor 0.9 keeps the number of iterations small.
            let less = |count: usize| count * (self.bounds.bytes / 16) / (bytes / 16).max(1) / 10 * 9;
            if until > 0 {
                until = if until < 64 { 0 } else { less(until) };
            } else if steps > 0 {
                steps = if steps < 64 { 0 } else { less(steps) };
            } else {
                return Err(Error::Machine(format!(
                    "the report needs {bytes} bytes even without steps, but the page has room for only {} bytes",
                    self.bounds.bytes
                )));
            }
        }
    }

    /// Returns the report with the first `steps` steps. Only the first `until` steps have registers.
    fn packed(&self, report: Report, machine: &dyn Machine, steps: usize, until: usize) -> Report {
        let groups = self.stepping.groups();
        let mut notes = report.notes;
        if self.full || steps < self.steps.len() {
            notes.push(format!(
                "the timeline has the first {steps} of {} steps; the counts cover all steps",
                report.totals.instructions
            ));
        }
        if until < steps {
            notes.push(format!("registers are recorded up to step {until}"));
        }
        let kept = &self.steps[..steps];
        let mut events: Vec<(i32, i32)> =
            self.events.iter().copied().filter(|(step, _)| (*step as usize) < steps).collect();
        events.sort_by_key(|(step, _)| *step);
        let numbers = |of: fn(&RecordedStep) -> i32| kept.iter().map(of).collect::<Vec<i32>>();
        let (vectors, stacks) = (numbers(|step| step.vector), numbers(|step| step.stack));
        Report {
            lanes_per_group: self.width,
            groups,
            lanes: self.stepping.lanes(groups.saturating_sub(1)).end,
            whys: self.whys.list.iter().map(|why| in_words(*why, self.isa, machine)).collect(),
            vectors: self.vectors.list[..used(&self.vectors.list, &vectors)]
                .iter()
                .map(|lanes| runs(lanes))
                .collect(),
            stacks: self.stacks.list[..used(&self.stacks.list, &stacks)].to_vec(),
            registers: self.stepping.registers(),
            steps: PackedSteps {
                count: steps,
                group: pack(kept.iter().map(|step| step.group)),
                line: pack(kept.iter().map(|step| step.line)),
                vector: pack(vectors.into_iter()),
                stack: pack(stacks.into_iter()),
            },
            initial: self.initial.packed(until),
            writes: self.writes.packed(until),
            registers_until: until,
            events: PackedEvents {
                count: events.len(),
                step: pack(events.iter().map(|(step, _)| *step)),
                kind: pack(events.iter().map(|(_, kind)| *kind)),
            },
            notes,
            ..report
        }
    }
}

/// Compresses numbers by run-length encoding. Each run is a pair of a number and the length of the run.
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

/// Compresses a column of numbers. The function encodes the differences of consecutive numbers as zigzag varints. It
/// compresses the varints with zlib, and encodes the result in base64.
fn pack(numbers: impl Iterator<Item = i32>) -> String {
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
