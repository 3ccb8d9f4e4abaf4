//! Imports inside the crate go in one direction.

use std::path::Path;

use reconverge_testkit::climbing_imports;

#[test]
fn no_module_imports_one_that_comes_later() {
    let order = [
        "words",
        "inst",
        "chip",
        "flow",
        "lane",
        "operations",
        "violations",
        "mistaken",
        "fidelity",
        "cause",
        "setup",
        "graph",
        "uses",
        "lint",
        "memory",
        "texture",
        "group",
        "outputs",
        "launch",
        "reference",
        "fast",
        "run",
        "ctm",
        "text",
        "pvs",
        "programs",
        "forms",
    ];
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    assert_eq!(climbing_imports(&src, &order), [""; 0]);
}
