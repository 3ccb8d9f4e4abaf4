//! The list of all encodings with chips and stages, section and exactness: `docs/coverage/tesla.md`.

use std::fmt::Write;

use reconverge_isa::row::{Part, Scope};
use reconverge_tesla::draft::Draft;
use reconverge_tesla::fidelity;
use reconverge_tesla::inst::{Chip, Stage};
use reconverge_tesla::table::{Row, TABLE, here};

/// Returns the text of `docs/coverage/tesla.md`: one table per form, one line per encoding.
pub(crate) fn coverage() -> String {
    let mut text = String::from(
        "# NVIDIA Tesla (G80 to GT21x): every instruction\n\n\
         Generated from the tables of `reconverge-tesla`. \
         *Text* is an example with the lowest operands. *Fidelity*: exact equals models that were compared with the \
         chips; specified is as documented; recommended means that documents are silent or contradict each other. \
         *Spare bits* of the first and second word belong to no part of the encoding; the machine ignores them. \
         Sections are those of docs/tesla.md.\n",
    );
    for (prefix, title) in [
        ("s.", "One word"),
        ("i.", "Two words with a 32-bit immediate"),
        ("l.", "Two words with predicate, `$c` output, exit and join"),
        ("c.", "Two words, control flow"),
    ] {
        let _ = write!(
            text,
            "\n## {title}\n\n| encoding | text | program types | chips | section | fidelity | spare bits |\n|---|---|---|---|---|---|---|\n"
        );
        for row in TABLE.rows().iter().filter(|row| row.id.starts_with(prefix)) {
            line(&mut text, row);
        }
    }
    text
}

fn line(text: &mut String, row: &Row) {
    let chips: Vec<Chip> = Chip::ALL
        .into_iter()
        .filter(|&chip| Stage::ALL.iter().any(|&stage| row.scope.admits(here(chip, stage))))
        .collect();
    let stages: Vec<Stage> = Stage::ALL
        .into_iter()
        .filter(|&stage| Chip::ALL.iter().any(|&chip| row.scope.admits(here(chip, stage))))
        .collect();
    // Compute programs have the most operands.
    let (Some(&chip), Some(&stage)) = (chips.last(), stages.last()) else { return };
    let (example, grade) = example(row, here(chip, stage));
    let names = |all: bool, names: Vec<&str>| if all { "all".to_owned() } else { names.join(" ") };
    let chips = names(chips.len() == Chip::ALL.len(), chips.into_iter().map(Chip::name).collect());
    let stages = names(stages.len() == Stage::ALL.len(), stages.into_iter().map(Stage::name).collect());
    let Row { id, source, .. } = row;
    let spare = match (row.unclaimed(), row.long) {
        (0, _) => String::new(),
        (bits, false) => format!("{bits:08x}"),
        (bits, true) => format!("{:08x} {:08x}", bits as u32, bits >> 32),
    };
    let _ = writeln!(text, "| {id} | `{example}` | {stages} | {chips} | {source} | {grade} | {spare} |");
}

/// Returns a text of the row and the grade of its operation. Every field has the first value that exists.
fn example(row: &Row, here: Scope) -> (String, &'static str) {
    let mut word = row.fixed | row.default & !row.mask;
    let mut text = String::new();
    if TABLE.print(word, here, None, &mut text).is_err() {
        let mut candidates = Vec::new();
        values(row.parts, &mut candidates);
        let works = |word: &u64| TABLE.print(*word, here, None, &mut String::new()).is_ok();
        let found = candidates.into_iter().map(|bits| word | bits & !row.mask).find(works);
        word = found.unwrap_or(word);
        // A row whose example cannot be printed has an empty text, which a test forbids.
        let _ = TABLE.print(word, here, None, &mut text);
    }
    let mut draft = Draft::default();
    let _ = TABLE.decode(word, here, &mut draft);
    (text, fidelity::of(&(row.meaning)(&draft)).1.name())
}

/// Finds the values of all words of some parts that exist.
fn values(parts: &[Part<Draft>], found: &mut Vec<u64>) {
    for part in parts {
        match part {
            Part::Word(words) => {
                let existing = words.texts.iter().enumerate().filter(|(_, text)| text.is_some());
                found.extend(existing.map(|(value, _)| words.field.put(value as u32)));
            }
            Part::Case(cases) => cases.cases.iter().for_each(|case| values(case.parts, found)),
            Part::Text(_)
            | Part::Open
            | Part::Close
            | Part::Number(_)
            | Part::Memory(_)
            | Part::Custom(_)
            | Part::Set(_) => {}
        }
    }
}
