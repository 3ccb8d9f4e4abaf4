//! Lowers decoded code to operations. The operands of instructions become rows. The slots of a group become an ordered
//! list of operations. Lowering also computes the counts that each execution of a group adds.
//!
//! | module | lowers |
//! |---|---|
//! | this file | clauses, which consist of runs of groups |
//! | `plan` | nothing. Selects the groups to lower, and the groups that need separate rows for PV and PS |
//! | `group` | the operations of a group, and their order |
//! | `fetch` | fetch clauses: texture instructions with their samplers |
//! | `memory` | vertex fetches, memory reads, the local data share, exports |
//! | `rows` | the rows of operands |
//!
//! The lowering skips groups that use global registers, MOVA_GPR_INT or doubles, because these groups are rare. The
//! lowering also skips groups that certainly trap in strict mode. The reference interpreter runs the skipped groups.
//! The reference interpreter also runs a group that indexes a register that does not exist.

mod fetch;
mod group;
mod memory;
mod plan;
mod rows;

use std::ops::Range;

use reconverge_simt::loaded::count_lowered;
use reconverge_simt::place::Layout;
use reconverge_simt::registers::Row;
use reconverge_simt::{Level, Mode, Options};

pub(super) use self::fetch::{
    Bound, Chosen, Conversion, FetchInfo, FetchWork, Fetches, Fetching, MemoryReads, Register, Sample, Vertex,
};
pub(super) use self::memory::{Exported, Exports, Stores};
use self::plan::{Index, Way, addresses, by_loop, index};
use super::indexed::Check;
use super::kernels::choose_both;
use super::lanes::{ACTIVE, Operation, Place, Tables, Uniform};
use crate::chip::LANES;
use crate::code::{AluClause, AluOp, CfOp, Code, Group, Operand, Source};
use crate::control::{self, CfWork};
use crate::flow::{AluForm, Control};
use crate::launch::Environment;
use crate::meaning::{AluCode, Meaning, Opcode};
use crate::rules::Rule;
use crate::wave::PREVIOUS;
use crate::words::{CfInst, Op2};

/// A lowered control-flow instruction.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) work: Work,
    /// Maximum number of instructions that the node issues. The instructions in groups count too. The node runs only if
    /// the instruction budget is at least this number.
    pub(super) most: u32,
    /// END_OF_PROGRAM.
    pub(super) end: bool,
    /// The disputed rules on which the result of the instruction depends.
    pub(super) rules: Vec<Rule>,
}

impl Node {
    /// An instruction that the reference interpreter runs.
    const REFERENCE: Node = Node { work: Work::Reference, most: 0, end: false, rules: Vec::new() };
}

/// Operation of a control-flow instruction.
#[derive(Clone, Debug)]
pub(super) enum Work {
    /// Runs groups.
    Alu(Clause),
    /// Runs fetch instructions.
    Fetch(Fetches),
    /// EXPORT or EXPORT_DONE.
    Export(Exports),
    /// An access to memory: one of the MEM_* instructions.
    Memory(Stores),
    /// An instruction that only changes the flow of lanes.
    Flow(CfInst, Control),
    /// The reference interpreter runs the instruction.
    Reference,
}

/// An ALU clause.
#[derive(Clone, Debug)]
pub(super) struct Clause {
    pub(super) form: AluForm,
    pub(super) whole_quad_mode: bool,
    /// END_OF_PROGRAM.
    pub(super) end: bool,
    /// First group of the clause, as an index into the program's groups.
    pub(super) first_group: u32,
    /// Runs of the clause, as indices into the program's runs.
    pub(super) runs: Range<u32>,
    /// Whether the start of the clause must reset the whole clause state. The reset is necessary if the reference
    /// interpreter runs some group, or if some group reads a PV or PS that the clause has not written.
    pub(super) whole_state: bool,
    /// Whether some operand of the clause uses aL. aL exists only inside DX9 loops. If this field is set, the reference
    /// interpreter runs the clause outside of DX9 loops in strict mode.
    pub(super) loop_index: bool,
    /// The run of the clause. If the clause has several runs, or if the fast engine does not execute the run for the
    /// active lanes, the field is `None`.
    pub(super) single: Option<Groups>,
}

