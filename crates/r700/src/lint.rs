//! Checks that the hardware defines the behaviour of a program. The checks cover slots, read ports, constants, clauses
//! and exports.
//!
//! Every rule has a name and a source. Words that do not form a valid instruction violate the rule `decode`.

mod clause;
mod layout;
mod order;
mod paths;
mod reserved;
mod unwritten;

pub use unwritten::Components;

use litemap::LiteMap;
use reconverge_isa::graph::Edge;
use reconverge_isa::lint::{Finding, Rule};
use reconverge_isa::program::Stage;
use reconverge_simt::uses::{Uses, UsesAt};

use crate::chip::{Chip, Family};
use crate::code::Space;
use crate::code::{AluClause, AluOp, Cf, CfOp, Code, CodeOptions, Export, ExportKind, Group, Operand, TRANS};
use crate::control;
use crate::flow::AluForm;
use crate::graph::Ways;
use crate::meaning::Meaning;
use crate::ports::{self, SCALAR, VECTOR};
use crate::uses::{CLAUSE_TEMPORARIES, uses};
use crate::words::{CfInst, IndexModeR700, KcacheMode};

reconverge_isa::rules! {
    DECODE = "decode", Error, "Every reachable instruction is defined on the chip.", "MAN 2-4", "correct the word, or choose the chip that the program was made for";
    RESERVED_BITS = "reserved-bits", Note, "Bits outside all fields are 0.", "MAN 2-4: reserved", "clear the bits";
    MODES = "modes", Error, "WHOLE_QUAD_MODE and VALID_PIXEL_MODE exclude each other.", "MAN p. 49", "clear one of the two bits";
    ALIGNMENT = "alignment", Error, "A fetch clause begins at an even address.", "XF86, LLVM R600ControlFlowFinalizer", "put a zero word before the clause and increment ADDR";
    OFF_END = "off-end", Error, "Control flow ends within the program's words.", "MAN p. 37", "set END_OF_PROGRAM on the last control-flow instruction; after an ALU clause add `NOP: END_OF_PROGRAM`";
    INTO_CLAUSE = "into-clause", Error, "Control flow does not enter the words of a clause.", "MAN p. 37: clauses do not contain control flow", "name a control-flow instruction in ADDR, or end the program before its first clause";
    UNREACHABLE = "unreachable", Note, "Every non-zero word is an instruction or a literal that some path reaches.", "MAN p. 37", "remove the words, or correct the jump that should lead to them";
    CALL_POP = "call-pop", Error, "A CALL does not pop entries.", "MAN p. 53", "set POP_COUNT to 0 and pop before the call";
    LOOP_PAIR = "loop-pair", Error, "LOOP_START names the address after its LOOP_END, and LOOP_END names the address after its LOOP_START.", "MAN p. 120, Mesa", "set the ADDR of each of the two instructions to the address after the other instruction";
    LOOP_EXIT = "loop-exit", Error, "LOOP_BREAK and LOOP_CONTINUE name the LOOP_END of the innermost loop.", "Mesa, LLVM", "set ADDR to that LOOP_END";
    OUTSIDE_LOOP = "outside-loop", Error, "LOOP_BREAK, LOOP_CONTINUE, ALU_BREAK and ALU_CONTINUE are in a loop of their subroutine.", "MAN pp. 47, 120", "put a loop around the instruction, or use a branch";
    LOOP_OPEN = "loop-open", Error, "At a LOOP_END the entry of its loop is on top of the stack.", "MAN p. 120", "pop the entries of the body before the LOOP_END; end each loop once";
    POP = "pop", Error, "Entries that an instruction pops were pushed by branches of the same subroutine and loop.", "MAN pp. 49 to 54", "lower POP_COUNT, or push on every path that leads here";
    ELSE = "else", Error, "ELSE is between a push and its pop.", "MAN p. 53", "push before the branch, as ALU_PUSH_BEFORE does";
    RETURN = "return", Error, "At a RETURN the entry of a call is on top of the stack.", "MAN p. 53", "pop and end loops before the RETURN; in a main program use END_OF_PROGRAM";
    STACK_MERGE = "stack-merge", Warning, "All paths to an instruction have the same entries on the stack.", "inferred: no later POP_COUNT fits all paths", "pop on the path that has more entries: POP_COUNT of the JUMP, or a POP";
    STACK_LEFT = "stack-left", Warning, "The stack is empty at the end of the program.", "inferred: the hardware stops with any stack, but a structured program ends with an empty stack", "pop the branches and end the loops before END_OF_PROGRAM";
    END_IN_CALL = "end-in-call", Warning, "The program does not end inside a subroutine.", "inferred: MAN p. 53 ends subroutines with RETURN", "return, and set END_OF_PROGRAM after the call";
    STACK_SIZE = "stack-size", Error, "STACK_SIZE is sufficient for every path.", "MAN p. 51; Mesa, LLVM for two subentries more", "declare the size that the message names; limit a recursion with CALL_COUNT";
    LOOP_INDEX = "loop-index", Error, "aL is used only in a loop that has an index.", "MAN p. 120", "start the loop with LOOP_START, or index by AR";
    EXPORT_TARGET = "export-target", Error, "PIXEL is 0 to 7 or 61 (R600 also 16 to 23), POS 60 to 63, PARAM 0 to 31.", "MAN 3, XF86", "correct ARRAY_BASE or BURST_COUNT";
    EXPORT_DONE = "export-done", Error, "For each type, the last export is an EXPORT_DONE, and every earlier export is an EXPORT.", "MAN 3, XF86", "use EXPORT_DONE for the last export of the type, and EXPORT for all earlier exports";
    STAGE = "stage", Error, "Each instruction and each export is valid for the program type.", "MAN p. 47; DECAF, Mesa for exports", "correct the instruction, or the stated program type";
    KILL_STAGE = "kill-stage", Note, "Only pixel programs have KILL instructions in ALU clauses.", "MAN p. 47; DECAF: geometry programs stop lanes with KILL instructions", "branch around the code that the lanes should skip";
    BARRIER = "barrier", Warning, "BARRIER is set on instructions that read results of a fetch clause, and on exports that read results of any clause.", "XF86, LLVM, Mesa", "set BARRIER";
    SCRATCH_WAIT = "scratch-wait", Warning, "On R700 a WAIT_ACK is between a write to memory and a fetch that reads that memory.", "Mesa r600_shader.c", "write with an ACK type and put `WAIT_ACK: ADDR(0)` before the fetch clause";
    FETCH_HAZARD = "fetch-hazard", Warning, "A fetch does not read a register that an earlier fetch of its clause writes.", "LLVM isCompatibleWithClause", "put the second fetch into a separate clause, with BARRIER";
    KCACHE_RANGE = "kcache-range", Error, "A constant is read from the lines that its clause has locked.", "MAN 4", "lock the line of the constant (KCACHE_MODE), or read another constant";
    KCACHE_REL = "kcache-rel", Error, "Only registers and the constant file are indexed.", "MAN p. 67", "clear SRC_REL; read a constant through an index with a vertex fetch";
    INDEX_MODE = "index-mode", Error, "Registers are indexed by AR.x or aL; GLOBAL modes exist only on R700.", "MAN p. 67, DECAF", "set INDEX_MODE to AR_X or LOOP";
    INDEXED_WRITE = "indexed-write", Warning, "On RV770 and on the chips that index by aL, a group does not read a register that the previous group may have written through an index. An indexed read of the same component violates this rule. A direct read of the named register also violates this rule. On the chips that index by aL, a direct read of a higher register also violates this rule.", "Mesa r6xx_nop_after_rel_dst", "put a group with a NOP between the two groups";
    BANK_SWIZZLE = "bank-swizzle", Error, "BANK_SWIZZLE is 0 to 5, or 0 to 3 in slot t.", "MAN 4", "choose a BANK_SWIZZLE of the slot";
    READ_PORT = "read-port", Error, "Each cycle reads at most one register address per component.", "Mesa check_vector, check_scalar", "choose another BANK_SWIZZLE, or split the group";
    CONSTANT_PORT = "constant-port", Error, "A group reads at most two pairs of constant components (R600: four components).", "LLVM fitsConstReadLimitations, Mesa", "split the group, or copy a constant to a register first";
    TRANS_CONSTANTS = "trans-constants", Error, "Slot t reads at most two constants.", "Mesa check_scalar", "copy a constant to a register first";
    ONE_PREDICATE = "one-predicate", Error, "A group has at most one PRED_SET, and no KILL in addition.", "Mesa, whose output has groups with several KILLs", "put these instructions into separate groups";
    PREDICATE = "predicate", Warning, "PRED_SEL is used only after a PRED_SET with UPDATE_PRED in the same clause.", "LLVM; at the start of a clause the predicate is undefined (D22)", "set the predicate in this clause";
    PRED_SEL = "pred-sel", Warning, "All instructions of a group have the same PRED_SEL.", "LLVM", "split the group";
    PREVIOUS = "previous", Error, "PV and PS are read only if the previous group has written them.", "MAN 4", "read the register, or put the group directly after the group that writes PV or PS";
    MOVA_USE = "mova-use", Error, "A group does not use AR if the same group writes AR, and the last group of a clause does not write AR.", "MAN p. 67, Mesa, LLVM", "put the MOVA into an earlier group";
    ADDRESS = "address", Error, "AR is used only after a MOVA in the same clause has written it.", "MAN p. 67", "repeat the MOVA in this clause";
    DOUBLE_WRITE = "double-write", Error, "Two instructions of a group do not write the same component.", "MAN 4", "clear WRITE_MASK of one, or split the group";
    PRED_UPDATE = "pred-update", Error, "Only PRED_SET updates the predicate or the execute mask.", "MAN 4", "clear UPDATE_PRED and UPDATE_EXECUTE_MASK";
    EXEC_LAST = "exec-last", Error, "Only the last group of a clause updates the execute mask.", "all known compilers", "end the clause after the group";
    REGISTERS = "registers", Error, "Registers are below NUM_GPRS, or are the four clause temporaries.", "MAN p. 33", "declare more registers, or use lower ones";
    UNWRITTEN = "unwritten", Warning, "A register that is read is an input, or is written on at least one path to the read.", "MAN p. 33: its contents are undefined", "write the register before the read";
    UNWRITTEN_PATH = "unwritten-path", Note, "A register that is read is an input, or is written on every path to the read.", "MAN p. 33: its contents are undefined", "if lanes can take the path without a write, write the register on this path";
    NO_EXPORT = "no-export", Warning, "A pixel program exports PIXEL, and a vertex program exports POS.", "MAN 3: a stage passes its results on by exports", "export the colour or the position with EXPORT_DONE";
    END_PLACE = "end-place", Warning, "END_OF_PROGRAM is not on a POP or a LOOP_END.", "Mesa r600_shader.c, which adds a NOP", "put a `NOP: END_OF_PROGRAM` after the instruction";
    INTEGER_MODIFIER = "integer-modifier", Error, "Integer operations have no ABS, NEG, OMOD or CLAMP; the operands that CND*_INT select from may be negated.", "MAN 4", "clear the modifier and use a separate operation";
}

