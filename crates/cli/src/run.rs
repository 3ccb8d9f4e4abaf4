//! `reconverge run`

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::{Context, Result, anyhow, bail};
use clap::ArgMatches;
use clap::builder::TypedValueParser;
use comfy_table::{CellAlignment, ColumnConstraint, Table, Width};
use reconverge_simt::{Fidelity, Options};
use reconverge_workbench::Error;
use reconverge_workbench::array::Array;
use reconverge_workbench::error::Trapped;
use reconverge_workbench::launch::choose_program;
use reconverge_workbench::result::RunResult;
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Value, json};

use crate::args::{Answer, one_of};
use crate::exactness::Followed;
use crate::launch::{LaunchArgs, Prepared, prepare};
use crate::messages::{self, counted, note};
use crate::page::PageArgs;
use crate::timeout::{Seconds, Timeout};
use crate::{files, interrupt};

/// Run a program, a launch file or a run manifest
///
/// VALUES is a file (.npy, .npz:NAME, .json, .bin:TYPE) or literal values: a list 1,2.5,-3, a range 0..64 or
/// 0..1..0.125, or zeros f32[64]. Numbers are floats where floats are expected, unless a suffix :u32, :i32, :f32 or
/// :bits states the type. A .toml or .json file is a launch file or a run manifest, which describes the launch
/// completely.
#[derive(clap::Args)]
pub(crate) struct Run {
    #[command(flatten)]
    launch: LaunchArgs,
    #[command(flatten)]
    page: PageArgs,
    /// Stop after this time, with exit status 1
    #[arg(long, value_name = "SECONDS")]
    timeout: Option<Seconds>,
    /// Number of rows to print of each output, or all
    #[arg(long, value_name = "N", default_value = "64")]
    rows: Rows,
    /// Write an output to a file (.npy, .json, .bin): color0=out.npy
    #[arg(long = "out", value_name = "NAME=FILE")]
    output: Vec<String>,
    /// Report the exactness of the values that decided the flow, selected an address or left the program. For this
    /// report, the command runs the launch a second time, on the reference engine
    #[arg(long)]
    exactness: bool,
    /// Exit with status 1 if a value below this grade decided the flow, selected an address or left the program.
    /// Inexact values with other uses are accepted
    #[arg(long, value_name = "GRADE", value_parser = grade())]
    require: Option<Fidelity>,
    /// One JSON object on standard output
    #[arg(long)]
    json: bool,
}

fn grade() -> impl TypedValueParser<Value = Fidelity> {
    one_of(Fidelity::ALL.to_vec(), |grade| grade.name())
}

impl Run {
    fn follows(&self) -> bool {
        self.exactness || self.require.is_some()
    }
}

/// The rows of an output that are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rows {
    All,
    First(usize),
}

impl FromStr for Rows {
    type Err = String;

    fn from_str(text: &str) -> Result<Rows, String> {
        match text {
            "all" => Ok(Rows::All),
            number => number.parse().map(Rows::First).map_err(|_| "expected a number or `all`".to_owned()),
        }
    }
}

/// The result of a run.
enum Ended {
    /// The run ended without a trap, or with a trap that the launch file does not require. The first field contains the
    /// results, and the second field contains the differences from the expected results.
    Judged(Box<RunResult>, Vec<String>),
    Trapped(Box<Trapped>),
    /// The run ended with the trap that the launch file requires.
    TrappedAsStated(Box<Trapped>),
    Differ(String),
}

pub(crate) fn run(args: &Run, matches: &ArgMatches) -> Result<Answer> {
    let limit = Timeout::start(args.timeout, args.json, &crate::shown::path(&args.launch.file));
    interrupt::watch();
    let progress = messages::spinner("running");
    let ended = execute(args, matches);
    progress.finish_and_clear();
    limit.end();
    let file = crate::shown::path(&args.launch.file);
    let (ended, followed, source) = ended?;
    if let Ended::Judged(result, _) = &ended
        && interrupt::asked()
    {
        print(args, result, None, true)?;
        args.page.say_interrupted();
        return Ok(Answer::Status(interrupt::STATUS as u8));
    }
    if args.page.html.is_some() {
        let mismatches = match &ended {
            Ended::Judged(_, mismatches) => mismatches.as_slice(),
            _ => &[],
        };
        args.page.write(&args.launch.ready(matches)?, mismatches)?;
    }
    let (mut result, mut wrong) = match ended {
        Ended::Judged(result, wrong) => (result, wrong),
        Ended::TrappedAsStated(trapped) => {
            if args.json {
                let answer = json!({ "trap": trapped.message, "at": trapped.to_json(), "mismatches": [] });
                messages::answer_json(&answer);
            } else {
                say!("ends with the trap that the launch expects: {trapped}");
            }
            return Ok(Answer::Yes);
        }
        Ended::Trapped(trapped) => {
            if args.json {
                messages::answer_json(&json!({ "trap": trapped.message, "at": trapped.to_json() }));
            }
            tell!("{file}: {trapped}");
            trapped.details(&crate::shown::path(&source)).iter().for_each(|line| tell!("  {line}"));
            return Ok(Answer::No);
        }
        Ended::Differ(why) => {
            if args.json {
                messages::answer_json(&json!({ "differ": why }));
            }
            tell!("{file}: {why}");
            return Ok(Answer::No);
        }
    };
    wrong.extend(followed.as_ref().and_then(|followed| followed.worse_than(args.require?)));
    let answer = if wrong.is_empty() { Answer::Yes } else { Answer::No };
    result.mismatches = wrong;
    for (name, file) in
        args.output.iter().map(|text| assignment(text, "--out")).collect::<Result<Vec<_>>>()?
    {
        let found = result.outputs.iter().find(|(known, _)| known == name);
        let names: Vec<&str> = result.outputs.iter().map(|(name, _)| name.as_str()).collect();
        let (_, array) = found
            .ok_or_else(|| anyhow!("unknown output --out `{name}`: expected one of {}", names.join(", ")))?;
        save(Path::new(file), array)?;
    }
    print(args, &result, followed.as_ref(), false)?;
    Ok(answer)
}

