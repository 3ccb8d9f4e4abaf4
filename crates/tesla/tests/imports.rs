//! Imports inside the crate run one way.

use std::path::Path;

use reconverge_testkit::climbing_imports;

/// Each module imports only those before it.
#[rustfmt::skip]
const ORDER: &[&str] = &[
    // Instructions, and their effects on the lanes.
    "flow", "lane", "sentence", "arith", "control", "inst", "draft", "parts", "table", "decode", "explain", "meaning", "fidelity",
    // Barriers, traps, decoded programs and their fixes.
    "barrier", "trap", "code", "driver_fixes",
    // Paths of control, found without a run.
    "paths", "graph",
    // State.
    "spaces", "texture", "state", "turns", "results", "uses", "launch", "context", "access",
    // The blocks of a launch.
    "lint", "inputs", "block", "grid",
    // Engines.
    "reference", "fast", "run",
    "text",
];

#[test]
fn no_module_imports_one_that_comes_after_it() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    assert_eq!(climbing_imports(&source, ORDER), Vec::<String>::new());
}
