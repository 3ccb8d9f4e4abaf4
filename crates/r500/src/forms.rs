//! The legal forms of a mnemonic. The forms come from the tables of operations, pseudo-instructions and constructs.

use reconverge_isa::FieldValue;
use reconverge_isa::forms::Form;

use crate::operations::OPERATIONS;
use crate::pvs;
use crate::text::construct::{CONSTRUCTS, Jumps, Pop};
use crate::text::idioms::IDIOMS;
use crate::words::TexOp;

/// Returns the forms of a mnemonic in pixel programs and in programs of the vertex unit. For an unknown mnemonic,
/// returns no forms.
pub fn forms(mnemonic: &str) -> Vec<Form> {
    let mut found = Vec::new();
    let mut add = |text: String, example: String, about: &str, source: &str| {
        found.push(Form {
            text,
            example,
            places: Vec::new(),
            about: about.trim().trim_end_matches('.').to_owned(),
            source: source.to_owned(),
        });
    };
    for operation in OPERATIONS {
        let rgb = operation.rgb.filter(|op| op.name() == mnemonic).is_some();
        let alpha = operation.alpha.filter(|op| op.name() == mnemonic).is_some();
        let (about, source) = ("one half of an ALU or OUT instruction", "CTM guide pp. 28-29");
        if rgb {
            let (text, example) = half(mnemonic, operation.operands, "rgb");
            add(text, example, about, source);
        }
        if alpha {
            let (text, example) = half(mnemonic, operation.operands, "a");
            add(text, example, about, source);
        }
    }
    for idiom in IDIOMS.iter().filter(|idiom| idiom.name == mnemonic) {
        for channels in ["rgb", "a"] {
            let name = if idiom.off { format!("{mnemonic}*off") } else { mnemonic.to_owned() };
            let (text, example) = half(&name, idiom.operands, channels);
            add(text, example, idiom.meaning, &format!("a form of {}: docs/r500-idioms.md", idiom.operation));
        }
    }
    for op in TexOp::ALL.iter().filter(|op| op.name() == mnemonic) {
        let (text, example) = match op {
            TexOp::NOP => (
                "TEX NOP tex[N], temp[N].SSSS [TEX_SEM_ACQUIRE]".to_owned(),
                "TEX NOP tex[0], temp[1].rgba".to_owned(),
            ),
            TexOp::TEXKILL => {
                ("TEX TEXKILL tex[N], temp[N].SSSS".to_owned(), "TEX TEXKILL tex[0], temp[1].rgba".to_owned())
            }
            _ => {
                let gradients = if *op == TexOp::DXDY { " dx=temp[N].SSSS dy=temp[N].SSSS" } else { "" };
                let given = if *op == TexOp::DXDY { " dx=temp[2].rgba dy=temp[3].rgba" } else { "" };
                (
                    format!(
                        "TEX temp[N].MASK = {mnemonic} tex[N], temp[N].SSSS [swz=SSSS] [UNSCALED] [TEX_SEM_ACQUIRE]{gradients}"
                    ),
                    format!("TEX temp[0].rgba = {mnemonic} tex[0], temp[1].rgba{given}"),
                )
            }
        };
        let doc = TexOp::NAMES.iter().find(|name| name.text == mnemonic).map_or("", |name| name.doc);
        add(text, example, doc, "REG, US_TEX_INST");
    }
    let mut known = Vec::new();
    for construct in CONSTRUCTS.iter().filter(|construct| construct.name == mnemonic) {
        let condition = match construct.jumps {
            Jumps::WhenFalse => " C",
            Jumps::WhenTrue => " if C",
            Jumps::Never | Jumps::Always => "",
        };
        let condition = if construct.on_boolean { " bool[N]" } else { condition };
        let variant =
            if construct.variant.is_empty() { String::new() } else { format!(" {}", construct.variant) };
        let int = if construct.has_int() { " int[N]" } else { "" };
        let pop = match construct.pop {
            Pop::None => "",
            Pop::One => " [pop=N]",
            Pop::Said => " pop=N",
        };
        let needs_target = construct.name == "goto" || construct.name == "call" || construct.on_boolean;
        let plain_target =
            matches!(construct.name, "goto" | "call") && condition.is_empty() && construct.variant.is_empty();
        let target = match (needs_target, plain_target) {
            (true, true) => " LABEL",
            (true, false) => " -> LABEL",
            (false, _) => " [-> LABEL]",
        };
        let text = format!("{mnemonic}{condition}{variant}{int}{pop}{target}");
        if !known.contains(&text) {
            known.push(text.clone());
            let example = text
                .replace(" C", " alu")
                .replace("bool[N]", "bool[0]")
                .replace("int[N]", "int[0]")
                .replace(" [pop=N]", "")
                .replace("pop=N", "pop=1")
                .replace(" [-> LABEL]", " -> 0")
                .replace("LABEL", "0");
            add(text, example, "C is alu, pred.r (g, b, a) or bool[N], perhaps with `!`", "CTM guide p. 40");
        }
    }
    match mnemonic {
        "ALU" | "OUT" => {
            let target = if mnemonic == "ALU" { "temp[N]|pred[EQ]|alu_result[LT]" } else { "out[A]|temp[N]" };
            let example = if mnemonic == "ALU" { "temp[0]" } else { "out[A]" };
            add(
                format!("{mnemonic} [(pred.C)] {target}.MASK[, …] = OP OPERAND, … : src0=SOURCE src1=SOURCE src2=SOURCE srcp=OP"),
                format!("{mnemonic} {example}.rgb = MAD src0.rgb, src1.rgb, src2.rgb : src0=temp[1] src1=const[0] src2=#0.5"),
                "the alpha half follows on a line of its own behind `+`",
                "docs/r500-syntax.md",
            );
        }
        "FC" => add(
            "FC [(pred.C)] OP [FUNC=N] [ANY] [B_ELSE] [A_OP=O] [B_OP0=O] [B_OP1=O] [POP=N] [BOOL=N] [INT=N] [-> N]".to_owned(),
            "FC JUMP FUNC=0x0f -> 0".to_owned(),
            "flow control field by field",
            "REG, US_FC_INST",
        ),
        _ => {}
    }
    found.extend(pvs::text::forms(mnemonic));
    found
}

