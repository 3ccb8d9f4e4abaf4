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

/// A run takes at least so long, if its rounds allow it.
const LEAST: Duration = Duration::from_millis(1);

/// What an instruction costs.
#[derive(Serialize)]
struct Cost {
    isa: &'static str,
    instruction: &'static str,
    /// Nanoseconds of processor that a group takes: the median of the turns.
    ns: f64,
    /// How many times that of the unit in the same turn: the median of the turns.
    times: f64,
    /// How many times are wanted at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    bound: Option<f64>,
}

/// The launches of an instruction: with it, and of the loop alone.
struct Launches {
    whole: Session,
    alone: Session,
    executions: u64,
}

impl Launches {
    /// With as many rounds as a measurement needs.
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

    /// Nanoseconds of processor that a group takes for the instruction, by one run of each.
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

/// Measures every instruction, of one machine where one is named, in turns with the unit.
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
        false => say!("times: of a Tesla warp's {}, {unit_ns:.2} ns; medians of {turns} turns", unit().name),
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
