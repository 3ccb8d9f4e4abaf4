//! Blocks: sequences of arithmetic instructions and texture fetches that cannot trap. A flow instruction may end a
//! block.

use std::mem::take;
use std::ops::{Range, RangeInclusive};

use super::Lowering;
use super::operands::Instruction;
use crate::inst::{Alu, Body, CONSTANTS, Inst, SLOTS, Source, TEMPORARIES};
use crate::operations::used_sources;
use crate::words::{CmnInst, InstType, TexOp};

/// The instruction at the end of a block, after the operations.
#[derive(Clone, Copy, Debug)]
pub(in crate::fast) enum Last {
    /// The block ends with an ordinary instruction. Another block follows this block, or the program ends.
    Next,
    /// The reference interpreter executes the next instruction. That instruction is not part of the block.
    Reference,
    /// The block ends with a flow instruction. The value is the index of the flow instruction in
    /// [`Lowered::flows`](super::Lowered::flows).
    Flow(u32),
}

/// Instructions that run as a unit.
#[derive(Clone, Debug)]
pub(in crate::fast) struct Block {
    /// Index of the first operation of the block.
    pub(in crate::fast) start: u32,
    /// End of the range of the block's operations.
    pub(in crate::fast) end: u32,
    /// Slot of the first instruction.
    pub(in crate::fast) first: u16,
    /// Number of instructions, including a flow instruction at the end.
    pub(in crate::fast) size: u16,
    /// The values of aL for which no relative address traps, or `None` if no address is relative.
    pub(in crate::fast) al: Option<RangeInclusive<i32>>,
    /// For a block with operations that may bail out: the end of the range of these operations. A block with operations
    /// that may bail out has only one instruction. If an operation bails out, no state has changed. The reference
    /// interpreter then executes the instruction.
    pub(in crate::fast) split: Option<u32>,
    /// Whether the block contains a TEXKILL.
    pub(in crate::fast) kills: bool,
    /// Whether the block also writes lanes that are not active.
    pub(in crate::fast) inactive: bool,
    /// Whether the program ends after the block.
    pub(in crate::fast) ends: bool,
    pub(in crate::fast) last: Last,
    /// The block that begins at the slot after this block. [`NONE`] if no block begins at that slot.
    pub(in crate::fast) fall: u32,
    /// The block that begins at the target of the flow instruction. [`NONE`] if no block begins at the target.
    pub(in crate::fast) jump: u32,
}

impl Block {
    /// Returns the slots of the block's instructions.
    pub(in crate::fast) fn slots(&self) -> Range<usize> {
        let first = usize::from(self.first);
        first..first + usize::from(self.size)
    }
}

/// The position of a slot: the block that contains the slot, and the index of the slot's instruction in the block.
#[derive(Clone, Copy, Debug)]
pub(in crate::fast) struct Entry {
    /// Number of the block, or [`NONE`] if the slot does not have an instruction.
    pub(in crate::fast) block: u32,
    /// Index of the instruction in the block.
    pub(in crate::fast) inside: u16,
}

/// The number that stands for no block.
pub(in crate::fast) const NONE: u32 = u32::MAX;

impl<'a> Lowering<'a> {
    pub(super) fn program(&mut self) {
        let starts = self.starts();
        let mut open: Option<Block> = None;
        for slot in 0..SLOTS as u16 {
            let executable = self.executable(slot);
            let alone = executable.is_some_and(|inst| self.may_refuse(inst));
            if starts[usize::from(slot)] || alone {
                self.close(&mut open, Last::Next);
            }
            if self.setup.slot(slot).is_none() {
                self.close(&mut open, Last::Next);
                continue;
            }
            let at = self.lowered.operations.len() as u32;
            let block = open.get_or_insert(Block {
                start: at,
                end: at,
                first: slot,
                size: 0,
                al: None,
                split: None,
                kills: false,
                inactive: false,
                ends: false,
                last: Last::Next,
                fall: NONE,
                jump: NONE,
            });
            let entry = Entry { block: self.lowered.blocks.len() as u32, inside: block.size };
            self.lowered.entries[usize::from(slot)] = entry;
            let ends = slot == self.setup.end;
            (self.scratch, self.al, self.split) = (0, None, None);
            let last = match executable.map(|inst| (inst, &inst.body)) {
                Some((_, Body::Fc(_))) => {
                    self.lowered.flows.extend(self.setup.slot(slot).and_then(|slot| slot.step));
                    Some(Last::Flow(self.lowered.flows.len() as u32 - 1))
                }
                Some((_, Body::Tex(tex))) if tex.inst.inst == TexOp::NOP => None,
                Some((inst, Body::Tex(tex))) if tex.inst.inst == TexOp::TEXKILL && self.kill(inst, tex) => {
                    block.kills = true;
                    None
                }
                Some((inst, Body::Alu(alu))) if self.alu(slot, inst, alu) => {
                    block.inactive |= inst.common.write_inactive;
                    None
                }
                Some((inst, Body::Tex(tex))) if self.fetch(inst, tex) => {
                    block.inactive |= inst.common.write_inactive;
                    None
                }
                Some((_, Body::Alu(_) | Body::Tex(_))) | None => {
                    self.lowered.by_reference.push(slot);
                    Some(Last::Reference)
                }
            };
            self.lowered.ends[usize::from(slot)] = self.lowered.operations.len() as u32;
            if !matches!(last, Some(Last::Reference)) {
                block.al = meet(block.al.take(), self.al.take());
                block.split = self.split;
                block.size += 1;
                block.ends = ends;
            }
            if let Some(last) = last {
                self.close(&mut open, last);
            } else if ends || alone || self.singly {
                self.close(&mut open, Last::Next);
            }
        }
        self.close(&mut open, Last::Next);
        let mut blocks = take(&mut self.lowered.blocks);
        for block in &mut blocks {
            block.fall = self.lowered.block_at(block.first + block.size);
            if let Last::Flow(number) = block.last {
                block.jump = self.lowered.block_at(self.lowered.flows[number as usize].target);
            }
        }
        self.lowered.blocks = blocks;
    }

