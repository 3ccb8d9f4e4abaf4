//! Findings of lint in the programs of the corpora. Built-in programs have only the findings that they demonstrate.
//! Programs that compilers wrote for R500 have only the findings that docs/r500.md explains.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use reconverge_cases::{Folder, NoFolder, read};
use reconverge_isa::{Isa, Program};
use reconverge_r500::lint::lint;
use reconverge_r500::setup::Setup;
use reconverge_testkit::shared;
use reconverge_workbench::lint::findings;

/// Returns the number of programs in a folder's files and their findings, by rule and file. Prints some of each.
fn found(folder: &Path, isa: Isa) -> (usize, BTreeMap<(String, &'static str), usize>) {
    let none: Arc<dyn Folder> = Arc::new(NoFolder);
    let (mut programs, mut found) = (0, BTreeMap::new());
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    for path in files {
        let bytes = std::fs::read(&path).unwrap();
        let Ok(cases) = read(&path.display().to_string(), &bytes, &none, None) else { continue };
        let file = path.file_name().unwrap().to_string_lossy().into_owned();
        for case in cases {
            let Ok(opened) = case.open() else { continue };
            let (target, image) = (&opened.opened.target, &opened.opened.image);
            assert_eq!(target.isa, isa);
            programs += 1;
            for finding in findings(target, &image.programs[0]).unwrap() {
                let count = found.entry((file.clone(), finding.rule.name)).or_insert(0);
                *count += 1;
                if *count <= 3 {
                    println!(
                        "{file} {}: {} {}: {}",
                        case.name, finding.pc, finding.rule.name, finding.message
                    );
                }
            }
        }
    }
    (programs, found)
}

/// Returns the same for the programs of a driver, as hexadecimal words, without those of the vertex processor.
fn of_driver(folder: &Path) -> (usize, BTreeMap<(String, &'static str), usize>) {
    let (mut programs, mut found) = (0, BTreeMap::new());
    for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if name.starts_with("pvs") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let words = text.split_whitespace().map(|word| u32::from_str_radix(word, 16).unwrap()).collect();
        programs += 1;
        for finding in lint(&Setup::new(&Program::from_words(words)).unwrap()) {
            println!("{name}: {} {}: {}", finding.pc, finding.rule.name, finding.message);
            *found.entry((name.clone(), finding.rule.name)).or_insert(0) += 1;
        }
    }
    (programs, found)
}

/// Returns the number of findings of each rule in each file.
fn counts<'a>(of: &'a BTreeMap<(String, &'static str), usize>) -> Vec<(&'a str, &'static str, usize)> {
    of.iter().map(|((file, rule), count)| (file.as_str(), *rule, *count)).collect()
}

#[test]
fn the_small_programs_of_r700_and_tesla_break_what_they_are_to_show() {
    // A pop from an empty stack, and a join without a token.
    let overflow =
        [("overflow.s", "pop", 1), ("overflow.s", "stack-merge", 1), ("overflow.s", "stack-size", 1)];
    let (programs, own) = found(Path::new("../../corpus/r700"), Isa::R700);
    assert_eq!((programs, counts(&own)), (6, overflow.to_vec()));
    let (programs, own) = found(Path::new("../../corpus/tesla"), Isa::Tesla);
    assert_eq!((programs, counts(&own)), (9, vec![("no-token.s", "join-empty", 1)]));
}

#[test]
fn programs_of_the_corpora_break_what_the_page_explains() {
    let (programs, own) = found(Path::new("../../corpus/r500"), Isa::R500);
    assert_eq!(programs, 74);
    let sum = |name: &str| own.iter().filter(|((_, rule), _)| *rule == name).map(|(_, count)| count).sum();
    let sums: [usize; 3] = ["loop-skip", "unwritten-path", "stale-result"].map(sum);
    assert_eq!((sums, own.values().sum::<usize>()), ([38, 8, 1], 47), "{own:#?}");
    if let Some(folder) = shared("corpus/r500") {
        let (programs, found) = found(&folder, Isa::R500);
        assert_eq!(programs, 974);
        // The programs in flow.jsonl do not come from a compiler. docs/r500.md explains each kind.
        let expected = [
            ("flow.jsonl.gz", "branch-depth", 24),
            ("flow.jsonl.gz", "outside-constant", 7),
            ("flow.jsonl.gz", "unreachable", 139),
            ("fuzz.jsonl.gz", "loop-skip", 413),
            ("fuzz.jsonl.gz", "texture-overwrite", 5),
            ("fuzz.jsonl.gz", "unwritten-path", 160),
            ("piglit.jsonl.gz", "loop-skip", 6),
        ];
        assert_eq!(counts(&found), expected);
    }
    if let Some(folder) = shared("binaries/r500/xf86-video-ati") {
        assert_eq!(of_driver(&folder), (6, BTreeMap::new()));
    }
}
