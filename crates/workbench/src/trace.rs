//! A trace of issues and flow events that is handed on in pieces, so that it stays small.

use reconverge_simt::{Event, FlowTrace, Mask, Observer};

/// A trace of which only the latest pieces are kept.
#[derive(Clone, Debug, Default)]
pub struct Streamed {
    trace: FlowTrace,
    /// Pieces that have been handed on.
    steps: u64,
}

/// Pieces that are kept at a time.
const KEPT: usize = 1 << 14;

impl Streamed {
    /// Pieces so far.
    pub fn steps(&self) -> u64 {
        self.steps + self.trace.steps.len() as u64
    }

    #[inline(always)]
    fn hand_on(&mut self) {
        if self.trace.steps.len() >= KEPT {
            // The last one may grow.
            let done = self.trace.steps.len() - 1;
            self.trace.steps.drain(..done);
            self.steps += done as u64;
        }
    }
}

impl Observer for Streamed {
    const ENABLED: bool = true;
    const DATA: bool = false;

    #[inline(always)]
    fn event(&mut self, event: Event) {
        self.trace.event(event);
        self.hand_on();
    }

    #[inline(always)]
    fn issues(&mut self, addresses: &[u32], mask: Mask) {
        self.trace.issues(addresses, mask);
        self.hand_on();
    }
}
