//! C and C++ sources that hold binaries in integer arrays, as `xxd -i`, `bin2c` and nvcc's fat binary stubs
//! write them: `unsigned char name[] = { 0x7f, 0x45, … };`.
//!
//! Only such arrays are read, nothing else of the language: comments, preprocessor lines and strings are
//! passed over. The bytes of each array are recognised again by their content; those without a mark of
//! their own are raw words. Arrays of 8, 16, 32 and 64-bit elements are taken as little endian.
//! `long` has no one size and is refused.

use std::sync::Arc;

use reconverge_isa::program::{CodeAt, Digits, Numbers};
use reconverge_isa::{Image, Span};

use crate::error::quoted;
use crate::{Error, Format, load_as, merge, recognise_marked};

/// Braces inside an array's braces.
const DEEPEST: usize = 8;

/// Whether a text could be such a source: it has an array and braces.
pub(crate) fn looks_like(text: &str) -> bool {
    text.contains('[') && text.contains('{')
}

/// Reads all arrays of a source.
///
/// A program of raw words has its array's name. Arrays that hold neither a known container nor whole words
/// are passed over with a note.
pub fn load(text: &str) -> Result<Image, Error> {
    let mut image = Image { format: Format::CArray.name(), ..Image::default() };
    let mut reader = Reader { text, at: 0 };
    // The words since the last statement's end: the type and name of what is being declared.
    let mut words: Vec<&str> = Vec::new();
    let mut arrays = 0;
    while let Some(token) = reader.next() {
        match token.kind {
            Kind::Word if words.len() < 16 => words.push(token.text),
            Kind::Word => {}
            Kind::Mark if token.text == "[" && !words.is_empty() => {
                if let Some(array) = reader.array(&words, token, &mut image.notes)? {
                    arrays += 1;
                    add(&mut image, &array)?;
                }
                words.clear();
            }
            Kind::Mark | Kind::Number | Kind::Literal => words.clear(),
        }
    }
    if image.programs.is_empty() {
        return Err(Error::Missing {
            what: "an array with machine code",
            remedy: format!(
                "found {arrays} integer arrays, expected one such as `unsigned char name[] = {{ 0x7f, … }};`"
            ),
        });
    }
    Ok(image)
}

struct Array<'a> {
    name: &'a str,
    start: usize,
    bytes: Vec<u8>,
    /// The elements that spell them.
    numbers: Numbers,
}

fn add(image: &mut Image, array: &Array<'_>) -> Result<(), Error> {
    let Array { name, start, bytes, numbers } = array;
    let in_member =
        |source| Error::Member { name: (*name).to_owned(), at: *start as u64, source: Box::new(source) };
    let member = match recognise_marked(bytes).map_err(in_member)? {
        Some(format) => load_as(bytes, format).map_err(in_member)?,
        None if bytes.is_empty() || !bytes.len().is_multiple_of(4) || crate::as_text(bytes).is_some() => {
            image
                .notes
                .push(format!("array {name} holds no known container and no words, and was passed over"));
            return Ok(());
        }
        None => {
            let mut raw = crate::bin::load(bytes).map_err(in_member)?;
            for program in &mut raw.programs {
                program.name = Some((*name).to_owned());
            }
            raw
        }
    };
    merge(image, name, member, |place| {
        *place = CodeAt::Numbers(numbers.clone(), Box::new(std::mem::take(place)));
    });
    Ok(())
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Word,
    Number,
    /// A string or character.
    Literal,
    Mark,
}

