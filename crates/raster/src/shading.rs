//! The fragment program of a draw, without its type: the stages are compiled once for all programs.

use crate::state::{CopiedTexels, FragmentProgram, Fragments, ReadColumns, Shaded};

/// A fragment program has stopped with an error, which [`Stopping`] keeps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stopped;

/// A [`FragmentProgram`] with any error.
pub(crate) trait Shading {
    /// See [`FragmentProgram::reads`].
    fn reads(&self) -> ReadColumns;

    /// See [`FragmentProgram::is_uniform`].
    fn is_uniform(&self) -> bool;

    /// See [`FragmentProgram::may_skip_hidden`].
    fn may_skip_hidden(&self) -> bool;

    /// See [`FragmentProgram::copied`].
    fn copied(&self) -> Option<CopiedTexels>;

    /// See [`FragmentProgram::run`].
    ///
    /// # Errors
    /// The program has stopped.
    fn run(&mut self, fragments: &Fragments) -> Result<Shaded, Stopped>;

    /// See [`FragmentProgram::merged`].
    fn merged(&mut self, shaded: Shaded);
}

/// A program, and its error once it has stopped.
pub(crate) struct Stopping<'a, P: FragmentProgram> {
    pub(crate) program: &'a mut P,
    pub(crate) error: Option<P::Error>,
}

impl<P: FragmentProgram> Shading for Stopping<'_, P> {
    fn reads(&self) -> ReadColumns {
        self.program.reads()
    }

    fn is_uniform(&self) -> bool {
        self.program.is_uniform()
    }

    fn may_skip_hidden(&self) -> bool {
        self.program.may_skip_hidden()
    }

    fn copied(&self) -> Option<CopiedTexels> {
        self.program.copied()
    }

    fn run(&mut self, fragments: &Fragments) -> Result<Shaded, Stopped> {
        self.program.run(fragments).map_err(|error| {
            self.error = Some(error);
            Stopped
        })
    }

    fn merged(&mut self, shaded: Shaded) {
        self.program.merged(shaded);
    }
}
