//! Parses comments of the form `; $REGISTER.FIELD = value`. In source texts of latte-assembler, such comments state the
//! registers of a program.
//!
//! decaf-emu's latte-assembler is the source for names, defaults and checks. decaf-emu's register headers are the
//! source for the positions of the fields. The values in the comments become the state of the program. A program does
//! not store the names of attributes, uniforms and samplers.

use reconverge_isa::program::Stage;
use reconverge_isa::source::{parse_number, suggest};
use reconverge_isa::{Diagnostic, Span};

use super::Asm;
use super::amd::{Dialect, is_in, statement};
use super::lex::Parse;

/// A register. The structure has the register's name, number of instances, and fields. A field has a name, a lowest bit
/// and a width.
struct Register {
    stage: Stage,
    name: &'static str,
    count: usize,
    /// Value of the register if no comment states the register.
    usual: u32,
    fields: &'static [(&'static str, u32, u32)],
}

const fn one(
    stage: Stage,
    name: &'static str,
    usual: u32,
    fields: &'static [(&'static str, u32, u32)],
) -> Register {
    Register { stage, name, count: 1, usual, fields }
}

const RESOURCES: &[(&str, u32, u32)] = &[
    ("NUM_GPRS", 0, 8),
    ("STACK_SIZE", 8, 8),
    ("DX10_CLAMP", 21, 1),
    ("PRIME_CACHE_PGM_EN", 22, 1),
    ("PRIME_CACHE_ON_DRAW", 23, 1),
    ("FETCH_CACHE_LINES", 24, 3),
    ("UNCACHED_FIRST_INST", 28, 1),
    ("PRIME_CACHE_ENABLE", 29, 1),
    ("PRIME_CACHE_ON_CONST", 30, 1),
    ("CLAMP_CONSTS", 31, 1),
];

use Stage::{Pixel, Vertex};

