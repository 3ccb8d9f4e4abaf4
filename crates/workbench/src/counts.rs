//! Computes the counts of a run. The conditions of a launch file check these counts.

use reconverge_isa::Program;
use reconverge_simt::{Engine, Options, Statistics};

use crate::error::Error;
use crate::holds::{CountRule, RunCount, RunCounts};
use crate::session::Session;
use crate::stats::{Class, Profile};
use crate::target::Target;
use crate::trace::Recorded;

/// Returns the counts that are available without observing the run.
fn plain(statistics: &Statistics) -> RunCounts {
    let Statistics { instructions, lane_instructions, divergent_branches } = *statistics;
    [
        (RunCount::Instructions, instructions as f64),
        (RunCount::LaneInstructions, lane_instructions as f64),
        (RunCount::DivergentBranches, divergent_branches as f64),
    ]
    .into_iter()
    .collect()
}

/// Returns the counts that the conditions need. `statistics` has the counts of a finished run. If `statistics` does not
/// have a count that a condition needs, the function runs a copy of `session`. The function observes this second run to
/// obtain the count.
///
/// # Errors
/// Returns the errors of [`Session::run_traced`].
pub fn needed(
    conditions: &[CountRule],
    statistics: &Statistics,
    target: &Target,
    program: &Program,
    session: &Session,
    options: &Options,
) -> Result<RunCounts, Error> {
    let mut counts = plain(statistics);
    if conditions.iter().all(|condition| condition.count.is_plain()) {
        return Ok(counts);
    }
    let memory = conditions.iter().any(|condition| condition.count.is_of_memory());
    let machine = target.machine();
    let conventions =
        machine.conventions(target, program).map_err(|error| Error::Machine(error.to_string()))?;
    let has_memory = memory && conventions.coalescing.is_ok() && !conventions.accesses.is_empty();
    let has_banks = memory && !conventions.banked.is_empty();
    let options = Options { engine: Engine::Fast, ..*options };
    let stepping = session.start(&options)?;
    let (width, depths) = (stepping.lanes(0).len().max(1), stepping.depths(0));
    drop(stepping);
    let mut profile = Profile::new(width as u32).by(conventions, &depths);
    let recorded = if has_memory || has_banks { Recorded::Data } else { Recorded::Flow };
    session.copy().run_traced(&options, recorded, &mut profile)?;
    profile.end();
    let totals = profile.totals();
    let stacks = profile.stacks().iter().map(|stack| u64::from(stack.high_water)).max();
    let stack = stacks.unwrap_or(totals.stack_high_water);
    counts.insert(RunCount::SimdEfficiency, totals.simd_efficiency);
    counts.insert(RunCount::StackHighWater, stack as f64);
    counts.insert(RunCount::Groups, totals.groups as f64);
    let mix = profile.mix();
    for class in Class::ALL {
        let ran = mix.iter().find(|of| of.class == class.name());
        counts.insert(count_of(class), ran.map_or(0., |of| of.executed as f64));
    }
    if has_memory {
        let memory = profile.memory_totals();
        counts.insert(RunCount::MemoryRequests, memory.requests as f64);
        counts.insert(RunCount::MemoryTransactions, memory.transactions as f64);
        counts.insert(RunCount::BytesMoved, memory.bytes_moved as f64);
        counts.insert(RunCount::BytesWanted, memory.bytes_wanted as f64);
    }
    if has_banks {
        let banks = profile.bank_totals();
        counts.insert(RunCount::BankConflicts, (banks.passes - banks.requests) as f64);
    }
    Ok(counts)
}

/// Returns the kind of count for the instructions of a class.
const fn count_of(class: Class) -> RunCount {
    match class {
        Class::Alu => RunCount::Alu,
        Class::Interpolation => RunCount::Interpolation,
        Class::Texture => RunCount::Texture,
        Class::Memory => RunCount::Memory,
        Class::Output => RunCount::Output,
        Class::Flow => RunCount::Flow,
        Class::Other => RunCount::Other,
    }
}
