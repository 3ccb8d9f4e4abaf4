//! Attributes. An attribute is a field that the text shows after the operands, unless the field has its default value.
//! The text of an attribute is `NAME` or `NAME(value)`. The disassembler and the assembler share one table for each
//! word format.

use crate::chip::Family;
use crate::words::DataFormat;

/// One attribute of a word format.
#[derive(Clone, Copy)]
pub(super) struct Attr {
    pub(super) name: &'static str,
    /// Index of the word in the instruction.
    pub(super) word: usize,
    pub(super) lo: u32,
    pub(super) bits: u32,
    /// Default value. If the field has this value, the text does not show the attribute.
    pub(super) usual: u32,
    /// The disassembler prints the field's value plus this number. This number is 1 if the field stores a count minus
    /// one.
    pub(super) add: u32,
    /// Names of the values. If a value has no name, the text shows the value as a number.
    pub(super) names: &'static [&'static str],
}

impl Attr {
    pub(super) const fn max(&self) -> u32 {
        u32::MAX >> (32 - self.bits)
    }
    pub(super) const fn get(&self, words: &[u32]) -> u32 {
        words[self.word] >> self.lo & self.max()
    }
    pub(super) const fn mask(&self) -> u32 {
        self.max() << self.lo
    }
}

const fn flag(name: &'static str, word: usize, bit: u32) -> Attr {
    Attr { name, word, lo: bit, bits: 1, usual: 0, add: 0, names: &[] }
}
const fn num(name: &'static str, word: usize, hi: u32, lo: u32, add: u32) -> Attr {
    Attr { name, word, lo, bits: hi - lo + 1, usual: 0, add, names: &[] }
}
const fn named(name: &'static str, word: usize, hi: u32, lo: u32, names: &'static [&'static str]) -> Attr {
    Attr { name, word, lo, bits: hi - lo + 1, usual: 0, add: 0, names }
}
const fn unless(mut attr: Attr, usual: u32) -> Attr {
    attr.usual = usual;
    attr
}

const COND: &[&str] = &["ACTIVE", "FALSE", "BOOL", "NOT_BOOL"];
const ENDIAN: &[&str] = &["NONE", "8IN16", "8IN32", "8IN64"];
/// Names of DATA_FORMAT values without the prefix, indexed by value.
const FORMATS: &[&str] = &{
    let mut names = [""; DataFormat::FMT_BC5 as usize + 1];
    let mut place = 0;
    while place < DataFormat::ALL.len() {
        let format = DataFormat::ALL[place];
        names[format as usize] = format.name().split_at("FMT_".len()).1;
        place += 1;
    }
    names
};

#[rustfmt::skip]
pub(super) const CF: &[Attr] = &[
    num("POP_CNT", 1, 2, 0, 0), num("CF_CONST", 1, 7, 3, 0), named("COND", 1, 9, 8, COND),
    num("CALL_CNT", 1, 18, 13, 0), flag("VALID_PIX", 1, 22), flag("WHOLE_QUAD", 1, 30),
    unless(flag("NO_BARRIER", 1, 31), 1), flag("END_OF_PROGRAM", 1, 21),
];
#[rustfmt::skip]
pub(super) const CF_ALU: &[Attr] = &[flag("WHOLE_QUAD", 1, 30), unless(flag("NO_BARRIER", 1, 31), 1)];
pub(super) const ALU_BIT_25: [Attr; 2] = [flag("USES_WATERFALL", 1, 25), flag("ALT_CONST", 1, 25)];

#[rustfmt::skip]
pub(super) const EXPORT: &[Attr] = &[
    flag("REL", 0, 22), num("INDEX_GPR", 0, 29, 23, 0), num("ELEM_SIZE", 0, 31, 30, 0), num("BURST_CNT", 1, 20, 17, 0),
    flag("VALID_PIX", 1, 22), flag("WHOLE_QUAD", 1, 30), unless(flag("NO_BARRIER", 1, 31), 1),
    flag("END_OF_PROGRAM", 1, 21),
];
#[rustfmt::skip]
pub(super) const MEMORY: &[Attr] = &[
    num("ARRAY_SIZE", 1, 11, 0, 0),
    flag("REL", 0, 22), num("INDEX_GPR", 0, 29, 23, 0), num("ELEM_SIZE", 0, 31, 30, 0), num("BURST_CNT", 1, 20, 17, 0),
    flag("VALID_PIX", 1, 22), flag("WHOLE_QUAD", 1, 30), unless(flag("NO_BARRIER", 1, 31), 1),
    flag("END_OF_PROGRAM", 1, 21),
];

const OMOD: &[&str] = &["OFF", "M2", "M4", "D2"];
const PRED: &[&str] = &["OFF", "1", "ZERO", "ONE"];
const BANK: &[&str] = &["012", "021", "120", "102", "201", "210"];
/// Names of BANK values in AMD's text. The first six are for vector slots, and the last four are for slot t.
pub(super) const AMD_BANKS: [&str; 10] = [
    "VEC_012", "VEC_021", "VEC_120", "VEC_102", "VEC_201", "VEC_210", "SCL_210", "SCL_122", "SCL_212",
    "SCL_221",
];
/// Texture instructions with different names in this project and in other texts. A row has the name in AMD's text and
/// in latte-assembler, and then the name in this project.
pub(super) const AMD_TEX: [(&str, &str); 3] = [
    ("GET_TEXTURE_INFO", "GET_TEXTURE_RESINFO"),
    ("GET_SAMPLE_INFO", "GET_NUMBER_OF_SAMPLES"),
    ("GET_COMP_TEX_LOD", "GET_LOD"),
];
const INDEX: &[&str] = &["AR_X", "AR_Y", "AR_Z", "AR_W", "LOOP", "GLOBAL", "GLOBAL_AR_X", "7"];

#[rustfmt::skip]
pub(super) const OP3: &[Attr] = &[
    flag("CLAMP", 1, 31), named("PRED", 0, 30, 29, PRED), named("INDEX", 0, 28, 26, INDEX), named("BANK", 1, 20, 18, BANK),
];
#[rustfmt::skip]
const OP2_R600: &[Attr] = &[
    named("OMOD", 1, 7, 6, OMOD), flag("CLAMP", 1, 31), flag("UPDATE_EXEC_MASK", 1, 2), flag("UPDATE_PRED", 1, 3),
    named("PRED", 0, 30, 29, PRED), named("INDEX", 0, 28, 26, INDEX), named("BANK", 1, 20, 18, BANK), flag("FOG_MERGE", 1, 5),
];
#[rustfmt::skip]
const OP2_R700: &[Attr] = &[
    named("OMOD", 1, 6, 5, OMOD), flag("CLAMP", 1, 31), flag("UPDATE_EXEC_MASK", 1, 2), flag("UPDATE_PRED", 1, 3),
    named("PRED", 0, 30, 29, PRED), named("INDEX", 0, 28, 26, INDEX), named("BANK", 1, 20, 18, BANK),
];
pub(super) const fn op2(family: Family) -> &'static [Attr] {
    match family {
        Family::R600 => OP2_R600,
        Family::R700 => OP2_R700,
    }
}

