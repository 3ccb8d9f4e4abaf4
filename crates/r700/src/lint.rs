//! Checks that the hardware defines what a program does: slots, read ports, constants, clauses, exports.
//!
//! Every rule has a name and a source. Words without a meaning break the rule `decode`.

mod unwritten;

pub use unwritten::Components;

use reconverge_isa::lint::{Finding, Rule, Severity};

use crate::chip::{Chip, Family};
use crate::code::{AluClause, AluOp, Cf, CfOp, Code, CodeOptions, Export, ExportKind, Group, Operand, TRANS};
use crate::flow::AluForm;
use crate::meaning::Meaning;
use crate::words::{CfInst, IndexModeR700, KcacheMode};

macro_rules! rules {
    ($($Name:ident = $name:literal, $severity:ident, $demands:literal, $source:literal, $fix:literal;)*) => {
        $(
            #[doc = $demands]
            pub const $Name: Rule = Rule {
                name: $name,
                severity: Severity::$severity,
                demands: $demands,
                source: $source,
                fix: $fix,
            };
        )*
        /// Every rule.
        pub const RULES: &[Rule] = &[$($Name),*];
    };
}

rules! {
    DECODE = "decode", Error, "Every instruction that can be reached has a meaning on the chip.", "MAN 2-4", "";
    MODES = "modes", Error, "WHOLE_QUAD_MODE and VALID_PIXEL_MODE exclude each other.", "MAN p. 49", "";
    ALIGNMENT = "alignment", Error, "A fetch clause begins at an even address.", "XF86, LLVM R600ControlFlowFinalizer", "";
    CALL_POP = "call-pop", Error, "A CALL pops nothing.", "MAN p. 53", "";
    LOOP_PAIR = "loop-pair", Error, "LOOP_START names what follows its LOOP_END, LOOP_END what follows its LOOP_START.", "MAN p. 120, Mesa", "";
    LOOP_EXIT = "loop-exit", Error, "LOOP_BREAK and LOOP_CONTINUE name a LOOP_END.", "Mesa, LLVM", "";
    EXPORT_TARGET = "export-target", Error, "PIXEL is 0 to 7 or 61 (R600 also 16 to 23), POS 60 to 63, PARAM 0 to 31.", "MAN 3, XF86", "";
    KCACHE_RANGE = "kcache-range", Error, "A constant is read from what its clause has locked.", "MAN 4", "";
    KCACHE_REL = "kcache-rel", Error, "Only registers and the constant file are indexed.", "MAN p. 67", "";
    INDEX_MODE = "index-mode", Error, "Registers are indexed by AR.x or aL; GLOBAL modes are of R700.", "MAN p. 67, DECAF", "";
    BANK_SWIZZLE = "bank-swizzle", Error, "BANK_SWIZZLE is 0 to 5, in slot t 0 to 3.", "MAN 4", "";
    READ_PORT = "read-port", Error, "In each cycle one register address a component is read.", "Mesa check_vector, check_scalar", "";
    CONSTANT_PORT = "constant-port", Error, "A group reads two pairs of constant components (R600: four components).", "LLVM fitsConstReadLimitations, Mesa", "";
    TRANS_CONSTANTS = "trans-constants", Error, "Slot t reads two constants at most.", "Mesa check_scalar", "";
    ONE_PREDICATE = "one-predicate", Error, "A group has one PRED_SET, and no KILL beside it.", "Mesa; several KILLs in a group are seen in its output", "";
    MOVA_USE = "mova-use", Error, "AR is used in a later group than it is written, and not written by the last.", "MAN p. 67, Mesa, LLVM", "";
    DOUBLE_WRITE = "double-write", Error, "Two instructions of a group do not write the same component.", "MAN 4", "";
    PRED_UPDATE = "pred-update", Error, "Only PRED_SET updates the predicate or the execute mask.", "MAN 4", "";
    EXEC_LAST = "exec-last", Error, "The execute mask is updated by the last group of a clause.", "all known compilers", "";
    UNWRITTEN = "unwritten", Warning, "A register that is no input is written before it is read, on every path.", "MAN p. 33: its contents are undefined", "";
    INTEGER_MODIFIER = "integer-modifier", Error, "Integer operations have no ABS, NEG, OMOD or CLAMP.", "MAN 4", "";
}

/// The findings in the program that starts at the first of `words`, in order of address. The rule `unwritten` needs the
/// `inputs`: the registers that have a value at the start, where that is known.
pub fn lint_with(words: &[u32], chip: Chip, inputs: Option<Components>) -> Vec<Finding> {
    let mut found = lint(words, chip);
    let code = Code::new(words, 0, CodeOptions::new(chip));
    found.extend(inputs.into_iter().flat_map(|inputs| unwritten::unwritten(&code, 0, inputs)));
    found.sort_by_key(|finding| finding.pc);
    found
}

