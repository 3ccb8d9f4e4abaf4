//! The runner of the fast engine. The runner runs clauses in order, and runs the control flow between the clauses.
//!
//! The state of the runner is the [`Wave`] of the reference interpreter. So after any instruction, the runner or the
//! reference interpreter can run the next instruction. While operations run, the registers are in [`Lanes`].

use reconverge_simt::level::Task;
use reconverge_simt::observe::together;
use reconverge_simt::place::Frame;
use reconverge_simt::wide::Wide;
use reconverge_simt::{Event, Identity, Level, Machine, Mask, Observer, Path, Step, Trap};

use super::Fast;
use super::counts::{Counts, Issued};
use super::lanes::{ACTIVE, Lanes, Operation};
use super::lower::{Clause, Groups, Lowered, Node, Work};
use crate::cause::Cause;
use crate::control::{self, CfWork};
use crate::flow::{AluForm, Before, Changes, Control, Flow, FlowFault};
use crate::launch::Environment;
use crate::wave::{At, ClauseState, Wave};
use crate::words::CfInst;

/// Runs wavefronts of a lowered program, one after another, and counts the executed instructions.
#[derive(Debug)]
pub(super) struct Runner<'a> {
    pub(super) lowered: &'a Lowered,
    pub(super) level: Level,
    pub(super) lanes: Lanes<'a>,
    pub(super) counts: Counts,
    /// For each place at which compiled code reads a buffer, the memory of the buffer. If compiled code cannot run in
    /// the environment, this field is `None`.
    pub(super) memory: Option<Vec<&'a [u8]>>,
    pub(super) identity: Identity,
}

/// An export, compiled for each instruction set level. The result is `None` if the reference interpreter must run the
/// export. Otherwise, the result states whether the disputed rules of the export affected the result of the run.
struct Export<'a, 'b> {
    runner: &'a mut Runner<'b>,
    wave: &'a mut Wave,
    work: &'a Work,
}

impl Task for Export<'_, '_> {
    type Output = Option<bool>;

    #[inline(always)]
    fn run<W: Wide>(self, wide: W) -> Option<bool> {
        match self.work {
            Work::Export(exports) => self.runner.export(wide, self.wave, exports).then_some(false),
            Work::Memory(stores) => self.runner.store(wide, self.wave, stores),
            Work::Alu(_) | Work::Fetch(_) | Work::Flow(..) | Work::Reference => None,
        }
    }
}

impl<'a> Runner<'a> {
    /// Creates a runner for wavefronts of launches in an environment. The runner adds its counts to `counts`.
    pub(super) fn new(fast: &'a Fast, environment: &'a Environment, counts: Counts) -> Self {
        // SAFETY: this runner runs only operations that were lowered for this layout.
        let frame = unsafe { Frame::empty(&fast.lowered.layout) };
        let lanes = Lanes {
            frame,
            sets: [Mask::NONE; 4],
            predicate: u64::MAX,
            skip: 0,
            killed: 0,
            loop_index: 0,
            tables: &fast.lowered.tables,
            environment,
        };
        let memory = fast.compiled.as_ref().and_then(|code| code.memory(environment));
        let (lowered, level, identity) = (&fast.lowered, fast.level, Identity::new());
        Runner { lowered, level, lanes, counts, memory, identity }
    }

    pub(super) fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Exchanges the rows of a wavefront with the rows of the runner. The first call moves the wavefront's rows to the
    /// runner. The second call moves the same rows back.
    #[inline(always)]
    fn swap_rows(&mut self, wave: &mut Wave) {
        // SAFETY: operations run only between the start and the end of `run`. During that time, the runner has the
        // rows. At other times, the wavefront has the rows, and only the reference interpreter runs.
        unsafe { self.lanes.frame.swap(&mut wave.registers) };
    }

    /// Calls a function while the runner holds the rows of a wavefront.
    #[inline(always)]
    pub(super) fn with_rows<T>(&mut self, wave: &mut Wave, run: impl FnOnce(&mut Self, &mut Wave) -> T) -> T {
        self.swap_rows(wave);
        let result = run(self, wave);
        self.swap_rows(wave);
        result
    }

