//! Clauses one after another, and what control flow does between them.
//!
//! The state is the reference interpreter's [`Wave`], so that either of the two can go on wherever an instruction
//! ends. While operations run the registers are in [`Lanes`].

use std::mem::swap;

use reconverge_simt::lanes::Kind;
use reconverge_simt::{Event, Level, Machine, Mask, Observer, Silent, Step, Trap, for_avx2, for_avx512};

use super::Fast;
use super::lanes::{Lanes, Operation};
use super::lower::{Clause, Lowered, Run, Work};
#[cfg(target_arch = "x86_64")]
use super::wide::{Avx2, Avx512};
use super::wide::{Baseline, Set, Wide};
use crate::flow::{AluForm, Before, Changes, Control, Flow, FlowFault};
use crate::launch::Executed;
use crate::reference::{At, Cause, Wave};
use crate::rules::Rule;
use crate::words::CfInst;

/// What runs wavefronts of a lowered program, one after another, and counts what they execute.
#[derive(Debug)]
pub(crate) struct Runner<'a> {
    lowered: &'a Lowered,
    level: Level,
    lanes: Lanes<'a>,
    counts: Counts,
}

/// Instructions of a wavefront that its statistics do not have yet, and the same summed over lanes: kept apart so that
/// the loop between operations need not wait for memory.
#[derive(Clone, Copy, Default)]
struct Issued {
    instructions: u64,
    lane_instructions: u64,
}

impl Issued {
    /// Counts instructions that were issued for some lanes.
    #[inline(always)]
    fn count(&mut self, instructions: u64, lanes: Mask) {
        self.instructions += instructions;
        self.lane_instructions += instructions * u64::from(lanes.count());
    }

    /// Hands what was counted to the wavefront.
    fn settle(&mut self, wave: &mut Wave) {
        wave.statistics.instructions += self.instructions;
        wave.statistics.lane_instructions += self.lane_instructions;
        *self = Issued::default();
    }
}

/// What wavefronts have executed, by place in the program.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counts {
    /// How often each run, as a whole.
    runs: Vec<u64>,
    /// How often each group, besides in runs.
    groups: Vec<u64>,
    /// Which control-flow instructions at all.
    nodes: Vec<bool>,
    /// Whether an ALU_PUSH_BEFORE has pushed without an active lane.
    empty_push: bool,
}

impl Counts {
    fn new(lowered: &Lowered) -> Counts {
        Counts {
            runs: vec![0; lowered.runs.len()],
            groups: vec![0; lowered.groups.len()],
            nodes: vec![false; lowered.nodes.len()],
            empty_push: false,
        }
    }

    /// Adds those of other wavefronts of the same program.
    pub(crate) fn add(&mut self, other: &Counts) {
        for (count, other) in self.runs.iter_mut().zip(&other.runs) {
            *count += other;
        }
        for (count, other) in self.groups.iter_mut().zip(&other.groups) {
            *count += other;
        }
        for (node, other) in self.nodes.iter_mut().zip(&other.nodes) {
            *node |= other;
        }
        self.empty_push |= other.empty_push;
    }

    /// The same by instruction and rule.
    pub(crate) fn settle(mut self, fast: &Fast, executed: &mut Executed) {
        for (run, count) in fast.lowered.runs.iter().zip(self.runs) {
            for groups in &mut self.groups[run.first as usize..][..run.count as usize] {
                *groups += count;
            }
        }
        for (group, count) in fast.lowered.groups.iter().zip(self.groups).filter(|(_, count)| *count > 0) {
            for opcode in &group.opcodes {
                executed.report.count(opcode.name, opcode.exactness, count);
            }
            executed.rules.extend(&group.rules);
        }
        let nodes = fast.lowered.nodes.iter().zip(self.nodes);
        executed.rules.extend(nodes.filter(|(_, seen)| *seen).filter_map(|(node, _)| node.rule));
        if self.empty_push {
            executed.rules.insert(Rule::ALU_PUSH_BEFORE_ALWAYS_PUSHES);
        }
    }
}

