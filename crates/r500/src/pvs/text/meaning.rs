//! Describes the effect of an instruction in sentences.

use super::dis::{destination_text, operand_text};
use crate::pvs::inst::{Inst, Op};
use crate::pvs::operations::Value;
use crate::pvs::words::*;

/// Returns the effect of an instruction, in sentences.
pub(super) fn meaning(inst: &Inst) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(sense) = inst.predicate {
        lines.push(format!("Only vertices whose predicate is {sense} execute the instruction."));
    }
    let operands = inst.operation().operands;
    let names = ["A", "B", "C"].into_iter().zip(&inst.operands).zip(operands).filter(|(_, used)| *used);
    let named: Vec<String> =
        names.map(|((name, operand), _)| format!("{name} = {}", operand_text(operand, 4))).collect();
    let does = does(inst.op);
    if matches!(inst.operation().value, Value::Nothing) {
        lines.push("Nothing is written.".to_owned());
    } else {
        let engine = match inst.op {
            Op::Math(_) => " Small letters are w channels.",
            Op::Vector(_) | Op::Macro(_) => "",
        };
        let given = if named.is_empty() { String::new() } else { format!(" with {}", named.join(", ")) };
        let target = destination_text(&inst.dst);
        lines.push(match inst.operation().sets_predicate() {
            true => format!("{does}; the value goes to {target}{given}.{engine}"),
            false => format!("{target} = {does}{given}.{engine}"),
        });
        if inst.dst.file == DstType::OUT_REPL_X {
            lines.push("The x result goes to all channels of the mask.".to_owned());
        }
    }
    if inst.saturate {
        lines.push("The result is clamped to 0..1.".to_owned());
    }
    if let Some(dual) = &inst.dual {
        let channel = ["x", "y", "z", "w"][dual.channel as usize];
        lines.push(format!(
            "At the same time, at{}.{channel} = {}, with the two scalars {}. The first is a, and the second is b and c.{}",
            dual.register,
            self::does(Op::Math(dual.op)),
            operand_text(&dual.source, 2),
            if dual.saturate { " The result is clamped to 0..1." } else { "" }
        ));
    }
    lines
}

/// Returns the description of an operation without the full stop at the end. The description is the doc comment of the
/// operation's code.
fn does(op: Op) -> &'static str {
    let (names, code) = op.names();
    let known = names.iter().find(|name| name.value == code);
    known.map_or("", |name| name.doc.trim().trim_end_matches('.'))
}
