//! From clauses to passes: where they begin, what follows what, and where they end.
//!
//! A pass begins at a control-flow instruction and goes on for as long as it is known what follows: from ALU clause to ALU
//! clause, past ALU_BREAKs, through conditionals that ALU_PUSH_BEFORE opens. It is a loop if it comes to the LOOP_END that leads
//! back to its beginning.

use std::collections::BTreeSet;
use std::ops::Range;

use reconverge_jit::{Back, Plan, Segment, Step};
use reconverge_simt::compiling::Extent;

use super::code::{Program, Way};
use super::{ACTIVE_ROW, CALLEE, Found, Ran};
use crate::fast::lanes::ACTIVE;
use crate::fast::lower::{Clause, Groups, Lowered, Template, Work};
use crate::flow::{AluForm, Condition, Control};
use crate::words::CfInst;

/// Instructions of a pass at most: what a turn tries must fit into what a wavefront may run at once.
const MOST_INSTRUCTIONS: u32 = 400;

/// Words of lanes that leave, the last ones of the state: between runs these are zero.
const LEAVES: u32 = 16;

/// The other words.
const WORDS: usize = reconverge_jit::WORDS - LEAVES as usize;

/// Conditionals that are open at once in a pass, at most.
const DEEPEST: u32 = 8;

/// Finds the passes of a program, by the number of the control-flow instruction where they begin.
pub(super) fn passes(lowered: &Lowered, extent: Extent) -> Vec<(u32, Found)> {
    let program =
        Program { tables: &lowered.tables, constants: &lowered.constants, registers: lowered.registers };
    // Asked of a segment of its own, once for each operation.
    let has_template: Vec<bool> = (lowered.operations.iter().zip(&lowered.templates))
        .map(|(operation, template)| Way::new(&program, ACTIVE_ROW, true).operation(operation, *template))
        .collect();
    let trace = |head: u32| Tracer::new(lowered, &program, &has_template, extent, head).trace();
    let heads: BTreeSet<u32> = (0..lowered.nodes.len() as u32)
        .filter_map(|number| match &lowered.nodes[number as usize].work {
            Work::Flow(CfInst::LOOP_END, control) => Some(lowered.first_of(number) + control.addr),
            _ => None,
        })
        .collect();
    extent.choose(&heads, lowered.nodes.len() as u32, trace, |found| (found.plan.most(), found.next))
}

/// What a side of a conditional consists of.
enum Part {
    /// An ALU clause, with its number.
    Clause(u32),
    If(Conditional),
}

/// A conditional that consists of templates only.
struct Conditional {
    /// The ALU_PUSH_BEFORE; its JUMP follows.
    push: u32,
    taken: Vec<Part>,
    /// The ELSE and what follows it.
    other: Option<(u32, Vec<Part>)>,
    pop: Option<Pop>,
    /// What follows behind it.
    next: u32,
}

/// The POP at the end of a conditional.
struct Pop {
    number: u32,
    /// It is where the jump over the last side leads.
    always: bool,
}

/// A pass while it is found.
struct Tracer<'a> {
    lowered: &'a Lowered,
    program: &'a Program<'a>,
    /// By operation.
    has_template: &'a [bool],
    extent: Extent,
    head: u32,
    quick: Way<'a>,
    exact: Way<'a>,
    segments: Vec<Segment>,
    steps: Vec<Step>,
    at: Vec<u32>,
    ran: Vec<Ran>,
    calls: Vec<Range<u32>>,
    words: u32,
    leaves: u32,
    branches: usize,
    templates: usize,
    instructions: u32,
    depth: u32,
    pushes: u32,
    in_loop: bool,
    /// It is so many groups of a clause that has more.
    cut: Option<u32>,
}

impl<'a> Tracer<'a> {
    fn new(
        lowered: &'a Lowered,
        program: &'a Program<'a>,
        has_template: &'a [bool],
        extent: Extent,
        head: u32,
    ) -> Self {
        Tracer {
            lowered,
            program,
            has_template,
            extent,
            head,
            quick: Way::new(program, ACTIVE_ROW, false),
            exact: Way::new(program, ACTIVE_ROW, true),
            segments: Vec::new(),
            steps: Vec::new(),
            at: Vec::new(),
            ran: Vec::new(),
            calls: Vec::new(),
            words: 0,
            leaves: 0,
            branches: 0,
            templates: 0,
            instructions: 0,
            depth: 0,
            pushes: 0,
            in_loop: false,
            cut: None,
        }
    }

    /// Instructions of the pass at most.
    fn most(&self) -> u32 {
        MOST_INSTRUCTIONS.min(self.extent.most())
    }

    fn word(&mut self) -> u32 {
        self.words += 1;
        self.words - 1
    }

