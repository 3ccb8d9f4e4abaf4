//! The list of all operations with code, source and accuracy: `docs/coverage/r500-vertex.md`.

use std::fmt::Write;

use reconverge_isa::FieldValue;
use reconverge_r500::pvs::operations::Operation;
use reconverge_r500::pvs::words::{FlowOp, MacroOp, MeOp, VeOp};
use reconverge_simt::Fidelity;

/// Returns the text of `docs/coverage/r500-vertex.md`, with a table for each field that names an operation and a line
/// for each code.
pub(crate) fn coverage() -> String {
    let mut text = String::from(
        "# R500 vertex unit: every operation\n\nGenerated from the tables of `reconverge-r500`. *Chips*: all, or R500 only. \
         *Fidelity*: specified is as documented; approximate is within a tolerance, since the rounding of the hardware is \
         not documented; recommended means that documents are silent. Sections are those of docs/r500-vertex.md.\n",
    );
    table(&mut text, "Vector engine", VeOp::ALL, |op| Some(op.operation()));
    table(&mut text, "Math engine (MATH_INST)", MeOp::ALL, |op| Some(op.operation()));
    table(&mut text, "Macros (MACRO_INST)", MacroOp::ALL, |op| Some(op.operation()));
    table(&mut text, "Flow control (VAP_PVS_FLOW_CNTL_OPC)", FlowOp::ALL, |_| None);
    text
}

/// Writes a section: the operations of a field, in the order of their codes.
fn table<Op: FieldValue>(
    text: &mut String,
    title: &str,
    all: &[Op],
    operation: impl Fn(Op) -> Option<&'static Operation>,
) {
    let _ =
        write!(text, "\n## {title}\n\n| code | name | does | chips | fidelity |\n|---|---|---|---|---|\n");
    for (op, name) in all.iter().zip(Op::NAMES) {
        let does = name.doc.trim().trim_end_matches('.').replace('|', "\\|");
        let operation = operation(*op);
        let chips = if operation.is_some_and(|operation| operation.r500_only) { "R500" } else { "all" };
        let fidelity = operation.map_or(Fidelity::Specified, |operation| operation.fidelity).name();
        let _ = writeln!(text, "| {} | {} | {does} | {chips} | {fidelity} |", name.value, name.text);
    }
}
