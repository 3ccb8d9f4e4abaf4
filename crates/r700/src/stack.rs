//! How much stack a program can need, found from its control flow without running it.
//!
//! Every path is followed, whatever its conditions: the result is the STACK_SIZE that is enough for any input. The costs
//! are those of [`StackUse`] (MAN p. 51).

use std::collections::HashSet;

use crate::code::{CfOp, Code, always_returns};
use crate::flow::{AluForm, Control, Cost, StackUse};
use crate::words::CfInst;

/// What is known of a stack entry without running the program.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Place {
    cost: Cost,
    /// The address to which a RETURN goes.
    return_to: u32,
}

/// A place in the program with the stack there.
type At = (u32, Vec<Place>);

/// The most entries a stack is followed to: what the eight bits of STACK_SIZE can declare, in the smallest subentries.
const DEEPEST: usize = 255 * 8;

/// The most that the search visits: addresses with a stack, and the entries of these stacks. Compiled programs have about
/// as many as instructions.
const EFFORT: usize = 1 << 20;

/// The most stack that the program can need when it begins at `start`; `None` where there is no bound or the search is too
/// long. A path ends where it would trap.
///
/// What a fetch program pushes is not included, its call is.
pub fn stack_needed(code: &Code, start: u32) -> Option<StackUse> {
    let mut search = Search { code, open: vec![(start, Vec::new())], most: StackUse::default() };
    let mut seen = HashSet::new();
    let mut effort = 0;
    while let Some(at) = search.open.pop() {
        if seen.insert(at.clone()) {
            effort += 1 + at.1.len();
            if effort > EFFORT || at.1.len() > DEEPEST {
                return None;
            }
            search.follow(at);
        }
    }
    Some(search.most)
}

struct Search<'a> {
    code: &'a Code,
    open: Vec<At>,
    most: StackUse,
}

