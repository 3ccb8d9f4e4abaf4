//! Spellings that the disassembler and the assembler share.

use std::collections::HashMap;
use std::fmt::{self, Display};
use std::sync::LazyLock;

use foldhash::fast::RandomState;
use reconverge_isa::word::{Field, WordInfo};

use crate::inst::{WORDS, inline_constant};
use crate::words::{Imod, InstType, Omod, PredSel, Swiz, TexSwiz, layout};

/// The suffix for each output modifier.
pub(super) const OMOD: [(&str, Omod); 8] = [
    ("", Omod::MUL_1),
    ("*2", Omod::MUL_2),
    ("*4", Omod::MUL_4),
    ("*8", Omod::MUL_8),
    ("/2", Omod::DIV_2),
    ("/4", Omod::DIV_4),
    ("/8", Omod::DIV_8),
    ("*off", Omod::DISABLED),
];

/// Names of the predicate comparisons, indexed by the TARGET code of an ALU instruction.
pub(super) const COMPARISONS: [&str; 4] = ["EQ", "LT", "GE", "NE"];
/// Names of the render targets, indexed by the TARGET code of an OUT instruction.
pub(super) const TARGETS: [&str; 4] = ["A", "B", "C", "D"];

/// Fields of an FC instruction in its raw form, in the order of the text. An element has the field's name in the text,
/// the field's name in the manual, and the kind of number in the field.
#[rustfmt::skip]
pub(super) const RAW_FIELDS: [(&str, &str, &str); 11] = [
    ("FUNC",             "JUMP_FUNC",        "JUMP_FUNC"),
    ("ANY",              "JUMP_ANY",         ""),
    ("B_ELSE",           "B_ELSE",           ""),
    ("A_OP",             "A_OP",             ""),
    ("B_OP0",            "B_OP0",            ""),
    ("B_OP1",            "B_OP1",            ""),
    ("POP",              "B_POP_CNT",        "B_POP_CNT"),
    ("BOOL",             "BOOL_ADDR",        "a boolean constant"),
    ("INT",              "INT_ADDR",         "an integer constant"),
    ("IGNORE_UNCOVERED", "IGNORE_UNCOVERED", ""),
    ("GLOBAL",           "JUMP_GLOBAL",      ""),
];

/// Returns two texts for a modifier. The disassembler writes the first text before the operand and the second text
/// after the operand.
pub(super) const fn modifier(modifier: Imod) -> (&'static str, &'static str) {
    [("", ""), ("-", ""), ("|", "|"), ("-|", "|")][modifier as usize]
}

/// The predicate selectors, each with the text for its channels.
pub(super) const PREDICATES: [(PredSel, &str); 5] = [
    (PredSel::RGBA, "rgba"),
    (PredSel::RRRR, "r"),
    (PredSel::GGGG, "g"),
    (PredSel::BBBB, "b"),
    (PredSel::AAAA, "a"),
];

/// Returns the letter of a swizzle code.
pub(super) const fn letter(swiz: Swiz) -> char {
    ['r', 'g', 'b', 'a', '0', 'h', '1'][swiz as usize]
}

/// Returns the swizzle code of a letter.
pub(super) fn swiz(letter: char) -> Option<Swiz> {
    Swiz::ALL.iter().copied().find(|swiz| self::letter(*swiz) == letter)
}

/// Returns the letter of a texture swizzle code.
pub(super) const fn tex_letter(swiz: TexSwiz) -> char {
    ['r', 'g', 'b', 'a'][swiz as usize]
}

/// Returns the texture swizzle code of a letter.
pub(super) fn tex_swiz(letter: char) -> Option<TexSwiz> {
    TexSwiz::ALL.iter().copied().find(|swiz| tex_letter(*swiz) == letter)
}

/// The ten bits of an unused source (address, CONST, REL). Compilers write the inline constant 0x80 to these bits.
pub(super) const UNUSED_SOURCE: u32 = 0x80;
/// An address word with three unused sources.
pub(super) const UNUSED_SOURCES: u32 = UNUSED_SOURCE | UNUSED_SOURCE << 10 | UNUSED_SOURCE << 20;

/// Returns the text of a source that is encoded in ten bits.
pub(super) fn source(bits: u32) -> impl Display {
    let (address, is_const, rel) = (bits & 0xff, bits & 0x100 != 0, bits & 0x200 != 0);
    let al = if rel { "+aL" } else { "" };
    fmt::from_fn(move |f| match (is_const, address & 0x80 != 0, rel) {
        (true, _, _) => write!(f, "const[{address}{al}]"),
        (false, false, _) => write!(f, "temp[{address}{al}]"),
        (false, true, true) => write!(f, "inline[{}{al}]", address & 0x7f),
        (false, true, false) => write!(f, "#{}", inline_constant(address as u8 & 0x7f)),
    })
}

/// Returns the seven-bit code of an inline constant, or `None` if the value does not have a code.
pub(super) fn inline_code(value: f32) -> Option<u32> {
    (0..128).find(|code| inline_constant(*code) == value).map(u32::from)
}

/// The index of a word, and a field of that word.
type FieldPosition = (usize, &'static Field);

/// The names of the fields of an instruction type.
struct Names {
    /// The fields. The keys are `NAME` and `WORD.NAME`. The map does not use the standard library's hash function. With
    /// that function, hashing took 5 % of the time for writing and parsing a program.
    places: HashMap<String, FieldPosition, RandomState>,
    /// The fields of each word. Each field has the name that the text uses inside braces.
    in_braces: [Vec<(String, &'static Field)>; WORDS],
}

impl Names {
    fn of(kind: InstType) -> &'static Names {
        static NAMES: LazyLock<[Names; 4]> =
            LazyLock::new(|| std::array::from_fn(|kind| Names::new(InstType::ALL[kind])));
        &NAMES[kind as usize]
    }

    fn new(kind: InstType) -> Names {
        let mut names = Names { places: HashMap::default(), in_braces: [const { Vec::new() }; WORDS] };
        for (word, info) in layout(kind).iter().enumerate() {
            for field in info.fields {
                let name = field.name.to_ascii_uppercase();
                let whole = format!("{}.{name}", info.name);
                names.in_braces[word].push((if word == 0 { name.clone() } else { whole.clone() }, field));
                names.places.insert(whole, (word, field));
                // If several words have a field with this name, the name alone means the field of the first word.
                names.places.entry(name).or_insert((word, field));
            }
        }
        names
    }
}

/// Returns the field with this name, and the index of the field's word. If several words have such a field, the caller
/// must put the name of the word before the name of the field: `US_ALU_RGB_INST.OMOD`.
pub(super) fn field(kind: InstType, name: &str) -> Option<FieldPosition> {
    let places = &Names::of(kind).places;
    // Most names are already in upper case, as in the manual.
    places.get(name).or_else(|| places.get(&name.to_ascii_uppercase())).copied()
}

/// Returns the fields of a word. Each field has the name that the text uses inside braces. For all words except the
/// common word, this name includes the name of the word.
pub(super) fn field_names(kind: InstType, word: usize) -> &'static [(String, &'static Field)] {
    &Names::of(kind).in_braces[word]
}

/// Returns the name of a word for use in braces.
pub(super) fn word_name(info: &WordInfo, word: usize) -> String {
    if info.fields.is_empty() { format!("WORD{word}") } else { info.name.to_owned() }
}
