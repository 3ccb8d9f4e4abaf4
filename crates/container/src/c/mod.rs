//! C and C++ sources that hold binaries. The binaries are strings, such as `"architecture {sm_10}\n" …`, or integer
//! arrays, such as `unsigned char name[] = { 0x7f, 0x45, … };`. `xxd -i`, `bin2c` and nvcc write such arrays.
//!
//! The reader reads only arrays and strings. [`preprocess`] evaluates `#if` groups and replaces macros. An element is
//! an integer constant or an expression of constants. An expression can contain sums, shifts, casts, and functions such
//! as `htonl`. The reader skips an array that has any other kind of element, such as an unknown macro. In this case, a
//! note names the array.
//!
//! The reader detects the format of each array and string from the bytes, as it detects the format of a file. The
//! header of a known format is called a *mark*. An array without a mark contains raw words. A string without a mark is
//! skipped. A list of numbers in braces inside the initialiser of a structure is also read as an array. If such a list
//! of numbers has a mark, the numbers are bytes. Otherwise, the numbers are 32-bit words. Arrays of 8, 16, 32 and
//! 64-bit elements are little endian, except in two cases: the mark is in big-endian order, or [`Hints::endian`] states
//! big endian. An array of `long` is rejected, because the size of this type differs between hosts.

mod assembly;
mod preprocess;
mod registers;
mod tokens;
mod value;

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use reconverge_isa::program::{CodeAt, Digits, Numbers};
use reconverge_isa::{Image, Isa, Span};

use self::preprocess::Tokens;
use self::registers::RegisterArray;
use self::tokens::{Kind, Lexer, Token, push_string};
use self::value::{Names, evaluate, integer_type};
pub(crate) use self::value::{constant, integer};
use crate::bytes::push_element;
use crate::error::{Unread, counted, quoted};
use crate::{Endian, Error, Format, Hints, load_as, magic, merge, recognise_marked};

/// Maximum nesting of braces inside an array's braces.
const DEEPEST: usize = 8;

/// Maximum number of tokens in an element. This number is also the maximum number of words in a declaration.
const MOST_TOKENS: usize = 1000;

/// A list with a number of at least this value contains code. Such a list is not a table.
const LEAST_WORD: u64 = 1 << 16;

/// A character that is not part of C. This character stands for lines that a text omits.
pub(crate) const GAP: &str = "@";

/// Returns whether a text is certainly a C source. This is the case if the text declares an integer array or a
/// structure with contents.
pub(crate) fn declares_array(text: &str) -> bool {
    let mut types: Vec<&str> = Vec::new();
    let mut brackets = false;
    let mut assigned = false;
    for token in Lexer::new(text) {
        let was_assigned = std::mem::replace(&mut assigned, token.is("="));
        match (token.kind, token.text) {
            (Kind::Mark, "{") if was_assigned && types.len() > 1 && types.contains(&"struct") => return true,
            (Kind::Mark, "[") => brackets = types.len() > 1,
            (Kind::Mark, "]" | "=") | (Kind::Directive, _) => {}
            (Kind::Word | Kind::Number, _) if brackets => {}
            (Kind::Word, word) if types.len() < MOST_TOKENS => types.push(word),
            (Kind::Mark, "{") if brackets && integer_type(&types).is_some() => return true,
            (Kind::String, _) if brackets && integer_type(&types).is_some_and(|kind| kind.bytes == 1) => {
                return true;
            }
            _ => {
                types.clear();
                brackets = false;
            }
        }
    }
    false
}

/// Returns whether a text could be a C source. A C source does not have another format, and contains braces. The text
/// also contains brackets, strings, statements or preprocessor lines.
pub(crate) fn looks_like(text: &str) -> bool {
    text.contains('{') && text.contains(['[', '"', ';'])
        || text.lines().any(|line| line.starts_with("#include"))
}

