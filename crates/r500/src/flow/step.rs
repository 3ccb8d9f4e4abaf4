//! Flow instructions, prepared once for all engines.

use reconverge_simt::Mask;

use super::{InLoop, LoopConstant, jumps, reads_alu_result};
use crate::inst::Fc;
use crate::words::{CmnInst, FcAddr, FcInst, FcMode};

/// A flow instruction with the values that its program determines.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// Word 2 of the instruction.
    pub inst: FcInst,
    /// Absolute slot of the jump target, unless the instruction returns.
    pub target: u16,
    /// The predicate bit that JUMP_FUNC reads, if any, and whether it is inverted.
    pub predicate: Option<(usize, bool)>,
    /// Masks of the lanes that vote to jump (all or none), indexed by ALU result * 2 + predicate.
    pub wants: [u64; 4],
    /// The integer constant that INT_ADDR names.
    pub constant: LoopConstant,
    /// Data for the short path of a loop step, if the instruction has one.
    pub(crate) in_loop: Option<InLoop>,
}

impl Step {
    /// Prepares an instruction of a program with these boolean and integer constants, this US_CODE_OFFSET and this
    /// flow-control mode.
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
        // An FC instruction has one predicate. RGBA is forbidden; lenient mode uses the red bit.
        let (predicate, constant) = (common.predicate(0), ints[usize::from(addr.int_addr)]);
        let target = target(&addr, offset);
        let in_loop = InLoop::of(&inst, target, constant, mode);
        Step { inst, target, predicate, wants, constant, in_loop }
    }

    /// Returns the lanes that vote to jump, given the ALU result and the predicate bits.
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

    /// Returns whether the instruction reads the ALU result, which must then be valid.
    #[inline(always)]
    pub fn reads_alu_result(&self) -> bool {
        reads_alu_result(self.inst.jump_func)
    }
}

/// Returns the absolute slot of the jump target, for an instruction that does not return. `offset` is US_CODE_OFFSET.
pub const fn target(addr: &FcAddr, offset: u16) -> u16 {
    addr.jump_addr + if addr.jump_global { 0 } else { offset }
}
