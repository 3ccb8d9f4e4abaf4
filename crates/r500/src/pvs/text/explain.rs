//! One instruction, field by field.

use std::cmp::Reverse;

use super::dis::instruction;
use super::meaning::meaning;
use crate::pvs::inst::{WORDS, decode};
use crate::pvs::violations::violations;
use crate::pvs::words::{is_dual, layout};
use crate::text::{Explanation, FieldText};

/// Explains four words in upload order.
pub fn explain(words: &[u32; WORDS]) -> Explanation {
    let mut fields = Vec::new();
    for (word, (info, raw)) in layout(is_dual(words[0])).iter().zip(words).enumerate() {
        let row = |name: String, hi, lo, value, text, doc| FieldText {
            word,
            word_name: info.name,
            name,
            hi,
            lo,
            value,
            text,
            doc,
        };
        let known = info.fields.iter().map(|field| {
            let value = field.get(*raw);
            let name = field.name.to_ascii_uppercase();
            row(name, field.hi, field.lo, value, field.show(value), field.doc.trim())
        });
        let stray = (0..32).filter(|bit| (raw & !info.owned) >> bit & 1 != 0).map(|bit| {
            let doc = "Belongs to no field; should be 0.";
            row("reserved".to_owned(), bit, bit, 1, "1".to_owned(), doc)
        });
        let mut rows: Vec<FieldText> = known.chain(stray).collect();
        rows.sort_by_key(|row| Reverse(row.hi));
        fields.extend(rows);
    }
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
