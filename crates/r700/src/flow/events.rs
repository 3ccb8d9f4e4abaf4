//! The events that a step of the divergence machine causes.

use reconverge_simt::{Event, Mask, Observer};

use super::{AluForm, Flow};

/// Parts of the flow state that a step can change, apart from the program counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Changes {
    /// The step changes only the program counter.
    Nothing,
    /// The step only pushes one entry.
    Push,
    /// The step changes only the active lanes.
    Masks,
    /// The step can change every part.
    All,
    /// The step executes a control-flow word. The step can change every part of the flow state, but the lanes do not
    /// diverge. A control-flow word splits the active lanes only with VALID_PIXEL_MODE. This split does not count as a
    /// divergence (docs/r700.md, "Counts").
    Flow,
}

impl AluForm {
    /// Returns the parts of the flow state that [`Flow::alu_enter`] can change.
    #[inline(always)]
    pub(crate) fn changes_at_start(self) -> Changes {
        if self == AluForm::ALU_PUSH_BEFORE { Changes::Push } else { Changes::Nothing }
    }

    /// Returns the parts of the flow state that [`Flow::alu_leave`] can change. If `decides` is set, the last group of
    /// the clause changes the masks. The returned parts include the parts that this group changes.
    #[inline(always)]
    pub(crate) fn changes_at_end(self, decides: bool) -> Changes {
        match self {
            AluForm::ALU_POP_AFTER | AluForm::ALU_POP2_AFTER => Changes::All,
            AluForm::ALU_ELSE_AFTER => Changes::Masks,
            AluForm::ALU | AluForm::ALU_PUSH_BEFORE | AluForm::ALU_CONTINUE | AluForm::ALU_BREAK => {
                if decides { Changes::Masks } else { Changes::Nothing }
            }
        }
    }
}

/// A copy of the flow state before a step. The copy contains only the parts that the events of the step need. If no
/// observer exists, the copy is [`Before::Nothing`].
pub(crate) enum Before {
    Nothing,
    Push,
    Masks(Mask),
    All(Snapshot),
}

pub(crate) struct Snapshot {
    pc: u32,
    active: Mask,
    depth: usize,
    top: &'static str,
    /// Whether a split of the active lanes is a divergence.
    decides: bool,
}

impl Before {
    /// Copies the state before a step.
    #[inline(always)]
    pub(crate) fn of<O: Observer>(flow: &Flow, changes: Changes) -> Before {
        match changes {
            _ if !O::ENABLED => Before::Nothing,
            Changes::Nothing => Before::Nothing,
            Changes::Push => Before::Push,
            Changes::Masks => Before::Masks(flow.active()),
            Changes::All => Before::All(Snapshot::of(flow, true)),
            Changes::Flow => Before::All(Snapshot::of(flow, false)),
        }
    }

    /// Returns whether the step has changed only the program counter. Returns `false` without an observer.
    #[inline(always)]
    pub(crate) fn has_only_moved(&self, flow: &Flow) -> bool {
        let Before::All(Snapshot { active, depth, .. }) = self else { return false };
        (*active, *depth) == (flow.states.active, flow.stack.len())
    }

    /// Compares `flow` with the state before the step. Notifies the observer of the changes.
    #[inline(always)]
    pub(crate) fn announce<O: Observer>(&self, flow: &mut Flow, observer: &mut O) {
        if !O::ENABLED {
            return;
        }
        match self {
            Before::Nothing => {}
            Before::Push => {
                observer.event(Event::Push { kind: kind_on_top(flow) });
                announce_depth(flow, observer);
            }
            Before::Masks(before) => announce_masks(*before, flow, observer),
            Before::All(before) => {
                before.announce(flow, observer);
                announce_depth(flow, observer);
            }
        }
    }
}

impl Snapshot {
    #[inline]
    fn of(flow: &Flow, decides: bool) -> Snapshot {
        let (depth, top) = (flow.stack.len(), kind_on_top(flow));
        Snapshot { pc: flow.pc, active: flow.states.active, depth, top, decides }
    }

    #[inline]
    fn announce<O: Observer>(&self, flow: &mut Flow, observer: &mut O) {
        let (depth, pc) = (flow.stack.len(), flow.pc);
        if depth > self.depth {
            let kind = kind_on_top(flow);
            for _ in self.depth..depth {
                observer.event(Event::Push { kind });
            }
        } else {
            for _ in depth..self.depth {
                observer.event(Event::Pop { kind: self.top });
            }
        }
        if self.decides {
            announce_masks(self.active, flow, observer);
        } else {
            announce_added(self.active, flow, observer);
        }
        if pc != self.pc && pc != self.pc + 1 {
            observer.event(Event::Jump { to: pc });
        }
    }
}