/// Facts about a program that its words do not contain. An unknown fact is `None`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Known {
    /// First control-flow instruction of the program.
    pub start: u32,
    /// Kind of the program.
    pub stage: Option<Stage>,
    /// The register components that have a value at the start of the program.
    pub inputs: Option<Components>,
    /// STACK_SIZE, in entries.
    pub stack_size: Option<u32>,
    /// NUM_GPRS.
    pub registers: Option<u32>,
}

/// Returns the findings in a program, in the order of their addresses. The checks use only the words of the program.
pub fn lint(words: &[u32], chip: Chip) -> Vec<Finding> {
    lint_with(words, chip, &Known::default())
}

/// Returns the findings in a program, in the order of their addresses. The rules `stack-size`, `stage`, `registers` and
/// `unwritten` each need a fact. If this fact is not known, the rule has no findings.
pub fn lint_with(words: &[u32], chip: Chip, known: &Known) -> Vec<Finding> {
    let code = Code::new(words, known.start, CodeOptions::new(chip));
    let ways = Ways::of(&code, known.start);
    let mut lint = Lint { words, chip, known, uses: uses(&code), found: Vec::new() };
    let layout = layout::layout(&mut lint, &code, &ways);
    for (addr, fault) in code.faults().filter(|(addr, _)| layout.sound(*addr)) {
        lint.find(&DECODE, addr, fault.to_string());
    }
    for (addr, cf) in code.instructions().filter(|(addr, _)| layout.sound(*addr)) {
        lint.cf(&code, addr, cf);
    }
    lint.exports(&code);
    paths::paths(&mut lint, &code, &ways);
    order::order(&mut lint, &code, &ways);
    if let Some(inputs) = known.inputs {
        unwritten::unwritten(&mut lint, &code, &ways, inputs);
    }
    Finding::sort(&mut lint.found);
    lint.found
}