    /// Runs a wavefront until its instruction count plus `issued` reaches `end_at`, or until compiled code can
    /// continue. In the second case, the function returns the node at which compiled code continues.
    ///
    /// `node_at` returns the node of compiled code that begins at a control-flow instruction. `node_at` returns `None`
    /// if the remaining budget or the flow state does not allow the node to run. If the observer is notified of events,
    /// `run_to_node` does not call `node_at`.
    #[inline(always)]
    pub(super) fn run_to_node<W: Wide, O: Observer>(
        &mut self,
        wide: W,
        wave: &mut Wave,
        issued: &mut Issued,
        end_at: u64,
        observer: &mut O,
        node_at: impl Fn(u32, u64, &Flow) -> Option<u32>,
    ) -> Result<Option<u32>, Trap<Cause>> {
        // The loop counts in a local copy of `issued`. The host can hold this copy in registers.
        let mut copy = *issued;
        let result = self.run_on(wide, wave, &mut copy, end_at, observer, node_at);
        *issued = copy;
        result
    }

    #[inline(always)]
    fn run_on<W: Wide, O: Observer>(
        &mut self,
        wide: W,
        wave: &mut Wave,
        issued: &mut Issued,
        end_at: u64,
        observer: &mut O,
        node_at: impl Fn(u32, u64, &Flow) -> Option<u32>,
    ) -> Result<Option<u32>, Trap<Cause>> {
        let lowered = self.lowered;
        let stop = end_at.min(wave.options.watchdog);
        let (mut first, mut nodes) = lowered.program(wave.flow.in_fetch_program());
        let mut limit = stop.saturating_sub(wave.statistics.instructions);
        while !wave.flow.done() {
            let pc = wave.flow.pc() as usize;
            // The number of an instruction after the end of the program may be a number of the fetch program.
            let mut node = nodes.get(pc);
            if !O::ENABLED
                && node.is_some()
                && let Some(left) = limit.checked_sub(issued.instructions)
                && let Some(start) = node_at((first + pc) as u32, left, &wave.flow)
            {
                return Ok(Some(start));
            }
            node = node.filter(|node| issued.instructions + u64::from(node.most) <= limit);
            if let Some(Node { work: work @ (Work::Export(_) | Work::Memory(_)), end, .. }) = node {
                if self.exports(wide, wave, issued, (work, first + pc), *end, observer) {
                    continue;
                }
                node = None;
            }
            if let Some(Node { work: Work::Alu(clause), .. }) = node
                && clause.loop_index
            {
                match wave.loop_offset(true) {
                    Ok(index) => self.lanes.loop_index = index,
                    Err(_) => node = None,
                }
            }
            match node.map(|node| (&node.work, node.end)) {
                Some((Work::Flow(inst, control), end)) => {
                    let decision = (*inst, control);
                    if let Err(trap) = self.flow(wave, issued, first + pc, decision, end, observer) {
                        issued.settle(wave);
                        return Err(trap);
                    }
                    if matches!(inst, CfInst::CALL_FS | CfInst::RETURN) {
                        (first, nodes) = lowered.program(wave.flow.in_fetch_program());
                    }
                }
                Some((Work::Alu(clause), _)) => {
                    if let Some(run) = &clause.single
                        && wave.flow.active().any()
                    {
                        if let Err(trap) = self.single(wave, issued, clause, run, observer) {
                            issued.settle(wave);
                            return Err(trap);
                        }
                        continue;
                    }
                    if let Err(trap) = self.clause(wave, issued, clause, observer) {
                        issued.settle(wave);
                        return Err(trap);
                    }
                    limit = stop.saturating_sub(wave.statistics.instructions);
                }
                Some((Work::Fetch(clause), end)) => {
                    let clause = (clause, end);
                    if let Err(trap) = self.fetch_clause(wide, wave, issued, clause, observer) {
                        issued.settle(wave);
                        return Err(trap);
                    }
                    limit = stop.saturating_sub(wave.statistics.instructions);
                }
                Some((Work::Export(_) | Work::Memory(_) | Work::Reference, _)) | None => {
                    issued.settle(wave);
                    if wave.statistics.instructions >= end_at {
                        break;
                    }
                    self.by_reference(wave, observer)?;
                    self.finish_clause(wave, end_at, observer)?;
                    if wave.at != At::ControlFlow {
                        break;
                    }
                    (first, nodes) = lowered.program(wave.flow.in_fetch_program());
                    limit = stop.saturating_sub(wave.statistics.instructions);
                }
            }
        }
        Ok(None)
    }

