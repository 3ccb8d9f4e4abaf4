//! Unified diffs of the text formats, in the form that `diff -u` and `git format-patch` write. The reader reads the new
//! side of the diff. If [`Hints::old`] is set, the reader reads the old side instead.
//!
//! ```text
//! --- a/shaders.h
//! +++ b/shaders.h
//! @@ -1,3 +1,3 @@
//!  u32 ps[] = {
//! -    0x00000000, 0x94200688,
//! +    0x0000203c, 0x94200688,
//!  };
//! ```
//! Each file of a diff is read separately. The reader replaces the characters that belong to the diff itself by white
//! space. In place of the lines that the diff omits, the text has a character that marks a gap. So the reader does not
//! read an item across a gap.

use reconverge_isa::Image;

use crate::c::GAP;
use crate::error::{Unread, counted};
use crate::{Error, Format, Hints, load_as, merge, recognise};

/// Maximum number of files in a diff.
const MOST_FILES: usize = 1000;

/// Returns whether the text contains the names of two files and, after these names, a hunk.
pub(crate) fn looks_like(text: &str) -> bool {
    let mut before = "";
    let mut named = false;
    text.lines().any(|line| {
        let is_hunk = named && hunk(line).is_some();
        named = line.starts_with("+++ ") && before.starts_with("--- ");
        before = line;
        is_hunk
    })
}

/// The selected side of a changed file.
struct ChangedFile {
    name: String,
    /// Offset of the first `@@` line of the file, and number of lines before this line.
    start: usize,
    lines_before: usize,
    /// The text of the selected side. White space replaces all characters that are not part of this side.
    text: String,
}

/// Reads the new side of each file. If the hints select the old side, reads the old side instead.
pub fn load(text: &str, hints: &Hints) -> Result<Image, Error> {
    let files = files(text, hints.old)?;
    let mut image = Image { format: Format::Diff.name(), ..Image::default() };
    let mut unread = Unread::default();
    let (sides, other) = if hints.old {
        ("- lines and not + lines", "")
    } else {
        ("+ lines and not - lines", ", --old reads the others")
    };
    image.notes.push(format!("a diff: {sides} are read{other}"));
    if files.len() > MOST_FILES {
        image.notes.push(format!("only the first {} are read", counted(MOST_FILES, "file")));
    }
    for ChangedFile { name, start, lines_before, text } in files.into_iter().take(MOST_FILES) {
        if text.trim().is_empty() {
            image.notes.push(format!("{name}: this side of the diff is empty"));
            continue;
        }
        // The code adds empty lines before the text, so that the line numbers in errors are line numbers of the diff.
        let padded = "\n".repeat(lines_before) + &text;
        let result = recognise(padded.as_bytes()).and_then(|format| match format {
            Format::Diff => Err(Error::missing("a text", "a diff of a diff is not read")),
            format => load_as(padded.as_bytes(), format, hints),
        });
        match result {
            Ok(found) => merge(&mut image, hints, &name, found, |place| place.shift(start - lines_before)),
            Err(source) => unread.push(Error::Member { name, at: start as u64, source: Box::new(source) }),
        }
    }
    unread.settle(&mut image, "machine code", "the diff has no file that can be read".to_owned())?;
    Ok(image)
}

fn files(text: &str, old: bool) -> Result<Vec<ChangedFile>, Error> {
    let mut files: Vec<ChangedFile> = Vec::new();
    let mut names = ["", ""];
    // Number of remaining lines of the current hunk, on the old and on the new side.
    let mut left = [0_u32; 2];
    let mut start = 0;
    for (number, whole) in text.split_inclusive('\n').enumerate() {
        let line = whole.trim_end_matches(['\n', '\r']);
        let blank = |text: &mut String, from: usize| {
            text.extend(line.as_bytes()[from..].iter().map(|_| ' '));
            text.push_str(&whole[line.len()..]);
        };
        if left == [0, 0] {
            if let Some(name) = line.strip_prefix("--- ") {
                names[0] = name;
            } else if let Some(name) = line.strip_prefix("+++ ") {
                names[1] = name;
                let name = if old { names[0] } else { names[1] };
                // In a diff, a time may follow the name of a file.
                let name = name.split('\t').next().unwrap_or(name);
                let name = name.strip_prefix(["a/", "b/"][usize::from(!old)]).unwrap_or(name).to_owned();
                files.push(ChangedFile {
                    name,
                    start: start + whole.len(),
                    lines_before: number + 1,
                    text: String::new(),
                });
                start += whole.len();
                continue;
            } else if let Some(found) = hunk(line).filter(|_| !files.is_empty()) {
                left = [found.old.1, found.new.1];
                let first = if old { found.old.0 } else { found.new.0 };
                if let Some(file) = files.last_mut() {
                    let gap = if first > 1 { GAP } else { "" };
                    file.text.push_str(gap);
                    blank(&mut file.text, gap.len());
                }
                start += whole.len();
                continue;
            }
            if let Some(file) = files.last_mut() {
                blank(&mut file.text, 0);
            }
        } else if let Some(file) = files.last_mut() {
            let sides = match line.chars().next() {
                Some(' ' | '\t') | None => [1, 1],
                Some('-') => [1, 0],
                Some('+') => [0, 1],
                // "No newline at end of file"
                Some('\\') => [0, 0],
                Some(_) => {
                    return Err(Error::line(
                        number + 1,
                        line,
                        "a line of a diff, with a space, + or - in front",
                    ));
                }
            };
            for (left, of_line) in left.iter_mut().zip(sides) {
                let expected = "at most the number of lines that the @@ line states";
                *left = left.checked_sub(of_line).ok_or_else(|| Error::line(number + 1, line, expected))?;
            }
            match sides[usize::from(!old)] {
                0 => blank(&mut file.text, 0),
                _ if line.is_empty() => blank(&mut file.text, 0),
                _ => {
                    file.text.push(' ');
                    file.text.push_str(&whole[1..]);
                }
            }
        }
        start += whole.len();
    }
    match left {
        [0, 0] => Ok(files),
        _ => Err(Error::missing("the end of the diff", "its last @@ line states more lines than follow")),
    }
}

