//! What a step did to the flow state, in the vocabulary of events.

use reconverge_simt::{Event, Mask, Observer};

use super::Flow;

/// The flow state before a step, as far as events tell of it; nothing when nobody looks.
pub(crate) struct Before(Option<Snapshot>);

struct Snapshot {
    pc: u32,
    active: Mask,
    depth: usize,
    top: &'static str,
}

impl Before {
    /// The state now.
    #[inline(always)]
    pub(crate) fn of<O: Observer>(flow: &Flow) -> Before {
        Before(O::ENABLED.then(|| Snapshot::of(flow)))
    }

    /// The state now, if the step may change it otherwise than by going on to the next instruction.
    #[inline(always)]
    pub(crate) fn of_change<O: Observer>(flow: &Flow, changes: bool) -> Before {
        if changes { Before::of::<O>(flow) } else { Before::NOTHING }
    }

    /// No state, from which nothing is told.
    pub(crate) const NOTHING: Before = Before(None);

    /// Tells what has become of it in `flow`.
    #[inline(always)]
    pub(crate) fn announce<O: Observer>(&self, flow: &Flow, observer: &mut O) {
        if O::ENABLED
            && let Some(before) = &self.0
        {
            before.announce(flow, observer);
        }
    }
}

impl Snapshot {
    #[inline]
    fn of(flow: &Flow) -> Snapshot {
        Snapshot {
            pc: flow.pc,
            active: flow.states.active,
            depth: flow.stack.len(),
            top: flow.stack.last().map_or("", |entry| entry.kind()),
        }
    }

    #[inline]
    fn announce<O: Observer>(&self, flow: &Flow, observer: &mut O) {
        let after = Snapshot::of(flow);
        for _ in self.depth..after.depth {
            observer.event(Event::Push { kind: after.top });
        }
        for _ in after.depth..self.depth {
            observer.event(Event::Pop { kind: self.top });
        }
        let (off, on) = (self.active - after.active, after.active - self.active);
        if off.any() && (after.active & self.active).any() {
            observer.event(Event::Diverge { taken: after.active & self.active, not: off });
        }
        if on.any() {
            observer.event(Event::Reconverge { mask: after.active });
        }
        if after.pc != self.pc && after.pc != self.pc + 1 {
            observer.event(Event::Jump { to: after.pc });
        }
    }
}