    fn close(&mut self, open: &mut Option<Block>, last: Last) {
        if let Some(block) = open.take() {
            let end = self.lowered.operations.len() as u32;
            self.lowered.blocks.push(Block { end, last, ..block });
        }
    }

    /// Returns, for each slot, whether the slot is a jump target. This function does not mark the return addresses of
    /// calls. The slot before a return address has a flow instruction, so a block begins at the return address anyway.
    fn starts(&self) -> Vec<bool> {
        let mut starts = vec![false; SLOTS];
        starts[usize::from(self.setup.start) % SLOTS] = true;
        for (_, slot) in self.setup.slots() {
            if let Some(step) = &slot.step
                && let Some(start) = starts.get_mut(usize::from(step.target))
            {
                *start = true;
            }
        }
        starts
    }

    /// Returns the instruction in a slot. Returns `None` if the instruction always traps.
    fn executable(&self, pc: u16) -> Option<&'a Inst> {
        let slot = self.setup.slot(pc)?;
        let inst = slot.inst.as_ref().ok()?;
        let inside = (self.setup.range_start..=self.setup.range_end).contains(&pc);
        let ends_well = pc != self.setup.end || inst.common.r#type == InstType::OUT;
        (!self.strict || inside && slot.violations.is_empty() && ends_well).then_some(inst)
    }

    /// Returns whether an instruction writes scattered outputs to memory.
    pub(super) fn scatters(&self, common: &CmnInst) -> bool {
        let masked = (0..4).any(|channel| common.writes_output(channel));
        common.r#type == InstType::OUT && self.uncached() && masked
    }

    /// Returns whether an operation of the instruction may bail out at run time. If the operation bails out, the
    /// reference interpreter has to execute the instruction.
    fn may_refuse(&self, inst: &Inst) -> bool {
        let surface = |unit| self.bound.is_some_and(|bound| bound.has_input(unit));
        match &inst.body {
            Body::Alu(_) => self.scatters(&inst.common),
            Body::Tex(tex) => surface(tex.inst.tex_id),
            Body::Fc(_) => false,
        }
    }

    /// Lowers an arithmetic instruction. Returns `false` if the reference interpreter has to execute the instruction.
    fn alu(&mut self, slot: u16, inst: &Inst, alu: &Alu) -> bool {
        let start = self.lowered.operations.len();
        let partial = !(0..4).all(|channel| inst.common.writes_output(channel));
        if self.scatters(&inst.common) && partial && self.strict
            || !self.addresses_are_known(&inst.common, alu)
        {
            return false;
        }
        if Instruction::new(self, &inst.common, alu, slot).lower().is_none() {
            self.lowered.operations.truncate(start);
            self.lowered.templates.truncate(start);
            return false;
        }
        true
    }

    /// Restricts aL to the values for which no address of the instruction traps. Returns whether such a value exists.
    fn addresses_are_known(&mut self, common: &CmnInst, alu: &Alu) -> bool {
        let [rgb, alpha] = used_sources(alu);
        let sources = alu.rgb_sources.src.iter().zip(rgb).chain(alu.alpha_sources.src.iter().zip(alpha));
        let read = sources.filter(|(_, used)| *used).all(|(source, _)| match *source {
            Source::Temp { addr, rel } => self.reaches_temp(addr, rel),
            Source::Const { addr, rel } => !rel || self.reaches(addr, CONSTANTS),
            Source::Inline { .. } => true,
        });
        let mut written =
            (0..4).filter(|channel| common.writes_temp(*channel)).map(|channel| alu.destination(channel));
        read && written.all(|(temp, rel)| self.reaches_temp(temp, rel))
    }

    /// Returns whether the temporary can be addressed without a trap. For a relative address, restricts aL to the
    /// values that do not trap.
    pub(super) fn reaches_temp(&mut self, temp: u8, rel: bool) -> bool {
        let allocated = if self.strict { usize::from(self.setup.pix_size) + 1 } else { TEMPORARIES };
        if rel { self.reaches(temp, allocated.min(TEMPORARIES)) } else { usize::from(temp) < allocated }
    }

    /// Restricts aL to the values for which a relative address is below `size`. In lenient mode, all values of aL are
    /// valid, because addresses wrap.
    fn reaches(&mut self, base: u8, size: usize) -> bool {
        let (base, size) = (i32::from(base), size as i32);
        let all = if self.strict { -base..=size - 1 - base } else { i32::MIN..=i32::MAX };
        self.al = meet(self.al.take(), Some(all));
        true
    }
}

/// Returns the intersection of two ranges. `None` means the range of all numbers.
fn meet(a: Option<RangeInclusive<i32>>, b: Option<RangeInclusive<i32>>) -> Option<RangeInclusive<i32>> {
    match (a, b) {
        (Some(a), Some(b)) => Some(*a.start().max(b.start())..=*a.end().min(b.end())),
        (a, b) => a.or(b),
    }
}
