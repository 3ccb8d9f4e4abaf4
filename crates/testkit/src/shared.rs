//! The collections beside the repository.

use std::io::Read;
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;
use serde_json::Value;

/// A file or folder of the collections beside the repository (`shared/`), or beside the folder of its worktrees.
/// `None`, with a message, where there are none.
///
/// # Panics
/// It is missing, and the variable `CI` says that it must be there.
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

/// The text of a gzip'd file of the collections.
///
/// # Panics
/// There is no such file, or it is damaged.
pub fn unpacked(file: &Path) -> String {
    let mut text = String::new();
    let packed = std::fs::File::open(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let read = MultiGzDecoder::new(packed).read_to_string(&mut text);
    read.unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    text
}

/// The records of a gzip'd file with one JSON object a line; none where there are no collections (see [`shared`]).
///
/// # Panics
/// As [`shared`] and [`unpacked`], and where a line is no JSON.
pub fn records(path: &str) -> Vec<Value> {
    let Some(file) = shared(path) else { return Vec::new() };
    let record = |line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{path}: {error}"));
    unpacked(&file).lines().map(record).collect()
}
