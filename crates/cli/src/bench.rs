//! `reconverge bench`

#[cfg(target_os = "linux")]
mod draw;
mod micro;
mod work;

use std::hint::black_box;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use cpu_time::ProcessTime;
use rayon::ThreadPool;
use reconverge_isa::Isa;
use reconverge_isa::source::closest;
use reconverge_simt::compiling::{self, Spent};
use reconverge_simt::{Options, Statistics, pool};
use reconverge_workbench::Error;
use reconverge_workbench::Session;
use reconverge_workbench::session::Outcome;
use reconverge_workbench::trace::{Pieces, Recorded};
use serde::Serialize;

use crate::args::{Answer, EngineArgs};
use crate::messages::{counted, executed};
use work::Work;

/// Run benchmark kernels of all three machines, or launch files, and print their times
///
/// --list prints the kernels (with --draw, the loads); docs/performance.md has a table of times. Every run must
/// return the golden hash, or the result of a plain evaluation of the same problem. A run of a launch file must
/// return the values that the file expects, and the values of its first run. Times are medians. They do not include
/// assembling, laying out inputs and reading results.
#[derive(clap::Args)]
pub(crate) struct Bench {
    /// Launch files to run instead of the kernels
    #[arg(value_name = "LAUNCH", conflicts_with_all = ["isa", "kernel", "list", "micro", "draw", "write"])]
    launches: Vec<PathBuf>,
    /// Run only the kernels of this machine
    #[arg(long, value_name = "MACHINE", value_parser = crate::args::isa())]
    isa: Option<Isa>,
    /// Run only this kernel, or this load of --draw
    #[arg(long, value_name = "NAME")]
    kernel: Option<String>,
    /// List the kernels, without running them
    #[arg(long, conflicts_with = "micro")]
    list: bool,
    #[command(flatten)]
    engine: EngineArgs,
    /// In strict mode, check shared memory for races (default: no)
    #[arg(long)]
    race_check: bool,
    /// Number of threads (default: one per processor; with --draw, one). For a list such as 1,2, the runs alternate
    /// between the numbers of the list
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = clap::value_parser!(u16).range(1..))]
    threads: Vec<u16>,
    /// Number of runs; the reported time is the median over the runs
    #[arg(long, value_name = "N", default_value_t = 3, default_value_if("micro", "true", "9"), value_parser = clap::value_parser!(u16).range(1..))]
    runs: u16,
    /// Print the cost of single instructions for patterns of addresses and masks
    ///
    /// The table has nanoseconds per group on one thread, and the ratio of this time to the time of `add b32` on a
    /// Tesla warp in the same iteration. The command measures the cost of the loop around the instruction and subtracts
    /// this cost.
    #[arg(long, conflicts_with_all = ["kernel", "threads", "trace"])]
    micro: bool,
    /// Draw with OpenGL on emulated chips, and compare the time with Mesa's software renderers
    ///
    /// The table has nanoseconds of processor time per pixel, triangle or draw, and the ratio of this time to
    /// llvmpipe's time in the same iteration. The command needs the library and drivers of `drm`. If --threads lists
    /// several numbers, the table also has the speedup in wall time, in parentheses.
    #[arg(long, conflicts_with_all = ["isa", "micro", "trace", "write"])]
    draw: bool,
    /// Chips for --draw (default: rv770, gt215, rv515)
    #[arg(long = "chip", value_name = "NAME", value_delimiter = ',', requires = "draw")]
    chips: Vec<String>,
    /// Record issues and stack events during the run, in order, on one thread
    #[arg(long)]
    trace: bool,
    /// Write inputs and results as raw words into this folder, for other programs that compute the same results
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["micro", "list"])]
    write: Option<PathBuf>,
    /// One JSON object on standard output
    #[arg(long)]
    json: bool,
}

impl Bench {
    fn options(&self) -> Options {
        Options { race_check: self.race_check, ..self.engine.options() }
    }
}