#[rustfmt::skip]
const REGISTERS: [Register; 19] = [
    one(Vertex, "SQ_PGM_RESOURCES_VS", 1 << 8, RESOURCES),
    one(Vertex, "VGT_PRIMITIVEID_EN", 0, &[("PRIMITIVEID_EN", 0, 1)]),
    one(Vertex, "SPI_VS_OUT_CONFIG", 0, &[
        ("VS_PER_COMPONENT", 0, 1), ("VS_EXPORT_COUNT", 1, 5), ("VS_EXPORTS_FOG", 8, 1), ("VS_OUT_FOG_VEC_ADDR", 9, 5),
    ]),
    Register { stage: Vertex, name: "SPI_VS_OUT_ID", count: 10, usual: u32::MAX, fields: &[
        ("SEMANTIC_0", 0, 8), ("SEMANTIC_1", 8, 8), ("SEMANTIC_2", 16, 8), ("SEMANTIC_3", 24, 8),
    ] },
    one(Vertex, "PA_CL_VS_OUT_CNTL", 0, &[
        ("CLIP_DIST_ENA_0", 0, 1), ("CLIP_DIST_ENA_1", 1, 1), ("CLIP_DIST_ENA_2", 2, 1), ("CLIP_DIST_ENA_3", 3, 1),
        ("CLIP_DIST_ENA_4", 4, 1), ("CLIP_DIST_ENA_5", 5, 1), ("CLIP_DIST_ENA_6", 6, 1), ("CLIP_DIST_ENA_7", 7, 1),
        ("CULL_DIST_ENA_0", 8, 1), ("CULL_DIST_ENA_1", 9, 1), ("CULL_DIST_ENA_2", 10, 1), ("CULL_DIST_ENA_3", 11, 1),
        ("CULL_DIST_ENA_4", 12, 1), ("CULL_DIST_ENA_5", 13, 1), ("CULL_DIST_ENA_6", 14, 1), ("CULL_DIST_ENA_7", 15, 1),
        ("USE_VTX_POINT_SIZE", 16, 1), ("USE_VTX_EDGE_FLAG", 17, 1), ("USE_VTX_RENDER_TARGET_INDX", 18, 1),
        ("USE_VTX_VIEWPORT_INDX", 19, 1), ("USE_VTX_KILL_FLAG", 20, 1), ("VS_OUT_MISC_VEC_ENA", 21, 1),
        ("VS_OUT_CCDIST0_VEC_ENA", 22, 1), ("VS_OUT_CCDIST1_VEC_ENA", 23, 1), ("VS_OUT_MISC_SIDE_BUS_ENA", 24, 1),
        ("USE_VTX_GS_CUT_FLAG", 25, 1),
    ]),
    one(Vertex, "SQ_VTX_SEMANTIC_CLEAR", 0, &[("CLEAR", 0, 32)]),
    Register { stage: Vertex, name: "SQ_VTX_SEMANTIC", count: 32, usual: 0, fields: &[("SEMANTIC_ID", 0, 8)] },
    one(Vertex, "VGT_STRMOUT_BUFFER_EN", 0, &[
        ("BUFFER_0_EN", 0, 1), ("BUFFER_1_EN", 1, 1), ("BUFFER_2_EN", 2, 1), ("BUFFER_3_EN", 3, 1),
    ]),
    one(Vertex, "VGT_VERTEX_REUSE_BLOCK_CNTL", 14, &[("VTX_REUSE_DEPTH", 0, 8)]),
    one(Vertex, "VGT_HOS_REUSE_DEPTH", 16, &[("REUSE_DEPTH", 0, 8)]),
    one(Pixel, "SQ_PGM_RESOURCES_PS", 0, RESOURCES),
    one(Pixel, "SQ_PGM_EXPORTS_PS", 2, &[("EXPORT_MODE", 0, 5)]),
    one(Pixel, "SPI_PS_IN_CONTROL_0", 1 << 26 | 1 << 28, &[
        ("NUM_INTERP", 0, 6), ("POSITION_ENA", 8, 1), ("POSITION_CENTROID", 9, 1), ("POSITION_ADDR", 10, 5),
        ("PARAM_GEN", 15, 4), ("PARAM_GEN_ADDR", 19, 7), ("BARYC_SAMPLE_CNTL", 26, 2), ("PERSP_GRADIENT_ENA", 28, 1),
        ("LINEAR_GRADIENT_ENA", 29, 1), ("POSITION_SAMPLE", 30, 1), ("BARYC_AT_SAMPLE_ENA", 31, 1),
    ]),
    one(Pixel, "SPI_PS_IN_CONTROL_1", 0, &[
        ("GEN_INDEX_PIX", 0, 1), ("GEN_INDEX_PIX_ADDR", 1, 7), ("FRONT_FACE_ENA", 8, 1), ("FRONT_FACE_CHAN", 9, 2),
        ("FRONT_FACE_ALL_BITS", 11, 1), ("FRONT_FACE_ADDR", 12, 5), ("FOG_ADDR", 17, 7),
        ("FIXED_PT_POSITION_ENA", 24, 1), ("FIXED_PT_POSITION_ADDR", 25, 5), ("POSITION_ULC", 30, 1),
    ]),
    Register { stage: Pixel, name: "SPI_PS_INPUT_CNTL", count: 32, usual: 0, fields: &[
        ("SEMANTIC", 0, 8), ("DEFAULT_VAL", 8, 2), ("FLAT_SHADE", 10, 1), ("SEL_CENTROID", 11, 1), ("SEL_LINEAR", 12, 1),
        ("CYL_WRAP", 13, 4), ("PT_SPRITE_TEX", 17, 1), ("SEL_SAMPLE", 18, 1),
    ] },
    one(Pixel, "CB_SHADER_MASK", 15, &[
        ("OUTPUT0_ENABLE", 0, 4), ("OUTPUT1_ENABLE", 4, 4), ("OUTPUT2_ENABLE", 8, 4), ("OUTPUT3_ENABLE", 12, 4),
        ("OUTPUT4_ENABLE", 16, 4), ("OUTPUT5_ENABLE", 20, 4), ("OUTPUT6_ENABLE", 24, 4), ("OUTPUT7_ENABLE", 28, 4),
    ]),
    one(Pixel, "CB_SHADER_CONTROL", 1, &[
        ("RT0_ENABLE", 0, 1), ("RT1_ENABLE", 1, 1), ("RT2_ENABLE", 2, 1), ("RT3_ENABLE", 3, 1),
        ("RT4_ENABLE", 4, 1), ("RT5_ENABLE", 5, 1), ("RT6_ENABLE", 6, 1), ("RT7_ENABLE", 7, 1),
    ]),
    one(Pixel, "DB_SHADER_CONTROL", 1 << 4, &[
        ("Z_EXPORT_ENABLE", 0, 1), ("STENCIL_REF_EXPORT_ENABLE", 1, 1), ("Z_ORDER", 4, 2), ("KILL_ENABLE", 6, 1),
        ("COVERAGE_TO_MASK_ENABLE", 7, 1), ("MASK_EXPORT_ENABLE", 8, 1), ("DUAL_EXPORT_ENABLE", 9, 1),
        ("EXEC_ON_HIER_FAIL", 10, 1), ("EXEC_ON_NOOP", 11, 1), ("ALPHA_TO_MASK_DISABLE", 12, 1),
    ]),
    one(Pixel, "SPI_INPUT_Z", 0, &[("PROVIDE_Z_TO_SPI", 0, 1)]),
];

