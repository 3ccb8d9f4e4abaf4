//! Finds imports between the modules of a crate, for tests of the order of the modules.
//!
//! A module is a file. A folder belongs to the module that has the folder's name. Names are resolved as in the
//! compiler, through `use` and `pub use`. If a module imports an item through a re-export, the module imports from the
//! module that defines the item. The `pub use` that re-exports an item is not an import. A module and the modules
//! inside this module may import each other. Test code is ignored. Test code is files named `tests.rs` or `…_tests.rs`,
//! folders named `tests`, and the code after a file's `#[cfg(test)]`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Path of a module in its crate: the module names from the root to the module.
type ModulePath = Vec<String>;

/// Returns the imports that violate an order. A module of `src` may import only modules that are before the importing
/// module in `order`.
///
/// The entries of `order` are the names of the modules of the root. The entry `crate` stands for the items that
/// `lib.rs` or `main.rs` defines directly. An entry includes the modules inside the named module. Returns one line per
/// fault, `file -> module`, sorted. It is also a fault if `order` does not list a module of `src`, or if `order` lists
/// a module that does not exist.
///
/// # Panics
/// Panics if a file cannot be read.
pub fn climbing_imports(src: &Path, order: &[&str]) -> Vec<String> {
    let modules = Modules::read(src);
    let mut faults = BTreeSet::new();
    let mut seen = BTreeSet::from(["crate".to_owned()]);
    let position = |name: &str| order.iter().position(|known| *known == name);
    for (place, module) in &modules.0 {
        let Some(first) = place.first() else { continue };
        let Some(own) = position(first) else {
            faults.insert(format!("{} is not in the order", module.file.display()));
            continue;
        };
        seen.insert(first.clone());
        for to in modules.imports(place) {
            let name = to.first().map_or("crate", String::as_str);
            if name != first && position(name).is_none_or(|other| other > own) {
                faults.insert(format!("{} -> {name}", module.file.display()));
            }
        }
    }
    faults.extend(order.iter().filter(|name| !seen.contains(**name)).map(|name| format!("no module {name}")));
    faults.into_iter().collect()
}

/// Returns the import cycles. A cycle consists of modules of one folder that import each other, directly or indirectly.
/// In a cycle, a module stands for the module and for all modules inside the module. Returns one line per cycle,
/// `folder: modules`, sorted.
///
/// # Panics
/// Panics if a file cannot be read.
pub fn circles(src: &Path) -> Vec<String> {
    let modules = Modules::read(src);
    // The imports between the modules of each folder. For each folder and each importing module, the set has the
    // imported modules.
    let mut graphs: BTreeMap<ModulePath, BTreeMap<String, BTreeSet<String>>> = BTreeMap::new();
    for place in modules.0.keys() {
        for to in modules.imports(place) {
            let same = place.iter().zip(&to).take_while(|(one, other)| one == other).count();
            if let (Some(from), Some(name)) = (place.get(same), to.get(same)) {
                let graph = graphs.entry(place[..same].to_vec()).or_default();
                graph.entry(from.clone()).or_default().insert(name.clone());
            }
        }
    }
    let mut found = Vec::new();
    for (folder, graph) in &graphs {
        let all: BTreeMap<&String, BTreeSet<&String>> =
            graph.keys().map(|module| (module, reached(graph, module))).collect();
        let circle = |module: &String| -> Vec<&str> {
            let back = |other: &&String| all.get(*other).is_some_and(|reached| reached.contains(module));
            all[module].iter().filter(|other| back(other)).map(|other| other.as_str()).collect()
        };
        let named: BTreeSet<Vec<&str>> = graph.keys().map(circle).filter(|names| !names.is_empty()).collect();
        let folder = if folder.is_empty() { "crate".to_owned() } else { folder.join("/") };
        found.extend(named.iter().map(|names| format!("{folder}: {}", names.join(", "))));
    }
    found
}