/// Returns the form of half of an ALU instruction, and an example of the form.
fn half(name: &str, operands: usize, channels: &str) -> (String, String) {
    let swizzle = if channels == "a" { "S" } else { "SSS" };
    let form: Vec<String> = (0..operands).map(|number| format!("src{number}|srcp.{swizzle}")).collect();
    let given: Vec<String> = (0..operands).map(|number| format!("src{number}.{channels}")).collect();
    let sources: Vec<String> =
        (0..operands).map(|number| format!("src{number}=temp[{}]", number + 1)).collect();
    let (start, first) = match channels {
        "a" => ("+ ", "ALU\n  + "),
        _ => ("ALU|OUT ", "ALU "),
    };
    let behind = if operands == 0 { String::new() } else { format!(" : {}", sources.join(" ")) };
    (
        format!("{start}temp[N].{channels} = {name}[*2|*4|*8|/2|/4|/8][.sat] {}", form.join(", ")),
        format!("{first}temp[0].{channels} = {name} {}{behind}", given.join(", "))
            .replace(&format!("{name} {behind}"), name),
    )
}

/// Returns all mnemonics, sorted.
pub fn mnemonics() -> Vec<&'static str> {
    let mut names: Vec<&str> = vec!["ALU", "OUT", "FC"];
    names.extend(OPERATIONS.iter().filter_map(|row| row.rgb).map(|op| op.name()));
    names.extend(OPERATIONS.iter().filter_map(|row| row.alpha).map(|op| op.name()));
    names.extend(IDIOMS.iter().map(|idiom| idiom.name));
    names.extend(TexOp::ALL.iter().map(|op| op.name()));
    names.extend(CONSTRUCTS.iter().map(|construct| construct.name));
    names.extend(pvs::text::mnemonics());
    names.sort_unstable();
    names.dedup();
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::assemble;

    /// Every mnemonic has a form, and the example of this form assembles.
    #[test]
    fn every_example_assembles() {
        for name in mnemonics() {
            let found = forms(name);
            assert!(!found.is_empty(), "{name}");
            for form in found {
                let source = format!("{}\n", form.example);
                let fits = match form.source.contains("vertex") {
                    true => pvs::text::assemble(&source).map(|_| ()),
                    false => assemble(&source).map(|_| ()),
                };
                assert!(fits.is_ok(), "{source}: {fits:?}");
            }
        }
    }
}