/// Names of values, by field.
const NAMED: [(&str, &[&str]); 2] = [
    ("BARYC_SAMPLE_CNTL", &["CENTROIDS_ONLY", "CENTERS_ONLY", "CENTROIDS_AND_CENTERS"]),
    ("Z_ORDER", &["LATE_Z", "EARLY_Z_THEN_LATE_Z", "RE_Z", "EARLY_Z_THEN_RE_Z"]),
];

/// Names in the comments that denote data which a program of this project does not store.
const NAMES: [&str; 10] = [
    "MODE",
    "ATTRIB_VARS",
    "UNIFORM_BLOCKS",
    "UNIFORM_VARS",
    "INITIAL_VALUES",
    "LOOP_VARS",
    "SAMPLER_VARS",
    "RING_ITEM_SIZE",
    "HAS_STREAM_OUT",
    "STREAM_OUT_STRIDE",
];

/// Data that the comments state.
#[derive(Default)]
pub(super) struct Stated {
    /// Position of the first comment that states a value.
    first: Option<Span>,
    /// For each register in the comments, the name of the register, the index of the instance, and the value.
    values: Vec<(&'static str, usize, u32)>,
    /// Stated numbers of instances (NUM_…), for registers with several instances.
    counts: Vec<(&'static str, u32)>,
    /// Locations of attributes, indexed by attribute.
    attributes: Vec<u32>,
    /// Data that the comments state and that a program does not store.
    unkept: Vec<&'static str>,
    stage: Option<Stage>,
}

impl Asm<'_> {
    /// Parses all comments that state a value.
    pub(super) fn metadata(&mut self) {
        if self.dialect != Dialect::Latte || !is_in(self.source) {
            return;
        }
        let mut at = 0;
        for line in self.source.split_inclusive('\n') {
            let text = line.trim_end();
            if let Some(stated) = statement(text) {
                let end = at + text.len();
                let span = Span::new(end - stated.len(), end);
                if let Err(fault) = self.stated.read(stated, span) {
                    self.faults.push(fault);
                }
            }
            at += line.len();
        }
    }

    /// Returns whether comments state a value.
    pub(super) fn has_metadata(&self) -> bool {
        self.stated.first.is_some()
    }

    /// A Wii U shader file (`.gsh`) has a header with registers. If comments state any register of the header, the
    /// function adds all registers of the header to the state. A register that no comment states has the default value
    /// of latte-assembler.
    pub(super) fn state_of_metadata(&mut self, registers: u32, exports_pixels: bool) {
        let Some(first) = self.stated.first else { return };
        let own = self.state.iter().find_map(|(name, _)| name.strip_prefix("stage "));
        let own = own.and_then(|name| [Pixel, Vertex].into_iter().find(|stage| stage.name() == name));
        let by_exports = if exports_pixels { Pixel } else { Vertex };
        let stage = own.or(self.stated.stage).unwrap_or(by_exports);
        if !self.state.iter().any(|(name, _)| name.starts_with("stage ")) {
            self.state.push((format!("stage {stage}"), Vec::new()));
        }
        let stated = std::mem::take(&mut self.stated);
        for (name, number, value) in stated.state(stage, registers) {
            let name = match number {
                Some(number) => format!("state {name}_{number}"),
                None => format!("state {name}"),
            };
            if name.starts_with("state SQ_PGM_RESOURCES_") {
                for (key, value) in [("gprs", value & 0xff), ("stack", value >> 8 & 0xff)] {
                    if !self.state.iter().any(|(known, _)| known == key) {
                        self.state.push((key.to_owned(), vec![value]));
                    }
                }
            }
            if !self.state.iter().any(|(known, _)| *known == name) {
                self.state.push((name, vec![value]));
            }
        }
        if !stated.unkept.is_empty() {
            let message = format!("a program does not store {}", stated.unkept.join(", "));
            let help = "a .gsh is written with the registers alone; its tables of names are empty";
            self.warnings.push(Diagnostic::warning(first, message).help(help));
        }
    }
}

impl Stated {
    /// Parses `REGISTER[number].FIELD = value`, which is the text of a comment after the dollar sign.
    fn read(&mut self, text: &str, span: Span) -> Parse<()> {
        self.first.get_or_insert(span);
        let fault = |message: &str| Diagnostic::error(span, message).label(format!("found `{text}`"));
        let (place, value) = text.split_once('=').ok_or_else(|| {
            fault("a value was expected").help("as in `; $SQ_PGM_RESOURCES_PS.NUM_GPRS = 1`")
        })?;
        let (place, value) = (place.trim().to_ascii_uppercase(), value.trim());
        let (object, field) = place.split_once('.').unwrap_or((&place, ""));
        let (name, number) = match object.split_once('[') {
            Some((name, number)) => {
                let number = number.strip_suffix(']').and_then(parse_number);
                (name, number.ok_or_else(|| fault("a number in brackets was expected"))? as usize)
            }
            None => (object, 0),
        };
        if name == "STAGE" {
            // STAGE exists only in the comments of this project. latte-assembler receives the stage on its command
            // line.
            let stage = [Pixel, Vertex].into_iter().find(|stage| stage.name() == value);
            self.stage = Some(stage.ok_or_else(|| fault("vertex or pixel was expected"))?);
            return Ok(());
        }
        if let Some(unkept) = NAMES.iter().find(|known| **known == name) {
            if name == "ATTRIB_VARS" {
                if number >= 32 {
                    return Err(fault("there are 32 attributes at most"));
                }
                while self.attributes.len() <= number {
                    self.attributes.push(self.attributes.len() as u32);
                }
                if field == "LOCATION" {
                    self.attributes[number] =
                        word(value, field).ok_or_else(|| fault("a number was expected"))?;
                }
            }
            if !self.unkept.contains(unkept) {
                self.unkept.push(unkept);
            }
            return Ok(());
        }
        let counted = name.strip_prefix("NUM_");
        let counted = REGISTERS.iter().find(|register| register.count > 1 && Some(register.name) == counted);
        if let Some(register) = counted {
            let count = word(value, "").filter(|count| *count as usize <= register.count);
            let count = count.ok_or_else(|| fault("more than there are"))?;
            self.stage.get_or_insert(register.stage);
            self.counts.push((register.name, count));
            return Ok(());
        }
        let Some(register) = REGISTERS.iter().find(|register| register.name == name) else {
            let known = REGISTERS.iter().map(|register| register.name).chain(NAMES);
            return Err(fault("unknown register").help(suggest(name, known)));
        };
        if number >= register.count {
            return Err(fault("more than there are"));
        }
        let value = word(value, field).ok_or_else(|| fault("a number, true or false was expected"))?;
        // SQ_VTX_SEMANTIC_CLEAR has only one field, so the text may omit the name of this field.
        let field = match (field, register.fields) {
            ("", [only]) => Some(only),
            _ => register.fields.iter().find(|(known, ..)| *known == field),
        };
        let Some(&(_, lo, bits)) = field else {
            let known = register.fields.iter().map(|(known, ..)| *known);
            return Err(fault("unknown field").help(suggest(&place, known)));
        };
        let most = u32::MAX >> (32 - bits);
        if value > most {
            return Err(fault("the value does not fit").help(format!("0 to {most} fits")));
        }
        self.stage.get_or_insert(register.stage);
        let known = self.values.iter().position(|(own, at, _)| *own == register.name && *at == number);
        let known = known.unwrap_or_else(|| {
            self.values.push((register.name, number, register.usual));
            self.values.len() - 1
        });
        let whole = &mut self.values[known].2;
        *whole = *whole & !(most << lo) | value << lo;
        Ok(())
    }

