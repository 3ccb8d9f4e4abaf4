//! Messages about unknown keys in launch files, campaign files and run manifests.
//!
//! Serde's message for an unknown field lists the known fields. [`complaint`] also suggests the known field with the
//! most similar name.

use std::path::Path;

use reconverge_isa::source::closest;

/// Rewrites a deserializer's message about an unknown field. The new message has the unknown key, the most similar
/// legal key, and all legal keys.
///
/// `more` has legal keys that the original message does not list. If the message is not about an unknown field, the
/// function returns the message unchanged.
pub fn complaint(message: &str, more: &[&str]) -> String {
    let message = message.trim_end();
    let Some((found, mut known, rest)) = unknown_field(message) else { return message.to_owned() };
    known.extend(more.iter().filter(|key| !known.contains(key)).copied().collect::<Vec<_>>());
    known.sort_unstable();
    let meant = closest(found, known.iter().copied());
    let meant = meant.map(|meant| format!("did you mean `{meant}`? ")).unwrap_or_default();
    let place = rest.trim().lines().next().filter(|line| line.starts_with("in `"));
    let place = place.map(|place| format!(" {place}")).unwrap_or_default();
    let keys = if known.is_empty() {
        "no keys are allowed here".to_owned()
    } else {
        format!("the keys are {}", known.join(", "))
    };
    format!("unknown key `{found}`{place}: {meant}{keys}")
}

/// Returns the unknown field in a message, the known fields that the message lists, and the text after this list.
fn unknown_field(message: &str) -> Option<(&str, Vec<&str>, &str)> {
    let start = message.find("unknown field `")? + "unknown field `".len();
    let (found, rest) = message[start..].split_once('`')?;
    let (list, after) = match rest.split_once('\n') {
        Some((list, after)) => (list, after),
        None => (rest, ""),
    };
    // Serde's message about an unknown field has one of three forms. The message has no list of known fields, or
    // `expected `a``, or `expected one of `a`, `b``.
    let known = list.split('`').skip(1).step_by(2).collect();
    Some((found, known, after))
}

/// Returns the line number, from 1, of the first `"key":` in a JSON text. Returns `None` if the whole text is one line,
/// because a line number does not help in this case.
pub fn json_line(text: &str, key: &str) -> Option<usize> {
    if !text.trim_end().contains('\n') {
        return None;
    }
    let quoted = format!("\"{key}\"");
    let is_key = |at: &usize| text[at + quoted.len()..].trim_start().starts_with(':');
    let at = text.match_indices(&quoted).map(|(at, _)| at).find(is_key)?;
    Some(text[..at].matches('\n').count() + 1)
}

/// Returns the unknown key that a message names.
pub fn unknown_key(message: &str) -> Option<&str> {
    Some(unknown_field(message)?.0)
}

/// Splits a message of the form `line 7: MESSAGE` or `line 7, KEY: MESSAGE`. Returns the line number and the text after
/// the line number.
pub fn line_of(message: &str) -> Option<(usize, &str)> {
    let rest = message.strip_prefix("line ")?;
    let end = rest.find(|letter: char| !letter.is_ascii_digit())?;
    let text = rest[end..].strip_prefix([':', ','])?;
    Some((rest[..end].parse().ok()?, text.trim_start()))
}

/// Returns a message with the name of its file. If the message begins with a line number, the result has the form
/// `FILE:LINE: MESSAGE`.
pub fn placed(file: &str, message: &str) -> String {
    match line_of(message) {
        Some((line, rest)) => format!("{file}:{line}: {rest}"),
        None => format!("{file}: {message}"),
    }
}

/// Returns a path without a leading `./`, for messages.
pub fn plain(path: &Path) -> &Path {
    path.strip_prefix(".").ok().filter(|rest| !rest.as_os_str().is_empty()).unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_key_is_named_with_the_one_that_was_meant_and_all_that_fit() {
        let message = "unknown field `gird`, expected one of `grid`, `block`\n";
        assert_eq!(
            complaint(message, &["isa", "program"]),
            "unknown key `gird`: did you mean `grid`? the keys are block, grid, isa, program"
        );
        let nested = complaint("unknown field `nonsense`, expected `domain`\nin `ctm`\n", &[]);
        assert_eq!(nested, "unknown key `nonsense` in `ctm`: the keys are domain");
        let none = complaint("unknown field `x`, there are no fields", &[]);
        assert_eq!(none, "unknown key `x`: no keys are allowed here");
        assert_eq!(complaint("invalid type: string\n", &[]), "invalid type: string");
    }

    #[test]
    fn a_message_that_begins_with_a_line_has_it_behind_the_name_of_the_file() {
        assert_eq!(placed("c.toml", "line 4, fuel: 0: no"), "c.toml:4: fuel: 0: no");
        assert_eq!(placed("c.toml", "line 12: no"), "c.toml:12: no");
        assert_eq!(placed("c.toml", "line of no number"), "c.toml: line of no number");
    }

    #[test]
    fn a_path_is_named_without_the_folder_in_which_it_is_anyway() {
        for (path, named) in
            [("./a/b.s", "a/b.s"), ("././b.s", "b.s"), (".", "."), ("../b.s", "../b.s"), ("/b.s", "/b.s")]
        {
            assert_eq!(plain(Path::new(path)), Path::new(named));
        }
    }

    #[test]
    fn the_line_of_a_json_key_is_that_of_the_key_and_not_of_a_value() {
        assert_eq!(json_line("{\"a\": \"b\",\n \"c\": 1,\n \"b\" : 2}", "b"), Some(3));
        assert_eq!(json_line("{\n}", "b"), None);
        assert_eq!(json_line("{\"b\": 1}", "b"), None);
    }
}