/// Measurements of a kernel with one number of threads.
#[derive(Serialize)]
struct Measured {
    isa: &'static str,
    /// The name of the kernel, or the path of the launch file.
    kernel: String,
    engine: &'static str,
    threads: usize,
    runs: u16,
    /// Number of lanes. The field is absent for launch files.
    #[serde(skip_serializing_if = "Option::is_none")]
    lanes: Option<u32>,
    /// Median processor time in seconds, summed over the threads.
    cpu_s: f64,
    /// Median wall time in seconds.
    wall_s: f64,
    /// Speedup in wall time relative to the first number of threads, as the median of the ratios of all iterations. The
    /// field is absent for the first number of threads.
    #[serde(skip_serializing_if = "Option::is_none")]
    speedup: Option<f64>,
    /// Speedup of [`add_rows`] in the same iterations. This speedup is the largest speedup that the host currently
    /// allows.
    #[serde(skip_serializing_if = "Option::is_none")]
    machine_speedup: Option<f64>,
    warp_instructions: u64,
    lane_instructions: u64,
    divergent_branches: u64,
    /// Time of the longest compilation before a run, in seconds. The field is absent for engines that do not compile.
    #[serde(skip_serializing_if = "Option::is_none")]
    compile_s: Option<f64>,
    /// Seconds that this process needed once, before the first compilation. The field is absent if an earlier kernel in
    /// this process compiled code.
    #[serde(skip_serializing_if = "Option::is_none")]
    compile_once_s: Option<f64>,
    /// Size of the generated code in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    code_bytes: Option<u64>,
    /// Number of records in the trace, if the run recorded a trace.
    #[serde(skip_serializing_if = "Option::is_none")]
    trace_steps: Option<u64>,
    /// Hash of the result.
    golden: String,
    /// Whether every run returned the expected result.
    golden_ok: bool,
}

pub(crate) fn run(args: &Bench) -> Result<Answer> {
    if args.draw {
        return drawn(args);
    }
    if args.micro {
        let pool = pool::pool(1)?;
        pool.install(|| micro::run(args.isa, &args.options(), args.runs, args.json))?;
        return Ok(Answer::Yes);
    }
    let kernels = wanted(args)?;
    if args.list {
        list(&kernels, args.json);
        return Ok(Answer::Yes);
    }
    // For 0 threads, rayon creates one thread per processor.
    let threads = if args.threads.is_empty() { &[0][..] } else { &args.threads };
    let pool = |threads: &u16| pool::pool((*threads).into());
    let pools = threads.iter().map(pool).collect::<Result<Vec<_>, _>>().context("--threads")?;
    let mut results = Vec::new();
    let table = kernels.len() > 1 && !args.json;
    if table {
        say!("{}", HEAD);
    }
    for mut kernel in kernels {
        let measured = match measure(&mut kernel, args, &pools) {
            Ok(measured) => measured,
            Err(error) => return no_result(args, &kernel, error),
        };
        match table {
            true => measured.iter().for_each(print_row),
            false if args.json => {}
            false => measured.iter().for_each(|measured| print(measured, kernel.golden())),
        }
        results.extend(measured);
    }
    if table {
        summary(&results);
    }
    let all_right = results.iter().all(|measured| measured.golden_ok);
    if args.json {
        match &results[..] {
            [only] => crate::messages::answer_json(only),
            several => crate::messages::answer_json(&serde_json::json!({ "results": several })),
        }
    }
    Ok(if all_right { Answer::Yes } else { Answer::No })
}

#[cfg(target_os = "linux")]
fn drawn(args: &Bench) -> Result<Answer> {
    draw::run(args)
}

#[cfg(not(target_os = "linux"))]
fn drawn(_args: &Bench) -> Result<Answer> {
    bail!("bench --draw is available only on Linux, because it runs Linux graphics drivers")
}

/// Returns the kernels that the arguments select.
fn wanted(args: &Bench) -> Result<Vec<Work>> {
    if !args.launches.is_empty() {
        return args.launches.iter().map(|file| work::of_file(file)).collect();
    }
    let named = |work: &Work| args.kernel.as_deref().is_none_or(|name| name == work.name());
    let on = |work: &Work| args.isa.is_none_or(|isa| isa == work.isa());
    let kernels: Vec<Work> = work::all().filter(|work| named(work) && on(work)).collect();
    if !kernels.is_empty() {
        return Ok(kernels);
    }
    let name = args.kernel.as_deref().unwrap_or_default();
    let isas: Vec<&str> = work::all().filter(named).map(|work| work.isa().name()).collect();
    if !isas.is_empty() {
        bail!(
            "kernel `{name}` is not available for {}, only for {}",
            args.isa.map_or("", Isa::name),
            isas.join(" and ")
        );
    }
    let here: Vec<Work> = work::all().filter(on).collect();
    let mut names: Vec<&str> = here.iter().map(Work::name).collect();
    names.sort_unstable();
    names.dedup();
    let meant = closest(name, names.iter().copied()).map(|meant| format!("did you mean `{meant}`? "));
    bail!("unknown kernel `{name}`: {}expected one of {}", meant.unwrap_or_default(), names.join(", "))
}

