//! `reconverge bench`

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use cpu_time::ProcessTime;
use rayon::{ThreadPool, ThreadPoolBuilder};
use reconverge_isa::Isa;
use reconverge_simt::Statistics;
use reconverge_workbench::kernels::{KERNELS, Kernel, LANES, Prepared, hash};
use serde::Serialize;

use crate::{Answer, EngineArgs};

/// Run the two divergent kernels over 2^20 lanes and time them
///
/// mandel and collatz are described in docs/testing.md. Every run must give the golden hash. Times are medians;
/// assembling, laying out inputs and reading the counts is not counted.
#[derive(clap::Args)]
pub(crate) struct Bench {
    /// Only this machine
    #[arg(long, value_name = "MACHINE")]
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
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..))]
    runs: u16,
    /// Record who runs and what the stack does, in order on one thread
    #[arg(long)]
    trace: bool,
    /// One JSON object on standard output
    #[arg(long)]
    json: bool,
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
        let measured = measure(kernel, args, &pools)?;
        if !args.json {
            measured.iter().for_each(print);
            print_ratios(&measured);
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

/// What the runs on one pool took and gave.
#[derive(Default)]
struct Runs {
    cpu: Vec<Duration>,
    wall: Vec<Duration>,
    statistics: Statistics,
    trace_steps: Option<u64>,
    /// Hash of a run that did not give the golden one.
    wrong: Option<u32>,
}

impl Runs {
    fn add(&mut self, kernel: &Kernel, prepared: Prepared, args: &Bench) -> Result<()> {
        let how = args.engine.how();
        let (cpu_start, wall_start) = (ProcessTime::now(), Instant::now());
        let left = match args.trace {
            true => {
                let (left, pieces) = prepared.run_traced(how)?;
                self.trace_steps = Some(pieces);
                left
            }
            false => prepared.run(how)?,
        };
        self.cpu.push(cpu_start.elapsed());
        self.wall.push(wall_start.elapsed());
        self.statistics = left.statistics();
        let hash = hash(&left.counts()?);
        self.wrong = self.wrong.or((hash != kernel.golden).then_some(hash));
        Ok(())
    }

    fn measured(self, kernel: &Kernel, args: &Bench, threads: usize) -> Measured {
        Measured {
            isa: kernel.isa.name(),
            kernel: kernel.name,
            engine: args.engine.how().engine().name(),
            threads,
            runs: args.runs,
            lanes: LANES,
            cpu_s: median(self.cpu),
            wall_s: median(self.wall),
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
fn measure(kernel: &Kernel, args: &Bench, pools: &[ThreadPool]) -> Result<Vec<Measured>> {
    let prepared = kernel.prepare(LANES)?;
    let mut runs: Vec<Runs> = pools.iter().map(|_| Runs::default()).collect();
    for _ in 0..args.runs {
        for (pool, runs) in pools.iter().zip(&mut runs) {
            pool.install(|| runs.add(kernel, prepared.clone(), args))?;
        }
    }
    let measured =
        |(pool, runs): (&ThreadPool, Runs)| runs.measured(kernel, args, pool.current_num_threads());
    Ok(pools.iter().zip(runs).map(measured).collect())
}

/// The middle one; of an even number, the lower of the two in the middle.
fn median(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    times[(times.len() - 1) / 2].as_secs_f64()
}

fn print(measured: &Measured) {
    let Measured { isa, kernel, engine, threads, runs, cpu_s, wall_s, golden, .. } = measured;
    let verdict = if measured.golden_ok { "as it must be" } else { "WRONG" };
    say!(
        "{isa} {kernel}, {engine}, {threads} threads: {cpu_s:.3} s of processor, {wall_s:.3} s (median of {runs}); \
         {golden} {verdict}"
    );
    say!(
        "  {} group instructions, {} lane instructions, {} divergent branches; {:.1} M group instructions a \
         processor second",
        measured.warp_instructions,
        measured.lane_instructions,
        measured.divergent_branches,
        measured.warp_instructions as f64 / cpu_s.max(1e-9) / 1e6
    );
    if let Some(steps) = measured.trace_steps {
        say!("  a trace of {steps} pieces");
    }
}

/// How much faster the others are than the first.
fn print_ratios(measured: &[Measured]) {
    let Some((first, others)) = measured.split_first() else { return };
    for other in others {
        let ratio = first.wall_s / other.wall_s.max(1e-9);
        say!("  {} threads are {ratio:.2} times as fast as {}", other.threads, first.threads);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle() {
        let seconds = |list: &[u64]| median(list.iter().copied().map(Duration::from_secs).collect());
        assert_eq!((seconds(&[9, 1, 5]), seconds(&[4, 2, 1, 3])), (5.0, 2.0));
    }
}
