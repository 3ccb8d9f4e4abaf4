//! Lists the legal forms of a mnemonic. The forms come from the tables of opcodes.

use reconverge_isa::FieldValue;
use reconverge_isa::forms::Form;

use crate::chip::{Chip, Family};
use crate::control::{self, CfWork};
use crate::meaning::{self, Meaning, Opcode, Unit};
use crate::words::{AluForm, CfInst, ExportInst, MemOp, Op2, Op3, TexInst, VtxInst};

/// Flags of a control-flow instruction.
const FLAGS: &str = "[VALID_PIX] [WHOLE_QUAD] [NO_BARRIER] [END_OF_PROGRAM]";

/// Returns the forms of a mnemonic on `chip`. The list is empty if `mnemonic` is not a mnemonic.
pub fn forms(mnemonic: &str, chip: Chip) -> Vec<Form> {
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
    for form in AluForm::ALL.iter().filter(|form| form.name() == mnemonic) {
        let text = format!(
            "{mnemonic}: [ADDR(N|@LABEL)] [CNT(N)] [KCACHE0(CBN:FIRST-LAST)] [KCACHE1(CBN:FIRST-LAST)] {FLAGS}"
        );
        add(
            text,
            format!("{mnemonic}:\n  0 x: MOV R0.x, R1.x"),
            about(*form),
            "MAN, CF_ALU_DWORD0 and 1; a clause follows",
        );
    }
    for inst in CfInst::ALL.iter().filter(|inst| inst.name() == mnemonic) {
        let row = control::cf(*inst);
        if chip.family == Family::R600 && !row.in_r600 {
            continue;
        }
        let fetches = matches!(row.work, CfWork::Fetch { .. });
        let operands = match (fetches, row.jumps) {
            (true, _) => "[ADDR(N|@LABEL)] [CNT(N)]",
            (_, true) => "ADDR(N|@LABEL) [POP_CNT(N)] [CF_CONST(N)] [COND(FALSE|BOOL|NOT_BOOL)]",
            _ => "[POP_CNT(N)] [CF_CONST(N)] [COND(FALSE|BOOL|NOT_BOOL)]",
        };
        let example = match (fetches, row.jumps) {
            (true, _) if mnemonic.starts_with("TEX") => {
                format!("{mnemonic}:\n  SAMPLE R0.xyzw, R1.xyzw, t0, s0")
            }
            (true, _) => format!("{mnemonic}:\n  FETCH R1.xyzw, R0.x, b0 FORMAT(32_32_32_32_FLOAT) MEGA(16)"),
            (_, true) => format!("{mnemonic}: ADDR(0)"),
            _ => format!("{mnemonic}:"),
        };
        add(format!("{mnemonic}: {operands} {FLAGS}"), example, about(*inst), "MAN, CF_DWORD0 and 1");
    }
    for inst in ExportInst::ALL.iter().filter(|inst| inst.name() == mnemonic) {
        if chip.family == Family::R600 && !control::export_in_r600(*inst) {
            continue;
        }
        let (text, example) = match mnemonic.starts_with("EXPORT") {
            true => ("PIXEL|POS|PARAM[N], RN.[xyzw01_]×4 [BURST_CNT(N)]", "PIXEL[0], R0.xyzw"),
            false => {
                ("WRITE|WRITE_IND[N], RN.[xyzw_]×4 [, RN] [ELEM_SIZE(N)] [BURST_CNT(N)]", "WRITE[0], R0.xyzw")
            }
        };
        let source = "MAN, CF_ALLOC_EXPORT_DWORD0 and 1";
        add(format!("{mnemonic}: {text} {FLAGS}"), format!("{mnemonic}: {example}"), about(*inst), source);
    }
    let two =
        Op2::ALL.iter().filter_map(|code| meaning::op2(*code, chip.family).map(|op| (op, about(*code))));
    let three = Op3::ALL.iter().map(|code| (meaning::op3(*code), about(*code)));
    for (op, doc) in two.chain(three).filter(|(op, _)| op.name == mnemonic) {
        let (text, example) = alu(&op);
        add(text, example, doc, "MAN, ALU_WORD0 and 1; inside an ALU clause");
    }
    for inst in TexInst::ALL.iter().filter(|inst| inst.name() == mnemonic) {
        if chip.family == Family::R600 && !control::tex_in_r600(*inst) {
            continue;
        }
        let text = format!(
            "{mnemonic} RN.[xyzw01_]×4, RN.[xyzw01]×4, tN, sN [OFFSET_X(N)] [OFFSET_Y(N)] [OFFSET_Z(N)] [LOD_BIAS(N)] [UNNORM_X]"
        );
        add(
            text,
            format!("{mnemonic} R0.xyzw, R1.xyzw, t0, s0"),
            about(*inst),
            "MAN, TEX_DWORD0 to 2; inside a TEX clause",
        );
    }
    for inst in VtxInst::ALL.iter().filter(|inst| inst.name() == mnemonic) {
        let destination = if *inst == VtxInst::FETCH { "R" } else { "S" };
        let text = format!(
            "{mnemonic} {destination}N.[xyzw01_]×4, RN.x, bN FORMAT(F) [NUM(INT|SCALED)] [SIGNED] [OFFSET(N)] [MEGA(BYTES)|MINI] [CONST_FIELDS]"
        );
        let example = format!("{mnemonic} {destination}1.xyzw, R0.x, b0 FORMAT(32_32_32_32_FLOAT) MEGA(16)");
        add(text, example, about(*inst), "MAN, VTX_DWORD0 to 2; inside a TEX or VTX clause");
    }
    for inst in MemOp::ALL.iter().filter(|inst| inst.name() == mnemonic) {
        let (text, example) = match inst {
            MemOp::LOCAL_DS_WRITE | MemOp::GLOBAL_DS_WRITE => ("RN", "R1"),
            _ => ("RN.[xyzw01_]×4, RN.x", "R1.xyzw, R2.x"),
        };
        add(
            format!("{mnemonic} {text}"),
            format!("{mnemonic} {example}"),
            about(*inst),
            "MAN, MEM_RD_WORD0 to 2; inside a TEX clause",
        );
    }
    found
}

