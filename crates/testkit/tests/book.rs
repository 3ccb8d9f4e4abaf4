//! The book: its summary has every page of `docs/`, and no page links to a file outside the book.
//!
//! The built book contains `docs/` and nothing else of the repository, so a link to another folder is dead there.
//! `citations.rs` checks that links lead to files and headings. `scripts/book` checks the output of mdBook.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use regex_lite::Regex;

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns the pages below a folder, by their paths in `docs/`.
fn pages_of(folder: &str) -> BTreeSet<String> {
    let mut pages = BTreeSet::new();
    for entry in std::fs::read_dir(docs().join(folder)).expect("a folder").flatten() {
        let name = entry.file_name().into_string().expect("a name in UTF-8");
        let path = if folder.is_empty() { name } else { format!("{folder}/{name}") };
        if entry.path().is_dir() {
            pages.extend(pages_of(&path));
        } else if path.ends_with(".md") && path != "SUMMARY.md" {
            pages.insert(path);
        }
    }
    pages
}

/// Returns the targets of a page's links, without the part from `#` on.
fn links(text: &str) -> Vec<String> {
    let link =
        Regex::new(r"(?m)\]\(([^)#\s]*)(?:#[^)\s]*)?\)|^\[[^\]]+\]: (\S+)$").expect("a regular expression");
    let targets = link.captures_iter(text).filter_map(|found| found.get(1).or(found.get(2)));
    targets.map(|target| target.as_str().to_owned()).filter(|target| !target.contains("://")).collect()
}

/// Returns the path in `docs/` that a link of a page leads to, or `None` if it is outside `docs/`.
fn target(page: &str, link: &str) -> Option<String> {
    let mut path = Path::new(page).parent().map(Path::to_path_buf).unwrap_or_default();
    for part in Path::new(link).components() {
        match part {
            Component::ParentDir => path.pop().then_some(())?,
            Component::CurDir => {}
            Component::Normal(name) => path.push(name),
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(path.to_string_lossy().replace('\\', "/"))
}

/// Returns the text of a page in the book.
fn page(name: &str) -> String {
    let text = read(&docs().join(name));
    let include = Regex::new(r"\{\{#include ([^:}]+):(\w+)\}\}").expect("a regular expression");
    let included = include.replace_all(&text, |found: &regex_lite::Captures<'_>| {
        let whole = read(&docs().join(&found[1]));
        let (_, from) = whole.split_once(&format!("<!-- ANCHOR: {} -->", &found[2])).expect("an anchor");
        from.split_once(&format!("<!-- ANCHOR_END: {} -->", &found[2])).expect("its end").0.to_owned()
    });
    included.into_owned()
}

#[test]
fn the_summary_has_every_page_once() {
    let listed = links(&read(&docs().join("SUMMARY.md")));
    let mut times: BTreeMap<&str, usize> = BTreeMap::new();
    listed.iter().for_each(|page| *times.entry(page).or_default() += 1);
    assert_eq!(times.iter().filter(|(_, times)| **times != 1).collect::<Vec<_>>(), []);
    assert_eq!(listed.iter().cloned().collect::<BTreeSet<_>>(), pages_of(""));
}

#[test]
fn every_link_of_the_book_stays_in_it() {
    let pages = pages_of("");
    let mut faults = Vec::new();
    for name in &pages {
        for link in links(&page(name)).iter().filter(|link| !link.is_empty()) {
            let there = target(name, link).filter(|target| match target.ends_with(".md") {
                true => pages.contains(target),
                false => docs().join(target).is_file(),
            });
            if there.is_none() {
                faults.push(format!("docs/{name}: {link}"));
            }
        }
    }
    assert!(faults.is_empty(), "{} lead out of the book:\n{}", faults.len(), faults.join("\n"));
}

#[test]
fn a_link_leads_to_a_path_in_docs_or_out_of_it() {
    assert_eq!(target("coverage/r500.md", "../r500.md").as_deref(), Some("r500.md"));
    assert_eq!(target("r500.md", "coverage/r500.md").as_deref(), Some("coverage/r500.md"));
    assert_eq!(target("r500.md", "../README.md"), None);
    assert_eq!(links("[a](r500.md#c) [d](https://e) [f](#g)\n[h]: r700.md\n"), ["r500.md", "", "r700.md"]);
}