fn list(kernels: &[Work], json: bool) {
    let entry = |work: &Work| {
        serde_json::json!({
            "isa": work.isa().name(), "kernel": work.name(), "lanes": work.lanes(), "about": work.about(),
        })
    };
    if json {
        crate::messages::answer_json(
            &serde_json::json!({ "kernels": kernels.iter().map(entry).collect::<Vec<_>>() }),
        );
        return;
    }
    for work in kernels {
        say!(
            "{:<6} {:<10} {:>8} lanes  {}",
            work.isa().name(),
            work.name(),
            work.lanes().unwrap_or_default(),
            work.about()
        );
    }
}

/// If the error is a trap or a difference between engines, prints the error and returns [`Answer::No`]. Otherwise,
/// returns the error unchanged.
fn no_result(args: &Bench, kernel: &Work, error: anyhow::Error) -> Result<Answer> {
    let kind = match error.downcast_ref() {
        Some(Error::Differ(_)) => "differ",
        Some(Error::Trap(_)) => "trap",
        _ => return Err(error),
    };
    if args.json {
        crate::messages::answer_json(&serde_json::json!({ kind: error.to_string() }));
    }
    tell!("{} {}: {error}", kernel.isa(), kernel.name());
    Ok(Answer::No)
}

/// Times and results of the runs on one pool of threads.
#[derive(Default)]
struct Runs {
    cpu: Vec<Duration>,
    wall: Vec<Duration>,
    /// Time of [`add_rows`] after each run. The list is empty if the command does not compare several numbers of
    /// threads.
    control: Vec<Duration>,
    statistics: Statistics,
    trace_steps: Option<u64>,
    /// Time of the longest compilation before a run.
    compiled: Spent,
    /// Hash of the result. If a result was wrong, the field has the hash of the first wrong result.
    hash: u32,
    wrong: bool,
}

impl Runs {
    /// Runs a launch on the pool of the calling thread, and adds the times of this run to `self`.
    fn add(&mut self, session: Session, options: &Options, args: &Bench) -> Result<Box<dyn Outcome>, Error> {
        let mut trace = Pieces::default();
        let before = compiling::spent();
        let (cpu_start, wall_start) = (ProcessTime::now(), Instant::now());
        let outcome = match args.trace {
            true => session.run_traced(options, Recorded::Flow, &mut trace)?,
            false => session.run(options)?,
        };
        self.cpu.push(cpu_start.elapsed());
        self.wall.push(wall_start.elapsed());
        let compiled = compiling::spent().since(before);
        let once = self.compiled.once + compiled.once;
        if compiled.time > self.compiled.time {
            self.compiled = compiled;
        }
        self.compiled.once = once;
        self.trace_steps = args.trace.then_some(trace.count);
        self.statistics = outcome.statistics();
        Ok(outcome)
    }

    /// Compares the result of a run with the expected result.
    fn judge(&mut self, kernel: &Work, outcome: &dyn Outcome, args: &Bench) -> Result<()> {
        let verdict = kernel.judge(outcome)?;
        if !self.wrong {
            (self.hash, self.wrong) = (verdict.hash, !verdict.right);
        }
        match &args.write {
            Some(folder) => kernel.write(outcome, folder),
            None => Ok(()),
        }
    }

    /// Returns the measurements of `self`. `first` has the runs with the first number of threads. The speedup is
    /// relative to these runs. `first` is `None` if `self` itself has these runs.
    fn measured(&self, kernel: &Work, args: &Bench, threads: usize, first: Option<&Self>) -> Measured {
        Measured {
            isa: kernel.isa().name(),
            kernel: kernel.name().to_owned(),
            engine: args.engine.options().engine.name(),
            threads,
            runs: args.runs,
            lanes: kernel.lanes(),
            cpu_s: median_seconds(&self.cpu),
            wall_s: median_seconds(&self.wall),
            speedup: first.map(|first| speedup(&self.wall, &first.wall)),
            machine_speedup: first.map(|first| speedup(&self.control, &first.control)),
            warp_instructions: self.statistics.instructions,
            lane_instructions: self.statistics.lane_instructions,
            divergent_branches: self.statistics.divergent_branches,
            compile_s: (self.compiled.programs > 0).then_some(self.compiled.time.as_secs_f64()),
            compile_once_s: (!self.compiled.once.is_zero()).then_some(self.compiled.once.as_secs_f64()),
            code_bytes: (self.compiled.programs > 0).then_some(self.compiled.bytes),
            trace_steps: self.trace_steps,
            golden: format!("{:08x}", self.hash),
            golden_ok: !self.wrong,
        }
    }
}

