//! How much stack a program can need, found from its control flow without running it.
//!
//! Every path is followed, whatever its conditions: the result is the STACK_SIZE that is enough for any input. The costs
//! are those of [`StackUse`] (MAN p. 51).

use std::collections::HashSet;

use crate::code::Code;
use crate::flow::{Cost, StackUse};
use crate::graph::{Effect, Way, effects};

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
    /// Adds the places that can follow the instruction at `pc`. A way that traps has none.
    fn follow(&mut self, (pc, stack): At) {
        let Ok(cf) = self.code.cf(pc) else { return };
        for way in effects(cf, pc) {
            let mut stack = stack.clone();
            let behind = self.take(&way, pc, &mut stack);
            if let Some(to) = behind.filter(|_| !cf.end_of_program) {
                self.open.push((to, stack));
            }
        }
    }

    /// Does to the stack what a way does, and gives where it leads; `None` where it traps.
    fn take(&mut self, way: &Way, pc: u32, stack: &mut Vec<Place>) -> Option<u32> {
        let mut to = way.to;
        for effect in &way.effects {
            match *effect {
                Effect::Push(cost) => self.push(stack, Place { cost, return_to: 0 }),
                Effect::Pop(count) => {
                    (0..count).try_for_each(|_| stack.pop().filter(is_branch).map(|_| ()))?;
                }
                Effect::InLoop => drop(innermost_loop(stack)?),
                Effect::Unwind => stack.truncate(innermost_loop(stack)? + 1),
                Effect::LoopOnTop => drop(stack.last().filter(|place| place.cost == Cost::Loop)?),
                Effect::EndLoop => drop(stack.pop().filter(|place| place.cost == Cost::Loop)?),
                Effect::Call(_) => self.push(stack, Place { cost: Cost::Call, return_to: pc + 1 }),
                Effect::Return => {
                    let call = stack.pop().filter(|place| place.cost == Cost::Call)?;
                    to = to.or(Some(call.return_to));
                }
            }
        }
        to
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

fn is_branch(place: &Place) -> bool {
    matches!(place.cost, Cost::Push | Cost::WholeQuadPush)
}

/// The place on the stack of the innermost loop, if it began in this subroutine.
fn innermost_loop(stack: &[Place]) -> Option<usize> {
    let top = stack.iter().rposition(|place| !is_branch(place))?;
    (stack[top].cost == Cost::Loop).then_some(top)
}