/// Reads all arrays and strings of a source.
///
/// A program of raw words has the name of the array that contains the words. If several arrays have the same name, the
/// line number of each array follows the name. Arrays that cannot be read are skipped with a note. Arrays that contain
/// neither a known container nor whole words are also skipped with a note.
pub fn load(text: &str, hints: &Hints) -> Result<Image, Error> {
    let mut reader = Reader {
        text,
        hints,
        tokens: Tokens::new(text, &hints.defines)?,
        image: Image { format: Format::C.name(), ..Image::default() },
        unread: Unread::default(),
        arrays: 0,
        strings: 0,
        room: text.len(),
        raw: Vec::new(),
        registers: Vec::new(),
    };
    reader.read()?;
    let Reader { tokens, mut image, unread, arrays, strings, raw, registers, .. } = reader;
    let found = format!("{} and {}", counted(arrays, "integer array"), counted(strings, "string"));
    let remedy = format!(
        "expected an array such as `unsigned char name[] = {{ 0x7f, … }};`, found {found} with contents"
    );
    registers::attach(&mut image, registers);
    tell_apart(&mut image, text, &raw);
    let notes = tokens.into_notes();
    unread.settle(&mut image, "an array with machine code", remedy).map_err(|error| match notes.first() {
        // The array is probably in the omitted `#if` group, so the error includes the note about the omitted group.
        Some(note) if matches!(error, Error::Missing { .. }) => {
            Error::missing("an array with machine code", note.clone())
        }
        _ => error,
    })?;
    image.notes.splice(0..0, notes);
    Ok(image)
}

/// Renames arrays that share a name. `raw` contains the index of each program of raw words, and the offset of the
/// program's name.
fn tell_apart(image: &mut Image, text: &str, raw: &[(usize, usize)]) {
    let mut uses: HashMap<String, usize> = HashMap::new();
    for name in image.programs.iter().filter_map(|program| program.name.as_ref()) {
        *uses.entry(name.clone()).or_default() += 1;
    }
    let mut taken: HashSet<String> = uses.keys().cloned().collect();
    uses.retain(|_, uses| *uses > 1);
    let several = uses.len();
    // From here on, each value of `uses` is a number that the code appends to the name of an array. The next array with
    // this name on the same line gets this number.
    uses.values_mut().for_each(|number| *number = 2);
    let (mut line, mut counted_to) = (1, 0);
    let mut first: Option<(String, String)> = None;
    for (program, at) in raw {
        line += text.get(counted_to..*at).unwrap_or("").matches('\n').count();
        counted_to = *at;
        let Some(program) = image.programs.get_mut(*program) else { continue };
        let Some(name) = &program.name else { continue };
        let Some(number) = uses.get_mut(name) else { continue };
        let mut new = format!("{name}:{line}");
        while !taken.insert(new.clone()) {
            new = format!("{name}:{line}.{number}");
            *number += 1;
        }
        first.get_or_insert_with(|| (name.clone(), new.clone()));
        program.name = Some(new);
    }
    if let Some((name, new)) = first {
        let names = counted(several, "name");
        image.notes.push(format!(
            "{names} of several arrays: the line of the array was added to the name of each program, such as {new} \
             for {name}"
        ));
    }
}

/// An error, and whether the reader can continue after the error.
enum Failure {
    /// Only this array is invalid. The reader has already skipped the array, so the reader can continue.
    Array(Error),
    /// The text after the error cannot be read.
    Text(Error),
}

/// Converts an error of the preprocessor. An error of the preprocessor affects all text after the error.
impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::Text(error)
    }
}

struct Array<'a> {
    name: &'a str,
    name_at: usize,
    start: usize,
    /// Size of an element in bytes.
    width: usize,
    values: Vec<u64>,
    /// Positions of the values in the text.
    numbers: Numbers,
}

impl Array<'_> {
    /// Returns the bytes of the array in the memory of a host with this byte order.
    fn bytes(&self, big_endian: bool) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.values.len() * self.width);
        for value in &self.values {
            push_element(&mut bytes, *value, self.width, big_endian);
        }
        bytes
    }
}

/// Numbers and strings in a pair of braces in the initialiser of a structure.
#[derive(Default)]
struct Fields<'a> {
    values: Vec<u64>,
    places: Vec<Range<usize>>,
    /// Whether strings or nested braces occur between the numbers.
    is_mixed: bool,
    /// The first element that is not an integer constant.
    wrong: Option<Error>,
    /// The first string, if the string is a single word.
    string: Option<&'a str>,
}

