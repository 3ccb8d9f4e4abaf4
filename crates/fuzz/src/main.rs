//! Maintenance commands of the repository: `cargo xtask fuzz`, `cargo xtask decodes`, `cargo xtask cases`.

#![forbid(unsafe_code)]

use std::hash::{DefaultHasher, Hasher as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use clap::{Args, Parser};
use indicatif::{ProgressBar, ProgressStyle};
use reconverge_fuzz::driver::{Outcome, Plan, Until, bytes_of, checked, run};
use reconverge_fuzz::finding::Finding;
use reconverge_fuzz::{Target, target, targets};
use reconverge_isa::Isa;
use reconverge_simt::guarded::Placement;

/// Maintenance commands of the repository.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
enum Xtask {
    /// Searches for bytes that violate a property.
    Fuzz(Fuzz),
    /// Passes random words of a machine through decode, print, parse and encode.
    Decodes(Decodes),
    /// Writes the seeds and the first cases of a target into a folder, for another fuzzer.
    Cases(Cases),
}

/// Options for creating and running cases.
#[derive(Args)]
struct Common {
    /// Seed that determines every case.
    #[arg(long, default_value_t = 1, value_parser = number)]
    seed: u64,
    /// Number of threads (default: one per processor).
    #[arg(long)]
    jobs: Option<usize>,
    /// Seconds that one case may take.
    #[arg(long, default_value_t = 60.0)]
    limit: f32,
    /// The folder for findings.
    #[arg(long, default_value = "fuzz/findings")]
    findings: PathBuf,
    /// Runs the cases in this process. If a case ends the process, no message names the case.
    #[arg(long, hide = true)]
    marks: Option<PathBuf>,
}

#[derive(Args)]
struct Fuzz {
    /// The name of a target, or the first part of the names of several targets (default: all targets).
    #[arg(long = "target")]
    targets: Vec<String>,
    /// Hours for each target.
    #[arg(long, conflicts_with = "cases")]
    hours: Option<f64>,
    /// Cases of each target, decimal or as 1e6.
    #[arg(long, default_value = "10000", value_parser = number)]
    cases: u64,
    /// Ends the run of a target after this amount was checked, in the unit of the target.
    #[arg(long, hide = true, value_parser = number)]
    counted: Option<u64>,
    /// Lists the targets and the properties that they check.
    #[arg(long)]
    list: bool,
    /// Runs only the case in the file of a finding. With a target, runs the bytes of any file. If these bytes violate a
    /// property of the target, the command writes a finding.
    #[arg(long, value_name = "FILE")]
    replay: Option<PathBuf>,
    #[command(flatten)]
    common: Common,
}

#[derive(Args)]
struct Decodes {
    /// r500, r700 or tesla (default: all).
    #[arg(long)]
    machine: Option<Isa>,
    /// Instructions of each machine (R600 and R700: 64-bit words), decimal or as 1e9.
    #[arg(long, value_parser = number)]
    count: u64,
    #[command(flatten)]
    common: Common,
}

#[derive(Args)]
struct Cases {
    /// The target.
    #[arg(long)]
    target: String,
    /// Number of cases, in addition to the seeds.
    #[arg(long, default_value = "1000", value_parser = number)]
    count: u64,
    /// Seed that determines every case.
    #[arg(long, default_value_t = 1, value_parser = number)]
    seed: u64,
    /// The folder.
    folder: PathBuf,
}

/// Reads an integer. The integer is decimal, hexadecimal with the prefix `0x`, or has a power of ten, such as `1e9`.
fn number(text: &str) -> Result<u64, String> {
    let parsed = match (text.strip_prefix("0x"), text.split_once('e')) {
        (Some(digits), _) => u64::from_str_radix(digits, 16).ok(),
        (None, Some((digits, power))) => digits
            .parse::<u64>()
            .ok()
            .and_then(|digits| digits.checked_mul(10_u64.checked_pow(power.parse().ok()?)?)),
        (None, None) => text.parse().ok(),
    };
    parsed.ok_or_else(|| format!("`{text}` is not a whole number"))
}

/// Puts guard pages around the memory that generated code accesses. Does nothing if `RECONVERGE_GUARD` is set.
fn guard() {
    if std::env::var_os("RECONVERGE_GUARD").is_none() {
        Placement::AtEnd.force();
    }
}

fn main() -> Result<ExitCode> {
    guard();
    match Xtask::parse() {
        Xtask::Fuzz(Fuzz { list: true, .. }) => {
            for target in targets() {
                println!("{:24} {}", target.name, target.about);
            }
            Ok(ExitCode::SUCCESS)
        }
        Xtask::Fuzz(Fuzz { replay: Some(file), targets, common, .. }) => match &*targets {
            [] => replay(&file),
            [name] => replay_bytes(&file, name, &common),
            _ => bail!("--replay FILE is for one target"),
        },
        Xtask::Fuzz(fuzz) => {
            let until = match (fuzz.hours, fuzz.counted) {
                (_, Some(counted)) => Until::Counted(counted),
                (Some(hours), None) => {
                    let time = Duration::try_from_secs_f64(3600.0 * hours);
                    Until::Time(time.with_context(|| format!("--hours {hours}"))?)
                }
                (None, None) => Until::Cases(fuzz.cases),
            };
            let chosen = chosen(&fuzz.targets)?;
            all(&chosen.into_iter().map(|target| (target, until)).collect::<Vec<_>>(), &fuzz.common)
        }
        Xtask::Cases(cases) => write(&cases),
        Xtask::Decodes(decodes) => {
            let mut plans = Vec::new();
            for isa in Isa::ALL.into_iter().filter(|isa| decodes.machine.is_none_or(|only| only == *isa)) {
                let of_isa: Vec<&Target> = targets()
                    .filter(|target| target.isa == Some(isa) && target.name.starts_with("decode-"))
                    .collect();
                let each = decodes.count.div_ceil(of_isa.len() as u64);
                plans.extend(of_isa.into_iter().map(|target| (target, Until::Counted(each))));
            }
            all(&plans, &decodes.common)
        }
    }
}

/// Writes seeds and cases, one file each.
fn write(cases: &Cases) -> Result<ExitCode> {
    let Cases { target: name, count, seed, folder } = cases;
    let target = named(name)?;
    let seeds = (target.seeds)();
    std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    let put = |name: String, bytes: &[u8]| {
        let file = folder.join(name);
        std::fs::write(&file, bytes).with_context(|| file.display().to_string())
    };
    for (number, bytes) in seeds.iter().enumerate() {
        put(format!("seed-{number}"), bytes)?;
    }
    for case in 0..*count {
        put(format!("case-{case}"), &bytes_of(target, &seeds, *seed, case))?;
    }
    println!("{name}: {} seeds and {count} cases in {}", seeds.len(), folder.display());
    Ok(ExitCode::SUCCESS)
}

/// Returns the targets that `names` selects. Each item of `names` is the name of a target, or the first part of the
/// names of several targets.
fn chosen(names: &[String]) -> Result<Vec<&'static Target>> {
    if names.is_empty() {
        return Ok(targets().collect());
    }
    let mut chosen = Vec::new();
    for name in names {
        let before = chosen.len();
        match target(name) {
            Some(target) => chosen.push(target),
            None => chosen.extend(targets().filter(|target| target.name.starts_with(name.as_str()))),
        }
        ensure!(chosen.len() > before, "unknown target `{name}`: --list lists the targets");
    }
    Ok(chosen)
}