struct Lint<'a> {
    words: &'a [u32],
    chip: Chip,
    known: &'a Known,
    uses: UsesAt,
    found: Vec<Finding>,
}

/// Computes the facts that hold before each reachable control-flow instruction. `first` contains the facts at the start
/// of the program.
///
/// `step` computes the facts after an instruction from the facts before this instruction. `join` merges the facts of
/// paths that meet. `leads` returns the target of an edge, or `None` if the search must ignore the edge.
fn forward<S: Clone + PartialEq>(
    ways: &Ways,
    start: u32,
    first: S,
    join: impl Fn(&S, &S) -> S,
    mut step: impl FnMut(u32, &S) -> S,
    leads: impl Fn(u32, &Edge) -> Option<u32>,
) -> LiteMap<u32, S> {
    let mut facts: Vec<Option<S>> = vec![None; ways.next.len()];
    let mut open = vec![(start, first)];
    while let Some((addr, from)) = open.pop() {
        let Ok(number) = ways.next.find_index(&addr) else { continue };
        let next = &ways.next[&addr];
        let before = facts[number].as_ref().map_or_else(|| from.clone(), |known| join(known, &from));
        if facts[number].as_ref() == Some(&before) {
            continue;
        }
        let after = step(addr, &before);
        facts[number] = Some(before);
        open.extend(next.iter().filter_map(|edge| Some((leads(addr, edge)?, after.clone()))));
    }
    let known = ways.next.keys().zip(facts).filter_map(|(addr, before)| Some((*addr, before?)));
    LiteMap::from_sorted_store_unchecked(known.collect())
}

