//! `reconverge bench`

mod micro;

use std::hint::black_box;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use cpu_time::ProcessTime;
use rayon::{ThreadPool, ThreadPoolBuilder};
use reconverge_isa::Isa;
use reconverge_simt::Statistics;
use reconverge_workbench::Session;
use reconverge_workbench::kernels::{KERNELS, Kernel, LANES, hash};
use reconverge_workbench::request::Error;
use reconverge_workbench::trace::{Pieces, Recorded};
use serde::Serialize;

use crate::messages::counted;
use crate::{Answer, EngineArgs};

/// Run the divergent kernels over 2^20 lanes and time them
///
/// mandel and collatz are described in docs/testing.md. Every run must give the golden hash. Times are medians;
/// assembling, laying out inputs and reading the counts is not counted.
#[derive(clap::Args)]
pub(crate) struct Bench {
    /// Only this machine
    #[arg(long, value_name = "MACHINE", value_parser = crate::isa())]
    isa: Option<Isa>,
    /// Only this kernel
    #[arg(long, value_parser = ["mandel", "collatz"])]
    kernel: Option<String>,
    #[command(flatten)]
    engine: EngineArgs,
    /// Threads; as many as there are processors when absent. The runs of several numbers (1,2) take turns
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = clap::value_parser!(u16).range(1..))]
    threads: Vec<u16>,
    /// Runs, of which the median counts
    #[arg(long, value_name = "N", default_value_t = 3, default_value_if("micro", "true", "9"), value_parser = clap::value_parser!(u16).range(1..))]
    runs: u16,
    /// Print what single instructions cost, by how their addresses and masks look
    ///
    /// In nanoseconds a group on one thread, and in multiples of what a Tesla warp's `add b32` costs in the same turn. The
    /// loop around an instruction is measured and taken away.
    #[arg(long, conflicts_with_all = ["kernel", "threads", "trace"])]
    micro: bool,
    /// Record issues and stack events, in order on one thread
    #[arg(long)]
    trace: bool,
    /// One JSON object on standard output
    #[arg(long)]
    pub(crate) json: bool,
}

/// What a kernel took.
#[derive(Serialize)]
struct Measured {
    isa: &'static str,
    kernel: &'static str,
    engine: &'static str,
    threads: usize,
    runs: u16,
    lanes: u32,
    /// Median of processor seconds, all threads together.
    cpu_s: f64,
    /// Median of seconds on the wall.
    wall_s: f64,
    /// How many times as fast as the first number of threads on the wall: the median of the turns' ratios. Absent for
    /// the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    speedup: Option<f64>,
    /// How many times as fast [`add_rows`] is in these turns: what this machine gives to more threads just now.
    #[serde(skip_serializing_if = "Option::is_none")]
    machine_speedup: Option<f64>,
    warp_instructions: u64,
    lane_instructions: u64,
    divergent_branches: u64,
    /// Pieces of the trace, where one was recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    trace_steps: Option<u64>,
    /// Hash of what came out.
    golden: String,
    /// Whether every run gave the hash it must.
    golden_ok: bool,
}

pub(crate) fn run(args: &Bench) -> Result<Answer> {
    if args.micro {
        let pool = ThreadPoolBuilder::new().num_threads(1).build()?;
        pool.install(|| micro::run(args.isa, &args.engine.options(), args.runs, args.json))?;
        return Ok(Answer::Yes);
    }
    let wanted = |kernel: &&Kernel| {
        args.isa.is_none_or(|isa| isa == kernel.isa)
            && args.kernel.as_deref().is_none_or(|name| name == kernel.name)
    };
    let kernels: Vec<&Kernel> = KERNELS.iter().filter(wanted).collect();
    if kernels.is_empty() {
        bail!("there is no such kernel: r500 has no integers, so collatz is for r700 and tesla");
    }
    // To rayon, 0 is as many as there are processors.
    let threads = if args.threads.is_empty() { &[0][..] } else { &args.threads };
    let pool = |threads: &u16| ThreadPoolBuilder::new().num_threads((*threads).into()).build();
    let pools = threads.iter().map(pool).collect::<Result<Vec<_>, _>>().context("--threads")?;
    let mut results = Vec::new();
    for kernel in kernels {
        let measured = match measure(kernel, args, &pools) {
            Ok(measured) => measured,
            Err(error) => return no_result(args, kernel, error),
        };
        if !args.json {
            measured.iter().for_each(print);
        }
        results.extend(measured);
    }
    let all_right = results.iter().all(|measured| measured.golden_ok);
    if args.json {
        match &results[..] {
            [only] => say!("{}", serde_json::to_string(only)?),
            several => say!("{}", serde_json::json!({ "results": several })),
        }
    }
    Ok(if all_right { Answer::Yes } else { Answer::No })
}

/// A trap and a difference of the engines are answers; everything else is an error.
fn no_result(args: &Bench, kernel: &Kernel, error: anyhow::Error) -> Result<Answer> {
    let kind = match error.downcast_ref() {
        Some(Error::Differ(_)) => "differ",
        Some(Error::Trap(_)) => "trap",
        _ => return Err(error),
    };
    if args.json {
        say!("{}", serde_json::json!({ kind: error.to_string() }));
    }
    tell!("{} {}: {error}", kernel.isa, kernel.name);
    Ok(Answer::No)
}

/// What the runs on one pool took and gave.
#[derive(Default)]
struct Runs {
    cpu: Vec<Duration>,
    wall: Vec<Duration>,
    /// What [`add_rows`] took after each run, where several numbers of threads are compared.
    control: Vec<Duration>,
    statistics: Statistics,
    trace_steps: Option<u64>,
    /// Hash of a run that did not give the golden one.
    wrong: Option<u32>,
}