/// As [`lint_with`], where no inputs are known.
pub fn lint(words: &[u32], chip: Chip) -> Vec<Finding> {
    let code = Code::new(words, 0, CodeOptions::new(chip));
    let mut lint = Lint { words, chip, found: Vec::new() };
    for (addr, fault) in code.faults() {
        lint.find(&DECODE, addr, fault.to_string());
    }
    for (addr, cf) in code.instructions() {
        lint.cf(&code, addr, cf);
    }
    lint.found.sort_by_key(|finding| finding.pc);
    lint.found
}

struct Lint<'a> {
    words: &'a [u32],
    chip: Chip,
    found: Vec<Finding>,
}

/// The cycle in which a vector slot fetches sources 0, 1 and 2, by BANK_SWIZZLE (r700.md 4.6).
const VECTOR: [[usize; 3]; 6] = [[0, 1, 2], [0, 2, 1], [1, 2, 0], [1, 0, 2], [2, 0, 1], [2, 1, 0]];
/// The cycle in which slot t fetches sources 0, 1 and 2, by BANK_SWIZZLE.
const SCALAR: [[usize; 3]; 4] = [[2, 1, 0], [1, 2, 2], [2, 1, 2], [2, 2, 1]];

impl Lint<'_> {
    fn find(&mut self, rule: &'static Rule, addr: u32, what: impl Into<String>) {
        self.found.push(Finding { rule, pc: addr, message: what.into() });
    }

    fn cf(&mut self, code: &Code, addr: u32, cf: &Cf) {
        match &cf.op {
            CfOp::Control(inst, control) => {
                self.modes(addr, control.whole_quad_mode, control.valid_pixel_mode);
                self.control(code, addr, *inst, control.addr, control.pop_count);
            }
            CfOp::Fetch(inst, control, _) => {
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
            // No rule is about the others.
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
                self.find(&PRED_UPDATE, addr, format!("{name} updates it"));
            }
            if op.update_execute_mask && !last {
                self.find(&EXEC_LAST, addr, "groups follow");
            }
            if mova(op) && last && clause.form != AluForm::ALU_PUSH_BEFORE {
                self.find(&MOVA_USE, addr, format!("{name} is in the last group"));
            }
            let sources = op.read();
            let by_ar = matches!(
                op.index_mode,
                IndexModeR700::AR_X
                    | IndexModeR700::AR_Y
                    | IndexModeR700::AR_Z
                    | IndexModeR700::AR_W
                    | IndexModeR700::GLOBAL_AR_X
            );
            if (op.dst_rel || sources.iter().any(|source| source.rel)) && by_ar && group.ops.iter().any(mova)
            {
                self.find(&MOVA_USE, addr, "AR is written in this group");
            }
            let integer =
                matches!(op.opcode.meaning, Meaning::Bits1(_) | Meaning::Bits2(_) | Meaning::Bits3(_))
                    && name.ends_with("INT")
                    && !name.starts_with("FLT_TO");
            if integer
                && (op.clamp || op.omod != 1.0 || sources.iter().any(|source| source.abs || source.neg))
            {
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
        // Doubles set their predicate from two slots.
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
                    self.find(&KCACHE_RANGE, addr, format!("KC{set}[{index}] is read, {locked} are locked"));
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

    /// The read ports of one group (r700.md 4.6).
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
                self.find(&TRANS_CONSTANTS, addr, format!("{count} are read"));
            }
            for (index, source) in sources.iter().enumerate() {
                let cycle = cycles[index];
                match source.operand {
                    Operand::Gpr { gpr, chan } => {
                        if trans && cycle < count {
                            self.find(
                                &READ_PORT,
                                addr,
                                format!(
                                    "source {index} is read in cycle {cycle}, {count} constants come before"
                                ),
                            );
                        }
                        if !trans && index == 1 && source.operand == sources[0].operand {
                            continue;
                        }
                        let chan = usize::from(chan);
                        match port[cycle][chan] {
                            Some(other) if other != gpr => {
                                let chan = ["x", "y", "z", "w"][chan];
                                self.find(
                                    &READ_PORT,
                                    addr,
                                    format!("cycle {cycle} reads R{other}.{chan} and R{gpr}.{chan}"),
                                );
                            }
                            Some(_) | None => port[cycle][chan] = Some(gpr),
                        }
                    }
                    Operand::Kcache { set, index, chan } => {
                        constants.push((set, index, self.component(chan)))
                    }
                    Operand::ConstantFile { index, chan } => constants.push((2, index, self.component(chan))),
                    Operand::Previous(_) | Operand::PreviousScalar => {
                        if trans && count > 0 && cycle < count {
                            self.find(
                                &READ_PORT,
                                addr,
                                format!(
                                    "source {index} is read in cycle {cycle}, {count} constants come before"
                                ),
                            );
                        }
                    }
                    Operand::Value(_) => {}
                }
            }
        }
        constants.sort_unstable();
        constants.dedup();
        if constants.len() > limit {
            self.find(&CONSTANT_PORT, group.addr, format!("{} are read", constants.len()));
        }
    }

    /// What counts as one constant: a component, on R700 a pair of them.
    fn component(&self, chan: u8) -> u8 {
        match self.chip.family {
            Family::R600 => chan,
            Family::R700 => chan / 2,
        }
    }
}
