//! Every citation has a target: a document and page that a machine's page lists, or a heading or row that exists.
//!
//! | form | leads to |
//! |---|---|
//! | `r500.md 5.4`, `docs/tesla.md, section 9.3`, `r500.md Q14` | a numbered heading of that page, or the table row that begins with it |
//! | `D5` in R700's comments, `(6.7)` and `Open (13.9)` in Tesla's | the same in the machine's own page |
//! | `MAN p. 53`, `CTM guide pp. 35-37`, `MAN chapter 4`, `MAN 3.6.3` | a document in the page's table, within its pages and chapters |
//! | a link, a path such as `docs/testing.md` or `crates/r500/src/flow.rs` | a file, and the heading in it that follows `#` |
//! | `Flow::kill`, `barrier.rs` in a machine's page | an item or a file of the machine's crate |

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use regex_lite::Regex;

const MACHINES: [&str; 3] = ["r500", "r700", "tesla"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns the files of a folder that have one of these extensions. Includes subfolders, except for the root folder.
fn files(folder: &str, extensions: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(root().join(folder)).expect("a folder").flatten() {
        let name = entry.file_name().into_string().expect("a name in UTF-8");
        let path = if folder == "." { name } else { format!("{folder}/{name}") };
        if entry.path().is_dir() {
            if folder != "." {
                found.extend(files(&path, extensions));
            }
        } else if extensions.iter().any(|extension| path.ends_with(&format!(".{extension}"))) {
            found.push(path);
        }
    }
    found.sort();
    found
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn regex(pattern: &str) -> Regex {
    Regex::new(pattern).expect("a regular expression")
}

fn number(digits: &str) -> u32 {
    digits.trim().parse().expect("digits")
}

/// A heading or row of a page: `5.4`, `D5`, `Appendix A`.
const PLACE: &str = r"(?:[DEQ]?\d{1,2}(?:\.\d{1,2})?|Appendix [A-Z])";

/// Returns the pattern of a list: `2.1 to 2.4`, `D6, D8`, `Q22-Q25`.
fn list() -> String {
    format!("{PLACE}(?:(?:, | and | to |-){PLACE})*")
}

/// Returns the headings or rows that a list names.
fn places(list: &str) -> Vec<String> {
    let item = regex(&format!("(to |-)?({PLACE})"));
    let split = |place: &str| {
        let digits = place.rfind(|letter: char| !letter.is_ascii_digit()).map_or(0, |at| at + 1);
        (place[..digits].to_owned(), place[digits..].parse::<u32>().ok())
    };
    let mut found: Vec<String> = Vec::new();
    for item in item.captures_iter(list) {
        if let (Some(_), Some(first)) = (item.get(1), found.last())
            && let ((stem, Some(first)), (same, Some(last))) = (split(first), split(&item[2]))
            && same == stem
        {
            found.extend((first + 1..last).map(|between| format!("{stem}{between}")));
        }
        found.push(item[2].to_owned());
    }
    found
}

/// A document in the table of a machine's page.
struct Document {
    pages: Option<RangeInclusive<u32>>,
    missing: BTreeSet<u32>,
    chapters: BTreeSet<u32>,
}

impl Document {
    /// Reads a cell such as "PDF page, 1 to 392; chapters 2 formats, 3 control flow".
    fn read(cited_by: &str) -> Document {
        let pages = regex(r"page, (\d+) to (\d+)");
        let chapters = cited_by.split_once("chapters ").map_or("", |(_, chapters)| chapters);
        Document {
            pages: pages.captures(cited_by).map(|found| number(&found[1])..=number(&found[2])),
            missing: BTreeSet::new(),
            chapters: regex(r"\d+").find_iter(chapters).map(|found| number(found.as_str())).collect(),
        }
    }

    /// Returns the first of these pages that cannot be cited. Pages inside a range may be missing.
    fn lacks(&self, pages: &str) -> Option<u32> {
        let known = self.pages.clone()?;
        let named = regex(r"\d+").find_iter(pages).map(|found| number(found.as_str())).collect::<Vec<_>>();
        named.into_iter().find(|page| !known.contains(page) || self.missing.contains(page))
    }
}

/// The headings, rows and documents of a page in `docs/` that can be cited.
#[derive(Default)]
struct Page {
    places: BTreeSet<String>,
    anchors: BTreeSet<String>,
    documents: BTreeMap<String, Document>,
}

impl Page {
    fn read(text: &str) -> Page {
        let mut page = Page::default();
        let (heading, numbered) = (regex("^#+ (.*)$"), regex(&format!(r"^({PLACE})\b")));
        let row = regex(&format!(r"^\| ({}) \|", list()));
        let document = regex(r"^\| ([^|]+) \| [^|]+ \| (.*) \|$");
        let mut section = String::new();
        for line in text.lines() {
            if let Some(title) = heading.captures(line) {
                section = title[1].to_owned();
                page.places.extend(numbered.captures(&section).map(|number| number[1].to_owned()));
                let kept =
                    section.chars().filter(|letter| letter.is_alphanumeric() || " -_".contains(*letter));
                page.anchors.insert(kept.collect::<String>().to_lowercase().replace(' ', "-"));
            } else if let Some(label) = row.captures(line) {
                page.places.extend(places(&label[1]));
            } else if section == "Documents"
                && let Some(columns) = document.captures(line)
            {
                page.documents.insert(columns[1].to_owned(), Document::read(&columns[2]));
            }
        }
        let missing = regex(r"Pages ([-\d, ]+) and (\d+) on of the (.+?) were not +available");
        if let Some(found) = missing.captures(&text.replace('\n', " ")) {
            let document = page.documents.get_mut(&found[3]).expect("a listed document");
            let pages = |range: &str| {
                let (first, last) = range.split_once('-').unwrap_or((range, range));
                number(first)..=number(last)
            };
            document.missing = found[1].split(", ").flat_map(pages).collect();
            assert_eq!(document.pages.as_ref().map(|pages| pages.end() + 1), found[2].parse().ok());
        }
        page
    }
}

/// Returns the comment of a line of Rust, or all of a line in other files.
fn said<'a>(path: &str, line: &'a str) -> &'a str {
    match path.ends_with(".rs") {
        true => line.split_once("//").map_or("", |(_, comment)| comment.trim_start_matches(['/', '!'])),
        false => line,
    }
}

