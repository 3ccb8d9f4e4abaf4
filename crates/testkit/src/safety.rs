//! Checks which crates contain unsafe code.

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::Path;

    /// Crates that may contain unsafe code. Unsafe code is allowed in the engines and their common parts, the libraries
    /// that other programs load, guard pages, the check of standard output, and the exported functions of the
    /// WebAssembly module. The check of standard output must run before Rust's runtime changes standard output.
    const WITH_UNSAFE_CODE: [&str; 10] =
        ["simt", "jit", "r500", "r700", "tesla", "cuda", "drm", "guarded", "output", "playground"];

    /// Every crate that is not in the list forbids unsafe code. The listed crates deny unsafe code, except in modules
    /// that state a reason (Cargo.toml).
    #[test]
    fn unsafe_code_is_where_it_is_listed() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let crates = fs::read_dir(root.join("crates")).unwrap().map(|entry| entry.unwrap().path());
        let mut with = BTreeSet::new();
        for folder in crates.chain([root.join("python")]).filter(|folder| folder.join("Cargo.toml").is_file())
        {
            let source = ["src/lib.rs", "src/main.rs"].map(|file| fs::read_to_string(folder.join(file)));
            let source = source.into_iter().flatten().next().expect("a library or a program");
            if !source.contains("#![forbid(unsafe_code)]") {
                with.insert(folder.file_name().unwrap().to_string_lossy().into_owned());
            }
            let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap();
            assert!(manifest.contains("[lints]\nworkspace = true"), "{}", folder.display());
        }
        assert_eq!(with, WITH_UNSAFE_CODE.map(str::to_owned).into());
        let workspace = fs::read_to_string(root.join("Cargo.toml")).unwrap();
        for lint in [
            "unsafe_code = \"deny\"",
            "unsafe_op_in_unsafe_fn = \"deny\"",
            "undocumented_unsafe_blocks = \"warn\"",
        ] {
            assert!(workspace.contains(lint), "{lint}");
        }
    }
}
