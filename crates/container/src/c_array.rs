//! C and C++ sources that hold binaries in integer arrays, as `xxd -i`, `bin2c` and nvcc's fat binary stubs
//! write them: `unsigned char name[] = { 0x7f, 0x45, … };`.
//!
//! Only such arrays are read, nothing else of the language: comments, preprocessor lines and strings are
//! passed over. An element is an integer constant, or an expression of them (sums, shifts, casts and so on); an array
//! with other elements, such as macros, is passed over with a note. The bytes of each array are recognised again by
//! their content; those without a mark of their own are raw words. Arrays of 8, 16, 32 and 64-bit elements are taken
//! as little endian, unless the mark is there in the other order or [`Hints::endian`] says so.
//! `long` has no one size and is refused.

use std::ops::Range;
use std::sync::Arc;

use reconverge_isa::Image;
use reconverge_isa::program::{CodeAt, Digits, Numbers};

use crate::error::{Unread, counted, quoted};
use crate::{Endian, Error, Format, Hints, load_as, magic, merge, recognise_marked};

/// Braces inside an array's braces.
const DEEPEST: usize = 8;

/// Whether a text could be such a source: it has an array and braces.
pub(crate) fn looks_like(text: &str) -> bool {
    text.contains('[') && text.contains('{')
}

/// Reads all arrays of a source.
///
/// A program of raw words has its array's name. Arrays that hold neither a known container nor whole words, and those
/// that cannot be read, are passed over with a note.
pub fn load(text: &str, hints: &Hints) -> Result<Image, Error> {
    let mut image = Image { format: Format::CArray.name(), ..Image::default() };
    let mut reader = Reader { text, at: 0 };
    // The words since the last statement's end: the type and name of what is being declared.
    let mut words: Vec<&str> = Vec::new();
    let mut arrays = 0;
    let mut unread = Unread::default();
    while let Some(token) = reader.next() {
        match token.kind {
            Kind::Word if words.len() < 16 => words.push(token.text),
            Kind::Word => {}
            Kind::Mark if token.text == "[" && !words.is_empty() => {
                match reader.array(&words, token, &mut image.notes) {
                    Ok(Some(array)) => {
                        arrays += 1;
                        add(&mut image, array, hints).unwrap_or_else(|error| unread.push(error));
                    }
                    Ok(None) => {}
                    Err(Failure::Array(error)) => unread.push(error),
                    Err(Failure::Text(error)) => return Err(error),
                }
                words.clear();
            }
            Kind::Mark | Kind::Number | Kind::Literal => words.clear(),
        }
    }
    let found = counted(arrays, "integer array");
    let remedy = format!("found {found}, expected one such as `unsigned char name[] = {{ 0x7f, … }};`");
    unread.settle(&mut image, "an array with machine code", remedy)?;
    Ok(image)
}

/// What is wrong, and whether the arrays behind it can be read all the same.
enum Failure {
    /// This array only; the reader is behind it.
    Array(Error),
    /// The text has no end where one is needed.
    Text(Error),
}

struct Array<'a> {
    name: &'a str,
    start: usize,
    /// Bytes of an element.
    width: usize,
    values: Vec<u64>,
    /// Where they are spelled.
    numbers: Numbers,
}

impl Array<'_> {
    /// The bytes that the array has in the memory of a host of this byte order.
    fn bytes(&self, big_endian: bool) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.values.len() * self.width);
        for value in &self.values {
            push_element(&mut bytes, *value, self.width, big_endian);
        }
        bytes
    }
}

/// The bytes of an element.
pub(crate) fn push_element(bytes: &mut Vec<u8>, value: u64, width: usize, big_endian: bool) {
    let value = value.to_le_bytes();
    let element = &value[..width];
    match big_endian {
        false => bytes.extend(element),
        true => bytes.extend(element.iter().rev()),
    }
}

