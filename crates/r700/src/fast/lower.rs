//! From decoded code to operations: operands become rows, the slots of a group become whole operations in an order, and
//! what every execution of a group counts is written down once.
//!
//! | read | for |
//! |---|---|
//! | this file | clauses, and the runs of groups that they consist of |
//! | `plan` | which groups are lowered, and which PV and PS need rows of their own |
//! | `group` | the operations of a group, and their order |
//! | `fetch` | fetch clauses: texture instructions with their samplers |
//! | `rows` | the rows of operands |
//!
//! Not lowered, because it is rare or traps: indexed operands, writes through an index, MOVA*, CUBE, doubles, constants of
//! LOCK_LOOP_INDEX, and in strict mode whatever is sure to trap. The reference interpreter runs these groups.

mod fetch;
mod group;
mod plan;
mod rows;

use std::ops::Range;

use reconverge_simt::place::Layout;
use reconverge_simt::registers::Row;
use reconverge_simt::{Level, Mode, Options};

pub(super) use self::fetch::{Bound, Chosen, FetchInfo, Fetches, Sample, Texture, TextureWork};
use super::kernels::choose_both;
use super::lanes::{ACTIVE, Operation, Place, Tables};
use crate::chip::LANES;
use crate::code::{AluClause, AluOp, CfOp, Code, Group};
use crate::control::{self, CfWork};
use crate::flow::{AluForm, Control};
use crate::launch::Launch;
use crate::meaning::{AluCode, Meaning, Opcode};
use crate::rules::Rule;
use crate::wave::PREVIOUS;
use crate::words::CfInst;

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
    /// Runs fetch instructions.
    Fetch(Fetches),
    /// Decides about flow only.
    Flow(CfInst, Control),
    /// Whatever the reference interpreter does.
    Reference,
}

/// An ALU clause.
#[derive(Clone, Debug)]
pub(super) struct Clause {
    pub(super) form: AluForm,
    pub(super) whole_quad_mode: bool,
    /// END_OF_PROGRAM.
    pub(super) end: bool,
    /// Its first group, among the program's.
    pub(super) first_group: u32,
    /// Its runs, among the program's.
    pub(super) runs: Range<u32>,
    /// Whether some group is the reference interpreter's or reads PV or PS from before the clause: such a clause begins
    /// with the state of a clause reset.
    pub(super) whole_state: bool,
    /// Its only run, if that does nothing but compute and update the execute mask for the active lanes.
    pub(super) single: Option<Groups>,
}

/// Groups of a clause that run one after another for the same lanes.
#[derive(Clone, Debug)]
pub(super) struct Groups {
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
#[derive(Clone, Debug)]
pub(super) struct Lowered {
    /// By address: first the program's, then the fetch program's.
    pub(super) nodes: Vec<Node>,
    /// The index of the fetch program's first.
    fetch_program: usize,
    pub(super) groups: Vec<GroupInfo>,
    /// The address of each group.
    pub(super) addresses: Vec<u32>,
    pub(super) runs: Vec<Groups>,
    /// The instructions of fetch clauses.
    pub(super) fetches: Vec<FetchInfo>,
    /// Groups by run.
    pub(super) operations: Vec<Operation>,
    pub(super) tables: Tables,
    /// All rows that operations name: registers, PV and PS, intermediate results, constants.
    pub(super) layout: Layout<LANES>,
    /// Those after PV and PS.
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
    let previous = launch.register_rows();
    let lowered = Lowered {
        nodes: Vec::new(),
        fetch_program: 0,
        groups: Vec::new(),
        addresses: Vec::new(),
        runs: Vec::new(),
        fetches: Vec::new(),
        operations: Vec::new(),
        tables: Tables::default(),
        layout: Layout::new(previous + PREVIOUS + INTERMEDIATE),
        room: vec![Row::ZERO; INTERMEDIATE],
    };
    let (strict, level) = (options.mode == Mode::Strict, options.level());
    let mut lowering =
        Lowering { launch, strict, level, previous, constants: Vec::new(), run: Vec::new(), lowered };
    lowering.code(code);
    lowering.lowered.fetch_program = lowering.lowered.nodes.len();
    if let Some(code) = fetch_code {
        lowering.code(code);
    }
    lowering.lowered
}

struct Lowering<'a> {
    launch: &'a Launch,
    strict: bool,
    level: Level,
    /// The row of PV.x.
    previous: usize,
    /// The constants that have a row.
    constants: Vec<(u32, Place)>,
    /// The operations of the run that is being made; with its opcode where one has code of its own without modifiers.
    run: Vec<(Operation, Option<AluCode>)>,
    lowered: Lowered,
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
                CfOp::Alu(clause) => (Work::Alu(self.clause(code, clause, cf.end_of_program)), None),
                CfOp::Control(inst, control) if !control.whole_quad_mode => flow(*inst, *control),
                CfOp::Fetch(inst, control, fetches) => {
                    let clause = self.fetches(*inst, control, fetches);
                    (clause.map_or(Work::Reference, Work::Fetch), None)
                }
                CfOp::Control(..) | CfOp::Export(..) | CfOp::Memory(..) => (Work::Reference, None),
            };
            let most = match (&work, &cf.op) {
                (Work::Alu(_), CfOp::Alu(clause)) => 1 + clause.group_count() as u32,
                (Work::Fetch(clause), _) => 1 + clause.count,
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

    fn clause(&mut self, code: &Code, clause: &AluClause, end: bool) -> Clause {
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
                if group.ops.iter().any(AluOp::sets_predicate) {
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
            predicate_written |= group.deciding().is_some_and(|op| op.update_pred);
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
            end,
            first_group,
            runs: first_run as u32..self.lowered.runs.len() as u32,
            whole_state,
            single,
        }
    }

    /// Adds a group to the last run of a clause whose first is `first_run`, or to a new one.
    fn add_to_runs(&mut self, first_run: usize, group: &Group<'_>, by_reference: bool) {
        let masks = group.deciding().is_some_and(|op| op.update_execute_mask);
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
        self.lowered.runs.push(Groups {
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
}

/// How a control-flow instruction runs: those that only decide about flow on the flow state. RETURN may leave the fetch
/// program, and CALL_FS enters it, which the reference interpreter does.
fn flow(inst: CfInst, control: Control) -> (Work, Option<Rule>) {
    let row = control::cf(inst);
    match row.work {
        CfWork::Flow(_) if !matches!(inst, CfInst::RETURN | CfInst::CALL_FS) => {
            (Work::Flow(inst, control), row.rule)
        }
        CfWork::Flow(_) | CfWork::Fetch { .. } | CfWork::Emit { .. } | CfWork::WaitAck => {
            (Work::Reference, None)
        }
    }
}
