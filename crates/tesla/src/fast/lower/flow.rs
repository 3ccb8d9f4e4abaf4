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
/// the same join.
pub(super) fn diamond(context: &Context, starts: &[u32], blocks: &[Block], block: &Block) -> Option<Diamond> {
    let Last::Bra { target, .. } = block.last else { return None };
    if block.fall == NONE && block.jump == NONE {
        return None;
    }
    // Returns the side that begins at an address, and the join that the side reaches.
    let side = |pc: u32, block: u32| {
        let place = context.code.place(pc)?;
        let first = blocks.get(starts[place] as usize)?;
        if first.join {
            return Some((Side { pc, block: NONE }, pc));
        }
        let at = match first.last {
            Last::Next => first.next,
            Last::Bra { target, guard } if guard.always => target,
            _ => return None,
        };
        let joins = |place: usize| blocks.get(starts[place] as usize).is_some_and(|block| block.join);
        (block != NONE && !first.exit && joins(context.code.place(at)?)).then_some((Side { pc, block }, at))
    };
    let ((taken, at), (not, other)) = (side(target, block.jump)?, side(block.next, block.fall)?);
    let size = |side: Side| blocks.get(side.block as usize).map_or(0, |block| block.size);
    (at == other).then_some(Diamond { join: at, taken, not, tried: size(taken) + size(not) + 1 })
}

/// Returns the conditional that begins with the `joinat` at the end of a block.
pub(super) fn conditional(
    context: &Context,
    starts: &[u32],
    blocks: &[Block],
    diamonds: &[Option<Diamond>],
    block: &Block,
) -> Option<Conditional> {
    let Last::Joinat { .. } = block.last else { return None };
    let Last::Bra { guard, .. } = blocks.get(block.fall as usize)?.last else { return None };
    // The join pops the JOINAT entry, whatever address the entry has.
    let diamond = diamonds[block.fall as usize]?;
    let joins = starts[context.code.place(diamond.join)?];
    let most = blocks[block.fall as usize].size + diamond.tried + 1;
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