/// Notifies the observer of the maximum stack depth up to now. If an instruction pops and pushes entries, the stack may
/// be deepest in the middle of the instruction.
#[inline(always)]
fn announce_depth<O: Observer>(flow: &Flow, observer: &mut O) {
    if observer.wants_depths() {
        observer.depth(0, flow.stack_needed());
    }
}

/// Returns the manual's term for the kind of the entry on top of the stack.
#[inline]
fn kind_on_top(flow: &Flow) -> &'static str {
    flow.stack.last().map_or("", |entry| entry.kind())
}

/// Notifies the observer of two kinds of lanes: lanes that diverge, and waiting lanes that become active again.
#[inline]
fn announce_masks<O: Observer>(before: Mask, flow: &mut Flow, observer: &mut O) {
    let after = flow.states.active;
    let (off, stay) = (before - after, after & before);
    if off.any() && stay.any() {
        observer.event(Event::Diverge { taken: stay, not: off });
    }
    announce_added(before, flow, observer);
}

/// Notifies the observer of waiting lanes that become active again.
#[inline]
fn announce_added<O: Observer>(before: Mask, flow: &mut Flow, observer: &mut O) {
    let after = flow.states.active;
    if let Some(event) = flow.ran.changed(before, after) {
        observer.event(event);
    }
}

impl Flow {
    /// Copies the field `ran` from `of`. `ran` contains the active lanes of the latest step that had active lanes. Only
    /// observed steps update `ran`. So after steps without an observer, two engines may have different values in `ran`.
    pub(crate) fn take_last_active(&mut self, of: &Flow) {
        self.ran = of.ran;
    }
}

#[cfg(test)]
mod tests {
    use reconverge_simt::Recorder;

    use super::*;
    use crate::flow::{Control, FlowSetup};

    /// Returns the events of a step.
    fn events_of(flow: &mut Flow, changes: Changes, step: impl FnOnce(&mut Flow)) -> Vec<Event> {
        let mut recorder = Recorder::default();
        let before = Before::of::<Recorder>(flow, changes);
        step(flow);
        before.announce(flow, &mut recorder);
        recorder.events
    }

    fn start(flow: &mut Flow, form: AluForm) -> Vec<Event> {
        events_of(flow, form.changes_at_start(), |flow| {
            flow.alu_enter(form, false).unwrap();
        })
    }

    /// Returns the events at the end of a clause. `skip` are the lanes that the last group of the clause disables.
    fn end(flow: &mut Flow, form: AluForm, skip: u64) -> Vec<Event> {
        events_of(flow, form.changes_at_end(skip != 0), |flow| {
            flow.update_execute_mask(form, Mask(skip));
            flow.alu_leave(form).unwrap();
        })
    }

    fn flow() -> Flow {
        Flow::new(FlowSetup::new(64, Mask(0b1111)))
    }

    #[test]
    fn clauses_announce_what_they_push_pop_and_decide() {
        let mut flow = flow();
        assert_eq!(start(&mut flow, AluForm::ALU_PUSH_BEFORE), [Event::Push { kind: "PUSH" }]);
        let parted = Event::Diverge { taken: Mask(0b1100), not: Mask(0b0011) };
        assert_eq!(end(&mut flow, AluForm::ALU_PUSH_BEFORE, 0b0011), [parted]);
        assert_eq!(start(&mut flow, AluForm::ALU_ELSE_AFTER), []);
        // The clause swaps the sides of the branch, so no lane that was active stays active.
        assert_eq!(end(&mut flow, AluForm::ALU_ELSE_AFTER, 0), [Event::Resume { mask: Mask(0b0011) }]);
        assert_eq!(start(&mut flow, AluForm::ALU_POP_AFTER), []);
        assert_eq!(
            end(&mut flow, AluForm::ALU_POP_AFTER, 0),
            [Event::Pop { kind: "PUSH" }, Event::Reconverge { mask: Mask(0b1111) }]
        );
        // The clause disables all active lanes, so the lanes do not diverge.
        assert_eq!(start(&mut flow, AluForm::ALU), []);
        assert_eq!(end(&mut flow, AluForm::ALU, 0b1111), []);
    }

