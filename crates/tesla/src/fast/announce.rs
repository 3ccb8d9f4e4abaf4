//! Reports blocks, and the branches after blocks, to the observer.

use std::ops::Range;

use reconverge_simt::{Event, Mask, Observer};

use super::lower::{Inside, Last, Lowered, Side};
use crate::flow::{TokenType, announce_arrival, announce_division};

/// The events at a block that [`together`] reports in one call.
#[derive(Clone, Copy)]
pub(super) enum Key {
    /// The instructions of the block.
    Block,
    /// Both sides of a branch after the block.
    Divides,
    /// All lanes take the branch after the block. The events are those of the side of these lanes.
    Jumps,
    /// No lane takes the branch after the block. The events are those of the side after the branch.
    Falls,
}

impl Key {
    #[inline(always)]
    pub(super) fn of(self, block: u32) -> u32 {
        4 * block + self as u32
    }
}

impl Lowered {
    /// Reports all instructions of a block to the observer.
    pub(super) fn announce_block<O: Observer>(&self, number: u32, lanes: Mask, observer: &mut O) {
        let size = self.blocks[number as usize].size;
        announce_issues(observer, &self.inside[number as usize], 0..size, lanes);
    }

    /// Reports the instructions of one side of a branch, up to the join.
    pub(super) fn announce_side<O: Observer>(&self, side: Side, lanes: u32, observer: &mut O) {
        let Some(block) = self.blocks.get(side.block as usize) else { return };
        self.announce_block(side.block, Mask(lanes.into()), observer);
        if let Last::Bra { target, .. } = block.last {
            observer.event(Event::Jump { to: target });
        }
    }

    /// Reports the sides of a branch in the order in which the sides run. Each side has the set of its lanes.
    pub(super) fn announce_sides<O: Observer>(&self, sides: [(Side, u32); 2], observer: &mut O) {
        let [(first, goes), (second, waits)] = sides;
        let lanes = [goes, waits].map(|side| Mask(side.into()));
        announce_division(observer, first.pc, lanes[0], lanes[1]);
        self.announce_side(first, goes, observer);
        announce_arrival(observer, TokenType::Branch, second.pc, lanes[0], lanes[1]);
        self.announce_side(second, waits, observer);
    }
}

/// Reports some instructions of a block to the observer.
#[inline(always)]
pub(super) fn announce_issues<O: Observer>(observer: &mut O, inside: &Inside, some: Range<u32>, mask: Mask) {
    if O::ENABLED {
        observer.issues(&inside.addresses[some.start as usize..some.end as usize], mask);
    }
}
