//! Counts by instruction equal an independent recount of the trace, and the counts of the run, in every case of the
//! built-in corpus. `STATISTICS_OF=FOLDER` adds the corpora of a folder.

use std::collections::BTreeMap;
use std::io::Cursor;
use std::path::Path;
use std::sync::Arc;

use reconverge_cases::{Folder, NoFolder, read};
use reconverge_simt::{Engine, Event, Mask, Mode, Options};
use reconverge_trace::{Header, Limits, Line, Outcome, Reader, Record, Recording, Totals, What, Writer};
use reconverge_workbench::Style;
use reconverge_workbench::stats::{InstructionCounts, Profile};
use reconverge_workbench::trace::{Recorded, Sink};
use reconverge_workbench::values::NoFiles;

/// Sends all events to counts and to a trace.
struct Both {
    profile: Profile,
    writer: Writer<Vec<u8>>,
}

impl Sink for Both {
    fn issues(&mut self, group: usize, addresses: &[u32], mask: Mask) {
        self.profile.issues(group, addresses, mask);
        self.writer.issues(group as u32, addresses, mask).unwrap();
    }

    fn event(&mut self, group: usize, event: Event) {
        self.profile.event(group, event);
        self.writer.event(group as u32, event).unwrap();
    }
}

/// Sends all events to a trace, which the engine may pack itself.
struct Alone(Writer<Vec<u8>>);

impl Sink for Alone {
    fn issues(&mut self, group: usize, addresses: &[u32], mask: Mask) {
        self.0.issues(group as u32, addresses, mask).unwrap();
    }

    fn event(&mut self, group: usize, event: Event) {
        self.0.event(group as u32, event).unwrap();
    }

    fn recording(&mut self) -> Option<Recording<'_>> {
        Some(self.0.recording())
    }
}

/// An action of a group: an instruction for some lanes, or a divergence into two sides.
enum Did {
    Ran(u32, Mask),
    Parted(Mask, Mask),
}

/// Returns all records of a trace, and its totals. The bytes of two files with the same records may differ, because a
/// sequence that the engine announces by a key becomes a phrase.
fn records(file: &[u8]) -> (Vec<Record>, Totals) {
    let mut reader = Reader::new(Cursor::new(file)).unwrap();
    let records = reader.records().collect::<Result<_, _>>().unwrap();
    (records, reader.end().unwrap().totals)
}

/// Returns counts by address, from a trace.
fn recount(file: &[u8]) -> BTreeMap<u32, InstructionCounts> {
    let (records, _) = records(file);
    let reader = Reader::new(Cursor::new(file)).unwrap();
    let mut groups: BTreeMap<u32, Vec<Did>> = BTreeMap::new();
    for record in records {
        let group = groups.entry(record.group).or_default();
        match record.what {
            What::Ran { pc, count, mask } => {
                group.extend(reader.addresses(pc, count).iter().map(|address| Did::Ran(*address, mask)));
            }
            What::Diverge { taken, not } => group.push(Did::Parted(taken, not)),
            _ => {}
        }
    }
    let mut counts: BTreeMap<u32, InstructionCounts> = BTreeMap::new();
    for group in groups.into_values() {
        let mut branch = 0;
        for (place, did) in group.iter().enumerate() {
            match did {
                Did::Ran(pc, mask) => {
                    branch = *pc;
                    let counts = counts.entry(*pc).or_default();
                    counts.executed += 1;
                    counts.lanes += u64::from(mask.count());
                }
                Did::Parted(taken, not) => {
                    let counts = counts.entry(branch).or_default();
                    counts.diverged += 1;
                    let later = group[place..].iter().filter_map(|did| match did {
                        Did::Ran(_, mask) => Some(((*mask & *taken).any(), (*mask & *not).any())),
                        Did::Parted(..) => None,
                    });
                    let apart: Vec<_> = later.clone().take_while(|sides| *sides != (true, true)).collect();
                    counts.taken_cost += apart.iter().filter(|sides| **sides == (true, false)).count() as u64;
                    counts.not_cost += apart.iter().filter(|sides| **sides == (false, true)).count() as u64;
                    if later.count() > apart.len() {
                        counts.reconverged += 1;
                        counts.distance += apart.len() as u64;
                        counts.farthest = counts.farthest.max(apart.len() as u64);
                    }
                }
            }
        }
    }
    counts
}

