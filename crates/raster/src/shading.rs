//! The fragment program of a draw as a trait object. So the compiler compiles the stages only once for all programs.

use std::any::Any;

use crate::state::{CopiedTexels, FragmentProgram, Fragments, ReadColumns, Shaded};

/// The error with which a fragment program has stopped. The box contains a [`FragmentProgram::Error`].
#[derive(Debug)]
pub(crate) struct Stopped(pub(crate) Box<dyn Any + Send>);

/// A [`FragmentProgram`] with any error type.
pub(crate) trait Shading: Sync {
    /// See [`FragmentProgram::reads`].
    fn reads(&self) -> ReadColumns;

    /// See [`FragmentProgram::is_uniform`].
    fn is_uniform(&self) -> bool;

    /// See [`FragmentProgram::may_skip_hidden`].
    fn may_skip_hidden(&self) -> bool;

    /// See [`FragmentProgram::copied`].
    fn copied(&self) -> Option<CopiedTexels>;

    /// See [`FragmentProgram::in_order`].
    fn in_order(&self) -> bool;

    /// See [`FragmentProgram::run`].
    ///
    /// # Errors
    /// Returns an error if the program has stopped.
    fn run(&self, fragments: &Fragments) -> Result<Shaded, Stopped>;

    /// See [`FragmentProgram::merged`].
    fn merged(&self, shaded: Shaded);
}

impl<P: FragmentProgram> Shading for P {
    fn reads(&self) -> ReadColumns {
        FragmentProgram::reads(self)
    }

    fn is_uniform(&self) -> bool {
        FragmentProgram::is_uniform(self)
    }

    fn may_skip_hidden(&self) -> bool {
        FragmentProgram::may_skip_hidden(self)
    }

    fn copied(&self) -> Option<CopiedTexels> {
        FragmentProgram::copied(self)
    }

    fn in_order(&self) -> bool {
        FragmentProgram::in_order(self)
    }

    fn run(&self, fragments: &Fragments) -> Result<Shaded, Stopped> {
        FragmentProgram::run(self, fragments).map_err(|error| Stopped(Box::new(error)))
    }

    fn merged(&self, shaded: Shaded) {
        FragmentProgram::merged(self, shaded);
    }
}