#[derive(Clone, Copy)]
struct Token<'a> {
    kind: Kind,
    text: &'a str,
    start: usize,
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    fn next(&mut self) -> Option<Token<'a>> {
        loop {
            let rest = &self.text[self.at..];
            self.at += rest.len() - rest.trim_start().len();
            let rest = &self.text[self.at..];
            if rest.starts_with("//") {
                self.at += rest.find('\n').unwrap_or(rest.len());
            } else if rest.starts_with("/*") {
                self.at += rest.find("*/").map_or(rest.len(), |end| end + 2);
            } else if rest.starts_with('#') {
                self.at += directive_len(rest);
            } else {
                break;
            }
        }
        let rest = &self.text[self.at..];
        let first = rest.chars().next()?;
        let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
        let (kind, len) = match first {
            '"' | '\'' => (Kind::Literal, literal_len(rest, first)),
            _ if first.is_ascii_digit() => (
                Kind::Number,
                rest.find(|c: char| !is_word(c) && c != '.' && c != '\'').unwrap_or(rest.len()),
            ),
            _ if is_word(first) => (Kind::Word, rest.find(|c: char| !is_word(c)).unwrap_or(rest.len())),
            _ => (Kind::Mark, first.len_utf8()),
        };
        let token = Token { kind, text: &rest[..len], start: self.at };
        self.at += len;
        Some(token)
    }

    fn syntax(&self, at: usize, found: String, expected: &str) -> Error {
        let (line, column) = Span::new(at, at).line_column(self.text);
        Error::Syntax { line, column, found, expected: expected.to_owned() }
    }

    fn need(&mut self, expected: &str) -> Result<Token<'a>, Error> {
        let end = self.text.len();
        self.next().ok_or_else(|| self.syntax(end, "the end of the text".to_owned(), expected))
    }

    /// Reads from behind the `[` of a declaration `words [` to the end of its initialiser, if it has one.
    fn array(
        &mut self,
        words: &[&'a str],
        bracket: Token<'a>,
        notes: &mut Vec<String>,
    ) -> Result<Option<Array<'a>>, Error> {
        let mut declared = None;
        let mut dimensions = 1;
        let mut depth = 1;
        // Attributes may follow the brackets; an initialiser has `= {`.
        loop {
            let Some(token) = self.next() else { return Ok(None) };
            match (token.kind, token.text) {
                (Kind::Mark, "[") => {
                    depth += 1;
                    dimensions += 1;
                }
                (Kind::Mark, "]") if depth > 0 => depth -= 1,
                (Kind::Number, number) if depth == 1 && declared.is_none() => declared = integer(number),
                (Kind::Mark, "=") if depth == 0 => break,
                (Kind::Mark, ";" | "{" | "}" | ",") if depth <= 0 => return Ok(None),
                _ => {}
            }
        }
        let brace = self.need("`{`")?;
        if brace.text != "{" {
            return Ok(None);
        }
        let (name, types) = match words {
            [types @ .., name] => (*name, types),
            [] => return Ok(None),
        };
        let Some(width) = element_bytes(types) else {
            if types.contains(&"long") {
                let found = quoted(&types.join(" "));
                let expected = "a type of one size on every host, such as unsigned int or unsigned long long";
                return Err(self.syntax(bracket.start, found, expected));
            }
            notes.push(format!(
                "array {name}: type {} is no integer and was passed over",
                quoted(&types.join(" "))
            ));
            return Ok(None);
        };
        let (mut bytes, mut places) = (Vec::new(), Vec::new());
        let mut depth = 1;
        let mut negative = None;
        while depth > 0 {
            let token = self.need("`}`")?;
            match (token.kind, token.text) {
                (Kind::Mark, "{") => {
                    depth += 1;
                    if depth > DEEPEST {
                        let (line, column) = Span::new(token.start, token.start).line_column(self.text);
                        return Err(Error::TooDeep { line, column, limit: DEEPEST });
                    }
                }
                (Kind::Mark, "}") => depth -= 1,
                (Kind::Mark, ",") => {}
                (Kind::Mark, "-") => {
                    negative = Some(token.start);
                    continue;
                }
                (Kind::Number, number) => {
                    let value = integer(number).filter(|value| width == 8 || *value >> (8 * width) == 0);
                    let Some(value) = value else {
                        let expected = format!("an integer of at most {} bits", 8 * width);
                        return Err(self.syntax(token.start, quoted(number), &expected));
                    };
                    let value = if negative.is_some() { value.wrapping_neg() } else { value };
                    places.push(negative.unwrap_or(token.start)..self.at);
                    bytes.extend_from_slice(&value.to_le_bytes()[..width]);
                }
                (_, other) => {
                    return Err(self.syntax(token.start, quoted(other), "an integer constant, `,` or `}`"));
                }
            }
            negative = None;
        }
        let elements = (bytes.len() / width) as u64;
        if let Some(declared) = declared.filter(|declared| dimensions == 1 && *declared != elements) {
            if declared < elements {
                let expected = format!("at most the {declared} elements that the array declares");
                return Err(self.syntax(bracket.start, format!("{elements} elements"), &expected));
            }
            notes.push(format!(
                "array {name}: declares {declared} elements and gives {elements}; the zeros behind them are left out"
            ));
        }
        let places = Arc::new(places);
        let numbers = Numbers { start: 0, places, digits: Digits::C, width, big_endian: false };
        Ok(Some(Array { name, start: brace.start, bytes, numbers }))
    }
}

/// Length of a preprocessor line, continued lines included.
fn directive_len(text: &str) -> usize {
    let mut len = 0;
    for line in text.split_inclusive('\n') {
        len += line.len();
        if !line.trim_end().ends_with('\\') {
            break;
        }
    }
    len
}

