//! Parsers for the parts that all instructions share: numbers, field values, braces.

use std::borrow::Cow;

use reconverge_isa::Field;
use reconverge_isa::source::{self, Cursor, Diagnostic, Span, suggest};
use reconverge_isa::word::{FieldValue, Kind, WordInfo};

use super::syntax;
use crate::inst::WORDS;
use crate::words::*;

/// A parsed value or an error.
pub(crate) type Parsed<T> = Result<T, Diagnostic>;

/// A line of the text. The three elements are the line number (from 1), the byte offset of the line's start, and the
/// line without comments.
pub(crate) type Line<'a> = (usize, usize, &'a str);

/// Returns the lines of a text.
pub(crate) fn lines(source: &str) -> impl Iterator<Item = Line<'_>> {
    (1..).zip(source::lines(source)).map(|(number, (at, line))| (number, at, line))
}

/// Maximum number of errors. After this number of errors, the parser skips the remaining text.
pub(crate) const MOST_ERRORS: usize = 20;

/// Calls the function `read` for each line. `read` parses one line. Returns the errors of all lines, up to
/// [`MOST_ERRORS`] errors.
pub(crate) fn each_line<'a>(
    lines: impl IntoIterator<Item = Line<'a>>,
    mut read: impl FnMut(usize, Cursor<'a>) -> Parsed<()>,
) -> Vec<Diagnostic> {
    let errors = lines.into_iter().filter_map(|(number, at, line)| read(number, Cursor::new(line, at)).err());
    errors.take(MOST_ERRORS).collect()
}

pub(crate) fn expected(
    cursor: &Cursor<'_>,
    message: impl Into<String>,
    fits: impl Into<String>,
) -> Diagnostic {
    let found = cursor.here();
    let label = if found.start == found.end { "the line ends here" } else { "" };
    Diagnostic::error(found, message).label(label).help(fits)
}

pub(crate) fn end(cursor: &Cursor<'_>) -> Parsed<()> {
    if cursor.at_end() {
        return Ok(());
    }
    let found = cursor.rest().trim();
    let span = Span::new(cursor.offset(), cursor.offset() + found.len());
    Err(Diagnostic::error(span, format!("`{found}` is not understood here")).help("the line should end here"))
}

pub(crate) fn number(cursor: &mut Cursor<'_>, what: &str, max: u64) -> Parsed<u64> {
    let at = cursor.clone();
    match cursor.number() {
        Some(value) if value <= max => Ok(value),
        Some(value) => Err(Diagnostic::error(at.here(), format!("{what} cannot be {value}"))
            .help(format!("expected 0 to {max}"))),
        None => Err(expected(cursor, format!("expected {what}"), format!("write a number from 0 to {max}"))),
    }
}

/// Parses a 32-bit number.
pub(crate) fn word(cursor: &mut Cursor<'_>, what: &str) -> Parsed<u32> {
    Ok(number(cursor, what, u64::from(u32::MAX))? as u32)
}

/// Parses the words of an instruction as numbers.
pub(crate) fn words<const N: usize>(cursor: &mut Cursor<'_>) -> Parsed<[u32; N]> {
    let mut words = [0; N];
    for word in &mut words {
        *word = self::word(cursor, "a 32-bit word")?;
    }
    Ok(words)
}

/// Parses a word. If the word is one of `names`, returns the index of the word in `names`. For any other word, `wrong`
/// returns the error message.
pub(crate) fn place<'n>(
    cursor: &mut Cursor<'_>,
    names: impl IntoIterator<Item = &'n str> + Clone,
    wrong: impl FnOnce(&str) -> String,
) -> Parsed<usize> {
    let at = cursor.here();
    let name = cursor.word();
    names
        .clone()
        .into_iter()
        .position(|known| known == name)
        .ok_or_else(|| Diagnostic::error(at, wrong(name)).help(suggest(name, names)))
}