impl Search<'_> {
    /// Adds the places that can follow the instruction at `pc`; `None` where it traps.
    fn follow(&mut self, (pc, mut stack): At) -> Option<()> {
        let cf = self.code.cf(pc).ok()?;
        let mut next = Vec::new();
        match &cf.op {
            CfOp::Alu(clause) => {
                match clause.form {
                    AluForm::ALU_PUSH_BEFORE => self.push(&mut stack, branch(clause.whole_quad_mode)),
                    AluForm::ALU_POP_AFTER => pop(&mut stack, 1)?,
                    AluForm::ALU_POP2_AFTER => pop(&mut stack, 2)?,
                    AluForm::ALU | AluForm::ALU_CONTINUE | AluForm::ALU_BREAK | AluForm::ALU_ELSE_AFTER => {}
                }
                next.push((pc + 1, stack));
            }
            CfOp::Fetch(..) | CfOp::Export(..) | CfOp::Memory(..) => next.push((pc + 1, stack)),
            CfOp::Control(inst, control) => {
                // One of its ways may trap: the places found before count.
                let _ = self.control(*inst, control, pc, stack, &mut next);
            }
        }
        if !cf.end_of_program {
            self.open.append(&mut next);
        }
        Some(())
    }

    /// Adds the places that can follow a control-flow instruction to `next`; `None` when some way traps.
    fn control(
        &mut self,
        inst: CfInst,
        control: &Control,
        pc: u32,
        mut stack: Vec<Place>,
        next: &mut Vec<At>,
    ) -> Option<()> {
        let jump = control.addr;
        let branch = branch(control.whole_quad_mode);
        match inst {
            CfInst::JUMP | CfInst::ELSE => {
                next.push((pc + 1, stack.clone()));
                pop(&mut stack, control.pop_count)?;
                next.push((jump, stack));
            }
            CfInst::PUSH => {
                let mut jumped = stack.clone();
                self.push(&mut stack, branch);
                next.push((pc + 1, stack));
                pop(&mut jumped, control.pop_count)?;
                next.push((jump, jumped));
            }
            CfInst::POP_PUSH => {
                pop(&mut stack, control.pop_count)?;
                next.push((jump, stack.clone()));
                self.push(&mut stack, branch);
                next.push((pc + 1, stack));
            }
            CfInst::PUSH_ELSE | CfInst::POP_PUSH_ELSE => {
                if inst == CfInst::POP_PUSH_ELSE {
                    pop(&mut stack, control.pop_count)?;
                }
                self.push(&mut stack, branch);
                next.extend([(pc + 1, stack.clone()), (jump, stack)]);
            }
            CfInst::POP => {
                pop(&mut stack, control.pop_count)?;
                next.push((pc + 1, stack));
            }
            CfInst::POP_JUMP => {
                pop(&mut stack, control.pop_count)?;
                next.extend([(pc + 1, stack.clone()), (jump, stack)]);
            }
            CfInst::LOOP_START | CfInst::LOOP_START_NO_AL | CfInst::LOOP_START_DX10 => {
                let mut skipped = stack.clone();
                self.push(&mut stack, Place { cost: Cost::Loop, return_to: 0 });
                next.push((pc + 1, stack));
                pop(&mut skipped, control.pop_count)?;
                next.push((jump, skipped));
            }
            CfInst::LOOP_END => {
                stack.last().filter(|place| place.cost == Cost::Loop)?;
                next.push((jump, stack.clone()));
                stack.pop();
                next.push((pc + 1, stack));
            }
            CfInst::LOOP_BREAK | CfInst::LOOP_CONTINUE => {
                next.push((pc + 1, stack.clone()));
                let top = stack.iter().rposition(|place| !is_branch(place))?;
                (stack[top].cost == Cost::Loop).then_some(())?;
                stack.truncate(top + 1);
                next.push((jump, stack));
            }
            CfInst::CALL => {
                next.push((pc + 1, stack.clone()));
                self.push(&mut stack, Place { cost: Cost::Call, return_to: pc + 1 });
                next.push((jump, stack));
            }
            CfInst::CALL_FS => {
                self.push(&mut stack, Place { cost: Cost::Call, return_to: 0 });
                stack.pop();
                next.push((pc + 1, stack));
            }
            CfInst::RETURN => {
                if !always_returns(control) {
                    next.push((pc + 1, stack.clone()));
                }
                let back = stack.pop().filter(|place| place.cost == Cost::Call)?;
                next.push((back.return_to, stack));
            }
            CfInst::KILL => next.extend([(pc + 1, stack.clone()), (jump, stack)]),
            CfInst::NOP
            | CfInst::TEX
            | CfInst::VTX
            | CfInst::VTX_TC
            | CfInst::EMIT_VERTEX
            | CfInst::EMIT_CUT_VERTEX
            | CfInst::CUT_VERTEX
            | CfInst::END_PROGRAM
            | CfInst::WAIT_ACK
            | CfInst::TEX_ACK
            | CfInst::VTX_ACK
            | CfInst::VTX_TC_ACK => next.push((pc + 1, stack)),
        }
        Some(())
    }

    fn push(&mut self, stack: &mut Vec<Place>, place: Place) {
        stack.push(place);
        let width = self.code.chip().wave_width;
        let used = StackUse::of(stack.iter().map(|place| place.cost), width);
        let size = |used: StackUse| used.full * StackUse::subentries_an_entry(width) + used.sub;
        if size(used) > size(self.most) {
            self.most = used;
        }
    }
}

fn branch(whole_quad_mode: bool) -> Place {
    Place { cost: if whole_quad_mode { Cost::WholeQuadPush } else { Cost::Push }, return_to: 0 }
}

fn is_branch(place: &Place) -> bool {
    matches!(place.cost, Cost::Push | Cost::WholeQuadPush)
}

/// Pops branch entries; `None` where there are not as many.
fn pop(stack: &mut Vec<Place>, count: u8) -> Option<()> {
    for _ in 0..count {
        stack.pop().filter(is_branch)?;
    }
    Some(())
}
