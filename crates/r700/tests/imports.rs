//! Tests the order of the crate's modules: no module imports a later one.

use std::path::Path;

#[test]
fn no_module_imports_a_later_one() {
    let order = [
        "words",
        "chip",
        "rules",
        "lane",
        "lane64",
        "format",
        "flow",
        "meaning",
        "control",
        "code",
        "ports",
        "graph",
        "stack",
        "uses",
        "cause",
        "memory",
        "texture",
        "launch",
        "outcome",
        "wave",
        "reference",
        "fast",
        "run",
        "forms",
        "text",
        "explain",
        "lint",
    ];
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    assert_eq!(reconverge_testkit::climbing_imports(&src, &order), [""; 0]);
}