/// Template of an operation. The compiled engine generates code from the template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Template {
    /// The operation has no template. Compiled code calls the kernel of the operation.
    None,
    /// One opcode that has a kernel.
    Code(AluCode),
    /// One opcode, followed by a PRED_SET* that tests the opcode's result.
    Both(Op2, Op2),
    /// A sum over the four vector slots.
    Dot4 {
        /// Whether the opcode is DOT4_IEEE instead of DOT4.
        ieee: bool,
    },
    /// Computes the set of lanes whose predicate is true and the set of lanes whose predicate is false.
    Sets,
    /// Reads a register relative to AR.
    Indexed,
}

/// An operation of the run that the lowering is building.
#[derive(Clone, Copy, Debug)]
struct Made {
    operation: Operation,
    template: Template,
    /// Opcode of the operation. If the opcode has no kernel or the operation has modifiers, this field is `None`.
    plain: Option<AluCode>,
    /// Group of the operation, as an index into the program's groups.
    group: u32,
}

/// A run: consecutive groups of a clause. All groups of the run execute for the same lanes.
#[derive(Clone, Debug)]
pub(super) struct Groups {
    /// Index of the run's first group among the program's groups.
    pub(super) first: u32,
    /// Number of groups in the run.
    pub(super) count: u32,
    /// The address of the last group.
    pub(super) last_addr: u32,
    /// Operations of the run, as indices into [`Lowered::operations`].
    pub(super) operations: Range<u32>,
    /// Whether this run is a single group that the reference interpreter runs.
    pub(super) by_reference: bool,
    /// The checks whether registers exist. If a check fails, the reference interpreter runs the group. A run with
    /// checks has only one group.
    pub(super) checks: Vec<Check>,
    /// Whether the last group updates the execute mask.
    pub(super) masks: bool,
    /// Whether some group contains a KILL*.
    pub(super) kills: bool,
}

/// Data about a group: the counts that each execution adds, and the data that the reference interpreter needs to run
/// the group.
#[derive(Clone, Debug)]
pub(super) struct GroupInfo {
    /// Opcodes of the group, for the counts. If the reference interpreter runs the group, this list is empty. The
    /// reference interpreter counts the opcodes without this list.
    pub(super) opcodes: Vec<&'static Opcode>,
    pub(super) rules: Vec<Rule>,
    /// For each slot, whether the previous group has defined the slot's PV or PS.
    pub(super) defined: [bool; PREVIOUS],
    /// For each of AR.x to AR.w, whether an earlier group of the clause has written this component of AR.
    pub(super) address: [bool; 4],
    /// Whether a PRED_SET* of an earlier group has written the predicate.
    pub(super) predicate_written: bool,
}

/// A lowered program and its lowered fetch program.
#[derive(Clone, Debug)]
pub(super) struct Lowered {
    /// Nodes of the program, followed by the nodes of the fetch program. The nodes of each program are in the order of
    /// their addresses.
    pub(super) nodes: Vec<Node>,
    /// Index of the fetch program's first node.
    fetch_program: usize,
    pub(super) groups: Vec<GroupInfo>,
    /// The address of each group.
    pub(super) addresses: Vec<u32>,
    pub(super) runs: Vec<Groups>,
    /// The instructions of fetch clauses.
    pub(super) fetches: Vec<FetchInfo>,
    /// Operations of groups, in the order of the runs.
    pub(super) operations: Vec<Operation>,
    /// Templates, indexed by operation.
    pub(super) templates: Vec<Template>,
    /// For each operation, the first and the last group whose instructions the operation executes. The two groups
    /// differ only for merged operations.
    pub(super) groups_of: Vec<[u32; 2]>,
    /// Literals and inline constants, each with its row. No operation writes these rows.
    pub(super) constants: Vec<(u32, Place)>,
    /// Constants of the environment, each with its row. No operation writes these rows.
    pub(super) uniforms: Vec<(Uniform, Place)>,
    pub(super) tables: Tables,
    /// All rows that operations name: registers, PV and PS, intermediate results, constants.
    pub(super) layout: Layout<LANES>,
    /// Number of rows that are registers. The other rows have no valid data after a clause.
    pub(super) registers: usize,
    /// Rows of AR.x to AR.w.
    pub(super) address: [Place; 4],
    /// Initial values of all rows after the rows of PV and PS. Rows for constants of the environment are zeros.
    pub(super) room: Vec<Row<LANES>>,
}

