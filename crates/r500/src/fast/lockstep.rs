//! Both engines side by side: after every instruction they must agree, and the first difference is an error.

use std::fmt;

use reconverge_simt::engine::Views;
use reconverge_simt::{FlowView, Issue, Lane, Machine, Silent, Statistics, Step, Trap};
use thiserror::Error;

use super::Fast;
use crate::cause::Cause;
use crate::flow::Flow;
use crate::group::{DEPTH_ROW, Group, ROWS};
use crate::launch::RunError;

/// What differs.
#[derive(Clone, Debug, PartialEq)]
pub enum Differs {
    /// Whether the thread goes on, or how it trapped.
    Step(Box<Views<Result<Step, Trap<Cause>>>>),
    /// Program counter, active lanes, branch counters, stacks.
    Flow(Box<Views<Flow>>),
    /// A channel of a temporary, of a render target, or the depth output.
    Row {
        /// Register * 4 + channel; the outputs stand behind the temporaries.
        row: usize,
        /// The lane.
        lane: Lane,
        /// Its bits.
        value: Views<u32>,
    },
    /// A set of lanes: predicate bits, the ALU result, written outputs, killed lanes.
    Lanes(&'static str),
    /// A byte of memory.
    Memory {
        /// Its address.
        address: usize,
    },
    /// What was counted.
    Statistics(Views<Statistics>),
    /// How often each slot was issued.
    Issued,
}

/// The first difference between the engines: a defect of one of them, not of the program.
#[derive(Clone, Debug, PartialEq, Error)]
pub struct Difference {
    /// First lane of the thread.
    pub first_lane: usize,
    /// Its instruction.
    pub at: Option<Issue>,
    /// What differs.
    pub what: Differs,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the engines differ in the thread from lane {}", self.first_lane)?;
        if let Some(Issue { pc, mask }) = self.at {
            write!(f, ", at {pc} for lanes {mask}")?;
        }
        match &self.what {
            Differs::Row { row, lane, value: Views { reference, fast } } => {
                let channel = ['r', 'g', 'b', 'a'][row % 4];
                let (file, number) = match row / 4 {
                    _ if *row == DEPTH_ROW => ("depth", 0),
                    temp @ 0..128 => ("temp", temp),
                    target => ("out", target - 128),
                };
                write!(f, ": {file}[{number}].{channel} of lane {} is {reference:#x}, fast {fast:#x}", lane.0)
            }
            other => write!(f, ": {other:?}"),
        }
    }
}

/// Why a thread did not end in lockstep.
#[derive(Clone, Debug)]
pub(crate) enum Failure {
    /// Both trapped, in the same way.
    Trap(Trap<Cause>),
    /// They differ.
    Differ { at: Option<Issue>, what: Differs },
}

impl Failure {
    /// The same as an error of a run.
    pub(crate) fn of_thread(self, first_lane: usize) -> RunError {
        match self {
            Failure::Trap(trap) => RunError::Trap { first_lane, trap },
            Failure::Differ { at, what } => RunError::Differ(Box::new(Difference { first_lane, at, what })),
        }
    }
}

/// Runs a thread and its twin to their end: `group` with the reference interpreter, `twin`, which is
/// [prepared](Fast::prepare), with the fast engine. Gives the former.
pub(crate) fn run(fast: &Fast, mut group: Group, mut twin: Group) -> Result<Group, Failure> {
    let mut runs = vec![0; fast.blocks()];
    loop {
        let at = group.issue();
        let reference = group.step(&mut Silent);
        let found = fast.run(&mut twin, &mut runs, 1, &mut Silent).map(|()| match twin.issue() {
            Some(_) => Step::Running,
            None => Step::Done,
        });
        let differ = |what| Failure::Differ { at, what };
        if reference != found {
            return Err(differ(Differs::Step(Box::new(Views { reference, fast: found }))));
        }
        match reference {
            Err(trap) => return Err(Failure::Trap(trap)),
            Ok(step) => {
                if let Some(what) = compare(&group, &twin) {
                    return Err(differ(what));
                }
                if step == Step::Done {
                    break;
                }
            }
        }
    }
    fast.settle(&mut twin, &mut runs);
    if group.issued != twin.issued {
        return Err(Failure::Differ { at: None, what: Differs::Issued });
    }
    if let (Some(a), Some(b)) = (&group.memory, &twin.memory)
        && a.uncached
        && let Some(address) = (0..a.memory.len()).find(|address| a.memory[*address] != b.memory[*address])
    {
        return Err(Failure::Differ { at: None, what: Differs::Memory { address } });
    }
    Ok(group)
}