/// Returns the modules that the module `from` imports directly or through other modules.
fn reached<'a>(graph: &'a BTreeMap<String, BTreeSet<String>>, from: &'a String) -> BTreeSet<&'a String> {
    let (mut seen, mut next) = (BTreeSet::new(), vec![from]);
    while let Some(module) = next.pop() {
        next.extend(graph.get(module).into_iter().flatten().filter(|to| seen.insert(*to)));
    }
    seen
}

/// A name that a module imports.
#[derive(Debug, PartialEq, Eq)]
struct Use {
    path: ModulePath,
    name: String,
    public: bool,
}

/// The paths that a file names.
#[derive(Default)]
struct Module {
    file: PathBuf,
    uses: Vec<Use>,
    /// Paths in the code that have at least two names.
    paths: Vec<ModulePath>,
}

struct Modules(BTreeMap<ModulePath, Module>);

impl Modules {
    fn read(src: &Path) -> Modules {
        let mut modules: BTreeMap<ModulePath, Module> = BTreeMap::new();
        for file in sources(src) {
            let inside = file.strip_prefix(src).expect("it lies in the folder").to_path_buf();
            let mut place: ModulePath = inside
                .with_extension("")
                .components()
                .map(|part| part.as_os_str().to_string_lossy().into_owned())
                .collect();
            if place.iter().any(|name| name == "tests" || name.ends_with("_tests")) {
                continue;
            }
            if place.last().is_some_and(|name| name == "mod") || place == ["lib"] || place == ["main"] {
                place.pop();
            }
            let text =
                fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
            let (uses, paths) = named(&text);
            let module = modules.entry(place).or_default();
            module.file = inside;
            module.uses.extend(uses);
            module.paths.extend(paths);
        }
        Modules(modules)
    }

    /// Returns the modules whose items a module uses. The result does not contain modules that enclose the importing
    /// module. It also does not contain modules inside the importing module.
    fn imports(&self, place: &ModulePath) -> BTreeSet<ModulePath> {
        let module = &self.0[place];
        let used = module.uses.iter().filter(|used| !used.public).map(|used| &used.path);
        let found = used.chain(&module.paths).filter(|path| self.is_own(place, path));
        let found = found.filter_map(|path| self.owner(place, path, 0));
        let related = |to: &ModulePath| to.starts_with(place) || (!to.is_empty() && place.starts_with(to));
        found.filter(|to| !related(to)).collect()
    }

    /// Returns whether a path begins in this crate.
    fn is_own(&self, place: &ModulePath, path: &[String]) -> bool {
        let [first, ..] = path else { return false };
        matches!(first.as_str(), "crate" | "self" | "super") || self.child(place, first).is_some()
    }

    fn child(&self, place: &[String], name: &str) -> Option<ModulePath> {
        let child = [place, &[name.to_owned()]].concat();
        self.0.contains_key(&child).then_some(child)
    }

    /// Returns the module that defines the item of a path.
    fn owner(&self, place: &ModulePath, path: &[String], depth: usize) -> Option<ModulePath> {
        let mut here = place.clone();
        let mut rest = path;
        while let [first, more @ ..] = rest {
            match first.as_str() {
                "crate" => here.clear(),
                "self" => {}
                "super" => drop(here.pop()),
                _ => break,
            }
            rest = more;
        }
        while let [first, more @ ..] = rest {
            if let Some(child) = self.child(&here, first) {
                (here, rest) = (child, more);
                continue;
            }
            let uses = &self.0.get(&here)?.uses;
            let behind = uses.iter().find(|used| used.name == *first && self.is_own(&here, &used.path));
            return match behind {
                Some(used) if depth < 16 => self.owner(&here, &[&used.path, more].concat(), depth + 1),
                _ => Some(here),
            };
        }
        Some(here)
    }
}

