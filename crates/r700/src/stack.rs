//! Computes the maximum stack size that a program can need. The computation uses the control flow of the program and
//! does not run the program.
//!
//! The search follows every path, whatever the conditions on the path are. So the resulting STACK_SIZE is sufficient
//! for any input. [`StackUse`] defines the costs of entries (MAN p. 51).

use std::collections::HashSet;

use crate::code::{CfOp, Code};
use crate::flow::{Cost, FlowSetup, StackUse};
use crate::graph::{Effect, Way, effects};
use crate::words::CfInst;

/// A stack entry, without the data that depends on the lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct StackEntry {
    pub(crate) cost: Cost,
    /// Return address of a call, or first instruction of a loop body.
    pub(crate) to: u32,
    /// Whether the entry is a loop with an index.
    pub(crate) indexed: bool,
    /// CALL_COUNT of a call.
    calls: u8,
}

impl StackEntry {
    /// Entry for a call from another program. If other programs call a program, this entry is on the stack when the
    /// program starts.
    pub(crate) const CALLER: StackEntry =
        StackEntry { cost: Cost::Call, to: u32::MAX, indexed: false, calls: 0 };

    pub(crate) fn is_branch(&self) -> bool {
        matches!(self.cost, Cost::Push | Cost::WholeQuadPush)
    }

    pub(crate) fn is_loop(&self) -> bool {
        self.cost == Cost::Loop
    }

    pub(crate) fn is_call(&self) -> bool {
        self.cost == Cost::Call
    }
}

/// Address of an instruction, with the stack before this instruction.
type At = (u32, Vec<StackEntry>);