    fn step(&mut self, step: Step, number: u32) {
        self.steps.push(step);
        self.at.push(number - self.lowered.first_of(number));
    }

    fn both(&mut self, mut each: impl FnMut(&mut Way<'a>)) {
        each(&mut self.quick);
        each(&mut self.exact);
    }

    /// A clause that is one run of groups.
    fn clause(&self, number: u32) -> Option<(&'a Clause, &'a Groups)> {
        match &self.lowered.nodes.get(number as usize)?.work {
            Work::Alu(clause) if !clause.end => Some((clause, clause.single.as_ref()?)),
            _ => None,
        }
    }

    /// An instruction that only decides about flow, for all active lanes.
    fn flow(&self, number: u32) -> Option<(CfInst, &'a Control)> {
        let node = self.lowered.nodes.get(number as usize)?;
        let Work::Flow(inst, control) = &node.work else { return None };
        let plain = control.cond == Condition::Active
            && !control.whole_quad_mode
            && !control.valid_pixel_mode
            && !node.end;
        plain.then_some((*inst, control))
    }

    /// The operations of a run, with their templates.
    fn operations(&self, run: &Groups) -> impl Iterator<Item = (u32, Template)> + use<'a> {
        let templates = &self.lowered.templates;
        run.operations.clone().map(|number| (number, templates[number as usize]))
    }

    fn is_all_templates(&self, run: &Groups) -> bool {
        run.operations.clone().all(|number| self.has_template[number as usize])
    }

    /// Whether the operations of a run that have no template can be called: calls do not see the predicate, and what decides
    /// about lanes is not theirs.
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