    /// Runs one instruction on the reference interpreter.
    #[cold]
    pub(super) fn by_reference<O: Observer>(
        &mut self,
        wave: &mut Wave,
        observer: &mut O,
    ) -> Result<Step, Trap<Cause>> {
        self.swap_rows(wave);
        let result = wave.step(observer);
        self.swap_rows(wave);
        if O::PATHS {
            observer.path(Path::Reference, 1);
        }
        result
    }

    /// Runs the remaining groups of a clause on the reference interpreter. Stops when the statistics reach `end_at`
    /// instructions.
    pub(super) fn finish_clause<O: Observer>(
        &mut self,
        wave: &mut Wave,
        end_at: u64,
        observer: &mut O,
    ) -> Result<(), Trap<Cause>> {
        while wave.at != At::ControlFlow && wave.statistics.instructions < end_at {
            self.by_reference(wave, observer)?;
        }
        Ok(())
    }

    /// Runs a control-flow instruction that is not a clause.
    #[inline(always)]
    fn flow<O: Observer>(
        &mut self,
        wave: &mut Wave,
        issued: &mut Issued,
        number: usize,
        (inst, control): (CfInst, &Control),
        end: bool,
        observer: &mut O,
    ) -> Result<(), Trap<Cause>> {
        let (pc, active) = (wave.flow.pc(), wave.flow.active());
        issued.count(1, active);
        if O::PATHS {
            observer.path(Path::Single, 1);
        }
        let before = Before::of::<O>(&wave.flow, Changes::Flow);
        let issue = |observer: &mut O| {
            if O::ENABLED {
                observer.event(Event::Issue { pc, mask: active });
            }
        };
        decide(&mut wave.flow, inst, control).map_err(|fault| {
            issue(observer);
            wave.trap(pc, active, fault.into(), observer)
        })?;
        self.counts.nodes[number] = true;
        if end {
            wave.flow.end_of_program();
        }
        let to = wave.flow.pc();
        if before.has_only_moved(&wave.flow) && (to == pc + 1 || to == control.addr) {
            let key = self.lowered.runs.len() + 2 * number + usize::from(to == control.addr);
            together(observer, key as u32, active, Mask::NONE, |observer| {
                issue(observer);
                before.announce(&mut wave.flow, observer);
            });
        } else {
            issue(observer);
            before.announce(&mut wave.flow, observer);
        }
        Ok(())
    }

    /// Runs an export. If the reference interpreter must run the export, this function has no effect and returns
    /// `false`.
    fn exports<W: Wide, O: Observer>(
        &mut self,
        wide: W,
        wave: &mut Wave,
        issued: &mut Issued,
        (work, number): (&Work, usize),
        end: bool,
        observer: &mut O,
    ) -> bool {
        let executed = wide.call(Export { runner: &mut *self, wave: &mut *wave, work });
        let Some(executed) = executed else { return false };
        let (pc, active) = (wave.flow.pc(), wave.flow.active());
        issued.alone(pc, active, observer);
        self.counts.nodes[number] |= executed;
        let before = Before::of::<O>(&wave.flow, Changes::Flow);
        wave.flow.nop();
        if end {
            wave.flow.end_of_program();
        }
        before.announce(&mut wave.flow, observer);
        true
    }

    // The methods that run clauses.

    /// Ends a clause. `pc` is the address of the instruction that ends the clause. The lanes `active` run this
    /// instruction.
    #[inline(always)]
    fn leave<O: Observer>(
        &mut self,
        wave: &mut Wave,
        clause: &Clause,
        (pc, active): (u32, Mask),
        observer: &mut O,
    ) -> Result<(), Trap<Cause>> {
        wave.flow.alu_leave(clause.form).map_err(|fault| wave.trap(pc, active, fault.into(), observer))?;
        wave.at = At::ControlFlow;
        if clause.end {
            wave.flow.end_of_program();
        }
        Ok(())
    }