impl Lowered {
    /// Returns the number of the first node of the program that contains node `number`. This program is the main
    /// program or the fetch program.
    pub(super) fn first_of(&self, number: u32) -> u32 {
        if (number as usize) < self.fetch_program { 0 } else { self.fetch_program as u32 }
    }

    /// Returns the nodes of the program or of the fetch program, in the order of their addresses. Also returns the
    /// number of the first of these nodes.
    pub(super) fn program(&self, fetch_program: bool) -> (usize, &[Node]) {
        let (first, second) = self.nodes.split_at(self.fetch_program);
        if fetch_program { (self.fetch_program, second) } else { (0, first) }
    }
}

/// Number of intermediate rows. Five rows keep results of a group until the end of the group. One row receives results
/// that no operation reads. In the layout, the rows of AR come after the intermediate rows.
const INTERMEDIATE: usize = 6;

/// Lowers a program and its fetch program for an environment. [`Environment::lowers_alike`] lists the parts of the
/// environment on which the result depends.
pub(super) fn lower(
    code: &Code,
    fetch_code: Option<&Code>,
    environment: &Environment,
    options: &Options,
) -> Lowered {
    count_lowered();
    let previous = environment.register_rows();
    let layout = Layout::new(previous + PREVIOUS + INTERMEDIATE + 4);
    let lowered = Lowered {
        nodes: Vec::new(),
        fetch_program: 0,
        groups: Vec::new(),
        addresses: Vec::new(),
        runs: Vec::new(),
        fetches: Vec::new(),
        operations: Vec::new(),
        templates: Vec::new(),
        groups_of: Vec::new(),
        constants: Vec::new(),
        uniforms: Vec::new(),
        tables: Tables {
            registers: Layout::new(previous),
            indexed: environment.num_gprs.into(),
            ..Tables::default()
        },
        address: [0, 1, 2, 3].map(|chan| layout.place(previous + PREVIOUS + INTERMEDIATE + chan)),
        layout,
        registers: previous,
        room: vec![Row::ZERO; INTERMEDIATE + 4],
    };
    let (strict, level) = (options.mode == Mode::Strict, options.level());
    let mut lowering = Lowering {
        environment,
        strict,
        level,
        previous,
        temporaries: Vec::new(),
        used: 0,
        checks: Vec::new(),
        run: Vec::new(),
        lowered,
    };
    lowering.code(code);
    lowering.lowered.fetch_program = lowering.lowered.nodes.len();
    if let Some(code) = fetch_code {
        lowering.code(code);
    }
    lowering.lowered
}

struct Lowering<'a> {
    environment: &'a Environment,
    strict: bool,
    level: Level,
    /// The row of PV.x.
    previous: usize,
    /// Rows for operands of a group.
    temporaries: Vec<Place>,
    /// Number of elements of `temporaries` that the group uses.
    used: usize,
    /// Checks of the run that the lowering is building.
    checks: Vec<Check>,
    /// Operations of the run that the lowering is building.
    run: Vec<Made>,
    lowered: Lowered,
}

/// State of PV, PS and AR before a group.
#[derive(Clone, Copy, Default)]
struct Before {
    defined: [bool; PREVIOUS],
    /// For each of PV and PS, the register with the same value. The values must be the same in every lane that runs the
    /// next group. If no such register exists, the entry is `None`.
    register: [Option<Place>; PREVIOUS],
    /// For each of AR.x to AR.w, whether the clause has defined this component.
    address: [bool; 4],
}