/// Compares the launches of a file. Returns their number.
fn compare(path: &Path) -> usize {
    let bytes = std::fs::read(path).unwrap();
    let none: Arc<dyn Folder> = Arc::new(NoFolder);
    let Ok(cases) = read(&path.display().to_string(), &bytes, &none, None) else { return 0 };
    let mut compared = 0;
    for case in cases {
        let name = format!("{} {}", path.display(), case.name);
        let opened = case.open().unwrap_or_else(|error| panic!("{name}: {error}"));
        let (target, image) = (&opened.opened.target, &opened.opened.image);
        let program = &image.programs[0];
        for launch in &opened.launches {
            let session = launch.prepare(image, program, &NoFiles);
            let session = session.unwrap_or_else(|error| panic!("{name}: {error}"));
            let listing = target.machine().disassemble(target, program, Style::default()).unwrap();
            let mut addresses: Vec<u32> =
                listing.lines(&program.words).iter().filter_map(|line| line.address).collect();
            addresses.sort_unstable();
            addresses.dedup();
            let line = |address: u32| Line { address, ..Line::default() };
            let header = Header { listing: addresses.into_iter().map(line).collect(), ..Header::default() };
            let both = [Engine::Fast, Engine::Reference].map(|engine| {
                let options = Options { engine, mode: Mode::Lenient, ..Options::default() };
                let writer = Writer::new(Vec::new(), &header, Limits::default()).unwrap();
                let mut both = Both { profile: Profile::new(64), writer };
                let outcome = session.copy().run_traced(&options, Recorded::Flow, &mut both);
                let statistics = outcome.ok().map(|outcome| outcome.statistics());
                let Both { profile, writer } = both;
                let counts: BTreeMap<u32, InstructionCounts> = profile.instructions().collect();
                let file = writer.finish(Outcome::default()).unwrap();
                let mut alone = Alone(Writer::new(Vec::new(), &header, Limits::default()).unwrap());
                let _ = session.copy().run_traced(&options, Recorded::Flow, &mut alone);
                let packed = alone.0.finish(Outcome::default()).unwrap();
                let same = records(&file) == records(&packed);
                assert!(same, "{name} on {engine:?}: the engine packs what it hands out");
                assert_eq!(counts, recount(&file), "{name} on {engine:?}");
                if let Some(statistics) = statistics {
                    let totals = profile.totals();
                    assert_eq!(
                        (totals.instructions, totals.lane_instructions, totals.divergent_branches),
                        (
                            statistics.instructions,
                            statistics.lane_instructions,
                            statistics.divergent_branches
                        ),
                        "{name} on {engine:?}"
                    );
                }
                counts
            });
            assert_eq!(both[0], both[1], "{name}: the engines count alike");
            compared += 1;
        }
    }
    compared
}

/// Adds all files of cases in a folder to `found`.
fn files(folder: &Path, found: &mut Vec<std::path::PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "gz") {
            found.push(path);
        }
    }
}

#[test]
fn counts_by_instruction_equal_a_recount_of_the_trace_and_the_counts_of_the_run() {
    let mut found = Vec::new();
    files(Path::new("../../corpus"), &mut found);
    if let Ok(folder) = std::env::var("STATISTICS_OF") {
        files(Path::new(&folder), &mut found);
    }
    let mut compared = 0;
    for path in found {
        let launches = compare(&path);
        if launches > 0 {
            println!("{}: {launches} launches", path.display());
        }
        compared += launches;
    }
    assert!(compared > 50, "{compared} launches");
}
