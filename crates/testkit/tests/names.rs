//! Names of types: one noun for one thing.

use std::collections::BTreeMap;
use std::path::Path;

/// Maximum number of definitions of a name that is not listed.
const UNLISTED: usize = 3;

/// Names with more definitions, and their number.
#[rustfmt::skip]
const LISTED: &[(&str, usize)] = &[
    ("Access", 7), ("Array", 4), ("Assembled", 4), ("Assembler", 4), ("At", 4), ("Before", 4),
    ("Beside", 5), ("Block", 6), ("Body", 4), ("Call", 5), ("Cause", 5), ("Chip", 4), ("Code", 8),
    ("Compare", 5), ("Component", 4), ("Condition", 4), ("Conditional", 4), ("Constants", 7),
    ("Context", 4), ("Counts", 6), ("Cursor", 4), ("End", 5), ("Environment", 4), ("Error", 5),
    ("Failure", 6), ("Fast", 4), ("Fetch", 4), ("File", 5), ("Flow", 6), ("Form", 5),
    ("Format", 4), ("Found", 7), ("Frame", 5), ("Group", 6), ("Images", 4), ("Input", 6),
    ("Kept", 4), ("Kernel", 4), ("Kind", 12), ("Known", 7), ("Lanes", 9), ("Launch", 10),
    ("LaunchError", 4), ("Layout", 8), ("Level", 5), ("Line", 7), ("Loaded", 6), ("Machine", 4),
    ("Memory", 4), ("Mode", 4), ("Named", 4), ("Names", 4), ("Node", 5), ("Numbers", 4),
    ("Open", 9), ("Operand", 5), ("Operation", 6), ("Outcome", 11), ("Outputs", 5), ("Own", 4),
    ("Packet", 4), ("Pair", 4), ("Part", 13), ("Piece", 4), ("Place", 14), ("Places", 4),
    ("Plan", 4), ("Read", 6), ("Reader", 7), ("Record", 5), ("Recording", 4), ("Refused", 5),
    ("Register", 4), ("Row", 14), ("Rows", 8), ("Run", 9), ("RunError", 6), ("Runner", 4),
    ("Segment", 4), ("Setup", 5), ("Shader", 4), ("Shape", 6), ("Shown", 5), ("Side", 6),
    ("Slot", 5), ("Source", 7), ("Sources", 4), ("Space", 4), ("Stage", 5), ("State", 12),
    ("Step", 4), ("Stop", 5), ("Surface", 4), ("Symbol", 4), ("Target", 9), ("Token", 6),
    ("Totals", 4), ("Unit", 5), ("Value", 6), ("Watch", 5), ("Watched", 5), ("Way", 9),
    ("Word", 5), ("Words", 11), ("Work", 8), ("Worker", 4), ("Written", 7),
];

/// Returns the name of the type that a line defines. Associated types of implementations are not definitions.
fn defined(line: &str) -> Option<&str> {
    let item = line.trim_start();
    let item = match item.strip_prefix("pub(") {
        Some(rest) => rest.split_once(") ")?.1,
        None => item.strip_prefix("pub ").unwrap_or(item),
    };
    let (kind, rest) = item.split_once(' ')?;
    let is_type =
        matches!(kind, "struct" | "enum" | "union" | "trait") || kind == "type" && !line.starts_with(' ');
    let end = rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
    (is_type && rest.starts_with(|c: char| c.is_ascii_uppercase())).then_some(&rest[..end])
}

fn count(folder: &Path, names: &mut BTreeMap<String, usize>) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            count(&path, names);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = std::fs::read_to_string(&path).expect("a source file");
            for name in text.lines().filter_map(defined) {
                *names.entry(name.to_owned()).or_default() += 1;
            }
        }
    }
}

#[test]
fn no_other_type_name_is_defined_in_more_than_three_places() {
    let mut names = BTreeMap::new();
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for entry in std::fs::read_dir(crates).expect("the crates") {
        let src = entry.expect("a crate").path().join("src");
        if src.is_dir() {
            count(&src, &mut names);
        }
    }
    let many: Vec<String> = names
        .iter()
        .filter(|(_, count)| **count > UNLISTED)
        .map(|(name, count)| format!("{name} {count}"))
        .collect();
    let listed: Vec<String> = LISTED.iter().map(|(name, count)| format!("{name} {count}")).collect();
    assert_eq!(many, listed, "give a new type the name of what it is, or change the list");
}

#[test]
fn definitions_are_found_in_front_of_generics_and_behind_visibilities() {
    for (line, name) in [
        ("pub struct Place<const N: usize>(u32);", Some("Place")),
        ("    pub(in crate::fast) enum Exit {", Some("Exit")),
        ("type Calls = Vec<Call>;", Some("Calls")),
        ("trait Body: Copy {", Some("Body")),
        ("    type Call = Own;", None),
        ("// struct Place", None),
        ("let enum_of = 3;", None),
    ] {
        assert_eq!(defined(line), name, "{line}");
    }
}
