//! The list of all operations with code, source and accuracy: `docs/coverage/r500.md`.

use std::fmt::Write;

use reconverge_isa::FieldValue;
use reconverge_r500::fidelity;
use reconverge_r500::words::{AlphaOp, FcOp, InstType, Omod, RgbOp, SrcpOp, TexOp};
use reconverge_simt::Fidelity;

/// Returns the text of `docs/coverage/r500.md`, with a table for each field that names an operation and a line for
/// each code.
pub(crate) fn coverage() -> String {
    let mut text = String::from(
        "# R500: every operation\n\nGenerated from the tables of `reconverge-r500`. *Fidelity*: specified is as documented; \
         approximate is within a tolerance, since the rounding of the hardware is not documented; recommended means that \
         documents are silent. Documents and sections are those of docs/r500.md.\n",
    );
    table(&mut text, "Instruction types (TYPE)", "CTM guide p. 23; REG", InstType::ALL, |_| {
        Fidelity::Specified
    });
    table(&mut text, "RGB unit (RGB_OP)", "CTM guide p. 28", RgbOp::ALL, |op: RgbOp| op.operation().fidelity);
    table(&mut text, "Alpha unit (ALPHA_OP)", "CTM guide p. 29", AlphaOp::ALL, |op: AlphaOp| {
        op.operation().fidelity
    });
    table(&mut text, "Presubtract (SRCP_OP)", "CTM guide p. 26", SrcpOp::ALL, fidelity::srcp);
    table(&mut text, "Output modifier (OMOD)", "CTM guide p. 29", Omod::ALL, fidelity::omod);
    table(&mut text, "Texture (INST)", "CTM guide p. 33; REG", TexOp::ALL, fidelity::tex);
    table(&mut text, "Flow control (OP)", "CTM guide p. 37; REG", FcOp::ALL, |_| Fidelity::Specified);
    text
}

/// Writes a section: the operations of a field, in the order of their codes.
fn table<Op: FieldValue>(
    text: &mut String,
    title: &str,
    source: &str,
    all: &[Op],
    fidelity: impl Fn(Op) -> Fidelity,
) {
    let _ =
        write!(text, "\n## {title}\n\n{source}\n\n| code | name | does | fidelity |\n|---|---|---|---|\n");
    for (op, name) in all.iter().zip(Op::NAMES) {
        let does = name.doc.trim().trim_end_matches('.');
        let _ = writeln!(text, "| {} | {} | {does} | {} |", name.value, name.text, fidelity(*op).name());
    }
}
