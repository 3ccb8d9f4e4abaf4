//! The reference interpreter runs one wavefront, one instruction per step. Its code follows the manual and favours
//! clarity over speed.
//!
//! One step executes one control-flow instruction, one ALU group, or one fetch instruction. A group reads all operands
//! before it writes any result (MAN chapter 4). PV and PS are the results of the previous group.

pub(crate) mod export;
pub(crate) mod fetch;
mod group;
pub(crate) mod texture;

use std::sync::Arc;

use reconverge_simt::registers::Row;
use reconverge_simt::{Event, FlowView, Issue, Machine, Observer, Step, Trap, announced};

use crate::cause::Cause;
use crate::code::{Cf, CfOp, Code};
use crate::control::{self, CfWork};
use crate::flow::{AluForm, Before, Changes, Control};
use crate::rules::Rule;
use crate::wave::{At, ClauseState, Held, PREVIOUS, Wave};
use crate::words::CfInst;

impl Wave {
    /// Returns the code that the wavefront runs: the main program or the fetch program.
    fn current(&self) -> Result<Arc<Code>, Cause> {
        if self.flow.in_fetch_program() {
            self.fetch_code.clone().ok_or(Cause::NoFetchProgram)
        } else {
            Ok(self.code.clone())
        }
    }

    fn advance<O: Observer>(&mut self, observer: &mut O) -> Result<(), Cause> {
        if self.statistics.instructions >= self.options.watchdog {
            return Err(Cause::Watchdog(self.options.watchdog));
        }
        let code = self.current()?;
        let cf = code.cf(self.flow.pc())?;
        if let Some(Issue { pc, mask }) = self.issue() {
            self.statistics.instructions += 1;
            self.statistics.lane_instructions += u64::from(mask.count());
            if O::ENABLED {
                observer.event(Event::Issue { pc, mask });
            }
        }
        match (self.at, &cf.op) {
            (At::Group(number), CfOp::Alu(clause)) => {
                if self.clause.mask_updated {
                    if self.strict() {
                        return Err(Cause::ExecuteMaskNotLast);
                    }
                    self.fidelity.rules.insert(Rule::EXECUTE_MASK_FROM_THE_NEXT_GROUP);
                }
                self.group(clause, code.group(clause, number), observer)?;
                let lanes = self.flow.alu_lanes(clause.whole_quad_mode);
                if number + 1 < clause.group_count()
                    && (lanes.any() || self.clause.mask_updated && self.strict())
                {
                    self.at = At::Group(number + 1);
                } else {
                    self.flow.alu_leave(clause.form)?;
                    self.leave(cf);
                }
            }
            (At::Fetch(number, lanes), CfOp::Fetch(_, _, fetches)) => {
                self.fetch(&fetches[number], lanes, observer)?;
                if number + 1 < fetches.len() {
                    self.at = At::Fetch(number + 1, lanes);
                } else {
                    self.flow.nop();
                    self.leave(cf);
                }
            }
            _ => self.control_flow(cf, observer)?,
        }
        Ok(())
    }

    /// Resets the clause state, PV and PS.
    pub(crate) fn begin_clause(&mut self) {
        *self.clause = ClauseState::default();
        let first = self.previous_row(0);
        self.registers[first..first + PREVIOUS].fill(Row::ZERO);
    }

    /// Continues with the next control-flow instruction, or ends the program.
    pub(crate) fn leave(&mut self, cf: &Cf) {
        self.at = At::ControlFlow;
        if cf.end_of_program {
            self.flow.end_of_program();
        }
    }

    fn control_flow<O: Observer>(&mut self, cf: &Cf, observer: &mut O) -> Result<(), Cause> {
        match &cf.op {
            CfOp::Alu(clause) => {
                let lanes = self.flow.alu_enter(clause.form, clause.whole_quad_mode)?;
                if clause.form == AluForm::ALU_PUSH_BEFORE && self.flow.active().is_empty() {
                    self.fidelity.rules.insert(Rule::ALU_PUSH_BEFORE_ALWAYS_PUSHES);
                }
                if lanes.any() {
                    self.begin_clause();
                    self.at = At::Group(0);
                    return Ok(());
                }
                self.flow.alu_leave(clause.form)?;
            }
            CfOp::Fetch(inst, control, _) => {
                let lanes = self.flow.test(control)?;
                if lanes.any() {
                    if let CfWork::Fetch { acknowledged: true } = control::cf(*inst).work {
                        self.acknowledges += 1;
                    }
                    self.held = Held::default();
                    self.at = At::Fetch(0, lanes);
                    return Ok(());
                }
                self.flow.nop();
            }
            CfOp::Export(control, export) => {
                self.export(control, export)?;
                self.flow.nop();
            }
            CfOp::Memory(control, export) => {
                self.memory_export(control, export, observer)?;
                self.flow.nop();
            }
            CfOp::Control(inst, control) => self.control(*inst, control)?,
        }
        self.leave(cf);
        Ok(())
    }

    fn control(&mut self, inst: CfInst, control: &Control) -> Result<(), Cause> {
        let row = control::cf(inst);
        if row.stage.is_some_and(|stage| stage != self.launch.environment.stage) && self.strict() {
            return Err(Cause::WrongStage { name: inst.name(), stage: self.launch.environment.stage });
        }
        if control.whole_quad_mode {
            self.fidelity.rules.insert(Rule::WHOLE_QUAD_REVIVES_BRANCHES_ONLY);
        }
        match row.work {
            CfWork::Flow(step) => step(&mut self.flow, control)?,
            CfWork::Emit { vertex, cut } => {
                self.flow.nop();
                self.emit(control, vertex, cut)?;
            }
            CfWork::WaitAck => {
                self.acknowledges = self.acknowledges.min(control.addr);
                self.flow.nop();
            }
            // The decoder converts these instructions to [`CfOp::Fetch`], so this arm of the match is never executed.
            CfWork::Fetch { .. } => self.flow.nop(),
        }
        self.fidelity.rules.extend(row.rule);
        Ok(())
    }
}

impl Machine for Wave {
    type Cause = Cause;

    fn step<O: Observer>(&mut self, observer: &mut O) -> Result<Step, Trap<Cause>> {
        if self.flow.done() {
            return Ok(Step::Done);
        }
        let pc = self.position();
        let lanes = self.flow.active();
        let word = self.at == At::ControlFlow;
        let before = Before::of::<O>(&self.flow, if word { Changes::Flow } else { Changes::All });
        if let Err(cause) = announced!(O, |observer| self.advance(observer)) {
            return Err(self.trap(pc, lanes, cause, observer));
        }
        before.announce(&mut self.flow, observer);
        Ok(if self.flow.done() { Step::Done } else { Step::Running })
    }
}
