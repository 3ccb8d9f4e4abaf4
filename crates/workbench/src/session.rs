//! A launch, ready to run: [`Session`], and what a run leaves: [`Outcome`].

use std::any::Any;

use reconverge_simt::fidelity::Report;
use reconverge_simt::{Options, Statistics};

use crate::array::Array;
use crate::request::Error;
use crate::trace::Streamed;

/// A prepared launch.
pub trait Session: Any + Send + Sync {
    /// Another one, as this one is.
    fn copy(&self) -> Box<dyn Session>;

    /// Runs the launch to its end.
    ///
    /// # Errors
    /// [`Error::Trap`] is the program's fault, [`Error::Differ`] is a defect of an engine, the others are the launch's.
    fn run(self: Box<Self>, options: &Options) -> Result<Box<dyn Outcome>, Error>;

    /// Runs the launch in order on one thread and records the issues and the flow events.
    ///
    /// # Errors
    /// Those of [`Session::run`].
    fn run_traced(
        self: Box<Self>,
        options: &Options,
        trace: &mut Streamed,
    ) -> Result<Box<dyn Outcome>, Error>;
}

/// What a run leaves. Arrays are made when they are asked for.
pub trait Outcome: Send {
    /// Counts, as the machine's documentation defines them.
    fn statistics(&self) -> Statistics;

    /// What was executed, and how exact it was.
    fn report(&self) -> &Report;

    /// What strict mode objects to in how the program ended, though it left what it should.
    fn finding(&self) -> Option<String> {
        None
    }

    /// The outputs by name.
    fn outputs(&self) -> Vec<(String, Array)>;

    /// Which components of an output each lane wrote (bit 0 is x), where the machine knows it.
    fn written(&self, _output: &str) -> Option<&[u8]> {
        None
    }
}