impl Lowering<'_> {
    fn code(&mut self, code: &Code) {
        let first = self.lowered.nodes.len();
        for (addr, cf) in code.instructions() {
            let reference = (Work::Reference, Vec::new());
            let (work, rules) = match &cf.op {
                CfOp::Alu(clause) => (Work::Alu(self.clause(code, clause, cf.end_of_program)), Vec::new()),
                CfOp::Control(inst, control) if !control.whole_quad_mode => self.flow(*inst, *control),
                CfOp::Fetch(inst, control, fetches) => {
                    let clause = self.fetches(*inst, control, fetches);
                    (clause.map_or(Work::Reference, Work::Fetch), Vec::new())
                }
                CfOp::Export(control, export) => {
                    (self.exports(control, export).unwrap_or(Work::Reference), Vec::new())
                }
                CfOp::Memory(control, export) => self.stores(control, export).unwrap_or(reference),
                CfOp::Control(..) => reference,
            };
            let most = match (&work, &cf.op) {
                (Work::Alu(_), CfOp::Alu(clause)) => 1 + clause.group_count() as u32,
                (Work::Fetch(clause), _) => 1 + clause.count,
                (Work::Alu(_) | Work::Flow(..) | Work::Export(_) | Work::Memory(_), _) => 1,
                (Work::Reference, _) => 0,
            };
            let place = first + addr as usize;
            if place >= self.lowered.nodes.len() {
                self.lowered.nodes.resize(place + 1, Node::REFERENCE);
            }
            self.lowered.nodes[place] = Node { work, most, end: cf.end_of_program, rules };
        }
    }

    /// Returns the work of a control-flow instruction, and the disputed rules on which the result of the instruction
    /// depends. If the instruction does more than change the flow of lanes, the reference interpreter runs the
    /// instruction.
    fn flow(&self, inst: CfInst, control: Control) -> (Work, Vec<Rule>) {
        let row = control::cf(inst);
        // In strict mode, the instruction traps if this kind of program may not contain the instruction.
        let fits = !self.strict || row.stage.is_none_or(|stage| stage == self.environment.stage);
        match row.work {
            CfWork::Flow(_) if fits => (Work::Flow(inst, control), row.rule.into_iter().collect()),
            CfWork::Flow(_) | CfWork::Fetch { .. } | CfWork::Emit { .. } | CfWork::WaitAck => {
                (Work::Reference, Vec::new())
            }
        }
    }

    // Lowering of ALU clauses.

    fn clause(&mut self, code: &Code, clause: &AluClause, end: bool) -> Clause {
        let groups: Vec<Group<'_>> = code.groups(clause).collect();
        let ways = self.ways(clause, &groups);
        let wanted = self.wanted(&groups, &ways);
        let first_group = self.lowered.groups.len() as u32;
        let first_run = self.lowered.runs.len();
        let mut before = Before::default();
        let mut predicate_written = false;
        let mut loop_index = false;
        for (number, group) in groups.iter().enumerate() {
            self.add_to_runs(first_run, group, ways[number]);
            let mut info = GroupInfo {
                opcodes: Vec::new(),
                rules: Vec::new(),
                defined: before.defined,
                address: before.address,
                predicate_written,
            };
            if ways[number] != Way::Reference {
                info.opcodes = group.ops.iter().map(|op| op.opcode).collect();
                info.rules.extend(info.opcodes.iter().filter_map(|opcode| opcode.rule));
                if group.ops.iter().any(|op| op.pred_sel.is_some()) && !predicate_written {
                    info.rules.push(Rule::PREDICATE_STARTS_TRUE);
                }
                if group.ops.iter().any(AluOp::sets_predicate) {
                    info.rules.push(Rule::PRED_SET_WRITES_ZERO_FOR_TRUE);
                }
                let read =
                    || group.ops.iter().flat_map(|op| op.read().iter().map(move |source| (op, source)));
                let window = |source: &Source| match source.operand {
                    Operand::Kcache { set, .. } => by_loop(clause, set),
                    _ => false,
                };
                let by_mode = |op: &AluOp| index(op.index_mode) == Some(Index::Loop);
                let windows = read().any(|(_, source)| window(source));
                info.rules.extend(windows.then_some(Rule::LOCK_LOOP_INDEX_COUNTS_LINES));
                let writes = group.ops.iter().any(|op| op.dst_rel);
                info.rules.extend(writes.then_some(Rule::INDEXED_WRITES_ARE_SEEN_IN_THE_GROUP));
                loop_index |= windows
                    || read().any(|(op, source)| source.rel && by_mode(op))
                    || group.ops.iter().any(|op| op.dst_rel && by_mode(op));
                if ways[number] == Way::Checked {
                    // PV and PS have the values of some registers. An indexed write may change these registers. So the
                    // group reads PV and PS from separate rows.
                    before.register = [None; PREVIOUS];
                }
                self.group(clause, group, &before, wanted[number]);
            }
            let mut address = before.address;
            for (defined, written) in address.iter_mut().zip(addresses(group)) {
                *defined |= written;
            }
            before = Before { address, ..Before::default() };
            for op in group.ops.iter().filter(|op| !matches!(op.opcode.meaning, Meaning::Nothing)) {
                let slot = usize::from(op.slot);
                before.defined[slot] = true;
                if ways[number] == Way::Lowered && op.write && op.pred_sel.is_none() {
                    before.register[slot] = self.destination(op);
                }
            }
            predicate_written |= group.deciding().is_some_and(|op| op.update_pred);
            self.lowered.addresses.push(group.addr);
            self.lowered.groups.push(info);
        }
        self.end_run();
        let whole_state = ways.contains(&Way::Reference) || wanted[groups.len()] != [false; PREVIOUS];
        let alone = !whole_state && !clause.whole_quad_mode && !loop_index;
        let single = match &self.lowered.runs[first_run..] {
            [run] if alone && !run.kills && run.checks.is_empty() => Some(run.clone()),
            _ => None,
        };
        Clause {
            form: clause.form,
            whole_quad_mode: clause.whole_quad_mode,
            end,
            first_group,
            runs: first_run as u32..self.lowered.runs.len() as u32,
            whole_state,
            loop_index,
            single,
        }
    }

    /// Adds a group to the last run of the clause or to a new run. `first_run` is the first run of the clause.
    fn add_to_runs(&mut self, first_run: usize, group: &Group<'_>, way: Way) {
        let masks = group.deciding().is_some_and(|op| op.update_execute_mask);
        let kills = group.ops.iter().any(|op| matches!(op.opcode.meaning, Meaning::Kill(_)));
        if let Some(last) = self.lowered.runs[first_run..].last_mut()
            && !last.by_reference
            && !last.masks
            && self.checks.is_empty()
            && way == Way::Lowered
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
            by_reference: way == Way::Reference,
            checks: Vec::new(),
            masks,
            kills,
        });
    }

    /// Adds the operations of the last run to the lowered program. Merges a comparison and a PRED_SET* that tests the
    /// result of the comparison into one operation.
    fn end_run(&mut self) {
        let first = self.lowered.operations.len() as u32;
        let operations = std::mem::take(&mut self.run);
        let mut rest = &operations[..];
        while let [one, others @ ..] = rest {
            let both = others.first().and_then(|other| self.both(one, other));
            let (operation, template) = both.unwrap_or((one.operation, one.template));
            self.lowered.operations.push(operation);
            self.lowered.templates.push(template);
            let last = if both.is_some() { &others[0] } else { one };
            self.lowered.groups_of.push([one.group, last.group]);
            rest = if both.is_some() { &others[1..] } else { others };
        }
        let end = self.lowered.operations.len() as u32;
        let checks = std::mem::take(&mut self.checks);
        if let Some(run) = self.lowered.runs.last_mut().filter(|_| first < end || !checks.is_empty()) {
            (run.operations, run.checks) = (first..end, checks);
        }
    }

    /// Merges two operations into one operation. Returns `None` if no kernel computes both operations.
    fn both(&self, first: &Made, second: &Made) -> Option<(Operation, Template)> {
        let (Made { operation: first, plain: one, .. }, Made { operation: second, plain: other, .. }) =
            (first, second);
        let run = choose_both((*one)?, (*other)?, self.level)?;
        let (Some(AluCode::Op2(one)), Some(AluCode::Op2(two))) = (*one, *other) else { return None };
        let [tested, other, _] = second.src;
        let fits = tested == first.dst && other != first.dst && (first.set, second.set) == (ACTIVE, ACTIVE);
        let nowhere = second.dst == self.intermediate(INTERMEDIATE - 1);
        let src = [first.src[0], first.src[1], other];
        (fits && nowhere)
            .then_some((Operation { run, src, dst: first.dst, ..*second }, Template::Both(one, two)))
    }
}
