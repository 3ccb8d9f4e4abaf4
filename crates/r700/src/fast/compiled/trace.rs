//! Traces regions through clauses: entries, successors and ends.
//!
//! A region begins at a control-flow instruction. It continues from ALU clause to ALU clause while the next instruction
//! is known, past ALU_BREAKs and through conditionals that ALU_PUSH_BEFORE opens. It is a loop if it reaches the
//! LOOP_END that leads back to its entry.

use reconverge_isa::sets::NumberSet;
use reconverge_jit::{Back, Builder, Step};
use reconverge_simt::compiling::Extent;

use super::code::Way;
use super::run::R700;
use super::{At, Found, Own};
use crate::fast::lanes::ACTIVE;
use crate::fast::lower::{Clause, Groups, Lowered, Template, Work};
use crate::flow::{AluForm, Condition, Control};
use crate::words::CfInst;

/// Maximum number of conditionals that are open at once in a region.
const DEEPEST: u32 = 8;

/// Finds the regions of a program, by the number of the control-flow instruction at which they begin.
pub(super) fn regions(lowered: &Lowered, extent: Extent) -> Vec<(u32, Found)> {
    // Each operation is probed once, in a separate segment.
    let has_template: Vec<bool> = (lowered.operations.iter().zip(&lowered.templates))
        .map(|(operation, template)| Way::new(lowered, true).operation(operation, *template))
        .collect();
    let trace = |head: u32| {
        let builder = Builder::new(extent, Way::new(lowered, false), Way::new(lowered, true));
        let own = Own { after: 0, pushes: 0, in_loop: false, cut: None };
        Tracer { lowered, has_template: &has_template, extent, head, builder, depth: 0, own }.trace()
    };
    let heads: NumberSet = (0..lowered.nodes.len() as u32)
        .filter_map(|number| match &lowered.nodes[number as usize].work {
            Work::Flow(CfInst::LOOP_END, control) => Some(lowered.first_of(number) + control.addr),
            _ => None,
        })
        .collect();
    extent.choose(&heads, lowered.nodes.len() as u32, trace, Found::size)
}

/// Part of one side of a conditional.
enum Part {
    /// An ALU clause, with its number.
    Clause(u32),
    If(Conditional),
}

/// A conditional that consists only of templates.
struct Conditional {
    /// The ALU_PUSH_BEFORE; its JUMP follows.
    push: u32,
    taken: Vec<Part>,
    /// The ELSE and what follows it.
    other: Option<(u32, Vec<Part>)>,
    pop: Option<Pop>,
    /// The instruction after the conditional.
    next: u32,
}

/// The POP at the end of a conditional.
struct Pop {
    number: u32,
    /// Whether the jump over the last side leads to this POP.
    always: bool,
}

/// State of tracing one region.
struct Tracer<'a> {
    lowered: &'a Lowered,
    /// Whether each operation has a template, indexed by operation.
    has_template: &'a [bool],
    extent: Extent,
    head: u32,
    builder: Builder<R700, Way<'a>>,
    /// Number of open conditionals.
    depth: u32,
    own: Own,
}

impl<'a> Tracer<'a> {
    /// Returns the position of a step after the groups of a clause.
    fn after(&self, number: u32) -> At {
        At::After(number - self.lowered.first_of(number))
    }

    /// Returns a clause that is one run of groups.
    fn clause(&self, number: u32) -> Option<(&'a Clause, &'a Groups)> {
        match &self.lowered.nodes.get(number as usize)?.work {
            Work::Alu(clause) if !clause.end => Some((clause, clause.single.as_ref()?)),
            _ => None,
        }
    }

    /// Returns an instruction that only decides about flow, for all active lanes.
    fn flow(&self, number: u32) -> Option<(CfInst, &'a Control)> {
        let node = self.lowered.nodes.get(number as usize)?;
        let Work::Flow(inst, control) = &node.work else { return None };
        let plain = control.cond == Condition::Active
            && !control.whole_quad_mode
            && !control.valid_pixel_mode
            && !node.end;
        plain.then_some((*inst, control))
    }