/// Parses a value. The text gives the value by its name in the manual.
pub(super) fn value<T: FieldValue>(cursor: &mut Cursor<'_>, wrong: impl FnOnce(&str) -> String) -> Parsed<T> {
    let place = place(cursor, T::NAMES.iter().map(|name| name.text), wrong)?;
    match T::from_bits(T::NAMES[place].value, T::BITS) {
        Some(value) => Ok(value),
        None => unreachable!("a name has a value"),
    }
}

/// Parses the value of a field. The text gives the value by its name in the manual.
pub(crate) fn field(
    cursor: &mut Cursor<'_>,
    format: &WordInfo,
    wrong: impl FnOnce(&str) -> String,
) -> Parsed<&'static Field> {
    let at = cursor.here();
    let name = cursor.word();
    format.field(name).ok_or_else(|| {
        Diagnostic::error(at, wrong(name)).help(suggest(name, format.fields.iter().map(|field| field.name)))
    })
}

pub(super) fn signed(cursor: &mut Cursor<'_>, what: &str, min: i64, max: i64) -> Parsed<i64> {
    let start = cursor.offset();
    let negative = cursor.eat("-");
    let value = cursor.number().and_then(|value| i64::try_from(value).ok());
    let value = value.map(|value| if negative { -value } else { value });
    value.filter(|value| (min..=max).contains(value)).ok_or_else(|| {
        Diagnostic::error(cursor.since(start), format!("expected {what}"))
            .help(format!("expected {min} to {max}"))
    })
}

/// Parses a vector of four floats. The text gives each float as a number or as its bits.
pub(crate) fn vector(cursor: &mut Cursor<'_>) -> Parsed<[u32; 4]> {
    let mut value = [0; 4];
    for channel in &mut value {
        *channel = float(cursor)?;
    }
    Ok(value)
}

/// Parses a float. In the text, the float is a number or the bits of the float (`0x…`).
fn float(cursor: &mut Cursor<'_>) -> Parsed<u32> {
    let start = cursor.offset();
    let text = cursor.token().trim_end_matches(',');
    let bits = match text.strip_prefix("0x") {
        Some(_) => source::parse_number(text).and_then(|bits| u32::try_from(bits).ok()),
        None => text.parse::<f32>().ok().map(f32::to_bits),
    };
    bits.ok_or_else(|| {
        Diagnostic::error(cursor.since(start), format!("`{text}` is not a number"))
            .help("expected four floats (1.5) or 32-bit patterns (0x3f800000)")
    })
}

pub(crate) fn assigned_field(cursor: &mut Cursor<'_>, field: &'static Field, raw: u32) -> Parsed<u32> {
    if cursor.eat("=") {
        return Ok(field.set(raw, field_value(cursor, field)?));
    }
    if field.kind == Kind::Flag {
        return Ok(field.set(raw, 1));
    }
    let name = field.name.to_ascii_uppercase();
    Err(expected(cursor, format!("{name} needs a value"), format!("write {name}=VALUE")))
}

/// Parses the value of a state register. The text gives the value as a number or as fields.
pub(super) fn state_value(
    cursor: &mut Cursor<'_>,
    name: &str,
    format: Option<&'static WordInfo>,
) -> Parsed<u32> {
    if cursor.peek().is_some_and(|c| c.is_ascii_digit()) {
        return word(cursor, "a 32-bit word");
    }
    let (mut raw, Some(format)) = (0, format) else { return Ok(0) };
    while !cursor.at_end() {
        let field = field(cursor, format, |field| format!("{name} has no field `{field}`"))?;
        raw = assigned_field(cursor, field, raw)?;
    }
    Ok(raw)
}

