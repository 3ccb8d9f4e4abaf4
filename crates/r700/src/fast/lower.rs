//! From decoded code to operations: operands become rows, the order of a group's slots becomes an order of whole
//! operations, and what every execution of a group counts is written down once.
//!
//! In a group everything is read before anything is written. An operation that writes a row comes after those of its group
//! that read the row; where two read each other's rows, one writes an intermediate row that is copied at the end. PV and PS are the rows of the destinations of the group before; only where there is no such row, or the
//! group is one of the reference interpreter's, do they have rows of their own written.
//!
//! What is not lowered, because it is rare or traps, stays with the reference interpreter, group by group: indexed
//! operands, writes through an index, MOVA*, CUBE, doubles, constants of LOCK_LOOP_INDEX, and in strict mode whatever
//! is sure to trap.

use std::ops::Range;

use reconverge_simt::registers::Row;
use reconverge_simt::{Level, Mode, Options};

use super::bodies::{Dot4, General, Max4, Sets};
use super::kernels::{Shape, choose, choose_both};
use super::lanes::{ACTIVE, Across, FALSE, Handler, Operation, Place, TRUE, Tables, handler};
use crate::chip::LANES;
use crate::code::{AluClause, AluOp, CfOp, Code, Group, Operand, Source, TRANS, Window};
use crate::control::{self, CfWork, FlowStep};
use crate::flow::{AluForm, Control};
use crate::launch::Launch;
use crate::meaning::{AluCode, Meaning, Opcode};
use crate::rules::Rule;
use crate::wave::PREVIOUS;
use crate::words::{CfInst, KcacheMode, Op2};

/// A control-flow instruction.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) work: Work,
    /// How many instructions it is at most, groups included: the instruction budget that it needs.
    pub(super) most: u32,
    /// END_OF_PROGRAM.
    pub(super) end: bool,
    /// The reading that it leans on.
    pub(super) rule: Option<Rule>,
}

impl Node {
    /// An instruction of the reference interpreter.
    const REFERENCE: Node = Node { work: Work::Reference, most: 0, end: false, rule: None };
}

/// What a control-flow instruction does.
#[derive(Clone, Debug)]
pub(super) enum Work {
    /// Runs groups.
    Alu(Clause),
    /// Decides about flow only.
    Flow(CfInst, FlowStep, Control),
    /// Whatever the reference interpreter does.
    Reference,
}

/// An ALU clause.
#[derive(Clone, Debug)]
pub(super) struct Clause {
    pub(super) form: AluForm,
    pub(super) whole_quad_mode: bool,
    /// Its first group, among the program's.
    pub(super) first_group: u32,
    /// Its runs, among the program's.
    pub(super) runs: Range<u32>,
    /// Whether some group is the reference interpreter's or reads PV or PS from before the clause: such a clause begins
    /// with the state of a clause reset.
    pub(super) whole_state: bool,
    /// Its only run, if that does nothing but compute and update the execute mask for the active lanes.
    pub(super) single: Option<Run>,
}

/// Groups of a clause that run one after another for the same lanes.
#[derive(Clone, Debug)]
pub(super) struct Run {
    /// The first group, among the program's, and the number of groups.
    pub(super) first: u32,
    pub(super) count: u32,
    /// The address of the last group.
    pub(super) last_addr: u32,
    /// Among [`Lowered::operations`].
    pub(super) operations: Range<u32>,
    /// Whether it is one group that the reference interpreter runs.
    pub(super) by_reference: bool,
    /// Whether the last group updates the execute mask.
    pub(super) masks: bool,
    /// Whether some group kills.
    pub(super) kills: bool,
}

/// What each execution of a group counts, and what the reference interpreter needs to run it.
#[derive(Clone, Debug)]
pub(super) struct GroupInfo {
    /// Empty for groups of the reference interpreter, which counts itself.
    pub(super) opcodes: Vec<&'static Opcode>,
    pub(super) rules: Vec<Rule>,
    /// PV and PS that the group before defined.
    pub(super) defined: [bool; PREVIOUS],
    /// Whether a PRED_SET* of an earlier group has written the predicate.
    pub(super) predicate_written: bool,
}

