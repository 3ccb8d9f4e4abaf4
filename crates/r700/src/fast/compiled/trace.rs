//! Traces a program. Tracing converts the clauses of the program to nodes of linked code.
//!
//! A node is a chain of ALU clauses, vertex fetches and conditionals. All parts of the chain have templates. A node
//! ends before an instruction that the fast engine runs, after a clause that changes the stack, at a LOOP_END, and
//! before the target of a jump. A node also ends before an operation without a template. Compiled code calls such an
//! operation. If an ALU_BREAK disables lanes, these lanes leave the node.

use std::ops::Range;

use reconverge_jit::{Branch, Linker, Next, SITES, Target, Waits};
use reconverge_simt::compiling::Extent;

use super::code::Way;
use super::run::R700;
use super::{Counted, End, Own, Parts, Traced};
use crate::fast::indexed::Check;
use crate::fast::lanes::ACTIVE;
use crate::fast::lower::{Bound, Clause, FetchWork, Fetches, Groups, Lowered, Node, Template, Work};
use crate::fast::straight::is_plain;
use crate::flow::{AluForm, Control};
use crate::words::CfInst;

/// Maximum nesting depth of conditionals in a node.
const DEEPEST: u32 = 8;

/// Maximum number of instructions of a node.
const MOST_INSTRUCTIONS: u32 = 400;

/// Maximum number of lane masks that a node stores. Each mask needs one word. A node stores one mask for each
/// conditional. A node also stores one mask for each clause after which lanes leave the node.
const MOST_WORDS: u32 = 48;

/// Traces a program. Returns the nodes of the program, and the vertex buffer of each site. Also returns the
/// instructions of each part, and whether nodes index registers. A node counts how often each of its parts runs.
pub(super) fn trace(lowered: &Lowered, extent: Extent) -> (Traced, Parts, Vec<Bound>, bool) {
    // To find out whether an operation has a template, the tracer emits the operation once into a separate node.
    let has_template: Vec<bool> = (lowered.operations.iter().zip(&lowered.templates))
        .map(|(operation, template)| Way::new(lowered, true).operation(operation, *template))
        .collect();
    let merged: Vec<Option<Groups>> =
        lowered.nodes.iter().map(|node| merged(lowered, node, &has_template)).collect();
    let (sites, buffers) = sites(lowered);
    let (targets, loops) = targets(lowered);
    let sizes: Vec<u32> = lowered.nodes.iter().map(|node| node.most).collect();
    let mut tracer = Tracer {
        lowered,
        has_template: &has_template,
        merged: &merged,
        sites,
        extent,
        chosen: extent.chosen(&sizes, |number| loops[number]),
        targets,
        loops,
        inside: 0..0,
        most: MOST_INSTRUCTIONS.min(extent.most()),
        linker: Linker::new(Way::new(lowered, false), Way::new(lowered, true)),
        starts: vec![None; lowered.nodes.len()],
        parts: Parts::new(),
        own: Open::at(0),
        checked: 0,
        before: 0,
    };
    let mut number = 0;
    while number < lowered.nodes.len() as u32 {
        number = tracer.chain(number);
    }
    let Tracer { linker, starts, parts, .. } = tracer;
    let mut traced = linker.finish(&starts);
    traced.spread(|next, own| next.in_loop && !std::mem::replace(&mut own.in_loop, true));
    (traced, parts, buffers, merged.iter().any(Option::is_some))
}

/// Joins the runs of an ALU clause to one run. The function returns `None` if anything except checks of indexed
/// registers separates the runs. The function also returns `None` if some operation has no template.
fn merged(lowered: &Lowered, node: &Node, has_template: &[bool]) -> Option<Groups> {
    let Work::Alu(clause) = &node.work else { return None };
    let runs = &lowered.runs[clause.runs.start as usize..clause.runs.end as usize];
    let (last, others) = runs.split_last()?;
    let alone = clause.single.is_none() && !clause.whole_state && !clause.loop_index;
    let plain = |run: &Groups| !run.by_reference && !run.kills && checks_itself(lowered, run);
    if !alone || clause.whole_quad_mode || !runs.iter().all(plain) || others.iter().any(|run| run.masks) {
        return None;
    }
    let mut operations = runs.iter().map(|run| run.operations.clone()).filter(|range| !range.is_empty());
    let first = operations.next()?;
    let operations = first.start..operations.next_back().unwrap_or(first).end;
    operations.clone().all(|number| has_template[number as usize]).then(|| Groups {
        first: runs[0].first,
        count: runs.iter().map(|run| run.count).sum(),
        operations,
        checks: Vec::new(),
        ..last.clone()
    })
}