fn add(image: &mut Image, mut array: Array<'_>, hints: &Hints) -> Result<(), Error> {
    let Array { name, start, width, .. } = array;
    let in_member =
        |source| Error::Member { name: name.to_owned(), at: start as u64, source: Box::new(source) };
    let mut bytes = array.bytes(false);
    let mut format = recognise_marked(&bytes).map_err(in_member)?;
    if width > 1 && (format.is_none() || hints.endian == Some(Endian::Big)) {
        let other = array.bytes(true);
        let marked = recognise_marked(&other).unwrap_or(None);
        if marked.is_some() || (format.is_none() && hints.endian == Some(Endian::Big)) {
            (bytes, format, array.numbers.big_endian) = (other, marked, true);
        }
    }
    let member = match format {
        Some(format) => load_as(&bytes, format, hints).map_err(in_member)?,
        None if bytes.is_empty() || !bytes.len().is_multiple_of(4) || crate::as_text(&bytes).is_some() => {
            image
                .notes
                .push(format!("array {name} holds no known container and no words, and was passed over"));
            return Ok(());
        }
        None => {
            magic::refuse(&bytes).map_err(in_member)?;
            // The order of larger elements has been settled above.
            let endian = hints.endian.filter(|_| width == 1).unwrap_or(Endian::Little);
            let mut raw = crate::bin::load(&bytes, endian).map_err(in_member)?;
            for program in &mut raw.programs {
                program.name = Some(name.to_owned());
            }
            raw
        }
    };
    merge(image, hints, name, member, |place| {
        *place = CodeAt::Numbers(array.numbers.clone(), Box::new(std::mem::take(place)));
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
        Error::syntax(self.text, at, found, expected)
    }

    fn need(&mut self, expected: &str) -> Result<Token<'a>, Error> {
        self.next().ok_or_else(|| self.ends(expected))
    }

    /// Reads from behind the `[` of a declaration `words [` to the end of its initialiser, if it has one.
    fn array(
        &mut self,
        words: &[&'a str],
        bracket: Token<'a>,
        notes: &mut Vec<String>,
    ) -> Result<Option<Array<'a>>, Failure> {
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
        let brace = self.need("`{`").map_err(Failure::Text)?;
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
                return Err(Failure::Array(self.syntax(bracket.start, found, expected)));
            }
            notes.push(format!(
                "array {name}: type {} is no integer and was passed over",
                quoted(&types.join(" "))
            ));
            return Ok(None);
        };
        let (mut values, mut places) = (Vec::new(), Vec::new());
        let mut depth = 1;
        let mut wrong = None;
        while depth > 0 {
            let before = self.at;
            let token = self.need("`}`").map_err(Failure::Text)?;
            match (token.kind, token.text) {
                (Kind::Mark, "{") => {
                    depth += 1;
                    if depth > DEEPEST {
                        return Err(Failure::Text(Error::too_deep(self.text, token.start, DEEPEST)));
                    }
                }
                (Kind::Mark, "}") => depth -= 1,
                (Kind::Mark, ",") => {}
                // What follows is passed over token by token.
                _ if wrong.is_some() => {}
                _ => {
                    self.at = before;
                    match self.element(width) {
                        Ok((value, place)) => {
                            values.push(value);
                            places.push(place);
                        }
                        Err(error) => wrong = Some(error),
                    }
                }
            }
        }
        if let Some(error) = wrong {
            return Err(Failure::Array(error));
        }
        let elements = values.len() as u64;
        if let Some(declared) = declared.filter(|declared| dimensions == 1 && *declared != elements) {
            if declared < elements {
                let expected = format!("at most the {declared} elements that the array declares");
                let error = self.syntax(bracket.start, counted(values.len(), "element"), &expected);
                return Err(Failure::Array(error));
            }
            notes.push(format!(
                "array {name}: declares {declared} elements and gives {elements}; the zeros behind them are left out"
            ));
        }
        let places = Arc::new(places);
        let numbers = Numbers { start: 0, places, digits: Digits::C, width, big_endian: false };
        Ok(Some(Array { name, start: brace.start, width, values, numbers }))
    }

    /// An element's value, cut to its width, and its place.
    fn element(&mut self, width: usize) -> Result<(u64, Range<usize>), Error> {
        let first = self.peek().ok_or_else(|| self.ends("`}`"))?;
        let value = self.expression(0, 0)?;
        let place = first.start..self.at;
        match self.peek() {
            None => return Err(self.ends("`}`")),
            Some(Token { kind: Kind::Mark, text: "," | "}", .. }) => {}
            Some(other) => {
                return Err(self.syntax(other.start, quoted(other.text), "an operator, `,` or `}`"));
            }
        }
        let bits = 8 * width as u32;
        if !(-(1 << (bits - 1))..1 << bits).contains(&value.value) {
            let found = quoted(&self.text[place]);
            return Err(self.syntax(first.start, found, &format!("an integer of at most {bits} bits")));
        }
        Ok((value.value as u64 & (u64::MAX >> (64 - bits)), place))
    }

    fn peek(&self) -> Option<Token<'a>> {
        Reader { text: self.text, at: self.at }.next()
    }

    fn ends(&self, expected: &str) -> Error {
        self.syntax(self.text.len(), "the end of the text".to_owned(), expected)
    }

    /// A constant expression of operators that bind at least as strongly as `least`.
    fn expression(&mut self, least: u8, depth: usize) -> Result<Value, Error> {
        let mut left = self.operand(depth)?;
        loop {
            let before = self.at;
            let Some((operator, strength)) = self.operator().filter(|(_, strength)| *strength >= least)
            else {
                self.at = before;
                return Ok(left);
            };
            let right = self.expression(strength + 1, depth)?;
            left = left.with(operator, right).ok_or_else(|| {
                let expected = "a divisor other than 0, a shift by less than the operand's bits";
                self.syntax(before, quoted(&self.text[before..self.at]), expected)
            })?;
        }
    }

    /// The binary operator that is next, and how strongly it binds.
    fn operator(&mut self) -> Option<(&'a str, u8)> {
        let token = self.next().filter(|token| token.kind == Kind::Mark)?;
        let twice = || self.text[self.at..].starts_with(token.text);
        let found = match token.text {
            "|" if !twice() => ("|", 1),
            "^" => ("^", 2),
            "&" if !twice() => ("&", 3),
            "<" | ">" if twice() => (&self.text[token.start..=self.at], 4),
            "+" => ("+", 5),
            "-" => ("-", 5),
            "*" => ("*", 6),
            "/" => ("/", 6),
            "%" => ("%", 6),
            _ => return None,
        };
        self.at = token.start + found.0.len();
        Some(found)
    }

    /// A constant, with the operators before it, or an expression in parentheses.
    fn operand(&mut self, depth: usize) -> Result<Value, Error> {
        const EXPECTED: &str = "an integer constant, `,` or `}`";
        let token = self.need(EXPECTED)?;
        if depth > DEEPEST {
            return Err(Error::too_deep(self.text, token.start, DEEPEST));
        }
        let wrong = || self.syntax(token.start, quoted(token.text), EXPECTED);
        match (token.kind, token.text) {
            (Kind::Number, number) => Value::literal(number).ok_or_else(wrong),
            (Kind::Literal, text) => character(text).map(Value::int).ok_or_else(wrong),
            (Kind::Mark, "-") => Ok(self.operand(depth + 1)?.map(|value| -value)),
            (Kind::Mark, "+") => self.operand(depth + 1),
            (Kind::Mark, "~") => Ok(self.operand(depth + 1)?.map(|value| !value)),
            (Kind::Mark, "(") => {
                let mut types = Vec::new();
                let before = self.at;
                while let Some(word) = self.peek().filter(|token| token.kind == Kind::Word && types.len() < 8)
                {
                    types.push(word.text);
                    self.next();
                }
                let cast =
                    element_bytes(&types).filter(|_| self.peek().is_some_and(|token| token.text == ")"));
                if let Some(bytes) = cast {
                    self.next();
                    let unsigned =
                        types.iter().any(|word| word.starts_with(['u', 'U', 'B', 'D', 'W', 'G', '_', 'b']));
                    return Ok(self.operand(depth + 1)?.cast(8 * bytes as u32, unsigned));
                }
                self.at = before;
                let inner = self.expression(0, depth + 1)?;
                let close = self.need("`)`")?;
                match close.text {
                    ")" => Ok(inner),
                    other => Err(self.syntax(close.start, quoted(other), "an operator or `)`")),
                }
            }
            _ => Err(wrong()),
        }
    }
}