/// A program and its fetch program.
#[derive(Clone, Debug, Default)]
pub(super) struct Lowered {
    /// By address: first the program's, then the fetch program's.
    pub(super) nodes: Vec<Node>,
    /// The index of the fetch program's first.
    fetch_program: usize,
    pub(super) groups: Vec<GroupInfo>,
    /// The address of each group.
    pub(super) addresses: Vec<u32>,
    pub(super) runs: Vec<Run>,
    /// Run by run.
    pub(super) operations: Vec<Operation>,
    pub(super) tables: Tables,
    /// The rows after the registers and PV and PS: intermediate results, then constants.
    pub(super) room: Vec<Row<LANES>>,
}

impl Lowered {
    /// The nodes of the program, or of the fetch program, by address, and the number of the first.
    pub(super) fn program(&self, fetch_program: bool) -> (usize, &[Node]) {
        let (first, second) = self.nodes.split_at(self.fetch_program);
        if fetch_program { (self.fetch_program, second) } else { (0, first) }
    }
}

/// Intermediate rows: five for results of a group that wait, and one for results that nothing reads.
const INTERMEDIATE: usize = 6;

/// Lowers the program of a launch and its fetch program.
pub(super) fn lower(code: &Code, fetch_code: Option<&Code>, launch: &Launch, options: &Options) -> Lowered {
    let mut lowering = Lowering {
        launch,
        strict: options.mode == Mode::Strict,
        level: options.level(),
        previous: launch.register_rows(),
        constants: Vec::new(),
        run: Vec::new(),
        lowered: Lowered::default(),
    };
    lowering.code(code);
    lowering.lowered.fetch_program = lowering.lowered.nodes.len();
    if let Some(code) = fetch_code {
        lowering.code(code);
    }
    let Lowering { constants, mut lowered, .. } = lowering;
    lowered.room = vec![Row::ZERO; INTERMEDIATE];
    lowered.room.extend(constants.into_iter().map(|word| Row([word; LANES])));
    lowered
}

struct Lowering<'a> {
    launch: &'a Launch,
    strict: bool,
    level: Level,
    /// The row of PV.x.
    previous: usize,
    constants: Vec<u32>,
    /// The operations of the run that is being made; with its opcode where one has code of its own without modifiers.
    run: Vec<(Operation, Option<AluCode>)>,
    lowered: Lowered,
}

/// An instruction of one slot on its way to an operation.
struct Draft {
    operation: Operation,
    /// The opcode, if the operation is its own code without modifiers.
    plain: Option<AluCode>,
    /// What it reads.
    reads: Vec<Place>,
    /// Where its result goes: a register, a row of PV or PS.
    register: Option<Place>,
    previous: Option<Place>,
}

/// What is known about PV and PS in front of a group.
#[derive(Clone, Copy, Default)]
struct Before {
    defined: [bool; PREVIOUS],
    /// The register that has the same value for every lane that runs on.
    register: [Option<Place>; PREVIOUS],
}