impl Lint<'_> {
    fn find(&mut self, rule: &'static Rule, addr: u32, what: impl Into<String>) {
        self.found.push(Finding { rule, pc: addr, message: what.into() });
    }

    /// Returns the operations of a control-flow instruction and of the instructions in its clause. The list is in
    /// program order and contains the address of each instruction.
    fn uses_of<'u>(uses: &'u UsesAt, code: &Code, addr: u32, op: &CfOp) -> Vec<(u32, &'u Uses)> {
        let of = |pc: u32| uses.get(&pc).into_iter().flat_map(move |list| (pc..).zip(list));
        code.places(addr, op).into_iter().flat_map(of).collect()
    }

    /// Checks that the program exports the data that its kind requires.
    fn exports(&mut self, code: &Code) {
        let (kind, name) = match self.known.stage {
            Some(Stage::Pixel) => (ExportKind::Pixel, "PIXEL"),
            Some(Stage::Vertex) => (ExportKind::Pos, "POS"),
            _ => return,
        };
        let all = || code.instructions().map(|(_, cf)| cf);
        // A vertex program that runs before a geometry shader writes to a ring and does not export. Some programs write
        // only to memory. A program with a RETURN may be a subroutine. Then the caller of the subroutine exports the
        // data.
        let other = |cf: &Cf| match &cf.op {
            CfOp::Memory(..) | CfOp::Control(CfInst::RETURN, _) => true,
            // If this kind of program may not contain the export, the rule `stage` already reports the export. So this
            // check ignores the export.
            CfOp::Export(_, export) => (export.kind == ExportKind::Pixel) != (kind == ExportKind::Pixel),
            CfOp::Control(..) | CfOp::Fetch(..) | CfOp::Alu(_) => false,
        };
        let exported = |cf: &Cf| matches!(&cf.op, CfOp::Export(_, export) if export.kind == kind);
        if code.faults().next().is_none() && !all().any(|cf| other(cf) || exported(cf)) {
            self.find(&NO_EXPORT, self.known.start, format!("no path exports {name}"));
        }
    }

    fn cf(&mut self, code: &Code, addr: u32, cf: &Cf) {
        if cf.end_of_program
            && let CfOp::Control(inst @ (CfInst::POP | CfInst::LOOP_END), _) = &cf.op
        {
            self.find(&END_PLACE, addr, format!("END_OF_PROGRAM is on a {}", inst.name()));
        }
        self.stage(addr, &cf.op);
        self.reserved(addr, &cf.op);
        self.registers(code, addr, cf);
        match &cf.op {
            CfOp::Control(inst, control) => {
                self.modes(addr, control.whole_quad_mode, control.valid_pixel_mode);
                self.control(code, addr, *inst, control.addr, control.pop_count);
            }
            CfOp::Fetch(inst, control, fetches) => {
                self.fetches(fetches);
                self.modes(addr, control.whole_quad_mode, control.valid_pixel_mode);
                if control.addr % 2 != 0 {
                    self.find(&ALIGNMENT, addr, format!("{} names address {}", inst.name(), control.addr));
                }
            }
            CfOp::Alu(clause) => self.alu(code, clause),
            CfOp::Export(control, export) => {
                self.modes(addr, control.whole_quad_mode, control.valid_pixel_mode);
                self.export(addr, export);
            }
            CfOp::Memory(control, _) => self.modes(addr, control.whole_quad_mode, control.valid_pixel_mode),
        }
    }

    fn stage(&mut self, addr: u32, op: &CfOp) {
        let Some(stage) = self.known.stage else { return };
        let (name, fits) = match op {
            CfOp::Control(inst, _) => match control::cf(*inst).stage {
                Some(control::Stage::Pixel) => (inst.name(), stage == Stage::Pixel),
                Some(control::Stage::Vertex) => (inst.name(), stage == Stage::Vertex),
                Some(control::Stage::Geometry) => (inst.name(), stage == Stage::Geometry),
                None => return,
            },
            CfOp::Export(_, export) => match export.kind {
                ExportKind::Pixel => ("an export of PIXEL", stage == Stage::Pixel),
                ExportKind::Pos => ("an export of POS", matches!(stage, Stage::Vertex | Stage::GsCopy)),
                ExportKind::Param => ("an export of PARAM", matches!(stage, Stage::Vertex | Stage::GsCopy)),
            },
            CfOp::Memory(_, memory) => match memory.space() {
                Space::Ring => (memory.inst.name(), stage != Stage::Pixel),
                Space::Stream(_) => (memory.inst.name(), matches!(stage, Stage::Vertex | Stage::GsCopy)),
                Space::Scratch | Space::Reduction | Space::Scatter => return,
            },
            CfOp::Fetch(..) | CfOp::Alu(_) => return,
        };
        // No source states the hardware stage in which a compute kernel runs, so compute kernels are not checked.
        if !fits && stage != Stage::Compute {
            self.find(&STAGE, addr, format!("{name} in a program of stage {stage}"));
        }
    }

    fn registers(&mut self, code: &Code, addr: u32, cf: &Cf) {
        let Some(declared) = self.known.registers else { return };
        let mut beyond = Vec::new();
        for (pc, uses) in Lint::uses_of(&self.uses, code, addr, &cf.op) {
            let slots = uses.reads.iter().map(|read| read.slot).chain(uses.writes.iter().copied());
            let numbers = slots.filter(|slot| slot.file == crate::uses::R).filter_map(|slot| slot.number);
            let outside = |register: &u32| (declared..CLAUSE_TEMPORARIES).contains(register);
            beyond.extend(numbers.map(|number| number / 4).find(outside).map(|register| (pc, register)));
        }
        for (pc, register) in beyond {
            self.find(&REGISTERS, pc, format!("R{register} is used, NUM_GPRS is {declared}"));
        }
    }

    fn modes(&mut self, addr: u32, whole_quad: bool, valid_pixel: bool) {
        if whole_quad && valid_pixel {
            self.find(&MODES, addr, "both are set");
        }
    }

    fn control(&mut self, code: &Code, addr: u32, inst: CfInst, target: u32, pop_count: u8) {
        let at = |addr: u32| match code.cf(addr).ok().map(|cf| &cf.op) {
            Some(CfOp::Control(inst, control)) => Some((*inst, control.addr)),
            Some(CfOp::Fetch(..) | CfOp::Alu(_) | CfOp::Export(..) | CfOp::Memory(..)) | None => None,
        };
        match inst {
            CfInst::LOOP_START | CfInst::LOOP_START_DX10 | CfInst::LOOP_START_NO_AL => {
                let end = target.checked_sub(1).and_then(at);
                if end != Some((CfInst::LOOP_END, addr + 1)) {
                    self.find(
                        &LOOP_PAIR,
                        addr,
                        format!("no LOOP_END of this loop is at {}", target.wrapping_sub(1)),
                    );
                }
            }
            CfInst::LOOP_BREAK | CfInst::LOOP_CONTINUE
                if at(target).is_none_or(|(inst, _)| inst != CfInst::LOOP_END) =>
            {
                self.find(&LOOP_EXIT, addr, format!("no LOOP_END is at {target}"));
            }
            CfInst::CALL if pop_count != 0 => self.find(&CALL_POP, addr, format!("POP_COUNT is {pop_count}")),
            // No rule checks other instructions.
            _ => {}
        }
    }

    fn export(&mut self, addr: u32, export: &Export) {
        let last = export.base + u16::from(export.burst) - 1;
        let fog = self.chip.family == Family::R600;
        let fits = |base: u16| match export.kind {
            ExportKind::Pixel => base < 8 || base == 61 || (fog && (16..24).contains(&base)),
            ExportKind::Pos => (60..64).contains(&base),
            ExportKind::Param => base < 32,
        };
        if !(export.base..=last).all(fits) {
            self.find(&EXPORT_TARGET, addr, format!("{:?} {} to {last}", export.kind, export.base));
        }
    }

    fn alu(&mut self, code: &Code, clause: &AluClause) {
        self.sequence(code, clause);
        for (index, group) in code.groups(clause).enumerate() {
            let last = index + 1 == clause.group_count();
            self.group(clause, group, last);
            self.ports(group);
        }
    }

    fn group(&mut self, clause: &AluClause, group: Group<'_>, last: bool) {
        let (mut predicates, mut kills) = (0, 0);
        let mut written = Vec::new();
        let mova = |op: &AluOp| matches!(op.opcode.meaning, Meaning::Mova(_));
        for (op, addr) in group.ops.iter().zip(group.addr..) {
            let name = op.opcode.name;
            let pred = op.sets_predicate();
            predicates += usize::from(pred);
            kills += usize::from(matches!(op.opcode.meaning, Meaning::Kill(_)));
            if (op.update_pred || op.update_execute_mask) && !pred {
                self.find(&PRED_UPDATE, addr, format!("{name} updates the predicate or the execute mask"));
            }
            if op.update_execute_mask && !last {
                self.find(&EXEC_LAST, addr, "groups follow");
            }
            if mova(op) && last && clause.form != AluForm::ALU_PUSH_BEFORE {
                self.find(&MOVA_USE, addr, format!("{name} is in the last group"));
            }
            let sources = op.read();
            let by_ar = op.index_mode.address().is_some();
            if (op.dst_rel || sources.iter().any(|source| source.rel)) && by_ar && group.ops.iter().any(mova)
            {
                self.find(&MOVA_USE, addr, "AR is written in this group");
            }
            let integer =
                matches!(op.opcode.meaning, Meaning::Bits1(_) | Meaning::Bits2(_) | Meaning::Bits3(_))
                    && name.ends_with("INT")
                    && !name.starts_with("FLT_TO");
            // CND*_INT tests its first operand as an integer. The result of CND*_INT is the second or the third
            // operand, which may be a float.
            let chooses = matches!(op.opcode.meaning, Meaning::Bits3(_));
            let mut integers = sources.iter().take(if chooses { 1 } else { 3 });
            let modified = op.clamp && !chooses || op.omod != 1.0;
            if integer && (modified || integers.any(|source| source.abs || source.neg)) {
                self.find(&INTEGER_MODIFIER, addr, format!("{name} has one"));
            }
            for source in sources {
                self.source(clause, op, source.operand, source.rel, addr);
            }
            if op.dst_rel {
                self.index_mode(op, addr);
            } else if op.write {
                if written.contains(&(op.dst_gpr, op.dst_chan)) {
                    self.find(
                        &DOUBLE_WRITE,
                        addr,
                        format!("R{}.{}", op.dst_gpr, ["x", "y", "z", "w"][usize::from(op.dst_chan & 3)]),
                    );
                }
                written.push((op.dst_gpr, op.dst_chan));
            }
        }
        if let Some(stage) =
            self.known.stage.filter(|stage| !matches!(stage, Stage::Pixel | Stage::Fragment | Stage::Compute))
            && kills > 0
        {
            self.find(&KILL_STAGE, group.addr, format!("KILL in a program of stage {stage}"));
        }
        // A comparison of doubles occupies two slots. Each of the two slots counts as a PRED_SET.
        if predicates > 0
            && predicates + kills > 1
            && !group.ops.iter().all(|op| matches!(op.opcode.meaning, Meaning::Double(_)))
        {
            self.find(
                &ONE_PREDICATE,
                group.addr,
                format!("the group has {predicates} PRED_SET and {kills} KILL"),
            );
        }
    }

    fn source(&mut self, clause: &AluClause, op: &AluOp, operand: Operand, rel: bool, addr: u32) {
        match operand {
            Operand::Gpr { .. } => {
                if rel {
                    self.index_mode(op, addr);
                }
            }
            Operand::ConstantFile { .. } => {}
            Operand::Kcache { set, index, .. } => {
                let locked = match clause.kcache[usize::from(set)].mode {
                    KcacheMode::NOP => 0,
                    KcacheMode::LOCK_1 => 16,
                    KcacheMode::LOCK_2 | KcacheMode::LOCK_LOOP_INDEX => 32,
                };
                if index >= locked {
                    let message = format!(
                        "KC{set}[{index}] is read, but only {locked} constants of KC{set} are locked"
                    );
                    self.find(&KCACHE_RANGE, addr, message);
                }
                if rel {
                    self.find(&KCACHE_REL, addr, format!("KC{set}[{index}] is indexed"));
                }
            }
            Operand::Value(_) | Operand::Previous(_) | Operand::PreviousScalar => {
                if rel {
                    self.find(&KCACHE_REL, addr, "a constant or a previous result is indexed");
                }
            }
        }
    }

    fn index_mode(&mut self, op: &AluOp, addr: u32) {
        let fits = match op.index_mode {
            IndexModeR700::AR_X | IndexModeR700::LOOP => true,
            IndexModeR700::AR_Y | IndexModeR700::AR_Z | IndexModeR700::AR_W => false,
            IndexModeR700::GLOBAL | IndexModeR700::GLOBAL_AR_X => self.chip.family == Family::R700,
        };
        if !fits {
            self.find(&INDEX_MODE, addr, op.index_mode.name());
        }
    }

    /// Checks the read ports of one group (r700.md 4.6).
    fn ports(&mut self, group: Group<'_>) {
        let mut port = [[None; 4]; 3];
        let mut constants: Vec<(u8, u8, u8)> = Vec::new();
        let limit = if self.chip.family == Family::R700 { 2 } else { 4 };
        for (op, addr) in group.ops.iter().zip(group.addr..) {
            let bank = self.words.get(2 * addr as usize + 1).map_or(0, |word| word >> 18 & 7) as usize;
            let trans = op.slot == TRANS;
            let cycles = if trans { SCALAR.get(bank) } else { VECTOR.get(bank) };
            let Some(cycles) = cycles else {
                self.find(
                    &BANK_SWIZZLE,
                    addr,
                    format!("{bank} in slot {}", ["x", "y", "z", "w", "t"][usize::from(op.slot)]),
                );
                continue;
            };
            let sources = op.read();
            let constant = |operand: &Operand| {
                matches!(operand, Operand::Kcache { .. } | Operand::ConstantFile { .. } | Operand::Value(_))
            };
            let count = sources.iter().filter(|source| constant(&source.operand)).count();
            if trans && count > 2 {
                self.find(&TRANS_CONSTANTS, addr, format!("slot t reads {count} constants"));
            }
            for (index, source) in sources.iter().enumerate() {
                let cycle = cycles[index];
                if trans && cycle < count && !constant(&source.operand) {
                    let message = format!(
                        "source {index} is read in cycle {cycle}, but slot t reads constants before cycle {count}{}",
                        self.banks(group, addr)
                    );
                    self.find(&READ_PORT, addr, message);
                }
                match source.operand {
                    Operand::Gpr { gpr, chan } => {
                        if !trans && index == 1 && source.operand == sources[0].operand {
                            continue;
                        }
                        let chan = usize::from(chan);
                        match port[cycle][chan] {
                            Some(other) if other != gpr => {
                                let chan = ["x", "y", "z", "w"][chan];
                                let fits = self.banks(group, addr);
                                self.find(
                                    &READ_PORT,
                                    addr,
                                    format!("cycle {cycle} reads R{other}.{chan} and R{gpr}.{chan}{fits}"),
                                );
                            }
                            Some(_) | None => port[cycle][chan] = Some(gpr),
                        }
                    }
                    Operand::Kcache { set, index, chan } => {
                        constants.push((set, index, self.component(chan)))
                    }
                    Operand::ConstantFile { index, chan } => constants.push((2, index, self.component(chan))),
                    Operand::Previous(_) | Operand::PreviousScalar | Operand::Value(_) => {}
                }
            }
        }
        constants.sort_unstable();
        constants.dedup();
        if constants.len() > limit {
            self.find(&CONSTANT_PORT, group.addr, format!("{} are read", constants.len()));
        }
    }

    /// Returns text for a message. The text lists values for the BANK_SWIZZLE of the instruction at `addr`. With each
    /// listed value, the read ports can read the operands of all instructions of the group.
    fn banks(&self, group: Group<'_>, addr: u32) -> String {
        let words: Vec<[u32; 2]> = (group.addr..)
            .take(group.ops.len())
            .map_while(|addr| self.words.get(2 * addr as usize..)?.first_chunk().copied())
            .collect();
        let reads = ports::reads(&words, self.chip.family);
        let banks: Vec<u32> = words.iter().map(|words| words[1] >> 18 & 7).collect();
        match ports::fitting(&reads, &banks, (addr - group.addr) as usize)[..] {
            [] if ports::schedule(&reads, &vec![None; banks.len()]).is_none() => "; no BANK fits".to_owned(),
            [] => "; another instruction of the group needs another BANK".to_owned(),
            [only] => format!("; BANK({only}) fits"),
            ref several => format!("; BANK({}) fit", several.join("), BANK(")),
        }
    }

    /// Returns the number of the constant unit that contains component `chan`. A unit is one component on R600, and a
    /// pair of components on R700.
    fn component(&self, chan: u8) -> u8 {
        match self.chip.family {
            Family::R600 => chan,
            Family::R700 => chan / 2,
        }
    }
}
