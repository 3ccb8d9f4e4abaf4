//! Generates `docs/coverage/r700.md`: every instruction with its families, its section and its fidelity.

use std::fmt::Write;

use reconverge_r700::chip::{Chip, Family};
use reconverge_r700::control::{self, CfRow, export_in_r600, mem_fidelity, tex_fidelity, tex_in_r600};
use reconverge_r700::explain::{Place, formats};
use reconverge_r700::meaning::{self, Opcode, Unit};
use reconverge_r700::words::{AluForm, CfInst, ExportInst, MemOp, Op2, Op3, TexInst, VtxInst};
use reconverge_simt::Fidelity;

/// Returns the text of `docs/coverage/r700.md`.
pub(crate) fn coverage() -> String {
    let mut text = String::from(
        "# R700 and R600: every instruction\n\nGenerated from the tables of `reconverge-r700`. *Fidelity*: exact equals \
         exact arithmetic; specified is as documented; approximate is within a tolerance; recommended means that \
         documents are silent; unsupported that the words have no known layout and do not run. Sections are those of the chapters of the manual and of `rules.rs`.\n",
    );
    let families = |in_r600: bool| if in_r600 { "R600, R700" } else { "R700" };
    head(&mut text, "Control flow (CF_INST, 7 bits)");
    for &inst in CfInst::ALL {
        let CfRow { in_r600, exactness, .. } = control::cf(inst);
        row(&mut text, inst as u32, inst.name(), families(in_r600), "-", "MAN 3", exactness);
    }
    head(&mut text, "ALU clauses (CF_INST, 4 bits)");
    for &form in AluForm::ALL {
        row(&mut text, form as u32, form.name(), "R600, R700", "-", "MAN 3", Fidelity::Specified);
    }
    head(&mut text, "Exports and memory writes (CF_INST, 7 bits)");
    for &inst in ExportInst::ALL {
        let families = families(export_in_r600(inst));
        row(&mut text, inst as u32, inst.name(), families, "-", "MAN 3, p. 45", Fidelity::Specified);
    }
    head(&mut text, "ALU, up to two operands (OP2)");
    for &code in Op2::ALL {
        let [r600, r700] = [Family::R600, Family::R700].map(|family| meaning::op2(code, family));
        let families = match (&r600, &r700) {
            (Some(_), Some(_)) => "R600, R700",
            (Some(_), None) => "R600",
            (None, _) => "R700",
        };
        if let Some(opcode) = r700.or(r600) {
            let slots = match r600 {
                Some(r600) if r600.unit != opcode.unit => format!("{}, R600 {}", unit(&opcode), unit(&r600)),
                Some(_) | None => unit(&opcode).to_owned(),
            };
            row(&mut text, code as u32, opcode.name, families, &slots, "MAN 4", opcode.exactness);
        }
    }
    head(&mut text, "ALU, three operands (OP3)");
    for &code in Op3::ALL {
        let opcode = meaning::op3(code);
        row(&mut text, code as u32, opcode.name, "R600, R700", unit(&opcode), "MAN 4", opcode.exactness);
    }
    head(&mut text, "Vertex fetches (VTX_INST)");
    for &inst in VtxInst::ALL {
        row(&mut text, inst as u32, inst.name(), "R600, R700", "-", "MAN 5", Fidelity::Specified);
    }
    head(&mut text, "Texture fetches (TEX_INST)");
    for &inst in TexInst::ALL {
        let families = families(tex_in_r600(inst));
        row(&mut text, inst as u32, inst.name(), families, "-", "MAN 5", tex_fidelity(inst));
    }
    head(&mut text, "Memory in fetch clauses (MEM_OP)");
    for &op in MemOp::ALL {
        let words = [2 | (op as u32) << 8];
        let format = formats(&words, Place::Fetch, Chip::RV770)[0].name;
        row(&mut text, op as u32, op.name(), "R700", format, "Mesa, MAN p. 35", mem_fidelity(op));
    }
    text
}

fn head(text: &mut String, title: &str) {
    let _ = write!(
        text,
        "\n## {title}\n\n| code | name | families | slots or format | source | fidelity |\n|---|---|---|---|---|---|\n"
    );
}

fn row(
    text: &mut String,
    code: u32,
    name: &str,
    families: &str,
    slots: &str,
    source: &str,
    exactness: impl Into<Option<Fidelity>>,
) {
    let fidelity = exactness.into().map_or("unsupported", Fidelity::name);
    let _ = writeln!(text, "| {code:#04x} | {name} | {families} | {slots} | {source} | {fidelity} |");
}

fn unit(opcode: &Opcode) -> &'static str {
    match opcode.unit {
        Unit::Vector => "vector",
        Unit::Trans => "t",
        Unit::Either => "vector, t",
    }
}