    /// Returns the registers of the header of a shader file for `stage`. Each entry has the name, the instance and the
    /// value of a register. If no comment states NUM_GPRS, the value of NUM_GPRS is `gprs`.
    fn state(&self, stage: Stage, gprs: u32) -> Vec<(&'static str, Option<usize>, u32)> {
        let mut state = Vec::new();
        let get = |name: &str, number: usize| {
            self.values.iter().find(|(own, at, _)| *own == name && *at == number).map(|(.., value)| *value)
        };
        let count =
            |name: &str| self.counts.iter().find(|(own, _)| *own == name).map_or(0, |(_, count)| *count);
        let attributes = self.attributes.len() as u32;
        let semantics = match count("SQ_VTX_SEMANTIC") {
            0 => attributes,
            count => count,
        };
        for register in REGISTERS.iter().filter(|register| register.stage == stage) {
            if register.count > 1 {
                let is_semantic = register.name == "SQ_VTX_SEMANTIC";
                let there = if is_semantic { semantics } else { count(register.name) } as usize;
                for number in 0..there {
                    let attribute = self.attributes.get(number).copied().filter(|_| is_semantic);
                    let value = get(register.name, number).or(attribute).unwrap_or(register.usual);
                    state.push((register.name, Some(number), value));
                }
                continue;
            }
            let mut value = get(register.name, 0).unwrap_or(register.usual);
            match register.name {
                "SQ_PGM_RESOURCES_VS" | "SQ_PGM_RESOURCES_PS" if value & 0xff == 0 => value |= gprs & 0xff,
                "SQ_VTX_SEMANTIC_CLEAR" if value == 0 => {
                    value = u32::MAX.checked_shl(semantics).unwrap_or(0);
                }
                "SPI_PS_IN_CONTROL_0" if value & 0x3f == 0 => value |= count("SPI_PS_INPUT_CNTL") & 0x3f,
                "PA_CL_VS_OUT_CNTL" => {
                    let any = |mask: u32, bits: u32| if value & mask != 0 { bits } else { 0 };
                    value |= any(0x21f << 16, 1 << 21 | 1 << 24) | any(0xff, 1 << 22) | any(0xff00, 1 << 23);
                }
                _ => {}
            }
            state.push((register.name, None, value));
        }
        state
    }
}

/// Parses a number, true, false, or a name in quotation marks.
fn word(value: &str, field: &str) -> Option<u32> {
    if let Some(name) = value.strip_prefix('"').and_then(|value| value.strip_suffix('"')) {
        let names = NAMED.iter().find(|(known, _)| *known == field)?.1;
        return names.iter().position(|known| known.eq_ignore_ascii_case(name)).map(|place| place as u32);
    }
    match value {
        _ if value.eq_ignore_ascii_case("true") => Some(1),
        _ if value.eq_ignore_ascii_case("false") => Some(0),
        _ => parse_number(value).and_then(|value| u32::try_from(value).ok()),
    }
}
