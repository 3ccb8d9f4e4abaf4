//! Checks that modules do not import each other in cycles, in any crate.

use std::path::Path;

use reconverge_testkit::circles;

/// The remaining import cycles, by crate. A cycle that no longer exists must be removed from the list.
const KNOWN: [(&str, &[&str]); 1] =
    [("drm", &["crate: fork, libdrm, node, report, screen, shared", "crate: ioctls, user"])];

#[test]
fn modules_import_each_other_in_one_direction() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folders = std::fs::read_dir(root.join("crates")).expect("the crates");
    let folders = folders.map(|entry| entry.expect("a folder").path()).chain([root.join("python")]);
    let mut checked = 0;
    for folder in folders.filter(|folder| folder.join("src").is_dir()) {
        let name = folder.file_name().expect("a name").to_string_lossy().into_owned();
        let known = KNOWN.iter().find(|(of, _)| *of == name).map_or(&[][..], |(_, known)| known);
        assert_eq!(circles(&folder.join("src")), known, "{name}");
        checked += 1;
    }
    assert!(checked >= 20, "{checked} crates");
}