pub(super) fn field_value(cursor: &mut Cursor<'_>, field: &'static Field) -> Parsed<u32> {
    let at = cursor.clone();
    let start = cursor.offset();
    if field.kind == Kind::Signed && cursor.eat("-") {
        let value = cursor.number().unwrap_or(u64::MAX);
        return match i64::try_from(value) {
            Ok(value) if value <= i64::from(field.max() / 2) + 1 => Ok((-value) as u32 & field.max()),
            _ => Err(Diagnostic::error(cursor.since(start), "the number does not fit the field")),
        };
    }
    let word = cursor.word();
    let value = field
        .value_of(word)
        .or_else(|| source::parse_number(word).and_then(|value| u32::try_from(value).ok()));
    match value {
        Some(value) if value <= field.max() => Ok(value),
        Some(value) => Err(Diagnostic::error(
            at.here(),
            format!("{} cannot be {value}", field.name.to_ascii_uppercase()),
        )
        .help(format!("expected 0 to {}", field.max()))),
        None => {
            let names = field.names.iter().map(|name| name.text).collect::<Vec<_>>();
            let help = if names.is_empty() {
                format!("expected a number from 0 to {}", field.max())
            } else {
                suggest(word, names)
            };
            Err(Diagnostic::error(
                at.here(),
                format!("unknown value `{word}` for {}", field.name.to_ascii_uppercase()),
            )
            .help(help))
        }
    }
}

/// Parses text in braces, which sets fields of any word by name: `{NAME NAME=value -NAME WORD|=bits}`.
pub(super) fn braces(cursor: &mut Cursor<'_>, kind: InstType, words: &mut [u32; WORDS]) -> Parsed<()> {
    if !cursor.eat("{") {
        return Ok(());
    }
    let formats = layout(kind);
    loop {
        if cursor.eat("}") {
            return Ok(());
        }
        let at = cursor.clone();
        let start = cursor.offset();
        let off = cursor.eat("-");
        let text = cursor.skip_space().rest();
        let (word, dot) = (cursor.word(), cursor.eat("."));
        if word.is_empty() {
            return Err(expected(cursor, "expected a field or `}`", "fields go between braces: {NOP LAST}"));
        }
        let field = if dot { cursor.word() } else { "" };
        // Usually, there is no space around the dot. In this case, the code uses the text without a copy.
        let whole = &text[..text.len() - cursor.rest().len()];
        let name = match whole.len() == word.len() + usize::from(dot) + field.len() {
            true => Cow::Borrowed(whole),
            false => Cow::Owned(format!("{word}.{field}")),
        };
        if cursor.eat("|=") {
            let word = (0..WORDS).find(|word| syntax::word_name(&formats[*word], *word) == name);
            let Some(word) = word else {
                let names = [0, 1, 2, 3, 4, 5].map(|word| syntax::word_name(&formats[word], word));
                let names = names.each_ref().map(String::as_str);
                return Err(Diagnostic::error(at.here(), format!("{kind} has no word `{name}`"))
                    .help(suggest(&name, names)));
            };
            words[word] |= self::word(cursor, "the bits to set")?;
            continue;
        }
        let Some((word, field)) = syntax::field(kind, &name) else {
            let names =
                formats.iter().flat_map(|info| info.fields).map(|field| field.name).collect::<Vec<_>>();
            return Err(Diagnostic::error(cursor.since(start), format!("{kind} has no field `{name}`"))
                .help(suggest(&name, names)));
        };
        words[word] =
            if off { field.set(words[word], 0) } else { assigned_field(cursor, field, words[word])? };
    }
}

pub(super) fn set(words: &mut [u32; WORDS], kind: InstType, name: &str, value: u32) {
    match syntax::field(kind, name) {
        Some((word, field)) => words[word] = field.set(words[word], value),
        None => unreachable!("{kind} has a field {name}"),
    }
}

/// Parses a sign that must be present. `fits` is a note for the error message.
pub(crate) fn sign(cursor: &mut Cursor<'_>, sign: &str, fits: impl Into<String>) -> Parsed<()> {
    if cursor.eat(sign) { Ok(()) } else { Err(expected(cursor, format!("expected `{sign}`"), fits)) }
}

pub(crate) fn equals(cursor: &mut Cursor<'_>) -> Parsed<()> {
    sign(cursor, "=", "expected =")
}