/// A value with its type, which decides how C computes with it.
#[derive(Clone, Copy)]
struct Value {
    value: i128,
    /// 32 or 64.
    bits: u32,
    unsigned: bool,
}

impl Value {
    fn int(value: u64) -> Value {
        Value { value: i128::from(value), bits: 32, unsigned: false }
    }

    fn literal(text: &str) -> Option<Value> {
        let value = integer(text)?;
        let suffix = text.trim_start_matches(|c: char| !matches!(c, 'u' | 'U' | 'l' | 'L'));
        let bits = if suffix.contains(['l', 'L']) || value > u64::from(u32::MAX) { 64 } else { 32 };
        // One that does not fit the signed type has the unsigned one.
        let unsigned = suffix.contains(['u', 'U']) || value >> (bits - 1) != 0;
        Some(Value { value: i128::from(value), bits, unsigned })
    }

    /// The value in the range of its type.
    fn wrapped(self) -> Value {
        let low = self.value & ((1 << self.bits) - 1);
        let negative = !self.unsigned && low >> (self.bits - 1) & 1 == 1;
        Value { value: if negative { low - (1 << self.bits) } else { low }, ..self }
    }

    fn map(self, change: impl Fn(i128) -> i128) -> Value {
        Value { value: change(self.value), ..self }.wrapped()
    }

