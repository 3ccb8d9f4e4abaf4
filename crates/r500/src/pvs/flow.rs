//! Flow control of the vertex unit. Descriptors direct the program counter. Descriptors are registers, and not part of
//! the code.
//!
//! There is no branch instruction. There are sixteen descriptors. A descriptor names a slot (ACT_ADRS) and acts *after*
//! the instruction in the slot:
//!
//! ```text
//!   JUMP   ACT_ADRS ──► target
//!   LOOP   ACT_ADRS ──► RTN_INST ... LAST_INST ──► RTN_INST, count times in all; then the slot after LAST_INST
//!   JSR    ACT_ADRS ──► target ... LAST_INST ──► RTN_INST
//! ```
//!
//! Flow control does not depend on the data of a vertex. So all vertices of a group follow one path. The predicate bit
//! of a vertex does not affect the flow. Loops and subroutines share one stack. Only the innermost entry of the stack
//! can end. (REG, VAP_PVS_FLOW_CNTL; docs/r500-vertex.md, section 5)
//!
//! This module does not access registers or memory.

use reconverge_simt::{Depth, Event, FlowView, Issue, Lane, Mask, Mode, Observer, StackRow, Why};
use thiserror::Error;

use super::inst::{DESCRIPTORS, SLOTS};
use super::words::FlowOp;

/// Capacity of the stack of loops and subroutines, in entries. (docs/r500-vertex.md, Q14)
pub const STACK: usize = 16;

/// A flow-control descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Descriptor {
    /// The operation.
    pub op: FlowOp,
    /// The slot after which the descriptor acts. (PVS_FC_ACT_ADRS)
    pub act: u16,
    /// Number of iterations of a LOOP, or target slot of a JUMP or JSR. (PVS_FC_LOOP_CNT_JMP_INST)
    pub count_or_target: u16,
    /// Last slot of the loop or subroutine. (PVS_FC_LAST_INST)
    pub last: u16,
    /// First slot of the body of a LOOP, or return slot of a JSR. (PVS_FC_RTN_INST)
    pub back: u16,
    /// Value of aL in the first iteration. (PVS_FC_LOOP_INIT_VAL)
    pub init: u8,
    /// Number that each iteration adds to aL. (PVS_FC_LOOP_STEP_VAL)
    pub step: i8,
    /// Whether the loop starts with the aL of the enclosing loop instead of `init`. (PVS_FC_LOOP_REPEAT_NO_FLI)
    pub repeat: bool,
}

impl Default for Descriptor {
    fn default() -> Descriptor {
        let (act, count_or_target, last, back) = (0, 0, 0, 0);
        Descriptor { op: FlowOp::NO_OP, act, count_or_target, last, back, init: 0, step: 0, repeat: false }
    }
}

/// The descriptors of a program, and the last slot of the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Control {
    descriptors: [Descriptor; DESCRIPTORS],
    /// The last slot to execute. (PVS_LAST_INST)
    last: u16,
    /// For each slot, the number of the first descriptor that acts after the slot. The element is [`DESCRIPTORS`] if no
    /// descriptor acts after the slot.
    acting: Vec<u8>,
}

impl Control {
    /// Returns the flow control of a program. `descriptors` are the program's descriptors, and `last` is the last slot
    /// of the program.
    pub fn new(descriptors: [Descriptor; DESCRIPTORS], last: u16) -> Control {
        let mut acting = vec![DESCRIPTORS as u8; SLOTS];
        for (number, descriptor) in descriptors.iter().enumerate().rev() {
            let slot = acting.get_mut(usize::from(descriptor.act));
            if let Some(slot) = slot.filter(|_| descriptor.op != FlowOp::NO_OP) {
                *slot = number as u8;
            }
        }
        Control { descriptors, last, acting }
    }

    /// Returns the descriptors.
    pub fn descriptors(&self) -> &[Descriptor; DESCRIPTORS] {
        &self.descriptors
    }

    /// Returns the last slot to execute.
    pub fn last(&self) -> u16 {
        self.last
    }

    /// Returns the first descriptor that acts after a slot, with the number of the descriptor. Returns `None` if no
    /// descriptor acts after the slot.
    pub fn acting(&self, slot: u16) -> Option<(u8, &Descriptor)> {
        let number = *self.acting.get(usize::from(slot))?;
        Some((number, self.descriptors.get(usize::from(number))?))
    }

    /// Returns whether several descriptors act after a slot.
    pub fn is_ambiguous(&self, slot: u16) -> bool {
        self.descriptors.iter().filter(|known| known.op != FlowOp::NO_OP && known.act == slot).count() > 1
    }
}

