//! Reads Python literals in the attributes of piglit's profiles. A literal is a string, or a list, tuple or set of
//! strings.

/// Returns the value of a string literal such as `'ARBvp1.0'`. Returns `None` if the text is not a string literal.
pub(super) fn string(text: &str) -> Option<String> {
    let (string, rest) = quoted(text.trim())?;
    rest.trim().is_empty().then_some(string)
}

/// Returns the strings in a list literal such as `['glslparsertest', "a'b"]`. Returns `None` if the text is not a list
/// literal. For Python's `None`, the list is empty.
pub(super) fn strings(text: &str) -> Option<Vec<String>> {
    let text = text.trim();
    if text == "None" {
        return Some(Vec::new());
    }
    let (open, close) =
        [('[', ']'), ('(', ')'), ('{', '}')].into_iter().find(|(open, _)| text.starts_with(*open))?;
    let mut rest = text.strip_prefix(open)?.strip_suffix(close)?.trim_start();
    let mut strings = Vec::new();
    while !rest.is_empty() {
        let (string, after) = quoted(rest)?;
        strings.push(string);
        let after = after.trim_start();
        rest = match after.strip_prefix(',') {
            Some(next) => next.trim_start(),
            None if after.is_empty() => after,
            None => return None,
        };
    }
    Some(strings)
}

/// Returns the value of the string literal at the start of a text. Also returns the text after the literal.
fn quoted(text: &str) -> Option<(String, &str)> {
    let quote = text.chars().next().filter(|first| matches!(first, '\'' | '"'))?;
    let mut characters = text[1..].chars();
    let mut string = String::new();
    loop {
        match characters.next()? {
            '\\' => escaped(&mut characters, &mut string)?,
            end if end == quote => return Some((string, characters.as_str())),
            other => string.push(other),
        }
    }
}

/// Adds the character that an escape sequence represents. The text starts after the backslash. As in Python, an unknown
/// escape sequence stays in the string, with the backslash.
fn escaped(characters: &mut std::str::Chars<'_>, string: &mut String) -> Option<()> {
    match characters.next()? {
        known @ ('\\' | '\'' | '"') => string.push(known),
        'n' => string.push('\n'),
        'r' => string.push('\r'),
        't' => string.push('\t'),
        'x' => string.push(numbered(characters, 2)?),
        'u' => string.push(numbered(characters, 4)?),
        other => string.extend(['\\', other]),
    }
    Some(())
}

/// Reads the digits of an escape sequence. Returns the character with the code point that these digits state.
fn numbered(characters: &mut std::str::Chars<'_>, digits: usize) -> Option<char> {
    let rest = characters.as_str();
    let number = u32::from_str_radix(rest.get(..digits)?, 16).ok()?;
    *characters = rest[digits..].chars();
    char::from_u32(number)
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn lists_have_their_strings() {
        let list = |text| strings(text).unwrap();
        assert_eq!(list("['shader_runner', 'a b.shader_test']"), ["shader_runner", "a b.shader_test"]);
        assert_eq!(list(r#"["it's", 'a, b', "\"", 'é\x41\u0042\d']"#), ["it's", "a, b", "\"", "éAB\\d"]);
        assert_eq!(list("('glx',)"), ["glx"]);
        assert_eq!(list("{'GL_A', 'GL_B'}"), ["GL_A", "GL_B"]);
        assert!(list("[]").is_empty() && list(" None ").is_empty());
        assert_eq!(string("'ARBvp1.0'").unwrap(), "ARBvp1.0");
    }

    #[test]
    fn other_texts_are_refused() {
        for text in
            ["", "a", "['a'", "['a' 'b']", "['a', 1]", "['a\\", "['\\x4']", "['\\xé1']", "['a']]", "[\"]"]
        {
            assert_eq!(strings(text), None, "{text}");
        }
        assert_eq!((string("'a' b"), string("a")), (None, None));
    }
}
