//! Static checks of a program for actions that the documents forbid or leave undefined.
//!
//! Every rule has a name, a source and a remedy. [`stack`] has the rules about the token stack of a warp. [`values`]
//! has the rules about the contents of registers. This file has the rules about single instructions and about addresses
//! in the code.
//!
//! No rule depends on the data of a launch. Examples of such data are inputs, the sizes of arrays and the values of
//! constants.

mod stack;
mod values;

use reconverge_isa::Program;
use reconverge_isa::graph::{EdgeKind, Graph};
use reconverge_isa::lint::{Finding, Rule};

use reconverge_isa::sets::NumberSet;

use crate::code::Code;
use crate::decode::{joined, row};
use crate::driver_fixes::{self, DriverFixes};
use crate::graph::{graph, listed};
use crate::inst::{
    Arith, Base, Chip, Control, Dst, Group, Idle, Inst, Op, Operand, Space, Special, Stage, TexOp,
};
use crate::lane::Rounding;
use crate::launch::{MOST_SHARED, PARAMETERS};
use crate::trap::Cause;
use crate::uses::accesses;

reconverge_isa::rules! {
    // Addresses in the code
    OUTSIDE = "outside", Error, "Lanes continue at an address within the code.", "tesla.md 9.3", "end every path with an exit or a ret, and jump to a label";
    UNALIGNED = "unaligned", Error, "An instruction of two words starts at an even word.", "tesla.md 2.1, rnndb (UNALIGNED_LONG_INSTRUCTION)", "put an even number of short instructions before it";
    INSIDE = "inside", Warning, "Lanes continue at the start of an instruction, not at its second word.", "tesla.md 2.1", "jump to a label before an instruction";
    UNREACHABLE = "unreachable", Note, "Every instruction except for padding can be reached.", "tesla.md 9", "remove the instructions, or jump to them";

    // The token stack
    JOIN_EMPTY = "join-empty", Error, "A joinat has pushed the token that a join pops.", "tesla.md 9.4, rnndb (STACK_UNDERFLOW)", "put a joinat before the branch, or remove the join modifier";
    JOIN_MISMATCH = "join-mismatch", Error, "A join finds a BRANCH or JOINAT token on top of the stack.", "tesla.md 9.4, rnndb (STACK_MISMATCH)", "join only tokens that the subroutine or loop has pushed";
    JOINAT_UNANSWERED = "joinat-unanswered", Note, "A join pops the token of each joinat, unless an exit is at the address of the token.", "tesla.md 9.4, 9.5", "give the instruction at the joinat's address the join modifier, or remove the joinat";
    JOINAT_ADDRESS = "joinat-address", Warning, "The address in a joinat is the address of an instruction with the join modifier.", "tesla.md 9.4, 13.3", "name the instruction that joins";
    BREAK_EMPTY = "break-empty", Error, "A breakaddr has pushed the target of a break.", "tesla.md 9.5, 13.5, rnndb (STACK_UNDERFLOW)", "put a breakaddr before the loop";
    BREAK_MISMATCH = "break-mismatch", Error, "A break leaves a loop of its own subroutine.", "tesla.md 9.5, rnndb (STACK_MISMATCH)", "put the breakaddr into the subroutine, or return before the break";
    BREAKADDR_UNANSWERED = "breakaddr-unanswered", Warning, "A break uses the address of each breakaddr.", "tesla.md 9.5", "remove the breakaddr, or leave the loop by break";
    RET_MIXED = "ret-mixed", Warning, "A ret returns from a subroutine on all paths, or ends lanes on all paths.", "tesla.md 9.6", "end the program before its subroutines with exit";
    QUADPOP = "quadpop", Error, "A quadpop follows its quadon.", "tesla.md 9.8, rnndb (STACK_MISMATCH)", "put a quadon before the quadpop";
    QUADON_FLOW = "quadon-flow", Error, "The code between quadon and quadpop does not contain control flow, a join or an exit.", "tesla.md 9.8, rnndb (QUADON_ACTIVE)", "put the quadpop before the control flow, join or exit";
    STACK_DIFFERS = "stack-differs", Warning, "Within a subroutine, all paths to an instruction have pushed the same tokens.", "tesla.md 9.1, 9.5", "on each path, pop the tokens that the path has pushed";
    STACK_GROWS = "stack-grows", Warning, "A loop pops the tokens that each of its iterations pushes.", "tesla.md 9.1, rnndb (STACK_LIMIT)", "put the joinat or breakaddr before the loop, or put the join into the loop";
    STACK_NEED = "stack-need", Error, "The token stack has room for every path.", "tesla.md 9.1, rnndb (STACK_LIMIT)", "nest less deeply, or declare a larger stack";
    RECURSION = "recursion", Note, "The depth of calls is limited.", "tesla.md 9.1", "use `call lim` and set the call limit";

    // Barriers
    BAR_DIVERGENT = "bar-divergent", Warning, "All lanes of a warp that have not ended reach a barrier together.", "tesla.md 9.7: a warp counts once for each path that executes the barrier", "join before the barrier, or make the condition the same for all lanes";
    BAR_IDLE = "bar-idle", Warning, "A bar counts the warp as arrived at the barrier, makes the warp wait at the barrier, or does both.", "tesla.md 9.7", "write `bar inc wait 0x0 0xfff` for a barrier of the whole block";
    BARRIER = "barrier", Error, "If the program declares a count of barriers, the number of each barrier is less than this count.", "tesla.md 1.6, 9.7", "declare more barriers, or use a lower number";

    // Values
    UNWRITTEN = "unwritten", Warning, "A register that is read is an input, or is written on at least one path to the read.", "tesla.md 1.6: other registers are undefined at the start", "write the register before the read";

    // Operands
    ODD_PAIR = "odd-pair", Warning, "Pairs of registers start at an even number, groups of four at a multiple of four.", "tesla.md 1.4", "choose another register";
    MISALIGNED = "misaligned", Warning, "An address is a multiple of the size of its access.", "tesla.md 3.3, 13.18", "choose another offset, or a narrower access";
    LOCAL_RANGE = "local-range", Error, "An access to l[] is within the declared bytes.", "tesla.md 1.7, rnndb (local limit)", "declare more bytes of l[]";
    SHARED_RANGE = "shared-range", Error, "An access to s[] is within the 16384 bytes that a block can have.", "tesla.md 1.6, 1.7", "choose another offset";
    SHARED_HEADER = "shared-header", Warning, "The first 16 bytes of s[] contain sizes and indices of blocks. The program reads these bytes as half words and does not write them.", "tesla.md 1.6; Mesa's nv50 compiler places variables and arguments from s[0x0] (docs/mesa.md, F2)", "address variables and parameters from s[0x10]";
    POSTINCR = "postincr", Error, "Only `$a1` to `$a4` and `$a7` are incremented.", "tesla.md 3.3, rnndb (ILLEGAL_POSTINCR)", "choose another address register";
    ADDRESS_REGISTER = "address-register", Warning, "Address registers are `$a0` to `$a4`; `$a0` is not written.", "tesla.md 1.4, 13.9", "choose another address register";
    CONDITION = "condition", Warning, "Conditions have the codes 0x0 to 0x13 and 0x1c to 0x1f.", "tesla.md 2.3, 13.1", "use `never`, the probable meaning of the other codes";
    ROUNDING = "rounding", Warning, "f32 add and mul round to nearest or toward zero.", "tesla.md 6.2, 13.16", "use rn or rz";
    SPECIAL_REGISTER = "special-register", Warning, "Special registers have the numbers 0 to 8.", "tesla.md 1.5", "read another register";
    UNDOCUMENTED = "undocumented", Warning, "The effect of every instruction is documented.", "tesla.md 6.9", "use another texture instruction";
    SPARE_BITS = "spare-bits", Note, "Bits without a meaning have the values that the assembler writes, or 0.", "tesla.md 2.1, 13: the machine ignores these bits, but a later chip may interpret them", "clear the bits";
}

