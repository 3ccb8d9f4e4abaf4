//! Flow instructions, prepared once per program for all engines.

use reconverge_simt::Mask;

use super::{InLoop, LoopConstant, jumps, reads_alu_result};
use crate::inst::Fc;
use crate::words::{CmnInst, FcAddr, FcInst, FcMode};

/// A flow instruction together with all values that depend only on the program.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// Word 2 of the instruction.
    pub inst: FcInst,
    /// Absolute slot of the jump target. A return does not use the target.
    pub target: u16,
    /// The predicate bit that JUMP_FUNC reads, and whether the bit is inverted. `None` if JUMP_FUNC does not read a
    /// predicate bit.
    pub predicate: Option<(usize, bool)>,
    /// The vote for each value of the condition, indexed by ALU result * 2 + predicate. In each element, all bits are
    /// set if the vote is to jump. Otherwise, no bit is set.
    pub wants: [u64; 4],
    /// The integer constant that INT_ADDR selects.
    pub constant: LoopConstant,
    /// Data for the fast path of a loop instruction, if the instruction has a fast path.
    pub(crate) in_loop: Option<InLoop>,
}

impl Step {
    /// Prepares an instruction of a program. The arguments are the program's boolean constants, integer constants,
    /// US_CODE_OFFSET (`offset`) and flow-control mode.
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
        // An FC instruction has one predicate bit. The selector RGBA stands for four bits and is forbidden. In lenient
        // mode, the selector RGBA selects the red bit.
        let (predicate, constant) = (common.predicate(0), ints[usize::from(addr.int_addr)]);
        let target = target(&addr, offset);
        let in_loop = InLoop::of(&inst, target, constant, mode);
        Step { inst, target, predicate, wants, constant, in_loop }
    }

    /// Computes the lanes that vote to jump from the ALU result and the predicate bits.
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

    /// Returns whether the vote depends on the ALU result. If the vote depends on the ALU result, the ALU result must
    /// be valid.
    #[inline(always)]
    pub fn reads_alu_result(&self) -> bool {
        reads_alu_result(self.inst.jump_func)
    }
}

/// Returns the absolute slot of a jump target. The instruction must not be a return. `offset` is US_CODE_OFFSET.
pub const fn target(addr: &FcAddr, offset: u16) -> u16 {
    addr.jump_addr + if addr.jump_global { 0 } else { offset }
}