    fn cast(self, bits: u32, unsigned: bool) -> Value {
        let cut = Value { bits, unsigned, ..self }.wrapped();
        // What is smaller than int becomes int when it is computed with.
        if bits < 32 { Value { bits: 32, unsigned: false, ..cut } } else { cut }
    }

    /// The result of a binary operator; none where C leaves it undefined.
    fn with(self, operator: &str, right: Value) -> Option<Value> {
        if let "<<" | ">>" = operator {
            let by = u32::try_from(right.value).ok().filter(|by| *by < self.bits)?;
            return Some(self.map(|value| if operator == "<<" { value << by } else { value >> by }));
        }
        let bits = self.bits.max(right.bits);
        let unsigned = [self, right].iter().any(|value| value.bits == bits && value.unsigned);
        let [a, b] = [self, right].map(|value| Value { bits, unsigned, ..value }.wrapped().value);
        let value = match operator {
            "|" => a | b,
            "^" => a ^ b,
            "&" => a & b,
            "+" => a + b,
            "-" => a - b,
            "*" => a.checked_mul(b)?,
            "/" => a.checked_div(b)?,
            "%" => a.checked_rem(b)?,
            _ => return None,
        };
        Some(Value { value, bits, unsigned }.wrapped())
    }
}

/// The value of an element's text, cut to its width.
pub(crate) fn constant(text: &str, width: usize) -> Option<u64> {
    let mut reader = Reader { text, at: 0 };
    let value = reader.expression(0, 0).ok()?.value;
    reader.peek().is_none().then_some(value as u64 & (u64::MAX >> (64 - 8 * width)))
}