/// Returns the machine whose documents a file cites.
fn machine_of(path: &str) -> Option<&'static str> {
    if path.ends_with("ctm_elf.rs") || path.ends_with("ctm-elf.md") {
        return Some("r500");
    }
    MACHINES.into_iter().find(|machine| {
        path.starts_with(&format!("crates/{machine}/"))
            || path.starts_with("docs/") && path.ends_with(&format!("/{machine}.md"))
    })
}

/// The patterns of citations.
struct Forms {
    page: Regex,
    document: Regex,
    bare_page: Regex,
    rule: Regex,
    section: Regex,
    unlisted: Regex,
}

impl Forms {
    fn new() -> Forms {
        let list = list();
        Forms {
            page: regex(&format!(r"\b([a-z][a-z0-9-]*\.md)(?:,? (?:sections? )?({list})\b)?")),
            document: regex(
                r"\b(MAN|CTM guide),? (?:pp?\. (\d+(?:(?:-|, | to | and )\d+)*)|(?:(?:chapter|section)s? )?(\d+)(?:\.\d+)*(?:(?:-| and )(\d+))?)",
            ),
            bare_page: regex(r"[^-\w]pp?\. (\d+(?:(?:-|, | to )\d+)*)"),
            rule: regex(r"(?:^|[^-_\w:/])(D\d{1,2})\b"),
            section: regex(&format!(
                r"(?:\(|\bOpen\*{{0,2}},? \(?|\b[Cc]hapter |\b[Ss]ection |^ )({list})(?:[,;:.)]|$)"
            )),
            unlisted: regex(
                r"\b[Ss]pec(?:ification)? (?:section )?\d|\b(?:the specification|reference notes)\b",
            ),
        }
    }