impl Lowering<'_> {
    fn code(&mut self, code: &Code) {
        let first = self.lowered.nodes.len();
        for (addr, cf) in code.instructions() {
            let (work, rule) = match &cf.op {
                CfOp::Alu(clause) => (Work::Alu(self.clause(code, clause)), None),
                CfOp::Control(inst, control) if !control.whole_quad_mode => flow(*inst, *control),
                CfOp::Control(..) | CfOp::Fetch(..) | CfOp::Export(..) | CfOp::Memory(..) => {
                    (Work::Reference, None)
                }
            };
            let most = match (&work, &cf.op) {
                (Work::Alu(_), CfOp::Alu(clause)) => 1 + clause.group_count() as u32,
                (Work::Alu(_) | Work::Flow(..), _) => 1,
                (Work::Reference, _) => 0,
            };
            let place = first + addr as usize;
            if place >= self.lowered.nodes.len() {
                self.lowered.nodes.resize(place + 1, Node::REFERENCE);
            }
            self.lowered.nodes[place] = Node { work, most, end: cf.end_of_program, rule };
        }
    }

    // Clauses.

    fn clause(&mut self, code: &Code, clause: &AluClause) -> Clause {
        let groups: Vec<Group<'_>> = code.groups(clause).collect();
        let by_reference = self.by_reference(clause, &groups);
        let wanted = self.wanted(&groups, &by_reference);
        let first_group = self.lowered.groups.len() as u32;
        let first_run = self.lowered.runs.len();
        let mut before = Before::default();
        let mut predicate_written = false;
        for (number, group) in groups.iter().enumerate() {
            self.add_to_runs(first_run, group, by_reference[number]);
            let mut info = GroupInfo {
                opcodes: Vec::new(),
                rules: Vec::new(),
                defined: before.defined,
                predicate_written,
            };
            if !by_reference[number] {
                info.opcodes = group.ops.iter().map(|op| op.opcode).collect();
                info.rules.extend(info.opcodes.iter().filter_map(|opcode| opcode.rule));
                if group.ops.iter().any(|op| op.pred_sel.is_some()) && !predicate_written {
                    info.rules.push(Rule::PREDICATE_STARTS_TRUE);
                }
                if group.ops.iter().any(decides) {
                    info.rules.push(Rule::PRED_SET_WRITES_ZERO_FOR_TRUE);
                }
                self.group(clause, group, &before, wanted[number]);
            }
            before = Before::default();
            for op in group.ops.iter().filter(|op| !matches!(op.opcode.meaning, Meaning::Nothing)) {
                let slot = usize::from(op.slot);
                before.defined[slot] = true;
                if !by_reference[number] && op.write && op.pred_sel.is_none() {
                    before.register[slot] = self.destination(op);
                }
            }
            predicate_written |= deciding(group).is_some_and(|op| op.update_pred);
            self.lowered.addresses.push(group.addr);
            self.lowered.groups.push(info);
        }
        self.end_run();
        let whole_state = by_reference.contains(&true) || wanted[groups.len()] != [false; PREVIOUS];
        let single = match &self.lowered.runs[first_run..] {
            [run] if !whole_state && !clause.whole_quad_mode && !run.kills => Some(run.clone()),
            _ => None,
        };
        Clause {
            form: clause.form,
            whole_quad_mode: clause.whole_quad_mode,
            first_group,
            runs: first_run as u32..self.lowered.runs.len() as u32,
            whole_state,
            single,
        }
    }

    /// Adds a group to the last run of a clause whose first is `first_run`, or to a new one.
    fn add_to_runs(&mut self, first_run: usize, group: &Group<'_>, by_reference: bool) {
        let masks = deciding(group).is_some_and(|op| op.update_execute_mask);
        let kills = group.ops.iter().any(|op| matches!(op.opcode.meaning, Meaning::Kill(_)));
        if let Some(last) = self.lowered.runs[first_run..].last_mut()
            && !last.by_reference
            && !last.masks
            && !by_reference
        {
            (last.count, last.last_addr, last.masks) = (last.count + 1, group.addr, masks);
            last.kills |= kills;
            return;
        }
        self.end_run();
        self.lowered.runs.push(Run {
            first: self.lowered.groups.len() as u32,
            count: 1,
            last_addr: group.addr,
            operations: 0..0,
            by_reference,
            masks,
            kills,
        });
    }

    /// Gives the last run its operations. A comparison and a PRED_SET* of its result become one.
    fn end_run(&mut self) {
        let first = self.lowered.operations.len() as u32;
        let operations = std::mem::take(&mut self.run);
        let mut rest = &operations[..];
        while let [one, others @ ..] = rest {
            let both = others.first().and_then(|other| self.both(one, other));
            self.lowered.operations.push(both.unwrap_or(one.0));
            rest = if both.is_some() { &others[1..] } else { others };
        }
        let end = self.lowered.operations.len() as u32;
        if let Some(run) = self.lowered.runs.last_mut().filter(|_| first < end) {
            run.operations = first..end;
        }
    }

    /// Two operations as one; `None` where they have no common code.
    fn both(
        &self,
        &(first, first_code): &(Operation, Option<AluCode>),
        &(second, second_code): &(Operation, Option<AluCode>),
    ) -> Option<Operation> {
        let run = choose_both(first_code?, second_code?, self.level)?;
        let [tested, other, _] = second.src;
        let fits = tested == first.dst && other != first.dst && (first.set, second.set) == (ACTIVE, ACTIVE);
        let nowhere = second.dst == self.intermediate(INTERMEDIATE - 1);
        let src = [first.src[0], first.src[1], other];
        (fits && nowhere).then_some(Operation { run, src, dst: first.dst, ..second })
    }

    /// Which groups the reference interpreter runs.
    fn by_reference(&self, clause: &AluClause, groups: &[Group<'_>]) -> Vec<bool> {
        let mut defined = [false; PREVIOUS];
        let mut masked = false;
        let mut result = Vec::with_capacity(groups.len());
        for group in groups {
            result.push(masked || !self.can_lower(clause, group, defined));
            // What follows in the same clause traps, or is rare.
            masked |= deciding(group).is_some_and(|op| op.update_execute_mask);
            defined = [false; PREVIOUS];
            for op in group.ops.iter().filter(|op| !matches!(op.opcode.meaning, Meaning::Nothing)) {
                defined[usize::from(op.slot)] = true;
            }
        }
        result
    }

    fn can_lower(&self, clause: &AluClause, group: &Group<'_>, defined: [bool; PREVIOUS]) -> bool {
        let known = |op: &AluOp| {
            let meaning = match op.opcode.meaning {
                Meaning::Mova(_) | Meaning::MovaLoop(_) | Meaning::Cube | Meaning::Double(_) => false,
                Meaning::Nothing
                | Meaning::Float1(_)
                | Meaning::Float2(_)
                | Meaning::Float3(..)
                | Meaning::Bits1(_)
                | Meaning::Bits2(_)
                | Meaning::Bits3(_)
                | Meaning::PredSet(_)
                | Meaning::Kill(_) => true,
                Meaning::Reduce(_) => self.across(op).is_some(),
            };
            let previous = |slot: usize| defined[slot] || !self.strict;
            let operands = used(op).iter().all(|source| match source.operand {
                Operand::Previous(slot) => previous(slot.into()),
                Operand::PreviousScalar => previous(TRANS.into()),
                Operand::Gpr { gpr, chan } => {
                    !source.rel && self.launch.register_row(gpr.into(), chan.into()).is_some()
                }
                Operand::Value(_) | Operand::Kcache { .. } | Operand::ConstantFile { .. } => {
                    self.constant(clause, source).is_some()
                }
            });
            let destination = !op.dst_rel && (!op.write || self.destination(op).is_some());
            meaning && operands && destination
        };
        let mut destinations: Vec<Place> =
            group.ops.iter().filter(|op| writes(op)).filter_map(|op| self.destination(op)).collect();
        let all = destinations.len();
        destinations.sort_by_key(|place| place.number());
        destinations.dedup();
        group.ops.iter().all(known)
            && destinations.len() == all
            && group.ops.iter().filter(|op| decides(op)).count() <= 1
    }

    /// For each group, and last for the clause's start, the PV and PS that must be written to rows of their own: those that
    /// a later group reads there.
    fn wanted(&self, groups: &[Group<'_>], by_reference: &[bool]) -> Vec<[bool; PREVIOUS]> {
        let mut wanted = vec![[false; PREVIOUS]; groups.len() + 1];
        let mut live = [false; PREVIOUS];
        for number in (0..groups.len()).rev() {
            wanted[number] = live;
            // A result replaces what was there, unless a predicate keeps it from some lanes.
            for op in groups[number].ops {
                if !matches!(op.opcode.meaning, Meaning::Nothing) && op.pred_sel.is_none() {
                    live[usize::from(op.slot)] = false;
                }
            }
            let before = number.checked_sub(1);
            for source in groups[number].ops.iter().flat_map(used) {
                let slot = match source.operand {
                    Operand::Previous(slot) => usize::from(slot),
                    Operand::PreviousScalar => usize::from(TRANS),
                    Operand::Gpr { .. }
                    | Operand::Kcache { .. }
                    | Operand::ConstantFile { .. }
                    | Operand::Value(_) => continue,
                };
                let register = before.filter(|before| !by_reference[*before] && !by_reference[number]);
                let register = register.and_then(|before| {
                    let op = groups[before].ops.iter().find(|op| usize::from(op.slot) == slot)?;
                    let same = writes(op) && op.pred_sel.is_none();
                    same.then(|| self.destination(op)).flatten()
                });
                live[slot] |= register.is_none();
            }
        }
        wanted[groups.len()] = live;
        wanted
    }

    // Groups.

    fn group(&mut self, clause: &AluClause, group: &Group<'_>, before: &Before, wanted: [bool; PREVIOUS]) {
        if group.ops.iter().any(|op| op.pred_sel.is_some()) {
            let operation = self.operation(handler::<Sets>(self.level));
            self.run.push((operation, None));
        }
        let mut drafts: Vec<Draft> =
            group.ops.iter().filter_map(|op| self.draft(clause, group, op, before, wanted)).collect();
        let mut copies = Vec::new();
        let mut waiting = 0;
        while !drafts.is_empty() {
            let others_read = |number: usize| {
                let row = drafts[number].operation.dst;
                drafts.iter().enumerate().any(|(other, draft)| other != number && draft.reads.contains(&row))
            };
            let free = (0..drafts.len()).find(|number| !others_read(*number));
            let mut draft = drafts.remove(free.unwrap_or(0));
            let result = draft.operation.dst;
            if free.is_none() {
                // Every row to write is still to be read: the result waits in an intermediate row.
                draft.operation.dst = self.intermediate(waiting);
                waiting += 1;
            }
            let from = draft.operation.dst;
            let goals = [free.is_none().then_some(result), draft.register.and(draft.previous)];
            for goal in goals.into_iter().flatten().filter(|goal| *goal != from) {
                copies.push(self.copy(from, goal, draft.operation.set));
            }
            self.run.push((draft.operation, draft.plain));
        }
        self.run.extend(copies.into_iter().map(|copy| (copy, None)));
    }

    /// The operation of one slot; `None` when it has no visible effect.
    fn draft(
        &mut self,
        clause: &AluClause,
        group: &Group<'_>,
        op: &AluOp,
        before: &Before,
        wanted: [bool; PREVIOUS],
    ) -> Option<Draft> {
        let slot = usize::from(op.slot);
        if matches!(op.opcode.meaning, Meaning::Nothing) {
            return None;
        }
        let register = if op.write { self.destination(op) } else { None };
        let previous = wanted[slot].then(|| Place::of(self.previous + slot));
        let dst = register.or(previous);
        if dst.is_none() && !decides(op) && !matches!(op.opcode.meaning, Meaning::Kill(_)) {
            return None;
        }
        let mut operation = self.operation(handler::<General>(self.level));
        operation.dst = dst.unwrap_or(self.intermediate(INTERMEDIATE - 1));
        operation.set = match op.pred_sel {
            None => ACTIVE,
            Some(true) => TRUE,
            Some(false) => FALSE,
        };
        operation.clamp = op.clamp;
        operation.dx10_clamp = self.launch.dx10_clamp;
        (operation.update_pred, operation.update_execute_mask) = (op.update_pred, op.update_execute_mask);
        operation.factor = op.omod;
        let mut reads = Vec::new();
        if let Meaning::Reduce(_) = op.opcode.meaning {
            let zero = Across { place: self.constant_place(0), keep: u32::MAX, flip: 0 };
            let mut across = [zero; 8];
            for other in group.ops.iter().filter(|other| other.slot < TRANS) {
                for (place, source) in used(other).iter().enumerate().take(2) {
                    let (row, keep, flip) = self.source(clause, source, before);
                    across[usize::from(other.slot) + 4 * place] = Across { place: row, keep, flip };
                    reads.push(row);
                }
            }
            operation.run = self.across(op)?;
            operation.number = self.lowered.tables.across.len() as u32;
            self.lowered.tables.across.push(across);
            return Some(Draft { operation, plain: None, reads, register, previous });
        }
        for (number, source) in used(op).iter().enumerate() {
            let (row, keep, flip) = self.source(clause, source, before);
            operation.src[number] = row;
            (operation.keep[number], operation.flip[number]) = (keep, flip);
            reads.push(row);
        }
        let factor = match op.opcode.meaning {
            Meaning::Float3(_, factor) => factor,
            _ => 1.0,
        };
        let factors = [op.omod, factor];
        let shape = Shape {
            modified: used(op).iter().any(|source| source.abs || source.neg),
            finish: factors != [1.0; 2] || op.clamp,
            write: dst.is_some(),
        };
        // A kernel has room for one factor.
        let own = if factors.contains(&1.0) { choose(op.opcode.code, shape, self.level) } else { None };
        match own {
            Some(run) => {
                operation.run = run;
                operation.factor = if factor == 1.0 { op.omod } else { factor };
            }
            None => {
                operation.number = self.lowered.tables.generals.len() as u32;
                self.lowered.tables.generals.push((op.opcode.meaning, factor));
            }
        }
        let plain = own.filter(|_| !shape.modified && !shape.finish).map(|_| op.opcode.code);
        Some(Draft { operation, plain, reads, register, previous })
    }

    fn across(&self, op: &AluOp) -> Option<Handler> {
        match op.opcode.code {
            AluCode::Op2(Op2::DOT4) => Some(handler::<Dot4<false>>(self.level)),
            AluCode::Op2(Op2::DOT4_IEEE) => Some(handler::<Dot4<true>>(self.level)),
            AluCode::Op2(Op2::MAX4) => Some(handler::<Max4>(self.level)),
            AluCode::Op2(_) | AluCode::Op3(_) => None,
        }
    }

    /// An operation of this code with nothing to read and nowhere to write.
    fn operation(&self, run: Handler) -> Operation {
        let nowhere = self.intermediate(INTERMEDIATE - 1);
        Operation {
            run,
            src: [nowhere; 3],
            dst: nowhere,
            keep: [u32::MAX; 3],
            flip: [0; 3],
            factor: 1.0,
            clamp: false,
            dx10_clamp: false,
            set: ACTIVE,
            update_pred: false,
            update_execute_mask: false,
            number: 0,
        }
    }

    fn copy(&self, from: Place, to: Place, set: u8) -> Operation {
        let shape = Shape { modified: false, finish: false, write: true };
        let run = choose(AluCode::Op2(Op2::MOV), shape, self.level);
        let run = run.expect("a plain MOV has code of its own");
        Operation { src: [from; 3], dst: to, set, ..self.operation(run) }
    }

    // Rows.

    fn intermediate(&self, number: usize) -> Place {
        Place::of(self.previous + PREVIOUS + number)
    }

    fn destination(&self, op: &AluOp) -> Option<Place> {
        self.launch.register_row(op.dst_gpr.into(), op.dst_chan.into()).map(Place::of)
    }

    /// The row of an operand that can be lowered, and its modifiers: bits that stay, bits that flip.
    fn source(&mut self, clause: &AluClause, source: &Source, before: &Before) -> (Place, u32, u32) {
        let previous = |slot: usize| before.register[slot].unwrap_or(Place::of(self.previous + slot));
        let keep = if source.abs { 0x7fff_ffff } else { u32::MAX };
        let flip = if source.neg { 0x8000_0000 } else { 0 };
        let place = match source.operand {
            Operand::Previous(slot) => previous(slot.into()),
            Operand::PreviousScalar => previous(TRANS.into()),
            Operand::Gpr { gpr, chan } => {
                let row = self.launch.register_row(gpr.into(), chan.into());
                Place::of(row.expect("only groups whose registers are there are lowered"))
            }
            Operand::Value(_) | Operand::Kcache { .. } | Operand::ConstantFile { .. } => {
                let word = self.constant(clause, source);
                self.constant_place(word.expect("only groups whose constants are known are lowered"))
            }
        };
        (place, keep, flip)
    }

    fn constant_place(&mut self, word: u32) -> Place {
        let found = self.constants.iter().position(|constant| *constant == word);
        let number = found.unwrap_or_else(|| {
            self.constants.push(word);
            self.constants.len() - 1
        });
        Place::of(self.previous + PREVIOUS + INTERMEDIATE + number)
    }

    /// A constant that is the same whenever the group runs.
    fn constant(&self, clause: &AluClause, source: &Source) -> Option<u32> {
        let resources = if clause.alt_const { &self.launch.alternate } else { &self.launch.resources };
        match source.operand {
            Operand::Value(value) => Some(value),
            Operand::Kcache { set, index, chan } => {
                let Window { bank, line, mode } = clause.kcache[usize::from(set)];
                let lines = match mode {
                    KcacheMode::NOP => 0,
                    KcacheMode::LOCK_1 => 1,
                    KcacheMode::LOCK_2 => 2,
                    KcacheMode::LOCK_LOOP_INDEX => return None,
                };
                if index >= lines * 16 {
                    return if self.strict { None } else { Some(0) };
                }
                let dword = (usize::from(line) * 16 + usize::from(index)) * 4 + usize::from(chan);
                Some(resources.constant_buffers[usize::from(bank)].get(dword).copied().unwrap_or(0))
            }
            Operand::ConstantFile { .. } if source.rel => None,
            Operand::ConstantFile { index, chan } => {
                let entry = resources.constant_file.get(usize::from(index));
                Some(entry.map_or(0, |entry| entry[usize::from(chan)]))
            }
            Operand::Gpr { .. } | Operand::Previous(_) | Operand::PreviousScalar => None,
        }
    }
}

/// The operands that an instruction reads.
fn used(op: &AluOp) -> &[Source] {
    &op.sources[..usize::from(op.opcode.sources)]
}

fn writes(op: &AluOp) -> bool {
    op.write && !matches!(op.opcode.meaning, Meaning::Nothing)
}

/// Whether it is a PRED_SET*.
fn decides(op: &AluOp) -> bool {
    match op.opcode.meaning {
        Meaning::PredSet(_) => true,
        Meaning::Double(double) => matches!(double, crate::meaning::Double::PredSet(_)),
        Meaning::Nothing
        | Meaning::Float1(_)
        | Meaning::Float2(_)
        | Meaning::Float3(..)
        | Meaning::Bits1(_)
        | Meaning::Bits2(_)
        | Meaning::Bits3(_)
        | Meaning::Kill(_)
        | Meaning::Mova(_)
        | Meaning::MovaLoop(_)
        | Meaning::Reduce(_)
        | Meaning::Cube => false,
    }
}

/// The PRED_SET* of a group that counts: the last one to be computed. Those that write through an index are computed
/// before the others.
fn deciding<'a>(group: &Group<'a>) -> Option<&'a AluOp> {
    let first = |op: &&AluOp| op.dst_rel && !op.opcode.meaning.spans_slots();
    let counts = |op: &&AluOp| decides(op) && (!op.opcode.meaning.spans_slots() || op.slot & 1 == 0);
    let last = group.ops.iter().filter(|op| !first(op)).rfind(counts);
    last.or_else(|| group.ops.iter().filter(first).rfind(counts))
}

/// How a control-flow instruction runs: those that only decide about flow on the flow state. RETURN may leave the fetch
/// program, and CALL_FS enters it, which the reference interpreter does.
fn flow(inst: CfInst, control: Control) -> (Work, Option<Rule>) {
    let row = control::cf(inst);
    match row.work {
        CfWork::Flow(step) if !matches!(inst, CfInst::RETURN | CfInst::CALL_FS) => {
            (Work::Flow(inst, step, control), row.rule)
        }
        CfWork::Flow(_) | CfWork::Fetch { .. } | CfWork::Emit { .. } | CfWork::WaitAck => {
            (Work::Reference, None)
        }
    }
}