    #[test]
    fn lanes_that_valid_pixel_mode_switches_off_are_no_divergence() {
        let mut flow = flow();
        flow.loop_start_dx10(&Control::to(9)).unwrap();
        flow.kill_lanes(Mask(0b0001));
        let end = Control { valid_pixel_mode: true, ..Control::to(1) };
        let events = events_of(&mut flow, Changes::Flow, |flow| flow.loop_end(&end).unwrap());
        assert_eq!(flow.active(), Mask(0b1110));
        assert_eq!(events, []);
    }

    #[test]
    fn two_entries_popped_are_two_events() {
        let mut flow = flow();
        for _ in 0..2 {
            start(&mut flow, AluForm::ALU_PUSH_BEFORE);
            end(&mut flow, AluForm::ALU_PUSH_BEFORE, 0);
        }
        assert_eq!(start(&mut flow, AluForm::ALU_POP2_AFTER), []);
        assert_eq!(end(&mut flow, AluForm::ALU_POP2_AFTER, 0), [Event::Pop { kind: "PUSH" }; 2]);
    }

    #[test]
    fn other_instructions_announce_jumps_last() {
        let mut flow = flow();
        let events =
            events_of(&mut flow, Changes::Flow, |flow| flow.loop_start_dx10(&Control::to(9)).unwrap());
        assert_eq!(events, [Event::Push { kind: "LOOP" }]);
        let events = events_of(&mut flow, Changes::Flow, |flow| flow.loop_break(&Control::to(8)).unwrap());
        assert_eq!(events, [Event::Jump { to: 8 }]);
        let events = events_of(&mut flow, Changes::Flow, |flow| flow.loop_end(&Control::to(1)).unwrap());
        assert_eq!(events, [Event::Pop { kind: "LOOP" }], "all lanes left, and all run again");
    }

    #[test]
    fn lanes_that_wake_where_none_runs_meet_those_that_ran_last() {
        let mut flow = flow();
        flow.loop_start_dx10(&Control::to(9)).unwrap();
        let breaks =
            |flow: &mut Flow, lanes| events_of(flow, Changes::All, |flow| flow.set_active(Mask(lanes)));
        assert_eq!(breaks(&mut flow, 0b0001), [Event::Diverge { taken: Mask(0b0001), not: Mask(0b1110) }]);
        assert_eq!(breaks(&mut flow, 0), []);
        let events = events_of(&mut flow, Changes::Flow, |flow| flow.loop_end(&Control::to(1)).unwrap());
        assert_eq!(events.last(), Some(&Event::Reconverge { mask: Mask(0b1111) }));
    }

    #[test]
    fn a_step_has_only_moved_where_lanes_and_stack_are_as_before() {
        let moved = |changes: Changes, step: fn(&mut Flow)| {
            let mut flow = flow();
            let before = Before::of::<Recorder>(&flow, changes);
            step(&mut flow);
            before.has_only_moved(&flow)
        };
        assert!(moved(Changes::Flow, |flow| flow.jump(&Control::to(5)).unwrap()));
        assert!(!moved(Changes::Flow, |flow| flow.push_(&Control::to(5)).unwrap()));
        assert!(!moved(Changes::Flow, |flow| flow.set_active(Mask(0b0111))));
        // For [`Changes::Nothing`], `Before` takes no snapshot, so the result is `false`.
        assert!(!moved(Changes::Nothing, |flow| flow.jump(&Control::to(5)).unwrap()));
    }

    #[test]
    fn whoever_wants_depths_hears_how_much_stack_was_needed() {
        #[derive(Default)]
        struct Deepest(Vec<u32>);
        impl Observer for Deepest {
            const ENABLED: bool = true;
            fn event(&mut self, _: Event) {}
            fn wants_depths(&self) -> bool {
                true
            }
            fn depth(&mut self, stack: usize, used: u32) {
                assert_eq!(stack, 0);
                self.0.push(used);
            }
        }
        let (mut flow, mut deepest) = (flow(), Deepest::default());
        for changes in [Changes::Push, Changes::All, Changes::Masks] {
            let before = Before::of::<Deepest>(&flow, changes);
            flow.push_(&Control::to(9)).unwrap();
            before.announce(&mut flow, &mut deepest);
        }
        // The first push needs three subentries: one subentry for the entry, and two extra subentries. The second push
        // needs one more subentry. So both pushes fit in one entry of four subentries. A change of masks without a push
        // needs no stack.
        assert_eq!(deepest.0, [1, 1]);
    }
}