/// Flow control without a documented meaning. (Strict)
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Undefined {
    /// A loop has a count of 0, which REG does not allow. In lenient mode, the body runs once.
    #[error("flow-control descriptor {0}: a loop count of 0 is not allowed")]
    NoRounds(u8),
    /// Several descriptors act after the same slot. In lenient mode, the descriptor with the lowest number acts.
    #[error("several flow-control descriptors act after slot {0}")]
    Ambiguous(u16),
    /// The stack of loops and subroutines is full. In lenient mode, the loop or call is not entered.
    #[error("flow-control descriptor {0}: more than {STACK} loops and subroutines are open")]
    StackOverflow(u8),
}

/// An open loop or subroutine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frame {
    /// A loop.
    Loop {
        /// Number of the loop's descriptor.
        descriptor: u8,
        /// Number of remaining iterations, including the current one.
        left: i32,
        /// Value of aL outside the loop, which is restored after the loop.
        outer: i32,
    },
    /// A subroutine.
    Call {
        /// Number of the subroutine's descriptor.
        descriptor: u8,
    },
}

/// The flow state of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flow {
    pc: u16,
    done: bool,
    lanes: Mask,
    al: i32,
    stack: Vec<Frame>,
}

impl Flow {
    /// Returns the state before the instruction in slot `first`.
    pub fn new(first: u16, lanes: Mask) -> Flow {
        Flow { pc: first, done: lanes.is_empty(), lanes, al: 0, stack: Vec::new() }
    }

    /// Returns the slot of the next instruction.
    pub fn pc(&self) -> u16 {
        self.pc
    }

    /// Returns the loop index aL, or 0 outside loops. (docs/r500-vertex.md, Q15)
    pub fn al(&self) -> i32 {
        self.al
    }

    /// Returns the vertices of the group.
    pub fn lanes(&self) -> Mask {
        self.lanes
    }

    /// Returns whether the program has ended.
    pub fn is_done(&self) -> bool {
        self.done
    }

    /// Returns the open loops and subroutines, outermost first.
    pub fn frames(&self) -> &[Frame] {
        &self.stack
    }

    /// Advances past the instruction at [`Flow::pc`]. Takes at most one action. The end of the innermost loop or
    /// subroutine takes precedence over a descriptor that acts after the slot. If the group takes no action at the last
    /// slot, the program ends. (docs/r500-vertex.md, 5.3, Q2)
    ///
    /// # Errors
    /// In strict mode, returns an error if the flow control is [`Undefined`].
    pub fn advance<O: Observer>(
        &mut self,
        control: &Control,
        mode: Mode,
        observer: &mut O,
    ) -> Result<(), Undefined> {
        match self.action(control, mode, observer)? {
            Some(to) => {
                if O::ENABLED {
                    observer.event(Event::Jump { to: u32::from(to) });
                }
                self.pc = to;
            }
            None if self.pc == control.last => self.done = true,
            None => self.pc += 1,
        }
        if self.done {
            self.stack.clear();
        }
        Ok(())
    }

    /// Takes the action after the current slot and returns the target of the action. Returns `None` if there is no
    /// action. Also returns `None` if the action ends a loop. The group then continues with the next slot.
    fn action<O: Observer>(
        &mut self,
        control: &Control,
        mode: Mode,
        observer: &mut O,
    ) -> Result<Option<u16>, Undefined> {
        let pop = |kind, observer: &mut O| {
            if O::ENABLED {
                observer.event(Event::Pop { kind });
            }
        };
        match self.stack.last_mut() {
            Some(Frame::Loop { descriptor, left, outer }) => {
                let end = &control.descriptors[usize::from(*descriptor)];
                if end.last == self.pc {
                    *left -= 1;
                    if *left > 0 {
                        self.al = self.al.wrapping_add(i32::from(end.step));
                        return Ok(Some(end.back));
                    }
                    self.al = *outer;
                    self.stack.pop();
                    pop("loop", observer);
                    return Ok(None);
                }
            }
            Some(Frame::Call { descriptor }) => {
                let end = &control.descriptors[usize::from(*descriptor)];
                if end.last == self.pc {
                    self.stack.pop();
                    pop("subroutine", observer);
                    return Ok(Some(end.back));
                }
            }
            None => {}
        }
        let Some((number, descriptor)) = control.acting(self.pc) else { return Ok(None) };
        let strict = mode == Mode::Strict;
        if strict && control.is_ambiguous(self.pc) {
            return Err(Undefined::Ambiguous(self.pc));
        }
        let frame = match descriptor.op {
            FlowOp::NO_OP => return Ok(None),
            FlowOp::JUMP => return Ok(Some(descriptor.count_or_target)),
            FlowOp::LOOP => {
                let left = i32::from(descriptor.count_or_target);
                if strict && left == 0 {
                    return Err(Undefined::NoRounds(number));
                }
                Frame::Loop { descriptor: number, left, outer: self.al }
            }
            FlowOp::JSR => Frame::Call { descriptor: number },
        };
        if self.stack.len() == STACK {
            return if strict { Err(Undefined::StackOverflow(number)) } else { Ok(None) };
        }
        self.stack.push(frame);
        let (kind, to) = match frame {
            Frame::Loop { .. } => {
                if !descriptor.repeat {
                    self.al = i32::from(descriptor.init);
                }
                ("loop", descriptor.back)
            }
            Frame::Call { .. } => ("subroutine", descriptor.count_or_target),
        };
        if O::ENABLED {
            observer.event(Event::Push { kind });
            if observer.wants_depths() {
                observer.depth(0, self.stack.len() as u32);
            }
        }
        Ok(Some(to))
    }
}