/// Runs a kernel `args.runs` times on each pool. The runs alternate between the pools, so other programs on the host
/// slow all pools alike. Every second iteration uses the pools in reverse order, so that no pool always runs first.
fn measure(kernel: &mut Work, args: &Bench, pools: &[ThreadPool]) -> Result<Vec<Measured>> {
    let prepared = kernel.prepare()?;
    let options = kernel.options(args.options())?;
    let compared = pools.len() > 1;
    let mut sides: Vec<(&ThreadPool, Runs)> = pools.iter().map(|pool| (pool, Runs::default())).collect();
    for turn in 0..args.runs {
        let run = |(pool, runs): &mut (&ThreadPool, Runs)| {
            let session = prepared.copy();
            let outcome = pool.install(|| runs.add(session, &options, args))?;
            runs.judge(kernel, &*outcome, args)?;
            if compared {
                runs.control.push(add_rows(pool));
            }
            anyhow::Ok(())
        };
        match turn % 2 {
            0 => sides.iter_mut().try_for_each(run)?,
            _ => sides.iter_mut().rev().try_for_each(run)?,
        }
    }
    let (_, first) = &sides[0];
    let measured = |(side, (pool, runs)): (usize, &(&ThreadPool, Runs))| {
        runs.measured(kernel, args, pool.current_num_threads(), (side > 0).then_some(first))
    };
    Ok(sides.iter().enumerate().map(measured).collect())
}

/// Adds rows of numbers on all threads of a pool, and returns the elapsed time. The rows of a thread fit into the
/// processor's L1 cache. The total work does not depend on the number of threads.
///
/// This loop resembles an engine whose threads share no data and never wait. If other programs use the processors, the
/// speedup of this loop is below the number of threads. The engine is the cause of a kernel's low speedup only if this
/// loop has a higher speedup.
fn add_rows(pool: &ThreadPool) -> Duration {
    const ROUNDS: usize = 1 << 15;
    let start = Instant::now();
    pool.broadcast(|thread| {
        let mut rows = [[1_u32; 32]; 64];
        for _ in 0..ROUNDS / thread.num_threads() {
            for row in 1..rows.len() {
                let before = rows[row - 1];
                rows[row].iter_mut().zip(before).for_each(|(sum, before)| *sum = sum.wrapping_add(before));
            }
            black_box(&mut rows);
        }
    });
    start.elapsed()
}

/// Returns the speedup of the runs `own` over the runs `other`. The speedup is the median of the ratios of all
/// iterations. A temporary slowdown of the host affects both runs of an iteration.
fn speedup(own: &[Duration], other: &[Duration]) -> f64 {
    let ratio = |(own, other): (&Duration, &Duration)| other.as_secs_f64() / own.as_secs_f64().max(1e-9);
    median(own.iter().zip(other).map(ratio).collect())
}

/// Returns the median, or 0 for an empty list. If the number of values is even, two values are in the middle. In this
/// case, the function returns the lower of these two values.
fn median(mut list: Vec<f64>) -> f64 {
    list.sort_unstable_by(f64::total_cmp);
    list.get(list.len().saturating_sub(1) / 2).copied().unwrap_or_default()
}

fn median_seconds(times: &[Duration]) -> f64 {
    median(times.iter().map(Duration::as_secs_f64).collect())
}

const HEAD: &str = "machine kernel     threads processor s   wall s  M group instr./s  gain  control  result";

/// Prints one row of the table of kernels.
fn print_row(measured: &Measured) {
    let number = |value: Option<f64>| value.map(|value| format!("{value:.2}")).unwrap_or_default();
    say!(
        "{:<7} {:<10} {:>7} {:>11.4} {:>8.4} {:>17.1} {:>5} {:>8}  {}",
        measured.isa,
        measured.kernel,
        measured.threads,
        measured.cpu_s,
        measured.wall_s,
        measured.warp_instructions as f64 / measured.cpu_s.max(1e-9) / 1e6,
        number(measured.speedup),
        number(measured.machine_speedup),
        if measured.golden_ok { "right" } else { "WRONG" },
    );
}