    /// Runs a clause for at least one active lane. The clause consists of one run of groups ([`Groups`]).
    #[inline(always)]
    fn single<O: Observer>(
        &mut self,
        wave: &mut Wave,
        issued: &mut Issued,
        clause: &Clause,
        run: &Groups,
        observer: &mut O,
    ) -> Result<(), Trap<Cause>> {
        // The compiler instantiates the function once for each form of ALU clause. So the form is a constant in each
        // instance.
        macro_rules! with {
            ($form:expr) => {
                self.single_as($form, wave, issued, clause, run, observer)
            };
        }
        match clause.form {
            AluForm::ALU => with!(AluForm::ALU),
            AluForm::ALU_PUSH_BEFORE => with!(AluForm::ALU_PUSH_BEFORE),
            AluForm::ALU_POP_AFTER => with!(AluForm::ALU_POP_AFTER),
            AluForm::ALU_POP2_AFTER => with!(AluForm::ALU_POP2_AFTER),
            AluForm::ALU_CONTINUE => with!(AluForm::ALU_CONTINUE),
            AluForm::ALU_BREAK => with!(AluForm::ALU_BREAK),
            AluForm::ALU_ELSE_AFTER => with!(AluForm::ALU_ELSE_AFTER),
        }
    }

    /// Runs [`single`](Self::single) with the form as a constant.
    #[inline(always)]
    fn single_as<O: Observer>(
        &mut self,
        form: AluForm,
        wave: &mut Wave,
        issued: &mut Issued,
        clause: &Clause,
        run: &Groups,
        observer: &mut O,
    ) -> Result<(), Trap<Cause>> {
        let (pc, active) = (wave.flow.pc(), wave.flow.active());
        let lowered = self.lowered;
        issued.count(1, active);
        let before = Before::of::<O>(&wave.flow, form.changes_at_start());
        wave.flow.alu_enter(form, false).map_err(|fault| {
            if O::ENABLED {
                observer.event(Event::Issue { pc, mask: active });
            }
            wave.trap(pc, active, fault.into(), observer)
        })?;
        issued.count(run.count.into(), active);
        together(observer, clause.runs.start, active, Mask::NONE, |observer| {
            observer.event(Event::Issue { pc, mask: active });
            before.announce(&mut wave.flow, observer);
            observer.issues(&lowered.addresses[run.first as usize..][..run.count as usize], active);
        });
        let before = Before::of::<O>(&wave.flow, form.changes_at_end(run.masks));
        if O::PATHS {
            observer.path(Path::Clause, 1 + u64::from(run.count));
        }
        self.run_single(clause, run, active);
        if run.masks && wave.flow.update_execute_mask(form, Mask(self.lanes.skip)) {
            wave.statistics.divergent_branches += 1;
        }
        let last = run.last_addr;
        wave.flow.alu_leave(form).map_err(|fault| wave.trap(last, active, fault.into(), observer))?;
        if clause.end {
            wave.flow.end_of_program();
        }
        before.announce(&mut wave.flow, observer);
        Ok(())
    }

    /// Runs a clause of any kind.
    #[inline(always)]
    fn clause<O: Observer>(
        &mut self,
        wave: &mut Wave,
        issued: &mut Issued,
        clause: &Clause,
        observer: &mut O,
    ) -> Result<(), Trap<Cause>> {
        let lowered = self.lowered;
        let (mut pc, mut active) = (wave.flow.pc(), wave.flow.active());
        // The flow state before the first change that has not been reported to the observer yet.
        let mut before = Before::of::<O>(&wave.flow, clause.form.changes_at_start());
        issued.count(1, active);
        if O::ENABLED {
            observer.event(Event::Issue { pc, mask: active });
        }
        let mut lanes = wave
            .flow
            .alu_enter(clause.form, clause.whole_quad_mode)
            .map_err(|fault| wave.trap(pc, active, fault.into(), observer))?;
        self.counts.empty_push |= clause.form == AluForm::ALU_PUSH_BEFORE && active.is_empty();
        if O::PATHS {
            observer.path(if lanes.any() { Path::Block } else { Path::Single }, 1);
        }
        if lanes.is_empty() {
            before.announce(&mut wave.flow, observer);
            let before = Before::of::<O>(&wave.flow, clause.form.changes_at_end(false));
            self.leave(wave, clause, (pc, active), observer)?;
            before.announce(&mut wave.flow, observer);
            return Ok(());
        }
        if clause.whole_state {
            self.swap_rows(wave);
            wave.begin_clause();
            self.swap_rows(wave);
        }
        self.lanes.predicate = u64::MAX;
        let runs = &lowered.runs[clause.runs.start as usize..clause.runs.end as usize];
        for (number, run) in (clause.runs.start as usize..).zip(runs) {
            before.announce(&mut wave.flow, observer);
            if run.by_reference || run.checks.iter().any(|check| !self.lanes.is_there(check, lanes.0)) {
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
                // Only the last group of a run can change the flow of lanes. So the observer gets one notification for
                // all groups of the run.
                observer.issues(&lowered.addresses[run.first as usize..][..run.count as usize], lanes);
            }
            if O::PATHS {
                observer.path(Path::Block, run.count.into());
            }
            self.execute(
                &lowered.operations[run.operations.start as usize..run.operations.end as usize],
                lanes,
            );
            if run.kills {
                wave.flow.kill_lanes(Mask(self.lanes.killed));
                self.lanes.killed = 0;
            }
            if run.masks {
                if wave.flow.update_execute_mask(clause.form, Mask(self.lanes.skip)) {
                    wave.statistics.divergent_branches += 1;
                }
                // The reference interpreter may run later groups of the clause, and reads `mask_updated`.
                wave.clause.mask_updated |= clause.whole_state;
                lanes = wave.flow.alu_lanes(clause.whole_quad_mode);
                if lanes.is_empty() && !wave.strict() {
                    break;
                }
            }
        }
        self.leave(wave, clause, (pc, active), observer)?;
        before.announce(&mut wave.flow, observer);
        Ok(())
    }

