//! Writes JSON text.

use std::fmt::{self, Display, Write};

/// A string whose `Display` output is a JSON string with quotation marks. `Display` does not allocate memory.
pub(crate) struct Quoted<'a>(pub(crate) &'a str);

impl Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        for c in self.0.chars() {
            match c {
                '"' | '\\' => write!(f, "\\{c}")?,
                c if c.is_control() => write!(f, "\\u{:04x}", u32::from(c))?,
                c => f.write_char(c)?,
            }
        }
        f.write_char('"')
    }
}

/// Returns a string as JSON, with its quotation marks.
pub(crate) fn string(text: &str) -> String {
    Quoted(text).to_string()
}

/// A JSON object that maps names to counts. Each entry is appended to a string as soon as the entry is added to the
/// object.
pub(crate) struct Object<'a> {
    out: &'a mut String,
    empty: bool,
}

impl Object<'_> {
    /// Begins an object. `before` is the text that precedes the object.
    pub(crate) fn new<'a>(out: &'a mut String, before: &str) -> Object<'a> {
        out.push_str(before);
        out.push('{');
        Object { out, empty: true }
    }

    /// Appends a name and its count.
    pub(crate) fn entry(&mut self, name: &str, count: u64) {
        let comma = if self.empty { "" } else { ", " };
        self.empty = false;
        // Writing to a string never fails.
        let _ = write!(self.out, "{comma}{}: {count}", Quoted(name));
    }

    /// Ends the object.
    pub(crate) fn end(self) {
        self.out.push('}');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotation_marks_and_control_characters_are_escaped() {
        assert_eq!(string("a \"b\"\\\n\u{85}é"), r#""a \"b\"\\\u000a\u0085é""#);
    }

    #[test]
    fn counts_are_an_object() {
        let counts = |entries: &[(&str, u64)]| {
            let mut text = String::new();
            let mut object = Object::new(&mut text, "");
            entries.iter().for_each(|(name, count)| object.entry(name, *count));
            object.end();
            text
        };
        assert_eq!(counts(&[("a", 1), ("b", 2)]), r#"{"a": 1, "b": 2}"#);
        assert_eq!(counts(&[]), "{}");
    }
}