/// A program that is checked, with the data that all rules use.
struct Subject<'a> {
    program: &'a Program,
    code: &'a Code,
    graph: &'a Graph,
    stage: Stage,
    chip: Chip,
    found: Vec<Finding>,
    /// Whether a forbidden access to the header of s[] has been reported.
    header_is_named: bool,
}

/// Returns the findings in a program, in order of address. Words that are not an instruction are not reported.
pub fn lint(program: &Program, stage: Stage, chip: Chip) -> Vec<Finding> {
    findings(program, &Code::new(&program.words, program.base, stage, chip), chip)
}

/// Returns the findings in a kernel that a launch runs with [`DriverFixes`]. Compiler errors that the fixes correct are
/// not reported.
pub fn lint_fixed(program: &Program, chip: Chip, fixes: DriverFixes) -> Vec<Finding> {
    let code = Code::reachable(&program.words, program.base, Stage::Compute, chip);
    findings(program, &driver_fixes::fixed(&code, fixes), chip)
}

fn findings(program: &Program, code: &Code, chip: Chip) -> Vec<Finding> {
    let stage = code.stage();
    let graph = graph(code, &program.constants);
    let (found, header_is_named) = (Vec::new(), false);
    let mut subject = Subject { program, code, graph: &graph, stage, chip, found, header_is_named };
    subject.places();
    subject.instructions();
    values::unwritten(&mut subject);
    stack::follow(&mut subject);
    let mut found = subject.found;
    found.sort_by(|a, b| (a.pc, a.rule.name, &a.message).cmp(&(b.pc, b.rule.name, &b.message)));
    found.dedup();
    found
}

