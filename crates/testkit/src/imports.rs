//! The order in which the modules of a crate may import each other, held by a test.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The imports that climb: each module of `src` may name, through `crate::`, only modules that come earlier in `order`.
///
/// A module is a file directly in `src`, or a folder there with everything in it. `lib.rs` and the code of tests (files
/// named `tests.rs` or `…_tests.rs`, folders named `tests`, and what follows a file's `#[cfg(test)]`) are left out.
/// Comments do not count. Gives one line for each fault, `file -> module`, sorted; modules of `src` that `order` does not
/// list, and listed ones that do not exist, are faults as well.
///
/// # Panics
/// A file cannot be read.
pub fn climbing_imports(src: &Path, order: &[&str]) -> Vec<String> {
    let mut faults = BTreeSet::new();
    let mut seen = BTreeSet::new();
    for file in sources(src) {
        let inside = file.strip_prefix(src).expect("it lies in the folder");
        let module = inside.components().next().expect("a file has a name").as_os_str();
        let module = Path::new(module).with_extension("").display().to_string();
        if module == "lib" || is_test(inside) {
            continue;
        }
        let Some(place) = order.iter().position(|name| *name == module) else {
            faults.insert(format!("{} is not in the order", inside.display()));
            continue;
        };
        seen.insert(module.clone());
        let text = fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        for named in crate_modules(&text) {
            let climbs = order.iter().position(|name| *name == named).is_some_and(|other| other > place);
            if climbs {
                faults.insert(format!("{} -> {named}", inside.display()));
            }
        }
    }
    faults.extend(order.iter().filter(|name| !seen.contains(**name)).map(|name| format!("no module {name}")));
    faults.into_iter().collect()
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    for entry in entries.flatten() {
        let path = entry.path();
        if path.is_dir() {
            files.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files
}

fn is_test(file: &Path) -> bool {
    let names: Vec<_> = file
        .components()
        .map(|part| Path::new(part.as_os_str()).with_extension("").display().to_string())
        .collect();
    names.iter().any(|name| name == "tests" || name.ends_with("_tests"))
}

/// The modules that a source names behind `crate::`, outside comments and tests.
fn crate_modules(text: &str) -> BTreeSet<String> {
    let code: String = text
        .lines()
        .take_while(|line| line.trim() != "#[cfg(test)]")
        .map(|line| line.split("//").next().unwrap_or_default())
        .collect::<Vec<_>>()
        .join("\n");
    let mut modules = BTreeSet::new();
    let name = |text: &str| -> String {
        text.chars().take_while(|letter| letter.is_ascii_alphanumeric() || *letter == '_').collect()
    };
    for (at, found) in code.match_indices("crate::") {
        // `$crate::` is a macro's.
        if code[..at].ends_with('$') {
            continue;
        }
        let rest = &code[at + found.len()..];
        match rest.strip_prefix('{') {
            None => {
                modules.insert(name(rest));
            }
            Some(list) => {
                let mut depth = 0;
                for part in list.split_inclusive([',', '{', '}']) {
                    if depth == 0 {
                        modules.insert(name(part.trim()));
                    }
                    match part.chars().last() {
                        Some('{') => depth += 1,
                        Some('}') if depth == 0 => break,
                        Some('}') => depth -= 1,
                        _ => {}
                    }
                }
            }
        }
    }
    modules.remove("");
    modules
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_behind_crate_are_found_and_comments_and_tests_are_not() {
        let text = "use crate::flow::Flow;\n// crate::text\nuse crate::{inst::{Op, Dst}, lane};\nfn f() { \
                    crate::state::g() }\n#[cfg(test)]\nmod tests { use crate::text; }\n";
        let found = crate_modules(text);
        assert_eq!(found.iter().map(String::as_str).collect::<Vec<_>>(), ["flow", "inst", "lane", "state"]);
    }

    #[test]
    fn an_import_that_climbs_is_found() {
        let folder = std::env::temp_dir().join(format!("reconverge-imports-{}", std::process::id()));
        fs::create_dir_all(folder.join("fast")).expect("a folder");
        let write = |name: &str, text: &str| fs::write(folder.join(name), text).expect("a file");
        write("lib.rs", "pub mod flow;");
        write("flow.rs", "use crate::fast::Fast;");
        write("fast/mod.rs", "use crate::flow::Flow;");
        write("odd.rs", "");
        assert_eq!(
            climbing_imports(&folder, &["flow", "fast", "text"]),
            ["flow.rs -> fast", "no module text", "odd.rs is not in the order"]
        );
        fs::remove_dir_all(&folder).expect("it is there");
    }
}