/// Returns all mnemonics, sorted.
pub fn mnemonics() -> Vec<&'static str> {
    let mut names: Vec<&str> = AluForm::ALL.iter().map(|value| value.name()).collect();
    names.extend(CfInst::ALL.iter().map(|value| value.name()));
    names.extend(ExportInst::ALL.iter().map(|value| value.name()));
    names.extend(Op2::ALL.iter().map(|value| value.name()));
    names.extend(Op3::ALL.iter().map(|value| value.name()));
    names.extend(TexInst::ALL.iter().map(|value| value.name()));
    names.extend(VtxInst::ALL.iter().map(|value| value.name()));
    names.extend(MemOp::ALL.iter().map(|value| value.name()));
    names.sort_unstable();
    names.dedup();
    names
}

/// Returns the manual's description of a field's value.
fn about<T: FieldValue>(value: T) -> &'static str {
    let bits = value.to_bits();
    T::NAMES.iter().find(|name| name.value == bits).map_or("", |name| name.doc)
}

/// Returns the form of an operation of an ALU group, and an example.
fn alu(op: &Opcode) -> (String, String) {
    let name = op.name;
    let source = |number: u8| format!("R{}.{{c}}", number + 1);
    let sources: String = (0..op.sources).map(|number| format!(", {}", source(number))).collect();
    let operands: String = (0..op.sources).map(|number| format!(", SRC{number}")).collect();
    let (writes, more) = match op.meaning {
        Meaning::PredSet(_) | Meaning::Double(meaning::Double::PredSet(_)) => {
            ("_", " [UPDATE_EXEC_MASK] [UPDATE_PRED]")
        }
        Meaning::Kill(_) | Meaning::Mova(_) | Meaning::MovaLoop(_) | Meaning::Nothing => ("_", ""),
        _ => ("R0", " [OMOD(M2|M4|D2)] [CLAMP]"),
    };
    let slots = match op.unit {
        Unit::Vector => "x|y|z|w",
        Unit::Trans => "t",
        Unit::Either => "x|y|z|w|t",
    };
    let of = match op.meaning.slots() {
        1 => String::new(),
        count => format!("; uses {count} slots of a group"),
    };
    let destination = if writes == "_" { "_" } else { "RN" };
    let text =
        format!("[GROUP] {slots}: {name} {destination}.c{operands}{more} [PRED(ZERO|ONE)] [BANK(…)]{of}");
    let line = |slot: &str, channel: &str| {
        format!("{slot}: {name} {writes}.{channel}{}", sources.replace("{c}", channel))
    };
    let lines: Vec<String> = match (op.meaning.slots(), op.unit) {
        (1, Unit::Trans) => vec![line("t", "x")],
        (1, _) => vec![line("x", "x")],
        (count, _) => {
            ["x", "y", "z", "w"].iter().take(count.into()).map(|channel| line(channel, channel)).collect()
        }
    };
    (text, format!("0 {}", lines.join("\n  ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::assemble;

    /// Every mnemonic has a form on RV770 or R600. Each example assembles in the kind of clause that the `source` of
    /// the form names.
    #[test]
    fn every_example_assembles() {
        for name in mnemonics() {
            let found = forms(name, Chip::RV770);
            let only_r600 = || !forms(name, Chip::named("r600").unwrap()).is_empty();
            assert!(!found.is_empty() || only_r600(), "{name}");
            for form in found {
                let context = ["ALU", "TEX"]
                    .into_iter()
                    .find(|clause| form.source.contains(&format!("{clause} clause")));
                let context = context.or_else(|| form.source.contains("VTX clause").then_some("VTX"));
                let source = match context {
                    Some(clause) => format!("{clause}:\n  {}\n", form.example),
                    None => format!("{}\n", form.example),
                };
                let assembled = assemble(&source, Chip::RV770);
                assert!(assembled.is_ok(), "{source}: {:?}", assembled.map(|_| ()));
            }
        }
    }
}
