//! Ctrl-C: what runs stops, and what there is of it is kept and marked as a part.

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

/// The exit status after Ctrl-C, as shells have it.
pub(crate) const STATUS: i32 = 130;

/// From here on Ctrl-C asks what runs to stop; a second one ends the program at once.
pub(crate) fn watch() {
    static HANDLER: Once = Once::new();
    HANDLER.call_once(|| {
        // Where there can be no handler, Ctrl-C ends the program as ever.
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

/// How an observed run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// At its end.
    Well,
    /// With a trap.
    Trap(String),
    /// By Ctrl-C.
    Interrupted,
}

impl Ended {
    /// The trap, if it was one.
    pub(crate) fn trap(&self) -> Option<&str> {
        match self {
            Ended::Trap(trap) => Some(trap),
            Ended::Well | Ended::Interrupted => None,
        }
    }

    /// Leaves the program if Ctrl-C has ended the run.
    pub(crate) fn leave_if_interrupted(&self) {
        if *self == Ended::Interrupted {
            files::leave(STATUS);
        }
    }

    /// The answer of a command that has shown the run: names the trap, and leaves the program if Ctrl-C has ended the run.
    pub(crate) fn answer(&self, title: &str) -> Answer {
        self.leave_if_interrupted();
        let Some(trap) = self.trap() else { return Answer::Yes };
        tell!("{title}: {trap}");
        Answer::No
    }
}

/// What unwinds a run that is interrupted.
struct Interrupted;

/// Hands everything on until Ctrl-C.
struct Watched<'a, S>(&'a mut S);

impl<S> Watched<'_, S> {
    #[inline]
    fn watch() {
        if asked() {
            // Not a panic: nothing is reported. A sink has no other way to end a run.
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

/// Runs a launch and hands what happens to a sink, until its end or Ctrl-C; a second Ctrl-C ends the program at once.
pub(crate) fn run_traced(ready: &Ready, recorded: Recorded, sink: &mut impl Sink) -> Result<Ended> {
    watch();
    let session: Session = ready.session.copy();
    let mut sink = Watched(sink);
    let run = AssertUnwindSafe(|| session.run_traced(&ready.options, recorded, &mut sink).map(drop));
    match catch_unwind(run) {
        // The engine may have stopped before the sink did.
        Ok(Ok(())) if asked() => Ok(Ended::Interrupted),
        Ok(Ok(())) => Ok(Ended::Well),
        Ok(Err(Error::Trap(trap))) => Ok(Ended::Trap(trap.to_string())),
        Ok(Err(error)) => Err(anyhow!("{}: {error}", ready.title)),
        Err(payload) if payload.is::<Interrupted>() => Ok(Ended::Interrupted),
        Err(payload) => resume_unwind(payload),
    }
}
