//! Operands of control flow and of `pmevent`. (9)

use reconverge_isa::row::{Number, Style, Words, at};

use super::*;

pub(crate) const LIM: P = flag!("lim", 38, |draft, value| draft.lim = value != 0);
pub(crate) const BAR_INC: P = flag!("inc", 25, |draft, value| draft.barrier[0] = value != 0);
pub(crate) const BAR_WAIT: P = flag!("wait", 26, |draft, value| draft.barrier[1] = value != 0);

pub(crate) const TARGET: P =
    number!("target", at(11, 16).and(46, 6), Style::Code(2), |draft, address| draft.target = address);

pub(crate) const BAR: P = number!("barrier", at(21, 4), Style::Hex, |draft, n| draft.numbers[0] = n);

pub(crate) const BARMASK: P =
    number!("count of warps", at(9, 12), Style::Hex, |draft, n| draft.numbers[1] = n);

pub(crate) const PM: P = number!("event", at(10, 4), Style::Hex, |draft, n| draft.numbers[0] = n);
