//! `reconverge bench`

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use cpu_time::ProcessTime;
use reconverge_isa::Isa;
use reconverge_simt::Statistics;
use reconverge_workbench::kernels::{KERNELS, Kernel, LANES, hash};
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
    /// Threads; as many as there are processors when absent
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
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
    let mut pool = rayon::ThreadPoolBuilder::new();
    if let Some(threads) = args.threads {
        pool = pool.num_threads(threads.max(1));
    }
    let pool = pool.build().context("--threads")?;
    let mut results = Vec::new();
    for kernel in kernels {
        let measured = pool.install(|| measure(kernel, args, pool.current_num_threads()))?;
        if !args.json {
            print(&measured);
        }
        results.push(measured);
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

fn measure(kernel: &Kernel, args: &Bench, threads: usize) -> Result<Measured> {
    let (prepared, how) = (kernel.prepare(LANES)?, args.engine.how());
    let (mut cpu, mut wall) = (Vec::new(), Vec::new());
    let (mut found, mut statistics, mut trace_steps) = (kernel.golden, Statistics::default(), None);
    for _ in 0..args.runs {
        let prepared = prepared.clone();
        let (cpu_start, wall_start) = (ProcessTime::now(), Instant::now());
        let left = match args.trace {
            true => {
                let (left, pieces) = prepared.run_traced(how)?;
                trace_steps = Some(pieces);
                left
            }
            false => prepared.run(how)?,
        };
        cpu.push(cpu_start.elapsed());
        wall.push(wall_start.elapsed());
        statistics = left.statistics();
        let hash = hash(&left.counts()?);
        if hash != kernel.golden {
            found = hash;
        }
    }
    Ok(Measured {
        isa: kernel.isa.name(),
        kernel: kernel.name,
        engine: how.engine().name(),
        threads,
        runs: args.runs,
        lanes: LANES,
        cpu_s: median(cpu),
        wall_s: median(wall),
        warp_instructions: statistics.instructions,
        lane_instructions: statistics.lane_instructions,
        divergent_branches: statistics.divergent_branches,
        trace_steps,
        golden: format!("{found:08x}"),
        golden_ok: found == kernel.golden,
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle() {
        let seconds = |list: &[u64]| median(list.iter().copied().map(Duration::from_secs).collect());
        assert_eq!((seconds(&[9, 1, 5]), seconds(&[4, 2, 1, 3])), (5.0, 2.0));
    }
}