    /// Goes from clause to clause.
    fn trace(mut self) -> Option<Found> {
        let mut number = self.head;
        let back = loop {
            if let Some((CfInst::LOOP_END, control)) = self.flow(number)
                && number > self.head
                && self.instructions < self.most()
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

    /// A clause or a conditional; gives what follows, or `None` where the pass ends before it.
    fn next(&mut self, number: u32) -> Option<u32> {
        let (clause, run) = self.clause(number)?;
        if self.extent.cuts_blocks() && number == self.head && 1 + run.count > self.most() {
            self.cut(number, run);
            return None;
        }
        let called = run.operations.clone().filter(|number| !self.has_template[*number as usize]).count();
        if called > 0 && !self.can_call(run)
            || self.instructions + 1 + run.count > self.most()
            || self.words as usize + called > WORDS
            || self.leaves == LEAVES
        {
            return None;
        }
        match (clause.form, run.masks) {
            (AluForm::ALU, false) => self.execute(number, run, 0),
            (AluForm::ALU_CONTINUE, false) => {
                self.in_loop = true;
                self.execute(number, run, 0);
            }
            (AluForm::ALU_BREAK, masks) => {
                self.in_loop = true;
                self.execute(number, run, 0);
                if masks {
                    let word = reconverge_jit::WORDS as u32 - 1 - self.leaves;
                    self.leaves += 1;
                    self.both(|way| {
                        let skip = way.end();
                        way.rows.leave(word, skip);
                    });
                    self.step(Step::Leave { word, arrives: false }, number);
                }
            }
            (AluForm::ALU_PUSH_BEFORE, true) => {
                let conditional = self.conditional(number, 1)?;
                let next = conditional.next;
                let mut counted = (0, 0);
                self.measure(&conditional, &mut counted);
                let (branches, instructions) = counted;
                if self.branches + branches > reconverge_jit::BRANCHES
                    || self.instructions + instructions > self.most()
                    || self.words as usize + branches > WORDS
                {
                    return None;
                }
                self.branches += branches;
                self.branch(&conditional);
                return Some(next);
            }
            _ => return None,
        }
        Some(number + 1)
    }

    // Conditionals.

    /// The conditional that an ALU_PUSH_BEFORE opens at a depth, if all of it is templates.
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

    /// How a conditional ends whose last side ends before `end`, and what follows, if the jump over that side leads there.
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

    /// The parts from a place on, where they end, and whether the last one has popped.
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

    /// Adds the branches and instructions of a conditional.
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
        self.pushes = self.pushes.max(self.depth);
        let depth = self.depth;
        self.execute(push, run, depth);
        let word = self.word();
        self.both(|way| {
            let skip = way.end();
            let taken = way.rows.slice.not(skip);
            way.rows.open(word, taken);
        });
        self.step(Step::If(word), push);
        self.node(push + 1, true);
        self.parts(&conditional.taken);
        if let Some((number, not)) = &conditional.other {
            self.node(*number, true);
            self.both(|way| way.rows.other());
            self.step(Step::Else, *number);
            self.parts(not);
            self.pops(conditional);
        } else {
            self.pops(conditional);
            self.step(Step::Else, push);
        }
        self.both(|way| way.rows.close());
        self.step(Step::End, push);
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

    /// An instruction that only decides; `always`: also where no lane runs it.
    fn node(&mut self, number: u32, always: bool) {
        self.ran.push(Ran::Node(number));
        self.instructions += 1;
        self.step(if always { Step::Meanwhile(1) } else { Step::Run(1) }, number);
    }

    /// The groups of a clause, which pushes a branch at this depth.
    fn execute(&mut self, number: u32, run: &'a Groups, depth: u32) {
        self.operations_of(number, run.operations.clone());
        let ends = !run.masks;
        self.both(|way| {
            if ends {
                way.end();
            }
        });
        self.ran.push(Ran::Clause { run: run_of(self.lowered, number), depth });
        self.instructions += 1 + run.count;
        self.step(Step::Run(1 + run.count), number);
    }

    /// The first groups of a clause, as many as a pass may have: to compare what they leave.
    fn cut(&mut self, number: u32, run: &'a Groups) {
        let lowered = self.lowered;
        let count = self.most() - 1;
        let end = run.first + count;
        let groups_of = |number: u32| lowered.groups_of[number as usize];
        let operations = run.operations.clone().filter(|number| groups_of(*number)[0] < end);
        let called = operations.clone().filter(|number| !self.has_template[*number as usize]).count();
        // An operation may be of two groups.
        let whole = operations.clone().all(|number| groups_of(number)[1] < end);
        if count == 0 || !whole || called > 0 && !self.can_call(run) || called > WORDS {
            return;
        }
        self.operations_of(number, operations);
        self.both(|way| {
            way.end();
        });
        self.ran.push(Ran::Clause { run: run_of(lowered, number), depth: 0 });
        self.instructions += 1 + count;
        self.cut = Some(count);
        self.step(Step::Run(1 + count), number);
    }

    /// The operations of a clause, or the first of them.
    fn operations_of(&mut self, number: u32, operations: impl Iterator<Item = u32>) {
        let lowered = self.lowered;
        self.both(Way::begin);
        for operation in operations {
            if self.has_template[operation as usize] {
                let template = lowered.templates[operation as usize];
                let operation = &lowered.operations[operation as usize];
                self.both(|way| {
                    way.operation(operation, template);
                });
                self.templates += 1;
            } else {
                self.call(number, operation);
            }
        }
    }

    /// Ends the segment with the call of an operation.
    fn call(&mut self, number: u32, operation: u32) {
        let word = self.word();
        let callee = (CALLEE, self.calls.len() as u32, word);
        let nothing = BTreeSet::new();
        let (quick, exact) = self.ways();
        let (quick, exact) = (quick.store(&nothing, Some(word)), exact.store(&nothing, Some(word)));
        self.segments.push(Segment::new(Some(quick), exact, Some(callee)));
        self.calls.push(operation..operation + 1);
        self.step(Step::Call, number);
    }

    /// The segment's ways; others begin.
    fn ways(&mut self) -> (Way<'a>, Way<'a>) {
        let new = |exact: bool| Way::new(self.program, ACTIVE_ROW, exact);
        let (quick, exact) = (new(false), new(true));
        (std::mem::replace(&mut self.quick, quick), std::mem::replace(&mut self.exact, exact))
    }

    fn finish(mut self, back: Back, number: u32) -> Option<Found> {
        let (quick, exact) = self.ways();
        let lazy = back == Back::Always && self.segments.is_empty();
        let mut dropped = BTreeSet::new();
        if lazy {
            dropped.extend(quick.rows.covered().intersection(exact.rows.covered()).copied());
        }
        let nothing = BTreeSet::new();
        let (quick, exact) = (quick.store(&dropped, None), exact.store(&nothing, None));
        self.segments.push(Segment::new(Some(quick), exact, None));
        let lazy = lazy && !dropped.is_empty();
        let plan =
            Plan { segments: self.segments, steps: self.steps, back, mask: ACTIVE_ROW, lazy, joins: false };
        let gain = 2 * self.templates as i32 - 8 * self.calls.len() as i32;
        let worth = self.extent.pays(gain, back == Back::Never);
        let runs = plan.steps.iter().any(|step| matches!(step, Step::Run(_)));
        (worth && runs && plan.fits()).then_some(Found {
            plan,
            at: self.at,
            ran: self.ran,
            calls: self.calls,
            after: number - self.lowered.first_of(self.head),
            next: number,
            pushes: self.pushes,
            in_loop: self.in_loop,
            cut: self.cut,
        })
    }
}

/// The number of a clause's run.
fn run_of(lowered: &Lowered, number: u32) -> u32 {
    match &lowered.nodes[number as usize].work {
        Work::Alu(clause) => clause.runs.start,
        _ => 0,
    }
}
