//! Package metadata for a registry and its readers: complete manifests, and features that the documentation lists.

use std::path::{Path, PathBuf};

use toml::{Table, Value};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn manifest(folder: &Path) -> Table {
    read(&folder.join("Cargo.toml")).parse().expect("a manifest")
}

/// Returns the folders of the packages with their manifests.
fn packages() -> Vec<(PathBuf, Table)> {
    let folders = std::fs::read_dir(root().join("crates"))
        .expect("crates")
        .map(|entry| entry.expect("an entry").path());
    let mut folders: Vec<PathBuf> = folders.chain([root().join("python")]).collect();
    folders.sort();
    folders.into_iter().map(|folder| (folder.clone(), manifest(&folder))).collect()
}

fn is_published(manifest: &Table) -> bool {
    manifest["package"].get("publish").and_then(Value::as_bool) != Some(false)
}

#[test]
fn every_published_package_describes_itself() {
    let mut faults = Vec::new();
    for (folder, manifest) in packages().into_iter().filter(|(_, manifest)| is_published(manifest)) {
        let package = manifest["package"].as_table().expect("a table");
        let name = package["name"].as_str().expect("a name");
        for field in ["version", "edition", "rust-version", "license"] {
            if package.get(field).and_then(|field| field.get("workspace")) != Some(&Value::Boolean(true)) {
                faults.push(format!("{name}: {field} is not the workspace's"));
            }
        }
        let readme = package.get("readme").and_then(Value::as_str);
        if !readme.is_some_and(|readme| folder.join(readme).exists()) {
            faults.push(format!("{name}: no readme"));
        }
        if package.get("description").and_then(Value::as_str).is_none_or(|text| text.len() < 20) {
            faults.push(format!("{name}: no description"));
        }
        // The limits of crates.io.
        for (field, most) in [("keywords", 20), ("categories", 64)] {
            let words = package.get(field).and_then(Value::as_array).cloned().unwrap_or_default();
            let fits = |word: &Value| word.as_str().is_some_and(|word| (2..=most).contains(&word.len()));
            if words.is_empty() || words.len() > 5 || !words.iter().all(fits) {
                faults.push(format!("{name}: 1 to 5 {field} of at most {most} characters fit"));
            }
        }
        if !folder.join("src/lib.rs").exists() && !folder.join("src/main.rs").exists() {
            faults.push(format!("{name}: no lib.rs and no main.rs"));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// A README of about ten lines introduces each folder, and each package in a registry.
#[test]
fn every_package_has_a_short_readme() {
    for (folder, manifest) in packages() {
        let name = manifest["package"]["name"].as_str().expect("a name");
        let text = read(&folder.join("README.md"));
        let lines: Vec<&str> = text.lines().collect();
        assert!((8..=14).contains(&lines.len()), "{name}: {} lines", lines.len());
        let title = if name == "reconverge-python" { "reconverge for Python" } else { name };
        assert_eq!(lines[0], format!("# {title}"));
        assert_eq!(lines.last(), Some(&"Licensed under MIT or Apache-2.0, at your option."), "{name}");
        let features = manifest.get("features").and_then(Value::as_table);
        let listed = text.lines().find_map(|line| line.strip_prefix("Features: ")).unwrap_or_default();
        for feature in features.into_iter().flat_map(Table::keys).filter(|feature| *feature != "default") {
            assert!(listed.contains(&format!("`{feature}`")), "{name}: {feature} is not among its features");
        }
    }
}

/// Dependencies of published packages have versions. Publishing removes a dependency without a version, which only
/// tests can do without.
#[test]
fn published_packages_depend_on_versions() {
    let workspace = manifest(&root());
    let version = workspace["workspace"]["package"]["version"].as_str().expect("a version");
    let listed = workspace["workspace"]["dependencies"].as_table().expect("a table");
    for (name, entry) in listed.iter().filter(|(name, _)| name.starts_with("reconverge-")) {
        let folder = root().join(entry["path"].as_str().expect("a path"));
        let stated = entry.get("version").and_then(Value::as_str);
        assert_eq!(stated, is_published(&manifest(&folder)).then_some(version), "{name}");
    }
    for (folder, manifest) in packages() {
        let names = manifest.get("dependencies").and_then(Value::as_table).into_iter().flat_map(Table::keys);
        for name in names.filter(|name| name.starts_with("reconverge-")) {
            let published = listed[name].get("version").is_some() || !is_published(&manifest);
            assert!(published, "{}: {name} is not published", folder.display());
        }
    }
}

#[test]
fn a_packages_documentation_lists_its_features() {
    let mut lists = 0;
    for (folder, manifest) in packages() {
        let Some(features) = manifest.get("features").and_then(Value::as_table) else { continue };
        let sources = ["src/lib.rs", "src/main.rs"].map(|source| folder.join(source));
        let source = read(sources.iter().find(|source| source.exists()).expect("a source"));
        let (_, section) = source.split_once("//! # Features\n").unwrap_or_default();
        let section: Vec<&str> = section.lines().take_while(|line| line.starts_with("//!")).collect();
        let default = features.get("default").and_then(Value::as_array).cloned().unwrap_or_default();
        for name in features.keys().filter(|name| *name != "default") {
            let state = if default.iter().any(|of| of.as_str() == Some(name)) { "default" } else { "off" };
            let begins = format!("//! * `{name}` ({state}): ");
            assert!(section.iter().any(|line| line.starts_with(&begins)), "{}: {begins}", folder.display());
            lists += 1;
        }
    }
    assert!(lists > 5);
}
