//! The legal forms of a mnemonic of the vertex unit. The forms come from the tables of operations.

use reconverge_isa::FieldValue;
use reconverge_isa::forms::Form;

use super::syntax::{SATURATE, operation, operations};
use crate::pvs::inst::Op;
use crate::pvs::words::{MacroOp, MeOp, VeOp};

/// Returns the forms of a mnemonic. For an unknown mnemonic, returns no forms.
pub fn forms(mnemonic: &str) -> Vec<Form> {
    let Some(op) = operation(mnemonic) else { return Vec::new() };
    let row = match op {
        Op::Vector(op) => op.operation(),
        Op::Math(op) => op.operation(),
        Op::Macro(op) => op.operation(),
    };
    let count = row.operands.iter().filter(|reads| **reads).count();
    let channel = if matches!(op, Op::Math(_)) { ".w" } else { "" };
    let given: Vec<String> = (0..count).map(|number| format!("t{}{channel}", number + 1)).collect();
    let names = ["A", "B", "C"];
    let operands: Vec<&str> =
        names.into_iter().zip(row.operands).filter(|(_, reads)| *reads).map(|(name, _)| name).collect();
    let equals = if count == 0 { "" } else { " = " };
    let docs = [VeOp::NAMES, MeOp::NAMES, MacroOp::NAMES].into_iter().flatten();
    let doc = docs.filter(|name| name.text == mnemonic).map(|name| name.doc).next().unwrap_or_default();
    let chips = if row.r500_only { "; R500 only" } else { "" };
    vec![Form {
        text: format!("[(p)|(!p)] {mnemonic}[{SATURATE}] DESTINATION.MASK{equals}{}", operands.join(", ")),
        example: format!("{mnemonic} t0{equals}{}", given.join(", ")),
        places: Vec::new(),
        about: format!("{}{chips}", doc.trim().trim_end_matches('.')),
        source: "vertex unit, docs/r500-vertex.md".to_owned(),
    }]
}

/// Returns all mnemonics.
pub fn mnemonics() -> impl Iterator<Item = &'static str> {
    operations()
}