struct Reader<'a> {
    text: &'a str,
    hints: &'a Hints,
    tokens: Tokens<'a>,
    image: Image,
    unread: Unread,
    arrays: usize,
    strings: usize,
    /// Number of elements that may still be read. The initial number is the number of bytes of the text. The limit is
    /// needed because macros can expand to many elements.
    room: usize,
    /// One entry for each program of raw words: the index of the program, and the offset of the program's name.
    raw: Vec<(usize, usize)>,
    /// Arrays of registers.
    registers: Vec<RegisterArray>,
}

impl<'a> Reader<'a> {
    fn read(&mut self) -> Result<(), Error> {
        // Words since the end of the last statement. These words are the type and the name of the current declaration.
        let mut words: Vec<Token<'a>> = Vec::new();
        let mut name = None;
        // The last gap that was read. The code stores a gap only if a number that may be an element follows the gap,
        // with no brace between the gap and the number.
        let mut gap = None;
        let mut assigned = false;
        while let Some(token) = self.tokens.next()? {
            let was_assigned = std::mem::replace(&mut assigned, token.is("="));
            match token.kind {
                Kind::Mark if token.is("{") && was_assigned && !words.is_empty() => {
                    let name = words[words.len() - 1];
                    self.structure(name)?;
                    (gap, words) = (None, Vec::new());
                }
                Kind::Word if words.len() < MOST_TOKENS => words.push(token),
                Kind::Mark if token.is("*") && !words.is_empty() => words.push(token),
                Kind::Word | Kind::Directive => {}
                Kind::Mark if token.is("=") => {}
                Kind::Mark if token.is("[") && !words.is_empty() => {
                    name = words.last().copied();
                    gap = None;
                    match self.array(&words, token) {
                        Ok(Some(array)) => {
                            self.arrays += 1;
                            self.add(array).unwrap_or_else(|error| self.unread.push(error));
                        }
                        Ok(None) => {}
                        Err(Failure::Array(error)) => self.unread.push(error),
                        Err(Failure::Text(error)) => return Err(error),
                    }
                    // After a comma, another declarator with the same type follows.
                    match self.tokens.next()? {
                        Some(comma) if comma.is(",") => drop(words.pop()),
                        next => {
                            next.into_iter().for_each(|next| self.tokens.unread(next));
                            words.clear();
                        }
                    }
                }
                Kind::String => {
                    let name = words.last().copied().filter(|word| word.kind == Kind::Word).or(name);
                    self.string(token, name, None)?;
                    words.clear();
                }
                Kind::Number | Kind::Character | Kind::Mark => {
                    match token.text {
                        GAP => gap = Some((token, false)),
                        "}" => {
                            if let Some((_, true)) = gap {
                                let expected =
                                    "the beginning of the array (it is missing in the lines before)";
                                self.unread.push(token.wrong(self.text, expected));
                            }
                            gap = None;
                        }
                        "{" | ";" => gap = None,
                        _ if token.kind == Kind::Number => {
                            gap = gap.map(|(at, _)| (at, true));
                        }
                        _ => {}
                    }
                    words.clear();
                }
            }
        }
        Ok(())
    }

