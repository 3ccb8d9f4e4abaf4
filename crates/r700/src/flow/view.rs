//! The debugger's view of the divergence machine.

use reconverge_simt::{Depth, FlowView, Issue, Lane, StackRow, Why};

use super::{Entry, Flow, LoopKind, LoopRegisters};

impl FlowView for Flow {
    fn issue(&self) -> Option<Issue> {
        (!self.done).then_some(Issue { pc: self.pc, mask: self.states.active })
    }

    fn why(&self, lane: Lane) -> Why {
        if self.done {
            return Why::Exited;
        }
        if self.states.active.has(lane) {
            return Why::Active;
        }
        if !self.setup.valid.has(lane) {
            return Why::Uncovered;
        }
        // The search goes from the innermost construct outward. If a lane was active at the start of a construct and is
        // now inactive, the construct has disabled the lane. The search examines one construct at a time. `states` are
        // the lane states in the body of this construct.
        let mut states = self.states;
        for (depth, entry) in self.stack.iter().rev().enumerate() {
            match entry {
                Entry::Branch { active, .. } => {
                    if active.has(lane) && !states.out_of_round().has(lane) {
                        return Why::Branch { depth: depth as u32 };
                    }
                }
                Entry::Loop { states: before, .. } => {
                    if before.active.has(lane) {
                        return if states.inactive_break.has(lane) {
                            Why::Break
                        } else if states.inactive_continue.has(lane) {
                            Why::Continue
                        } else {
                            Why::Branch { depth: depth as u32 }
                        };
                    }
                    states = *before;
                }
                Entry::Return { .. } => {}
            }
        }
        Why::Branch { depth: self.stack.len() as u32 }
    }

    fn stack(&self) -> Vec<StackRow> {
        let mut rows = Vec::new();
        let mut registers = self.registers;
        for entry in self.stack.iter().rev() {
            rows.push(match entry {
                Entry::Branch { active, .. } => {
                    StackRow { kind: entry.kind(), pc: None, mask: Some(*active), count: None }
                }
                Entry::Loop { states, registers: outer, .. } => {
                    let counts = |own: &LoopRegisters| own.kind != LoopKind::Dx10 || own.trip > 0;
                    let trip = registers.filter(counts).map(|own| own.trip.into());
                    registers = *outer;
                    StackRow { kind: entry.kind(), pc: None, mask: Some(states.active), count: trip }
                }
                Entry::Return { pc, calls, .. } => {
                    StackRow { kind: entry.kind(), pc: Some(*pc), mask: None, count: Some((*calls).into()) }
                }
            });
        }
        rows
    }

    fn depths(&self) -> Vec<Depth> {
        let used = self.stack_use().entries(self.subentries_an_entry());
        vec![Depth { of: "STACK_SIZE", used, room: self.setup.stack_size }]
    }
}
