//! Imports inside the crate run one way.

use std::path::Path;

use reconverge_testkit::climbing_imports;

/// `crate` is the registry of machines in `lib.rs`. The modules before it do not refer to all machines.
const ORDER: [&str; 39] = [
    "array", "values", "error", "target", "listing", "faults", "trace", "session", "result", "keys", "holds",
    "request", "stats", "machine", "r500", "r700", "tesla", "crate", "text", "source", "open", "slots",
    "naming", "trapped", "counts", "launch", "choose", "manifest", "contents", "edit", "formats", "lint",
    "kernels", "micro", "suite", "taint", "graph", "report", "debugger",
];

#[test]
fn no_module_imports_one_that_comes_later() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    assert_eq!(climbing_imports(&src, &ORDER), [""; 0]);
}

/// The function of the registry has the name of a module, and its method does not. The order alone therefore does not
/// detect a look-up.
#[test]
fn nothing_below_the_registry_looks_a_machine_up() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut looked = 0;
    for module in ORDER.iter().take_while(|module| **module != "crate") {
        for file in reconverge_testkit::sources(&src).iter().filter(|file| {
            let inside = file.strip_prefix(&src).expect("it lies in the folder");
            inside.with_extension("").starts_with(module)
        }) {
            let text = std::fs::read_to_string(file).expect("a source");
            let code = text.split("#[cfg(test)]\nmod").next().unwrap_or_default();
            for call in [".machine()", "crate::machine(", "use crate::machine;"] {
                assert!(!code.contains(call), "{}: {call}", file.display());
            }
            looked += 1;
        }
    }
    assert!(looked > 20, "{looked} files");
}