/// Runs targets one after the other. Each target runs in a separate process, so that this process can report a case
/// that ends the target's process.
fn all(plans: &[(&'static Target, Until)], common: &Common) -> Result<ExitCode> {
    if let Some(marks) = &common.marks {
        let [(target, until)] = plans else { bail!("--marks: expected one target, found {}", plans.len()) };
        return here(target, *until, common, Some(marks));
    }
    let mut code = ExitCode::SUCCESS;
    for (target, until) in plans {
        if !apart(target, *until, common)? {
            code = ExitCode::FAILURE;
        }
    }
    Ok(code)
}

fn jobs(common: &Common) -> usize {
    common.jobs.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from)).max(1)
}

/// Runs a target in a separate process. Returns whether there was no finding.
fn apart(target: &'static Target, until: Until, common: &Common) -> Result<bool> {
    let marks = std::env::temp_dir().join(format!("reconverge-fuzz-{}", std::process::id()));
    std::fs::create_dir_all(&marks).with_context(|| marks.display().to_string())?;
    let mut command = Command::new(std::env::current_exe()?);
    match until {
        Until::Counted(count) => command.args(["fuzz", "--counted", &count.to_string()]),
        Until::Cases(cases) => command.args(["fuzz", "--cases", &cases.to_string()]),
        Until::Time(time) => command.args(["fuzz", "--hours", &(time.as_secs_f64() / 3600.0).to_string()]),
    };
    command.args(["--target", target.name, "--seed", &common.seed.to_string()]);
    command.args(["--jobs", &jobs(common).to_string(), "--limit", &common.limit.to_string()]);
    command.arg("--findings").arg(&common.findings).arg("--marks").arg(&marks);
    let status = command.status()?;
    let sound = match status.code() {
        Some(0) => true,
        Some(1) => false,
        Some(_) => bail!("{}: {status}", target.name),
        None => {
            name_the_end(target, common, &marks, &status.to_string())?;
            false
        }
    };
    std::fs::remove_dir_all(&marks).with_context(|| marks.display().to_string())?;
    Ok(sound)
}

