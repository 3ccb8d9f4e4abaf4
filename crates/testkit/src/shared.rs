//! The collections in `shared/`, outside the repository.

use std::io::Read;
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;
use serde_json::Value;

/// Returns the path of a file or folder in `shared/`. `shared/` is a folder next to the repository or next to the
/// folder of its worktrees. If the path does not exist, the function prints a message and returns `None`.
///
/// # Panics
/// Panics if the path does not exist and the environment variable `CI` is set.
pub fn shared(path: &str) -> Option<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let found = here
        .ancestors()
        .skip(3)
        .take(2)
        .map(|above| above.join("shared").join(path))
        .find(|path| path.exists());
    if found.is_none() {
        assert!(std::env::var_os("CI").is_none(), "shared/{path} is missing");
        println!("skipped: shared/{path} is not here");
    }
    found
}

/// Returns the text of a gzip'd file of the collections.
///
/// # Panics
/// Panics if the file does not exist or is damaged.
pub fn unpacked(file: &Path) -> String {
    let mut text = String::new();
    let packed = std::fs::File::open(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let read = MultiGzDecoder::new(packed).read_to_string(&mut text);
    read.unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    text
}

/// Returns the records of a gzip'd file with one JSON object per line. If the file does not exist, returns no records
/// (see [`shared`]).
///
/// # Panics
/// Panics in the cases of [`shared`] and [`unpacked`], and also if a line is not JSON.
pub fn records(path: &str) -> Vec<Value> {
    let Some(file) = shared(path) else { return Vec::new() };
    let record = |line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{path}: {error}"));
    unpacked(&file).lines().map(record).collect()
}
