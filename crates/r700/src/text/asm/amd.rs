//! Names and spellings of AMD's assembly text. The grammar accepts AMD's names and spellings, and also the names and
//! spellings of this project.
//!
//! Sources: AMD, "R600/R700/Evergreen Assembly Language Format"; the grammar of decaf-emu's latte-assembler, which
//! reads AMD's format for the Wii U; the listings of decaf-emu's disassembler. This file translates AMD's attributes to
//! the attributes of [`super::super::attr`].

use reconverge_isa::source::parse_number;

use super::super::attr::Attr;
use super::super::attr::{AMD_BANKS, AMD_TEX};
use super::lex::{Parse, Token, number, set, wrong};
use crate::words::{AluForm, CfInst, DataFormat, ExportInst};

/// Dialect of a text. The dialect determines the meaning of numbers, the defaults for missing parts, and the layout of
/// clauses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Dialect {
    /// The syntax of this project.
    #[default]
    Own,
    /// `.syntax amd`: the output of AMD's disassemblers. A number without brackets is an inline constant if the chip
    /// has an inline constant with this value.
    Amd,
    /// Source texts of latte-assembler. A number without brackets is a literal, and clauses have the addresses that
    /// latte-assembler assigns.
    Latte,
}

/// Returns the dialect of a text. If some line contains only END_OF_PROGRAM or some comment states a register, the text
/// has the dialect of latte-assembler.
pub(super) fn dialect_of(source: &str) -> Dialect {
    let alone = |(at, word): (usize, &str)| {
        let before = source[..at].rsplit('\n').next().unwrap_or_default();
        let after = source[at + word.len()..].split('\n').next().unwrap_or_default();
        before.trim().is_empty() && (after.trim().is_empty() || after.trim_start().starts_with(';'))
    };
    let ends = || source.match_indices("END_OF_PROGRAM").any(alone);
    match ends() || is_in(source) {
        true => Dialect::Latte,
        false => Dialect::Own,
    }
}

/// Returns the project's name of an ALU operation whose name in AMD's text is different.
pub(super) fn operation(name: &str) -> Option<&'static str> {
    super::super::AMD_OPERATIONS.iter().find(|(theirs, _)| *theirs == name).map(|(_, ours)| *ours)
}

/// ALU operations of later chips in the grammar of latte-assembler. An entry has the name of the operation, the number
/// of the operation in OP2, and the number of sources.
pub(super) const LATER_OP2: [(&str, u32, u8); 10] = [
    ("GROUP_BARRIER", 84, 2),
    ("GROUP_SEQ_BEGIN", 85, 2),
    ("GROUP_SEQ_END", 86, 2),
    ("SET_MODE", 87, 0),
    ("SET_CF_IDX0", 88, 0),
    ("SET_CF_IDX1", 89, 0),
    ("SET_LDS_SIZE", 90, 2),
    ("MUL_INT24", 91, 2),
    ("MULHI_INT24", 92, 2),
    // R600 has this operation. On R700, its number is unassigned.
    ("MOVA_GPR_INT", 96, 1),
];

/// Operations of later chips with three operands. Each entry has the name of the operation and its number in OP3.
pub(super) const LATER_OP3: [(&str, u32); 4] = [("BFE_UINT", 4), ("BFE_INT", 5), ("BFI_INT", 6), ("FMA", 7)];

/// Returns the project's name of a control-flow instruction. The name in AMD's text may be different.
pub(super) fn control(name: &str) -> &str {
    match name {
        "EXP" => "EXPORT",
        "EXP_DONE" => "EXPORT_DONE",
        "LOOP" => "LOOP_START",
        "LOOP_DX10" => "LOOP_START_DX10",
        "LOOP_NO_AL" => "LOOP_START_NO_AL",
        "ENDLOOP" => "LOOP_END",
        "BREAK" => "LOOP_BREAK",
        "CONTINUE" => "LOOP_CONTINUE",
        "RET" => "RETURN",
        "ALU_EXT" => "ALU_12",
        name => name,
    }
}

/// Returns whether a name without a colon is a control-flow instruction.
pub(super) fn is_control(name: &str) -> bool {
    let name = control(name);
    CfInst::ALL.iter().any(|inst| inst.name() == name)
        || AluForm::ALL.iter().any(|form| form.name() == name)
        || ExportInst::ALL.iter().any(|inst| name.starts_with(inst.name()))
        || matches!(name, "ALU_12")
}