    /// Runs and counts the operations of a clause with only one run of groups ([`Groups`]).
    #[inline(always)]
    pub(super) fn run_single(&mut self, clause: &Clause, run: &Groups, active: Mask) {
        self.counts.runs[clause.runs.start as usize] += 1;
        self.lanes.predicate = u64::MAX;
        self.execute(
            &self.lowered.operations[run.operations.start as usize..run.operations.end as usize],
            active,
        );
    }

    /// Runs operations on the registers.
    #[inline(always)]
    pub(super) fn execute(&mut self, operations: &[Operation], lanes: Mask) {
        self.lanes.sets[usize::from(ACTIVE)] = lanes;
        for operation in operations {
            // SAFETY: the lowering created the operations for the level of this code. The processor supports this
            // level.
            unsafe { (operation.run)(&mut self.lanes, operation) };
        }
    }

    /// Runs group `number` of the program on the reference interpreter.
    #[cold]
    fn group_by_reference<O: Observer>(
        &mut self,
        wave: &mut Wave,
        clause: &Clause,
        number: u32,
        observer: &mut O,
    ) -> Result<Step, Trap<Cause>> {
        let group = &self.lowered.groups[number as usize];
        wave.at = At::Group((number - clause.first_group) as usize);
        if !clause.whole_state {
            *wave.clause = ClauseState::default();
        }
        wave.clause.address_defined = group.address;
        for (chan, row) in self.lowered.address.iter().enumerate().filter(|(chan, _)| group.address[*chan]) {
            wave.clause.address[chan] = self.lanes.row(*row).map(|word| word as i32);
        }
        wave.clause.defined = group.defined;
        wave.clause.predicate = Mask(self.lanes.predicate);
        wave.clause.predicate_written = group.predicate_written;
        let step = self.by_reference(wave, observer)?;
        self.lanes.predicate = wave.clause.predicate.0;
        for (chan, row) in self.lowered.address.iter().enumerate() {
            if wave.clause.address_defined[chan] {
                self.lanes.frame.row_mut(*row).0 = wave.clause.address[chan].map(|index| index as u32);
            }
        }
        self.lanes.loop_index = wave.flow.loop_index().unwrap_or(0);
        Ok(step)
    }
}

/// Executes an instruction that only changes the flow of lanes. For frequent instructions, this function contains a
/// direct call. The compiler can inline such a call. For all other instructions, this function calls the function in
/// the table of instructions.
#[inline(always)]
pub(super) fn decide(flow: &mut Flow, inst: CfInst, control: &Control) -> Result<(), FlowFault> {
    match inst {
        CfInst::LOOP_END => flow.loop_end(control),
        CfInst::JUMP => flow.jump(control),
        CfInst::ELSE => flow.else_(control),
        CfInst::POP => flow.pop(control),
        _ => by_row(flow, inst, control),
    }
}

/// Executes an instruction that [`decide`] does not inline.
#[inline(never)]
fn by_row(flow: &mut Flow, inst: CfInst, control: &Control) -> Result<(), FlowFault> {
    match control::cf(inst).work {
        CfWork::Flow(step) => step(flow, control),
        CfWork::Fetch { .. } | CfWork::Emit { .. } | CfWork::WaitAck => {
            unreachable!("the reference interpreter runs these")
        }
    }
}
