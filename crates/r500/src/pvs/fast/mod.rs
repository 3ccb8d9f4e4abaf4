//! The fast engine: whole rows of vertices at a time.
//!
//! It works on the reference interpreter's [`Group`] and leaves the same registers, counts and traps; where a program goes
//! is [`super::flow`]'s. What is looked up beforehand is where operands and results are. What it does not know (relative
//! addresses of other files than the constants, what traps) it gives to the reference interpreter, one instruction at a
//! time.
//!
//! | read | for |
//! |---|---|
//! | `lower` | where the operands and results of an instruction are |
//! | `rows` | the operations on rows |
//! | `lockstep` | a group on both engines, for [`reconverge_simt::lockstep`] |

pub(crate) mod lockstep;
mod lower;
mod rows;

use std::sync::Arc;

use reconverge_simt::loaded::{Spare, count_lowered};
use reconverge_simt::registers::Row;
use reconverge_simt::{Event, FlowView, Level, Mask, Observer, Options, Trap, announced};

use super::cause::Cause;
use super::flow::Flow;
use super::group::{Group, INPUT};
use super::inst::OUTPUTS;
use super::launch::Launch;
use super::setup::Setup;
use lower::Plain;
use rows::Execute;

/// A lowered program.
#[derive(Clone, Debug)]
pub struct Fast {
    /// By slot; none where the reference interpreter executes.
    slots: Vec<Option<Plain>>,
    /// Rows that the program may write.
    written: Vec<usize>,
    level: Level,
    /// A group that has ended, whose input registers are zeros.
    spare: Spare<Group>,
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

    /// Slots whose instruction the reference interpreter executes.
    pub fn by_reference(&self) -> impl Iterator<Item = usize> {
        self.slots.iter().enumerate().filter_map(|(slot, plain)| plain.is_none().then_some(slot))
    }

    /// A group of no vertices: one that an earlier launch of the program left, or a new one.
    pub(crate) fn group(&self, setup: &Arc<Setup>, launch: &Launch, options: &Options) -> Group {
        let constants = launch.constants_of(setup);
        match self.spare.take() {
            Some(mut group) => {
                group.constants = constants;
                group.issued.fill(0);
                group
            }
            None => Group::new(setup, constants, Mask::NONE, options.mode, options.watchdog),
        }
    }

    /// Keeps a group that has ended for a later launch.
    pub(crate) fn keep(&self, mut group: Group, launch: &Launch) {
        for input in &launch.inputs {
            let start = INPUT.start + usize::from(input.register) * 4;
            group.rows.rows_mut()[start..start + 4].fill(Row::ZERO);
        }
        self.spare.keep(group);
    }

    /// Makes a group one of other vertices at the start of the program; counts by slot stay.
    pub(crate) fn restart(&self, group: &mut Group, lanes: Mask) {
        group.flow = Flow::new(group.setup.first, lanes);
        let rows = group.rows.rows_mut();
        self.written.iter().for_each(|row| rows[*row].0.fill(0));
        group.a0.iter_mut().for_each(|row| row.fill(0));
        group.a0_written = [Mask::NONE; 4];
        group.predicate = Mask::NONE;
        group.written = [[Mask::NONE; 4]; OUTPUTS];
        group.statistics = Default::default();
    }

    /// Executes at most `most` instructions.
    ///
    /// # Errors
    /// The first trap.
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
                self.level.run(Execute { group, plain, inst: &inst, lanes });
                Ok(())
            }
            _ => announced!(O, |observer| group.instruction(&inst, observer)),
        }
    }
}
