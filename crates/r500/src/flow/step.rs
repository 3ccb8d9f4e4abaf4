//! Flow instructions, prepared once for all engines.

use reconverge_simt::Mask;

use super::{InLoop, LoopConstant, jumps, reads_alu_result};
use crate::inst::Fc;
use crate::words::{CmnInst, FcAddr, FcInst, FcMode};

/// A flow instruction with all that its program decides about it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// Word 2 of the instruction.
    pub inst: FcInst,
    /// The slot that it jumps to, absolute, unless it returns.
    pub target: u16,
    /// The predicate bit that JUMP_FUNC looks at, if any, and whether it is inverted.
    pub predicate: Option<(usize, bool)>,
    /// The lanes that want to jump, all or none, for each ALU result * 2 + predicate.
    pub wants: [u64; 4],
    /// The integer constant that INT_ADDR names.
    pub constant: LoopConstant,
    /// What it is where a loop takes one of its usual steps.
    pub(crate) in_loop: Option<InLoop>,
}

impl Step {
    /// An instruction in a program with these boolean and integer constants, this US_CODE_OFFSET and flow-control mode.
    pub fn new(
        common: &CmnInst,
        fc: &Fc,
        (bools, ints): (u32, &[LoopConstant]),
        offset: u16,
        mode: FcMode,
    ) -> Step {
        let Fc { inst, addr } = *fc;
        let boolean = bools >> addr.bool_addr & 1 != 0;
        let wants =
            [0, 1, 2, 3].map(|index| match jumps(inst.jump_func, index & 2 != 0, index & 1 != 0, boolean) {
                true => u64::MAX,
                false => 0,
            });
        // One predicate only; RGBA is forbidden and read as red in lenient mode.
        let (predicate, constant) = (common.predicate(0), ints[usize::from(addr.int_addr)]);
        let target = target(&addr, offset);
        let in_loop = InLoop::of(&inst, target, constant, mode);
        Step { inst, target, predicate, wants, constant, in_loop }
    }

    /// The lanes that want to jump, of the ALU result and the predicate bits.
    #[inline(always)]
    pub fn want(&self, alu_result: Mask, predicate: &[Mask; 4]) -> Mask {
        let Step { wants, predicate: select, .. } = self;
        let holding = match *select {
            None => u64::MAX,
            Some((bit, false)) => predicate[bit & 3].0,
            Some((bit, true)) => !predicate[bit & 3].0,
        };
        let result = alu_result.0;
        Mask(
            wants[0] & !result & !holding
                | wants[1] & !result & holding
                | wants[2] & result & !holding
                | wants[3] & result & holding,
        )
    }

    /// Whether the ALU result must be valid.
    #[inline(always)]
    pub fn reads_alu_result(&self) -> bool {
        reads_alu_result(self.inst.jump_func)
    }
}

/// The slot that an instruction jumps to, absolute, unless it returns. `offset`: US_CODE_OFFSET.
pub const fn target(addr: &FcAddr, offset: u16) -> u16 {
    addr.jump_addr + if addr.jump_global { 0 } else { offset }
}