    /// Returns the operations of a run, with their templates.
    fn operations(&self, run: &Groups) -> impl Iterator<Item = (u32, Template)> + use<'a> {
        let templates = &self.lowered.templates;
        run.operations.clone().map(|number| (number, templates[number as usize]))
    }

    fn is_all_templates(&self, run: &Groups) -> bool {
        run.operations.clone().all(|number| self.has_template[number as usize])
    }

    /// Returns whether the operations of a run that have no template can be called. Calls do not see the predicate, and
    /// must not decide about lanes.
    fn can_call(&self, run: &Groups) -> bool {
        let mut decided = false;
        self.operations(run).all(|(number, template)| {
            let operation = &self.lowered.operations[number as usize];
            let plain = operation.set == ACTIVE && !operation.update_pred && template != Template::Sets;
            let called = !self.has_template[number as usize];
            let fits = plain && !(called && (decided || operation.update_execute_mask));
            decided |= operation.update_execute_mask;
            fits
        })
    }

    /// Traces one clause after another.
    fn trace(mut self) -> Option<Found> {
        let mut number = self.head;
        let back = loop {
            if let Some((CfInst::LOOP_END, control)) = self.flow(number)
                && number > self.head
                && self.builder.instructions < self.builder.most()
                && self.lowered.first_of(number) + control.addr == self.head
            {
                self.node(number, false);
                break Back::Always;
            }
            match self.next(number) {
                Some(next) => number = next,
                None => break Back::Never,
            }
        };
        self.finish(back, number)
    }

    /// Adds a clause or a conditional. Returns the number of the next instruction, or `None` if the region ends before
    /// the clause.
    fn next(&mut self, number: u32) -> Option<u32> {
        let (clause, run) = self.clause(number)?;
        if self.extent.cuts_blocks() && number == self.head && 1 + run.count > self.builder.most() {
            self.cut(number, run);
            return None;
        }
        let called = run.operations.clone().filter(|number| !self.has_template[*number as usize]).count();
        if called > 0 && !self.can_call(run) || !self.builder.has_room(1 + run.count, called, 0) {
            return None;
        }
        match (clause.form, run.masks) {
            (AluForm::ALU, false) => self.execute(number, run, 0),
            (AluForm::ALU_CONTINUE, false) => {
                self.own.in_loop = true;
                self.execute(number, run, 0);
            }
            (AluForm::ALU_BREAK, masks) => {
                self.own.in_loop = true;
                self.execute(number, run, 0);
                if masks {
                    let step = |word| Step::Leave { word, arrives: false };
                    self.builder.leave(self.after(number), step, Way::end);
                }
            }
            (AluForm::ALU_PUSH_BEFORE, true) => {
                let conditional = self.conditional(number, 1)?;
                let next = conditional.next;
                let mut counted = (0, 0);
                self.measure(&conditional, &mut counted);
                let (branches, instructions) = counted;
                if !self.builder.has_room(instructions, branches, branches) {
                    return None;
                }
                self.branch(&conditional);
                return Some(next);
            }
            _ => return None,
        }
        Some(number + 1)
    }

    // Conditionals.

    /// Returns the conditional that an ALU_PUSH_BEFORE opens at a depth, if all of it consists of templates.
    fn conditional(&self, push: u32, depth: u32) -> Option<Conditional> {
        let (clause, run) = self.clause(push)?;
        let opens = clause.form == AluForm::ALU_PUSH_BEFORE && run.masks && self.is_all_templates(run);
        let Some((CfInst::JUMP, jump)) = self.flow(push + 1).filter(|_| opens && depth <= DEEPEST) else {
            return None;
        };
        let first = self.lowered.first_of(push);
        let (taken, end, popped) = self.side(push + 2, depth)?;
        if popped || !matches!(self.flow(end), Some((CfInst::ELSE, _))) {
            let (pop, next) = self.pop(end, popped, first, jump)?;
            return Some(Conditional { push, taken, other: None, pop, next });
        }
        let Some((CfInst::ELSE, over)) = self.flow(end) else { return None };
        if (first + jump.addr, jump.pop_count) != (end, 0) {
            return None;
        }
        let (not, behind, popped) = self.side(end + 1, depth)?;
        let (pop, next) = self.pop(behind, popped, first, over)?;
        Some(Conditional { push, taken, other: Some((end, not)), pop, next })
    }

    /// Returns the end of a conditional whose last side ends before `end`, and the next instruction. Returns `None`
    /// unless the jump over that side leads there.
    fn pop(&self, end: u32, popped: bool, first: u32, over: &Control) -> Option<(Option<Pop>, u32)> {
        let leads = (first + over.addr, over.pop_count);
        if popped {
            return (leads == (end, 1)).then_some((None, end));
        }
        let Some((CfInst::POP, pop)) = self.flow(end) else { return None };
        let always = leads == (end, 0);
        (pop.pop_count == 1 && (always || leads == (end + 1, 1)))
            .then_some((Some(Pop { number: end, always }), end + 1))
    }

    /// Returns the parts of the side that begins at `start`, the number at which they end, and whether the last part
    /// has popped.
    fn side(&self, start: u32, depth: u32) -> Option<(Vec<Part>, u32, bool)> {
        let (mut parts, mut number) = (Vec::new(), start);
        while let Some((clause, run)) = self.clause(number) {
            match (clause.form, run.masks) {
                (AluForm::ALU | AluForm::ALU_POP_AFTER, false) if self.is_all_templates(run) => {
                    parts.push(Part::Clause(number));
                    number += 1;
                    if clause.form == AluForm::ALU_POP_AFTER {
                        return Some((parts, number, true));
                    }
                }
                (AluForm::ALU_PUSH_BEFORE, true) => {
                    let inner = self.conditional(number, depth + 1)?;
                    number = inner.next;
                    parts.push(Part::If(inner));
                }
                _ => break,
            }
        }
        Some((parts, number, false))
    }

    /// Adds the branches and instructions of a conditional to `counted`.
    fn measure(&self, conditional: &Conditional, counted: &mut (usize, u32)) {
        let of_clause = |number: u32| self.clause(number).map_or(0, |(_, run)| 1 + run.count);
        // The JUMP, an ELSE, a POP.
        counted.0 += 1;
        counted.1 += of_clause(conditional.push) + 3;
        let other = conditional.other.iter().flat_map(|(_, parts)| parts);
        for part in conditional.taken.iter().chain(other) {
            match part {
                Part::Clause(number) => counted.1 += of_clause(*number),
                Part::If(inner) => self.measure(inner, counted),
            }
        }
    }

    fn branch(&mut self, conditional: &Conditional) {
        let push = conditional.push;
        let Some((_, run)) = self.clause(push) else { return };
        self.depth += 1;
        self.own.pushes = self.own.pushes.max(self.depth);
        self.execute(push, run, self.depth);
        let at = self.after(push);
        self.builder.open(at, |way| {
            let skip = way.end();
            way.rows.strip.not(skip)
        });
        self.node(push + 1, true);
        self.parts(&conditional.taken);
        if let Some((number, not)) = &conditional.other {
            self.node(*number, true);
            self.builder.other(at);
            self.parts(not);
            self.pops(conditional);
        } else {
            self.pops(conditional);
            self.builder.step(Step::Else, at);
        }
        self.builder.close(at);
        self.depth -= 1;
    }

    fn pops(&mut self, conditional: &Conditional) {
        if let Some(pop) = &conditional.pop {
            self.node(pop.number, pop.always);
        }
    }

    fn parts(&mut self, parts: &[Part]) {
        for part in parts {
            match part {
                Part::Clause(number) => {
                    if let Some((_, run)) = self.clause(*number) {
                        self.execute(*number, run, 0);
                    }
                }
                Part::If(inner) => self.branch(inner),
            }
        }
    }

    // Steps.

    /// Adds an instruction that only decides about flow. `always` is whether it takes effect even if no lane runs it.
    fn node(&mut self, number: u32, always: bool) {
        self.builder.instructions += 1;
        self.builder.step(if always { Step::Meanwhile(1) } else { Step::Run(1) }, At::Node(number));
    }

    /// Adds the groups of a clause, which pushes a branch at this depth.
    fn execute(&mut self, number: u32, run: &'a Groups, depth: u32) {
        self.operations_of(number, run.operations.clone());
        if !run.masks {
            self.end();
        }
        self.ran(number, run.count, depth);
    }

    fn end(&mut self) {
        self.builder.both(|way| {
            way.end();
        });
    }

    /// Adds a step for a number of groups of a clause.
    fn ran(&mut self, number: u32, groups: u32, depth: u32) {
        let Work::Alu(clause) = &self.lowered.nodes[number as usize].work else { return };
        self.builder.instructions += 1 + groups;
        self.builder.step(Step::Run(1 + groups), At::Clause { run: clause.runs.start, depth });
    }

    /// Adds the first groups of a clause, up to the limit of the extent. Lockstep compares the state after them.
    fn cut(&mut self, number: u32, run: &'a Groups) {
        let lowered = self.lowered;
        let count = self.builder.most() - 1;
        let end = run.first + count;
        let groups_of = |number: u32| lowered.groups_of[number as usize];
        let operations = run.operations.clone().filter(|number| groups_of(*number)[0] < end);
        let called = operations.clone().filter(|number| !self.has_template[*number as usize]).count();
        // An operation may belong to two groups.
        let whole = operations.clone().all(|number| groups_of(number)[1] < end);
        if count == 0 || !whole || called > 0 && !self.can_call(run) || !self.builder.has_room(0, called, 0) {
            return;
        }
        self.operations_of(number, operations);
        self.end();
        self.own.cut = Some(count);
        self.ran(number, count, 0);
    }

    /// Adds the operations of a clause, or the first of them.
    fn operations_of(&mut self, number: u32, operations: impl Iterator<Item = u32>) {
        let lowered = self.lowered;
        self.builder.both(Way::begin);
        for operation in operations {
            if self.has_template[operation as usize] {
                let template = lowered.templates[operation as usize];
                let operation = &lowered.operations[operation as usize];
                self.builder.both(|way| {
                    way.operation(operation, template);
                });
                self.builder.templates += 1;
            } else {
                self.builder.call(self.after(number), operation..operation + 1);
            }
        }
    }

    fn finish(self, back: Back, number: u32) -> Option<Found> {
        let Tracer { lowered, head, builder, own, .. } = self;
        let first = lowered.first_of(head);
        builder.finish(back, head - first, number, Own { after: number - first, ..own })
    }
}
