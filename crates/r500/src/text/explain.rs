//! Explains one instruction field by field.

use std::cmp::Reverse;

use reconverge_isa::word::FieldValue;
use reconverge_isa::{Program, WordInfo};

use super::dis::{Listing, disassemble};
use super::meaning::meaning;
use crate::flow::Role;
use crate::inst::{self, Body, Fc, WORDS};
use crate::violations::violations;
use crate::words::{AOp, BOp, InstType, layout};

/// A field of a word, with its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldText {
    /// Index of the word, 0 to 5.
    pub word: usize,
    /// The word's name in the manual.
    pub word_name: &'static str,
    /// The field's name in the manual, or `reserved` for bits that do not belong to a field.
    pub name: String,
    /// Highest bit.
    pub hi: u8,
    /// Lowest bit.
    pub lo: u8,
    /// The value of the field, shifted to bit 0.
    pub value: u32,
    /// The value as text.
    pub text: String,
    /// Description of the field, which may be empty.
    pub doc: &'static str,
}

/// The explanation of one instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// The disassembler's text for the instruction.
    pub text: String,
    /// The fields in the order of the words. The fields of each word are in order from the highest bit to the lowest
    /// bit.
    pub fields: Vec<FieldText>,
    /// The effect of the instruction, in sentences. If the words cannot be executed, the sentences state the reason.
    pub meaning: Vec<String>,
    /// For FC instructions, the effect on the flow of lanes.
    pub flow: Vec<String>,
    /// Messages for the rules of the documents that the instruction violates.
    pub findings: Vec<String>,
    /// The document that describes the instruction.
    pub source: &'static str,
}

/// Explains the six words of an instruction, in upload order.
pub fn explain(words: &[u32; WORDS]) -> Explanation {
    let Some(kind) = InstType::from_bits(words[0] & 3, 2) else { unreachable!("two bits") };
    let decoded = inst::decode(words);
    let findings = match &decoded {
        Ok(decoded) => violations(words, decoded).iter().map(ToString::to_string).collect(),
        Err(error) => vec![error.to_string()],
    };
    let meaning = match &decoded {
        Ok(decoded) => meaning(decoded),
        Err(error) => vec![format!("No instruction: {error}. It traps when a lane reaches it.")],
    };
    let flow = match &decoded {
        Ok(inst::Inst { body: Body::Fc(fc), .. }) => flow_effect(fc),
        _ => Vec::new(),
    };
    let source = match kind {
        InstType::ALU | InstType::OUT => "CTM guide pp. 26-31; AMD R5xx 3D register reference, US_ALU_*",
        InstType::FC => "CTM guide pp. 35-40; AMD R5xx 3D register reference, US_FC_*",
        InstType::TEX => "CTM guide pp. 32-33; AMD R5xx 3D register reference, US_TEX_*",
    };
    let mut text =
        disassemble(&Program::from_words(words.to_vec()), Listing::default()).trim_end().to_owned();
    // If an endif closes more constructs than are open, the disassembler marks the endif. A single instruction has no
    // context, so the mark is removed here.
    if let Some(endif) = text.strip_suffix(" -> 0").filter(|text| text.starts_with("endif")) {
        text = endif.to_owned();
    }
    Explanation { text, fields: field_texts(&layout(kind), words), meaning, flow, findings, source }
}

/// Returns the fields of `words`. The formats of the words are `formats`.
pub(crate) fn field_texts(formats: &[WordInfo], words: &[u32]) -> Vec<FieldText> {
    let mut fields = Vec::new();
    for (word, (info, raw)) in formats.iter().zip(words).enumerate() {
        let word_name = info.name;
        let known = info.fields.iter().map(|field| {
            let (value, name) = (field.get(*raw), field.name.to_ascii_uppercase());
            let (hi, lo, text, doc) = (field.hi, field.lo, field.show(value), field.doc.trim());
            FieldText { word, word_name, name, hi, lo, value, text, doc }
        });
        let stray = (0..32).filter(|bit| (raw & !info.owned) >> bit & 1 != 0).map(|bit| {
            let (name, text, doc) =
                ("reserved".to_owned(), "1".to_owned(), "The bits do not belong to a field and should be 0.");
            FieldText { word, word_name, name, hi: bit, lo: bit, value: 1, text, doc }
        });
        let mut rows: Vec<FieldText> = known.chain(stray).collect();
        rows.sort_by_key(|row| Reverse(row.hi));
        fields.extend(rows);
    }
    fields
}

