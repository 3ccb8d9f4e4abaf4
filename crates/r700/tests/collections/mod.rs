//! The collections of programs beside the repository, for tests.

use std::io::Read;
use std::path::PathBuf;

/// A file of the collections; `None` (or, in CI, a failure) where there are none.
#[allow(dead_code)]
pub(crate) fn shared(path: &str) -> Option<PathBuf> {
    let folders = ["/../../../shared", "/../../../../shared"];
    let found = folders
        .into_iter()
        .map(|folder| PathBuf::from(format!("{}{folder}", env!("CARGO_MANIFEST_DIR"))).join(path))
        .find(|path| path.exists());
    if found.is_none() {
        assert!(std::env::var_os("CI").is_none(), "the corpus is missing");
        println!("skipped: no corpus here");
    }
    found
}

/// The records of a JSON Lines file.
#[allow(dead_code)]
pub(crate) fn records(path: &str) -> Vec<serde_json::Value> {
    let Some(path) = shared(path) else { return Vec::new() };
    let mut text = String::new();
    let file = std::fs::File::open(path).expect("it exists");
    flate2::read::GzDecoder::new(file).read_to_string(&mut text).expect("gzip of UTF-8");
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}
