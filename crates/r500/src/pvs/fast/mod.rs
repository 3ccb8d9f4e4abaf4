//! The fast engine of the vertex unit. This engine executes an operation for whole rows of vertices at once.
//!
//! The engine and the reference interpreter both work on a [`Group`]. Their registers, counts and traps are equal.
//! [`super::flow`] executes flow control. Lowering finds the rows of operands and results. The reference interpreter
//! executes instructions that cannot be lowered. There are two kinds: instructions that trap, and instructions with a
//! relative address in a file other than the constants.
//!
//! | module | contents |
//! |---|---|
//! | `lower` | finds the rows of the operands and results of an instruction |
//! | `rows` | executes operations on rows |
//! | `lockstep` | runs a group on both engines, for [`reconverge_simt::lockstep`] |

pub(crate) mod lockstep;
mod lower;
mod rows;

use std::sync::Arc;

use reconverge_simt::loaded::{Spare, count_lowered};
use reconverge_simt::registers::Row;
use reconverge_simt::{Event, FlowView, Level, Mask, Observer, Options, Trap, announced};

use super::cause::Cause;
use super::flow::Flow;
use super::group::{Group, INPUT, WIDTH};
use super::inst::{CONSTANTS, OUTPUTS};
use super::launch::Environment;
use super::setup::Setup;
use lower::Plain;
use rows::Execute;

/// Maximum number of vertices in a small group. A small group runs code that computes only this many lanes. Most small
/// draws do not have more vertices than this number.
const FEW: usize = 8;

/// A lowered program.
#[derive(Clone, Debug)]
pub struct Fast {
    /// Lowered instructions, indexed by slot. If an element is `None`, the reference interpreter executes the
    /// instruction.
    slots: Vec<Option<Plain>>,
    /// Rows that the program may write.
    written: Vec<usize>,
    level: Level,
    /// A group of an earlier launch. The input registers of the group are zero. A later launch reuses the group.
    spare: Spare<Box<Group>>,
}

impl Fast {
    /// Lowers a program.
    pub fn new(setup: &Setup, options: &Options) -> Fast {
        count_lowered();
        let (written, level) = (lower::written(setup), options.level());
        let mut fast = Fast { slots: Vec::new(), written, level, spare: Spare::default() };
        for (slot, loaded) in setup.slots() {
            fast.slots.resize(usize::from(slot), None);
            fast.slots.push(loaded.inst.as_ref().ok().and_then(|inst| Plain::new(inst, setup)));
        }
        fast
    }

    /// Returns the slots of the instructions that the reference interpreter executes.
    pub fn by_reference(&self) -> impl Iterator<Item = usize> {
        self.slots.iter().enumerate().filter_map(|(slot, plain)| plain.is_none().then_some(slot))
    }

    /// Returns a group without vertices. Reuses the group of an earlier launch of the program, if available. A reused
    /// group still has the issue counts of the earlier launch.
    pub(crate) fn group(
        &self,
        setup: &Arc<Setup>,
        environment: &Environment,
        options: &Options,
    ) -> Box<Group> {
        let mut group = self.spare.take().unwrap_or_else(|| {
            let constants = Arc::new([[0; 4]; CONSTANTS]);
            Box::new(Group::new(setup, constants, Mask::NONE, options.mode, options.watchdog))
        });
        setup.put_constants(Arc::make_mut(&mut group.constants), &environment.constants);
        group
    }

    /// Keeps an ended group for a later launch. `inputs` are the input registers that the launch has written. This
    /// function sets the registers in `inputs` to zero.
    pub(crate) fn keep(&self, mut group: Box<Group>, inputs: impl Iterator<Item = usize>) {
        for register in inputs {
            let start = INPUT.start + register * 4;
            group.rows.rows_mut()[start..start + 4].fill(Row::ZERO);
        }
        self.spare.keep(group);
    }

    /// Restarts a group at the start of the program, with other vertices. Does not change issue counts.
    pub(crate) fn restart(&self, group: &mut Group, lanes: Mask) {
        group.flow = Flow::new(group.setup.first, lanes);
        // The engine does not read lanes above the highest vertex. So this function does not clear those lanes.
        let width = (u64::BITS - lanes.0.leading_zeros()) as usize;
        let rows = group.rows.rows_mut();
        self.written.iter().for_each(|row| rows[*row].0[..width].fill(0));
        group.a0.iter_mut().for_each(|row| row[..width].fill(0));
        group.a0_written = [Mask::NONE; 4];
        group.predicate = Mask::NONE;
        group.written = [[Mask::NONE; 4]; OUTPUTS];
        group.statistics = Default::default();
    }

    /// Executes up to `most` instructions.
    ///
    /// # Errors
    /// Returns an error if an instruction traps.
    pub(crate) fn run<O: Observer>(
        &self,
        group: &mut Group,
        most: u64,
        observer: &mut O,
    ) -> Result<(), Trap<Cause>> {
        let setup = group.setup.clone();
        let end = group.statistics.instructions.saturating_add(most);
        while group.statistics.instructions < end
            && let Some(issue) = group.flow.issue()
        {
            let executed = self
                .execute(group, observer)
                .and_then(|()| Ok(group.flow.advance(&setup.control, group.mode, observer)?));
            if let Err(cause) = executed {
                if O::ENABLED {
                    observer.event(Event::Trap { mask: issue.mask });
                }
                return Err(Trap { pc: issue.pc, lanes: issue.mask, cause });
            }
        }
        Ok(())
    }

    fn execute<O: Observer>(&self, group: &mut Group, observer: &mut O) -> Result<(), Cause> {
        let pc = group.flow.pc();
        let inst = group.issue_at(pc, observer)?;
        let lanes = group.passing(&inst);
        if lanes.is_empty() {
            return Ok(());
        }
        match self.slots.get(usize::from(pc)) {
            Some(Some(plain)) if plain.fits(group, lanes) => {
                let inst = &inst;
                match lanes.0 >> FEW {
                    0 => self.level.run(Execute::<FEW> { group, plain, inst, lanes }),
                    _ => self.level.run(Execute::<WIDTH> { group, plain, inst, lanes }),
                }
                Ok(())
            }
            _ => announced!(O, |observer| group.instruction(&inst, observer)),
        }
    }
}