/// Finds the case that ended a process. Several cases were in progress. The function repeats each of these cases in a
/// separate process.
fn name_the_end(target: &'static Target, common: &Common, marks: &Path, status: &str) -> Result<()> {
    let seeds = (target.seeds)();
    let mut named = false;
    for mark in std::fs::read_dir(marks)? {
        let Ok(case) = std::fs::read(mark?.path())?.as_slice().try_into().map(u64::from_le_bytes) else {
            continue;
        };
        let bytes = bytes_of(target, &seeds, common.seed, case);
        let why = format!("the process ended: {status}");
        let finding = Finding { target: target.name.to_owned(), seed: common.seed, case, why, bytes };
        let file = finding.write(&common.findings)?;
        let again = Command::new(std::env::current_exe()?).args(["fuzz", "--replay"]).arg(&file).status()?;
        match again.code() {
            None => {
                named = true;
                show(&finding, &file);
            }
            Some(_) => std::fs::remove_file(&file)?,
        }
    }
    if !named {
        eprintln!(
            "{}: the process ended ({status}), but no single case ends a process: seed {}",
            target.name, common.seed
        );
    }
    Ok(())
}

/// Runs a target in this process.
fn here(target: &'static Target, until: Until, common: &Common, marks: Option<&Path>) -> Result<ExitCode> {
    let plan = Plan {
        seed: common.seed,
        until,
        jobs: jobs(common),
        limit: Duration::try_from_secs_f32(common.limit)
            .with_context(|| format!("--limit {}", common.limit))?,
        marks: marks.map(Path::to_owned),
    };
    let bar = match until {
        Until::Cases(most) | Until::Counted(most) => ProgressBar::new(most),
        Until::Time(time) => ProgressBar::new(time.as_secs()),
    };
    bar.set_style(ProgressStyle::with_template("{prefix:24} {wide_bar} {msg} {eta}")?);
    bar.set_prefix(target.name);
    let start = Instant::now();
    let Outcome { cases, counted, finding } = run(target, &plan, |cases, counted| {
        bar.set_position(match until {
            Until::Cases(_) => cases,
            Until::Counted(_) => counted,
            Until::Time(_) => start.elapsed().as_secs(),
        });
        bar.set_message(format!("{cases} cases, {counted} {}", target.counts));
    });
    bar.finish_and_clear();
    let seconds = start.elapsed().as_secs_f64();
    println!(
        "{}: {cases} cases, {counted} {counts}, {seconds:.1} s, {:.0} {counts} per second, seed {}",
        target.name,
        counted as f64 / seconds,
        common.seed,
        counts = target.counts,
    );
    match finding {
        None => Ok(ExitCode::SUCCESS),
        Some(finding) => {
            let file = finding.write(&common.findings)?;
            show(&finding, &file);
            Ok(ExitCode::FAILURE)
        }
    }
}

fn show(finding: &Finding, file: &Path) {
    println!(
        "{}: case {} of seed {}: {}\nagain: cargo xtask fuzz --replay {}",
        finding.target,
        finding.case,
        finding.seed,
        finding.why,
        file.display()
    );
}

fn replay(file: &Path) -> Result<ExitCode> {
    let name = || file.display().to_string();
    let text = std::fs::read_to_string(file).with_context(name)?;
    let finding = Finding::parse(&text).map_err(|why| anyhow::anyhow!("{}: {why}", name()))?;
    again(named(&finding.target)?, &finding.bytes, |why| println!("{}: {why}", finding.target))
}

/// Runs the bytes of a file from another fuzzer. If the bytes violate the property, writes a finding. The case number
/// of this finding is a hash of the bytes.
fn replay_bytes(file: &Path, name: &str, common: &Common) -> Result<ExitCode> {
    let bytes = std::fs::read(file).with_context(|| file.display().to_string())?;
    let mut hasher = DefaultHasher::new();
    hasher.write(&bytes);
    let case = hasher.finish();
    again(named(name)?, &bytes, |why| {
        let finding = Finding { target: name.to_owned(), seed: 0, case, why, bytes: bytes.clone() };
        match finding.write(&common.findings) {
            Ok(written) => show(&finding, &written),
            Err(error) => eprintln!("{}: {error}", common.findings.display()),
        }
    })
}

/// Checks the property for some bytes. Calls `wrong` with the description of a violation.
fn again(target: &Target, bytes: &[u8], wrong: impl FnOnce(String)) -> Result<ExitCode> {
    match checked(target, bytes) {
        Ok(counted) => {
            println!("{}: {counted} {}, nothing is wrong", target.name, target.counts);
            Ok(ExitCode::SUCCESS)
        }
        Err(why) => {
            wrong(why);
            Ok(ExitCode::FAILURE)
        }
    }
}

/// Returns the target with a name.
fn named(name: &str) -> Result<&'static Target> {
    target(name).with_context(|| format!("unknown target `{name}`: fuzz --list lists the targets"))
}