/// Returns whether the templates of a run also perform the checks of the run's indexed registers.
fn checks_itself(lowered: &Lowered, run: &Groups) -> bool {
    let contains = |check: &Check| {
        run.operations.clone().any(|number| {
            let operation = &lowered.operations[number as usize];
            lowered.templates[number as usize] == Template::Indexed
                && check.index == Some(operation.src[0])
                && u32::from(check.register) == operation.number >> 2
        })
    };
    run.checks.iter().all(contains)
}

/// Returns the site of each fetch instruction that has a template, and the vertex buffer of each site. The state that
/// SET_GRADIENTS sets must survive between the instructions of a fetch clause. Therefore, in a program with
/// SET_GRADIENTS, no fetch instruction has a site.
fn sites(lowered: &Lowered) -> (Vec<Option<u32>>, Vec<Bound>) {
    let mut buffers: Vec<Bound> = Vec::new();
    let works = || lowered.fetches.iter().map(|info| info.fetching.as_ref().map(|fetching| &fetching.work));
    if works().any(|work| matches!(work, None | Some(FetchWork::SetGradients(_)))) {
        return (vec![None; lowered.fetches.len()], buffers);
    }
    let mut site = |number: usize| {
        let fetching = lowered.fetches[number].fetching.as_ref()?;
        Way::new(lowered, true).fetch(fetching, 0)?;
        let FetchWork::Vertex(vertex) = &fetching.work else { return Some(0) };
        let known = buffers.iter().position(|bound| *bound == vertex.bound);
        let site = known.unwrap_or(buffers.len()) as u32;
        if known.is_none() && site < SITES {
            buffers.push(vertex.bound);
        }
        (site < SITES).then_some(site)
    };
    let sites = (0..lowered.fetches.len()).map(&mut site).collect();
    (sites, buffers)
}

/// Returns two lists with an entry for each instruction. The first list has the instructions whose ADDR is this
/// instruction. The second list states whether this instruction is in a loop.
fn targets(lowered: &Lowered) -> (Vec<Vec<u32>>, Vec<bool>) {
    let (mut targets, mut loops) = (vec![Vec::new(); lowered.nodes.len()], vec![false; lowered.nodes.len()]);
    for (number, node) in lowered.nodes.iter().enumerate() {
        let Work::Flow(inst, control) = &node.work else { continue };
        let target = (lowered.first_of(number as u32) + control.addr) as usize;
        if let Some(sources) = targets.get_mut(target) {
            sources.push(number as u32);
            if *inst == CfInst::LOOP_END && target <= number {
                loops[target..=number].fill(true);
            }
        }
    }
    (targets, loops)
}

/// A part of a side of a conditional. A conditional has a side for lanes whose condition is true. A conditional with an
/// ELSE also has a side for lanes whose condition is false.
enum Part {
    /// An ALU clause, or a clause of vertex fetches. The value is the number of the control-flow instruction.
    Clause(u32),
    If(Conditional),
}

/// A conditional that consists only of templates.
struct Conditional {
    /// Number of the ALU_PUSH_BEFORE. The JUMP of the conditional is the instruction after the ALU_PUSH_BEFORE.
    push: u32,
    taken: Vec<Part>,
    /// The number of the ELSE. The list has the parts of the side after the ELSE. If the conditional has no ELSE, the
    /// field is `None`.
    other: Option<(u32, Vec<Part>)>,
    pop: Option<Pop>,
    /// Number of the instruction after the conditional.
    next: u32,
}

/// A POP at the end of a conditional.
struct Pop {
    number: u32,
    /// Whether the POP is issued even if no lane runs the last side of the conditional. If this field is set, the jump
    /// over the last side leads to the POP.
    always: bool,
}

/// Instructions that run for the same set of lanes.
#[derive(Default)]
struct Together {
    size: u32,
    counted: Vec<Counted>,
}

