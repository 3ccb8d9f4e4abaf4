//! Text as JSON.

use std::fmt::Write;

/// A string as JSON, with its quotation marks.
pub(crate) fn string(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c.is_control() => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// Names with counts as a JSON object.
pub(crate) fn counts<'a>(counts: impl IntoIterator<Item = (&'a str, u64)>) -> String {
    let entries = counts.into_iter().map(|(name, count)| format!("{}: {count}", string(name)));
    format!("{{{}}}", entries.collect::<Vec<_>>().join(", "))
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
        assert_eq!(counts([("a", 1), ("b", 2)]), r#"{"a": 1, "b": 2}"#);
        assert_eq!(counts([]), "{}");
    }
}