impl<'a> Runner<'a> {
    pub(crate) fn new(fast: &'a Fast) -> Self {
        let lanes = Lanes {
            rows: Vec::new(),
            sets: [Set::NONE; 4],
            predicate: u64::MAX,
            execute: 0,
            skip: 0,
            killed: 0,
            tables: &fast.lowered.tables,
        };
        Runner { lowered: &fast.lowered, level: fast.level, lanes, counts: Counts::new(&fast.lowered) }
    }

    pub(crate) fn counts(self) -> Counts {
        self.counts
    }

    /// The predicates of the clause that a wavefront is in.
    pub(super) fn predicate(&self) -> Mask {
        Mask(self.lanes.predicate)
    }

    /// Runs a wavefront that stands at a control-flow instruction to its end.
    ///
    /// # Errors
    /// The program trapped.
    pub(crate) fn finish<O: Observer>(
        &mut self,
        wave: &mut Wave,
        observer: &mut O,
    ) -> Result<(), Trap<Cause>> {
        self.enter(wave);
        // SAFETY: a level is one that the processor has.
        let result = unsafe {
            match self.level.kind() {
                Kind::Baseline => self.run_all::<Baseline, O>(wave, observer),
                #[cfg(target_arch = "x86_64")]
                Kind::Avx2 => self.run_all_avx2(wave, observer),
                #[cfg(target_arch = "x86_64")]
                Kind::Avx512 => self.run_all_avx512(wave, observer),
                #[cfg(not(target_arch = "x86_64"))]
                Kind::Avx2 | Kind::Avx512 => self.run_all::<Baseline, O>(wave, observer),
            }
        };
        swap(&mut wave.registers, &mut self.lanes.rows);
        result
    }

    for_avx2! {
        unsafe fn run_all_avx2<O: Observer>(
            &mut self,
            wave: &mut Wave,
            observer: &mut O,
        ) -> Result<(), Trap<Cause>> {
            // SAFETY: the caller has the level.
            unsafe { self.run_all::<Avx2, O>(wave, observer) }
        }
    }

    for_avx512! {
        unsafe fn run_all_avx512<O: Observer>(
            &mut self,
            wave: &mut Wave,
            observer: &mut O,
        ) -> Result<(), Trap<Cause>> {
            // SAFETY: the caller has the level.
            unsafe { self.run_all::<Avx512, O>(wave, observer) }
        }
    }

    /// Takes the registers.
    fn enter(&mut self, wave: &mut Wave) {
        let rows = crate::reference::register_rows(&wave.launch) + crate::reference::PREVIOUS;
        assert!(
            wave.registers.len() >= rows + self.lowered.room.len(),
            "the wavefront was made for this program"
        );
        swap(&mut wave.registers, &mut self.lanes.rows);
    }

    /// # Safety
    /// The processor has the level of `W`, which is the runner's.
    #[inline(always)]
    unsafe fn run_all<W: Wide, O: Observer>(
        &mut self,
        wave: &mut Wave,
        observer: &mut O,
    ) -> Result<(), Trap<Cause>> {
        let lowered = self.lowered;
        let (mut first, mut nodes) = lowered.program(wave.flow.in_fetch_program());
        let mut issued = Issued::default();
        let mut limit = wave.options.watchdog.saturating_sub(wave.statistics.instructions);
        while !wave.flow.done() {
            let pc = wave.flow.pc() as usize;
            let node = nodes.get(pc).filter(|node| issued.instructions + u64::from(node.most) <= limit);
            match node.map(|node| (&node.work, node.end)) {
                Some((Work::Flow(inst, control), end)) => {
                    self.flow(wave, &mut issued, first + pc, *inst, control, end, observer)?;
                }
                Some((Work::Alu(clause), end)) => {
                    if let Some(run) = &clause.single
                        && wave.flow.active().any()
                    {
                        // SAFETY: as the caller says.
                        unsafe { self.single::<W, O>(wave, &mut issued, clause, run, end, observer) }?;
                        continue;
                    }
                    // SAFETY: as the caller says.
                    unsafe { self.clause::<W, O>(wave, &mut issued, clause, end, observer) }?;
                    limit = wave.options.watchdog.saturating_sub(wave.statistics.instructions);
                }
                Some((Work::Reference, _)) | None => {
                    issued.settle(wave);
                    self.by_reference(wave, observer)?;
                    while wave.at != At::ControlFlow {
                        self.by_reference(wave, observer)?;
                    }
                    (first, nodes) = lowered.program(wave.flow.in_fetch_program());
                    limit = wave.options.watchdog.saturating_sub(wave.statistics.instructions);
                }
            }
        }
        issued.settle(wave);
        Ok(())
    }