impl Together {
    fn add(&mut self, size: u32, counted: Counted) {
        self.size += size;
        self.counted.push(counted);
    }

    fn add_clause(&mut self, clause: &Clause, run: &Groups) {
        self.size += 1 + run.count;
        self.counted.extend(clause.runs.clone().map(Counted::Run));
    }
}

/// The node that is being traced.
struct Open {
    pc: u32,
    in_loop: bool,
    leaves: Vec<u32>,
    /// The instructions after the latest clause at which lanes can leave the node.
    last: Together,
}

impl Open {
    fn at(pc: u32) -> Open {
        Open { pc, in_loop: false, leaves: Vec::new(), last: Together::default() }
    }
}

/// State of the tracing of a program.
struct Tracer<'a> {
    lowered: &'a Lowered,
    /// Whether each operation has a template.
    has_template: &'a [bool],
    /// For each clause with several runs, one run that joins all runs of the clause. If compiled code cannot run the
    /// clause as one run, the entry is `None`.
    merged: &'a [Option<Groups>],
    /// The site of each fetch instruction that has a template.
    sites: Vec<Option<u32>>,
    extent: Extent,
    /// For each instruction, whether the instruction is compiled.
    chosen: Vec<bool>,
    /// For each instruction, the instructions whose ADDR names this instruction.
    targets: Vec<Vec<u32>>,
    /// For each instruction, whether the instruction is part of a loop.
    loops: Vec<bool>,
    /// Numbers of the instructions of the latest conditional in the open node.
    inside: Range<u32>,
    /// Maximum number of instructions in a node.
    most: u32,
    linker: Linker<R700, Way<'a>>,
    /// For each instruction, the node that begins at the instruction. If no node begins at an instruction, the entry is
    /// `None`.
    starts: Vec<Option<u32>>,
    parts: Parts,
    own: Open,
    /// The latest node that checks the instruction budget.
    checked: u32,
    /// Number of instructions from the start of the node `checked` to the current position.
    before: u32,
}

impl<'a> Tracer<'a> {
    /// Returns the address of an instruction.
    fn pc(&self, number: u32) -> u32 {
        number - self.lowered.first_of(number)
    }

    /// Returns the clause with this number. Returns `None` if the clause consists of several runs of groups or ends the
    /// program.
    fn clause(&self, number: u32) -> Option<(&'a Clause, &'a Groups)> {
        match &self.lowered.nodes.get(number as usize)?.work {
            Work::Alu(clause) if !clause.end => {
                let merged = self.merged[number as usize].as_ref();
                Some((clause, clause.single.as_ref().or(merged)?))
            }
            _ => None,
        }
    }

    /// Returns the instruction with this number if two conditions are met: the instruction only changes the flow of
    /// lanes, and the instruction applies to all active lanes. Otherwise, the function returns `None`.
    fn flow(&self, number: u32) -> Option<(CfInst, &'a Control)> {
        let node = self.lowered.nodes.get(number as usize)?;
        let Work::Flow(inst, control) = &node.work else { return None };
        (is_plain(control) && !node.end).then_some((*inst, control))
    }

