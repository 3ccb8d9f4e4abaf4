//! Static checks of a vertex program against the documents. The checks cover instruction words, descriptors, hints, and
//! reads of values that no instruction writes.

use reconverge_isa::lint::{Finding, MALFORMED, Rule};
use reconverge_isa::sets::NumberSet;

use super::flow::Undefined;
use super::graph::graph;
use super::setup::Setup;
use super::uses::{A0, PREDICATE, uses};
use super::violations::Violation;
use super::words::{DstType, FlowOp};

reconverge_isa::rules! {
    // Rules for one instruction
    RESERVED_BITS = "vertex-reserved-bits", Error, "Reserved bits are 0.", "REG", "clear the bits";
    DUAL = "vertex-dual", Error, "A dual instruction has a vector operation with two operands, and a math operation with two scalars. The math operation does not set the predicate.", "REG, PVS_OP_DST_OPERAND", "write two instructions";
    SELECT = "vertex-select", Warning, "The channels that an operation uses select x, y, z, w, 0 or 1.", "r500-vertex.md Q3", "select another code";
    READS = "vertex-reads", Error, "An instruction reads up to one constant, one input, one alternate temporary and two temporaries. A macro can read three temporaries.", "Mesa, t_src_conflict", "copy a register to a temporary first, or use a macro";
    ADDRESS_WRITER = "vertex-address-writer", Warning, "Only VE_FLT2FIX_DX and VE_FLT2FIX_DX_RND write A0.", "r500-vertex.md Q12", "use VE_FLT2FIX_DX";

    // Rules for the shape of the program
    OUTSIDE = "vertex-outside", Error, "Every path stays within the program's instructions up to PVS_LAST_INST.", "REG, VAP_PVS_CODE_CNTL_0", "correct the descriptor or PVS_LAST_INST";
    UNREACHABLE = "vertex-unreachable", Note, "Every instruction can be reached.", "-", "remove the instructions, or jump to them";
    ROUNDS = "vertex-rounds", Error, "A loop runs at least once.", "REG, VAP_PVS_FLOW_CNTL_ADDRS", "jump around the loop instead";
    AMBIGUOUS = "vertex-ambiguous", Error, "At most one descriptor acts after an instruction.", "r500-vertex.md Q14", "put an instruction between the two actions";
    POSITION_HINT = "vertex-position-hint", Error, "PVS_XYZW_VALID_INST is a slot of the program, and no later slot writes the position.", "REG, VAP_PVS_CODE_CNTL_0", "name the last instruction that writes o0";
    SOURCE_HINT = "vertex-source-hint", Error, "PVS_LAST_VTX_SRC_INST is a slot of the program, and no later slot reads an input.", "REG, VAP_PVS_CODE_CNTL_1", "name the last instruction that reads an input";

    // Rules for values
    UNWRITTEN_ADDRESS = "vertex-unwritten-address", Error, "A0 is written before it is read.", "r500-vertex.md 1.2", "write A0 first";
    UNWRITTEN_PREDICATE = "vertex-unwritten-predicate", Warning, "The predicate is set before it is read.", "r500-vertex.md 1.2", "set the predicate first";
    NO_POSITION = "vertex-no-position", Warning, "A program writes the position, o0.", "REG, VAP_OUT_VTX_FMT_0", "write o0";
}

impl Violation {
    /// Returns the rule that the violation breaks.
    pub const fn rule(self) -> &'static Rule {
        match self {
            Violation::ReservedBits { .. } => &RESERVED_BITS,
            Violation::DualWithoutVector
            | Violation::DualNeedsThirdOperand(_)
            | Violation::DualNeedsThirdScalar(_)
            | Violation::DualPredicate(_) => &DUAL,
            Violation::ReservedSelect { .. } => &SELECT,
            Violation::TooManyReads { .. } => &READS,
            Violation::AddressByOther(_) => &ADDRESS_WRITER,
        }
    }
}