    /// One instruction, by the reference interpreter.
    #[cold]
    fn by_reference<O: Observer>(&mut self, wave: &mut Wave, observer: &mut O) -> Result<Step, Trap<Cause>> {
        swap(&mut wave.registers, &mut self.lanes.rows);
        let result = wave.step(observer);
        swap(&mut wave.registers, &mut self.lanes.rows);
        result
    }

    /// A control-flow instruction that is not a clause.
    #[inline(always)]
    #[expect(clippy::too_many_arguments, reason = "the parts of one instruction, inlined")]
    fn flow<O: Observer>(
        &mut self,
        wave: &mut Wave,
        issued: &mut Issued,
        number: usize,
        inst: CfInst,
        control: &Control,
        end: bool,
        observer: &mut O,
    ) -> Result<(), Trap<Cause>> {
        let (pc, active) = (wave.flow.pc(), wave.flow.active());
        issued.count(1, active);
        if O::ENABLED {
            observer.event(Event::Issue { pc, mask: active });
        }
        let before = Before::of::<O>(&wave.flow, Changes::All);
        decide(&mut wave.flow, inst, control)
            .map_err(|fault| wave.trap(pc, active, fault.into(), observer))?;
        self.counts.nodes[number] = true;
        if end {
            wave.flow.end_of_program();
        }
        before.announce(&wave.flow, observer);
        Ok(())
    }

    // Clauses.

    /// Begins a clause; gives the lanes that run it.
    #[inline(always)]
    fn begin<O: Observer>(
        &mut self,
        wave: &mut Wave,
        issued: &mut Issued,
        clause: &Clause,
        observer: &mut O,
    ) -> Result<Mask, Trap<Cause>> {
        let (pc, active) = (wave.flow.pc(), wave.flow.active());
        issued.count(1, active);
        if O::ENABLED {
            observer.event(Event::Issue { pc, mask: active });
        }
        let lanes = wave
            .flow
            .alu_enter(clause.form, clause.whole_quad_mode)
            .map_err(|fault| wave.trap(pc, active, fault.into(), observer))?;
        if clause.form == AluForm::PushBefore && active.is_empty() {
            self.counts.empty_push = true;
        }
        if lanes.any() && clause.whole_state {
            swap(&mut wave.registers, &mut self.lanes.rows);
            wave.begin_clause();
            swap(&mut wave.registers, &mut self.lanes.rows);
        }
        self.lanes.predicate = u64::MAX;
        Ok(lanes)
    }

    /// Ends a clause; `pc` and `active` are those of the instruction that does.
    #[inline(always)]
    fn leave<O: Observer>(
        &mut self,
        wave: &mut Wave,
        clause: &Clause,
        end: bool,
        (pc, active): (u32, Mask),
        observer: &mut O,
    ) -> Result<(), Trap<Cause>> {
        wave.flow.alu_leave(clause.form).map_err(|fault| wave.trap(pc, active, fault.into(), observer))?;
        wave.at = At::ControlFlow;
        if end {
            wave.flow.end_of_program();
        }
        Ok(())
    }

    /// [`clause`](Self::clause) for a clause that is one run and has an active lane.
    ///
    /// # Safety
    /// The processor has the level of `W`, which is the runner's.
    #[inline(always)]
    unsafe fn single<W: Wide, O: Observer>(
        &mut self,
        wave: &mut Wave,
        issued: &mut Issued,
        clause: &Clause,
        run: &Run,
        end: bool,
        observer: &mut O,
    ) -> Result<(), Trap<Cause>> {
        // Code for each form, in which all that depends on it is settled.
        macro_rules! with {
            ($form:expr) => {
                // SAFETY: as the caller says.
                unsafe { self.single_as::<W, O>($form, wave, issued, clause, run, end, observer) }
            };
        }
        match clause.form {
            AluForm::Alu => with!(AluForm::Alu),
            AluForm::PushBefore => with!(AluForm::PushBefore),
            AluForm::PopAfter => with!(AluForm::PopAfter),
            AluForm::Pop2After => with!(AluForm::Pop2After),
            AluForm::Continue => with!(AluForm::Continue),
            AluForm::Break => with!(AluForm::Break),
            AluForm::ElseAfter => with!(AluForm::ElseAfter),
        }
    }