/// The value of a character constant of one character.
fn character(text: &str) -> Option<u64> {
    let inner = text.strip_prefix('\'')?.strip_suffix('\'')?;
    let escaped = match inner.strip_prefix('\\') {
        Some("n") => 10,
        Some("t") => 9,
        Some("r") => 13,
        Some("a") => 7,
        Some("b") => 8,
        Some("f") => 12,
        Some("v") => 11,
        Some(digits) if digits.starts_with('x') => u64::from_str_radix(&digits[1..], 16).ok()?,
        Some(digits) if digits.starts_with(|c: char| c.is_digit(8)) => u64::from_str_radix(digits, 8).ok()?,
        Some(itself) => u64::from(*itself.as_bytes().first().filter(|_| itself.len() == 1)?),
        None => u64::from(*inner.as_bytes().first().filter(|_| inner.len() == 1)?),
    };
    Some(escaped)
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

    fn load(text: &str) -> Result<Image, Error> {
        super::load(text, &Hints::default())
    }

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
        let error = load("unsigned char broken[] = { 0x7f, E };").unwrap_err();
        assert!(matches!(error, Error::Syntax { .. }));
        let error = load("unsigned char broken[] = { 0x7f, 0x45, 0x4c, 0x46 };").unwrap_err();
        assert!(error.to_string().contains("`broken`"), "{error}");
    }

    fn words_of(elements: &str) -> Vec<u32> {
        let image = load(&format!("u32 a[] = {{ {elements}, 0x80000000 }};"));
        image.unwrap_or_else(|error| panic!("{elements}: {error}")).programs[0].words.clone()
    }

    #[test]
    fn an_expression_of_constants_is_computed_as_c_does() {
        for (element, expected) in [
            ("1 << 4 | 3", 0x13),
            ("(1 << 31)", 0x8000_0000),
            ("2 + 3 * 4 - 1", 13),
            ("(2 + 3) * 4 % 7", 6),
            ("~0u >> 1", 0x7fff_ffff),
            ("~0 >> 1", 0xffff_ffff),
            ("-1", 0xffff_ffff),
            ("0xffffffff << 4", 0xffff_fff0),
            ("(unsigned char)0x1ff", 0xff),
            ("(int8_t)0x80", 0xffff_ff80),
            ("(uint32_t)(0x12 << 8) ^ 0x34", 0x1234),
            ("0x10ull << 32 >> 32", 0x10),
            ("'A' | '\\n' << 8 | '\\x7f' << 16 | '\\0'", 0x007f_0a41),
            ("7 & ~2", 5),
            ("100 / 7", 14),
        ] {
            assert_eq!(words_of(element), [expected, 0x8000_0000], "{element}");
        }
        assert_eq!(words_of("1, (2), 1 + 2, +4"), [1, 2, 3, 4, 0x8000_0000]);
    }

    #[test]
    fn an_array_with_other_elements_is_named_and_does_not_hide_the_rest() {
        let text = "u32 a[] = { 1, MACRO(2, 3), { 4 } };\nu32 b[] = { 1 / 0 };\nu32 c[] = { 1 << 32 };\n\
                    u32 d[] = { 1 2 };\nu8 e[] = { 1 == 1, 2, 3, 4 };\nu32 good[] = { 5 };";
        let image = load(text).unwrap();
        assert_eq!(image.programs.len(), 1);
        assert_eq!(
            (image.programs[0].name.as_deref(), &image.programs[0].words[..]),
            (Some("good"), &[5][..])
        );
        let lines = ["line 1, column 16", "line 2", "line 3", "line 4", "line 5"];
        for (note, line) in image.notes.iter().zip(lines) {
            assert!(note.contains(line), "{note}");
        }
        assert_eq!(image.notes.len(), 5, "{:?}", image.notes);
        let error = load("u32 a[] = {\n 1,\n FOO };").unwrap_err();
        assert!(matches!(error, Error::Syntax { line: 3, column: 2, .. }), "{error}");
    }

    #[test]
    fn elements_in_big_endian_order_are_found_by_the_mark_or_by_the_hint() {
        let swap = |file: &[u8], width: usize| -> Vec<u8> {
            file.chunks(width)
                .flat_map(|part| part.iter().rev().copied().chain([0; 8]).take(width).collect::<Vec<_>>())
                .collect()
        };
        let padded = CUBIN.to_owned() + &" ".repeat(CUBIN.len().next_multiple_of(8) - CUBIN.len());
        for (kind, width) in [("unsigned short", 2), ("unsigned int", 4), ("unsigned long long", 8)] {
            let image = load(&dump(kind, "a", &swap(padded.as_bytes(), width), width)).unwrap();
            assert_eq!(image.programs[0].name.as_deref(), Some("k"), "{kind}");
        }
        let big = Hints { endian: Some(Endian::Big), ..Hints::default() };
        for text in ["u32 a[] = { 0x01000080 };", "u8 a[] = { 0x80, 0, 0, 1 };"] {
            assert_eq!(super::load(text, &big).unwrap().programs[0].words, [0x8000_0001], "{text}");
            let patched = crate::patch(text.as_bytes(), &big, 0, 0, &[0x8000_0002]).unwrap();
            assert_eq!(
                super::load(str::from_utf8(&patched).unwrap(), &big).unwrap().programs[0].words,
                [0x8000_0002]
            );
        }
        // A mark decides whatever the hint says.
        let image = super::load(&dump("unsigned int", "a", padded.as_bytes(), 4), &big).unwrap();
        assert_eq!(image.programs[0].name.as_deref(), Some("k"));
    }
}