/// Returns the findings for a program, ordered by slot.
pub fn lint(setup: &Setup) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut add = |rule: &'static Rule, pc: u16, message: String| {
        found.push(Finding { rule, pc: u32::from(pc), message });
    };
    let (graph, uses) = (graph(setup), uses(setup));
    let reached: NumberSet = graph.nodes.iter().map(|node| node.pc).collect();
    let ends = reached.contains(setup.control.last().into());
    if !ends {
        add(&OUTSIDE, setup.first, format!("slot {} (PVS_LAST_INST) is not reached", setup.control.last()));
    }
    for (pc, slot) in setup.slots() {
        let inst = match &slot.inst {
            Ok(inst) => inst,
            Err(error) if reached.contains(pc.into()) => {
                add(&MALFORMED, pc, format!("not an instruction: {error}"));
                continue;
            }
            Err(_) => continue,
        };
        for violation in &slot.violations {
            add(violation.rule(), pc, violation.to_string());
        }
        if !reached.contains(pc.into()) {
            add(&UNREACHABLE, pc, "no path reaches this instruction".to_owned());
            continue;
        }
        let position = matches!(inst.dst.file, DstType::OUT | DstType::OUT_REPL_X) && inst.dst.register == 0;
        if position && inst.dst.mask != 0 && pc > setup.position_valid {
            let hint = setup.position_valid;
            add(
                &POSITION_HINT,
                pc,
                format!("the position is written after slot {hint} (PVS_XYZW_VALID_INST)"),
            );
        }
        let reads = |file: &str| {
            uses[&u32::from(pc)].iter().any(|uses| uses.reads.iter().any(|read| read.slot.file == file))
        };
        if reads("i") && pc > setup.last_source {
            let hint = setup.last_source;
            add(&SOURCE_HINT, pc, format!("an input is read after slot {hint} (PVS_LAST_VTX_SRC_INST)"));
        }
        let before = |file: &str| {
            // In a program without flow control, only instructions in earlier slots can run before this instruction. In
            // a program with flow control, any instruction can run before this instruction.
            let loops = setup.control.descriptors().iter().any(|known| known.op != FlowOp::NO_OP);
            uses.iter().any(|(at, all)| {
                (loops || *at < u32::from(pc))
                    && all.iter().any(|uses| uses.writes.iter().any(|slot| slot.file == file))
            })
        };
        for (file, rule, what) in [
            (A0, &UNWRITTEN_ADDRESS, "A0 is read"),
            (PREDICATE, &UNWRITTEN_PREDICATE, "the predicate is read"),
        ] {
            if reads(file) && !before(file) {
                add(rule, pc, format!("{what}, but no earlier instruction has written it"));
            }
        }
    }
    for (number, descriptor) in setup.control.descriptors().iter().enumerate() {
        if descriptor.op == FlowOp::NO_OP || !reached.contains(descriptor.act.into()) {
            continue;
        }
        if descriptor.op == FlowOp::LOOP && descriptor.count_or_target == 0 {
            add(&ROUNDS, descriptor.act, Undefined::NoRounds(number as u8).to_string());
        }
        let ambiguous =
            setup.control.acting(descriptor.act).is_some_and(|(first, _)| usize::from(first) == number);
        if ambiguous && setup.control.is_ambiguous(descriptor.act) {
            add(&AMBIGUOUS, descriptor.act, Undefined::Ambiguous(descriptor.act).to_string());
        }
        let to = match descriptor.op {
            FlowOp::LOOP => descriptor.back,
            FlowOp::NO_OP | FlowOp::JUMP | FlowOp::JSR => descriptor.count_or_target,
        };
        if setup.slot(to).is_none() {
            add(
                &OUTSIDE,
                descriptor.act,
                format!(
                    "flow-control descriptor {number} goes to slot {to}, which does not contain an instruction"
                ),
            );
        }
    }
    for (rule, slot, name) in [
        (&POSITION_HINT, setup.position_valid, "PVS_XYZW_VALID_INST"),
        (&SOURCE_HINT, setup.last_source, "PVS_LAST_VTX_SRC_INST"),
    ] {
        if setup.slot(slot).is_none() {
            add(rule, setup.first, format!("{name} is slot {slot}, which does not contain an instruction"));
        }
    }
    let writes_position = uses.iter().any(|(pc, all)| {
        let x = super::group::OUTPUT.start as u32;
        let position = |uses: &reconverge_simt::uses::Uses| {
            uses.writes
                .iter()
                .any(|slot| slot.file == "o" && slot.number.is_none_or(|n| (x..x + 4).contains(&n)))
        };
        reached.contains(*pc) && all.iter().any(position)
    });
    if !writes_position {
        add(&NO_POSITION, setup.first, "no instruction writes o0".to_owned());
    }
    Finding::sort(&mut found);
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pvs::text::assemble;

    fn rules(source: &str) -> Vec<&'static str> {
        let setup = Setup::new(&assemble(source).unwrap().program).unwrap();
        lint(&setup).into_iter().map(|finding| finding.rule.name).collect()
    }

    const MOVE: &str = "VE_ADD o0 = i0, i0.0\n";

    #[test]
    fn a_program_without_fault_breaks_no_rule() {
        assert_eq!(rules(MOVE), [""; 0]);
    }

    #[test]
    fn every_rule_has_a_program_that_breaks_it() {
        let hints = |valid: u32, source: u32| {
            format!(
                ".state VAP_PVS_CODE_CNTL_0 PVS_XYZW_VALID_INST={valid} PVS_LAST_INST=1\n\
                     .state VAP_PVS_CODE_CNTL_1 {source:#x}\n"
            )
        };
        let flow = |opc: u32, low: u32| {
            format!(
                ".state VAP_PVS_FLOW_CNTL_OPC {opc:#x}\n.state VAP_PVS_FLOW_CNTL_ADDRS_LW_0 {low:#x}\n\
                     .state VAP_PVS_FLOW_CNTL_ADDRS_LW_1 {low:#x}\n"
            )
        };
        let cases = [
            ("vertex-reserved-bits", "VE_ADD o0 = i0, i0.0 {A|=4}\n".to_owned()),
            ("vertex-dual", "ME_RECIP_DX o0 = i0.x {OP.DUAL_MATH_OP=1}\n".to_owned()),
            ("vertex-select", "VE_ADD o0 = i0.xyz_, i0.0\n".to_owned()),
            ("vertex-reads", "VE_ADD o0 = c0, c1\n".to_owned()),
            ("vertex-address-writer", format!("VE_ADD a0.x = i0, i0.0\n{MOVE}")),
            ("vertex-outside", format!(".state VAP_PVS_CODE_CNTL_0 PVS_LAST_INST=5\n{MOVE}")),
            ("vertex-unreachable", format!(".state VAP_PVS_CODE_CNTL_0 PVS_LAST_INST=0\n{MOVE}{MOVE}")),
            ("vertex-rounds", flow(2, 0) + MOVE + MOVE),
            ("vertex-ambiguous", flow(5, 1 << 16) + MOVE + MOVE),
            ("vertex-position-hint", hints(0, 1) + MOVE + MOVE),
            ("vertex-source-hint", hints(1, 0) + MOVE + MOVE),
            ("vertex-unwritten-address", "VE_ADD o0 = c[0+a0.x], i0.0\n".to_owned()),
            ("vertex-unwritten-predicate", format!("(p) {MOVE}")),
            ("vertex-no-position", "VE_ADD o1 = i0, i0.0\n".to_owned()),
        ];
        assert_eq!(cases.len(), RULES.len());
        for (rule, source) in cases {
            assert!(RULES.iter().any(|known| known.name == rule), "{rule}");
            assert!(rules(&source).contains(&rule), "{rule}: {:?}", rules(&source));
        }
    }
}
