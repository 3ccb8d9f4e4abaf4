//! `reconverge bench --micro`: the cost of single instructions.

use std::time::Duration;

use anyhow::{Context, Result};
use cpu_time::ProcessTime;
use reconverge_isa::Isa;
use reconverge_simt::Options;
use reconverge_workbench::Session;
use reconverge_workbench::micro::{MOST_ROUNDS, Row, rows, unit};
use serde::Serialize;

use super::median;

/// Minimum duration of a run. A run is shorter if the loop reaches the maximum number of iterations before this time.
const LEAST: Duration = Duration::from_millis(1);

/// The cost of an instruction.
#[derive(Serialize)]
struct Cost {
    isa: &'static str,
    instruction: &'static str,
    /// Processor time per group in nanoseconds. The value is the median over the iterations.
    ns: f64,
    /// Cost of the instruction divided by the cost of the unit instruction ([`unit`]) in the same iteration. The value
    /// is the median over the iterations.
    times: f64,
    /// Upper bound on `times`, if the instruction has an upper bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    bound: Option<f64>,
}

/// Two launches: the loop with the instruction, and the loop without the instruction.
struct Launches {
    whole: Session,
    alone: Session,
    executions: u64,
}

impl Launches {
    /// Prepares the launches with enough loop iterations for a measurement.
    fn of(row: &Row, options: &Options) -> Result<Launches> {
        let what = || format!("{}, {}", row.isa, row.name);
        let mut rounds = 2;
        let mut whole = row.prepare(rounds, false).with_context(what)?;
        loop {
            let time = time(&whole, options).with_context(what)?;
            if time >= LEAST || rounds >= MOST_ROUNDS {
                let alone = row.prepare(rounds, true).with_context(what)?;
                return Ok(Launches { whole, alone, executions: row.executions(rounds) });
            }
            let scale = (LEAST.as_secs_f64() / time.as_secs_f64().max(1e-6) * 1.2).clamp(2.0, 64.0);
            rounds = ((f64::from(rounds) * scale) as u32).min(MOST_ROUNDS);
            whole = row.prepare(rounds, false).with_context(what)?;
        }
    }

    /// Runs each launch once. Returns the processor time of the instruction per group in nanoseconds.
    fn cost(&self, options: &Options) -> Result<f64> {
        let whole = time(&self.whole, options)?.as_secs_f64();
        let alone = time(&self.alone, options)?.as_secs_f64();
        Ok((whole - alone) * 1e9 / self.executions as f64)
    }
}

fn time(session: &Session, options: &Options) -> Result<Duration> {
    let session = session.copy();
    let start = ProcessTime::now();
    let outcome = session.run(options)?;
    let time = start.elapsed();
    drop(outcome);
    Ok(time)
}

/// Measures each instruction. The runs of the instruction alternate with runs of the unit instruction. If `isa` names a
/// machine, measures only the instructions of this machine.
pub(super) fn run(isa: Option<Isa>, options: &Options, turns: u16, json: bool) -> Result<()> {
    let reference = Launches::of(unit(), options)?;
    let (mut costs, mut units) = (Vec::new(), Vec::new());
    if !json {
        say!("{:<6} {:<40} {:>9} {:>7} {:>7}", "", "a group's", "ns", "times", "wanted");
    }
    for row in rows().filter(|row| isa.is_none_or(|isa| isa == row.isa)) {
        let launches = Launches::of(row, options)?;
        let (mut ns, mut times) = (Vec::new(), Vec::new());
        for _ in 0..turns {
            let one = reference.cost(options)?;
            let cost = launches.cost(options)?;
            units.push(one);
            ns.push(cost);
            times.push(cost / one.max(1e-3));
        }
        let (ns, times) = (median(ns), median(times));
        let cost = Cost { isa: row.isa.name(), instruction: row.name, ns, times, bound: row.bound };
        if !json {
            print(&cost);
        }
        costs.push(cost);
    }
    let unit_ns = median(units);
    match json {
        true => {
            let one =
                serde_json::json!({ "isa": unit().isa.name(), "instruction": unit().name, "ns": unit_ns });
            crate::messages::answer_json(&serde_json::json!({ "unit": one, "turns": turns, "micro": costs }));
        }
        false => say!("unit: a Tesla warp's {}, {unit_ns:.2} ns; medians of {turns} iterations", unit().name),
    }
    Ok(())
}

fn print(cost: &Cost) {
    let Cost { isa, instruction, ns, times, bound } = cost;
    let wanted = match bound {
        None => String::new(),
        Some(bound) if times <= bound => format!("<= {bound}"),
        Some(bound) => format!("<= {bound}  over"),
    };
    say!("{isa:<6} {instruction:<40} {ns:>9.1} {times:>7.1}  {wanted}");
}