    /// # Safety
    /// The processor has the level of `W`, which is the runner's.
    #[inline(always)]
    #[expect(clippy::too_many_arguments, reason = "the parts of one clause, inlined")]
    unsafe fn single_as<W: Wide, O: Observer>(
        &mut self,
        form: AluForm,
        wave: &mut Wave,
        issued: &mut Issued,
        clause: &Clause,
        run: &Run,
        end: bool,
        observer: &mut O,
    ) -> Result<(), Trap<Cause>> {
        let (pc, active) = (wave.flow.pc(), wave.flow.active());
        let lowered = self.lowered;
        let operations = &lowered.fused[run.operations.start as usize..run.operations.end as usize];
        issued.count(1, active);
        if O::ENABLED {
            observer.event(Event::Issue { pc, mask: active });
        }
        let before = Before::of::<O>(&wave.flow, form.changes_at_start());
        wave.flow.alu_enter(form, false).map_err(|fault| wave.trap(pc, active, fault.into(), observer))?;
        before.announce(&wave.flow, observer);
        let before = Before::of::<O>(&wave.flow, form.changes_at_end(run.masks));
        issued.count(run.count.into(), active);
        if O::ENABLED {
            observer.issues(&lowered.addresses[run.first as usize..][..run.count as usize], active);
        }
        self.counts.runs[clause.runs.start as usize] += 1;
        self.lanes.predicate = u64::MAX;
        // SAFETY: as the caller says.
        unsafe { self.execute::<W>(operations, active) };
        if run.masks {
            let (execute, skip) = (Mask(self.lanes.execute), Mask(self.lanes.skip));
            if skip.any() && execute.any() {
                wave.statistics.divergent_branches += 1;
            }
            wave.flow.update_execute_mask(form, skip);
        }
        let last = run.last_addr;
        wave.flow.alu_leave(form).map_err(|fault| wave.trap(last, active, fault.into(), observer))?;
        if end {
            wave.flow.end_of_program();
        }
        before.announce(&wave.flow, observer);
        Ok(())
    }

    /// # Safety
    /// The processor has the level of `W`, which is the runner's.
    #[inline(always)]
    unsafe fn clause<W: Wide, O: Observer>(
        &mut self,
        wave: &mut Wave,
        issued: &mut Issued,
        clause: &Clause,
        end: bool,
        observer: &mut O,
    ) -> Result<(), Trap<Cause>> {
        let lowered = self.lowered;
        let mut active = wave.flow.active();
        let mut pc = wave.flow.pc();
        // Before the last instruction of which the observer does not know yet what it did.
        let mut before = Before::of::<O>(&wave.flow, clause.form.changes_at_start());
        let mut lanes = self.begin(wave, issued, clause, observer)?;
        if lanes.is_empty() {
            before.announce(&wave.flow, observer);
            let before = Before::of::<O>(&wave.flow, clause.form.changes_at_end(false));
            self.leave(wave, clause, end, (pc, active), observer)?;
            before.announce(&wave.flow, observer);
            return Ok(());
        }
        let runs = &lowered.runs[clause.runs.start as usize..clause.runs.end as usize];
        for (number, run) in (clause.runs.start as usize..).zip(runs) {
            before.announce(&wave.flow, observer);
            if run.by_reference {
                before = Before::Nothing;
                issued.settle(wave);
                self.group_by_reference(wave, clause, run.first, observer)?;
                if wave.at == At::ControlFlow {
                    return Ok(());
                }
                lanes = wave.flow.alu_lanes(clause.whole_quad_mode);
                continue;
            }
            active = wave.flow.active();
            pc = run.last_addr;
            before = Before::of::<O>(&wave.flow, clause.form.changes_at_end(run.masks));
            self.counts.runs[number] += 1;
            issued.count(run.count.into(), lanes);
            if O::ENABLED {
                // Of the groups of a run only the last one decides about flow.
                observer.issues(&lowered.addresses[run.first as usize..][..run.count as usize], lanes);
            }
            // SAFETY: as the caller says.
            unsafe {
                self.execute::<W>(
                    &lowered.fused[run.operations.start as usize..run.operations.end as usize],
                    lanes,
                );
            }
            let Run { masks, kills, .. } = *run;
            self.retire(wave, clause, masks, kills);
            if masks {
                lanes = wave.flow.alu_lanes(clause.whole_quad_mode);
                if lanes.is_empty() && !wave.options.strict {
                    break;
                }
            }
        }
        self.leave(wave, clause, end, (pc, active), observer)?;
        before.announce(&wave.flow, observer);
        Ok(())
    }