/// Splits `MEM_EXPORT_WRITE_IND` into the space and the type. AMD's text joins the space and the type in one word.
pub(super) fn memory(name: &str) -> Option<(ExportInst, &str)> {
    let inst = ExportInst::ALL.iter().find(|inst| {
        let rest = name.strip_prefix(inst.name()).and_then(|rest| rest.strip_prefix('_'));
        rest.is_some_and(|rest| rest.starts_with("WRITE") || rest.starts_with("READ"))
    })?;
    Some((*inst, &name[inst.name().len() + 1..]))
}

/// Returns the project's name of a texture instruction. The name in AMD's text may be different.
pub(super) fn texture(name: &str) -> &str {
    AMD_TEX.iter().find(|(theirs, _)| *theirs == name).map_or(name, |(_, ours)| *ours)
}

/// Parses `PIX0`, `POS1` or `PARAM2` into TYPE and ARRAY_BASE. ARRAY_BASE of POS0 is 60.
pub(super) fn target(text: &str) -> Option<(u32, u32)> {
    if text == "PIXZ" {
        return Some((0, 61));
    }
    let (kind, first, rest) = [("PIX", 0), ("POS", 60), ("PARAM", 0)]
        .into_iter()
        .zip(0..)
        .find_map(|((name, first), kind)| Some((kind, first, text.strip_prefix(name)?)))?;
    let number = parse_number(rest).filter(|number| *number <= 0x1fff)? as u32;
    Some((kind, number + first)).filter(|(_, base)| *base <= 0x1fff)
}

/// Parses a fixed-point number in two's complement. The number has `bits` bits. `fraction` of these bits come after the
/// point.
fn fixed(token: Token<'_>, bits: u32, fraction: u32) -> Parse<u32> {
    let scale = f64::from(1_u32 << fraction);
    let value = token.text.trim_end_matches('f').parse::<f64>().ok().map(|value| value * scale);
    let most = f64::from(1_u32 << (bits - 1));
    match value {
        Some(value) if value.fract() == 0.0 && (-most..most).contains(&value) => {
            Ok(value as i32 as u32 & (u32::MAX >> (32 - bits)))
        }
        _ => Err(wrong(token, "a number in steps of the field was expected").help(format!(
            "{} to {} in steps of {}",
            -most / scale,
            (most - 1.0) / scale,
            1.0 / scale
        ))),
    }
}

/// Returns the index of a name in a list.
fn choice(token: Token<'_>, names: &[&str]) -> Parse<u32> {
    let place = names.iter().position(|name| *name == token.text);
    place.map(|place| place as u32).ok_or_else(|| {
        let known: Vec<&str> = names.iter().copied().filter(|name| !name.is_empty()).collect();
        wrong(token, "unknown value").help(reconverge_isa::source::suggest(token.text, known))
    })
}

