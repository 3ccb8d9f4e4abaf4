//! One instruction, field by field.

use reconverge_isa::{FieldValue, WordInfo};

use crate::chip::{Chip, Family};
use crate::words::*;

/// One field of an instruction, or a run of bits that no field owns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explained {
    /// The manual's name of the word format.
    pub format: &'static str,
    /// Which word of the instruction.
    pub word: usize,
    /// Highest bit.
    pub hi: u8,
    /// Lowest bit.
    pub lo: u8,
    /// The field's name; `reserved` for bits of no field.
    pub field: &'static str,
    /// Its bits, right-aligned.
    pub value: u32,
    /// What they say.
    pub text: String,
    /// What the field is for; may be empty.
    pub doc: &'static str,
}

/// What an instruction is part of, which its words do not show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The control-flow program: two words.
    ControlFlow,
    /// An ALU clause: two words.
    Alu,
    /// A TEX or VTX clause: four words.
    Fetch,
}

/// The word formats of the instruction `words` at `place`; a word beyond them is padding.
pub fn formats(words: &[u32], place: Place, chip: Chip) -> Vec<&'static WordInfo> {
    let r700 = chip.family == Family::R700;
    let second = words.get(1).copied().unwrap_or(0);
    match place {
        Place::ControlFlow if second >> 29 & 1 != 0 => {
            vec![&CfAluDword0::INFO, if r700 { &CfAluDword1R700::INFO } else { &CfAluDword1R600::INFO }]
        }
        Place::ControlFlow => match ExportInst::from_bits(second >> 23 & 0x7f, 7) {
            None => vec![&CfDword0::INFO, if r700 { &CfDword1R700::INFO } else { &CfDword1R600::INFO }],
            Some(ExportInst::EXPORT | ExportInst::EXPORT_DONE) => {
                let swizzle = if r700 {
                    &CfAllocExportDword1SwizR700::INFO
                } else {
                    &CfAllocExportDword1SwizR600::INFO
                };
                vec![&CfAllocExportDword0::INFO, swizzle]
            }
            Some(_) => {
                let buffer =
                    if r700 { &CfAllocExportDword1BufR700::INFO } else { &CfAllocExportDword1BufR600::INFO };
                vec![&CfAllocExportDword0::INFO, buffer]
            }
        },
        Place::Alu if second >> 15 & 7 != 0 => vec![&AluDword0::INFO, &AluDword1Op3::INFO],
        Place::Alu => {
            vec![&AluDword0::INFO, if r700 { &AluDword1Op2R700::INFO } else { &AluDword1Op2R600::INFO }]
        }
        Place::Fetch => {
            let first = words.first().copied().unwrap_or(0);
            let vertex = if r700 { &VtxDword2R700::INFO } else { &VtxDword2R600::INFO };
            match (first & 31, first >> 8 & 7) {
                (0, _) => vec![&VtxDword0::INFO, &VtxDword1Gpr::INFO, vertex],
                (1, _) => vec![&VtxDword0::INFO, &VtxDword1Sem::INFO, vertex],
                (2, 4 | 6) => vec![&MemDswDword0::INFO, &MemDswDword1::INFO],
                (2, 5 | 7) => vec![&MemDsrDword0::INFO, &MemDsrDword1::INFO],
                (2, _) => vec![&MemRdDword0::INFO, &MemRdDword1::INFO, &MemRdDword2::INFO],
                _ => {
                    let first = if r700 { &TexDword0R700::INFO } else { &TexDword0R600::INFO };
                    vec![first, &TexDword1::INFO, &TexDword2::INFO]
                }
            }
        }
    }
}

/// Every field of the instruction `words` at `place`, words in order, fields from bit 0 up; together they own every
/// bit once.
pub fn explain(words: &[u32], place: Place, chip: Chip) -> Vec<Explained> {
    let formats = formats(words, place, chip);
    let mut all = Vec::new();
    for (word, &raw) in words.iter().enumerate() {
        let info = formats.get(word);
        let mut bit = 0;
        while bit < 32 {
            let field = info.and_then(|info| info.field_at(bit));
            let explained = match (info, field) {
                (Some(info), Some(field)) => Explained {
                    format: info.name,
                    word,
                    hi: field.hi,
                    lo: field.lo,
                    field: field.name,
                    value: field.get(raw),
                    text: text(field.name, field.get(raw), place, info.name)
                        .unwrap_or_else(|| field.show(field.get(raw))),
                    doc: field.doc,
                },
                (info, _) => {
                    let free = |bit: &u8| info.is_none_or(|info| info.field_at(*bit).is_none());
                    let hi = (bit..32).take_while(free).last().unwrap_or(bit);
                    let value = (u64::from(raw) >> bit & ((1 << (hi - bit + 1)) - 1)) as u32;
                    let name = info.map_or("padding", |info| info.name);
                    let text =
                        if value == 0 { "zero".to_owned() } else { format!("{value:#x}, should be zero") };
                    Explained { format: name, word, hi, lo: bit, field: "reserved", value, text, doc: "" }
                }
            };
            bit = explained.hi + 1;
            all.push(explained);
        }
    }
    all
}

/// The name of an opcode or the meaning of a selector, which the word formats hold as numbers.
fn text(field: &str, value: u32, place: Place, format: &str) -> Option<String> {
    let name = match (field, place) {
        ("cf_inst", _) if format == CfAluDword0::INFO.name || format == CfAluDword1R700::INFO.name => {
            AluForm::from_bits(value, 4).map(AluForm::name)
        }
        ("cf_inst", _) => CfInst::from_bits(value, 7)
            .map(CfInst::name)
            .or_else(|| ExportInst::from_bits(value, 7).map(ExportInst::name)),
        ("alu_inst", Place::Alu) if format == AluDword1Op2R700::INFO.name => {
            Op2::from_bits(value, 11).map(Op2::name)
        }
        ("src0_chan" | "src1_chan" | "src2_chan" | "dst_chan", Place::Alu) => {
            ["X", "Y", "Z", "W"].get(value as usize).copied()
        }
        ("src0_sel" | "src1_sel" | "src2_sel", Place::Alu) => return Some(selector(value)),
        _ => return None,
    };
    name.map(|name| format!("{name} ({value:#x})"))
}

/// What a source selector names (r700.md 4.4).
fn selector(value: u32) -> String {
    match value {
        0..=127 => format!("R{value}"),
        128..=159 => format!("KC0[{}]", value - 128),
        160..=191 => format!("KC1[{}]", value - 160),
        192..=243 => format!("{value} (reserved)"),
        244 => "low half of 1.0 (double)".into(),
        245 => "high half of 1.0 (double)".into(),
        246 => "low half of 0.5 (double)".into(),
        247 => "high half of 0.5 (double)".into(),
        248 => "0".into(),
        249 => "1.0".into(),
        250 => "1 (integer)".into(),
        251 => "-1 (integer)".into(),
        252 => "0.5".into(),
        253 => "literal".into(),
        254 => "PV".into(),
        255 => "PS".into(),
        _ => format!("C[{}]", value - 256),
    }
}
