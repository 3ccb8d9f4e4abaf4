//! Messages about launch files.

use reconverge_isa::Span;
use reconverge_isa::source::proposed;
use reconverge_workbench::launch::{LaunchFile, LaunchFileError};

use crate::lines::LineStarts;
use crate::message::{Marker, MarkerLevel};

/// Returns whether a TOML or JSON text is a launch file. A launch file names a machine or a program.
pub fn is_launch(text: &str) -> bool {
    let names = ["isa", "program"];
    if let Some(inside) = text.trim_start().strip_prefix('{') {
        return match LaunchFile::fields(text) {
            Ok(fields) => names.iter().any(|name| fields.contains_key(*name)),
            // A JSON text may be incomplete because the user is still typing. An incomplete text counts as a launch
            // file if the first field of the text is in `names`.
            Err(_) => names.iter().any(|name| inside.trim_start().starts_with(&format!("\"{name}\""))),
        };
    }
    let begins =
        |line: &str, key: &str| line.strip_prefix(key).is_some_and(|rest| rest.trim_start().starts_with('='));
    let mut top = text.lines().map(str::trim).take_while(|line| !line.starts_with('['));
    top.any(|line| names.iter().any(|key| begins(line, key)))
}

/// Returns the messages about the text of a launch file. This function does not check the program that the launch file
/// names.
pub fn launch_markers(text: &str) -> Vec<Marker> {
    let Err(error) = LaunchFile::parse(text) else { return Vec::new() };
    let lines = LineStarts::new(text);
    let of_line = |number: usize| {
        let (start, end) = (lines.start(text, number), lines.end(text, number));
        Span::new(start, end.max(start))
    };
    let span = match &error {
        LaunchFileError::Toml { error, .. } => error.span().map(|span| Span::new(span.start, span.end)),
        LaunchFileError::Field { line, .. } => line.map(|line| of_line(line - 1)),
        LaunchFileError::Json(error) => Some(of_line(error.line().saturating_sub(1))),
        _ => None,
    };
    let message = match &error {
        LaunchFileError::Toml { error, .. } => error.message().to_owned(),
        error => error.to_string(),
    };
    // The line number is removed, because the marker's span already shows the line.
    let message = match message.strip_prefix("line ").and_then(|rest| rest.split_once(": ")) {
        Some((number, rest)) if number.bytes().all(|byte| byte.is_ascii_digit()) => rest.to_owned(),
        _ => message,
    };
    let span = span.filter(|span| text.get(span.start..span.end).is_some()).unwrap_or_else(|| of_line(0));
    let proposal = proposed(&message).map(str::to_owned);
    vec![Marker { span, level: MarkerLevel::Error, rule: None, message, related: Vec::new(), proposal }]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_field_is_marked_in_its_line() {
        let text = "isa = \"tesla\"\nblok = [8, 1, 1]\n";
        let markers = launch_markers(text);
        assert_eq!(&text[markers[0].span.start..markers[0].span.end], "blok = [8, 1, 1]");
        assert!(
            markers[0].message.starts_with("unknown key `blok`: did you mean `block`?"),
            "{}",
            markers[0].message
        );
        assert!(launch_markers("isa = \"tesla\"\n").is_empty());
        assert_eq!(launch_markers("isa = \n")[0].span.start / 7, 0);
        assert!(is_launch(text) && !is_launch("[package]\nname = \"x\"\n"));
    }

    #[test]
    fn json_is_a_launch_file_too() {
        let text = "{\n  \"isa\": \"tesla\",\n  \"blok\": [1],\n  \"program\": \"g.s\"\n}\n";
        let markers = launch_markers(text);
        assert_eq!(text[markers[0].span.start..markers[0].span.end].trim(), "\"blok\": [1],");
        let cut = "{\n  \"isa\": \"tesla\",\n";
        assert!(is_launch(text) && is_launch(cut) && !is_launch("{ \"name\": \"x\" }"));
        assert!(launch_markers(cut)[0].message.contains("not JSON"));
    }

    #[test]
    fn a_number_in_place_of_a_list_has_advice() {
        let markers = launch_markers("isa = \"tesla\"\nblock = 4\n");
        assert!(markers[0].message.contains("write `[4]`"), "{markers:?}");
    }
}
