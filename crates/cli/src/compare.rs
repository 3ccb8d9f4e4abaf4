//! `reconverge stats --compare`: compares two programs, traces or engines. The command finds the first difference and
//! the differences between the counts.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, Cursor, Read, Seek};
use std::path::Path;

use anyhow::{Context, Result, bail};
use clap::ArgMatches;
use reconverge_trace::compare::{Difference, Moment, first_difference};
use reconverge_trace::{Reader, What};
use reconverge_workbench::stats::{Profile, Totals};
use serde_json::{Value, json};

use crate::args::Answer;
use crate::interrupt::Ended;
use crate::launch::Ready;
use crate::messages;
use crate::stats::{Form, Stats, replay};
use crate::timeout::Timeout;
use crate::trace::{Recording, is_trace, record};

/// The source of a trace: a file or memory.
trait Input: Read + Seek {}
impl<T: Read + Seek> Input for T {}

/// One of the two launches or traces that are compared.
struct Side {
    name: String,
    reader: Reader<Box<dyn Input>>,
    profile: Profile,
    trap: Option<String>,
    /// The reason why the trace is incomplete, or `None` for a complete trace.
    part: Option<String>,
}

/// The counts that are compared: executions, lanes and divergences.
type Row = [u64; 3];

pub(crate) fn run(args: &Stats, matches: &ArgMatches) -> Result<Answer> {
    // The timer stops when `_limit` is dropped at the end of the command.
    let _limit = Timeout::start(args.timeout, args.json, &crate::shown::path(&args.launch.file()));
    if args.form == Form::Csv {
        bail!("--form csv: not allowed with a comparison; use --json");
    }
    let a = args.launch.file().to_owned();
    let (mut a, mut b) = match (&args.compare, args.compare_engine) {
        (Some(b), _) => {
            let with = |file: &Path| -> Result<Side> {
                if is_trace(file) {
                    return of_file(file);
                }
                let mut launch = args.launch.clone();
                launch.file = file.to_owned();
                of_launch(&launch.ready(matches)?, crate::shown::path(&file), args.limit)
            };
            (with(&a)?, with(b)?)
        }
        (None, engine) => {
            if is_trace(&a) {
                bail!("{}: --compare-engine: expected a launch, found a trace", crate::shown::path(&a));
            }
            let mut ready = args.launch.ready(matches)?;
            let first = of_launch(&ready, ready.options.engine.name().to_owned(), args.limit)?;
            ready.options.engine = engine.unwrap_or(ready.options.engine);
            (first, of_launch(&ready, ready.options.engine.name().to_owned(), args.limit)?)
        }
    };
    let machines = [&a, &b].map(|side| side.reader.header().isa.clone());
    let comparable = machines[0] == machines[1];
    let difference = match comparable {
        true => first_difference(&mut a.reader, &mut b.reader)?,
        false => None,
    };
    let rows = if comparable { differing_rows(&a, &b) } else { Vec::new() };
    let (totals_a, totals_b) = (a.profile.totals(), b.profile.totals());
    let equal = difference.is_none() && rows.is_empty() && totals_a == totals_b && a.trap == b.trap;
    if args.json {
        let side =
            |side: &Side| json!({ "name": side.name, "totals": side.profile.totals(), "trap": side.trap });
        say!(
            "{}",
            json!({
                "equal": equal,
                "compared": if comparable { "steps and counts" } else { "counts" },
                "a": side(&a),
                "b": side(&b),
                "first_difference": difference.as_ref().map(|found| json!({
                    "a": found.a.map(|moment| moment_json(&a, &moment)),
                    "b": found.b.map(|moment| moment_json(&b, &moment)),
                })),
                "counts": rows.iter().map(|(pc, text, [one, other])| json!({
                    "pc": pc, "text": text, "a": row_json(one), "b": row_json(other),
                })).collect::<Vec<_>>(),
            })
        );
    } else {
        say!("A: {}\nB: {}\n", a.name, b.name);
        match &difference {
            Some(found) => side_by_side(&a, &b, found),
            None if comparable => say!("no step differs"),
            None => say!(
                "A is for {}, B for {}: only their counts are compared, not their steps",
                machines[0],
                machines[1]
            ),
        }
        counts(&a, &b, &rows, [totals_a, totals_b]);
        for side in [&a, &b] {
            if let Some(trap) = &side.trap {
                say!("{}: {trap}", side.name);
            }
        }
    }
    for side in [&a, &b] {
        if let Some(part) = &side.part {
            messages::note(&format!("{}: {part}; only the recorded steps are compared", side.name));
        }
    }
    if equal && (a.part.is_some() || b.part.is_some()) {
        bail!("no difference found, but the recordings are incomplete");
    }
    Ok(if equal { Answer::Yes } else { Answer::No })
}

fn of_launch(ready: &Ready, name: String, limit: u64) -> Result<Side> {
    let (bytes, ended) = record(ready, Recording { data: false, limit }, Vec::new())?;
    ended.leave_if_interrupted();
    let mut side = of_reader(name, Reader::new(Box::new(Cursor::new(bytes)) as Box<dyn Input>)?)?;
    if let Ended::Trap(trap) = ended {
        side.trap = Some(trap);
    }
    Ok(side)
}

