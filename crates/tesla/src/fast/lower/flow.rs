//! Lowers control flow. This file determines the order of blocks, and the joins at which the sides of a branch
//! reconverge.

use super::{Block, Conditional, Diamond, Last, Lower, NONE, Side, Test};
use crate::context::Context;
use crate::inst::{Control, End, Guard, Inst, Op};

/// For each block, sets the numbers of the blocks that follow the block. Between `quadon` and `quadpop`, control flow
/// is a fault. Only the token stack shows whether an instruction runs between `quadon` and `quadpop`. So if a program
/// contains `quadon` or `quadpop`, its blocks have no successors.
pub(super) fn link(context: &Context, starts: &[u32], blocks: &mut [Block]) {
    let quads = |inst: &Inst| matches!(inst.op, Op::Control(Control::Quadon | Control::Quadpop));
    if context.code.slots().flatten().any(quads) {
        return;
    }
    for number in 0..blocks.len() {
        let neighbour = |pc: u32| {
            let block = context.code.place(pc).map_or(NONE, |place| starts[place]);
            if blocks.get(block as usize).is_some_and(|block| !block.join) { block } else { NONE }
        };
        let Block { next, last, exit, .. } = blocks[number];
        let jump = match last {
            Last::Bra { target, .. } => neighbour(target),
            _ => NONE,
        };
        (blocks[number].fall, blocks[number].jump) =
            if exit { (NONE, NONE) } else { (neighbour(next), jump) };
    }
}

/// Returns the diamond of the branch at the end of a block. Returns `None` unless the two sides of the branch lead to
/// the same join. If `chains` is set, each side may be a chain of blocks. Otherwise, each side is a single block without
/// a load or store.
pub(super) fn diamond(
    context: &Context,
    starts: &[u32],
    blocks: &[Block],
    block: &Block,
    chains: bool,
) -> Option<Diamond> {
    let Last::Bra { target, .. } = block.last else { return None };
    if block.fall == NONE && block.jump == NONE {
        return None;
    }
    // Returns the side that begins at an address, the join that the side reaches, and the size of the side.
    let side = |pc: u32, block: u32| {
        let place = context.code.place(pc)?;
        if blocks.get(starts[place] as usize)?.join {
            return Some((Side { pc, block: NONE }, pc, 0));
        }
        let (mut size, mut last) = (0, block);
        for number in chain(blocks, block) {
            (size, last) = (size + blocks[number as usize].size, number);
        }
        let Block { last: end, next, exit, .. } = *blocks.get(last as usize)?;
        let at = match end {
            Last::Next => next,
            Last::Memory(_) if chains => next,
            Last::Bra { target, guard } if guard.always => target,
            _ => return None,
        };
        let joins = |place: usize| blocks.get(starts[place] as usize).is_some_and(|block| block.join);
        let is_side = !exit && (chains || last == block) && joins(context.code.place(at)?);
        is_side.then_some((Side { pc, block }, at, size))
    };
    let ((taken, at, first), (not, other, second)) =
        (side(target, block.jump)?, side(block.next, block.fall)?);
    (at == other).then_some(Diamond { join: at, taken, not, tried: first + second + 1 })
}

/// Returns a block, and the blocks that follow it until a branch, a join or another change of control flow.
pub(super) fn chain(blocks: &[Block], first: u32) -> impl Iterator<Item = u32> {
    let exists = |number: u32| blocks.get(number as usize).map(|_| number);
    std::iter::successors(exists(first), move |number| {
        let Block { last, fall, .. } = blocks[*number as usize];
        matches!(last, Last::Next | Last::Memory(_)).then_some(fall).and_then(exists)
    })
}

/// Returns the conditional that begins with the `joinat` at the end of a block. If `chains` is set, each side may be a
/// chain of blocks, with loads and stores. Otherwise, each side is a single block without a load or store.
pub(super) fn conditional(
    context: &Context,
    starts: &[u32],
    blocks: &[Block],
    block: &Block,
    chains: bool,
) -> Option<Conditional> {
    let Last::Joinat { .. } = block.last else { return None };
    let branch = blocks.get(block.fall as usize)?;
    let Last::Bra { guard, .. } = branch.last else { return None };
    // The join pops the JOINAT entry, whatever address the entry has.
    let diamond = diamond(context, starts, blocks, branch, chains)?;
    let joins = starts[context.code.place(diamond.join)?];
    let most = branch.size + diamond.tried + 1;
    Some(Conditional { branch: block.fall, guard, diamond, joins, most })
}

/// Returns, for each word, whether a new block must begin at the word. If no block must begin at a word, a jump to this
/// word goes to the middle of a block.
pub(super) fn leaders(context: &Context) -> Vec<bool> {
    let mut leaders = vec![false; context.code.words().len()];
    for (place, inst) in context.code.slots().enumerate() {
        let Some(inst) = inst else { continue };
        leaders[place] |= inst.end == End::Join;
        let Op::Control(control) = inst.op else { continue };
        if let Some(target) = control.target().and_then(|target| context.code.place(target)) {
            leaders[target] = true;
        }
    }
    leaders
}

impl Lower<'_> {
    /// Lowers control flow. Returns `None` if the reference interpreter must execute the instruction.
    pub(super) fn control(&self, control: Control, guard: Guard) -> Option<Last> {
        let guard = Test::of(guard);
        Some(match control {
            Control::Bra { target } => Last::Bra { target, guard },
            Control::Joinat { target } => Last::Joinat { target },
            Control::Breakaddr { target } => Last::Breakaddr { target },
            Control::Call { target, lim: false } => Last::Call { target },
            Control::Ret => Last::Ret { guard },
            Control::Break => Last::Break { guard },
            Control::Discard => Last::Discard { guard },
            Control::Bar { inc, wait, barrier, count } if self.context.has_barrier(barrier) => {
                Last::Bar { inc, wait, barrier, count: count.into() }
            }
            _ => return None,
        })
    }
}
