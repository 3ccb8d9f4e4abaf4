//! Blocks one after another, and what flow control does between them.

use reconverge_simt::lanes::Kind;
use reconverge_simt::{FlowView, Machine, Mask, Mode, Silent, Trap};

use super::Fast;
use super::lanes::{Baseline, Lanes, Set, Wide};
use super::lower::{Flow, Last};
use crate::reference::{Cause, Group};

/// Why blocks stop.
enum Stop {
    /// The thread has ended, or has issued as many instructions as it was to.
    Over,
    /// The next instruction is the reference interpreter's.
    Reference,
    Trap(Trap<Cause>),
}

impl Fast {
    /// Runs a thread, one that was [prepared](Fast::prepare), for at most `most` instructions. `runs` counts by block.
    ///
    /// # Errors
    /// The first trap.
    pub(crate) fn run(&self, group: &mut Group, runs: &mut [u64], most: u64) -> Result<(), Trap<Cause>> {
        match self.level.kind() {
            // SAFETY: every processor has the baseline.
            Kind::Baseline => unsafe { self.run_on::<Baseline>(group, runs, most) },
            // SAFETY: a level is made only on a processor that has it.
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 => unsafe { self.run_avx2(group, runs, most) },
            // SAFETY: a level is made only on a processor that has it.
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512 => unsafe { self.run_avx512(group, runs, most) },
            // SAFETY: there are no other levels on other processors.
            #[cfg(not(target_arch = "x86_64"))]
            Kind::Avx2 | Kind::Avx512 => unsafe { self.run_on::<Baseline>(group, runs, most) },
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma,bmi1,bmi2,popcnt,lzcnt")]
    unsafe fn run_avx2(&self, group: &mut Group, runs: &mut [u64], most: u64) -> Result<(), Trap<Cause>> {
        // SAFETY: who calls this has the level.
        unsafe { self.run_on::<super::lanes::Avx2>(group, runs, most) }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma,bmi1,bmi2,popcnt,lzcnt,avx512f,avx512bw,avx512cd,avx512dq,avx512vl")]
    unsafe fn run_avx512(&self, group: &mut Group, runs: &mut [u64], most: u64) -> Result<(), Trap<Cause>> {
        // SAFETY: who calls this has the level.
        unsafe { self.run_on::<super::lanes::Avx512>(group, runs, most) }
    }

    /// # Safety
    /// The processor has the level of `W`, and that of `self`.
    #[inline(always)]
    unsafe fn run_on<W: Wide>(
        &self,
        group: &mut Group,
        runs: &mut [u64],
        most: u64,
    ) -> Result<(), Trap<Cause>> {
        let mut left = most;
        loop {
            // SAFETY: as the caller says.
            match unsafe { self.blocks_on::<W>(group, runs, &mut left) } {
                Stop::Over => return Ok(()),
                Stop::Reference => group.step(&mut Silent)?,
                Stop::Trap(trap) => return Err(trap),
            };
            left -= 1;
        }
    }

    /// Runs blocks until something else has to happen. `left` counts the instructions that there is time for.
    ///
    /// # Safety
    /// The processor has the level of `W`, and that of `self`.
    #[inline(always)]
    unsafe fn blocks_on<W: Wide>(&self, group: &mut Group, runs: &mut [u64], left: &mut u64) -> Stop {
        let lowered = &self.lowered;
        let strict = group.options.mode == Mode::Strict;
        let offset = group.code_offset();
        let Group { flow, rows, lanes: all, predicate, alu_result, alu_result_valid, written, .. } = group;
        let (all, statistics, issued) = (*all, &mut group.statistics, &mut group.issued);
        let watchdog = group.options.watchdog;
        // Lanes that were never launched share a quad with some that were: they must stay as they are.
        let whole_quads = all.count().is_multiple_of(4);
        let count = crate::reference::ROWS + lowered.room.len();
        let width = 64 - all.0.leading_zeros() as usize;
        let mut lanes =
            Lanes::new(rows.with_room_mut(), count, width, predicate, alu_result, alu_result_valid, written);
        // SAFETY: as the caller says.
        unsafe { lanes.choose::<W>(Set::ALL, all) };
        loop {
            let budget = (*left).min(watchdog.saturating_sub(statistics.instructions));
            if *left == 0 || flow.issue().is_none() {
                return Stop::Over;
            }
            let pc = flow.pc();
            let entry = lowered.entries.get(usize::from(pc)).copied().flatten();
            let Some(entry) = entry.filter(|_| budget > 0) else { return Stop::Reference };
            let block = &lowered.blocks[entry.block as usize];
            let active = flow.active();
            let members = u64::from(active.count());
            if lanes.set(Set::ACTIVE) != active {
                // SAFETY: as the caller says.
                unsafe { lanes.choose::<W>(Set::ACTIVE, active) };
            }

            let wanted = block.size - entry.inside;
            let fits = u64::from(wanted) <= budget;
            let size = if fits { wanted } else { budget as u16 };
            let start = if entry.inside == 0 { block.start } else { lowered.ends[usize::from(pc) - 1] };
            let end = if fits { block.end } else { lowered.ends[usize::from(pc + size) - 1] };
            if active.any() || block.inactive {
                let full = usize::from(active == all && whole_quads);
                for operation in &lowered.operations[start as usize..end as usize] {
                    // SAFETY: the caller has the level of self, for which the operations were made.
                    unsafe { operation.handlers[full](&mut lanes, operation) };
                }
            }
            let mut count = |size: u16, whole: bool| {
                *left -= u64::from(size);
                statistics.instructions += u64::from(size);
                statistics.lane_instructions += u64::from(size) * members;
                if whole {
                    runs[entry.block as usize] += 1;
                } else {
                    let pc = usize::from(pc);
                    issued[pc..pc + usize::from(size)].iter_mut().for_each(|times| *times += 1);
                }
            };
            let flow_instruction = match block.last {
                Last::Flow(number) if fits => &lowered.flows[number as usize],
                Last::Reference if fits => {
                    count(size, entry.inside == 0);
                    flow.advance_by(size);
                    if *left == 0 {
                        return Stop::Over;
                    }
                    return Stop::Reference;
                }
                _ => {
                    count(size, fits && entry.inside == 0);
                    flow.advance_by(size);
                    if fits && block.ends {
                        flow.end();
                    }
                    continue;
                }
            };
            flow.advance_by(size - 1);
            let Flow { fc, wants, reads_alu_result, constant, .. } = flow_instruction;
            if strict && *reads_alu_result && (active - *lanes.alu_result_valid).any() {
                // It traps.
                count(size - 1, false);
                return Stop::Reference;
            }
            count(size, entry.inside == 0);
            let holding = match flow_instruction.predicate {
                None => u64::MAX,
                Some((bit, inverted)) => {
                    let bits = lanes.predicate[usize::from(bit)].0;
                    if inverted { !bits } else { bits }
                }
            };
            let result = lanes.alu_result.0;
            let want = wants[0] & !result & !holding
                | wants[1] & !result & holding
                | wants[2] & result & !holding
                | wants[3] & result & holding;
            match flow.execute(&fc.inst, &fc.addr, Mask(want), *constant, offset) {
                Ok(decision) => {
                    // Every FC instruction destroys the ALU result. (CTM guide p. 35)
                    *lanes.alu_result = Mask::NONE;
                    *lanes.alu_result_valid = Mask::NONE;
                    statistics.divergent_branches += u64::from(decision.diverged());
                    if block.ends {
                        flow.end();
                    }
                }
                Err(undefined) => {
                    let pc = u32::from(block.first + block.size - 1);
                    return Stop::Trap(Trap { pc, lanes: active, cause: undefined.into() });
                }
            }
        }
    }
}