/// Length of a string or character constant, up to the end of its line when it is not closed.
fn literal_len(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            '\n' => return at,
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if c == quote => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// Bytes of one element of a type that is spelled in `words`, `None` for what is no integer or has no one size.
fn element_bytes(words: &[&str]) -> Option<usize> {
    let has = |names: &[&str]| words.iter().any(|word| names.contains(word));
    let longs = words.iter().filter(|word| **word == "long").count();
    if longs >= 2 || has(&["uint64_t", "int64_t", "u64", "__u64", "ulonglong"]) {
        Some(8)
    } else if longs == 1 || has(&["float", "double", "struct", "union", "void"]) {
        None
    } else if has(&["char", "uint8_t", "int8_t", "u8", "__u8", "BYTE", "u_char", "uchar", "byte", "GLubyte"])
    {
        Some(1)
    } else if has(&["short", "uint16_t", "int16_t", "u16", "__u16", "WORD", "ushort"]) {
        Some(2)
    } else if has(&[
        "int", "unsigned", "uint", "uint32_t", "int32_t", "u32", "__u32", "DWORD", "CARD32", "GLuint",
    ]) {
        Some(4)
    } else {
        None
    }
}

/// A C integer constant with any suffix of `u` and `l`.
pub(crate) fn integer(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(['u', 'U', 'l', 'L']).replace('\'', "");
    if let Some(hexadecimal) = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        u64::from_str_radix(hexadecimal, 16).ok()
    } else if let Some(octal) = digits.strip_prefix('0').filter(|rest| !rest.is_empty()) {
        u64::from_str_radix(octal, 8).ok()
    } else {
        digits.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CUBIN: &str = "architecture {sm_11}\ncode { name = k reg = 3 bincode { 0x10000001 } }\n";

    fn dump(kind: &str, name: &str, bytes: &[u8], width: usize) -> String {
        let mut elements = String::new();
        for part in bytes.chunks(width) {
            let mut value = [0; 8];
            value[..part.len()].copy_from_slice(part);
            elements += &format!("{:#x}, ", u64::from_le_bytes(value));
        }
        format!("static const {kind} {name}[] __attribute__((aligned(8))) = {{ {elements} }};\n")
    }

    #[test]
    fn the_bytes_of_every_width_are_recognised_again() {
        for (kind, width) in [
            ("unsigned char", 1),
            ("unsigned short", 2),
            ("unsigned int", 4),
            ("unsigned long long", 8),
            ("uint32_t", 4),
        ] {
            let image = load(&dump(kind, "k_cubin", CUBIN.as_bytes(), width)).unwrap();
            assert_eq!(image.programs[0].name.as_deref(), Some("k"), "{kind}");
            assert_eq!(image.chip.as_deref(), Some("sm_11"), "{kind}");
        }
    }

    #[test]
    fn several_arrays_are_several_programs() {
        let text = format!(
            "/* x[] = {{ */\n#define A[] \\\n = {{\nint table(int a[3]);\n{}const u32 vs[2] = {{ 1u, 0x2, }};\nu32 ps[][2] = {{ {{1, 2}}, {{3, 4}} }};\nconst float f[] = {{ 1.0 }};",
            dump("unsigned char", "c", CUBIN.as_bytes(), 1)
        );
        let image = load(&text).unwrap();
        let names: Vec<_> = image.programs.iter().map(|program| program.name.as_deref().unwrap()).collect();
        assert_eq!(names, ["k", "vs", "ps"]);
        assert_eq!(image.programs[1].words, [1, 2]);
        assert_eq!(image.programs[2].words, [1, 2, 3, 4]);
        assert_eq!(image.modules.len(), 3);
        assert_eq!(image.programs[2].module, 2);
        assert!(image.notes.iter().any(|note| note.contains("array f")), "{:?}", image.notes);
    }

    #[test]
    fn a_wrong_element_is_an_error_with_its_place() {
        for bad in ["256", "1.5", "foo", "0x"] {
            let error = load(&format!("unsigned char a[] = {{\n 1, {bad} }};")).unwrap_err();
            assert!(matches!(error, Error::Syntax { line: 2, column: 5, .. }), "{bad}: {error}");
        }
        assert!(matches!(load("unsigned long a[] = { 1 };"), Err(Error::Syntax { .. })));
        assert!(matches!(load("unsigned char a[1] = { 1, 2 };"), Err(Error::Syntax { .. })));
        assert!(matches!(load("unsigned char a[] = { 1, 2"), Err(Error::Syntax { .. })));
    }

    #[test]
    fn deep_nesting_is_an_error() {
        let text = format!("int a[] = {}", "{".repeat(100_000));
        assert!(matches!(load(&text), Err(Error::TooDeep { .. })));
    }

    #[test]
    fn a_declared_size_beyond_the_elements_allocates_nothing() {
        let image = load("u32 a[0xffffffff] = { 1 };").unwrap();
        assert_eq!(image.programs[0].words, [1]);
        assert_eq!(image.notes.len(), 1);
    }

    #[test]
    fn an_error_inside_an_array_names_the_array() {
        let error = load("unsigned char broken[] = { 0x7f, 'E' };").unwrap_err();
        assert!(matches!(error, Error::Syntax { .. }));
        let error = load("unsigned char broken[] = { 0x7f, 0x45, 0x4c, 0x46 };").unwrap_err();
        assert!(error.to_string().contains("`broken`"), "{error}");
    }
}