/// Describes the effects of an FC instruction. The text covers two cases: the group jumps, or the group does not jump.
fn flow_effect(fc: &Fc) -> Vec<String> {
    let inst = &fc.inst;
    let mut lines = Vec::new();
    if inst.b_else {
        lines.push(
            "first, active lanes swap with the lanes that the innermost branch switched off".to_owned(),
        );
    }
    let wish = match inst.jump_func {
        0x00 => "no lane votes to jump".to_owned(),
        0xff => "every lane votes to jump".to_owned(),
        0x0f => "lanes whose ALU result is false vote to jump".to_owned(),
        0xf0 => "lanes whose ALU result is true vote to jump".to_owned(),
        0x33 => "lanes whose predicate is false vote to jump".to_owned(),
        0xcc => "lanes whose predicate is true vote to jump".to_owned(),
        0x55 => format!("lanes vote to jump if boolean constant {} is false", fc.addr.bool_addr),
        0xaa => format!("lanes vote to jump if boolean constant {} is true", fc.addr.bool_addr),
        func => {
            format!(
                "lanes vote to jump if {func:#010b} has a 1 in bit (4 * ALU result + 2 * predicate + boolean)"
            )
        }
    };
    lines.push(wish);
    let voters = if inst.ignore_uncovered { "covered active lanes" } else { "active lanes" };
    lines.push(match inst.jump_any {
        true => format!("the group jumps if any of the {voters} votes to jump"),
        false => format!("the group jumps if all {voters} vote to jump, or if there are none"),
    });
    let int = fc.addr.int_addr;
    const POPPED: &str = "the loop frame is popped, and its lanes resume";
    let role = inst.op.role();
    let (on_jump, on_stay) = match role {
        Role::Jump => ("", String::new()),
        Role::Begin { al } => {
            let start = if al { " and aL = KG" } else { "" };
            ("", format!("a loop frame with count KR{start} of integer constant {int} is pushed"))
        }
        Role::End { al } => (if al { "aL grows by KB" } else { "" }, POPPED.to_owned()),
        Role::Break { .. } => {
            (POPPED, "active lanes that vote to jump wait until the frame is popped".to_owned())
        }
        Role::Continue => ("", "active lanes that vote to jump wait until the loop's end".to_owned()),
    };
    match role {
        Role::Begin { .. } => {
            lines.push("if the count is 0, the group jumps, whatever the votes are".to_owned())
        }
        Role::End { .. } => {
            lines.push(
                "the count is decremented first; at 0, the group stays, whatever the votes are".to_owned(),
            );
        }
        Role::Break { .. } | Role::Continue => {
            lines.push("if a branch in the loop has switched off lanes, the group does not jump".to_owned());
        }
        Role::Jump => {}
    }
    let counters = |op: BOp, disagree: &str| match op {
        BOp::NONE => String::new(),
        BOp::DECR => {
            let by = inst.b_pop_cnt;
            format!(
                "the counters of lanes that are off decrease by {by}, and lanes with a counter below 0 resume"
            )
        }
        BOp::INCR => {
            format!(
                "the counters of lanes that are off increase by 1, and active lanes that voted to {disagree} are \
                 switched off with counter 0"
            )
        }
    };
    let stack = match inst.a_op {
        AOp::NONE => String::new(),
        AOp::PUSH => "the return address is pushed".to_owned(),
        AOp::POP => "the target is popped from the address stack".to_owned(),
    };
    let join = |parts: [String; 3]| {
        let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        if parts.is_empty() { "nothing else changes".to_owned() } else { parts.join("; ") }
    };
    lines.push(format!("on a jump: {}", join([on_jump.to_owned(), counters(inst.b_op1, "stay"), stack])));
    lines.push(format!("on staying: {}", join([on_stay, counters(inst.b_op0, "jump"), String::new()])));
    lines
}