    /// Returns the fetch clause with this number if all active lanes run the clause and all instructions of the clause
    /// have templates. Otherwise, the function returns `None`.
    fn fetches(&self, number: u32) -> Option<&'a Fetches> {
        let node = self.lowered.nodes.get(number as usize)?;
        let Work::Fetch(clause) = &node.work else { return None };
        let sites = &self.sites[clause.first as usize..(clause.first + clause.count) as usize];
        let plain = is_plain(&clause.control) && !clause.acknowledged && !node.end;
        (plain && sites.iter().all(Option::is_some)).then_some(clause)
    }

    /// Returns the number of instructions of a clause.
    fn size(&self, number: u32) -> u32 {
        let groups = self.clause(number).map(|(_, run)| run.count);
        1 + groups.or(self.fetches(number).map(|clause| clause.count)).unwrap_or(0)
    }

    fn is_all_templates(&self, run: &Groups) -> bool {
        run.operations.clone().all(|number| self.has_template[number as usize])
    }

    /// Returns whether the tracer compiles a run. The tracer compiles a run if two conditions hold. First, each
    /// operation of the run has a template, or compiled code can call the operation. Second, compiling the run is
    /// worthwhile. A called operation cannot access the predicate, and must not change the set of active lanes.
    fn compiles(&self, run: &Groups) -> bool {
        if self.is_all_templates(run) {
            return true;
        }
        let (mut decided, mut gain, mut last_called) = (false, 0, false);
        let fits = run.operations.clone().all(|number| {
            let operation = &self.lowered.operations[number as usize];
            let is_sets = self.lowered.templates[number as usize] == Template::Sets;
            let plain = operation.set == ACTIVE && !operation.update_pred && !is_sets;
            let called = !self.has_template[number as usize];
            let fits = plain && !(called && (decided || operation.update_execute_mask));
            decided |= operation.update_execute_mask;
            gain += if !called {
                2
            } else if last_called {
                0
            } else {
                -8
            };
            last_called = called;
            fits
        });
        fits && self.extent.pays(gain + 8, false)
    }

    /// Returns whether an instruction exists and is part of the program whose first instruction is `first`.
    fn is_in_program(&self, first: u32, number: u32) -> bool {
        (number as usize) < self.lowered.nodes.len() && self.lowered.first_of(number) == first
    }

    /// Returns whether a node can begin with an instruction. No node begins with the last instruction of a program,
    /// because no later address exists for the end of the node.
    fn begins(&self, number: u32) -> bool {
        self.is_in_program(self.lowered.first_of(number), number + 1)
            && self.chosen.get(number as usize) == Some(&true)
            && (self.fetches(number).is_some()
                || self.clause(number).is_some_and(|(_, run)| self.compiles(run)))
    }

    /// Returns whether a node that begins with an instruction saves time. Entering compiled code takes time. A node
    /// with only one short clause usually saves less time than the entry takes. The node saves more time if a LOOP_END
    /// or a JUMP follows the clause, or if the loop around the clause has other nodes.
    fn pays(&self, number: u32) -> bool {
        if !self.begins(number) {
            return false;
        }
        // A compiled fetch saves more time than a compiled operation. So a node with one fetch is worthwhile.
        let Some((_, run)) = self.clause(number) else { return true };
        let goes_on = || matches!(self.flow(number + 1), Some((CfInst::LOOP_END | CfInst::JUMP, _)));
        let in_loop = |next: &u32| *next == number + 1 || self.loops.get(*next as usize) == Some(&true);
        let mut behind = (number + 1..).take_while(in_loop);
        self.extent.pays(2 * run.operations.len() as i32, false)
            || goes_on()
            || behind.any(|next| self.begins(next))
    }

    // The methods that trace nodes.

    /// Traces the chain of nodes that begins with the instruction `first`. Returns the instruction after the chain.
    fn chain(&mut self, first: u32) -> u32 {
        if !self.pays(first) {
            return first + 1;
        }
        let mut number = first;
        self.begin(first);
        self.starts[first as usize] = Some(self.linker.next_node());
        loop {
            let pc = self.pc(number);
            if let Some((CfInst::LOOP_END, control)) =
                self.flow(number).filter(|_| self.chosen[number as usize])
            {
                self.own.last.add(1, Counted::Node(number));
                let body = self.lowered.first_of(number) + control.addr;
                self.end(Next::Again(Target::Outside(body)), End::Iteration(number));
                return number + 1;
            }
            let is_new = number == first;
            let is_target = self.targets[number as usize].iter().any(|source| !self.inside.contains(source));
            if !is_new && is_target || !self.begins(number) {
                let next = if self.pays(number) { Target::Outside(number) } else { Target::Flow };
                self.end(Next::To(next), End::At(pc));
                return number;
            }
            if let Some(fetches) = self.fetches(number) {
                let size = self.size(number);
                if is_new && self.extent.cuts_blocks() && size > self.most {
                    self.starts[number as usize] = None;
                    return number + 1;
                }
                if !is_new && self.before + size > self.most {
                    self.end(Next::To(Target::Outside(number)), End::At(pc));
                    return number;
                }
                let mut last = std::mem::take(&mut self.own.last);
                self.fetch(fetches, &mut last);
                self.own.last = last;
                self.before += size;
                number += 1;
                continue;
            }
            let Some((clause, run)) = self.clause(number) else { return number };
            let conditional = self.conditional(number, 1).filter(|_| clause.form == AluForm::ALU_PUSH_BEFORE);
            let (size, words) = match &conditional {
                Some(conditional) => self.measure(conditional),
                None => (1 + run.count, 1),
            };
            let fits = self.before + size <= self.most && self.linker.words() + words <= MOST_WORDS;
            if is_new && self.extent.cuts_blocks() && 1 + run.count > self.most {
                self.cut(number, run);
                return number + 1;
            }
            if !is_new && !fits {
                self.end(Next::To(Target::Outside(number)), End::At(pc));
                return number;
            }
            let conditional = conditional.filter(|_| fits);
            let next = conditional.as_ref().map_or(number + 1, |conditional| conditional.next);
            let indexes = self.merged[number as usize..next as usize].iter().any(Option::is_some);
            if indexes && self.linker.next_node() != self.checked {
                // An index may select a register that does not exist. Compiled code then runs no part of the node, and
                // the fast engine starts at the first instruction of the node. So an indexed access begins a new node.
                self.divide(number);
            }
            if let Some(conditional) = conditional {
                let mut last = std::mem::take(&mut self.own.last);
                self.branch(&conditional, 1, &mut last);
                self.own.last = last;
                self.before += size;
                self.inside = number..conditional.next;
                number = conditional.next;
                continue;
            }
            self.execute(number, run);
            self.before += size;
            self.own.last.add_clause(clause, run);
            let form = clause.form;
            self.own.in_loop |= matches!(form, AluForm::ALU_BREAK | AluForm::ALU_CONTINUE);
            match (form, run.masks) {
                (AluForm::ALU | AluForm::ALU_CONTINUE | AluForm::ALU_BREAK, false) => {}
                (AluForm::ALU_BREAK, true) => {
                    let Together { size, counted } = std::mem::take(&mut self.own.last);
                    let part = self.part(counted);
                    self.linker.leave([size, part], Waits::For(0), Way::end);
                    self.own.leaves.push(pc);
                }
                _ => {
                    if form == AluForm::ALU_PUSH_BEFORE {
                        self.linker.reserve(1);
                    }
                    let skip = run.masks.then(|| self.linker.gather(Way::end));
                    self.end(Next::To(Target::Flow), End::Clause { pc, last_pc: run.last_addr, form, skip });
                    return number + 1;
                }
            }
            number += 1;
        }
    }

    fn begin(&mut self, number: u32) {
        self.own = Open::at(self.pc(number));
        (self.checked, self.before) = (self.linker.next_node(), 0);
    }

    /// Ends the open node before the instruction `number`, and begins a new node with this instruction.
    fn divide(&mut self, number: u32) {
        let next = Target::Node(self.linker.next_node() + 1);
        self.end(Next::To(next), End::At(self.pc(number)));
        self.begin(number);
    }

    /// Ends the open node.
    fn end(&mut self, next: Next, end: End) {
        let (counts, own) = self.close(end);
        let node = Some(self.linker.next_node());
        let repeats = match next {
            Next::Again(Target::Outside(body)) => self.starts.get(body as usize) == Some(&node),
            _ => false,
        };
        self.linker.end(counts, next, None, repeats, own);
        self.linker.check_at(self.checked);
    }

    /// Closes the open node. Returns two numbers and the node's data. The first number counts the instructions after
    /// the last clause that makes lanes leave the node. The second number identifies the part with these instructions.
    fn close(&mut self, end: End) -> ([u32; 2], Own) {
        let pc = self.own.pc;
        let Open { in_loop, leaves, last: Together { size, counted }, .. } =
            std::mem::replace(&mut self.own, Open::at(pc));
        let part = self.part(counted);
        ([size, part], Own { pc, in_loop, leaves, end })
    }

    /// Adds a part that consists of the instructions `counted`. Compiled code counts how often the part runs. Returns
    /// the number of the part.
    fn part(&mut self, counted: Vec<Counted>) -> u32 {
        self.parts.push(counted);
        self.linker.part()
    }

    /// Traces only the first groups of a clause, up to the limit of the extent. Lockstep compares the state after these
    /// groups.
    fn cut(&mut self, number: u32, run: &'a Groups) {
        let groups = self.most - 1;
        let end = run.first + groups;
        let groups_of = |number: u32| self.lowered.groups_of[number as usize];
        let operations = run.operations.clone().filter(|number| groups_of(*number)[0] < end);
        // A merged operation may belong to two groups. The node must not end between these two groups.
        let whole = operations.clone().all(|number| groups_of(number)[1] < end);
        let templates = operations.clone().all(|number| self.has_template[number as usize]);
        // Lockstep does not compare AR.
        let indexes = self.merged[number as usize].is_some();
        if groups == 0 || !whole || !templates || indexes {
            self.starts[number as usize] = None;
            return;
        }
        self.operate(operations);
        self.own.last.size += 1 + groups;
        let pc = self.pc(number);
        self.linker.both(|way| {
            way.end();
        });
        self.end(Next::To(Target::Flow), End::Cut { pc, groups: groups as usize });
    }

    // The methods that trace conditionals.

    /// Returns the conditional that begins with the ALU_PUSH_BEFORE `push`, at nesting depth `depth`. If some part of
    /// the conditional has no template, the function returns `None`.
    fn conditional(&self, push: u32, depth: u32) -> Option<Conditional> {
        let (clause, run) = self.clause(push)?;
        let opens = clause.form == AluForm::ALU_PUSH_BEFORE && run.masks && self.is_all_templates(run);
        let Some((CfInst::JUMP, jump)) = self.flow(push + 1).filter(|_| opens && depth <= DEEPEST) else {
            return None;
        };
        let first = self.lowered.first_of(push);
        let (taken, end, popped) = self.side(push + 2, depth)?;
        let Some((CfInst::ELSE, over)) = self.flow(end).filter(|_| !popped) else {
            let (pop, next) = self.pop(end, popped, first, jump)?;
            return Some(Conditional { push, taken, other: None, pop, next });
        };
        if (first + jump.addr, jump.pop_count) != (end, 0) {
            return None;
        }
        let (not, behind, popped) = self.side(end + 1, depth)?;
        let (pop, next) = self.pop(behind, popped, first, over)?;
        Some(Conditional { push, taken, other: Some((end, not)), pop, next })
    }

    /// Returns the POP at the end of a conditional, or `None` if the conditional has no POP. Also returns the number of
    /// the instruction after the conditional. `end` is the number of the instruction after the last side of the
    /// conditional. `over` is the jump over the last side. The function returns `None` if the target of `over` is
    /// neither the POP nor the instruction after the conditional. `first` is the first instruction of the program. If
    /// no instruction of the program follows the conditional, the function also returns `None`, because no node can end
    /// there.
    fn pop(&self, end: u32, popped: bool, first: u32, over: &Control) -> Option<(Option<Pop>, u32)> {
        let leads = (first + over.addr, over.pop_count);
        let (pop, next, fits) = if popped {
            (None, end, leads == (end, 1))
        } else {
            let Some((CfInst::POP, pop)) = self.flow(end) else { return None };
            let always = leads == (end, 0);
            let fits = pop.pop_count == 1 && (always || leads == (end + 1, 1));
            (Some(Pop { number: end, always }), end + 1, fits)
        };
        (fits && self.is_in_program(first, next)).then_some((pop, next))
    }

    /// Returns the parts of the side that begins at `start`, and the number of the instruction after the last part.
    /// Also returns whether the last part pops the stack entry of the conditional.
    fn side(&self, start: u32, depth: u32) -> Option<(Vec<Part>, u32, bool)> {
        let (mut parts, mut number) = (Vec::new(), start);
        loop {
            if self.fetches(number).is_some() {
                parts.push(Part::Clause(number));
                number += 1;
                continue;
            }
            let Some((clause, run)) = self.clause(number) else { break };
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

    /// Returns the number of instructions in a conditional. Also returns the number of conditionals: the given
    /// conditional, and all conditionals inside the given conditional.
    fn measure(&self, conditional: &Conditional) -> (u32, u32) {
        // The 3 stands for a JUMP, an ELSE and a POP.
        let (mut size, mut words) = (self.size(conditional.push) + 3, 1);
        let other = conditional.other.iter().flat_map(|(_, parts)| parts);
        for part in conditional.taken.iter().chain(other) {
            let (inner, more) = match part {
                Part::Clause(number) => (self.size(*number), 0),
                Part::If(inner) => self.measure(inner),
            };
            (size, words) = (size + inner, words + more);
        }
        (size, words)
    }

    /// Traces a conditional at nesting depth `depth`. `around` collects the instructions that run for all lanes that
    /// reach the conditional.
    fn branch(&mut self, conditional: &Conditional, depth: u32, around: &mut Together) {
        self.run(conditional.push, around);
        self.linker.open(depth, |way| {
            let skip = way.end();
            way.rows.strip.not(skip)
        });
        let mut sides = [Branch::default(); 2];
        let mut insides = [(); 2].map(|()| Together::default());
        let [taken, not] = &mut insides;
        let mut always = |number: u32, side: usize| {
            sides[side].always += 1;
            around.counted.push(Counted::Node(number));
        };
        always(conditional.push + 1, 0);
        self.parts(&conditional.taken, depth, taken);
        self.linker.other();
        let last = usize::from(conditional.other.is_some());
        if let Some((number, parts)) = &conditional.other {
            always(*number, 0);
            self.parts(parts, depth, not);
        }
        match &conditional.pop {
            Some(pop) if pop.always => always(pop.number, last),
            Some(pop) => insides[last].add(1, Counted::Node(pop.number)),
            None => {}
        }
        for (side, Together { size, counted }) in sides.iter_mut().zip(insides) {
            (side.size, side.count) = (size, self.part(counted));
        }
        self.linker.close(sides);
    }

    fn parts(&mut self, parts: &[Part], depth: u32, inside: &mut Together) {
        for part in parts {
            match part {
                Part::Clause(number) => self.run(*number, inside),
                Part::If(inner) => self.branch(inner, depth + 1, inside),
            }
        }
    }

    /// Traces a clause of a conditional.
    fn run(&mut self, number: u32, inside: &mut Together) {
        if let Some(fetches) = self.fetches(number) {
            return self.fetch(fetches, inside);
        }
        let Some((clause, run)) = self.clause(number) else { return };
        self.execute(number, run);
        inside.add_clause(clause, run);
    }

    /// Traces vertex fetches.
    fn fetch(&mut self, clause: &Fetches, inside: &mut Together) {
        let lowered = self.lowered;
        for number in clause.first..clause.first + clause.count {
            let fetching = lowered.fetches[number as usize].fetching.as_ref();
            if let (Some(fetching), Some(site)) = (fetching, self.sites[number as usize]) {
                self.linker.both(|way| {
                    // `sites` has already emitted this fetch once, so the fetch has a template.
                    let _ = way.fetch(fetching, site);
                });
            }
            inside.counted.push(Counted::Fetch(number));
        }
        inside.size += 1 + clause.count;
    }

    // The methods that trace operations.

    /// Traces the operations of a clause.
    fn execute(&mut self, number: u32, run: &'a Groups) {
        let ends = self.linker.leaves() || self.linker.slow.rows.strip.has_spans();
        if !self.is_all_templates(run) && ends {
            // Compiled code must not call an operation for lanes that have left the node. If a node accesses memory at
            // addresses of lanes, compiled code makes the call only if a lane is outside the memory. In that case,
            // compiled code makes the call instead of running the node. So a new node begins with this clause.
            self.divide(number);
        }
        self.operate(run.operations.clone());
        if !run.masks {
            self.linker.both(|way| {
                way.end();
            });
        }
    }

    /// Traces operations of a clause, in order.
    fn operate(&mut self, operations: impl Iterator<Item = u32>) {
        let lowered = self.lowered;
        self.linker.both(Way::begin);
        let mut operations = operations.peekable();
        while let Some(number) = operations.next() {
            if self.has_template[number as usize] {
                let template = lowered.templates[number as usize];
                let operation = &lowered.operations[number as usize];
                self.linker.both(|way| {
                    way.operation(operation, template);
                });
                continue;
            }
            let mut end = number + 1;
            while operations.next_if(|next| *next == end && !self.has_template[*next as usize]).is_some() {
                end += 1;
            }
            let (counts, own) = self.close(End::At(self.own.pc));
            let next = Target::Node(self.linker.next_node() + 1);
            self.linker.call(counts, number..end, Next::To(next), own);
            self.linker.check_at(self.checked);
        }
    }
}