/// First line and number of lines of a hunk on both sides.
struct Hunk {
    old: (u32, u32),
    new: (u32, u32),
}

/// Reads `@@ -1,2 +3,4 @@`.
fn hunk(line: &str) -> Option<Hunk> {
    let (old, rest) = line.strip_prefix("@@ -")?.split_once(" +")?;
    let (new, _) = rest.split_once(" @@")?;
    let range = |text: &str| {
        let (first, count) = text.split_once(',').unwrap_or((text, "1"));
        Some((first.parse().ok()?, count.parse().ok()?))
    };
    Some(Hunk { old: range(old)?, new: range(new)? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::patch;

    const DIFF: &str = "From: someone\nSubject: a 1,2 change\n\n---\n a.h | 2 +-\n\ndiff --git a/a.h b/a.h\n--- a/a.h\n+++ b/a.h\n\
        @@ -1,5 +1,5 @@\n static const u32 ps[] = {\n-\t0x00000000, 0x94200688,\n+\t0x0000203c, 0x94200688,\n };\n\n \
        u32 vs[] = { 0x80000000 };\n--- a/b.h\t2020-01-01\n+++ b/b.h\t2020-01-02\n@@ -0,0 +1 @@\n+u32 ps[] = { 0x80000002 };\n\
        -- \n2.39.2\n";

    fn read(text: &str, old: bool) -> Result<Image, Error> {
        crate::load(text.as_bytes(), &Hints { old, ..Hints::default() })
    }

    fn words(image: &Image) -> Vec<(&str, &[u32])> {
        image
            .programs
            .iter()
            .map(|program| (program.name.as_deref().unwrap_or(""), &program.words[..]))
            .collect()
    }

    #[test]
    fn the_side_that_is_asked_for_is_read() {
        assert_eq!(recognise(DIFF.as_bytes()), Ok(Format::Diff));
        let new = read(DIFF, false).unwrap();
        let expected: [(&str, &[u32]); 3] =
            [("ps", &[0x203c, 0x9420_0688]), ("vs", &[1 << 31]), ("ps", &[0x8000_0002])];
        assert_eq!(words(&new), expected);
        assert!(new.notes[0].contains("+ lines") && new.notes[0].contains("--old"), "{:?}", new.notes);
        let old = read(DIFF, true).unwrap();
        assert_eq!(words(&old), [("ps", &[0, 0x9420_0688][..]), ("vs", &[1 << 31])]);
        assert!(
            old.notes[0].contains("- lines")
                && old.notes.contains(&"b.h: this side of the diff is empty".to_owned()),
            "{:?}",
            old.notes
        );
        for (hints, was, becomes) in [
            (Hints::default(), "+\t0x0000203c", "+\t0x0000203d"),
            (Hints { old: true, ..Hints::default() }, "-\t0x00000000", "-\t0x0000203d"),
        ] {
            let patched = patch(DIFF.as_bytes(), &hints, 0, 0, &[0x203d]).unwrap();
            assert_eq!(String::from_utf8(patched).unwrap(), DIFF.replace(was, becomes));
        }
    }

    #[test]
    fn nothing_reads_across_the_lines_that_a_diff_leaves_out() {
        let text = "--- a/a.h\n+++ b/a.h\n@@ -1,2 +1,3 @@\n u32 a[] = {\n  1, 2,\n+ 3,\n@@ -9,2 +10,2 @@ u32 a[] = {\n  8, 9\n };\n\
            @@ -20,2 +21,2 @@\n  8, 9\n };\n@@ -30 +31 @@\n u32 b[] = { 0x80000000 };\n";
        let image = read(text, false).unwrap();
        assert_eq!(words(&image), [("b", &[1 << 31][..])]);
        let notes = image.notes.join("\n");
        assert!(notes.contains("line 7, column 1") && notes.contains("line 12, column 2"), "{notes}");
        let listing = "--- a/a\n+++ b/a\n@@ -1,1 +1,1 @@\n-10004205 00000780\n+10004205 00000781\n@@ -3 +3 @@\n 00000001\n";
        assert!(read(listing, false).unwrap_err().to_string().contains("line 6"), "{listing}");
        let one = listing.split("@@ -3").next().unwrap();
        assert_eq!(words(&read(one, false).unwrap())[0].1, [0x1000_4205, 0x781]);
        assert_eq!(words(&read(one, true).unwrap())[0].1, [0x1000_4205, 0x780]);
    }

    #[test]
    fn a_diff_that_does_not_fit_its_numbers_is_an_error() {
        let with = |body: &str| {
            let text = format!("--- a/a.h\n+++ b/a.h\n@@ -1,1 +1,1 @@\n{body}");
            read(&text, false).map(|_| ()).unwrap_err().to_string()
        };
        assert!(with(" u32 a[] = {\n+ 1 };\n").contains("no file") || with("").contains("last @@ line"));
        assert!(with("-a\n-b\n+c\n").starts_with("line 5, "), "{}", with("-a\n-b\n+c\n"));
        assert!(with("u32 a[] = { 1 };\n").starts_with("line 4, "), "{}", with("u32 a[] = { 1 };\n"));
        assert!(with("-a\n").contains("last @@ line"));
    }
}