/// An event of the search.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Met<'a> {
    /// An instruction, with the stack before this instruction.
    Instruction(&'a [StackEntry]),
    /// An effect that is not possible with this stack. The path ends at the instruction with this effect.
    Fault(Effect, &'a [StackEntry]),
    /// The end of the program, with the stack after its last instruction.
    End(&'a [StackEntry]),
}

/// Reason why the search has not followed all paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unfinished {
    /// The stack grows past the size that STACK_SIZE can declare.
    Deep,
    /// There are too many paths.
    Long,
}

/// Maximum effort of the search. The search visits pairs of an address and a stack. The effort is the number of these
/// pairs plus the number of entries in the stacks. For a compiled program, the effort is about the number of
/// instructions.
const EFFORT: usize = 1 << 22;

/// Returns the largest stack that a program can need if the program begins at `start`. If the stack has no bound, or if
/// the search takes too long, the function returns `None`. If an instruction would trap, the path ends at this
/// instruction.
///
/// The result includes the entry of a call to a fetch program. The result does not include the entries that the fetch
/// program pushes.
pub fn stack_needed(code: &Code, start: u32) -> Option<StackUse> {
    walk(code, start, Vec::new(), &mut |_, _| {}).ok().map(|(needed, _)| needed)
}

/// Follows every path from `start`. `stack` is the stack at `start`. Returns the largest stack that a path needs, and
/// the instruction that pushes the last entry of the largest stack. For each instruction, the function calls `watch`
/// once for each stack that can exist before the instruction.
pub(crate) fn walk(
    code: &Code,
    start: u32,
    stack: Vec<StackEntry>,
    watch: &mut dyn FnMut(u32, Met<'_>),
) -> Result<(StackUse, u32), Unfinished> {
    let mut search = Search { code, open: vec![(start, stack)], most: StackUse::default(), most_at: start };
    let subentries = FlowSetup::MOST_STACK * StackUse::subentries_an_entry(code.chip().wave_width);
    let deepest = subentries as usize;
    let mut seen = HashSet::new();
    let mut effort = 0;
    while let Some(at) = search.open.pop() {
        if seen.insert(at.clone()) {
            effort += 1 + at.1.len();
            if at.1.len() > deepest {
                return Err(Unfinished::Deep);
            }
            if effort > EFFORT {
                return Err(Unfinished::Long);
            }
            search.follow(at, watch);
        }
    }
    Ok((search.most, search.most_at))
}

struct Search<'a> {
    code: &'a Code,
    open: Vec<At>,
    most: StackUse,
    /// Instruction that pushes the last entry of the largest stack.
    most_at: u32,
}

impl Search<'_> {
    /// Adds the addresses that can follow the instruction at `pc` to the list of addresses that the search must visit.
    fn follow(&mut self, (pc, stack): At, watch: &mut dyn FnMut(u32, Met<'_>)) {
        let Ok(cf) = self.code.cf(pc) else { return };
        watch(pc, Met::Instruction(&stack));
        let indexed = matches!(cf.op, CfOp::Control(CfInst::LOOP_START, _));
        for (number, way) in effects(cf, pc).iter().enumerate() {
            // If the program ends after this instruction, all edges have the same effects. So the function reports only
            // the effects of the first edge.
            let said = number == 0 || !cf.end_of_program;
            let mut behind = stack.clone();
            match self.take(way, pc, indexed, &mut behind) {
                Ok(Some(to)) if !cf.end_of_program => self.open.push((to, behind)),
                Ok(Some(_)) if said => watch(pc, Met::End(&behind)),
                Err(effect) if said => watch(pc, Met::Fault(effect, &behind)),
                Ok(_) | Err(_) => {}
            }
        }
    }

    /// Applies the effects of an edge to the stack. Returns the target of the edge. Returns `None` if the edge is a
    /// call that exceeds the maximum depth. The wavefront skips such a call.
    fn take(
        &mut self,
        way: &Way,
        pc: u32,
        indexed: bool,
        stack: &mut Vec<StackEntry>,
    ) -> Result<Option<u32>, Effect> {
        let mut to = way.to;
        for effect in &way.effects {
            let fault = Err(*effect);
            match *effect {
                Effect::Push(cost) => {
                    let to = if cost == Cost::Loop { pc + 1 } else { 0 };
                    self.push(pc, stack, StackEntry { cost, to, indexed, calls: 0 });
                }
                Effect::Pop(count) => {
                    for _ in 0..count {
                        if !stack.last().is_some_and(StackEntry::is_branch) {
                            return fault;
                        }
                        stack.pop();
                    }
                }
                Effect::InLoop if innermost_loop(stack).is_none() => return fault,
                Effect::InLoop => {}
                Effect::Unwind => match innermost_loop(stack) {
                    Some(place) => stack.truncate(place + 1),
                    None => return fault,
                },
                Effect::LoopOnTop | Effect::EndLoop if !stack.last().is_some_and(StackEntry::is_loop) => {
                    return fault;
                }
                Effect::LoopOnTop => {}
                Effect::EndLoop => drop(stack.pop()),
                Effect::Call(calls) => {
                    let depth: u32 = stack.iter().map(|place| u32::from(place.calls)).sum();
                    if depth + u32::from(calls) > FlowSetup::CALL_LIMIT {
                        return Ok(None);
                    }
                    self.push(pc, stack, StackEntry { cost: Cost::Call, to: pc + 1, indexed: false, calls });
                }
                Effect::Return => match stack.pop_if(|place| place.is_call()) {
                    Some(call) => to = to.or((call != StackEntry::CALLER).then_some(call.to)),
                    None => return fault,
                },
            }
        }
        Ok(to)
    }

    fn push(&mut self, pc: u32, stack: &mut Vec<StackEntry>, place: StackEntry) {
        stack.push(place);
        let width = self.code.chip().wave_width;
        let used = StackUse::of(stack.iter().map(|place| place.cost), width);
        let size = |used: StackUse| used.full * StackUse::subentries_an_entry(width) + used.sub;
        if size(used) > size(self.most) {
            (self.most, self.most_at) = (used, pc);
        }
    }
}

/// Returns the index of the innermost loop on the stack. If no loop began in this subroutine, the function returns
/// `None`.
pub(crate) fn innermost_loop(stack: &[StackEntry]) -> Option<usize> {
    let top = stack.iter().rposition(|place| !place.is_branch())?;
    stack[top].is_loop().then_some(top)
}