/// Returns the sources in a folder and its subfolders.
///
/// # Panics
/// Panics if a folder cannot be read.
pub fn sources(folder: &Path) -> Vec<PathBuf> {
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

/// Returns the names that a source uses outside comments and tests. These are the names in `use`, and the paths in the
/// code.
fn named(text: &str) -> (Vec<Use>, Vec<ModulePath>) {
    let end = text.lines().take_while(|line| line.trim() != "#[cfg(test)]").map(|line| line.len() + 1).sum();
    let tokens = tokens(&text[..text.len().min(end)]);
    let (mut uses, mut paths) = (Vec::new(), Vec::new());
    let is = |at: usize, wanted: &str| tokens.get(at) == Some(&wanted);
    let mut at = 0;
    while at < tokens.len() {
        let before = at.checked_sub(1).map_or(";", |before| tokens[before]);
        let path = path(&tokens[at..]);
        if is(at, "use") && matches!(before, ";" | "}" | "{" | "]" | "pub" | ")") {
            let public = match before {
                "pub" => true,
                // The parenthesis is part of `pub(super) use`, or of other code.
                ")" => tokens[..at]
                    .iter()
                    .rposition(|token| *token == "(")
                    .is_some_and(|open| open > 0 && is(open - 1, "pub")),
                _ => false,
            };
            at += 1 + tree(&tokens[at + 1..], &[], public, &mut uses);
        } else if path.len() > 1 && !matches!(before, "::" | "$") {
            at += 2 * path.len() - 1;
            paths.push(path);
        } else {
            at += 1;
        }
    }
    (uses, paths)
}

/// Returns the names at the start of the tokens, joined by `::`.
fn path(tokens: &[&str]) -> ModulePath {
    let is_name = |token: &&&str| token.starts_with(|first: char| first.is_alphabetic() || first == '_');
    let joined = tokens.chunks(2).take_while(|pair| is_name(&&pair[0]));
    let count = joined.clone().take_while(|pair| pair.get(1) == Some(&"::")).count();
    joined.take(count + 1).map(|pair| pair[0].to_owned()).collect()
}

/// Splits the tree of a `use` into its names. Returns the number of its tokens.
fn tree(tokens: &[&str], before: &[String], public: bool, uses: &mut Vec<Use>) -> usize {
    let own = path(tokens);
    let whole = [before, &own].concat();
    // If the path continues, `::` follows the names read so far.
    let mut at = (2 * own.len()).saturating_sub(1);
    at += usize::from(tokens.get(at) == Some(&"::"));
    match tokens.get(at) {
        Some(&"{") => {
            at += 1;
            while at < tokens.len() && tokens[at] != "}" {
                at += if tokens[at] == "," { 1 } else { tree(&tokens[at..], &whole, public, uses).max(1) };
            }
            at + 1
        }
        Some(&"*") => {
            uses.push(Use { path: whole, name: "*".to_owned(), public });
            at + 1
        }
        next => {
            let mut path = whole;
            // `{self, …}` names the module before the braces.
            if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
                path.pop();
            }
            let renamed = (next == Some(&"as")).then(|| tokens.get(at + 1)).flatten();
            let name = renamed.map(|name| (*name).to_owned()).or_else(|| path.last().cloned());
            uses.extend(name.map(|name| Use { path, name, public }));
            if renamed.is_some() { at + 2 } else { at }
        }
    }
}