#[rustfmt::skip]
pub(super) const TEX: &[Attr] = &[
    num("OFFSET_X", 2, 4, 0, 0), num("OFFSET_Y", 2, 9, 5, 0), num("OFFSET_Z", 2, 14, 10, 0), num("LOD_BIAS", 1, 27, 21, 0),
    unless(flag("UNNORM_X", 1, 28), 1), unless(flag("UNNORM_Y", 1, 29), 1), unless(flag("UNNORM_Z", 1, 30), 1),
    unless(flag("UNNORM_W", 1, 31), 1), flag("BC_FRAC", 0, 5), flag("WHOLE_QUAD", 0, 7),
];
pub(super) const TEX_ALT: Attr = flag("ALT_CONST", 0, 24);
#[rustfmt::skip]
pub(super) const VTX: &[Attr] = &[
    named("FORMAT", 1, 27, 22, FORMATS), named("NUM", 1, 29, 28, &["NORM", "INT", "SCALED"]), flag("SIGNED", 1, 30),
    flag("NO_ZERO", 1, 31), flag("CONST_FIELDS", 1, 21), num("OFFSET", 2, 15, 0, 0),
    named("TYPE", 0, 6, 5, &["VERTEX_DATA", "INSTANCE_DATA", "NO_INDEX_OFFSET"]), num("MEGA", 0, 31, 26, 1),
    unless(flag("MINI", 2, 19), 1), named("ENDIAN", 2, 17, 16, ENDIAN), flag("NO_STRIDE", 2, 18), flag("WHOLE_QUAD", 0, 7),
];
pub(super) const VTX_ALT: Attr = flag("ALT_CONST", 2, 20);
#[rustfmt::skip]
pub(super) const MEM_RD: &[Attr] = &[
    num("ARRAY_BASE", 2, 12, 0, 0), num("ARRAY_SIZE", 2, 31, 20, 0), num("ELEM_SIZE", 0, 6, 5, 0),
    num("BURST_CNT", 0, 29, 26, 0), flag("INDEXED", 0, 12), flag("UNCACHED", 0, 11),
    named("FORMAT", 1, 27, 22, FORMATS), named("NUM", 1, 29, 28, &["NORM", "INT", "SCALED"]), flag("SIGNED", 1, 30),
    flag("NO_ZERO", 1, 31), named("ENDIAN", 2, 17, 16, ENDIAN), flag("WHOLE_QUAD", 0, 7),
    named("SRC_Y", 0, 14, 13, &["X", "Y", "Z", "W"]), flag("LDS_REQ", 0, 30), flag("COALESCED", 0, 31),
];
/// Provisional layout of LOCAL_DS_WRITE. The sources confirm only MEM_INST and MEM_OP (r700.md 6.5).
#[rustfmt::skip]
pub(super) const MEM_DSW: &[Attr] = &[
    num("DST_INDEX", 1, 5, 0, 0), num("DST_STRIDE", 1, 12, 6, 0), flag("WAVE_REL", 1, 13), num("BURST_CNT", 1, 17, 14, 0),
];
/// Provisional layout of LOCAL_DS_READ. The sources confirm only MEM_INST and MEM_OP (r700.md 6.5).
#[rustfmt::skip]
pub(super) const MEM_DSR: &[Attr] = &[
    named("SRC_Y", 0, 27, 26, &["X", "Y", "Z", "W"]), named("MUX", 1, 22, 21, &["NONE", "FFT_PERMUTE", "WORD_SELECT"]),
    flag("WAVE_REL", 1, 23), flag("BROADCAST", 1, 24), flag("WATERFALL", 1, 25),
];