/// Prints a line of geometric means over the kernels for each number of threads. The means are the processor time, the
/// wall time, the speedup, and the speedup divided by the speedup of [`add_rows`].
fn summary(results: &[Measured]) {
    let mut threads: Vec<usize> = results.iter().map(|measured| measured.threads).collect();
    threads.sort_unstable();
    threads.dedup();
    for threads in threads {
        let of: Vec<&Measured> = results.iter().filter(|measured| measured.threads == threads).collect();
        if of.len() < 2 {
            continue;
        }
        let mean = |value: fn(&Measured) -> f64| geometric_mean(of.iter().map(|measured| value(measured)));
        let mut line = format!(
            "{} on {}: geometric means {:.4} s of processor, {:.4} s",
            counted(of.len() as u64, "kernel"),
            counted(threads as u64, "thread"),
            mean(|measured| measured.cpu_s),
            mean(|measured| measured.wall_s),
        );
        let slowest = of.iter().filter_map(|measured| Some((measured.compile_s?, measured)));
        if let Some((seconds, slowest)) = slowest.max_by(|(a, _), (b, _)| a.total_cmp(b)) {
            let (isa, kernel) = (slowest.isa, &slowest.kernel);
            line += &format!("; longest compilation {:.2} ms ({isa} {kernel})", 1e3 * seconds);
        }
        if of.iter().all(|measured| measured.speedup.is_some()) {
            let gain = |measured: &Measured| measured.speedup.unwrap_or(1.0);
            let share = |measured: &Measured| {
                measured.speedup.unwrap_or(1.0) / measured.machine_speedup.unwrap_or(1.0)
            };
            let least = of.iter().min_by(|one, other| share(one).total_cmp(&share(other)));
            line += &format!(
                "; {:.2} times as fast, {:.2} of the gain of the control loop",
                mean(gain),
                mean(share)
            );
            if let Some(least) = least {
                line += &format!(", least {:.2} ({} {})", share(least), least.isa, least.kernel);
            }
        }
        say!("{line}");
    }
}

fn geometric_mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0), |(sum, count), value| (sum + value.max(1e-9).ln(), count + 1));
    (sum / f64::from(count.max(1))).exp()
}

fn print(measured: &Measured, golden_is: &str) {
    let Measured { isa, kernel, engine, threads, runs, cpu_s, wall_s, golden, .. } = measured;
    let groups = measured.warp_instructions;
    let verdict = match measured.golden_ok {
        true => format!("matches {golden_is}"),
        false => format!("DIFFERS FROM {}", golden_is.to_uppercase()),
    };
    say!(
        "{isa} {kernel}, {engine}, {}: {cpu_s:.3} s of processor, {wall_s:.3} s (median of {}); {golden} {verdict}",
        counted(*threads as u64, "thread"),
        counted((*runs).into(), "run"),
    );
    say!(
        "  {}; {:.1} M group instructions per processor second",
        executed(groups, measured.lane_instructions, measured.divergent_branches),
        groups as f64 / cpu_s.max(1e-9) / 1e6
    );
    if let (Some(seconds), Some(bytes)) = (measured.compile_s, measured.code_bytes) {
        let once = match measured.compile_once_s {
            Some(once) => format!("; {:.2} ms of one-time cost in this process", 1e3 * once),
            None => String::new(),
        };
        say!("  longest compilation {:.2} ms: {} of code{once}", 1e3 * seconds, counted(bytes, "byte"));
    }
    if let Some(steps) = measured.trace_steps {
        say!("  a trace of {}", counted(steps, "piece"));
    }
    if let (Some(speedup), Some(machine)) = (measured.speedup, measured.machine_speedup) {
        say!(
            "  {speedup:.2} times as fast as with the first number of threads; adding rows in the nearest cache: \
             {machine:.2} times (medians of the iterations' ratios)"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_geometric_mean_is_that_of_ratios() {
        assert!((geometric_mean([0.5, 2.0, 8.0].into_iter()) - 2.0).abs() < 1e-12);
    }

    #[test]
    fn the_median_is_the_middle() {
        assert_eq!((median(vec![9., 1., 5.]), median(vec![4., 2., 1., 3.]), median(vec![])), (5., 2., 0.));
    }

    /// The ratios of the three iterations are 4, 0.5 and 1. The speedup is the median of these ratios, 1. The ratio of
    /// the median times, 3 s and 2 s, would be 1.5.
    #[test]
    fn a_speedup_is_measured_turn_by_turn() {
        let seconds = |list: [u64; 3]| list.map(Duration::from_secs).to_vec();
        assert_eq!(speedup(&seconds([2, 2, 3]), &seconds([8, 1, 3])), 1.);
    }
}
