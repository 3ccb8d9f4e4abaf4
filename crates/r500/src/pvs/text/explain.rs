//! Explains one instruction field by field.

use super::dis::instruction;
use super::meaning::meaning;
use crate::pvs::inst::{WORDS, decode};
use crate::pvs::violations::violations;
use crate::pvs::words::{is_dual, layout};
use crate::text::Explanation;
use crate::text::explain::field_texts;

/// Explains the four words of an instruction, in upload order.
pub fn explain(words: &[u32; WORDS]) -> Explanation {
    let fields = field_texts(&layout(is_dual(words[0])), words);
    let (meaning, findings) = match decode(words) {
        Ok(inst) => (meaning(&inst), violations(words, &inst).iter().map(ToString::to_string).collect()),
        Err(error) => {
            let why = format!("No instruction: {error}. It traps when the program reaches it.");
            (vec![why], vec![error.to_string()])
        }
    };
    let source =
        "AMD R5xx 3D register reference, PVS_OP_DST_OPERAND and PVS_SRC_OPERAND; docs/r500-vertex.md";
    let mut text = String::new();
    instruction(words, &mut text);
    Explanation { text, fields, meaning, flow: Vec::new(), findings, source }
}