impl FlowView for Flow {
    fn issue(&self) -> Option<Issue> {
        (!self.done).then(|| Issue { pc: u32::from(self.pc), mask: self.lanes })
    }

    fn why(&self, lane: Lane) -> Why {
        match (self.lanes.has(lane), self.done) {
            (false, _) => Why::Uncovered,
            (true, true) => Why::Exited,
            (true, false) => Why::Active,
        }
    }

    fn stack(&self) -> Vec<StackRow> {
        let row = |frame: &Frame| match *frame {
            Frame::Loop { descriptor, left, .. } => StackRow {
                kind: "loop",
                pc: Some(u32::from(descriptor)),
                mask: None,
                count: Some(i64::from(left)),
            },
            Frame::Call { descriptor } => {
                StackRow { kind: "subroutine", pc: Some(u32::from(descriptor)), mask: None, count: None }
            }
        };
        self.stack.iter().rev().map(row).collect()
    }

    fn depths(&self) -> Vec<Depth> {
        vec![Depth { of: "loops and subroutines", used: self.stack.len() as u32, room: Some(STACK as u32) }]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use reconverge_simt::Silent;

    fn jump(act: u16, to: u16) -> Descriptor {
        Descriptor { op: FlowOp::JUMP, act, count_or_target: to, ..Descriptor::default() }
    }

    fn repeat(act: u16, count: u16, back: u16, last: u16) -> Descriptor {
        Descriptor { op: FlowOp::LOOP, act, count_or_target: count, back, last, ..Descriptor::default() }
    }

    fn call(act: u16, to: u16, last: u16, back: u16) -> Descriptor {
        Descriptor { op: FlowOp::JSR, act, count_or_target: to, last, back, ..Descriptor::default() }
    }

    /// Runs a program with the descriptors `descriptors` from slot 0 to slot `last`. Returns the executed slots, each
    /// with the value of aL in that slot.
    fn way(descriptors: &[Descriptor], last: u16, mode: Mode) -> Result<Vec<(u16, i32)>, Undefined> {
        let mut all = [Descriptor::default(); DESCRIPTORS];
        all[..descriptors.len()].copy_from_slice(descriptors);
        let control = Control::new(all, last);
        let mut flow = Flow::new(0, Mask::first(4));
        let mut way = Vec::new();
        while !flow.is_done() && way.len() < 100 {
            way.push((flow.pc(), flow.al()));
            flow.advance(&control, mode, &mut Silent)?;
        }
        Ok(way)
    }

    fn slots(descriptors: &[Descriptor], last: u16) -> Vec<u16> {
        way(descriptors, last, Mode::Strict).unwrap().into_iter().map(|(slot, _)| slot).collect()
    }

    /// REG: the instruction at PVS_LAST_INST is executed.
    #[test]
    fn a_program_ends_behind_its_last_slot() {
        assert_eq!(slots(&[], 2), [0, 1, 2]);
    }

    /// REG: ACT_ADRS is the last instruction before the jump.
    #[test]
    fn a_jump_acts_behind_its_instruction() {
        assert_eq!(slots(&[jump(1, 4)], 5), [0, 1, 4, 5]);
        assert_eq!(slots(&[jump(5, 3), jump(1, 5)], 3), [0, 1, 5, 3]);
    }

    #[test]
    fn a_loop_runs_its_body_as_often_as_it_says() {
        assert_eq!(slots(&[repeat(0, 3, 1, 2)], 3), [0, 1, 2, 1, 2, 1, 2, 3]);
        assert_eq!(slots(&[repeat(0, 2, 1, 1)], 2), [0, 1, 1, 2]);
    }

    /// REG, LOOP_INIT_VAL, LOOP_STEP_VAL, REPEAT_NO_FLI; docs/r500-vertex.md 5.4.
    #[test]
    fn al_starts_steps_and_returns_to_the_loop_around() {
        let outer = Descriptor { init: 10, step: -3, ..repeat(0, 2, 1, 4) };
        let inner = Descriptor { init: 100, step: 7, ..repeat(1, 2, 2, 3) };
        let al = |inner| {
            way(&[outer, inner], 5, Mode::Strict).unwrap().into_iter().map(|(_, al)| al).collect::<Vec<_>>()
        };
        assert_eq!(al(inner), [0, 10, 100, 100, 107, 107, 10, 7, 100, 100, 107, 107, 7, 0]);
        let rep = Descriptor { repeat: true, ..inner };
        assert_eq!(al(rep), [0, 10, 10, 10, 17, 17, 10, 7, 7, 7, 14, 14, 7, 0]);
    }

    #[test]
    fn a_subroutine_returns_to_rtn_inst() {
        // The subroutine is in slots after the last slot of the program.
        assert_eq!(slots(&[call(0, 5, 6, 1), call(2, 5, 6, 3)], 3), [0, 5, 6, 1, 2, 5, 6, 3]);
    }

    /// According to docs/r500-vertex.md (Q14), loops and subroutines share one stack.
    #[test]
    fn loops_and_subroutines_share_a_stack() {
        // A call in a loop, and a loop in the subroutine.
        let descriptors = [repeat(0, 2, 1, 2), call(1, 5, 7, 2), repeat(5, 2, 6, 6)];
        assert_eq!(slots(&descriptors, 3), [0, 1, 5, 6, 6, 7, 2, 1, 5, 6, 6, 7, 2, 3]);
    }

    /// docs/r500-vertex.md, Q2: a loop or subroutine that ends at PVS_LAST_INST runs to completion.
    #[test]
    fn flow_actions_win_over_the_last_slot() {
        assert_eq!(slots(&[repeat(0, 2, 1, 2)], 2), [0, 1, 2, 1, 2]);
        assert_eq!(slots(&[call(0, 3, 4, 1), jump(1, 4)], 4), [0, 3, 4, 1, 4]);
    }

    #[test]
    fn the_view_shows_descriptors_and_the_stack_innermost_first() {
        let mut all = [Descriptor::default(); DESCRIPTORS];
        (all[0], all[1]) = (repeat(0, 3, 1, 2), call(1, 5, 7, 2));
        let control = Control::new(all, 3);
        assert_eq!(control.descriptors(), &all);
        let mut flow = Flow::new(0, Mask::first(4));
        for _ in 0..2 {
            flow.advance(&control, Mode::Strict, &mut Silent).unwrap();
        }
        let rows: Vec<_> =
            flow.stack().into_iter().map(|row| (row.kind, row.pc, row.mask, row.count)).collect();
        // The loop has three remaining iterations, including the current one.
        assert_eq!(rows, [("subroutine", Some(1), None, None), ("loop", Some(0), None, Some(3))]);
        let depths: Vec<_> = flow.depths().iter().map(|depth| (depth.used, depth.room)).collect();
        assert_eq!(depths, [(2, Some(STACK as u32))]);
    }

    #[test]
    fn what_has_no_meaning_traps_and_has_a_lenient_reading() {
        let none = [repeat(0, 0, 1, 1)];
        assert_eq!(way(&none, 2, Mode::Strict), Err(Undefined::NoRounds(0)));
        assert_eq!(way(&none, 2, Mode::Lenient).unwrap().len(), 3);
        let twice = [jump(0, 2), jump(0, 1)];
        assert_eq!(way(&twice, 2, Mode::Strict), Err(Undefined::Ambiguous(0)));
        assert_eq!(way(&twice, 2, Mode::Lenient).unwrap().len(), 2);
        // A subroutine that calls itself.
        let deep = [call(0, 0, 1, 1)];
        assert_eq!(way(&deep, 1, Mode::Strict), Err(Undefined::StackOverflow(0)));
        assert_eq!(way(&deep, 5, Mode::Lenient).unwrap().iter().filter(|(slot, _)| *slot == 0).count(), 17);
    }
}