    /// Returns the faults in the citations of a line.
    fn faults(&self, path: &str, line: &str, pages: &BTreeMap<String, Page>) -> Vec<String> {
        let mut faults = Vec::new();
        for cited in self.page.captures_iter(line) {
            // A path in `shared/`, which a test reads if it exists, is not a citation.
            if cited.get(1).is_some_and(|name| line[..name.start()].ends_with("spec/")) {
                continue;
            }
            let Some(page) = pages.get(&cited[1]) else {
                let folders = ["", "docs/exercises"];
                if !folders.iter().any(|folder| root().join(folder).join(&cited[1]).exists()) {
                    faults.push(format!("there is no page {}", &cited[1]));
                }
                continue;
            };
            let named = cited.get(2).map_or(Vec::new(), |list| places(list.as_str()));
            let lost = named.into_iter().filter(|place| !page.places.contains(place));
            faults.extend(lost.map(|place| format!("{} has no {place}", &cited[1])));
        }
        let said = said(path, line);
        if self.unlisted.is_match(said) {
            faults.push("a document that no page lists".to_owned());
        }
        let Some(machine) = machine_of(path) else { return faults };
        let page = &pages[&format!("{machine}.md")];
        for cited in self.document.captures_iter(line) {
            let Some(document) = page.documents.get(&cited[1]) else {
                faults.push(format!("docs/{machine}.md does not list {}", &cited[1]));
                continue;
            };
            let lost = cited.get(2).and_then(|named| document.lacks(named.as_str()));
            faults.extend(lost.map(|page| format!("page {page} is not available")));
            let chapters = [3, 4].into_iter().filter_map(|group| Some(number(cited.get(group)?.as_str())));
            let lost = chapters.filter(|chapter| !document.chapters.contains(chapter));
            faults.extend(lost.map(|chapter| format!("chapter {chapter} is not listed")));
        }
        if path.ends_with(".rs") {
            // In "(CTM guide p. 28; NaN: p. 42)", all pages are those of the one document that is cited by page.
            let document = page.documents.values().find(|document| document.pages.is_some());
            for cited in self.bare_page.captures_iter(said) {
                match document.map(|document| document.lacks(&cited[1])) {
                    Some(lost) => faults.extend(lost.map(|page| format!("page {page} is not available"))),
                    None => faults.push("a page of no document".to_owned()),
                }
            }
        }
        let own = match machine {
            "r700" => Some(&self.rule),
            "tesla" if path.ends_with(".rs") => Some(&self.section),
            _ => None,
        };
        for cited in own.into_iter().flat_map(|form| form.captures_iter(said)) {
            let named = places(&cited[1]);
            // A plain number can be any number, and 0.5 is not a section.
            if named.iter().any(|place| place.contains(['.', 'A', 'D'])) {
                let lost =
                    named.into_iter().filter(|place| !page.places.contains(place) && !place.starts_with('0'));
                faults.extend(lost.map(|place| format!("docs/{machine}.md has no {place}")));
            }
        }
        faults
    }
}

#[test]
fn every_citation_leads_to_a_document_and_page_or_to_a_heading_that_exists() {
    let top = files("docs", &["md"]).into_iter().filter(|path| path.matches('/').count() == 1);
    let pages: BTreeMap<String, Page> =
        top.map(|path| (path["docs/".len()..].to_owned(), Page::read(&read(&path)))).collect();
    let forms = Forms::new();
    let mut faults = Vec::new();
    for path in
        ["crates", "docs", "corpus", "."].into_iter().flat_map(|from| files(from, &["rs", "md", "s", "toml"]))
    {
        if path == "crates/testkit/tests/citations.rs" {
            continue;
        }
        for (at, line) in read(&path).lines().enumerate() {
            let found = forms.faults(&path, line, &pages);
            faults.extend(found.into_iter().map(|why| format!("{path}:{}: {why}: {}", at + 1, line.trim())));
        }
    }
    // `explain` refers readers to the sections in the rows of the tables.
    for line in read("docs/coverage/tesla.md").lines().filter(|line| line.contains("` |")) {
        let section = line.split(" | ").nth(4).unwrap_or_default();
        if !pages["tesla.md"].places.contains(section) {
            faults.push(format!("docs/tesla.md has no {section}: {line}"));
        }
    }
    assert!(faults.is_empty(), "{} citations lead nowhere:\n{}", faults.len(), faults.join("\n"));
}