fn of_file(path: &Path) -> Result<Side> {
    let place = || crate::shown::path(&path);
    let file = BufReader::new(File::open(path).with_context(place)?);
    let reader = Reader::new(Box::new(file) as Box<dyn Input>).with_context(place)?;
    of_reader(place(), reader).with_context(place)
}

fn of_reader(name: String, mut reader: Reader<Box<dyn Input>>) -> Result<Side> {
    let mut profile = Profile::new(reader.header().lanes_per_group.max(1));
    replay(&mut reader, &mut profile)?;
    let end = reader.end();
    let trap = end.and_then(|end| end.outcome.trap.clone());
    let part = match (reader.problem(), end) {
        (Some(problem), _) => Some(problem.to_string()),
        (_, Some(end)) if end.outcome.interrupted => Some("the run was interrupted".to_owned()),
        (_, Some(end)) => {
            end.bound_at.map(|step| format!("records are missing from step {step}; raise --limit"))
        }
        _ => None,
    };
    Ok(Side { name, reader, profile, trap, part })
}

impl Side {
    /// Returns the counts of each instruction. The key consists of the instruction's address and text.
    fn rows(&self) -> BTreeMap<(u32, String), Row> {
        let rows = self.profile.instructions().map(|(pc, counts)| {
            let text = self.reader.described(&What::Ran { pc, count: 1, mask: Default::default() }, None);
            ((pc, text), [counts.executed, counts.lanes, counts.diverged])
        });
        rows.collect()
    }

    /// Returns a moment as text. If an instruction ran at this moment, the text has the lanes, the address and the
    /// instruction.
    fn spelled(&self, moment: &Moment) -> String {
        let width = self.reader.header().lanes_per_group.clamp(1, 64) as u8;
        let text = self.reader.described(&moment.what, None);
        match moment.what {
            What::Ran { mask, .. } => {
                let lanes: String =
                    (0..width).map(|lane| if mask.0 >> lane & 1 != 0 { 'A' } else { '.' }).collect();
                format!("{lanes} {} {text}", self.reader.spelled(moment.pc))
            }
            _ => text,
        }
    }
}

/// Returns the rows whose counts differ.
fn differing_rows(a: &Side, b: &Side) -> Vec<(u32, String, [Row; 2])> {
    let mut both: BTreeMap<(u32, String), [Row; 2]> = BTreeMap::new();
    for (place, side) in [a, b].into_iter().enumerate() {
        for (key, row) in side.rows() {
            both.entry(key).or_default()[place] = row;
        }
    }
    let differing = both.into_iter().filter(|(_, [one, other])| one != other);
    differing.map(|((pc, text), rows)| (pc, text, rows)).collect()
}

fn row_json([executed, lanes, diverged]: &Row) -> Value {
    json!({ "executed": executed, "lanes": lanes, "diverged": diverged })
}

fn moment_json(side: &Side, moment: &Moment) -> Value {
    let mut object = json!({
        "step": moment.step,
        "group": moment.group,
        "pc": moment.pc,
        "text": side.reader.described(&moment.what, None),
    });
    if let What::Ran { mask, .. } = moment.what {
        object["mask"] = json!(format!("{:#x}", mask.0));
    }
    object
}

fn side_by_side(a: &Side, b: &Side, found: &Difference) {
    let step = |moment: Option<&Moment>| moment.map(|moment| moment.step.to_string()).unwrap_or_default();
    let group = |moment: Option<&Moment>| moment.map(|moment| moment.group.to_string()).unwrap_or_default();
    let mut table = messages::table(["", "step", "group", "A", "step", "group", "B"]);
    let mut row = |mark: &str, one: Option<&Moment>, other: Option<&Moment>| {
        let text = |side: &Side, moment: Option<&Moment>| {
            moment.map_or_else(|| "ends here".to_owned(), |moment| side.spelled(moment))
        };
        table.add_row([
            mark.to_owned(),
            step(one),
            group(one),
            text(a, one),
            step(other),
            group(other),
            text(b, other),
        ]);
    };
    for (one, other) in &found.before {
        row("", Some(one), Some(other));
    }
    row("!", found.a.as_ref(), found.b.as_ref());
    say!("{}", table.trim_fmt());
}

fn counts(a: &Side, b: &Side, rows: &[(u32, String, [Row; 2])], totals: [Totals; 2]) {
    let mut table = messages::table(["", "executed: A", "B", "lanes: A", "B", "diverged: A", "B"]);
    let cells = |name: String, [one, other]: [Row; 2]| {
        let numbers = (0..3).flat_map(|place| [one[place].to_string(), other[place].to_string()]);
        std::iter::once(name).chain(numbers).collect::<Vec<_>>()
    };
    for (pc, text, rows) in rows {
        table.add_row(cells(format!("{} {text}", a.reader.spelled(*pc)), *rows));
    }
    let total = |of: &Totals| [of.instructions, of.lane_instructions, of.divergent_branches];
    table.add_row(cells("total".to_owned(), totals.map(|of| total(&of))));
    say!("\n{}", table.trim_fmt());
    let efficiency = totals.map(|of| format!("{:.1} %", 100.0 * of.simd_efficiency));
    say!("SIMD efficiency: A {}, B {}", efficiency[0], efficiency[1]);
    let stacks = [a, b].map(|side| side.profile.totals().stack_high_water);
    if stacks[0] != stacks[1] {
        say!("stack: maximum number of entries: A {}, B {}", stacks[0], stacks[1]);
    }
}