impl Runs {
    fn add(&mut self, kernel: &Kernel, session: Session, args: &Bench) -> Result<()> {
        let options = args.engine.options();
        let mut trace = Pieces::default();
        let (cpu_start, wall_start) = (ProcessTime::now(), Instant::now());
        let outcome = match args.trace {
            true => session.run_traced(&options, Recorded::Flow, &mut trace)?,
            false => session.run(&options)?,
        };
        self.cpu.push(cpu_start.elapsed());
        self.wall.push(wall_start.elapsed());
        self.trace_steps = args.trace.then_some(trace.count);
        self.statistics = outcome.statistics();
        let hash = hash(&kernel.counts(&*outcome)?);
        self.wrong = self.wrong.or((hash != kernel.golden).then_some(hash));
        Ok(())
    }

    /// `first`: the runs of the first number of threads, where these are not they.
    fn measured(&self, kernel: &Kernel, args: &Bench, threads: usize, first: Option<&Self>) -> Measured {
        Measured {
            isa: kernel.isa.name(),
            kernel: kernel.name,
            engine: args.engine.options().engine.name(),
            threads,
            runs: args.runs,
            lanes: LANES,
            cpu_s: median_seconds(&self.cpu),
            wall_s: median_seconds(&self.wall),
            speedup: first.map(|first| speedup(&self.wall, &first.wall)),
            machine_speedup: first.map(|first| speedup(&self.control, &first.control)),
            warp_instructions: self.statistics.instructions,
            lane_instructions: self.statistics.lane_instructions,
            divergent_branches: self.statistics.divergent_branches,
            trace_steps: self.trace_steps,
            golden: format!("{:08x}", self.wrong.unwrap_or(kernel.golden)),
            golden_ok: self.wrong.is_none(),
        }
    }
}

/// Runs a kernel on each pool in turn, as often as asked, so that whatever else the machine does slows all of them.
/// Every other turn goes through the pools backwards: none is always the first.
fn measure(kernel: &Kernel, args: &Bench, pools: &[ThreadPool]) -> Result<Vec<Measured>> {
    let prepared = kernel.prepare(LANES)?;
    let compared = pools.len() > 1;
    let mut sides: Vec<(&ThreadPool, Runs)> = pools.iter().map(|pool| (pool, Runs::default())).collect();
    for turn in 0..args.runs {
        let run = |(pool, runs): &mut (&ThreadPool, Runs)| {
            pool.install(|| runs.add(kernel, prepared.copy(), args))?;
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

/// How long the threads of a pool take to add rows in the nearest cache, the same work together whatever their number:
/// what engines do, without anything that they could share or wait for. On processors that others use too even this
/// gains less from threads than there are; what a kernel gains less than this is lost in the engine.
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

/// How many times as fast as another's these runs were, each beside the one of its own turn: what slows the machine
/// for a while slows both.
fn speedup(own: &[Duration], other: &[Duration]) -> f64 {
    let ratio = |(own, other): (&Duration, &Duration)| other.as_secs_f64() / own.as_secs_f64().max(1e-9);
    median(own.iter().zip(other).map(ratio).collect())
}

/// The middle one; of an even number, the lower of the two in the middle. 0 of none.
fn median(mut list: Vec<f64>) -> f64 {
    list.sort_unstable_by(f64::total_cmp);
    list.get(list.len().saturating_sub(1) / 2).copied().unwrap_or_default()
}

fn median_seconds(times: &[Duration]) -> f64 {
    median(times.iter().map(Duration::as_secs_f64).collect())
}

fn print(measured: &Measured) {
    let Measured { isa, kernel, engine, threads, runs, cpu_s, wall_s, golden, .. } = measured;
    let verdict = if measured.golden_ok { "matches the golden hash" } else { "DIFFERS FROM THE GOLDEN HASH" };
    say!(
        "{isa} {kernel}, {engine}, {}: {cpu_s:.3} s of processor, {wall_s:.3} s (median of {}); {golden} {verdict}",
        counted(*threads as u64, "thread"),
        counted((*runs).into(), "run"),
    );
    say!(
        "  {}, {}, {}; {:.1} M group instructions a processor second",
        counted(measured.warp_instructions, "group instruction"),
        counted(measured.lane_instructions, "lane instruction"),
        counted(measured.divergent_branches, "divergent branch"),
        measured.warp_instructions as f64 / cpu_s.max(1e-9) / 1e6
    );
    if let Some(steps) = measured.trace_steps {
        say!("  a trace of {}", counted(steps, "piece"));
    }
    if let (Some(speedup), Some(machine)) = (measured.speedup, measured.machine_speedup) {
        say!(
            "  {speedup:.2} times as fast as the first number of threads, adding rows in the nearest cache {machine:.2} \
             times (medians of the turns' ratios)"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle() {
        assert_eq!((median(vec![9., 1., 5.]), median(vec![4., 2., 1., 3.]), median(vec![])), (5., 2., 0.));
    }

    /// Turn by turn 4 times, half and once; the medians, 3 and 2 seconds, would give 1.5.
    #[test]
    fn a_speedup_is_measured_turn_by_turn() {
        let seconds = |list: [u64; 3]| list.map(Duration::from_secs).to_vec();
        assert_eq!(speedup(&seconds([2, 2, 3]), &seconds([8, 1, 3])), 1.);
    }
}