fn compare(group: &Group, twin: &Group) -> Option<Differs> {
    if group.flow() != twin.flow() {
        let views = Views { reference: group.flow().clone(), fast: twin.flow().clone() };
        return Some(Differs::Flow(Box::new(views)));
    }
    for row in 0..ROWS {
        let (a, b) = (&group.rows[row], &twin.rows[row]);
        if a == b {
            continue;
        }
        // Lanes that were not launched hold nothing.
        if let Some(lane) = group.lanes.lanes().find(|lane| a[lane.index()] != b[lane.index()]) {
            let value = Views { reference: a[lane.index()], fast: b[lane.index()] };
            return Some(Differs::Row { row, lane, value });
        }
    }
    let sets = [
        ("predicate bits", group.predicate == twin.predicate),
        ("ALU result", group.alu_result == twin.alu_result),
        ("valid ALU result", group.alu_result_valid == twin.alu_result_valid),
        ("written outputs", group.written == twin.written),
        ("killed lanes", group.killed == twin.killed),
    ];
    if let Some((name, _)) = sets.iter().find(|(_, equal)| !equal) {
        return Some(Differs::Lanes(name));
    }
    let (reference, fast) = (group.statistics, twin.statistics);
    (reference != fast).then_some(Differs::Statistics(Views { reference, fast }))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use reconverge_simt::Mask;

    use super::*;
    use crate::launch::Launch;
    use crate::setup::Setup;
    use crate::text::assemble;

    /// A thread of four lanes that loops, and its twin.
    fn twins() -> (Fast, Group, Group) {
        let source = ".int 0 3 0 0\nloop int[0]\nALU temp[1].r = MAD src0.rrr, src0.111, src1.rrr : src0=temp[0] \
                      src1=temp[1]\nendloop int[0]\nOUT nop\n";
        let setup = Arc::new(Setup::new(&assemble(source).unwrap().program).unwrap());
        let launch = Launch { lanes: 4, ..Launch::default() };
        let fast = Fast::new(&setup, &launch);
        let group = launch.group(&setup, 0, Mask::first(4));
        let mut twin = group.clone();
        fast.prepare(&mut twin);
        (fast, group, twin)
    }

    fn difference(change: impl FnOnce(&mut Group)) -> Option<(Option<Issue>, Differs)> {
        let (fast, group, mut twin) = twins();
        change(&mut twin);
        match run(&fast, group, twin) {
            Ok(_) => None,
            Err(Failure::Differ { at, what }) => Some((at, what)),
            Err(Failure::Trap(trap)) => panic!("{trap}"),
        }
    }

    #[test]
    fn the_first_difference_is_reported_with_both_views() {
        assert_eq!(difference(|_| {}), None);
        // Red of temp[1], which the second instruction adds to itself.
        let found = difference(|twin| twin.rows[4][2] = 1f32.to_bits());
        let value = Views { reference: 0, fast: 1f32.to_bits() };
        let at = Issue { pc: 0, mask: Mask::first(4) };
        assert_eq!(found, Some((Some(at), Differs::Row { row: 4, lane: Lane(2), value })));
        assert_eq!(difference(|twin| twin.killed = Mask(1)).unwrap().1, Differs::Lanes("killed lanes"));
        assert!(matches!(difference(|twin| twin.flow.kill(Mask(1))).unwrap().1, Differs::Flow(_)));
        let more = difference(|twin| twin.statistics.instructions = 5).unwrap().1;
        assert!(matches!(more, Differs::Statistics(_)));
        assert_eq!(difference(|twin| twin.issued[1] = 1).unwrap(), (None, Differs::Issued));
    }
}
