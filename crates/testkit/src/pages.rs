//! Pages of `docs/` that are generated from tables.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

/// Compares a page of `docs/` with the text that is generated for the page. If `UPDATE_DOCS` is set, writes the
/// generated text to the page before the comparison.
///
/// If `part` is `Some`, the generated text replaces only a part of the page: the lines between `<!-- part: … -->` and
/// the next `<!-- end -->`.
///
/// # Panics
/// Panics if the page and the generated text differ, or if the page does not have the part.
pub fn page_is_current(page: &str, part: Option<&str>, generated: &str) {
    // Tests run at the same time and may write parts of one page. So only one test at a time writes a page.
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _held = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let path = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs")).join(page);
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    let range = match part {
        None => 0..written.len(),
        Some(part) => part_of(&written, part).unwrap_or_else(|| panic!("docs/{page} has no part {part}")),
    };
    if std::env::var_os("UPDATE_DOCS").is_some() {
        let mut current = written;
        current.replace_range(range, generated);
        std::fs::write(&path, current).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    } else {
        assert!(written[range] == *generated, "docs/{page} is stale: run this test with UPDATE_DOCS=1");
    }
}

/// Returns the names and contents of the files that the readers of a page must save. The page contains each file after
/// "Save this as `NAME`:".
pub fn files_to_save(page: &str) -> Vec<(&str, &str)> {
    let saved = page.split("Save this as `").skip(1).filter_map(|from| {
        let (name, rest) = from.split_once("`:\n\n```text\n")?;
        Some((name, rest.split_once("```")?.0))
    });
    saved.collect()
}

/// Returns the range of the generated lines.
fn part_of(text: &str, part: &str) -> Option<std::ops::Range<usize>> {
    let marker = text.find(&format!("<!-- {part}:"))?;
    let start = marker + text[marker..].find('\n')? + 1;
    Some(start..start + text[start..].find("<!-- end -->")?)
}

#[cfg(test)]
mod tests {
    use super::{files_to_save, part_of};

    #[test]
    fn a_file_to_save_is_the_block_behind_its_name() {
        let page = "Save this as `a.s`:\n\n```text\n.isa r500\n```\n\nand `b`:\n\n```text\nx\n```\n";
        assert_eq!(files_to_save(page), [("a.s", ".isa r500\n")]);
    }

    #[test]
    fn a_part_lies_between_its_marker_and_the_next_end() {
        let text = "a\n<!-- one: x -->\n1\n<!-- end -->\n<!-- two: y -->\n2\n3\n<!-- end -->\n";
        assert_eq!(&text[part_of(text, "one").unwrap()], "1\n");
        assert_eq!(&text[part_of(text, "two").unwrap()], "2\n3\n");
        assert_eq!(part_of(text, "three"), None);
    }
}