/// Prepares and runs the launch that the arguments describe. If the arguments request exactness, the function runs the
/// launch again and tracks the exactness of the values. Also returns the path of the program's file.
fn execute(args: &Run, matches: &ArgMatches) -> Result<(Ended, Option<Followed>, PathBuf)> {
    let options = args.launch.options();
    let mut followed = None;
    let title = || crate::shown::path(&args.launch.file);
    let (ended, beside, source) = match prepare(&args.launch, matches)? {
        Prepared::Launch { launch, opened, path, beside, .. } => {
            let kernel = args.launch.kernel.as_deref().or(launch.common.kernel.as_deref());
            let program = choose_program(&opened.image, kernel);
            let program = program.with_context(|| crate::shown::path(&path))?;
            let ran = launch.run(&opened.image, program, &options, &beside);
            let trapped = match &ran {
                Err(Error::Trap(trapped)) => Some(trapped.clone()),
                _ => None,
            };
            let ended = match (launch.judged(ran, &crate::shown::path(&path)), trapped) {
                (Ok((None, wrong)), Some(trapped)) if wrong.is_empty() => Ok(Ended::TrappedAsStated(trapped)),
                (Ok((result, wrong)), _) => {
                    let follows = args.follows() && !interrupt::asked();
                    if let Some(result) = result.as_ref().filter(|_| follows) {
                        let session = launch.prepare(&opened.image, program, &beside).with_context(title)?;
                        let options = launch.options(&options)?;
                        followed = Some(
                            Followed::of(&opened, program, &session, &options, result).with_context(title)?,
                        );
                    }
                    Ok(Ended::Judged(Box::new(result.unwrap_or_default()), wrong))
                }
                (Err(Error::Trap(mut trapped)), _) => {
                    launch.look(&mut trapped, &opened, program, &options, &beside);
                    Ok(Ended::Trapped(trapped))
                }
                (Err(error), _) => Err(error),
            };
            (ended, beside, path)
        }
        Prepared::Manifest { manifest, opened, beside } => {
            let mode = args.launch.mode.unwrap_or(options.mode);
            let watchdog = args.launch.watchdog.unwrap_or(options.watchdog);
            let options = Options { mode, watchdog, ..options };
            let ran = manifest.run(&opened, &options, &beside);
            let ended = match ran {
                Ok(result) => {
                    if args.follows() && !interrupt::asked() {
                        let (session, program) =
                            manifest.prepare(&opened.image, &beside).with_context(title)?;
                        followed = Some(
                            Followed::of(&opened, &program, &session, &options, &result)
                                .with_context(title)?,
                        );
                    }
                    let wrong = result.mismatches.clone();
                    Ok(Ended::Judged(Box::new(result), wrong))
                }
                Err(Error::Trap(trapped)) => Ok(Ended::Trapped(trapped)),
                Err(error) => Err(error),
            };
            (ended, beside, args.launch.file.clone())
        }
    };
    let ended = match ended {
        Err(Error::Differ(why)) => Ended::Differ(why),
        ended => ended.with_context(title)?,
    };
    if let Some(types) = beside.types() {
        note(&types);
    }
    Ok((ended, followed, source))
}

fn assignment<'a>(text: &'a str, option: &str) -> Result<(&'a str, &'a str)> {
    text.split_once('=').ok_or_else(|| anyhow!("{option}: expected NAME=VALUE, found `{text}`"))
}

