//! Runs wavefronts, and decides whether compiled code or the fast engine runs the next instruction.

use std::cell::Cell;

use reconverge_simt::level::Task;
use reconverge_simt::wide::Wide;
use reconverge_simt::{Observer, Step, Trap, stop};

use super::Fast;
use super::compiled::{self, Compiled};
use super::counts::Issued;
use super::runner::Runner;
use crate::cause::Cause;
use crate::wave::Wave;

/// A call of [`Runner::run`], compiled for each instruction set level.
struct Run<'a, 'b, O> {
    runner: &'a mut Runner<'b>,
    code: Option<&'a Compiled>,
    wave: &'a mut Wave,
    end_at: u64,
    observer: &'a mut O,
}

impl<O: Observer> Task for Run<'_, '_, O> {
    type Output = Result<(), Trap<Cause>>;

    /// Runs the wavefront until the wavefront's statistics have counted `end_at` instructions.
    #[inline(always)]
    fn run<W: Wide>(self, wide: W) -> Self::Output {
        let Run { runner, code, wave, end_at, observer } = self;
        let mut issued = Issued::default();
        runner.finish_clause(wave, end_at, observer)?;
        // If compiled code refuses an instruction, the fast engine runs the instruction.
        let refused = Cell::new(None);
        while let Some(node) =
            runner.run_to_node(wide, wave, &mut issued, end_at, observer, |number, budget, flow| {
                let code = code.filter(|_| refused.take() != Some(number))?;
                compiled::node(&code.linked, number, budget, flow)
            })?
        {
            let Some(code) = code else { break };
            if compiled::run(code, node, runner, wave, &mut issued, (end_at, &refused), observer)? {
                break;
            }
        }
        issued.settle(wave);
        Ok(())
    }
}

impl Runner<'_> {
    /// Runs a wavefront for at most `most` instructions. If the wavefront has not ended, the function runs at least one
    /// instruction. A later call continues the wavefront. `fast` is the program of the runner.
    ///
    /// # Errors
    /// Returns an error if the program traps.
    pub(super) fn run<O: Observer>(
        &mut self,
        fast: &Fast,
        wave: &mut Wave,
        most: u64,
        observer: &mut O,
    ) -> Result<Step, Trap<Cause>> {
        let end_at = wave.statistics.instructions.saturating_add(most);
        let code = fast.compiled.as_deref().filter(|_| self.memory.is_some());
        let result = self
            .with_rows(wave, |runner, wave| runner.level.run(Run { runner, code, wave, end_at, observer }));
        result.map(|()| if wave.flow.done() { Step::Done } else { Step::Running })
    }

    /// Runs a wavefront until the wavefront ends, or until a [stop] of all runs is requested. `fast` is the program of
    /// the runner.
    ///
    /// # Errors
    /// Returns an error if the program traps.
    pub(super) fn run_whole<O: Observer>(
        &mut self,
        fast: &Fast,
        wave: &mut Wave,
        observer: &mut O,
    ) -> Result<(), Trap<Cause>> {
        while !stop::asked() && self.run(fast, wave, stop::SLICE, observer)? == Step::Running {}
        Ok(())
    }
}