/// Parses an attribute of AMD's text. If `name` is not an attribute, or if the attribute does not apply to this
/// instruction, the function returns `false`.
pub(super) fn attribute(
    name: &str,
    inner: Option<Token<'_>>,
    tables: &[&[Attr]],
    words: &mut [u32],
) -> Parse<bool> {
    let mut put = |name: &str, value: u32| set(name, value, tables, words);
    if let Some(bank) = AMD_BANKS.iter().position(|bank| *bank == name) {
        // The first six are for vector slots, and the last four are for slot t.
        return Ok(put("BANK", (if bank < 6 { bank } else { bank - 6 }) as u32));
    }
    let Some(value) = inner else {
        return Ok(match name {
            "WHOLE_QUAD_MODE" => put("WHOLE_QUAD", 1),
            "VPM" => put("VALID_PIX", 1),
            "BC_FRAC_MODE" => put("BC_FRAC", 1),
            "CONST_BUF_NO_STRIDE" => put("NO_STRIDE", 1),
            "USE_CONST_FIELDS" => put("CONST_FIELDS", 1),
            // USES_WATERFALL and ALT_CONST are the same bit. The bit has different names on R600 and R700.
            "USES_WATERFALL" => put("ALT_CONST", 1),
            "ALT_CONST" => put("USES_WATERFALL", 1),
            "OMOD_M2" => put("OMOD", 1),
            "OMOD_M4" => put("OMOD", 2),
            "OMOD_D2" => put("OMOD", 3),
            "PRED_SEL_OFF" => put("PRED", 0),
            "PRED_SEL_ZERO" => put("PRED", 2),
            "PRED_SEL_ONE" => put("PRED", 3),
            _ => match name.strip_prefix('i').and_then(parse_number) {
                Some(number @ 0..32) => put("CF_CONST", number as u32),
                _ => false,
            },
        });
    };
    Ok(match name {
        // AMD's text for POP_COUNT is `POP (1)`.
        "" => put("POP_CNT", number(value, 7)?),
        "POP_COUNT" => put("POP_CNT", number(value, 7)?),
        "CALL_COUNT" => put("CALL_CNT", number(value, 63)?),
        "BURSTCNT" | "BRSTCNT" => put("BURST_CNT", number(value, 15)?),
        "CND" | "COND" => {
            let names = ["ACTIVE", "FALSE", "BOOL", "NOT_BOOL"];
            let plain = value.text.trim_start_matches("ALWAYS_").trim_start_matches("CF_");
            put("COND", choice(Token { text: plain, ..value }, &names)?)
        }
        // Later chips have the field EXECUTE_MASK_OP in the bits of OMOD. R600 and R700 have only OMOD in these bits.
        "UPDATE_EXEC_MASK" => {
            let op = choice(value, &["DEACTIVATE", "BREAK", "CONTINUE", "KILL"])?;
            put("UPDATE_EXEC_MASK", 1) && put("OMOD", op)
        }
        "NORM" | "DENORM" | "UNNORM" => {
            for letter in value.text.chars() {
                let place = "xyzw".find(letter.to_ascii_lowercase());
                let place =
                    place.ok_or_else(|| wrong(value, "components were expected").help("as in xyz"))?;
                let attr = ["UNNORM_X", "UNNORM_Y", "UNNORM_Z", "UNNORM_W"][place];
                if !put(attr, u32::from(name == "NORM")) {
                    return Ok(false);
                }
            }
            true
        }
        "LOD" => put("LOD_BIAS", fixed(value, 7, 3)?),
        "XOFFSET" => put("OFFSET_X", fixed(value, 5, 1)?),
        "YOFFSET" => put("OFFSET_Y", fixed(value, 5, 1)?),
        "ZOFFSET" => put("OFFSET_Z", fixed(value, 5, 1)?),
        "FETCH_TYPE" => put("TYPE", choice(value, &["VERTEX_DATA", "INSTANCE_DATA", "NO_INDEX_OFFSET"])?),
        "ENDIAN_SWAP" => put("ENDIAN", choice(value, &["NONE", "8IN16", "8IN32", "8IN64"])?),
        "NUM_FORMAT" => put("NUM", choice(value, &["NORM", "INT", "SCALED"])?),
        "FORMAT_COMP" => put("SIGNED", choice(value, &["UNSIGNED", "SIGNED"])?),
        "MINI" => {
            let bytes = number(value, 64)?.checked_sub(1);
            let bytes = bytes.ok_or_else(|| wrong(value, "a count is at least 1"))?;
            put("MEGA", bytes) && put("MINI", 0)
        }
        // The value lists the format, the number conversion with its sign, and SRF_MODE.
        "FORMAT" => {
            for text in value.text.split_whitespace() {
                let word = Token { text, ..value };
                let named = DataFormat::ALL
                    .iter()
                    .find(|format| format.name() == text || format.name().strip_prefix("FMT_") == Some(text));
                let known = match text {
                    "NORM" | "INT" | "SCALED" => put("NUM", choice(word, &["NORM", "INT", "SCALED"])?),
                    "SIGNED" | "UNSIGNED" => put("SIGNED", u32::from(text == "SIGNED")),
                    "NO_ZERO" => put("NO_ZERO", 1),
                    "ZERO_CLAMP_MINUS_ONE" => true,
                    _ => match named {
                        Some(format) => put("FORMAT", *format as u32),
                        None => put("FORMAT", number(word, 63)?),
                    },
                };
                if !known {
                    return Ok(false);
                }
            }
            true
        }
        _ => false,
    })
}

/// Returns whether a text has comments that state a value. Such comments begin with `; $`.
pub(super) fn is_in(source: &str) -> bool {
    source.contains('$') && source.lines().any(|line| statement(line).is_some())
}

/// Returns the text after `; $`, or `None` if the line does not begin with `; $`.
pub(super) fn statement(line: &str) -> Option<&str> {
    line.trim_start().strip_prefix(';')?.trim_start().strip_prefix('$')
}
