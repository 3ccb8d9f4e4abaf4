//! Ctrl-C stops the current run. The command prints the results up to that point and marks the results as partial.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Once;

use anyhow::{Result, anyhow};
use reconverge_simt::{Event, Mask, stop};
use reconverge_workbench::Error;
use reconverge_workbench::Session;
use reconverge_workbench::trace::{Recorded, Sink};

use crate::args::Answer;
use crate::files;
use crate::launch::Ready;

/// Exit status after Ctrl-C, as in shells.
pub(crate) const STATUS: i32 = 130;

/// Installs the handler. The first Ctrl-C requests a stop, and the second Ctrl-C ends the process at once.
pub(crate) fn watch() {
    static HANDLER: Once = Once::new();
    HANDLER.call_once(|| {
        // If the handler cannot be installed, Ctrl-C ends the process as usual.
        let _ = ctrlc::set_handler(|| {
            if stop::ask() {
                files::leave(STATUS);
            }
        });
    });
}

/// Whether Ctrl-C was pressed.
pub(crate) fn asked() -> bool {
    stop::asked()
}

/// Describes how an observed run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// The run completed without a trap.
    Well,
    /// The program trapped.
    Trap(String),
    /// Ctrl-C interrupted the run.
    Interrupted,
}

impl Ended {
    /// Returns the trap, if a trap ended the run.
    pub(crate) fn trap(&self) -> Option<&str> {
        match self {
            Ended::Trap(trap) => Some(trap),
            Ended::Well | Ended::Interrupted => None,
        }
    }

    /// Ends the process if Ctrl-C interrupted the run.
    pub(crate) fn leave_if_interrupted(&self) {
        if *self == Ended::Interrupted {
            files::leave(STATUS);
        }
    }

    /// Returns the answer of a command after the output of a run. If the run trapped, the function reports the trap. If
    /// Ctrl-C interrupted the run, the function ends the process instead.
    pub(crate) fn answer(&self, title: &str) -> Answer {
        self.leave_if_interrupted();
        let Some(trap) = self.trap() else { return Answer::Yes };
        tell!("{title}: {trap}");
        Answer::No
    }
}

/// The payload of the unwinding that ends an interrupted run.
struct Interrupted;

/// A sink that passes all records to another sink until Ctrl-C is pressed.
struct Watched<'a, S>(&'a mut S);

impl<S> Watched<'_, S> {
    #[inline]
    fn watch() {
        if asked() {
            // A sink can end a run only by unwinding. `resume_unwind` unwinds without reporting a panic.
            resume_unwind(Box::new(Interrupted));
        }
    }
}

impl<S: Sink> Sink for Watched<'_, S> {
    fn issues(&mut self, group: usize, addresses: &[u32], mask: Mask) {
        Self::watch();
        self.0.issues(group, addresses, mask);
    }

    fn event(&mut self, group: usize, event: Event) {
        self.0.event(group, event);
    }

    fn recording(&mut self) -> Option<reconverge_trace::Recording<'_>> {
        Some(self.0.recording()?.after_each_block(Self::watch))
    }

    fn wants_depths(&self) -> bool {
        self.0.wants_depths()
    }

    fn depth(&mut self, group: usize, number: usize, used: u32) {
        self.0.depth(group, number, used);
    }
}

/// Runs a launch and passes the events of the launch to a sink. Ends when the run ends, or when Ctrl-C interrupts the
/// run. The second Ctrl-C ends the process at once.
pub(crate) fn run_traced(ready: &Ready, recorded: Recorded, sink: &mut impl Sink) -> Result<Ended> {
    watch();
    let session: Session = ready.session.copy();
    let mut sink = Watched(sink);
    let run = AssertUnwindSafe(|| session.run_traced(&ready.options, recorded, &mut sink).map(drop));
    match catch_unwind(run) {
        // Ctrl-C may have stopped the engine before the sink noticed the interruption.
        Ok(Ok(())) if asked() => Ok(Ended::Interrupted),
        Ok(Ok(())) => Ok(Ended::Well),
        Ok(Err(Error::Trap(trap))) => Ok(Ended::Trap(trap.to_string())),
        Ok(Err(error)) => Err(anyhow!("{}: {error}", ready.title)),
        Err(payload) if payload.is::<Interrupted>() => Ok(Ended::Interrupted),
        Err(payload) => resume_unwind(payload),
    }
}