    /// # Safety
    /// The processor has the level of `W`, which is the runner's.
    #[inline(always)]
    unsafe fn execute<W: Wide>(&mut self, operations: &[Operation], lanes: Mask) {
        // SAFETY: as the caller says; that the rows are there was seen when they were taken.
        unsafe {
            self.lanes.sets[0].choose::<W>(lanes.0);
            for operation in operations {
                (operation.run)(&mut self.lanes, operation);
            }
        }
    }

    /// What the last of some groups did to the masks.
    #[inline(always)]
    fn retire(&mut self, wave: &mut Wave, clause: &Clause, masks: bool, kills: bool) {
        if kills {
            wave.flow.kill_lanes(Mask(self.lanes.killed));
            self.lanes.killed = 0;
        }
        if masks {
            let active = wave.flow.active();
            let (execute, skip) = (Mask(self.lanes.execute), Mask(self.lanes.skip));
            if (skip & active).any() && (execute & active).any() {
                wave.statistics.divergent_branches += 1;
            }
            wave.flow.update_execute_mask(clause.form, skip);
            if clause.whole_state {
                // Only the reference interpreter goes on in the same clause.
                wave.clause.mask_updated = true;
            }
        }
    }

    /// Group `number` of the program, by the reference interpreter.
    #[cold]
    fn group_by_reference<O: Observer>(
        &mut self,
        wave: &mut Wave,
        clause: &Clause,
        number: u32,
        observer: &mut O,
    ) -> Result<Step, Trap<Cause>> {
        let group = &self.lowered.groups[number as usize];
        wave.at = At::Group((number - clause.groups.start) as usize);
        wave.clause.defined = group.defined;
        wave.clause.predicate = self.predicate();
        wave.clause.predicate_written = group.predicate_written;
        let step = self.by_reference(wave, observer)?;
        self.lanes.predicate = wave.clause.predicate.0;
        Ok(step)
    }

    // One instruction at a time.

    /// Executes one instruction.
    ///
    /// # Errors
    /// The program trapped.
    pub(super) fn step(&mut self, wave: &mut Wave) -> Result<Step, Trap<Cause>> {
        if wave.flow.done() {
            return Ok(Step::Done);
        }
        self.enter(wave);
        let mut issued = Issued::default();
        let result = self.one(wave, &mut issued);
        issued.settle(wave);
        swap(&mut wave.registers, &mut self.lanes.rows);
        result?;
        Ok(if wave.flow.done() { Step::Done } else { Step::Running })
    }

    fn one(&mut self, wave: &mut Wave, issued: &mut Issued) -> Result<(), Trap<Cause>> {
        let lowered = self.lowered;
        let (first, nodes) = lowered.program(wave.flow.in_fetch_program());
        let number = wave.flow.pc() as usize;
        let node = nodes.get(number).map(|node| (first + number, node));
        if wave.statistics.instructions >= wave.options.watchdog {
            return self.by_reference(wave, &mut Silent).map(|_| ());
        }
        match (wave.at, node) {
            (At::ControlFlow, Some((number, node))) if let Work::Flow(inst, control) = &node.work => {
                self.flow(wave, issued, number, *inst, control, node.end, &mut Silent)
            }
            (At::ControlFlow, Some((_, node))) if let Work::Alu(clause) = &node.work => {
                let (pc, active) = (wave.flow.pc(), wave.flow.active());
                let lanes = self.begin(wave, issued, clause, &mut Silent)?;
                wave.clause.mask_updated = false;
                if lanes.is_empty() {
                    return self.leave(wave, clause, node.end, (pc, active), &mut Silent);
                }
                wave.at = At::Group(0);
                Ok(())
            }
            (At::Group(number), Some((_, node))) if let Work::Alu(clause) = &node.work => {
                self.group(wave, issued, clause, number, node.end)
            }
            (At::ControlFlow | At::Group(_) | At::Fetch(..), _) => {
                self.by_reference(wave, &mut Silent).map(|_| ())
            }
        }
    }