impl Subject<'_> {
    fn find(&mut self, rule: &'static Rule, pc: u32, message: impl Into<String>) {
        self.found.push(Finding { rule, pc, message: message.into() });
    }

    /// Checks the addresses at which lanes continue.
    fn places(&mut self) {
        let starts: NumberSet = listed(self.code).map(|(pc, _)| pc).collect();
        for node in &self.graph.nodes {
            for edge in &node.next {
                let to = edge.to;
                let how = if edge.kind == EdgeKind::Next { "runs on" } else { "goes" };
                match self.code.at(to) {
                    Err(Cause::OutsideCode) => {
                        self.find(&OUTSIDE, node.pc, format!("control {how} to {to:#x}, outside the code"));
                    }
                    Err(Cause::UnalignedLongInstruction) => {
                        self.find(&UNALIGNED, to, "a two-word instruction starts at an odd word");
                    }
                    _ if !starts.contains(to) => {
                        self.find(&INSIDE, node.pc, format!("{to:#x} is inside an instruction"));
                    }
                    _ => {}
                }
            }
        }
        self.unreachable();
    }

    /// Reports each sequence of unreachable instructions once. A sequence that consists only of padding (`nop` or
    /// zeros) is not reported.
    fn unreachable(&mut self) {
        let mut run: Vec<(u32, bool)> = Vec::new();
        let code = self.code;
        for (pc, inst) in listed(code).chain([(u32::MAX, None)]) {
            let reached = pc == u32::MAX || self.graph.node(pc).is_some();
            if !reached {
                let padding = inst
                    .is_none_or(|inst| matches!(inst.op, Op::Idle(Idle::Nop)) || code.words_at(pc)[0] == 0);
                run.push((pc, padding));
                continue;
            }
            if let Some((first, _)) = run.first().filter(|_| run.iter().any(|(_, padding)| !padding)) {
                let message = match run.len() {
                    1 => "no path leads here".to_owned(),
                    count => format!("no path leads to these {count} instructions"),
                };
                self.find(&UNREACHABLE, *first, message);
            }
            run.clear();
        }
    }

    /// Checks each reachable instruction.
    fn instructions(&mut self) {
        for node in &self.graph.nodes {
            if let Ok(inst) = self.code.at(node.pc) {
                self.instruction(node.pc, inst);
                self.bits(node.pc);
            }
        }
    }

    fn bits(&mut self, pc: u32) {
        let words = self.code.words_at(pc);
        let Ok(row) = row(words, self.chip, self.stage) else { return };
        // A bit that the row sets by default is not a finding. For example, all compilers set bit 6 of the second word
        // in `ld lock` and `mov $c`. Compilers also set this bit in instructions that may write flags.
        let bits = joined(words) & row.unclaimed() & !row.default;
        if bits != 0 {
            let (first, second) = (bits as u32, (bits >> 32) as u32);
            let which = [("first", first), ("second", second)].into_iter().filter(|(_, bits)| *bits != 0);
            let which: Vec<String> =
                which.map(|(word, bits)| format!("{bits:08x} of the {word} word")).collect();
            self.find(&SPARE_BITS, pc, which.join(" and "));
        }
    }

    fn instruction(&mut self, pc: u32, inst: &Inst) {
        for (operand, width) in widths(inst) {
            if operand % width != 0 {
                let what = if width == 2 { "a pair" } else { "four registers" };
                self.find(&ODD_PAIR, pc, format!("{what} from $r{operand} on"));
            }
        }
        for (mem, written) in &accesses(inst, self.stage).memory {
            let bytes = mem.access.bytes();
            if let Base::A(register) = mem.base {
                if mem.increment && !matches!(register, 1..=4 | 7) {
                    self.find(&POSTINCR, pc, format!("$a{register} is incremented"));
                } else if register > 4 {
                    self.find(&ADDRESS_REGISTER, pc, format!("$a{register}"));
                }
            }
            if mem.base != Base::A(0) || mem.increment {
                continue;
            }
            let address = mem.offset as u16 as u32;
            let (end, does) = (address + bytes, if *written { "written" } else { "read" });
            if !address.is_multiple_of(bytes) {
                self.find(&MISALIGNED, pc, format!("{bytes} bytes at {address:#x} are {does}"));
            }
            let most = match mem.space {
                Space::Local => {
                    self.program.resources.local_bytes.map(|bytes| (&LOCAL_RANGE, local_size(bytes)))
                }
                Space::Shared => Some((&SHARED_RANGE, MOST_SHARED)),
                _ => None,
            };
            let in_header = mem.space == Space::Shared && address < PARAMETERS;
            if in_header && (*written || bytes > 2) && !self.header_is_named {
                // A program that breaks this rule usually contains many such instructions. So the function reports only
                // the first such instruction.
                self.header_is_named = true;
                self.find(&SHARED_HEADER, pc, format!("{bytes} bytes at {address:#x} are {does}"));
            }
            if let Some((rule, most)) = most.filter(|(_, most)| end > *most) {
                self.find(rule, pc, format!("{bytes} bytes at {address:#x} are {does}, of {most}"));
            }
        }
        for operand in &inst.src {
            match *operand {
                Operand::A(register) if register > 4 => {
                    self.find(&ADDRESS_REGISTER, pc, format!("$a{register}"));
                }
                Operand::Special(Special::Unknown(number)) => {
                    self.find(&SPECIAL_REGISTER, pc, format!("$sr{number}"));
                }
                _ => {}
            }
        }
        if let Dst::A(register @ (0 | 5..)) = inst.dst {
            self.find(&ADDRESS_REGISTER, pc, format!("$a{register} is written"));
        }
        let code = inst.guard.condition.code();
        if (0x14..0x1c).contains(&code) {
            self.find(&CONDITION, pc, format!("condition {code:#x}"));
        }
        match &inst.op {
            Op::Arith(Arith::FAdd { rounding, .. } | Arith::FMul { rounding, .. })
                if matches!(rounding, Rounding::Down | Rounding::Up) =>
            {
                self.find(&ROUNDING, pc, "it rounds up or down");
            }
            Op::Group(Group::Tex(tex)) if tex.op == TexOp::Csaa => {
                self.find(&UNDOCUMENTED, pc, "texcsaa");
            }
            Op::Control(Control::Bar { inc, wait, barrier, .. }) => {
                if !inc && !wait {
                    self.find(
                        &BAR_IDLE,
                        pc,
                        format!("barrier {barrier} neither counts the warp nor makes the warp wait"),
                    );
                }
                let declared = self.program.resources.barriers;
                // The oldest compilers use a barrier without declaring the number of barriers.
                if let Some(count) = declared.filter(|count| *count > 0 && u32::from(*barrier) >= *count) {
                    self.find(&BARRIER, pc, format!("barrier {barrier}, of {count}"));
                }
            }
            _ => {}
        }
    }
}

/// Returns the first register and the number of registers of each operand that has several registers.
fn widths(inst: &Inst) -> Vec<(u8, u8)> {
    let source = |operand: &Operand| match *operand {
        Operand::R64(register) => Some((register, 2)),
        Operand::R128(register) => Some((register, 4)),
        _ => None,
    };
    let result = match inst.dst {
        Dst::R64(register) => Some((register, 2)),
        Dst::R128(register) => Some((register, 4)),
        _ => None,
    };
    inst.src.iter().filter_map(source).chain(result).collect()
}

/// Returns the number of bytes of l[] that are allocated per thread. (1.6)
fn local_size(declared: u32) -> u32 {
    match declared {
        0 => 0,
        bytes => bytes.next_power_of_two().max(0x10),
    }
}