/// Returns names, `::`, and single characters, without comments and quoted text.
fn tokens(text: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = text;
    let after = |text: &str, end: &str| text.find(end).map_or(text.len(), |at| at + end.len());
    while let Some(first) = rest.chars().next() {
        let name = rest.find(|letter: char| !letter.is_alphanumeric() && letter != '_').unwrap_or(rest.len());
        let mut letters = rest.chars();
        let taken = if rest.starts_with("//") {
            after(rest, "\n")
        } else if rest.starts_with("/*") {
            after(rest, "*/")
        } else if matches!(&rest[..name], "r" | "br") && rest[name..].trim_start_matches('#').starts_with('"')
        {
            let hashes = rest[name..].find('"').unwrap_or(0);
            let end = format!("\"{}", "#".repeat(hashes));
            let inside = name + hashes + 1;
            inside + after(&rest[inside..], &end)
        } else if first == '"' {
            let mut escaped = false;
            let end = letters.skip(1).position(|letter| {
                let ends = letter == '"' && !escaped;
                escaped = letter == '\\' && !escaped;
                ends
            });
            rest.char_indices().nth(end.map_or(usize::MAX, |end| end + 2)).map_or(rest.len(), |(at, _)| at)
        } else if first == '\'' && (letters.nth(1) == Some('\\') || letters.next() == Some('\'')) {
            let start = if rest[1..].starts_with('\\') { 3 } else { 2 };
            let start = rest.char_indices().nth(start).map_or(rest.len(), |(at, _)| at);
            start + after(&rest[start..], "'")
        } else if name > 0 {
            tokens.push(&rest[..name]);
            name
        } else if rest.starts_with("::") {
            tokens.push("::");
            2
        } else {
            let width = first.len_utf8();
            if !first.is_whitespace() {
                tokens.push(&rest[..width]);
            }
            width
        };
        rest = &rest[taken..];
    }
    tokens
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crate_of(name: &str, files: &[(&str, &str)]) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("reconverge-{name}-{}", std::process::id()));
        for (file, text) in files {
            let file = folder.join(file);
            fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
            fs::write(file, text).expect("a file");
        }
        folder
    }

    #[test]
    fn modules_behind_crate_are_found_and_comments_and_tests_are_not() {
        let text = "use crate::flow::Flow;\n// crate::text\nuse crate::{inst::{self, Op as Code}, lane};\nfn f() { \
                    crate::state::g(\"crate::launch\", '\\'', 'c') }\npub(super) use crate::run::*;\n\
                    #[cfg(test)]\nmod tests { use crate::text; }\n";
        let (uses, paths) = named(text);
        let uses: Vec<String> = uses
            .iter()
            .map(|used| format!("{} {} {}", used.path.join("::"), used.name, used.public))
            .collect();
        assert_eq!(
            uses,
            [
                "crate::flow::Flow Flow false",
                "crate::inst inst false",
                "crate::inst::Op Code false",
                "crate::lane lane false",
                "crate::run * true"
            ]
        );
        assert_eq!(paths, [["crate", "state", "g"]]);
    }

    #[test]
    fn an_import_that_climbs_is_found() {
        let folder = crate_of(
            "climbing",
            &[
                ("lib.rs", "pub mod flow;\npub use fast::Fast;\npub fn own() {}"),
                ("flow.rs", "use crate::Fast;\nfn f() { crate::own() }"),
                ("fast/mod.rs", "use crate::flow::Flow;"),
                ("odd.rs", ""),
            ],
        );
        assert_eq!(
            climbing_imports(&folder, &["flow", "fast", "crate", "text"]),
            ["flow.rs -> crate", "flow.rs -> fast", "no module text", "odd.rs is not in the order"]
        );
        fs::remove_dir_all(&folder).expect("it is there");
    }

    #[test]
    fn a_circle_in_a_folder_is_found_and_one_of_a_module_with_its_parts_is_not() {
        let folder = crate_of(
            "circles",
            &[
                ("lib.rs", "mod text;\nmod flow;"),
                ("flow.rs", "use crate::text::Name;"),
                (
                    "text/mod.rs",
                    "mod dis;\nmod asm;\npub use asm::Name;\nstruct Own;\nfn f() { dis::print(); asm::read() }",
                ),
                ("text/dis.rs", "use super::{Own, asm::Name};"),
                ("text/asm.rs", "struct Name; fn read() { super::dis::print() }"),
                ("text/tests.rs", "use crate::flow;"),
            ],
        );
        assert_eq!(circles(&folder), ["text: asm, dis"]);
        fs::write(folder.join("text/asm.rs"), "struct Name; use crate::flow::Flow;").expect("a file");
        assert_eq!(circles(&folder), ["crate: flow, text"]);
        fs::remove_dir_all(&folder).expect("it is there");
    }
}