    /// Group `number` of a clause.
    fn group(
        &mut self,
        wave: &mut Wave,
        issued: &mut Issued,
        clause: &Clause,
        number: usize,
        end: bool,
    ) -> Result<(), Trap<Cause>> {
        let lowered = self.lowered;
        let place = clause.groups.start + number as u32;
        let group = &lowered.groups[place as usize];
        if group.by_reference {
            return self.group_by_reference(wave, clause, place, &mut Silent).map(|_| ());
        }
        let active = wave.flow.active();
        let lanes = wave.flow.alu_lanes(clause.whole_quad_mode);
        self.counts.groups[place as usize] += 1;
        issued.count(1, lanes);
        let operations = &lowered.operations[group.operations.start as usize..group.operations.end as usize];
        // SAFETY: a level is one that the processor has.
        unsafe {
            match self.level.kind() {
                Kind::Baseline => self.execute::<Baseline>(operations, lanes),
                #[cfg(target_arch = "x86_64")]
                Kind::Avx2 => self.execute::<Avx2>(operations, lanes),
                #[cfg(target_arch = "x86_64")]
                Kind::Avx512 => self.execute::<Avx512>(operations, lanes),
                #[cfg(not(target_arch = "x86_64"))]
                Kind::Avx2 | Kind::Avx512 => self.execute::<Baseline>(operations, lanes),
            }
        }
        self.retire(wave, clause, group.masks, group.kills);
        let lanes = wave.flow.alu_lanes(clause.whole_quad_mode);
        if number + 1 < clause.groups.len() && (lanes.any() || group.masks && wave.options.strict) {
            wave.at = At::Group(number + 1);
            return Ok(());
        }
        self.leave(wave, clause, end, (group.addr, active), &mut Silent)
    }
}

/// What an instruction does that only decides about flow. The rest has been left to the reference interpreter.
#[inline(always)]
fn decide(flow: &mut Flow, inst: CfInst, control: &Control) -> Result<(), FlowFault> {
    match inst {
        CfInst::LOOP_START => flow.loop_start(control),
        CfInst::LOOP_END => flow.loop_end(control),
        CfInst::LOOP_START_DX10 => flow.loop_start_dx10(control),
        CfInst::LOOP_START_NO_AL => flow.loop_start_no_al(control),
        CfInst::LOOP_CONTINUE => flow.loop_continue(control),
        CfInst::LOOP_BREAK => flow.loop_break(control),
        CfInst::JUMP => flow.jump(control),
        CfInst::PUSH => flow.push_(control),
        CfInst::PUSH_ELSE => flow.push_else(control),
        CfInst::ELSE => flow.else_(control),
        CfInst::POP => flow.pop(control),
        CfInst::POP_JUMP => flow.pop_jump(control),
        CfInst::POP_PUSH => flow.pop_push(control),
        CfInst::POP_PUSH_ELSE => flow.pop_push_else(control),
        CfInst::CALL => flow.call(control),
        CfInst::KILL => flow.kill(control),
        CfInst::NOP
        | CfInst::END_PROGRAM
        | CfInst::CALL_FS
        | CfInst::RETURN
        | CfInst::TEX
        | CfInst::VTX
        | CfInst::VTX_TC
        | CfInst::EMIT_VERTEX
        | CfInst::EMIT_CUT_VERTEX
        | CfInst::CUT_VERTEX
        | CfInst::WAIT_ACK
        | CfInst::TEX_ACK
        | CfInst::VTX_ACK
        | CfInst::VTX_TC_ACK => {
            flow.nop();
            Ok(())
        }
    }
}