#[test]
fn every_link_and_every_path_leads_to_a_file() {
    let link = regex(r"\]\(([^)#\s]*)(?:#([^)\s]+))?\)");
    let path_in_text = regex(r"(?:^|[\s`(])((?:crates|docs|scripts|corpus|\.ci)/[\w./-]*\w)(/?[*{<])?");
    let mut faults = Vec::new();
    for page in files("docs", &["md"]).into_iter().chain(files(".", &["md"])) {
        let folder = page.rsplit_once('/').map_or(".", |(folder, _)| folder);
        for (at, line) in read(&page).lines().enumerate() {
            for found in link.captures_iter(line).filter(|found| !found[1].contains("://")) {
                let target =
                    if found[1].is_empty() { page.clone() } else { format!("{folder}/{}", &found[1]) };
                if !root().join(&target).exists() {
                    faults.push(format!("{page}:{}: no file {target}", at + 1));
                } else if let Some(anchor) = found.get(2)
                    && !Page::read(&read(&target)).anchors.contains(anchor.as_str())
                {
                    faults.push(format!("{page}:{}: {target} has no heading {}", at + 1, anchor.as_str()));
                }
            }
        }
    }
    for path in ["crates", "docs", "."].into_iter().flat_map(|folder| files(folder, &["rs", "md"])) {
        for (at, line) in read(&path).lines().enumerate() {
            let named = path_in_text.captures_iter(said(&path, line));
            let lost = named.filter(|found| found.get(2).is_none() && !root().join(&found[1]).exists());
            faults.extend(lost.map(|found| format!("{path}:{}: no file {}", at + 1, &found[1])));
        }
    }
    assert!(faults.is_empty(), "{} lead nowhere:\n{}", faults.len(), faults.join("\n"));
}

#[test]
fn what_a_machines_page_names_is_in_its_crate() {
    let named = regex(r"`([a-z_]+\.rs|(?:[A-Za-z_0-9]+::)+[A-Za-z_0-9]+)`");
    let sources: Vec<(String, String)> =
        files("crates", &["rs"]).into_iter().map(|path| (path.clone(), read(&path))).collect();
    let mut faults = Vec::new();
    for machine in MACHINES {
        let crates = [machine, "container", "simt"].map(|name| format!("crates/{name}/"));
        let own = || sources.iter().filter(|(path, _)| crates.iter().any(|folder| path.starts_with(folder)));
        let page = format!("docs/{machine}.md");
        for (at, line) in read(&page).lines().enumerate() {
            for found in named.captures_iter(line) {
                let name = found[1].rsplit("::").next().expect("a last part");
                let item = regex(&format!(
                    r"(?m)\b(?:fn|struct|enum|const|static|type|mod|trait) {name}\b|^\s*{name} ?[{{(,]|^\s*pub {name}:"
                ));
                let is_there = match name.ends_with(".rs") {
                    true => own().any(|(path, _)| path.ends_with(&format!("/{name}"))),
                    false => own().any(|(_, text)| item.is_match(text)),
                };
                if !is_there {
                    faults.push(format!("{page}:{}: {} is not in the crate", at + 1, &found[1]));
                }
            }
        }
    }
    assert!(faults.is_empty(), "{} are not there:\n{}", faults.len(), faults.join("\n"));
}

#[test]
fn lists_of_places_are_read_whole() {
    assert_eq!(places("2.1 to 2.4"), ["2.1", "2.2", "2.3", "2.4"]);
    assert_eq!(places("Q22-Q25"), ["Q22", "Q23", "Q24", "Q25"]);
    assert_eq!(places("D6, D8"), ["D6", "D8"]);
    assert_eq!(places("7 and 5.5, Q2"), ["7", "5.5", "Q2"]);
}