    fn need(&mut self, expected: &str) -> Result<Token<'a>, Error> {
        self.tokens.next()?.ok_or_else(|| self.end().wrong(self.text, expected))
    }

    /// Returns the end of the text as a token, for errors.
    fn end(&self) -> Token<'a> {
        let end = self.text.len();
        Token { kind: Kind::Mark, text: "the end of the text", start: end, end }
    }

    /// Reads a string and the adjacent strings, which C concatenates. If the contents have a mark, the function reads
    /// the contents as a file of the mark's format. If the contents have no mark and `raw` contains the offset of an
    /// array's name, the contents are raw words.
    fn string(&mut self, first: Token<'a>, name: Option<Token<'a>>, raw: Option<usize>) -> Result<(), Error> {
        let mut bytes = Vec::new();
        let mut result = push_string(self.text, &first, &mut bytes);
        while let Some(next) = self.tokens.next()? {
            if next.kind != Kind::String {
                self.tokens.unread(next);
                break;
            }
            result = result.and_then(|()| push_string(self.text, &next, &mut bytes));
        }
        if raw.is_none()
            && let Some((data, wrong)) = assembly::data(&bytes)
        {
            // If the data has no mark, the string may be another kind of `asm` statement whose numbers are operands. So
            // an invalid number is an error only in data with a mark.
            if let Some(number) = wrong.filter(|_| recognise_marked(&data) != Ok(None)) {
                let expected = "numbers that fit the width of their data directive";
                return Err(Error::syntax(self.text, first.start, quoted(&number), expected));
            }
            bytes = data;
        }
        if raw.is_none() && recognise_marked(&bytes) == Ok(None) {
            return Ok(());
        }
        let line = || Span::new(first.start, first.start).line_column(self.text).0;
        let name = name.map_or_else(|| format!("string of line {}", line()), |name| name.text.to_owned());
        let added = result.and_then(|()| self.add_string(&name, &first, bytes, raw));
        added.unwrap_or_else(|error| self.unread.push(error));
        Ok(())
    }

    fn add_string(
        &mut self,
        name: &str,
        first: &Token<'a>,
        bytes: Vec<u8>,
        raw: Option<usize>,
    ) -> Result<(), Error> {
        let in_member = |source| Error::Member {
            name: name.to_owned(),
            at: first.start as u64,
            source: Box::new(source),
        };
        let member = match (recognise_marked(&bytes).map_err(in_member)?, raw) {
            (Some(format), _) => load_as(&bytes, format, self.hints).map_err(in_member)?,
            (None, Some(at)) if is_code(&bytes) => {
                magic::refuse(&bytes).map_err(in_member)?;
                let endian = self.hints.endian.unwrap_or(Endian::Little);
                let words = named(crate::bin::load(&bytes, endian), name).map_err(in_member)?;
                self.raw.push((self.image.programs.len(), at));
                words
            }
            (None, _) => return Ok(()),
        };
        self.strings += 1;
        merge(&mut self.image, self.hints, name, member, |place| *place = CodeAt::Nowhere);
        Ok(())
    }

    fn add(&mut self, mut array: Array<'_>) -> Result<(), Error> {
        let Array { name, start, width, .. } = array;
        let hints = self.hints;
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
            None if !is_code(&bytes) => {
                let note = format!(
                    "array {name} was skipped: it contains neither a known container nor whole 32-bit words"
                );
                self.image.notes.push(note);
                return Ok(());
            }
            None if width == 4 && matches!(hints.isa, None | Some(Isa::R700)) => {
                let values: Vec<u32> = array.values.iter().map(|value| *value as u32).collect();
                if registers::looks_like(name, &values) {
                    let (name, after) = (name.to_owned(), self.image.programs.len());
                    self.registers.push(RegisterArray { name, after, values });
                    return Ok(());
                }
                self.words(&array, &bytes).map_err(in_member)?
            }
            None => self.words(&array, &bytes).map_err(in_member)?,
        };
        merge(&mut self.image, hints, name, member, |place| {
            *place = CodeAt::Numbers(array.numbers.clone(), Box::new(std::mem::take(place)));
        });
        Ok(())
    }

    /// Returns the raw words of an array as a program with the array's name.
    fn words(&mut self, array: &Array<'_>, bytes: &[u8]) -> Result<Image, Error> {
        magic::refuse(bytes)?;
        // If an element has more than one byte, the bytes of the element already have the right order.
        let endian = self.hints.endian.filter(|_| array.width == 1).unwrap_or(Endian::Little);
        let words = named(crate::bin::load(bytes, endian), array.name)?;
        self.raw.push((self.image.programs.len(), array.name_at));
        Ok(words)
    }

    /// Reads a declaration that starts with `words` and `[`. Reading starts after the `[` and ends at the end of the
    /// initialiser, if the declaration has an initialiser.
    fn array(&mut self, words: &[Token<'a>], bracket: Token<'a>) -> Result<Option<Array<'a>>, Failure> {
        let [types @ .., name] = words else { return Ok(None) };
        let mut types: Vec<&str> = types.iter().map(|word| word.text).collect();
        let mut kind = integer_type(&types);
        let mut literal = integer_type(&[name.text]).and(integer_type(&[&types[..], &[name.text]].concat()));
        let mut declared = Vec::new();
        let mut dimensions = 1;
        let mut depth = 1;
        // Attributes may follow the brackets. An initialiser starts with `= {`, or with `{` directly after the
        // brackets. In a compound literal, `(const u32[]){ … }`, the initialiser starts with the `{` after the closing
        // parenthesis. A compound literal has no name, so the name of the array is the name of the type.
        let mut closed = false;
        let first = loop {
            let Some(token) = self.tokens.next()? else { return Ok(None) };
            let was_closed = std::mem::take(&mut closed);
            match (token.kind, token.text) {
                (Kind::Mark, "[") => {
                    depth += 1;
                    dimensions += 1;
                }
                (Kind::Mark, "]") if depth > 0 => {
                    depth -= 1;
                    closed = depth == 0;
                }
                (Kind::Mark, ")") if was_closed && literal.is_some() => {
                    kind = literal.take();
                    types.push(name.text);
                    closed = true;
                }
                (Kind::Mark, "=") if depth == 0 => break self.need("`{`")?,
                (Kind::Mark, "{") if was_closed && !types.is_empty() => break token,
                (Kind::Mark, ";" | "{" | "}" | "," | GAP) if depth <= 0 => {
                    self.tokens.unread(token);
                    return Ok(None);
                }
                _ if depth == 1 && dimensions == 1 && declared.len() < MOST_TOKENS => declared.push(token),
                _ => {}
            }
        };
        if first.kind == Kind::String {
            let raw = kind.filter(|kind| kind.bytes == 1).map(|_| name.start);
            self.string(first, Some(*name), raw)?;
            return Ok(None);
        }
        if !first.is("{") {
            self.tokens.unread(first);
            return Ok(None);
        }
        let Some(kind) = kind else {
            let long = types.contains(&"long") && !types.contains(&"*");
            if !long && self.structure(*name)? {
                return Ok(None);
            }
            let spelled = quoted(&types.join(" "));
            if long {
                let expected = "a type of one size on every host, such as unsigned int or unsigned long long";
                return Err(Failure::Array(Error::syntax(self.text, bracket.start, spelled, expected)));
            }
            let remedy = match &types[..] {
                [.., name] if !types.contains(&"*") && !["float", "double"].contains(name) => {
                    format!("; -D {name}=uint32_t declares an integer type")
                }
                _ => String::new(),
            };
            let note =
                format!("array {}: type {spelled} is not a known integer and was skipped{remedy}", name.text);
            self.image.notes.push(note);
            return Ok(None);
        };
        self.tokens.inside = true;
        let elements = self.elements(kind.bytes);
        self.tokens.inside = false;
        let (values, places) = elements?;
        let names = Names::AreFunctions { big_endian: false };
        let declared = evaluate(self.text, &declared, bracket, names).ok().filter(|_| dimensions == 1);
        let elements = values.len() as i128;
        if let Some(declared) =
            declared.map(|declared| declared.value).filter(|declared| *declared != elements)
        {
            if declared < elements {
                let expected = format!("at most the {declared} elements that the array declares");
                let found = counted(values.len(), "element");
                return Err(Failure::Array(Error::syntax(self.text, bracket.start, found, expected)));
            }
            self.image.notes.push(format!(
                "array {}: {declared} elements are declared, but the initialiser has {elements}; the remaining zeros \
                 are omitted",
                name.text
            ));
        }
        let places = Arc::new(places);
        let numbers = Numbers { start: 0, places, digits: Digits::C, width: kind.bytes, big_endian: false };
        let (start, name_at) = (first.start, name.start);
        Ok(Some(Array { name: name.text, name_at, start, width: kind.bytes, values, numbers }))
    }

    /// Reads the initialiser of a structure or of an array of structures, starting after the opening brace. Each list
    /// of numbers in separate braces is added as an array. In the structure, a string may precede the list. If this
    /// string is a single word, the word is the name of the array. Otherwise, the name of the variable is the name of
    /// the array. Returns whether the function has added any array.
    fn structure(&mut self, variable: Token<'a>) -> Result<bool, Error> {
        let mut open = vec![Fields::default()];
        let mut element: Vec<Token<'a>> = Vec::new();
        let mut parentheses = 0_usize;
        let mut added = false;
        while let Some(fields) = open.last_mut() {
            let token = self.need("`}`")?;
            match (token.kind, token.text) {
                (Kind::Mark, "," | "}") if parentheses == 0 || token.is("}") => {
                    parentheses = 0;
                    if !element.is_empty() && !fields.is_mixed {
                        match self.element(&element, token, 8) {
                            Ok((value, place)) => {
                                fields.values.push(value);
                                fields.places.push(place);
                            }
                            Err(error) => drop(fields.wrong.get_or_insert(error)),
                        }
                    }
                    element.clear();
                    if token.is("}") {
                        let fields = open.pop().unwrap_or_default();
                        let string = open.iter().rev().find_map(|outer| outer.string);
                        added |= self.add_list(fields, string.unwrap_or(variable.text), variable.start);
                    }
                }
                (Kind::Mark, "{") => {
                    fields.is_mixed = true;
                    element.clear();
                    if open.len() == DEEPEST {
                        return Err(Error::too_deep(self.text, token.start, DEEPEST));
                    }
                    open.push(Fields::default());
                }
                (Kind::String, text) => {
                    let inside = text.trim_matches('"');
                    let is_word = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
                    if fields.string.is_none() && !inside.is_empty() && inside.chars().all(is_word) {
                        fields.string = Some(inside);
                    }
                    fields.is_mixed = true;
                    self.string(token, None, None)?;
                }
                (Kind::Mark, "=") => element.clear(),
                (Kind::Mark, GAP) => {
                    let expected = "all lines of the structure (lines are missing here)";
                    fields.wrong.get_or_insert_with(|| token.wrong(self.text, expected));
                }
                _ => {
                    parentheses += usize::from(token.is("("));
                    parentheses -= usize::from(token.is(")") && parentheses > 0);
                    element.push(token);
                    if element.len() > MOST_TOKENS {
                        return Err(token.wrong(self.text, "`,` or `}`"));
                    }
                }
            }
        }
        Ok(added)
    }

    /// If a list of numbers in a structure can contain machine code, the function adds the list as an array.
    fn add_list(&mut self, fields: Fields<'a>, name: &'a str, name_at: usize) -> bool {
        let Fields { values, places, is_mixed, wrong, .. } = fields;
        let most = values.iter().max().copied().unwrap_or(0);
        if let Some(error) = wrong.filter(|_| !is_mixed) {
            // A large value shows that the list contains code.
            if most >= LEAST_WORD {
                self.unread.push(error);
            }
            return false;
        }
        let width = if most < 1 << 8 { 1 } else { 4 };
        let Some(first) = places.first().filter(|_| !is_mixed && most <= u64::from(u32::MAX)) else {
            return false;
        };
        let start = first.start;
        let numbers =
            Numbers { start: 0, places: Arc::new(places), digits: Digits::C, width, big_endian: false };
        let array = Array { name, name_at, start, width, values, numbers };
        let has_mark = || matches!(recognise_marked(&array.bytes(false)), Ok(Some(_)));
        if most < LEAST_WORD && !has_mark() {
            return false;
        }
        self.arrays += 1;
        self.add(array).unwrap_or_else(|error| self.unread.push(error));
        true
    }

    /// Reads the elements of an initialiser, starting after the opening brace. Returns the elements and their
    /// positions.
    fn elements(&mut self, width: usize) -> Result<(Vec<u64>, Vec<Range<usize>>), Failure> {
        let (mut values, mut places) = (Vec::new(), Vec::new());
        let mut depth = 1;
        let mut wrong = None;
        let mut element: Vec<Token<'a>> = Vec::new();
        let mut parentheses = 0_usize;
        // `has_word`: the list contains a number of at least `LEAST_WORD`, so the list is not a table but code.
        // `unknown`: an element contains an unknown name.
        let (mut has_word, mut unknown) = (false, false);
        while depth > 0 {
            let token = self.need("`}`")?;
            match (token.kind, token.text) {
                (Kind::Mark, GAP) => {
                    let expected = "all lines of the array (lines are missing here)";
                    return Err(Failure::Array(token.wrong(self.text, expected)));
                }
                (Kind::Mark, "," | "}") if parentheses == 0 || token.is("}") => {
                    depth -= usize::from(token.is("}"));
                    parentheses = 0;
                    if wrong.is_none() && !element.is_empty() {
                        match self.element(&element, token, width) {
                            Ok((value, place)) => {
                                has_word |= width >= 4 && value >= LEAST_WORD;
                                values.push(value);
                                places.push(place);
                            }
                            Err(error) => {
                                unknown = element.iter().any(|token| token.kind == Kind::Word);
                                wrong = Some(error);
                            }
                        }
                    }
                    element.clear();
                }
                (Kind::Mark, "{") => {
                    depth += 1;
                    if depth > DEEPEST {
                        return Err(Failure::Text(Error::too_deep(self.text, token.start, DEEPEST)));
                    }
                    if let Some(before) = element.first() {
                        wrong.get_or_insert_with(|| {
                            before.wrong(self.text, "an integer constant before a `{`")
                        });
                    }
                }
                // After an error, the loop skips the tokens of the array one by one.
                _ if wrong.is_some() => {
                    let value = (token.kind == Kind::Number).then(|| constant(token.text, 8)).flatten();
                    has_word |= width >= 4 && value.is_some_and(|value| value >= LEAST_WORD);
                }
                _ => {
                    parentheses += usize::from(token.is("("));
                    parentheses -= usize::from(token.is(")") && parentheses > 0);
                    element.push(token);
                    if element.len() > MOST_TOKENS {
                        wrong = Some(token.wrong(self.text, "`,` or `}`"));
                    }
                }
            }
        }
        match wrong {
            None => Ok((values, places)),
            // The list contains code, so the unknown name is an error.
            Some(error) if has_word && unknown => Err(Failure::Text(error)),
            Some(error) => Err(Failure::Array(error)),
        }
    }

    /// Reads an element. Returns two values: the value of the element, truncated to the width of the element, and the
    /// position of the element.
    fn element(
        &mut self,
        tokens: &[Token<'a>],
        end: Token<'a>,
        width: usize,
    ) -> Result<(u64, Range<usize>), Error> {
        let (first, last) = (tokens[0], tokens[tokens.len() - 1]);
        let Some(room) = self.room.checked_sub(1) else {
            return Err(
                first.wrong(self.text, "macros that become at most as many elements as the text has bytes")
            );
        };
        self.room = room;
        let big_endian = self.hints.endian == Some(Endian::Big);
        let value = evaluate(self.text, tokens, end, Names::AreFunctions { big_endian })?;
        let place = first.start..last.end;
        let bits = 8 * width as u32;
        if !(-(1 << (bits - 1))..1 << bits).contains(&value.value) {
            let found = quoted(&self.text[place]);
            let expected = format!("an integer of at most {bits} bits");
            return Err(Error::syntax(self.text, first.start, found, expected));
        }
        Ok((value.value as u64 & (u64::MAX >> (64 - bits)), place))
    }
}

/// Returns whether bytes without a mark can be words of machine code.
fn is_code(bytes: &[u8]) -> bool {
    !bytes.is_empty() && bytes.len().is_multiple_of(4) && crate::as_text(bytes).is_none()
}

/// Names the program of an array's raw words after the array.
fn named(image: Result<Image, Error>, name: &str) -> Result<Image, Error> {
    let mut image = image?;
    for program in &mut image.programs {
        program.name = Some(name.to_owned());
    }
    Ok(image)
}

#[cfg(test)]
mod tests;