fn save(path: &Path, array: &Array) -> Result<()> {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("npy") => files::write(path, &array.to_npy()),
        Some("bin") => files::write(path, &array.bytes),
        Some("json") => files::write_whole(path, |file| {
            let mut file = BufWriter::new(file);
            serde_json::to_writer(&mut file, array)?;
            file.flush()
        }),
        _ => bail!("{}: expected the extension .npy, .json or .bin", crate::shown::path(&path)),
    }
}

/// Outputs by name. The command writes the outputs as one JSON object, without a copy of the object in memory.
struct Outputs<'a>(&'a [(String, Array)]);

impl Serialize for Outputs<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        self.0.iter().try_for_each(|(name, array)| map.serialize_entry(name, array))?;
        map.end()
    }
}

/// The results of a run, as one JSON object.
#[derive(serde::Serialize)]
struct Answered<'a> {
    outputs: Outputs<'a>,
    /// Whether Ctrl-C interrupted the run, so that the results are incomplete.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    interrupted: bool,
    group_instructions: u64,
    /// The same number as `group_instructions`. The output of `bench` uses this name.
    warp_instructions: u64,
    lane_instructions: u64,
    divergent_branches: u64,
    fidelity: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    exactness: Option<Value>,
    findings: &'a [String],
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    held: &'a [String],
    mismatches: &'a [String],
}

/// Prints the results. If the run was interrupted, prints the results up to the interruption.
fn print(args: &Run, result: &RunResult, followed: Option<&Followed>, interrupted: bool) -> Result<()> {
    let statistics = result.statistics;
    if args.json {
        let fidelity = result.report.operations.iter().map(|(name, (fidelity, times))| {
            ((*name).to_owned(), json!({ "fidelity": fidelity.name(), "issued": times }))
        });
        let object = Answered {
            outputs: Outputs(&result.outputs),
            interrupted,
            group_instructions: statistics.instructions,
            warp_instructions: statistics.instructions,
            lane_instructions: statistics.lane_instructions,
            divergent_branches: statistics.divergent_branches,
            fidelity: Value::Object(fidelity.collect()),
            exactness: followed.map(Followed::to_json),
            findings: &result.findings,
            held: &result.held,
            mismatches: &result.mismatches,
        };
        messages::answer_json(&object);
    } else {
        for (name, array) in &result.outputs {
            say!("{}: {} {:?}", crate::shown::name(name), array.dtype, array.shape);
            print_rows(array, args.rows);
        }
        let reconverge_simt::Statistics { instructions, lane_instructions, divergent_branches } = statistics;
        say!("{}", messages::executed(instructions, lane_instructions, divergent_branches));
        for fidelity in reconverge_simt::Fidelity::ALL {
            let of = result.report.operations.iter().filter(|(_, (known, _))| *known == fidelity);
            let names: Vec<String> = of.map(|(name, (_, times))| format!("{name} x{times}")).collect();
            if !names.is_empty() {
                say!("{fidelity}: {}", names.join(", "));
            }
        }
        followed.iter().flat_map(|followed| followed.lines()).for_each(|line| say!("{line}"));
        result.held.iter().for_each(|line| say!("{line}"));
    }
    if interrupted {
        note(&format!(
            "{}: interrupted: these are the results so far, with zeros for lanes that did not run; no file is written",
            crate::shown::path(&args.launch.file)
        ));
        return Ok(());
    }
    for finding in &result.findings {
        note(&format!("{}: strict finding: {finding}", crate::shown::path(&args.launch.file)));
    }
    for mismatch in &result.mismatches {
        tell!("{}: {mismatch}", crate::shown::path(&args.launch.file));
    }
    Ok(())
}

/// Number of rows that are formatted together. Columns are as wide as the widest number in these rows.
const PIECE: usize = 1024;
/// Maximum number of values that the command prints per row, unless the command prints all rows.
const COLUMNS: usize = 16;

fn print_rows(array: &Array, rows: Rows) {
    let all = array.rows();
    let (count, columns) = match rows {
        Rows::All => (all, usize::MAX),
        Rows::First(rows) => (rows.min(all), COLUMNS),
    };
    for first in (0..count).step_by(PIECE) {
        let mut table = Table::new();
        table.load_style(comfy_table::presets::NOTHING);
        for row in first..count.min(first + PIECE) {
            let numbers = array.row(row);
            let shown = numbers.clone().take(columns).map(|index| array.text(index));
            let left = numbers.len().saturating_sub(columns);
            let left = (left > 0).then(|| format!("… {left} more"));
            table.add_row(std::iter::once(row.to_string()).chain(shown).chain(left));
        }
        for (number, column) in table.column_iter_mut().enumerate() {
            column.set_cell_alignment(CellAlignment::Right);
            column.set_padding((if number < 2 { 2 } else { 1 }, 0));
            if number == 0 {
                column.set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(6)));
            }
        }
        say!("{}", table.trim_fmt());
    }
    if count < all {
        say!("  … {} (--rows all prints them)", counted((all - count) as u64, "more row"));
    }
}
